"""A profile: the number of candidates at each score, from the top down.

It is all that a mechanism ever sees of the data.

A `Profile` is private. Its `repr` shows nothing, and so do the errors raised here.

Two conventions hold everywhere. Candidates that are not listed have score 0. A mechanism looks at
the profile clipped at a public width below the top (`Profile.window`): scores under the floor count
as the floor, which changes no sensitivity (docs/proofs/clipping.md) and means that nothing deeper
ever has to be read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol, runtime_checkable

from privmax.errors import DataError, ParameterError
from privmax.numbers import whole

Level = tuple[int, int]
"""A score and the number of candidates at exactly that score."""


LARGEST_UNIVERSE = 1 << 1000
"""Sizes beyond this do not fit the floats of a law, and no universe that large can be listed."""


_FIRST_LOOK = 127
"""The distance below the top within which a rank is looked for first."""


class Reader(Protocol):
    """The interface by which a profile reads the scores.

    Scores are integers; only listed candidates count.
    """

    def listed(self) -> int:
        """Return how many candidates have a score of their own."""
        ...

    def maximum(self) -> int | None:
        """Return the highest listed score; None when nothing is listed."""
        ...

    def histogram(self, above: int) -> Sequence[Level]:
        """Return the occupied levels with score > `above`, highest first."""
        ...


@runtime_checkable
class RankedReader(Reader, Protocol):
    """A reader that finds the highest levels at once, however far apart they are."""

    def highest(self, number: int) -> Sequence[Level]:
        """Return so many of the highest occupied levels, highest first; all, if there are fewer."""
        ...


@runtime_checkable
class DeepReader(Reader, Protocol):
    """A reader that finds the score of a rank, where candidates become so many toward a score of 0
    that to list them all is not possible.
    """

    def nth(self, number: int) -> int | None:
        """Return the score of the `number`-th candidate above 0, highest first; None: of fewer."""
        ...


class Profile:
    """Scores with multiplicities, highest first.

    Args:
        levels: Pairs of a score and the number of candidates there; or who is asked for them, and
            only as deep as needed.
        universe: How many candidates there are, listed or not; None: open, not known in advance.
        sensitivity: By how many units one individual can move a score.

    Raises:
        ParameterError: The universe is smaller than what is listed, or beyond 2^1000.
        DataError: A level is no pair of whole numbers, or is listed twice.

    Examples:
        >>> profile = Profile([(9, 1), (4, 3)], universe=10)
        >>> profile
        Profile(<private>)
        >>> profile.window(7).blocks()
        [(0, 1), (5, 3), (7, 6)]
    """

    def __init__(
        self,
        levels: Reader | Iterable[Level],
        *,
        universe: int | None = None,
        sensitivity: int = 1,
    ) -> None:
        self._levels: Reader = _Levels(levels) if isinstance(levels, Iterable) else levels
        self.universe = None if universe is None else whole("universe", universe)
        if self.universe is not None and self.universe > LARGEST_UNIVERSE:
            raise ParameterError(
                "universe", "over 2^1000", "it must not exceed 2^1000", 'Declare it "open".'
            )
        self.sensitivity = whole("sensitivity", sensitivity)
        self._unlisted: int | None = None
        if self.universe is not None:
            self._unlisted = self.universe - self._levels.listed()
            if self._unlisted < 0:
                raise ParameterError(
                    "universe", universe, "it must not be smaller than the number of labels with a "
                                          "score",
                    'Declare the whole universe, or "open" if it is not known in advance.',
                )  # fmt: skip
        self._top: int | None = None
        self._depth: float | None = None  # above it all levels are among those that were seen
        self._seen: Sequence[Level] = ()
        self._last: Window | None = None

    def __repr__(self) -> str:
        return "Profile(<private>)"

    def top(self) -> int:
        """Return the highest score of any candidate, listed or not.

        Examples:
            >>> Profile([(-3, 1)]).top(), Profile([(-3, 1)], universe=1).top()
            (0, -3)
        """
        if self._top is None:
            best = self._levels.maximum()
            if best is None or (self._unlisted != 0 and best < 0):
                best = 0  # the best candidate is an unlisted one
            self._top = best
        return self._top

    def window(self, width: int, rank: int = 1) -> Window:
        """Clip the profile: scores under the floor count as the floor.

        In an open universe the floor is never below 0, where the infinitely many unlisted
        candidates stand; they come before any listed candidate at their score, so the floor block
        is theirs alone.

        Args:
            width: How far the floor is below the `rank`-th highest score.
            rank: From 1.

        Examples:
            >>> Profile([(9, 1), (4, 3), (1, 5)]).window(20).blocks()
            [(0, 1), (5, 3), (8, 5), (9, None)]
        """
        width, rank = whole("width", width, least=0), whole("rank", rank)
        return self._window(width if rank == 1 else width + self._depth_of(rank, width))

    def down_to(self, rank: int) -> Window:
        """Read the profile down to its `rank`-th highest score, that level included.

        In a closed universe `rank` is cut to its size.

        Examples:
            >>> Profile([(9, 1), (4, 3), (1, 5)]).down_to(2).blocks()
            [(0, 1), (5, 3), (6, None)]
            >>> Profile([(9, 1), (4, 3)], universe=5).down_to(9).blocks()
            [(0, 1), (5, 3), (9, 1)]
        """
        rank = whole("rank", rank)
        if self.universe is not None:
            rank = min(rank, self.universe)
        return self._window(self._depth_of(rank, _FIRST_LOOK) + 1)

    def _depth_of(self, rank: int, width: int) -> int:
        """Return how far the `rank`-th highest score is below the top.

        It is found by looking ever deeper, first at `width`; or in the levels of the `rank` highest
        listed candidates, which are at most `rank`, where a reader gives these at once; or where a
        reader finds that score.
        """
        if self.universe is not None and rank > self.universe:
            raise ParameterError("rank", rank, "it must not exceed the size of the universe")
        if isinstance(self._levels, RankedReader) and sum(n for _, n in self._seen) < rank:
            self._seen = self._levels.highest(rank)
            self._depth = self._seen[-1][0] - 1 if len(self._seen) == rank else -math.inf
            if self._seen:
                width = max(self.top() - self._seen[-1][0] + 1, 0)
        if isinstance(self._levels, DeepReader) and sum(n for _, n in self._seen) < rank:
            score = self._levels.nth(rank)
            width = max(width, self.top() + 1 - (0 if score is None else score))
        while True:  # ends: each look is deeper, down to the last candidate
            seen = self._window(width)
            if sum(seen.counts) >= rank or (seen.rest is None and seen.top == seen.floor):
                return seen.depth(rank)
            width = 2 * width + 1

    def _window(self, width: int) -> Window:
        top = self.top()
        floor = top - width
        if self._unlisted is None:
            floor = max(floor, 0)
        if self._last is not None and self._last.floor == top - floor:
            return self._last
        levels = [level for level in self._read(floor) if level[0] > floor]
        if self._unlisted and floor < 0:
            levels = _merge(levels, self._unlisted)
        counts = tuple([count for _, count in levels])
        rest = None if self.universe is None else self.universe - sum(counts)
        depths = tuple([top - score for score, _ in levels])
        self._last = Window(top, depths, counts, top - floor, rest)
        return self._last

    def _read(self, above: int) -> Iterable[Level]:
        """Return the listed levels above a score and perhaps some below.

        It asks again only when the last answer was too shallow.
        """
        if self._depth is None or above < self._depth:
            self._seen = self._levels.histogram(above)
            self._depth = above
        return self._seen


@dataclass(frozen=True, repr=False)
class Window:
    """A clipped profile. Depths are counted from the top, so the best candidates are at depth 0.

    Attributes:
        top: The highest score.
        depths: Of the occupied levels above the floor.
        counts: How many candidates are at each of them.
        floor: The depth of the floor.
        rest: How many are there; None: infinitely many, in an open universe.

    Examples:
        >>> Window(top=9, depths=(0, 5), counts=(1, 3), floor=7, rest=6)
        Window(<private>)
    """

    top: int
    depths: tuple[int, ...]
    counts: tuple[int, ...]
    floor: int
    rest: int | None

    def __repr__(self) -> str:
        return "Window(<private>)"

    @cached_property
    def _upto(self) -> list[int]:
        """The number of candidates at each level above the floor or higher."""
        return list(accumulate(self.counts))

    def blocks(self) -> list[tuple[int, int | None]]:
        """Return (depth, count) of every block, the floor last; a count of None is infinite.

        Examples:
            >>> Window(top=9, depths=(0, 5), counts=(1, 3), floor=7, rest=6).blocks()
            [(0, 1), (5, 3), (7, 6)]
        """
        blocks: list[tuple[int, int | None]] = list(zip(self.depths, self.counts, strict=True))
        if self.rest != 0:
            blocks.append((self.floor, self.rest))
        return blocks

    def depth(self, rank: int) -> int:
        """Return how far the `rank`-th highest score (from 1) is below the top.

        Examples:
            >>> window = Window(top=9, depths=(0, 5), counts=(1, 3), floor=7, rest=6)
            >>> [window.depth(rank) for rank in (1, 2, 4, 5)]
            [0, 5, 5, 7]
        """
        index = bisect_left(self._upto, whole("rank", rank))
        if index < len(self.depths):
            return self.depths[index]
        if self.rest is not None and rank > sum(self.counts) + self.rest:
            raise ParameterError("rank", rank, "it must not exceed the size of the universe")
        return self.floor

    def first(self, rank: int) -> list[Level]:
        """Return the blocks that the `rank` highest candidates fill, the last one cut to fit.

        Examples:
            >>> Window(top=9, depths=(0, 5), counts=(1, 3), floor=7, rest=6).first(3)
            [(0, 1), (5, 2)]
        """
        index = bisect_left(self._upto, whole("rank", rank, least=0))
        blocks = list(zip(self.depths[:index], self.counts[:index], strict=True))
        left = rank - (self._upto[index - 1] if index else 0)
        depth = self.depths[index] if index < len(self.depths) else self.floor
        if index == len(self.depths) and self.rest is not None:
            left = min(left, self.rest)
        return [*blocks, (depth, left)] if left else blocks

    def total(self, rank: int) -> int:
        """Return the sum of the `rank` highest scores.

        Examples:
            >>> Window(top=9, depths=(0, 5), counts=(1, 3), floor=7, rest=6).total(3)
            17
        """
        return sum((self.top - depth) * count for depth, count in self.first(rank))


def _merge(levels: list[Level], zeros: int) -> list[Level]:
    """Return the levels, highest first, with so many more candidates at score 0."""
    tally = dict(levels)
    tally[0] = tally.get(0, 0) + zeros
    return sorted(tally.items(), reverse=True)


class _Levels:
    """Levels given outright."""

    def __init__(self, levels: Iterable[Level]) -> None:
        tally: dict[int, int] = {}
        for level in levels:
            if not isinstance(level, (tuple, list)) or len(level) != 2:
                raise DataError("A level must be a pair: a score and how many candidates have it.")
            score, count = level
            if isinstance(score, bool) or not isinstance(score, int):
                raise DataError("A level's score must be an integer.")
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise DataError("A level's count must be a whole number of at least 1.")
            if score in tally:
                raise DataError("A score is listed as a level twice; merge the two.")
            tally[score] = count
        self._levels = sorted(tally.items(), reverse=True)

    def listed(self) -> int:
        return sum(count for _, count in self._levels)

    def maximum(self) -> int | None:
        return self._levels[0][0] if self._levels else None

    def histogram(self, above: int) -> Sequence[Level]:
        return [level for level in self._levels if level[0] > above]
