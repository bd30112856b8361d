"""Ledgers in a PostgreSQL database.

The row of the ledger is locked, then the event is added, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from privmax.errors import LedgerError, explain_install
from privmax.ledger.events import SCHEMA
from privmax.ledger.forks import this_process
from privmax.ledger.postgres_rows import Bound, DirectRows, DraftRows, FunctionRows, ServerRows
from privmax.ledger.postgres_schema import CHECKS, MAKING, MARK, PATIENCE, TABLES
from privmax.ledger.postgres_urls import public_url, show_url
from privmax.ledger.rows import (
    COLUMNS,
    NOTHING,
    Draft,
    Lookup,
    Rows,
    Turn,
    UnwritableError,
    unknown,
)
from privmax.retries import is_transient
from privmax.sources.engines.postgres import Postgres

if TYPE_CHECKING:
    import psycopg


_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_WRITING = (
    "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE; "
    f"SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', "
    f"'{PATIENCE}s', true)"
)
"""A role may have these set otherwise; a commit must be on the disk, and must see what others
committed.
"""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
_WRITE = (
    f"SELECT {COLUMNS} FROM "
    f"privmax_write({', '.join(['?::text'] * 8)}, ?::bigint, ?::text, ?::text)"
)
_WAIT = (
    "SELECT set_config('synchronous_commit', 'on', true), "
    "pg_logical_emit_message(true, 'privmax', '')"
)
_FLUSH = f"{_WAIT}, (SELECT hash FROM privmax_events WHERE ledger = ? AND request = ? AND kind = ?)"
"""A commit that waits for the disk takes all earlier ones there too, if it has something to write.

The message is that something. So an event is committed without waiting, which ends the turn of
its ledger, and all who wait for the disk then may share one write."""

_UNSETTLED = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN false "
    "ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END"
)
"""Whether something is not on the disk yet. A replica is sent what is on the disk."""


class Session(NamedTuple):
    """A session that has locked a ledger of a database, or waits for one.

    Attributes:
        pid: Number of the session.
        who: Role that it is of.
        since: When its transaction began; None: the owner of the tables may not see that.
        waits: Whether it waits for another session.
    """

    pid: int
    who: str
    since: datetime | None
    waits: bool


class PostgresStore:
    """A database of ledgers.

    Safe between threads, and after a fork: each process connects itself.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise LedgerError(
                "A ledger in PostgreSQL needs a package that is not installed. "
                + explain_install("sql")
            ) from None
        self._errors = psycopg
        self._url = url
        self.shown, self.place = show_url(url), public_url(url)
        self._turn = Turn(self.shown)
        self._connection: psycopg.Connection[Any] | None = None
        self._checked = False
        self._direct: bool | None = None
        self._writes = self._older = False
        self._lost = False
        self._process = this_process()

    def prepare(self) -> None:
        with self._transaction(_WRITING):
            if self._mark() is None:
                self._execute("SELECT pg_advisory_xact_lock(?)", [MAKING])
                if self._mark() is None:
                    self._execute(TABLES)
                    self._execute(CHECKS)

    def user(self) -> str:
        with self._transaction(_READING):
            return str(self._execute("SELECT session_user")[0][0])

    @contextmanager
    def reading(self, ledger: str) -> Iterator[Rows]:
        with self._transaction(_READING):
            self._check()
            yield ServerRows(self._execute, ledger)

    @contextmanager
    def writing(
        self, ledger: str, request: str | None = None, lookup: Lookup = NOTHING
    ) -> Iterator[Rows]:
        with self._turn.take():
            rows = self._open(ledger, lookup, request)
            try:
                yield rows
                self._commit(request, rows.unsent if isinstance(rows, FunctionRows) else [])
            except BaseException:
                self._undo()
                raise

    @property
    def writes(self) -> bool:
        return self._connection is not None and self._process == this_process() and self._writes

    def write(self, ledger: str, draft: Draft) -> Rows | None:
        with self._turn.take():
            connection = self._connection
            if connection is None or not self.writes:
                return None
            try:
                rows = self._write(connection, ledger, draft)
            except self._errors.Error as error:
                failure = self._failure(error)
                self._undo()
                if self._connection is None:  # whether the event was added, its request tells
                    self._lost = True
                    return None
            except BaseException:
                self._drop()
                raise
            else:
                return DraftRows(self._execute, ledger, draft, rows) if rows else None
        raise failure

    def _write(
        self, connection: psycopg.Connection[Any], ledger: str, draft: Draft
    ) -> list[tuple[Any, ...]]:
        """Return what was made of an event, and is on the disk; [] if that is left to privmax."""
        hashes = draft.known, *draft.seen, None if draft.charged is None else draft.charged.hash
        committed: psycopg.Cursor[Any] | None = None
        reason = "it is another event"
        try:
            with self._pipeline(connection):
                connection.execute(_BEGIN)
                made = connection.execute(_place_holes(_WRITE), [ledger, *draft[:6], *hashes])
                committed = connection.execute("COMMIT")
                connection.execute(_BEGIN)
                flushed = connection.execute(
                    _place_holes(_FLUSH), [ledger, draft.request, draft.kind]
                )
                done = connection.execute("COMMIT")
            rows: list[tuple[Any, ...]] = made.fetchall()
            if done.statusmessage == "COMMIT" and (
                not rows or flushed.fetchall()[0][-1] == rows[-1][-1]
            ):
                return rows
        except self._errors.Error as error:
            if connection.closed or committed is None or committed.statusmessage != "COMMIT":
                raise
            reason = type(error).__name__
        self._drop()
        raise LedgerError(
            f"{self.shown}: the commit was not confirmed ({reason}). {unknown(draft.request)}",
            retry=True,
        )

    def settle(self) -> None:
        with self._turn.take():
            if self._execute(_UNSETTLED)[0][0]:
                try:
                    self._together([(_BEGIN, ()), (_WAIT, ()), ("COMMIT", ())])
                except BaseException:
                    self._undo()
                    raise

    def blockers(self) -> list[Session]:
        """List the sessions that have a ledger of the database locked, then those that wait."""
        with self._transaction(_READING):
            self._check()
            return [
                Session(*columns) for columns in self._execute("SELECT * FROM privmax_blockers()")
            ]

    def unblock(self, pid: int) -> bool:
        """End one of these sessions, which undoes its transaction; False: it is not one of them."""
        with self._transaction(_READING):
            self._check()
            return bool(self._execute("SELECT privmax_unblock(?::integer)", [pid])[0][0])

    def damage(self) -> Iterator[str]:
        return iter(())

    def close(self) -> None:
        with self._turn.take():
            if self._process == this_process():
                self._drop()
            self._connection = None

    @contextmanager
    def _transaction(self, start: str) -> Iterator[None]:
        """Commit at the end of the block, roll back on an error.

        A connection that is lost is not used again.
        """
        with self._turn.take():
            try:
                self._start(start)
                yield
                self._commit(None) if start is _WRITING else self._undo()
            except BaseException:
                self._undo()
                raise

    def _start(self, start: str) -> None:
        """Begin a transaction.

        A connection that was lost since it was last used is made again, once.
        """
        begin: list[Bound] = [(statement, ()) for statement in start.split("; ")]
        known = self._connection is not None and self._process == this_process()
        try:
            self._together(begin)
        except LedgerError:
            if not known or self._connection is not None:
                raise
            self._together(begin)

    def _open(self, ledger: str, lookup: Lookup, request: str | None) -> Rows:
        """Begin a transaction with the ledger to itself."""
        lost, self._lost = self._lost, False
        try:
            return self._opening(ledger, lookup)
        except BaseException as error:
            self._undo()
            if not lost or not isinstance(error, LedgerError):
                raise
            failure = f"the commit was not confirmed. {unknown(request)} And now: {error}"
        raise LedgerError(f"{self.shown}: {failure}", retry=True)

    def _opening(self, ledger: str, lookup: Lookup) -> Rows:
        """Begin, take the lock before anything is read, then read.

        It takes one round trip, once the tables are known.
        """
        begin: list[Bound] = [(statement, ()) for statement in _WRITING.split("; ")]
        if (
            self._connection is not None
            and self._process == this_process()
            and self._direct is False
        ):
            quick = FunctionRows(self._execute, ledger)
            try:
                *_, head, looked = self._together([*begin, *quick.opening(lookup)])
                quick.remember(lookup, head, looked)
                return quick
            except LedgerError:
                if self._connection is not None:
                    raise  # else it was lost since it was last used
        self._start(_WRITING)
        self._check(writing=True)
        rows = (DirectRows if self._direct else FunctionRows)(self._execute, ledger)
        rows.head()
        return rows

    def _commit(self, request: str | None, unsent: Sequence[Bound] = ()) -> None:
        """Commit, and send before it what was not sent yet, in one round trip."""
        connection = self._connection
        if connection is None or self._process != this_process():
            raise LedgerError(
                f"{self.shown}: the connection was closed. Nothing was charged or recorded by this "
                f"call.",
                retry=True,
            )
        undone = LedgerError(
            f"{self.shown}: the transaction was undone. Nothing was charged or recorded by this "
            f"call.",
            retry=True,
        )
        if self._state(connection) != "INTRANS":
            raise undone
        try:
            if self._finish(connection, unsent) == "COMMIT":
                return
            failure = undone  # PostgreSQL ends a failed transaction by undoing it, and says so
        except self._errors.Error as error:
            if self._state(connection) == "INERROR":
                failure = self._failure(error)  # of an event: the server skips the commit behind it
            else:  # also when the server says why: it may have committed before
                reason = (
                    f"the commit was not confirmed ({type(error).__name__}). {unknown(request)}"
                )
                failure = LedgerError(f"{self.shown}: {reason}", retry=True)
                self._drop()
        except BaseException:
            self._drop()
            raise
        raise failure

    def _state(self, connection: psycopg.Connection[Any]) -> str:
        return connection.info.transaction_status.name

    def _finish(self, connection: psycopg.Connection[Any], unsent: Sequence[Bound]) -> str | None:
        """Send events and the commit together; what the server says that it did."""
        with self._pipeline(connection):
            for query, bound in unsent:
                connection.execute(_place_holes(query), bound)
            commit = connection.execute("COMMIT")
        return commit.statusmessage

    def _undo(self) -> None:
        if self._connection is not None and self._process == this_process():
            with suppress(self._errors.Error):
                self._connection.rollback()
            if self._connection.closed:
                self._drop()

    def _execute(self, query: str, bound: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._together([(query, bound)])[0]

    def _together(self, queries: Sequence[Bound]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query. They are sent at once, and share a round trip."""
        try:
            connection = self._connect()
            with self._pipeline(connection) if len(queries) > 1 else nullcontext():
                cursors = [
                    connection.execute(_place_holes(query), bound or None)
                    for query, bound in queries
                ]
            return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
        except self._errors.Error as error:
            failure = self._failure(error)
        except UnicodeError:  # of a host that cannot be looked up, or of text that is none
            failure = LedgerError(
                f"{self.shown} cannot be used: its URL has an impossible host or database name."
            )
        if self._connection is not None and self._connection.closed:
            self._drop()
        raise failure  # here and not above: the words of the server stay behind

    def _pipeline(self, connection: psycopg.Connection[Any]) -> AbstractContextManager[object]:
        """Send what is executed within in one round trip, where libpq can (since version 14)."""
        return connection.pipeline() if self._errors.Pipeline.is_supported() else nullcontext()

    def _connect(self) -> psycopg.Connection[Any]:
        if self._process != this_process():
            _forked.append(self._connection)  # closing it here would end the session of the parent
            self._connection, self._process = None, this_process()
        if self._connection is None:
            self._checked, self._direct, self._writes = False, None, False
            self._older = False
            # Prepared statements would not survive a pooler between us and the server.
            self._connection = self._errors.connect(
                self._url, prepare_threshold=None, application_name="privmax", autocommit=True
            )
        return self._connection

    def _drop(self) -> None:
        if self._process != this_process():  # as a child that ends within the block of its parent
            _forked.append(self._connection)
        elif self._connection is not None:
            with suppress(self._errors.Error):
                self._connection.close()
        self._connection = None

    def _mark(self) -> str | None:
        """Return what the tables say of themselves; None: there are none."""
        # Not to_regclass: it remembers within a transaction that there were none.
        comments = self._execute(
            "SELECT coalesce(obj_description(oid, 'pg_class'), '') FROM pg_catalog.pg_class "
            "WHERE relname = 'privmax_events' AND pg_catalog.pg_table_is_visible(oid)"
        )
        return str(comments[0][0]) if comments else None

    def _check(self, *, writing: bool = False) -> None:
        """Refuse tables that are not there or not ours to read; once a connection is enough."""
        if self._checked and not (writing and self._direct is None):
            return
        mark = self._mark()
        if mark is None:
            raise LedgerError(
                f"{self.shown} has no ledgers, or none that this user may read.",
                missing="ledger",
                remedy="Create one with Ledger.create, or by giving a budget.",
            )
        if mark != MARK:
            raise LedgerError(
                f"{self.shown} has tables of another version than this privmax uses ({SCHEMA}). "
                "Use the privmax version that made them, or a newer one."
            )
        self._checked = True
        if writing:
            self._direct = self._may_only_insert()

    def _may_only_insert(self) -> bool:
        """Return whether this user adds events with INSERT, not through functions.

        Tables of 0.1.0 have no functions.

        If they are the user's, they are given them now.
        """
        state = (
            "SELECT (SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) AND count(*) = 3 FROM "
            "pg_catalog.pg_proc WHERE proname IN ('privmax_lock', 'privmax_look', "
            "'privmax_append') AND pg_catalog.pg_function_is_visible(oid)), "
            "(SELECT count(*) = 5 FROM pg_catalog.pg_proc WHERE proname IN ('privmax_write', "
            "'privmax_number', 'privmax_states_rho', 'privmax_formed', 'privmax_unblock') "
            "AND pg_catalog.pg_function_is_visible(oid)), "
            "pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class "
            "WHERE relname = 'privmax_events' AND pg_catalog.pg_table_is_visible(oid)"
        )
        ((may, newest, own),) = self._execute(state)
        if own and not newest:
            self._execute("SELECT pg_advisory_xact_lock(?)", [MAKING])
            ((may, newest, own),) = self._execute(state)
            if not newest:
                self._execute(CHECKS)
                ((may, newest, own),) = self._execute(state)
        self._writes, self._older = bool(may and newest), not newest
        return not may

    def _failure(self, error: psycopg.Error) -> LedgerError:
        """Return what went wrong, in our words: those of the server may quote what is stored."""
        kinds = self._errors.errors
        reason = next(
            (
                reason
                for kind, reason in _REASONS.items()
                if isinstance(error, getattr(kinds, kind))
            ),
            None,
        )
        if self._older and isinstance(error, kinds.RaiseException):
            reason = _OLDER
        lost = self._connection is None or self._connection.closed
        kind = (
            LedgerError
            if lost or (reason and not isinstance(error, kinds.DiskFull))
            else UnwritableError
        )
        reason = reason or f"cannot be used now ({type(error).__name__}). " + (
            (Postgres.explain_login(error) if lost else None) or _WHY
        )
        message = f"{self.shown} {reason} Nothing was charged or recorded by this call."
        return kind(message, retry=is_transient(error, Postgres.is_transient))


_REASONS = {
    "LockNotAvailable": f"was locked by others for over {PATIENCE} seconds. Try again later.",
    "UndefinedFunction": "has the functions of an earlier privmax. Have their owner charge, grant "
    "or create a ledger with this privmax, once.",
    "InsufficientPrivilege": "does not let this user do that: it needs SELECT on privmax_events "
    "and privmax_ledgers, EXECUTE on privmax_lock and privmax_append, and INSERT on "
    "privmax_ledgers to create a ledger. A row-level policy may forbid it, too. To unblock takes "
    "EXECUTE on privmax_blockers and privmax_unblock, and pg_signal_backend for their owner.",
    "ReadOnlySqlTransaction": "is read-only. Use the primary server.",
    "DiskFull": "cannot grow: the disk of the server is full. Free some space.",
    "RaiseException": "refused an event that does not follow from those before it, or would "
    "overspend. Try again; if it persists, run verify.",
    "UndefinedTable": "has lost a table of its ledgers. Restore a backup.",
}
"""By the class of psycopg's error."""

_WHY = "Is the server running, and is the URL right?"

_OLDER = (
    "refused an event: its functions are those of an earlier privmax, which do not know all that "
    "this one records. Have their owner charge, grant or create a ledger with this privmax, once."
)
"""The message for a refusal then, which has this reason unless the event is false."""

_forked: list[Any] = []
"""Connections of a parent process, kept from being closed in this one."""


def _place_holes(query: str) -> str:
    return query.replace("?", "%s")
