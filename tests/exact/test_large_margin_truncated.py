"""The paper's mechanism with truncated exponentials: the stage alone where it has its margin, and
the whole.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import privmax
from privmax import (
    LargeMargin,
    LargeMarginTruncated,
    MaxOfTruncated,
    ParameterError,
    Privacy,
    Profile,
)
from privmax.auditing import divergence
from privmax.mechanisms.contract import search_lead
from privmax.noise.balls import ball
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import walk

pytestmark = pytest.mark.slow

both_relations = pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])


def closed(scores, sensitivity=1):
    levels = [(score, scores.count(score)) for score in set(scores)]
    return Profile(levels, universe=len(scores), sensitivity=sensitivity)


# The stage alone.


@cache
def sorted_law(stage, scores, sensitivity):
    return stage.law(closed(scores).window(200), sensitivity)


def table(stage, scores, sensitivity=1):
    law = sorted_law(stage, tuple(sorted(scores)), sensitivity)
    return {place: law.of(score) for place, score in enumerate(scores)}


def loss(stage, scores, move, sensitivity=1):
    """The delta that a pair of neighbours needs at the stage's epsilon, in the worse direction."""
    other = tuple(score + step for score, step in zip(scores, move, strict=True))
    here, there = table(stage, scores, sensitivity), table(stage, other, sensitivity)
    return max(divergence(here, there, stage.epsilon), divergence(there, here, stage.epsilon))


def worst(stage, scores, sensitivity=1):
    up, down = range(sensitivity + 1), range(0, -sensitivity - 1, -1)
    every = range(-sensitivity, sensitivity + 1)
    moves = [*product(up, repeat=len(scores)), *product(down, repeat=len(scores))]
    if stage.neighbors == REPLACE:
        moves = product(every, repeat=len(scores))
    return max(loss(stage, scores, move, sensitivity) for move in moves)


@pytest.mark.slow
@both_relations
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "0.3"), (3, "0.01"), ("0.2", "0.05")])
@pytest.mark.parametrize("near", [1, 2, 3])
def test_the_stage_with_its_margin_is_private_in_both_directions(neighbors, epsilon, delta, near):
    stage = MaxOfTruncated(epsilon=epsilon, delta=delta, near=near, neighbors=neighbors)
    margin = stage.margin()
    for depth in {0, 1, margin // 2, margin - 1}:
        scores = (100, *[100 - depth] * (near - 1), 100 - margin, 100 - margin)
        assert worst(stage, scores) <= float(stage.delta) + 1e-10


class _OneStep(MaxOfTruncated):
    """Takes a score to move by 1 whatever the sensitivity."""

    def _rate(self, sensitivity):
        return super()._rate(1)


@pytest.mark.slow
@both_relations
def test_the_stage_on_scores_of_two_steps_to_a_record(neighbors):
    options = {"epsilon": 2, "delta": "0.1", "near": 2, "neighbors": neighbors}
    stage = MaxOfTruncated(**options)
    margin = 2 * stage.margin()
    for depth in (0, 1, margin // 2):
        assert worst(stage, (100, 100 - depth, 100 - margin), sensitivity=2) <= 0.1 + 1e-10
    assert worst(_OneStep(**options), (100, 100, 100 - margin), sensitivity=2) > 0.2


@pytest.mark.slow
@both_relations
def test_the_stage_on_everybody_needs_no_margin(neighbors):
    stage = MaxOfTruncated(epsilon=1, delta="0.01", near=3, neighbors=neighbors)
    found = [worst(stage, (20, 20 - a, 20 - b)) for a in range(0, 14, 3) for b in range(a, 14, 3)]
    assert 0 < max(found) <= 0.01 + 1e-10


def falls(stage, depth):
    """One leader that rises against near − 1 others that all stand `depth` below it (and fall,
    under replace).
    """
    down = -1 if stage.neighbors == REPLACE else 0
    return loss(stage, (100, *[100 - depth] * (stage.near - 1)), (1, *[down] * (stage.near - 1)))


@both_relations
def test_the_stage_is_nearly_tight(neighbors):
    """η = (e^ε − 1)κ/(1 − κ) for each of near − 1 candidates, and near·η is at most δ."""
    stage = MaxOfTruncated(epsilon=4, delta="1e-6", near=10, neighbors=neighbors)
    kappa = float(stage.cut())
    eta = math.expm1(4) * kappa / (1 - kappa)
    most = max(falls(stage, depth) for depth in range(stage.margin()))
    assert 0.9 * 9 * eta < most <= 9 * eta + 1e-10 < 1e-6


class _NoLogarithm(MaxOfTruncated):
    """τ without the logarithm of the rank."""

    def cut(self):
        return super().cut() * self.near


class _HalfTheNoise(MaxOfTruncated):
    """Noise of scale 1/ε under replace."""

    def _rate(self, sensitivity):
        return 2 * super()._rate(sensitivity)


class _TheOtherMargin(MaxOfTruncated):
    """τ = (c/ε)·ln(ℓ/δ), which is what exponential weights need."""

    def cut(self):
        return ball(self.delta / self.near)


@both_relations
@pytest.mark.parametrize("mutant", [_NoLogarithm, _HalfTheNoise, _TheOtherMargin])
def test_mutant_stages(mutant, neighbors):
    options = {"epsilon": 3, "delta": "0.0001", "near": 6, "neighbors": neighbors}
    depths = range(MaxOfTruncated(**options).margin())
    assert max(falls(MaxOfTruncated(**options), depth) for depth in depths) <= 0.0001
    assert max(falls(mutant(**options), depth) for depth in depths) > 0.0002


@both_relations
def test_mutant_margin_without_tau(neighbors):
    stage = MaxOfTruncated(epsilon=1, delta="0.01", near=2, neighbors=neighbors)
    honest, short = 100 - stage.margin(), 100 - privmax.privacy.drift(neighbors)
    assert worst(stage, (100, honest + 1, honest, honest)) <= 0.01 + 1e-10
    assert worst(stage, (100, short, short, short)) > 0.02


def slow_stage(scores, near, epsilon, delta):
    """P(i) for c = 2 by integrating over the largest noisy score z, in scores and not in times."""
    tau = 2 / epsilon * math.log(near * (1 + math.exp(epsilon)) / delta)
    points, weights = np.polynomial.legendre.leggauss(40)
    running = sorted(scores, reverse=True)[:near]

    def cdf(x):
        return np.expm1(-epsilon / 2 * np.clip(x, 0, tau)) / math.expm1(-epsilon / 2 * tau)

    def pdf(x):
        return (
            np.where((x >= 0) & (x <= tau), np.exp(-epsilon / 2 * x), 0)
            * epsilon
            / -2
            / math.expm1(-epsilon / 2 * tau)
        )

    edges = sorted({q + shift for q in running for shift in (0, tau) if q + shift >= running[0]})
    chances = np.zeros(near)
    for low, high in pairwise(edges):
        z = (low + high) / 2 + (high - low) / 2 * points
        for i in range(near):
            others = np.prod([cdf(z - q) for q in running[:i] + running[i + 1 :]], axis=0)
            chances[i] += (high - low) / 2 * weights @ (pdf(z - running[i]) * others)
    return chances


@pytest.mark.parametrize("scores", [(10, 9, 9, 4), (30, 12, 11, 0), (5, 5, 5, 5, 5, 5)])
@pytest.mark.parametrize("near", [1, 2, 4])
def test_the_stage_against_an_integral(scores, near):
    expected = slow_stage(scores, near, 0.8, 0.05)
    law = MaxOfTruncated(epsilon="0.8", delta="0.05", near=near, neighbors=REPLACE).law(
        closed(scores).window(100)
    )
    for score in set(scores):
        mine = sum(
            chance for chance, other in zip(expected, scores, strict=False) if other == score
        )
        drawn = sum(chance for level, _, chance in law.blocks if level == score)
        assert drawn == pytest.approx(mine, abs=1e-11)


def test_nobody_tau_below_the_top_is_drawn():
    stage = MaxOfTruncated(epsilon=2, delta="0.1", near=10**6)  # τ = (1/2)·ln(10^7·(1 + e²)) = 9.1…
    law = stage.law(Profile([(20, 1), (11, 1), (10, 10**6)]).window(15))
    assert law.of(11) > 0
    assert law.of(10) == law.none == 0


def test_margin_is_the_sum_rounded_up():
    for epsilon, delta, near in product((0.25, 1, 3), (1e-6, 0.3), (1, 7, 10**9)):
        tau = math.log(near * (1 + math.exp(epsilon)) / delta) / epsilon
        for neighbors, c in ((ADD_REMOVE, 1), (REPLACE, 2)):
            stage = MaxOfTruncated(epsilon=epsilon, delta=delta, near=near, neighbors=neighbors)
            assert stage.margin() == c + math.ceil(c * tau)


def agree(draw, law, depth, unfinished):
    """A walk of the draw leaves room for every probability of `law`, and not for a law that is
    slightly wrong.
    """
    finished, left = walk(draw, depth)
    assert left <= unfinished, f"{float(left)} unfinished"
    assert finished.keys() <= law.keys()

    def fits(chances):
        return all(
            finished.get(o, 0) - 1e-9 <= p <= finished.get(o, 0) + left + 1e-9
            for o, p in chances.items()
        )

    assert fits(law)
    high, low = sorted(law, key=law.__getitem__, reverse=True)[:2]
    assert not fits({**law, high: law[high] - 1.5 * unfinished, low: law[low] + 1.5 * unfinished})


@pytest.mark.slow
@pytest.mark.parametrize("near", [2, 3])
def test_the_stage_draws_its_law(near):
    """With near = 2 one of the two tied candidates takes part, either as often as the other."""
    window = Profile([(3, 1), (2, 2)]).window(10)
    stage = MaxOfTruncated(epsilon=1, delta="0.2", near=near)
    law = {
        (score, i): chance / count
        for score, count, chance in stage.law(window).blocks
        for i in range(count or 0)
    }

    def draw(coins):
        outcome = stage.draw(window, coins)
        return outcome.score, outcome.index

    agree(draw, law, 15, 0.03)


# The whole mechanism.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "constants"),
    [(6, "0.3", "corrected"), (20, "0.5", "corrected"), (6, "1e-6", "printed")],
)
def test_at_its_threshold_it_stays_within_its_price(epsilon, delta, constants):
    mechanism = LargeMarginTruncated(epsilon=epsilon, delta=delta, cap=4, constants=constants)
    one, two = mechanism.threshold(1), mechanism.threshold(2)
    starts = [
        (one - 5, 0, 0),
        (one, 0, 0),
        (one + 2, 1, 1),
        (two, two - 1, 0),
        (two, two - mechanism.margin(1), 0),
    ]
    assert privmax.audit(mechanism, universe="open", scores=starts).holds
    assert privmax.audit(mechanism, scores=starts[1:4]).holds


class _LoudStage(LargeMarginTruncated):
    """Spends all of ε on the third stage, which has a third of it."""

    def _choice(self, near):
        return MaxOfTruncated(
            epsilon=self.epsilon, delta=self.delta / 3, near=near, neighbors=REPLACE
        )


class _NoTails(LargeMarginTruncated):
    """Lets the search pass at the margin itself, without room for its noise."""

    def threshold(self, rank, sensitivity=1):
        return self.margin(rank, sensitivity)


class _NoCertificate(LargeMarginTruncated):
    """Takes any lead at all for a certificate."""

    def threshold(self, rank, sensitivity=1):
        return 0


@pytest.mark.parametrize(
    ("mutant", "options"),
    [
        pytest.param(
            _LoudStage,
            {"candidates": 2, "highest": 4, "neighbors": REPLACE},
            marks=pytest.mark.slow,
        ),
        (_NoTails, {"universe": "open", "scores": [(1, 0, 0), (1, 1, 0)]}),
        (_NoCertificate, {"universe": "open", "candidates": 2, "highest": 2}),
    ],
)
def test_mutants(mutant, options):
    arguments = {"epsilon": 3, "delta": "0.01", "constants": "corrected", "cap": 4}
    assert privmax.audit(LargeMarginTruncated(**arguments), **options).holds
    found = privmax.audit(mutant(**arguments), **options)
    assert found.delta > 0.02 + found.error


def slow_law(mechanism, scores, reach=25):
    """P(candidate) by summing over the noise of both first stages, rank by rank, as the page states
    it.
    """
    epsilon, delta = float(mechanism.epsilon), float(mechanism.delta)
    size, query = len(scores), 12 / epsilon

    def pmf(scale):
        return {
            k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)
        }

    def passes(bound):
        tail = math.exp(-abs(bound if bound < 0 else bound + 1) / query) / (
            1 + math.exp(-1 / query)
        )
        return tail if bound < 0 else 1 - tail

    draws = [
        np.pad(slow_stage(scores, near, epsilon / 3, delta / 3), (0, size - near))
        for near in range(1, size + 1)
    ]
    chances = np.zeros(size)
    for (z, p_z), (g, p_g) in product(pmf(3 / epsilon).items(), pmf(6 / epsilon).items()):
        alive = p_z * p_g
        for rank in range(1, size + 1):
            stop = (
                passes(scores[0] + z - scores[rank] - g - mechanism.threshold(rank) - 1)
                if rank < size
                else 1.0
            )
            chances += alive * stop * draws[rank - 1]
            alive *= 1 - stop
    return chances


@pytest.mark.slow
@pytest.mark.parametrize("scores", [(30, 29, 12, 11, 0), (25, 12, 1, 0), (4, 3, 2, 1, 0)])
def test_law_against_the_algorithm_as_stated(scores):
    mechanism = LargeMarginTruncated(epsilon=12, delta="0.2")
    law = mechanism.law(closed(scores))
    assert law.error < 1e-9
    assert [law.of(score) for score in scores] == pytest.approx(
        list(slow_law(mechanism, scores)), abs=1e-9
    )


class _Eager(LargeMarginTruncated):
    """Stops sixteen records too early, among candidates that can still be drawn. Its law is
    computed the same way.
    """

    def threshold(self, rank, sensitivity=1):
        return super().threshold(rank, sensitivity) - 16


@pytest.mark.parametrize(
    ("depth", "crowd"), [(3, 200), pytest.param(5, 900, marks=pytest.mark.slow)]
)
def test_law_in_pieces_agrees_with_rank_by_rank_to_its_stated_error(depth, crowd, monkeypatch):
    mechanism = _Eager(epsilon=12, delta="0.2")
    profile = Profile([(60, 2), (60 - depth, crowd)], universe=2 * crowd)
    law = mechanism.law(profile)
    assert law.error < 0.001
    every_rank = list(range(1, 2 * crowd + 1))
    monkeypatch.setattr(
        "privmax.mechanisms.large_margin._stretches",
        lambda m, end, s: (every_rank, [m.threshold(rank, s) for rank in every_rank]),
    )
    exact = mechanism.law(profile)
    assert exact.error < 2e-10
    off = [abs(here[2] - there[2]) for here, there in zip(law.blocks, exact.blocks, strict=True)]
    assert 1e-8 < max(off) <= law.error


@pytest.mark.parametrize("universe", [None, 10**12])
def test_law_is_a_law_and_a_draw_lands_on_it(universe):
    mechanism = LargeMarginTruncated(epsilon=8, delta="0.1", constants="corrected", cap=1000)
    profile = Profile([(90, 3), (89, 2), (87, 40), (50, 1), (3, 10**6)], universe=universe)
    law = mechanism.law(profile)
    assert law.none + sum(chance for _, _, chance in law.blocks) == pytest.approx(1, abs=1e-9)
    each = [chance / count for _, count, chance in law.blocks if count]
    assert all(high >= low * (1 - 1e-9) for high, low in pairwise(each))
    counts = {(score, score == law.floor): count for score, count, _ in law.blocks}
    for _ in range(5):
        outcome = mechanism.draw(profile, SYSTEM)
        assert outcome.score is None or 0 <= outcome.index < counts[outcome.score, outcome.below]


@pytest.mark.parametrize(
    ("mechanism", "profile"),
    [
        (
            LargeMarginTruncated(epsilon=20, delta="0.3", cap=4),
            Profile([(14, 2), (2, 1)], universe=5),
        ),
        (LargeMarginTruncated(epsilon=20, delta="0.3", cap=4), Profile([(14, 2), (2, 1)])),
        (_Eager(epsilon=12, delta="0.2", cap=6), Profile([(3, 1), (1, 1)])),
    ],
    ids=["closed", "open", "open, with dummies in the race"],
)
def test_the_joint_law_adds_up_to_the_law(mechanism, profile):
    law, parts = mechanism.law(profile), list(mechanism.joint(profile).values())
    assert sum(part.none for part in parts) == pytest.approx(law.none, abs=1e-9)
    for row, (_, _, chance) in enumerate(law.blocks):
        assert sum(part.blocks[row][2] for part in parts) == pytest.approx(chance, abs=1e-9)
    assert law.best() > 0.01


def test_edges():
    mechanism = LargeMarginTruncated(epsilon=1, delta="1e-6")
    assert mechanism.law(Profile([(5, 1)], universe=1)).best() == pytest.approx(1)
    assert mechanism.law(Profile([])).none == pytest.approx(1)
    assert mechanism.draw(Profile([]), SYSTEM).score is None
    trillion = Profile([(50, 10**12)], universe=10**12 + 5)
    assert mechanism.draw(trillion, SYSTEM).score in (50, 0)


@pytest.mark.parametrize("rank", [1, 2, 10, 12345, 2**40, 2**100])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_thresholds_are_the_stated_ones_rounded_up_term_by_term(rank, epsilon):
    mechanism = LargeMarginTruncated(epsilon=epsilon, delta="1e-6")
    e = float(mechanism.epsilon)
    margin, threshold = mechanism.paper_constants(rank)
    assert margin == pytest.approx(6 + 6 / e * math.log(3e6 * rank * (1 + math.exp(e / 3))))
    assert 0 <= mechanism.margin(rank) - margin < 1
    assert 0 <= mechanism.threshold(rank) - threshold < 4
    corrected = LargeMarginTruncated(epsilon=epsilon, delta="1e-6", constants="corrected")
    assert corrected.margin(rank) == corrected._choice(rank).margin() == mechanism.margin(rank) - 4
    assert mechanism.margin(rank, 2) == pytest.approx(2 * mechanism.margin(rank), abs=1)


def test_it_is_not_taken_for_the_mechanism_it_extends():
    """Both cache public numbers by their parameters, which are the same."""
    options = {"epsilon": 1, "delta": "1e-6"}
    plain, truncated = LargeMargin(**options), LargeMarginTruncated(**options)
    assert plain != truncated
    profile = Profile([(450, 1)])
    assert plain.law(profile).best() > truncated.law(profile).best() > 0.9
    assert repr(truncated).startswith("LargeMarginTruncated(epsilon=1, delta=1e-06")
    assert truncated.privacy() == Privacy(1, "1e-6")


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (10**3, (56, 45, 0)),
        (10**6, (97, 87, 60)),
        pytest.param(10**12, (180, 170, 143), marks=pytest.mark.slow),
    ],
)
def test_leads(candidates, expected):
    """In a closed universe that is mostly searched to its end, the third stage alone decides: it
    errs a little less.
    """
    mechanism, plain = (
        kind(epsilon=1, delta="1e-6") for kind in (LargeMarginTruncated, LargeMargin)
    )
    for near, lead in zip((1, 10, 1000), expected, strict=True):
        assert (
            mechanism.lead(candidates=candidates, near=near)
            == lead
            <= plain.lead(candidates=candidates, near=near)
        )


@pytest.mark.slow
def test_lead_in_an_open_universe():
    """The longer certificate costs what it is longer by."""
    mechanism, plain = (
        kind(epsilon=1, delta="1e-6") for kind in (LargeMarginTruncated, LargeMargin)
    )
    assert mechanism.lead(candidates=None) == 443 == plain.lead(candidates=None) + 5


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("epsilon", {"epsilon": 0, "delta": "0.1"}),
        ("delta", {"epsilon": 1, "delta": 0}),
        ("neighbors", {"epsilon": 1, "delta": "0.1", "neighbors": "friends"}),
    ],
)
def test_bad_arguments_are_named(argument, options):
    with pytest.raises(ParameterError, match=argument):
        LargeMarginTruncated(**options)
    with pytest.raises(ParameterError, match=argument):
        MaxOfTruncated(**options, near=1)


@pytest.mark.parametrize(("argument", "value"), [("cap", 0), ("constants", "optimistic")])
def test_bad_options_are_named(argument, value):
    with pytest.raises(ParameterError, match=argument):
        LargeMarginTruncated(epsilon=1, delta="0.1", **{argument: value})
    with pytest.raises(ParameterError, match="near"):
        MaxOfTruncated(epsilon=1, delta="0.1", near=0)


@pytest.mark.parametrize("kind", [LargeMargin, LargeMarginTruncated])
@pytest.mark.parametrize(("candidates", "near"), [(None, 1), (None, 3), (10, 1), (10**4, 2)])
def test_a_lead_is_the_same_wherever_its_search_begins(kind, candidates, near, monkeypatch):
    """Guesses only save laws, of which the truncated stage needs few in an open universe."""
    mechanism, asked = kind(epsilon=2, delta="1e-5"), []
    expected = search_lead(mechanism._chance_best, candidates=candidates, near=near, success="0.9")
    law = LargeMarginTruncated.law
    monkeypatch.setattr(LargeMarginTruncated, "law", lambda *given: asked.append(1) or law(*given))
    assert mechanism.lead(candidates=candidates, near=near, success="0.9") == expected
    assert candidates is not None or len(asked) <= 6
