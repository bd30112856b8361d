"""Scores counted by an engine, where the data is: DuckDB on files, PostgreSQL, Spark, any Ibis
table.

The engine counts once, and the counts stay there. Per selection it is then asked three questions:
the highest score, how many candidates are at each score of the window, and who is the i-th of one
score under a fixed order. Nothing else leaves it, so this process needs the same memory for ten
candidates and for ten million.

Items are counted under their keys, which tell apart what an engine might call equal
(`engines/base.py`). Errors name the question that failed. They never pass on what the engine says,
which may quote the data.

Proof of what weights promise: docs/proofs/weights.md
Proof of what keys promise:    docs/proofs/keys.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from privmax.deferred import np
from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    column_error,
    refuse_given,
    refuse_same,
)
from privmax.labels import identify, is_missing, label_by_value
from privmax.mechanisms.contract import Outcome
from privmax.numbers import Number, whole
from privmax.profile import Level, Profile
from privmax.sources.arrow_rows import typed_array
from privmax.sources.asking import ask
from privmax.sources.base import PlainSource
from privmax.sources.engines import embedded_engine, engine_of
from privmax.sources.engines.base import Engine, as_text
from privmax.sources.scale import Scale
from privmax.sources.users import DROP, NO_USER, OF_INDIVIDUALS, read_missing_users
from privmax.universe import OPEN, Universe, repeat

LARGEST_BOUND = 1 << 31
"""With more per individual, the 64 bits of a score might not hold the sum over all of them."""

NAMELESS = 2
"""Under WRONG, beside weights: a user has no name, whatever else is wrong; 1: a weight is."""

SCORE, WRONG, STRANGE = "privmax_score", "privmax_wrong", "privmax_strange"
USER, AMOUNT, ROWS = "privmax_user", "privmax_amount", "privmax_rows"
"""Columns of the counts and of what they are made from. Those that name an item are called
`item_column(0)`, `item_column(1)`, …: what the data calls its columns never meets these names, nor
what an engine makes of an odd one."""


@dataclass(frozen=True)
class Columns:
    """Name the columns of a table by their roles, and say which rows count.

    With neither `user` nor `score` every row is one individual.

    Args:
        item: The items; several columns name one together. Rows without an item do not count.
        user: The individuals: the score of an item is how many different ones it has.
        score: Instead: ready scores, one row per item.
        weight: With `user`: whole numbers; an individual adds their sum for the item, clipped to
            0 … bound.
        bound: Public; required with `weight`: one individual can move a score by so much.
        where: Which rows count: a condition on each row alone, such as
            "country = 'DE' and age >= 18" (`privmax help inputs`). None: all.
        missing_users: With `user`: "drop" leaves out rows that have an item but no user, each by
            itself. None: they are refused.

    Raises:
        ParameterError: The column of users is one of those of items.

    Examples:
        >>> Columns("query", "person", weight="clicks", bound=5).items()
        ['query']
    """

    item: str | Sequence[str] | None = None
    user: str | None = None
    score: str | None = None
    weight: str | None = None
    bound: int | None = None
    where: str | None = None
    missing_users: str | None = None

    def __post_init__(self) -> None:
        if self.user is not None:
            refuse_same("user", self.user, OF_INDIVIDUALS, item=self.items())

    def checked(self) -> Columns:
        """Return the same with `missing_users` read.

        Raises:
            ParameterError: It says nothing that is known, or no column of users is named.
        """
        return replace(self, missing_users=read_missing_users(self.missing_users, self.user))

    def items(self) -> list[str]:
        """Return the columns that name an item.

        Raises:
            ParameterError: It is neither a name nor several.
        """
        if self.item is None or isinstance(self.item, str):
            return [] if self.item is None else [self.item]
        given: object = self.item
        several = list(given) if isinstance(given, Iterable) else [given]
        names = [name for name in several if isinstance(name, str)]
        if len(names) < len(several):
            raise ParameterError(
                "item", given, "it must name a column, or several", "For example query."
            )
        return names

    def counts(self) -> bool:
        """Return whether rows are to be counted, so that only a table will do."""
        counting = any(value is not None for value in (self.user, self.weight, self.bound))
        return counting or (self.item is not None and self.score is None)


class TableSource(PlainSource):
    """The items of an Ibis table with a score each.

    Close it after use: the engine holds the counts, and a transaction. Of two on one connection the
    later is to be closed first.

    Args:
        columns: What its columns have.
        universe: "open", or the collection of all labels (of tuples, where several columns name an
            item). With ready scores also their number, if all are listed; a count lists only what
            someone has, so it needs the labels.
        sensitivity: Of ready scores: by how much one individual can move one (default 1).
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        resources: What to let go of after use, beside the counts.
    """

    step = Fraction(1)

    def __init__(
        self,
        table: Any,
        columns: Columns,
        *,
        universe: object = OPEN,
        sensitivity: Number | None = None,
        numbered: Mapping[str, list[Any]] | None = None,
        resources: ExitStack | None = None,
    ) -> None:
        self._facts: dict[str, Any] | None = None
        self._columns = columns
        self._levels: dict[int, int] = {}
        self._depth: int | None = None
        with resources or ExitStack() as stack:
            names, score = item_names(table, columns), columns.score
            self._items = [item_column(place) for place in range(len(names))]
            self._engine = engine_of(table)
            self._naming = [
                Naming(self._engine, table[name].type(), (numbered or {}).get(name))
                for name in names
            ]
            most = None if columns.weight is None else columns.bound
            steps = _steps(sensitivity, most, score)
            self.universe, labels = _universe(Universe.of(universe), len(names), score)
            self._engine.begin(table, stack)
            counts = _counts(self._engine, table, names, columns)
            if labels is not None:
                keys = [
                    naming.keys(part)
                    for naming, part in zip(self._naming, zip(*labels, strict=True), strict=True)
                ]
                kinds = ", ".join(str(naming.kind) for naming in self._naming)
                counts = _add_labels(
                    self._engine, counts, dict(zip(self._items, keys, strict=True)), kinds, stack
                )
            self._counts = self._engine.keep(counts, stack)
            if self.universe is not None:
                _check_named(self.universe, self.listed(), labels)
            self.profile = Profile(self, universe=self.universe, sensitivity=steps)
            self._resources = stack.pop_all()

    def __repr__(self) -> str:
        return "TableSource(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._resources.close()

    def listed(self) -> int:
        return int(self._summary()["listed"])

    def maximum(self) -> int | None:
        best = self._summary()["best"]
        return None if best is None else int(best)

    def histogram(self, above: int) -> Sequence[Level]:
        window = self._counts.filter(self._counts[SCORE] > above)
        tally = window.group_by(SCORE).agg(number=window.count())
        rows = ask("the histogram", self._engine.rows, tally)
        return self._see(rows, above)

    def highest(self, number: int) -> Sequence[Level]:
        counts = self._counts
        tally = counts.group_by(SCORE).agg(number=counts.count())
        ordered = tally.order_by(tally[SCORE].desc()).limit(number)
        rows = ask("the histogram", self._engine.rows, ordered)
        least = min((int(score) for score, _ in rows), default=0)
        return self._see(rows, least - 1)

    def _see(self, rows: Sequence[Sequence[Any]], above: int) -> Sequence[Level]:
        """Return the levels above a score, and keep them if none were seen that far down."""
        levels = sorted(((int(score), int(number)) for score, number in rows), reverse=True)
        self._check_change(levels, above)
        if self._depth is None or above < self._depth:
            self._levels, self._depth = dict(levels), above
        return levels

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        """The item each outcome stands for, with one question to the engine; None for no answer.

        Every drawn candidate is listed.
        """
        drawn = [outcome for outcome in outcomes if outcome.score is not None]
        rows = [self._row(drawn[0])] if len(drawn) == 1 else self._rows(drawn)
        labels = map(self._label, rows)
        return [None if outcome.score is None else next(labels) for outcome in outcomes]

    def _row(self, outcome: Outcome) -> Sequence[Any]:
        """Return the name of one outcome: the engine skips to it, and numbers none before it."""
        counts = self._counts
        level = counts.filter(
            counts[SCORE] <= outcome.score if outcome.below else counts[SCORE] == outcome.score
        )
        ordered = level.select(*self._items).order_by(self._items)
        row_at = self._engine.row_at
        rows = ask("the look-up", row_at, ordered, outcome.index, self._readable)
        if not rows:
            raise EngineError(CHANGED)
        return rows[0]

    def _rows(self, outcomes: Sequence[Outcome]) -> list[Sequence[Any]]:
        """Return the names of many outcomes.

        Their levels are laid end to end, the highest first, and each level in the order of the
        items: so every outcome has one place, which is numbered and picked out in one pass. The
        scores come back with the rows, and say whether the engine still reads the same data.
        """
        if not outcomes:
            return []
        counts = self._counts
        scores = sorted({outcome.score or 0 for outcome in outcomes}, reverse=True)
        floor = next((outcome.score for outcome in outcomes if outcome.below), None)
        chosen = counts[SCORE].isin(scores)
        level = counts[SCORE]
        if floor is not None:
            chosen, level = chosen | (counts[SCORE] <= floor), level.clip(lower=floor)
        starts, end = {}, 0
        for score, number in zip(scores, self._numbers(scores, floor), strict=True):
            starts[score] = end
            end += number
        places = [starts[outcome.score or 0] + outcome.index for outcome in outcomes]
        block = counts.filter(chosen).select(*self._items, **{SCORE: level})
        order = [block[SCORE].desc(), *(block[name] for name in self._items)]
        read = ask(
            "the look-up",
            lambda: self._engine.rows_at(
                block, order, places, lambda rows: {SCORE: rows[SCORE], **self._readable(rows)}
            ),
        )
        rows = [read.get(place) for place in places]
        for outcome, row in zip(outcomes, rows, strict=True):
            if row is None or int(row[0]) != outcome.score:
                raise EngineError(CHANGED)
        return [row[1:] for row in rows if row is not None]

    def _numbers(self, scores: Sequence[int], floor: int | None) -> list[int]:
        """Return the number of items at each of these scores; for the floor, at it or below."""
        above = scores[-1] if scores[-1] == floor else scores[-1] - 1
        if self._depth is None or above < self._depth:
            self.histogram(above)
        rest = self.listed() - sum(_above(list(self._levels.items()), scores[-1]).values())
        return [rest if score == floor else self._levels.get(score, 0) for score in scores]

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """The score of each that is drawn; the engine is asked for those below the window only."""
        known: dict[tuple[int | None, int], int] = {}
        for floor in {outcome.score for outcome in outcomes if outcome.below}:
            places = [one.index for one in outcomes if one.below and one.score == floor]
            known |= {
                (floor, place): score for place, score in self._below(floor or 0, places).items()
            }
        if any(one.below and (one.score, one.index) not in known for one in outcomes):
            raise EngineError(CHANGED)
        return [known[one.score, one.index] if one.below else one.score or 0 for one in outcomes]

    def _below(self, floor: int, places: Sequence[int]) -> dict[int, int]:
        """The scores at those places among the items at a score or below it, in their order."""
        counts = self._counts
        block = counts.filter(counts[SCORE] <= floor).select(*self._items, SCORE)
        order = [block[name] for name in self._items]
        rows = ask(
            "the look-up",
            lambda: self._engine.rows_at(block, order, places, lambda row: {SCORE: row[SCORE]}),
        )
        return {place: int(score) for place, (score,) in rows.items()}

    def scores(self) -> list[tuple[Any, int]]:
        """Every item with its score, for laws on public data."""
        counts = self._counts
        every = counts.select(**self._readable(counts), **{SCORE: counts[SCORE]})
        rows = ask("the counts", self._engine.rows, every)
        return [(self._label(row[:-1]), int(row[-1])) for row in rows]

    def _readable(self, table: Any) -> dict[str, Any]:
        """Return the columns to fetch of a table to name its items."""
        named = zip(self._items, self._naming, strict=True)
        return {
            f"{name}_read": self._engine.readable(table[name], naming.kind)
            for name, naming in named
        }

    def _label(self, row: Sequence[Any]) -> Any:
        values = tuple(naming.label(value) for naming, value in zip(self._naming, row, strict=True))
        return values[0] if len(values) == 1 else values

    def _summary(self) -> dict[str, Any]:
        """The highest score, how many items there are, and whether they can be used at all: one
        question.
        """
        if self._facts is None:
            counts = self._counts
            one = counts.aggregate(
                best=counts[SCORE].max(),
                listed=counts.count(),
                missing=counts[SCORE].isnull().ifelse(1, 0).sum(),
                wrong=counts[WRONG].max(),
                **({"strange": counts[STRANGE].max()} if STRANGE in counts.columns else {}),
            )
            row = ask("the maximum", self._engine.rows, one)[0]
            facts = dict(zip(one.columns, row, strict=True))
            if facts["wrong"]:
                raise _unusable(self._columns, facts["wrong"])
            if facts["missing"]:
                raise DataError(
                    "A score is missing, or is not a whole number of 64 bits. Drop such items, or "
                    "give them another score."
                )
            if facts.get("strange"):
                raise DataError(
                    "A label with a score is not in the declared universe. Declare every "
                    "candidate, or drop it."
                )
            self._facts = facts
        return self._facts

    def _check_change(self, levels: Sequence[Level], above: int) -> None:
        """Refuse a histogram that does not fit what the engine said before: it reads other rows
        now.
        """
        best = self.maximum()
        expected = best if best is not None and best > above else None
        seen = max(above, self._depth) if self._depth is not None else None
        if (
            (levels[0][0] if levels else None) != expected
            or sum(count for _, count in levels) > self.listed()
            or (
                seen is not None
                and _above(levels, seen) != _above(list(self._levels.items()), seen)
            )
        ):
            raise EngineError(CHANGED)


def _unusable(columns: Columns, wrong: int) -> DataError:
    """Explain what is wrong with the rows, by the question and the number under WRONG."""
    if columns.score is not None:
        return DataError(
            "An item has several rows with scores. Sum or deduplicate them, or, if a row is one "
            "person's, count people: name their column as user."
        )
    if columns.weight is None or wrong >= NAMELESS:
        return DataError(f"A row has an item but no user. {NO_USER}")
    return DataError(
        "A weight is missing or not a whole number of 64 bits. Give every row with an item one."
    )


CHANGED = (
    "The data changed while it was read, and nothing was released. Select from a snapshot: a table "
    "that no one writes to, or one transaction that sees the same rows throughout."
)


@dataclass(eq=False, repr=False)
class Naming:
    """The naming of items by one column.

    Args:
        _engine: Has the column.
        kind: Its type.
        _numbered: The labels, by the numbers that the column has in their place; None: it holds the
            labels themselves.
    """

    _engine: Engine
    kind: Any
    _numbered: list[Any] | None

    def label(self, value: Any) -> Any:
        if self._numbered is not None:
            return self._numbered[int(value)]
        return self._engine.label(value, self.kind)

    def keys(self, labels: Sequence[Any]) -> list[Any]:
        """The keys of declared labels. One that is given no number yet gets the next."""
        if self._numbered is None:
            keys = None
            with suppress(TypeError):
                keys = [self._engine.key_of(label, self.kind) for label in labels]
            if keys is None:
                raise _misfit(str(self.kind))
            return keys
        place = {identify(label): number for number, label in enumerate(self._numbered)}
        for label in map(label_by_value, labels):
            if place.setdefault(identify(label), len(place)) == len(self._numbered):
                self._numbered.append(label)
        return [place[identify(label_by_value(label))] for label in labels]


def _above(levels: Sequence[Level], score: int) -> dict[int, int]:
    return {level: count for level, count in levels if level > score}


def _counts(engine: Engine, table: Any, names: Sequence[str], columns: Columns) -> Any:
    """An expression with the items, their scores, and under WRONG a number above 0 where something
    is wrong.
    """
    score = columns.score
    items = [item_column(place) for place in range(len(names))]
    if score is not None:
        given = {"user": columns.user, "weight": columns.weight, "bound": columns.bound}
        refuse_given(given, "it has no meaning with score")
        _whole(column_of(table, "score", score), score, "score")
        keys = {item: engine.key(table[name]) for item, name in zip(items, names, strict=True)}
        rows = keep_complete(table, {**keys, AMOUNT: engine.whole(table[score])}, items)
        # Of an item's scores one is as wrong as another, if there are several: the largest is there
        # to have one.
        best = _fit(engine, rows[AMOUNT].max())
        return rows.group_by(items).agg(**{SCORE: best, WRONG: (rows.count() - 1).cast("int64")})
    rows = keep_counted(engine, table, names, columns)
    if columns.user is None:
        return count_rows(rows, items)
    if columns.weight is not None:
        return add_people(add_rows(rows, items, whole("bound", columns.bound)), items)
    if engine.sorts_to_count:
        people, wrong = rows[USER].nunique().cast("int64"), rows.count() - rows[USER].count()
        return rows.group_by(items).agg(**{SCORE: people, WRONG: wrong.cast("int64")})
    pairs = rows.distinct()  # DuckDB is faster so than by COUNT(DISTINCT) beside other counts
    people = pairs[USER].count()
    return pairs.group_by(items).agg(
        **{SCORE: people.cast("int64"), WRONG: (pairs.count() - people).cast("int64")}
    )


def keep_counted(
    engine: Engine, table: Any, names: Sequence[str], columns: Columns, **others: Any
) -> Any:
    """The rows that count where scores are counted: keys of items and users, and weights.

    Args:
        engine: Of the table.
        table: The rows.
        names: Its columns that name an item.
        columns: What its other columns have.
        **others: Keys of more columns, by the names they get; a row without one does not count.
    """
    user, weight, bound = columns.user, columns.weight, columns.bound
    keys = {item_column(place): engine.key(table[name]) for place, name in enumerate(names)}
    columns_read, needed = {**keys, **others}, [*keys, *others]
    if user is None:
        if weight is not None:
            raise ParameterError(
                "weight",
                weight,
                "it is summed per individual, so it needs user",
                "Give user.",
            )
        refuse_given({"bound": bound}, "it has no meaning if each row is one individual")
        return keep_complete(table, columns_read, needed)
    columns_read[USER] = engine.key(column_of(table, "user", user))
    needed += [USER] if columns.missing_users == DROP else []
    if weight is None:
        refuse_given({"bound": bound}, "it has no meaning when users are counted")
    else:
        _whole(column_of(table, "weight", weight), weight, "weight")
        columns_read[AMOUNT] = engine.addend(table[weight])
    return keep_complete(table, columns_read, needed)


def count_rows(rows: Any, items: Sequence[str]) -> Any:
    """The scores where every row is one individual. Nothing can be wrong."""
    number = rows.count().cast("int64")
    return rows.group_by(list(items)).agg(**{SCORE: number, WRONG: number - number})


def add_rows(rows: Any, items: Sequence[str], bound: int) -> Any:
    """Add up the weights of each individual for an item, then clip them."""
    added = rows[AMOUNT].sum().fill_null(0).clip(0, bound)
    return rows.group_by([*items, USER]).agg(
        **{
            SCORE: added.cast("int64"),
            WRONG: rows[AMOUNT].isnull().ifelse(1, 0).max().cast("int64"),
            ROWS: rows.count().cast("int64"),
        }
    )


def add_people(each: Any, items: Sequence[str]) -> Any:
    """The sum over individuals of what each adds to an item."""
    return each.group_by(list(items)).agg(
        **{SCORE: each[SCORE].sum().cast("int64"), WRONG: find_wrong(each).max().cast("int64")}
    )


def find_wrong(each: Any) -> Any:
    """A number above 0 where something is wrong with what an individual adds."""
    return each[WRONG] + each[USER].isnull().ifelse(NAMELESS, 0)


def keep_complete(table: Any, columns: Mapping[str, Any], needed: Sequence[str]) -> Any:
    """The rows that have all that is needed (an item, and a user where rows without one are left
    out), with the wanted columns under the names used here.
    """
    rows = table.select(**columns)
    return rows.filter(*(rows[name].notnull() for name in needed))


def _fit(engine: Engine, value: Any) -> Any:
    """A whole number as one of 64 bits; missing where it does not fit, since engines disagree on
    what a cast does.
    """
    kind = value.type()
    if kind.is_signed_integer():
        return value.cast("int64")
    fits = value <= (1 << 63) - 1
    if not kind.is_integer():
        fits = fits & (value >= -(1 << 63))
    return fits.ifelse(value, engine.null(kind)).cast("int64")


def _add_labels(
    engine: Engine, counts: Any, keys: Mapping[str, Sequence[Any]], kinds: str, stack: ExitStack
) -> Any:
    """The counts of all labels, 0 for those without data; under STRANGE 1 for an item that is not
    among the labels.

    Args:
        keys: Of the declared labels, by the column that they are in.
        kinds: The types of the columns of items, for an error to say.
    """
    # To Ibis a count has 64 bits and needs no cast; in polars it has 32, until a number of 64 is
    # added to it.
    zero = engine.literal(0, "int64")
    seen = counts.mutate(
        **{SCORE: counts[SCORE] + zero, WRONG: counts[WRONG] + zero, STRANGE: zero + 1}
    )
    both = seen.union(_as_table(engine, seen, keys, kinds, stack))
    missing = (
        both[SCORE].isnull().ifelse(1, 0).sum()
    )  # a sum leaves out what is missing, and must not hide it
    score = (missing == 0).ifelse(both[SCORE].sum().cast("int64"), engine.null("int64"))
    return both.group_by(list(keys)).agg(
        **{SCORE: score, WRONG: both[WRONG].sum(), STRANGE: both[STRANGE].min()}
    )


def _as_table(
    engine: Engine, like: Any, keys: Mapping[str, Sequence[Any]], kinds: str, stack: ExitStack
) -> Any:
    """The keys of declared labels as a table of the engine, its columns as those of `like`, all
    numbers 0.
    """
    import pyarrow

    number = len(next(iter(keys.values())))
    columns = {name: keys.get(name, [0] * number) for name in like.columns}
    table = None
    with suppress(pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        schema = like.schema()
        whole = [name for name in keys if engine.types_bind and schema[name].is_integer()]
        if not any(is_rounded(keys[name], schema[name]) for name in whole):
            table = engine.table_of(columns, schema, stack)
    if table is None:
        raise _misfit(kinds)
    return table


def is_rounded(keys: Sequence[Any], kind: Any) -> bool:
    """Whether a number or a date becomes another one in a column of this type, as 1.5 does among
    whole numbers. Text is read as it is written.
    """
    if not (kind.is_numeric() or kind.is_date()) or all(isinstance(key, str) for key in keys):
        return False
    values = typed_array(keys, kind.to_pyarrow()).to_pylist()
    return any(
        type(key) is datetime or key != value for key, value in zip(keys, values, strict=True)
    )


def _misfit(kinds: str) -> ParameterError:
    return ParameterError(
        "universe", "<labels>", f"a label does not fit the column of items, which is {kinds}",
        "Give labels of that type.",
    )  # fmt: skip


def number_values(engine: Engine, table: Any, columns: Sequence[str], name: str,
                  stack: ExitStack) -> Any:  # fmt: skip
    """Different values of some columns, numbered in their order, as a table of the engine.

    Numbers of labels follow the order of the labels. An enumeration is sorted as its text: its
    numbers depend on other rows.
    """
    values = table.select(*columns).distinct()
    order = [as_text(values[one]) if values[one].type().is_string() else values[one]
             for one in columns]  # fmt: skip
    return engine.keep(values.select(*columns, **{name: engine.number_rows(order)}), stack)


def list_numbers(engine: Engine, columns: Mapping[str, Iterable[int]], stack: ExitStack) -> Any:
    """Whole numbers of ours, as a table of the engine."""
    values = {
        name: np.asarray(column, np.int64)
        if isinstance(column, np.ndarray)
        else np.fromiter(column, np.int64)
        for name, column in columns.items()
    }
    schema = engine.whole_schema(list(values))
    return ask("the counting", engine.table_of, values, schema, stack)


def offer_windows(table: Any, needed: Sequence[str], stack: ExitStack) -> Any:
    """The table, or a copy of its wanted columns in the embedded engine where its own has no window
    functions.
    """
    if engine_of(table).has_windows:
        return table
    rows = ask("the copying", table.select(*dict.fromkeys(needed)).to_pyarrow)
    return embedded_engine().open_arrow("the copying", lambda: rows, stack)


def item_column(place: int) -> str:
    """Name the column of ours that holds a part of the items."""
    return f"privmax_item_{place}"


def item_names(table: Any, columns: Columns) -> list[str]:
    """The columns that name an item."""
    names = columns.items()
    if not names:
        raise column_error("item", None, list(table.columns), "table")
    for name in names:
        check_single(table, "item", name)
    if len(set(names)) < len(names):
        raise ParameterError(
            "item", columns.item, "it names a column twice", "Name each column once."
        )
    return names


def check_single(table: Any, option: str, name: str) -> None:
    """Refuse a column that is not there, or has lists and the like for values."""
    kind = column_of(table, option, name).type()
    if kind.is_nested() or kind.is_json():
        raise ParameterError(
            option,
            name,
            f"the column must have single values, but its type is {kind}",
            "Name several columns instead." if option == "item" else "Name another column.",
        )


def column_of(table: Any, option: str, name: object) -> Any:
    if name not in table.columns:
        raise column_error(option, name, list(table.columns), "table")
    return table[name]


def _whole(column: Any, name: str, option: str) -> None:
    kind = column.type()
    if not (kind.is_integer() or (kind.is_decimal() and kind.scale == 0)):
        raise ParameterError(
            option, name, f"the column must have whole numbers, but its type is {kind}",
            "Round it to whole numbers of some unit.",
        )  # fmt: skip


def _universe(
    universe: Universe, columns: int, score: str | None
) -> tuple[int | None, list[tuple[Any, ...]] | None]:
    """Return the number of candidates (None: open), and their labels where those were declared."""
    if universe.labels is not None:
        return universe.size, _parts(universe.plain_labels(), columns)
    if universe.size is not None and score is None:
        raise ParameterError(
            "universe", universe.size, "a counted table lists only items that occur, and a size "
            "does not name the others",
            "Give the labels of all candidates, or leave it open.",
        )  # fmt: skip
    return universe.size, None


def _parts(labels: Sequence[Any], columns: int) -> list[tuple[Any, ...]]:
    """The labels, with one part for each column that names an item."""
    if columns == 1:
        return [(label,) for label in labels]
    if not all(isinstance(label, tuple) and len(label) == columns for label in labels):
        raise ParameterError(
            "universe", "<labels>", f"{columns} columns name an item, so a label must have "
            f"{columns} parts",
            "Give them in the order of the columns.",
        )  # fmt: skip
    if any(is_missing(part) for label in labels for part in label):
        raise ParameterError(
            "universe",
            "<labels>",
            "a label is missing in it",
            "Drop it: one without a label cannot be released.",
        )
    return list(labels)


def _check_named(size: int, listed: int, labels: object) -> None:
    """Refuse a closed universe with unlisted candidates: a drawn one needs a name."""
    if labels is not None:
        if listed != size:
            # all that is listed is declared, so the engine took two labels for the same
            raise repeat()
    elif not listed:
        raise DataError(
            "There are no scores, so no candidate of this closed universe has a label. Declare the "
            "universe by its labels, or as open."
        )
    elif listed < size:
        raise ParameterError(
            "universe", size, "fewer candidates are listed, and a size does not name the others: "
            "drawing one of them would reveal which are listed",
            "Give the labels of all candidates, or list them all (with score 0), or leave it open.",
        )  # fmt: skip


def _steps(sensitivity: Number | None, bound: int | None, score: str | None) -> int:
    """By how many units one individual can move a score: 1 for counts, the bound for weights."""
    if bound is not None:
        refuse_given({"sensitivity": sensitivity}, "it has no meaning with weight")
        bound = whole("bound", bound)
        if bound > LARGEST_BOUND:
            raise ParameterError(
                "bound",
                bound,
                f"it must not exceed {LARGEST_BOUND}",
                "Give the weights in a larger unit.",
            )
        return bound
    if sensitivity is None:
        return 1
    if score is None:
        raise ParameterError("sensitivity", sensitivity, "a count moves by 1", "Leave it out.")
    scale = Scale.of(sensitivity, None)
    if not scale.whole:
        raise ParameterError(
            "sensitivity",
            sensitivity,
            "the scores of a table are whole numbers",
            "Round it up.",
        )
    return scale.steps
