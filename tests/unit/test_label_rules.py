"""One rule for blank, null, NaN, case, scale, zone, sign of zero and type, in memory and in text
files.

The same for engines: tests/engines/test_sources_agree.py.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privmax
from privmax.errors import DataError
from privmax.sources.containers.pandas import number_values
from privmax.sources.memory import MemorySource

COLUMNS = {"item": "who", "score": "count"}
MECHANISM = privmax.NestedMargin(epsilon=1, delta="0.1")


def pandas_series(labels, scores):
    return pd.Series(scores, index=pd.Index(labels, dtype=object))


def frame(kind):
    return lambda labels, scores: kind({"who": labels, "count": scores})


SOURCES = {
    "dict": lambda labels, scores: dict(zip(labels, scores, strict=True)),
    "pandas Series": pandas_series,
    "pandas objects": lambda labels, scores: pd.DataFrame(
        {"who": pd.Series(labels, dtype=object), "count": scores}
    ),
    "pandas": frame(pd.DataFrame),
    "polars": frame(pl.DataFrame),
    "Arrow": frame(pa.table),
    "Arrow batch": frame(pa.record_batch),
}
TYPED = ("polars", "Arrow", "Arrow batch")
"""Here all labels of a column have one type, and those that have not cannot be made."""


def read(name, labels):
    data = SOURCES[name](labels, list(range(len(labels), 0, -1)))
    columns = (
        COLUMNS if isinstance(data, (pd.DataFrame, pl.DataFrame, pa.Table, pa.RecordBatch)) else {}
    )
    return [label for label, _ in MemorySource(data, **columns).scores()]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("missing", [None, float("nan")], ids=["null", "NaN"])
@pytest.mark.parametrize("others", [["a", "b"], [1.5, 2.5], []], ids=["text", "numbers", "alone"])
def test_a_missing_label_is_refused(name, missing, others):
    if missing is not None and others == ["a", "b"] and name in TYPED:
        missing = None  # text has no NaN there
    with pytest.raises(DataError, match="A label is missing"):
        read(name, [*others, missing])


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, Decimal("NaN"), ("a", None)], ids=repr)
@pytest.mark.parametrize("name", ["dict", "pandas Series", "pandas objects"])
def test_whatever_stands_for_no_label_is_refused(name, missing):
    with pytest.raises(DataError, match="A label is missing"):
        read(name, ["a", missing])


BERLIN = dt.timezone(dt.timedelta(hours=2))
LABELS = {
    "blank": ["", " ", "a"],
    "words for nothing": ["nan", "None", "NULL", "NA"],
    "case": ["a", "A", "ä", "Ä"],
    "whole numbers": [1, 2, 2**53 - 1],
    "floats": [0.5, 0.1, 2.25],
    "dates": [dt.date(2024, 7, 1), dt.date(1, 1, 1)],
    "times without a zone": [dt.datetime(2024, 7, 1, 12), dt.datetime(2024, 7, 1, 12, 0, 0, 1)],
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_out_as_they_went_in(name, labels):
    found = read(name, labels)
    assert found == labels
    assert list(map(type, found)) == list(map(type, labels))


NAMES = {
    "scale": (
        [Decimal("1.10"), Decimal("2.50"), Decimal("100.00")],
        [Decimal("1.1"), Decimal("2.5"), Decimal(100)],
    ),
    "sign of zero": ([-0.0, 0.5], [0, 0.5]),
    "whole floats": ([7.0, 2.5], [7, 2.5]),
    "zone": (
        [dt.datetime(2024, 7, 1, 14, tzinfo=BERLIN)],
        [dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)],
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("given", "meant"), NAMES.values(), ids=NAMES)
def test_a_label_is_released_in_one_form(name, given, meant):
    found = read(name, given)
    assert found == meant
    assert [str(label).removesuffix(".0") for label in found] == [str(label) for label in meant]


@pytest.mark.parametrize("name", ["dict", "pandas Series", "pandas objects"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.0, -0.0),
        (Decimal("1.1"), Decimal("1.10")),
        (True, 1),
        (0.5, Decimal("0.50")),
    ],
    ids=repr,
)
def test_the_spelling_of_one_person_does_not_come_out(name, one, other):
    """To Python they are equal, so whoever counts has one of them: that of whoever came first."""
    assert [(type(label), repr(label)) for label in read(name, [one, "a"])] == [
        (type(label), repr(label)) for label in read(name, [other, "a"])
    ]


@pytest.mark.parametrize("name", SOURCES)
def test_zero_twice_is_a_label_twice(name):
    if name == "dict":
        return  # it holds one of them
    with pytest.raises(DataError, match="more than once"):
        read(name, [0.0, -0.0])


def test_a_type_that_pandas_inferred_from_other_rows_does_not_change_a_label(tmp_path):
    """Somebody's decimal, or a missing value, makes floats of whole numbers."""
    whole = pd.DataFrame({"who": [7, 8], "count": [5, 3]})
    floats = pd.DataFrame({"who": [7, 8.5], "count": [5, 3.0]})
    for data in (whole, floats):
        label, score = MemorySource(data, **COLUMNS).scores()[0]
        assert (label, type(label), score) == (7, int, 5)


def counted(labels, **options):
    """What can be released of a column, by its spelling."""
    data = pd.DataFrame({"who": labels})
    found = privmax.law(data, item="who", mechanism=MECHANISM, **options)
    return {(type(label), repr(label)) for label in found if label is not None}


@pytest.mark.slow
@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("other", [[], [None], ["a"], [2.5]], ids=repr)
def test_true_is_one_whatever_stands_beside_it(label, other):
    """pandas calls a column bool, or one of objects because of one other row."""
    whole = (int, repr(int(label)))
    assert whole in counted([label] * 300 + other)
    frame = pd.DataFrame({"who": [label, *other], "count": range(1 + len(other))})
    index = pd.Series(range(2), index=[label, "b" if not other or other[0] is None else other[0]])
    if other != [None]:
        assert repr(MemorySource(frame, **COLUMNS).scores()[0][0]) == whole[1]
    assert repr(MemorySource(index).scores()[0][0]) == whole[1]
    assert repr(MemorySource(pd.Series([7], index=[label])).scores()[0][0]) == whole[1]


class Day(dt.date):
    def __repr__(self):
        return "a day of mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("0.1"), Fraction(1, 10)),
        (1, 1 + 0j),
        (2**53 - 1, Decimal("9007199254740991.0")),
        (dt.date(2024, 7, 1), Day(2024, 7, 1)),
        (0.5, np.longdouble(0.5)),
    ],
    ids=["tenth", "complex", "large", "date", "long double"],
)
def test_whoever_comes_first_does_not_choose_the_spelling(one, other):
    orders = [[one, other, None], [other, one, None], [one, None], [other, None]]
    found = [counted(pd.Series(order, dtype=object)) for order in orders]
    assert all(labels == found[0] and len(labels) == 1 for labels in found)


class Loud:
    """Somebody's own class, whose errors quote it."""

    def __hash__(self):
        raise RuntimeError("zorblax")


ODD = [Loud(), object(), ["zorblax"], pd.Period("2024"), 1j]


def quoted(error):
    return error.__context__ or error.__cause__ or "zorblax" in str(error)


@pytest.mark.parametrize(
    "label",
    [Loud(), object(), ["zorblax"], pd.Period("2024"), 1j],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("other", [[], ["a"], [None]], ids=repr)
def test_a_type_that_has_no_one_form_is_refused(label, other):
    column = pd.Series([label, *other], dtype=object)
    for data, options in [
        (pd.DataFrame({"who": column}), {"item": "who"}),
        (pd.DataFrame({"who": column, "count": range(len(column))}), COLUMNS),
        (
            pd.DataFrame({"who": column, "count": range(len(column))}),
            {"item": "who", "user": "count"},
        ),
    ]:
        with pytest.raises(
            DataError, match="Use text, numbers, dates, or tuples of them"
        ) as caught:
            privmax.select(data, epsilon=1, delta="0.1", **options)
        assert not quoted(caught.value)


@pytest.mark.parametrize(
    "label", [object(), pd.Period("2024"), 1j], ids=lambda one: type(one).__name__
)
def test_a_mapping_has_labels_of_known_types(label):
    with pytest.raises(DataError, match="Use text, numbers, dates, or tuples of them"):
        MemorySource({label: 1, "a": 2})


@pytest.mark.parametrize("other", [[], ["a"], [None], [1]], ids=repr)
def test_half_a_character_is_refused_whatever_stands_beside_it(other):
    data = pd.DataFrame({"who": pd.Series(["zorblax\ud800", *other], dtype=object)})
    with pytest.raises(DataError, match="not valid text") as caught:
        privmax.select(data, item="who", epsilon=1, delta="0.1")
    assert not quoted(caught.value)


@pytest.mark.parametrize("kind", ["period[D]", "interval"])
def test_columns_of_periods_and_intervals_are_refused(kind):
    column = pd.Series(
        pd.period_range("2024", periods=3) if kind == "period[D]" else pd.interval_range(0, 3)
    )
    assert str(column.dtype).startswith(kind)
    data = pd.DataFrame({"who": column, "count": range(3)})
    for options in ({"item": "who"}, COLUMNS):
        with pytest.raises(DataError, match="Use text, numbers, dates"):
            privmax.select(data, epsilon=1, delta="0.1", **options)
    with pytest.raises(DataError, match="Use text, numbers, dates"):
        MemorySource(data.set_index("who")["count"])


@pytest.mark.parametrize("lazy", [False, True])
def test_objects_in_polars_are_not_counted_by_where_they_are(lazy):
    data = pl.DataFrame({"who": pl.Series([object(), object()], dtype=pl.Object)})
    with pytest.raises(DataError, match="Use text, numbers, dates"):
        privmax.select(data.lazy() if lazy else data, item="who", epsilon=1, delta="0.1")


def test_categories_of_several_types_are_labels_by_value():
    column = pd.Series(["a", 1.0, True, Decimal("1.0")], dtype=object)
    assert counted(column.astype("category")) == {(str, "'a'"), (int, "1")}


# Text files: an empty value is null, everything else is text


@pytest.mark.parametrize("user", [None, "person"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_blank_is_no_item_in_text_and_an_item_where_text_has_a_type(tmp_path, user, ending):
    items, path = ["a", "a", "", None, "nan", "A"], tmp_path / f"rows.{ending}"
    rows = pd.DataFrame({"item": items, "person": range(6)})
    rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)
    found = set(privmax.law(path, item="item", user=user, mechanism=MECHANISM))
    assert found == {"a", "nan", "A", None} | ({""} if ending == "parquet" else set())


@pytest.mark.parametrize("kind", [dict, pd.Series], ids=lambda kind: kind.__name__)
def test_the_empty_text_is_an_item_that_can_be_released(kind):
    release = privmax.select(kind({"": 10**6, "a": 1}), epsilon=1, delta="1e-6")
    assert release.items == ("",)


DAY = dt.date(2024, 1, 1)
ARROW = {
    "whole": (pa.int64(), 1),
    "short": (pa.int8(), 1),
    "float": (pa.float64(), 0.5),
    "single": (pa.float32(), 0.1),
    "truth": (pa.bool_(), True),
    "text": (pa.string(), "1"),
    "bytes": (pa.binary(), b"1"),
    "date": (pa.date32(), DAY),
    "date in milliseconds": (pa.date64(), DAY),
    "moment": (pa.timestamp("s"), dt.datetime(2024, 1, 1)),
    "moment with a zone": (pa.timestamp("ns", "UTC"), dt.datetime(2024, 1, 1)),
    "time": (pa.time64("us"), dt.time(1)),
    "duration": (pa.duration("us"), dt.timedelta(1)),
    "decimal": (pa.decimal128(10, 3), Decimal("0.1")),
}
"""A type of Arrow that pandas can hold, and a value of it."""


def labels_of_pandas(column):
    numbers, labels = number_values(column)
    return [None if at < 0 else (type(labels[at]), labels[at]) for at in numbers]


@pytest.mark.parametrize("name", ARROW)
def test_no_type_of_arrow_in_pandas_gives_way_to_another_row(name):
    """Dates became moments beside one."""

    def column(kind, value):
        return pd.Series([value], dtype=pd.ArrowDtype(kind))

    base = column(*ARROW[name])
    if name.startswith("date"):
        with pytest.raises(DataError, match=r"Arrow's dates.*datetime64"):
            number_values(base)
        return
    odd = [column(*given) for given in ARROW.values()]
    odd += [pd.Series([value]) for value in (None, 1, 0.5, "x", DAY, pd.Timestamp(DAY))]
    compared = 0
    for row in odd:
        try:
            labels = labels_of_pandas(pd.concat([base, row], ignore_index=True))
        except (DataError, pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
            continue  # refused, or pandas cannot put them together
        assert labels[0] == labels_of_pandas(base)[0]
        compared += 1
    assert compared > 1


FAR = {
    "moment": pa.array([2**61, 0], pa.timestamp("us")),
    "moment with a zone": pa.array([-(2**61), 0], pa.timestamp("us", "UTC")),
    "date": pa.array([2**31 - 1, 0], pa.date32()),
    "duration": pa.array([2**61, 0], pa.duration("ms")),
}


@pytest.mark.parametrize("kind", ["polars", "Arrow"])
@pytest.mark.parametrize("labels", FAR.values(), ids=FAR)
def test_every_moment_has_a_label(kind, labels):
    """Whether naming an item fails must not depend on which was drawn."""
    table = pa.table({"who": labels, "count": [900, 1]})
    data = pl.from_arrow(table) if kind == "polars" else table
    found = [label for label, _ in MemorySource(data, **COLUMNS).scores()]
    assert isinstance(found[0], (np.datetime64, np.timedelta64))
    assert found[0].astype(np.int64) == labels[0].value
    assert privmax.select(data, **COLUMNS, epsilon=1, delta=1e-6).item == found[0]
