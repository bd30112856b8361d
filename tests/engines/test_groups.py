"""Groups in every engine: the same restriction, the same scores, and the same release."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random

import ibis
import numpy as np
import pytest

import privmax
from privmax.errors import DataError, ParameterError
from privmax.mechanisms.contract import Outcome
from privmax.sources.grouped import GroupedSource, Grouping
from privmax.sources.reading import grouped
from privmax.sources.roles import Columns
from privmax.testing import SeededCoins

sys.path.append(str(Path(__file__).parents[1] / "exact"))

from plain_groups import levels_of, read_groups, restrict

COLUMNS = Columns("item", "user")
PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"item": "item", "user": "user"}
GROUPS = ["a", "B", "b", "b ", "é", "z", "Ä", ""]
"""Collations sort them in other orders, or call some of them equal."""

DRAWN = Random(35)
ROWS = [
    (f"u{who}", DRAWN.choice(GROUPS), DRAWN.choice(["tea", "Tea", "ale", "té"]))
    for who in range(80)
    for _ in range(DRAWN.randint(1, 9))
]
ROWS += [("u1", None, "tea"), ("u2", "a", None), ("u3", None, None)]


def columns_of(rows):
    users, groups, items = zip(*rows, strict=True)
    return {"user": users, "region": groups, "item": items}


TYPES = {"user": "string", "region": "string", "item": "string"}


def load_rows(load, rows=ROWS):
    return load(columns_of(rows), types=TYPES)


@pytest.mark.parametrize("per_user", [1, 2, 2**63])
@pytest.mark.parametrize(
    "declared", [None, ("", "B", "b", "z", "é", "ω")], ids=["open", "declared"]
)
def test_scores_are_those_of_plain_python(load, declared, per_user):
    grouping = Grouping("region", declared, per_user)
    expected = restrict(ROWS, declared, per_user)
    with closing(grouped(load_rows(load), COLUMNS, grouping)) as source:
        labels = sorted(expected) if declared is None else declared
        if declared is None:
            everyone = sorted({group for _, group, item in ROWS if group is not None and item})
            assert source.group_names(range(len(everyone))) == everyone
            labels = everyone
            assert source.group_names([2, 0]) == [everyone[2], everyone[0]]
        expected = {label: expected.get(label, Counter()) for label in labels}
        assert read_groups(source, labels) == expected
        people = source.count_chosen(1)
        members = restrict([(u, g, "same") for u, g, item in ROWS if item], declared, per_user)
        assert people.tolist() == [members.get(label, Counter())["same"] for label in labels]


def test_every_row_is_an_individual_without_users(load):
    rows = [row for row in ROWS if row[1] is not None and row[2] is not None]
    grouping = Grouping("region", ("B", "b"))
    with closing(grouped(load_rows(load), Columns("item"), grouping)) as source:
        expected = {
            label: Counter(item for _, group, item in rows if group == label)
            for label in ("B", "b")
        }
        assert read_groups(source, ("B", "b")) == expected
        totals = [sum(expected[label].values()) for label in ("B", "b")]
        assert source.count_chosen(1).tolist() == totals


def test_weights_are_clipped_per_individual(load):
    rows = [("u", "a", "tea", 2), ("u", "a", "tea", 9), ("v", "a", "tea", 1), ("v", "b", "ale", 5),
            ("v", "a", "ale", -3), ("w", "b", "ale", 2)]  # fmt: skip
    users, groups, items, weights = zip(*rows, strict=True)
    table = load({"user": users, "region": groups, "item": items, "weight": weights})
    columns = Columns("item", "user", weight="weight", bound=5)
    with closing(grouped(table, columns, Grouping("region", ("a", "b")))) as source:
        assert read_groups(source, ("a",)) == {"a": {"tea": 6}}  # open: what has 0 is not listed
        assert read_groups(source, ("a", "b"))["b"] is not None
        assert levels_of(Counter({"tea": 6, "ale": 0})) == source.profile(0)._levels._levels
        assert source.profile(0).sensitivity == 5
        assert source.profile(1)._levels._levels == [(2, 1)]


def clear_rows():
    """Answers that leave no chance: group, best item, how many individuals have it."""
    rows, who = [], 0
    for group, best, many in (("b", "tea", 400), ("B", "Tea", 300), ("é", "ale", 500)):
        for _ in range(many):
            who += 1
            rows += [(f"u{who}", group, best), (f"u{who}", group, best), (f"u{who}", "a", "rum")]
    return rows


@pytest.mark.parametrize("groups", ["open", ["é", "b", "B", "a", "none"]], ids=["open", "declared"])
def test_the_release_is_the_same_everywhere(load, groups):
    table = load_rows(load, clear_rows())
    by = privmax.Groups("region", groups)
    release = privmax.select(table, **NAMED, **PRICE, by=by, coins=SeededCoins(5))
    expected = {"B": ("Tea",), "b": ("tea",), "é": ("ale",)}
    if groups != "open":
        expected = {"B": ("Tea",), "a": (), "b": ("tea",), "none": (), "é": ("ale",)}
    assert release.groups == expected
    assert list(release.groups) == list(expected)


def test_several_items_and_counts(load):
    rows = [
        (who, "n" if who < 500 else "s", item)
        for who in range(900)
        for item in ("x", "y", "rare" if who % 300 == 7 else "y")
    ]
    users, groups, items = zip(*rows, strict=True)
    table = load({"user": users, "region": groups, "item": items})
    by = privmax.Groups("region", ["n", "s"])
    release = privmax.select(table, **NAMED, epsilon=2, delta="1e-6", by=by, k=2, counts=9)
    assert release.groups == {"n": ("x", "y"), "s": ("x", "y")}
    for count, true in zip(release.counts, (500, 500, 400, 400), strict=True):
        assert abs(count - true) < 60


def test_groups_may_be_whole_numbers(load):
    rows = [(who, who % 2 + 9, "tea") for who in range(400)]
    users, groups, items = zip(*rows, strict=True)
    table = load({"user": users, "region": groups, "item": items})
    for by in ("region", privmax.Groups("region", [10, 9, 11])):
        found = privmax.select(table, **NAMED, **PRICE, by=by).groups
        answered = {group: items for group, items in found.items() if items}
        assert answered == {9: ("tea",), 10: ("tea",)}
        assert list(found) == sorted(found)


def test_no_rows(load):
    table = load({"user": [], "region": [], "item": []}, types=TYPES)
    assert privmax.select(table, **NAMED, **PRICE, by="region").groups == {}
    declared = privmax.Groups("region", ["n", "s"])
    assert privmax.select(table, **NAMED, **PRICE, by=declared).groups == {"n": (), "s": ()}


def test_nothing_is_left_behind(load, left_behind):
    table = load_rows(load, clear_rows())
    before = left_behind()
    privmax.select(table, **NAMED, **PRICE, by="region")
    assert left_behind() == before


def test_rows_without_a_user_are_refused_or_left_out(load):
    table = load({"user": [*map(str, range(90)), None], "region": ["n"] * 91, "item": ["tea"] * 91})
    with pytest.raises(DataError, match="no user"):
        privmax.select(table, **NAMED, **PRICE, by="region")
    columns = Columns(missing_users="drop")
    assert privmax.select(table, **NAMED, **PRICE, by="region", columns=columns).groups == {
        "n": ("tea",)
    }


def test_columns_that_are_not_there_and_groups_that_do_not_fit(load):
    table = load({"user": [1, 2], "region": [3, 4], "item": ["tea", "ale"]})
    with pytest.raises(ParameterError) as refused:
        privmax.select(table, **NAMED, **PRICE, by="reigon")
    assert refused.value.name == "by"


ODD = {"a tuple": ("a", "b"), "a duration": timedelta(days=1), "a set": frozenset("a")}


@pytest.mark.parametrize("label", ODD.values(), ids=ODD)
@pytest.mark.parametrize("region", ["n", 3], ids=["text", "numbers"])
def test_a_declared_group_that_no_cell_holds_is_refused_by_name(load, label, region):
    table = load({"user": [1, 2], "region": [region] * 2, "item": ["tea", "ale"]})
    by = privmax.Groups("region", [region, label])
    with pytest.raises(ParameterError, match="does not fit the column") as refused:
        privmax.select(table, **NAMED, **PRICE, by=by)
    assert refused.value.name == "groups"


class Counted(GroupedSource):
    """Counts what the engine is asked."""

    def __init__(self, *arguments, **options):
        self.asked = 0
        super().__init__(*arguments, **options)

    def _ask(self, table):
        self.asked += 1
        return super()._ask(table)


@pytest.mark.parametrize("number", [3, 300])
def test_questions_do_not_grow_with_groups(load, number):
    rows = [(who, who % number, "tea") for who in range(900)]
    users, groups, items = zip(*rows, strict=True)
    table = load({"user": users, "region": groups, "item": items})
    with closing(Counted(table, COLUMNS, Grouping("region"))) as source:
        everyone = list(range(number))
        assert np.unique(source.count_chosen(1)).tolist() == [900 // number]
        assert source.group_names(everyone) == everyone
        drawn = [(one, Outcome(900 // number, 0)) for one in everyone]
        assert source.names(drawn) == ["tea"] * number
        assert source.asked == 3
    assert isinstance(table, ibis.Table)
