"""The set margin mechanism: laws against enumeration, audits of that enumeration, mutants, the soft
gap test, the first look in floats, leads, sizes.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import privmax
from privmax import GapTest, ParameterError, Privacy, Profile, SetMargin, Stage
from privmax.mechanisms import cells
from privmax.mechanisms.cells import Cells, _shares
from privmax.mechanisms.gap_test import soft_chances
from privmax.mechanisms.set_margin import _StageTurn
from privmax.mechanisms.sets import uniform_subset
from privmax.mechanisms.stages import default_stages
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE, drift
from privmax.testing import SeededCoins, walk

pytestmark = pytest.mark.slow


def sibling(name):
    """A file beside this one, which is no test."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


labelled_sets, brute_force = sibling("labelled_sets"), sibling("brute_force")
enumerated, stated = labelled_sets.enumerated, labelled_sets.stated

ONE = (Stage(2, 3, silence=1),)
SOFT = Stage(2, 3, silence="0.2", part="0.5"), Stage(1, 2, silence=1, part="0.5")
SAME = Stage(2, 3, silence="0.3", part="0.5"), Stage(2, 3, silence=1, part="0.5")
TEST_FIRST = Stage(2, 2, silence="0.3", part="0.5"), Stage(2, 3, silence=1, part="0.5")
TEST_LAST = Stage(3, 4, silence="0.1", tilt="0.4", part="0.3"), Stage(2, 2, silence=1, part="0.3")
LONG = (
    Stage(3, 3, silence="0.25", part="0.4"),
    Stage(3, 5, silence="0.1", part="0.2"),
    Stage(2, 4, silence="0.2", tilt="0.6", part="0.2"),
    Stage(1, 3, silence=1, part="0.2"),
)
CASCADES = {"one": ONE, "soft": SOFT, "first": TEST_FIRST, "last": TEST_LAST, "long": LONG}
every_cascade = pytest.mark.parametrize("stages", CASCADES.values(), ids=CASCADES.keys())
both = pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
both_universes = pytest.mark.parametrize("universe", ["open", "closed"])

TIES = [(1, 1, 0, 0), (1, 1, 1, 0), (3, 3, 3, 0), (4, 4, 3, 3), (20, 20, 20, 20), (21, 1, 1, 0)]


def gaps(neighbors):
    """Two candidates ahead of two others, from not at all to clearly."""
    c = drift(neighbors)
    clear = [(3 + c * lead, 3 + c * lead, 3, 3) for lead in (2, 6, 10, 14, 18, 22)]
    apart = [(c * (lead + 8), c * lead, 1, 0) for lead in (3, 12, 20)]
    return [*TIES, *clear, *apart]


def made(stages, delta="0.05", neighbors=ADD_REMOVE, make=SetMargin, epsilon=1):
    size = max(stage.size for stage in stages)
    return make(epsilon=epsilon, delta=delta, k=size, stages=stages, neighbors=neighbors)


def profile(scores, universe="open", sensitivity=1):
    levels = [(one, scores.count(one)) for one in set(scores) if one or universe == "closed"]
    size = None if universe == "open" else len(scores)
    return Profile(levels, universe=size, sensitivity=sensitivity)


def enumerate_for(mechanism, scores, universe="open", sensitivity=1):
    return enumerated(
        scores,
        mechanism.stages,
        mechanism.epsilon,
        mechanism.delta,
        c=drift(mechanism.neighbors),
        sensitivity=sensitivity,
        is_open=universe == "open",
    )


# The law


SCORES = [
    (0, 0, 0, 0),
    (1, 0, 0, 0),
    (3, 3, 3, 3),
    (5, 4, 4, 1),
    (2, 9, 2, 2),
    (7, 7, 0, 0),
    (30, 26, 3, 2),
    (90, 12, 12, 12),
]


@pytest.mark.slow
@every_cascade
@both
@both_universes
@pytest.mark.parametrize("delta", ["0.05", "1e-6"])
def test_the_law_is_that_of_all_sets_one_by_one(stages, neighbors, universe, delta):
    mechanism = made(stages, delta, neighbors)
    for scores, sensitivity in product(SCORES, (1, 2)):
        expected = enumerate_for(mechanism, scores, universe, sensitivity)
        [law] = mechanism.sets(profile(scores, universe, sensitivity)).values()
        found = stated(law, scores, is_open=universe == "open")
        assert found.keys() >= {key for key, chance in expected.items() if chance > 1e-300}
        for key, chance in found.items():
            assert chance == pytest.approx(expected.get(key, 0.0), rel=1e-9, abs=1e-300)


@both_universes
def test_without_delta_the_law_is_that_of_all_sets_of_the_universe(universe):
    mechanism = SetMargin(epsilon="0.7", k=2)
    if universe == "open":
        with pytest.raises(ParameterError, match="universe"):
            mechanism.sets(profile((3, 1, 0), "open"))
        return
    for scores in SCORES:
        expected = enumerated(scores, mechanism.cascade(4), Fraction(7, 10), 1, is_open=False)
        [law] = mechanism.sets(profile(scores, "closed")).values()
        found = stated(law, scores, is_open=False)
        assert found.pop(frozenset()) == expected.pop(frozenset()) == 0
        assert found == pytest.approx(expected, rel=1e-9)


@every_cascade
@both_universes
def test_averages_are_those_of_the_whole_law(stages, universe):
    """`law` and `expect` go by cells, `sets` does not."""
    mechanism = made(stages)
    for scores in SCORES:
        here = profile(scores, universe)
        [whole] = mechanism.sets(here).values()
        law = mechanism.law(here)
        for place, (_, number, average) in enumerate(law.blocks):
            expected = sum(key[place] * chance for key, chance in whole.chances.items())
            assert average == pytest.approx(expected if number else 0.0, rel=1e-9, abs=1e-300)
        assert law.none == pytest.approx(
            sum(chance for key, chance in whole.chances.items() if not any(key)), rel=1e-9
        )
        size, hits = mechanism.expect(here, 2)
        assert size == pytest.approx(whole.size(), rel=1e-9, abs=1e-300)
        best = sum(score >= sorted(scores)[-2] for score, _ in whole.blocks)
        top = sum(sum(key[:best]) * chance for key, chance in whole.chances.items())
        assert hits == pytest.approx(min(2.0, top), rel=1e-9, abs=1e-300)
        lengths = mechanism.lengths(here, 2)
        for length in range(mechanism.k + 1):
            kept = {key: chance for key, chance in whole.chances.items() if sum(key) == length}
            released, among = lengths.get(length, (0.0, 0.0))
            assert released == pytest.approx(sum(kept.values()), rel=1e-9, abs=1e-300)
            assert among == pytest.approx(
                sum(sum(key[:best]) * chance for key, chance in kept.items()), rel=1e-9, abs=1e-300
            )


def test_averages_are_those_of_the_whole_law_with_many_levels():
    mechanism = SetMargin(epsilon="0.3", delta="0.01", k=3)
    here = Profile([(60 - 2 * depth, 1 + depth % 2) for depth in range(12)])
    [whole] = mechanism.sets(here).values()
    for place, (_, _, average) in enumerate(mechanism.law(here).blocks):
        expected = sum(key[place] * chance for key, chance in whole.chances.items())
        assert average == pytest.approx(expected, rel=1e-9)


def test_the_two_forms_of_the_bound_are_one():
    """Σ_{h<k} C(k̄−h−1, k−h)·e^(−b·q_(h+1)) is Σ_{p<k} C(k̄−p, k−p)·D_p − e^(−b·q_(k)), with p over
    the ends of levels alone.
    """
    for counts, size in product([(1, 1, 1, 1, 1), (2, 1, 3), (1, 4), (3, 3), (6,)], (1, 2, 3)):
        levels = [(3 * place, count) for place, count in enumerate(counts)]
        depths = [depth for depth, count in levels for _ in range(count)]
        width, rate = len(depths), 0.3
        first = depths[size]  # what `Cells` counts from: the best outside of the best set
        heavy = [math.exp(rate * (depth - first)) for depth in depths]
        expected = sum(comb(width - h - 1, size - h) * heavy[h] for h in range(size))
        with precision(START):
            found = Cells(levels, size, Fraction(1, 2), Fraction(3, 10)).last()
        assert float(found.mid()) - heavy[size - 1] == pytest.approx(expected)


# Audits, of the enumeration and of what the mechanism tells


@pytest.mark.slow
@every_cascade
@both
@both_universes
def test_an_auditor_of_its_own_finds_the_cost_kept(stages, neighbors, universe):
    """`brute_force.py`, on laws that were enumerated and on those that the mechanism tells."""
    mechanism = made(stages, "0.05", neighbors)
    setting = brute_force.Setting(universe, neighbors, highest=3)

    def by_enumeration(scores):
        return brute_force.chances(enumerate_for(mechanism, scores, universe), 1e-12)

    def by_mechanism(scores):
        [law] = mechanism.sets(profile(scores, universe)).values()
        return brute_force.chances(stated(law, scores, is_open=universe == "open"), law.error)

    found = [
        brute_force.audit(law, setting, mechanism.epsilon) for law in (by_enumeration, by_mechanism)
    ]
    assert not any(one.breaks(mechanism.privacy()) for one in found)
    assert float(found[0].delta) == pytest.approx(float(found[1].delta), abs=1e-9)
    if universe == "open":
        assert found[0].delta > 0.1 * mechanism.delta  # not by staying silent
        assert found[0].breaks(Privacy(1, found[0].delta / 2))


@pytest.mark.slow
@pytest.mark.parametrize("stages", [SAME, LONG], ids=["same", "long"])
@both
@both_universes
@pytest.mark.parametrize("delta", ["1e-4", "1e-6"])
def test_the_cost_is_kept_at_small_deltas_and_large_gaps(stages, neighbors, universe, delta):
    mechanism = made(stages, delta, neighbors)
    assert privmax.audit(mechanism, universe=universe, scores=gaps(neighbors)).holds


@pytest.mark.slow
@both
@pytest.mark.parametrize("epsilon", ["0.1", 1])
@pytest.mark.parametrize("k", [1, 3])
def test_the_default_keeps_its_cost(neighbors, epsilon, k):
    mechanism = SetMargin(epsilon=epsilon, delta="1e-4", k=k, neighbors=neighbors)
    for universe in ("open", "closed"):
        found = privmax.audit(mechanism, universe=universe, scores=gaps(neighbors)[::2])
        assert found.holds
        assert found.tightness > 0 or universe == "closed"


@pytest.mark.slow
@both
def test_scores_on_a_grid_of_several_steps_to_a_record_keep_the_cost(neighbors):
    for stages in (ONE, TEST_FIRST):
        mechanism = made(stages, "1e-4", neighbors)
        rows = [(12, 12, 1), (13, 9, 3), (20, 17, 0), (5, 5, 5), (25, 24, 2)]
        assert privmax.audit(mechanism, universe="open", scores=rows, sensitivity=2).holds


def test_a_grid_and_its_multiple_have_one_law():
    """Scores in steps of 0.25 with a sensitivity of 0.5, the room for rounding included, are those
    in records of two steps.
    """
    mechanism = made(SOFT)
    fine = {"a": 3.25, "b": 2.0, "c": 0.25}
    named = privmax.law(
        fine,
        mechanism=mechanism,
        universe=list("abcd"),
        scores=privmax.Scores(sensitivity="64/129", resolution="0.25"),
    )
    steps = mechanism.law(Profile([(13, 1), (8, 1), (1, 1)], universe=4, sensitivity=2))
    assert named["a"] == steps.of(13)
    assert named["b"] == steps.of(8)
    coarse = mechanism.law(Profile([(26, 1), (16, 1), (2, 1)], universe=4, sensitivity=4))
    assert [row[2] for row in coarse.blocks] == pytest.approx([row[2] for row in steps.blocks])


# Mutants


def with_turn(turn):
    """The mechanism with another stage of a cascade, which may look a little deeper."""

    class Broken(SetMargin):
        def _window(self, profile, rank=1):
            return super()._window(profile, 9)

        def _turns(self, profile, window):
            for one in super()._turns(profile, window):
                yield turn(*(getattr(one, field.name) for field in fields(one)))

    Broken.__name__ = turn.__name__
    return Broken


def ends(turn):
    """Depths of the last of the best set, the best outside, and the first below the top width."""
    ranks = turn.stage.size, turn.stage.size + 1, turn.width + 1
    return [turn.window.depth(rank) for rank in ranks]


class NoSum(_StageTurn):
    """A guard for the best set alone."""

    def _guard(self):
        inside, outside = self.rates
        last, after, beyond = ends(self)
        best = ball(outside * (self.unit - (after - last))).exp()
        below = ball(inside * (self.unit - (beyond - last))).exp()
        return ball(self.stage.silence / self.delta) * below * best


class NoBest(_StageTurn):
    """A guard for all sets but the best one."""

    def _guard(self):
        inside, outside = self.rates
        last, after, beyond = ends(self)
        others = self.cells.last() - (-ball(outside * (after - last))).exp()
        below = ball(inside * (self.unit - (beyond - last))).exp()
        return ball(self.stage.silence / self.delta) * below * others


class NoStep(_StageTurn):
    """Forgets that whoever slips may have stood c above the rank below."""

    def _guard(self):
        return super()._guard() * (-ball(self.rates[0] * self.unit)).exp()


class NextRank(_StageTurn):
    """Takes the score after the one below the top width."""

    def _guard(self):
        beyond, further = (self.window.depth(self.width + step) for step in (1, 2))
        return super()._guard() * (-ball(self.rates[0] * (further - beyond))).exp()


class SilenceTwice(_StageTurn):
    """Multiplies by x once too often."""

    def _guard(self):
        return super()._guard() * ball(self.stage.silence)


class TwoRates(_StageTurn):
    """Gives all of epsilon to the worst member, and all of it again to the best outside."""

    @property
    def rates(self):
        return self.epsilon / self.unit, self.epsilon / self.unit


class WholeLevel(_StageTurn):
    """Lets everybody take part who is tied with the last: the wrong side of a tie."""

    @property
    def levels(self):
        cut = self.window.first(self.stage.width)
        blocks = self.window.blocks()[: len(cut)]
        return [
            (depth, number if everybody is None else everybody)
            for (depth, everybody), (_, number) in zip(blocks, cut, strict=True)
        ]

    @property
    def width(self):
        return sum(number for _, number in self.levels)


class HardTest(_StageTurn):
    """The gap test as it is, which goes silent too fast to be followed by anything."""

    def chances(self):
        if not self.is_test or self.is_certain:
            return super().chances()
        last, after, _ = ends(self)
        steps = -(-(after - last) // self.unit)
        chance = GapTest(epsilon=self.epsilon, delta=self.delta).chance(steps)
        return 1 - chance, chance


class TiedTest(_StageTurn):
    """One step too many where the gap is a multiple of c: the wrong side of a tie."""

    def chances(self):
        if not self.is_test or self.is_certain:
            return super().chances()
        last, after, _ = ends(self)
        steps = (after - last) // self.unit + 1 if after > last else 0
        return soft_chances(steps, self.epsilon, self.delta, self.stage.silence)


class SharedEpsilon(SetMargin):
    """Every stage has all of epsilon."""

    def _turns(self, profile, window):
        for turn in super()._turns(profile, window):
            yield replace(turn, epsilon=self.epsilon)


class SharedDelta(SetMargin):
    """Every stage has all of delta."""

    def _turns(self, profile, window):
        for turn in super()._turns(profile, window):
            yield replace(turn, delta=self.delta)


class NoDummies(SetMargin):
    """Takes those who were seen for all there are."""

    def _turns(self, profile, window):
        for turn in super()._turns(profile, window):
            seen = max(sum(window.counts), turn.stage.size)
            yield replace(turn, universe=seen if profile.universe is None else turn.universe)


MUTANTS = [
    (with_turn(NoSum), ONE),
    (with_turn(NoSum), SOFT),
    (with_turn(NoBest), ONE),
    (with_turn(NoStep), ONE),
    (with_turn(NextRank), ONE),
    (with_turn(SilenceTwice), SOFT),
    (with_turn(TwoRates), ONE),
    (with_turn(TwoRates), SOFT),
    (with_turn(WholeLevel), SOFT),
    (with_turn(HardTest), TEST_FIRST),
    (with_turn(TiedTest), TEST_FIRST),
    (SharedEpsilon, SAME),
    (SharedEpsilon, TEST_FIRST),
    (SharedDelta, SOFT),
    (NoDummies, ONE),
    (NoDummies, SOFT),
]


@cache
def holds(stages, neighbors):
    honest = made(stages, "1e-4", neighbors)
    return privmax.audit(honest, universe="open", scores=gaps(neighbors)).holds


def refused(mechanism, scores, **options):
    found = privmax.audit(mechanism, universe="open", scores=scores, **options)
    return not found.holds and found.delta > 1.02 * float(mechanism.delta) + found.error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "stages"),
    [pytest.param(*one, id=f"{one[0].__name__}-{len(one[1])}") for one in MUTANTS],
)
@both
def test_mutants(mutant, stages, neighbors):
    assert holds(stages, neighbors)
    assert refused(made(stages, "1e-4", neighbors, mutant), gaps(neighbors))


@pytest.mark.slow
def test_stages_that_share_epsilon_pass_wcounteddelta_is_large_and_gaps_are_small():
    """Why audits of cascades need small deltas and large gaps."""
    small = {"universe": "open", "candidates": 4, "highest": 3}
    assert privmax.audit(made(SAME, "0.05", make=SharedEpsilon), **small).holds
    assert refused(made(SAME, "1e-4", make=SharedEpsilon), gaps(ADD_REMOVE))


@pytest.mark.slow
def test_a_guard_that_is_not_multiplied_by_x_is_only_wasteful():
    """g = B/δ in place of (x/δ)·B costs x·δ: no audit can refuse it, nor need it."""

    class NoSilence(_StageTurn):
        def _guard(self):
            return super()._guard() / ball(self.stage.silence)

    wasteful, usual = made(SOFT, "1e-4", make=with_turn(NoSilence)), made(SOFT, "1e-4")
    options = {"universe": "open", "scores": gaps(ADD_REMOVE)}
    assert privmax.audit(wasteful, **options).delta < privmax.audit(usual, **options).delta
    here = Profile([(9, 2)])
    assert wasteful.expect(here, 2)[1] < usual.expect(here, 2)[1]


# The soft gap test


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "5", "40"])
@pytest.mark.parametrize("delta", ["1e-30", "1e-6", "0.01", "0.5"])
@pytest.mark.parametrize("silence", ["0.03", "0.25", "1"])
def test_the_soft_test_is_its_recursion(epsilon, delta, silence):
    rate, least, part = Fraction(epsilon), Fraction(delta), Fraction(silence)
    with precision(400):
        grow, fall = ball(rate).exp(), (-ball(part * rate)).exp()
        chance = arb(0)
        for steps in range(400):
            nothing, answer = soft_chances(steps, rate, least, part)
            for gap in (nothing - (1 - chance), answer - chance):
                assert gap.contains(0)
                assert gap.rad() < 1e-80
            chance = (grow * chance + ball(least)).min(1 - fall * (1 - chance))


def test_the_soft_test_takes_the_smaller_term_wcountedthe_two_are_almost_equal():
    """1 − e^(−x·ε) lies 2^−200 beside δ: a decision in few bits would take the larger."""
    with precision(1000):
        least = -(-ball(Fraction(1, 4))).expm1() * arb(2) ** 260
        nearest = int(least.floor().unique_fmpz())
    for delta in (Fraction(nearest, 1 << 260), Fraction(nearest + 1, 1 << 260)):
        with precision(1000):
            _, answer = soft_chances(1, Fraction(1), delta, Fraction(1, 4))
            smaller = ball(delta).min(-(-ball(Fraction(1, 4))).expm1())
            assert abs(answer - smaller) < arb(2) ** -900


# The draw


def drawn(mechanism, here):
    return lambda coins: frozenset(
        (outcome.score, outcome.index) for outcome in mechanism.subset(here, coins)
    )


@pytest.mark.slow
def test_a_level_that_is_cut_is_drawn_from_whole():
    """Three of four tied take part; each pair of the four is as likely."""
    mechanism = SetMargin(epsilon="0.01", delta="0.9", k=2, stages=(Stage(2, 3, silence=1),))
    finished, left = walk(drawn(mechanism, Profile([(90, 4)], universe=6)), 15)
    assert left < 0.03
    sets = {key: chance for key, chance in finished.items() if key}
    assert len(sets) == 6
    assert max(sets.values()) - min(sets.values()) <= left


def test_dummies_are_left_out_of_what_is_released():
    mechanism = SetMargin(epsilon=2, delta="0.9", k=2, stages=(Stage(2, 3, silence=1),))
    finished, _ = walk(drawn(mechanism, Profile([(2, 1)])), 14)
    assert finished.keys() == {frozenset(), frozenset({(2, 0)})}


def test_subsets_are_uniform():
    finished, left = walk(lambda coins: frozenset(uniform_subset(5, 2, coins)), 14)
    assert left < 0.05
    assert len(finished) == 10
    assert max(finished.values()) - min(finished.values()) <= left
    assert walk(lambda coins: frozenset(uniform_subset(4, 4, coins)), 14)[0].keys() == {
        frozenset(range(4))
    }
    assert uniform_subset(9, 0, SYSTEM) == []


def test_a_universe_of_k_is_released_whole_without_a_coin():
    for delta in (0, "1e-6"):
        mechanism = SetMargin(epsilon=1, delta=delta, k=3)
        here = Profile([(5, 1), (-2, 1)], universe=3)
        assert walk(drawn(mechanism, here), 0) == ({frozenset({(5, 0), (0, 0), (-2, 0)}): 1}, 0)


# The first look, in floats


def crowd(levels, step=3, top=10**5):
    """Many levels, some of them tied."""
    return Profile([(top - step * place, 1 + place % 3) for place in range(levels)])


def turns(mechanism, here):
    return [
        turn
        for turn in mechanism._turns(here, mechanism._window(here))
        if not turn.is_test and not turn.is_certain
    ]


LOOKS = [
    (SetMargin(epsilon="0.5", delta="1e-6", k=30), crowd(150)),
    (SetMargin(epsilon=2, delta="1e-6", k=60, neighbors=REPLACE), crowd(200, step=1)),
    (SetMargin(epsilon="0.01", delta="1e-6", k=40), crowd(300, step=2)),
    (
        SetMargin(epsilon=1, delta="1e-6", k=20, stages=(Stage(20, 10**6, silence=1),)),
        Profile([(900 - place, 1 + max(0, 50 * (place - 30))) for place in range(200)]),
    ),
    (
        SetMargin(epsilon=1, delta="1e-6", k=30, stages=(Stage(30, 200, silence=1),)),
        Profile([(10**12 - place * 10**9, 1) for place in range(400)]),
    ),
    (SetMargin(epsilon=1, k=10), Profile([(5000 - p, 1) for p in range(600)], universe=10**12)),
]
every_look = pytest.mark.parametrize(("mechanism", "here"), LOOKS, ids=range(len(LOOKS)))


@every_look
def test_floats_are_within_their_bound_of_balls(mechanism, here, monkeypatch):
    monkeypatch.setattr(cells, "MANY", 1024)
    looked = 0
    for turn in turns(mechanism, here) or mechanism._turns(here, mechanism._window(here)):
        if turn.is_test or not turn.cells.has_look:
            continue
        looked += 1
        counted, error = turn.cells, turn.cells._look.error
        with precision(START):
            total = counted.total()
        with precision(400):
            assert total.overlaps(counted.total())
            rows = counted._rows()
            assert_near(counted._look.rows, rows, error)
            for place in range(0, len(rows), 1 + len(rows) // 6):
                assert_near(_shares(counted._log_row(place)), counted._row(place), error)
        if looked == 2:  # the other stages are alike, and balls take long
            break
    assert looked


def assert_near(floats, balls, error):
    """Shares by floats are as near to those by balls as `_draw_place` takes them to be, and half of
    them are far nearer.
    """
    assert error < 1e-3
    most = max(balls, key=arb.mid)
    beside = [
        one / most for one in balls
    ]  # what is left out weighs less than 1e-28 beside the most
    total, sum_of_floats = sum(beside, start=arb(0)), floats.sum()
    off = []
    for rough, truth in zip(floats.tolist(), beside, strict=True):
        gap = abs(arb(rough) / sum_of_floats - truth / total)
        assert gap <= 4 * error * truth / total + arb(1e-28)
        if rough > 1e-200:  # not left out
            off.append(float((gap * total / truth).mid()))
    assert np.median(off) < error


@pytest.mark.slow
@every_look
def test_a_first_look_draws_what_balls_draw(mechanism, here, monkeypatch):
    found = []
    for many in (0, 10**12):
        monkeypatch.setattr(cells, "MANY", many)
        found.append([sorted(drawn(mechanism, here)(SeededCoins(seed))) for seed in range(3)])
    assert found[0] == found[1]


@pytest.mark.slow
@every_look
def test_a_first_look_has_the_law_of_balls(mechanism, here, monkeypatch):
    found = []
    for many in (0, 10**12):
        monkeypatch.setattr(cells, "MANY", many)
        found.append(mechanism.law(here))
    rough, fine = found
    assert rough.error > fine.error
    for left, right in zip(rough.blocks, fine.blocks, strict=True):
        assert left[2] == pytest.approx(right[2], rel=rough.relative, abs=1e-280)


def test_a_wrong_float_is_found(monkeypatch):
    """The bound is no wider than needed to miss a mistake in the ninth digit."""
    mechanism, here = LOOKS[0]
    honest = Cells._log_cells
    monkeypatch.setattr(Cells, "_log_cells", lambda *given: honest(*given) * (1 + 1e-9))
    with pytest.raises(AssertionError):
        test_floats_are_within_their_bound_of_balls(mechanism, here, monkeypatch)


def test_logarithms_of_binomials_are_within_their_bound():
    rng = np.random.default_rng(5)
    numbers = np.unique(np.floor(2 ** rng.uniform(0, 40, 4000)))
    few = np.floor(np.minimum(rng.uniform(0, 0.5, len(numbers)) ** 4 * numbers, 10**5))
    with precision(200):
        for number, size, log in zip(
            numbers.tolist(), few.tolist(), cells._log_choices(numbers, few).tolist(), strict=True
        ):
            exact = cells.choices(int(number), int(size)).log()
            largest = max(8.0 * cells.FEW, size * math.log(number))
            assert abs(exact - arb(log)) < 2.0**-47 * largest


# Leads


LEADS = {
    # k = 1, 10, 20, 100
    ADD_REMOVE: {1: 24, 10: 25, 20: 55, 100: 297},
    REPLACE: {1: 47, 10: 49, 20: 109, 100: 593},
}


@both
@pytest.mark.parametrize("k", [1, 10, 20, 100])
def test_leads_of_the_default_are_small_wcountedk_is(k, neighbors):
    mechanism = SetMargin(epsilon=1, delta="1e-6", neighbors=neighbors, k=k)
    assert mechanism.lead(candidates=None, near=k) == LEADS[neighbors][k]


@pytest.mark.parametrize(("k", "expected"), [(10, 126), (100, 1021), (1000, 7906)])
def test_leads_without_delta(k, expected):
    assert SetMargin(epsilon=1, k=k).lead(candidates=10**6) == expected


def test_a_lead_is_the_smallest_that_succeeds():
    mechanism = SetMargin(epsilon=1, delta="1e-6", k=7)
    lead = mechanism.lead(candidates=None)
    for score, enough in ((lead - 1, False), (lead, True)):
        chances = mechanism.sets(Profile([(score, 7)]))[None].chances
        assert (chances[7, 0] >= 0.95) is enough


def test_stages_add_up():
    for k, epsilon in product((1, 2, 7, 100, 10**4), (Fraction(1, 10), Fraction(1), Fraction(3))):
        stages = default_stages(k, epsilon)
        assert sum(stage.part for stage in stages) == 1
        assert stages[-1].silence == 1
        assert stages[-1].size == 1
        budgets = SetMargin(epsilon=epsilon, delta="1e-6", k=k).budgets(None)
        spent = 0
        for stage, left in budgets:
            assert spent + left == epsilon
            spent += stage.silence * left
        assert spent == epsilon


# Sizes


@pytest.mark.slow
def test_ten_thousand_of_a_million_do_not_overflow():
    levels = {}
    for rank in range(1, 1_100_000, 7):
        score = 10**12 // (rank + 300)
        levels[score] = levels.get(score, 0) + 7
    few = sorted(levels.items(), reverse=True)
    thin = [level for place, level in enumerate(few) if place < 1500 or not place % 100]
    rest = 1_100_000 - sum(count for _, count in thin)
    here = Profile([*thin, (thin[-1][0] - 1, rest)])
    mechanism = SetMargin(
        epsilon=1, delta="1e-6", k=10**4, stages=(Stage(10**4, 10**6, silence=1),)
    )
    assert len(mechanism.subset(here, SYSTEM)) in (0, 10**4)
    size, hits = mechanism.expect(here, 10**4)
    assert 0 <= hits <= size + 1e-6
    assert size <= 10**4 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("digits", [12, 20, 300, 600])
def test_scores_of_any_size(digits):
    top = 10**digits
    mechanism = SetMargin(epsilon=1, delta="1e-6", k=10)
    here = Profile([(top - place * (top // 10**4), 1) for place in range(130)])
    assert len(mechanism.subset(here, SYSTEM)) == 10
    assert mechanism.expect(here, 10) == pytest.approx((10, 10))
    assert mechanism.law(here).none < 1e-9


@pytest.mark.parametrize("universe", [10**12, 2**70, 2**900], ids=["10^12", "2^70", "2^900"])
def test_universes_of_any_size(universe):
    here = Profile([(10**6 * (301 - p), 1) for p in range(300)], universe=universe)
    for mechanism in (SetMargin(epsilon=1, k=10), SetMargin(epsilon=1, delta="1e-6", k=10)):
        assert len(mechanism.subset(here, SYSTEM)) == 10
        assert mechanism.expect(here, 10)[0] == pytest.approx(10)


def test_huge_and_tiny_costs():
    for epsilon, delta in (("1e-9", "1e-300"), ("1e9", "1e-6"), ("1e-6", "0.5")):
        mechanism = SetMargin(epsilon=epsilon, delta=delta, k=3)
        assert len(mechanism.subset(Profile([(10**60, 3)]), SYSTEM)) == 3
        assert mechanism.subset(Profile([]), SYSTEM) == []


# Arguments


def test_price_and_bad_arguments():
    assert SetMargin(epsilon="0.7", delta="1e-6", k=3).privacy() == Privacy("0.7", "1e-6")
    for name, value in (("epsilon", 0), ("delta", 1), ("neighbors", "friends"), ("k", 0)):
        with pytest.raises(ParameterError, match=f"^{name}="):
            SetMargin(**{"epsilon": 1, "delta": "1e-6", "k": 2} | {name: value})
    with pytest.raises(ParameterError, match="k"):
        SetMargin(epsilon=1, delta="1e-6", k=2).draw(Profile([(5, 1)]), SYSTEM)
    with pytest.raises(ParameterError, match="k"):
        SetMargin(epsilon=1, delta="1e-6", k=9).subset(Profile([(5, 1)], universe=3), SYSTEM)


@pytest.mark.parametrize(
    "stages",
    [
        (),
        ("a stage",),
        (Stage(3, 4, silence=1),),
        (Stage(2, 4, silence="0.5"),),
        (Stage(2, 4, silence=1, part="0.5"), Stage(2, 4, silence=1, part="0.5")),
        (Stage(2, 4, silence="0.5", part="0.6"), Stage(2, 4, silence=1, part="0.6")),
    ],
)
def test_what_is_no_cascade_is_refused(stages):
    with pytest.raises(ParameterError, match=r"^stages="):
        SetMargin(epsilon=1, delta="1e-6", k=2, stages=stages)


@pytest.mark.parametrize(
    ("name", "value"), [("width", 1), ("silence", 2), ("silence", 0), ("tilt", 1), ("part", 2)]
)
def test_what_is_no_stage_is_refused(name, value):
    with pytest.raises(ParameterError, match=f"^{name}="):
        Stage(**{"size": 2, "width": 3, "silence": 1} | {name: value})


def test_nothing_private_is_shown():
    [law] = made(ONE).sets(Profile([(123, 2)])).values()
    assert "123" not in repr(law)


@pytest.mark.parametrize("epsilon", ["1e3", "1e6", "1e9"])
def test_the_largest_epsilons_have_an_answer(epsilon):
    mechanism = SetMargin(epsilon=epsilon, delta="1e-30", k=2)
    drawn = mechanism.subset(Profile([(9, 1), (8, 1), (7, 1)]), SYSTEM)
    assert sorted(outcome.score for outcome in drawn) == [8, 9]  # anything else is next to never
    nothing, best = soft_chances(1, Fraction(epsilon), Fraction(1, 1000), Fraction(1, 4))
    assert best.overlaps(arb(1) / 1000)
    assert nothing.overlaps(arb(999) / 1000)


def test_more_than_can_be_drawn_at_once_is_refused_before_anything_is_read():
    SetMargin(epsilon=1, delta=1e-6, k=10**6)
    for k in 10**6 + 1, 10**30:
        with pytest.raises(ParameterError, match="k="):
            SetMargin(epsilon=1, delta=1e-6, k=k)
