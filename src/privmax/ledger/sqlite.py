"""Ledgers in a SQLite file: one writer at a time, every commit on the disk before it counts."""

from __future__ import annotations

import getpass
import os
import random
import sqlite3
import stat
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from privmax.errors import LedgerError
from privmax.ledger import files
from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import SCHEMA
from privmax.ledger.files import OpenFile
from privmax.ledger.forks import gate, this_process
from privmax.ledger.rows import NOTHING, Draft, Lookup, Rows, Turn, UnwritableError, unknown
from privmax.retries import passes_later

PATIENCE = 60.0
"""Seconds to wait for another process that writes."""

PAUSE = 0.0005, 0.005
"""Seconds between two attempts, at least and at most: as long as a commit or two take. By chance,
so that everybody has a turn.
"""

APPLICATION = 0x504D584C
"""Marks the file as ours in SQLite's header."""

TABLES = """
CREATE TABLE privmax_ledgers (
    name TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE privmax_events (
    ledger TEXT NOT NULL REFERENCES privmax_ledgers (name),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    moment TEXT NOT NULL,
    who TEXT NOT NULL,
    request TEXT,
    account TEXT,
    body TEXT NOT NULL,
    totals TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (ledger, seq)
);
CREATE UNIQUE INDEX privmax_events_request ON privmax_events (ledger, request, kind) WHERE request IS NOT NULL;
CREATE INDEX privmax_events_account ON privmax_events (ledger, account, seq) WHERE account IS NOT NULL;
CREATE TRIGGER privmax_events_follow BEFORE INSERT ON privmax_events
    WHEN NOT EXISTS (SELECT 1 FROM privmax_ledgers WHERE name = NEW.ledger AND seq = NEW.seq - 1)
    BEGIN SELECT RAISE(ABORT, 'an event follows the last one'); END;
CREATE TRIGGER privmax_events_head AFTER INSERT ON privmax_events
    BEGIN UPDATE privmax_ledgers SET seq = NEW.seq, hash = NEW.hash WHERE name = NEW.ledger; END;
CREATE TRIGGER privmax_events_kept BEFORE UPDATE ON privmax_events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER privmax_events_held BEFORE DELETE ON privmax_events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER privmax_ledgers_new BEFORE INSERT ON privmax_ledgers
    WHEN NEW.seq <> 0 OR EXISTS (SELECT 1 FROM privmax_ledgers WHERE name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'a name is taken once'); END;
CREATE TRIGGER privmax_ledgers_kept BEFORE UPDATE ON privmax_ledgers
    WHEN NEW.name <> OLD.name OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS (
        SELECT 1 FROM privmax_events WHERE ledger = NEW.name AND seq = NEW.seq AND hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'the head only follows events'); END;
CREATE TRIGGER privmax_ledgers_held BEFORE DELETE ON privmax_ledgers
    BEGIN SELECT RAISE(ABORT, 'ledgers are never deleted'); END;
"""


class SqliteStore:
    """A file of ledgers. Safe between threads, in several handles of one process, and after a fork.

    The file stays open between transactions, but no lock is held then, and all that was committed
    is in the one file. Every transaction looks again whether it is the file that has the name, and
    what is in it; nothing that an earlier transaction read is used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()
        self._name = os.fspath(self._path)
        self.shown = (
            os.fspath(path).encode("utf-8", "backslashreplace").decode()
        )  # a name need not be text
        self.place = path
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
            yield Rows(self._execute, ledger)

    @contextmanager
    def writing(
        self, ledger: str, request: str | None = None, wanted: Lookup = NOTHING
    ) -> Iterator[Rows]:
        with self._transaction(_WRITING):
            yield Rows(self._execute, ledger)
            self._same_file()
            self._execute("COMMIT", committing=True, request=request)

    writes = False
    """There is no round trip to save."""

    def write(self, ledger: str, draft: Draft) -> Rows | None:
        return None

    def settle(self) -> None:
        pass  # nobody reads what is not on the disk

    def damage(self) -> Iterator[str]:
        with self._transaction(_READING):
            found = self._execute("PRAGMA integrity_check(20)")
        yield from (str(text) for (text,) in found if text != "ok")

    def close(self) -> None:
        with self._turn.take():
            _part()
            self._drop()
            self._file = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Whatever was not committed at the end of the block is undone; after an error the file is
        closed too.
        """
        with self._turn.take():
            _part()
            start = time.monotonic()
            while True:
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
        """Begin a transaction in the file that has the name; False: somebody else writes."""
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
            schema = _schema(connection)
            if file.schema not in (None, schema):  # SQLite notices most changes itself, not all
                self._drop()
                return self._begin(begin, last=last)
            if begin == _WRITING and not file.guarded:
                _guard(connection)
                schema, file.guarded = _schema(connection), True
            file.schema = schema
        except _ERRORS as error:
            busy = _is_busy(error)
            if busy and not last:
                return False
            failure = (
                LedgerError(f"{self.shown} {_OLDER}", retry=True)
                if busy and older
                else self._failure(error)
            )
        if failure is not None:
            raise failure
        self._same_file()
        return True

    def _reach(self) -> OpenFile:
        """The file, opened again unless the one that is open still has the name."""
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
        """Refuse a file that no longer has the name, or has a second one: others charge the one
        that has.
        """
        found = files.status(self._name)
        if found is None and self._file is None:
            raise LedgerError(
                f"{self.shown}: there is no such file.",
                missing="ledger",
                remedy="Create a ledger with Ledger.create, or by giving a budget.",
            )
        known, self._file = self._file, None if found is None else (found.st_dev, found.st_ino)
        if found is None or known not in (None, self._file):
            self._file = None
            raise LedgerError(
                f"{self.shown}: the file was replaced or removed while it was open. Nothing was "
                "charged or recorded by this call. If a backup was restored, it has forgotten all "
                "later charges: check that."
            )
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            raise LedgerError(
                f"{self.shown} is empty: it never was a ledger, or it was truncated. Restore a "
                "backup. Delete the file only if it never held a ledger."
            )
        if found.st_nlink > 1 and files.other_names(self._name, found):
            raise LedgerError(
                f"{self.shown} has {found.st_nlink} names (hard links). Nothing was charged or "
                "recorded by this call: what a process writes under one name, another would not "
                "find under the other. Remove the other names; a symbolic link does no harm."
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
        """A file with empty tables, all at once: nobody ever sees a half-made one, whenever this
        process dies.
        """
        if not os.path.isdir(self._path.parent):
            raise LedgerError(f"{self.shown}: its folder does not exist. Create it first.")
        failure = None
        try:
            with files.scratch(self._path) as made:
                with closing(self._connect(made)) as connection:
                    marks = (
                        f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"
                    )
                    connection.executescript(f"BEGIN; {marks} {TABLES} COMMIT;")
                    _guard(connection)
                files.sync(made)
                with suppress(FileExistsError):  # then somebody else was faster, and theirs counts
                    files.place(made, self._path)
                files.sync(self._path.parent)
        except sqlite3.Error as error:
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
        start, failure = time.monotonic(), None
        while True:
            if self._open is None or not self._within or self._process != this_process():
                raise LedgerError(
                    f"{self.shown}: the transaction is over. Nothing was recorded by this call."
                )
            try:
                return self._open.connection.execute(query, bound).fetchall()
            except _ERRORS as error:
                wait = committing and _is_busy(error) and time.monotonic() - start < PATIENCE
                if not wait:
                    failure = self._failure(error, committing=committing, request=request)
            if failure is not None:
                raise failure  # here and not above: SQLite's own words stay behind
            _pause()  # until those who read have ended; nobody else can begin to

    def _failure(
        self, error: Exception, *, committing: bool = False, request: str | None = None
    ) -> LedgerError:
        """What SQLite says, in our words: its own may quote what is stored."""
        code = getattr(error, "sqlite_errorname", "") or type(error).__name__
        if isinstance(error, UnicodeDecodeError) and not committing:
            code = "SQLITE_CORRUPT"
        told = next((told for start, told in _TOLD.items() if code.startswith(start)), None)
        kind = UnwritableError if told is None or code.startswith("SQLITE_FULL") else LedgerError
        if committing and told is None:
            return kind(f"{self.shown}: SQLite failed at the commit ({code}). {unknown(request)}")
        told = told or f"cannot be used: SQLite failed ({code})."
        message = f"{self.shown} {told} Nothing was charged or recorded by this call."
        return kind(message, retry=passes_later(error))


_ERRORS = sqlite3.Error, UnicodeDecodeError
"""The latter when the words of SQLite quote the tables of a damaged file."""

_TOLD = {
    "SQLITE_FULL": "cannot grow: the disk is full. Free some space.",
    "SQLITE_READONLY": "cannot be written: the file, its folder or its file system is read-only. "
    "Change that.",
    "SQLITE_CANTOPEN": "cannot be opened. This user must be able to read and write the file and "
    "its folder.",
    "SQLITE_PERM": "cannot be opened. This user must be able to read and write the file and its "
    "folder.",
    "SQLITE_BUSY": f"was locked by another process for over {PATIENCE:.0f} seconds. Try again "
    "later.",
    "SQLITE_CONSTRAINT": "refused an event that does not follow from those before it, or would "
    "overspend. Run verify.",
    "SQLITE_NOTADB": "is not a SQLite database, or its first page was overwritten. Restore a "
    "backup, or choose another file.",
    "SQLITE_CORRUPT": "is damaged: it was truncated or overwritten. Restore a backup; do not keep "
    "using this file.",
}
"""By the beginning of SQLite's name for the error. After these, even at a commit, nothing was
committed.
"""

_OLDER = (
    "was created by an older privmax, and one of its processes still has it open. Nothing was "
    "charged or recorded by this call. End such processes; the file is converted when it is next "
    "opened."
)

_READING, _WRITING = "BEGIN", "BEGIN IMMEDIATE"

_FORGET = "PRAGMA shrink_memory"
"""Empties the cache of pages. SQLite itself does so only if a counter in the file has changed: that
of an older copy, written over the file and used by others, may have come to the same number again.
As a script, which is always compiled: that is when it acts.
"""

_SCHEMA = """
SELECT group_concat(type || ' ' || name || ' ' || rootpage || ' ' || ifnull(sql, ''), ';')
FROM sqlite_master
"""

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


def _guard(connection: sqlite3.Connection) -> None:
    """Let the file itself refuse what is wrong; one that an older privmax made does not yet."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name in TRIGGERS.keys() - {name for (name,) in found}:
        connection.execute(TRIGGERS[name])


def _schema(connection: sqlite3.Connection) -> object:
    """The text of all tables, indexes and triggers, and where they begin."""
    return connection.execute(_SCHEMA).fetchone()[0]


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def _pause() -> None:
    time.sleep(random.uniform(*PAUSE))


def _text(stored: bytes) -> str | bytes:
    """Text as it is stored; of a damaged row, which may hold what is no text, the bytes."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored
