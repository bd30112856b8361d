"""Bulk samplers against their distributions. A wrong scale, 5 % either way, must be rejected by the
same test.

Seeds are fixed, so these tests are repeatable: each either passes for good or fails for good.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privmax.noise import bulk, samplers
from privmax.noise.blocks import Blocks
from privmax.testing import SeededCoins

ALPHA = 1e-4
N = 200_000


def fits(draws, chances):
    """Chi-square at ALPHA against {value: probability}, rare values pooled."""
    values, counts = np.unique(draws, return_counts=True)
    observed = dict(zip(values.tolist(), counts.tolist(), strict=True))
    cells = [(observed.get(value, 0), chance * len(draws)) for value, chance in chances.items()]
    common = [cell for cell in cells if cell[1] >= 10]
    seen, expected = (sum(column) for column in zip(*common, strict=True))
    table = [*common, (len(draws) - seen, len(draws) - expected)]
    statistic = sum((o - e) ** 2 / e for o, e in table if e > 1e-9)
    return stats.chi2.sf(statistic, len(table) - 1) > ALPHA


def laplace_law(scale):
    x = float(1 / scale)
    return {
        k: math.tanh(x / 2) * math.exp(-abs(k) * x)
        for k in range(-int(40 * scale) - 9, int(40 * scale) + 10)
    }


def gaussian_law(variance):
    reach = 12 * math.isqrt(math.ceil(variance)) + 9
    weights = {k: math.exp(-(k**2) / (2 * float(variance))) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def geometric_law(x):
    return {k: math.exp(-k * x) * -math.expm1(-x) for k in range(int(40 / x) + 2)}


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(3), Fraction(1000, 7)])
def test_bulk_discrete_laplace(scale):
    draws = bulk.discrete_laplace(scale, N, SeededCoins(f"laplace {scale}"))
    assert fits(draws, laplace_law(scale))
    assert not fits(draws, laplace_law(scale * Fraction(19, 20)))
    assert not fits(draws, laplace_law(scale * Fraction(21, 20)))


@pytest.mark.parametrize("x", [Fraction(1, 100), Fraction(1, 2), Fraction(2)])
def test_bulk_geometric(x):
    draws = bulk.geometric(x, N, SeededCoins(f"geometric {x}"))
    assert fits(draws, geometric_law(float(x)))
    assert not fits(draws, geometric_law(float(x) * 0.95))
    assert not fits(draws, geometric_law(float(x) * 1.05))


@pytest.mark.parametrize("x", [Fraction(1, 1000), Fraction(1, 2), Fraction(4)])
def test_bulk_bernoulli(x):
    heads = bulk.bernoulli_exp(x, 10 * N, SeededCoins(f"bernoulli {x}"))
    law = {True: math.exp(-x), False: -math.expm1(-x)}
    wrong = {True: law[True] * 0.95, False: 1 - law[True] * 0.95}
    assert fits(heads, law)
    assert not fits(heads, wrong)


@pytest.mark.slow
def test_scalar_discrete_laplace():
    coins = SeededCoins("scalar")
    draws = [samplers.discrete_laplace(Fraction(3), coins) for _ in range(20_000)]
    assert fits(draws, laplace_law(Fraction(3)))
    assert not fits(draws, laplace_law(Fraction(27, 10)))


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(30)])
def test_scalar_discrete_gaussian(variance):
    coins = SeededCoins(f"gaussian {variance}")
    draws = [samplers.discrete_gaussian(variance, coins) for _ in range(20_000)]
    assert fits(draws, gaussian_law(variance))
    assert not fits(draws, gaussian_law(variance * Fraction(9, 10)))
    assert not fits(draws, gaussian_law(variance * Fraction(11, 10)))


@pytest.mark.parametrize(
    "variance", [Fraction(1, 2), Fraction(30), Fraction(4096), Fraction(10**6, 7)]
)
def test_bulk_discrete_gaussian(variance):
    draws = bulk.discrete_gaussian(variance, N, SeededCoins(f"bulk gaussian {variance}"))
    assert fits(draws, gaussian_law(variance))
    assert not fits(draws, gaussian_law(variance * Fraction(9, 10)))
    assert not fits(draws, gaussian_law(variance * Fraction(11, 10)))


@pytest.mark.slow
@pytest.mark.parametrize("power", [30, 70, 96])
def test_bulk_discrete_gaussian_of_a_huge_variance(power):
    """Counted in tenths of the standard deviation, where the discrete law is the continuous one."""
    draws = bulk.discrete_gaussian(Fraction(2**power), 5 * N, SeededCoins(f"huge {power}"))
    tenths = np.floor_divide(draws, 2 ** (power // 2) // 10)

    def law(scale):
        edges = np.arange(-90, 91) / (10 * scale)
        return dict(zip(range(-90, 90), np.diff(stats.norm.cdf(edges)), strict=True))

    assert fits(tenths, law(1))
    assert not fits(tenths, law(0.98))
    assert not fits(tenths, law(1.02))


@pytest.mark.slow
def test_the_tails_of_bulk_discrete_gaussian():
    """With tails from 3 on, one draw in ten comes from there."""
    blocks, coins = Blocks(Fraction(9, 4), spread=1), SeededCoins("tails")
    draws, rejected = blocks.draw(N, coins)
    assert blocks.reach == 3
    kept = np.delete(draws, rejected)
    assert np.mean(np.abs(kept) >= blocks.reach) > 0.05
    assert fits(kept, gaussian_law(Fraction(9, 4)))
    assert not fits(draws, gaussian_law(Fraction(9, 4)))


def test_draws_in_bulk_are_independent_of_their_neighbours():
    draws = bulk.discrete_laplace(Fraction(2), N, SeededCoins("neighbours"))
    correlation = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(correlation) < 4 / math.sqrt(N)
    assert abs(np.corrcoef(np.abs(draws[:-1]), np.abs(draws[1:]))[0, 1]) < 4 / math.sqrt(N)


def rounded_law(variance):
    sigma, reach = math.sqrt(variance), 12 * math.isqrt(math.ceil(variance)) + 9
    edges = stats.norm.cdf(np.arange(-reach, reach + 2) / sigma)
    return dict(zip(range(-reach, reach + 1), np.diff(edges), strict=True))


@pytest.mark.parametrize(
    ("variance", "size"),
    [
        pytest.param(Fraction(1, 2), N // 20, marks=pytest.mark.slow),
        pytest.param(Fraction(30), N // 10, marks=pytest.mark.slow),
        (Fraction(4096), N // 2),
        (Fraction(10**7, 7), N),
    ],
)
def test_bulk_rounded_gaussian(variance, size):
    """⌊x⌋ of a normal x: its mean is −1/2, and both wrong scales and a wrong side are rejected."""
    draws = bulk.rounded_gaussian(variance, size, SeededCoins(f"rounded {variance}"))
    assert fits(draws, rounded_law(variance))
    assert not fits(draws, rounded_law(variance * Fraction(17, 20)))
    assert not fits(draws, rounded_law(variance * Fraction(23, 20)))
    if variance < 100:
        assert not fits(draws, gaussian_law(variance))
        assert not fits(draws + 1, rounded_law(variance))


@pytest.mark.slow
def test_bulk_rounded_gaussian_of_a_huge_variance():
    """As rounds of keys use it: counted in tenths of the standard deviation."""
    draws = bulk.rounded_gaussian(Fraction(2**42), 2 * N, SeededCoins("rounded huge"))
    tenths = np.floor_divide(draws, 2**21 // 10)

    def law(scale):
        edges = np.arange(-90, 91) / (10 * scale)
        return dict(zip(range(-90, 90), np.diff(stats.norm.cdf(edges)), strict=True))

    assert fits(tenths, law(1))
    assert not fits(tenths, law(0.98))
    assert not fits(tenths, law(1.02))
