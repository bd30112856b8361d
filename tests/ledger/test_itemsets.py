"""`top_itemsets` with a ledger: one charge for itemsets and supports, and one answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from by_name import by_name

from privmax import Exponential, NestedMargin, Privacy
from privmax.errors import (
    AnswerError,
    BudgetError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    WorkError,
)
from privmax.itemsets import METHODS, Layout, PrivBasis, top_itemsets
from privmax.itemsets.miner import ranks
from privmax.itemsets.mining import Mining
from privmax.itemsets.source import ItemsetSource
from privmax.ledger import Ledger, Reservation
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
ITEMS = ["bread", "butter", "jam", "zorblax"]
BASKETS = (
    [["bread", "butter", "jam"]] * 300
    + [["bread", "butter"]] * 200
    + [["zorblax", "jam"]] * 40
    + [[]] * 10
)
PAIR = ("bread", "butter")
SUPPORT = 500
TIED = [["a", "b", "c", "d", "e", "f", "g", "h"]] * 400
"""Of which all pairs are equally frequent."""


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the data was touched")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(file):
    with Ledger.create(file, "sales", budget=Privacy(10, "1e-5"), who="ann") as made:
        yield made
        assert made.verify() == []


def kinds(ledger):
    return [event.kind for event in ledger.history()]


@pytest.mark.slow
def test_a_release_is_the_same_with_a_ledger_and_comes_back_without_data(ledger):
    options = {**PRICE, "size": (2, 3), "k": 4, "supports": "0.5"}
    bare = by_name(top_itemsets, BASKETS, **options, coins=SeededCoins(3))
    paid = by_name(
        top_itemsets, BASKETS, **options, coins=SeededCoins(3), ledger=ledger.request("r1")
    )
    assert (
        paid.items,
        paid.supports,
        paid.diagnostics,
        paid.privacy,
        paid.mechanism,
        paid.why,
    ) == (
        bare.items,
        bare.supports,
        bare.diagnostics,
        bare.privacy,
        bare.mechanism,
        bare.why,
    )
    assert len(paid.supports) == len(paid.items) > 1
    assert (bare.request, paid.request) == (None, "r1")
    again = by_name(top_itemsets, Untouchable(), **options, ledger=ledger.request("r1"))
    assert again == paid
    assert type(again) is type(paid)
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_supports_are_part_of_one_charge_and_of_the_recorded_answer(ledger):
    release = top_itemsets(
        BASKETS, **PRICE, supports="0.25", ledger=ledger.request(dataset="baskets")
    )
    assert release.item == PAIR
    assert abs(release.supports[0] - SUPPORT) < 200
    assert ledger.spent == release.privacy == Privacy("1.25", "1e-6")
    _, reserved, answered = ledger.history()
    assert reserved.body["price"] == {
        "epsilon": "5/4",
        "delta": "1/1000000",
        "ranged": False,
        "neighbors": "add-remove",
        "unit": "basket",
    }
    assert reserved.body["what"] == {
        "command": "itemsets",
        "mechanism": repr(release.mechanism),
        "dataset": "baskets",
        "options": {"size": 2, "k": 1, "items": "open", "floor": 0, "supports": "1/4"},
    }
    assert answered.body == {
        "answer": {
            "items": [{"tuple": list(PAIR)}],
            "free": {},
            "supports": list(release.supports),
            "noise": {"law": "DiscreteLaplace", "scale": "4", "step": "1"},
        }
    }


def test_rules_are_part_of_one_charge_and_of_the_recorded_answer(ledger):
    options = {**PRICE, "size": (2, 3), "k": 4, "rules": "0.5"}
    paid = by_name(top_itemsets, BASKETS, **options, ledger=ledger.request("r1", dataset="baskets"))
    assert ledger.spent == paid.privacy == Privacy("1.5", "2e-6")
    _, reserved, answered = ledger.history()
    assert reserved.body["what"]["options"]["rules"] == "1/2"
    assert set(answered.body["answer"]["rules"]) == {"sets", "counts", "noise"}
    again = by_name(
        top_itemsets, Untouchable(), **options, ledger=ledger.request("r1", dataset="baskets")
    )
    assert again == paid
    assert again.rules == paid.rules != ()
    other = {**options, "rules": "0.25"}
    with pytest.raises(LedgerError):
        by_name(top_itemsets, BASKETS, **other, ledger=ledger.request("r1", dataset="baskets"))


def test_public_options_are_recorded(ledger):
    frame = pd.DataFrame({"receipt": [1, 1, 2], "article": ["bread", "butter", "jam"]})
    options = {"basket": "receipt", "item": "article", "items": ITEMS, "longest": 3, "floor": 1}
    by_name(
        top_itemsets,
        frame,
        epsilon=1,
        **options,
        size="any",
        k=2,
        ledger=ledger,
        layout=Layout(neighbors="replace"),
    )
    assert list(ledger.history())[1].body["what"]["options"] == {
        "size": "any",
        "k": 2,
        "ranked": False,
        "items": 4,
        "neighbors": "replace",
        "longest": 3,
        "floor": 1,
        "basket": "receipt",
        "item": "article",
    }


@pytest.mark.parametrize("given", [["receipt", "day"], ("receipt", "day")], ids=["list", "tuple"])
def test_several_columns_of_baskets_are_recorded(ledger, given):
    frame = pd.DataFrame(
        {"receipt": [1, 1, 2], "day": [1, 2, 1], "article": ["bread", "butter", "jam"]}
    )
    asked = {**PRICE, "item": "article"}
    top_itemsets(frame, **asked, basket=given, ledger=ledger.request("r1"))
    assert list(ledger.history())[1].body["what"]["options"]["basket"] == ["receipt", "day"]
    top_itemsets(frame, **asked, basket=["receipt"], ledger=ledger.request("r2"))
    assert list(ledger.history())[3].body["what"]["options"]["basket"] == "receipt"
    with pytest.raises(LedgerError, match="'r1' was charged before"):
        top_itemsets(frame, **asked, basket="receipt", ledger=ledger.request("r1"))


@pytest.mark.parametrize("supports", [None, "0.5"])
def test_only_a_single_draw_of_the_exponential_mechanism_has_bounded_range(ledger, supports):
    top_itemsets(
        BASKETS, mechanism=Exponential(epsilon=1), items=ITEMS, supports=supports, ledger=ledger
    )
    assert list(ledger.history())[1].body["price"]["ranged"] is (supports is None)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_charged_its_price_and_answers_once(ledger, name):
    method = METHODS[name](epsilon=1)
    options = {"mechanism": method, "items": ITEMS, "k": 2, "ledger": ledger.request("r1")}
    release = by_name(top_itemsets, BASKETS, **options)
    assert ledger.spent == release.privacy == method.privacy()
    assert list(ledger.history())[1].body["what"]["mechanism"] == repr(method)
    assert by_name(top_itemsets, Untouchable(), **options) == release
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_nothing_released_is_recorded_and_costs_the_same(ledger):
    options = {**PRICE, "supports": 1, "ledger": ledger.request("r1")}
    assert by_name(top_itemsets, [["a", "b"]], **options).items == ()
    assert ledger.spent == Privacy(2, "1e-6")
    assert by_name(top_itemsets, BASKETS, **options).items == ()
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_an_answer_from_before_noise_was_recorded_comes_back_without_an_error_bar(ledger):
    options = {**PRICE, "supports": 1, "ledger": ledger.request("r1")}
    question = Mining.of(**PRICE, supports=1).question
    old = {"items": [{"tuple": list(PAIR)}], "free": {}, "supports": [SUPPORT]}
    release = question.release(question.read(old))
    assert (release.items, release.supports) == ((PAIR,), (SUPPORT,))
    assert (release.noise, release.error) == (None, None)
    assert release.describe_counts() == [f"{SUPPORT:,}"]
    assert by_name(top_itemsets, BASKETS, **options).error == 3


class Crash(SystemExit):
    """Stands for the end of the process."""


STEPS = {
    "at the look-up": (ItemsetSource, "names", 1),
    "at the support": (ItemsetSource, "counts", 1),
    "at the draw": (NestedMargin, "draw", 1),
    "at the record": (Reservation, "record", 1),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_after_the_charge_leaves_it_and_a_retry_gives_one_answer(ledger, monkeypatch, step):
    owner, name, time = STEPS[step]
    original, calls = getattr(owner, name), []

    def failing(*given, **options):
        calls.append(name)
        if len(calls) == time:
            raise Crash
        return original(*given, **options)

    monkeypatch.setattr(owner, name, failing)
    options = {**PRICE, "supports": 1, "ledger": ledger.request("r1")}
    with pytest.raises(Crash) as caught:
        by_name(top_itemsets, TIED, **options)
    assert "request 'r1'" in caught.value.__notes__[0]
    assert kinds(ledger) == ["created", "reserved"]
    answer = by_name(top_itemsets, TIED, **options)
    assert all(by_name(top_itemsets, TIED, **options) == answer for _ in range(5))
    assert kinds(ledger) == ["created", "reserved", "released"]
    assert ledger.spent == Privacy(2, "1e-6")


def test_a_method_that_crashes_leaves_its_charge(ledger, monkeypatch):
    options = {"mechanism": PrivBasis(epsilon=1), "items": ITEMS, "ledger": ledger.request("r1")}
    original = Reservation.record
    monkeypatch.setattr(Reservation, "record", lambda *_: (_ for _ in ()).throw(Crash))
    with pytest.raises(Crash):
        by_name(top_itemsets, BASKETS, **options)
    assert kinds(ledger) == ["created", "reserved"]
    monkeypatch.setattr(Reservation, "record", original)
    assert by_name(top_itemsets, BASKETS, **options) == by_name(
        top_itemsets, Untouchable(), **options
    )
    assert ledger.spent == Privacy(1)


def test_a_charge_that_does_not_fit_reads_no_data_and_writes_nothing(ledger):
    with pytest.raises(BudgetError) as caught:
        top_itemsets(Untouchable(), epsilon=9, delta="1e-6", supports=2, ledger=ledger)
    assert (caught.value.cost, caught.value.left) == (Privacy(11, "1e-6"), Privacy(10, "1e-5"))
    with pytest.raises(BudgetError):
        top_itemsets(Untouchable(), mechanism=PrivBasis(epsilon=11), items=ITEMS, ledger=ledger)
    assert kinds(ledger) == ["created"]


@pytest.mark.parametrize(
    "other", [{"size": 3}, {"supports": 1}, {"items": ITEMS}, {"floor": 1}, {"k": 2}], ids=str
)
def test_a_request_id_stands_for_one_request(ledger, other):
    top_itemsets(BASKETS, **PRICE, ledger=ledger.request("r1"))
    with pytest.raises(LedgerError, match="'r1' was charged before"):
        by_name(top_itemsets, Untouchable(), **PRICE, **other, ledger=ledger.request("r1"))
    assert ledger.spent == Privacy(1, "1e-6")


def test_other_items_are_another_request(ledger):
    asked = {"epsilon": 1, "ledger": ledger.request("r1")}
    first = top_itemsets([["a", "b"]] * 9, items=["a", "b", "c"], **asked)
    assert top_itemsets(Untouchable(), items=["c", "b", "a"], **asked) == first
    for other in (["a", "b", "d"], 3):
        with pytest.raises(LedgerError, match=r"different question \(labels\)"):
            top_itemsets(Untouchable(), items=other, **asked)


ROWS = pd.DataFrame({"basket": [1, 1], "item": ["bread", "jam"], "who": [1, 1]})
FLAGS = pd.DataFrame({"basket": [1, 2], "jam": [0, 1]})
OWNED = {"data": ROWS, "basket": "basket", "item": "item", "user": "who", "items": ITEMS}
BAD = {
    "a method that counts baskets, with users": (
        {**OWNED, "mechanism": PrivBasis(epsilon=1)},
        ParameterError,
    ),
    "a pure mechanism in an open universe": ({"mechanism": Exponential(epsilon=1)}, ParameterError),
    "a list longer than the universe": (
        {"mechanism": Exponential(epsilon=1, k=9), "items": ITEMS},
        ParameterError,
    ),
    "a universe without such sets": ({"epsilon": 1, "items": ["bread"]}, ParameterError),
    "items that are none": ({**PRICE, "items": "many"}, ParameterError),
    "an item outside": ({"epsilon": 1, "items": ["bread"], "size": 1}, DataError),
    "a basket too long": ({**PRICE, "longest": 1, "size": 1}, DataError),
    "no baskets": ({**PRICE, "data": 7}, DataError),
    "no such file": ({**PRICE, "data": "nowhere.dat"}, DataError),
    "a table of zeros and ones": ({**PRICE, "data": [[0, 1, 1], [0, 0, 1]]}, DataError),
    "the column of one item": (
        {**PRICE, "data": FLAGS, "basket": "basket", "item": "jam"},
        DataError,
    ),
    "several columns of items": (
        {**PRICE, "data": ROWS, "basket": "basket", "item": ["item", "who"]},
        ParameterError,
    ),
    "several columns of users": ({**OWNED, **PRICE, "user": ["who", "item"]}, ParameterError),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_bad_input_costs_nothing(ledger, case):
    options, error = BAD[case]
    with pytest.raises(error):
        by_name(top_itemsets, **{"data": BASKETS, **options}, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_what_fails_before_the_charge_costs_nothing(ledger, monkeypatch):
    def broken(*_):
        raise EngineError("The engine failed.")

    monkeypatch.setattr(ItemsetSource, "maximum", broken)
    with pytest.raises(EngineError):
        top_itemsets(BASKETS, **PRICE, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_accounts_are_charged(ledger):
    ledger.open_account("ann", Privacy(2, "1e-6"))
    top_itemsets(BASKETS, **PRICE, ledger=ledger.request(account="ann"))
    assert ledger.accounts()["ann"][1] == ledger.spent == Privacy(1, "1e-6")
    with pytest.raises(BudgetError):
        top_itemsets(Untouchable(), **PRICE, ledger=ledger.request(account="ann"))


def test_the_ledger_holds_nothing_private_but_the_answer(ledger, file):
    assert top_itemsets(BASKETS, **PRICE, ledger=ledger).item == PAIR
    top_itemsets(BASKETS, mechanism=Exponential(epsilon=3), items=ITEMS, ledger=ledger, k=1)
    with closing(sqlite3.connect(file)) as connection:
        stored = repr(connection.execute("SELECT body, totals FROM privmax_events").fetchall())
    assert "bread" in stored
    assert "zorblax" not in stored  # an item that is declared, and in the data
    numbers = [f"{event.body} {event.totals}" for event in ledger.history()][
        1:
    ]  # the first holds a random id
    assert not any(secret in text for text in numbers for secret in ("500", "550", "340"))


def test_more_itemsets_than_can_be_listed_are_refused_before_the_charge(ledger, monkeypatch):
    """Fifty baskets of the same thirty items hold 2^30 itemsets; here a few are too many."""
    monkeypatch.setattr(ranks, "MOST", 1000)
    same = [list(range(12))] * 60
    with pytest.raises(WorkError, match=r"More than 1,000 itemsets .* Use smaller sizes"):
        top_itemsets(same, size="any", **PRICE, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created"]
    assert ledger.spent == Privacy(0)
    assert top_itemsets(same, size=2, **PRICE, ledger=ledger.request("r1")).requested == 1


def test_what_depends_on_coins_is_met_by_the_draw_that_is_charged(ledger, monkeypatch):
    """A draw is tried before the charge; only too much work, or an engine, may stop it there."""
    monkeypatch.setattr(ranks, "MOST", 1000)
    draws = []

    class Wrong(NestedMargin):
        def draw(self, profile, coins):
            outcome = super().draw(profile, coins)
            draws.append(profile.top())
            if profile.top() == 0:  # the invented one of a service check
                return outcome
            raise ValueError("by chance")

    with pytest.raises(AnswerError):
        top_itemsets(BASKETS, mechanism=Wrong(**PRICE), ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created", "reserved", "released"]
    assert draws == [0, SUPPORT, SUPPORT]


def test_a_strict_ledger_takes_too_much_work_for_no_answer(file, monkeypatch):
    monkeypatch.setattr(ranks, "MOST", 1000)
    with Ledger.create(file, budget=Privacy(10, "1e-5"), strict=True) as made:
        release = top_itemsets([list(range(12))] * 60, size="any", **PRICE, ledger=made)
        assert (release.items, made.spent) == ((), Privacy(1, "1e-6"))
