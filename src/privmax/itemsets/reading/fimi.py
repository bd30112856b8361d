"""Baskets in FIMI files: one basket per line, its items as whole numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.itemsets.baskets import LARGEST_ITEM, Baskets
from privmax.itemsets.reading.flags import refuse_rows
from privmax.sources.bounded import Bounded, try_read
from privmax.sources.dialect import dialect_of
from privmax.sources.places import Files
from privmax.sources.text import (
    START,
    foreign,
    not_text,
    open_binary,
    recognize,
    start_of,
    undecodable,
)

_CHUNK = 1 << 20
"""Bytes that the NumPy parser takes at a time: its arrays are several times as large."""

_WORTH_LOADING_NUMBA = 1 << 24
"""Smaller files are parsed sooner than numba is loaded, unless it is already."""


def read_fimi(data: Any) -> Baskets:
    """One basket a line: whole numbers from 0 to 2^31 − 1, separated by blanks or tabs.

    A blank line is an empty basket. Lines may end in a newline or in a carriage return and a
    newline, the last one also in neither.

    Examples:
        >>> import io
        >>> read_fimi(io.BytesIO(b"1 2\\n2\\n")).supports().tolist()
        [0, 1, 2]
    """
    whole = _bytes(data)
    strange = recognize(whole[:START])
    if strange is not None:
        raise not_text(strange)
    text = np.frombuffer(whole, np.uint8, offset=3 if whole.startswith(b"\xef\xbb\xbf") else 0)
    kernels = _kernels(len(text))
    offsets, codes, largest = _parse(text) if kernels is None else _parse_compiled(text, kernels)
    if largest < 4 * len(codes) + 1000:
        baskets = Baskets(offsets, codes, range(largest + 1))
        if largest == 1:
            refuse_rows(baskets)
        return baskets
    labels, places = np.unique(codes, return_inverse=True)
    return Baskets(offsets, places.astype(np.int32), labels.tolist())


def _kernels(size: int) -> ModuleType | None:
    """Return the compiled parser, where there is one and it pays."""
    if size < _WORTH_LOADING_NUMBA and "numba" not in sys.modules:
        return None
    try:
        from privmax.itemsets.reading import fimi_compiled
    except (
        ImportError,
        RuntimeError,
    ):  # not installed; or it finds no place to keep what it compiles
        return None
    return fimi_compiled


def _parse_compiled(
    text: NDArray[np.uint8], kernels: ModuleType
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    rows = kernels.newlines(text) + bool(len(text) and text[-1] != 10)
    offsets = np.empty(rows + 1, np.int64)
    codes = np.empty(
        (len(text) + 1) // 2, np.int32
    )  # pages that are never written to take no memory
    count, largest = kernels.parse(text, offsets, codes)
    return _parse(text) if count < 0 else (offsets, codes[:count], largest)


def _parse(text: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Return the end of each row, the numbers, and the largest. Raises all errors of FIMI files."""
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
    """Yield the text in pieces of about `_CHUNK` bytes, each of which ends where a line does."""
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
    """Return the numbers in whole lines of text, and how many there are up to each line's end.

    `lines` lines come before them.

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
            (foreign, "has something other than whole numbers separated by spaces"),
            (large, f"has a number above {LARGEST_ITEM}"),
            (torn, "has a carriage return inside it"),
        )
        if len(places)
    ]
    if wrong:
        place, reason = min(wrong)
        line = lines + int(np.count_nonzero(newline[: np.searchsorted(bounds, place)])) + 1
        raise DataError(
            f"Line {line} {reason}. If items are text, use a .csv file or set form to wide. If "
            "each item has a column of 0 and 1, set form to onehot."
        )
    ends = upto[:-1][newline]
    if len(text) and text[-1] != 10:
        ends = np.append(ends, upto[-1])
    return values.astype(np.int32), ends.astype(np.int64, copy=False)


def _bytes(data: Any) -> bytes:
    place = data.paths[0] if isinstance(data, Files) else data
    wrong = ""
    try:
        with open_binary(place, dialect_of(data).encoding, lines=False) as file:
            raw = getattr(file, "raw", None)
            if isinstance(raw, Bounded) and not raw.ends:  # a device of zeros does not
                strange = foreign(start_of(file))
                if strange is not None:
                    raise not_text(strange)
            content = try_read(file.read)
        return content.encode("utf-8", "replace") if isinstance(content, str) else bytes(content)
    except UnicodeDecodeError as error:  # of an open file of text
        wrong = undecodable(error, 0)
    raise DataError(wrong)
