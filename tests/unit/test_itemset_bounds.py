"""The paper's corollary on itemsets: its numbers, and exact laws on data that just meets it."""

from __future__ import annotations

import math

import pytest

from privmax import Exponential, LargeMargin, ParameterError, Profile
from privmax.planning.itemset_bounds import itemset_corollary

SHOP = {"n": 200, "items": 300, "longest": 6, "size": 2, "epsilon": 1, "delta": "1e-6"}


def least_drawn(law, score):
    """The probability of an itemset with at least so many users."""
    return sum(chance for at, _, chance in law.blocks if at >= score)


@pytest.mark.parametrize("success", ["0.95", "0.6"])
@pytest.mark.parametrize("universe", [None, math.comb(300, 2)])
def test_the_mechanism_keeps_to_it_on_data_that_just_meets_it(success, universe):
    """The worst data: every listed itemset but the best is just too far below it."""
    found = itemset_corollary(**SHOP, success=success)
    top, deep = found.support, math.floor(found.error) + 1
    mechanism = LargeMargin(epsilon=1, delta="1e-6")
    crowd = Profile([(top, 1), (top - deep, found.listed - 1)], universe=universe)
    assert least_drawn(mechanism.law(crowd), top - found.error) >= float(success)
    few = Profile([(top, 1), (1, found.listed - 1)], universe=universe)
    assert least_drawn(mechanism.law(few), top - found.error) >= float(success)


def test_far_below_the_support_nothing_is_drawn():
    found = itemset_corollary(**SHOP)
    law = LargeMargin(epsilon=1, delta="1e-6").law(Profile([(found.support // 4, 1)]))
    assert least_drawn(law, 1) < 0.5


def test_its_numbers():
    found = itemset_corollary(**SHOP)
    assert found.listed == 200 * 15
    assert found.universe == 300 * 299 // 2
    assert found.error == pytest.approx(6 * math.log(2 * 3000 / 1e-6))
    assert found.constant == pytest.approx(found.support / math.log(3000 / 1e-6))
    assert found.exponential_error == pytest.approx(2 * math.log(found.universe / 1e-6))


def test_the_exponential_mechanism_is_within_the_error_beside_it():
    found = itemset_corollary(**SHOP, success="0.9")
    deep = math.floor(found.exponential_error) + 1
    law = Exponential(epsilon=1, neighbors="replace").law(
        Profile([(500, 1), (500 - deep, found.universe - 1)], universe=found.universe)
    )
    assert least_drawn(law, 500) >= 0.9


def test_where_every_itemset_may_be_listed_no_support_is_needed():
    found = itemset_corollary(**{**SHOP, "items": 6, "longest": 9})
    assert found.listed == found.universe == 15
    assert found.support == 1


def test_ours_wins_only_where_few_of_the_itemsets_are_listed():
    """`docs/proofs/utility.md` says so: the paper's constant is three times as large."""
    wide = itemset_corollary(**{**SHOP, "items": 10**9, "size": 6})
    assert wide.error < wide.exponential_error
    assert itemset_corollary(**SHOP).error > itemset_corollary(**SHOP).exponential_error


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", 0), ("items", 1.5), ("longest", 0), ("size", 7), ("epsilon", 0), ("delta", 0)],
)
def test_every_bad_argument_is_refused_by_name(name, value):
    with pytest.raises(ParameterError) as caught:
        itemset_corollary(**{**SHOP, name: value})
    assert caught.value.name == name


def test_an_open_universe_needs_a_cap_above_the_listed_itemsets():
    found = itemset_corollary(**SHOP, success="0.95")
    deep = math.floor(found.error)
    listed = Profile([(found.support, 1), (found.support - deep, found.listed - 1)])
    for cap, is_kept in ((found.listed + 1, True), (found.listed, False)):
        law = LargeMargin(epsilon=1, delta="1e-6", cap=cap).law(listed)
        assert (least_drawn(law, 1) >= 0.95) == is_kept
