"""The best of a random number of runs: exact laws on small runs against the claimed cost, mutants,
and the figures of others.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb

from privmax.errors import ParameterError
from privmax.noise.balls import START, precision
from privmax.noise.runs import negative_binomial, poisson
from privmax.repetition import (
    Poisson,
    RunCost,
    best_of,
    concentrated_cost,
    random_runs,
    repetition_cost,
)
from privmax.testing import walk

pytestmark = pytest.mark.slow

MILLIONTH = Fraction(1, 10**6)
LAWS = ["geometric", "logarithmic", "-1/2", 3, "poisson"]
SLACK = 1e-12
"""Of floats, in probabilities."""


def best_law(run, generate):
    """Exact chance that each outcome, from the worst to the best, is the best of K runs."""
    ends = [min(1.0, sum(run[:place])) for place in range(len(run) + 1)]
    ends[-1] = 1.0
    values = [generate(end) for end in ends]
    return [values[0]] + [high - low for low, high in itertools.pairwise(values)]  # first: no run


def generator(runs):
    """E[x^K], in floats."""
    if isinstance(runs, Poisson):
        return lambda x: math.exp(float(runs.rate) * (x - 1))
    eta, gamma = float(runs.eta), float(runs.gamma)
    if eta == 0:
        return lambda x: math.log1p((gamma - 1) * x) / math.log(gamma)
    whole = math.expm1(-eta * math.log(gamma))
    return lambda x: math.expm1(-eta * math.log1p((gamma - 1) * x)) / whole


@pytest.mark.parametrize("law", LAWS)
def test_generating_functions_are_those_of_the_library(law):
    runs = random_runs(law, 10)
    with precision(START):
        for x in (0.0, 0.3, 0.9, 1.0):
            assert float(runs.generate(arb(x)).mid()) == pytest.approx(generator(runs)(x))


def hockey(one, other, epsilon):
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, other, strict=True))


def worst(pairs, generate, epsilon):
    """The largest delta at epsilon over pairs of neighboring runs, both ways."""
    found = 0.0
    for one, other in pairs:
        laws = best_law(one, generate), best_law(other, generate)
        found = max(found, hockey(*laws, epsilon), hockey(*laws[::-1], epsilon))
    return found


def responses(epsilon, delta=0.0):
    """Neighboring runs that are exactly (epsilon, delta)-private: randomized responses, which tell
    all with chance delta, with outcomes cut in two and in every order.
    """
    heads = math.exp(epsilon) / (1 + math.exp(epsilon))
    for cut in (1e-9, 1e-3, 0.1, 0.5):
        parts = [
            ((1 - delta) * heads * (1 - cut), (1 - delta) * (1 - heads) * (1 - cut)),
            ((1 - delta) * heads * cut, (1 - delta) * (1 - heads) * cut),
            ((1 - delta) * (1 - heads), (1 - delta) * heads),
            *([(delta, 0.0), (0.0, delta)] if delta else []),
        ]
        for order in itertools.permutations(parts):
            yield tuple(zip(*order, strict=True))


def gaussians(variance):
    """Neighboring runs that are 1/(2·variance)-zCDP: discrete Gaussian noise on 0 or 1."""
    reach = 12 * math.isqrt(variance) + 12
    values = range(-reach, reach + 1)

    def law(center):
        weights = [math.exp(-((value - center) ** 2) / (2 * variance)) for value in values]
        return [weight / math.fsum(weights) for weight in weights]

    one, other = law(0), law(1)
    yield one, other
    yield one[::-1], other[::-1]
    by_distance = sorted(range(len(one)), key=lambda place: abs(place - reach))
    for order in (by_distance, by_distance[::-1]):
        yield [one[place] for place in order], [other[place] for place in order]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [2, 10, 100])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_pure_runs_stay_within_their_cost(law, mean, epsilon):
    runs = random_runs(law, mean)
    cost = repetition_cost(RunCost(epsilon), runs)
    assert worst(responses(float(epsilon)), generator(runs), float(cost.epsilon)) <= SLACK


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "-1/2", 3])
@pytest.mark.parametrize("mean", [2, 10, 100])
def test_no_lower_cost_is_true_of_pure_runs(law, mean):
    runs = random_runs(law, mean)
    cost = repetition_cost(RunCost(1), runs)
    assert worst(responses(1.0), generator(runs), 0.999 * float(cost.epsilon)) > 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [2, 30])
@pytest.mark.parametrize("variance", [1, 50])
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 100)])
def test_concentrated_runs_stay_within_their_cost(law, mean, variance, delta):
    runs = random_runs(law, mean)
    cost = repetition_cost(RunCost(rho=Fraction(1, 2 * variance)), runs, delta)
    found = worst(gaussians(variance), generator(runs), float(cost.epsilon))
    assert found <= float(delta) + SLACK


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [2, 10])
def test_runs_with_a_delta_stay_within_their_cost(law, mean):
    runs = random_runs(law, mean)
    delta = Fraction(1, 1000)
    cost = repetition_cost(RunCost(1, delta), runs, Fraction("1.01") * mean * delta)
    found = worst(responses(1.0, float(delta)), generator(runs), float(cost.epsilon))
    assert found <= float(cost.delta) + SLACK
    assert found > float(delta)  # the delta of one run would not be enough


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "-1/2"])
@pytest.mark.parametrize("variance", [5, 50])
def test_a_concentrated_cost_covers_every_order(law, variance):
    runs = random_runs(law, 10)
    rho = float(concentrated_cost(RunCost(rho=Fraction(1, 2 * variance)), runs))
    for pair in gaussians(variance):
        one, other = (best_law(run, generator(runs)) for run in pair)
        for order in (1.01, 1.5, 2, 5, 10, 30):
            total = math.fsum(
                math.exp(order * math.log(p) + (1 - order) * math.log(q))
                for p, q in zip(one, other, strict=True)
                if p > 1e-12 and q > 1e-12
            )
            assert math.log(total) / (order - 1) <= rho * order


def fixed(runs):
    return lambda x: x**runs


def test_a_fixed_number_of_runs_costs_more_than_a_random_one():
    cost = repetition_cost(RunCost(1), random_runs("geometric", 10))
    assert worst(responses(1.0), fixed(10), float(cost.epsilon)) > 1e-3


def test_a_law_priced_as_a_cheaper_one_is_seen():
    geometric, logarithmic = random_runs("geometric", 10), random_runs("logarithmic", 10)
    cost = repetition_cost(RunCost(1), logarithmic)
    assert worst(responses(1.0), generator(geometric), float(cost.epsilon)) > 1e-11


def test_the_delta_of_one_run_is_not_enough():
    runs, delta = random_runs("geometric", 10), Fraction(1, 1000)
    cost = repetition_cost(RunCost(1), runs).epsilon
    assert worst(responses(1.0, float(delta)), generator(runs), float(cost)) > 5 * float(delta)
    with pytest.raises(ParameterError, match="expected runs times the delta"):
        repetition_cost(RunCost(1, delta), runs, delta)


# Figures of others


def published(rho, eta, gamma, mean, delta):
    """Theorem 2 of Papernot and Steinke for a rho-zCDP run, in floats, over all orders."""
    drift = min(
        (1 + eta) * (rho * (order - 1) + math.log(1 / gamma) / order)
        for order in (1 + step / 20 for step in range(4_000))
    )
    return min(
        rho * order
        + math.log(mean) / (order - 1)
        + drift
        + math.log(1 / (order * delta)) / (order - 1)
        + math.log1p(-1 / order)
        for order in (1 + step / 20 for step in range(1, 4_000))
    )


RHO = Fraction("0.024355957194213844")
"""Of Gaussian noise that costs 1 at delta 1e-6 by Rényi divergences: its deviation is 4.530878."""


@pytest.mark.parametrize(
    ("law", "theirs", "ours"),
    [("geometric", 2.00, 1.61), ("logarithmic", 1.67, 1.47), ("-1/2", 1.47, 1.38)],
)
def test_the_cost_is_below_the_published_bound(law, theirs, ours):
    runs = random_runs(law, 10)
    cost = float(repetition_cost(RunCost(rho=RHO), runs, MILLIONTH).epsilon)
    bound = published(float(RHO), float(runs.eta), float(runs.gamma), 10, 1e-6)
    assert round(bound, 2) == theirs
    assert round(cost, 2) == pytest.approx(ours, abs=0.006)
    assert cost <= bound


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "-1/2", "poisson"])
def test_the_page_shows_these_costs(law):
    page = Path(__file__).parents[2] / "docs" / "howto" / "tuning.md"
    row = next(
        line for line in page.read_text("utf-8").splitlines() if line[3:].startswith(f'"{law}"')
    )
    pure, gaussian, theirs, tries = row.split("|")[2:6]
    runs = random_runs(law, 10)
    assert float(pure) == round(float(repetition_cost(RunCost(1), runs).epsilon), 2)
    cost = float(repetition_cost(RunCost(rho=RHO), runs, MILLIONTH).epsilon)
    assert float(gaussian) == pytest.approx(cost, abs=0.006)
    assert cost <= float(theirs) + 0.005
    if law != "poisson":  # its bound is in `test_beside_dp_accounting`
        bound = published(float(RHO), float(runs.eta), float(runs.gamma), 10, 1e-6)
        assert float(theirs) == round(bound, 2)
    assert int(tries.removesuffix(" % ")) == round(100 * runs.hit(0.1))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["geometric", "logarithmic", "-1/2", 5])
@pytest.mark.parametrize("mean", [1.5, 100])
@pytest.mark.parametrize("rho", ["0.001", "0.1", 2])
def test_it_never_exceeds_the_published_bound(law, mean, rho):
    runs = random_runs(law, mean)
    cost = float(repetition_cost(RunCost(rho=rho), runs, MILLIONTH).epsilon)
    gamma, eta = float(runs.gamma), float(runs.eta)
    assert cost <= published(float(Fraction(rho)), eta, gamma, mean, 1e-6) * (1 + 1e-6)


def test_pure_costs_are_below_two_plus_eta_times_one_run():
    for law, factor in (("geometric", 3), ("logarithmic", 2), ("-1/2", 1.5)):
        assert repetition_cost(RunCost(1), random_runs(law, 10)).epsilon < factor


def test_beside_dp_accounting():
    rdp = pytest.importorskip("dp_accounting.rdp")
    from dp_accounting import dp_event as events

    def theirs(event):
        accountant = rdp.RdpAccountant()
        accountant.compose(event)
        return accountant.get_epsilon(1e-6)

    run = events.ZCDpEvent(float(RHO))
    assert theirs(run) == pytest.approx(1, abs=1e-6)
    figures = {"geometric": (1, 2.00), "logarithmic": (0, 1.67), "poisson": (math.inf, 2.20)}
    for law, (shape, figure) in figures.items():
        bound = theirs(events.RepeatAndSelectDpEvent(run, 10, shape))
        cost = repetition_cost(RunCost(rho=RHO), random_runs(law, 10), MILLIONTH)
        assert bound == pytest.approx(figure, abs=0.006)
        assert float(cost.epsilon) <= bound
    assert theirs(events.SelfComposedDpEvent(run, 10)) == pytest.approx(3.49, abs=0.005)
    with pytest.raises(ValueError, match="must be >=0"):  # it has no cheaper law
        theirs(events.RepeatAndSelectDpEvent(run, 10, -0.5))


# Draws


def claimed(runs, most):
    with precision(START):
        return [float(chance.mid()) for chance in runs.chances(most)]


DRAWS = {
    "geometric": (random_runs("geometric", 3), 12),
    "logarithmic": (random_runs("logarithmic", 2), 12),
    "-1/2": (random_runs("-1/2", 2), 12),
    "eta 3": (random_runs(3, 4), 11),
    "poisson": (random_runs("poisson", 2), 12),
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_script_of_coins(name):
    runs, depth = DRAWS[name]
    finished, unfinished = walk(runs.draw, depth)
    for number, chance in enumerate(claimed(runs, 20)):
        mass = float(finished.get(number, 0))
        assert mass - 1e-12 <= chance <= mass + float(unfinished) + 1e-12
    assert unfinished < Fraction(1, 20)


def test_a_walk_sees_a_wrong_law():
    finished, unfinished = walk(lambda coins: poisson(Fraction(21, 10), coins), 14)
    chance = claimed(random_runs("poisson", 2), 0)[0]
    mass = float(finished[0])
    assert not mass <= chance <= mass + float(unfinished)


@pytest.mark.parametrize("law", LAWS)
def test_chances_add_up_to_the_mean_and_the_generating_function(law):
    runs = random_runs(law, 5)
    chances = claimed(runs, 1000)
    assert math.fsum(chances) == pytest.approx(1, abs=1e-7)
    mean = math.fsum(k * chance for k, chance in enumerate(chances))
    assert mean == pytest.approx(5, rel=1e-5)
    powers = math.fsum(0.7**k * chance for k, chance in enumerate(chances))
    assert powers == pytest.approx(generator(runs)(0.7), rel=1e-9)
    with precision(START):
        assert float(runs.tail(20).mid()) == pytest.approx(math.fsum(chances[21:]), rel=1e-6)


@pytest.mark.slow
def test_the_best_of_runs_has_the_law_that_is_audited():
    """Runs are one coin, K is geometric of mean 2: every script of coins gives the exact law."""
    runs = random_runs("geometric", 2)

    def draw(coins):
        return best_of(runs, lambda number: [(coins.bits(1), "y")] * number, coins)[0]

    def independent(coins):
        made = best_of(runs, lambda number: [(coins.bits(1), "y") for _ in range(number)], coins)
        return made[0]

    expected = best_law([0.5, 0.5], generator(runs))[1]
    for candidate, fits in ((independent, True), (draw, False)):  # not: one run, repeated K times
        finished, unfinished = walk(candidate, 13)
        mass = float(finished[0])
        assert (mass <= expected <= mass + float(unfinished)) is fits


# A public cap


def test_a_cap_is_paid_for_and_refused_where_it_is_too_low():
    run, runs = RunCost(1), random_runs("geometric", 10)
    capped = repetition_cost(run, runs, MILLIONTH, 200)
    assert capped.epsilon >= repetition_cost(run, runs, MILLIONTH).epsilon
    with pytest.raises(ParameterError, match="max_runs=20"):
        repetition_cost(run, runs, MILLIONTH, 20)
    with pytest.raises(ParameterError, match="max_runs"):
        repetition_cost(run, runs, 0, 10_000)


def capped(runs, most):
    chances = claimed(runs, most)
    chances[-1] = 1 - math.fsum(chances[:-1])
    return lambda x: math.fsum(chance * x**k for k, chance in enumerate(chances))


def test_capped_runs_stay_within_their_cost():
    runs, delta = random_runs("geometric", 3), Fraction(1, 100)
    cost = repetition_cost(RunCost(1), runs, delta, 20)
    found = worst(responses(1.0), capped(runs, 20), float(cost.epsilon))
    assert 0 < found <= float(delta)


# Arguments


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: random_runs("gaussian", 10), "law"),
        (lambda: random_runs(-1, 10), "law"),
        (lambda: random_runs("geometric", 1), "runs"),
        (lambda: random_runs("geometric", 10**6), "runs"),
        (lambda: RunCost(), "epsilon"),
        (lambda: RunCost(0), "epsilon"),
        (lambda: RunCost(1, 1), "delta"),
        (lambda: RunCost(rho=-1), "rho"),
        (lambda: repetition_cost(RunCost(rho=1), random_runs("geometric", 10), 0), "delta"),
        (lambda: negative_binomial(Fraction(-1), Fraction(1, 2), None), "eta"),
        (lambda: negative_binomial(Fraction(1), Fraction(1), None), "gamma"),
        (lambda: poisson(Fraction(0), None), "mean"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ParameterError, match=name):
        call()


@pytest.mark.parametrize(
    ("law", "mean"), [("-0.9", 10), ("5000", "1.1"), ("10000", "1.5"), ("10000", "1.00000001")]
)
def test_the_expected_number_is_met_for_odd_laws_too(law, mean):
    with precision(START):
        found = float(random_runs(law, mean).mean().mid())
    assert found == pytest.approx(float(mean), rel=1.01e-6)


@pytest.mark.parametrize("law", ["-0.99", "-0.9999999"])
def test_a_law_that_cannot_have_so_many_runs_is_refused(law):
    """With eta this near to -1, ten expected runs need a gamma below e^-60."""
    with pytest.raises(ParameterError, match="cannot have so many"):
        random_runs(law, 10)


@pytest.mark.parametrize("run", [RunCost(rho="1e-12"), RunCost("1e-6")])
def test_no_cost_is_negative(run):
    assert repetition_cost(run, random_runs("poisson", "1.01"), "0.9").epsilon >= 0
