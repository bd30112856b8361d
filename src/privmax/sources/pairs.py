"""Pairs of an individual and a key it has, each once, in the engine that has the rows.

The engine numbers the items and keeps the pairs. It is then asked for totals by number: how many
individuals have an item, or what they give it when each divides what it has among some of its
items. What an individual gives follows from its own items, from a hash of each of its pairs, and
from public numbers by item, so one individual more changes nothing that another one gives. Names
leave the engine only for the numbers that are asked for, once they are released.

Proof of what rounds promise:  docs/proofs/keys-rounds.md
Proof of what keys promise:    docs/proofs/keys.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, EngineError
from privmax.labels import identify
from privmax.sources.asking import ask
from privmax.sources.engines import engine_of
from privmax.sources.roles import Columns, column_of, item_names
from privmax.sources.row_counts import (
    USER,
    item_column,
    keep_complete,
    list_numbers,
    number_values,
    offer_windows,
)
from privmax.sources.tables import CHANGED, Naming
from privmax.sources.users import DROP, NO_USER

Integers = NDArray[np.int64]

ONE = 1 << 16
"""The number of steps in a weight of 1."""

HALF = 46_340
"""The most that an individual gives each of two answers, in steps: the squares add up to 1."""

ROOM = 1 - 2.0**-20
"""The part of a weight that floats leave, so that all squares certainly add up to 1 at most."""

KEY, COIN, TURN, PLACE = "privmax_key", "privmax_coin", "privmax_turn", "privmax_place"
DEGREE, SIZE, LOW = "privmax_degree", "privmax_size", "privmax_low"
VALUE, SQUARE, TOTAL = "privmax_value", "privmax_square", "privmax_total"
NUMBER, WEIGHT = "privmax_number", "privmax_weight"
"""Columns of the pairs and of what is made of them."""


class Pairs:
    """The pairs of an Ibis table.

    Close it after use: the engine holds them, and a transaction.

    Args:
        table: The rows.
        columns: Which of its columns name items and individuals.
        salt: Public text that goes into the hash of each pair.
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        stack: What to close after use, beside the pairs.

    Raises:
        DataError: A row has an item but no user.
    """

    def __init__(
        self,
        table: Any,
        columns: Columns,
        *,
        salt: str = "",
        numbered: Mapping[str, list[Any]] | None = None,
        stack: ExitStack | None = None,
    ) -> None:
        with stack or ExitStack() as opened:
            names = item_names(table, columns)
            column_of(table, "user", columns.user)
            table = offer_windows(table, [*names, str(columns.user)], opened)
            engine = engine_of(table)
            self._engine, self._stack = engine, opened
            self._items = [item_column(place) for place in range(len(names))]
            labels = numbered or {}
            self._naming = [Naming(engine, table[name].type(), labels.get(name)) for name in names]
            engine.begin(table, opened)
            self._keys, pairs = self._number(table, names, columns, salt, labels)
            self.number = self._count_keys()
            self.everyone = PairBallots(self, pairs, np.arange(self.number))
            self._stack = opened.pop_all()

    def __repr__(self) -> str:
        return "Pairs(<private>)"

    def close(self) -> None:
        """Let the engine forget the pairs."""
        self._stack.close()

    def count(self, released: Integers, most: int) -> tuple[Integers, int]:
        """Count the individuals of the released keys, if each counts for `most` of them at most.

        Returns:
            The numbers in the order of the keys, and how many individuals have none of them.
        """
        holders = self.everyone.among(released)
        counts = holders.count_chosen(most)
        return counts[released], self.everyone.people - holders.people

    def name(self, released: Integers) -> list[Any]:
        """The labels of keys, in their order. No other becomes readable."""
        if not released.size:
            return []
        rows = self._keys.join(self.table({KEY: released}), KEY)
        shown = {
            f"{item}_read": self._engine.readable(rows[item], naming.kind)
            for item, naming in zip(self._items, self._naming, strict=True)
        }
        labels = {
            int(number): tuple(
                naming.label(value) for naming, value in zip(self._naming, row, strict=True)
            )
            for number, *row in self.ask(rows.select(rows[KEY], **shown))
        }
        if len(labels) != len(released):
            raise EngineError(CHANGED)
        several = len(self._items) > 1
        return [labels[number] if several else labels[number][0] for number in released.tolist()]

    def _number(
        self,
        table: Any,
        names: Sequence[str],
        columns: Columns,
        salt: str,
        labels: Mapping[str, list[Any]],
    ) -> tuple[Any, Any]:
        """Tables of the keys with their numbers, in the order of the keys, and of the pairs."""
        engine, stack = self._engine, self._stack
        passing = stack.enter_context(ExitStack())
        columns_of = dict(zip([*self._items, USER], [*names, str(columns.user)], strict=True))
        read = {own: engine.key(table[name]) for own, name in columns_of.items()}
        needed = [*self._items, USER] if columns.missing_users == DROP else self._items
        different = keep_complete(table, read, needed).distinct()
        pairs = engine.keep(different, passing)
        if pairs is not different:
            engine.end_reading()
        self._check_users(pairs)
        # Which of two keys has the smaller number must not depend on others: it breaks ties.
        keys = number_values(engine, pairs, self._items, KEY, stack)
        joined = pairs.join(keys, self._items)
        user = USER
        if not (engine.types_bind and pairs[USER].type().is_integer()):
            # Whole numbers are sorted and joined faster than what the data calls its individuals.
            users = number_values(engine, pairs, [USER], NUMBER, passing)
            joined = joined.join(users, USER)
            user = NUMBER
        hashed = []
        for own, name in columns_of.items():
            if name in labels:  # the number of a label depends on other rows: its hash does not
                hashes = self.table({own: range(len(labels[name])), f"{own}_hash":
                                      map(_hash_label, labels[name])})  # fmt: skip
                joined = joined.left_join(hashes, own).drop(f"{own}_right")
                hashed.append(f"{own}_hash")
            else:
                hashed.append(own)
        coin = engine.hash_values([joined[name] for name in hashed], salt)
        made = engine.keep(joined.select(KEY, **{USER: joined[user], COIN: coin}), stack)
        if engine.is_made(keys) and engine.is_made(made):
            passing.close()  # as large as the rows, and not asked again
        return keys, made

    def _check_users(self, pairs: Any) -> None:
        missing = pairs[USER].isnull().ifelse(1, 0).sum().fill_null(0)
        [(number,)] = self.ask(pairs.aggregate(missing=missing))
        if number:
            raise DataError(f"A row has an item but no user. {NO_USER}")

    def _count_keys(self) -> int:
        [(number,)] = self.ask(self._keys.aggregate(number=self._keys.count()))
        return int(number)

    def table(self, columns: Mapping[str, Any]) -> Any:
        """Whole numbers of ours, as a table of the engine."""
        return list_numbers(self._engine, columns, self._stack)

    def totals(self, table: Any) -> Integers:
        """Rows of a key and a total as an array by key; 0 where there is no row."""
        read = table.select(KEY, TOTAL)
        places, values = ask("the counting", self._engine.numbers, read)
        totals = np.zeros(self.number, np.int64)
        if places.size:
            if places.min() < 0 or places.max() >= self.number:
                raise EngineError(CHANGED)
            totals[places] = values
        return totals

    def ask(self, table: Any) -> list[tuple[Any, ...]]:
        return ask("the counting", self._engine.rows, table)

    def keep(self, table: Any, stack: ExitStack | None = None) -> Any:
        """Have the engine make a table once; without `stack` it stays until all is closed."""
        return self._engine.keep(table, self._stack if stack is None else stack)

    def number_rows(self, order: Sequence[Any], within: Sequence[Any]) -> Any:
        """The place of each row in an order among those that agree in some columns, from 0."""
        return self._engine.number_rows(order, within)

    def hash(self, column: Any, turn: int) -> Any:
        """Another hash for every turn."""
        return self._engine.hash_values([column], str(turn))


class PairBallots:
    """The pairs of some keys, and what individuals give to those.

    Args:
        pairs: Where they come from.
        table: Individuals, keys and hashes.
        keys: The keys, by number.
        source: A table that the engine keeps, with these pairs and perhaps those of other keys;
            None: `table` is one.
    """

    def __init__(self, pairs: Pairs, table: Any, keys: Integers, source: Any = None) -> None:
        self._pairs, self._table, self._keys = pairs, table, keys
        self._source = table if source is None else source

    def __repr__(self) -> str:
        return "PairBallots(<private>)"

    @cached_property
    def people(self) -> int:
        """The number of individuals who have any of the keys."""
        [(people,)] = self._pairs.ask(self._degrees.aggregate(people=self._degrees.count()))
        return int(people)

    def among(self, keys: Integers) -> PairBallots:
        """The pairs of fewer keys. The engine keeps those that are left the first time: later few
        are gone, and it is as fast to pass over them.
        """
        pairs = self._pairs
        left = self._source.join(pairs.table({KEY: keys}), KEY).select(USER, KEY, COIN)
        if self is pairs.everyone:
            return PairBallots(pairs, pairs.keep(left), keys)
        return PairBallots(pairs, left, keys, self._source)

    def tally(self, most: int) -> list[int]:
        """Count the individuals with 1, 2, … keys; the last number is for `most` keys or more."""
        sized = self._degrees.mutate(**{SIZE: _least(self._degrees[DEGREE], most)})
        rows = self._pairs.ask(sized.group_by(SIZE).agg(**{TOTAL: sized.count()}))
        tally = {int(size): int(number) for size, number in rows}
        return [tally.get(size, 0) for size in range(1, most + 1)]

    def count_chosen(self, most: int) -> Integers:
        """Count the individuals of each key if each counts for `most` of its keys, by hash."""
        each = self._table.join(self._degrees, USER)
        totals = np.zeros(self._pairs.number, np.int64)
        for part in self._choose(each, self._degrees, most, 0):
            totals += self._pairs.totals(part.group_by(KEY).agg(**{TOTAL: part.count()}))
        return totals

    def give(self, most: int, turn: int, values: Integers | None = None) -> Integers:
        """Return the totals that individuals give. The squares of one's add up to 1 at most.

        Args:
            most: To how many of its keys each gives: to those of the largest values, by hash.
            turn: Another number, another hash.
            values: Public, by key, from 1 to 2^18: each gives in proportion to them. None: it
                gives the same to all.

        Returns:
            The totals by key, in steps.
        """
        if values is not None:
            return self._give_valued(most, turn, values)
        totals, degrees = np.zeros(self._pairs.number, np.int64), self._degrees
        weight = _weigh(1.0, _least(degrees[DEGREE], most))  # once for each individual
        each = self._table.join(degrees.mutate(**{WEIGHT: weight}), USER)
        for part in self._choose(each, degrees, most, turn):
            totals += self._add_up(part, part[WEIGHT])
        return totals

    def _give_valued(self, most: int, turn: int, values: Integers) -> Integers:
        """The same in proportion to values."""
        pairs, totals = self._pairs, np.zeros(self._pairs.number, np.int64)
        valued = self._source.join(pairs.table({KEY: self._keys, VALUE: values[self._keys]}), KEY)
        sums = valued.group_by(USER).agg(**{DEGREE: valued.count(), SQUARE: _square(valued)})
        with ExitStack() as passing:
            sums = pairs.keep(sums, passing)
            few, *many = self._choose(valued.join(sums, USER), sums, most, turn, VALUE)
            totals += self._add_up(few, _weigh(few[VALUE].cast("float64"), few[SQUARE]))
            for part in many:
                own = pairs.keep(part.select(USER, KEY, VALUE), passing)
                each = own.join(own.group_by(USER).agg(**{SQUARE: _square(own)}), USER)
                totals += self._add_up(each, _weigh(each[VALUE].cast("float64"), each[SQUARE]))
        return totals

    def survey(self, low: NDArray[np.bool_]) -> tuple[int, int]:
        """Return the totals of two answers: one per individual, and the part of its low keys.

        Args:
            low: Public, by key.

        Returns:
            Both totals, in steps of 1/`HALF`.
        """
        pairs = self._pairs
        marked = self._source.join(pairs.table({KEY: self._keys, LOW: low[self._keys]}), KEY)
        each = marked.group_by(USER).agg(**{DEGREE: marked.count(), LOW: marked[LOW].sum()})
        share = (HALF * each[LOW].cast("float64") / each[DEGREE].cast("float64")).floor()
        total = share.cast("int64").sum().fill_null(0)
        [(people, part)] = pairs.ask(each.aggregate(people=each.count(), part=total))
        return HALF * int(people), int(part)

    @cached_property
    def _degrees(self) -> Any:
        """The number of keys of each individual."""
        return self._pairs.keep(self._table.group_by(USER).agg(**{DEGREE: self._table.count()}))

    def _choose(
        self, each: Any, degrees: Any, most: int, turn: int, value: str | None = None
    ) -> list[Any]:
        """At most `most` pairs of each individual: those of the largest value, then by hash.

        Args:
            each: The pairs, with the number of keys of their individuals.
            degrees: The numbers of keys.
            most: How many.
            turn: Of the hash.
            value: The column of values; None: by hash alone.

        Returns:
            All pairs of those who have no more, and what others choose, if there are others.
        """
        [(largest,)] = self._pairs.ask(degrees.aggregate(largest=degrees[DEGREE].max()))
        if largest is None or int(largest) <= most:
            return [each]
        few, many = each.filter(each[DEGREE] <= most), each.filter(each[DEGREE] > most)
        many = many.mutate(**{TURN: self._pairs.hash(many[COIN], turn)})
        order = [many[TURN], many[KEY]] if value is None else [
            many[value].desc(), many[TURN], many[KEY],
        ]  # fmt: skip
        place = self._pairs.number_rows(order, [many[USER]])
        many = many.mutate(**{PLACE: place})
        return [few, many.filter(many[PLACE] < most)]

    def _add_up(self, each: Any, weight: Any) -> Integers:
        """The totals of what pairs are given."""
        given = each.select(KEY, **{WEIGHT: weight})
        total = given[WEIGHT].sum().cast("int64")
        return self._pairs.totals(given.group_by(KEY).agg(**{TOTAL: total}))


def _weigh(value: Any, square: Any) -> Any:
    """Return the weight of a pair, in steps: its part of 1, if the squares of all parts add up to
    so much.

    Args:
        value: Of the pair.
        square: The sum of the squares of the values of the same individual.
    """
    norm = square.cast("float64").sqrt()
    return (value * (ONE * ROOM) / norm).floor().cast("int64")


def _square(valued: Any) -> Any:
    """The sum of the squares of values: below 2^53, so that it is exact in any order."""
    value = valued[VALUE].cast("float64")
    return (value * value).sum()


def _hash_label(label: Any) -> int:
    """A number that follows from a label alone."""
    digest = blake2b(repr(identify(label)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _least(column: Any, most: int) -> Any:
    return column.clip(upper=most).cast("int64")  # none is missing
