"""The walk through the conjunctions below one test, in NumPy. `compiled_walk.py` holds the same
compiled.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

_CHUNK = 1 << 15
"""Rows unpacked at a time. Far below 2^24, so that counts of them are exact as 32-bit floats."""


def counts(rows: Words) -> Ints:
    """How many rows have each bit."""
    total = np.zeros(64 * rows.shape[1], np.int64)
    for start in range(0, len(rows), _CHUNK):
        total += _unpacked(rows[start : start + _CHUNK]).sum(axis=0, dtype=np.int64)
    return total


def walk(
    positives: Words, negatives: Words, column: int, below: int, literals: int, floor: int, span: int,
    after: Ints, sizes: Ints, tally: Ints, stop: Flags,
) -> None:  # fmt: skip
    """Count the conjunctions that add one test to a node, and up to `literals` later ones, by their
    difference.

    A difference x > floor is added to tally[x − floor − 1]. All those are counted that are above
    the floor and above the largest of them less `span`; of the others perhaps not all.

    positives, negatives   the rows that the node covers
    column, below          the test
    stop                   becomes True where the answer is no longer wanted
    """
    test = 2 * column + below
    walker = _Walker(after, sizes, floor, span, tally, stop)
    walker.enter(_passing(positives, test), _passing(negatives, test), int(after[column]), literals)


class _Walker:
    """The walk of `kernels.py` in NumPy: two levels at a time, by matrix products."""

    def __init__(
        self, after: Ints, sizes: Ints, floor: int, span: int, tally: Ints, stop: Flags
    ) -> None:
        self._after, self._sizes, self._tally, self._stop = after, sizes, tally, stop
        self._base = self._floor = floor
        self._span = span

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
        if self._stop[0] or len(positives) <= self._floor:
            return
        columns = len(self._after)
        if literals == 1:
            yes, no = (
                _signed(counts(rows)[first:columns], len(rows)) for rows in (positives, negatives)
            )
            self._tell(yes - no)
            return
        both = _both(positives, first, columns)
        yes = _signed(np.diagonal(both), len(positives))
        pairs = _paired(both, len(positives))
        later = np.arange(first, columns) >= self._after[first:columns, None]
        promising = (pairs > self._floor) & later[:, :, None, None]
        if literals == 2:
            both = _both(negatives, first, columns)
            self._tell(yes - _signed(np.diagonal(both), len(negatives)))
            self._tell((pairs - _paired(both, len(negatives)))[promising])
            return
        no = _signed(counts(negatives)[first:columns], len(negatives))
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
            self._below(_passing(positives, test), _passing(negatives, test), end, literals - 1)

    def _tell(self, differences: Ints, times: int = 1) -> None:
        high = differences[differences > self._floor]
        if len(high):
            np.add.at(self._tally, high - self._base - 1, times)
            self._floor = max(self._floor, int(high.max()) - self._span)


def _signed(counted: Ints, total: int) -> Ints:
    """[column, below] from the rows that have each bit."""
    return np.stack([counted, total - counted], axis=1)


def _paired(both: Ints, total: int) -> Ints:
    """[column, column, below, below] from the rows that have each pair of bits."""
    alone = np.diagonal(both)
    first, second = alone[:, None] - both, alone[None, :] - both
    none = total - alone[:, None] - second
    return np.stack([np.stack([both, first], axis=2), np.stack([second, none], axis=2)], axis=2)


def _both(rows: Words, first: int, columns: int) -> Ints:
    """How many rows have each pair of bits, from the first on."""
    total = np.zeros((columns - first, columns - first), np.int64)
    for start in range(0, len(rows), _CHUNK):
        bits = _unpacked(rows[start : start + _CHUNK])[:, first:columns].astype(np.float32)
        total += (bits.T @ bits).astype(np.int64)
    return total


def _unpacked(rows: Words) -> NDArray[np.uint8]:
    return np.unpackbits(rows.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")


def _passing(rows: Words, test: int) -> Words:
    """The rows that pass a test."""
    bits = (rows[:, test >> 7] >> np.uint64((test >> 1) & 63)) & np.uint64(1)
    passing: Words = rows[bits != np.uint64(test & 1)]
    return passing
