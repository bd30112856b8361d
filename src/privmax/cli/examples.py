"""Rows with a label, for `privmax learn`: numbers, or cells of a schema.

No message quotes the content of a file.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

from privmax.cli.inputs import Input
from privmax.errors import DataError, ParameterError
from privmax.sources.conditions import Condition
from privmax.sources.dialect import dialect_of
from privmax.sources.files import Place, is_json, is_stream, open_records
from privmax.sources.places import Files
from privmax.sources.separated import Rows, no_column, place_in, refuse_repetition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privmax.learning.schema import Schema

Label = int | float | str


@dataclass(frozen=True, repr=False)
class Examples:
    """Private rows.

    Args:
        features: Names of the columns of X.
        X: Numbers, all of them finite; or cells of a schema.
        y: The label of every row, one of those declared; empty where none were asked for.
    """

    features: Sequence[str]
    X: NDArray[Any]
    y: Sequence[Label]

    def __repr__(self) -> str:
        return "Examples(<private>)"


def read_examples(
    source: Input,
    features: Sequence[str] | Schema | None,
    label: str | None,
    labels: Sequence[Label],
) -> Examples:
    """The rows of files, of a folder of Parquet files, of a table, or of standard input ("-").

    Args:
        features: Columns to read; None: all but the label. Of a schema the cells are read, and no
            value of a feature is refused.
        label: Column of the labels; None: there is none to read.
        labels: All there can be, of one type.
    """
    where = None if source.where is None else Condition.of(source.where)
    with ExitStack() as stack:
        data = source.open(stack)
        if not _is_text(data):
            return _of_table(data, where, (features, label, labels), stack)
        _check_features(data, features)
        names = _names_of(features)
        needed = None if names is None else [*names, *([] if label is None else [label])]
        with open_records(data, needed, where) as (names, rows):
            shown = source.dialect.header_is_public
            return _of_text(names, rows, (features, label, labels), shown=shown)
    raise AssertionError  # no context swallows an error


def read_columns(source: Input, label: str) -> list[str]:
    """Return all columns of such data but the label. No row is read."""
    with ExitStack() as stack:
        data = source.open(stack)
        if not _is_text(data):
            from privmax.sources.reading import as_table

            table = as_table(data, [], [], True, stack)
            return _choose_features(table.columns, None, label, shown=_is_shown(data))
        _check_features(data, None)
        with open_records(data, []) as (names, _):
            return _choose_features(names, None, label, shown=_is_shown(data))
    raise AssertionError


def _names_of(features: Sequence[str] | Schema | None) -> Sequence[str] | None:
    if features is None or isinstance(features, Sequence):
        return features
    return features.names


def _check_features(data: object, features: object) -> None:
    """Refuse JSON Lines without named features.

    Rows decide which keys there are, and a rule must not be chosen from what they decide.
    """
    if features is None and is_json(data):
        raise ParameterError.required(
            "features", "JSON Lines do not declare their columns", "For example age,visits."
        )


def _is_text(data: object) -> TypeGuard[Place]:
    """Return whether it is read as text. An engine reads all else: a table, or Parquet."""
    if isinstance(data, Files):
        return data.kind not in ("folder", "parquet")
    return is_stream(data)


def _is_shown(data: object) -> bool:
    """Return whether names of columns are public: of a file of text the caller says so."""
    is_text = is_stream(data) or (isinstance(data, Files) and data.is_text)
    return not is_text or dialect_of(data).header_is_public


_Asked = tuple["Sequence[str] | Schema | None", str | None, Sequence[Label]]
"""The features, the label and the labels of a request."""

_CHUNK = 1 << 14
"""Rows of text held at a time, where their cells are all that is kept."""


def _of_text(names: Sequence[str], rows: Rows, question: _Asked, *, shown: bool) -> Examples:
    import numpy as np

    features, label, labels = question
    chosen = _choose_features(names, features, label, shown=shown)
    if features is None:
        refuse_repetition(names)
        _names(chosen)
    places = [place_in(names, "features", name) for name in chosen]
    where = None if label is None else place_in(names, "label", label)
    labelled, y = _with_labels(rows, where, labels)
    if features is not None and not isinstance(features, Sequence):
        cells = _cells_of_text(labelled, places, features)
        return Examples(chosen, cells, y)
    values, count = array("d"), 0
    for line, row in labelled:
        for place in places:
            number = _number(row[place])
            if number is None:
                raise DataError(
                    f"Line {line} has no finite number in column {place + 1}. Correct it, choose "
                    "other columns with --features, or declare the columns with --schema."
                )
            values.append(number)
        count += 1
    return Examples(chosen, np.frombuffer(values, np.float64).reshape(_some(count), len(chosen)), y)


def _with_labels(
    rows: Rows, where: int | None, labels: Sequence[Label]
) -> tuple[Rows, list[Label]]:
    """Return the rows, and a list that gets the label of each when the row is read."""
    known: dict[object, Label] = {one: one for one in labels}
    numeric = not any(isinstance(one, str) for one in labels)
    y: list[Label] = []

    def read() -> Rows:
        for line, row in rows:
            if where is not None:
                text = row[where].strip()
                label = known.get(_number(text) if numeric else text)
                if label is None:
                    raise DataError(
                        f"Line {line} has a label that is not in --labels. Declare every possible "
                        "label."
                    )
                y.append(label)
            yield line, row

    return read(), y


def _cells_of_text(rows: Rows, places: Sequence[int], schema: Schema) -> NDArray[np.uint16]:
    """Return the cells of some columns, read in chunks."""
    import numpy as np

    chunks = [np.empty((0, len(places)), np.uint16)]
    while some := [[row[place] for place in places] for _, row in islice(rows, _CHUNK)]:
        chunks.append(schema.codes(some).T)
    cells = np.concatenate(chunks)
    _some(len(cells))
    return cells


def _choose_features(
    names: Sequence[str],
    features: Sequence[str] | Schema | None,
    label: str | None,
    *,
    shown: bool,
) -> list[str]:
    """Return the columns to read as features; `shown`: their names are public for certain."""
    chosen, source = _names_of(features), "schema" if hasattr(features, "codes") else "features"
    for option, name in [("label", label), *((source, name) for name in chosen or ())]:
        if name is not None and name not in names:
            raise no_column(option, name, names, shown=shown)
    return [name for name in names if name != label] if chosen is None else list(chosen)


def _names(columns: Sequence[str]) -> None:
    """Refuse a first line with numbers: without a line of names it is data, and names are shown."""
    if any(_number(name) is not None for name in columns):
        raise DataError(
            "The first line of FILE has a number, so it does not seem to name the columns. Add a "
            "line with column names, or give --features if a number is the name of a column."
        )


def _number(text: str) -> float | None:
    """Return the finite number that a text is."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _some(rows: int) -> int:
    if not rows:
        raise DataError("FILE has no rows.")
    return rows


def _of_table(
    data: object, where: Condition | None, question: _Asked, stack: ExitStack
) -> Examples:
    """Return the same through an engine, which reads the columns that are needed and no others."""
    import numpy as np

    from privmax.sources.asking import ask
    from privmax.sources.engines import engine_of
    from privmax.sources.reading import as_table, keep_rows

    features, label, labels = question
    names = _names_of(features)
    looked = () if where is None else where.columns()
    needed = [] if names is None else [*names, *filter(None, [label]), *looked]
    table = as_table(data, needed, [], True, stack)
    chosen = _choose_features(table.columns, features, label, shown=_is_shown(data))
    table = keep_rows(table, where, data)
    kind: type[np.generic] = np.float64
    if features is None or isinstance(features, Sequence):
        columns = [_as_number(table[name], "features") for name in chosen]
    else:
        from privmax.learning.expressions import cell_expressions

        columns, kind = list(cell_expressions(features, table)), np.uint16
    if label is not None:
        text = any(isinstance(one, str) for one in labels)
        column = table[label]
        columns.append(engine_of(table).text(column) if text else _as_number(column, "label"))
    if not columns:  # a rule that looks at nothing: rows are counted all the same
        columns.append(table[table.columns[0]].isnull().cast("float64"))
    named = table.select(**{f"column_{place}": column for place, column in enumerate(columns)})
    read = ask("reading the rows", named.to_pyarrow)
    X = np.empty((_some(read.num_rows), len(chosen)), kind)
    for place in range(len(chosen)):
        X[:, place] = read.column(place).to_numpy()
    if not np.isfinite(X).all():
        raise DataError(
            "A row of FILE has no finite number in one of the columns. Correct it, choose other "
            "columns with --features, or declare the columns with --schema."
        )
    known: dict[object, Label] = {one: one for one in labels}
    values = [] if label is None else read.column(len(chosen)).to_pylist()
    y = [known.get(one.strip() if isinstance(one, str) else one) for one in values]
    if None in y:
        raise DataError(
            "A row of FILE has a label that is not in --labels. Declare every possible label."
        )
    return Examples(chosen, X, [one for one in y if one is not None])


def _as_number(column: Any, option: str) -> Any:
    """Return a column as numbers; null where there is none."""
    kind = column.type()
    if kind.is_string():
        return column.try_cast("float64")
    if not (kind.is_numeric() or kind.is_boolean()):
        raise ParameterError(
            option, column.get_name(), "the column has values that are not numbers",
            "Choose other columns, or turn dates and the like into numbers first.",
        )  # fmt: skip
    return column.cast("float64")
