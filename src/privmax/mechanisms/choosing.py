"""Choosing mechanism: where one record touches few candidates, test that the best count is clear of
0, then draw.

    Counts under add-remove, one record touches at most κ candidates (its growth); x = ε/2.
    T = s + ⌈(s/x)·ln(κ/(δ(1 + e^(−x/s))))⌉
    pass iff q_(1) + Z ≥ T, Z discrete Laplace of scale s/x
    then draw among the candidates of count 1 or more with weight exp(x·q_i/s), else nothing

What may appear or vanish with one record is at most κ candidates of weight e^x; where the best
count is clear of 0 they are hardly ever drawn. There is no clip: the draw reads the whole profile
above 0. A floor that moves with the top would let every untouched candidate just above it vanish at
once.

Proof:      docs/proofs/choosing.md
Reference:  Beimel, Nissim & Stemmer, RANDOM 2013
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from flint import arb

from privmax.mechanisms.above_threshold import tail
from privmax.mechanisms.contract import (
    Law,
    Mechanism,
    Outcome,
    draw_candidate,
    law_of,
)
from privmax.mechanisms.weights import block_weights, shares
from privmax.noise.balls import START, ball, ceiling, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace, weighted
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy
from privmax.profile import Profile, Window


class Choosing(Mechanism):
    """Draw one candidate of positive count, or nothing, from any universe.

    Its lead is one over candidates of count 0: one with a positive count would be in the draw.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        growth: The bound on how many candidates one record touches; public.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import Choosing
        >>> Choosing(epsilon=1, delta=1e-6, growth=3).threshold()
        30
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="A new candidate is drawn with probability delta; 0 is impossible.",
    )
    growth: Whole = parameter(whole)

    @property
    def neighbors(self) -> Neighbors:
        """Always add-remove: there is no proof here for another relation."""
        return ADD_REMOVE

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = _positive(profile)
        if profile.universe == 1:
            return draw_candidate(window, 0, coins)
        noise = discrete_laplace(self.scale(profile.sensitivity), coins)
        if not window.depths or window.top + noise < self.threshold(profile.sensitivity):
            return Outcome(None)
        return draw_candidate(
            window, weighted(lambda: self._weights(window, profile), coins), coins
        )

    def law(self, profile: Profile) -> Law:
        window = _positive(profile)
        if profile.universe == 1:
            return law_of(window, [1.0])
        passes = self._passes(window.top, profile.sensitivity) if window.depths else 0.0
        drawn = shares(lambda: self._weights(window, profile)) if window.depths else []
        below = [0.0] * (len(window.blocks()) - len(drawn))
        return law_of(
            window, [*(passes * chance for chance in drawn), *below], 1 - passes, true_zeros=False
        )

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def threshold(self, sensitivity: int = 1) -> int:
        """Return T: what the best count must reach, with noise."""
        return _threshold(self, sensitivity)

    def scale(self, sensitivity: int = 1) -> Fraction:
        """Return the scale of the noise on the best count."""
        return 2 * sensitivity / self.epsilon

    def _passes(self, top: int, sensitivity: int) -> float:
        with precision(START):
            return float(tail(self.scale(sensitivity), self.threshold(sensitivity) - top).mid())

    def _weights(self, window: Window, profile: Profile) -> list[arb]:
        """Weights of the blocks above 0, all multiplied by e^(−x·q_(1)/s)."""
        blocks = list(zip(window.depths, window.counts, strict=True))
        return block_weights(blocks, 1 / self.scale(profile.sensitivity))


def _positive(profile: Profile) -> Window:
    """The profile with its floor at 0, or at the top where that is lower: its levels are the
    positive counts.
    """
    return profile.window(max(0, profile.top()))


@lru_cache(maxsize=256)
def _threshold(mechanism: Choosing, sensitivity: int) -> int:
    """s + ⌈(s/x)·ln(κ/(δ(1 + e^(−x/s))))⌉.

    Ends: were the ceiling's argument an integer, e^(x/s) would solve a polynomial equation, and it
    is transcendental.
    """
    scale = mechanism.scale(sensitivity)

    def exact() -> arb:
        return ball(scale) * (
            ball(mechanism.growth / mechanism.delta).log() - (-ball(1 / scale)).exp().log1p()
        )

    return sensitivity + ceiling(exact)
