"""What a ledger records: events, and the one way they are written down and hashed.

An event is a row of text. Exact numbers are text ("1/10"), JSON is canonical (sorted keys, ASCII,
no spaces), so equal events are equal bytes on every database. The hash of an event covers all of
its row and the hash before it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from privmax.errors import ParameterError
from privmax.numbers import exact, nonnegative
from privmax.privacy import ADD_REMOVE, Privacy, relation

SCHEMA = 1
"""Version of the tables and of what the rows hold."""

CREATED, RESERVED, RELEASED, GRANTED, ACCOUNT = (
    "created",
    "reserved",
    "released",
    "granted",
    "account",
)

USER, ROW, BASKET = "user", "row", "basket"
"""Units of privacy: what a cost hides. Somebody may name another one."""

LONGEST = 200
"""Characters a name, a request id or an account may have."""


@dataclass(frozen=True)
class Price:
    """What one request costs.

    `ranged`: it is one draw of the exponential mechanism, or another epsilon-private mechanism
    whose privacy loss always lies in an interval of length epsilon. Such a draw is cheaper under
    the rule "zcdp". `neighbors`: the relation it is stated for. Costs under different relations do
    not add up. `unit`: what it hides, as in "user", "basket" or "row". Costs for different units
    do not add up either. None: not said, as by privmax 0.1.0. `rho`: the request also is rho-zCDP
    (zero-concentrated differentially private), as Gaussian noise is. The rule "zcdp" then adds rho
    and not the delta; other rules add `privacy`.
    """

    privacy: Privacy
    ranged: bool = False
    neighbors: str = ADD_REMOVE
    unit: str | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        privacy_json(self.privacy)  # refuses numbers that are too long to be written down
        rho: object = self.rho
        if not isinstance(rho, Fraction | None):
            example = 'For example Fraction("0.01").'
            raise ParameterError("rho", rho, "it must be a Fraction or None", example)
        if rho is not None:
            exact_text(nonnegative("rho", rho))
        relation(self.neighbors)
        if self.unit is not None:
            label("unit", self.unit)


@dataclass(frozen=True)
class Event:
    """One entry of the history.

    seq       its number, from 1, without gaps
    kind      "created", "reserved", "released", "granted" or "account"
    when      what the clock said, UTC; the order of events is that of `seq`, clocks may go back
    who       who did it
    request   id of the request it belongs to (reserved, released)
    account   the sub-budget it concerns, if any
    body      what happened; exact numbers are text
    totals    budget and spending after it: of the whole, and of `account`
    hash      SHA-256 over the hash before it and everything above
    """

    seq: int
    kind: str
    when: str
    who: str
    request: str | None
    account: str | None
    body: dict[str, Any]
    totals: dict[str, Any]
    hash: str

    @property
    def budget(self) -> Privacy:
        """The whole budget after this event."""
        return privacy_of(self.totals["whole"]["budget"])

    @property
    def spent(self) -> Privacy:
        """What was spent of it after this event."""
        return privacy_of(self.totals["whole"]["spent"])


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a history: at which event, and what. An event that is missing
    has a `seq` too.
    """

    seq: int
    what: str

    def __str__(self) -> str:
        return f"event {self.seq}: {self.what}"


class Row(NamedTuple):
    """An event as it is stored."""

    seq: int
    kind: str
    moment: str
    who: str
    request: str | None
    account: str | None
    body: str
    totals: str
    hash: str

    def event(self) -> Event:
        """What it says. ValueError: it says nothing, as in a damaged file, which may hold
        anything.
        """
        _, *texts = self._replace(request=self.request or "", account=self.account or "")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("an event is made of text")
        if not is_moment(self.moment):
            raise ValueError("an event has a time")
        body, totals = json.loads(self.body), json.loads(self.totals)
        return Event(
            self.seq,
            self.kind,
            self.moment,
            self.who,
            self.request,
            self.account,
            body,
            totals,
            self.hash,
        )


def seal(before: str, ledger: str, row: Row) -> Row:
    """The row with its hash, which covers the name of the ledger, the hash before it, and all else
    of the row.
    """
    text = canonical([before, ledger, *row._replace(hash="")])
    return row._replace(hash=hashlib.sha256(text.encode("ascii")).hexdigest())


def is_sealed(before: str, ledger: str, row: Row) -> bool:
    """Whether the hash of a row is right."""
    try:
        return seal(before, ledger, row).hash == row.hash
    except TypeError:  # a damaged file may hold what is not text
        return False


def is_moment(text: object) -> bool:
    """Whether it is a time as events have it: a date, a time of day and an offset from UTC."""
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def canonical(value: object) -> str:
    """JSON of what is JSON already, in the one way it is stored."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def portable(name: str, value: object) -> Any:
    """`value` as JSON values: exact numbers and costs become text, tuples lists.

    Whatever else is not JSON is refused by its type; an answer must not be quoted, for it is not
    released yet.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Fraction | Decimal):
        return exact_text(Fraction(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Privacy):
        return privacy_json(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): portable(name, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [portable(name, inner) for inner in value]
    raise ParameterError(
        name, type(value), "it must be JSON: text, finite numbers, true, false, null, lists, and "
        "mappings with text keys",
        "Write other values as text first.",
    )  # fmt: skip


def exact_text(number: Fraction) -> str:
    """An exact number as text, as in "1/10"."""
    try:
        return str(Fraction(number))
    except ValueError:  # Python refuses to write integers of thousands of digits
        raise ParameterError(
            "price", "…", "its numbers must have fewer than a few thousand digits", "Round it up."
        ) from None


def privacy_json(privacy: Privacy) -> dict[str, str]:
    return {"epsilon": exact_text(privacy.epsilon), "delta": exact_text(privacy.delta)}


def privacy_of(value: Mapping[str, str]) -> Privacy:
    return Privacy(value["epsilon"], value["delta"])


def price_json(price: Price) -> dict[str, Any]:
    unit = {} if price.unit is None else {"unit": price.unit}
    rho = {} if price.rho is None else {"rho": exact_text(price.rho)}
    return {
        **privacy_json(price.privacy),
        "ranged": price.ranged,
        "neighbors": price.neighbors,
        **unit,
        **rho,
    }


def price_of(value: Mapping[str, Any]) -> Price:
    rho = None if "rho" not in value else exact("rho", value["rho"])
    ranged, neighbors, unit = bool(value["ranged"]), value["neighbors"], value.get("unit")
    return Price(privacy_of(value), ranged, neighbors, unit, rho)


def label(name: str, value: object, longest: int = LONGEST) -> str:
    """Text that any database can hold: printable, not empty, not long."""
    if isinstance(value, str) and 0 < len(value) <= longest and value.isprintable():
        return value
    raise ParameterError(
        name,
        value,
        f"it must be printable text of 1 to {longest} characters",
        "For example sales-2026.",
    )
