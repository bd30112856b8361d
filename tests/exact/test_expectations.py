"""How many of the best k are released on average: against whole laws, against draws, and wrong
formulas that must disagree.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privmax import (
    Exponential,
    GapTest,
    JointExponential,
    LimitedDomain,
    PermuteAndFlip,
    Profile,
    SetMargin,
    SharpMargin,
)
from privmax.choice import draw_outcomes
from privmax.mechanisms.arrivals import ERROR, expected_draws
from privmax.planning.comparison import DRAWS, expectation
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import SeededCoins

LOOSE = {"epsilon": 2, "delta": "0.05"}
LEVELS = [(9, 1), (7, 2), (6, 1), (2, 2)]


def lists(k, neighbors=ADD_REMOVE):
    return [
        SharpMargin(**LOOSE, k=k, neighbors=neighbors),
        LimitedDomain(**LOOSE, k=k, rank=4, neighbors=neighbors),
        LimitedDomain(**LOOSE, k=k, rank=9, neighbors=neighbors),
        Exponential(**LOOSE, k=k, neighbors=neighbors),
        JointExponential(epsilon=2, k=k, neighbors=neighbors),
    ]


def by_sequences(mechanism, profile, least):
    """Size and hits, added up over the law of all lists."""
    size = hits = 0.0
    for law in mechanism.sequences(profile).values():
        for blocks, chance in law.chances.items():
            size += chance * len(blocks)
            hits += chance * sum(law.blocks[block][0] >= least for block in blocks)
    return size, hits


def by_sets(mechanism, profile, least):
    size = hits = 0.0
    for law in mechanism.sets(profile).values():
        for numbers, chance in law.chances.items():
            size += chance * sum(numbers)
            pairs = zip(law.blocks, numbers, strict=True)
            hits += chance * sum(number for (score, _), number in pairs if score >= least)
    return size, hits


@pytest.mark.slow
@pytest.mark.parametrize("universe", [None, 8])
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("k", "least"), [(2, 7), (3, 7), (4, 6)])
def test_expectations_are_those_of_the_whole_law(k, least, neighbors, universe):
    """Seven and six are the scores of the k-th best: who is tied with it counts."""
    profile = Profile(LEVELS, universe=universe)
    sets = [
        SetMargin(**LOOSE, k=k, neighbors=neighbors),
        GapTest(**LOOSE, k=k, neighbors=neighbors),
    ]
    checked = 0
    for mechanism in lists(k, neighbors):
        if universe is not None or isinstance(mechanism, (SharpMargin, LimitedDomain)):
            expected = by_sequences(mechanism, profile, least)
            assert mechanism.expect(profile, k) == pytest.approx(expected, abs=ERROR)
            checked += 1
    for mechanism in sets:
        size, hits = by_sets(mechanism, profile, least)
        assert mechanism.expect(profile, k) == pytest.approx((size, min(hits, k)), abs=ERROR)
    assert checked == (3 if universe is None else 5)


def one_by_one(blocks, rate, k, guard, first):
    """The same, draw after draw."""
    weights = [math.exp(-rate * depth) for depth, _ in blocks]

    def draw(left, rounds):
        if not rounds or not any(left):
            return np.zeros(2)
        total = sum(n * w for n, w in zip(left, weights, strict=True)) + guard
        found = np.zeros(2)
        for block, number in enumerate(left):
            if number:
                fewer = (*left[:block], number - 1, *left[block + 1 :])
                chance = number * weights[block] / total
                found += chance * (np.array([1, block < first]) + draw(fewer, rounds - 1))
        return found

    return draw(tuple(number for _, number in blocks), k)


@pytest.mark.parametrize(
    ("guard", "k", "rate"), [*product([0.0, 1e-9, 0.01, 3.0], [1, 3, 5], [Fraction(1, 3), 5])]
)
def test_the_integral_is_what_draw_after_draw_gives(guard, k, rate):
    blocks = [(0, 1), (2, 3), (7, 2), (40, 2)]
    log = math.log(guard) if guard else -math.inf
    expected = one_by_one(blocks, float(rate), k, guard, 2)
    found = expected_draws(blocks, Fraction(rate), k, guard=log, first=2)
    assert found == pytest.approx(tuple(expected), abs=1e-9)


def test_wrong_formulas_disagree():
    """A guard left out, or one more draw: the comparison would see it."""
    blocks = [(0, 1), (2, 3), (7, 2)]
    expected = one_by_one(blocks, 0.5, 3, 0.3, 1)
    for k, log in ((3, -math.inf), (4, math.log(0.3)), (3, math.log(0.33))):
        found = expected_draws(blocks, Fraction(1, 2), k, guard=log, first=1)
        assert np.abs(np.array(found) - expected).max() > 1e-3


@pytest.mark.slow
def test_weights_may_be_beyond_floats():
    """Each is certain to come before the next; a guard as far behind changes nothing."""
    blocks = [(10_000 * place, 1) for place in range(20)]
    for guard in (-math.inf, -95_000.0):
        assert expected_draws(blocks, Fraction(1), 8, guard=guard, first=5) == pytest.approx((8, 5))
    assert expected_draws(blocks, Fraction(1), 8, guard=-45_000.0, first=9) == pytest.approx((5, 5))


def test_a_long_list_among_many():
    """Fifty of a million equal candidates beside twenty: an average of one urn."""
    blocks = [(0, 20), (1, 10**6)]
    size, hits = expected_draws(blocks, Fraction(10**-9), 50, guard=-math.inf, first=1)
    assert size == pytest.approx(50, abs=50 * ERROR)
    assert hits == pytest.approx(50 * 20 / (10**6 + 20), abs=50 * ERROR)


@pytest.mark.parametrize("number", [10**4, 10**10])
def test_the_first_of_many_equal_candidates(number):
    """It is drawn unless a guard as heavy as all of them comes before it."""
    found = expected_draws([(0, number)], Fraction(1), 1, guard=-math.inf, first=1)
    assert found == pytest.approx((1, 1), abs=ERROR)
    found = expected_draws([(0, number)], Fraction(1), 1, guard=math.log(number), first=1)
    assert found == pytest.approx((0.5, 0.5), abs=ERROR)


@pytest.mark.parametrize("number", [10**9, 10**12, 10**15, 10**20, 10**40])
@pytest.mark.parametrize("k", [2, 5])
def test_some_of_very_many_equal_candidates(number, k):
    """A guard as heavy as all of them: each further one comes before it with probability 1/2."""
    found = expected_draws([(0, number)], Fraction(1), k, guard=math.log(number), first=1)
    assert found == pytest.approx((1 - 2.0**-k, 1 - 2.0**-k), abs=ERROR)


def test_lists_are_planned_in_universes_beyond_64_bits():
    for universe in (10**15, 10**18, 10**19, 10**30):
        profile = Profile([(400, 2), (350, 3)], universe=universe)
        exponential = Exponential(epsilon=5, delta="1e-6", k=5)
        found = exponential.expect(profile, 5)
        assert found == pytest.approx((5, 5), abs=1e-3)


def two_blocks(first, second, weight, k, guard):
    """Size and hits of k draws from blocks of weights 1 and `weight`: the law of how many came
    from the first, draw after draw.
    """
    size = hits = 0.0
    law = np.zeros(k + 1)
    law[0] = 1.0
    for drawn in range(k):
        mine = np.arange(k + 1)
        heavy = np.maximum(0, first - mine) * 1.0
        light = np.clip(second - (drawn - mine), 0, second) * weight
        rise, stay = law * heavy / (heavy + light + guard), law * light / (heavy + light + guard)
        hits += rise.sum()
        size += rise.sum() + stay.sum()
        law = stay + np.concatenate([[0.0], rise[:-1]])
    return size, hits


@pytest.mark.parametrize("guard", [0.0, 0.5])
def test_hundreds_are_counted_from_the_least_number_that_is_likely(guard):
    k, log = 300, math.log(guard) if guard else -math.inf
    found = expected_draws([(0, 400), (1, 400)], Fraction(1), k, guard=log, first=1)
    expected = two_blocks(400, 400, math.exp(-1), k, guard)
    assert found == pytest.approx(expected, abs=k * ERROR)


def test_crowds_ring_before_a_single_candidate_that_weighs_more():
    """Nobody of the first block may ring yet, and somebody of each block behind it."""
    crowd = 10**17
    blocks = [(0, 1), (1, crowd), (2, crowd)]
    found = expected_draws(blocks, Fraction(1), 1, guard=-math.inf, first=2)
    assert found == pytest.approx((1, 1 / (1 + math.exp(-1))), abs=ERROR)


def test_hits_end_with_the_first_blocks():
    """Two blocks that still ring long after them are no part of them."""
    blocks = [(0, 1), (100, 1), (200, 50), (201, 50)]
    found = expected_draws(blocks, Fraction(1), 52, guard=-math.inf, first=1)
    assert found == pytest.approx((52, 1), abs=52 * ERROR)


def test_nobody_is_drawn_where_nobody_is_or_the_guard_is_certain():
    assert expected_draws([], Fraction(1), 3, guard=-math.inf, first=0) == (0, 0)
    assert expected_draws([(0, 5)], Fraction(1), 3, guard=math.inf, first=1) == (0, 0)


N = 1000
SIX_SIGMA = 6


@pytest.mark.slow
@pytest.mark.parametrize("universe", [None, 500])
def test_expectations_against_a_thousand_draws(universe):
    """On a profile too large for whole laws. A mechanism at three quarters of the cost is told
    apart.
    """
    profile = Profile([(60, 2), (55, 3), (40, 5), (30, 20), (3, 100)], universe=universe)
    k, price = 7, {"epsilon": 1, "delta": "1e-3"}

    def made(price):
        open_ones = [
            SetMargin(**price, k=k),
            SharpMargin(**price, k=k),
            LimitedDomain(**price, k=k, rank=12),
        ]
        if universe is None:
            return open_ones
        pure = {"epsilon": price["epsilon"]}
        return [*open_ones, Exponential(**price, k=k), JointExponential(**pure, k=k)]

    told_apart = 0
    for mechanism, weaker in zip(made(price), made({**price, "epsilon": "0.75"}), strict=True):
        hits = np.array([_hits(mechanism, profile, 40, seed) for seed in range(N)])
        error = SIX_SIGMA * hits.std() / math.sqrt(N)
        assert abs(hits.mean() - mechanism.expect(profile, k)[1]) <= error
        told_apart += abs(hits.mean() - weaker.expect(profile, k)[1]) > error
    assert told_apart >= (3 if universe is None else 4)


def _hits(mechanism, profile, least, seed):
    outcomes = draw_outcomes(mechanism, profile, SeededCoins(f"expect {seed}"))
    return sum(outcome.score is not None and outcome.score >= least for outcome in outcomes)


def test_who_has_no_formula_is_drawn_with_an_error():
    profile = Profile(LEVELS, universe=8)
    mechanism = PermuteAndFlip(epsilon=1, k=3)
    assert mechanism.expect(profile, 3) is None
    found = expectation(mechanism, profile, 3)
    _, hits = by_sequences(mechanism, profile, 7)
    assert 0 < found.error < 0.3
    assert abs(found.hits - hits) < 3 * found.error
    assert found == expectation(mechanism, profile, 3)  # the same draws each time
    sure = expectation(PermuteAndFlip(epsilon=9, k=2), Profile([(99, 2)], universe=3), 2)
    assert sure == (2, 2, 3 / DRAWS)
