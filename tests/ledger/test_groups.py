"""Groups with a ledger: one charge for all groups, one answer, and nothing is redrawn."""

from __future__ import annotations

import pandas as pd
import pytest

import privmax
from privmax import Groups, Privacy
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.ledger import Ledger
from privmax.packing import FEW
from privmax.sources.grouped import GroupedSource

PRICE = {"epsilon": 1, "delta": "1e-6"}
ROWS = pd.DataFrame(
    [(who, "north" if who < 300 else "south", "tea" if who < 300 else "ale") for who in range(500)],
    columns=["user", "region", "item"],
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


def select(data, **options):
    named = {"item": "item", "user": "user", "by": DECLARED}
    return privmax.select(data, **{**named, **PRICE, **options})


def kinds(ledger):
    return [event.kind for event in ledger.history()]


def test_all_groups_are_one_charge_and_one_recorded_answer(ledger):
    release = select(ROWS, counts="0.5", ledger=ledger.request("r1"))
    assert release.groups == {"north": ("tea",), "south": ("ale",), "west": ()}
    assert ledger.spent == release.privacy == Privacy("1.5", "1e-6")
    _, reserved, answered = ledger.history()
    options = reserved.body["what"]["options"]
    assert (options["by"], options["groups_per_user"]) == ("region", 1)
    assert len(options["groups"]) == 64
    assert answered.body["answer"]["groups"] == ["north", "south", "west"]
    assert answered.body["answer"]["sizes"] == [1, 1, 0]
    assert answered.body["answer"]["items"] == ["tea", "ale"]


@pytest.mark.parametrize("by", ["region", DECLARED], ids=["open", "declared"])
def test_a_repeated_request_returns_the_same_without_reading(ledger, by):
    first = select(ROWS, by=by, counts="0.5", ledger=ledger.request("r1"))
    again = select(Untouchable(), by=by, counts="0.5", ledger=ledger.request("r1"))
    assert again == first
    assert (type(again), again.groups, again.counts, again.notes) == (
        type(first), first.groups, first.counts, first.notes,
    )  # fmt: skip
    assert again.recorded is not None
    assert kinds(ledger) == ["created", "reserved", "released"]


CHANGED = [
    {"by": "region"},
    {"by": Groups("region", ["north", "south"])},
    {"by": Groups("region", ["north", "south", "west"], 2)},
    {"by": Groups("region", groups_share="1/2")},
    {"by": None},
    {"by": Groups("user2", ["north", "south", "west"])},
]


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_request_id_is_for_one_question(ledger, changed):
    select(ROWS, ledger=ledger.request("r1"))
    with pytest.raises(LedgerError, match="with a different question"):
        select(ROWS, **changed, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_the_order_of_declared_groups_does_not_matter(ledger):
    first = select(ROWS, ledger=ledger.request("r1"))
    other = Groups("region", ["west", "south", "north"])
    assert select(Untouchable(), by=other, ledger=ledger.request("r1")) == first


def test_what_the_budget_does_not_allow_is_refused_before_reading(ledger):
    with pytest.raises(BudgetError):
        select(Untouchable(), epsilon=11, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_it_is_charged_before_the_draw_and_recorded_before_it_leaves(ledger, monkeypatch):
    seen, original = [], GroupedSource.names

    def names(self, drawn):
        seen.append(kinds(ledger))
        return original(self, drawn)

    monkeypatch.setattr(GroupedSource, "names", names)
    select(ROWS, ledger=ledger.request("r1"))
    assert seen == [["created", "reserved"]]


def test_a_failure_after_the_draw_is_no_answer_and_stays_so(ledger, monkeypatch):
    def fail(self, drawn):
        raise RuntimeError("tea")

    with monkeypatch.context() as patched:
        patched.setattr(GroupedSource, "names", fail)
        with pytest.raises(Exception) as refused:  # noqa: PT011
            select(ROWS, ledger=ledger.request("r1"))
    assert "tea" not in str(refused.value)
    again = select(ROWS, ledger=ledger.request("r1"))
    assert again.groups == {"north": (), "south": (), "west": ()}
    assert again.recorded is not None


WRONG = [
    {"by": "reigon"},
    {"by": "item"},
    {"by": "user"},
    {"score": "user", "user": None},
    {"universe": ["tea"]},
    {"item": "itme"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_is_wrong_is_charged_nothing(ledger, options):
    with pytest.raises(ParameterError):
        select(ROWS, **{"by": "region", **options}, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_groups_that_a_ledger_cannot_write_down_are_refused(ledger):
    with pytest.raises(ParameterError) as refused:
        select(ROWS, by=Groups("region", ["north", object()]), ledger=ledger)
    assert refused.value.name == "groups"
    assert kinds(ledger) == ["created"]


def test_a_row_without_a_user_is_charged_nothing(ledger):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with pytest.raises(DataError):
        select(rows, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_a_strict_ledger_charges_first_and_tells_nothing(tmp_path):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with Ledger.create(tmp_path / "s.db", budget=Privacy(9, "1e-3"), strict=True) as ledger:
        release = select(rows, by="region", ledger=ledger.request("r1"))
        assert (release.items, release.groups) == ((), {})
        assert ledger.spent == release.privacy


def test_many_groups_are_kept_compressed_and_come_back(ledger):
    number = FEW + 1
    declared = Groups("region", range(number))
    release = select(ROWS.assign(region=7), by=declared, ledger=ledger.request("r1"))
    assert release.groups[7] == ("tea",)
    assert len(release.groups) == number
    *_, answered = ledger.history()
    assert isinstance(answered.body["answer"]["groups"], str)
    assert select(Untouchable(), by=declared, ledger=ledger.request("r1")) == release
