"""Targets of a regression as whole numbers, and what an error adds to the sums of a round.

A target is clipped to public bounds and put on a grid of 1,024 cells between them; scores count
quarters of a cell. The tables of a link say what an error adds, and keep to the same bounds as
those for labels, whatever the spread of errors is.

Proof:      docs/proofs/regressor.md
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.learning.additive.fitting import Sums
from privmax.learning.additive.link import CLIP, CURVE, LIMIT, Link
from privmax.learning.kinds import Number

CELLS = 1 << 10
"""Cells between the bounds of targets."""

STEPS = 2 * LIMIT // CELLS
"""Steps of a score in one cell."""

PLACES = 4 * LIMIT
"""Places in the tables of a link: an error is a place less half of them, in steps."""

SQUARED, ABSOLUTE = "squared", "absolute"

REACH = {SQUARED: (1.25, 3.0), ABSOLUTE: (0.625, 0.625)}
"""In spreads: errors beyond it pull no harder. The least, and the most where noise is small. Fixed
on invented data.
"""

BINS = 32
"""Counts of a tally of errors, half of them below 0."""

FINE = 4
"""Bins in one spread."""

Noisy = NDArray[np.int64]


def read_loss(name: str, value: object) -> str:
    """Read the parameter `loss`."""
    if isinstance(value, str) and value in REACH:
        return value
    raise ParameterError(
        name, value, f"it must be {SQUARED} or {ABSOLUTE}",
        "Use squared for means, or absolute for medians.",
    )  # fmt: skip


def read_bounds(targets: object) -> NDArray[np.float64]:
    """Return the declared bounds of targets.

    Raises:
        ParameterError: They are not two ascending numbers.

    Examples:
        >>> read_bounds((0, 350)).tolist()
        [0.0, 350.0]
    """
    remedy = "For example targets=(0, 350). Do not compute them from the data."
    if targets is None:
        raise ParameterError.required("targets", "both bounds must be public", remedy)
    pair = isinstance(targets, (list, tuple)) or (
        isinstance(targets, np.ndarray) and targets.shape == (2,)
    )
    listed: list[Any] = list(targets) if pair else []  # type: ignore[call-overload]
    try:
        low, high = listed
        target_column(np.array([low, high], object))
        if (float(high) - float(low)) / (2 * LIMIT) < sys.float_info.min:
            raise ValueError("no float is one step of a score")
    except (ParameterError, ValueError):
        raise ParameterError(
            "targets", targets, "it must be two numbers, the lower first, with room for "
            f"{CELLS:,} floats between them", remedy,
        ) from None  # fmt: skip
    return np.array([low, high], np.float64)


def target_column(bounds: NDArray[Any]) -> Number:
    """Return the grid of targets, as a column: its first cell is that of missing ones.

    Examples:
        >>> target_column(np.array([0.0, 1024.0])).codes([-5, 0.5, 2000, None]).tolist()
        [1, 1, 1024, 0]
    """
    low, high = bounds.tolist()
    return Number(low, high, cells=CELLS, missing=True).with_name("y")


def place_targets(cells: Any) -> Any:
    """Return cells of that column as targets of a link: their middle; below 0: it is missing.

    Examples:
        >>> place_targets(np.array([0, 1, 1024])).tolist()
        [-2, 2, 4094]
    """
    return (cells - 1) * STEPS + STEPS // 2


def error_link(spread: int, reach: float) -> Link:
    """Return what errors add, whose spread is about so many steps.

    An error adds itself, in units such that the reach is CLIP, and no more than that. Its
    curvature is CURVE within reach, and less where it is farther away: what it adds over itself, as
    in least squares with new weights in every round.

    Args:
        spread: In steps; it was released, or is public.
        reach: In spreads; likewise.

    Examples:
        >>> link = error_link(100, 1.25)
        >>> [int(link.residuals[PLACES // 2 + error]) for error in (-4096, -50, 0, 125)]
        [-614, -246, 0, 614]
    """
    end = max(round(reach * spread), 1)
    errors = np.arange(PLACES) - PLACES // 2
    residuals = np.rint(np.clip(errors / end, -1, 1) * CLIP).astype(np.int16)
    curvatures = np.rint(CURVE * end / np.maximum(np.abs(errors), end)).astype(np.int16)
    return Link(-1, residuals, curvatures, CLIP * spread / end, CURVE, spread)


def bin_width(spread: int) -> int:
    """Return the width of a bin, in steps."""
    return max(spread // FINE, 1)


def bin_errors(tally: Sums, spread: int) -> Noisy:
    """Return how many errors are in each bin, from how many are at each place.

    The first bin and the last have all errors beyond them.

    Examples:
        >>> tally = np.zeros(PLACES, int)
        >>> tally[[0, PLACES // 2, PLACES // 2 + 30]] = [3, 1, 2]
        >>> np.flatnonzero(bin_errors(tally, 100)).tolist()
        [0, 16, 17]
    """
    errors = np.arange(PLACES) - PLACES // 2
    bins = np.clip(errors // bin_width(spread) + BINS // 2, 0, BINS - 1)
    counts = np.zeros(BINS, np.int64)
    np.add.at(counts, bins, tally)
    return counts
