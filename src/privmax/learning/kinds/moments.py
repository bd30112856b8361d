"""Moments as whole seconds since 1970 in UTC: of text, of objects, of arrays.

A moment with a zone is taken in UTC; one without stands as it is written, as if that were UTC. Text
is never in another zone. A date is its first moment. Parts of a second are left out, downward, so
that a moment is at or after a whole second exactly if its seconds are.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.learning.kinds.values import SPACES

_LEAP = "([0-9]{2}([0][48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])[0]{2})"
_DATE = (
    "([0-9]{4}[-](([0][13578]|[1][02])[-]([0][1-9]|[12][0-9]|[3][01])"
    "|([0][469]|[1][1])[-]([0][1-9]|[12][0-9]|[3][0])"
    "|[0][2][-]([0][1-9]|[1][0-9]|[2][0-8]))"
    f"|{_LEAP}[-][0][2][-][2][9])"
)
_UTC = "([zZ]|[+][0]{2}([:][0]{2})?)?"
_CLOCK = f"([01][0-9]|[2][0-3])[:][0-5][0-9]([:][0-5][0-9]([.][0-9]{{1,9}})?{_UTC})?"

MOMENT = f"^{_DATE}([ tT]{_CLOCK})?$"
"""A text that is read as a moment: a day of the calendar, perhaps with a time, and that perhaps
with a sign that it is in UTC. Such texts have the order of their moments, but for the letter
between the two (`sort_key`), so an engine need not compute anything. Engines match it, too, some of
them with every character in hexadecimal digits: so each is in brackets."""

DAY = 86_400
"""Seconds."""

_EPOCH = datetime.datetime(1970, 1, 1)


def seconds_of_text(text: str) -> float:
    """Find the moment that a text is; NaN if it is none.

    Examples:
        >>> seconds_of_text("1970-01-02"), seconds_of_text("1970-01-01T00:01:00.9Z")
        (86400.0, 60.0)
        >>> seconds_of_text("1970-02-30")
        nan
    """
    if re.match(MOMENT, text) is None:
        return math.nan
    days = int(np.datetime64(text[:10], "D").astype(np.int64))
    hour, minute, second = (int(text[at : at + 2] or 0) for at in (11, 14, 17))
    return float(DAY * days + 3600 * hour + 60 * minute + second)


def sort_key(seconds: float) -> str:
    """Write a moment such that a text of the pattern is at or after it if it sorts so.

    Of the text count the ten characters of the date and the eight of the time, as far as it has
    them, without what is between the two. Zeros at the end are left out here, as they may be
    there.

    Examples:
        >>> sort_key(0.0), sort_key(3600.0), sort_key(90.0)
        ('1970-01-01', '1970-01-0101:00', '1970-01-0100:01:30')
    """
    moment = moment_of_seconds(seconds)
    clock = moment.strftime("%H:%M:%S").removesuffix(":00")
    return moment.date().isoformat() + ("" if clock == "00:00" else clock)


def seconds_of_object(value: Any) -> float:
    """Find the moment that a value of any type is; NaN if it is none."""
    kind = type(value)
    if issubclass(kind, str):
        return seconds_of_text(str.__str__(value).strip(SPACES))
    try:
        if issubclass(kind, np.datetime64):
            return float(seconds_of_array(np.array([value]))[0])
        if issubclass(kind, datetime.datetime):
            return _seconds_of_datetime(value)
        if issubclass(kind, datetime.date):
            return float((value.toordinal() - _EPOCH.toordinal()) * DAY)
    except Exception:  # a zone, and somebody's own class, may raise what it likes
        return math.nan
    return math.nan


def _seconds_of_datetime(value: Any) -> float:
    if hasattr(value, "to_datetime64"):  # of pandas, which may be beyond the years of Python
        return float(seconds_of_array(np.array([value.to_datetime64()]))[0])
    since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or datetime.timedelta())
    return float(since // datetime.timedelta(seconds=1))


_UNITS = ("s", "ms", "us", "ns", "ps", "fs", "as")

_PARTS = {unit: 10 ** (3 * power) for power, unit in enumerate(_UNITS)}
"""The number of each unit in a second, for units of at most a second."""

_MOST = 1 << 62

_FARTHEST = (-200_000, 200_000)
"""Years since 1970: moments beyond are taken for these."""


def seconds_of_array(values: NDArray[Any]) -> NDArray[np.float64]:
    """Find the seconds of moments of NumPy, which are in UTC; NaN where there is none.

    Examples:
        >>> seconds_of_array(np.array(["1970-01-02", "NaT"], "M8[ns]")).tolist()
        [86400.0, nan]
    """
    unit, multiple = np.datetime_data(values.dtype)
    if unit == "generic":  # NumPy itself does not know when that is
        return np.full(len(values), np.nan)
    if unit in _PARTS:  # NumPy would subtract before it divides, and wrap around at the ends
        ticks = values.astype(np.int64)
        whole, rest = divmod(_PARTS[unit], multiple)
        seconds = ticks // whole if not rest else _divide(ticks, multiple, _PARTS[unit])
    else:
        first, last = (np.datetime64(years, "Y").astype(values.dtype) for years in _FARTHEST)
        seconds = np.clip(values, first, last).astype("M8[s]").astype(np.int64)
    return np.where(np.isnat(values), np.nan, seconds.astype(np.float64))


def _divide(ticks: NDArray[np.int64], multiple: int, parts: int) -> NDArray[np.int64]:
    """Return the whole seconds of ticks that do not divide a second, in Python's numbers."""
    seconds = (tick * multiple // parts for tick in ticks.tolist())
    return np.fromiter((max(-_MOST, min(_MOST, one)) for one in seconds), np.int64, len(ticks))


def text_of_seconds(seconds: float) -> str:
    """Write a moment as people read it: a date, with the time if it is not midnight.

    Examples:
        >>> text_of_seconds(0.0), text_of_seconds(90.0)
        ('1970-01-01', '1970-01-01T00:01:30')
    """
    moment = moment_of_seconds(seconds)
    return moment.date().isoformat() if seconds % DAY == 0 else moment.isoformat()


def moment_of_seconds(seconds: float) -> datetime.datetime:
    """Return the moment as a value of Python, without a zone."""
    return _EPOCH + datetime.timedelta(seconds=seconds)
