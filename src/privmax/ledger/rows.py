"""The questions a ledger asks of its database.

The text of every query is fixed; what is asked about is bound to it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from privmax.errors import LedgerError
from privmax.ledger.events import EventRow

COLUMNS = "seq, kind, moment, who, request, account, body, totals, hash"
HOLES = ", ".join("?" * (1 + len(COLUMNS.split(","))))
"""For the name of a ledger and the columns of an event."""

_EVENTS = f"SELECT {COLUMNS} FROM privmax_events WHERE ledger = ?"

_OPEN = """kind = 'reserved' AND NOT EXISTS (
    SELECT 1 FROM privmax_events answered WHERE answered.ledger = privmax_events.ledger
    AND answered.request = privmax_events.request AND answered.kind = 'released')"""
"""Charges without a recorded answer; the index on request ids decides."""

_ACCOUNTS = """WITH RECURSIVE names (account) AS (
    SELECT min(account) FROM privmax_events WHERE ledger = ? AND account IS NOT NULL
    UNION ALL SELECT (SELECT min(account) FROM privmax_events
        WHERE ledger = ? AND account > names.account) FROM names WHERE account IS NOT NULL
), opened AS (
    SELECT account, (SELECT seq FROM privmax_events WHERE ledger = ?
        AND account = names.account AND kind = 'account' ORDER BY seq LIMIT 1) seq FROM names
)
SELECT account, seq FROM opened WHERE seq IS NOT NULL ORDER BY seq"""
"""Each account by the name before it, and then its first event: a few steps in the index per
account, however many events there are.
"""

LAST = (1 << 63) - 1
"""A number above that of every event."""

Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs a query with `?` for what is bound to it; gives all rows. It raises no error but
LedgerError.
"""


class Lookup(NamedTuple):
    """The rows that a transaction will ask for, so that a store may look them all up at once.

    Attributes:
        seen: Number of the last event that was seen, or 0.
    """

    requests: Sequence[str] = ()
    accounts: Sequence[str] = ()
    seen: int = 0


NOTHING = Lookup()


class Draft(NamedTuple):
    """An event that a database may add by itself, where it only has to add up fractions.

    Attributes:
        known: Hash of the last event that is known to follow from those before it.
        seen: Number and hash of the last event that is known to be committed, or 0.
        charged: The charge that it answers.
    """

    kind: str
    moment: str
    who: str
    request: str
    account: str | None
    body: str
    known: str | None
    seen: tuple[int, str]
    charged: EventRow | None = None


class UnwritableError(LedgerError):
    """A row was not written, perhaps because of what is in it: it may be too long for the disk."""

    noted = False
    """Whether the ledger notes that an answer was drawn, so that no process draws another."""


@dataclass(eq=False, repr=False)
class Rows:
    """The rows of one ledger, within one transaction.

    Args:
        _execute: Asks the database.
        _ledger: Its name.
        _known_rows: Those that were looked up beforehand, and those that were added.
        _added: The latter.
        moment: The time of the event, if it is made already.
    """

    HEAD: ClassVar[str] = "SELECT seq, hash FROM privmax_ledgers WHERE name = ?"
    APPEND: ClassVar[str] = f"INSERT INTO privmax_events (ledger, {COLUMNS}) VALUES ({HOLES})"

    durable: ClassVar[bool] = True
    """Whether what is read here is on the disk, and outlives whatever happens to the server."""

    _execute: Execute
    _ledger: str
    _head: tuple[int, str] | None = None
    _known_rows: dict[tuple[Any, ...], EventRow | None] = field(default_factory=dict)
    _added: set[EventRow] = field(default_factory=set)
    moment: str | None = None

    def head(self) -> tuple[int, str] | None:
        """Return number and hash of the last event, as the database noted them.

        None where there is no such ledger.
        """
        if self._head is None:  # once is enough: a transaction that writes has the ledger to itself
            self._take(self._execute(self.HEAD, [self._ledger]))
        return self._head

    def _take(self, heads: list[tuple[Any, ...]]) -> None:
        """Remember what the database noted as the head."""
        if heads and not isinstance(heads[0][0], int):
            raise LedgerError(
                f"The database no longer says which event of the ledger {self._ledger!r} is the "
                f"last. Restore a backup."
            )
        self._head = (heads[0][0], str(heads[0][1])) if heads else None

    def at(self, seq: int) -> EventRow | None:
        return self.by_number(seq).get(seq)

    def by_number(self, *seqs: int) -> dict[int, EventRow]:
        """Return those of some events that are there, by number."""
        known = {
            seq: self._known_rows["seq", seq] for seq in seqs if ("seq", seq) in self._known_rows
        }
        rows = {seq: row for seq, row in known.items() if row is not None}
        unknown = sorted(set(seqs) - set(known))
        if unknown:
            query = f"{_EVENTS} AND seq IN ({', '.join('?' * len(unknown))})"
            rows |= {
                row.seq: row
                for row in (
                    EventRow(*columns) for columns in self._execute(query, [self._ledger, *unknown])
                )
            }
        return rows

    def outside(self, last: int) -> list[EventRow]:
        """Return the first event numbered below 1, and the first above the last one.

        There should be none.
        """
        below = self._row("AND seq < 1 ORDER BY seq LIMIT 1")
        return [*([] if below is None else [below]), *self.after(last, 1)]

    def of_request(self, request: str, kind: str) -> EventRow | None:
        key = "request", request, kind
        return (
            self._known_rows[key]
            if key in self._known_rows
            else self._row("AND request = ? AND kind = ?", request, kind)
        )

    def last_of_account(self, account: str, before: int = LAST) -> EventRow | None:
        """Return the last event of an account, among those before one."""
        key = "account", account, before
        if key in self._known_rows:
            return self._known_rows[key]
        return self._row("AND account = ? AND seq < ? ORDER BY seq DESC LIMIT 1", account, before)

    def ledgers(self) -> list[str]:
        """Return the names of all ledgers of the database, sorted."""
        names = self._execute("SELECT name FROM privmax_ledgers", [])
        return sorted(str(name) for (name,) in names)

    def accounts(self) -> list[str]:
        """Return the names of the accounts, in the order in which they were opened."""
        rows = self._execute(_ACCOUNTS, [self._ledger] * 3)
        return [str(account) for account, _ in rows]

    def after(self, seq: int, limit: int, end: int = LAST) -> list[EventRow]:
        """Return at most so many rows behind one, in order, up to a last one."""
        up_to = [] if end == LAST else [end]  # without it, numbers that are text come, too
        query = f"{_EVENTS} AND seq > ? {'AND seq <= ? ' * len(up_to)}ORDER BY seq LIMIT ?"
        bound = [self._ledger, seq, *up_to, limit]
        return [EventRow(*columns) for columns in self._execute(query, bound)]

    def last_up_to(self, seq: int, skip: int = 0) -> EventRow | None:
        """Return the last row up to a number, after so many are left out.

        Numbers may have gaps or be fractions where one was forged, so nothing is computed from
        them.
        """
        return self._row("AND seq <= ? ORDER BY seq DESC LIMIT 1 OFFSET ?", seq, skip)

    def last_before(self, seq: int) -> EventRow | None:
        """Return the last row below a number."""
        return self._row("AND seq < ? ORDER BY seq DESC LIMIT 1", seq)

    def unanswered(self, before: int, limit: int) -> list[EventRow]:
        """Return at most so many charges before an event without an answer, the last first."""
        query = f"{_EVENTS} AND {_OPEN} AND seq < ? ORDER BY seq DESC LIMIT ?"
        return [
            EventRow(*columns) for columns in self._execute(query, [self._ledger, before, limit])
        ]

    def begin(self) -> bool:
        """Take the name of a new ledger; False: it is taken."""
        if self.head() is not None:
            return False
        query = (
            "INSERT INTO privmax_ledgers (name, seq, hash) VALUES (?, 0, '') ON CONFLICT DO NOTHING"
        )
        self._execute(query, [self._ledger])
        return self.head() == (0, "")  # of another process, it would have its first event already

    def append(self, row: EventRow) -> None:
        """Add a row; the database itself moves the head.

        It refuses a row that does not follow the head.
        """
        self._add([self._ledger, *row])
        self._head = row.seq, row.hash
        self._added.add(row)
        self._known_rows["seq", row.seq] = row
        if row.request is not None:
            self._known_rows["request", row.request, row.kind] = row
        if row.account is not None:
            self._known_rows["account", row.account, LAST] = row

    def is_closed(self, charge: EventRow) -> bool:
        """Return whether an answer to an open charge was drawn, so that none may be drawn again."""
        return False

    def close(self, charges: Sequence[EventRow]) -> None:
        """Note durably, before anything else is written, that answers to charges were drawn.

        That succeeds or fails whatever the answers are. From here on a failure closes the requests.
        """

    def is_new(self, row: EventRow) -> bool:
        """Return whether a row was added by this very transaction."""
        return row in self._added

    def _add(self, bound: Sequence[Any]) -> None:
        self._execute(self.APPEND, bound)

    def _row(self, where: str, *bound: Any) -> EventRow | None:
        rows = self._execute(f"{_EVENTS} {where}", [self._ledger, *bound])
        return EventRow(*rows[0]) if rows else None


class Turn:
    """The turn of a thread with a connection, for one transaction.

    Another thread waits. The same thread is refused: a signal handler that uses the handle it
    interrupts would else act within a transaction that is not its own. A process that was forked
    has a turn of its own, whatever happened before.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self.renew()
        _turns.add(self)

    def renew(self) -> None:
        self._lock = (
            threading.RLock()
        )  # not Lock: an interrupt right after it is taken must not wait for itself
        self._busy = False

    @contextmanager
    def take(self) -> Iterator[None]:
        with self._lock:
            if self._busy:
                raise LedgerError(
                    f"{self._shown} is in use by this very thread, as when a signal handler uses "
                    f"the ledger it "
                    "interrupted. Nothing was charged or recorded by this call. Use a second "
                    "Ledger there."
                )
            try:
                self._busy = True
                yield
            finally:
                self._busy = False


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


def _renew() -> None:
    for turn in _turns:
        turn.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class Store(Protocol):
    """A database that holds ledgers."""

    shown: str
    """The place of the ledger, without a password, for people."""

    @property
    def writes(self) -> bool:
        """Whether `write` may be tried now."""

    @property
    def place(self) -> str | os.PathLike[str]:
        """The same for a program, to open it again."""

    def prepare(self) -> None:
        """Make what is missing of the tables; safe when others do so at the same time."""

    def user(self) -> str:
        """Return the user of this machine, the account by default."""

    def reading(self, ledger: str) -> AbstractContextManager[Rows]:
        """Return what was committed."""

    def writing(
        self, ledger: str, request: str | None = None, lookup: Lookup = NOTHING
    ) -> AbstractContextManager[Rows]:
        """Open one transaction with the ledger to itself.

        It is durable when the block has ended without an error.

        Args:
            request: Id by which to try again if no one can know whether it is.
            lookup: What will be asked about: to say so saves time, and changes nothing else.
        """

    def write(self, ledger: str, draft: Draft) -> Rows | None:
        """Have the database add an ordinary event by itself, durably and in one round trip.

        The rows are those it was built on; `append` then checks that it is the right one. None:
        the event was left to `writing`, or no one can know whether it was added.
        """

    def settle(self) -> None:
        """See that all that was read before is on the disk: it may be told to people then."""

    def damage(self) -> Iterator[str]:
        """Yield what the database itself finds wrong with its files."""

    def close(self) -> None: ...


def unknown(request: str | None) -> str:
    """Return what to say when no one can know whether a commit happened."""
    retry = f" Repeat the request {request!r}: that never charges twice." if request else ""
    return f"It is not known whether the commit took effect; count a charge as spent.{retry}"
