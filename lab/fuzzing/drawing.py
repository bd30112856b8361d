"""Values out of bytes: whatever the fuzzer changes in an input changes what is drawn here."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np


class Draw:
    """Takes values from the front of an input; zeros and nothing at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def chunk(self, most: int) -> bytes:
        """A chunk, behind a byte that says how long it is."""
        size = self.byte() % (most + 1)
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        found = self._data[self._at :]
        self._at = len(self._data)
        return found

    def text(self, most: int = 32) -> str:
        return as_text(self.chunk(most))

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.byte() % len(choices)]

    def real(self) -> float:
        self._at += 8
        found: float = struct.unpack("<d", self._data[self._at - 8 : self._at].ljust(8, b"\0"))[0]
        return found

    def whole(self, size: int = 8) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "little", signed=True)

    def value(self, depth: int = 2) -> Any:
        """Something that may stand in data: a label, a score, or neither."""
        kind = self.byte() % (len(_SIMPLE) + 3)
        if kind < len(_SIMPLE):
            return _SIMPLE[kind](self)
        if depth == 0:
            return None
        parts = [self.value(depth - 1) for _ in range(self.byte() % 4)]
        if kind == len(_SIMPLE):
            return tuple(parts)
        if kind == len(_SIMPLE) + 1:
            return parts
        try:
            return frozenset(part for part in parts if _is_hashable(part))
        except (TypeError, ValueError, RuntimeError):  # two with one hash that cannot be compared
            return tuple(parts)


def as_text(data: bytes) -> str:
    """Text as the command line hands it over: bytes that are no UTF-8 become halves of
    characters.
    """
    return data.decode("utf-8", "surrogateescape")


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except (TypeError, RuntimeError):
        return False
    return True


def _decimal(draw: Draw) -> Decimal:
    try:
        return Decimal(draw.text(12))
    except ArithmeticError:
        return Decimal(draw.whole(2)).scaleb(draw.byte() - 128)


def _moment(draw: Draw) -> datetime:
    seconds = abs(draw.whole(5)) % 253_402_300_800
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
    offset = timezone(timedelta(minutes=draw.whole(2) % 2879 - 1439))
    found: datetime = draw.pick(
        [moment.replace(tzinfo=None), moment, moment.replace(tzinfo=offset)]
    )
    return found


def _clock(draw: Draw) -> time:
    offset = timezone(timedelta(minutes=draw.whole(2) % 2879 - 1439))
    return time(draw.byte() % 24, draw.byte() % 60, tzinfo=draw.pick([None, UTC, offset]))


class _Odd:
    """An object that fails wherever it is asked."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")

    def __repr__(self) -> str:
        raise RuntimeError("shown")


class _OddText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("shown")

    def __hash__(self) -> int:
        return 7


_SIMPLE = (
    lambda draw: draw.text(16),
    lambda draw: draw.whole(),
    lambda draw: draw.byte(),
    lambda draw: draw.real(),
    _decimal,
    lambda draw: Fraction(draw.whole(4), abs(draw.whole(4)) + 1),
    lambda draw: None,
    lambda draw: bool(draw.byte() % 2),
    lambda draw: draw.chunk(8),
    _moment,
    lambda draw: date.fromordinal(1 + abs(draw.whole(3)) % 3_652_059),
    _clock,
    lambda draw: timedelta(days=draw.whole(3) % 10**6, microseconds=draw.whole(4)),
    lambda draw: UUID(int=abs(draw.whole())),
    lambda draw: np.float32(draw.byte() / 7),
    lambda draw: np.int16(draw.whole(2)),
    lambda draw: np.datetime64(draw.whole(), draw.pick(["ns", "us", "s", "D", "M"])),
    lambda draw: np.timedelta64(draw.whole(), draw.pick(["ns", "us", "s", "D"])),
    lambda draw: np.str_(draw.text(8)),
    lambda draw: complex(draw.byte(), draw.byte() % 2),
    lambda draw: 10 ** (draw.byte() * 8),
    lambda draw: _Odd(),
    lambda draw: _OddText("odd"),
    lambda draw: bytearray(draw.chunk(4)),
)


_FOLDERS: list[Path] = []
"""The folder for inputs that must be files, once there is one."""


def use(folder: Path) -> None:
    """Write such inputs there."""
    _FOLDERS[:] = [folder]


def write(name: str, data: bytes) -> str:
    """The path of a file with this content; the next input of that name replaces it."""
    path = f"{_FOLDERS[0]}/{name}"
    with open(path, "wb", buffering=0) as file:
        file.write(data)
    return path
