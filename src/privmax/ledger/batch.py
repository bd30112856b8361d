"""Many requests in one durable commit, all or nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from privmax.errors import AnswerError, BudgetError, LedgerError
from privmax.ledger.events import Price, Row, portable
from privmax.ledger.ledger import Ledger, Order, Reservation
from privmax.ledger.rows import Rows, UnwritableError


class Batch:
    """Charges and answers that are committed together when the block ends, as `Ledger.batch` gives
    it.

    Nothing is sent to the ledger, and nobody has to wait, before the end of the block. Then all of
    it is written in the order in which it was asked for, in one transaction. If the block is left
    by an error, or one of the charges does not fit (BudgetError, from the `with` statement),
    nothing at all is written. The same batch may be tried again with the same request ids: what was
    charged is not charged again, and an id may be repeated within a batch as well.

    A reservation is worth something only after the block: until then its `seq`, `recorded` and
    `answer` are refused, and nothing may be drawn for it. So charge in one batch, draw, and record
    in the next one. One batch may be shared between threads.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._open = False
        self._entries: list[tuple[Reservation, Order | dict[str, Any]]] | None = []

    def charge(
        self,
        price: Price,
        what: Mapping[str, object],
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> Reservation:
        """Ask for a charge, as of `Ledger.charge`. The reservation has its request id now, and all
        else later.
        """
        asked = self._ledger._order(price, what, request, account)
        reservation = Reservation(self._ledger, asked.request, None)
        self._add(reservation, asked)
        return reservation

    def record(self, reservation: Reservation, answer: object) -> None:
        """Ask for an answer to be recorded. After the block, release `reservation.answer`, which
        may be another's.

        AnswerError at the end of the block: it may have to do with one of the answers. Record each
        by itself then, with `Reservation.record`; draw nothing again.
        """
        failure: BaseException | None = None
        try:
            if reservation._ledger is not self._ledger:
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
        answers = any(isinstance(asked, dict) for _, asked in entries)
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

    def _add(self, reservation: Reservation, asked: Order | dict[str, Any]) -> None:
        with self._lock:
            if not self._open or self._entries is None:
                raise LedgerError(
                    "Nothing was charged or recorded by this call: a batch takes requests only "
                    "inside its block, with ledger.batch() as batch."
                )
            self._entries.append((reservation, asked))

    def _commit(self, entries: list[tuple[Reservation, Order | dict[str, Any]]]) -> None:
        ledger = self._ledger
        wanted = ledger._lookup(
            [asked if isinstance(asked, Order) else own._charge_row for own, asked in entries]
        )
        with ledger._store.writing(ledger.name, None, wanted) as rows:
            done = [
                self._write(rows, own, asked, place)
                for place, (own, asked) in enumerate(entries, 1)
            ]
        for (reservation, asked), (row, answered) in zip(entries, done, strict=True):
            ledger._note(row)
            if isinstance(asked, Order):
                reservation._charge(row, answered)
            else:
                reservation._settle(row)

    def _write(
        self, rows: Rows, reservation: Reservation, asked: Order | dict[str, Any], place: int
    ) -> tuple[Row, Row | None]:
        if not isinstance(asked, Order):
            return self._ledger._record_in(rows, reservation._charge_row, asked), None
        try:
            return self._ledger._charge(rows, asked)
        except BudgetError as error:
            error.add_note(
                f"It was request {asked.request!r}, number {place} of a batch. Nothing of the "
                "batch is charged."
            )
            raise
