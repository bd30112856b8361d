"""Baskets in text files: FIMI, and CSV long, wide and one-hot.

An error gives the number of a line and a reason, never what the line holds. It is raised outside of
the `except` that noticed it, so that it does not carry the first one, which may quote the data.
"""

from __future__ import annotations

import csv
import gzip
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.itemsets.baskets import LARGEST_ITEM, Baskets
from privmax.itemsets.coding import grouped, in_order, rowwise
from privmax.itemsets.flags import ALLOWED, WORDS, Lines, flag, refuse_items, refuse_rows
from privmax.sources.files import CONVERT, START, foreign, known, separator_in

T = TypeVar("T")

_CHUNK = 1 << 20
"""Bytes that the NumPy parser takes at a time: its arrays are several times as large."""

_WORTH_LOADING_NUMBA = 1 << 20
"""Smaller files are parsed sooner than numba is loaded, unless it is already."""


def fimi(data: Any) -> Baskets:
    """One basket a line: whole numbers from 0 to 2^31 − 1, separated by blanks or tabs.

    A blank line is an empty basket. Lines may end in a newline or in a carriage return and a
    newline, the last one also in neither.
    """
    whole = _bytes(data)
    strange = known(whole[:START])
    if strange is not None:
        raise DataError(f"The file is not UTF-8 text. {strange}")
    text = np.frombuffer(whole, np.uint8, offset=3 if whole.startswith(b"\xef\xbb\xbf") else 0)
    kernels = _kernels(len(text))
    offsets, codes, largest = _parsed(text) if kernels is None else _compiled(text, kernels)
    if largest < 4 * len(codes) + 1000:
        found = Baskets(offsets, codes, range(largest + 1))
        if largest == 1:
            refuse_rows(found)
        return found
    labels, places = np.unique(codes, return_inverse=True)
    return Baskets(offsets, places.astype(np.int32), labels.tolist())


def wide(data: Any, separator: str | None, header: bool) -> Baskets:
    """One basket a line: items as text, separated, blanks around them left out, quoted or not."""
    rows = _rows(data, _separator(separator) or ",", strip=True)
    index: dict[str, int] = {}
    codes, ends = array("i"), array("q", [0])
    lines: Lines | None = None
    for _, cells in rows:
        if lines is None:
            lines = Lines(len(cells))
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
    labels, numbers = in_order(np.array(codes, np.int32), list(index))
    return Baskets(np.array(ends, np.int64), numbers, labels)


def long(
    data: Any, separator: str | None, *, basket: Sequence[str], item: str, user: str | None
) -> Baskets:
    """A line for each item of a basket, under a line of names; all values are text.

    A line whose item is empty adds nothing to its basket, which exists all the same. Several
    columns `basket` tell baskets apart together. Baskets of two users are two baskets, though they
    be called the same.
    """
    rows = _rows(data, _separator(separator), strip=False)
    _, names = next(rows, (1, []))
    _different(names)
    place = _place(names, "item", item)
    keys = _Keys(names, basket=basket, user=() if user is None else (user,))
    index: dict[str, int] = {}
    items = array("i")
    for line, cells in _below(rows, names):
        cell = cells[place]
        items.append(index.setdefault(cell, len(index)) if cell else -1)
        keys.add(line, cells)
    refuse_items(index)
    labels, codes = in_order(np.array(items, np.int32), list(index))
    return grouped(
        keys.numbers("basket"), codes, labels, None if user is None else keys.numbers("user")
    )


def one_hot(
    data: Any, separator: str | None, *, basket: Sequence[str], user: str | None
) -> Baskets:
    """A line for each basket under a line with the names of the items: in the column of each 1 if
    the basket holds it.

    What a cell may say is in `privmax.itemsets.flags`. Columns `basket` and `user` are no items;
    lines that agree in all of the former are one basket, and without them every line is one.
    """
    rows = _rows(data, _separator(separator), strip=True)
    _, first = next(rows, (1, []))
    names = [name.strip() for name in first]
    _different(names)
    keys = _Keys(names, basket=basket, user=() if user is None else (user,))
    places = [place for place, name in enumerate(names) if name not in (*basket, user)]
    if not all(names[place] for place in places):
        raise DataError(
            "A column of the file has no name, as the index of a frame has none: leave it out when "
            "the file is written "
            "(pandas: index=False)."
        )
    if places and all(flag(names[place]) is not None for place in places):
        raise DataError(
            "Line 1 must name the items, and it holds zeros and ones. Add a line of names."
        )
    labels, codes = in_order(np.arange(len(places)), [names[place] for place in places])
    coded = list(zip(places, codes.tolist(), strict=True))
    lines, held = array("q"), array("i")
    count = 0
    for line, spaced in _below(rows, names):
        cells = [cell.strip() for cell in spaced]
        keys.add(line, cells)
        for place, code in coded:
            said = WORDS.get(cells[place])
            said = flag(cells[place]) if said is None else said
            if said is None:
                wrong = (
                    f"something other than {ALLOWED}"
                    if cells[place]
                    else "nothing, where 0 must stand,"
                )
                raise DataError(
                    f"Line {line} has {wrong} in cell {place + 1}. If that is no item but names "
                    f"the basket or the "
                    "individual, give basket or user (--basket, --user)."
                )
            if said:
                lines.append(count)
                held.append(code)
        count += 1
    baskets = keys.numbers("basket") if basket else np.arange(count)
    owners = None if user is None else keys.numbers("user")
    return rowwise(np.array(lines, np.int64), np.array(held, np.int32), labels, baskets, owners)


def is_open_file(data: object) -> bool:
    """Whether it can be read from. A frame that has a column "read" has an attribute of that name,
    too.
    """
    return callable(getattr(data, "read", None))


def _kernels(size: int) -> ModuleType | None:
    """The compiled parser, where there is one and it pays."""
    if size < _WORTH_LOADING_NUMBA and "numba" not in sys.modules:
        return None
    try:
        from privmax.itemsets import kernels_reading
    except (
        ImportError,
        RuntimeError,
    ):  # not installed; or it finds no place to keep what it compiles
        return None
    return kernels_reading


def _compiled(
    text: NDArray[np.uint8], kernels: ModuleType
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    rows = kernels.newlines(text) + bool(len(text) and text[-1] != 10)
    offsets = np.empty(rows + 1, np.int64)
    codes = np.empty(
        (len(text) + 1) // 2, np.int32
    )  # pages that are never written to take no memory
    count, largest = kernels.parse(text, offsets, codes)
    return _parsed(text) if count < 0 else (offsets, codes[:count], largest)


def _parsed(text: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Where each row ends, the numbers, and the largest. Raises all errors of a FIMI file."""
    ends, numbers, lines, count = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], 0, 0
    for chunk in _whole_lines(text):
        values, within = _numbers(chunk, lines)
        ends.append(within + count)
        numbers.append(values)
        lines += len(within)
        count += len(values)
    codes = np.concatenate(numbers)
    return np.concatenate(ends), codes, int(codes.max()) if count else -1


def _whole_lines(text: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """The text in pieces of about `_CHUNK` bytes, each of which ends where a line does."""
    start = 0
    while start < len(text):
        end = start + _CHUNK
        while (
            end < len(text)
            and not (newlines := np.flatnonzero(text[end : end + _CHUNK] == 10)).size
        ):
            end += _CHUNK
        end = end + int(newlines[0]) + 1 if end < len(text) else len(text)
        yield text[start:end]
        start = end


def _numbers(text: NDArray[np.uint8], lines: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The numbers in whole lines of text, `lines` of which come before, and how many there are up
    to each line's end.

    Bytes that are no digits bound runs of digits, most of them of one digit or more, some (between
    two blanks) of none.
    """
    bounds = np.flatnonzero(text - np.uint8(48) > 9)
    marks = text[bounds]
    newline, carriage = marks == 10, bounds[marks == 13]
    foreign = bounds[~newline & (marks != 32) & (marks != 9) & (marks != 13)]
    torn = carriage[
        (carriage + 1 < len(text)) & (text[np.minimum(carriage + 1, len(text) - 1)] != 10)
    ]
    starts = np.concatenate(([0], bounds + 1))
    widths = np.concatenate((bounds, [len(text)])) - starts
    full = widths > 0
    upto = np.cumsum(full)
    starts, widths = starts[full], widths[full]
    values = np.zeros(len(starts), np.int64)
    for place in range(min(10, int(widths.max(initial=0)))):
        here = widths > place
        values[here] = 10 * values[here] + (text[starts[here] + place] - np.uint8(48))
    for run in np.flatnonzero(widths > 10).tolist():  # zeros in front, or too large
        digits = text[starts[run] : starts[run] + widths[run]].tobytes().lstrip(b"0")
        values[run] = int(digits or b"0") if len(digits) <= 10 else LARGEST_ITEM + 1
    large = starts[values > LARGEST_ITEM]
    wrong = [
        (int(places[0]), reason)
        for places, reason in (
            (foreign, "holds something other than whole numbers separated by blanks"),
            (large, f"holds a number above {LARGEST_ITEM}"),
            (torn, "has a carriage return within it"),
        )
        if len(places)
    ]
    if wrong:
        place, reason = min(wrong)
        line = lines + int(np.count_nonzero(newline[: np.searchsorted(bounds, place)])) + 1
        raise DataError(
            f"Line {line} {reason}. Where items are text, use a .csv file or its form "
            f'(form="wide", --form wide); '
            'where each item has a column of 0 and 1, form="onehot" (--form onehot).'
        )
    ends = upto[:-1][newline]
    if len(text) and text[-1] != 10:
        ends = np.append(ends, upto[-1])
    return values.astype(np.int32), ends.astype(np.int64, copy=False)


def _rows(data: Any, separator: str | None, *, strip: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the number of the line where it begins.

    Where no separator is given the first line decides, which holds names and is public.
    """
    with _opened(data) as file:
        lines = _Lines(file)
        separator = separator or separator_in(_told(lines.first, lines) or "")
        # Within quotes blanks count, so those in front of quotes must go before.
        reader = csv.reader(
            lines, delimiter=separator, strict=True, skipinitialspace=strip and separator != " "
        )
        while True:
            begin = lines.number + 1
            cells = _told(reader.__next__, lines)
            if cells is None:
                return
            yield begin, cells


class _Lines:
    """The lines of a file as text, counted."""

    def __init__(self, file: Any) -> None:
        self._file = iter(file)
        self._ahead: list[str] = []
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._ahead:
            self.number += 1
            return self._ahead.pop()
        line = next(self._file)
        self.number += 1
        if self.number == 1 and not isinstance(line, str):
            strange = foreign(bytes(line[:START]))
            if strange is not None:
                raise DataError(f"Line 1 is not UTF-8 text. {strange}")
        text: str = line if isinstance(line, str) else line.decode("utf-8")
        return text.removeprefix("\ufeff") if self.number == 1 else text

    def first(self) -> str:
        """The first line, which stays to be read."""
        line = next(self)
        self._ahead.append(line)
        self.number -= 1
        return line


def _different(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError("Two columns of the file have the same name. Rename one.")


def _below(
    rows: Iterator[tuple[int, list[str]]], names: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
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

    def add(self, line: int, cells: Sequence[str]) -> None:
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
            "it must be one character, and no quote or end of a line",
            'For example ";".',
        )
    return given


def _place(names: Sequence[str], option: str, name: str) -> int:
    """Where a column stands. Which others there are is not said: in a file without a line of names
    they are data.
    """
    if name not in names:
        raise ParameterError(
            option,
            name,
            "the file has no such column",
            "The file must name its columns in its first line: head -n 1 FILE shows it.",
        )
    return names.index(name)


def _bytes(data: Any) -> bytes:
    with _opened(data) as file:
        content = _told(file.read, None)
    return content.encode("utf-8", "replace") if isinstance(content, str) else bytes(content or b"")


def _opened(data: Any) -> AbstractContextManager[Any]:
    """A file by its name, "-" for what the process is fed, or an open file, which stays open."""
    if is_open_file(data):
        return nullcontext(getattr(data, "buffer", data))
    if data == "-":
        return nullcontext(getattr(sys.stdin, "buffer", sys.stdin))
    path = Path(data)
    wrong = ""
    try:
        return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")
    except (IsADirectoryError, PermissionError):  # Windows gives the second for a folder
        wrong = "The name given is that of a folder, or of a file that may not be read."
    except (OSError, ValueError):  # no name of a file at all: too long, or with a zero in it
        wrong = "There is no file of the name given."
    raise DataError(wrong)


def _told(step: Callable[[], T], lines: _Lines | None) -> T | None:
    """What a step of reading gives, None at the end; errors in words that quote nothing."""
    try:
        return step()
    except StopIteration:
        return None
    except UnicodeDecodeError:
        wrong = (
            f"is not UTF-8 text. {CONVERT}" if lines else f"The file is not UTF-8 text. {CONVERT}"
        )
    except csv.Error:
        wrong = (
            "is not CSV: a quote is not closed or has text behind it, a cell is over 128 KiB, or a "
            "carriage return "
            "stands within the line. Close every quote, and double one that is part of a value."
        )
    except (EOFError, zlib.error, gzip.BadGzipFile):
        wrong, lines = "The file is no gzip file, or is cut short.", None
    except OSError:
        wrong, lines = "The file could not be read to its end.", None
    raise DataError(f"Line {lines.number} {wrong}" if lines else wrong)
