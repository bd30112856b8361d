"""Warnings of releases that protect less than they seem to: in Python as on the command line,
once.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from by_name import by_name
from sklearn.model_selection import GridSearchCV, cross_val_score

import privmax
from privmax import Ledger, Privacy, PrivacyWarning, Request, select
from privmax.itemsets import top_itemsets
from privmax.learning import PrivateERM, Stumps, select_model
from privmax.warnings import reset_once

LOG = pd.DataFrame({"query": ["tent"] * 900 + ["mug"], "person": range(901)})
LONG = pd.DataFrame(
    {
        "receipt": [*range(900)] * 2,
        "article": ["a"] * 900 + ["b"] * 900,
        "member": [*range(900)] * 2,
    }
)
PRICE = {"epsilon": 1, "delta": "1e-6"}


@pytest.fixture(autouse=True)
def as_in_a_new_process():
    with reset_once():
        yield


def caught(call):
    """The warnings of ours that a call gives: those of packages are theirs."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [one for one in found if one.category is PrivacyWarning]


def given(call):
    """What they say."""
    return [str(one.message) for one in caught(call)]


WEAK = {
    "select": lambda price: select({"a": 1}, **price),
    "a mechanism": lambda price: select({"a": 1}, mechanism=privmax.NestedMargin(**price)),
    "itemsets": lambda price: top_itemsets([["a", "b"]], **price),
    "supports": lambda price: top_itemsets(
        [["a", "b"]], **{**price, "epsilon": 1}, supports=price["epsilon"]
    ),
    "select_model": lambda price: select_model([lambda rows: [1] * len(rows)], [[1]], [1], **price),
    "PrivateERM": lambda price: PrivateERM(Stumps(low=0, high=1), labels=[0, 1], **price).fit(
        [[0.0]] * 2, [0, 1]
    ),
}


@pytest.mark.filterwarnings("ignore:No answer")
@pytest.mark.parametrize("door", WEAK)
def test_weak_prices(door):
    def ask(**price):
        return [
            one for one in given(lambda: WEAK[door](price)) if one.startswith(("epsilon", "delta"))
        ]

    (told,) = ask(epsilon=50, delta="1e-6")
    assert told.startswith(("epsilon 50 protects no one", "epsilon 51 protects no one"))
    assert ask(epsilon=60, delta="1e-6") == []  # once
    told = ask(epsilon=1, delta="0.1")
    if door in (
        "select_model",
        "PrivateERM",
    ):  # small closed universes: what is chosen needs no delta, and pays none
        assert told == []
    else:
        delta = "0.2" if door == "supports" else "0.1"  # they may use as much as the items
        assert told[0].startswith(f"delta {delta} is the chance that the guarantee fails")


def test_rows_that_count_as_individuals():
    (told,) = given(lambda: select(LOG, item="query", **PRICE))
    assert told.startswith("Each row counts as one individual.")
    assert "set user to" in told
    assert given(lambda: select(LOG, item="query", **PRICE)) == []


@pytest.mark.parametrize(
    "options", [{"user": "person"}, {"unit": "user"}, {"unit": "row"}, {"score": "person"}], ids=str
)
def test_who_says_what_is_hidden_is_not_told(options):
    data = LOG.drop_duplicates("query") if "score" in options else LOG
    assert given(lambda: by_name(select, data, item="query", **PRICE, **options)) == []


def test_what_a_basket_protects():
    columns = {"basket": "receipt", "item": "article"}
    assert given(lambda: top_itemsets(LONG, **columns, user="member", **PRICE)) == []
    assert (
        given(lambda: top_itemsets(LONG, **columns, **PRICE, ledger=Request(unit="basket"))) == []
    )
    (told,) = given(lambda: top_itemsets(LONG, **columns, **PRICE))
    assert told.startswith("Each basket counts as one individual.")
    assert given(lambda: top_itemsets(LONG, **columns, **PRICE)) == []


X, Y = np.array([[1.0], [9.0]] * 30), np.array([0, 1] * 30)


def test_fits_that_nobody_adds_up(tmp_path):
    model = PrivateERM(Stumps(low=0, high=10), epsilon=1, labels=[0, 1])
    assert given(lambda: model.fit(X, Y)) == []
    (told,) = given(lambda: model.fit(X, Y))
    assert told.startswith("PrivateERM was fitted 2 times in this process without a ledger.")
    assert "they cost epsilon 2, delta 0 together so far" in told
    assert "Give a ledger" in told
    assert given(lambda: model.fit(X, Y)) == []


@pytest.mark.parametrize("search", ["grid", "folds"])
def test_a_grid_search_is_warned_of(search):
    model = PrivateERM(Stumps(low=0, high=10), epsilon=1, labels=[0, 1])

    def run():
        if search == "grid":
            GridSearchCV(model, {"epsilon": [1, 2, 3]}, cv=4).fit(X, Y)  # thirteen fits
        else:
            cross_val_score(model, X, Y, cv=5)

    (told,) = given(run)
    assert told.startswith("PrivateERM was fitted 2 times")


def test_fits_that_a_ledger_adds_up_are_not_warned_of(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(99)) as ledger:
        model = PrivateERM(Stumps(low=0, high=10), epsilon=1, labels=[0, 1], ledger=ledger)
        assert given(lambda: cross_val_score(model, X, Y, cv=5)) == []


def test_it_points_at_the_code_that_asks():
    for ask in (
        lambda: select(LOG, item="query", **PRICE),
        lambda: top_itemsets(LONG, basket="receipt", item="article", **PRICE),
    ):
        (one,) = caught(ask)
        assert one.filename == __file__


def test_as_an_error_it_is_raised_every_time_and_nothing_is_charged(tmp_path):
    select(LOG, item="query", **PRICE)  # also where it was said before
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(9, "1e-5"), strict=True) as ledger:
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrivacyWarning)
                with pytest.raises(PrivacyWarning, match="Each row counts"):
                    select(LOG, item="query", **PRICE, ledger=ledger)
        assert ledger.spent == Privacy(0)


def run(program, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )


SERVICE = """
    import privmax
    for _ in range(3):
        privmax.select({"a": 1}, epsilon=50, delta="1e-6")
        privmax.select({"a": 1}, epsilon=60, delta="1e-6")
"""


@pytest.mark.slow
def test_a_process_says_it_once():
    done = run(SERVICE)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("PrivacyWarning: epsilon 50 protects no one") == 1
    assert done.stderr.count("PrivacyWarning") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("action", "code"), [("ignore", 0), ("error", 1)])
def test_the_standard_module_silences_and_escalates_it(action, code):
    program = f"""
    import warnings
    from privmax.errors import PrivacyWarning
    warnings.filterwarnings("{action}", category=PrivacyWarning)
    """
    done = run(textwrap.dedent(program) + textwrap.dedent(SERVICE))
    assert done.returncode == code
    assert ("PrivacyWarning" in done.stderr) is (action == "error")
