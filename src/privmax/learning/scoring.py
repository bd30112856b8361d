"""The amount that one example adds to the total of one model.

It is a whole number from 0 to `steps`, and depends on that example alone.

Proof:      docs/proofs/models.md
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from numbers import Number
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.labels import is_missing
from privmax.learning.labels import call_quietly, read_column, refuse_masked
from privmax.learning.rows import copy_all
from privmax.numbers import Number as Given
from privmax.numbers import exact, positive
from privmax.sources.columns import least_float
from privmax.sources.scale import GRID_STEPS

MOST_STEPS = 1 << 16

Score = str | Callable[[Any, Any], Any]
Bounds = tuple[Given, Given] | None


class ScoringRule(Protocol):
    """A public way to score.

    Attributes:
        steps: The most one example adds.
        step: What one step is worth, in units of the score.
    """

    steps: int
    step: Fraction

    def total(self, y: Any, predictions: Any, who: str) -> int:
        """Return what some rows add for the model named `who`."""
        ...


def make_rule(score: Score, bounds: Bounds, resolution: Given | None) -> ScoringRule:
    """Return the rule for these options.

    Raises:
        ParameterError: The options do not make a rule.

    Examples:
        >>> make_rule("accuracy", None, None).steps
        1
        >>> make_rule(lambda y, said: -abs(y - said), (-10, 0), 1).steps
        10
    """
    if callable(score):
        return Clipped(score, bounds, resolution)
    if score != "accuracy":
        raise ParameterError(
            "score", score, "it must be accuracy or a function of labels and predictions",
            "For example lambda y, p: -abs(y - p), with the bounds (-10, 0).",
        )  # fmt: skip
    for name, value in (("bounds", bounds), ("resolution", resolution)):
        if value is not None:
            raise ParameterError(name, value, "accuracy needs none", "Leave it out.")
    return Accuracy()


def find_score(scoring: object, score: Score, bounds: Bounds = None) -> tuple[Score, str | None]:
    """Return the score that a name of scikit-learn stands for, and that name.

    Args:
        scoring: The name; None: `score` says it.
        score: What was given beside it.
        bounds: Of the score, which all but accuracy need.

    Returns:
        What `make_rule` takes, and the name for a ledger; None: `score` is that.

    Raises:
        ParameterError: It is not a sum over rows, or not known; or both are given.

    Examples:
        >>> find_score("accuracy", "accuracy")
        ('accuracy', 'accuracy')
        >>> score, name = find_score("neg_mean_absolute_error", "accuracy", (-10, 0))
        >>> score([1, 2], [1, 5]).tolist()
        [-0.0, -3.0]
        >>> find_score("f1", "accuracy")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: scoring='f1' is not allowed: it is a ratio of counts of ...
    """
    if scoring is None:
        return score, None
    if score != "accuracy":
        raise ParameterError("scoring", scoring, "score already sets it", "Give one or the other.")
    if not isinstance(scoring, str):
        raise ParameterError(
            "scoring", type(scoring).__name__, "it must be a name: a scorer of scikit-learn sees "
                                               "all rows at once, and one row could change what "
                                               "it says of the others",
            "Give score=, a function that has a number for each row, with bounds=.",
        )  # fmt: skip
    if scoring in _ACCURATE:
        return "accuracy", "accuracy"
    if scoring in _PER_ROW:
        if bounds is None:
            allowed = f"{scoring} needs them, as they say what one example adds"
            remedy = "For example bounds=(-10, 0), from what you know and never from the data."
            raise ParameterError("bounds", None, allowed, remedy)
        return _PER_ROW[scoring], scoring
    reason = next((why for names, why in _NOT_PER_ROW.items() if re.match(names, scoring)), None)
    known = [*_ACCURATE, *_PER_ROW]
    if reason is None:
        from difflib import get_close_matches

        close = get_close_matches(scoring, known, n=1)
        remedy = f'Did you mean "{close[0]}"?' if close else "Or give score=, a function."
        raise ParameterError("scoring", scoring, f"it must be one of {', '.join(known)}", remedy)
    raise ParameterError(
        "scoring", scoring, f"it is {reason}, so it is not a sum over rows that one row changes "
                            "by a known amount" if reason not in _FUNCTIONS else f"it is {reason}",
        f"Use one of {', '.join(known)}, or give score=, a function, with bounds=.",
    )  # fmt: skip


def _absolute_error(y: Any, predictions: Any) -> NDArray[np.float64]:
    return -np.abs(_differences(y, predictions))


def _squared_error(y: Any, predictions: Any) -> NDArray[np.float64]:
    return -(_differences(y, predictions) ** 2)


def _differences(y: Any, predictions: Any) -> NDArray[np.float64]:
    one, other = np.asarray(y, np.float64), np.asarray(predictions, np.float64)
    if one.shape != other.shape:  # a column beside a row would become a table of all pairs
        raise ValueError("y and the predictions have different shapes")
    return one - other


_ACCURATE = ("accuracy", "neg_zero_one_loss")

_PER_ROW: dict[str, Callable[[Any, Any], Any]] = {
    "neg_mean_absolute_error": _absolute_error,
    "neg_mean_squared_error": _squared_error,
}
"""Names of scikit-learn for means over rows. The model with the best sum has the best mean."""

_PROBABILITIES = "a mean over rows of what a model says of probabilities"
_OTHER_MEANS = "a mean over rows of something that grows without bounds"
_FUNCTIONS = (_PROBABILITIES, _OTHER_MEANS)

_NOT_PER_ROW = {
    "f1|precision|recall|jaccard|balanced_acc|matthews|cohen|(positive|neg_negative)_likelihood":
        "a ratio of counts of all rows",
    "roc_auc|average_precision|ndcg": "a ranking of all rows",
    "r2|explained_variance|d2_": "a comparison with the mean or the median of all rows",
    "neg_root_": "the root of a mean, whose best model is also that of the mean",
    "(neg_)?max_error": "the error of the worst row",
    "neg_median_": "a median",
    "adjusted_|completeness|homogeneity|v_measure|fowlkes|mutual_info|normalized_mutual|rand_score":
        "a comparison of two groupings of all rows",
    "neg_log_loss|neg_brier|top_k": _PROBABILITIES,
    "neg_mean_(absolute_percentage|squared_log|poisson|gamma|tweedie|pinball)": _OTHER_MEANS,
}  # fmt: skip
"""Meanings of other names of scikit-learn, by how they begin."""


class Accuracy:
    """The score 1 where the prediction equals the label, and otherwise 0.

    They are equal if Python's == says so; a missing value equals nothing.

    Text where the other is a number is refused, whatever holds them: if a column became text
    because of one value in it, as columns of a CSV file do, all of them would be wrong because of
    one.

    Examples:
        >>> Accuracy().total(np.array([1, 2, 3]), [1, 0, 3], "A model")
        2
    """

    steps = 1
    step = Fraction(1)

    def total(self, y: NDArray[Any], predictions: Any, who: str) -> int:
        said = read_column(predictions, who)
        if said.shape != y.shape:
            raise DataError(f"{who} did not give one prediction for each row.")
        if not _comparable(y, said):
            raise DataError(
                f"{who} predicts text where y has a number, or the reverse, so it cannot be right. "
                "If one value turned a column of a file into text, read it with a declared type."
            )
        return int(
            call_quietly(lambda: _equals(y, said), f"What {who} says cannot be compared with y")
        )


class Clipped:
    """A number for each row, clipped to public bounds and put on a grid.

    The grid is ⌊(number − low) / resolution⌋.

    A float is the decimal that it prints as. Nothing is computed with it: it is compared with the
    least floats of its type that print as low + resolution, low + 2 · resolution, … or more, and
    how many it reaches is exact.

    Examples:
        >>> rule = Clipped(lambda y, said: said, (0, 1), "0.1")
        >>> rule.total(np.zeros(2), np.array([0.3, 7.0]), "A model")  # 3 steps and 10
        13
    """

    def __init__(
        self, score: Callable[[Any, Any], Any], bounds: Bounds, resolution: Given | None
    ) -> None:
        low, high = _bounds(bounds)
        self.step = (
            (high - low) / GRID_STEPS if resolution is None else positive("resolution", resolution)
        )
        self.steps = math.floor((high - low) / self.step)
        if not 1 <= self.steps <= MOST_STEPS:
            raise ParameterError(
                "resolution", resolution, f"1 to {MOST_STEPS} steps of it must fit between the "
                                          f"bounds",
                f"Leave it out for {GRID_STEPS}.",
            )  # fmt: skip
        self._score = score
        self._points = [low + place * self.step for place in range(1, self.steps + 1)]
        self._edges: dict[type, NDArray[Any]] = {}

    def total(self, y: Any, predictions: Any, who: str) -> int:
        if count_rows(predictions) != count_rows(y):
            raise DataError(f"{who} did not give one prediction for each row.")
        message = "Labels and predictions cannot be copied"
        # The score may write into what it is given.
        own = call_quietly(lambda: (copy_all(y), copy_all(predictions)), message)
        scores = call_quietly(lambda: self._score(*own), f"The score failed on {who}")
        refuse_masked(scores, f"The score on {who}")
        numbers = call_quietly(lambda: np.asarray(scores), f"The score failed on {who}")
        if numbers.shape != (count_rows(y),) or numbers.dtype.kind not in "biuf":
            raise DataError(
                f"The score did not return one number per row on {who}. A mean over rows does not "
                "work."
            )
        if numbers.dtype.kind != "f" or numbers.dtype.itemsize > 8:
            numbers = numbers.astype(np.float64)
        if np.isnan(numbers).any():
            raise DataError(
                f"The score is NaN for a row on {who}. Let it return a number within the bounds."
            )
        return int(
            np.searchsorted(self._edges_of(numbers.dtype.type), numbers, side="right").sum(
                dtype=np.int64
            )
        )

    def _edges_of(self, kind: type) -> NDArray[Any]:
        if kind not in self._edges:
            self._edges[kind] = np.array([least_float(point, kind) for point in self._points], kind)
        return self._edges[kind]


def count_rows(rows: Any) -> int:
    """Return how many rows there are.

    Examples:
        >>> count_rows([1, 2]), count_rows(np.zeros((3, 2)))
        (2, 3)
    """
    shape = getattr(rows, "shape", None)
    if shape:
        return int(shape[0])  # a sparse matrix has no length
    return len(rows) if hasattr(rows, "__len__") and shape is None else -1


def _bounds(bounds: Bounds) -> tuple[Fraction, Fraction]:
    remedy = "For example (0, 1), from what you know of the score and never from the data."
    if bounds is None:
        raise ParameterError.required(
            "bounds",
            "a custom score needs them: they limit what one example adds",
            remedy,
        )
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError(
            "bounds", bounds, "it must be two numbers, the lower one first", remedy
        )
    low, high = exact("bounds", bounds[0]), exact("bounds", bounds[1])
    if low >= high:
        raise ParameterError(
            "bounds", bounds, "the lower one must come first, and be below the other", remedy
        )
    return low, high


_KINDS = {
    "b": "numbers",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "U": "text",
    "T": "text",
    "S": "bytes",
}
"""Types of values in arrays of NumPy's own types."""


def _comparable(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether no row has text on one side and a number, or bytes, on the other.

    It depends on each row alone.
    """
    kinds = _kinds(one) | _kinds(other)
    if len(kinds) < 2:
        return True
    return all(
        len({_kind(type(value)) for value in pair if not is_missing(value)} - {""}) < 2
        for pair in zip(one.tolist(), other.tolist(), strict=True)
    )


def _kinds(values: NDArray[Any]) -> set[str]:
    types = set(map(type, values)) if values.dtype == object else set()
    return ({_kind(one) for one in types} | {_KINDS.get(values.dtype.kind, "")}) - {""}


def _kind(kind: type) -> str:
    """Numbers, text, bytes; nothing for types that may be equal to whatever they like."""
    if issubclass(kind, Number):
        return "numbers"
    return "text" if issubclass(kind, str) else "bytes" if issubclass(kind, bytes) else ""


def _equals(one: NDArray[Any], other: NDArray[Any]) -> int:
    """Count the places in which they are equal.

    NumPy compares where that is the same, otherwise Python's ==.
    """
    kinds = {one.dtype.kind, other.dtype.kind}
    alike = len(kinds) == 1 and kinds <= set("fUTSM")
    if alike or kinds <= set("biu") or (kinds <= set("biuf") and _small(one) and _small(other)):
        return int(np.count_nonzero(one == other))
    return sum(map(_same, one.tolist(), other.tolist()))


def _small(values: NDArray[Any]) -> bool:
    """Return whether whole numbers become floats without rounding."""
    if values.dtype.kind not in "iu" or not len(values):
        return True
    return int(values.min()) >= -(2**53) and int(values.max()) <= 2**53


def _same(one: Any, other: Any) -> bool:
    equal = one == other
    # pandas' missing value equals nothing, and so does None: which of the two stands in a column
    # depends on its type
    return (equal is True or (isinstance(equal, np.bool_) and bool(equal))) and one is not None
