"""Joint exponential top-k: audits, walks, counts against enumeration, leads."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privmax
from privmax import Exponential, JointExponential, Privacy, Profile
from privmax.errors import ParameterError
from privmax.mechanisms.joint_exponential import _Lists, _outcome
from privmax.noise.coins import SYSTEM
from privmax.testing import walk


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > found.error + 1e-6


def test_coarse_scores_stay_within_the_price():
    assert privmax.audit(
        JointExponential(epsilon=1, k=2), candidates=3, highest=4, sensitivity=2
    ).holds


SCORES = (6, 5, 5, 3, 0)
PROFILE = Profile([(6, 1), (5, 2), (3, 1)], universe=5)


def enumerated(k, rate):
    """Every list of places with its weight."""
    ranked = sorted(SCORES, reverse=True)
    weights = {}
    for places in permutations(range(len(SCORES)), k):
        shortfall = max(ranked[j] - SCORES[place] for j, place in enumerate(places))
        weights[places] = math.exp(-rate * max(0, shortfall)), shortfall
    return weights


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_lists_are_counted_as_enumeration_counts_them(k):
    lists = _Lists([(0, 1), (1, 2), (3, 1), (6, 1)], k)
    weights = enumerated(k, 0.5)
    for shortfall in lists.shortfalls:
        assert math.prod(lists._choices(shortfall)) == sum(
            short <= shortfall for _, short in weights.values()
        )


@pytest.mark.parametrize("k", [2, 3])
def test_laws_against_enumeration(k):
    mechanism = JointExponential(epsilon=1, k=k)
    weights = enumerated(k, 0.5)
    total = sum(weight for weight, _ in weights.values())
    expected, first = {}, {}
    for places, (weight, _) in weights.items():
        key = tuple(SCORES[place] for place in places)
        expected[key] = expected.get(key, 0.0) + weight / total
        first[key[0]] = first.get(key[0], 0.0) + weight / total
    law = mechanism.sequences(PROFILE)[None]
    found = {
        tuple(law.blocks[b][0] for b in blocks): chance for blocks, chance in law.chances.items()
    }
    assert found == pytest.approx(expected, abs=1e-12)
    assert {score: chance for score, _, chance in mechanism.law(PROFILE).blocks} == pytest.approx(
        first, abs=1e-12
    )


def test_every_script_of_coins():
    mechanism, profile = JointExponential(epsilon=4, k=2), Profile([(3, 1), (2, 2)], universe=4)

    def draw(coins):
        return tuple((o.score, o.index) for o in mechanism.ranking(profile, coins))

    finished, left = walk(draw, 16)
    assert left < 0.01
    law = mechanism.sequences(profile)[None]
    for blocks, chance in law.chances.items():
        lists = [()]
        for block in blocks:
            score, count = law.blocks[block]
            lists = [
                (*done, (score, i))
                for done in lists
                for i in range(count)
                if (score, i) not in done
            ]
        for one in lists:
            assert -1e-9 <= chance / len(lists) - finished.get(one, Fraction(0)) <= left + 1e-9


def test_a_universe_beyond_listing_and_a_clear_top_ten():
    levels = [(1000 * (20 - rank), 1) for rank in range(10)]
    mechanism = JointExponential(epsilon=1, k=10)
    found = mechanism.ranking(Profile(levels, universe=10**30), SYSTEM)
    assert [outcome.score for outcome in found] == [score for score, _ in levels]


def test_it_beats_peeling_in_a_small_universe_and_loses_in_a_large_one():
    """Why it is here: one price for the list against k prices, but a rate half as steep and K^k
    lists.
    """
    joint, peeled = JointExponential(epsilon=1, k=10), Exponential(epsilon=1, k=10)
    assert joint.lead(candidates=100) < peeled.lead(candidates=100)
    assert joint.lead(candidates=10**6) > peeled.lead(candidates=10**6)


def test_mutant_with_the_rate_of_single_candidates():
    class Steep(JointExponential):
        def _view(self, profile):
            window, lists, rate = super()._view(profile)
            return window, lists, 2 * rate

    assert refused(Steep(epsilon=1, k=2), candidates=4, highest=4)


def test_price_and_bad_arguments():
    assert JointExponential(epsilon=1, k=10).privacy() == Privacy(1)
    with pytest.raises(ParameterError, match="universe"):
        JointExponential(epsilon=1, k=2).ranking(Profile([(5, 1)]), SYSTEM)
    with pytest.raises(ParameterError, match="k"):
        JointExponential(epsilon=1, k=0)
    with pytest.raises(ParameterError, match="k"):
        JointExponential(epsilon=1, k=9).ranking(Profile([(5, 1)], universe=3), SYSTEM)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_lists_are_counted_from_one_shortfall_to_the_next(gaps, k):
    """As many as the product over all places says, at every shortfall that there is."""
    depths = list(accumulate(gap + (place > 0) for place, (gap, _) in enumerate(gaps)))
    blocks = [(depth - depths[0], count) for depth, (_, count) in zip(depths, gaps, strict=True)]
    k = min(k, sum(count for _, count in blocks))
    ordered = [depth for depth, count in blocks for _ in range(count)]
    lists = _Lists(blocks, k)
    for shortfall, size in zip(lists.shortfalls, lists._sizes, strict=True):
        within = [sum(one <= best + shortfall for one in ordered) for best in ordered[:k]]
        assert size == math.prod(count - place for place, count in enumerate(within))
    assert lists.shortfalls == sorted(
        {depth - best for depth in ordered for best in ordered[:k] if depth >= best}
    )


def test_who_stands_below_the_window_is_told_from_who_does_not():
    profile = Profile([(10**6, 1), (10**6 - 1, 1)], universe=10)
    mechanism = JointExponential(epsilon=1, k=2)
    window, lists, _ = mechanism._view(profile)
    below = [_outcome(window, lists, position).below for position in range(10)]
    assert below == [False] * 2 + [True] * 8
    [found] = mechanism.sequences(profile).values()
    assert 10**6 - 200 < found.floor < 10**6 - 1
    [found] = mechanism.sequences(Profile([(3, 1), (2, 1)], universe=2)).values()
    assert found.floor is None
