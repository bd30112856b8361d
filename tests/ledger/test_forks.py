"""A ledger file that is forked over, copied, moved, linked, or that an older privmax made: nothing
is forgotten.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from forking import fork_in_a_namespace, raw_fork

from privmax.errors import BudgetError, LedgerError
from privmax.ledger import Charge, Ledger, files
from privmax.ledger.rows import Rows
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ONE = Charge(Privacy(1))
BUDGET = Privacy(3, "1e-5")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


class Child:
    """A forked process that does one thing after another, each when it is told to."""

    def __init__(self, *acts, fork=os.fork):
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._process = fork()
        if not self._process:
            os.close(self._orders)
            for act in acts:
                if not os.read(orders, 1):
                    break
                told = b"+"
                try:
                    act()
                except BaseException as error:
                    told = f"-{error}".encode()[:4000]
                os.write(answers, told)
            os._exit(0)
        os.close(orders)
        os.close(answers)

    def next(self):
        """Let it do the next thing: "+", or "-" and the error."""
        os.write(self._orders, b"x")
        return os.read(self._answers, 5000).decode()

    def end(self):
        os.close(self._orders)
        os.close(self._answers)
        os.waitpid(self._process, 0)


def spent(file):
    """What a process that has nothing to do with this one says is spent."""
    code = "import sys; from privmax.ledger import Ledger; print(Ledger(sys.argv[1]).spent.epsilon)"
    return subprocess.run(
        [sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True
    ).stdout


def test_a_child_goes_on_charging_when_its_parent_closes(file):
    ledger = Ledger.create(file, budget=BUDGET)
    ledger.charge(ONE, {}).record("parent")
    child = Child(*[lambda: ledger.charge(ONE, {}).record("child")] * 2)
    assert child.next() == "+"
    ledger.close()
    assert child.next() == "+"
    child.end()
    assert spent(file) == "3\n"
    with Ledger(file) as later, pytest.raises(BudgetError):
        later.charge(ONE, {})


@pytest.mark.slow
def test_a_child_that_opens_a_ledger_of_its_own_is_not_forgotten(file):
    ledger = Ledger.create(file, budget=BUDGET)
    own = []
    child = Child(
        lambda: own.append(Ledger(file)), *[lambda: own[0].charge(ONE, {}).record("child")] * 2
    )
    assert child.next() + child.next() == "++"
    ledger.close()
    assert child.next() == "+"
    child.end()
    assert spent(file) == "2\n"


DAEMON = """
import os, sys
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
price = Charge(Privacy(1))
ledger = Ledger(sys.argv[1], "default", Privacy(3, "1e-5"))
ledger.charge(price, {}).record("parent")
if os.fork():
    os._exit(0)  # as a daemon begins
for _ in range(2):
    sys.stdin.readline()
    ledger.charge(price, {}).record("daemon")
    print("charged", flush=True)
sys.stdin.read()
"""
SHOW = [sys.executable, "-m", "privmax.cli", "budget", "show"]


@pytest.mark.slow
def test_a_daemon_goes_on_charging_while_others_look(file):
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for _ in range(2):
            parent.stdin.write("go\n")
            parent.stdin.flush()
            assert parent.stdout.readline() == "charged\n"
            subprocess.run([*SHOW, str(file)], check=True, capture_output=True)
        assert spent(file) == "3\n"


def test_workers_that_outlive_the_block_of_their_parent_are_all_counted(file):
    context = multiprocessing.get_context("fork")
    closed = context.Event()

    def work():
        for _ in range(2):
            ledger.charge(Charge(Privacy("1/100")), {}).record(1)
        closed.wait(60)
        for _ in range(3):
            ledger.charge(Charge(Privacy("1/100")), {}).record(1)

    with Ledger(file, "default", BUDGET) as ledger:
        ledger.charge(Charge(Privacy("1/100")), {}).record(1)
        workers = [context.Process(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
    closed.set()
    for worker in workers:
        worker.join()
    with Ledger(file) as later:
        assert sum(event.kind == "released" for event in later.history()) == 11
        assert later.spent == Privacy("11/100")
        assert later.verify() == []


CLOSINGS = """
import os, sqlite3, sys
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy

class Connection(sqlite3.Connection):
    def close(self):
        ended.add(id(self))
        super().close()

    def __del__(self):
        ended.add(id(self))

ended = set()
connect = sqlite3.connect
sqlite3.connect = lambda *given, **more: connect(*given, **more, factory=Connection)
ledger = Ledger(sys.argv[1], "default", Privacy(3, "1e-5"))
connection, number = ledger._store._open.connection, ledger._store._open._number
known = id(connection)
ended.clear()
if child := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert ledger._store._open.connection is connection  # the parent goes on with it
    ledger.charge(Charge(Privacy(1)), {})
else:
    del connection
    assert ledger._store._open is None
    if sys.argv[2] == "use":
        ledger.charge(Charge(Privacy(1)), {})
        assert ledger._store._open._number != number
        ledger.close()
        assert ended
    del ledger
    os.fstat(number)
    assert known not in ended
    sys.exit(7)
"""


@pytest.mark.slow
@pytest.mark.parametrize("use", ["use", "leave"])
def test_a_child_neither_uses_nor_closes_what_its_parent_has_open(file, use):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", CLOSINGS, str(file), use],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert spent(file) == ("2\n" if use == "use" else "1\n")


def test_nobody_waits_to_fork_until_another_process_has_written(file, monkeypatch):
    waits, forked = threading.Event(), threading.Event()

    def pause():
        waits.set()
        forked.wait(60)

    monkeypatch.setattr("privmax.ledger.sqlite._pause", pause)
    with Ledger.create(file, budget=BUDGET) as ledger:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            thread = threading.Thread(target=ledger.charge, args=(ONE, {}))
            thread.start()
            waits.wait(60)
            start = time.monotonic()
            child = Child(lambda: ledger.spent)
            assert time.monotonic() - start < 10
        forked.set()
        assert child.next() == "+"
        child.end()
        thread.join()
        assert ledger.spent == Privacy(1)


# A fork within a transaction


@pytest.mark.slow
def test_a_fork_waits_for_the_transaction_of_another_thread(file, monkeypatch):
    ledger = Ledger.create(file, budget=BUDGET)
    inside, leave = threading.Event(), threading.Event()
    append = Rows.append

    def slow(rows, row):
        append(rows, row)
        inside.set()
        leave.wait(60)

    def charge():
        ledger.charge(ONE, {}, request="thread")

    monkeypatch.setattr(Rows, "append", slow)
    thread = threading.Thread(target=charge)
    thread.start()
    inside.wait(60)
    threading.Timer(0.3, leave.set).start()
    child = Child(lambda: ledger.charge(ONE, {}).record("child"))
    monkeypatch.undo()
    assert leave.is_set()
    assert child.next() == "+"
    thread.join()
    ledger.charge(ONE, {}, request="parent")
    child.end()
    with Ledger(file) as later:
        assert later.spent == Privacy(3)
        assert later.verify() == []


@pytest.mark.parametrize(
    "fork", [os.fork, raw_fork, fork_in_a_namespace], ids=["fork", "raw", "namespace"]
)
def test_a_child_forked_within_a_transaction_does_not_touch_it(file, monkeypatch, fork):
    """As by a signal handler: it cannot wait for the transaction that it interrupts."""
    ledger = Ledger.create(file, budget=BUDGET)
    append = Rows.append
    children = []

    def charge_anew():
        with Ledger(file) as own:
            own.charge(ONE, {})

    def charge():
        ledger._store._turn.renew()  # which a fork that Python does not hear of leaves undone
        ledger.charge(ONE, {})

    def forks(rows, row):
        append(rows, row)
        if not children:
            children.append(Child(charge, charge_anew, fork=fork))
            assert "forked during a" in children[0].next()

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", forks)
        ledger.charge(ONE, {}, request="parent")
    assert "forked during a" in children[0].next()
    children[0].end()
    with Ledger(file) as later:
        assert later.spent == Privacy(1)
        assert later.verify() == []


def test_a_child_forked_within_a_transaction_has_no_way_around_that(file, monkeypatch):
    """Not by a handle of its own either, when Python did not hear of the fork."""
    ledger = Ledger.create(file, budget=BUDGET)
    append = Rows.append

    def charge_anew():
        with Ledger(file) as own:
            own.charge(ONE, {})

    def forks(rows, row):
        append(rows, row)
        child = Child(charge_anew, fork=raw_fork)
        assert "forked during a" in child.next()
        child.end()

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", forks)
        ledger.charge(ONE, {})
    assert ledger.spent == Privacy(1)
    ledger.close()


ABANDONED = """
import os, sys
from privmax.ledger import Ledger, Charge
from privmax.ledger.rows import Rows
from privmax.privacy import Privacy
ledger = Ledger(sys.argv[1], "default", Privacy(3, "1e-5"))
append = Rows.append
def forks(rows, row):
    append(rows, row)
    child = os.fork()
    if not child:
        raise SystemExit(7)  # leaves the transaction of its parent, and ends as a program does
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
Rows.append = forks
ledger.charge(Charge(Privacy(1)), {}, request="parent")
"""


def test_a_child_that_ends_within_a_transaction_undoes_nothing(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        subprocess.run([sys.executable, "-W", "error", "-c", ABANDONED, str(file)], check=True)
        assert ledger.spent == Privacy(1)
        assert ledger.verify() == []


# Two handles in one process


def test_a_second_handle_does_not_drop_the_lock_of_the_first(file, monkeypatch):
    """POSIX drops all locks of a process on a file when it closes any descriptor of it."""
    first, second = Ledger.create(file, budget=BUDGET), Ledger(file)
    append = Rows.append
    seen = []

    def looks(rows, row):
        append(rows, row)
        assert second.spent == Privacy(0)
        second.close()
        other = subprocess.run(
            [sys.executable, "-c", TRY_TO_LOCK, str(file)],
            check=True,
            capture_output=True,
            text=True,
        )
        seen.append(other.stdout)

    monkeypatch.setattr(Rows, "append", looks)
    first.charge(ONE, {})
    assert seen == ["database is locked\n"]


TRY_TO_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("locked")
except sqlite3.OperationalError as error:
    print(error)
connection.close()
"""


# One file, and nothing beside it


def test_all_that_was_committed_is_in_the_one_file(file, tmp_path):
    with Ledger.create(file, budget=BUDGET) as ledger:
        ledger.charge(ONE, {}).record("x")
        assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
        shutil.copy(file, tmp_path / "copy.db")
        with Ledger(tmp_path / "copy.db") as copy:
            assert copy.spent == Privacy(1)
            assert copy.verify() == []


KILLED = """
import os, signal, sys
from privmax.ledger import Ledger, Charge
from privmax.privacy import Privacy
ledger = Ledger(sys.argv[1], "default", Privacy(3, "1e-5"))
ledger.charge(Charge(Privacy(1)), {}).record("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_that_is_moved_after_a_kill_has_kept_everything(file, tmp_path):
    """Also what a container leaves behind that had only the file, and not its folder."""
    run = subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False)
    assert run.returncode == -signal.SIGKILL
    (tmp_path / "elsewhere").mkdir()
    moved = file.rename(tmp_path / "elsewhere" / "moved.db")
    with Ledger(moved) as ledger:
        assert ledger.spent == Privacy(1)
        assert ledger.verify() == []


def test_an_older_copy_written_over_the_file_is_noticed_by_who_saw_more(file, tmp_path):
    """The name and the file stay the same; only what is in it tells."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        shutil.copy(file, tmp_path / "copy.db")
        ledger.charge(ONE, {})
        shutil.copyfile(tmp_path / "copy.db", file)
        for use in (lambda: ledger.charge(ONE, {}), lambda: ledger.spent):
            with pytest.raises(LedgerError, match="lost event 2, which this process has seen"):
                use()


# Files of privmax 0.1.0


@pytest.fixture
def older(file, tmp_path):
    """A file as 0.1.0 left it when it was killed: the last charge is only in the log beside it."""
    Ledger.create(file, budget=BUDGET).close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    source = tmp_path / "source.db"
    shutil.copy(file, source)
    with Ledger(source) as ledger:
        ledger.charge(ONE, {}, request="in the log")
    with closing(sqlite3.connect(source)) as connection:
        row = connection.execute("SELECT * FROM privmax_events WHERE seq = 2").fetchone()
    run = subprocess.run([sys.executable, "-c", LOGGED, str(file), *map(repr, row)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert Path(f"{file}-wal").stat().st_size
    source.unlink()
    return file


LOGGED = """
import ast, os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
row = [ast.literal_eval(text) for text in sys.argv[2:]]
connection.execute(f"INSERT INTO privmax_events VALUES ({', '.join('?' * len(row))})", row)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_with_a_log_is_converted_and_goes_on(older, tmp_path):
    with Ledger(older) as ledger:
        assert ledger.spent == Privacy(1)
        assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
        ledger.charge(ONE, {})
        assert ledger.verify() == []
    with closing(sqlite3.connect(older)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_file_that_an_older_privmax_has_open_is_not_converted_behind_its_back(older, monkeypatch):
    monkeypatch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
    with closing(sqlite3.connect(older)) as connection:
        assert connection.execute("SELECT count(*) FROM privmax_events").fetchone() == (2,)
        with pytest.raises(
            LedgerError, match="older privmax, and one of its processes still has it open"
        ):
            Ledger(older)
    assert Ledger(older).spent == Privacy(1)


@pytest.mark.parametrize(
    "use", [lambda ledger: ledger.charge(ONE, {}), lambda ledger: ledger.spent]
)
def test_a_file_that_an_older_privmax_converts_back_is_converted_again(
    file, tmp_path, monkeypatch, use
):
    """Between transactions there is no lock that would keep it from that."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        kept = []

        def opened():
            return ledger._store._open

        assert opened() is not None
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
            connection.execute("PRAGMA user_version = 1")  # now it has the log open
            with monkeypatch.context() as patch:
                patch.setattr("privmax.ledger.sqlite.PATIENCE", 0.05)
                patch.setattr("privmax.ledger.sqlite._pause", lambda: kept.append(opened()))
                with pytest.raises(LedgerError, match="processes still has it open"):
                    use(ledger)
            assert set(kept) == {None}  # or a fork meanwhile would inherit a lock on the log
            assert opened() is None
        use(ledger)
        assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert ledger.verify() == []


def test_a_database_of_somebody_else_is_not_converted(file):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(LedgerError, match="a database without ledgers"):
        Ledger(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_a_file_that_0_1_0_left_behind_opens_verifies_and_goes_on(tmp_path, rule):
    """Three ledgers of ten charges, made by that version, which was then killed: most is in the
    log.
    """
    with zipfile.ZipFile(Path(__file__).with_name("version_0_1_0.zip")) as made:
        made.extractall(tmp_path)
    with Ledger(tmp_path / "budget.db", rule) as ledger:
        assert ledger.verify() == []
        assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
        assert sum(event.kind == "released" for event in ledger.history()) == 10
        price = Charge(Privacy("1/1000", "1e-9"), bounded_range=True)
        assert ledger.charge(price, {"i": 0}, request="r0", account="ann").answer == {
            "items": [0],
            "free": {},
        }
        ledger.charge(Charge(Privacy("1/9"), unit="user"), {}, account="ann").record("x")
        ledger.open_account("bob", Privacy(1, "1e-6"))
        with pytest.raises(LedgerError, match="does not say what the privacy cost hides"):
            ledger.charge(Charge(Privacy("1/9")), {}, account="bob")
        ledger.charge(Charge(Privacy("1/9"), unit="user"), {}, account="bob")
        assert ledger.verify() == []


# Hard links

TWO_NAMES = "other.db", ".budget.db.backup", ".budget.db.abcd_123", ".budget.db.0123456789abcdef"


@pytest.mark.parametrize("name", TWO_NAMES)
def test_a_file_with_two_names_is_refused(file, tmp_path, name):
    """Also if the other is like those that files have while they are made; it is not removed."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        os.link(file, tmp_path / name)
        for use in (
            lambda: ledger.charge(ONE, {}),
            lambda: ledger.spent,
            lambda: Ledger(tmp_path / name),
        ):
            with pytest.raises(LedgerError, match="has 2 names"):
                use()
        (tmp_path / name).unlink()  # it is still there
        assert ledger.charge(ONE, {}).seq == 2


def test_a_second_name_given_during_a_charge_is_refused(file, tmp_path, monkeypatch):
    append = Rows.append

    def linked(rows, row):
        append(rows, row)
        os.link(file, tmp_path / "other.db")

    with Ledger.create(file, budget=BUDGET) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(Rows, "append", linked)
            with pytest.raises(LedgerError, match="has 2 names"):
                ledger.charge(ONE, {})
        (tmp_path / "other.db").unlink()
        assert ledger.spent == Privacy(0)


def test_one_who_died_while_making_the_file_is_in_nobody_s_way(file, tmp_path, monkeypatch):
    """The file is made under another name, and for a moment has both."""
    with monkeypatch.context() as patch:
        unlink = os.unlink
        patch.setattr(
            os, "unlink", lambda path: None if ".budget.db." in str(path) else unlink(path)
        )
        SqliteStore(file).prepare()
    assert file.stat().st_nlink == 2
    with Ledger.create(file, budget=BUDGET) as ledger:
        assert ledger.charge(ONE, {}).seq == 2
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]


# Mounts


@contextmanager
def bind_mount(source, target):
    """Mount a file or a folder in a second place; skip where that is not permitted."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    done = subprocess.run(
        ["mount", "--bind", str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting is not permitted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(target)], check=True)


@pytest.fixture(params=["statx", "mountinfo"])
def mounts(request, monkeypatch):
    """Both ways in which Linux tells what is mounted."""
    if request.param == "mountinfo":
        monkeypatch.setattr(files, "_ask_statx", lambda path: None)


def test_a_mounted_file_is_refused(file, tmp_path, mounts):
    """It has a second name with no second link: each would have a journal of its own."""
    with Ledger.create(file, budget=BUDGET) as ledger:
        other = tmp_path / "other name\t.db"
        other.touch()
        (tmp_path / "link.db").symlink_to(other)
        with bind_mount(file, other):
            assert file.stat().st_nlink == 1
            for name in (other, tmp_path / "link.db"):
                with pytest.raises(LedgerError, match="is a mount point"):
                    Ledger(name)
            assert ledger.charge(ONE, {}).seq == 2  # under its own name it can be used
        with bind_mount(file, file):
            for use in (lambda: ledger.charge(ONE, {}), lambda: ledger.spent, ledger.verify):
                with pytest.raises(LedgerError, match="is a mount point"):
                    use()
        assert ledger.spent == Privacy(1)


def test_a_file_that_is_mounted_during_a_charge_is_refused(file, monkeypatch, mounts):
    append = Rows.append
    with ExitStack() as stack, Ledger.create(file, budget=BUDGET) as ledger:

        def mounted(rows, row):
            append(rows, row)
            stack.enter_context(bind_mount(file, file))

        with monkeypatch.context() as patch:
            patch.setattr(Rows, "append", mounted)
            with pytest.raises(LedgerError, match="is a mount point"):
                ledger.charge(ONE, {})
        stack.close()
        assert ledger.spent == Privacy(0)


def test_a_mounted_folder_does_no_harm(file, tmp_path, mounts):
    """The journal is in the folder, under whichever name."""
    (tmp_path / "home").mkdir()
    (tmp_path / "other").mkdir()
    with Ledger.create(tmp_path / "home" / "b.db", budget=BUDGET) as ledger:
        with (
            bind_mount(tmp_path / "home", tmp_path / "other"),
            Ledger(tmp_path / "other" / "b.db") as other,
        ):
            assert other.charge(ONE, {}).seq == 2
        assert ledger.spent == Privacy(1)


def test_a_symbolic_link_is_the_file(file, tmp_path):
    with Ledger.create(file, budget=BUDGET) as ledger:
        (tmp_path / "other.db").symlink_to(file)
        with Ledger(tmp_path / "other.db") as other:
            assert other.charge(ONE, {}).seq == 2
        assert ledger.spent == Privacy(1)
