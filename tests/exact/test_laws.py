"""Laws against slow independent sums. The facts that every law obeys are in `test_contract.py`."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb

from privmax import (
    FEW,
    Exponential,
    Guards,
    LargeMargin,
    NoisyMaximum,
    PermuteAndFlip,
    Privacy,
    Profile,
    SharpMargin,
)
from privmax.mechanisms.permute_and_flip import QUADRATURE_ERROR
from privmax.noise.balls import precision


def test_prices():
    assert (
        Exponential(epsilon="0.7").privacy()
        == PermuteAndFlip(epsilon="0.7").privacy()
        == Privacy("0.7")
    )
    assert SharpMargin(epsilon=1, delta="1e-6").privacy() == Privacy(1, "1e-6")
    assert LargeMargin(epsilon=1, delta="1e-6").privacy() == Privacy(1, "1e-6")
    assert NoisyMaximum(epsilon="0.7").privacy() == Privacy("0.7")


def test_exponential_against_its_formula():
    scores = [5, 4, 4, 1]
    weights = [math.exp(0.7 * score) for score in scores]
    law = Exponential(epsilon="0.7").law(Profile([(5, 1), (4, 2), (1, 1)], universe=4))
    assert [law.of(score) for score in scores] == pytest.approx(
        [weight / sum(weights) for weight in weights]
    )


def test_permute_and_flip_against_all_permutations():
    scores = [5, 4, 4, 1]
    accept = [math.exp(0.35 * (score - 5)) for score in scores]
    chances = [0.0] * 4
    orders = list(permutations(range(4)))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            chances[place] += left * accept[place]
            left *= 1 - accept[place]
    law = PermuteAndFlip(epsilon="0.7", neighbors="replace").law(
        Profile([(5, 1), (4, 2), (1, 1)], universe=4)
    )
    assert [law.of(score) for score in scores] == pytest.approx(chances, abs=1e-12)


@pytest.mark.parametrize("crowd", [1, 2, 10, 1000, 10**6, 2**40, 2**100, 2**1000 - 1])
@pytest.mark.parametrize("lead", [1, 5, 30, 300])
def test_permute_and_flip_against_its_integral_for_one_winner_over_a_crowd(crowd, lead):
    """∫₀¹ (1 − p·t)^N dt = (1 − (1−p)^(N+1)) / (p(N+1)), in exact arithmetic."""
    law = PermuteAndFlip(epsilon=1).law(Profile([(lead, 1)], universe=crowd + 1))
    with precision(2000):
        depth = -arb(min(lead, lead - law.blocks[-1][0]))  # the crowd may be clipped higher up
        p, total = depth.exp(), arb(crowd + 1)
        expected = -((-p).log1p() * total).expm1() / (p * total)
    assert law.best() == pytest.approx(float(expected), abs=QUADRATURE_ERROR)


@pytest.mark.parametrize("universe", [4, 2**100, 2**1000])
def test_permute_and_flip_is_never_worse_than_exponential(universe):
    levels = [(universe.bit_length(), 1), (universe.bit_length() - 1, 2)]
    profile = Profile(levels, universe=universe)
    assert (
        PermuteAndFlip(epsilon=1).law(profile).best() >= Exponential(epsilon=1).law(profile).best()
    )


def brute_force_large_margin(mechanism, scores, reach=60, sensitivity=1):
    """P(ℓ, candidate) by summing over Z and G directly, with the printed algorithm and no
    blocks.
    """
    epsilon = float(mechanism.epsilon) / sensitivity
    size = len(scores)

    def pmf(scale):
        return {
            k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)
        }

    query = 12 / epsilon

    def passes(bound):  # P(Z_r ≤ bound)
        tail = math.exp(-abs(bound if bound < 0 else bound + 1) / query) / (
            1 + math.exp(-1 / query)
        )
        return tail if bound < 0 else 1 - tail

    chances = np.zeros(size)
    for (z, p_z), (g, p_g) in product(pmf(3 / epsilon).items(), pmf(6 / epsilon).items()):
        alive = p_z * p_g
        for rank in range(1, size + 1):
            stop = (
                passes(
                    scores[0] + z - scores[rank] - g - mechanism.threshold(rank, sensitivity) - 1
                )
                if rank < size
                else 1.0
            )
            weights = np.exp(epsilon / 6 * (np.array(scores[:rank]) - scores[0]))
            chances[:rank] += alive * stop * weights / weights.sum()
            alive *= 1 - stop
    return chances


@pytest.mark.slow
@pytest.mark.parametrize("scores", [(30, 29, 12, 11, 0), (25, 12, 1, 0), (4, 3, 2, 1, 0)])
def test_large_margin_against_the_printed_algorithm(scores):
    mechanism = LargeMargin(epsilon=12, delta="0.2")
    law = mechanism.law(Profile([(score, 1) for score in scores], universe=len(scores)))
    assert [law.of(score) for score in scores] == pytest.approx(
        list(brute_force_large_margin(mechanism, scores)), abs=1e-9
    )


def test_large_margin_on_scores_of_several_steps_to_a_record():
    """Two stand near the top, and the third so low that the search stops before it."""
    mechanism = LargeMargin(epsilon=40, delta="0.2")
    top = mechanism.threshold(2, sensitivity=2) + 3
    scores = (top, top - 1, 0)
    law = mechanism.law(
        Profile([(score, 1) for score in scores], universe=len(scores), sensitivity=2)
    )
    expected = brute_force_large_margin(mechanism, scores, reach=9, sensitivity=2)
    assert 0.01 < expected[1] < 0.49
    assert [law.of(score) for score in scores] == pytest.approx(list(expected), abs=1e-9)


@pytest.mark.parametrize("crowd", [200, 3000])
def test_large_margin_in_pieces_agrees_with_rank_by_rank_to_its_stated_error(crowd, monkeypatch):
    mechanism = LargeMargin(epsilon=12, delta="0.2")
    profile = Profile([(60, 2), (24, 5)], universe=crowd)
    law = mechanism.law(profile)
    assert law.error < 1e-3
    every_rank = list(range(1, crowd + 1))
    monkeypatch.setattr(
        "privmax.mechanisms.large_margin._stretches",
        lambda m, end, s: (every_rank, [m.threshold(rank, s) for rank in every_rank]),
    )
    exact = mechanism.law(profile)
    assert exact.error < 2e-10
    for (_, _, piecewise), (_, _, one_by_one) in zip(law.blocks, exact.blocks, strict=True):
        assert abs(piecewise - one_by_one) <= law.error


def test_sharp_margin_against_its_formula():
    """The statement of the mechanism, written out for five candidates in an open universe."""
    epsilon, delta, share, c = 1.3, 0.02, 0.2, 2
    e1, e2 = share * epsilon, (1 - share) * epsilon
    scores = [9, 8, 8, 5, 2] + [0] * 10
    picks, laws = [], []
    for rank, prior in ((1, 1.0), (3, 0.5), (8, 0.25)):
        threshold = scores[rank] + c + c / e2 * math.log(rank / delta)
        picks.append(prior * math.exp(-e1 / c * threshold))
        weights = np.exp(e2 / c * np.array(scores[:rank]))
        laws.append(
            [*weights, *[0] * (5 - rank)][:5] / (weights.sum() + math.exp(e2 / c * threshold))
        )
    expected = sum(pick * law for pick, law in zip(picks, laws, strict=True)) / sum(picks)
    mechanism = SharpMargin(
        epsilon="1.3",
        delta="0.02",
        neighbors="replace",
        guards=Guards((1, 3, 8), (1, "0.5", "0.25"), share="0.2"),
    )
    law = mechanism.law(Profile([(9, 1), (8, 2), (5, 1), (2, 1)]))
    assert [law.of(score) for score in scores[:5]] == pytest.approx(list(expected))


def test_clipping_moves_less_than_it_says():
    """A window twice as wide gives the same law to within 2^−23."""
    profile = Profile([(10**6, 3), (10**6 - 40, 1000), (10**6 - 300, 10**7)])
    mechanism = SharpMargin(epsilon=1, delta="1e-6", guards=FEW)

    class Wider(SharpMargin):
        def _clip(self, profile):
            return 2 * super()._clip(profile)

    wide = Wider(epsilon=1, delta="1e-6", guards=FEW)
    for score in (10**6, 10**6 - 40):
        assert abs(mechanism.law(profile).of(score) - wide.law(profile).of(score)) < 2**-23
