"""Text taken apart a megabyte at a time, where each of its lines has the plainest form there is.

To read a line of JSON, or of separated values, in Python costs more than an engine needs to count
it. Most lines need no reader: nothing in them is escaped, and all have the same names in the same
order. A `Block` is a piece of text of which that was checked, byte by byte, so every reader agrees
on its values. A piece that does not pass, or a line of it, is read by `separated.py` or
`json_lines.py`. So a form saves time, and never decides what a line means: how a row is read
follows from that row alone.

The checks delete the bytes of values, all at once, and compare what is left with what it must be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PIECE = 1 << 20
"""Bytes that are read at a time; the line at the end is read to its end."""

BOM = b"\xef\xbb\xbf"

_LIMIT = 1 << 16
"""In a block each aligned run of so many bytes has a line break. So a line is shorter than the two
megabytes that DuckDB reads, and no value has more than the 131,072 characters of Python's CSV."""

_EVERY = bytes(range(256))
_CONTROL = bytes(range(32))
_PLAIN = _EVERY.translate(None, _CONTROL + b"\\")
"""All bytes but control characters and backslashes."""
_VALUES = _EVERY.translate(None, _CONTROL + b'"')
"""All bytes but control characters and quotes."""

_MARK = b"\x1f"
"""Separates the values of lines that were JSON."""

_MARKS = _CONTROL.translate(None, b"\n\x1f")
_MOST = len(_MARKS)
"""Values that a line of JSON has at most, in a form."""

_SCALAR = rb"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false)"
"""A value of JSON without quotes. A null is none, and has no form."""

_PAIR = re.compile(rb'( *[{,] *)"([^"\\]*)"( *: *)(?:"[^"\\]*"|(' + _SCALAR + rb"))")
_END = re.compile(rb" *} *")


@dataclass(frozen=True, repr=False)
class Block:
    """Whole lines, each with the same number of values, of which none is quoted.

    data     valid UTF-8, with a newline at the end of each line and nowhere else
    mark     the byte between two values, which occurs nowhere else
    width    how many values a line has
    lines    how many there are
    """

    data: bytes
    mark: bytes
    width: int
    lines: int

    def __repr__(self) -> str:
        return "Block(<private>)"

    def columns(self, places: Sequence[int]) -> list[list[str]]:
        """Return the values at some places, as text."""
        mark, step = self.mark.decode(), self.width + 1
        text = self.data.decode().replace("\n", f"{mark}\n{mark}")
        values = text.split(mark)
        return [values[place : step * self.lines : step] for place in places]


Batch = tuple[Block, Sequence[int | None]] | list[list[str]]
"""Many rows: a block with the places of some columns in it (None: there is no such column), or rows
of as many values. An empty one is none."""


@dataclass(frozen=True)
class Form:
    """How a line of JSON is written, but for its values.

    names    the keys, in their order
    parts    the text before each value, and after the last
    bare     whether values have no quotes
    """

    names: tuple[str, ...]
    parts: tuple[bytes, ...]
    bare: tuple[bool, ...]

    def fits(self, line: bytes) -> bool:
        """Return whether a line may have this form: `read` checks it."""
        first, *_, last = self.parts
        quotes = sum(part.count(b'"') for part in self.parts)
        return (
            line.startswith(first)
            and line.endswith(last)
            and line.count(b'"') == quotes
            and b"\\" not in line
        )

    def read(self, piece: bytes) -> Block | None:
        """Return the values of whole lines; None unless each of them has this form.

        The text between values becomes one byte, which the piece does not have. If exactly these
        bytes are left, line by line, and no quote, then to put them back gives the piece: each line
        is its values between the parts of this form.
        """
        lines = piece.count(b"\n")
        first, *between, last = self.parts
        if piece.translate(None, _PLAIN) != b"\n" * lines or not _is_text(piece):
            return None
        if not piece.startswith(first) or not piece.endswith(last + b"\n"):
            return None
        ends, *marks = (bytes([mark]) for mark in _MARKS[: len(self.parts) - 1])
        data = piece[len(first) : -len(last) - 1].replace(last + b"\n" + first, ends)
        for part, mark in zip(between, marks, strict=True):
            data = data.replace(part, mark)
        data += ends
        if data.translate(None, _VALUES) != (b"".join(marks) + ends) * lines:
            return None
        data = data.translate(bytes.maketrans(b"".join(marks) + ends, _MARK * len(marks) + b"\n"))
        if any(self.bare) and not self._bare_values().fullmatch(data):
            return None
        if _is_odd(data):
            return None
        return Block(data, _MARK, len(self.names), lines)

    def _bare_values(self) -> re.Pattern[bytes]:
        """Return what matches lines whose values without quotes are values of JSON."""
        values = (_SCALAR if bare else rb"[^\x1f\n]*+" for bare in self.bare)
        return re.compile(rb"(?:%b\n)*+" % _MARK.join(values))


def list_rows(block: Block, places: Sequence[int | None]) -> list[list[str]]:
    """Return the values at some places, row by row."""
    columns = {place: block.columns([place])[0] for place in places if place is not None}
    nothing = [""] * block.lines
    rows = zip(*(nothing if one is None else columns[one] for one in places), strict=True)
    return list(map(list, rows))


def pack_rows(rows: Sequence[Sequence[str]], width: int) -> Block | None:
    """Return rows of text as a block; None if a value has a quote or a control character."""
    try:
        data = "".join(f"{_MARK.decode().join(row)}\n" for row in rows).encode()
    except UnicodeEncodeError:
        return None
    if data.translate(None, _VALUES) != (_MARK * (width - 1) + b"\n") * len(rows) or _is_odd(data):
        return None
    return Block(data, _MARK, width, len(rows))


def find_form(line: bytes) -> Form | None:
    """Return the form of a line of JSON; None unless it is a plain one, without nested values.

    Examples:
        >>> find_form(b'{"a": "tea", "b": 1}').parts
        (b'{"a": "', b'", "b": ', b'}')
        >>> find_form(b'{"a": ["tea"]}'), find_form(b'{"a": 1, "a": 2}')
        (None, None)
    """
    names: list[bytes] = []
    parts: list[bytes] = []
    bare: list[bool] = []
    rest, place = b"", 0
    while found := _PAIR.match(line, place):
        opening, name, colon, value = found.groups()
        if (b"{" in opening) != (not names) or len(names) == _MOST:
            return None
        quote = b'"' if value is None else b""
        parts.append(rest + opening + b'"' + name + b'"' + colon + quote)
        names.append(name)
        bare.append(value is not None)
        rest, place = quote, found.end()
    end = _END.fullmatch(line, place)
    if not names or end is None or len(set(names)) < len(names) or not all(map(_is_text, names)):
        return None
    texts = tuple(name.decode() for name in names)
    return Form(texts, (*parts, rest + end.group()), tuple(bare))


def read_values(piece: bytes, separator: str, width: int) -> Block | None:
    """Return the values of whole lines of CSV; None unless they need no reader.

    They have no quotes and no zero bytes, and each has `width` values.
    """
    piece = _end_lines(piece)
    mark, lines = separator.encode(), piece.count(b"\n")
    if len(mark) > 1 or _is_odd(piece) or not _is_text(piece):
        return None
    if any(byte in piece for byte in (b'"', b"\r", b"\0")):
        return None
    others = _EVERY.translate(None, mark + b"\n")
    if piece.translate(None, others) != (mark * (width - 1) + b"\n") * lines:
        return None
    return Block(piece, mark, width, lines)


def read_pieces(file: Any) -> Iterator[bytes]:
    """Yield whole lines of a binary file, about a megabyte at a time, without a byte order mark."""
    start = BOM
    while piece := file.read(PIECE):
        if not piece.endswith(b"\n"):
            piece += file.readline()
        yield piece.removeprefix(start)
        start = b""


def _end_lines(piece: bytes) -> bytes:
    """Return whole lines, each of which ends in a newline alone."""
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n")
    return piece if piece.endswith(b"\n") else piece + b"\n"


def sort_lines(piece: bytes) -> tuple[list[tuple[Form, Block]], list[bytes]]:
    """Return blocks of lines of JSON, and the other lines, which have none of a few forms.

    Empty lines are left out: they are no rows.
    """
    piece = _end_lines(piece)
    form = find_form(piece[: piece.find(b"\n")])
    block = None if form is None else form.read(piece)
    if form is not None and block is not None:
        return [(form, block)], []
    blocks: list[tuple[Form, Block]] = []
    lines, strange = [line for line in piece.split(b"\n") if line], list[bytes]()
    for _ in range(_FORMS):
        if not lines:
            break
        form = find_form(lines[0])
        if form is None:
            strange.append(lines[0])
            lines = lines[1:]
            continue
        same = list(map(form.fits, lines))
        own = [line for line, one in zip(lines, same, strict=True) if one]
        lines = [line for line, one in zip(lines, same, strict=True) if not one]
        block = form.read(b"\n".join([*own, b""]))
        if block is None:
            strange += own
        else:
            blocks.append((form, block))
    return blocks, strange + lines


_FORMS = 8
"""Forms that lines of a piece are compared with."""


def _is_odd(data: bytes) -> bool:
    """Return whether there is an empty line, which may be a row or none, or one of great length."""
    if data.startswith(b"\n") or b"\n\n" in data:
        return True
    return any(data.find(b"\n", at, at + _LIMIT) < 0 for at in range(0, len(data) - _LIMIT, _LIMIT))


def _is_text(piece: bytes) -> bool:
    if piece.isascii():
        return True
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
