"""Rows and labels as callers of scikit-learn give them, and refusals that quote no data.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.classes.contract import Codes
from privmax.learning.columns import column_kinds, frame_names, is_frame
from privmax.learning.labels import refuse_large, rows_with
from privmax.sources.table import MIXED, MOMENTS, OTHER, TEXT

T = TypeVar("T")


FROM_Y = "from y"


_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (bool, int, float, np.bool_, np.integer, np.floating),
}


def count_width(X: Any) -> int:
    """Return how many columns X has, by its shape, which is public."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2:
        return int(shape[1])
    raise ParameterError(
        "X", f"<{type(X).__name__}>", "a strict ledger is charged before X is read, so X must be a "
                                      "table with a shape",
        "Give an array or a frame.",
    )  # fmt: skip


def read_declared_labels(labels: object) -> NDArray[Any]:
    """Return the declared labels, as an array."""
    if labels is None:
        raise ParameterError.required(
            "labels", "all labels must be declared: which of them occur in y is private",
            f'For example [0, 1]. If it is public which labels occur, "{FROM_Y}".',
        )  # fmt: skip
    ordered = isinstance(labels, (list, tuple, range)) or (
        isinstance(labels, np.ndarray) and labels.ndim == 1
    )
    listed: list[Any] = list(labels) if ordered else []  # type: ignore[call-overload]
    kinds = {kind for one in listed for kind, types in _KINDS.items() if isinstance(one, types)}
    known = all(isinstance(one, tuple(chain(*_KINDS.values()))) for one in listed)
    if not known or len(kinds) != 1 or len(listed) < 2 or len(set(listed)) < len(listed):
        raise ParameterError(
            "labels", labels, "it must be a list of at least two different labels of one type, "
                              "numbers or text",
            "For example [0, 1].",
        )  # fmt: skip
    refuse_large(listed)
    return np.asarray(listed)


def labels_in(y: NDArray[Any]) -> NDArray[Any]:
    labels = np.unique(y)
    if len(labels) < 2:
        raise DataError(
            "Classifier can't train when only one class is present in y. Declare all possible "
            "labels, for example [0, 1]."
        )
    return labels


def label_codes(y: NDArray[Any], labels: NDArray[Any]) -> Codes:
    """Return the position of every label among those declared."""
    codes = np.full(len(y), -1, np.intp)
    for code, label in enumerate(labels):
        codes[rows_with(y, label)] = code
    if (codes < 0).any():
        raise DataError(
            "A label in y is not among the declared labels. Declare every possible label."
        )
    return codes


def number_type(X: object) -> Any:
    """Lists and frames are read as 64-bit floats, arrays as what they are.

    The type of the numbers in one row must not depend on those in another, as it does in lists, and
    in frames that were read from files: one decimal makes floats of a column of whole numbers.
    """
    return np.float64 if isinstance(X, (list, tuple)) or is_frame(X) else "numeric"


def text_names(X: Any) -> list[str]:
    """Return the names of a frame's columns; none where X has none, or not text."""
    names = frame_names(X) if is_frame(X) else []
    return names if all(isinstance(name, str) for name in names) else []


def check_types(X: Any, *, schema: bool = True) -> None:
    """Refuse a frame with a column that by its type holds no numbers.

    As numbers, dates would be in a unit of the library's choice. Names and types are public.

    Args:
        X: Rows, as they were given.
        schema: Whether the learner can be given one.
    """
    if not is_frame(X):
        return
    for name, kind in column_kinds(X):
        if kind in (TEXT, MOMENTS, OTHER):
            contents = "text" if kind == TEXT else "dates, lists or bytes"
            remedy = (
                "Give the class a schema that declares it as a Category (see privmax help schema), "
                "or leave it out."
                if kind == TEXT and schema
                else "Convert it to numbers first, by a rule fixed in advance, or leave it out."
            )
            raise DataError(
                f"X has a value that is not a number: column {format_label(name)} has {contents} "
                f"by its type. {remedy}"
            )


def mixed_columns(X: Any) -> Sequence[Any] | None:
    """Return the columns of a frame that may hold anything, by their type; None: X is no frame."""
    if not is_frame(X):
        return None
    return [name for name, kind in column_kinds(X) if kind == MIXED]


_NO_NUMBER = "X has a value that is not a number. Convert dates and text to numbers first."


def as_numbers(X: NDArray[Any]) -> NDArray[Any]:
    """Return X, if it holds numbers."""
    if X.dtype.kind not in "biufO":  # dates, above all: their unit is that of the finest one
        raise DataError(_NO_NUMBER)
    return validate_quietly(lambda: X.astype(np.float64)) if X.dtype == object else X


_SAFE = (
    "X has ",
    "Found array with",
    "dtype='numeric'",
    "The feature names",
    "This ",
)
"""Openings of messages of scikit-learn that quote no data: at most the number of columns and
their names.
"""


_MISSING = (
    "X contains NaN, a missing value. To fill in what is computed from these rows, such as a mean, "
    "a median or the most frequent value, is not private. {} a constant that you fix in advance, "
    "or leave out every row with a missing value."
)


_CELL = (
    "Give the class a schema, which has a cell for missing values (see privmax help schema), or "
)


_NO_LABEL = "y contains NaN, a missing label. Leave out every row without a label."


REWORDED = {
    "Input X contains infinity": "X contains infinity, or a number too large for a float of its "
    "type. Clip its columns to bounds that you fix in advance.",
    "Input y contains NaN": _NO_LABEL,
    "Input contains NaN": _NO_LABEL,  # of a y that is not an array
    "Input y contains infinity": "y contains infinity, or a number too large for a float of its "
    "type. Clip it to bounds that you fix in advance.",
    "convert": "X has a value that is not a number.",
    "Complex": "Complex data not supported.",
    "inconsistent": "X and y have different numbers of rows.",
    "Reshape": "X must be a table. Reshape your data: one row per example, one column per feature.",
    "1d array": "y should be a 1d array, one label per example.",
    "inhomogeneous": "X must be a table, all rows of one length, and y a list of labels.",
}
"""Replacements for other messages, by a word in them."""


def validate_quietly(
    validate: Callable[[], T], mixed: Sequence[Any] | None = None, *, schema: bool = True
) -> T:
    """Hide messages of scikit-learn's validation that may quote the data.

    Some advise what is not private, such as an imputer.

    Args:
        validate: The validation.
        mixed: The columns of a frame that may hold anything; None: X is no frame.
        schema: Whether the learner can be given one.
    """
    try:
        return validate()
    except OverflowError:
        said = "convert"
    except TypeError:
        if mixed is None:
            raise  # about the type of X, or of one object in an array: no data is quoted
        said = "convert"
    except ValueError as error:
        said = str(error)
    if said.startswith(_SAFE):
        raise ValueError(said)
    if said.startswith("Input X contains NaN"):
        raise DataError(_MISSING.format(f"{_CELL}fill in" if schema else "Fill in"))
    if "convert" in said and mixed:
        named = ", ".join(map(format_label, mixed))
        raise DataError(
            f"X has a value that is not a number. By their types only these columns may have one: "
            f"{named}. Convert them to numbers, by a rule fixed in advance"
            f"{', or give the class a schema (see privmax help schema)' if schema else ''}."
        )
    reworded = (message for word, message in REWORDED.items() if word in said)
    raise DataError(next(reworded, "X or y cannot be used: see the documentation of fit."))
