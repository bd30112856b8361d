"""One draw behind a guard for every rank: a mechanism that lab/sharper.md proves, as a law.

For comparisons, in floats; privmax does not draw from it. With w = exp(ε̂·score/c), θ the weight of
the rank after ℓ, W the weight of the best ℓ, and a guard G = ℓ·max(A·θ, η·w of the best),

    P(i) = max over ℓ of max(w_i − θ, 0) / N,   N = G if 2W ≤ G, and 4W² / (4W − G) otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Levels = list[tuple[int, int]]
"""Positive scores, the best first, and how many candidates have each."""


@dataclass(frozen=True)
class EveryRank:
    """The law at a cost of `epsilon` and `delta`, for up to `reach` near maximizers.

    drift  2 under replace, 1 under add-remove for counts
    share  of epsilon that pays for what candidates further out take
    """

    epsilon: float
    delta: float
    reach: int
    drift: int = 1
    share: float = 1 / 256

    def __post_init__(self) -> None:
        spare = math.cosh(self.rate) - 1
        if (math.exp(self.epsilon) * self.reach + 4) / self.heft > spare:
            raise ValueError(f"reach = {self.reach} is too far for this epsilon and delta")

    @cached_property
    def rate(self) -> float:
        """What is left of epsilon for the draw."""
        return self.epsilon + math.log(1 - self.share * self.epsilon)

    @cached_property
    def parts(self) -> float:
        """Into how many parts the guards divide delta: 1 + 1/2 + … + 1/reach."""
        return math.fsum(1 / rank for rank in range(1, self.reach + 1))

    @cached_property
    def heft(self) -> float:
        """A: how many times as heavy as the next candidate a guard is, per candidate in front."""
        return (math.exp(self.rate) - 1) * self.parts / self.delta

    @cached_property
    def floor(self) -> float:
        """η: the part of the best weight below which no guard falls."""
        return 4 * self.parts / (self.heft * self.share * self.epsilon - 4)

    def law(self, levels: Levels) -> tuple[list[float], float]:
        """The chance of a candidate of each level, and of no answer. Unseen ones are at 0."""
        weights = [self._weight(score) for score, _ in levels]
        chances = [0.0] * len(levels)
        for inside, guard in self._guards(levels, weights):
            following = weights[inside] if inside < len(levels) else 1.0
            for place in range(inside):
                offer = (weights[place] - following) / guard
                chances[place] = max(chances[place], offer)
        pairs = zip(chances, levels, strict=True)
        return chances, 1 - math.fsum(chance * many for chance, (_, many) in pairs)

    def lead(self, near: int, success: float = 0.95) -> int:
        """Records by which `near` tied candidates must lead to be released that often."""
        records = 1
        while 1 - self.law([(records, near)])[1] < success:
            records += 1
        return records

    def _guards(self, levels: Levels, weights: list[float]) -> Iterator[tuple[int, float]]:
        """After each level: how many levels are in front, and N.

        Ranks inside a level are left out: they have the same θ as its first rank, and a larger N.
        """
        ranks, weight = 0, 0.0
        for inside, (_, many) in enumerate(levels, start=1):
            ranks, weight = ranks + many, weight + many * weights[inside - 1]
            if ranks > self.reach:
                return
            following = weights[inside] if inside < len(levels) else 1.0
            guard = ranks * max(self.heft * following, self.floor * weights[0])
            draw = guard if 2 * weight <= guard else 4 * weight**2 / (4 * weight - guard)
            yield inside, draw

    def _weight(self, score: int) -> float:
        return math.exp(self.rate * score / self.drift)


def excess(mechanism: EveryRank, levels: Levels, falls: list[int]) -> float:
    """By how many deltas neighbors differ beyond epsilon: so many of each level fall by 1."""
    growth = math.exp(mechanism.epsilon)
    groups = [
        (score, score, many - fall) for (score, many), fall in zip(levels, falls, strict=True)
    ]
    groups += [(score, score - 1, fall) for (score, _), fall in zip(levels, falls, strict=True)]
    groups = [group for group in groups if group[2]]
    after: dict[int, int] = {}
    for _, score, many in groups:
        after[score] = after.get(score, 0) + many
    lower = sorted(((score, many) for score, many in after.items() if score), reverse=True)
    (ours, silence), (theirs, other) = mechanism.law(levels), mechanism.law(lower)
    chance = dict(zip((score for score, _ in levels), ours, strict=True))
    later = dict(zip((score for score, _ in lower), theirs, strict=True))
    pairs = [(chance[old], later.get(new, 0.0), many) for old, new, many in groups]
    pairs.append((silence, other, 1))
    removed = math.fsum(many * max(0.0, a - growth * b) for a, b, many in pairs)
    added = math.fsum(many * max(0.0, b - growth * a) for a, b, many in pairs)
    return max(removed, added) / mechanism.delta
