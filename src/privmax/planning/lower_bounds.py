"""Lower bounds, as numbers: the limits of every private mechanism.

Scores are in records: divide a score by its sensitivity first. What is impossible is rounded
towards possible.

Proof:      docs/proofs/lower-bounds.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (corrected); the limit is original to this library
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privmax.errors import ParameterError
from privmax.numbers import Number, open_probability, probability, whole
from privmax.parameters import ExactRepr
from privmax.planning.theory import (
    SLACK,
    SUCCESS,
    add_slack,
    natural_log,
    read_epsilon,
    share_of_best,
    times_log,
)
from privmax.privacy import ADD_REMOVE, REPLACE, drift, relation

_FAR = Fraction(700)
"""e^−700 is nothing to a probability, and e^700 still a float."""


_FARTHEST = Fraction(10**300)
"""The largest exponent, so that it stays a float; nothing is likely that far away."""


_SMALL = 600
"""Probabilities below e^−600 are known by their logarithm only."""


@dataclass(frozen=True, kw_only=True, repr=False)
class LowerBound(ExactRepr):
    """On some data set of a family every mechanism at the cost errs by `error` records or more.

    It does so more often than not.

    Attributes:
        near: How many candidates take turns at being the best; all others have score 0.
        records: How many records each data set holds.
        threshold: What the theorem gives before it is rounded down to records.
        error: The best of a data set leads the other `near` − 1 by so many records.

    Examples:
        >>> bound = pure_lower_bound(epsilon="0.1", candidates=10**6, records=1000)
        >>> bound.error, bound.levels()
        (65, [(1000, 1), (935, 999999)])
    """

    near: int
    records: int
    threshold: float
    error: int

    def levels(self) -> list[tuple[int, int]]:
        """Return the hard data as levels for a `Profile`, whichever item is the best.

        A draw succeeds if it is the best.
        """
        if not self.error:
            return [(self.records, self.near)]
        return [(self.records, 1), (self.records - self.error, self.near - 1)]

    def scores(self, best: int) -> list[int]:
        """Return the same as the scores of candidates 0 … near−1.

        Args:
            best: Which of them is the best.

        Raises:
            ParameterError: There is no such candidate.

        Examples:
            >>> LowerBound(near=4, records=10, threshold=3.5, error=3).scores(best=1)
            [7, 10, 7, 7]
        """
        best = whole("best", best, least=0)
        if best >= self.near:
            raise ParameterError(
                "best", best, f"it must be below {self.near}, the number of near maximizers"
            )
        return [self.records - self.error * (place != best) for place in range(self.near)]


def pure_lower_bound(
    *, epsilon: Number, candidates: int, records: int, neighbors: str = ADD_REMOVE
) -> LowerBound:
    """Return what every mechanism at (ε, 0) must lose: min(n/2, (c/(2ε))ln((K−1)/2)) records.

    Rounded down. The paper's proposition is the case of "replace".

    Args:
        epsilon: What the mechanism costs, above 0.
        candidates: K, at least 4.
        records: n, at least 2.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> pure_lower_bound(epsilon="0.1", candidates=10**6, records=1000).error
        65
    """
    candidates = whole("candidates", candidates, least=4)
    return approximate_lower_bound(
        epsilon=epsilon, delta=0, near=candidates, records=records, neighbors=neighbors
    )


def approximate_lower_bound(
    *, epsilon: Number, delta: Number, near: int, records: int, neighbors: str = ADD_REMOVE
) -> LowerBound:
    """Return what every mechanism at (ε, δ) must lose: min(n/2, (c/(2ε))ln((ℓ−1)/2)) records.

    Rounded down. All but ℓ near maximizers stand n below the best. Where δ exceeds (1 −
    e^−ε)/(2(ℓ−1)) the bound is that of fewer near maximizers, and the family holds those. The
    paper's theorem is the case of "replace".

    Args:
        epsilon: What the mechanism costs, above 0.
        delta: At most (1 − e^−ε)/6.
        near: ℓ, at least 4.
        records: n, at least 2.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> approximate_lower_bound(epsilon="0.1", delta=1e-6, near=1000, records=1000).error
        31
    """
    near, records = whole("near", near, least=4), whole("records", records, least=2)
    epsilon, delta, c = (
        read_epsilon(epsilon),
        probability("delta", delta),
        drift(relation(neighbors)),
    )
    if delta:
        near = min(
            near,
            1 + math.floor(Fraction(-math.expm1(-min(epsilon, _FAR))) * (1 - SLACK) / (2 * delta)),
        )
        if near < 4:
            raise ParameterError(
                "delta", delta, "it must be at most (1 - e^-epsilon)/6", "For example 1e-6."
            )
    loss = times_log(c / (2 * epsilon), Fraction(near - 1, 2))
    threshold = float(min(Fraction(records, 2), Fraction(loss) * (1 - SLACK)))
    error = min(records // 2, math.floor(threshold))
    return LowerBound(near=near, records=records, threshold=threshold, error=error)


def learning_limit(
    *,
    epsilon: Number,
    n: int,
    targets: int,
    delta: Number = 0,
    neighbors: str = REPLACE,
) -> float:
    """Return how often, at most, a private learner finds an unknown threshold, on average.

    There are `targets` thresholds on a line, and n examples on both sides of one of them, all so
    close to it that every other errs on at least a quarter. The learner releases a threshold; rules
    of another form are not limited by this. On a continuum there is room for any number of targets,
    and with δ = 0 the limit tends to 0: no n is enough (Chaudhuri and Hsu, 2011).

    Args:
        epsilon: What the learner costs, above 0.
        n: How many examples it sees.
        targets: Among how many thresholds it has to find the right one.
        delta: With epsilon, what it costs. Above 0, and for large n, nothing is said: 1.
        neighbors: "replace" or "add-remove".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> learning_limit(epsilon=1, n=100, targets=2**64)
        1.0
        >>> round(learning_limit(epsilon=1, n=100, targets=2**150), 3)
        0.018
    """
    targets, epsilon = whole("targets", targets), read_epsilon(epsilon)
    if targets == 1:
        return 1.0
    steps = 2 * whole("n", n) // drift(relation(neighbors))
    far = natural_log(Fraction(targets - 1)) - float(min(steps * epsilon, _FARTHEST))
    others = math.exp(min(far - abs(far) * float(SLACK) - 1e-9, float(_FAR)))  # rounded down
    slip = probability("delta", delta) / Fraction(math.expm1(min(epsilon, _FAR)))
    bound = (1 + (targets - 1) * slip * (1 + SLACK)) / (1 + Fraction(others))
    return 1.0 if bound >= 1 else min(1.0, add_slack(float(bound)))


def success_limit(
    lead: int,
    *,
    epsilon: Number,
    delta: Number = 0,
    candidates: int | None,
    k: int = 1,
    near: int | None = None,
    missing: int = 0,
    neighbors: str = ADD_REMOVE,
) -> float:
    """Return the most probability with which any mechanism at (ε, δ) releases k of the best.

    Any that treats candidates alike; the others on average over who the best are. It is f^s(P) with
    s = ⌈lead/c⌉ and f(π) = min{e^ε·π + δ, 1 − e^−ε(1 − π − δ), 1}, where P is the probability that
    k candidates drawn at random are among the best, but for `missing` of them: near/K for one item,
    and 0 in an open universe, whatever may be missing.

    Args:
        lead: By how many records they lead all others.
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.
        candidates: The size of the universe; None: open.
        k: How many are released at most, in any order.
        near: How many candidates are tied at the top, k or more; by default k.
        missing: How many of the k may be missing or others, fewer than k.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> success_limit(0, epsilon=1, candidates=None), success_limit(99, epsilon=1, candidates=4)
        (0.0, 1.0)
        >>> round(success_limit(0, epsilon=1, candidates=5, k=2), 6)  # one set of ten
        0.1
    """
    lead, start, c = (
        whole("lead", lead, least=0),
        _Start.of(candidates, k, near, missing),
        drift(relation(neighbors)),
    )
    return start.limit(-(-lead // c), read_epsilon(epsilon), probability("delta", delta))


def least_lead(
    *,
    epsilon: Number,
    delta: Number = 0,
    candidates: int | None,
    k: int = 1,
    near: int | None = None,
    missing: int = 0,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
) -> int:
    """Return a lead below which no mechanism at (ε, δ) that treats candidates alike succeeds.

    See `success_limit`.

    Args:
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.
        candidates: The size of the universe; None: open.
        k: How many are released at most, in any order.
        near: How many candidates are tied at the top, k or more; by default k.
        missing: How many of the k may be missing or others, fewer than k.
        success: With what probability it holds.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds, or the universe is open and delta 0.

    Examples:
        >>> least_lead(epsilon=1, delta=1e-6, candidates=None)
        16
        >>> least_lead(epsilon=1, delta=1e-6, candidates=None, k=1000, missing=999)
        16
        >>> least_lead(epsilon=1, candidates=10**6, k=10)
        125
    """
    target, start, c = (
        open_probability("success", success),
        _Start.of(candidates, k, near, missing),
        drift(relation(neighbors)),
    )
    epsilon, delta = read_epsilon(epsilon), probability("delta", delta)
    if not start.share and not delta:
        raise ParameterError(
            "delta",
            delta,
            "without it no lead suffices in an open universe",
            "State candidates, or a delta above 0.",
        )
    low, high = -1, 0  # the limit grows with the number of steps
    while start.limit(high, epsilon, delta) < target:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if start.limit(middle, epsilon, delta) >= target else (middle, high)
        )
    return c * (high - 1) + 1 if high else 0


@dataclass(frozen=True)
class _Start:
    """With what probability k candidates at random are among the best.

    Args:
        share: Exactly, or 1 where it may be too small for a float.
        log: What to add to its logarithm then, rounded up.
    """

    share: Fraction
    log: float = 0.0

    @classmethod
    def of(cls, candidates: int | None, k: int, near: int | None, missing: int) -> _Start:
        candidates, k, near, missing = _read_list(candidates, k, near, missing)
        if k == 1 or candidates is None or near >= candidates:
            return cls(share_of_best(candidates, near))
        ways, every = _sets_among(candidates, near, k, k - missing), math.comb(candidates, k)
        if every.bit_length() < _SMALL:
            return cls(Fraction(ways, every))
        few, most = math.log(ways), math.log(every)  # of integers of any size
        return cls(Fraction(1), min(few - most + float(SLACK) * (few + most), 0.0))

    def limit(self, steps: int, epsilon: Fraction, delta: Fraction) -> float:
        """f^steps of it, rounded up."""
        log, risen = Fraction(self.log), 0
        if log < -_SMALL and not delta:  # it grows by e^ε a step, to where a float can follow
            risen = min(steps, math.floor((-_SMALL - log) / epsilon))
            log += risen * epsilon
        start = self.share if not log else Fraction(math.exp(max(log, -_FAR))) * (1 + SLACK)
        return _step_limit(steps - risen, epsilon, delta, start)


def _read_list(
    candidates: int | None, k: int, near: int | None, missing: int
) -> tuple[int | None, int, int, int]:
    """Return the numbers, with how many are tied at the top, unless one is out of bounds."""
    k = whole("k", k)
    near = k if near is None else whole("near", near)
    if near < k:
        raise ParameterError("near", near, f"it must be at least k, which is {k}", "Leave it out.")
    candidates = None if candidates is None else whole("candidates", candidates)
    if candidates is not None and k > candidates:
        raise ParameterError("k", k, "it must not exceed candidates", "Ask for fewer.")
    missing = whole("missing", missing, least=0)
    if missing >= k:
        raise ParameterError(
            "missing", missing, f"it must be below k, which is {k}", "Leave it out."
        )
    return candidates, k, near, missing


def _sets_among(candidates: int, near: int, k: int, hits: int) -> int:
    """Return how many sets of k have at least `hits` among the `near` best."""
    others = candidates - near
    ways = total = math.comb(near, k)
    for inside in range(k, hits, -1):  # C(near, found)·C(others, k − found), one less at a time
        ways = ways * inside // (near - inside + 1) * (others - k + inside) // (k - inside + 1)
        total += ways
    return total


def _step_limit(steps: int, epsilon: Fraction, delta: Fraction, start: Fraction) -> float:
    """Return f^steps(start), rounded up.

    It grows by e^ε as long as that is the lesser, then its shortfall shrinks by e^−ε.

    Numbers too small for a float are taken as a little larger, which can only raise the limit.
    """
    if not steps:
        return min(1.0, add_slack(float(start)))
    if epsilon > _FAR or not (start or delta):
        return 1.0 if start or delta else 0.0
    chance = max(float(start), 2.0**-1000) if start else 0.0
    added = max(float(delta), 1e-290) if delta else 0.0
    rate, gain = float(epsilon), math.expm1(epsilon)
    turn = (1 - added) / (2 + gain)
    growing = 0
    if chance <= turn:
        growing = min(
            steps, 1 + math.floor(math.log1p((turn - chance) / (chance + added / gain)) / rate)
        )
        exponent = float(growing * epsilon)
        chance = chance * math.exp(exponent) + added * (math.expm1(exponent) / gain)
    shrunk = math.expm1(-min((steps - growing) * epsilon, _FAR))  # e^−kε − 1
    return min(1.0, (chance - shrunk * (1 - chance + added / gain)) * (1 + 2.0**-40))
