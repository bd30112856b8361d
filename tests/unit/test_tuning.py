"""Grids that tune hypothesis classes, rules with the names of columns, and scores by name."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer_names, mean_absolute_error, mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from privmax import Ledger, Privacy, select_model
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import (
    Conjunctions,
    Disjunctions,
    Explicit,
    LinearGrid,
    PrivateERM,
    Stumps,
    Trees,
)
from privmax.learning.scoring import find_score

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")

CLASSES = {
    "stumps": (Stumps(low=0, high=100), {"cells": 4}),
    "trees": (Trees(thresholds=[50]), {"thresholds": [25, 50]}),
    "conjunctions": (Conjunctions(2, low=0, high=100), {"literals": 1, "cells": 5}),
    "disjunctions": (Disjunctions(2, thresholds=[50]), {"literals": 1}),
    "explicit": (Explicit(), {"predictors": [lambda rows: np.zeros(len(rows), int)]}),
    "linear": (LinearGrid([[1, 0]], [0.5], low=0, high=100), {"levels": 3, "offsets": [1, 2]}),
}
X = pd.DataFrame({"age": np.arange(1000.0) % 100, "dose": np.arange(1000.0) % 7})
Y = (X["age"] >= 50).astype(int)


def learner(hypotheses, **options):
    return PrivateERM(hypotheses, **{"epsilon": 100, "labels": [0, 1], **options})


# Parameters of classes


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_read_and_set(name):
    given, changes = CLASSES[name]
    before = given.get_params()
    made = clone(learner(given)).hypotheses
    assert made is not given
    assert made.set_params(**changes) is made
    after = made.get_params()
    for parameter, value in changes.items():
        assert np.array_equal(after[parameter], value)
    rest = before.keys() - changes.keys()
    assert all(np.array_equal(after[parameter], before[parameter]) for parameter in rest)
    assert str(given.get_params()) == str(before)  # the clone alone was changed


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_was_set_is_the_one_that_is_made_so(name):
    given, changes = CLASSES[name]
    made = type(given)(**{**given.get_params(), **changes})
    changed = clone(learner(given)).hypotheses.set_params(**changes)
    assert repr(changed) == repr(made)
    assert vars(changed).keys() == vars(made).keys()


def test_what_is_wrong_changes_nothing():
    halves = LinearGrid([[1, 0]], low=0, high=100, levels=5)
    with pytest.raises(ParameterError, match="levels=1000 is not allowed"):
        halves.set_params(offsets=[7], levels=1000)
    assert (halves.levels, halves.offsets) == (5, (0,))
    with pytest.raises(ParameterError, match="Stumps has no such parameter"):
        learner(Stumps(low=0, high=9)).set_params(hypotheses__cell=3)
    with pytest.raises(ParameterError, match="cells=1 is not allowed"):
        learner(Stumps(low=0, high=9)).set_params(hypotheses__cells=1).fit(X, Y)


def test_offsets_beyond_one_grid_count_on_a_finer_one():
    halves = LinearGrid([[1]], [50], low=-1, high=1, levels=3)
    assert halves.offsets == (4,)  # above all that three levels reach
    assert halves.set_params(levels=100).offsets == (50,)
    assert LinearGrid([[1]], [50], low=-1, high=1, levels=100).offsets == (50,)


@pytest.mark.parametrize("name", ["stumps", "trees", "linear"])
def test_what_was_set_can_be_pickled(name):
    given, changes = CLASSES[name]
    made = clone(learner(given)).hypotheses.set_params(**changes)
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)


def test_a_grid_over_a_class_finds_the_cells_that_fit():
    """Only with two cells does a threshold stand at 50; a pipeline hands the name on."""
    grid = {"hypotheses__cells": [3, 2], "epsilon": [100]}
    found = GridSearchCV(learner(Stumps(low=0, high=100)), grid, cv=2).fit(X, Y)
    assert found.best_params_ == {"epsilon": 100, "hypotheses__cells": 2}
    assert found.best_estimator_.rule_ == "y = 1 if age >= 50, else 0"
    assert found.estimator.hypotheses.cells == 16
    within = GridSearchCV(
        make_pipeline(learner(Stumps(low=0, high=100))),
        {"privateerm__hypotheses__cells": [3, 2]},
        cv=2,
    ).fit(X, Y)
    assert within.best_params_ == {"privateerm__hypotheses__cells": 2}


def test_a_grid_may_choose_between_classes():
    grid = {"hypotheses": [Stumps(low=0, high=100, cells=3), Trees(thresholds=[50])]}
    found = GridSearchCV(learner(None), grid, cv=2).fit(X, Y)
    assert found.best_params_ == {"hypotheses": Trees(thresholds=[50])}


def test_a_class_of_your_own_needs_no_parameters():
    class Own:
        def size(self, shape):
            return 1

        score = hypothesis = None

    assert clone(learner(Own())).get_params()["hypotheses"] is not None


# Rules in words


def test_a_rule_names_the_columns_of_a_frame():
    frames = {"pandas": X, "polars": pl.from_pandas(X)}
    for frame in frames.values():
        made = learner(Stumps(low=0, high=100, cells=2)).fit(frame, Y)
        assert made.rule_ == "y = 1 if age >= 50, else 0"
    assert learner(Stumps(low=0, high=100, cells=2)).fit(X.to_numpy(), Y).rule_ == (
        "y = 1 if x0 >= 50, else 0"
    )


@pytest.mark.parametrize(
    ("hypotheses", "rule"),
    [
        (Conjunctions(1, thresholds=[50]), "y = yes if age >= 50, else no"),
        (Disjunctions(1, thresholds=[50]), "y = yes if age >= 50, else no"),
        (LinearGrid([[1, 0]], low=0, high=100), "<1 where +1·z0 ≥ 0, else 0; z0 is"),
    ],
)
def test_rules_of_other_classes(hypotheses, rule):
    made = learner(hypotheses, labels=["no", "yes"]).fit(X, np.where(Y, "yes", "no"))
    assert made.rule_.startswith(rule)


def test_names_that_are_hostile_or_alike():
    odd = X.set_axis(["a\n\x1b[2J", "b"], axis=1)
    rule = learner(Stumps(low=0, high=100, cells=2)).fit(odd, Y).rule_
    assert rule == "y = 1 if a\\n\\x1b[2J >= 50, else 0"
    twice = X.set_axis(["a\n", "a\\n"], axis=1)  # which are spelled alike
    assert learner(Stumps(low=0, high=100, cells=2)).fit(twice, Y).rule_ == (
        "y = 1 if a\\n (x0) >= 50, else 0"
    )
    numbered = X.set_axis([3, 4], axis=1)
    assert learner(Stumps(low=0, high=100, cells=2)).fit(numbered, Y).rule_ == (
        "y = 1 if x0 >= 50, else 0"
    )


def test_there_is_no_rule_before_a_fit():
    assert not hasattr(learner(Stumps(low=0, high=1)), "rule_")


@pytest.mark.parametrize("strict", [True, False])
def test_names_beside_a_ledger_are_those_of_the_frame(tmp_path, strict):
    """Also of a repeated request, and of data that cannot be used: they are no data."""
    with Ledger(tmp_path / "b.db", budget=Privacy(500), strict=strict) as ledger:
        made = learner(Stumps(low=0, high=100, cells=2), ledger=ledger.request("r"))
        rules = [made.fit(X, Y).rule_, made.fit(X.rename(columns={"age": "years"}), Y).rule_]
        assert rules == ["y = 1 if age >= 50, else 0", "y = 1 if years >= 50, else 0"]
        bare = learner(Stumps(low=0, high=100, cells=2), ledger=ledger.request("r"))
        assert bare.fit(X, Y).feature_names_in_.tolist() == ["age", "dose"]
        assert not hasattr(bare.fit(X.to_numpy(), Y), "feature_names_in_")


def test_names_of_data_that_a_strict_ledger_does_not_tell_about(tmp_path):
    wrong = X.astype(object)
    wrong.iloc[3, 0] = "tea"
    with Ledger(tmp_path / "b.db", budget=Privacy(500), strict=True) as ledger:
        with pytest.warns(UserWarning, match="No answer"):
            made = learner(Stumps(low=0, high=100), ledger=ledger).fit(wrong, Y)
        assert made.feature_names_in_.tolist() == ["age", "dose"]
        assert "tea" not in made.rule_


# Scores by name

MODELS = {"half": lambda rows: rows[:, 0] * 0.5, "same": lambda rows: rows[:, 0]}


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"])
def test_errors_by_name(scoring):
    rows = X.to_numpy()
    best = select_model(MODELS, rows, rows[:, 0], scoring=scoring, bounds=(-100, 0), epsilon=1).item
    assert best == "same"


def test_accuracy_by_name_is_accuracy(tmp_path):
    rows = X.to_numpy()
    models = {"right": lambda rows: rows[:, 0] >= 50, "never": lambda rows: rows[:, 0] < 0}
    with Ledger(tmp_path / "b.db", budget=Privacy(5)) as ledger:
        request = ledger.request("r")
        for options in ({}, {"scoring": "accuracy"}, {"scoring": "neg_zero_one_loss"}):
            found = select_model(models, rows, Y, epsilon=1, ledger=request, **options)
            assert found.item == "right"
        assert ledger.spent == Privacy(1)  # one question, three spellings


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("neg_mean_absolute_error", mean_absolute_error),
        ("neg_mean_squared_error", mean_squared_error),
    ],
)
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_a_named_score_is_the_metric_of_one_row(name, metric, kind):
    truth, said = [1, 200, 3], [4.0, 5.0, 3.5]
    score, known = find_score(name, "accuracy", (-9, 0))
    assert known == name
    found = score(kind(truth), kind(said))
    assert found.tolist() == [-metric([t], [s]) for t, s in zip(truth, said, strict=True)]


def test_small_unsigned_numbers_do_not_wrap():
    score, _ = find_score("neg_mean_absolute_error", "accuracy", (-9, 0))
    assert score(np.array([1], np.uint8), np.array([3], np.uint8)).tolist() == [-2.0]


def test_every_name_of_scikit_learn_is_taken_or_refused_with_its_reason():
    taken = {"accuracy", "neg_mean_absolute_error", "neg_mean_squared_error"}
    assert taken < set(get_scorer_names())
    for name in taken:
        assert find_score(name, "accuracy", (-9, 0))[1] == name
    for name in set(get_scorer_names()) - taken:
        with pytest.raises(ParameterError) as caught:
            find_score(name, "accuracy", (-9, 0))
        assert caught.value.allowed.startswith("it is "), name
        assert "accuracy" in caught.value.remedy


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scoring": "f1"}, "a ratio of counts of all rows"),
        ({"scoring": "roc_auc"}, "a ranking of all rows"),
        ({"scoring": "neg_root_mean_squared_error"}, "the root of a mean"),
        ({"scoring": "acuracy"}, 'Did you mean "accuracy"?'),
        ({"scoring": "nonsense"}, "it must be one of accuracy"),
        ({"scoring": mean_squared_error}, "sees all rows at once"),
        ({"scoring": "neg_mean_absolute_error"}, "bounds=None is not allowed"),
        ({"scoring": "accuracy", "bounds": (0, 1)}, "accuracy needs none"),
        ({"scoring": "accuracy", "score": lambda y, said: y}, "score already sets it"),
    ],
)
def test_scores_that_are_refused(options, told):
    with pytest.raises(ParameterError) as caught:
        select_model(MODELS, X.to_numpy(), Y, epsilon=1, **options)
    assert told in str(caught.value)


def test_text_has_no_error():
    with pytest.raises(DataError) as caught:
        select_model(
            MODELS, X.to_numpy(), ["tea"] * 1000, scoring="neg_mean_absolute_error",
            bounds=(-9, 0), epsilon=1,
        )  # fmt: skip
    assert "tea" not in str(caught.value)
