"""What is asked of an engine, and how the engine tells one item from another.

**Facts.** All that differs between engines is an attribute or a method of `Engine`: what an engine
is called, how it is reached, which of its failures pass, what its SQL can do. No other file knows
the name of an engine (`tests/unit/test_engine_names.py`).

**Keys.** An engine may call two values equal that are not the same: "Ann" and "ann" under some
collations, 1.0 and 1.00 as decimals, one month and thirty days as intervals. If it grouped by such
a column, it would hand out one person's spelling for all of them. So every column is turned into a
*key* first (`Engine.key`), and is grouped, joined and ordered by that: text by its UTF-8 bytes,
types whose equality is loose by a canonical text. Two rows have the same key only if they have the
same item. NaN is no item, as null is none; −0.0 is 0.

**Look-ups cannot fail for one item and succeed for another.** What is fetched of a key are whole
numbers, floats, text or bytes (`Engine.readable`), which every driver hands over as they are. What
makes a date of a text is `label_of` here, and it has an answer for every value: the text itself
where Python has no such date.

Proof:      docs/proofs/keys.md
"""

from __future__ import annotations

import datetime
import re
import secrets
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, TypeVar
from uuid import UUID

from privmax import retries
from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    UnsupportedError,
    explain_install,
)
from privmax.sources import relations
from privmax.sources.blocks import Batch
from privmax.sources.conditions import moment

T = TypeVar("T")

PLACE = "privmax_place"
"""Column of the places that `rows_at` numbers."""

BATCH = 1 << 16
"""Rows that are fetched at a time."""

_SPACES = r"[ \t\n\r\x0b\x0c]+"

SPACES_AT_ENDS = rf"^{_SPACES}|{_SPACES}\z"
"""White space of ASCII at the ends of a text, as a regular expression."""


class Engine:
    """How to ask one engine, and all that is known of it.

    This class itself serves tables of engines that have no file of their own.

    Args:
        backend: The connection, as Ibis has it.
    """

    name = ""
    """What Ibis calls it."""

    title = ""
    """What its makers call it."""

    # How it is reached.

    schemes: Mapping[str, str] = {}
    """Schemes of URLs that lead to it, and what the database behind each is called."""

    package, module = "ibis-framework", "ibis"
    """The package that talks to it, and a module of that package."""

    extra = ""
    """The extra of Ibis that brings the package along."""

    endings: tuple[str, ...] = ()
    """How the names of files end that are databases of it; none: a server has them."""

    mark = 0, b""
    """Where in such a file stand which bytes."""

    system_schemas = ("pg_", "information_schema")
    """How the names of schemas begin that hold no tables of users."""

    reads_files = False
    """Whether it reads files and frames for us, in a database of its own: true of one engine."""

    streams_objects = False
    """Whether an object of its own library (`owns`) can be read only once."""

    # What it can do.

    keys_are_bytes = False
    """Whether the keys of text are bytes, and not text."""

    sorts_to_count = False
    """Whether it counts different users faster by sorting than by making the pairs of item and user
    first.
    """

    types_bind = True
    """Whether a column has what its type says, and nothing else."""

    has_nan = True
    """Whether floats may be NaN, and a function asks for it."""

    moments_are_text = False
    """Whether dates and moments are kept as the text that was written."""

    floats_never_fail = False
    """Whether floats are those of IEEE 754 and no arithmetic with them fails. PostgreSQL stops at a
    product too small for a float, so that one value would stop a fit.
    """

    has_grouping_sets = False
    """Whether its SQL has GROUP BY GROUPING SETS, by which additive models are counted."""

    has_windows = True
    """Whether Ibis offers window functions there."""

    updates_tables = False
    """Whether a table of our own can be updated, in the SQL that additive models use for it."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    @classmethod
    def of(cls, backend: Any) -> Engine:
        """Return how to ask the engine behind a connection."""
        return cls(backend)

    def to_ibis(self, table: Any) -> Any:
        """Return a table of the engine as one of Ibis, for code that writes its expressions."""
        return table

    # What expressions are made of.

    def literal(self, value: Any, kind: Any) -> Any:
        """Return a value as an expression of this type."""
        import ibis

        return ibis.literal(value, kind)

    def null(self, kind: Any) -> Any:
        """Return what is missing, of this type."""
        import ibis

        return ibis.null(kind)

    def number_rows(self, order: Any, within: Sequence[Any] | None = None) -> Any:
        """Return the place of each row in an order, from 0, among those that agree in `within`."""
        import ibis

        if within is None:
            return ibis.row_number().over(order_by=order)
        return ibis.row_number().over(ibis.window(group_by=list(within), order_by=list(order)))

    def rank_rows(self, order: Sequence[Any]) -> Any:
        """Return how many different values come before those of each row, in an order."""
        import ibis

        return ibis.dense_rank().over(order_by=list(order))

    def whole_schema(self, names: Sequence[str]) -> Any:
        """Return the schema of a table of whole numbers with these columns."""
        import ibis

        return ibis.schema(dict.fromkeys(names, "int64"))

    # How it is reached.

    @classmethod
    def open_url(cls, url: str) -> Any:
        """Connect to the server at a URL."""
        import ibis

        return ibis.connect(url)

    @classmethod
    def open_file(cls, file: Path, stack: ExitStack) -> Any:
        """Connect to a database that is a file, to read only; what that needs goes with `stack`."""
        raise NotImplementedError(cls.__name__)

    @classmethod
    def open_memory(cls, stack: ExitStack) -> Any:
        """Connect to a new database in memory, which goes with `stack`."""
        raise NotImplementedError(cls.__name__)

    @classmethod
    def open_arrow(cls, question: str, read: Callable[[], Any], stack: ExitStack) -> Any:
        """Arrow data as an Ibis table of a new database in memory, not copied.

        question    what `ask` calls the reading
        read        hands over the data, or a stream of it
        stack       closes the database
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def open_parquet(cls, paths: Sequence[Path], wanted: Sequence[str], stack: ExitStack) -> Any:
        """Parquet files as an Ibis table of a new database in memory, not copied.

        paths     files, or one folder, of which all files at any depth are read; what is in the
                  names of its folders is text
        wanted    the columns that the table has, if all are there; otherwise it has all columns
        stack     closes the database

        Raises:
            DataError: They do not have the same columns, of the same types.
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def open_separated(
        cls,
        paths: Sequence[Path],
        separator: str,
        width: int,
        chosen: Sequence[int],
        stack: ExitStack,
    ) -> Any:
        """Open files of separated values as an Ibis table of a new database in memory.

        Each file has a line of names first. They are not copied.

        separator    what is between values
        width        how many values a line has
        chosen       the columns that the table has, by their places: `column_3`, all of them text
        stack        closes the database
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def keep_batches(cls, width: int, batches: Iterable[Batch], stack: ExitStack) -> Any:
        """Rows of text as an Ibis table of a new database in memory, which keeps them.

        width      how many columns there are: `column_0`, …
        batches    of rows, one after the other
        stack      closes the database
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def read_csv(cls, file: Path) -> Any:
        """Read a CSV file as an object of the engine's own library, for data that is public.

        The library guesses types from all rows.
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def has_written(cls, start: bytes) -> bool:
        """Return whether a file that begins so is a database of this engine."""
        place, mark = cls.mark
        return bool(mark) and start.startswith(mark, place)

    @classmethod
    def owns(cls, data: object) -> bool:
        """Return whether data is an object of the engine's own library. Imports nothing."""
        return False

    @classmethod
    def open_object(cls, data: Any, wanted: Sequence[str], stack: ExitStack) -> Any:
        """Open such an object as an Ibis table, until `stack` is closed.

        `wanted` are its columns that are needed.
        """
        raise NotImplementedError(cls.__name__)

    def find_table(self, name: str, database: Any = None) -> Any:
        """Return a table of the database, by its name and schema.

        None, or any error: there is none.
        """
        return self.backend.table(name, database=database)

    # Failures.

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        """Return whether an error of its driver may be gone at the next try.

        What is behind the error is asked about on its own.
        """
        return False

    @classmethod
    def explain_login(cls, error: BaseException) -> str | None:
        """Why a session did not begin, in words of ours; None: it is another error."""
        return None

    # Turns.

    @property
    def connection(self) -> Any:
        """What must not be used by two threads at once."""
        return getattr(self.backend, "con", self.backend)

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        """Reserve the connection until `stack` is closed.

        The same rows are seen throughout if that can be.

        table     what will be asked about
        passes    how often it is read: once where the counts are kept
        """
        _reserve(self.connection, stack)

    def end_reading(self) -> None:
        """Say that from here on only tables of our own are read."""

    def declare(self, table: Any) -> Any:
        """Return the table with types of columns that follow from no row of it."""
        return table

    # Keys.

    def key(self, column: Any) -> Any:
        """Return the keys that distinguish the items of a column; null where there is none."""
        kind = column.type()
        if kind.is_floating():
            return self.float_key(column)
        return self.text_key(column) if self.has_text_key(kind) else column

    def has_text_key(self, kind: Any) -> bool:
        """Return whether a type is compared as text.

        It is for text itself, and types whose equality is loose or differs by engine.
        """
        odd = (
            kind.is_uuid()
            or kind.is_inet()
            or kind.is_macaddr()
            or kind.is_interval()
            or kind.is_unknown()
        )
        any_scale = kind.is_decimal() and kind.scale is None
        return bool(kind.is_string() or kind.is_time() or any_scale or odd)

    def float_key(self, column: Any) -> Any:
        number = (column == 0).ifelse(self.literal(0.0, column.type()), column)
        return column.isnan().ifelse(self.null(column.type()), number)

    def text_key(self, column: Any) -> Any:
        """Return a column of text, or of a type that is compared as text."""
        raise UnsupportedError(
            f"This engine ({self.backend.name}) may call different texts equal, and then one row's "
            "spelling would be released for all of them. Use items that are whole numbers or "
            "bytes, or copy the table to DuckDB."
        )

    def text(self, column: Any) -> Any:
        """Return a column of any type as text."""
        return as_text(column)

    def key_of(self, label: Any, kind: Any) -> Any:
        """Return the key of a declared label, for a column of this type."""
        if not self.has_text_key(kind):
            return label
        text = canonical_text(label, kind)
        return text.encode() if self.keys_are_bytes else text

    def readable(self, key: Any, kind: Any) -> Any:
        """Return a key as something that every driver can hand over.

        `kind` is the type of the column it is of.
        """
        return (
            as_text(key)
            if (kind.is_decimal() or is_moment(kind)) and not self.has_text_key(kind)
            else key
        )

    def label(self, value: Any, kind: Any) -> Any:
        """Return the item whose readable key this is."""
        return label_of(value, kind)

    def hash_values(self, keys: Sequence[Any], salt: str) -> Any:
        """Return a hash of the keys of a row, to sort by.

        A function of these and the salt alone.
        """
        import ibis

        texts = [self.hash_text(key).fill_null("").concat("|") for key in keys]
        return call("md5", "string", ibis.literal(f"{salt}|").concat(*texts))

    def hash_text(self, key: Any) -> Any:
        """Return a key as text that is hashed. Different keys may have the same."""
        return call("hex", "string", key) if key.type().is_binary() else as_text(key)

    # Whole numbers, in columns of such.

    def whole(self, column: Any) -> Any:
        """Return the numbers of a column; null where it holds something else."""
        return column

    def addend(self, column: Any) -> Any:
        """Return the same, such that no sum of them fails."""
        return self.whole(column)

    # Conditions on rows.

    def present(self, column: Any) -> Any:
        """Return what is null where a column has nothing; NaN is nothing."""
        return self.float_key(column) if column.type().is_floating() else column

    def operands(self, column: Any, value: str | Decimal | bool) -> tuple[Any, Any] | None:
        """Return a column and a value to compare it with, as expressions.

        The engine compares them as all others do: text by its bytes. A number stays one. None where
        they are not of one type.
        """
        kind = column.type()
        if isinstance(value, bool):
            return (column, self.literal(value, "boolean")) if kind.is_boolean() else None
        if isinstance(value, Decimal):
            return (self.number(column), value) if kind.is_numeric() else None
        if kind.is_string():
            return self.text_key(as_text(column)), self.text_key(self.literal(value, "string"))
        literal = moment(value, kind) if is_moment(kind) else None
        return None if literal is None else (column, self.literal(literal, kind))

    def number(self, column: Any) -> Any:
        """Return a column of numbers, null where it holds none."""
        return column if column.type().is_decimal() else self.key(column)

    # Text that stands for something else.

    def strip(self, text: Any) -> Any:
        """Strip the white space of ASCII from both ends of text: all of it, and nothing else."""
        # An engine's own function may take less or more: that of Spark takes the letters v and f,
        # that of polars knows more spaces.
        return text.re_replace(SPACES_AT_ENDS, "")

    def to_float(self, column: Any) -> Any:
        """Return a column of numbers as 64-bit floats; null where it holds something else."""
        return column.cast("float64")

    def holds_text(self, column: Any) -> Any:
        """Return whether values are text, where types do not bind (`types_bind`)."""
        raise NotImplementedError(type(self).__name__)

    def matches(self, text: Any, pattern: str) -> Any:
        """Return whether a regular expression from ^ to $ describes text.

        Each of its characters is in brackets.
        """
        # With a mark at the end: to Java a text also ends before its last line separator.
        return (text + "#").re_search(f"{pattern.removesuffix('$')}#$")

    # Questions.

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        """Return all rows of an expression."""
        columns = table.to_pyarrow().to_pydict()
        return list(zip(*columns.values(), strict=True))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        """Yield all rows of an expression, one after another, without holding all of them."""
        for batch in table.to_pyarrow_batches(chunk_size=BATCH):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def numbers(self, table: Any) -> list[Any]:
        """The columns of an expression of whole numbers, none of them null, eight bytes each."""
        return arrays_of(table.to_pyarrow())

    def row_at(
        self, ordered: Any, index: int, wanted: Callable[[Any], dict[str, Any]]
    ) -> list[tuple[Any, ...]]:
        """Return what is wanted of the row at that place, if there is one.

        No other becomes readable.
        """
        row = ordered.limit(1, offset=index)
        return self.rows(row.select(**wanted(row)))

    def rows_at(
        self,
        table: Any,
        order: Sequence[Any],
        places: Sequence[int],
        wanted: Callable[[Any], dict[str, Any]],
    ) -> dict[int, tuple[Any, ...]]:
        """Return what is wanted of the rows at those places of an order, by place; of no others.

        All that is ordered is numbered once, however many places there are.
        """
        numbered = table.mutate(**{PLACE: self.number_rows(order)})
        rows = numbered.filter(numbered[PLACE].isin(sorted(set(places))))
        read = self.rows(rows.select(**{PLACE: rows[PLACE]}, **wanted(rows)))
        return {int(place): tuple(row) for place, *row in read}

    # Tables of our own.

    def keep(self, counts: Any, stack: ExitStack) -> Any:
        """Keep the counts in the engine where it can, so that they are made once.

        `stack` then knows how to let go of them.
        """
        name = new_name("counts")
        # Known before there is anything to drop: an engine may fail, or be stopped, and leave half
        # of it.
        stack.push(
            lambda kind, *_: self.drop(
                name, stopped=kind is not None and not issubclass(kind, Exception)
            )
        )
        refused = None
        try:
            with silence():
                return self.create(name, counts)
        except STOPS:
            raise
        except BaseException as error:
            if type(error).__name__ not in NO_ROOM:
                refused = failure("the counting", error)
        if refused is not None:
            raise refused
        return counts

    def is_made(self, table: Any) -> bool:
        """Return whether what `keep` returned is a table that needs nothing it was made of."""
        from ibis.expr import operations

        return isinstance(table.op(), operations.DatabaseTable)

    def create(self, name: str, table: Any) -> Any:
        return self.backend.create_table(name, table, temp=True)

    def drop(self, name: str, *, stopped: bool = False) -> None:
        """Drop a table of our own; `stopped`: by Ctrl-C, perhaps in the middle of something."""
        quietly(self.backend.drop_table, name, force=True)

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        """Make rows that declare a universe a table of the engine with these types."""
        import ibis
        import pyarrow

        typed = [typed_array(values, schema[name].to_pyarrow()) for name, values in columns.items()]
        rows = pyarrow.table(typed, names=list(columns))
        table = ibis.memtable(rows, schema=schema)
        stack.callback(quietly, lambda: self.forget(table.get_name()))
        return table

    def keep_labels(self, table: Any, stack: ExitStack) -> Any:
        """Return what `table_of` has made as a table that may be joined with any data."""
        return table

    def forget(self, name: str) -> None:
        """Drop what `table_of` has made."""
        self.drop(name)


def rows_in(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns, which may be arrays, as values of Python.

    A batch at a time: numbers of Python take many times the memory of an array.
    """
    length = len(next(iter(columns.values())))
    for start in range(0, length, BATCH):
        parts = [column[start : start + BATCH] for column in columns.values()]
        yield from zip(
            *(part.tolist() if hasattr(part, "tolist") else part for part in parts), strict=True
        )


def arrays_of(table: Any) -> list[Any]:
    """The columns of an Arrow table of whole numbers, none of them null, eight bytes each."""
    import numpy as np

    return [np.asarray(column.to_numpy(), np.int64) for column in table.columns]


def collect_numbers(rows: Iterable[Sequence[Any]], width: int) -> list[Any]:
    """Rows of so many whole numbers as columns of eight bytes each."""
    import numpy as np

    columns = [array("q") for _ in range(width)]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(int(value))
    return [np.frombuffer(column, np.int64) for column in columns]


def typed_array(values: Sequence[Any], kind: Any) -> Any:
    """Return values as an Arrow array.

    Columns of text may be of any type, as in a file.
    """
    import pyarrow

    if hasattr(values, "dtype"):  # an array has no text, and no values of its own to look at
        return pyarrow.array(values, kind)
    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind)
    if not is_text and all(isinstance(value, str) for value in values):
        return pyarrow.array(values, pyarrow.string()).cast(kind)
    return pyarrow.array(values, kind)


def is_moment(kind: Any) -> bool:
    return bool(kind.is_date() or kind.is_timestamp())


def as_text(column: Any) -> Any:
    """Return a cast to text that is really sent.

    Ibis leaves it out where it believes that the column is text already.
    """
    if isinstance(column, relations.Column):
        return relations.cast_always(column, relations.TEXT)
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.string).to_expr()


def call(name: str, returns: Any, *arguments: Any) -> Any:
    """Call a function of the engine that Ibis does not know, with one to three arguments."""
    if any(isinstance(one, relations.Column) for one in arguments):
        return relations.call(name, returns, *arguments)
    import ibis

    shapes: list[Callable[..., None]] = [lambda a: None, lambda a, b: None, lambda a, b, c: None]
    types = (None,) * len(arguments), ibis.dtype(returns)
    return ibis.udf.scalar.builtin(name=name, signature=types)(shapes[len(arguments) - 1])(
        *arguments
    )


# From keys to items.


@cache
def labels() -> Any:
    """Load the rules of labels.

    They load NumPy, and only reading needs them: a ledger that asks which failures pass does not.
    """
    from privmax import labels as rules

    return rules


def label_of(value: Any, kind: Any) -> Any:
    """Return the item that a readable key stands for.

    It has an answer for every value, and another for every other.
    """
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value)
        if kind.is_binary():
            return value
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, str):
        return _from_text(value, kind)
    return labels().plain_label(value)


def canonical_text(label: Any, kind: Any) -> str:
    """Return a declared label as text, as an engine writes such a value of this type."""
    if isinstance(label, str):
        return label
    if kind.is_time() and isinstance(label, datetime.time) and label.tzinfo is None:
        return re.sub(r"(\.\d*?)0+$", r"\1", label.isoformat())
    if (
        kind.is_decimal()
        and isinstance(label, Decimal | int | float)
        and not isinstance(label, bool)
    ):
        return format(labels().plain_label(Decimal(str(label))), "f")
    if kind.is_uuid() and isinstance(label, UUID):
        return str(label)
    raise TypeError(f"{type(label).__name__} is no {kind}")


def _from_text(text: str, kind: Any) -> Any:
    try:
        if kind.is_decimal():
            return labels().plain_label(Decimal(text))
        if kind.is_date():
            return datetime.date.fromisoformat(text) if _DATE.fullmatch(text) else text
        if kind.is_timestamp():
            return _moment(text, aware=kind.timezone is not None)
        if kind.is_time():
            return datetime.time.fromisoformat(_pad(text)) if _TIME.fullmatch(text) else text
    except (ValueError, InvalidOperation, OverflowError):
        pass
    return text


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = r"\d\d:\d\d:\d\d(\.\d{1,9})?"
_ZONE = r"(Z|[+-]\d\d(:?\d\d(:?\d\d)?)?)?"
_TIME = re.compile(_CLOCK, re.ASCII)
"""A time that has a zone stays text: to Python two of them are equal that no engine takes for the
same.
"""
_MOMENT = re.compile(rf"(\d{{4}}-\d\d-\d\d)[ T]({_CLOCK}){_ZONE}", re.ASCII)


def _moment(text: str, *, aware: bool) -> Any:
    """Return a date and time; the text itself, if Python has no such moment."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return text
    moment = datetime.datetime.fromisoformat(_pad(text.replace(" ", "T")))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC) if aware else moment
    return moment.astimezone(datetime.UTC)


def _pad(text: str) -> str:
    """Return a time as `fromisoformat` reads it in every Python.

    It has six digits behind the point, none of them lost.
    """
    point = re.search(r"\.(\d+)", text)
    if point is None:
        return text
    digits = point[1].rstrip("0")
    if len(digits) > 6:
        raise ValueError("nanoseconds")
    return f"{text[: point.start()]}.{digits:0<6}{text[point.end() :]}"


class ArrowEngine(Engine):
    """An engine that hands over Arrow's own columns.

    Dates and moments are read from them as the numbers they are.
    """

    def readable(self, key: Any, kind: Any) -> Any:
        return key if is_moment(kind) else super().readable(key, kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return rows_of(table.to_pyarrow())


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an Arrow table."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: Any) -> list[Any]:
    """Return the values of a column of Arrow; dates and moments as text, which each of them has."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_date32(kind):
        return [
            None if day is None else iso(day, "D")
            for day in column.cast(pyarrow.int32()).to_pylist()
        ]
    if pyarrow.types.is_timestamp(kind):
        return [
            None if tick is None else iso(tick, kind.unit)
            for tick in column.cast(pyarrow.int64()).to_pylist()
        ]
    values: list[Any] = column.to_pylist()
    return values


def iso(number: int, unit: str) -> str:
    """So many units after the beginning of 1970, in UTC, as text; it exists for every number."""
    import numpy as np

    if number == -(1 << 63):  # NumPy takes it for no moment
        return f"{number} {unit}"
    text = str(np.array([number], np.int64).view(f"M8[{unit}]")[0])
    return text.rstrip("0").rstrip(".") if "." in text else text


# Names, errors, and what is cleaned up.


def import_ibis() -> Any:
    """Ibis, or the error that says how to install it."""
    try:
        import ibis
    except ImportError:
        raise _not_installed() from None
    return ibis


def check_ibis() -> None:
    """Refuse tables and files where Ibis is not installed. It is not imported."""
    if find_spec("ibis") is None:
        raise _not_installed()


def _not_installed() -> ParameterError:
    return ParameterError(
        "data",
        "a table",
        "tables and files need Ibis, which is not installed",
        explain_install("sql"),
    )


def choose_columns(columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the wanted columns, or all if one is missing: the error that refuses it lists them."""
    names = list(dict.fromkeys(wanted))
    for name in names:
        if list(columns).count(name) > 1:
            raise DataError("Two columns of the table have the same name. Rename one.")
    return names if names and set(names) <= set(columns) else list(columns)


def new_name(what: str) -> str:
    return f"privmax_{what}_{secrets.token_hex(8)}"


LACKING = (
    "OperationNotDefinedError",
    "UnsupportedOperationError",
    "UnsupportedBackendType",
    "NotImplementedError",
)
"""What Ibis raises where an engine lacks an operation."""

NO_ROOM = (*LACKING, "UnsupportedArgumentError", "ReadOnlySqlTransaction", "InsufficientPrivilege")
"""What is raised where an engine has no temporary tables, or none for this user: it then counts at
every question.
"""


STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends a program. All else that is raised is a failure: polars is written in Rust, and what
goes wrong there is no `Exception` to Python."""


def ask(question: str, answer: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return what the engine answers when `answer` is called with the arguments.

    Its own message is not passed on, since it may quote the data.
    """
    try:
        with silence():
            return answer(*arguments, **options)
    except (ParameterError, EngineError, *STOPS):
        raise
    except BaseException as error:
        refused = failure(question, error)
    # out here, where the engine's own error is no longer attached to it as its context
    raise refused


def failure(question: str, error: BaseException) -> BaseException:
    """Return what to raise instead of an engine's own error."""
    if any(isinstance(one, KeyboardInterrupt) for one in retries.chain(error)):
        return (
            KeyboardInterrupt()
        )  # DuckDB and Spark say that they were interrupted, and not that it was by Ctrl-C
    name = type(error).__name__
    if name in LACKING:
        return UnsupportedError(
            f"This engine does not offer what {question} needs ({_operation(error) or name})."
        )
    return EngineError(
        f"The engine failed at {question} ({name}), and nothing was released. Its own log says "
        f"more.",
        retry=is_transient(error),
    )


def is_transient(error: BaseException) -> bool:
    """Return whether what failed in some engine may succeed if it is tried again as it stands."""
    from privmax.sources.engines import all_engines  # whose files need this one

    return retries.is_transient(error, *(engine.is_transient for engine in all_engines()))


def _operation(error: BaseException) -> str | None:
    """Return the operation of Ibis that an error is about.

    Nothing else of its message is passed on.
    """
    import ibis.expr.operations as operations

    return next(
        (word for word in re.findall(r"\b[A-Z]\w+", str(error)) if hasattr(operations, word)), None
    )


def quietly(act: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Clean up, by calling `act` with the arguments.

    An engine that cannot lost its connection, and with it all that was temporary.
    """
    try:
        with silence():
            act(*arguments, **options)
    except STOPS:
        raise
    except BaseException:
        return


@contextmanager
def silence() -> Iterator[None]:
    """Keep Ibis from printing its queries, whatever its options say.

    They contain scores as literals.
    """
    ibis = sys.modules.get("ibis")
    if not hasattr(ibis, "options"):  # it is not imported, or not yet, and prints nothing
        yield
        return
    assert ibis is not None
    with _ALL:
        _VERBOSE.append(ibis.options.verbose if not _VERBOSE else _VERBOSE[0])
        ibis.options.verbose = False
    try:
        yield
    finally:
        with _ALL:
            verbose = _VERBOSE.pop()
            if not _VERBOSE:  # the last of all threads that ask
                ibis.options.verbose = verbose


_VERBOSE: list[bool] = []
"""What the option said before anyone asked, once for each who asks now."""

_ALL = Lock()


class _Turn:
    """Whose turn a connection is: one thread's, as often as it likes. Any thread may end it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection  # as long as it is here, nothing else has its identity
        self.users = 0
        self._lock = Lock()
        self._owner: int | None = None
        self._depth = 0

    def take(self) -> None:
        if self._owner != get_ident():
            self._lock.acquire()
            self._owner = get_ident()
        self._depth += 1

    def give(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


_TURNS: dict[int, _Turn] = {}
"""By the identity of a connection; those that someone has or waits for."""


def _reserve(connection: Any, stack: ExitStack) -> None:
    """Reserve a connection for this thread until `stack` is closed.

    Drivers mix up the questions of two threads.
    """
    with _ALL:
        turn = _TURNS.setdefault(id(connection), _Turn(connection))
        turn.users += 1
    reserved: list[bool] = []
    stack.callback(_leave, turn, reserved)
    turn.take()
    reserved.append(True)


def _leave(turn: _Turn, reserved: list[bool]) -> None:
    if reserved:
        turn.give()
    with _ALL:
        turn.users -= 1
        if not turn.users:
            del _TURNS[id(turn.connection)]
