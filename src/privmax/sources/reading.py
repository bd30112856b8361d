"""Which source reads what: engines keep their tables, everything else is read in memory.

No engine is imported before somebody brings one of its objects, or a path.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from privmax.errors import (
    ConditionError,
    DataError,
    ParameterError,
    column_error,
    explain_install,
    refuse_given,
)
from privmax.labels import UNKNOWN, identify, is_unknown, read_label
from privmax.numbers import Number
from privmax.sources.conditions import Condition
from privmax.sources.containers import is_strange
from privmax.sources.engines import engine_of
from privmax.sources.engines.base import BATCH, ask, quietly
from privmax.sources.engines.duckdb import OURS, prepare
from privmax.sources.files import (
    EXPORT,
    FIRST_LINE,
    SPREADSHEETS,
    ScoreFile,
    check_complete,
    check_layout,
    header,
    is_json,
    is_stream,
    open_records,
    repetition,
)
from privmax.sources.memory import MemorySource
from privmax.sources.places import TEXT, Files, differs, find_files
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
    where = None if columns.where is None else Condition.of(columns.where)
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    ready = data if isinstance(data, ScoreFile) else None
    if ready is None and score is not None and not counted:
        ready = _ready(data, items, score)
    if ready is not None:
        scores = replace(ready, where=where).read(Scale.of(sensitivity, resolution))
        return MemorySource(scores, universe=universe, **scale)
    looked = where.columns() if where is not None else ()
    wanted = [*items, *filter(None, (columns.user, columns.weight, score)), *looked]
    needs_table = counted or where is not None or not isinstance(columns.item, str | None)
    numbered: dict[str, list[Any]] = {}
    with ExitStack() as held:
        table = as_table(data, wanted, [score, columns.weight], needs_table, held, numbered)
        if table is None:
            if where is not None:
                raise _no_where(where)
            if needs_table:
                _refuse_columns(columns)
            item = items[0] if items else None
            return MemorySource(data, universe=universe, item=item, score=score, **scale)
        is_text = isinstance(data, io.IOBase) or (isinstance(data, Files) and data.kind in TEXT)
        if is_text or isinstance(data, Files):
            _in_file(
                table.columns,
                shown=not is_text,
                item=items or [None],
                user=[columns.user],
                score=[score],
                weight=[columns.weight],
            )
        if where is not None:
            table = keep_rows(table, where, data)
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


def keep_rows(table: Any, where: Condition | None, data: object) -> Any:
    """The rows of the table made of `data` for which a condition is true; None: all."""
    if where is None:
        return table
    if _is_pandas(data):
        raise _no_where(where)
    is_text = is_text_file(data)
    shown = not is_text
    return where.filter(table, engine_of(table), is_text=is_text, shown=shown)


def _no_where(where: Condition) -> ConditionError:
    return ConditionError(
        "where",
        where.given,
        "it is for files, tables of an engine, and polars and Arrow frames",
        "Choose the rows in Python before, for example frame[frame.age >= 18].",
    )


def is_text_file(data: object) -> bool:
    """Whether data is text, whatever it holds: CSV, JSON Lines, an open file."""
    return data.is_text if isinstance(data, Files) else is_stream(data)


def _ready(data: object, items: Sequence[str], score: str) -> ScoreFile | None:
    """A text file with ready scores, which needs no engine; None: it is something else."""
    if not is_text_file(data):
        return None
    _in_file([*items, score], item=items or [None])
    return ScoreFile(cast(Any, data), tuple(items), score)


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
        data = find_files(data)
    if isinstance(data, Files):
        return _file(data, wanted, numbers, held)
    if isinstance(data, io.IOBase):
        return _copy(cast(Any, data), wanted, numbers, held)
    if "ibis" in loaded and isinstance(data, loaded["ibis"].Table):
        return ask("opening the table", engine_of(data).declare, data)
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
    files: Files, wanted: Sequence[str], numbers: Sequence[str | None], held: ExitStack
) -> Any:
    """CSV, JSON Lines or Parquet files, or a folder of Parquet files, read by DuckDB."""
    paths = [_literal(path) for path in files.paths]
    if files.kind == "folder":
        if next(files.paths[0].rglob("*.parquet"), None) is None:
            raise DataError(
                "The folder holds no file that ends in .parquet, nor does one below it. Name a "
                "file."
            )
        paths = [f"{paths[0]}/**/*.parquet"]
    if files.kind in ("folder", "parquet"):
        place = paths[0] if len(paths) == 1 else paths
        # values that stand in the names of folders are text, whatever other folders are called
        read_parquet = _duckdb(held).read_parquet
        table = ask("opening the file", read_parquet, place, hive_types_autocast=False)
        if files.kind == "folder" or len(paths) > 1:
            _check_parquet(table, place)
        return table
    if files.is_json:
        return _copy(files, wanted, numbers, held)
    if not all(path.is_file() for path in files.paths):
        raise DataError("A pipe can be read once only. Give a file, or - for standard input.")
    if files.is_csv:
        return _text(files, wanted, numbers, held)
    if files.paths[0].name.lower().endswith(SPREADSHEETS):
        raise DataError(EXPORT)
    if files.kind == "database":
        raise ParameterError(
            "table",
            None,
            "the file is a database, which may hold several tables",
            "Name one of them.",
        )
    raise DataError(
        "The file is neither .csv, .tsv, .jsonl, .ndjson (.gz, .zst) nor .parquet. Rename it, or "
        "read it with Ibis and pass the table."
    )


def _in_file(
    columns: Sequence[str], *, shown: bool = False, **options: Sequence[str | None]
) -> None:
    """Refuse a column that is not there. Unless names are `shown`, which are public for certain, it
    is not said which are: in a text file without a line of names those are data.
    """
    for option, names in options.items():
        for name in names:
            if shown and (name not in columns if name is not None else option == "item"):
                raise column_error(option, name, list(columns), "file")
            if option == "item" and name is None:
                remedy = f"Name a column. {FIRST_LINE}"
                raise ParameterError.required(option, "the file needs it", remedy)
            if name is not None and name not in columns:
                raise ParameterError(option, name, "the file has no such column", FIRST_LINE)


def _check_parquet(table: Any, place: str | Sequence[str]) -> None:
    """Refuse files of a pattern or a folder whose columns are not those of the first: DuckDB would
    convert them, and fail, or not, by what they hold.
    """
    con = table.get_backend().con

    def list_files() -> list[Path]:
        found = con.execute("SELECT file FROM glob(?)", [place]).fetchall()
        return sorted(Path(name) for (name,) in found)

    def columns(path: Path) -> list[tuple[str, str]]:
        described = "DESCRIBE SELECT * FROM read_parquet(?, hive_types_autocast=false)"
        found = con.execute(described, [_literal(path)]).fetchall()
        return [(name, kind) for name, kind, *_ in found]

    first, *others = ask("opening the file", list_files)
    expected = ask("opening the file", columns, first)
    for path in others:
        found = ask("opening the file", columns, path)
        if [name for name, _ in found] != [name for name, _ in expected]:
            raise differs(path, first, "does not have the same columns, in the same order, as")
        for (name, kind), (_, other) in zip(found, expected, strict=True):
            if kind != other:
                raise differs(path, first, f"has another type ({kind}) of the column {name!r} than")


def _text(
    files: Files, wanted: Sequence[str], numbers: Sequence[str | None], held: ExitStack
) -> Any:
    """Files of separated values, all of them text: what a column looks like depends on every row
    of it.

    Guessing types would make an item 7 or "7" by what other people's rows hold, which is more than
    a release may tell. For the same reason only the line of names, which is public, decides what
    separates the values.
    """
    for path in files.paths:
        check_complete(path)
    names, separator = header(files.paths[0])
    for path in files.paths[1:]:
        others, mark = header(path)
        check_layout(path, others, files.paths[0], names)
        if mark != separator:
            raise differs(path, files.paths[0], "has another separator than")
    for name in wanted:
        if names.count(name) > 1:
            raise repetition(name)
    connection = _duckdb(held)
    columns = {f"column_{place}": "VARCHAR" for place in range(len(names))}
    options = {"header": True, "delim": separator, "quote": '"', "escape": '"', "strict_mode": True,
               "hive_partitioning": False}  # fmt: skip
    read = connection.read_csv
    paths = [_literal(path) for path in files.paths]
    place = paths[0] if len(paths) == 1 else paths
    rows = ask("opening the file", read, place, columns=columns, **options)
    once = {
        name: column
        for name, column in zip(names, columns, strict=True)
        if name and names.count(name) == 1
    }
    if not once:
        raise DataError(
            "No column has a name of its own: on the first line of the file all are empty or "
            "stand there twice. head -n 1 FILE shows it."
        )
    named = rows.select(
        **{name: rows[column].nullif("") for name, column in once.items()}
    )  # quoted or not
    return _with_numbers(named, numbers)


def _with_numbers(rows: Any, numbers: Sequence[str | None]) -> Any:
    """Rows of text with whole numbers in some of the columns; null where there is none."""
    ibis = _ibis()
    whole = {name: rows[name].strip() for name in rows.columns if name in numbers}
    return rows.mutate(
        **{
            name: ibis.ifelse(text.re_search("^[+-]?[0-9]+$"), text, ibis.null("string")).try_cast(
                "int64"
            )
            for name, text in whole.items()
        }
    )


def _copy(
    place: Files | BinaryIO,
    wanted: Sequence[str],
    numbers: Sequence[str | None],
    held: ExitStack,
) -> Any:
    """JSON Lines, or an open file of separated values: read here, by the rules of `files.py`, and
    kept by DuckDB batch by batch, which may put them into its temporary folder.
    """
    if is_json(place) and not wanted:
        raise ParameterError.required("item", "the file needs it", "Name a key of its objects.")
    connection, ibis = _duckdb(held), _ibis()
    with open_records(place, wanted or None) as (names, found):
        records = found
        for name in wanted:
            if names.count(name) > 1:
                raise repetition(name)
        chosen = [name for name in names if name and names.count(name) == 1]
        if wanted and set(wanted) <= set(names):
            chosen = [name for name in chosen if name in wanted]
        elif wanted:
            records = iter(())  # whoever refuses what is missing names what there is
        kinds = {f"column_{place}": "string" for place in range(len(chosen))}
        schema = ibis.schema(kinds)
        rows = ask("keeping the rows", connection.create_table, "privmax_rows", schema=schema)
        places = [names.index(name) for name in chosen]
        while batch := [
            [row[place] or None for place in places] for _, row in islice(records, BATCH)
        ]:
            ask("keeping the rows", _append, connection.con, batch)
    named = rows.select(**{name: rows[kind] for name, kind in zip(chosen, kinds, strict=True)})
    return _with_numbers(named, numbers)


def _append(connection: Any, batch: Sequence[Sequence[str | None]]) -> None:
    import pyarrow

    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*batch, strict=True)]
    names = [f"column_{place}" for place in range(len(columns))]
    connection.register("privmax_batch", pyarrow.table(columns, names=names))
    connection.execute("INSERT INTO privmax_rows SELECT * FROM privmax_batch")
    connection.unregister("privmax_batch")


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
    needed = ask("opening the relation", lambda: relation.project(", ".join(columns)))
    # DuckDB before 1.5 knows the older name only.
    read = getattr(needed, "to_arrow_reader", None) or needed.fetch_arrow_reader
    return _register(connection, ask("opening the relation", read))


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
        key = label if is_text else identify(label)
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
            "A column holds Python objects. Use text, numbers, dates, or several columns."
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
    return ask("starting DuckDB", prepare, connection, held)


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
