"""A fitted regression: tables, the spread of errors, and their noisy counts with intervals.

Everything in it was released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.link import LIMIT
from privmax.learning.additive.model import AdditiveModel, Codes
from privmax.learning.regressor.targets import BINS, bin_width

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class RegressorModel:
    """Targets as a sum of tables, in steps; 4,096 of them are the distance of the bounds.

    tables   the additive model
    spread   of errors, about, in steps: as the last tally before the end had it
    errors   noisy counts of errors after the fit, bin by bin; None: without intervals
    """

    tables: AdditiveModel
    spread: int
    errors: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return repr(self.tables).replace("additive model", "additive regression")

    def values(self, codes: Codes, bounds: Floats) -> Floats:
        """Return the predicted target of each row, between the bounds."""
        return to_value(np.clip(self.tables.scores(codes), -LIMIT, LIMIT), bounds)

    def margins(self, coverage: float) -> tuple[float, float]:
        """Return by how many steps so many errors are at most below and above a prediction.

        Both are ends of bins, on the far side; infinite where it may be any of the errors in the
        first bin or the last.

        Args:
            coverage: The share of errors, between 0 and 1.

        Examples:
            >>> counts = [0] * 15 + [50, 50] + [0] * 15
            >>> RegressorModel(AdditiveModel(0, {}), 100, tuple(counts)).margins(0.9)
            (-25.0, 25.0)
        """
        counts = np.array(self.errors, np.float64)
        spare = (1 - coverage) / 2 * max(counts.sum(), 0.0)
        below = int(np.argmax(np.append(np.cumsum(counts) > spare, True)))
        above = int(np.argmax(np.append(np.cumsum(counts[::-1]) > spare, True)))
        width, half = bin_width(self.spread), BINS // 2
        low = -np.inf if below in (0, BINS) else (below - half) * width
        high = np.inf if above in (0, BINS) else (half - above) * width
        return float(low), float(high)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        errors = None if self.errors is None else list(self.errors)
        return {"spread": self.spread, "errors": errors, "tables": self.tables.to_json()}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return what `to_json` wrote.

        Examples:
            >>> model = RegressorModel(AdditiveModel(3, {}), 100, (0,) * 32)
            >>> RegressorModel.from_json(model.to_json()) == model
            True
        """
        errors = written["errors"]
        return cls(
            AdditiveModel.from_json(written["tables"]),
            written["spread"],
            None if errors is None else tuple(errors),
        )


def to_value(scores: NDArray[Any], bounds: Floats) -> Floats:
    """Return scores as targets.

    Examples:
        >>> to_value(np.array([-2048, 0, 2048]), np.array([0.0, 350.0])).tolist()
        [0.0, 175.0, 350.0]
    """
    low, high = bounds
    share = (scores + LIMIT) / (2 * LIMIT)
    values: Floats = low * (1 - share) + high * share
    return values
