"""Exponential mechanism: choose i with weight exp(ε·score_i / c).

Proof:      docs/proofs/exponential.md
Reference:  McSherry & Talwar, FOCS 2007
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from privmax.mechanisms.base import (
    ROUNDING,
    Joint,
    Law,
    Outcome,
    candidate,
    closed_view,
    decay,
    law_of,
    smallest_lead,
)
from privmax.noise.balls import START, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.privacy import ADD_REMOVE, Described, Neighbors, Number, Privacy, positive, relation
from privmax.profile import Level, Profile


@dataclass(frozen=True, init=False, repr=False)
class Exponential(Described):
    """Draw one candidate of a closed universe at a price of `epsilon`, whatever the scores."""

    epsilon: Fraction
    neighbors: Neighbors

    def __init__(self, *, epsilon: Number, neighbors: str = ADD_REMOVE) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window, blocks, rate = closed_view(profile, self.epsilon, self.neighbors)
        return candidate(window, weighted(lambda: block_weights(blocks, rate), coins), coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = closed_view(profile, self.epsilon, self.neighbors)
        return law_of(window, shares(lambda: block_weights(blocks, rate)))

    def joint(self, profile: Profile) -> Joint:
        return {None: self.law(profile)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        return smallest_lead(self.law, candidates=candidates, near=near, success=success)


def block_weights(blocks: Sequence[Level], rate: Fraction) -> list[arb]:
    """count · e^(−rate·depth) of each block, at the precision in force."""
    step, value, reached = decay(rate, 1), arb(1), 0
    weights = []
    for depth, count in blocks:  # from one block to the next is mostly one step: cheaper than a power for each
        value *= step if depth == reached + 1 else step ** (depth - reached)
        weights.append(value * count)
        reached = depth
    return weights


def shares(weights: Callable[[], Sequence[arb]]) -> list[float]:
    """Weights divided by their sum, rounded to floats: each is within ROUNDING of the truth."""
    bits = START
    while True:
        with precision(bits):
            values = weights()
            total = sum(values, start=arb(0))
            parts = [value / total for value in values]
            if all(part.rad() < ROUNDING / 2 for part in parts):  # false for a ball that is not finite
                return [float(part.mid()) for part in parts]
        bits *= 2
