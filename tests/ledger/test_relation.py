"""One ledger, one neighbor relation: prices under two do not add up."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from privmax import Scores
from privmax.errors import LedgerError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.itemsets.published.blst10 import BLST10
from privmax.itemsets.published.diff_part import DiffPart
from privmax.ledger import Charge, Ledger
from privmax.ledger.events import RESERVED, EventRow, canonical, seal
from privmax.ledger.reading import read_rows
from privmax.ledger.replay import faults, follows, totals_of
from privmax.ledger.rules import RULES
from privmax.mechanisms.exponential import Exponential
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy
from privmax.selection import select

CENT = {
    relation: Charge(Privacy("1/100"), neighbors=relation) for relation in (ADD_REMOVE, REPLACE)
}
BOTH = [(ADD_REMOVE, REPLACE), (REPLACE, ADD_REMOVE)]


@pytest.fixture(params=["basic", "zcdp"])
def ledger(request, tmp_path):
    with Ledger.create(
        tmp_path / "budget.db", budget=Privacy(5, "1e-5"), rule=request.param
    ) as made:
        yield made


@pytest.mark.parametrize(("first", "other"), BOTH)
def test_the_first_charge_fixes_the_relation(ledger, first, other):
    assert ledger.neighbors is None
    assert ledger.fits(CENT[first])
    assert ledger.fits(CENT[other])
    ledger.charge(CENT[first], {}, request="r").record(1)
    ledger.grant(Privacy(1), why="more")
    events = list(ledger.history())
    told = (
        f"for {first} neighbors, and this request counts it for {other} neighbors.*Nothing was "
        f"charged. Ask with neighbors {first}, or charge another ledger"
    )
    for _ in range(2):  # a refusal changes nothing
        assert not ledger.fits(CENT[other])
        with pytest.raises(LedgerError, match=told):
            ledger.charge(CENT[other], {})
    assert list(ledger.history()) == events
    assert (ledger.neighbors, events[1].body["price"]["neighbors"]) == (first, first)
    ledger.charge(CENT[first], {})
    assert ledger.verify() == []


def test_every_handle_and_account_is_held_to_it(ledger):
    ledger.open_account("ann", Privacy(1, "1e-5"))
    ledger.open_account("bob", Privacy(1, "1e-5"))
    ledger.charge(CENT[REPLACE], {}, account="ann")
    with Ledger(ledger.where) as other:
        assert other.neighbors == REPLACE
        assert not other.fits(CENT[ADD_REMOVE], "bob")
        with pytest.raises(LedgerError, match="for replace neighbors"):
            other.charge(CENT[ADD_REMOVE], {}, account="bob")
        other.charge(CENT[REPLACE], {}, account="bob")
    assert ledger.verify() == []


def test_a_retry_under_another_relation_is_another_request(ledger):
    ledger.charge(CENT[ADD_REMOVE], {}, request="r")
    with pytest.raises(LedgerError, match=r"with a different privacy cost \(neighbors\)\."):
        ledger.charge(CENT[REPLACE], {}, request="r")


@pytest.mark.parametrize("neighbors", ["", "swap", None, 1, ["replace"]])
def test_a_price_names_a_relation_there_is(neighbors):
    with pytest.raises(ParameterError, match=r"^neighbors="):
        Charge(Privacy(1), neighbors=neighbors)


def test_a_selection_is_charged_under_the_relation_of_its_mechanism(ledger):
    counts = {"a": 50, "b": 3}
    closed = {"universe": ["a", "b"], "ledger": ledger}
    select(counts, mechanism=Exponential(epsilon=1, neighbors=REPLACE), **closed)
    assert ledger.neighbors == REPLACE
    with pytest.raises(LedgerError, match="counts it for add-remove neighbors"):
        select(counts, epsilon=1, **closed)
    select(counts, epsilon=1, **closed, scores=Scores(neighbors=REPLACE))
    assert ledger.spent.epsilon == 2


def test_a_refused_selection_reads_no_data(ledger):
    ledger.charge(CENT[ADD_REMOVE], {})
    with pytest.raises(LedgerError, match="such costs do not add up"):
        select(
            "no-such-file.csv",
            item="i",
            epsilon=1,
            delta="1e-7",
            ledger=ledger,
            scores=Scores(neighbors=REPLACE),
        )


@pytest.mark.parametrize(("method", "other"), [(BLST10, ADD_REMOVE), (DiffPart, REPLACE)])
def test_published_methods_are_charged_under_theirs(ledger, method, other):
    top_itemsets([[0, 1], [0, 1]], mechanism=method(epsilon=1), items=2, ledger=ledger)
    assert ledger.neighbors == method.neighbors
    with pytest.raises(LedgerError, match=f"counts it for {other} neighbors"):
        top_itemsets([[0, 1]], epsilon=1, items=2, ledger=ledger, layout=Layout(neighbors=other))


# What somebody wrote without privmax


def forged(ledger, price_relation, total_relation):
    """The rows of a ledger with one charge, and one more that is right but for its relations."""
    ledger.charge(CENT[ADD_REMOVE], {}, request="right")
    rows = list(read_rows(ledger._chain))
    later = RULES[ledger.rule].add(totals_of(rows[-1].totals).whole, CENT[ADD_REMOVE]).as_json()
    price = {"epsilon": "1/100", "delta": "0", "ranged": False, "neighbors": price_relation}
    row = EventRow(
        3,
        RESERVED,
        "2026-01-01T00:00:00+00:00",
        "eve",
        "wrong",
        None,
        canonical({"what": {}, "price": price}),
        canonical({"whole": {**later, "neighbors": total_relation}}),
        "",
    )
    return [*rows, seal(rows[-1].hash, ledger.name, row)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "total", "told"),
    [
        (ADD_REMOVE, ADD_REMOVE, None),
        (
            REPLACE,
            REPLACE,
            "it is charged under another neighbor relation than the charges before it",
        ),
        (
            REPLACE,
            ADD_REMOVE,
            "it is charged under another neighbor relation than the charges before it",
        ),
        (
            ADD_REMOVE,
            REPLACE,
            "its recorded neighbor relation does not follow from the events",
        ),
        (
            ADD_REMOVE,
            None,
            "its recorded neighbor relation does not follow from the events",
        ),
        ("swap", ADD_REMOVE, "its content cannot be read"),
        (ADD_REMOVE, "swap", "its content cannot be read"),
    ],
)
def test_a_forged_relation_is_found_and_not_built_on(ledger, price, total, told):
    rows = forged(ledger, price, total)
    found = faults(ledger.name, rows, (3, rows[-1].hash))
    assert {fault.seq for fault in found} == (set() if told is None else {3})
    assert told is None or any(fault.what.startswith(told) for fault in found)
    assert follows(ledger.name, RULES[ledger.rule], rows[2], rows[1], None) is (told is None)


def test_an_event_without_a_relation_is_found(ledger):
    rows = forged(ledger, ADD_REMOVE, ADD_REMOVE)
    body = json.loads(rows[-1].body)
    del body["price"]["neighbors"]
    last = seal(rows[-2].hash, ledger.name, rows[-1]._replace(body=canonical(body)))
    found = faults(ledger.name, [*rows[:-1], last], (3, last.hash))
    assert [(fault.seq, fault.what) for fault in found] == [(3, "its content cannot be read")]


# A repeated request that differs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "price", "told"),
    [
        ({"k": 2, "options": {"floor": 3}}, {}, r"different question \(k\)\."),
        ({"k": 1, "options": {"floor": 4}}, {}, r"different question \(options\.floor\)\."),
        (
            {"k": 1, "options": {"floor": 3, "size": 2}},
            {},
            r"different question \(options\.size\)\.",
        ),
        ({"options": {}}, {}, r"different question \(k, options\.floor\)\."),
        ({"k": 1, "options": 3}, {}, r"different question \(options\)\."),
        (
            {"k": 1, "options": {"floor": 3}, "\x1b[2J": 1},
            {},
            r"different question \('\\x1b\[2J'\)\.",
        ),
        (
            {"k": 1, "options": {"floor": 3}},
            {"epsilon": "1/7"},
            r"different privacy cost \(epsilon\)\.",
        ),
        (
            {"k": 2, "options": {"floor": 3}},
            {"delta": "1e-9"},
            r"different question \(k\) and a different privacy cost \(delta\)\.",
        ),
    ],
)
def test_a_repeated_request_that_differs_is_told_where(ledger, what, price, told):
    ledger.charge(CENT[ADD_REMOVE], {"k": 1, "options": {"floor": 3}}, request="r")
    with pytest.raises(LedgerError, match=told):
        ledger.charge(Charge(Privacy(**{"epsilon": Fraction(1, 100)} | price)), what, request="r")
