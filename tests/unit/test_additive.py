"""PrivateGAM and PrivateTree: classifiers as scikit-learn knows them, on a public schema."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from privmax import Privacy
from privmax.composition import largest_rho
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import Category, Number, PrivateGAM, PrivateTree, Schema
from privmax.learning.additive import steps
from privmax.learning.additive.fitting import Layout, fit_rounds
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.model import AdditiveModel, Part
from privmax.learning.additive.rounds import AdditiveRounds
from privmax.learning.additive.steps import chain, grid, newton_step
from privmax.learning.additive.words import name_cells
from privmax.learning.tree import Leaf
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
CERTAIN = {"schema": SCHEMA, "epsilon": 2, "delta": 1e-6, "labels": [0, 1]}
"""The first column tells the label, and nothing else does."""


def gam(**options):
    return PrivateGAM(**{**CERTAIN, "coins": SeededCoins(1), **options})


class AnyWidth(PrivateGAM):
    """With a schema for whatever columns X has: scikit-learn's checks try many."""

    def fit(self, X, y):
        given = self.schema
        width = 1 if np.ndim(np.asarray(X)) < 2 else np.asarray(X).shape[1]
        names = list(X.columns) if hasattr(X, "columns") else [f"x{n}" for n in range(width)]
        if hasattr(X, "tocsr"):
            names = [f"x{n}" for n in range(X.shape[1])]
        self.schema = Schema({name: Number(-5, 5) for name in names or ["x0"]})
        try:
            return super().fit(X, y)
        finally:
            self.schema = given


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


def test_fit_learns_what_is_certain_at_its_price():
    model = gam().fit(FRAME, Y)
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.release_.item == model.model_
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]
    chances = model.predict_proba(FRAME)
    assert chances.shape == (ROWS, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert ((chances[:, 1] > 0.5) == Y).all()
    assert ((model.decision_function(FRAME) > 0) == Y).all()


def test_without_a_delta_it_costs_epsilon_alone():
    model = gam(delta=0).fit(FRAME, Y)
    assert model.release_.privacy == Privacy(2, 0)
    assert len(model.model_.path) == 20
    assert repr(model.model_).startswith("<additive model: intercept ")
    assert model.score(FRAME, Y) == 1


@pytest.mark.slow
def test_frames_arrays_and_other_frames_are_the_same_rows():
    numbers = FRAME.assign(work=0.0)
    schema = Schema(
        age=Number(0, 100, cells=10), work=Number(0, 1), noise=Number(-3, 3, cells=8, missing=True)
    )
    models = [
        gam(schema=schema).fit(X, Y).model_
        for X in (numbers, numbers.to_numpy(), numbers.to_numpy().tolist(), pl.from_pandas(numbers))
    ]
    assert all(model == models[0] for model in models)
    more = numbers.assign(other="text")[["other", "noise", "age", "work"]]
    assert gam(schema=schema).fit(more, Y).model_ == models[0]


def test_pairs_find_what_no_column_tells_by_itself():
    X = RNG.uniform(-1, 1, (ROWS, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    schema = Schema({name: Number(-1, 1, cells=16) for name in "abc"})
    plain = gam(schema=schema).fit(X, y)
    paired = gam(schema=schema, interactions=3).fit(X, y)
    assert plain.score(X, y) < 0.6
    assert paired.score(X, y) > 0.95
    assert "a × b" in paired.shape_functions_
    assert len(paired.shape_functions_["a × b"]) == 64
    assert paired.shape_functions_["a × b"][0]["cell"] == "a < -0.75 and b < -0.75"


def test_shape_functions_and_rules_tell_the_tables():
    model = gam(rounds=3).fit(FRAME, Y)
    shapes = model.shape_functions_["age"]
    assert [one["cell"] for one in shapes][:2] == ["age < 10", "10 <= age < 20"]
    assert all((one["log_odds"] > 0) == (place >= 5) for place, one in enumerate(shapes))
    assert len(pd.DataFrame(shapes)) == 10
    assert model.rules_[0].partition(": ")[2][0] in "+−"
    assert len(model.rules_) <= sum(len(table) for table in model.model_.tables.values())


@pytest.mark.slow
def test_check_estimator_passes_as_far_as_a_schema_allows():
    learner = AnyWidth(epsilon=10, labels=[0, 1], rounds=2, coins=SeededCoins(1))
    results = check_estimator(learner, on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed <= set(REFUSALS)
    assert sum(one["status"] == "passed" for one in results) > 35


def test_parameters_clones_and_pickles():
    model = gam()
    copy = clone(model).set_params(epsilon="0.5")
    assert (copy.epsilon, model.epsilon) == ("0.5", 2)
    fitted = pickle.loads(pickle.dumps(model.fit(FRAME, Y)))
    assert (fitted.predict(FRAME) == Y).all()
    assert fitted.model_ == model.model_
    assert cross_val_score(PrivateGAM(**CERTAIN), FRAME, Y, cv=2).tolist() == [1, 1]


def test_a_fitted_model_holds_none_of_the_data():
    stored = pickle.dumps(gam().fit(FRAME, Y))
    assert FRAME["noise"].to_numpy()[:1].tobytes() not in stored
    assert len(stored) < 10_000


def test_what_is_not_declared_is_not_told():
    strange = FRAME.assign(work="a-secret-employer")
    model = gam(rounds=6).fit(strange, Y)
    assert "secret" not in repr(model.shape_functions_)
    assert "secret" not in repr(model.release_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": None}, r"schema is required: cells and categories are public"),
        ({"schema": {"age": 3}}, r"schema='<dict>' is not allowed: it must be a Schema"),
        ({"labels": None}, r"labels is required: both must be declared"),
        ({"labels": [0, 1, 2]}, r"two different labels.*Only binary classification is supported"),
        ({"labels": ["no", 1]}, r"both numbers or both text"),
        ({"epsilon": None}, r"epsilon is required"),
        ({"epsilon": 0}, r"epsilon=0 is not allowed"),
        ({"delta": 1}, r"delta"),
        ({"rounds": 0}, r"rounds=0 is not allowed"),
        ({"interactions": -1}, r"interactions=-1 is not allowed"),
        ({"order": "random"}, r"it must be greedy or cyclic"),
        ({"neighbors": "both"}, r"it must be add-remove or replace"),
        ({"unit": ""}, r"unit"),
    ],
)
def test_wrong_parameters_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        gam(**options).fit(FRAME, Y)


def test_wrong_data_is_refused_without_quoting_it():
    with pytest.raises(DataError, match="A label in y is not among the declared labels"):
        gam().fit(FRAME, Y + 7)
    with pytest.raises(DataError, match="different numbers of rows"):
        gam().fit(FRAME, Y[:-1])
    with pytest.raises(DataError, match="no rows"):
        gam().fit(FRAME[:0], Y[:0])
    with pytest.raises(ParameterError, match="y must have a label for each row"):
        gam().fit(FRAME, "age")
    with pytest.raises(ParameterError, match="age"):
        gam().fit(FRAME[["work", "noise"]], Y)
    with pytest.raises(NotFittedError):
        gam().predict(FRAME)


@pytest.mark.slow
def test_rows_are_counted_alike_compiled_or_not():
    pytest.importorskip("numba")
    codes, layout = SCHEMA.codes(FRAME), Layout.of(SCHEMA)
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=4, pairs=2)
    models = [
        fit_rounds(MemoryRows(codes, Y == 1, compiled), layout, terms, SeededCoins(2))
        for compiled in (False, True)
    ]
    assert models[0] == models[1]


def test_missing_values_have_no_neighbors():
    layout = Layout.of(SCHEMA)
    assert layout.apart == (None, None, 0)
    links = layout.links(layout.singles()[2])
    assert links.tolist() == [[cell, cell + 1] for cell in range(1, 8)]
    groups = layout.groups()[2]
    assert groups.count(groups[0]) == 1
    assert chain(1).shape == chain(0).shape == (0, 2)


def test_a_step_goes_where_the_sums_point():
    none = chain(0)
    sure = newton_step(np.array([50.0, -50.0, 0.0]), np.full(3, 1e3), 1.0, none)
    assert sure.round(3).tolist() == [0.04, -0.04, 0.0]
    noisy = newton_step(np.array([50.0, -50.0, 0.0]), np.full(3, 1e3), 1e9, none)
    assert np.abs(noisy).max() < 1e-3
    assert newton_step(np.array([5.0, 5.0, 5.0]), np.full(3, -9.0), 1.0, none).tolist() == [0, 0, 0]


def test_scores_are_sums_of_whole_numbers():
    part, both = Part((0,), ((0, 1),)), Part((0, 1), ((0, 1), (0, 0)))
    model = AdditiveModel(10, {part: (1, 2), both: (100, 200)}, ((0,), (0, 1)))
    codes = np.array([[0, 1], [0, 1]], np.uint8)
    assert model.scores(codes).tolist() == [111, 212]
    assert hash(model) == hash(AdditiveModel.from_json(model.to_json()))


# Trees.


def tree(**options):
    fixed = {"schema": SCHEMA, "epsilon": 4, "labels": [0, 1], "coins": SeededCoins(1)}
    return PrivateTree(**{**fixed, **options})


def test_the_release_of_a_tree_is_a_short_line():
    for depth in (1, 2):
        release = tree(epsilon=1, depth=depth).fit(FRAME, Y).release_
        assert str(release) == f"tree of depth {depth} (epsilon 1, delta 0)"
        assert f"tree of depth {depth}" in release._repr_html_()
        assert "Split(" not in release._repr_html_()


def test_a_tree_splits_where_the_label_changes():
    model = tree(depth=1).fit(FRAME, Y)
    assert model.rules_ == ["age < 50: 0", "not (age < 50): 1"]
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(4)


def test_a_tree_has_all_its_levels():
    model = tree(depth=3).fit(FRAME, Y)
    assert len(model.rules_) == 8
    assert model.score(FRAME, Y) > 0.9


def test_a_tree_refuses_what_it_cannot_do():
    with pytest.raises(ParameterError, match="at most 12"):
        tree(depth=13).fit(FRAME, Y)
    with pytest.raises(ParameterError, match="epsilon is required"):
        tree(epsilon=None).fit(FRAME, Y)


# What an attack found.


@pytest.mark.slow
def test_as_many_cells_as_a_schema_may_have_are_fitted_without_a_dense_matrix():
    schema = Schema(x=Number(0, 1, cells=20_000))
    tracemalloc.start()
    model = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], rounds=1, coins=SeededCoins(1))
    model.fit(RNG.uniform(0, 1, (50, 1)), RNG.integers(0, 2, 50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26
    assert len(model.model_.tables) == 1


def test_a_large_table_gets_the_step_of_a_small_one(monkeypatch):
    sums, curves = RNG.normal(0, 50, 40), RNG.uniform(0, 90, 40)
    for links in (chain(40, isolated=0), grid(chain(8), chain(5), (8, 5)), chain(0)):
        small = newton_step(sums, curves, 30.0, links)
        with monkeypatch.context() as patch:
            patch.setattr(steps, "DENSE", 0)
            assert np.allclose(newton_step(sums, curves, 30.0, links), small, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"epsilon": "1e-15", "delta": 0}, {"epsilon": "1e-9", "delta": "1e-12"}], ids=str
)
def test_a_budget_too_small_for_any_noise_is_refused_before_data_is_read(options):
    def unread(rows):
        raise AssertionError("it was read")

    with pytest.raises(ParameterError, match=r"epsilon=1e-.*too little for each of 20 rounds"):
        gam(**options).fit(type("Frame", (), {"__array__": unread})(), Y)


def test_pairs_of_one_column_are_refused_where_they_would_waste_the_budget():
    with pytest.raises(ParameterError, match="interactions=2 is not allowed: the schema has one"):
        gam(schema=SCHEMA.only(["age"]), interactions=2).fit(FRAME, Y)


def test_the_cost_is_told_before_a_fit():
    price = gam().privacy_cost()
    assert price.privacy == Privacy(2, 1e-6)
    assert price.rho == largest_rho(Fraction(2), Fraction("1e-6"))
    assert gam(delta=0).privacy_cost().rho is None
    assert gam(neighbors="replace").privacy_cost().neighbors == "replace"
    tree_price = tree(neighbors="replace").privacy_cost()
    assert (tree_price.privacy, tree_price.neighbors) == (Privacy(4), "replace")
    with pytest.raises(ParameterError, match="epsilon is required"):
        gam(epsilon=None).privacy_cost()


@pytest.mark.parametrize("learner", [PrivateGAM, PrivateTree])
def test_a_pipeline_that_learns_before_is_warned_of(learner):
    schema = Schema(x=Number(-3, 3, cells=4))
    steps_before = make_pipeline(StandardScaler(), learner(schema, 1, labels=[0, 1]))
    with reset_once(), pytest.warns(PrivacyWarning, match="standardscaler"):
        steps_before.fit(FRAME[["age"]].to_numpy(), Y)


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
def test_labels_that_cannot_be_compared_are_refused_as_all_others_are(y):
    for learner in (gam(), tree()):
        with pytest.raises(DataError, match=r"A label in y is not among|y should be a 1d array"):
            learner.fit(FRAME, y)


def test_labels_that_nothing_equals_are_refused():
    with pytest.raises(ParameterError, match="two different labels"):
        gam(labels=[float("nan"), 1]).fit(FRAME, Y)


def test_parts_with_the_same_title_keep_their_tables():
    schema = Schema({name: Number(-1, 1, cells=2) for name in ("a × b", "a", "b")})
    model = PrivateGAM(schema, 1, labels=[0, 1])
    tables = {
        Part((0,), ((0, 1),)): (256, -256),
        Part((1, 2), ((0, 1), (0, 1))): (1, 2, 3, 4),
        Part((1,), ((0, 1),)): (5, 6),
    }
    model.model_, model.schema_ = AdditiveModel(0, tables), schema
    assert [len(one) for one in model.shape_functions_.values()] == [2, 4, 2]


def test_names_that_look_like_tests_are_told_as_they_are():
    column = Number(0, 40, cells=4).with_name("low <= x < high")
    assert name_cells(column, [0, 1]) == "low <= x < high < 20"
    assert name_cells(column, [1, 2]) == "10 <= low <= x < high < 30"
    assert name_cells(column, [2, 3]) == "low <= x < high >= 20"


def test_an_ibis_table_is_refused_where_rows_must_be_here():
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable(FRAME.assign(y=Y))
    fitted = gam(rounds=1).fit(FRAME, Y)
    with pytest.raises(DataError, match="Ibis table"):
        fitted.predict(table)
    with pytest.raises(DataError, match="Ibis table"):
        tree().fit(table, "y")


def test_many_rounds_give_certain_chances_without_a_warning():
    model = AdditiveModel(0, {Part((0,), ((0, 1),)): (-300_000, 300_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.chances(np.array([[0, 1]], np.uint8)).round(9).tolist() == [0, 1]


@pytest.mark.parametrize("counts", [(-5, -3), (-3, 0), (0, -3), (2, 3), (3, 2), (0, 0)])
def test_a_tree_says_in_words_what_it_predicts(counts):
    model = tree(depth=1).fit(FRAME, Y)
    model.tree_ = Leaf(counts)
    assert model.rules_ == [str(model.predict(FRAME[:1])[0])]


def test_a_tree_knows_the_names_of_its_columns():
    model = tree(depth=1).fit(FRAME, Y)
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]


@pytest.mark.slow
@pytest.mark.parametrize("learner", [PrivateGAM, PrivateTree])
@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"]], ids=str)
def test_scores_of_scikit_learn_hold_whichever_label_is_declared_second(learner, labels):
    """They take classes to be sorted: chances in another order would be read reversed."""
    y = np.where(Y == 1, "yes", "no")
    model = learner(SCHEMA, 50, labels=labels, coins=SeededCoins(1)).fit(FRAME, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert get_scorer("accuracy")(model, FRAME, y) == 1
    assert get_scorer("roc_auc")(model, FRAME, y) > 0.99
    assert get_scorer("neg_log_loss")(model, FRAME, y) > -0.3
    second = model.predict_proba(FRAME)[:, 1] > 0.5
    assert (model.classes_[second.astype(int)] == model.predict(FRAME)).all()
    if learner is PrivateGAM:
        assert ((model.decision_function(FRAME) > 0) == (Y == 1)).all()
        old = [one["log_odds"] for one in model.shape_functions_["age"]][-1]
        assert (old > 0) == (labels[1] == "yes")  # the tables are those of the second one declared
    else:
        assert all(told.rpartition(" ")[2] in labels for told in model.rules_)


@pytest.mark.slow
def test_less_noise_by_losses_at_the_same_cost():
    given = gam(accounting="pld", rounds=3)
    assert given.get_params()["accounting"] == "pld"
    assert gam().get_params()["accounting"] == "zcdp"
    model = clone(given).fit(FRAME, Y)
    assert model.accounting == "pld"
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.privacy_cost().privacy == Privacy(2, 1e-6)
    by_rho = clone(given).set_params(accounting="zcdp")
    assert model.privacy_cost().rho > by_rho.privacy_cost().rho == largest_rho(2, 1e-6)
    noise = model.release_.mechanism.singles.residuals
    assert noise.spread() < by_rho.fit(FRAME, Y).release_.mechanism.singles.residuals.spread()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accounting": "rdp"}, "accounting='rdp' is not allowed: it must be zcdp or pld"),
        ({"accounting": None}, "accounting=None is not allowed"),
        ({"accounting": "pld", "delta": 0}, "it needs a delta above 0"),
        ({"accounting": "pld", "neighbors": "replace"}, "neighbors='add-remove' only"),
    ],
)
def test_accounting_that_is_not_proved_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        gam(**options).fit(FRAME, Y)
    with pytest.raises(ParameterError, match=words):
        gam(**options).privacy_cost()


def test_an_order_that_is_no_word_is_named():
    with pytest.raises(ParameterError, match="it must be greedy or cyclic"):
        gam(order=np.array([1, 2])).fit(FRAME, Y)
