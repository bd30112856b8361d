"""Additive models and trees that a ledger pays for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privmax import Ledger, Privacy
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.learning import Number, PrivateGAM, PrivateSearch, PrivateTree, Schema
from privmax.learning.additive.estimator import AdditiveFit
from privmax.learning.additive.fitting import Layout
from privmax.learning.additive.rounds import AdditiveRounds
from privmax.learning.tree import TreeFit, TreeSplits

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


def test_a_fit_by_losses_is_charged_what_it_promises(ledger):
    first = gam(ledger, "losses", accounting="pld").fit(X, Y)
    assert gam(ledger, "losses", accounting="pld").fit(X[:9], Y[:9]).model_ == first.model_
    assert ledger.spent == Privacy(1, 1e-6)
    with pytest.raises(LedgerError):
        gam(ledger, "losses").fit(X, Y)  # noise of another size is another request


def test_fits_by_losses_add_up_in_the_rho_of_their_noise(tmp_path):
    """It is more than that of a fit by ρ at the same epsilon, and so is their sum."""
    spent = {}
    for accounting in ("zcdp", "pld"):
        place = tmp_path / f"{accounting}.db"
        with Ledger.create(place, "zcdp", budget=Privacy(3, "1e-6"), rule="zcdp") as made:
            model = gam(made, accounting=accounting).fit(X, Y)
            (charge,) = [one.body for one in made.history() if "price" in one.body]
            assert Fraction(charge["price"]["rho"]) == model.release_.mechanism.rho
            assert model.release_.mechanism.program().rho() <= model.release_.mechanism.rho
            spent[accounting] = made.spent.epsilon
    assert 1 < spent["zcdp"] * Fraction(103, 100) < spent["pld"]


def test_a_tree_is_charged_and_recorded(ledger):
    options = {"epsilon": 1, "labels": [0, 1], "depth": 2, "ledger": ledger.request("tree")}
    first = PrivateTree(SCHEMA, **options).fit(X, Y)
    again = PrivateTree(SCHEMA, **options).fit(X[:10], Y[:10])
    assert first.tree_ == again.tree_
    assert ledger.spent == Privacy(1)


FORGED = [
    {},
    [],
    {"intercept": 0, "tables": 3, "path": []},
    {"intercept": "0", "tables": [], "path": []},
    {"intercept": 10**9, "tables": [], "path": []},
    {"intercept": 0, "tables": [], "path": [[0]]},
]
TABLE = {"features": [0], "groups": [[0, 1, 2, 3, 4]], "table": [1, 2, 3, 4, 5]}
WRONG = [
    {"features": [2]},
    {"features": [-1]},
    {"features": [0.0]},
    {"features": []},
    {"features": [0, 1]},
    {"groups": [[0, 1, 2, 3, 10**12]]},
    {"groups": [[0, 0, 0, 0, 0]], "table": [1]},
    {"table": [1, 2, 3, 4]},
    {"table": [1, 2, 3, 4, 10**30]},
    {"table": [1, 2, 3, 4, 0.5]},
    {"table": [1, 2, 3, 4, None]},
    {"table": "12345"},
]


def additive_fit():
    rounds = AdditiveRounds(epsilon=1, delta=1e-6, rounds=3, pairs=1)
    return AdditiveFit(rounds, Layout.of(SCHEMA))


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_record_that_is_no_model_is_refused(forged):
    with pytest.raises(LedgerError, match="not fit this schema"):
        additive_fit().read_model(forged)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_record_of_other_cells_is_refused(wrong):
    good = {"intercept": 0, "tables": [TABLE], "path": [[0], [0]]}
    assert additive_fit().read_model(good).intercept == 0
    table = {**TABLE, **wrong}
    with pytest.raises(LedgerError, match="not fit this schema"):
        additive_fit().read_model({**good, "tables": [table], "path": [table["features"]]})


def test_models_with_pairs_are_read_again(ledger):
    first = gam(ledger, "pairs", interactions=2, rounds=2).fit(X, Y)
    assert gam(ledger, "pairs", interactions=2, rounds=2).fit(X, Y).model_ == first.model_
    assert any(len(features) == 2 for features in first.model_.path)


LEAF = {"counts": [1, 2]}


@pytest.mark.parametrize(
    "forged",
    [
        {},
        LEAF,
        {"feature": 0, "cells": [0], "branches": [LEAF]},
        {"feature": 9, "cells": [0], "branches": [LEAF, LEAF]},
        {"feature": 0, "cells": [1], "branches": [LEAF, LEAF]},
        {"feature": 0, "cells": [0], "branches": [LEAF, {"counts": [1]}]},
        {"feature": 0, "cells": [0], "branches": [LEAF, {"counts": [1, "2"]}]},
    ],
    ids=str,
)
def test_a_record_that_is_no_tree_is_refused(forged):
    fit = TreeFit(TreeSplits(epsilon=1, depth=1), SCHEMA)
    assert fit.read_tree({"feature": 0, "cells": [0], "branches": [LEAF, LEAF]}).feature == 0
    with pytest.raises(LedgerError, match="not fit this schema"):
        fit.read_tree(forged)


@pytest.mark.parametrize("learner", [PrivateGAM, PrivateTree])
def test_a_column_that_is_missing_costs_nothing(ledger, learner):
    frame = pd.DataFrame(X, columns=["a", "c"])
    with pytest.raises(ParameterError, match="schema='b' is not allowed"):
        learner(SCHEMA, 1, labels=[0, 1], ledger=ledger).fit(frame, Y)
    assert ledger.spent == Privacy(0)


@pytest.mark.parametrize("learner", [PrivateGAM, PrivateTree])
def test_noise_that_cannot_be_drawn_costs_nothing(ledger, learner):
    with pytest.raises(ParameterError, match="too little for each"):
        learner(SCHEMA, "1e-15", labels=[0, 1], ledger=ledger).fit(X, Y)
    assert ledger.spent == Privacy(0)


def test_a_tree_whose_rows_are_wrong_is_no_answer_of_a_strict_ledger(tmp_path):
    with Ledger.create(tmp_path / "l.db", "s", budget=BUDGET, strict=True) as made:
        with pytest.warns(UserWarning, match="No answer"):
            tree = PrivateTree(SCHEMA, 1, labels=[0, 1], ledger=made).fit(X, Y + 5)
        assert tree.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]


@pytest.mark.slow
def test_a_search_over_additive_models_uses_their_rho_and_records_the_best(tmp_path):
    learner = PrivateGAM(SCHEMA, delta=1e-6, labels=[0, 1])
    options = {"params": {"rounds": [2, 4]}, "epsilon": 2, "delta": 1e-5, "runs": 2}
    with Ledger.create(tmp_path / "l.db", "s", budget=Privacy(3, "2e-5")) as made:
        request = made.request("search")
        first = PrivateSearch(learner, **options, ledger=request).fit(X, Y)
        again = PrivateSearch(learner, **options, ledger=request).fit(X[:5], Y[:5])
    assert first.release_.mechanism.rho is not None
    assert first.best_estimator_.model_ == again.best_estimator_.model_
    assert first.predict(X).tolist() == again.predict(X).tolist()
    assert list(first.best_estimator_.shape_functions_) == list(
        again.best_estimator_.shape_functions_
    )
