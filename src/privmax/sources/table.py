"""Scores counted by an engine, where the data is: DuckDB on files, PostgreSQL, Spark, any Ibis table.

The engine counts once, and the counts stay there. Per selection it is then asked three questions: the highest score,
how many candidates stand at each score of the window, and who is the i-th of one score under a fixed order. Nothing
else leaves it, so this process needs the same memory for ten candidates and for ten million.

Errors name the question that failed. They never pass on what the engine says, which may quote the data.

Proof of what weights promise: docs/proofs/weights.md
"""

from __future__ import annotations

import re
import secrets
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar, cast
from uuid import UUID

import numpy as np

from privmax.errors import DataError, EngineError, ParameterError, UnsupportedError
from privmax.mechanisms.base import Outcome
from privmax.privacy import Number, whole
from privmax.profile import OPEN, Level, Profile
from privmax.sources.containers import plain_label
from privmax.sources.scale import Scale

T = TypeVar("T")

LARGEST_BOUND = 1 << 31
"""With more per individual, the 64 bits of a score might not hold the sum over all of them."""

SCORE, WRONG, STRANGE = "privmax_score", "privmax_wrong", "privmax_strange"
USER, AMOUNT = "privmax_user", "privmax_amount"
"""Columns of the counts and of what they are made from. Those that name an item are called `_item(0)`, `_item(1)`, …:
what the data calls its columns never meets these names, nor what an engine makes of an odd one."""


class TableSource:
    """The items of an Ibis table with a score each.

    item         column of the items, or several columns that name one together; rows without an item do not count
    user         column of the individuals: the score of an item is how many different ones it has
    score        instead: column of ready scores, one row an item
    weight       with `user`: column of whole numbers; an individual adds their sum for the item, clipped to 0 … bound
    bound        public; required with `weight`, and then by so much one individual can move a score
    universe     "open", or the collection of all labels (of tuples, where several columns name an item). With `score`
                 also their number, if all are listed; a count lists only what somebody has, so it needs the labels
    sensitivity  with `score`: by how much one individual can move one (default 1)
    held         what to let go of after use, beside the counts

    With neither `user` nor `score` every row is one individual. Close it after use: the engine holds the counts.
    """

    step = Fraction(1)

    def __init__(
        self,
        table: Any,
        *,
        item: str | Sequence[str] | None,
        user: str | None = None,
        score: str | None = None,
        weight: str | None = None,
        bound: int | None = None,
        universe: object = OPEN,
        sensitivity: Number | None = None,
        held: ExitStack | None = None,
    ) -> None:
        self._facts: dict[str, Any] | None = None
        self._levels: dict[int, int] = {}
        self._depth: int | None = None
        with held or ExitStack() as stack:
            names = _names(table, item)
            self._items = [_item(place) for place in range(len(names))]
            steps = _steps(sensitivity, bound if weight is not None else None, score)
            self.universe, labels = _universe(universe, len(names), score)
            counts = in_plain_types(_counts(table, names, user, score, weight, bound), self._items)
            self._counts = kept(counts if labels is None else _declared(counts, self._items, labels, stack), stack)
            self._keys = [_key(self._counts, name) for name in self._items]
            if self.universe is not None:
                _named(self.universe, self.listed(), labels)
            self.profile = Profile(self, universe=self.universe, sensitivity=steps)
            self._held = stack.pop_all()

    def __repr__(self) -> str:
        return "TableSource(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._held.close()

    def listed(self) -> int:
        return int(self._summary()["listed"])

    def maximum(self) -> int | None:
        best = self._summary()["best"]
        return None if best is None else int(best)

    def histogram(self, above: int) -> Sequence[Level]:
        window = self._counts.filter(self._counts[SCORE] > above)
        tally = window.group_by(SCORE).agg(number=window.count())
        rows = asked("the histogram", lambda: tally.to_pyarrow().to_pylist())
        levels = sorted(((int(row[SCORE]), int(row["number"])) for row in rows), reverse=True)
        self._unchanged(levels, above)
        if self._depth is None or above < self._depth:
            self._levels, self._depth = dict(levels), above
        return levels

    def item(self, outcome: Outcome) -> Any:
        """The item an outcome stands for; None for no answer. Whoever is drawn is listed."""
        if outcome.score is None:
            return None
        counts = self._counts
        level = counts.filter(counts[SCORE] <= outcome.score if outcome.below else counts[SCORE] == outcome.score)
        ordered = level.order_by(self._keys).select(*self._items)
        rows = asked("the look-up", lambda: _row(ordered, outcome.index))
        if not rows:
            raise EngineError(CHANGED)
        return self._label(rows[0])

    def scores(self) -> list[tuple[Any, int]]:
        """Every item with its score, for laws on public data."""
        rows = asked("the counts", lambda: self._counts.to_pyarrow().to_pylist())
        return [(self._label(row), int(row[SCORE])) for row in rows]

    def _label(self, row: dict[str, Any]) -> Any:
        values = tuple(row[name] for name in self._items)
        return values[0] if len(values) == 1 else values

    def _summary(self) -> dict[str, Any]:
        """The highest score, how many items there are, and whether they can be used at all: one question."""
        if self._facts is None:
            counts = self._counts
            one = counts.aggregate(
                best=counts[SCORE].max(),
                listed=counts.count(),
                missing=counts[SCORE].isnull().ifelse(1, 0).sum(),
                wrong=counts[WRONG].max(),
                **({"strange": counts[STRANGE].max()} if STRANGE in counts.columns else {}),
            )
            facts = asked("the maximum", lambda: one.to_pyarrow().to_pylist()[0])
            if facts["wrong"]:
                raise DataError(_UNUSABLE)
            if facts["missing"]:
                raise DataError(
                    "A score is missing, or is no whole number of 64 bits. Drop such items, or give them another score."
                )
            if facts.get("strange"):
                raise DataError(
                    "A label with a score is not in the declared universe. Declare every candidate, or drop it."
                )
            self._facts = facts
        return self._facts

    def _unchanged(self, levels: Sequence[Level], above: int) -> None:
        """Refuse a histogram that does not fit what the engine said before: it reads other rows now."""
        best = self.maximum()
        expected = best if best is not None and best > above else None
        seen = max(above, self._depth) if self._depth is not None else None
        if (
            (levels[0][0] if levels else None) != expected
            or sum(count for _, count in levels) > self.listed()
            or (seen is not None and _above(levels, seen) != _above(list(self._levels.items()), seen))
        ):
            raise EngineError(CHANGED)


_UNUSABLE = (
    "A row has an item but no user, an item has several rows with scores, or a weight is missing or no whole number of "
    "64 bits. Drop rows without a user, add up or deduplicate the scores, give every row a weight."
)

CHANGED = (
    "The data changed while it was being read, and nothing was released. Select from a snapshot: a table nobody writes "
    "to, or one transaction that sees the same rows throughout."
)


def _above(levels: Sequence[Level], score: int) -> dict[int, int]:
    return {level: count for level, count in levels if level > score}


def _counts(
    table: Any, names: Sequence[str], user: str | None, score: str | None, weight: str | None, bound: int | None
) -> Any:
    """An expression with the items, their scores, and under WRONG a number above 0 where something is wrong."""
    items = [_item(place) for place in range(len(names))]
    wanted = dict(zip(items, names, strict=True))
    if score is not None:
        _refuse("score", user=user, weight=weight, bound=bound)
        _whole(column_of(table, "score", score), score, "score")
        rows = _rows(table, {**wanted, AMOUNT: score}, items)
        # Of an item's scores one is as wrong as another, if there are several: the largest is there to have one.
        best = _fitting(rows[AMOUNT].max())
        return rows.group_by(items).agg(**{SCORE: best, WRONG: (rows.count() - 1).cast("int64")})
    if user is None:
        if weight is not None:
            raise ParameterError("weight", weight, "it is added up for each individual, so it needs user", "Give user.")
        _refuse("rows as individuals", bound=bound)
        rows = _rows(table, wanted, items)
        number = rows.count().cast("int64")
        return rows.group_by(items).agg(**{SCORE: number, WRONG: number - number})
    column_of(table, "user", user)
    if weight is None:
        _refuse("counting users", bound=bound)
        rows = _rows(table, {**wanted, USER: user}, items)
        if asked("the counting", rows.get_backend).name == "postgres":
            # It sorts once and counts group by group. The pairs it would hash first: twice the time (benchmarks).
            people, wrong = rows[USER].nunique().cast("int64"), rows.count() - rows[USER].count()
            return rows.group_by(items).agg(**{SCORE: people, WRONG: wrong.cast("int64")})
        pairs = rows.distinct()  # DuckDB is faster so than by COUNT(DISTINCT) beside other counts
        people = pairs[USER].count()
        return pairs.group_by(items).agg(**{SCORE: people.cast("int64"), WRONG: (pairs.count() - people).cast("int64")})
    _whole(column_of(table, "weight", weight), weight, "weight")
    return _weighted(_rows(table, {**wanted, USER: user, AMOUNT: weight}, items), items, whole("bound", bound))


def in_plain_types(counts: Any, items: Sequence[str]) -> Any:
    """The counts, with items as text where Arrow has no type that holds all of theirs."""
    odd = [name for name in items if _odd(counts[name].type())]
    return counts.mutate(**{name: counts[name].cast("string") for name in odd})


def _odd(kind: Any) -> bool:
    """Whether it is one of identifiers, addresses, spans of time, decimals of any length, or of an extension."""
    named = kind.is_uuid() or kind.is_inet() or kind.is_macaddr() or kind.is_interval() or kind.is_unknown()
    return bool(named or (kind.is_decimal() and kind.scale is None))


def _weighted(rows: Any, items: Sequence[str], bound: int) -> Any:
    """The sum over individuals of what each adds to an item: their weights there, added up, then clipped."""
    added = rows[AMOUNT].sum().fill_null(0).clip(0, bound)
    each = rows.group_by([*items, USER]).agg(
        **{SCORE: added.cast("int64"), WRONG: rows[AMOUNT].isnull().ifelse(1, 0).sum().cast("int64")}
    )
    wrong = each[WRONG] + each[USER].isnull().ifelse(1, 0)
    return each.group_by(list(items)).agg(**{SCORE: each[SCORE].sum().cast("int64"), WRONG: wrong.sum().cast("int64")})


def _rows(table: Any, wanted: dict[str, str], items: Sequence[str]) -> Any:
    """The rows that have an item, with the wanted columns under the names used here."""
    known = table.filter(*(table[wanted[name]].notnull() for name in items))
    return known.select(**{name: known[column] for name, column in wanted.items()})


def _fitting(value: Any) -> Any:
    """A whole number as one of 64 bits; missing where it does not fit, since engines disagree on what a cast does."""
    kind = value.type()
    if kind.is_signed_integer():
        return value.cast("int64")
    import ibis

    fits = value <= (1 << 63) - 1
    if not kind.is_integer():
        fits = fits & (value >= -(1 << 63))
    return ibis.ifelse(fits, value, ibis.null(kind)).cast("int64")


def _declared(counts: Any, items: Sequence[str], labels: Sequence[tuple[Any, ...]], held: ExitStack) -> Any:
    """The counts of all labels, 0 for those without data; under STRANGE 1 for an item that is not among the labels."""
    import ibis

    # To Ibis a count has 64 bits and needs no cast; in polars it has 32, until a number of 64 is added to it.
    zero = ibis.literal(0, "int64")
    seen = counts.mutate(**{SCORE: counts[SCORE] + zero, WRONG: counts[WRONG] + zero, STRANGE: zero + 1})
    both = seen.union(_as_table(seen, items, labels, held))
    missing = both[SCORE].isnull().ifelse(1, 0).sum()  # a sum leaves out what is missing, and must not hide it
    score = (missing == 0).ifelse(both[SCORE].sum().cast("int64"), ibis.null("int64"))
    return both.group_by(list(items)).agg(**{SCORE: score, WRONG: both[WRONG].sum(), STRANGE: both[STRANGE].min()})


def _as_table(like: Any, items: Sequence[str], labels: Sequence[tuple[Any, ...]], held: ExitStack) -> Any:
    """The labels as a table of the engine, its columns and their types as those of `like`, all numbers 0."""
    import ibis
    import pyarrow

    backend = asked("the counting", like.get_backend)
    wanted = like.schema()
    # Ibis fills tables of SQLite by what Python makes of dates, which Python is about to give up.
    given = {n: "string" if backend.name == "sqlite" and t.is_date() else t for n, t in wanted.items()}
    schema = ibis.schema(given)
    parts = dict(zip(items, zip(*labels, strict=True), strict=True))
    rows = None
    with suppress(pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        typed = [_typed(parts.get(n, [0] * len(labels)), wanted[n].to_pyarrow()) for n in wanted]
        rows = pyarrow.table(typed, names=list(wanted)).cast(schema.to_pyarrow())
    if rows is None:
        kinds = ", ".join(str(wanted[name]) for name in items)
        raise ParameterError(
            "universe", "<labels>", f"a label does not fit the column of items, which is {kinds}",
            "Give labels of that type.",
        )  # fmt: skip
    table = ibis.memtable(rows, schema=schema)
    drop = backend.drop_view if backend.name in ("duckdb", "pyspark") else backend.drop_table
    held.callback(quietly, lambda: drop(table.get_name(), force=True))
    if backend.name == "pyspark":
        # Ibis tells Spark of the labels where it makes a view of them, and not where it keeps the counts.
        view = f"privmax_labels_{secrets.token_hex(8)}"
        held.callback(quietly, lambda: drop(view, force=True))
        asked("the counting", lambda: backend.create_view(view, table))
    return table.cast({name: kind for name, kind in wanted.items() if schema[name] != kind})


def _typed(values: Sequence[Any], kind: Any) -> Any:
    """Values as an Arrow array. Those that are all text may be of any type, as it is written: a file holds such."""
    import pyarrow

    text = not pyarrow.types.is_string(kind) and all(isinstance(value, str) for value in values)
    return pyarrow.array(values, pyarrow.string()).cast(kind) if text else pyarrow.array(values, kind)


def kept(counts: Any, held: ExitStack) -> Any:
    """The counts, made once and kept by the engine where it can; `held` then knows how to let go of them."""
    backend = asked("the counting", counts.get_backend)
    name = f"privmax_counts_{secrets.token_hex(8)}"
    if backend.name in ("pyspark", "datafusion"):
        # Ibis keeps one table for equal expressions, and whoever is first done takes it from the others: the name, as
        # one column more, makes this expression like no other.
        cached = asked("the counting", counts.mutate(**{name: 0}).cache)
        held.callback(quietly, cached.release)
        if backend.name == "pyspark":
            with suppress(Exception):  # Spark Connect has no context; there Ctrl-C is the client's own affair
                held.callback(quietly, _stoppable(backend._session.sparkContext, name))
        return cached
    # Known before there is anything to drop: an engine may fail, or be stopped, and leave half of it.
    held.push(lambda kind, *_: _drop(backend, name, stopped=kind is not None and not issubclass(kind, Exception)))
    refused = None
    try:
        with _unseen():
            return backend.create_table(name, counts, temp=True)
    except Exception as error:
        if type(error).__name__ not in _NO_ROOM:
            refused = _failure("the counting", error)
    if refused is not None:
        raise refused
    return counts


def _stoppable(context: Any, tag: str) -> Callable[[], object]:
    """Mark what this thread asks of Spark. What is returned stops all of it that still runs, and ends the marking.

    After Ctrl-C Spark would first finish, and answer nobody meanwhile who asks from the same thread. Its own way with
    Ctrl-C fails and says something else, so here it is noted, and raised when all is cleaned up.
    """
    context.addJobTag(tag)
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    noting = callable(usual) and current_thread() is main_thread()  # only there may it be changed

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(usual):
            usual(number, frame)

    if noting:
        signal.signal(signal.SIGINT, note)

    def stop() -> None:
        if noting:
            signal.signal(signal.SIGINT, usual)
        other = Thread(target=context.cancelJobsWithTag, args=(tag,))
        other.start()
        other.join()
        context.removeJobTag(tag)
        if pressed:
            raise KeyboardInterrupt

    return stop


_LACKING = ("OperationNotDefinedError", "UnsupportedOperationError", "UnsupportedBackendType", "NotImplementedError")
"""What Ibis raises where an engine lacks an operation."""

_NO_ROOM = (*_LACKING, "UnsupportedArgumentError", "ReadOnlySqlTransaction", "InsufficientPrivilege")
"""What is raised where an engine has no temporary tables, or none for this user: it then counts at every question."""


def _drop(backend: Any, name: str, *, stopped: bool) -> None:
    if stopped and backend.name == "duckdb":
        backend.con.interrupt()  # after Ctrl-C it would first finish what it was doing
    quietly(lambda: backend.drop_table(name, force=True))


def quietly(act: Callable[[], object]) -> None:
    """Clean up. An engine that cannot has lost its connection, and with it all that was temporary."""
    with suppress(Exception), _unseen():
        act()


def _row(ordered: Any, index: int) -> list[dict[str, Any]]:
    """The row at that place, if there is one."""
    backend = ordered.get_backend()
    if backend.name == "pyspark":
        # Spark skips rows itself. Ibis 12 has it number them instead, in no order that Spark would have to keep.
        found = backend.raw_sql(backend.compile(ordered)).offset(index).limit(1).collect()
        return [row.asDict() for row in found]
    rows: list[dict[str, Any]] = ordered.limit(1, offset=index).to_pyarrow().to_pylist()
    return rows


def _key(counts: Any, name: str) -> Any:
    """A column to order by, the same way in every engine: text by its UTF-8 bytes, whatever the collation."""
    column = counts[name]
    if column.type().is_string() and counts.get_backend().name == "postgres":
        return _bytes_of(column)
    return column


def _bytes_of(column: Any) -> Any:
    import ibis

    @ibis.udf.scalar.builtin(name="convert_to")  # type: ignore[untyped-decorator]
    def convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
        ...

    return convert_to(column, "UTF8")


def asked(question: str, answer: Callable[[], T]) -> T:
    """What the engine answers; its own message is not passed on, since it may quote the data."""
    try:
        with _unseen():
            return answer()
    except Exception as error:
        failure = _failure(question, error)
    raise failure  # out here, where the engine's own error is no longer attached to it as its context


def _failure(question: str, error: Exception) -> BaseException:
    """What to raise instead of an engine's own error."""
    if any(isinstance(one, KeyboardInterrupt) for one in _behind(error)):
        return KeyboardInterrupt()  # DuckDB and Spark say that they were interrupted, and not that it was by Ctrl-C
    name = type(error).__name__
    if name in _LACKING:
        return UnsupportedError(f"This engine does not offer what {question} needs ({_operation(error) or name}).")
    return EngineError(f"The engine failed at {question} ({name}), and nothing was released. Its own log says more.")


def _behind(error: BaseException) -> Iterator[BaseException]:
    """What an error was raised from, or while handling what; no error is behind itself, so this ends."""
    for one in (error.__cause__, error.__context__):
        if one is not None:
            yield one
            yield from _behind(one)


def _operation(error: Exception) -> str | None:
    """The operation of Ibis that an error is about; nothing of its message that is not the name of one."""
    import ibis.expr.operations as operations

    return next((word for word in re.findall(r"\b[A-Z]\w+", str(error)) if hasattr(operations, word)), None)


@contextmanager
def _unseen() -> Iterator[None]:
    """Keep Ibis from printing its queries, whatever its options say: scores stand in them as literals."""
    import ibis

    verbose, ibis.options.verbose = ibis.options.verbose, False
    try:
        yield
    finally:
        ibis.options.verbose = verbose


def _item(place: int) -> str:
    return f"privmax_item_{place}"


def _names(table: Any, item: str | Sequence[str] | None) -> list[str]:
    """The columns that name an item."""
    names = [item] if isinstance(item, str) else list(item or [])
    if not names:
        raise ParameterError(
            "item", item, "a table needs it", f"Name one of its columns, or several: {list(table.columns)}."
        )
    for name in names:
        kind = column_of(table, "item", name).type()
        if kind.is_nested() or kind.is_json():
            raise ParameterError(
                "item", name, f"the column must hold single values, and it is {kind}", "Name several columns instead."
            )
    if len(set(names)) < len(names):
        raise ParameterError("item", item, "a column occurs in it more than once", "Name each column once.")
    return names


def column_of(table: Any, option: str, name: object) -> Any:
    if name not in table.columns:
        raise ParameterError(option, name, "the table has no such column", f"It has {list(table.columns)}.")
    return table[name]


def _whole(column: Any, name: str, option: str) -> None:
    kind = column.type()
    if not (kind.is_integer() or (kind.is_decimal() and kind.scale == 0)):
        raise ParameterError(
            option, name, f"the column must hold whole numbers, and it is {kind}",
            "Round it to whole numbers of a unit of your choice.",
        )  # fmt: skip


def _universe(universe: object, columns: int, score: str | None) -> tuple[int | None, list[tuple[Any, ...]] | None]:
    """How many candidates there are (None: open), and their labels where those were declared."""
    if isinstance(universe, str) and universe == OPEN:
        return None, None
    if isinstance(universe, (int, np.integer)) and not isinstance(universe, bool):
        size = whole("universe", int(universe))
        if score is None:
            raise ParameterError(
                "universe", size, "a counted table lists only what somebody has, and a size does not name the others",
                "Give the labels of all candidates, or leave it open.",
            )  # fmt: skip
        return size, None
    if isinstance(universe, (str, bool)) or not hasattr(universe, "__len__"):
        shown = universe if isinstance(universe, (str, bool, float, type(None))) else type(universe).__name__
        raise ParameterError(
            "universe", shown, 'it must be "open", a size, or a collection of labels',
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    labels = [
        str(label) if isinstance(label, UUID) else plain_label(label) for label in cast(Collection[Any], universe)
    ]
    return whole("universe", len(labels)), _parts(labels, columns)


def _parts(labels: Sequence[Any], columns: int) -> list[tuple[Any, ...]]:
    """The labels, with one part for each column that names an item."""
    if columns > 1 and not all(isinstance(label, tuple) and len(label) == columns for label in labels):
        raise ParameterError(
            "universe", "<labels>", f"{columns} columns name an item, so a label must be a tuple of {columns}",
            "Give tuples in the order of the columns.",
        )  # fmt: skip
    parts = [label if columns > 1 else (label,) for label in labels]
    if any(part is None for label in parts for part in label):
        raise ParameterError("universe", "<labels>", "a label is missing in it", "Drop it: no label means no answer.")
    unhashable = False
    try:
        repeated = len(set(parts)) < len(parts)
    except TypeError:
        unhashable = True
    if unhashable:
        raise ParameterError("universe", "<labels>", "labels must be hashable", "Use text or numbers.")
    if repeated:
        raise _repeated()
    return parts


def _repeated() -> ParameterError:
    return ParameterError("universe", "<labels>", "a label occurs in it more than once", "List each label once.")


def _named(size: int, listed: int, labels: object) -> None:
    """Refuse a closed universe of which not everybody is listed: who is drawn must be named."""
    if labels is not None:
        if listed != size:
            raise _repeated()  # all that is listed is declared, so the engine took two labels for the same
    elif not listed:
        raise DataError(
            "There are no scores, so nothing in this closed universe has a label. Declare the universe by its labels, "
            'or as "open".'
        )
    elif listed < size:
        raise ParameterError(
            "universe", size, "fewer candidates are listed, and a size does not name the others: if one of those "
            "were drawn, the release would show who is listed",
            'Give the labels of all candidates, or list them all (0 where nobody has one), or leave it "open".',
        )  # fmt: skip


def _steps(sensitivity: Number | None, bound: int | None, score: str | None) -> int:
    """By how many units one individual can move a score: 1 for counts, the bound for weights."""
    if bound is not None:
        _refuse("weight", sensitivity=sensitivity)
        if whole("bound", bound) > LARGEST_BOUND:
            raise ParameterError(
                "bound", bound, f"it must not exceed {LARGEST_BOUND}", "Give the weights in a larger unit."
            )
        return bound
    if sensitivity is None:
        return 1
    if score is None:
        raise ParameterError("sensitivity", sensitivity, "a count moves by 1", "Leave it out.")
    scale = Scale.of(sensitivity, None)
    if not scale.whole:
        raise ParameterError(
            "sensitivity", sensitivity, "the scores of a table are whole numbers, and move by one", "Round it up."
        )
    return scale.steps


def _refuse(beside: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(name, value, f"it makes no sense with {beside}", "Leave it out.")
