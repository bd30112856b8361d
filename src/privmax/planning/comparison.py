"""Comparing: what every mechanism would do on data like yours, from its exact law.

No noise is added: a comparison is as private as what it was made from. Compare on invented or
public data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any, NamedTuple

from privmax.choice import draw_outcomes
from privmax.errors import refuse_given
from privmax.grouping import IN_COLUMNS, IN_SCORES, combine, moved
from privmax.mechanisms.contract import Law, Mechanism
from privmax.mechanisms.peeling import Ranker
from privmax.mechanisms.registry import MECHANISMS, describe_mechanism, names_requiring
from privmax.mechanisms.sets import SetMechanism
from privmax.notebook import facts
from privmax.numbers import Number, plain, whole
from privmax.planning.plans import Row, candidates, plan, price_in_words, short, winners
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy
from privmax.profile import Profile, Window
from privmax.sources.declared import Declared
from privmax.sources.files import ScoreFile
from privmax.sources.reading import source
from privmax.sources.roles import Columns
from privmax.sources.scale import Scores
from privmax.testing import SeededCoins
from privmax.universe import OPEN, Universe

CLOSE = 0.001
"""Chances that differ by no more count as equal."""

SHORTFALL = "Falls short by: on average, when there is an answer."

DRAWS = 200
"""Of a mechanism for lists whose expectations are not known otherwise."""

SURE = 1e-9
"""Chances that are no further from 0 or 1 are said to be that: far above the error of a law."""


@dataclass(frozen=True, repr=False)
class Contender:
    """One mechanism.

    Args:
        best: Chance that it releases a candidate of the highest score; of a list: the part of the
            best k that it releases, on average.
        nothing: Chance that it releases nothing; of a list: the part of its k places that stays
            empty, on average.
        shortfall: How many records what it releases has less than the best, on average, given that
            it releases something; None: it never does, or it is for a list.
        lead: Records by which the `near` best must lead all others; None: no lead is enough.
        chosen: Whether `auto` picks it.
        ahead: Whether no other has a higher chance to release the best, but for a tenth of a
            percent.
        size: Of a list: how many it releases, on average.
        error: Of a list that had to be drawn: two standard errors of `best`; 0 where it is exact.
    """

    mechanism: Mechanism
    name: str
    best: float
    nothing: float
    shortfall: float | None
    lead: int | None
    chosen: bool
    ahead: bool
    size: float | None = None
    error: float = 0.0

    def __repr__(self) -> str:
        return "Contender(<private>)"

    @property
    def misses(self) -> float:
        """The part of the best k that it does not release, on average."""
        return 1 - self.best


@dataclass(frozen=True, repr=False)
class Comparison:
    """The expected results of each mechanism, the likeliest to release the best first.

    Printed, it is a table.

    It is as private as the data: `repr` shows nothing, and a notebook only what was compared.

    Args:
        near: How many candidates `lead` is for, and among how many LimitedDomain draws.
        unable: The mechanisms that cannot serve here, and what they lack.
        why: Why `auto` picks the one it picks.
        k: How many are to be released.
    """

    privacy: Privacy
    neighbors: Neighbors
    universe: int | None
    near: int
    success: Fraction
    rows: tuple[Contender, ...]
    unable: Mapping[str, str]
    why: str
    k: int = 1

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the columns of the table."""
        if self.k > 1:
            return "mechanism", "misses", "releases", "as", "lead needed"
        return (
            "mechanism",
            "releases the best",
            "no answer",
            "falls short by",
            "lead needed",
        )

    def __repr__(self) -> str:
        return "Comparison(<private>)"

    def _repr_html_(self) -> str:
        """Return what is public of it, for notebooks, which are often saved and passed on."""
        return facts(
            "Comparison of mechanisms",
            {
                "privacy cost": price_in_words(self.privacy, self.neighbors),
                "universe": candidates(self.universe),
                "compared": sorted(row.name for row in self.rows),
                "chosen by auto": describe_mechanism(self.chosen.mechanism, self.why),
            },
            "The results are as private as the scores: print(…) shows them, a notebook does not.",
        )

    @property
    def chosen(self) -> Contender:
        """The row `auto` picks."""
        return next(row for row in self.rows if row.chosen)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, without its headings."""
        return [
            (
                f"{row.name}{' *' if row.chosen else ''}{' †' if row.ahead else ''}",
                *(self._list_cells(row) if self.k > 1 else self._single_cells(row)),
                "–" if row.lead is None else f"{short(row.lead)} records",
            )
            for row in self.rows
        ]

    def _single_cells(self, row: Contender) -> tuple[str, ...]:
        return (
            percent(row.best),
            percent(row.nothing),
            "–" if row.shortfall is None else _records(row.shortfall),
        )

    def _list_cells(self, row: Contender) -> tuple[str, ...]:
        misses = percent(row.misses)
        if row.error:
            misses = f"{100 * row.misses:.1f} ± {100 * row.error:.1f} %"
        return misses, _number(row.size or 0.0), "order" if row.mechanism.ranked else "set"

    def legend(self) -> list[str]:
        """Return what the marks mean, and who is missing."""
        lacking: dict[str, list[str]] = {}
        for name, lack in self.unable.items():
            lacking.setdefault(lack, []).append(name)
        return [
            f"* chosen by auto: {describe_mechanism(self.chosen.mechanism, self.why)}.",
            "† most likely to release the best, to a tenth of a percent."
            if self.k == 1
            else "† misses least, to a tenth of a percent.",
            *(f"Needs {lack}: {', '.join(names)}." for lack, names in lacking.items()),
        ]

    def notes(self) -> list[str]:
        """Return what is below the table."""
        lead = (
            f"Lead needed: by {winners(self.near)} over all others, for a release with probability"
        )
        return [
            *self.legend(),
            *(self._list_notes() if self.k > 1 else [SHORTFALL]),
            f"{lead} {plain(self.success)}.",
            *(
                f"{MECHANISMS[name].name} assumes that {self.near:,} may be near the top."
                for name in names_requiring("rank")
            ),
        ]

    def _list_notes(self) -> list[str]:
        drawn = [row.name for row in self.rows if row.error]
        return [
            f"Misses: the average share of the best {self.k:,} that is not released.",
            f"Releases: the average number released, out of {self.k:,}.",
            *(
                [f"{', '.join(drawn)}: from {DRAWS:,} draws, ± two standard errors; all else from "
                 "exact laws."] if drawn else []
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        lines = [self.headings, *self.cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headings))]
        table = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
            for line in lines
        ]
        head = f"{self.title()}\nat {price_in_words(self.privacy, self.neighbors)}:"
        return "\n".join([head, "", *table, "", *self.notes()])

    def title(self) -> str:
        """Return what is compared."""
        scores = f"these scores in {candidates(self.universe)}"
        if self.k == 1:
            return f"What each mechanism would do on {scores}"
        return f"What each mechanism would find of the best {self.k:,} on {scores}"


@moved({**IN_COLUMNS, **IN_SCORES})
def compare(
    data: object,
    *,
    epsilon: Number,
    delta: Number = 0,
    universe: object = OPEN,
    scores: Scores | None = None,
    k: int = 1,
    ranked: bool = False,
    near: int | None = None,
    success: Number = "0.95",
    mechanisms: str | Collection[str] | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    columns: Columns | None = None,
) -> Comparison:
    """Compare what every mechanism would do on scores like these, from its exact law.

    Without noise: for invented or public data only.

    Args:
        data: Whatever `select` takes, or a `Profile`, which has its universe already.
        epsilon: The privacy cost, as in `select`.
        delta: With epsilon, the privacy cost.
        universe: As in `select`.
        scores: As in `select`.
        k: How many are to be released. With more than one: how many of the best k each mechanism
            misses and how many it releases, on average. That of `PermuteAndFlip` is known from
            draws only, and comes with an error.
        ranked: Whether their order is to be released, too: only mechanisms that do so.
        near: What LimitedDomain is told, and what `lead` is for; by default as many as share the
            top score, or k.
        success: The probability of a release that `lead` is for.
        mechanisms: Which to compare, by name ("nested-margin"), one or a list of them, beside the
            one that would be used; by default all. At epsilon 0.1 the leads of the two of the paper
            take seconds, all others an instant.
        item: As in `select`.
        user: As in `select`.
        score: As in `select`.
        columns: As in `select`.

    Returns:
        A row for each mechanism.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: The data cannot be used.

    Examples:
        >>> options = {"epsilon": 1, "delta": 1e-6, "mechanisms": "nested-margin"}
        >>> compare({"a": 900, "b": 1}, **options).rows[0].best > 0.99
        True
    """
    columns = combine("columns", Columns, columns, item=item, user=user, score=score)
    moves = combine("scores", Scores, scores)
    with _read(data, universe, columns, moves) as (profile, rule):
        return compare_profile(
            profile,
            k=k,
            epsilon=epsilon,
            delta=delta,
            ranked=ranked,
            near=near,
            success=success,
            neighbors=rule,
            growth=moves.growth,
            mechanisms=mechanisms,
        )


def compare_over(
    data: object,
    numbers: Iterable[int],
    *,
    universe: object = OPEN,
    scores: Scores | None = None,
    near: int | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    **options: Any,
) -> dict[int, Comparison]:
    """Compare for several k; the data is read once.

    Args:
        data: As `compare` takes it.
        numbers: The values of k, as far as the universe has so many candidates.
        universe: As in `compare`.
        scores: As in `compare`.
        near: As in `compare`, where it is not below k.
        item: As in `compare`.
        user: As in `compare`.
        score: As in `compare`.
        **options: Others of `compare`.

    Returns:
        Comparisons by k.
    """
    moves = combine("scores", Scores, scores)
    with _read(data, universe, Columns(item, user, score), moves) as (profile, rule):
        return {
            k: compare_profile(
                profile,
                k=k,
                near=None if near is not None and near < k else near,
                neighbors=rule,
                growth=moves.growth,
                **options,
            )
            for k in numbers
            if profile.universe is None or k <= profile.universe
        }


def compare_profile(profile: Profile, *, k: int, near: int | None, **options: Any) -> Comparison:
    """Return the same for scores that have been read."""
    k = whole("k", k)
    if near is None and k == 1:
        near = _count_ties(profile)
    planned = plan(universe=Universe(profile.universe), k=k, near=near, **options)
    able = [(row.mechanism, row) for row in planned.rows if row.mechanism is not None]
    if k == 1:
        laws = [mechanism.law(profile) for mechanism, _ in able]
        scores = _everything(profile)
        highest = max(law.best() for law in laws)
        contenders = [
            _contender(one, law, scores, profile.sensitivity, highest)
            for one, law in zip(able, laws, strict=True)
        ]
    else:
        contenders = _list_contenders(able, profile, k)
    contenders.sort(key=lambda row: (-round(row.best, 3), not row.chosen))
    unable = {row.name: row.lacks for row in planned.rows if row.lacks is not None}
    return Comparison(
        planned.privacy,
        planned.neighbors,
        planned.universe,
        planned.near,
        planned.success,
        tuple(contenders),
        unable,
        planned.why,
        k,
    )


@contextmanager
def _read(
    data: object, universe: object, columns: Columns, scores: Scores
) -> Iterator[tuple[Profile, str]]:
    """The scores of whatever `compare` takes, and the relation they are compared under."""
    everything, neighbors = Universe.of(universe), scores.neighbors
    scale = {"sensitivity": scores.sensitivity, "resolution": scores.resolution}
    with ExitStack() as stack:
        if isinstance(data, Profile):
            profile = data
            declared = None if everything.is_open else universe
            options = {**vars(columns), **scale, "universe": declared}
            refuse_given(options, "a Profile already has everything")
        else:
            grid = scores.scale()
            neighbors = grid.neighbors(neighbors)
            data = Declared.of(data).open(stack)
            if isinstance(data, ScoreFile):
                data = data.read(grid)
            if isinstance(data, Mapping) and everything.size and everything.labels is None:
                data = list(data.values())  # nobody is named here, so not everybody need be listed
            read = source(data, columns.checked(), universe=everything, **scale)
            profile = stack.enter_context(closing(read)).profile
        yield profile, ADD_REMOVE if neighbors is None else neighbors


def percent(chance: float) -> str:
    """Return a probability for people."""
    if SURE < chance < 0.001:
        return "<0.1 %"
    if 0.999 < chance < 1 - SURE:
        return ">99.9 %"
    return (
        f"{100 * chance:.1f} %".replace(".0 ", " ")
        if SURE < chance < 1 - SURE
        else f"{round(chance) * 100} %"
    )


def _count_ties(profile: Profile) -> int:
    """Count the candidates that share the top score.

    1 where those are the unlisted ones of an open universe.
    """
    counts = profile.window(1).counts
    return counts[0] if counts else 1


def _everything(profile: Profile) -> Window:
    """Return the profile down to its last candidate.

    Ends: the universe is closed, or nothing listed is below the floor.
    """
    width = max(profile.top(), 0) + 1
    while (seen := profile.window(width)).rest:
        width *= 2
    return seen


_Able = tuple[Mechanism, Row]
"""A mechanism that can serve, and its row in a plan."""


def _contender(
    able: _Able, law: Law, scores: Window, sensitivity: int, highest: float
) -> Contender:
    mechanism, row = able
    nothing = min(max(law.none, 0.0), 1.0)
    missed = sum(
        chance * float(_below_the_top(level, law, scores) / sensitivity)
        for level, count, chance in law.blocks
        if count
    )
    shortfall = missed / (1 - nothing) if nothing < 1 - SURE else None
    best = min(law.best(), 1.0)
    ahead = best > SURE and best >= highest - CLOSE
    return Contender(mechanism, row.name, best, nothing, shortfall, row.lead, row.chosen, ahead)


def _list_contenders(able: Sequence[_Able], profile: Profile, k: int) -> list[Contender]:
    """Return what each finds of the best k, or of all that were seen, where those are fewer."""
    places = k if profile.universe is not None else min(k, sum(profile.down_to(k).counts))
    results = [expectation(mechanism, profile, k) for mechanism, _ in able]
    shares = [one.hits / places if places else 0.0 for one in results]
    highest = max(shares)
    return [
        Contender(
            mechanism,
            row.name,
            share,
            max(0.0, 1 - one.size / places) if places else 1.0,
            None,
            row.lead,
            row.chosen,
            share > SURE and share >= highest - CLOSE,
            one.size,
            one.error / places if places else 0.0,
        )
        for (mechanism, row), one, share in zip(able, results, shares, strict=True)
    ]


class Expectation(NamedTuple):
    """Average numbers of released items and of the best among them; two standard errors."""

    size: float
    hits: float
    error: float = 0.0


def expectation(mechanism: Mechanism, profile: Profile, best: int) -> Expectation:
    """Return what a mechanism for lists releases of the best, on average.

    Exactly, where that is known; else from `DRAWS` draws, always the same ones.
    """
    assert isinstance(mechanism, (SetMechanism, Ranker))
    exact = mechanism.expect(profile, best)
    if exact is not None:
        return Expectation(*exact)
    seen = profile.down_to(best)
    least = seen.top - seen.depth(best)
    sizes, hits = [], []
    for number in range(DRAWS):
        outcomes = draw_outcomes(mechanism, profile, SeededCoins(f"compare {number}"))
        scores = [outcome.score for outcome in outcomes if outcome.score is not None]
        sizes.append(len(scores))
        hits.append(sum(score >= least for score in scores))
    error = max(2 * stdev(hits) / DRAWS**0.5, 3 / DRAWS)  # where none is seen, one in 70 may be
    return Expectation(fmean(sizes), fmean(hits), error)


def _below_the_top(level: int, law: Law, scores: Window) -> Fraction:
    """Return how far a block of the law is below the top.

    The block at the floor on average, by the scores themselves.
    """
    depth = scores.top - level
    if level != law.floor:
        return Fraction(depth)
    low = [(d, count) for d, count in zip(scores.depths, scores.counts, strict=True) if d >= depth]
    return Fraction(sum(d * count for d, count in low), sum(count for _, count in low))


def _number(number: float) -> str:
    """Return a mean number of candidates for people."""
    return f"{number:,.1f}".removesuffix(".0")


def _records(number: float) -> str:
    """Return a mean number of records for people."""
    if 0 < number < 0.1:
        return "0 records" if number < SURE else "<0.1 records"
    return (
        f"{number:,.1f} records".replace(".0 ", " ") if number < 100 else f"{number:,.0f} records"
    )
