"""Noisy counts keep their price: exact laws over all small neighbours, walks, and mutants that do
not.

The noise on a vector of counts is audited by adding up its law over a grid, in floats, by code that
shares nothing with what chose it.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from flint import arb

from privmax import NestedMargin, Privacy, Profile, SetMargin
from privmax.count_costs import find_sigma, gaussian_delta
from privmax.counts import (
    CountNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    SharedGaussian,
    choose_noise,
    count_moved,
)
from privmax.noise import samplers
from privmax.noise.balls import precision
from privmax.noise.tails import _add_up, _term, gaussian_sum, gaussian_tail, laplace_tail
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import walk

ROUNDING = 1e-9


def pmf(noise, reach):
    """The law of noise on −reach … reach, by its definition."""
    steps = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(steps) / float(noise.scale))
    else:
        weights = np.exp(-(steps**2) / (2 * float(noise.sigma) ** 2))
    return weights / weights.sum()


def reach_of(noise):
    wide = 24 * noise.scale if isinstance(noise, DiscreteLaplace) else 7 * noise.sigma
    return max(8, math.ceil(wide))


def hockey_stick(noise, shift, epsilon):
    """How much likelier than e^ε times as likely a set of noisy vectors is, if the true one has
    moved by `shift`; and the same the other way round.
    """
    shift = [move for move in shift if move]  # a count that does not move tells nothing
    reach = reach_of(noise) + max(map(abs, shift), default=0)
    law = pmf(noise, reach)
    left, right = np.ones(1), np.ones(1)
    for move in shift:
        moved = np.roll(law, move)
        if move > 0:
            moved[:move] = 0
        elif move < 0:
            moved[move:] = 0
        left = np.multiply.outer(left, law).ravel()
        right = np.multiply.outer(right, moved).ravel()
    factor = math.exp(epsilon)
    return max(
        math.fsum(np.maximum(left - factor * right, 0)),
        math.fsum(np.maximum(right - factor * left, 0)),
    )


def records(k, growth, sensitivity):
    """All that one record may add to k counts."""
    touched = {
        subset for size in range(min(k, growth) + 1) for subset in combinations(range(k), size)
    }
    return {
        tuple(amounts.get(place, 0) for place in range(k))
        for subset in touched
        for values in product(range(sensitivity + 1), repeat=len(subset))
        for amounts in [dict(zip(subset, values, strict=True))]
    }


def shifts(k, growth, sensitivity, neighbors):
    """All by which k counts may differ between neighbours, up to the order of the counts, which
    have equal noise.
    """
    one = records(k, k if growth is None else growth, sensitivity)
    if neighbors == ADD_REMOVE:
        found = one
    else:
        found = {
            tuple(new - old for new, old in zip(*pair, strict=True)) for pair in product(one, one)
        }
    return {tuple(sorted(shift)) for shift in found}


def worst(chosen: CountNoise, k, growth, sensitivity, neighbors):
    found = shifts(k, growth, sensitivity, neighbors)
    return max(hockey_stick(chosen.noise, shift, chosen.privacy.epsilon) for shift in found)


CASES = [
    (k, growth, sensitivity, neighbors)
    for k, growth, sensitivity in [(1, None, 1), (2, None, 1), (2, 1, 2), (3, 1, 1), (1, None, 3)]
    for neighbors in (ADD_REMOVE, REPLACE)
]


@pytest.mark.parametrize(("k", "growth", "sensitivity", "neighbors"), CASES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_laplace_counts_keep_their_price(k, growth, sensitivity, neighbors, epsilon):
    chosen = choose_noise(
        Privacy(epsilon), k=k, growth=growth, neighbors=neighbors, sensitivity=sensitivity
    )
    assert isinstance(chosen.noise, DiscreteLaplace)
    assert chosen.privacy == Privacy(epsilon)
    assert worst(chosen, k, growth, sensitivity, neighbors) < ROUNDING
    less = CountNoise(DiscreteLaplace(scale=chosen.noise.scale * Fraction(9, 10)), chosen.privacy)
    assert worst(less, k, growth, sensitivity, neighbors) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("k", "growth", "sensitivity", "neighbors"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "0.05"), ("1", "0.01"), ("4", "0.001")])
def test_gaussian_counts_keep_their_price_and_hardly_less(
    k, growth, sensitivity, neighbors, epsilon, delta
):
    price = Privacy(epsilon, delta)
    moved = count_moved(k, growth, neighbors)
    sigma = find_sigma(price, moved, sensitivity)
    chosen = CountNoise(DiscreteGaussian(sigma=sigma), price)
    found = worst(chosen, k, growth, sensitivity, neighbors)
    assert 0.5 * price.delta < found <= price.delta + ROUNDING


def broken(sigma, price):
    return CountNoise(DiscreteGaussian(sigma=sigma), price)


def test_mutant_noise_for_one_count_on_three():
    price = Privacy(1, "0.01")
    chosen = broken(find_sigma(price, 1, 1), price)
    assert worst(chosen, 3, None, 1, ADD_REMOVE) > 2 * price.delta


def test_mutant_growth_that_is_not_doubled_where_records_are_replaced():
    price = Privacy(1, "0.01")
    chosen = broken(find_sigma(price, 1, 1), price)
    assert worst(chosen, 3, 1, 1, ADD_REMOVE) <= price.delta + ROUNDING
    assert worst(chosen, 3, 1, 1, REPLACE) > 1.5 * price.delta


def test_mutant_laplace_noise_with_a_growth_that_is_not_doubled():
    chosen = CountNoise(DiscreteLaplace(scale=1), Privacy(1))
    assert worst(chosen, 2, 1, 1, ADD_REMOVE) < ROUNDING
    assert worst(chosen, 2, 1, 1, REPLACE) > 0.01


def test_mutant_noise_that_leaves_the_sensitivity_out():
    price = Privacy(1, "0.01")
    assert worst(broken(find_sigma(price, 1, 1), price), 1, None, 3, ADD_REMOVE) > 5 * price.delta


def continuous_delta(epsilon, sigma, distance):
    """What Gaussian noise on real numbers needs (Balle and Wang 2018)."""
    upper = lambda x: math.erfc(x / math.sqrt(2)) / 2  # noqa: E731
    middle = epsilon * sigma / distance
    near, far = distance / (2 * sigma) - middle, distance / (2 * sigma) + middle
    return upper(-near) - math.exp(epsilon) * upper(far)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (3, 0.06)])
def test_mutant_the_delta_of_continuous_noise(epsilon, delta):
    """On whole numbers it takes more noise."""
    low, high = 0.1, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = continuous_delta(epsilon, middle, 1) <= delta
        low, high = (low, middle) if enough else (middle, high)
    price = Privacy(epsilon, delta)
    sigma = Fraction(high)
    assert worst(broken(sigma, price), 1, None, 1, ADD_REMOVE) > 1.001 * delta
    with precision(128):
        assert gaussian_delta(price.epsilon, sigma**2, 1, 1) > 1.001 * delta
    assert find_sigma(price, 1, 1) > sigma


@pytest.mark.parametrize(("moved", "sensitivity"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("sigma", [Fraction(3, 4), Fraction(2)])
def test_the_delta_that_is_charged_is_that_of_the_largest_move(moved, sensitivity, sigma):
    """It is never below the truth, and above it by next to nothing unless the noise is tiny."""
    noise = DiscreteGaussian(sigma=sigma)
    for epsilon in (Fraction(1, 2), Fraction(2)):
        true = hockey_stick(noise, (sensitivity,) * moved, epsilon)
        with precision(128):
            charged = float(gaussian_delta(epsilon, sigma**2, moved, sensitivity))
        assert true <= charged + ROUNDING
        assert charged <= true * (1.05 if sigma < 1 else 1 + 1e-9) + ROUNDING
        moves = product(range(-sensitivity, sensitivity + 1), repeat=moved)
        for shift in {tuple(sorted(move)) for move in moves}:
            assert hockey_stick(noise, shift, epsilon) <= true + ROUNDING


def test_gaussian_noise_has_the_smaller_error_from_eight_counts_on():
    """By their standard deviations it is the ninth: 4.2·√9 against √2·9."""
    price = Privacy(1, "1e-6")
    kinds = [type(choose_noise(price, k=k).noise) for k in range(1, 20)]
    assert kinds == [DiscreteLaplace] * 7 + [SharedGaussian] * 12
    errors = [choose_noise(price, k=k).noise.error() for k in (1, 7, 8, 10, 100, 1000)]
    assert errors == [3, 21, 16, 17, 46, 135]
    alone = [choose_noise(price, k=k, neighbors=REPLACE).noise.error() for k in (8, 10, 100, 1000)]
    assert alone == [23, 26, 83, 262]
    for k, smaller in ((8, False), (9, True)):
        sigma = find_sigma(price, k, 1)
        assert (sigma < math.sqrt(2) * k) is smaller


def test_noise_follows_growth_sensitivity_and_the_relation():
    price = Privacy(1, "1e-6")
    assert choose_noise(price, k=100, growth=3) == choose_noise(price, k=3)
    assert choose_noise(price, k=100, growth=3, neighbors=REPLACE) == choose_noise(price, k=6)
    assert choose_noise(price, k=2, growth=3, neighbors=REPLACE) == choose_noise(price, k=2)
    assert choose_noise(price, k=2, sensitivity=7).noise == DiscreteLaplace(scale=14)
    wide = choose_noise(price, k=100, sensitivity=64, step=Fraction(1, 64)).noise
    assert wide.step == Fraction(1, 64)
    assert abs(wide.error() - 46) < 1
    assert choose_noise(Privacy(1), k=100).privacy == Privacy(1)
    assert choose_noise(price, k=7).privacy == Privacy(1)
    assert choose_noise(price, k=8).privacy == price


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(scale="0.2"),
        DiscreteLaplace(scale=3),
        DiscreteGaussian(sigma="0.3"),
        DiscreteGaussian(sigma="1.7"),
        DiscreteGaussian(sigma=20),
    ],
    ids=repr,
)
def test_an_error_is_the_least_that_holds_95_of_100(noise):
    reach = reach_of(noise)
    law = pmf(noise, reach)
    within = [law[reach - error : reach + error + 1].sum() for error in range(reach)]
    error = noise.error()
    assert within[error] >= 0.95
    assert error == 0 or within[error - 1] < 0.95
    assert [noise.chance(steps) for steps in (-2, 0, 5)] == pytest.approx(
        [law[reach + steps] for steps in (-2, 0, 5)], abs=1e-10
    )


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(3), Fraction(50, 7)])
@pytest.mark.parametrize("least", [1, 2, 9, 60])
def test_tails_hold_the_sums_that_they_are(sigma, least):
    variance = sigma**2
    with precision(128):
        exact = _add_up(variance, least, _term(variance, least))
        assert gaussian_sum(variance, least).overlaps(exact)
        assert exact.rel_accuracy_bits() > 60
        assert gaussian_sum(variance, least).rel_accuracy_bits() > 60
        both = gaussian_tail(variance, least) + gaussian_tail(variance, 1 - least)
        assert both.overlaps(1 + 0 * both)
        assert abs(float(laplace_tail(sigma, least) + laplace_tail(sigma, 1 - least)) - 1) < 1e-15


def remainder(variance, least, terms):
    """The bound of docs/proofs/counts.md after so many terms of the formula."""
    v, p = arb(variance), terms
    area = (arb.pi() * v / 2).sqrt() * (least / (2 * v).sqrt()).erfc()
    mean = ((2 * arb.pi() * v).sqrt() * area).sqrt() * arb(math.factorial(2 * p)).sqrt() / v**p
    return 2 * arb(2 * p).zeta() / (2 * arb.pi()) ** (2 * p) * mean


@pytest.mark.parametrize("variance", [1000, *(1 << power for power in range(20, 70, 2))])
@pytest.mark.parametrize("spread", [0, 3])
def test_the_ball_of_a_sum_is_as_wide_as_what_is_left_out(variance, spread):
    least = 1 + spread * math.isqrt(variance)
    with precision(2000):
        found = gaussian_sum(Fraction(variance), least)
        bounds = [remainder(variance, least, terms) for terms in range(1, 49)]
        small = found.mid() / 2**64
        first = next(bound for bound in bounds if bound < small)
        assert float(found.rad() / first) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("spread", [100, 1000])
def test_far_out_on_wide_noise_a_sum_is_next_to_nothing(spread):
    """Where the formula is not close: the sum is at most its first term and the integral."""
    sigma = 1 << 13
    with precision(128):
        found = gaussian_sum(Fraction(sigma**2), spread * sigma)
        area = (arb.pi() / 2).sqrt() * sigma * (spread / arb(2).sqrt()).erfc()
        first = (-(arb(spread) ** 2) / 2).exp()
        assert found.overlaps(area.union(area + first))
        assert found.rel_accuracy_bits() < 60
        assert abs(found) < (-(arb(spread) ** 2) / 4).exp()


@pytest.mark.parametrize("power", [4, 20, 60])
def test_tails_of_wide_noise_are_those_of_the_integral(power):
    """Far out the sum is between two integrals that differ by its first term."""
    variance, least = Fraction(1 << 2 * power), 4 << power
    with precision(128):
        total = gaussian_sum(variance, least)
        assert total.rel_accuracy_bits() > 60
        area = (arb.pi() / 2).sqrt() * 2**power * (4 / arb(2).sqrt()).erfc()
        assert area < total < area + arb(-8).exp()


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(1), Fraction(5)])
def test_walk_of_discrete_gaussian_noise(variance):
    """One round on every script of coins, to a depth: the law lies in the bracket, and a wrong one
    does not. Rounds are repeated until one is accepted.
    """
    finished, left = walk(lambda coins: samplers._try_gaussian(variance, coins), 14)
    assert left < 0.06

    def fits(claim, accept=1.0):
        """Accepted draws in proportion to the law that is claimed, as often as that needs."""
        scale = math.isqrt(int(variance)) + 1
        laplace = {k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-60, 61)}
        top = max(_weight(k, claim) / chance for k, chance in laplace.items())
        law = {k: accept * _weight(k, claim) / top for k in laplace}
        law[None] = 1 - sum(law.values())
        return all(
            finished.get(k, 0) - 1e-9 <= chance <= finished.get(k, 0) + left + 1e-9
            for k, chance in law.items()
        )

    # The ratio is 1 at the peak, which lies between two whole numbers.
    peak = variance / (math.isqrt(int(variance)) + 1)
    between = min(abs(k - peak) for k in range(9))
    assert fits(variance, math.exp(-(between**2) / (2 * variance)))
    assert not fits(variance * 2)
    assert not fits(variance / 2)
    assert not fits(variance, 0.5)


def _weight(k, variance):
    return math.exp(-(k**2) / (2 * float(variance)))


def joint(chances, counts, noise, reach):
    """The law of an item together with its noisy count."""
    law = pmf(noise, reach)
    found = {None: chances[None]}
    for item, chance in chances.items():
        if item is not None:
            for step in range(-reach, reach + 1):
                found[item, counts[item] + step] = chance * law[reach + step]
    return found


def excess(left, right, epsilon):
    factor = math.exp(epsilon)
    return math.fsum(
        max(left.get(key, 0) - factor * right.get(key, 0), 0) for key in left.keys() | right.keys()
    )


def item_law(mechanism, scores):
    listed = Counter(score for score in scores.values() if score)
    exact = mechanism.law(Profile(list(listed.items())))
    chances = {item: exact.of(score) if score else 0.0 for item, score in scores.items()}
    return {**chances, None: 1 - sum(chances.values())}


@pytest.mark.parametrize("start", [(0, 0), (1, 0), (6, 1), (9, 4), (12, 3)])
def test_an_item_with_its_count_costs_both_prices(start):
    """A new item among them: its count without the record is 0."""
    mechanism, counts = NestedMargin(epsilon=1, delta="0.05"), Privacy("0.5")
    noise = choose_noise(counts, k=1).noise
    price = mechanism.privacy() + counts
    for record in product((0, 1), repeat=2):
        before = dict(zip("ab", start, strict=True))
        after = {item: before[item] + more for item, more in zip("ab", record, strict=True)}
        laws = [joint(item_law(mechanism, one), one, noise, 90) for one in (before, after)]
        for left, right in (laws, laws[::-1]):
            assert excess(left, right, price.epsilon) <= price.delta + ROUNDING
    clear = [joint(item_law(mechanism, {"a": n}), {"a": n}, noise, 90) for n in (20, 21)]
    assert excess(*clear[::-1], mechanism.privacy().epsilon / 4) > price.delta  # counts do tell


def test_a_set_with_gaussian_counts_costs_both_prices():
    """Sets of two, in an open universe, with the noise of two counts also where one came."""
    mechanism, counts = SetMargin(epsilon=1, delta="0.05", k=2), Privacy(1, "0.05")
    noise = DiscreteGaussian(sigma=find_sigma(counts, 2, 1))
    price = mechanism.privacy() + counts
    law, reach = pmf(noise, 24), 24
    pairs = [((9, 7), (9, 8)), ((9, 7), (10, 8)), ((3, 0), (4, 1)), ((12, 12), (13, 12))]
    for scores in pairs:
        laws = [_set_law(mechanism, one) for one in scores]
        for here, there in ((0, 1), (1, 0)):
            total = 0.0
            for chosen in laws[here].keys() | laws[there].keys():
                left = laws[here].get(chosen, 0.0) * _noisy(law, reach, chosen, scores[here])
                right = laws[there].get(chosen, 0.0) * _noisy(law, reach, chosen, scores[there])
                total += np.maximum(left - math.exp(price.epsilon) * right, 0).sum()
            assert total <= price.delta + ROUNDING


def _set_law(mechanism, scores):
    """The law of the released positions."""
    levels = sorted({score for score in scores if score}, reverse=True)
    profile = Profile([(level, scores.count(level)) for level in levels])
    (found,) = mechanism.sets(profile).values()
    law = {}
    for numbers, chance in found.chances.items():
        ways = [
            list(combinations([i for i, score in enumerate(scores) if score == level], number))
            for (level, _), number in zip(found.blocks, numbers, strict=True)
            if number
        ]
        sets = [frozenset(sum(parts, ())) for parts in product(*ways)]
        for one in sets:
            law[one] = law.get(one, 0.0) + chance / len(sets)
    assert sum(law.values()) == pytest.approx(1)
    return law


def _noisy(law, reach, chosen, scores):
    """The law of the noisy counts of a set on a common grid."""
    found = np.ones(1)
    for place in sorted(chosen):
        grid = np.zeros(2 * reach + 40)
        grid[scores[place] : scores[place] + len(law)] = law
        found = np.multiply.outer(found, grid).ravel()
    return found
