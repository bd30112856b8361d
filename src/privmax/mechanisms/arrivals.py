"""The average number of candidates drawn by weight until k of them, or a guard, have come.

Candidates drawn by weight without replacement come in the order of exponential clocks: i rings at
a time T_i of rate w_i, the guard at T_g of rate g, and who rings among the first k and before the
guard is drawn. With N(t) the number that have rung,

    E[drawn from A] = ∫ Σ_{i in A} w_i·P(i has not rung, N(t) < k)·e^(−g·t) dt

The integral is a sum over equal steps of y = ln t, and N(t) a sum of independent binomial numbers,
one for each block of equal candidates. Floats; for planning only: no draw depends on it.

Proof:      docs/proofs/peeling.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from privmax.deferred import np
from privmax.profile import Level, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

ERROR = 1e-6
"""Of an expected number, for every candidate asked for: far above what happens."""

_TINY = 1e-15
"""The probability below which something is left out."""

_LOG_TINY = math.log(_TINY)

_ROWS = 48
"""So many times are looked at together."""


def expected_draws(
    blocks: Sequence[Level], rate: Fraction, k: int, *, guard: float, first: int
) -> tuple[float, float]:
    """Return how many candidates are drawn on average, and how many of them from the first blocks.

    Args:
        blocks: Depth and number of those that can be drawn, best first.
        rate: At which weight falls with depth.
        k: How many are drawn at most.
        guard: ln of the weight that ends it, where a candidate at depth 0 has 0; −∞: none.
        first: How many of the blocks are asked for.

    Examples:
        >>> size, hits = expected_draws(
        ...     [(0, 1), (5, 1)], Fraction(1), 1, guard=-math.inf, first=1
        ... )
        >>> round(size, 6), round(hits, 6)  # 1/(1 + e^−5)
        (1.0, 0.993307)
    """
    if not blocks or guard == math.inf:
        return 0.0, 0.0
    race = _Race(
        np.array([-float(rate * depth) for depth, _ in blocks]),
        np.array([float(number) for _, number in blocks]),
    )
    step = min(0.25, 0.7 / math.sqrt(k))
    size = hits = 0.0
    start = race.start()
    while True:
        times = start + step * np.arange(_ROWS)
        here = race.during(float(times[0]), float(times[-1]))
        sure = int(race.numbers[: here.start].sum())
        silent = np.exp(-np.exp(np.minimum(guard + times, 700.0)))
        if sure >= k or silent[0] < _TINY or here.start == len(blocks):
            return min(size, float(k)), min(hits, float(k))
        rung = np.exp(race.logs[here] + times[:, None])  # w_b·t
        flow = _flow(rung, race.numbers[here], k - sure, max(0, first - here.start))
        size += step * float(flow[:, 0] @ silent)
        hits += step * float(flow[:, 1] @ silent)
        start = float(times[-1]) + step


def expected_peeling(
    window: Window,
    blocks: Sequence[Level],
    rate: Fraction,
    k: int,
    best: int,
    *,
    guard: float = -math.inf,
) -> tuple[float, float]:
    """Return how many candidates `peel` draws on average, and how many of the `best` highest.

    Args:
        window: The clipped profile.
        blocks: The first of `window.blocks()`, perhaps with the last cut short; those that no one
            has seen end the list.
        rate: At which weight falls with depth.
        k: How many are drawn at most.
        best: At most k. Candidates tied with the last of those count as one of them.
        guard: ln of its weight; −∞: none.

    Examples:
        >>> from privmax import Profile
        >>> window = Profile([(9, 2)], universe=2).window(5)
        >>> size, hits = expected_peeling(window, [(0, 2)], Fraction(1), 2, 2)
        >>> round(size, 6), round(hits, 6)
        (2.0, 2.0)
    """
    seen = [
        level
        for level, (_, everybody) in zip(blocks, window.blocks(), strict=False)
        if everybody is not None
    ]
    for depth, number in blocks[len(seen) :]:
        guard = float(np.logaddexp(guard, math.log(number) - float(rate * depth)))
    first = sum(depth <= window.depth(best) for depth, _ in seen)
    return expected_draws(seen, rate, k, guard=guard, first=first)


class _Race(NamedTuple):
    """Logarithms of weights, highest first, and how many candidates have each."""

    logs: Floats
    numbers: Floats

    def start(self) -> float:
        """ln of a time before which no candidate rings."""
        return _LOG_TINY - float((self.logs + np.log(self.numbers)).max())

    def during(self, begin: float, end: float) -> slice:
        """The blocks of which a candidate may ring then; all before have, and none behind."""
        is_over = np.exp(np.minimum(self.logs + begin, 9.0)) > np.log(self.numbers) - _LOG_TINY
        is_near = self.logs + np.log(self.numbers) + end > _LOG_TINY
        first = int(np.argmin(is_over)) if not is_over.all() else len(self.logs)
        last = len(self.logs) - int(np.argmax(is_near[::-1])) if is_near.any() else 0
        return slice(first, max(first, last))


def _chance_fewer(rung: Floats, numbers: Floats, k: int) -> Floats:
    """Whether fewer than k have rung: 1 or 0 where that is all but certain, else not a number.

    By Bernstein's inequality for a sum of independent numbers of 0 or 1.
    """
    chance = -np.expm1(-rung)
    mean = chance @ numbers
    spread = (chance * np.exp(-rung)) @ numbers
    away = np.abs(k - 0.5 - mean)
    is_clear = away**2 > -2 * _LOG_TINY * (spread + away / 3)
    chances: Floats = np.where(is_clear, np.where(mean < k, 1.0, 0.0), np.nan)
    return chances


def _flow(rung: Floats, numbers: Floats, k: int, first: int) -> Floats:
    """For each time: Σ w_i·t·P(i has not rung, N < k) over all candidates, and over the first."""
    coming = numbers * rung * np.exp(-rung)
    fewer = _chance_fewer(rung, numbers, k)
    flow = np.stack([coming.sum(axis=1), coming[:, :first].sum(axis=1)], axis=1)
    flow[fewer == 0] = 0.0
    unclear = np.flatnonzero(np.isnan(fewer))
    if len(unclear):
        flow[unclear] = _count(rung[unclear], numbers, k, first)
    return flow


def _count(rung: Floats, numbers: Floats, k: int, first: int) -> Floats:
    """The same where the number of those that have rung must be looked at, block by block."""
    laws = np.zeros((3, len(rung), 1))
    laws[0] = 1.0  # P(N = n); and E[rates of who has not rung; N = n], of all and of the first
    low = 0  # n begins there
    for block, number in enumerate(numbers):
        odds = _binomial(int(number), rung[:, block], k - low)
        left = odds * (number - np.arange(odds.shape[1])) * rung[:, block, None]
        more = _add(laws[:1], left, k - low)
        laws = _add(laws, odds, k - low)
        laws[1 : 3 if block < first else 2] += more
        is_seen = np.flatnonzero(laws[:2].max(axis=(0, 1)) > _TINY**1.2)
        if not len(is_seen):
            break
        laws = laws[:, :, is_seen[0] : is_seen[-1] + 1]
        low += int(is_seen[0])
    counts: Floats = laws[1:].sum(axis=2).T
    return counts


def _binomial(number: int, rung: Floats, bound: int) -> Floats:
    """P(n of a block have rung) for n below a bound, as far as any is likely; a row for each
    time.
    """
    mean = number * float(-np.expm1(-rung.max()))
    most = min(number, bound - 1, math.ceil(mean + 12 * math.sqrt(mean) + 40))
    n = np.arange(most + 1)
    ratios = [math.log((number - one) / (one + 1)) for one in range(most)]
    ways = np.cumsum([0.0, *ratios])  # the logarithms of factorials would cancel in large numbers
    logs = np.log(np.maximum(-np.expm1(-rung), 1e-300))[:, None] * n
    chances: Floats = np.exp(ways + logs - rung[:, None] * (float(number) - n))
    likely = np.flatnonzero(chances.max(axis=0) > _TINY**1.2)
    return chances[:, : likely[-1] + 1] if len(likely) else chances[:, :1]


def _add(laws: Floats, more: Floats, bound: int) -> Floats:
    """The law of a sum, from those of its parts, below a bound; a row for each time."""
    width = laws.shape[2]
    total = np.zeros((*laws.shape[:2], min(width + more.shape[1] - 1, bound)))
    for n in range(more.shape[1]):
        end = min(n + width, bound)
        if end > n:
            total[:, :, n:end] += laws[:, :, : end - n] * more[:, n, None]
    return total
