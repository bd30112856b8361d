"""Baskets that stay in an engine, of tables with a row per item.

They are in Parquet files, DuckDB, PostgreSQL, Spark, or any Ibis table.

Two passes. The first counts the individuals who have each item. The second keeps the items that are
frequent enough, writes every basket as the numbers of its items, and counts the individuals who
have the same baskets so written. Only labels, counts and different baskets come here: memory grows
with those, and not with the rows of the table.

The frequent items are not sent to the engine. It keeps what the first pass counted, under numbers
of its own, and the second pass joins that. So no label has to survive the way back into the
engine's types, and no query grows with them.

Errors name the question that failed. They never pass on what the engine says, which may quote the
data.
"""

from __future__ import annotations

import copy
import os
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import groupby
from operator import itemgetter, or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    UnsupportedError,
    column_error,
)
from privmax.itemsets.baskets import Baskets, identify, sort_labels
from privmax.labels import item_label
from privmax.sources.conditions import Condition
from privmax.sources.engines import engine_of, is_read_once
from privmax.sources.engines.base import Engine, ask, new_name, quietly
from privmax.sources.files import is_stream
from privmax.sources.places import PARQUET, Files, find_files, is_pattern
from privmax.sources.reading import as_table, keep_rows, open_rows
from privmax.sources.tables import CHANGED, column_of
from privmax.sources.users import NO_USER

ITEM, BASKET, USER = "privmax_item", "privmax_basket", "privmax_user"
SUPPORT, WRONG, CODE = "privmax_support", "privmax_wrong", "privmax_code"
PATTERN, NUMBER = "privmax_pattern", "privmax_number"
"""Columns of what is asked for. What the data calls its columns never meets these names."""

COUNTING, GROUPING, SIZING = "counting the items", "grouping the baskets", "measuring the baskets"
"""What an engine is asked, for errors to say."""

BATCH = 1 << 16
"""Rows of an answer that are turned into numbers at once."""

BREAK = b","
"""Between two baskets of a user, repeated until it is as long as the number of an item."""


def open_table(
    data: object,
    *,
    basket: Sequence[str] | str | None,
    item: str | None,
    user: str | None = None,
    where: Condition | None = None,
    drops: bool = False,
) -> TableRows | None:
    """Open the baskets of a table that an engine holds, or of a Parquet file or folder.

    None for anything else.

    Close it after use.
    """
    if not _may_be_table(data):
        return None
    looked = where.columns() if where is not None else ()
    wanted = [name for name in (*_names(basket), item, user, *looked) if name is not None]
    if not basket or item is None:
        wanted = []  # all: the error about a missing one lists them
    with ExitStack() as stack:
        table = open_rows(data, wanted, [], False, stack)
        if table is None:
            return None
        if is_read_once(data):  # and there is more than one pass
            table = engine_of(table).keep(table, stack)
        kept = keep_rows(table, where, data)
        return TableRows(kept, basket=basket, item=item, user=user, drops=drops, resources=stack)


def read_table(data: object) -> Any:
    """Read all columns of a table that an engine holds, or of a Parquet file, as Arrow.

    None for anything else.
    """
    if not _may_be_table(data):
        return None
    with ExitStack() as stack:
        table = as_table(data, [], [], False, stack)
        return None if table is None else ask("reading the table", table.to_pyarrow)


_LISTED = ("is_string", "is_integer", "is_boolean", "is_date", "is_floating")
"""What lists of a table may hold: Arrow has exact types for them."""


def read_list_column(data: object, *, item: str, user: str | None, where: Condition | None) -> Any:
    """Read the columns of lists and of users of a table or a Parquet file, as Arrow.

    An engine holds the table. None for anything else, and where the type of the column is not a
    list.
    """
    if not _may_be_table(data):
        return None
    looked = where.columns() if where is not None else ()
    names = [item, *([] if user is None else [user])]
    with ExitStack() as stack:
        table = as_table(data, [*names, *looked], [], False, stack)
        if table is None or item not in table.columns or not table[item].type().is_array():
            return None
        kind = table[item].type().value_type
        if not any(getattr(kind, test)() for test in _LISTED):
            raise ParameterError(
                "item", item, f"the column has lists of the type {kind}",
                "Lists must contain text, numbers or dates. Cast them to text first.",
            )  # fmt: skip
        kept = keep_rows(table, where, data)
        columns = [item] if user is None else [item, column_of(table, "user", user).get_name()]
        return ask("reading the lists", kept.select(*columns).to_pyarrow)
    raise AssertionError  # no context swallows an error


class TableRows:
    """The baskets of an Ibis table in long form: a row says that an item is in a basket.

    Close it after use: the engine holds the counts.

    Args:
        basket: Column that tells baskets apart, or several that do together.
        item: Column of the items; rows without one do not count, repeated rows count once.
        user: Column of the individuals, who may have several baskets. A basket belongs to one of
            them: what another writes under the same name is another basket. Without it every basket
            is an individual.
        drops: Whether rows without a user are left out; otherwise they are refused.
        resources: What to let go of after use, beside the counts.

    Args:
        labels: Of all items that occur, by code, in their fixed order: numbers by value, text by
            its UTF-8 bytes.
    """

    def __init__(
        self,
        table: Any,
        *,
        basket: Sequence[str] | str | None,
        item: str | None,
        user: str | None = None,
        drops: bool = False,
        resources: ExitStack | None = None,
    ) -> None:
        with resources or ExitStack() as stack:
            baskets = list(name_keys(_names(basket)))
            self._who = baskets if user is None else [USER]
            self._keys = baskets if user is None else [USER, *baskets]
            self._engine = engine_of(table)
            self._engine.begin(
                table, stack, passes=2
            )  # both see the same rows, where the engine can do that
            rows = _rows(self._engine, table, _names(basket), item, user)
            dropping = drops and user is not None
            self._rows = rows.filter(rows[USER].notnull()) if dropping else rows
            self._counts = _number(
                self._engine, _counts(self._engine, self._rows, self._who, self._keys), stack
            )
            self.labels: Sequence[Any]
            self.labels, self._supports, self._codes = _fetch(
                self._engine, self._counts, table[item].type()
            )
            self._least = int(self._supports.max(initial=0)) + 1
            self._found = _empty(self.labels)
            self._stack = stack.pop_all()

    def __repr__(self) -> str:
        return "TableRows(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._stack.close()

    @property
    def items(self) -> int:
        """How many codes there are."""
        return len(self.labels)

    def supports(self) -> NDArray[np.int64]:
        """Return how many individuals have each item, by code."""
        return self._supports

    def survivors(self, least: int) -> Baskets:
        """Baskets that give the support of every itemset whose support is `least` or more.

        Each owner is a class of individuals with the same baskets. Items that fewer have are left
        out of them, and who has no other is not among the individuals. What was read for a smaller
        `least` is complete, and given again.
        """
        wanted = self._supports[self._supports >= max(least, 1)]
        if len(wanted) and int(wanted.min()) < self._least:
            self._found = self._read(int(wanted.min()))
            self._least = int(wanted.min())
        return self._found

    def count_holders(self, itemsets: Sequence[Sequence[int]]) -> list[int]:
        """Count holders as `Baskets.count_holders` does.

        Rows of the items asked for, and of no rarer ones, are read.
        """
        least = min((int(self._supports[code]) for one in itemsets for code in one), default=1)
        numbers = self.survivors(least).count_holders(itemsets)
        return [
            number if len(one) else self._holders()
            for one, number in zip(itemsets, numbers, strict=True)
        ]

    def _holders(self) -> int:
        """Return how many individuals have an item."""
        people = self._rows.select(*self._who).distinct()
        [(number,)] = ask(
            SIZING, lambda: self._engine.rows(people.aggregate(number=people.count()))
        )
        return int(number)

    def longest(self) -> int:
        """Return how many different items the largest basket has."""
        pairs = self._rows.select(*self._keys, ITEM).distinct()
        sizes = pairs.group_by(self._keys).agg(**{NUMBER: pairs.count()})
        [(most,)] = ask(
            SIZING, lambda: self._engine.rows(sizes.aggregate(most=sizes[NUMBER].max()))
        )
        return int(most or 0)

    def within(self, items: int | Collection[Any]) -> TableRows:
        """Return the same on a declared universe, as `Baskets.within`.

        Close only one of the two: they share the counts.
        """
        every = np.arange(self.items, dtype=np.int32)
        recoded = Baskets(np.array([0, self.items], np.int64), every, self.labels).within(items)
        other = copy.copy(self)
        other.labels = recoded.labels
        other._codes = recoded.codes[self._codes]
        other._supports = np.zeros(len(recoded.labels), np.int64)
        other._supports[recoded.codes] = self._supports
        other._least = int(self._supports.max(initial=0)) + 1
        other._found = _empty(recoded.labels)
        return other

    def _read(self, least: int) -> Baskets:
        """Read the baskets of the items that at least so many have, as the engine has them now."""
        # Numbers are below that of the items, unless they are counted again and others have come.
        frequent = self._counts.filter(
            self._counts[SUPPORT] >= least, self._counts[CODE] < len(self._codes)
        )
        both = self._rows.join(frequent, ITEM)
        try:
            grouped = _group(both, self._who, self._keys, len(str(len(self._codes))))
        except UnsupportedError:
            grouped = _stream(self._engine, both, self._who, self._keys)
        offsets, codes, owners, weights = grouped
        owned = None if self._who == self._keys else owners
        baskets = Baskets(offsets, self._codes[codes], self.labels, owned, weights)
        if not np.array_equal(
            baskets.supports(), np.where(self._supports >= least, self._supports, 0)
        ):
            raise EngineError(CHANGED)
        return baskets


Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Offsets, codes as the engine numbers them, owners, weights."""


def _may_be_table(data: object) -> bool:
    """Return whether data is a Parquet file or folder, or no file at all."""
    if isinstance(data, str) and data == "-":
        return False
    if isinstance(data, (str, os.PathLike)):
        if not os.path.exists(data) and not is_pattern(os.fspath(data)):
            return os.fspath(data).lower().endswith(PARQUET)
        data = find_files(data)
    if isinstance(data, Files):
        return data.kind in ("folder", "parquet", "database")
    return not is_stream(data)


def _empty(labels: Sequence[Any]) -> Baskets:
    none = np.zeros(0, np.int64)
    return Baskets(np.zeros(1, np.int64), np.zeros(0, np.int32), labels, weights=none)


def _names(basket: Sequence[str] | str | None) -> list[str]:
    if basket is None:
        return []
    return [basket] if isinstance(basket, str) else list(basket)


def name_keys(basket: Sequence[str]) -> dict[str, str]:
    """Return the columns of baskets by the names used here."""
    return {
        BASKET if place == 0 else f"{BASKET}_{place + 1}": name for place, name in enumerate(basket)
    }


def _rows(
    engine: Engine, table: Any, basket: Sequence[str], item: str | None, user: str | None
) -> Any:
    """Return the rows that have an item, with keys of the wanted columns under our names."""
    for option, columns in (("basket", basket), ("item", item)):
        if not columns:
            error = column_error(option, None, list(table.columns), "table")
            if item is None and not basket:
                error.remedy += " If each item has a column of 0 and 1, set form to onehot."
            raise error
    wanted = {ITEM: column_of(table, "item", item)}
    wanted |= {key: column_of(table, "basket", name) for key, name in name_keys(basket).items()}
    if user is not None:
        wanted[USER] = column_of(table, "user", user)
    kind = wanted[ITEM].type()
    if kind.is_nested() or kind.is_json():
        raise ParameterError(
            "item",
            item,
            f"the column must have single values, but its type is {kind}",
            "Give every item a row of its own. If each row is a basket with a list of its items: "
            "Leave basket out.",
        )
    rows = table.select(**{name: engine.key(column) for name, column in wanted.items()})
    return rows.filter(rows[ITEM].notnull())


def refuse_missing(wrong: int) -> None:
    """Refuse rows without a basket or a user, by the number that `find_missing` gives.

    Raises:
        DataError: There is such a row.
    """
    if wrong > 1:
        raise DataError(f"A row has an item but no user. {NO_USER}")
    if wrong:
        raise DataError(
            "A row has an item but no basket. Fill the column in, or leave such rows out: set "
            "where to a condition such as 'receipt is not null'."
        )


def find_missing(rows: Any, keys: Sequence[str]) -> Any:
    """Return whether a row has no basket (1), or no user (2 or more); otherwise 0."""
    baskets = [key for key in keys if key != USER]
    wrong = reduce(or_, (rows[key].isnull() for key in baskets)).ifelse(1, 0)
    return wrong + rows[USER].isnull().ifelse(2, 0) if USER in keys else wrong


def _counts(engine: Engine, rows: Any, who: Sequence[str], keys: Sequence[str]) -> Any:
    """Return an expression with the items, their supports, and what is missing.

    Under WRONG: whether a row has no basket (1), or no user (2 or more).
    """
    wrong = find_missing(rows, keys).max().cast("int64")
    if len(who) == 1 and engine.sorts_to_count:
        return rows.group_by(ITEM).agg(
            **{SUPPORT: rows[who[0]].nunique().cast("int64"), WRONG: wrong}
        )
    pairs = rows.group_by([ITEM, *who]).agg(**{WRONG: wrong})
    people = pairs[who[0]].count().cast("int64")
    return pairs.group_by(ITEM).agg(**{SUPPORT: people, WRONG: pairs[WRONG].max().cast("int64")})


def _number(engine: Engine, counts: Any, stack: ExitStack) -> Any:
    """Number the items of the counts, from 0 on in any order, in the engine where it can."""
    if engine.has_windows:
        number = engine.number_rows(counts[ITEM])
        return engine.keep(counts.mutate(**{CODE: number.cast("int64")}), stack)
    # polars cannot number rows through Ibis; it gets its own columns back with one more, all of
    # them Arrow's.
    rows = ask(COUNTING, counts.to_pyarrow)
    numbered = rows.append_column(CODE, [np.arange(rows.num_rows)])
    name = new_name("counts")
    stack.callback(quietly, engine.drop, name)
    return ask(COUNTING, engine.backend.create_table, name, numbered)


def _fetch(
    engine: Engine, counts: Any, kind: Any
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int32]]:
    """Fetch labels and supports in the fixed order, and the place of each number in it.

    The numbers are those that the engine has given.
    """
    readable = {ITEM: engine.readable(counts[ITEM], kind)}
    wanted = counts.select(**readable, **{name: counts[name] for name in (SUPPORT, WRONG, CODE)})
    rows = ask(COUNTING, engine.rows, wanted)
    refuse_missing(max((wrong for _, _, wrong, _ in rows), default=0))
    labels, order = order_labels([engine.label(value, kind) for value, *_ in rows])
    supports, codes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
    supports[order] = [support for _, support, _, _ in rows]
    codes[[number for *_, number in rows]] = order
    return labels, supports, codes


def order_labels(values: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return what an engine names as items in their fixed order, and the place of each in it."""
    listed = [item_label(value) for value in values]
    labels = sort_labels(listed)
    place = {identify(label): number for number, label in enumerate(labels)}
    return labels, np.array([place[identify(label)] for label in listed], np.int64)


def _group(rows: Any, who: Sequence[str], keys: Sequence[str], digits: int) -> Found:
    """Return the different patterns and how many individuals have each, counted by the engine.

    The pattern of a basket is the numbers of its items in order, each of `digits` digits after a 1.
    That of a user is the different ones of all baskets in order, with BREAK between them. Equal
    patterns are equal text, and no others.
    """
    numbers = rows.select(*keys, CODE).distinct()
    baskets = _join(
        numbers.mutate(**{PATTERN: (numbers[CODE] + 10**digits).cast("string")}), keys, ""
    )
    if who != keys:
        baskets = _join(
            baskets.select(*who, PATTERN).distinct(), who, BREAK.decode() * (digits + 1)
        )
    tally = baskets.group_by(PATTERN).agg(**{NUMBER: baskets.count()})
    answer = ask(GROUPING, tally.to_pyarrow)
    return _concatenate([_parse(batch, digits) for batch in answer.to_batches(max_chunksize=BATCH)])


def _join(rows: Any, keys: Sequence[str], between: str) -> Any:
    """Join all texts of each key, in order, as one text."""
    each = rows.group_by(list(keys)).agg(**{PATTERN: rows[PATTERN].collect()})
    return each.mutate(**{PATTERN: each[PATTERN].sort().join(between)})


def _parse(batch: Any, digits: int) -> Found:
    """Return a batch of patterns and numbers of individuals as arrays, each pattern an owner."""
    import pyarrow

    texts = batch.column(PATTERN).cast(pyarrow.large_binary())
    _, ends, letters = texts.buffers()
    bounds = (
        np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
        if len(texts)
        else np.zeros(1, np.int64)
    )
    width = digits + 1
    words = np.frombuffer(letters or b"", np.uint8)[bounds[0] : bounds[-1]].reshape(-1, width)
    breaks = words[:, 0] == BREAK[0]
    owner = np.repeat(np.arange(len(texts)), np.diff(bounds) // width)
    row = owner + np.cumsum(breaks)
    number = ~breaks
    codes = np.zeros(np.count_nonzero(number), np.int64)
    for digit in words[
        number, 1:
    ].T:  # one after the other: all at once would take eight times the memory
        codes = 10 * codes + (digit - np.uint8(ord("0")))
    lengths = np.bincount(row[number])
    owners = np.zeros(len(lengths), np.int64)
    owners[row] = owner
    weights = batch.column(NUMBER).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate(([0], np.cumsum(lengths))), codes, owners, weights


def _concatenate(parts: Sequence[Found]) -> Found:
    """Several batches as one."""
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([none, *(np.diff(offsets) for offsets, *_ in parts)])
    before = np.cumsum([0, *(len(weights) for *_, weights in parts)])
    owners = [owners + first for (_, _, owners, _), first in zip(parts, before[:-1], strict=True)]
    return (
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate([none, *(codes for _, codes, _, _ in parts)]),
        np.concatenate([none, *owners]),
        np.concatenate([none, *(weights for *_, weights in parts)]),
    )


def _stream(engine: Engine, rows: Any, who: Sequence[str], keys: Sequence[str]) -> Found:
    """Group the baskets of an engine without arrays, as SQLite.

    It puts the rows in order, and they are counted as they pass.

    Individuals and baskets come as numbers: which are the same is for the engine to say.
    """
    individual, basket = (engine.rank_rows([rows[key] for key in some]) for some in (who, keys))
    places = rows.select(**{USER: individual, BASKET: basket, CODE: rows[CODE]}).distinct()
    tally = ask(GROUPING, lambda: _tally(engine.stream(places.order_by([USER, BASKET, CODE]))))
    baskets = [basket for baskets in tally for basket in baskets]
    lengths = np.array([len(basket) for basket in baskets], np.int64) // 8
    return (
        np.concatenate(([0], np.cumsum(lengths))),
        np.frombuffer(b"".join(baskets), np.int64),
        np.repeat(np.arange(len(tally)), np.array([len(baskets) for baskets in tally], np.int64)),
        np.array(list(tally.values()), np.int64),
    )


def _tally(rows: Iterable[tuple[int, int, int]]) -> Counter[tuple[bytes, ...]]:
    """Count the individuals that have each set of baskets.

    Rows are (individual, basket, code), in that order.
    """
    tally: Counter[tuple[bytes, ...]] = Counter()
    for _, theirs in groupby(rows, itemgetter(0)):
        baskets = {
            array("q", map(itemgetter(2), basket)).tobytes()
            for _, basket in groupby(theirs, itemgetter(1))
        }
        tally[tuple(sorted(baskets))] += 1
    return tally
