"""PrivateRegressor: a regressor as scikit-learn knows it, on a public schema."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils.estimator_checks import check_estimator

from privmax import Privacy
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import Category, Number, PrivateRegressor, Schema
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.regressor.fitting import describe_errors, fit_errors, shrink
from privmax.learning.regressor.targets import BINS, error_link
from privmax.learning.regressor.terms import RegressorRounds
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
Y = np.where(FRAME["age"] >= 50, 30, 10) + (FRAME["work"] == "state") * 5 + RNG.normal(size=ROWS)
SCHEMA = Schema(
    age=Number(0, 100, cells=10),
    work=Category(["state", "private"], missing="?"),
    noise=Number(-3, 3, cells=8, missing=True),
)


def regressor(**options):
    fixed = {"epsilon": 2, "delta": 1e-6, "targets": (0, 50), "coins": SeededCoins(1)}
    return PrivateRegressor(SCHEMA, **{**fixed, **options})


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_fit_learns_what_is_there_at_its_cost(loss):
    model = regressor(loss=loss).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.97
    assert get_scorer("neg_mean_absolute_error")(model, FRAME, Y) > -1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.release_.item == model.model_
    assert model.targets_.tolist() == [0, 50]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]


def test_without_a_delta_it_costs_epsilon_alone():
    model = regressor(delta=0).fit(FRAME, Y)
    assert model.release_.privacy == Privacy(2)
    assert len(model.model_.tables.path) == 20
    assert repr(model.model_).startswith("<additive regression: intercept ")
    assert model.score(FRAME, Y) > 0.9


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_two_groups_far_apart_are_told_apart(loss):
    """All errors are far beyond reach at first: steps are taken all the same."""
    y = np.where(FRAME["age"] >= 50, 50, 0)
    assert regressor(loss=loss).fit(FRAME, y).score(FRAME, y) > 0.98


def test_means_and_medians_of_a_skewed_target():
    y = np.exp(RNG.normal(0, 1, ROWS))
    for loss, center in (("squared", None), ("absolute", 1.0)):
        model = regressor(loss=loss, targets=(0, 20), epsilon=8).fit(FRAME, y)
        mean = model.predict(FRAME).mean()
        assert (mean > 1.4) if center is None else (abs(mean - center) < 0.25)


def test_pairs_are_found_where_columns_matter_together():
    X = RNG.uniform(-1, 1, (ROWS, 2))
    y = 10 * np.sign(X[:, 0] * X[:, 1])
    schema = Schema({name: Number(-1, 1, cells=16) for name in "ab"})
    options = {"schema": schema, "targets": (-20, 20)}
    plain = regressor().set_params(**options).fit(X, y)
    paired = regressor(interactions=3).set_params(**options).fit(X, y)
    assert plain.score(X, y) < 0.2
    assert paired.score(X, y) > 0.9
    assert "a × b" in paired.shape_functions_


@pytest.mark.parametrize("scale", [1e-6, 1, 1e9])
def test_units_do_not_matter(scale):
    """Targets in other units, with bounds in them, give the same tables."""
    model = regressor().fit(FRAME, Y * scale) if scale == 1 else None
    scaled = regressor(targets=(0, 50 * scale)).fit(FRAME, Y * scale)
    assert scaled.score(FRAME, Y * scale) > 0.97
    assert model is None or scaled.model_ == model.model_


def test_targets_beyond_the_bounds_are_clipped_and_predictions_are_between():
    clipped = regressor(targets=(0, 20)).fit(FRAME, Y)
    same = regressor(targets=(0, 20)).fit(FRAME, np.clip(Y, 0, 20))
    assert clipped.model_ == same.model_
    assert clipped.predict(FRAME).max() <= 20
    extreme = np.where(np.arange(ROWS) == 3, np.inf, Y)
    assert regressor().fit(FRAME, extreme).predict(FRAME).min() >= 0


@pytest.mark.parametrize("missing", [np.nan, None, "unknown"])
def test_rows_without_a_target_are_left_out(missing):
    y = np.where(np.arange(ROWS) % 3 == 0, missing, Y.astype(object))
    kept = np.arange(ROWS) % 3 != 0
    assert regressor().fit(FRAME, y).model_ == regressor().fit(FRAME[kept], Y[kept]).model_


def test_the_same_rows_in_other_containers_give_the_same_model():
    first = regressor(epsilon=1).fit(FRAME, Y)
    for X, y in (
        (pl.from_pandas(FRAME), pl.Series(Y)),
        (FRAME[["noise", "work", "age"]], pd.Series(Y)),
        (FRAME.to_numpy(), Y.tolist()),
        (FRAME, [str(one) for one in Y]),
    ):
        assert regressor(epsilon=1).fit(X, y).model_ == first.model_


def test_intervals_hold_as_many_targets_as_they_say():
    model = regressor(intervals=True).fit(FRAME, Y)
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(FRAME, coverage).T
        assert coverage - 0.05 < np.mean((low <= Y) & (high >= Y)) < coverage + 0.2
        assert (low <= model.predict(FRAME)).all()
        assert (model.predict(FRAME) <= high).all()
    with pytest.raises(ParameterError, match="Fit with intervals=True"):
        regressor().fit(FRAME, Y).predict_interval(FRAME)
    with pytest.raises(ParameterError, match="coverage"):
        model.predict_interval(FRAME, 1.5)


def test_without_rows_to_speak_of_intervals_are_the_bounds():
    model = regressor(intervals=True, epsilon="0.01").fit(FRAME[:20], Y[:20])
    low, high = model.predict_interval(FRAME[:50], 0.99).T
    assert (high - low > 25).all()


def test_shape_functions_and_rules_are_in_units_of_targets():
    model = regressor(rounds=6).fit(FRAME, Y)
    shape = model.shape_functions_["age"]
    assert shape[0]["cell"] == "age < 10"
    assert shape[-1]["effect"] - shape[0]["effect"] == pytest.approx(20, abs=3)
    assert model.rules_[0].rpartition(": ")[2][0] in "+−"
    assert len(model.rules_[0].rpartition(".")[2]) == 2  # a thousandth of all targets is 0.05


def test_parameters_clones_and_pickles():
    model = regressor()
    copy = clone(model).set_params(epsilon="0.5")
    assert (copy.epsilon, model.epsilon) == ("0.5", 2)
    fitted = pickle.loads(pickle.dumps(model.fit(FRAME, Y)))
    assert fitted.predict(FRAME).tolist() == model.predict(FRAME).tolist()
    assert len(pickle.dumps(fitted)) < 10_000


def any_width():
    """Return a class with a schema for whatever columns X has: scikit-learn's checks try many."""

    class AnyWidth(PrivateRegressor):
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

        __init__ = PrivateRegressor.__init__

    AnyWidth.__qualname__ = "AnyWidth"
    globals()["AnyWidth"] = AnyWidth  # where a pickle finds it
    return AnyWidth


REFUSALS = {
    "check_supervised_y_no_nan": "targets beyond the bounds are clipped, and missing ones left out",
    "check_regressor_data_not_an_array": "names of columns are text, and the check has numbers",
    "check_supervised_y_2d": "a table of targets is refused",
    "check_n_features_in_after_fitting": "a schema says what is missing in its own words",
    "check_fit2d_predict1d": "a schema says what is missing in its own words",
    "check_estimators_empty_data_messages": "a schema says what is missing in its own words",
    "check_complex_data": "a schema says what is missing in its own words",
    "check_dtype_object": "a schema has a cell for every value",
}
"""Checks that ask for other words than ours."""


@pytest.mark.slow
def test_check_estimator_passes_as_far_as_a_schema_allows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            any_width()(epsilon=10, targets=(-300, 300), coins=SeededCoins(1)),
            on_fail=None,
            on_skip=None,
        )
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed <= set(REFUSALS)
    assert sum(one["status"] == "passed" for one in results) > 35


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": None}, r"schema is required"),
        ({"targets": None}, r"targets is required: both bounds must be public"),
        ({"targets": (5, 5)}, r"targets=\(5, 5\) is not allowed"),
        ({"targets": (0, float("nan"))}, r"two numbers, the lower first"),
        ({"targets": (1e16, 1e16 + 8)}, r"room for 1,024 floats"),
        ({"targets": (0, 1e-320)}, r"room for 1,024 floats"),
        ({"targets": "low"}, r"two numbers"),
        ({"targets": [0, 1, 2]}, r"two numbers"),
        ({"loss": "huber"}, r"it must be squared or absolute"),
        ({"loss": ["squared"]}, r"it must be squared or absolute"),
        ({"intervals": 1}, r"intervals=1 is not allowed: it must be True or False"),
        ({"interactions": -1}, r"interactions=-1 is not allowed"),
        ({"epsilon": None}, r"epsilon is required"),
        ({"epsilon": "1e-15", "delta": 0}, r"too little for each of 20 rounds"),
        pytest.param(
            {"rounds": 10**5000, "epsilon": 1},
            r"each of a number of thousands of digits rounds",
            id="many rounds",
        ),
        ({"accounting": "pld", "delta": 0}, r"it needs a delta"),
    ],
    ids=str,
)
def test_mistakes_are_named_before_rows_are_read(options, words):
    unread = type("Frame", (), {"__array__": lambda *rest: pytest.fail("it was read")})()
    with pytest.raises(ParameterError, match=words):
        regressor().set_params(**options).fit(unread, Y)


def test_wrong_data_is_refused_without_quoting_it():
    with pytest.raises(DataError, match="different numbers of rows"):
        regressor().fit(FRAME, Y[:-1])
    with pytest.raises(DataError, match="no rows"):
        regressor().fit(FRAME[:0], Y[:0])
    with pytest.raises(DataError, match="no rows with a target"):
        regressor().fit(FRAME[:3], [None] * 3)
    with pytest.raises(ParameterError, match="y must have a value for each row"):
        regressor().fit(FRAME, "age")
    with pytest.raises(DataError, match="Column y has dates"):
        regressor().fit(FRAME, pd.Series(pd.to_datetime(["2024-01-01"] * ROWS)))


def test_the_cost_is_stated_before_a_fit_and_a_second_one_warns():
    cost = regressor(neighbors="replace").privacy_cost()
    assert (cost.privacy, cost.neighbors, cost.unit) == (Privacy(2, 1e-6), "replace", "row")
    assert cost.rho > Fraction(1, 100)
    with reset_once(), pytest.warns(PrivacyWarning, match="PrivateRegressor was fitted 2 times"):
        assert [regressor(epsilon=1).fit(FRAME, Y) for _ in range(2)]


def test_rows_are_counted_alike_compiled_or_not():
    pytest.importorskip("numba")
    from privmax.learning.additive.fitting import CellLayout
    from privmax.learning.regressor.estimator import read_numbers
    from privmax.learning.regressor.targets import target_column

    codes, targets = read_numbers(SCHEMA, FRAME, Y, target_column(np.array([0.0, 50.0])))
    terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=4, pairs=2, intervals=True)
    models = [
        fit_errors(
            MemoryRows(codes, targets, compiled), CellLayout.of(SCHEMA), terms, SeededCoins(2)
        )
        for compiled in (False, True)
    ]
    assert models[0] == models[1]


def test_noise_alone_leaves_the_spread_and_the_middle():
    terms = RegressorRounds(epsilon="0.01", delta=1e-6)
    center, spread, reach = describe_errors(np.zeros(BINS, np.int64), 512, terms)
    assert abs(center) <= 1
    assert 450 < spread < 550
    assert reach == 1.25


def test_curvatures_that_are_noise_are_drawn_to_their_mean():
    drawn = shrink(np.array([-500.0, 700.0, 100.0, 100.0]), 1e6)
    assert np.allclose(drawn, 100, atol=60)
    assert shrink(np.array([-5.0, -6.0]), 1.0).tolist() == [0, 0]


@pytest.mark.parametrize("reach", [0.625, 1.25, 3])
def test_a_link_has_units_in_which_small_errors_are_themselves(reach):
    link = error_link(400, reach)
    for error in (-60, 8, 200):
        place = link.places(np.array([-error]), np.array([2048]))[0]
        assert link.residuals[place] / link.pull * link.step == pytest.approx(error, abs=2)
        assert link.curvatures[place] / link.bend == 1


def test_entries_move_between_fits_as_their_noise_says():
    """Where the mean of a table is moves more: other tables and the start make up for it."""
    random = np.random.default_rng(5)
    X = random.uniform(0, 1, (4_000, 3))
    y = 4 + 2 * (X[:, 0] > 0.5) + X.sum(axis=1) + random.normal(0, 1, len(X))
    schema = Schema({name: Number(0, 1, cells=8) for name in "abc"})
    effects, entries, noise = [], [], []
    for seed in range(20):
        model = PrivateRegressor(
            schema, epsilon=1, delta=1e-6, targets=(0, 12), rounds=12, coins=SeededCoins(seed)
        ).fit(X, y)
        effects.append([[one["effect"] for one in each] for each in told(model)])
        noise.append([[one["noise"] for one in each] for each in told(model)])
        parts = sorted(model.model_.tables.tables, key=lambda part: part.features)
        entries.append([model.model_.tables.tables[part] for part in parts])
    step = 12 / 4_096
    says = np.sqrt(np.mean(np.square(noise), axis=0))
    shown = np.std(effects, axis=0, ddof=1) / says
    recorded = np.std(np.array(entries) * step, axis=0, ddof=1) / says
    assert 0.6 < np.sqrt(np.mean(shown**2)) < 1.1
    assert np.sqrt(np.mean(recorded**2)) > 1.3  # without the mean taken out


def told(model):
    """Return the records of all tables, by name."""
    return [records for _, records in sorted(model.shape_functions_.items())]


def test_effects_and_their_start_add_up_to_the_same_scores():
    tables = regressor(interactions=2).fit(FRAME, Y).model_.tables
    codes = SCHEMA.codes(FRAME)
    assert (tables.centered().scores(codes) == tables.scores(codes)).all()
    assert tables.centered().centered() == tables.centered()
