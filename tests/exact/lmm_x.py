"""LMM-X: the paper's way to certify a margin, with one-sided noise and dyadic levels. Only a law,
to compare leads.

    levels ℓ_j = 2^j,  w_j = 1/((j+1)(j+2)),  G ~ Exp(c/ε1),  E_j ~ Exp(c/ε2)
    search: the first j with gap_(ℓ_j) + E_j > G + T_j
    draw:   among the top ℓ_j with weight exp(ε3·q/c)
    no j:   among all K candidates likewise; in an open universe nothing
    T_j:    sup over γ of P(E − G > T_j − γ)·slip_j(γ) = δ·w_j

slip_j(γ) bounds the probability of drawing somebody who leaves the top ℓ when one record changes,
given gap_ℓ = γ: 1 for γ ≤ c; beyond, min(1, (ℓ−1)·e^(−ε3(γ−c)/c)), for the best one cannot leave.
Between neighbours the gaps move by amounts in an interval of length c whose upper end lies from 0
to c. Lifting G by that end and the E_j that passes by c covers all levels at once: ε1 + ε2, to
which the draw adds ε3 and, over all levels, δ·Σ w_j = δ.

It is not part of privmax. In an open universe it needs about a quarter of the paper's lead, but
still more than `SharpMargin`, because it pays for certainty about the margin before it draws. And
its noise is real-valued: there is no exact sampler for it here, so nothing is ever drawn from it.
Sensitivity 1; floats throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privmax.privacy import REPLACE, Neighbors, drift

LEVELS = 41
"""The search goes up to 2^40, or as far as there are candidates."""

SPLIT = (0.2, 0.4, 0.4)
"""The shares of epsilon for the shared noise, the query noise and the draw."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LmmX:
    """The law of LMM-X where `near` candidates are tied and all others stand lower."""

    epsilon: float = 1.0
    delta: float = 1e-6
    neighbors: Neighbors = REPLACE

    def success(self, lead: float, *, candidates: int | None, near: int) -> float:
        """Probability that one of the `near` best is drawn when they lead all others by `lead`."""
        if candidates is not None and near >= candidates:
            return 1.0
        if not lead:
            return (
                0.0 if candidates is None else near / candidates
            )  # everybody is tied: nobody is favoured
        levels = [
            (1 << j, T)
            for j, T in enumerate(self.thresholds)
            if candidates is None or 1 << j < candidates
        ]
        excesses = [
            (lead if level >= near else 0.0) - T for level, T in levels
        ]  # gap_ℓ is 0 inside the tie
        shared, chances = self._shared_noise([excess for excess in excesses if excess > 0])
        alive, total = chances, 0.0
        for (level, _), excess in zip(levels, excesses, strict=True):
            passes = np.exp(-np.maximum(0.0, shared - excess) / self._query_scale)
            total += float(alive @ passes) * self._share(lead, level, near)
            alive = alive * (1 - passes)
        return (
            total
            if candidates is None
            else total + float(alive.sum()) * self._share(lead, candidates, near)
        )

    def lead(self, *, candidates: int | None, near: int = 1, success: float = 0.95) -> int:
        """The smallest lead, in records, with that probability of success; it grows with the
        lead.
        """
        high = 0
        while self.success(high, candidates=candidates, near=near) < success:
            high = 2 * high + 1
        low = -1
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.success(middle, candidates=candidates, near=near) >= success
            low, high = (low, middle) if enough else (middle, high)
        return high

    @cached_property
    def thresholds(self) -> list[float]:
        """T_j, by bisection: the supremum falls as T grows."""
        found = []
        for j in range(LEVELS):
            allowed = self.delta / ((j + 1) * (j + 2))
            low, high = 0.0, 1.0
            while self.worst(high, 1 << j) > allowed:
                high *= 2
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (
                    (middle, high) if self.worst(middle, 1 << j) > allowed else (low, middle)
                )
            found.append(high)
        return found

    def worst(self, threshold: float, level: int) -> float:
        """sup over γ of `passing`·`slip`.

        It rises up to where slip leaves 1. From there on its logarithm is linear up to γ = T and
        concave beyond, so the supremum is at one of those two ends or where the derivative beyond T
        vanishes.
        """
        edge = float(drift(self.neighbors))
        if level > 2:
            edge += self._draw_scale * math.log(level - 1)
        turn = self._shared_scale * math.log(
            (self._shared_scale + self._draw_scale) / (self._shared_scale + self._query_scale)
        )
        gaps = [edge, *(gap for gap in (threshold, threshold + turn) if gap > edge)]
        return max(self.passing(gap - threshold) * self.slip(gap, level) for gap in gaps)

    def passing(self, excess: float) -> float:
        """P(E − G > −excess): the chance that a query passes by itself."""
        both = self._shared_scale + self._query_scale
        if excess <= 0:
            return self._query_scale / both * math.exp(excess / self._query_scale)
        return 1 - self._shared_scale / both * math.exp(-excess / self._shared_scale)

    def slip(self, gap: float, level: int) -> float:
        """Bound on the probability of drawing somebody who leaves the top `level` when one record
        changes.
        """
        beyond = gap - drift(self.neighbors)
        return 1.0 if beyond <= 0 else min(1.0, (level - 1) * math.exp(-beyond / self._draw_scale))

    def _share(self, lead: float, level: int, near: int) -> float:
        """Probability that a draw among the top `level` falls on one of the `near` best."""
        others = max(0, level - near)
        return near / (near + others * math.exp(-lead / self._draw_scale))

    def _shared_noise(self, kinks: list[float]) -> tuple[Array, Array]:
        """Points and weights for expectations over G: Gauss–Legendre on panels that break where a
        query's chance does.

        A panel is at most one scale wide; beyond 45 scales less than 1e-19 is left.
        """
        nodes, weights = np.polynomial.legendre.leggauss(32)
        scale = self._shared_scale
        ends = sorted({0.0, *(kink for kink in kinks if kink < 45 * scale), 45 * scale})
        edges = np.concatenate(
            [np.linspace(a, b, math.ceil((b - a) / scale) + 1)[:-1] for a, b in pairwise(ends)]
        )
        low, high = edges[:, None], np.append(edges[1:], ends[-1])[:, None]
        points = ((low + high) / 2 + (high - low) / 2 * nodes).ravel()
        return points, ((high - low) / 2 * weights).ravel() * np.exp(-points / scale) / scale

    @property
    def _shared_scale(self) -> float:
        return drift(self.neighbors) / (SPLIT[0] * self.epsilon)

    @property
    def _query_scale(self) -> float:
        return drift(self.neighbors) / (SPLIT[1] * self.epsilon)

    @property
    def _draw_scale(self) -> float:
        return drift(self.neighbors) / (SPLIT[2] * self.epsilon)
