"""Baskets in a column of lists, one per row: frames, tables of engines, arrays in JSON Lines.

That the column has lists is declared: `item` is named and `basket` is not. No value decides it.
A row without a list, or with an empty one, is an empty basket.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ConditionError, DataError, ParameterError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.codes import code_items, group_rows, sort_codes
from privmax.itemsets.reading.flags import refuse_items
from privmax.itemsets.reading.frames import number_keys, rows_with_users
from privmax.sources.conditions import Condition
from privmax.sources.dialect import dialect_of
from privmax.sources.files import open_records
from privmax.sources.places import Files
from privmax.sources.separated import place_in
from privmax.sources.table import Table
from privmax.sources.users import NO_USER

SINGLE = "the column of items has single values, not lists"
"""The reason why a column of baskets is needed."""


def read_lists(table: Table, *, item: Any, user: Any = None, drops: bool = False) -> Baskets:
    """Return a row for each basket of a frame, with a list of its items.

    Examples:
        >>> import pyarrow
        >>> from privmax.sources.containers import table_of
        >>> table = table_of(pyarrow.table({"articles": [["milk", "tea"], None, ["tea"]]}))
        >>> rows = read_lists(table, item="articles")
        >>> rows.rows, rows.supports().tolist()
        (3, [1, 2])
    """
    table.column("item", item)  # which refuses it first
    table = rows_with_users(table, user) if drops else table
    users = None if user is None else number_keys(table, "user", [user])
    listed = table.column("item", item).read_lists()
    if listed is None:
        raise ParameterError.required(
            "basket", SINGLE, "Name the column of baskets; or a column of lists as item."
        )
    lengths, numbers, values = listed
    labels, codes = code_items(numbers, values)
    return _group(lengths, codes, labels, users)


def read_arrays(
    data: Files, *, item: str, user: str | None, where: Condition | None, drops: bool
) -> Baskets:
    """Return a line for each basket of JSON Lines, with an array of its items.

    All values are text.
    """
    refuse_lists(where, item)
    needed = [item, *([] if user is None else [user])]
    shown = dialect_of(data).header_is_public
    index: dict[str, int] = {}
    people: dict[str, int] = {}
    codes, lengths, users = array("i"), array("q"), array("q")
    with open_records(data, needed, where, lists=(item,)) as (names, rows):
        place = place_in(names, "item", item, shown=shown)
        owner = None if user is None else place_in(names, "user", user, shown=shown)
        for line, cells in rows:
            if owner is not None:
                who = cells[owner]
                if not who:
                    if drops:
                        continue
                    raise DataError(f"Line {line} has no user. {NO_USER}")
                users.append(people.setdefault(who, len(people)))
            items: Sequence[str] = cells[place]  # a list, by `lists`
            codes.extend([index.setdefault(one, len(index)) for one in items if one])
            lengths.append(sum(map(bool, items)))
    labels, numbers = sort_codes(np.array(codes, np.int32), list(index))
    owners = None if user is None else np.array(users, np.int64)
    return _group(np.array(lengths, np.int64), numbers, labels, owners)


def refuse_lists(where: Condition | None, item: str) -> None:
    """Refuse a condition on the column of lists."""
    if where is not None and item in where.columns():
        raise ConditionError(
            "where", where.given, "it uses the column of items, which has lists",
            "Choose rows by other columns.",
        )  # fmt: skip


def _group(
    lengths: NDArray[np.int64],
    codes: NDArray[np.int32],
    labels: Sequence[Any],
    users: NDArray[Any] | None,
) -> Baskets:
    refuse_items(labels)
    every = np.arange(len(lengths))
    return group_rows(np.repeat(every, lengths), codes, labels, every, users)
