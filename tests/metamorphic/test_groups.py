"""One individual more, or one odd row, changes nothing about where others count.

The scores of all groups must be what they were before, and what the new one has where it is alone,
in every container and wherever among the rows it stands; of items and of itemsets.
"""

from __future__ import annotations

import pandas as pd
import pytest
from group_tables import CONTAINERS, ENTRIES, columns_of, open_itemsets

from privmax.sources.containers import pandas as pandas_reader
from privmax.sources.roles import Columns


@pytest.fixture(params=ENTRIES.values(), ids=ENTRIES)
def entry(request):
    return request.param


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_individual_more_moves_nobody_else(entry, container, tmp_path):
    assert entry.is_unmoved(container, tmp_path)


def test_the_same_where_each_counts_in_two_groups(entry, tmp_path):
    assert entry.is_unmoved("pandas", tmp_path, per_user=2)


def test_an_order_of_groups_that_follows_from_other_rows_is_noticed(entry, monkeypatch, tmp_path):
    monkeypatch.setattr(pandas_reader, "sort_numbers", lambda numbers, labels: (numbers, labels))
    assert not entry.is_unmoved("pandas", tmp_path)


@pytest.mark.parametrize("place", [0, 30])
@pytest.mark.parametrize(
    ("entry", "row"),
    [(entry, row) for entry in ENTRIES.values() for row in entry.odd.values()],
    ids=[f"{name}, {row}" for name, entry in ENTRIES.items() for row in entry.odd],
)
def test_one_row_of_any_type_moves_nobody_else(entry, row, place):
    """pandas makes objects of the whole column."""
    rows = [*entry.crowd[:place], row, *entry.crowd[place:]]
    found = entry.read(pd.DataFrame(columns_of(entry.names, rows)))
    own = entry.expect([row] if entry is ENTRIES["items"] else [])
    assert found == entry.expect(entry.crowd) + own


TIES = {
    "whole numbers": [9, 10, -1, -10],
    "floats": [9.5, 10.0, -1.5, float("-inf")],
    "text of numbers": ["9", "10", "B", "a", "é", ""],
    "dates": [pd.Timestamp(f"{year}-01-02") for year in (1999, 2024, 2026)],
}
ROWS = {"text": "x", "a float": 0.25, "none": None, "a date": pd.Timestamp("2020-05-06")}


@pytest.mark.parametrize("labels", TIES.values(), ids=TIES)
@pytest.mark.parametrize("odd", ROWS.values(), ids=ROWS)
def test_ties_are_broken_alike_whatever_type_pandas_gives_the_column(labels, odd):
    """All have a tie, and one row changes the type of all others."""
    entry = ENTRIES["items"]
    rows = [
        (f"{first} {second}", group, "tea")
        for first in range(len(labels))
        for second in range(first)
        for group in (labels[first], labels[second])
    ]
    more = [*rows, ("new", odd, "rare")]
    before, after = (entry.read(pd.DataFrame(columns_of(entry.names, one))) for one in (rows, more))
    assert before == entry.expect(rows)
    assert {key: score for key, score in after.items() if key[1] != "rare"} == before


@pytest.mark.parametrize("per_user", [1, 2])
def test_scores_are_those_of_plain_python(entry, per_user):
    frame = pd.DataFrame(columns_of(entry.names, entry.crowd))
    assert entry.read(frame, per_user=per_user) == entry.expect(entry.crowd, per_user=per_user)
    some = {"per_user": per_user, "declared": ("place 1", "place 3")}
    assert entry.read(frame, **some) == entry.expect(entry.crowd, **some)


def test_baskets_are_individuals_where_there_are_no_users():
    entry = ENTRIES["itemsets"]._replace(
        open=lambda data, **options: open_itemsets(data, columns=Columns("item"), **options)
    )
    rows, new = (
        [(None, f"{user} {basket}", group, item) for user, basket, group, item in some]
        for some in (entry.crowd, entry.new)
    )
    frames = [
        pd.DataFrame(columns_of(entry.names, some)).drop(columns="user")
        for some in (rows, [*new, *rows])
    ]
    alone, both = map(entry.read, frames)
    assert alone == entry.expect(rows)
    assert both == entry.expect(rows) + entry.expect(new)
