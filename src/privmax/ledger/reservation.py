"""A charge that is committed: what may be drawn for it, and how its answer is recorded.

Proof:      docs/proofs/ledger.md, "Retries"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privmax.errors import AnswerError, LedgerError
from privmax.ledger.chain import Chain
from privmax.ledger.charging import CommittedCharge
from privmax.ledger.commits import LedgerEntry, submit
from privmax.ledger.events import EventRow, portable
from privmax.ledger.rows import UnwritableError


@dataclass(eq=False, repr=False)
class Reservation:
    """A cost that is spent.

    `recorded` says whether its answer is known; if not, draw one and `record` it. `Ledger.charge`
    makes it.

    Attributes:
        request: The id it was charged under.
        when: Since when its answer was known, when this was charged again: what the clock said,
            UTC.
    """

    _chain: Chain
    request: str
    _row: EventRow | None = None
    _when: str | None = None
    _recorded: bool = False
    _answer: Any = None
    _closed: bool = False
    _ours: bool = False
    """Whether the request is closed, if it is, because of what was to be recorded here."""

    _noted: bool = False
    """Whether the ledger notes that an answer was drawn here."""

    @property
    def seq(self) -> int:
        """Number of the event that charged it."""
        return self._charge_row.seq

    @property
    def recorded(self) -> bool:
        """Whether an answer is recorded."""
        return self._charge_row is not None and self._recorded

    @property
    def closed(self) -> bool:
        """Whether an earlier attempt drew an answer and failed to record it.

        Nothing may be drawn for it again: that would favor answers that can be recorded. Use
        `close` to record that there is no answer.
        """
        return self._charge_row is not None and self._closed and not self._recorded

    @property
    def noted(self) -> bool:
        """Whether the ledger notes that an answer was drawn: then no process draws another."""
        return self._closed or self._noted

    @property
    def answer(self) -> Any:
        """The answer to release; None while there is none."""
        return self._answer if self.recorded else None

    @property
    def when(self) -> str | None:
        return self._when if self.recorded else None

    @property
    def _charge_row(self) -> EventRow:
        if self._row is None:
            raise LedgerError(
                f"The request {self.request!r} is not known to be charged: the block of its batch "
                f"has not ended, or "
                "ended with an error. Nothing may be drawn for it."
            )
        return self._row

    def _charge(self, charge: CommittedCharge) -> None:
        """The charge is committed, perhaps long ago and with an answer."""
        if charge.answered is not None:
            self._when = charge.answered.moment
            self._settle(charge.answered)
        self._row, self._closed = charge.row, charge.closed

    def _settle(self, recorded: EventRow) -> None:
        """This is the answer."""
        answered = self._chain.event(recorded, "answer")
        self._answer, self._recorded = answered.body["answer"], True

    def record(self, answer: object) -> Any:
        """Record the answer durably, and return the one to release.

        That may be another one: if another process recorded an answer to the same request first, it
        is that. Release only what this returns; an error means that nothing may be released yet,
        and holds nothing of the answer.

        Args:
            answer: What was drawn, as JSON.

        Returns:
            The answer to release.

        Raises:
            LedgerError: The ledger cannot be used now, whatever the answer is; this may be tried
                again, also with another draw.
            AnswerError: This, like any other error, may have to do with this answer, as when it is
                too long for the disk: do not draw again, which would favor answers that can be
                written. Record the same answer once more, or `close` the request.
        """
        failure: BaseException | None = None
        try:
            self._charge_row  # noqa: B018  # refuses one that is not committed
            submit(self._chain, LedgerEntry(self, {"answer": portable("answer", answer)}))
        except UnwritableError as error:
            self._ours = True
            self._noted = self._noted or error.noted
            failure = AnswerError(str(error))
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            failure = error
        del (
            answer
        )  # nor is it in the frames that the error went through: a crash reporter would read them
        if failure is not None:
            raise failure
        return self.answer

    def close(self, nothing: object) -> Any:
        """Record what stands for no answer, also where the request is `closed`; as `record`."""
        self._ours = True
        return self.record(nothing)

    def __repr__(self) -> str:
        seq = None if self._row is None else self._row.seq
        return f"Reservation(request={self.request!r}, seq={seq}, recorded={self._recorded})"
