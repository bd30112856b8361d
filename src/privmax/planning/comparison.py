"""Comparing: what every mechanism would do on data like yours, from its exact law.

No noise is added: a comparison is as private as what it was made from. Compare on invented or
public data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction

from privmax.errors import refuse_given
from privmax.mechanisms.contract import Law, Mechanism
from privmax.numbers import Number, plain, whole
from privmax.planning.plans import Row, candidates, plan, price_in_words, short, winners
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy
from privmax.profile import Profile, Window
from privmax.sources.files import ScoreFile
from privmax.sources.reading import source
from privmax.sources.scale import Scale
from privmax.sources.tables import Columns
from privmax.universe import OPEN, Universe

CLOSE = 0.001
"""Chances that differ by no more count as equal."""

SURE = 1e-9
"""Chances that are no further from 0 or 1 are said to be that: far above the error of a law."""


@dataclass(frozen=True, repr=False)
class Contender:
    """One mechanism.

    best        chance that it releases a candidate of the highest score
    nothing     chance that it releases nothing
    shortfall   how many records what it releases has less than the best, on average, given that it
                releases something; None: it never does
    lead        records by which the `near` best must lead all others; None: no lead is enough
    chosen      whether `auto` picks it
    ahead       whether no other has a higher chance to release the best, but for a tenth of a
                percent
    """

    mechanism: Mechanism
    name: str
    best: float
    nothing: float
    shortfall: float | None
    lead: int | None
    chosen: bool
    ahead: bool

    def __repr__(self) -> str:
        return "Contender(<private>)"


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each mechanism would do, the likeliest to release the best first; printed, it is a
    table.

    It is as private as the data: `repr` shows nothing.

    near      how many candidates `lead` is for, and among how many LimitedDomain draws
    unable    the mechanisms that cannot serve here, and what they lack
    why       why `auto` picks the one it picks
    """

    privacy: Privacy
    neighbors: Neighbors
    universe: int | None
    near: int
    success: Fraction
    rows: tuple[Contender, ...]
    unable: Mapping[str, str]
    why: str

    headings = (
        "mechanism",
        "releases the best",
        "releases nothing",
        "falls short by",
        "lead needed",
    )

    def __repr__(self) -> str:
        return "Comparison(<private>)"

    @property
    def chosen(self) -> Contender:
        """The row `auto` picks."""
        return next(row for row in self.rows if row.chosen)

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, without its headings."""
        return [
            (
                f"{row.name}{' *' if row.chosen else ''}{' †' if row.ahead else ''}",
                percent(row.best),
                percent(row.nothing),
                "–" if row.shortfall is None else _records(row.shortfall),
                "–" if row.lead is None else f"{short(row.lead)} records",
            )
            for row in self.rows
        ]

    def legend(self) -> list[str]:
        """What the marks mean, and who is missing."""
        lacking: dict[str, list[str]] = {}
        for name, lack in self.unable.items():
            lacking.setdefault(lack, []).append(name)
        return [
            f"* chosen by auto: {self.why}.",
            "† most likely to release the best, to a tenth of a percent.",
            *(
                f"Cannot serve without {lack}: {', '.join(names)}."
                for lack, names in lacking.items()
            ),
        ]

    def notes(self) -> list[str]:
        """What stands below the table."""
        lead = (
            f"Lead needed: by {winners(self.near)} over all others, for a release with probability"
        )
        return [
            *self.legend(),
            "Falls short by: on average, where something is released.",
            f"{lead} {plain(self.success)}.",
            f"LimitedDomain is told that {self.near:,} may stand near the top.",
        ]

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
        """What is compared."""
        return f"What each mechanism would do on these scores in {candidates(self.universe)}"


def compare(
    data: object,
    *,
    epsilon: Number,
    delta: Number = 0,
    universe: object = OPEN,
    near: int | None = None,
    success: Number = "0.95",
    neighbors: str | None = None,
    growth: int | None = None,
    mechanisms: Collection[str] | None = None,
    sensitivity: Number | None = None,
    resolution: Number | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    bound: int | None = None,
) -> Comparison:
    """What every mechanism would do on scores like these, at the price (epsilon, delta), from its
    exact law.

    Without noise: for invented or public data only.

    data        whatever `select` takes, or a `Profile`, which has its universe already
    near        what LimitedDomain is told, and what `lead` is for; by default as many as share the
                top score
    success     the probability of a release that `lead` is for
    mechanisms  which to compare, by the names of the registry, beside the one that would be used;
                by default all. At epsilon 0.1 the leads of the two of the paper take a minute, all
                others an instant
    """
    everything, columns = Universe.of(universe), Columns(item, user, score, weight, bound)
    scale = {"sensitivity": sensitivity, "resolution": resolution}
    with ExitStack() as held:
        if isinstance(data, Profile):
            profile = data
            declared = None if everything.is_open else universe
            given = {**vars(columns), **scale, "universe": declared}
            refuse_given(given, "a Profile says all there is")
        else:
            grid = Scale.of(**scale)
            neighbors = grid.neighbors(neighbors)
            if isinstance(data, ScoreFile):
                data = data.read(grid)
            if isinstance(data, Mapping) and everything.size and everything.labels is None:
                data = list(data.values())  # nobody is named here, so not everybody need be listed
            read = source(data, columns, universe=everything, **scale)
            profile = held.enter_context(closing(read)).profile
        found = plan(
            epsilon=epsilon,
            delta=delta,
            universe=Universe(profile.universe),
            near=_tied(profile) if near is None else whole("near", near),
            success=success,
            neighbors=ADD_REMOVE if neighbors is None else neighbors,
            growth=growth,
            mechanisms=mechanisms,
        )
        able = [
            (row, row.mechanism.law(profile)) for row in found.rows if row.mechanism is not None
        ]
        scores = _everything(profile)
    highest = max(law.best() for _, law in able)
    rows = [_contender(row, law, scores, profile.sensitivity, highest) for row, law in able]
    rows.sort(key=lambda row: (-round(row.best, 3), not row.chosen))
    unable = {row.name: row.lacks for row in found.rows if row.lacks is not None}
    return Comparison(
        found.privacy,
        found.neighbors,
        found.universe,
        found.near,
        found.success,
        tuple(rows),
        unable,
        found.why,
    )


def percent(chance: float) -> str:
    """A probability for people."""
    if SURE < chance < 0.001:
        return "<0.1 %"
    if 0.999 < chance < 1 - SURE:
        return ">99.9 %"
    return (
        f"{100 * chance:.1f} %".replace(".0 ", " ")
        if SURE < chance < 1 - SURE
        else f"{round(chance) * 100} %"
    )


def _tied(profile: Profile) -> int:
    """How many candidates share the top score; 1 where those are the unlisted ones of an open
    universe.
    """
    counts = profile.window(1).counts
    return counts[0] if counts else 1


def _everything(profile: Profile) -> Window:
    """The profile down to its last candidate. Ends: the universe is closed, or nothing listed is
    below the floor.
    """
    width = max(profile.top(), 0) + 1
    while (seen := profile.window(width)).rest:
        width *= 2
    return seen


def _contender(row: Row, law: Law, scores: Window, sensitivity: int, highest: float) -> Contender:
    assert row.mechanism is not None
    nothing = min(max(law.none, 0.0), 1.0)
    missed = sum(
        chance * float(_below_the_top(level, law, scores) / sensitivity)
        for level, count, chance in law.blocks
        if count
    )
    shortfall = missed / (1 - nothing) if nothing < 1 - SURE else None
    best = min(law.best(), 1.0)
    ahead = best > SURE and best >= highest - CLOSE
    return Contender(row.mechanism, row.name, best, nothing, shortfall, row.lead, row.chosen, ahead)


def _below_the_top(level: int, law: Law, scores: Window) -> Fraction:
    """How far a block of the law stands below the top; the block at the floor on average, by the
    scores themselves.
    """
    depth = scores.top - level
    if level != law.floor:
        return Fraction(depth)
    low = [(d, count) for d, count in zip(scores.depths, scores.counts, strict=True) if d >= depth]
    return Fraction(sum(d * count for d, count in low), sum(count for _, count in low))


def _records(number: float) -> str:
    """A mean number of records for people."""
    if 0 < number < 0.1:
        return "0 records" if number < SURE else "<0.1 records"
    return (
        f"{number:,.1f} records".replace(".0 ", " ") if number < 100 else f"{number:,.0f} records"
    )
