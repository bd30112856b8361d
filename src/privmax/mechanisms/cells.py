"""All sets of one size among the top candidates, by weight: counted in cells, never enumerated.

A set S of `size` of the top `width` candidates weighs exp(−a·deepest(S) + b·missing(S)), where
`deepest` is the depth of its worst member and `missing` that of the best candidate outside of it,
counted from those of the best set. So that set weighs 1, and no other more. With d_r the depth of
rank r, counted in the same way, the weights are sums over cells (p, u):

    w(S) = Σ D_p·D'_u  over prefixes p that S contains and reaches u that S does not go beyond
    p: 0, or the end of a level, up to `size`      D_p  = e^(b·d_(p+1)) − e^(b·d_p), without the
                                                   second term for 0
    u: the end of a level from `size`, or `width`  D'_u = e^(−a·d_u) − e^(−a·d_(u+1)), without the
                                                   second term for `width`

so cell (p, u) weighs C(u − p, size − p)·D_p·D'_u, and a set of that cell is the top p and a uniform
subset of the ranks p + 1 … u. All terms are positive.

Weights are balls. Where there are many cells, the first look at them is in floats, with a bound of
all their errors. A draw that floats leave undecided goes on with balls of any precision. NumPy, in
which floats are looked at, takes longer to load than some ten thousand balls to compute: sets that
`is_large` does not name never need it.

Proof:      docs/proofs/cells.md
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from flint import arb, ctx

from privmax.deferred import np
from privmax.mechanisms.contract import ROUNDING
from privmax.mechanisms.weights import shares
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform, find_place, weighted
from privmax.profile import Level

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ranks: TypeAlias = "NDArray[np.int64]"

Falls = list[tuple[int, int | None]]

MANY = 4096
"""More cells than this are looked at in floats first, where NumPy is loaded."""

MANY_WITHOUT_NUMPY = 1 << 15
"""More cells than this, where it is not: loading it takes longer than so many balls."""

LARGEST_LOG = 1 << 34
"""With logarithms of binomials beyond this, floats are too coarse for a first look."""

NEGLIGIBLE = 1500.0
"""The logarithm of the ratio below which a weight is as good as nothing in floats."""

LEFT_OUT = 66.0
"""All cells that the first look leaves out weigh less than e to the minus this, beside the rest."""

COARSEST = 2.0**-11
"""Floats with a larger bound of their errors are not used."""

LOOKED_AT = 48
"""So many bits of a uniform real are compared with floats."""

LARGEST_TABLE = 1 << 17
"""Up to so many candidates ln n! is looked up in a table."""

LARGEST_RATE = Fraction(2**400)
"""Floats look at rates up to this, and down to one over it."""

DEEPEST = 1 << 500
"""The largest depth in floats: deeper ones count as this. Their weight is 0 either way."""

FEW = 512
"""Below this ln n! is rounded from a ball, from here on it comes from Stirling's series."""


class Cells:
    """The sets of `size` among the top `width` candidates.

    Args:
        levels: Depth and number of the top `width` candidates, best first; more than `size` in all.
        size: Of the sets.
        inside: a, the rate at which weight falls with the depth of the worst member; above 0.
        outside: b, the rate at which it rises with the depth of the best candidate left out; above
            0.

    Examples:
        >>> cells = Cells([(0, 1), (5, 2)], 1, Fraction(1), Fraction(1))
        >>> [round(number, 4) for number in cells.numbers()]
        [0.9999, 0.0001]
    """

    def __init__(
        self, levels: Sequence[Level], size: int, inside: Fraction, outside: Fraction
    ) -> None:
        self.size = size
        self._inside, self._outside = inside, outside
        self._depths = [depth for depth, _ in levels]
        self._counts = [count for _, count in levels]
        ends = list(accumulate(self._counts))
        self.width = ends[-1]
        self._full = bisect_right(ends, size)  # levels that a prefix can hold
        self.prefixes = [0, *ends[: self._full]]
        first = bisect_left(ends, size)  # the first level that a set can end in
        self.reaches = ends[first:]
        self._first = first
        self._weights: tuple[int, list[arb], list[arb]] | None = None
        self._sums: tuple[int, list[arb]] | None = None

    def draw(self, coins: Coins) -> tuple[int, int]:
        """Draw a cell by its weight: how long its prefix is, and how far it reaches."""
        if self.has_look:
            error = self._look.error
            row = _draw_place(self._look.rows, error, self._rows, coins)
            parts = _shares(self._log_row(row))
            column = _draw_place(parts, error, lambda: self._row(row), coins)
        else:
            row = weighted(self._rows, coins)
            column = weighted(lambda: self._row(row), coins)
        return self.prefixes[row], self.reaches[column]

    def total(self) -> arb:
        """Return the weight of all sets, at the precision in force or that of floats."""
        if self._is_first_look():
            return self._look.total
        return sum(self._rows(), start=arb(0))

    def last(self) -> arb:
        """Return Σ C(width − p, size − p)·D_p over all prefixes shorter than `size`.

        At the precision in force or that of floats.
        """
        if self._is_first_look() and self._last_look is not None:
            return self._last_look
        prefixes, _ = self._both_weights()
        column = [
            self._choices(self.width - p, self.size - p) * weight
            for p, weight in zip(self.prefixes, prefixes, strict=True)
            if p < self.size
        ]
        return sum(column, start=arb(0))

    # The law, in floats

    def chances(self) -> Iterator[tuple[int, Floats]]:
        """Yield each prefix with the probability of each of its cells; never released.

        Each is within `error` of itself, or too small for a float.
        """
        if self.has_look:
            for place, p in enumerate(self.prefixes):
                yield p, _exp(self._log_row(place) - self._look.middle)
            return
        columns = len(self.reaches)
        flat = shares(lambda: [w for place in range(len(self.prefixes)) for w in self._row(place)])
        for place, p in enumerate(self.prefixes):
            yield p, np.array(flat[place * columns : (place + 1) * columns])

    def numbers(self) -> list[float]:
        """Return how many of each level a set holds on average; never released."""
        within = np.zeros(len(self._counts))  # the part of each level that a set holds
        reaches = np.array(self.reaches, dtype=np.float64)
        for place, (p, row) in enumerate(self.chances()):
            within[:place] += row.sum()
            if p < self.size:  # of all ranks from p + 1 to where it reaches, a cell holds one part
                parts = row * ((self.size - p) / (reaches - p))
                beyond = np.cumsum(parts[::-1])[::-1]
                within[place : self._first] += beyond[0]
                within[self._first :] += beyond
        return [part * count for part, count in zip(within.tolist(), self._counts, strict=True)]

    @property
    def error(self) -> float:
        """Bound on the relative error of the float laws."""
        return 4 * self._look.error if self.has_look else ROUNDING

    @property
    def has_look(self) -> bool:
        """Whether there are so many cells that floats look at them first, and can; `is_large`."""
        if len(self.prefixes) * len(self.reaches) <= _many() or self.width >= 1 << 53:
            return False
        rates = self._inside, self._outside
        return self.size * self.width.bit_length() < LARGEST_LOG and all(
            1 / LARGEST_RATE <= rate <= LARGEST_RATE for rate in rates
        )

    def _is_first_look(self) -> bool:
        """Whether floats are enough: they can look, and no candidate asks for more."""
        return self.has_look and ctx.prec <= START + 32

    # In balls

    def _rows(self) -> list[arb]:
        """Weight of all cells of each prefix, at the precision in force or a higher one."""
        bits = ctx.prec  # asked once: another thread may change it
        if self._sums is None or self._sums[0] < bits:
            prefixes, reaches = self._both_weights()
            sums = self._sums_by_table if self._is_narrow else self._sums_by_steps
            ways = sums(reaches)
            rows = [weight * sum_ for weight, sum_ in zip(prefixes, ways, strict=True)]
            self._sums = bits, rows
        return self._sums[1]

    def _sums_by_table(self, reaches: list[arb]) -> list[arb]:
        """Σ C(u − p, size − p)·D'_u of each prefix, with n! from a table.

        C(u − p, size − p) = (u − p)!/(size − p)!/(u − size)!: what depends on one of p and u alone
        is divided by once, so a cell takes one product.
        """
        table = _factorials(self.width)
        parts = [
            reach / table[u - self.size] for u, reach in zip(self.reaches, reaches, strict=True)
        ]
        return [
            sum((table[u - p] * part for u, part in zip(self.reaches, parts, strict=True)), arb(0))
            / table[self.size - p]
            for p in self.prefixes
        ]

    def _sums_by_steps(self, reaches: list[arb]) -> list[arb]:
        """Σ C(u − p, size − p)·D'_u of each prefix, from the longest to the shortest.

        From one prefix to the next shorter one C(n + 1, m + 1) = C(n, m)·(n + 1)/(m + 1).
        """
        sums: list[arb] = []
        row, divisor, after = reaches, arb(1), 0
        for p in reversed(self.prefixes):
            if p + 1 == after:
                row = [way * (u - p) for way, u in zip(row, self.reaches, strict=True)]
                divisor *= self.size - p
            else:
                row, divisor = self._choose(p, reaches), arb(1)
            sums.append(sum(row, start=arb(0)) / divisor)
            after = p
        return sums[::-1]

    def _row(self, place: int) -> list[arb]:
        """Weight of each cell of one prefix.

        Never from floats, whatever the precision is: other threads may set it at any time, and rows
        of one list must not have different scales.
        """
        prefixes, reaches = self._both_weights()
        weight = prefixes[place]
        return [weight * ways for ways in self._choose(self.prefixes[place], reaches)]

    def _choose(self, p: int, reaches: list[arb]) -> list[arb]:
        """C(u − p, size − p)·D'_u of each reach."""
        more = self.size - p
        return [
            self._choices(u - p, more) * reach
            for u, reach in zip(self.reaches, reaches, strict=True)
        ]

    def _choices(self, number: int, size: int) -> arb:
        """C(number, size) for numbers up to `width`."""
        if not self._is_narrow:
            return choices(number, size)
        table = _factorials(self.width)
        return table[number] / (table[size] * table[number - size])

    @property
    def _is_narrow(self) -> bool:
        """Whether a table of n! up to `width` is sooner made than as many binomials."""
        return self.width <= 2 * len(self.prefixes) * len(self.reaches)

    def _both_weights(self) -> tuple[list[arb], list[arb]]:
        """D_p of each prefix and D'_u of each reach, at the precision in force or a higher one."""
        bits = ctx.prec
        if self._weights is None or self._weights[0] < bits:
            prefixes, reaches = self._falls
            self._weights = (
                bits,
                _fall(prefixes, ball(self._outside)),
                _fall(reaches, ball(self._inside)),
            )
        return self._weights[1:]

    @cached_property
    def _falls(self) -> tuple[Falls, Falls]:
        """Of each prefix and each reach: with rate r, D = e^(−r·far)·(1 − e^(−r·step))."""
        missing, deepest = self._depths[self._full], self._depths[self._first]
        steps = list(pairwise(self._depths))
        prefixes: Falls = [(missing - self._depths[0], None)]
        prefixes += [(missing - after, after - before) for before, after in steps[: self._full]]
        reaches: Falls = [(here - deepest, there - here) for here, there in steps[self._first :]]
        reaches.append((self._depths[-1] - deepest, None))
        return prefixes, reaches

    # In floats: logarithms, so that no weight is too large or too small

    @cached_property
    def _look(self) -> _Look:
        error = self._bound(self._cut)
        logs = self._log_rows()
        middle = _log_sum(logs)
        with precision(START):
            total = arb(middle, error).exp()
        return _Look(error, middle, total, _shares(logs))

    @cached_property
    def _last_look(self) -> arb | None:
        """The value of `last` by floats; None: they are too coarse."""
        short = bisect_left(self.prefixes, self.size)
        logs = self._raw_logs[0][:short]
        cut = self.size * math.log(self.width) - float(logs.max()) + NEGLIGIBLE
        error = self._bound(cut)
        if error > COARSEST:
            return None
        reach = np.array([self.width])
        terms = self._log_ways(self._ends[0][:short, None], reach)[:, 0] + np.maximum(logs, -cut)
        with precision(START):
            return arb(_log_sum(terms), error).exp()

    def _bound(self, cut: float) -> float:
        """Bound the relative error of sums of cells by floats; the terms are on the proof page."""
        tabled = self.width * math.log(self.width) if self._has_table else 0.0
        return (
            2.0**-46 * (cut + 8 * FEW + tabled)
            + 2.0**-42
            + 2.0**-52 * (len(self.prefixes) + len(self.reaches))
        )

    def _log_rows(self) -> Floats:
        """ln of the weight of all cells of each prefix, but for cells that are as good as nothing.

        Cells are taken in blocks. C(u − p, size − p) rises with u and falls with p, so a block
        weighs at most what its corner would with the largest D and D' of the block.
        """
        rows, columns = (_split(len(ends)) for ends in self._ends)
        firsts = self._ends[0][[part.start for part in rows], None]
        lasts = self._ends[1][[part.stop - 1 for part in columns]]
        highest = self._log_ways(firsts, lasts)
        near, far = (
            np.maximum.reduceat(logs, [part.start for part in parts])
            for logs, parts in zip(self._logs, (rows, columns), strict=True)
        )
        highest += near[:, None]
        highest += far
        row, column = divmod(int(highest.argmax()), len(columns))
        heavy = self._log_cells(rows[row], columns[column]).max()
        left_out = LEFT_OUT + math.log(len(self.prefixes) * len(self.reaches))
        logs = np.full(len(self.prefixes), -math.inf)
        for part, bounds in zip(rows, highest, strict=True):
            seen = np.flatnonzero(bounds > heavy - left_out)
            if len(seen):
                near, far = columns[seen[0]].start, columns[seen[-1]].stop
                logs[part] = _log_sum(self._log_cells(part, slice(near, far)))
        return logs

    def _log_row(self, place: int) -> Floats:
        """ln of the weight of each cell of one prefix."""
        row: Floats = self._log_cells(slice(place, place + 1), slice(None))[0]
        return row

    def _log_cells(self, rows: slice, columns: slice) -> Floats:
        """ln of the weight of some cells."""
        prefixes, reaches = self._ends[0][rows, None], self._ends[1][columns]
        if self._has_table:
            weights: Floats = self._table.take(reaches - prefixes)
            near, far = self._logs_of_table
        else:
            weights = self._log_ways(prefixes, reaches)
            near, far = self._logs
        weights += near[rows, None]
        weights += far[columns]
        return weights

    def _log_ways(self, prefixes: Ranks, reaches: Ranks) -> Floats:
        """ln C(u − p, size − p)."""
        some, others = self.size - prefixes, reaches - self.size
        if self._has_table:
            table = self._table
            ways: Floats = table[reaches - prefixes] - table[some] - table[others]
            return ways
        return _log_choices((reaches - prefixes).astype(float), np.minimum(some, others))

    @property
    def _has_table(self) -> bool:
        return self.width <= LARGEST_TABLE

    @property
    def _table(self) -> Floats:
        return _log_factorials(1 << self.width.bit_length())

    @cached_property
    def _logs_of_table(self) -> tuple[Floats, Floats]:
        """ln D_p − ln (size − p)! and ln D'_u − ln (u − size)!."""
        (prefixes, reaches), (near, far) = self._ends, self._logs
        return near - self._table[self.size - prefixes], far - self._table[reaches - self.size]

    @cached_property
    def _ends(self) -> tuple[Ranks, Ranks]:
        """The prefixes and the reaches."""
        return np.array(self.prefixes), np.array(self.reaches)

    @cached_property
    def _logs(self) -> tuple[Floats, Floats]:
        """ln D_p and ln D'_u, or −cut where they are below that."""
        prefixes, reaches = (np.maximum(logs, -self._cut) for logs in self._raw_logs)
        return prefixes, reaches

    @cached_property
    def _raw_logs(self) -> tuple[Floats, Floats]:
        """ln D_p and ln D'_u."""
        outside, inside = float(self._outside), float(self._inside)
        depths = np.array(self._depths, object if self._depths[-1] >= 1 << 63 else np.int64)
        above = _floats(depths[self._full] - depths[: self._full + 1])
        below = _floats(depths[self._first :] - depths[self._first])
        falls = _floats(np.diff(depths))
        prefixes, reaches = -(outside * above), -(inside * below)
        prefixes[1:] += _log_falls(outside * falls[: self._full])
        reaches[:-1] += _log_falls(inside * falls[self._first :])
        return prefixes, reaches

    @cached_property
    def _cut(self) -> float:
        """The logarithm below which all cells of a D_p or D'_u are negligible."""
        prefixes, reaches = self._raw_logs
        heaviest = float(prefixes[-1] + reaches[0])
        return self.size * math.log(self.width) - heaviest + NEGLIGIBLE


def is_large(size: int, width: int) -> bool:
    """Return whether some sets of this size among so many candidates are looked at in floats.

    There are at most size + 1 prefixes, and a reach for each rank from `size` to `width`.

    Examples:
        >>> is_large(10, 220), is_large(1000, 2200)
        (False, True)
    """
    return (size + 1) * (width - size + 1) > _many()


def _many() -> int:
    return MANY if "numpy" in sys.modules else MANY_WITHOUT_NUMPY


def choices(number: int, size: int) -> arb:
    """Return C(number, size) at the precision in force.

    Examples:
        >>> choices(5, 3) == 10
        True
    """
    few = min(size, number - size)
    return arb.bin_uiui(number, few) if number < 1 << 63 else arb(number).bin(few)


def _factorials(number: int) -> list[arb]:
    """0!, 1!, … `number`! at the precision in force, and some more of them."""
    return _factorials_at(ctx.prec, 1 << number.bit_length())


@lru_cache(maxsize=4)
def _factorials_at(bits: int, number: int) -> list[arb]:
    """The first `number` of them, at this precision."""
    with precision(bits):
        return list(accumulate(range(1, number), lambda last, n: last * n, initial=arb(1)))


@dataclass(frozen=True)
class _Look:
    """The results of floats about the weights.

    Args:
        error: Bound on the relative error of each, and of sums of them.
        middle: Logarithm of the weight of all sets.
        total: The weight of all sets.
        rows: Weight of all cells of each prefix, beside the heaviest.
    """

    error: float
    middle: float
    total: arb
    rows: Floats


def _fall(falls: Falls, rate: arb) -> list[arb]:
    """e^(−rate·far)·(1 − e^(−rate·step)) of each; without a step, the first factor alone."""
    return [
        (-rate * far).exp() * (1 if step is None else -(-rate * step).expm1())
        for far, step in falls
    ]


def _draw_place(
    weights: Floats, error: float, exact: Callable[[], Sequence[arb]], coins: Coins
) -> int:
    """Draw a place by its weight: by floats where they are clear, and else by balls.

    Args:
        weights: By floats.
        error: Bound on the relative error of each, and of sums of them.
        exact: Computes them at the precision in force.
        coins: Where random bits come from.
    """
    cuts = np.cumsum(weights)
    with np.errstate(under="ignore"):
        cuts = cuts[:-1] / cuts[-1]
    lows, highs = np.append(cuts - 4 * error, 1.0), cuts + 4 * error
    uniform = Uniform(coins)
    while uniform.length < LOOKED_AT:
        unit = 0.5**uniform.length
        place = int(np.searchsorted(highs, uniform.known * unit, side="right"))
        if (uniform.known + 1) * unit <= lows[place]:
            return place
        uniform.reveal()
    return find_place(exact, uniform)


def _split(number: int) -> list[slice]:
    """About as many parts of a range as each has places."""
    size = math.isqrt(number)
    return [slice(start, min(start + size, number)) for start in range(0, number, size)]


def _floats(depths: NDArray[Any]) -> Floats:
    """Whole numbers as floats, which are at most so large."""
    return (np.minimum(depths, DEEPEST) if depths.dtype == object else depths).astype(np.float64)


def _log_falls(steps: Floats) -> Floats:
    """ln(1 − e^(−step)), for steps above 0."""
    with np.errstate(under="ignore"):
        logs: Floats = np.log(-np.expm1(-steps))
    return logs


def _exp(logs: Floats) -> Floats:
    """e to the power of each. What is too small for a float is 0.

    That is no failure, whatever NumPy was set to do: a failure would reveal the data.
    """
    with np.errstate(under="ignore"):
        values: Floats = np.exp(logs)
    return values


def _log_sum(logs: Floats) -> Any:
    """ln of the sum of what has these logarithms; of a table, for each row."""
    most = logs.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(_exp(logs - most).sum(axis=-1))


def _shares(logs: Floats) -> Floats:
    """Weights beside the heaviest."""
    return _exp(logs - logs.max())


def _log_choices(numbers: Floats, few: Floats) -> Floats:
    """ln C(n, m) for whole numbers m ≤ n/2 as floats.

    That is ln n!/(n − m)! − ln m!, the first of them without the large numbers that would cancel.
    """
    small = numbers < FEW
    n = np.where(small, FEW, numbers)
    m = np.where(small, 0.0, few)
    falling = m * np.log(n) - m - (n - m + 0.5) * np.log1p(-m / n) + (_series(n) - _series(n - m))
    table = _log_factorials(FEW)
    places = np.where(small, numbers, 0.0).astype(np.int64)
    lower = np.where(small, numbers - few, 0.0).astype(np.int64)
    logs: Floats = np.where(small, table[places] - table[lower], falling) - _log_factorial(few)
    return logs


def _log_factorial(numbers: Floats) -> Floats:
    """ln n! of whole numbers as floats."""
    small = numbers < FEW
    n = np.where(small, FEW, numbers)
    large = (n + 0.5) * np.log(n) - n + (0.5 * math.log(math.tau) + _series(n))
    table = _log_factorials(FEW)
    logs: Floats = np.where(small, table[np.where(small, numbers, 0.0).astype(np.int64)], large)
    return logs


def _series(numbers: Floats) -> Floats:
    """The terms of Stirling's series that matter from FEW / 2 on."""
    inverse = 1 / numbers
    series: Floats = inverse / 12 - inverse**3 / 360
    return series


@cache
def _log_factorials(number: int) -> Floats:
    """ln 0!, ln 1!, … of so many, FEW or more."""
    if number > FEW:
        return _log_factorial(np.arange(number, dtype=np.float64))
    with precision(START):
        return np.array([float(arb(number + 1).lgamma().mid()) for number in range(FEW)])
