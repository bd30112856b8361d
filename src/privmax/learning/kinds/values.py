"""Single values: which texts are numbers, what stands for missing values, any object as a float.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privmax.errors import ParameterError

SPACES = " \t\n\r\v\f"
"""Characters that are stripped from both ends of a text."""

NUMERAL = r"^[+-]?([0-9]{1,100}[.]?[0-9]{0,100}|[.][0-9]{1,100})([eE][+-]?[0-9]{1,2})?$"
"""A text that is read as a number. It is finite then, and every engine reads the same number."""

EXACT = 1 << 53
"""Whole numbers from here on are rounded in floats, and are no listed value: a null may make floats
of the numbers beside it."""

_DIGITS = 8
"""Of a number in words."""


def number_in_words(value: float) -> str:
    """Return a threshold as people read it.

    Examples:
        >>> number_in_words(40.0), number_in_words(1 / 3)
        ('40', '0.33333333')
    """
    whole = float(value).is_integer() and abs(value) < EXACT
    return str(int(value)) if whole else f"{value:.{_DIGITS}g}"


def plain_value(value: Any) -> Any:
    """Return a value of NumPy or a member of an Enum as a plain value of Python.

    It means what is shown.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) and not isinstance(value, bool) else value


def is_listable(value: Any) -> bool:
    return isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) < EXACT)


def read_missing(missing: Any) -> tuple[Any, list[Any]]:
    """Return what to show of `missing`, and which values are missing.

    Those are in addition to None, NaN and "".
    """
    missing = plain_value(missing)
    if missing is None or missing is True:
        return missing, []
    several = isinstance(missing, (list, tuple))
    markers = [plain_value(marker) for marker in (missing if several else [missing])]
    for marker in markers:
        number = isinstance(marker, float) and math.isfinite(marker)
        if not markers or isinstance(marker, bool) or not (is_listable(marker) or number):
            raise ParameterError(
                "missing",
                missing,
                "it must be True, a text or a number, or a list of these",
                'For example "?".',
            )
    markers = [one.strip(SPACES) if isinstance(one, str) else one for one in markers]
    return (tuple(markers) if several else markers[0]), markers


def text_of(value: Any) -> str:
    """Return the text that a listed value, or one that stands for missing ones, is known by."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value)


_NUMBERS = (np.integer, np.floating, Decimal, Fraction)
"""Types of numbers beside those of Python."""


def as_float(value: Any) -> float:
    """Return a value as a number; NaN if it is none."""
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)
    whole = issubclass(kind, int)
    number = whole or any(one in kind.__mro__ for one in _NUMBERS)
    if not number or issubclass(kind, np.timedelta64):
        return math.nan
    try:
        return float(int.__int__(value) if whole else value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # a signaling NaN; and somebody's own class may raise what it likes
        return math.nan


def read_missing_flag(missing: Any, why: str) -> bool | None:
    """Read `missing` of a kind that needs no list of what stands for missing values.

    Args:
        missing: What was given.
        why: Which values are missing without being listed.

    Raises:
        ParameterError: It is neither True nor left out.
    """
    missing = plain_value(missing)
    if missing is None or missing is True:
        return True if missing else None
    raise ParameterError(
        "missing",
        missing,
        f"it must be True, or left out: {why}",
        "Give missing=True for a cell of their own.",
    )
