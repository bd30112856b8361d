"""Regressions that a ledger pays for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from privmax import Ledger, Privacy
from privmax.errors import BudgetError, DataError, LedgerError
from privmax.learning import Number, PrivateRegressor, Schema
from privmax.learning.additive.fitting import CellLayout
from privmax.learning.regressor.estimator import RegressorFit
from privmax.learning.regressor.terms import RegressorRounds

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(1000, 2))
Y = X[:, 1] * 3
SCHEMA = Schema(a=Number(0, 10, cells=5), b=Number(0, 10, cells=5))


@pytest.fixture(params=["plain", "strict"])
def ledger(tmp_path, request):
    options = {"strict": True} if request.param == "strict" else {}
    budget = Privacy(3, "3e-6")
    with Ledger.create(tmp_path / "budget.db", "learning", budget=budget, **options) as made:
        yield made


def regressor(ledger, request=None, **options):
    given = {"epsilon": 1, "delta": 1e-6, "targets": (0, 30), "rounds": 4, "intervals": True}
    return PrivateRegressor(SCHEMA, **{**given, **options}, ledger=ledger.request(request))


def unread():
    def read(*given, **options):
        raise AssertionError("it was read")

    return type("Frame", (), {"__array__": read})()


def test_a_fit_is_charged_once_and_recorded_whole(ledger):
    first = regressor(ledger, "nightly").fit(X, Y)
    again = regressor(ledger, "nightly").fit(unread(), None)
    assert ledger.spent == first.release_.privacy == Privacy(1, 1e-6)
    assert first.model_ == again.model_ == first.release_.item
    assert again.release_.recorded
    assert again.rules_ == first.rules_
    assert again.predict_interval(X).tolist() == first.predict_interval(X).tolist()
    recorded = [event.body for event in ledger.history() if event.kind == "released"]
    assert recorded[0]["answer"]["items"][0] == first.model_.to_json()
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "other",
    [
        {"targets": (0, 31)}, {"loss": "absolute"}, {"intervals": False}, {"rounds": 5},
        {"epsilon": "0.5"}, {"schema": Schema(a=Number(0, 10), b=Number(0, 10))},
    ],
    ids=str,
)  # fmt: skip
def test_another_question_under_the_same_id_is_refused(ledger, other):
    regressor(ledger, "nightly").fit(X, Y)
    spent = ledger.spent
    with pytest.raises(LedgerError):
        regressor(ledger, "nightly").set_params(**other).fit(X, Y)
    assert ledger.spent == spent


def test_what_does_not_fit_is_refused_before_anything_is_read(ledger):
    with pytest.raises(BudgetError):
        regressor(ledger, epsilon=4).fit(unread(), Y)
    assert ledger.spent == Privacy(0)


def test_rows_without_a_target_cost_nothing_or_are_no_answer(ledger):
    """A strict ledger is charged before the data is read, and does not say what was wrong."""
    if ledger.strict:
        with pytest.warns(UserWarning, match="No answer: .* predicts the middle of the bounds"):
            fitted = regressor(ledger).fit(X, [None] * 1000)
        assert fitted.release_.item is None
        assert fitted.predict(X[:1]).tolist() == [15]
        assert ledger.spent == fitted.privacy_cost().privacy
    else:
        with pytest.raises(DataError):
            regressor(ledger).fit(X, [None] * 1000)
        assert ledger.spent == Privacy(0)


MODEL = {
    "spread": 100,
    "errors": [0] * 32,
    "tables": {
        "intercept": 3,
        "tables": [{"features": [0], "groups": [[0, 1, 2, 3, 4]], "table": [1, 2, 3, 4, 5]}],
        "path": [[0]],
    },
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"spread": 0}, {"spread": 4096}, {"spread": "100"}, {"spread": True}, {"errors": None},
        {"errors": [0] * 31}, {"errors": ["0"] * 32}, {"errors": 3}, {"tables": {}},
        {"tables": {**MODEL["tables"], "intercept": 10**9}},
        {"tables": {**MODEL["tables"], "path": [[0], [0]]}},
        {"errors": [0] * 31 + [10**400]},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_that_is_no_model_is_refused(wrong):
    fit = RegressorFit(RegressorRounds(epsilon=1, rounds=1, intervals=True), CellLayout.of(SCHEMA))
    assert fit.read_model(json.loads(json.dumps(MODEL))).spread == 100
    with pytest.raises(LedgerError, match="not fit this schema"):
        fit.read_model({**MODEL, **wrong})
