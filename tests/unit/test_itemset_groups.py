"""Itemsets of every group: what counts where, what comes out, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privmax
from privmax import Groups, NestedMargin, Privacy
from privmax.best_per_group import BestPerGroup
from privmax.errors import DataError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.itemsets.mining import Mining
from privmax.itemsets.release import GroupedItemsetRelease

PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"basket": "receipt", "item": "item", "user": "user"}
NAMES = ["user", "receipt", "region", "item"]
ROWS = pd.DataFrame(
    [
        (who, f"{who}-{basket}", region, item)
        for who in range(700)
        for basket, region, item in (
            (1, "north" if who < 400 else "south", "tea" if who < 400 else "ale"),
            (1, "north" if who < 400 else "south", "milk" if who < 400 else "nuts"),
            (1, "west", "gum"),
            (2, "west", "fig"),
        )
    ],
    columns=NAMES,
)
"""Everyone counts in the north or the south: a tie with the west is broken by name."""


def mine(data=ROWS, **options):
    return top_itemsets(data, **{**NAMED, **PRICE, "by": "region", **options})


def test_each_individual_counts_in_one_group():
    assert mine().groups == {"north": (("milk", "tea"),), "south": (("ale", "nuts"),)}
    declared = Groups("region", ["west", "north", "east"])
    assert mine(by=declared).groups == {"east": (), "north": (("milk", "tea"),), "west": ()}
    assert mine(by=Groups("region", ["west"]), size=1, k=2).groups == {"west": (("fig",), ("gum",))}


def test_a_basket_in_two_groups_has_in_each_the_items_of_that_group():
    """Tea and gum are in one basket, but never in one group."""
    release = mine(by=Groups("region", ["north", "south", "west"], 2), epsilon=9, size="1-2", k=9)
    assert release.groups["west"] == (("fig",), ("gum",))
    assert release.groups["north"] == (("milk",), ("milk", "tea"), ("tea",))


def test_without_users_every_basket_is_an_individual():
    release = mine(user=None, size="1-2", k=3, ledger=privmax.Request(unit="basket"))
    assert release.groups == {
        "north": (("milk",), ("milk", "tea"), ("tea",)),
        "south": (("ale",), ("ale", "nuts"), ("nuts",)),
        "west": (("fig",),),
    }
    assert release.unit == "basket"


def test_the_column_of_groups_may_tell_baskets_apart():
    numbered = ROWS.assign(receipt=ROWS["receipt"].str.split("-").str[1])
    release = mine(numbered, user=None, basket=["user", "region", "receipt"], by="region",
                   ledger=privmax.Request(unit="basket"))  # fmt: skip
    assert release.groups["north"] == (("milk", "tea"),)


def test_the_release_is_a_table():
    release = mine(by=Groups("region", ["north", "south", "none"]), supports=9)
    assert isinstance(release, GroupedItemsetRelease)
    assert release.items == (("north", ("milk", "tea")), ("south", ("ale", "nuts")))
    assert release.unanswered == ("none",)
    assert release.answers[0] == {"group": "none", "itemsets": [], "supports": []}
    assert release.supports == tuple(release.counts)
    assert all(abs(a - b) < 20 for a, b in zip(release.supports, (400, 300), strict=True))
    frame = release.to_frame("pandas")
    assert frame.columns.tolist() == ["group", "itemset", "support", "error"]
    assert frame["itemset"].tolist() == [("milk", "tea"), ("ale", "nuts")]
    assert str(release).startswith("north: milk + tea: ")
    assert "No answer in 1 of 3 groups: no itemset stood out enough there." in release.notes
    assert "north" in release._repr_html_()


def test_distances_come_with_an_order():
    release = mine(by=Groups("region", ["north"]), size="1-2", k=2, ranked=True, epsilon=9)
    [answer] = release.answers
    assert len(answer["itemsets"]) == len(answer["relative"]) == len(answer["close"]) == 2


def test_supports_include_the_floor():
    release = mine(layout=Layout(floor=50), by=Groups("region", ["north"]), supports=9)
    assert abs(release.supports[0] - 400) < 20
    above = mine(layout=Layout(floor=390), by=Groups("region", ["north"]))
    assert above.groups == {"north": ()}


def test_the_longest_basket_is_that_of_a_group():
    assert mine(user=None, layout=Layout(longest=2), by=Groups("region", ["north"])).groups == {
        "north": (("milk", "tea"),)
    }
    with pytest.raises(DataError, match="more items than longest allows"):
        mine(user=None, layout=Layout(longest=1), by=Groups("region", ["north"]))


@pytest.mark.parametrize("times", [1, 3])
def test_the_cost_is_what_was_asked_for(times):
    price = {"epsilon": Fraction(3, 2), "delta": Fraction(1, 10**6)}
    layout = Layout("receipt", "item", "user")
    for groups in (Groups("g", ["a"], times), Groups("g", "open", times, "1/3")):
        releasable = Mining.of(layout=layout, groups=groups, **price).releasable
        assert isinstance(releasable, BestPerGroup)
        assert releasable.privacy() == Privacy(**price)
    counted = Mining.of(layout=layout, groups=Groups("g", ["a"], times), supports="0.5", **price)
    assert counted.releasable.privacy().epsilon == 2
    assert counted.releasable.best.counts == Fraction(1, 2 * times)


def test_rows_without_a_group_or_an_item_do_not_count():
    odd = [(who, f"{who}-1", None, "gum") for who in range(9)]
    odd += [(who, f"{who}-1", "west", None) for who in range(700)] * 3
    rows = pd.concat([ROWS, pd.DataFrame(odd, columns=NAMES)], ignore_index=True)
    assert mine(rows).groups == mine().groups


@pytest.mark.parametrize("column", ["user", "receipt"])
def test_rows_without_a_user_or_a_basket_are_refused(column):
    rows = ROWS.astype(object)
    rows.loc[3, column] = None
    with pytest.raises(DataError, match="no user" if column == "user" else "no basket"):
        mine(rows)
    rows = rows.assign(user=rows["user"].where(rows.index != 3, None))
    if column == "user":
        assert mine(rows, layout=Layout(missing_users="drop")).groups == mine().groups


WRONG = {
    "rules": ({"rules": 1}, "rules", "not released per group"),
    "declared items": ({"items": ["tea", "milk"]}, "items", "not declared"),
    "a published method": ({"mechanism": "diff-part", "delta": None}, "mechanism", "published"),
    "no baskets": ({"basket": None}, "basket", "no column of groups"),
    "no items": ({"item": None}, "item", "no column of groups"),
    "one-hot": ({"layout": Layout(form="onehot")}, "by", "the form onehot"),
    "fimi": ({"layout": Layout(form="fimi")}, "by", "the form fimi"),
    "a file of baskets": ({"data": "baskets.dat"}, "by", "no columns"),
    "lists": ({"data": [["tea", "milk"]]}, "data", "groups need a table"),
    "a matrix": ({"data": np.ones((2, 2), bool)}, "data", "groups need a table"),
    "by is the item": ({"by": "item"}, "by", "the same column is given as item"),
    "by is the user": ({"by": "user"}, "by", "the same column is given as user"),
    "no such column": ({"by": "reigon"}, "by", "no such column"),
    "no such basket": ({"basket": "recipt"}, "basket", "no such column"),
    "replace": ({"layout": Layout(neighbors="replace")}, "by", "leave a group for another"),
    "a mechanism for replace": (
        {"mechanism": NestedMargin(epsilon=1, delta="1e-6", neighbors="replace"),
         "epsilon": None, "delta": None}, "by", "leave a group for another",
    ),
    "several groups of a basket": (
        {"user": None, "by": Groups("region", ["a"], 2)}, "groups_per_user", "every basket is one",
    ),
    "two names of one value": (
        {"data": pl.from_pandas(ROWS.assign(region=1)),
         "by": Groups("region", [1, "1"])}, "groups", "column of groups",
    ),
    "delta 0": ({"delta": 0}, "delta", ""),
}  # fmt: skip


@pytest.mark.parametrize(("options", "name", "allowed"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(options, name, allowed):
    with pytest.raises(ParameterError) as refused:
        mine(**options)
    assert (refused.value.name, allowed in str(refused.value)) == (name, True), str(refused.value)
