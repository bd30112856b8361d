"""Files that end: what is read as text has public bounds.

A device has no end, a line need not have one, and a megabyte of gzip can hold a gigabyte. Each of
them would fill the memory before anyone could say what is wrong.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from privmax.errors import DataError
from privmax.sources.dialect import Transcoded

T = TypeVar("T")

LONGEST_LINE = 1 << 26
"""Bytes of a line, at most. A basket of a million items has about seven million."""

LARGEST_STREAM = 1 << 36
"""Bytes that are read from standard input, a pipe or a device, at most. A file has a length that
everyone can see, and no such bound.
"""

LARGEST_IN_MEMORY = 1 << 32
"""The same where all of it is held in memory at once: baskets of numbers. It holds for compressed
files, too.
"""

UNPACKED_FREELY = 1 << 28
"""So many bytes are unpacked, whatever the compressed file has."""

EXPANSION = 256
"""Beyond them, so many for each byte of the compressed file, at most. Text that people keep has
less than 50; gzip reaches 1032, with one line over and over.
"""

_PIECE = 1 << 20
"""Bytes that are read at a time where all are wanted."""


class Bounded(io.RawIOBase):
    """A binary file that is read up to public bounds, and refused beyond them.

    Args:
        file: What to read.
        longest: Bytes of a line, at most; None: there are no lines.
        largest: Bytes of all, at most; None: the file is as long as it is.
        packed: Returns how many bytes of a compressed file have been read; None: it is not
            compressed.
        stack: What to close; nothing: the file stays open.

    Examples:
        >>> list(open_bounded(io.BytesIO(b"1 2\\n2\\n")))
        [b'1 2\\n', b'2\\n']
    """

    def __init__(
        self,
        file: Any,
        *,
        longest: int | None = None,
        largest: int | None = None,
        packed: Callable[[], int] | None = None,
        stack: ExitStack | None = None,
    ) -> None:
        super().__init__()
        self._file, self._packed, self._stack = file, packed, stack
        self._longest, self._largest = longest, largest
        self._size = self._line = 0
        self.ends = packed is None and largest is None
        """Whether it is a file whose length everyone can see."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        number: int = try_read(lambda: self._file.readinto(buffer)) or 0
        self._check(memoryview(buffer)[:number])
        return number

    def readall(self) -> bytes:
        if self.ends and self._longest is None:  # at once, so that memory holds it once
            every: bytes = try_read(self._file.read)
            return every
        pieces = []
        while piece := try_read(lambda: self._file.read(_PIECE)):
            self._check(memoryview(piece))
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        if not self.closed and self._stack is not None:
            self._stack.close()
        super().close()

    def _check(self, piece: memoryview) -> None:
        """Refuse what goes beyond a bound. It depends on the data, and comes before any charge."""
        self._size += len(piece)
        if self._largest is not None and self._size > self._largest:
            raise DataError(
                f"The data has more than {self._largest >> 30} GiB, as much as is read of a "
                "stream, and into memory. Write it to a file that ends in .parquet, or load it "
                "into a database."
            )
        if self._packed is not None and self._size > UNPACKED_FREELY + EXPANSION * self._packed():
            raise DataError(
                f"The compressed file unpacks to more than {EXPANSION} times its size, as files do "
                "that are made to fill a memory. If it is meant to, unpack it first, and give the "
                "unpacked file."
            )
        if self._longest is None:
            return
        content = bytes(piece)
        end = max(content.rfind(b"\n"), content.rfind(b"\r"))
        self._line = self._line + len(content) if end < 0 else len(content) - 1 - end
        if self._line > self._longest:
            raise DataError(
                f"A line has more than {self._longest >> 20} MiB. Is it text, with a line for each "
                "row?"
            )


def try_read(step: Callable[[], T]) -> T:
    """Return what a step of reading gives, or fail in words of ours.

    Errors quote the data: those of gzip show its first bytes.

    Raises:
        DataError: It fails. No other error leads to it.
    """
    try:
        return step()
    except (EOFError, zlib.error, gzip.BadGzipFile):
        wrong = "The file cannot be read: it is not a gzip file, or is truncated."
    except OSError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        wrong = (
            f"The file cannot be read to its end{reason}. Is it what its name says, and may you "
            "read it?"
        )
    raise DataError(wrong)


def open_bounded(file: Any, *, lines: bool = True) -> io.BufferedReader:
    """Return an open binary file, read up to the bounds of a stream; it stays open.

    Args:
        file: Gives bytes.
        lines: Whether it is read line by line; otherwise all of it is held in memory.
    """
    largest = LARGEST_STREAM if lines else LARGEST_IN_MEMORY
    raw = Bounded(file, longest=LONGEST_LINE if lines else None, largest=largest)
    return io.BufferedReader(raw, _PIECE)


def open_bytes(path: Path, *, lines: bool = True, encoding: str | None = None) -> io.BufferedReader:
    """Return a file as bytes, unpacked as its ending says, up to the bounds.

    Args:
        path: Its name.
        lines: Whether it is read line by line; otherwise all of it is held in memory.
        encoding: What its bytes mean; they come as UTF-8. None: as they are.

    Raises:
        OSError: It cannot be opened.
        DataError: It ends in .zst, and pyarrow is missing.
    """
    stack = ExitStack()
    plain = stack.enter_context(path.open("rb"))
    file: Any = plain
    packed: Callable[[], int] | None = None
    suffix = path.suffix.lower()
    if suffix == ".gz":
        file, packed = stack.enter_context(gzip.GzipFile(fileobj=plain)), plain.tell
    elif suffix == ".zst":
        file, packed = stack.enter_context(_unpack_zst(plain)), plain.tell
    if encoding is not None:
        file = Transcoded(file, encoding)
    largest = None if path.is_file() else LARGEST_STREAM
    if not lines and (packed is not None or largest is not None):
        largest = LARGEST_IN_MEMORY
    longest = LONGEST_LINE if lines else None
    raw = Bounded(file, longest=longest, largest=largest, packed=packed, stack=stack)
    return io.BufferedReader(raw, _PIECE)


def _unpack_zst(plain: Any) -> Any:
    try:
        from pyarrow import CompressedInputStream
    except ImportError:
        plain.close()
        raise DataError(
            "Files that end in .zst need the package pyarrow, which is not installed. Run pip "
            "install pyarrow, or unpack the file with unzstd."
        ) from None
    return CompressedInputStream(plain, "zstd")
