"""The form of events, the places of ledgers, and ledgers of parts: what is taken, and what is said
where it is refused, compared with what is stored. Where one of them is to change,

    python tests/golden/test_ledger_forms.py

stores all again: read the difference, and say in CHANGELOG.md what is new.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from ledger_values import PURE, ROWS, USERS, WHAT, attempt, said
from stored_rows import read_stored, store_groups

from privmax.ledger import Charge, Ledger, opening, shapes
from privmax.ledger.events import EventRow, canonical
from privmax.ledger.reading import read_rows
from privmax.privacy import Privacy

STORED = Path(__file__).parent / "stored" / "ledger_forms.json"

MOMENTS = (
    "2026-01-02T03:04:05.000006+00:00", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z",
    "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2999-12-31T23:59:59Z", "3000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T23:60:00Z",
    "2026-01-02T03:04:05.00006Z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05+01:00",
    "2026-01-02T03:04:05", "", None, 5,
)  # fmt: skip

BODIES = {
    "created": {
        "name": ["default", 5], "budget": [{"epsilon": "1", "delta": "0"}, {"epsilon": "1"}, None],
        "rule": ["basic", "other", 5], "schema": [1, 2, True, "1"],
    },
    "reserved": {
        "what": [{}, [], None],
        "price": [
            {"epsilon": "1", "delta": "0", "ranged": ranged, "neighbors": neighbors}
            for ranged, neighbors in product((False, 0, None), ("replace", "other"))
        ],
    },
    "released": {"answer": [None, [1], "x"]},
    "granted": {"more": [{"epsilon": "1", "delta": "0"}, 5], "why": ["", "x" * 2000, "x" * 2001, 5]},
    "account": {"budget": [{"epsilon": "1", "delta": "0"}], "why": ["", None]},
    "other": {"answer": [1]},
}  # fmt: skip

TOTALS = canonical(
    {
        "whole": {
            "budget": {"epsilon": "1", "delta": "0"},
            "spent": {"epsilon": "0", "delta": "0"},
            "state": {},
            "neighbors": None,
        }
    }
)


def a_row(**changed: Any) -> EventRow:
    usual = EventRow(
        2, "released", MOMENTS[0] or "", "dp", "a", None, '{"answer":1}', TOTALS, "0" * 64
    )
    return usual._replace(**changed)


def forms() -> Iterator[tuple[str, Any]]:
    for text in MOMENTS:
        yield f"moment {text!r}", shapes.is_moment(text)
    for kind, fields in BODIES.items():
        usual = {name: values[0] for name, values in fields.items()}
        for name, values in fields.items():
            for number, value in enumerate(values):
                row = a_row(kind=kind, body=canonical({**usual, name: value}))
                yield f"{kind} {name} {number}", shapes.mark(row).fault
            left = {key: value for key, value in usual.items() if key != name}
            yield (
                f"{kind} without {name}",
                shapes.mark(a_row(kind=kind, body=canonical(left))).fault,
            )
    for name, text in {
        "not JSON": "{", "a list": "[1]", "a number": "5", "NaN": '{"answer":NaN}',
        "too large": '{"answer":1e999}', "digits": f'{{"answer":{"1" * 4000}}}',
        "long": f'{{"answer":{"1" * 4301}}}', "below": f'{{"answer":-{"1" * 4000}}}',
        **{f"depth {n}": f'{{"answer":{"[" * n}{"]" * n}}}' for n in (98, 99, 100, 101)},
        "brackets": json.dumps({"answer": "[" * 200}),
    }.items():  # fmt: skip
        yield f"body of {name}", shapes.mark(a_row(body=text)).fault
        yield f"totals of {name}", shapes.mark(a_row(totals=text)).fault
    for changed in (
        {"seq": "2"}, {"seq": True}, {"kind": 5}, {"who": b"dp"}, {"body": None}, {"hash": 1.5},
        {"request": b"\xff"}, {"moment": "yesterday"},
    ):  # fmt: skip
        marked = shapes.mark(a_row(**changed))
        yield f"row {changed}", [marked.fault, str(marked.to_dict())]
    for length in (0, 1, 200, 201):
        for name in ("who", "request", "account"):
            yield f"{name} of {length}", [*shapes.faults(a_row(**{name: "x" * length}))]
    for size in (1 << 24, (1 << 24) + 1):
        body = '{"answer":"' + "x" * (size - len('{"answer":""}')) + '"}'
        yield f"bytes {size}", [*shapes.faults(a_row(body=body))]
    for value in (1, [], {}, [[1], {"a": [2]}], {"a": {"b": {}}}):
        yield f"depth of {value}", shapes.depth(value)


PLACES = (
    "budget.db", "./budget.db", "", 5, None, b"budget.db", "a\0b", "\ud800", "mysql://me:secret@host/x",
    "postgresql:/x", "jdbc:postgresql:x", "me:secret@host/x", "./me:secret@host/x", "x?password=5",
    "./x?password=5", "host=a user=b", "./host=a", "user = me password = 5", "../me:x/y@z", "sqlite:///x",
    "C:\\me@x", "/tmp/me:a@b", "POSTGRES: me",
)  # fmt: skip

BUDGETS: tuple[dict[str, Any], ...] = (
    {}, {"epsilon": 1}, {"delta": "1e-5"}, {"epsilon": 0}, {"epsilon": 0, "delta": "1e-5"},
    {"budget": Privacy(1)}, {"budget": Privacy(1), "epsilon": 1}, {"budget": Privacy(1), "delta": 0},
)  # fmt: skip


def places() -> Iterator[tuple[str, Any]]:
    for place in PLACES:
        yield (
            f"place {place!r}",
            attempt(lambda place=place: type(opening.open_store(place)).__name__),
        )
    for options in BUDGETS:
        given = {"budget": None, "epsilon": None, "delta": None, **options}
        yield f"budget {options}", attempt(lambda given=given: opening.read_budget(**given))
    with TemporaryDirectory() as folder:
        here = Path(folder) / "budget.db"
        Ledger.create(here, "one", budget=Privacy(1, "1e-5"), strict=True).close()
        Ledger.create(here, "two", budget=Privacy(2, "1e-5"), rule="zcdp").close()
        tries: dict[str, Callable[[], Any]] = {
            "names": lambda: Ledger.names(here),
            "again": lambda: Ledger.create(here, "one", budget=Privacy(1)),
            "none": lambda: Ledger(here, "three"),
            "missing": lambda: Ledger(here.with_name("other.db"), "one"),
            "folder": lambda: Ledger.create(here / "x" / "y.db", budget=Privacy(1)),
            "blockers": lambda: Ledger.blockers(str(here)),
            "unblock": lambda: Ledger.unblock(str(here), 5),
        }
        for number, options in enumerate(
            (
                {}, {"epsilon": 1, "delta": "1e-5"}, {"epsilon": 1, "delta": 1e-5}, {"epsilon": 2},
                {"rule": "basic"}, {"rule": "pld"}, {"strict": True}, {"strict": False},
            )
        ):  # fmt: skip
            tries[f"opened {number}"] = lambda options=options: _opened(here, options)
        for name, act in tries.items():
            yield name, json.loads(json.dumps(attempt(act)).replace(folder, "…"))


def _opened(here: Path, options: dict[str, Any]) -> Any:
    with Ledger(here, "one", **options) as ledger:
        return [repr(ledger), ledger.budget, ledger.event_count]


def parts() -> Iterator[tuple[str, Any]]:
    with TemporaryDirectory() as folder:
        here = Path(folder) / "budget.db"
        steps: dict[str, Callable[[Ledger], Any]] = {
            "without a unit": lambda to: _split(to, "a", Privacy("1/2")),
            "a": lambda to: _split(to, "a", Privacy("1/2"), unit="user"),
            "a again": lambda to: _split(to, "a", Privacy("1/2"), unit="user"),
            "a of another budget": lambda to: _split(to, "a", Privacy("1/3"), unit="user"),
            "a of another unit": lambda to: _split(to, "a", Privacy("1/2"), unit="row"),
            "b": lambda to: _split(to, "b", Privacy("1/2", "1e-6")),
            "b of replace": lambda to: _split(to, "c", Privacy("1/2"), neighbors="replace"),
            "elsewhere": lambda to: _split(to, "d", Privacy("1/4"), where=here.with_name("d.db")),
            "of a part": lambda to: _split_part(here, to),
            "too much": lambda to: _split(to, "e", Privacy(5)),
            "its own name": lambda to: _split(to, to.name, Privacy("1/4")),
            "a long name": lambda to: _split(to, "n" * 200, Privacy("1/4")),
            "charges": lambda to: [
                attempt(lambda one=one: _charge(here, one))
                for one in (PURE, USERS, ROWS, Charge(Privacy(1), unit="user"))
            ],
            "names": lambda to: Ledger.names(here),
            "verify": lambda to: to.verify(),
        }
        with Ledger.create(here, budget=Privacy(3, "1e-5"), who="dp") as ledger:
            for name, step in steps.items():
                found = attempt(lambda step=step: step(ledger))
                bodies = [row.body for row in read_rows(ledger._chain)][1:]
                state = [found, said([ledger.spent, ledger.unit, ledger.neighbors]), bodies[-2:]]
                yield name, json.loads(json.dumps(state).replace(folder, "…"))
        with Ledger.create(here, "z", budget=Privacy(3, "1e-5"), rule="zcdp") as ledger:
            found = attempt(lambda: _split(ledger, "y", Privacy(1), unit="user"))
            yield "of another rule", json.loads(json.dumps(found).replace(folder, "…"))


def _split(whole: Ledger, name: str, budget: Privacy, **options: Any) -> Any:
    with whole.split(name, budget, **options) as part:
        limits = (
            None if part.part is None else [part.part.whole, part.part.neighbors, part.part.unit]
        )
        return [repr(part), part.budget, limits, part.neighbors, part.unit, part.event_count]


def _split_part(here: Path, whole: Ledger) -> Any:
    with Ledger(here, "a", who="dp") as part:
        return _split(part, "a of a", Privacy("1/8"))


def _charge(here: Path, charge: Charge) -> Any:
    with Ledger(here, "a", who="dp") as part:
        part.charge(charge, WHAT)
        return [part.spent, part.remaining, part.unit]


CASES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "forms": forms,
    "places": places,
    "parts": parts,
}


def compute(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(said(dict(CASES[case]()))))
    return found


@pytest.mark.parametrize("case", CASES)
def test_forms_and_places_are_taken_as_before(case):
    stored, found = read_stored(STORED)[case], compute(case)
    assert {name: one for name, one in found.items() if stored.get(name, ...) != one} == {}
    assert list(found) == list(stored)


if __name__ == "__main__":
    store_groups(STORED, {case: compute(case) for case in CASES})
