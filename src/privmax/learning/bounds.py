"""Bounds from theory for a private learner over a finite class, with every constant.

One row is one individual, scores are correct examples, and the error of a hypothesis is the
probability that it is wrong about an example drawn like the rows. What may be lost is rounded up.
Shells, and the bound that reads counts, are for public or synthetic data: they are functions of the
data without any noise.

Proof:      docs/proofs/shells.md
Reference:  Kasiviswanathan et al., FOCS 2008; Chaudhuri, Hsu & Song, NeurIPS 2014 (corrected);
            Langford & McAllester, COLT 2000, whose computable bound is derived again
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.mechanisms.contract import CLIP_LOSS, Mechanism
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.limited_domain import LimitedDomain
from privmax.mechanisms.nested_margin import FOURFOLD, NESTING, NestedMargin
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.numbers import Number, nonnegative, open_probability, positive, probability, whole
from privmax.planning.theory import (
    INTEGER_SCORES,
    SLACK,
    SUCCESS,
    add_slack,
    exponential_error,
    guard_error,
    guard_gap,
    large_margin_error,
    large_margin_gap,
    natural_log,
    permute_and_flip_error,
    times_log,
)
from privmax.privacy import ADD_REMOVE, REPLACE, Neighbors, drift, relation
from privmax.profile import Level

LEAST_FAILURE = 2 * CLIP_LOSS
"""Half of a smaller η would not cover what the clip of a mechanism may lose."""


def uniform_deviation(
    *, n: int, hypotheses: int | None = None, dimension: int | None = None, failure: Number
) -> float:
    """Bound how far an observed error of the class is from the true one, except with η.

    With |H| hypotheses it is √(ln(2|H|/η)/(2n)), a union bound. With VC dimension d it is
    1/n + √((n+1)·ln(4·(2en/d)^d/η))/n, whatever |H| is. Given both, the smaller one.

    Args:
        n: The number of examples.
        hypotheses: How many hypotheses there are; None if there is no bound on that.
        dimension: The VC dimension of the class, or more; None: not known.
        failure: η.

    Raises:
        ParameterError: A number is out of bounds, or neither size nor dimension is given.

    Examples:
        >>> round(uniform_deviation(n=1000, hypotheses=1000, failure="0.05"), 4)
        0.0728
        >>> round(uniform_deviation(n=10**5, hypotheses=2**5000, failure="0.05"), 4)
        0.1317
        >>> round(uniform_deviation(n=10**5, dimension=10, failure="0.05"), 4)
        0.0337
    """
    n, failure = _read_examples(n), open_probability("failure", failure)
    bounds = []
    if hypotheses is not None:
        size = whole("hypotheses", hypotheses)
        bounds.append(math.sqrt(natural_log(2 * size / failure) / (2 * n)))
    if dimension is not None:
        splits = _log_splits(2 * n, whole("dimension", dimension, 0))
        bounds.append(1 / n + math.sqrt((n + 1) * (natural_log(4 / failure) + splits)) / n)
    if not bounds:
        remedy = "Give the number of hypotheses, the VC dimension, or both."
        raise ParameterError.required("hypotheses", "a bound needs it", remedy)
    return add_slack(min(bounds))


_MOST_EXAMPLES = 10**300
"""Examples that a bound may be for: floats end a little above."""


def _read_examples(n: object) -> int:
    number = whole("n", n)
    if number > _MOST_EXAMPLES:
        raise ParameterError(
            "n", n, "it must be at most 10^300, where floats end", "Use a smaller number."
        )
    return number


def _log_splits(points: int, dimension: int) -> float:
    """ln of the number of ways in which a class can split so many points, at most (Sauer–Shelah).

    That is (e·points/d)^d for d ≤ points, and all 2^points beyond.
    """
    if dimension >= points:  # which also keeps the dimension below what floats hold
        return points * math.log(2)
    return dimension * (1 + natural_log(Fraction(points, dimension))) if dimension else 0.0


def exponential_excess(
    *,
    n: int,
    hypotheses: int,
    epsilon: Number,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
    dimension: int | None = None,
) -> float:
    """Bound how much the error of the exponential learner exceeds the least of the class.

    The bound is 2u + (c/(εn))·ln(2·size/η), for a class of that size.

    η is split evenly between the sample (u is that of η/2) and the draw. Above 1 it says nothing.

    Args:
        n: The number of examples.
        hypotheses: How many hypotheses there are.
        epsilon: What the draw costs.
        success: With what probability the bound holds.
        neighbors: Which data sets are neighbors.
        dimension: The VC dimension of the class, or more, which may make u smaller.

    Examples:
        >>> round(exponential_excess(n=100_000, hypotheses=1000, epsilon=1), 4)
        0.0151
        >>> round(exponential_excess(n=100_000, hypotheses=2**5000, dimension=10, epsilon=1), 4)
        0.1023
    """
    half = _half(success)
    size = whole("hypotheses", hypotheses)
    sampling = 2 * uniform_deviation(n=n, hypotheses=size, dimension=dimension, failure=half)
    drawing = exponential_error(
        epsilon=epsilon, candidates=size, success=1 - half, neighbors=neighbors
    )
    return add_slack(sampling + drawing / n)


def class_excess(
    *,
    n: int,
    hypotheses: int,
    mechanism: Mechanism,
    success: Number = SUCCESS,
    dimension: int | None = None,
) -> float:
    """Bound by how much the error of what a mechanism draws exceeds the least, whatever the errors.

    That is 2u + error/n, and 1 where nothing is known: another mechanism, or one that may release
    nothing.

    Examples:
        >>> from privmax import PermuteAndFlip
        >>> round(class_excess(n=10**5, hypotheses=1000, mechanism=PermuteAndFlip(epsilon=1)), 4)
        0.0151
    """
    half = _half(success)
    sampling = 2 * uniform_deviation(n=n, hypotheses=hypotheses, dimension=dimension, failure=half)
    error = _whole_class(mechanism, whole("hypotheses", hypotheses), 1 - half)
    return 1.0 if error is None else min(1.0, add_slack(sampling + error / n))


def nested_gap(
    *,
    epsilon: Number,
    delta: Number,
    rank: int,
    ranks: Sequence[int] = FOURFOLD,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
) -> float:
    """Return the gap at `rank` with which `nested_error` is kept to.

    It is (c/ε̂)·ln((2/η)·max(rank·e^ε̂·J/δ, (ℓ_J − rank)/ρ)).

    Args:
        epsilon: That of `NestedMargin`; it draws with ε̂ = 63/64 of it.
        rank: One of its ranks. In a closed universe all of them must be below its size.

    Raises:
        ParameterError: The rank is not one of the ranks, or another argument is out of bounds.

    Examples:
        >>> round(nested_gap(epsilon=1, delta=1e-6, rank=1), 2)
        22.06
    """
    paid, failure, c = positive("epsilon", epsilon), _failure(success), drift(relation(neighbors))
    each = open_probability("delta", delta) / len(ranks)
    if rank not in ranks:
        raise ParameterError(
            "rank", rank, "it must be one of the ranks", "Give the ranks of the mechanism."
        )
    drawn = (1 - NESTING) * paid
    slipping = guard_gap(epsilon=drawn, delta=each, rank=rank, success=success, neighbors=neighbors)
    if rank == ranks[-1]:
        return slipping
    room = Fraction(-math.expm1(-min(NESTING * paid, Fraction(1)))) * (1 - SLACK)  # ρ, or less
    return max(slipping, add_slack(times_log(c / drawn, 2 * (ranks[-1] - rank) / (room * failure))))


def nested_error(
    *, epsilon: Number, rank: int, success: Number = SUCCESS, neighbors: str = ADD_REMOVE
) -> float:
    """Bound how far below the top `NestedMargin` draws, given `nested_gap`.

    It draws an item, and within (c/ε̂)·ln(2·rank/η) of the top.

    Examples:
        >>> round(nested_error(epsilon=1, rank=4), 2)
        5.16
    """
    drawn = (1 - NESTING) * positive("epsilon", epsilon)
    return guard_error(epsilon=drawn, rank=rank, success=success, neighbors=neighbors)


class Shells:
    """Numbers of hypotheses by excess error over the best of the class: |H(t)| is `within(t·u)`.

    Args:
        blocks: True errors, each with the number of hypotheses that have it: synthetic or public
            ones, never those observed on private data.
        dimension: The VC dimension of the class, or more, which may make u smaller; None: u is the
            union bound over the class.

    Raises:
        ParameterError: There is no block, or an error is no probability.

    Examples:
        >>> shells = Shells([("0.1", 1), ("0.4", 10**6)])
        >>> shells.hypotheses, shells.within("0.1"), shells.within("0.3")
        (1000001, 1, 1000001)
    """

    def __init__(
        self, blocks: Iterable[tuple[Number, int]], *, dimension: int | None = None
    ) -> None:
        tally: Counter[Fraction] = Counter()
        for error, count in blocks:
            tally[probability("blocks", error)] += whole("blocks", count)
        if not tally:
            raise ParameterError(
                "blocks", blocks, "there must be at least one", 'For example [("0.1", 1)].'
            )
        errors = sorted(tally)
        distances, upto = (
            [error - errors[0] for error in errors],
            list(accumulate(tally[error] for error in errors)),
        )
        self.hypotheses, self.dimension = upto[-1], _read_dimension(dimension)
        self._within: Callable[[Fraction], int] = lambda distance: upto[
            bisect_right(distances, distance) - 1
        ]

    @classmethod
    def of(cls, errors: Iterable[Number], *, dimension: int | None = None) -> Shells:
        """From the true error of each hypothesis."""
        return cls(Counter(errors).items(), dimension=dimension)

    @classmethod
    def from_function(
        cls,
        within: Callable[[Fraction], int],
        hypotheses: int,
        *,
        dimension: int | None = None,
    ) -> Shells:
        """Make shells from a function of the distance to the best error.

        It says how many of the class err at most so much more than the best, and must not fall.
        """
        shells = cls.__new__(cls)
        shells.hypotheses, shells._within = whole("hypotheses", hypotheses), within
        shells.dimension = _read_dimension(dimension)
        return shells

    def deviation(self, n: int, failure: Number) -> float:
        """Return u, how far observed errors are from true ones.

        A larger distance has a probability of at most `failure`.
        """
        return uniform_deviation(
            n=n, hypotheses=self.hypotheses, dimension=self.dimension, failure=failure
        )

    def within(self, distance: Number) -> int:
        """Return the number of hypotheses whose error exceeds the least by at most `distance`."""
        number = self._within(nonnegative("distance", distance))
        if not 1 <= number <= self.hypotheses:
            raise ParameterError(
                "within",
                number,
                f"it must be from 1 to {self.hypotheses}, the number of hypotheses",
                "Count the best.",
            )
        return number


def _read_dimension(dimension: int | None) -> int | None:
    return None if dimension is None else whole("dimension", dimension, 0)


@dataclass(frozen=True)
class Excess:
    """By how much the error of what is drawn exceeds the least of the class, at most.

    Args:
        excess: The bound.
        by: What gave it: "shell"; "class", which holds whatever the errors are; or "nothing" (the
            bound is then 1).
        index: T*, where a shell did.
        near: |H(t*+2)|, or the whole class.

    Examples:
        >>> from privmax import NestedMargin
        >>> shells = Shells([("0.1", 1), ("0.4", 10**6)])
        >>> found = shell_excess(shells, n=10**5, mechanism=NestedMargin(epsilon=1, delta=1e-6))
        >>> found.by, found.near
        ('shell', 1)
    """

    excess: float
    by: Literal["shell", "class", "nothing"]
    index: int | None
    near: int


def shell_index(
    shells: Shells, *, n: int, mechanism: Mechanism, success: Number = SUCCESS
) -> int | None:
    """Return t*(n), the least t ≥ 1 at which the gap between shells is large enough.

    That is where n·t·u reaches the gap that the mechanism's theorem asks for at ℓ = |H(t+2)|.

    None where H(t+2) is the whole class before that: then no hypothesis is left to have a gap to.

    Examples:
        >>> from privmax import NestedMargin
        >>> shells = Shells([("0.1", 1), ("0.4", 10**6)])
        >>> shell_index(shells, n=10**5, mechanism=NestedMargin(epsilon=1, delta=1e-6))
        1
    """
    half = _half(success)
    u = Fraction(shells.deviation(n, half))
    t = 1
    while (near := shells.within((t + 2) * u)) < shells.hypotheses:
        promise = _promise(mechanism, near, shells.hypotheses, 1 - half)
        if promise is None:
            return None
        least = math.ceil(Fraction(promise[0]) / (n * u))
        if least <= t:
            return t
        t = least  # the gap asked for does not fall with t, so nothing between can do
    return None


def shell_excess(
    shells: Shells, *, n: int, mechanism: Mechanism, success: Number = SUCCESS
) -> Excess:
    """Bound the excess error by the shells of the class, or by all of it.

    It is 2u + error/n, the error being that of the mechanism's theorem at ℓ = |H(t*+2)|, or that of
    the whole class.

    The lesser of the two, where both are there. η is split evenly between the sample and the draw.
    `mechanism` is an Exponential, PermuteAndFlip, LimitedDomain, NestedMargin or LargeMargin (the
    paper's). With the VC dimension of the class, u does not grow with the number of hypotheses, and
    neither does the bound of a mechanism with δ.

    Examples:
        >>> from privmax import Exponential, LargeMargin
        >>> shells = Shells([("0.1", 1), ("0.4", 10**6)])
        >>> round(shell_excess(shells, n=10**5, mechanism=Exponential(epsilon=1)).excess, 3)
        0.019
        >>> huge = Shells([("0.1", 1), ("0.4", 2**5000)], dimension=10)
        >>> paper = LargeMargin(epsilon=1, delta=1e-6)
        >>> round(shell_excess(huge, n=10**5, mechanism=paper).excess, 3)
        0.068
    """
    half = _half(success)
    sampling = 2 * shells.deviation(n, half)
    bound = class_excess(
        n=n,
        hypotheses=shells.hypotheses,
        mechanism=mechanism,
        success=success,
        dimension=shells.dimension,
    )
    best = Excess(bound, "class" if bound < 1 else "nothing", None, shells.hypotheses)
    t = shell_index(shells, n=n, mechanism=mechanism, success=success)
    if t is not None:
        near = shells.within((t + 2) * Fraction(sampling) / 2)
        promise = _promise(mechanism, near, shells.hypotheses, 1 - half)
        assert promise is not None, "an index is found only where there is one"
        if (bound := add_slack(sampling + promise[1] / n)) < best.excess:
            best = Excess(bound, "shell", t, near)
    return best


def _promise(
    mechanism: Mechanism, near: int, hypotheses: int, success: Fraction
) -> tuple[float, float] | None:
    """Return (gap, error), or None where nothing is known.

    If gap_near exceeds the first, the draw stays within the second of the top.

    The gap does not fall as `near` grows.
    """
    if type(mechanism) is LargeMargin:  # the truncated one asks for more
        gap = large_margin_gap(
            epsilon=mechanism.epsilon, delta=mechanism.delta, near=near, success=success
        )
        return gap + INTEGER_SCORES, large_margin_error(
            epsilon=mechanism.epsilon, near=near, success=success
        )
    epsilon, neighbors, reach = _drawing(mechanism, hypotheses)
    if reach == hypotheses:
        gap = exponential_error(
            epsilon=epsilon,
            candidates=hypotheses,
            success=1 - (1 - success) / 2,
            neighbors=neighbors,
        )
        return gap, guard_error(epsilon=epsilon, rank=near, success=success, neighbors=neighbors)
    if near > reach:
        return None
    delta = mechanism.privacy().delta
    if isinstance(mechanism, LimitedDomain):
        gap = guard_gap(
            epsilon=epsilon, delta=delta, rank=reach, success=success, neighbors=neighbors
        )
        return gap, guard_error(epsilon=epsilon, rank=reach, success=success, neighbors=neighbors)
    assert isinstance(mechanism, NestedMargin), "no other mechanism draws among a part of the class"
    total, ranks = mechanism.epsilon, mechanism.ranks
    gap, rank = min(
        (
            nested_gap(
                epsilon=total,
                delta=delta,
                rank=r,
                ranks=ranks,
                success=success,
                neighbors=neighbors,
            ),
            r,
        )
        for r in ranks
        if r >= near
    )
    return gap, nested_error(epsilon=total, rank=rank, success=success, neighbors=neighbors)


def _whole_class(mechanism: Mechanism, hypotheses: int, success: Fraction) -> float | None:
    """Return how far from the top a draw can be whatever the data.

    None where nothing may be drawn.
    """
    if type(mechanism) is LargeMargin:
        return exponential_error(
            epsilon=mechanism.epsilon / 3, candidates=hypotheses, success=success, neighbors=REPLACE
        )
    epsilon, neighbors, reach = _drawing(mechanism, hypotheses)
    if reach < hypotheses:
        return None
    error = permute_and_flip_error if isinstance(mechanism, PermuteAndFlip) else exponential_error
    return error(epsilon=epsilon, candidates=hypotheses, success=success, neighbors=neighbors)


def _drawing(mechanism: Mechanism, hypotheses: int) -> tuple[Fraction, Neighbors, int]:
    """Return at what epsilon, under which relation and among how many a mechanism draws."""
    if mechanism.k != 1:
        raise ParameterError(
            "mechanism", mechanism, "it must draw one hypothesis", "Make it with a k of 1."
        )
    if isinstance(mechanism, (Exponential, PermuteAndFlip)):
        return mechanism.epsilon, mechanism.neighbors, hypotheses
    if isinstance(mechanism, (LimitedDomain, NestedMargin)) and mechanism.growth is None:
        if isinstance(mechanism, LimitedDomain):
            return mechanism.epsilon, mechanism.neighbors, min(mechanism.rank, hypotheses)
        return (
            (1 - NESTING) * mechanism.epsilon,
            mechanism.neighbors,
            min(mechanism.ranks[-1], hypotheses),
        )
    raise ParameterError(
        "mechanism", mechanism, "there is no such theorem for it",
        "Use Exponential, PermuteAndFlip, LargeMargin, LimitedDomain or NestedMargin, without "
        "growth.",
    )  # fmt: skip


def occam_error_bound(*, n: int, correct: int, hypotheses: int, failure: Number) -> float:
    """Bound the true error of all of the class at once, but for a chance of η.

    It is the largest p with n·KL(observed‖p) ≤ ln(size/η), for a class of that size.

    This is the one for hypotheses with `correct` of n examples right. It reads private counts: for
    public or synthetic data only.

    Examples:
        >>> round(occam_error_bound(n=1000, correct=950, hypotheses=100, failure="0.05"), 4)
        0.0815
    """
    n, hypotheses, failure = (
        whole("n", n),
        whole("hypotheses", hypotheses),
        open_probability("failure", failure),
    )
    mistakes = n - _check_correct(correct, n)
    return _largest_error(
        mistakes,
        n,
        Fraction(mistakes, n),
        Fraction(1),
        add_slack(natural_log(hypotheses / failure)),
    )


def shell_error_bound(
    levels: Iterable[Level], *, n: int, failure: Number, correct: int | None = None
) -> float:
    """Bound the true errors of all hypotheses at once by shells, but for a chance of η.

    Few hypotheses near p make p cheap to rule out.

    It reads private counts without noise: FOR PUBLIC OR SYNTHETIC DATA ONLY. Each value of p is
    charged for the hypotheses observed near p, where `occam_error_bound` charges it for the whole
    class.

    Args:
        levels: (correct examples, how many hypotheses) for every hypothesis of the class.
        correct: The bound is for those with so many right; by default the best.

    Raises:
        DataError: The levels cannot be those of a class on n examples.

    Examples:
        >>> round(shell_error_bound([(950, 1), (500, 10**6)], n=1000, failure="0.05"), 4)
        0.0882
    """
    n, failure = whole("n", n), open_probability("failure", failure)
    mistakes, upto = _count_mistakes(levels, n)
    mine = int(mistakes[0]) if correct is None else n - _check_correct(correct, n)
    if mine not in mistakes:
        raise DataError("No hypothesis has that many correct examples.")
    least, most = _near_mistakes(n, add_slack(natural_log(8 * n / failure)))
    near = (
        upto[np.searchsorted(mistakes, most, side="right")]
        - upto[np.searchsorted(mistakes, least, side="left")]
    )
    allowed = _allowance(np.asarray(near, np.float64), n, failure)
    bins = np.arange(1, n + 1)
    cost, error = _divergence(np.full(n, mine), bins - 1, n)
    last = int(bins[(bins - 1 <= mine) | (cost <= allowed + error)][-1])
    limit = float(allowed[last - 1])
    return _largest_error(
        mine, n, Fraction(max(mine, last - 1), n), Fraction(max(mine, last), n), limit
    )


def _allowance(near: NDArray[np.float64], n: int, failure: Fraction) -> NDArray[np.float64]:
    """Return what n·KL may be where N hypotheses are seen near: ln(2N − 1) + ln(2n/η)."""
    return (np.log(np.maximum(2 * near - 1, 1)) + natural_log(2 * n / failure)) * float(1 + SLACK)


def _count_mistakes(levels: Iterable[Level], n: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the occupied numbers of mistakes, ascending, with numbers of hypotheses.

    How many hypotheses make fewer than each, and how many there are in all.
    """
    tally: Counter[int] = Counter()
    for level in levels:
        if not isinstance(level, (tuple, list)) or len(level) != 2:
            raise DataError(
                "A level must be a pair: correct examples and how many hypotheses have so many."
            )
        if any(isinstance(part, bool) or not isinstance(part, int) for part in level):
            raise DataError("Correct examples and numbers of hypotheses must be integers.")
        if not 0 <= level[0] <= n or level[1] < 1:
            raise DataError("A level must be within 0 to n and have at least one hypothesis.")
        tally[n - level[0]] += level[1]
    if not tally:
        raise DataError("There is no hypothesis.")
    ordered = sorted(tally)
    upto = [0, *accumulate(tally[mistakes] for mistakes in ordered)]
    exact = np.int64 if upto[-1] < 1 << 62 else object
    return np.array(ordered, np.int64), np.array(upto, exact)


def _near_mistakes(n: int, limit: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the fewest and the most mistakes counted as near, for bins of true errors.

    The bins are ((k−1)/n, k/n], k = 1 … n.

    Fewer (or more) has n·KL above `limit` from everything in the bin.
    """
    bins = np.arange(1, n + 1)
    least = _edge(np.zeros(n, np.int64), bins - 1, bins - 1, n, limit)
    return least, n - _edge(np.zeros(n, np.int64), n - bins, n - bins, n, limit)


def _edge(
    low: NDArray[np.int64], high: NDArray[np.int64], at: NDArray[np.int64], n: int, limit: float
) -> NDArray[np.int64]:
    """Return the least j from `low` to `high` with n·KL(j/n‖at/n) ≤ limit.

    The divergence falls up to `at`, where it is 0.
    """
    while (low < high).any():
        middle = (low + high) // 2
        cost, error = _divergence(middle, at, n)
        near = cost <= limit + error
        low, high = np.where(near, low, middle + 1), np.where(near, middle, high)
    return high


def _divergence(
    mistakes: NDArray[np.int64], at: NDArray[np.int64] | NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return n·KL(mistakes/n ‖ at/n), and more than its rounding error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wrong = np.where(mistakes > 0, mistakes * np.log(mistakes / at), 0.0)
        right = np.where(mistakes < n, (n - mistakes) * np.log((n - mistakes) / (n - at)), 0.0)
    size = np.where(np.isfinite(wrong), np.abs(wrong), 0.0) + np.where(
        np.isfinite(right), np.abs(right), 0.0
    )
    return wrong + right, float(SLACK) * (n + size)


def _largest_error(mistakes: int, n: int, low: Fraction, high: Fraction, limit: float) -> float:
    """Return the largest p from `low` to `high` with n·KL(mistakes/n ‖ p) ≤ limit, rounded up.

    The divergence rises from mistakes/n on.
    """
    below, above = float(low), float(high)
    for _ in range(64):
        middle = (below + above) / 2
        cost, error = _divergence(np.array(mistakes), np.array(n * middle), n)
        below, above = (middle, above) if cost <= limit + error else (below, middle)
    return min(1.0, add_slack(above))


def _check_correct(correct: object, n: int) -> int:
    if isinstance(correct, bool) or not isinstance(correct, int) or not 0 <= correct <= n:
        raise DataError("The correct examples must be a whole number from 0 to n.")
    return correct


def _half(success: Number) -> Fraction:
    """Return η/2, if the clip of a mechanism leaves room for it."""
    half = (1 - open_probability("success", success)) / 2
    if half < LEAST_FAILURE:
        raise ParameterError(
            "success", success, "it must be at most 1 - 2^-22", 'For example "0.95".'
        )
    return half


def _failure(success: Number) -> Fraction:
    failure = 1 - open_probability("success", success)
    if failure < LEAST_FAILURE:
        raise ParameterError(
            "success", success, "it must be at most 1 - 2^-23", 'For example "0.95".'
        )
    return failure
