"""Planning: what every mechanism needs and promises at a cost, before any data is touched.

All leads come from exact laws, by bisection over integers. Nothing here looks at data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from privmax.choice import COMPARED_BY_MISSES, auto
from privmax.errors import ParameterError
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.entries import MechanismEntry
from privmax.mechanisms.ranked_margin import RankedMargin
from privmax.mechanisms.registry import MECHANISMS, check_name, describe_mechanism
from privmax.mechanisms.set_margin import SetMargin
from privmax.mechanisms.sets import SetMechanism
from privmax.notebook import table
from privmax.numbers import Number, open_probability, plain, positive, probability, round_up, whole
from privmax.planning.lower_bounds import least_lead
from privmax.planning.theory import exponential_error, max_of_laplaces_error
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, relation
from privmax.profile import LARGEST_UNIVERSE
from privmax.typical import show_part, typical_misses
from privmax.universe import OPEN, Universe

SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), 10**6
"""Laws of other costs take too long, or leave the range of floats."""

DELTA = "a delta above 0"
"""The need of a mechanism that is not pure, at delta 0."""

LARGER = "a larger epsilon"
"""The need of a mechanism whose exact law would take too long: the smaller epsilon, the longer."""


def is_planned(epsilon: Fraction) -> bool:
    """Return whether plans are made for this epsilon."""
    return SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON


def check_planned(epsilon: Number) -> None:
    """Refuse an epsilon for which no plans are made."""
    if not is_planned(positive("epsilon", epsilon)):
        raise ParameterError(
            "epsilon",
            epsilon,
            "plans work from 1e-6 to 1e6",
            "Common values are between 0.1 and 3.",
        )


@dataclass(frozen=True)
class Row:
    """One mechanism.

    Args:
        mechanism: As it would be made; None where it cannot serve.
        name: Of its class.
        lead: Records by which the `near` best must lead all others to be drawn with probability
            `success`; None: no lead is enough, or it cannot serve.
        error: With probability `success` what it releases, if anything, falls short of the best by
            no more records than this, whatever the data; None: there is no such bound.
        silent: Whether it may release nothing, or fewer than it was asked for.
        needs: What must be known in advance; a delta above 0 where it has none and cannot serve
            without.
        chosen: Whether `auto` picks it.
        lacks: What it cannot serve without at this cost in this universe; None: it can.
    """

    mechanism: Mechanism | None
    name: str
    lead: int | None
    error: int | None
    silent: bool
    needs: str
    chosen: bool
    lacks: str | None = None

    @property
    def form(self) -> str:
        """The form of its release of the best k, in a word; not known of one that cannot serve."""
        if self.mechanism is None:
            return "–"
        return "order" if self.mechanism.ranked else "set"


@dataclass(frozen=True)
class Plan:
    """The lead that each mechanism needs; prints as a table.

    Args:
        limit: No mechanism at this cost that treats candidates alike can do with a smaller lead.
        why: Why `auto` picks the one it picks.
        k: How many are to be released.
        ranked: Whether their order is, too.
    """

    privacy: Privacy
    neighbors: Neighbors
    universe: int | None
    near: int
    success: Fraction
    rows: tuple[Row, ...]
    limit: int
    why: str
    k: int = 1
    ranked: bool = False

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the columns of the table."""
        if self.k == 1:
            return "mechanism", "lead", "error at most", "may abstain", "must know"
        return "mechanism", "lead", "releases", "may release fewer", "must know"

    @property
    def chosen(self) -> Row:
        """The row `auto` picks."""
        return next(row for row in self.rows if row.chosen)

    @property
    def misses(self) -> float | None:
        """The part of the best k that the row of `auto` misses on typical profiles, on average.

        From exact laws. None: for a single item, in a closed universe, where `why` compares by it,
        and for more than 200, where it takes long.
        """
        mechanism = self.chosen.mechanism
        if self.universe is not None or not 1 < self.k <= COMPARED_BY_MISSES:
            return None
        assert isinstance(mechanism, SetMargin | RankedMargin)
        return typical_misses(mechanism, None)

    def title(self) -> str:
        """Return what is planned."""
        return (
            f"Records by which {winners(self.near)} must lead all others in "
            f"{candidates(self.universe)}"
        )

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, without its headings."""
        return [
            (
                f"{row.name}{' *' if row.chosen else ''}",
                "–" if row.lead is None else str(row.lead),
                row.form if self.k > 1 else "–" if row.error is None else str(row.error),
                "–" if row.lacks else "yes" if row.silent else "no",
                row.needs,
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [self.headings, *self.cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headings))]
        text = ["  ".join(_align(line, widths, self._numbers())).rstrip() for line in lines]
        return "\n".join([*self._head(), "", *text, "", *self._foot()])

    def _repr_html_(self) -> str:
        """Return a table for notebooks. No data was looked at, so all of it is public."""
        title = " ".join(self._head())
        return table(
            title, self.headings, self.cells(), " ".join(self._foot()), numbers=self._numbers()
        )

    def _numbers(self) -> tuple[int, ...]:
        """Return the columns that hold numbers."""
        return (1, 2) if self.k == 1 else (1,)

    def _head(self) -> list[str]:
        return [
            *self._misses_in_words(),
            f"{self.title()},",
            f"{_release_words(self.k, self.near, self.ranked)} with probability "
            f"{plain(self.success)} at {price_in_words(self.privacy, self.neighbors)}:",
        ]

    def _misses_in_words(self) -> list[str]:
        """Return what is missed of the best k in an open universe, or why that is not shown."""
        if self.k == 1 or self.universe is not None:
            return []
        best, name = f"the best {self.k:,}", f"{self.chosen.name} *"
        if self.misses is None:
            return [
                f"What {name} misses of {best} is not shown: above {COMPARED_BY_MISSES} it takes "
                "long to compute."
            ]
        return [
            f"{name} misses {show_part(self.misses)} of {best}, on average over typical scores "
            "(privmax help choosing)."
        ]

    def _foot(self) -> list[str]:
        return [
            f"* chosen by auto: {describe_mechanism(self.chosen.mechanism, self.why)}.",
            f"No mechanism works with a lead below {self.limit}.",
        ]


def plan(
    *,
    epsilon: Number,
    delta: Number = 0,
    universe: object = OPEN,
    k: int = 1,
    ranked: bool = False,
    near: int | None = None,
    success: Number = "0.95",
    neighbors: str = ADD_REMOVE,
    growth: int | None = None,
    mechanisms: str | Collection[str] | None = None,
) -> Plan:
    """Return what every mechanism needs at a cost, and which one `select` would use.

    Args:
        epsilon: The privacy cost; a float means the decimal that it prints as.
        delta: Probability with which the guarantee may fail; 0 only for a closed universe.
        universe: "open", how many candidates there are, up to 2^1000, or all their labels.
        k: How many are to be released; only mechanisms that release so many are looked at.
        ranked: Whether their order is to be released, too: only mechanisms that do so.
        near: How many candidates are tied at the top, `k` or more; by default `k`.
        success: Probability with which one of them is to be released, or k of them.
        neighbors: "add-remove" or "replace".
        growth: How many candidates one individual's record touches at most, if there is a bound.
        mechanisms: Which to look at, by name ("nested-margin"), one or a list of them, beside the
            one that would be used; by default all. At epsilon 0.1 the two of the paper take
            seconds, all others an instant.

    Returns:
        The plan: printed, it is a table.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
    """
    cost = Privacy(positive("epsilon", epsilon), probability("delta", delta))
    check_planned(epsilon)
    size = _check_size(Universe.of(universe))
    target, rule = open_probability("success", success), relation(neighbors)
    k = whole("k", k)
    near = check_near(k, near, size)
    if growth is not None:
        growth = whole("growth", growth)
    names = _pick_names(mechanisms, k, ranked)
    chosen, why = auto(
        epsilon=cost.epsilon,
        delta=cost.delta,
        universe=Universe(size),
        neighbors=rule,
        growth=growth,
        k=k,
        ranked=ranked,
    )
    case = _Case(cost, size, near, target, rule, growth, k, ranked)
    rows = [
        case.row(entry, chosen)
        for name, entry in MECHANISMS.items()
        if name in names or entry.load() is type(chosen)
    ]
    rows.sort(key=lambda row: (row.lead is None, row.lead or 0, not row.chosen))
    limit = least_lead(
        epsilon=cost.epsilon,
        delta=cost.delta,
        candidates=size,
        k=k,
        near=near,
        success=target,
        neighbors=rule,
    )
    return Plan(cost, rule, size, near, target, tuple(rows), limit, why, k, ranked and k > 1)


STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""The lengths of lists that a picture over k shows."""

SLOW_BEYOND = 100
"""From here on leads that are slow in lists take ten seconds each."""


def plan_over(numbers: Iterable[int], *, ranked: bool = False, **options: Any) -> dict[int, Plan]:
    """Plans for several k, by k: of the mechanisms that can serve lists at this cost.

    Args:
        numbers: The values of k.
        options: Of `plan`.
    """
    plans: dict[int, Plan] = {}
    names = options.pop("mechanisms", None)
    names = [names] if isinstance(names, str) else names
    for k in numbers:
        able = [
            name
            for name, entry in MECHANISMS.items()
            if _releases(entry, max(k, 2), ranked) and (names is None or name in names)
            if k <= SLOW_BEYOND or entry.slow != "in lists"
        ]
        plans[k] = plan(k=k, ranked=ranked, mechanisms=able, **options)
    return plans


def winners(near: int) -> str:
    """Return so many that share the top, in words."""
    return "a single winner" if near == 1 else f"the {near:,} best"


def candidates(universe: int | None) -> str:
    """Return a universe in words, short."""
    if universe is None:
        return "an open universe"
    return f"{short(universe)} candidates"


def short(number: int) -> str:
    """Return a whole number for people."""
    digits = str(number)
    return f"{number:,}" if len(digits) <= 15 else f"about 10^{len(digits) - 1}"


def price_in_words(privacy: Privacy, neighbors: Neighbors) -> str:
    """Return a cost for people: not below what it is."""
    return f"epsilon {round_up(privacy.epsilon)}, delta {round_up(privacy.delta)}, {neighbors}"


def crossover(
    first: Mechanism, second: Mechanism, *, near: int = 1, success: Number = "0.95"
) -> int | None:
    """Return the smallest closed universe in which `second` needs a smaller lead than `first`.

    It is rounded to two digits. It is taken that once ahead it stays ahead, as where only `first`
    needs ever more.

    Args:
        first: The one that is better in small universes.
        second: The other.
        near: How many candidates are tied at the top.
        success: Probability with which one of them is to be released.

    Returns:
        The size; None: there is none up to 2^1000.
    """

    def ahead(step: int) -> bool:
        size = _two_digits(step)
        leads = [
            mechanism.lead(candidates=size, near=near, success=success)
            for mechanism in (second, first)
        ]
        return leads[0] < leads[1]

    low, high = 0, 1
    while not ahead(high):
        if high == _LAST:
            return None
        low, high = high, min(2 * high, _LAST)  # the universe squared
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ahead(middle) else (middle, high)
    return _two_digits(high)


def _two_digits(step: int) -> int:
    """10, 11, … 99, 100, 110, …: every number of two digits and zeros."""
    power, digits = divmod(step, 90)
    return int((10 + digits) * 10**power)


_LAST = 90 * 300 + (LARGEST_UNIVERSE // 10**300 - 10)
"""The last such number up to 2^1000."""


def _check_size(universe: Universe) -> int | None:
    """Return how many candidates there are, unless they are too many to plan for; None: open."""
    if universe.size is not None and universe.size > LARGEST_UNIVERSE:
        raise ParameterError(
            "universe", "over 2^1000", "it must not exceed 2^1000", "Use an open universe."
        )
    return universe.size


def check_near(k: int, near: int | None, size: int | None) -> int:
    """Return how many are tied at the top, unless they or k are out of bounds."""
    if size is not None and k > size:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Plan for fewer."
        )
    near = k if near is None else whole("near", near)
    if near > LARGEST_UNIVERSE:
        raise ParameterError("near", "over 2^1000", "it must not exceed 2^1000", "Plan for fewer.")
    if near < k:
        raise ParameterError("near", near, f"it must be at least k, which is {k}", "Leave it out.")
    return near


def _pick_names(mechanisms: str | Collection[str] | None, k: int, ranked: bool) -> Collection[str]:
    """Return those of the names given, or of all, that release k; in order where that is wanted."""
    able = {name for name, entry in MECHANISMS.items() if _releases(entry, k, ranked)}
    mechanisms = [mechanisms] if isinstance(mechanisms, str) else mechanisms
    for name in () if mechanisms is None else mechanisms:
        check_name(name, "mechanisms")
        if k > 1 and name not in able:
            what = f"the best {k} in order" if ranked else f"the best {k}"
            raise ParameterError("mechanisms", name, f"it does not release {what}", "Leave it out.")
    return releasing(k, ranked) if mechanisms is None else able.intersection(mechanisms)


def releasing(k: int, ranked: bool = False) -> set[str]:
    """Return the names of the mechanisms that a plan looks at by default.

    They are those that release k items, in order where that is wanted.

    Examples:
        >>> "set-margin" in releasing(10), "set-margin" in releasing(10, ranked=True)
        (True, False)
    """
    able = {name for name, entry in MECHANISMS.items() if _releases(entry, k, ranked)}
    if k > 1:
        return able
    return {name for name in able if not MECHANISMS[name].for_lists}


def releases_sets(entry: MechanismEntry) -> bool:
    """Return whether what it releases of the best k is a set, unless it is made with `ranked`.

    Examples:
        >>> [name for name, entry in MECHANISMS.items() if releases_sets(entry)]
        ['set-margin', 'gap-test']
    """
    kind = entry.load()
    return isinstance(kind, type) and issubclass(kind, SetMechanism)


def _releases(entry: MechanismEntry, k: int, ranked: bool) -> bool:
    """Return whether a mechanism is for so many items.

    One that asks for k is for lists: with one item it would be another mechanism at more cost.
    """
    if k == 1:
        return "k" not in entry.requires
    if ranked and releases_sets(entry):
        return "ranked" in entry.parameters
    return "k" in entry.parameters


@dataclass(frozen=True)
class _Case:
    """The case that is planned for: see `plan`."""

    cost: Privacy
    size: int | None
    near: int
    success: Fraction
    neighbors: Neighbors
    growth: int | None
    k: int
    ranked: bool = False

    def row(self, entry: MechanismEntry, chosen: Mechanism) -> Row:
        lacks = self._lacking(entry)
        if lacks is not None:
            needs = DELTA if lacks == DELTA else self._needs(entry, self.cost.delta)
            return Row(None, entry.name, None, None, entry.abstains, needs, False, lacks)
        picked = type(chosen) is entry.load()
        mechanism = chosen if picked else self._make(entry)  # the one chosen may leave delta out
        lead = None
        try:
            lead = mechanism.lead(candidates=self.size, near=self.near, success=self.success)
        except ParameterError as refusal:
            if refusal.name == "epsilon":  # its law would take too long
                return Row(None, entry.name, None, None, entry.abstains, LARGER, False, LARGER)
            if refusal.name != "success":  # "no lead reaches it" is an answer
                raise
        error = _error(entry, mechanism, self.size, self.success) if self.k == 1 else None
        silent = self._may_release_fewer(mechanism, entry)
        needs = self._needs(entry, mechanism.privacy().delta)
        return Row(mechanism, entry.name, lead, error, silent, needs, picked)

    def _needs(self, entry: MechanismEntry, delta: Fraction) -> str:
        """Return what must be known in advance."""
        if self.k > 1 and self.ranked and entry.needs_order:
            return entry.needs_order
        if self.k > 1 and entry.needs_many:
            return entry.needs_many.format(k=self.k)
        return "the universe" if entry.pure and not delta else entry.needs

    def _lacking(self, entry: MechanismEntry) -> str | None:
        """Return what keeps a mechanism from serving; None: nothing does."""
        if not entry.pure and not self.cost.delta:
            return DELTA
        if "neighbors" not in entry.parameters and self.neighbors != ADD_REMOVE:
            return f"neighbors {ADD_REMOVE}"
        if "growth" in entry.requires and self.growth is None:
            return "growth"
        return "a closed universe" if entry.needs_closed and self.size is None else None

    def _make(self, entry: MechanismEntry) -> Mechanism:
        """Return the mechanism at this cost."""
        values = {
            "neighbors": self.neighbors,
            "growth": self.growth,
            "rank": self.near,
            "delta": None if entry.needs_closed and self.k == 1 else self.cost.delta,
            "k": self.k,
            "ranked": self.ranked and self.k > 1,
        }
        options = {
            name: value
            for name, value in values.items()
            if name in entry.parameters and value is not None
        }
        return entry.load()(epsilon=self.cost.epsilon, **options)

    def _may_release_fewer(self, mechanism: Mechanism, entry: MechanismEntry) -> bool:
        members = mechanism.members if isinstance(mechanism, RankedMargin) else mechanism
        if isinstance(members, SetMargin) and self.size is not None:
            return not any(
                stage.size == self.k and stage.width >= self.size
                for stage in members.cascade(self.size)
            )
        return entry.abstains or self.size is None


def _error(
    entry: MechanismEntry, mechanism: Mechanism, size: int | None, success: Fraction
) -> int | None:
    """Return the bound that holds whatever the data: docs/proofs/utility.md, "Without a margin"."""
    if entry.last_draw is None:
        return None
    draw = entry.last_draw(mechanism, size)
    if draw.noise == "none":
        return 0  # nobody but the best is ever released
    bound = max_of_laplaces_error if draw.noise == "laplace" else exponential_error
    return ceil(
        bound(
            epsilon=draw.epsilon,
            candidates=draw.candidates,
            success=success,
            neighbors=draw.neighbors,
        )
    )


def _release_words(k: int, near: int, ranked: bool) -> str:
    """Return what is to happen to those who lead, in words."""
    if k == 1:
        return "to be released"
    number = f"{k:,} of them" if near > k else f"all {k:,}"
    return f"for {number} to be released{' in order' if ranked else ''}"


def _align(line: tuple[str, ...], widths: list[int], numbers: tuple[int, ...]) -> list[str]:
    """Cells padded to their columns, numbers to the right."""
    return [
        cell.rjust(width) if column in numbers else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
