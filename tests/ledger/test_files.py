"""What becomes of a ledger when its file is missing, full, read-only, damaged or not a ledger at
all.
"""

from __future__ import annotations

import gc
import os
import pickle
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
from crash import FirstCoins

from privmax import select
from privmax.errors import AnswerError, BudgetError, LedgerError
from privmax.ledger import Charge, Ledger, files
from privmax.ledger.rows import Rows
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"))
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
    """Let every transaction on a file begin with a pragma."""
    reach = SqliteStore._reach

    def reached(store):
        file = reach(store)
        file.connection.execute(pragma)
        return file

    monkeypatch.setattr(SqliteStore, "_reach", reached)


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
            outcomes.append("taken" if "already has" in str(error) else str(error))

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
        "is empty: it never was a ledger, or it was truncated",
        lambda: Ledger(file, "default", budget),
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
    refused("is a database without ledgers", lambda: Ledger(file, "default", budget))


def test_another_version_of_the_tables_is_refused(ledger, file):
    ledger.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 2")
    told = refused("has tables of version 2; this privmax uses version 1", lambda: ledger.spent)
    assert "Use the privmax version that made it, or a newer one" in told
    refused("has tables of version 2", lambda: Ledger(file, "default", BUDGET))


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


@pytest.mark.slow
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


@pytest.fixture
def flickering(file, monkeypatch):
    """A file with a page that cannot be read, until somebody looks why."""
    with Ledger.create(file, budget=BUDGET) as ledger, ledger.batch() as batch:
        for one in range(40):
            batch.charge(TENTH, {"padding": "x" * 300}, request=f"r{one}")
    number = os.open(file, os.O_RDWR)  # closed at the end only: that would drop SQLite's locks
    kept: list[tuple[int, bytes]] = []
    failure = SqliteStore._failure

    def damage(page):
        repair()
        kept.append((4096 * page, os.pread(number, 4096, 4096 * page)))
        os.pwrite(number, b"\xff" * 4096, 4096 * page)

    def repair():
        while kept:
            place, content = kept.pop()
            os.pwrite(number, content, place)

    def repaired(store, error, **more):
        repair()
        return failure(store, error, **more)

    monkeypatch.setattr(SqliteStore, "_failure", repaired)
    yield damage, file.stat().st_size // 4096
    os.close(number)


def test_a_read_error_that_passes_does_not_send_anybody_to_a_backup(file, flickering):
    """A backup forgets charges. SQLite tells a disk that failed once as it tells damage."""
    damage, pages = flickering
    told = []
    for page in range(pages):
        for act in (
            lambda: Ledger(file).close(),
            lambda: list(Ledger(file).history()),
            lambda: Ledger(file).charge(TENTH, {}, request="s"),
        ):
            damage(page)
            try:
                act()
            except LedgerError as error:
                told.append(error)
                act()  # again, as the error says
    assert len(told) > pages
    for error in told:
        assert "Try again" in str(error)
        assert "backup" not in str(error)
        assert error.retry


def test_verify_tells_of_no_damage_that_has_passed(file, monkeypatch):
    """This is what SQLite says of a page that the disk did not give."""
    execute, told = SqliteStore._execute, [("Page 14: unable to get the page. error code=8458",)]

    def failing(store, query, bound=(), **more):
        if told and "integrity_check" in query:
            return [told.pop()]
        return execute(store, query, bound, **more)

    monkeypatch.setattr(SqliteStore, "_execute", failing)
    with Ledger.create(file, budget=BUDGET) as ledger:
        assert ledger.verify() == []
        told += [("Page 14: unable to get the page. error code=8458",)] * 2
        assert len(ledger.verify()) == 1


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
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
if os.getuid() == 0:  # who may do everything; after the imports, which may be root's own
    os.setgid(65534); os.setuid(65534)
try:
    Ledger(sys.argv[1], "default", Privacy(100, "1e-5")).charge(Charge(Privacy("1/10")), {})
except LedgerError as error:
    print(error)
"""


@pytest.mark.slow
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
        told = "(read-only|cannot be opened)" if made else "cannot be created: Permission denied"
        assert re.search(told, run.stdout), run.stdout
        assert file.exists() == made
        if made:
            file.chmod(0o600)
            with Ledger(file) as ledger:
                assert ledger.spent == Privacy("1/10")
                assert ledger.verify() == []


RIGHTS_CHANGE = """
import os, sys
import urllib.parse, privmax.ledger.sqlite
from privmax.errors import LedgerError
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
file, tenth = sys.argv[1], Charge(Privacy("1/10"))
ledger = Ledger(file, "default", Privacy(100, "1e-5"))
ledger.charge(tenth, {})
for mode in (0o444, 0o600):
    os.chmod(file, mode)
    try:
        print(ledger.charge(tenth, {}).seq)
    except LedgerError as error:
        print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_file_that_may_only_be_read_from_now_on_is_not_written_to():
    """What was opened for writing before could be written to still."""
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: only this user may enter that
        Path(name).chmod(0o777)
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", RIGHTS_CHANGE, f"{name}/budget.db"],
            capture_output=True,
            text=True,
            check=True,
        )
        refusal, later = run.stdout.splitlines()
        assert re.search("is read-only", refusal), refusal
        assert later == "3"


# Others at work


def test_nothing_is_locked_between_transactions(ledger, file):
    """Neither by who wrote nor by who read, and there is no journal."""
    for use in (
        lambda: ledger.charge(TENTH, {}),
        lambda: ledger.spent,
        lambda: list(ledger.history()),
        lambda: ledger.verify(),
    ):
        use()
        assert ledger._store._open.kept
        assert [path.name for path in file.parent.iterdir()] == ["budget.db"]
        with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("ROLLBACK")


def test_a_commit_waits_for_those_who_read(ledger, file):
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    with closing(other):
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM privmax_events").fetchone()
        timer = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
        timer.start()
        assert ledger.charge(TENTH, {}).seq == 4
        timer.join()


def test_a_charge_waits_for_whoever_writes(ledger, file):
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
        timer.start()
        assert ledger.charge(TENTH, {}).seq == 4
        timer.join()


def test_a_commit_does_not_wait_for_ever_for_those_who_read(ledger, file, monkeypatch):
    monkeypatch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM privmax_events").fetchone()
        refused("was locked by another process", lambda: ledger.charge(TENTH, {}))
    assert ledger.charge(TENTH, {}).seq == 4
    assert ledger.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [BudgetError, KeyboardInterrupt, MemoryError])
def test_after_an_error_the_file_is_opened_anew(ledger, monkeypatch, error):
    before = ledger._store._open

    def fails(*_):
        raise error(*["x", None, None, None][: 4 if error is BudgetError else 0])

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", fails)
        with pytest.raises(error):
            ledger.charge(TENTH, {})
    assert ledger._store._open is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        before.connection.execute("SELECT 1")
    assert ledger.charge(TENTH, {}).seq == 4


def test_rows_are_not_read_when_their_transaction_is_over(ledger):
    with ledger._store.reading("default") as rows:
        pass
    refused("the transaction is over", lambda: rows.head())


def test_a_handle_that_was_closed_opens_the_file_again(ledger):
    ledger.close()
    assert ledger._store._open is None
    ledger.close()
    assert ledger.charge(TENTH, {}).seq == 4
    again = pickle.loads(pickle.dumps(ledger))
    assert again.spent == Privacy("1/5")
    again.close()


def test_a_handle_that_is_forgotten_closes_its_file(file):
    ledger = Ledger.create(file, budget=BUDGET)
    connection = ledger._store._open.connection
    ledger._store.itself = ledger._store  # so that the garbage collector has to find it
    del ledger
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@pytest.mark.slow
def test_only_so_many_files_stay_open(tmp_path, monkeypatch):
    gc.collect()
    monkeypatch.setattr("privmax.ledger.files.KEPT", len(files._files) + 2)
    ledgers = [Ledger.create(tmp_path / f"{n}.db", budget=BUDGET) for n in range(4)]
    assert [ledger._store._open is not None for ledger in ledgers] == [True, True, False, False]
    for ledger in ledgers:
        assert ledger.charge(TENTH, {}).seq == 2
        ledger.close()


LEFT_OPEN = """
import sys, threading
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
ledger = Ledger(sys.argv[1], "default", Privacy(100, "1e-5"))
ledger.charge(Charge(Privacy(1)), {})
def charge():
    while True:
        ledger.charge(Charge(Privacy("1/1000")), {})
if len(sys.argv) > 2:
    threading.Thread(target=charge, daemon=True).start()
else:
    class Connection:
        def __getattr__(self, name):
            print(name, file=sys.stderr)
    ledger._store._open.connection.close()  # else Python 3.13 complains of it
    ledger._store._open.connection = Connection()
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [[], ["threads"]])
def test_a_program_may_end_without_closing(file, threads):
    """Threads may be in a transaction just then."""
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", LEFT_OPEN, str(file), *threads],
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stderr == ""
    with Ledger(file) as ledger:
        assert ledger.spent.epsilon >= 3
        assert ledger.verify() == []


# What others did to the file in between


def test_a_writer_that_does_not_end_is_waited_for_and_then_told(ledger, file, monkeypatch):
    monkeypatch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
    ledger.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused("was locked by another process", lambda: ledger.charge(TENTH, {}, request="r"))
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
    refused("lost event 4, which this process has seen", lambda: ledger.spent)
    refused("is gone; nothing may be released", lambda: reservation.record(1))
    with Ledger(file) as other:  # which has seen nothing yet
        other.charge(TENTH, {})
        assert other.spent == Privacy("1/5")
    refused("lost event 4", lambda: ledger.charge(TENTH, {}))


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
        ledger.close()
        told = refused("failed at the commit", lambda: ledger.charge(TENTH, {}, request="r"))
    assert "count a charge as spent. Repeat the request 'r': that never charges twice." in told

    assert ledger.spent == Privacy("1/5")
    assert ledger.charge(TENTH, {}, request="r").seq == 4
    assert ledger.spent == Privacy("1/5")


class Starved:
    """A connection to which the system gives no memory for one query, or for undoing any."""

    def __init__(self, connection, query):
        self.connection, self.query = connection, query

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, query, bound=()):
        if query == self.query:
            raise MemoryError
        return self.connection.execute(query, bound)

    def rollback(self):
        raise MemoryError


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("BEGIN IMMEDIATE", "cannot be used: SQLite failed (SQLITE_NOMEM). Nothing was charged"),
        ("COMMIT", "failed at the commit (SQLITE_NOMEM). It is not known whether"),
    ],
)
def test_a_lack_of_memory_is_told_and_keeps_no_lock(ledger, monkeypatch, query, reason):
    """The error is kept by its caller, and with it what its frames hold."""
    connect = SqliteStore._connect
    ledger.close()
    with monkeypatch.context() as patch:
        patch.setattr(
            SqliteStore, "_connect", lambda store, path: Starved(connect(store, path), query)
        )
        with pytest.raises(LedgerError) as kept:
            ledger.charge(TENTH, {}, request="r")
    assert reason in str(kept.value)
    monkeypatch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
    assert ledger.charge(TENTH, {}, request="r").seq == 4


def test_it_is_not_promised_that_others_do_not_draw_what_the_ledger_could_not_note(
    tmp_path, monkeypatch
):
    """There is no memory for the transaction that would note it."""
    ledger = Ledger.create(tmp_path / "new.db", budget=BUDGET)
    connect = SqliteStore._connect

    def starve():
        def connect_starved(store, path):
            return Starved(connect(store, path), "BEGIN IMMEDIATE")

        monkeypatch.setattr(SqliteStore, "_connect", connect_starved)
        opened = ledger._store._open
        opened.connection = Starved(opened.connection, "BEGIN IMMEDIATE")

    options = {"epsilon": "1/10", "universe": 9, "ledger": ledger.request("r")}
    with pytest.raises(LedgerError) as caught:
        select([0] * 9, **options, coins=FirstCoins(starve))
    assert "This process does not draw it again, but the ledger could not note that" in str(
        caught.value
    )
    assert not ledger.find("r")[1]
    monkeypatch.setattr(SqliteStore, "_connect", connect)
    assert select([0] * 9, **options).item is None
    ledger.close()


def counters(file):
    """By which SQLite notices that others have written: a count, the size, and free pages."""
    return file.read_bytes()[24:40]


def test_pages_of_an_older_copy_are_not_mixed_with_those_seen_before(ledger, file, tmp_path):
    """An older copy was put in place, and others charged until SQLite's counter was the same."""
    shutil.copy(file, tmp_path / "copy.db")
    ledger.charge(TENTH, {}, request="forgotten")
    before = counters(file)
    shutil.copyfile(tmp_path / "copy.db", file)
    with Ledger(file) as other:
        other.charge(TENTH, {}, request="different")
        assert counters(file) == before
        refused("lost event 4", lambda: ledger.spent)
        refused("lost event 4", lambda: ledger.charge(TENTH, {}))
        assert [event.request for event in other.history()][-1] == "different"
        assert other.verify() == []


def test_tables_of_an_older_copy_are_not_mixed_with_those_seen_before(ledger, file):
    """The same for the counter by which SQLite notices that tables or triggers have changed."""
    before = ledger._store._open
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        version = other.execute("PRAGMA schema_version").fetchone()[0]
        other.execute("DROP TRIGGER privmax_events_fits")
        other.execute(f"PRAGMA schema_version = {version}")
    assert ledger.charge(TENTH, {}).seq == 4
    assert ledger._store._open is not before
    with closing(sqlite3.connect(file)) as other:
        query = "SELECT count(*) FROM sqlite_master WHERE name = 'privmax_events_fits'"
        assert other.execute(query).fetchone() == (1,)
        assert other.execute("PRAGMA schema_version").fetchone() != (version,)


def test_tables_that_others_change_are_read_again(ledger, file):
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("VACUUM")
    assert ledger.charge(TENTH, {}).seq == 4
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA user_version = 2")
    refused("has tables of version 2", lambda: ledger.spent)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be moved")
def test_the_journal_of_a_file_that_was_moved_is_beside_it(ledger, file, tmp_path, monkeypatch):
    """After a crash, whoever opens the file looks for the journal there."""
    (tmp_path / "larger").mkdir()
    moved = file.rename(tmp_path / "larger" / "budget.db")
    file.symlink_to(moved)
    append = Rows.append
    found = []

    def looks(rows, row):
        append(rows, row)
        found.extend(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*-journal"))

    monkeypatch.setattr(Rows, "append", looks)
    assert ledger.charge(TENTH, {}).seq == 4
    assert found == ["larger/budget.db-journal"]


CLOSED_BEHIND = """
import os, sys
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
file, other, forks = sys.argv[1:]
price = Charge(Privacy(1))
first, second = Ledger(file, "default", Privacy(100, "1e-5")), Ledger(file)
assert first.charge(price, {}).seq + second.charge(price, {}).seq == 5
number = first._store._open._number, second._store._open._number
if forks == "fork" and (child := os.fork()):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [ledger.charge(price, {}).seq for ledger in (first, second)] == [6, 7]
    sys.exit()
os.closerange(3, 100)  # as daemons do when they start
logs = [open(other, "r+b", buffering=0) for _ in range(3)]
assert set(number) <= {log.fileno() for log in logs}
assert second.charge(price, {}).seq == 4
assert first.charge(price, {}).seq == 5
first.close()
second.close()
for log in logs:
    assert log.read() == b"a log"
    log.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("forks", ["fork", "same"])
def test_descriptors_that_were_closed_behind_it_are_neither_used_nor_closed(file, tmp_path, forks):
    """Their numbers stand for other files by then."""
    other = tmp_path / "log"
    other.write_bytes(b"a log")
    command = [sys.executable, "-W", "error", "-c", CLOSED_BEHIND, str(file), str(other), forks]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert other.read_bytes() == b"a log"
    with Ledger(file) as ledger:
        assert ledger.verify() == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the file does not stay open")
def test_a_second_handle_does_not_take_over_a_number_that_is_given_anew(ledger, file):
    """The first finds that its descriptor is gone, and opens the file under the second's number."""
    with Ledger(file) as second:
        numbers = [one._store._open._number for one in (ledger, second)]
        abandoned = second._store._open
        for number in numbers:
            os.close(number)
        kept = os.open(os.devnull, os.O_RDONLY)
        assert kept == min(numbers)
        assert ledger.charge(TENTH, {}).seq == 4
        assert ledger._store._open._number == max(numbers)
        assert not abandoned.is_ours()
        assert second.charge(TENTH, {}).seq == 5
        assert second._store._open is not abandoned
        os.close(kept)
