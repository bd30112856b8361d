"""Files of separated values: how they are opened, what separates the values, and ready scores in
them.

Whether a file is named in Python or on the command line, and whether its rows are scores or are
counted by DuckDB, the same rules hold. The first line names the columns and tells what separates
the values; every value is text, and an empty one is none at all. Numbers are exact: 0.1 is one
tenth.

No message quotes what a file holds, not even its first line: where the names are missing, that is
data.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO

from privmax.errors import DataError, ParameterError
from privmax.numbers import EXPONENT, LONGEST, exact
from privmax.sources.scale import Scale

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""How the names of such files end."""

FIRST_LINE = "Column names must be on the first line of the file: head -n 1 FILE shows it."

_LONGEST_LINE = 1 << 20
"""Characters of the first line that are looked at for what separates the values."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

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


@dataclass(frozen=True)
class ScoreFile:
    """A file with one row per candidate.

    place    its path, or a stream of its bytes, which can be read once
    items    columns that name a candidate, together if they are several
    score    column of the scores
    """

    place: Path | BinaryIO
    items: tuple[str, ...]
    score: str

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise ParameterError(
                "item", list(self.items), "a column occurs in it more than once", "Name each once."
            )

    def read(self, scale: Scale) -> dict[Any, int | Fraction]:
        """Labels and scores."""
        found: dict[Any, int | Fraction] = {}
        with open_records(self.place) as (names, records):
            places = [place_in(names, "item", name) for name in self.items]
            scored = place_in(names, "score", self.score)
            for line, record in records:
                cells = tuple(record[place] for place in places)
                if "" in cells:
                    raise DataError(
                        f"Line {line} has no label. Drop such candidates: no label means no answer."
                    )
                label = cells if len(cells) > 1 else cells[0]
                if label in found:
                    raise DataError(
                        f"Line {line} repeats a label. Add up or deduplicate its scores first, or, "
                        f"if a line is one "
                        "person's, count people: name their column as user."
                    )
                found[label] = _number(record[scored], line, scale)
        return found


def header(path: Path) -> tuple[list[str], str]:
    """The names of the columns of a file, and what separates its values."""
    with _text(path) as file:
        names, separator, _ = _begun(file, path)
        return names, separator


def place_in(names: Sequence[str], option: str, name: str) -> int:
    """Where the column stands that an option names."""
    if name not in names:
        raise ParameterError(option, name, "the file has no such column", FIRST_LINE)
    if list(names).count(name) > 1:
        raise repetition(name)
    return list(names).index(name)


def repetition(name: str) -> DataError:
    return DataError(f"Two columns of the file are named {name!r}. Rename one.")


@contextmanager
def open_records(
    place: Path | BinaryIO,
) -> Iterator[tuple[list[str], Iterator[tuple[int, list[str]]]]]:
    """The names of the columns, and the rows, each with the number of its line. Empty lines are
    none.
    """
    with _text(place) as file:
        names, _, rows = _begun(file, place)

        def lines() -> Iterator[tuple[int, list[str]]]:
            for row in rows:
                if row and len(row) != len(names):
                    raise DataError(
                        f"Line {rows.line_num} does not have as many values as the first line. "
                        f"Quote a value that "
                        "holds what separates them."
                    )
                if row:
                    yield rows.line_num, row

        yield names, lines()


def _begun(file: IO[str], place: Path | BinaryIO) -> tuple[list[str], str, Any]:
    """The names of the columns, what separates values, and the reader of the rows that follow."""
    line = file.readline(_LONGEST_LINE)
    tabs = (
        isinstance(place, Path)
        and ".tsv" in [suffix.lower() for suffix in place.suffixes]
        and "\t" in line
    )
    separator = "\t" if tabs else separator_in(line)
    rows = csv.reader(chain([line], file), delimiter=separator, strict=True)
    names = next(rows, [])
    if not names:
        raise DataError(
            "The file is empty, or begins with an empty line. Its first line must name the columns."
        )
    return names, separator, rows


@contextmanager
def _text(place: Path | BinaryIO) -> Iterator[IO[str]]:
    """A file as text, packed or not; what is none is told with the remedy."""
    if isinstance(place, Path) and place.name.lower().endswith(SPREADSHEETS):
        raise DataError(EXPORT)
    wrong = ""
    try:
        with _bytes(place) as file:
            strange = foreign(start_of(file))
            if strange is not None:
                raise DataError(f"The file is not UTF-8 text. {strange}")
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                yield text
            finally:
                text.detach()
    except UnicodeDecodeError:
        wrong = f"The file is not UTF-8 text. {CONVERT}"
    except csv.Error as error:  # which says what of the form is wrong, and quotes nothing
        wrong = (
            f"The file is not readable as CSV ({error}). Close every quote, and double one "
            "that is part of a value."
        )
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None)
        wrong = (
            f"The file cannot be read{f' ({reason})' if reason else ''}. Is it what its name "
            "says, and may you?"
        )
    if wrong:
        raise DataError(wrong)


@contextmanager
def _bytes(place: Path | BinaryIO) -> Iterator[Any]:
    if not isinstance(place, Path):
        yield place
        return
    with gzip.open(place, "rb") if place.suffix.lower() == ".gz" else place.open("rb") as file:
        yield file


def _number(text: str, line: int, scale: Scale) -> int | Fraction:
    """A score, exactly."""
    digits = text.strip()
    if not _NUMBER.fullmatch(digits):
        raise DataError(
            f"Line {line} has no number in the score column. Write numbers like 1500 or 0.5, "
            f"without commas or units; "
            "and see that item and score are not swapped."
        )
    try:
        number = exact("score", digits)
    except ParameterError:  # which quotes it
        number = None
    if number is None:
        raise DataError(
            f"Line {line} has a number of more than {LONGEST} digits, or with an exponent beyond "
            f"{EXPONENT}, in the "
            "score column."
        )
    if scale.whole and number.denominator != 1:
        raise DataError(
            f"Line {line} has a score that is not a whole number. Scores must be whole numbers "
            "unless a grid is declared: set resolution to the step of a public grid, for example "
            "0.01."
        )
    return number.numerator if number.denominator == 1 else number


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
