"""Noisy maximum: the highest score plus discrete Laplace noise of scale 1/ε. The first stage (M) of
the paper.

Proof:      docs/proofs/noisy-maximum.md
Reference:  Dwork, McSherry, Nissim & Smith, TCC 2006; discrete noise: Ghosh, Roughgarden &
            Sundararajan, STOC 2009
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace
from privmax.privacy import Described, Number, Privacy, positive
from privmax.profile import Profile

TAIL = 2.0**-46
"""Probability left out of a law where its noise is cut off, each side together."""


@dataclass(frozen=True, init=False, repr=False)
class NoisyMaximum(Described):
    """Estimate the value of the best score (not whose it is) at a price of `epsilon`, under either
    relation.
    """

    epsilon: Fraction

    def __init__(self, *, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))

    def draw(self, profile: Profile, coins: Coins) -> int:
        return profile.top() + discrete_laplace(self.scale(profile.sensitivity), coins)

    def law(self, profile: Profile) -> dict[int, float]:
        """Probability of each value, but for a total of 2^−46 in the far tails. Never released."""
        offsets, chances = noise_law(self.scale(profile.sensitivity))
        return {profile.top() + int(k): float(p) for k, p in zip(offsets, chances, strict=True)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def scale(self, sensitivity: int) -> Fraction:
        """The scale of the noise: sensitivity / ε, never ε / sensitivity."""
        return sensitivity / self.epsilon


def noise_law(scale: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The discrete Laplace distribution: values and probabilities, cut where TAIL remains."""
    x = float(1 / scale)
    reach = max(1, math.ceil(-math.log(TAIL) / x))
    values = np.arange(-reach, reach + 1)
    return values, math.tanh(x / 2) * np.exp(-x * np.abs(values))
