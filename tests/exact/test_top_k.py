"""Top-k by peeling: audits over whole lists, walks, laws against enumeration, prices, and classic
mistakes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import pytest
from flint import arb

import privmax
from privmax import (
    Exponential,
    Guards,
    LimitedDomain,
    PermuteAndFlip,
    Privacy,
    Profile,
    SharpMargin,
)
from privmax.errors import ParameterError
from privmax.mechanisms import limited_domain
from privmax.noise.balls import ball
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import SeededCoins, walk

TWO = Guards((2, 3), (1, 1), share="0.2")
CLOSED = [
    make(neighbors=neighbors)
    for neighbors in (ADD_REMOVE, REPLACE)
    for make in (
        lambda neighbors: Exponential(epsilon=1, k=2, neighbors=neighbors),
        lambda neighbors: Exponential(epsilon=1, delta="0.2", k=3, neighbors=neighbors),
        lambda neighbors: PermuteAndFlip(epsilon=1, k=2, neighbors=neighbors),
        lambda neighbors: PermuteAndFlip(epsilon=1, delta="0.2", k=3, neighbors=neighbors),
    )
]
OPEN = [
    make(neighbors=neighbors)
    for neighbors in (ADD_REMOVE, REPLACE)
    for make in (
        lambda neighbors: LimitedDomain(epsilon=1, delta="0.01", rank=2, k=2, neighbors=neighbors),
        lambda neighbors: LimitedDomain(
            epsilon=1, delta="0.3", rank=3, k=3, neighbors=neighbors, growth=1
        ),
        lambda neighbors: SharpMargin(
            epsilon=1, delta="0.05", guards=TWO, k=2, neighbors=neighbors
        ),
    )
]


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [*CLOSED, *OPEN], ids=repr)
def test_whole_lists_stay_within_the_price_in_a_closed_universe(mechanism):
    assert privmax.audit(mechanism, candidates=3, highest=3).holds


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", OPEN, ids=repr)
def test_whole_lists_stay_within_the_price_though_candidates_appear_and_vanish(mechanism):
    found = privmax.audit(mechanism, universe="open", candidates=4, highest=2)
    assert found.holds
    assert found.delta > 0


@pytest.mark.slow
def test_basic_composition_of_peeling_is_nearly_used_up():
    found = privmax.audit(Exponential(epsilon=1, k=2), candidates=4, highest=8)
    assert 0.95 < found.tightness <= 1


def enumerated(scores, weight, guard, k):
    """P of every list of places, one draw at a time; a shorter list ended with the guard."""
    table = {}

    def extend(done, left, chance):
        if len(done) == k or not left:
            table[done] = table.get(done, 0.0) + chance
            return
        total = sum(weight(scores[place]) for place in left) + guard
        if guard:
            table[done] = table.get(done, 0.0) + chance * guard / total
        for place in left:
            extend((*done, place), left - {place}, chance * weight(scores[place]) / total)

    extend((), frozenset(range(len(scores))), 1.0)
    return table


def by_score(table, scores):
    """The same by the scores listed."""
    lists = {}
    for places, chance in table.items():
        key = tuple(scores[place] for place in places)
        lists[key] = lists.get(key, 0.0) + chance
    return lists


def listed(law):
    """A law of lists of blocks by the scores listed."""
    return {
        tuple(law.blocks[block][0] for block in blocks): chance
        for blocks, chance in law.chances.items()
    }


def test_exponential_lists_against_enumeration():
    scores = (5, 4, 4, 1)
    mechanism = Exponential(epsilon=1, k=3, neighbors=REPLACE)
    law = mechanism.sequences(Profile([(5, 1), (4, 2), (1, 1)], universe=4))[None]
    expected = by_score(enumerated(scores, lambda score: math.exp(score / 6), 0.0, 3), scores)
    assert listed(law) == pytest.approx(expected, abs=1e-12)


def test_guarded_lists_against_enumeration():
    scores = (15, 14, 14)
    mechanism = LimitedDomain(epsilon=1, delta="0.001", rank=3, k=2)
    law = mechanism.sequences(Profile([(15, 1), (14, 2), (1, 6)]))[None]
    guard = (
        3 / 0.001 * math.exp(0.5) * math.exp(1 / 2)
    )  # two rounds at 1/2 each; the fourth stands at 1
    expected = by_score(enumerated(scores, lambda score: math.exp(score / 2), guard, 2), scores)
    assert listed(law) == pytest.approx(expected, abs=1e-9)


def test_permute_and_flip_lists_against_all_permutations():
    scores = (3, 2, 2)

    def single(left):
        top = max(scores[place] for place in left)
        chances = dict.fromkeys(left, 0.0)
        orders = list(permutations(left))
        for order in orders:
            alive = 1 / len(orders)
            for place in order:
                accept = math.exp((scores[place] - top) / 2)
                chances[place] += alive * accept
                alive *= 1 - accept
        return chances

    expected = {}
    for first, chance in single((0, 1, 2)).items():
        for second, then in single(tuple(place for place in range(3) if place != first)).items():
            key = scores[first], scores[second]
            expected[key] = expected.get(key, 0.0) + chance * then
    law = PermuteAndFlip(epsilon=1, k=2).sequences(Profile([(3, 1), (2, 2)], universe=3))[None]
    assert listed(law) == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "profile", "unfinished"),
    [
        (Exponential(epsilon=4, k=2), Profile([(3, 1), (2, 2)], universe=3), 0.01),
        (PermuteAndFlip(epsilon=4, k=2), Profile([(3, 1), (2, 1)], universe=3), 0.1),
        (LimitedDomain(epsilon=8, delta="0.2", rank=2, k=2), Profile([(3, 1), (2, 2)]), 0.02),
        (SharpMargin(epsilon=8, delta="0.2", guards=TWO, k=2), Profile([(3, 1), (2, 2)]), 0.05),
    ],
    ids=repr,
)
def test_every_script_of_coins(mechanism, profile, unfinished):
    """Lists of places: those that a law of blocks leaves open are equally likely."""

    def draw(coins):
        outcomes = mechanism.ranking(profile, coins)
        free = outcomes[0].diagnostics.get("near_maximizers") if outcomes else None
        return free, tuple((o.score, o.index) for o in outcomes if o.score is not None)

    finished, left = walk(draw, 15)
    assert left <= unfinished
    expected = {}
    for free, law in mechanism.sequences(profile).items():
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
                expected[free, one] = chance / len(lists)
    assert finished.keys() <= expected.keys()
    for outcome, chance in expected.items():
        assert -1e-9 <= chance - finished.get(outcome, Fraction(0)) <= left + 1e-9
    likeliest = max(expected, key=expected.__getitem__)
    assert (
        expected[likeliest] + 1.5 * unfinished - finished[likeliest] > left
    )  # a law so far off would be refused


@pytest.mark.parametrize("mechanism", [*CLOSED, *OPEN], ids=repr)
def test_nobody_is_listed_twice_and_the_order_of_blocks_does_not_matter(mechanism):
    profile = Profile([(90, 2), (70, 3), (40, 2)], universe=7)
    coins = SeededCoins(5)
    for _ in range(20):
        places = [
            (o.score, o.index) for o in mechanism.ranking(profile, coins) if o.score is not None
        ]
        assert len(set(places)) == len(places) <= mechanism.k


@pytest.mark.parametrize(
    "mechanism", [Exponential(epsilon=2, k=3), PermuteAndFlip(epsilon=2, k=3)], ids=repr
)
def test_the_window_reaches_below_the_kth_best(mechanism):
    """The third stands a million below the first, far outside a window below the top."""
    profile = Profile([(2_000_000, 1), (1_000_500, 1), (1_000_000, 1)], universe=10**6)
    assert [o.score for o in mechanism.ranking(profile, SYSTEM)] == [
        2_000_000,
        1_000_500,
        1_000_000,
    ]


def test_a_guarded_list_ends_where_nothing_stands_out():
    mechanism = LimitedDomain(epsilon=4, delta="1e-6", rank=10, k=5)
    assert [
        o.score for o in mechanism.ranking(Profile([(900, 1), (800, 1), (1, 500)]), SYSTEM)
    ] == [900, 800]


def test_all_of_a_small_universe_in_order():
    mechanism = Exponential(epsilon=9, k=3)
    assert [
        o.score
        for o in mechanism.ranking(Profile([(900, 1), (600, 1), (300, 1)], universe=3), SYSTEM)
    ] == [
        900,
        600,
        300,
    ]


def test_the_user_gives_the_total():
    assert Exponential(epsilon=1, k=10).privacy() == Privacy(1)
    assert Exponential(epsilon=1, delta="1e-6", k=10).privacy() == Privacy(1, "1e-6")
    assert SharpMargin(epsilon=1, delta="1e-6", k=10).privacy() == Privacy(1, "1e-6")


def test_a_delta_for_composition_helps_a_long_list():
    assert Exponential(epsilon=1, delta="1e-6", k=50).lead(candidates=1000) < 0.5 * Exponential(
        epsilon=1, k=50
    ).lead(candidates=1000)


def test_guards_share_one_delta_however_long_the_list():
    """Half for composing, half for the guard; the same for ten items and for a thousand."""
    halves = [
        LimitedDomain(epsilon=1, delta="1e-6", rank=5000, k=k)._round()[1] for k in (10, 1000)
    ]
    assert halves == [Fraction(1, 2_000_000)] * 2
    assert LimitedDomain(epsilon=1, delta="1e-6", rank=5000, k=2)._round() == (
        Fraction(1, 2),
        Fraction(1, 10**6),
    )


def test_leads_of_ten():
    near = {"near": 10}
    assert SharpMargin(epsilon=1, delta="1e-6", k=10).lead(candidates=None, **near) == 205
    assert (
        LimitedDomain(epsilon=1, delta="1e-6", rank=100, k=10).lead(candidates=None, **near) == 172
    )
    assert Exponential(epsilon=1, k=10).lead(candidates=1000, **near) == 110


class _RoundsAtFullPrice(Exponential):
    """Spends all of epsilon in every round."""

    def _view(self, profile):
        from privmax.mechanisms.weights import closed_view

        return closed_view(profile, self.epsilon, self.neighbors, self.k)


class _TruncatedToK(LimitedDomain):
    """Sizes the guard for k candidates in place of k̄."""

    def _slips(self):
        return 1


class _GuardOfTheRemaining(LimitedDomain):
    """Lets the guard fall as candidates are taken, as if those left were all there ever were."""

    def _weights(self, window, profile, blocks) -> list[arb]:
        *weights, guard = super()._weights(window, profile, blocks)
        left = sum(count for _, count in blocks)
        return [
            *weights,
            guard * ball(Fraction(left, 20 * self.rank) if left < self.rank else Fraction(1)),
        ]


def test_mutant_that_spends_the_price_in_every_round():
    assert refused(_RoundsAtFullPrice(epsilon=1, k=2), candidates=3, highest=4)


def test_mutant_guard_sized_for_one_candidate():
    options = {"universe": "open", "scores": [(1, 1, 1)]}
    assert privmax.audit(LimitedDomain(epsilon=1, delta="0.001", rank=3, k=2), **options).holds
    assert refused(_TruncatedToK(epsilon=1, delta="0.001", rank=3, k=2), **options)


def test_mutant_guard_that_falls_as_candidates_are_taken():
    options = {"universe": "open", "scores": [(40, 1, 1, 1)]}
    settings = {"epsilon": 1, "delta": "0.001", "rank": 4, "k": 3}
    assert privmax.audit(LimitedDomain(**settings), **options).holds
    assert refused(_GuardOfTheRemaining(**settings), **options)


def test_rounds_of_permute_and_flip_are_not_composed_as_if_they_had_range_epsilon():
    """Permute-and-flip is not bounded-range: the two compositions must not be confused."""
    plain = PermuteAndFlip(epsilon=1, delta="1e-6", k=100)
    assert plain._epsilon() < Exponential(epsilon=1, delta="1e-6", k=100)._epsilon() * Fraction(
        51, 100
    )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Exponential(epsilon=1, k=0), "k"),
        (lambda: Exponential(epsilon=1, delta="1e-6"), "delta"),
        (lambda: PermuteAndFlip(epsilon=1, delta=2, k=3), "delta"),
        (lambda: SharpMargin(epsilon=1, delta="1e-6", k="ten"), "k"),
        (lambda: Exponential(epsilon=1, k=5).ranking(Profile([(3, 1)], universe=4), SYSTEM), "k"),
        (lambda: Exponential(epsilon=1, k=2).draw(Profile([(3, 1)], universe=4), SYSTEM), "k"),
        (lambda: SharpMargin(epsilon=1, delta="1e-6", k=2).joint(Profile([(3, 1)])), "k"),
        (lambda: Exponential(epsilon=1, k=5).lead(candidates=100, near=4), "near"),
    ],
)
def test_bad_arguments_are_named(make, name):
    with pytest.raises(ParameterError, match=f"^{name}"):
        make()


def test_the_law_of_lists_shows_nothing():
    law = Exponential(epsilon=1, k=2).sequences(Profile([(3, 1)], universe=3))[None]
    assert "3" not in repr(law)
    assert limited_domain.slips(5, 2, REPLACE) == 4
