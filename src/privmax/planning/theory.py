"""Theorems about private selection, as numbers.

How far a draw can miss, and what no mechanism can do.

All of it is in records: divide a score by its sensitivity first. `success` is the probability with
which a statement holds; η = 1 − success. What is needed or may be lost is rounded up, what is
impossible is rounded towards possible.

Proof:      docs/proofs/utility.md, docs/proofs/lower-bounds.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (corrected); the limit is original to this library
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from privmax.errors import DataError, ParameterError
from privmax.numbers import (
    Number,
    exact,
    nonnegative,
    open_probability,
    positive,
    probability,
    whole,
)
from privmax.parameters import ExactRepr
from privmax.privacy import ADD_REMOVE, REPLACE, drift, relation

SUCCESS = "0.95"

SLACK = Fraction(1, 1 << 48)
"""By this share a sum of a few positive floats is raised or lowered, far more than its rounding
error.
"""

INTEGER_SCORES = 7
"""Records that rounding the paper's tail terms to integers adds, at most."""

_FAR = Fraction(700)
"""e^−700 is nothing to a probability, and e^700 still a float."""

_FARTHEST = Fraction(10**300)
"""Where an exponent stays a float; nothing is likely that far away."""

_SMALL = 600
"""Probabilities below e^−600 are known by their logarithm only."""


def has_margin(scores: Sequence[Number], *, near: int, margin: Number) -> bool:
    """Return whether at most `near` candidates are within `margin` of the top.

    That is the (near, margin)-margin condition: q_(near+1) < q_(1) − margin. It holds by convention
    where there are no more than `near` candidates. The answer is as private as the scores.

    Args:
        scores: Of all candidates, in any order, in the unit of `margin`: records, or shares of them
            as in the paper. A float means the decimal that it prints as.
        near: How many may be near the top.
        margin: By how much all others must stand lower.

    Raises:
        ParameterError: A number is out of bounds.
        DataError: A score is not a finite number.

    Examples:
        >>> has_margin([9, 8, 1], near=2, margin=5), has_margin([9, 8, 1], near=1, margin=5)
        (True, False)
        >>> has_margin([0.9, 0.8, 0.1], near=2, margin=0.7)
        True
    """
    near, margin = whole("near", near), positive("margin", margin)
    ordered: list[Fraction] = []
    with suppress(ParameterError):  # its message quotes the score, and must not be chained
        ordered = sorted((exact("scores", score) for score in scores), reverse=True)
    if len(ordered) < len(scores) or isinstance(scores, str):
        raise DataError("Every score must be a finite number.")
    return len(ordered) <= near or ordered[near] < ordered[0] - margin


def certified_margin(rank: int, *, epsilon: Number, delta: Number) -> float:
    """Return t_r = 6(1 + ln(3r/δ)/ε), as printed: the margin the search certifies at rank r.

    Args:
        rank: r.
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(certified_margin(1, epsilon=1, delta=1e-6), 2)
        95.48
    """
    rank, epsilon, delta = whole("rank", rank), _epsilon(epsilon), open_probability("delta", delta)
    return add_slack(6.0 + times_log(6 / epsilon, 3 * rank / delta))


def search_threshold(rank: int, *, epsilon: Number, delta: Number) -> float:
    """Return T_r, as printed: the paper's search passes there.

    T_r = (3/ε)ln(3/(2δ)) + (6/ε)ln(3/δ) + (12/ε)ln(3r(r+1)/δ) + t_r.

    Args:
        rank: r.
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(search_threshold(1, epsilon=1, delta=1e-6), 2)
        414.92
    """
    margin = certified_margin(rank, epsilon=epsilon, delta=delta)
    unit, delta = 3 / _epsilon(epsilon), open_probability("delta", delta)
    tails = times_log(unit, 3 / (2 * delta)) + times_log(2 * unit, 3 / delta)
    return add_slack(tails + times_log(4 * unit, 3 * rank * (rank + 1) / delta) + margin)


def large_margin_gap(
    *, epsilon: Number, delta: Number, near: int = 1, success: Number = SUCCESS
) -> float:
    """Return (21/ε)ln(3/η) + T_near: with a larger gap the paper keeps to `large_margin_error`.

    On integer scores (`LargeMargin`) at most 7 records more are needed.

    Args:
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.
        near: How many candidates are tied at the top.
        success: With what probability it holds.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(large_margin_gap(epsilon=1, delta=1e-6), 1)
        500.9
    """
    threshold = search_threshold(whole("near", near), epsilon=epsilon, delta=delta)
    return add_slack(times_log(21 / _epsilon(epsilon), 3 / _failure(success)) + threshold)


def large_margin_error(*, epsilon: Number, near: int = 1, success: Number = SUCCESS) -> float:
    """Return (6/ε)ln(2·near/η): how far below the top the paper's mechanism may draw.

    It does so if gap_near exceeds `large_margin_gap`.

    Args:
        epsilon: What the mechanism costs, above 0.
        near: How many candidates are tied at the top.
        success: With what probability it holds.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(large_margin_error(epsilon=1), 2)
        22.13
    """
    near, epsilon = whole("near", near), _epsilon(epsilon)
    return add_slack(times_log(6 / epsilon, 2 * near / _failure(success)))


def large_margin_lead(
    *,
    epsilon: Number,
    delta: Number,
    candidates: int | None,
    near: int = 1,
    success: Number = SUCCESS,
) -> int:
    """Return the lead that the paper's theorem asks for.

    It is the least number of records above `large_margin_gap`. The item drawn is then one of the
    `near` best, as the error is smaller than the gap. `LargeMargin.lead` is exact.

    Args:
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.
        candidates: The size of the universe; None: open.
        near: How many candidates are tied at the top.
        success: With what probability it holds.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> large_margin_lead(epsilon=1, delta=1e-6, candidates=None)
        501
    """
    gap = large_margin_gap(epsilon=epsilon, delta=delta, near=near, success=success)
    if candidates is not None and near >= whole("candidates", candidates):
        return 0
    return math.floor(gap) + 1


def exponential_error(
    *,
    epsilon: Number,
    candidates: int,
    near: int = 1,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
) -> float:
    """Return (c/ε)ln(K/(near·η)): how far below the top the exponential mechanism may draw.

    Args:
        epsilon: What the mechanism costs, above 0.
        candidates: The size of the universe.
        near: How many candidates are tied at the top.
        success: With what probability it holds.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(exponential_error(epsilon=1, candidates=1000), 2)
        9.9
    """
    share, scale = _share(candidates, near), _scale(epsilon, neighbors)
    return add_slack(times_log(scale, 1 / (share * _failure(success))))


def permute_and_flip_error(
    *,
    epsilon: Number,
    candidates: int,
    near: int = 1,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
) -> float:
    """Return (c/ε)ln(K/((near+1)·η)): how far below the top permute-and-flip may draw.

    It takes what `exponential_error` takes.

    Examples:
        >>> round(permute_and_flip_error(epsilon=1, candidates=1000), 2)
        9.21
    """
    share, scale = _share(candidates, near), _scale(epsilon, neighbors)
    more = 1 + Fraction(1, near)
    return add_slack(max(0.0, times_log(scale, 1 / (share * more * _failure(success)))))


def max_of_laplaces_error(
    *, epsilon: Number, candidates: int, success: Number = SUCCESS, neighbors: str = ADD_REMOVE
) -> float:
    """Return how far below the top max of Laplaces may draw.

    It is (c/ε)·x with (K−1)·e^−x·(1/2 + x/4) ≤ η.

    Args:
        epsilon: What the mechanism costs, above 0.
        candidates: The size of the universe.
        success: With what probability it holds.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> max_of_laplaces_error(epsilon=1, candidates=1)
        0.0
    """
    others, scale = whole("candidates", candidates) - 1, _scale(epsilon, neighbors)
    if not others:
        return 0.0
    most = natural_log(others / _failure(success))
    low, high = 0.0, 2 * max(0.0, most) + 2
    for _ in range(60):  # the left side falls with x from K/2, and is below η at twice ln(K/η) + 2
        middle = (low + high) / 2
        low, high = (
            (low, middle) if most - middle + math.log(0.5 + middle / 4) <= 0 else (middle, high)
        )
    return add_slack(float(scale * Fraction(high)))


def guard_gap(
    *,
    epsilon: Number,
    delta: Number,
    rank: int,
    success: Number = SUCCESS,
    neighbors: str = ADD_REMOVE,
) -> float:
    """Return the gap with which a draw behind one guard keeps to `guard_error`.

    It is c + (c/ε)ln(2·rank/(δη)).

    Args:
        epsilon: That of the draw: of `SharpMargin` with one rank, the part that does not pick.
        delta: That of the guard.
        rank: Where the guard stands.
        success: With what probability it holds.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(guard_gap(epsilon=1, delta=1e-6, rank=1), 1)
        18.5
    """
    rank, delta, c = (
        whole("rank", rank),
        open_probability("delta", delta),
        drift(relation(neighbors)),
    )
    return add_slack(c + times_log(c / _epsilon(epsilon), 2 * rank / (delta * _failure(success))))


def guard_error(
    *, epsilon: Number, rank: int, success: Number = SUCCESS, neighbors: str = ADD_REMOVE
) -> float:
    """Return (c/ε)ln(2·rank/η): how far below the top a draw behind one guard may go.

    It does so given `guard_gap`.

    Args:
        epsilon: That of the draw.
        rank: Where the guard stands.
        success: With what probability it holds.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(guard_error(epsilon=1, rank=1), 2)
        3.69
    """
    rank, scale = whole("rank", rank), _scale(epsilon, neighbors)
    return add_slack(times_log(scale, 2 * rank / _failure(success)))


def sample_size(lead: Number, *, margin: Number) -> int:
    """Return ⌈lead/margin⌉: how many records make a margin, a share of them, a lead of `lead`.

    With `large_margin_gap` as the lead this is the paper's condition on n.

    Args:
        lead: Any mechanism's lead, in records.
        margin: A share of all records, above 0 and at most 1.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> sample_size(22, margin="0.01")
        2200
    """
    lead, share = nonnegative("lead", lead), positive("margin", margin)
    if share > 1:
        raise ParameterError(
            "margin", margin, "it must be at most 1, a share of all records", 'For example "0.01".'
        )
    return math.ceil(lead / share)


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
        if whole("best", best, least=0) >= self.near:
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
    epsilon, delta, c = _epsilon(epsilon), probability("delta", delta), drift(relation(neighbors))
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
    targets, epsilon = whole("targets", targets), _epsilon(epsilon)
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
    return start.limit(-(-lead // c), _epsilon(epsilon), probability("delta", delta))


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
    epsilon, delta = _epsilon(epsilon), probability("delta", delta)
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

    share   exactly, or 1 where it may be too small for a float
    log     what to add to its logarithm then, rounded up
    """

    share: Fraction
    log: float = 0.0

    @classmethod
    def of(cls, candidates: int | None, k: int, near: int | None, missing: int) -> _Start:
        near = _check_list(candidates, k, near, missing)
        if k == 1 or candidates is None or near >= candidates:
            return cls(_share(candidates, near))
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


def _check_list(candidates: int | None, k: int, near: int | None, missing: int) -> int:
    """Return how many are tied at the top, unless a number is out of bounds."""
    near = whole("k", k) if near is None else whole("near", near)
    if near < k:
        raise ParameterError("near", near, f"it must be at least k, which is {k}", "Leave it out.")
    if candidates is not None and k > whole("candidates", candidates):
        raise ParameterError("k", k, "it must not exceed candidates", "Ask for fewer.")
    if whole("missing", missing, least=0) >= k:
        raise ParameterError(
            "missing", missing, f"it must be below k, which is {k}", "Leave it out."
        )
    return near


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


def _share(candidates: int | None, near: int) -> Fraction:
    """Return the share of the `near` best in a universe.

    All of it where there are no others, none of an open one.
    """
    near = whole("near", near)
    return (
        Fraction(0)
        if candidates is None
        else min(Fraction(1), Fraction(near, whole("candidates", candidates)))
    )


def _scale(epsilon: Number, neighbors: str) -> Fraction:
    """Return c/ε, by how much a score must grow to be e times as likely."""
    return drift(relation(neighbors)) / _epsilon(epsilon)


def _epsilon(value: Number) -> Fraction:
    """Return an epsilon above 0 whose inverse a float can hold."""
    epsilon = positive("epsilon", value)
    if epsilon < Fraction(1, 10**290):
        raise ParameterError(
            "epsilon", value, "it must be at least 1e-290", 'For example 1 or "0.1".'
        )
    return epsilon


def _failure(success: Number) -> Fraction:
    """Return η, the probability that is left."""
    return 1 - open_probability("success", success)


def times_log(scale: Fraction, argument: Fraction) -> float:
    """Return scale · ln(argument).

    Args:
        scale: Any rational.
        argument: Above 0.

    Examples:
        >>> times_log(Fraction(3), Fraction(1))
        0.0
    """
    return float(scale * Fraction(natural_log(argument)))


def natural_log(number: Fraction) -> float:
    """Return ln of a rational of any size above 0, to a few units in the last place.

    Args:
        number: Above 0.

    Examples:
        >>> round(natural_log(Fraction(10) ** 400), 3)
        921.034
    """
    if Fraction(1, 2) < number < 2:
        return math.log1p(number - 1)
    power = number.numerator.bit_length() - number.denominator.bit_length()
    return math.log(number / Fraction(2) ** power) + power * math.log(
        2
    )  # at most one term is below 0, the lesser


def add_slack(number: float) -> float:
    """Return a number above what rounding errors may have taken from it.

    Args:
        number: A sum of a few floats, not below 0.

    Examples:
        >>> 1 < add_slack(1.0) < 1.0000001
        True
    """
    return number * float(1 + SLACK)
