"""The gap test: audits, its closed form against the recursion, that nothing of its class beats it,
mutants, walks.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb
from scipy.optimize import linprog

import privmax
from privmax import GapTest, ParameterError, Privacy, Profile, StableMaximum
from privmax.mechanisms.stable_maximum import best_or_nothing
from privmax.noise.balls import ball, precision
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE, drift
from privmax.testing import walk

pytestmark = pytest.mark.slow

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
    for epsilon, delta in (("1e-9", "1e-300"), ("1e9", "1e-6"), ("1e-6", "0.5")):
        mechanism = GapTest(epsilon=epsilon, delta=delta)
        middle = mechanism.certain() // 2
        assert mechanism.chance(0) == 0
        assert float(mechanism.chance(1).mid()) == pytest.approx(float(delta))
        assert 0 < mechanism.chance(middle) < 1
        assert mechanism.draw(Profile([(10**30, 1)]), SYSTEM).score == 10**30


@pytest.mark.slow
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
            window, chance = self._release_chance(profile)
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
            if here == there or abs(here - there) > drift(neighbors):
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

    def _view(self, profile):
        window, steps = super()._view(profile)
        return window, steps + 1


class _FloorPlusOne(GapTest):
    """⌊gap/(c·s)⌋ + 1 in place of the ceiling: one too many where the gap is a multiple."""

    def _view(self, profile):
        window, _ = super()._view(profile)
        gap = window.depth(self.k + 1) - window.depth(self.k)
        return window, gap // drift(self.neighbors) + 1 if gap else 0


class _OneSided(GapTest):
    """Grows as fast as e^ε·π + δ allows up to 1, and forgets that nothing must not become too rare
    either.
    """

    def _release_chance(self, profile):
        window, steps = self._view(profile)
        grow, chance = math.exp(self.epsilon), 0.0
        for _ in range(steps):
            chance = min(1.0, grow * chance + float(self.delta))
        return window, chance


class _TwiceDelta(GapTest):
    """Spends delta on both terms of the minimum, one after the other."""

    def _release_chance(self, profile):
        window, chance = super()._release_chance(profile)
        return window, min(1.0, chance + float(self.delta))


class _BestOfAll(GapTest):
    """Looks at how far the best leads, and not the last of the best k."""

    def _view(self, profile):
        window, _ = super()._view(profile)
        return window, -(-(window.depth(self.k + 1) - window.depth(1)) // drift(self.neighbors))


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.parametrize("mutant", [_OneStepMore, _FloorPlusOne, _OneSided, _TwiceDelta])
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutants(mutant, neighbors):
    options = {"universe": "open", "scores": [(lead, 0, 0) for lead in range(1, 16)]}
    assert privmax.audit(GapTest(epsilon=1, delta="0.01", neighbors=neighbors), **options).holds
    assert refused(mutant(epsilon=1, delta="0.01", neighbors=neighbors), **options)


AHEAD = [(lead + more, lead, 0, 0) for lead in range(1, 16) for more in (0, 5)]
"""Two candidates ahead of two others."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [_OneStepMore, _FloorPlusOne, _OneSided, _TwiceDelta, _BestOfAll]
)
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutants_that_release_two(mutant, neighbors):
    options = {"universe": "open", "scores": AHEAD}
    price = {"epsilon": 1, "delta": "0.01", "neighbors": neighbors, "k": 2}
    assert privmax.audit(GapTest(**price), **options).holds
    assert refused(mutant(**price), **options)


# More than one item


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_best_k_are_as_likely_as_a_sole_winner_with_the_same_lead(k):
    one, more = GapTest(epsilon=1, delta="0.01"), GapTest(epsilon=1, delta="0.01", k=k)
    for lead in range(1, 9):
        expected = one.law(Profile([(lead, 1)])).best()
        [law] = more.sets(Profile([(9 + lead, 1), (4 + lead, k - 1), (4, 3)])).values()
        assert law.chances[1, k - 1, 0, 0] == pytest.approx(expected, abs=1e-12)
        assert law.chances[0, 0, 0, 0] == pytest.approx(1 - expected, abs=1e-12)


def test_the_law_of_each_item_of_two_is_that_of_the_set():
    mechanism = GapTest(epsilon=1, delta="0.01", k=2)
    profile = Profile([(19, 1), (14, 1), (9, 3)])
    [sets] = mechanism.sets(profile).values()
    law = mechanism.law(profile)
    assert 0.05 < sets.chances[1, 1, 0, 0] < 0.95
    assert [chance for _, _, chance in law.blocks] == [sets.chances[1, 1, 0, 0]] * 2 + [0.0, 0.0]
    assert law.none == sets.chances[0, 0, 0, 0]


def test_a_law_whose_zeros_may_come_from_rounding_says_so():
    """Nothing is released with a probability above 0 that no difference from 1 can hold."""
    mechanism = GapTest(epsilon=1, delta="1e-30", k=2)
    steps = mechanism.certain() - 2
    with precision(400):
        assert mechanism.chance(steps) < 1
    law = mechanism.law(Profile([(steps, 2)]))
    assert law.none == 0
    assert not law.true_zeros


def test_nothing_is_released_where_the_last_place_is_shared():
    [law] = GapTest(epsilon=1, delta="0.01", k=2).sets(Profile([(90, 1), (50, 2)])).values()
    assert law.chances == {(0, 0, 0): 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 0.05)])
def test_no_mechanism_of_its_class_releases_the_best_two_of_three_more_often(
    neighbors, epsilon, delta
):
    """The theorem of optimality for k = 2 against a linear program: one unknown for every vector of
    scores.
    """
    highest = 4
    vectors = list(product(range(highest + 1), repeat=3))
    place = {vector: number for number, vector in enumerate(vectors)}
    moves = (
        [*product((0, 1), repeat=3), *product((0, -1), repeat=3)]
        if neighbors == ADD_REMOVE
        else [*product((-1, 0, 1), repeat=3)]
    )
    grow = math.exp(epsilon)
    rows, bounds = [], []

    def at_most(bound, **factors):
        row = [0.0] * len(vectors)
        for name, factor in factors.items():
            row[place[here if name == "here" else there]] = factor
        rows.append(row)
        bounds.append(bound)

    for here in vectors:
        for move in moves:
            there = tuple(score + step for score, step in zip(here, move, strict=True))
            if there == here or there not in place:
                continue
            at_most(grow - 1 + delta, here=-1, there=grow)  # nothing
            if best_two(here) == best_two(there):
                at_most(delta, here=1, there=-grow)
            else:
                at_most(delta, here=1)  # the set of here is not that of there
                at_most(grow - 1 + delta, there=grow)  # that or nothing
    mechanism = GapTest(epsilon=epsilon, delta=delta, neighbors=neighbors, k=2)
    allowed = [(0, 1 if best_two(vector) else 0) for vector in vectors]
    for vector in [(1, 1, 0), (2, 2, 0), (4, 3, 1), (4, 4, 0), (4, 3, 3)]:
        found = linprog([-(v == vector) for v in vectors], A_ub=rows, b_ub=bounds, bounds=allowed)
        assert found.status == 0
        levels = [(score, vector.count(score)) for score in set(vector)]
        _, ours = mechanism._release_chance(Profile(levels, universe=3))
        assert ours == pytest.approx(-found.fun, abs=1e-7)


def best_two(scores):
    """The places of the two best of three, or nothing where the second best is shared."""
    ranked = sorted(range(3), key=lambda place: -scores[place])
    return frozenset(ranked[:2]) if scores[ranked[1]] > scores[ranked[2]] else None


# An order


class _LastGapOnly(GapTest):
    """Looks at how far the last leads all others, and not at the gaps between the best."""

    def _view(self, profile):
        window, _ = super()._view(profile)
        gap = window.depth(self.k + 1) - window.depth(self.k)
        return window, -(-gap // drift(self.neighbors))


class _NextGapForgotten(GapTest):
    """Looks at the gaps between the best, and not at how far the last leads all others."""

    def _view(self, profile):
        window, _ = super()._view(profile)
        gaps = [window.depth(rank + 1) - window.depth(rank) for rank in range(1, self.k)]
        return window, -(-min(gaps) // drift(self.neighbors))


STAIRS = [(6 + low + gap, 6 + low, low) for gap in (0, 1, 2, 5) for low in (0, 1, 3, 9)]
"""Two candidates before a third, with gaps of several sizes."""


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("universe", ["open", "closed"])
@pytest.mark.parametrize("k", [2, 3])
def test_an_order_stays_within_its_cost(neighbors, universe, k):
    mechanism = GapTest(epsilon=1, delta="0.01", k=k, ranked=True, neighbors=neighbors)
    for options in ({"scores": STAIRS}, {"highest": 5}):
        assert privmax.audit(mechanism, universe=universe, **options).holds


@pytest.mark.parametrize("mutant", [_OneStepMore, _LastGapOnly, _NextGapForgotten])
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutants_of_an_order(mutant, neighbors):
    price = {"epsilon": 1, "delta": "0.01", "neighbors": neighbors, "k": 2, "ranked": True}
    options = {"universe": "open", "scores": [*STAIRS, (9, 9, 0), (9, 3, 3), (12, 6, 5)]}
    assert privmax.audit(GapTest(**price), **options).holds
    assert refused(mutant(**price), **options)


def test_an_order_is_drawn_best_first_and_shared_scores_give_none():
    mechanism = GapTest(epsilon=1, delta="1e-6", k=3, ranked=True)
    clear = Profile([(900, 1), (700, 1), (500, 1), (3, 9)])
    assert [one.score for one in mechanism.subset(clear, SYSTEM)] == [900, 700, 500]
    assert mechanism.subset(Profile([(900, 2), (500, 1)]), SYSTEM) == []
    assert mechanism.subset(Profile([(9, 1), (5, 1)], universe=3, sensitivity=1), SYSTEM) == []
    only = Profile([(900, 1), (700, 1), (500, 1)], universe=3)
    assert len(mechanism.subset(only, SYSTEM)) == 3


def test_its_text_is_that_of_earlier_versions_unless_an_order_is_asked_for():
    price = {"epsilon": 1, "delta": "0.01"}
    text = "GapTest(epsilon=1, delta=0.01, neighbors='add-remove', k={}{})"
    assert repr(GapTest(**price)) == repr(GapTest(**price, ranked=True)) == text.format(1, "")
    assert repr(GapTest(**price, k=2)) == text.format(2, "")
    assert repr(GapTest(**price, k=2, ranked=True)) == text.format(2, ", ranked=True")
    assert GapTest(**price, k=2) != GapTest(**price, k=2, ranked=True)
    with pytest.raises(ParameterError, match=r"^ranked="):
        GapTest(**price, ranked="yes")


# The draw, and the lead


def test_a_shared_lead_and_a_certain_one_cost_no_coin():
    mechanism = GapTest(epsilon=1, delta="0.03")
    shared, clear = Profile([(500, 2)], universe=9), Profile([(500, 1)], universe=9)
    assert walk(lambda coins: mechanism.draw(shared, coins).score, 0) == ({None: 1}, 0)
    assert walk(lambda coins: mechanism.draw(clear, coins).score, 0) == ({500: 1}, 0)


@pytest.mark.parametrize(("neighbors", "expected"), [(ADD_REMOVE, 16), (REPLACE, 31)])
@pytest.mark.parametrize("candidates", [10**4, 10**12, 2**100, None])
@pytest.mark.parametrize("k", [1, 10, 100, 1000])
def test_lead(neighbors, expected, candidates, k):
    mechanism = GapTest(epsilon=1, delta="1e-6", neighbors=neighbors, k=k)
    assert mechanism.lead(candidates=candidates) == expected


def test_no_lead_is_enough_for_two_near_maximizers():
    with pytest.raises(ParameterError, match="no lead reaches it"):
        GapTest(epsilon=1, delta="1e-6").lead(candidates=None, near=2)


def test_price_and_bad_arguments():
    assert GapTest(epsilon="0.7", delta="1e-6").privacy() == Privacy("0.7", "1e-6")
    for name, value in (("epsilon", 0), ("delta", 0), ("delta", 1), ("neighbors", "friends")):
        with pytest.raises(ParameterError, match=f"^{name}="):
            GapTest(**{"epsilon": 1, "delta": "1e-6"} | {name: value})
