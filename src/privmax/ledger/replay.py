"""Adds an event to the totals, and checks whether a whole history adds up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from privmax.ledger import events, shapes
from privmax.ledger.events import (
    Charge,
    EventRow,
    Fault,
    canonical,
    is_sealed,
    price_of,
    privacy_of,
)
from privmax.ledger.rules import CompositionRule, Total, find_rule, total_of
from privmax.ledger.shapes import UNREADABLE
from privmax.privacy import Privacy


@dataclass(frozen=True)
class Totals:
    """Budget and spending of the whole, and of the account an event concerns."""

    whole: Total
    account: Total | None = None

    def charge(self, rule: CompositionRule, charge: Charge) -> Totals:
        """Return what they are after one more charge; whether that fits is not asked here."""
        own = self.account
        return Totals(rule.add(self.whole, charge), None if own is None else rule.add(own, charge))

    def left(self) -> Privacy:
        """Return what may still be charged: of the whole and of the account, whichever has less."""
        left = self.whole.left()
        if self.account is None:
            return left
        own = self.account.left()
        return Privacy(min(left.epsilon, own.epsilon), min(left.delta, own.delta))

    def as_json(self) -> dict[str, Any]:
        own = {} if self.account is None else {"account": self.account.as_json()}
        return {"whole": self.whole.as_json(), **own}


def totals_of(text: str) -> Totals:
    value = json.loads(text)
    return Totals(
        total_of(value["whole"]), total_of(value["account"]) if "account" in value else None
    )


def after(
    rule: CompositionRule,
    kind: str,
    body: Mapping[str, Any],
    totals: Totals,
    like: Totals | None = None,
) -> Totals:
    """Return the totals after an event of the ledger, or of the account in `totals`.

    Whether they fit is not asked here.

    Args:
        like: What is recorded as such, perhaps in the way of an older version.
    """
    whole, own = totals.whole, totals.account
    match kind:
        case events.RESERVED:
            return totals.charge(rule, price_of(body["price"]))
        case events.GRANTED:
            more = privacy_of(body["more"])
            return Totals(whole, own.grant(more)) if own else Totals(whole.grant(more))
        case events.ACCOUNT:
            return Totals(
                whole,
                rule.start(privacy_of(body["budget"]), None if like is None else like.account),
            )
        case _:
            return totals


def follows(
    ledger: str, rule: CompositionRule, row: EventRow, before: EventRow | None, own: EventRow | None
) -> bool:
    """Return whether one event may be built on.

    Its hash is right, its totals follow from those before it, and they fit.

    It costs the same however long the history is; the totals before it are taken as they are. All
    else that may be wrong with an event is for `faults` to find.

    Args:
        before: The event before it; None: it is the first.
        own: The event before it of its account, if there is one.
    """
    try:
        if not is_sealed("" if before is None else before.hash, ledger, row):
            return False
        body, later = json.loads(row.body), totals_of(row.totals)
        if not all(total.fits() for total in (later.whole, later.account) if total is not None):
            return False
        if before is None:
            return later == Totals(rule.start(privacy_of(body["budget"]), later.whole))
        account = None if own is None else totals_of(own.totals).account
        if (account is None) != (row.account is None or row.kind == events.ACCOUNT):
            return False
        totals = Totals(totals_of(before.totals).whole, account)
        if row.kind != events.RESERVED:
            return later == after(rule, row.kind, body, totals, later)
        pairs = [
            (totals.whole, later.whole),
            *([] if account is None else [(account, later.account)]),
        ]
        charge = price_of(body["price"])
        return all(new is not None and rule.counts(old, charge, new) for old, new in pairs)
    except UNREADABLE:
        return False


_MIXED = (
    "it is charged under another neighbor relation than the charges before it",
    "it is charged for another unit of privacy than the charges before it",
)
_OUTSIDE = (
    "events are numbered from 1",
    "it comes after the event that the database noted as the last one",
)


def faults(
    ledger: str, rows: Iterable[EventRow], head: tuple[int, str], outside: Iterable[EventRow] = ()
) -> list[Fault]:
    """List everything that is wrong with a history.

    One change is listed once: what follows is judged by what is recorded.

    Args:
        outside: Events of the ledger that were not between 1 and the last when that was read.
    """
    replay = _Replay(ledger)
    results = [Fault(row.seq, _OUTSIDE[row.seq > 0]) for row in outside if isinstance(row.seq, int)]
    results += [Fault(seq, what) for row in rows for seq, what in replay.row(row)]
    last, noted = replay.last, head[0]
    if last < noted:
        results.append(
            Fault(
                last + 1,
                f"events {last + 1} to {noted} are missing"
                if last + 1 < noted
                else "it is missing",
            )
        )
    elif head != (last, replay.hash):
        results.append(Fault(last, "it is not the event that the database noted as the last one"))
    return results


@dataclass
class _Replay:
    """A walk along the rows. It holds the request ids and the totals of accounts, not the rows."""

    ledger: str
    last: int = 0
    hash: str = ""
    rule: CompositionRule | None = None
    whole: Total | None = None
    accounts: dict[str, Total] = field(default_factory=dict)
    requests: dict[str, tuple[str | None, str, bool]] = field(default_factory=dict)
    """By request id: its account, who was charged, and whether an answer is recorded."""

    def row(self, row: EventRow) -> Iterator[tuple[int, str]]:
        if type(row.seq) is not int:  # a damaged file may hold anything
            yield 0, "an event has an invalid number"
            return
        if row.seq != self.last + 1:
            missing = f"events {self.last + 1} to {row.seq - 1} are missing"
            yield self.last + 1, missing if row.seq > self.last + 2 else "it is missing"
        elif not is_sealed(self.hash, self.ledger, row):
            yield row.seq, "its hash does not match: it, or the event before it, was changed"
        self.last, self.hash = row.seq, row.hash
        faults = list(self._check(row))
        yield from ((row.seq, what) for what in faults or shapes.faults(row))

    def _check(self, row: EventRow) -> Iterator[str]:
        """Faults of what it says."""
        try:
            body, written = json.loads(row.body), json.loads(row.totals)
            totals = totals_of(row.totals)
            if (canonical(body), canonical(written)) != (row.body, row.totals):
                yield "it is not in the form of events"
            if not shapes.is_moment(row.moment):
                yield "its time is invalid"
            yield from self._content(row, body, totals)
        except UNREADABLE:
            yield "its content cannot be read"

    def _content(self, row: EventRow, body: dict[str, Any], totals: Totals) -> Iterator[str]:
        if (row.kind == events.CREATED) != (row.seq == 1):
            yield "the history must begin with the creation of the ledger, which occurs once"
        yield from self._names(row, body)
        before = self._before(row, body, totals)
        if before is None or self.rule is None:
            yield "no event before it says to which budget it belongs"
        else:
            if row.kind == events.RESERVED and not before.whole.takes(price_of(body["price"])):
                yield _MIXED[before.whole.neighbors in (None, price_of(body["price"]).neighbors)]
            expected = after(self.rule, row.kind, body, before, totals)
            for whose, *compared in (
                ("the ledger", before.whole, expected.whole, totals.whole),
                ("its account", before.account, expected.account, totals.account),
            ):
                differences = _differences(
                    self.rule if row.kind == events.RESERVED else None, *compared
                )
                yield from (f"{what} of {whose}" for what in differences)
        self.whole = totals.whole
        if row.account is not None and totals.account is not None:
            self.accounts[row.account] = totals.account

    def _before(self, row: EventRow, body: dict[str, Any], totals: Totals) -> Totals | None:
        """Return the totals before the event, of the whole and of its account.

        None where there is nothing to go by.
        """
        if row.seq == 1:
            self.rule = find_rule(body["rule"])
            return Totals(self.rule.start(privacy_of(body["budget"]), totals.whole))
        if self.whole is None:
            return None
        if row.account is None or row.kind == events.ACCOUNT:
            return Totals(self.whole)
        own = self.accounts.get(row.account)
        return None if own is None else Totals(self.whole, own)

    def _names(self, row: EventRow, body: dict[str, Any]) -> Iterator[str]:
        """Faults of ids and names: which request, which account, which ledger."""
        match row.kind:
            case events.CREATED:
                if body["name"] != self.ledger:
                    yield "it is the creation of a ledger of another name"
            case events.RESERVED:
                if row.request is None or row.request in self.requests:
                    yield "its request was charged before, or has no id"
                else:
                    self.requests[row.request] = row.account, row.who, False
            case events.RELEASED:
                charged = None if row.request is None else self.requests.get(row.request)
                if row.request is None or charged is None:
                    yield "an answer was released without a charge"
                elif charged != (row.account, row.who, False):
                    yield (
                        "its request has an answer already, or was charged to another account or "
                        "by another user"
                    )
                else:
                    self.requests[row.request] = row.account, row.who, True
            case events.ACCOUNT:
                if row.account is None or row.account in self.accounts:
                    yield "its account was opened before, or has no name"
            case events.GRANTED:
                pass
            case _:
                yield "there is no such kind of event"


def _differences(
    rule: CompositionRule | None,
    before: Total | None,
    expected: Total | None,
    recorded: Total | None,
) -> Iterator[str]:
    """List in what a recorded total is not the expected one. `rule`: of the ledger, at a charge."""
    if expected is None or recorded is None:
        if expected is not recorded:
            yield "it records no totals, or should record none,"
        return
    if expected.budget != recorded.budget:
        yield "its recorded budget does not follow from the events"
    if expected.neighbors != recorded.neighbors:
        yield "its recorded neighbor relation does not follow from the events"
    if expected.unit != recorded.unit:
        yield "its recorded unit of privacy does not follow from the events"
    near = rule.is_near(expected, recorded.spent) if rule else expected.spent == recorded.spent
    falls = before is not None and recorded.spent.epsilon < before.spent.epsilon
    if expected.state != recorded.state or falls or not near:
        yield "the charges do not add up to what it records as spent"
    if not recorded.fits():
        yield "more is spent than was granted"
