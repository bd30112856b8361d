"""Events of a long ledger: the last ones, evenly spaced ones and open charges, without the rest."""

from __future__ import annotations

import pytest

from privmax import Privacy
from privmax.errors import ParameterError
from privmax.ledger import Charge, Ledger
from privmax.ledger.reading import PAGE
from privmax.ledger.sqlite import SqliteStore

PRICE = Charge(Privacy("1/1000"))
CHARGES = 2 * PAGE


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A ledger of several pages of events: one creation, charges, and an answer to the first."""
    file = tmp_path_factory.mktemp("history") / "budget.db"
    with Ledger.create(file, budget=Privacy(10)) as made:
        with made.batch() as batch:
            charged = [batch.charge(PRICE, {}, request=f"r{one}") for one in range(CHARGES)]
        charged[0].record("x")
        charged[-1].record("y")
    return file


@pytest.fixture
def ledger(place):
    with Ledger(place) as opened:
        yield opened


@pytest.fixture
def fetched(monkeypatch):
    """How many rows the database gave."""
    counts = []
    execute = SqliteStore._execute

    def counting(store, query, bound=(), **more):
        found = execute(store, query, bound, **more)
        counts.append(len(found))
        return found

    monkeypatch.setattr(SqliteStore, "_execute", counting)
    return counts


def test_the_last_events_are_read_without_the_others(ledger, fetched):
    every = list(ledger.history())
    assert len(every) == ledger.event_count == CHARGES + 3
    for last in (1, 7, PAGE + 1, len(every), len(every) + 5):
        fetched.clear()
        assert list(ledger.history(last=last)) == every[-last:]
        assert sum(fetched) <= last + 2 + len(fetched)  # and the head before each page


def test_a_history_is_read_as_it_is_iterated_over(ledger, fetched):
    first = next(ledger.history())
    assert first.seq == 1
    assert sum(fetched) <= PAGE + 2


def test_the_last_events_are_those_of_when_they_were_asked_for(tmp_path):
    with Ledger.create(tmp_path / "b.db", budget=Privacy(1)) as made:
        made.charge(PRICE, {})
        found = made.history(last=2)
        first = next(found)
        made.charge(PRICE, {})
        assert [first.seq, *(event.seq for event in found)] == [1, 2]


@pytest.mark.parametrize("last", [0, -1, 1.5, "3"])
def test_how_many_events_must_be_a_number_of_events(ledger, last):
    with pytest.raises(ParameterError, match="last"):
        ledger.history(last=last)


def test_charges_without_an_answer_are_found_without_the_others(ledger, fetched):
    wanted = [f"r{one}" for one in range(1, CHARGES - 1)]
    assert [event.request for event in ledger.unanswered()] == wanted
    fetched.clear()
    assert [event.request for event in ledger.unanswered(last=3)] == wanted[-3:]
    assert sum(fetched) <= 10


def test_a_picture_needs_a_few_events_only(ledger, fetched):
    for most in (2, 10, 333):
        fetched.clear()
        found = [event.seq for event in ledger.sample(most)]
        assert len(found) <= most
        assert (found[0], found[-1]) == (1, ledger.event_count)
        gaps = {one - other for one, other in zip(found[1:], found, strict=False)}
        assert max(gaps) - min(gaps) <= 1
        assert sum(fetched) <= most + 10
    assert list(ledger.sample(10**6)) == list(ledger.history())


def test_showing_a_long_ledger_takes_the_steps_of_a_short_one(tmp_path, monkeypatch):
    """Steps of the database, of which a look at every event takes some."""
    connect, steps = SqliteStore._connect, []

    def counted(store, path):
        connection = connect(store, path)
        connection.set_progress_handler(lambda: steps.append(1), 1)
        return connection

    monkeypatch.setattr(SqliteStore, "_connect", counted)
    shows = {
        "standing": Ledger.standing,
        "accounts": Ledger.accounts,
        "events": lambda ledger: ledger.event_count,
        "spent": lambda ledger: ledger.spent,
        "last": lambda ledger: list(ledger.history(last=5)),
        "picture": lambda ledger: list(ledger.sample(5)),
    }
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(10)) as ledger:
        for name in ("zoe", "ann"):
            ledger.open_account(name, Privacy(3))
        counts = []
        for charges in (8, CHARGES):
            with ledger.batch() as batch:
                for number in range(charges):
                    batch.charge(PRICE, {}, account=["ann", None, "zoe"][number % 3])
            counts.append({})
            for name, show in shows.items():
                show(ledger)
                steps.clear()
                show(ledger)
                counts[-1][name] = len(steps)
        assert list(ledger.accounts()) == ["zoe", "ann"]
        assert ledger.verify() == []
    few, many = counts
    assert min(few.values()) > 0
    assert {name: count for name, count in many.items() if count > few[name] + 50} == {}
