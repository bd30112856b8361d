"""Itemsets of groups with a ledger: one charge for all groups, one answer, nothing is redrawn."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from privmax import Groups, Privacy
from privmax.errors import DataError, LedgerError, ParameterError, WorkError
from privmax.itemsets import Layout, top_itemsets
from privmax.itemsets.miner import window
from privmax.itemsets.reading.grouped import GroupedBaskets
from privmax.ledger import Ledger

PRICE = {"epsilon": 1, "delta": "1e-6"}
ROWS = pd.DataFrame(
    [
        (who, who, "north" if who < 300 else "south", item)
        for who in range(500)
        for item in (("tea", "milk") if who < 300 else ("ale", "nuts"))
    ],
    columns=["user", "receipt", "region", "item"],
)
DECLARED = Groups("region", ["north", "south", "west"])


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the data was touched")


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "sales", budget=Privacy(10, "1e-5")) as made:
        yield made
        assert made.verify() == []


def mine(data=ROWS, **options):
    named = {"basket": "receipt", "item": "item", "user": "user", "by": DECLARED}
    return top_itemsets(data, **{**named, **PRICE, **options})


def kinds(ledger):
    return [event.kind for event in ledger.history()]


def test_all_groups_are_one_charge_and_one_recorded_answer(ledger):
    release = mine(supports="0.5", ledger=ledger.request("r1"))
    assert release.groups == {"north": (("milk", "tea"),), "south": (("ale", "nuts"),), "west": ()}
    assert ledger.spent == release.privacy == Privacy("1.5", "1e-6")
    _, reserved, answered = ledger.history()
    options = reserved.body["what"]["options"]
    assert (options["by"], options["groups_per_user"], options["size"]) == ("region", 1, 2)
    assert answered.body["answer"]["groups"] == ["north", "south", "west"]
    assert answered.body["answer"]["sizes"] == [1, 1, 0]


@pytest.mark.parametrize("by", ["region", DECLARED], ids=["open", "declared"])
def test_a_repeated_request_returns_the_same_without_reading(ledger, by):
    first = mine(by=by, supports="0.5", k=2, size="1-2", ledger=ledger.request("r1"))
    again = mine(Untouchable(), by=by, supports="0.5", k=2, size="1-2", ledger=ledger.request("r1"))
    assert again == first
    assert (type(again), again.groups, again.supports, again.notes) == (
        type(first), first.groups, first.supports, first.notes,
    )  # fmt: skip
    assert again.recorded is not None
    assert kinds(ledger) == ["created", "reserved", "released"]


CHANGED = [
    {"by": "region"},
    {"by": None},
    {"by": Groups("region", ["north", "south", "west"], 2)},
    {"by": Groups("region", groups_share="1/2")},
    {"size": 3},
]


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_request_id_is_for_one_question(ledger, changed):
    mine(ledger=ledger.request("r1"))
    with pytest.raises(LedgerError, match="with a different question"):
        mine(**changed, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_it_is_charged_before_the_draw_and_recorded_before_it_leaves(ledger, monkeypatch):
    seen, original = [], GroupedBaskets.names

    def names(self, drawn):
        seen.append(kinds(ledger))
        return original(self, drawn)

    monkeypatch.setattr(GroupedBaskets, "names", names)
    mine(ledger=ledger.request("r1"))
    assert seen == [["created", "reserved"]]


def test_more_itemsets_than_can_be_listed_are_refused_before_the_charge(ledger, monkeypatch):
    monkeypatch.setattr(window, "MOST", 1000)
    same = pd.DataFrame(
        [(who, who, "north", item) for who in range(60) for item in range(12)],
        columns=ROWS.columns,
    )
    for by in (DECLARED, "region"):
        with pytest.raises(WorkError, match="More than 1,000 itemsets"):
            mine(same, by=by, size="any", ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created"]
    assert mine(same, ledger=ledger.request("r1")).requested == 1


WRONG = [
    {"by": "reigon"},
    {"by": "item"},
    {"rules": 1},
    {"items": ["tea", "milk"]},
    {"basket": None},
    {"by": Groups("region", ["north", object()])},
    {"layout": Layout(neighbors="replace")},
    {"mechanism": "priv-basis", "delta": None},
    {"data": pa.Table.from_pandas(ROWS.assign(region=1)), "by": Groups("region", [1, "1"])},
]


@pytest.mark.parametrize("options", WRONG, ids=",".join)
def test_what_is_wrong_is_charged_nothing(ledger, options):
    with pytest.raises((ParameterError, DataError)):
        mine(**options, ledger=ledger)
    assert kinds(ledger) == ["created"]
