"""Classes with a schema: what they count, what their rules say, and what `PrivateERM` makes of
frames with text, categories and missing values.
"""

from __future__ import annotations

import gc
import itertools
import pickle
import warnings
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import (
    Category,
    Conjunctions,
    Disjunctions,
    LinearGrid,
    Number,
    PrivateERM,
    Schema,
    Shape,
    Stumps,
    Trees,
)
from privmax.learning.rules import apply_rule, check_rule, list_features, write_rule
from privmax.learning.splits import find_split, splits_of
from privmax.ledger import Ledger
from privmax.testing import SeededCoins
from privmax.warnings import reset_once

SCHEMA = Schema(
    age=Number(0, 100, cells=5, missing=True),
    work=Category(["Private", "Gov"], missing="?"),
    flag=Category([0]),
)
SHAPE = Shape(features=3, labels=2)
CLASSES = [
    Stumps(schema=SCHEMA),
    Trees(schema=SCHEMA),
    Conjunctions(2, schema=SCHEMA),
    Disjunctions(2, schema=SCHEMA),
    LinearGrid.random(directions=40, seed=1, schema=SCHEMA, offsets=[0, 200], levels=3),
]
NAMES = [type(one).__name__ for one in CLASSES]


def people(rows=600, seed=5):
    """Invented people, and whether the rule "age >= 40 and work = Private" says yes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "name": [f"n{place}" for place in range(rows)],
            "age": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 110, rows)),
            "flag": rng.integers(0, 2, rows),
            "work": rng.choice(["Private", " Private", "Gov", "?", "Circus", None], rows),
        }
    )
    yes = (X["age"] >= 40) & (X["work"].str.strip() == "Private")
    return X, np.where(yes, "yes", "no")


@pytest.mark.parametrize("hypotheses", CLASSES, ids=NAMES)
def test_scores_are_what_each_hypothesis_gets_right(hypotheses):
    X, labels = people(60)
    cells, y = SCHEMA.codes(X).T, (labels == "yes").astype(np.intp)
    scores = hypotheses.score(cells, y, SHAPE)
    size = hypotheses.size(SHAPE)
    some = range(size) if size < 2000 else np.random.default_rng(1).integers(0, size, 500).tolist()
    right = {n: int((hypotheses.hypothesis(n, SHAPE).predict(cells) == y).sum()) for n in some}
    if size < 2000:
        counted = dict(scores.histogram(0))
        for score, number in counted.items():
            assert number == sum(1 for one in right.values() if one == score)
        top = scores.maximum()
        assert right[scores.at(top, 0)] == top == max(right.values())
    else:
        assert max(right.values()) <= scores.maximum()
        for index in (0, 1, 5):
            number = scores.at(scores.maximum(), 0)
            assert (hypotheses.hypothesis(number, SHAPE).predict(cells) == y).sum() == (
                scores.maximum()
            )
            assert scores.at_or_below(scores.maximum(), index) == index


@pytest.mark.parametrize("compiled", [False, True])
def test_both_searches_know_tests_for_names(compiled, monkeypatch):
    from privmax.learning.classes.covers import search

    if compiled:
        pytest.importorskip("numba")
    choose = search._choose_walk
    monkeypatch.setattr(search, "_choose_walk", lambda _, size: choose(compiled, size))
    X, labels = people(80)
    cells, y = SCHEMA.codes(X).T, (labels == "yes").astype(np.intp)
    rules = Conjunctions(3, schema=SCHEMA)
    scores = rules.score(cells, y, SHAPE)
    right = [
        int((rules.hypothesis(number, SHAPE).predict(cells) == y).sum())
        for number in range(rules.size(SHAPE))
    ]
    levels = sorted(set(right) - {0}, reverse=True)
    assert scores.histogram(0) == [(level, right.count(level)) for level in levels]


def test_the_tests_of_a_class_are_those_of_the_schema():
    stumps = Stumps(schema=SCHEMA)
    # 5 cells and one for missing: 5 bounds; missing, 2 names, not listed: 4; one name and others: 1
    assert stumps.size(SHAPE) == 2 + 2 * (5 + 4 + 1)
    told = [stumps.hypothesis(number, SHAPE).rule() for number in range(2, 12)]
    assert [rule.removeprefix("1 if ").removesuffix(" else 0") for rule in told] == [
        "age is not missing",
        "age >= 20",
        "age >= 40",
        "age >= 60",
        "age >= 80",
        "work is missing",
        "work = Private",
        "work = Gov",
        "work is not listed",
        "flag = 0",
    ]


@pytest.mark.parametrize("hypotheses", CLASSES[:4], ids=NAMES[:4])
def test_rules_in_json_say_of_every_row_what_the_hypothesis_says(hypotheses):
    X, _ = people(120)
    cells, names = SCHEMA.codes(X).T, SCHEMA.names
    for number in np.random.default_rng(2).integers(0, hypotheses.size(SHAPE), 60).tolist():
        hypothesis = hypotheses.hypothesis(number, SHAPE)
        rule = check_rule(write_rule(hypothesis, names, [0, 1]), SCHEMA)
        columns = {name: cells[:, names.index(name)] for name in list_features(rule)}
        said = apply_rule(rule, columns, len(cells), SCHEMA)
        assert said.tolist() == hypothesis.predict(cells).tolist()


def test_rules_that_are_not_about_the_schema_are_refused():
    test = {"feature": "age", "threshold": 41.0, "below": False, "missing": False}
    for wrong in (test, {"feature": "work", "equals": "Circus", "not": False}, {"feature": 3}, 7):
        rule = {"when": "all", "tests": [wrong], "then": {"label": 1}, "else": {"label": 0}}
        with pytest.raises(DataError, match="not a rule"):
            check_rule(rule, SCHEMA)


def learner(hypotheses, **options):
    given = {"epsilon": 30, "labels": ["no", "yes"], "coins": SeededCoins(3), **options}
    return PrivateERM(hypotheses, **given)


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "array", "list"])
def test_frames_of_all_kinds_give_the_same_rule(kind):
    X, y = people()
    data = X.astype(object).where(X.notna(), None).to_dict("list")
    made = {
        "pandas": X,
        "polars": pl.DataFrame(data),
        "arrow": pa.table(data),
        "array": X[["age", "work", "flag"]].to_numpy(object),
        "list": X[["age", "work", "flag"]].to_numpy(object).tolist(),
    }[kind]
    fitted = learner(Conjunctions(2, schema=SCHEMA)).fit(made, y)
    assert fitted.rule_ == "y = yes if age >= 40 and work = Private, else no"
    assert repr(fitted.hypothesis_) == "<1 if age >= 40 and work = Private else 0>"
    assert fitted.predict(made).tolist() == y.tolist()
    assert fitted.feature_names_in_.tolist() == ["age", "work", "flag"]
    assert fitted.n_features_in_ == 3
    assert pickle.loads(pickle.dumps(fitted)).predict(made).tolist() == y.tolist()


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
def test_trees_and_stumps_speak_of_columns_by_name():
    X, y = people()
    tree = learner(Trees(schema=SCHEMA)).fit(X, y)
    assert "age" in tree.rule_
    assert "work = Private" in tree.rule_
    assert tree.hypothesis_.rule() in repr(tree.hypothesis_)
    stump = learner(Stumps(schema=SCHEMA), labels=[False, True]).fit(X, X["flag"] == 0)
    assert stump.rule_ == "y = True if flag = 0, else False"


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
def test_sparse_matrices():
    dense = np.random.default_rng(1).integers(0, 3, (300, 2))
    words = Schema(tea=Number(0, 3, cells=3), ale=Number(0, 3, cells=3))
    fitted = learner(Stumps(schema=words), labels=[0, 1]).fit(csr_matrix(dense), dense[:, 1] >= 2)
    assert fitted.rule_ == "y = 1 if ale >= 2, else 0"
    assert (fitted.predict(csr_matrix(dense)) == (dense[:, 1] >= 2)).all()


def test_what_is_wrong_with_a_frame_is_told_by_name_and_never_by_value():
    X, y = people(30)
    for wrong, told in [
        (X.drop(columns="work"), "schema='work' .* no such column"),
        (X.assign(work=pd.Timestamp("2026-11-16")), "Column work has dates"),
        (X.iloc[:0], "no rows"),
        (X.iloc[:-1], "different numbers of rows"),
    ]:
        labels = y[: len(wrong)] if "rows" not in told or not len(wrong) else y
        with pytest.raises((DataError, ParameterError, ValueError), match=told) as error:
            learner(Stumps(schema=SCHEMA)).fit(wrong, labels)
        assert "Circus" not in str(error.value)


@pytest.mark.parametrize("make", [Stumps, Trees, Conjunctions, Disjunctions])
def test_bounds_beside_a_schema_are_refused(make):
    for wrong in ({"low": 0}, {"high": 3}, {"cells": 5}, {"thresholds": [1]}):
        (name,) = wrong
        with pytest.raises(ParameterError, match=f"{name}=.* the schema already sets it"):
            make(schema=SCHEMA, **wrong).size(SHAPE)
    with pytest.raises(ParameterError, match="it must be a Schema"):
        make(schema={"age": 3}).size(SHAPE)
    with pytest.raises(ParameterError, match="of 3 columns"):
        make(schema=SCHEMA).size(Shape(4, 2))


def test_half_spaces_with_a_schema():
    with pytest.raises(ParameterError, match="the schema needs 7"):
        LinearGrid([[1, 2, 3]], schema=SCHEMA)
    with pytest.raises(ParameterError, match="without low and high"):
        LinearGrid([[1] * 7], low=0, high=1, schema=SCHEMA)
    halves = LinearGrid([[1, 0, 5, 0, 0, 0, 0]], [4], schema=SCHEMA, levels=2)
    rule = halves.hypothesis(0, SHAPE)
    assert rule.rule().startswith("1 where +1·age +5·[work = Private] ≥ 4, else 0")
    rows = [[99, "Private", 1], [99, "Gov", 1], [None, "Private", 0], [0, "?", 0]]
    # 2 + 10, 2, 0 + 10, −2
    assert rule.predict(SCHEMA.codes(rows).T).tolist() == [1, 0, 1, 0]


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
def test_a_ledger_tells_schemas_apart_and_knows_requests_of_before(tmp_path):
    X, y = people(100)
    ledger = Ledger.create(tmp_path / "budget.db", epsilon=200)
    one = learner(Stumps(schema=SCHEMA), ledger=ledger.request("one")).fit(X, y)
    again = learner(Stumps(schema=SCHEMA), ledger=ledger.request("one")).fit(X.iloc[:1], y[:1])
    assert again.rule_ == one.rule_
    other = Schema(age=Number(0, 99, cells=5), work=SCHEMA.columns[1], flag=SCHEMA.columns[2])
    with pytest.raises(Exception, match="one"):
        learner(Stumps(schema=other), ledger=ledger.request("one")).fit(X, y)
    assert "schema" not in repr(Stumps(low=0, high=1))
    assert repr(Stumps(low=0, high=1)) == "Stumps(low=0, high=1, cells=16, thresholds=None)"


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
def test_a_strict_ledger_needs_no_shape_where_there_is_a_schema(tmp_path):
    X, y = people(200)
    ledger = Ledger.create(tmp_path / "budget.db", epsilon=200, strict=True)
    made = learner(Conjunctions(2, schema=SCHEMA), ledger=ledger)
    assert made.fit(X, y).rule_.startswith("y = yes if age >= 40")
    bounds = {"low": {"age": 0, "flag": 0}, "high": {"age": 100, "flag": 1}}
    frame = X[["flag", "age"]].fillna(0)
    made = learner(Stumps(**bounds, cells=2), labels=[False, True], ledger=ledger)
    made.fit(frame, frame["age"] >= 50)
    assert made.rule_ == "y = True if age >= 50, else False"


@pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")
def test_bounds_by_name_for_frames():
    X = pd.DataFrame({"tax": np.arange(400.0) % 7, "age": np.arange(400.0) % 100})
    bounds = {"low": {"age": 0, "tax": 0}, "high": {"tax": 7, "age": 100}}
    fitted = learner(Stumps(**bounds, cells=2), labels=[0, 1]).fit(X, X["age"] >= 50)
    assert fitted.rule_ == "y = 1 if age >= 50, else 0"
    assert clone(fitted).hypotheses.low == {"age": 0, "tax": 0}
    cuts = Trees(thresholds={"tax": [], "age": [50]})
    assert "age >= 50" in learner(cuts, labels=[0, 1]).fit(X, X["age"] >= 50).rule_
    for wrong, given, told in [
        ({"age": 0}, X, "low is required: the column tax has no such bound"),
        ({"age": 0, "tax": 0, "hight": 3}, X, "low='hight' .* no such column"),
        ({"age": 0, "tax": 0}, X.to_numpy(), "names columns, and the columns of X have no names"),
    ]:
        with pytest.raises(ParameterError, match=told):
            learner(Stumps(low=wrong, high=100), labels=[0, 1]).fit(given, X["age"] >= 50)


def test_a_column_that_is_not_of_numbers_is_named_by_its_type():
    X = pd.DataFrame({"age": [41, 30], "work": ["Circus", "Gov"]})
    plain = learner(Stumps(low=0, high=1), labels=[0, 1])
    for frame in (X, pl.DataFrame(X.to_dict("list")), pa.table(X.to_dict("list"))):
        with pytest.raises(DataError, match="column work has text by its type") as told:
            plain.fit(frame, [0, 1])
        assert "Circus" not in str(told.value)
    with pytest.raises(DataError, match="only these columns may have one: work") as told:
        plain.fit(X.astype({"work": object}), [0, 1])
    assert "Circus" not in str(told.value)
    with pytest.raises(DataError, match="column born has dates"):
        plain.fit(pd.DataFrame({"born": pd.to_datetime(["1985-01-01"] * 2)}), [0, 1])


def told_of(pipeline, X, y):
    """The warnings about the steps of a pipeline that is fitted."""
    with reset_once(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(X, y)
    return [str(one.message) for one in caught if "pipeline learns" in str(one.message)]


def test_steps_that_learn_from_private_rows_are_warned_of():
    X, y = people(80)
    X = X[["age", "work"]].fillna({"age": 0, "work": "?"})
    plain = learner(Stumps(low=0, high=1))
    for encoder, name in [
        (OneHotEncoder(sparse_output=False), "onehotencoder (OneHotEncoder)"),
        (OrdinalEncoder(), "ordinalencoder (OrdinalEncoder)"),
    ]:
        columns = make_column_transformer((encoder, ["work"]), ("passthrough", ["age"]))
        (told,) = told_of(make_pipeline(columns, plain), X, y)
        assert f"columntransformer.{name}" in told
        nested = make_pipeline(make_pipeline(columns), StandardScaler(), plain)
        (told,) = told_of(nested, X, y)
        assert "standardscaler (StandardScaler)" in told
    with reset_once(), warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="pipeline learns"):
            make_pipeline(StandardScaler(), plain).fit(X[["age"]], y)


def test_steps_that_learn_nothing_are_not_warned_of():
    X, y = people(80)
    X = X[["age", "work"]].fillna({"age": 0, "work": "?"})
    declared = OneHotEncoder(
        categories=[["Private", "Gov"]], handle_unknown="ignore", sparse_output=False
    )
    columns = make_column_transformer((declared, ["work"]), ("passthrough", ["age"]))
    plain = learner(Stumps(low=0, high=1))
    filled = SimpleImputer(strategy="constant", fill_value=0)
    for pipeline in (
        make_pipeline(columns, plain),
        make_pipeline(FunctionTransformer(lambda rows: rows[["age"]]), filled, plain),
        learner(Stumps(schema=SCHEMA.only(["age", "work"]))),
        make_pipeline(learner(Stumps(schema=SCHEMA.only(["age", "work"])))),
    ):
        assert told_of(pipeline, X, y) == []


def test_every_test_of_a_schema_is_found_and_no_other():
    columns = {
        "one": Category(["a"]),
        "bits": Category([True, 0]),
        "missing": Number(0, 1, cells=2),
    }
    schema = Schema({**dict(zip(SCHEMA.names, SCHEMA.columns, strict=True)), **columns})
    for splits in splits_of(schema):
        for place, below in itertools.product(range(len(splits)), (False, True)):
            split = splits[place]
            test = split.to_dict(below=below)
            assert find_split(schema, test) == (split, below)
            for change in ({"threshold": 7}, {"equals": "x"}, {"state": "x"}, {"more": 1}):
                with pytest.raises(DataError):
                    find_split(schema, test | change)
    with pytest.raises(DataError):  # it is where "a" is not
        find_split(schema, {"feature": "one", "state": "not listed", "not": False})


def test_many_tests_of_many_values_are_found_at_once():
    schema = Schema(work=Category([f"v{place}" for place in range(60_000)]))
    test = {"feature": "work", "equals": "v59999", "not": False}
    rule = {"when": "any", "tests": [test] * 5000, "then": {"label": 1}, "else": {"label": 0}}
    cells = np.array([59_999, 3])
    assert apply_rule(check_rule(rule, schema), {"work": cells}, 2, schema).tolist() == [1, 0]


class Odd(TransformerMixin, BaseEstimator):
    """Somebody's own, with attributes that look like those of scikit-learn."""

    transformers = ("odd", 3)
    steps = None

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


TERMS = {"vocabulary": ["a"], "token_pattern": "a"}
BITS = np.tile([0.0, 1.0], 40)[:, None]


@pytest.mark.parametrize(
    ("step", "learns"),
    [
        (TargetEncoder(categories=[[0.0, 1.0]]), True),
        (OneHotEncoder(categories=[[0.0, 1.0]], min_frequency=3, sparse_output=False), True),
        (SimpleImputer(strategy="constant", fill_value=0, add_indicator=True), True),
        (make_column_transformer(("passthrough", []), remainder=StandardScaler()), True),
        (make_union(StandardScaler()), True),
        (Odd(), True),
        (PolynomialFeatures(), False),
        (FrozenEstimator(StandardScaler().fit(BITS)), False),
        (make_column_transformer(("passthrough", [0])), False),
    ],
)
def test_which_steps_learn(step, learns):
    plain, y = learner(Stumps(low=0, high=1)), np.where(BITS[:, 0], "yes", "no")
    assert bool(told_of(make_pipeline(step, plain), BITS, y)) == learns
    assert (
        bool(told_of(make_pipeline(step, make_pipeline("passthrough", plain)), BITS, y)) == learns
    )


@pytest.mark.parametrize("idf", [False, True])
def test_words_may_be_declared_and_their_weights_learned(idf):
    dense = FunctionTransformer(lambda found: found.toarray(), accept_sparse=True)
    step = TfidfVectorizer(**TERMS, use_idf=idf)
    X, y = ["a a", "b"] * 40, ["yes", "no"] * 40
    told = told_of(make_pipeline(step, dense, learner(Stumps(low=0, high=1))), X, y)
    assert bool(told) == idf


@pytest.mark.slow
def test_looking_for_a_pipeline_keeps_no_data_of_callers_alive():
    def call():
        X = BITS.copy()
        alive = weakref.ref(X)
        plain = learner(Stumps(low=0, high=1)).fit(X, np.where(X[:, 0], "yes", "no"))
        del X
        gc.collect()
        return alive() is None, plain

    assert call()[0]


def test_nothing_in_the_data_changes_how_others_are_read():
    """Whatever one row holds, the cells of all others stay as they are."""
    X, _ = people(40)
    cells = SCHEMA.codes(X.iloc[1:])
    odd = [-1e9, np.inf, np.nan, "x", "41", None, True, "?", 7.5, 2**70]
    for age, work in itertools.product(odd, odd):
        changed = X.astype(object)
        changed.loc[0, "age"], changed.loc[0, "work"] = age, work
        assert (SCHEMA.codes(changed)[:, 1:] == cells).all()
