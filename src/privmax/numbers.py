"""Exact numbers: how parameters are read, and how they are shown.

Everything here is a rational number. A float means the decimal that it prints as, so 0.1 is one
tenth, as "0.1" is. Numbers for people are rounded to six digits, up or down as the reader of a cost
or a budget needs it.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

from privmax.errors import ParameterError

Number = int | float | str | Decimal | Fraction
"""The types of a parameter. A float means the decimal that it prints as: 0.1 is one tenth, as "0.1"
is.
"""

DIGITS = 6
"""Significant digits of numbers in words and tables."""

EXPONENT = 1000
"""The largest power of ten, up or down, that a number may be given with: beyond all floats, and
quick to write out.
"""

LONGEST = 4300
"""Digits that a number given as text or Decimal may have, written out: as many as Python reads and
writes.
"""


class Amount(Fraction):
    """An exact number that is shown in at most six digits, rounded up.

    f-strings take it as they take a float.

    Examples:
        >>> Amount(1, 3)
        0.333334
        >>> f"{Amount(1, 3):.2f}"
        '0.33'
        >>> Amount(1, 3) * 3 == 1
        True
    """

    __slots__ = ()

    def __str__(self) -> str:
        return round_up(self)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        if re.fullmatch(r"\d*|.?[<>^]\d*", spec):
            return format(str(self), f">{spec}" if spec.isdigit() else spec)
        try:
            return format(float(self), spec)
        except OverflowError:
            return format(Decimal(round_up(self)), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (self.numerator, self.denominator)


def exact(name: str, value: Number) -> Fraction:
    """Read a finite number of any kind.

    Args:
        name: What the number is, for the error.
        value: The number; a float means the decimal that it prints as.

    Returns:
        The rational number that `value` is.

    Raises:
        ParameterError: It is not a finite number, or is too long to be written out.

    Examples:
        >>> exact("epsilon", 0.1)
        Fraction(1, 10)
        >>> exact("epsilon", "1/3")
        Fraction(1, 3)
    """
    if type(value) is Fraction and type(value.numerator) is type(value.denominator) is int:
        return value
    try:
        if is_float(value):
            return decimal_of(value)
        if (
            not isinstance(value, bool)
            and isinstance(value, (Rational, str, Decimal))
            and _short(value)
        ):
            number = Fraction(value)
            if type(number.numerator) is type(number.denominator) is int:
                return number
            return Fraction(int(number.numerator), int(number.denominator))  # of NumPy's integers
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        pass  # TypeError: NumPy calls spans of time whole numbers
    raise ParameterError(name, value, f"it must be a finite number{_form(value)}", _spelling(value))


def is_float(value: object) -> bool:
    """Return whether a value is a float, Python's or one of NumPy's.

    Examples:
        >>> is_float(0.5), is_float(1)
        (True, False)
    """
    return isinstance(value, float) or (
        isinstance(value, Real) and not isinstance(value, Rational) and hasattr(value, "dtype")
    )


def decimal_of(value: Any) -> Fraction:
    """Return the decimal that a finite float prints as.

    It is the shortest one that is read back as the same float of its type.

    Examples:
        >>> decimal_of(0.1)
        Fraction(1, 10)
    """
    if isinstance(value, float):
        return Fraction(float.__repr__(value))
    import numpy

    return Fraction(numpy.format_float_scientific(value, trim="-"))


def positive(name: str, value: Number, remedy: str = "For example 1 or 0.1.") -> Fraction:
    """Read a number above zero.

    Args:
        name: What the number is, for the error.
        value: The number.
        remedy: What the error says to do.

    Raises:
        ParameterError: It is not a number, or not above zero.

    Examples:
        >>> positive("epsilon", "0.1")
        Fraction(1, 10)
        >>> positive("epsilon", 0)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: epsilon=0 is not allowed: it must be above 0. ...
    """
    number = exact(name, value)
    if number <= 0:
        raise ParameterError(name, value, "it must be above 0", remedy)
    return number


def nonnegative(name: str, value: Number) -> Fraction:
    """Read a number not below zero.

    Raises:
        ParameterError: It is not a number, or below zero.

    Examples:
        >>> nonnegative("lead", 0)
        Fraction(0, 1)
    """
    number = exact(name, value)
    if number < 0:
        raise ParameterError(name, value, "it must be 0 or above", "For example 0 or 0.1.")
    return number


def probability(name: str, value: Number) -> Fraction:
    """Read a number from 0 to 1.

    Raises:
        ParameterError: It is not a number, or not from 0 to 1.

    Examples:
        >>> probability("delta", 1e-6)
        Fraction(1, 1000000)
    """
    number = exact(name, value)
    if not 0 <= number <= 1:
        remedy = _percent(value) if 1 < number <= 100 else "For example 1e-6."
        raise ParameterError(name, value, "it must lie between 0 and 1", remedy)
    return number


def open_probability(name: str, value: Number, remedy: str = "For example 1e-6.") -> Fraction:
    """Read a number strictly between 0 and 1.

    Args:
        name: What the number is, for the error.
        value: The number.
        remedy: What the error says to do, unless a percentage was meant.

    Raises:
        ParameterError: It is not a number, or not strictly between 0 and 1.

    Examples:
        >>> open_probability("success", 95)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: success=95 is not allowed: ... If 95 % is meant, write 0.95.
    """
    number = exact(name, value)
    if not 0 < number < 1:
        remedy = _percent(value) if 1 < number <= 100 else remedy
        given = as_given(value) if isinstance(value, Fraction) else value
        raise ParameterError(name, given, "it must lie strictly between 0 and 1", remedy)
    return number


def whole(name: str, value: object, least: int = 1) -> int:
    """Read a whole number of at least `least`, of Python or of NumPy, as one of Python.

    Raises:
        ParameterError: It is no whole number, or less.

    Examples:
        >>> whole("k", 3)
        3
    """
    number = value if type(value) is int else plain_int(value)
    if number is None or number < least:
        allowed = f"it must be a whole number of at least {least}"
        raise ParameterError(name, value, allowed, f"For example {max(least, 1)}.")
    return number


def plain_int(value: object) -> int | None:
    """Return a whole number of Python or NumPy as one of Python; None: it is none.

    NumPy's would overflow where Python's are exact.

    Examples:
        >>> plain_int(3), plain_int(True), plain_int(3.0)
        (3, None, None)
    """
    if not isinstance(value, bool) and isinstance(value, Integral):
        with suppress(TypeError):  # NumPy calls spans of time whole numbers
            return operator.index(value)
    return None


def flag(name: str, value: object, remedy: str = "") -> bool:
    """Read a parameter that is on or off, of Python or of NumPy, as True or False.

    Args:
        name: What the parameter is, for the error.
        value: The parameter.
        remedy: What the error says to do.

    Raises:
        ParameterError: It is neither.

    Examples:
        >>> flag("ranked", True)
        True
    """
    numpy = sys.modules.get("numpy")
    if isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_)):
        return bool(value)
    raise ParameterError(name, value, "it must be True or False", remedy)


def plain(number: Fraction) -> str:
    """Write a number exactly and as short as possible.

    Returns:
        An integer, a decimal, or numerator/denominator.

    Examples:
        >>> plain(Fraction(1, 4)), plain(Fraction(1, 3)), plain(Fraction(3))
        ('0.25', '1/3', '3')
    """
    if number.denominator == 1:
        return str(number.numerator)
    try:
        short = float(number)
    except OverflowError:
        short = math.inf
    if math.isfinite(short) and number == decimal_of(short):
        return repr(short)
    return f"{number.numerator}/{number.denominator}"


def as_given(number: Fraction) -> float | str:
    """Return a number as errors show it: a float, or text where it is beyond them.

    Examples:
        >>> as_given(Fraction(1, 4)), as_given(Fraction(10) ** 400)
        (0.25, '1e+400')
    """
    try:
        return float(number)
    except OverflowError:
        return round_up(number)


def round_up(number: Fraction) -> str:
    """Write a number in few digits, not below it; exactly, if those are enough.

    Examples:
        >>> round_up(Fraction(1, 3)), round_up(Fraction(1, 4))
        ('0.333334', '0.25')
    """
    return _round(number, ROUND_CEILING)


def round_down(number: Fraction) -> str:
    """Write a number in few digits, not above it; exactly, if those are enough.

    Examples:
        >>> round_down(Fraction(1, 3))
        '0.333333'
    """
    return _round(number, ROUND_FLOOR)


def _form(value: object) -> str:
    """Return what else to say of what a number must be.

    It is about its type, or about its length if that is at fault.
    """
    if not isinstance(value, str | Decimal):
        return " (int, Fraction, Decimal, str or float)"
    too_long = False
    if isinstance(value, Decimal) or (value.isascii() and "_" not in value):
        with suppress(InvalidOperation):
            too_long = Decimal(value).is_finite()
    limits = f" with an exponent of at most {EXPONENT}, up or down, and fewer than {LONGEST} digits"
    return limits if too_long else ""


def _spelling(value: object) -> str:
    """Return how to write what was perhaps meant."""
    if isinstance(value, str) and len(value) < LONGEST:
        if value.rstrip().endswith("%"):
            return _percent(value.rstrip().removesuffix("%"))
        if "_" in value or not value.isascii():
            return "Write it in the digits 0 to 9, without _ between them."
        if "," in value:
            return f"Use a decimal point: {value.replace(',', '.')}."
    return "For example 1, 0.1 or 1e-6."


def _percent(value: Number) -> str:
    """Return the fraction that someone meant who gave a percentage, if that can be told."""
    try:
        return f"If {value} % is meant, write {plain(exact('', value) / 100)}."
    except ParameterError:
        return "Write a fraction, not a percentage: 0.05 for 5 %."


def _short(value: object) -> bool:
    """Return whether a number has few enough digits to be written out as a fraction.

    "1e999999999" has not.
    """
    if isinstance(value, Decimal):
        digits, exponent = len(value.as_tuple().digits), abs(value.adjusted())
    elif isinstance(value, str):
        if not value.isascii() or "_" in value:  # Python reads 1_0 as 10, and digits of all scripts
            return False
        mantissa, _, power = value.lower().partition("e")
        digits, exponent = max(map(len, mantissa.split("/"))), abs(int(power or 0))
    else:
        return True
    return exponent <= EXPONENT and digits + exponent <= LONGEST


def _round(number: Fraction, rounding: str) -> str:
    exact = _in_short(number)
    if exact is not None:
        return exact
    context = Context(prec=DIGITS, rounding=rounding)
    quotient = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return _in_short(Fraction(quotient)) or format(context.normalize(quotient), "e")


def _in_short(number: Fraction) -> str | None:
    """Return the number in few digits, if those are enough."""
    if max(abs(number.numerator), number.denominator) >= 10**LONGEST:
        return None  # Python does not write out more
    text = plain(number)
    digits = text.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")
    return text if "/" not in text and len(digits) <= DIGITS and len(text) <= 2 * DIGITS else None
