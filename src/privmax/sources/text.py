"""Text files and streams: how they are opened, unpacked, bounded and decoded.

Files that are not text are refused with what to do.

Separated values (`separated.py`), JSON Lines and baskets of numbers are all opened here. A message
gives a reason, and the number of a line where there is one, and never quotes what a file has: not
even its first line, which is data where the names are missing.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from privmax.errors import DataError
from privmax.sources.blocks import read_pieces
from privmax.sources.bounded import open_bounded, open_bytes, try_read
from privmax.sources.places import refuse_kind

START = 4096
"""Bytes that are looked at."""

_SAVE = "Open it where it was made and save it as CSV in UTF-8."

_RECODE = (
    "Set encoding to utf-{0} (--encoding utf-{0}), or convert it: iconv -f UTF-{0} -t UTF-8 FILE > "
    "NEW_FILE"
)

_KINDS = (
    (b"PK\x03\x04", "a spreadsheet (.xlsx) or another ZIP archive", _SAVE),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet (.xls) or another Office document", _SAVE),
    (b"\x89PNG", "a picture (PNG)", "Give the file with the data."),
    (b"\xff\xd8\xff", "a picture (JPEG)", "Give the file with the data."),
    (b"%PDF-", "a PDF document", "Give the file with the data."),
    (
        b"\x1f\x8b",
        "compressed (gzip)",
        "Rename it to end in .csv.gz (.dat.gz for baskets), or unpack it with gunzip.",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed (zstd)",
        "Rename it to end in .csv.zst or .jsonl.zst, or unpack it with unzstd.",
    ),
    (b"BZh", "compressed (bzip2)", "Unpack it: bunzip2 FILE"),
    (b"\xfd7zXZ", "compressed (xz)", "Unpack it: unxz FILE"),
    (b"7z\xbc\xaf", "an archive (7z)", "Unpack it: 7z x FILE"),
    (b"PAR1", "a Parquet file", "Rename it to end in .parquet."),
    (b"\xff\xfe\x00\x00", "text in UTF-32", _RECODE.format(32)),
    (b"\xff\xfe", "text in UTF-16", _RECODE.format(16)),
    (b"\xfe\xff", "text in UTF-16", _RECODE.format(16)),
)
"""The first bytes of files of other kinds, what they are, and the remedy; longest first."""

CONVERT = (
    "If it is in Windows-1252 or Latin-1, set encoding to cp1252 (--encoding cp1252), or convert "
    "it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE"
)
"""The remedy for text that is not in UTF-8. Every byte is a character in those two, so no one can
be sure.
"""


def is_open_file(data: object) -> bool:
    """Return whether it can be read from.

    A frame that has a column "read" has an attribute of that name, too.

    Examples:
        >>> is_open_file(io.StringIO()), is_open_file("baskets.dat")
        (True, False)
    """
    return callable(getattr(data, "read", None))


@contextmanager
def open_text(place: Any, encoding: str | None = None) -> Iterator[Iterator[str]]:
    """The lines of a file as text, unpacked, without a byte order mark.

    Lines end in a newline, or in a carriage return and a newline. `undecodable` gives the words for
    an error of decoding, which the reader of the lines catches, as it knows how many it had.

    Args:
        place: A path, "-" for standard input, or an open file, which stays open.
        encoding: What the bytes of a path mean; None: UTF-8.

    Raises:
        DataError: It cannot be opened or read, or is not text.
    """
    with open_binary(place, encoding) as file:
        if not isinstance(file, io.BufferedReader):
            yield _lines(file)
            return
        strange = foreign(start_of(file))
        if strange is not None:
            raise not_text(strange)
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
        try:
            yield text
        finally:
            text.detach()


@contextmanager
def open_pieces(place: Any, encoding: str | None = None) -> Iterator[Iterator[bytes] | None]:
    """The same as whole lines in UTF-8, a megabyte at a time; None of an open file of text.

    They are not decoded: `read_lines` does so.
    """
    with open_binary(place, encoding) as file:
        if not isinstance(file, io.BufferedReader):
            yield None
            return
        strange = foreign(start_of(file))
        if strange is not None:
            raise not_text(strange)
        yield read_pieces(file)


def read_lines(piece: bytes) -> Iterator[str]:
    """Yield the lines of a piece of text, as `open_text` does."""
    return io.TextIOWrapper(io.BytesIO(piece), encoding="utf-8", newline="\n")


def _lines(file: Any) -> Iterator[str]:
    """Yield the lines of an open file of text."""
    lines = iter(file)
    while (line := try_read(lambda: next(lines, None))) is not None:
        yield line


def open_binary(
    place: Any, encoding: str | None = None, *, lines: bool = True
) -> AbstractContextManager[Any]:
    """Return the same as bytes in UTF-8; an open file of text as it is.

    Args:
        place: A path, "-" for standard input, or an open file, which stays open.
        encoding: What the bytes of a path mean; None: UTF-8.
        lines: Whether it is read line by line; otherwise all of it is held in memory.
    """
    if is_open_file(place) or place == "-":
        file = sys.stdin if isinstance(place, str) else place
        opened = getattr(file, "buffer", file)
        is_binary = isinstance(opened, io.RawIOBase | io.BufferedIOBase)
        return nullcontext(open_bounded(opened, lines=lines) if is_binary else opened)
    path = Path(place)
    refuse_kind(path.name)
    wrong = ""
    try:
        return open_bytes(path, lines=lines, encoding=encoding)
    except DataError:
        raise
    except (IsADirectoryError, PermissionError):  # Windows gives the second for a folder
        wrong = "The data is a folder, or a file that you may not read."
    except (OSError, ValueError):  # no name of a file at all: too long, or with a zero in it
        wrong = "There is no such file."
    raise DataError(wrong)


def undecodable(error: UnicodeDecodeError, lines: int) -> str:
    """Return what to say where bytes are not UTF-8, after so many lines were read.

    The error, which holds rows, is emptied.

    A decoder is given several lines at a time, of which those before the fault count as well; the
    lines of earlier pieces were all read.
    """
    line = lines + 1 + bytes(error.object[: error.start]).count(b"\n")
    error.object, error.args, error.__traceback__ = b"", (), None
    return f"Line {line} is not UTF-8 text. {CONVERT}"


def not_text(strange: str) -> DataError:
    """Return the error about a file of another kind, which `foreign` or `recognize` tells."""
    return DataError(f"The file is not UTF-8 text. {strange}")


def foreign(start: bytes) -> str | None:
    """Return what a file is that begins so, and the remedy, in two sentences.

    None: perhaps text.
    """
    zeros = f"It has zero bytes, as binary files do. {_SAVE}" if b"\x00" in start[:START] else None
    return recognize(start) or zeros


def recognize(start: bytes) -> str | None:
    """Return the same, if the beginning determines the kind."""
    kinds = (
        f"It is {kind}. {remedy}"
        for beginning, kind, remedy in (*_KINDS, *_database_kinds())
        if start.startswith(beginning)
    )
    return next(kinds, None)


@cache
def _database_kinds() -> list[tuple[bytes, str, str]]:
    """Return the same as `_KINDS` for databases.

    A mark further on in a file may be one person's text.
    """
    from privmax.sources.engines import file_engines  # help is quicker without them

    return [
        (
            engine.mark[1],
            f"a {engine.title} database",
            f"Rename it to end in {engine.endings[0]}, and give table (--table).",
        )
        for engine in file_engines()
        if engine.mark[0] == 0
    ]


def start_of(file: Any) -> bytes:
    """Return how an open binary file begins, if it can be looked at without being read."""
    return bytes(file.peek(START)[:START]) if hasattr(file, "peek") else b""
