"""Guarded draws that are no mechanisms of privmax: how likely the near maximizers are, and the lead
that takes.

All at epsilon = 1, delta = 1e-6 in an open universe. The tests hold `guarded` and `nested` to the
laws of privmax where they meet one, and `flipped` to an integral.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from privmax import ParameterError
from privmax.mechanisms.contract import Mechanism
from privmax.noise.race import EXPONENTIAL, race_law
from privmax.privacy import ADD_REMOVE, REPLACE, Neighbors, swing

EPSILON, DELTA, SUCCESS = 1, "1e-6", 0.95
NEAR = (1, 10, 1000, 10**6)
RELATIONS: tuple[Neighbors, ...] = (ADD_REMOVE, REPLACE)

Leader = Callable[[Neighbors, int], int | None]
"""The lead under a relation with so many near maximizers; None: no lead is enough."""

Chance = Callable[[Neighbors, int, int], float]
"""The probability that one of the near maximizers is drawn: relation, how many they are, their
lead.
"""


def of_mechanism(make: Callable[[Neighbors, int], Mechanism]) -> Leader:
    """The lead that a mechanism of privmax says it needs; it may be told how many near maximizers
    there are.
    """

    def lead(neighbors: Neighbors, near: int) -> int | None:
        try:
            return make(neighbors, near).lead(candidates=None, near=near)
        except ParameterError as error:
            if error.name != "success":
                raise
            return None

    return lead


def of_chance(chance: Chance) -> Leader:
    """The smallest lead with probability SUCCESS, which must grow with the lead."""

    def lead(neighbors: Neighbors, near: int) -> int | None:
        high = 1
        while chance(neighbors, near, high) < SUCCESS:
            high *= 2
            if high > 1 << 20:
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if chance(neighbors, near, middle) >= SUCCESS else (middle, high)
            )
        return high

    return lead


def guarded(rank: int, factor: float = 1.0) -> Chance:
    """Exponential weights behind one guard `factor` times as heavy as that of `LimitedDomain`,
    which is 1.
    """

    def chance(neighbors: Neighbors, near: int, lead: int) -> float:
        inside, edge = _edge(near, rank, lead, EPSILON / swing(neighbors))
        guard = factor * rank / float(DELTA) * math.exp(EPSILON) * edge
        return inside / (inside + (rank - inside) * edge + guard)

    return chance


def flipped(rank: int) -> Chance:
    """Exponential noise in place of exponential weights behind one guard: permute-and-flip with one
    more candidate.

    Somebody d below the guard beats it with probability e^(−εd/c)/2, so the guard may stand
    (c/ε)·ln 2 lower.
    """
    fine = 10**6  # depths of a race are integers: here in millionths of a record

    def chance(neighbors: Neighbors, near: int, lead: int) -> float:
        c = swing(neighbors)
        inside, beside = min(near, rank), max(0, rank - near)
        edge = lead if rank >= near else 0
        guard = edge - c - c / EPSILON * math.log(rank / (2 * float(DELTA)))
        runners = [(0.0, inside, True), (float(edge), beside, False), (guard, 1, False)]
        runners = sorted(runner for runner in runners if runner[1])
        first = runners[0][0]
        blocks = [(round(fine * (depth - first)), count) for depth, count, _ in runners]
        shares = race_law(blocks, Fraction(EPSILON, c * fine), EXPONENTIAL)
        return sum(share for share, (_, _, best) in zip(shares, runners, strict=True) if best)

    return chance


def nested(ranks: Sequence[int], part: Fraction) -> Chance:
    """`NestedMargin`, with any part of epsilon for taking the best of several offers."""
    draw_epsilon, room = float((1 - part) * EPSILON), -math.expm1(-float(part * EPSILON))

    def chance(neighbors: Neighbors, near: int, lead: int) -> float:
        total, least = 0.0, math.inf
        for rank, inner in zip(reversed(ranks), [*reversed(ranks[:-1]), 0], strict=True):
            inside, edge = _edge(near, rank, lead, draw_epsilon / swing(neighbors))
            slipping = rank * len(ranks) / float(DELTA) * math.exp(draw_epsilon)
            guard = edge * max(slipping, (ranks[-1] - rank) / room)
            least = min(least, inside + (rank - inside) * edge + guard)
            total += (inside - min(near, inner)) / least
        return total

    return chance


def _edge(near: int, rank: int, lead: int, rate: float) -> tuple[int, float]:
    """How many of the top `rank` are near maximizers, and the weight of the candidate just below
    the top `rank`.
    """
    return min(near, rank), math.exp(-rate * lead) if rank >= near else 1.0
