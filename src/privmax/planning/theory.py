"""Theorems about private selection, as numbers: how far a draw can miss.

All of it is in records: divide a score by its sensitivity first. `success` is the probability with
which a statement holds; η = 1 − success. What is needed or may be lost is rounded up.

Proof:      docs/proofs/utility.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (corrected)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

from privmax.errors import DataError, ParameterError
from privmax.numbers import (
    Number,
    exact,
    nonnegative,
    open_probability,
    positive,
    whole,
)
from privmax.privacy import ADD_REMOVE, drift, relation

SUCCESS = "0.95"

SLACK = Fraction(1, 1 << 48)
"""By this share a sum of a few positive floats is raised or lowered, far more than its rounding
error.
"""

INTEGER_SCORES = 7
"""Records that rounding the paper's tail terms to integers adds, at most."""


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
    rank, epsilon, delta = (
        whole("rank", rank),
        read_epsilon(epsilon),
        open_probability("delta", delta),
    )
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
    unit, delta = 3 / read_epsilon(epsilon), open_probability("delta", delta)
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
    return add_slack(times_log(21 / read_epsilon(epsilon), 3 / _failure(success)) + threshold)


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
    near, epsilon = whole("near", near), read_epsilon(epsilon)
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
    share, scale = share_of_best(candidates, near), _scale(epsilon, neighbors)
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
    share, scale = share_of_best(candidates, near), _scale(epsilon, neighbors)
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
    return add_slack(
        c + times_log(c / read_epsilon(epsilon), 2 * rank / (delta * _failure(success)))
    )


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


def share_of_best(candidates: int | None, near: int) -> Fraction:
    """Return the share of the `near` best in a universe.

    All of it where there are no others, none of an open one.

    Args:
        candidates: The size of the universe; None: open.
        near: How many are tied at the top.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> share_of_best(8, 2), share_of_best(None, 2)
        (Fraction(1, 4), Fraction(0, 1))
    """
    near = whole("near", near)
    return (
        Fraction(0)
        if candidates is None
        else min(Fraction(1), Fraction(near, whole("candidates", candidates)))
    )


def _scale(epsilon: Number, neighbors: str) -> Fraction:
    """Return c/ε, by how much a score must grow to be e times as likely."""
    return drift(relation(neighbors)) / read_epsilon(epsilon)


def read_epsilon(value: Number) -> Fraction:
    """Return an epsilon above 0 whose inverse a float can hold.

    Args:
        value: As it was given.

    Raises:
        ParameterError: It is smaller, or not a number.

    Examples:
        >>> read_epsilon(0.5)
        Fraction(1, 2)
    """
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
