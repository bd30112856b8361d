"""An answer that could not be recorded: the error holds nothing of it, and what may depend on it
closes the request.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from privmax import Privacy, select
from privmax.errors import AnswerError, LedgerError
from privmax.ledger import Ledger, Price
from privmax.ledger.payment import FAILED
from privmax.ledger.rows import Rows, UnwritableError
from privmax.ledger.sqlite import SqliteStore

PRICE = Price(Privacy("1/10"))
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
        if query == "COMMIT":
            store._connection.execute("ROLLBACK")
        return execute(store, query, bound, **more)

    patch.setattr(SqliteStore, "_execute", fails)


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


def test_a_disk_on_which_not_even_no_answer_fits_leaves_the_request_open(file, monkeypatch):
    """Then the failure had nothing to do with what was drawn."""
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
            assert "Repeat the request 'r'" in "".join(caught.value.__notes__)
        assert select({"x": 1}, **options).item == "x"
        assert ledger.spent == Privacy(1)
