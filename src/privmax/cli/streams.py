"""Standard streams of the process: one that is closed, full or no longer read changes no charge.

A descriptor that is closed at the start would be given to the next file that is opened, such as a
ledger, and messages would be written into that. So closed ones are opened on the null device.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any


class _LossyFile(FileIO):
    """A descriptor for messages: what cannot be written is lost, and the command goes on."""

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            super().write(data)
        return len(data)


def repair_streams() -> None:
    """Open closed descriptors on the null device, and have messages never stop a command.

    `sys.stdin` and `sys.stdout` stay None where they were closed, which `is_writable` and readers
    ask about.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:  # the lowest free descriptor is given, so this fills 0, 1 and 2
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    if os.name == "posix" or sys.stderr is None:
        encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
        sys.stderr = TextIOWrapper(
            BufferedWriter(_LossyFile(2, "wb", closefd=False)),
            encoding=encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def is_writable() -> bool:
    """Return whether standard output is there, and open for writing."""
    if sys.stdout is None:
        return False
    try:
        os.write(sys.stdout.fileno(), b"")
    except OSError as error:
        return error.errno != errno.EBADF
    except ValueError:  # not a file: a test's
        return True
    return True


def has_reader() -> bool:
    """Return whether something may still read standard output.

    Nothing does if it is a pipe that is closed at the other end.
    """
    if sys.stdout is None or not hasattr(select, "poll"):
        return True
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        # not POLLNVAL, which some systems answer for every terminal and device
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):  # not a file: a test's
        return True


def discard_output() -> None:
    """Send to the null device what is still to be written: Python flushes it at the end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
