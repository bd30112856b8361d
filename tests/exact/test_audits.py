"""Mistakes in the first four mechanisms that the audit refuses, and audits beyond the contract."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from flint import arb

import privmax
from privmax import (
    Exponential,
    Guards,
    LargeMargin,
    NoisyMaximum,
    PermuteAndFlip,
    Privacy,
    SharpMargin,
)
from privmax.auditing import divergence
from privmax.mechanisms.above_threshold import AboveThreshold
from privmax.mechanisms.contract import Joint, law_of
from privmax.mechanisms.weights import decay
from privmax.noise.balls import ball
from privmax.privacy import ADD_REMOVE, REPLACE, drift
from privmax.profile import Profile
from privmax.testing import SeededCoins

TWO = Guards((1, 2), (1, 1), share="0.2")
TWO_AND_FULL = Guards((1, 2), (1, 1), share="0.2", full=1)
ONE = Guards((3,), (1,), share="0.01")

CLOSED = [
    Exponential(epsilon=1),
    Exponential(epsilon="0.3", neighbors=REPLACE),
    PermuteAndFlip(epsilon=1),
    PermuteAndFlip(epsilon="0.3", neighbors=REPLACE),
    SharpMargin(epsilon=1, delta="0.1", guards=TWO_AND_FULL),
    SharpMargin(epsilon=1, delta="0.1", guards=TWO_AND_FULL, neighbors=REPLACE),
]
OPEN = [
    SharpMargin(epsilon=1, delta="0.1", guards=TWO),
    SharpMargin(epsilon=1, delta="0.1", guards=TWO, neighbors=REPLACE),
    SharpMargin(epsilon=1, delta="0.01", guards=ONE, growth=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [*CLOSED, *OPEN], ids=repr)
def test_random_profiles_stay_within_the_price(mechanism):
    where = "open" if mechanism in OPEN else "closed"
    assert privmax.audit(
        mechanism, universe=where, candidates=4, highest=30, trials=15, coins=SeededCoins(1)
    ).holds


@pytest.mark.slow
def test_the_paper_at_its_threshold_stays_within_the_price():
    mechanism = LargeMargin(epsilon=1, delta="1e-6", cap=5)
    threshold = mechanism.threshold(1)
    starts = [(threshold + shift, 0, 0, 0) for shift in (-20, 0, 20)]
    assert privmax.audit(mechanism, universe="open", scores=starts).holds


def test_sharp_margin_with_one_rank_is_tight():
    nearly_all = Guards((1,), (1,), share="0.0001")
    found = privmax.audit(SharpMargin(epsilon=1, delta="1e-6", guards=nearly_all), universe="open")
    assert 0.99 < found.tightness <= 1


def test_noisy_maximum_is_exactly_as_private_as_it_says():
    mechanism = NoisyMaximum(epsilon=1)
    here, there = (mechanism.law(Profile([(score, 1)])) for score in (10, 11))
    assert divergence(here, there, 1) < 1e-12
    assert divergence(here, there, "0.99") > 1e-3


def worst_search(mechanism, start):
    """The largest hockey-stick at ε = 1 over all moves of the queries by one."""

    def law(queries):
        stops, never = mechanism.law([(1, query) for query in queries])
        return {**dict(enumerate(stops)), None: never}

    here, worst = law(start), 0.0
    for move in product((-1, 0, 1), repeat=len(start)):
        there = law([query + step for query, step in zip(start, move, strict=True)])
        worst = max(worst, divergence(here, there, 1), divergence(there, here, 1))
    return worst


@pytest.mark.parametrize("start", [(3, -2, 4), (0, 0, 0, 0, 0), (-9, -9, 20)])
def test_above_threshold_stays_within_its_price_whichever_way_each_query_moves(start):
    assert worst_search(AboveThreshold(epsilon=1), start) < 1e-12


class _NoSharedNoise(AboveThreshold):
    """Leaves the threshold itself without noise: every query that fails costs again."""

    def shared_scale(self) -> Fraction:
        return Fraction(1, 1000)


class _UnscaledQueries(AboveThreshold):
    """Gives the queries the noise of a single one."""

    def query_scale(self) -> Fraction:
        return self.sensitivity / self.epsilon / 2


@pytest.mark.parametrize("mutant", [_NoSharedNoise, _UnscaledQueries])
def test_mutant_above_threshold_with_too_little_noise(mutant):
    assert worst_search(mutant(epsilon=1), (0, 0, 0, 0, 0)) > 0.01


# Mutants: each is the mechanism with one classic mistake, and the audit must refuse it.


def refused(mechanism, **options):
    """The audit found a pair that needs clearly more than the claim."""
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


def test_mutant_doubled_epsilon():
    assert refused(Exponential(epsilon=2), claim=Privacy(1))


def test_mutant_halved_noise():
    class HalvedNoise(PermuteAndFlip):
        def privacy(self):
            return Privacy(self.epsilon / 2)

    assert refused(HalvedNoise(epsilon=1))


def test_mutant_guard_without_the_logarithm_of_the_rank():
    class NoLogarithm(SharpMargin):
        def _slips(self, rank):
            return 1

    honest = SharpMargin(epsilon=1, delta="0.001", guards=ONE)
    mutant = NoLogarithm(epsilon=1, delta="0.001", guards=ONE)
    options = {"universe": "open", "scores": [(1, 1, 1), (2, 2, 2)]}
    assert privmax.audit(honest, **options).holds
    assert refused(mutant, **options)


def test_mutant_guard_one_rank_too_deep():
    class OneRankTooDeep(SharpMargin):
        def _weights(self, window, top, rank, profile):
            return super()._weights(_Deeper(window), top, rank, profile)

    class _Deeper:
        def __init__(self, window):
            self._window = window

        def __getattr__(self, name):
            return getattr(self._window, name)

        def depth(self, rank):
            return self._window.depth(rank + 1)

    assert refused(
        OneRankTooDeep(epsilon=1, delta="0.001", guards=TWO), universe="open", candidates=4
    )


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_mutant_guard_that_takes_slipping_items_to_be_strictly_below_it(neighbors):
    """q_i < q_(ℓ+1) + c in place of ≤: the guard stands one record lower."""

    class StrictSlip(SharpMargin):
        def _weights(self, window, top, rank, profile) -> list[arb]:
            *blocks, guard = super()._weights(window, top, rank, profile)
            return [*blocks, guard * (-ball(self.draw_epsilon() / drift(self.neighbors))).exp()]

    only_the_best = Guards((1,), (1,), share="0.01")
    mutant = StrictSlip(epsilon=1, delta="0.001", guards=only_the_best, neighbors=neighbors)
    options = {"universe": "open", "scores": [(1, 0, 0), (2, 0, 0, 0, 0, 0)]}
    assert privmax.audit(
        SharpMargin(epsilon=1, delta="0.001", guards=only_the_best, neighbors=neighbors), **options
    ).holds
    assert refused(mutant, **options)


class _Narrow(SharpMargin):
    """Clips only two records below the top, where a moving floor can be felt. Any public width is
    private.
    """

    def _clip(self, profile: Profile) -> int:
        return 2


class _NoFloorTerm(_Narrow):
    """Lets the guard use the growth bound alone, though a rising floor makes everybody just above
    it slip.
    """

    def _weights(self, window, top, rank, profile) -> list[arb]:
        *blocks, guard = super()._weights(window, top, rank, profile)
        rate = self.draw_epsilon() / profile.sensitivity
        moving = ball(rank / self.delta) * decay(rate, 2) * ball(self.draw_epsilon()).exp()
        return [*blocks, guard - moving]


def test_mutant_growth_bound_together_with_a_moving_floor():
    options = {"universe": "open", "scores": [(9, 8, 8, 8, 8, 8)]}
    guards = Guards((6,), (1,), share="0.01")
    assert privmax.audit(_Narrow(epsilon=1, delta="0.01", guards=guards, growth=1), **options).holds
    assert refused(_NoFloorTerm(epsilon=1, delta="0.01", guards=guards, growth=1), **options)


class _ObservedUniverse(Exponential):
    """Takes the universe to be whichever labels have data."""

    def joint(self, profile: Profile) -> Joint:
        seen = profile.window(1 << 30).counts
        return (
            {None: self.law(Profile(profile._levels.histogram(-1), universe=sum(seen)))}
            if seen
            else {None: law_of(profile.window(1), [0.0], 1.0)}
        )


def test_mutant_universe_taken_from_the_observed_labels():
    assert refused(_ObservedUniverse(epsilon=1), universe="open", scores=[(5, 4, 0), (1, 0, 0)])


class _EarlyBottom(LargeMargin):
    """Gives up as soon as the search passes the last observed candidate, as the paper's corollary
    suggests.
    """

    def joint(self, profile: Profile) -> Joint:
        window = self._window(profile)
        seen = sum(window.counts)
        none = law_of(window, [0.0] * len(window.blocks()), 1.0)
        table = {}
        for (estimate, near), law in super().joint(profile).items():
            if near <= seen:
                table[estimate, near] = law
            else:
                mass = sum(chance for _, _, chance in law.blocks) + law.none
                before = table.get((estimate, None))
                table[estimate, None] = none.scale(mass + (before.none if before else 0.0))
        return table


@pytest.mark.slow
def test_mutant_no_answer_when_the_search_passes_the_last_observed_candidate():
    """ALGORITHMS §1.7: the pair is one candidate alone, and the same with many others newly seen
    once.
    """
    honest = LargeMargin(epsilon=1, delta="1e-6", cap=10)
    mutant = _EarlyBottom(epsilon=1, delta="1e-6", cap=10)
    alone = (honest.threshold(1) + 10, *[0] * 2)
    crowd = (alone[0], *[1] * 2)
    pair = {"universe": "open", "scores": [alone], "neighbors": ADD_REMOVE}
    found = privmax.audit(mutant, **pair)
    assert found.delta > 0.01
    assert set(found.pair) == {alone, crowd}
    assert privmax.audit(honest, **pair).holds


def test_an_audit_of_nothing_is_refused():
    with pytest.raises(privmax.ParameterError, match="at least one data set"):
        privmax.audit(Exponential(epsilon=1), scores=[])
