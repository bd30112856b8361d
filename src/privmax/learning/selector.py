"""The base of private selectors of columns: one release, and the mask that it gives.

Proof:      docs/proofs/stable-selection.md
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privmax.best_items import BestItems
from privmax.errors import DataError
from privmax.learning.inputs import (
    check_types,
    count_width,
    mixed_columns,
    text_names,
    validate_quietly,
)
from privmax.learning.labels import read_column
from privmax.learning.pipelines import warn_of_pipeline
from privmax.ledger import Ledger
from privmax.ledger.events import ROW
from privmax.ledger.payment import Description
from privmax.ledger.request import Request, is_strict
from privmax.noise.coins import SYSTEM, Coins
from privmax.privacy import ADD_REMOVE, relation
from privmax.release import Release, answer
from privmax.sources.base import Source
from privmax.sources.containers.pandas import is_column, refuse_rounded
from privmax.warnings import warn_of_fits

_NOT_NUMBERS = (
    "y has a value that is not a finite number. Give numbers, such as 0 and 1 for classes."
)


class PrivateSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Selectors of columns share one release and a mask, which are here."""

    release_: Release
    ledger: Ledger | Request | None
    coins: Coins | None
    neighbors: str | None
    unit: str | None

    def fit(self, X: Any, y: Any) -> PrivateSelector:
        """Choose columns, at the cost of one release."""
        warn_of_pipeline(self)
        self.__dict__.pop("support_", None)  # a fit that fails leaves no mask of another shape
        self._check()
        if is_strict(self.ledger):
            features = count_width(X)

            def read() -> tuple[NDArray[np.float64], NDArray[Any]]:
                return self._validate(X, y, features)
        else:
            self._question(1)  # wrong parameters are told before X is looked at
            rows = self._validate(X, y)
            features = rows[0].shape[1]

            def read() -> tuple[NDArray[np.float64], NDArray[Any]]:
                return rows

        self._check_width(features)
        question = self._question(features)
        if self.ledger is None:
            warn_of_fits(question.privacy(), type(self).__name__)
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        release = answer(
            question,
            lambda stack: self._source(*read(), question, coins),
            self.ledger,
            description=Description(type(self).__name__, self._options(features)),
            coins=coins,
        )
        self.n_features_in_ = features  # what was wrong with X, if anything was, is not told
        if names := text_names(X):
            self.feature_names_in_ = np.array(names, dtype=object)
        self.release_, self.support_ = release, self._mask(release, features)
        self._warn(release)
        return self

    def transform(self, X: Any) -> Any:
        """Return X with the columns that are kept."""
        keep = super().transform
        return validate_quietly(lambda: keep(X), mixed_columns(X), schema=False)

    def _check(self) -> None:  # most have nothing to check beside the question
        """Refuse parameters that `_question` does not look at."""

    def _check_width(self, features: int) -> None:  # likewise
        """Refuse parameters that do not fit so many columns."""

    def _warn(self, release: Release) -> None:  # most have nothing to tell
        """Warn of a release without columns, when everything is in its place."""

    @abstractmethod
    def _question(self, features: int) -> BestItems:
        """Return what runs at what cost, for so many columns."""

    @abstractmethod
    def _source(
        self, X: NDArray[np.float64], y: NDArray[Any], question: BestItems, coins: Coins
    ) -> Source:
        """Return the candidates and their scores."""

    @abstractmethod
    def _options(self, features: int) -> dict[str, object]:
        """Return what a ledger writes down of a fit."""

    @abstractmethod
    def _mask(self, release: Release, features: int) -> NDArray[np.bool_]:
        """Return which columns are kept."""

    def _validate(
        self, X: Any, y: Any, features: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        check_types(X, schema=False)
        if isinstance(y, (list, tuple)) or is_column(y):
            # no label decides of what type others are
            y = read_column(refuse_rounded(y), "y").astype(object)
        X, y = validate_quietly(
            lambda: validate_data(self, X, y, dtype=np.float64, ensure_min_samples=1),
            mixed_columns(X),
            schema=False,
        )
        if features is not None and X.shape[1] != features:
            raise DataError("X does not have as many columns as its shape says.")
        return X, _as_numbers(y) if self._needs_numbers() else y

    def _needs_numbers(self) -> bool:
        return True

    def _rows(self) -> str:
        """Return the relation of rows that the cost is stated for."""
        return ADD_REMOVE if self.neighbors is None else relation(self.neighbors)

    def _unit(self) -> str:
        return ROW if self.unit is None else self.unit

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def _as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return y as floats, each value by itself."""
    numbers = None
    if y.dtype.kind in "biufO":
        with suppress(TypeError, ValueError, OverflowError):
            numbers = y.astype(np.float64)
    if numbers is None or not np.isfinite(numbers).all():
        raise DataError(_NOT_NUMBERS)
    return numbers
