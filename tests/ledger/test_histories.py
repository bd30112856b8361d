"""The checker of random histories (faults/checker.py) finds what is wrong with one, and only
that.
"""

from __future__ import annotations

import copy
from fractions import Fraction

import pytest
from faults.checker import Rules, check
from faults.histories import make_history
from faults.scene import SQLITE, Yard

RULES = Rules(Fraction("0.01"), Fraction("0.03"), Fraction("0.05"), ["ada"])


class Client:
    """What one client writes down."""

    def __init__(self):
        self.lines = []

    def call(self, asked, told, op, answer=None, **ask):
        number = len(self.lines)
        self.lines.append({"n": number, "at": asked, "ask": {"op": op, **ask}})
        if answer is not None:
            self.lines.append({"n": number, "at": told, "told": answer})
        return self

    def release(self, asked, told, name, answer=None, account=None):
        given = answer if isinstance(answer, dict) or answer is None else {"answer": answer}
        return self.call(asked, told, "release", given, id=name, account=account)

    def spent(self, asked, told, whole, ada="0"):
        return self.call(asked, told, "spent", {"spent": {"": whole, "ada": ada}})


def show(spent, budget="0.03", ada="0"):
    parts = {"ada": {"spent": {"epsilon": ada}}}
    return {"spent": {"epsilon": spent}, "budget": {"epsilon": budget}, "accounts": parts}


def judged(client, spent, *, others=(), budget="0.03", ada="0", events=1, digest="a", faults=()):
    verify = {"faults": list(faults), "events": events, "hash": digest}
    lines = [one.lines for one in (client, *others)]
    return check(lines, show(spent, budget, ada), verify, RULES)


def test_a_history_of_its_own_is_explained():
    first = Client().release(0, 1, "r", 7).spent(2, 3, "0.01").release(4, 5, "s", 8, "ada")
    second = Client().release(0, 6, "r", 7).spent(1, 9, "0.02", "0.01").release(7, 0, "t")
    for spent in ("0.02", "0.03"):  # a client that was killed may have been charged
        assert judged(first, spent, others=[second], ada="0.01") == []


def test_a_lost_charge_is_found():
    client = Client().release(0, 1, "r", 7).release(2, 3, "s", 8)
    assert judged(client, "0.01") == [
        "1 times the cost of a step, after 2 were answered, is spent of the ledger"
    ]


def test_a_charge_that_was_lost_and_made_again_is_found():
    client = Client().release(0, 1, "r", 7).spent(2, 3, "0").release(4, 5, "r", 7)
    assert judged(client, "0.01") == [
        "0 times the cost of a step, after 1 were answered, is spent of the ledger"
    ]


def test_a_second_charge_is_found():
    client = Client().release(0, 1, "r", 7)
    assert judged(client, "0.02") == [
        "2 times the cost of a step, of 1 that were asked for, is spent of the ledger"
    ]


def test_a_charge_before_it_was_asked_for_is_found():
    client = Client().spent(0, 1, "0.01").release(2, 3, "r", 7)
    assert judged(client, "0.01") == [
        "1 times the cost of a step, too early, is spent of the ledger"
    ]


def test_a_charge_to_another_account_is_found():
    client = Client().release(0, 1, "r", 7, "ada")
    assert judged(client, "0.01") == [
        "0 times the cost of a step, after 1 were answered, is spent of ada"
    ]


def test_a_second_draw_is_found():
    client = Client().release(0, 1, "r", 7)
    other = Client().release(0, 1, "r", 8)
    assert judged(client, "0.01", others=[other]) == ["several answers to r"]


def test_a_part_of_a_cost_is_found():
    client = Client().release(0, 1, "r", 7)
    assert judged(client, "0.015") == ["a part of a cost is spent of the ledger"]


def test_a_number_that_falls_is_found():
    client = Client().release(0, 9, "r", 7).release(0, 9, "s", 7)
    client.spent(1, 2, "0.02").spent(3, 4, "0.01")
    assert "first 1/50 and then 1/100 is spent of the ledger" in judged(client, "0.02")


def test_too_much_is_found():
    client = Client()
    for number in range(4):
        client.release(number, number + 0.5, f"r{number}", 7)
    assert judged(client, "0.04") == ["more is spent than was granted"]


def test_a_grant_of_nobody_and_one_that_is_gone_are_found():
    granted = Client().call(0, 1, "grant", {})
    assert judged(Client(), "0", budget="0.08") == [
        "1 times the cost of a step, of 0 that were asked for, was granted"
    ]
    assert judged(granted, "0", budget="0.08") == []
    assert judged(granted, "0") == [
        "0 times the cost of a step, after 1 were answered, was granted"
    ]


def test_a_refusal_of_what_fits_is_found():
    refused = {"error": "BudgetError", "refused": True}
    client = Client().release(0, 1, "r", 7).release(2, 3, "s", refused)
    assert judged(client, "0.01") == ["a request was refused that fits"]
    others = [Client().release(0, 9, f"r{number}") for number in range(2)]
    assert judged(client, "0.01", others=others) == []  # they may have been charged before


def test_events_that_are_gone_or_others_are_found():
    seen = {"events": [[4, "d"], [5, "e"]]}
    client = Client().call(0, 1, "events", seen)
    assert judged(client, "0", events=5, digest="e") == []
    assert judged(client, "0", events=6, digest="f") == []
    assert judged(client, "0", events=4, digest="d") == [
        "first 5 and then 4 is the number of events"
    ]
    assert judged(client, "0", events=5, digest="x") == ["event 5 is another one"]


def test_what_verify_finds_is_found():
    assert judged(Client(), "0", faults=["x"]) == ["verify finds: x"]


@pytest.mark.slow
def test_faults_that_are_planted_in_a_history_are_found():
    with Yard() as yard:
        history = make_history(yard, SQLITE, {})
    assert history.faults() == []

    def change(show=None, verify=None):
        changed = copy.deepcopy(history)
        changed.show["spent"].update(show or {})
        changed.verify.update(verify or {})
        return changed.faults()

    asked = {
        line["ask"]["id"]
        for lines in history.clients
        for line in lines
        if line.get("ask", {}).get("op") == "release"
    }
    spent = Fraction(history.show["spent"]["epsilon"])
    assert change(show={"epsilon": str((len(asked) + 1) * Fraction("0.01"))})
    assert change(show={"epsilon": "0"})
    assert change(show={"epsilon": str(spent + Fraction("0.001"))})
    assert change(verify={"events": 2})
    assert change(verify={"faults": ["x"]})
    again = copy.deepcopy(next(lines for lines in history.clients if lines))
    for line in again:  # the same calls, later, by a client that is given other answers
        line["at"] += 1000
        if "answer" in line.get("told", {}):
            line["told"]["answer"] = -1
    history.clients.append(again)
    assert any("several answers" in fault for fault in history.faults())
