"""The race of blocks: its draw against its law, and its law against integrals in other coordinates
and closed forms.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb
from scipy.integrate import quad

from privmax.noise.balls import ball, precision
from privmax.noise.race import (
    EXPONENTIAL,
    LAPLACE,
    QUADRATURE_ERROR,
    ExponentialNoise,
    LaplaceNoise,
    _earlier,
    _end,
    _integrals,
    _quadrature,
    _Runner,
    race_law,
    run_race,
)
from privmax.testing import ScriptedCoins, walk

HALF = ExponentialNoise(lambda: arb(1) / 2)
TENTH = ExponentialNoise(lambda: (-ball(Fraction(23, 10))).exp())  # τ = 2.3 at rate 1
TINY = ExponentialNoise(lambda: (-ball(40)).exp())
NOISES = [EXPONENTIAL, HALF, TENTH, TINY, LAPLACE]
NAMES = ["exponential", "cut at 1/2", "cut at e^-2.3", "cut at e^-40", "laplace"]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=NAMES)


class Twin:
    """The density and distribution function of the noise at rate 1, as textbooks print them."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def pdf(self, z):
        if not self.low <= z <= self.high:
            return 0.0
        return math.exp(-z) / -math.expm1(-self.high) if self.low == 0 else math.exp(-abs(z)) / 2

    def cdf(self, z):
        if self.low == 0:
            return math.expm1(-min(max(z, 0.0), self.high)) / math.expm1(-self.high)
        return math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2


TWINS = [
    Twin(0, math.inf),
    Twin(0, math.log(2)),
    Twin(0, 2.3),
    Twin(0, 40.0),
    Twin(-math.inf, math.inf),
]
every_noise_and_twin = pytest.mark.parametrize(
    ("noise", "twin"), [*zip(NOISES, TWINS, strict=True)], ids=NAMES
)


@every_noise_and_twin
def test_times_are_quantiles_and_their_inverse_is_the_distribution_function(noise, twin):
    """y = e^−Z where F(Z) = V, and back, on both sides of every change of formula."""
    for v in (0.001, 0.1, 0.4999, 0.5, 0.5001, 0.9, 0.999):
        y = float(noise.time(arb(v).log()))
        assert twin.cdf(-math.log(y)) == pytest.approx(v, rel=1e-9)
        assert math.exp(float(noise.log_v(arb(y)))) == pytest.approx(v, rel=1e-9)


@every_noise
def test_the_floats_of_a_law_are_those_of_the_draw(noise):
    """−ln v and its derivative, from the balls that the draw uses."""
    exponent = 0.7
    for age in (1e-5, 0.01, 0.3, 0.9, 1.2, 1.999, 2.013, 2.1, 7.0):
        time = age + math.exp(float(noise.starts(np.array([exponent]))[0]))
        y = time * math.exp(-exponent)
        if y >= noise.latest:
            continue
        log_minus, log_hazard = noise.hazards(np.log(age), np.float64(exponent))
        with precision(200):
            step = arb(1) / 10**20
            near = [noise.log_v(arb(y) * (1 + sign * step)) for sign in (-1, 1)]
            slope = float((near[0] - near[1]) / (2 * step)) / time
        assert math.exp(log_minus) == pytest.approx(-float(noise.log_v(arb(y))), rel=1e-9)
        assert math.exp(log_hazard) == pytest.approx(slope, rel=1e-9)


@every_noise
def test_the_rate_of_a_block_is_the_scale_of_its_hazard(noise):
    """What it starts with, but for the 2 by which Laplace noise is less dense."""
    for exponent in (0.0, 0.5, 7.0):
        (rate,) = noise.rates(np.array([exponent]))
        _, at_first = noise.hazards(np.log(1e-9) + exponent, np.float64(exponent))
        assert rate - at_first == pytest.approx(math.log(2) if noise is LAPLACE else 0, abs=1e-6)


def test_noise_without_a_cut_is_not_truncated():
    blocks = [(0, 1), (1, 4)]
    plain = ExponentialNoise()
    assert race_law(blocks, Fraction(1, 2), plain) == race_law(blocks, Fraction(1, 2), EXPONENTIAL)
    assert float(plain.time(arb(3).log() - arb(4).log())) == pytest.approx(0.25)


@every_noise
def test_a_ball_that_holds_a_change_of_formula_holds_both_sides_of_it(noise):
    for near in (noise.log_v(arb(1) / 3), -arb.const_log2()):
        for wide in (arb(near.mid(), 1e-3), near):
            times = noise.time(wide)
            for log_v in (wide.lower(), wide.mid(), wide.upper()):
                assert times.overlaps(noise.time(log_v))
    for middle in (
        arb(1) / 2,
        (-ball(Fraction(23, 10))).exp(),
        arb(1 if noise is LAPLACE else 0.75),
    ):
        wide = arb(middle.mid(), 1e-3)
        for y in (wide.lower(), wide.mid(), wide.upper()):
            assert noise.log_v(wide).overlaps(noise.log_v(y))


def slow_law(blocks, rate, twin):
    """∫ n_b f(z + d_b) F(z + d_b)^(n_b−1) Π F(z + d_e)^n_e dz over the largest noisy score z, in
    units of the noise.
    """
    low, high = max(twin.low, -60.0), min(twin.high, 60.0)
    depths = [float(rate * depth) for depth, _ in blocks]
    cuts = sorted(
        {edge - depth for depth in depths for edge in (low, 0.0, high) if -60 <= edge - depth <= 60}
    )
    cuts = sorted({*cuts, *np.arange(-60.0, 61.0, 4.0)})
    chances = []
    for (_, count), depth in zip(blocks, depths, strict=True):

        def density(z, count=count, depth=depth):
            value = count * twin.pdf(z + depth) * twin.cdf(z + depth) ** (count - 1)
            for other, at in zip(blocks, depths, strict=True):
                value *= twin.cdf(z + at) ** other[1] if at != depth else 1.0
            return value

        chances.append(
            math.fsum(quad(density, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in pairwise(cuts))
        )
    return chances


@every_noise_and_twin
@pytest.mark.parametrize(
    ("blocks", "rate"),
    [
        ([(0, 1), (1, 2), (3, 1)], Fraction(1, 2)),
        ([(0, 2), (2, 30), (7, 500)], Fraction(1)),
        ([(0, 7), (1, 1)], Fraction(5, 2)),
    ],
    ids=["near ties", "crowds", "far apart"],
)
def test_law_against_an_integral_over_the_largest_noisy_score(noise, twin, blocks, rate):
    assert race_law(blocks, rate, noise) == pytest.approx(slow_law(blocks, rate, twin), abs=1e-10)


@pytest.mark.parametrize("x", [Fraction(1, 100), Fraction(1), Fraction(5), Fraction(40)])
def test_two_candidates_with_laplace_noise(x):
    """P(the lower one wins) = e^−x·(1/2 + x/4)."""
    assert race_law([(0, 1), (1, 1)], x, LAPLACE)[1] == pytest.approx(
        math.exp(-x) * (0.5 + x / 4), abs=1e-13
    )


CROWDS = [(1, 1), (10, 3), (10**6, 12), (2**100, 60), (2**100, 75), (2**1000, 690), (2**1000, 700)]


@pytest.mark.parametrize(("crowd", "depth"), CROWDS, ids=[f"{n:.0e} at {d}" for n, d in CROWDS])
def test_one_leader_over_a_crowd_with_laplace_noise(crowd, depth):
    """∫ f(z)·F(z + d)^N dz in three parts, the middle one by rigorous integration in ln(w), w =
    ½e^−(z+d).
    """
    with precision(2100):
        low = (-arb(depth)).exp() / 2
        above = -((-low).log1p() * (crowd + 1)).expm1() / (2 * low * (crowd + 1))
        below = low * arb(2) ** -crowd / (crowd + 1) if crowd < 10**4 else arb(0)
    with precision(100):

        def middle(s, _):
            return (-acb(depth) - s).exp() * (acb(crowd) * (-s.exp()).log1p()).exp() / 4

        ends = [acb(low.log()), acb(-arb.const_log2())]
        steps = [ends[0] + (ends[1] - ends[0]) * k / 64 for k in range(65)]
        between = sum((acb.integral(middle, a, b).real for a, b in pairwise(steps)), start=arb(0))
    expected = above + between + below
    assert expected.rad() < 1e-13
    law = race_law([(0, 1), (depth, crowd)], Fraction(1), LAPLACE)
    assert law[0] == pytest.approx(float(expected), abs=QUADRATURE_ERROR)


@pytest.mark.parametrize(
    "cut", [0, Fraction(1, 2), Fraction(1, 10**6), Fraction(1, 2**1010)], ids=str
)
@pytest.mark.parametrize(("crowd", "depth"), CROWDS, ids=[f"{n:.0e} at {d}" for n, d in CROWDS])
def test_one_leader_over_a_crowd_with_truncated_noise(cut, crowd, depth):
    """The leader comes at a uniform time in [κ, 1], the crowd after t with probability ((1 − pt)/(1
    − κ))^N.
    """
    with precision(5000):
        kappa, p, total = ball(cut), (-arb(depth)).exp(), arb(crowd + 1)
        left = ((1 - p) / (1 - kappa)) ** total  # at time 1; one candidate more than the crowd
        won = (kappa / p - kappa) / (1 - kappa) + (1 - left) / (p * total)
        expected = float(won) if kappa < p else 1.0
    law = race_law([(0, 1), (depth, crowd)], Fraction(1), ExponentialNoise(lambda: ball(cut)))
    assert law[0] == pytest.approx(expected, abs=QUADRATURE_ERROR)


def test_a_block_that_starts_after_the_best_has_come_never_wins():
    assert race_law([(0, 3), (1, 10**9), (2, 5)], Fraction(1), HALF)[2] == 0.0
    assert race_law([(0, 1), (1, 2**1000)], Fraction(693, 1000), HALF)[1] > 1e-4  # just before
    assert race_law([(0, 1), (1, 2**1000)], Fraction(694, 1000), HALF) == [
        1.0,
        0.0,
    ]  # just after: ln 2 = 0.6931


@every_noise
@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_blocks_add_up_to_one_before_they_are_normalised(noise, seed):
    generator = random.Random(seed)
    depths = sorted(generator.sample(range(1, 1200), 250))
    counts = [1 << generator.choice([0, 0, 3, 20, 200, 999]) for _ in range(251)]
    exponents = np.array([0.0, *depths]) / generator.choice([2, 10, 50])
    able = noise.starts(exponents) < math.log(noise.latest)
    log_counts = np.array([math.log(count) for count in counts])
    with np.errstate(divide="ignore", invalid="ignore"):
        assert sum(_integrals(exponents[able], log_counts[able], noise)) == pytest.approx(
            1, abs=QUADRATURE_ERROR
        )


@every_noise
def test_a_block_may_be_split_in_two(noise):
    rate = Fraction(1, 4)
    whole = race_law([(0, 1), (1, 9), (2, 12), (5, 2**70)], rate, noise)
    split = race_law([(0, 1), (1, 9), (2, 5), (2, 7), (5, 2**69), (5, 2**69)], rate, noise)
    expected = [*whole[:2], whole[2] * 5 / 12, whole[2] * 7 / 12, whole[3] / 2, whole[3] / 2]
    assert split == pytest.approx(expected, abs=QUADRATURE_ERROR)


ENDS = {
    "one crowd": ([0.0, 3.0], [2**100, 5]),
    "a crowd below": ([0.0, 0.6], [1, 2**300]),
    "a crowd before the others start": ([0.0, 0.1, 0.65], [2**400, 3, 9]),
}


@every_noise
@pytest.mark.parametrize("case", ENDS)
def test_a_law_ends_soon_after_somebody_has_surely_come(noise, case):
    """Nobody has come with probability e^−45 at the end, and with more just before."""
    exponents, counts = ENDS[case]
    able = noise.starts(np.array(exponents)) < math.log(noise.latest)
    exponents, counts = np.array(exponents)[able], np.array(counts, object)[able]
    log_counts = np.array([math.log(count) for count in counts])
    with np.errstate(divide="ignore", invalid="ignore"):
        end = _end(exponents, log_counts, noise)

    def minus_log_survival(log_time):
        with precision(2000):
            times = [(arb(log_time) - arb(exponent)).exp() for exponent in exponents]
            parts = zip(counts, times, strict=True)
            return float(sum((-noise.log_v(time) * n for n, time in parts), start=arb(0)))

    assert minus_log_survival(end) > 44.99
    assert minus_log_survival(end - 1e-3) < 45


def test_a_law_may_end_exactly_where_a_formula_changes():
    """The second of two blocks is so deep that its formula changes at the end."""

    def end(x):
        return _end(np.array([0.0, x]), np.zeros(2), LAPLACE)

    x = end(end(45 - 2 * math.log(2)))  # there nobody has come with probability e^−45
    assert end(x) == x
    lower = math.exp(-x) * (0.5 + x / 4)
    law = race_law([(0, 1), (1, 1)], Fraction(x), LAPLACE)
    assert law == pytest.approx([1 - lower, lower], abs=1e-13)


@every_noise
def test_the_earlier_of_two_blocks_is_told(noise):
    def runners():
        scripts = (0b1111_0000, 0b1101_0000)  # the higher U, the less time
        return [_Runner(Fraction(0), 1, noise, ScriptedCoins(one, 8)) for one in scripts]

    early, late = runners()
    assert _earlier(early, late) is True
    early, late = runners()
    assert _earlier(late, early) is False


@every_noise
def test_one_block_always_comes_first(noise):
    assert race_law([(0, 1)], Fraction(1), noise) == [1.0]
    assert run_race([(0, 1)], Fraction(1), noise, ScriptedCoins(0b1010101, 7)) == 0


def test_the_rule_on_one_panel():
    """What the section on quadrature asks of it: e^(−C/2)·C·e^(−Cu) and n·2^−n·(1 + u)^−n on [0,
    1].
    """
    abscissas, shares = _quadrature()
    for rate in np.linspace(0.01, 200, 5000):
        summed = np.exp(-rate / 2) * rate * (shares @ np.exp(-rate * abscissas))
        assert summed == pytest.approx(np.exp(-rate / 2) * -np.expm1(-rate), abs=1e-15)
    for n in range(2, 300):
        exact = n / 2**n * (1 - 2.0 ** (1 - n)) / (n - 1)
        assert n / 2**n * (shares @ (1 + abscissas) ** -float(n)) == pytest.approx(exact, abs=1e-15)


def brackets(blocks, rate, noise, law, unfinished, depth=14):
    """Whether a walk of the draw leaves room for every probability of `law`, and not much room."""
    finished, left = walk(lambda coins: run_race(blocks, rate, noise, coins), depth)
    assert left <= unfinished, f"{float(left)} unfinished"
    return all(
        finished.get(block, 0) - 1e-9 <= chance <= finished.get(block, 0) + left + 1e-9
        for block, chance in enumerate(law)
    )


RACES = [
    ([(0, 1), (1, 1)], Fraction(1, 2), 0.02),
    ([(0, 2), (1, 5), (2, 1)], Fraction(1, 3), 0.08),
    ([(0, 3), (28, 2**40)], Fraction(1), 0.02),
    ([(0, 1), (690, 2**1000)], Fraction(1), 0.02),
]


@pytest.mark.slow
@every_noise
@pytest.mark.parametrize(
    ("blocks", "rate", "unfinished"), RACES, ids=["pair", "three", "2^40", "2^1000"]
)
def test_the_draw_has_its_law(noise, blocks, rate, unfinished):
    law = race_law(blocks, rate, noise)
    assert brackets(blocks, rate, noise, law, unfinished)
    shift = 1.5 * unfinished
    if min(law) > shift:
        assert not brackets(
            blocks, rate, noise, [law[0] - shift, law[1] + shift, *law[2:]], unfinished
        )


class _OneSided(LaplaceNoise):
    """Forgets that half of all noise is negative."""

    def time(self, log_v):
        return -2 * log_v.expm1()


class _Rejected(ExponentialNoise):
    """Caps the noise at τ where it should be drawn anew."""

    def time(self, log_v):
        return (-log_v.expm1()).max(self.cut())

    def log_v(self, y):
        return (-y).log1p() if y > self.cut() else arb(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "honest"), [(_OneSided(), LAPLACE), (_Rejected(HALF.cut), HALF)]
)
def test_mutant_noises_are_not_taken_for_the_honest_ones(mutant, honest):
    blocks, rate = [(0, 1), (1, 2)], Fraction(1, 2)
    law = race_law(blocks, rate, honest)
    assert brackets(blocks, rate, honest, law, 0.02)
    assert not brackets(blocks, rate, mutant, law, 0.02)


@every_noise
@pytest.mark.parametrize("count", [1, 3, 2**40])
def test_whether_a_block_comes_after_a_time_is_told_exactly(noise, count):
    script = 0b1011001110001111 << 184
    with precision(3000):
        arrival = noise.time(arb((script, -200)).log() / count) * ball(Fraction(1, 3)).exp()
        near = [arrival * (1 - arb(2) ** -40), arrival * (1 + arb(2) ** -40)]
    found = [
        _Runner(Fraction(1, 3), count, noise, ScriptedCoins(script, 200)).after(time)
        for time in near
    ]
    assert found == [True, False]


@every_noise
def test_the_best_block_has_arrived_when_it_is_known_to_come_before_the_latest_time(noise):
    runner = _Runner(Fraction(0), 2, noise, ScriptedCoins(0b0011, 4))
    runner.arrive()
    assert runner.high < noise.latest


@every_noise
@pytest.mark.parametrize("count", [1, 3, 2**40, 2**1000], ids=["1", "3", "2^40", "2^1000"])
def test_the_bounds_of_an_arrival_close_in_on_it(noise, count):
    """Each further bit narrows them, and they always hold the time of every U that starts with the
    bits seen.
    """
    script = 0b1011001110001111
    runner = _Runner(Fraction(1, 3), count, noise, ScriptedCoins(script, 16))
    with precision(3000):
        u = arb((2 * script + 1, -17))
        arrival = noise.time(u.log() / count) * ball(Fraction(1, 3)).exp()
    before = None
    for _ in range(16):
        runner.look()
        assert not arrival < runner.low
        assert not runner.high < arrival
        assert before is None or not runner.width() > before
        before = runner.width()
    if (
        count < 2**41
    ):  # beyond, a start so much later than the block's own spread needs more than these bits
        assert runner.low < arrival < runner.high
        assert (runner.width() / arrival) < 1e-3
