"""Fixed programs: their cost against the exact delta of small ones, played as badly as possible."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from rounding import MODES, rounding

from privmax.accounting import Program
from privmax.composition import epsilon_of_rho
from privmax.errors import ParameterError

pytestmark = pytest.mark.slow

MILLIONTH = Fraction(1, 10**6)


def gaussian(shift, variance):
    """Losses of discrete Gaussian noise, with their chances."""
    reach = 15 * (math.isqrt(variance) + 1)
    weight = {x: math.exp(-(x**2) / (2 * variance)) for x in range(-reach, reach + 1)}
    total = math.fsum(weight.values())
    return {
        (2 * shift * x + shift**2) / (2 * variance): chance / total for x, chance in weight.items()
    }


def draw(span, part):
    """Losses of a draw of a range: `part` of it above 0, the rest below."""
    high = span * part
    chance = (math.exp(span) - math.exp(high)) / math.expm1(span)
    return {high: chance, high - span: 1 - chance}


def exact_delta(epsilon, *releases):
    return math.fsum(
        math.prod(chance for _, chance in outcome)
        * max(0.0, -math.expm1(epsilon - sum(loss for loss, _ in outcome)))
        for outcome in product(*(release.items() for release in releases))
    )


def together(*releases):
    """Losses of some releases, as one."""
    found = {0.0: 1.0}
    for release in releases:
        sums = {}
        for (one, p), (other, q) in product(found.items(), release.items()):
            loss = round(one + other, 12)
            sums[loss] = sums.get(loss, 0.0) + p * q
        found = sums
    return found


PARTS = [0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 1000)])
@pytest.mark.parametrize(("shift", "variance", "times"), [(1, 8, 1), (3, 40, 2), (2, 3, 1)])
@pytest.mark.parametrize("draws", [0, 2])
def test_no_play_of_a_small_program_costs_more(delta, shift, variance, times, draws):
    span = Fraction(1, 3)
    rounds = [(span, draws)] if draws else []
    program = Program(rounds=rounds, gaussians=[(shift, Fraction(variance), times)])
    epsilon = program.epsilon_by_losses(delta)
    noise = together(*[gaussian(shift, variance)] * times)
    plays = [[draw(float(span), part) for part in parts] for parts in product(PARTS, repeat=draws)]
    assert max(exact_delta(float(epsilon), noise, *play) for play in plays) <= delta
    near = 0.95 * float(epsilon)
    assert max(exact_delta(near, noise, *play) for play in plays) > delta
    assert epsilon <= epsilon_of_rho(program.rho(), delta)
    assert program.epsilon(delta) == epsilon


def test_a_play_that_waits_for_the_noise_costs_no_more():
    """The part of each draw is chosen by what was lost before: the worst of all plays."""
    span, delta, variance = 0.5, 1e-4, 30
    epsilon = float(Program(rounds=[(Fraction(1, 2), 2)], gaussians=[(1, 30, 1)]).epsilon(delta))

    def worst(left, draws):
        if not draws:
            return max(0.0, -math.expm1(left))
        return max(
            sum(chance * worst(left - loss, draws - 1) for loss, chance in draw(span, part).items())
            for part in (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)
        )

    total = sum(p * worst(epsilon - loss, 2) for loss, p in gaussian(1, variance).items())
    fixed = exact_delta(epsilon, gaussian(1, variance), draw(span, 0.5), draw(span, 0.5))
    assert fixed < total <= delta
    assert total > 0.75 * delta


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        Program(rounds=[(Fraction(1, 10), 20)], gaussians=[(1, Fraction(500), 21)]),
        Program(rounds=[(Fraction(1, 5), 10), (Fraction(1, 20), 5)]),
        Program(gaussians=[(600, Fraction(13_000**2), 20), (256, Fraction(10**8), 20)]),
    ],
    ids=["both", "draws", "noise"],
)
def test_losses_are_tighter_than_rho(program):
    by_rho = epsilon_of_rho(program.rho(), MILLIONTH)
    assert by_rho * Fraction(80, 100) < program.epsilon(MILLIONTH) < by_rho * Fraction(96, 100)


def test_draws_cost_no_more_than_their_ranges():
    assert 5 < Program(rounds=[(Fraction(2), 3)]).epsilon(MILLIONTH) <= Fraction("6.05")


@pytest.mark.slow
def test_a_gaussian_agrees_with_dp_accounting():
    losses = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = losses.from_discrete_gaussian_mechanism(20.0, value_discretization_interval=1e-4)
    theirs = theirs.self_compose(10).get_epsilon_for_delta(1e-6)
    ours = Program(gaussians=[(1, Fraction(400), 10)]).epsilon(MILLIONTH)
    assert float(ours) == pytest.approx(theirs, rel=2e-3)


def test_where_losses_are_not_composed_rho_counts():
    noise = [(1, Fraction(100), 3)]
    for program, delta in (
        (Program(gaussians=noise, rest=Fraction(1, 100)), MILLIONTH),
        (Program(gaussians=noise), Fraction(1, 1 << 201)),
        (Program(gaussians=[(10**9, Fraction(10**20), 3)]), MILLIONTH),
        (Program(rounds=[(Fraction(1000), 3)]), MILLIONTH),
        (Program(), MILLIONTH),
    ):
        assert program.epsilon_by_losses(delta) is None
        assert program.epsilon(delta) == epsilon_of_rho(program.rho(), delta)
    assert Program(gaussians=noise, rest=Fraction(1, 100)).rho() == Fraction(25, 1000)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"rounds": [(0, 1)]}, "range=0"),
        ({"rounds": [(1, 0)]}, "times=0"),
        ({"gaussians": [(Fraction(1, 2), 1, 1)]}, "shift="),
        ({"gaussians": [(1, 0, 1)]}, "variance=0"),
        ({"rest": -1}, "rest=-1"),
    ],
)
def test_bad_parameters_are_named(arguments, name):
    with pytest.raises(ParameterError, match=name):
        Program(**arguments)


def test_a_delta_is_needed():
    with pytest.raises(ParameterError, match="delta=0"):
        Program(rounds=[(1, 1)]).epsilon(0)


def test_what_can_be_read_once_is_counted():
    program = Program(rounds=zip([Fraction(1, 10)], [20], strict=True), gaussians=iter([(1, 9, 1)]))
    assert program.rho() == Fraction(1, 40) + Fraction(1, 18)
    assert program.epsilon(MILLIONTH) > 1


def test_numbers_may_be_written_as_elsewhere():
    program = Program(rounds=[("0.1", 3)], gaussians=[(1, "9", 1)], rest="0")
    same = Program(rounds=[(Fraction(1, 10), 3)], gaussians=[(1, Fraction(9), 1)])
    assert program == same
    assert program.epsilon(MILLIONTH) == same.epsilon(MILLIONTH)


@pytest.mark.parametrize("power", [-800, -400, 400, 800])
def test_parameters_beyond_all_floats_are_left_to_rho(power):
    number = Fraction(10) ** power
    for program in (
        Program(rounds=[(number, 1)]),
        Program(gaussians=[(1, number, 1)]),
        Program(gaussians=[(10**400, number, 1)]),
    ):
        assert program.epsilon(MILLIONTH) == epsilon_of_rho(program.rho(), MILLIONTH)


@pytest.mark.slow
def test_many_releases_cost_what_one_release_of_the_same_rho_costs():
    """Up to what a law on a grid adds; the noise is so wide that it is all but continuous."""
    many = Program(gaussians=[(1, Fraction(10**10), 9000)]).epsilon_by_losses("1e-9")
    one = Program(gaussians=[(1, Fraction(10**10, 9000), 1)]).epsilon_by_losses("1e-9")
    assert one < many < one * Fraction(1002, 1000)


def test_small_deltas_have_losses_too():
    program = Program(gaussians=[(1, Fraction(100), 3)])
    for power in (12, 30, 60):
        delta = Fraction(1, 10**power)
        by_rho = epsilon_of_rho(program.rho(), delta)
        assert by_rho * Fraction(9, 10) < program.epsilon(delta) < by_rho * Fraction(99, 100)


def test_too_many_releases_are_left_to_rho():
    for times in (10**20, 10**300):
        program = Program(gaussians=[(1, Fraction(10**8), times)])
        assert program.epsilon(MILLIONTH) == epsilon_of_rho(program.rho(), MILLIONTH)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_no_rounding_makes_a_program_cheaper_than_its_exact_delta(mode):
    program = Program(rounds=[(Fraction(1, 3), 2)], gaussians=[(3, Fraction(40), 2)])
    with rounding(mode):
        epsilon = program.epsilon_by_losses(MILLIONTH)
    assert epsilon == pytest.approx(program.epsilon(MILLIONTH), rel=1e-9)
    noise = together(*[gaussian(3, 40)] * 2)
    plays = [[draw(1 / 3, part) for part in parts] for parts in product(PARTS, repeat=2)]
    assert max(exact_delta(float(epsilon), noise, *play) for play in plays) <= MILLIONTH


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_losses_above_the_exponents_of_floats_are_no_warning():
    program = Program(rounds=[(1, 2)], gaussians=[(1, 500, 1800)])
    assert 11 < program.epsilon("1e-7") < 15
