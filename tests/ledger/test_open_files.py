"""The file of a ledger as the system sees it: what is put on the disk, what stays open, and what a
fork leaves alone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import sqlite3
import threading
import weakref
from contextlib import closing, suppress

import pytest
from forking import fork_in_a_namespace, raw_fork

from privmax.errors import LedgerError
from privmax.ledger import Charge, Ledger, files, forks, rows, sqlite
from privmax.ledger.forks import ForkGate, this_process
from privmax.ledger.rows import Rows, Turn
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
posix = pytest.mark.skipif(os.name != "posix", reason="elsewhere the file does not stay open")
ONE = Charge(Privacy(1))
BUDGET = Privacy(3)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(file):
    with Ledger.create(file, budget=BUDGET) as made:
        yield made


# What is put on the disk


@pytest.fixture
def acts(monkeypatch):
    """What is put on the disk and what is given a name, in order; by number of the file."""
    found = []
    fsync, link = os.fsync, os.link

    def put(number):
        found.append(("disk", os.fstat(number).st_ino))
        fsync(number)

    def name(made, path):
        found.append(("name", os.stat(made).st_ino))
        link(made, path)

    monkeypatch.setattr(os, "fsync", put)
    monkeypatch.setattr(os, "link", name)
    return found


@posix
def test_a_new_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_it_is_used(
    acts, file, tmp_path
):
    SqliteStore(file).prepare()
    made, folder = file.stat().st_ino, tmp_path.stat().st_ino
    assert acts == [("disk", made), ("name", made), ("disk", folder)]


@posix
def test_so_is_a_copy_where_files_have_one_name(acts, file, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    SqliteStore(file).prepare()
    made, folder = file.stat().st_ino, tmp_path.stat().st_ino
    assert acts[1:] == [("disk", made), ("disk", folder)]


# What stays open


@posix
def test_a_file_stays_open_between_transactions(ledger):
    before = ledger._store._open
    assert before is not None
    ledger.charge(ONE, {})
    assert ledger.spent == Privacy(1)
    assert ledger._store._open is before


def test_a_block_that_ends_closes_its_ledger(ledger):
    connection = ledger._store._open.connection
    with ledger:
        pass
    assert ledger._store._open is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@posix
def test_to_close_one_file_does_no_harm_to_another(ledger, file):
    with Ledger(file) as other:
        closed = other._store._open
    losses, kept = files.process.losses, ledger._store._open
    closed.close()
    del closed
    gc.collect()
    assert files.process.losses == losses
    assert kept.is_ours()


class Connection(sqlite3.Connection):
    """One of which a test can see whether it is still there."""


def connect(path):
    return sqlite3.connect(path, factory=Connection)


def free(left):
    """Close what was left open for ever."""
    connection = left()
    connection.close()
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(connection))


@posix
def test_what_is_left_alone_is_never_closed_though_nobody_refers_to_it(ledger, file):
    ledger.close()
    opened = files.OpenFile(file, connect)
    left = weakref.ref(opened.connection)
    opened.leave()
    opened.leave()
    del opened
    gc.collect()
    assert left() is not None
    assert left().execute("SELECT 1").fetchone() == (1,)
    free(left)
    gc.collect()
    assert left() is None


@posix
def test_at_the_end_of_the_process_all_files_are_left_alone(ledger, file, monkeypatch):
    ledger.close()
    opened = files.OpenFile(file, connect)
    monkeypatch.setattr(files, "_files", weakref.WeakSet([opened]))
    files._leave_all()
    left = weakref.ref(opened.connection)
    del opened
    gc.collect()
    assert left() is not None
    free(left)


@posix
def test_only_files_that_are_open_count_towards_those_that_stay_open(ledger, file, monkeypatch):
    ledger.close()
    monkeypatch.setattr(files, "_files", weakref.WeakSet())
    monkeypatch.setattr(files, "KEPT", 2)
    opened = [files.OpenFile(file, sqlite3.connect) for _ in range(3)]
    assert [one.kept for one in opened] == [True, True, False]
    for one in opened:
        one.close()
    again = files.OpenFile(file, sqlite3.connect)
    assert again.kept
    again.close()


# What a fork leaves alone


def test_a_process_that_was_forked_begins_again_once(monkeypatch):
    process = files.Process()
    assert (process.losses, process.renew()) == (0, False)
    before = process.opening
    process.losses = 5
    monkeypatch.setattr(files, "this_process", lambda: "the child")
    assert process.renew()
    assert process.losses == 0
    assert process.opening is not before  # which a thread of the parent may have held
    assert not process.renew()


def in_a_child(act, fork=None):
    """What an act in a forked process says."""
    reading, writing = os.pipe()
    child = (fork or os.fork)()
    if not child:
        told = "failed"
        with suppress(BaseException):
            try:
                told = str(act())
            except LedgerError as error:
                told = str(error)
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


@forking
@pytest.mark.parametrize("fork", [os.fork, raw_fork, fork_in_a_namespace])
def test_a_child_is_another_process(fork):
    here = this_process()
    assert this_process() == here
    assert in_a_child(lambda: this_process() == here, fork) == "False"


@forking
def test_a_child_does_not_have_open_what_its_parent_has_and_can_charge(ledger):
    kept = ledger._store._open

    def act():
        return ledger._store._open is None, ledger.charge(ONE, {}).seq

    assert in_a_child(act) == "(True, 2)"
    assert ledger._store._open is kept
    assert ledger.spent == Privacy(1)


@posix
def test_a_store_in_a_child_leaves_alone_what_is_open(ledger, monkeypatch):
    opened, closed = ledger._store._open, SqliteStore("none.db")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "this_process", lambda: "the child")
        ledger._store.part()
        closed.part()
    assert ledger._store._open is None
    opened.close()
    assert opened.connection.execute("SELECT 1").fetchone() == (1,)
    free(lambda: opened.connection)


@forking
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
def test_a_child_forked_in_a_transaction_cannot_use_the_file_even_if_it_closes_first(
    ledger, monkeypatch, fork
):
    append, told = Rows.append, []

    def act():
        ledger._store._turn.renew()  # which a fork that Python does not hear of leaves undone
        ledger.close()
        ledger.charge(ONE, {})

    def forks_within(rows, row):
        append(rows, row)
        told.append(in_a_child(act, fork))

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", forks_within)
        ledger.charge(ONE, {})
    assert "forked during a transaction of its parent" in told[0]
    assert ledger.spent == Privacy(1)


def test_a_file_of_a_transaction_that_was_forked_is_refused(ledger, file, monkeypatch):
    found = file.stat()
    monkeypatch.setattr(sqlite, "_torn", {(found.st_dev, found.st_ino)})
    with pytest.raises(LedgerError, match="forked during a transaction of its parent"):
        ledger.charge(ONE, {})
    monkeypatch.undo()
    assert ledger.spent == Privacy(0)


def test_a_child_has_a_turn_of_its_own_whoever_held_it_before():
    turn = Turn("budget.db")
    with turn.take():
        with pytest.raises(LedgerError, match="in use by this very thread"), turn.take():
            pass
        rows._renew()
        with turn.take():
            pass


def refuse_to_wait(*_):
    raise AssertionError("nobody is in a transaction")


def test_a_fork_waits_for_nobody_who_has_left(monkeypatch):
    gate = ForkGate()

    def pass_twice():
        with gate.passage(), gate.passage():
            pass

    thread = threading.Thread(target=pass_twice)
    thread.start()
    thread.join()
    monkeypatch.setattr(gate._changed, "wait", refuse_to_wait)
    gate.close()
    gate.open()


def test_who_comes_during_a_fork_waits_until_it_is_over():
    gate, passed = ForkGate(), []

    def go():
        with gate.passage():
            passed.append(True)

    gate.close()
    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(0.05)
    assert not passed
    gate.open()
    thread.join(forks.PATIENCE / 2)
    assert passed == [True]


# What others did in between


def test_who_only_read_notices_an_older_copy_too(ledger, file, tmp_path):
    shutil.copy(file, tmp_path / "copy.db")
    with Ledger(file) as other:
        ledger.charge(ONE, {})
        assert other.spent == Privacy(1)
        shutil.copyfile(tmp_path / "copy.db", file)
        with pytest.raises(LedgerError, match="lost event 2, which this process has seen"):
            other.charge(ONE, {})


def test_a_file_is_looked_at_again_after_it_was_converted(ledger, file, monkeypatch):
    """While it is, there is no lock, and others may write."""
    ledger.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")

    class Newer(sqlite3.Connection):
        def execute(self, query, *bound):
            found = super().execute(query, *bound)
            if query == "PRAGMA journal_mode = DELETE":
                super().execute("PRAGMA user_version = 2")
            return found

    plain = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **more: plain(*given, factory=Newer, **more)
    )
    with pytest.raises(LedgerError, match="has tables of version 2"):
        ledger.charge(ONE, {})


def test_one_who_waits_for_another_process_sleeps_in_between(ledger, file, monkeypatch):
    slept = []
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def sleep(seconds):
            slept.append(seconds)
            if len(slept) == 3:
                other.execute("ROLLBACK")

        monkeypatch.setattr(sqlite, "time", _Clock(sleep))
        assert ledger.charge(ONE, {}).seq == 2
    assert len(slept) == 3
    assert all(0 < seconds < 1 for seconds in slept)


class _Clock:
    """Time that only passes while somebody sleeps, or asks often."""

    def __init__(self, sleep):
        self.sleep, self._now = sleep, 0.0

    def monotonic(self):
        self._now += 0.1
        return self._now


def test_a_writer_that_does_not_end_is_told_as_such(ledger, file, monkeypatch):
    monkeypatch.setattr(sqlite, "time", _Clock(lambda _: None))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="was locked by another process"):
            ledger.charge(ONE, {})
