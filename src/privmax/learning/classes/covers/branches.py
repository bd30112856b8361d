"""The input of both walks: a branch of the search, and what to count in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]


class Branch(NamedTuple):
    """A node with one test more, and all below it.

    Attributes:
        positives: The positive rows that the node covers, a bit for each column.
        negatives: The negative rows that it covers.
        test: The test that is added: 2 · column for "at or above", one more for "below".
        literals: How many later tests may follow.
    """

    positives: Words
    negatives: Words
    test: int
    literals: int

    def __repr__(self) -> str:
        return "Branch(<private>)"


class Goal(NamedTuple):
    """The conjunctions to count, and where to count them.

    Attributes:
        floor: Conjunctions with a difference above it are counted.
        span: Those that are further than this below the best so far need not be.
        after: Of every column, the first column of the next feature.
        sizes: [column, k] how many sets of at most k tests there are from this column on.
        tally: A difference x > floor is counted at tally[x − floor − 1].
        stop: Becomes True where the answer is no longer wanted.
        left: How many steps may still be taken; below 0 the walk ends, and its counts are not
            complete. A step is about what it takes to count 64 rows.
    """

    floor: int
    span: int
    after: Ints
    sizes: Ints
    tally: Ints
    stop: Flags
    left: Ints

    def __repr__(self) -> str:
        return "Goal(<private>)"
