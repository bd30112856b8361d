"""Columns that go along with the label each by itself: marginal screening.

    Columns and label are clipped to public bounds and scaled to −1 … 1. A row adds x·y, in 64ths,
    to the sum of each column; the score of a column is the size of its sum. One row moves a sum by
    at most 64 steps, either way.

Proof:      docs/proofs/stable-selection.md
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.best_items import BestItems
from privmax.errors import ParameterError
from privmax.learning.selector import PrivateSelector
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import Coins
from privmax.numbers import Number, whole
from privmax.privacy import REPLACE
from privmax.release import Release
from privmax.rounds import choose_rounds
from privmax.sources.memory import MemorySource
from privmax.universe import Universe

STEPS = 64
"""Parts of 1 to which products are rounded."""

_ENTRIES = 1 << 20
"""Entries of X that are looked at together."""

Bound = float | NDArray[np.float64]


class MarginalSelector(PrivateSelector):
    """Keep the `size` columns with the largest sums of x·y, under differential privacy.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again. Bounds are public: choose them from what you
    know, never from the data. A column counts from the middle of its bounds, and so does the
    label: bounds around the usual value work best.

    `fit` sets `support_`, the mask, and `release_`, whose items are the numbers of the columns.

    Args:
        size: How many columns to keep.
        epsilon: What one `fit` costs; a float means the decimal that it prints as.
        delta: Probability with which the guarantee may fail; may be 0.
        low: Of the columns: one number for all, or one each.
        high: Likewise.
        label_low: Of y.
        label_high: Of y.
        mechanism: A mechanism object for neighbors="replace", instead of epsilon and delta; or the
            name of one beside them. By default several columns are chosen by rounds of the
            exponential mechanism.
        neighbors: "add-remove" (the default): one row more or less; "replace": another row, which
            needs twice the lead.
        unit: What the cost hides, for the ledger: "row" by default.
        ledger: The privacy budget that covers every `fit`; or `ledger.request("nightly", …)`.
        coins: Source of random bits; for tests only.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(5000, 6))
        >>> bounds = {"low": -1, "high": 1, "label_low": -2, "label_high": 2}
        >>> selector = MarginalSelector(2, epsilon=1, **bounds).fit(X, X[:, 1] - X[:, 4])
        >>> selector.get_support(indices=True).tolist()
        [1, 4]
    """

    def __init__(
        self,
        size: int = 1,
        epsilon: Number | None = None,
        delta: Number = 0,
        *,
        low: Any = None,
        high: Any = None,
        label_low: float | None = None,
        label_high: float | None = None,
        mechanism: Mechanism | str | None = None,
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.size = size
        self.epsilon = epsilon
        self.delta = delta
        self.low = low
        self.high = high
        self.label_low = label_low
        self.label_high = label_high
        self.mechanism = mechanism
        self.neighbors = neighbors
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def _question(self, features: int) -> BestItems:
        _bounds("low", self.low, "high", self.high, None)
        _bounds("label_low", self.label_low, "label_high", self.label_high, 1)
        is_made = self.mechanism is not None and not isinstance(self.mechanism, str)
        if is_made and getattr(self.mechanism, "neighbors", REPLACE) != REPLACE:
            raise ParameterError(
                "mechanism", self.mechanism, "one row moves sums either way",
                'Make it with neighbors="replace".',
            )  # fmt: skip
        return BestItems(
            epsilon=self.epsilon,
            delta=None if is_made and not self.delta else self.delta,
            given=self.mechanism,
            neighbors=None if is_made else REPLACE,
            k=min(whole("size", self.size), features),
            universe=Universe(features),
            unit=self._unit(),
            rows=self._rows(),
            choose=choose_rounds,
        )

    def _check_width(self, features: int) -> None:
        _bounds("low", self.low, "high", self.high, features)
        _bounds("label_low", self.label_low, "label_high", self.label_high, 1)
        number = getattr(self.mechanism, "k", None)
        if number not in (None, min(self.size, features)):
            raise ParameterError(
                "size", self.size, f"the mechanism releases {number} of {features} columns",
                "Make it with k=size.",
            )  # fmt: skip

    def _source(
        self, X: NDArray[np.float64], y: NDArray[Any], question: BestItems, coins: Coins
    ) -> MemorySource:
        low, high = _bounds("low", self.low, "high", self.high, X.shape[1])
        least, most = _bounds("label_low", self.label_low, "label_high", self.label_high, 1)
        label = _scale(y, least, most)[:, None]
        sums = np.zeros(X.shape[1], np.int64)
        many = max(1, _ENTRIES // X.shape[1])
        for start in range(0, len(X), many):
            rows = slice(start, start + many)
            # Whatever is rounded here, a row adds whole numbers from −STEPS to STEPS.
            parts = np.rint(STEPS * _scale(X[rows], low, high) * label[rows])
            sums += np.clip(parts, -STEPS, STEPS).astype(np.int64).sum(axis=0)
        steps = 2 * STEPS if self._rows() == REPLACE else STEPS
        return MemorySource(np.abs(sums), universe=len(sums), sensitivity=steps)

    def _options(self, features: int) -> dict[str, object]:
        bounds = {
            name: np.asarray(getattr(self, name), np.float64).tolist()
            for name in ("low", "high", "label_low", "label_high")
        }
        return {
            "size": self.size, "features": features, "bounds": repr(bounds),
            "neighbors": self.neighbors,
        }  # fmt: skip

    def _mask(self, release: Release, features: int) -> NDArray[np.bool_]:
        mask = np.zeros(features, np.bool_)
        mask[list(release.items)] = True
        return mask

    def _warn(self, release: Release) -> None:
        if not release.items:
            warnings.warn("No answer: no column was released, so none is kept.", stacklevel=3)


def _bounds(
    low_name: str, low: Any, high_name: str, high: Any, width: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Public bounds, finite and apart; `width`: how many there may be, beside one for all."""
    read = []
    for name, value in ((low_name, low), (high_name, high)):
        if value is None:
            raise ParameterError.required(name, "bounds are public", "Give the usual range.")
        try:
            bound = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise ParameterError(name, value, "it must be a number, or a list of them") from None
        if bound.ndim > 1 or not np.isfinite(bound).all():
            raise ParameterError(name, value, "it must be a finite number, or one per column")
        if width is not None and bound.size not in (1, width):
            raise ParameterError(
                name, f"<{bound.size} numbers>", f"there are {width} columns", "Give one for each."
            )
        read.append(bound)
    if len({bound.size for bound in read} - {1}) > 1:
        raise ParameterError(
            low_name, f"<{read[0].size} numbers>", f"{high_name} has {read[1].size}",
            "Give one for each column, or one for all.",
        )  # fmt: skip
    if (read[0] >= read[1]).any():
        raise ParameterError(low_name, low, f"it must be below {high_name}")
    with np.errstate(all="ignore"):
        middle, half = _center(read[0], read[1])
    if not (np.isfinite(middle) & np.isfinite(half) & (half > 0)).all():
        raise ParameterError(
            low_name, low, f"floats cannot represent the middle between it and {high_name}",
            "Give bounds of a usual size.",
        )  # fmt: skip
    return read[0], read[1]


def _center(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the middle between bounds, and how far they are from it."""
    return (low + high) / 2, (high - low) / 2


def _scale(values: NDArray[np.float64], low: Any, high: Any) -> NDArray[np.float64]:
    """Clip values to the bounds, which become −1 and 1."""
    middle, half = _center(low, high)
    with np.errstate(all="ignore"):  # a warning would tell of a value that is far outside
        scaled: NDArray[np.float64] = np.clip((values - middle) / half, -1, 1)
    return scaled
