"""What is wrong with a history whose hashes are all right."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from privmax.errors import LedgerError
from privmax.ledger import Charge, Fault, Ledger
from privmax.ledger.events import canonical, seal
from privmax.ledger.reading import read_rows
from privmax.ledger.replay import faults, follows
from privmax.ledger.rules import RULES
from privmax.ledger.shapes import mark
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"))
WHAT = {"mechanism": "x"}


@pytest.fixture
def rows(tmp_path):
    """Created, an account, a charge to it, its answer, and a charge to the whole."""
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1)) as ledger:
        ledger.open_account("ann", Privacy("1/2"))
        ledger.charge(TENTH, WHAT, request="a", account="ann").record("x")
        ledger.charge(TENTH, WHAT, request="b")
        return list(read_rows(ledger._chain))


def sealed(rows):
    """The rows one after another, each with its number and a right hash."""
    last, found = "", []
    for seq, row in enumerate(rows, 1):
        found.append(seal(last, "default", row._replace(seq=seq)))
        last = found[-1].hash
    return found


def verify(rows, outside=()):
    rows = sealed(rows)
    return faults("default", rows, (len(rows), rows[-1].hash), outside)


def test_a_right_history_has_no_faults(rows):
    assert verify(rows) == []


def test_a_second_answer_to_a_request_is_found(rows):
    found = verify([*rows[:4], rows[3], rows[4]])
    assert [fault.seq for fault in found] == [5]
    assert "its request has an answer already" in found[0].what


def test_a_charge_to_an_account_that_was_never_opened_is_found(rows):
    found = verify([*rows[:4], rows[4]._replace(account="bob")])
    assert Fault(5, "no event before it says to which budget it belongs") in found


@pytest.mark.parametrize(
    ("seq", "told"),
    [(-1, "are numbered from 1"), (0, "are numbered from 1"), (9, "comes after the event")],
)
def test_an_event_outside_of_the_history_is_told_by_its_number(rows, seq, told):
    (found,) = verify(rows, [rows[4]._replace(seq=seq)])
    assert found.seq == seq
    assert told in found.what


def test_the_first_event_lies_behind_the_last_where_the_head_says_that_there_is_none(rows):
    (found,) = faults("default", [], (0, ""), rows[:1])
    assert found.seq == 1
    assert "comes after the event" in found.what


@pytest.mark.parametrize("request_id", ["a", None])
def test_a_charge_without_an_id_of_its_own_is_found(rows, request_id):
    found = verify([*rows[:4], rows[4]._replace(request=request_id)])
    assert found == [Fault(5, "its request was charged before, or has no id")]


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T00:00:00", None])
def test_a_time_that_is_none_is_found(rows, moment):
    found = verify([*rows[:3], rows[3]._replace(moment=moment), rows[4]])
    assert found == [Fault(4, "its time is invalid")]


def test_a_number_that_is_none_is_found(rows):
    """JSON has no such number, though Python reads and writes it."""
    found = verify([*rows[:3], rows[3]._replace(body='{"answer":NaN}'), rows[4]])
    assert Fault(4, "its content cannot be read") in found


@pytest.mark.parametrize("whose", ["whole", "account"])
def test_nothing_is_built_on_a_charge_that_one_of_its_totals_does_not_count(rows, whose):
    _, opened, charged, *_ = rows
    basic = RULES["basic"]
    assert follows("default", basic, charged, opened, opened)
    totals = json.loads(charged.totals)
    totals[whose] = json.loads(opened.totals)[whose]
    forged = seal(opened.hash, "default", charged._replace(totals=canonical(totals)))
    assert not follows("default", basic, forged, opened, opened)


def test_nothing_is_built_on_a_second_event_that_passes_for_the_first(tmp_path):
    """Whoever removes the first event could else begin again, with nothing spent."""
    file = tmp_path / "budget.db"
    with Ledger.create(file, budget=Privacy(1)) as made:
        made.charge(TENTH, WHAT, request="a")
        first, second = read_rows(made._chain)
    forged = seal(
        "", "default", second._replace(kind=first.kind, body=first.body, totals=first.totals)
    )
    with Ledger(file) as ledger, closing(sqlite3.connect(file)) as other:
        for (name,) in other.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            other.execute(f"DROP TRIGGER {name}")
        other.execute("DELETE FROM privmax_events WHERE seq = 1")
        other.execute(
            "UPDATE privmax_events SET kind = ?, body = ?, totals = ?, hash = ?",
            [forged.kind, forged.body, forged.totals, forged.hash],
        )
        other.execute("UPDATE privmax_ledgers SET hash = ?", [forged.hash])
        other.commit()
        with pytest.raises(LedgerError, match=r"Event 2 .* does not follow from the events before"):
            ledger.charge(TENTH, WHAT, request="b")


def test_an_event_that_cannot_be_read_keeps_its_number_and_its_text(rows):
    event = mark(rows[2]._replace(body="{"))
    assert (event.seq, event.fault) == (3, "its body is not JSON")
    assert event.body == {"unreadable": "{"}
    assert mark(rows[2]).fault is None


def test_text_of_any_language_is_stored_as_ascii(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "Überschuß", budget=Privacy(1)) as ledger:
        assert ledger.charge(TENTH, {"data": "☃"}, request="é").record("日本") == "日本"
        assert [row.body.isascii() for row in read_rows(ledger._chain)] == [True] * 3
        assert ledger.find("é")[1].body == {"answer": "日本"}
        assert ledger.verify() == []
