"""The stable maximum: audits, mutants, walks, its law against a sum, and the lead it needs."""

from __future__ import annotations

import math

import pytest

import privmax
from privmax import DistanceTest, ParameterError, Privacy, Profile, StableMaximum
from privmax.mechanisms.stable_maximum import lead_steps
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import walk

WINNERS = [(lead, 0, 0) for lead in range(0, 22, 3)]
"""One candidate ahead of two others, from not at all to clearly."""


def tail(epsilon, least, reach=4000):
    """P(Z ≥ least) for discrete Laplace noise of scale 1/ε, added up."""
    unit = math.tanh(epsilon / 2)
    return math.fsum(unit * math.exp(-abs(k) * epsilon) for k in range(least, reach))


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_scores_on_a_grid_of_several_steps_to_a_record_stay_within_the_price(neighbors):
    mechanism = StableMaximum(epsilon=1, delta="0.01", neighbors=neighbors)
    assert privmax.audit(mechanism, candidates=3, highest=5, sensitivity=2).holds
    assert privmax.audit(mechanism, scores=[(13, 1), (14, 3), (16, 0)], sensitivity=3).holds


@pytest.mark.parametrize(
    ("neighbors", "sensitivity", "steps"),
    [
        (ADD_REMOVE, 1, [0, 1, 2, 3, 4, 5, 6]),
        (REPLACE, 1, [0, 1, 1, 2, 2, 3, 3]),
        (ADD_REMOVE, 2, [0, 1, 1, 2, 2, 3, 3]),
        (REPLACE, 3, [0, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_steps_to_a_shared_lead(neighbors, sensitivity, steps):
    for lead, expected in enumerate(steps):
        levels = [(lead + 9, 1), (9, 1)] if lead else [(9, 2)]
        profile = Profile(levels, sensitivity=sensitivity)
        assert lead_steps(profile.window(100), profile, neighbors) == expected


def test_law_against_a_sum():
    mechanism = StableMaximum(epsilon="0.4", delta="0.01", neighbors=REPLACE)
    threshold = mechanism._test().threshold()
    for lead in range(1, 40):
        law = mechanism.law(Profile([(lead + 5, 1), (5, 3)], universe=4))
        distance = max(0, math.ceil(lead / 2) - 1)
        assert law.of(lead + 5) == pytest.approx(tail(0.4, threshold + 1 - distance), abs=1e-12)
        assert law.of(5) == 0
        assert law.none + law.of(lead + 5) == pytest.approx(1)


def test_clipping_moves_less_than_it_says():
    mechanism = StableMaximum(epsilon="0.5", delta="0.01")
    for profile in (Profile([(10**9, 1)]), Profile([(10**9, 1)], universe=2)):
        assert 1 - 2**-23 < mechanism.law(profile).best() < 1


@pytest.mark.parametrize(("neighbors", "c"), [(ADD_REMOVE, 1), (REPLACE, 2)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_it_clips_as_deep_as_its_page_says(neighbors, c, sensitivity):
    mechanism = StableMaximum(epsilon="0.5", delta="0.01", neighbors=neighbors)
    law = mechanism.law(Profile([(10**9, 1)], universe=2, sensitivity=sensitivity))
    records = mechanism._test().threshold() + math.ceil(math.log(2**24) / 0.5) + 1
    assert law.floor == 10**9 - c * sensitivity * records


# Mutants


class _NoLessOne(StableMaximum):
    """Counts the records to a shared lead, not those before one more could bring it about."""

    def _distance(self, window, profile):
        return lead_steps(window, profile, self.neighbors)


class _RealTail(DistanceTest):
    """Takes the threshold of real-valued noise, ln(1/(2δ))/ε, as it is."""

    def threshold(self):
        return math.floor(math.log(1 / (2 * self.delta)) / self.epsilon)


class _TailAtTwiceDelta(DistanceTest):
    """Lets bad data pass with probability δ on either side."""

    def threshold(self):
        return DistanceTest(epsilon=self.epsilon, delta=2 * self.delta).threshold()


class _OneSided(DistanceTest):
    """Grows as fast as e^ε allows up to 1, and forgets that failing must not become too rare
    either.
    """

    def law(self, distance):
        return min(1.0, float(self.delta) * math.exp(self.epsilon * distance))


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutant_distance_without_the_less_one(neighbors):
    options = {"epsilon": 1, "delta": "0.02", "neighbors": neighbors}
    assert privmax.audit(StableMaximum(**options), scores=[*WINNERS, (1, 0), (2, 0)]).holds
    assert refused(_NoLessOne(**options), scores=[*WINNERS, (1, 0), (2, 0)])


@pytest.mark.parametrize("test", [_RealTail, _TailAtTwiceDelta, _OneSided])
def test_mutant_tests(test):
    class Mutant(StableMaximum):
        def _test(self):
            return test(epsilon=self.epsilon, delta=self.delta)

    options = {"universe": "open", "scores": [(lead, 0, 0) for lead in range(1, 12)]}
    assert privmax.audit(StableMaximum(epsilon=1, delta="0.01"), **options).holds
    assert refused(Mutant(epsilon=1, delta="0.01"), **options)


# The draw, and the lead


def brackets(draw, law, depth, unfinished):
    finished, left = walk(draw, depth)
    assert left <= unfinished
    assert finished.keys() <= law.keys()
    return all(
        finished.get(o, 0) - 1e-9 <= p <= finished.get(o, 0) + left + 1e-9 for o, p in law.items()
    )


def test_a_shared_lead_is_broken_at_random():
    mechanism = StableMaximum(epsilon=2, delta="0.3")
    profile = Profile([(5, 2)])
    law = mechanism.law(profile)
    assert law.best() == pytest.approx(tail(2.0, 1))
    claimed = {(None, 0): law.none, (5, 0): law.best() / 2, (5, 1): law.best() / 2}

    def draw(coins):
        outcome = mechanism.draw(profile, coins)
        return outcome.score, outcome.index

    assert brackets(draw, claimed, 15, 0.01)


@pytest.mark.parametrize(("neighbors", "expected"), [(ADD_REMOVE, 17), (REPLACE, 33)])
@pytest.mark.parametrize("candidates", [10**3, 10**12, 2**100, None])
def test_lead(neighbors, expected, candidates):
    mechanism = StableMaximum(epsilon=1, delta="1e-6", neighbors=neighbors)
    assert mechanism.lead(candidates=candidates) == expected


def test_no_lead_is_enough_for_two_near_maximizers():
    with pytest.raises(ParameterError, match="no lead reaches it"):
        StableMaximum(epsilon=1, delta="1e-6").lead(candidates=None, near=2)


def test_price_and_bad_arguments():
    assert StableMaximum(epsilon="0.7", delta="1e-6").privacy() == Privacy("0.7", "1e-6")
    for name, value in (("epsilon", 0), ("delta", 0), ("delta", 1), ("neighbors", "friends")):
        with pytest.raises(ParameterError, match=f"^{name}="):
            StableMaximum(**{"epsilon": 1, "delta": "1e-6"} | {name: value})
