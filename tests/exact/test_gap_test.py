"""The gap test: audits, its closed form against the recursion, that nothing of its class beats it,
mutants, walks.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from scipy.optimize import linprog

import privmax
from privmax import GapTest, ParameterError, Privacy, Profile, StableMaximum
from privmax.mechanisms.stable_maximum import best_or_nothing, lead_steps
from privmax.noise.balls import ball, precision
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE, swing
from privmax.testing import walk

WINNERS = [(lead, 0, 0) for lead in range(0, 22, 3)]
"""One candidate ahead of two others, from not at all to clearly."""


def recursion(epsilon, delta, steps):
    """π(0) … π(steps) as stated, step by step."""
    with precision(400):
        grow, least = ball(Fraction(epsilon)).exp(), ball(Fraction(delta))
        table = [arb(0)]
        for _ in range(steps):
            before = table[-1]
            table.append((grow * before + least).min(1 - (1 - before - least) / grow).min(arb(1)))
    return table


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "5", "40"])
@pytest.mark.parametrize("delta", ["1e-30", "1e-6", "0.01", "0.3", "0.5", "0.99"])
def test_closed_form_is_the_recursion(epsilon, delta):
    mechanism = GapTest(epsilon=epsilon, delta=delta)
    steps = min(mechanism.certain() + 2, 1500)
    table = recursion(epsilon, delta, steps)
    with precision(400):
        for n in range(steps + 1):
            gap = mechanism.chance(n) - table[n]
            assert gap.contains(0)
            assert gap.rad() < 1e-80


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "5"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01", "0.3", "0.9"])
def test_release_is_certain_from_a_public_number_of_steps_on_and_hardly_before(epsilon, delta):
    mechanism = GapTest(epsilon=epsilon, delta=delta)
    steps = mechanism.certain()
    table = recursion(epsilon, delta, steps)
    assert mechanism.chance(steps) == 1
    assert abs(float((table[steps] - 1).mid())) < 1e-80
    assert table[steps - 2] < 1


def test_extreme_parameters_cost_no_more():
    for epsilon, delta in (("1e-9", "1e-300"), ("1e40", "1e-6"), ("1e-6", "0.5")):
        mechanism = GapTest(epsilon=epsilon, delta=delta)
        middle = mechanism.certain() // 2
        assert mechanism.chance(0) == 0
        assert float(mechanism.chance(1).mid()) == pytest.approx(float(delta))
        assert 0 < mechanism.chance(middle) < 1
        assert mechanism.draw(Profile([(10**30, 1)]), SYSTEM).score == 10**30


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_scores_on_a_grid_of_several_steps_to_a_record_stay_within_the_price(neighbors):
    mechanism = GapTest(epsilon=1, delta="0.01", neighbors=neighbors)
    assert privmax.audit(mechanism, candidates=3, highest=5, sensitivity=2).holds
    assert privmax.audit(mechanism, scores=[(13, 1), (14, 3), (16, 0)], sensitivity=3).holds


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("lead", [1, 2, 3, 4, 7, 8])
def test_releasing_more_often_at_any_one_lead_breaks_the_price(neighbors, lead):
    """The theorem of optimality, one lead at a time: no mechanism of the class may do more anywhere
    alone.
    """

    class MoreAtOneLead(GapTest):
        def law(self, profile):
            window = self._window(profile)
            chance = super().law(profile).best()
            return best_or_nothing(
                window, min(1.0, chance + 0.001) if window.depth(2) == lead else chance
            )

    options = {"universe": "open", "scores": [(lead, 0, 0)]}
    assert privmax.audit(GapTest(epsilon=1, delta="0.01", neighbors=neighbors), **options).holds
    assert not privmax.audit(
        MoreAtOneLead(epsilon=1, delta="0.01", neighbors=neighbors), **options
    ).holds


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 0.05), (2.0, 0.4)])
def test_no_mechanism_of_its_class_releases_more_often_on_two_candidates(neighbors, epsilon, delta):
    """The theorem of optimality against a linear program: one unknown for each lead of the first
    over the second.
    """
    grow, reach = math.exp(epsilon), 12
    leads = range(-reach, reach + 1)
    rows, bounds = [], []

    def at_most(bound, **factors):  # "here" and "there" are the leads at hand
        row = [0.0] * len(leads)
        for place, factor in factors.items():
            row[(here if place == "here" else there) + reach] = factor
        rows.append(row)
        bounds.append(bound)

    for here in leads:
        for there in leads:
            if here == there or abs(here - there) > swing(neighbors):
                continue
            at_most(grow - 1 + delta, here=-1, there=grow)  # nothing
            if here * there > 0:
                at_most(delta, here=1, there=-grow)  # the best
            else:
                at_most(delta, here=1)  # the best of here is not that of there
                at_most(grow - 1 + delta, there=grow)  # that or nothing
    mechanism = GapTest(epsilon=epsilon, delta=delta, neighbors=neighbors)
    allowed = [(0, 1 if lead else 0) for lead in leads]
    for lead in range(1, reach + 1):
        found = linprog(
            [-(place == lead) for place in leads], A_ub=rows, b_ub=bounds, bounds=allowed
        )
        assert found.status == 0
        assert mechanism.law(Profile([(lead, 1)], universe=2)).best() == pytest.approx(
            -found.fun, abs=1e-7
        )


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.3", "0.01"), (2, "0.4")])
def test_never_releases_the_sole_best_less_often_than_the_stable_maximum(neighbors, epsilon, delta):
    options = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    test, stable = GapTest(**options), StableMaximum(**options)
    chances = [(test.law(profile).best(), stable.law(profile).best()) for profile in winners(60)]
    assert all(better >= worse - 1e-12 for better, worse in chances)
    assert any(better > worse + 0.01 for better, worse in chances)


def winners(most):
    return [Profile([(lead, 1)]) for lead in range(1, most)]


# Mutants


class _OneStepMore(GapTest):
    """Takes one record more to be needed than are: data whose best may change counts as one step
    away.
    """

    def _steps(self, window, profile):
        return lead_steps(window, profile, self.neighbors) + 1


class _FloorPlusOne(GapTest):
    """⌊gap/(c·s)⌋ + 1 in place of the ceiling: one too many where the gap is a multiple."""

    def _steps(self, window, profile):
        return window.depth(2) // swing(self.neighbors) + 1 if window.depth(2) else 0


class _OneSided(GapTest):
    """Grows as fast as e^ε·π + δ allows up to 1, and forgets that nothing must not become too rare
    either.
    """

    def law(self, profile):
        window = self._window(profile)
        grow, chance = math.exp(self.epsilon), 0.0
        for _ in range(self._steps(window, profile)):
            chance = min(1.0, grow * chance + float(self.delta))
        return best_or_nothing(window, chance)


class _TwiceDelta(GapTest):
    """Spends delta on both terms of the minimum, one after the other."""

    def law(self, profile):
        window = self._window(profile)
        return best_or_nothing(window, min(1.0, super().law(profile).best() + float(self.delta)))


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.parametrize("mutant", [_OneStepMore, _FloorPlusOne, _OneSided, _TwiceDelta])
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutants(mutant, neighbors):
    options = {"universe": "open", "scores": [(lead, 0, 0) for lead in range(1, 16)]}
    assert privmax.audit(GapTest(epsilon=1, delta="0.01", neighbors=neighbors), **options).holds
    assert refused(mutant(epsilon=1, delta="0.01", neighbors=neighbors), **options)


# The draw, and the lead


def test_a_shared_lead_and_a_certain_one_cost_no_coin():
    mechanism = GapTest(epsilon=1, delta="0.03")
    shared, clear = Profile([(500, 2)], universe=9), Profile([(500, 1)], universe=9)
    assert walk(lambda coins: mechanism.draw(shared, coins).score, 0) == ({None: 1}, 0)
    assert walk(lambda coins: mechanism.draw(clear, coins).score, 0) == ({500: 1}, 0)


@pytest.mark.parametrize(("neighbors", "expected"), [(ADD_REMOVE, 16), (REPLACE, 31)])
@pytest.mark.parametrize("candidates", [10**3, 10**12, 2**100, None])
def test_lead(neighbors, expected, candidates):
    mechanism = GapTest(epsilon=1, delta="1e-6", neighbors=neighbors)
    assert mechanism.lead(candidates=candidates) == expected


def test_no_lead_is_enough_for_two_near_maximizers():
    with pytest.raises(ParameterError, match="no lead reaches it"):
        GapTest(epsilon=1, delta="1e-6").lead(candidates=None, near=2)


def test_price_and_bad_arguments():
    assert GapTest(epsilon="0.7", delta="1e-6").privacy() == Privacy("0.7", "1e-6")
    for name, value in (("epsilon", 0), ("delta", 0), ("delta", 1), ("neighbors", "friends")):
        with pytest.raises(ParameterError, match=f"^{name}="):
            GapTest(**{"epsilon": 1, "delta": "1e-6"} | {name: value})
