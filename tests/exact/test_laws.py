"""Facts every law obeys, over every mechanism; and laws against slow independent sums."""

from __future__ import annotations

import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from flint import arb

from privmax import (
    DYADIC,
    FEW,
    Choosing,
    Exponential,
    GapTest,
    Guards,
    JointExponential,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    Profile,
    SharpMargin,
    StableMaximum,
)
from privmax.mechanisms.permute_and_flip import QUADRATURE_ERROR
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.balls import precision
from privmax.noise.coins import SYSTEM

CLOSED_ONLY = [
    Exponential(epsilon="0.7"),
    PermuteAndFlip(epsilon="0.7", neighbors="replace"),
    MaxOfLaplaces(epsilon="0.7"),
    JointExponential(epsilon="0.7", k=1),
]
ANY_UNIVERSE = [
    SharpMargin(epsilon=1, delta="1e-6"),
    SharpMargin(epsilon=1, delta="0.01", guards=DYADIC, growth=2),
    LargeMargin(epsilon=1, delta="1e-6"),
    LargeMargin(epsilon=8, delta="0.1", constants="corrected", cap=1000),
    LargeMarginTruncated(epsilon=8, delta="0.1", cap=1000),
    NestedMargin(epsilon=1, delta="1e-6"),
    NestedMargin(epsilon=1, delta="0.01", neighbors="replace", ranks=(1, 3), growth=2),
    LimitedDomain(epsilon=1, delta="1e-6", rank=10),
    StableMaximum(epsilon=1, delta="1e-6"),
    GapTest(epsilon=1, delta="1e-6", neighbors="replace"),
    Choosing(epsilon=1, delta="1e-6", growth=3),
]
LEVELS = [(900, 3), (899, 2), (870, 40), (500, 1), (3, 10**6)]
CASES = [(m, Profile(LEVELS, universe=10**12)) for m in [*CLOSED_ONLY, *ANY_UNIVERSE]]
CASES += [(m, Profile(LEVELS)) for m in ANY_UNIVERSE]
assert {type(m) for m, _ in CASES} == {entry.load() for entry in MECHANISMS.values()}


@pytest.mark.parametrize(("mechanism", "profile"), CASES, ids=repr)
def test_a_law_sums_to_one(mechanism, profile):
    law = mechanism.law(profile)
    assert law.none + sum(chance for _, _, chance in law.blocks) == pytest.approx(1, abs=1e-9)
    assert min(law.none, *(chance for _, _, chance in law.blocks)) >= 0


@pytest.mark.parametrize(("mechanism", "profile"), CASES, ids=repr)
def test_a_better_candidate_is_never_less_likely(mechanism, profile):
    law = mechanism.law(profile)
    each = [chance / count for _, count, chance in law.blocks if count]
    assert all(high >= low * (1 - 1e-9) for high, low in pairwise(each))


@pytest.mark.parametrize(("mechanism", "profile"), CASES, ids=repr)
def test_a_draw_lands_on_a_block_of_the_law(mechanism, profile):
    law = mechanism.law(profile)
    counts = {(score, score == law.floor): count for score, count, _ in law.blocks}
    for _ in range(5):
        outcome = mechanism.draw(profile, SYSTEM)
        if outcome.score is not None:
            assert 0 <= outcome.index < counts[outcome.score, outcome.below]


@pytest.mark.parametrize(
    ("mechanism", "profile"),
    [case for case in CASES if not isinstance(case[0], Choosing)],
    ids=repr,
)  # that one is for counts: 0 is not a score like others
def test_adding_a_constant_to_every_score_changes_nothing_in_a_closed_universe(mechanism, profile):
    if profile.universe is None:
        lower = Profile(
            [(score + 7, count) for score, count in LEVELS]
        )  # still far above the unlisted
        assert mechanism.law(lower).best() == pytest.approx(mechanism.law(profile).best(), abs=1e-9)
        return
    full = Profile([*LEVELS, (0, 10**12 - 10**6 - 46)], universe=10**12)
    shifted = Profile(
        [(score - 12345, count) for score, count in [*LEVELS, (0, 10**12 - 10**6 - 46)]],
        universe=10**12,
    )
    assert [row[2] for row in mechanism.law(full).blocks] == [
        row[2] for row in mechanism.law(shifted).blocks
    ]


@pytest.mark.parametrize("mechanism", [*CLOSED_ONLY, *ANY_UNIVERSE], ids=repr)
def test_the_joint_law_adds_up_to_the_law(mechanism):
    profile = Profile([(9, 2), (7, 1)], universe=5)
    law, parts = mechanism.law(profile), list(mechanism.joint(profile).values())
    assert sum(part.none for part in parts) == pytest.approx(law.none, abs=1e-9)
    for row, (_, _, chance) in enumerate(law.blocks):
        assert sum(part.blocks[row][2] for part in parts) == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize("mechanism", [*CLOSED_ONLY, *ANY_UNIVERSE], ids=repr)
def test_one_candidate_alone_is_always_drawn_in_a_closed_universe(mechanism):
    assert mechanism.law(Profile([(5, 1)], universe=1)).best() == pytest.approx(1)


@pytest.mark.parametrize("mechanism", ANY_UNIVERSE, ids=repr)
def test_nothing_is_drawn_where_nothing_was_seen(mechanism):
    law = mechanism.law(Profile([]))
    assert law.none == pytest.approx(1)
    assert mechanism.draw(Profile([]), SYSTEM).score is None


def test_prices():
    assert (
        Exponential(epsilon="0.7").privacy()
        == PermuteAndFlip(epsilon="0.7").privacy()
        == Privacy("0.7")
    )
    assert SharpMargin(epsilon=1, delta="1e-6").privacy() == Privacy(1, "1e-6")
    assert LargeMargin(epsilon=1, delta="1e-6").privacy() == Privacy(1, "1e-6")


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


def brute_force_large_margin(mechanism, scores, reach=60):
    """P(ℓ, candidate) by summing over Z and G directly, with the printed algorithm and no
    blocks.
    """
    epsilon = float(mechanism.epsilon)
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
                passes(scores[0] + z - scores[rank] - g - mechanism.threshold(rank) - 1)
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


def test_a_trillion_tied_candidates_cost_a_few_draws():
    profile = Profile([(50, 10**12)], universe=10**12 + 5)
    for mechanism in [*CLOSED_ONLY, *ANY_UNIVERSE]:
        assert mechanism.draw(profile, SYSTEM).score in (50, 0, None)


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
