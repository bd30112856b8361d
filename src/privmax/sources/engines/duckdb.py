"""DuckDB: collations end where bytes begin. A database that we opened ourselves has none."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from privmax.errors import DataError
from privmax.resources import CHOSEN, Resources
from privmax.sources import relations
from privmax.sources.arrow_rows import arrays_of, iso, rows_of, typed_array
from privmax.sources.asking import ask, check_ibis, import_ibis, quietly
from privmax.sources.blocks import Batch, Block, list_rows, pack_rows
from privmax.sources.engines.base import (
    ArrowEngine,
    Engine,
    as_text,
    call,
    choose_columns,
    is_moment,
    new_name,
)
from privmax.sources.kinds import find_kind, kind_of
from privmax.sources.places import differs
from privmax.sources.relations import Relation, RelationColumn, quote_name

_OURS = "privmax_opened_it"
"""Marks a connection that reads files or frames for us: no column has a collation there, and text
is its own key, which is a third faster than its bytes."""

_CHANGED_BY_ARROW = ("TIME WITH TIME ZONE", "HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "BIT")
"""Types that Arrow has no type for: their values go there as text."""


_BEYOND_PYTHON = ("0001-01-01 (BC) 00:00:00", "10000-01-02 00:00:00")
"""Moments before and after all that a condition can name."""


@cache
def _infinite() -> dict[str, str]:
    """Return the dates and moments that DuckDB writes so, by the numbers it keeps for them."""
    return {
        iso(sign * number, unit): "infinity" if sign > 0 else "-infinity"
        for number, unit in (((1 << 31) - 1, "D"), ((1 << 63) - 1, "us"))
        for sign in (1, -1)
    }


def make_folder(stack: ExitStack) -> Path:
    """Return a new folder that only this user can open; it goes with `stack`."""
    resources = CHOSEN.get() or Resources.of()
    folder = tempfile.TemporaryDirectory(
        prefix="privmax-", dir=resources.folder, ignore_cleanup_errors=True
    )
    stack.callback(folder.cleanup)
    return Path(folder.name)


def prepare(connection: Any, stack: ExitStack) -> Any:
    """Return a connection to DuckDB that keeps to what it may use; the folder goes with `stack`."""
    resources = CHOSEN.get() or Resources.of()
    folder = make_folder(stack)
    stack.callback(quietly, connection.disconnect)
    settings = {
        "temp_directory": str(folder),
        "autoinstall_known_extensions": "false",  # nothing is fetched from anywhere
        "autoload_known_extensions": "false",  # and no code runs that a file asks for
    }
    if resources.memory is not None:
        settings["memory_limit"] = resources.memory
    if resources.watch is not None:
        settings |= {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
    for name, value in settings.items():
        connection.con.execute(f"SET {name} = '{value.replace(chr(39), chr(39) * 2)}'")
    if resources.watch is not None:
        resources.watch(connection.con)
    return connection


class DuckDB(ArrowEngine):
    name, title = "duckdb", "DuckDB"
    schemes: Mapping[str, str] = {"duckdb": "DuckDB"}
    package, module, extra = "duckdb", "duckdb", "duckdb"
    endings = (".duckdb", ".ddb")
    mark = 8, b"DUCK"
    reads_files = True
    streams_objects = True
    floats_never_fail = True
    has_grouping_sets = True
    updates_tables = True
    _began = False

    @classmethod
    def open_file(cls, file: Path, stack: ExitStack) -> Any:
        import ibis

        return prepare(ibis.duckdb.connect(file, read_only=True), stack)

    @classmethod
    def open_memory(cls, stack: ExitStack) -> Any:
        check_ibis()  # which brings the engine along, and reads types that are rare
        connection = ask(f"starting {cls.title}", DuckDBConnection)
        return ask(f"starting {cls.title}", prepare, connection, stack)

    @classmethod
    def open_arrow(cls, question: str, read: Callable[[], Any], stack: ExitStack) -> Any:
        connection = cls.open_memory(stack)
        ask("opening the data", connection.con.register, "privmax_rows", ask(question, read))
        return ask("opening the data", connection.table, "privmax_rows")

    @classmethod
    def open_parquet(cls, paths: Sequence[Path], needed: Sequence[str], stack: ExitStack) -> Any:
        connection = cls.open_memory(stack)
        places = [_literal(path) for path in paths]
        if paths[0].is_dir():
            places = [f"{places[0]}/**/*.parquet"]
        if paths[0].is_dir() or len(paths) > 1:
            _check_layouts(connection.con, places)
        rows = _read_parquet(places)
        names = [name for name, _ in ask("opening the file", _describe, connection.con, rows)]
        own = ask("opening the file", _name_columns, connection.con, places)
        _refuse_renamed(own, names, needed)
        chosen = choose_columns(names, needed)
        coarse = ask("opening the file", _find_milliseconds, connection.con, places, chosen)
        if coarse:
            return ask("opening the file", _keep_moments, connection, places, chosen, coarse)
        return ask("opening the file", _view, connection, chosen, rows)

    @classmethod
    def open_separated(
        cls,
        paths: Sequence[Path],
        separator: str,
        width: int,
        chosen: Sequence[int],
        stack: ExitStack,
    ) -> Any:
        connection = cls.open_memory(stack)
        rows = _read_separated(paths, separator, width)
        columns = [f"column_{place}" for place in chosen]
        return ask("opening the file", _view, connection, columns, rows)

    @classmethod
    def keep_batches(cls, width: int, batches: Iterable[Batch], stack: ExitStack) -> Any:
        """It keeps blocks in files of a private folder, and may put other rows there."""
        folder = ask("keeping the rows", make_folder, stack)
        connection = cls.open_memory(stack)
        written = _Written(folder, stack)
        names = [f"column_{place}" for place in range(width)]
        columns = ", ".join(f"{name} VARCHAR" for name in names)
        con = connection.con
        ask("keeping the rows", con.execute, f"CREATE TABLE privmax_odd_rows ({columns})")
        for batch in batches:
            block, places = batch if isinstance(batch, tuple) else (pack_rows(batch, width), None)
            if block is None or not ask("keeping the rows", written.add, block, places):
                rows = batch if isinstance(batch, list) else list_rows(*batch)
                ask("keeping the rows", _append, con, rows)
        parts: list[str] = ask("keeping the rows", list, written.queries())
        query = " UNION ALL ".join(["SELECT * FROM privmax_odd_rows", *parts])
        listed = ", ".join(f"nullif({name}, '') AS {name}" for name in names)
        view = f"CREATE TEMP VIEW privmax_rows AS SELECT {listed} FROM ({query})"
        ask("keeping the rows", con.execute, view)
        return ask("keeping the rows", connection.table, "privmax_rows")

    @classmethod
    def read_csv(cls, file: Path) -> Any:
        import duckdb

        return duckdb.read_csv(str(file))

    @classmethod
    def owns(cls, data: object) -> bool:
        """Return whether it is a relation."""
        duckdb = sys.modules.get("duckdb")
        return duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation)

    @classmethod
    def open_object(cls, data: Any, needed: Sequence[str], stack: ExitStack) -> Any:
        """Stream a relation, batch by batch, through a new connection.

        Its own connection cannot be asked for.

        A stream can be read once, and once is enough: the engine counts, and keeps the counts.
        """
        types = dict(zip(data.columns, map(str, data.types), strict=True))
        columns = []
        for name in choose_columns(data.columns, needed):
            quoted = quote_name(name)
            changed = types[name] in _CHANGED_BY_ARROW
            columns.append(f"CAST({quoted} AS VARCHAR) AS {quoted}" if changed else quoted)
        chosen = ask("opening the relation", lambda: data.project(", ".join(columns)))
        # DuckDB before 1.5 knows the older name only.
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
        return cls.open_arrow("opening the relation", read, stack)

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        """Return whether another process writes to the file."""
        is_own = type(error).__module__.partition(".")[0] in ("_duckdb", "duckdb")
        return is_own and type(error).__name__ == "IOException" and "lock" in str(error)

    @classmethod
    def of(cls, backend: Any) -> Engine:
        return Embedded(backend) if isinstance(backend, DuckDBConnection) else cls(backend)

    @property
    def keys_are_bytes(self) -> bool:  # type: ignore[override]  # of a class it is a constant
        return not hasattr(self.backend, _OURS)

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, unless there is one, or no one else can write."""
        super().begin(table, stack, passes=passes)
        # what it takes from Python stays there
        ask("the counting", self.backend._run_pre_execute_hooks, table)
        if self.keys_are_bytes and not ask("the counting", self._is_within_transaction):
            ask("the counting", self.backend.con.begin)
            stack.callback(quietly, self.backend.con.rollback)
            self._began = True

    def keep_labels(self, table: Any, stack: ExitStack) -> Any:
        # DuckDB compares a table of Arrow with values of the data while it scans it, and pyarrow
        # fails at those that Python does not have.
        return self.keep(table, stack)

    def end_reading(self) -> None:
        """Commit the tables made so far.

        A table that a transaction has not committed has no statistics, without which DuckDB counts
        half as fast.
        """
        if self._began:
            ask("the counting", self.backend.con.commit)

    def _is_within_transaction(self) -> bool:
        """Return whether two statements belong to one transaction.

        To begin another would fail, and end the caller's.
        """
        numbers = {self.backend.con.execute("SELECT txid_current()").fetchone() for _ in range(2)}
        return len(numbers) == 1

    def has_text_key(self, kind: Any) -> bool:
        """Return whether a type is compared as text, as everywhere, or has 128 bits.

        Ibis takes such whole numbers for decimals that cannot hold all of them.
        """
        return super().has_text_key(kind) or bool(
            kind.is_decimal() and (kind.precision, kind.scale) == (38, 0)
        )

    def text(self, column: Any) -> Any:
        return as_text(_keep_times_of_day(column))

    def text_key(self, column: Any) -> Any:
        is_plain = column.type().is_string() and not self.keys_are_bytes
        text = column if is_plain else self.text(column)
        return call("encode", "binary", text) if self.keys_are_bytes else text

    def hash_values(self, keys: Sequence[Any], salt: str) -> Any:
        hashed = self.literal(salt, "string")
        for key in keys:  # an enumeration as its text: its numbers depend on other rows
            value = as_text(key) if key.type().is_string() else key
            hashed = call("hash", "uint64", hashed, value)
        return hashed

    def operands(self, column: Any, value: str | Decimal | bool) -> tuple[Any, Any] | None:
        """Return the same, with moments that are far from all of Python's brought nearer.

        DuckDB compares seconds and milliseconds as microseconds, and would stop at a moment that
        has no place there. Comparisons with moments of Python come out the same.
        """
        kind, operands = column.type(), super().operands(column, value)
        if operands is None or not kind.is_timestamp() or kind.scale not in (0, 3):
            return operands
        low, high = (self.literal(text, "string").cast(kind) for text in _BEYOND_PYTHON)
        column = (column > high).ifelse(high, column)
        return (column < low).ifelse(low, column), operands[1]

    def strip(self, text: Any) -> Any:
        return text.strip()

    def label(self, value: Any, kind: Any) -> Any:
        if is_moment(kind) and isinstance(value, str) and value in _infinite():
            return _infinite()[value]
        return super().label(value, kind_of("time") if _has_nanoseconds(kind) else kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        """Fetch rows without Ibis, which would import pandas and Arrow's functions to change types.

        That takes half a second, for values that Python reads as they are. Sums of whole numbers
        come as decimals.
        """
        return rows_of(self._fetch(table))

    def numbers(self, table: Any) -> list[Any]:
        return arrays_of(self._fetch(table))

    def _fetch(self, table: Any) -> Any:
        self.backend._run_pre_execute_hooks(table)
        return self.backend.con.sql(self.backend.compile(table)).to_arrow_table()

    def drop(self, name: str, *, stopped: bool = False) -> None:
        if stopped:
            quietly(
                self.backend.con.interrupt
            )  # after Ctrl-C it would first finish what it was doing
        super().drop(name)

    def forget(self, name: str) -> None:
        self.backend.drop_view(name, force=True)


class DuckDBConnection:
    """A new database in memory that reads files or frames for us: what Ibis would wrap.

    Its methods are those of Ibis that are asked for. Its tables are relations.
    """

    name = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self.con = duckdb.connect(":memory:")
        self.con.execute("SET TimeZone = 'UTC'")
        self.con.execute("SET python_enable_replacements = false")  # names are tables only

    def disconnect(self) -> None:
        self.con.close()

    def table(self, name: str) -> Relation:
        quoted = quote_name(name)
        kinds = {one: _read_kind(kind) for one, kind in _describe(self.con, quoted)}
        return Relation.of(self, quoted, kinds)

    def create_table(self, name: str, table: Relation, *, temp: bool = False) -> Relation:
        kind = "TEMP TABLE" if temp else "TABLE"
        self.con.execute(f"CREATE {kind} {quote_name(name)} AS {table.sql}")
        return self.table(name)

    def drop_table(self, name: str, *, force: bool = False) -> None:
        self.con.execute(f"DROP TABLE {'IF EXISTS ' if force else ''}{quote_name(name)}")

    def to_arrow(self, table: Relation) -> Any:
        return self.con.sql(table.sql).to_arrow_table()

    @cached_property
    def ibis(self) -> Any:
        """The same connection, as Ibis has it."""
        backend = import_ibis().duckdb.from_connection(self.con)
        setattr(backend, _OURS, True)
        return backend


class Embedded(DuckDB):
    """The same for files and frames, which are relations: without Ibis."""

    keys_are_bytes = False

    def to_ibis(self, table: Relation) -> Any:
        return ask("opening the table", self._view, table)

    def _view(self, table: Relation) -> Any:
        name = new_name("view")
        self.backend.con.execute(f"CREATE TEMP VIEW {name} AS {table.sql}")
        return self.backend.ibis.table(name)

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        Engine.begin(self, table, stack, passes=passes)  # nobody else can write

    def is_made(self, table: Relation) -> bool:
        return table.query.startswith('"')  # the name of a table, and not a query

    def literal(self, value: Any, kind: Any) -> Any:
        return relations.literal(value, kind)

    def null(self, kind: Any) -> Any:
        return relations.literal(None, kind)

    def number_rows(self, order: Any, within: Sequence[Any] | None = None) -> Any:
        ordered = [order] if isinstance(order, RelationColumn) else list(order)
        return relations.number_rows("row_number", within or (), ordered)

    def rank_rows(self, order: Sequence[Any]) -> Any:
        return relations.number_rows("dense_rank", (), order)

    def whole_schema(self, names: Sequence[str]) -> Any:
        return dict.fromkeys(names, relations.INT64)

    def rows(self, table: Relation) -> list[tuple[Any, ...]]:
        """Fetch rows; dates and moments as the numbers they are, which takes Arrow."""
        if any(is_moment(kind) for kind in table.kinds.values()):
            return rows_of(table.to_pyarrow())
        rows: list[tuple[Any, ...]] = self.backend.con.execute(table.sql).fetchall()
        return rows

    def numbers(self, table: Relation) -> list[Any]:
        whole = table.select(**{
            name: relations.cast_always(table[name], relations.INT64) for name in table.columns
        })  # fmt: skip
        columns = self.backend.con.execute(whole.sql).fetchnumpy()
        return [columns[name] for name in table.columns]

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        kinds = {name: schema[name] for name in columns}
        most = max(map(len, columns.values()), default=0)
        if most <= _WRITTEN and set(map(str, kinds.values())) == {"int64"}:
            numbers = {name: _whole_numbers(values) for name, values in columns.items()}
            return Relation.of(self.backend, _write_numbers(numbers), kinds)
        import pyarrow

        typed = [typed_array(values, schema[name].to_pyarrow()) for name, values in columns.items()]
        name = new_name("list")
        self.backend.con.register(name, pyarrow.table(typed, names=list(columns)))
        stack.callback(quietly, self.backend.con.unregister, name)
        return Relation.of(self.backend, name, kinds)


_WRITTEN = 10_000
"""Rows of numbers that are written down in SQL: where it is given an Arrow table, DuckDB imports
pandas."""


def _whole_numbers(values: Sequence[Any]) -> Sequence[int]:
    """Return an array of ours as it is, and labels that a caller declares as Arrow reads them.

    Python reads more as a whole number than any other reader of labels: `1_000`, and other digits.
    """
    if hasattr(values, "dtype"):
        return values
    import pyarrow

    numbers: list[int] = typed_array(values, pyarrow.int64()).to_pylist()
    return numbers


def _write_numbers(columns: Mapping[str, Sequence[int]]) -> str:
    """Write whole numbers as a table.

    Examples:
        >>> _write_numbers({"a": [1, 2]})
        '(SELECT unnest(CAST([1, 2] AS BIGINT[])) AS "a")'
    """
    listed = ", ".join(
        f"unnest(CAST([{', '.join(map(str, map(int, values)))}] AS BIGINT[])) AS {quote_name(name)}"
        for name, values in columns.items()
    )
    return f"(SELECT {listed})"


def _read_kind(text: str) -> Any:
    """Return the type that DuckDB calls so."""
    kind = find_kind(text)
    if kind is not None:
        return kind
    from ibis.backends.sql.datatypes import DuckDBType

    return DuckDBType.from_string(text)


def _check_layouts(con: Any, places: Sequence[str]) -> None:
    """Refuse Parquet files whose columns are not those of the first file.

    They are files of a pattern or a folder. DuckDB would convert them, and fail, or not, by what
    they hold.
    """

    def columns(path: Path) -> list[tuple[str, str]]:
        return _describe(con, _read_parquet([_literal(path)]))

    first, *others = ask("opening the file", _list_files, con, places)
    expected = ask("opening the file", columns, first)
    for path in others:
        layout = ask("opening the file", columns, path)
        if [name for name, _ in layout] != [name for name, _ in expected]:
            raise differs(path, first, "does not have the same columns, in the same order, as")
        for (name, kind), (_, other) in zip(layout, expected, strict=True):
            if kind != other:
                raise differs(path, first, f"has another type ({kind}) of the column {name!r} than")


def _name_columns(con: Any, places: Sequence[str]) -> list[str]:
    """Return what a Parquet file calls its columns; of several files, the first."""
    question = f"SELECT file_name, name, num_children FROM parquet_schema({_sql(list(places))})"
    (file, _, columns), *parts = con.execute(question).fetchall()
    names: list[str] = []
    inside = 0  # parts of the column before that are still to come
    for place, name, children in parts:
        if place != file or (len(names) == columns and not inside):
            break
        if inside:
            inside -= 1
        else:
            names.append(name)
        inside += children or 0
    return names


def _refuse_renamed(own: Sequence[str], read: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a column that DuckDB would read under another name, or take another one for.

    It renames columns whose names differ only in case: of a, A and A_1 the second is A_1.

    Examples:
        >>> _refuse_renamed(["a", "A", "A_1"], ["a", "A_1", "A_1_1"], ["a"])
        >>> _refuse_renamed(["a", "A", "A_1"], ["a", "A_1", "A_1_1"], ["A_1"])
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: DuckDB renames a column of the Parquet file that is asked for...
    """
    read = read[: len(own)]  # behind them are columns that names of folders make
    for name in needed:
        theirs = read.index(name) if name in read else None
        ours = own.index(name) if name in own else None
        if theirs != ours:
            raise DataError(
                "DuckDB renames a column of the Parquet file that is asked for, as names in the "
                "file are empty or differ only in case. Rename them in the file."
            )


def _list_files(con: Any, places: Sequence[str]) -> list[Path]:
    rows = con.execute(f"SELECT file FROM glob({_sql(list(places))})").fetchall()
    return sorted(Path(name) for (name,) in rows)


def _find_milliseconds(con: Any, places: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Find the columns of moments that a Parquet file keeps in milliseconds, by their types."""
    # Written out: to read a list that is a parameter, DuckDB would import pandas.
    question = (
        f"SELECT DISTINCT name FROM parquet_schema({_sql(list(places))}) "
        "WHERE converted_type = 'TIMESTAMP_MILLIS' "
        "OR (logical_type LIKE 'Timestamp%' AND logical_type LIKE '%MILLIS=MilliSeconds%')"
    )
    names = {name for (name,) in con.execute(question).fetchall()}
    return [name for name in chosen if name in names]


def _keep_moments(
    connection: Any, places: Sequence[str], chosen: Sequence[str], coarse: Sequence[str]
) -> Any:
    """Copy columns of Parquet files, those in milliseconds as Arrow reads them.

    DuckDB would turn milliseconds into microseconds while it reads, and stop at a moment that has
    no place there: one row would stop a release. Such a moment is missing instead.
    """
    con, others = connection.con, [name for name in chosen if name not in coarse]
    listed = ", ".join(map(quote_name, chosen))
    con.execute(
        f"CREATE TEMP TABLE privmax_rows AS SELECT {listed} FROM {_read_parquet(places)} LIMIT 0"
    )
    for path in _list_files(con, places):
        con.register("privmax_moments", _read_moments(path, coarse))
        source = "privmax_moments"
        if others:
            rest = ", ".join(map(quote_name, others))
            rows = _read_parquet([_literal(path)])
            source = f"(SELECT {rest} FROM {rows}) POSITIONAL JOIN privmax_moments"
        con.execute(f"INSERT INTO privmax_rows SELECT {listed} FROM {source}")
        con.unregister("privmax_moments")
    return connection.table("privmax_rows")


_FARTHEST = 9_223_372_022_400_000
"""Milliseconds from 1970 to the first moment that DuckDB can write, in the year 290,309 BC."""


def _read_moments(path: Path, names: Sequence[str]) -> Any:
    """Read columns of moments of a Parquet file, in microseconds; others are missing."""
    import pyarrow
    from pyarrow import compute, parquet

    with parquet.ParquetFile(path) as file:
        table = file.read(columns=list(names))
    columns = []
    for name in names:
        column = table.column(name)
        if column.type.unit == "ms":
            numbers = column.cast(pyarrow.int64())
            is_near = compute.and_(
                compute.less_equal(numbers, _FARTHEST), compute.greater_equal(numbers, -_FARTHEST)
            )
            near = compute.if_else(is_near, numbers, pyarrow.scalar(None, pyarrow.int64()))
            kind = pyarrow.timestamp("us", column.type.tz)
            column = compute.multiply(near, 1000).cast(kind)
        columns.append(column)
    return pyarrow.table(columns, names=list(names))


def _read_parquet(places: Sequence[str]) -> str:
    # values that stand in the names of folders are text, whatever other folders are called
    return _call("read_parquet", places, hive_types_autocast=False)


def _view(connection: Any, columns: Sequence[str], rows: str) -> Any:
    """Return some columns of what DuckDB reads, as a relation.

    It does not have the others, of which there may be 100,000.
    """
    listed = ", ".join(map(quote_name, columns))
    connection.con.execute(f"CREATE TEMP VIEW privmax_rows AS SELECT {listed} FROM {rows}")
    return connection.table("privmax_rows")


def _describe(con: Any, rows: str) -> list[tuple[str, str]]:
    """Return the names and types of all columns."""
    return [
        (name, kind) for name, kind, *_ in con.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    ]


def _call(function: str, places: Sequence[str], **options: Any) -> str:
    """Return a call of a function of DuckDB that reads files, as SQL."""
    arguments = "".join(f", {name} = {_sql(value)}" for name, value in options.items())
    return f"{function}({_sql(places)}{arguments})"


def _sql(value: Any) -> str:
    """Return a value of an option as DuckDB writes it.

    Examples:
        >>> _sql({"a": ["it's", True]})
        "{'a': ['it''s', true]}"
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_sql(name)}: {_sql(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(map(_sql, value)) + "]"


def _literal(path: Path) -> str:
    """Return the path as DuckDB takes it, which sees a pattern in some characters."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _append(con: Any, batch: Sequence[Sequence[str]]) -> None:
    """Add rows to those that are kept."""
    import pyarrow

    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*batch, strict=True)]
    names = [f"column_{place}" for place in range(len(columns))]
    con.register("privmax_batch", pyarrow.table(columns, names=names))
    con.execute("INSERT INTO privmax_odd_rows SELECT * FROM privmax_batch")
    con.unregister("privmax_batch")


class _Written:
    """Blocks of rows, written to files that DuckDB reads: one per order of the columns.

    Given as objects of Python, rows cost three times as much, and DuckDB imports pandas.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._files: dict[tuple[str, int, tuple[int | None, ...]], Any] = {}

    def add(self, block: Block, places: Sequence[int | None] | None) -> bool:
        """Write a block down, unless there are too many files already; None: all places."""
        chosen = range(block.width) if places is None else places
        key = block.mark.decode(), block.width, tuple(chosen)
        file = self._files.get(key)
        if file is None:
            if len(self._files) == _MOST_FILES:
                return False
            file = (self._folder / f"{len(self._files)}.csv").open("xb")
            self._files[key] = self._stack.enter_context(file)
            file.write(block.mark * (block.width - 1) + b"\n")  # a line of names, which is skipped
        file.write(block.data)
        return True

    def queries(self) -> Iterator[str]:
        """Yield a query for the rows of each file."""
        for (mark, width, places), file in self._files.items():
            file.flush()
            cells = ("NULL" if place is None else f"column_{place}" for place in places)
            listed = ", ".join(f"{cell} AS privmax_{at}" for at, cell in enumerate(cells))
            yield f"SELECT {listed} FROM {_read_separated([Path(file.name)], mark, width)}"


_MOST_FILES = 16
"""Rows of further forms are kept one by one."""


def _read_separated(paths: Sequence[Path], separator: str, width: int) -> str:
    options = {
        "columns": {f"column_{place}": "VARCHAR" for place in range(width)},
        "header": True,
        "delim": separator,
        "quote": '"',
        "escape": '"',
        "strict_mode": True,
        "auto_detect": False,  # it would look at rows
        "hive_partitioning": False,
    }
    return _call("read_csv", list(map(_literal, paths)), **options)


def _has_nanoseconds(kind: Any) -> bool:
    """Return whether a type is a time of day in nanoseconds, which Ibis does not know."""
    return kind.is_unknown() and "TIME_NS" in str(kind)


def _keep_times_of_day(column: Any) -> Any:
    """Replace what is not between 00:00 and 24:00 in a column of times by null.

    Arrow and Parquet hold any number as a time. DuckDB writes one outside of the day as text by
    looking its digits up beyond the end of a table: it ends the process, or gives bytes of its own
    memory.
    """
    kind = column.type()
    if kind.is_time():
        number, day = call("epoch_us", "int64", column), 24 * 60 * 60 * 10**6
    elif _has_nanoseconds(kind):
        number, day = call("epoch_ns", "int64", column), 24 * 60 * 60 * 10**9
    else:
        return column
    if isinstance(column, RelationColumn):
        return number.between(0, day).ifelse(column, None)
    import ibis

    return ibis.cases((number.between(0, day), column))


ENGINE = DuckDB
