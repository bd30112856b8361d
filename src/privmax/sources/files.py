"""Files of text: how they are opened, what separates the values, and ready scores in them.

Whether a file is named in Python or on the command line, and whether its rows are scores or are
counted by DuckDB, the same rules hold. The first line names the columns and tells what separates
the values; every value is text, and an empty one is none at all. Numbers are exact: 0.1 is one
tenth. JSON Lines are read by the same rules (`json_lines.py`), compressed files as what they hold,
and several files of one pattern as one.

No message quotes what a file holds, not even its first line: where the names are missing, that is
data.
"""

from __future__ import annotations

import csv
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
from privmax.sources.bounded import open_bounded, open_bytes
from privmax.sources.conditions import Condition
from privmax.sources.json_lines import read_objects
from privmax.sources.places import COMPRESSIONS, CSV, JSON, Files, differs, ending
from privmax.sources.scale import Scale

ENDINGS = (*CSV, *JSON)
"""How the names of such files end."""

Place = Path | BinaryIO | Files
"""Where rows of text are: a file, a stream of bytes, which can be read once, or several files."""

Rows = Iterator[tuple[int | str, list[str]]]
"""Rows, each with its line: a number, and the name of the file if there are several."""

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
    (
        b"\x28\xb5\x2f\xfd",
        "compressed (zstd)",
        "Let its name end in .csv.zst or .jsonl.zst, or unpack it with unzstd.",
    ),
    (b"PAR1", "a Parquet file", "Let its name end in .parquet."),
    (
        b"SQLite format 3\x00",
        "a SQLite database",
        "Let its name end in .sqlite, and give table (--table).",
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
    where    which rows count; None: all
    """

    place: Place
    items: tuple[str, ...]
    score: str
    where: Condition | None = None

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise ParameterError(
                "item", list(self.items), "a column occurs in it more than once", "Name each once."
            )

    def read(self, scale: Scale) -> dict[Any, int | Fraction]:
        """Labels and scores."""
        found: dict[Any, int | Fraction] = {}
        wanted = [*self.items, self.score]
        with open_records(self.place, wanted, self.where) as (names, records):
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
        names, separator, _ = _begin(file, path)
        return names, separator


def check_complete(path: Path) -> None:
    """Refuse a compressed file that is cut short or damaged, of which DuckDB would count what is
    left. It is unpacked once for that, and not kept.
    """
    if not path.name.lower().endswith(COMPRESSIONS):
        return
    with _text(path) as file:
        bytes_of = file.buffer  # type: ignore[attr-defined]
        while bytes_of.read(_PIECE):
            pass


_PIECE = 1 << 20
"""Bytes that are unpacked at a time."""


def is_stream(data: object) -> bool:
    """Whether it is an open file.

    Examples:
        >>> is_stream(io.BytesIO()), is_stream("searches.csv")
        (True, False)
    """
    return isinstance(data, io.IOBase)


def is_json(place: object) -> bool:
    """Whether rows are objects of JSON, by the ending of the name."""
    if isinstance(place, Files):
        return place.is_json
    return isinstance(place, Path) and place.name.lower().endswith(JSON)


def place_in(names: Sequence[str], option: str, name: str) -> int:
    """Where the column stands that an option names. Which others there are is not said: in a file
    without names, and in one whose objects are maps, they are data.
    """
    if name not in names:
        raise ParameterError(option, name, "the file has no such column", FIRST_LINE)
    if list(names).count(name) > 1:
        raise repetition(name)
    return list(names).index(name)


def repetition(name: str) -> DataError:
    return DataError(f"Two columns of the file are named {name!r}. Rename one.")


@contextmanager
def open_records(
    place: Place, wanted: Sequence[str] | None = None, where: Condition | None = None
) -> Iterator[tuple[list[str], Rows]]:
    """The names of the columns, and the rows, each with its line. Empty lines are none.

    wanted    the columns that are looked at; None: all of them. JSON has no others
    where     which rows are given; None: all
    """
    looked = None if wanted is None else [*wanted, *(where.columns() if where else ())]
    with _open_one(_first(place), looked) as (names, rows):
        every: Rows = rows
        if isinstance(place, Files) and len(place.paths) > 1:
            every = chain(_name_lines(place.paths[0], rows), _more(place, names, looked))
        yield names, matching_rows(every, names, where)


def _first(place: Place) -> Path | BinaryIO:
    return place.paths[0] if isinstance(place, Files) else place


@contextmanager
def _open_one(
    place: Path | BinaryIO, wanted: Sequence[str] | None
) -> Iterator[tuple[list[str], Rows]]:
    """The same for one file."""
    if is_json(place):
        with _text(place, newline="\n") as file:
            names = list(dict.fromkeys(wanted or ()))
            yield names, read_objects(file, names)
        return
    with _text(place) as file:
        names, _, rows = _begin(file, place)

        def lines() -> Rows:
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


def _more(files: Files, names: Sequence[str], wanted: Sequence[str] | None) -> Rows:
    """The rows of all files but the first, which must have the same columns."""
    for path in files.paths[1:]:
        with _open_one(path, wanted) as (others, rows):
            check_layout(path, others, files.paths[0], names)
            yield from _name_lines(path, rows)


def check_layout(path: Path, others: Sequence[str], first: Path, names: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first."""
    if list(others) != list(names):
        raise differs(path, first, "does not have the same columns, in the same order, as")


def _name_lines(path: Path, rows: Rows) -> Rows:
    wrong = None
    try:
        for line, row in rows:
            yield f"{line} of {path.name!r}", row
    except DataError as error:
        wrong = f"The file {path.name!r}: {error}"
    if wrong is not None:
        raise DataError(wrong)


def matching_rows(rows: Rows, names: Sequence[str], where: Condition | None) -> Rows:
    """The rows for which a condition is true; None: all."""
    if where is None:
        return rows
    where.check(names, shown=False)
    where.check_text()
    place = {name: place_in(names, "where", name) for name in where.columns()}

    def keep() -> Rows:
        for line, row in rows:
            if where.keeps({name: row[at] for name, at in place.items()}.get):
                yield line, row

    return keep()


def _begin(file: IO[str], place: Path | BinaryIO) -> tuple[list[str], str, Any]:
    """The names of the columns, what separates values, and the reader of the rows that follow."""
    line = file.readline(_LONGEST_LINE)
    tabs = isinstance(place, Path) and ending(place.name) == ".tsv" and "\t" in line
    separator = "\t" if tabs else separator_in(line)
    rows = csv.reader(chain([line], file), delimiter=separator, strict=True)
    names = next(rows, [])
    if not names:
        raise DataError(
            "The file is empty, or begins with an empty line. Its first line must name the columns."
        )
    return names, separator, rows


@contextmanager
def _text(place: Path | BinaryIO, newline: str = "") -> Iterator[IO[str]]:
    """A file as text, packed or not; what is none is told with the remedy."""
    if isinstance(place, Path) and place.name.lower().endswith(SPREADSHEETS):
        raise DataError(EXPORT)
    wrong = ""
    try:
        with _bytes(place) as file:
            strange = foreign(start_of(file))
            if strange is not None:
                raise DataError(f"The file is not UTF-8 text. {strange}")
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline)
            try:
                yield text
            finally:
                text.detach()
    except UnicodeDecodeError as error:
        # It holds rows, and what is raised below leads to it: this is the rest of a with statement.
        error.object, error.args, error.__traceback__ = b"", (), None
        wrong = f"The file is not UTF-8 text. {CONVERT}"
    except csv.Error as error:  # which says what of the form is wrong, and quotes nothing
        error.__traceback__ = None
        wrong = (
            f"The file is not readable as CSV ({error}). Close every quote, and double one "
            "that is part of a value."
        )
    except (OSError, EOFError, zlib.error) as error:
        error.__traceback__ = None
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
        if is_stream(place) and not isinstance(place, io.RawIOBase | io.BufferedIOBase):
            raise DataError("The open file gives text, not bytes. Open it in binary mode.")
        yield open_bounded(place) if is_stream(place) else place
        return
    with open_bytes(place) as file:
        yield file


def _number(text: str, line: int | str, scale: Scale) -> int | Fraction:
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
    return recognize(start) or zeros


def recognize(start: bytes) -> str | None:
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
