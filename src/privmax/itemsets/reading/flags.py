"""Zeros and ones that say whether a basket has an item, and data that looks like them.

Read as items, zeros and ones give the answer "0 + 1", which has a cost and reveals nothing. So data
is refused if it looks like a table with a column for each item, wherever it is given as something
else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from privmax.errors import DataError
from privmax.itemsets.baskets import Baskets

_FALSE = ("0", "0.0", "false", "f", "no", "n")
_TRUE = ("1", "1.0", "true", "t", "yes", "y")
WORDS = dict.fromkeys(_FALSE, False) | dict.fromkeys(_TRUE, True)
"""All words that a cell of a one-hot file may have, in capitals or not, in any file."""

ALLOWED = "0 or 1, true or false, t or f, yes or no, y or n"
"""The same for people."""

_REMEDY = (
    "If each item has a column of its own, set form to onehot. If 0 and 1 are items, rename them."
)


def read_flag(value: Any) -> bool | None:
    """Return what a cell says; None: something else.

    Examples:
        >>> read_flag("Yes"), read_flag(0), read_flag("bread")
        (True, False, None)
    """
    if isinstance(value, str):
        return WORDS.get(value.strip().lower())
    is_number = isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating))
    return bool(value) if is_number and value in (0, 1) else None


class FlagCheck:
    """Whether the lines below a first one look like those of a one-hot file.

    All have as many cells as the first, and two columns or more, or all, have only zeros and
    ones, or ones and empty cells.

    Args:
        width: How many cells the first line has.

    Examples:
        >>> lines = FlagCheck(2)
        >>> lines.add(["1", "0"])
        >>> lines.refuse()
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: Columns of the file have only zeros and ones ...
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._said: dict[int, set[bool]] = {place: set() for place in range(width)}

    def add(self, cells: Sequence[str]) -> None:
        if not self._said or not cells:
            return
        if len(cells) != self._width:
            self._said = {}
        for place in list(self._said):
            said = read_flag(cells[place]) if cells[place].strip() else False
            if said is None:
                del self._said[place]
            else:
                self._said[place].add(said)

    def refuse(self) -> None:
        """Refuse what looks like a one-hot file."""
        enough = len(self._said) > 1 or len(self._said) == self._width
        if enough and set().union(*self._said.values()) == {False, True}:
            raise DataError(
                f"Columns of the file have only zeros and ones below the first line. {_REMEDY}"
            )


def refuse_items(labels: Iterable[Any]) -> None:
    """Refuse a column of items, here all different ones, if they are zeros and ones.

    Such a column is that of one item.

    Examples:
        >>> refuse_items(["bread", 1])
        >>> refuse_items([0, 1])
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: The column of items has only zeros and ones. ...
    """
    said = set()
    for label in labels:
        said.add(read_flag(label))
        if None in said:
            return
    if said == {False, True}:
        raise DataError(f"The column of items has only zeros and ones. {_REMEDY}")


def refuse_rows(baskets: Baskets, remedy: str = _REMEDY) -> None:
    """Refuse rows that look like those of a table of zeros and ones.

    They are in the order of their cells.

    All have the same number of cells, two or more, and in some row a value is repeated, as no item
    of a basket is.

    Examples:
        >>> offsets = np.array([0, 3, 6])
        >>> refuse_rows(Baskets(offsets, np.array([0, 1, 1, 0, 0, 1], np.int32), [0, 1]))
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: The baskets have only zeros and ones, as many in each. ...
    """
    used = np.unique(baskets.codes).tolist()
    if len(used) != 2 or {read_flag(baskets.labels[code]) for code in used} != {False, True}:
        return
    widths = np.unique(np.diff(baskets.offsets))
    widths = widths[widths > 0]
    if len(widths) == 1 and widths[0] > 1 and _repeats(baskets, int(widths[0])):
        raise DataError(f"The baskets have only zeros and ones, as many in each. {remedy}")


def _repeats(baskets: Baskets, width: int) -> bool:
    rows = baskets.codes.reshape(-1, width)
    return width > 2 or bool((rows[:, 0] == rows[:, 1]).any())
