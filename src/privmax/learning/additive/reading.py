"""What estimators with a schema read: labels, rows in memory, the column of labels in a table."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, LedgerError, ParameterError
from privmax.learning.additive.model import Codes
from privmax.learning.columns import find_columns, is_frame
from privmax.learning.schema import Schema
from privmax.learning.scoring import read_column


def read_labels(labels: object) -> NDArray[Any]:
    """The two declared labels, as an array.

    Raises:
        ParameterError: They are not two, not different, or not of one type.

    Examples:
        >>> read_labels(["no", "yes"]).tolist()
        ['no', 'yes']
    """
    if labels is None:
        raise ParameterError.required(
            "labels", "both must be declared: which of them occur in y is private",
            "For example [0, 1].",
        )  # fmt: skip
    ordered = isinstance(labels, (list, tuple)) or (
        isinstance(labels, np.ndarray) and labels.ndim == 1
    )
    listed: list[Any] = list(labels) if ordered else []  # type: ignore[call-overload]
    text = all(isinstance(one, str) for one in listed)
    number = all(isinstance(one, (bool, int, float, np.generic)) for one in listed)
    strange = any(one != one for one in listed)  # nothing equals it, so no row has it
    if not (text or number) or strange or len(listed) != 2 or listed[0] == listed[1]:
        raise ParameterError(
            "labels", labels, "it must be a list of two different labels, both numbers or both "
            "text. Only binary classification is supported",
            "For example [0, 1].",
        )  # fmt: skip
    return np.asarray(listed)


def sort_chances(second: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """A column of chances for each label, in the order of sorted labels, which scikit-learn takes
    for granted.

    Args:
        second: The chance of the second declared label, of each row.
        labels: As they were declared.

    Examples:
        >>> sort_chances(np.array([0.75]), np.array(["yes", "no"])).tolist()
        [[0.75, 0.25]]
    """
    columns = np.column_stack([1 - second, second])
    return columns if labels[0] < labels[1] else columns[:, ::-1]


def is_table(X: object) -> bool:
    """Whether X is an Ibis table, which stays in its engine."""
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(X, ibis.Table)


def refuse_table(X: object) -> None:
    """Refuse an Ibis table where rows must be here.

    Raises:
        DataError: It is one.
    """
    if is_table(X):
        raise DataError("X is an Ibis table, whose rows are elsewhere. Give X.to_pandas().")


def check_columns(schema: Schema, X: Any) -> None:
    """Meet columns that are missing before anything is charged: names are public, rows are not
    looked at.

    Raises:
        ParameterError: A frame or a table has no such column.
        DataError: It has two.
    """
    if is_frame(X):
        find_columns(X, schema.names)  # an iterator, of which nothing is taken


def unfit_record(what: str) -> LedgerError:
    """The error about a recorded answer that no fit of this schema can have given."""
    return LedgerError(
        f"The {what} that the ledger holds for this request is none of this schema: the record was "
        "changed. Run privmax ledger verify, and restore the ledger from a backup."
    )


def name_labels(table: Any, y: object) -> str:
    """The column of an Ibis table that has the labels."""
    if isinstance(y, str) and y in table.columns:
        return y
    raise ParameterError(
        "y", y if isinstance(y, str) else f"<{type(y).__name__}>",
        "X is an Ibis table, so it must be the name of its column of labels",
        f"The table has {', '.join(table.columns)}.",
    )  # fmt: skip


def check_schema(schema: object) -> Schema:
    """The schema, if it is one."""
    if isinstance(schema, Schema):
        return schema
    public = "cells and categories are public, and never taken from the data"
    remedy = "For example Schema(age=Number(17, 90, cells=32))."
    if schema is None:
        raise ParameterError.required("schema", public, remedy)
    given = f"<{type(schema).__name__}>"
    raise ParameterError("schema", given, f"it must be a Schema: {public}", remedy)


def read_examples(
    schema: Schema, X: Any, y: Any, labels: NDArray[Any]
) -> tuple[Codes, NDArray[np.bool_]]:
    """The cell of every value, and whether each row has the second label."""
    refuse_table(X)
    if isinstance(y, str):
        raise ParameterError(
            "y", y, "X is no Ibis table, so it must have a label for each row",
            f"For example X[{y!r}].",
        )  # fmt: skip
    codes = schema.codes(X)
    given = read_column(y, "y")
    if given.ndim != 1:
        raise DataError("y should be a 1d array, one label per example.")
    if len(given) != codes.shape[1]:
        raise DataError("X and y have different numbers of rows.")
    if not len(given):
        raise DataError("Found array with 0 sample(s): X has no rows.")
    first, second = (_have(given, label) for label in labels)
    if not (first | second).all():
        raise DataError(
            "A label in y is not among the declared labels. Declare both as y has them: the number "
            '0 is not the text "0".'
        )
    if max(column.cells for column in schema.columns) <= 1 << 8:
        codes = codes.astype(np.uint8)  # half the memory to go through
    return codes, second


def _have(given: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Which rows have a label; what cannot be compared with it does not equal it."""
    try:
        return np.asarray(given == label, np.bool_)
    except Exception:  # of one row, which changes nothing about the others
        return np.fromiter((_is(one, label) for one in given.tolist()), np.bool_, len(given))


def _is(one: Any, label: Any) -> bool:
    try:
        return bool(one == label)
    except Exception:
        return False
