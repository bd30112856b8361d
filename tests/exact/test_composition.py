"""Composition: prices against the exact composition of the worst mechanism of a range, and their
inverse.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb

from privmax import composition
from privmax.errors import ParameterError
from privmax.noise.balls import precision

MILLIONTH = Fraction(1, 10**6)


def needed_delta(rounds, span, epsilon, low):
    """Exact delta at epsilon of so many rounds whose loss is `low` or `low` + span, as mean 1 of
    e^(−loss) dictates.
    """
    high = low + span
    chance = (1 - math.exp(-low)) / (math.exp(-high) - math.exp(-low))  # of the high loss, under P
    total = 0.0
    for highs in range(rounds + 1):
        loss = highs * high + (rounds - highs) * low
        ways = math.comb(rounds, highs) * chance**highs * (1 - chance) ** (rounds - highs)
        total += ways * max(0.0, -math.expm1(epsilon - loss))
    return total


@pytest.mark.parametrize("rounds", [1, 2, 10, 100])
@pytest.mark.parametrize("span", [Fraction(1, 10), Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 100)])
@pytest.mark.parametrize("price", [composition.price_by_range, composition.price_by_concentration])
def test_rounds_of_two_losses_stay_within_their_price(rounds, span, delta, price):
    """Two-point losses are the extreme ones: both proofs reduce to them."""
    epsilon = float(price(rounds, span, delta).mid())
    worst = max(
        needed_delta(rounds, span, epsilon, -float(span) * part / 40) for part in range(1, 40)
    )
    assert worst <= float(delta)


def test_a_price_that_is_too_low_is_seen():
    epsilon = float(composition.price_by_concentration(100, Fraction(1, 10), MILLIONTH).mid())
    worst = max(
        needed_delta(100, Fraction(1, 10), 0.7 * epsilon, -part / 400) for part in range(1, 40)
    )
    assert worst > 1e-6


def test_the_mean_of_a_range_is_below_an_eighth_of_its_square():
    for span in (Fraction(1, 100), Fraction(1), Fraction(5)):
        y = float(span) / math.expm1(span)
        assert 0 < y - 1 - math.log(y) <= float(span) ** 2 / 8


@pytest.mark.parametrize("rounds", [1, 2, 10, 300])
@pytest.mark.parametrize("bounded_range", [True, False])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 8])
def test_rounds_cost_at_most_the_total_and_nearly_all_of_it(rounds, bounded_range, epsilon):
    total = Fraction(epsilon)
    each = composition.per_round(total, MILLIONTH, rounds, bounded_range=bounded_range)
    with precision(200):
        cost = composition.price(rounds, each, MILLIONTH, bounded_range=bounded_range)
        dearer = composition.price(
            rounds, each * Fraction(1001, 1000), MILLIONTH, bounded_range=bounded_range
        )
    assert cost.upper() <= float(total) * (1 + 1e-15)
    assert float(dearer.mid()) > float(total)
    assert each >= total / rounds


@pytest.mark.parametrize(("rounds", "bounded_range"), [(10, True), (300, False)])
def test_one_step_more_for_each_round_is_too_much(rounds, bounded_range):
    each = composition.per_round(1, MILLIONTH, rounds, bounded_range=bounded_range)
    step = Fraction(1, rounds * composition.STEPS)
    assert each % step == 0
    with precision(200):
        cost, dearer = (
            composition.price(rounds, one, MILLIONTH, bounded_range=bounded_range)
            for one in (each, each + step)
        )
        assert cost <= 1
        assert dearer > 1


def test_a_cost_is_rounded_up_by_less_than_a_part_in_a_billion():
    with precision(96):
        short = (2**29 + arb(1) / 10) * arb((1, -64))  # too few digits if cut at 2^−64
        for cost in (arb(1) / 3, arb(10) ** 30 / 3, arb(10) ** -30 / 3, short):
            rounded = composition._round_up(cost)
            assert composition.ball(rounded) > cost
            assert composition.ball(rounded) < cost * (1 + arb(2) ** -30)
            rounded = composition._round_down(cost)
            assert composition.ball(rounded) < cost
            assert composition.ball(rounded) > cost * (1 - arb(2) ** -30)


def test_without_delta_prices_add():
    assert composition.per_round(1, 0, 10, bounded_range=True) == Fraction(1, 10)
    assert composition.per_round("0.3", 0, 3, bounded_range=False) == Fraction(1, 10)


def test_a_delta_pays_from_about_ten_rounds():
    gains = [
        float(composition.per_round(1, MILLIONTH, k, bounded_range=True) * k)
        for k in (2, 10, 100, 1000)
    ]
    assert gains == pytest.approx([1, 1.396, 4.414, 13.959], abs=1e-3)


def test_with_a_large_delta_a_round_may_cost_more_than_all():
    """Two of range 1.49 are (1, 1/2)-private: delta covers the rest. More is not sought."""
    each = composition.per_round(1, "0.5", 2, bounded_range=True)
    assert Fraction(149, 100) < each < Fraction(3, 2)
    spans = [-float(each) * part / 40 for part in range(1, 40)]
    assert max(needed_delta(2, float(each), 1.0, low) for low in spans) < 0.5


def test_rounds_of_unknown_range_are_twice_as_dear():
    bounded_range, plain = (
        composition.per_round(1, MILLIONTH, 1000, bounded_range=kind) for kind in (True, False)
    )
    assert float(bounded_range / plain) == pytest.approx(2, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 0, 1), "epsilon"),
        ((1, 2, 1), "delta"),
        ((1, 1, 5), "delta"),
        ((1, "1e-6", 0), "rounds"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ParameterError, match=name):
        composition.per_round(*arguments, bounded_range=True)


def gaussian_delta(variance, shift, epsilon):
    """Exact delta at epsilon of discrete Gaussian noise on a count that moves by `shift`."""
    reach = 40 * (math.isqrt(variance) + 1) + shift
    weight = {k: math.exp(-(k**2) / (2 * variance)) for k in range(-reach, reach + shift + 1)}
    total = math.fsum(weight.values())
    losses = {k: ((k - shift) ** 2 - k**2) / (2 * variance) for k in range(-reach, reach + 1)}
    return math.fsum(
        weight[k] / total * -math.expm1(epsilon - loss)
        for k, loss in losses.items()
        if loss > epsilon
    )


@pytest.mark.parametrize("variance", [1, 2, 10, 400])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 100)])
def test_a_discrete_gaussian_stays_within_the_cost_of_its_rho(variance, shift, delta):
    rho = Fraction(shift**2, 2 * variance)
    epsilon = float(composition.epsilon_of_rho(rho, delta))
    assert gaussian_delta(variance, shift, epsilon) <= delta
    if delta == MILLIONTH:  # where the conversion loses little
        assert gaussian_delta(variance, shift, 0.75 * epsilon) > delta


@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.01", "0.5"])
def test_rho_and_epsilon_are_inverse_and_rise(delta):
    epsilons = [Fraction(1, 10**9), Fraction(1, 100), 1, Fraction(7, 3), 20, 1000]
    rhos = [composition.largest_rho(epsilon, delta) for epsilon in epsilons]
    assert rhos == sorted(set(rhos))
    for epsilon, rho in zip(epsilons, rhos, strict=True):
        cost = composition.epsilon_of_rho(rho, delta)
        assert cost <= epsilon
        assert composition.epsilon_of_rho(rho * (1 + Fraction(1, 10**6)), delta) > epsilon


def test_costs_of_rho_are_those_of_rounds_of_a_range():
    for rounds, span in ((1, Fraction(1, 10)), (100, Fraction(1, 10)), (3, Fraction(2))):
        with precision(200):
            cost = composition.price_by_concentration(rounds, span, MILLIONTH).mid()
        epsilon = composition.epsilon_of_rho(rounds * span**2 / 8, MILLIONTH)
        assert epsilon == pytest.approx(float(cost), rel=1e-12)


def test_extreme_rhos_and_deltas_have_a_cost():
    tiny = Fraction(1, 10**40)
    assert 0 < composition.epsilon_of_rho(tiny, MILLIONTH**6) < Fraction(1, 10**8)
    assert 2**60 < composition.epsilon_of_rho(2**60, MILLIONTH) < 2**61
    assert composition.epsilon_of_rho(1, Fraction(1, 10**500)) > 40
    assert composition.epsilon_of_rho(tiny, MILLIONTH) == 0  # a distance of less than delta
    assert composition.largest_rho(2**60, MILLIONTH) > 2**59


@pytest.mark.parametrize("delta", [1 - Fraction(1, 10**30), 1 - Fraction(1, 10**300)])
def test_a_delta_of_almost_one_has_a_rho(delta):
    for epsilon in (Fraction(1, 10**300), 1, 10**6):
        rho = composition.largest_rho(epsilon, delta)
        assert rho > Fraction(99, 100) * epsilon
        assert composition.epsilon_of_rho(rho, delta) <= epsilon


@pytest.mark.parametrize("delta", ["1e-900", "1e-9", "0.5"])
def test_a_tiny_epsilon_has_a_rho_soon(delta, monkeypatch):
    """In some hundred steps: its digits do not count."""
    calls = []
    cost = composition.epsilon_of_rho
    monkeypatch.setattr(
        composition, "epsilon_of_rho", lambda *given: calls.append(given) or cost(*given)
    )
    rho = composition.largest_rho(Fraction(1, 10**3000), delta)
    assert cost(rho, delta) <= Fraction(1, 10**3000)
    assert len(calls) < 200
    assert delta == "1e-900" or rho > Fraction(delta) ** 2


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: composition.epsilon_of_rho(-1, "1e-6"), "rho=-1"),
        (lambda: composition.epsilon_of_rho("x", "1e-6"), "rho='x'"),
        (lambda: composition.epsilon_of_rho(1, 0), "delta=0 .* beside a delta above 0"),
        (lambda: composition.epsilon_of_rho(1, 1), "delta=1"),
        (lambda: composition.largest_rho(0, "1e-6"), "epsilon=0"),
        (lambda: composition.largest_rho(1, 0), "delta=0 .* beside a delta above 0"),
    ],
)
def test_bad_rhos_are_named(call, name):
    with pytest.raises(ParameterError, match=name):
        call()


def test_costs_of_rho_agree_with_dp_accounting():
    accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    for rho in (0.001, 0.1, 3):
        orders = [1 + 10 ** (power / 200) for power in range(-400, 1000)]
        theirs, _ = accountant.compute_epsilon(orders, [rho * order for order in orders], 1e-6)
        ours = float(composition.epsilon_of_rho(rho, "1e-6"))
        assert theirs * (1 - 1e-4) <= ours <= theirs * (1 + 1e-9)
