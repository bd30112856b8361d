"""Transactions and forks take turns: no process is forked in the middle of a transaction on a file.

SQLite keeps a list of the locks that a process holds on a file. A fork inherits the list and not
the locks, so a child that was forked in the middle of a transaction believes in locks that no one
holds. A fork by another thread therefore waits here until transactions are over; they are short. A
fork by the very thread that is in a transaction, as by a signal handler, cannot wait for itself:
the store then refuses to use the file in the child.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 60.0
"""Seconds that a fork waits for transactions at most."""


_forks: list[int] = []
"""Numbers of the processes from the first that had this module loaded down to this one, each forked
by the one before.
"""


def this_process() -> tuple[int, int]:
    """Return which process this is.

    Its number alone does not tell: the first process of a container, and a child of it in a
    namespace of its own, are both number 1. Forks that Python does not hear of change the number
    only.
    """
    return os.getpid(), len(_forks)


class ForkGate:
    """The gate that threads pass for one transaction, and that a fork closes."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin again, in a process that has one thread."""
        self._changed = threading.Condition(
            threading.RLock()
        )  # a signal handler may interrupt who holds it
        self._inside: dict[int, int] = {}
        self._forking: dict[int, int] = {}

    @contextmanager
    def passage(self) -> Iterator[None]:
        me, process = threading.get_ident(), this_process()
        with self._changed:
            while me not in self._inside and any(thread != me for thread in self._forking):
                self._changed.wait(PATIENCE)
            _count(self._inside, me, 1)
        try:
            yield
        finally:
            if (
                process == this_process()
            ):  # in a child that leaves the block of its parent there is nothing to end
                with self._changed:
                    _count(self._inside, me, -1)
                    self._changed.notify_all()

    def close(self) -> None:
        """Before a fork: wait until no other thread is in a transaction."""
        me, end = threading.get_ident(), time.monotonic() + PATIENCE
        with self._changed:
            _count(self._forking, me, 1)
            while any(thread != me for thread in self._inside) and time.monotonic() < end:
                self._changed.wait(0.05)

    def open(self) -> None:
        """After a fork, in the parent."""
        with self._changed:
            _count(self._forking, threading.get_ident(), -1)
            self._changed.notify_all()


def _count(counts: dict[int, int], key: int, change: int) -> None:
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


gate = ForkGate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forks.append(os.getpid()))
    os.register_at_fork(before=gate.close, after_in_parent=gate.open, after_in_child=gate.renew)
