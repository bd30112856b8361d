"""The story of `privmax demo`: one question to four mechanisms, drawn and charged, with exact
chances beside it; and one for many winners at once.

The receipts are invented (docs/samples.md), so their counts and the laws of the answers may be
shown. Never print either of private data.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from math import comb, exp
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile, mkdtemp
from typing import Any, overload

from rich.console import Console
from rich.table import Table

from privmax import samples
from privmax.best_items import BestItems
from privmax.errors import ParameterError, explain_install
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.mining import top_itemsets
from privmax.itemsets.reading.forms import read_baskets
from privmax.itemsets.source import ItemsetSource
from privmax.ledger import Ledger
from privmax.ledger.events import USER
from privmax.ledger.payment import Description
from privmax.mechanisms import registry
from privmax.mechanisms.contract import Mechanism, Outcome
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.ranked_margin import RankedMargin
from privmax.mechanisms.sets import SetMechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.planning.comparison import percent
from privmax.planning.plans import plan
from privmax.privacy import Privacy, describe_privacy
from privmax.profile import Level, Profile
from privmax.release import Release, answer
from privmax.sources.engines import embedded_engine
from privmax.universe import Universe

FOLDER = "privmax-demo"
EPSILON, DELTA = 1, "1e-6"
BUDGET = Privacy(6, "1e-5")
PAIRS = range(2, 3)
MANY = 10
"""Articles that are asked for at once."""
BARCODES = 10**12
"""A barcode has 13 digits, the last of which is a check digit."""

PAPER, OURS = "large margin (paper)", "nested margin (ours)"
MECHANISMS: dict[str, Mechanism] = {
    "exponential": Exponential(epsilon=EPSILON),
    "permute and flip": PermuteAndFlip(epsilon=EPSILON),
    PAPER: LargeMargin(epsilon=EPSILON, delta=DELTA),
    OURS: NestedMargin(epsilon=EPSILON, delta=DELTA),
}
PLANNED = [name for name in registry.MECHANISMS if name != "large-margin-truncated"]
"""Mechanisms in the second picture: all but one that takes a second and equals the paper's."""

COLUMNS: dict[str, Any] = {"basket": "receipt", "item": "article", "user": "member"}
SIZES = [10**4 << doublings for doublings in range(107)]
"""Universes in the picture. The least has room for every pair that was bought."""
FEW = [SIZES[doublings] for doublings in (0, 1, 2, 3, 4, 6, 8, 12, 20, 106)]
"""Enough of them for a mechanism that takes its time, and soon changes no more."""


def tell(
    console: Console,
    folder: Path | None = None,
    *,
    command: str = "privmax",
    coins: Coins = SYSTEM,
) -> None:
    """Print the story, and leave a ledger, two pictures and a report in a folder.

    Args:
        folder: None: privmax-demo, or a temporary one where that cannot be written.
        command: How privmax is called here, for commands to try next.
        coins: Source of random bits; another than the system's for tests and for the README only.
    """
    place, where = _place(folder)
    shop = _Shop(read_baskets(samples.path("receipts"), **COLUMNS))
    _introduce(console, shop)
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.create(_new(place / "budget.db"), budget=BUDGET))
        with Console(stderr=True).status("Asking each mechanism"):  # shown on a terminal only
            answers = {
                name: _ask(mechanism, shop, ledger, coins) for name, mechanism in MECHANISMS.items()
            }
            leads = {
                name: mechanism.lead(candidates=_universe(mechanism))
                for name, mechanism in MECHANISMS.items()
            }
        console.print(_table(shop, answers, leads))
        _explain(console, shop, leads)
        _list(console, shop, _ask_for_many(ledger, coins))
        _account(console, ledger)
        with Console(stderr=True).status("Drawing pictures"):
            written = _write_files(place, shop, answers[OURS], ledger, command)
    _conclude(console, where, written, command)


@dataclass(frozen=True)
class _Shop:
    """The public facts about the invented receipts."""

    rows: Baskets

    @cached_property
    def levels(self) -> list[Level]:
        """Numbers of pairs, by the number of members who bought them, most frequent first."""
        return list(self._pairs.histogram(0))

    def pair(self, rank: int) -> tuple[str, ...]:
        """A pair at the rank-th of these levels."""
        [pair] = self._pairs.names([Outcome(self.levels[rank][0])])
        assert pair is not None
        return pair

    def best_articles(self) -> set[tuple[str, ...]]:
        """The articles that most members bought; all that are level with the last."""
        levels = self._articles.profile.down_to(MANY)
        best = [
            Outcome(levels.top - depth, index)
            for depth, number in zip(levels.depths, levels.counts, strict=True)
            for index in range(number)
        ]
        return {article for article in self._articles.names(best) if article is not None}

    def missed(self, mechanism: SetMechanism) -> float:
        """Return how many of the best articles it misses on average, by its exact law."""
        return MANY - mechanism.expect(self._articles.profile, MANY)[1]

    def buyers(self, pair: Sequence[str]) -> int:
        """Return the number of members who bought a pair on one receipt."""
        labels = list(self.rows.labels)
        if not set(pair) <= set(labels):
            return 0
        return self.rows.support([labels.index(article) for article in pair])

    def chance(self, mechanism: Mechanism, size: int | None) -> float:
        """Exactly how likely the mechanism is to release the best pair, out of so many."""
        return mechanism.law(Profile(self.levels, universe=size)).best()

    @cached_property
    def _articles(self) -> ItemsetSource:
        return ItemsetSource(self.rows, self.rows.labels, range(1, 2), closed=False)

    @cached_property
    def _pairs(self) -> ItemsetSource:
        return ItemsetSource(self.rows, self.rows.labels, PAIRS, closed=False)


@dataclass(frozen=True)
class _Barcodes(Sequence[str]):
    """Every barcode there could be, as a list that is never written out: first those in use, called
    by the article.
    """

    articles: Sequence[str]

    def __len__(self) -> int:
        return BARCODES

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> Sequence[str]: ...
    def __getitem__(self, code: int | slice) -> str | Sequence[str]:
        if isinstance(code, slice):
            return [self[one] for one in range(*code.indices(BARCODES))]
        return self.articles[code] if code < len(self.articles) else f"{code:012d}"


def _place(folder: Path | None) -> tuple[Path, str]:
    """A folder that can be written, and what to say of it."""
    path = Path(FOLDER) if folder is None else folder
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            return path, str(path)
    except OSError as error:
        if folder is not None:
            reason = f"it cannot be written ({error.strerror})"
            raise ParameterError(
                "folder", str(folder), reason, "Name one that you may write to."
            ) from None
        made = Path(mkdtemp(prefix=f"{FOLDER}-"))
        return made, f"{made} ({FOLDER} cannot be written here: {error.strerror})"


def _new(file: Path) -> Path:
    """The file, or one numbered after it: a ledger is never made again."""
    number, unused = 1, file
    while unused.exists():
        number += 1
        unused = file.with_stem(f"{file.stem}-{number}")
    return unused


def _ask(mechanism: Mechanism, shop: _Shop, ledger: Ledger, coins: Coins) -> Release:
    """Release with the mechanism, charged to the ledger. One that needs candidates gets all
    barcodes.
    """
    if mechanism.privacy().delta:
        return top_itemsets(
            _receipts(),
            size=2,
            mechanism=mechanism,
            **COLUMNS,
            ledger=ledger.request(dataset="receipts"),
            coins=coins,
        )
    source = ItemsetSource(shop.rows, _Barcodes(shop.rows.labels), PAIRS, closed=True)
    options = {"size": 2, "items": BARCODES, **COLUMNS}
    return answer(
        BestItems(given=mechanism, universe=Universe(source.universe), unit=USER),
        lambda stack: source,
        ledger.request(dataset="receipts"),
        description=Description("itemsets", options),
        coins=coins,
    )


def _ask_for_many(ledger: Ledger, coins: Coins) -> Release:
    """The articles that most members bought, as a set."""
    return top_itemsets(
        _receipts(),
        size=1,
        k=MANY,
        epsilon=EPSILON,
        delta=DELTA,
        **COLUMNS,
        ledger=ledger.request(dataset="receipts"),
        coins=coins,
    )


def _receipts() -> Any:
    """The data: a table in an engine, where one is installed, otherwise the file."""
    path, engine = samples.path("receipts"), embedded_engine()
    is_there = find_spec(engine.module) is not None and find_spec("ibis") is not None
    return engine.read_csv(path) if is_there else path


def _introduce(console: Console, shop: _Shop) -> None:
    (best, _), (second, _) = shop.levels[:2]
    console.print(
        f"\n[bold]What is bought together?[/bold]  {shop.rows.rows:,} receipts of "
        f"{shop.rows.individuals:,} members of a corner shop. They are invented, so we may look: "
        f"{best} members bought {_together(shop.pair(0))}, and at most {second} bought any other "
        f"pair. But any two of 10^12 barcodes could be on a receipt: {_short(comb(BARCODES, 2))} "
        f"pairs, of which {sum(count for _, count in shop.levels):,} were ever bought.\n\n"
        f"Each mechanism is asked once, at ε = {EPSILON}, δ = {DELTA}, protecting any one "
        "member:\n"
    )


def _table(shop: _Shop, answers: dict[str, Release], leads: dict[str, int]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for heading in ("lead", "chance"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("its answer just now", no_wrap=True)
    table.add_column("bought by", justify="right", no_wrap=True)
    for name, release in answers.items():
        mechanism = MECHANISMS[name]
        chance = percent(shop.chance(mechanism, _universe(mechanism)))
        pair = release.item
        answer = "no answer" if pair is None else _together(pair)
        buyers = "–" if pair is None else str(shop.buyers(pair) or "none")
        table.add_row(name, str(leads[name]), chance, answer, buyers)
    return table


def _explain(console: Console, shop: _Shop, leads: dict[str, int]) -> None:
    best, _ = shop.levels[0]
    console.print(
        "\n[bold]lead[/bold]    members by which the best pair must lead to be found 95 % of the "
        "time\n"
        "[bold]chance[/bold]  exact probability of finding it here\n\n"
        f"The first may answer any pair. One that {best} members bought is "
        f"{_short(round(exp(EPSILON * best)))} times as likely as one without buyers, but "
        f"there are {_short(comb(BARCODES, 2))} of those. The second is hardly better. The other "
        "two need no list of pairs: they look only at pairs near the best, and abstain if none "
        f"stands out. That takes a lead of {leads[PAPER]} with the paper's constants, and of "
        f"{leads[OURS]} with ours.\n"
    )


def _list(console: Console, shop: _Shop, release: Release) -> None:
    ranked = RankedMargin(epsilon=EPSILON, delta=DELTA, k=MANY)
    assert isinstance(release.mechanism, SetMechanism)
    both = (release.mechanism, ranked)
    lead, in_order = (mechanism.lead(candidates=None, near=MANY) for mechanism in both)
    right = len(set(release.items) & shop.best_articles())
    fewer = [note for note in release.notes if "released:" in note]
    console.print(
        f"The {MANY} articles that most members bought, at the same privacy cost: "
        + (", ".join(article for (article,) in release.items) or "no answer")
        + ".",
        *fewer,
        f"{right} of them are right; on average {shop.missed(release.mechanism):.1f} of the best "
        f"{MANY} are missed here. They are a set, sorted by name. With a lead of {lead} none is "
        f"missed 95 % of the time. A ranked list needs a lead of {in_order}.\n",
    )


def _account(console: Console, ledger: Ledger) -> None:
    console.print(f"[bold]Granted[/bold]  {describe_privacy(ledger.budget)}")
    console.print(
        f"[bold]Spent[/bold]    {describe_privacy(ledger.spent)}, charged before each answer was "
        "drawn"
    )
    console.print(f"[bold]Left[/bold]     {describe_privacy(ledger.remaining)}")


def _write_files(
    place: Path, shop: _Shop, release: Release, ledger: Ledger, command: str
) -> dict[str, str]:
    """The files that were written, and what each is."""
    file = Path(ledger.where).name
    show = f"{command} budget history {quote(str(place / file))}"
    files = {file: f"the ledger, which lists what was spent:\n{'':23}{show}"}
    if find_spec("matplotlib") is None:
        return files
    from privmax import plots, report

    plots.write(_picture(shop), place / "universe.svg")
    plots.write(
        plots.planning(plan(epsilon=EPSILON, delta=DELTA, mechanisms=PLANNED)), place / "leads.svg"
    )
    page = report.html(
        release,
        question="Which two articles do most members buy together?",
        asked={"data": "sample:receipts", "size": 2, **COLUMNS},
        unit="one member with all of their receipts",
        universe="open",
        left=ledger.remaining,
        ledger=ledger.name,
    )
    report.write(page, place / "report.html")
    return {
        "universe.svg": "chance of finding the best pair, by number of pairs",
        "leads.svg": "the lead that the best pair needs, more mechanisms",
        "report.html": "the pair that was found, its cost and guarantee",
        **files,
    }


def _picture(shop: _Shop) -> Any:
    from privmax.plots import chances

    title, subtitle = _captions(shop)
    return chances(
        {
            name: {size: shop.chance(mechanism, size) for size in (FEW if name == PAPER else SIZES)}
            for name, mechanism in reversed(MECHANISMS.items())
        },
        title=title,
        subtitle=subtitle,
        marked=(comb(BARCODES, 2), "all pairs of 10¹² barcodes"),
    )


def picture_as_text() -> str:
    """The first picture as a table, for readers that show no pictures."""
    shop = _Shop(read_baskets(samples.path("receipts"), **COLUMNS))
    sizes = {f"10^{power}": 10**power for power in (4, 12, 18, 20, 21, 22)}
    sizes[_short(comb(BARCODES, 2))] = comb(BARCODES, 2)
    lines = [*_captions(shop), "", f"{'':20}" + "".join(f"{size:>9}" for size in sizes)]
    for name, mechanism in reversed(MECHANISMS.items()):
        cells = [percent(shop.chance(mechanism, size)) for size in sizes.values()]
        lines.append(f"{name:20}" + "".join(f"{cell:>9}" for cell in cells))
    return "\n".join(lines) + "\n"


def _captions(shop: _Shop) -> tuple[str, str]:
    """The title and subtitle of the first figure."""
    (best, _), (second, _) = shop.levels[:2]
    return (
        f"Chance of releasing {_together(shop.pair(0))}, by how many pairs there could be",
        f"{best} members bought it, the next {second}; epsilon {EPSILON}, delta {DELTA}",
    )


def _conclude(console: Console, where: str, written: dict[str, str], command: str) -> None:
    console.print(f"\n[bold]Written[/bold]  to {where}", soft_wrap=True)
    for file, what in written.items():
        console.print(f"         {file:14}{what}", soft_wrap=True, markup=False)
    if len(written) == 1:
        console.print(
            "         For figures and a report:\n         " + explain_install("plot"),
            markup=False,
            soft_wrap=True,
        )
    console.print("\n[bold]Next[/bold]     ", end="")
    console.print(
        f"{command} select sample:counts --item query --score people \\\n"
        "           --epsilon 1 --delta 1e-6\n",
        soft_wrap=True,
        markup=False,
    )


def _universe(mechanism: Mechanism) -> int | None:
    """Return the number of pairs a mechanism gets as candidates; None where it needs no list."""
    return None if mechanism.privacy().delta else comb(BARCODES, 2)


def _together(pair: Sequence[str]) -> str:
    return " + ".join(pair)


def _short(number: int) -> str:
    first, _, power = f"{number:.0e}".partition("e+")
    return f"{first}·10^{int(power)}"
