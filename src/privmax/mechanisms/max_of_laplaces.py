"""Max of Laplaces: add Laplace noise of scale c/ε to every score and release whose noisy score is
the largest.

Noise is real-valued: of each block of equal candidates only the largest noise matters, and its
digits are looked at only as far as the winner is in doubt.

Proof:      docs/proofs/max-of-laplaces.md
Reference:  Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014, "report noisy
            max"
"""

from __future__ import annotations

from fractions import Fraction

from privmax.mechanisms.contract import (
    Law,
    Mechanism,
    Outcome,
    Relation,
    closed_size,
    draw_candidate,
    law_of,
    read_relation,
)
from privmax.mechanisms.weights import clip_width
from privmax.noise.coins import Coins
from privmax.noise.race import LAPLACE, QUADRATURE_ERROR, race_law, run_race
from privmax.numbers import positive
from privmax.parameters import Exact, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Level, Profile, Window

_DEEPER = 6
"""Laplace noise favors the floor this much more than exponential weights do: the section on the
clip.
"""


class MaxOfLaplaces(Mechanism):
    """Draw one candidate of a closed universe: the noisy maximum of textbooks.

    Args:
        epsilon: What it costs.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import MaxOfLaplaces
        >>> MaxOfLaplaces(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
        >>> MaxOfLaplaces(epsilon=1).lead(candidates=1000)
        11
    """

    epsilon: Exact = parameter(positive)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window, blocks, rate = self._view(profile)
        return draw_candidate(window, run_race(blocks, rate, LAPLACE, coins), coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = self._view(profile)
        return law_of(window, race_law(blocks, rate, LAPLACE), error=QUADRATURE_ERROR)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        """A closed profile, clipped a little deeper than `closed_view` does, all its blocks, and
        the rate.
        """
        scale = drift(self.neighbors) * profile.sensitivity / self.epsilon
        size = closed_size(profile)
        window = profile.window(clip_width(scale, Fraction(_DEEPER * size)))
        return window, window.first(size), 1 / scale
