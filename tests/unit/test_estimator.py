"""PrivateERM: a classifier as scikit-learn knows them, with nothing of its class from the data."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from privmax import LimitedDomain, PermuteAndFlip, Privacy
from privmax.errors import DataError, ParameterError, explain_install
from privmax.learning import Conjunctions, Explicit, PrivateERM, Stumps, Trees
from privmax.testing import SeededCoins

STUMPS = Stumps(low=0, high=10, cells=10)
RNG = np.random.default_rng(6)
X = RNG.uniform(0, 10, size=(3000, 3))
Y = (X[:, 1] >= 4).astype(int)
CERTAIN = {"hypotheses": STUMPS, "epsilon": 1, "labels": [0, 1]}
"""The best stump leads by hundreds of examples, and everything else is as good as never drawn."""


def seeded(hypotheses, **options):
    return PrivateERM(hypotheses, 10, coins=SeededCoins(1), **options)


@pytest.mark.parametrize(
    "hypotheses",
    [
        pytest.param(Stumps(low=-5, high=5), id="stumps"),
        pytest.param(Trees(low=-5, high=5, cells=4), id="trees"),
        pytest.param(
            Conjunctions(2, low=-5, high=5, cells=4), id="conjunctions", marks=pytest.mark.slow
        ),
    ],
)
def test_check_estimator_passes(hypotheses):
    """With scripted coins, as two of its checks compare two fits. None of them is expected to
    fail.
    """
    results = check_estimator(seeded(hypotheses, labels="from y"), on_fail=None, on_skip=None)
    assert len(results) > 40
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []
    skipped = {one["check_name"] for one in results if one["status"] == "skipped"}
    assert skipped <= {
        "check_pipeline_consistency",
        "check_array_api_input",
    }  # they need fixed coins in every fit, and an option


def test_fit_releases_the_best_rule_with_its_price():
    model = PrivateERM(**CERTAIN).fit(X, Y)
    assert (model.predict(X) == Y).all()
    assert repr(model.hypothesis_) == "<1 if x1 >= 4.0 else 0>"
    assert model.release_.item == model.hypothesis_
    assert model.release_.privacy == Privacy(1, 0)
    assert type(model.release_.mechanism) is PermuteAndFlip
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 3


def test_labels_keep_their_type_and_order():
    words = np.where(Y == 1, "yes", "no")
    model = PrivateERM(STUMPS, 1, labels=["no", "yes"]).fit(X, words)
    assert (model.predict(X) == words).all()
    assert (
        PrivateERM(STUMPS, 1, labels=["yes", "no"]).fit(X, words).predict(X[:5]).tolist()
        == words[:5].tolist()
    )
    assert PrivateERM(STUMPS, 1, labels=[True, False]).fit(X, Y == 1).predict(X[:5]).dtype == bool


def test_more_labels_than_two():
    three = (X[:, 1] >= 4).astype(int) + (X[:, 1] >= 8)
    model = PrivateERM(Trees(low=0, high=10, cells=5), 1, labels=[0, 1, 2]).fit(X, three)
    assert (model.predict(X) == three).all()
    with pytest.raises(
        ParameterError,
        match=r"Only binary classification is supported by Conjunctions.*stumps or trees",
    ):
        PrivateERM(Conjunctions(2, low=0, high=10), 1, labels=[0, 1, 2]).fit(X, three)


def test_parameters_clones_and_pickles():
    model = PrivateERM(**CERTAIN, delta=1e-6)
    assert model.get_params()["hypotheses"] is STUMPS
    copy = clone(model).set_params(epsilon="0.5")
    assert (copy.epsilon, copy.delta, model.epsilon) == ("0.5", 1e-6, 1)
    fitted = pickle.loads(pickle.dumps(model.fit(X, Y)))
    assert (fitted.predict(X) == Y).all()
    assert fitted.release_.privacy == model.release_.privacy
    assert fitted.release_.why == model.release_.why


def test_a_fitted_model_holds_none_of_the_data():
    marked = np.full((500, 3), 1.2345678901)
    model = PrivateERM(**CERTAIN).fit(marked, np.arange(500) % 2)
    stored = pickle.dumps(model)
    assert np.float64(1.2345678901).tobytes() not in stored
    assert len(stored) < 4000


def test_pipelines_and_cross_validation():
    line = make_pipeline(
        FunctionTransformer(lambda rows: rows / 10),
        PrivateERM(Stumps(low=0, high=1, cells=10), 1, labels=[0, 1]),
    )
    assert (line.fit(X, Y).predict(X) == Y).all()
    assert cross_val_score(PrivateERM(**CERTAIN), X, Y, cv=3).tolist() == [1, 1, 1]


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=["age", "dose", "weeks"])
    model = PrivateERM(**CERTAIN).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["age", "dose", "weeks"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"dose": "other"}))


def test_a_mechanism_instead_of_a_price():
    model = PrivateERM(STUMPS, mechanism=PermuteAndFlip(epsilon=2), labels=[0, 1]).fit(X, Y)
    assert model.release_.privacy == Privacy(2, 0)
    assert model.release_.why == "you chose it"


def test_a_floor_changes_nothing_for_the_best():
    assert (PrivateERM(**CERTAIN, floor=1000).fit(X, Y).predict(X) == Y).all()
    drowned = PrivateERM(**CERTAIN, floor=10**9, coins=SeededCoins(3)).fit(X, Y)
    assert drowned.hypothesis_ is not None


@pytest.mark.slow
def test_where_nothing_is_released_a_hypothesis_is_drawn_from_the_class():
    huge = Conjunctions(3, low=0, high=10, cells=16)
    shy = LimitedDomain(epsilon="0.01", delta=1e-9, rank=1)
    rules = set()
    for seed in range(12):
        model = PrivateERM(huge, mechanism=shy, labels=[0, 1], coins=SeededCoins(seed))
        with pytest.warns(UserWarning, match="drawn uniformly"):
            model.fit(X[:50], Y[:50])
        assert model.release_.item is None
        rules.add(repr(model.hypothesis_))
    assert len(rules) > 8


def test_no_examples_are_a_clear_error():
    with pytest.raises(ValueError, match="0 sample"):
        PrivateERM(**CERTAIN).fit(X[:0], Y[:0])


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        PrivateERM(**CERTAIN).predict(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": None}, "labels is required"),
        ({"labels": [1]}, "at least two different labels"),
        ({"labels": [1, 1]}, "at least two different labels"),
        ({"labels": "yes"}, "at least two different labels"),
        ({"labels": [0, "a"]}, "of one type"),
        ({"labels": [np.int64(0), "a"]}, "of one type"),
        ({"labels": 5}, "at least two different labels"),
        ({"labels": {"a", "b"}}, "at least two different labels"),
        ({"labels": iter([0, 1])}, "at least two different labels"),
        ({"labels": [0, [1]]}, "at least two different labels"),
        ({"labels": [{}, {}]}, "at least two different labels"),
        ({"labels": [0, 2**53]}, "from 2\\^53 on"),
        ({"epsilon": None}, "epsilon is required"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"delta": 1}, "delta=1"),
        ({"floor": -1}, "floor=-1"),
        ({"neighbors": "other"}, "neighbors='other'"),
        ({"hypotheses": None}, "hypotheses=None.*Stumps\\(low=0, high=100\\)"),
        ({"hypotheses": Stumps}, "must be a hypothesis class"),
        ({"hypotheses": Stumps()}, "low is required.*Do not compute it from the data"),
        ({"hypotheses": Explicit([])}, "at least one"),
        ({"mechanism": PermuteAndFlip(epsilon=1)}, "mechanism already sets it"),
        (
            {"mechanism": PermuteAndFlip(epsilon=1), "epsilon": None, "delta": 1e-6},
            "mechanism already sets it",
        ),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        PrivateERM(**{**CERTAIN, **options}).fit(X, Y)


def broken(rows, value):
    copy = rows.astype(object)
    copy[7, 1] = value
    return copy


SECRET = "4711.0815"


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (broken(X, f"secret {SECRET}"), Y, "not a number"),
        (np.where(X > 9.99, float(SECRET) * 1j, X), Y, "Complex data not supported"),
        (X[:, 0], Y, "Reshape your data"),
        (X[:-9], Y, "different numbers of rows"),
        (X, np.stack([Y, Y], axis=1), "1d array"),
        (X, np.where(np.arange(3000) == 7, 4711, Y), "not among the declared labels"),
        (X, np.where(np.arange(3000) == 7, SECRET, Y.astype(str)), "not among the declared labels"),
        (np.where(X > 9.99, np.nan, X), Y, "contains NaN"),
        (
            pd.DataFrame({"a": X[:, 0], "b": pd.Categorical([SECRET + "s"] * 3000)}),
            Y,
            "not a number",
        ),
        (pl.DataFrame({"a": X[:, 0], "b": [SECRET + "s"] * 3000}), Y, "not a number"),
        (np.full((3000, 2), np.datetime64("4711-01-01")), Y, "not a number"),
        (broken(X, 10**400), Y, "not a number"),
        ([[1.0, 2.0], [4711.0]] * 1500, Y, "all rows of one length"),
        (np.where(X > 9.99, np.inf, X), Y, "contains infinity"),
    ],
)
def test_data_that_cannot_be_used_is_not_quoted(rows, labels, message):
    with pytest.raises(ValueError, match=message) as caught:
        PrivateERM(**CERTAIN).fit(rows, labels)
    for private in ("4711", "3000", "2991"):
        assert private not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_is_said_of_a_row_does_not_depend_on_the_types_of_others():
    small = np.float32(0.1)
    product = Explicit([lambda rows: rows[:, 0] * rows[:, 1] == np.float64(small) ** 2])
    model = PrivateERM(product, 100, labels=[0, 1])
    for rows in ([[small, small]] * 40, [[small, small]] * 40 + [[0.1, 0.1]]):
        fitted = model.fit(rows, [0, 1] * 20 + [1] * (len(rows) - 40))
        assert fitted.predict([[small, small]]).tolist() == [1]
        assert fitted.predict([[small, small], [0.1, 0.1]]).tolist() == [1, 0]


def test_labels_are_compared_one_by_one():
    """NumPy would make floats of all labels in a list because of one of them, or text."""
    y = [2**53 - 1] * 50 + [0.0]
    model = PrivateERM(STUMPS, 10, labels=[2**53 - 1, 0]).fit(X[:51], y)
    assert set(model.predict(X[:50]).tolist()) == {2**53 - 1}
    with pytest.raises(DataError, match="not among the declared labels"):
        PrivateERM(STUMPS, 10, labels=["1", "2"]).fit(X[:3], ["1", 2, "2"])


def test_a_fit_that_fails_leaves_no_rule_behind():
    model = PrivateERM(**CERTAIN).fit(X, Y)
    with pytest.raises(DataError):
        model.fit(X[:, :1], Y + 7)
    with pytest.raises(NotFittedError):
        model.predict(X[:, :1])


def test_one_label_only_needs_the_others_declared():
    assert (PrivateERM(**CERTAIN).fit(X, Y * 0).predict(X) == 0).all()
    with pytest.raises(DataError, match="only one class"):
        PrivateERM(STUMPS, 1, labels="from y").fit(X, Y * 0)


@pytest.mark.slow
def test_without_scikit_learn_it_says_what_to_install():
    program = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.base'] = None\n"
        "import privmax.learning\n"
        "try: privmax.learning.PrivateERM\n"
        "except privmax.PrivmaxError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == f"PrivateERM needs scikit-learn. {explain_install('learn')}"


def test_progress_is_quiet_unless_asked_for_and_tells_the_size_only(capfd):
    PrivateERM(**CERTAIN).fit(X, Y)
    assert capfd.readouterr().err == ""
    PrivateERM(**CERTAIN, verbose=True).fit(X, Y)
    assert "3000" not in capfd.readouterr().err


def test_frames_of_whole_numbers_and_the_same_as_floats_are_the_same_examples():
    """Somebody's decimal makes floats of a column that is read from a file: a class of one's own
    must not see it.
    """
    seen = []

    def looking(rows):
        seen.append(rows.dtype)
        return rows[:, 0] >= 2

    text = "a,b,y\n" + "1,5,0\n2,6,1\n3,7,1\n" * 20
    for extra in ("", "1.5,2.5,1\n"):
        frame = pd.read_csv(io.StringIO(text + extra))[:60]
        model = PrivateERM(Explicit([looking]), 1, labels=[0, 1]).fit(frame[["a", "b"]], frame["y"])
        model.predict(frame[["a", "b"]])
    assert set(seen) == {np.dtype(np.float64)}
    for y in (
        frame["y"].astype(float),
        frame["y"].astype(bool),
        frame["y"].astype("Int64"),
        frame["y"].tolist(),
    ):
        assert PrivateERM(**CERTAIN).fit(frame[["a", "b"]], y).release_.items
    with pytest.raises(DataError, match="not among the declared"):
        PrivateERM(**CERTAIN).fit(frame[["a", "b"]], frame["y"].astype(str))


@pytest.mark.parametrize(
    "column", [pd.Timestamp("2021-07-31"), "zorblax", pd.Timedelta("1h")], ids=str
)
def test_frames_of_what_is_no_number_are_refused_without_being_quoted(column):
    frame = pd.DataFrame({"a": [column] * 4, "b": [1, 2, 3, 4]})
    with pytest.raises(DataError, match="not a number") as caught:
        PrivateERM(**CERTAIN).fit(frame, [0, 1, 0, 1])
    assert "zorblax" not in str(caught.value)
