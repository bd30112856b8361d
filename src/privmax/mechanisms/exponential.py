"""Exponential mechanism: choose i with weight exp(ε·score_i / c); for the best k, again without
those chosen before.

Proof:      docs/proofs/exponential.md
Reference:  McSherry & Talwar, FOCS 2007
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from flint import arb

from privmax.composition import per_round
from privmax.mechanisms.base import (
    ROUNDING,
    Joint,
    Law,
    Outcome,
    candidate,
    closed_view,
    decay,
    law_of,
    rising_lead,
)
from privmax.mechanisms.peeling import (
    Sequences,
    all_best,
    composition_delta,
    fitting,
    peel,
    sequences,
    single,
)
from privmax.noise.balls import START, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.privacy import (
    ADD_REMOVE,
    Described,
    Neighbors,
    Number,
    Privacy,
    positive,
    relation,
    whole,
)
from privmax.profile import Level, Profile, Window


@dataclass(frozen=True, init=False, repr=False)
class Exponential(Described):
    """Draw one candidate of a closed universe, or the best `k`, at a price of `epsilon` in all,
    whatever the scores.

    delta   only with k > 1: what composing the draws may use
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors
    k: int

    def __init__(
        self, *, epsilon: Number, delta: Number = 0, neighbors: str = ADD_REMOVE, k: int = 1
    ) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "k", whole("k", k))
        object.__setattr__(self, "delta", composition_delta(delta, k))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        single(self.k)
        window, blocks, rate = self._view(profile)
        return candidate(window, weighted(lambda: block_weights(blocks, rate), coins), coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks, rate = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return weighted(lambda: block_weights(left, rate), coins)

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        """With k > 1: of the first item."""
        window, blocks, rate = self._view(profile)
        return law_of(window, block_shares(rate, blocks), relative=ROUNDING)

    def joint(self, profile: Profile) -> Joint:
        single(self.k)
        return {None: self.law(profile)}

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks, rate = self._view(profile)
        return {
            None: sequences(window, blocks, self.k, partial(block_shares, rate), relative=ROUNDING)
        }

    def privacy(self) -> Privacy:
        """Without delta where basic composition is as good."""
        return Privacy(self.epsilon, self.delta if self._epsilon() > self.epsilon / self.k else 0)

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        def best(profile: Profile) -> float:
            _, blocks, rate = self._view(profile)
            return all_best(blocks, self.k, partial(block_shares, rate))

        return rising_lead(best, candidates=candidates, near=near, success=success, k=self.k)

    def _epsilon(self) -> Fraction:
        """Of each draw."""
        return per_round(self.epsilon, self.delta, self.k, ranged=True)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        return closed_view(profile, self._epsilon(), self.neighbors, fitting(self.k, profile))


def block_weights(blocks: Sequence[Level], rate: Fraction) -> list[arb]:
    """count · e^(−rate·depth) of each block, at the precision in force."""
    step, value, reached = decay(rate, 1), arb(1), 0
    weights = []
    for (
        depth,
        count,
    ) in blocks:  # from one block to the next is mostly one step: cheaper than a power for each
        value *= step if depth == reached + 1 else step ** (depth - reached)
        weights.append(value * count)
        reached = depth
    return weights


def block_shares(rate: Fraction, blocks: Sequence[Level]) -> list[float]:
    """Probability of each block."""
    return shares(lambda: block_weights(blocks, rate))


def shares(weights: Callable[[], Sequence[arb]]) -> list[float]:
    """Weights divided by their sum, rounded to floats: each is within ROUNDING of itself, and 0
    only where its weight is, or where it is too small for a float.

    Ends: a weight is 0 exactly, or a sum of positive terms, whose relative radius shrinks with the
    precision.
    """
    bits = START
    while True:
        with precision(bits):
            values = weights()
            total = sum(values, start=arb(0))
            parts = [value / total for value in values]
            # false for a ball that is not finite
            if all(part.rad() <= abs(part.mid()) * (ROUNDING / 2) for part in parts):
                return [float(part.mid()) for part in parts]
        bits *= 2


def rounded(chances: Callable[[], Sequence[arb]]) -> list[float]:
    """Probabilities rounded to floats: each is within ROUNDING of the truth, which says little of
    one near 0.
    """
    bits = START
    while True:
        with precision(bits):
            values = chances()
            if all(
                value.rad() < ROUNDING / 2 for value in values
            ):  # false for a ball that is not finite
                return [float(value.mid()) for value in values]
        bits *= 2
