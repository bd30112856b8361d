"""Scores that a program computed: floats near j/n, whose rounding adds to what one record moves.

The score of j of n records is j/n, and one record moves it by 1/n. Neither is a float, and a
rounding on either side of a line of the grid is worth a whole step. The steps that a record is
charged for must cover it.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import privmax
from privmax.learning import validate
from privmax.learning.validation import Stability
from privmax.sources import scale
from privmax.sources.memory import MemorySource

EVERY_N = range(2, 2001)
FEW = 40
"""Scores 0/n to 40/n show most of what there is."""


def moves(sensitivity, values, **options):
    """The most steps between scores of j and of j + 1 records, and the steps that are counted."""
    source = MemorySource(values, universe=len(values), sensitivity=sensitivity, **options)
    grid = [score for _, score in source.scores()]
    return max(abs(b - a) for a, b in itertools.pairwise(grid)), source.profile.sensitivity


def find_violations(make, sensitivity, top=FEW, **options):
    """The n for which two neighboring scores lie further apart than is counted."""
    found = []
    for n in EVERY_N:
        values = [make(j, n) for j in range(min(n, top) + 1)]
        most, counted = moves(sensitivity(n), values, **options)
        if most > counted:
            found.append(n)
    return found


AS_PASSED = {
    "fraction": lambda n: Fraction(1, n),
    "float": lambda n: 1 / n,
    "text": lambda n: f"1/{n}",
}


@pytest.mark.parametrize("sensitivity", AS_PASSED.values(), ids=AS_PASSED)
def test_no_mean_of_records_moves_by_more_than_is_counted(sensitivity):
    assert find_violations(lambda j, n: j / n, sensitivity) == []


@pytest.mark.slow
def test_no_mean_of_records_moves_by_more_for_any_number_of_them():
    """For 1,943 of the 1,999 n some two scores are 65 steps apart, and none are further."""
    found = [moves(1 / n, [j / n for j in range(n + 1)]) for n in EVERY_N]
    assert sum(most > scale.GRID_STEPS for most, _ in found) == 1943
    assert all(most <= counted == 65 for most, counted in found)


def test_a_quotient_of_decimals_is_rounded_too():
    assert find_violations(lambda j, n: Decimal(j) / Decimal(n), lambda n: Fraction(1, n)) == []


def test_a_mean_that_numpy_computes():
    def mean(j, n):
        return float(np.mean(np.arange(n) < j))

    assert find_violations(mean, lambda n: 1 / n, top=6) == []


@pytest.mark.parametrize("parts", [1, 3, 10, 100, 640])
def test_a_grid_of_the_callers_covers_it_too(parts):
    for n in (3, 7, 41, 300, 999, 1999):
        values = [j / n for j in range(n + 1)]
        most, counted = moves(1 / n, values, resolution=Fraction(1, n * parts))
        assert most <= counted


def test_the_search_finds_a_scale_that_forgets_rounding(monkeypatch):
    monkeypatch.setattr(scale, "ROUNDING", Fraction(0))
    assert len(find_violations(lambda j, n: j / n, lambda n: 1 / n)) == 1785


def largest_loss(n, mechanism, sensitivity):
    """Two candidates, of which one record takes from one what it gives to the other."""
    worst = 0.0
    for j in range(12):
        for k in range(1, 12):
            pair = ([j / n, k / n], [(j + 1) / n, (k - 1) / n])
            one, other = (
                privmax.law(
                    data,
                    mechanism=mechanism,
                    universe=2,
                    scores=privmax.Scores(sensitivity=sensitivity),
                )
                for data in pair
            )
            worst = max(worst, *(abs(math.log(one[at] / other[at])) for at in (0, 1)))
    return worst


KINDS = [privmax.Exponential, privmax.PermuteAndFlip, privmax.MaxOfLaplaces]


@pytest.mark.parametrize("n", [300, 999, 1200])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_stays_within_epsilon(kind, n):
    mechanism = kind(epsilon=1, neighbors="replace")
    assert 0.8 < largest_loss(n, mechanism, 1 / n) <= 1 + 1e-9


def test_the_audit_sees_a_scale_that_forgets_rounding(monkeypatch):
    monkeypatch.setattr(scale, "ROUNDING", Fraction(0))
    mechanism = privmax.PermuteAndFlip(epsilon=1, neighbors="replace")
    assert largest_loss(300, mechanism, 1 / 300) > 1.015


def validated_steps(m, right):
    """Where `validate` puts the score of a candidate that is right on some of m rows."""
    seen = {}

    class Watch(privmax.PermuteAndFlip):
        def draw(self, profile, coins):
            seen["top"], seen["steps"] = profile.top(), profile.sensitivity
            return super().draw(profile, coins)

    rows = [[0.0]], [0]
    validate(
        [lambda X, y: None],
        rows,
        ([[0.0]], [0]),
        score=lambda model, X, y: right / m,
        stability=Stability(training=1 / m, validation=1 / m),
        mechanism=Watch(epsilon=1, neighbors="replace"),
    )
    return seen["top"], seen["steps"]


@pytest.mark.parametrize("m", [300, 1200])
def test_validation_counts_its_rounding(m):
    found = [validated_steps(m, right) for right in range(12)]
    apart = max(b[0] - a[0] for a, b in itertools.pairwise(found))
    assert apart == 65
    assert all(steps >= apart for _, steps in found)


@pytest.mark.parametrize("n", [300, 999])
def test_whole_numbers_pay_nothing_for_rounding(n):
    most, counted = moves(1, list(range(n)))
    assert most == counted == 1
