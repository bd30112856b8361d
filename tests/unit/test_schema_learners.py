"""Learners with a schema: classifiers as scikit-learn knows them. What is the same of all."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from privmax import Ledger, Privacy
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import (
    Category,
    Number,
    PrivateClassifier,
    PrivateGAM,
    PrivateTree,
    Schema,
)
from privmax.learning.classifier import fitting
from privmax.learning.classifier.choice import ADDITIVE, TEST, TREE
from privmax.testing import SeededCoins
from privmax.warnings import reset_once

RNG = np.random.default_rng(20)
ROWS = 6_000
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0, 100, ROWS),
        "work": RNG.choice(["state", "private", "?"], ROWS),
        "noise": RNG.normal(size=ROWS),
    }
)
Y = (FRAME["age"] >= 50).astype(int).to_numpy()
SCHEMA = Schema(
    age=Number(0, 100, cells=10),
    work=Category(["state", "private"], missing="?"),
    noise=Number(-3, 3, cells=8, missing=True),
)
LEARNERS = {
    "gam": (PrivateGAM, {"rounds": 2}),
    "classifier": (PrivateClassifier, {}),
    "tree": (PrivateTree, {"depth": 1}),
}
"""Each with what makes it quick."""

FITS = {"gam": ("gam", None), "tree": ("tree", None)} | {
    member: ("classifier", member) for member in (TEST, TREE, ADDITIVE)
}
"""Each with the model that it decides for, where it decides."""


@pytest.fixture(params=LEARNERS)
def name(request):
    return request.param


def learner(name, **options):
    kind, given = LEARNERS[name]
    fixed = {"schema": SCHEMA, "epsilon": 20, "labels": [0, 1], "coins": SeededCoins(1)}
    return kind(**{**fixed, **given, **options})


def model_of(learner):
    return learner.tree_ if isinstance(learner, PrivateTree) else learner.model_


UNDECLARED = "labels are declared, and the check has others"
REFUSALS = {
    "check_classifiers_classes": UNDECLARED,
    "check_classifiers_regression_target": UNDECLARED,
    "check_classifier_not_supporting_multiclass": UNDECLARED,
    "check_estimators_dtypes": UNDECLARED,
    "check_classifier_data_not_an_array": UNDECLARED,
    "check_fit2d_1feature": UNDECLARED,
    "check_supervised_y_2d": "a table of labels is refused",
    "check_n_features_in_after_fitting": "a schema says what is missing in its own words",
    "check_fit2d_predict1d": "a schema says what is missing in its own words",
    "check_estimators_empty_data_messages": "a schema says what is missing in its own words",
    "check_complex_data": "a schema says what is missing in its own words",
    "check_dtype_object": "a schema has a cell for every value",
}
"""Checks that ask for other words than ours, or for labels that were not declared."""


def any_width(kind):
    """Return a class with a schema for whatever columns X has: scikit-learn's checks try many."""

    def fit(self, X, y):
        given = self.schema
        width = 1 if np.ndim(np.asarray(X)) < 2 else np.asarray(X).shape[1]
        names = list(X.columns) if hasattr(X, "columns") else [f"x{n}" for n in range(width)]
        if hasattr(X, "tocsr"):
            names = [f"x{n}" for n in range(X.shape[1])]
        self.schema = Schema({name: Number(-5, 5) for name in names or ["x0"]})
        try:
            return super(made, self).fit(X, y)
        finally:
            self.schema = given

    made = type("AnyWidth", (kind,), {"fit": fit, "__init__": kind.__init__})
    globals()["AnyWidth"] = made  # where a pickle finds it
    return made


@pytest.mark.slow
@pytest.mark.parametrize("case", FITS)
def test_check_estimator_passes_as_far_as_a_schema_allows(case, monkeypatch):
    name, member = FITS[case]
    kind, given = LEARNERS[name]
    if member is not None:
        monkeypatch.setattr(fitting, "decide", lambda *given, **options: member)
    results = check_estimator(
        any_width(kind)(epsilon=10, labels=[0, 1], coins=SeededCoins(1), **given),
        on_fail=None,
        on_skip=None,
    )
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed <= set(REFUSALS)
    assert sum(one["status"] == "passed" for one in results) > 35


def test_fit_sets_what_scikit_learn_reads(name):
    model = learner(name).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.99
    assert model.release_.item == model_of(model)
    assert model.release_.privacy == Privacy(20)
    assert model.classes_.tolist() == model.labels_.tolist() == [0, 1]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]
    chances = model.predict_proba(FRAME)
    assert chances.shape == (ROWS, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert not hasattr(learner(name).fit(FRAME.to_numpy(), Y), "feature_names_in_")


def test_the_same_rows_in_other_frames_give_the_same_model(name):
    first = learner(name).fit(FRAME, Y)
    for X in (pl.from_pandas(FRAME), FRAME[["noise", "work", "age"]], FRAME.to_numpy()):
        assert model_of(learner(name).fit(X, Y)) == model_of(first)


def test_parameters_clones_and_pickles(name):
    model = learner(name)
    copy = clone(model).set_params(epsilon="0.5")
    assert (copy.epsilon, model.epsilon) == ("0.5", 20)
    fitted = pickle.loads(pickle.dumps(model.fit(FRAME, Y)))
    assert fitted.predict(FRAME).tolist() == model.predict(FRAME).tolist()
    with pytest.raises(NotFittedError):
        clone(model).predict(FRAME)


def test_a_fitted_model_holds_none_of_the_data(name):
    stored = pickle.dumps(learner(name).fit(FRAME, Y))
    assert FRAME["noise"].to_numpy()[:1].tobytes() not in stored
    assert len(stored) < 10_000


@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"]], ids=str)
def test_scores_of_scikit_learn_are_right_whichever_label_is_declared_second(name, labels):
    """They take classes to be sorted: chances in another order would be read reversed."""
    y = np.where(Y == 1, "yes", "no")
    model = learner(name, labels=labels).fit(FRAME, y)
    assert model.labels_.tolist() == labels
    assert model.classes_.tolist() == ["no", "yes"]
    for scorer, least in (("accuracy", 0.99), ("roc_auc", 0.99), ("neg_log_loss", -0.3)):
        assert get_scorer(scorer)(model, FRAME, y) > least
    chances = model.predict_proba(FRAME)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(FRAME)).all()


def test_the_cost_is_stated_before_a_fit(name):
    cost = learner(name, neighbors="replace").privacy_cost()
    assert (cost.privacy, cost.neighbors, cost.unit) == (Privacy(20), "replace", "row")
    assert cost.rho is None
    assert learner(name, unit="user").privacy_cost().unit == "user"
    if name != "tree":
        assert learner(name, epsilon=1, delta=1e-6).privacy_cost().rho > Fraction(1, 100)


def test_a_second_fit_without_a_ledger_warns(name):
    title = LEARNERS[name][0].__name__
    with reset_once(), pytest.warns(PrivacyWarning, match=f"{title} was fitted 2 times"):
        assert [learner(name, epsilon=1).fit(FRAME, Y) for _ in range(2)]


def test_a_pipeline_that_learns_before_is_warned_of(name):
    schema = Schema(x=Number(-3, 3, cells=4))
    pipeline = make_pipeline(StandardScaler(), learner(name, schema=schema))
    with reset_once(), pytest.warns(PrivacyWarning, match="standardscaler"):
        pipeline.fit(FRAME[["age"]].to_numpy(), Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": None}, r"schema is required: cells and categories are public"),
        ({"schema": {"age": 3}}, r"schema='<dict>' is not allowed: it must be a Schema"),
        ({"labels": None}, r"labels is required: both must be declared"),
        ({"labels": [0, 1, 2]}, r"two different labels.*Only binary classification is supported"),
        ({"labels": ["no", 1]}, r"both numbers or both text"),
        ({"labels": [float("nan"), 1]}, r"two different labels"),
        ({"epsilon": None}, r"epsilon is required"),
        ({"epsilon": 0}, r"epsilon=0 is not allowed"),
        ({"neighbors": "both"}, r"it must be add-remove or replace"),
        ({"unit": ""}, r"unit='' is not allowed"),
    ],
    ids=str,
)
def test_mistakes_are_named_before_rows_are_read(name, options, words):
    unread = type("Frame", (), {"__array__": lambda *rest: pytest.fail("it was read")})()
    with pytest.raises(ParameterError, match=words):
        learner(name, **options).fit(unread, Y)


def test_wrong_data_is_refused_without_quoting_it(name):
    with pytest.raises(DataError, match="A label in y is not among the declared labels"):
        learner(name).fit(FRAME, Y + 7)
    with pytest.raises(DataError, match="A label in y is not among the declared labels"):
        learner(name).check_rows(FRAME, Y + 7)
    assert learner(name).check_rows(FRAME, Y) is None
    with pytest.raises(DataError, match="different numbers of rows"):
        learner(name).fit(FRAME, Y[:-1])
    with pytest.raises(DataError, match="no rows"):
        learner(name).fit(FRAME[:0], Y[:0])
    with pytest.raises(ParameterError, match="y must have a value for each row"):
        learner(name).fit(FRAME, "age")
    with pytest.raises(ParameterError, match="age"):
        learner(name).fit(FRAME[["work", "noise"]], Y)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(Y).astype("Int64").where(Y == 1),
        [np.array([0, 1])] * ROWS,
        [pd.NA] * ROWS,
        [[0]] * (ROWS - 1) + [1],
    ],
    ids=["NA", "arrays", "only NA", "lists"],
)
def test_labels_that_cannot_be_compared_are_refused_as_all_others_are(name, y):
    with pytest.raises(DataError, match=r"A label in y is not among|y should be a 1d array"):
        learner(name).fit(FRAME, y)


def test_an_ibis_table_is_refused_where_rows_must_be_here(name):
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable(FRAME.assign(y=Y))
    fitted = learner(name).fit(FRAME, Y)
    with pytest.raises(DataError, match="Ibis table"):
        fitted.predict(table)
    if name == "tree":
        with pytest.raises(DataError, match="Ibis table"):
            learner(name).fit(table, "y")


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "coins",
    [5, "a", object(), SeededCoins, type("X", (), {"bits": 5})()],
    ids=["number", "text", "object", "class", "bits that are a number"],
)
def test_coins_that_give_no_bits_are_refused_before_the_charge(name, coins, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", budget=Privacy(90, 1e-5))
    given = learner(name, coins=coins, ledger=ledger)
    with pytest.raises(ParameterError, match=r"coins=.* must be a source of random bits"):
        given.fit(FRAME, Y)
    assert ledger.remaining == Privacy(90, 1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gam", {"rounds": 2, "interactions": 1, "calibration": True}),
        ("classifier", {"n": ROWS, "calibration": True}),
        ("tree", {"depth": 1}),
    ],
)
def test_numbers_and_flags_of_numpy_are_those_of_python(name, options):
    same = {
        option: np.bool_(value) if isinstance(value, bool) else np.int64(value)
        for option, value in options.items()
    }
    plain, given = (learner(name, **one).fit(FRAME, Y) for one in (options, same))
    assert plain.release_.item == given.release_.item
    assert repr(plain.release_.mechanism) == repr(given.release_.mechanism)
