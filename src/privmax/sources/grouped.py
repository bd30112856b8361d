"""The rows of every group, and their items, counted once by the engine that has the rows.

Every individual counts in few groups: in those that most of its own rows name, and of two that as
many name in the one whose name comes first. So what others have never decides where an individual
counts. The engine restricts and counts all groups at once, and is then asked two questions, however
many groups there are: how many items of each group are at each score, and what the drawn ones are
called.

Proof:      docs/proofs/groups.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.encoding import encode
from privmax.errors import EngineError, ParameterError
from privmax.mechanisms.contract import Outcome
from privmax.numbers import whole
from privmax.profile import Profile
from privmax.sources.asking import ask
from privmax.sources.base import Source
from privmax.sources.engines import engine_of
from privmax.sources.roles import Columns, check_single, item_names
from privmax.sources.row_counts import (
    ROWS,
    SCORE,
    USER,
    WRONG,
    add_people,
    add_rows,
    count_rows,
    find_wrong,
    item_column,
    keep_counted,
    list_numbers,
    number_values,
    offer_windows,
)
from privmax.sources.tables import CHANGED, Naming, _steps, _unusable, is_rounded

Integers = NDArray[np.int64]

GROUP, NUMBER, PLACE, TOTAL = (
    "privmax_group", "privmax_group_number", "privmax_place", "privmax_total",
)  # fmt: skip
"""Columns of the counts: the key of a group, its number, a place in an order, and how many."""


@dataclass(frozen=True)
class Grouping:
    """The groups, and the number of them in which an individual counts. Public.

    Args:
        by: The column of groups.
        labels: All groups in their canonical form, sorted by name; None: those that the data has.
        per_user: In how many of its groups an individual counts.
    """

    by: str
    labels: tuple[Any, ...] | None = None
    per_user: int = 1


class GroupedRows:
    """Rows of an Ibis table that name a group, where every individual counts in few of them.

    Groups are numbered in the order of their names. Close it after use: the engine holds what is
    kept, and a transaction.

    Args:
        table: The rows.
        grouping: The groups.
        needed: Other columns that are read.
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        stack: What to close after use.

    Raises:
        ParameterError: A column is not there, or a declared group does not fit its column.
    """

    def __init__(
        self,
        table: Any,
        grouping: Grouping,
        needed: Sequence[str],
        numbered: Mapping[str, list[Any]] | None,
        stack: ExitStack,
    ) -> None:
        check_single(table, "by", grouping.by)
        if set(needed) <= set(table.columns):  # otherwise the counting names what is missing
            table = offer_windows(table, [*needed, grouping.by], stack)
        self._table, self._engine, self._stack = table, engine_of(table), stack
        self._grouping, self._numbered = grouping, numbered or {}
        self._group_naming = self._name(grouping.by)
        self._group_table: Any = None
        self._people = np.zeros(0, np.int64)
        self._engine.begin(table, stack)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._stack.close()

    def encode(self, label: Any) -> Any:
        """A label that was named, as JSON for a ledger."""
        return encode(label)

    def count_chosen(self, most: int) -> Integers:
        """Count the individuals in each group, by its number; they count in `most` of them."""
        return self._people

    def group_names(self, groups: Sequence[int]) -> list[Any]:
        """Return the names of groups, by their numbers. No other becomes readable."""
        if not groups:
            return []
        numbers = self._list([NUMBER], [(one,) for one in groups])
        rows = _keep_matches(self._group_table, numbers, [NUMBER])
        readable = self._engine.readable(rows[GROUP], self._group_naming.kind)
        read = rows.select(NUMBER, **{f"{GROUP}_read": readable})
        names = {
            int(number): self._group_naming.label(value)
            for number, value in ask("the look-up", self._engine.rows, read)
        }
        if names.keys() != set(groups):
            raise EngineError(CHANGED)
        return [names[one] for one in groups]

    def _name(self, column: str) -> Naming:
        """Return the naming of items or groups by a column."""
        return Naming(self._engine, self._table[column].type(), self._numbered.get(column))

    def _group_key(self) -> Any:
        """The keys of the column of groups."""
        return self._engine.key(self._table[self._grouping.by])

    def _number_groups(self, each: Any) -> Any:
        """The groups that count, with their numbers."""
        labels = self._grouping.labels
        if labels is None:
            table = number_values(self._engine, each, [GROUP], NUMBER, self._stack)
            [(number,)] = self._ask(table.aggregate(number=table.count()))
            self._number = int(number)
            return table
        self._number = len(labels)
        import pyarrow

        table = None
        with suppress(ParameterError, pyarrow.ArrowException, OverflowError, TypeError, ValueError):
            keys = self._group_naming.keys(labels)
            schema = each.select(GROUP, **{NUMBER: self._whole(0)}).schema()
            if not is_rounded(keys, schema[GROUP]):
                columns = {GROUP: keys, NUMBER: range(self._number)}
                table = self._engine.table_of(columns, schema, self._stack)
        if table is None:
            raise self._misfit("a group does not fit", "Give groups of that type.")
        table = self._engine.keep_labels(table, self._stack)
        [(different,)] = self._ask(table.aggregate(number=table[GROUP].nunique()))
        if int(different) != self._number:  # a row would count in both
            raise self._misfit("two groups are the same value of", "Give each group once.")
        return table

    def _misfit(self, fault: str, remedy: str) -> ParameterError:
        kind = self._group_naming.kind
        allowed = f"{fault} the column of groups, which is {kind}"
        return ParameterError("groups", "<labels>", allowed, remedy)

    def _number_rows(self, each: Any) -> Any:
        """Rows of the groups that count, with numbers of groups in place of their keys."""
        others = [name for name in each.columns if name != GROUP]
        return each.join(self._group_table, GROUP).select(NUMBER, *others)

    def _restrict(self, each: Any, who: Sequence[str]) -> Any:
        """Return the rows of each individual in its own groups: those that most of its rows name.

        Args:
            each: Rows with ROWS, the number of rows that each stands for.
            who: The columns that tell individuals apart.
        """
        named = self._number_rows(each)
        own = named.group_by([*who, NUMBER]).agg(**{ROWS: named[ROWS].sum().cast("int64")})
        # Numbers of groups follow their names, so a tie is broken by name.
        order = [own[ROWS].desc(), own[NUMBER]]
        place = self._engine.number_rows(order, [own[name] for name in who])
        own = own.select(*who, NUMBER, **{PLACE: place})
        most = min(self._grouping.per_user, self._number)  # engines have no larger numbers
        own = own.filter(own[PLACE] < most).select(*who, NUMBER)
        own = self._keep(own)
        self._people = self._total(own, own.count())
        return _keep_matches(named, own, [*who, NUMBER])

    def _total(self, table: Any, number: Any) -> Integers:
        """A number for each group, by its number; 0 where there are no rows."""
        totals = np.zeros(self._number, np.int64)
        rows = table.group_by(NUMBER).agg(**{TOTAL: number.cast("int64")})
        for group, total in self._ask(rows):
            totals[int(group)] = int(total)
        return totals

    def _list(self, names: Sequence[str], rows: Sequence[Sequence[int]]) -> Any:
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        return list_numbers(self._engine, columns, self._stack)

    def _ask(self, table: Any) -> list[tuple[Any, ...]]:
        return ask("the counting", self._engine.rows, table)

    def _keep(self, table: Any) -> Any:
        return self._engine.keep(table, self._stack)

    def _whole(self, number: int) -> Any:
        return self._engine.literal(number, "int64")


class GroupedSource(GroupedRows):
    """The items of each group of an Ibis table, with a score each.

    Close it after use: the engine holds the counts, and a transaction.

    Args:
        table: The rows.
        columns: What its columns have; they have no ready scores.
        grouping: The groups.
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        stack: What to close after use, beside the counts.

    Raises:
        ParameterError: A column is not there, or a declared group does not fit its column.
        DataError: A row has an item and a group but no user, or a weight that is none.
    """

    def __init__(
        self,
        table: Any,
        columns: Columns,
        grouping: Grouping,
        *,
        numbered: Mapping[str, list[Any]] | None = None,
        stack: ExitStack | None = None,
    ) -> None:
        with stack or ExitStack() as opened:
            names = item_names(table, columns)
            others = [name for name in (columns.user, columns.weight) if name is not None]
            super().__init__(table, grouping, [*names, *others], numbered, opened)
            self._items = [item_column(place) for place in range(len(names))]
            self._naming = [self._name(name) for name in names]
            bound = None if columns.weight is None else columns.bound
            self._sensitivity = _steps(None, bound, None)
            key = {GROUP: self._group_key()}
            rows = keep_counted(self._engine, self._table, names, columns, **key)
            self._read(self._count(rows, columns))
            self._stack = opened.pop_all()

    def profile(self, group: int) -> Profile:
        """Return the number of items of a group at each score. A group without rows has none."""
        start, end = np.searchsorted(self._groups, [group, group + 1])
        levels = zip(self._scores[start:end].tolist(), self._numbers[start:end].tolist(),
                     strict=True)  # fmt: skip
        return Profile(levels, sensitivity=self._sensitivity)

    def list_unread(self) -> list[Source]:
        """Sources of groups that are read while they are drawn from: all are counted."""
        return []

    def counts(self, drawn: Sequence[tuple[int, Outcome]]) -> list[int]:
        """The score of each item that was drawn."""
        return [outcome.score or 0 for _, outcome in drawn]

    def names(self, drawn: Sequence[tuple[int, Outcome]]) -> list[Any]:
        """The items that were drawn, each with the number of its group: one question for all."""
        if not drawn:
            return []
        places = [(group, one.score or 0, one.index) for group, one in drawn]
        levels = list(dict.fromkeys((group, score) for group, score, _ in places))
        level, spot = [NUMBER, SCORE], [NUMBER, SCORE, PLACE]
        block = _keep_matches(self._counts, self._list(level, levels), level)
        # Rows of one level are numbered in the order of their keys, as in a table of one group.
        level_of = [block[NUMBER], block[SCORE]]
        place = self._engine.number_rows([block[name] for name in self._items], level_of)
        placed = block.select(NUMBER, SCORE, *self._items, **{PLACE: place})
        spots = self._list(spot, list(dict.fromkeys(places)))
        rows = _keep_matches(placed, spots, spot)
        shown = {
            f"{item}_read": self._engine.readable(rows[item], naming.kind)
            for item, naming in zip(self._items, self._naming, strict=True)
        }
        read = rows.select(NUMBER, SCORE, PLACE, **shown)
        names = {
            (int(group), int(score), int(at)): self._label(row)
            for group, score, at, *row in ask("the look-up", self._engine.rows, read)
        }
        if names.keys() != set(places):
            raise EngineError(CHANGED)
        return [names[one] for one in places]

    def _count(self, rows: Any, columns: Columns) -> Any:
        """The scores of all items of all groups, where every individual counts in few."""
        keys = [GROUP, *self._items]
        if columns.user is None:  # a row names one group, so there is nothing to restrict
            each = self._keep(count_rows(rows, keys))
        elif columns.weight is None:
            each = rows.group_by([*keys, USER]).agg(**{ROWS: rows.count().cast("int64")})
            each = self._keep(each.mutate(**{SCORE: self._whole(1), WRONG: self._whole(0)}))
        else:
            each = self._keep(add_rows(rows, keys, whole("bound", columns.bound)))
        self._group_table = self._number_groups(each)
        if columns.user is None:
            counted = self._number_rows(each)
            self._people = self._total(counted, counted[SCORE].sum())
        else:
            self._check(each, columns)
            counted = self._restrict(each, [USER])
        return self._keep(_add_up(counted, [NUMBER, *self._items], columns.user is not None))

    def _check(self, each: Any, columns: Columns) -> None:
        """Refuse rows without a user, and weights that are none."""
        [(wrong,)] = self._ask(each.aggregate(wrong=find_wrong(each).max()))
        if wrong:
            raise _unusable(columns, wrong)

    def _read(self, counts: Any) -> None:
        """Read how many items of each group are at each score: one question for all groups."""
        self._counts = counts
        levels = counts.group_by([NUMBER, SCORE]).agg(**{TOTAL: counts.count().cast("int64")})
        groups, scores, numbers = ask("the histogram", self._engine.numbers, levels)
        order = np.lexsort((-scores, groups))
        self._groups, self._scores, self._numbers = groups[order], scores[order], numbers[order]

    def _label(self, row: Sequence[Any]) -> Any:
        values = tuple(naming.label(value) for naming, value in zip(self._naming, row, strict=True))
        return values[0] if len(values) == 1 else values


def _add_up(counted: Any, items: Sequence[str], has_users: bool) -> Any:
    """The score of each item of each group."""
    if has_users:
        return add_people(counted, items).drop(WRONG)
    return counted.select(*items, SCORE)


def _keep_matches(table: Any, others: Any, columns: Sequence[str]) -> Any:
    """The rows of a table that agree with a row of another in some columns.

    What an engine keeps may have columns of its own beside ours.
    """
    return table.join(others, list(columns)).select(*table.columns)
