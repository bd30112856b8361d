"""What a release costs, and which data sets count as neighbours. All numbers here are exact
rationals.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, Final, Literal

from privmax.errors import ParameterError

Number = int | float | str | Decimal | Fraction
"""What a parameter may be given as. A float means the decimal that it prints as: 0.1 is one tenth,
as "0.1" is.
"""

Neighbors = Literal["add-remove", "replace"]
ADD_REMOVE: Final = "add-remove"
REPLACE: Final = "replace"


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


class Described:
    """A dataclass whose `repr` shows its public parameters exactly and in short."""

    def __repr__(self) -> str:
        parts = []
        for spec in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, spec.name)
            parts.append(f"{spec.name}={_shown(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Amount(Fraction):
    """An exact number that is shown in at most six digits, rounded up; f-strings take it as they
    take a float.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return rounded_up(self)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        if re.fullmatch(r"\d*|.?[<>^]\d*", spec):
            return format(str(self), f">{spec}" if spec.isdigit() else spec)
        try:
            return format(float(self), spec)
        except OverflowError:
            return format(Decimal(rounded_up(self)), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (self.numerator, self.denominator)


@dataclass(frozen=True, init=False, repr=False)
class Privacy:
    """A price (epsilon, delta) of approximate differential privacy. Prices add (basic composition).

    Both numbers are exact, and are shown in at most six digits, rounded up.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", Amount(nonnegative("epsilon", epsilon)))
        object.__setattr__(self, "delta", Amount(probability("delta", delta)))

    def __repr__(self) -> str:
        return f"Privacy(epsilon={self.epsilon}, delta={self.delta})"

    def __add__(self, other: Privacy) -> Privacy:
        return Privacy(self.epsilon + other.epsilon, min(self.delta + other.delta, Fraction(1)))


def swing(neighbors: Neighbors) -> int:
    """The constant c of every proof: how far two scores can drift apart between neighbours.

    Under "add-remove" all scores move the same way by at most one (counts do), so any two drift by
    at most 1. Under "replace" one may rise while the other falls: 2. Scores that are not monotone
    need "replace" constants whatever the relation.
    """
    return 1 if neighbors == ADD_REMOVE else 2


def exact(name: str, value: Number) -> Fraction:
    """`value` as the rational it is, a float as the decimal that it prints as, or a ParameterError
    naming `name`.
    """
    try:
        if is_float(value):
            return printed(value)
        if (
            not isinstance(value, bool)
            and isinstance(value, (Rational, str, Decimal))
            and _short(value)
        ):
            number = Fraction(value)
            return Fraction(
                int(number.numerator), int(number.denominator)
            )  # NumPy's integers are Rational too
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise ParameterError(name, value, f"it must be a finite number{_form(value)}", _spelling(value))


def is_float(value: object) -> bool:
    """Whether it is a float, Python's or one of NumPy's."""
    return isinstance(value, float) or (
        isinstance(value, Real) and not isinstance(value, Rational) and hasattr(value, "dtype")
    )


def printed(value: Any) -> Fraction:
    """The decimal that a finite float prints as: the shortest one that is read back as the same
    float of its type.
    """
    if isinstance(value, float):
        return Fraction(float.__repr__(value))
    import numpy

    return Fraction(numpy.format_float_scientific(value, trim="-"))


def positive(name: str, value: Number, remedy: str = 'For example 1 or "0.1".') -> Fraction:
    """An exact number above zero."""
    number = exact(name, value)
    if number <= 0:
        raise ParameterError(name, value, "it must be above 0", remedy)
    return number


def nonnegative(name: str, value: Number) -> Fraction:
    """An exact number not below zero."""
    number = exact(name, value)
    if number < 0:
        raise ParameterError(name, value, "it must be 0 or above", 'For example 0 or "0.1".')
    return number


def probability(name: str, value: Number) -> Fraction:
    """An exact number from 0 to 1."""
    number = exact(name, value)
    if not 0 <= number <= 1:
        remedy = _percent(value) if 1 < number <= 100 else "For example 1e-6."
        raise ParameterError(name, value, "it must lie between 0 and 1", remedy)
    return number


def open_probability(name: str, value: Number, remedy: str = "For example 1e-6.") -> Fraction:
    """An exact number strictly between 0 and 1."""
    number = exact(name, value)
    if not 0 < number < 1:
        remedy = _percent(value) if 1 < number <= 100 else remedy
        raise ParameterError(name, value, "it must lie strictly between 0 and 1", remedy)
    return number


def whole(name: str, value: object, least: int = 1) -> int:
    """An integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        allowed = f"it must be a whole number of at least {least}"
        raise ParameterError(name, value, allowed, f"For example {max(least, 1)}.")
    return value


def relation(value: str) -> Neighbors:
    """A neighbour relation by name."""
    if value == ADD_REMOVE:
        return ADD_REMOVE
    if value == REPLACE:
        return REPLACE
    raise ParameterError(
        "neighbors", value, f'it must be "{ADD_REMOVE}" or "{REPLACE}"',
        "Use add-remove when one person adds to every score the same way (counts), replace "
        "otherwise.",
    )  # fmt: skip


def _form(value: object) -> str:
    """What else a number must be: what to say of its type, or of its length if that is at fault."""
    if not isinstance(value, str | Decimal):
        return " (int, Fraction, Decimal, str or float)"
    too_long = False
    if isinstance(value, Decimal) or (value.isascii() and "_" not in value):
        with suppress(InvalidOperation):
            too_long = Decimal(value).is_finite()
    limits = f" with an exponent of at most {EXPONENT}, up or down, and fewer than {LONGEST} digits"
    return limits if too_long else ""


def _spelling(value: object) -> str:
    """How to write what was perhaps meant."""
    if isinstance(value, str) and len(value) < LONGEST:
        if value.rstrip().endswith("%"):
            return _percent(value.rstrip().removesuffix("%"))
        if "_" in value or not value.isascii():
            return "Write it in the digits 0 to 9, without _ between them."
        if "," in value:
            return f"The decimal point is a point: {value.replace(',', '.')}."
    return 'For example 1, "0.1" or 1e-6.'


def _percent(value: Number) -> str:
    """The fraction that somebody meant who gave a percentage, if that can be told."""
    try:
        return f"If {value} % is meant, write {plain(exact('', value) / 100)}."
    except ParameterError:
        return "Write a fraction, not a percentage: 0.05 for 5 %."


def _short(value: object) -> bool:
    """Whether a number has few enough digits for a fraction: "1e999999999" has not."""
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


def _shown(value: object) -> str:
    if isinstance(value, Fraction):
        return plain(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return repr(value)


def plain(number: Fraction) -> str:
    """Shortest text that is exactly `number`: an integer, a decimal, or numerator/denominator."""
    if number.denominator == 1:
        return str(number.numerator)
    try:
        short = float(number)
    except OverflowError:
        short = math.inf
    if math.isfinite(short) and number == printed(short):
        return repr(short)
    return f"{number.numerator}/{number.denominator}"


def rounded_up(number: Fraction) -> str:
    """A number in few digits, not below it; exactly, if those are enough."""
    return _rounded(number, ROUND_CEILING)


def rounded_down(number: Fraction) -> str:
    """A number in few digits, not above it; exactly, if those are enough."""
    return _rounded(number, ROUND_FLOOR)


def _rounded(number: Fraction, rounding: str) -> str:
    exact = _in_short(number)
    if exact is not None:
        return exact
    context = Context(prec=DIGITS, rounding=rounding)
    rounded = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return _in_short(Fraction(rounded)) or format(context.normalize(rounded), "e")


def _in_short(number: Fraction) -> str | None:
    """The number in few digits, if those are enough."""
    if max(abs(number.numerator), number.denominator) >= 10**LONGEST:
        return None  # Python does not write out more
    text = plain(number)
    digits = text.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")
    return text if "/" not in text and len(digits) <= DIGITS and len(text) <= 2 * DIGITS else None


WEAK = Privacy(10, Fraction(1, 1000))
"""Prices above either of these hardly protect anybody."""
