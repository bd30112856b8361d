"""Restricted exponential mechanism: choose i among the top ℓ with weight exp(ε·score_i / c).

The third stage (A) of the paper's mechanism. Alone it is private only on data with a margin: see
`margin`.

Proof:      docs/proofs/restricted-exponential.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014, Lemma "restricted EM" (corrected)
"""

from __future__ import annotations

from fractions import Fraction

from privmax.mechanisms.contract import (
    Law,
    Outcome,
    Relation,
    draw_candidate,
    law_of,
    read_relation,
)
from privmax.mechanisms.weights import block_weights, shares
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.numbers import Number, open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import ADD_REMOVE, drift
from privmax.profile import Window


class RestrictedExponential(Parameters):
    """Draw among the `near` highest candidates of a window (ties at the edge broken at random).

    Args:
        epsilon: That of the draw.
        near: How many compete; public.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import RestrictedExponential
        >>> RestrictedExponential(epsilon=1, near=10).margin(delta=1e-6)
        18
    """

    epsilon: Exact = parameter(positive)
    near: Whole = parameter(whole)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    def draw(self, window: Window, coins: Coins, sensitivity: int = 1) -> Outcome:
        """Choose one candidate of the window."""
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        return draw_candidate(window, weighted(lambda: block_weights(blocks, rate), coins), coins)

    def law(self, window: Window, sensitivity: int = 1) -> Law:
        """Return the distribution of `draw`. Never released."""
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        chances = shares(lambda: block_weights(blocks, rate))
        return law_of(window, chances + [0.0] * (len(window.blocks()) - len(chances)))

    def margin(self, delta: Number) -> int:
        """Return how far below the top rank near+1 must stand for (epsilon, delta) to hold.

        c + (c/ε)·ln(near/δ), rounded up.
        """
        c = drift(self.neighbors)
        return c + max(
            0, ceiling_log(c / self.epsilon, self.near / open_probability("delta", delta))
        )

    def _rate(self, sensitivity: int) -> Fraction:
        return self.epsilon / (drift(self.neighbors) * whole("sensitivity", sensitivity))
