"""Sums by cell, compiled: what `np.bincount` does, without turning cells and weights into 64 bits.

Needs numba (the extra `fast`). It adds the same whole numbers, so results are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.kernels import entry


@entry
def add_up(codes: NDArray[Any], weights: NDArray[np.int16], sums: NDArray[np.int64]) -> None:
    """Add every weight to the sum of its cell.

    Args:
        codes: The cell of every row.
        weights: What every row adds.
        sums: Four rows of sums, by cell: neighboring rows of data go to different ones, so that
            none waits for the one before. The caller adds the four up.
    """
    rows = len(codes)
    even = rows - rows % 4
    for row in range(0, even, 4):
        sums[0, codes[row]] += weights[row]
        sums[1, codes[row + 1]] += weights[row + 1]
        sums[2, codes[row + 2]] += weights[row + 2]
        sums[3, codes[row + 3]] += weights[row + 3]
    for row in range(even, rows):
        sums[0, codes[row]] += weights[row]


@entry
def look_up(
    scores: NDArray[np.int32],
    targets: NDArray[np.int16],
    residuals: NDArray[np.int16],
    factor: int,
    limit: int,
    result: NDArray[np.int16],
) -> None:
    """Look up the residual of every row.

    Args:
        scores: Of the rows.
        targets: Of the rows.
        residuals: The public table of a link.
        factor: Of scores, in the places of that table.
        limit: Where scores are clipped.
        result: Where residuals are written.
    """
    offset = abs(factor) * limit
    for row in range(len(scores)):
        clipped = min(max(scores[row], -limit), limit)
        result[row] = residuals[factor * clipped + offset + targets[row]]
