"""A public schema: every value has a cell, which follows from that value and the schema alone."""

from __future__ import annotations

import enum
import json
import math
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_matrix

from privmax.errors import DataError, ParameterError
from privmax.learning import Category, Number, Schema
from privmax.learning.schema import LARGEST_FILE

AGE = Number(0, 100, cells=4)
WORK = Category(["Private", "State-gov"], missing="?")


def test_numbers_fall_into_equal_cells_and_the_outer_ones_are_open():
    values = [-math.inf, -5, 0, 24.999, 25, 74.9, 75, 1e300, math.inf]
    assert AGE.codes(np.array(values)).tolist() == [0, 0, 0, 0, 1, 2, 3, 3, 3]
    assert AGE.codes(values).tolist() == [0, 0, 0, 0, 1, 2, 3, 3, 3]
    assert AGE.codes(values).dtype == np.uint16
    assert (AGE.cells, AGE.ordered, AGE.missing_cell) == (4, True, None)


def test_missing_numbers_have_a_cell_of_their_own_if_declared_and_it_is_the_first():
    age = Number(0, 100, cells=4, missing=["?", -1])
    values = [None, math.nan, pd.NA, "?", " ? ", "", "abc", -1, -1.0, "-1", 0, "30", 99]
    assert age.codes(values).tolist() == [0] * 10 + [1, 2, 4]
    assert (age.cells, age.missing_cell) == (5, 0)
    assert AGE.codes([None, math.nan, 99]).tolist() == [0, 0, 3]


def test_thresholds_and_a_logarithmic_scale():
    assert Number(thresholds=[18, 65]).codes([17, 18, 64, 65]).tolist() == [0, 1, 1, 2]
    gain = Number(0, 99_999, cells=5, scale="log")
    assert gain.cuts.tolist() == pytest.approx([9, 99, 999, 9999])
    shifted = Number(100, 100_099, cells=5, scale="log")
    assert shifted.cuts.tolist() == pytest.approx([109, 199, 1099, 10099])


def test_categories_by_value_whatever_their_type():
    kind = Category([1, 2, "x"], missing=True)
    assert kind.codes([1, 1.0, "1", " 1", True, 2, "x", "X", 1.5, None]).tolist() == [
        *(1, 1, 1, 1, 1),
        *(2, 3, 4, 4, 0),
    ]
    assert kind.codes(np.array([1, 2, 3])).tolist() == [1, 2, 4]
    assert kind.codes(np.array([1, 2, np.nan])).tolist() == [1, 2, 0]
    assert kind.codes(np.array([True])).tolist() == [1]  # pandas makes 1 of it beside numbers
    assert Category([True, False]).codes(np.array([True, False])).tolist() == [0, 1]
    assert Category([True, False]).codes(["True", "False", "true", "TRUE"]).tolist() == [0, 1, 0, 2]
    assert Category(["a"]).codes(["a", "", None, "b"]).tolist() == [0, 1, 1, 1]


def test_whole_numbers_that_floats_round_are_not_listed_either_way():
    kind = Category([2**53 - 1])
    assert kind.codes(np.array([2**53 - 1, 2**53, 2**53 + 1])).tolist() == [0, 1, 1]
    assert kind.codes(np.array([2**53 - 1, 2**53], np.float64)).tolist() == [0, 1]


def test_a_null_makes_no_listed_number_of_one_that_floats_round():
    kind, number = Category([str(2**53 + 1)]), 2**53
    alone, beside = [number], [number, None]
    for read in (pa.array, pl.Series, lambda values: pd.Series(values, dtype="Int64"), list):
        assert kind.codes(read(alone))[0] == kind.codes(read(beside))[0] == 1


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_listed_numbers_are_not_rounded_to_the_type_of_a_column(kind):
    listed = Category([17, 100_001, 2**24 + 1])
    with np.errstate(over="ignore"):
        values = np.array([17, np.inf, 2**24], kind)
    assert listed.codes(values).tolist() == [0, 3, 3]


def test_numbers_are_listed_once_each():
    assert Category(["0", "-0"]).codes(np.array([0, -0.0])).tolist() == [0, 0]
    assert Category(["a"], missing=-9.5).codes(np.array([-9.5, 1])).tolist() == [0, 2]


class Odd:
    """Raises whatever is asked of it."""

    def __float__(self):
        raise KeyboardInterrupt("secret")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("secret")

    def __len__(self):
        raise RuntimeError("secret")

    @property
    def __class__(self):
        raise RuntimeError("secret")


class Stubborn(float):
    def __float__(self):
        raise SystemExit("secret")


ODD = [Odd(), Stubborn(3), Mock(spec=str), Mock(spec=float), (1, 2), [], {}, b"x", 1 + 2j, object]
ODD += [10**400, -(10**400), Decimal("1e999"), Decimal("sNaN"), Fraction(10**400, 3), "1e99999"]
ODD += [
    np.complex64(1),
    np.longdouble("1e4000"),
    np.ma.masked,
    np.array([1]),
    np.array(1),
    "\ud800",
]
ODD += [np.timedelta64(3, "D"), pd.NaT, pd.NA, pd.Series([1]), np.void(b"x"), math.nan, "17 ", True]


@pytest.mark.parametrize("column", [AGE, WORK, Number(0, 1, missing=True), Category([17, True])])
def test_no_value_makes_reading_fail_or_warn_or_changes_how_others_are_read(column):
    others = [3, "Private", None, 80.5, "?"]
    expected = column.codes(others).tolist()
    for value in ODD:
        held = np.empty(6, object)
        for place, one in enumerate([*others, value]):
            held[place] = one
        table = np.array([held]).T
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            for read in (list(held), held, pd.Series(held), pl.Series(list(held), dtype=pl.Object)):
                cells = column.codes(read).tolist()
                assert cells[:5] == expected
                assert 0 <= cells[5] < column.cells
            for X in (table, [[one] for one in held]):
                assert Schema(a=column).codes(X).tolist() == [cells]
    assert len(column.codes([])) == 0


@pytest.mark.parametrize("value", ["1e4000", "-1e4000", "nan"])
def test_no_number_gives_a_warning(value):
    numbers = np.array([5, np.longdouble(value)], np.longdouble)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert AGE.codes(numbers)[0] == 0
        assert Schema(a=AGE).codes(csr_matrix(numbers[:, None]))[0, 0] == 0


def test_bytes_that_are_no_utf8_are_not_listed():
    texts = pa.array([b"Private", b"\xff", None]).view(pa.string())
    for values in (texts, pa.chunked_array([texts]), texts.dictionary_encode()):
        assert WORK.codes(values).tolist() == [1, 3, 0]
    assert WORK.codes(pd.Series(texts, dtype=pd.ArrowDtype(pa.string()))).tolist() == [1, 3, 0]


def test_what_is_under_a_mask_is_missing():
    age = Number(0, 100, cells=4, missing=True)
    for kind in (np.float32, np.int64):
        X = np.ma.array([[1], [99], [50]], kind, mask=[[0], [1], [0]])
        assert age.codes(X[:, 0]).tolist() == [1, 0, 3]
        assert Schema(age=age).codes(X).tolist() == [[1, 0, 3]]


def test_integers_of_128_bits():
    assert AGE.codes(pl.Series([17, None, 2**100], dtype=pl.Int128)).tolist() == [0, 0, 3]


class Frame(pd.DataFrame):
    """Somebody's own."""

    @property
    def _constructor_sliced(self):
        return Column


class Column(pd.Series):
    pass


def test_frames_of_somebody_elses_class_are_read_by_type():
    with pytest.raises(DataError, match="Column age has dates"):
        Schema(age=AGE).codes(Frame({"age": pd.to_datetime(["2026-11-16"])}))


def frames(data):
    pandas = pd.DataFrame(data)
    yield pandas
    yield pandas.convert_dtypes()
    yield pandas.convert_dtypes(dtype_backend="pyarrow")
    yield pandas.astype({"work": "category"})
    yield pandas.astype(object)
    yield pl.DataFrame(data)
    yield pl.DataFrame(data).with_columns(pl.col("work").cast(pl.Categorical))
    yield pa.table(data)
    work = pa.chunked_array([pa.array(data["work"]).dictionary_encode()])
    yield pa.table({**data, "work": work})


SCHEMA = Schema({"age": Number(0, 100, cells=4, missing=True), "work": WORK})
DATA = {"id": [1, 2, 3, 4], "work": ["Private", None, "?", "New"], "age": [10, 30, None, 200]}


@pytest.mark.parametrize("place", range(9))
def test_columns_of_every_frame_are_found_by_name(place):
    frame = list(frames(DATA))[place]
    cells = SCHEMA.codes(frame)
    assert cells.tolist() == [[1, 2, 0, 4], [1, 0, 0, 3]]
    assert cells.dtype == np.uint16
    assert cells.flags.c_contiguous


def test_arrays_lists_and_sparse_matrices_by_position():
    rows = [[10, "Private"], [30, None], [None, "?"], [200, "New"]]
    assert SCHEMA.codes(rows).tolist() == [[1, 2, 0, 4], [1, 0, 0, 3]]
    assert SCHEMA.codes(np.array(rows, object)).tolist() == [[1, 2, 0, 4], [1, 0, 0, 3]]
    words = Schema({"a": Number(0, 3, cells=3), "b": Category([0, 1])})
    dense = np.array([[0, 1], [2, 0], [0, 7]])
    expected = [[0, 2, 0], [1, 0, 2]]
    for X in (dense, csr_matrix(dense), coo_array(dense), dense.astype(np.float32)):
        assert words.codes(X).tolist() == expected


def test_a_column_that_is_not_there_or_twice_is_named():
    with pytest.raises(ParameterError, match=r"schema='work' .* no such column"):
        SCHEMA.codes(pd.DataFrame({"age": [1], "job": ["x"]}))
    twice = pd.DataFrame([[1, 2, "x"]], columns=["age", "age", "work"])
    with pytest.raises(DataError, match="two columns with the name 'age'"):
        SCHEMA.codes(twice)
    with pytest.raises(DataError, match="table with 2 columns"):
        SCHEMA.codes(np.zeros((3, 5)))
    with pytest.raises(DataError, match="table with 2 columns"):
        SCHEMA.codes([[1], [2, 3]])
    for X in ([1, 2], [np.array(1)], coo_array([1, 2])):
        with pytest.raises(DataError, match="table with 2 columns"):
            SCHEMA.codes(X)
    with pytest.raises(DataError, match="lazy"):
        SCHEMA.codes(pl.LazyFrame(DATA))
    with pytest.raises(DataError, match="one dimension"):
        AGE.codes(np.zeros((2, 2)))
    assert SCHEMA.codes([[[1, 2], [3, 4]]]).tolist() == [[0], [0]]  # values that are lists


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2026-11-16"], "M8[D]"),
        pd.Series(pd.to_datetime(["2026-11-16"], utc=True)),
        pd.Series(pd.to_datetime(["2026-11-16"])).astype("category"),
        pl.Series([[1, 2]]),
        pl.Series(["2026-11-16"]).str.to_date(),
        pa.array([b"x"]),
        np.array([b"x"]),
    ],
)
def test_types_that_are_neither_numbers_nor_text_are_refused_by_name(values):
    for column in (AGE, WORK):
        with pytest.raises(DataError, match="Column joined has dates") as told:
            column.with_name("joined").codes(values)
        assert "2026" not in str(told.value)


def test_text_where_numbers_are_meant_is_refused_by_its_type_unless_missing_is_declared():
    texts = [pd.Series(["12"], dtype="str"), pl.Series(["12"]), pa.array(["12"]), np.array(["12"])]
    for values in texts:
        with pytest.raises(DataError, match="Column age is text by its type"):
            AGE.with_name("age").codes(values)
        assert Number(0, 100, cells=4, missing=True).codes(values).tolist() == [1]


def test_cells_in_words():
    age = Number(0, 1, cells=3, missing=True).with_name("age")
    assert [age.describe(cell) for cell in range(4)] == [
        "age is missing",
        "age < 0.33333333",
        "0.33333333 <= age < 0.66666667",
        "age >= 0.66666667",
    ]
    work = SCHEMA.columns[1]
    assert [work.describe(cell) for cell in range(4)] == [
        "work is missing",
        "work = Private",
        "work = State-gov",
        "work is not listed",
    ]
    with pytest.raises(ParameterError, match="cell=4"):
        work.describe(4)
    assert Number(thresholds=[]).describe(0) == "value is any number"


def test_a_schema_is_equal_hashable_pickled_and_told_whole():
    again = eval(repr(SCHEMA), {"Schema": Schema, "Number": Number, "Category": Category})
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
    assert Schema({"age": AGE, "work": WORK}) != SCHEMA
    assert SCHEMA.names == ("age", "work")
    assert SCHEMA.features == 2
    assert Schema(age=AGE) == Schema({"age": AGE})
    assert Schema(b=AGE, a=AGE) != Schema(a=AGE, b=AGE)
    assert Number(0.0, 100, cells=4) == AGE
    assert Number(0, 100, cells=5) != AGE


FULL = Schema(
    age=Number(17, 90, cells=32),
    gain=Number(0, 1e5, scale="log", missing=["?", -1]),
    tax=Number(thresholds=[0.5, 7]),
    work=Category(["Private", 3, True], missing="?"),
)


def test_files(tmp_path):
    assert Schema.from_dict(FULL.to_dict()) == FULL
    written = tmp_path / "schema.json"
    written.write_text(json.dumps(FULL.to_dict()))
    assert Schema.from_file(written) == FULL
    toml = tmp_path / "schema.toml"
    toml.write_text(
        "[age]\nlow = 17\nhigh = 90\ncells = 32\n"
        '[gain]\nlow = 0\nhigh = 1e5\nscale = "log"\nmissing = ["?", -1]\n'
        "[tax]\nthresholds = [0.5, 7]\n"
        '[work]\nvalues = ["Private", 3, true]\nmissing = "?"\n'
    )
    assert Schema.from_file(str(toml)) == FULL


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[age]\nlow = 17\n", "age.high is required.* For example low = 0 and high = 100"),
        ('[age]\nlow = "x"\nhigh = 3\n', "age.low='x' is not allowed"),
        ("[age]\nlow = 17\nhihg = 3\n", "age.hihg=3 .* no such setting"),
        ("[age]\nvalues = [1]\ncells = 3\n", "age.cells=3 .* beside values"),
        ("age = 3\n", "age=3 .* table with low and high"),
        ("", "schema.toml' is not allowed: it has no table for any column"),
        ("[age\n", "not valid TOML"),
        ("[age]\nvalues = [1.5]\n", "age.values=1.5 .* whole number"),
        ("[age]\nvalues = []\n", "age.values=.* at least one value"),
    ],
)
def test_files_that_are_no_schema(tmp_path, text, told):
    (tmp_path / "schema.toml").write_text(text)
    with pytest.raises(ParameterError, match=told):
        Schema.from_file(tmp_path / "schema.toml")


class Kind(enum.IntEnum):
    ONE = 1


def test_values_are_shown_as_they_are_meant():
    assert repr(Category([Kind.ONE, np.str_("x")])) == "Category(values=[1, 'x'])"
    assert Schema({np.str_("age"): AGE}) == Schema(age=AGE)


@pytest.mark.slow
def test_a_long_list_is_read_at_once():
    values = [f"v{place}" for place in range(60_000)]
    assert Category(values, missing=[f"m{place}" for place in range(60_000)]).cells == 60_002
    with pytest.raises(ParameterError, match="'1000000 values'"):
        Category([*map(str, range(1_000_000))])


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_hostile_files(tmp_path, suffix):
    written = tmp_path / f"schema.{suffix}"
    start = "a = " if suffix == "toml" else ""
    deep, long = "[" * 100_000, "9" * 5000
    for text, told in [
        (start + deep, "nested too deep"),
        (f"a={long}" if start else f'{{"a": {long}}}', "not valid"),
        (" " * (LARGEST_FILE + 1), "more than 16 MiB"),
        ('"\\u001b" = 1' if start else '{"\\u001b": 1}', r"\\x1b=1"),
    ]:
        written.write_text(text)
        with pytest.raises(ParameterError, match=told):
            Schema.from_file(written)
    with pytest.raises(ParameterError, match="more than 16 MiB"):
        Schema.from_file("/dev/zero")


def test_a_table_within_a_thousand_others_is_told_of(tmp_path):
    written = tmp_path / "schema.toml"
    written.write_text(f"{'a.' * 3000}a = 1")
    # how deep a value can be shown depends on the Python
    with pytest.raises(ParameterError, match=r"a\.a=(<dict>|{)"):
        Schema.from_file(written)


def test_json_that_is_no_schema(tmp_path):
    written = tmp_path / "schema.json"
    for text, told in [
        ("{", "not valid JSON"),
        ('{"a": {"low": 0, "high": 1}, "a": {"low": 0, "high": 2}}', "occurs twice"),
        ("[]", "no table for any column"),
    ]:
        written.write_text(text)
        with pytest.raises(ParameterError, match=told):
            Schema.from_file(written)
    with pytest.raises(ParameterError, match="No such file"):
        Schema.from_file(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Number(), "low is required"),
        (lambda: Number(5, 1), "high=1 .* above low"),
        (lambda: Number(0, 1, cells=1), "cells=1"),
        (lambda: Number(0, 1, cells=1 << 16, missing=True), "cells=65537"),
        (lambda: Number(0, 1, scale="square"), "scale='square'"),
        (lambda: Number(0, 1, thresholds=[1]), "low and high are given"),
        (lambda: Number(0, 10**400), "high=1000.* finite number"),
        (lambda: Number(thresholds=[10**400]), "thresholds=.* ascending numbers"),
        (lambda: Number(thresholds=["a", [1]]), "thresholds=.* ascending numbers"),
        (lambda: Number(0, 1, scale=np.array([1, 2])), "scale="),
        (lambda: Schema.from_dict({1: {"low": 0, "high": 1}}), "every name must be text"),
        (lambda: Number(0, 1, missing=[None]), "missing="),
        (lambda: Category("abc"), "values='abc'"),
        (lambda: Category(["a", " a"]), "listed twice"),
        (lambda: Category([1, "1"]), "listed twice"),
        (lambda: Category(["?"], missing="?"), "means missing"),
        (lambda: Category([""]), "empty"),
        (lambda: Category({"a", "b"}), "values="),
        (lambda: Schema(), "at least one column"),
        (lambda: Schema(age=3), "every column one of Category, Date, Flag, Number"),
        (lambda: Schema({"age": AGE}, age=AGE), "each once"),
        (lambda: Schema([AGE]), "mapping"),
    ],
)
def test_wrong_declarations(make, told):
    with pytest.raises(ParameterError, match=told):
        make()
