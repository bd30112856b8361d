"""How a release is paid for: charge, draw, record, and hand out what is recorded.

Proof:      docs/proofs/ledger.md, "Retries" and "What errors tell"
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex
from typing import Any, Protocol, Self, TypeVar, cast

from privmax.errors import (
    AnswerError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    UnsupportedError,
)
from privmax.ledger.answers import decoded, encoded
from privmax.ledger.events import LONGEST, Price, label
from privmax.ledger.ledger import Ledger, Reservation
from privmax.numbers import Number, exact

Codec = Callable[[Any], Any]
"""From an item to JSON, or back."""

FAILED = "failed"
"""Entry of an answer that was drawn and then could not be named or written down: no answer is
recorded in its place.
"""


class Answerable(Protocol):
    """A release, perhaps without its answer yet."""

    @property
    def mechanism(self) -> Any: ...

    def price(self) -> Price:
        """What it costs."""
        ...

    def written(self, encoded: Codec) -> dict[str, Any]:
        """The answer as JSON."""
        ...

    def with_answer(
        self,
        answer: Mapping[str, Any],
        decoded: Codec,
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        """The same release with an answer that was written so, under the id of its request.

        recorded    when that was written down, if it was before; None: now
        """
        ...


R = TypeVar("R", bound=Answerable)

Draw = Callable[[], Mapping[str, Any]]
"""Draws an answer, names it and writes it as JSON."""


class Deferred:
    """Data that is read when it is needed: after the ledger was asked, and with a strict one after
    the charge.

    place     where it is, for a ledger, if it is anywhere; public
    columns   which of its columns are read, by what they are, where no option of the release says
              so; public
    """

    def __init__(
        self,
        read: Callable[[], object],
        place: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.read, self.place, self.columns = read, place, columns


def present(data: object) -> object:
    """The data itself, read now if it was deferred."""
    return data.read() if isinstance(data, Deferred) else data


@dataclass(frozen=True)
class Paid:
    """What one release is charged to, and as what.

    ledger    where it is written down
    request   id of the request: repeated, it gives the recorded answer and costs nothing more.
              None: a fresh one
    account   the sub-budget to charge as well
    dataset   name of the data, for who reads the history; public
    data      where the data is, if it has no name; public. A repeated request must have the same
              name and place
    columns   which columns are read, where no option says so
    labels    of a declared universe, a digest; see `told_labels`
    command   what runs, such as "select"
    options   its public options, as JSON
    """

    ledger: Ledger
    request: str | None = None
    account: str | None = None
    dataset: str | None = None
    command: str = "select"
    options: Mapping[str, object] = field(default_factory=dict)
    data: str | None = None
    columns: Mapping[str, str] | None = None
    labels: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.ledger, Ledger):
            raise ParameterError(
                "ledger",
                type(self.ledger),
                "it must be a Ledger",
                'For example Ledger("budget.db", "sales-2026").',
            )
        if (
            self.request is None
        ):  # now: whatever follows is one request, however often a step is repeated
            object.__setattr__(self, "request", token_hex(16))
        for name in ("request", "account", "dataset"):
            if getattr(self, name) is not None:
                label(name, getattr(self, name))

    @property
    def strict(self) -> bool:
        """Whether to charge before the data is read, and to call no answer whatever is wrong with
        it.
        """
        return self.ledger.strict

    def recorded(self, empty: R, decoded: Codec = decoded) -> R | None:
        """The release, if its answer is recorded already; `empty` is the same without one. Looks at
        no data.

        A price that does not fit is refused here (BudgetError), before anything is read.
        """
        if not self.ledger.knows(str(self.request)) and self.ledger.fits(
            empty.price(), self.account
        ):
            return None
        reservation = self._charge(empty)
        if not reservation.recorded:
            return None
        return empty.with_answer(reservation.answer, decoded, self.request, reservation.when)

    def answer(self, empty: R, read: Callable[[ExitStack], Draw], decoded: Codec = decoded) -> R:
        """Read the data, charge, draw an answer and record it; `empty` with what is recorded,
        perhaps another one's.

        read    reads the data, and gives what draws from it; what it opens is closed by the stack
                it is given

        A strict ledger is charged before the data is read, and whatever goes wrong after that is no
        answer. Otherwise what goes wrong after the charge is raised, and recorded as no answer: it
        may depend on what was drawn, so that is not drawn again. Only a process that is stopped,
        and a ledger that cannot be reached, leave a request open.
        """
        reservation, error = self._attempt(empty, read)
        if error is not None:
            raise error  # from here: the frames it went through held what was drawn
        return empty.with_answer(reservation.answer, decoded, self.request, reservation.when)

    def _attempt(
        self, empty: Answerable, read: Callable[[ExitStack], Draw]
    ) -> tuple[Reservation, BaseException | None]:
        """The charge with its answer; and what is to be raised instead, which holds nothing that
        was drawn.
        """
        with ExitStack() as held:
            draw = None if self.strict else read(held)
            reservation = self._charge(empty)
            error = None
            if not reservation.recorded:  # else somebody with the same request was quicker
                failed, error = _record(
                    reservation, lambda: (read(held) if draw is None else draw)()
                )
                if failed is not None:
                    error = self._close(reservation, empty, failed)
                elif error is not None:
                    error.add_note(
                        "The price was charged before this happened, and is spent. Try again with "
                        f"request={self.request!r}: that costs nothing more."
                    )
            draw = None
        return reservation, error

    def _close(
        self, reservation: Reservation, empty: Answerable, failed: Exception
    ) -> BaseException | None:
        """Record no answer in place of the one that failed, so that nothing is drawn again; what is
        to be raised.
        """
        mark = (
            {} if self.strict else {FAILED: True}
        )  # a strict ledger does not tell one no answer from another
        unwritten, error = _record(reservation, lambda: {**empty.written(encoded), **mark})
        if unwritten is not None:  # not even that: it has nothing to do with what was drawn
            error = LedgerError(str(unwritten))
        if error is not None:
            error.add_note(
                "The price was charged before this happened, and is spent. Try again with "
                f"request={self.request!r}: that costs nothing more."
            )
            return error
        if (
            self.strict or FAILED not in reservation.answer
        ):  # or somebody else has recorded an answer meanwhile
            return None
        failed.add_note(
            "The price was charged and is spent. The request is recorded as no answer, and is not "
            "drawn again: "
            f"repeating it with request={self.request!r} returns no answer."
        )
        return failed

    def _charge(self, release: Answerable) -> Reservation:
        what = {
            "command": self.command,
            "mechanism": repr(release.mechanism),
            "dataset": self.dataset,
            "options": dict(self.options),
            **({} if self.data is None else {"data": self.data}),
            **({} if self.columns is None else {"columns": dict(self.columns)}),
            **({} if self.labels is None else {"labels": self.labels}),
        }
        return self.ledger.charge(release.price(), what, request=self.request, account=self.account)


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
        return _afresh(error), None
    try:
        reservation.record(answer)
    except (LedgerError, *_STOPS) as error:
        return None, _bare(error)
    except BaseException as error:
        return _afresh(error), None
    return None, None


_STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Somebody stops the process. All else may depend on what was drawn, a panic in Rust too, which is
no `Exception`.
"""


def _afresh(error: BaseException) -> Exception:
    """An error that says the same, as far as it quotes nothing that was drawn."""
    for kind in (
        AnswerError,
        DataError,
        EngineError,
        UnsupportedError,
    ):  # their messages never quote data
        if type(error) is kind:
            return kind(str(error))
    return AnswerError(
        f"An answer was drawn, and could not be named or written down ({type(error).__name__}); it "
        f"is not released."
    )


def _bare(error: BaseException) -> BaseException:
    """The error without the frames it went through, and without what it came from."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def paid(
    ledger: Ledger | None,
    request: str | None,
    account: str | None,
    dataset: str | None,
    command: str,
    options: Mapping[str, object],
    numbers: Mapping[str, Number | None],
    data: object = None,
    labels: int | Iterable[object] | None = None,
) -> Paid | None:
    """What pays for a release, if anything does; what belongs to a ledger is refused without one.

    options, numbers    what the command was given; `numbers` may be written in several ways, and
                        are recorded exactly
    data                what is released of: its place is recorded where `dataset` names nothing
    labels              all that could be released, where that is declared, in their canonical form;
                        or their number
    """
    if ledger is not None:
        given = {name: _public(value) for name, value in options.items() if value is not None}
        exactly = {
            name: str(exact(name, value)) for name, value in numbers.items() if value is not None
        }
        place = place_of(data) if dataset is None else None
        columns = cast(Deferred, data).columns if issubclass(type(data), Deferred) else None
        told = None if labels is None else told_labels(labels)
        return Paid(
            ledger, request, account, dataset, command, given | exactly, place, columns, told
        )
    for name, value in (("request", request), ("account", account), ("dataset", dataset)):
        if value is not None:
            raise ParameterError(
                name, value, "it belongs to a ledger, and there is none", "Give ledger."
            )
    return None


def place_of(data: object) -> str | None:
    """Where data is, as a ledger writes it: of a path the absolute one. None: nowhere, as what is
    in memory.
    """
    kind: type = type(data)  # of the data itself, which may be anything, nothing is asked
    if issubclass(kind, Deferred):
        return cast(Deferred, data).place
    if not issubclass(kind, (str, os.PathLike)):
        return None
    path = os.fsdecode(cast(str, data))
    if not path or "://" in path:  # no path; a password may stand in it
        return None
    return told_place(os.path.abspath(path))


def told_labels(labels: int | Iterable[object]) -> str:
    """Declared labels as a ledger writes them: a digest of them, in whichever order; "numbered"
    where none are named.

    An answer under other labels is an answer to something else.
    """
    if not isinstance(labels, Iterable):
        return "numbered"
    written = sorted(json.dumps(encoded(label), sort_keys=True) for label in labels)
    return sha256("\n".join(written).encode()).hexdigest()


def told_place(text: str) -> str:
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
    return [_public(one) for one in value] if is_list else encoded(value)  # type: ignore[attr-defined]
