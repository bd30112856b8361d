"""Restricted exponential mechanism: choose i among the top ℓ with weight exp(ε·score_i / c).

The third stage (A) of the paper's mechanism. Alone it is private only on data with a margin: see
`margin`.

Proof:      docs/proofs/restricted-exponential.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014, Lemma "restricted EM" (corrected)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privmax.mechanisms.base import Law, Outcome, candidate, law_of
from privmax.mechanisms.exponential import block_weights, shares
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
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
class RestrictedExponential(Described):
    """Draw among the `near` highest candidates of a window (ties at the edge broken at random)."""

    epsilon: Fraction
    near: int
    neighbors: Neighbors

    def __init__(self, *, epsilon: Number, near: int, neighbors: str = ADD_REMOVE) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "near", whole("near", near))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, window: Window, coins: Coins, sensitivity: int = 1) -> Outcome:
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        return candidate(window, weighted(lambda: block_weights(blocks, rate), coins), coins)

    def law(self, window: Window, sensitivity: int = 1) -> Law:
        blocks, rate = window.first(self.near), self._rate(sensitivity)
        chances = shares(lambda: block_weights(blocks, rate))
        return law_of(window, chances + [0.0] * (len(window.blocks()) - len(chances)))

    def margin(self, delta: Number) -> int:
        """(epsilon, delta) holds on data whose rank near+1 stands at least this many records below
        the top.

        c + (c/ε)·ln(near/δ), rounded up.
        """
        c = swing(self.neighbors)
        return c + max(
            0, ceiling_log(c / self.epsilon, self.near / open_probability("delta", delta))
        )

    def _rate(self, sensitivity: int) -> Fraction:
        return self.epsilon / (swing(self.neighbors) * whole("sensitivity", sensitivity))
