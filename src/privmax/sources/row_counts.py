"""Counts of the rows of a table, as expressions that its engine computes.

Proof of what weights promise: docs/proofs/weights.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from privmax.deferred import np
from privmax.errors import ParameterError, refuse_given
from privmax.numbers import whole
from privmax.sources.asking import ask
from privmax.sources.engines import embedded_engine, engine_of
from privmax.sources.engines.base import Engine, as_text
from privmax.sources.roles import Columns, column_of
from privmax.sources.users import DROP

NAMELESS = 2
"""Under WRONG, beside weights: a user has no name, whatever else is wrong; 1: a weight is."""

SCORE, WRONG, STRANGE = "privmax_score", "privmax_wrong", "privmax_strange"
USER, AMOUNT, ROWS = "privmax_user", "privmax_amount", "privmax_rows"
"""Columns of the counts and of what they are made from. Those that name an item are called
`item_column(0)`, `item_column(1)`, …: what the data calls its columns never meets these names, nor
what an engine makes of an odd one."""


def count_items(engine: Engine, table: Any, names: Sequence[str], columns: Columns) -> Any:
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


def _whole(column: Any, name: str, option: str) -> None:
    kind = column.type()
    if not (kind.is_integer() or (kind.is_decimal() and kind.scale == 0)):
        raise ParameterError(
            option, name, f"the column must have whole numbers, but its type is {kind}",
            "Round it to whole numbers of some unit.",
        )  # fmt: skip
