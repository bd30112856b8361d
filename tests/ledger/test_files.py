"""What becomes of a ledger when its file is missing, full, read-only, damaged or not a ledger at
all.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from privmax.errors import AnswerError, LedgerError
from privmax.ledger import Ledger, Price
from privmax.ledger.rows import Rows
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

TENTH = Price(Privacy("1/10"))
BUDGET = Privacy(100, "1e-5")
SECRET = "zorblax"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(file):
    with Ledger.create(file, budget=BUDGET) as made:
        made.charge(TENTH, {"data": SECRET}, request="first").record(SECRET)
        yield made


def refused(told, act, kind=LedgerError):
    """The act is refused in words that hold neither what is stored nor what SQLite said."""
    with pytest.raises(kind, match=told) as caught:
        act()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def with_pragma(monkeypatch, pragma):
    """Let every connection of the ledgers begin with a pragma."""
    connect = SqliteStore._connect

    def connected(store, path):
        connection = connect(store, path)
        connection.execute(pragma)
        return connection

    monkeypatch.setattr(SqliteStore, "_connect", connected)


def pages(file):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("PRAGMA page_count").fetchone()[0]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_only_the_owner_may_read_the_files(file, mask):
    before = os.umask(mask)
    try:
        with Ledger.create(file, budget=BUDGET) as ledger:
            ledger.charge(TENTH, {})
            with ledger._store.writing("default") as rows:
                rows._execute("CREATE TABLE undone (x)", [])  # so that there is a journal
                files = sorted(file.parent.iterdir())
                assert [path.name for path in files] == ["budget.db", "budget.db-journal"]
                assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
                raise StopIteration
    except StopIteration:
        pass
    finally:
        os.umask(before)
    assert [path.name for path in file.parent.iterdir()] == ["budget.db"]


def test_commits_are_put_on_the_disk(ledger):
    with ledger._store.writing("default") as rows:
        assert rows._execute("PRAGMA journal_mode", []) == [("delete",)]
        assert rows._execute("PRAGMA synchronous", []) == [(3,)]  # EXTRA


def test_the_folder_must_exist(tmp_path):
    refused(
        "its folder does not exist",
        lambda: Ledger.create(tmp_path / "none" / "budget.db", budget=BUDGET),
    )
    assert list(tmp_path.iterdir()) == []


def test_a_relative_file_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    ledger = Ledger("budget.db", "x", BUDGET)
    ledger.close()
    monkeypatch.chdir(tmp_path / "other")
    assert ledger.where == "budget.db"
    assert ledger.spent == Privacy(0)
    ledger.close()


@pytest.mark.parametrize("name", ["a ? b.db", "50%20.db", "a#b.db", "☃.db"])
def test_any_file_name_will_do(tmp_path, name):
    with Ledger(tmp_path / name, "x", BUDGET) as ledger:
        ledger.charge(TENTH, {})
    with Ledger(str(tmp_path / name), "x") as ledger:
        assert ledger.spent == Privacy("1/10")


def test_many_who_make_one_ledger_at_once_share_it(file):
    outcomes: list[str] = []

    def make():
        try:
            Ledger.create(file, "x", budget=BUDGET).close()
            outcomes.append("made")
        except LedgerError as error:
            outcomes.append("taken" if "already holds" in str(error) else str(error))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", *["taken"] * 5]
    with Ledger(file, "x") as ledger:
        assert [event.kind for event in ledger.history()] == ["created"]
    assert [path.name for path in file.parent.iterdir()] == ["budget.db"]


def test_a_file_system_without_links_will_do(file, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with Ledger.create(file, budget=BUDGET) as ledger:
        ledger.charge(TENTH, {})
        assert ledger.verify() == []
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Ledger.create(file, "second", budget=BUDGET) as ledger:
        assert ledger.verify() == []


# Files that are no ledgers


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_an_empty_file_is_not_taken_for_a_new_ledger(file, budget):
    """It may be a ledger that was cut off: to begin again would forget what was spent."""
    file.touch()
    refused(
        "is empty: it never was a ledger, or was cut off", lambda: Ledger(file, "default", budget)
    )
    assert file.stat().st_size == 0


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_a_file_that_is_no_database_is_refused(file, budget):
    file.write_text(f"{SECRET}\n" * 500)
    refused("is not a SQLite database", lambda: Ledger(file, "default", budget))
    assert file.read_text() == f"{SECRET}\n" * 500


def test_a_folder_is_refused(tmp_path):
    refused("cannot be opened", lambda: Ledger(tmp_path, "default", BUDGET))


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_a_database_of_something_else_is_refused(file, budget):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    refused("is a database, but not one of ledgers", lambda: Ledger(file, "default", budget))


def test_another_version_of_the_tables_is_refused(ledger, file):
    ledger.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 2")
    told = refused(
        "has version 2 of the tables, this privmax knows version 1", lambda: ledger.spent
    )
    assert "Use the privmax that made it, or a newer one" in told
    refused("has version 2", lambda: Ledger(file, "default", BUDGET))


# Damage


def test_a_file_that_was_cut_off_is_refused_or_found(ledger, file):
    for n in range(60):
        ledger.charge(TENTH, {"n": n, "pad": "x" * 500})
    ledger.close()
    whole = file.read_bytes()
    with Ledger(file) as intact:
        assert intact.verify() == []
    refusals = []
    for kept in range(0, len(whole), 4096):
        file.write_bytes(whole[:kept])
        try:
            with Ledger(file) as cut:
                assert cut.verify()
        except LedgerError as error:
            refusals.append(str(error))
    words = "is damaged", "is empty", "is not a SQLite database", "is missing"
    assert refusals
    assert [told for told in refusals if not any(word in told for word in words)] == []


def test_overwritten_pages_are_refused_or_found(ledger, file):
    for n in range(60):
        ledger.charge(TENTH, {"n": n, "pad": "x" * 500})
    ledger.close()
    whole = file.read_bytes()
    refusals = []
    for start in range(0, len(whole), 4096):
        file.write_bytes(whole[:start] + b"\xa5" * 512 + whole[start + 512 :])
        try:
            with Ledger(file) as damaged:
                assert damaged.verify(), start
        except LedgerError as error:
            refusals.append(str(error))
    assert refusals
    assert not [told for told in refusals if SECRET in told]


@pytest.mark.parametrize("byte", [b"\xff", b"x"])
def test_tables_that_cannot_be_read_are_refused(ledger, file, byte):
    ledger.close()
    content = file.read_bytes()
    start = content.index(b"CREATE TRIGGER privmax_events_head")
    file.write_bytes(content[:start] + byte + content[start + 1 :])
    refused("is damaged", lambda: Ledger(file))


def test_a_whole_copy_is_a_ledger(ledger, file, tmp_path):
    shutil.copy(file, tmp_path / "copy.db")
    with Ledger(tmp_path / "copy.db") as other:
        assert other.verify() == []
        assert other.spent == ledger.spent


# Disks and permissions


def test_a_full_database_charges_nothing(ledger, file, monkeypatch):
    with monkeypatch.context() as patch:
        with_pragma(patch, f"PRAGMA max_page_count = {pages(file)}")
        told = refused(
            "disk is full", lambda: ledger.charge(TENTH, {"pad": "x" * 20000}, request="big")
        )
    assert "Nothing was charged" in told
    assert ledger.spent == Privacy("1/10")
    assert ledger.charge(TENTH, {"pad": "x" * 20000}, request="big").seq == 4
    assert ledger.verify() == []


def test_an_answer_that_does_not_fit_on_the_disk_is_not_released(ledger, file, monkeypatch):
    reservation = ledger.charge(TENTH, {}, request="big")
    with monkeypatch.context() as patch:
        with_pragma(patch, f"PRAGMA max_page_count = {pages(file)}")
        refused("disk is full", lambda: reservation.record(SECRET * 5000), AnswerError)
    assert (reservation.recorded, reservation.answer) == (False, None)
    assert ledger.spent == Privacy("1/5")  # it stays spent
    assert not ledger.charge(TENTH, {}, request="big").recorded
    assert reservation.record("short") == "short"
    assert ledger.verify() == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "privmax-test", str(disk)]
    if (
        not shutil.which("mount")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root can mount a small disk, where the system allows it")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_loses_nothing(small_disk):
    done = []

    def fill():
        for n in range(900):
            ledger.charge(TENTH, {"n": n, "pad": "x" * 3000}, request=str(n))
            done.append(n)

    with Ledger.create(small_disk / "budget.db", budget=BUDGET) as ledger:
        refused("disk is full", fill)
    charged = len(done)
    assert charged > 10
    with pytest.raises(LedgerError), Ledger.create(small_disk / "second.db", budget=BUDGET):
        pass
    assert not (small_disk / "second.db").exists()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    with Ledger(small_disk / "budget.db") as ledger:
        assert ledger.spent == Privacy(charged * TENTH.privacy.epsilon)
        assert ledger.verify() == []
        assert (
            ledger.charge(TENTH, {"n": charged, "pad": "x" * 3000}, request=str(charged)).seq
            == charged + 2
        )


READ_ONLY = """
import os, sys
import urllib.parse  # which Path.as_uri imports when it is first called
import privmax.ledger.sqlite
from privmax.errors import LedgerError
from privmax.ledger import Ledger, Price
from privmax.privacy import Privacy
if os.getuid() == 0:  # who may do everything; after the imports, which may be root's own
    os.setgid(65534); os.setuid(65534)
try:
    Ledger(sys.argv[1], "default", Privacy(100, "1e-5")).charge(Price(Privacy("1/10")), {})
except LedgerError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("made", [True, False], ids=["file", "folder"])
def test_a_file_or_folder_that_may_only_be_read_is_refused(made):
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: only this user may enter that
        folder = Path(name)
        file = folder / "budget.db"
        if made:
            with Ledger.create(file, budget=BUDGET) as ledger:
                ledger.charge(TENTH, {})
            file.chmod(0o444)
        folder.chmod(0o555)
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", READ_ONLY, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        folder.chmod(0o755)
        assert run.returncode == 0, run.stderr
        told = "(read-only|cannot be opened)" if made else "cannot be made: Permission denied"
        assert re.search(told, run.stdout), run.stdout
        assert file.exists() == made
        if made:
            file.chmod(0o600)
            with Ledger(file) as ledger:
                assert ledger.spent == Privacy("1/10")
                assert ledger.verify() == []


# Others at work


def test_a_writer_that_does_not_end_is_waited_for_and_then_told(ledger, file, monkeypatch):
    monkeypatch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
    ledger.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused("is held by another process", lambda: ledger.charge(TENTH, {}, request="r"))
        assert ledger.spent == Privacy("1/10")  # reading goes on
        other.execute("ROLLBACK")
    assert ledger.charge(TENTH, {}, request="r").seq == 4


def test_an_interrupt_leaves_nothing_half_written(ledger, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("privmax.ledger.rows.Rows.append", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(TENTH, {}, request="r")
    assert ledger.spent == Privacy("1/10")
    assert ledger.charge(TENTH, {}, request="r").seq == 4
    assert ledger.verify() == []


def test_an_interrupt_right_after_the_beginning_locks_nobody_out(ledger, file, monkeypatch):
    check = SqliteStore._check

    def interrupted(store, connection):
        check(store, connection)
        assert connection.in_transaction
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_check", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(TENTH, {})
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert ledger.charge(TENTH, {}).seq == 4


@pytest.mark.parametrize(
    "act", [lambda ledger: ledger.charge(TENTH, {}), lambda ledger: ledger.close()]
)
def test_a_handle_is_not_used_by_whoever_interrupts_it(ledger, monkeypatch, act):
    """A signal handler runs in the thread it interrupts, so no lock keeps it out."""
    append = Rows.append
    told = []

    def interrupted(rows, row):
        append(rows, row)
        told.append(refused("in use by this very thread", lambda: act(ledger)))

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", interrupted)
        assert ledger.charge(TENTH, {}, request="r").seq == 4
    assert len(told) == 1
    assert ledger.spent == Privacy("1/5")
    assert ledger.charge(TENTH, {}).seq == 5
    assert ledger.verify() == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be replaced")
@pytest.mark.parametrize(
    "use",
    [
        lambda ledger, _: ledger.charge(TENTH, {}),
        lambda ledger, _: ledger.spent,
        lambda _, r: r.record(1),
    ],
)
def test_a_file_that_was_replaced_is_not_charged(ledger, file, tmp_path, use):
    shutil.copy(file, tmp_path / "copy.db")
    reservation = ledger.charge(TENTH, {}, request="second")
    (tmp_path / "copy.db").replace(file)
    told = refused("the file was replaced or removed", lambda: use(ledger, reservation))
    assert "Nothing was charged" in told
    refused("has forgotten event 4, which this process has seen", lambda: ledger.spent)
    refused("is gone; nothing may be released", lambda: reservation.record(1))
    with Ledger(file) as other:  # which has seen nothing yet
        other.charge(TENTH, {})
        assert other.spent == Privacy("1/5")
    refused("has forgotten event 4", lambda: ledger.charge(TENTH, {}))


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be replaced")
def test_a_file_that_is_removed_during_a_charge_is_not_charged(ledger, file, monkeypatch):
    append = Rows.append

    def removed(rows, row):
        append(rows, row)
        file.unlink()

    monkeypatch.setattr(Rows, "append", removed)
    refused("the file was replaced or removed", lambda: ledger.charge(TENTH, {}))
    refused("there is no such file", lambda: ledger.charge(TENTH, {}))


def test_a_commit_of_unknown_outcome_counts_as_spent(ledger, monkeypatch):
    """A disk that fails while the commit is written: SQLite cannot know. The same request id
    resolves it.
    """
    connect = SqliteStore._connect

    class Broken:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, query, bound=()):
            found = self.connection.execute(query, bound)
            if query == "COMMIT":  # it was written, and then the disk went
                error = sqlite3.OperationalError(f"disk I/O error {SECRET}")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error
            return found

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_connect", lambda store, path: Broken(connect(store, path)))
        told = refused("failed at the commit", lambda: ledger.charge(TENTH, {}, request="r"))
    assert "a charge counts as spent. Try again with request='r': that never charges twice." in told

    assert ledger.spent == Privacy("1/5")
    assert ledger.charge(TENTH, {}, request="r").seq == 4
    assert ledger.spent == Privacy("1/5")
