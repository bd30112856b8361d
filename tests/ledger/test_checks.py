"""The SQL by which a file reads numbers from the text of an event."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from privmax.ledger.checks import _behind, _differ, _number, _sum, _total, _whole
from privmax.ledger.events import canonical

WHOLE = {
    "budget": {"epsilon": "3", "delta": "1/100000"},
    "spent": {"epsilon": "3/4", "delta": "1/1000000"},
    "state": {},
    "neighbors": "add-remove",
}
COUNTED = {**WHOLE, "state": {"delta": "0", "epsilon": "5/2", "slack": "0", "tally": "1"}}
OWN = {**WHOLE, "budget": {"epsilon": "7", "delta": "0"}}


def ask(what, new="", old=""):
    """What SQLite makes of an expression about the totals of two events."""
    tables = "(SELECT ? totals) NEW, (SELECT ? totals) old"
    with closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute(f"SELECT {what} FROM {tables}", [new, old]).fetchone()[0]


@pytest.mark.parametrize(("text", "number"), [("3", 3), ("3/4", 0.75), ("1/100000", 1e-5)])
def test_a_number_is_read_behind_its_marks(text, number):
    body = canonical({"a": {"x": "9"}, "b": {"x": text, "y": "8"}})
    assert ask(_number("NEW.totals", '"b":', '"x":"'), body) == pytest.approx(number, rel=1e-15)
    assert ask(_number("NEW.totals", '"c":', '"x":"'), body) is None


def test_what_is_behind_marks_is_the_rest():
    assert ask(f"({_behind('NEW.totals', 'b', 'c')})", "abcabcd") == "abcd"


def test_totals_are_those_of_the_whole():
    totals = canonical({"account": OWN, "whole": WHOLE})
    assert ask(_total("NEW.totals", "budget", "epsilon"), totals) == 3
    assert ask(_total("NEW.totals", "budget", "delta"), totals) == pytest.approx(1e-5)
    assert ask(_total("NEW.totals", "spent", "epsilon"), totals) == 0.75


def test_a_sum_is_that_of_the_state_where_the_rule_has_one():
    assert ask(_sum("NEW.totals"), canonical({"whole": WHOLE})) == 0.75
    assert ask(_sum("NEW.totals"), canonical({"whole": COUNTED})) == 2.5


def test_parts_of_the_totals_are_compared_as_text():
    old = canonical({"account": OWN, "whole": WHOLE})
    new = canonical({"account": WHOLE, "whole": COUNTED})
    budget, rest = ('"budget":', '"neighbors":'), ('"neighbors":', "~")
    assert ask(_whole("old.totals", *budget), new, old) == (
        '"budget":{"delta":"1/100000","epsilon":"3"},'
    )
    assert ask(_differ(*budget), new, old) == 0
    assert ask(_differ(*rest), new, old) == 1
    assert ask(_differ(*rest), old, old) == 0
