"""Coin walks: run each draw on every script of coins and require the claimed law inside the bracket
they leave.

The audit checks the law; the walk ties the draw to it. Every walk must also leave little mass
unfinished, or it would prove nothing, and must reject a law that is slightly wrong.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from privmax import (
    AboveThreshold,
    Exponential,
    LargeMargin,
    NoisyMaximum,
    PermuteAndFlip,
    Profile,
    RestrictedExponential,
)
from privmax.mechanisms.above_threshold import Run
from privmax.noise import bulk, samplers
from privmax.noise.balls import ball
from privmax.testing import walk


def brackets(draw, law, depth, unfinished, error=1e-9):
    """Whether every probability of `law` lies between the finished mass of the outcome and that
    plus the unfinished.
    """
    finished, left = walk(draw, depth)
    assert left <= unfinished, f"{float(left)} unfinished"
    assert finished.keys() <= law.keys()
    return all(
        finished.get(outcome, 0) - error <= chance <= finished.get(outcome, 0) + left + error
        for outcome, chance in law.items()
    )


def slightly_wrong(law, shift):
    """The law with some probability moved from its likeliest outcome to another."""
    likeliest = max(law, key=law.__getitem__)
    other = next(outcome for outcome in law if outcome != likeliest)
    return {**law, likeliest: law[likeliest] - shift, other: law[other] + shift}


def agree(draw, law, depth, unfinished):
    assert brackets(draw, law, depth, unfinished)
    assert not brackets(draw, slightly_wrong(law, 1.5 * unfinished), depth, unfinished)


def geometric_law(x, most):
    return {k: math.exp(-k * x) * -math.expm1(-x) for k in range(most)}


def laplace_law(scale, reach):
    x = float(1 / scale)
    return {k: math.tanh(x / 2) * math.exp(-abs(k) * x) for k in range(-reach, reach + 1)}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_uniform_below(n):
    law = dict.fromkeys(range(n), 1 / n)
    assert brackets(lambda coins: samplers.uniform_below(n, coins), law, 24, 0.001)


@pytest.mark.parametrize(
    "x", [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20)]
)
def test_bernoulli_exp(x):
    law = {True: math.exp(-x), False: -math.expm1(-x)}
    agree(lambda coins: samplers.bernoulli_exp(x, coins), law, 30, 1e-8)


def test_bernoulli_exp_of_zero_is_certain_and_costs_no_coin():
    assert walk(lambda coins: samplers.bernoulli_exp(Fraction(0), coins), 0) == ({True: 1}, 0)


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(2)])
def test_geometric(x):
    agree(lambda coins: samplers.geometric(x, coins), geometric_law(x, 200), 16, 0.001)


def test_jump_stops_at_its_limit():
    law = {**geometric_law(0.5, 3), 3: math.exp(-1.5)}
    agree(lambda coins: samplers.jump(lambda: ball(Fraction(1, 2)), coins, limit=3), law, 20, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(7, 2)])
def test_discrete_laplace(scale):
    agree(lambda coins: samplers.discrete_laplace(scale, coins), laplace_law(scale, 200), 15, 0.01)


def test_weighted_draw_with_a_multiplicity_of_two_to_the_forty():
    law = {
        0: 3 / (3 + 2**40 * math.exp(-27)),
        1: 2**40 * math.exp(-27) / (3 + 2**40 * math.exp(-27)),
    }
    draw = lambda coins: samplers.weighted(lambda: [ball(3), ball(2**40) * ball(-27).exp()], coins)  # noqa: E731
    agree(draw, law, 30, 1e-8)


def test_weighted_draw_never_returns_a_weight_of_zero():
    finished, _ = walk(
        lambda coins: samplers.weighted(lambda: [ball(0), ball(1), ball(0), ball(1)], coins), 10
    )
    assert set(finished) == {1, 3}


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(5)])
def test_bulk_bernoulli(x):
    law = {True: math.exp(-x), False: -math.expm1(-x)}
    assert brackets(lambda coins: bool(bulk.bernoulli_exp(x, 1, coins)[0]), law, 8, 1 / 256)


def test_bulk_bernoulli_goes_on_exactly_when_the_first_bits_tie():
    """A byte equal to the first of p is followed by eight more; the second word decides between its
    neighbours.
    """
    p = math.exp(-1 / 3)
    first = int(p * 256)

    class Script:
        def __init__(self, *answers):
            self.answers = list(answers)

        def bytes(self, n):
            return self.answers.pop(0)

    word = (
        int((p * 256 - first) * 2**40) << 24
    )  # the next 40 bits of p, more than a float is sure of
    for offset, expected in ((-(1 << 34), True), (1 << 34, False)):
        script = Script(bytes([first]), (word + offset).to_bytes(8, "little"))
        assert bulk.bernoulli_exp(Fraction(1, 3), 1, script)[0] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "x", [Fraction(7, 4), Fraction(3)]
)  # with a binary digit below the quotient, and without
def test_bulk_geometric(x):
    law = geometric_law(x, 60)
    assert brackets(lambda coins: int(bulk.geometric(x, 1, coins)[0]), law, 16, 0.05)


def gaussian_law(variance, reach):
    weights = {k: math.exp(-(k**2) / (2 * variance)) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5, 2)])
def test_bulk_discrete_gaussian(variance):
    """Sixteen bits leave one number but where a cut of the table lies between them."""
    law = gaussian_law(float(variance), 60)
    agree(lambda coins: int(bulk.discrete_gaussian(variance, 1, coins)[0]), law, 16, 0.001)


OPEN = Profile([(3, 1), (2, 2)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [Exponential(epsilon="0.5"), PermuteAndFlip(epsilon="0.5")], ids=repr
)
def test_blocks_of_two_to_the_forty_candidates(mechanism, monkeypatch):
    """Which block is drawn; who in it is `uniform_below`, walked above, and would take forty coins
    more.
    """
    monkeypatch.setattr("privmax.mechanisms.contract.uniform_below", lambda n, coins: 0)
    profile = Profile([(56, 2)], universe=2**40)
    law = {score: chance for score, _, chance in mechanism.law(profile).blocks}
    assert 0.2 < law[0] < 0.8
    agree(lambda coins: mechanism.draw(profile, coins).score, law, 16, 0.01)


def test_restricted_exponential_breaks_ties_at_the_edge_at_random():
    mechanism = RestrictedExponential(epsilon=1, near=2)
    window = OPEN.window(10)
    law = {(3, 0): 1 / (1 + math.exp(-1)), (2, 0): 0.5 / (1 + math.e), (2, 1): 0.5 / (1 + math.e)}
    claimed = {score: chance for score, _, chance in mechanism.law(window).blocks}
    assert claimed[2] == pytest.approx(1 / (1 + math.e))

    def draw(coins):
        outcome = mechanism.draw(window, coins)
        return outcome.score, outcome.index

    agree(draw, law, 16, 0.001)


def test_noisy_maximum():
    mechanism = NoisyMaximum(epsilon=2)
    agree(lambda coins: mechanism.draw(OPEN, coins), mechanism.law(OPEN), 15, 0.01)


@pytest.mark.parametrize(
    ("excesses", "bounds"),
    [
        pytest.param([0, 1], [1, 1], id="loose bound", marks=pytest.mark.slow),
        pytest.param([1, 0, 0], [1, 0, 0], id="falling"),
    ],
)
def test_above_threshold_skips_ahead_exactly(excesses, bounds):
    """Where the bound is loose jumps land on places that must mostly be rejected."""
    runs = [Run(0, len(excesses), excesses.__getitem__, bounds.__getitem__)]
    mechanism = AboveThreshold(epsilon=12)
    stops, never = mechanism.law([(1, excess) for excess in excesses])
    agree(
        lambda coins: mechanism.draw(runs, coins), {**dict(enumerate(stops)), None: never}, 15, 0.05
    )


PAPER = LargeMargin(epsilon=40, delta="0.5", cap=3)
AT_ITS_THRESHOLD = PAPER.threshold(1)  # so that the search stops or goes on by its noise alone


@pytest.mark.slow
def test_large_margin_releases_the_estimate_it_searched_with():
    profile = Profile([(AT_ITS_THRESHOLD, 1)], universe=2)
    law = {}
    for (estimate, near), part in PAPER.joint(profile).items():
        law[estimate, near] = law.get((estimate, near), 0.0) + sum(
            chance for _, _, chance in part.blocks
        )

    def draw(coins):
        free = PAPER.draw(profile, coins).diagnostics
        return free["max_estimate"], free["near_maximizers"]

    agree(draw, law, 14, 0.1)
