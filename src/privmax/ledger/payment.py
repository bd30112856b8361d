"""How a release is charged: charge, draw, record, and hand out what is recorded.

Proof:      docs/proofs/ledger.md, "Retries" and "What errors tell"
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from secrets import token_hex
from typing import Any, cast

from privmax.encoding import encode
from privmax.errors import (
    AnswerError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    UnsupportedError,
    WorkError,
)
from privmax.ledger.events import LONGEST, Price, label
from privmax.ledger.ledger import Ledger, Reservation
from privmax.numbers import Number, exact

FAILED = "failed"
"""Entry of an answer that was drawn and then could not be named or written down: no answer is
recorded in its place.
"""

Answer = Mapping[str, Any]
"""What was drawn, as JSON."""

Draw = Callable[[], Answer]
"""Draws an answer, names it and writes it as JSON."""


@dataclass(frozen=True)
class Request:
    """A request to a ledger, as `Ledger.request` makes it: what a release is charged to, and as
    what.

    ledger    where it is written down
    id        repeated, it gives the recorded answer at no extra cost. None: every release is a
              request of its own
    account   the sub-budget to charge as well
    dataset   name of the data, for who reads the history; public
    """

    ledger: Ledger
    id: str | None = None
    account: str | None = None
    dataset: str | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("request", self.id),
            ("account", self.account),
            ("dataset", self.dataset),
        ):
            if value is not None:
                label(name, value)

    @classmethod
    def of(cls, ledger: object) -> Request:
        """The request that a `ledger=` argument means."""
        if isinstance(ledger, Request):
            return ledger
        if isinstance(ledger, Ledger):
            return cls(ledger)
        raise ParameterError(
            "ledger",
            type(ledger),
            "it must be a Ledger",
            'For example Ledger("budget.db", "sales-2026").',
        )


@dataclass(frozen=True)
class Question:
    """What is asked, as a ledger writes it down: a repeated request must ask the same. Public.

    command   what runs, such as "select"
    options   its options, as they were given; those that are None are left out
    numbers   options that may be written in several ways: they are recorded exactly
    place     where the data is, which is recorded where no `dataset` names it
    columns   which columns are read, by what they are, where no option says so
    labels    all that could be released, where that is declared, in their canonical form; or their
              number
    """

    command: str = "select"
    options: Mapping[str, object] = field(default_factory=dict)
    numbers: Mapping[str, Number | None] = field(default_factory=dict)
    place: str | None = None
    columns: Mapping[str, str] | None = None
    labels: int | Iterable[object] | None = None

    def to_json(self, mechanism: object, dataset: str | None) -> dict[str, Any]:
        """The question with what answers it."""
        options = {
            name: _public(value) for name, value in self.options.items() if value is not None
        }
        options |= {
            name: str(exact(name, value))
            for name, value in self.numbers.items()
            if value is not None
        }
        place = self.place if dataset is None else None
        return {
            "command": self.command,
            "mechanism": repr(mechanism),
            "dataset": dataset,
            "options": options,
            **({} if place is None else {"data": place}),
            **({} if self.columns is None else {"columns": dict(self.columns)}),
            **({} if self.labels is None else {"labels": digest_labels(self.labels)}),
        }


class Payment:
    """The charge for one answer to one question.

    request    what to charge; without an id it is given one now: whatever follows is one request,
               however often a step is repeated
    price      what it costs
    what       what is going to run, as JSON
    """

    def __init__(self, request: Request, price: Price, what: Mapping[str, Any]) -> None:
        self.request = token_hex(16) if request.id is None else request.id
        self._ledger = request.ledger
        of = {"request": self.request, "account": request.account}
        self._ask = partial(self._ledger.ask, price, **of)
        self._charge = partial(self._ledger.charge, price, what, **of)

    def ask(self) -> Reservation | None:
        """The charge, if the request was charged before, perhaps with its answer. Looks at no data.

        A cost that does not fit is refused here (BudgetError), before anything is read.
        """
        return self._charge() if self._ask() else None

    def settle(
        self, reservation: Reservation | None, read: Callable[[ExitStack], Draw], nothing: Draw
    ) -> Reservation:
        """Read the data, charge, draw an answer and record it. The charge with what is recorded,
        perhaps another one's.

        reservation   the charge, if there is one already
        read          reads the data, and gives what draws from it; what it opens is closed by the
                      stack it is given
        nothing       gives no answer, as JSON

        A strict ledger is charged before the data is read, and whatever goes wrong after that is no
        answer. Otherwise what goes wrong after the charge is raised, and recorded as no answer: it
        may depend on what was drawn, so that is not drawn again. Only a process that is stopped,
        and a ledger that cannot be reached, leave a request open.
        """
        settled, error = self._attempt(reservation, read, nothing)
        if error is not None:
            raise error  # from here: the frames it went through held what was drawn
        return settled

    def _attempt(
        self, reservation: Reservation | None, read: Callable[[ExitStack], Draw], nothing: Draw
    ) -> tuple[Reservation, BaseException | None]:
        """The charge with its answer; and what is to be raised instead, which holds nothing that
        was drawn.
        """
        with ExitStack() as stack:
            draw: Draw = (lambda: read(stack)()) if self._ledger.strict else read(stack)
            charged = self._charge() if reservation is None else reservation
            error = None
            if not charged.recorded:  # else somebody with the same request was quicker
                failed, error = _record(charged, draw)
                if failed is not None:
                    error = self._close(charged, nothing, failed)
                elif error is not None:
                    error.add_note(self._cost_words())
            del draw
        return charged, error

    def _close(
        self, reservation: Reservation, nothing: Draw, failed: Exception
    ) -> BaseException | None:
        """Record no answer in place of the one that failed, so that nothing is drawn again; what is
        to be raised.
        """
        # A strict ledger does not tell one no answer from another.
        mark = {} if self._ledger.strict else {FAILED: True}
        unwritten, error = _record(reservation, lambda: {**nothing(), **mark})
        if unwritten is not None:  # not even that: it has nothing to do with what was drawn
            error = LedgerError(str(unwritten))
        if error is not None:
            error.add_note(self._cost_words())
            return error
        if self._ledger.strict or FAILED not in reservation.answer:
            return None  # or somebody else has recorded an answer meanwhile
        failed.add_note(
            "The privacy cost was charged and stays spent. The request is recorded as no answer "
            f"and is not drawn again: repeating the request {self.request!r} returns no answer."
        )
        return failed

    def _cost_words(self) -> str:
        return (
            "The privacy cost was charged before this happened, and stays spent. Repeat the "
            f"request {self.request!r}: that costs nothing more."
        )


def _record(reservation: Reservation, draw: Draw) -> tuple[Exception | None, BaseException | None]:
    """Draw and record. What failed, if that may depend on what was drawn; and what did, if it
    cannot.

    Neither holds the frames it went through, nor what caused it: what was drawn is in them.
    """
    try:
        answer = draw()
    except _STOPS as error:
        return None, _bare(error)
    except BaseException as error:
        return _renew(error), None
    try:
        reservation.record(answer)
    except (LedgerError, *_STOPS) as error:
        return None, _bare(error)
    except BaseException as error:
        return _renew(error), None
    return None, None


_STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Somebody stops the process. All else may depend on what was drawn, a panic in Rust too, which is
no `Exception`.
"""


def _renew(error: BaseException) -> Exception:
    """An error that says the same, as far as it quotes nothing that was drawn."""
    for kind in (
        AnswerError,
        DataError,
        EngineError,
        UnsupportedError,
        WorkError,
    ):  # their messages never quote data
        if type(error) is kind:
            return kind(str(error))
    return AnswerError(
        f"An answer was drawn but could not be named or recorded ({type(error).__name__}); it is "
        "not released."
    )


def _bare(error: BaseException) -> BaseException:
    """The error without the frames it went through, and without what it came from."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def place_of(data: object, table: str | None = None) -> str | None:
    """Where data is, as a ledger writes it: of a path the absolute one, and of a database its table
    too. None: nowhere, as what is in memory.
    """
    # Of the data itself, which may be anything, nothing is asked.
    if not issubclass(type(data), (str, os.PathLike)):
        return None
    path = os.fsdecode(cast(str, data))
    if not path or "://" in path:  # no path; a password may stand in it
        return None
    return shorten_place(" ".join(filter(None, (os.path.abspath(path), table))))


def digest_labels(labels: int | Iterable[object]) -> str:
    """Declared labels as a ledger writes them: a digest of them, in whichever order; "numbered"
    where none are named.

    An answer under other labels is an answer to something else.
    """
    if not isinstance(labels, Iterable):
        return "numbered"
    lines = sorted(json.dumps(encode(one), sort_keys=True) for one in labels)
    return sha256("\n".join(lines).encode()).hexdigest()


def shorten_place(text: str) -> str:
    """A place as a ledger writes it: printable, and of a long one its end, with a digest of the
    whole.
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if len(shown) <= LONGEST:
        return shown
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"…{shown[-(LONGEST - 20) :]} {digest}"


def _public(value: object) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [_public(one) for one in value] if is_list else encode(value)  # type: ignore[attr-defined]
