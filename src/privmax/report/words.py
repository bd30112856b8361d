"""Guarantees in words: factors and chances as people read them, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

from privmax.privacy import REPLACE

_FINEST = 6
"""Places behind the point that e^ε is shown with at most."""


def change_words(neighbors: str) -> str:
    """Return what neighbors have done with one individual."""
    return "exchanged for another" if neighbors == REPLACE else "left out"


def times(epsilon: Fraction) -> str:
    """Return e^ε in few digits, rounded up; a large one as a power of ten, such as 1e44."""
    if epsilon > 15:
        return f"1e{math.ceil(min(epsilon, Fraction(10**9)) / Fraction(math.log(10)))}"
    return _few_digits(math.exp(epsilon))


def raised_chance(epsilon: Fraction, delta: Fraction) -> str | None:
    """Return to how many in 100 a chance of 1 in 100 may rise, in few digits, rounded up.

    That is 100 · (e^ε / 100 + δ). None: it may rise to all of them, or nearly.
    """
    most = math.exp(min(epsilon, Fraction(10))) + 100 * float(delta)
    return _few_digits(most) if most < 99 else None


def _few_digits(factor: float) -> str:
    """Return a factor above 1, rounded up."""
    above = factor - 1 if factor < 1.1 else factor / 10
    places = min(max(0, 1 - math.floor(math.log10(max(above, 1e-9)))), _FINEST)
    steps = max(
        math.ceil(factor * 10**places), 10**places + 1
    )  # it is above 1, also where a float is not
    return f"{steps / 10**places:,.{places}f}"


def one_in(delta: Fraction) -> str:
    """Return in how many a probability above 0 is one chance, rounded down.

    Examples:
        >>> one_in(Fraction("1e-6")), one_in(Fraction("3e-6")), one_in(Fraction("1e-50"))
        ('a million', '333,333', '1e50')
    """
    many = int(1 / delta)
    digits = len(str(many)) - 1
    words = {6: "a million", 9: "a billion", 12: "a trillion"}
    if many == 10**digits and digits in words:
        return words[digits]
    return f"{many:,}" if digits < 10 else f"1e{digits}"
