"""Hypotheses in a list: predictors made elsewhere, or the columns of a matrix of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.learning.classes.contract import Codes, Counts, Shape, Tunable, blocks
from privmax.learning.labels import call_quietly


@dataclass(frozen=True)
class Explicit(Tunable):
    """The predictors given, or the columns of X as predictions.

    Without any predictors, hypothesis j says of a row what is in column j of X, the code of a
    label.

    Args:
        predictors: Objects with a `predict`, or functions, from rows of X to codes of labels (0, 1,
            … by position in `labels`). They must be public: made without the data they are now
            tried on. A fitted learner can be pickled if they can.

    Examples:
        >>> import numpy as np
        >>> X, y = np.array([[0, 1], [1, 1]]), np.array([1, 1])
        >>> Explicit().score(X, y, Shape(features=2, labels=2)).maximum()  # what column 1 says
        2
    """

    predictors: Sequence[Any] | None = None

    def size(self, shape: Shape) -> int:
        if self.predictors is None:
            return shape.features
        if not isinstance(self.predictors, (list, tuple)) or not self.predictors:
            raise ParameterError(
                "predictors",
                self.predictors,
                "it must be a list of at least one predictor",
                "List them.",
            )
        for one in self.predictors:
            if isinstance(one, type) or not (hasattr(one, "predict") or callable(one)):
                raise ParameterError(
                    "predictors",
                    one,
                    "a predictor must have a predict, or be a function",
                    "List fitted models.",
                )
        return len(self.predictors)

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Counts:
        counts = np.zeros(self.size(shape), np.int64)
        for rows, labels in blocks(X, y):
            if self.predictors is None:
                counts += (_codes(rows, rows.shape, shape) == labels[:, None]).sum(axis=0)
                continue
            for number in range(len(counts)):
                counts[number] += np.count_nonzero(
                    self.hypothesis(number, shape).predict(rows) == labels
                )
        return Counts(counts)

    def hypothesis(self, number: int, shape: Shape) -> ColumnSays | PredictorSays:
        if self.predictors is None:
            return ColumnSays(number, shape)
        return PredictorSays(number, self.predictors[number], shape)


@dataclass(frozen=True)
class ColumnSays:
    """The label is what one column says."""

    column: int
    shape: Shape

    def __repr__(self) -> str:
        return f"<what column {self.column} says>"

    def predict(self, X: NDArray[Any]) -> Codes:
        return _codes(X[:, self.column], (len(X),), self.shape)


@dataclass(frozen=True)
class PredictorSays:
    """The label is what one of the listed predictors says."""

    number: int
    predictor: Any
    shape: Shape

    def __repr__(self) -> str:
        return f"<what predictor {self.number} says>"

    def predict(self, X: NDArray[Any]) -> Codes:
        says: Callable[[NDArray[Any]], Any] = getattr(self.predictor, "predict", self.predictor)
        said = call_quietly(lambda: np.asarray(says(X)), f"Predictor {self.number} failed")
        return _codes(said, (len(X),), self.shape)


def _codes(values: NDArray[Any], form: tuple[int, ...], shape: Shape) -> Codes:
    """Predictions as codes, if that is what they are."""
    if values.shape != form:
        raise DataError("A predictor did not give one label for each row.")
    if (
        values.dtype.kind not in "biuf"
        or not ((values >= 0) & (values < shape.labels) & (values == values // 1)).all()
    ):
        raise DataError(
            f"A prediction is not the code of a label, a whole number from 0 to "
            f"{shape.labels - 1}: the position of "
            "the label in `labels`. Wrap predictors that return labels in a function that looks "
            "their positions up."
        )
    return values.astype(np.intp)
