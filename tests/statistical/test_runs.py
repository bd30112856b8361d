"""Numbers of runs against their laws. A mean that is off by a third must be rejected by the same
test.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from scipy import stats

from privmax.noise.balls import START, precision
from privmax.repetition import random_runs
from privmax.testing import SeededCoins

ALPHA = 1e-4
N = 8000


def fits(draws, runs):
    """Chi-square at ALPHA, rare values pooled."""
    with precision(START):
        chances = [float(chance.mid()) for chance in runs.chances(120)]
    cells = [(draws.count(k), chance * N) for k, chance in enumerate(chances) if chance * N >= 10]
    seen, expected = (sum(column) for column in zip(*cells, strict=True))
    table = [*cells, (N - seen, N - expected)]
    statistic = sum((o - e) ** 2 / e for o, e in table)
    return stats.chi2.sf(statistic, len(table) - 1) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("law", ["geometric", "logarithmic", "-1/2", 3, "poisson"])
def test_numbers_of_runs(law):
    runs, coins = random_runs(law, 5), SeededCoins(f"runs {law}")
    draws = [runs.draw(coins) for _ in range(N)]
    assert fits(draws, runs)
    for factor in (Fraction(2, 3), Fraction(3, 2)):
        assert not fits(draws, random_runs(law, 5 * factor))
