"""Planning: what every mechanism needs and promises at a price, before any data is touched.

All leads come from exact laws, by bisection over integers. Nothing here looks at data.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from privmax.choice import auto
from privmax.errors import ParameterError
from privmax.mechanisms.choosing import Choosing
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.joint_exponential import JointExponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.limited_domain import LimitedDomain
from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.registry import MECHANISMS, Entry
from privmax.mechanisms.sharp_margin import SharpMargin
from privmax.mechanisms.stable_maximum import StableMaximum
from privmax.numbers import Number, open_probability, plain, positive, probability, round_up, whole
from privmax.planning.theory import exponential_error, least_lead, max_of_laplaces_error
from privmax.privacy import ADD_REMOVE, REPLACE, Neighbors, Privacy, relation
from privmax.profile import LARGEST_UNIVERSE
from privmax.universe import OPEN, Universe

SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), 10**6
"""Laws of other prices take too long, or leave the range of floats."""

DELTA = "a delta above 0"
"""What a mechanism lacks that is not pure, at delta 0."""


@dataclass(frozen=True)
class Row:
    """One mechanism.

    mechanism   as it would be made; None where it cannot serve
    name        of its class
    lead        records by which the `near` best must lead all others to be drawn with probability
                `success`; None: no lead is enough, or it cannot serve
    error       with probability `success` what it releases, if anything, falls short of the best by
                no more records than this, whatever the data; None: there is no such bound
    silent      whether it may release nothing
    needs       what must be known in advance; a delta above 0 where it has none and cannot serve
                without
    chosen      whether `auto` picks it
    lacks       what it cannot serve without at this price in this universe; None: it can
    """

    mechanism: Mechanism | None
    name: str
    lead: int | None
    error: int | None
    silent: bool
    needs: str
    chosen: bool
    lacks: str | None = None


@dataclass(frozen=True)
class Plan:
    """What each mechanism needs, by lead; printed, it is a table.

    limit   no mechanism at this price that treats candidates alike can do with a smaller lead
    why     why `auto` picks the one it picks
    """

    privacy: Privacy
    neighbors: Neighbors
    universe: int | None
    near: int
    success: Fraction
    rows: tuple[Row, ...]
    limit: int
    why: str
    headings: tuple[str, ...] = field(
        default=("mechanism", "lead", "error at most", "may stay silent", "must know"), repr=False
    )

    @property
    def chosen(self) -> Row:
        """The row `auto` picks."""
        return next(row for row in self.rows if row.chosen)

    def title(self) -> str:
        """What is planned."""
        return (
            f"Records by which {winners(self.near)} must lead all others in "
            f"{candidates(self.universe)}"
        )

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, without its headings."""
        return [
            (
                f"{row.name}{' *' if row.chosen else ''}",
                "–" if row.lead is None else str(row.lead),
                "–" if row.error is None else str(row.error),
                "–" if row.lacks else "yes" if row.silent else "no",
                row.needs,
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [self.headings, *self.cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headings))]
        text = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
        head = [
            f"{self.title()},",
            f"to be released with probability {plain(self.success)} at "
            f"{price_in_words(self.privacy, self.neighbors)}:",
        ]
        foot = f"* chosen by auto: {self.why}. No mechanism can do with a lead below {self.limit}."
        return "\n".join([*head, "", *text, "", foot])


def plan(
    *,
    epsilon: Number,
    delta: Number = 0,
    universe: object = OPEN,
    near: int = 1,
    success: Number = "0.95",
    neighbors: str = ADD_REMOVE,
    growth: int | None = None,
    mechanisms: Collection[str] | None = None,
) -> Plan:
    """What every mechanism needs at the price (epsilon, delta), and which one `select` would use.

    universe    "open", how many candidates there are, up to 2^1000, or all their labels
    near        how many candidates are tied at the top
    success     probability with which one of them is to be released
    neighbors   "add-remove" or "replace"
    growth      how many candidates one individual's record touches at most, if there is a bound
    mechanisms  which to look at, by the names of the registry, beside the one that would be used;
                by default all. At epsilon 0.1 the two of the paper take a minute, all others an
                instant
    """
    price = Privacy(positive("epsilon", epsilon), probability("delta", delta))
    if not SMALLEST_EPSILON <= price.epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            "epsilon",
            epsilon,
            "plans are made for 1e-6 up to 1e6",
            "Usual prices lie between 0.1 and 3.",
        )
    size = _check_size(Universe.of(universe))
    target, near, rule = (
        open_probability("success", success),
        whole("near", near),
        relation(neighbors),
    )
    if near > LARGEST_UNIVERSE:
        raise ParameterError("near", "over 2^1000", "it must not exceed 2^1000", "Plan for fewer.")
    if growth is not None:
        whole("growth", growth)
    wanted = _wanted(mechanisms)
    chosen, why = auto(
        epsilon=price.epsilon,
        delta=price.delta,
        universe=Universe(size),
        neighbors=rule,
        growth=growth,
    )
    rows = [
        _row(entry, price, size, near, target, rule, growth, chosen)
        for name, entry in MECHANISMS.items()
        if name in wanted or entry.load() is type(chosen)
        if entry.load()
        is not JointExponential  # with one item it is the exponential mechanism at half the price
    ]
    rows.sort(key=lambda row: (row.lead is None, row.lead or 0, not row.chosen))
    limit = least_lead(
        epsilon=price.epsilon,
        delta=price.delta,
        candidates=size,
        near=near,
        success=target,
        neighbors=rule,
    )
    return Plan(price, rule, size, near, target, tuple(rows), limit, why)


def winners(near: int) -> str:
    """So many that share the top, in words."""
    return "a single winner" if near == 1 else f"the {near:,} best"


def candidates(universe: int | None) -> str:
    """A universe in words, short."""
    if universe is None:
        return "an open universe"
    return f"{short(universe)} candidates"


def short(number: int) -> str:
    """A whole number for people."""
    digits = str(number)
    return f"{number:,}" if len(digits) <= 15 else f"about 10^{len(digits) - 1}"


def price_in_words(privacy: Privacy, neighbors: Neighbors) -> str:
    """A price for people: not below what it is."""
    return f"epsilon {round_up(privacy.epsilon)}, delta {round_up(privacy.delta)}, {neighbors}"


def crossover(
    first: Mechanism, second: Mechanism, *, near: int = 1, success: Number = "0.95"
) -> int | None:
    """The smallest closed universe, to two digits, in which `second` needs a smaller lead than
    `first`.

    None: none up to 2^1000. It is taken that once ahead it stays ahead, as where only `first`
    needs ever more.
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
    """How many candidates there are, unless they are too many to plan for; None: open."""
    if universe.size is not None and universe.size > LARGEST_UNIVERSE:
        raise ParameterError(
            "universe", "over 2^1000", "it must not exceed 2^1000", 'Plan for "open".'
        )
    return universe.size


def _wanted(mechanisms: Collection[str] | None) -> Collection[str]:
    for name in () if mechanisms is None else mechanisms:
        if name not in MECHANISMS:
            raise ParameterError("mechanisms", name, f"each must be one of {', '.join(MECHANISMS)}")
    return MECHANISMS if mechanisms is None else mechanisms


def _row(
    entry: Entry,
    price: Privacy,
    size: int | None,
    near: int,
    success: Fraction,
    neighbors: Neighbors,
    growth: int | None,
    chosen: Mechanism,
) -> Row:
    lacks = _lacking(entry, price, size, neighbors, growth)
    if lacks is not None:
        needs = lacks if lacks == DELTA else entry.needs
        return Row(None, entry.name, None, None, entry.abstains, needs, False, lacks)
    mechanism = _made(entry, price, near, neighbors, growth)
    lead = None
    try:
        lead = mechanism.lead(candidates=size, near=near, success=success)
    except ParameterError as error:
        if error.name != "success":  # "no lead reaches it" is an answer
            raise
    picked = type(mechanism) is type(chosen)
    silent = entry.abstains or size is None
    return Row(
        mechanism, entry.name, lead, _error(mechanism, size, success), silent, entry.needs, picked
    )


def _lacking(
    entry: Entry, price: Privacy, size: int | None, neighbors: Neighbors, growth: int | None
) -> str | None:
    """What keeps a mechanism from serving; None: nothing does."""
    if not entry.pure and not price.delta:
        return DELTA
    if "neighbors" not in entry.parameters and neighbors != ADD_REMOVE:
        return f"neighbors {ADD_REMOVE}"
    if entry.load() is Choosing and growth is None:
        return "growth"
    return "a closed universe" if entry.pure and size is None else None


def _made(
    entry: Entry, price: Privacy, near: int, neighbors: Neighbors, growth: int | None
) -> Mechanism:
    """The mechanism at this price."""
    given = {
        "neighbors": neighbors,
        "growth": growth,
        "rank": near,
        "delta": None if entry.pure else price.delta,
    }
    options = {
        name: value
        for name, value in given.items()
        if name in entry.parameters and value is not None
    }
    return entry.load()(epsilon=price.epsilon, **options)


def _error(mechanism: Mechanism, size: int | None, success: Fraction) -> int | None:
    """The bound that holds whatever the data: docs/proofs/utility.md, "Without a margin"."""
    if isinstance(mechanism, (GapTest, StableMaximum)):
        return 0  # nobody but the best is ever released
    if isinstance(mechanism, MaxOfLaplaces):
        epsilon, neighbors = mechanism.epsilon, mechanism.neighbors
        return ceil(
            max_of_laplaces_error(
                epsilon=epsilon, candidates=size or 1, success=success, neighbors=neighbors
            )
        )
    crowd, epsilon, neighbors = _draw_of(mechanism, size)
    if crowd is None:
        return None
    return ceil(
        exponential_error(epsilon=epsilon, candidates=crowd, success=success, neighbors=neighbors)
    )


def _draw_of(mechanism: Mechanism, size: int | None) -> tuple[int | None, Fraction, Neighbors]:
    """How many candidates the last draw has at most, and its epsilon and relation."""
    if isinstance(mechanism, LargeMargin):  # and LargeMarginTruncated
        return mechanism.cap if size is None else size, mechanism.epsilon / 3, REPLACE
    if isinstance(mechanism, SharpMargin):
        return mechanism.options(size)[-1][0], mechanism.draw_epsilon(), mechanism.neighbors
    if isinstance(mechanism, NestedMargin):
        return mechanism.levels(size)[-1], mechanism.draw_epsilon(), mechanism.neighbors
    if isinstance(mechanism, LimitedDomain):
        return min(mechanism.rank, size or mechanism.rank), mechanism.epsilon, mechanism.neighbors
    if isinstance(mechanism, Choosing):
        return None, mechanism.epsilon, mechanism.neighbors  # among all that were seen
    return size, mechanism.privacy().epsilon, mechanism.neighbors


def _aligned(line: tuple[str, ...], widths: list[int]) -> list[str]:
    """Cells padded to their columns, numbers to the right."""
    return [
        cell.rjust(width) if column in (1, 2) else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
