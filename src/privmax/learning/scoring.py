"""What one example adds to the total of one model: a whole number from 0 to `steps`, of that example alone.

Proof:      docs/proofs/models.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.privacy import Number, exact, positive
from privmax.sources.scale import GRID_STEPS

MOST_STEPS = 1 << 16

Score = str | Callable[[Any, Any], Any]
Bounds = tuple[Number, Number] | None


class Rule(Protocol):
    """A public way to score.

    steps    the most one example adds
    step     what one step is worth, in units of the score
    """

    steps: int
    step: Fraction

    def check(self, y: Any, predictions: Any, who: str) -> None:
        """Refuse what the model named `who` says, and all of y, if nothing of their types could be right."""
        ...

    def total(self, y: Any, predictions: Any, who: str) -> int:
        """What some rows add for the model named `who`."""
        ...


def rule(score: Score, bounds: Bounds, resolution: Number | None) -> Rule:
    """The rule for these options."""
    if callable(score):
        return Clipped(score, bounds, resolution)
    if score != "accuracy":
        raise ParameterError(
            "score", score, 'it must be "accuracy" or a function of labels and predictions',
            "For example score=lambda y, p: -abs(y - p), with bounds=(-10, 0).",
        )  # fmt: skip
    for name, value in (("bounds", bounds), ("resolution", resolution)):
        if value is not None:
            raise ParameterError(name, value, "accuracy counts, and needs none", "Leave it out.")
    return Accuracy()


class Accuracy:
    """1 where the prediction equals the label, as Python's == says of the two."""

    steps = 1
    step = Fraction(1)

    def check(self, y: Any, predictions: Any, who: str) -> None:
        if len({_kind(y), _kind(predictions)} - {""}) > 1:
            raise DataError(f"{who} gives text where y has numbers, or the like, so nothing it says could be right.")

    def total(self, y: NDArray[Any], predictions: Any, who: str) -> int:
        said = column(predictions, who)
        if said.shape != y.shape:
            raise DataError(f"{who} did not give one prediction for each row.")
        return int(quietly(lambda: _equals(y, said), f"What {who} says cannot be compared with y"))


class Clipped:
    """A number for each row, clipped to public bounds and put on a grid: ⌊(number − low) / resolution⌋.

    Nothing is computed with the number: it is compared with the least doubles at or above low + resolution, low + 2 ·
    resolution, …, and how many it reaches is exact.
    """

    def __init__(self, score: Callable[[Any, Any], Any], bounds: Bounds, resolution: Number | None) -> None:
        low, high = _bounds(bounds)
        self.step = (high - low) / GRID_STEPS if resolution is None else positive("resolution", resolution)
        self.steps = math.floor((high - low) / self.step)
        if not 1 <= self.steps <= MOST_STEPS:
            raise ParameterError(
                "resolution", resolution, f"1 to {MOST_STEPS} steps of it must fit between the bounds",
                f"Leave it out for {GRID_STEPS}.",
            )  # fmt: skip
        self._score = score
        self._edges = np.array([_least_double(low + place * self.step) for place in range(1, self.steps + 1)])

    def check(self, y: Any, predictions: Any, who: str) -> None:
        pass  # what fits is the score's affair

    def total(self, y: Any, predictions: Any, who: str) -> int:
        if count(predictions) != count(y):
            raise DataError(f"{who} did not give one prediction for each row.")
        given = quietly(lambda: self._score(y, predictions), f"The score failed on {who}")
        unmasked(given, f"The score on {who}")
        numbers = quietly(lambda: np.asarray(given), f"The score failed on {who}")
        if numbers.shape != (count(y),) or numbers.dtype.kind not in "biuf":
            raise DataError(f"The score did not give one number for each row on {who}. A mean over rows will not do.")
        doubles = numbers.astype(np.float64)
        if np.isnan(doubles).any():
            raise DataError(f"The score is NaN for a row on {who}. Let it give a number within the bounds instead.")
        return int(np.searchsorted(self._edges, doubles, side="right").sum(dtype=np.int64))


def column(given: Any, who: str) -> NDArray[Any]:
    """Values as an array in which none depends on the others: a list of 1 and "a" does not become one of text."""
    unmasked(given, who)
    told = f"{who} gave what cannot be read as an array"
    listing = _listing(given)
    if listing is not None:
        return _listed(quietly(lambda: list(listing()), told))
    values = np.asarray(quietly(lambda: np.asarray(given), told))
    return _objects(values) if values.dtype.kind == "O" and values.ndim == 1 else values


def unmasked(given: Any, who: str) -> None:
    """Refuse a masked array: what is masked has a value all the same, which may happen to be right."""
    if isinstance(given, np.ma.MaskedArray):
        raise DataError(f"{who} gave a masked array. Fill it (.filled) with a value that stands for what is missing.")


def count(rows: Any) -> int:
    """How many rows there are."""
    shape = getattr(rows, "shape", None)
    if shape:
        return int(shape[0])  # a sparse matrix has no length
    return len(rows) if hasattr(rows, "__len__") and shape is None else -1


def quietly(call: Callable[[], Any], told: str) -> Any:
    """What a call returns; its own error is not passed on, since it may quote the data."""
    try:
        return call()
    except Exception as error:
        failure = DataError(
            f"{told} ({type(error).__name__}). Its own message may quote data and is not shown: try it on public rows."
        )
    raise failure  # out here, where the other error is no longer attached to it as its context


def _bounds(bounds: Bounds) -> tuple[Fraction, Fraction]:
    remedy = "For example bounds=(0, 1), from what you know of the score and never from the data."
    if bounds is None:
        raise ParameterError(
            "bounds", None, "a score of your own needs them, as they say what one example adds", remedy
        )
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError("bounds", bounds, "they must be two numbers, the lower one first", remedy)
    low, high = exact("bounds", bounds[0]), exact("bounds", bounds[1])
    if low >= high:
        raise ParameterError("bounds", bounds, "the lower one must come first, and be below the other", remedy)
    return low, high


def _least_double(number: Fraction) -> float:
    """The least double that is at least `number`."""
    try:
        double = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return math.nextafter(double, math.inf) if Fraction(double) < number else double


def _kind(given: Any) -> str:
    """Numbers, text or bytes, by the type of an array alone, which is public.

    Nothing for lists, columns of objects, and types that are not NumPy's: what is in these is private.
    """
    dtype = getattr(given, "dtype", None)
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    kinds = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "T": "text", "S": "bytes"}
    return kinds.get(kind, "")


def _listing(given: Any) -> Callable[[], Any] | None:
    """How to get the Python values of a list, or of a column whose type is not NumPy's: pandas' own, polars, Arrow.

    As arrays such columns are read by what is in them: whole numbers beside a null become floats, for example.
    """
    if isinstance(given, (list, tuple)):
        return lambda: given
    if not hasattr(given, "to_numpy") or isinstance(getattr(given, "dtype", None), np.dtype):
        return None
    if len(getattr(given, "shape", "1")) != 1:
        return None  # a frame
    names = (name for name in ("to_list", "to_pylist", "tolist") if hasattr(given, name))
    found: Callable[[], Any] | None = getattr(given, next(names, ""), None)
    return found


def _listed(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers of one type as an array of that type, everything else as Python objects.

    No number is changed by the others: of 2^63 and −1 together NumPy would make floats.
    """
    types = set(map(type, values))
    if len(types) == 1:
        fitting = _fitting(types.pop())
        numbers = np.array(values) if fitting else None
        if numbers is not None and numbers.dtype.kind in fitting:
            return numbers
    return _objects(values)


def _fitting(kind: type) -> str:
    """The kinds of arrays that hold numbers of this type as they are; none for other types."""
    for kinds, types in (("b", (bool, np.bool_)), ("iu", (int, np.integer)), ("f", (float, np.floating))):
        if kind is types[0] or issubclass(kind, types[1]):
            return kinds
    return ""


def _objects(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Python objects. Numbers of NumPy become Python's: as objects they would round what they are compared with."""
    plain: Iterable[Any] = values
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        plain = (value.item() if isinstance(value, np.generic) else value for value in values)
    return np.fromiter(plain, object, len(values))


def _equals(one: NDArray[Any], other: NDArray[Any]) -> int:
    """In how many places they are equal: by NumPy where that is the same, otherwise by Python's ==."""
    kinds = {one.dtype.kind, other.dtype.kind}
    alike = len(kinds) == 1 and kinds <= set("fUTSM")
    if alike or kinds <= set("biu") or (kinds <= set("biuf") and _small(one) and _small(other)):
        return int(np.count_nonzero(one == other))
    return sum(map(_same, one.tolist(), other.tolist()))


def _small(values: NDArray[Any]) -> bool:
    """Whether whole numbers become floats without rounding."""
    if values.dtype.kind not in "iu" or not len(values):
        return True
    return int(values.min()) >= -(2**53) and int(values.max()) <= 2**53


def _same(one: Any, other: Any) -> bool:
    equal = one == other
    return equal is True or (isinstance(equal, np.bool_) and bool(equal))  # pandas' missing value equals nothing
