"""Batches: many requests, one commit, all or nothing."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults.scene import POSTGRES, SQLITE, Yard

from privmax.errors import AnswerError, BudgetError, LedgerError, ParameterError
from privmax.ledger import Charge, Ledger
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"))
SECRET = "zorblax"


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1)) as made:
        yield made


def kinds(ledger):
    return [event.kind for event in ledger.history()][1:]


def test_a_batch_is_charged_at_the_end_of_its_block_and_recorded_by_another(ledger):
    ledger.open_account("ann", Privacy(1))
    with ledger.batch() as batch:
        made = [
            batch.charge(TENTH, {"n": n}, request=f"r{n}", account=[None, "ann"][n % 2])
            for n in range(4)
        ]
        assert [one.request for one in made] == ["r0", "r1", "r2", "r3"]
        assert ledger.spent == Privacy(0)  # and the ledger can be used
    assert ledger.spent == Privacy("4/10")
    assert [one.seq for one in made] == [3, 4, 5, 6]
    assert not any(one.recorded for one in made)
    with ledger.batch() as batch:
        for n, one in enumerate(made):
            batch.record(one, n)
            assert one.answer is None
    assert [one.answer for one in made] == [0, 1, 2, 3]
    assert all(one.recorded for one in made)
    assert ledger.charge(TENTH, {"n": 3}, request="r3", account="ann").answer == 3
    assert kinds(ledger) == ["account", *["reserved"] * 4, *["released"] * 4]
    assert ledger.accounts()["ann"] == (Privacy(1), Privacy("2/10"))
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "use",
    [
        lambda one: one.seq,
        lambda one: one.recorded,
        lambda one: one.answer,
        lambda one: one.when,
        lambda one: one.record(1),
    ],
)
def test_a_reservation_is_worth_nothing_before_the_commit(ledger, use):
    with ledger.batch() as batch:
        one = batch.charge(TENTH, {}, request="r")
        with pytest.raises(
            LedgerError, match=r"'r' is not known to be charged.* Nothing may be drawn"
        ):
            use(one)
        assert repr(one) == "Reservation(request='r', seq=None, recorded=False)"
        with pytest.raises(LedgerError, match="Nothing may be drawn"):
            batch.record(one, 1)
    use(one)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(12))
def test_what_does_not_fit_refuses_all(ledger, place):
    large = Charge(Privacy("0.95"))
    with pytest.raises(BudgetError, match="Nothing was charged") as caught, ledger.batch() as batch:
        made = [
            batch.charge(large if n == place else TENTH, {}, request=f"r{n}") for n in range(12)
        ]
    assert "of a batch. Nothing of the batch is charged" in caught.value.__notes__[0]
    assert kinds(ledger) == []
    for one in made:
        with pytest.raises(LedgerError, match="Nothing may be drawn"):
            one.record(1)
    assert (
        ledger.charge(TENTH, {}, request="r0").seq == 2
    )  # nor does the handle believe that it saw them
    assert ledger.verify() == []


def test_the_request_that_does_not_fit_is_told_by_its_id_and_place(ledger):
    prices = {"a": TENTH, "b": Charge(Privacy(1)), "c": TENTH}
    with pytest.raises(BudgetError) as caught, ledger.batch() as batch:
        _ = [batch.charge(price, {}, request=name) for name, price in prices.items()]
    assert "It was request 'b', number 2 of a batch." in caught.value.__notes__[0]


def test_an_error_in_the_block_charges_nothing(ledger):
    made = []

    def ask(what):
        with ledger.batch() as batch:
            made.append(batch.charge(TENTH, {}))
            batch.charge(TENTH, {"x": what()})

    with pytest.raises(ZeroDivisionError):
        ask(lambda: 1 / 0)
    with pytest.raises(ParameterError):
        ask(object)
    for one in made:
        with pytest.raises(LedgerError, match="Nothing may be drawn"):
            one.record(1)
    assert kinds(ledger) == []


def test_request_ids_are_repeated_within_batches_and_between_them(ledger):
    ledger.charge(TENTH, {}, request="old").record("known")
    with ledger.batch() as batch:
        made = [batch.charge(TENTH, {}, request=name) for name in ("a", "old", "a", "b", "a")]
    assert [one.seq for one in made] == [4, 2, 4, 5, 4]
    assert (made[1].recorded, made[1].answer) == (True, "known")
    assert made[1].when is not None
    with ledger.batch() as batch:
        for n, one in enumerate(made):
            batch.record(one, n)
    assert [one.answer for one in made] == [0, "known", 0, 3, 0]  # the first that is recorded
    with ledger.batch() as batch:
        again = [batch.charge(TENTH, {}, request=name) for name in ("a", "b")]
    assert [one.answer for one in again] == [0, 3]
    with pytest.raises(LedgerError, match="with a different question"), ledger.batch() as batch:
        again = [batch.charge(TENTH, {"n": n}, request="new") for n in range(2)]
    assert ledger.spent == Privacy("3/10")
    assert ledger.verify() == []


def test_a_batch_is_used_once_and_within_its_block(ledger, tmp_path):
    batch = ledger.batch()
    with pytest.raises(LedgerError, match="inside its block"):
        batch.charge(TENTH, {})
    with batch, pytest.raises(LedgerError, match="used once"):
        batch.__enter__()
    with pytest.raises(LedgerError, match="inside its block"):
        batch.charge(TENTH, {})
    with pytest.raises(LedgerError, match="used once"), batch:
        pass
    with Ledger(tmp_path / "budget.db") as handle, ledger.batch() as batch:
        other = handle.charge(TENTH, {})
        with pytest.raises(LedgerError, match="another ledger"):
            batch.record(other, 1)


def test_threads_share_a_batch_and_a_handle(ledger):
    with ledger.batch() as batch, ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: batch.charge(Charge(Privacy("1/100")), {"n": n}), range(40)))
    assert sorted(one.seq for one in made) == list(range(2, 42))

    def spend(_):
        refused = 0
        for _ in range(3):
            try:
                with ledger.batch() as own:
                    for _ in range(2):
                        own.charge(TENTH, {})
            except BudgetError:
                refused += 1
        return refused

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 9  # 0.6 were left, for 3 batches
    assert ledger.spent == Privacy(1)
    assert ledger.verify() == []


def test_answers_that_are_not_recorded_are_in_no_frame(ledger, monkeypatch):
    with ledger.batch() as batch:
        made = [batch.charge(TENTH, {}) for _ in range(2)]
    execute = SqliteStore._execute

    def fails(store, query, bound=(), **more):
        if SECRET in repr(bound):
            raise MemoryError
        return execute(store, query, bound, **more)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_execute", fails)
        batch = ledger.batch()
        with batch:
            batch.record(made[0], "first")
            batch._entries[0][1]["answer"] = "".join(SECRET)
            with pytest.raises(MemoryError) as caught:
                batch.__exit__(None, None, None)
    trace = caught.value.__traceback__.tb_next
    while trace is not None:
        assert SECRET not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next
    assert caught.value.__context__ is None
    assert kinds(ledger) == ["reserved", "reserved"]


@pytest.mark.parametrize("use", ["no JSON", "another ledger", "no block", "not charged"])
def test_nor_are_answers_that_a_batch_does_not_take(ledger, tmp_path, use):
    class Odd:
        def __repr__(self):
            return SECRET

    held = ledger.charge(TENTH, {})
    batch = ledger.batch()
    with Ledger(tmp_path / "other.db", budget=Privacy(1)) as other:
        if use != "no block":
            batch.__enter__()
        if use == "another ledger":
            held = other.charge(TENTH, {})
        if use == "not charged":
            held = batch.charge(TENTH, {})
        with pytest.raises((LedgerError, ParameterError)) as caught:
            batch.record(held, Odd() if use == "no JSON" else "".join(SECRET))
    trace = caught.value.__traceback__.tb_next
    while trace is not None:
        assert SECRET not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next
    assert caught.value.__context__ is None


def test_an_answer_that_cannot_be_written_is_told_from_a_ledger_that_cannot(ledger, monkeypatch):
    from privmax.ledger.rows import UnwritableError

    with ledger.batch() as batch:
        one = batch.charge(TENTH, {})

    def full(*_, **__):
        raise UnwritableError("the disk is full.")

    monkeypatch.setattr("privmax.ledger.rows.Rows.append", full)
    with pytest.raises(AnswerError, match="full"), ledger.batch() as batch:
        batch.record(one, 1)
    with pytest.raises(AnswerError, match="full"), ledger.batch() as batch:  # one is enough
        _ = batch.charge(TENTH, {}), batch.record(one, 1)
    with pytest.raises(LedgerError, match="full") as caught, ledger.batch() as batch:
        batch.charge(TENTH, {})
    assert "Repeat all of it" in caught.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize("where", [SQLITE, pytest.param(POSTGRES, marks=pytest.mark.engines)])
def test_a_killed_process_leaves_whole_batches(where):
    kills, size = 12, 5
    with Yard() as yard:
        place = yard.place(where)
        Ledger.create(place, "killed", budget=Privacy(10**6)).close()
        events = _events_after_kills(place, kills, size)
    assert len(events) > size
    for start in range(0, len(events), size):
        together = events[start : start + size]
        assert len({event.kind for event in together}) == 1
        assert len({event.request.rpartition(" ")[0] for event in together}) == 1
        assert len(together) == size


def _events_after_kills(place, kills, size):
    """What a ledger holds after processes that charge and record batches were killed."""
    chance = random.Random(7)
    for kill in range(kills):
        ready, begun = os.pipe()
        child = os.fork()
        if not child:
            try:
                with Ledger(place, "killed") as own:
                    os.close(begun)  # a busy machine may take long to come here
                    for number in range(10**6):
                        with own.batch() as batch:
                            made = [
                                batch.charge(TENTH, {}, request=f"{kill} {number} {n}")
                                for n in range(size)
                            ]
                        with own.batch() as batch:
                            for one in made:
                                batch.record(one, one.request)
            finally:
                os._exit(1)
        os.close(begun)
        os.read(ready, 1)
        os.close(ready)
        time.sleep(chance.uniform(0.02, 0.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with Ledger(place, "killed") as ledger:
        assert ledger.verify() == []
        return list(ledger.history())[1:]


def test_others_do_not_wait_for_the_block(ledger, tmp_path):
    done = threading.Event()

    def other():
        with Ledger(tmp_path / "budget.db") as own:
            own.charge(TENTH, {})
        done.set()

    with ledger.batch() as batch:
        batch.charge(TENTH, {})
        threading.Thread(target=other).start()
        assert done.wait(30)
    assert ledger.spent == Privacy("2/10")
