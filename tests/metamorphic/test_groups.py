"""One individual more, or one odd row, changes nothing about where others count.

The scores of all groups must be what they were before, and what the new one has where it is alone,
in every container and wherever among the rows it stands.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial

import numpy as np
import pandas as pd
import pytest
from group_tables import CONTAINERS, columns_of
from plain_groups import restrict

from privmax.mechanisms.contract import Outcome
from privmax.sources.containers import pandas as pandas_reader
from privmax.sources.grouped import Grouping
from privmax.sources.reading import grouped
from privmax.sources.tables import Columns

NAMES = ("user", "region", "item")
COLUMNS = Columns("item", "user")


numbers = np.random.default_rng(11)
CROWD = [
    (f"u{who}", f"place {numbers.integers(5)}", f"tea {numbers.integers(3)}")
    for who in numbers.permutation(40).tolist()
    for _ in range(int(numbers.integers(1, 5)))
]
"""Rows of 40 individuals, many of whom have ties between groups."""

NEW = [("new", f"place {place}", item) for place, item in
       ((9, "tea 0"), (4, "tea 1"), (0, "ale"), (9, "tea 0"), (4, "tea 2"))]  # fmt: skip
TOGETHER = [*NEW[:3], *CROWD[:9], NEW[3], *CROWD[9:], NEW[4]]


def scores(data, per_user=1):
    """The score of every item of every group."""
    with closing(grouped(data, COLUMNS, Grouping("region", None, per_user))) as source:
        found, number = Counter(), len(source.count_chosen(1))
        labels = source.group_names(range(number))
        drawn = [
            (group, Outcome(score, index))
            for group in range(number)
            for score, count in source.profile(group)._levels._levels
            for index in range(count)
        ]
        for (group, one), item in zip(drawn, source.names(drawn), strict=True):
            found[labels[group], item] = one.score
        return found


def is_unmoved(container, folder, per_user=1):
    make = partial(CONTAINERS[container], NAMES)
    apart = scores(make(CROWD, folder), per_user) + scores(make(NEW, folder), per_user)
    return scores(make(TOGETHER, folder), per_user) == apart


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_individual_more_moves_nobody_else(container, tmp_path):
    assert is_unmoved(container, tmp_path)


def test_the_same_where_each_counts_in_two_groups(tmp_path):
    assert is_unmoved("pandas", tmp_path, per_user=2)


def test_an_order_of_groups_that_follows_from_other_rows_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(pandas_reader, "sort_numbers", lambda numbers, labels: (numbers, labels))
    assert not is_unmoved("pandas", tmp_path)


ODD = {
    "no group": ("u3", None, "tea 1"),
    "no item": ("u3", "place 0", None),
    "a group that is a number": ("new", 7, "tea 1"),
    "a group that is a float": ("new", 0.5, "tea 1"),
    "a group that is a truth": ("new", True, "tea 1"),
    "a group that is a date": ("new", pd.Timestamp("2026-01-02"), "tea 1"),
    "a user that is a number": (5, "place 0", "tea 1"),
    "an item that is a number": ("new", "place 0", 9),
}


@pytest.mark.parametrize("row", ODD.values(), ids=ODD)
def test_one_row_of_any_type_moves_nobody_else(row):
    """pandas makes objects of the whole column."""
    before = scores(pd.DataFrame(columns_of(NAMES, CROWD)))
    after = scores(pd.DataFrame(columns_of(NAMES, [row, *CROWD])))
    own = {} if row[1] is None or row[2] is None else {(row[1], row[2]): 1}
    assert sum((after - before).values()) == len(own)
    assert not before - after


def test_scores_are_those_of_plain_python():
    expected = {
        (group, item): score
        for group, counts in restrict(CROWD).items()
        for item, score in counts.items()
    }
    assert scores(pd.DataFrame(columns_of(NAMES, CROWD))) == expected
