"""The one way every answer is made, what a question must be for it, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from privmax.counts import Noise
from privmax.display import format_label, make_frame, to_json
from privmax.errors import LedgerError, ParameterError, PrivmaxError
from privmax.ledger.events import Charge
from privmax.ledger.request import Request, is_strict
from privmax.mechanisms.registry import describe_mechanism, registered_name
from privmax.noise.coins import SYSTEM, Coins
from privmax.notebook import facts
from privmax.numbers import round_up
from privmax.payload import Drawn, Part, ReleasedField, find_value
from privmax.privacy import Neighbors, Privacy, describe_privacy
from privmax.relative import RelativeNoise
from privmax.warnings import warn_of_price

if TYPE_CHECKING:
    from privmax.ledger.ledger import Ledger
    from privmax.ledger.payment import Description, Draw

CHECKED = "a check only: the data can be read and fits the question; nothing was drawn or charged"
"""The reason why a release that was only checked has no answer."""

CHOSEN_BY_CALLER = "you chose it"
"""The reason for a mechanism that the caller gave or named."""


class Procedure(Protocol):
    """A procedure that ran: a mechanism, a published method, rounds of a fit, runs of a search."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation that its cost is stated for."""
        ...

    @property
    def k(self) -> int:
        """The most items it releases."""
        ...

    def privacy(self) -> Privacy:
        """Return what it costs."""
        ...


@dataclass(frozen=True)
class Release:
    """A release. Everything in it is charged by `privacy`, so all of it may be published.

    A release is the sequence of its items: it can be iterated over, has a length, and is false when
    there was no answer. Equal releases have one hash; a notebook shows a table.

    Attributes:
        items: The chosen items: best first if `ranked`, otherwise a set, sorted by name; empty if
            there was no answer.
        privacy: What it cost, whether or not there was an answer.
        mechanism: What ran.
        why: Why that mechanism.
        diagnostics: What the same cost also charged, e.g. near_maximizers, max_estimate.
        request: With a ledger: the id it was charged under; with it the same release can be had
            again.
        recorded: None; or when the answer was recorded, UTC, if that was before: it was returned
            from the ledger, and no data was read for it.
        unit: What the cost hides: "user", "row", "basket"; None: not given.
        requested: How many items were asked for; there may be fewer.
        counts: Noisy counts of the items, in their order, where `counts` asked for them: scores in
            their units, each within `error` of the true one in 95 of 100 cases.
        noise: The law of their noise; None: no counts were asked for, or the noise is not known.
        counts_privacy: The part of `privacy` that they cost; None: no counts were asked for.
        relative: Where the order was made from noisy counts: each of these less that of the first
            item, in units of the scores; otherwise None. The difference of two is within `apart` of
            the true one in 95 of 100 cases.
        relative_noise: The law of the noise in these; otherwise None.
    """

    payload: Drawn
    privacy: Privacy
    mechanism: Procedure
    why: str
    request: str | None = field(default=None, kw_only=True)
    recorded: str | None = field(default=None, kw_only=True, compare=False)
    unit: str | None = field(default=None, kw_only=True)
    requested: int = field(default=1, kw_only=True)
    counts_privacy: Privacy | None = field(default=None, kw_only=True)

    @property
    def items(self) -> tuple[Any, ...]:
        return self.payload.items

    @property
    def diagnostics(self) -> Mapping[str, int | float]:
        return self.payload.diagnostics

    @property
    def counts(self) -> tuple[int | float, ...]:
        return () if self.payload.counts is None else self.payload.counts

    @property
    def noise(self) -> Noise | None:
        return self.payload.noise

    @property
    def error(self) -> int | float | None:
        """Half the width of the 95 % interval around each count; None: there is no noise."""
        return None if self.noise is None else self.noise.error()

    @property
    def relative(self) -> tuple[int | float, ...] | None:
        return self.payload.relative

    @property
    def relative_noise(self) -> RelativeNoise | None:
        return self.payload.relative_noise

    @property
    def apart(self) -> int | float | None:
        """Half the width of the 95 % interval around the difference of two relative counts; None:
        there are none.
        """
        return None if self.relative_noise is None else self.relative_noise.error()

    @property
    def close(self) -> tuple[bool, ...] | None:
        """For each item whether it is not told apart from the one before it: their relative counts
        differ by no more than `apart`. None: there are no relative counts.
        """
        if self.relative is None or self.relative_noise is None:
            return None
        step = self.relative_noise.step  # floats of a grid are compared by their steps
        apart, *steps = [round(Fraction(one) / step) for one in (self.apart or 0, *self.relative)]
        near = (before - here <= apart for before, here in pairwise(steps))
        return (False, *near)[: len(steps)]

    def __repr__(self) -> str:
        drawn = [
            one.name
            for one in fields(self.payload)
            if one.repr or getattr(self.payload, one.name) is not None
        ]
        names = dict.fromkeys([*_ORDER, *drawn, "ranked"])
        parts = [f"{name}={find_value(self, name)!r}" for name in names]
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def ranked(self) -> bool:
        """Whether the order of the items was released, best first. One item has no order."""
        return self.requested > 1 and is_ranked(self.mechanism)

    @property
    def ranks(self) -> Sequence[int]:
        """The place of each item in the order, from 1; it means something only if `ranked`."""
        return range(1, len(self.items) + 1)

    @property
    def checked(self) -> bool:
        """Whether this is what `Request(check=True)` gives: nothing was drawn or charged."""
        return self.why == CHECKED

    @property
    def item(self) -> Any:
        """The chosen item, or None if there was no answer. Of several the first, which is the
        best only if `ranked`.
        """
        return self.items[0] if self.items else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about the items, in sentences: what their order means, that fewer came."""
        notes = []
        if len(self.items) > 1 and not self.ranked:
            notes.append("Sorted by name; their order is not released.")
        elif len(self.items) > 1:
            notes.append(self._describe_order())
            if self.counts and self.noise is not None:  # drawn apart from the order
                notes.append("Counts have noise of their own and may contradict the order.")
        if 0 < len(self.items) < self.requested:
            notes.append(f"{len(self.items)} of {self.requested} released: nothing else stood out.")
        return tuple(notes)

    def _describe_order(self) -> str:
        """Describe the meaning of the order of the items."""
        if registered_name(self.mechanism) == "gap-test":
            return "Best first: the order is right, or there is no answer."
        if self.close is None:
            return "Best first, as drawn: items with close scores may be in the wrong order."
        if not any(self.close):
            return "Best first, by noisy counts: each item is clearly ahead of the next."
        return "Best first, by noisy counts. ~ marks an item too close to the one before."

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def fields(self) -> tuple[ReleasedField, ...]:
        """The fields of the release, and how each of them is written."""
        return self.payload.FIELDS

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, the mechanism as text and numbers of the cost exactly, as text."""
        shown = [one for one in self.fields if one.is_shown(self)]
        return {one.name: one.write(self) for one in shown if one.name}

    def to_fields(self, part: Part) -> dict[str, Any]:
        """Return one part of it by the names that it has in JSON."""
        shown = [one for one in self.fields if one.is_shown(self)]
        return {one.key: one.write(self) for one in shown if one.key and one.part == part}

    def to_json(self) -> str:
        """The JSON object that the command prints with --json, but for what a ledger has left.

        Dates become ISO text, and bytes hexadecimal digits. `privmax help json` lists the fields.

        Examples:
            >>> import json, privmax
            >>> release = privmax.select({"tea": 10**9, "ale": 1}, epsilon=1, delta=1e-6)
            >>> json.loads(release.to_json())["items"]
            ['tea']
        """
        payment = {} if self.request is None else self.to_fields("payment")
        return to_json({**self.to_fields("answer"), **self.to_fields("cost"), **payment})

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        counts = [f": {text}" for text in self.describe_numbers()] or [""] * len(self.items)
        pairs = zip(self.items, counts, strict=True)
        items = [f"{format_label(item)}{count}" for item, count in pairs]
        return facts(
            "Release",
            {
                "released": items or (CHECKED if self.checked else _NO_ANSWER),
                **{one.attribute: one.words(one.read(self)) for one in self.fields if one.words},
                "note": self.notes,
                "privacy cost": describe_privacy(self.privacy),
                "protects": "" if self.unit is None else f"one {self.unit}",
                "mechanism": describe_mechanism(self.mechanism, self.why),
                **{name: str(value) for name, value in self.diagnostics.items()},
                "request": self.request or "",
                "recorded": self.recorded or "",
            },
        )

    def __str__(self) -> str:
        """The items in a few words, and what they cost.

        Examples:
            >>> import privmax
            >>> print(privmax.select({"tea": 10**9, "ale": 1}, epsilon=1, delta=1e-6))
            tea (epsilon 1, delta 1e-06)
        """
        if self.checked:
            return "checked; nothing was drawn or charged"
        counts = [f": {text}" for text in self.describe_counts()] or [""] * len(self.items)
        text = zip(self.items[:_SHOWN], counts, strict=False)
        words = ", ".join(f"{_cut(self.name_item(item))}{count}" for item, count in text)
        more = f" and {len(self.items) - _SHOWN} more" if len(self.items) > _SHOWN else ""
        return f"{words or 'no answer'}{more} ({describe_privacy(self.privacy, round_up)})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return the release as a frame, one row per item; without an answer it has no rows.

        Columns: `item`; where counts were asked for, `count` and `error`, half the width of its
        95 % interval; where the order was released, `rank`, from 1 on; and where it was made from
        noisy counts, `relative`, `apart` and `close`, as the release has them. Itemsets have
        `itemset` and `support`. In pandas items are as in `items`; polars and Arrow have text for
        items of several types, and lists for itemsets.

        Args:
            library: "pandas", "polars" or "pyarrow"; None: the first of them that is installed.

        Raises:
            ParameterError: It is another one, or is not installed; or nothing was drawn, as this is
                what `Request(check=True)` gives.

        Examples:
            >>> import privmax
            >>> release = privmax.select({"tea": 10**9, "ale": 1}, epsilon=1, delta=1e-6)
            >>> release.to_frame("pyarrow").to_pylist()
            [{'item': 'tea'}]
        """
        self._refuse_checked()
        return make_frame({self._titles[0]: self.items}, self._numbers(), library)

    def _numbers(self) -> dict[str, Sequence[Any]]:
        """The columns of a frame beside the items."""
        numbers: dict[str, Sequence[Any]] = {}
        if self.counts or self.noise is not None:
            numbers = {self._titles[1]: self.counts, "error": [self.error] * len(self.items)}
        if self.ranked:
            numbers["rank"] = self.ranks
        if self.relative is not None:
            numbers["relative"] = self.relative
            numbers["apart"] = [self.apart] * len(self.items)
            numbers["close"] = self.close or ()
        return numbers

    def _refuse_checked(self) -> None:
        """Refuse a frame of what was only checked."""
        if self.checked:
            raise ParameterError(
                "check", True, "nothing was drawn, so there is no frame of what was released",
                "Ask without it.",
            )  # fmt: skip

    @property
    def _titles(self) -> tuple[str, str]:
        """The titles of the columns of items and of counts."""
        return "item", "count"

    def name_item(self, item: Any) -> str:
        """An item in words."""
        return format_label(item)

    def describe_counts(self) -> list[str]:
        """The counts in words, such as "912 ± 15 (95 %)"; empty where there are none."""
        if not self.payload.counts:
            return []
        error = "" if self.error is None else f" ± {_show(self.error)} (95 %)"
        return [f"{_show(count)}{error}" for count in self.counts]

    def describe_order(self) -> list[str]:
        """The relative counts in words, such as "~ 12 behind ± 46", where ~ marks an item that is
        not told apart from the one before; empty where there are none.
        """
        if self.payload.relative is None or self.close is None or self.apart is None:
            return []
        lines: list[str] = []
        counts = self.payload.relative
        for rank, relative, is_close in zip(self.ranks, counts, self.close, strict=True):
            behind = f"{_show(-relative)} behind ± {_show(self.apart)}" if rank > 1 else "first"
            lines.append(f"{'~ ' if is_close else ''}{behind}")
        return lines

    def describe_numbers(self) -> list[str]:
        """All that is released beside each item, in words; empty where nothing is."""
        columns = [one for one in (self.describe_counts(), self.describe_order()) if one]
        return ["; ".join(row) for row in zip(*columns, strict=True)]


_ORDER = (
    "items", "privacy", "mechanism", "why", "diagnostics", "request", "recorded", "unit",
    "requested", "counts", "noise", "counts_privacy",
)  # fmt: skip
"""Of what `repr` shows, the first."""

_SHOWN = 5
"""Items that `str` shows."""

_LONGEST = 40
"""Characters of each."""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_NO_ANSWER = "no answer: no item stood out enough"


def is_ranked(mechanism: Any) -> bool:
    """Whether a mechanism releases the order of its items; those that others wrote need not say."""
    return bool(getattr(mechanism, "ranked", True))


S_contra = TypeVar("S_contra", contravariant=True)
P = TypeVar("P", bound=Drawn)
R_co = TypeVar("R_co", bound=Release, covariant=True)


class Releasable(Protocol[S_contra, P, R_co]):
    """A question that `answer` answers. It is public, and holds no data.

    One class per question implements it: `BestItems` for all that mechanisms choose, and one for
    each kind of itemsets, fits and searches. They share parts by holding them.
    """

    def describe(self) -> str:
        """Return what runs, as a ledger writes it down."""
        ...

    def privacy(self) -> Privacy:
        """Return what it costs."""
        ...

    def charge(self) -> Charge:
        """Return what it costs, under which relation and for which unit."""
        ...

    def check(self) -> None:
        """Refuse what cannot be answered whatever the data, before that is read."""
        ...

    def preflight(self, source: S_contra) -> None:
        """Meet before the charge what can fail with this data."""
        ...

    def draw(self, source: S_contra, coins: Coins) -> P:
        """Draw an answer."""
        ...

    def draw_nothing(self) -> P:
        """Return what stands for no answer, which costs the same."""
        ...

    def write(self, payload: P, source: S_contra) -> dict[str, Any]:
        """Write what was drawn for a ledger. A payload holds nothing of the source, which is
        private and may know how its items are written.
        """
        ...

    def read(self, written: Mapping[str, Any]) -> P:
        """Read what a ledger recorded. No data is needed."""
        ...

    def release(self, payload: P) -> R_co:
        """Return the release of what was drawn."""
        ...


def answer(
    question: Releasable[S_contra, P, R_co],
    read: Callable[[ExitStack], S_contra],
    ledger: Ledger | Request | None = None,
    *,
    description: Description | None = None,
    warn: Callable[[], None] | None = None,
    coins: Coins = SYSTEM,
    check: bool = False,
) -> R_co:
    """Answer a question: cost, already recorded?, fits?, read, charge, draw, record, hand out.

    Args:
        question: What runs, at what cost.
        read: Reads the data; it is called after the ledger was asked, and with a strict one after
            the charge. What it opens is closed by the stack it is given.
        ledger: What pays, if anything does.
        description: What is asked, for the ledger.
        warn: Warns of what the answer hides less than it seems. It is called when there is data (an
            error would be the better hint), and with a strict ledger before the charge.
        coins: Source of random bits; for tests only.
        check: Whether this is only a check, as `check_only` makes it.

    Returns:
        What `question.release` makes of what was drawn.

    Raises:
        BudgetError: The budget does not allow it. Nothing was read or charged.
    """
    _check_coins(coins)
    if check:
        return check_only(question, read, ledger, description=description)
    if ledger is None:
        warn_of_price(question.privacy())
        drawn = _draw_unpaid(question, read, warn, coins)
        if isinstance(drawn, BaseException):
            raise drawn  # from here: the frames it went through held what was drawn
        return drawn
    from privmax.ledger.payment import Description, Payment

    # Made before the ledger is asked: a mechanism of the caller's runs here, and may fail.
    empty = question.release(question.draw_nothing())
    charge = question.charge()
    request = Request.charged(ledger, charge.unit)
    what = (description or Description()).to_json(question.describe(), request.dataset)
    payment = Payment(request, charge, what)
    reservation = payment.find_recorded()
    if reservation is None or not reservation.recorded:
        warn_of_price(empty.privacy)
        question.check()
        strict = request.payer.strict
        if warn is not None and strict:
            warn()

        def preflight(stack: ExitStack) -> Draw:
            source = read(stack)
            if warn is not None and not strict:
                warn()
            question.preflight(source)
            return lambda: question.write(question.draw(source, coins), source)

        reservation = payment.run(reservation, preflight, lambda: empty.payload.to_json())
    try:
        payload = question.read(reservation.answer)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        payload = None
    if payload is None:  # from here: what could not be read is not in the traceback
        raise LedgerError(
            f"The recorded answer to request {payment.request!r} cannot be read as an answer to "
            "this question: the ledger was damaged, or changed by another program. Nothing is "
            "drawn again.",
            remedy="Check the ledger: ledger.verify() lists what is wrong with it.",
        )
    return replace(empty, payload=payload, request=payment.request, recorded=reservation.when)


def _check_coins(coins: object) -> None:
    """Refuse what gives no random bits, before anything is charged."""
    if isinstance(coins, type) or not callable(getattr(coins, "bits", None)):
        raise ParameterError(
            "coins", f"<{type(coins).__name__}>", "it must be a source of random bits",
            "Leave it out: it is for tests only.",
        )  # fmt: skip


def answer_request(
    question: Releasable[S_contra, P, R_co],
    read: Callable[[ExitStack], S_contra],
    request: Request,
    *,
    description: Description | None = None,
    coins: Coins = SYSTEM,
) -> R_co:
    """Answer a question, or only check it, as its request says; the question has read the unit."""
    return answer(
        question,
        read,
        request.payment(),
        description=description,
        coins=coins,
        check=request.check,
    )


def check_only(
    question: Releasable[S_contra, P, R_co],
    read: Callable[[ExitStack], S_contra] | None,
    ledger: Ledger | Request | None = None,
    *,
    description: Description | None = None,
) -> R_co:
    """Do what `answer` does before a charge, and nothing of what follows.

    Args:
        question: What would run, at what cost.
        read: Reads the data; None: it was read.
        ledger: What would pay. It is asked whether the cost fits, and nothing is written.
        description: What would be asked, for the ledger: a request id that was charged with another
            question is refused.

    Returns:
        A release without an answer, which cost nothing.

    Raises:
        ParameterError: The ledger is strict: its releases say nothing of what is wrong with data.
        BudgetError: The budget does not allow the cost.
    """
    refuse_strict(ledger)
    if ledger is not None:
        from privmax.ledger.payment import Description

        charge = question.charge()
        request = Request.charged(ledger, charge.unit)
        what = (description or Description()).to_json(question.describe(), request.dataset)
        request.payer.require(charge, request.account, what=what, request=request.id)
    question.check()
    if read is not None:
        with ExitStack() as stack:
            question.preflight(read(stack))
    empty = question.release(question.draw_nothing())
    payload = replace(empty.payload, noise=None, relative=None, relative_noise=None)
    return replace(empty, payload=payload, privacy=Privacy(0), why=CHECKED, counts_privacy=None)


def refuse_strict(ledger: Ledger | Request | None) -> None:
    """Refuse a check beside a strict ledger: it would tell at no cost what that does not tell."""
    if is_strict(ledger):
        raise ParameterError(
            "check", True, "a strict ledger charges before any data is read, and a check would "
            "reveal at no cost what is wrong with the data",
            "Leave it out, or check invented data of the same form without a ledger.",
        )  # fmt: skip


def _draw_unpaid(
    question: Releasable[S_contra, P, R_co],
    read: Callable[[ExitStack], S_contra],
    warn: Callable[[], None] | None,
    coins: Coins,
) -> R_co | BaseException:
    """The release without a ledger; or what the draw raised, without the frames it went through and
    without what caused it: what was drawn is in them, and a crash reporter would read it.
    """
    with ExitStack() as stack:
        source = read(stack)
        if warn is not None:
            warn()
        try:
            return question.release(question.draw(source, coins))
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            if isinstance(error, Exception) and not isinstance(error, PrivmaxError):
                error.add_note(_CUT)
            return error


_CUT = (
    "It was raised while an answer was drawn. The traceback omits the place, which could reveal "
    "the answer. To find the cause, call mechanism.draw on invented data."
)


def _show(number: int | float) -> str:
    """A number for people: a whole one in full, another in six digits."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
