"""Top-k by peeling: draw one candidate, set it aside, draw again; a guard drawn ends the list.

The candidates and the guard are fixed before the first round, on the profile clipped below its k-th
best score, so each round is one more draw from the same weights with somebody missing.

Proof:      docs/proofs/peeling.md
Reference:  Durfee & Rogers, NeurIPS 2019
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from privmax.composition import per_round
from privmax.errors import ParameterError
from privmax.mechanisms.base import ROUNDING, Mechanism, Outcome
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.privacy import Number, open_probability, probability
from privmax.profile import Level, Profile, Window

Draw = Callable[[Sequence[Level], Coins], int]
"""One round: which of the blocks (with the numbers still left in them) is drawn from; one past the
last: the guard.
"""

Chances = Callable[[Sequence[Level]], Sequence[float]]
"""One round's law: the probability of each block and, where there is a guard, last of the guard."""


@dataclass(frozen=True, repr=False)
class Sequences:
    """The exact law of a whole list, on small profiles. It is a function of the private data: never
    release it.

    blocks    score and number of each block, best first
    floor     score at and below which candidates are one block, or None
    chances   probability of each list of blocks; a list shorter than k ended with nothing. One not
              listed is impossible
    error     every probability here is within this of the truth
    relative  and within this part of itself; infinite: `error` is all that is known
    """

    blocks: tuple[tuple[int, int | None], ...]
    floor: int | None
    chances: Mapping[tuple[int, ...], float]
    error: float
    relative: float = math.inf

    def __repr__(self) -> str:
        return "Sequences(<private>)"

    def scaled(self, factor: float) -> Sequences:
        """The same law with every probability multiplied."""
        chances = {key: chance * factor for key, chance in self.chances.items()}
        return replace(self, chances=chances, error=self.error * factor)


class Ranker(Mechanism, Protocol):
    """A mechanism that can release the best k, in order."""

    @property
    def k(self) -> int:
        """How many are released at most."""
        ...

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        """Choose: what is released, best first; shorter than k where nothing more could be."""
        ...

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        """The law of the list together with whatever is released beside it, on small profiles."""
        ...


def peel(
    window: Window, blocks: Sequence[Level], k: int, draw: Draw, coins: Coins
) -> list[Outcome]:
    """Up to k candidates of `blocks`, which are the first of `window.blocks()`, perhaps with the
    last cut short.

    Whoever is drawn from a block is uniform over those of the whole block not drawn before, cut or
    not: which of them belong to it was left open (ties are broken at random).
    """
    depths, left = [depth for depth, _ in blocks], [count for _, count in blocks]
    taken: list[list[int]] = [[] for _ in blocks]
    found: list[Outcome] = []
    while len(found) < k and any(left):
        block = draw(list(zip(depths, left, strict=True)), coins)
        whole_block = window.blocks()[block][1] if block < len(blocks) else None
        if whole_block is None:  # the guard, or somebody nobody has seen
            break
        place = uniform_below(whole_block - len(taken[block]), coins)
        for earlier in sorted(taken[block]):
            place += place >= earlier
        taken[block].append(place)
        left[block] -= 1
        found.append(Outcome(window.top - depths[block], place, block == len(window.depths)))
    return found


def sequences(
    window: Window,
    blocks: Sequence[Level],
    k: int,
    chances: Chances,
    *,
    error: float = ROUNDING,
    relative: float = math.inf,
) -> Sequences:
    """The law of `peel`, one list of blocks at a time: for small k and few blocks.

    Each of `chances` is within `error` of the truth, and within the part `relative` of itself.
    Errors of k factors add up; they are doubled, for the products of errors and for one more factor
    such as that of a rank picked before.
    """
    table: dict[tuple[int, ...], float] = {}

    def extend(done: tuple[int, ...], left: list[Level], chance: float) -> None:
        if len(done) == k or not any(count for _, count in left):
            table[done] = table.get(done, 0.0) + chance
            return
        for block, share in enumerate(chances(left)):
            if share == 0:
                continue
            if block == len(left) or window.blocks()[block][1] is None:
                table[done] = table.get(done, 0.0) + chance * share
            else:
                fewer = [
                    (depth, count - (index == block)) for index, (depth, count) in enumerate(left)
                ]
                extend((*done, block), fewer, chance * share)

    extend((), list(blocks), 1.0)
    scored = tuple((window.top - depth, count) for depth, count in window.blocks())
    floor = window.top - window.floor if window.rest else None
    return Sequences(scored, floor, table, 2 * k * error, 2 * k * relative)


def all_best(blocks: Sequence[Level], k: int, chances: Chances) -> float:
    """Probability that all of the first k come from the first block."""
    (depth, count), *others = blocks
    result = 1.0
    for drawn in range(min(k, count)):
        result *= chances([(depth, count - drawn), *others])[0]
    return result if k <= count else 0.0


def fitting(k: int, profile: Profile) -> int:
    """k, if the universe has as many candidates."""
    if profile.universe is not None and k > profile.universe:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Ask for fewer."
        )
    return k


def single(k: int) -> None:
    """Refuse to draw a single item from a mechanism made for more."""
    if k > 1:
        raise ParameterError(
            "k", k, "draw and joint answer for one item", "Use ranking and sequences."
        )


def round_and_guard(epsilon: Fraction, delta: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """Epsilon of each of k guarded rounds, and delta of the guard.

    Half of delta buys a cheaper composition where there is one; otherwise the guard has it all.
    """
    shared = per_round(epsilon, delta / 2, k, ranged=True)
    return (shared, delta / 2) if shared > epsilon / k else (epsilon / k, delta)


def composition_delta(delta: Number, k: int) -> Fraction:
    """The delta of a mechanism that spends it on composition only, and so must be 0 where there is
    a single round.
    """
    number = probability("delta", delta)
    if number and k == 1:
        raise ParameterError(
            "delta", delta, "a single draw of this mechanism has no use for it", "Leave it out."
        )
    return open_probability("delta", number) if number else number
