"""Additive models and trees that a ledger pays for."""

from __future__ import annotations

import numpy as np
import pytest

from privmax import Ledger, Privacy
from privmax.errors import BudgetError, DataError, LedgerError
from privmax.learning import Number, PrivateGAM, PrivateTree, Schema

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(1000, 2))
Y = (X[:, 1] >= 4).astype(int)
SCHEMA = Schema(a=Number(0, 10, cells=5), b=Number(0, 10, cells=5))
BUDGET = Privacy(3, "3e-6")


@pytest.fixture(params=["plain", "strict"])
def ledger(tmp_path, request):
    options = {"strict": True} if request.param == "strict" else {}
    place = tmp_path / "budget.db"
    with Ledger.create(place, "learning", budget=BUDGET, **options) as made:
        yield made


def gam(ledger, request=None, **options):
    given = {"schema": SCHEMA, "epsilon": 1, "delta": 1e-6, "labels": [0, 1], "rounds": 3}
    return PrivateGAM(**{**given, **options}, ledger=ledger.request(request))


def test_a_fit_is_charged_once_and_its_tables_are_recorded(ledger):
    first = gam(ledger, "nightly").fit(X, Y)
    again = gam(ledger, "nightly").fit(X[:10], Y[:10])
    assert ledger.spent == Privacy(1, 1e-6)
    assert first.model_ == again.model_
    assert first.release_.recorded is None or again.release_.recorded
    assert again.predict(X).tolist() == first.predict(X).tolist()
    recorded = [event.body for event in ledger.history() if event.kind == "released"]
    assert recorded[0]["answer"]["items"][0] == first.model_.to_json()
    assert ledger.verify() == []


def test_another_question_under_the_same_id_is_refused(ledger):
    gam(ledger, "nightly").fit(X, Y)
    for other in ({"rounds": 4}, {"labels": [1, 0]}, {"interactions": 1}):
        with pytest.raises(LedgerError):
            gam(ledger, "nightly", **other).fit(X, Y)
    with pytest.raises(LedgerError):
        gam(ledger, "nightly", schema=Schema(a=Number(0, 10), b=Number(0, 10))).fit(X, Y)
    assert ledger.spent == Privacy(1, 1e-6)


def test_what_does_not_fit_is_refused_before_anything_is_read(ledger):
    def unread(rows):
        raise AssertionError("it was read")

    with pytest.raises(BudgetError):
        gam(ledger, epsilon=4).fit(type("Frame", (), {"__array__": unread})(), Y)
    assert ledger.spent == Privacy(0)


def test_wrong_data_costs_nothing_or_is_no_answer(ledger):
    """A strict ledger is charged before the data is read, and does not tell what was wrong."""
    if ledger.strict:
        with pytest.warns(UserWarning, match="No answer"):
            model = gam(ledger).fit(X, Y + 5)
        assert model.release_.item is None
        assert model.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]
        assert ledger.spent == Privacy(1, 1e-6)
    else:
        with pytest.raises(DataError):
            gam(ledger).fit(X, Y + 5)
        assert ledger.spent == Privacy(0)


def test_fits_add_up_in_rho_where_the_rule_does(tmp_path):
    place = tmp_path / "zcdp.db"
    with Ledger.create(place, "zcdp", budget=Privacy(3, "1e-6"), rule="zcdp") as made:
        for _ in range(3):
            gam(made).fit(X, Y)
        assert made.spent.epsilon < 2  # three at epsilon 1 each


def test_a_tree_is_charged_and_recorded(ledger):
    options = {"epsilon": 1, "labels": [0, 1], "depth": 2, "ledger": ledger.request("tree")}
    first = PrivateTree(SCHEMA, **options).fit(X, Y)
    again = PrivateTree(SCHEMA, **options).fit(X[:10], Y[:10])
    assert first.tree_ == again.tree_
    assert ledger.spent == Privacy(1)
