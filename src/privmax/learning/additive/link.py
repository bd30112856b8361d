"""The public tables behind an additive model: from a whole-number score to a residual.

A row's score is a sum of table entries, in steps of 1/256 of log-odds, clipped to ±8 log-odds. Its
residual and its curvature are looked up by the score, in units of 1/1024. So every row adds whole
numbers to every sum, and what one row can add is the largest entry of a table. Other targets than
labels have a link of their own, whose tables keep to the same bounds.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, eq=False)
class Link:
    """Public tables of what a row adds to the sums of its cells, by its score and its target.

    The place of a row in them is factor · score + target, with the score clipped to ±LIMIT, and
    counted from 0.

    factor       of the score
    residuals    by place: whole numbers in ±CLIP
    curvatures   by place: whole numbers from 0 to CURVE
    pull         units of a residual in 1
    bend         units of a curvature in 1
    step         steps of a score in 1
    """

    factor: int
    residuals: NDArray[np.int16]
    curvatures: NDArray[np.int16]
    pull: float = UNIT
    bend: float = UNIT
    step: float = ONE

    @property
    def offset(self) -> int:
        """The place of a score of 0, but for the target."""
        return abs(self.factor) * LIMIT

    def places(self, scores: Any, targets: Any) -> Any:
        """Return the place of each row; arrays of NumPy and columns of Ibis are the same here.

        Examples:
            >>> LOGISTIC.places(np.array([-9_999, 0, 1]), np.array([1, 0, 1])).tolist()
            [1, 4096, 4099]
        """
        return scores.clip(-LIMIT, LIMIT) * self.factor + (targets + self.offset)


BINS = 10
"""Counts of labels by chance, which are as many for each label."""

LOGISTIC = Link(2, RESIDUALS.T.ravel(), np.repeat(CURVATURES, 2))
"""For labels, which are targets of 0 and 1; a score is log-odds of the second."""


def bin_labels(tally: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return [bin, label]: how many rows have a chance in this bin, from those at each place.

    Examples:
        >>> tally = np.zeros(len(LOGISTIC.residuals), int)
        >>> tally[LOGISTIC.places(np.array([-9_999, 0, 9_999]), np.array([1, 0, 1]))] = [2, 3, 4]
        >>> counts = bin_labels(tally)
        >>> counts[0].tolist(), counts[5].tolist(), counts[9].tolist(), int(counts.sum())
        ([0, 2], [3, 0], [0, 4], 9)
    """
    bins = np.minimum(CHANCES * BINS // UNIT, BINS - 1)
    counts = np.zeros((BINS, 2), np.int64)
    np.add.at(counts, bins, tally.reshape(-1, 2))
    return counts


def log_odds(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores as log-odds.

    Examples:
        >>> log_odds(np.array([-256, 0, 512])).tolist()
        [-1.0, 0.0, 2.0]
    """
    return scores / ONE
