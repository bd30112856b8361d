"""Bad arguments to the samplers, and exact bounds. Their distributions are walked in
tests/exact/test_walks.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from privmax.errors import ParameterError
from privmax.noise import bulk, samplers
from privmax.noise.balls import ball, ceiling_log, precision
from privmax.noise.coins import SYSTEM
from privmax.testing import ScriptedCoins, SeededCoins, walk


@pytest.mark.parametrize(
    "call",
    [
        lambda: samplers.uniform_below(0, SYSTEM),
        lambda: samplers.bernoulli_exp(Fraction(-1), SYSTEM),
        lambda: samplers.geometric(Fraction(0), SYSTEM),
        lambda: samplers.discrete_laplace(Fraction(0), SYSTEM),
        lambda: samplers.discrete_laplace(Fraction(-1), SYSTEM),
        lambda: samplers.discrete_gaussian(Fraction(0), SYSTEM),
        lambda: samplers.discrete_gaussian(Fraction(-1, 2), SYSTEM),
        lambda: bulk.bernoulli_exp(Fraction(-1), 5, SYSTEM),
        lambda: bulk.bernoulli_exp(Fraction(1), -5, SYSTEM),
        lambda: bulk.bernoulli_exp(Fraction(0), -1, SYSTEM),
        lambda: bulk.geometric(Fraction(1, 2**60), 5, SYSTEM),
        lambda: bulk.discrete_laplace(Fraction(0), 5, SYSTEM),
        lambda: bulk.discrete_laplace(Fraction(2**60), 5, SYSTEM),
        lambda: bulk.discrete_gaussian(Fraction(0), 5, SYSTEM),
        lambda: bulk.discrete_gaussian(Fraction(-1), 5, SYSTEM),
        lambda: bulk.discrete_gaussian(Fraction(2**97), 5, SYSTEM),
        lambda: bulk.discrete_gaussian(Fraction(1), -5, SYSTEM),
        lambda: bulk.discrete_gaussian(Fraction(1), 2.0, SYSTEM),
    ],
)
def test_impossible_parameters_are_refused(call):
    with pytest.raises(ParameterError, match="is not allowed"):
        call()


def test_the_widest_noise_that_is_drawn_in_bulk():
    """A scale of 2^48, and a variance of its square."""
    wide = Fraction(2**48)
    assert len(bulk.discrete_laplace(wide, 3, SYSTEM)) == 3
    assert len(bulk.geometric(1 / wide, 3, SYSTEM)) == 3
    assert len(bulk.discrete_gaussian(wide**2, 3, SYSTEM)) == 3
    for call, number in (
        (bulk.discrete_laplace, wide + 1),
        (bulk.geometric, 1 / (wide + 1)),
        (bulk.discrete_gaussian, wide**2 + 1),
    ):
        with pytest.raises(ParameterError, match=r"2\^-?(48|96)"):
            call(number, 3, SYSTEM)


@pytest.mark.parametrize("size", [0, 1, 9])
def test_bulk_sizes(size):
    assert len(bulk.discrete_laplace(Fraction(2), size, SYSTEM)) == size
    assert bulk.bernoulli_exp(Fraction(0), size, SYSTEM).tolist() == [True] * size
    for variance in (Fraction(2), Fraction(10**6)):
        draws = bulk.discrete_gaussian(variance, size, SYSTEM)
        assert (len(draws), draws.dtype) == (size, np.int64)


def test_more_gaussians_than_are_drawn_at_a_time(monkeypatch):
    monkeypatch.setattr(bulk, "_CHUNK", 100)
    draws = bulk.discrete_gaussian(Fraction(10**6), 1050, SeededCoins(1))
    assert len(draws) == 1050
    assert 900 < draws.std() < 1100


@pytest.mark.parametrize("variance", [Fraction(1, 1000), Fraction(1, 10**30), Fraction(7, 10**400)])
def test_gaussians_of_a_tiny_variance_are_zero(variance):
    assert not bulk.discrete_gaussian(variance, 1000, SeededCoins(1)).any()


def test_large_scales_give_large_draws():
    draws = bulk.discrete_laplace(Fraction(2**40), 1000, SeededCoins(1))
    assert 2**38 < np.median(np.abs(draws)) < 2**41
    assert abs(samplers.discrete_laplace(Fraction(2**200), SeededCoins(1))) > 2**150


def test_tiny_chances_and_rates_are_decided():
    assert not samplers.bernoulli_exp(Fraction(10**6), SeededCoins(1))
    assert samplers.jump(lambda: ball(Fraction(1, 10**60)), SeededCoins(1), limit=10**12) == 10**12
    assert samplers.jump(lambda: ball(Fraction(1, 10**60)), SeededCoins(1)) > 10**55


@pytest.mark.parametrize("power", [60, 90, 100, 180])
def test_a_boundary_next_to_a_short_fraction_is_told_from_it(power):
    """1/2 ± 2^−power, met by numbers between it and 1/2 and by numbers on its other side."""
    for side in (1, -1):
        cut = Fraction(1, 2) + side * Fraction(1, 2**power)

        def weights(cut=cut):
            return [ball(cut), ball(1 - cut)]

        for bits, expected in (
            (Fraction(1, 2) + side * Fraction(1, 2 ** (power + 1)), side < 0),
            (Fraction(1, 2) + side * Fraction(3, 2 ** (power + 1)), side > 0),
        ):
            script = int(bits * 2**400)
            assert samplers.weighted(weights, ScriptedCoins(script, 400)) == expected
            left = samplers.Uniform(ScriptedCoins(script, 400)).left_of(lambda cut=cut: ball(cut))
            assert left is not expected


@pytest.mark.parametrize("length", [80, 96, 120, 1000])
def test_a_real_of_which_many_bits_are_known_is_compared_by_a_few_more(length):
    for script, expected in ((0b01, True), (0b11, False)):
        uniform = samplers.Uniform(ScriptedCoins(script, 2))
        uniform.known, uniform.length = 1 << length - 1, length
        point = Fraction(1, 2) + Fraction(1, 2 ** (length + 1))
        assert uniform.left_of(lambda point=point: ball(point)) is expected


def test_a_weighted_draw_takes_no_more_coins_than_decide_it():
    even = walk(lambda coins: samplers.weighted(lambda: [ball(1), ball(1)], coins), 1)
    assert even == ({0: Fraction(1, 2), 1: Fraction(1, 2)}, 0)
    mixed = walk(lambda coins: samplers.weighted(lambda: [ball(2), ball(1), ball(1)], coins), 2)
    assert mixed == ({0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}, 0)


@pytest.mark.parametrize("x", [Fraction(1, 2), Fraction(1), Fraction(2)])
def test_a_coin_of_bias_one_over_a_power_of_e_falls_on_both_sides(x):
    near = int(math.exp(-x) * 2**20)
    found = [samplers.bernoulli_exp(x, ScriptedCoins(near + off, 20)) for off in (-1, 1)]
    assert found == [True, False]


@pytest.mark.parametrize("side", [1, -1])
def test_a_jump_is_told_from_the_next_where_its_boundary_is_next_to_a_half(side):
    """At a rate of (1 ± 2^−200)·ln 2 it is 1 from U = 1/2 ∓ 2^−201·ln 2 on down."""
    edge = Fraction(1, 2) - side * Fraction(math.log(2)) / 2**201
    for u, expected in ((edge - Fraction(1, 2**203), 1), (edge + Fraction(1, 2**203), 0)):
        script = ScriptedCoins(int(u * 2**600), 600)
        rate = lambda: arb.const_log2() * (1 + side * arb((1, -200)))  # noqa: E731
        assert samplers.jump(rate, script) == expected


def test_a_precision_ends_with_its_block():
    before = ctx.prec
    with precision(before + 100):
        with pytest.raises(ZeroDivisionError), precision(before + 200):
            raise ZeroDivisionError
        assert ctx.prec == before + 100
    assert ctx.prec == before


@given(
    st.fractions(min_value="1/100", max_value=100).filter(bool),
    st.fractions(min_value="1/1000", max_value=1000).filter(bool),
)
def test_ceiling_log_is_the_ceiling(scale, argument):
    value = ceiling_log(scale, argument)
    estimate = float(scale) * math.log(argument)
    assert value - 1 - 1e-9 < estimate <= value + 1e-9


def test_ceiling_log_where_floats_cannot_tell():
    # e^(20/3) cut off after 27 decimals: 3·ln is just below 20, and one unit further just above
    digits = 785771994227417299377726501193
    below, above = Fraction(digits, 10**27), Fraction(digits + 1, 10**27)
    assert math.log(below) == math.log(above)
    assert [ceiling_log(Fraction(3), x) for x in (below, above)] == [20, 21]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(3), Fraction(25, 2)])
def test_the_tail_lemma_holds_at_integers_and_fails_between(scale):
    """P(X > x) ≤ ½e^(−x/b) for integer x ≥ 0: what the discrete twin of the paper's proof rests
    on.
    """
    b = float(scale)
    for x in range(60):
        tail = math.exp(-(x + 1) / b) / (1 + math.exp(-1 / b))  # P(X ≥ x + 1)
        assert tail <= 0.5 * math.exp(-x / b)
        almost = x + 1 - 1e-6
        assert tail > 0.5 * math.exp(
            -almost / b
        )  # P(X > almost) is the same tail, and the bound no longer holds


@pytest.mark.parametrize("power", [3, 9, 300])
def test_laplace_noise_of_a_tiny_scale_is_drawn_soon(power):
    """The digits of the chance of 0, which is almost 1, once took a precision of 10^power bits."""
    assert bulk.discrete_laplace(Fraction(1, 10**power), 100, SYSTEM).tolist() == [0] * 100


@pytest.mark.parametrize("x", [Fraction(1, 1000), Fraction(1), Fraction(7, 3), Fraction(200)])
def test_digits_of_the_rest_are_those_of_one_minus_it(x):
    for skip in (0, 8, 72):
        found = bulk._digits(lambda: bulk._nonzero_chance(x), skip, 64, rest=True)
        assert found == bulk._digits(lambda: (ball(x) / 2).tanh(), skip, 64, rest=False)


def test_chances_of_digits_and_of_zero():
    """1/(1 + e^x), and 1 − tanh(x/2)."""
    assert float(bulk._digit_chance(Fraction(1)).mid()) == pytest.approx(0.2689414213699951)
    assert float(bulk._digit_chance(Fraction(3)).mid()) == pytest.approx(0.04742587317756678)
    assert float(bulk._nonzero_chance(Fraction(1)).mid()) == pytest.approx(0.5378828427399902)
    assert float(bulk._nonzero_chance(Fraction(3)).mid()) == pytest.approx(0.0948517463551336)
