"""Max of truncated exponentials: among the top ℓ, the largest score plus exponential noise that is
at most τ.

    κ = δ/(ℓ(1 + e^ε)),  τ = (c/ε)·ln(1/κ);  noise of scale c/ε given that it is at most τ

The third stage of the paper's mechanism in its original form: nothing τ or more below the top is
ever drawn. Alone it is private only on data with a margin: see `margin`.

Proof:      docs/proofs/max-of-truncated.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (mentioned in its acknowledgments)
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from privmax.mechanisms.contract import (
    Law,
    Outcome,
    Relation,
    draw_candidate,
    law_of,
    read_relation,
)
from privmax.noise.balls import ball, ceiling
from privmax.noise.coins import Coins
from privmax.noise.race import QUADRATURE_ERROR, ExponentialNoise, race_law, run_race
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import ADD_REMOVE, drift
from privmax.profile import Window


class MaxOfTruncated(Parameters):
    """Draw among the `near` highest candidates of a window (ties at the edge broken at random).

    Args:
        epsilon: That of the draw.
        delta: Above 0.
        near: How many compete; public.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import MaxOfTruncated
        >>> MaxOfTruncated(epsilon=1, delta=1e-6, near=10).margin()
        19
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(open_probability)
    near: Whole = parameter(whole)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    def draw(self, window: Window, coins: Coins, sensitivity: int = 1) -> Outcome:
        """Choose one candidate of the window."""
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        return draw_candidate(
            window, run_race(blocks, rate, ExponentialNoise(self.cut), coins), coins
        )

    def law(self, window: Window, sensitivity: int = 1) -> Law:
        """Return the distribution of `draw`. Never released."""
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        chances = race_law(blocks, rate, ExponentialNoise(self.cut))
        return law_of(
            window, chances + [0.0] * (len(window.blocks()) - len(chances)), error=QUADRATURE_ERROR
        )

    def margin(self) -> int:
        """Return how far below the top rank near+1 must stand for (epsilon, delta) to hold.

        c + τ, rounded up. Ends: τ is never an integer.
        """
        c = drift(self.neighbors)
        return c + ceiling(lambda: -ball(c / self.epsilon) * self.cut().log())

    def cut(self) -> arb:
        """Return κ = e^(−ετ/c): how rare noise above τ would have been."""
        return rarity(self.epsilon, self.delta, self.near)

    def _rate(self, sensitivity: int) -> Fraction:
        return self.epsilon / (drift(self.neighbors) * whole("sensitivity", sensitivity))


def rarity(epsilon: Fraction, delta: Fraction, near: int) -> arb:
    """Return κ = δ/(ℓ(1 + e^ε)) at the precision in force.

    Examples:
        >>> rarity(Fraction(0), Fraction(1, 2), 1) == 0.25
        True
    """
    return ball(delta / near) / (1 + ball(epsilon).exp())
