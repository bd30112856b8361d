"""Above threshold: the first of many queries that passes a noisy threshold. The second stage (S) of the paper.

Query r passes when excess_r > Z_r + G, with G of scale 2/ε drawn once and Z_r of scale 4/ε fresh for every query, and
only the first passing index is released. Queries come in runs with a bound on the excess of all that are still to come.
The search skips ahead exactly: jump by a geometric number at the chance of the bound, accept where it lands with the
ratio of the two chances. A run of 10^12 queries costs a few draws.

Proof:      docs/proofs/above-threshold.md
Reference:  Dwork et al., STOC 2009; Hardt & Rothblum, FOCS 2010; the paper's Algorithm S
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.mechanisms.noisy_maximum import noise_law
from privmax.noise.balls import ball
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli, discrete_laplace, jump
from privmax.privacy import Described, Number, Privacy, positive, whole

NEGLIGIBLE = 1e-18
"""A law leaves out queries that pass less often than this; thousands of them are still far below its stated error."""


@dataclass(frozen=True, repr=False)  # where runs begin and end is private
class Run:
    """Queries start … stop−1: the `excess` of each over the threshold, and a `bound` on that of it and all after it."""

    start: int
    stop: int
    excess: Callable[[int], int]
    bound: Callable[[int], int]


@dataclass(frozen=True, init=False, repr=False)
class AboveThreshold(Described):
    """Find the first passing query at a price of `epsilon`; each excess may move by `sensitivity` either way."""

    epsilon: Fraction
    sensitivity: int

    def __init__(self, *, epsilon: Number, sensitivity: int = 1) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "sensitivity", whole("sensitivity", sensitivity))

    def draw(self, runs: Iterable[Run], coins: Coins) -> int | None:
        """The index of the first query that passes, or None."""
        shared = discrete_laplace(self.shared_scale(), coins)
        for run in runs:
            here = run.start
            while here < run.stop:
                bound = run.bound(here) - shared - 1
                here += jump(partial(self._rate, bound), coins, run.stop - here)
                if here < run.stop:
                    level = run.excess(here) - shared - 1  # the query passes iff its noise is at most this
                    if level == bound or bernoulli(partial(self._ratio, level, bound), coins):
                        return here
                    here += 1
        return None

    def law(self, pieces: Sequence[tuple[int, int]]) -> tuple[NDArray[np.float64], float]:
        """Probability of stopping in each piece, and of never stopping. Never released.

        A piece is (number of queries, their common excess).
        """
        offsets, chances = noise_law(self.shared_scale())
        return self.stopping(pieces, int(-offsets[-1]), chances[::-1])

    def stopping(
        self, pieces: Sequence[tuple[int, int]], first: int, chances: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """The same where a shared number first, first+1, … (of probability `chances`) takes the place of −G."""
        if not pieces:
            return np.empty(0), float(chances.sum())
        min_excess = min(excess for _, excess in pieces)
        max_excess = max(excess for _, excess in pieces)
        log_fail = _log_fail(self.query_scale(), first + min_excess - 1, first + max_excess - 1 + len(chances) - 1)
        # P(Z ≤ bound) ≤ e^(x·bound), so a query of excess e passes with probability at most e^(x(e−1))·E[e^(x·shared)].
        x = float(1 / self.query_scale())
        reach = float(chances @ np.exp(x * np.arange(first, first + len(chances))))
        alive = np.zeros(len(chances))  # ln of the probability of having come this far
        stops = np.zeros(len(pieces))
        for index, (count, excess) in enumerate(pieces):
            if float(count) * reach * math.exp(min(0.0, x * (excess - 1))) < NEGLIGIBLE:
                continue
            start = excess - min_excess
            step = float(count) * log_fail[start : start + len(chances)]
            stops[index] = chances @ (np.exp(alive) * -np.expm1(step))
            alive += step
        return stops, float(chances @ np.exp(alive))

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def shared_scale(self) -> Fraction:
        """Scale of G, drawn once."""
        return 2 * self.sensitivity / self.epsilon

    def query_scale(self) -> Fraction:
        """Scale of every Z_r."""
        return 4 * self.sensitivity / self.epsilon

    def _chance(self, bound: int) -> arb:
        """P(Z ≤ bound) for the noise Z of one query."""
        return _tail(self.query_scale(), -bound) if bound < 0 else 1 - _tail(self.query_scale(), bound + 1)

    def _ratio(self, level: int, bound: int) -> arb:
        return self._chance(level) / self._chance(bound)

    def _rate(self, bound: int) -> arb:
        """−ln P(Z > bound), without cancellation on either side."""
        if bound < 0:
            return -(-self._chance(bound)).log1p()
        return -_tail(self.query_scale(), bound + 1).log()


def _log_fail(scale: Fraction, low: int, high: int) -> NDArray[np.float64]:
    """ln P(Z > bound) for bound = low … high."""
    x = float(1 / scale)
    bounds = np.arange(low, high + 1)
    below = np.exp(x * np.minimum(bounds, -1)) / (1 + np.exp(-x))  # P(Z ≤ bound) for bound < 0
    fail: NDArray[np.float64] = np.where(bounds < 0, np.log1p(-below), -x * (bounds + 1) - np.log1p(np.exp(-x)))
    return fail


def _tail(scale: Fraction, k: int) -> arb:
    """P(Z ≥ k) = e^(−k/scale) / (1 + e^(−1/scale)) for k ≥ 1."""
    return (-ball(k / scale)).exp() / (1 + (-ball(1 / scale)).exp())
