"""Charges, answers, accounts and grants on a SQLite file; what `verify` finds."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import re
import sqlite3
import tempfile
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmax.errors import BudgetError, LedgerError, ParameterError
from privmax.ledger import Charge, Event, Fault, Ledger, Reservation
from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import EventRow, canonical, seal
from privmax.ledger.replay import totals_of
from privmax.ledger.rows import COLUMNS
from privmax.ledger.rules import BITS
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

slow = settings(deadline=None, max_examples=25)  # a busy machine is no failure
TENTH = Charge(Privacy("1/10"))
WHAT = {"mechanism": "Exponential", "k": 3}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(file):
    with Ledger.create(file, "sales", budget=Privacy(1, "1e-5"), who="ann") as made:
        yield made


# Opening


def test_a_budget_makes_a_ledger_and_opens_it_again(file):
    with Ledger(file, "sales", Privacy(3, 1e-5)) as first:
        first.charge(TENTH, WHAT)
    with Ledger(file, "sales", Privacy(3, 1e-5)) as again, Ledger(file, "sales") as bare:
        assert again.spent == bare.spent == Privacy("1/10")
        assert (bare.name, bare.rule, bare.where, bare.budget) == (
            "sales",
            "basic",
            str(file),
            Privacy(3, 1e-5),
        )
        assert repr(bare) == f"Ledger({str(file)!r}, 'sales', rule='basic')"


def test_the_same_budget_may_be_written_as_text_or_float(file):
    Ledger(file, budget=Privacy(1, 1e-5)).close()
    Ledger(file, budget=Privacy("1", "1e-5")).close()


@pytest.mark.parametrize(
    ("budget", "rule", "told"),
    [
        (
            Privacy(2, 1e-5),
            None,
            "was created with a budget of epsilon 1, delta 1e-05, not epsilon 2, delta 1e-05",
        ),
        (Privacy(1, 1e-6), None, "was created with a budget"),
        (Privacy(1, 1e-5), "zcdp", "was created with the rule 'basic', not 'zcdp'"),
        (None, "zcdp", "was created with the rule 'basic', not 'zcdp'"),
    ],
)
def test_another_budget_or_rule_is_refused(file, budget, rule, told):
    Ledger(file, budget=Privacy(1, 1e-5)).close()
    with pytest.raises(LedgerError, match=re.escape(told)):
        Ledger(file, "default", budget, rule=rule)


def test_a_later_grant_does_not_change_the_budget_to_open_with(ledger, file):
    ledger.grant(Privacy(1), why="second quarter")
    with Ledger(file, "sales", Privacy(1, "1e-5")) as again:
        assert again.budget == Privacy(2, "1e-5")


def test_a_ledger_that_is_not_there_is_not_made_without_a_budget(ledger, file, tmp_path):
    with pytest.raises(
        LedgerError, match=r"has no ledger 'other'\. It has 'sales'\. Create it with Ledger\.create"
    ):
        Ledger(file, "other")
    with pytest.raises(LedgerError, match="no such file"):
        Ledger(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_name_is_taken_once(ledger, file):
    with pytest.raises(LedgerError, match="already has a ledger 'sales'"):
        Ledger.create(file, "sales", budget=Privacy(1, "1e-5"))
    with Ledger.create(file, "other", budget=Privacy(7)) as other:
        other.charge(Charge(Privacy(5)), WHAT, request="a")
        assert ledger.spent == Privacy(0)
        assert ledger.charge(TENTH, WHAT, request="a").seq == 2  # request ids belong to one ledger
        assert other.verify() == ledger.verify() == []


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 201, "\ud800", 3, None])
def test_a_name_is_printable_text(file, name):
    with pytest.raises(ParameterError, match="name="):
        Ledger(file, name, Privacy(1))
    assert not file.exists()


@pytest.mark.parametrize(
    "where",
    [
        "mysql://root:secret@host/x",
        "postgresql+psycopg://root:secret@host/x",
        "PostgreSQL://root:secret@host/x",
        " postgresql://root:secret@host/x",
        "jdbc:postgresql://host/x?password=secret",
        "root:secret://host/x",
        "postgresql:/root:secret@host/x",
        "postgresql:root:sec/ret@host/secret",
        "postgres:/host/x?password=secret",
        "mysql:/root:secret@host/x",
        "root:secret@host/x",
        "r:secret@host/x",
        "host=localhost dbname=x user=root password=secret",
        "password = 'secret' host=localhost",
        "sslmode=require PASSWORD=secret host=localhost",
        "target_session_attrs=any\nsslpassword=secret",
        "postgresql//root:secret@host/x",
        "postgresql//root:sec/ret@host/secret",
        "//root:secret@host/x",
        "//host/x?password=secret",
        "/host/x?sslmode=require&password=secret",
        "root/secret@host",
        "root\\secret@host",
        "jdbc:oracle:thin:root/secret@host",
        "jdbc:sqlserver;password=secret",
        "Server=host;Uid=root;Pwd=secret",
        "PGPASSWORD=secret",
        "host/x;Password = secret",
        Path("postgresql://root:secret@host/x"),
        Path("//root:secret@host/x"),
        b"postgresql://root:secret@host/x",
        "a\0b",
        "\ud800.db",
        "",
        3,
        None,
    ],
    ids=str,
)
def test_a_place_is_a_file_or_a_postgresql_url(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (lambda: Ledger(where, "x"), lambda: Ledger.create(where, "x", budget=Privacy(1))):
        with pytest.raises(
            ParameterError, match=r"where=.*it must be a file or the URL of a PostgreSQL"
        ) as caught:
            use()
        assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "postgres.db",
        "a@b.db",
        "a:b.db",
        "host.db",
        "n=1.db",
        "./host=a.db",
        "./a:b@c.db",
        "./postgres:a.db",
    ],
)
def test_a_file_may_have_a_name_that_looks_a_little_like_a_database(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Ledger(where, "x", Privacy(1)).close()
    assert Path(where).is_file()


def test_a_file_that_is_there_is_a_file_whatever_it_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ann").mkdir()
    Ledger("./ann/budget@home.db", "x", Privacy(1)).close()
    with Ledger("ann/budget@home.db", "x") as ledger:
        assert ledger.spent == Privacy(0)


@pytest.mark.parametrize("where", ["x" * 5000, "a/" * 3000 + "x", "none/" + "x" * 300])
def test_a_path_that_is_too_long_is_told(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (lambda: Ledger(where), lambda: Ledger(where, "x", Privacy(1))):
        with pytest.raises(
            LedgerError, match=r"no such file|does not exist|cannot be created: File name too long"
        ):
            use()


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX")
def test_a_file_name_need_not_be_text(tmp_path):
    where = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")
    with Ledger.create(where, budget=Privacy(1)) as ledger:
        ledger.charge(TENTH, WHAT)
        assert ledger.where.encode().endswith(b"/\\udcff.db")
    with Ledger(Path(where)) as ledger, pickle.loads(pickle.dumps(ledger)) as again:
        assert again.spent == Privacy("1/10")


@pytest.mark.parametrize("rule", ["advanced", None, 3])
def test_a_rule_has_a_name(file, rule):
    with pytest.raises(ParameterError, match="rule="):
        Ledger.create(file, budget=Privacy(1), rule=rule)
    assert not file.exists()


def test_what_is_not_a_price_is_refused(ledger):
    for wrong in (
        lambda: ledger.charge(Privacy(1), WHAT),
        lambda: ledger.fits(1),
        lambda: ledger.grant(1, why="x"),
    ):
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(ParameterError, match="budget="):
        Ledger(ledger.where, "x", 3)
    assert ledger.spent == Privacy(0)


# Charging


def test_a_charge_is_spent_and_a_budget_can_be_spent_to_the_end(ledger):
    for n in range(10):
        assert ledger.fits(TENTH)
        assert ledger.charge(TENTH, WHAT).seq == n + 2
    assert (ledger.spent, ledger.remaining) == (Privacy(1), Privacy(0, "1e-5"))
    assert not ledger.fits(TENTH)


def test_what_does_not_fit_is_told_and_not_written(ledger):
    ledger.charge(Charge(Privacy("0.75")), WHAT)
    with pytest.raises(BudgetError) as caught:
        ledger.charge(Charge(Privacy("0.5", "1e-6")), WHAT, request="big")
    error = caught.value
    assert (error.cost, error.left, error.account) == (
        Privacy("0.5", "1e-6"),
        Privacy("0.25", "1e-5"),
        None,
    )
    assert str(error) == (
        "The budget does not allow it: the privacy cost is epsilon 0.5, delta 1e-06, and the "
        "ledger "
        "'sales' has epsilon "
        "0.25, delta 1e-05 left. Nothing was charged. Ask for less, or have the budget raised."
    )
    assert [event.kind for event in ledger.history()] == ["created", "reserved"]
    assert ledger.charge(TENTH, WHAT, request="big").seq == 3  # a refused id is not used up


@pytest.mark.slow
def test_a_refusal_rounds_the_cost_up_and_the_rest_down(file):
    with Ledger.create(file, budget=Privacy(2, "1e-5"), rule="zcdp") as ledger:
        for _ in range(30):
            ledger.charge(Charge(Privacy("1/10"), bounded_range=True), WHAT)
        with pytest.raises(BudgetError) as caught:
            ledger.charge(Charge(Privacy(5, "1/300000")), WHAT)
    cost, left = caught.value.cost, caught.value.left
    assert min(cost.epsilon.denominator, left.epsilon.denominator) > 10**9  # these are exact
    numbers = re.findall(r"(?:epsilon|delta) ([^\s,]+)", str(caught.value))
    assert max(map(len, numbers)) <= len("1.23456e-78")
    shown = list(map(Fraction, numbers))
    for more, less in zip(
        [*shown[:2], left.epsilon, left.delta], [cost.epsilon, cost.delta, *shown[2:]], strict=True
    ):
        assert 0 <= more - less <= more / 10**5


def test_delta_is_a_budget_of_its_own(ledger):
    with pytest.raises(BudgetError):
        ledger.charge(Charge(Privacy("1/100", "2e-5")), WHAT)
    assert not ledger.fits(Charge(Privacy(0, "2e-5")))
    assert ledger.fits(Charge(Privacy(0, "1e-5")))


@pytest.mark.parametrize(
    "clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_a_budget_error_survives_the_trip_between_processes(clone):
    twin = clone(BudgetError("Too much.", Privacy(1), Privacy(0), "ann"))
    assert (str(twin), twin.cost, twin.left, twin.account) == (
        "Too much.",
        Privacy(1),
        Privacy(0),
        "ann",
    )


def test_an_answer_is_recorded_once_and_given_again(ledger):
    first = ledger.charge(TENTH, WHAT, request="r")
    assert (first.recorded, first.answer) == (False, None)
    assert first.record({"items": ("a", Fraction(1, 3)), "none": None}) == {
        "items": ["a", "1/3"],
        "none": None,
    }
    again = ledger.charge(TENTH, WHAT, request="r")
    assert (again.recorded, again.seq, again.request) == (True, first.seq, "r")
    assert again.answer == first.answer == {"items": ["a", "1/3"], "none": None}
    assert again.record({"items": "another"}) == first.answer
    assert ledger.spent == Privacy("1/10")
    assert [event.kind for event in ledger.history()] == ["created", "reserved", "released"]


def test_no_answer_is_an_answer(ledger):
    assert ledger.charge(TENTH, WHAT, request="r").record(None) is None
    again = ledger.charge(TENTH, WHAT, request="r")
    assert (again.recorded, again.answer) == (True, None)


def test_the_first_of_two_who_answer_the_same_request_wins(ledger, file):
    with Ledger(file, "sales", who="ann") as other:
        one, two = ledger.charge(TENTH, WHAT, request="r"), other.charge(TENTH, WHAT, request="r")
        assert not one.recorded
        assert not two.recorded
        assert two.record("second") == "second"
        assert one.record("first") == "second"
        assert other.spent == Privacy("1/10")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"price": Charge(Privacy("1/5"))}, "different privacy cost"),
        ({"price": Charge(Privacy("1/10"), bounded_range=True)}, "different privacy cost"),
        ({"what": {**WHAT, "k": 4}}, "different question"),
        ({"account": "ann"}, "different account"),
        (
            {"account": "ann", "what": {}},
            r"different question \(k, mechanism\) and a different account",
        ),
    ],
)
def test_a_request_id_stands_for_one_request(ledger, change, told):
    ledger.open_account("ann", Privacy(1, "1e-5"))
    ledger.charge(TENTH, WHAT, request="r").record(1)
    given_ = {"price": TENTH, "what": WHAT, **change}
    with pytest.raises(LedgerError, match=f"was charged before, at event 3, with a {told}"):
        ledger.charge(given_.pop("price"), given_.pop("what"), request="r", **given_)
    assert ledger.spent == Privacy("1/10")


def test_a_retry_is_given_its_answer_when_nothing_is_left(ledger):
    whole = Charge(Privacy(1))
    ledger.charge(whole, WHAT, request="r").record(7)
    assert ledger.charge(whole, WHAT, request="r").answer == 7


def test_without_an_id_every_charge_is_a_new_one(ledger):
    requests = {ledger.charge(TENTH, WHAT).request for _ in range(3)}
    assert len(requests) == 3
    assert ledger.spent == Privacy("3/10")


@pytest.mark.parametrize(
    "answer", [float("nan"), float("inf"), {1: 2}, {"a"}, b"x", object(), [object()]]
)
def test_an_answer_that_is_not_json_is_refused_by_its_type(ledger, answer):
    reservation = ledger.charge(TENTH, {"secret": 1})
    with pytest.raises(ParameterError, match="answer=<class") as caught:
        reservation.record(answer)
    assert repr(answer) not in str(caught.value)
    assert not reservation.recorded
    assert reservation.record("fine") == "fine"


def test_what_runs_must_be_a_mapping_of_json(ledger):
    for what in ([1], {"x": object()}, {3: 1}):
        with pytest.raises(ParameterError, match="what="):
            ledger.charge(TENTH, what)
    assert ledger.spent == Privacy(0)


def test_names_and_answers_are_data_never_sql(ledger):
    nasty = "'; DROP TABLE privmax_events; -- ? %s \" \\ ☃"
    ledger.open_account(nasty, Privacy(1), why=nasty)
    reservation = ledger.charge(TENTH, {nasty: nasty}, request=nasty, account=nasty)
    assert reservation.record([nasty, "\0", "\ud800"]) == [nasty, "\0", "\ud800"]
    assert ledger.charge(TENTH, {nasty: nasty}, request=nasty, account=nasty).recorded
    assert ledger.accounts() == {nasty: (Privacy(1), Privacy("1/10"))}
    assert ledger.verify() == []


def test_nothing_released_is_in_a_repr(ledger):
    reservation = ledger.charge(TENTH, WHAT, request="r")
    reservation.record("zorblax")
    assert repr(reservation) == "Reservation(request='r', seq=2, recorded=True)"


# Accounts and grants


def test_a_charge_on_an_account_must_fit_into_it_and_into_the_whole(ledger):
    ledger.open_account("ann", Privacy("0.3", "1e-6"), why="her study")
    ledger.open_account("bob", Privacy(5, "1e-5"))
    ledger.charge(Charge(Privacy("0.2")), WHAT, account="ann")
    with pytest.raises(
        BudgetError, match=r"the account 'ann' of the ledger 'sales' has epsilon 0\.1"
    ) as caught:
        ledger.charge(Charge(Privacy("0.2")), WHAT, account="ann")
    assert caught.value.account == "ann"
    with pytest.raises(BudgetError, match=r"the ledger 'sales' has epsilon 0\.8") as caught:
        ledger.charge(Charge(Privacy("0.9")), WHAT, account="bob")
    assert caught.value.account is None
    assert not ledger.fits(Charge(Privacy("0.2")), "ann")
    assert ledger.fits(Charge(Privacy("0.2")), "bob")
    assert ledger.fits(Charge(Privacy("0.2")))
    assert ledger.accounts() == {
        "ann": (Privacy("0.3", "1e-6"), Privacy("0.2")),
        "bob": (Privacy(5, "1e-5"), Privacy(0)),
    }
    ledger.charge(Charge(Privacy("0.7")), WHAT, account="bob").record("x")
    assert ledger.spent == Privacy("0.9")
    assert ledger.verify() == []


def test_an_account_is_opened_once_and_before_it_is_charged(ledger):
    for use in (
        lambda: ledger.charge(TENTH, WHAT, account="ann"),
        lambda: ledger.fits(TENTH, "ann"),
    ):
        with pytest.raises(LedgerError, match=r"no account 'ann'\. Open it with open_account"):
            use()
    with pytest.raises(LedgerError, match="no account 'ann'"):
        ledger.grant(Privacy(1), why="x", account="ann")
    ledger.open_account("ann", Privacy(1))
    with pytest.raises(LedgerError, match="already has an account 'ann'"):
        ledger.open_account("ann", Privacy(9))
    assert ledger.accounts() == {"ann": (Privacy(1), Privacy(0))}


def test_a_grant_is_a_recorded_act(ledger):
    ledger.open_account("ann", Privacy("0.1"))
    ledger.grant(Privacy(1, "1e-6"), why="the board agreed")
    ledger.grant(Privacy(2), why="a longer study", account="ann")
    assert ledger.budget == Privacy(2, Fraction("1e-5") + Fraction("1e-6"))
    assert ledger.accounts() == {"ann": (Privacy("2.1"), Privacy(0))}
    *_, whole, own = ledger.history()
    assert (whole.kind, whole.who, whole.account) == ("granted", "ann", None)
    assert whole.body == {"more": {"epsilon": "1", "delta": "1/1000000"}, "why": "the board agreed"}
    assert (own.account, own.body["why"]) == ("ann", "a longer study")
    assert ledger.verify() == []
    with pytest.raises(ParameterError, match="why="):
        ledger.grant(Privacy(1), why="")


# History


def test_the_history_says_what_happened(ledger):
    ledger.charge(
        Charge(Privacy("1/10", "1e-6"), bounded_range=True),
        {**WHAT, "epsilon": Fraction(1, 10)},
        request="r",
    ).record(5)
    created, reserved, released = ledger.history()
    assert isinstance(created, Event)
    assert (created.seq, created.kind, created.who) == (1, "created", "ann")
    assert {key: created.body[key] for key in ("name", "rule", "schema")} == {
        "name": "sales",
        "rule": "basic",
        "schema": 1,
    }
    assert re.fullmatch("[0-9a-f]{32}", created.body["id"])
    assert reserved.body == {
        "price": {
            "epsilon": "1/10",
            "delta": "1/1000000",
            "ranged": True,
            "neighbors": "add-remove",
        },
        "what": {"mechanism": "Exponential", "k": 3, "epsilon": "1/10"},
    }
    assert (released.seq, released.request, released.body) == (3, "r", {"answer": 5})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", released.when)
    assert (reserved.budget, reserved.spent) == (Privacy(1, "1e-5"), Privacy("1/10", "1e-6"))
    assert released.totals == reserved.totals


def test_a_long_history_is_read_in_pages(ledger, monkeypatch):
    monkeypatch.setattr("privmax.ledger.reading.PAGE", 4)
    for n in range(8):
        ledger.charge(Charge(Privacy("1/100")), {"n": n})
    assert [event.seq for event in ledger.history()] == list(range(1, 10))
    assert ledger.verify() == []


def test_a_clock_that_goes_back_is_written_down_and_no_fault(ledger, monkeypatch):
    times = iter(["2030-01-01T00:00:00.000000+00:00", "1999-01-01T00:00:00.000000+00:00"])
    monkeypatch.setattr("privmax.ledger.chain.now", lambda: next(times))
    ledger.charge(TENTH, WHAT)
    ledger.charge(TENTH, WHAT)
    assert [event.when[:4] for event in ledger.history()][1:] == ["2030", "1999"]
    assert ledger.spent == Privacy("1/5")
    assert ledger.verify() == []


# Handles


def test_two_handles_on_one_file_see_each_other(ledger, file):
    with Ledger(file, "sales", who="bob") as other:
        for n in range(10):
            (ledger, other)[n % 2].charge(TENTH, WHAT)
        for handle in (ledger, other):
            assert handle.spent == Privacy(1)
            with pytest.raises(BudgetError):
                handle.charge(TENTH, WHAT)
        assert [event.who for event in ledger.history()] == ["ann", *["ann", "bob"] * 5]
        assert ledger.verify() == []


def test_copies_and_pickles_are_handles_of_the_same_ledger(ledger):
    assert copy.deepcopy(ledger) is copy.copy(ledger) is ledger
    with pickle.loads(pickle.dumps(ledger)) as other:
        other.charge(TENTH, WHAT)
        assert other.who == "ann"
    assert ledger.spent == Privacy("1/10")


def test_a_closed_handle_opens_again_when_it_is_used(ledger):
    ledger.close()
    assert ledger.spent == Privacy(0)


def test_threads_may_share_a_handle(ledger):
    refused = []

    def spend():
        for _ in range(6):
            try:
                ledger.charge(TENTH, WHAT).record(1)
            except BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 14
    assert ledger.spent == Privacy(1)
    assert ledger.verify() == []


def _spend(handle, times):
    for _ in range(times):
        try:
            handle.charge(TENTH, WHAT).record(os.getpid())
        except BudgetError:
            break
    handle.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_handle_may_be_used_after_a_fork(ledger):
    ledger.charge(TENTH, WHAT).record("parent")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_spend, args=(ledger, 5)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert ledger.spent == Privacy(1)
    assert sum(event.kind == "released" for event in ledger.history()) == 10
    assert ledger.verify() == []


def test_a_ledger_knows_what_was_charged(ledger):
    ledger.charge(TENTH, WHAT, request="a")
    assert (ledger.knows("a"), ledger.knows("b")) == (True, False)


# What verify finds


def unlocked(file):
    """A connection of somebody who knows SQL and removes what stands in the way."""
    connection = sqlite3.connect(file, isolation_level=None)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("DROP INDEX privmax_events_request")
    return closing(connection)


def filled(file):
    made = Ledger.create(file, "sales", budget=Privacy(1, "1e-5"))
    made.open_account("ann", Privacy("1/2", "1e-5"))  # event 2
    made.charge(TENTH, WHAT, request="a", account="ann").record({"item": "x"})  # events 3, 4
    made.charge(TENTH, WHAT, request="b").record({"item": "y"})  # events 5, 6
    made.grant(Privacy(1), why="more")  # event 7
    made.charge(TENTH, WHAT, request="c", account="ann")  # event 8
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE privmax_events SET who = 'x'",
        "DELETE FROM privmax_events",
        "DELETE FROM privmax_events WHERE seq = 8",
        "UPDATE privmax_ledgers SET seq = 7",
        "UPDATE privmax_ledgers SET hash = 'x'",
        "UPDATE privmax_ledgers SET name = 'x'",
        "DELETE FROM privmax_ledgers",
        "INSERT OR REPLACE INTO privmax_ledgers VALUES ('sales', 0, '')",
        "INSERT INTO privmax_ledgers VALUES ('new', 3, '')",
        "INSERT OR REPLACE INTO privmax_events SELECT * FROM privmax_events WHERE seq = 3",
        "INSERT INTO privmax_events VALUES ('sales', 10, 'x', 'x', 'x', NULL, NULL, '{}', '{}', "
        "'x')",
    ],
)
def test_the_database_itself_refuses_to_change_what_is_written(file, statement):
    with filled(file) as ledger, closing(sqlite3.connect(file, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        assert ledger.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "column", ["kind", "moment", "who", "request", "account", "body", "totals", "hash"]
)
@pytest.mark.parametrize("seq", [1, 3, 4, 7, 8])
def test_verify_finds_a_changed_row(file, seq, column):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute(
                f"UPDATE privmax_events SET {column} = coalesce({column}, '') || ' ' WHERE seq = ?",
                [seq],
            )
        found = ledger.verify()
        assert found
        assert found[0].seq == seq
        assert {fault.seq for fault in found} <= {seq, seq + 1}


@pytest.mark.slow
@pytest.mark.parametrize("seq", range(1, 9))
def test_verify_finds_a_deleted_event(file, seq):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("DELETE FROM privmax_events WHERE seq = ?", [seq])
        assert ledger.verify()[0] == Fault(seq, "it is missing")
        assert str(ledger.verify()[0]) == f"event {seq}: it is missing"


def test_verify_finds_several_deleted_events(file):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("DELETE FROM privmax_events WHERE seq IN (4, 5, 7, 8)")
        found = ledger.verify()
        assert Fault(4, "events 4 to 5 are missing") in found
        assert Fault(7, "events 7 to 8 are missing") in found


def test_verify_finds_events_in_another_order(file):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            for old, new in ((3, 0), (5, 3), (0, 5)):
                connection.execute("UPDATE privmax_events SET seq = ? WHERE seq = ?", [new, old])
        assert {3, 5} <= {fault.seq for fault in ledger.verify()}


@pytest.mark.parametrize(("seq", "found_at"), [(4, 5), (6, 7), (8, 8)])
def test_verify_finds_an_answer_that_was_changed_together_with_its_own_hash(file, seq, found_at):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            before = connection.execute(
                "SELECT hash FROM privmax_events WHERE seq = ?", [seq - 1]
            ).fetchone()[0]
            query = f"SELECT {COLUMNS} FROM privmax_events WHERE seq = ?"
            row = EventRow(*connection.execute(query, [seq]).fetchone())
            forged = seal(before, "sales", row._replace(moment="2001-01-01T00:00:00+00:00"))
            change = "UPDATE privmax_events SET moment = ?, hash = ? WHERE seq = ?"
            connection.execute(change, [forged.moment, forged.hash, seq])
        assert [fault.seq for fault in ledger.verify()] == [found_at]


def rewritten(file, change):
    """Change rows and forge the hashes of all that follow, as somebody would who knows this
    code.
    """
    with unlocked(file) as connection:
        query = f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq"
        rows = change([EventRow(*found) for found in connection.execute(query).fetchall()])
        connection.execute("DELETE FROM privmax_events")
        last = ""
        for row in rows:
            forged = seal(last, "sales", row)
            last = forged.hash
            connection.execute(
                "INSERT INTO privmax_events VALUES ('sales', ?, ?, ?, ?, ?, ?, ?, ?, ?)", forged
            )
        connection.execute("UPDATE privmax_ledgers SET seq = ?, hash = ?", [len(rows), last])


def edited(seq, **columns):
    def change(rows):
        return [row._replace(**columns) if row.seq == seq else row for row in rows]

    return change


def recounted(seq, path, value):
    """A change of the totals of one row."""

    def change(rows):
        totals = json.loads(rows[seq - 1].totals)
        inner = totals
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return edited(seq, totals=canonical(totals))(rows)

    return change


CHEAP = canonical(
    {
        "price": {"epsilon": "1/100", "delta": "0", "ranged": False, "neighbors": "add-remove"},
        "what": WHAT,
    }
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "seq", "told"),
    [
        (
            edited(5, body=CHEAP),
            5,
            "the charges do not add up to what it records as spent of the ledger",
        ),
        (
            edited(3, body=CHEAP),
            3,
            "the charges do not add up to what it records as spent of its account",
        ),
        (recounted(5, ["whole", "spent", "epsilon"], "1/10"), 5, "the charges do not add up"),
        (recounted(8, ["account", "spent", "epsilon"], "1/10"), 8, "the charges do not add up"),
        (
            recounted(6, ["whole", "budget", "epsilon"], "9"),
            6,
            "its recorded budget does not follow from the events of the ledger",
        ),
        (
            recounted(8, ["account", "budget", "epsilon"], "9"),
            8,
            "its recorded budget does not follow from the events of its account",
        ),
        (
            edited(7, body=canonical({"more": {"epsilon": "9", "delta": "0"}, "why": "x"})),
            7,
            "its recorded budget does not follow from the events",
        ),
        (edited(4, request="z"), 4, "an answer was released without a charge"),
        (edited(6, request="a"), 6, "its request has an answer already"),
        (edited(8, request="a"), 8, "its request was charged before"),
        (edited(8, account="eve"), 8, "no event before it says to which budget it belongs"),
        (edited(5, kind="gift"), 5, "there is no such kind of event"),
        (edited(5, kind="created"), 5, "must begin with the creation"),
        (edited(1, kind="granted"), 1, "must begin with the creation"),
        (edited(5, body="[]"), 5, "its content cannot be read"),
        (edited(5, body="{"), 5, "its content cannot be read"),
        (edited(5, totals="{}"), 5, "its content cannot be read"),
        (edited(4, body='{"answer": {"item":"x"}}'), 4, "it is not in the form of events"),
    ],
)
def test_verify_finds_what_does_not_add_up_though_the_hashes_do(file, change, seq, told):
    with filled(file) as ledger:
        rewritten(file, change)
        assert [fault for fault in ledger.verify() if fault.seq == seq and told in fault.what]
        assert not [fault for fault in ledger.verify() if "hash" in fault.what]


def test_verify_names_an_event_whose_sums_are_no_numbers(file):
    with Ledger.create(file, "sales", budget=Privacy(1, "1e-5"), rule="zcdp") as ledger:
        for _ in range(2):
            ledger.charge(TENTH, WHAT)
        rewritten(file, recounted(2, ["whole", "state", "slack"], "1/0"))
        assert Fault(3, "its content cannot be read") in ledger.verify()


def test_verify_finds_a_total_above_what_was_granted(file):
    def overspend(rows):
        body = canonical(
            {
                "price": {"epsilon": "7", "delta": "0", "ranged": False, "neighbors": "add-remove"},
                "what": WHAT,
            }
        )
        totals = totals_of(rows[-1].totals)
        value = {"whole": totals.whole.as_json()}
        value["whole"]["spent"]["epsilon"] = "73/10"
        row = rows[-1]._replace(
            seq=9, request="d", account=None, body=body, totals=canonical(value)
        )
        return [*rows, row]

    with filled(file) as ledger:
        rewritten(file, overspend)
        assert ledger.verify() == [Fault(9, "more is spent than was granted of the ledger")]


def test_forged_hashes_alone_are_no_fault_here(file):
    """The mutants above are found for what they change, not for the forging."""
    with filled(file) as ledger:
        rewritten(file, lambda rows: rows)
        assert ledger.verify() == []


def test_a_ledger_whose_last_event_was_changed_charges_nothing(file):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("UPDATE privmax_events SET hash = 'x' WHERE seq = 8")
        for use in (lambda: ledger.charge(TENTH, WHAT), lambda: ledger.spent):
            with pytest.raises(
                LedgerError, match="Event 8 of the ledger 'sales' is missing or was changed"
            ):
                use()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM privmax_events WHERE seq = 8",
        "UPDATE privmax_events SET request = 'z' WHERE seq = 8",
        "UPDATE privmax_events SET hash = 'z' WHERE seq = 8",
    ],
)
def test_no_answer_is_recorded_when_its_charge_is_gone(file, statement):
    with filled(file) as ledger:
        reservation = ledger.charge(TENTH, WHAT, request="c", account="ann")
        assert reservation.seq == 8
        ledger.grant(Privacy(1), why="another event is the last")
        with unlocked(file) as connection:
            connection.execute(statement)
        with pytest.raises(
            LedgerError, match=r"request 'c', event 8 .* is gone; nothing may be released"
        ):
            reservation.record("x")
        assert not reservation.recorded
        assert [event.kind for event in ledger.history()].count("released") == 2


def test_verify_finds_a_head_that_was_moved_back(file):
    """Else the next charge would take the place of one that is spent."""
    with filled(file) as ledger:
        with unlocked(file) as connection:
            (earlier,) = connection.execute(
                "SELECT hash FROM privmax_events WHERE seq = 6"
            ).fetchone()
            connection.execute("UPDATE privmax_ledgers SET seq = 6, hash = ?", [earlier])
        assert ledger.verify() == [
            Fault(7, "it comes after the event that the database noted as the last one")
        ]


@pytest.mark.parametrize("seq", [0, -5])
def test_verify_finds_events_before_the_first(file, seq):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("UPDATE privmax_events SET seq = ? WHERE seq = 8", [seq])
        assert ledger.verify() == [
            Fault(seq, "events are numbered from 1"),
            Fault(8, "it is missing"),
        ]


@pytest.mark.parametrize("number", ["x", 7.5, b"8"])
def test_verify_finds_an_event_without_a_number(file, number):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("UPDATE privmax_events SET seq = ? WHERE seq = 8", [number])
        assert ledger.verify() == [
            Fault(0, "an event has an invalid number"),
            Fault(8, "it is missing"),
        ]


def test_a_ledger_whose_last_number_is_none_is_refused(file):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute("UPDATE privmax_ledgers SET seq = 'x'")
        for use in (ledger.verify, lambda: ledger.spent, lambda: ledger.charge(TENTH, WHAT)):
            with pytest.raises(
                LedgerError, match="no longer says which event of the ledger 'sales' is the last"
            ):
                use()


@pytest.mark.slow
@pytest.mark.parametrize("column", ["kind", "who", "request", "account", "body", "totals", "hash"])
def test_verify_names_an_event_whose_text_is_none(file, column):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute(
                f"UPDATE privmax_events SET {column} = CAST(x'ff80' AS TEXT) WHERE seq = 5"
            )
        assert ledger.verify()[0].seq == 5


@pytest.mark.parametrize("column", ["body", "totals"])
def test_verify_names_an_event_that_is_nested_too_deep(file, column):
    with filled(file) as ledger:
        rewritten(file, edited(8, **{column: "[" * 200_000 + "]" * 200_000}))
        assert ledger.verify() == [Fault(8, "its content cannot be read")]
        with pytest.raises(LedgerError, match="Event 8 of the ledger 'sales'"):
            ledger.charge(TENTH, WHAT)
        assert [event.seq for event in ledger.history() if event.fault is not None] == [8]


# What somebody appends who does without privmax

SHARE = {"epsilon": "1/10", "delta": "0"}


def appended(file, *, hash=None, change=lambda totals: None, as_is=None, **columns):
    """One more event, in SQL, by one who drops what the file itself checks. Its totals are those
    before it, changed.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for name in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        query = f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq DESC LIMIT 1"
        last = EventRow(*connection.execute(query).fetchone())
        query = f"SELECT {COLUMNS} FROM privmax_events WHERE account = ? ORDER BY seq DESC LIMIT 1"
        own = connection.execute(query, [columns.get("account")]).fetchone()
        totals = {"whole": json.loads(last.totals)["whole"]}
        if own:
            totals["account"] = json.loads(EventRow(*own).totals)["account"]
        change(totals)
        given = {"kind": "reserved", "request": "forged", "account": None, **columns}
        body = canonical(
            given.pop(
                "body", {"price": {**SHARE, "ranged": False, "neighbors": "add-remove"}, "what": {}}
            )
        )
        row = last._replace(seq=last.seq + 1, body=body, totals=as_is or canonical(totals), **given)
        forged = seal(last.hash, "sales", row)
        if hash is not None:
            forged = forged._replace(hash=hash)
        holes = ", ".join("?" * (1 + len(forged)))
        connection.execute(
            f"INSERT INTO privmax_events (ledger, {COLUMNS}) VALUES ({holes})", ["sales", *forged]
        )


def put(whose, part, **numbers):
    return lambda totals: totals[whose][part].update(numbers)


def both(*changes):
    return lambda totals: [change(totals) for change in changes]


def paid(*whose):
    """The totals after a right charge of 1/10, where nothing but 1/10 was spent before: in the
    whole and in "ann".
    """
    return both(*(put(one, "spent", epsilon="1/5") for one in whose))


def without(whose):
    return lambda totals: totals.pop(whose)


MORE = {"more": SHARE, "why": "x"}
ANEW = {"budget": SHARE, "why": "x"}


def opening(totals):
    totals["account"] = {
        "budget": SHARE,
        "spent": {"epsilon": "0", "delta": "0"},
        "state": {},
        "neighbors": None,
    }


@pytest.fixture
def pending(file):
    """A ledger of 1/10 spent by "ann", its file, and a charge of hers whose answer is not
    recorded.
    """
    with Ledger.create(file, "sales", budget=Privacy(1, "1e-5")) as ledger:
        ledger.open_account("ann", Privacy("1/2", "1e-5"))
        yield ledger, ledger.charge(TENTH, WHAT, request="a", account="ann")


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        {},
        {"change": put("whole", "spent", epsilon="3/20")},
        {"change": both(paid("whole"), put("whole", "spent", epsilon="0"))},
        {"change": both(paid("whole"), put("whole", "budget", epsilon="9"))},
        {"change": both(paid("whole"), put("whole", "state", x="1"))},
        {"change": paid("whole"), "account": "ann"},
        {"change": paid("account"), "account": "ann"},
        {"change": both(paid("whole"), without("account")), "account": "ann"},
        {"change": both(paid("whole"), opening), "account": "eve"},
        {"change": paid("whole"), "hash": "0" * 64},
        {"change": put("whole", "spent", epsilon="0"), "kind": "released"},
        {"change": put("account", "spent", epsilon="0"), "kind": "released", "account": "ann"},
        {"kind": "granted", "body": MORE},
        {"kind": "granted", "body": MORE, "change": put("whole", "budget", epsilon="9")},
        {"kind": "account", "account": "ann", "body": ANEW, "change": opening},
        {"kind": "account", "account": "bob", "body": ANEW},
        {"kind": "gift", "change": put("whole", "spent", epsilon="0")},
        {"as_is": "{"},
        {"as_is": "[]"},
        {"body": []},
        {"body": {}},
        {
            "body": {
                "price": {
                    "epsilon": "1/0",
                    "delta": "0",
                    "ranged": False,
                    "neighbors": "add-remove",
                }
            }
        },
    ],
)
def test_nothing_is_built_on_an_event_whose_sums_are_wrong(pending, file, event):
    ledger, reservation = pending
    appended(file, **event)
    uses = [
        lambda: ledger.charge(TENTH, WHAT),
        lambda: ledger.charge(TENTH, WHAT, account="ann"),
        lambda: reservation.record("x"),
        lambda: ledger.grant(Privacy(1), why="x"),
        lambda: ledger.open_account("zoe", Privacy(1)),
        lambda: ledger.fits(TENTH),
        lambda: ledger.spent,
        lambda: other.charge(TENTH, WHAT),
    ]
    with Ledger(file, "sales") as other:
        for use in uses:
            with pytest.raises(
                LedgerError, match=r"Event 4 of the ledger 'sales' does not follow .* Run verify"
            ):
                use()
    assert [fault for fault in ledger.verify() if fault.seq == 4]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT max(seq) FROM privmax_events").fetchone() == (4,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        {"change": paid("whole")},
        {"change": paid("whole", "account"), "account": "ann"},
        {"kind": "released", "request": "a", "account": "ann", "body": {"answer": 1}},
        {
            "kind": "granted",
            "body": MORE,
            "change": put("whole", "budget", epsilon="11/10"),
            "request": None,
        },
        {"kind": "account", "account": "bob", "body": ANEW, "change": opening, "request": None},
    ],
)
def test_a_right_event_is_built_on_whoever_wrote_it(pending, file, event):
    """The forgeries above are refused for what they say, not for being written in SQL."""
    ledger, reservation = pending
    appended(file, **event)
    assert ledger.charge(TENTH, WHAT).seq == 5
    reservation.record("x")
    assert ledger.verify() == []


def test_an_answer_is_given_again_though_the_last_event_is_wrong(pending, file):
    ledger, reservation = pending
    reservation.record("x")
    appended(file)
    assert ledger.charge(TENTH, WHAT, request="a", account="ann").answer == "x"


def test_only_the_last_event_is_looked_at_until_verify(pending, file):
    """What docs/ledger.md says: a wrong event below a right one is for `verify`."""
    ledger, _ = pending
    appended(file)
    appended(file, request="again", change=paid("whole"))
    assert ledger.charge(TENTH, WHAT).seq == 6
    assert [fault.seq for fault in ledger.verify()] == [4]


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_a_charge_asks_as_many_questions_however_long_the_history_is(file, rule, monkeypatch):
    asked = []
    with Ledger.create(file, budget=Privacy(9, "1e-5"), rule=rule) as one, Ledger(file) as other:
        one.open_account("ann", Privacy(9, "1e-5"))
        execute = one._store._execute

        def counted(*given, **more):
            asked.append(given)
            return execute(*given, **more)

        monkeypatch.setattr(one._store, "_execute", counted)
        counts = []
        for _ in range(6):
            other.charge(TENTH, WHAT, account="ann").record(1)
            asked.clear()
            one.charge(TENTH, WHAT, account="ann")
            counts.append(len(asked))
        assert len(set(counts)) == 1
        assert one.verify() == []


# What a damaged row does


def reopened(ledger):
    return Ledger(ledger.where, "sales")


def reopened_and_charged(ledger):
    with reopened(ledger) as again:
        again.charge(TENTH, WHAT)


def repeated(ledger):
    ledger.charge(TENTH, WHAT, request="a", account="ann")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seq", "column", "value", "use"),
    [
        (1, "body", "[]", reopened),
        (1, "body", '{"schema":1}', reopened),
        (1, "body", '{"budget":{"delta":"0","epsilon":"x"},"rule":"basic","schema":1}', reopened),
        (1, "body", '{"budget":{"delta":"0","epsilon":"1"},"rule":"x","schema":1}', reopened),
        (1, "who", b"ann", reopened),
        (3, "body", "{", repeated),
        (3, "body", "[]", repeated),
        (4, "body", "{", repeated),
        (4, "body", "{}", repeated),
        (8, "totals", "{}", lambda ledger: ledger.charge(TENTH, WHAT, account="ann")),
        (8, "body", b"\xff", reopened_and_charged),
    ],
)
def test_a_damaged_row_is_named(file, seq, column, value, use):
    with filled(file) as ledger:
        with unlocked(file) as connection:
            connection.execute(
                f"UPDATE privmax_events SET {column} = ? WHERE seq = ?", [value, seq]
            )
        with pytest.raises(LedgerError, match=f"Event {seq} of the ledger 'sales'"):
            use(ledger)
        assert ledger.verify()[0].seq == seq


@pytest.mark.slow
@pytest.mark.parametrize("state", ["{}", '{"delta":"0","epsilon":"1/0","slack":"0","tally":"0"}'])
def test_sums_that_cannot_be_read_are_named(file, state):
    with Ledger.create(file, "sales", budget=Privacy(1, "1e-5"), rule="zcdp") as ledger:
        ledger.open_account("ann", Privacy(1, "1e-5"))
        ledger.charge(TENTH, WHAT, account="ann")
        ledger.charge(TENTH, WHAT)
        with unlocked(file) as connection:
            (text,) = connection.execute(
                "SELECT totals FROM privmax_events WHERE seq = 3"
            ).fetchone()
            totals = json.loads(text)
            totals["account"]["state"] = json.loads(state)
            connection.execute(
                "UPDATE privmax_events SET totals = ? WHERE seq = 3", [canonical(totals)]
            )
        for use in (
            lambda: ledger.charge(TENTH, WHAT, account="ann"),
            lambda: ledger.fits(TENTH, "ann"),
        ):
            with pytest.raises(
                LedgerError, match="Event 3 of the ledger 'sales' is missing or was changed"
            ):
                use()
        assert ledger.charge(TENTH, WHAT).seq == 5


# Any history

prices = st.builds(
    Charge,
    st.builds(
        Privacy,
        st.sampled_from(["0", "1/10", "1/3", "1/7"]) | st.floats(0, 0.5),
        st.sampled_from([0, "1e-6", "1/3000000"]) | st.floats(0, 1e-6),
    ),
    st.booleans(),
)
accounts = st.sampled_from([None, None, "ann", "bob"])
acts = st.lists(
    st.tuples(st.just("charge"), prices, accounts, st.sampled_from(["a", "b", "c", None]))
    | st.tuples(st.just("record"), st.integers(0, 9))
    | st.tuples(st.just("grant"), st.sampled_from(["1/5", "0.3"]), accounts),
    max_size=12,
)


@pytest.mark.slow
@slow
@given(acts=acts, rule=st.sampled_from(["basic", "zcdp"]))
def test_any_history_adds_up(acts, rule):
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder, "budget.db")
        handles = Ledger.create(where, budget=Privacy(1, "1e-5"), rule=rule), Ledger(where)
        handles[0].open_account("ann", Privacy("1/2", "1e-6"))
        handles[1].open_account("bob", Privacy("3/2"))
        charged: dict[str, tuple[Charge, str | None]] = {}
        answers: dict[str, object] = {}
        held: list[Reservation] = []
        spent, added = Privacy(0), Privacy(0)
        rounding = Fraction(len(acts), 1 << BITS)
        for n, (act, *details) in enumerate(acts):
            ledger = handles[n % 2]
            if act == "charge":
                price, account, request = details
                known = charged.get(request)
                fits = ledger.fits(price, account)
                try:
                    held.append(ledger.charge(price, WHAT, request=request, account=account))
                except BudgetError:
                    assert known is None
                    assert not fits
                    assert ledger.spent == spent
                except LedgerError:
                    assert known is not None
                    assert known != (price, account)
                else:
                    assert known in (None, (price, account))
                    assert held[-1].answer == answers.get(held[-1].request)
                    if known is None:
                        assert fits
                        charged[held[-1].request] = price, account
                        added = Privacy(
                            added.epsilon + price.privacy.epsilon, added.delta + price.privacy.delta
                        )
            elif act == "record" and held:
                reservation = held[details[0] % len(held)]
                assert reservation.record(n) == answers.setdefault(reservation.request, n)
            elif act == "grant":
                ledger.grant(Privacy(details[0]), why="more", account=details[1])
            now, budget = ledger.spent, ledger.budget
            assert spent.epsilon <= now.epsilon <= budget.epsilon
            assert spent.delta <= now.delta <= budget.delta
            assert now.epsilon <= added.epsilon + rounding
            assert now.delta >= added.delta
            if rule == "basic":
                assert now.epsilon >= added.epsilon
                assert now.delta <= added.delta + rounding
            spent = now
        assert handles[0].verify() == []
        assert sum(event.kind == "reserved" for event in handles[0].history()) == len(charged)
        for own, used in handles[1].accounts().values():
            assert used.epsilon <= own.epsilon
            assert used.delta <= own.delta
        for handle in handles:
            handle.close()


# What is looked for later, and what is left


def test_a_ledger_that_is_named_is_looked_for_when_it_is_used(file):
    named = Ledger.at(file, "later", who="ann")
    assert not file.exists()
    with pytest.raises(LedgerError, match="no such file"):
        named.left()
    with Ledger.create(file, "later", budget=Privacy(3), rule="basic", strict=True):
        assert named.left() == Privacy(3)
        assert (named.who, named.rule, named.strict) == ("ann", "basic", True)
    named.close()


@pytest.mark.parametrize(
    "use",
    [
        lambda ledger: ledger.charge(Charge(Privacy(1)), {}),
        lambda ledger: ledger.ask(Charge(Privacy(1))),
        lambda ledger: ledger.fits(Charge(Privacy(1))),
        lambda ledger: ledger.grant(Privacy(1), why="more"),
        lambda ledger: ledger.open_account("ann", Privacy(1)),
        lambda ledger: ledger.accounts(),
        lambda ledger: ledger.knows("r"),
        lambda ledger: list(ledger.history()),
        lambda ledger: ledger.verify(),
        repr,
    ],
    ids=["charge", "ask", "fits", "grant", "account", "accounts", "knows", "history", "verify", ""],
)
def test_whatever_comes_first_opens_a_ledger_that_is_named(file, use):
    Ledger.create(file, budget=Privacy(3)).close()
    ledger = Ledger.at(file)
    use(ledger)
    assert ledger.verify() == []
    ledger.close()


def test_what_was_left_when_a_request_was_answered(file, monkeypatch):
    with Ledger.create(file, budget=Privacy(9)) as ledger:
        ledger.open_account("ann", Privacy(3))
        with monkeypatch.context() as patch:
            first = ledger.charge(Charge(Privacy(2)), {}, request="r1", account="ann")
            with pytest.raises(LedgerError, match="'r1' has no answer"):
                ledger.left_after("r1")
            first.record("a")
            patch.setattr(SqliteStore, "reading", lambda *_: pytest.fail("it was read"))
            assert ledger.left_after("r1") == Privacy(1)  # of the account
        ledger.charge(Charge(Privacy(4)), {}, request="r2").record("b")
        assert ledger.left_after("r2") == Privacy(3)
        assert ledger.left_after("r1") == Privacy(1)  # then, and not now
        assert ledger.left("ann") == Privacy(1)
        assert ledger.left() == Privacy(3)
        with Ledger(file) as other:
            assert other.left_after("r2") == Privacy(3)


# What mutants that survived have shown to be missing


def test_a_budget_of_epsilon_alone_has_no_delta(file):
    with Ledger(file, "sales", epsilon=1) as ledger:
        assert ledger.budget == Privacy(1, 0)
        with pytest.raises(BudgetError):
            ledger.charge(Charge(Privacy(1, "1e-9")), WHAT)


def test_to_ask_refuses_what_a_charge_would_refuse_and_writes_nothing(ledger):
    assert ledger.ask(Charge(Privacy(1, "1e-5"))) is False
    for dear in (Charge(Privacy("1.01")), Charge(Privacy(0, "1.1e-5"))):
        with pytest.raises(BudgetError):
            ledger.ask(dear, request="late")
    assert ledger.spent == Privacy(0)


def test_to_ask_of_a_charged_request_finds_it_though_nothing_is_left(ledger):
    ledger.charge(Charge(Privacy(1)), WHAT, request="nightly")
    assert ledger.ask(Charge(Privacy(1)), request="nightly") is True
    with pytest.raises(BudgetError):
        ledger.ask(Charge(Privacy(1)), request="weekly")


def test_what_is_required_of_a_request_is_that_it_asks_the_same(ledger, file):
    ledger.charge(TENTH, WHAT, request="nightly")
    ledger.require(TENTH, what=WHAT, request="nightly")
    for price, what in ((TENTH, {"other": 1}), (Charge(Privacy("1/5")), WHAT)):
        with pytest.raises(LedgerError, match="was charged before, at event 2, with a different"):
            ledger.require(price, what=what, request="nightly")
    with (
        Ledger(file, "sales", who="somebody else") as other,
        pytest.raises(LedgerError, match="has no answer yet; only they can have it drawn"),
    ):
        other.require(TENTH, what=WHAT, request="nightly")
    assert ledger.event_count == 2


@pytest.mark.parametrize("strict", [True, False])
def test_a_ledger_opened_again_is_as_strict_as_it_was_made(file, strict):
    with Ledger.create(file, "sales", budget=Privacy(1), strict=strict):
        pass
    with Ledger(file, "sales") as again:
        assert again.strict is strict


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({}, "budget=.*a new ledger needs one"),
        ({"budget": 3}, "budget=.*it must be a Privacy"),
        ({"delta": "1e-5"}, "delta=.*a budget needs epsilon"),
        ({"epsilon": 0}, "epsilon=.*must allow epsilon, delta or both"),
        ({"epsilon": 0, "delta": 0}, "epsilon=.*must allow epsilon, delta or both"),
    ],
    ids=str,
)
def test_what_is_no_budget_makes_no_ledger(file, given_, told):
    with pytest.raises(ParameterError, match=told):
        Ledger.create(file, **given_)
    assert not file.exists()


def test_a_grant_names_an_account_by_printable_text(ledger):
    with pytest.raises(ParameterError, match="account="):
        ledger.grant(Privacy(1), why="x", account="")


@pytest.mark.parametrize(
    ("changed", "moved"), [("data", True), ("dataset", True), ("k", False), ("price", False)]
)
def test_only_where_the_data_differs_a_refusal_says_how_to_name_it(ledger, changed, moved):
    what = {"data": "/a", "dataset": None, "k": 3}
    ledger.charge(TENTH, what, request="r")
    price = Charge(Privacy("1/5")) if changed == "price" else TENTH
    other = what if changed == "price" else {**what, changed: "other"}
    with pytest.raises(LedgerError, match="was charged before") as caught:
        ledger.charge(price, other, request="r")
    assert ("give it a name with dataset" in str(caught.value)) == moved


@pytest.mark.parametrize("body", ["{}", '{"what":3,"price":null}'])
def test_a_charge_that_says_nothing_any_more_is_not_repeated(ledger, file, body):
    what = {"data": "/a", "columns": {}}
    ledger.charge(TENTH, what, request="r")
    with unlocked(file) as connection:
        connection.execute("UPDATE privmax_events SET body = ? WHERE seq = 2", [body])
    with pytest.raises(LedgerError, match="was charged before, at event 2, with a different"):
        ledger.charge(Charge(Privacy("1/10"), unit="user"), what, request="r")
