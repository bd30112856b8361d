"""The theorems as numbers: the paper's own, what each mechanism may lose, sample sizes; each
against an exact law.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from privmax import (
    DataError,
    Exponential,
    Guards,
    LargeMargin,
    ParameterError,
    PermuteAndFlip,
    Profile,
    SharpMargin,
)
from privmax.noise.balls import ball, precision
from privmax.planning import lower_bounds, theory
from privmax.privacy import ADD_REMOVE, REPLACE

AT = {"epsilon": 1, "delta": "1e-6"}


def within(law, lowest):
    """Probability that the score drawn is at least `lowest`."""
    return sum(chance for score, _, chance in law.blocks if score >= lowest)


# The paper


@pytest.mark.parametrize(
    ("scores", "near", "margin", "holds"),
    [
        ([9, 5, 5, 1], 1, 3, True),
        ([9, 5, 5, 1], 1, 4, False),  # strictly: 5 < 9 − 4 is false
        ([9, 5, 5, 1], 1, "3.999", True),
        ([5, 9, 1, 5], 3, 7, True),
        ([5, 9, 1, 5], 3, 8, False),
        ([5, 9, 1, 5], 4, 10**6, True),  # nobody is left
        ([7], 1, 1, True),
        ([7, 7], 1, "1e-9", False),
        ([10**30, 10**30 - 1], 1, "0.5", True),  # exact where floats are not
        ([10**30, 10**30 - 1], 1, 1, False),
        ([0.9, 0.8, 0.1], 2, 0.7, True),  # shares, as in the paper
        ([0.9, 0.8, 0.1], 1, "0.05", True),
        ([0.3, 0.2, 0.2], 1, "0.1", False),  # decimals: as floats, 0.3 - 0.1 is below 0.2
        ([Fraction(1, 3), Decimal("0.2")], 1, "0.13", True),
        ([np.float32(0.3), np.int64(0)], 1, "0.3", False),
    ],
)
def test_the_margin_condition(scores, near, margin, holds):
    assert theory.has_margin(scores, near=near, margin=margin) is holds


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "seven", None, True, 1j])
def test_a_bad_score_is_not_quoted(score):
    with pytest.raises(DataError) as caught:
        theory.has_margin([9, score], near=1, margin=1)
    assert str(caught.value) == "Every score must be a finite number."
    assert caught.value.__context__ is None


def test_a_text_is_not_a_list_of_scores():
    with pytest.raises(DataError, match="finite number"):
        theory.has_margin("95", near=1, margin=0.5)


@pytest.mark.parametrize("huge", [{"n": 10**400}, {"epsilon": 10**400}])
def test_learning_is_not_limited_where_there_is_enough_of_anything(huge):
    given = {"epsilon": 1, "n": 10, "targets": 2**64} | huge
    assert lower_bounds.learning_limit(**given) == 1


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
@pytest.mark.parametrize("rank", [1, 2, 10, 100, 1000, 10**9, 2**100])
def test_the_printed_constants_are_those_of_the_mechanism(rank, epsilon):
    margin, threshold = LargeMargin(epsilon=epsilon, delta="1e-6").paper_constants(rank)
    assert theory.certified_margin(rank, epsilon=epsilon, delta="1e-6") == pytest.approx(
        margin, rel=1e-12
    )
    assert theory.search_threshold(rank, epsilon=epsilon, delta="1e-6") == pytest.approx(
        threshold, rel=1e-12
    )


@pytest.mark.parametrize(("near", "lead"), [(1, 501), (10, 563), (1000, 700)])
def test_the_lead_of_the_papers_theorem(near, lead):
    for candidates in (10**3, 10**6, 2**100, None):
        asked = theory.large_margin_lead(**AT, candidates=candidates, near=near)
        assert asked == (lead if candidates != near else 0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.5", 1, 4])
@pytest.mark.parametrize("near", [1, 3, 200])
@pytest.mark.parametrize("success", ["0.5", "0.95", "0.999"])
def test_the_mechanism_needs_no_more_than_its_theorem(epsilon, near, success):
    for candidates in (10**6, None):
        lead = theory.large_margin_lead(
            epsilon=epsilon, delta="1e-6", candidates=candidates, near=near, success=success
        )
        exact = LargeMargin(epsilon=epsilon, delta="1e-6").lead(
            candidates=candidates, near=near, success=success
        )
        assert exact <= lead + 7


@pytest.mark.parametrize("near", [2, 50])
@pytest.mark.parametrize("depth", [3, 10, 20])
def test_the_paper_stays_within_its_error_on_uneven_near_maximizers(near, depth):
    gap = math.ceil(theory.large_margin_gap(**AT, near=near)) + 7
    law = LargeMargin(**AT).law(Profile([(gap, 1), (gap - depth, near - 1), (0, 10**4)]))
    error = theory.large_margin_error(epsilon=1, near=near)
    assert within(law, gap - error) >= 0.95
    assert error < gap


def test_the_error_is_smaller_than_the_gap_so_that_the_gap_is_a_lead():
    for epsilon in ("0.01", 1, 50):
        for near in (1, 7, 10**9, 2**300):
            for success in ("1e-6", "0.5", "0.999999"):
                error = theory.large_margin_error(epsilon=epsilon, near=near, success=success)
                assert error < theory.large_margin_gap(
                    epsilon=epsilon, delta="0.9", near=near, success=success
                )


# The others


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(
    ("mechanism", "error"),
    [(Exponential, theory.exponential_error), (PermuteAndFlip, theory.permute_and_flip_error)],
)
@pytest.mark.parametrize(
    ("candidates", "near"), [(2, 1), (1000, 1), (1000, 10), (10**6, 3), (2**60, 1000)]
)
def test_a_pure_mechanism_stays_within_its_error_and_nearly_reaches_it(
    mechanism, error, candidates, near, neighbors
):
    bound = error(epsilon="0.5", candidates=candidates, near=near, neighbors=neighbors)
    chances = [
        mechanism(epsilon="0.5", neighbors=neighbors)
        .law(Profile([(depth, near)], universe=candidates))
        .best()
        for depth in (math.floor(bound) + 1, max(1, math.floor(bound) - 12))
    ]
    assert chances[0] > 0.95  # all others just below what the theorem allows
    assert chances[1] < 0.95


def test_an_error_on_a_profile_of_many_levels():
    levels = [(100 - depth, depth + 1) for depth in range(100)]
    size = sum(count for _, count in levels)
    for success in ("0.3", "0.95", "0.9999"):
        error = theory.exponential_error(epsilon=1, candidates=size, success=success)
        law = Exponential(epsilon=1).law(Profile(levels, universe=size))
        assert within(law, 100 - error) >= float(success)


def test_permute_and_flip_loses_nothing_where_almost_everybody_is_tied():
    assert theory.permute_and_flip_error(epsilon=1, candidates=10, near=10, success="0.01") == 0
    assert theory.permute_and_flip_error(epsilon=1, candidates=10, near=10, success="0.99") > 0


@pytest.mark.parametrize(
    ("function", "lead"), [("exponential", (20, 34, 62)), ("permute_and_flip", (19, 33, 60))]
)
def test_errors_of_the_pure_mechanisms_at_one_maximizer(function, lead):
    error = getattr(theory, f"{function}_error")
    assert (
        tuple(
            math.ceil(error(epsilon=1, candidates=10**power, neighbors=REPLACE))
            for power in (3, 6, 12)
        )
        == lead
    )


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("rank", [1, 5, 1000])
def test_one_guard_stays_within_its_error(rank, neighbors):
    mechanism = SharpMargin(
        epsilon=1,
        delta="1e-4",
        neighbors=neighbors,
        guards=Guards((rank,), (1,), share=Fraction(1, 2)),
    )
    at = {"epsilon": Fraction(1, 2), "rank": rank, "neighbors": neighbors}
    gap, error = math.ceil(theory.guard_gap(**at, delta="1e-4")), theory.guard_error(**at)
    deep = math.floor(error) + 1
    levels = [(gap, 1), *([(gap - deep, rank - 1)] if rank > 1 else [])]
    assert mechanism.law(Profile(levels)).best() >= 0.95
    short = Profile(
        [(score - gap // 4, count) for score, count in levels]
    )  # the same above a smaller gap
    assert mechanism.law(short).best() < 0.95


# Sample sizes


@pytest.mark.parametrize(
    ("lead", "margin", "records"),
    [(20, "0.01", 2000), (20, "0.03", 667), (20, 1, 20), (0, "0.5", 0), ("0.5", "1/3", 2)],
)
def test_sample_size(lead, margin, records):
    assert theory.sample_size(lead, margin=margin) == records


def test_the_papers_sample_size_gives_the_papers_gap():
    gap = theory.large_margin_gap(**AT)
    records = theory.sample_size(gap, margin="0.01")
    assert records == 50091
    assert Fraction(records, 100) >= Fraction(gap) > Fraction(records - 1, 100)


# Arguments and rounding

FULL = {
    "epsilon": 1,
    "delta": "1e-6",
    "candidates": 10,
    "near": 4,
    "records": 50,
    "rank": 2,
    "success": "0.9",
    "neighbors": ADD_REMOVE,
    "margin": "0.1",
}
TAKES = {
    theory.certified_margin: ("rank", "epsilon", "delta"),
    theory.search_threshold: ("rank", "epsilon", "delta"),
    theory.large_margin_gap: ("epsilon", "delta", "near", "success"),
    theory.large_margin_error: ("epsilon", "near", "success"),
    theory.large_margin_lead: ("epsilon", "delta", "candidates", "near", "success"),
    theory.exponential_error: ("epsilon", "candidates", "near", "success", "neighbors"),
    theory.permute_and_flip_error: ("epsilon", "candidates", "near", "success", "neighbors"),
    theory.guard_gap: ("epsilon", "delta", "rank", "success", "neighbors"),
    theory.guard_error: ("epsilon", "rank", "success", "neighbors"),
    lower_bounds.pure_lower_bound: ("epsilon", "candidates", "records", "neighbors"),
    lower_bounds.approximate_lower_bound: ("epsilon", "delta", "near", "records", "neighbors"),
    lower_bounds.success_limit: ("lead", "epsilon", "delta", "candidates", "near", "neighbors"),
    lower_bounds.least_lead: ("epsilon", "delta", "candidates", "near", "success", "neighbors"),
    theory.sample_size: ("lead", "margin"),
    theory.has_margin: ("near", "margin"),
}
BAD = {
    "epsilon": [0, -1, "1e-300", float("nan"), None],
    "delta": [-1, 2, "x"],
    "candidates": [0, 1.5, "3"],
    "near": [0, -2, 1.0],
    "records": [0, 2.5],
    "rank": [0, 1.5],
    "success": [0, 1, 1.5],
    "neighbors": ["swap"],
    "margin": [0, -1, "wide"],
    "lead": [-1, None],
}


def call(function, **changed):
    arguments = {**FULL, "lead": 5, **changed}
    first = [(9, 1, 1)] if function is theory.has_margin else []
    positional = [
        name
        for name in TAKES[function][:1]
        if name in ("rank", "lead") and function is not theory.guard_error
    ]
    rest = {name: arguments[name] for name in TAKES[function] if name not in positional}
    return function(*first, *(arguments[name] for name in positional), **rest)


@pytest.mark.parametrize("function", TAKES, ids=lambda function: function.__name__)
def test_every_bad_argument_is_refused_by_name(function):
    call(function)
    for name in TAKES[function]:
        for value in BAD[name]:
            with pytest.raises(ParameterError) as caught:
                call(function, **{name: value})
            assert caught.value.name == name


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        (theory.sample_size, "margin", "1.01"),
        (lower_bounds.pure_lower_bound, "candidates", 3),
        (lower_bounds.approximate_lower_bound, "near", 3),
        (lower_bounds.approximate_lower_bound, "records", 1),
        (lower_bounds.approximate_lower_bound, "delta", "0.11"),  # (1 − 1/e)/6 = 0.1053…
    ],
)
def test_conditions_of_the_theorems(function, name, value):
    with pytest.raises(ParameterError) as caught:
        call(function, **{name: value})
    assert caught.value.name == name


def test_no_lead_suffices_for_a_pure_mechanism_in_an_open_universe():
    with pytest.raises(ParameterError, match="open universe"):
        lower_bounds.least_lead(epsilon=1, candidates=None)
    assert lower_bounds.success_limit(10**6, epsilon=1, candidates=None) == 0


def test_numbers_beyond_any_float_are_no_obstacle():
    tiny, huge = Fraction(1, 10**400), 2**5000
    assert theory.exponential_error(epsilon=1, candidates=huge) == pytest.approx(
        5000 * math.log(2) + math.log(20)
    )
    assert theory.certified_margin(1, epsilon=1, delta=tiny) == pytest.approx(
        6 + 6 * (math.log(3) + 400 * math.log(10))
    )
    assert (
        lower_bounds.approximate_lower_bound(
            epsilon=10**500, delta=tiny, near=huge, records=huge
        ).error
        == 0
    )
    assert (
        lower_bounds.approximate_lower_bound(
            epsilon="1e-200", delta=0, near=9, records=2**70 - 1
        ).error
        == 2**69 - 1
    )
    assert (
        lower_bounds.least_lead(epsilon="1e-200", delta="1e-9", candidates=huge) == 950_000_000
    )  # one delta a record
    assert lower_bounds.least_lead(epsilon=10**500, delta=tiny, candidates=None) == 1


@pytest.mark.parametrize(
    "number",
    [
        "1.0000000000000000000001",
        "0.9999999",
        "2",
        "0.5",
        "1.99999",
        "1e-300",
        "3/7",
        "1e400",
        10**50,
    ],
)
def test_logarithms_are_good_to_a_few_units_in_the_last_place(number):
    number = Fraction(number)
    with precision(2000):
        exact = ball(number).log()
        assert abs(arb(theory.natural_log(number)) / exact - 1) < arb(2) ** -50


@pytest.mark.parametrize("near", [1, 10, 12345, 10**20])
def test_what_is_needed_is_rounded_up_and_what_is_impossible_down(near):
    with precision(300):
        needed = 21 * ball(60).log() + 3 * ball(1500000).log() + 6 * ball(3 * 10**6).log()
        needed += (
            12 * ball(3 * 10**6 * near * (near + 1)).log() + 6 + 6 * ball(3 * 10**6 * near).log()
        )
        found = arb(theory.large_margin_gap(**AT, near=near))
        assert 0 < found - needed < needed * arb(2) ** -45
        impossible = ball(Fraction(near + 2, 2)).log()
        bound = lower_bounds.approximate_lower_bound(
            epsilon=1, delta=0, near=near + 3, records=10**9, neighbors=REPLACE
        )
        assert 0 < impossible - arb(bound.threshold) < impossible * arb(2) ** -45
