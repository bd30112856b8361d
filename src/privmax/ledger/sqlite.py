"""Ledgers in a SQLite file: one writer at a time, every commit on the disk before it counts."""

from __future__ import annotations

import getpass
import os
import random
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from privmax.errors import BudgetError, LedgerError
from privmax.ledger import files
from privmax.ledger.events import SCHEMA, EventRow
from privmax.ledger.files import OpenFile
from privmax.ledger.forks import gate, this_process
from privmax.ledger.rows import NOTHING, Draft, Lookup, Rows, Turn, UnwritableError, unknown
from privmax.ledger.sqlite_errors import (
    ERRORS,
    OLDER,
    PASSING,
    PATIENCE,
    UNREADABLE,
    explain,
    is_busy,
)
from privmax.ledger.sqlite_schema import APPLICATION, guard, make_tables, read_schema
from privmax.retries import is_transient
from privmax.sources.engines.sqlite import SQLite

T = TypeVar("T")

PAUSE = 0.002, 0.03
"""Seconds between two attempts to begin, at least and at most. By chance, so that everyone has a
turn. Each attempt looks at the file again: with sixteen processes, shorter pauses cost more
processor time than the charges themselves.
"""

SHORT_PAUSE = 0.0005, 0.005
"""The same between two attempts to commit: no one else can begin meanwhile."""


class FileRows(Rows):
    """Rows of a file, which notes that an answer was drawn before it is written."""

    closed = False
    """Whether requests were closed by this transaction: if it fails, they stay so."""

    def __init__(self, store: SqliteStore, ledger: str) -> None:
        super().__init__(store._execute, ledger)
        self._store = store

    def is_closed(self, charge: EventRow) -> bool:
        rows = self._execute(_FIND_OPEN, [self._ledger, charge.seq])
        return not rows or rows[0][1] != _NOT_CLOSED

    def close(self, charges: Sequence[EventRow]) -> None:
        numbers = [
            number
            for charge in charges
            for number, closed in self._execute(_FIND_OPEN, [self._ledger, charge.seq])
            if closed == _NOT_CLOSED
        ]
        if numbers:
            self._store.mark_closed(numbers)
        self.closed = True


class SqliteStore:
    """A file of ledgers. Safe between threads, in several handles of one process, and after a fork.

    The file stays open between transactions, but no lock is held then, and all that was committed
    is in the one file. Every transaction looks again whether it is the file that has the name, and
    what is in it; nothing that an earlier transaction read is used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.abspath(path))  # whatever the working directory is later
        self._name = os.fspath(self._path)
        self.shown = (
            os.fspath(path).encode("utf-8", "backslashreplace").decode()
        )  # a name need not be text
        self.place = self._name
        self._turn = Turn(self.shown)
        self._file: tuple[int, int] | None = None
        self._open: OpenFile | None = None
        self._within = False
        self._process = this_process()
        _stores.add(self)

    def prepare(self) -> None:
        if files.status(self._name) is None:
            self._make()

    def user(self) -> str:
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # no such user in the password database
            return "unknown"

    @contextmanager
    def reading(self, ledger: str) -> Iterator[Rows]:
        with self._transaction(_READING):
            yield FileRows(self, ledger)

    @contextmanager
    def writing(
        self, ledger: str, request: str | None = None, lookup: Lookup = NOTHING
    ) -> Iterator[Rows]:
        with self._transaction(_WRITING):
            rows = FileRows(self, ledger)
            try:
                yield rows
                self._same_file()
                self._execute("COMMIT", committing=True, request=request)
            except LedgerError as error:
                if not rows.closed or isinstance(error, BudgetError):
                    raise
                # It may have to do with the answer, and the file says already that one was drawn.
                failure = UnwritableError(str(error), retry=error.retry)
                failure.noted = True
                raise failure from None

    def mark_closed(self, numbers: Sequence[int]) -> None:
        """Note that answers to open charges were drawn, before they are written, and commit that.

        One byte changes for each, in place and without a journal: that needs no room on a full
        disk, and whichever part of it a crash leaves is right. Others are kept out until the
        transaction ends that writes the answers, so that none of them takes a request that is being
        answered for one that failed. Nothing was written in this transaction before.
        """

        def close(connection: sqlite3.Connection) -> None:
            for number in numbers:
                with connection.blobopen("privmax_open", "closed", number) as blob:
                    blob.write(b"\1")

        try:
            self._execute("PRAGMA locking_mode = EXCLUSIVE")  # keeps the lock between transactions
            self._execute("COMMIT", committing=True)
            self._execute("PRAGMA journal_mode = MEMORY")
            self._execute(_WRITING)
            self._try(close)
            self._execute("COMMIT", committing=True)
            self._execute("PRAGMA journal_mode = DELETE")
            self._execute(_WRITING)
            self._execute("PRAGMA locking_mode = NORMAL")  # the lock ends with the transaction
        except UnwritableError as error:  # the same whatever the answers are
            failure = LedgerError(str(error), retry=error.retry)
        else:
            return
        raise failure

    writes = False
    """There is no round trip to save."""

    def write(self, ledger: str, draft: Draft) -> Rows | None:
        return None

    def settle(self) -> None:
        pass  # nobody reads what is not on the disk

    def damage(self) -> Iterator[str]:
        faults = self._check_pages()
        if faults and self._check_pages():  # not if the disk failed for a moment only
            yield from faults

    def _check_pages(self) -> list[str]:
        with self._transaction(_READING):
            rows = self._execute("PRAGMA integrity_check(20)")
        return [str(text) for (text,) in rows if text != "ok"]

    def close(self) -> None:
        with self._turn.take():
            _part()
            self._drop()
            self._file = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Undo whatever was not committed at the end of the block.

        After an error the file is closed too.
        """
        with self._turn.take():
            _part()
            start = time.monotonic()
            while True:  # ends: past PATIENCE, `_begin` fails instead of waiting
                with gate.passage():
                    process, keep = this_process(), False
                    try:
                        self._within = True
                        begun = self._begin(begin, last=time.monotonic() - start > PATIENCE)
                        if begun:
                            yield
                        keep = True
                    finally:
                        if (
                            process == this_process()
                        ):  # a child that leaves the block of its parent undoes nothing
                            self._end(keep=keep)
                if begun:
                    return
                _pause()  # with no lock, so that nobody waits for us, not even to fork

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return None if self._open is None else self._open.connection

    def part(self) -> None:
        """In a process that was forked, leave alone what is the parent's."""
        if self._process == this_process():
            return
        self._process = this_process()
        within, self._within = self._within, False
        if self._open is not None:
            # In a transaction its locks are the parent's, but SQLite believes that this process
            # holds them, and closing it would undo here, in the one file, what the parent is
            # committing.
            self._open.leave()
            self._open = None
        if within and self._file is not None:
            _torn.add(self._file)

    def _begin(self, begin: str, *, last: bool) -> bool:
        """Begin a transaction in the file that has the name; False: someone else writes."""
        self._same_file()
        failure, older = None, False
        try:
            file = self._reach()
            connection = file.connection
            connection.execute(begin)
            self._check(connection)  # first: a database of somebody else stays as it is
            older = connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete"
            if older:
                file.kept = False  # with a log, there are locks between transactions too
                connection.rollback()
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute(begin)
                self._check(connection)
            schema = read_schema(connection)
            if file.schema not in (None, schema):  # SQLite notices most changes itself, not all
                self._drop()
                return self._begin(begin, last=last)
            if begin == _WRITING and not file.guarded:
                guard(connection)
                schema, file.guarded = read_schema(connection), True
            file.schema = schema
        except ERRORS as error:
            busy = is_busy(error)
            if busy and not last:
                return False
            failure = (
                LedgerError(f"{self.shown} {OLDER}", retry=True)
                if busy and older
                else self._failure(error)
            )
        if failure is not None:
            raise failure
        self._same_file()
        return True

    def _reach(self) -> OpenFile:
        """Return the file, opened again unless the one that is open still has the name."""
        file = self._open
        if (
            file is not None
            and file.is_ours()
            and file.is_named(self._file)
            and not file.connection.in_transaction
        ):
            file.connection.executescript(_FORGET)
            return file
        self._drop()
        self._open = file = OpenFile(Path(os.path.realpath(self._name)), self._connect)
        return file

    def _end(self, *, keep: bool) -> None:
        """Undo what is not committed, and keep the file open only if nothing is wrong with it."""
        file, self._open = self._open, None  # whatever interrupts this, then it is closed
        try:
            if file is not None and keep and file.kept and file.rest():
                self._open = file
            elif file is not None:
                file.close()
        finally:
            self._within = False

    def _same_file(self) -> None:
        """Refuse a file that no longer has the name, or has a second one.

        Others charge the one that has.
        """
        status = files.status(self._name)
        if status is None and self._file is None:
            raise LedgerError(
                f"{self.shown}: there is no such file.",
                missing="ledger",
                remedy="Create a ledger with Ledger.create, or by giving a budget.",
            )
        known, self._file = self._file, None if status is None else (status.st_dev, status.st_ino)
        if status is None or known not in (None, self._file):
            self._file = None
            raise LedgerError(
                f"{self.shown}: the file was replaced or removed while it was open. Nothing was "
                "charged or recorded by this call. If a backup was restored, it has forgotten all "
                "later charges: check that."
            )
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            raise LedgerError(
                f"{self.shown} is empty: it never was a ledger, or it was truncated. Restore a "
                "backup. Delete the file only if it never held a ledger."
            )
        if status.st_nlink > 1 and files.other_names(self._name, status):
            raise LedgerError(
                f"{self.shown} has {status.st_nlink} names (hard links). Nothing was charged or "
                "recorded by this call: what a process writes under one name, another would not "
                "find under the other. Remove the other names; a symbolic link does no harm."
            )
        if stat.S_ISREG(status.st_mode) and files.is_mount_point(self._name):
            raise LedgerError(
                f"{self.shown} is a mount point: a single file that is mounted (bind mount) has "
                "another name elsewhere. Nothing was charged or recorded by this call: what a "
                "process writes under one name, another would not find under the other. Mount its "
                "folder instead."
            )
        if self._file in _torn:
            raise LedgerError(
                f"{self.shown}: this process was forked during a transaction of its parent and "
                "cannot use the file. Nothing was charged or recorded by this call. Fork outside "
                "of signal handlers, or start a new program."
            )

    def _drop(self) -> None:
        """Undo what is not committed, and close."""
        file, self._open = self._open, None
        if file is not None:
            file.close()

    def _connect(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = _text
        try:
            # A commit is the end of the journal: EXTRA puts on the disk that it is gone.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA trusted_schema = OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if mark != APPLICATION:
            raise LedgerError(f"{self.shown} is a database without ledgers. Choose another file.")
        if version != SCHEMA:
            raise LedgerError(
                f"{self.shown} has tables of version {version}; this privmax uses version "
                f"{SCHEMA}. Use the privmax version that made it, or a newer one."
            )

    def _make(self) -> None:
        """Make a file with empty tables, all at once.

        No other process ever sees a half-made one, whenever this process dies.
        """
        if not os.path.isdir(self._path.parent):
            raise LedgerError(f"{self.shown}: its folder does not exist. Create it first.")
        failure = None
        try:
            with files.scratch(self._path) as made:
                with closing(self._connect(made)) as connection:
                    make_tables(connection)
                files.sync(made)
                with suppress(FileExistsError):  # then somebody else was faster, and theirs counts
                    files.place(made, self._path)
                files.sync(self._path.parent)
        except ERRORS as error:
            failure = self._failure(error)
        except OSError as error:
            failure = LedgerError(
                f"{self.shown} cannot be created: {error.strerror}. Name a file in a folder you "
                "may write to."
            )
        if failure is not None:
            raise failure

    def _execute(
        self,
        query: str,
        bound: Sequence[Any] = (),
        *,
        committing: bool = False,
        request: str | None = None,
    ) -> list[tuple[Any, ...]]:
        return self._try(
            lambda connection: connection.execute(query, bound).fetchall(),
            committing=committing,
            request=request,
        )

    def _try(
        self,
        act: Callable[[sqlite3.Connection], T],
        *,
        committing: bool = False,
        request: str | None = None,
    ) -> T:
        """Do something with the connection within the transaction; its errors in our words."""
        start, failure = time.monotonic(), None
        while True:  # ends: it waits for PATIENCE at most
            if self._open is None or not self._within or self._process != this_process():
                raise LedgerError(
                    f"{self.shown}: the transaction is over. Nothing was recorded by this call."
                )
            try:
                return act(self._open.connection)
            except ERRORS as error:
                wait = committing and is_busy(error) and time.monotonic() - start < PATIENCE
                if not wait:
                    failure = self._failure(error, committing=committing, request=request)
            if failure is not None:
                raise failure  # here and not above: SQLite's own words stay behind
            _pause_briefly()  # until those who read have ended; nobody else can begin to

    def _failure(
        self, error: Exception, *, committing: bool = False, request: str | None = None
    ) -> LedgerError:
        """Return what SQLite says, in our words: its own may quote what is stored."""
        code = getattr(error, "sqlite_errorname", "") or type(error).__name__
        if isinstance(error, UnicodeDecodeError) and not committing:
            code = "SQLITE_CORRUPT"
        if isinstance(error, MemoryError):
            code = "SQLITE_NOMEM"
        if code.startswith(UNREADABLE) and not committing and self._is_readable():
            message = f"{self.shown} {PASSING} Nothing was charged or recorded by this call."
            return LedgerError(message, retry=True)
        reason = explain(code)
        kind = UnwritableError if reason is None or code.startswith("SQLITE_FULL") else LedgerError
        if committing and reason is None:
            return kind(f"{self.shown}: SQLite failed at the commit ({code}). {unknown(request)}")
        reason = reason or f"cannot be used: SQLite failed ({code})."
        message = f"{self.shown} {reason} Nothing was charged or recorded by this call."
        return kind(message, retry=is_transient(error, SQLite.is_transient))

    def _is_readable(self) -> bool:
        """Return whether the whole file can be read now, by a connection of its own."""
        try:
            with closing(self._connect(Path(os.path.realpath(self._name)))) as connection:
                rows = connection.execute("PRAGMA integrity_check(1)").fetchall()
        except ERRORS:
            return False
        return rows == [("ok",)]


_READING, _WRITING = "BEGIN", "BEGIN IMMEDIATE"

_FORGET = "PRAGMA shrink_memory"
"""Empties the cache of pages. SQLite itself does so only if a counter in the file has changed: that
of an older copy, written over the file and used by others, may have come to the same number again.
As a script, which is always compiled: that is when it acts.
"""

_FIND_OPEN = "SELECT rowid, closed FROM privmax_open WHERE ledger = ? AND seq = ?"

_NOT_CLOSED = b"\0"

_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()

_torn: set[tuple[int, int]] = set()
"""Files of which this process was forked in the middle of a transaction: SQLite believes in locks
that are not held.
"""


def _part() -> None:
    """Notice a fork, also one that Python did not hear of."""
    if files.process.renew():
        for store in _stores:
            store.part()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_part)


def _pause() -> None:
    time.sleep(random.uniform(*PAUSE))


def _pause_briefly() -> None:
    time.sleep(random.uniform(*SHORT_PAUSE))


def _text(stored: bytes) -> str | bytes:
    """Return text as it is stored; of a damaged row, which may hold other things, the bytes."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored
