"""The Large Margin Mechanism with its original third stage: the max of truncated exponentials.

    t_r = 6(1 + ln(3r(1 + e^(ε/3))/δ)/ε);  M, S and T_r are as in `LargeMargin`, with this t_r
    A:  τ = (6/ε)ln(3ℓ(1 + e^(ε/3))/δ);  the largest q_i + Z_i among the top ℓ, Z_i of scale 6/ε
        given that Z_i ≤ τ

Nobody τ or more below the top is ever drawn, and the draw errs less than exponential weights do.
The certificate is longer by (6/ε)ln(1 + e^(ε/3)): 5 or 6 records at ε = 1.

Proof:      docs/proofs/large-margin-truncated.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (mentioned in its acknowledgments)
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.mechanisms.large_margin import LargeMargin, Piece
from privmax.mechanisms.max_of_truncated import MaxOfTruncated
from privmax.noise.balls import START, ball, precision
from privmax.privacy import REPLACE
from privmax.profile import Window

NEGLIGIBLE = 1e-14
"""A law leaves out pieces in which the search stops less often, and adds them to its error."""


class LargeMarginTruncated(LargeMargin):
    """Draw one candidate as `LargeMargin` does, and with the same parameters.

    Examples:
        >>> from privmax import LargeMarginTruncated
        >>> LargeMarginTruncated(epsilon=1, delta=1e-6).threshold(1)
        422
    """

    steps_each: ClassVar[int] = 1 << 17

    def paper_constants(self, rank: int) -> tuple[float, float]:
        t, threshold = super().paper_constants(rank)
        longer = 6 * math.log1p(math.exp(self._stage_epsilon())) / float(self.epsilon)
        return t + longer, threshold + longer

    def _spread(self) -> arb:
        """3(1 + e^(ε/3))/δ: the reciprocal of ℓκ."""
        return super()._spread() * (1 + ball(self._stage_epsilon()).exp())

    def _choice(self, near: int) -> MaxOfTruncated:
        return MaxOfTruncated(
            epsilon=self._stage_epsilon(), delta=self._stage_delta(), near=near, neighbors=REPLACE
        )

    def _block_chances(
        self, window: Window, pieces: list[Piece], stops: NDArray[np.float64], sensitivity: int
    ) -> tuple[NDArray[np.float64], float]:
        chances, error = np.zeros(len(window.blocks())), 0.0
        for piece, stop in zip(pieces, stops, strict=True):
            if stop < NEGLIGIBLE:
                error += float(stop)
                continue
            first = self._race(window, piece.first, sensitivity)
            last = (
                first if piece.first == piece.last else self._race(window, piece.last, sensitivity)
            )
            chances += stop * (first + last) / 2
            error += float(stop) * (float(np.abs(first - last).max()) / 2 + 2 * self._wobble(piece))
        return chances, error

    def _race(self, window: Window, near: int, sensitivity: int) -> NDArray[np.float64]:
        """Probability of each block when the top `near` race; an infinite block holds what is
        released as nothing.
        """
        law = self._choice(near).law(window, sensitivity)
        return np.array([law.none if count is None else chance for _, count, chance in law.blocks])

    def _wobble(self, piece: Piece) -> float:
        """How far the noise of a piece's first rank and that of its last can make two races differ:
        see the page.
        """
        with precision(START):
            high, low = self._choice(piece.first).cut(), self._choice(piece.last).cut()
            return float((piece.last * (high - low) / (1 - low)).mid())
