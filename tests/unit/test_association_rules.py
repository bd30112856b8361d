"""Association rules: what is measured for them, at what cost, and what the noise leaves of them."""

from __future__ import annotations

import math
from itertools import combinations

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from by_name import by_name

from privmax import Ledger, Privacy, Request
from privmax.counts import DiscreteGaussian, DiscreteLaplace, SharedGaussian
from privmax.errors import ParameterError
from privmax.itemsets import Layout, top_itemsets
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
    assert isinstance(release.rule_counts.noise, SharedGaussian)
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
    bounded = top_itemsets(baskets, **options, layout=Layout(longest=2))
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


# With users


def shop(people=900, visits=8, chance=0.1, together=3):
    """Visits of users: in each, two items are so many times as likely together as apart."""
    numbers = np.random.default_rng(11)
    both = together * chance**2
    kinds = numbers.choice(
        4, (people, visits), p=[1 - 2 * chance + both, *[chance - both] * 2, both]
    )
    items = [["paper"], ["paper", "bread"], ["paper", "butter"], ["paper", "bread", "butter"]]
    return pd.DataFrame(
        [
            (user, f"{user}/{visit}", item)
            for user, row in enumerate(kinds.tolist())
            for visit, kind in enumerate(row)
            for item in items[kind]
        ],
        columns=["card", "receipt", "article"],
    )


LONG = {"basket": "receipt", "item": "article"}
ONLY = {"epsilon": 40, "items": ["bread", "butter", "paper"], "size": 2, "k": 3}


def rule_of(release, antecedent, consequent):
    return next(
        rule
        for rule in release.rules
        if (rule.antecedent, rule.consequent) == ((antecedent,), (consequent,))
    )


def test_items_that_users_buy_together_have_a_lift_above_1():
    """It was 0.66 where pairs were counted within a basket, and single items in all of them."""
    release = top_itemsets(shop(), **LONG, user="card", **ONLY, rules=1000)
    lift = rule_of(release, "bread", "butter").lift
    assert 1 < lift.low <= lift.high < 1.3
    by_basket = top_itemsets(shop(), **LONG, **ONLY, rules=1000, ledger=Request(unit="basket"))
    lift = rule_of(by_basket, "bread", "butter").lift
    assert 2.7 < lift.low <= lift.high < 3.3


@pytest.mark.parametrize("container", ["frame", "arrow", "table", "parquet"])
def test_with_users_rules_say_what_they_say_of_all_that_each_user_has(container, tmp_path):
    """Confidence is a share of users, and lift compares it with another share of users."""
    rows = shop(people=300)
    held = [set(items) for _, items in rows.groupby("card")["article"]]
    path = tmp_path / "sales.parquet"
    rows.to_parquet(path)
    data = {
        "frame": lambda: rows,
        "arrow": lambda: pa.Table.from_pandas(rows),
        "table": lambda: ibis.memtable(rows),
        "parquet": lambda: path,
    }[container]()
    release = top_itemsets(data, **LONG, user="card", **ONLY, rules=10**6)
    assert len(release.rules) == 6
    for rule in release.rules:
        left, right = set(rule.antecedent), set(rule.consequent)
        buyers = [items for items in held if left <= items]
        share = sum(right <= items for items in buyers) / len(buyers)
        everywhere = sum(right <= items for items in held) / len(held)
        assert rule.confidence.value == pytest.approx(share)
        assert rule.lift.value == pytest.approx(share / everywhere)
        assert rule.support.value == sum(left | right <= items for items in held)


def test_rules_with_users_equal_those_of_one_basket_for_each_user():
    each = top_itemsets(shop(), **LONG, user="card", **ONLY, rules=10**6)
    as_baskets = top_itemsets(
        shop(), basket="card", item="article", **ONLY, rules=10**6, ledger=Request(unit="user")
    )
    assert {str(rule) for rule in each.rules} == {str(rule) for rule in as_baskets.rules}


def test_a_release_with_rules_says_whose_they_are():
    told = "Rules count each user once, with all baskets together."
    options = {**LONG, **ONLY}
    assert told in top_itemsets(shop(), **options, user="card", rules=1).notes
    assert told not in top_itemsets(shop(), **options, user="card").notes
    by_basket = top_itemsets(shop(), **options, rules=1, ledger=Request(unit="basket"))
    assert not any("Rules" in note for note in by_basket.notes)


def test_supports_beside_rules_of_users_are_said_to_differ():
    told = (
        "Supports of itemsets count a user only where one basket has all items, so the support of "
        "a rule may be higher."
    )
    options = {**LONG, **ONLY, "user": "card"}
    both = top_itemsets(shop(), **options, rules=1, supports=1)
    assert told in both.notes
    assert "one basket has all items" in both._repr_html_()
    assert told not in top_itemsets(shop(), **options, rules=1).notes
    assert told not in top_itemsets(shop(), **options, supports=1).notes


@pytest.mark.parametrize("container", ["lists", "column", "one-hot", "text", "long"])
def test_baskets_without_items_count_in_no_container(container, tmp_path):
    """A table with a row per item has none for an empty basket, so no container counts them."""
    baskets = [["a", "b"]] * 300 + [["c"]] * 100 + [[]] * 600
    text = tmp_path / "baskets.dat"
    text.write_text("".join(" ".join(str(ord(one)) for one in some) + "\n" for some in baskets))
    long = [(place, item) for place, some in enumerate(baskets) for item in some]
    flags = pd.DataFrame([{one: int(one in some) for one in "abc"} for some in baskets])
    data, options = {
        "lists": (baskets, {}),
        "column": (pd.DataFrame({"items": baskets}), {"item": "items"}),
        "one-hot": (flags, {}),
        "text": (text, {}),
        "long": (
            pd.DataFrame(long, columns=["basket", "item"]), {"basket": "basket", "item": "item"}
        ),
    }[container]  # fmt: skip
    release = top_itemsets(data, **options, size=2, **PRICE, rules=10**6)
    assert [round(rule.lift.value, 6) for rule in release.rules] == [round(4 / 3, 6)] * 2


def test_rules_that_were_recorded_with_another_meaning_are_not_handed_out(tmp_path):
    """A ledger of an earlier version may hold them: pairs were counted within a basket."""
    with Ledger.create(tmp_path / "budget.db", epsilon=200) as ledger:
        options = {**LONG, **ONLY, "rules": 1}
        for name, user in (("users", {"user": "card"}), ("baskets", {"unit": "user"})):
            by_name(top_itemsets, shop(20), **options, **user, ledger=ledger.request(name))
        [users, baskets] = [event for event in ledger.history() if event.kind == "reserved"]
        assert users.body["what"]["options"]["rules_over"] == "all baskets"
        assert "rules_over" not in baskets.body["what"]["options"]


# Many numbers at once


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_of_holders_are_those_of_each_set(owned, weighted):
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
    held = [set() for _ in range(people)]
    for place, row in enumerate(np.split(codes, np.cumsum(lengths)[:-1])):
        held[place if owners is None else owners[place]].update(row.tolist())
    each = [1] * people if weights is None else weights.tolist()
    assert rows.count_holders(sets) == [
        sum(weight for weight, items in zip(each, held, strict=True) if set(one) <= items)
        for one in sets
    ]
    if not owned:
        assert rows.count_holders(sets) == [rows.support(one) for one in sets]
    holding = np.flatnonzero(lengths)
    holders = holding if owners is None else np.unique(owners[holding])
    everybody = len(holders) if weights is None else weights[holders].sum()
    assert rows.count_holders([()]) == [everybody]


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
