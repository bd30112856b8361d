"""The public tables behind an additive model: from a whole-number score to a residual.

A row's score is a sum of table entries, in steps of 1/256 of log-odds, clipped to ±8 log-odds. Its
residual and its curvature are looked up by the score, in units of 1/1024. So every row adds whole
numbers to every sum, and what one row can add is the largest entry of a table.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ONE = 256
"""Steps of a score in one unit of log-odds."""

LIMIT = 8 * ONE
"""Scores are clipped to −LIMIT … LIMIT before they are looked up."""

UNIT = 1024
"""Units of a residual in 1."""

CLIP = 614
"""The largest residual, in units: 0.6, rounded down. No row pulls harder than that."""

CURVE = UNIT // 4
"""The largest curvature of one row, in units."""


def _chances() -> NDArray[np.int64]:
    scores = np.arange(-LIMIT, LIMIT + 1) / ONE
    return np.rint(UNIT / (1 + np.exp(-scores))).astype(np.int64)


CHANCES = _chances()
"""The chance of the second label, in units, by score + LIMIT."""

RESIDUALS = np.stack(
    [-np.minimum(CHANCES, CLIP), np.minimum(UNIT - CHANCES, CLIP)],
).astype(np.int16)
"""By label (0 or 1) and score + LIMIT: label − chance, clipped to ±CLIP."""

CURVATURES = (CHANCES * (UNIT - CHANCES) // UNIT).astype(np.int16)
"""By score + LIMIT: chance · (1 − chance)."""


def log_odds(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores as log-odds.

    Examples:
        >>> log_odds(np.array([-256, 0, 512])).tolist()
        [-1.0, 0.0, 2.0]
    """
    return scores / ONE


def to_steps(odds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Log-odds as whole steps, none beyond LIMIT.

    Examples:
        >>> to_steps(np.array([0.5, -100.0])).tolist()
        [128, -2048]
    """
    return np.rint(np.clip(odds * ONE, -LIMIT, LIMIT)).astype(np.int64)
