"""Baskets of tables, on DuckDB and SQLite in memory: what is asked of the engine, what is refused,
what is taken.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections import defaultdict
from contextlib import closing
from decimal import Decimal
from itertools import combinations

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privmax.errors import DataError, EngineError, ParameterError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading import tables
from privmax.itemsets.reading.tables import TableRows, open_table
from privmax.sources.engines.base import Engine

LONG = {"basket": "basket", "item": "item"}
ROWS = {
    "basket": [1, 1, 1, 2, 2, 3, 3, 3, 4, 4],
    "item": ["zorblax", "b", "b", "b", "zorblax", "b", "c", None, "c", "b"],
    "user": [1, 1, 1, 1, 1, 2, 2, 2, 3, 3],
}
PAIRS = {("b", "c"): 2, ("b", "zorblax"): 2}
PAIRS_OF_USERS = {("b", "c"): 2, ("b", "zorblax"): 1}


@pytest.fixture
def engine(request):
    """DuckDB, which groups baskets itself, unless a test asks for another."""
    connection = getattr(ibis, getattr(request, "param", "duckdb")).connect()
    yield connection
    connection.disconnect()


either_form = pytest.mark.parametrize("bits", [tables.MOST_BITS, 0], ids=["bits", "texts"])
"""How sets of items are written: as bits where they are few, otherwise as text."""

both = pytest.mark.parametrize("engine", ["duckdb", "sqlite"], indirect=True)
"""SQLite has no arrays: baskets of many items are grouped here, as they pass."""


@pytest.fixture
def load(engine):
    numbers = itertools.count()
    return lambda rows: engine.create_table(f"data_{next(numbers)}", pa.table(rows))


@pytest.fixture
def questions(monkeypatch):
    """The names of the questions that were put to the engine from now on."""
    put = []
    ask = tables.ask

    def asked(question, answer, *arguments):
        put.append(question)
        return ask(question, answer, *arguments)

    monkeypatch.setattr(tables, "ask", asked)
    return put


def found(baskets, size):
    """{itemset: support}, by definition."""
    holders = defaultdict(set)
    for row in range(baskets.rows):
        owner = row if baskets.owners is None else int(baskets.owners[row])
        codes = sorted(baskets.codes[baskets.offsets[row] : baskets.offsets[row + 1]].tolist())
        for itemset in combinations(codes, size):
            holders[tuple(baskets.labels[code] for code in itemset)].add(owner)
    return {
        itemset: int(baskets.weights[list(owners)].sum()) for itemset, owners in holders.items()
    }


def pairs(source, least=1):
    with closing(source):
        return found(source.survivors(least), 2)


def assert_says_nothing_private(error):
    assert error.__cause__ is None
    assert error.__context__ is None
    for secret in ("zorblax", "quuxley", "7310427"):
        assert secret not in f"{error!s} {error!r}"


# What comes


@either_form
def test_supports_count_individuals(load, bits, monkeypatch):
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    table = load(ROWS)
    for user, supports in ((None, [4, 2, 2]), ("user", [3, 2, 1])):
        with closing(TableRows(table, **LONG, user=user)) as source:
            assert source.labels == ["b", "c", "zorblax"]
            assert source.items == 3
            assert source.bounds().dtype == np.int64
            assert source.bounds().tolist() == [5, 2, 2]
            assert source.survivors(1).supports().tolist() == supports


@pytest.mark.slow
@both
def test_several_columns_tell_baskets_apart_together(load):
    rows = {"who": [1, 1, 1, 11, 2, 2], "when": [1, 1, 11, 1, 1, 1], "item": list("xyxxxy")}
    for user, expected in ((None, {("x", "y"): 2}), ("who", {("x", "y"): 2})):
        with closing(
            TableRows(load(rows), basket=["who", "when"], item="item", user=user)
        ) as source:
            supports = source.survivors(1).supports()
            assert supports.tolist() == ([4, 2] if user is None else [3, 2])
            assert source.longest() == 2
            assert found(source.survivors(1), 2) == expected
    with pytest.raises(ParameterError, match="no such column"):
        TableRows(load(rows), basket=["who", "where"], item="item")


def test_baskets_come_with_how_many_have_them(load):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        baskets = source.survivors(1)
        assert sorted(
            zip(baskets.codes.reshape(-1, 2).tolist(), baskets.weights.tolist(), strict=True)
        ) == [
            ([0, 1], 2),
            ([0, 2], 2),
        ]
        assert (baskets.owners, baskets.individuals, baskets.items) == (None, 4, 3)
        assert (baskets.offsets.dtype, baskets.codes.dtype, baskets.weights.dtype) == (
            np.int64,
            np.int32,
            np.int64,
        )


def test_users_come_with_all_their_baskets(load):
    """User 1 has the same basket twice, which is one."""
    with closing(TableRows(load(ROWS), **LONG, user="user")) as source:
        baskets = source.survivors(1)
        assert baskets.owners.dtype == np.int64
        assert sorted(baskets.owners.tolist()) == baskets.owners.tolist()
        assert (baskets.rows, baskets.individuals) == (2, 3)
        assert found(baskets, 2) == PAIRS_OF_USERS


def test_items_that_are_too_rare_do_not_come(load):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        baskets = source.survivors(3)
        assert (baskets.codes.tolist(), baskets.weights.tolist()) == ([0], [4])
        assert source.survivors(5).individuals in (0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("batch", [tables.BATCH, 3], ids=["at once", "in small parts"])
@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "polars"], indirect=True)
def test_every_itemset_that_survives_has_its_support(load, monkeypatch, users, batch):
    """On rows drawn at random. polars numbers the items in no order."""
    monkeypatch.setattr(tables, "BATCH", batch)
    generator = random.Random(20261115)
    for number in (0, 1, 12, 200, 200):
        items = generator.choice([3, 14, 120])
        rows = {
            "basket": [generator.randrange(12) for _ in range(number)],
            "item": [generator.randrange(items) for _ in range(number)],
            "user": [generator.randrange(5) for _ in range(number)],
        }
        expected = [by_definition(rows, size, users) for size in (1, 2, 3)]
        table = load(pa.table(rows, schema=pa.schema(dict.fromkeys(rows, pa.int64()))))
        with closing(TableRows(table, **LONG, user="user" if users else None)) as source:
            for least in (4, 2, 1):
                baskets = source.survivors(least)
                for size, supports in enumerate(expected, 1):
                    kept = {
                        itemset: support
                        for itemset, support in found(baskets, size).items()
                        if support >= least
                    }
                    assert kept == {
                        itemset: support
                        for itemset, support in supports.items()
                        if support >= least
                    }


def by_definition(rows, size, users):
    contents = defaultdict(set)
    for basket, item, user in zip(*rows.values(), strict=True):
        contents[user if users else basket, basket].add(item)
    holders = defaultdict(set)
    for (owner, _), items in contents.items():
        for itemset in combinations(sorted(items), size):
            holders[itemset].add(owner)
    return {itemset: len(owners) for itemset, owners in holders.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        ["B", "a", "é", "\uffff", "\U0001f600"],
        [-(2**63), -1, 0, 9, 10, 2**63 - 1],
        [Decimal("-1.50"), Decimal("0.25"), Decimal("10.00")],
        [-1.5, 0.0, 2.0, float("inf")],
        [datetime.date(1000, 1, 1), datetime.date(2262, 5, 1)],
        [datetime.datetime(1969, 12, 31, 23), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)],
        [b"\x00", b"a", b"\xff"],
        [False, True],
    ],
    ids=["text", "integers", "decimals", "floats", "dates", "times", "bytes", "truths"],
)
def test_items_of_any_type_come_back_in_their_fixed_order(load, values):
    """Item number i is in baskets i, i + 1, …: the supports tell whether labels and codes belong
    together.
    """
    rows = [
        (basket, value)
        for place, value in enumerate(values)
        for basket in range(place, len(values))
    ]
    random.Random(1).shuffle(rows)
    table = load({"basket": [basket for basket, _ in rows], "item": [value for _, value in rows]})
    with closing(TableRows(table, **LONG)) as source:
        assert source.labels == values
        assert source.bounds().tolist() == list(range(len(values), 0, -1))
        assert found(source.survivors(1), 2) == {
            (values[i], values[j]): len(values) - j for i, j in combinations(range(len(values)), 2)
        }


def test_a_float_that_is_no_number_is_no_item(load):
    table = load({"basket": [1, 1, 2], "item": [1.5, float("nan"), float("nan")]})
    with closing(TableRows(table, **LONG)) as source:
        assert (source.labels, source.bounds().tolist()) == ([1.5], [1])
        assert source.survivors(1).individuals == 1


@pytest.mark.slow
@both
def test_the_longest_basket_is_that_of_most_different_items(load):
    """Of one basket, not of all that a user has."""
    table = load(ROWS)
    more = load(
        {"basket": [1, 1, 1, 1, 2], "item": ["a", "b", "c", "b", "d"], "user": [1, 1, 1, 1, 1]}
    )
    nothing = load(pa.table({"basket": [1], "item": pa.array([None], pa.string()), "user": [1]}))
    for user in (None, "user"):
        for rows, longest in ((table, 2), (more, 3), (nothing, 0)):
            with closing(TableRows(rows, **LONG, user=user)) as source:
                assert source.longest() == longest


@pytest.mark.slow
def test_adding_one_user_moves_no_support_by_more_than_one(load):
    generator = random.Random(7)
    for _ in range(5):
        rows = [
            (generator.randrange(4), generator.choice("abcd"), generator.randrange(6))
            for _ in range(60)
        ]
        everyone = load(dict(zip(ROWS, zip(*rows, strict=True), strict=True)))
        others = load(
            dict(zip(ROWS, zip(*(row for row in rows if row[2]), strict=True), strict=True))
        )
        for size in (1, 2, 3):
            with closing(TableRows(everyone, **LONG, user="user")) as source:
                more = found(source.survivors(1), size)
            with closing(TableRows(others, **LONG, user="user")) as source:
                fewer = found(source.survivors(1), size)
            assert set(fewer) <= set(more)
            assert {support - fewer.get(itemset, 0) for itemset, support in more.items()} <= {0, 1}


# What is asked


def test_sqlite_groups_no_baskets(load, monkeypatch):
    """Otherwise the tests on both would show one thing twice."""
    monkeypatch.setattr(tables, "_stream", lambda *_: pytest.fail("rows were asked for"))
    monkeypatch.setattr(tables, "MOST_BITS", 0)
    assert pairs(TableRows(load(ROWS), **LONG)) == PAIRS
    backend = ibis.sqlite.connect()
    with closing(backend.con), pytest.raises(pytest.fail.Exception, match="rows were asked for"):
        pairs(TableRows(backend.create_table("data", pa.table(ROWS)), **LONG))


def test_what_was_read_is_not_asked_again(load, questions):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        questions.clear()
        assert source.survivors(9).rows == 0
        assert questions == []
        deep = source.survivors(2)
        assert questions == [tables.GROUPING]
        assert (
            source.survivors(1)
            is source.survivors(2)
            is source.survivors(4)
            is source.survivors(99)
            is deep
        )
        assert questions == [tables.GROUPING]


def test_deeper_is_asked_anew(load, questions):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        questions.clear()
        assert found(source.survivors(3), 1) == {("b",): 4}
        assert found(source.survivors(1), 2) == PAIRS
        assert questions == [tables.GROUPING] * 2


@either_form
def test_an_item_of_many_rows_and_few_baskets_comes_when_few_are_asked_for(load, bits, monkeypatch):
    """As text it does not come before; rules about it read down to it, too."""
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    table = load({"basket": [1, 1, 1, 1, 2, 2, 3, 4, 5], "item": list("ddddbdbbb")})
    pair = {("b", "d"): 1}
    with closing(TableRows(table, **LONG)) as source:
        assert found(source.survivors(4), 2) == (pair if bits else {})
        assert found(source.survivors(2), 2) == pair
    with closing(TableRows(table, **LONG)) as source:
        assert source.count_holders([[0], [1], [0, 1]]) == [4, 2, 1]


def test_the_counts_go_when_it_is_closed(engine, load):
    held = "SELECT table_name FROM information_schema.tables WHERE table_name NOT LIKE 'data_%'"
    source = TableRows(load(ROWS), **LONG)
    assert len(engine.con.execute(held).fetchall()) == 1
    source.close()
    source.close()
    assert engine.con.execute(held).fetchall() == []


def test_it_shows_nothing(load):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        assert repr(source) == "TableRows(<private>)"
        assert repr(source.survivors(1)) == "Baskets(<private>)"


# Data that changes


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM data_0 WHERE basket <= 2 AND item = 'b'",
        "INSERT INTO data_0 VALUES (9, 'zorblax', 9)",
        "UPDATE data_0 SET item = 'c' WHERE item = 'zorblax'",
        "DELETE FROM data_0",
    ],
    ids=["less", "more", "another item", "nothing left"],
)
@pytest.mark.parametrize("kept", [True, False], ids=["counts kept", "counted again"])
@pytest.mark.parametrize("user", [None, "user"])
@either_form
@both
def test_data_that_changes_between_the_passes_is_not_used(
    engine, load, monkeypatch, change, kept, user, bits
):
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    if not kept:
        monkeypatch.setattr(Engine, "keep", lambda self, counts, held: counts)
    with closing(TableRows(load(ROWS), **LONG, user=user)) as source:
        engine.con.execute(change)
        with pytest.raises(EngineError, match="changed while it was read") as caught:
            source.survivors(1)
        assert_says_nothing_private(caught.value)


@both
def test_items_that_come_between_the_passes_are_no_others(engine, load, monkeypatch):
    """So many that their numbers have another length, where nothing is kept and all are numbered
    again.
    """
    monkeypatch.setattr(Engine, "keep", lambda self, counts, held: counts)
    with closing(TableRows(load(ROWS), **LONG)) as source:
        engine.con.execute(
            "INSERT INTO data_0 VALUES " + ", ".join(f"(9, 'a{n}', 9)" for n in range(20))
        )
        with pytest.raises(EngineError, match="changed while it was read"):
            source.survivors(1)


def test_counts_that_cannot_be_kept_are_counted_again(load, monkeypatch):
    monkeypatch.setattr(Engine, "keep", lambda self, counts, held: counts)
    assert pairs(TableRows(load(ROWS), **LONG)) == PAIRS
    assert pairs(TableRows(load(ROWS), **LONG, user="user")) == PAIRS_OF_USERS


# Declared items


def test_a_declared_universe_has_codes_for_all_of_it(load):
    with closing(TableRows(load(ROWS), **LONG)) as source:
        source.survivors(1)
        declared = source.within(["zorblax", "aa", "c", "b"])
        assert list(declared.labels) == ["aa", "b", "c", "zorblax"]
        assert declared.bounds().tolist() == [0, 5, 2, 2]
        assert declared.survivors(1).items == 4
        assert found(declared.survivors(1), 2) == PAIRS
        assert (source.labels, source.bounds().tolist()) == (["b", "c", "zorblax"], [5, 2, 2])
        assert found(source.survivors(1), 2) == PAIRS


def test_a_number_declares_the_integers_below_it(load):
    table = load({"basket": [1, 1, 2], "item": [7, 2, 7]})
    with closing(TableRows(table, **LONG)) as source:
        declared = source.within(9)
        assert (declared.labels, declared.bounds().tolist()) == (
            range(9),
            [0, 0, 1, 0, 0, 0, 0, 2, 0],
        )
        assert found(declared.survivors(1), 2) == {(2, 7): 1}
        with pytest.raises(DataError, match="not declared"):
            source.within(7)


def test_an_item_that_is_not_declared_is_refused(load):
    with (
        closing(TableRows(load(ROWS), **LONG)) as source,
        pytest.raises(DataError, match="not declared") as caught,
    ):
        source.within(["b", "c"])
    assert_says_nothing_private(caught.value)


# What is refused


@pytest.mark.parametrize(
    ("rows", "user"),
    [
        ({**ROWS, "basket": [None, *ROWS["basket"][1:]]}, None),
        ({**ROWS, "basket": [None, *ROWS["basket"][1:]]}, "user"),
        ({**ROWS, "user": [None, *ROWS["user"][1:]]}, "user"),
    ],
    ids=["no basket", "no basket of a user", "no user"],
)
def test_a_row_of_nobody_is_refused(engine, load, rows, user):
    missing = "user" if None in rows["user"] else "basket"
    with pytest.raises(DataError, match=rf"^A row has an item but no {missing}\.") as caught:
        TableRows(load(rows), **LONG, user=user)
    assert_says_nothing_private(caught.value)
    assert engine.list_tables() == ["data_0"]


def test_a_row_without_an_item_needs_no_basket(load):
    table = load({"basket": [None, 1], "item": [None, "a"], "user": [None, 2]})
    for user in (None, "user"):
        with closing(TableRows(table, **LONG, user=user)) as source:
            assert source.bounds().tolist() == [1]


@pytest.mark.parametrize("option", ["basket", "item", "user"])
def test_a_column_must_be_there(load, option):
    with pytest.raises(
        ParameterError, match=f"^{option}='nowhere' is not allowed: the table has no such column"
    ):
        TableRows(load(ROWS), **{**LONG, option: "nowhere"})


@pytest.mark.parametrize("option", ["basket", "item"])
def test_basket_and_item_are_needed(load, option):
    with pytest.raises(
        ParameterError, match=f"^{option} is required: the table needs it. Name a column"
    ):
        TableRows(load(ROWS), **{**LONG, option: None})


def test_lists_of_items_are_refused(load):
    with pytest.raises(
        ParameterError, match=r"must have single values, but its type is array.*a row of its own"
    ):
        TableRows(load({"basket": [1], "item": [["a", "b"]]}), **LONG)


def test_an_engine_that_fails_is_not_quoted(engine):
    table = engine.sql("SELECT 1 AS basket, 'zorblax' || CAST(error('quuxley') AS VARCHAR) AS item")
    with pytest.raises(EngineError, match=r"^The engine failed at ") as caught:
        TableRows(table, **LONG)
    assert_says_nothing_private(caught.value)
    assert engine.list_tables() == []


def test_an_engine_that_fails_at_the_second_pass_is_not_quoted(engine, load):
    with closing(TableRows(load({**ROWS}), **LONG)) as source:
        engine.con.execute("ALTER TABLE data_0 DROP COLUMN basket")
        with pytest.raises(
            EngineError, match=f"^The engine failed at {tables.GROUPING} "
        ) as caught:
            source.survivors(1)
        assert_says_nothing_private(caught.value)


# What may be passed


def test_a_parquet_file_or_a_folder_of_them_is_read(tmp_path):
    rows = pa.table(ROWS)
    pq.write_table(rows, tmp_path / "baskets.parquet")
    assert pairs(open_table(tmp_path / "baskets.parquet", **LONG)) == PAIRS
    assert (
        pairs(open_table(str(tmp_path / "baskets.parquet"), **LONG, user="user")) == PAIRS_OF_USERS
    )
    folder = tmp_path / "parts"
    (folder / "deeper").mkdir(parents=True)
    pq.write_table(rows.slice(0, 4), folder / "one.parquet")
    pq.write_table(rows.slice(4), folder / "deeper" / "two.parquet")
    assert pairs(open_table(folder, **LONG)) == PAIRS


def test_a_parquet_file_that_is_not_one_is_refused(tmp_path):
    (tmp_path / "zorblax.parquet").write_text("quuxley")
    with pytest.raises(EngineError, match=r"^The engine failed at opening the file") as caught:
        open_table(tmp_path / "zorblax.parquet", **LONG)
    assert_says_nothing_private(caught.value)
    with pytest.raises(DataError, match="There is no file"):
        open_table(tmp_path / "nowhere.parquet", **LONG)


@pytest.mark.slow
def test_tables_of_engines_are_read():
    connection = duckdb.connect()
    rows = pa.table(ROWS)
    connection.register("given", rows)
    relation = connection.sql("SELECT * FROM given")
    for data in (
        ibis.memtable(rows),
        relation,
        relation.filter("basket < 99"),
        pl.from_arrow(rows).lazy(),
    ):
        for user, expected in ((None, PAIRS), ("user", PAIRS_OF_USERS)):
            with closing(open_table(data, **LONG, user=user)) as source:
                assert (
                    found(source.survivors(3), 2) == {}
                )  # and then once more: a stream could be read once
                assert found(source.survivors(1), 2) == expected
    assert connection.execute("SELECT count(*) FROM given").fetchone() == (10,)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pa.table(ROWS),
        [["a", "b"]],
        {"a": 1},
        "baskets.dat",
        "baskets.csv",
        Baskets(np.zeros(1, np.int64), np.zeros(0, np.int32), []),
        None,
    ],
    ids=["pandas", "polars", "arrow", "lists", "mapping", "dat", "csv", "baskets", "none"],
)
def test_everything_else_is_for_memory(data):
    assert open_table(data, **LONG) is None


# Many numbers at once


@both
@pytest.mark.parametrize("user", [None, "user"])
def test_numbers_of_holders_are_those_of_baskets_in_memory(load, user):
    one_more = {"basket": 5, "item": "c", "user": 1}  # who has zorblax in another basket
    rows = {name: [*values, one_more[name]] for name, values in ROWS.items()}
    held = TableRows(load(rows), **LONG, user=user)
    code = {label: place for place, label in enumerate(held.labels)}
    sets = [(), ("b",), ("c",), ("b", "zorblax"), ("c", "zorblax"), ("b", "c")]
    wanted = [3, 3, 3, 1, 1, 3] if user else [5, 4, 3, 2, 0, 2]
    assert held.count_holders([[code[item] for item in one] for one in sets]) == wanted


@both
def test_rules_of_a_table_need_no_rarer_items_than_their_own(load, questions):
    held = TableRows(load(ROWS), **LONG)
    questions.clear()
    assert held.count_holders([[held.labels.index("b")]]) == [4]
    assert held.survivors(4).supports().tolist() == [4, 0, 0]
