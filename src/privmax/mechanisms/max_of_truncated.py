"""Max of truncated exponentials: among the top ℓ, the largest score plus exponential noise that is
at most τ.

    κ = δ/(ℓ(1 + e^ε)),  τ = (c/ε)·ln(1/κ);  noise of scale c/ε given that it is at most τ

The third stage of the paper's mechanism in its original form: nobody τ or more below the top is
ever drawn. Alone it is private only on data with a margin: see `margin`.

Proof:      docs/proofs/max-of-truncated.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (mentioned in its acknowledgments)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from privmax.mechanisms.base import Law, Outcome, candidate, law_of
from privmax.noise.balls import ball, ceiling
from privmax.noise.coins import Coins
from privmax.noise.race import QUADRATURE_ERROR, ExponentialNoise, race, race_law
from privmax.privacy import (
    ADD_REMOVE,
    Described,
    Neighbors,
    Number,
    open_probability,
    positive,
    relation,
    swing,
    whole,
)
from privmax.profile import Window


@dataclass(frozen=True, init=False, repr=False)
class MaxOfTruncated(Described):
    """Draw among the `near` highest candidates of a window (ties at the edge broken at random)."""

    epsilon: Fraction
    delta: Fraction
    near: int
    neighbors: Neighbors

    def __init__(
        self, *, epsilon: Number, delta: Number, near: int, neighbors: str = ADD_REMOVE
    ) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", open_probability("delta", delta))
        object.__setattr__(self, "near", whole("near", near))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, window: Window, coins: Coins, sensitivity: int = 1) -> Outcome:
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        return candidate(window, race(blocks, rate, ExponentialNoise(self.cut), coins), coins)

    def law(self, window: Window, sensitivity: int = 1) -> Law:
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        chances = race_law(blocks, rate, ExponentialNoise(self.cut))
        return law_of(
            window, chances + [0.0] * (len(window.blocks()) - len(chances)), error=QUADRATURE_ERROR
        )

    def margin(self) -> int:
        """(epsilon, delta) holds on data whose rank near+1 stands at least this many records below
        the top.

        c + τ, rounded up. Ends: τ is never an integer.
        """
        c = swing(self.neighbors)
        return c + ceiling(lambda: -ball(c / self.epsilon) * self.cut().log())

    def cut(self) -> arb:
        """κ = e^(−ετ/c): how rare noise above τ would have been."""
        return ball(self.delta / self.near) / (1 + ball(self.epsilon).exp())

    def _rate(self, sensitivity: int) -> Fraction:
        return self.epsilon / (swing(self.neighbors) * whole("sensitivity", sensitivity))
