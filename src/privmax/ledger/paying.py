"""How a release is paid for: charge, draw, record, and hand out what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Protocol, Self, TypeVar

from privmax.errors import ParameterError
from privmax.ledger.answers import decoded, encoded
from privmax.ledger.events import Price, label
from privmax.ledger.ledger import Ledger, Reservation
from privmax.privacy import Number, exact

Codec = Callable[[Any], Any]
"""From an item to JSON, or back. To JSON it must never fail: an error after the draw would tell what was drawn."""


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

    def with_answer(self, answer: Mapping[str, Any], decoded: Codec, request: str | None) -> Self:
        """The same release with an answer that was written so, under the id of its request."""
        ...


R = TypeVar("R", bound=Answerable)


@dataclass(frozen=True)
class Paid:
    """What one release is charged to, and as what.

    ledger    where it is written down
    request   id of the request: repeated, it gives the recorded answer and costs nothing more. None: a fresh one
    account   the sub-budget to charge as well
    dataset   name of the data, for who reads the history; public
    command   what runs, such as "select"
    options   its public options, as JSON
    """

    ledger: Ledger
    request: str | None = None
    account: str | None = None
    dataset: str | None = None
    command: str = "select"
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.ledger, Ledger):
            raise ParameterError(
                "ledger", type(self.ledger), "it must be a Ledger", 'For example Ledger("budget.db", "sales-2026").'
            )
        if self.request is None:  # now: whatever follows is one request, however often a step is repeated
            object.__setattr__(self, "request", token_hex(16))
        for name in ("request", "account", "dataset"):
            if getattr(self, name) is not None:
                label(name, getattr(self, name))

    def recorded(self, empty: R, decoded: Codec = decoded) -> R | None:
        """The release, if its answer is recorded already; `empty` is the same without one. Looks at no data.

        A price that does not fit is refused here (BudgetError), before anything is read.
        """
        if not self.ledger.knows(str(self.request)) and self.ledger.fits(empty.price(), self.account):
            return None
        answer = self._charge(empty).answer
        return None if answer is None else empty.with_answer(answer, decoded, self.request)

    def released(self, empty: R, draw: Callable[[], R], encoded: Codec = encoded, decoded: Codec = decoded) -> R:
        """Charge, then draw an answer and record it; `empty` with what is recorded, which may be another one's."""
        reservation = self._charge(empty)
        answer = reservation.answer
        if answer is None:
            try:
                answer = reservation.record(draw().written(encoded))
            except BaseException as error:
                error.add_note(
                    "The price was charged before this happened, and is spent. Try again with "
                    f"request={self.request!r}: that costs nothing more."
                )
                raise
        return empty.with_answer(answer, decoded, self.request)

    def _charge(self, release: Answerable) -> Reservation:
        what = {
            "command": self.command,
            "mechanism": repr(release.mechanism),
            "dataset": self.dataset,
            "options": dict(self.options),
        }
        return self.ledger.charge(release.price(), what, request=self.request, account=self.account)


def paid(
    ledger: Ledger | None,
    request: str | None,
    account: str | None,
    dataset: str | None,
    command: str,
    options: Mapping[str, object],
    numbers: Mapping[str, Number | None],
) -> Paid | None:
    """What pays for a release, if anything does; what belongs to a ledger is refused without one.

    options, numbers    what the command was given; `numbers` may be written in several ways, and are recorded exactly
    """
    if ledger is not None:
        given = {name: _public(value) for name, value in options.items() if value is not None}
        exactly = {name: str(exact(name, value)) for name, value in numbers.items() if value is not None}
        return Paid(ledger, request, account, dataset, command, given | exactly)
    for name, value in (("request", request), ("account", account), ("dataset", dataset)):
        if value is not None:
            raise ParameterError(name, value, "it belongs to a ledger, and there is none", "Give ledger.")
    return None


def _public(value: object) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [_public(one) for one in value] if is_list else encoded(value)  # type: ignore[attr-defined]
