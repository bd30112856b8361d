"""Counts with noise that all of them share: the joint law by brute force over all small moves, and
mutants that fail.

The law of the noisy vector is added up over a grid, in floats, by code that shares nothing with
what chose the noise. What is audited is not yet rounded to steps, so it tells more than a release.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privmax import ParameterError, Privacy, count_costs, counts
from privmax.count_costs import find_shared, find_sigma, shared_delta
from privmax.counts import DiscreteGaussian, SharedGaussian, choose_noise, read_noise
from privmax.noise.balls import precision
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import SeededCoins

ROUNDING = 1e-9
PRICE = Privacy(1, "1e-6")


def gaussian(variance, reach):
    """Discrete Gaussian noise on −reach … reach."""
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-(steps**2) / (2 * float(variance)))
    return weights / weights.sum()


def joint(variances, shift, reach):
    """The law of k counts with noise that have moved by `shift`, on a cube from −reach to reach."""
    own, shared = variances
    law = gaussian(own, 2 * reach + max(map(abs, shift)))
    middle = len(law) // 2
    common = gaussian(shared, reach) if shared else np.ones(1)
    found = 0.0
    for place, chance in enumerate(common):
        z = place - len(common) // 2
        sides = [law[middle - reach - z - move : middle + reach + 1 - z - move] for move in shift]
        cube = np.ones(1)
        for side in sides:
            cube = np.multiply.outer(cube, side).ravel()
        found = found + chance * cube
    return found


def worst(variances, shifts, epsilon, sensitivity):
    """The largest hockey-stick divergence over all moves, in both directions."""
    reach = math.ceil(6.5 * math.sqrt(float(sum(variances)))) + sensitivity
    first = next(iter(shifts))
    still = joint(variances, (0,) * len(first), reach)
    factor = math.exp(epsilon)
    found = 0.0
    for shift in shifts:
        moved = joint(variances, shift, reach)
        for left, right in ((still, moved), (moved, still)):
            found = max(found, math.fsum(np.maximum(left - factor * right, 0)))
    return found


def moves(k, moved, sensitivity, parts, low=0):
    """All that one individual may add to k counts, in parts of a step, up to their order."""
    found = product(range(low * sensitivity, sensitivity + 1), repeat=k)
    return {
        tuple(parts * one for one in sorted(shift))
        for shift in found
        if 0 < sum(map(bool, shift)) <= moved
    }


def variances_for(price, k, moved, sensitivity, parts):
    own, shared = find_shared(price, k, moved, sensitivity, parts)
    return (own * parts) ** 2, (shared * parts) ** 2


CASES = [
    # k, moved, sensitivity, parts
    (2, 2, 1, 3),
    (2, 2, 1, 9),
    (2, 2, 3, 1),
    pytest.param(3, 3, 1, 3, marks=pytest.mark.slow),
    pytest.param(3, 2, 1, 3, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("k", "moved", "sensitivity", "parts"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.05"), ("2", "0.01")])
def test_shared_noise_keeps_its_cost_and_hardly_less(k, moved, sensitivity, parts, epsilon, delta):
    price = Privacy(epsilon, delta)
    variances = variances_for(price, k, moved, sensitivity, parts)
    shifts = moves(k, moved, sensitivity, parts)
    found = worst(variances, shifts, price.epsilon, sensitivity * parts)
    assert found <= price.delta + ROUNDING
    if sensitivity * parts > 4 and min(variances) > 16:  # otherwise whole numbers cost a part of it
        assert found > 0.5 * price.delta


def test_mutant_the_shared_noise_is_left_out():
    price = Privacy(1, "0.02")
    own, shared = variances_for(price, 2, 2, 1, 5)
    shifts = moves(2, 2, 1, 5)
    assert worst((own, shared), shifts, 1, 5) <= price.delta + ROUNDING
    assert worst((own, 0), shifts, 1, 5) > 1.5 * price.delta


def test_mutant_noise_of_add_remove_where_records_are_replaced():
    price = Privacy(1, "0.02")
    variances = variances_for(price, 2, 2, 1, 5)
    assert worst(variances, moves(2, 2, 1, 5, low=-1), 1, 5) > 1.5 * price.delta


@pytest.mark.slow
def test_mutant_noise_for_two_counts_on_three():
    price = Privacy(1, "0.02")
    variances = variances_for(price, 2, 2, 1, 5)
    shifts = {(0, 5, 5), (5, 5, 5)}
    assert worst(variances, shifts, 1, 5) > 1.1 * price.delta


@pytest.mark.parametrize(("k", "moved"), [(1, 1), (2, 2), (4, 4), (4, 1), (4, 2)])
@pytest.mark.parametrize(("own", "shared"), [(40, 40), (90, 20), (300, 9)])
def test_no_move_is_further_than_is_charged(k, moved, own, shared):
    """For each move the best whole shift of the shared noise, by trying all of them."""
    parts = 7
    v, w = Fraction(own - count_costs.ROUNDED), Fraction(shared - count_costs.ROUNDED)
    bound = parts**2 * count_costs._spread(v, w, k, moved) / v + (1 / w + k / v) / 4
    for steps in product(range(parts + 1), repeat=k):
        if sum(map(bool, steps)) <= moved:
            distance = min(
                t**2 / w + sum((one - t) ** 2 for one in steps) / v for t in range(parts + 1)
            )
            assert distance <= bound


@pytest.mark.parametrize("sigma", [20, 50])
def test_for_one_count_the_two_variances_add_up(sigma):
    """What `gaussian_delta` charges for their sum is exact."""
    variance = Fraction(sigma * 33) ** 2
    with precision(128):
        charged = float(shared_delta(Fraction(1), (variance, variance), 1, 1, 3300))
        alone = float(count_costs.gaussian_delta(Fraction(1), 2 * variance, 1, 3300))
    assert alone <= charged <= 1.001 * alone


@pytest.mark.parametrize(("k", "part"), [(10, 0.66), (100, 0.551), (1000, 0.52)])
def test_the_standard_deviation_is_two_thirds_to_a_half_of_that_of_independent_noise(k, part):
    own, shared = find_shared(PRICE, k, k, 1)
    ratio = math.sqrt(own**2 + shared**2) / find_sigma(PRICE, k, 1)
    assert part - 0.01 < ratio <= part
    ideal = (math.sqrt(k) + 1) / (2 * math.sqrt(k))  # arXiv 2408.06853
    assert ratio == pytest.approx(ideal, rel=0.004)


def test_it_is_used_where_gaussian_noise_was_and_records_come_or_go():
    for k in (8, 10, 100):
        shared, alone = (choose_noise(PRICE, k=k, neighbors=one) for one in (ADD_REMOVE, REPLACE))
        assert (type(shared.noise), type(alone.noise)) == (SharedGaussian, DiscreteGaussian)
        assert shared.privacy == alone.privacy == PRICE
        assert shared.noise.error() < alone.noise.error()
    assert type(choose_noise(PRICE, k=7).noise) is not SharedGaussian
    few = choose_noise(PRICE, k=100, growth=20).noise
    assert choose_noise(PRICE, k=20).noise.error() < few.error() < find_sigma(PRICE, 20, 1) * 2
    steps = choose_noise(PRICE, k=100, sensitivity=64, step=Fraction(1, 64)).noise
    assert steps.step == Fraction(1, 64)
    assert steps.error() == pytest.approx(choose_noise(PRICE, k=100).noise.error(), abs=1)


def rounded_law(noise, reach):
    """The law of one count's noise in steps, by its definition."""
    own, shared = (gaussian(one, reach) for one in noise.variances)
    both = np.convolve(own, shared)
    middle = len(both) // 2
    law = {}
    for place, chance in enumerate(both):
        step = math.floor((place - middle) / noise.parts + 0.5)
        law[step] = law.get(step, 0.0) + chance
    return law


@pytest.mark.parametrize(
    "noise",
    [
        SharedGaussian(sigma="0.1", shared="0.2"),
        SharedGaussian(sigma=2, shared=1, parts=3),
        SharedGaussian(sigma=3, shared="1.5", step="0.5", parts=5),
    ],
    ids=repr,
)
def test_the_law_and_the_error_of_one_count(noise):
    law = rounded_law(noise, 12 * math.isqrt(int(sum(noise.variances))) + 40)
    for steps in (-3, 0, 1, 4):
        assert noise.chance(steps) == pytest.approx(law.get(steps, 0.0), abs=1e-12)
    error = round(Fraction(noise.error()) / noise.step)
    inside = [
        math.fsum(chance for step, chance in law.items() if abs(step) <= most)
        for most in (error - 1, error)
    ]
    assert inside[0] < 0.95 <= inside[1]


def test_all_counts_of_a_release_get_the_same_shared_noise(monkeypatch):
    """First what is shared, then what each has, and the sum to the nearest step."""
    noise = SharedGaussian(sigma=2, shared=1, parts=5)
    values = iter([-4, 0, 2, 11, -9])
    asked = []

    def scripted(variance, coins):
        asked.append(variance)
        return next(values)

    monkeypatch.setattr(counts, "discrete_gaussian", scripted)
    assert noise.add_all([100, 200, 300, 400], SeededCoins(1)) == (99, 200, 301, 397)
    assert asked == [25, 100, 100, 100, 100]


def test_counts_vary_together_as_much_as_they_share():
    noise = SharedGaussian(sigma=3, shared=4)
    drawn = np.array([noise.draw_all(2, SeededCoins(f"pair {one}")) for one in range(1000)])
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(16 / 25, abs=0.08)
    assert drawn.std() == pytest.approx(5, rel=0.06)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"sigma": 1, "shared": 1, "parts": 4}, "parts"),
        ({"sigma": "0.05", "shared": 1}, "sigma"),
        ({"sigma": 1, "shared": "0.05"}, "shared"),
    ],
)
def test_parameters_out_of_bounds_are_refused(wrong, name):
    with pytest.raises(ParameterError, match=f"^{name}="):
        SharedGaussian(**wrong)


def test_it_is_written_down_and_read_exactly():
    noise = choose_noise(PRICE, k=10).noise
    assert read_noise(noise.to_dict()) == noise
    assert read_noise({"law": "DiscreteGaussian", "sigma": "5", "step": "1"}).error() == 10
