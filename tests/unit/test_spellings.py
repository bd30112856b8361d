"""Names of mechanisms, sizes as text, and budgets as two numbers: Python takes what people type."""

from __future__ import annotations

from fractions import Fraction

import pytest

import privmax
from privmax import Ledger, NestedMargin, PermuteAndFlip, Privacy, Profile, audit, law, plan
from privmax.errors import LedgerError, ParameterError
from privmax.learning import PrivateERM, Stumps
from privmax.mechanisms.registry import MECHANISMS, check_name, make

PRICE = {"epsilon": 1, "delta": "1e-6"}
SCORES = {"a": 10**9, "b": 1}
BASKETS = [["a", "b", "c"]] * 900

DOORS = {
    "select": lambda name: privmax.select(SCORES, mechanism=name, **PRICE),
    "top_itemsets": lambda name: privmax.top_itemsets(BASKETS, mechanism=name, **PRICE),
    "PrivateERM": lambda name: PrivateERM(
        Stumps(low=0, high=2), mechanism=name, labels=[0, 1], **PRICE
    ).fit([[0], [1]], [0, 1]),
    "select_model": lambda name: privmax.select_model(
        [[0, 1], [1, 1]], None, [0, 1], mechanism=name, **PRICE
    ),
    "law": lambda name: law(SCORES, mechanism=name, **PRICE),
    "audit": lambda name: audit(name, candidates=2, highest=1, **PRICE),
    "plan": lambda name: plan(mechanisms=name, **PRICE),
    "compare": lambda name: privmax.compare([9, 3], mechanisms=[name], **PRICE),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NestedMargin", "nested-margin"),
        ("nested_margin", "nested-margin"),
        ("nested", "nested-margin"),
        ("permute-flip", "permute-and-flip"),
    ],
)
def test_a_wrong_name_is_answered_with_all_names_and_the_nearest(door, name, meant):
    with pytest.raises(ParameterError) as caught:
        DOORS[door](name)
    assert f"Did you mean {meant}?" in str(caught.value)
    assert all(known in str(caught.value) for known in MECHANISMS)
    assert caught.value.name in ("mechanism", "mechanisms")


@pytest.mark.parametrize("door", DOORS)
def test_a_right_name_is_taken(door):
    assert DOORS[door]("nested-margin") is not None


def test_auto_is_no_name_in_python_and_the_error_says_so():
    with pytest.raises(ParameterError, match="Leave it out, and one is chosen"):
        check_name("auto")
    with pytest.raises(ParameterError, match="For example nested-margin"):
        check_name("zzz")


def test_names_make_the_mechanisms_that_objects_are():
    exact = NestedMargin(**PRICE)
    profile = Profile([(60, 1), (30, 2)])
    assert law(profile, mechanism="nested-margin", **PRICE) == exact.law(profile)
    named = audit("permute-and-flip", epsilon=1, candidates=2, highest=2)
    assert named == audit(PermuteAndFlip(epsilon=1), candidates=2, highest=2)
    released = privmax.select(SCORES, mechanism="nested-margin", **PRICE)
    assert released.mechanism == exact


def test_a_named_mechanism_is_audited_under_the_relation_and_growth_that_it_is_made_for():
    replaced = audit("exponential", epsilon=1, neighbors="replace", candidates=2, highest=2)
    assert replaced.holds
    grown = audit("choosing", growth=1, candidates=2, highest=2, universe="open", **PRICE)
    assert grown.holds
    touched = audit("exponential", epsilon=1, growth=1, candidates=2, highest=2)
    assert touched.holds  # it relies on no bound, and is held to it all the same


@pytest.mark.parametrize("door", [law, audit])
def test_a_mechanism_object_takes_no_price_beside_it(door):
    scores = {} if door is audit else {"data": SCORES}
    with pytest.raises(
        ParameterError, match="epsilon=1 is not allowed: the mechanism already sets it"
    ):
        door(mechanism=NestedMargin(**PRICE), epsilon=1, **scores)


def test_a_name_without_a_price_asks_for_it():
    with pytest.raises(ParameterError, match="epsilon is required: nested-margin needs"):
        law(SCORES, mechanism="nested-margin")
    assert make(NestedMargin(**PRICE)) == NestedMargin(**PRICE)


# Sizes


@pytest.mark.parametrize("size", ["2-3", (2, 3), range(2, 4)])
def test_sizes_are_spelled_in_three_ways(size, tmp_path):
    """The ledger knows them for one request."""
    with Ledger(tmp_path / "b.db", epsilon=3, delta="1e-5") as ledger:
        request = ledger.request("one")
        first = privmax.top_itemsets(BASKETS, size=(2, 3), ledger=request, **PRICE)
        again = privmax.top_itemsets(BASKETS, size=size, ledger=request, **PRICE)
        assert again.items == first.items
        assert ledger.spent == Privacy(1, "1e-6")


@pytest.mark.parametrize(("size", "length"), [("3", 3), (3, 3), ("3-3", 3), ("1", 1)])
def test_one_size_may_be_text(size, length):
    found = privmax.top_itemsets(BASKETS, size=size, **PRICE)
    assert len(found.item) == length


@pytest.mark.parametrize("size", ["3-2", "2-", "-2", "0", "two", "", "2-3-4", "2 - 3", "1.5", b"2"])
def test_a_wrong_size_is_shown_as_it_was_given(size):
    with pytest.raises(ParameterError) as caught:
        privmax.top_itemsets(BASKETS, size=size, **PRICE)
    assert (caught.value.name, caught.value.value) == ("size", size)


# Budgets


def test_two_numbers_open_or_make_a_ledger(tmp_path):
    file = tmp_path / "b.db"
    with Ledger(file, "team", epsilon=1, delta=1e-5) as made:
        assert made.budget == Privacy(1, "1e-5")
        privmax.select(SCORES, ledger=made, epsilon="0.5", delta="1e-6")
    for again in (
        Ledger(file, "team", epsilon=1, delta=1e-5),
        Ledger(file, "team", Privacy(1, "1e-5")),
        Ledger(file, "team"),
    ):
        with again:
            assert again.spent == Privacy("0.5", "1e-6")
    with Ledger.create(file, "other", epsilon="1/3") as other:
        assert other.budget == Privacy(Fraction(1, 3), 0)


@pytest.mark.parametrize("given", [{"epsilon": 2, "delta": 1e-5}, {"epsilon": 1}])
def test_another_budget_is_refused_with_both_budgets(tmp_path, given):
    Ledger(tmp_path / "b.db", epsilon=1, delta=1e-5).close()
    with pytest.raises(LedgerError) as caught:
        Ledger(tmp_path / "b.db", **given)
    assert "epsilon 1, delta 1e-05, not epsilon" in str(caught.value)
    with Ledger(tmp_path / "b.db") as ledger:
        assert ledger.budget == Privacy(1, "1e-5")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"delta": 1e-5}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 0, "delta": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "delta": 2}, "delta"),
        ({"budget": Privacy(1), "epsilon": 1}, "epsilon"),
        ({"budget": Privacy(1), "delta": 0}, "delta"),
        ({"budget": 1}, "budget"),
    ],
)
@pytest.mark.parametrize("door", [Ledger, Ledger.create])
def test_no_ledger_is_made_of_a_wrong_budget(tmp_path, door, given, name):
    with pytest.raises(ParameterError) as caught:
        door(tmp_path / "b.db", **given)
    assert caught.value.name == name
    assert not (tmp_path / "b.db").exists()


def test_a_new_ledger_needs_a_budget(tmp_path):
    with pytest.raises(ParameterError, match="a new ledger needs one"):
        Ledger.create(tmp_path / "b.db")


def test_names_of_ledgers_are_listed(tmp_path):
    file = tmp_path / "b.db"
    for name in ("web", "default", "台帳"):
        Ledger.create(file, name, epsilon=1).close()
    assert Ledger.names(file) == ["default", "web", "台帳"]
    with pytest.raises(LedgerError, match="no such file"):
        Ledger.names(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
