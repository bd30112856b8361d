"""The choosing mechanism: audits for small and large prices and growths, mutants, walks, its law by
hand, its lead.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import privmax
from privmax import Choosing, ParameterError, Privacy, Profile
from privmax.mechanisms.choosing import _positive
from privmax.noise.coins import SYSTEM


def tail(epsilon, least, reach=4000):
    """P(Z ≥ least) for discrete Laplace noise of scale 1/ε, added up."""
    unit = math.tanh(epsilon / 2)
    return math.fsum(unit * math.exp(-abs(k) * epsilon) for k in range(least, reach))


def around(mechanism, size=4, sensitivity=1):
    """Data sets whose best count stands around the threshold, alone, shared and before others."""
    threshold = mechanism.threshold(sensitivity)
    tops = sorted({max(1, threshold + shift) for shift in (-9, -2, -1, 0, 1, 3, 12)} | {1, 2})
    rows = []
    for top in tops:
        rows += [
            (top, *[0] * (size - 1)),
            (top, top, *[0] * (size - 2)),
            (top, top - 1, 1, *[0] * (size - 3)),
        ]
    return rows


@pytest.mark.parametrize("universe", ["closed", "open"])
@pytest.mark.parametrize("growth", [1, 2])
def test_all_small_counts_stay_within_the_price(universe, growth):
    mechanism = Choosing(epsilon=1, delta="0.3", growth=growth)
    assert privmax.audit(mechanism, universe=universe, candidates=4, highest=4).holds


def test_negative_scores_stay_within_the_price():
    mechanism = Choosing(epsilon=1, delta="0.3", growth=2)
    assert privmax.audit(mechanism, scores=[(0, 0, -1), (-1, -1, -2), (3, 0, -4), (1, -1, 0)]).holds


@pytest.mark.parametrize("sensitivity", [2, 3])
def test_scores_on_a_grid_of_several_steps_to_a_record_stay_within_the_price(sensitivity):
    mechanism = Choosing(epsilon=1, delta="0.05", growth=2)
    scores = around(mechanism, 3, sensitivity)
    assert privmax.audit(mechanism, universe="open", scores=scores, sensitivity=sensitivity).holds


@pytest.mark.parametrize(("delta", "growth"), [("0.001", 2), ("0.1", 1)])
def test_nearly_all_of_delta_is_used_at_a_small_epsilon(delta, growth):
    """No smaller delta is wanted inside the threshold there, and hardly a larger one could be
    used.
    """
    mechanism = Choosing(epsilon="0.05", delta=delta, growth=growth)
    found = privmax.audit(mechanism, universe="open", scores=around(mechanism))
    assert 0.97 < found.tightness <= 1


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_threshold_against_its_formula(epsilon, sensitivity):
    mechanism = Choosing(epsilon=epsilon, delta="0.001", growth=7)
    y = float(epsilon) / 2 / sensitivity
    expected = sensitivity + math.ceil(math.log(7 / (0.001 * (1 + math.exp(-y)))) / y)
    assert mechanism.threshold(sensitivity) == expected


@pytest.mark.parametrize("universe", [None, 6, 100])
def test_law_against_its_formula(universe):
    scores, y = [19, 18, 18, 4, 1, 0], 0.65 / 2
    mechanism = Choosing(epsilon="1.3", delta="0.01", growth=2)
    law = mechanism.law(
        Profile([(19, 1), (18, 2), (4, 1), (1, 1)], universe=universe, sensitivity=2)
    )
    passes = tail(y, mechanism.threshold(2) - 19)
    assert 0.05 < passes < 0.95
    weights = [math.exp(y * score) if score > 0 else 0.0 for score in scores]
    expected = [passes * weight / sum(weights) for weight in weights]
    assert [law.of(score) for score in scores] == pytest.approx(expected, abs=1e-11)
    assert law.none == pytest.approx(1 - passes, abs=1e-11)


# Mutants


class _NoGrowth(Choosing):
    """Sizes the threshold for a single new candidate, whatever the growth."""

    def threshold(self, sensitivity=1):
        return Choosing(epsilon=self.epsilon, delta=self.delta, growth=1).threshold(sensitivity)


class _NoPlusOne(Choosing):
    """Forgets that a new candidate has count 1 and not 0."""

    def threshold(self, sensitivity=1):
        return super().threshold(sensitivity) - sensitivity


class _WholeEpsilonTwice(Choosing):
    """Draws with weights exp(ε·q) and has paid half of ε for the test already."""

    def _weights(self, window, profile):
        return [weight**2 for weight in super()._weights(window, profile)]


class _ObservedOnly(Choosing):
    """Skips the test: draws among whatever has a positive count."""

    def _passes(self, top, sensitivity):
        return 1.0


class _WholeEpsilonOnTheTest(Choosing):
    def scale(self, sensitivity=1):
        return Fraction(sensitivity) / self.epsilon


def refused(mechanism, **options):
    found = privmax.audit(mechanism, **options)
    return found.delta > 1.05 * float(found.claim.delta) + found.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [_NoGrowth, _NoPlusOne, _WholeEpsilonTwice, _ObservedOnly, _WholeEpsilonOnTheTest]
)
def test_mutants(mutant):
    options = {"epsilon": 2, "delta": "0.01", "growth": 3}
    honest = Choosing(**options)
    scores = [*around(honest), (3, 3, 3, 3), (15, 15, 15, 15)]
    assert privmax.audit(honest, universe="open", scores=scores).holds
    assert refused(mutant(**options), universe="open", scores=scores)


def test_mutant_records_that_touch_more_than_the_growth():
    mechanism = Choosing(epsilon="0.2", delta="0.01", growth=1)
    assert privmax.audit(mechanism, universe="open", scores=around(mechanism)).holds
    assert refused(mechanism, universe="open", scores=around(mechanism), growth=3)


def test_mutant_replaced_records():
    mechanism = Choosing(epsilon=1, delta="0.001", growth=4)
    level = [(mechanism.threshold() - 4,) * 5]
    assert privmax.audit(mechanism, scores=level).holds
    assert refused(mechanism, scores=level, neighbors="replace")


# The draw, and the lead


def test_counts_of_zero_are_never_read_or_drawn():
    profile = Profile([(30, 1), (1, 2)], universe=10**9)
    window = _positive(profile)
    assert (window.depths, window.counts, window.floor) == ((0, 29), (1, 2), 30)
    assert Choosing(epsilon=9, delta="0.1", growth=1).law(profile).of(0) == 0


def test_nothing_is_drawn_where_nobody_has_a_positive_count():
    mechanism = Choosing(epsilon=1, delta="0.9", growth=1)
    assert mechanism.threshold() < 3
    for profile in (
        Profile([]),
        Profile([(-3, 1)]),
        Profile([(-3, 2)], universe=2),
        Profile([(-3, 1)], universe=9),
    ):
        assert mechanism.law(profile).none == 1
        assert mechanism.draw(profile, SYSTEM).score is None


@pytest.mark.parametrize(("growth", "near", "expected"), [(1, 1, 33), (1, 1000, 33), (1000, 1, 47)])
def test_lead(growth, near, expected):
    """T plus the 5 records that noise of scale 2 wants for 95 %, however many share the best
    count.
    """
    mechanism = Choosing(epsilon=1, delta="1e-6", growth=growth)
    assert [mechanism.lead(candidates=size, near=near) for size in (10**6, None)] == [
        expected,
        expected,
    ]
    assert mechanism.threshold() + 5 == expected


def test_price_relation_and_repr():
    mechanism = Choosing(epsilon="0.7", delta="1e-6", growth=3)
    assert mechanism.privacy() == Privacy("0.7", "1e-6")
    assert mechanism.neighbors == "add-remove"
    assert repr(mechanism) == "Choosing(epsilon=0.7, delta=1e-06, growth=3)"


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 0), ("delta", 0), ("delta", 1), ("growth", 0), ("growth", 1.5)]
)
def test_bad_arguments_are_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=f"^{name}="):
        Choosing(**{"epsilon": 1, "delta": "1e-6", "growth": 1} | {name: value})
