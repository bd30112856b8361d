"""The ranked margin mechanism: what a whole release tells, by brute force over all small moves; the
noise of differences; leads and shares; mutants that fail.

`test_contract.py` audits the law of its lists. Here the relative counts are part of what is
compared, by code that shares nothing with what chose the noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, product, repeat

import numpy as np
import pytest

from privmax import GapTest, ParameterError, Privacy, Profile, RankedMargin, SetMargin, Stage, auto
from privmax.auditing import Laws, neighbors_of
from privmax.mechanisms import ranked_margin
from privmax.mechanisms.contract import Outcome
from privmax.mechanisms.ranked_margin import balanced_share
from privmax.noise.balls import precision
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.relative import (
    RelativeGaussian,
    RelativeLaplace,
    RelativePlace,
    choose_order_noise,
    find_relative,
    read_relative,
    relative_spread,
)
from privmax.testing import SeededCoins, walk

RELATIONS = (ADD_REMOVE, REPLACE)
ROUNDING = 1e-9
PRICE = {"epsilon": 1, "delta": "1e-6"}


# The noise of differences


def law_of_one(noise, reach):
    """The noise of one count on −reach … reach parts."""
    parts = np.arange(-reach, reach + 1)
    if isinstance(noise, RelativeLaplace):
        weights = np.exp(-np.abs(parts) * float(noise.step / noise.scale))
    else:
        weights = np.exp(-(parts**2) / (2 * float(noise.variance)))
    return weights / weights.sum()


def differences(law, k, reach):
    """The law of the first k − 1 of k noises, each less the last, on a cube around 0."""
    middle = len(law) // 2
    found = 0.0
    for place, chance in enumerate(law):
        side = np.zeros(2 * reach + 1)
        last = place - middle
        for at, difference in enumerate(range(-reach, reach + 1)):
            one = middle + difference + last
            side[at] = law[one] if 0 <= one < len(law) else 0.0
        cube = np.ones(1)
        for _ in range(k - 1):
            cube = np.multiply.outer(cube, side)
        found = found + chance * cube[0]
    return found


def move(cube, shift):
    """The law of differences that have moved."""
    return np.roll(cube, shift, axis=tuple(range(cube.ndim)))


def worst_difference(noise, k, epsilon, moves):
    """The largest hockey-stick divergence of differences over all moves, in both directions."""
    deviation = math.sqrt(float(noise.variance)) if hasattr(noise, "variance") else 0
    reach = math.ceil(7 * deviation if deviation else 30 * noise.scale / noise.step)
    cube = differences(law_of_one(noise, reach), k, 2 * reach)
    found = 0.0
    for one in moves:
        shift = [noise.parts * (step - one[-1]) for step in one[:-1]]
        moved = move(cube, shift)
        for left, right in ((cube, moved), (moved, cube)):
            found = max(found, float(np.maximum(left - math.exp(epsilon) * right, 0).sum()))
    return found


def all_moves(k, neighbors, sensitivity=1, moved=None):
    """All that one individual may add to k counts, in steps."""
    low = 0 if neighbors == ADD_REMOVE else -sensitivity
    found = product(range(low, sensitivity + 1), repeat=k)
    return [one for one in found if sum(map(bool, one)) <= (k if moved is None else moved)]


GAUSSIAN = [
    # k, moved, sensitivity, parts
    (2, 2, 1, 3),
    (2, 2, 1, 7),
    (2, 1, 2, 3),
    (3, 3, 1, 3),
    (3, 1, 1, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("k", "moved", "sensitivity", "parts"), GAUSSIAN)
def test_differences_with_gaussian_noise_keep_their_cost(k, moved, sensitivity, parts, neighbors):
    price = Privacy(2, "0.02")
    sigma = find_relative(price, k, moved, sensitivity, neighbors, parts)
    noise = RelativeGaussian(sigma=sigma, parts=parts)
    moves = all_moves(k, neighbors, sensitivity, moved)
    found = worst_difference(noise, k, 2, moves)
    assert found <= price.delta + ROUNDING
    if parts * sensitivity > 6 and moved == k and neighbors == ADD_REMOVE:
        assert found > 0.5 * price.delta


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("k", "growth"), [(2, None), (3, None), (3, 1)])
def test_differences_with_laplace_noise_keep_their_cost(k, growth, neighbors):
    noise = choose_order_noise(Privacy(2), k=k, growth=growth, neighbors=neighbors).noise
    assert isinstance(noise, RelativeLaplace)
    moved = None if growth is None else growth * (1 if neighbors == ADD_REMOVE else 2)
    moves = all_moves(k, neighbors, moved=moved)
    assert worst_difference(noise, k, 2, moves) < 1e-12
    assert worst_difference(noise, k, 1.2, moves) > 0.01  # it is needed, or nearly


def test_mutants_of_the_noise():
    """Noise of add-remove where records are replaced, and noise for one count that moves on two."""
    price = Privacy(2)
    for k in (2, 3):
        noise = choose_order_noise(price, k=k).noise
        assert worst_difference(noise, k, 2, all_moves(k, REPLACE)) > 0.05
    few = choose_order_noise(price, k=4, growth=1).noise
    assert worst_difference(few, 2, 2, [(1, 0)]) < 1e-12
    assert worst_difference(few, 3, 2, [(2, 0, 0)]) > 0.05
    price = Privacy(2, "0.02")
    noise = RelativeGaussian(sigma=find_relative(price, 2, 2, 1, ADD_REMOVE, 7), parts=7)
    assert worst_difference(noise, 2, 2, all_moves(2, REPLACE)) > 0.05


def test_mutant_noisy_counts_are_released_with_what_they_share():
    """The noise is for differences: two counts that both move tell more."""
    noise = choose_order_noise(Privacy(2), k=2).noise
    law = law_of_one(noise, 30)
    both = np.multiply.outer(law, law)
    moved = np.roll(both, (1, 1), axis=(0, 1))
    assert float(np.maximum(both - math.exp(2) * moved, 0).sum()) > 0.05
    assert worst_difference(noise, 2, 2, [(1, 1)]) == 0


@pytest.mark.parametrize(("k", "moved"), [(2, 2), (3, 3), (4, 4), (4, 1), (5, 2)])
def test_no_move_is_further_than_is_charged(k, moved):
    """For each move the best whole shift, by trying all of them."""
    parts = 5
    square = parts**2 * relative_spread(k, moved, ADD_REMOVE) + Fraction(k, 4)
    most = min(moved, k // 2) * parts
    furthest = 0
    for steps in product(range(0, parts + 1, 1 if k < 5 else parts), repeat=k):
        if sum(map(bool, steps)) <= moved:
            shifts = range(parts + 1)
            distance = min(sum((one - t) ** 2 for one in steps) for t in shifts)
            assert distance <= square
            furthest = max(furthest, distance)
            assert min(sum(abs(one - t) for one in steps) for t in shifts) <= most
    assert furthest > square - Fraction(k, 2)


@pytest.mark.parametrize(
    "noise",
    [
        RelativeLaplace(scale=3),
        RelativeLaplace(scale=2, step="0.5"),
        RelativeGaussian(sigma=2, parts=5),
        RelativeGaussian(sigma=3, step=2, parts=3),
    ],
    ids=repr,
)
def test_the_law_and_the_error_of_a_difference(noise):
    reach = noise.reach
    law = law_of_one(noise, reach)
    both = np.convolve(law, law)
    middle = len(both) // 2
    for steps in (1, 2, 5):
        least = noise.parts * (steps - 1) + 1
        with precision(128):
            assert float(noise.tail(steps)) == pytest.approx(
                both[middle + least :].sum(), abs=1e-11
            )
    error = round(Fraction(noise.error()) / noise.step)
    outside = [
        both[: middle - noise.parts * most].sum() + both[middle + noise.parts * most + 1 :].sum()
        for most in (error - 1, error)
    ]
    assert outside[0] > 0.05 >= outside[1]


def scripted(monkeypatch, noise, values):
    """Noise that is not drawn."""
    left = iter(values)
    monkeypatch.setattr(
        type(noise), "draw_all", lambda _, number, coins: list(islice(left, number))
    )


def test_differences_are_rounded_and_not_counts(monkeypatch):
    """Counts of 17 and 34 parts of 33 are 0.515 and 1.03 steps: rounded each, they would be one and
    the same."""
    noise = RelativeGaussian(sigma=1)
    scripted(monkeypatch, noise, [17, 1, -40])
    found = noise.rank([0, 1, 3], SYSTEM)
    assert [tuple(one) for one in found] == [(2, 0), (1, -1), (0, -1)]
    scripted(monkeypatch, noise, [16, 17])
    assert [one.relative for one in noise.rank([0, 0], SYSTEM)] == [0, 0]


def test_ties_are_broken_by_coins_and_not_by_true_counts(monkeypatch):
    noise = RelativeLaplace(scale=1)
    scripted(monkeypatch, noise, repeat(0))

    def order(coins):
        return tuple(one.number for one in noise.rank([5, 5], coins))

    assert walk(order, 3) == ({(0, 1): Fraction(1, 2), (1, 0): Fraction(1, 2)}, 0)


def test_noise_is_written_down_and_read_exactly():
    for noise in (RelativeLaplace(scale="0.3", step="0.1"), RelativeGaussian(sigma=2, parts=5)):
        assert read_relative(noise.to_dict()) == noise
    with pytest.raises(ParameterError, match=r"^sigma="):
        RelativeGaussian(sigma="0.05")
    assert RelativeLaplace(scale="0.001", step="0.5").add_all([4, 10], SYSTEM) == (-3.0, 0.0)


# The whole release


def joint(members, noise, scores, is_open, mark):
    """The law of the set with the difference of its two counts, if it has two, and a mark."""
    law = law_of_one(noise, 40)
    both = np.convolve(law, law)
    reach = len(both) // 2
    table = {}
    for (_, places), chance in Laws(members, is_open, 1).of(scores).chances.items():
        if len(places) < 2:
            table[places] = chance.value
            continue
        first, second = sorted(places)
        true = scores[first] - scores[second]
        for at, part in enumerate(both):
            difference = at - reach + true
            key = places, difference, mark(difference, true)
            table[key] = table.get(key, 0.0) + chance.value * float(part)
    return table


def worst(members, noise, neighbors, *, is_open=True, epsilon=2.0, mark=lambda *_: None):
    """The delta that the release of two of three needs over all small data sets."""
    starts = [
        (top + lead, top, low)
        for top, low in ((2, 0), (3, 1), (9, 0), (14, 0))
        for lead in (0, 1, 3)
    ]
    tables, found, factor = {}, 0.0, math.exp(epsilon)
    for start in starts:
        for other in neighbors_of(start, neighbors, None, 1, 0 if is_open else None):
            for scores in (start, other):
                if scores not in tables:
                    tables[scores] = joint(members, noise, scores, is_open, mark)
            for one, two in ((start, other), (other, start)):
                left, right = tables[one], tables[two]
                needed = math.fsum(
                    max(0.0, chance - factor * right.get(key, 0.0)) for key, chance in left.items()
                )
                found = max(found, needed)
    return found


STAGES = (
    Stage(2, 2, silence="0.3", part="0.4"),
    Stage(2, 3, silence="0.2", tilt="0.4", part="0.3"),
    Stage(1, 3, silence=1, part="0.3"),
)
COST = {"epsilon": 2, "delta": "1e-3", "k": 2, "share": "0.5", "stages": STAGES}


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("delta", ["1e-3", "1e-5"])
def test_a_set_with_its_differences_stays_within_its_cost(neighbors, is_open, delta):
    mechanism = RankedMargin(**{**COST, "delta": delta}, neighbors=neighbors)
    assert isinstance(mechanism.noise(), RelativeLaplace)
    assert mechanism.members.epsilon == 1
    apart = mechanism.apart()
    found = worst(
        mechanism.members,
        mechanism.noise(),
        neighbors,
        is_open=is_open,
        mark=lambda difference, true: abs(difference) <= apart,
    )
    assert found <= float(delta) + ROUNDING


@pytest.mark.slow
def test_mutant_a_share_that_adds_up_to_more_than_epsilon():
    """The set and its order at the whole epsilon each."""
    honest = RankedMargin(**COST)
    members = SetMargin(epsilon=2, delta="1e-3", k=2, stages=STAGES)
    noise = choose_order_noise(Privacy(2), k=2).noise
    assert worst(honest.members, honest.noise(), ADD_REMOVE) <= 1e-3 + ROUNDING
    assert worst(members, noise, ADD_REMOVE) > 10e-3


@pytest.mark.slow
def test_mutant_noise_of_add_remove_where_records_are_replaced():
    honest, other = RankedMargin(**COST, neighbors=REPLACE), RankedMargin(**COST)
    assert worst(honest.members, honest.noise(), REPLACE) <= 1e-3 + ROUNDING
    assert worst(honest.members, other.noise(), REPLACE) > 2e-3


@pytest.mark.slow
def test_mutant_a_mark_that_looks_at_true_counts():
    honest = RankedMargin(**COST)
    found = worst(
        honest.members, honest.noise(), ADD_REMOVE, mark=lambda difference, true: true <= 2
    )
    assert found > 0.05


# The draw


def test_a_list_is_the_set_sorted_by_noisy_counts(monkeypatch):
    mechanism = RankedMargin(epsilon=40, delta="1e-6", k=3)
    profile = Profile([(900, 1), (800, 1), (700, 1), (1, 5)])
    [first, second, third] = mechanism.ranking(profile, SeededCoins("list"))
    assert [one.score for one in (first, second, third)] == [900, 800, 700]
    assert first.relative == 0
    assert abs(second.relative + 100) < 9
    assert abs(third.relative + 200) < 9
    swapped = {900: 0, 800: 300, 700: 0}

    def rank(self, counts, coins):
        noisy = [count + swapped[count] for count in counts]
        order = sorted(range(3), key=lambda index: -noisy[index])
        return [RelativePlace(index, noisy[index] - noisy[order[0]]) for index in order]

    monkeypatch.setattr(RelativeLaplace, "rank", rank)
    found = mechanism.ranking(profile, SeededCoins("list"))
    assert [(one.score, one.relative) for one in found] == [(800, 0), (900, -200), (700, -400)]


def test_one_item_is_that_of_the_set():
    one, alone = RankedMargin(**PRICE), SetMargin(**PRICE)
    assert one.members == alone
    assert (one.used_share(), one.apart()) == (1, 0)
    profile = Profile([(90, 1), (3, 4)])
    assert one.law(profile) == alone.law(profile)
    assert one.ranking(profile, SYSTEM)[0].relative is None
    assert isinstance(one.draw(profile, SYSTEM), Outcome)


def test_the_parts_add_up_to_the_cost_whatever_the_scale():
    for k, neighbors in product((2, 5, 10, 40), RELATIONS):
        mechanism = RankedMargin(**PRICE, k=k, neighbors=neighbors)
        spent = mechanism._order_noise().privacy
        assert mechanism.members.privacy() + spent == mechanism.privacy() == Privacy(1, "1e-6")
        for steps in (7, 64):
            assert mechanism._order_noise(steps, Fraction(1, 10)).privacy == spent
        scaled = mechanism.noise(sensitivity=64, step=Fraction(1, 64))
        assert scaled.error() == pytest.approx(mechanism.apart(), abs=1)


def test_the_law_of_a_list_adds_up_to_that_of_its_set():
    mechanism = RankedMargin(epsilon=3, delta="0.05", k=3, stages=(Stage(3, 4, silence=1),))
    profile = Profile([(5, 2), (3, 1), (1, 2)])
    [sets], [lists] = (
        mechanism.members.sets(profile).values(),
        mechanism.sequences(profile).values(),
    )
    assert math.fsum(lists.chances.values()) == pytest.approx(1, abs=1e-9)
    for numbers, chance in sets.chances.items():
        same = [
            part
            for blocks, part in lists.chances.items()
            if all(blocks.count(place) == number for place, number in enumerate(numbers))
        ]
        assert math.fsum(same) == pytest.approx(chance, abs=1e-9)
    right, wrong = lists.chances[0, 0, 1], lists.chances[1, 0, 0]
    assert right > 2 * wrong > 0


# Leads, shares, the choice


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("epsilon", ["0.3", 1, 2])
def test_the_lead_of_an_order_is_little_more_than_that_of_its_set(epsilon, neighbors):
    for k in (2, 5, 10, 20, 50, 100):
        options = {"epsilon": epsilon, "delta": "1e-6", "k": k, "neighbors": neighbors}
        mechanism = RankedMargin(**options)
        lead, alone = (one.lead(candidates=None) for one in (mechanism, SetMargin(**options)))
        assert alone < lead <= 1.8 * alone
        assert 0.6 <= mechanism.used_share() <= 0.8


def test_leads_at_the_usual_cost():
    found = {k: RankedMargin(**PRICE, k=k) for k in (2, 5, 10, 20, 100)}
    assert [one.lead(candidates=None) for one in found.values()] == [31, 33, 41, 85, 371]
    assert [one.apart() for one in found.values()] == [21, 33, 46, 73, 274]
    assert [float(one.used_share()) for one in found.values()] == [0.8, 0.75, 0.6, 0.65, 0.8]
    twice = RankedMargin(**PRICE, k=10, neighbors=REPLACE)
    assert (twice.lead(candidates=None), twice.apart()) == (81, 91)


def test_a_share_is_chosen_by_public_numbers_or_given():
    assert balanced_share(Fraction(1), Fraction(0), 10) == ranked_margin.PURE_SHARE
    assert balanced_share(Fraction(1), Fraction(1, 10**6), 10**4) == ranked_margin.LARGEST_SHARE
    given = RankedMargin(**PRICE, k=10, share="0.9")
    assert given.members.epsilon == Fraction(9, 10)
    assert given.apart() > RankedMargin(**PRICE, k=10).apart()
    for share in (0, 1):
        with pytest.raises(ParameterError, match=r"^share="):
            RankedMargin(**PRICE, k=2, share=share)


def test_on_a_fine_grid_gaussian_noise_is_taken_where_errors_are_below_1():
    """An error is in units of the scores, of which a step is a small part."""
    fine, price = Fraction(1, 100), Privacy(3, "1e-6")
    chosen, cost = choose_order_noise(price, k=30, step=fine)
    assert (type(chosen), cost) == (RelativeGaussian, price)
    laplace, _ = choose_order_noise(Privacy(3), k=30, step=fine)
    assert chosen.error() < laplace.error() < 1


def test_bounded_records_need_less_noise():
    bounded = RankedMargin(**PRICE, k=20, growth=1, share="0.6")
    assert bounded.apart() < RankedMargin(**PRICE, k=20, share="0.6").apart() / 4


def test_auto_takes_it_in_open_universes_and_where_others_need_more():
    assert type(auto(**PRICE, k=10, ranked=True).mechanism) is RankedMargin
    kinds = {
        size: type(auto(**PRICE, k=10, universe=size, ranked=True).mechanism).__name__
        for size in (12, 10**3, 10**6)
    }
    assert kinds == {12: "JointExponential", 10**3: "RankedMargin", 10**6: "RankedMargin"}
    assert (
        type(auto(epsilon=1, delta=0, k=2, universe=50, ranked=True)[0]).__name__ == "Exponential"
    )


def test_the_gap_test_is_the_limit_for_an_order():
    leads = [GapTest(**PRICE, k=k, ranked=True).lead(candidates=None) for k in (2, 10, 1000)]
    assert leads == [16, 16, 16]
    levels = [(score, 1) for score in (64, 48, 32, 16)]
    assert GapTest(**PRICE, k=4, ranked=True)._release_chance(Profile(levels))[1] >= 0.95
    closer = [(65, 1), (49, 1), (34, 1), (16, 1)]
    assert GapTest(**PRICE, k=4, ranked=True)._release_chance(Profile(closer))[1] < 0.95
