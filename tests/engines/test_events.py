"""Events written in SQL by people who have the right to: the database takes what every reader
reads, and nothing else.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from readers import deployment, explore, read_everything

from privmax.ledger import Charge, Ledger
from privmax.ledger.events import (
    DEEPEST,
    LARGEST,
    EventRow,
    canonical,
    price_json,
    seal,
)
from privmax.ledger.replay import Totals, after, totals_of
from privmax.ledger.rows import COLUMNS
from privmax.ledger.rules import find_rule
from privmax.numbers import LONGEST as DIGITS
from privmax.privacy import Privacy

NOTHING = price_json(Charge(Privacy(0), unit="user"))
MOMENT = "2026-11-17T12:00:00.000000+00:00"


class Forger:
    """Writes events of one ledger in SQL, sealed with the right hash."""

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self.connection = psycopg.connect(url, autocommit=True)

    def last(self) -> EventRow:
        query = f"SELECT {COLUMNS} FROM privmax_events WHERE ledger = %s ORDER BY seq DESC LIMIT 1"
        found = self.connection.execute(query, [self.name]).fetchone()  # type: ignore[arg-type]
        return EventRow(*found)  # type: ignore[misc]

    def row(
        self, body: str, kind: str = "reserved", like: dict[str, Any] | None = None, **columns: Any
    ) -> EventRow:
        """An event behind the last one. `like` is the body that its totals follow from."""
        last = self.last()
        counted = {"price": NOTHING, "more": NOTHING} if like is None else like
        before = Totals(totals_of(last.totals).whole)
        totals = after(find_rule("basic"), kind, counted, before).as_json()
        request = secrets.token_hex(8) if kind in ("reserved", "released") else None
        fields = {
            "moment": MOMENT, "who": "eve", "request": request, "account": None,
            "totals": canonical(totals), **columns,
        }  # fmt: skip
        row = last._replace(seq=last.seq + 1, kind=kind, body=body, **fields)
        return seal(last.hash, self.name, row)

    def append(self, row: EventRow) -> None:
        holes = ", ".join(["%s"] * (1 + len(row)))
        self.connection.execute(f"SELECT privmax_append({holes})", [self.name, *row])  # type: ignore[arg-type]


@pytest.fixture
def forger(ledger_url: str) -> Iterator[Forger]:
    Ledger.create(ledger_url, "sales", epsilon=5, delta="1e-3").close()
    made = Forger(ledger_url, "sales")
    yield made
    made.connection.close()


def charge(what: str = "{}", price: dict[str, Any] = NOTHING) -> str:
    return f'{{"price":{canonical(price)},"what":{what}}}'


NESTED = "[" * 2000 + "]" * 2000
HOSTILE = {
    "nested 2,000 deep": charge(f'{{"x":{NESTED}}}'),
    "nested one too deep": charge(f'{{"x":{"[" * (DEEPEST - 1)}{"]" * (DEEPEST - 1)}}}'),
    "nested deep behind a name twice": charge(f'{{"x":{NESTED},"x":1}}'),
    "a number of 5,000 digits": charge(f'{{"x":{"1" * 5000}}}'),
    "a number of one digit too many": charge(f'{{"x":{"1" * (DIGITS + 1)}}}'),
    "a number beyond all floats": charge('{"x":1e+400}'),
    "a number that is not written as Python does": charge('{"x":1.50}'),
    "what is missing": f'{{"price":{canonical(NOTHING)}}}',
    "what is a list": charge("[]"),
    "what is text": charge('"select"'),
    "the cost is missing": '{"what":{}}',
    "a delta above 1": charge(price={**NOTHING, "delta": "3/2"}),
    "an epsilon that is a number": charge(price={**NOTHING, "epsilon": 0}),
    "a unit of 300 characters": charge(price={**NOTHING, "unit": "u" * 300}),
    "a unit with a mark of direction": charge(price={**NOTHING, "unit": "us\u202eer"}),
    "17 MB": charge(canonical({"x": "y" * LARGEST})),
    "a body that is a list": "[1]",
    "not JSON": "nonsense",
    "spaces": charge('{"x": 1}'),
    "names not in order": f'{{"what":{{}},"price":{canonical(NOTHING)}}}',
    "a name twice": charge('{"x":1,"x":2}'),
    "letters that are not escaped": charge('{"x":"ü"}'),
    "letters that are escaped for nothing": charge('{"x":"\\u0041"}'),
    "NaN": charge('{"x":NaN}'),
}
"""Bodies of free charges: each was taken, and some stopped the ledger or hid its history."""

TIMES = ["", "yesterday", "2026-13-01T00:00:00.000000+00:00", "2026-02-30T00:00:00.000000+00:00",
    "2026-01-01T24:00:00.000000+00:00", "2026-01-01", "2026-01-01T00:00:00.000000",
    "0000-01-01T00:00:00.000000+00:00", "9999-12-31T23:59:59.999999+00:00", "infinity"]  # fmt: skip
NAMES = ["", "x" * 201, "a\nb", "\x1b[2J", "a\u202eb", "\u2028"]


@pytest.mark.parametrize("case", HOSTILE)
def test_a_body_that_a_reader_would_stop_at_is_refused(forger: Forger, case: str) -> None:
    with pytest.raises(psycopg.Error):
        forger.append(forger.row(HOSTILE[case], like={"price": NOTHING}))
    with Ledger(forger.url, "sales") as ledger:
        assert ledger.verify() == []
        assert ledger.charge(Charge(Privacy(1)), {}).seq == 2


def test_times_and_names_of_another_form_are_refused(forger: Forger) -> None:
    forger.append(forger.row(charge()))
    for columns in [
        *({"moment": moment} for moment in TIMES),
        *({"who": name} for name in NAMES),
        *({"request": name} for name in NAMES),
    ]:
        with pytest.raises(psycopg.Error):
            forger.append(forger.row(charge(), **columns))
    for kind, body in {"granted": {"more": NOTHING}, "account": {"budget": NOTHING}}.items():
        for why in (None, 1, "x" * 2001):
            told = canonical(body if why is None else {**body, "why": why})
            account = "ann" if kind == "account" else None
            with pytest.raises(psycopg.Error):
                forger.append(forger.row(told, kind, like=body, account=account))
    assert forger.last().seq == 2


def test_totals_that_privmax_cannot_read_are_refused(forger: Forger) -> None:
    """Under "zcdp" the database does not compute the cost of all charges; it must be a number."""
    Ledger.create(forger.url, "z", budget=Privacy(5, "1e-3"), rule="zcdp").close()
    forged = Forger(forger.url, "z")
    last = forged.last()
    totals = after(find_rule("zcdp"), "reserved", {"price": NOTHING}, totals_of(last.totals))
    for change in (
        lambda whole: whole["spent"].update(epsilon="0/0"),
        lambda whole: whole["spent"].update(epsilon="1/2/3"),
        lambda whole: whole["spent"].update(more=1),
        lambda whole: whole.update(more=[[]]),
    ):
        wrong = totals.as_json()
        change(wrong["whole"])
        with pytest.raises(psycopg.Error):
            forged.append(forged.row(charge(), totals=canonical(wrong)))
    forged.append(forged.row(charge(), totals=canonical(totals.as_json())))
    forged.connection.close()
    with Ledger(forger.url, "z") as ledger:
        assert ledger.verify() == []


def test_an_older_database_is_given_the_checks_by_its_owner(forger: Forger) -> None:
    """Its own bad events stay: they are marked, and nothing is built on the last one."""
    forger.connection.execute("DROP FUNCTION privmax_formed CASCADE")
    forger.connection.execute("DROP TRIGGER privmax_events_check ON privmax_events")
    forger.append(forger.row(charge(f'{{"x":{NESTED}}}')))
    with Ledger(forger.url, "sales") as ledger:
        assert [event.fault is None for event in ledger.history()] == [True, False]
        assert [fault.seq for fault in ledger.verify()] == [2]
        assert ledger.standing().fault == ledger.verify()[0]
        read_everything(ledger)
    with Ledger.create(forger.url, "next", epsilon=1) as ledger:  # its owner writes
        other = Forger(forger.url, "next")
        with pytest.raises(psycopg.Error):
            other.append(other.row(charge(f'{{"x":{NESTED}}}')))
        other.connection.close()


def test_long_answers_and_odd_text_of_privmax_are_taken(forger: Forger) -> None:
    """What is refused of others must not be refused of privmax."""
    values = [
        0.1, 1e16, 1e15, 123456789012345.6, 5e-324, 1.7976931348623157e308, -0.0, 1e-5, 0.0001,
        9007199254740993.0, 2.0**-44, 9.5367431640625e-07, 10**4299, -1, "\0", "\ud800", "😀",
        "\\u0000", "\\ud83d\\ude00", "\x7f", "\u2028", '"', "\\", "/", "\b\f\n\r\t",
        {"😀": 1, "\uffff": 2, "a": []}, {}, [], [[[]]], None, True, {"": ""},
    ]  # fmt: skip
    with Ledger(forger.url, "sales") as ledger:
        held = ledger.charge(Charge(Privacy(0)), {"values": values})
        assert held.record(values) == values
        assert ledger.charge(Charge(Privacy(0)), {}).record("y" * (LARGEST - 70_000)) is not None
        assert ledger.verify() == []


@pytest.mark.parametrize(
    "value",
    [
        "\\ud83d\udc80", "\ud83d\\ude00", "\\\ud83d", "\\\\ud83d\ude00", "\\x\0",
        "\\xd83d\0", "\\u0000\0", "\\\0", "\\\\u0000", "\ud83d\\u0000", "\\ud83d😀",
        "\\xd83d\\xde00\0",
        {"a\\v": "\0", "a\\x": 1}, {"a\\u0000": 1, "a\\u0001": "\0", "a1": 1},
    ],
)  # fmt: skip
def test_backslashes_beside_text_that_postgres_does_not_read_are_taken(
    forger: Forger, value: object
) -> None:
    with Ledger(forger.url, "sales") as ledger:
        held = ledger.charge(Charge(Privacy(0)), {"value": value})
        assert held.record([value]) == [value]
        assert ledger.verify() == []


@pytest.mark.parametrize("times", [10])
def test_floats_are_taken_as_python_writes_them(forger: Forger, times: int) -> None:
    import random
    import struct

    drawn = random.Random(7)
    with Ledger(forger.url, "sales") as ledger:
        for _ in range(times):
            bits = [struct.unpack("<d", drawn.randbytes(8))[0] for _ in range(400)]
            powers = [2.0 ** drawn.randrange(-1074, 1024) for _ in range(100)]
            floats = [one for one in [*bits, *powers] if one - one == 0]
            ledger.charge(Charge(Privacy(0)), {"floats": floats})
        assert ledger.verify() == []


# Fuzzing: whatever the database takes, every reader reads

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text("abκ😀", max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
"""Any JSON."""

EXACT = st.sampled_from(["0", "1/1000", "0/1", "2/2000", "1/3000"])
NUMBERS = EXACT | st.sampled_from(
    ["1", "1/0", "-1", "1e-3", "0.5", "", "9" * DIGITS, "9" * (DIGITS + 1), "1/" + "9" * DIGITS]
)
FREE = st.fixed_dictionaries(
    {"epsilon": EXACT, "delta": st.sampled_from(["0", "1/9999999"])},
    optional={"rho": EXACT},
).map(lambda more: {**price_json(Charge(Privacy(0), unit="user")), **more})
PRICES = st.fixed_dictionaries(
    {"epsilon": NUMBERS, "delta": NUMBERS},
    optional={
        "ranged": st.booleans() | JUNK,
        "neighbors": st.sampled_from(["add-remove", "replace"]) | JUNK,
        "unit": st.sampled_from(["user", "row", "ménage", "u" * 201, "\u0378"]) | JUNK,
        "rho": NUMBERS | JUNK,
    },
)
MAPPINGS = st.dictionaries(st.text("abκ😀", max_size=3), JUNK, max_size=3)
QUESTIONS = MAPPINGS | st.fixed_dictionaries(
    {},
    optional={
        "command": st.just("select") | JUNK,
        "dataset": st.just("log") | JUNK,
        "data": JUNK,
        "mechanism": JUNK,
        "columns": st.fixed_dictionaries({}, optional={"item": JUNK}) | JUNK,
        "options": JUNK | st.fixed_dictionaries(
            {}, optional={"item": JUNK, "k": JUNK, "where": JUNK, "counts": NUMBERS | JUNK}
        ),
    },
)  # fmt: skip
ANSWERS = JUNK | st.fixed_dictionaries({"items": JUNK | st.lists(JUNK, max_size=5)})
MORE = st.fixed_dictionaries({"epsilon": EXACT, "delta": st.just("0")})
REASONS = st.text("ab ü\n", max_size=9)
GOOD: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "reserved": st.fixed_dictionaries({"what": QUESTIONS, "price": FREE}),
    "released": st.fixed_dictionaries({"answer": ANSWERS}),
    "granted": st.fixed_dictionaries({"more": MORE, "why": REASONS}),
    "account": st.fixed_dictionaries(
        {"budget": st.just({"epsilon": "1/1000", "delta": "0"}), "why": REASONS}
    ),
}
BAD = {
    "reserved": st.fixed_dictionaries({"what": JUNK, "price": PRICES | JUNK}),
    "released": st.fixed_dictionaries({"anwser": ANSWERS}),
    "granted": st.fixed_dictionaries(
        {"more": st.fixed_dictionaries({"epsilon": NUMBERS, "delta": NUMBERS}) | JUNK, "why": JUNK}
    ),
    "account": st.fixed_dictionaries(
        {"budget": st.fixed_dictionaries({"epsilon": NUMBERS, "delta": NUMBERS}), "why": JUNK}
    ),
}
"""Mostly wrong; now and then right in a way that is not thought of here."""

SPOILED = st.sampled_from(
    [
        lambda text: text.replace(":", ": ", 1),
        lambda text: text.replace("}", f',"zz":{NESTED}}}', 1),
        lambda text: text.replace("{", '{"a":1,"a":2,', 1),
        lambda text: text.replace("0", "00", 1),
        lambda text: text.replace('"', '"\\u0041', 1),
        lambda text: text[:-1],
        lambda text: f"[{text}]",
        lambda text: text.replace("what", "wh\\u0000t"),
    ]
)
LABELS = st.sampled_from(["ann", "ü 😀", "x" * 200, "", "x" * 201, "\x1b[2J"]) | st.text(max_size=5)
FRESH = st.integers(0, 10**6).map("ann {}".format)
RARELY = st.integers(0, 9).map(lambda drawn: drawn == 7)


@st.composite
def forgeries(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["reserved", "reserved", "released", "granted", "account"]))
    body = draw(BAD[kind] if draw(RARELY) or draw(RARELY) else GOOD[kind])
    text = canonical(body)
    if draw(RARELY):
        text = draw(SPOILED)(text)
    columns: dict[str, Any] = {}
    if draw(RARELY):
        columns["moment"] = draw(st.sampled_from([MOMENT.replace("2026", "2999"), *TIMES]))
    if draw(RARELY):
        columns["who"] = draw(LABELS)
    if kind == "account" or draw(RARELY):
        columns["account"] = draw(LABELS if draw(RARELY) else FRESH)
    return {"kind": kind, "body": text, "like": body, "columns": columns}


def attempt(forger: Forger, forgery: dict[str, Any]) -> EventRow | None:
    """The event, if the database took it."""
    kind, columns = forgery["kind"], dict(forgery["columns"])
    try:
        if kind == "released":
            asked = forger.row(charge())
            forger.append(asked)
            columns |= {"request": asked.request, "who": asked.who, "account": None}
        try:
            row = forger.row(forgery["body"], kind, forgery["like"], **columns)
        except Exception:  # privmax itself cannot say what follows from such a body
            free = {"price": NOTHING, "more": NOTHING, "budget": NOTHING}
            row = forger.row(forgery["body"], kind, free, **columns)
        forger.append(row)
    except psycopg.Error:
        return None
    return row


def test_every_event_that_the_database_takes_passes_every_reader(forger: Forger) -> None:
    """Of 400 forgeries, of all kinds some are taken and some refused."""
    counts: Counter[str] = Counter()
    readable = {"granted", "account"}

    @settings(
        max_examples=400, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(forgery=forgeries())
    def fuzz(forgery: dict[str, Any]) -> None:
        row = attempt(forger, forgery)
        counts[f"{forgery['kind']} {'refused' if row is None else 'taken'}"] += 1
        if row is not None:
            assert [event.fault for event in ledger.history(last=1)] == [None]
            assert ledger.spent <= ledger.budget
            if row.kind not in readable:
                deployment(ledger, 1, row.request)

    with Ledger(forger.url, "sales") as ledger:
        fuzz()
        assert ledger.verify() == []
        read_everything(ledger)
        requests = [event.request for event in ledger.history() if event.request is not None]
        explore(ledger, 1, *requests)
    assert all(counts[f"{kind} {done}"] > 5 for kind in GOOD for done in ("taken", "refused")), (
        counts
    )
