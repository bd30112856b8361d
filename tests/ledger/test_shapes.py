"""Events of another form than privmax writes, in a file whose checks were dropped: readers mark
them and go on, and `verify` names them.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from unittest import mock

import pytest
from readers import read_everything, run

from privmax.errors import LedgerError, ParameterError
from privmax.ledger import Charge, Fault, Ledger
from privmax.ledger.events import DEEPEST, LARGEST, EventRow, canonical, label, price_json, seal
from privmax.ledger.replay import after, totals_of
from privmax.ledger.rows import COLUMNS
from privmax.ledger.rules import find_rule
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

PRICE = price_json(Charge(Privacy("1/10")))
NESTED = "[" * 2000 + "]" * 2000


def forge(file, body, **columns):
    """Add a charge of 1/10 with any text as its body."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        query = f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq DESC LIMIT 1"
        last = EventRow(*connection.execute(query).fetchone())
        totals = after(find_rule("basic"), "reserved", {"price": PRICE}, totals_of(last.totals))
        row = last._replace(
            seq=last.seq + 1, kind="reserved", request="forged", body=body,
            totals=canonical(totals.as_json()),
        )  # fmt: skip
        row = seal(last.hash, "default", row._replace(**columns))
        holes = ", ".join("?" * (1 + len(row)))
        connection.execute(
            f"INSERT INTO privmax_events (ledger, {COLUMNS}) VALUES ({holes})", ["default", *row]
        )
        connection.execute("UPDATE privmax_ledgers SET seq = ?, hash = ?", [row.seq, row.hash])


UNREAD = {
    "nested 2,000 deep": (f'{{"price":{canonical(PRICE)},"what":{{"x":{NESTED}}}}}', {}),
    "a number of 5,000 digits": (f'{{"price":{canonical(PRICE)},"what":{{"x":{"1" * 5000}}}}}', {}),
    "what is missing": (canonical({"price": PRICE}), {}),
    "what is a list": (canonical({"price": PRICE, "what": []}), {}),
    "a garbage time": (canonical({"price": PRICE, "what": {}}), {"moment": "yesterday"}),
    "a kind that is none": (canonical({"price": PRICE, "what": {}}), {"kind": "spent"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", UNREAD)
def test_readers_mark_an_event_and_go_on(tmp_path, case):
    file = tmp_path / "budget.db"
    body, columns = UNREAD[case]
    with Ledger.create(file, epsilon=3) as ledger:
        ledger.charge(Charge(Privacy(1)), {"command": "select"}, request="a").record({"items": [1]})
        forge(file, body, **columns)
        assert [event.fault is None for event in ledger.history()] == [True] * 3 + [False]
        assert "behind" not in str(ledger.verify())
        assert {fault.seq for fault in ledger.verify()} == {4}
        read_everything(ledger, request="a")
        assert "cannot be read" in run("history", ledger)
        (told,) = [line for line in run("export", ledger).splitlines() if "unreadable" in line]
        assert json.loads(told)["body"] == {"unreadable": body}


@pytest.mark.parametrize(
    ("case", "words"),
    [("what is missing", "what is missing"), ("what is a list", "what has another form")],
)
def test_what_is_wrong_with_an_event_is_said(tmp_path, case, words):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, UNREAD[case][0])
        assert [event.fault for event in ledger.history()] == [
            None,
            f"it is not an event of its kind: {words}",
        ]


@pytest.mark.parametrize("seq", [9**9, 2**63 - 1])
def test_a_number_far_from_the_others_holds_nobody_up(tmp_path, seq):
    """Readers walked down to it one number at a time."""
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        ledger.charge(Charge(Privacy(1)), {"command": "select"}, request="a").record({"items": [1]})
        forge(file, canonical({"price": PRICE, "what": {}}), seq=seq)
        standing = ledger.standing()
        assert standing.whole.spent == Privacy(1)
        assert standing.fault is not None
        assert [event.seq for event in ledger.history(last=2)] == [3, seq]
        assert len(list(ledger.history(last=50))) == 4
        assert len(list(ledger.history(last=10**20))) == 4
        assert ledger.verify()


def test_a_number_that_is_a_fraction_is_marked_like_others(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        ledger.charge(Charge(Privacy(1)), {"command": "select"}, request="a").record({"items": [1]})
        forge(file, canonical({"price": PRICE, "what": {}}), seq=2.5)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("UPDATE privmax_ledgers SET seq = 3")
        first, second = ledger.history(last=2)
        assert (first.fault is None, first.seq, second.seq) == (False, 0, 3)
        assert len(list(ledger.history(last=3))) == 3
        assert ledger.verify()


def test_the_standing_says_what_is_wrong_with_the_last_event(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, "{}")
        assert ledger.standing().fault == Fault(2, "its content cannot be read")
        assert ledger.standing().whole.spent == Privacy(0)


def test_where_no_event_is_sound_there_is_no_standing(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        assert ledger.rule == "basic"  # what the first event says is known
        forge(file, "{}")
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("UPDATE privmax_events SET totals = '{}' WHERE seq = 1")
        with pytest.raises(LedgerError, match=r"is missing or was changed|does not follow"):
            ledger.standing()


def test_damage_of_the_file_belongs_to_no_event(tmp_path):
    with Ledger.create(tmp_path / "budget.db", epsilon=3) as ledger:
        with mock.patch.object(SqliteStore, "damage", return_value=["page 3"]):
            assert ledger.verify() == [Fault(0, "the file is damaged: page 3")]
        assert ledger.verify() == []


def test_the_last_events_do_not_begin_below_the_first_number(tmp_path):
    """Where one in between is gone, there are others to go back to."""
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        ledger.charge(Charge(Privacy(1)), {"command": "select"}, request="a").record({"items": [1]})
        for seq in (0, -5):
            forge(file, canonical({"price": PRICE, "what": {}}), seq=seq, request=f"forged {seq}")
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("DELETE FROM privmax_events WHERE seq = 2")
            connection.execute("UPDATE privmax_ledgers SET seq = 3")
        assert [event.seq for event in ledger.history(last=3)] == [1, 3]


def test_an_event_as_json_has_a_fault_only_where_there_is_one(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, *UNREAD["what is missing"][:1])
        sound, wrong = ledger.history()
        assert sound.to_dict() == {
            name: value for name, value in vars(sound).items() if name != "fault"
        }
        assert wrong.to_dict() == vars(wrong)
        lines = [json.dumps(event.to_dict()) for event in ledger.history()]
        assert run("export", ledger).splitlines() == lines


@pytest.mark.slow
def test_an_event_that_is_too_large_is_named_and_can_be_read(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, canonical({"price": PRICE, "what": {"x": "y" * LARGEST}}))
        told = "its body has more than 16,777,216 bytes"
        assert [fault.what for fault in ledger.verify()] == [told]
        assert [event.fault for event in ledger.history()] == [None, None]


def test_what_no_event_has_room_for_is_refused_before_it_is_charged(tmp_path):
    deep = value = []
    for _ in range(DEEPEST):
        value.append([])
        value = value[0]
    with Ledger.create(tmp_path / "budget.db", epsilon=3) as ledger:
        large = [{"x": "y" * LARGEST}, {"x": deep}, {"x": 10**4300}]
        for what in (*large, {"a\0b": 1}, {"\ud800": 1}):
            with pytest.raises(ParameterError, match="what="):
                ledger.charge(Charge(Privacy(1)), what)
        held = ledger.charge(Charge(Privacy(1)), {})
        with pytest.raises(ParameterError) as caught:
            held.record("y" * LARGEST)
        assert "yy" not in str(caught.value)
        assert ledger.verify() == []
        assert ledger.event_count == 2


@pytest.mark.parametrize("deeper", [0, 1])
def test_an_event_may_be_nested_as_deep_as_is_allowed_and_no_deeper(tmp_path, deeper):
    """Beside the nested lists there is another one: brackets alone do not decide."""
    file = tmp_path / "budget.db"
    lists = DEEPEST - 2 + deeper  # in `what`, in the body
    what = f'{{"x":{"[" * lists}{"]" * lists},"y":[]}}'
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, f'{{"price":{canonical(PRICE)},"what":{what}}}')
        fault = f"its body is nested more than {DEEPEST} deep" if deeper else None
        assert [event.fault for event in ledger.history()] == [None, fault]


def test_a_request_that_cannot_be_read_is_named(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, epsilon=3) as ledger:
        forge(file, UNREAD["what is missing"][0])
        with pytest.raises(LedgerError, match="Event 2 of the ledger"):
            ledger.find("forged")


def test_names_are_printable_whatever_the_version_of_python():
    for text in ("user", "ménage", "世帯", "😀", "a b"):
        assert label("unit", text) == text
    for code in [0, 7, 0x7F, 0xA0, 0xAD, 0x200B, 0x2028, 0x202E, 0x3000, 0xD800, 0xE000, 0xFEFF]:
        with pytest.raises(ParameterError):
            label("unit", f"a{chr(code)}b")
