"""Limited domain: audits, the coin walk, its formula, leads, and guards with a mistake."""

from __future__ import annotations

import math

import pytest
from flint import arb

import privmax
from privmax import LimitedDomain, Privacy, Profile
from privmax.errors import ParameterError
from privmax.noise.balls import ball
from privmax.privacy import ADD_REMOVE, REPLACE

RELATIONS = [ADD_REMOVE, REPLACE]


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_growth_and_coarse_scores_stay_within_the_price(neighbors):
    bounded = LimitedDomain(epsilon=1, delta="0.01", rank=3, neighbors=neighbors, growth=1)
    assert privmax.audit(bounded, universe="open", candidates=4, highest=3).holds
    plain = LimitedDomain(epsilon=1, delta="0.01", rank=2, neighbors=neighbors)
    assert privmax.audit(plain, universe="open", candidates=3, highest=5, sensitivity=2).holds


def test_the_guard_is_tight():
    found = privmax.audit(LimitedDomain(epsilon=1, delta="1e-6", rank=1), universe="open")
    assert 0.99 < found.tightness <= 1


def test_law_against_its_formula():
    law = LimitedDomain(epsilon="0.5", delta="0.1", rank=3, neighbors=REPLACE).law(
        Profile([(9, 1), (8, 3), (2, 5)])
    )
    weights = [
        math.exp(9 / 4),
        2 * math.exp(8 / 4),
    ]  # two of the three at 8 are among the top three
    guard = 3 / 0.1 * math.exp((8 + 2) / 4)
    total = sum(weights) + guard
    assert law.blocks[0][2] == pytest.approx(weights[0] / total)
    assert law.blocks[1][2] == pytest.approx(weights[1] / total)
    assert law.none == pytest.approx(guard / total)


def test_everybody_competes_without_a_guard_in_a_small_closed_universe():
    profile = Profile([(5, 1), (3, 2)], universe=4)
    limited = LimitedDomain(epsilon=1, delta="1e-6", rank=10)
    assert limited.law(profile) == privmax.Exponential(epsilon=1).law(profile)


@pytest.mark.parametrize(
    ("rank", "near", "expected"),
    [
        (1, 1, 36),
        (10, 10, 36),
        (1000, 1000, 36),
        (10**6, 1, 63),
        (10**6, 10, 59),
        (10**6, 1000, 49),
    ],
)
def test_leads(rank, near, expected):
    mechanism = LimitedDomain(epsilon=1, delta="1e-6", rank=rank, neighbors=REPLACE)
    for candidates in (10**12, 2**100, None):
        assert mechanism.lead(candidates=candidates, near=near) == pytest.approx(expected, abs=1)


def test_a_growth_bound_spares_the_logarithm_of_the_rank():
    plain, bounded = (
        LimitedDomain(epsilon=1, delta="1e-6", rank=1000, growth=growth) for growth in (None, 1)
    )
    assert plain.lead(candidates=None) - bounded.lead(candidates=None) == 7  # ln(1000)


def test_more_near_maximizers_than_the_rank_are_never_released():
    with pytest.raises(ParameterError, match="no lead"):
        LimitedDomain(epsilon=1, delta="1e-6", rank=10).lead(candidates=None, near=11)


class _NoLogarithm(LimitedDomain):
    def _slips(self):
        return 1


class _Strict(LimitedDomain):
    """Takes those who slip to be strictly less than c above the edge: the guard stands one record
    too low.
    """

    def _weights(self, window, profile, blocks) -> list[arb]:
        *weights, guard = super()._weights(window, profile, blocks)
        return [*weights, guard * ball(-self.epsilon).exp()]


def test_mutant_guard_without_the_logarithm_of_the_rank():
    options = {"universe": "open", "scores": [(1, 1, 1), (2, 2, 2)]}
    assert privmax.audit(LimitedDomain(epsilon=1, delta="0.001", rank=3), **options).holds
    assert refused(_NoLogarithm(epsilon=1, delta="0.001", rank=3), **options)


def test_mutant_guard_one_record_too_low():
    options = {"universe": "open", "scores": [(1, 0, 0), (2, 0, 0)]}
    assert privmax.audit(LimitedDomain(epsilon=1, delta="0.001", rank=1), **options).holds
    assert refused(_Strict(epsilon=1, delta="0.001", rank=1), **options)


def test_price():
    assert LimitedDomain(epsilon=1, delta="1e-6", rank=3).privacy() == Privacy(1, "1e-6")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": 2, "delta": 0}, "delta"),
        ({"rank": 2, "growth": 0}, "growth"),
        ({"rank": 2, "k": 0}, "k"),
    ],
)
def test_bad_arguments_are_named(options, name):
    with pytest.raises(ParameterError, match=name):
        LimitedDomain(**{"epsilon": 1, "delta": "1e-6", **options})
