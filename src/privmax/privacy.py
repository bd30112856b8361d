"""The cost of a release, and which data sets count as neighbors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final, Literal

from privmax.errors import ParameterError
from privmax.numbers import Amount, Number, nonnegative, plain, probability
from privmax.parameters import Exact, Parameters, parameter

Neighbors = Literal["add-remove", "replace"]
"""The relation of data sets: one record more or less, or one record exchanged for another."""

ADD_REMOVE: Final = "add-remove"
REPLACE: Final = "replace"

LEAST: Final = Fraction(1, 1 << 200)
"""The least delta for which privacy losses are composed (`losses.py`)."""


def _amount(read: Callable[[str, Number], Fraction]) -> Callable[[str, Number], Amount]:
    """Read a number that is shown in six digits."""
    return lambda name, value: Amount(read(name, value))


class Privacy(Parameters, kw_only=False):
    """A privacy cost (epsilon, delta) of approximate differential privacy.

    Costs add up (basic composition), are multiplied by whole numbers, and are compared: one is at
    most another if neither of its numbers is larger. Both numbers are exact, and are shown in at
    most six digits, rounded up.

    Args:
        epsilon: 0 or above.
        delta: From 0 to 1.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> Privacy(1, 1e-6) + Privacy("0.5")
        Privacy(epsilon=1.5, delta=1e-06)
        >>> 3 * Privacy("1/3") <= Privacy(1, 1e-6)
        True
        >>> Privacy(2) <= Privacy(1, 1e-6), Privacy(1, 1e-6) <= Privacy(2)
        (False, False)
    """

    epsilon: Exact = parameter(_amount(nonnegative))
    delta: Exact = parameter(_amount(probability), default=0)

    def __repr__(self) -> str:
        return f"Privacy(epsilon={self.epsilon}, delta={self.delta})"

    def __add__(self, other: Privacy) -> Privacy:
        return Privacy(self.epsilon + other.epsilon, min(self.delta + other.delta, Fraction(1)))

    def __mul__(self, times: int) -> Privacy:
        if isinstance(times, bool) or not isinstance(times, int):
            return NotImplemented
        return Privacy(self.epsilon * times, min(self.delta * times, Fraction(1)))

    __rmul__ = __mul__

    def __le__(self, other: Privacy) -> bool:
        if not isinstance(other, Privacy):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __lt__(self, other: Privacy) -> bool:
        if not isinstance(other, Privacy):
            return NotImplemented
        return self <= other and self != other


WEAK = Privacy(10, Fraction(1, 1000))
"""Costs above either of these hardly protect anyone."""


DELTA_ADVICE = "1e-6 for up to ten thousand people, 1e-8 for up to a million"
"""The rule of docs/epsilon.md: δ times the number of people is at most 1/100."""


def describe_privacy(privacy: Privacy, number: Callable[[Fraction], str] = plain) -> str:
    """Return a cost in words; `number` writes its numbers.

    Examples:
        >>> describe_privacy(Privacy(1, "1e-6"))
        'epsilon 1, delta 1e-06'
    """
    return f"epsilon {number(privacy.epsilon)}, delta {number(privacy.delta)}"


def exact_privacy(privacy: Privacy) -> dict[str, str]:
    """Write a cost, or what is left, as JSON: exact numbers are text.

    Examples:
        >>> exact_privacy(Privacy("0.5", "1e-6"))
        {'epsilon': '0.5', 'delta': '1e-06'}
    """
    return {"epsilon": plain(privacy.epsilon), "delta": plain(privacy.delta)}


def drift(neighbors: Neighbors) -> int:
    """Return the constant c of every proof: how far two scores can drift apart between neighbors.

    Under "add-remove" all scores move the same way by at most one (counts do), so any two drift by
    at most 1. Under "replace" one may rise while the other falls: 2. Scores that are not monotone
    need "replace" constants whatever the relation.

    Examples:
        >>> drift(ADD_REMOVE), drift(REPLACE)
        (1, 2)
    """
    return 1 if neighbors == ADD_REMOVE else 2


def relation(value: str) -> Neighbors:
    """Read a neighbor relation by its name.

    Raises:
        ParameterError: There is no such relation.

    Examples:
        >>> relation("replace")
        'replace'
    """
    name: object = value
    if isinstance(name, str) and name == ADD_REMOVE:
        return ADD_REMOVE
    if isinstance(name, str) and name == REPLACE:
        return REPLACE
    raise ParameterError(
        "neighbors", value, f"it must be {ADD_REMOVE} or {REPLACE}",
        "Use add-remove if one person moves all scores in the same direction (counts), otherwise "
        "replace.",
    )  # fmt: skip
