"""Text files and streams of baskets: how they are opened, and what is said where they fail.

An error gives the number of a line and a reason, never what the line holds. It is raised outside of
the `except` that noticed it, so that it does not carry the first one, which may quote the data.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from privmax.errors import DataError
from privmax.sources.bounded import open_bounded, open_bytes
from privmax.sources.files import CONVERT, START, foreign

T = TypeVar("T")


def is_open_file(data: object) -> bool:
    """Whether it can be read from. A frame that has a column "read" has an attribute of that name,
    too.

    Examples:
        >>> import io
        >>> is_open_file(io.StringIO()), is_open_file("baskets.dat")
        (True, False)
    """
    return callable(getattr(data, "read", None))


def open_stream(data: Any, *, lines: bool = True) -> AbstractContextManager[Any]:
    """A file by its name, "-" for what the process is fed, or an open file, which stays open.

    lines    whether it is read line by line; otherwise all at once
    """
    if is_open_file(data) or data == "-":
        given = sys.stdin if isinstance(data, str) else data
        opened = getattr(given, "buffer", given)
        is_binary = isinstance(opened, io.RawIOBase | io.BufferedIOBase)
        return nullcontext(open_bounded(opened, lines=lines) if is_binary else opened)
    path = Path(data)
    wrong = ""
    try:
        return open_bytes(path, lines=lines)
    except (IsADirectoryError, PermissionError):  # Windows gives the second for a folder
        wrong = "The data is a folder, or a file that you may not read."
    except (OSError, ValueError):  # no name of a file at all: too long, or with a zero in it
        wrong = "There is no such file."
    raise DataError(wrong)


class Lines:
    """The lines of a stream as text, counted.

    Examples:
        >>> lines = Lines([b"a,b\\n", b"1,2\\n"])
        >>> lines.first()
        'a,b\\n'
        >>> len(list(lines)), lines.number
        (2, 2)
    """

    def __init__(self, file: Any) -> None:
        self.number = 0
        self._text = self._read(file)
        self._ahead: list[str] = []

    def __iter__(self) -> Iterator[str]:
        self.number += len(self._ahead)
        yield from self._ahead
        yield from self._text

    def first(self) -> str:
        """The first line, which stays to be read."""
        self._ahead = [next(self._text)]
        self.number -= 1
        return self._ahead[0]

    def _read(self, file: Any) -> Iterator[str]:
        for line in file:
            self.number += 1
            if self.number == 1 and not isinstance(line, str):
                strange = foreign(bytes(line[:START]))
                if strange is not None:
                    raise DataError(f"Line 1 is not UTF-8 text. {strange}")
            text: str = line if isinstance(line, str) else line.decode("utf-8")
            yield text.removeprefix("\ufeff") if self.number == 1 else text


def try_step(step: Callable[[], T], lines: Lines | None) -> T | None:
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
            "is not CSV: a quote is not closed or has text after it, a cell is over 128 KiB, or "
            "there is a carriage return inside the line. Close every quote, and double one that is "
            "part of a value."
        )
    except (EOFError, zlib.error, gzip.BadGzipFile):
        wrong, lines = "The file is not a gzip file, or is truncated.", None
    except OSError:
        wrong, lines = "The file could not be read to its end.", None
    raise DataError(f"Line {lines.number} {wrong}" if lines else wrong)
