"""Max of Laplaces: add Laplace noise of scale c/ε to every score and release whose noisy score is
the largest.

Noise is real-valued: of each block of equal candidates only the largest noise matters, and its
digits are looked at only as far as the winner is in doubt.

Proof:      docs/proofs/max-of-laplaces.md
Reference:  Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014, "report noisy
            max"
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privmax.mechanisms.base import (
    Joint,
    Law,
    Outcome,
    candidate,
    clip_width,
    closed_size,
    law_of,
    smallest_lead,
)
from privmax.noise.coins import Coins
from privmax.noise.race import LAPLACE, QUADRATURE_ERROR, race, race_law
from privmax.privacy import (
    ADD_REMOVE,
    Described,
    Neighbors,
    Number,
    Privacy,
    positive,
    relation,
    swing,
)
from privmax.profile import Level, Profile, Window

_DEEPER = 6
"""Laplace noise favours the floor this much more than exponential weights do: the section on the
clip.
"""


@dataclass(frozen=True, init=False, repr=False)
class MaxOfLaplaces(Described):
    """Draw one candidate of a closed universe at a price of `epsilon`: the noisy maximum of
    textbooks.
    """

    epsilon: Fraction
    neighbors: Neighbors

    def __init__(self, *, epsilon: Number, neighbors: str = ADD_REMOVE) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window, blocks, rate = self._view(profile)
        return candidate(window, race(blocks, rate, LAPLACE, coins), coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = self._view(profile)
        return law_of(window, race_law(blocks, rate, LAPLACE), error=QUADRATURE_ERROR)

    def joint(self, profile: Profile) -> Joint:
        return {None: self.law(profile)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        return smallest_lead(self.law, candidates=candidates, near=near, success=success)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        """A closed profile, clipped a little deeper than `closed_view` does, all its blocks, and
        the rate.
        """
        scale = swing(self.neighbors) * profile.sensitivity / self.epsilon
        size = closed_size(profile)
        window = profile.window(clip_width(scale, Fraction(_DEEPER * size)))
        return window, window.first(size), 1 / scale
