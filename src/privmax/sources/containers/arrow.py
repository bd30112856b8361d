"""Arrow: tables, record batches and their columns, whose types are declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privmax.labels import plain_label
from privmax.sources.table import (
    MIXED,
    OTHER,
    TEXT,
    LazyLabels,
    Lists,
    Numbered,
    Table,
    TableColumn,
    Values,
    number_list,
)


class ArrowColumn(TableColumn):
    """An array of Arrow, or a chunked one."""

    def number_labels(self) -> Numbered:
        import pyarrow
        from pyarrow import compute, types

        column = self.values
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_nested(column.type) or types.is_null(column.type):
            return number_list(column.to_pylist())
        if types.is_floating(column.type):
            column = compute.if_else(compute.is_nan(column), None, column)
        encoded = column.dictionary_encode()
        if isinstance(encoded, pyarrow.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return numbers.astype(np.int64), [arrow_label(value) for value in encoded.dictionary]

    def read_labels(self) -> Sequence[Any]:
        import pyarrow
        from pyarrow import compute, types

        column = distinct = self.values
        missing = column.null_count > 0
        if types.is_floating(column.type):
            missing = missing or bool(compute.any(compute.is_nan(column)).as_py())
            zero = pyarrow.scalar(0.0, column.type)
            distinct = compute.add(column, zero)  # to Arrow −0.0 is not 0.0
        repeated = len(distinct.unique()) < len(column)
        return LazyLabels(column, arrow_label).check(missing, repeated)

    def has_missing(self) -> bool:
        return bool(self.values.null_count > 0)

    def to_array(self) -> NDArray[Any]:
        # an array copies where it has nulls only if asked to; a chunked one does so anyway
        chunked = hasattr(self.values, "num_chunks")
        return np.asarray(self.values.to_numpy(**({} if chunked else {"zero_copy_only": False})))

    def read_lists(self) -> Lists | None:
        from pyarrow import compute, list_, types

        column = self.values
        if types.is_fixed_size_list(column.type):
            column = column.cast(list_(column.type.value_type))
        elif not (
            types.is_list(column.type) or types.is_large_list(column.type) or _is_view(column.type)
        ):
            return None
        lengths = ArrowColumn(compute.list_value_length(column).fill_null(0)).to_array()
        entries = ArrowColumn(compute.list_flatten(column))
        return lengths.astype(np.int64, copy=False), *entries.number_labels()

    def read_values(self) -> Values:
        import pyarrow
        from pyarrow import types

        values = self.values
        if types.is_dictionary(values.type):
            chunked = isinstance(values, pyarrow.ChunkedArray)
            values = values.cast(values.type.value_type) if chunked else values.dictionary_decode()
        kind = values.type
        if types.is_integer(kind) or types.is_floating(kind):
            return Values.of_numbers(ArrowColumn(values).to_array())
        if types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind):
            return Values.of_objects(MIXED, values.to_pylist())
        texts = (types.is_string, types.is_large_string, types.is_string_view)
        if any(is_text(kind) for is_text in texts):
            return Values.of_objects(TEXT, _texts(values))
        if types.is_date(kind) or types.is_timestamp(kind):
            missing = ArrowColumn(values.is_null()).to_array()
            return Values.of_moments(ArrowColumn(values).to_array(), missing)
        return Values.of_objects(OTHER)


class ArrowTable(Table):
    """A table or a record batch of Arrow."""

    @property
    def names(self) -> list[Any]:
        return list(self.data.schema.names)

    def find(self, name: Any) -> TableColumn:
        return ArrowColumn(self.data.column(name))

    def select(self, names: Sequence[str]) -> Any:
        import pyarrow

        chosen = self.data.select(names)
        is_table = isinstance(chosen, pyarrow.Table)
        return chosen if is_table else pyarrow.Table.from_batches([chosen])


def arrow_label(value: Any) -> Any:
    """Return a label for every value of Arrow.

    Dates and spans that Python does not have become NumPy's, and times of day beyond a day numbers.
    """
    try:
        return plain_label(value)
    except (OverflowError, ValueError):
        kind = str(value.type)
    unit: Any = {"date32": "D", "date64": "ms"}.get(kind[:6], getattr(value.type, "unit", ""))
    if kind.startswith(("date", "timestamp")):
        return plain_label(np.datetime64(value.value, unit))
    return plain_label(
        np.timedelta64(value.value, unit) if kind.startswith("duration") else value.value
    )


def _is_view(kind: Any) -> bool:
    """Return whether a type of Arrow is a list by its place and size: `list_view`.

    It is in any order, and not cast to another: pyarrow 26 gives wrong lists for views that
    overlap.
    """
    from pyarrow import types

    tests = (getattr(types, f"is_{name}", None) for name in ("list_view", "large_list_view"))
    return any(test(kind) for test in tests if test is not None)  # pyarrow has them since 16


def _texts(values: Any) -> list[str | None]:
    """Texts of Arrow, which no one has to have checked: bytes that are no UTF-8 are replaced."""
    import pyarrow

    try:
        return cast("list[str | None]", values.to_pylist())
    except UnicodeDecodeError:
        kind = pyarrow.large_binary()
        encoded = values.cast(kind).to_pylist()
        return [None if one is None else one.decode("utf-8", "replace") for one in encoded]
