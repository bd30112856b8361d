"""Baskets in CSV files: long, wide and one-hot.

The rows are not read by `privmax.sources.files`, which reads files whose first line names the
columns of all others. Lines of a wide file have no names and any number of cells, a basket may come
from any stream of lines, of text or of bytes, and an error names the line, also where its bytes are
no text. For that lines are decoded one by one, which takes a tenth of the time to read a file.
Memory holds numbers, not lines.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.codes import group_entries, group_rows, sort_codes
from privmax.itemsets.reading.flags import ALLOWED, WORDS, FlagCheck, read_flag, refuse_items
from privmax.itemsets.reading.streams import Lines, open_stream, try_step
from privmax.sources.conditions import Condition
from privmax.sources.files import FIRST_LINE, Rows, matching_rows, open_records, separator_in
from privmax.sources.places import Files


def read_wide(data: Any, separator: str | None, header: bool) -> Baskets:
    """One basket a line: items as text, separated, blanks around them left out, quoted or not.

    Examples:
        >>> import io
        >>> read_wide(io.StringIO("bread,milk\\nmilk\\n"), None, False).supports().tolist()
        [1, 2]
    """
    rows = _rows(data, _separator(separator) or ",", strip=True)
    index: dict[str, int] = {}
    codes, ends = array("i"), array("q", [0])
    lines: FlagCheck | None = None
    for _, cells in rows:
        if lines is None:
            lines = FlagCheck(len(cells))
            if header:
                continue
        else:
            lines.add(cells)
        codes.extend(
            [index.setdefault(item, len(index)) for cell in cells if (item := cell.strip())]
        )
        ends.append(len(codes))
    if lines is not None:
        lines.refuse()
    labels, numbers = sort_codes(np.array(codes, np.int32), list(index))
    return Baskets(np.array(ends, np.int64), numbers, labels)


def read_long(
    data: Any,
    separator: str | None,
    *,
    basket: Sequence[str],
    item: str,
    user: str | None,
    where: Condition | None = None,
) -> Baskets:
    """A line for each item of a basket, under a line of names; all values are text.

    A line whose item is empty adds nothing to its basket, which exists all the same. Several
    columns `basket` tell baskets apart together. Baskets of two users are two baskets, though they
    be called the same.

    Examples:
        >>> import io
        >>> file = io.StringIO("receipt,article\\n1,milk\\n2,bread\\n1,bread\\n")
        >>> read_long(file, None, basket=["receipt"], item="article", user=None).labels
        ['bread', 'milk']
    """
    with ExitStack() as held:
        if isinstance(data, Files):
            wanted = [*basket, item, *([] if user is None else [user])]
            names, rows = held.enter_context(open_records(data, wanted, where))
            _check_names(names)
        else:
            rows = _rows(data, _separator(separator), strip=False)
            _, names = next(rows, (1, []))
            _check_names(names)
            rows = matching_rows(_skip_empty(rows, names), names, where)
        place = _place(names, "item", item)
        keys = _Keys(names, basket=basket, user=() if user is None else (user,))
        index: dict[str, int] = {}
        items = array("i")
        for line, cells in rows:
            cell = cells[place]
            items.append(index.setdefault(cell, len(index)) if cell else -1)
            keys.add(line, cells)
    refuse_items(index)
    labels, codes = sort_codes(np.array(items, np.int32), list(index))
    return group_entries(
        keys.numbers("basket"), codes, labels, None if user is None else keys.numbers("user")
    )


def read_one_hot(
    data: Any, separator: str | None, *, basket: Sequence[str], user: str | None
) -> Baskets:
    """A line for each basket under a line with the names of the items: in the column of each 1 if
    the basket holds it.

    `flags.py` has what a cell may say. Columns `basket` and `user` are no items;
    lines that agree in all of the former are one basket, and without them every line is one.

    Examples:
        >>> import io
        >>> file = io.StringIO("bread,milk\\n1,0\\n1,1\\n")
        >>> read_one_hot(file, None, basket=(), user=None).supports().tolist()
        [2, 1]
    """
    rows = _rows(data, _separator(separator), strip=True)
    _, first = next(rows, (1, []))
    names = [name.strip() for name in first]
    _check_names(names)
    keys = _Keys(names, basket=basket, user=() if user is None else (user,))
    places = [place for place, name in enumerate(names) if name not in (*basket, user)]
    if not all(names[place] for place in places):
        raise DataError(
            "A column of the file has no name, like the index of a frame: leave it out when "
            "writing the file."
        )
    if places and all(read_flag(names[place]) is not None for place in places):
        raise DataError(
            "Line 1 must name the items, but it has zeros and ones. Add a line with names."
        )
    labels, codes = sort_codes(np.arange(len(places)), [names[place] for place in places])
    coded = list(zip(places, codes.tolist(), strict=True))
    lines, held = array("q"), array("i")
    count = 0
    for line, spaced in _skip_empty(rows, names):
        cells = [cell.strip() for cell in spaced]
        keys.add(line, cells)
        for place, code in coded:
            said = WORDS.get(cells[place])
            said = read_flag(cells[place]) if said is None else said
            if said is None:
                wrong = (
                    f"something other than {ALLOWED}"
                    if cells[place]
                    else "nothing, where a 0 is needed,"
                )
                raise DataError(
                    f"Line {line} has {wrong} in cell {place + 1}. If that column is not an item "
                    "but the basket or the individual, name it as basket or user."
                )
            if said:
                lines.append(count)
                held.append(code)
        count += 1
    baskets = keys.numbers("basket") if basket else np.arange(count)
    owners = None if user is None else keys.numbers("user")
    return group_rows(np.array(lines, np.int64), np.array(held, np.int32), labels, baskets, owners)


def _rows(data: Any, separator: str | None, *, strip: bool) -> Rows:
    """The rows of a CSV file, each with the number of the line where it begins.

    Where no separator is given the first line decides, which holds names and is public.
    """
    with open_stream(data) as file:
        lines = Lines(file)
        separator = separator or separator_in(try_step(lines.first, lines) or "")
        # Within quotes blanks count, so those in front of quotes must go before.
        reader = csv.reader(
            lines, delimiter=separator, strict=True, skipinitialspace=strip and separator != " "
        )
        while True:
            begin = lines.number + 1
            cells = try_step(reader.__next__, lines)
            if cells is None:
                return
            yield begin, cells


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError("Two columns of the file have the same name. Rename one.")


def _skip_empty(rows: Rows, names: Sequence[str]) -> Rows:
    """The lines below the line of names that are not empty."""
    for line, cells in rows:
        if cells and len(cells) != len(names):
            raise DataError(f"Line {line} has more or fewer cells than the line of names.")
        if cells:
            yield line, cells


class _Keys:
    """Numbers for the baskets and the users of lines, by the text in their columns."""

    def __init__(self, names: Sequence[str], **columns: Sequence[str]) -> None:
        self._places = {
            option: [_place(names, option, name) for name in given]
            for option, given in columns.items()
            if given
        }
        self._index: dict[str, dict[tuple[str, ...], int]] = {option: {} for option in self._places}
        self._numbers = {option: array("q") for option in self._places}

    def add(self, line: int | str, cells: Sequence[str]) -> None:
        for option, places in self._places.items():
            key = tuple([cells[place] for place in places])
            if not all(key):
                raise DataError(f"Line {line} has no {option}.")
            index = self._index[option]
            self._numbers[option].append(index.setdefault(key, len(index)))

    def numbers(self, option: str) -> NDArray[np.int64]:
        """From 0 on, one for each line."""
        return np.array(self._numbers[option], np.int64)


def _separator(given: str | None) -> str | None:
    if given is not None and (len(given) != 1 or given in '"\r\n'):
        raise ParameterError(
            "separator",
            given,
            "it must be one character, and not a quote or a line break",
            "For example a semicolon.",
        )
    return given


def _place(names: Sequence[str], option: str, name: str) -> int:
    """Where a column stands. Which others there are is not said: in a file without a line of names
    they are data.
    """
    if name not in names:
        raise ParameterError(option, name, "the file has no such column", FIRST_LINE)
    return names.index(name)
