"""How the examples of a fit are opened: rows in memory, or a table that stays in its engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from numpy.typing import NDArray

from privmax.learning.additive.fitting import Rows
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.reading import is_table, name_labels, read_examples
from privmax.learning.schema import Schema


def plan_reading(
    X: Any, y: Any, schema: Schema, labels: NDArray[Any]
) -> Callable[[ExitStack], Rows]:
    """Return what reads the examples, which `answer` calls when the ledger was asked.

    Args:
        X: A frame, an array or an Ibis table.
        y: A label for each row; of an Ibis table the name of the column that has them.
        schema: The columns.
        labels: The two that are declared.

    Raises:
        ParameterError: X is an Ibis table, and y is none of its columns.
    """
    column = name_labels(X, y) if is_table(X) else None

    def read(stack: ExitStack) -> Rows:
        if column is None:
            return MemoryRows(*read_examples(schema, X, y, labels))
        from privmax.learning.additive.engine import open_rows

        return open_rows(X, schema, column, labels, stack)

    return read
