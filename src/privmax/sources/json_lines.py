"""JSON Lines: one object per line, read like a file of separated values.

The columns are those that are asked for: keys are part of the rows, and none of them, not even
those of the first line, decides what there is. Every value is text: a number as it is written, true
and false as these words; null, an empty text and a key that a line lacks are no value at all. So a
column has one type, whatever is in it, and the same rows as CSV give the same answer.

A line that is no object, or has a key twice, is refused, and so is a list or an object where a
value is wanted: which of two values counts, or how a list is written, would be a guess. Messages
give the number of the line and quote nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from privmax.errors import DataError, nearest
from privmax.sources.blocks import Batch
from privmax.sources.dialect import Dialect
from privmax.sources.json_forms import DECODER, RepetitionError, sort_lines
from privmax.sources.text import read_lines, undecodable


def read_objects(
    file: Iterable[str], names: Sequence[str], lists: Sequence[str] = (), before: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the values of each line in the columns of these names, with the number of the line.

    Args:
        lists: Names of columns that hold arrays: their value is the list of the texts in it.
        before: How many lines there are before these.
    """
    readers = [(name, _texts if name in lists else _text) for name in names]
    for number, values in _objects(file, before):
        yield number, [read(number, values.get(name)) for name, read in readers]


def read_batches(pieces: Iterable[bytes], names: Sequence[str]) -> Iterator[Batch]:
    """Yield the values of whole lines in the columns of these names, many lines at a time.

    Lines of one plain form come as a block, with the places of the columns in it; None: it has no
    such key. The others come as rows.
    """
    before = 0
    for piece in pieces:
        blocks, others = sort_lines(piece)
        rows = None
        if not any(form.nested.intersection(names) for form, _ in blocks):
            with suppress(DataError):  # the number of the line is that in the file
                rows = [row for _, row in read_objects(read_lines(others), names)]
        if rows is None:
            blocks = []
            rows = [row for _, row in read_objects(read_lines(piece), names, before=before)]
        for form, block in blocks:
            yield block, [form.places.get(name) for name in names]
        if rows:
            yield rows
        before += piece.count(b"\n")


class Keys:
    """The keys that lines have, for a check: a name that none of them has was misspelled.

    Whether there is such a line depends on the rows, so a release never asks.
    """

    def __init__(self, names: Sequence[str], dialect: Dialect) -> None:
        self._missing, self._dialect = set(names), dialect
        self._seen: dict[str, None] = {}

    def look(self, file: Iterable[str]) -> None:
        """Look at the lines of a file, until there is one for each name."""
        if not self._missing:
            return
        for _, values in _objects(file):
            self._missing.difference_update(values)
            if self._dialect.header_is_public and len(self._seen) < _MOST_KEYS:
                self._seen.update(dict.fromkeys(values))
            if not self._missing:
                return

    def refuse(self) -> None:
        """Refuse a name that no line has."""
        for name in sorted(self._missing):
            remedy = "Check how it is spelled."
            if (near := nearest(name, self._seen)) is not None:
                remedy = f"Did you mean {near!r}?"
            elif not self._dialect.header_is_public:
                remedy += (
                    " Keys are part of the rows and are not listed; if they are public, set "
                    "header_is_public (--header-is-public)."
                )
            raise DataError(f"No line of the file has the key {name!r}. {remedy}")


_MOST_KEYS = 10_000
"""Different keys that a check remembers, to name the nearest."""


def _objects(file: Iterable[str], before: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each line that is not blank, with the number of the line."""
    for number, line in _lines(file, before):
        if line.isspace():
            continue
        wrong = ""
        value: Any = None
        try:
            value = DECODER.decode(line)
        except RepetitionError:
            wrong = "has a key twice. Give each key once: which value counts would be a guess."
        except (ValueError, RecursionError):
            wrong = "is not valid JSON. Write one object on each line, in UTF-8."
        if not wrong and not isinstance(value, dict):
            wrong = "is not a JSON object. Write one object on each line"
            wrong += "; of one long list, jq -c '.[]' makes lines." if number == 1 else "."
        if wrong:
            raise DataError(f"Line {number} {wrong}")  # out here, where nothing quotes the line
        yield number, value


def _lines(file: Iterable[str], before: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, with their numbers."""
    number, wrong = before, ""
    try:
        for number, line in enumerate(file, before + 1):
            yield number, line
    except UnicodeDecodeError as error:
        wrong = undecodable(error, number)
    if wrong:
        raise DataError(wrong)


def _texts(number: int, value: Any) -> list[str]:
    """Return the values of an array as text; null is an empty one."""
    if value is None:
        return []
    if isinstance(value, list):
        return [_text(number, one) for one in value]
    raise DataError(
        f"Line {number} has no list in the column of items. Write a list, or, if a line is one "
        "item of a basket, give basket."
    )


def _text(number: int, value: Any) -> str:
    if type(value) is str:
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise DataError(f"Line {number} has half of a character, which is not text.")
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    raise DataError(
        f"Line {number} has a list or an object in a column that is read. Write single "
        "values, and a line for each element."
    )
