"""Every library of frames answers what a table and a column are asked, and the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privmax
from privmax.errors import DataError, ParameterError
from privmax.sources.containers import column_of, table_of

ROWS = {
    "item": ["b", None, "a", "b"],
    "score": [1, 2, 3, 4],
    "basket": [["x"], [], None, ["x", "y"]],
}
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table,
          "Arrow batch": lambda rows: pa.table(rows).to_batches()[0]}  # fmt: skip
COLUMNS = {"list": list, "NumPy": lambda v: np.array(v, object), "pandas": pd.Series,
           "polars": pl.Series, "Arrow": pa.array,
           "Arrow chunks": lambda v: pa.chunked_array([v[:1], v[1:]])}  # fmt: skip


@pytest.fixture(params=TABLES.values(), ids=TABLES)
def table(request):
    return table_of(request.param(ROWS))


@pytest.fixture(params=COLUMNS.values(), ids=COLUMNS)
def build(request):
    return lambda values: column_of(request.param(values))


def told(column):
    """The label of each row, by its number."""
    numbers, labels = column.number_labels()
    assert sorted(set(numbers) - {-1}) == list(range(len(labels)))
    return [None if number < 0 else labels[number] for number in numbers]


def test_a_table_gives_columns_by_role(table):
    assert (table.names, len(table)) == (["item", "score", "basket"], 4)
    assert told(table.column("item", "item")) == ["b", None, "a", "b"]
    assert np.asarray(table.column("score", "score").read_scores()).tolist() == [1, 2, 3, 4]
    kept = table.take(np.array([0, 2]))
    assert (type(kept), told(kept.column("item", "item"))) == (type(table), ["b", "a"])


def test_an_error_names_the_role_and_what_there_is(table):
    with pytest.raises(ParameterError, match=r"user='who' .*item, score, basket") as caught:
        table.column("user", "who")
    assert caught.value.name == "user"
    with pytest.raises(ParameterError, match=r"item is required.*table"):
        table.column("item", None, "table")


def test_a_column_that_is_there_twice_is_refused():
    for data in (pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], ["a", "a"])):
        with pytest.raises(ParameterError, match="the frame has several columns of that name"):
            table_of(data).column("item", "a")


def test_lists_are_numbered_by_entry(table):
    lengths, numbers, labels = table.column("item", "basket").read_lists()
    assert lengths.tolist() == [1, 0, 0, 2]
    assert [labels[number] for number in numbers] == ["x", "x", "y"]
    assert table.column("item", "score").read_lists() is None


def test_nothing_is_shown(table, build):
    for one in (table, table.find("item"), build(["zorblax"]), build(["zorblax"]).read_values()):
        assert "<private>" in repr(one)
        assert "zorblax" not in repr(one)


def test_columns_agree_on_labels(build):
    assert told(build(["b", None, "a", "b"])) == ["b", None, "a", "b"]
    assert list(build(["b", "a"]).read_labels()) == ["b", "a"]
    with pytest.raises(DataError, match="A label occurs more than once"):
        build(["b", "b"]).read_labels()
    with pytest.raises(DataError, match="A label is missing"):
        build(["b", None]).read_labels()


def test_columns_agree_on_values(build):
    assert build(["tea", None]).read_values().values.tolist() in (["tea", None], ["tea", np.nan])
    assert build([True, False]).read_values().values.tolist() == [True, False]


def test_what_is_no_frame_is_no_table():
    for data in ({"a": 1}, [1], np.array([[1]]), pd.Series([1]), pl.Series([1]), "a.csv", None):
        assert table_of(data) is None


def test_a_dict_passes_no_table(monkeypatch):
    """Columns and engines are for what has some."""
    monkeypatch.setattr("privmax.selection.source", None)
    assert privmax.select({"a": 300, "b": 1}, epsilon=1, delta=1e-6).item == "a"
    with pytest.raises(TypeError):  # they are asked as soon as a column is named
        privmax.select({"a": 300}, item="a", epsilon=1, delta=1e-6)
