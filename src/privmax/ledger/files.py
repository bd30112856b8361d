"""The file of a ledger, as the system sees it.

Which one is open, which has the name, and how one is made.

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
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from privmax.ledger.forks import gate, this_process

KEPT = 64
"""Connections that a process keeps open at most; of further files each lasts for a transaction."""


class OpenFile:
    """A connection, the file that it has open, and the process that opened it.

    Attributes:
        connection: To SQLite.
        kept: Whether it may stay open after a transaction; not if no one can tell later which file
            it has open.
        schema: The text of all tables, indexes and triggers that it knows; None: not read yet.
        guarded: Whether all triggers are there.
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
        """Return whether it is of this process, and its descriptor still is that of the file."""
        if self._process != this_process() or self._losses != process.losses:
            return False
        if not self.kept:
            return True
        rights = None if self._number is None else _rights(self._number)
        if rights is not None and self._rights is not None and rights[:2] == self._rights[:2]:
            return True
        # whoever closed this one closed others too, and their numbers are given anew
        process.losses += 1
        return False

    def is_named(self, file: tuple[int, int] | None) -> bool:
        """Return whether it is that file, and found where it was opened, with the same rights.

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
        except (sqlite3.Error, MemoryError):
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
    """The state that all open files of a process share.

    opening   held by who opens a file, so that no one else here is given its number
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
    """Close the files at the end of the process: threads may still be in transactions."""
    for file in list(_files):
        file.leave()


Rights = tuple[int, int, int, int, int]
"""The identity of a file, and the rights of each user."""


def _rights(file: str | int) -> Rights | None:
    """Return the rights of a name, which may be a link, or of a descriptor.

    None where there is no such thing.
    """
    try:
        status = os.lstat(file) if isinstance(file, str) else os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid


def _next_number() -> int | None:
    """Return the number that the next descriptor gets; None: the system has no such numbers."""
    if os.name != "posix":
        return None
    try:
        number = os.open("/", os.O_RDONLY)
    except OSError:
        return None
    os.close(number)
    return number


def status(path: str) -> os.stat_result | None:
    """Return what the system says of a file; None: there is none."""
    try:
        return os.stat(path)
    except OSError:
        return None


def other_names(path: str, known: os.stat_result) -> bool:
    """Return whether a file has a second name that a process making it does not explain.

    One that makes it just now, or died in that moment, leaves a scratch name.
    """
    if not stat.S_ISREG(known.st_mode) or known.st_nlink <= 1:
        return False
    real = Path(os.path.realpath(path))
    with suppress(OSError):
        os.unlink(_scratch_name(real, known.st_ino))
    now = status(path)
    return now is not None and now.st_nlink > 1


def is_mount_point(path: str) -> bool:
    """Return whether a file is mounted where it is found, so that it has another name elsewhere.

    Only Linux can say so; elsewhere this is False.
    """
    is_mounted = _ask_statx(path)
    return _is_listed_mount(path) if is_mounted is None else is_mounted


def _ask_statx(path: str) -> bool | None:
    """Return the answer of the system call.

    None: it is not there, or too old to know (Linux 5.8).
    """
    call = getattr(_library(), "statx", None) if sys.platform == "linux" else None
    if call is None:
        return None
    answer = (ctypes.c_uint64 * 32)()  # a struct statx
    if call(_AT_FDCWD, os.fsencode(path), 0, 0, answer) != 0:
        return None
    attributes, known = answer[1], answer[7]
    return bool(attributes & _MOUNT_ROOT) if known & _MOUNT_ROOT else None


_AT_FDCWD, _MOUNT_ROOT = -100, 0x2000


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _is_listed_mount(path: str) -> bool:
    """Return whether the table of mounts names the file."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    real = os.fsencode(os.path.realpath(path))
    escaped = re.sub(rb"[ \t\n\\]", lambda match: b"\\%03o" % match[0][0], real)
    return any(line.split(b" ")[4] == escaped for line in lines)


def _scratch_name(path: Path, inode: int) -> Path:
    """Return the name that a file has while it is made.

    It follows from the file itself, so that a link made by others is never taken for one.
    """
    digest = sha256(f"privmax {inode}".encode()).hexdigest()[:16]
    return path.with_name(f".{path.name}.{digest}")


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """A new empty file of mode 600 beside another; nothing of it is left."""
    number, first = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    name = _scratch_name(path, os.fstat(number).st_ino)
    os.close(number)
    os.rename(first, name)
    try:
        yield name
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
