"""Rows that have an item and no individual: the error says which of the causes it is, and
`missing_users="drop"` leaves such rows out, each by itself.
"""

from __future__ import annotations

import io
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

import privmax
from privmax.errors import DataError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.ledger import Ledger
from privmax.testing import SeededCoins

PRICE = {"epsilon": 4, "delta": "0.01"}
ROWS = [(f"u{number}", "boots", "b1", 1) for number in range(60)]
NAMELESS = [(None, "tent", "b1", 1)] * 90
NAMES = ["person", "query", "basket", "n"]


def csv_file(path, rows):
    lines = [",".join("" if one is None else str(one) for one in row) for row in rows]
    path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    return path


def jsonl_file(path, rows):
    path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))
    return path


def arrow(rows):
    return pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))


def parquet_file(path, rows):
    pq.write_table(arrow(rows), path)
    return path


CONTAINERS = {
    "csv": lambda folder, rows: csv_file(folder / "a.csv", rows),
    "stream": lambda folder, rows: io.BytesIO(csv_file(folder / "a.csv", rows).read_bytes()),
    "jsonl": lambda folder, rows: jsonl_file(folder / "a.jsonl", rows),
    "parquet": lambda folder, rows: parquet_file(folder / "a.parquet", rows),
    "arrow": lambda folder, rows: arrow(rows),
    "pandas": lambda folder, rows: arrow(rows).to_pandas(),
    "polars": lambda folder, rows: pl.from_arrow(arrow(rows)),
}


@pytest.fixture(params=CONTAINERS)
def build(request, tmp_path):
    return lambda rows: CONTAINERS[request.param](tmp_path, rows)


def test_select_says_that_a_user_is_missing(build):
    with pytest.raises(DataError, match=r"^A row has an item but no user\. .*missing_users"):
        privmax.select(build([*ROWS, *NAMELESS]), item="query", user="person", **PRICE)


def test_select_says_that_a_weight_is_missing(tmp_path):
    options = {"item": "query", "user": "person", "weight": "n", "bound": 3, **PRICE}
    rows = [*ROWS, ("u1", "tent", "b1", None)]
    with pytest.raises(DataError, match=r"^A weight is missing or not a whole number"):
        by_name(privmax.select, parquet_file(tmp_path / "a.parquet", rows), **options)
    rows.append((None, "tent", "b1", 2))
    with pytest.raises(DataError, match=r"^A row has an item but no user\."):
        by_name(privmax.select, parquet_file(tmp_path / "a.parquet", rows), **options)


def test_select_says_that_an_item_has_several_scores(tmp_path):
    with pytest.raises(DataError, match=r"^An item has several rows with scores"):
        privmax.select(parquet_file(tmp_path / "a.parquet", ROWS), item="query", score="n", **PRICE)


def test_select_drops_rows_without_a_user(build):
    options = {"item": "query", "user": "person", "counts": 4, **PRICE}
    plain = by_name(privmax.select, build(ROWS), coins=SeededCoins(3), **options)
    dropped = by_name(
        privmax.select,
        build([*NAMELESS, *ROWS, *NAMELESS]),
        coins=SeededCoins(3),
        **options,
        columns=privmax.Columns(missing_users="drop"),
    )
    assert plain.items == dropped.items == ("boots",)
    assert plain.counts == dropped.counts


def test_weights_drop_rows_without_a_user(build):
    options = {"item": "query", "user": "person", "weight": "n", "bound": 3, "counts": 4, **PRICE}
    plain = by_name(privmax.select, build(ROWS), coins=SeededCoins(3), **options)
    dropped = by_name(
        privmax.select,
        build([*NAMELESS, *ROWS]),
        coins=SeededCoins(3),
        **options,
        columns=privmax.Columns(missing_users="drop"),
    )
    assert (plain.items, plain.counts) == (dropped.items, dropped.counts)


def test_itemsets_drop_rows_without_a_user(build):
    rows = [row for who in range(60) for row in (
        (f"u{who}", "boots", "b1", 1), (f"u{who}", "coat", "b1", 1),
    )]  # fmt: skip
    options = {
        "basket": "basket", "item": "query", "user": "person", "supports": 4, **PRICE,
    }  # fmt: skip
    if isinstance(build(rows), io.BytesIO):
        options["form"] = "long"
    plain = by_name(top_itemsets, build(rows), coins=SeededCoins(3), **options)
    more = [(None, "tent", "b1", 1), (None, "boots", "b2", 1), (None, "coat", "b2", 1)] * 50
    with pytest.raises(DataError, match="no user"):
        by_name(top_itemsets, build([*rows, *more]), **options)
    dropped = by_name(
        top_itemsets,
        build([*more, *rows]),
        coins=SeededCoins(3),
        **options,
        layout=Layout(missing_users="drop"),
    )
    assert plain.items == dropped.items == (("boots", "coat"),)
    assert plain.supports == dropped.supports


def test_one_hot_rows_without_a_user_are_dropped(tmp_path):
    table = pa.table({
        "who": [None] * 90 + [f"u{n}" for n in range(60)],
        "a": [1] * 150, "b": [1] * 90 + [0] * 60, "c": [0] * 90 + [1] * 60,
    })  # fmt: skip
    (tmp_path / "a.csv").write_text(
        "who,a,b,c\n" + ",1,1,0\n" * 90 + "".join(f"u{n},1,0,1\n" for n in range(60))
    )
    for data in (table, table.to_pandas(), tmp_path / "a.csv"):
        with pytest.raises(DataError, match="no user"):
            top_itemsets(data, user="who", **PRICE, layout=Layout(form="onehot"))
        found = top_itemsets(
            data, user="who", **PRICE, layout=Layout(form="onehot", missing_users="drop")
        )
        assert found.item == ("a", "c")


def test_itemsets_say_which_is_missing(tmp_path):
    columns = {"basket": "basket", "item": "query", "user": "person"}
    path = tmp_path / "a.parquet"
    parquet_file(path, [*ROWS, ("u1", "tent", None, 1)])
    with pytest.raises(DataError, match=r"^A row has an item but no basket\."):
        top_itemsets(path, **columns, **PRICE)
    parquet_file(path, [*ROWS, (None, "tent", "b1", 1)])
    with pytest.raises(DataError, match=r"^A row has an item but no user\. .*missing_users"):
        top_itemsets(path, **columns, **PRICE)


@pytest.mark.parametrize("ask", [privmax.select, top_itemsets])
def test_it_needs_a_user_and_a_word_that_is_known(ask):
    frame = pd.DataFrame({"query": ["a"], "person": ["u"], "basket": ["b"]})
    columns = {"item": "query"} | ({"basket": "basket"} if ask is top_itemsets else {})
    with pytest.raises(ParameterError, match=r"missing_users='drop'.*user"):
        by_name(ask, frame, **columns, missing_users="drop", **PRICE)
    with pytest.raises(ParameterError, match=r"missing_users='dorp'.*refuse, drop"):
        by_name(ask, frame, **columns, user="person", missing_users="dorp", **PRICE)


def test_a_ledger_records_it_only_where_it_is_given(tmp_path):
    ledger = Ledger(tmp_path / "b.db", epsilon=100, delta="0.9")
    frame = arrow(ROWS)
    options = {"item": "query", "user": "person", **PRICE}
    by_name(privmax.select, frame, ledger=ledger.request("a"), **options)
    by_name(
        privmax.select,
        frame,
        ledger=ledger.request("a"),
        **options,
        columns=privmax.Columns(missing_users="refuse"),
    )
    by_name(
        privmax.select,
        frame,
        ledger=ledger.request("b"),
        **options,
        columns=privmax.Columns(missing_users="drop"),
    )
    recorded = [
        event.body["what"]["options"] for event in ledger.history() if event.kind == "reserved"
    ]
    assert ["missing_users" in one for one in recorded] == [False, True]
    with pytest.raises(privmax.errors.LedgerError):
        by_name(privmax.select, frame, ledger=ledger.request("b"), **options)
