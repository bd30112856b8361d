"""Events that somebody writes without privmax: well-formed, sealed with the right hash, and
false.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from privmax.errors import BudgetError, LedgerError
from privmax.ledger import Charge, Ledger
from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import EventRow, canonical, price_json, seal
from privmax.ledger.replay import after, totals_of
from privmax.ledger.rows import COLUMNS
from privmax.ledger.rules import RULES
from privmax.privacy import Privacy

BUDGET = Privacy(3, "1e-5")
ONE = Charge(Privacy(1))
WHAT = {"mechanism": "x"}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "budget.db"


def forge(
    file, *, name="default", price=None, say=None, change=lambda totals: None, guarded=False,
    **columns,
):  # fmt: skip
    """Append an event with a right hash.

    say       what of the price is said otherwise than it is counted
    guarded   the file's own checks are left in place
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        if not guarded:
            for trigger in TRIGGERS:
                connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        last = EventRow(
            *connection.execute(
                f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        )
        rule = json.loads(
            connection.execute("SELECT body FROM privmax_events WHERE seq = 1").fetchone()[0]
        )["rule"]
        body = (
            {"price": price_json(price), "what": WHAT} if price is not None else columns.pop("body")
        )
        kind = columns.get("kind", "reserved")
        totals = after(RULES[rule], kind, body, totals_of(last.totals)).as_json()
        change(totals)
        body.get("price", {}).update(say or {})
        given = {"kind": kind, "request": "forged", "account": None, **columns}
        row = last._replace(
            seq=last.seq + 1, body=canonical(body), totals=canonical(totals), **given
        )
        forged = seal(last.hash, name, row)
        holes = ", ".join("?" * (1 + len(forged)))
        connection.execute(
            f"INSERT INTO privmax_events (ledger, {COLUMNS}) VALUES ({holes})", [name, *forged]
        )


def cheaper(epsilon):
    return lambda totals: totals["whole"]["spent"].update(epsilon=epsilon)


# A charge above the budget


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_a_charge_above_the_budget_is_not_released_on(file, rule):
    with Ledger.create(file, budget=BUDGET, rule=rule) as ledger:
        huge = Charge(Privacy(50))
        forge(file, price=huge)
        with Ledger(file) as fresh:
            for use in (
                lambda: fresh.charge(huge, WHAT, request="forged"),
                lambda: fresh.charge(ONE, WHAT),
                lambda: ledger.charge(huge, WHAT, request="forged"),
            ):
                with pytest.raises(
                    LedgerError, match="Event 2 of the ledger 'default' does not follow"
                ):
                    use()


def test_nor_is_one_below_a_right_event(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        forge(file, price=Charge(Privacy(50)), change=cheaper("1"))
        forge(file, price=ONE, request="right")
        with pytest.raises(LedgerError, match="Event 2 of the ledger 'default' does not follow"):
            ledger.charge(Charge(Privacy(50)), WHAT, request="forged")
        assert [fault.seq for fault in ledger.verify()] == [2]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_the_file_itself_refuses_it(file, rule):
    Ledger.create(file, budget=BUDGET, rule=rule).close()
    for told, event in (
        ("no more is spent than was granted", {"price": Charge(Privacy(50))}),
        (
            "a charge is counted",
            {
                "price": ONE,
                "change": lambda totals: (
                    totals["whole"]["state"].update(epsilon="1/3")
                    if rule != "basic"
                    else totals["whole"]["spent"].update(epsilon="1/3")
                ),
            },
        ),
        (
            "only a grant changes a budget",
            {"price": ONE, "change": lambda totals: totals["whole"]["budget"].update(epsilon="9")},
        ),
        (
            "only a charge changes what is spent",
            {
                "kind": "granted",
                "body": {"more": {"epsilon": "1", "delta": "0"}, "why": "x"},
                "request": None,
                "change": cheaper("1/9"),
            },
        ),
        ("an answer is of whoever was charged", {"kind": "released", "body": {"answer": 1}}),
        ("no such kind of event", {"kind": "gift", "body": {}}),
        ("a charge has an id", {"price": ONE, "request": None}),
        ("a price is not negative", {"price": ONE, "say": {"epsilon": "-1"}}),
        ("a price is not negative", {"price": ONE, "say": {"delta": "-1/2"}}),
        ("a price is not negative", {"price": ONE, "say": {"epsilon": f"-{10**400}/{10**399}"}}),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=told):
            forge(file, guarded=True, **event)
    forge(file, guarded=True, price=ONE)  # a right one is taken
    with Ledger(file) as ledger:
        assert ledger.charge(ONE, WHAT).seq == 3
        assert ledger.verify() == []


def test_a_file_of_an_older_privmax_is_given_its_checks(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for trigger in TRIGGERS:
                connection.execute(f"DROP TRIGGER {trigger}")
        ledger.charge(ONE, WHAT)
        with pytest.raises(sqlite3.IntegrityError):
            forge(file, guarded=True, price=Charge(Privacy(50)))


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_prices_of_many_digits_pass_the_checks_of_the_file(file, rule):
    with Ledger.create(file, budget=Privacy(10**400, "1e-5"), rule=rule) as ledger:
        for price in (Privacy(10**399), Privacy("1e-300"), Privacy(f"1/{3**200}", f"1/{7**400}")):
            ledger.charge(Charge(price), WHAT)
        assert ledger.verify() == []


# Rules that price all charges together


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["zcdp", "pld"])
@pytest.mark.parametrize("spent", ["0", "1/100", "5/2"])
def test_a_wrong_price_of_all_charges_is_not_built_on(file, rule, spent):
    price = Charge(Privacy("1/2"))
    with Ledger.create(file, budget=BUDGET, rule=rule) as ledger:
        for _ in range(3):
            reservation = ledger.charge(price, WHAT)
        forge(file, price=price, change=cheaper(spent))
        with Ledger(file) as fresh:
            for use in (
                lambda: fresh.charge(price, WHAT),
                lambda: fresh.charge(price, WHAT, request="forged"),
                lambda: reservation.record(1),
            ):
                with pytest.raises(
                    LedgerError, match="Event 5 of the ledger 'default' does not follow"
                ):
                    use()


@pytest.mark.parametrize("rule", ["zcdp", "pld"])
def test_a_charge_that_was_made_to_fit_is_not_released_on(file, rule):
    """Its sums are right, so later charges would be priced right: but it alone is above the
    budget.
    """
    price = Charge(Privacy(50))
    with Ledger.create(file, budget=BUDGET, rule=rule) as ledger:
        forge(file, price=price, change=cheaper("3"))
        with pytest.raises(LedgerError, match="Event 2 of the ledger 'default' does not follow"):
            ledger.charge(price, WHAT, request="forged")


# Answers


@pytest.mark.parametrize("column", [{"who": "eve"}, {"account": "eve"}])
def test_an_answer_of_somebody_else_is_not_released(file, column):
    with Ledger.create(file, budget=BUDGET, who="ada") as ledger:
        ledger.open_account("eve", BUDGET)
        reservation = ledger.charge(ONE, WHAT, request="r")
        forge(file, kind="released", request="r", body={"answer": "forged"}, **column)
        for use in (
            lambda: ledger.charge(ONE, WHAT, request="r"),
            lambda: reservation.record("drawn"),
        ):
            with pytest.raises(
                LedgerError, match=r"Event 4 .* is not an answer to the request 'r'"
            ):
                use()
        assert [fault.seq for fault in ledger.verify()][:1] == [4]


def test_an_answer_that_comes_before_its_charge_is_not_released(file):
    with Ledger.create(file, budget=BUDGET) as ledger:
        forge(file, kind="released", request="r", body={"answer": "forged"})
        with pytest.raises(LedgerError, match="is not an answer to the request 'r'"):
            ledger.charge(ONE, WHAT, request="r").record(1)


def test_a_request_of_somebody_else_is_not_drawn_in_their_place(file):
    with Ledger.create(file, budget=BUDGET, who="ada") as ada, Ledger(file, who="bo") as bo:
        reservation = ada.charge(ONE, WHAT, request="r")
        with pytest.raises(LedgerError, match="was charged by 'ada' and has no answer yet"):
            bo.charge(ONE, WHAT, request="r")
        reservation.record("x")
        assert bo.charge(ONE, WHAT, request="r").answer == "x"
        assert bo.spent == Privacy(1)
        with pytest.raises(BudgetError):
            bo.charge(Charge(Privacy(3)), WHAT)
