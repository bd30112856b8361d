"""One spelling for each label: what Python calls equal comes out identical, whoever wrote it and in
whatever type.
"""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privmax.labels import by_name, is_missing, key_by_name, label_by_value, plain_label, read_label


class Text(str):
    __slots__ = ()


class Third(Fraction):
    pass


class Day(dt.date):
    def __repr__(self):
        return "a day"


class Color(StrEnum):
    RED = "red"


Pair = namedtuple("Pair", "a b")

BERLIN = ZoneInfo("Europe/Berlin")


def zone(hours, minutes=0, seconds=0):
    return dt.timezone(dt.timedelta(hours=hours, minutes=minutes, seconds=seconds))


def same(one, other):
    """Identical to whoever sees them: type, repr, and the same in every part."""
    folds = [getattr(label, "fold", 0) for label in (one, other)]  # pandas does not print it
    return type(one) is type(other) and repr(one) == repr(other) and folds[0] == folds[1]


SPELLINGS = {
    "text": ["red", np.str_("red"), Text("red"), Color.RED, pa.scalar("red")],
    "empty text": ["", np.str_(""), Text("")],
    "bytes": [b"ab", np.bytes_(b"ab"), pa.scalar(b"ab")],
    "whole number": [7, np.int8(7), np.uint64(7), pa.scalar(7)],
    "float": [0.5, np.float64(0.5), np.float32(0.5), np.float16(0.5), pa.scalar(0.5)],
    "sign of zero": [0.0, -0.0, np.float32(-0.0)],
    "scale": [
        Decimal("1.1"),
        Decimal("1.10"),
        Decimal("1.1" + "0" * 1234),
        Decimal("11e-1"),
        Decimal("0001.1"),
    ],
    "exponent": [Decimal(1500), Decimal("15e2"), Decimal("1.5E+3"), Decimal("1500.00")],
    "many digits": [Decimal("1." + "1" * 60), Decimal("1." + "1" * 60 + "0")],
    "zero": [Decimal(0), Decimal("-0"), Decimal("0.00"), Decimal("0E+9")],
    "huge": [Decimal("1E+5000"), Decimal("10E+4999")],
    "zone": [
        dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC),
        dt.datetime(2024, 7, 1, 14, tzinfo=BERLIN),
        dt.datetime(2024, 7, 1, 7, tzinfo=zone(-5)),
        pd.Timestamp("2024-07-01 14:00", tz="Europe/Berlin"),
        pa.scalar(
            dt.datetime(2024, 7, 1, 14, tzinfo=BERLIN), pa.timestamp("us", tz="Europe/Berlin")
        ),
    ],
    "repeated hour": [
        dt.datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)
    ],
    "repeated hour of pandas": [
        pd.Timestamp("2020-10-25 02:30").replace(fold=fold) for fold in (0, 1)
    ],
    "repeated hour in nanoseconds": [
        pd.Timestamp("2020-10-25 02:30:00.000000001").replace(fold=fold) for fold in (0, 1)
    ],
    "hour in UTC that says it is repeated": [
        pd.Timestamp("2020-10-25 02:30", tz="UTC").replace(fold=fold) for fold in (0, 1)
    ],
    "before year 1 in UTC": [
        dt.datetime(1, 1, 1, 1, tzinfo=zone(2)),
        dt.datetime(1, 1, 1, 4, tzinfo=zone(5)),
    ],
    "after year 9999 in UTC": [
        dt.datetime(9999, 12, 31, 23, tzinfo=zone(-2)),
        dt.datetime(9999, 12, 31, 20, tzinfo=zone(-5)),
    ],
    "no zone": [
        dt.datetime(2024, 7, 1, 12),
        pd.Timestamp("2024-07-01 12:00"),
        np.datetime64("2024-07-01T12:00", "ns"),
        np.datetime64("2024-07-01T12:00", "s"),
    ],
    "date": [dt.date(2024, 7, 1), np.datetime64("2024-07-01", "D"), pa.scalar(dt.date(2024, 7, 1))],
    "time of day": [
        dt.time(11, 30, tzinfo=dt.UTC),
        dt.time(12, 30, tzinfo=zone(1)),
        dt.time(6, 30, tzinfo=zone(-5)),
    ],
    "time of another day": [
        dt.time(20, tzinfo=zone(-5)),
        dt.time(21, tzinfo=zone(-4)),
        dt.time(16, tzinfo=zone(-9)),
    ],
    "time of the day before": [dt.time(0, 30, tzinfo=zone(1)), dt.time(9, 30, tzinfo=zone(10))],
    "farthest zones": [
        dt.time(0, 0, 1, tzinfo=zone(23, 59, 59)),
        dt.time(0, 0, 0, tzinfo=zone(23, 59, 58)),
    ],
    "span": [
        dt.timedelta(hours=1),
        pd.Timedelta("1h"),
        np.timedelta64(3600, "s"),
        np.timedelta64(3600 * 10**9, "ns"),
    ],
    "tuple": [(0.0, Decimal("1.0")), (-0.0, Decimal(1)), Pair(np.float64(-0.0), Decimal("1.00"))],
    "set": [frozenset({Decimal("1.0")}), frozenset({Decimal("1.00")})],
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_a_label_is_the_same_label(name):
    first, *others = SPELLINGS[name]
    for other in others:
        assert same(plain_label(first), plain_label(other)), other
    assert same(plain_label(plain_label(first)), plain_label(first))


EQUAL_TO_PYTHON = {
    "one": [1, 1.0, True, Decimal("1.0"), Fraction(1), np.float32(1), np.True_],
    "zero": [0, 0.0, -0.0, False, Decimal("-0.00"), Fraction(0)],
    "half": [0.5, Decimal("0.50"), Fraction(1, 2)],
    "beyond floats": [10**400, Decimal(10**400), Fraction(10**400)],
    "infinite": [float("inf"), Decimal("Infinity"), np.longdouble("inf")],
    "a tenth": [Decimal("0.1"), Fraction(1, 10), Decimal("0.10")],
    "a third": [Fraction(1, 3), Third(1, 3)],
    "complex": [1, 1 + 0j, np.complex64(1), np.clongdouble(1), np.longdouble(1)],
    "huge": [10**2000, Decimal("1e2000"), Fraction(10**2000), Decimal(10**2000)],
    "about as large as is written out": [10**1001 - 1, Decimal(10**1001 - 1)],
    "just larger": [10**1001, Decimal("1e1001")],
    "tiny": [Decimal("1e-2000"), Fraction(1, 10**2000)],
    "day": [dt.date(2024, 7, 1), Day(2024, 7, 1)],
    "order of a set": [frozenset([0, 8]), frozenset([8, 0])],
    "tuple": [(1, "a"), (1.0, "a"), (True, Text("a")), (Decimal("1.00"), "a")],
    "set": [frozenset({1, 2}), frozenset({1.0, Decimal("2.0")})],
}


@pytest.mark.parametrize("name", EQUAL_TO_PYTHON)
def test_what_is_equal_to_python_is_one_label_where_types_may_be_mixed(name):
    first, *others = EQUAL_TO_PYTHON[name]
    for other in others:
        assert first == other  # so a dict holds one of them, as whoever came first wrote it
        assert same(label_by_value(first), label_by_value(other)), other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        ("", " "),
        ("a", "A"),
        ("é", "e\u0301"),
        (0.1, Decimal("0.1")),
        (2**53, 2**53 + 1),
        (dt.date(2024, 7, 1), dt.datetime(2024, 7, 1)),
        (dt.datetime(2024, 7, 1), dt.datetime(2024, 7, 1, tzinfo=dt.UTC)),
        (dt.time(23, 30, tzinfo=dt.UTC), dt.time(0, 30, tzinfo=zone(1))),
        (pd.Timestamp("2024-07-01").value, pd.Timestamp("2024-07-01")),
        (np.datetime64(1, "ns"), np.datetime64(0, "ns")),
        (pd.Timedelta(1), pd.Timedelta(0)),
    ],
    ids=repr,
)
def test_labels_that_differ_stay_apart(one, other):
    assert label_by_value(one) != label_by_value(other)


@pytest.mark.parametrize(
    "label",
    [
        None,
        float("nan"),
        np.float32("nan"),
        Decimal("NaN"),
        Decimal("sNaN"),
        pd.NaT,
        pd.NA,
        np.datetime64("NaT", "ns"),
    ],
)
def test_what_stands_for_no_label(label):
    assert is_missing(label)
    assert is_missing(("a", label))
    assert is_missing(plain_label(label))


@pytest.mark.parametrize(
    "label",
    ["", "nan", "None", 0, 0.0, False, (), ("",), b"", dt.date.min, Decimal(0), "NA"],
    ids=repr,
)
def test_what_is_a_label_though_it_looks_like_none(label):
    assert not is_missing(label)
    assert plain_label(label) == label


def test_a_class_of_its_own_is_left_alone():
    class Odd:
        def __ne__(self, other):
            raise RuntimeError

        __hash__ = object.__hash__

    odd = Odd()
    assert not is_missing(odd)
    assert label_by_value(odd) is odd


def test_decimals_of_huge_exponents_are_sorted_without_writing_them_out():
    far = [Decimal("1E+999999999"), Decimal("1E-999999999"), Decimal("-1E+999999999")]
    labels = [*far, Decimal("0.5"), 1, "tea"]
    backward = labels[::-1]
    assert sorted(labels, key=by_name) == sorted(backward, key=by_name)
    assert len({by_name(label) for label in labels}) == len(labels)


@pytest.mark.parametrize(
    "labels", [[3, -1, 10**30], ["b", "", "B", "é"], [True, 0, 2], ["2", 10, 9], [(2,), (1, "a")]]
)
def test_a_key_for_labels_of_one_kind_sorts_as_by_name_does(labels):
    assert sorted(labels, key=key_by_name(labels)) == sorted(labels, key=by_name)


def test_a_set_with_a_missing_part_is_missing_as_a_tuple_is():
    for part in (None, float("nan"), Decimal("NaN")):
        assert read_label(frozenset({"a", part})) is None
        assert read_label(("a", part)) is None
