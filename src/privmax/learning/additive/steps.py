"""What to add to a table, from the noisy sums of its cells: a Newton step that knows the noise.

It sees released numbers only, so it may use floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Links = NDArray[np.intp]
"""Pairs of cells that lie side by side, a row for each."""

DENSE = 512
"""Up to so many cells a matrix of all of them is small; above it is written as a sparse one."""


@dataclass(frozen=True)
class Prior:
    """What tables look like before any data: small, and smooth along numbers. Fixed in advance.

    size     variance of an entry, in log-odds
    slope    variance of the difference between neighbors
    rate     share of a step that is taken
    """

    size: float = 0.5
    slope: float = 0.25
    rate: float = 0.8


PRIOR = Prior()


def newton_step(
    residuals: Floats, curvatures: Floats, spread: float, links: Links, prior: Prior = PRIOR
) -> Floats:
    """Return the most likely change of a table.

    In a cell the sum of residuals is h·u plus noise, where h is the sum of curvatures and u the
    change that would fit best. The noise has a variance of h, as another sample of people would
    move the sum, plus that of the privacy noise.

    Args:
        residuals: Noisy sums of residuals.
        curvatures: Noisy sums of curvatures.
        spread: The variance of the noise on residuals.
        links: Which cells lie side by side.

    Examples:
        >>> none = chain(1)
        >>> newton_step(np.array([9e9, 0.0]), np.array([9e9, 9e9]), 1.0, none).round(3).tolist()
        [0.8, 0.0]
    """
    h = np.maximum(curvatures, 0.0)
    v = h + spread
    change = _solve(h**2 / v + 1 / prior.size, links, prior.slope, h * residuals / v)
    return np.asarray(prior.rate * change, np.float64)


def _solve(diagonal: Floats, links: Links, slope: float, right: Floats) -> Floats:
    """Solve (D + Σ over links of (e_i − e_j)(e_i − e_j)ᵀ / slope) x = right for x."""
    if not len(links):
        return right / diagonal
    size, (first, second) = len(diagonal), links.T
    rows = np.concatenate([first, second, first, second])
    columns = np.concatenate([first, second, second, first])
    values = np.repeat([1.0, -1.0], 2 * len(links))
    if size <= DENSE:
        joined = np.zeros((size, size))
        np.add.at(joined, (rows, columns), values)
        solved = np.linalg.solve(np.diag(diagonal) + joined / slope, right)
        return np.asarray(solved, np.float64)
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import spsolve

    sparse = coo_array((values, (rows, columns)), shape=(size, size)) / slope
    solution: Floats = spsolve((sparse + diags_array(diagonal)).tocsc(), right)
    return solution


def chain(length: int, isolated: int | None = None) -> Links:
    """Links of an ordered feature, each cell with the next; none to a cell without neighbors.

    Examples:
        >>> chain(3, isolated=2).tolist()
        [[0, 1]]
    """
    first = np.arange(max(length - 1, 0))
    if isolated is not None:
        first = first[(first != isolated) & (first + 1 != isolated)]
    return np.column_stack([first, first + 1])


def grid(first: Links, second: Links, shape: tuple[int, int]) -> Links:
    """Links of two features together, from those of each, which have so many cells.

    Examples:
        >>> grid(chain(2), chain(0), (2, 1)).tolist()
        [[0, 1]]
        >>> grid(chain(0), chain(2), (2, 2)).tolist()
        [[0, 1], [2, 3]]
    """
    rows, columns = shape
    down = (first[:, None, :] * columns + np.arange(columns)[:, None]).reshape(-1, 2)
    across = (np.arange(rows)[:, None, None] * columns + second).reshape(-1, 2)
    return np.vstack([down, across])
