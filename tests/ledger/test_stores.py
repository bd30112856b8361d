"""What a ledger asks of its store: to write an event, to look up what is needed, to be closed."""

from __future__ import annotations

import getpass
import sqlite3

import pytest

from privmax.errors import LedgerError, ParameterError
from privmax.ledger import Charge, Ledger, chain, files, opening
from privmax.ledger.events import EventRow
from privmax.ledger.parts import _find
from privmax.ledger.rows import LAST, Rows
from privmax.ledger.sqlite import SqliteStore
from privmax.privacy import Privacy

ONE = Charge(Privacy(1))


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


def find_nothing(file):
    assert _find(Ledger.at(file), file, "nothing") is None


@pytest.mark.parametrize("look", [Ledger.names, name_nobody, find_nothing])
def test_a_place_that_was_only_looked_into_is_closed(file, monkeypatch, look):
    closed = []
    monkeypatch.setattr(SqliteStore, "close", lambda store: closed.append(store))
    look(file)
    assert len(closed) == 1


def test_what_a_transaction_added_is_found_without_asking_again():
    asked = []
    rows = Rows(lambda query, bound: asked.append(query) or [], "default")
    rows._known_rows["account", "ann", LAST] = None  # as looked up before
    row = EventRow(7, "reserved", "", "me", "r", "ann", "{}", "{}", "abc")
    rows.append(row)
    assert len(asked) == 1
    assert rows.head() == (7, "abc")
    assert rows.at(7) == rows.of_request("r", "reserved") == rows.last_of_account("ann") == row
    assert rows.is_new(row)
    assert len(asked) == 1


@pytest.mark.parametrize("error", [KeyError("uid not found: 1234"), OSError("No username set")])
def test_a_user_without_a_name_is_unknown(file, monkeypatch, error):
    def refuse():
        raise error

    monkeypatch.setattr(getpass, "getuser", refuse)
    with Ledger(file) as ledger:
        ledger.charge(ONE, {})
        assert [event.who for event in ledger.history()][1:] == ["unknown"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "cannot be created: No space left on device"),
        (sqlite3.OperationalError("disk I/O error"), "SQLite failed"),
    ],
)
def test_a_file_that_cannot_be_made_is_told_at_once(tmp_path, monkeypatch, error, told):
    def refuse(path):
        raise error

    monkeypatch.setattr(files, "scratch", refuse)
    with pytest.raises(LedgerError, match=told):
        SqliteStore(tmp_path / "new.db").prepare()


def test_events_of_another_format_are_not_read(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        for module in (chain, opening):
            patch.setattr(module, "SCHEMA", 2)
        Ledger.create(tmp_path / "newer.db", budget=Privacy(3)).close()
    with pytest.raises(LedgerError, match="uses event format 2; this privmax reads format 1"):
        Ledger(tmp_path / "newer.db")


@pytest.mark.parametrize("budget", [Privacy(2, "1e-5"), Privacy(1, "1e-6"), Privacy(1)])
def test_both_numbers_of_a_budget_must_be_those_it_was_made_with(tmp_path, budget):
    Ledger.create(tmp_path / "both.db", budget=Privacy(1, "1e-5")).close()
    with pytest.raises(LedgerError, match="was created with a budget of epsilon 1, delta 1e-05"):
        Ledger(tmp_path / "both.db", budget=budget)


@pytest.mark.parametrize("account", ["", "a\nb", "x" * 201, 7])
def test_an_account_is_named_by_printable_text(file, account):
    with Ledger(file) as ledger:
        with pytest.raises(ParameterError, match="account="):
            ledger.open_account(account, Privacy(1))
        with pytest.raises(ParameterError, match="account="):
            ledger.charge(ONE, {}, account=account)
        assert len(list(ledger.history())) == 1
