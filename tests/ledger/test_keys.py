"""`keys` with a ledger: one charge for keys and counts, one answer, and nothing is redrawn."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pandas as pd
import polars as pl
import pytest

import privmax
from privmax import Privacy
from privmax.counts import MANY
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.keyset.release import AllKeys
from privmax.ledger import Ledger
from privmax.packing import FEW
from privmax.sources.pairs import Pairs
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"item": "item", "user": "user"}
ROWS = pd.DataFrame(
    [(who, item) for item, many in {"tea": 900, "ale": 700}.items() for who in range(many)],
    columns=["user", "item"],
)


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the data was touched")


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "sales", budget=Privacy(10, "1e-5")) as made:
        yield made
        assert made.verify() == []


def keys(data, **options):
    return privmax.keys(data, **{**NAMED, **PRICE, **options})


def kinds(ledger):
    return [event.kind for event in ledger.history()]


def test_keys_and_counts_are_one_charge_and_one_recorded_answer(ledger):
    release = keys(ROWS, counts="0.5", other=True, per_user=2, ledger=ledger.request("r1"))
    assert set(release.items) == {"tea", "ale"}
    assert ledger.spent == release.privacy == Privacy("1.5", "1e-6")
    _, reserved, answered = ledger.history()
    assert reserved.body["what"]["command"] == "keys"
    assert reserved.body["what"]["options"] == {
        "item": "item", "user": "user", "per_user": 2, "other": True, "counts": "1/2",
    }  # fmt: skip
    assert answered.body["answer"]["items"] == list(release.items)
    assert answered.body["answer"]["other"] == release.other


def test_a_repeated_request_returns_the_same_without_reading(ledger):
    options = {"counts": "0.5", "other": True}
    first = keys(ROWS, **options, ledger=ledger.request("r1"))
    again = keys(Untouchable(), **options, ledger=ledger.request("r1"))
    assert again == first
    assert type(again) is type(first)
    assert (again.other, again.counts, again.error) == (first.other, first.counts, first.error)
    assert again.recorded is not None
    assert kinds(ledger) == ["created", "reserved", "released"]


@pytest.mark.parametrize(
    "changed",
    [{"per_user": 29}, {"counts": "0.25"}, {"other": True}, {"where": "user > 3"}, {"epsilon": 2}],
    ids=str,
)
def test_a_request_id_is_for_one_question(ledger, changed):
    keys(ROWS, counts="0.5", ledger=ledger.request("r1"))
    with pytest.raises(LedgerError, match="with a different question"):
        keys(ROWS, **{"counts": "0.5", **changed}, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_what_the_budget_does_not_allow_is_refused_before_reading(ledger):
    for options in ({"epsilon": 11}, {"epsilon": 9, "counts": 2}, {"delta": "1e-4"}):
        with pytest.raises(BudgetError):
            keys(Untouchable(), **options, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_it_is_charged_before_the_draw_and_recorded_before_it_leaves(ledger, monkeypatch):
    seen = []
    original = Pairs.name

    def name(self, released):
        seen.append(kinds(ledger))
        return original(self, released)

    monkeypatch.setattr(Pairs, "name", name)
    keys(ROWS, ledger=ledger.request("r1"))
    assert seen == [["created", "reserved"]]
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_a_failure_after_the_draw_is_no_answer_and_stays_so(ledger, monkeypatch):
    def fail(self, released):
        raise RuntimeError("tea")

    with monkeypatch.context() as patched:
        patched.setattr(Pairs, "name", fail)
        with pytest.raises(Exception) as refused:  # noqa: PT011
            keys(ROWS, ledger=ledger.request("r1"))
    assert "tea" not in str(refused.value)
    again = keys(ROWS, ledger=ledger.request("r1"))
    assert (again.items, again.recorded is None) == ((), False)


WRONG = [
    ({"user": None}, ParameterError),
    ({"per_user": 0}, ParameterError),
    ({"per_user": 10**6}, ParameterError),
    ({"delta": 0}, ParameterError),
    ({"epsilon": "1e-8", "delta": "1e-12"}, ParameterError),
    ({"counts": -1}, ParameterError),
    ({"other": True}, ParameterError),
    ({"item": "nothing"}, ParameterError),
    ({"user": "nobody"}, ParameterError),
]


@pytest.mark.parametrize(("options", "error"), WRONG, ids=str)
def test_what_is_wrong_is_charged_nothing(ledger, options, error):
    with pytest.raises(error):
        keys(ROWS, **options, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_a_row_without_a_user_is_charged_nothing(ledger):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with pytest.raises(DataError):
        keys(rows, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_a_strict_ledger_charges_first_and_tells_nothing(tmp_path):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with Ledger.create(tmp_path / "s.db", budget=Privacy(9, "1e-3"), strict=True) as ledger:
        release = keys(rows, counts=1, other=True, ledger=ledger.request("r1"))
        assert (release.items, release.counts, release.other) == ((), (), None)
        assert ledger.spent == release.privacy


def test_empty_data_releases_nothing_and_is_charged(ledger):
    release = keys(ROWS.head(0), counts=1, other=True, ledger=ledger.request("r1"))
    assert release.items == ()
    assert isinstance(release.other, int)
    assert keys(Untouchable(), counts=1, other=True, ledger=ledger.request("r1")) == release


@pytest.mark.slow
def test_a_hundred_thousand_keys_are_recorded_and_come_back(tmp_path):
    random = Random(1)
    names = [f"https://shop.example/item/{random.getrandbits(40):x}" for _ in range(10**5)]
    table = pl.DataFrame({"user": range(35 * 10**5)}).with_columns(
        item=pl.Series(names).gather([place % 10**5 for place in range(35 * 10**5)])
    )
    with Ledger.create(tmp_path / "big.db", budget=Privacy(9, "1e-3")) as ledger:
        options = {"per_user": 1, "counts": 1, "coins": SeededCoins(3)}
        first = keys(table, **options, ledger=ledger.request("r1"))
        assert set(first.items) == set(names)
        again = keys(Untouchable(), **options, ledger=ledger.request("r1"))
        assert again.items == first.items
        assert again.counts == first.counts
        *_, answered = ledger.history()
        assert len(answered.body["answer"]["items"]) < 3 * 10**6
        assert ledger.verify() == []


def test_the_form_depends_on_what_is_released_alone(ledger):
    """Up to `FEW` keys a ledger keeps a list, and more of them compressed."""
    for number, form in ((FEW, list), (FEW + 1, str)):
        table = pl.DataFrame({"user": range(40 * number)})
        table = table.with_columns(item=pl.col("user") % number)
        release = keys(table, per_user=1, ledger=ledger.request(f"r{number}"))
        assert len(release) == number
        *_, answered = ledger.history()
        assert isinstance(answered.body["answer"]["items"], form)
        assert keys(Untouchable(), per_user=1, ledger=ledger.request(f"r{number}")) == release


def test_counts_of_many_keys_may_be_as_noisy_as_those_of_few(ledger):
    """Noise that is drawn for many counts at once has bounds; how many there are was drawn."""
    number = MANY + 44
    table = pl.DataFrame({"user": range(100 * number)})
    table = table.with_columns(item=pl.col("user") % number)
    options = {"per_user": 1, "delta": "1e-20", "counts": "1e-20"}
    release = keys(table, **options, ledger=ledger.request("r1"))
    assert len(release) == number
    assert keys(Untouchable(), **options, ledger=ledger.request("r1")) == release


NOISE = {"law": "DiscreteLaplace", "scale": "30", "step": "1"}
ANSWER = {"items": ["tea", "ale"], "counts": [5, 3], "noise": NOISE, "other": 3, "free": {}}
FORGED = [
    {"counts": [5]}, {"counts": None}, {"counts": ["x", "y"]}, {"items": "tea"}, {"items": {}},
    {"items": [None, {}]}, {"noise": {"law": "X"}}, {"noise": {**NOISE, "scale": "-3"}},
    {"other": "x"}, {"other": [1]}, {"free": 3},
    {"free": {"users_estimate": "x"}}, {"free": {"keys_per_user": None}}, {"counts": []},
]  # fmt: skip


@pytest.mark.parametrize("changed", FORGED, ids=str)
def test_an_answer_that_is_none_is_refused_and_not_drawn_again(ledger, monkeypatch, changed):
    options = {"counts": 1, "other": True}
    monkeypatch.setattr(AllKeys, "write", lambda *_: ANSWER)
    assert keys(ROWS, **options, ledger=ledger.request("right")).counts == (5, 3)
    monkeypatch.setattr(AllKeys, "write", lambda *_: {**ANSWER, **changed})
    for _ in range(2):
        with pytest.raises(LedgerError, match="cannot be read as an answer") as refused:
            keys(ROWS, **options, ledger=ledger.request("forged"))
        assert refused.value.__cause__ is refused.value.__context__ is None
    assert kinds(ledger) == ["created", *["reserved", "released"] * 2]


KILLED = """
import os, sys
import privmax
from privmax.keyset.release import AllKeys
from privmax.keyset.release import AllKeys
from privmax.ledger import Ledger

draw = AllKeys.draw

def draw_and_die(*given):
    draw(*given)
    os._exit(9)

AllKeys.draw = draw_and_die
with Ledger(sys.argv[1], "sales") as ledger:
    privmax.keys(sys.argv[2], item="item", user="user", epsilon=1, delta="1e-6",
                 ledger=ledger.request("r1"))
"""


def test_a_process_killed_between_draw_and_record_is_charged_once_and_answered_once(tmp_path):
    """What it drew is lost with it. The charge stays, and pays for the one answer there is."""
    ROWS.to_parquet(tmp_path / "rows.parquet")
    with Ledger.create(tmp_path / "budget.db", "sales", budget=Privacy(10, "1e-5")) as made:
        words = [sys.executable, "-c", KILLED, made.where, str(tmp_path / "rows.parquet")]
        killed = subprocess.run(words, check=False, capture_output=True)
        assert killed.returncode == 9, killed.stderr
        assert kinds(made) == ["created", "reserved"]
        assert made.spent == Privacy(1, "1e-6")
        first, again = (
            keys(str(tmp_path / "rows.parquet"), ledger=made.request("r1")) for _ in range(2)
        )
        assert first.items == again.items
        assert (first.recorded is None, again.recorded is None) == (True, False)
        assert kinds(made) == ["created", "reserved", "released"]
        assert made.spent == Privacy(1, "1e-6")
        assert made.verify() == []
