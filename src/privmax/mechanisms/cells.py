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
all their errors; whoever needs to know more gets balls of any precision.

Proof:      docs/proofs/set-margin.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from privmax.mechanisms.contract import ROUNDING
from privmax.mechanisms.weights import shares
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.profile import Level

Floats = NDArray[np.float64]
Exponents = list[tuple[Fraction, Fraction | None]]

MANY = 1024
"""More cells than this are looked at in floats first."""

LARGEST_LOG = 1 << 34
"""With logarithms of binomials beyond this, floats are too coarse for a first look."""

NEGLIGIBLE = 1500.0
"""What weighs less than e to the minus this, compared with something else, is as good as nothing in
floats."""

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
        self._full = sum(end <= size for end in ends)  # levels that a prefix can hold
        self.prefixes = [0, *ends[: self._full]]
        first = sum(end < size for end in ends)  # the first level that a set can end in
        self.reaches = ends[first:]
        self._first = first
        self._weights: dict[int, tuple[list[arb], list[arb]]] = {}

    def draw(self, coins: Coins) -> tuple[int, int]:
        """Draw a cell by its weight: how long its prefix is, and how far it reaches."""
        row = weighted(self._rows, coins)
        column = weighted(lambda: self._row(row), coins)
        return self.prefixes[row], self.reaches[column]

    def total(self) -> arb:
        """Return the weight of all sets, at the precision in force or that of floats."""
        if self._is_first_look():
            return self._look.total
        return sum(self._rows(), start=arb(0))

    def last(self) -> arb:
        """Return Σ C(width − p, size − p)·D_p over all prefixes shorter than `size`."""
        prefixes, _ = self._both_weights()
        column = [
            choices(self.width - p, self.size - p) * weight
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
                yield p, np.exp(self._log_row(place) - self._look.middle)
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
        """Whether there are so many cells that floats look at them first, and can."""
        if len(self.prefixes) * len(self.reaches) <= MANY or self.width >= 1 << 53:
            return False
        return self.size * self.width.bit_length() < LARGEST_LOG

    def _is_first_look(self) -> bool:
        """Whether floats are enough: they can look, and nobody asks for more."""
        return self.has_look and ctx.prec <= START + 32

    # In balls

    def _rows(self) -> list[arb]:
        """Weight of all cells of each prefix; at the first look, up to a common factor."""
        if self._is_first_look():
            return self._look.rows
        return [sum(self._row(place), start=arb(0)) for place in range(len(self.prefixes))]

    def _row(self, place: int) -> list[arb]:
        """Weight of each cell of one prefix; at the first look, up to a common factor."""
        if self._is_first_look():
            logs = self._log_row(place)
            return _balls(np.exp(logs - logs.max()), self._look.error)
        p = self.prefixes[place]
        prefixes, reaches = self._both_weights()
        return [
            choices(u - p, self.size - p) * prefixes[place] * reach
            for u, reach in zip(self.reaches, reaches, strict=True)
        ]

    def _both_weights(self) -> tuple[list[arb], list[arb]]:
        """D_p of each prefix and D'_u of each reach at the precision in force, computed once."""
        if ctx.prec not in self._weights:
            prefixes, reaches = (
                [(-ball(far)).exp() * _fall(step) for far, step in exponents]
                for exponents in self._exponents
            )
            self._weights[ctx.prec] = prefixes, reaches
        return self._weights[ctx.prec]

    @cached_property
    def _exponents(self) -> tuple[Exponents, Exponents]:
        """Of each prefix and each reach: D = e^(−far)·(1 − e^(−step))."""
        missing, deepest = self._depths[self._full], self._depths[self._first]
        steps = list(pairwise(self._depths))
        prefixes: Exponents = [(self._outside * (missing - self._depths[0]), None)]
        prefixes += [
            (self._outside * (missing - after), self._outside * (after - before))
            for before, after in steps[: self._full]
        ]
        reaches: Exponents = [
            (self._inside * (here - deepest), self._inside * (there - here))
            for here, there in steps[self._first :]
        ]
        reaches.append((self._inside * (self._depths[-1] - deepest), None))
        return prefixes, reaches

    # In floats: logarithms, so that no weight is too large or too small

    @cached_property
    def _look(self) -> _Look:
        logs = np.array([_log_sum(self._log_row(place)) for place in range(len(self.prefixes))])
        # the three terms are explained on the proof page
        error = (
            2.0**-46 * (self._cut + 8 * FEW)
            + 2.0**-42
            + 2.0**-52 * (len(self.prefixes) + len(self.reaches))
        )
        middle = _log_sum(logs)
        with precision(START):
            total = arb(middle, error).exp()
        return _Look(error, middle, total, _balls(np.exp(logs - logs.max()), error))

    def _log_row(self, place: int) -> Floats:
        """ln of the weight of each cell of one prefix."""
        p = self.prefixes[place]
        prefixes, reaches = self._logs
        ends = np.array(self.reaches, dtype=np.float64)
        ways = _log_choices(ends - p, np.minimum(self.size - p, ends - self.size))
        row: Floats = ways + prefixes[place] + reaches
        return row

    @cached_property
    def _logs(self) -> tuple[Floats, Floats]:
        """ln D_p and ln D'_u, or −cut where they are below that."""
        prefixes, reaches = (
            np.array([_log(far, step, self._cut) for far, step in exponents])
            for exponents in self._exponents
        )
        return prefixes, reaches

    @cached_property
    def _cut(self) -> float:
        """Where D_p or D'_u is below e to the minus this, all of its cells are negligible."""
        prefixes, reaches = self._exponents
        heaviest = _log(*prefixes[-1], math.inf) + _log(*reaches[0], math.inf)
        return self.size * math.log(self.width) - heaviest + NEGLIGIBLE


def choices(number: int, size: int) -> arb:
    """Return C(number, size) at the precision in force.

    Examples:
        >>> choices(5, 3) == 10
        True
    """
    few = min(size, number - size)
    return arb.bin_uiui(number, few) if number < 1 << 63 else arb(number).bin(few)


@dataclass(frozen=True)
class _Look:
    """What floats tell of the weights.

    error    bound on the relative error of each, and of sums of them
    middle   ln of the weight of all sets
    total    the weight of all sets
    rows     weight of all cells of each prefix, up to a common factor
    """

    error: float
    middle: float
    total: arb
    rows: list[arb]


def _fall(step: Fraction | None) -> arb:
    """1 − e^(−step); of None, 1."""
    return arb(1) if step is None else -(-ball(step)).expm1()


def _log(far: Fraction, step: Fraction | None, cut: float) -> float:
    """ln(e^(−far)·(1 − e^(−step))), but not below −cut."""
    if far >= cut:
        return -cut
    with precision(START):
        return max(-cut, float((_fall(step).log() - ball(far)).mid()))


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


def _balls(values: Floats, error: float) -> list[arb]:
    """Numbers of at most 1 with a bound of their relative error, and of what underflows."""
    return [arb(value, value * 2 * error + 1e-300) for value in values.tolist()]


def _log_choices(numbers: Floats, few: Floats) -> Floats:
    """ln C(n, m) for whole numbers m ≤ n/2 as floats.

    That is ln n!/(n − m)! − ln m!, the first of them without the large numbers that would cancel.
    """
    small = numbers < FEW
    n = np.where(small, FEW, numbers)
    m = np.where(small, 0.0, few)
    falling = m * np.log(n) - m - (n - m + 0.5) * np.log1p(-m / n) + (_series(n) - _series(n - m))
    table = _log_factorials()
    places = np.where(small, numbers, 0.0).astype(np.int64)
    lower = np.where(small, numbers - few, 0.0).astype(np.int64)
    found: Floats = np.where(small, table[places] - table[lower], falling) - _log_factorial(few)
    return found


def _log_factorial(numbers: Floats) -> Floats:
    """ln n! of whole numbers as floats."""
    small = numbers < FEW
    n = np.where(small, FEW, numbers)
    large = (n + 0.5) * np.log(n) - n + (0.5 * math.log(math.tau) + _series(n))
    table = _log_factorials()
    found: Floats = np.where(small, table[np.where(small, numbers, 0.0).astype(np.int64)], large)
    return found


def _series(numbers: Floats) -> Floats:
    """The terms of Stirling's series that matter from FEW / 2 on."""
    inverse = 1 / numbers
    found: Floats = inverse / 12 - inverse**3 / 360
    return found


@lru_cache(maxsize=1)
def _log_factorials() -> Floats:
    """ln 0!, ln 1!, … below FEW."""
    with precision(START):
        return np.array([float(arb(number + 1).lgamma().mid()) for number in range(FEW)])
