"""Noisy maximum: the highest score plus discrete Laplace noise of scale 1/ε. The first stage (M) of
the paper.

Proof:      docs/proofs/noisy-maximum.md
Reference:  Dwork, McSherry, Nissim & Smith, TCC 2006; discrete noise: Ghosh, Roughgarden &
            Sundararajan, STOC 2009
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from privmax.deferred import np
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace
from privmax.numbers import positive
from privmax.parameters import Exact, Parameters, parameter
from privmax.privacy import Privacy
from privmax.profile import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAIL = 2.0**-46
"""Probability left out of a law where its noise is cut off, each side together."""


class NoisyMaximum(Parameters):
    """Estimate the value of the best score (not whose it is), under either relation.

    Args:
        epsilon: What it costs.

    Raises:
        ParameterError: It is not above 0.

    Examples:
        >>> from privmax import NoisyMaximum
        >>> NoisyMaximum(epsilon=1).scale(sensitivity=3)
        Fraction(3, 1)
    """

    epsilon: Exact = parameter(positive)

    def draw(self, profile: Profile, coins: Coins) -> int:
        """Return the best score with noise, which is released."""
        return profile.top() + discrete_laplace(self.scale(profile.sensitivity), coins)

    def law(self, profile: Profile) -> dict[int, float]:
        """Return the probability of each value, but for 2^−46 in the tails. Never released."""
        offsets, chances = noise_law(self.scale(profile.sensitivity))
        return {profile.top() + int(k): float(p) for k, p in zip(offsets, chances, strict=True)}

    def privacy(self) -> Privacy:
        """Return what it costs."""
        return Privacy(self.epsilon)

    def scale(self, sensitivity: int) -> Fraction:
        """Return the scale of the noise: sensitivity / ε, never ε / sensitivity."""
        return sensitivity / self.epsilon


def noise_law(scale: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the discrete Laplace distribution: values and probabilities, cut where TAIL remains.

    Examples:
        >>> values, chances = noise_law(Fraction(1, 40))
        >>> values.tolist(), float(chances[1])
        ([-1, 0, 1], 1.0)
    """
    x = float(1 / scale)
    reach = max(1, math.ceil(-math.log(TAIL) / x))
    values = np.arange(-reach, reach + 1)
    return values, math.tanh(x / 2) * np.exp(-x * np.abs(values))
