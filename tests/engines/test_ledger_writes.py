"""Events that PostgreSQL writes by itself: the same as privmax would write, and on the disk."""

from __future__ import annotations

import os
import random
import signal
from fractions import Fraction

import psycopg
import pytest
from servers import Postgres

from privmax.errors import BudgetError, LedgerError
from privmax.ledger import Charge, Ledger, postgres
from privmax.ledger.events import RELEASED, RESERVED, EventRow
from privmax.ledger.postgres import PostgresStore
from privmax.ledger.postgres_rows import DraftRows
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"))
BUDGET = Privacy(1, "1e-5")
SECRET = "zorblax"


@pytest.fixture
def url(ledger_url):
    return ledger_url


@pytest.fixture
def ledger(url):
    with Ledger.create(url, "sales", budget=BUDGET) as made:
        yield made


@pytest.fixture
def other(url):
    """Somebody else's connection to the same database."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def cut(connection):
    """End all sessions of ledgers in the database."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'privmax' AND datname = current_database()"
    )


def refused(told, act):
    with pytest.raises(LedgerError, match=told) as caught:
        act()
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.fixture
def writes(monkeypatch):
    """What became of each attempt to have the database write: its rows, or None."""
    attempts = []
    write = PostgresStore.write

    def noted(store, name, draft):
        attempts.append(write(store, name, draft))
        return attempts[-1]

    monkeypatch.setattr(PostgresStore, "write", noted)
    return attempts


@pytest.fixture
def messages(monkeypatch):
    """How often something was sent and waited for."""
    sent = []
    for name in ("_together", "_finish", "_write"):
        act = getattr(PostgresStore, name)

        def noted(*given, name=name, act=act):
            sent.append(name)
            return act(*given)

        monkeypatch.setattr(PostgresStore, name, noted)
    return sent


@pytest.mark.parametrize("account", [None, "ann"])
def test_a_charge_and_a_record_take_one_round_trip_each(ledger, url, messages, account):
    """Also when others wrote in between, whose last event is checked before it is built on."""
    ledger.open_account("ann", Privacy(1))
    with Ledger(url, "sales") as other_handle:
        for who in (other_handle, ledger, other_handle, ledger):
            who.charge(TENTH, {}, account=account)
        messages.clear()
        reservation = ledger.charge(TENTH, {}, account=account)
        assert messages == ["_write"]
        other_handle.charge(TENTH, {})
        messages.clear()
        assert reservation.record("x") == "x"
        assert messages == ["_write"]
    assert ledger.verify() == []


@pytest.mark.parametrize("rule", ["zcdp", "pld"])
def test_other_rules_record_in_one_round_trip(url, messages, rule):
    with Ledger.create(url, "x", budget=Privacy(3, "1e-5"), rule=rule) as ledger:
        reservation = ledger.charge(TENTH, {})
        messages.clear()
        assert reservation.record("x") == "x"
        assert messages == ["_write"]
        assert ledger.verify() == []


@pytest.mark.parametrize("unit", [None, "user"])
def test_what_the_database_writes_is_what_privmax_writes(url, writes, unit):
    """Each event is compared when it is written; here are many, of all kinds of numbers."""
    random.seed(7)
    with Ledger.create(url, "many ☃", budget=Privacy(10**9, 1), who='ann "☃"') as ledger:
        ledger.open_account("a", Privacy(10**9, 1))
        ledger.open_account("ü 😀", Privacy(10**9, 1))
        for number in range(150):
            wide = 10 ** random.choice([1, 3, 9, 40, 80])
            epsilon = Fraction(random.randrange(wide), random.randrange(1, wide + 1))
            delta = Fraction(random.randrange(wide), 50 * wide)
            price = Charge(Privacy(epsilon, delta), unit=unit)
            account = random.choice([None, "a", "ü 😀"])
            what = {"☃": random.choice(["é", "😀", "\\", '"', "\x7f", "plain"])}
            held = ledger.charge(price, what, request=f"request {number} ü", account=account)
            if number % 3 == 0:
                held.record([number, random.choice(["x", "ü", "\0", "\ud800", "😀"])])
        assert ledger.spent.delta == 1
        assert ledger.verify() == []
    assert sum(rows is not None for rows in writes) > 50
    assert sum(rows is None for rows in writes) > 10  # what JSON of the server cannot read


def test_what_is_not_ordinary_is_left_to_privmax(ledger, url, writes):
    first = ledger.charge(TENTH, {}, request="r")
    first.record("x")
    assert all(rows is not None for rows in writes[-2:])
    for act, told in (
        (lambda: ledger.charge(Charge(Privacy(5)), {}), "the ledger 'sales' has"),
        (lambda: ledger.charge(TENTH, {}, account="nobody"), "has no account"),
        (lambda: ledger.charge(TENTH, {"y": 1}, request="r"), "with a different question"),
        (
            lambda: ledger.charge(Charge(Privacy("1/10"), neighbors="replace"), {}),
            "for add-remove neighbors",
        ),
    ):
        with pytest.raises(LedgerError, match=told):
            act()
        assert writes[-1] is None
    assert ledger.charge(TENTH, {}, request="r").answer == "x"
    assert first.record("y") == "x"
    assert writes[-2:] == [None, None]
    with Ledger(url, "sales", who="bob") as bob:
        again = bob.charge(TENTH, {}, request="r")
        assert again.answer == "x"
    assert ledger.spent == Privacy("1/10")
    assert ledger.verify() == []


def forge(connection, **changes):
    """Change the last event, as who may do anything in the database can."""
    connection.execute("ALTER TABLE privmax_events DISABLE TRIGGER ALL")
    for column, value in changes.items():
        connection.execute(
            f"UPDATE privmax_events SET {column} = {value} WHERE seq = "
            "(SELECT max(seq) FROM privmax_events)"
        )
    connection.execute("ALTER TABLE privmax_events ENABLE TRIGGER ALL")


@pytest.mark.parametrize(
    "changes",
    [
        {"totals": """replace(totals, '"epsilon":"1/5"', '"epsilon":"1/10"')"""},
        {"who": "'x'"},
        {"body": """replace(body, '1/10', '1/20')"""},
    ],
)
def test_a_forged_event_is_not_built_on(ledger, url, other, changes):
    for number in range(2):
        ledger.charge(TENTH, {"number": number})
    with Ledger(url, "sales") as fresh:
        fresh.charge(TENTH, {})  # its connection is open, and knows the functions
        ledger.charge(TENTH, {})
        last = other.execute("SELECT max(seq) FROM privmax_events").fetchone()
        changes = {
            name: value.replace("1/5", "2/5").replace('"1/10"\')', '"3/10"\')')
            for name, value in changes.items()
        }
        forge(other, **changes)
        refused("does not follow|is missing or was changed", lambda: fresh.charge(TENTH, {}))
    assert other.execute("SELECT max(seq) FROM privmax_events").fetchone() == last


def test_an_event_the_database_wrote_otherwise_is_not_drawn_for(ledger, other):
    """As by functions that somebody replaced, with the checks."""
    ledger.charge(TENTH, {})
    other.execute("ALTER TABLE privmax_events DISABLE TRIGGER privmax_events_check")
    other.execute(
        "CREATE OR REPLACE FUNCTION privmax_next(kind text, body text, account text, "
        "old privmax_events, own privmax_events) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN old.totals; END $$"
    )
    told = refused("would not have written", lambda: ledger.charge(TENTH, {}, request="r"))
    assert "Nothing may be drawn" in told


UNKNOWN = "the commit was not confirmed .* Repeat the request 'r': that never charges twice"


@pytest.mark.parametrize("arrived", [True, False], ids=["committed", "lost"])
def test_a_connection_lost_in_the_middle_is_made_anew(ledger, other, monkeypatch, arrived):
    ledger.charge(TENTH, {})
    written = PostgresStore._write

    def lost(*sent):
        if arrived:
            written(*sent)
        cut(other)
        return written(*sent)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_write", lost)
        assert ledger.charge(TENTH, {}, request="r").seq == 3
    assert ledger.spent == Privacy("1/5")
    assert ledger.verify() == []


def test_a_commit_of_which_nobody_knows_counts_as_spent(ledger, monkeypatch):
    ledger.charge(TENTH, {})
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "_FLUSH", "SELECT 1/0, ?, ?, ?")
        refused(UNKNOWN, lambda: ledger.charge(TENTH, {}, request="r"))
    assert ledger.charge(TENTH, {}, request="r").seq == 3
    assert ledger.spent == Privacy("1/5")


def test_a_server_that_is_gone_after_an_attempt_is_told(ledger, other, monkeypatch):
    ledger.charge(TENTH, {})
    written = PostgresStore._write

    def gone(store, *sent):
        cut(other)
        store._url = "postgresql://nobody@127.0.0.1:1/none"
        return written(store, *sent)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_write", gone)
        told = refused(
            "the commit was not confirmed", lambda: ledger.charge(TENTH, {}, request="r")
        )
    assert "Repeat the request 'r'" in told


def test_no_answer_is_in_the_frames_of_an_error(ledger, monkeypatch):
    reservation = ledger.charge(TENTH, {}, request="r")
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "_FLUSH", "SELECT 1/0, ?, ?, ?")
        with pytest.raises(LedgerError, match="was not confirmed") as caught:
            reservation.record("".join(SECRET))
    trace = caught.value.__traceback__.tb_next
    assert trace.tb_frame.f_code.co_name == "record"
    assert SECRET not in repr(trace.tb_frame.f_locals)
    assert trace.tb_next is None
    assert reservation.record("other") == SECRET  # it was recorded, and nobody drew again


def test_an_older_copy_is_noticed(ledger, other):
    ledger.charge(TENTH, {})
    ledger.charge(TENTH, {})
    other.execute("ALTER TABLE privmax_events DISABLE TRIGGER ALL")
    other.execute("ALTER TABLE privmax_ledgers DISABLE TRIGGER ALL")
    other.execute("DELETE FROM privmax_events WHERE seq = 3")
    other.execute(
        "UPDATE privmax_ledgers SET seq = 2, hash = (SELECT hash FROM privmax_events WHERE seq = 2)"
    )
    other.execute("ALTER TABLE privmax_events ENABLE TRIGGER ALL")
    other.execute("ALTER TABLE privmax_ledgers ENABLE TRIGGER ALL")
    refused("lost event 3", lambda: ledger.charge(TENTH, {}))
    assert other.execute("SELECT max(seq) FROM privmax_events").fetchone() == (2,)


# What is on the disk


@pytest.fixture(scope="module")
def server():
    """A server of its own, which writes nothing to the disk unless somebody waits for it."""
    with Postgres() as own:
        with psycopg.connect(own.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            connection.execute("ALTER SYSTEM SET wal_writer_flush_after = '1GB'")
        own.restart()
        yield own


@pytest.fixture
def lasting(server):
    """A ledger there, with a charge behind it, so that the next is written by the database."""
    with Ledger(server.url, f"lasting {random.random()}", BUDGET) as made:
        made.charge(TENTH, {})
        yield made


def test_a_charge_and_an_answer_outlive_the_server(server, lasting):
    for number in range(5):
        held = lasting.charge(TENTH, {}, request=f"r{number}")
        server.kill()
        assert lasting.knows(f"r{number}")
        held = lasting.charge(TENTH, {}, request=f"r{number}")  # also connects again
        lasting.charge(Charge(Privacy("1/1000")), {})
        held.record(number)
        server.kill()
        assert lasting.charge(TENTH, {}, request=f"r{number}").answer == number
    assert lasting.verify() == []


def test_without_the_second_commit_they_do_not(server, lasting, monkeypatch):
    """So what was seen above is not the server's own doing."""
    monkeypatch.setattr(
        postgres, "_FLUSH", "SELECT (SELECT hash FROM privmax_events WHERE ledger = ? "
        "AND request = ? AND kind = ?)",
    )  # fmt: skip
    lasting.charge(TENTH, {}, request="r")
    server.kill()
    with Ledger(server.url, lasting.name) as fresh:
        assert not fresh.knows("r")


def commit_without_waiting(server, ledger, kind, request, body):
    """Commit an event that is not on the disk yet, as a client does that has not waited.

    PostgreSQL's log writer is stopped until the server is killed: it could write the event in time.
    """
    with psycopg.connect(server.url, autocommit=True) as connection:
        (writer,) = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        ).fetchone()
        os.kill(writer, signal.SIGSTOP)
        columns = "ledger, seq, kind, moment, who, request, account, body, totals, hash"
        charged = connection.execute(
            "SELECT hash FROM privmax_events WHERE ledger = %s AND request = %s "
            "AND kind = 'reserved'", [ledger.name, request],
        ).fetchone()  # fmt: skip
        made = connection.execute(
            f"SELECT {columns} FROM "
            "privmax_write(%s, %s, '2026-11-17T00:00:00Z', %s, %s, NULL, %s, NULL, 0, '', %s)",
            [ledger.name, kind, ledger.who, request, body, charged and charged[0]],
        ).fetchall()
        assert made
        return EventRow(*made[-1][1:])


ANSWER = '{"answer":"x"}'


@pytest.mark.parametrize("reader", ["charge", "record", "history"])
def test_who_is_told_an_answer_is_told_it_for_good(server, lasting, reader):
    held = lasting.charge(TENTH, {}, request="r")
    commit_without_waiting(server, lasting, RELEASED, "r", ANSWER)
    told = {
        "charge": lambda: lasting.charge(TENTH, {}, request="r").answer,
        "record": lambda: held.record("y"),
        "history": lambda: list(lasting.history())[-1].body["answer"],
    }[reader]()
    assert told == "x"
    server.kill()
    with Ledger(server.url, lasting.name) as fresh:
        assert fresh.charge(TENTH, {}, request="r").answer == "x"


def test_a_history_is_there_for_good_though_the_role_commits_without_waiting(server, lasting):
    lasting.charge(TENTH, {}, request="r")
    commit_without_waiting(server, lasting, RELEASED, "r", ANSWER)
    with Ledger(f"{server.url}?options=-csynchronous_commit%3Doff", lasting.name) as weak:
        assert list(weak.history())[-1].body["answer"] == "x"
    server.kill()
    with Ledger(server.url, lasting.name) as fresh:
        assert fresh.charge(TENTH, {}, request="r").answer == "x"


def test_an_event_that_nobody_waited_for_may_be_lost_and_nobody_minds(server, lasting):
    """Neither does a handle that has read it take its loss for an older copy."""
    body = (
        '{"price":{"delta":"0","epsilon":"1/10","neighbors":"add-remove","ranged":false},"what":{}}'
    )
    commit_without_waiting(server, lasting, RESERVED, "lost", body)
    assert lasting.spent == Privacy("1/5")
    server.kill()
    assert lasting.spent == Privacy("1/10")
    assert lasting.charge(TENTH, {}, request="lost").seq == 3
    assert lasting.verify() == []


def test_a_refusal_costs_nothing(ledger, writes):
    ledger.charge(TENTH, {})
    with pytest.raises(BudgetError):
        ledger.charge(Charge(Privacy(2)), {})
    assert ledger.spent == Privacy("1/10")
    assert isinstance(writes[0], DraftRows | None)
