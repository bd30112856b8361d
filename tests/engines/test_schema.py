"""The cells of a schema computed by an engine are those computed in memory."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import Category, Number, Schema

EDGES = Number(0, 1, cells=7).cuts.tolist()

NUMBERS = [
    *EDGES,
    *np.nextafter(EDGES, -math.inf).tolist(),
    *(-1.0, 0.0, -0.0, 0.999, 1e300, -1e300, sys.float_info.max, 5e-324, None, 2.0, 3.0),
]
TEXTS = ["0.3", " 0.3", "0.3\t", ".5", "5.", "+1e-1", "1e99", "1e400", "1_0", "nan", "inf", "٣"]
TEXTS += ["?", " ? ", "", "  ", None, "x", "Private", "private", "Private ", "1", "1.0", "0x1"]
WHOLES = [0, 1, 2, 3, -1, 2**53 - 1, 2**53 + 1, None, -(2**62)]


def rows():
    """Columns of one length."""
    length = max(map(len, (NUMBERS, TEXTS, WHOLES)))
    data = {"number": NUMBERS, "text": TEXTS, "whole": WHOLES, "yes": [True, False, None]}
    repeated = {name: (values * length)[:length] for name, values in data.items()}
    return {"row": list(range(length)), **repeated}


SCHEMAS = [
    {"number": Number(0, 1, cells=7), "whole": Number(0, 3, cells=3, missing=-1)},
    {"number": Number(0, 1, cells=7, missing=[2, "3"]), "text": Number(0, 1, missing="?")},
    {"number": Category([0, 2, "3"], missing=True), "whole": Category([1, 2**53 - 1], missing=2)},
    {"text": Category(["Private", 1, "x"]), "whole": Category([3, "1"])},
    {"text": Category(["Private", 1, "x"], missing=["?", "0.3"]), "yes": Category([True])},
    {"yes": Number(0, 1, cells=2, missing=True), "text": Number(0, 10, scale="log", missing=True)},
]


@pytest.mark.parametrize("columns", SCHEMAS)
def test_an_engine_finds_the_same_cells(load, engine, columns):
    if engine == "mariadb" and "yes" in columns:
        pytest.skip("it has no booleans: they are whole numbers there")
    data = rows()
    table, schema = load(data), Schema(columns)
    cells = dict(zip(schema.names, schema.expressions(table), strict=True))
    found = table.select("row", **{f"cell_{name}": cell for name, cell in cells.items()})
    read = found.order_by("row").to_pyarrow()
    for name, expected in zip(schema.names, schema.codes(_frame(data)), strict=True):
        assert read[f"cell_{name}"].to_pylist() == expected.tolist(), name


def test_an_engine_keeps_nan_apart(load, engine):
    if engine in ("sqlite", "mariadb"):
        pytest.skip("it has no NaN")
    table = load({"number": [0.1, math.nan, 0.9]})
    for column, expected in [
        (Number(0, 1, cells=2), [0, 0, 1]),
        (Number(0, 1, cells=2, missing=True), [0, 1, 2]),
        (Category([0], missing=True), [0, 2, 2]),
    ]:
        (cell,) = Schema(number=column).expressions(table)
        assert sorted(table.select(cell=cell).to_pyarrow()["cell"].to_pylist()) == expected


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
def test_columns_that_do_not_fit_are_named(load):
    import datetime

    table = load({"joined": [datetime.date(2026, 11, 16)], "work": ["Private"]})
    with pytest.raises(ParameterError, match=r"schema='age' .* no such column"):
        Schema(age=Number(0, 1)).expressions(table)
    with pytest.raises(DataError, match="Column joined holds dates"):
        Schema(joined=Category(["x"])).expressions(table)
    with pytest.raises(DataError, match="Column work is text by its type"):
        Schema(work=Number(0, 1)).expressions(table)


def _frame(data):
    import pandas as pd

    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in data.items()})
