"""Above threshold: the first of many queries that passes a noisy threshold. The second stage (S) of
the paper.

Query r passes when excess_r > Z_r + G, with G of scale s/ε1 drawn once and Z_r of scale 2s/ε2 fresh
for every query; only the first passing index is released, and ε = ε1 + ε2. Where all queries move
the same way, s/ε2 is enough for Z_r. Queries come in runs with a bound on the excess of all that
are still to come. The search skips ahead exactly: jump by a geometric number at the chance of the
bound, accept where it lands with the ratio of the two chances. A run of 10^12 queries costs a few
draws.

Proof:      docs/proofs/above-threshold.md
Reference:  Dwork et al., STOC 2009; Hardt & Rothblum, FOCS 2010; the paper's Algorithm S; the split
            and the monotone case: Lyu, Su & Li, VLDB 2017
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from flint import arb

from privmax.deferred import np
from privmax.errors import DataError
from privmax.mechanisms.noisy_maximum import noise_law
from privmax.noise.balls import ball
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli, discrete_laplace, jump
from privmax.numbers import Number, flag, open_probability, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, Whole, parameter
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEGLIGIBLE = 1e-18
"""A law leaves out queries that pass less often than this; thousands of them are still far below
its stated error.
"""

HIGHEST = 1 << 53
"""Plain queries are at most this, up or down: balls have no chances beyond."""

BALANCED = Fraction("0.3865")
"""1/(1 + 2^(2/3)): the share of the threshold at which G and Z_r together vary least."""

BALANCED_MONOTONE = Fraction(1, 2)
"""The same for queries that all move the same way."""


@dataclass(frozen=True, repr=False)  # where runs begin and end is private
class Run:
    """Queries start … stop−1.

    Attributes:
        start: The first.
        stop: One past the last.
        excess: That of each over the threshold.
        bound: A bound on the excess of each query and all after it.
    """

    start: int
    stop: int
    excess: Callable[[int], int]
    bound: Callable[[int], int]


def _read_share(name: str, value: Number | None, monotone: bool) -> Fraction:
    best = BALANCED_MONOTONE if monotone else BALANCED
    return best if value is None else open_probability(name, value)


class AboveThreshold(Parameters):
    """Find the first passing query; each excess may move by `sensitivity`.

    Args:
        epsilon: What it costs.
        sensitivity: By how much one record moves an excess at most.
        monotone: Between neighbors all excesses move the same way; False: each in any direction.
        share: Part of epsilon spent on G (default: the one that makes the variance of Z_r + G
            least).

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import AboveThreshold
        >>> AboveThreshold(epsilon=1, monotone=True)
        AboveThreshold(epsilon=1, sensitivity=1, monotone=True, share=0.5)
    """

    epsilon: Exact = parameter(positive)
    sensitivity: Whole = parameter(whole, default=1)
    monotone: Parameter[bool, bool] = parameter(flag, default=False)
    share: Parameter[Number | None, Fraction] = parameter(
        _read_share, default=None, depends_on="monotone"
    )

    def draw(self, queries: Iterable[int | Run], coins: Coins) -> int | None:
        """Return the index of the first query that passes, or None.

        Args:
            queries: By how much each query exceeds the threshold, in whole numbers; a list, or a
                stream that need not end. `LargeMargin`, which has 10^12 of them, gives `Run`s.
            coins: Where the noise comes from, such as `SystemCoins()`.

        Raises:
            DataError: A query is not a whole number, or beyond 2^53.

        Examples:
            >>> from privmax import AboveThreshold
            >>> from privmax.noise.coins import SystemCoins
            >>> AboveThreshold(epsilon=1).draw([-900, -800, 950, 990], SystemCoins())
            2
        """
        shared = discrete_laplace(self.shared_scale(), coins)
        for place, query in enumerate(queries):
            run = _as_run(place, query)
            here = run.start
            while here < run.stop:
                bound = run.bound(here) - shared - 1
                here += jump(partial(self._rate, bound), coins, run.stop - here)
                if here < run.stop:
                    level = (
                        run.excess(here) - shared - 1
                    )  # the query passes iff its noise is at most this
                    if level == bound or bernoulli(partial(self._ratio, level, bound), coins):
                        return here
                    here += 1
        return None

    def law(self, pieces: Sequence[int | tuple[int, int]]) -> tuple[NDArray[np.float64], float]:
        """Return the probability of stopping in each piece, and of never stopping. Never released.

        Args:
            pieces: The excess of each query; or (number of queries, their common excess).

        Raises:
            DataError: A query is not a whole number, or beyond 2^53.

        Examples:
            >>> from privmax import AboveThreshold
            >>> stops, never = AboveThreshold(epsilon=1).law([-900, -800, 950, 990])
            >>> round(float(stops[2]), 6)
            1.0
        """
        offsets, chances = noise_law(self.shared_scale())
        runs = [one if isinstance(one, tuple) else (1, _read_query(one)) for one in pieces]
        return self.stopping(runs, int(-offsets[-1]), chances[::-1])

    def stopping(
        self, pieces: Sequence[tuple[int, int]], first: int, chances: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Return the same where another shared number takes the place of −G.

        Args:
            pieces: (number of queries, their common excess) of each.
            first: The number is first, first+1, …
            chances: With these probabilities.
        """
        if not pieces:
            return np.empty(0), float(chances.sum())
        min_excess = min(excess for _, excess in pieces)
        max_excess = max(excess for _, excess in pieces)
        log_fail = _log_fail(
            self.query_scale(), first + min_excess - 1, first + max_excess - 1 + len(chances) - 1
        )
        # P(Z ≤ bound) ≤ e^(x·bound), so a query of excess e passes with probability at most
        # e^(x(e−1))·E[e^(x·shared)].
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
        """Return what it costs."""
        return Privacy(self.epsilon)

    def shared_scale(self) -> Fraction:
        """Return the scale of G, drawn once."""
        return self.sensitivity / (self.share * self.epsilon)

    def query_scale(self) -> Fraction:
        """Return the scale of every Z_r."""
        return (1 if self.monotone else 2) * self.sensitivity / ((1 - self.share) * self.epsilon)

    def _chance(self, bound: int) -> arb:
        """P(Z ≤ bound) for the noise Z of one query."""
        return tail(self.query_scale(), -bound)

    def _ratio(self, level: int, bound: int) -> arb:
        return self._chance(level) / self._chance(bound)

    def _rate(self, bound: int) -> arb:
        """−ln P(Z > bound), without cancellation on either side."""
        if bound < 0:
            return -(-self._chance(bound)).log1p()
        return -tail(self.query_scale(), bound + 1).log()


def _as_run(place: int, query: int | Run) -> Run:
    """A run of one for a plain number."""
    if isinstance(query, Run):
        return query
    excess = _read_query(query)
    return Run(place, place + 1, lambda _: excess, lambda _: excess)


def _read_query(query: object) -> int:
    if isinstance(query, bool) or not isinstance(query, int | np.integer):
        raise DataError("Every query must be a whole number: its excess over the threshold.")
    if abs(int(query)) > HIGHEST:
        raise DataError("Every query must be between -2^53 and 2^53.")
    return int(query)


def _log_fail(scale: Fraction, low: int, high: int) -> NDArray[np.float64]:
    """ln P(Z > bound) for bound = low … high."""
    x = float(1 / scale)
    bounds = np.arange(low, high + 1)
    below = np.exp(x * np.minimum(bounds, -1)) / (1 + np.exp(-x))  # P(Z ≤ bound) for bound < 0
    fail: NDArray[np.float64] = np.where(
        bounds < 0, np.log1p(-below), -x * (bounds + 1) - np.log1p(np.exp(-x))
    )
    return fail


def tail(scale: Fraction, k: int) -> arb:
    """Return P(Z ≥ k) for discrete Laplace Z.

    It is e^(−k/scale) / (1 + e^(−1/scale)) for k ≥ 1, and 1 − P(Z ≥ 1 − k) otherwise.

    Examples:
        >>> (tail(Fraction(1), 1) + tail(Fraction(1), 0)).contains(1)
        True
    """
    if k < 1:
        return 1 - tail(scale, 1 - k)
    return (-ball(k / scale)).exp() / (1 + (-ball(1 / scale)).exp())
