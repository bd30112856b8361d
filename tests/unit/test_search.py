"""A search over private learners."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from privmax import Privacy
from privmax.errors import DataError, ParameterError, PrivacyWarning, UnsupportedError
from privmax.learning import PrivateERM, PrivateSearch, Stumps
from privmax.learning.candidates import SettingsGrid
from privmax.learning.model_records import UnwritableModelError, read_model, write_model
from privmax.learning.search_runs import (
    FAILED,
    RandomRepetition,
    RowSource,
    count_right,
    make_run,
    read_cost,
    split_rows,
    take_rows,
)
from privmax.ledger.events import Charge
from privmax.mechanisms.exponential import Exponential
from privmax.noise.coins import SYSTEM
from privmax.repetition import RunCost, random_runs, repetition_cost
from privmax.testing import SeededCoins
from privmax.warnings import reset_once

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")

X = np.arange(2000.0).reshape(-1, 1)
Y = (X[:, 0] >= 1000).astype(int)


class Threshold(ClassifierMixin, BaseEstimator):
    """Says 1 from a place on. It looks at no data, so it is private at any epsilon."""

    def __init__(self, at=0.0, epsilon=None, delta=0, fails=False):
        self.at, self.epsilon, self.delta, self.fails = at, epsilon, delta, fails

    def fit(self, X, y):
        if self.fails:
            raise ValueError(f"a private number: {X[0]}")
        self.classes_ = np.array([0, 1])
        self.at_ = float(self.at)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] >= self.at_).astype(int)]


def search(**options):
    given = {"epsilon": 4, "runs": 40, "law": "poisson", **options}
    return PrivateSearch(Threshold(), {"at": [0.0, 500.0, 1000.0]}, **given)


def test_it_finds_the_best_setting_and_its_model():
    found = search().fit(X, Y)
    assert found.best_params_ == {"at": 1000.0}
    assert found.best_estimator_.at_ == 1000
    assert (found.predict(X) == Y).all()
    assert found.score(X, Y) == 1
    assert found.classes_.tolist() == [0, 1]
    assert 300 < found.best_score_ < 700  # of about 500 hold-out rows
    assert found.release_.privacy <= Privacy(4)
    assert "score" in repr(found.release_.item)
    assert not hasattr(found, "cv_results_")


def test_the_cost_is_that_of_the_best_of_random_runs():
    learner = Threshold(epsilon="0.5", delta="1e-8")
    made = PrivateSearch(learner, {"at": [1]}, delta="1e-6", runs=20)
    runs = random_runs("geometric", 20)
    assert made.privacy() == repetition_cost(RunCost("0.5", "1e-8"), runs, "1e-6")
    assert made.privacy().delta == Fraction(1, 10**6)


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "poisson", "-1/2"])
def test_epsilon_is_shared_among_runs(law):
    total = search(law=law, epsilon=1).privacy()
    assert Fraction("0.99") < total.epsilon <= 1
    learner = search(law=law, epsilon=1)._plan()[0]
    assert 0 < learner.epsilon < 1


def test_a_concentrated_learner_is_cheaper_and_its_scores_get_gaussian_noise():
    class Gaussian(Threshold):
        def privacy_cost(self):
            return _Cost(Privacy(1, "1e-6"), rho=Fraction(1, 50))

    made = PrivateSearch(Gaussian(), {"at": [1]}, delta="1e-6")
    plain = PrivateSearch(Threshold(epsilon=1, delta="1e-7"), {"at": [1]}, delta="1.01e-6")
    assert made.privacy().epsilon < plain.privacy().epsilon
    mechanism = made._plan()[1]
    assert mechanism.score_cost == RunCost(rho="0.02")
    drawn = [mechanism.noise(SeededCoins(seed)) for seed in range(300)]
    assert np.std(drawn) == pytest.approx(5, rel=0.2)
    assert mechanism.to_rho() is None or mechanism.to_rho() > Fraction(1, 50)


class _Cost:
    def __init__(self, privacy, rho):
        self.privacy, self.rho, self.bounded_range = privacy, rho, False


def test_what_learners_declare():
    assert read_cost(Threshold(epsilon=1)) == RunCost(1)
    given = PrivateERM(Stumps(low=0, high=1), mechanism=Exponential(epsilon=2), labels=[0, 1])
    assert read_cost(given) == RunCost(2)

    class Declared(Threshold):
        def privacy_cost(self):
            return Charge(Privacy(2), bounded_range=True)

    assert read_cost(Declared()) == RunCost(2, 0, "1/2")
    with pytest.raises(ParameterError, match="does not declare what a fit costs"):
        read_cost(Threshold())


def test_a_run_is_pure_only_with_an_epsilon_and_without_a_delta():
    assert RunCost(1).pure
    assert RunCost(1, rho="1/2").pure
    assert not RunCost(1, "1e-9").pure
    assert not RunCost(rho="1/2").pure


def test_every_row_is_used_once():
    mask = split_rows(10_000, Fraction(3, 4), SeededCoins("split"))
    assert mask.mean() == pytest.approx(0.75, abs=0.02)
    (train, _), (rest, _) = (RowSource(X, Y).take(part) for part in (mask[:2000], ~mask[:2000]))
    assert sorted([*train[:, 0], *rest[:, 0]]) == X[:, 0].tolist()


def test_a_row_moves_a_score_by_one_and_by_two_under_replace():
    def spread(neighbors):
        mechanism = RandomRepetition(
            runs=random_runs("geometric", 2), delta=0, epsilon=1, neighbors=neighbors
        )
        return np.std([mechanism.noise(SeededCoins(seed)) for seed in range(2000)])

    assert spread("replace") / spread("add-remove") == pytest.approx(2, rel=0.2)


def test_a_run_that_fails_or_costs_something_else_is_the_last():
    mechanism = RandomRepetition(runs=random_runs("geometric", 2), delta=0, epsilon=1)
    rows = X, Y

    def run(**params):
        return make_run(mechanism, Threshold(epsilon=1), params, (0, {}), rows, rows)

    assert run(at=1000)[0] > 1900
    assert run(fails=True) == (FAILED, None)
    assert run(epsilon=2) == (FAILED, None)


def test_a_row_that_a_model_fails_on_counts_as_wrong_and_spoils_no_other():
    class Fragile(Threshold):
        def predict(self, X):
            if np.isnan(X).any():
                raise ValueError("Input X contains NaN")
            return super().predict(X)

    model = Fragile(at=1000).fit(X, Y)
    assert count_right(model, X, Y) == 2000
    spoiled = X.copy()
    spoiled[7] = np.nan
    assert count_right(model, spoiled, Y) == 1999
    labels = [*Y.tolist()[:-1], "many"]
    assert count_right(model, X, labels) == 1999


def test_where_all_runs_fail_nothing_is_released_and_nothing_is_told():
    made = PrivateSearch(Threshold(fails=True), {"at": [1]}, epsilon=1, runs=3)
    with pytest.warns(UserWarning, match="No answer") as caught:
        made.fit(X, Y)
    assert "private number" not in str([str(one.message) for one in caught])
    assert made.release_.item is None
    with pytest.raises(UnsupportedError, match="Nothing was released"):
        made.predict(X)


def test_settings_may_be_drawn_from_distributions_and_several_mappings():
    spaces = [{"at": stats.uniform(900, 200)}, {"at": [5000.0]}]
    made = PrivateSearch(Threshold(), spaces, epsilon=4, runs=40, law="poisson").fit(X, Y)
    assert 900 <= made.best_params_["at"] <= 1100
    assert isinstance(made.best_params_["at"], float)


def test_a_real_learner_by_nested_parameters():
    learner = PrivateERM(Stumps(low=0, high=2000, cells=2), labels=[0, 1])
    params = {"hypotheses__cells": [3, 2]}
    made = PrivateSearch(learner, params, epsilon=8, runs=30, law="poisson").fit(X, Y)
    assert made.best_params_ == {"hypotheses__cells": 2}
    assert made.best_estimator_.rule_ == "y = 1 if x0 >= 1000, else 0"
    assert not hasattr(made.best_estimator_, "release_")  # it would tell the cost of one run


def test_a_terminal_is_not_told_how_many_runs_there_are(capsys):
    search(verbose=True).fit(X, Y)
    told = "".join(capsys.readouterr())
    assert not any(letter.isdigit() for letter in told)


@pytest.mark.slow
def test_processes_have_coins_of_their_own():
    """The learner must be one that another process can import, so none of this file."""
    learner = PrivateERM(Stumps(low=0, high=2000, cells=2), labels=[0, 1])
    made = PrivateSearch(learner, {"floor": [0, 1]}, epsilon=8, runs=4, n_jobs=2).fit(X, Y)
    assert made.best_params_["floor"] in (0, 1)
    assert (made.predict(X) == Y).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"estimator": Threshold}, "estimator='type'"),
        ({"estimator": "tree"}, "estimator='str'"),
        ({"params": {"depth": [1]}}, "no such parameter"),
        ({"params": {"epsilon": [1, 2]}}, "not a candidate"),
        ({"params": {"at": []}}, "no values"),
        ({"params": {"at": 3}}, "a list, or a distribution"),
        ({"params": []}, "a mapping or a list"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"epsilon": None}, "does not declare"),
        ({"runs": 1}, "runs=1"),
        ({"law": "normal"}, "law='normal'"),
        ({"train": 1}, "train=1 .* For example 0.75"),
        ({"neighbors": "all"}, "neighbors='all'"),
        ({"max_runs": 20}, "max_runs=20"),
        ({"max_runs": 20, "delta": "1e-6"}, "max_runs=20"),
        ({"coins": SeededCoins(1), "n_jobs": 2}, "coins"),
    ],
)
def test_wrong_arguments_are_named(change, match):
    made = search().set_params(**change)
    with pytest.raises(ParameterError, match=match):
        made.fit(X, Y)


def test_what_a_learner_refuses_is_met_before_the_search():
    learner = PrivateERM(Stumps(low=0, high=1))
    with pytest.raises(ParameterError, match="labels"):
        PrivateSearch(learner, {"floor": [0, 1]}, epsilon=1).fit(X, Y)
    with pytest.raises(ParameterError, match="LogisticRegression has no such parameter"):
        PrivateSearch(LogisticRegression(), {"C": [1]}, epsilon=1).fit(X, Y)


def test_a_seed_a_ledger_and_another_relation_are_refused_on_the_learner():
    class Seeded(Threshold):
        def __init__(self, at=0.0, epsilon=None, delta=0, random_state=None, ledger=None):
            super().__init__(at, epsilon, delta)
            self.random_state, self.ledger = random_state, ledger

    for learner, match in (
        (Seeded(random_state=7), "predictable"),
        (Seeded(ledger=object()), "the search is charged"),
        (PrivateERM(Stumps(low=0, high=1), labels=[0, 1], neighbors="replace"), "Give both"),
    ):
        with pytest.raises(ParameterError, match=match):
            PrivateSearch(learner, {}, epsilon=1).fit(X, Y)


def test_wrong_data_is_named():
    with pytest.raises(DataError, match="different numbers of rows"):
        search().fit(X, Y[:-1])
    with pytest.raises(NotFittedError):
        search().predict(X)


def test_it_is_cloned_and_shown_like_any_estimator():
    made = search(delta=0)
    assert clone(made).get_params()["runs"] == 40
    assert "PrivateSearch" in repr(made)


@pytest.mark.parametrize(
    "rows",
    [
        [[1], [2], [3]],
        np.array([[1], [2], [3]]),
        pd.DataFrame({"a": [1, 2, 3]}),
        pl.DataFrame({"a": [1, 2, 3]}),
        pa.table({"a": [1, 2, 3]}),
        sparse.csr_matrix([[1], [2], [3]]),
        pd.Series([1, 2, 3]),
        pl.Series([1, 2, 3]),
    ],
)
def test_rows_of_every_kind_are_taken(rows):
    taken = take_rows(rows, np.array([0, 2]))
    if hasattr(taken, "toarray"):
        taken = taken.toarray()
    values = taken.to_pandas() if isinstance(taken, pa.Table) else taken
    assert np.ravel(np.asarray(values)).tolist() == [1, 3]


def test_candidates_are_drawn_evenly():
    grid = SettingsGrid.of({"at": [1, 2, 3]}, Threshold())
    coins = SeededCoins("grid")
    drawn = [grid.params(grid.draw(coins))["at"] for _ in range(3000)]
    assert np.bincount(drawn)[1:].tolist() == pytest.approx([1000] * 3, rel=0.1)


# Models as JSON


@pytest.mark.slow
def test_models_are_written_and_read():
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    labels = np.where(Y, "yes", "no")
    frame = pd.DataFrame({"x": X[:, 0]})
    for model in (
        LogisticRegression(),
        GaussianNB(),
        OneVsRestClassifier(LogisticRegression()),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ):
        fitted = clone(model).fit(frame, labels)
        again = read_model(clone(model), write_model(fitted))
        assert (again.predict(frame) == fitted.predict(frame)).all()
    with pytest.raises(UnwritableModelError):
        write_model(DecisionTreeClassifier().fit(X, Y))  # compiled, and has no attributes


def test_records_name_only_classes_of_known_packages():
    for written in (
        {"estimator": "os:system", "state": {}},
        {"value": "os:stat_result", "fields": {}},
        {"estimator": "sklearn.base:clone", "state": {}},
    ):
        with pytest.raises(UnwritableModelError):
            read_model(Threshold(), {"fitted": {"at_": written}})


def test_a_warning_of_many_fits_does_not_tell_how_many_runs_there_were():
    learner = PrivateERM(Stumps(low=0, high=2000, cells=2), labels=[0, 1])
    made = PrivateSearch(learner, {"floor": [0, 1]}, epsilon=1, runs=30, law="poisson")
    with reset_once():
        made.fit(X, Y)
        with pytest.warns(PrivacyWarning, match="fitted 2 times"):
            made.fit(X, Y)


def test_system_coins_are_the_default():
    assert search()._plan()[1].noise(SYSTEM) is not None
