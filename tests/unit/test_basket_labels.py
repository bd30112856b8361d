"""What an item is called, and what is none: the same in lists, frames and text, whoever else is in
the data.
"""

from __future__ import annotations

import io
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privmax.errors import DataError
from privmax.itemsets import top_itemsets
from privmax.itemsets.reading.forms import read_baskets
from privmax.testing import SeededCoins


class Word(str):
    """Text that calls itself something else."""

    __slots__ = ()

    def __str__(self):
        return "somebody's own"

    __repr__ = __str__


Pair = namedtuple("Pair", "left right")
EAST, TOKYO = timezone(timedelta(hours=5, minutes=30)), ZoneInfo("Asia/Tokyo")
NOON, MAY, SEVEN = datetime(2026, 5, 1, 12, tzinfo=UTC), datetime(2026, 5, 1), time(7, tzinfo=UTC)

SAME = {
    "whole numbers": (
        [1, 1.0, True, Decimal("1"), Decimal("1.00"), Fraction(1), np.int8(1), np.float32(1)],
        1,
    ),
    "zero": ([0, 0.0, -0.0, Decimal("-0.0"), Decimal("0E+3"), False, np.float64(-0.0)], 0),
    "halves": ([0.5, Decimal("0.50"), Fraction(1, 2), np.float32(0.5)], 0.5),
    "tenths": (
        [Decimal("0.1"), Decimal("0.10"), Decimal("1E-1"), Decimal("0.1000000")],
        Decimal("0.1"),
    ),
    "large decimals": ([Decimal("1E+3"), Decimal("1000.0"), 1000, 1e3], 1000),
    "text": (["a", Word("a"), np.str_("a")], "a"),
    "bytes": ([b"a", np.bytes_(b"a")], b"a"),
    "moments": (
        [NOON, NOON.astimezone(EAST), NOON.astimezone(TOKYO), pd.Timestamp(NOON).tz_convert(TOKYO)],
        NOON,
    ),
    "local times": (
        [MAY, MAY.replace(fold=1), pd.Timestamp("2026-05-01"), np.datetime64("2026-05-01", "s")],
        MAY,
    ),
    "times of day": ([SEVEN, time(12, 30, tzinfo=EAST), SEVEN.replace(fold=1)], SEVEN),
    "spans": ([timedelta(1), pd.Timedelta(days=1), np.timedelta64(24, "h")], timedelta(1)),
    "tuples": (
        [("a", 1), (Word("a"), 1.0), Pair("a", Decimal("1.00")), (np.str_("a"), True)],
        ("a", 1),
    ),
}
"""Values that are equal, and the one item that they are."""


def object_frame(items):
    return pd.DataFrame({"b": range(len(items)), "i": pd.Series(items, dtype=object)})


def category_frame(items):
    return object_frame(items).astype({"i": "category"})


@pytest.mark.parametrize("name", SAME)
def test_equal_values_are_one_item_whoever_comes_first(name):
    values, label = SAME[name]
    for first in range(len(values)):
        items = [*values[first:], *values[:first]]
        for found in (
            read_baskets([[item] for item in items]),
            read_baskets(object_frame(items), basket="b", item="i"),
            read_baskets(
                pl.DataFrame({"b": range(len(items)), "i": pl.Series(items, dtype=pl.Object)}),
                basket="b",
                item="i",
            ),
        ):
            assert repr(found.labels) == repr([label])
            assert type(found.labels[0]) is type(label)
            assert found.supports().tolist() == [len(items)]


@pytest.mark.parametrize("name", ["whole numbers", "zero", "halves", "tenths", "text", "tuples"])
def test_categories_hold_whichever_came_first(name):
    values, label = SAME[name]
    for items in (values, values[::-1]):
        assert repr(read_baskets(category_frame(items), basket="b", item="i").labels) == repr(
            [label]
        )


def test_what_is_released_does_not_tell_who_wrote_it():
    """One person among 301 writes the most frequent item in another way: the release is the same to
    the letter.
    """
    others = [[1, "tea"]] * 300
    for odd in (1.0, True, Decimal("1.0000"), np.float64(1)):
        for rows in ([[odd, "tea"], *others], [*others, [odd, "tea"]]):
            release = top_itemsets(rows, epsilon=1, delta="1e-6", coins=SeededCoins(1))
            assert repr(release.items) == repr(((1, "tea"),))


DIFFERENT = [
    1,
    2.5,
    "1",
    b"1",
    date(2026, 5, 1),
    datetime(2026, 5, 1),
    NOON,
    Decimal("0.1"),
    0.1,
    ("1",),
    (1,),
    "",
]


def test_different_items_stay_apart():
    found = read_baskets([[item] for item in DIFFERENT])
    assert len(found.labels) == len(DIFFERENT)
    assert found.supports().tolist() == [1] * len(DIFFERENT)


OTHERS = {
    "nobody": [],
    "a missing one": [None],
    "NaN": [float("nan")],
    "a half": [2.5],
    "a large one": [2**40],
}
FRAMES = {
    "pandas": lambda items: pd.DataFrame({"i": items}),
    "pandas of objects": lambda items: pd.DataFrame({"i": pd.Series(items, dtype=object)}),
    "pandas of nullable numbers": lambda items: pd.DataFrame({"i": items}).convert_dtypes(),
    "pandas of categories": lambda items: pd.DataFrame({"i": pd.Series(items).astype("category")}),
    "pandas from a file": lambda items: pd.read_csv(
        io.StringIO("n,i\n" + "".join(f"x,{'' if item is None else item}\n" for item in items))
    ),
    "polars": lambda items: pl.DataFrame({"i": items}, strict=False),
    "arrow": lambda items: pa.table({"i": pa.array(items, from_pandas=True)}),
}


def with_baskets(frame):
    if isinstance(frame, pd.DataFrame):
        return frame.assign(b=range(len(frame)))
    if isinstance(frame, pl.DataFrame):
        return frame.with_row_index("b")
    return frame.append_column("b", pa.array(range(frame.num_rows)))


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_the_type_of_an_item_does_not_depend_on_others(make, others):
    frame = with_baskets(make([1, 7, *others, 7]))
    found = read_baskets(frame, basket="b", item="i")
    assert [repr(label) for label in found.labels if label in (1, 7)] == ["1", "7"]
    assert found.supports().tolist()[found.labels.index(7)] == 2


@pytest.mark.parametrize("other", [Decimal("2.25"), Decimal("1E-9"), Decimal(3)], ids=str)
def test_the_scale_of_a_decimal_does_not_depend_on_others(other):
    """Arrow gives a column the scale of the longest."""
    items = [Decimal("0.1"), Decimal("1.5"), other]
    for frame in (pa.table({"i": items}), pl.DataFrame({"i": items}), pd.DataFrame({"i": items})):
        labels = read_baskets(with_baskets(frame), basket="b", item="i").labels
        assert [repr(label) for label in labels if label in (Decimal("0.1"), 1.5)] == [
            "Decimal('0.1')",
            "1.5",
        ]
    typed = pd.DataFrame({"i": pd.Series(items, dtype=pd.ArrowDtype(pa.decimal128(20, 9)))})
    assert repr(read_baskets(with_baskets(typed), basket="b", item="i").labels[0]) in (
        "Decimal('1E-9')",
        "Decimal('0.1')",
    )


@pytest.mark.parametrize(
    "other", [np.datetime64("2026-01-01T00:00:00.000000001"), np.datetime64("2026-01-02", "s")]
)
def test_the_unit_of_a_time_does_not_depend_on_others(other):
    frame = pd.DataFrame({"i": np.array([np.datetime64("2026-01-01T08:00", "us"), other])})
    labels = read_baskets(with_baskets(frame), basket="b", item="i").labels
    assert "datetime.datetime(2026, 1, 1, 8, 0)" in map(repr, labels)


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("s")], ids=str
)
def test_dates_that_python_does_not_have_are_items_too(kind):
    """Nobody learns, from an error, that there is one."""
    far = pa.array(
        [5, 2_000_000_000 if kind == pa.date32() else 2**53],
        pa.int32() if kind == pa.date32() else pa.int64(),
    )
    column = far.cast(kind) if kind != pa.duration("s") else far.view(kind)
    for frame in (pa.table({"i": column}), pl.DataFrame({"i": pl.Series(column)})):
        found = read_baskets(with_baskets(frame), basket="b", item="i")
        assert found.supports().tolist() == [1, 1]


# What is no item


def cells(item):
    """What a file holds in its place."""
    return "" if item is None or item != item else item


SOURCES = {
    "lists": lambda rows: read_baskets([list(row) for row in rows]),
    "tuples": lambda rows: read_baskets(tuple(map(tuple, rows))),
    "a wide file": lambda rows: read_baskets(
        io.StringIO("".join(",".join(map(cells, row)) + "\n" for row in rows)), form="wide"
    ),
    "a long file": lambda rows: read_baskets(
        io.StringIO(
            "b,i\n" + "".join(f"{n},{cells(item)}\n" for n, row in enumerate(rows) for item in row)
        ),
        basket="b",
        item="i",
    ),
    "pandas": lambda rows: read_baskets(pd.DataFrame(entries(rows)), basket="b", item="i"),
    "pandas of objects": lambda rows: read_baskets(
        pd.DataFrame(entries(rows), dtype=object), basket="b", item="i"
    ),
    "pandas of categories": lambda rows: read_baskets(
        pd.DataFrame(entries(rows)).astype({"i": "category"}), basket="b", item="i"
    ),
    "polars": lambda rows: read_baskets(
        pl.DataFrame(entries(rows, nan=None)), basket="b", item="i"
    ),
    "arrow": lambda rows: read_baskets(pa.table(entries(rows, nan=None)), basket="b", item="i"),
}


def entries(rows, nan=float("nan")):
    pairs = [(n, nan if item != item else item) for n, row in enumerate(rows) for item in row]
    return {"b": [n for n, _ in pairs], "i": [item for _, item in pairs]}


@pytest.mark.parametrize("read_rows", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("missing", [None, float("nan")], ids=str)
def test_what_is_missing_is_no_item_and_its_basket_is_one_all_the_same(read_rows, missing):
    found = read_rows([["milk", missing], [missing], ["milk", "jam"]])
    assert found.labels == ["jam", "milk"]
    assert (found.individuals, found.supports().tolist()) == (3, [1, 2])


@pytest.mark.parametrize(
    "missing",
    [pd.NA, pd.NaT, np.float32("nan"), Decimal("NaN"), np.datetime64("NaT", "ns"), pa.scalar(None)],
)
def test_everything_that_libraries_write_for_nothing_is_no_item(missing):
    assert read_baskets([["milk", missing]]).labels == ["milk"]
    assert read_baskets(object_frame(["milk", missing]), basket="b", item="i").labels == ["milk"]
    assert read_baskets([["milk", ("a", missing)]]).labels == ["milk"]


@pytest.mark.parametrize("name", [name for name in SOURCES if "file" not in name])
def test_empty_text_is_an_item_where_values_have_types(name):
    assert SOURCES[name]([["milk", ""], [""], ["milk", None]]).labels == ["", "milk"]


@pytest.mark.parametrize("name", [name for name in SOURCES if "file" in name])
def test_empty_text_is_no_item_in_a_file(name):
    assert SOURCES[name]([["milk", ""], [""], ["milk", '""']]).labels == ["milk"]


@pytest.mark.parametrize("read_rows", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("word", ["NaN", "null", "None", "NA", "nan"])
def test_words_for_nothing_are_words(read_rows, word):
    assert sorted(read_rows([["milk", word]]).labels) == sorted(["milk", word])


@pytest.mark.parametrize("missing", [None, float("nan")], ids=str)
@pytest.mark.parametrize("key", ["basket", "user"])
@pytest.mark.parametrize(
    "make", [pd.DataFrame, lambda data: pd.DataFrame(data, dtype=object), pl.DataFrame, pa.table]
)
def test_nobody_is_not_an_individual(make, key, missing):
    data = {"basket": [1.0, 2.0], "user": [1.0, 2.0], "item": ["a", "b"], key: [1.0, missing]}
    with pytest.raises(DataError, match=f"^Row 2 has no {key}"):
        read_baskets(make(data), basket="basket", item="item", user="user")
    with pytest.raises(DataError, match=f"^Row 2 has no {key}"):
        read_baskets(make({"item": [1, 0], key: [1.0, missing]}), form="onehot", **{key: key})


def test_nobody_is_not_an_individual_in_a_file():
    for line, key in ((",x,a", "basket"), ("1,,a", "user")):
        with pytest.raises(DataError, match=f"^Line 3 has no {key}"):
            read_baskets(io.StringIO(f"b,u,i\n1,x,a\n{line}\n"), basket="b", item="i", user="u")
