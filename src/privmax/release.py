"""The public terms of an answer, the one way every answer is made, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from privmax.choice import Choice, auto, check_price, check_service, draw_outcomes
from privmax.counts import CountNoise, Noise, choose_noise, read_noise
from privmax.display import facts, in_words, to_json
from privmax.encoding import decode, encode
from privmax.errors import EngineError, ParameterError, PrivmaxError, WorkError, refuse_given
from privmax.labels import by_name
from privmax.ledger.events import Price, label
from privmax.ledger.ledger import Ledger, describe_privacy
from privmax.ledger.payment import Draw, Payment, Question, Request
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import build, check_name
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, plain, positive, probability, whole
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.profile import LARGEST_UNIVERSE
from privmax.sources.base import Source
from privmax.sources.scale import WHOLE, Scale
from privmax.universe import OPEN_UNIVERSE, Universe
from privmax.warnings import warn_of_price

YOURS = "you chose it"
"""Why a mechanism runs that the caller gave or named."""


@dataclass(frozen=True)
class Release:
    """What was released. Everything in it is charged by `privacy`, so all of it may be published.

    A release is the sequence of its items: it can be iterated over, has a length, and is false when
    there was no answer. Equal releases have one hash; a notebook shows a table.

    items         the chosen items: best first if `ranked`, otherwise a set, sorted by name; empty
                  if there was no answer
    privacy       what it cost, whether or not there was an answer
    mechanism     what ran
    why           why that mechanism
    diagnostics   what the same cost also charged, e.g. near_maximizers, max_estimate
    request       with a ledger: the id it was charged under; with it the same release can be had
                  again
    recorded      None; or when the answer was recorded, UTC, if that was before: it was returned
                  from the ledger, and no data was read for it
    unit          what the cost hides: "user", "row", "basket"; None: nobody said
    requested     how many items were asked for; there may be fewer
    counts        noisy counts of the items, in their order, where `counts` asked for them: scores
                  in their units, each within `error` of the true one in 95 of 100 cases
    noise         the law of their noise; None: no counts were asked for, or the noise is not known
    counts_privacy   the part of `privacy` that they cost; None: no counts were asked for
    """

    items: tuple[Any, ...]
    privacy: Privacy
    mechanism: Mechanism
    why: str
    diagnostics: Mapping[str, int | float] = field(hash=False)
    request: str | None = field(default=None, kw_only=True)
    recorded: str | None = field(default=None, kw_only=True, compare=False)
    unit: str | None = field(default=None, kw_only=True)
    requested: int = field(default=1, kw_only=True)
    counts: tuple[int | float, ...] = field(default=(), kw_only=True)
    noise: Noise | None = field(default=None, kw_only=True)
    counts_privacy: Privacy | None = field(default=None, kw_only=True)

    @property
    def error(self) -> int | float | None:
        """Half the width of the 95 % interval around each count; None: there is no noise."""
        return None if self.noise is None else self.noise.error()

    def __repr__(self) -> str:
        shown = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        parts = [f"{name}={value!r}" for name, value in (shown | {"ranked": self.ranked}).items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def ranked(self) -> bool:
        """Whether the order of the items was released, best first."""
        return is_ranked(self.mechanism)

    @property
    def item(self) -> Any:
        """The chosen item, or None if there was no answer. Of several the first, which is the
        best only if `ranked`.
        """
        return self.items[0] if self.items else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the items, in sentences: that fewer came, that they have no order."""
        found = []
        if len(self.items) > 1 and not self.ranked:
            found.append("Sorted by name; their order is not released.")
        if 0 < len(self.items) < self.requested:
            found.append(f"{len(self.items)} of {self.requested} released: nothing else stood out.")
        return tuple(found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, the mechanism as text and numbers of the cost exactly, as text."""
        return {
            "items": list(self.items),
            "requested": self.requested,
            "ranked": self.ranked,
            "counts": list(self.counts),
            "error": self.error,
            "noise": None if self.noise is None else repr(self.noise),
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

    def answer_fields(self) -> dict[str, Any]:
        """The items, and what belongs to them, by the names that they have in JSON."""
        return {
            "item": self.item,
            "items": list(self.items),
            "requested": self.requested,
            "ranked": self.ranked,
            "counts": list(self.counts),
            "error": self.error,
        }

    def to_json(self) -> str:
        """The JSON object that the command prints with --json, but for what a ledger has left.

        Dates become ISO text, and bytes hexadecimal digits. docs/json.md has the fields.

        Examples:
            >>> import json, privmax
            >>> release = privmax.select({"tea": 10**9, "ale": 1}, epsilon=1, delta=1e-6)
            >>> json.loads(release.to_json())["items"]
            ['tea']
        """
        paid = {"request": self.request, "recorded": self.recorded}
        return to_json(
            {
                **self.answer_fields(),
                "privacy": {
                    "epsilon": plain(self.privacy.epsilon),
                    "delta": plain(self.privacy.delta),
                },
                "mechanism": repr(self.mechanism),
                "why": self.why,
                "free": dict(self.diagnostics),
                "unit": self.unit,
                **({} if self.request is None else paid),
            }
        )

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        counts = [f": {told}" for told in self.describe_counts()] or [""] * len(self.items)
        told = zip(self.items, counts, strict=True)
        items = [f"{in_words(item)}{count}" for item, count in told]
        return facts(
            "Release",
            {
                "released": items or "no answer: no item stood out enough",
                **self._show_more(),
                "note": self.notes,
                "privacy cost": describe_privacy(self.privacy),
                "protects": "" if self.unit is None else f"one {self.unit}",
                "mechanism": f"{type(self.mechanism).__name__}: {self.why}",
                **{name: str(value) for name, value in self.diagnostics.items()},
                "request": self.request or "",
                "recorded": self.recorded or "",
            },
        )

    def _show_more(self) -> dict[str, Sequence[str]]:
        """What else was released, in words, for the table."""
        return {}

    def describe_counts(self) -> list[str]:
        """The counts in words, such as "912 ± 15 (95 %)"; empty where there are none."""
        error = "" if self.error is None else f" ± {_show(self.error)} (95 %)"
        return [f"{_show(count)}{error}" for count in self.counts]

    def to_record(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        """All that was drawn, as JSON for a ledger; `write` writes an item."""
        free = {name: encode(value) for name, value in self.diagnostics.items()}
        drawn = {"items": [write(item) for item in self.items], "free": free}
        if self.noise is None:
            return drawn
        counts = [encode(count) for count in self.counts]
        return {**drawn, "counts": counts, "noise": self.noise.to_dict()}

    def with_answer(
        self,
        answer: Mapping[str, Any],
        read: Callable[[Any], Any],
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        """The same release with what `to_record` wrote down as drawn; `read` reads an item."""
        items = tuple(read(item) for item in answer["items"])
        free = {name: decode(value) for name, value in answer["free"].items()}
        counts = tuple(decode(count) for count in answer.get("counts", ()))
        noise = read_noise(answer["noise"]) if "noise" in answer else None
        drawn = replace(self, items=items, diagnostics=free, counts=counts, noise=noise)
        return replace(drawn, request=request, recorded=recorded)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of an answer: what runs at what cost, in which universe. No data enters.

    epsilon, delta   the cost, where the mechanism is to be chosen, or is given by its name
    given            a mechanism, or its name; None: `auto` chooses
    neighbors        the relation the cost is stated for; None: "add-remove"
    growth           how many candidates one individual's record touches at most, if there is a
                     bound
    k                how many items are released
    ranked           whether their order must be, too: `auto` then chooses what releases one, and a
                     given mechanism that does not is refused
    universe         all candidates there are
    unit             what the cost hides; None: nobody said
    counts           what noisy counts of the items cost, in epsilon beside the items; None: there
                     are none
    scale            on which numbers scores stand, and by how many steps one individual moves one
    """

    epsilon: Number | None = None
    delta: Number | None = None
    given: Mechanism | str | None = None
    neighbors: str | None = None
    growth: int | None = None
    k: int = 1
    ranked: bool = False
    universe: Universe = OPEN_UNIVERSE
    unit: str | None = None
    counts: Number | None = None
    scale: Scale = WHOLE

    def __post_init__(self) -> None:
        whole("k", self.k)
        if self.counts is not None:
            positive("counts", self.counts, "For example 0.2, or leave it out.")
        if not isinstance(self.ranked, bool):
            raise ParameterError("ranked", self.ranked, "it must be True or False")
        if self.unit is not None:
            label("unit", self.unit)
        if self.given is not None and not isinstance(self.given, str):
            self._check_given(self.given)
        else:
            if isinstance(self.given, str):
                check_name(self.given)
            if self.epsilon is None:
                remedy = "Give epsilon (and delta), or a mechanism."
                raise ParameterError.required("epsilon", "", remedy)
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
            made = build(self.given, **options)
            self._check_ranked(made)
            return Choice(made, YOURS)
        return auto(**options, ranked=self.ranked, universe=self.universe)

    @cached_property
    def count_noise(self) -> CountNoise:
        """The noise on counts, where they are asked for, and what they cost.

        They may use as much delta as the items, and it is charged for both.
        """
        mechanism = self.choice.mechanism
        delta = mechanism.privacy().delta if self.delta is None else self.delta
        growth = getattr(mechanism, "growth", None) if self.growth is None else self.growth
        return choose_noise(
            Privacy(self.counts or 0, probability("delta", delta)),
            k=mechanism.k,  # a mechanism may bring its own
            growth=growth,
            neighbors=mechanism.neighbors,
            sensitivity=self.scale.steps,
            step=self.scale.step,
        )

    def privacy(self) -> Privacy:
        """What the answer costs, and all that is released with it."""
        selection = self.choice.mechanism.privacy()
        return selection if self.counts is None else selection + self.count_noise.privacy

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
        """Meet before the charge what can be met there: an engine that fails, and more candidates
        than can be listed. For the latter a draw is tried, with coins of its own, and thrown away:
        how much is listed does not depend on the coins.
        """
        source.profile.top()
        if not getattr(source, "may_be_too_many", False):  # somebody else's need not say
            return
        try:
            draw_outcomes(self.choice.mechanism, source.profile, SYSTEM)
        except (EngineError, WorkError):
            raise
        except Exception:  # may depend on the coins, so it counts only in the draw that is charged
            return

    def release(self) -> Release:
        """The release without its answer."""
        mechanism, why = self.choice
        noise, price = (None, None) if self.counts is None else self.count_noise
        return Release(
            (),
            self.privacy(),
            mechanism,
            why,
            {},
            unit=self.unit,
            requested=mechanism.k,
            noise=noise,
            counts_privacy=price,
        )

    def draw(self, source: Any, coins: Coins) -> Release:
        """The release with what the mechanism draws from a source."""
        outcomes = draw_outcomes(self.choice.mechanism, source.profile, coins)
        found = zip(source.names(outcomes), outcomes, strict=True)
        named = [(item, outcome) for item, outcome in found if item is not None]
        if not is_ranked(self.choice.mechanism):
            named.sort(key=lambda pair: by_name(pair[0]))
        items = tuple(item for item, _ in named)
        beside = outcomes[0].diagnostics if outcomes else {}
        diagnostics = {name: _in_units(name, value, source.step) for name, value in beside.items()}
        counts: tuple[int | float, ...] = ()
        if self.counts is not None:
            assert (source.profile.sensitivity, source.step) == (self.scale.steps, self.scale.step)
            true_counts = source.counts([outcome for _, outcome in named])
            counts = tuple(self.count_noise.noise.add(count, coins) for count in true_counts)
        return replace(self.release(), items=items, diagnostics=diagnostics, counts=counts)

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
        refuse_given(given, "the mechanism already sets it", "Give one or the other.")
        if self.k not in (1, mechanism.k):
            raise ParameterError(
                "k",
                self.k,
                "the mechanism already sets it",
                "Make the mechanism with that k, if it takes one.",
            )
        self._check_ranked(mechanism)

    def _check_ranked(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that does not release the order that is asked for."""
        if self.ranked and not is_ranked(mechanism):
            raise ParameterError(
                "ranked",
                self.ranked,
                f"{type(mechanism).__name__} releases a set, and not its order",
                "Leave ranked out, or use one that releases an order, such as sharp-margin.",
            )


def is_ranked(mechanism: Any) -> bool:
    """Whether a mechanism releases the order of its items; one of somebody else's need not say."""
    return bool(getattr(mechanism, "ranked", True))


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
        drawn = _draw_unpaid(terms, read, warn, coins)
        if isinstance(drawn, BaseException):
            raise drawn  # from here: the frames it went through held what was drawn
        return drawn
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
            return lambda: terms.draw(source, coins).to_record(source.encode)

        reservation = payment.settle(reservation, look, lambda: empty.to_record(encode))
    return empty.with_answer(reservation.answer, terms.decode, payment.request, reservation.when)


def _draw_unpaid(
    terms: Terms,
    read: Callable[[ExitStack], Source],
    warn: Callable[[], None] | None,
    coins: Coins,
) -> Release | BaseException:
    """The release without a ledger; or what the draw raised, without the frames it went through and
    without what caused it: what was drawn is in them, and a crash reporter would read it.
    """
    with ExitStack() as stack:
        source = read(stack)
        if warn is not None:
            warn()
        try:
            return terms.draw(source, coins)
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            if isinstance(error, Exception) and not isinstance(error, PrivmaxError):
                error.add_note(_CUT)
            return error


_CUT = (
    "It was raised while an answer was drawn. The traceback leaves out where: what was drawn is "
    "there. On invented data, mechanism.draw shows it."
)


def _show(number: int | float) -> str:
    """A number for people: a whole one in full, another in six digits."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def _in_units(name: str, value: int, step: Fraction) -> int | float:
    """A diagnostic in the units of the scores; counts of candidates stay as they are."""
    return float(value * step) if name == "max_estimate" and step != 1 else value
