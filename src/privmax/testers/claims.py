"""A claim about a mechanism, and the excess of two probabilities of one event over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privmax.errors import ParameterError
from privmax.numbers import Number, nonnegative, plain, probability

LARGEST = 700
"""ε or ρ of a claim: e to the power of more is no float, and no sample could break it."""

_ORDERS = tuple(1 + 2 ** (power / 4) for power in range(-24, 29))
"""Rényi orders that are tried, from 1.016 to 129."""


@dataclass(frozen=True)
class Claim:
    """(ε, δ)-differential privacy; or, with `rho` in place of ε, ρ-zCDP with the same δ.

    Attributes:
        epsilon: The claimed ε; None where `rho` is claimed.
        delta: The claimed δ.
        rho: The claimed ρ; None where `epsilon` is claimed.

    Examples:
        >>> Claim.of(epsilon=1, delta="1e-6"), Claim.of(rho="0.5")
        (epsilon 1, delta 1e-06, rho 0.5)
        >>> Claim.of(epsilon=0).excess(0.75, 0.5)
        0.25
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None = None

    @classmethod
    def of(
        cls, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None
    ) -> Claim:
        """Read a claim: either `epsilon` or `rho`, and `delta`.

        Args:
            epsilon: The claimed ε.
            delta: The claimed δ.
            rho: The claimed ρ.

        Raises:
            ParameterError: Both or neither are given, or a number is out of bounds.
        """
        if (epsilon is None) == (rho is None):
            raise ParameterError(
                "epsilon", epsilon, "a claim has either epsilon or rho", "Give one of the two."
            )
        main = "epsilon" if rho is None else "rho"
        value: Any = epsilon if rho is None else rho
        bound = nonnegative(main, value)
        if bound > LARGEST:
            raise ParameterError(
                main, value, f"it must be at most {LARGEST}: beyond it everything is allowed"
            )
        cost = probability("delta", delta)
        return cls(bound, cost) if rho is None else cls(None, cost, bound)

    def __repr__(self) -> str:
        main = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        parts = [(name, value) for name, value in (main, ("delta", self.delta)) if value]
        return ", ".join(f"{name} {plain(value)}" for name, value in parts if value) or "epsilon 0"

    def excess(self, here: float, there: float) -> float:
        """Return how far an event with these two probabilities is beyond the claim.

        Above 0, it breaks the claim.

        With ε this is the δ that is needed beyond the claimed one, P − e^ε·Q − δ. With ρ it is the
        ρ that is needed beyond the claimed one: by data processing, the Rényi divergence of the
        event alone is at most that of all outcomes, and δ is first taken from both probabilities as
        the definition of approximate zCDP allows it.

        Args:
            here: The probability on one data set, or a lower bound.
            there: That on the neighbor, or an upper bound.
        """
        delta = float(self.delta)
        if self.epsilon is not None:
            return here - math.exp(self.epsilon) * there - delta
        assert self.rho is not None
        if delta >= 1:
            return -float(self.rho)
        p, q = (here - delta) / (1 - delta), there / (1 - delta)
        return (_divergence(p, q) if p > q else 0.0) - float(self.rho)

    def least_needed(self, here: float, there: float) -> float:
        """Return the least ε, or ρ, that such an event leaves possible at the claimed δ.

        Args:
            here: As in `excess`.
            there: As in `excess`.

        Examples:
            >>> Claim.of(epsilon=1).least_needed(0.5, 0.5)
            0.0
        """
        if self.epsilon is None:
            return self.excess(here, there) + float(self.rho or 0)
        left = here - float(self.delta)
        if left <= there:
            return 0.0
        return math.log(left / there) if there > 0 else math.inf


def _divergence(p: float, q: float) -> float:
    """Return the largest D_α(p ‖ q) / α of two coins over some orders α."""
    if q <= 0:
        return math.inf
    return max(_renyi(p, q, order) / order for order in _ORDERS)


def _renyi(p: float, q: float, order: float) -> float:
    """Return the Rényi divergence of a coin with chance p from one with chance q."""
    heads = order * math.log(p) + (1 - order) * math.log(q)
    if p >= 1:
        return heads / (order - 1)
    tails = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
    top = max(heads, tails)
    return (top + math.log(math.exp(heads - top) + math.exp(tails - top))) / (order - 1)
