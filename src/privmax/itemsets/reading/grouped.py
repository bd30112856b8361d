"""Baskets of every group, of tables with a row per item of a basket.

The engine decides in which groups each individual counts, as it does for single items, and leaves
out all other rows. What is left comes here as numbers, in one question for all groups, and each
group is mined by itself. A basket with rows in two groups has in each the items of that group.

Proof:      docs/proofs/groups.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.codes import group_entries
from privmax.itemsets.reading.flags import refuse_items
from privmax.itemsets.reading.tables import (
    BASKET,
    CODE,
    ITEM,
    USER,
    WRONG,
    find_missing,
    name_keys,
    order_labels,
    refuse_missing,
)
from privmax.itemsets.source import ItemsetSource
from privmax.mechanisms.contract import Outcome
from privmax.profile import Profile
from privmax.sources.asking import ask
from privmax.sources.grouped import GROUP, NUMBER, GroupedRows, Grouping
from privmax.sources.places import Files, find_files
from privmax.sources.reading import require_rows
from privmax.sources.roles import Columns, check_single, column_of, item_names
from privmax.sources.row_counts import ROWS, keep_complete, number_values
from privmax.sources.users import DROP

OWNER = "privmax_owner"
"""The column of numbers of individuals."""


class GroupedBaskets(GroupedRows):
    """The itemsets of each group of an Ibis table in long form, with a support each.

    Close it after use.

    Args:
        table: The rows.
        columns: Which of its columns name an item and an individual.
        baskets: Columns that tell baskets apart together. With users a basket is what one user has
            under its name; without them every basket is an individual.
        grouping: The groups.
        sizes: Of the itemsets.
        floor: Public; a support at or below it counts as 0.
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        stack: What to close after use, beside the rows.

    Raises:
        ParameterError: A column is not there, or a declared group does not fit its column.
        DataError: A row has an item and a group but no basket, or no user.
    """

    def __init__(
        self,
        table: Any,
        columns: Columns,
        baskets: Sequence[str],
        grouping: Grouping,
        *,
        sizes: range = range(2, 3),
        floor: int = 0,
        numbered: Mapping[str, list[Any]] | None = None,
        stack: ExitStack | None = None,
    ) -> None:
        with stack or ExitStack() as opened:
            [item] = item_names(table, columns)
            for name in baskets:
                check_single(table, "basket", name)
            user = [] if columns.user is None else [columns.user]
            super().__init__(table, grouping, [item, *baskets, *user], numbered, opened)
            self._sizes, self._floor = sizes, floor
            self._sources: dict[int, ItemsetSource] = {}
            keys = list(name_keys(baskets))
            who, both = ([USER], [USER, *keys]) if user else (keys, keys)
            self._read(self._rows(item, baskets, columns), who, both, item)
            self._stack = opened.pop_all()

    def profile(self, group: int) -> Profile:
        """Return how many itemsets of a group are at each support; none without rows."""
        return self._source(group).profile

    def list_unread(self) -> list[ItemsetSource]:
        """A source for each group that has rows: it is mined while it is drawn from."""
        return [self._source(group) for group in np.unique(self._groups).tolist()]

    def names(self, drawn: Sequence[tuple[int, Outcome]]) -> list[Any]:
        """The itemsets that were drawn, each with the number of its group."""
        return self._in_groups(drawn, ItemsetSource.names)

    def counts(self, drawn: Sequence[tuple[int, Outcome]]) -> list[int]:
        """The support of each itemset that was drawn, its part up to the floor included."""
        return self._in_groups(drawn, ItemsetSource.counts)

    def longest(self) -> int:
        """Return how many different items the largest basket has that counts in a group."""
        sizes = (self._baskets(group).longest() for group in np.unique(self._groups).tolist())
        return max(sizes, default=0)

    def _rows(self, item: str, baskets: Sequence[str], columns: Columns) -> Any:
        """The rows that count, with keys of the wanted columns under our names."""
        table, user = self._table, columns.user
        read = {ITEM: table[item]}
        read |= {key: column_of(table, "basket", one) for key, one in name_keys(baskets).items()}
        if user is not None:
            read[USER] = column_of(table, "user", user)
        keys = {name: self._engine.key(column) for name, column in read.items()}
        needed = [ITEM, GROUP, *([USER] if columns.missing_users == DROP else [])]
        return keep_complete(table, {**keys, GROUP: self._group_key()}, needed)

    def _read(self, rows: Any, who: Sequence[str], keys: Sequence[str], item: str) -> None:
        """Read what is left of all groups where every individual counts in few, as numbers."""
        each = rows.group_by([GROUP, *keys, ITEM]).agg(**{ROWS: rows.count().cast("int64")})
        each = self._keep(each)
        self._group_table = self._number_groups(each)
        wrong = each.select(**{WRONG: find_missing(each, keys)})
        [(missing,)] = self._ask(wrong.aggregate(wrong=wrong[WRONG].max()))
        refuse_missing(int(missing or 0))
        counted = self._keep(self._restrict(each, who))
        items = number_values(self._engine, counted, [ITEM], CODE, self._stack)
        self._labels, codes = self._read_labels(items, item)
        both = counted.join(items, ITEM).select(*counted.columns, CODE)
        owner, basket = (
            self._engine.rank_rows([both[name] for name in some]) for some in (who, keys)
        )
        numbers = both.select(
            **{NUMBER: both[NUMBER], OWNER: owner, BASKET: basket, CODE: both[CODE]}
        )
        groups, *others, numbered = ask("the counting", self._engine.numbers, numbers)
        order = np.argsort(groups, kind="stable")
        self._groups, self._codes = groups[order], codes[numbered[order]]
        self._owners, self._names = (one[order] for one in others)
        self._owned = list(who) != list(keys)

    def _read_labels(self, items: Any, item: str) -> tuple[list[Any], Any]:
        """The labels of all items in their fixed order, and the place of each number in it."""
        naming = self._name(item)
        readable = {ITEM: self._engine.readable(items[ITEM], naming.kind)}
        rows = self._ask(items.select(CODE, **readable))
        labels, places = order_labels([naming.label(value) for _, value in rows])
        refuse_items(labels)
        codes = np.zeros(len(rows), np.int64)
        codes[[int(number) for number, _ in rows]] = places
        return labels, codes

    def _source(self, group: int) -> ItemsetSource:
        """The itemsets of a group; what was mined of it is kept."""
        if group not in self._sources:
            rows = self._baskets(group)
            self._sources[group] = ItemsetSource(
                rows, rows.labels, self._sizes, closed=False, floor=self._floor
            )
        return self._sources[group]

    def _baskets(self, group: int) -> Baskets:
        """The baskets of a group."""
        part = slice(*np.searchsorted(self._groups, [group, group + 1]).tolist())
        codes, places = np.unique(self._codes[part], return_inverse=True)
        numbers = [
            np.unique(one[part], return_inverse=True)[1] for one in (self._names, self._owners)
        ]
        labels = [self._labels[code] for code in codes.tolist()]
        owners = numbers[1] if self._owned else None
        return group_entries(numbers[0], places.astype(np.int32), labels, owners)

    def _in_groups(self, drawn: Sequence[tuple[int, Outcome]], answer: Any) -> list[Any]:
        """Return the answers of each group's source about its outcomes, in the order of `drawn`."""
        groups = dict[int, list[Outcome]]()
        for group, outcome in drawn:
            groups.setdefault(group, []).append(outcome)
        answers = {group: iter(answer(self._source(group), one)) for group, one in groups.items()}
        return [next(answers[group]) for group, _ in drawn]


def open_groups(
    data: object,
    columns: Columns,
    baskets: Sequence[str],
    grouping: Grouping,
    *,
    is_long: bool = False,
    **options: Any,
) -> GroupedBaskets:
    """Open the baskets of every group of `data`. Close it after use.

    Args:
        data: A frame, a table, or a file with one row per item of a basket.
        columns: Which columns name an item and an individual, and which rows count.
        baskets: Columns that tell baskets apart together.
        grouping: The groups.
        is_long: Whether a file whose ending says nothing is one of separated values.
        **options: `sizes` and `floor`, as `GroupedBaskets` takes them.

    Raises:
        ParameterError: A column is not there, or a declared group does not fit its column.
        DataError: The data cannot be used.
    """
    if isinstance(data, str) and data != "-":
        data = find_files(data)
    if is_long and isinstance(data, Files) and data.kind == "other":
        data = replace(data, kind="csv")
    with ExitStack() as stack:
        what = "groups need a table with a row per item of a basket and a column of groups"
        table, numbered = require_rows(
            data, columns, what, stack, by=grouping.by, baskets=tuple(baskets)
        )
        return GroupedBaskets(
            table, columns, baskets, grouping, numbered=numbered, stack=stack, **options
        )
