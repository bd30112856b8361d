"""The intervals of association rules cover the truth in at least 95 of 100 cases.

Seeds are fixed, so these tests are repeatable. Intervals for noise of a quarter of the size must be
rejected by the same test.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privmax import Privacy
from privmax.counts import DiscreteLaplace, SharedGaussian
from privmax.itemsets.baskets import Baskets
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
    return SharedGaussian(sigma=noise.sigma / 4, shared=noise.shared / 4)


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
        assert isinstance(counts.noise, SharedGaussian)
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


PEOPLE, VISITS, CHANCE, TOGETHER = 4000, 8, 0.1, 3


def invented_visits():
    """Whether each visit of each user has a and b: three times as likely together as apart."""
    both = TOGETHER * CHANCE**2
    odds = [1 - 2 * CHANCE + both, CHANCE - both, CHANCE - both, both]
    kinds = np.random.default_rng(31).choice(4, (PEOPLE, VISITS), p=odds)
    return kinds % 2 == 1, kinds >= 2


def baskets_of(has_a, has_b):
    """The same as baskets of users, each with one item more, which is in every basket."""
    rows = [
        [code for code, held in enumerate((one, other, True)) if held]
        for one, other in zip(has_a.ravel().tolist(), has_b.ravel().tolist(), strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum(list(map(len, rows)))])
    owners = np.repeat(np.arange(PEOPLE), VISITS)
    return Baskets(offsets, np.concatenate(rows).astype(np.int32), "abc", owners)


@pytest.mark.slow
def test_lifts_of_users_cover_the_lift_of_users_and_no_other():
    """Neither 1, nor the quotient that mixes pairs within a basket and items in all baskets."""
    has_a, has_b = invented_visits()
    bought_a, bought_b = has_a.any(axis=1), has_b.any(axis=1)
    apart = bought_a.mean() * bought_b.mean()
    lifts = {
        "of users": (bought_a & bought_b).mean() / apart,
        "none": 1.0,
        "mixed": (has_a & has_b).any(axis=1).mean() / apart,
    }
    assert lifts["mixed"] < 0.75
    assert lifts["of users"] > 1.1
    rows, sets = baskets_of(has_a, has_b), needed_sets([PAIR])
    hits = dict.fromkeys(lifts, 0)
    for repeat in range(N):
        counts = measure_rules(
            sets,
            lambda asked: rows.count_holders(
                [["abc".index(item) for item in one] for one in asked]
            ),
            Privacy("0.5"),
            SeededCoins(f"users {repeat}"),
            neighbors="add-remove",
        )
        lift = counts.rules([PAIR])[0].lift
        for name, value in lifts.items():
            hits[name] += lift.low <= value <= lift.high
    assert enough(hits["of users"])
    assert not enough(hits["none"])
    assert not enough(hits["mixed"])
