"""Charges a release: charge, draw, record, and return the recorded answer.

Proof:      docs/proofs/ledger.md, "Retries" and "What errors reveal"
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from privmax.encoding import encode
from privmax.errors import (
    AnswerError,
    DataError,
    EngineError,
    LedgerError,
    PrivmaxError,
    UnsupportedError,
    WorkError,
)
from privmax.ledger.events import LONGEST
from privmax.numbers import Number, exact
from privmax.sources.places import path_name

if TYPE_CHECKING:
    from privmax.ledger.events import Charge
    from privmax.ledger.ledger import Reservation
    from privmax.ledger.request import Request

FAILED = "failed"
"""Entry of an answer that was drawn and then could not be named or written down: no answer is
recorded in its place.
"""

Answer = Mapping[str, Any]
"""The drawn answer, as JSON."""

Draw = Callable[[], Answer]
"""Draws an answer, names it and writes it as JSON."""


@dataclass(frozen=True)
class Description:
    """The request as a ledger writes it down: a repeated request must ask the same. Public.

    Args:
        command: What runs, such as "select".
        options: Its options, as they were given; those that are None are left out.
        numbers: Options that may be written in several ways: they are recorded exactly.
        place: Where the data is, which is recorded where no `dataset` names it.
        columns: Which columns are read, by what they are, where no option says so.
        labels: All that could be released, where that is declared, in their canonical form; or
            their number.
    """

    command: str = "select"
    options: Mapping[str, object] = field(default_factory=dict)
    numbers: Mapping[str, Number | None] = field(default_factory=dict)
    place: str | None = None
    columns: Mapping[str, str] | None = None
    labels: int | Iterable[object] | None = None

    def to_json(self, mechanism: str, dataset: str | None) -> dict[str, Any]:
        """Return the question with what answers it."""
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
            "mechanism": mechanism,
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

    def __init__(self, request: Request, charge: Charge, what: Mapping[str, Any]) -> None:
        from secrets import token_hex

        self.request = token_hex(16) if request.id is None else request.id
        self._ledger = request.payer
        self._key = self._ledger.where, self._ledger.name, self.request
        of = {"request": self.request, "account": request.account}
        self._ask = partial(self._ledger.ask, charge, **of)
        self._charge = partial(self._ledger.charge, charge, what, **of)

    def find_recorded(self) -> Reservation | None:
        """Return the charge, if the request was charged before, perhaps with its answer.

        Looks at no data.

        A cost that does not fit is refused here (BudgetError), before anything is read.
        """
        return self._charge() if self._ask() else None

    def run(
        self, reservation: Reservation | None, read: Callable[[ExitStack], Draw], nothing: Draw
    ) -> Reservation:
        """Read the data, charge, draw an answer and record it.

        Returns the charge with what is recorded, perhaps by another process.

        A strict ledger is charged before the data is read, and whatever goes wrong after that gives
        no answer. Otherwise a failure after the charge is raised, and recorded as no answer: it
        may depend on what was drawn, so that is not drawn again. Only a process that is stopped,
        and a ledger that cannot be reached, leave a request open.

        Args:
            reservation: The charge, if there is one already.
            read: Reads the data, and gives what draws from it; what it opens is closed by the stack
                it is given.
            nothing: Gives no answer, as JSON.
        """
        settled, error = self._attempt(reservation, read, nothing)
        if error is not None:
            raise error  # from here: the frames it went through held what was drawn
        return settled

    def _attempt(
        self, reservation: Reservation | None, read: Callable[[ExitStack], Draw], nothing: Draw
    ) -> tuple[Reservation, BaseException | None]:
        """Return the charge with its answer, or what is to be raised instead.

        The latter holds nothing that was drawn.
        """
        if reservation is not None and self._is_closed(reservation):
            return reservation, self._record_nothing(reservation, nothing)
        with ExitStack() as stack:
            draw: Draw = (lambda: read(stack)()) if self._ledger.strict else read(stack)
            charged = self._charge() if reservation is None else reservation
            if charged.recorded:  # somebody with the same request was quicker
                return charged, None
            if self._is_closed(charged):
                return charged, self._record_nothing(charged, nothing)
            failed, error = _record(draw, charged.record)
            if failed is not None:
                error = self._close(charged, nothing, failed)
            elif error is not None:
                error = _after_charge(error, self._cost_words())
            del draw
        return charged, error

    def _is_closed(self, reservation: Reservation) -> bool:
        """Return whether an answer was drawn for it and failed.

        The ledger says so, or this process knows it because the ledger could not be reached.
        """
        return reservation.closed or self._key in _failed_here

    def _close(
        self, reservation: Reservation, nothing: Draw, failed: Exception
    ) -> BaseException | None:
        """Record no answer in place of the one that failed; return what is to be raised.

        Nothing is drawn again.
        """
        _failed_here.add(self._key)
        error = self._record_nothing(reservation, nothing)
        if error is not None:
            return error
        if self._ledger.strict or FAILED not in reservation.answer:
            return None  # or somebody else has recorded an answer meanwhile
        return _after_charge(
            failed,
            "The privacy cost was charged and stays spent. The request is recorded as no answer "
            f"and is not drawn again: repeating the request {self.request!r} returns no answer.",
        )

    def _record_nothing(self, reservation: Reservation, nothing: Draw) -> BaseException | None:
        """Record no answer; return what is to be raised where that fails.

        A file keeps the request closed even then.
        """
        # A strict ledger does not tell one no answer from another.
        mark = {} if self._ledger.strict else {FAILED: True}
        unwritten, error = _record(lambda: {**nothing(), **mark}, reservation.close)
        if unwritten is not None:
            who = "The request is not drawn again"
            if not reservation.noted:
                who = "This process does not draw it again, but the ledger could not note that"
            closed = (
                "An answer was drawn and could not be recorded. The privacy cost was charged and "
                f"stays spent. {who}: once the ledger can be written, repeating the request "
                f"{self.request!r} returns no answer."
            )
            return _after_charge(LedgerError(str(unwritten)), closed)
        if error is not None:
            return _after_charge(error, self._cost_words())
        _failed_here.discard(self._key)
        return None

    def _cost_words(self) -> str:
        return (
            "The privacy cost was charged before this happened, and stays spent. Repeat the "
            f"request {self.request!r}: that costs nothing more."
        )


_failed_here: set[tuple[str, str, str]] = set()
"""Requests whose answers failed in this process, while the ledger does not know it yet."""

_NOTHING_CHARGED = re.compile(r"\s*Nothing (was|is|more is) (charged|recorded)[^.]*\.")
"""Words of a step of a ledger that are not true of a release that was charged before."""


def _after_charge(error: BaseException, words: str) -> BaseException:
    """Return the error, saying in its own message that the cost was charged.

    An error of another library, or that stops the process, keeps its message and has a note.
    """
    if not isinstance(error, PrivmaxError) or len(error.args) != 1:
        error.add_note(words)
    else:
        error.args = (f"{_NOTHING_CHARGED.sub('', str(error.args[0]))} {words}",)
    return error


def _record(
    draw: Draw, record: Callable[[Answer], object]
) -> tuple[Exception | None, BaseException | None]:
    """Draw and record; return what failed.

    The first error may depend on what was drawn, the second cannot.

    Neither holds the frames it went through, nor what caused it: what was drawn is in them.
    """
    try:
        answer = draw()
    except _STOPS as error:
        return None, _bare(error)
    except BaseException as error:
        return _renew(error), None
    try:
        record(answer)
    except (LedgerError, *_STOPS) as error:
        return None, _bare(error)
    except BaseException as error:
        return _renew(error), None
    return None, None


_STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Someone stops the process. All else may depend on what was drawn, a panic in Rust too, which is
no `Exception`.
"""


def _renew(error: BaseException) -> Exception:
    """Return an error that says the same, as far as it quotes nothing that was drawn."""
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
    """Return the error without the frames it went through, and without what it came from."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def source_location(data: object, table: str | None = None) -> str | None:
    """Return where data is, as a ledger writes it.

    Of a path the absolute one, and of a database its table too. None for data in memory.
    """
    path = path_name(data)
    if not path or "://" in path:  # no path; a password may stand in it
        return None
    return shorten_place(" ".join(filter(None, (os.path.abspath(path), table))))


def digest_labels(labels: int | Iterable[object]) -> str:
    """Return declared labels as a ledger writes them: a digest, the same in any order.

    "numbered" where none are named.

    An answer under other labels is an answer to something else.
    """
    if not isinstance(labels, Iterable):
        return "numbered"
    lines = sorted(json.dumps(encode(one), sort_keys=True) for one in labels)
    from hashlib import sha256

    return sha256("\n".join(lines).encode()).hexdigest()


def shorten_place(text: str) -> str:
    """Return a place as a ledger writes it: printable and short.

    Of a long one its end is kept, with a digest of the whole.
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if len(shown) <= LONGEST:
        return shown
    from hashlib import sha256

    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"…{shown[-(LONGEST - 20) :]} {digest}"


def _public(value: object) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [_public(one) for one in value] if is_list else encode(value)  # type: ignore[attr-defined]
