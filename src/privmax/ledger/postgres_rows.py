"""Reads and writes rows of a PostgreSQL ledger: by functions, by insert, or compared.

Proof:      docs/proofs/ledger.md, "Durability on PostgreSQL"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privmax.errors import LedgerError
from privmax.ledger.events import RELEASED, RESERVED, EventRow
from privmax.ledger.rows import COLUMNS, HOLES, LAST, Draft, Execute, Lookup, Rows

Bound = tuple[str, Sequence[Any]]
"""A query and what is bound to it."""


class ServerRows(Rows):
    """Rows of a server, which shows what is committed before it is on the disk."""

    durable = False


class FunctionRows(ServerRows):
    """Rows that are written through the functions of the database.

    Events are sent together with the commit, and before anything else is asked.
    """

    HEAD = "SELECT seq, hash FROM privmax_lock(?)"
    APPEND = f"SELECT privmax_append({HOLES})"
    LOOK = f"SELECT told, account_before, {COLUMNS} FROM privmax_look(?, ?::text[], ?::text[], ?)"

    def __init__(self, execute: Execute, ledger: str) -> None:
        super().__init__(self._ask, ledger)
        self._send = execute
        self.unsent: list[Bound] = []

    def _ask(self, query: str, bound: Sequence[Any]) -> list[tuple[Any, ...]]:
        unsent, self.unsent = self.unsent, []
        for earlier in unsent:
            self._send(*earlier)
        return self._send(query, bound)

    def _add(self, bound: Sequence[Any]) -> None:
        self.unsent.append((self.APPEND, bound))

    def opening(self, lookup: Lookup) -> list[Bound]:
        """Return what to ask at the beginning.

        For the lock, and then for all that an ordinary charge or record needs.
        """
        bound = [self._ledger, list(lookup.requests), list(lookup.accounts), lookup.seen]
        return [(self.HEAD, [self._ledger]), (self.LOOK, bound)]

    def remember(
        self, lookup: Lookup, head: list[tuple[Any, ...]], looked: list[tuple[Any, ...]]
    ) -> None:
        """Remember what the answers to `opening` say."""
        self._take(head)
        if self._head is None:
            return
        seq = self._head[0]
        for number in (seq, seq - 1, lookup.seen):
            self._known_rows["seq", number] = None
        for request in lookup.requests:
            self._known_rows["request", request, RESERVED] = self._known_rows[
                "request", request, RELEASED
            ] = None
        for account in lookup.accounts:
            self._known_rows["account", account, LAST] = None
        last = None
        for key, before, *columns in looked:
            row = EventRow(*columns)
            if key == "seq":
                self._known_rows["seq", row.seq] = row
                last = row if row.seq == seq else last
            elif key == "request":
                self._known_rows["request", row.request, row.kind] = row
            else:
                self._known_rows["account", row.account, LAST if before is None else before] = row
        if last is not None and last.account is not None:
            self._known_rows.setdefault(("account", last.account, seq), None)


class DraftRows(ServerRows):
    """Rows around an event that the database has added by itself; to append it again compares it.

    The event is committed when this is made. It is what privmax would have written, or an error.
    """

    def __init__(
        self, execute: Execute, ledger: str, draft: Draft, written: Sequence[tuple[Any, ...]]
    ) -> None:
        super().__init__(execute, ledger)
        self.moment = draft.moment
        last, before, own, other, self._event = (EventRow(*columns) for columns in written)
        seen, digest = draft.seen  # that it is there, and is the one, was asked of the database
        self._known_rows["seq", seen] = EventRow(seen, "", "", "", None, None, "", "", digest)
        self._head = last.seq, last.hash
        self._known_rows["seq", last.seq] = last
        self._known_rows["seq", last.seq - 1] = None if before.seq is None else before
        if last.account is not None:
            self._known_rows["account", last.account, last.seq] = (
                None if other.seq is None else other
            )
        self._known_rows["request", draft.request, RESERVED] = draft.charged
        self._known_rows["request", draft.request, RELEASED] = None
        if own.account is not None:
            self._known_rows["account", own.account, LAST] = own

    def _add(self, bound: Sequence[Any]) -> None:
        if EventRow(*bound[1:]) != self._event:
            raise LedgerError(
                f"The database wrote event {self._event.seq} of the ledger {self._ledger!r} "
                "differently from what follows. Nothing may be drawn or released for it. Run "
                "verify."
            )


class DirectRows(ServerRows):
    """Rows that are inserted, as by an owner of tables that version 0.1.0 made."""

    HEAD = f"{Rows.HEAD} FOR UPDATE"
