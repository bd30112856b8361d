"""Separated values: the one reader of CSV, for scores, rows to count, baskets, learners and labels.

* Values are separated by what the caller declares. Otherwise the first line decides, which is
  public: a comma if it has one, or else a semicolon or a tab; in a .tsv file a tab if it has one.
* A value may be in double quotes, and then hold separators, line breaks and doubled quotes. A
  quote that is not closed, or has text after it, is refused, and so is a carriage return inside a
  line, and a value of more than 128 KiB.
* Where the first line names the columns, every other line has as many values, or none: an empty
  line is not a row. It may have one name several times, which is refused where that column is asked
  for.
* Every value is text, and an empty one is none at all.

A row has the number of the line on which it begins. Messages give that, and quote nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from privmax.errors import DataError, ParameterError, column_error
from privmax.sources.blocks import Block, read_values
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.places import ending
from privmax.sources.text import open_pieces, open_text, read_lines, undecodable

Rows = Iterator[tuple[int | str, list[Any]]]
"""Rows of text, each with its line: a number, and the name of the file if there are several."""

FIRST_LINE = "Column names must be on the first line of the file: head -n 1 FILE shows it."

_NO_NAMES = "The file is empty, or begins with an empty line. Its first line must name the columns."

_QUOTES = "Close every quote, and double one that is part of a value."

_FAULTS = {
    "unexpected end": f"a quote is not closed. {_QUOTES}",
    "expected after": f"there is text after a closing quote. {_QUOTES}",
    "field larger": "a value has more than 128 KiB. Is it text, with a line for each row?",
    "new-line character": "there is a carriage return inside the line. Lines end in a newline, or "
    "in a carriage return and a newline; quote a value that contains one.",
}
"""The faults of a row, by the message of Python's reader."""


class HeaderedFile(NamedTuple):
    """A file whose first line names the columns.

    Attributes:
        names: As written there.
        separator: What is between values.
        rows: The other lines.
    """

    names: list[str]
    separator: str
    rows: Rows


@contextmanager
def open_named(
    place: Any, dialect: Dialect = PLAIN, *, strip: bool = False
) -> Iterator[HeaderedFile]:
    """A file of separated values under a line of names.

    Args:
        place: A path, "-" for standard input, or an open file, which stays open.
        dialect: What is declared of it.
        strip: Whether blanks in front of quotes do not count.
    """
    with open_text(place, dialect.encoding) as file:
        first = _first_line(file)
        separator = dialect.delimiter or separator_in(first, place)
        rows = _read(chain([first], file), separator, strip=strip)
        _, names = next(rows, (1, []))
        if not names:
            raise DataError(_NO_NAMES)
        yield HeaderedFile(names, separator, _even(rows, len(names)))


@contextmanager
def open_blocks(
    place: Any, dialect: Dialect = PLAIN
) -> Iterator[tuple[list[str], Iterator[tuple[int, Block | Rows]]]]:
    """The same rows many at a time: the names, and blocks of rows that need no reader.

    Each block comes with the number of its first line. Rows that need a reader come one by one, and
    must all be taken before the next block is.
    """
    with open_pieces(place, dialect.encoding) as pieces:
        start = None if pieces is None else next(pieces, b"")
        if pieces is None or start is None:
            with open_named(place, dialect) as opened:
                yield opened.names, iter([(2, opened.rows)])
            return
        lines = _Lines(start, pieces)
        first = _first_line(lines)
        separator = dialect.delimiter or separator_in(first, place)
        rows = _read(chain([first], lines), separator)
        _, names = next(rows, (1, []))
        if not names:
            raise DataError(_NO_NAMES)
        yield names, _blocks(lines, pieces, separator, len(names))


@contextmanager
def open_lines(
    place: Any, separator: str, encoding: str | None = None, *, strip: bool = False
) -> Iterator[Rows]:
    """A file of separated values without names: every line is a row, of any number of values."""
    with open_text(place, encoding) as file:
        first = _first_line(file)
        yield _read(chain([first] if first else [], file), separator, strip=strip)


def split_line(text: str) -> list[str]:
    """Return the values of a line with commas between them.

    Examples:
        >>> split_line('no,"yes, always"')
        ['no', 'yes, always']
    """
    return next((row for _, row in _read([text], ",")), [])


def separator_in(names: str, place: Any = None) -> str:
    """Return what separates the values below a line of names.

    A comma, unless there is none but a semicolon or a tab; in a .tsv file a tab, if there is one.

    Examples:
        >>> separator_in("a;b"), separator_in("a,b;c"), separator_in("a"), separator_in("a,b\\tc")
        (';', ',', ',', ',')
        >>> separator_in("a,b\\tc", Path("some.tsv.gz"))
        '\\t'
    """
    tabs = isinstance(place, Path) and ending(place.name) == ".tsv" and "\t" in names
    return "\t" if tabs else next((mark for mark in ",;\t" if mark in names), ",")


def place_in(names: Sequence[str], option: str, name: str, *, shown: bool = False) -> int:
    """Return the place of the column that an option names."""
    if name not in names:
        raise no_column(option, name, names, shown=shown)
    if list(names).count(name) > 1:
        raise repetition(name)
    return list(names).index(name)


def no_column(option: str, name: str, names: Sequence[str], *, shown: bool) -> ParameterError:
    """Return the error about a column that a file of text does not have.

    Other columns are named only where the names are public: in a file without names they are data.
    """
    if shown:
        return column_error(option, name, list(names), "file")
    error = ParameterError(option, name, "the file has no such column", FIRST_LINE)
    error.is_absent = True
    return error


def repetition(name: str) -> DataError:
    """Return the error about a column that is asked for and is there twice."""
    return DataError(f"Two columns of the file are named {name!r}. Rename one.")


def refuse_repetition(names: Sequence[str]) -> None:
    """Refuse repeated names where all columns are read. They are not quoted: no one gave them."""
    if len(set(names)) < len(names):
        raise DataError("Two columns of the file have the same name. Rename one.")


def _first_line(file: Iterator[str]) -> str:
    wrong = ""
    try:
        return next(file, "").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        wrong = undecodable(error, 0)
    raise DataError(wrong)


class _Lines:
    """Lines of a piece of text, and of the pieces after it if they are asked for.

    Args:
        number: How many were handed out.
    """

    def __init__(self, piece: bytes, pieces: Iterator[bytes], number: int = 0) -> None:
        self._pieces, self.number = pieces, number
        self._begin(piece)

    def _begin(self, piece: bytes) -> None:
        self._piece, self._lines, self._start = piece, read_lines(piece), self.number
        self._end = self.number + piece.count(b"\n") + (not piece.endswith(b"\n"))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines, "")
        while not line:
            self._begin(next(self._pieces))
            line = next(self._lines, "")
        self.number += 1
        return line

    def rest(self) -> bytes:
        """Return the lines of the piece that were not handed out."""
        place = 0
        for _ in range(self.number - self._start):
            place = self._piece.find(b"\n", place) + 1 or len(self._piece)
        return self._piece[place:]

    def is_between(self) -> bool:
        """Return whether all lines of the piece were handed out."""
        return self.number >= self._end


def _blocks(
    lines: _Lines, pieces: Iterator[bytes], separator: str, width: int
) -> Iterator[tuple[int, Block | Rows]]:
    """Yield the rows behind those lines that were handed out."""
    number, rest = lines.number, lines.rest()
    for piece in chain([rest] if rest else [], pieces):
        block = read_values(piece, separator, width)
        if block is not None:
            yield number + 1, block
            number += block.lines
            continue
        lines = _Lines(piece, pieces, number)
        yield number + 1, _even(_until(lines, separator), width)
        number = lines.number


def _until(lines: _Lines, separator: str) -> Rows:
    """Yield rows up to the end of a piece, or of a row that goes on in the next."""
    for row in _read(lines, separator, lines.number):
        yield row
        if lines.is_between():
            return


def _read(lines: Iterable[str], separator: str, before: int = 0, *, strip: bool = False) -> Rows:
    """Yield all rows, empty ones too, each with the number of the line on which it begins.

    Args:
        before: How many lines there are before these.
    """
    # Within quotes blanks count, so those in front of quotes must go before.
    reader = csv.reader(
        lines, delimiter=separator, strict=True, skipinitialspace=strip and separator != " "
    )
    begin, wrong = before + 1, ""
    try:
        for row in reader:
            yield begin, row
            begin = before + reader.line_num + 1
    except UnicodeDecodeError as error:
        wrong = undecodable(error, before + reader.line_num)
    except csv.Error as error:
        said = str(error)
        fault = next((words for part, words in _FAULTS.items() if part in said), _QUOTES)
        wrong = f"Line {begin} is not CSV: {fault}"
    if wrong:
        raise DataError(wrong)  # out here, where nothing leads to the first error


def _even(rows: Rows, width: int) -> Rows:
    """Yield the rows that are not empty; all must have as many values."""
    for line, row in rows:
        if len(row) == width:
            yield line, row
        elif row:
            raise DataError(
                f"Line {line} does not have as many values as the first line. Quote a value that "
                "contains the separator."
            )
