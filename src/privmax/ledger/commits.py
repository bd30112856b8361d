"""Entries that are committed together: those of a batch and those of threads that meet.

Proof:      docs/proofs/group-commit.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from privmax.errors import BudgetError, LedgerError
from privmax.ledger.chain import Chain
from privmax.ledger.charging import (
    ChargeOrder,
    CommittedCharge,
    charge,
    charge_in,
    find_recorded,
    look_up,
    record,
    record_in,
)
from privmax.ledger.group import QueuePlace
from privmax.ledger.rows import Rows, UnwritableError

if TYPE_CHECKING:
    from privmax.ledger.reservation import Reservation


class LedgerEntry(NamedTuple):
    """A charge, or the answer to one; what comes of it is noted in its reservation."""

    reservation: Reservation
    content: ChargeOrder | dict[str, Any]


def submit(chain: Chain, entry: LedgerEntry) -> None:
    """Charge or record durably, together with what other threads ask for meanwhile."""
    alone = partial(_commit_alone, chain, entry, entry.reservation._ours)
    chain.group.run(entry, alone, partial(_commit_places, chain))


def commit_all(
    chain: Chain, entries: Sequence[LedgerEntry], refuse: Callable[[int, BudgetError], None]
) -> None:
    """Write entries in one transaction, in this order.

    Args:
        refuse: Called with the number of an entry that does not fit, from 0, and why. If it
            raises an error, nothing at all is written; else the others are.
    """
    lookup = look_up(
        chain, [one.content if isinstance(one.content, ChargeOrder) else one.reservation._charge_row
                for one in entries],
    )  # fmt: skip
    done: list[CommittedCharge | None] = []
    with chain.store.writing(chain.name, None, lookup) as rows:
        _close(chain, rows, [one.reservation for one in entries if isinstance(one.content, dict)])
        for number, entry in enumerate(entries):
            try:
                done.append(_write(chain, rows, entry))
            except BudgetError as error:  # before anything of this entry is written
                refuse(number, error)
                done.append(None)
    for (reservation, content), committed in zip(entries, done, strict=True):
        if committed is None:
            continue
        chain.note(committed.row)
        if isinstance(content, ChargeOrder):
            reservation._charge(committed)
        else:
            reservation._settle(committed.row)


def _commit_alone(chain: Chain, entry: LedgerEntry, ours: bool) -> None:
    """Write one entry by itself.

    Args:
        ours: Whether its request was closed for its answer before this attempt.
    """
    reservation, content = entry
    if isinstance(content, ChargeOrder):
        reservation._charge(charge(chain, content))
        return
    try:
        row = record(chain, reservation._charge_row, content, ours=reservation._ours)
    except LedgerError as error:
        if ours or not reservation._ours:
            raise
        # Written together with others, it closed its request: whatever fails now, nothing may be
        # drawn for it again.
        failure = UnwritableError(str(error), retry=error.retry)
    else:
        reservation._settle(row)
        return
    raise failure


def _commit_places(chain: Chain, places: Sequence[QueuePlace[LedgerEntry]]) -> None:
    """Write the entries of several threads, except those that do not fit.

    Answers come first: a thread that asks for one of these requests again is given the answer.
    """
    pairs = [(place.entry, place) for place in places if place.entry is not None]
    pairs.sort(key=lambda pair: isinstance(pair[0].content, ChargeOrder))
    refusals: dict[int, BudgetError] = {}
    commit_all(chain, [entry for entry, _ in pairs], refusals.__setitem__)
    for number, (_, place) in enumerate(pairs):
        refusal = refusals.get(number)
        if refusal is not None:  # it is raised in another thread, without the frames of this one
            refusal.__traceback__ = refusal.__context__ = refusal.__cause__ = None
        place.refusal, place.served = refusal, True


def _close(chain: Chain, rows: Rows, reservations: Sequence[Reservation]) -> None:
    """Note that answers were drawn, before anything of the transaction is written.

    Of several answers to one request the first closes it: if that cannot be written, no other is.
    """
    first = {own._charge_row.seq: own for own in reversed(reservations)}
    find = partial(find_recorded, chain, rows)
    unanswered = [own for own in reservations if find(own._charge_row, ours=own._ours) is None]
    if unanswered:
        rows.close([own._charge_row for own in unanswered])
    for own in unanswered:
        own._ours = own._ours or first[own._charge_row.seq] is own


def _write(chain: Chain, rows: Rows, entry: LedgerEntry) -> CommittedCharge:
    """Return the charge; or, where an answer is recorded, the event that does so."""
    reservation, content = entry
    if isinstance(content, ChargeOrder):
        return charge_in(chain, rows, content)
    return CommittedCharge(record_in(chain, rows, reservation._charge_row, content, ours=True))
