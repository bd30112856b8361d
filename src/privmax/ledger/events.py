"""The events that a ledger records, and the one way they are written down and hashed.

An event is a row of text. Exact numbers are text ("1/10"), JSON is canonical (sorted keys, ASCII,
no spaces), so equal events are equal bytes on every database. The hash of an event covers all of
its row and the hash before it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from privmax.errors import ParameterError
from privmax.numbers import LONGEST as DIGITS
from privmax.numbers import exact, nonnegative
from privmax.packing import unpack
from privmax.privacy import ADD_REMOVE, Privacy, relation

SCHEMA = 1
"""Version of the tables and of the content of rows."""

CREATED, RESERVED, RELEASED, GRANTED, ACCOUNT = (
    "created",
    "reserved",
    "released",
    "granted",
    "account",
)

USER, ROW, BASKET = "user", "row", "basket"
"""Units of privacy: what a cost hides. Someone may name another one."""

LONGEST = 200
"""Characters a name, a request id or an account may have."""

REASON: Final = 2000
"""Characters that a reason may have."""

DEEPEST: Final = 100
"""The depth of lists and objects of an event within each other: far below what stops a reader of
JSON.
"""

LARGEST: Final = 1 << 24
"""Bytes that the body of an event may have."""

_FRAME: Final = 1 << 16
"""Bytes of a body that are left to what a caller does not choose, such as the cost."""

UNPRINTED: Final = (
    r"\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u1680\u180e\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff"
    r"\U000e0000-\U0010ffff"
)
"""Characters that no name holds, as ranges of a regular expression: controls, spaces other than
the usual one, marks of direction, halves of pairs, private use. Written out because Python's own
list changes with its version, and the database must refuse the same ones.
"""

_UNPRINTED: Final = re.compile(f"[\0{UNPRINTED}]")
_UNNAMED: Final = re.compile("[\0\ud800-\udfff]")
"""Characters that the name of an entry of an object may not have: databases cannot read them."""


@dataclass(frozen=True)
class Charge:
    """The cost of one request.

    Args:
        privacy: The cost in epsilon and delta.
        bounded_range: Whether it is one draw of the exponential mechanism, or another
            epsilon-private mechanism whose privacy loss always is in an interval of length epsilon.
            Such a draw is cheaper under the rule "zcdp".
        neighbors: The relation it is stated for. Costs under different relations do not add up.
        unit: What it hides, as in "user", "basket" or "row". Costs for different units do not add
            up either. None: not said, as by privmax 0.1.0.
        rho: The request also is rho-zCDP (zero-concentrated differentially private), as Gaussian
            noise is. The rule "zcdp" then adds rho and not the delta; other rules add `privacy`.
    """

    privacy: Privacy
    bounded_range: bool = False
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

    Args:
        seq: Its number, from 1, without gaps.
        kind: "created", "reserved", "released", "granted" or "account".
        when: What the clock said, UTC; the order of events is that of `seq`, clocks may go back.
        who: Who did it.
        request: Id of the request it belongs to (reserved, released).
        account: The sub-budget it concerns, if any.
        body: What happened; exact numbers are text.
        totals: Budget and spending after it: of the whole, and of `account`.
        hash: SHA-256 over the hash before it and everything above.
        fault: Why it cannot be read; `body` and `totals` then hold the stored text. None: it can.
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
    fault: str | None = None

    @property
    def question(self) -> RecordedQuestion:
        """The question of a charge, if it is written in the way of `payment.Question`."""
        what = self.body.get("what")
        what = what if isinstance(what, dict) else {}
        names = "command", "mechanism", "dataset", "data"
        texts = [text if isinstance(text := what.get(name), str) else "" for name in names]
        command, mechanism, dataset, data = (text or None for text in texts)
        objects = (what.get(name) for name in ("options", "columns"))
        options, columns = (value if isinstance(value, dict) else {} for value in objects)
        return RecordedQuestion(command, mechanism, dataset, data, options, columns)

    @property
    def items(self) -> list[Any]:
        """The released items, as they are written down; [] if the answer is not a list of items."""
        answer = self.body.get("answer")
        items = answer.get("items") if isinstance(answer, dict) else None
        try:
            return unpack(items)
        except ValueError:
            return []

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON, as an export has them; `fault` only where there is one."""
        fields = vars(self)
        return {name: fields[name] for name in fields if name != "fault" or self.fault is not None}

    @property
    def budget(self) -> Privacy:
        """The whole budget after this event."""
        return privacy_of(self.totals["whole"]["budget"])

    @property
    def spent(self) -> Privacy:
        """The spent part after this event."""
        return privacy_of(self.totals["whole"]["spent"])


class RecordedQuestion(NamedTuple):
    """The question, for people; None or {} where a charge does not have it."""

    command: str | None
    mechanism: str | None
    dataset: str | None
    data: str | None
    options: dict[str, Any]
    columns: dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A fault of a history.

    Args:
        seq: The number of the event; one that is missing has a number, too.
        what: What is wrong with it.
    """

    seq: int
    what: str

    def __str__(self) -> str:
        return f"event {self.seq}: {self.what}"


class EventRow(NamedTuple):
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


def seal(before: str, ledger: str, row: EventRow) -> EventRow:
    """Return the row with its hash.

    The hash covers the name of the ledger, the hash before it, and all else of the row.
    """
    text = canonical([before, ledger, *row._replace(hash="")])
    from hashlib import sha256  # with OpenSSL, which a charge of nothing does not need

    return row._replace(hash=sha256(text.encode("ascii")).hexdigest())


def is_sealed(before: str, ledger: str, row: EventRow) -> bool:
    """Return whether the hash of a row is right."""
    try:
        return seal(before, ledger, row).hash == row.hash
    except TypeError:  # a damaged file may hold what is not text
        return False


def canonical(value: object) -> str:
    """Write what is JSON already as text, in the one way it is stored."""
    return _CANONICAL.encode(value)


_CANONICAL: Final = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
)


def portable(name: str, value: object) -> Any:
    """`value` as JSON values: exact numbers and costs become text, tuples lists.

    Whatever else is not JSON, and what no event has room for, is refused by its type; an answer
    must not be quoted, for it is not released yet.
    """
    plain = _portable(name, value, DEEPEST - 1)
    if len(canonical(plain)) > LARGEST - _FRAME:
        allowed = f"it must have at most {LARGEST - _FRAME:,} bytes as JSON"
        raise ParameterError(name, type(value), allowed, "Leave something out.")
    return plain


def _portable(name: str, value: object, deep: int) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Fraction | Decimal):
        return exact_text(Fraction(value))
    if isinstance(value, int) and abs(value) < _TOO_LONG:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Privacy):
        return privacy_json(value)
    if (
        deep > 0
        and isinstance(value, Mapping)
        and all(isinstance(key, str) and _UNNAMED.search(key) is None for key in value)
    ):
        return {str(key): _portable(name, inner, deep - 1) for key, inner in value.items()}
    if deep > 0 and isinstance(value, list | tuple):
        return [_portable(name, inner, deep - 1) for inner in value]
    raise ParameterError(
        name, type(value), f"it must be JSON: text, numbers of at most {DIGITS} digits, true, "
        f"false, null, and at most {DEEPEST - 1} deep lists, and mappings whose keys are text "
        "without NUL and halves of surrogate pairs",
        "Write other values as text first.",
    )  # fmt: skip


_TOO_LONG: Final = 10**DIGITS


def exact_text(number: Fraction) -> str:
    """Return an exact number as text, as in "1/10"."""
    try:
        above, below = number.numerator, number.denominator  # an Amount shows six digits
        return str(above) if below == 1 else f"{above}/{below}"
    except ValueError:  # Python refuses to write integers of thousands of digits
        raise ParameterError(
            "price", "…", "its numbers must have fewer than a few thousand digits", "Round it up."
        ) from None


def privacy_json(privacy: Privacy) -> dict[str, str]:
    return {"epsilon": exact_text(privacy.epsilon), "delta": exact_text(privacy.delta)}


def privacy_of(value: Mapping[str, str]) -> Privacy:
    return _read_privacy(value["epsilon"], value["delta"])


@lru_cache(256, typed=True)
def _read_privacy(epsilon: str, delta: str) -> Privacy:
    """Read a cost. Events repeat the budget, and most their price; damaged ones may not be text."""
    return Privacy(epsilon, delta)


def price_json(charge: Charge) -> dict[str, Any]:
    unit = {} if charge.unit is None else {"unit": charge.unit}
    rho = {} if charge.rho is None else {"rho": exact_text(charge.rho)}
    return {
        **privacy_json(charge.privacy),
        "ranged": charge.bounded_range,
        "neighbors": charge.neighbors,
        **unit,
        **rho,
    }


def price_of(value: Mapping[str, Any]) -> Charge:
    rho = (value["rho"],) if "rho" in value else ()
    bounded_range, neighbors, unit = bool(value["ranged"]), value["neighbors"], value.get("unit")
    return _read_price(value["epsilon"], value["delta"], bounded_range, neighbors, unit, *rho)


@lru_cache(256, typed=True)
def _read_price(
    epsilon: str, delta: str, bounded_range: bool, neighbors: str, unit: str | None, *rho: str
) -> Charge:
    """Read a charge. Most events repeat one."""
    stated = exact("rho", *rho) if rho else None
    return Charge(_read_privacy(epsilon, delta), bounded_range, neighbors, unit, stated)


def label(name: str, value: object, longest: int = LONGEST) -> str:
    """Return text that any database can hold: printable, not empty, not long."""
    if isinstance(value, str) and 0 < len(value) <= longest and not _UNPRINTED.search(value):
        return value
    raise ParameterError(
        name,
        value,
        f"it must be printable text of 1 to {longest} characters",
        "For example sales-2026.",
    )
