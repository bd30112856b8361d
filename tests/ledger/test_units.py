"""One ledger, one unit of privacy: prices for users, baskets and rows do not add up."""

from __future__ import annotations

import json

import pytest

from privmax.errors import LedgerError, ParameterError
from privmax.ledger import Charge, Ledger
from privmax.ledger.events import RESERVED, EventRow, canonical, seal
from privmax.ledger.reading import read_rows
from privmax.ledger.replay import faults, follows, totals_of
from privmax.ledger.rules import RULES
from privmax.privacy import Privacy

CENT = {unit: Charge(Privacy("1/100"), unit=unit) for unit in ("user", "row", "basket", None)}


@pytest.fixture(params=["basic", "zcdp"])
def ledger(request, tmp_path):
    with Ledger.create(
        tmp_path / "budget.db", budget=Privacy(5, "1e-5"), rule=request.param
    ) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(("first", "other"), [("user", "row"), ("row", "user"), ("basket", "user")])
def test_the_first_charge_fixes_the_unit(ledger, first, other):
    assert ledger.unit is None
    assert ledger.fits(CENT[first])
    assert ledger.fits(CENT[other])
    ledger.charge(CENT[first], {}, request="r").record(1)
    ledger.grant(Privacy(1), why="more")
    events = list(ledger.history())
    told = (
        f"per {first}, and this request counts it per {other}.*Nothing was charged. Ask with the "
        f"unit {first} if"
    )
    for _ in range(2):  # a refusal changes nothing
        assert not ledger.fits(CENT[other])
        with pytest.raises(LedgerError, match=told):
            ledger.charge(CENT[other], {})
        with pytest.raises(LedgerError, match=told):
            ledger.require(CENT[other])
    assert list(ledger.history()) == events
    assert (ledger.unit, events[1].body["price"]["unit"]) == (first, first)
    ledger.charge(CENT[first], {})
    assert ledger.verify() == []


def test_every_handle_and_account_is_held_to_it(ledger):
    ledger.open_account("ann", Privacy(1, "1e-5"))
    ledger.open_account("bob", Privacy(1, "1e-5"))
    ledger.charge(CENT["user"], {}, account="ann")
    with Ledger(ledger.where) as other:
        assert other.unit == "user"
        assert not other.fits(CENT["row"], "bob")
        with pytest.raises(LedgerError, match="per user"):
            other.charge(CENT["row"], {}, account="bob")
        other.charge(CENT["user"], {}, account="bob")
    assert ledger.verify() == []


def test_a_retry_for_another_unit_is_another_request(ledger):
    ledger.charge(CENT["user"], {}, request="r")
    with pytest.raises(LedgerError, match=r"with a different privacy cost \(unit\)\."):
        ledger.charge(CENT["row"], {}, request="r")


@pytest.mark.parametrize("unit", ["", "a\nb", 1, ["row"], "x" * 201])
def test_a_unit_is_a_name(unit):
    with pytest.raises(ParameterError, match=r"^unit="):
        Charge(Privacy(1), unit=unit)


@pytest.mark.parametrize(("first", "other"), [("user", None), (None, "user")])
def test_a_charge_that_does_not_say_what_it_hides_adds_up_with_no_unit(ledger, first, other):
    ledger.open_account("ann", Privacy(1, "1e-5"))
    ledger.charge(CENT[first], {}, request="r").record(1)
    events = list(ledger.history())
    told = "not say what the privacy cost hides, and .* per user.*Nothing was charged.*unit=.user."
    for account in (None, "ann"):
        assert not ledger.fits(CENT[other], account)
        with pytest.raises(LedgerError, match=told):
            ledger.charge(CENT[other], {}, account=account)
        with pytest.raises(LedgerError, match=told):
            ledger.require(CENT[other], account)
    assert list(ledger.history()) == events
    ledger.charge(CENT[first], {}, account="ann")
    assert ledger.unit == first
    assert ledger.verify() == []


def test_a_part_is_held_to_its_unit(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", budget=Privacy(5, "1e-5"))
    with ledger.split("part", Privacy(1, 0), where=tmp_path / "part.db", unit="user") as part:
        assert not part.fits(CENT[None])
        with pytest.raises(LedgerError, match="unit 'user'; this one has None"):
            part.charge(CENT[None], {})
        part.charge(CENT["user"], {})


def test_a_ledger_of_before_takes_any_unit_and_the_next_charge_fixes_it(ledger, monkeypatch):
    """privmax 0.1.0 wrote no unit: what it wrote stays right, and is answered again."""
    ledger.charge(CENT[None], {}, request="old").record("answer")
    chain = ledger._chain
    monkeypatch.setattr(chain, "_origin", chain.origin._replace(units=False))
    *_, charged, answered = ledger.history()
    assert not any(
        "unit" in json.dumps([event.body, event.totals]) for event in (charged, answered)
    )
    assert ledger.unit is None
    ledger.charge(CENT["row"], {}, request="new")
    assert ledger.unit == "row"
    for unit in ("user", None):
        with pytest.raises(LedgerError, match="per row"):
            ledger.charge(CENT[unit], {})
    assert ledger.charge(CENT["user"], {}, request="old").answer == "answer"
    assert ledger.verify() == []


# What somebody wrote without privmax


def forged(ledger, price_unit, total_unit):
    """The rows of a ledger with one charge, and one more that is right but for its units."""
    ledger.charge(CENT["user"], {}, request="right")
    rows = list(read_rows(ledger._chain))
    later = RULES[ledger.rule].add(totals_of(rows[-1].totals).whole, CENT["user"]).as_json()
    price = {
        "epsilon": "1/100",
        "delta": "0",
        "ranged": False,
        "neighbors": "add-remove",
        "unit": price_unit,
    }
    row = EventRow(
        3,
        RESERVED,
        "2026-01-01T00:00:00+00:00",
        "eve",
        "wrong",
        None,
        canonical({"what": {}, "price": price}),
        canonical({"whole": {**later, "unit": total_unit}}),
        "",
    )
    return [*rows, seal(rows[-1].hash, ledger.name, row)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "total", "told"),
    [
        ("user", "user", None),
        ("row", "row", "it is charged for another unit of privacy than the charges before it"),
        ("row", "user", "it is charged for another unit of privacy than the charges before it"),
        (None, "user", "it is charged for another unit of privacy than the charges before it"),
        (
            "user",
            "row",
            "its recorded unit of privacy does not follow from the events",
        ),
        ("user", None, "its recorded unit of privacy does not follow from the events"),
        ("", "user", "its content cannot be read"),
        ("user", 7, "its content cannot be read"),
    ],
)
def test_a_forged_unit_is_found_and_not_built_on(ledger, price, total, told):
    rows = forged(ledger, price, total)
    found = faults(ledger.name, rows, (3, rows[-1].hash))
    assert {fault.seq for fault in found} == (set() if told is None else {3})
    assert told is None or any(fault.what.startswith(told) for fault in found)
    assert follows(ledger.name, RULES[ledger.rule], rows[2], rows[1], None) is (told is None)


# Strictness, which is chosen as the unit is not: when the ledger is made


def test_strictness_is_chosen_for_ever(tmp_path):
    file = tmp_path / "budget.db"
    with Ledger.create(file, "open", budget=Privacy(1)) as made:
        assert made.strict is False
        assert "strict" not in next(made.history()).body
    with Ledger.create(file, "closed", budget=Privacy(1), strict=True) as made:
        assert made.strict is True
        assert next(made.history()).body["strict"] is True
    with Ledger(file, "closed") as known, Ledger(file, "closed", strict=True) as agreed:
        assert known.strict
        assert agreed.strict
        assert known.verify() == []
    for name, wrong in (("open", True), ("closed", False)):
        with pytest.raises(
            LedgerError, match=f"was created {'not strict' if wrong else 'strict'}\\."
        ):
            Ledger(file, name, strict=wrong)
    with Ledger(file, "third", Privacy(1), strict=True) as made:
        assert made.strict
