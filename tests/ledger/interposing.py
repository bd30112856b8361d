"""What controls the library that stands between a process and the C library, from within.

Calls on files of one folder fail, files cannot grow, or all calls are written down. The library is
faults/interposer.c, compiled by `Yard.library` for the workers of `Yard.interposed`.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import NamedTuple

OPEN, READ, WRITE, SYNC, TRUNCATE, UNLINK, LOCK, STAT, CLOSE, NAME, MEMORY = (
    1 << bit for bit in range(11)
)
"""Kinds of calls, the same in interposer.c. `MEMORY` is what SQLite allocates."""

SHORT = -1
"""In place of an errno: of what is to be written half arrives."""


class Failure(NamedTuple):
    """Which calls fail, and how."""

    kinds: int
    error: int
    for_good: bool


_ANY = OPEN | READ | WRITE | SYNC | TRUNCATE | UNLINK | CLOSE | NAME
_GROWS = OPEN | WRITE | SYNC | TRUNCATE | NAME
_INTERRUPTED = OPEN | READ | WRITE | SYNC | TRUNCATE | CLOSE

FAILURES: dict[str, Failure] = {
    "EIO once": Failure(_ANY, errno.EIO, for_good=False),
    "EIO from then on": Failure(_ANY, errno.EIO, for_good=True),
    "ENOSPC once": Failure(_GROWS, errno.ENOSPC, for_good=False),
    "ENOSPC from then on": Failure(_GROWS, errno.ENOSPC, for_good=True),
    "EINTR once": Failure(_INTERRUPTED, errno.EINTR, for_good=False),
    "half a write once": Failure(WRITE, SHORT, for_good=False),
    "half a write from then on": Failure(WRITE, SHORT, for_good=True),
    "no lock or status once": Failure(LOCK | STAT, errno.EIO, for_good=False),
    "no lock or status from then on": Failure(LOCK | STAT, errno.EIO, for_good=True),
    "no memory once": Failure(MEMORY, errno.ENOMEM, for_good=False),
    "no memory from then on": Failure(MEMORY, errno.ENOMEM, for_good=True),
}

ROOM, ROOM_FOR_ANSWER = "no room", "no room for the answer"
"""In place of a name of `FAILURES`: files cannot grow any more, or not after the draw."""


class Interposer:
    """Controls the library within a process that has it."""

    def __init__(self, folder: str | Path) -> None:
        """The files of the folder are watched from now on."""
        self._library = ctypes.CDLL(None)
        for name in ("calls", "failures"):
            getattr(self._library, f"interposer_{name}").restype = ctypes.c_long
        self.knows_sqlite = bool(self._library.interposer_watch(os.fsencode(folder)))

    def fail(self, failure: Failure, at: int) -> None:
        """The call of that number fails, counted from now on and from 1; 0: calls are counted."""
        self._library.interposer_fail(
            failure.kinds, ctypes.c_long(at), failure.for_good, failure.error
        )

    def rest(self) -> None:
        """Nothing fails any more."""
        self._library.interposer_fail(0, ctypes.c_long(0), 0, 0)
        self._library.interposer_room(ctypes.c_long(-1))

    @property
    def calls(self) -> int:
        return int(self._library.interposer_calls())

    @property
    def failures(self) -> int:
        return int(self._library.interposer_failures())

    def leave_room(self, growth: int) -> None:
        """Files grow by that many bytes together; one that is removed gives its own back.

        `calls` is the most that they had grown by, and `failures` the writes without room.
        """
        self._library.interposer_room(ctypes.c_long(growth))

    def turn_clock(self, seconds: float) -> None:
        self._library.interposer_clock(ctypes.c_double(seconds))

    def trace(self, number: int) -> None:
        """Write all calls that change files to a descriptor."""
        self._library.interposer_trace(number)

    def mark(self, text: str) -> None:
        """Write a line into the trace."""
        self._library.interposer_mark(text.encode())
