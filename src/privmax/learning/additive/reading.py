"""What estimators with a schema read: labels, rows in memory, the column of labels in a table."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, LedgerError, ParameterError
from privmax.learning.additive.model import Codes
from privmax.learning.columns import find_columns, is_frame
from privmax.learning.labels import refuse_large, rows_with
from privmax.learning.schema import Schema
from privmax.learning.scoring import read_column
from privmax.sources.containers.pandas import refuse_rounded


def read_labels(labels: object) -> NDArray[Any]:
    """Return the two declared labels, as an array.

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
    refuse_large(listed)
    return np.asarray(listed)


def sort_chances(second: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column of chances for each label, in the order of sorted labels.

    scikit-learn takes that order for granted.

    Args:
        second: The chance of the second declared label, of each row.
        labels: As they were declared.

    Examples:
        >>> sort_chances(np.array([0.75]), np.array(["yes", "no"])).tolist()
        [[0.75, 0.25]]
    """
    columns = np.column_stack([1 - second, second])
    return columns if labels[0] < labels[1] else columns[:, ::-1]


def tag_classifier(tags: Any) -> Any:
    """Return scikit-learn's tags of a classifier of two labels with a schema."""
    tags.non_deterministic = True
    tags.classifier_tags.multi_class = False
    tags.classifier_tags.poor_score = True  # a public grid need not fit, and privacy adds noise
    tags.input_tags.allow_nan = True  # a schema has a cell for every value
    tags.input_tags.sparse = True
    return tags


def is_table(X: object) -> bool:
    """Return whether X is an Ibis table, which stays in its engine."""
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
    """Meet columns that are missing before anything is charged.

    Names are public; rows are not looked at.

    Raises:
        ParameterError: A frame or a table has no such column.
        DataError: It has two.
    """
    if is_frame(X):
        find_columns(X, schema.names)  # an iterator, of which nothing is taken


def unfit_record(what: str) -> LedgerError:
    """Return the error about a recorded answer that no fit of this schema can have given."""
    return LedgerError(
        f"The {what} that the ledger has for this request does not fit this schema: the record was "
        "changed. Run privmax budget verify, and restore the ledger from a backup."
    )


def name_labels(table: Any, y: object) -> str:
    """Return the column of an Ibis table that has the labels."""
    if isinstance(y, str) and y in table.columns:
        return y
    raise ParameterError(
        "y", y if isinstance(y, str) else f"<{type(y).__name__}>",
        "X is an Ibis table, so it must be the name of its column of labels",
        f"The table has {', '.join(table.columns)}.",
    )  # fmt: skip


def check_schema(schema: object) -> Schema:
    """Return the schema, if it is one."""
    if isinstance(schema, Schema):
        return schema
    public = "cells and categories are public, and never taken from the data"
    remedy = "For example Schema(age=Number(17, 90, cells=32))."
    if schema is None:
        raise ParameterError.required("schema", public, remedy)
    kind = f"<{type(schema).__name__}>"
    raise ParameterError("schema", kind, f"it must be a Schema: {public}", remedy)


def read_examples(
    schema: Schema, X: Any, y: Any, labels: NDArray[Any]
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the cell of every value, and whether each row has the second label."""
    refuse_table(X)
    if isinstance(y, str):
        raise ParameterError(
            "y", y, "X is not an Ibis table, so y must have a label for each row",
            f"For example X[{y!r}].",
        )  # fmt: skip
    codes = schema.codes(X)
    values = read_column(refuse_rounded(y), "y")
    if values.ndim != 1:
        raise DataError("y should be a 1d array, one label per example.")
    if len(values) != codes.shape[1]:
        raise DataError("X and y have different numbers of rows.")
    if not len(values):
        raise DataError("Found array with 0 sample(s): X has no rows.")
    first, second = (rows_with(values, label) for label in labels)
    if not (first | second).all():
        raise DataError(
            "A label in y is not among the declared labels. Declare both as y has them: the number "
            '0 is not the text "0".'
        )
    if max(column.cells for column in schema.columns) <= 1 << 8:
        codes = codes.astype(np.uint8)  # half the memory to go through
    return codes, second
