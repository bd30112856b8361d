"""Itemsets of groups in every engine: the same restriction, the same supports and release."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import privmax
from privmax.errors import DataError
from privmax.itemsets import Layout, top_itemsets
from privmax.itemsets.reading.grouped import open_groups
from privmax.sources.grouped import Grouping
from privmax.sources.roles import Columns
from privmax.testing import SeededCoins

sys.path.append(str(Path(__file__).parents[1] / "exact"))

from plain_baskets import restrict_baskets
from plain_groups import read_groups

PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"basket": "receipt", "item": "item", "user": "user"}
GROUPS = ["a", "B", "b", "b ", "é", "z", ""]
"""Collations sort them in other orders, or call some of them equal."""

DRAWN = Random(36)
ROWS = [
    (f"u{who}", DRAWN.choice(["r1", "R1", "r2"]), DRAWN.choice(GROUPS),
     DRAWN.choice(["tea", "Tea", "ale", "té"]))
    for who in range(60)
    for _ in range(DRAWN.randint(1, 12))
]  # fmt: skip
ROWS += [("u1", "r1", None, "tea"), ("u2", "r1", "a", None), ("u3", None, None, "tea")]
TYPES = dict.fromkeys(("user", "receipt", "region", "item"), "string")


def load_rows(load, rows=ROWS):
    return load(dict(zip(TYPES, zip(*rows, strict=True), strict=True)), types=TYPES)


@pytest.mark.parametrize("per_user", [1, 2])
@pytest.mark.parametrize("declared", [None, ("", "B", "b", "z", "ω")], ids=["open", "declared"])
def test_supports_are_those_of_plain_python(load, declared, per_user):
    grouping = Grouping("region", declared, per_user)
    expected = restrict_baskets(ROWS, declared, per_user)
    columns = Columns("item", "user")
    with closing(open_groups(load_rows(load), columns, ["receipt"], grouping)) as source:
        labels = declared
        if declared is None:
            labels = sorted({group for *_, group, item in ROWS if group is not None and item})
            assert source.group_names(range(len(labels))) == labels
        expected = {label: expected.get(label, Counter()) for label in labels}
        assert read_groups(source, labels) == expected


def test_baskets_are_individuals_without_users(load):
    rows = [(None, *row[1:]) for row in ROWS if row[1] is not None]
    with closing(
        open_groups(
            load_rows(load, [row for row in ROWS if row[1] is not None]),
            Columns("item"),
            ["receipt"],
            Grouping("region", ("B", "b")),
        )
    ) as source:
        assert read_groups(source, ("B", "b")) == restrict_baskets(rows, ("B", "b"))


def clear_rows():
    """Answers that leave no chance."""
    rows, who = [], 0
    for group, pair, many in (("b", ("tea", "té"), 400), ("B", ("Tea", "ale"), 300)):
        for _ in range(many):
            who += 1
            rows += [(f"u{who}", "r", group, item) for item in pair]
            rows.append((f"u{who}", "r", "é", "rum"))
    return rows


@pytest.mark.parametrize("groups", ["open", ["b", "B", "é"]], ids=["open", "declared"])
def test_the_release_is_the_same_everywhere(load, groups, left_behind):
    table = load_rows(load, clear_rows())
    before = left_behind()
    release = top_itemsets(
        table, **NAMED, **PRICE, by=privmax.Groups("region", groups), supports=9,
        coins=SeededCoins(5),
    )  # fmt: skip
    expected = {"B": (("Tea", "ale"),), "b": (("tea", "té"),), "é": ()}
    assert release.groups == {label: expected[label] for label in release.groups}
    assert {"B", "b"} <= release.groups.keys()
    assert all(abs(a - b) < 20 for a, b in zip(release.supports, (300, 400), strict=True))
    assert left_behind() == before


def test_no_rows(load):
    table = load({name: [] for name in TYPES}, types=TYPES)
    assert top_itemsets(table, **NAMED, **PRICE, by="region").groups == {}
    declared = privmax.Groups("region", ["n"])
    assert top_itemsets(table, **NAMED, **PRICE, by=declared).groups == {"n": ()}


def test_rows_without_a_user_are_refused_or_left_out(load):
    rows = [*clear_rows(), (None, "r", "b", "tea")]
    with pytest.raises(DataError, match="no user"):
        top_itemsets(load_rows(load, rows), **NAMED, **PRICE, by="region")
    layout = Layout(missing_users="drop")
    release = top_itemsets(load_rows(load, rows), **NAMED, **PRICE, by="region", layout=layout)
    assert release.groups["b"] == (("tea", "té"),)
