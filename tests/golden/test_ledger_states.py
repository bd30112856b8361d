"""What a ledger holds and says after each call of a long session, compared with what is stored.

Every rule of composition goes through the same calls, with a clock that counts. After each of them
are compared: what the call returned or refused, the events that it added, and what is granted,
spent and left. Then events are changed one field at a time, and what is said to be wrong with them
is compared as well. Where one of them is to change,

    python tests/golden/test_ledger_states.py

stores all again: read the difference, and say in CHANGELOG.md what is new.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest

sys.path.append(str(Path(__file__).parent))

from ledger_values import (
    DEAR,
    MIXED,
    OTHER,
    PURE,
    RANGED,
    REPLACED,
    RHO,
    ROWS,
    USERS,
    WHAT,
    attempt,
    said,
)
from stored_rows import read_stored, store_groups

from privmax.ledger import Charge, Ledger, chain, charging, events, replay, rules
from privmax.ledger.events import canonical, label, portable, seal
from privmax.ledger.reading import read_rows
from privmax.ledger.shapes import mark
from privmax.privacy import Privacy

STORED = Path(__file__).parent / "stored" / "ledger_states.json"

Call = Callable[[Ledger], Any]

CALLS: dict[str, Call] = {
    "pure": lambda to: to.charge(PURE, WHAT, request="a").seq,
    "pure again": lambda to: to.charge(PURE, WHAT, request="a").seq,
    "pure with another question": lambda to: to.charge(PURE, OTHER, request="a").seq,
    "another cost": lambda to: to.charge(MIXED, WHAT, request="a").seq,
    "record": lambda to: to.charge(PURE, WHAT, request="a").record({"items": ["x"]}),
    "record again": lambda to: to.charge(PURE, WHAT, request="a").record({"items": ["y"]}),
    "answered": lambda to: [
        (one.seq, one.recorded, one.answer, one.closed, one.when)
        for one in [to.charge(PURE, WHAT, request="a")]
    ],
    "mixed": lambda to: to.charge(MIXED, WHAT, request="b").seq,
    "ranged": lambda to: to.charge(RANGED, WHAT, request="c").record(None),
    "rho": lambda to: to.charge(RHO, WHAT, request="d").seq,
    "pure after rho": lambda to: to.charge(PURE, WHAT, request="e").seq,
    "replaced": lambda to: to.charge(REPLACED, WHAT, request="f").seq,
    "users": lambda to: to.charge(USERS, WHAT, request="g").seq,
    "rows": lambda to: to.charge(ROWS, WHAT, request="h").seq,
    "dear": lambda to: to.charge(DEAR, WHAT, request="i").seq,
    "no account": lambda to: to.charge(PURE, WHAT, request="j", account="ann").seq,
    "an account": lambda to: to.open_account("ann", Privacy("3/2", "1e-6"), why="for Ann"),
    "an account again": lambda to: to.open_account("ann", Privacy("1/2")),
    "an account without delta": lambda to: to.open_account("bob", Privacy("3/10")),
    "to an account": lambda to: to.charge(USERS, WHAT, request="j", account="ann").record([1]),
    "rho to an account": lambda to: to.charge(RHO, WHAT, request="k", account="ann").seq,
    "rho to one without delta": lambda to: to.charge(RHO, WHAT, request="l", account="bob").seq,
    "more than the account": lambda to: to.charge(
        Charge(Privacy("2/5"), unit="user"), WHAT, request="m", account="bob"
    ).seq,
    "all of the account": lambda to: to.charge(
        Charge(Privacy("3/10")), WHAT, request="n", account="bob"
    ).seq,
    "grant": lambda to: to.grant(Privacy("1/2", "1e-6"), why="asked"),
    "grant to an account": lambda to: to.grant(Privacy(1), why="asked", account="bob"),
    "grant without a reason": lambda to: to.grant(Privacy(1), why=""),
    "grant to no account": lambda to: to.grant(Privacy(1), why="asked", account="eve"),
    "fits": lambda to: [to.fits(one) for one in (PURE, MIXED, RHO, REPLACED, USERS, DEAR)],
    "fits an account": lambda to: [to.fits(one, "bob") for one in (PURE, USERS, ROWS, DEAR)],
    "require": lambda to: to.require(PURE, what=WHAT, request="o"),
    "require what is too dear": lambda to: to.require(DEAR, what=WHAT, request="o"),
    "ask": lambda to: [to.ask(PURE, request="a"), to.ask(PURE, request="new")],
    "knows": lambda to: [to.knows("a"), to.knows("z")],
    "find": lambda to: [
        None if one is None else one.to_dict() for name in "abz" for one in to.find(name)
    ],
    "left after": lambda to: to.left_after("a"),
    "left after no answer": lambda to: to.left_after("b"),
    "close": lambda to: to.charge(MIXED, WHAT, request="b").close({"items": []}),
    "closed": lambda to: [
        (one.recorded, one.closed, one.answer) for one in [to.charge(MIXED, WHAT, request="b")]
    ],
    "without an id": lambda to: to.charge(PURE, WHAT).seq,
    "a batch": lambda to: [one.seq for one in _batch(to)],
    "history": lambda to: [one.to_dict()["seq"] for one in to.history(last=3)],
    "sample": lambda to: [one.seq for one in to.sample(4)],
    "unanswered": lambda to: [[one.seq for one in to.unanswered(last=last)] for last in (1, 2, None)],
    "questions": lambda to: [[*map(str, one.question)] for one in to.history()],
    "items": lambda to: [one.items for one in to.history()],
    "accounts": lambda to: to.accounts(),
    "standing": lambda to: to.standing(),
    "shown": lambda to: [repr(to), to._repr_html_()],
    "verify": lambda to: to.verify(),
    "origin": lambda to: [to.rule, to.strict, to.part, to.who, to.budget],
    "until nothing is left": lambda to: _spend(to),
}  # fmt: skip


def _batch(to: Ledger) -> list[Any]:
    with to.batch() as batch:
        charged = [batch.charge(PURE, WHAT, request=name) for name in ("p", "q", "p")]
    with to.batch() as batch:
        batch.record(charged[0], "done")
    return charged


def _spend(to: Ledger) -> int:
    spent = 0
    while to.fits(RANGED) and spent < 40:
        to.charge(RANGED, WHAT, request=f"more {spent}").record(spent)
        spent += 1
    return spent


def moment(clock: Iterator[int]) -> str:
    return f"2026-01-02T03:04:05.{next(clock):06}+00:00"


def session(
    rule: str, strict: bool = False, first: Charge | None = None
) -> Iterator[tuple[str, Any]]:
    """Each call with what is known after it."""
    clock, ids = count(1), count(1)
    patches = [
        mock.patch.object(chain, "now", partial(moment, clock)),
        mock.patch.object(charging.secrets, "token_hex", lambda size: f"{next(ids):0{2 * size}x}"),
    ]
    with TemporaryDirectory() as folder, patches[0], patches[1]:
        where = Path(folder) / "budget.db"
        budget = Privacy("5/2", "1e-5")
        with Ledger.create(where, budget=budget, rule=rule, strict=strict, who="dp") as ledger:
            known = 0
            if first is not None:
                ledger.charge(first, WHAT, request="first")
            for name, call in CALLS.items():
                found = attempt(lambda call=call: call(ledger))
                rows = list(read_rows(ledger._chain))
                state = {
                    "found": found,
                    "rows": [[*row] for row in rows[known:]],
                    "spent": said(ledger.spent),
                    "left": said([ledger.remaining, ledger.left()]),
                    "of": [ledger.neighbors, ledger.unit, ledger.event_count],
                }
                if known == 0 or "account" in name:
                    state["accounts"] = {
                        account: attempt(lambda account=account: ledger.left(account))
                        for account in ("ann", "bob")
                    }
                known = len(rows)
                yield name, json.loads(json.dumps(state).replace(folder, "…"))


SESSIONS: dict[str, tuple[Any, ...]] = {
    "basic": ("basic",),
    "strict": ("basic", True),
    "users": ("basic", False, USERS),
    "zcdp": ("zcdp",),
    "pld": ("pld",),
    "zcdp of users": ("zcdp", False, USERS),
}


# Events that were changed


CHANGES: dict[str, list[Any]] = {
    "kind": ["created", "reserved", "released", "granted", "account", "other"],
    "moment": ["2026-01-02T03:04:05.000001", "yesterday"],
    "who": ["eve", ""],
    "request": [None, "a", "zz", ""],
    "account": [None, "ann", "bob", "eve"],
    "hash": [""],
}

DEEPER: dict[str, list[Any]] = {
    "price": [{"epsilon": "1/9", "delta": "0", "ranged": False, "neighbors": "add-remove"}, None],
    "neighbors": ["replace", None, "other"],
    "unit": ["user", "row", None, ""],
    "epsilon": ["0", "1/7", "9", "x"],
    "delta": ["0", "1/7", "x"],
    "ranged": [True, None],
    "rho": ["1/9", "x"],
    "more": [{"epsilon": "1", "delta": "0"}],
    "name": ["another"],
    "rule": ["zcdp", "other"],
    "schema": [2],
    "why": ["", 5],
    "tally": ["1/9", {"5": 1}, "x"],
    "slack": ["1/9", "x"],
    "route": ["tally"],
}  # fmt: skip


def altered(value: Any) -> Iterator[Any]:
    """JSON with one entry changed or left out."""
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        yield {key: one for key, one in value.items() if key != name}
        yield from ({**value, name: other} for other in DEEPER.get(name, ()))
        yield from ({**value, name: other} for other in altered(inner))
    yield {**value, "extra": 1}


def history(rule: str) -> list[events.EventRow]:
    """One event of each kind, and a few more."""
    clock = count(1)
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(chain, "now", partial(moment, clock)),
        Ledger.create(Path(folder) / "b.db", budget=Privacy(3, "1e-5"), rule=rule, who="dp") as to,
    ):
        to.open_account("ann", Privacy(1, "1e-6"))
        to.charge(USERS, WHAT, request="a", account="ann").record("x")
        to.grant(Privacy(1), why="asked", account="ann")
        to.charge(
            Charge(Privacy("1/2", "1e-7"), unit="user", rho=Fraction(1, 99)), WHAT, request="b"
        )
        return list(read_rows(to._chain))


def sealed(rows: list[events.EventRow]) -> list[events.EventRow]:
    last, found = "", []
    for row in rows:
        found.append(seal(last, "default", row))
        last = found[-1].hash
    return found


def changed_rows(rows: list[events.EventRow], place: int) -> Iterator[tuple[str, events.EventRow]]:
    row = rows[place]
    for field, values in CHANGES.items():
        for value in values:
            yield f"{field}: {value!r}", row._replace(**{field: value})
    for field in ("body", "totals"):
        was = json.loads(getattr(row, field))
        for number, other in enumerate(altered(was)):
            yield f"{field} {number}", row._replace(**{field: canonical(other)})
        yield f"{field} spaced", row._replace(**{field: json.dumps(was, sort_keys=True)})
        yield f"{field} cut", row._replace(**{field: getattr(row, field)[:-1]})


def verdicts(rule: str, place: int) -> Iterator[tuple[str, Any]]:
    """What is said of a history with one event changed, with its hash renewed and not."""
    rows = history(rule)
    for name, row in changed_rows(rows, place):
        changed = [*rows[:place], row, *rows[place + 1 :]]
        for title, listed in (("sealed", sealed(changed)), ("as it was", changed)):
            if title == "as it was" and not name.startswith(("who", "hash", "request")):
                continue
            found = replay.faults("default", listed, (len(listed), listed[-1].hash))
            own = next((one for one in listed[:place][::-1] if one.account == row.account), None)
            built = replay.follows(
                "default", rules.find_rule(rule), listed[place], listed[place - 1] if place else None,
                None if row.account is None else own,
            )  # fmt: skip
            marked = mark(listed[place]).fault
            yield f"{name}, {title}", [[str(one) for one in found], built, marked]


# Text and JSON at the ends of what is allowed


def ends() -> Iterator[tuple[str, Any]]:
    for length in (0, 1, 200, 201):
        yield f"label of {length}", attempt(lambda length=length: label("request", "x" * length))
    for number in [*range(0x30), 0x7E, 0x7F, 0xA0, 0xA1, 0xAC, 0xAD, 0xAE, 0x2028, 0xD7FF, 0xE000,
                   0xF8FF, 0xF900, 0xFEFF, 0xFFEF, 0xFFF0, 0xFFFC, 0xFFFE, 0xE0000, 0x10FFFF]:  # fmt: skip
        found = attempt(lambda number=number: label("request", f"a{chr(number)}"))
        yield f"label with {number:x}", isinstance(found, str)
    nested: Any = 1
    for depth in range(101):
        if depth in (98, 99, 100):
            yield (
                f"depth {depth}",
                type(attempt(lambda nested=nested: portable("x", nested))).__name__,
            )
        nested = [nested] if depth % 2 else {"a": nested}
    for name, value in {
        "digits": 10**events.DIGITS - 1, "too many": 10**events.DIGITS, "below": -(10**events.DIGITS),
        "decimal": Decimal("0.1"), "fraction": Fraction(2, 6), "whole": Fraction(6, 2),
        "endless": float("inf"), "tuple": (1, (2.5, True)), "cost": Privacy(1, "1e-6"),
        "key": {5: 1}, "nul": {"\0": 1}, "half": {"\ud800": 1}, "set": {1},
    }.items():  # fmt: skip
        found = attempt(lambda value=value: portable("x", value))
        yield f"portable {name}", found if len(str(found)) < 500 else len(str(found))
    room = events.LARGEST - (1 << 16)
    yield (
        "room",
        [
            isinstance(attempt(lambda size=size: portable("x", "a" * size)), str)
            for size in (room - 2, room - 1)
        ],
    )
    total = rules.RULES["pld"].start(Privacy(2, "1e-5"))
    for epsilon in ("1/8192", "1/8191", "1/3", "3", "1/3"):
        total = rules.RULES["pld"].add(total, Charge(Privacy(epsilon)))
        yield f"pld {epsilon} {total.state['epsilon']}", said(total)
    yield (
        "merged",
        [rules._merge({str(n * n): 1 + n % 3 for n in range(1, 12)}, most) for most in (3, 10, 11)],
    )
    for delta in (Fraction(1, 2**199), Fraction(1, 2**200), Fraction(1, 2**201)):
        for rule in rules.RULES:
            yield (
                f"rule {rule} {float(delta):.3g}",
                attempt(
                    lambda rule=rule, delta=delta: rules.rule_for(rule, Privacy(1, delta)).name
                ),
            )
    for tally in ({"5": 1}, {"5": 2}, {"8192": 64}, {"8192": 65}):
        yield f"responses {tally}", said(rules._epsilon_of_responses(tally, Fraction(1, 1000)))
    for number in (Fraction(1, 3), Fraction(1, 2**192), Fraction(1, 2**193), Fraction(5, 3**200)):
        yield f"short {number}"[:60], said(rules.short(number))
    zcdp = rules.RULES["zcdp"]
    for part in (3, 4, 5):
        start = zcdp.start(Privacy(2, Fraction(part, 2**201)))
        yield f"rho beside a delta of {part}", said(zcdp.add(start, RHO))
    for rho in (1 << 40, (1 << 40) + 1):
        yield f"tally {rho}", said(zcdp._epsilon(str(rho), Fraction(1, 10**6)))  # type: ignore[attr-defined]


CASES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    **{f"session {name}": lambda given=given: session(*given) for name, given in SESSIONS.items()},
    **{
        f"changed {rule} {place}": lambda rule=rule, place=place: verdicts(rule, place)
        for rule in rules.RULES
        for place in range(6)
    },
    "ends": ends,
}


def compute(case: str) -> dict[str, Any]:
    text = json.dumps(dict(CASES[case]()))
    if case.startswith(("session zcdp", "session pld", "ends")):  # orders are chosen in floats
        text = re.sub(r"\b[0-9a-f]{64}\b", "hash", text)
        text = re.sub(r"\b(\d{12,})/(\d{12,})\b", _about, text)
    found: dict[str, Any] = json.loads(text)
    return found


def _about(found: re.Match[str]) -> str:
    return f"{int(found[1]) / int(found[2]):.9g}"


def test_all_that_is_stored_is_computed():
    assert list(read_stored(STORED)) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_ledgers_hold_and_say_what_they_did(case):
    stored, found = read_stored(STORED)[case], compute(case)
    assert {name: one for name, one in found.items() if stored.get(name) != one} == {}
    assert list(found) == list(stored)


if __name__ == "__main__":
    store_groups(STORED, {case: compute(case) for case in CASES})
