"""JSON Lines: an object a line, read as a file of separated values is.

The columns are those that are asked for: keys are part of the rows, and none of them, not even
those of the first line, decides what there is. Every value is text: a number as it is written, true
and false as these words; null, an empty text and a key that a line lacks are no value at all. So a
column has one type, whatever stands in it, and the same rows as CSV give the same answer.

A line that is no object, or has a key twice, is refused, and so is a list or an object where a
value is wanted: which of two values counts, or how a list is written, would be a guess. Messages
give the number of the line and quote nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any, NoReturn

from privmax.errors import DataError


def read_objects(file: IO[str], names: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The values of each line in the columns of these names, with the number of the line."""
    for number, found in _objects(file):
        yield number, [_text(number, found.get(name)) for name in names]


def _objects(file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each line that is not blank, with the number of the line."""
    for number, line in enumerate(file, 1):
        if line.isspace():
            continue
        wrong = ""
        found: Any = None
        try:
            found = _DECODER.decode(line)
        except _RepetitionError:
            wrong = "has a key twice. Give each key once: which value counts would be a guess."
        except (ValueError, RecursionError):
            wrong = "is not valid JSON. Write one object on each line, in UTF-8."
        if not wrong and not isinstance(found, dict):
            wrong = "is no JSON object. Write one object on each line"
            wrong += "; of one long list, jq -c '.[]' makes lines." if number == 1 else "."
        if wrong:
            raise DataError(f"Line {number} {wrong}")  # out here, where nothing quotes the line
        yield number, found


class _RepetitionError(Exception):
    """A key stands twice in an object."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepetitionError
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError  # NaN and the infinities, which Python reads and JSON does not have


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=str, parse_float=str, parse_constant=_constant
)


def _text(number: int, value: Any) -> str:
    if type(value) is str:
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise DataError(f"Line {number} holds half of a character, which is no text.")
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    raise DataError(
        f"Line {number} holds a list or an object in a column that is asked for. Write single "
        "values, and a line for each element."
    )
