"""The intervals of association rules cover the truth in at least 95 of 100 cases.

Seeds are fixed, so these tests are repeatable. Intervals for noise of a quarter of the size must be
rejected by the same test.
"""

from __future__ import annotations

import pytest
from scipy import stats

from privmax import Privacy
from privmax.counts import DiscreteGaussian, DiscreteLaplace
from privmax.itemsets.rules import RuleCounts, measure_rules, needed_sets
from privmax.testing import SeededCoins

pytestmark = pytest.mark.slow

ALPHA = 1e-4
N = 600
COVERAGE = 0.95

PAIR, TRIPLE = ("a", "b"), ("a", "b", "c")
TRUTHS = {
    "large": {(): 9000, PAIR: 700, ("a",): 2500, ("b",): 1200},
    "everybody": {(): 400, PAIR: 400, ("a",): 400, ("b",): 400},
    "small": {(): 60, PAIR: 9, ("a",): 12, ("b",): 30},
    "nobody": {(): 50, PAIR: 0, ("a",): 1, ("b",): 1},
}


def covered(truth, noise_for, shown):
    """How many of N measurements have intervals that hold the truth: by what it is of."""
    found = dict.fromkeys(("support", "confidence", "lift"), 0)
    sets = needed_sets([PAIR])
    for repeat in range(N):
        counts = measure_rules(
            sets,
            lambda asked: [truth[one] for one in asked],
            noise_for,
            SeededCoins(f"{truth} {noise_for} {repeat}"),
            neighbors="add-remove",
        )
        told = RuleCounts(sets, counts.counts, shown(counts.noise))
        rule = next(rule for rule in told.rules([PAIR]) if rule.antecedent == ("a",))
        confidence = truth[PAIR] / truth["a",]
        true = {
            "support": truth[PAIR],
            "confidence": confidence,
            "lift": confidence * truth[()] / truth["b",],
        }
        for name, number in true.items():
            interval = getattr(rule, name)
            assert interval.low <= interval.value <= interval.high
            # a quotient of exact ends is rounded once
            slack = 1e-12 * number
            found[name] += interval.low - slack <= number <= interval.high + slack
    return found


def enough(number):
    return stats.binom.cdf(number, N, COVERAGE) > ALPHA


def quarter(noise):
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(scale=noise.scale / 4)
    return DiscreteGaussian(sigma=noise.sigma / 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("price", [Privacy("0.5"), Privacy(2)], ids=str)
def test_intervals_cover_the_truth(name, price):
    assert all(map(enough, covered(TRUTHS[name], price, lambda noise: noise).values()))


@pytest.mark.slow
def test_intervals_of_gaussian_noise_cover_the_truth():
    truth = {one: 500 + 40 * place for place, one in enumerate(needed_sets([TRIPLE]))}
    truth[()], truth[TRIPLE] = 3000, 200
    sets = needed_sets([TRIPLE])
    hits = [0, 0]
    for repeat in range(N):
        counts = measure_rules(
            sets,
            lambda asked: [truth[one] for one in asked],
            Privacy("0.5", "1e-3"),
            SeededCoins(f"gauss {repeat}"),
            neighbors="add-remove",
        )
        assert isinstance(counts.noise, DiscreteGaussian)
        for place, noise in enumerate((counts.noise, quarter(counts.noise))):
            for rule in RuleCounts(sets, counts.counts, noise).rules([TRIPLE]):
                if rule.consequent == ("c",):
                    true = truth[TRIPLE] / truth[rule.antecedent]
                    hits[place] += rule.confidence.low <= true <= rule.confidence.high
    assert enough(hits[0])
    assert not enough(hits[1])


@pytest.mark.slow
def test_intervals_for_less_noise_than_there_is_are_rejected():
    found = covered(TRUTHS["large"], Privacy("0.5"), quarter)
    assert not any(map(enough, found.values()))
