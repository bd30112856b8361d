"""Ledgers in PostgreSQL: the same promises as in a file, and what becomes of them when connections
are lost.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import threading
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from urllib.parse import quote, urlsplit

import ibis
import psycopg
import pytest
from psycopg import sql

from privmax.errors import BudgetError, LedgerError
from privmax.ledger import Charge, Fault, Ledger
from privmax.ledger.events import EventRow, canonical, price_json, privacy_of, seal
from privmax.ledger.postgres import PostgresStore
from privmax.ledger.postgres_schema import CHECKS
from privmax.ledger.postgres_urls import public_url
from privmax.ledger.replay import after, totals_of
from privmax.ledger.rows import COLUMNS, Rows
from privmax.ledger.rules import RULES
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
    """End all sessions of ledgers, as a server does that stops."""
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'privmax'"
    )
    assert (True,) in connection.execute(f"{ended} AND datname = current_database()").fetchall()


def refused(told, act, kind=LedgerError):
    with pytest.raises(kind, match=told) as caught:
        act()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def with_options(url, options):
    return f"{url}?options={quote(options)}"


# The promises


def test_a_ledger_in_a_database_is_a_ledger(ledger, url):
    assert ledger.who == urlsplit(url).username
    ledger.open_account("ann", Privacy("1/2", "1e-6"), why="a study")
    nasty = "'; DROP TABLE privmax_events; -- ? %s \" \\ ☃"
    first = ledger.charge(TENTH, {nasty: nasty}, request=nasty, account="ann")
    assert first.record([nasty, "\0", "\ud800", None]) == [nasty, "\0", "\ud800", None]
    again = ledger.charge(TENTH, {nasty: nasty}, request=nasty, account="ann")
    assert (again.recorded, again.answer, again.seq) == (True, first.answer, 3)
    refused(
        "with a different question", lambda: ledger.charge(TENTH, {}, request=nasty, account="ann")
    )
    refused(
        "the account 'ann'",
        lambda: ledger.charge(Charge(Privacy("0.45")), {}, account="ann"),
        BudgetError,
    )
    refused("the ledger 'sales'", lambda: ledger.charge(Charge(Privacy(1)), {}), BudgetError)
    ledger.grant(Privacy(1), why="more")
    assert (ledger.budget, ledger.spent) == (Privacy(2, "1e-5"), Privacy("1/10"))
    assert ledger.accounts() == {"ann": (Privacy("1/2", "1e-6"), Privacy("1/10"))}
    assert [event.kind for event in ledger.history()] == [
        "created",
        "account",
        "reserved",
        "released",
        "granted",
    ]
    assert ledger.verify() == []


def test_opening_and_making_agree(ledger, url):
    refused("already has a ledger 'sales'", lambda: Ledger.create(url, "sales", budget=BUDGET))
    refused("was created with a budget", lambda: Ledger(url, "sales", Privacy(2)))
    refused("has no ledger 'x'", lambda: Ledger(url, "x"))
    with (
        Ledger(url, "sales", BUDGET, who="bob") as again,
        pickle.loads(pickle.dumps(again)) as third,
    ):
        again.charge(TENTH, {})
        assert third.spent == ledger.spent == Privacy("1/10")
        assert third.who == "bob"


def test_a_database_without_ledgers_is_told(url):
    refused("has no ledgers, or none that this user may read", lambda: Ledger(url, "sales"))


def test_another_version_of_the_tables_is_refused(ledger, url, other):
    other.execute("COMMENT ON TABLE privmax_events IS 'privmax ledgers, version 2'")
    refused("tables of another version", lambda: Ledger(url, "sales"))
    refused("tables of another version", lambda: Ledger(url, "sales", BUDGET))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE privmax_events SET who = 'x'",
        "DELETE FROM privmax_events",
        "TRUNCATE privmax_events",
        "TRUNCATE privmax_ledgers CASCADE",
        "UPDATE privmax_ledgers SET seq = 1",
        "UPDATE privmax_ledgers SET hash = 'x'",
        "UPDATE privmax_ledgers SET name = 'x'",
        "DELETE FROM privmax_ledgers",
        "INSERT INTO privmax_ledgers VALUES ('new', 3, '')",
        "INSERT INTO privmax_events VALUES ('sales', 4, 'x', 'x', 'x', NULL, NULL, '{}', '{}', "
        "'x')",
        "INSERT INTO privmax_events VALUES ('sales', 1, 'x', 'x', 'x', NULL, NULL, '{}', '{}', "
        "'x')",
    ],
)
def test_the_database_itself_refuses_to_change_what_is_written(ledger, other, statement):
    ledger.charge(TENTH, {})
    with pytest.raises((psycopg.errors.RaiseException, psycopg.errors.UniqueViolation)):
        other.execute(statement)
    assert ledger.verify() == []


def test_tables_of_the_same_names_in_a_session_do_not_deceive_the_triggers(ledger, other):
    """A role that may make temporary tables could let the triggers look at its own instead of
    ours.
    """
    ledger.charge(TENTH, {})
    other.execute(
        "CREATE TEMPORARY TABLE privmax_ledgers AS SELECT name, 7::bigint AS seq, hash FROM "
        "privmax_ledgers"
    )
    other.execute("CREATE TEMPORARY TABLE privmax_events AS SELECT * FROM privmax_events")
    other.execute(
        "INSERT INTO privmax_events VALUES ('sales', 3, 'x', 'x', 'x', NULL, NULL, '{}', '{}', 'x')"
    )
    for statement in (
        "UPDATE public.privmax_ledgers SET seq = 3, hash = 'x'",
        "INSERT INTO public.privmax_events VALUES ('sales', 8, 'x', 'x', 'x', NULL, NULL, '{}', "
        "'{}', 'x')",
    ):
        with pytest.raises(psycopg.errors.RaiseException):
            other.execute(statement)
    assert ledger.charge(TENTH, {}).seq == 3
    assert ledger.verify() == []


def test_ledgers_live_in_any_schema(url, other):
    other.execute('CREATE SCHEMA "My ""Budgets"""')
    where = with_options(url, '-csearch_path="My\\ ""Budgets"""')
    with Ledger.create(where, "sales", budget=BUDGET) as ledger:
        assert ledger.charge(TENTH, {}).record(1) == 1
        assert ledger.verify() == []
    refused("has no ledgers", lambda: Ledger(url, "sales"))


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE privmax_events SET who = 'x' WHERE seq = 2", "event 2: its hash does not match"),
        ("DELETE FROM privmax_events WHERE seq = 2", "event 2: it is missing"),
        ("DELETE FROM privmax_events WHERE seq = 3", "event 3: it is missing"),
    ],
)
def test_verify_finds_what_a_superuser_did(ledger, other, statement, fault):
    ledger.charge(TENTH, {})
    ledger.charge(TENTH, {})
    other.execute("SET session_replication_role = replica")  # no trigger fires
    other.execute(statement)
    found = ledger.verify()
    assert isinstance(found[0], Fault)
    assert str(found[0]).startswith(fault)


def test_many_handles_never_spend_more_than_there_is(ledger, url):
    refusals = []

    def spend():
        with Ledger(url, "sales") as handle:
            for _ in range(5):
                try:
                    handle.charge(TENTH, {}).record(1)
                except BudgetError:
                    refusals.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refusals) == 10
    assert ledger.spent == Privacy(1)
    assert ledger.verify() == []


def test_many_who_make_one_ledger_at_once_share_it(url):
    outcomes: list[str] = []

    def make():
        try:
            Ledger.create(url, "x", budget=BUDGET).close()
            outcomes.append("made")
        except LedgerError as error:
            outcomes.append("taken" if "already has" in str(error) else str(error))

    threads = [threading.Thread(target=make) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", *["taken"] * 4]
    with Ledger(url, "x") as ledger:
        assert ledger.verify() == []


def test_settings_of_a_role_do_not_weaken_a_commit(ledger, url):
    options = (
        "-csynchronous_commit=off -cdefault_transaction_isolation=serializable "
        "-cdefault_transaction_read_only=on"
    )
    with Ledger(with_options(url, options), "sales") as weak:
        assert weak.charge(TENTH, {}).seq == 2
        with weak._store.writing("sales") as rows:
            assert rows._execute("SHOW synchronous_commit", []) == [("on",)]
            assert rows._execute("SHOW transaction_isolation", []) == [("read committed",)]


@pytest.fixture
def by_privmax(monkeypatch):
    """Have privmax write all events, none is written by the database itself."""
    monkeypatch.setattr(PostgresStore, "write", lambda *_: None)


def test_a_lock_that_is_held_too_long_is_told(ledger, url, by_privmax, monkeypatch):
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1 FROM privmax_ledgers FOR UPDATE")
        monkeypatch.setattr(
            "privmax.ledger.postgres._WRITING", "BEGIN; SET LOCAL lock_timeout = '50ms'"
        )
        told = refused("was locked by others", lambda: ledger.charge(TENTH, {}))
        assert "Nothing was charged" in told
    assert ledger.charge(TENTH, {}).seq == 2


# Round trips


@pytest.fixture
def sent(monkeypatch):
    """The messages that are sent to the server and waited for, as lists of statements."""
    messages = []
    together, finish = PostgresStore._together, PostgresStore._finish

    def noted(store, queries):
        messages.append([query for query, _ in queries])
        return together(store, queries)

    def noted_finish(store, connection, unsent):
        messages.append([*(query for query, _ in unsent), "COMMIT"])
        return finish(store, connection, unsent)

    monkeypatch.setattr(PostgresStore, "_together", noted)
    monkeypatch.setattr(PostgresStore, "_finish", noted_finish)
    return messages


@pytest.mark.parametrize("account", [None, "ann"])
@pytest.mark.usefixtures("by_privmax")
def test_a_charge_and_a_record_take_two_round_trips_each(ledger, url, sent, account):
    """Also when others wrote in between, whose last event is checked before it is built on."""
    ledger.open_account("ann", Privacy(1))
    with Ledger(url, "sales") as other_handle:
        other_handle.charge(TENTH, {}, account=account)
        ledger.charge(TENTH, {}, account=account)
        for _ in range(2):
            other_handle.charge(TENTH, {}, account=account)
            sent.clear()
            reservation = ledger.charge(TENTH, {}, account=account)
            assert [len(message) for message in sent] == [4, 2]
            sent.clear()
            assert reservation.record("x") == "x"
            assert [len(message) for message in sent] == [4, 2]
    assert ledger.verify() == []


def test_without_pipelines_it_is_the_same(ledger, monkeypatch):
    """As with a libpq before version 14."""
    monkeypatch.setattr(psycopg.Pipeline, "is_supported", lambda: False)
    assert ledger.charge(TENTH, {}, request="r").record("x") == "x"
    assert ledger.charge(TENTH, {}, request="r").answer == "x"
    refused("the ledger 'sales'", lambda: ledger.charge(Charge(Privacy(1)), {}), BudgetError)
    assert ledger.verify() == []


@pytest.mark.usefixtures("by_privmax")
def test_an_event_that_the_database_refuses_is_not_committed(ledger, monkeypatch):
    ledger.charge(TENTH, {})
    with monkeypatch.context() as patch:
        patch.setattr("privmax.ledger.replay.Totals.charge", lambda totals, rule, price: totals)
        told = refused(
            "refused an event that does not follow", lambda: ledger.charge(TENTH, {}, request="r")
        )
    assert "Nothing was charged" in told
    assert ledger.spent == Privacy("1/10")
    assert ledger.charge(TENTH, {}, request="r").seq == 3
    assert ledger.verify() == []


# Batches


def test_a_batch_is_one_transaction_of_two_round_trips(ledger, sent):
    ledger.open_account("ann", Privacy("1/2"))
    ledger.charge(TENTH, {}, request="old").record("known")
    sent.clear()
    with ledger.batch() as batch:
        names = "a", "b", "a", "c"
        made = [
            batch.charge(TENTH, {}, request=name, account="ann" if name == "b" else None)
            for name in names
        ]
        assert sent == []
    append = "SELECT privmax_append(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    assert [len(sent[0]), *sent[1:]] == [4, [append, append, append, "COMMIT"]]
    assert [one.seq for one in made] == [5, 6, 5, 7]
    with ledger.batch() as batch:
        made.append(batch.charge(TENTH, {}, request="d"))
        made.append(
            batch.charge(TENTH, {}, request="old")
        )  # asks more, after the event before it was added
    with ledger.batch() as batch:
        for one in made:
            batch.record(one, one.seq)
    assert [one.answer for one in made] == [5, 6, 5, 7, 8, "known"]
    assert ledger.verify() == []


def test_a_batch_is_all_or_nothing(ledger):
    with pytest.raises(BudgetError), ledger.batch() as batch:
        made = [batch.charge(TENTH, {}, request=f"r{n}") for n in range(11)]
    refused("Nothing may be drawn", lambda: made[0].seq)
    assert ledger.spent == Privacy(0)
    assert ledger.charge(TENTH, {}, request="r0").seq == 2


def test_a_batch_whose_commit_was_not_confirmed_may_be_tried_again(ledger, monkeypatch):
    finish = PostgresStore._finish

    def lost(*sent):
        finish(*sent)
        raise psycopg.OperationalError("server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_finish", lost)
        with (
            pytest.raises(LedgerError, match="was not confirmed") as caught,
            ledger.batch() as batch,
        ):
            made = [batch.charge(TENTH, {}, request=f"r{n}") for n in range(3)]
    assert "with the same request ids" in caught.value.__notes__[0]
    refused("Nothing may be drawn", lambda: made[0].seq)
    with ledger.batch() as batch:
        made = [batch.charge(TENTH, {}, request=f"r{n}") for n in range(3)]
    assert [one.seq for one in made] == [2, 3, 4]
    assert ledger.spent == Privacy("3/10")
    assert ledger.verify() == []


# Lost connections


def test_a_connection_that_was_lost_in_between_is_made_anew(ledger, other):
    cut(other)
    assert ledger.charge(TENTH, {}, request="r").seq == 2
    cut(other)
    assert ledger.spent == Privacy("1/10")


@pytest.mark.usefixtures("by_privmax")
def test_a_connection_lost_before_the_commit_charges_nothing(ledger, other, monkeypatch):
    """The event and the commit are sent together: who sends them cannot know how far they came."""
    append = Rows.append

    def cut_first(rows, row):
        cut(other)
        append(rows, row)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", cut_first)
        refused(UNKNOWN, lambda: ledger.charge(TENTH, {"x": SECRET}, request="r"))
    assert ledger.spent == Privacy(0)
    assert ledger.charge(TENTH, {"x": SECRET}, request="r").seq == 2
    assert ledger.verify() == []


UNKNOWN = (
    "the commit was not confirmed .* count a charge as spent. Repeat the request 'r': "
    "that never charges twice"
)


@pytest.mark.parametrize("arrived", [True, False], ids=["committed", "lost"])
@pytest.mark.usefixtures("by_privmax")
def test_a_commit_without_an_answer_counts_as_spent_and_may_be_tried_again(
    ledger, other, monkeypatch, arrived
):
    assert ledger.spent == Privacy(0)
    finish = PostgresStore._finish

    def lost(*sent):
        if arrived:
            finish(*sent)
            raise psycopg.OperationalError(f"server closed the connection {SECRET}")
        cut(other)
        return finish(*sent)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_finish", lost)
        refused(UNKNOWN, lambda: ledger.charge(TENTH, {}, request="r"))
    assert ledger.spent == (Privacy("1/10") if arrived else Privacy(0))
    assert ledger.charge(TENTH, {}, request="r").seq == 2
    assert ledger.spent == Privacy("1/10")
    assert ledger.verify() == []


@pytest.mark.usefixtures("by_privmax")
def test_an_answer_whose_commit_was_not_confirmed_is_found_again(ledger, monkeypatch):
    reservation = ledger.charge(TENTH, {}, request="r")
    finish = PostgresStore._finish

    def lost(*sent):
        finish(*sent)
        raise psycopg.OperationalError("server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_finish", lost)
        refused(UNKNOWN, lambda: reservation.record("first"))
    assert not reservation.recorded
    assert reservation.record("second") == "first"  # nobody has seen the second
    assert ledger.charge(TENTH, {}, request="r").answer == "first"
    assert ledger.verify() == []


@pytest.mark.usefixtures("by_privmax")
def test_an_answer_that_was_not_recorded_is_not_in_the_frames_of_the_error(
    ledger, other, monkeypatch
):
    reservation = ledger.charge(TENTH, {}, request="r")
    append = Rows.append

    def cut_first(rows, row):
        cut(other)
        append(rows, row)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", cut_first)
        with pytest.raises(LedgerError, match="was not confirmed") as caught:
            reservation.record("".join(SECRET))
    trace = caught.value.__traceback__.tb_next
    assert trace.tb_frame.f_code.co_name == "record"
    assert SECRET not in repr(trace.tb_frame.f_locals)
    assert trace.tb_next is None
    assert reservation.record("other") == "other"


@pytest.mark.parametrize("statement", ["ROLLBACK", "SELECT 1/0"])
@pytest.mark.usefixtures("by_privmax")
def test_a_transaction_that_was_undone_is_no_commit(ledger, monkeypatch, statement):
    append = Rows.append

    def undone(rows, row):
        append(rows, row)
        with suppress(psycopg.Error):
            ledger._store._connection.execute(statement)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", undone)
        told = refused("the transaction was undone", lambda: ledger.charge(TENTH, {}, request="r"))
    assert "Nothing was charged" in told
    assert ledger.spent == Privacy(0)
    assert ledger.charge(TENTH, {}, request="r").seq == 2


@pytest.mark.usefixtures("by_privmax")
def test_a_handle_is_not_used_by_whoever_interrupts_it(ledger, monkeypatch):
    append = Rows.append
    told = []

    def interrupted(rows, row):
        append(rows, row)
        told.append(
            refused("in use by this very thread", lambda: ledger.charge(Charge(Privacy(5)), {}))
        )

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", interrupted)
        assert ledger.charge(TENTH, {}, request="r").seq == 2
    assert len(told) == 1
    assert ledger.spent == Privacy("1/10")
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://mallory:zorblax@127.0.0.1:1/none",
        "postgresql://mallory:zorblax@127.0.0.1:1/none?sslpassword=zorblax",
        "postgresql://mallory:zorblax@[::1/none",
        "postgres://mallory:zorblax@127.0.0.1:1/none?zorblax",
        "postgresql://mallory:zor/zorblax@127.0.0.1:1/none",
        "postgresql://mallory:zorblax/zor@127.0.0.1:1/none",
        "postgresql://mallory:12/zorblax@127.0.0.1:1/none",
        "postgresql://mallory:zor@zorblax@127.0.0.1:1/none",
    ],
)
def test_a_password_is_never_shown(where):
    told = refused("postgres", lambda: Ledger(where, "sales", BUDGET))
    assert "mallory" not in told


def test_neither_is_the_one_of_a_url_that_works(ledger, url):
    secret = re.sub("//([^@]*)@", rf"//\1:{SECRET}@", url)
    with Ledger(secret, "sales") as known:
        for text in (
            repr(known),
            known.where,
            repr(known.charge(TENTH, {})),
            *map(str, known.history()),
        ):
            assert SECRET not in text


@pytest.mark.parametrize("secrets", [f"?password={SECRET}", f"?sslpassword={SECRET}", ""])
def test_a_pickled_ledger_holds_no_password(ledger, url, secrets):
    """It is found again where libpq looks for it: PGPASSWORD, ~/.pgpass, a service file."""
    secret = url + secrets if secrets else re.sub("//([^@]*)@", rf"//\1:{SECRET}@", url)
    ledger.charge(TENTH, {})
    with Ledger(secret, "sales") as known:
        pickled = pickle.dumps(known)
        assert SECRET.encode() not in pickled
        with pickle.loads(pickled) as again:
            assert (again.spent, again.where, again.who) == (known.spent, known.where, known.who)
            assert SECRET not in repr(again.__reduce__())


@pytest.mark.parametrize("name", ["oauth_client_secret", "scram_client_key", "scram_server_key"])
def test_nor_does_it_hold_any_other_secret(name):
    """Of a libpq that knows them; others refuse such a URL."""
    kept = public_url(f"postgresql://ada@h/db?{name}={SECRET}&connect_timeout=7")
    assert SECRET not in kept
    assert kept in ("postgresql://", "postgresql://?user=ada&connect_timeout=7&dbname=db&host=h")


@pytest.mark.parametrize("host", ["a" * 300, "a" * 70_000, "a..b", "h\udcff", "h\0"])
def test_a_host_that_cannot_be_is_told(host):
    told = refused(
        "cannot be used", lambda: Ledger(f"postgresql://mallory:{SECRET}@{host}/db", "sales")
    )
    assert "mallory" not in told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("alike", [False, True], ids=["number", "same number"])
def test_a_child_has_a_session_of_its_own(ledger, monkeypatch, alike):
    """Also in a namespace, where its number may be that of its parent."""
    number = os.getpid()
    session = ledger._store._connection.info.backend_pid
    with monkeypatch.context() as patch:
        if alike:
            patch.setattr(os, "getpid", lambda: number)
        child = os.fork()
    if not child:
        told = 1
        with suppress(BaseException):
            if alike:
                monkeypatch.setattr(os, "getpid", lambda: number)
            ledger.charge(TENTH, {})
            told = int(ledger._store._connection.info.backend_pid == session)
        os._exit(told)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.charge(TENTH, {}).seq == 3
    assert ledger._store._connection.info.backend_pid == session


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_ends_within_a_transaction_does_not_end_the_session(ledger, monkeypatch):
    """As one that a signal handler forks, and that leaves by sys.exit."""
    finish = PostgresStore._finish

    def forks(*given):
        child = os.fork()
        if not child:
            raise SystemExit
        os.waitpid(child, 0)
        return finish(*given)

    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_finish", forks)
        try:
            with ledger.batch() as batch:
                reservation = batch.charge(TENTH, {})
        finally:
            if os.getpid() != parent:
                os._exit(0)
    assert reservation.seq == 2
    assert ledger.verify() == []


# Roles


@pytest.fixture
def analyst_role(other):
    """A role that may do nothing yet."""
    name = ibis.util.gen_name("privmax_analyst")
    other.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    yield name
    other.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))


@pytest.fixture
def analyst(ledger, url, analyst_role):
    """A URL of that role, and its name."""
    return re.sub("//[^@]*@", f"//{analyst_role}@", url), analyst_role


FUNCTIONS = "GRANT EXECUTE ON FUNCTION privmax_lock, privmax_append TO {}"


def test_a_role_may_do_what_it_was_granted(ledger, analyst, other):
    where, name = analyst
    refused("does not let this user do that: it needs SELECT on", lambda: Ledger(where, "sales"))
    role = sql.Identifier(name)
    other.execute(sql.SQL("GRANT SELECT ON privmax_events, privmax_ledgers TO {}").format(role))
    with Ledger(where, "sales") as reader:
        assert reader.verify() == []
        refused("does not let this user do that", lambda: reader.charge(TENTH, {}))
    other.execute(sql.SQL(FUNCTIONS).format(role))
    with Ledger(where, "sales") as writer:
        assert writer.charge(TENTH, {}).record(1) == 1
        refused(
            "does not let this user do that", lambda: Ledger.create(where, "new", budget=BUDGET)
        )
    with psycopg.connect(where, autocommit=True) as plain:
        for statement in (
            "INSERT INTO privmax_events SELECT * FROM privmax_events",
            "UPDATE privmax_ledgers SET seq = 1",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(statement)
    assert {event.who for event in ledger.history()} == {ledger.who, name}
    assert ledger.verify() == []


# Forgeries


def forged(
    connection, *, change=lambda totals: None, price="1/10", hash=None, ledger="sales",
    write=canonical, **columns,
):  # fmt: skip
    """An event after the last, with a right hash, through the function that everybody uses."""
    found = connection.execute(
        f"SELECT {COLUMNS} FROM privmax_events WHERE ledger = %s ORDER BY seq DESC LIMIT 1",
        [ledger],
    ).fetchone()
    last = EventRow(*found)
    body = {"price": price_json(Charge(Privacy(price))), "what": {}}
    body = columns.pop("body", body)
    totals = {"whole": json.loads(last.totals)["whole"]}
    change(totals)
    given = {"kind": "reserved", "request": "forged", "account": None, **columns}
    row = seal(
        last.hash,
        ledger,
        last._replace(seq=last.seq + 1, body=canonical(body), totals=write(totals), **given),
    )
    row = row if hash is None else row._replace(hash=hash)
    holes = ", ".join(["%s"] * (1 + len(row)))
    connection.execute(f"SELECT privmax_append({holes})", [ledger, *row])


def priced(**changes):
    """What a charge of 1/10 says, but for some of it."""
    return {"price": {**price_json(TENTH), **changes}, "what": {}}


def spent(epsilon, part="spent"):
    return lambda totals: totals["whole"][part].update(epsilon=epsilon)


def budget(epsilon):
    return lambda totals: totals["whole"]["budget"].update(epsilon=epsilon)


@pytest.mark.parametrize(
    ("told", "event"),
    [
        ("totals follow from those before", {}),
        ("totals follow from those before", {"change": spent("3/20")}),
        ("no more is spent than was granted", {"price": "50", "change": spent("501/10")}),
        (
            "totals follow from those before",
            {"change": lambda totals: (spent("1/5")(totals), budget("9")(totals))},
        ),
        (
            "totals follow from those before",
            {
                "kind": "granted",
                "request": None,
                "change": budget("2"),
                "body": {"more": {"epsilon": "1/2", "delta": "0"}, "why": "x"},
            },
        ),
        (
            "totals follow from those before",
            {"kind": "released", "request": "a", "change": spent("0"), "body": {"answer": 1}},
        ),
        (
            "is of whoever was charged",
            {"kind": "released", "request": "a", "who": "eve", "body": {"answer": 1}},
        ),
        (
            "is of whoever was charged",
            {"kind": "released", "request": "none", "body": {"answer": 1}},
        ),
        ("the hash of an event", {"change": spent("1/5"), "hash": "0" * 64}),
        ("there is no such event", {"kind": "gift", "request": None, "body": {}}),
        ("there is no such event", {"change": spent("1/5"), "request": None}),
        ("an account is opened once", {"change": spent("1/5"), "account": "eve"}),
        ("the form of its kind", {"body": priced(epsilon="-1/10"), "change": spent("0")}),
        ("the form of its kind", {"body": priced(epsilon="0/0"), "change": spent("0/0")}),
        (
            "the form of its kind",
            {
                "kind": "granted",
                "request": None,
                "change": budget("1/2"),
                "body": {"more": {"epsilon": "-1/2", "delta": "0"}, "why": "x"},
            },
        ),
        ("the form of its kind", {"body": priced(ranged=1), "change": spent("1/5")}),
        ("totals are written in one way", {"change": spent("0.2")}),
        ("totals are written in one way", {"change": spent("1\x005")}),
    ],
)
def test_the_database_refuses_what_is_false(ledger, other, told, event):
    ledger.charge(TENTH, {}, request="a")
    with pytest.raises(psycopg.errors.RaiseException, match=told):
        forged(other, **event)
    forged(other, change=spent("1/5"))  # a right one is taken
    assert ledger.charge(TENTH, {}).seq == 4
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "write",
    [
        lambda totals: canonical(totals).replace('"whole":', '"whole" :'),
        lambda totals: canonical({"a": {"whole": 1}, **totals}),
    ],
)
def test_totals_are_written_so_that_the_database_finds_its_way(ledger, other, write):
    """Otherwise nobody could charge any more."""
    ledger.charge(TENTH, {})
    with pytest.raises(psycopg.Error):
        forged(other, change=spent("1/5"), write=write)
    assert ledger.charge(TENTH, {}).seq == 3


@pytest.mark.parametrize("changes", [{"neighbors": "friends"}, {"unit": ""}, {"unit": ["user"]}])
def test_the_first_charge_fixes_nothing_that_privmax_does_not_know(ledger, other, changes):
    def change(totals):
        totals["whole"] |= {"neighbors": "add-remove", **changes}
        totals["whole"]["spent"]["epsilon"] = "1/10"

    with pytest.raises(psycopg.errors.RaiseException, match="the form of its kind"):
        forged(other, body=priced(**changes), change=change)
    assert ledger.charge(TENTH, {}).seq == 2


def test_the_database_takes_no_charge_that_leaves_out_the_unit_of_others(ledger, other):
    user = Charge(Privacy("1/10"), unit="user")
    ledger.charge(user, {})
    with pytest.raises(LedgerError, match="does not say what the privacy cost hides"):
        ledger.charge(TENTH, {})
    with pytest.raises(psycopg.errors.RaiseException, match="totals follow from those before"):
        forged(other, body=priced(), change=spent("1/5"))
    assert ledger.charge(user, {}).seq == 3
    assert ledger.verify() == []


def test_the_database_counts_the_prices_that_distributions_are_made_of(url, other):
    """Who empties the tally with one event, and adds a right one, would else be given it all."""
    with Ledger.create(url, "many", budget=Privacy(9, "1e-5"), rule="pld") as ledger:
        for number in range(40):  # some are counted at the next higher one
            ledger.charge(Charge(Privacy(Fraction(1 + 7 * number % 41, 1000))), {})
        (last,) = list(ledger.history())[-1:]
        tally = last.totals["whole"]["state"]["tally"]
        assert len(tally) == 32
        sums = privacy_of(last.totals["whole"]["state"])

        def emptied(tally):
            def change(totals):
                total = sums.epsilon + Fraction(1, 10)
                totals["whole"]["spent"]["epsilon"] = str(total)
                totals["whole"]["state"] |= {"epsilon": str(total), "tally": tally}

            return change

        for forgery in ({}, {"820": 1}, {**tally, "820": 1}):
            with pytest.raises(psycopg.errors.RaiseException, match="totals follow"):
                forged(other, ledger="many", change=emptied(forgery))
        ledger.charge(TENTH, {})
        assert ledger.verify() == []


RHO = Charge(Privacy(1, "1e-6"), rho=Fraction(1, 50))


def by_rho(**changes):
    """The totals after a charge of RHO to a ledger of the rule zcdp, but for some of the state."""

    def change(totals):
        whole = totals["whole"]
        state = {"epsilon": "1", "tally": "1/50", "route": "tally", **changes}
        state = {name: text for name, text in state.items() if text is not None}
        whole |= {"neighbors": "add-remove", "state": whole["state"] | state}
        whole["spent"] = {"epsilon": "2", "delta": "1/200000"}

    return change


@pytest.mark.parametrize(
    ("body", "change"),
    [
        pytest.param({"rho": "-1/50"}, by_rho(tally="-1/50"), id="negative"),
        pytest.param({"rho": "-1/50"}, by_rho(), id="negative, counted as if it were not"),
        pytest.param({"rho": "1/0"}, by_rho(tally="1/0"), id="not a number"),
        pytest.param({"rho": None}, by_rho(), id="none"),
        pytest.param({"rho": 1}, by_rho(tally="1"), id="not text"),
        pytest.param({}, by_rho(tally="0"), id="not counted"),
        pytest.param({}, by_rho(tally="1/51"), id="counted too low"),
        pytest.param({}, by_rho(tally=None), id="no tally"),
        pytest.param({}, by_rho(epsilon="0"), id="no sum"),
        pytest.param({}, by_rho(route=None), id="its delta forgotten"),
        pytest.param({}, by_rho(delta="1/1000000"), id="its delta counted, too"),
    ],
)
def test_the_database_counts_rhos(url, other, body, change):
    """That a rho is as large as the release needs nobody can check."""
    with Ledger.create(url, "gauss", budget=Privacy(9, "1e-5"), rule="zcdp") as ledger:
        told = "the form of its kind" if body else "totals follow from those before"
        body = {"price": {**price_json(RHO), **body}, "what": {}}
        with pytest.raises(psycopg.errors.RaiseException, match=told):
            forged(other, ledger="gauss", body=body, change=change)
        forged(other, ledger="gauss", body={"price": price_json(RHO), "what": {}}, change=by_rho())
        assert [fault.what for fault in ledger.verify()] == [
            "the charges do not add up to what it records as spent of the ledger"  # 2 is too much
        ]


def without_route(state):
    del state["route"]


@pytest.mark.parametrize(
    "change",
    [
        without_route,
        lambda state: state.update(route="sum"),
        lambda state: state.update(tally="1/200"),
        lambda state: state.update(tally="05/200"),
        lambda state: state.update(slack="1/2"),
    ],
    ids=["no route", "another route", "less", "another text", "another slack"],
)
@pytest.mark.parametrize("part", ["whole", "account"])
@pytest.mark.parametrize("kind", ["reserved", "released"])
def test_what_comes_after_a_rho_keeps_its_sums(url, other, change, part, kind):
    with Ledger.create(url, "gauss", budget=Privacy(9, "1e-5"), rule="zcdp") as ledger:
        ledger.open_account("ann", Privacy(9, "1e-5"))
        ledger.charge(RHO, {}, request="open", account="ann")
        text = other.execute("SELECT totals FROM privmax_events ORDER BY seq DESC LIMIT 1")
        body = {"price": price_json(TENTH), "what": {}} if kind == "reserved" else {"answer": 1}
        right = after(RULES["zcdp"], kind, body, totals_of(text.fetchone()[0])).as_json()

        def replace(totals):
            totals.update(json.loads(json.dumps(right)))

        def falsify(totals):
            replace(totals)
            change(totals[part]["state"])

        event = {"ledger": "gauss", "kind": kind, "body": body, "account": "ann"}
        event["request"] = "forged" if kind == "reserved" else "open"
        with pytest.raises(psycopg.errors.RaiseException, match="totals"):
            forged(other, change=falsify, **event)
        forged(other, change=replace, **event)
        assert ledger.verify() == []


@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_the_database_adds_rhos_as_privmax_does(url, rule):
    with Ledger.create(url, f"rhos {rule}", budget=Privacy(60, "1/2"), rule=rule) as ledger:
        ledger.open_account("ann", Privacy(50, "1/3"))
        ledger.open_account("no delta", Privacy(50))
        for rho in ("1/50", "0", f"1/{7**90}", "3"):
            price = Charge(Privacy(1, "1e-6"), rho=Fraction(rho))
            ledger.charge(price, {"rho": "-"}).record(1)
            ledger.charge(price, {}, account="ann")
            ledger.charge(Charge(Privacy("1/9"), rho=Fraction(rho)), {}, account="no delta")
            ledger.charge(TENTH, {})
        assert ledger.verify() == []


def test_functions_of_an_earlier_version_are_replaced_by_their_owner(url, other):
    with Ledger.create(url, "gauss", budget=Privacy(9, "1e-5"), rule="zcdp"):
        other.execute("DROP FUNCTION privmax_states_rho")  # as there was none
    with Ledger(url, "gauss") as ledger:
        ledger.charge(RHO, {})
        assert ledger.verify() == []


def test_functions_of_an_earlier_version_are_named_to_others(url, other, analyst_role):
    """Who does not own the tables cannot replace them: a rho is refused, all else goes on."""
    Ledger.create(url, "gauss", budget=Privacy(9, "1e-5"), rule="zcdp").close()
    older = CHECKS.replace("privmax_states_rho(old->'state', price)", "false")
    other.execute(f"{older}; DROP FUNCTION privmax_states_rho")
    role = sql.Identifier(analyst_role)
    other.execute(sql.SQL("GRANT SELECT ON privmax_events, privmax_ledgers TO {}").format(role))
    other.execute(sql.SQL(FUNCTIONS).format(role))
    where = re.sub("//[^@]*@", f"//{analyst_role}@", url)
    with Ledger(where, "gauss") as ledger:
        refused("functions are those of an earlier privmax", lambda: ledger.charge(RHO, {}))
        ledger.charge(TENTH, {}).record(1)
        with Ledger(url, "gauss") as owner:
            owner.charge(RHO, {})
        ledger.charge(RHO, {}).record(1)
        assert ledger.verify() == []
    with Ledger(where, "gauss") as ledger:
        assert ledger.charge(RHO, {}).record(1) == 1


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
@pytest.mark.parametrize("name", ["epsilon", "delta", "rho"])
def test_the_database_refuses_numbers_that_are_too_long_to_be_read(url, other, rule, name):
    """Somebody with the rights of an analyst would stop the ledger with one."""
    long = f"0/{'9' * 4301}"
    with Ledger.create(url, "long", budget=Privacy(9, "1e-5"), rule=rule) as ledger:
        ledger.charge(Charge(Privacy(0), rho=Fraction(0)), {})
        body = {
            "price": {**price_json(Charge(Privacy(0), rho=Fraction(0))), name: long},
            "what": {},
        }
        with pytest.raises(psycopg.errors.RaiseException, match="the form of its kind"):
            forged(other, ledger="long", body=body)
        body["price"][name] = f"0/{'9' * 4300}"
        forged(other, ledger="long", body=body, request="not too long")
        ledger.charge(TENTH, {})
        assert ledger.verify() == []


def test_nothing_is_built_on_a_charge_that_its_owner_wrote_too_cheap(ledger, url, other):
    ledger.charge(TENTH, {})
    other.execute("ALTER TABLE privmax_events DISABLE TRIGGER privmax_events_check")
    forged(other)  # nothing more is spent
    told = "Event 3 of the ledger 'sales' does not follow from the events before it"
    refused(told, lambda: ledger.charge(TENTH, {}))
    with Ledger(url, "sales") as handle:
        refused(told, lambda: handle.charge(TENTH, {}))
    assert [(fault.seq, "do not add up" in fault.what) for fault in ledger.verify()] == [(3, True)]


@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_the_database_adds_as_privmax_does(url, rule):
    """Each of these would be refused if one digit of a sum were another."""
    with Ledger.create(url, f"sums ☃ 𝔸 {rule}", budget=Privacy(60, "1/2"), rule=rule) as ledger:
        ledger.open_account("ånn", Privacy(50, "1/3"))
        for n, (epsilon, delta) in enumerate(
            [
                ("1/3", "0"),
                ("1/7", f"1/{3**50}"),
                (f"{10**40}/{7**60}", f"1/{7**90}"),
                ("0", "0"),
                ("5", "1e-9"),
            ]
        ):
            price = Charge(Privacy(epsilon, delta), bounded_range=n % 2 == 0, unit="usér")
            ledger.charge(price, {"x": "\\u0000 \0 \ud800 𝔸"}, request=f"r☃{n}").record("\0𝔸\x7f")
            ledger.charge(price, {}, account="ånn")
        ledger.grant(Privacy("1/9", "1/9"), why="more 𝔸", account="ånn")
        ledger.grant(Privacy("1/11", "8/9"), why="more")
        ledger.charge(replace(TENTH, unit="usér"), {}, account="ånn")
        assert ledger.verify() == []


def test_tables_of_an_older_privmax_are_given_their_checks_by_their_owner(
    url, other, analyst_role, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr("privmax.ledger.postgres.CHECKS", "SELECT 1")
        patch.setattr("privmax.ledger.postgres.PostgresStore._may_only_insert", lambda _: True)
        Ledger.create(url, "sales", budget=BUDGET).close()
    rights = (
        "GRANT SELECT, INSERT ON privmax_events TO {0}; GRANT SELECT, UPDATE ON "
        "privmax_ledgers TO {0}"
    )
    other.execute(sql.SQL(rights).format(sql.Identifier(analyst_role)))
    with (
        Ledger(re.sub("//[^@]*@", f"//{analyst_role}@", url), "sales") as analyst,
        Ledger(url, "sales") as owner,
    ):
        assert analyst.charge(TENTH, {}).record(1) == 1  # in the old way
        assert owner.charge(TENTH, {}).seq == 4
        with pytest.raises(psycopg.errors.RaiseException, match="totals follow"):
            forged(other)
        assert (
            analyst.charge(TENTH, {}).seq == 5
        )  # its right to insert is for the owner to take away
        assert owner.verify() == []
