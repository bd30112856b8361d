"""One key per individual: release a key of n individuals with the largest chance the cost allows.

    π(0) = 0,  π(n+1) = min{ e^ε·π(n) + δ,  1 − e^(−ε)·(1 − π(n) − δ),  1 }

Every individual counts for one of its keys, chosen by a rule that looks at its own keys alone. So
one individual moves one count by 1, and each key is decided by itself.

Proof:      docs/proofs/keys-rounds.md, "One key each"
Reference:  Desfontaines, Voss, Gipson & Mandayam, PoPETs 2022
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.mechanisms.gap_test import GapTest
from privmax.noise.bulk import bernoulli_real
from privmax.noise.coins import Coins
from privmax.numbers import open_probability, positive
from privmax.parameters import Exact, Parameters, parameter
from privmax.privacy import Privacy

Integers = NDArray[np.int64]


class SingleCounts(Protocol):
    """Counts to which each individual adds a bounded number of keys."""

    def count_chosen(self, most: int) -> Integers:
        """Return how many individuals each key has if each counts for `most` of its keys."""
        ...


class OneKeyEach(Parameters):
    """Release keys by how many individuals have chosen each.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.

    Examples:
        >>> rule = OneKeyEach(epsilon=1, delta=1e-6)
        >>> rule.test.certain()
        29
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(open_probability)

    @property
    def test(self) -> GapTest:
        """The test that has the same chances, for a lead of n."""
        return GapTest(epsilon=self.epsilon, delta=self.delta)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def draw(self, source: SingleCounts, coins: Coins) -> Integers:
        """Draw the numbers of the keys that are released, in order."""
        test, counts = self.test, source.count_chosen(1)
        released = counts >= test.certain()
        for count in np.unique(counts[(counts > 0) & ~released]).tolist():
            places = np.flatnonzero(counts == count)
            released[places] = bernoulli_real(partial(test.chance, count), places.size, coins)
        return np.flatnonzero(released)
