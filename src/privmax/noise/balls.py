"""Real numbers known to any precision: thin wrappers over python-flint's ball arithmetic.

A ball is an interval that certainly holds the number. Every function here answers only when the
ball decides the answer, and otherwise works again at twice the precision, so a result is either
exact or not returned. Each such loop ends because the number in question is known not to be a
boundary (the reason is at each call).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx, fmpq

START = 96
"""First working precision in bits; doubled until a question is decided."""


def ball(number: Fraction | int) -> arb:
    """Enclose a rational number in a ball at the working precision.

    Examples:
        >>> ball(Fraction(1, 4)) == 0.25
        True
    """
    return arb(fmpq(number.numerator, number.denominator))


class precision:  # used as a statement: with precision(96): …
    """Work at `bits` of precision. A ball made at any precision is valid at every other.

    Examples:
        >>> with precision(256):
        ...     ctx.prec
        256
    """

    __slots__ = ("_before", "_bits")

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __enter__(self) -> None:
        self._before = ctx.prec
        ctx.prec = self._bits

    def __exit__(self, *_: object) -> None:
        ctx.prec = self._before


def below(number: arb) -> int:
    """Return the largest integer not above the whole ball.

    Examples:
        >>> below(ball(Fraction(7, 2)))
        3
    """
    return _integer(number.lower().floor())


def above(number: arb) -> int:
    """Return the smallest integer not below the whole ball.

    Examples:
        >>> above(ball(Fraction(7, 2)))
        4
    """
    return _integer(number.upper().ceil())


def ceiling(number: Callable[[], arb]) -> int:
    """Return the exact ceiling of a real.

    Args:
        number: Computes a real that is not an integer, or is an exactly representable one, at the
            precision in force.

    Examples:
        >>> ceiling(lambda: arb(2).sqrt())
        2
    """
    bits = START
    while True:  # ends by what the number must be: the ball leaves one ceiling
        with precision(bits):
            value = number()
            low, high = above(value.lower()), above(value)
        if low == high:
            return low
        bits *= 2


def ceiling_log(scale: Fraction, argument: Fraction) -> int:
    """Return ⌈scale · ln(argument)⌉ for scale > 0 and argument > 0.

    Ends: ln of a rational other than 1 is irrational (Lindemann), and at 1 the ball is exactly 0.

    Examples:
        >>> ceiling_log(Fraction(1), Fraction(10)), ceiling_log(Fraction(10), Fraction(1))
        (3, 0)
    """
    if argument == 1:
        return 0
    return ceiling(lambda: ball(scale) * ball(argument).log())


def _integer(number: arb) -> int:
    """Return an exactly represented integer.

    Anything else is a number this library never asks about.
    """
    value = number.unique_fmpz()
    if value is None:
        raise ArithmeticError("a bound is not finite")
    return int(value)
