"""Forms of lines of JSON: many lines that differ only in their values are taken apart at once.

The form of a line is its text but for texts and numbers in it. A null is part of the form, and what
is within a list or an object is a value without a name. If one line of a form is JSON, and has no
key twice, then so is every other, as long as its values are.

The text between values becomes one byte, which the piece does not have. If exactly these bytes are
left in a line, and no quote, then to put them back gives the line: it is its values between the
parts of the form. Lines of which that is not so are put back, and looked at for another form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from operator import not_
from typing import Any, NoReturn

from privmax.sources.blocks import (
    CONTROL,
    EVERY,
    MARK,
    Block,
    end_lines,
    is_odd,
    is_text,
    pack_rows,
)

_MARKS = CONTROL.translate(None, b"\t\n\r" + MARK)
_MOST = len(_MARKS) - 1
"""Values that a line has at most, in a form."""

_FORMS = 8
"""Forms that are looked for in a piece."""

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"( *:)?|([\[{])|([\]}])|([^ "\[\]{},:]+)')
"""A text, with a colon if it is a key; a bracket that opens or closes; or another value."""

_SCALAR = rb"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false)"
"""A value without quotes that is not null."""

_ESCAPES = re.compile(rb'(?:[^\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')


class RepetitionError(Exception):
    """A key stands twice in an object."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise RepetitionError
    return values


def _constant(name: str) -> NoReturn:
    raise ValueError  # NaN and the infinities, which Python reads and JSON does not have


DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=str, parse_float=str, parse_constant=_constant
)
"""Reads a line: numbers as they are written, and no key twice."""


@dataclass(frozen=True)
class Form:
    """The form of a line of JSON, but for its values.

    Args:
        places: The place of the value of each key; None: it is null.
        nested: Keys whose values are lists or objects.
        parts: The text before each value, and after the last.
        bare: Whether values have no quotes.
        is_escaped: Whether values may have escapes.
    """

    places: dict[str, int | None]
    nested: frozenset[str]
    parts: tuple[bytes, ...]
    bare: tuple[bool, ...]
    is_escaped: bool

    def read(self, piece: bytes) -> tuple[Block | None, bytes]:
        """Return the values of lines that have this form, and the other lines.

        Args:
            piece: Whole lines, of which the first begins as this form does.
        """
        if any(mark in piece for mark in (_END, MARK, *self._marks.values())):
            return None, piece
        data, others = self._divide(piece)
        if others:  # among them is the line behind each that has another form
            first, last = self.parts[0], self.parts[-1]
            lines = others.split(b"\n")[:-1]
            similar = [line.startswith(first) and line.endswith(last) for line in lines]
            again = _join(compress(lines, similar), b"\n")
            more, others = self._divide(again) if again else (b"", b"")
            data += more
            others += _join(compress(lines, map(not_, similar)), b"\n")
        marks = b"".join(self._marks.values())
        data = data.translate(bytes.maketrans(marks + _END, MARK * len(marks) + b"\n"))
        if any(self.bare) and not self._lines.fullmatch(data):
            data, wrong = self._divide_bare(data)
            others += wrong
        block = self._block(data) if data else None
        return (block, others) if block is not None else (None, piece)

    def _divide(self, piece: bytes) -> tuple[bytes, bytes]:
        """Return lines of this form with marks for the text between values, and others."""
        first, last = self.parts[0], self.parts[-1]
        data = (piece[len(first) :] + first).replace(last + b"\n" + first, _END)
        for part, mark in self._marks.items():
            data = data.replace(part, mark)
        others = b""
        for byte in (b'"',) if self.is_escaped else (b'"', b"\\"):
            data, lines = _cut(data, byte)
            others = lines + others  # a line without an end comes last
        skeleton = data.translate(None, self._values)
        if skeleton != self._unit * (len(skeleton) // len(self._unit)):
            same = [one == self._unit[:-1] for one in skeleton.split(_END)[:-1]]
            every = data.split(_END)[:-1]
            data = _join(compress(every, same), _END)
            others = _join(compress(every, map(not_, same)), _END) + others
        return data, self._restore(others) if others else b""

    def _restore(self, data: bytes) -> bytes:
        """Return lines as they were before they were marked."""
        for part, mark in reversed(self._marks.items()):
            data = data.replace(mark, part)
        first, last = self.parts[0], self.parts[-1]
        return (first + data.replace(_END, last + b"\n" + first))[: -len(first)]

    def _divide_bare(self, data: bytes) -> tuple[bytes, bytes]:
        """Return lines whose values without quotes are values of JSON, and others as they were."""
        lines = data.split(b"\n")[:-1]
        fits = [self._line.fullmatch(line) is not None for line in lines]
        others = [line.split(MARK) for line in compress(lines, map(not_, fits))]
        return (
            _join(compress(lines, fits), b"\n"),
            b"".join(
                b"".join(chain(*zip(self.parts, [*one, b"\n"], strict=True))) for one in others
            ),
        )

    def _block(self, data: bytes) -> Block | None:
        """Return lines of values as a block; None: a value cannot be in one."""
        width = len(self.bare)
        if self.is_escaped and b"\\" in data:
            if not _ESCAPES.fullmatch(data):
                return None
            texts = data[:-1].replace(MARK, b'","').replace(b"\n", b'","')
            values = json.loads(b'["%b"]' % texts)
            return pack_rows(
                [values[at : at + width] for at in range(0, len(values), width)], width
            )
        return None if is_odd(data) else Block(data, MARK, width, data.count(b"\n"))

    @cached_property
    def _marks(self) -> dict[bytes, bytes]:
        """A byte for the text between values, the longest first: it may hold others."""
        parts = sorted(dict.fromkeys(self.parts[1:-1]), key=len, reverse=True)
        return {part: bytes([mark]) for part, mark in zip(parts, _MARKS[1:], strict=False)}

    @cached_property
    def _unit(self) -> bytes:
        """All that a line leaves but for values, where its parts are marked."""
        return b"".join(self._marks[part] for part in self.parts[1:-1]) + _END

    @cached_property
    def _values(self) -> bytes:
        """The bytes that are in values alone."""
        return EVERY.translate(None, CONTROL + (b'"' if self.is_escaped else b'"\\'))

    @cached_property
    def _line(self) -> re.Pattern[bytes]:
        """The pattern of a line whose values without quotes are values of JSON."""
        return re.compile(MARK.join(_SCALAR if bare else rb"[^\x1f\n]*+" for bare in self.bare))

    @cached_property
    def _lines(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?:%b\n)*+" % self._line.pattern)


_END = _MARKS[:1]
"""Separates lines while they are taken apart."""


def _join(lines: Iterable[bytes], end: bytes) -> bytes:
    return end.join([*lines, b""])


def _cut(data: bytes, byte: bytes) -> tuple[bytes, bytes]:
    """Return the lines, each with its end, that do not have a byte, and those that have it."""
    own, others, start = list[bytes](), list[bytes](), 0
    while (place := data.find(byte, start)) >= 0:
        begin = data.rfind(_END, start, place) + 1 or start
        end = data.find(_END, place) + 1 or len(data)
        own.append(data[start:begin])
        others.append(data[begin:end])
        start = end
    return b"".join([*own, data[start:]]), b"".join(others)


def find_form(line: bytes) -> Form | None:
    """Return the form of a line of JSON; None unless it is an object with a plain value.

    Examples:
        >>> find_form(b'{"a": "tea", "b": 1}').parts
        (b'{"a": "', b'", "b": ', b'}')
        >>> find_form(b'{"a": ["tea"], "b": null}').parts
        (b'{"a": ["', b'"], "b": null}')
        >>> find_form(b"[1]"), find_form(b'{"a": 1, "a": 2}')
        (None, None)
    """
    if line.translate(None, _PLAIN) or not _is_object(line):
        return None
    places: dict[str, int | None] = {}
    nested, parts, bare = set[str](), list[bytes](), list[bool]()
    depth, start, key, is_escaped = 0, 0, "", False
    for token in _TOKEN.finditer(line):
        text, colon, opening, closing, other = token.groups()
        depth += (opening is not None) - (closing is not None)
        if colon is not None:
            if depth == 1:
                if b"\\" in text:
                    return None
                key = text.decode()
                places[key] = None
        elif opening is not None and depth > 1:
            nested.add(key)
        elif text is not None or (other is not None and other != b"null"):
            if depth == 1:
                places[key] = len(parts)
            group = 1 if other is None else 5
            parts.append(line[start : token.start(group)])
            bare.append(other is not None)
            start, is_escaped = token.end(group), is_escaped or (b"\\" in token[0])
    if not 0 < len(parts) <= _MOST:
        return None
    return Form(places, frozenset(nested), (*parts, line[start:]), tuple(bare), is_escaped)


_PLAIN = EVERY.translate(None, CONTROL)


def _is_object(line: bytes) -> bool:
    """Return whether a line is an object of JSON."""
    try:
        return is_text(line) and isinstance(DECODER.decode(line.decode()), dict)
    except (ValueError, RecursionError, RepetitionError):
        return False


def sort_lines(piece: bytes) -> tuple[list[tuple[Form, Block]], bytes]:
    """Return blocks of lines of JSON, and the other lines, which have none of a few forms."""
    rest, strange, blocks = end_lines(piece), b"", list[tuple[Form, Block]]()
    if not is_text(rest):
        return [], rest
    for _ in range(_FORMS):
        if not rest:
            break
        end = rest.find(b"\n") + 1
        form = find_form(rest[: end - 1])
        block = None
        if form is not None:
            block, rest = form.read(rest)
        if form is not None and block is not None:
            blocks.append((form, block))
        else:
            strange, rest = strange + rest[:end], rest[end:]
    return blocks, strange + rest
