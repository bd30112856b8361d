"""Association rules: what is measured for them, at what cost, and what the noise leaves of them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from privmax import Privacy
from privmax.counts import DiscreteGaussian, DiscreteLaplace
from privmax.errors import ParameterError
from privmax.itemsets import top_itemsets
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.rules import (
    Interval,
    RuleCounts,
    count_held,
    find_confidence,
    find_lift,
    measure_rules,
    needed_sets,
)
from privmax.testing import SeededCoins

BASKETS = (
    [["bread", "butter", "jam"]] * 300
    + [["bread", "butter"]] * 200
    + [["bread"]] * 500
    + [["tea"]] * 1000
    + [[]] * 10
)
PRICE = {"epsilon": 1, "delta": "1e-6"}
SPENT = 0.5
SURE = {"size": (2, 3), "k": 4, "epsilon": 20, "delta": "1e-6"}
"""At this price the pairs and the triple of bread, butter and jam come, and nothing else."""


def support(data, itemset):
    return sum(bool(basket) and set(itemset) <= set(basket) for basket in data)


# What is measured


def test_what_is_measured_follows_from_what_was_released():
    assert needed_sets([("a", "b", "c"), ("b", "c"), ("d",)]) == (
        (), ("a", "b", "c"), ("b", "c"), ("a",), ("a", "c"), ("b",), ("a", "b"), ("c",),
    )  # fmt: skip
    assert needed_sets([("a",), ("b",)]) == needed_sets([]) == ()


def test_rules_are_of_all_that_was_released_and_what_they_say_is_true():
    release = top_itemsets(BASKETS, **SURE, rules=200, coins=SeededCoins(1))
    assert set(release.items) == {
        ("bread", "butter"), ("bread", "jam"), ("butter", "jam"), ("bread", "butter", "jam"),
    }  # fmt: skip
    truth = {one: support(BASKETS, one) for one in release.rule_counts.sets}
    assert truth[()] == 2000
    assert len(release.rules) == 3 * 2 + 3
    for rule in release.rules:
        whole = tuple(sorted(rule.antecedent + rule.consequent))
        confidence = truth[whole] / truth[rule.antecedent]
        assert rule.support.value == pytest.approx(truth[whole], abs=2)
        assert rule.confidence.value == pytest.approx(confidence, abs=0.01)
        assert rule.lift.value == pytest.approx(confidence * 2000 / truth[rule.consequent], abs=0.1)
    lows = [rule.confidence.low for rule in release.rules]
    assert lows == sorted(lows, reverse=True)


def test_one_more_individual_moves_each_number_by_one_and_no_more_than_a_basket_holds():
    sets = needed_sets([(0, 1, 2), (1, 3), (2, 3)])
    for longest in range(5):
        most = 0
        for size in range(longest + 1):
            for basket in combinations(range(4), size):
                moved = [support([basket], one) for one in sets]
                assert set(moved) <= {0, 1}
                most = max(most, sum(moved))
        assert most <= count_held(sets, longest)
        assert most == count_held(sets, longest) or longest == 0  # then nobody has an item
    assert count_held(sets, None) is None


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("longest", [None, 1, 2])
def test_laplace_noise_hides_an_individual_in_all_numbers_together(neighbors, longest):
    sets = needed_sets([(0, 1, 2), (1, 3), (2, 3)])
    found = measure_rules(
        sets, lambda asked: [0] * len(asked), Privacy("0.5"), SeededCoins(1),
        neighbors=neighbors, longest=longest,
    )  # fmt: skip
    baskets = [
        one
        for size in range(5 if longest is None else longest + 1)
        for one in combinations(range(4), size)
    ]
    worst = 0
    for basket in baskets:
        for other in baskets if neighbors == "replace" else [()]:
            moves = [abs(support([basket], one) - support([other], one)) for one in sets]
            worst = max(worst, sum(moves))
    assert worst / found.noise.scale <= SPENT
    if longest is None:  # noise for one number fewer would not do
        assert worst / found.noise.scale * len(sets) / (len(sets) - 1) > SPENT


def test_the_noise_is_made_for_the_numbers_that_are_measured_and_not_for_k():
    pair = top_itemsets([["a", "b"]] * 900, **PRICE, rules="0.5")
    assert pair.rule_counts.noise == DiscreteLaplace(scale=8)  # everybody, both, and each: 4 / 0.5
    assert pair.privacy == Privacy("1.5", "1e-6")
    several = top_itemsets(BASKETS, **SURE, rules="0.5")
    assert len(several.rule_counts.sets) == 1 + 1 + 3 + 3
    assert several.privacy == Privacy("20.5", "2e-6")


def test_gaussian_noise_is_used_where_it_is_smaller_and_delta_is_charged_for_it():
    baskets = [[f"{n}a", f"{n}b"] for n in range(20) for _ in range(500)]
    price = {"k": 20, "epsilon": 8, "rules": "0.5"}
    release = top_itemsets(baskets, **price, delta="1e-6")
    assert len(release.items) == 20
    assert isinstance(release.rule_counts.noise, DiscreteGaussian)
    assert release.privacy == Privacy("8.5", "2e-6")
    items = sorted({item for basket in baskets for item in basket})
    pure = top_itemsets(baskets, **price, items=items)
    assert isinstance(pure.rule_counts.noise, DiscreteLaplace)
    assert pure.privacy == Privacy("8.5")


def test_nothing_released_costs_the_rules_all_the_same():
    release = top_itemsets([["a", "b"]], **PRICE, rules="0.5")
    assert (release.items, release.rules, release.rule_counts) == ((), (), None)
    assert release.privacy == Privacy("1.5", "1e-6")


def test_a_bound_on_baskets_makes_the_noise_smaller():
    baskets = [["a", "b"]] * 900 + [["c", "d"]] * 800 + [["e", "f"]] * 700
    options = {"k": 3, "epsilon": 20, "rules": "0.5", "items": list("abcdef")}
    plain = top_itemsets(baskets, **options)
    bounded = top_itemsets(baskets, **options, longest=2)
    assert plain.rule_counts.noise == DiscreteLaplace(scale=20)  # 3 pairs, 6 items, everybody
    assert bounded.rule_counts.noise == DiscreteLaplace(scale=8)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rules": "0.5", "size": 1}, "a rule needs itemsets of two or more items"),
        ({"rules": 0}, "rules"),
        ({"rules": -1}, "rules"),
    ],
)
def test_rules_that_cannot_be_are_refused(options, says):
    with pytest.raises(ParameterError, match=says):
        top_itemsets(BASKETS, **PRICE, **options)


def test_a_published_method_gives_no_rules():
    with pytest.raises(ParameterError, match="PrivBasis does not take it"):
        top_itemsets(
            BASKETS, mechanism="priv-basis", epsilon=1, items=["bread", "butter", "jam", "tea"],
            rules="0.5",
        )  # fmt: skip


# Many supports at once


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_supports_of_many_sets_are_those_of_each(owned, weighted):
    numbers = np.random.default_rng(5)
    lengths = numbers.integers(0, 6, 60)
    codes = numbers.integers(0, 7, lengths.sum()).astype(np.int32)  # some twice in a row
    owners = np.sort(numbers.integers(0, 25, 60)) if owned else None
    if owned:
        _, owners = np.unique(owners, return_inverse=True)
    people = 60 if owners is None else int(owners[-1]) + 1
    weights = numbers.integers(1, 5, people) if weighted else None
    rows = Baskets(np.concatenate([[0], np.cumsum(lengths)]), codes, range(9), owners, weights)
    sets = [one for size in range(1, 4) for one in combinations(range(9), size)]
    assert rows.supports_of(sets) == [rows.support(one) for one in sets]
    holding = np.flatnonzero(lengths)
    holders = holding if owners is None else np.unique(owners[holding])
    everybody = len(holders) if weights is None else weights[holders].sum()
    assert rows.supports_of([()]) == [everybody]


# Intervals


def test_intervals_use_that_who_has_all_has_a_part():
    assert find_confidence([40, 20], [(30, 50), (10, 45)]) == Interval(1.0, 30 / 45, 1.0)
    four = [(30, 50), (10, 45), (0, 40), (90, 110)]
    assert find_lift([40, 20, 35, 100], four).high == 110 / 30


def test_a_number_that_may_be_nothing_leaves_a_ratio_open():
    assert find_confidence([3, -2], [(0, 9), (0, 4)]) == Interval(1.0, 0.0, 1.0)
    lift = find_lift([3, -2, 1, 50], [(0, 9), (0, 4), (0, 7), (40, 60)])
    assert (lift.low, lift.high) == (0.0, math.inf)


def test_bounds_that_contradict_each_other_still_give_an_interval():
    for counts, bounds in (([50, 20], [(45, 55), (15, 25)]), ([-9, -9], [(0, 0), (0, 0)])):
        interval = find_confidence(counts, bounds)
        assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_rules_can_be_written_down_and_read():
    sets = needed_sets([("a", "b"), ("b", "c")])
    counts = RuleCounts(sets, (100, 9, 50, 12, 0, -3), DiscreteGaussian(sigma="5/4"))
    again = RuleCounts.from_json(counts.to_json(list), tuple)
    assert again == counts
    assert all(rule.to_dict()["lift"]["high"] != math.inf for rule in again.rules([("b", "c")]))
