"""Released items as JSON: exactly, and back again."""

from __future__ import annotations

import enum
import json
import math
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmax.encoding import SMALL, decode, encode, recordable

Pair = namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Rude:
    """Nothing that prints it works."""

    def __repr__(self):
        raise RuntimeError("zorblax")


def through(value):
    """A value as it comes out of a ledger."""
    return decode(json.loads(json.dumps(encode(value), allow_nan=False)))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),  # halves of surrogate pairs too
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
    st.uuids(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@given(VALUES)
@settings(deadline=None)
def test_every_value_comes_back_as_what_it_was(value):
    again = through(value)
    assert again == value
    assert type(again) is type(value)
    assert encode(again) == encode(
        value
    )  # equal values of other types are told apart: 1, 1.0, True
    assert recordable([value])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("fig", "fig"),
        (7, 7),
        (True, True),
        (None, None),
        (SMALL - 1, SMALL - 1),
        (-SMALL, {"int": "-0x20000000000000"}),
        (1.5, {"float": "0x1.8000000000000p+0"}),
        (-0.0, {"float": "-0x0.0p+0"}),
        (math.inf, {"float": "inf"}),
        (Decimal("1.00"), {"decimal": "1.00"}),
        (b"\x00a", {"bytes": "0061"}),
        (date(2026, 3, 1), {"date": "2026-03-01"}),
        (time(3, 4), {"time": "03:04:00"}),
        (datetime(2026, 3, 1, 2), {"datetime": "2026-03-01T02:00:00"}),
        (timedelta(-1, 5, 7), {"timedelta": [-1, 5, 7]}),
        (UUID(int=5), {"uuid": "00000000-0000-0000-0000-000000000005"}),
        (("a", 1, ()), {"tuple": ["a", 1, {"tuple": []}]}),
        (frozenset({2, 1}), {"frozenset": [1, 2]}),
    ],
    ids=repr,
)
def test_the_form_of_each_type(value, written):
    assert encode(value) == written
    assert repr(through(value)) == repr(value)


def test_numbers_too_long_for_json_come_back():
    assert through(10**5000 + 1) == 10**5000 + 1
    assert through(-(10**5000)) == -(10**5000)


@pytest.mark.parametrize("text", ["nan", "sNaN", "NaN123", "-0", "1E+5", "0.10", "Infinity"])
def test_decimals_keep_their_form(text):
    assert str(through(Decimal(text))) == str(Decimal(text))


def test_a_float_that_is_no_number_comes_back():
    assert math.isnan(through(math.nan))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.bool_(True), True),
        (np.str_("fig"), "fig"),
        (np.bytes_(b"fig"), b"fig"),
        (np.datetime64("2026-03-01"), date(2026, 3, 1)),
        (np.datetime64("2026-03-01T02:00:00"), datetime(2026, 3, 1, 2)),
        (np.timedelta64(5, "s"), timedelta(seconds=5)),
        (pd.Timestamp("2026-03-01 02:00"), datetime(2026, 3, 1, 2)),
        (Number.ONE, 1),
        (Pair("a", np.int8(2)), ("a", 2)),
        (
            datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Paris")),
            datetime(2026, 7, 1, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
    ids=repr,
)
def test_other_types_become_the_plain_value_they_equal(value, plain):
    again = through(value)
    assert again == value == plain
    assert type(again) is type(plain)
    assert recordable([value])


@pytest.mark.parametrize(
    "value",
    [
        Color.RED,
        1j,
        np.complex64(1),
        np.longdouble(1),
        np.datetime64("2026-03-01", "ns"),
        np.datetime64("NaT", "s"),
        pd.NaT,
        pd.Timestamp(1),  # a nanosecond
        pd.Timedelta(1),
        Rude,
    ],
    ids=repr,
)
def test_what_json_cannot_hold_becomes_its_text_and_is_known_before(value):
    written = encode(value)
    assert written == {
        "text": repr(value),
        "type": f"{type(value).__module__}.{type(value).__qualname__}",
    }
    assert through(value) == repr(value)
    assert through(("a", value)) == ("a", repr(value))
    assert recordable(["a", 1])
    assert not recordable(["a", value])
    assert not recordable([("a", frozenset({value}))])


def test_writing_never_fails():
    assert through(Rude()).endswith("Rude>")
    assert "zorblax" not in json.dumps(encode(Rude()))
    assert not recordable([Rude()])
