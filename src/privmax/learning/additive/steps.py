"""What to add to a table, from the noisy sums of its cells: a Newton step that knows the noise.

It sees released numbers only, so it may use floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
    residuals: Floats, curvatures: Floats, spread: float, links: Floats, prior: Prior = PRIOR
) -> Floats:
    """The most likely change of a table.

    In a cell the sum of residuals is h·u plus noise, where h is the sum of curvatures and u the
    change that would fit best. The noise has a variance of h, as another sample of people would
    move the sum, plus that of the privacy noise.

    Args:
        residuals: Noisy sums of residuals.
        curvatures: Noisy sums of curvatures.
        spread: The variance of the noise on residuals.
        links: For each pair of cells that lie side by side a row, +1 and −1 in their places.

    Examples:
        >>> none = np.zeros((0, 2))
        >>> newton_step(np.array([9e9, 0.0]), np.array([9e9, 9e9]), 1.0, none).round(3).tolist()
        [0.8, 0.0]
    """
    h = np.maximum(curvatures, 0.0)
    v = h + spread
    matrix = np.diag(h**2 / v + 1 / prior.size) + links.T @ links / prior.slope
    change = np.linalg.solve(matrix, h * residuals / v)
    return np.asarray(prior.rate * change, np.float64)


def chain(length: int, isolated: int | None = None) -> Floats:
    """Links of an ordered feature, each cell with the next; none to a cell that stands alone.

    Examples:
        >>> chain(3, isolated=2).tolist()
        [[1.0, -1.0, 0.0]]
    """
    places = [cell for cell in range(length - 1) if isolated not in (cell, cell + 1)]
    first, rows = np.array(places, np.intp), np.arange(len(places))
    links = np.zeros((len(places), length))
    links[rows, first] = 1
    links[rows, first + 1] = -1
    return links


def grid(first: Floats, second: Floats) -> Floats:
    """Links of two features together, from those of each.

    Examples:
        >>> grid(chain(2), chain(1)).tolist()
        [[1.0, -1.0]]
    """
    return np.vstack(
        [np.kron(first, np.eye(second.shape[1])), np.kron(np.eye(first.shape[1]), second)]
    )
