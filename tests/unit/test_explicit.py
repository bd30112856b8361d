"""Listed hypotheses: predictors, and columns of predictions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import privmax.learning.classes.contract
from privmax.errors import DataError, ParameterError
from privmax.learning import Counts, Explicit, Shape
from privmax.learning.source import HypothesisSource

X = np.array([[0, 1, 1], [1, 1, 0], [2, 0, 0], [3, 0, 1]])
Y = np.array([0, 1, 1, 1])
SHAPE = Shape(features=3, labels=2)


def high(rows):
    return rows[:, 0] >= 2


class Fitted:
    def predict(self, rows):
        return rows[:, 1]


def test_functions_and_fitted_models_are_counted():
    hypotheses = Explicit([high, Fitted(), lambda rows: np.ones(len(rows))])
    assert hypotheses.size(SHAPE) == 3
    assert hypotheses.score(X, Y, SHAPE).scores() == [3, 1, 3]
    assert hypotheses.hypothesis(0, SHAPE).predict(X).tolist() == [0, 0, 1, 1]


def test_without_predictors_columns_are_predictions():
    predictions = np.array([[0, 1], [1, 1], [0, 1]])
    shape = Shape(features=2, labels=2)
    scored = Explicit().score(predictions, np.array([0, 1, 1]), shape)
    assert scored.scores() == [2, 2]
    assert Explicit().hypothesis(1, shape).predict(predictions).tolist() == [1, 1, 1]


def test_blocks_of_rows_do_not_matter(monkeypatch):
    whole = Explicit([high, Fitted()]).score(X, Y, SHAPE).scores()
    monkeypatch.setattr(privmax.learning.classes.contract, "_ENTRIES", 1)
    assert Explicit([high, Fitted()]).score(X, Y, SHAPE).scores() == whole
    assert Explicit().score(X[:, 1:], Y, Shape(2, 2)).scores() == [1, 1]


def test_rules_read_as_such_and_can_be_pickled():
    says = Explicit([Fitted()]).hypothesis(0, SHAPE)
    assert repr(says) == "<what predictor 0 says>"
    assert repr(Explicit().hypothesis(2, SHAPE)) == "<what column 2 says>"
    assert pickle.loads(pickle.dumps(Explicit().hypothesis(2, SHAPE))) == Explicit().hypothesis(
        2, SHAPE
    )


def test_scores_do_not_show():
    assert repr(Explicit([high]).score(X, Y, SHAPE)) == "Counts(<private>)"


def test_an_empty_list_is_refused():
    with pytest.raises(ParameterError, match="at least one"):
        Explicit([]).size(SHAPE)


@pytest.mark.parametrize("predictors", [high, {"a": high}, iter([high]), [3], [Fitted]])
def test_what_is_no_list_of_predictors_is_refused(predictors):
    with pytest.raises(ParameterError, match="predictor"):
        Explicit(predictors).size(SHAPE)


def test_a_predictor_that_fails_quotes_nothing():
    with pytest.raises(DataError, match=r"Predictor 0 failed \(KeyError\)") as caught:
        Explicit([lambda rows: {}[f"secret {rows[0, 0]}"]]).score(X, Y, SHAPE)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "predictor",
    [
        lambda rows: rows[:1, 0],
        lambda rows: rows[:, 0] + 0.5,
        lambda rows: rows[:, 0] - 1,
        lambda rows: rows[:, 0] + 9,
        lambda rows: np.array(["secret"] * len(rows)),
        lambda rows: rows[:, 0] * np.nan,
    ],
    ids=["short", "half", "negative", "large", "text", "nan"],
)
def test_what_is_no_code_is_refused_without_being_quoted(predictor):
    with pytest.raises(DataError) as caught:
        Explicit([predictor]).score(X, Y, SHAPE)
    assert "secret" not in str(caught.value)
    assert "9" not in str(caught.value)


@pytest.mark.parametrize(
    "counts", [[1, 2], np.array([1.0]), np.array([True]), np.array([[1]]), np.array(["1"])]
)
def test_counts_are_an_array_of_whole_numbers(counts):
    with pytest.raises(ParameterError, match="NumPy array of whole numbers"):
        Counts(counts)


@pytest.mark.parametrize(
    ("size", "message"), [(4, "Count every one"), (2, "Count every one"), (0, "size=0")]
)
def test_a_class_must_count_as_many_as_it_says(size, message):
    class Odd(Explicit):
        def size(self, shape):
            return size

    with pytest.raises(ParameterError, match=message):
        HypothesisSource(Counts(np.array([1, 2, 3])), Odd(), SHAPE)
