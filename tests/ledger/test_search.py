"""Searches and validations that a ledger pays for."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin

from privmax import Ledger, Privacy
from privmax.composition import epsilon_of_rho
from privmax.errors import BudgetError, LedgerError, UnsupportedError
from privmax.learning import PrivateERM, PrivateSearch, Stumps, validate
from privmax.learning.search import ModelSearch
from privmax.learning.validation import Stability
from privmax.ledger.events import Charge
from privmax.repetition import concentrated_cost

X = np.arange(2000.0).reshape(-1, 1)
Y = (X[:, 0] >= 1000).astype(int)
LEARNER = PrivateERM(Stumps(low=0, high=2000, cells=2), labels=[0, 1])


class Custom(ClassifierMixin, BaseEstimator):
    """It looks at no data; what it sets may have no form in JSON."""

    def __init__(self, at=0.0, epsilon=None, strange=False):
        self.at, self.epsilon, self.strange = at, epsilon, strange

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.at_ = object() if self.strange else {"at": (float(self.at), [1, "a"])}
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] >= self.at).astype(int)


@pytest.fixture
def ledger(tmp_path):
    budget = Privacy(20, "1e-5")
    with Ledger.create(tmp_path / "budget.db", "searches", budget=budget) as made:
        yield made


def search(ledger, learner=LEARNER, params=None, request="monday", **options):
    given = {"epsilon": 8, "runs": 30, "law": "poisson", **options}
    params = {"hypotheses__cells": [3, 2]} if params is None else params
    return PrivateSearch(learner, params, ledger=ledger.request(request), **given)


def bodies(ledger, kind):
    return [event.body for event in ledger.history() if event.kind == kind]


def test_a_search_is_charged_once_and_its_model_is_recorded(ledger):
    made = search(ledger).fit(X, Y)
    assert made.best_params_ == {"hypotheses__cells": 2}
    assert ledger.spent == made.release_.privacy <= Privacy(8)
    (charged,), (recorded,) = bodies(ledger, "reserved"), bodies(ledger, "released")
    assert charged["what"]["command"] == "PrivateSearch"
    assert charged["what"]["options"]["params"] == ["hypotheses__cells"]
    assert "Poisson(rate=30)" in charged["what"]["mechanism"]
    assert "hypothesis_" in json.dumps(recorded)
    assert ledger.verify() == []


def test_a_repeated_request_returns_the_drawn_model_and_reads_no_data(ledger):
    first = search(ledger).fit(X, Y)
    spent = ledger.spent
    again = search(ledger).fit(None, None)
    assert ledger.spent == spent
    assert again.best_params_ == first.best_params_
    assert again.best_score_ == first.best_score_
    assert again.best_estimator_.hypothesis_ == first.best_estimator_.hypothesis_
    assert (again.predict(X) == Y).all()
    assert again.release_.recorded


def test_values_of_distributions_and_odd_attributes_come_back_exactly(ledger):
    params = {"at": stats.uniform(900, 200)}
    first = search(ledger, Custom(), params).fit(X, Y)
    again = search(ledger, Custom(), params).fit(None, None)
    assert first.best_params_ == again.best_params_
    assert first.best_estimator_.at_ == again.best_estimator_.at_
    assert again.best_estimator_.at == first.best_params_["at"]


def test_other_candidates_are_another_question(ledger):
    search(ledger, Custom(), {"at": [1, 2]}).fit(X, Y)
    with pytest.raises(LedgerError, match="different question"):
        search(ledger, Custom(), {"at": [1, 3]}).fit(X, Y)


def test_a_model_that_cannot_be_written_leaves_its_setting_and_a_clear_word(ledger):
    made = search(ledger, Custom(strange=True), {"at": [1000.0]}).fit(X, Y)
    assert made.best_params_ == {"at": 1000.0}
    with pytest.raises(UnsupportedError, match="could not be written into the ledger"):
        made.predict(X)


def test_what_does_not_fit_is_refused_before_data_is_read(ledger):
    with pytest.raises(BudgetError):
        search(ledger, epsilon=30).fit(None, None)
    assert ledger.spent == Privacy(0)


def test_a_strict_ledger_is_charged_first_and_tells_nothing_of_failures(tmp_path):
    with Ledger.create(tmp_path / "strict.db", "strict", budget=Privacy(20), strict=True) as ledger:
        with pytest.warns(UserWarning, match="No answer"):
            made = search(ledger).fit(X, Y[:-1])
        assert made.release_.item is None
        assert ledger.spent.epsilon > 7


def test_a_validation_is_charged_with_the_chance_that_stability_fails(ledger):
    training, validation = (X[:1000], Y[:1000]), (X[1000:], Y[1000:])
    stability = Stability(training="1e-3", validation="1e-3", failure="1e-7")
    candidates = {"low": lambda X, y: 0.2, "high": lambda X, y: 0.9}

    def ask():
        return validate(
            candidates, training, validation, score=lambda model, X, y: model, stability=stability,
            epsilon=1, ledger=ledger.request("validation"),
        )  # fmt: skip

    assert ask().item == "high"
    assert ledger.spent == Privacy(1, "1e-7")
    assert ask().recorded
    assert ledger.spent == Privacy(1, "1e-7")


class Gaussian(Custom):
    """It says that it is zCDP."""

    def privacy_cost(self):
        return Charge(Privacy("1.1", "1e-7"), rho=Fraction(1, 50))


def test_the_rule_zcdp_adds_rho(tmp_path):
    """Of few runs it says more than epsilon and delta do; other rules add those."""
    budget = Privacy(50, "1e-5")
    for rule in ("zcdp", "basic"):
        path = tmp_path / f"{rule}.db"
        with Ledger.create(path, "searches", budget=budget, rule=rule) as ledger:
            options = {"epsilon": None, "delta": "1e-6", "runs": "1.5", "law": "-1/2"}
            made = search(ledger, Gaussian(), {"at": [1000.0]}, **options).fit(X, Y)
            mechanism = made.release_.mechanism
            rho = concentrated_cost(mechanism.score_cost, mechanism.runs)
            (charged,) = bodies(ledger, "reserved")
            assert Fraction(charged["price"]["rho"]) == rho < made.release_.privacy.epsilon**2 / 2
            spent = ledger.spent
        if rule == "basic":
            assert spent == made.release_.privacy
        else:
            alone = epsilon_of_rho(rho, spent.delta)
            assert float(spent.epsilon) == pytest.approx(float(alone), rel=1e-3)


@pytest.mark.parametrize("odd", ["cycle", "deep"])
def test_a_model_that_cannot_be_walked_through_does_not_lose_the_answer(ledger, odd):
    made = search(ledger, Tangled(odd=odd), {"at": [1000.0]}).fit(X, Y)
    assert made.best_params_ == {"at": 1000.0}
    with pytest.raises(UnsupportedError, match="could not be written into the ledger"):
        made.predict(X)


class Tangled(Custom):
    def __init__(self, at=0.0, epsilon=None, odd="cycle"):
        super().__init__(at, epsilon)
        self.odd = odd

    def fit(self, X, y):
        super().fit(X, y)
        self.at_ = found = []
        for _ in range(5000):
            found.append([])
            found = found[0]
        if self.odd == "cycle":
            self.at_ = [self]
        return self


def test_long_parameters_are_another_question_wherever_they_differ(ledger):
    one, other = list(range(300)), [*range(150), 7, *range(151, 300)]
    search(ledger, Custom(strange=one), {"at": [1.0]}).fit(X, Y)
    with pytest.raises(LedgerError, match="different question"):
        search(ledger, Custom(strange=other), {"at": [1.0]}).fit(X, Y)


def test_a_record_that_names_something_else_is_refused(ledger):
    made = search(ledger, Custom(), {"at": [1000.0]})
    template, mechanism, grid = made._plan()
    question = ModelSearch(mechanism, template, grid)
    for name in ("os:system", "privmax.__main__:main"):
        model = {"fitted": {"at_": {"estimator": name, "state": {}}}}
        with pytest.raises(LedgerError, match="cannot be read"):
            question.read_winner({"place": [0, {}], "score": 1, "model": model})
