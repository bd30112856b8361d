"""Many requests in one durable commit, all or nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from privmax.errors import AnswerError, BudgetError, LedgerError
from privmax.ledger.charging import ChargeOrder, make_order
from privmax.ledger.commits import LedgerEntry, commit_all
from privmax.ledger.events import Charge, portable
from privmax.ledger.reservation import Reservation
from privmax.ledger.rows import UnwritableError

if TYPE_CHECKING:
    from privmax.ledger.ledger import Ledger


class Batch:
    """Charges and answers that are committed together when the block ends.

    `Ledger.batch` makes it.

    Nothing is sent to the ledger, and no one has to wait, before the end of the block. Then all of
    it is written in the order in which it was asked for, in one transaction. If the block is left
    by an error, or one of the charges does not fit (BudgetError, from the `with` statement),
    nothing at all is written. The same batch may be tried again with the same request ids: what was
    charged is not charged again, and an id may be repeated within a batch as well.

    A reservation is worth something only after the block: until then its `seq`, `recorded` and
    `answer` are refused, and nothing may be drawn for it. So charge in one batch, draw, and record
    in the next one. One batch may be shared between threads.

    Args:
        ledger: What is charged.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._chain = ledger._chain
        self._lock = threading.Lock()
        self._open = False
        self._entries: list[LedgerEntry] | None = []

    def charge(
        self,
        price: Charge,
        what: Mapping[str, object],
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> Reservation:
        """Ask for a charge, as of `Ledger.charge`.

        Args:
            price: As there.
            what: As there.
            request: As there.
            account: As there.

        Returns:
            The reservation. It has its request id now, and all else later.
        """
        order = make_order(self._chain, price, what, request, account)
        reservation = Reservation(self._chain, order.request)
        self._add(reservation, order)
        return reservation

    def record(self, reservation: Reservation, answer: object) -> None:
        """Ask for an answer to be recorded.

        After the block, release `reservation.answer`, which may be another's.

        Args:
            reservation: A charge that is committed.
            answer: What was drawn for it, as JSON.

        Raises:
            AnswerError: At the end of the block; it may have to do with one of the answers. Record
                each by itself then, with `Reservation.record`; draw nothing again.
        """
        failure: BaseException | None = None
        try:
            if reservation._chain is not self._chain:
                raise LedgerError(
                    "The reservation belongs to another ledger. Nothing was recorded."
                )
            reservation._charge_row  # noqa: B018  # refuses one that is not committed
            self._add(reservation, {"answer": portable("answer", answer)})
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            failure = error
        del answer  # as in Reservation.record
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        with self._lock:
            if self._open or self._entries is None:
                raise LedgerError("A batch can be used once. Make another with ledger.batch().")
            self._open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            entries, self._entries = self._entries or [], None
        if kind is not None or not entries:
            return
        failure: BaseException | None = None
        answers = any(isinstance(entry, dict) for _, entry in entries)
        try:
            self._commit(entries)
        except UnwritableError as unwritable:
            failure = AnswerError(str(unwritable)) if answers else LedgerError(str(unwritable))
        except BaseException as other:
            other.__traceback__ = other.__context__ = other.__cause__ = None
            failure = other
        number = len(entries)
        del (
            entries
        )  # answers are in no frame that the error goes through: a crash reporter would read them
        if failure is not None:
            if isinstance(failure, LedgerError) and not isinstance(failure, BudgetError):
                failure.add_note(
                    f"This batch of {number} is written as a whole or not at all. Repeat all of it "
                    "with the same request ids: that never charges twice."
                )
            raise failure

    def _add(self, reservation: Reservation, entry: ChargeOrder | dict[str, Any]) -> None:
        with self._lock:
            if not self._open or self._entries is None:
                raise LedgerError(
                    "Nothing was charged or recorded by this call: a batch takes requests only "
                    "inside its block, with ledger.batch() as batch."
                )
            self._entries.append(LedgerEntry(reservation, entry))

    def _commit(self, entries: list[LedgerEntry]) -> None:
        def refuse(number: int, error: BudgetError) -> None:
            request = entries[number].reservation.request
            error.add_note(
                f"It was request {request!r}, number {number + 1} of a batch. Nothing of the "
                "batch is charged."
            )
            raise error

        commit_all(self._chain, entries, refuse)
