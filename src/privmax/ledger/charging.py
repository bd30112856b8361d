"""Charging a ledger and recording answers: each in one transaction, and each only once.

Functions whose name ends in `_in` work within a transaction that is open; so does all that takes
`rows`.

Proof:      docs/proofs/ledger.md, "Retries"
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from privmax.errors import BudgetError, LedgerError, ParameterError
from privmax.ledger.chain import Chain
from privmax.ledger.events import (
    RELEASED,
    RESERVED,
    Charge,
    EventRow,
    canonical,
    is_sealed,
    label,
    portable,
    price_json,
)
from privmax.ledger.replay import Totals
from privmax.ledger.rows import Draft, Lookup, Rows
from privmax.ledger.rules import BASIC, Total, less
from privmax.ledger.shapes import is_moment
from privmax.numbers import round_down, round_up
from privmax.privacy import describe_privacy

T = TypeVar("T")


class ChargeOrder(NamedTuple):
    """A charge that is asked for."""

    charge: Charge
    body: Mapping[str, Any]
    request: str
    account: str | None


class CommittedCharge(NamedTuple):
    """A charge that is committed, its answer, and whether one was drawn that is not recorded."""

    row: EventRow
    answered: EventRow | None = None
    closed: bool = False


def make_order(
    chain: Chain, charge: Charge, what: object, request: str | None, account: str | None
) -> ChargeOrder:
    """Check what is asked for, and give it a request id if it has none."""
    if not isinstance(what, Mapping):
        example = 'For example {"mechanism": "…"}.'
        raise ParameterError("what", type(what), "it must be a mapping", example)
    body = {"what": portable("what", what), "price": price_json(check_price(charge))}
    request = label("request", secrets.token_hex(16) if request is None else request)
    if account is not None:
        label("account", account)
    if chain.origin.part is not None:
        chain.origin.part.check(chain.name, charge)
    return ChargeOrder(charge, body, request, account)


def check_price(value: object) -> Charge:
    """Return a `Charge`; anything else is refused."""
    if isinstance(value, Charge):
        return value
    raise ParameterError(
        "price", value, "it must be of the class Charge", "For example Charge(Privacy(1, 1e-6))."
    )


def is_charged(chain: Chain, charge: Charge, request: str | None, account: str | None) -> bool:
    """Return whether a request was charged before. If not, what does not fit is refused."""
    with chain.reading() as rows:
        if request is not None and rows.of_request(label("request", request), RESERVED) is not None:
            return True
        before = chain.totals(rows, account)
    check_fits(chain, check_price(charge), before, account)
    return False


def require(chain: Chain, order: ChargeOrder) -> None:
    """Refuse what `charge` would refuse now."""
    with chain.reading() as rows:
        if _find_request(chain, rows, order) is None:
            before = chain.totals(rows, order.account)
            check_fits(chain, order.charge, before, order.account)


def fits(chain: Chain, charge: Charge, account: str | None) -> bool:
    """Return whether a charge would be accepted now."""
    before = chain.totals_now(account)
    try:
        check_fits(chain, check_price(charge), before, account)
    except LedgerError:
        return False
    return True


def check_fits(chain: Chain, charge: Charge, before: Totals, account: str | None) -> Totals:
    """Return the totals after a charge. Refuses one that does not fit."""
    if chain.origin.part is not None:
        chain.origin.part.check(chain.name, charge)
    whole = before.whole
    # Charges of privmax 0.1.0 did not say what they hide: its ledgers take the unit of the next.
    says_unit = whole.neighbors is None or whole.unit == charge.unit or not chain.origin.units
    if not (says_unit and whole.takes(charge)):
        raise _relation_error(before.whole, charge, chain.name)
    totals = before.charge(chain.origin.rule, charge)
    pairs = (before.account, totals.account, account), (before.whole, totals.whole, None)
    for old, new, whose in pairs:  # the account first
        if old is not None and new is not None and not new.fits():
            raise _budget_error(old, new, chain.name, whose)
    return totals


def charge(chain: Chain, order: ChargeOrder) -> CommittedCharge:
    """Charge, or find the charge and its answer."""
    done = None
    if chain.store.writes and chain.origin.rule.name == BASIC:
        draft = chain.draft(RESERVED, order.request, order.account, order.body)
        done = _write(chain, draft, partial(charge_in, chain, order=order))
    if done is None:
        with chain.store.writing(chain.name, order.request, look_up(chain, [order])) as rows:
            done = charge_in(chain, rows, order)
    chain.note(done.row)
    return done


def charge_in(chain: Chain, rows: Rows, order: ChargeOrder) -> CommittedCharge:
    """Charge an order within a transaction."""
    earlier = _find_request(chain, rows, order)
    if earlier is not None:
        charged, answered = earlier
        return CommittedCharge(charged, answered, answered is None and rows.is_closed(charged))
    before = chain.totals(rows, order.account)
    totals = check_fits(chain, order.charge, before, order.account)
    own = {"request": order.request, "account": order.account}
    return CommittedCharge(chain.append(rows, RESERVED, order.body, totals, **own))


def _find_request(
    chain: Chain, rows: Rows, order: ChargeOrder
) -> tuple[EventRow, EventRow | None] | None:
    """Find the charge of a request, and its answer; None where it was not charged.

    Refuses one that was charged for something else.
    """
    charged = rows.of_request(order.request, RESERVED)
    if charged is None:
        return None
    _check_same(charged, chain.event(charged).body, order.body, order.account)
    if charged != chain.known and not rows.is_new(charged):
        chain.check_follows(rows, charged, rows.at(charged.seq - 1))
    return charged, _find_answer(chain, rows, charged)


def record(chain: Chain, charged: EventRow, body: Mapping[str, Any], *, ours: bool) -> EventRow:
    """Record an answer to what was charged, or find the one that is recorded.

    Args:
        chain: The ledger.
        charged: The charge.
        body: What was drawn, as an event says it.
        ours: Whether the request is closed for nothing but this answer.
    """
    request = str(charged.request)
    write = partial(record_in, chain, charged=charged, body=body, ours=ours)
    recorded = None
    if chain.store.writes:
        draft = chain.draft(RELEASED, request, charged.account, body, charged)
        recorded = _write(chain, draft, write)
    if recorded is None:
        with chain.store.writing(chain.name, request, look_up(chain, [charged])) as rows:
            recorded = write(rows)
    chain.note(recorded)
    return recorded


def record_in(
    chain: Chain, rows: Rows, charged: EventRow, body: Mapping[str, Any], *, ours: bool
) -> EventRow:
    """Record an answer within a transaction."""
    request, account = str(charged.request), charged.account
    recorded = find_recorded(chain, rows, charged, ours=ours)
    if recorded is None:
        totals = chain.totals(rows, account)
        rows.close([charged])  # all that failed before this had nothing to do with the answer
        recorded = chain.append(rows, RELEASED, body, totals, request=request, account=account)
    return recorded


def find_recorded(chain: Chain, rows: Rows, charged: EventRow, *, ours: bool) -> EventRow | None:
    """Return the answer that is recorded for a charge; None: one may be recorded."""
    request = str(charged.request)
    now = rows.of_request(request, RESERVED)
    if now is None or (now.seq, now.hash) != (charged.seq, charged.hash):
        raise LedgerError(
            f"The charge of the request {request!r}, event {charged.seq} of the ledger "
            f"{chain.name!r}, is gone; "
            "nothing may be released. Run verify, and restore a backup."
        )
    recorded = _find_answer(chain, rows, now)
    if recorded is None and not ours and rows.is_closed(now):
        raise LedgerError(
            f"Another answer to the request {request!r} was drawn and could not be recorded. "
            "The request is closed, and no other answer is taken. Record that there is none, "
            "with Reservation.close."
        )
    return recorded


def _find_answer(chain: Chain, rows: Rows, charged: EventRow) -> EventRow | None:
    """Return the answer to a charge, if there is one.

    Refuses an answer of another user than the one who was charged.
    """
    answered = rows.of_request(str(charged.request), RELEASED)
    if answered is None:
        if charged.who != chain.who:
            raise LedgerError(
                f"The request {charged.request!r} was charged by {charged.who!r} and has no "
                f"answer yet; only they can have it drawn, not {chain.who!r}. Nothing was "
                "charged now. Use a request id of your own."
            )
        return None
    before = rows.at(answered.seq - 1)
    belongs = (answered.account, answered.who) == (
        charged.account,
        charged.who,
    ) and answered.seq > charged.seq
    sealed = before is not None and is_sealed(before.hash, chain.name, answered)
    if not (belongs and sealed and is_moment(answered.moment)):
        raise LedgerError(
            f"Event {answered.seq} of the ledger {chain.name!r} is not an answer to the request "
            f"{charged.request!r}: it was changed, or recorded by a user who was not "
            "charged. It is not released. Run verify."
        )
    return answered


def look_up(chain: Chain, entries: Iterable[ChargeOrder | EventRow]) -> Lookup:
    """Return what charges or records ask about."""
    pairs = [(str(one.request), one.account) for one in entries]
    requests = dict.fromkeys(request for request, _ in pairs)
    accounts = dict.fromkeys(account for _, account in pairs if account is not None)
    return Lookup(list(requests), list(accounts), 0 if chain.seen is None else chain.seen[0])


def _write(chain: Chain, draft: Draft, write: Callable[[Rows], T]) -> T | None:
    """Have the database write an event by itself, and check that with what would write it.

    None: it did not, or no one can know.
    """
    rows = chain.store.write(chain.name, draft)
    if rows is None:
        return None
    try:
        return write(rows)
    except LedgerError as error:
        reason = str(error)
    raise LedgerError(
        f"The database has written an event of the ledger {chain.name!r} for the request "
        f"{draft.request!r} that privmax would not have written. Nothing may be drawn or released "
        f"for it. {reason}"
    )


def _check_same(
    charged: EventRow, was: Mapping[str, Any], body: Mapping[str, Any], account: str | None
) -> None:
    """Refuse a request id that stands for something else."""
    differ, data = [], False
    for name in ("what", "price"):
        then, now = was.get(name), _state_then(was.get(name), body[name])
        if canonical(then) != canonical(now):
            parts = sorted(_differing(then, now))
            title = {"what": "question", "price": "privacy cost"}[name]
            differ.append(f"{title} ({', '.join(parts)})" if parts else title)
            data |= not {"data", "dataset"}.isdisjoint(parts)
    differ += ["account"] if account != charged.account else []
    if differ:
        moved = " If the same data has moved, give it a name with dataset." if data else ""
        raise LedgerError(
            f"The request {charged.request!r} was charged before, at event {charged.seq}, with a "
            f"different {' and a different '.join(differ)}. Nothing was charged now. Use a new id "
            f"for a new request.{moved}"
        )


_NEW = "columns", "data", "labels", "rho", "unit"
"""The fields of a request that earlier versions did not record."""


def _state_then(then: object, now: Any) -> Any:
    """Return what is charged now, without what was not recorded then."""
    if not isinstance(then, dict) or not isinstance(now, dict):
        return now
    return {name: value for name, value in now.items() if name not in _NEW or name in then}


def _differing(one: object, other: object) -> Iterator[str]:
    """Yield the names of what differs between two JSON objects, and in those within them.

    Values are not named.
    """
    if not isinstance(one, dict) or not isinstance(other, dict):
        return
    for name in one.keys() | other.keys():
        if name not in one or name not in other or canonical(one[name]) != canonical(other[name]):
            shown = name if name.isprintable() else repr(name)
            inner = [f"{shown}.{part}" for part in _differing(one.get(name), other.get(name))]
            yield from inner or [shown]


def _relation_error(total: Total, charge: Charge, name: str) -> LedgerError:
    """Return the error about a cost under another neighbor relation, or for another unit.

    Nothing is proved about the sum of such costs.
    """
    if total.neighbors in (None, charge.neighbors) and None in (total.unit, charge.unit):
        silent = f"The charges to the ledger {name!r} do", f"and this one is per {charge.unit}"
        if charge.unit is None:
            silent = "This request does", f"and the ledger {name!r} counts it per {total.unit}"
        return LedgerError(
            f"{silent[0]} not say what the privacy cost hides, {silent[1]}: such costs do not add "
            "up. Nothing was charged. Give every charge the same unit, for example "
            f'Charge(…, unit="{total.unit or charge.unit}"), or charge another ledger.'
        )
    if total.neighbors in (None, charge.neighbors):
        return LedgerError(
            f"The ledger {name!r} counts the privacy cost per {total.unit}, and this request "
            f"counts it per {charge.unit}: such costs do not add up. Nothing was charged. Ask with "
            f"the unit {total.unit} if every {charge.unit} is one {total.unit} in this data, or "
            "charge another ledger."
        )
    return LedgerError(
        f"The ledger {name!r} counts the privacy cost for {total.neighbors} neighbors, and this "
        f"request counts it for {charge.neighbors} neighbors: such costs do not add up. Nothing "
        f"was charged. Ask with neighbors {total.neighbors}, or charge another ledger."
    )


def _budget_error(old: Total, new: Total, name: str, account: str | None) -> BudgetError:
    """Return the error about a charge that does not fit into the ledger, or into an account."""
    cost, left = less(new.spent, old.spent), old.left()
    holder = f"the ledger {name!r}"
    if account is not None:
        holder = f"the account {account!r} of {holder}"
    return BudgetError(
        f"The budget does not allow it: the privacy cost is {describe_privacy(cost, round_up)}, "
        f"and {holder} has {describe_privacy(left, round_down)} left. Nothing was charged. Ask for "
        "less, or have the budget raised.",
        cost,
        left,
        account,
    )
