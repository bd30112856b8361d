"""Shows values: labels in words, in JSON and in frames.

A label is data, and may look like markup, like a formula or like a command to a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from importlib import import_module
from math import isfinite
from typing import Any
from unicodedata import category

from privmax.errors import ParameterError

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that move the cursor, turn the direction of writing, or are not seen."""

BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols of other categories that show as nothing: two labels that differ in
one of them would look alike.
"""


def on_terminal() -> bool:
    """Return whether messages are shown on a terminal. Standard error may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()


def portable(value: object) -> object:
    """Return what is left of a value in JSON, where that has no type for it.

    Dates become ISO text, bytes hexadecimal digits, and numbers of NumPy those of Python.

    Examples:
        >>> portable(date(2026, 11, 16)), portable(b"ab"), portable(12)
        ('2026-11-16', '6162', 12)
    """
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return portable(value.item())
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, int | float | str | None) else str(value)


LIBRARIES = ("pandas", "polars", "pyarrow")
"""The libraries that make frames, the first choice first."""


def make_frame(
    items: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, Sequence[int | float | None]],
    library: str | None = None,
) -> Any:
    """Return columns as a frame of a library; by default of the first that is installed.

    pandas gets items as Python objects. polars and Arrow have one type for each column: items of
    several types, or of one that they do not have, become text.

    Args:
        items: Columns of items by name.
        numbers: Columns of numbers by name, as long.
        library: One of `LIBRARIES`; None: the first that is installed.

    Raises:
        ParameterError: It is another one, or is not installed.

    Examples:
        >>> make_frame({"item": ["tea"]}, {"count": [7]}, "pyarrow").to_pylist()
        [{'item': 'tea', 'count': 7}]
    """
    if library is not None and library not in LIBRARIES:
        allowed = f"it must be one of {', '.join(LIBRARIES)}"
        raise ParameterError("library", library, allowed, "Or leave it out.")
    for name in LIBRARIES if library is None else (library,):
        try:
            module = import_module(name)
        except ImportError:
            continue
        return _BUILDERS[name](module, items, numbers)
    missing = f"it needs one of {', '.join(LIBRARIES)}, and none is installed"
    missing = missing if library is None else "it is not installed"
    remedy = f"For example: pip install {library or 'pandas'}"
    raise ParameterError("library", library, missing, remedy)


_Columns = Mapping[str, Sequence[Any]]


def _pandas_frame(pandas: Any, items: _Columns, numbers: _Columns) -> Any:
    columns = {name: pandas.Series(list(one), dtype=object) for name, one in items.items()}
    for name, one in numbers.items():
        columns[name] = pandas.Series(list(one), dtype=None if one else "int64")
    return pandas.DataFrame(columns)


def _polars_frame(polars: Any, items: _Columns, numbers: _Columns) -> Any:
    columns = [
        polars.Series(name, _typed(one), dtype=None if one else polars.String)
        for name, one in items.items()
    ]
    for name, one in numbers.items():
        columns.append(polars.Series(name, list(one), dtype=None if one else polars.Int64))
    return polars.DataFrame(columns)


def _arrow_table(arrow: Any, items: _Columns, numbers: _Columns) -> Any:
    columns = {
        name: arrow.array(_typed(one), None if one else arrow.string())
        for name, one in items.items()
    }
    for name, one in numbers.items():
        columns[name] = arrow.array(list(one), None if one else arrow.int64())
    return arrow.table(columns)


_BUILDERS: dict[str, Callable[[Any, _Columns, _Columns], Any]] = {
    "pandas": _pandas_frame,
    "polars": _polars_frame,
    "pyarrow": _arrow_table,
}


def _typed(values: Sequence[Any]) -> list[Any]:
    """Values of one type, or lists of such; else all of them as text."""
    if values and all(isinstance(value, tuple) for value in values):
        flat = [one for value in values for one in value]
        is_alike = _are_alike(flat)
        return [[one if is_alike else format_label(one) for one in value] for value in values]
    return list(values) if _are_alike(values) else [format_label(value) for value in values]


def _are_alike(values: Sequence[Any]) -> bool:
    """Return whether all values are of one type that every library has, and fit it."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return False
    (kind,) = kinds
    if kind is datetime:  # a column has a time zone, or none
        return len({value.utcoffset() is None for value in values}) == 1
    fits = _FITS.get(kind)
    return fits is not None and all(map(fits, values))


_FITS: dict[type, Callable[[Any], bool]] = {
    **dict.fromkeys((float, bool, bytes, date), lambda value: True),
    str: lambda value: value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value),
    int: lambda value: -(1 << 63) <= value < 1 << 63,
    time: lambda value: value.tzinfo is None,
    timedelta: lambda value: abs(value // timedelta(microseconds=1)) < 1 << 62,
}
"""Types that every library has, and which of their values fit there; moments are apart."""


def format_label(item: object) -> str:
    r"""Return an item as people read it.

    What cannot be printed is spelled out: a label is data, and could forge a line. Text that begins
    or ends with a space is quoted, since it is not the label without it; so is the empty text.

    Examples:
        >>> format_label(("tea", 12)), format_label("a\nb"), format_label("tea ")
        ('tea, 12', 'a\\nb', '"tea "')
    """
    if isinstance(item, tuple):
        return ", ".join(map(format_label, item))
    text = str(portable(item))
    shown = escape_text(text)
    return shown if text and text == text.strip(" \xa0\u3000") else f'"{shown}"'


def escape_text(text: str, *, keep: str = "") -> str:
    r"""Return a text in which nothing is unseen: the one rule for terminals and for pages.

    Escape sequences of a terminal, marks that turn the direction of writing (U+202E), characters
    without width, halves of characters and line breaks are written as Python writes them.

    Args:
        text: Any text, perhaps someone else's.
        keep: Characters that are left as they are, such as a line break between lines of ours.

    Examples:
        >>> print(escape_text("a\x1b[31mb\u202ec"), escape_text("two\nlines", keep="\n"))
        a\x1b[31mb\u202ec two
        lines
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if _is_unseen(c) and c not in keep else c for c in text)


def _is_unseen(character: str) -> bool:
    return category(character) in UNSEEN or character in BLANKS


def to_json(value: object) -> str:
    r"""Return a value as JSON on one line, in which nothing is unseen.

    Examples:
        >>> print(to_json({"item": "té\u200ba", "when": date(2026, 11, 16)}))
        {"item": "té\u200ba", "when": "2026-11-16"}
    """
    text = json.dumps(_finite(value), ensure_ascii=False, default=portable)
    return "".join(json.dumps(c)[1:-1] if _is_unseen(c) else c for c in text)


def _finite(value: object) -> object:
    """Return the same without infinities and NaN, which are text in JSON.

    It has no such numbers.
    """
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
