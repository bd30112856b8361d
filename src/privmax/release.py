"""The public terms of an answer, the one way every answer is made, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, Self

from privmax.choice import Choice, auto, check_price, check_service, draw_outcomes
from privmax.encoding import decode, encode
from privmax.errors import ParameterError, refuse_given
from privmax.ledger.events import Price, label
from privmax.ledger.ledger import Ledger
from privmax.ledger.payment import Draw, Payment, Question, Request
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, plain, whole
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.profile import LARGEST_UNIVERSE
from privmax.sources.base import Source
from privmax.universe import OPEN_UNIVERSE, Universe
from privmax.warnings import warn_of_price

YOURS = "you chose it"
"""Why a mechanism runs that the caller gave or named."""


@dataclass(frozen=True)
class Release:
    """What was released. Everything in it is paid for by `privacy`, so all of it may be published.

    A release is the sequence of its items: it can be iterated over, has a length, and is false when
    nothing could be released.

    items         the chosen items, best first; empty when nothing could be released
    privacy       what it cost, whether or not there was an answer
    mechanism     what ran
    why           why that mechanism
    diagnostics   what the same cost also paid for, e.g. near_maximizers, max_estimate
    request       with a ledger: the id it was charged under; with it the same release can be had
                  again
    recorded      None; or when the answer was recorded, UTC, if that was before: it was returned
                  from the ledger, and no data was read for it
    unit          what the cost hides: "user", "row", "basket"; None: nobody said
    """

    items: tuple[Any, ...]
    privacy: Privacy
    mechanism: Mechanism
    why: str
    diagnostics: Mapping[str, int | float]
    request: str | None = field(default=None, kw_only=True)
    recorded: str | None = field(default=None, kw_only=True, compare=False)
    unit: str | None = field(default=None, kw_only=True)

    @property
    def item(self) -> Any:
        """The chosen item, or None: nothing could be released."""
        return self.items[0] if self.items else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, the mechanism as text and numbers of the cost exactly, as text."""
        return {
            "items": list(self.items),
            "privacy": {
                "epsilon": plain(self.privacy.epsilon),
                "delta": plain(self.privacy.delta),
            },
            "mechanism": repr(self.mechanism),
            "why": self.why,
            "diagnostics": dict(self.diagnostics),
            "request": self.request,
            "recorded": self.recorded,
            "unit": self.unit,
        }

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        items = "<br>".join(escape(str(item)) for item in self.items)
        rows = {
            "released": items or "nothing could be released",
            "price": escape(f"epsilon {self.privacy.epsilon}, delta {self.privacy.delta}"),
            "mechanism": escape(f"{type(self.mechanism).__name__}: {self.why}"),
        }
        rows |= {escape(name): escape(str(value)) for name, value in self.diagnostics.items()}
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"

    def to_json(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        """All that was drawn, as JSON for a ledger; `write` writes an item."""
        free = {name: encode(value) for name, value in self.diagnostics.items()}
        return {"items": [write(item) for item in self.items], "free": free}

    def with_answer(
        self,
        answer: Mapping[str, Any],
        read: Callable[[Any], Any],
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        """The same release with what `to_json` wrote down as drawn; `read` reads an item."""
        items = tuple(read(item) for item in answer["items"])
        free = {name: decode(value) for name, value in answer["free"].items()}
        return replace(self, items=items, diagnostics=free, request=request, recorded=recorded)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of an answer: what runs at what cost, in which universe. No data enters.

    epsilon, delta   the cost, where the mechanism is to be chosen, or is given by its name
    given            a mechanism, or its name; None: `auto` chooses
    neighbors        the relation the cost is stated for; None: "add-remove"
    growth           how many candidates one individual's record touches at most, if there is a
                     bound
    k                how many items are released
    universe         all candidates there are
    unit             what the cost hides; None: nobody said
    """

    epsilon: Number | None = None
    delta: Number | None = None
    given: Mechanism | str | None = None
    neighbors: str | None = None
    growth: int | None = None
    k: int = 1
    universe: Universe = OPEN_UNIVERSE
    unit: str | None = None

    def __post_init__(self) -> None:
        whole("k", self.k)
        if self.unit is not None:
            label("unit", self.unit)
        if self.given is not None and not isinstance(self.given, str):
            self._check_given(self.given)
        else:
            if isinstance(self.given, str) and self.given not in MECHANISMS:
                allowed = f"it must be one of {', '.join(MECHANISMS)}"
                raise ParameterError("mechanism", self.given, allowed, "For example nested-margin.")
            if self.epsilon is None:
                remedy = "Give epsilon (and delta), or a mechanism."
                raise ParameterError("epsilon", None, "it is required", remedy)
            delta = 0 if self.delta is None else self.delta
            is_open = self.universe.size is None and self.given is None
            check_price(self.epsilon, delta, self.neighbors, self.growth, is_open=is_open)

    @cached_property
    def choice(self) -> Choice:
        """What runs, and why; decided once."""
        if self.given is not None and not isinstance(self.given, str):
            return Choice(self.given, YOURS)
        options: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": 0 if self.delta is None else self.delta,
            "neighbors": ADD_REMOVE if self.neighbors is None else self.neighbors,
            "growth": self.growth,
            "k": self.k,
        }
        if self.given is not None:
            return Choice(build(self.given, **options), YOURS)
        return auto(**options, universe=self.universe)

    def privacy(self) -> Privacy:
        """What the answer costs, and all that is released with it."""
        return self.choice.mechanism.privacy()

    def cost(self) -> Price:
        """What to charge. A mechanism has bounded range only with nothing beside it."""
        mechanism, privacy = self.choice.mechanism, self.privacy()
        ranged = mechanism.bounded_range and privacy == mechanism.privacy()
        return Price(privacy, ranged=ranged, neighbors=mechanism.neighbors, unit=self.unit)

    def check(self) -> None:
        """Refuse terms that the mechanism cannot meet, before anything is charged.

        What `auto` chose serves every universe that a profile can hold.
        """
        size = self.universe.size
        if self.given is not None or (size is not None and size > LARGEST_UNIVERSE):
            check_service(self.choice.mechanism, size)

    def look(self, source: Any) -> None:
        """Meet before the charge what can be met there: an engine that fails."""
        source.profile.top()

    def release(self) -> Release:
        """The release without its answer."""
        mechanism, why = self.choice
        return Release((), self.privacy(), mechanism, why, {}, unit=self.unit)

    def draw(self, source: Any, coins: Coins) -> Release:
        """The release with what the mechanism draws from a source."""
        outcomes = draw_outcomes(self.choice.mechanism, source.profile, coins)
        items = tuple(item for outcome in outcomes if (item := source.name(outcome)) is not None)
        beside = outcomes[0].diagnostics if outcomes else {}
        diagnostics = {name: _in_units(name, value, source.step) for name, value in beside.items()}
        return replace(self.release(), items=items, diagnostics=diagnostics)

    def decode(self, written: Any) -> Any:
        """An item that a ledger keeps, as its source wrote it."""
        return decode(written)

    def _check_given(self, mechanism: Mechanism) -> None:
        """Refuse what is not a mechanism, and options that it already sets."""
        if isinstance(mechanism, type) or not hasattr(mechanism, "draw"):
            raise ParameterError(
                "mechanism",
                mechanism,
                "it must be a mechanism object",
                "For example NestedMargin(epsilon=1, delta=1e-6).",
            )
        fixed = ("epsilon", "delta", "neighbors", "growth")
        given = {name: getattr(self, name) for name in fixed}
        refuse_given(given, "mechanism already sets it", "Give one or the other.")
        if self.k not in (1, mechanism.k):
            raise ParameterError(
                "k",
                self.k,
                "mechanism already sets it",
                "Make the mechanism with that k, if it takes one.",
            )


def answer(
    terms: Terms,
    read: Callable[[ExitStack], Source],
    ledger: Ledger | Request | None = None,
    *,
    question: Question | None = None,
    warn: Callable[[], None] | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Answer a question: cost, already recorded?, fits?, read, charge, draw, record, hand out.

    Args:
        terms: What runs, at what cost.
        read: Reads the data; it is called after the ledger was asked, and with a strict one after
            the charge. What it opens is closed by the stack it is given.
        ledger: What pays, if anything does.
        question: What is asked, for the ledger.
        warn: Warns of what the answer hides less than it seems. It is called when there is data (an
            error would be the better hint), and with a strict ledger before the charge.
        coins: Source of random bits; for tests only.

    Returns:
        What `terms.release()` makes, with its answer.

    Raises:
        BudgetError: The budget does not allow it. Nothing was read or charged.
    """
    empty = terms.release()
    if ledger is None:
        warn_of_price(empty.privacy)
        with ExitStack() as stack:
            source = read(stack)
            if warn is not None:
                warn()
            return terms.draw(source, coins)
    request = Request.of(ledger)
    what = (question or Question()).to_json(empty.mechanism, request.dataset)
    payment = Payment(request, terms.cost(), what)
    reservation = payment.ask()
    if reservation is None or not reservation.recorded:
        warn_of_price(empty.privacy)
        terms.check()
        strict = request.ledger.strict
        if warn is not None and strict:
            warn()

        def look(stack: ExitStack) -> Draw:
            source = read(stack)
            if warn is not None and not strict:
                warn()
            terms.look(source)
            return lambda: terms.draw(source, coins).to_json(source.encode)

        reservation = payment.settle(reservation, look, lambda: empty.to_json(encode))
    return empty.with_answer(reservation.answer, terms.decode, payment.request, reservation.when)


def _in_units(name: str, value: int, step: Fraction) -> int | float:
    """A diagnostic in the units of the scores; counts of candidates stay as they are."""
    return float(value * step) if name == "max_estimate" and step != 1 else value
