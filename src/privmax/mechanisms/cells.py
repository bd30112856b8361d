"""All sets of one size among the top candidates, by weight: counted in cells, never enumerated.

A set S of `size` of the top `width` candidates weighs exp(−a·deepest(S) + b·missing(S)), where
`deepest` is the depth of its worst member and `missing` that of the best candidate outside of it.
The weights are sums over cells (p, u):

    w(S) = Σ D_p·D'_u  over prefixes p that S contains and ends u that S does not reach beyond
    p: 0, or the end of a level, up to `size`      D_p  = e^(b·d_(p+1)) − e^(b·d_p),  D_0 = 1
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
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.profile import Level

Floats = NDArray[np.float64]

MANY = 1024
"""More cells than this are looked at in floats first."""

_STEP = 256
"""Logarithms of factorials are computed exactly at every such number, and added up between."""


class Cells:
    """The sets of `size` among the top `width` candidates.

    Args:
        levels: Depth and number of the top `width` candidates, best first, more than `size` in all.
        size: Of the sets.
        inside: a, the rate at which weight falls with the depth of the worst member.
        outside: b, the rate at which it rises with the depth of the best candidate left out.

    Examples:
        >>> cells = Cells([(0, 1), (5, 2)], 1, Fraction(1), Fraction(0))
        >>> [round(chance, 4) for _, _, chance in cells.chances()]
        [0.9802, 0.0, 0.0198]
    """

    def __init__(
        self, levels: Sequence[Level], size: int, inside: Fraction, outside: Fraction
    ) -> None:
        self._inside, self._outside = inside, outside
        self.size = size
        self.depths = [depth for depth, _ in levels]
        self.ends = list(accumulate(count for _, count in levels))
        self.width = self.ends[-1]
        below = [place for place, end in enumerate(self.ends) if end <= size]
        # each prefix: its length, and the depths before and after its end
        self.prefixes = [0, *(self.ends[place] for place in below)]
        self._before = [None, *(self.depths[place] for place in below)]
        self._after = [self.depths[0], *(self.depths[place + 1] for place in below)]
        beyond = [place for place, end in enumerate(self.ends) if size <= end < self.width]
        self.reaches = [*(self.ends[place] for place in beyond), self.width]
        self._least = [*(self.depths[place] for place in beyond), self.depths[-1]]
        self._next = [*(self.depths[place + 1] for place in beyond), None]
        self._weights: dict[int, tuple[list[arb], list[arb]]] = {}

    def draw(self, coins: Coins) -> tuple[int, int]:
        """Draw a cell by its weight: how long its prefix is, and how far it reaches."""
        row = weighted(self._rows, coins)
        column = weighted(lambda: self._row(row), coins)
        return self.prefixes[row], self.reaches[column]

    def log_total(self) -> arb:
        """Return ln of the weight of all sets, at most as exact as the precision in force."""
        if self._is_first_look():
            return self._look.log_total
        return sum(self._rows(), start=arb(0)).log()

    def log_last(self) -> arb:
        """Return ln Σ_p C(width − p, size − p)·D_p over prefixes shorter than `size`."""
        if self._is_first_look():
            return self._look.log_last
        column = [
            self._choices(p, self.width) * weight
            for p, weight in zip(self.prefixes, self._prefix_weights(), strict=True)
            if p < self.size
        ]
        return sum(column, start=arb(0)).log()

    def chances(self) -> list[tuple[int, int, float]]:
        """Return each cell with its probability: within 2^−40 of itself, or 0 where it is tiny.

        Never released.
        """
        found = []
        if self.number <= MANY:
            with precision(START):
                rows = [self._row(place) for place in range(len(self.prefixes))]
                total = sum((sum(row, start=arb(0)) for row in rows), start=arb(0))
                for p, weights in zip(self.prefixes, rows, strict=True):
                    for u, weight in zip(self.reaches, weights, strict=True):
                        found.append((p, u, float((weight / total).mid())))
            return found
        for place, p in enumerate(self.prefixes):
            row = np.exp(self._log_row(place) - self._look.middle)
            found += [(p, u, float(chance)) for u, chance in zip(self.reaches, row, strict=True)]
        return found

    def hits(self, best: int) -> float:
        """Return how many of the `best` highest ranks a set holds on average; never released."""
        if self.number <= MANY:
            return math.fsum(
                chance * self._held(p, u, best) for p, u, chance in self.chances() if chance
            )
        total = 0.0
        ends = np.array(self.reaches)
        for place, p in enumerate(self.prefixes):
            row = np.exp(self._log_row(place) - self._look.middle)
            among = np.clip(np.minimum(ends, best) - p, 0, None)
            share = np.divide(among, ends - p, where=ends > p, out=np.zeros(len(ends)))
            total += float((row * (min(p, best) + (self.size - p) * share)).sum())
        return total

    @property
    def number(self) -> int:
        """How many cells there are."""
        return len(self.prefixes) * len(self.reaches)

    def _held(self, p: int, u: int, best: int) -> float:
        """How many of the `best` highest ranks a set of a cell holds on average."""
        if u == p:
            return min(p, best)
        return min(p, best) + (self.size - p) * max(0, min(u, best) - p) / (u - p)

    def _is_first_look(self) -> bool:
        """Whether floats are enough: there are many cells, and nobody asks for more."""
        return self.number > MANY and ctx.prec <= START + 32

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
        p, weight = self.prefixes[place], self._prefix_weights()[place]
        return [
            self._choices(p, u) * weight * reach
            for u, reach in zip(self.reaches, self._reach_weights(), strict=True)
        ]

    def _choices(self, p: int, u: int) -> arb:
        """C(u − p, size − p)."""
        return arb.bin_uiui(u - p, min(self.size - p, u - self.size))

    def _prefix_weights(self) -> list[arb]:
        """D_p of each prefix."""
        return self._both_weights()[0]

    def _reach_weights(self) -> list[arb]:
        """D'_u of each reach."""
        return self._both_weights()[1]

    def _both_weights(self) -> tuple[list[arb], list[arb]]:
        """D_p and D'_u at the precision in force, computed once."""
        if ctx.prec not in self._weights:
            prefixes = [
                ball(self._outside * after).exp() * _part(before, after, self._outside)
                for before, after in zip(self._before, self._after, strict=True)
            ]
            reaches = [
                (-ball(self._inside * least)).exp() * _part(following, least, self._inside)
                for least, following in zip(self._least, self._next, strict=True)
            ]
            self._weights[ctx.prec] = prefixes, reaches
        return self._weights[ctx.prec]

    # In floats

    @cached_property
    def _look(self) -> _Look:
        """All rows in floats: logarithms, so that no weight is too large or too small."""
        rows, lasts = [], []
        for place in range(len(self.prefixes)):
            row = self._log_row(place)
            most = float(row.max())
            rows.append(most + math.log(float(np.exp(row - most).sum())))
            lasts.append(float(row[-1]))
        logs = np.array(rows)
        last = np.array(lasts)[np.array(self.prefixes) < self.size] - float(self._logs[1][-1])
        largest = max(
            float(np.abs(part).max(initial=0.0))
            for part in (self._factorials, *map(_finite, self._logs))
        )
        # of the largest exponent, some ten roundings; of exp, log and sums, far less than 2^−36
        error = 2.0**-48 * (largest + 1) + 2.0**-36
        middle = _log_sum(logs)
        return _Look(
            middle,
            error,
            arb(middle, error),
            arb(_log_sum(last), error),
            _balls(np.exp(logs - logs.max()), error),
        )

    def _log_row(self, place: int) -> Floats:
        """ln of the weight of each cell of one prefix."""
        p, table = self.prefixes[place], self._factorials
        prefix, reach = self._logs
        ends = np.array(self.reaches)
        row: Floats = table[ends - p] - table[self.size - p] - table[ends - self.size]
        return row + prefix[place] + reach

    @cached_property
    def _factorials(self) -> Floats:
        return _log_factorials((self.width // (1 << 12) + 1) << 12)

    @cached_property
    def _logs(self) -> tuple[Floats, Floats]:
        """ln D_p and ln D'_u."""
        with precision(START):
            return (
                np.array([_log(weight) for weight in self._prefix_weights()]),
                np.array([_log(weight) for weight in self._reach_weights()]),
            )


class _Look:
    """What floats tell of the weights, with a bound of the relative error of each."""

    def __init__(
        self, middle: float, error: float, log_total: arb, log_last: arb, rows: list[arb]
    ) -> None:
        self.middle, self.error = middle, error
        self.log_total, self.log_last, self.rows = log_total, log_last, rows


def _part(other: int | None, depth: int, rate: Fraction) -> arb:
    """1 − e^(−rate·|other − depth|): what is left of a weight less that at another depth."""
    return arb(1) if other is None else -(-ball(rate * abs(other - depth))).expm1()


@lru_cache(maxsize=8)
def _log_factorials(most: int) -> Floats:
    """ln 0!, ln 1!, … ln most!, each within 2^−50 of itself and 2^−38 of the truth at most.

    Every `_STEP`-th is computed in balls; between them at most `_STEP` logarithms are added up.
    """
    with precision(START):
        exact = [float(arb(number + 1).lgamma().mid()) for number in range(0, most + 1, _STEP)]
    logs = np.log(np.maximum(np.arange(most + 1, dtype=np.float64), 1.0))
    logs[::_STEP] = 0.0
    padded = np.zeros(len(exact) * _STEP)
    padded[: most + 1] = logs
    within = padded.reshape(len(exact), _STEP).cumsum(axis=1)
    return (np.array(exact)[:, None] + within).ravel()[: most + 1]


def _log(weight: arb) -> float:
    return -math.inf if weight == 0 else float(weight.log().mid())


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


def _finite(logs: Floats) -> Floats:
    return logs[np.isfinite(logs)]


def _balls(values: Floats, error: float) -> list[arb]:
    """Numbers of at most 1 with a bound of their relative error, and of what underflows."""
    return [arb(value, value * 2 * error + 1e-300) for value in values.tolist()]
