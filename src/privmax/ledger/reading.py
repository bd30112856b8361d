"""Reading a ledger: its history, what is spent, what has no answer, and whether it adds up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from privmax.errors import LedgerError
from privmax.ledger.accounts import read_accounts
from privmax.ledger.chain import Chain
from privmax.ledger.events import RELEASED, RESERVED, Event, EventRow, Fault, label
from privmax.ledger.replay import faults, follows
from privmax.ledger.rows import LAST, Rows
from privmax.ledger.rules import Total, less, total_of
from privmax.ledger.shapes import mark
from privmax.notebook import facts, table
from privmax.numbers import round_down, round_up, whole
from privmax.privacy import Privacy, describe_privacy

PAGE = 500
"""Events read at a time: a history is never held as a whole."""


class Standing(NamedTuple):
    """The granted and the spent budget of a ledger, for people.

    Attributes:
        whole: Budget, spending, neighbor relation and unit of the whole.
        accounts: Budget and spending of every account.
        fault: The first event that nothing can be built on; all else is as it was before it. None:
            there is none.
    """

    whole: Total
    accounts: dict[str, tuple[Privacy, Privacy]]
    fault: Fault | None = None


def find_events(chain: Chain, request: str) -> tuple[Event | None, Event | None]:
    """Return the charge of a request and its answer; None where there is none."""
    known = label("request", request)
    with chain.reading() as rows:
        pair = [rows.of_request(known, kind) for kind in (RESERVED, RELEASED)]
    charged, answered = (None if row is None else mark(row) for row in pair)
    for event in filter(None, (charged, answered)):
        if event.fault is not None:
            raise chain.damage_error(event.seq)
    return charged, answered


def knows(chain: Chain, request: str) -> bool:
    """Return whether a request was charged."""
    with chain.reading() as rows:
        return rows.of_request(label("request", request), RESERVED) is not None


def left_after(chain: Chain, request: str) -> Privacy:
    """Return what was left when a request was answered."""
    row = chain.known
    if (
        row is None
        or (row.request, row.kind) != (request, RELEASED)
        or (row.seq, row.hash) != chain.seen  # else it may not be committed
    ):
        with chain.reading() as rows:
            row = rows.of_request(label("request", request), RELEASED)
    if row is None:
        raise LedgerError(f"The request {request!r} has no answer in the ledger {chain.name!r}.")
    return chain.totals_at(row).left()


def standing(chain: Chain) -> Standing:
    """Return what was granted and is spent, also where the last events cannot be built on."""
    with chain.reading() as rows:
        row, fault = _last_sound(chain, rows)
        accounts = {}
        for account in rows.accounts():
            last = rows.last_of_account(account, row.seq + 1)
            own = None if last is None else mark(last)
            if own is not None and own.fault is None and "account" in own.totals:
                total = total_of(own.totals["account"])
                accounts[account] = total.budget, total.spent
        return Standing(chain.totals_at(row).whole, accounts, fault)


def _last_sound(chain: Chain, rows: Rows) -> tuple[EventRow, Fault | None]:
    """Return the last event that follows from those before it.

    Also what is wrong with the last one of all, if that is another.
    """
    try:
        return chain.last(rows), None
    except LedgerError as error:
        last, reason = chain.head(rows)[0], str(error)
    later, row = None, rows.last_up_to(last)
    while row is not None and row.seq > 0:
        own = row.account and rows.last_of_account(row.account, row.seq)
        before = rows.at(row.seq - 1)
        if follows(chain.name, chain.origin.rule, row, before, own or None):
            if row.seq == last:  # what is wrong is that it is not as it was seen
                raise LedgerError(reason)
            return row, _find_fault(later, row.seq + 1)
        later, row = row, rows.last_before(row.seq)
    raise LedgerError(reason)


def _find_fault(row: EventRow | None, seq: int) -> Fault:
    """Return what is wrong with an event that does not follow, or is not there."""
    event = None if row is None else mark(row)
    if event is None or event.fault is None:
        return Fault(seq, "it does not follow from the events before it")
    return Fault(seq, "its content cannot be read")


def count_events(chain: Chain) -> int:
    """Return how many events the ledger has."""
    with chain.store.reading(chain.name) as rows:
        return chain.head(rows)[0]


def read_rows(chain: Chain, last: int | None = None) -> Iterator[EventRow]:
    """Yield all rows, or the last so many of those that there are now, a page at a time."""
    end, seq = LAST, 0
    if last is not None:
        with chain.store.reading(chain.name) as rows:
            end = chain.head(rows)[0]
            before = rows.last_up_to(end, min(last, end))
            seq = 0 if before is None else max(before.seq, 0)
    while True:  # ends with the first page that is not full
        with chain.store.reading(chain.name) as rows:
            chain.head(rows)
            page = rows.after(seq, PAGE, end)
        chain.store.settle()
        yield from page
        if len(page) < PAGE:
            return
        seq = page[-1].seq


def history(chain: Chain, last: int | None) -> Iterator[Event]:
    """Yield the events, oldest first, a page of them at a time."""
    if last is not None:
        last = whole("last", last)
    return (mark(row) for row in read_rows(chain, last))


def sample(chain: Chain, most: int) -> Iterator[Event]:
    """Yield at most so many events, evenly spaced, with the first and the last."""
    most = whole("most", most, 2)
    count = count_events(chain)
    steps = min(most, count) - 1
    seqs = [1 + (count - 1) * step // steps for step in range(steps + 1)] if steps else [1]
    for start in range(0, len(seqs), PAGE):
        with chain.store.reading(chain.name) as rows:
            page = rows.by_number(*seqs[start : start + PAGE])
        chain.store.settle()
        yield from (mark(row) for _, row in sorted(page.items()))


def unanswered(chain: Chain, last: int | None) -> list[Event]:
    """Return the charges without a recorded answer, oldest first; the last so many, or all."""
    limit = LAST if last is None else whole("last", last)
    events: list[Event] = []
    while len(events) < limit:
        with chain.store.reading(chain.name) as rows:
            chain.head(rows)
            before = events[-1].seq if events else LAST
            page = rows.unanswered(before, min(PAGE, limit - len(events)))
        chain.store.settle()
        events += [mark(row) for row in page]
        if len(page) < PAGE:
            break
    return events[::-1]


def verify(chain: Chain) -> list[Fault]:
    """Return what is wrong with the ledger; []: nothing."""
    damaged = [Fault(0, f"the file is damaged: {message}") for message in chain.store.damage()]
    with chain.store.reading(chain.name) as rows:
        head = chain.head(rows)
        outside = rows.outside(head[0])
    walked = (
        row for row in read_rows(chain) if not (isinstance(row.seq, int) and row.seq > head[0])
    )
    return damaged + faults(chain.name, walked, head, outside)  # others may go on charging


def to_html(chain: Chain) -> str:
    """Return what is granted, spent and left, as a table for notebooks."""
    title = f"Ledger {chain.name} in {chain.store.shown}"
    try:
        total, accounts = chain.totals_now().whole, read_accounts(chain)
        kept = f"rule {chain.origin.rule.name}{', strict' if chain.origin.strict else ''}"
    except LedgerError as error:
        return facts(title, {"cannot be read": str(error)})
    about = [kept, *([] if total.unit is None else [f"unit {total.unit}"])]
    shares = {"whole": (total.budget, total.spent)}
    shares |= {f"account {name}": share for name, share in accounts.items()}
    lines = [
        (
            whose,
            describe_privacy(budget, round_down),
            describe_privacy(spent, round_up),
            describe_privacy(less(budget, spent), round_down),
        )
        for whose, (budget, spent) in shares.items()
    ]
    return table(title, ("", "budget", "spent", "left"), lines, ", ".join(about))
