"""What all mechanisms share: defaults, limits, draws of one, leads, the registry, stages, and what
laws state of themselves.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest

import privmax
from privmax import (
    Choosing,
    Exponential,
    GapTest,
    Guards,
    JointExponential,
    LimitedDomain,
    NestedMargin,
    NoisyMaximum,
    ParameterError,
    PermuteAndFlip,
    Profile,
    RestrictedExponential,
    SetMargin,
    SharpMargin,
    Stage,
)
from privmax.mechanisms import nested_margin, registry, set_margin
from privmax.mechanisms.contract import Law, draw_candidate, search_lead
from privmax.mechanisms.peeling import sequence_law
from privmax.mechanisms.registry import build, check_name, registered_name
from privmax.mechanisms.sets import Sets
from privmax.mechanisms.stages import default_stages
from privmax.noise.coins import SYSTEM

COST = {"epsilon": 1, "delta": "1e-6"}
CLEAR = Profile([(10**6, 1), (9, 4)], universe=5)

MADE_FOR_TWO = [
    Exponential(epsilon=1, k=2),
    PermuteAndFlip(epsilon=1, k=2),
    JointExponential(epsilon=1, k=2),
    LimitedDomain(**COST, rank=3, k=2),
    SharpMargin(**COST, k=2),
    GapTest(**COST, k=2),
    SetMargin(**COST, k=2),
]


@pytest.mark.parametrize("mechanism", MADE_FOR_TWO, ids=lambda one: type(one).__name__)
def test_one_item_is_not_drawn_from_what_was_made_for_two(mechanism):
    with pytest.raises(ParameterError, match=r"^k=2 is not allowed: draw and joint"):
        mechanism.draw(CLEAR, SYSTEM)


@pytest.mark.parametrize("kind", [SharpMargin, GapTest, SetMargin, NestedMargin])
def test_one_item_is_drawn_where_no_number_is_given(kind):
    mechanism = kind(**COST)
    assert mechanism.k == 1
    assert mechanism.draw(Profile([(10**6, 1)]), SYSTEM).score == 10**6


def test_the_order_is_released_but_for_sets_of_more_than_one():
    assert Exponential(epsilon=1).ranked is True
    assert Exponential(epsilon=1, k=2).ranked is True
    for kind in (GapTest, SetMargin):
        assert kind(**COST).ranked is True
        assert kind(**COST, k=2).ranked is False


# Limits


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_a_cost_beyond_a_billion_is_refused(kind):
    assert kind(epsilon=10**9).epsilon == 10**9
    with pytest.raises(ParameterError, match=r"^epsilon='1000000001' is not allowed"):
        kind(epsilon=10**9 + 1)


def test_lists_of_ten_thousand_are_drawn_and_longer_ones_refused():
    assert Exponential(epsilon=1, k=10_000).k == 10_000
    with pytest.raises(ParameterError, match=r"^k=10001 .* at most 10,000 items"):
        Exponential(epsilon=1, k=10_001)


def test_a_rank_that_comes_twice_is_refused():
    with pytest.raises(ParameterError, match=r"^ranks="):
        NestedMargin(**COST, ranks=(2, 2))
    with pytest.raises(ParameterError, match=r"^ranks="):
        Guards((1, 4, 4), (1, 1, 1), share="0.1")


# Defaults


def test_scores_move_by_1_where_no_sensitivity_is_given():
    choosing = Choosing(epsilon="0.7", delta="1e-6", growth=3)
    assert choosing.scale() == choosing.scale(1)
    assert choosing.threshold() == choosing.threshold(1)
    restricted, window = RestrictedExponential(epsilon="0.7", near=2), CLEAR.window(10)
    assert restricted.law(window) == restricted.law(window, 1)


def test_everybody_at_once_is_an_option_only_where_guards_say_so_or_none_is_left():
    ranks = (1, 4)
    plain = SharpMargin(**COST, guards=Guards(ranks, (1, 1), share="0.1"))
    full = SharpMargin(**COST, guards=Guards(ranks, (1, 1), share="0.1", full=1))
    assert [rank for rank, _ in plain.options(100)] == [1, 4]
    assert [rank for rank, _ in full.options(100)] == [1, 4, 100]
    assert [rank for rank, _ in plain.options(1)] == [1]


def test_the_usual_ranks_reach_a_million_and_are_the_ones_that_are_public():
    mechanism = NestedMargin(**COST)
    assert mechanism.ranks == nested_margin.FOURFOLD == privmax.FOURFOLD
    assert 10**6 < mechanism.ranks[-1] < 2 * 10**6


# What is drawn, and what laws state


def test_nobody_is_drawn_from_the_floor_of_an_open_universe_but_diagnostics_are():
    window = Profile([(9, 1)]).window(5)
    outcome = draw_candidate(window, 1, SYSTEM, {"near_maximizers": 4})
    assert outcome.score is None
    assert outcome.diagnostics == {"near_maximizers": 4}


def test_a_law_that_is_scaled_scales_its_error():
    law = Sets(((9, 1),), None, {(1,): 1.0}, error=0.5).scale(0.25)
    assert (law.chances, law.error) == ({(1,): 0.25}, 0.125)


@pytest.mark.parametrize("universe", [None, 3, 9])
def test_the_law_of_a_set_has_the_floor_of_that_of_its_items(universe):
    mechanism, profile = GapTest(**COST, k=2), Profile([(90, 2), (5, 1)], universe=universe)
    assert mechanism.sets(profile)[None].floor == mechanism.law(profile).floor


def test_lists_state_the_errors_of_all_their_rounds():
    """Every round is off by one in a hundred."""
    window = Profile([(9, 3), (8, 3)], universe=6).window(5)

    def chances(left):
        return [1.01 * count / sum(number for _, number in left) for _, count in left]

    law = sequence_law(window, window.first(6), 3, chances, relative=0.01)
    assert law.chances[0, 0, 0] - 1 / 20 <= law.relative / 20
    assert law.relative < 0.1


def test_lists_state_the_absolute_errors_of_all_their_rounds():
    """Each of three certain draws is off by one in a hundred."""
    window = Profile([(9, 3)], universe=3).window(5)
    law = sequence_law(window, [(0, 3)], 3, lambda left: [1.01], error=0.01)
    assert law.chances[0, 0, 0] - 1 <= law.error
    assert law.error < 0.1


@pytest.mark.parametrize("universe", [3, 9])
def test_the_law_of_a_list_has_the_floor_of_that_of_its_items(universe):
    profile = Profile([(90, 2), (5, 1)], universe=universe)
    for mechanism in (Exponential(epsilon=1, k=2), SharpMargin(**COST, k=2)):
        for law in mechanism.sequences(profile).values():
            assert law.floor == mechanism.law(profile).floor


def test_two_are_not_both_the_best_where_there_is_one_best():
    mechanism = SetMargin(epsilon=1, k=2)
    assert mechanism._chance_best(Profile([(9, 1), (8, 3)], universe=4)) == 0


def test_a_rank_is_picked_by_its_prior_and_its_threshold():
    """With what probability each is picked, from the definition; everybody at once has no
    threshold, but the highest score.
    """
    delta, share = 1e-3, 0.25
    guards = Guards((1, 3), (2, 1), share=share, full="0.5")
    mechanism = SharpMargin(epsilon=1, delta=delta, guards=guards)
    scores = [9, 9, 7, 4, 1, 0]
    levels = [(9, 2), (7, 1), (4, 1), (1, 1)]
    weights = {6: 0.5 * math.exp(-share * scores[0])}
    for rank, prior in ((1, 2), (3, 1)):
        threshold = scores[rank] + 1 + math.log(rank / delta) / (1 - share)
        weights[rank] = prior * math.exp(-share * threshold)
    found = mechanism.joint(Profile(levels, universe=6))
    assert set(found) == set(weights)
    for rank, law in found.items():
        picked = math.fsum([*(chance for _, _, chance in law.blocks), law.none])
        assert picked == pytest.approx(weights[rank] / sum(weights.values()), rel=1e-9)


def test_a_noisy_maximum_leaves_out_no_more_than_it_says():
    """Beyond a distance d noise of scale 1/ε lies with probability 2e^(−εd)/(1 + e^ε), and 2^−46
    is the most that the law leaves out.
    """
    for epsilon in (8, 1, "0.37", "0.01"):
        mechanism = NoisyMaximum(epsilon=epsilon)
        rate, law = float(mechanism.epsilon), mechanism.law(CLEAR)
        distance = max(law) - 10**6
        assert sorted(law) == list(range(10**6 - distance, 10**6 + distance + 1))
        assert 2 * math.exp(-rate * distance) / (1 + math.exp(rate)) <= 2**-46
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)


class _SecondFromAfar(Exponential):
    """Draws the second of two in rare cases if it is six behind, and otherwise never, as its law
    tells without a word on zeros.
    """

    def joint(self, profile):
        window = profile.window(100)
        chance = 2e-12 if window.depth(2) == 6 else 0.0
        first, second = (window.top - depth for depth, _ in window.blocks())
        return {None: Law(((first, 1, 1 - chance), (second, 1, chance)), 0.0, error=1e-12)}


def test_a_probability_of_zero_is_meant_unless_a_law_says_otherwise():
    """No epsilon allows for it, however rare."""
    found = privmax.audit(_SecondFromAfar(epsilon=1), scores=[(9, 3)], growth=1)
    assert not found.holds


# Leads


def test_the_lead_of_one_item_is_searched_where_no_number_is_given():
    def chance(profile):
        return 1.0 if profile.window(100).counts == (1,) and profile.top() >= 5 else 0.0

    assert search_lead(chance, candidates=None, near=None, success="0.95") == 5


@pytest.mark.parametrize(("among", "expected"), [(10, 1), (11, 0)])
def test_no_lead_at_all_is_told_from_a_lead_of_one(among, expected):
    """Of 11 candidates at the same score, one is among the first ten with 91 %."""
    found = search_lead(lambda profile: 1.0, candidates=11, near=among, success="0.95")
    assert found == expected


@pytest.mark.parametrize(("success", "expected"), [("0.81", 0), ("0.82", 1)])
def test_no_lead_is_enough_for_two_where_both_are_among_the_best_by_luck(success, expected):
    """Two of 11 candidates at the same score are both among the first ten with 9/11."""
    found = search_lead(lambda profile: 1.0, candidates=11, near=10, success=success, k=2)
    assert found == expected


def test_a_probability_that_is_just_reached_is_enough():
    assert search_lead(lambda profile: 1.0, candidates=4, near=3, success="0.75") == 0


def test_without_a_lead_all_scores_are_zero():
    def chance(profile):
        return 1.0 if profile.top() == 0 else 0.0

    assert search_lead(chance, candidates=10, near=9, success="0.5") == 0


def test_no_lead_is_needed_where_there_are_no_others():
    """Even by what releases nothing."""
    assert search_lead(lambda profile: 0.0, candidates=5, near=5, success="0.95") == 0


@pytest.mark.parametrize("guess", [0, 1, 4, 5, 6, 7, 100])
@pytest.mark.parametrize("least", [0, 1, 2, 5, 90])
def test_where_a_search_begins_changes_no_lead(guess, least):
    """Where 0 is enough, all 11 candidates count as the best: 10 of 11 is above 0.9."""

    def chance(profile):
        return 1.0 if profile.top() >= least else 0.0

    found = search_lead(chance, candidates=11, near=10, success="0.9", guess=guess)
    assert found == least


def test_a_good_guess_of_a_lead_asks_for_two_probabilities():
    asked = []

    def chance(profile):
        asked.append(profile.top())
        return 1.0 if profile.top() >= 500 else 0.0

    search_lead(chance, candidates=None, near=1, success="0.95", guess=500)
    assert asked == [500, 499]


@pytest.mark.parametrize("guess", [0, 9])
def test_a_lead_that_is_never_enough_is_refused_from_any_guess(guess):
    with pytest.raises(ParameterError, match="no lead reaches it"):
        search_lead(lambda profile: 0.0, candidates=None, near=1, success="0.95", guess=guess)


# The registry


@pytest.mark.parametrize("name", registry.MECHANISMS)
def test_who_abstains_in_a_closed_universe_is_known_in_advance(name):
    taken = registry.MECHANISMS[name].parameters
    price = {key: value for key, value in COST.items() if key in taken}
    mechanism = build(name, **price, **registry.MECHANISMS[name].requires)
    silent = [mechanism.law(profile).none > 1e-9 for profile in LEVEL]
    assert any(silent) == registry.MECHANISMS[name].abstains


LEVEL = [Profile([(5, 3)], universe=2000), Profile([(2, 1), (1, 1)], universe=10**7)]


def test_a_delta_that_one_draw_has_no_use_for_is_left_out():
    assert build("permute-and-flip", **COST) == PermuteAndFlip(epsilon=1)
    assert build("permute-and-flip", **COST, k=2) == PermuteAndFlip(**COST, k=2)


@pytest.mark.parametrize("name", ["mean", "sample"])
def test_a_name_that_resembles_none_is_answered_with_an_example(name):
    with pytest.raises(ParameterError, match="For example nested-margin"):
        check_name(name)


def test_a_name_that_is_misspelled_is_answered_with_the_right_one():
    with pytest.raises(ParameterError, match=r"Did you mean large-margin-truncated\?"):
        check_name("large-margin-trunkated")


@pytest.mark.parametrize(
    ("name", "missing"), [("limited-domain", "rank"), ("choosing", "growth"), ("gap-test", "delta")]
)
def test_a_mechanism_is_not_built_without_what_it_needs(name, missing):
    given = {"epsilon": 1, "delta": "1e-6", "rank": 3, "growth": 1}
    taken = {key: given[key] for key in registry.MECHANISMS[name].parameters if key in given}
    del taken[missing]
    with pytest.raises(ParameterError, match=f"^{missing} is required: {name} needs it"):
        build(name, **taken)


def test_a_class_of_the_same_name_is_not_the_one_that_is_registered():
    other = type("Exponential", (Exponential,), {})
    assert registered_name(Exponential(epsilon=1)) == "exponential"
    assert registered_name(other(epsilon=1)) is None


# Stages


def test_a_cascade_ends_with_the_stage_that_takes_in_the_whole_universe():
    stages = (
        Stage(2, 2, silence="0.25", part="0.3"),
        Stage(2, 9, silence="0.5", part="0.3"),
        Stage(1, 20, silence=1, part="0.3"),
    )
    mechanism = SetMargin(**COST, k=2, stages=stages)
    left = [Fraction(1), Fraction(3, 4), Fraction(3, 8)]
    for universe, number in ((None, 3), (10, 3), (9, 2), (3, 2), (2, 1)):
        expected = list(zip(stages, left, strict=True))[:number]
        assert list(mechanism.budgets(universe)) == expected


@pytest.mark.parametrize("k", [2, 10, 1000])
def test_sets_shrink_by_a_fifth_and_in_the_end_one_at_a_time(k):
    sizes = [stage.size for stage in default_stages(k, Fraction(1, 10))]
    assert (sizes[0], sizes[-1]) == (k, 1)
    for before, after in pairwise(sizes):
        assert after == before - 1 or abs(after - 0.8 * before) <= 1


def test_the_best_set_alone_is_tested_second_unless_k_is_large_against_epsilon():
    second = [default_stages(10, Fraction(1, part))[1] for part in (1, 2, 4)]
    assert [(stage.size, stage.width) for stage in second] == [(10, 10), (10, 10), (8, 216)]
    assert second[0].silence > second[1].silence
    tests = [k for k in range(1, 60) if any(s.width == k for s in default_stages(k, Fraction(1)))]
    assert tests == list(range(1, 31))
    assert [stage.width for stage in default_stages(1, Fraction(1))] == [1, 202]


def test_the_law_of_a_set_has_no_weights_beyond_floats():
    """Two stand out by a million."""
    mechanism = SetMargin(**COST, k=2, stages=(Stage(2, 3, silence=1),))
    [law] = mechanism.sets(Profile([(10**6, 2), (5, 2)])).values()
    assert law.chances[2, 0, 0] == 1


# Windows


def test_all_guards_of_a_nested_margin_are_light_at_the_floor():
    """A winner without rivals is released but for what clipping may move."""
    for ranks in ((1, 2, 3), (1, 4, 1000)):
        law = NestedMargin(**COST, ranks=ranks).law(Profile([(10**6, 1)]))
        assert law.none <= 2**-24


def test_the_crowd_of_the_last_rank_is_light_at_the_floor():
    """With a small epsilon and a large delta it weighs more than those who may slip."""
    mechanism = NestedMargin(epsilon="0.01", delta="0.5", ranks=(1, 1000))
    assert mechanism.law(Profile([(10**6, 1)])).none <= 2**-24


def test_the_least_favored_rank_is_picked_where_only_it_has_a_gap_behind_it():
    guards = Guards((1, 2), (1, "1e-30"), share="0.1")
    law = SharpMargin(**COST, guards=guards).joint(Profile([(10**6, 2)]))[2]
    assert math.fsum([*(chance for _, _, chance in law.blocks), law.none]) >= 1 - 2**-24


@pytest.mark.parametrize("scores", [[(900, 40)], [(900, 1), (1, 39)], [(1, 39)]])
def test_numpy_is_loaded_before_a_set_is_drawn_whatever_the_data(monkeypatch, scores):
    """Loading takes long and may fail: neither may follow from what was drawn."""
    loaded = []
    monkeypatch.setattr(set_margin, "load", lambda: loaded.append(True))
    for k, many in ((1, False), (40, True)):
        loaded.clear()
        mechanism = SetMargin(epsilon=1, delta="1e-6", k=k)
        mechanism.subset(Profile(scores, universe=500), SYSTEM)
        assert bool(loaded) is mechanism._may_need_floats(500) is many
