"""Baskets that stay in an engine, of tables with a row per item.

They are in Parquet files, DuckDB, PostgreSQL, Spark, or any Ibis table.

Two passes. The first counts the rows of each item, which no fewer are than individuals who have it:
to count those takes ten times as long. The second keeps the items with enough rows, writes every
basket as the set of its items, and counts the individuals who have the same baskets so written.
Only labels, counts and different baskets come here: memory grows with those, and not with the rows
of the table.

A set of few items is written as a whole number with a bit for each. Where more items have enough
rows, the engine first counts the individuals who have each, and leaves out the items of too few;
then a set is the text of their numbers.

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
from operator import add, itemgetter, or_
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
from privmax.sources.asking import ask, quietly
from privmax.sources.conditions import Condition
from privmax.sources.engines import engine_of, is_read_once
from privmax.sources.engines.base import Engine, new_name
from privmax.sources.files import is_stream
from privmax.sources.places import PARQUET, Files, find_files, is_pattern
from privmax.sources.reading import as_table, keep_rows, open_rows
from privmax.sources.roles import column_of
from privmax.sources.tables import CHANGED
from privmax.sources.users import NO_USER

ITEM, BASKET, USER = "privmax_item", "privmax_basket", "privmax_user"
WRONG, CODE = "privmax_wrong", "privmax_code"
PATTERN, BITS, NUMBER, LINES = "privmax_pattern", "privmax_bits", "privmax_number", "privmax_lines"
"""Columns of what is asked for. What the data calls its columns never meets these names."""

COUNTING, GROUPING, SIZING = "counting the items", "grouping the baskets", "measuring the baskets"
"""The questions to an engine, for errors to name."""

BATCH = 1 << 16
"""Rows of an answer that are turned into numbers at once."""

MOST_BITS = 62
"""A set of items of so many is a whole number of 64 bits, with two to spare: one for the sign, and
one that makes all of them equally long as text.
"""

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
    needed = [name for name in (*_names(basket), item, user, *looked) if name is not None]
    if not basket or item is None:
        needed = []  # all: the error about a missing one lists them
    with ExitStack() as stack:
        table = open_rows(data, needed, [], False, stack)
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
"""The types in lists of a table: Arrow has exact types for them."""


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
            self._counts = _number(self._engine, _counts(self._rows, self._keys), stack)
            self.labels: Sequence[Any]
            self.labels, self._bounds, self._codes = _fetch(
                self._engine, self._counts, table[item].type()
            )
            self._least = int(self._bounds.max(initial=0)) + 1
            self._read_baskets = _empty(self.labels)
            self._stack = stack.pop_all()

    def __repr__(self) -> str:
        return "TableRows(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._stack.close()

    @property
    def items(self) -> int:
        """The number of codes."""
        return len(self.labels)

    def bounds(self) -> NDArray[np.int64]:
        """Return a number for each item, by code, that its support does not exceed: its rows."""
        return self._bounds

    def survivors(self, least: int) -> Baskets:
        """Baskets that give the support of every itemset whose support is `least` or more.

        Each owner is a class of individuals with the same baskets. Items that fewer have may be
        left out of them, and who has no other is not among the individuals. What was read for a
        smaller `least` is complete, and given again.
        """
        least = max(least, 1)
        if least < self._least and bool((self._bounds >= least).any()):
            self._read_baskets, self._least = self._read(least)
        return self._read_baskets

    def count_holders(self, itemsets: Sequence[Sequence[int]]) -> list[int]:
        """Count holders as `Baskets.count_holders` does.

        Rows of the items asked for, and of no rarer ones, are read.
        """
        codes = sorted({code for one in itemsets for code in one})
        least = max(1, int(self._bounds[codes].min(initial=1 << 62)))
        numbers = self.survivors(least)
        # An item with more rows than individuals may have been left out. Ends: at 1 none is.
        while self._least > 1 and not (numbers.supports()[codes] >= self._least).all():
            numbers = self.survivors(self._least // 2)
        return [
            number if len(one) else self._holders()
            for one, number in zip(itemsets, numbers.count_holders(itemsets), strict=True)
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
        other._bounds = np.zeros(len(recoded.labels), np.int64)
        other._bounds[recoded.codes] = self._bounds
        other._least = int(self._bounds.max(initial=0)) + 1
        other._read_baskets = _empty(recoded.labels)
        return other

    def _read(self, least: int) -> tuple[Baskets, int]:
        """Read the baskets of the items of support `least` or more, as the engine has them now.

        Returns them, and from which support on they are complete.
        """
        chosen = np.flatnonzero(self._bounds[self._codes] >= least)
        complete = int(self._bounds[self._bounds < least].max(initial=0)) + 1
        if len(chosen) <= MOST_BITS:
            try:
                baskets = self._baskets(self._read_bits(chosen, least))
            except UnsupportedError:
                pass
            else:
                if (baskets.supports() > self._bounds).any():
                    raise EngineError(CHANGED)
                return baskets, complete
        with ExitStack() as stack:
            kept, supports = self._keep_frequent(least, stack)
            baskets = self._baskets(self._read_texts(kept))
            if not np.array_equal(baskets.supports(), supports):
                raise EngineError(CHANGED)
            return baskets, least if np.count_nonzero(supports) < len(chosen) else complete
        raise AssertionError  # no context swallows an error

    def _baskets(self, found: Found) -> Baskets:
        """Return what came from the engine, under codes of ours."""
        lengths, codes, owners, weights = found
        owned = None if self._who == self._keys else owners
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return Baskets(offsets, self._codes[codes], self.labels, owned, weights)

    def _read_bits(self, chosen: NDArray[np.int64], least: int) -> Found:
        """Read the baskets of few items, each a number with a bit for each of its items."""
        frequent = self._counts.filter(self._counts[LINES] >= least)
        bounds = self._bounds[self._codes[chosen]]
        each = list(zip(chosen.tolist(), bounds.tolist(), strict=True))
        is_item = [(frequent[CODE] == code) & (frequent[LINES] == bound) for code, bound in each]
        bits = reduce(add, (one.ifelse(1 << n, 0) for n, one in enumerate(is_item)))
        marks = reduce(add, (one.ifelse(n, 0) for n, one in enumerate(is_item, 1)))
        marked = frequent.select(
            **{ITEM: frequent[ITEM], BITS: bits.cast("int64"), LINES: marks.cast("int64")}
        )
        both = self._rows.join(marked.filter(marked[BITS] > 0), ITEM)
        sets = both.group_by(self._keys).agg(
            **{BITS: both[BITS].bit_or(), LINES: both[LINES].sum()}
        )
        if self._who == self._keys:
            tally = sets.group_by(BITS).agg(**{NUMBER: sets.count(), LINES: sets[LINES].sum()})
            numbers, weights, lines = ask(GROUPING, self._engine.numbers, tally)
            owners = np.arange(len(numbers))
        else:
            sets = sets.group_by([*self._who, BITS]).agg(**{LINES: sets[LINES].sum()})
            zero = 1 << MOST_BITS
            users = _join(_write(sets, BITS, zero), self._who, BREAK.decode() * len(str(zero)))
            (_, numbers, owners, weights), lines = _read_patterns(users, zero)
        if lines.sum() != (np.arange(1, len(chosen) + 1) * bounds).sum():
            raise EngineError(CHANGED)  # a row came, went, or is one of another item
        lengths, places = _split_bits(numbers)
        return lengths, chosen[places], owners, weights

    def _keep_frequent(self, least: int, stack: ExitStack) -> tuple[Any, NDArray[np.int64]]:
        """Keep which items are in which baskets, of the items that so many individuals have.

        Returns the table, and the supports of these items, by code; 0 for all others.
        """
        # Numbers are below that of the items, unless they are counted again and others have come.
        frequent = self._counts.filter(
            self._counts[LINES] >= least, self._counts[CODE] < len(self._codes)
        )
        both = self._rows.join(frequent.select(ITEM, CODE), ITEM)
        pairs = both.group_by([*self._keys, CODE]).agg(**{LINES: both.count()})
        pairs = self._engine.keep(pairs, stack)
        people = pairs
        if self._who != self._keys:
            people = pairs.group_by([*self._who, CODE]).agg(**{LINES: pairs[LINES].sum()})
        each = people.group_by(CODE).agg(**{NUMBER: people.count(), LINES: people[LINES].sum()})
        counted = ask(COUNTING, self._engine.rows, each)
        supports, found = np.zeros((2, len(self._bounds)), np.int64)
        for number, support, lines in counted:
            supports[self._codes[int(number)]] = int(support) if support >= least else 0
            found[self._codes[int(number)]] = int(lines)
        if not np.array_equal(found, np.where(self._bounds >= least, self._bounds, 0)):
            raise EngineError(CHANGED)
        if np.count_nonzero(supports) < len(counted):
            pairs = pairs.join(each.filter(each[NUMBER] >= least).select(CODE), CODE)
        return pairs, supports

    def _read_texts(self, pairs: Any) -> Found:
        """Read the baskets of many items, each the text of the numbers of its items."""
        try:
            return _group(pairs, self._who, self._keys, len(str(len(self._codes))))
        except UnsupportedError:
            return _stream(self._engine, pairs, self._who, self._keys)


Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Lengths, codes as the engine numbers them, owners, weights."""


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
    read = {ITEM: column_of(table, "item", item)}
    read |= {key: column_of(table, "basket", name) for key, name in name_keys(basket).items()}
    if user is not None:
        read[USER] = column_of(table, "user", user)
    kind = read[ITEM].type()
    if kind.is_nested() or kind.is_json():
        raise ParameterError(
            "item",
            item,
            f"the column must have single values, but its type is {kind}",
            "Give every item a row of its own. If each row is a basket with a list of its items: "
            "Leave basket out.",
        )
    rows = table.select(**{name: engine.key(column) for name, column in read.items()})
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


def _counts(rows: Any, keys: Sequence[str]) -> Any:
    """Return an expression with the items, the number of their rows, and what is missing.

    Under WRONG: whether a row has no basket (1), or no user (2 or more).
    """
    wrong = find_missing(rows, keys).max().cast("int64")
    return rows.group_by(ITEM).agg(**{LINES: rows.count(), WRONG: wrong})


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
    """Fetch labels and their numbers of rows in the fixed order, and each number's place in it.

    The numbers are those that the engine has given.
    """
    readable = {ITEM: engine.readable(counts[ITEM], kind)}
    shown = counts.select(**readable, **{name: counts[name] for name in (LINES, WRONG, CODE)})
    rows = ask(COUNTING, engine.rows, shown)
    refuse_missing(max((wrong for _, _, wrong, _ in rows), default=0))
    labels, order = order_labels([engine.label(value, kind) for value, *_ in rows])
    lines, codes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
    lines[order] = [number for _, number, _, _ in rows]
    codes[[number for *_, number in rows]] = order
    return labels, lines, codes


def order_labels(values: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return what an engine names as items in their fixed order, and the place of each in it."""
    listed = [item_label(value) for value in values]
    labels = sort_labels(listed)
    place = {identify(label): number for number, label in enumerate(labels)}
    return labels, np.array([place[identify(label)] for label in listed], np.int64)


def _group(pairs: Any, who: Sequence[str], keys: Sequence[str], digits: int) -> Found:
    """Return the different patterns and how many individuals have each, counted by the engine.

    The pattern of a basket is the numbers of its items in order, each of `digits` digits after a 1.
    That of a user is the different ones of all baskets in order, with BREAK between them. Equal
    patterns are equal text, and no others.

    Args:
        pairs: Of a basket and the number of an item, each once.
    """
    baskets = _join(_write(pairs, CODE, 10**digits), keys, "")
    if who != keys:
        same = baskets.group_by([*who, PATTERN]).agg(**{LINES: baskets[LINES].sum()})
        baskets = _join(same, who, BREAK.decode() * (digits + 1))
    found, _ = _read_patterns(baskets, 10**digits)
    return found


def _write(rows: Any, column: str, zero: int) -> Any:
    """Write the numbers of a column, each with `zero` added to it, as texts of one length."""
    return rows.mutate(**{PATTERN: (rows[column] + zero).cast("string")})


def _join(rows: Any, keys: Sequence[str], between: str) -> Any:
    """Join all texts of each key, in order, as one text."""
    each = rows.group_by(list(keys)).agg(
        **{PATTERN: rows[PATTERN].collect(), LINES: rows[LINES].sum()}
    )
    return each.mutate(**{PATTERN: each[PATTERN].sort().join(between)})


def _read_patterns(rows: Any, zero: int) -> tuple[Found, NDArray[np.int64]]:
    """Count the rows of each pattern, which is made of numbers, each with `zero` added to it.

    Returns the patterns, and how many rows of the data each was made of.
    """
    import pyarrow

    tally = rows.group_by(PATTERN).agg(**{NUMBER: rows.count(), LINES: rows[LINES].sum()})
    batches = ask(GROUPING, tally.to_pyarrow).to_batches(max_chunksize=BATCH)
    lines = [_read_numbers(batch.column(LINES).cast(pyarrow.int64())) for batch in batches]
    return _concatenate([_parse(batch, zero) for batch in batches]), np.concatenate(
        [np.zeros(0, np.int64), *lines]
    )


def _split_bits(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many bits of each number are set, and the places of all of them.

    Examples:
        >>> [found.tolist() for found in _split_bits(np.array([5, 2]))]
        [[2, 1], [0, 2, 1]]
    """
    lengths, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, len(numbers), BATCH):
        part = numbers[start : start + BATCH].astype("<i8").view(np.uint8).reshape(-1, 8)
        row, place = np.nonzero(np.unpackbits(part, axis=1, bitorder="little"))
        lengths.append(np.bincount(row, minlength=len(part)))
        places.append(place)
    return np.concatenate(lengths), np.concatenate(places)


def _parse(batch: Any, zero: int) -> Found:
    """Return a batch of patterns and numbers of individuals as arrays, each pattern an owner."""
    import pyarrow

    texts = batch.column(PATTERN).cast(pyarrow.large_binary())
    _, ends, letters = texts.buffers()
    bounds = (
        np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
        if len(texts)
        else np.zeros(1, np.int64)
    )
    width = len(str(zero))
    words = np.frombuffer(letters or b"", np.uint8)[bounds[0] : bounds[-1]].reshape(-1, width)
    breaks = words[:, 0] == BREAK[0]
    owner = np.repeat(np.arange(len(texts)), np.diff(bounds) // width)
    row = owner + np.cumsum(breaks)
    number = ~breaks
    codes = np.zeros(np.count_nonzero(number), np.int64)
    for digit in words[number].T:  # one by one: all at once would take eight times the memory
        codes = 10 * codes + (digit - np.uint8(ord("0")))
    lengths = np.bincount(row[number])
    owners = np.zeros(len(lengths), np.int64)
    owners[row] = owner
    weights = _read_numbers(batch.column(NUMBER).cast(pyarrow.int64()))
    return lengths, codes - zero, owners, weights


def _read_numbers(column: Any) -> NDArray[np.int64]:
    """Return an Arrow array of int64, without null, as NumPy's.

    Its own `to_numpy` loads pandas where that is installed, which takes longer than most tables.
    """
    _, numbers = column.buffers()
    return np.frombuffer(numbers or b"", np.int64, len(column), 8 * column.offset)


def _concatenate(parts: Sequence[Found]) -> Found:
    """Several batches as one."""
    none = np.zeros(0, np.int64)
    before = np.cumsum([0, *(len(weights) for *_, weights in parts)])
    owners = [owners + first for (_, _, owners, _), first in zip(parts, before[:-1], strict=True)]
    return (
        np.concatenate([none, *(lengths for lengths, *_ in parts)]),
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
        lengths,
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
