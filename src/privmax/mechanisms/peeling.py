"""Top-k by peeling: draw one candidate, set it aside, draw again; a guard drawn ends the list.

The candidates and the guard are fixed before the first round, on the profile clipped below its k-th
best score, so each round is one more draw from the same weights with a candidate missing.

Proof:      docs/proofs/peeling.md
Reference:  Durfee & Rogers, NeurIPS 2019
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from privmax.composition import per_round
from privmax.mechanisms.contract import ROUNDING, JointLaw, Mechanism, Outcome
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.profile import Level, Profile, Window

Draw = Callable[[Sequence[Level], Coins], int]
"""One round: which of the blocks (with the numbers still left in them) is drawn from; one past the
last: the guard.
"""

Chances = Callable[[Sequence[Level]], Sequence[float]]
"""One round's law: the probability of each block and, where there is a guard, last of the guard."""


class Sequences(JointLaw):
    """The exact law of a whole list.

    Its `chances` are those of lists of blocks; a list shorter than k ended with nothing.

    Examples:
        >>> Sequences(((9, 1),), None, {(0,): 1.0}, error=0.0).chances
        {(0,): 1.0}
    """


class Ranker(Mechanism):
    """A mechanism that can release the best k, in order.

    Examples:
        >>> from privmax import Exponential, Profile
        >>> from privmax.noise.coins import SYSTEM
        >>> both = Exponential(epsilon=1, k=2).ranking(Profile([(9, 2)], universe=2), SYSTEM)
        >>> sorted(outcome.index for outcome in both)
        [0, 1]
    """

    @abstractmethod
    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        """Choose the best k to release, best first.

        Args:
            profile: The private scores.
            coins: Where random bits come from.

        Returns:
            Fewer than k outcomes where no more could be released.
        """

    @abstractmethod
    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        """Return the law of the list together with whatever is released beside it.

        For small profiles; never released.
        """

    def expect(self, profile: Profile, best: int) -> tuple[float, float] | None:
        """Return how many candidates are released on average, and how many of the `best` highest.

        Candidates tied with the last of those count as one of them. For planning on public data;
        never released.

        Args:
            profile: Public scores.
            best: At most k.

        Returns:
            Both numbers to a millionth for each of k; None: they can only be found by drawing.
        """
        return None


def peel(
    window: Window, blocks: Sequence[Level], k: int, draw: Draw, coins: Coins
) -> list[Outcome]:
    """Draw up to k candidates, one after the other.

    A candidate drawn from a block is uniform over those of the whole block not drawn before, cut or
    not: which of them belong to it was left open (ties are broken at random).

    Args:
        window: The clipped profile.
        blocks: The first of `window.blocks()`, perhaps with the last cut short.
        k: How many to draw.
        draw: One round.
        coins: Where random bits come from.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> window = Profile([(9, 2)], universe=2).window(5)
        >>> sorted(outcome.index for outcome in peel(window, [(0, 2)], 2, lambda *_: 0, SYSTEM))
        [0, 1]
    """
    depths, left = [depth for depth, _ in blocks], [count for _, count in blocks]
    taken: list[list[int]] = [[] for _ in blocks]
    peeled: list[Outcome] = []
    while len(peeled) < k and any(left):
        block = draw(list(zip(depths, left, strict=True)), coins)
        whole_block = window.blocks()[block][1] if block < len(blocks) else None
        if whole_block is None:  # the guard, or somebody nobody has seen
            break
        place = uniform_below(whole_block - len(taken[block]), coins)
        for earlier in sorted(taken[block]):
            place += place >= earlier
        taken[block].append(place)
        left[block] -= 1
        peeled.append(Outcome(window.top - depths[block], place, block == len(window.depths)))
    return peeled


def sequence_law(
    window: Window,
    blocks: Sequence[Level],
    k: int,
    chances: Chances,
    *,
    error: float = ROUNDING,
    relative: float = math.inf,
) -> Sequences:
    """Compute the law of `peel`, one list of blocks at a time: for small k and few blocks.

    Errors of k factors add up; they are doubled, for the products of errors and for one more factor
    such as that of a rank picked before.

    Args:
        window: The clipped profile.
        blocks: The first of `window.blocks()`, perhaps with the last cut short.
        k: How many are drawn.
        chances: One round's law.
        error: Each of `chances` is within this of the truth.
        relative: And within this part of itself.

    Examples:
        >>> window = Profile([(9, 2)], universe=2).window(5)
        >>> sequence_law(window, [(0, 2)], 2, lambda left: [1.0]).chances
        {(0, 0): 1.0}
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


def chance_all_best(blocks: Sequence[Level], k: int, chances: Chances) -> float:
    """Return the probability that all of the first k come from the first block.

    Examples:
        >>> chance_all_best([(0, 1), (5, 9)], 1, lambda left: [0.75, 0.25])
        0.75
    """
    (depth, count), *others = blocks
    result = 1.0
    for drawn in range(min(k, count)):
        result *= chances([(depth, count - drawn), *others])[0]
    return result if k <= count else 0.0


def round_and_guard(epsilon: Fraction, delta: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """Split a cost into the epsilon of each of k guarded rounds, and the delta of the guard.

    Half of delta buys a cheaper composition where there is one; otherwise the guard has it all.

    Examples:
        >>> round_and_guard(Fraction(1), Fraction(1, 1000), 2)
        (Fraction(1, 2), Fraction(1, 1000))
    """
    shared = per_round(epsilon, delta / 2, k, bounded_range=True)
    return (shared, delta / 2) if shared > epsilon / k else (epsilon / k, delta)
