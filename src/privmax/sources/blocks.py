"""Text taken apart a megabyte at a time, where each of its lines has the plainest form there is.

To read a line of JSON, or of separated values, in Python costs more than an engine needs to count
it. Most lines need no reader: all have the same names in the same order, and quotes are around
values only. A `Block` is a piece of text of which that was checked, byte by byte, so every reader
agrees on its values. A piece that does not pass, or a line of it, is read by `separated.py` or
`json_lines.py`. So a form (`json_forms.py`) saves time, and never decides what a line means: how a
row is read follows from that row alone.

The checks delete the bytes of values, all at once, and compare what is left with what it must be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PIECE = 1 << 20
"""Bytes that are read at a time; the line at the end is read to its end."""

BOM = b"\xef\xbb\xbf"

_LIMIT = 1 << 16
"""In a block each aligned run of so many bytes has a line break. So a line is shorter than the two
megabytes that DuckDB reads, and no value has more than the 131,072 characters of Python's CSV."""

EVERY = bytes(range(256))
CONTROL = bytes(range(32))
_VALUES = EVERY.translate(None, CONTROL + b'"')
"""All bytes but control characters and quotes."""

MARK = b"\x1f"
"""Separates the values of lines that were JSON."""


@dataclass(frozen=True, repr=False)
class Block:
    """Whole lines, each with the same number of values, of which none is quoted.

    Args:
        data: Valid UTF-8, with a newline at the end of each line and nowhere else.
        mark: The byte between two values, which occurs nowhere else.
        width: How many values a line has.
        lines: How many there are.
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


def list_rows(block: Block, places: Sequence[int | None]) -> list[list[str]]:
    """Return the values at some places, row by row."""
    columns = {place: block.columns([place])[0] for place in places if place is not None}
    nothing = [""] * block.lines
    rows = zip(*(nothing if one is None else columns[one] for one in places), strict=True)
    return list(map(list, rows))


def pack_rows(rows: Sequence[Sequence[str]], width: int) -> Block | None:
    """Return rows of text as a block; None if a value has a quote or a control character."""
    try:
        data = "".join(f"{MARK.decode().join(row)}\n" for row in rows).encode()
    except UnicodeEncodeError:
        return None
    if data.translate(None, _VALUES) != (MARK * (width - 1) + b"\n") * len(rows) or is_odd(data):
        return None
    return Block(data, MARK, width, len(rows))


def read_values(piece: bytes, separator: str, width: int) -> Block | None:
    """Return the values of whole lines of CSV; None unless they need no reader.

    They have no zero bytes, quotes are around values only, and each line has `width` values.
    """
    piece = end_lines(piece)
    mark, lines = separator.encode(), piece.count(b"\n")
    if len(mark) > 1 or not is_text(piece) or b"\r" in piece or b"\0" in piece:
        return None
    left = piece.translate(None, EVERY.translate(None, mark + b'"\n'))
    if b'"' in left:
        if mark == b'"' or not _is_quoted_plainly(piece, mark):
            return None
        piece, left = piece.translate(None, b'"'), left.replace(b'""', b"")
    if left != (mark * (width - 1) + b"\n") * lines or is_odd(piece):
        return None
    return Block(piece, mark, width, lines)


def _is_quoted_plainly(piece: bytes, mark: bytes) -> bool:
    """Return whether as many quotes begin a value as end one, and there are no others.

    Where nothing but pairs of neighbors is left of quotes, between separators and line breaks, a
    value has an even number of them. The first may begin it, and the last may end it. So if half of
    all begin values, and half end them, then each value has two or none, and these are around it.
    """
    begin = piece.startswith(b'"') + piece.count(b'\n"') + piece.count(mark + b'"')
    end = piece.count(b'"\n') + piece.count(b'"' + mark)
    return begin == end and 2 * begin == piece.count(b'"')


def read_pieces(file: Any) -> Iterator[bytes]:
    """Yield whole lines of a binary file, about a megabyte at a time, without a byte order mark."""
    start = BOM
    while piece := file.read(PIECE):
        if not piece.endswith(b"\n"):
            piece += file.readline()
        yield piece.removeprefix(start)
        start = b""


def end_lines(piece: bytes) -> bytes:
    """Return whole lines, each of which ends in a newline alone."""
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n")
    return piece if piece.endswith(b"\n") else piece + b"\n"


def is_odd(data: bytes) -> bool:
    """Return whether there is an empty line, which may be a row or none, or one of great length."""
    if data.startswith(b"\n") or b"\n\n" in data:
        return True
    return any(data.find(b"\n", at, at + _LIMIT) < 0 for at in range(0, len(data) - _LIMIT, _LIMIT))


def is_text(piece: bytes) -> bool:
    if piece.isascii():
        return True
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
