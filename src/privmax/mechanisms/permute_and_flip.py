"""Permute-and-flip: go through the candidates in random order, accept i with probability
exp(−ε·depth_i / c).

Equivalently each candidate arrives at a uniform time and survives with that probability, and the
first survivor wins; or each gets exponential noise of scale c/ε, and the largest noisy score wins.
Blocks of equal candidates race.

Proof:      docs/proofs/permute-and-flip.md
Reference:  McKenna & Sheldon, NeurIPS 2020
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from privmax.composition import per_round
from privmax.mechanisms.base import Joint, Law, Outcome, candidate, closed_view, law_of, rising_lead
from privmax.mechanisms.peeling import (
    Sequences,
    all_best,
    composition_delta,
    fitting,
    peel,
    sequences,
    single,
)
from privmax.noise.coins import Coins
from privmax.noise.race import EXPONENTIAL, QUADRATURE_ERROR, race, race_law
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
class PermuteAndFlip(Described):
    """Draw one candidate of a closed universe, or the best `k`, at a price of `epsilon` in all.

    One draw is never worse than that of `Exponential`; many compose less well.

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
        return candidate(window, race(blocks, rate, EXPONENTIAL, coins), coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks, rate = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            running, blocks = _running(left)
            return running[race(blocks, rate, EXPONENTIAL, coins)]

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        """With k > 1: of the first item."""
        window, blocks, rate = self._view(profile)
        return law_of(window, race_law(blocks, rate, EXPONENTIAL), error=QUADRATURE_ERROR)

    def joint(self, profile: Profile) -> Joint:
        single(self.k)
        return {None: self.law(profile)}

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks, rate = self._view(profile)
        return {
            None: sequences(window, blocks, self.k, partial(_chances, rate), error=QUADRATURE_ERROR)
        }

    def privacy(self) -> Privacy:
        """Without delta where basic composition is as good."""
        return Privacy(self.epsilon, self.delta if self._epsilon() > self.epsilon / self.k else 0)

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        def best(profile: Profile) -> float:
            _, blocks, rate = self._view(profile)
            return all_best(blocks, self.k, partial(_chances, rate))

        return rising_lead(best, candidates=candidates, near=near, success=success, k=self.k)

    def _epsilon(self) -> Fraction:
        """Of each draw."""
        return per_round(self.epsilon, self.delta, self.k, ranged=False)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        return closed_view(profile, self._epsilon(), self.neighbors, fitting(self.k, profile))


def _running(left: Sequence[Level]) -> tuple[list[int], list[Level]]:
    """Which blocks still have somebody, and those blocks with depths from the best of them."""
    running = [block for block, (_, count) in enumerate(left) if count]
    top = left[running[0]][0]
    return running, [(left[block][0] - top, left[block][1]) for block in running]


def _chances(rate: Fraction, left: Sequence[Level]) -> list[float]:
    """The law of one draw from what is left of the blocks."""
    running, blocks = _running(left)
    chances = [0.0] * len(left)
    for block, chance in zip(running, race_law(blocks, rate, EXPONENTIAL), strict=True):
        chances[block] = chance
    return chances
