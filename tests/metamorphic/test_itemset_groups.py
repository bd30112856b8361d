"""One individual more, or one odd row, changes nothing about where others count in itemsets.

The supports of all groups must be what they were before, and what the new one has where it is
alone, in every container.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial

import numpy as np
import pandas as pd
import pytest
from group_tables import CONTAINERS, columns_of
from plain_baskets import restrict_baskets

from privmax.itemsets.reading.grouped import open_groups
from privmax.mechanisms.contract import Outcome
from privmax.sources.containers import pandas as pandas_reader
from privmax.sources.grouped import Grouping
from privmax.sources.tables import Columns

NAMES = ("user", "basket", "region", "item")


numbers = np.random.default_rng(12)
CROWD = [
    (f"u{who}", f"b{numbers.integers(2)}", f"place {numbers.integers(4)}",
     f"tea {numbers.integers(4)}")
    for who in numbers.permutation(40).tolist()
    for _ in range(int(numbers.integers(2, 9)))
]  # fmt: skip
"""Rows of 40 individuals, many of whom have ties between groups, and baskets of one name."""

NEW = [
    ("new", basket, place, item)
    for basket, place, item in (
        ("b1", "place 3", "tea 0"), ("b1", "place 2", "tea 1"), ("b1", "place 1", "ale"),
        ("b1", "place 2", "tea 0"), ("b1", "place 9", "tea 2"),
    )
]  # fmt: skip
TOGETHER = [*NEW[:3], *CROWD[:9], NEW[3], *CROWD[9:], NEW[4]]


def supports(data, per_user=1, columns=None, declared=None):
    """The support of every pair of every group."""
    columns = columns or Columns("item", "user")
    grouping = Grouping("region", declared, per_user)
    with closing(open_groups(data, columns, ["basket"], grouping)) as source:
        found, number = Counter(), len(source.count_chosen(1))
        labels = source.group_names(range(number))
        for group in range(number):
            levels = source.profile(group).window(1 << 40).blocks()
            top = source.profile(group).top()
            drawn = [
                (group, Outcome(top - depth, index))
                for depth, count in levels
                if count is not None
                for index in range(count)
            ]
            assert source.counts(drawn) == [one.score for _, one in drawn]
            for (_, one), pair in zip(drawn, source.names(drawn), strict=True):
                found[labels[group], pair] = one.score
        return found


def plain(rows, **options):
    found = restrict_baskets(rows, **options)
    return {(group, pair): score for group, one in found.items() for pair, score in one.items()}


def is_unmoved(container, folder, per_user=1):
    make = partial(CONTAINERS[container], NAMES)
    apart = supports(make(CROWD, folder), per_user) + supports(make(NEW, folder), per_user)
    return supports(make(TOGETHER, folder), per_user) == apart


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_individual_more_moves_nobody_else(container, tmp_path):
    assert is_unmoved(container, tmp_path)


def test_the_same_where_each_counts_in_two_groups(tmp_path):
    assert is_unmoved("pandas", tmp_path, per_user=2)


def test_an_order_of_groups_that_follows_from_other_rows_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(pandas_reader, "sort_numbers", lambda numbers, labels: (numbers, labels))
    assert not is_unmoved("pandas", tmp_path)


@pytest.mark.parametrize("per_user", [1, 2])
def test_supports_are_those_of_plain_python(per_user):
    assert supports(pd.DataFrame(columns_of(NAMES, CROWD)), per_user) == plain(
        CROWD, per_user=per_user
    )
    declared = ("place 1", "place 3")
    found = supports(pd.DataFrame(columns_of(NAMES, CROWD)), per_user, declared=declared)
    assert found == plain(CROWD, per_user=per_user, declared=declared)


def test_baskets_are_individuals_where_there_are_no_users():
    rows = [(None, f"{user} {basket}", group, item) for user, basket, group, item in CROWD]
    frame = pd.DataFrame(columns_of(NAMES, rows)).drop(columns="user")
    assert supports(frame, columns=Columns("item")) == plain(rows)
    new = [(None, f"{user} {basket}", group, item) for user, basket, group, item in NEW]
    both = pd.DataFrame(columns_of(NAMES, [*new, *rows])).drop(columns="user")
    assert supports(both, columns=Columns("item")) == Counter(plain(rows)) + Counter(plain(new))


ODD = {
    "no group": ("u3", "b1", None, "tea 1"),
    "no item": ("u3", "b1", "place 0", None),
    "a group that is a number": ("new", "b1", 7, "tea 1"),
    "a group that is a date": ("new", "b1", pd.Timestamp("2026-01-02"), "tea 1"),
    "a basket that is a number": ("new", 1, "place 0", "tea 1"),
    "a user that is a number": (5, "b1", "place 0", "tea 1"),
    "an item that is a number": ("new", "b1", "place 0", 9),
}


@pytest.mark.parametrize("row", ODD.values(), ids=ODD)
def test_one_row_of_any_type_moves_nobody_else(row):
    """One item makes no pair. pandas makes objects of the whole column."""
    assert supports(pd.DataFrame(columns_of(NAMES, [row, *CROWD]))) == plain(CROWD)
