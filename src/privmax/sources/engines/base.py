"""The interface of an engine, and how the engine tells one item from another.

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
makes a date of a text is `label_of` (`engine_labels.py`), and it has an answer for every value: the
text itself where Python has no such date.

Proof:      docs/proofs/keys.md
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

from privmax.errors import (
    DataError,
    UnsupportedError,
)
from privmax.sources import relations
from privmax.sources.arrow_rows import BATCH, arrays_of, rows_of, typed_array
from privmax.sources.asking import NO_ROOM, STOPS, failure, quietly, reserve, silence
from privmax.sources.blocks import Batch
from privmax.sources.conditions import moment
from privmax.sources.engine_labels import canonical_text, label_of

PLACE = "privmax_place"
"""Column of the places that `rows_at` numbers."""


_SPACES = r"[ \t\n\r\x0b\x0c]+"

SPACES_AT_ENDS = rf"^{_SPACES}|{_SPACES}\z"
"""White space of ASCII at the ends of a text, as a regular expression."""


class Engine:
    """An engine, as it is asked, and all facts about it.

    This class itself serves tables of engines that have no file of their own.

    Args:
        backend: The connection, as Ibis has it.
    """

    name = ""
    """Its name in Ibis."""

    title = ""
    """Its name as its makers write it."""

    # How it is reached.

    schemes: Mapping[str, str] = {}
    """Schemes of URLs that lead to it, and what the database behind each is called."""

    package, module = "ibis-framework", "ibis"
    """The package that talks to it, and a module of that package."""

    extra = ""
    """The extra of Ibis that brings the package along."""

    endings: tuple[str, ...] = ()
    """The endings of files that are databases of it; none: a server has them."""

    mark = 0, b""
    """The place of certain bytes in such a file, and the bytes."""

    system_schemas = ("pg_", "information_schema")
    """The beginnings of names of schemas that have no tables of users."""

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

        Args:
            question: What `ask` calls the reading.
            read: Hands over the data, or a stream of it.
            stack: Closes the database.
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def open_parquet(cls, paths: Sequence[Path], needed: Sequence[str], stack: ExitStack) -> Any:
        """Parquet files as an Ibis table of a new database in memory, not copied.

        Args:
            paths: Files, or one folder, of which all files at any depth are read; what is in the
                names of its folders is text.
            needed: The columns that the table has, if all are there; otherwise it has all columns.
            stack: Closes the database.

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

        Args:
            separator: What is between values.
            width: How many values a line has.
            chosen: The columns that the table has, by their places: `column_3`, all of them text.
            stack: Closes the database.
        """
        raise NotImplementedError(cls.__name__)

    @classmethod
    def keep_batches(cls, width: int, batches: Iterable[Batch], stack: ExitStack) -> Any:
        """Rows of text as an Ibis table of a new database in memory, which keeps them.

        Args:
            width: How many columns there are: `column_0`, …
            batches: Of rows, one after the other.
            stack: Closes the database.
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
    def open_object(cls, data: Any, needed: Sequence[str], stack: ExitStack) -> Any:
        """Open such an object as an Ibis table, until `stack` is closed.

        `needed` are its columns that are needed.
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
        """Explain in our words why a session did not begin; None: it is another error."""
        return None

    # Turns.

    @property
    def connection(self) -> Any:
        """The object that two threads must not use at once."""
        return getattr(self.backend, "con", self.backend)

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        """Reserve the connection until `stack` is closed.

        The same rows are seen throughout if that can be.

        Args:
            table: What will be asked about.
            passes: How often it is read: once where the counts are kept.
        """
        reserve(self.connection, stack)

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
        self, ordered: Any, index: int, choose: Callable[[Any], dict[str, Any]]
    ) -> list[tuple[Any, ...]]:
        """Return what is wanted of the row at that place, if there is one.

        No other becomes readable.
        """
        row = ordered.limit(1, offset=index)
        return self.rows(row.select(**choose(row)))

    def rows_at(
        self,
        table: Any,
        order: Sequence[Any],
        places: Sequence[int],
        choose: Callable[[Any], dict[str, Any]],
    ) -> dict[int, tuple[Any, ...]]:
        """Return what is wanted of the rows at those places of an order, by place; of no others.

        All that is ordered is numbered once, however many places there are.
        """
        numbered = table.mutate(**{PLACE: self.number_rows(order)})
        rows = numbered.filter(numbered[PLACE].isin(sorted(set(places))))
        read = self.rows(rows.select(**{PLACE: rows[PLACE]}, **choose(rows)))
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


def is_moment(kind: Any) -> bool:
    return bool(kind.is_date() or kind.is_timestamp())


def as_text(column: Any) -> Any:
    """Return a cast to text that is really sent.

    Ibis leaves it out where it believes that the column is text already.
    """
    if isinstance(column, relations.RelationColumn):
        return relations.cast_always(column, relations.TEXT)
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.string).to_expr()


def call(name: str, returns: Any, *arguments: Any) -> Any:
    """Call a function of the engine that Ibis does not know, with one to three arguments."""
    if any(isinstance(one, relations.RelationColumn) for one in arguments):
        return relations.call(name, returns, *arguments)
    import ibis

    shapes: list[Callable[..., None]] = [lambda a: None, lambda a, b: None, lambda a, b, c: None]
    types = (None,) * len(arguments), ibis.dtype(returns)
    return ibis.udf.scalar.builtin(name=name, signature=types)(shapes[len(arguments) - 1])(
        *arguments
    )


class ArrowEngine(Engine):
    """An engine that hands over Arrow's own columns.

    Dates and moments are read from them as the numbers they are.
    """

    def readable(self, key: Any, kind: Any) -> Any:
        return key if is_moment(kind) else super().readable(key, kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return rows_of(table.to_pyarrow())


def choose_columns(columns: Sequence[str], needed: Sequence[str]) -> list[str]:
    """Return the wanted columns, or all if one is missing: the error that refuses it lists them."""
    names = list(dict.fromkeys(needed))
    for name in names:
        if list(columns).count(name) > 1:
            raise DataError("Two columns of the table have the same name. Rename one.")
    return names if names and set(names) <= set(columns) else list(columns)


def new_name(what: str) -> str:
    return f"privmax_{what}_{os.urandom(8).hex()}"
