"""`select` with a ledger: charged before the draw, recorded before it is returned, and once,
whatever happens.
"""

from __future__ import annotations

import enum
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from by_name import by_name
from click.testing import CliRunner

import privmax.best_items
from privmax import (
    Exponential,
    LargeMargin,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    Profile,
    Scores,
    select,
    select_model,
    top_itemsets,
)
from privmax.best_items import BestItems
from privmax.cli import main
from privmax.errors import (
    AnswerError,
    BudgetError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
)
from privmax.learning import PrivateERM, Stumps
from privmax.ledger import Charge, Ledger, Reservation
from privmax.ledger.payment import Description
from privmax.ledger.sqlite import SqliteStore
from privmax.mechanisms.contract import Outcome
from privmax.noise.coins import SYSTEM
from privmax.payload import Drawn
from privmax.release import answer
from privmax.sources.columns import IntegerColumn
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins
from privmax.universe import Universe

BUDGET = Privacy(3, "1e-5")
PRICE = {"epsilon": 1, "delta": "1e-6"}
COST = Privacy(1, "1e-6")
CERTAIN = {"apple": 10**9, "pear": 12, "fig": 3}
"""A lead so huge that no other answer will ever be seen."""
EQUAL = np.zeros(2**20, np.int64)
"""Candidates of which two honest draws differ (but for one time in a million)."""
TIED = {"data": EQUAL, "epsilon": 1, "universe": len(EQUAL)}


class Untouchable(Mapping):
    """Data that must not be looked at."""

    def __getitem__(self, key):
        raise AssertionError("the data was touched")

    __iter__ = __len__ = __getitem__


class Color(enum.Enum):
    RED = 1


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(file):
    with Ledger.create(file, "sales", budget=BUDGET, who="ann") as made:
        yield made
        assert made.verify() == []


def kinds(ledger):
    return [event.kind for event in ledger.history()]


def everything(file):
    """All that is stored, in every table."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        assert tables
        return "\n".join(
            repr(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")
        )


# What is charged and recorded


def test_a_release_is_the_same_with_a_ledger_and_names_its_request(ledger):
    scores, seed = [5, 5, 4, 4, 3, 0], 7
    bare = select(scores, epsilon=1, universe=9, coins=SeededCoins(seed))
    paid = select(
        scores, epsilon=1, universe=9, coins=SeededCoins(seed), ledger=ledger.request("first")
    )
    assert (paid.items, paid.privacy, paid.mechanism, paid.why, paid.diagnostics) == (
        bare.items,
        bare.privacy,
        bare.mechanism,
        bare.why,
        bare.diagnostics,
    )
    assert (bare.request, paid.request) == (None, "first")
    assert ledger.spent == Privacy(1)


def test_what_ran_is_recorded_with_its_public_options(ledger):
    options = {"sensitivity": 0.5, "resolution": "0.1", "neighbors": "replace", "growth": 2}
    data = {"zorblax": 7310427.5, "quuxley": 1.0}
    release = by_name(
        select, data, **PRICE, **options, ledger=ledger.request("q1", dataset="fruit sales")
    )
    made, reserved, answered = ledger.history()
    assert made.kind == "created"
    assert (reserved.kind, reserved.request, reserved.account, reserved.who) == (
        "reserved",
        "q1",
        None,
        "ann",
    )
    assert reserved.body == {
        "price": {
            "epsilon": "1",
            "delta": "1/1000000",
            "ranged": False,
            "neighbors": "replace",
            "unit": "user",
        },
        "what": {
            "command": "select",
            "mechanism": repr(release.mechanism),
            "dataset": "fruit sales",
            "options": {
                "k": 1,
                "universe": "open",
                "neighbors": "replace",
                "growth": 2,
                "sensitivity": "1/2",
                "resolution": "1/10",
            },
        },
    }
    assert (answered.kind, answered.request) == ("released", "q1")
    assert answered.body == {"answer": {"items": ["zorblax"], "free": {}}}


def test_columns_and_the_size_of_a_declared_universe_are_recorded(ledger):
    frame = pd.DataFrame({"town": ["a", "b"], "street": ["c", "d"], "who": [1, 2]})
    labels = [("a", "c"), ("b", "d"), ("a", "d")]
    asked = {"item": ["town", "street"], "user": "who", "universe": labels, "epsilon": 1, "k": 2}
    select(frame, **asked, ledger=ledger)
    options = list(ledger.history())[1].body["what"]["options"]
    asked = {"item": ["town", "street"], "user": "who", "universe": 3, "k": 2}
    assert options == {**asked, "ranked": False}


DAYS = ["Mon", "Tue", "Wed"]
OTHER_LABELS = {
    "other labels": ["Mon", "Tue", "Thu"],
    "other types": ["Mon", "Tue", 3],
    "their number": 3,
    "parts of them": ["Mon", "TueWed", "Wed"],
}


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHER_LABELS.values(), ids=OTHER_LABELS)
@pytest.mark.parametrize("turned", [False, True])
def test_other_labels_of_a_universe_are_another_request(ledger, other, turned):
    one, two = (other, DAYS) if turned else (DAYS, other)
    scores = dict.fromkeys(DAYS if isinstance(one, int) else one, 0)
    select(scores, epsilon=1, universe=one, ledger=ledger.request("r1"))
    with pytest.raises(LedgerError, match=r"different question \(labels\)"):
        select(Untouchable(), epsilon=1, universe=two, ledger=ledger.request("r1"))


def test_the_same_labels_in_another_order_or_spelling_are_the_same_request(ledger):
    asked = {"epsilon": 1, "ledger": ledger.request("r1")}
    first = select({1: 5}, universe=[1, 2, "a"], **asked)
    assert select(Untouchable(), universe=["a", 2.0, Decimal("1.0")], **asked) == first


def test_a_request_recorded_without_labels_is_still_answered(ledger, monkeypatch):
    """As version 0.1.0 recorded it."""
    asked = {"epsilon": 1, "universe": DAYS, "ledger": ledger.request("r1")}
    charge = Ledger.charge

    def without(self, price, what, **options):
        return charge(
            self,
            price,
            {name: value for name, value in what.items() if name != "labels"},
            **options,
        )

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", without)
        first = select({"Mon": 5}, **asked)
    assert "labels" not in list(ledger.history())[1].body["what"]
    assert select(Untouchable(), **asked) == first


def test_each_request_without_an_id_is_charged_under_a_new_one(ledger):
    requests = {select(CERTAIN, **PRICE, ledger=ledger).request for _ in range(3)}
    assert len(requests) == 3
    assert None not in requests
    assert ledger.spent == Privacy(3, "3e-6")
    assert select(Untouchable(), **PRICE, ledger=ledger.request(requests.pop())).item == "apple"
    assert ledger.spent == Privacy(3, "3e-6")


@pytest.mark.parametrize(
    ("mechanism", "bounded_range"),
    [
        (Exponential(epsilon=1), True),
        (Exponential(epsilon=1, neighbors="replace"), True),
        (Exponential(epsilon=1, k=2), False),
        (Exponential(epsilon=1, delta="1e-6", k=2), False),
        (PermuteAndFlip(epsilon=1), False),
        (LargeMargin(**PRICE), False),
    ],
    ids=repr,
)
def test_only_a_single_draw_of_the_exponential_mechanism_has_bounded_range(
    ledger, mechanism, bounded_range
):
    select([5, 3, 0], mechanism=mechanism, universe=3, ledger=ledger)
    assert list(ledger.history())[1].body["price"]["ranged"] is bounded_range
    assert ledger.spent == mechanism.privacy()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, "0.1", np.float32(0.1)], ids=repr)
def test_ten_releases_at_one_tenth_fit_into_a_budget_of_one(file, epsilon):
    with Ledger.create(file, "sales", budget=Privacy(1, "1e-5"), who="ann") as ledger:
        for _ in range(10):
            select(CERTAIN, epsilon=epsilon, delta=1e-7, ledger=ledger)
        assert ledger.spent == Privacy(1, "1e-6")
        with pytest.raises(BudgetError):
            select(CERTAIN, epsilon=epsilon, delta=1e-7, ledger=ledger)


def test_lists_are_recorded_whole_and_in_order(ledger):
    ranked = {name: 10**9 - 10**7 * place for place, name in enumerate("hgfedcba")}
    asked = {**PRICE, "k": 5, "ranked": True, "ledger": ledger.request("five")}
    release = select(ranked, **asked)
    assert release.items == tuple("hgfed")
    assert select(Untouchable(), **asked) == release
    assert ledger.spent == COST
    _, reserved, _ = ledger.history()
    # as before there were sets, so that lists of then can be asked for again
    assert reserved.body["what"]["options"] == {"k": 5, "universe": "open"}


def test_sets_are_recorded_by_name(ledger):
    """What a ledger keeps tells no order, and that it is a set."""
    ranked = {name: 10**9 - 10**7 * place for place, name in enumerate("hgfedcba")}
    asked = {**PRICE, "k": 5, "ledger": ledger.request("five")}
    release = select(ranked, **asked)
    assert release.items == tuple("defgh")
    again = select(Untouchable(), **asked)
    assert again == release
    assert (again.ranked, again.notes) == (False, release.notes)
    _, reserved, answered = ledger.history()
    assert reserved.body["what"]["options"] == {"k": 5, "universe": "open", "ranked": False}
    assert answered.body["answer"] == {"items": [*"defgh"], "free": {}}
    with pytest.raises(LedgerError, match="different question"):
        select(Untouchable(), **asked, ranked=True)


def test_no_answer_is_an_answer_costs_the_same_and_stays(ledger):
    release = select({"apple": 1}, epsilon="0.001", delta="1e-9", ledger=ledger.request("none"))
    assert (release.item, release.items, release.request) == (None, (), "none")
    assert ledger.spent == Privacy("0.001", "1e-9")
    assert list(ledger.history())[2].body == {"answer": {"items": [], "free": {}}}
    again = select(CERTAIN, epsilon="0.001", delta="1e-9", ledger=ledger.request("none"))
    assert again.item is None
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_what_is_released_beside_the_item_is_recorded(ledger):
    scores = {"apple": 1e6, "pear": 0.5}
    options = {
        "mechanism": LargeMargin(**PRICE, neighbors="replace"),
        "sensitivity": 1,
        "resolution": "0.1",
    }
    release = by_name(select, scores, **options, ledger=ledger.request("beside"))
    assert isinstance(release.diagnostics["max_estimate"], float)
    again = by_name(select, Untouchable(), **options, ledger=ledger.request("beside"))
    assert again == release
    assert type(again.diagnostics["max_estimate"]) is float


@pytest.mark.slow
@pytest.mark.parametrize(
    "label",
    [
        "",
        "rain boots",
        7,
        2**70,
        1.5,
        date(2026, 3, 1),
        ("a", 2.5),
        b"\x00",
        np.int64(3),
        "\ud800'; DROP TABLE x",
    ],
    ids=ascii,
)
def test_labels_come_back_as_they_are(ledger, label):
    scores = {label: 10**9, "pear": 12}
    release = select(scores, **PRICE, ledger=ledger.request("once"))
    again = select(Untouchable(), **PRICE, ledger=ledger.request("once"))
    plain = label.item() if isinstance(label, np.generic) else label
    assert release.item == again.item == plain
    assert type(release.item) is type(again.item) is type(plain)


def test_a_label_that_cannot_be_recorded_is_refused_before_the_charge(ledger):
    with pytest.raises(DataError, match="of a type that a ledger cannot write down") as caught:
        select({Color.RED: 10**9, "zorblax": 3}, **PRICE, ledger=ledger)
    assert "RED" not in str(caught.value)
    with pytest.raises(
        ParameterError, match=r"^universe=.*of a type that a ledger cannot write down"
    ):
        select({"zorblax": 3}, epsilon=1, universe=["zorblax", Color.RED], ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_a_label_that_is_not_at_hand_before_is_released_as_text(ledger):
    moment = pd.Timestamp("2026-01-01 00:00:00.000000001")
    series = pd.Series([10**9, 3], index=pd.Index([moment, "pear"], dtype=object))
    release = select(series, **PRICE, ledger=ledger.request("text"))
    assert release.item == repr(moment)
    assert select(Untouchable(), **PRICE, ledger=ledger.request("text")) == release
    assert list(ledger.history())[2].body["answer"]["items"][0]["type"].endswith("Timestamp")


# The order of things


@dataclass(frozen=True)
class Told:
    """A mechanism that draws the best and says when; `said` is no part of what it is."""

    said: list
    neighbors: ClassVar = "add-remove"
    k: ClassVar = 1
    bounded_range: ClassVar = False

    def draw(self, profile, coins):
        self.said.append("rehearsal" if coins is SYSTEM else "draw")
        return Outcome(profile.top() if profile.universe is None else 0)

    def privacy(self):
        return Privacy(1)

    def __repr__(self):
        return "Told()"


def test_the_order_is_look_charge_draw_record(ledger, monkeypatch):
    said = []

    def saying(owner, name, word):
        original = getattr(owner, name)

        def told(self, *given, **options):
            said.append(word)
            return original(self, *given, **options)

        monkeypatch.setattr(owner, name, told)

    saying(IntegerColumn, "maximum", "maximum")
    saying(MemorySource, "names", "look-up")
    saying(Ledger, "charge", "charge")
    saying(Reservation, "record", "record")
    assert (
        select(CERTAIN, mechanism=Told(said), ledger=ledger, coins=SeededCoins(1)).item == "apple"
    )
    assert said == ["rehearsal", "maximum", "charge", "draw", "look-up", "record"]


class Crash(Exception):
    """Stands for the end of the process."""


def crashing(monkeypatch, owner, name, *, late=False, error=Crash, time=1):
    """Let a function fail at that call: before it does anything, or after it has done
    everything.
    """
    original, calls = getattr(owner, name), []

    def failing(*given, **options):
        calls.append(name)
        if len(calls) != time:
            return original(*given, **options)
        if late:
            original(*given, **options)
        raise error

    monkeypatch.setattr(owner, name, failing)


AFTER_THE_CHARGE = {
    "after the commit of the charge": (Ledger, "charge", True, KeyboardInterrupt),
    "before the draw": (PermuteAndFlip, "draw", False, KeyboardInterrupt),
    "after the draw": (PermuteAndFlip, "draw", True, SystemExit),
    "at the look-up": (MemorySource, "names", True, KeyboardInterrupt),
    "before it is written": (Drawn, "to_json", False, SystemExit),
    "after it is written": (Drawn, "to_json", True, KeyboardInterrupt),
    "before the record": (Reservation, "record", False, KeyboardInterrupt),
    "a ledger that is gone at the record": (Reservation, "record", False, LedgerError),
}
"""What cannot depend on what was drawn; test_failures.py has what may."""


@pytest.mark.slow
@pytest.mark.parametrize("step", AFTER_THE_CHARGE)
def test_a_stop_between_charge_and_record_leaves_the_charge_and_a_retry_gives_one_answer(
    ledger, file, monkeypatch, step
):
    owner, name, late, error = AFTER_THE_CHARGE[step]
    crashing(monkeypatch, owner, name, late=late, error=error)
    with pytest.raises(error) as caught:
        select(**TIED, ledger=ledger.request("r1"))
    if name != "charge":
        told = [str(caught.value), *getattr(caught.value, "__notes__", [])]
        assert any("spent" in words and "request 'r1'" in words for words in told)
    assert kinds(ledger) == ["created", "reserved"]
    assert ledger.spent == Privacy(1)
    with Ledger(file, "sales", who="ann") as other:  # as another process would
        answer = select(**TIED, ledger=other.request("r1"))
    assert (
        select(Untouchable(), epsilon=1, universe=len(EQUAL), ledger=ledger.request("r1")) == answer
    )
    assert select(**TIED, ledger=ledger.request("r1")) == answer
    assert kinds(ledger) == ["created", "reserved", "released"]
    assert ledger.spent == Privacy(1)


@pytest.mark.parametrize(
    "step",
    [(Reservation, "record", True, KeyboardInterrupt), (BestItems, "read", False, Crash)],
    ids=repr,
)
def test_after_a_crash_behind_the_record_the_recorded_answer_is_given(ledger, monkeypatch, step):
    owner, name, late, error = step
    crashing(monkeypatch, owner, name, late=late, error=error)
    with pytest.raises(error):
        select(**TIED, ledger=ledger.request("r1"))
    recorded = list(ledger.history())[2].body["answer"]["items"]
    again = select(Untouchable(), epsilon=1, universe=len(EQUAL), ledger=ledger.request("r1"))
    assert list(again.items) == recorded
    assert ledger.spent == Privacy(1)


def test_a_crash_before_the_charge_costs_nothing(ledger, monkeypatch):
    crashing(monkeypatch, Ledger, "charge")
    with pytest.raises(Crash):
        select(**TIED, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created"]
    assert select(**TIED, ledger=ledger.request("r1")).item in range(len(EQUAL))
    assert ledger.spent == Privacy(1)


def test_two_threads_with_one_request_release_the_same_answer(ledger, file, monkeypatch):
    """Both draw, and what they draw differs; only one of the answers is ever recorded."""
    both, drawn, original = threading.Barrier(2, timeout=60), [], MemorySource.names

    def items(self, outcomes):
        mine = original(self, outcomes)
        drawn.extend(mine)
        both.wait()
        return mine

    monkeypatch.setattr(MemorySource, "names", items)
    with Ledger(file, "sales", who="ann") as other, ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(select, **TIED, ledger=one.request("r1")) for one in (ledger, other)]
        answers = [run.result() for run in runs]
    assert len(set(drawn)) == 2
    assert answers[0] == answers[1]
    assert answers[0].item in drawn
    assert kinds(ledger) == ["created", "reserved", "released"]
    assert ledger.spent == Privacy(1)


def test_many_threads_never_overspend(file):
    with (
        Ledger.create(file, "small", budget=Privacy(3)) as ledger,
        ThreadPoolExecutor(4) as threads,
    ):

        def attempt(_):
            try:
                return select([5, 0], epsilon=1, universe=2, ledger=ledger).request
            except BudgetError:
                return None

        requests = list(threads.map(attempt, range(8)))
        assert len([request for request in requests if request]) == 3
        assert ledger.spent == Privacy(3)
        assert ledger.verify() == []


# Refusals


def test_a_charge_that_does_not_fit_reads_no_data_and_writes_nothing(ledger, file):
    ledger.open_account("ann", Privacy("0.5"))
    before = everything(file)
    with pytest.raises(BudgetError) as whole:
        select(Untouchable(), epsilon=4, delta="1e-6", ledger=ledger)
    with pytest.raises(BudgetError) as part:
        select(Untouchable(), **PRICE, ledger=ledger.request("r1", account="ann"))
    with pytest.raises(LedgerError, match="no account 'bob'"):
        select(Untouchable(), **PRICE, ledger=ledger.request(account="bob"))
    assert (whole.value.cost, whole.value.left) == (Privacy(4, "1e-6"), BUDGET)
    assert (part.value.cost, part.value.left, part.value.account) == (COST, Privacy("0.5"), "ann")
    assert everything(file) == before


def test_a_recorded_answer_is_given_when_nothing_is_left(ledger):
    release = select(CERTAIN, epsilon=3, delta="1e-6", ledger=ledger.request("all"))
    assert ledger.remaining.epsilon == 0
    assert select(Untouchable(), epsilon=3, delta="1e-6", ledger=ledger.request("all")) == release


def test_a_charge_without_an_answer_is_drawn_when_nothing_is_left(ledger, monkeypatch):
    crashing(monkeypatch, Reservation, "record", error=LedgerError)
    with pytest.raises(LedgerError):
        select(CERTAIN, epsilon=3, delta="1e-6", ledger=ledger.request("all"))
    assert ledger.remaining.epsilon == 0
    assert select(CERTAIN, epsilon=3, delta="1e-6", ledger=ledger.request("all")).item == "apple"


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 2},
        {"delta": "1e-7"},
        {"k": 2},
        {"growth": 3},
        {"dataset": "other"},
        {"account": "ann"},
        {"universe": ["apple", "pear", "fig"]},
    ],
    ids=str,
)
def test_a_request_id_stands_for_one_request(ledger, other):
    ledger.open_account("ann", BUDGET)
    select(CERTAIN, **PRICE, ledger=ledger.request("r1"))
    spent = ledger.spent
    named = {name: other[name] for name in ("account", "dataset") if name in other}
    options = {**PRICE, **{name: value for name, value in other.items() if name not in named}}
    with pytest.raises(LedgerError, match="'r1' was charged before"):
        by_name(select, Untouchable(), **options, ledger=ledger.request("r1", **named))
    assert ledger.spent == spent


def broken(*_):
    raise EngineError("The engine failed.")


BAD = {
    "a pure mechanism in an open universe": (
        {"mechanism": PermuteAndFlip(epsilon=1)},
        ParameterError,
    ),
    "a list longer than the universe": (
        {"mechanism": Exponential(epsilon=1, k=9), "universe": 3},
        ParameterError,
    ),
    "k beyond the universe": ({"epsilon": 1, "k": 9, "universe": 3}, ParameterError),
    "no epsilon": ({"delta": "1e-6"}, ParameterError),
    "no delta": ({"epsilon": 1}, ParameterError),
    "a universe too small": ({"epsilon": 1, "universe": 2}, ParameterError),
    "a universe that is none": ({**PRICE, "universe": "many"}, ParameterError),
    "a label outside": ({"epsilon": 1, "universe": ["apple"]}, DataError),
    "a grid without a relation": (
        {**PRICE, "data": {"apple": 1.5}, "resolution": "0.5"},
        ParameterError,
    ),
    "floats without a grid": ({**PRICE, "data": {"apple": 1.5}, "sensitivity": 1}, DataError),
    "a score that is none": ({**PRICE, "data": {"apple": "many"}}, DataError),
    "no data at all": ({**PRICE, "data": object()}, DataError),
    "no such file": ({**PRICE, "data": "nowhere.csv", "item": "query"}, DataError),
    "a column of what has none": ({**PRICE, "user": "who"}, ParameterError),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_bad_input_costs_nothing(ledger, case):
    options, error = BAD[case]
    with pytest.raises(error):
        by_name(select, **{"data": CERTAIN, **options}, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_an_engine_that_fails_at_the_maximum_costs_nothing(ledger, monkeypatch):
    monkeypatch.setattr(IntegerColumn, "maximum", broken)
    with pytest.raises(EngineError) as caught:
        select(CERTAIN, **PRICE, ledger=ledger)
    assert not hasattr(caught.value, "__notes__")
    assert kinds(ledger) == ["created"]


@pytest.mark.parametrize("name", ["request", "account", "dataset"])
def test_what_a_request_is_called_must_be_text(ledger, name):
    with pytest.raises(ParameterError, match=f"^{name}=7 "):
        ledger.request(**{"id" if name == "request" else name: 7})


def test_a_ledger_must_be_one(file):
    with pytest.raises(ParameterError, match=r"^ledger=.*must be a Ledger"):
        select(CERTAIN, **PRICE, ledger=str(file))


# Nothing private


def test_the_ledger_holds_nothing_private_but_the_answer(ledger, file, monkeypatch):
    counts = {"zorblax": 7310427, "quuxley": 5551212, "florp": 4242424}
    assert select(counts, **PRICE, ledger=ledger.request(dataset="d")).item == "zorblax"
    crashing(monkeypatch, Reservation, "record")
    with pytest.raises(AnswerError) as caught:
        select(counts, **PRICE, ledger=ledger)
    frame = pd.DataFrame({"who": range(910), "what": ["quuxley"] * 900 + ["florp"] * 10})
    assert select(frame, item="what", user="who", **PRICE, ledger=ledger).item == "quuxley"
    stored = everything(file)
    assert stored.count("zorblax") == stored.count("quuxley") == 1  # each in its answer
    for secret in ("florp", "7310427", "5551212", "4242424"):
        assert secret not in stored
    numbers = [f"{event.body} {event.totals}" for event in ledger.history()][
        1:
    ]  # the first holds a random id
    assert not any(secret in text for text in numbers for secret in ("910", "900"))
    for text in (str(caught.value), *getattr(caught.value, "__notes__", [])):
        assert not any(secret in text for secret in ("zorblax", "quuxley", "florp", "7310427"))


# Callers with items of their own


class Named:
    """A source of objects, which tells how they are written down."""

    step = Fraction(1)

    def __init__(self):
        self.profile = Profile([(10**9, 1), (3, 2)], universe=3)

    def names(self, outcomes):
        return [Color.RED for _ in outcomes]

    def encode(self, item):
        return {"color": item.name}

    def close(self):
        pass


QUESTION = BestItems(
    epsilon=1, universe=Universe(3), read_item=lambda written: Color[written["color"]]
)


def test_a_source_may_bring_its_own_way_to_write_items_down(ledger):
    description = Description("learn", {"hypotheses": "Stumps()"})
    release = answer(QUESTION, lambda stack: Named(), ledger.request("r1"), description=description)
    assert (release.item, release.request) == (Color.RED, "r1")
    _, reserved, answered = ledger.history()
    assert reserved.body["what"] == {
        "command": "learn",
        "dataset": None,
        "mechanism": repr(release.mechanism),
        "options": {"hypotheses": "Stumps()"},
    }
    assert answered.body["answer"]["items"] == [{"color": "RED"}]
    again = answer(QUESTION, Untouchable.__getitem__, ledger.request("r1"), description=description)
    assert (again, again.recorded) == (release, answered.when)
    assert ledger.spent == Privacy(1)


def test_who_comes_second_with_one_request_is_given_the_recorded_answer_undrawn(
    ledger, file, monkeypatch
):
    """While one reads the data another with the same request is quicker."""
    first = []

    def read(stack):
        with Ledger(file, "sales", who="ann") as other:
            first.append(answer(QUESTION, lambda stack: Named(), other.request("r1")))
        crashing(monkeypatch, Named, "names")
        return Named()

    assert answer(QUESTION, read, ledger.request("r1")) == first[0]
    assert kinds(ledger) == ["created", "reserved", "released"]


# What it takes


@pytest.fixture
def counted(monkeypatch):
    """How often `auto` ran, a mechanism drew, and a transaction was opened."""
    counts = Counter()

    def count(owner, name, word):
        original = getattr(owner, name)

        def counting(*given, **options):
            counts[word] += 1
            return original(*given, **options)

        monkeypatch.setattr(owner, name, counting)

    count(privmax.best_items, "auto", "auto")
    count(NestedMargin, "draw", "draw")
    count(PermuteAndFlip, "draw", "draw")
    count(SqliteStore, "reading", "transaction")
    count(SqliteStore, "writing", "transaction")
    return counts


BITS = np.array([0, 1] * 90)
DOORS = {
    "select": lambda pays: select(CERTAIN, **PRICE, ledger=pays),
    "top_itemsets": lambda pays: top_itemsets([["a", "b"]] * 900, **PRICE, ledger=pays),
    "select_model": lambda pays: select_model(
        {"good": lambda X: X, "bad": lambda X: 1 - X}, BITS, BITS, epsilon=1, ledger=pays
    ),
    "PrivateERM": lambda pays: (
        PrivateERM(Stumps(low=0, high=1), 1, labels=[0, 1], ledger=pays)
        .fit(BITS[:, None].astype(float), BITS)
        .release_
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("door", DOORS)
def test_a_release_takes_one_choice_one_draw_and_three_transactions(
    tmp_path, counted, door, strict
):
    with Ledger.create(tmp_path / "b.db", budget=Privacy(9, 1e-5), strict=strict) as ledger:
        counted.clear()
        release = DOORS[door](ledger.request("r"))
        assert release
        assert counted == {"auto": 1, "draw": 1, "transaction": 3}
        counted.clear()
        assert DOORS[door](ledger.request("r")).recorded is not None
        assert counted == {"auto": 1, "transaction": 2}


COMMANDS = {
    "select": ("item,score\na,900\nb,3\n", ["--delta", "1e-6"]),
    "itemsets": ("a,b\n" * 900, ["--delta", "1e-6", "--form", "wide"]),
    "learn": (
        "x,y\n" + "0,no\n1,yes\n" * 90,
        # Without --hypotheses it also looks whether an older version was charged for a rule.
        [
            "--label",
            "y",
            "--labels",
            "no,yes",
            "--features",
            "x",
            "--low",
            "0",
            "--high",
            "1",
            "--hypotheses",
            "stumps",
        ],
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_no_more_to_open_the_ledger_and_tell_what_is_left(
    tmp_path, counted, command
):
    file, data = tmp_path / "b.db", tmp_path / "data.csv"
    Ledger.create(file, budget=Privacy(9, 1e-5)).close()
    text, options = COMMANDS[command]
    data.write_text(text, encoding="utf-8")
    options = [*options, "--epsilon", "1", "--ledger", str(file), "--request", "r", "--json"]
    counted.clear()
    run = CliRunner().invoke(main, [command, str(data), *options])
    assert run.exit_code == 0, run.output
    assert counted == {"auto": 1, "draw": 1, "transaction": 3}
    assert json.loads(run.stdout)["left"]["epsilon"] == "8"
    with Ledger(file) as ledger:
        ledger.charge(Charge(Privacy(1), unit=ledger.unit), {})
    counted.clear()
    again = CliRunner().invoke(main, [command, str(data), *options])
    assert counted == {"auto": 1, "transaction": 3}
    assert json.loads(again.stdout)["left"]["epsilon"] == "7"  # now, and not then


def test_counts_are_part_of_one_charge_and_of_the_recorded_answer(ledger):
    data = {f"item {n:02}": 9000 - 500 * n for n in range(12)}
    options = {"k": 10, "epsilon": 1, "delta": "1e-6", "counts": "0.5"}
    release = by_name(select, data, **options, ledger=ledger.request("r1"))
    assert len(release.counts) == 10
    assert ledger.spent == release.privacy == Privacy("1.5", "2e-6")
    assert release.counts_privacy == Privacy("0.5", "1e-6")
    _, reserved, answered = ledger.history()
    assert reserved.body["what"]["options"]["counts"] == "1/2"
    assert reserved.body["price"]["epsilon"] == "3/2"
    assert reserved.body["price"]["ranged"] is False
    assert answered.body["answer"]["counts"] == list(release.counts)
    assert answered.body["answer"]["noise"] == release.noise.to_dict()
    again = by_name(select, Untouchable(), **options, ledger=ledger.request("r1"))
    assert again == release
    assert again.error == release.error
    assert ledger.spent == release.privacy
    with pytest.raises(LedgerError, match="'r1' was charged before"):
        by_name(select, data, **{**options, "counts": "0.4"}, ledger=ledger.request("r1"))


def test_counts_on_a_grid_come_back_exactly(ledger):
    options = {"epsilon": 1, "delta": "1e-6", "counts": 1, "resolution": "0.1"}
    release = by_name(
        select,
        {"a": 900.7},
        **options,
        ledger=ledger.request("r1"),
        scores=Scores(neighbors="replace"),
    )
    again = by_name(
        select,
        Untouchable(),
        **options,
        ledger=ledger.request("r1"),
        scores=Scores(neighbors="replace"),
    )
    assert again == release
    assert type(again.counts[0]) is float
    assert again.noise.step == Fraction(1, 10)


def test_a_single_draw_with_counts_has_no_bounded_range(ledger):
    select(
        {"a": 9, "b": 1}, mechanism=Exponential(epsilon="0.5"), universe=2, counts=1, ledger=ledger
    )
    assert list(ledger.history())[1].body["price"]["ranged"] is False


def test_no_answer_costs_the_counts_all_the_same(ledger):
    options = {"epsilon": 1, "delta": "1e-6", "counts": "0.5"}
    release = by_name(select, {"a": 1}, **options, ledger=ledger.request("r1"))
    assert (release.items, release.counts) == ((), ())
    assert ledger.spent == Privacy("1.5", "1e-6")
    assert by_name(select, {"a": 10**6}, **options, ledger=ledger.request("r1")) == release


@pytest.mark.parametrize(
    "changed",
    [{"relative": [0]}, {"relative": [0, "x"]}, {"relative": []}, {"items": ["tea"]}],
    ids=str,
)
def test_an_order_without_a_number_for_each_item_is_refused(ledger, monkeypatch, changed):
    asked = {"k": 2, "ranked": True, "epsilon": 1, "delta": 1e-6}
    counts = {"tea": 900, "ale": 500, "gin": 20}
    write = BestItems.write
    privmax.select(counts, **asked, ledger=ledger.request("right"))
    monkeypatch.setattr(BestItems, "write", lambda self, *given: {**write(self, *given), **changed})
    with pytest.raises(LedgerError, match="cannot be read as an answer"):
        privmax.select(counts, **asked, ledger=ledger.request("forged"))
