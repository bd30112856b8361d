"""Threads that wait for the same ledger are served together: one of them writes for all.

Proof:      docs/proofs/group-commit.md
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from privmax.errors import BudgetError

MOST = 100
"""Entries that are written together at most: the others, and other processes, wait meanwhile."""

PATIENCE = 1.0
"""Seconds after which a thread that no other has woken looks for itself: the one that should have
may have been interrupted.
"""

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class QueuePlace(Generic[T]):
    """An entry that one thread waits for.

    Args:
        entry: What it asks for; None once it does not wait any more.
        served: Whether it was written together with others, or refused.
        refusal: The error that refused it.
        alone: Whether its thread has to try it by itself.
        woken: Set once one of these is known, or if its thread is to write for those that wait.
    """

    entry: T | None
    served: bool = False
    refusal: BudgetError | None = None
    alone: bool = False
    woken: threading.Event = field(default_factory=threading.Event)

    @property
    def done(self) -> bool:
        """Whether no other thread will write it any more."""
        return self.served or self.alone


class GroupCommit(Generic[T]):
    """Threads that have something to write, one after the other.

    While one writes, others come. The first of these waits for its turn, and then writes all that
    came; the others wait to be woken, so that none of them has to wait once more when its entry is
    written. A thread that comes alone writes by itself, and so does each of those that were to be
    written together if that failed: what is wrong with one entry then is an error for its thread
    only.
    """

    def __init__(self) -> None:
        self.renew()
        _groups.add(self)

    def renew(self) -> None:
        """Begin again in a process that was forked, where no other thread waits."""
        self._lock = threading.RLock()  # a signal handler may interrupt the thread that has it
        self._waiting: deque[QueuePlace[T]] = deque()

    def run(
        self,
        entry: T,
        alone: Callable[[], None],
        together: Callable[[Sequence[QueuePlace[T]]], None],
    ) -> None:
        """Write an entry, by itself or with those of other threads.

        Args:
            alone: Writes this entry, or raises why that failed.
            together: Writes several in one transaction, except those without an entry, and notes
                which it served. If it raises an error, it has served none of them.
        """
        place = QueuePlace(entry)
        try:
            self._waiting.append(place)
            if not self._is_first(place):
                place.woken.wait(PATIENCE)
            if not place.served:
                with self._lock:
                    while not place.done:
                        self._serve(place, together)
                    if place.alone:
                        alone()
        finally:
            place.entry = None
        if place.refusal is not None:
            raise place.refusal

    def _serve(
        self, own: QueuePlace[T], together: Callable[[Sequence[QueuePlace[T]]], None]
    ) -> None:
        """Write what came, or leave that to each thread."""
        places: list[QueuePlace[T]] = []
        while self._waiting and len(places) < MOST:
            places.append(self._waiting.popleft())
        failure: BaseException | None = None
        try:
            if len(places) > 1:
                together(places)
        except Exception:  # each has an error of its own, when it is tried alone
            pass
        except BaseException as error:  # the frames that it went through hold what others record
            error.__traceback__ = error.__context__ = error.__cause__ = None
            failure = error
        for place in places or [own]:  # taken by a thread that was interrupted before it served it
            if not place.served:
                place.refusal, place.alone = None, True
            place.woken.set()
        del places, place
        with suppress(IndexError):
            self._waiting[0].woken.set()  # of more than are written together
        if failure is not None:
            raise failure

    def _is_first(self, place: QueuePlace[T]) -> bool:
        """Return whether no other thread waits before it."""
        with suppress(IndexError):  # it may be taken already
            return self._waiting[0] is place
        return False


_groups: weakref.WeakSet[GroupCommit[Any]] = weakref.WeakSet()


def _renew() -> None:
    for group in _groups:
        group.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
