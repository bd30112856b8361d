"""Which source reads what: engines keep their tables, everything else is read in memory.

No engine is imported before somebody brings one of its objects, or a path.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, cast

from privmax.errors import DataError, ParameterError, column_error, explain_install, refuse_given
from privmax.labels import UNKNOWN, is_unknown, known, read_label
from privmax.numbers import Number
from privmax.sources.containers import is_strange
from privmax.sources.engines.base import ask, quietly
from privmax.sources.engines.duckdb import OURS
from privmax.sources.files import (
    ENDINGS,
    EXPORT,
    FIRST_LINE,
    SPREADSHEETS,
    ScoreFile,
    header,
    repetition,
)
from privmax.sources.memory import MemorySource
from privmax.sources.scale import Scale
from privmax.sources.tables import Columns, TableSource
from privmax.universe import Universe


def source(
    data: object,
    columns: Columns,
    *,
    universe: Universe,
    sensitivity: Number | None,
    resolution: Number | None,
) -> MemorySource | TableSource:
    """The source that fits `data`. Close it after use."""
    items, score, counted = columns.items(), columns.score, columns.counts()
    scale: dict[str, Any] = {"sensitivity": sensitivity, "resolution": resolution}
    is_path = isinstance(data, (str, os.PathLike))
    ready = data if isinstance(data, ScoreFile) else None
    if ready is None and is_path and score is not None and not counted:
        ready = _ready(Path(cast(str, data)), items, score)
    if ready is not None:
        scores = ready.read(Scale.of(sensitivity, resolution))
        return MemorySource(scores, universe=universe, **scale)
    wanted = [*items, *filter(None, (columns.user, columns.weight, score))]
    needs_table = counted or not isinstance(columns.item, str | None)
    numbered: dict[str, list[Any]] = {}
    with ExitStack() as held:
        table = as_table(data, wanted, [score, columns.weight], needs_table, held, numbered)
        if table is None:
            if needs_table:
                _refuse_columns(columns)
            item = items[0] if items else None
            return MemorySource(data, universe=universe, item=item, score=score, **scale)
        if is_path:
            _in_file(
                list(table.columns),
                is_text=isinstance(data, str | os.PathLike)
                and os.fspath(data).lower().endswith(ENDINGS),
                item=items or [None],
                user=[columns.user],
                score=[score],
                weight=[columns.weight],
            )
        if resolution is not None:
            raise ParameterError(
                "resolution",
                resolution,
                "counts, and scores in an engine, are whole numbers",
                "Leave it out.",
            )
        return TableSource(
            table,
            columns,
            universe=universe,
            sensitivity=sensitivity,
            numbered=numbered,
            inferred=_is_pandas(data),
            held=held,
        )


def _refuse_columns(columns: Columns) -> None:
    """Refuse, of data in memory, columns that only a table has; one column of items may be."""
    counting = {"user": columns.user, "weight": columns.weight, "bound": columns.bound}
    refuse_given(counting, "it belongs to a table, but this data is not one")
    if not isinstance(columns.item, str | None):
        raise ParameterError(
            "item", columns.item, "it names a column, but this data is not a table", "Leave it out."
        )


def _ready(path: Path, items: Sequence[str], score: str) -> ScoreFile | None:
    """A text file with ready scores, which needs no engine; None: it is something else."""
    if not path.name.lower().endswith(ENDINGS) or not _exists(path) or path.is_dir():
        return None
    _in_file([*items, score], item=items or [None])
    return ScoreFile(path, tuple(items), score)


def as_table(
    data: object,
    wanted: Sequence[str],
    numbers: Sequence[str | None],
    counted: bool,
    held: ExitStack,
    numbered: dict[str, list[Any]] | None = None,
) -> Any:
    """`data` as an Ibis table, or None where it is to be read in memory.

    Of what must be copied to become one, only the `wanted` columns are. `numbers` are those that
    hold whole numbers. Columns of Python objects become numbers, and `numbered` is told what they
    stand for.
    """
    loaded = sys.modules
    if isinstance(data, (str, os.PathLike)):
        return _file(data, wanted, numbers, held)
    if "ibis" in loaded and isinstance(data, loaded["ibis"].Table):
        return data
    if "duckdb" in loaded and isinstance(data, loaded["duckdb"].DuckDBPyRelation):
        return _relation(data, wanted, held)
    kind = type(data)
    if kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame":
        return _spark(data, held)
    if "polars" in loaded and isinstance(data, loaded["polars"].LazyFrame):
        return _lazy(data, wanted, held)
    return (
        _frame(data, wanted, numbers, held, {} if numbered is None else numbered)
        if counted
        else None
    )


def _file(
    given: str | os.PathLike[str],
    wanted: Sequence[str],
    numbers: Sequence[str | None],
    held: ExitStack,
) -> Any:
    """A CSV or Parquet file, or a folder of Parquet files, read by DuckDB."""
    path = Path(given)
    name = path.name.lower()
    if not _exists(path):
        raise DataError("There is no file or folder of the name given as data.")
    if path.is_dir():
        if next(path.rglob("*.parquet"), None) is None:
            raise DataError(
                "The folder holds no file that ends in .parquet, nor does one below it. Name a "
                "file."
            )
        return _parquet(path, "/**/*.parquet", held)
    if name.endswith((".parquet", ".pq")):
        return _parquet(path, "", held)
    if name.endswith(ENDINGS):
        return _text(path, wanted, numbers, held)
    if name.endswith(SPREADSHEETS):
        raise DataError(EXPORT)
    raise DataError(
        "The file is neither .csv, .tsv (.gz) nor .parquet. Rename it, or read it with Ibis and "
        "pass the table."
    )


def _in_file(
    columns: Sequence[str], *, is_text: bool = True, **options: Sequence[str | None]
) -> None:
    """Refuse a column that does not exist. Of a text file the message does not list the columns:
    without a header those are data.
    """
    for option, names in options.items():
        for name in names:
            if not is_text and (name not in columns if name is not None else option == "item"):
                raise column_error(option, name, columns, "file")
            if option == "item" and name is None:
                raise ParameterError.required(
                    option, "the file needs it", f"Name a column. {FIRST_LINE}"
                )
            if name is not None and name not in columns:
                raise ParameterError(option, name, "the file has no such column", FIRST_LINE)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name of a file at all: too long, or with a zero in it
        return False


def _parquet(path: Path, below: str, held: ExitStack) -> Any:
    return ask("opening the file", _duckdb(held).read_parquet, _literal(path) + below)


def _text(path: Path, wanted: Sequence[str], numbers: Sequence[str | None], held: ExitStack) -> Any:
    """A file of separated values, all of them text: what a column looks like depends on every row
    of it.

    Guessing types would make an item 7 or "7" by what other people's rows hold, which is more than
    a release may tell. For the same reason only the line of names, which is public, decides what
    separates the values.
    """
    names, separator = header(path)
    for name in wanted:
        if names.count(name) > 1:
            raise repetition(name)
    connection, ibis = _duckdb(held), _ibis()
    columns = {f"column_{place}": "VARCHAR" for place in range(len(names))}
    options = {"header": True, "delim": separator, "quote": '"', "escape": '"', "strict_mode": True}
    read = connection.read_csv
    rows = ask("opening the file", read, _literal(path), columns=columns, **options)
    once = {
        name: column
        for name, column in zip(names, columns, strict=True)
        if name and names.count(name) == 1
    }
    named = rows.select(
        **{name: rows[column].nullif("") for name, column in once.items()}
    )  # quoted or not
    whole = {name: named[name].strip() for name in once if name in numbers}
    return named.mutate(
        **{
            name: ibis.ifelse(text.re_search("^[+-]?[0-9]+$"), text, ibis.null("string")).try_cast(
                "int64"
            )
            for name, text in whole.items()
        }
    )


def _literal(path: Path) -> str:
    """The path as DuckDB takes it, which sees a pattern in some characters."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


_CHANGED_BY_ARROW = ("TIME WITH TIME ZONE", "HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "BIT")
"""Types of DuckDB that Arrow has no type for: their values go there as text."""


def _relation(relation: Any, wanted: Sequence[str], held: ExitStack) -> Any:
    """A DuckDB relation, whose connection cannot be asked for: streamed, batch by batch, through a
    new one.

    A stream can be read once, and once is enough: the engine counts, and keeps the counts.
    """
    connection = _duckdb(held)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    columns = []
    for name in _present(relation.columns, wanted):
        quoted = f'"{name.replace(chr(34), chr(34) * 2)}"'
        changed = kinds[name] in _CHANGED_BY_ARROW
        columns.append(f"CAST({quoted} AS VARCHAR) AS {quoted}" if changed else quoted)
    stream = ask(
        "opening the relation", lambda: relation.project(", ".join(columns)).to_arrow_reader()
    )
    return _register(connection, stream)


def _frame(
    data: Any,
    wanted: Sequence[str],
    numbers: Sequence[str | None],
    held: ExitStack,
    numbered: dict[str, list[Any]],
) -> Any:
    """A pandas, polars or Arrow frame, read by DuckDB without a copy; None if it is not one."""
    polars, arrow = (sys.modules.get(name) for name in ("polars", "pyarrow"))
    if _is_pandas(data):
        columns = data[_present(list(data.columns), wanted)]
        _ibis()
        import pyarrow

        for name in columns.columns:
            kind = columns[name].dtype
            if is_strange(kind):
                raise DataError(UNKNOWN)
            held_in = getattr(kind, "categories", columns[name])
            if name not in numbers and held_in.dtype == object:
                columns = columns.assign(**{name: _numbers_for(columns[name], name, numbered)})

        def read() -> Any:
            return pyarrow.Table.from_pandas(columns, preserve_index=False)
    elif polars is not None and isinstance(data, polars.DataFrame):
        chosen = data.select(_present(data.columns, wanted))
        _no_objects(chosen.schema)
        read = chosen.to_arrow
    elif arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        chosen = data.select(_present(data.schema.names, wanted))

        def read() -> Any:
            return chosen if isinstance(chosen, arrow.Table) else arrow.Table.from_batches([chosen])
    else:
        return None
    return _register(_duckdb(held), ask("reading the frame", read))


def _is_pandas(data: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _numbers_for(column: Any, name: str, numbered: dict[str, list[Any]]) -> Any:
    """A column of Python objects as numbers of its labels, null where there is none.

    Arrow would give it one type, which follows from all of its rows: 1 would become 1.0 beside
    somebody's 2.5.
    """
    pandas = sys.modules["pandas"]
    place: dict[Any, int] = {}
    labels: list[Any] = []
    numbers: list[int | None] = []
    for value in column:
        is_text = type(value) is str
        label = value if is_text else read_label(value)
        if label is None:
            numbers.append(None)
            continue
        key = label if is_text else known(label)
        number = place.setdefault(key, len(labels))
        if number == len(labels):
            if is_unknown(label) or not _is_valid(label):
                raise DataError(UNKNOWN)
            labels.append(label)
        numbers.append(number)
    numbered[name] = labels
    return pandas.array(numbers, dtype="Int64")


def _is_valid(label: Any) -> bool:
    """Whether text can be written down at all: Python's may hold halves of characters."""
    return not isinstance(label, str) or not any("\ud800" <= letter <= "\udfff" for letter in label)


def _no_objects(schema: Any) -> None:
    """Refuse columns of Python objects of polars: others see where those are in memory, and not
    what they are.
    """
    if sys.modules["polars"].Object in schema.values():
        raise DataError(
            "A column holds Python objects. Use text or numbers, dates, or several columns."
        )


def _register(connection: Any, rows: Any) -> Any:
    """Arrow data under a name of the connection, not copied."""
    ask("opening the data", connection.con.register, "privmax_rows", rows)
    return ask("opening the data", connection.table, "privmax_rows")


def _present(columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The wanted columns, or all if one is missing: whoever refuses it says what there is."""
    names = list(dict.fromkeys(wanted))
    for name in names:
        if list(columns).count(name) > 1:
            raise DataError("Two columns of the table have the same name. Rename one.")
    return names if names and set(names) <= set(columns) else list(columns)


def _lazy(frame: Any, wanted: Sequence[str], held: ExitStack) -> Any:
    """A polars LazyFrame, which polars itself counts."""
    kinds = ask("opening the frame", frame.collect_schema)
    _no_objects({name: kind for name, kind in kinds.items() if name in wanted})
    connection = _ibis().polars.connect()
    held.callback(quietly, connection.disconnect)
    polars = sys.modules["polars"]
    text = frame.cast(
        {polars.Categorical: polars.String, polars.Enum: polars.String}
    )  # polars keeps them apart
    return ask("opening the frame", connection.create_table, "privmax_rows", text)


_SPARK_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
"""What Ibis sets in a session it is given."""


def _spark(frame: Any, held: ExitStack) -> Any:
    """A Spark DataFrame as a view of its own session, which is left as it was."""
    session = frame.sparkSession
    for name in _SPARK_SETTINGS:
        with suppress(
            Exception
        ):  # some services let nobody read their settings, and then nobody changes them
            held.callback(quietly, session.conf.set, name, session.conf.get(name))
    connection = ask("opening the session", _ibis().pyspark.connect, session)
    view = f"privmax_rows_{secrets.token_hex(8)}"
    held.callback(quietly, session.catalog.dropTempView, view)
    ask("opening the frame", frame.createTempView, view)
    return ask("opening the frame", connection.table, view)


def _duckdb(held: ExitStack) -> Any:
    """A DuckDB of one's own, in memory."""
    connection = ask("starting DuckDB", _ibis().duckdb.connect)
    setattr(connection, OURS, True)
    held.callback(quietly, connection.disconnect)
    return connection


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise ParameterError(
            "data",
            "a table",
            "tables and files need Ibis, which is not installed",
            explain_install("sql"),
        ) from None
    return ibis
