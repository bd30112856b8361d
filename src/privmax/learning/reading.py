"""Labels, rows in memory, and tables in an engine, as learners with a schema read them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.learning.additive.fitting import ExampleRows
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.model import Codes
from privmax.learning.columns import find_columns, is_frame
from privmax.learning.labels import read_column, refuse_large, rows_with
from privmax.learning.schema import Schema
from privmax.sources.containers.pandas import refuse_rounded

if TYPE_CHECKING:
    from privmax.learning.additive.engine import ReadTarget


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


def name_targets(table: Any, y: object) -> str:
    """Return the column of an Ibis table that has the labels, or other targets."""
    if isinstance(y, str) and y in table.columns:
        return y
    raise ParameterError(
        "y", y if isinstance(y, str) else f"<{type(y).__name__}>",
        "X is an Ibis table, so it must be the name of its column of targets",
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
    codes = read_codes(schema, X, y)
    values = read_column(refuse_rounded(y), "y")
    if values.ndim != 1:
        raise DataError("y should be a 1d array, one label per example.")
    check_lengths(codes, values)
    first, second = (rows_with(values, label) for label in labels)
    if not (first | second).all():
        raise DataError(
            "A label in y is not among the declared labels. Declare both as y has them: the number "
            '0 is not the text "0".'
        )
    return codes, second


def read_codes(schema: Schema, X: Any, y: object) -> Codes:
    """Return the cell of every value of rows in memory, whose targets are not the name of a column.

    Raises:
        DataError: X is an Ibis table.
        ParameterError: y is text.
    """
    refuse_table(X)
    if isinstance(y, str):
        raise ParameterError(
            "y", y, "X is not an Ibis table, so y must have a value for each row",
            f"For example X[{y!r}].",
        )  # fmt: skip
    codes = schema.codes(X)
    small = max(column.cells for column in schema.columns) <= 1 << 8
    return codes.astype(np.uint8) if small else codes  # half the memory to go through


def check_lengths(codes: Codes, targets: NDArray[Any]) -> None:
    """Refuse rows without as many targets, and none at all.

    Raises:
        DataError: That is so.
    """
    if len(targets) != codes.shape[1]:
        raise DataError("X and y have different numbers of rows.")
    if not len(targets):
        raise DataError("Found array with 0 sample(s): X has no rows.")


def plan_reading(
    X: Any, y: Any, schema: Schema, labels: NDArray[Any]
) -> Callable[[ExitStack], ExampleRows]:
    """Return what reads the examples, which `answer` calls when the ledger was asked.

    Args:
        X: A frame, an array or an Ibis table.
        y: A label for each row; of an Ibis table the name of the column that has them.
        schema: The columns.
        labels: The two that are declared.

    Raises:
        ParameterError: X is an Ibis table, and y is none of its columns.
    """

    def write() -> ReadTarget:
        from privmax.learning.additive.engine import label_targets

        return label_targets(labels)

    return plan_rows(X, y, schema, lambda: read_examples(schema, X, y, labels), write)


def plan_rows(
    X: Any,
    y: Any,
    schema: Schema,
    read_here: Callable[[], tuple[Codes, NDArray[Any]]],
    write: Callable[[], ReadTarget],
) -> Callable[[ExitStack], ExampleRows]:
    """Return what reads rows with targets of any kind, in memory or in an engine.

    Args:
        X: A frame, an array or an Ibis table.
        y: A target for each row; of an Ibis table the name of the column that has them.
        schema: The columns.
        read_here: Reads cells and targets in memory.
        write: Returns what writes the target in an engine.

    Raises:
        ParameterError: X is an Ibis table, and y is none of its columns.
    """
    column = name_targets(X, y) if is_table(X) else None

    def read(stack: ExitStack) -> ExampleRows:
        if column is None:
            return MemoryRows(*read_here())
        from privmax.learning.additive.engine import open_rows

        return open_rows(X, schema, column, write(), stack)

    return read
