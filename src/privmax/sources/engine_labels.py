"""Labels as engines write them: from what is fetched of a key to the item, and back.

Proof:      docs/proofs/keys.md
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any
from uuid import UUID


@cache
def labels() -> Any:
    """Load the rules of labels.

    They load NumPy, and only reading needs them: a ledger that asks which failures pass does not.
    """
    from privmax import labels as rules

    return rules


def label_of(value: Any, kind: Any) -> Any:
    """Return the item that a readable key stands for.

    It has an answer for every value, and another for every other.
    """
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value)
        if kind.is_binary():
            return value
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, str):
        return _from_text(value, kind)
    return labels().plain_label(value)


def canonical_text(label: Any, kind: Any) -> str:
    """Return a declared label as text, as an engine writes such a value of this type."""
    if isinstance(label, str):
        return label
    if kind.is_time() and isinstance(label, datetime.time) and label.tzinfo is None:
        return re.sub(r"(\.\d*?)0+$", r"\1", label.isoformat())
    if (
        kind.is_decimal()
        and isinstance(label, Decimal | int | float)
        and not isinstance(label, bool)
    ):
        return format(labels().plain_label(Decimal(str(label))), "f")
    if kind.is_uuid() and isinstance(label, UUID):
        return str(label)
    raise TypeError(f"{type(label).__name__} is no {kind}")


def _from_text(text: str, kind: Any) -> Any:
    try:
        if kind.is_decimal():
            return labels().plain_label(Decimal(text))
        if kind.is_date():
            return datetime.date.fromisoformat(text) if _DATE.fullmatch(text) else text
        if kind.is_timestamp():
            return _moment(text, aware=kind.timezone is not None)
        if kind.is_time():
            return datetime.time.fromisoformat(_pad(text)) if _TIME.fullmatch(text) else text
    except (ValueError, InvalidOperation, OverflowError):
        pass
    return text


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


_CLOCK = r"\d\d:\d\d:\d\d(\.\d{1,9})?"


_ZONE = r"(Z|[+-]\d\d(:?\d\d(:?\d\d)?)?)?"


_TIME = re.compile(_CLOCK, re.ASCII)
"""A time that has a zone stays text: to Python two of them are equal that no engine takes for the
same.
"""


_MOMENT = re.compile(rf"(\d{{4}}-\d\d-\d\d)[ T]({_CLOCK}){_ZONE}", re.ASCII)


def _moment(text: str, *, aware: bool) -> Any:
    """Return a date and time; the text itself, if Python has no such moment."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return text
    moment = datetime.datetime.fromisoformat(_pad(text.replace(" ", "T")))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC) if aware else moment
    return moment.astimezone(datetime.UTC)


def _pad(text: str) -> str:
    """Return a time as `fromisoformat` reads it in every Python.

    It has six digits behind the point, none of them lost.
    """
    point = re.search(r"\.(\d+)", text)
    if point is None:
        return text
    digits = point[1].rstrip("0")
    if len(digits) > 6:
        raise ValueError("nanoseconds")
    return f"{text[: point.start()]}.{digits:0<6}{text[point.end() :]}"
