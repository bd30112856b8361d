"""An answer that could not be recorded: the error holds nothing of it, and what may depend on it
closes the request.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from privmax import Privacy, select
from privmax.errors import AnswerError, BudgetError, LedgerError
from privmax.ledger import Charge, Ledger
from privmax.ledger.payment import FAILED
from privmax.ledger.rows import Rows, UnwritableError
from privmax.ledger.sqlite import SqliteStore

PRICE = Charge(Privacy("1/10"))
BUDGET = Privacy(3, "1e-5")
LETTERS = "z", "o", "r", "b", "l", "a", "x"
SECRET = "".join(LETTERS)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


def pragma(patch, text):
    """Let every transaction on a file begin with a pragma."""
    reach = SqliteStore._reach

    def reached(store):
        file = reach(store)
        file.connection.execute(text)
        return file

    patch.setattr(SqliteStore, "_reach", reached)


held_open: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def released():
    yield
    while held_open:
        held_open.pop().close()


def no_room(patch, file):
    with closing(sqlite3.connect(file)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    pragma(patch, f"PRAGMA max_page_count = {pages}")


def busy(patch, file):
    patch.setattr("privmax.ledger.sqlite.PATIENCE", 0.02)
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    held_open.append(connection)


def interrupted(patch, file):
    del file

    def interrupt(rows, row):
        raise KeyboardInterrupt

    patch.setattr(Rows, "append", interrupt)


def removed(patch, file):
    del patch
    file.unlink()


def at_commit(patch, file):
    del file
    execute = SqliteStore._execute

    def fails(store, query, bound=(), **more):
        if query == "COMMIT" and "request" in more:  # not that of the mark before it
            store._connection.execute("ROLLBACK")
        return execute(store, query, bound, **more)

    patch.setattr(SqliteStore, "_execute", fails)


def test_an_answer_waits_for_those_who_read(file, monkeypatch):
    """Already before it is written, with the mark that an answer was drawn."""
    waits = []
    with Ledger.create(file, budget=BUDGET) as ledger:
        reservation = ledger.charge(PRICE, {}, request="r")
        reader = sqlite3.connect(file, isolation_level=None)
        held_open.append(reader)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM privmax_events").fetchone()

        def stop_reading():
            waits.append(1)
            reader.execute("COMMIT")

        monkeypatch.setattr("privmax.ledger.sqlite._pause_briefly", stop_reading)
        reservation.record(["tea"])
        assert reservation.recorded
        assert ledger.verify() == []
    assert waits == [1]


def held(error):
    """Everything that the frames of an error, and of what it came from, have in their locals."""
    found = []
    while error is not None:
        trace = error.__traceback__.tb_next  # ours begin below the one who asked
        while trace is not None:
            found.append((trace.tb_frame.f_code.co_name, repr(trace.tb_frame.f_locals)))
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    return found


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (no_room, AnswerError),
        (busy, LedgerError),
        (interrupted, KeyboardInterrupt),
        (removed, LedgerError),
        (at_commit, AnswerError),
    ],
)
def test_an_error_of_record_holds_nothing_of_the_answer(file, monkeypatch, fault, kind):
    with Ledger.create(file, budget=BUDGET) as ledger:
        reservation = ledger.charge(PRICE, {}, request="r")
        fault(monkeypatch, file)
        with pytest.raises(kind) as caught:
            reservation.record(["".join(LETTERS) * 2000])
        frames = held(caught.value)
        assert [name for name, _ in frames] == ["record"]
        assert not [name for name, text in frames if SECRET in text]
        assert SECRET not in str(caught.value)
        assert (reservation.recorded, reservation.answer) == (False, None)


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_at_a_commit_of_the_mark_says_so(file, monkeypatch, number):
    """They are those before the commit of the answer itself."""
    execute, commits = SqliteStore._execute, []

    def fails(store, query, bound=(), **more):
        if query == "COMMIT":
            commits.append(query)
            if len(commits) == number:
                store._connection.execute("ROLLBACK")
        return execute(store, query, bound, **more)

    with Ledger.create(file, budget=BUDGET) as ledger:
        reservation = ledger.charge(PRICE, {}, request="r")
        monkeypatch.setattr(SqliteStore, "_execute", fails)
        with pytest.raises(LedgerError, match="SQLite failed at the commit"):
            reservation.record(["tea"])


def test_an_answer_that_is_no_json_is_not_in_a_frame(file):
    class Odd:
        def __repr__(self):
            return SECRET

    with Ledger.create(file, budget=BUDGET) as ledger:
        with pytest.raises(Exception, match="must be JSON") as caught:
            ledger.charge(PRICE, {}).record({"x": Odd()})
        assert not [name for name, text in held(caught.value) if SECRET in text]


def test_an_answer_too_long_for_the_disk_closes_its_request(file, monkeypatch):
    """Who tried again would otherwise draw among the short answers only, at no cost."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        data = {"x" * 30_000: 1000, "y": 1}
        options = {
            "epsilon": 1,
            "delta": 0,
            "universe": list(data),
            "ledger": ledger.request("r", dataset="d"),
        }
        append = Rows.append
        with monkeypatch.context() as patch:

            def then_full(rows, row):
                append(rows, row)
                patch.setattr(Rows, "append", append)
                pragma(patch, f"PRAGMA max_page_count = {pages + 3}")

            with closing(sqlite3.connect(file)) as connection:
                pages = connection.execute("PRAGMA page_count").fetchone()[0]
            patch.setattr(Rows, "append", then_full)
            with pytest.raises(AnswerError, match="disk is full"):
                select(data, **options)
        assert list(ledger.history())[-1].body["answer"][FAILED] is True
        assert select(data, **options).item is None
        assert ledger.spent == Privacy(1)
        assert ledger.verify() == []


def test_a_disk_on_which_not_even_no_answer_fits_closes_the_request(file, monkeypatch):
    """The answer that failed may have been longer than the one that would be drawn next."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        options = {
            "epsilon": 1,
            "universe": ["x"],
            "ledger": ledger.request("r", dataset="d"),
        }
        append = Rows.append

        def full(rows, row):
            if row.kind == "released":
                raise UnwritableError("the disk is full")
            append(rows, row)

        with monkeypatch.context() as patch:
            patch.setattr(Rows, "append", full)
            with pytest.raises(LedgerError, match="disk is full") as caught:
                select({"x": 1}, **options)
            assert "The privacy cost was charged and stays spent" in str(caught.value)
            assert "repeating the request 'r' returns no answer" in str(caught.value)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("SELECT closed FROM privmax_open").fetchall() == [(b"\1",)]
        with Ledger(file) as other:  # as another process would
            request = other.request("r", dataset="d")
            assert select({"x": 1}, **{**options, "ledger": request}).item is None
        assert ledger.spent == Privacy(1)
        assert ledger.verify() == []


def test_a_closed_request_takes_no_other_answer(file, monkeypatch):
    with Ledger.create(file, budget=BUDGET) as ledger:
        charged = ledger.charge(PRICE, {}, request="r")
        with monkeypatch.context() as patch:
            no_room(patch, file)
            with pytest.raises(AnswerError):
                charged.record("x" * 100_000)
        again = ledger.charge(PRICE, {}, request="r")
        assert (again.closed, again.recorded) == (True, False)
        with pytest.raises(LedgerError, match="is closed"):
            again.record("y")
        with pytest.raises(LedgerError, match="is closed"), ledger.batch() as batch:
            batch.record(again, "y")
        assert again.close("none") == "none"
        assert (again.closed, again.recorded) == (False, True)
        assert ledger.charge(PRICE, {}, request="r").answer == "none"


def test_a_second_process_does_not_draw_for_one_that_failed(file, monkeypatch):
    """Both were charged before either had an answer: the shorter one must not win by that."""
    with Ledger.create(file, budget=BUDGET) as ledger, Ledger(file) as other:
        charged = ledger.charge(PRICE, {}, request="r")
        meanwhile = other.charge(PRICE, {}, request="r")
        assert not meanwhile.closed
        with monkeypatch.context() as patch:
            no_room(patch, file)
            with pytest.raises(AnswerError):
                charged.record("x" * 100_000)
            with pytest.raises(LedgerError, match="Another answer"):
                meanwhile.record("y")
        with pytest.raises(LedgerError, match="Another answer"), other.batch() as batch:
            batch.record(meanwhile, "y")
        assert charged.close("none") == meanwhile.close("none") == "none"


def record_all(ledger, answers, *prices):
    """Record answers in one batch, with further charges in it."""
    with ledger.batch() as batch:
        for reservation, answer in answers.items():
            batch.record(reservation, answer)
        for price in prices:
            batch.charge(price, {})


def test_a_batch_that_fails_closes_its_requests(file, monkeypatch):
    with Ledger.create(file, budget=BUDGET) as ledger:
        with ledger.batch() as batch:
            charged = [batch.charge(PRICE, {}, request=f"r{one}") for one in range(3)]
        charged[0].record("first")
        with monkeypatch.context() as patch:
            no_room(patch, file)
            with pytest.raises(AnswerError):
                record_all(ledger, dict(zip(charged, ("x", "x", "x" * 100_000), strict=True)))
        again = [ledger.charge(PRICE, {}, request=f"r{one}") for one in range(3)]
        assert [one.closed for one in again] == [False, True, True]
        assert again[0].answer == "first"
        assert charged[1].record("x") == "x"  # the same draw
        assert charged[2].close(None) is None
        assert ledger.verify() == []


def test_a_batch_over_budget_keeps_the_answers_in_hand(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        charged = ledger.charge(PRICE, {}, request="r")
        with pytest.raises(BudgetError):
            record_all(ledger, {charged: "x"}, Charge(Privacy(100)))
        assert charged.record("x") == "x"


def test_an_answer_that_was_drawn_may_be_recorded_once_there_is_room(file, monkeypatch):
    """It is the same draw; only another one is refused."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        charged = ledger.charge(PRICE, {}, request="r")
        with monkeypatch.context() as patch:
            no_room(patch, file)
            with pytest.raises(AnswerError):
                charged.record("x" * 100_000)
        assert charged.record("x" * 100_000) == "x" * 100_000
        assert ledger.verify() == []


def test_closing_a_request_writes_nothing_beside_the_file(file, monkeypatch):
    """A mark takes no room: the file keeps its size, and there is no journal."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        ledger.charge(PRICE, {}, request="r")
        seen = []
        mark = SqliteStore._try

        def marking(store, act, **more):
            done = mark(store, act, **more)
            seen.append((file.stat().st_size, file.with_name("budget.db-journal").exists()))
            return done

        before = file.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "_try", marking)
            patch.setattr(Rows, "append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                ledger.charge(PRICE, {}, request="r").record("x")
        assert seen
        assert set(seen) == {(len(before), False)}
        after = file.read_bytes()
        changed = [
            at for at, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
        ]
        assert len([at for at in changed if at >= 100]) == 1  # the rest is SQLite's own counters
        assert ledger.charge(PRICE, {}, request="r").closed


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE privmax_open SET closed = x'00'",
        "DELETE FROM privmax_open",
    ],
)
def test_a_closed_request_cannot_be_opened_by_sql(file, query):
    with Ledger.create(file, budget=BUDGET) as ledger:
        ledger.charge(PRICE, {}, request="r")
    with (
        closing(sqlite3.connect(file)) as connection,
        pytest.raises(sqlite3.IntegrityError, match=r"stays closed|until it is answered"),
    ):
        connection.execute(query)


def test_an_open_charge_of_an_older_file_can_be_answered(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        ledger.charge(PRICE, {}, request="r")
        ledger.charge(PRICE, {}, request="s").record("s")
    with closing(sqlite3.connect(file)) as connection:
        found = "SELECT name FROM sqlite_master WHERE name LIKE 'privmax_open_%'"
        for (trigger,) in connection.execute(found).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("DROP TABLE privmax_open")
        connection.commit()
    with Ledger(file) as ledger:
        again = ledger.charge(PRICE, {}, request="r")
        assert (again.closed, again.recorded) == (False, False)
        assert again.record("x") == "x"
        assert ledger.charge(PRICE, {}, request="s").answer == "s"
        assert ledger.verify() == []
