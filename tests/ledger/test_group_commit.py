"""Threads that charge or record at the same time share a commit, and each has its own outcome."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from faults.scene import POSTGRES, SQLITE, Yard

from privmax.errors import AnswerError, BudgetError, LedgerError
from privmax.ledger import Charge, Ledger
from privmax.ledger.group import MOST
from privmax.ledger.rows import Rows, UnwritableError
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"))
SECRET = "zorblax"
EITHER = pytest.mark.parametrize(
    "where", [SQLITE, pytest.param(POSTGRES, marks=pytest.mark.engines)]
)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1)) as made:
        yield made
        assert made.verify() == []


def kinds(ledger):
    return [event.kind for event in ledger.history()][1:]


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def meet(ledger, first, *others):
    """Run jobs in threads: the first holds up the others, which are then served together."""
    group = ledger._chain.group
    assert ledger.rule  # so that nothing is read about the ledger now
    futures = []

    def leads():
        if group._lock.acquire(blocking=False):
            group._lock.release()
            return False
        return not group._waiting

    with ThreadPoolExecutor(1 + len(others)) as pool:
        with ledger._store._turn.take():
            futures.append(pool.submit(first))
            wait_until(leads)
            for number, job in enumerate(others, 1):
                futures.append(pool.submit(job))
                wait_until(lambda number=number: len(group._waiting) == number)
        return [outcome(future) for future in futures]


def outcome(future: Future[object]) -> object:
    return future.exception(30) or future.result()


@contextmanager
def counted(monkeypatch, ledger):
    """Count transactions that write."""
    kind = type(ledger._store)
    times = []
    with monkeypatch.context() as patch:
        for name in ("writing", "write"):
            original = getattr(kind, name)

            def count(store, *args, original=original, **options):
                times.append(1)
                return original(store, *args, **options)

            if name == "writing" or ledger._store.writes:
                patch.setattr(kind, name, count)
        yield times


def charging(ledger, request, price=TENTH, what=None, account=None):
    return lambda: ledger.charge(price, what or {}, request=request, account=account)


@EITHER
def test_threads_that_wait_share_a_commit(where, monkeypatch):
    with Yard() as yard, Ledger.create(yard.place(where), "met", budget=Privacy(10)) as ledger:
        ledger.open_account("ann", Privacy(1))
        ledger.charge(TENTH, {})  # from here on PostgreSQL knows how to write by itself
        with counted(monkeypatch, ledger) as times:
            jobs = [charging(ledger, f"r{n}", account=[None, "ann"][n % 2]) for n in range(9)]
            made = meet(ledger, *jobs)
            assert len(times) == 2
            assert sorted(one.seq for one in made) == list(range(4, 13))
            assert not any(one.recorded for one in made)
            records = [lambda n=n, one=one: one.record(n) for n, one in enumerate(made)]
            assert meet(ledger, *records) == list(range(9))
            assert len(times) == 4
        assert ledger.spent == Privacy(1)
        assert ledger.accounts()["ann"] == (Privacy(1), Privacy("4/10"))
        assert ledger.verify() == []
        assert [ledger.charge(TENTH, {}, request=f"r{n}", account=[None, "ann"][n % 2]).answer
                for n in range(9)] == list(range(9))  # fmt: skip
        assert ledger.left_after("r8") == Privacy(9)


@EITHER
def test_a_charge_that_does_not_fit_is_refused_alone(where, monkeypatch):
    with Yard() as yard, Ledger.create(yard.place(where), "met", budget=Privacy(1)) as ledger:
        ledger.charge(TENTH, {})
        large = Charge(Privacy("0.75"))
        prices = [TENTH, TENTH, large, TENTH, large, TENTH]
        jobs = [charging(ledger, f"r{n}", price) for n, price in enumerate(prices)]
        with counted(monkeypatch, ledger) as times:
            made = meet(ledger, *jobs)
        assert len(times) == 2
        refused = [price is large for price in prices]
        assert [isinstance(one, BudgetError) for one in made] == refused
        assert "cost is epsilon 0.75" in str(made[2])
        assert not hasattr(made[2], "__notes__")
        assert made[2] is not made[4]
        assert ledger.spent == Privacy("5/10")
        assert [ledger.knows(f"r{n}") for n in range(6)] == [price is TENTH for price in prices]
        assert ledger.verify() == []


def test_another_error_is_that_of_its_thread(ledger):
    ledger.charge(TENTH, {"n": 1}, request="known")
    jobs = [charging(ledger, name) for name in ("a", "b", "known", "c")]
    made = meet(ledger, *jobs, charging(ledger, "d", account="nobody"))
    assert isinstance(made[2], LedgerError)
    assert "'known' was charged before" in str(made[2])
    assert "has no account 'nobody'" in str(made[4])
    assert [one.request for one in (made[0], made[1], made[3])] == ["a", "b", "c"]
    assert ledger.spent == Privacy("4/10")


def test_threads_may_ask_for_one_request_and_are_given_one_answer(ledger):
    made = meet(ledger, *[charging(ledger, name) for name in ("first", "r", "r", "s", "r")])
    assert [one.seq for one in made] == [2, 3, 3, 4, 3]
    assert ledger.spent == Privacy("3/10")
    first, *held = made
    jobs = [lambda n=n, one=one: one.record(n) for n, one in enumerate(held)]
    answers = meet(ledger, lambda: first.record("first"), charging(ledger, "s"), *jobs)
    assert answers[2:] == [0, 0, 2, 0]
    assert answers[1].answer == 2  # although it came first
    assert kinds(ledger) == ["reserved"] * 3 + ["released"] * 3


def test_more_threads_than_share_a_commit(ledger, monkeypatch):
    assert MOST >= 50
    monkeypatch.setattr("privmax.ledger.group.MOST", 3)
    jobs = [charging(ledger, f"r{n}") for n in range(9)]
    with counted(monkeypatch, ledger) as times:
        meet(ledger, *jobs)
    assert len(times) == 4  # 1, 3, 3 and 2
    assert ledger.spent == Privacy("9/10")


def test_who_is_served_does_not_wait_for_the_lock(ledger):
    """A thread that comes meanwhile may have it, and keep it for the time of another commit."""
    lock, entered = ledger._chain.group._lock, []

    class Counting:
        acquire, release, __exit__ = lock.acquire, lock.release, lock.__exit__

        def __enter__(self):
            entered.append(threading.get_ident())
            return lock.__enter__()

    ledger._chain.group._lock = Counting()
    meet(ledger, *[charging(ledger, f"r{n}") for n in range(6)])
    assert len(set(entered)) == 2  # the first, and the one that wrote for the others
    assert ledger.spent == Privacy("6/10")


def unwritable(monkeypatch, fails):
    """Rows with something in their body do not fit on the disk."""
    append = Rows.append

    def full(rows, row):
        if fails(row.body):
            raise UnwritableError("the disk is full.")
        append(rows, row)

    monkeypatch.setattr(Rows, "append", full)


def test_an_answer_that_cannot_be_written_is_the_only_one_that_is_not(ledger, monkeypatch):
    held = [ledger.charge(TENTH, {}, request=f"r{n}") for n in range(4)]
    answers = ["a", "b", SECRET, "c"]
    with monkeypatch.context() as patch:
        unwritable(patch, lambda body: SECRET in body)
        jobs = [
            lambda one=one, answer=answer: one.record("".join(answer))
            for one, answer in zip(held, answers, strict=True)
        ]
        made = meet(ledger, *jobs, charging(ledger, "new"))
    assert made[:2] == ["a", "b"]
    assert made[3] == "c"
    assert isinstance(made[2], AnswerError)
    assert made[4].seq in {7, 8, 9}  # tried alone, in any order
    again = ledger.charge(TENTH, {}, request="r2")
    assert (again.closed, again.recorded) == (True, False)
    with pytest.raises(LedgerError, match="is closed"):
        again.record("shorter")
    assert held[2].close("none") == "none"


def test_of_two_answers_to_a_request_a_shorter_one_does_not_win(ledger, monkeypatch):
    """The first closes the request: otherwise answers that fit would be favored."""
    ledger.charge(TENTH, {}, request="r")
    other, long, short = (ledger.charge(TENTH, {}, request=name) for name in ("o", "r", "r"))
    with monkeypatch.context() as patch:
        unwritable(patch, lambda body: SECRET in body)
        made = meet(
            ledger,
            lambda: other.record(1),
            lambda: long.record("".join(SECRET)),
            lambda: short.record("b"),
        )
        assert isinstance(made[1], AnswerError)
        assert isinstance(made[2], LedgerError)
        assert "is closed" in str(made[2])
    assert not any(event.kind == "released" and event.request == "r" for event in ledger.history())


def test_nor_does_it_in_a_batch(ledger, monkeypatch):
    long, short = (ledger.charge(TENTH, {}, request="r") for _ in range(2))
    unwritable(monkeypatch, lambda body: SECRET in body)
    with pytest.raises(AnswerError), ledger.batch() as batch:
        _ = batch.record(long, "".join(SECRET)), batch.record(short, "b")
    with pytest.raises(LedgerError, match="is closed"):
        short.record("b")
    assert long.close("none") == "none"


def test_what_was_closed_with_others_is_not_drawn_again(ledger, monkeypatch):
    """The ledger cannot be reached when the answer is tried alone: that is no reason to redraw."""
    held = [ledger.charge(TENTH, {}, request=f"r{n}") for n in range(3)]
    writing = SqliteStore.writing

    def fails(store, name, request=None, *wanted):
        if request == "r1":
            raise LedgerError("was locked", retry=True)
        return writing(store, name, request, *wanted)

    with monkeypatch.context() as patch:
        unwritable(patch, lambda body: SECRET in body)
        patch.setattr(SqliteStore, "writing", fails)
        jobs = [lambda one=one, n=n: one.record([0, 1, "".join(SECRET)][n])
                for n, one in enumerate(held)]  # fmt: skip
        made = meet(ledger, *jobs)
    assert [type(one) for one in made] == [int, AnswerError, AnswerError]
    assert [ledger.charge(TENTH, {}, request=f"r{n}").closed for n in range(3)] == [
        False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_thread_that_is_interrupted_takes_nothing_from_others(ledger, monkeypatch, error):
    """And nothing of theirs is in the frames of its error."""
    held = [ledger.charge(TENTH, {}, request=f"r{n}") for n in range(3)]
    append, failed = Rows.append, []

    def interrupted(rows, row):
        if SECRET in row.body and not failed:
            failed.append(threading.get_ident())
            raise error
        append(rows, row)

    monkeypatch.setattr(Rows, "append", interrupted)
    made = meet(
        ledger,
        lambda: held[0].record("a"),
        charging(ledger, "new"),  # this one writes for the others
        lambda: held[1].record("".join(SECRET)),
        lambda: held[2].record("c"),
    )
    assert failed
    assert [made[0], *made[2:]] == ["a", SECRET, "c"]
    if error is MemoryError:
        assert made[1].seq
        return
    assert isinstance(made[1], KeyboardInterrupt)
    trace = made[1].__traceback__
    while trace is not None:
        if "/privmax/" in trace.tb_frame.f_code.co_filename:
            assert SECRET not in repr(trace.tb_frame.f_locals)
            assert not set(trace.tb_frame.f_locals) & {"places", "pairs", "entries"}
        trace = trace.tb_next
    assert made[1].__context__ is None


def test_a_thread_that_stops_waiting_is_not_charged(ledger):
    group = ledger._chain.group
    interrupted = charging(ledger, "r")

    class Interrupting:
        def __enter__(self):
            raise KeyboardInterrupt

        def __exit__(self, *_):
            pass

    lock, group._lock = group._lock, Interrupting()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    group._lock = lock
    assert len(group._waiting) == 1
    assert meet(ledger, charging(ledger, "s"))[0].seq == 2
    assert not ledger.knows("r")


def test_a_signal_handler_is_refused_while_its_thread_writes(ledger, monkeypatch):
    append, errors = Rows.append, []

    def interrupted(rows, row):
        append(rows, row)
        if row.request == "outer":
            with suppress(LedgerError):
                errors.append("charged")
                ledger.charge(TENTH, {}, request="inner")
                errors.append("taken")

    monkeypatch.setattr(Rows, "append", interrupted)
    ledger.charge(TENTH, {}, request="outer")
    assert errors == ["charged"]
    assert kinds(ledger) == ["reserved"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_serves_itself_alone(ledger):
    """It is forked while threads wait, of which it has none."""

    def forked():
        child = os.fork()
        if not child:
            try:
                ledger.charge(TENTH, {}, request="child")
            finally:
                os._exit(0 if ledger.knows("child") else 1)
        return os.waitpid(child, 0)[1]

    group = ledger._chain.group
    assert ledger.rule
    with ThreadPoolExecutor(3) as pool:
        with ledger._store._turn.take():
            waiting = [pool.submit(charging(ledger, f"r{n}")) for n in range(3)]
            wait_until(lambda: len(group._waiting) == 2)
            assert forked() == 0
        assert {one.result(30).request for one in waiting} == {"r0", "r1", "r2"}
    assert ledger.spent == Privacy("4/10")


def test_a_crash_at_the_commit_charges_none_or_all(tmp_path):
    """The process dies before or after the commit of a group; the requests are repeated."""
    for place, committed in (("COMMIT", False), ("after", True)):
        file = tmp_path / f"{place}.db"
        Ledger.create(file, budget=Privacy(1)).close()
        child = os.fork()
        if not child:
            execute, commits = SqliteStore._execute, []

            def dies(store, query, *args, execute=execute, commits=commits, place=place, **options):
                commits += [query] if query == "COMMIT" else []
                if len(commits) == 2 and place == "COMMIT":
                    os.kill(os.getpid(), signal.SIGKILL)
                rows = execute(store, query, *args, **options)
                if len(commits) == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                return rows

            SqliteStore._execute = dies
            with Ledger(file) as own:
                meet(own, *[charging(own, f"r{n}") for n in range(6)])
            os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        with Ledger(file) as ledger:
            assert [ledger.knows(f"r{n}") for n in range(6)] == [True, *[committed] * 5]
            assert not any(ledger.charge(TENTH, {}, request=f"r{n}").recorded for n in range(6))
            assert ledger.spent == Privacy("6/10")
            assert ledger.verify() == []


@pytest.mark.slow
@EITHER
def test_killed_threads_lose_nothing_that_they_returned(where, tmp_path):
    kills, threads = 10, 8
    with Yard() as yard:
        place = yard.place(where)
        Ledger.create(place, "killed", budget=Privacy(10**6)).close()
        world = tmp_path / "world"
        world.touch()
        chance = random.Random(11)
        for kill in range(kills):
            kill_threads(place, kill, threads, world, chance.uniform(0.05, 0.4))
        told = [line.split() for line in world.read_text().splitlines() if line]
        with Ledger(place, "killed") as ledger:
            assert ledger.verify() == []
            events = list(ledger.history())
            answers = {e.request: e.body["answer"] for e in events if e.kind == "released"}
            charged = [e.request for e in events if e.kind == "reserved"]
            assert len(charged) == len(set(charged))
            assert ledger.spent == Privacy(len(charged) * TENTH.privacy.epsilon)
    assert len(told) > kills
    for verb, request, *answer in told:
        assert request in charged
        assert verb == "charged" or answers[request] == int(*answer)


def kill_threads(place, kill, threads, world, seconds):
    """Kill a process whose threads release and write down, with one write each, what they got."""
    ready, begun = os.pipe()
    child = os.fork()
    if not child:
        number = os.open(world, os.O_APPEND | os.O_WRONLY)

        def release(ledger, thread):
            for n in range(10**6):
                held = ledger.charge(TENTH, {}, request=f"{kill}-{thread}-{n}")
                os.write(number, f"charged {held.request}\n".encode())
                answer = held.record(random.SystemRandom().randrange(10**9))
                os.write(number, f"released {held.request} {answer}\n".encode())

        try:
            with Ledger(place, "killed") as own, ThreadPoolExecutor(threads) as pool:
                os.close(begun)
                for thread in range(threads):
                    pool.submit(release, own, thread)
        finally:
            os._exit(1)
    os.close(begun)
    os.read(ready, 1)
    os.close(ready)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
