"""The Large Margin Mechanism with its original third stage: the max of truncated exponentials.

    t_r = 6(1 + ln(3r(1 + e^(ε/3))/δ)/ε);  M, S and T_r are as in `LargeMargin`, with this t_r
    A:  τ = (6/ε)ln(3ℓ(1 + e^(ε/3))/δ);  the largest q_i + Z_i among the top ℓ, Z_i of scale 6/ε
        given that Z_i ≤ τ

Nothing τ or more below the top is ever drawn, and the draw errs less than exponential weights do.
The certificate is longer by (6/ε)ln(1 + e^(ε/3)): 5 or 6 records at ε = 1.

Proof:      docs/proofs/large-margin-truncated.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014 (mentioned in its acknowledgments)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from flint import arb

from privmax.deferred import np
from privmax.mechanisms.large_margin import LargeMargin, Piece
from privmax.mechanisms.max_of_truncated import MaxOfTruncated, rarity
from privmax.noise.balls import START, ball, precision
from privmax.noise.race import ExponentialNoise, race_law
from privmax.privacy import REPLACE, drift
from privmax.profile import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def _guess_lead(self, candidates: int | None, near: int, success: Fraction) -> int:
        """Return the lead of `LargeMargin`, whose laws take less time, and what the certificate
        adds.

        Both search in the same way, and a winner that is certified is hardly ever missed.
        """
        self._check_work(self.cap if candidates is None else candidates, 1)
        other = LargeMargin(
            epsilon=self.epsilon,
            delta=self.delta,
            neighbors=self.neighbors,
            cap=self.cap,
            constants=self.constants,
        )
        lead = other.lead(candidates=candidates, near=near, success=success)
        if candidates is not None:
            return lead  # decided by the draw more than by the certificate
        return lead + self.threshold(near) - other.threshold(near)

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
        race = self._races(window, pieces, stops, sensitivity)
        with precision(START):
            rare = float(rarity(self._stage_epsilon(), self._stage_delta(), 1).mid())
        for piece, stop in zip(pieces, stops, strict=True):
            if stop < NEGLIGIBLE:
                error += float(stop)
                continue
            first = race(piece.first)
            last = first if piece.first == piece.last else race(piece.last)
            chances += stop * (first + last) / 2
            error += float(stop) * (
                float(np.abs(first - last).max()) / 2 + 2 * self._wobble(piece, rare)
            )
        return chances, error

    def _races(
        self, window: Window, pieces: list[Piece], stops: NDArray[np.float64], sensitivity: int
    ) -> Callable[[int], NDArray[np.float64]]:
        """The probability of each block when the top `near` race, as a function of `near`.

        An infinite block holds what is released as nothing. The more race, the longer the noise:
        where the best block alone can win at the last rank that counts, so it can at all others.
        """
        epsilon, delta = self._stage_epsilon(), self._stage_delta()
        rate = epsilon / (drift(REPLACE) * sensitivity)
        blocks = len(window.blocks())

        def race(near: int) -> NDArray[np.float64]:
            noise = ExponentialNoise(partial(rarity, epsilon, delta, near))
            chances = race_law(window.first(near), rate, noise)
            return np.array(chances + [0.0] * (blocks - len(chances)))

        ranks = [
            piece.last for piece, stop in zip(pieces, stops, strict=True) if stop >= NEGLIGIBLE
        ]
        widest = race(max(ranks)) if ranks else np.zeros(blocks)
        return (lambda _: widest) if widest[0] == 1 and not widest[1:].any() else race

    def _wobble(self, piece: Piece, rare: float) -> float:
        """Bound the difference of two races by the noise of a piece's first rank and that of its
        last: see the page. `rare` is ℓκ, the same at every rank.
        """
        if piece.first == piece.last:
            return 0.0
        falls = rare * (piece.last - piece.first) / piece.first  # ℓ·(κ_first − κ_last)
        return falls / (1 - rare / piece.last)
