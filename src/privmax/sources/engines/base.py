"""What a source asks of an engine, and how the engine tells one item from another.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal, InvalidOperation
from threading import Lock, get_ident
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from privmax.errors import EngineError, ParameterError, UnsupportedError
from privmax.labels import plain_label
from privmax.retries import passes_later
from privmax.sources.conditions import moment

T = TypeVar("T")

PLACE = "privmax_place"
"""Column of the places that `rows_at` numbers."""

BYTEWISE = ("bigquery", "clickhouse", "databricks", "snowflake", "trino")
"""Engines without a file of their own that compare text by its bytes, unless a column is declared
otherwise.
"""

BATCH = 1 << 16
"""Rows that are fetched at a time."""


class Engine:
    """How to ask one engine. This class serves engines that have no file of their own."""

    keys_are_bytes = False
    """Whether the keys of text are bytes, and not text."""

    sorts_to_count = False
    """Whether it counts different users faster by sorting than by making the pairs of item and user
    first.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    @property
    def connection(self) -> Any:
        """What must not be used by two threads at once."""
        return getattr(self.backend, "con", self.backend)

    def begin(self, table: Any, held: ExitStack, *, passes: int = 1) -> None:
        """Have the connection to oneself until `held` is closed, and see the same rows throughout
        if that can be.

        table     what will be asked about
        passes    how often it is read: once where the counts are kept
        """
        _reserve(self.connection, held)

    def end_reading(self) -> None:
        """Say that from here on only tables of our own are read."""

    def declare(self, table: Any) -> Any:
        """The table with types of columns that follow from no row of it."""
        return table

    # Keys.

    def key(self, column: Any) -> Any:
        """What tells the items of a column apart; null where there is none."""
        kind = column.type()
        if kind.is_floating():
            return self.float_key(column)
        return self.text_key(column) if self.has_text_key(kind) else column

    def has_text_key(self, kind: Any) -> bool:
        """Whether a type is compared as text: text itself, and types whose equality is loose or
        differs by engine.
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
        import ibis

        number = (column == 0).ifelse(ibis.literal(0.0, column.type()), column)
        return column.isnan().ifelse(ibis.null(column.type()), number)

    def text_key(self, column: Any) -> Any:
        """A column of text, or of a type that is compared as text."""
        if self.backend.name not in BYTEWISE:
            raise UnsupportedError(
                f"This engine ({self.backend.name}) may call different texts equal, and then one "
                f"row's spelling would "
                "be released for all of them. Use items that are whole numbers or bytes, or copy "
                "the table to DuckDB."
            )
        return as_text(column)

    def key_of(self, label: Any, kind: Any) -> Any:
        """The key of a declared label, for a column of this type."""
        if not self.has_text_key(kind):
            return label
        text = canonical_text(label, kind)
        return text.encode() if self.keys_are_bytes else text

    def readable(self, key: Any, kind: Any) -> Any:
        """A key as something that every driver can hand over; `kind` is the type of the column it
        is of.
        """
        return (
            as_text(key)
            if (kind.is_decimal() or is_moment(kind)) and not self.has_text_key(kind)
            else key
        )

    def label(self, value: Any, kind: Any) -> Any:
        """The item whose readable key this is."""
        return label_of(value, kind)

    # Whole numbers, in columns of such.

    def whole(self, column: Any) -> Any:
        """The numbers of a column; null where it holds something else."""
        return column

    def addend(self, column: Any) -> Any:
        """The same, such that no sum of them fails."""
        return self.whole(column)

    # Conditions on rows.

    def present(self, column: Any) -> Any:
        """What is null where a column holds nothing; NaN is nothing."""
        return self.float_key(column) if column.type().is_floating() else column

    def operands(self, column: Any, value: str | Decimal | bool) -> tuple[Any, Any] | None:
        """A column and a value to compare it with, as expressions that the engine compares as all
        others do: text by its bytes. A number stays one. None: they are not of one type.
        """
        import ibis

        kind = column.type()
        if isinstance(value, bool):
            return (column, ibis.literal(value)) if kind.is_boolean() else None
        if isinstance(value, Decimal):
            return (self.number(column), value) if kind.is_numeric() else None
        if kind.is_string():
            return self.text_key(as_text(column)), self.text_key(ibis.literal(value))
        found = moment(value, kind) if is_moment(kind) else None
        return None if found is None else (column, ibis.literal(found, kind))

    def number(self, column: Any) -> Any:
        """A column of numbers, null where it holds none."""
        return column if column.type().is_decimal() else self.key(column)

    # Questions.

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        """All rows of an expression."""
        columns = table.to_pyarrow().to_pydict()
        return list(zip(*columns.values(), strict=True))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        """All rows of an expression, one after another, without holding all of them."""
        for batch in table.to_pyarrow_batches(chunk_size=BATCH):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def row_at(
        self, ordered: Any, index: int, wanted: Callable[[Any], dict[str, Any]]
    ) -> list[tuple[Any, ...]]:
        """What is wanted of the row at that place, if there is one. No other becomes readable."""
        row = ordered.limit(1, offset=index)
        return self.rows(row.select(**wanted(row)))

    def rows_at(
        self,
        table: Any,
        order: Sequence[Any],
        places: Sequence[int],
        wanted: Callable[[Any], dict[str, Any]],
    ) -> dict[int, tuple[Any, ...]]:
        """What is wanted of the rows at those places of an order, by place; of no others.

        All that is ordered is numbered once, however many places there are.
        """
        import ibis

        numbered = table.mutate(**{PLACE: ibis.row_number().over(order_by=order)})
        rows = numbered.filter(numbered[PLACE].isin(sorted(set(places))))
        found = self.rows(rows.select(**{PLACE: rows[PLACE]}, **wanted(rows)))
        return {int(place): tuple(row) for place, *row in found}

    # Tables of our own.

    def keep(self, counts: Any, held: ExitStack) -> Any:
        """The counts, made once and kept by the engine where it can; `held` then knows how to let
        go of them.
        """
        name = new_name("counts")
        # Known before there is anything to drop: an engine may fail, or be stopped, and leave half
        # of it.
        held.push(
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

    def create(self, name: str, table: Any) -> Any:
        return self.backend.create_table(name, table, temp=True)

    def drop(self, name: str, *, stopped: bool = False) -> None:
        """Drop a table of our own; `stopped`: by Ctrl-C, perhaps in the middle of something."""
        quietly(self.backend.drop_table, name, force=True)

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, held: ExitStack) -> Any:
        """Rows of our own, which declare a universe, as a table of the engine with these types."""
        import ibis
        import pyarrow

        typed = [typed_array(values, schema[name].to_pyarrow()) for name, values in columns.items()]
        rows = pyarrow.table(typed, names=list(columns))
        table = ibis.memtable(rows, schema=schema)
        held.callback(quietly, lambda: self.forget(table.get_name()))
        return table

    def forget(self, name: str) -> None:
        """Drop what `table_of` has made."""
        self.drop(name)


def typed_array(values: Sequence[Any], kind: Any) -> Any:
    """Values as an Arrow array. Those that are all text may be of any type, as it is written: a
    file holds such.
    """
    import pyarrow

    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind)
    if not is_text and all(isinstance(value, str) for value in values):
        return pyarrow.array(values, pyarrow.string()).cast(kind)
    return pyarrow.array(values, kind)


def is_moment(kind: Any) -> bool:
    return bool(kind.is_date() or kind.is_timestamp())


def as_text(column: Any) -> Any:
    """A cast to text that is really sent: Ibis leaves it out where it believes that the column is
    text already.
    """
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.string).to_expr()


def call(name: str, returns: Any, *arguments: Any) -> Any:
    """A function of the engine that Ibis does not know, of one to three arguments of any type."""
    import ibis

    shapes: list[Callable[..., None]] = [lambda a: None, lambda a, b: None, lambda a, b, c: None]
    types = (None,) * len(arguments), ibis.dtype(returns)
    return ibis.udf.scalar.builtin(name=name, signature=types)(shapes[len(arguments) - 1])(
        *arguments
    )


# From keys to items.


def label_of(value: Any, kind: Any) -> Any:
    """The item that a readable key stands for. It has an answer for every value, and another for
    every other.
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
    return plain_label(value)


def canonical_text(label: Any, kind: Any) -> str:
    """A declared label as text, as an engine writes such a value of a column of this type."""
    if isinstance(label, str):
        return label
    if kind.is_time() and isinstance(label, datetime.time) and label.tzinfo is None:
        return re.sub(r"(\.\d*?)0+$", r"\1", label.isoformat())
    if (
        kind.is_decimal()
        and isinstance(label, Decimal | int | float)
        and not isinstance(label, bool)
    ):
        return format(plain_label(Decimal(str(label))), "f")
    if kind.is_uuid() and isinstance(label, UUID):
        return str(label)
    raise TypeError(f"{type(label).__name__} is no {kind}")


def _from_text(text: str, kind: Any) -> Any:
    try:
        if kind.is_decimal():
            return plain_label(Decimal(text))
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
    """A date and time; the text itself, if Python has no such moment."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return text
    moment = datetime.datetime.fromisoformat(_pad(text.replace(" ", "T")))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC) if aware else moment
    return moment.astimezone(datetime.UTC)


def _pad(text: str) -> str:
    """A time as `fromisoformat` reads it in every Python: six digits behind the point, none of them
    lost.
    """
    point = re.search(r"\.(\d+)", text)
    if point is None:
        return text
    digits = point[1].rstrip("0")
    if len(digits) > 6:
        raise ValueError("nanoseconds")
    return f"{text[: point.start()]}.{digits:0<6}{text[point.end() :]}"


class ArrowEngine(Engine):
    """An engine that hands over Arrow's own columns, from which dates and moments are read as the
    numbers they are.
    """

    def readable(self, key: Any, kind: Any) -> Any:
        return key if is_moment(kind) else super().readable(key, kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return rows_of(table.to_pyarrow())


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: Any) -> list[Any]:
    """The values of a column of Arrow; dates and moments as text, which each of them has."""
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
    if number == -(1 << 63):  # NumPy takes it for no moment
        return f"{number} {unit}"
    text = str(np.array([number], np.int64).view(f"M8[{unit}]")[0])
    return text.rstrip("0").rstrip(".") if "." in text else text


# Names, errors, and what is cleaned up.


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
    """What the engine answers when `answer` is called with the arguments; its own message is not
    passed on, since it may quote the data.
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
    """What to raise instead of an engine's own error."""
    if any(isinstance(one, KeyboardInterrupt) for one in _behind(error)):
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
        retry=passes_later(error),
    )


def _behind(error: BaseException) -> Iterator[BaseException]:
    """What an error was raised from, or while handling what; no error is behind itself, so this
    ends.
    """
    for one in (error.__cause__, error.__context__):
        if one is not None:
            yield one
            yield from _behind(one)


def _operation(error: BaseException) -> str | None:
    """The operation of Ibis that an error is about; nothing of its message that is not the name of
    one.
    """
    import ibis.expr.operations as operations

    return next(
        (word for word in re.findall(r"\b[A-Z]\w+", str(error)) if hasattr(operations, word)), None
    )


def quietly(act: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Clean up, by calling `act` with the arguments. An engine that cannot lost its connection, and
    with it all that was temporary.
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
    """Keep Ibis from printing its queries, whatever its options say: scores stand in them as
    literals.
    """
    import ibis

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
"""What the option said before anybody asked, once for each who asks now."""

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
"""By the identity of a connection; those that somebody has or waits for."""


def _reserve(connection: Any, held: ExitStack) -> None:
    """Have a connection to this thread until `held` is closed: drivers mix up the questions of two
    threads.
    """
    with _ALL:
        turn = _TURNS.setdefault(id(connection), _Turn(connection))
        turn.users += 1
    taken: list[bool] = []
    held.callback(_leave, turn, taken)
    turn.take()
    taken.append(True)


def _leave(turn: _Turn, taken: list[bool]) -> None:
    if taken:
        turn.give()
    with _ALL:
        turn.users -= 1
        if not turn.users:
            del _TURNS[id(turn.connection)]
