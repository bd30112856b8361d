"""The file of a ledger, as the system sees it: which one is open, which has the name, how one is
made.

A connection to SQLite stays open between transactions, without a lock. It belongs to one process
and to one open file. Before it is used or closed, both are looked at: a process that was forked
leaves it alone, and so does a process whose descriptors were closed behind SQLite's back, as
daemons do when they start, for its number may since stand for another file.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import re
import sqlite3
import stat
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privmax.ledger.forks import gate, this_process

KEPT = 64
"""Connections that a process keeps open at most; of further files each lasts for a transaction."""


class OpenFile:
    """A connection, the file that it has open, and the process that opened it.

    connection   to SQLite
    kept         whether it may stay open after a transaction; not if nobody can tell later which
                 file it has open
    schema       the text of all tables, indexes and triggers that it knows; None: not read yet
    guarded      whether all triggers are there
    """

    def __init__(self, real: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
        self._closed, self._left = True, False
        self._process, self._losses = this_process(), process.losses
        self._real = os.fspath(real)
        self.schema: object = None
        self.guarded = False
        with process.opening:
            self._number = _next_number()
            self.connection = connect(real)
            self._closed = False
            # It may have taken another number, such as that of a file it had not quite closed.
            self._rights = None if self._number is None else _rights(self._number)
        self.kept = self._rights is not None and _rights(self._real) == self._rights
        if len(_files) >= KEPT:
            self.kept = False
        _files.add(self)

    def is_ours(self) -> bool:
        """Whether it is of this process, and its descriptor still is that of the file."""
        if self._process != this_process() or self._losses != process.losses:
            return False
        if not self.kept:
            return True
        found = None if self._number is None else _rights(self._number)
        if found is not None and self._rights is not None and found[:2] == self._rights[:2]:
            return True
        # whoever closed this one closed others too, and their numbers are given anew
        process.losses += 1
        return False

    def is_named(self, file: tuple[int, int] | None) -> bool:
        """Whether it is that file, and found where it was opened, with the same rights.

        Found by its own name, not by a link: SQLite puts the journal beside the name by which it
        opened the file, and others look for it beside the name that the file has.
        """
        known = self._rights
        return known is not None and known[:2] == file and _rights(self._real) == known

    def rest(self) -> bool:
        """Undo what is not committed; False: that failed."""
        try:
            if self.connection.in_transaction:
                self.connection.rollback()
        except sqlite3.Error:
            return False
        return True

    def close(self) -> None:
        """Undo what is not committed, and close; but leave alone what is not ours."""
        if self._closed:
            return
        if not self.is_ours():
            self.leave()
            return
        with gate.passage():
            self.rest()
            if not self._left:
                self._closed = True
                _files.discard(self)
                self.connection.close()

    def leave(self) -> None:
        """Never close the connection, not even when the process ends."""
        if not self._left:
            self._left = True
            _files.discard(self)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))

    def __del__(self) -> None:
        if not self._left:
            self.close()


_files: weakref.WeakSet[OpenFile] = weakref.WeakSet()


class Process:
    """What all open files of a process share.

    opening   held by who opens a file, so that nobody else here is given its number
    losses    how often a descriptor was found to be closed behind SQLite's back
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._number = this_process()
        self.opening = threading.RLock()
        self.losses = 0

    def renew(self) -> bool:
        """Begin again in a process that was forked; False: it was not, or has done so."""
        forked = self._number != this_process()
        if forked:
            self._begin()
        return forked


process = Process()


@atexit.register
def _leave_all() -> None:
    """When the process ends, threads may still be in transactions; the system closes all files."""
    for file in list(_files):
        file.leave()


Rights = tuple[int, int, int, int, int]
"""Which file it is, and who may do what with it."""


def _rights(file: str | int) -> Rights | None:
    """Those of what has a name, which may be a link, or of what a descriptor stands for; None:
    there is no such thing.
    """
    try:
        found = os.lstat(file) if isinstance(file, str) else os.fstat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid


def _next_number() -> int | None:
    """The number that the next descriptor gets; None: the system has no such numbers."""
    if os.name != "posix":
        return None
    try:
        number = os.open("/", os.O_RDONLY)
    except OSError:
        return None
    os.close(number)
    return number


def status(path: str) -> os.stat_result | None:
    """What the system says of a file; None: there is none."""
    try:
        return os.stat(path)
    except OSError:
        return None


def other_names(path: str, found: os.stat_result) -> bool:
    """Whether a file has another name than that of one who makes it just now, or who died in that
    moment.
    """
    if not stat.S_ISREG(found.st_mode) or found.st_nlink <= 1:
        return False
    real = Path(os.path.realpath(path))
    with suppress(OSError), os.scandir(real.parent) as entries:
        for entry in entries:
            if _is_scratch(entry.name, real) and entry.inode() == found.st_ino:
                with suppress(OSError):
                    os.unlink(entry.path)
    now = status(path)
    return now is not None and now.st_nlink > 1


def _scratch_prefix(path: Path) -> str:
    return f".{path.name}."


def _is_scratch(name: str, path: Path) -> bool:
    """Whether `scratch` gave a file its name: eight letters behind the prefix. Others are of
    somebody else, and are not removed.
    """
    prefix = _scratch_prefix(path)
    return name.startswith(prefix) and re.fullmatch("[a-z0-9_]{8}", name[len(prefix) :]) is not None


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """A new empty file of mode 600 beside another; nothing of it is left."""
    number, name = tempfile.mkstemp(prefix=_scratch_prefix(path), dir=path.parent)
    os.close(number)
    try:
        yield Path(name)
    finally:
        for left in ("", "-journal"):
            with suppress(OSError):
                os.unlink(f"{name}{left}")


def place(made: Path, path: Path) -> None:
    """Give the file its name, unless that is taken (FileExistsError)."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except (
        OSError
    ):  # a file system without links: a copy that is cut off by a crash is refused later, not used
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:
            copy.write(made.read_bytes())
            copy.flush()
            os.fsync(copy.fileno())


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (
            errno.EINVAL,
            errno.EBADF,
            errno.EACCES,
        ):  # where folders cannot be synchronised
            raise
    finally:
        os.close(number)
