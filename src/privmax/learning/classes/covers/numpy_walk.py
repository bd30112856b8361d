"""The walk through the conjunctions below one test, in NumPy.

`compiled_walk.py` has the same, compiled.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privmax.learning.classes.covers.branches import Branch, Goal, Ints, Words

_CHUNK = 1 << 15
"""Rows unpacked at a time. Far below 2^24, so that counts of them are exact as 32-bit floats."""


_STEP = 8
"""Products of a matrix that take about as long as a step of the compiled walk."""


def count_bits(rows: Words) -> Ints:
    """Return how many rows have each bit.

    Examples:
        >>> count_bits(np.array([[1], [3]], np.uint64))[:3].tolist()
        [2, 1, 0]
    """
    total = np.zeros(64 * rows.shape[1], np.int64)
    for start in range(0, len(rows), _CHUNK):
        total += _unpack(rows[start : start + _CHUNK]).sum(axis=0, dtype=np.int64)
    return total


def walk(branch: Branch, goal: Goal) -> None:
    """Count the conjunctions of a branch by their difference.

    All those are counted that are above the floor and above the largest of them less the span; of
    the others perhaps not all.

    Args:
        branch: Where to count.
        goal: What to count. Its tally is added to.
    """
    positives, negatives = (
        keep_passing(rows, branch.test) for rows in (branch.positives, branch.negatives)
    )
    first = int(goal.after[branch.test >> 1])
    _Walker(goal).enter(positives, negatives, first, branch.literals)


class _Walker:
    """Two levels at a time, by matrix products."""

    def __init__(self, goal: Goal) -> None:
        self._after, self._sizes, self._tally, self._stop = (
            goal.after,
            goal.sizes,
            goal.tally,
            goal.stop,
        )
        self._left = goal.left
        self._base = self._floor = goal.floor
        self._span = goal.span

    def enter(self, positives: Words, negatives: Words, first: int, literals: int) -> None:
        """Tell a node and all below it."""
        if not len(positives) and not len(negatives):
            self._tell(np.zeros(1, np.int64), int(self._sizes[first, literals]))
            return
        self._tell(np.array([len(positives) - len(negatives)]))
        if literals and first < len(self._after):
            self._below(positives, negatives, first, literals)

    def _below(self, positives: Words, negatives: Words, first: int, literals: int) -> None:
        """Tell all below a node."""
        if self._stop[0] or self._left[0] < 0 or len(positives) <= self._floor:
            return
        columns = len(self._after)
        width = columns - first if literals > 1 else 1
        self._left[0] -= 1 + (len(positives) + len(negatives)) * width * width // _STEP
        if literals == 1:
            yes, no = (
                _sign(count_bits(rows)[first:columns], len(rows)) for rows in (positives, negatives)
            )
            self._tell(yes - no)
            return
        both = _count_both(positives, first, columns)
        yes = _sign(np.diagonal(both), len(positives))
        pairs = _pair(both, len(positives))
        later = np.arange(first, columns) >= self._after[first:columns, None]
        promising = (pairs > self._floor) & later[:, :, None, None]
        if literals == 2:
            both = _count_both(negatives, first, columns)
            self._tell(yes - _sign(np.diagonal(both), len(negatives)))
            self._tell((pairs - _pair(both, len(negatives)))[promising])
            return
        no = _sign(count_bits(negatives)[first:columns], len(negatives))
        nobody = (yes == 0) & (no == 0)
        self._tell((yes - no)[~nobody])
        go = promising.any(axis=(1, 3)) & ~nobody
        for at in np.nonzero(nobody)[0]:
            self._tell(
                np.zeros(1, np.int64), int(self._sizes[self._after[first + at], literals - 1])
            )
        for at, below in zip(*np.nonzero(go), strict=True):
            test = 2 * (first + int(at)) + int(below)
            end = int(self._after[first + at])
            self._below(
                keep_passing(positives, test), keep_passing(negatives, test), end, literals - 1
            )

    def _tell(self, differences: Ints, times: int = 1) -> None:
        high = differences[differences > self._floor]
        if len(high):
            np.add.at(self._tally, high - self._base - 1, times)
            self._floor = max(self._floor, int(high.max()) - self._span)


def _sign(counted: Ints, total: int) -> Ints:
    """Return [column, below] from the rows that have each bit."""
    return np.stack([counted, total - counted], axis=1)


def _pair(both: Ints, total: int) -> Ints:
    """Return [column, column, below, below] from the rows that have each pair of bits."""
    alone = np.diagonal(both)
    first, second = alone[:, None] - both, alone[None, :] - both
    none = total - alone[:, None] - second
    return np.stack([np.stack([both, first], axis=2), np.stack([second, none], axis=2)], axis=2)


def _count_both(rows: Words, first: int, columns: int) -> Ints:
    """Return how many rows have each pair of bits, from the first on."""
    total = np.zeros((columns - first, columns - first), np.int64)
    for start in range(0, len(rows), _CHUNK):
        bits = _unpack(rows[start : start + _CHUNK])[:, first:columns].astype(np.float32)
        total += (bits.T @ bits).astype(np.int64)
    return total


def _unpack(rows: Words) -> NDArray[np.uint8]:
    return np.unpackbits(rows.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")


def keep_passing(rows: Words, test: int) -> Words:
    """Return the rows that pass a test.

    Examples:
        >>> rows = np.array([[1], [3]], np.uint64)
        >>> [len(keep_passing(rows, test)) for test in (0, 1, 2, 3)]
        [2, 0, 1, 1]
    """
    bits = (rows[:, test >> 7] >> np.uint64((test >> 1) & 63)) & np.uint64(1)
    passing: Words = rows[bits != np.uint64(test & 1)]
    return passing
