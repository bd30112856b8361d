"""Text files: what separates their values, and what a file is that was given as one and is none.
Quotes nothing.
"""

from __future__ import annotations

from typing import Any

START = 4096
"""Bytes that are looked at."""

_SAVE = "Open it where it was made and save it as CSV in UTF-8."

_KINDS = (
    (b"PK\x03\x04", "a spreadsheet (.xlsx) or another ZIP archive", _SAVE),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet (.xls) or another Office document", _SAVE),
    (b"\x89PNG", "a picture (PNG)", "Give the file that holds the data."),
    (b"\xff\xd8\xff", "a picture (JPEG)", "Give the file that holds the data."),
    (b"%PDF-", "a PDF document", "Give the file that holds the data."),
    (
        b"\x1f\x8b",
        "compressed (gzip)",
        "Let its name end in .csv.gz (.dat.gz for baskets), or unpack it with gunzip.",
    ),
    (b"PAR1", "a Parquet file", "Let its name end in .parquet."),
    (
        b"SQLite format 3\x00",
        "a SQLite database",
        "On the command line give sqlite://FILE and --table.",
    ),
    (b"\xff\xfe\x00\x00", "text in UTF-32", "Convert it: iconv -f UTF-32 -t UTF-8 FILE > NEW_FILE"),
    (b"\xff\xfe", "text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"),
    (b"\xfe\xff", "text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"),
)
"""How files of other kinds begin, what they are, and the remedy. The longer beginnings first."""

CONVERT = (
    "If it is in Windows-1252 or Latin-1, convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > "
    "NEW_FILE"
)
"""What to do with text that is not in UTF-8. Every byte is a character in those two, so nobody can
be sure.
"""

SPREADSHEETS = (".xlsx", ".xls", ".ods")
"""Endings of files that a spreadsheet makes."""

EXPORT = "The file is a spreadsheet. Open it and save the sheet as CSV in UTF-8."


def separator_in(names: str) -> str:
    """A comma, unless there is none in the line of names but a semicolon or a tab."""
    return next((mark for mark in ",;\t" if mark in names), ",")


def foreign(start: bytes) -> str | None:
    """What a file is that begins so, and the remedy, in two sentences; None: perhaps text."""
    zeros = (
        f"It holds zero bytes, as binary files do. {_SAVE}" if b"\x00" in start[:START] else None
    )
    return known(start) or zeros


def known(start: bytes) -> str | None:
    """The same, if the beginning tells the kind for certain."""
    kinds = (
        f"It is {kind}. {remedy}"
        for beginning, kind, remedy in _KINDS
        if start.startswith(beginning)
    )
    return next(kinds, None)


def start_of(file: Any) -> bytes:
    """How an open binary file begins, if it can be looked at without being read."""
    return bytes(file.peek(START)[:START]) if hasattr(file, "peek") else b""
