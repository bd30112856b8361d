"""Validation by stability."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from privmax import Exponential, Privacy
from privmax.errors import DataError, ParameterError
from privmax.learning import validate
from privmax.learning.validation import Stability

RNG = np.random.default_rng(3)
X = RNG.normal(size=(600, 2))
Y = (X[:, 0] > 0).astype(int)
TRAINING, VALIDATION = (X[:300], Y[:300]), (X[300:], Y[300:])
STABILITY = Stability(training="0.005", validation="1/300")


def accuracy(model, X, y):
    return (model.predict(X) == y).mean()


def choose(candidates, **options):
    given = {"score": accuracy, "stability": STABILITY, "epsilon": 5, **options}
    return validate(candidates, TRAINING, VALIDATION, **given)


def test_the_best_setting_is_released_and_no_model():
    candidates = {
        "sensible": LogisticRegression(C=1.0),
        "constant": lambda X, y: _Constant(),
    }
    release = choose(candidates)
    assert release.item == "sensible"
    assert release.privacy == Privacy(5)
    assert release.mechanism.neighbors == "replace"
    assert not hasattr(candidates["sensible"], "coef_")  # copies were trained


class _Constant:
    def predict(self, X):
        return np.zeros(len(X))


def test_the_larger_of_the_two_movements_counts_and_failure_is_charged():
    assert STABILITY.most == Fraction(1, 200)
    unsure = Stability(training="0.005", validation="1/300", failure="1e-6")
    assert choose([LogisticRegression()], stability=unsure).privacy == Privacy(5, "1e-6")


def test_less_stable_scores_need_larger_leads():
    """At a movement of 1 a lead of .4 says nothing; at 1/200 it decides."""
    scores = {"a": lambda X, y: 0.9, "b": lambda X, y: 0.5}

    def wins(stability):
        found = [
            choose(scores, stability=stability, score=lambda m, X, y: m, epsilon=1).item
            for _ in range(60)
        ]
        return found.count("a")

    assert wins(STABILITY) == 60
    assert wins(Stability(training=1, validation=1)) < 55


@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        ({"stability": 0.1}, ParameterError, "stability='float'"),
        ({"mechanism": Exponential(epsilon=1), "epsilon": None}, ParameterError, "replace"),
        ({"epsilon": None}, ParameterError, "epsilon"),
        ({"score": lambda m, X, y: float("nan")}, DataError, "not finite"),
        ({"score": lambda m, X, y: "good"}, DataError, "not a number"),
        ({"score": lambda m, X, y: 1 / 0}, DataError, "The score failed"),
    ],
)
def test_wrong_arguments_are_named(change, kind, match):
    with pytest.raises(kind, match=match):
        choose([LogisticRegression()], **change)


@pytest.mark.parametrize("candidates", [[], {}, "tree", [LogisticRegression], [3]])
def test_wrong_candidates_are_named(candidates):
    with pytest.raises(ParameterError, match="candidates"):
        choose(candidates)


def test_wrong_stability_is_named():
    for given in ({"training": 0, "validation": 1}, {"training": 1, "validation": -1}):
        with pytest.raises(ParameterError, match=r"training|validation"):
            Stability(**given)


@pytest.mark.parametrize(
    ("training", "validation", "match"),
    [
        (TRAINING, TRAINING, "never both"),
        (TRAINING, (TRAINING[0], Y[300:]), "never both"),
        (X[:300], Y[:300], "training='ndarray'"),
        (TRAINING, None, "validation='NoneType'"),
    ],
)
def test_rows_are_used_once(training, validation, match):
    """A row that trains and scores moves a score by both amounts together."""
    with pytest.raises(ParameterError, match=match):
        validate(
            [LogisticRegression()],
            training,
            validation,
            score=accuracy,
            stability=STABILITY,
            epsilon=1,
        )


# The example of docs/howto/tuning.md: what it promises is computed, and true


@pytest.fixture(scope="module")
def example():
    page = Path(__file__).parents[2] / "docs" / "howto" / "tuning.md"
    shown = page.read_text("utf-8").split("## Stable training")[1]
    found: dict = {}
    exec(shown.split("```python\n")[1].split("```")[0], found)
    return found


def gradient(weights, C, X, y):
    """Of ½‖w‖² + C Σ ln(1 + exp(−margin)), which is 1-strongly convex: the optimum is no further
    away than this is long.
    """
    signs = 2 * y - 1
    return weights - C * X.T @ (signs / (1 + np.exp(signs * (X @ weights))))


def hard_rows(example):
    """The rows of the page, and ones on which the first step goes as far as it can."""
    rows = example["rows"]
    same = np.tile([1.0, 0.0], (rows, 1))
    return [example["training"], (same, np.ones(rows, int)), (same, np.arange(rows) % 2)]


def test_the_learner_of_the_page_is_as_near_to_the_optimum_as_it_says(example):
    for C in example["settings"]:
        short = example["shortfall"](C)
        for X, y in hard_rows(example):
            weights = example["learner"](C)(X, y)
            assert np.linalg.norm(gradient(weights, C, X, y)) <= short + 1e-12


def test_the_promise_of_the_page_holds_for_other_rows(example):
    X, y = example["training"]
    most = example["stability"].training
    for C in example["settings"]:
        before = example["learner"](C)(X, y)
        for row, label in ([1.0, 0.0], 0), ([-1.0, 0.0], 1), ([0.0, 1.0], 1):
            changed = X.copy(), y.copy()
            changed[0][7], changed[1][7] = row, label
            after = example["learner"](C)(*changed)
            assert 0 < np.linalg.norm(after - before) <= most


def test_the_promise_counts_the_shortfall_and_a_tolerance_would_not_keep_it(example):
    C = max(example["settings"])
    assert float(example["stability"].training) >= 2 * C + 2 * example["shortfall"](C)
    X, y = example["training"]
    usual = LogisticRegression(C=C, fit_intercept=False).fit(X, y).coef_[0]
    short = np.linalg.norm(usual - example["learner"](C)(X, y))
    assert short > C / 2
    assert short > 1e6 * example["shortfall"](C)
