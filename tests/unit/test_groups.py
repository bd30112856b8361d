"""The best of every group: restriction, costs, what comes out, and what is refused."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privmax
from privmax import Columns, Groups, NestedMargin, Privacy, Profile, Scores
from privmax.best_per_group import BestPerGroup
from privmax.errors import ParameterError
from privmax.groups import MOST_GROUPS, DrawnGroups
from privmax.selection import Selection
from privmax.sources.grouped import Grouping
from privmax.sources.reading import grouped
from privmax.testing import SeededCoins
from privmax.universe import OPEN_UNIVERSE

PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"item": "item", "user": "user"}
ROWS = pd.DataFrame(
    [
        (who, region, item)
        for who in range(900)
        for region, item in (
            ("north" if who < 500 else "south", "tea" if who < 500 else "ale"),
            ("north" if who < 500 else "south", "fig" if who % 9 else "rum"),
            ("west", "oat"),
        )
    ],
    columns=["user", "region", "item"],
)
"""Everyone counts in the north or the south, and has one row in the west."""


def select(data=ROWS, **options):
    return privmax.select(data, **{**NAMED, **PRICE, "by": "region", **options})


def test_each_individual_counts_in_its_most_frequent_group():
    declared = Groups("region", ["west", "south", "north"])
    assert select(by=declared).groups == {"north": ("tea",), "south": ("ale",), "west": ()}
    assert select().groups == {"north": ("tea",), "south": ("ale",)}


def test_ties_are_broken_by_name_and_undeclared_groups_do_not_count():
    rows = ROWS.drop(index=ROWS.index[1::3])  # one row at home, one in the west
    assert select(rows).groups == {"north": ("tea",), "south": ("ale",)}
    declared = Groups("region", ["west"])
    assert select(rows, by=declared).groups == {"west": ("oat",)}
    later = rows.replace({"region": {"west": "east"}})
    assert select(later).groups == {"east": ("oat",)}


def test_several_groups_count_at_their_composed_cost():
    release = select(by=Groups("region", ["north", "west"], 2), epsilon=4)
    assert release.groups == {"north": ("tea",), "west": ("oat",)}
    assert release.privacy == Privacy(4, "1e-6")
    assert release.mechanism.privacy() == Privacy(2, "5e-7")


def test_without_a_user_every_row_is_an_individual():
    release = select(user=None, ledger=privmax.Request(unit="row"), k=2)
    assert release.groups == {
        "north": ("fig", "tea"), "south": ("ale", "fig"), "west": ("oat",),
    }  # fmt: skip
    assert release.unit == "row"


def test_rows_without_a_group_or_an_item_do_not_count():
    odd = pd.DataFrame([(1, None, "tea")] * 50 + [(2, "west", None)] * 50, columns=ROWS.columns)
    with_odd = pd.concat([ROWS, odd], ignore_index=True)
    with_groups = grouped(with_odd, Columns("item", "user"), Grouping("region"))
    without = grouped(ROWS, Columns("item", "user"), Grouping("region"))
    for source in (with_groups, without):
        assert source.count_chosen(1).tolist() == [500, 400, 0]
        assert source.group_names([0, 2]) == ["north", "west"]
        source.close()


def question(groups, **options):
    made = Selection.of(Columns("item", "user"), groups=groups, universe=OPEN_UNIVERSE, **options)
    assert isinstance(made.releasable, BestPerGroup)
    return made.releasable


@pytest.mark.parametrize("times", [1, 3])
def test_the_cost_is_what_was_asked_for(times):
    price = {"epsilon": Fraction(3, 2), "delta": Fraction(1, 10**6)}
    declared = question(Groups("g", ["a"], times), **price)
    assert declared.privacy() == Privacy(**price)
    assert declared.finder is None
    found = question(Groups("g", "open", times, "1/3"), **price)
    assert found.privacy() == Privacy(**price)
    assert found.finder.privacy() * times == Privacy(Fraction(1, 2), Fraction(1, 3 * 10**6))
    counted = question(Groups("g", ["a"], times), **price, counts=Fraction(1, 2))
    assert counted.privacy().epsilon == 2
    assert counted.best.counts == Fraction(1, 2 * times)


def test_a_given_mechanism_is_paid_for_every_group_of_an_individual():
    given = NestedMargin(epsilon=1, delta="1e-6")
    assert question(Groups("g", ["a"], 2), given=given).privacy() == Privacy(2, "2e-6")
    found = question(Groups("g", "open", 2), given=given)
    assert found.privacy() == Privacy(Fraction(8, 3), Fraction(8, 3 * 10**6))


def test_one_declared_group_each_keeps_a_bounded_range():
    given = {"given": "exponential", "epsilon": 1}
    assert question(Groups("g", ["a"]), **given).charge().bounded_range
    assert not question(Groups("g", ["a"], 2), **given).charge().bounded_range
    with pytest.raises(ParameterError, match="finding groups takes a delta above 0"):
        question(Groups("g"), **given).charge()


def test_the_release_is_a_table():
    release = select(by=Groups("region", ["north", "south", "none"]), k=2, counts=9)
    assert release.items == (("north", "fig"), ("north", "tea"), ("south", "ale"), ("south", "fig"))
    assert release.unanswered == ("none",)
    assert [one["group"] for one in release.answers] == ["none", "north", "south"]
    assert release.answers[0] == {"group": "none", "items": [], "counts": []}
    frame = release.to_frame("pandas")
    assert frame.columns.tolist() == ["group", "item", "count", "error"]
    assert frame["group"].tolist() == ["north", "north", "south", "south"]
    assert list(frame["count"]) == list(release.counts)
    assert str(release).startswith("north: fig: ")
    assert "No answer in 1 of 3 groups: no item stood out enough there." in release.notes
    assert release.to_dict()["groups"] == release.answers


def test_ranks_begin_anew_in_every_group():
    release = select(by=Groups("region", ["north", "south"]), k=2, ranked=True, epsilon=9)
    assert release.groups == {"north": ("tea", "fig"), "south": ("ale", "fig")}
    frame = release.to_frame("pyarrow")
    assert frame["rank"].to_pylist() == [1, 2, 1, 2]
    assert frame.column_names == ["group", "item", "rank", "relative", "apart", "close"]
    assert frame["relative"].to_pylist() == list(release.relative)


class Told:
    """What `GroupedSource` answers, with outcomes that are known."""

    levels = ([(900, 1), (500, 1)], [(70, 2)])

    def profile(self, group):
        return Profile(self.levels[group])

    def names(self, drawn):
        return [f"{group}-{one.score}" for group, one in drawn]

    def encode(self, label):
        return label


def test_distances_that_are_paid_for_are_released_in_every_group():
    asked = question(Groups("g", ["a", "b"]), k=2, ranked=True, epsilon=9, delta="1e-6")
    release = asked.release(asked.draw(Told(), SeededCoins(1)))
    assert release.groups == {"a": ("0-900", "0-500"), "b": ("1-70", "1-70")}
    (first, behind), (other, near) = (one["relative"] for one in release.answers)
    assert (first, other) == (0, 0)
    assert (abs(behind + 400) < 9, abs(near) < 9) == (True, True)
    assert [one["close"] for one in release.answers] == [[False, False], [False, True]]
    assert release.relative == (0, behind, 0, near)
    assert release.describe_order()[::2] == ["first", "first"]
    assert release.apart == release.to_dict()["apart"]
    assert asked.read(asked.write(release.payload, Told())) == release.payload
    empty = question(
        Groups("g", ["a", "b", "c"]), k=2, ranked=True, epsilon=30, delta="1e-6"
    ).draw_nothing()
    assert (empty.relative, empty.sizes) == ((), (0, 0, 0))


def test_a_table_that_was_recorded_without_distances_is_read():
    asked = question(Groups("g", ["a"]), k=2, ranked=True, epsilon=30, delta="1e-6")
    old = {"groups": ["a"], "sizes": [1], "items": ["tea"], "free": {}}
    release = asked.release(asked.read(old))
    assert (release.relative, release.close) == (None, None)
    assert release.answers == [{"group": "a", "items": ["tea"]}]
    assert release.notes == ("Items of a group: best first, as drawn.",)


def test_a_payload_is_written_and_read():
    drawn = DrawnGroups(("tea", 7), counts=(3, 4), labels=("n", 2.5, "s"), sizes=(1, 0, 1))
    assert DrawnGroups.from_json(drawn.to_json()) == drawn


def test_open_groups_that_few_have_do_not_appear():
    rare = pd.DataFrame([(5000, "rare", "tea")] * 9, columns=ROWS.columns)
    assert "rare" not in select(pd.concat([ROWS, rare]), coins=SeededCoins(3)).groups


def test_weights_are_summed_in_the_own_group():
    rows = ROWS.assign(weight=3)
    columns = Columns(weight="weight", bound=2)
    release = select(rows, columns=columns, by=Groups("region", ["north", "south"]), counts=50)
    counts = dict(zip(release.items, release.counts, strict=True))
    assert release.groups == {"north": ("tea",), "south": ("ale",)}
    assert abs(counts["north", "tea"] - 1000) < 50


def test_one_pass_over_the_rows_of_a_stream(tmp_path):
    """A pipe of rows can be read once only, and is enough."""
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    with (tmp_path / "rows.csv").open("rb") as file:
        assert select(file).groups == {"north": ("tea",), "south": ("ale",)}


def test_a_check_draws_nothing():
    release = select(ledger=privmax.Request(check=True))
    assert release.checked
    with pytest.raises(ParameterError, match="nothing was drawn"):
        release.to_frame()


WRONG = {
    "a column that is not there": ({"by": "reigon"}, "by", "region"),
    "by is the item": ({"by": "item"}, "by", "the same column is given as item"),
    "by is the user": ({"by": "user"}, "by", "the same column is given as user"),
    "by is a number": ({"by": 3}, "by", "name a column"),
    "no groups": ({"by": Counter}, "by", "name a column"),
    "ready scores": ({"user": None, "score": "user"}, "by", "ready scores"),
    "no item": ({"item": None}, "item", "groups need a table"),
    "a closed universe": ({"universe": ["tea", "ale"]}, "by", "open universe"),
    "replace": ({"scores": Scores(neighbors="replace")}, "by", "leave a group for another"),
    "a mechanism for replace": (
        {"mechanism": NestedMargin(epsilon=1, delta="1e-6", neighbors="replace"), "epsilon": None,
         "delta": None}, "by", "leave a group for another",
    ),
    "several groups of a row": (
        {"user": None, "by": Groups("region", ["a"], 2)}, "groups_per_user", "counts in one group",
    ),
    "a group that does not fit": (
        {"data": ROWS.assign(region=1).to_dict("list")}, "data", "groups need a table",
    ),
    "epsilon below 0": ({"epsilon": -1}, "epsilon", "it must be above 0"),
    "no delta": ({"delta": 0}, "delta", "above 0"),
    "delta 1": ({"delta": 1}, "delta", "it must be below 1"),
    "delta 1 of several groups": (
        {"delta": 1, "by": Groups("region", ["a"], 2)}, "delta", "it must be below 1",
    ),
    "a mechanism without delta": (
        {"mechanism": "exponential"}, "mechanism", "and its delta is 0",
    ),
    "a mechanism that does not take delta": (
        {"mechanism": "max-of-laplaces", "k": 2}, "delta", "delta='1e-6' is not allowed: max-of",
    ),
    "sensitivity": ({"scores": Scores(sensitivity=2)}, "sensitivity", "groups are counted"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "name", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(options, name, told):
    options = dict(options)
    with pytest.raises(ParameterError) as refused:
        select(options.pop("data", ROWS), **options)
    assert refused.value.name == name
    assert told in str(refused.value)


GROUPS = {
    "none": ([], "there must be at least one group"),
    "none, in a set": (frozenset(), "there must be at least one group"),
    "none, in an array": (np.array([]), "there must be at least one group"),
    "a number": (3, "it must be open, or a collection of all groups"),
    "a text": ("north", "it must be open, or a collection of all groups"),
    "bytes": (b"north", "it must be open, or a collection of all groups"),
    "a generator": ((name for name in "ab"), "it must be open, or a collection of all groups"),
    "twice": (["a", "b", "a"], "more than once"),
    "missing": (["a", None], "is missing"),
    "lists": ([["a"]], "hashable"),
    "more than can be drawn from": (range(MOST_GROUPS + 1), "at most 10,000,000 groups"),
    "more than a length can say": (range(10**30), "at most 10,000,000 groups"),
}


@pytest.mark.parametrize(("groups", "told"), GROUPS.values(), ids=GROUPS)
def test_groups_that_cannot_be_declared(groups, told):
    with pytest.raises(ParameterError, match=told) as refused:
        Groups("region", groups)
    assert refused.value.name == "groups"


NUMBERS = [
    {"groups_per_user": 0},
    {"groups_per_user": 1.5},
    {"groups_share": 0},
    {"groups_share": 1},
    {"groups": ["a"], "groups_share": "1/4"},
]


@pytest.mark.parametrize("options", NUMBERS, ids=str)
def test_numbers_of_groups_that_are_not_allowed(options):
    with pytest.raises(ParameterError) as refused:
        Groups("region", **options)
    assert refused.value.name == list(options)[-1]


def test_declared_groups_must_fit_their_column():
    rows = ROWS.assign(region=1)
    with pytest.raises(ParameterError, match="a group does not fit the column of groups"):
        select(pl.from_pandas(rows), by=Groups("region", ["north", 1]))


SAME_VALUE = {
    "whole": (pa.int64(), 1, [1, 1.0]),
    "rounded": (pa.int64(), 1, [1, 1.25, 1.5]),
    "rounded alone": (pa.int64(), 1, [1.5]),
    "text": (pa.int64(), 1, ["1", "01"]),
    "float": (pa.float64(), 1.0, ["1", "1.0"]),
    "short float": (pa.float32(), 0.5, [0.5, 0.1]),
    "truth": (pa.bool_(), True, ["true", "1"]),
    "date": (pa.date32(), date(2024, 1, 1), [date(2024, 1, 1), datetime(2024, 1, 1)]),
    "decimal": (pa.decimal128(38, 0), Decimal(2), [2, "2"]),
}


@pytest.mark.parametrize("name", SAME_VALUE)
@pytest.mark.parametrize("user", [None, "user"])
def test_groups_that_are_one_value_of_the_column_are_refused(name, user):
    """A row counted in each of them, at the cost of one."""
    kind, value, labels = SAME_VALUE[name]
    number = 200
    table = pa.table(
        {"item": ["tea"] * number, "user": range(number), "at": pa.array([value] * number, kind)}
    )
    with pytest.raises(ParameterError, match=r"groups.*(same value|not fit|than once)"):
        privmax.select(
            table, item="item", user=user, by=privmax.Groups("at", labels), epsilon=1, delta=1e-6
        )


def test_a_far_date_of_another_group_changes_nothing(tmp_path):
    """DuckDB compared a table of Arrow with it, and failed."""
    connection = ibis.duckdb.connect(tmp_path / "a.duckdb")
    connection.con.execute(
        "CREATE TABLE t AS SELECT 'x' AS item, range AS u, DATE '2020-01-01' AS g FROM range(20)"
    )
    connection.con.execute("INSERT INTO t VALUES ('x', 99, '20000-01-01')")
    groups = privmax.Groups("g", [date(2020, 1, 1)])
    release = privmax.select(
        connection.table("t"), item="item", user="u", by=groups, epsilon=9, delta=1e-3
    )
    connection.disconnect()
    assert release.groups == {date(2020, 1, 1): ("x",)}
