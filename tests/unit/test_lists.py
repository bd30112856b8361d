"""Columns of lists, and arrays of JSON Lines, as baskets: one per row."""

from __future__ import annotations

import json

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

from privmax.errors import ConditionError, DataError, ParameterError
from privmax.itemsets import top_itemsets
from privmax.itemsets.reading.forms import read_baskets
from privmax.testing import SeededCoins

PRICE = {"epsilon": 4, "delta": "0.01"}
LISTS = [["tea", "milk", "tea"], ["milk", "tea"], [], None, ["ale", None, "tea"]] * 30
USERS = [f"u{n % 75}" for n in range(len(LISTS))]
PLAIN = [[one for one in row or [] if one is not None] for row in LISTS]


def jsonl(path, **columns):
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


def parquet(path, table):
    pq.write_table(table, path)
    return path


def relation(table):
    return duckdb.connect().from_arrow(table)


def large(table):
    kind = table.schema.field(0).type
    kind = pa.large_list(kind.value_type) if pa.types.is_list(kind) else pa.large_string()
    return table.cast(pa.schema([("items", kind), ("who", pa.string())]))


def views(table, kind):
    """Lists as views; single values stay as they are."""
    lists = table.column(0).combine_chunks()
    if not pa.types.is_list(lists.type):
        return table
    made = pa.array(lists.to_pylist(), kind(lists.type.value_type))
    return table.set_column(0, "items", made)


def table_of(lists=LISTS, users=USERS):
    return pa.table({"items": lists, "who": users})


CONTAINERS = {
    "arrow": lambda folder, table: table,
    "arrow chunks": lambda folder, table: pa.concat_tables([table.slice(0, 7), table.slice(7)]),
    "arrow batch": lambda folder, table: table.combine_chunks().to_batches()[0],
    "large lists": lambda folder, table: large(table),
    "views": lambda folder, table: views(table, pa.list_view),
    "large views": lambda folder, table: views(table, pa.large_list_view),
    "pandas of views": lambda folder, table: views(table, pa.list_view).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "polars": lambda folder, table: pl.from_arrow(table),
    "lazy": lambda folder, table: pl.from_arrow(table).lazy(),
    "pandas": lambda folder, table: pd.DataFrame(
        {"items": table.column(0).to_pylist(), "who": table.column(1).to_pylist()}
    ),
    "pandas arrays": lambda folder, table: table.to_pandas(),
    "pandas of Arrow": lambda folder, table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "parquet": lambda folder, table: parquet(folder / "a.parquet", table),
    "duckdb": lambda folder, table: relation(table),
    "ibis": lambda folder, table: ibis.duckdb.connect().create_table("t", table),
    "jsonl": lambda folder, table: jsonl(folder / "a.jsonl", **table.to_pydict()),
}


@pytest.fixture(params=CONTAINERS)
def build(request, tmp_path):
    return lambda table: CONTAINERS[request.param](tmp_path, table)


def held(rows):
    """The items of each basket."""
    parts = np.split(rows.codes, rows.offsets[1:-1])
    return [[rows.labels[code] for code in part] for part in parts]


def released(data, **options):
    found = by_name(
        top_itemsets, data, size="1-2", k=2, supports=4, coins=SeededCoins(7), **PRICE, **options
    )
    return found.items, found.supports


def test_a_list_is_a_basket(build):
    assert released(build(table_of()), item="items") == released(PLAIN)


def test_users_may_have_several(build):
    flat = [(who, number, one) for number, (who, row) in enumerate(zip(USERS, PLAIN, strict=True))
            for one in row]  # fmt: skip
    people, baskets, items = map(list, zip(*flat, strict=True))
    long = pa.table({"who": people, "basket": baskets, "items": items})
    expected = released(long, basket="basket", item="items", user="who")
    assert released(build(table_of()), item="items", user="who") == expected


def test_rows_without_a_user_are_refused_or_dropped(build):
    table = table_of(users=[None if n % 3 == 0 else who for n, who in enumerate(USERS)])
    with pytest.raises(DataError, match="no user"):
        released(build(table), item="items", user="who")
    kept = [n for n in range(len(USERS)) if n % 3]
    fewer = table_of([LISTS[n] for n in kept], [USERS[n] for n in kept])
    dropped = released(build(table), item="items", user="who", missing_users="drop")
    assert dropped == released(build(fewer), item="items", user="who")


def test_empty_lists_are_baskets():
    rows = read_baskets(
        pa.table({"items": pa.array([[], None, [1]], pa.list_(pa.int64()))}), item="items"
    )
    assert (rows.rows, rows.labels) == (3, [1])


IDS = [2**60, 2**60 + 1]


def test_views_may_overlap_in_any_order():
    values, starts, sizes = ["a", "b", None, "c"], [2, 0, 0, 1], [2, 2, 0, 3]
    view = pa.ListViewArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(sizes, pa.int32()), pa.array(values),
        mask=pa.array([False, False, False, True]),
    )  # fmt: skip
    table = pa.table({"items": pa.chunked_array([view, view.slice(1)])})
    rows = read_baskets(table, item="items")
    assert held(rows) == [["c"], ["a", "b"], [], [], ["a", "b"], [], []]


@pytest.mark.parametrize("name", ["arrow", "polars", "pandas of Arrow", "parquet", "duckdb"])
def test_numbers_keep_their_value(tmp_path, name):
    table = pa.table({"items": pa.array([IDS, [None]] * 60, pa.list_(pa.int64()))})
    data = CONTAINERS[name](tmp_path, table.append_column("who", pa.array(["u"] * 120)))
    assert top_itemsets(data, item="items", **PRICE).item == tuple(IDS)


def grouped(ids):
    """As `groupby` makes lists of a column of floats, which one missing cell elsewhere makes."""
    frame = pd.DataFrame({"basket": [*range(len(ids)), -1], "items": [*ids, None]})
    return frame.groupby("basket")["items"].agg(list)


ROUNDED = {
    "lists": lambda folder: pd.DataFrame({"items": [IDS]}),
    "arrays": lambda folder: pd.DataFrame({"items": [np.array(IDS), np.array([1])]}),
    "tuples": lambda folder: pd.DataFrame({"items": [tuple(IDS)]}),
    "floats": lambda folder: pd.DataFrame({"items": [[-float(IDS[0])]]}),
    "groups": lambda folder: grouped(IDS).reset_index(),
    "a series": lambda folder: grouped(IDS),
    "read_parquet": lambda folder: pd.read_parquet(
        parquet(folder / "a.parquet", pa.table({"items": [IDS, [1, None]]}))
    ),
}


@pytest.mark.parametrize("build", ROUNDED.values(), ids=ROUNDED)
def test_numbers_that_pandas_may_round_are_refused_in_lists(tmp_path, build):
    """One missing entry elsewhere merged them."""
    data = build(tmp_path)
    named = {} if isinstance(data, pd.Series) else {"item": "items"}
    with pytest.raises(DataError, match=r"2\^53 or more") as caught:
        read_baskets(data, **named)
    assert str(IDS[0])[:6] not in str(caught.value)


def test_lists_of_nanoseconds_are_read_as_columns_are():
    moments = pd.to_datetime(["2024-03-01", "2024-03-01 00:00:00.000000001"], format="ISO8601")
    flat = pd.DataFrame({"items": moments, "basket": [1, 1]})
    single = held(read_baskets(flat, basket="basket", item="items"))
    for row in (moments.to_numpy(), list(moments), list(moments.to_numpy())):
        rows = read_baskets(pd.DataFrame({"items": [row, ["x"]]}), item="items")
        assert held(rows)[0] == single[0]
        assert list(map(type, held(rows)[0])) == list(map(type, single[0]))


@pytest.mark.parametrize("more", ["text", 7, 2.5, None, [None], ["other"], [[1]], {"a": 1}])
def test_one_more_row_changes_no_other(more):
    """In pandas nothing but the row itself decides how it is read."""
    frame = pd.DataFrame({"items": [[1, 2], ["x"]]})
    longer = pd.concat([frame, pd.DataFrame({"items": [more]})], ignore_index=True)
    before = read_baskets(frame, item="items")
    try:
        after = read_baskets(longer, item="items")
    except DataError:
        return  # the row itself is refused
    assert held(before) == held(after)[:2]


def test_single_values_need_a_basket(build, tmp_path):
    table = pa.table({"items": ["zorblax"] * 3, "who": ["u"] * 3})
    with pytest.raises((ParameterError, DataError), match="basket") as caught:
        released(build(table), item="items")
    assert "zorblax" not in str(caught.value)


def test_lists_go_with_no_column_of_baskets(tmp_path):
    path = parquet(tmp_path / "a.parquet", table_of())
    with pytest.raises(ParameterError, match="Leave basket out"):
        top_itemsets(path, basket="who", item="items", **PRICE)


def test_conditions_choose_rows_of_files(tmp_path):
    table = table_of(users=["a" if n % 2 else "b" for n in range(len(LISTS))])
    kept = [row for n, row in enumerate(PLAIN) if n % 2]
    for data in (
        parquet(tmp_path / "a.parquet", table),
        jsonl(tmp_path / "a.jsonl", **table.to_pydict()),
    ):
        assert released(data, item="items", where="who = 'a'") == released(kept)


@pytest.mark.parametrize("name", ["jsonl", "pandas", "pandas arrays", "pandas of Arrow", "parquet"])
@pytest.mark.parametrize("where", ["items = 'a'", "who = 'a' and items != 'tea'"])
def test_conditions_look_at_no_lists(tmp_path, name, where):
    data = CONTAINERS[name](tmp_path, table_of())
    with pytest.raises(ConditionError, match=r"^where="):
        released(data, item="items", where=where)


@pytest.mark.parametrize("wrong", ['"milk"', "7", '{"a": 1}', "true", '[["x"]]'])
def test_a_line_with_another_value_is_refused(tmp_path, wrong):
    (tmp_path / "a.jsonl").write_text(f'{{"items": ["x"]}}\n{{"items": {wrong}}}\n')
    with pytest.raises(DataError, match=r"^Line 2 "):
        top_itemsets(tmp_path / "a.jsonl", item="items", **PRICE)


def test_values_of_arrays_are_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"items": [7, "7", null, "", true]}\n{"other": 1}\n')
    rows = read_baskets(tmp_path / "a.jsonl", item="items")
    assert (rows.rows, rows.labels, rows.supports().tolist()) == (2, ["7", "true"], [1, 1])


def test_pandas_rows_may_hold_any_kind_of_list():
    frame = pd.DataFrame({"items": [["a"], ("a", "b"), np.array(["a", "b"]), {"a"}, float("nan")]})
    assert read_baskets(frame, item="items").supports().tolist() == [4, 2]
