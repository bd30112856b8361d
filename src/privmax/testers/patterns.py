"""Neighboring data sets to try anything on: simple shapes, in which no mechanism is named.

The shapes of moves are those of Ding, Wang, Wang, Zhang & Kifer (CCS 2018), who found that few are
enough to break most wrong mechanisms: one score moves, all but one do, a half does, or all do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

Vector = tuple[int, ...]


def moves(size: int, *, monotone: bool) -> list[Vector]:
    """Ways in which the scores of a data set may move by one.

    Args:
        size: How many scores there are.
        monotone: Whether all of them move the same way.

    Examples:
        >>> moves(2, monotone=True)
        [(1, 0), (0, 1), (1, 1)]
        >>> (1, -1) in moves(2, monotone=False)
        True
    """
    half = size // 2
    shapes: list[tuple[Vector, Vector]] = [
        ((1,) * count, (1,) * (size - count)) for count in dict.fromkeys((1, half, size - 1, size))
    ]
    signs = ((1, 0), (0, 1)) if monotone else ((1, 0), (0, 1), (1, -1))
    vectors = [
        (*(first * part for part in head), *(second * part for part in tail))
        for (head, tail), (first, second) in product(shapes, signs)
    ]
    return [move for move in dict.fromkeys(vectors) if any(move)]


def neighbors(
    starts: Sequence[Vector], *, monotone: bool, floor: int | None = None
) -> list[tuple[Vector, Vector]]:
    """Return every start with each of its moves.

    Args:
        starts: Scores to start from.
        monotone: Whether all scores move the same way.
        floor: No score falls below this.

    Examples:
        >>> neighbors([(3,)], monotone=True)
        [((3,), (4,))]
    """
    pairs = []
    for start in starts:
        for move in moves(len(start), monotone=monotone):
            moved = tuple(score + step for score, step in zip(start, move, strict=True))
            if floor is None or min(moved) >= floor:
                pairs.append((start, moved))
    return pairs
