"""Max of Laplaces: within its price on all small neighbours, drawn as its law says, at the leads
measured before.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import privmax
from privmax import MaxOfLaplaces, ParameterError, PermuteAndFlip, Privacy, Profile
from privmax.mechanisms.contract import CLIP_LOSS
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import SeededCoins

BOTH = [MaxOfLaplaces(epsilon=1), MaxOfLaplaces(epsilon="0.3", neighbors=REPLACE)]


def refused(mechanism, **options):
    """The audit found a pair that needs clearly more than the claim."""
    found = privmax.audit(mechanism, **options)
    return found.delta > found.error + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", BOTH, ids=repr)
def test_random_profiles_stay_within_its_price(mechanism):
    assert privmax.audit(mechanism, candidates=4, highest=30, trials=10, coins=SeededCoins(1)).holds


@pytest.mark.parametrize(("mechanism", "depth"), [(BOTH[0], 15), (BOTH[1], 100)], ids=repr)
def test_fifteen_scales_down_it_costs_nearly_all_of_its_price(mechanism, depth):
    found = privmax.audit(mechanism, scores=[(depth, 0)])
    assert 0.9 < found.tightness < 1


@pytest.mark.slow
def test_mutant_noise_of_scale_one_over_epsilon_under_replace():
    assert refused(MaxOfLaplaces(epsilon=1), neighbors=REPLACE)
    assert privmax.audit(MaxOfLaplaces(epsilon=1, neighbors=REPLACE)).holds
    assert privmax.audit(
        MaxOfLaplaces(epsilon=1), neighbors=REPLACE, claim=Privacy(2)
    ).holds  # what it does cost


@pytest.mark.slow
def test_mutant_noise_scaled_by_epsilon_instead_of_its_inverse():
    assert refused(MaxOfLaplaces(epsilon=2), claim=Privacy(Fraction(1, 2)))
    assert privmax.audit(MaxOfLaplaces(epsilon=Fraction(1, 2)), claim=Privacy(Fraction(1, 2))).holds


@pytest.mark.slow
def test_mutant_sensitivity_left_out_of_the_scale():
    class Unscaled(MaxOfLaplaces):
        def joint(self, profile):
            return super().joint(Profile(profile._levels, universe=profile.universe))

    assert refused(Unscaled(epsilon=1), sensitivity=2)
    assert privmax.audit(MaxOfLaplaces(epsilon=1), sensitivity=2).holds


@pytest.mark.parametrize(("neighbors", "c"), [(ADD_REMOVE, 1), (REPLACE, 2)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_law_of_two_candidates(neighbors, c, sensitivity):
    """P(the lower one) = e^−x·(1/2 + x/4), x being the distance in scales."""
    mechanism = MaxOfLaplaces(epsilon="0.7", neighbors=neighbors)
    law = mechanism.law(Profile([(9, 1), (4, 1)], universe=2, sensitivity=sensitivity))
    x = 5 * 0.7 / (c * sensitivity)
    assert law.of(4) == pytest.approx(math.exp(-x) * (0.5 + x / 4), abs=1e-11)
    assert law.of(9) + law.of(4) == pytest.approx(1)


def test_law_against_noise_summed_on_a_grid():
    """Four candidates, the noise cut into cells of 1/250: the largest cell wins, ties of cells
    shared.
    """
    scores, step = [5, 4, 4, 1], 0.004
    scale = 2 / 0.7
    edges = [z * step for z in range(-20000, 20001)]

    def cdf(x):
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    chances = [0.0] * 4
    below = [cdf(edges[0] - score) for score in scores]
    for edge in edges[1:]:
        upto = [cdf(edge - score) for score in scores]
        for i in range(4):
            middle = [(a + b) / 2 for a, b in zip(below, upto, strict=True)]
            chances[i] += (upto[i] - below[i]) * math.prod(middle[:i] + middle[i + 1 :])
        below = upto
    law = MaxOfLaplaces(epsilon="0.7", neighbors=REPLACE).law(
        Profile([(5, 1), (4, 2), (1, 1)], universe=4)
    )
    assert [law.of(score) for score in scores] == pytest.approx(chances, abs=1e-6)


@pytest.mark.parametrize(
    "universe", [2, 1000, 10**12, 2**1000], ids=["2", "10^3", "10^12", "2^1000"]
)
@pytest.mark.parametrize("mechanism", BOTH, ids=repr)
def test_clipping_moves_less_than_it_says(mechanism, universe):
    """All others stand so low that they never win, but for the clip."""
    law = mechanism.law(Profile([(10**6, 1)], universe=universe))
    assert law.floor > 0
    assert CLIP_LOSS / 100 < 1 - law.best() <= CLIP_LOSS


@pytest.mark.parametrize(("neighbors", "c"), [(ADD_REMOVE, 1), (REPLACE, 2)])
@pytest.mark.parametrize("universe", [2, 1000, 10**12])
def test_it_clips_as_deep_as_its_page_says(neighbors, c, universe):
    mechanism = MaxOfLaplaces(epsilon="0.1", neighbors=neighbors)
    law = mechanism.law(Profile([(10**6, 1)], universe=universe))
    assert law.floor == 10**6 - math.ceil(10 * c * math.log(6 * universe * 2**24))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (10**3, (20, 15, 0)),
        (10**6, (34, 29, 20)),
        (10**12, (62, 56, 47)),
        (2**100, (145, 140, 131)),
    ],
    ids=["10^3", "10^6", "10^12", "2^100"],
)
def test_leads(candidates, expected):
    mechanism = MaxOfLaplaces(epsilon=1, neighbors=REPLACE)
    leads = [mechanism.lead(candidates=candidates, near=near) for near in (1, 10, 1000)]
    assert leads == pytest.approx(expected, abs=1)
    flip = PermuteAndFlip(epsilon=1, neighbors=REPLACE)
    assert all(
        flip.lead(candidates=candidates, near=near) <= lead
        for near, lead in zip((1, 10, 1000), leads, strict=True)
    )


@pytest.mark.parametrize("universe", [10**12, 2**1000], ids=["10^12", "2^1000"])
def test_huge_universes_cost_a_few_draws(universe):
    profile = Profile([(900, 3), (899, 2), (10, 10**6)], universe=universe)
    for mechanism in BOTH:
        law = mechanism.law(profile)
        assert {mechanism.draw(profile, SYSTEM).score for _ in range(5)} <= {
            score for score, _, _ in law.blocks
        }


def test_a_clear_winner_wins_and_one_candidate_is_always_drawn():
    assert MaxOfLaplaces(epsilon=1).draw(Profile([(500, 1)], universe=2**100), SYSTEM).score == 500
    alone = Profile([(5, 1)], universe=1)
    assert MaxOfLaplaces(epsilon=1).law(alone).best() == 1
    assert MaxOfLaplaces(epsilon=1).draw(alone, SYSTEM).score == 5


def test_price_and_description():
    assert MaxOfLaplaces(epsilon="0.7").privacy() == Privacy("0.7")
    assert (
        repr(MaxOfLaplaces(epsilon="0.7")) == "MaxOfLaplaces(epsilon=0.7, neighbors='add-remove')"
    )


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("epsilon", {"epsilon": 0}),
        ("epsilon", {"epsilon": "many"}),
        ("neighbors", {"epsilon": 1, "neighbors": "friends"}),
    ],
)
def test_bad_arguments_are_named(argument, options):
    with pytest.raises(ParameterError, match=argument):
        MaxOfLaplaces(**options)


@pytest.mark.parametrize(
    "ask", [lambda m, p: m.draw(p, SYSTEM), lambda m, p: m.law(p), lambda m, p: m.joint(p)]
)
def test_an_open_universe_is_refused(ask):
    with pytest.raises(ParameterError, match="universe"):
        ask(MaxOfLaplaces(epsilon=1), Profile([(5, 1)]))
