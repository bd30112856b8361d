"""Baskets in files of separated values: long, wide and one-hot. Memory holds numbers, not lines."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.codes import group_entries, group_rows, sort_codes
from privmax.itemsets.reading.flags import ALLOWED, WORDS, FlagCheck, read_flag, refuse_items
from privmax.sources.blocks import Block, list_rows
from privmax.sources.conditions import Condition
from privmax.sources.dialect import Dialect, dialect_of, read_delimiter
from privmax.sources.files import matching_rows, open_values
from privmax.sources.places import Files
from privmax.sources.separated import (
    Rows,
    open_blocks,
    open_lines,
    open_named,
    place_in,
    refuse_repetition,
)
from privmax.sources.users import NO_USER


def read_wide(data: Any, separator: str | None, header: bool) -> Baskets:
    """One basket a line: items as text, separated, blanks around them left out, quoted or not.

    Examples:
        >>> import io
        >>> read_wide(io.StringIO("bread,milk\\nmilk\\n"), None, False).supports().tolist()
        [1, 2]
    """
    mark = read_delimiter("separator", separator) or ","
    index: dict[str, int] = {}
    codes, ends = array("i"), array("q", [0])
    lines: FlagCheck | None = None
    with open_lines(_place(data), mark, dialect_of(data).encoding, strip=True) as rows:
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
    drops: bool = False,
) -> Baskets:
    """Return a line for each item of a basket, under a line of names; all values are text.

    A line whose item is empty adds nothing to its basket, which exists all the same. Several
    columns `basket` tell baskets apart together. Baskets of two users are two baskets, though they
    be called the same. With `drops` lines without a user are left out.

    Examples:
        >>> import io
        >>> file = io.StringIO("receipt,article\\n1,milk\\n2,bread\\n1,bread\\n")
        >>> read_long(file, None, basket=["receipt"], item="article", user=None).labels
        ['bread', 'milk']
    """
    with ExitStack() as stack:
        dialect = _dialect(data, separator)
        shown = dialect.header_is_public
        pieces: Iterator[tuple[int, Block | Rows]]
        if isinstance(data, Files):
            needed = [*basket, item, *([] if user is None else [user])]
            files = replace(data, dialect=dialect)
            names, pieces = stack.enter_context(open_values(files, needed, where))
        elif where is None:
            names, pieces = stack.enter_context(open_blocks(data, dialect))
        else:
            opened = stack.enter_context(open_named(data, dialect))
            names = opened.names
            pieces = iter([(2, matching_rows(opened.rows, names, where, shown=shown))])
        place = place_in(names, "item", item, shown=shown)
        keys = _Keys(names, shown, basket=basket, user=() if user is None else (user,))
        owner = place_in(names, "user", user, shown=shown) if drops and user is not None else None
        index: dict[str, int] = {}
        items = array("i")
        for first, piece in pieces:
            if isinstance(piece, Block):
                values, *keyed = piece.columns([place, *keys.places])
                if not any("" in column for column in keyed):  # no row without basket or user
                    items.extend(
                        [index.setdefault(one, len(index)) if one else -1 for one in values]
                    )
                    keys.add_all(keyed)
                    continue
            for line, cells in _lines(first, piece):
                if owner is None or cells[owner]:
                    cell = cells[place]
                    items.append(index.setdefault(cell, len(index)) if cell else -1)
                    keys.add(line, cells)
    refuse_items(index)
    labels, codes = sort_codes(np.array(items, np.int32), list(index))
    return group_entries(
        keys.numbers("basket"), codes, labels, None if user is None else keys.numbers("user")
    )


def _lines(first: int, piece: Block | Rows) -> Rows:
    """Return the rows of a piece, one by one, each with its line."""
    if isinstance(piece, Block):
        return enumerate(list_rows(piece, range(piece.width)), first)
    return piece


def read_one_hot(
    data: Any,
    separator: str | None,
    *,
    basket: Sequence[str],
    user: str | None,
    drops: bool = False,
) -> Baskets:
    """Read a line for each basket, with 1 in the column of each item that the basket has.

    The first line has the names of the items.

    `flags.py` has what a cell may say. Columns `basket` and `user` are no items;
    lines that agree in all of the former are one basket, and without them every line is one.

    Examples:
        >>> import io
        >>> file = io.StringIO("bread,milk\\n1,0\\n1,1\\n")
        >>> read_one_hot(file, None, basket=(), user=None).supports().tolist()
        [2, 1]
    """
    with open_named(_place(data), _dialect(data, separator), strip=True) as opened:
        return _read_flags(data, opened.names, opened.rows, basket, user, drops)
    raise AssertionError  # no context swallows an error


def _read_flags(
    data: Any,
    first: Sequence[str],
    rows: Rows,
    basket: Sequence[str],
    user: str | None,
    drops: bool,
) -> Baskets:
    """Return the lines of a one-hot file under its line of names."""
    names = [name.strip() for name in first]
    refuse_repetition(names)
    shown = dialect_of(data).header_is_public
    keys = _Keys(names, shown, basket=basket, user=() if user is None else (user,))
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
    lines, items = array("q"), array("i")
    count = 0
    every = rows
    if drops and user is not None:
        owner = place_in(names, "user", user, shown=shown)
        every = ((line, cells) for line, cells in every if cells[owner].strip())
    for line, spaced in every:
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
                items.append(code)
        count += 1
    baskets = keys.numbers("basket") if basket else np.arange(count)
    owners = None if user is None else keys.numbers("user")
    return group_rows(np.array(lines, np.int64), np.array(items, np.int32), labels, baskets, owners)


def _place(data: Any) -> Any:
    """Return the one file that is read, or a stream."""
    return data.paths[0] if isinstance(data, Files) else data


def _dialect(data: Any, separator: str | None) -> Dialect:
    """Return what is declared of the data, with the separator that is given."""
    return replace(dialect_of(data), delimiter=read_delimiter("separator", separator))


class _Keys:
    """Numbers for the baskets and the users of lines, by the text in their columns."""

    def __init__(self, names: Sequence[str], shown: bool, **columns: Sequence[str]) -> None:
        self._places = {
            option: [place_in(names, option, name, shown=shown) for name in chosen]
            for option, chosen in columns.items()
            if chosen
        }
        self._index: dict[str, dict[tuple[str, ...], int]] = {option: {} for option in self._places}
        self._numbers = {option: array("q") for option in self._places}

    def add(self, line: int | str, cells: Sequence[str]) -> None:
        for option, places in self._places.items():
            key = tuple([cells[place] for place in places])
            if not all(key):
                remedy = f" {NO_USER}" if option == "user" else ""
                raise DataError(f"Line {line} has no {option}.{remedy}")
            index = self._index[option]
            self._numbers[option].append(index.setdefault(key, len(index)))

    @property
    def places(self) -> list[int]:
        """The places of all these columns."""
        return list(chain.from_iterable(self._places.values()))

    def add_all(self, columns: Sequence[Sequence[str]]) -> None:
        """Add lines by their columns, in the order of `places`, none of whose cells is empty."""
        following = iter(columns)
        for option, places in self._places.items():
            own, index = islice(following, len(places)), self._index[option]
            numbers = [index.setdefault(key, len(index)) for key in zip(*own, strict=True)]
            self._numbers[option].extend(numbers)

    def numbers(self, option: str) -> NDArray[np.int64]:
        """Return the numbers of the lines, from 0 on."""
        return np.array(self._numbers[option], np.int64)
