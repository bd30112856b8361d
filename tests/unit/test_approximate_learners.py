"""Points and thresholds with δ: certain answers, the sensitivities behind the cost, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privmax import DataError, Ledger, ParameterError, Privacy
from privmax.learning import approximate_learners
from privmax.learning.approximate_learners import (
    RecursiveConcave,
    _best_stretches,
    learn_point,
    score_thresholds,
)
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.gap_test import GapTest
from privmax.testing import SeededCoins

RNG = np.random.default_rng(8)


def test_a_point_is_learned_whatever_the_domain():
    target = 10**40 + 7
    places = [target] * 40 + list(range(60))
    assert learn_point(places, [1] * 40 + [0] * 60, epsilon=1, delta=1e-6).item == target
    assert learn_point(range(100), [0] * 100, epsilon=1, delta=1e-6).item is None


@pytest.mark.parametrize("domain", [20, 1000, 2**16])
def test_a_threshold_is_learned(domain):
    """20,000 examples on each side of a gap in which any threshold is right."""
    low, high = domain * 5 // 10, domain * 6 // 10
    places = [*RNG.integers(0, low, 20_000), *RNG.integers(high, domain, 20_000)]
    quality = score_thresholds(places, [0] * 20_000 + [1] * 20_000, domain)
    assert quality.max() == 40_000
    learner = RecursiveConcave(epsilon=2, delta=1e-6, domain=domain, promise=40_000)
    for seed in range(5):
        found = learner.draw(quality, SeededCoins(seed))
        assert quality[found] >= 20_000 - 1  # the promise less half of it


def test_scores_of_thresholds_are_those_of_trying_each():
    places, labels = RNG.integers(0, 9, 50), RNG.integers(0, 2, 50)
    found = score_thresholds(places, labels, 9)
    assert found.tolist() == [int(np.sum((places >= t) == labels)) for t in range(9)]


@pytest.mark.parametrize("size", [1, 5, 8, 13])
def test_stretches_against_the_definition(size):
    quality = RNG.integers(0, 9, size)
    full = [*quality.tolist(), *[0] * ((1 << (size - 1).bit_length()) - size)]
    found = _best_stretches(quality)
    for power in range(len(found) - 1):
        length = 1 << power
        windows = [full[start : start + length] for start in range(len(full) - length + 1)]
        assert found[power] == max(map(min, windows))
    assert found[-1] == 0


def test_what_the_search_scores_moves_by_at_most_one():
    """Qualities that move by −1, 0 or 1 each: stretches, lengths and intervals move no further."""
    for _ in range(300):
        size = int(RNG.integers(2, 40))
        quality = RNG.integers(0, 30, size)
        moved = quality + RNG.integers(-1, 2, size)
        first, second = _best_stretches(quality), _best_stretches(moved)
        assert np.abs(first - second).max() <= 1
        lengths = [np.minimum(one[:-1] - 7, 20 - one[1:]) for one in (first, second)]
        assert np.abs(lengths[0] - lengths[1]).max() <= 1


def test_the_draws_cost_what_is_claimed(monkeypatch):
    """Every draw of a run is recorded; by basic composition they add up to the cost."""
    spent = []

    def recording(kind):
        class Recorded(kind):
            def draw(self, profile, coins):
                assert profile.sensitivity == 1
                assert self.neighbors == "replace"
                spent.append(self.privacy())
                return super().draw(profile, coins)

        return Recorded

    monkeypatch.setattr(approximate_learners, "Exponential", recording(Exponential))
    monkeypatch.setattr(approximate_learners, "GapTest", recording(GapTest))
    for domain in (20, 1000, 2**20):
        spent.clear()
        learner = RecursiveConcave(epsilon=1, delta=1e-6, domain=domain, promise=10**5)
        quality = np.full(domain, 10**5 - 5, np.int64)
        quality[: domain // 2] = 0
        learner.draw(quality, SeededCoins(3))
        assert sum((one.epsilon for one in spent), Fraction(0)) <= learner.epsilon
        assert sum((one.delta for one in spent), Fraction(0)) <= learner.delta
        if domain == 2**20:
            assert len(spent) == 4
    assert learner.privacy() == Privacy(1, "1e-6")


def test_the_levels_are_log_star():
    levels = RecursiveConcave(epsilon=1, delta=1e-6, domain=2**24, promise=9).levels()
    assert levels == [2**24, 25]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"domain": 0}, "domain"),
        ({"domain": 2**25}, "domain"),
        ({"promise": -1}, "promise"),
        ({"promise": 2**54}, "promise"),
        ({"loss": 1}, "loss"),
    ],
)
def test_every_bad_argument_is_refused_by_name(options, name):
    given = {"epsilon": 1, "delta": 1e-6, "domain": 100, "promise": 5, **options}
    with pytest.raises(ParameterError) as caught:
        RecursiveConcave(**given).levels()
    assert caught.value.name == name


def test_bad_data_is_refused():
    learner = RecursiveConcave(epsilon=1, delta=1e-6, domain=100, promise=5)
    for quality in (np.zeros(99, int), np.zeros(100), [0] * 100):
        with pytest.raises(DataError):
            learner.draw(quality, SeededCoins(1))
    with pytest.raises(DataError, match="outside"):
        score_thresholds([100], [1], 100)
    for labels in ([2], [0, 1]):
        with pytest.raises(DataError, match="label"):
            score_thresholds([3], labels, 9)
        with pytest.raises(DataError, match="label"):
            learn_point([3], labels, epsilon=1, delta=1e-6)


def test_a_point_in_a_column_of_pandas_does_not_depend_on_other_rows():
    ids = [2**60 + i for i in range(100)] * 3 + [7] * 150
    for places in (ids, [*ids, 0.5]):
        with pytest.raises(DataError, match="2\\^53"):
            learn_point(pd.Series(places), [1] * len(places), epsilon=5, delta=1e-6)
    assert learn_point(ids, [1] * len(ids), epsilon=5, delta=1e-6).item == 7


def test_beside_a_strict_ledger_bad_labels_are_no_answer(tmp_path):
    with Ledger.create(tmp_path / "b.db", budget=Privacy(1, "1e-6"), strict=True) as ledger:
        found = learn_point([7] * 5, [1, 1, 1, 1, 2], epsilon=1, delta="1e-6", ledger=ledger)
        assert found.item is None
        assert ledger.spent.epsilon == 1


def test_places_that_are_not_whole_are_refused():
    for places in ([0.5], ["a"]):
        with pytest.raises(DataError, match="whole"):
            score_thresholds(places, [1], 9)


@pytest.mark.parametrize("far", [-(2**63), 2**63 - 1, np.uint64(2**63)])
def test_qualities_that_leave_64_bits_are_refused(far):
    """Differences of them would wrap around, and one individual would move a score by 2^64."""
    quality = np.full(64, far, np.uint64 if isinstance(far, np.uint64) else np.int64)
    search = RecursiveConcave(epsilon=1, delta="1e-6", domain=64, promise=100)
    with pytest.raises(DataError, match="2\\^53"):
        search.draw(quality, SeededCoins(1))


@pytest.mark.parametrize("label", [pd.NA, None, float("nan"), "1", np.array([0, 1])])
def test_one_odd_label_is_an_error_about_labels(label):
    with pytest.raises(DataError, match="a label, 0 or 1, for every place"):
        learn_point([7] * 51, [1] * 50 + [label], epsilon=1, delta=1e-6)


def test_a_place_that_cannot_be_looked_up_is_an_error_about_places():
    with pytest.raises(DataError, match="A place cannot be looked up"):
        learn_point([[7]] * 50, [1] * 50, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("domain", [0, -1, 2**24 + 1, 2**60])
def test_a_domain_of_thresholds_has_bounds(domain):
    with pytest.raises(ParameterError, match=r"^domain="):
        score_thresholds([], [], domain)


@pytest.mark.parametrize(("places", "labels"), [(3, 1), ([[1, 2]], [[1, 0]]), ([1], [[1]])])
def test_places_of_another_shape_are_refused(places, labels):
    with pytest.raises(DataError, match="for every place"):
        score_thresholds(places, labels, 4)
