"""One spelling for each label, and what is no label at all.

Whoever counts takes what is equal for one item, and then one of its spellings is there to be released: that of one
person. So a label is put into a form that follows from its value alone, whoever wrote it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_DAY, _HOUR, _SECOND, _LEAST = (timedelta(**{unit: 1}) for unit in ("days", "hours", "seconds", "microseconds"))
_NONE, _FARTHEST = timedelta(0), _DAY - _SECOND
"""The least and the largest offset of a time zone from UTC."""

_LONGEST = 1000
"""Decimals are written out up to this power of ten."""


def plain_label(label: Any) -> Any:
    """A label as an ordinary Python object in its canonical form, whatever library and whatever spelling it comes from.

    −0.0 is 0.0; a Decimal has no zeros at its end and no exponent; a time of a known zone is in UTC; text, numbers and
    tuples are of Python's own types. Labels that are equal and of one type are identical then; it never fails.
    """
    kind = type(label)
    if kind is str or kind is int or kind is bool:
        return label
    if hasattr(label, "as_py"):
        label = label.as_py()
    elif isinstance(label, np.generic):
        label = _of_numpy(label)
    if isinstance(label, str):
        return str.__str__(label)
    if isinstance(label, bool) or label is None:
        return label
    if isinstance(label, int):
        return int(label)
    if isinstance(label, float):
        return float(label) + 0.0
    if isinstance(label, Decimal):
        return _plain_decimal(label)
    if isinstance(label, tuple):
        return tuple(map(plain_label, label))
    if isinstance(label, frozenset):
        return frozenset(map(plain_label, label))
    if isinstance(label, bytes):
        return bytes(label)
    if is_missing(label):
        return label
    with suppress(Exception):  # a subclass may do as it likes
        if isinstance(label, datetime):
            return _plain_datetime(label)
        if isinstance(label, time):
            return _plain_time(label)
        if isinstance(label, timedelta):
            return _plain_span(label)
    return label


def label_by_value(label: Any) -> Any:
    """The same where types may be mixed: to Python 1, 1.0, True and Decimal("1.0") are equal, so they become one label.

    Whole numbers are integers, and of the others those that a float can hold are floats.
    """
    label = plain_label(label)
    if isinstance(label, tuple):
        return tuple(map(label_by_value, label))
    if isinstance(label, frozenset):
        return frozenset(map(label_by_value, label))
    if not isinstance(label, bool | float | Decimal | Fraction) or is_missing(label):
        return label
    if isinstance(label, Decimal) and abs(label.adjusted()) > _LONGEST:
        return label  # to write it out might fill the memory
    for kind in (int, float):
        try:
            number = kind(label)
        except OverflowError:  # infinite, or beyond every float
            continue
        if number == label:
            return number
    return label


def is_missing(label: Any) -> bool:
    """Whether it stands for no label: None, NaN or what libraries write for it; or a tuple with such a part."""
    if isinstance(label, tuple):
        return any(map(is_missing, label))
    if label is None or type(label).__name__ == "NAType":
        return True
    if isinstance(label, Decimal):
        return label.is_nan()
    try:
        return bool(label != label)
    except Exception:  # a type of its own kind, which does not tell
        return False


def _of_numpy(label: np.generic) -> Any:
    """A NumPy scalar as what Python has for it; times that count nanoseconds are kept if they need them."""
    if isinstance(label, np.datetime64 | np.timedelta64) and isinstance(label.item(), int) and not np.isnat(label):
        short = label.astype(f"{label.dtype.kind}8[us]")
        return short.item() if short == label and not isinstance(short.item(), int) else label
    plain = label.item()
    return label if type(plain) is type(label) else plain


def _plain_decimal(number: Decimal) -> Decimal:
    """Without zeros at its end and without an exponent; exactly, in however many digits."""
    if not number.is_finite():
        return Decimal(number)
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return Decimal(0)
    power = int(exponent) + len(text) - len(short)
    if 0 < power <= _LONGEST:
        short, power = short + "0" * power, 0
    return Decimal((sign, tuple(map(int, short)), power))


def _plain_datetime(moment: datetime) -> datetime:
    """In UTC if its zone is known; pandas' own class only for nanoseconds, which Python's does not hold."""
    if hasattr(moment, "to_pydatetime"):
        exact: Any = moment if moment.tzinfo is None else moment.astimezone(UTC)
        plain: datetime = exact if exact.nanosecond else exact.to_pydatetime()
        return plain
    first = moment.replace(fold=0)  # of an hour that the clock repeats: to Python both are equal
    offset = first.utcoffset()
    local = datetime.combine(first.date(), first.time())
    if offset is None:
        return local
    shift = _NONE
    if local - datetime.min < offset:  # in UTC this is before the first year, or after the last
        shift = _FARTHEST
    elif datetime.max - local < -offset:
        shift = -_FARTHEST
    return (local + (shift - offset)).replace(tzinfo=timezone(shift) if shift else UTC)


def _plain_time(clock: time) -> time:
    """In UTC if its offset is known; where that is on another day, which tells times apart, in the next whole hour."""
    since = timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
    offset, zone = clock.utcoffset(), None
    if offset is not None:
        since -= offset // _SECOND * _SECOND  # Python does not look at less when it compares
        shift = _NONE
        if since < _NONE:
            shift = min(-(since // _HOUR) * _HOUR, _FARTHEST)
        elif since >= _DAY:
            shift = -min(((since - _DAY) // _HOUR + 1) * _HOUR, _FARTHEST)
        since, zone = since + shift, timezone(shift) if shift else UTC
    return (datetime.min + since).time().replace(tzinfo=zone)


def _plain_span(span: timedelta) -> timedelta:
    if getattr(span, "nanoseconds", 0):  # pandas' own, which Python's does not hold
        return span
    return timedelta(span.days, span.seconds, span.microseconds)
