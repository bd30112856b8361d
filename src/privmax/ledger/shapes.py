"""The form of an event: the rule for what is written, what a database takes and what is read.

`postgres_schema` writes the same rule in SQL, from the same numbers. A reader marks an event that
breaks it and goes on (`mark`); privmax builds on none (`read`), and `verify` names it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NoReturn

from privmax.ledger.events import (
    ACCOUNT,
    CREATED,
    DEEPEST,
    GRANTED,
    LARGEST,
    LONGEST,
    REASON,
    RELEASED,
    RESERVED,
    Event,
    EventRow,
    price_of,
    privacy_of,
)
from privmax.ledger.rules import RULES, total_of
from privmax.numbers import LONGEST as DIGITS

MOMENT: Final = (
    "^(19[7-9][0-9]|2[0-9]{3})-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    "([.][0-9]{6}){0,1}([+]00:00|Z)$"
)
"""The format of the time of an event, in UTC. The years are those that every reader can draw."""

UNREADABLE = ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError
"""Errors in which reading a damaged row may end."""


class FormError(ValueError):
    """An event does not have the form of one; the message says in which way."""


def read(row: EventRow) -> Event:
    """Return what a row says, in the form that all readers rely on.

    Raises:
        FormError: It says nothing that a reader could go by.
    """
    event = parse(row)
    if not is_moment(row.moment):
        raise FormError("its time is not written as the times of events are")
    _check_body(row, event.body)
    try:
        for name in ("whole", *(["account"] if "account" in event.totals else [])):
            total_of(event.totals[name])
    except UNREADABLE:
        raise FormError("its totals cannot be read") from None
    return event


def parse(row: EventRow) -> Event:
    """Return what a row says, whatever its kind.

    Raises:
        FormError: It is not text and JSON, as in a damaged file, which may hold anything.
    """
    _, *texts = row._replace(request=row.request or "", account=row.account or "")
    if type(row.seq) is not int or not all(isinstance(text, str) for text in texts):
        raise FormError("it is not made of a number and text")
    body, totals = _load("body", row.body), _load("totals", row.totals)
    return Event(
        row.seq,
        row.kind,
        row.moment,
        row.who,
        row.request,
        row.account,
        body,
        totals,
        row.hash,
    )


def mark(row: EventRow) -> Event:
    """Return the event of a row.

    Of a row that cannot be read it is an event with a `fault` and its stored text.
    """
    try:
        return read(row)
    except FormError as error:
        fault = str(error)
    seq, *texts = row
    kind, when, who, request, account, body, totals, digest = (
        text if text is None or isinstance(text, str) else ascii(text) for text in texts
    )
    stored = {"unreadable": body}, {"unreadable": totals}
    number = seq if type(seq) is int else 0
    names = str(kind), str(when), str(who), request, account
    return Event(number, *names, *stored, str(digest), fault)


def faults(row: EventRow) -> Iterator[str]:
    """Yield what is wrong with the form of an event: what a database refuses."""
    try:
        read(row)
    except FormError as error:
        yield str(error)
    if len(row.body) > LARGEST:
        yield f"its body has more than {LARGEST:,} bytes"
    for name, text in (("author", row.who), ("request", row.request), ("account", row.account)):
        if text is not None and not 0 < len(text) <= LONGEST:
            yield f"the name of its {name} does not have 1 to {LONGEST} characters"


def is_moment(text: object) -> bool:
    """Return whether it is a time as events have it."""
    try:
        return (
            isinstance(text, str)
            and re.fullmatch(MOMENT, text) is not None
            and datetime.fromisoformat(text).tzinfo is not None
        )
    except ValueError:
        return False


def depth(value: object) -> int:
    """Return how deep the lists and objects of a JSON value lie within each other."""
    deep, level = 0, [value]
    while level := [one for one in level if isinstance(one, list | dict)]:
        deep += 1
        level = [
            inner for one in level for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return deep


def _load(name: str, text: str) -> dict[str, Any]:
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise FormError(_DEEP.format(name)) from None
    except FormError:
        raise
    except ValueError:
        raise FormError(f"its {name} is not JSON") from None
    if text.count("[") + text.count("{") > DEEPEST and depth(value) > DEEPEST:
        raise FormError(_DEEP.format(name))
    if not isinstance(value, dict):
        raise FormError(f"its {name} is not an object")
    return value


_DEEP: Final = f"its {{}} is nested more than {DEEPEST} deep"


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise FormError(f"a number in it has more than {DIGITS} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormError("a number in it is too large")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise FormError(f"it has {text}, which is not JSON")


_DECODER: Final = json.JSONDecoder(
    parse_int=_whole, parse_float=_finite, parse_constant=_refuse_constant
)


def _check_body(row: EventRow, body: Mapping[str, Any]) -> None:
    """Refuse a body that lacks what its kind of event says, or says it in another form."""
    forms = _FORMS.get(row.kind)
    if forms is None:
        raise FormError("there is no such kind of event")
    for name, is_formed in forms.items():
        try:
            formed = is_formed(body[name])
        except UNREADABLE:
            formed = False
        if not formed:
            state = "has another form" if name in body else "is missing"
            raise FormError(f"it is not an event of its kind: {name} {state}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_reason(value: object) -> bool:
    return isinstance(value, str) and len(value) <= REASON


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_privacy(value: Any) -> bool:
    return privacy_of(value) is not None


def _is_price(value: Any) -> bool:
    return type(value["ranged"]) is bool and price_of(value) is not None


_FORMS: Final[Mapping[str, Mapping[str, Callable[[Any], bool]]]] = {
    CREATED: {
        "name": _is_text,
        "budget": _is_privacy,
        "rule": lambda value: value in RULES,
        "schema": lambda value: type(value) is int,
    },
    RESERVED: {"what": _is_object, "price": _is_price},
    RELEASED: {"answer": lambda value: True},
    GRANTED: {"more": _is_privacy, "why": _is_reason},
    ACCOUNT: {"budget": _is_privacy, "why": _is_reason},
}
"""The fields in the body of each kind of event; there may be more."""
