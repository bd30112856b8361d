"""Newton steps for a table, from the noisy sums of its cells, that allow for the noise.

It sees released numbers only, so it may use floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.link import LIMIT, ONE

Floats = NDArray[np.float64]

Links = NDArray[np.intp]
"""Pairs of cells that lie side by side, a row for each."""

CERTAIN = 2
"""In deviations of the noise: curvatures below it are not taken for those of rows."""

DENSE = 512
"""Up to so many cells a matrix of all of them is small; above it is written as a sparse one."""


@dataclass(frozen=True)
class Prior:
    """Tables as expected before any data: small, and smooth along numbers. Fixed in advance.

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


def carry_noise(
    before: Floats | None,
    curvatures: Floats,
    spread: float,
    links: Links,
    prior: Prior = PRIOR,
    step: float = ONE,
    blur: float = 0.0,
) -> Floats | None:
    """Return the covariance of the noise in a table after a step, to first order, in steps.

    The step adds noise to the table, and takes part of what earlier steps added out again: the
    sums that it sees have it, in cells that have rows. Curvatures within CERTAIN deviations of
    their own noise may be of no row, and then nothing is taken out. With no cells side by side it
    is the variance of each entry.

    Args:
        before: The same before the step; None: there was no step.
        curvatures: Noisy sums of curvatures.
        spread: The variance of the noise on residuals.
        links: Which cells lie side by side.
        prior: What tables look like before any data.
        step: Steps in 1.
        blur: The variance of the noise on curvatures.

    Returns:
        None for more than DENSE cells side by side.

    Examples:
        >>> after = carry_noise(None, np.array([100.0]), 25.0, chain(1), step=1)
        >>> again = carry_noise(after, np.array([100.0]), 25.0, chain(1), step=1)
        >>> after.round(5).tolist(), again.round(5).tolist()  # a fourth of 25 / 100², nearly
        ([0.00152], [0.0016])
    """
    h = np.maximum(curvatures, 0.0)
    v = h + spread
    diagonal, size = h**2 / v + 1 / prior.size, len(h)
    seen = np.maximum(h - CERTAIN * np.sqrt(blur), 0.0)
    if not len(links):
        gain = prior.rate * h / v / diagonal
        kept = 0.0 if before is None else (1 - gain * seen) ** 2 * before
        return np.asarray(kept + gain**2 * spread * step**2, np.float64)
    if size > DENSE:
        return None
    gains = prior.rate * np.linalg.solve(_join(diagonal, links, prior.slope), np.diag(h / v))
    added: Floats = gains @ gains.T * (spread * step**2)
    if before is None:
        return added
    kept = np.eye(size) - gains * seen
    return np.asarray(kept @ before @ kept.T + added, np.float64)


def deviations(covariance: Floats) -> NDArray[np.int64]:
    """Return the deviations of a covariance, or of variances, as whole steps, rounded up.

    Examples:
        >>> deviations(np.array([4.0, 4.1])).tolist(), deviations(np.diag([9.0, 0.0])).tolist()
        ([2, 3], [3, 0])
    """
    variances = np.diag(covariance) if covariance.ndim > 1 else covariance
    return np.ceil(np.sqrt(np.maximum(variances, 0.0))).astype(np.int64)


def to_steps(change: NDArray[np.float64], step: float = ONE) -> NDArray[np.int64]:
    """Round a change to whole steps, none beyond LIMIT.

    Args:
        change: Of entries: log-odds, for labels.
        step: Steps in 1.

    Examples:
        >>> to_steps(np.array([0.5, -100.0])).tolist()
        [128, -2048]
    """
    return np.rint(np.clip(change * step, -LIMIT, LIMIT)).astype(np.int64)


def _solve(diagonal: Floats, links: Links, slope: float, right: Floats) -> Floats:
    """Solve (D + Σ over links of (e_i − e_j)(e_i − e_j)ᵀ / slope) x = right for x."""
    if not len(links):
        return right / diagonal
    size = len(diagonal)
    if size <= DENSE:
        solved = np.linalg.solve(_join(diagonal, links, slope), right)
        return np.asarray(solved, np.float64)
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import spsolve

    rows, columns, values = _entries(links)
    sparse = coo_array((values, (rows, columns)), shape=(size, size)) / slope
    solution: Floats = spsolve((sparse + diags_array(diagonal)).tocsc(), right)
    return solution


def _join(diagonal: Floats, links: Links, slope: float) -> Floats:
    """Return the matrix that `_solve` solves for."""
    rows, columns, values = _entries(links)
    joined = np.zeros((len(diagonal), len(diagonal)))
    np.add.at(joined, (rows, columns), values)
    matrix: Floats = np.diag(diagonal) + joined / slope
    return matrix


def _entries(links: Links) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return rows, columns and values of Σ over links of (e_i − e_j)(e_i − e_j)ᵀ."""
    first, second = links.T
    rows = np.concatenate([first, second, first, second])
    columns = np.concatenate([first, second, second, first])
    return rows, columns, np.repeat([1.0, -1.0], 2 * len(links))


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
