"""The chain of events of one ledger, as one handle sees it: which is the last, and what follows.

`Chain` is the only thing that the subjects of a ledger (opening, charging, reading, accounts and
parts) have in common. It holds the name, the store and who works with it, and remembers what this
handle has read: what the ledger was made with, and the last events that it has checked and seen.

Proof:      docs/proofs/ledger.md, "What the hashes say"
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from privmax.errors import LedgerError
from privmax.ledger.events import SCHEMA, Event, EventRow, canonical, privacy_of, seal
from privmax.ledger.group import GroupCommit
from privmax.ledger.parts import LedgerPart
from privmax.ledger.replay import Totals, follows, totals_of
from privmax.ledger.rows import Draft, Rows, Store
from privmax.ledger.rules import CompositionRule, find_rule
from privmax.ledger.shapes import UNREADABLE, FormError, parse
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from privmax.ledger.commits import LedgerEntry

MOST_NAMES = 10
"""The most names of ledgers or accounts that an error lists."""


class Origin(NamedTuple):
    """The origin of a ledger.

    Attributes:
        budget: Its first budget.
        rule: How costs add up.
        strict: Whether releases are charged before their data is read.
        id: Its identity; "" where an older privmax made it.
        part: What it is a part of; None: it is a whole ledger.
        units: Whether all charges say what they hide, or none does; privmax 0.1.0 never did.
    """

    budget: Privacy
    rule: CompositionRule
    strict: bool
    id: str
    part: LedgerPart | None
    units: bool


@dataclass(eq=False, repr=False)
class Chain:
    """The events of one ledger, and what one handle knows about them.

    Attributes:
        name: Name of the ledger.
        store: The database that holds it.
        who: Who charges it.
        known: The last event that was seen to follow from those before it.
        seen: Number and hash of the last event that this handle knows to be committed.
        group: The threads that charge or record by this handle, and are served together.
    """

    name: str
    store: Store
    who: str
    known: EventRow | None = None
    seen: tuple[int, str] | None = None
    group: GroupCommit[LedgerEntry] = field(default_factory=GroupCommit)
    _origin: Origin | None = None

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open a transaction that reads. The first one also reads what the ledger was made with."""
        with self.store.reading(self.name) as rows:
            if self._origin is None:
                self._origin = self._read_origin(rows)
            yield rows

    @property
    def origin(self) -> Origin:
        """The origin of the ledger."""
        if self._origin is None:
            with self.reading():
                pass  # which reads it
        assert self._origin is not None
        return self._origin

    def totals_now(self, account: str | None = None) -> Totals:
        """Read budget and spending in a transaction of their own."""
        with self.reading() as rows:
            return self.totals(rows, account)

    def totals(self, rows: Rows, account: str | None) -> Totals:
        """Budget and spending now, of the whole and of an account."""
        whole = self.totals_at(self.last(rows)).whole
        if account is None:
            return Totals(whole)
        row = rows.last_of_account(account)
        own = None if row is None else self.totals_at(row).account
        if own is None:
            known = rows.accounts()
            raise LedgerError(
                f"The ledger {self.name!r} has no account {account!r}.{_list_names(known)}",
                missing="account",
                known=known,
                remedy="Open it with open_account.",
            )
        return Totals(whole, own)

    def totals_at(self, row: EventRow) -> Totals:
        """Budget and spending after an event, as it says."""
        try:
            totals = totals_of(row.totals)
            for total in filter(None, (totals.whole, totals.account)):
                self.origin.rule.check(total)
            return totals
        except UNREADABLE:
            raise self.damage_error(row.seq) from None

    def head(self, rows: Rows) -> tuple[int, str]:
        """Return number and hash of the last event, as the database noted them."""
        head = rows.head()
        if head is None:
            known = rows.ledgers()
            raise LedgerError(
                f"{self.store.shown} has no ledger {self.name!r}.{_list_names(known)}",
                missing="ledger",
                known=known,
                remedy="Create it with Ledger.create, or by giving a budget.",
            )
        return head

    def last(self, rows: Rows) -> EventRow:
        """Return the last event. Refuses one that nothing can be built on."""
        seq, noted = head = self.head(rows)
        seen = head if self.seen is None else self.seen
        near = rows.by_number(seq, seq - 1, seen[0])
        row = near.get(seq)
        if row is None or row.hash != noted:
            raise self.damage_error(seq)
        if row != self.known:
            self.check_follows(rows, row, near.get(seq - 1))
            self.known = row
        if seen[0] > seq or seen[0] not in near or near[seen[0]].hash != seen[1]:
            raise LedgerError(
                f"The ledger {self.name!r} lost event {seen[0]}, which this process has seen: an "
                "older copy replaced it, or a server without the last commits took over. Nothing "
                "is charged or recorded. Charge what may be missing, and open the ledger again."
            )
        if rows.durable and not rows.is_new(row):  # else it may be undone yet
            self.seen = head
        return row

    def check_follows(self, rows: Rows, row: EventRow, before: EventRow | None) -> None:
        """Refuse to build on an event that was written wrong, without privmax.

        It looks one step back.
        """
        own = None if row.account is None else rows.last_of_account(row.account, row.seq)
        rule = self.origin.rule
        if (before is None and row.seq > 1) or not follows(self.name, rule, row, before, own):
            raise LedgerError(
                f"Event {row.seq} of the ledger {self.name!r} does not follow from the events "
                "before it. Nothing more is charged. Run verify, and restore a backup."
            )

    def event(self, row: EventRow, *names: str) -> Event:
        """Return the event of a row.

        Refuses one that cannot be read, or holds nothing by one of the names.
        """
        with suppress(FormError):
            event = parse(row)
            if event.body.keys() >= set(names):
                return event
        raise self.damage_error(row.seq)

    def damage_error(self, seq: int) -> LedgerError:
        """Return the error about an event that is missing or was changed."""
        return LedgerError(
            f"Event {seq} of the ledger {self.name!r} is missing or was changed. Nothing more is "
            "charged. Run verify, and restore a backup."
        )

    def append(
        self,
        rows: Rows,
        kind: str,
        body: Mapping[str, Any],
        totals: Totals,
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> EventRow:
        """Add an event, within a transaction."""
        seq, before = self.head(rows)
        texts = canonical(body), canonical(totals.as_json())
        moment = rows.moment or now()
        row = EventRow(seq + 1, kind, moment, self.who, request, account, *texts, "")
        row = seal(before, self.name, row)
        rows.append(row)
        self.known = row  # if it is not committed, no event will equal it
        return row

    def draft(
        self,
        kind: str,
        request: str,
        account: str | None,
        body: Mapping[str, Any],
        charged: EventRow | None = None,
    ) -> Draft:
        """Return an event that the database may add by itself, upon what this handle knows."""
        known = None if self.known is None else self.known.hash
        texts = kind, now(), self.who, request, account, canonical(body)
        return Draft(*texts, known, self.seen or (0, ""), charged)

    def note(self, row: EventRow) -> None:
        """Note an event that is committed."""
        self.seen = max(self.seen or (0, ""), (row.seq, row.hash))

    def _read_origin(self, rows: Rows) -> Origin:
        """Return what the first event says that the ledger was made with."""
        self.head(rows)
        row = rows.at(1)
        if row is None:
            raise LedgerError(
                f"The ledger {self.name!r} has lost its first event. Restore a backup."
            )
        body = self.event(row).body
        if body.get("schema") != SCHEMA:
            raise LedgerError(
                f"The ledger {self.name!r} uses event format {body.get('schema')!r}; this privmax "
                f"reads format {SCHEMA}. Use the privmax version that made it, or a newer one."
            )
        try:
            part = body.get("part")
            return Origin(
                budget=privacy_of(body["budget"]),
                rule=find_rule(body["rule"]),
                strict=body.get("strict", False) is not False,
                id=str(body.get("id", "")),
                part=None if part is None else LedgerPart(**part),
                units=body.get("units", False) is not False,
            )
        except UNREADABLE:
            raise self.damage_error(1) from None


def now() -> str:
    """Return what the clock says, as events write it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def _list_names(known: Sequence[str]) -> str:
    """Return what there is instead, as a sentence."""
    if not known:
        return ""
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f" It has {', '.join(map(repr, known[:MOST_NAMES]))}{more}."
