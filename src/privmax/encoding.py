"""Released items as JSON, exactly and back again.

Text, whole numbers, true, false and none are themselves; all else is an object with one key that
names its type, as {"float": "0x1.8p+0"} or {"tuple": ["a", 7]}. NumPy's scalars and other
subclasses become the Python values they equal, a time zone its offset.

A value of any other type is written as {"text": its repr, "type": its name} and read back as that
text. Writing never fails: an error after the draw would reveal what was drawn. Where the items are
known before the charge `recordable` finds such types, and they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from privmax.deferred import is_numpy, np
from privmax.errors import ParameterError
from privmax.labels import plain_label

SMALL = 1 << 53
"""Whole numbers below this are JSON numbers. Others are hexadecimal text: readers of JSON round or
refuse them.
"""

_SIMPLE = {str, int, bool, float, type(None), bytes, Decimal, UUID}
"""Types of which every value is recorded exactly."""


def encode(value: object) -> Any:
    """Return a value as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int(value)
        return number if abs(number) < SMALL else {"int": hex(number)}
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple):
        return {"tuple": [encode(part) for part in value]}
    if isinstance(value, frozenset):
        return {"frozenset": sorted((encode(part) for part in value), key=repr)}
    if is_numpy(value):
        plain = value.item()
        same = type(plain) in (bool, int, float) and not isinstance(
            value, np.datetime64 | np.timedelta64
        )
        return encode(plain) if same or isinstance(plain, date | timedelta) else _text(value)
    for name, (kind, write, read) in _WRITTEN.items():
        if isinstance(value, kind):
            return _if_exact(name, value, write, read)
    return _text(value)


def decode(written: Any) -> Any:
    """Return the value that was written so."""
    if not isinstance(written, dict):
        return written
    if "text" in written:
        return written["text"]
    ((name, content),) = written.items()
    return _READ[name](content)


def recordable(values: Iterable[object]) -> bool:
    """Return whether all of the values would be read back as what they are."""
    return all(type(value) in _SIMPLE or not _has_text(encode(value)) for value in values)


UNRECORDABLE = "of a type that a ledger cannot write down exactly"
"""The message about a label that is not recordable."""


def check_recordable(option: str, labels: Iterable[Any]) -> None:
    """Refuse declared labels that a ledger would write down as text.

    Args:
        option: What declares them.
        labels: All of them.

    Raises:
        ParameterError: There is such a label.
    """
    if not recordable(map(plain_label, labels)):
        allowed = f"a label is {UNRECORDABLE}"
        raise ParameterError(option, "<labels>", allowed, "Use text or numbers.")


def _if_exact(
    name: str, value: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]
) -> Any:
    """Return what `write` makes of a value, if that is all of the value.

    pandas has subclasses that count nanoseconds.
    """
    try:
        written = write(value)
        if (
            name == "decimal" or read(written) == value
        ):  # a decimal may be no number, which equals nothing
            return {name: written}
    except Exception:  # a subclass may do as it likes
        pass
    return _text(value)


def _text(value: object) -> dict[str, str]:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        return {"text": str.__str__(repr(value)), "type": kind}
    except Exception:  # as above
        return {"text": f"<{kind}>", "type": kind}


def _has_text(written: Any) -> bool:
    if isinstance(written, Mapping):
        return "text" in written or any(map(_has_text, written.values()))
    return isinstance(written, list) and any(map(_has_text, written))


_WRITTEN: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "datetime": (
        datetime,
        datetime.isoformat,
        datetime.fromisoformat,
    ),  # before date, of which it is a subclass
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (
        timedelta,
        lambda span: [span.days, span.seconds, span.microseconds],
        lambda parts: timedelta(*parts),
    ),
    "uuid": (UUID, str, UUID),
}
"""By name: the type, how a value of it is written, and how it is read."""

_READ: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "bytes": bytes.fromhex,
    "tuple": lambda parts: tuple(map(decode, parts)),
    "frozenset": lambda parts: frozenset(map(decode, parts)),
    **{name: read for name, (_, _, read) in _WRITTEN.items()},
}
