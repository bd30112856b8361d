"""What a ledger asks of its store: to write an event, to look up what is needed, to be closed."""

from __future__ import annotations

import pytest

from privmax.errors import LedgerError, ParameterError
from privmax.ledger import Ledger, Price
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

ONE = Price(Privacy(1))


@pytest.fixture
def file(tmp_path):
    Ledger.create(tmp_path / "budget.db", budget=Privacy(3)).close()
    return tmp_path / "budget.db"


@pytest.fixture
def writing(monkeypatch):
    """A store that writes events by itself, as one function says."""

    def let(write):
        monkeypatch.setattr(SqliteStore, "writes", True)
        monkeypatch.setattr(SqliteStore, "write", write)

    return let


def test_a_draft_says_which_event_was_seen_last(file, writing):
    drafts = []
    writing(lambda store, ledger, draft: drafts.append(draft))
    with Ledger(file) as ledger:
        for _ in range(2):
            ledger.charge(ONE, {})
        events = list(ledger.history())
    assert [draft.seen for draft in drafts] == [(0, ""), (2, events[1].hash)]
    assert [draft.known for draft in drafts] == [None, events[1].hash]


def test_what_the_store_wrote_by_itself_is_not_written_again(file, writing):
    begun = []

    def write(store, ledger, draft):
        begun.append(store.writing(ledger))
        return begun[0].__enter__()

    writing(write)
    with Ledger(file) as ledger:
        assert ledger.charge(ONE, {}).seq == 2
        begun[0].__exit__(None, None, None)
        assert ledger.spent == Privacy(1)


def test_nothing_is_drawn_for_an_event_that_privmax_would_not_have_written(file, writing):
    class Wrong:
        def of_request(self, request, kind):
            raise LedgerError("It does not follow.")

    writing(lambda store, ledger, draft: Wrong())
    told = r"for the request 'r' that privmax would not have written\..* It does not follow\."
    with Ledger(file) as ledger, pytest.raises(LedgerError, match=told):
        ledger.charge(ONE, {}, request="r")


def test_a_transaction_says_what_it_is_going_to_ask_about(file, monkeypatch):
    wanted = []
    writing = SqliteStore.writing

    def noting(store, ledger, request=None, lookup=()):
        wanted.append(lookup)
        return writing(store, ledger, request)

    with Ledger(file) as ledger:
        ledger.open_account("ann", Privacy(1))
        monkeypatch.setattr(SqliteStore, "writing", noting)
        ledger.charge(ONE, {}, request="a").record("x")
        ledger.charge(ONE, {}, request="b", account="ann")
    assert wanted == [(["a"], [], 1), (["a"], [], 3), (["b"], ["ann"], 4)]


def name_nobody(file):
    with pytest.raises(ParameterError):
        Ledger.at(file, who="")


@pytest.mark.parametrize("look", [Ledger.names, name_nobody])
def test_a_place_that_was_only_looked_into_is_closed(file, monkeypatch, look):
    closed = []
    monkeypatch.setattr(SqliteStore, "close", lambda store: closed.append(store))
    look(file)
    assert len(closed) == 1
