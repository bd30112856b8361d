"""Cells of a column put into few groups, for tables of two columns together.

Groups follow from the schema and from released numbers only, so they may use floats.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW, MANY = 4, 8
"""Groups that the cells of a column are put into where it is part of a pair."""

CLEAR = 100
"""Curvature of all rows, over the noise on a sum of residuals, from which there are MANY groups.

Below it tables of 16 entries are better than tables of 64: both were tried on invented data.
"""

_RUNS = 1 << 10
"""More cells than this are first joined to so many runs."""


def join_cells(cells: int, most: int) -> tuple[int, ...]:
    """Put cells into at most so many groups of neighbors.

    Examples:
        >>> join_cells(5, 2), join_cells(2, 8)
        ((0, 0, 0, 1, 1), (0, 1))
    """
    if cells <= most:
        return tuple(range(cells))
    return tuple(cell * most // cells for cell in range(cells))


def merge_cells(entries: Sequence[int], weights: Sequence[int], most: int) -> tuple[int, ...]:
    """Put cells without an order into at most so many groups of like entries.

    The two groups that are next to each other by their mean entry, and whose merger moves entries
    least, become one, until there are few enough.

    Args:
        entries: What a released table adds in each cell.
        weights: Noisy sums of curvatures, which say how much the entry of a cell matters.
        most: The number of groups.

    Examples:
        >>> merge_cells([5, -90, 7, -88, 6], [9, 9, 9, 9, 9], 2)
        (1, 0, 1, 0, 1)
    """
    if len(entries) <= most:
        return tuple(range(len(entries)))
    order = np.argsort(np.asarray(entries), kind="stable")
    starts = np.unique(join_cells(len(order), _RUNS), return_index=True)[1]
    each = np.maximum(np.asarray(weights, np.float64)[order], 1.0)  # noise may leave less than none
    sizes = np.add.reduceat(each, starts)
    means = np.add.reduceat(each * np.asarray(entries)[order], starts) / sizes
    while len(starts) > most:
        both = sizes[1:] + sizes[:-1]
        left = int(np.argmin(sizes[1:] * sizes[:-1] / both * np.diff(means) ** 2))
        merged = means[left] * sizes[left] + means[left + 1] * sizes[left + 1]
        means[left], sizes[left] = merged / both[left], both[left]
        starts, means, sizes = (np.delete(one, left + 1) for one in (starts, means, sizes))
    groups = np.empty(len(order), np.intp)
    groups[order] = np.searchsorted(starts, np.arange(len(order)), side="right") - 1
    return tuple(groups.tolist())


def is_grouping(groups: Sequence[Any], cells: int, most: int) -> bool:
    """Return whether this puts more cells than groups into exactly so many of them.

    Examples:
        >>> is_grouping((0, 1, 0), 3, 2), is_grouping((0, 2, 0), 3, 2), is_grouping((0, 1), 2, 2)
        (True, False, False)
    """
    whole = all(type(one) is int for one in groups)
    return whole and len(groups) == cells > most and set(groups) == set(range(most))


def group_number(weights: Sequence[NDArray[np.int64]], rounds: int, noise: float) -> int:
    """Return how many groups columns have: fewer where noise is most of what tables would hold.

    Args:
        weights: Noisy sums of curvatures over rounds, of each column.
        rounds: How many rounds they were added up over.
        noise: The deviation of the noise on a sum of residuals, in the unit of curvatures.

    Examples:
        >>> group_number([np.array([9_000, 12_000])], 2, 100.0)
        8
        >>> group_number([np.array([9_000, 10_000])], 2, 100.0)
        4
    """
    total = sum(int(one.sum()) for one in weights)
    return MANY if total > CLEAR * noise * rounds else FEW
