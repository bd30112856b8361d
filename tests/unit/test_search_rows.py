"""Every run of a search has rows and settings of its own, and so have the models of `select_model`
and the candidates of `validate`: what writes into what it is given changes nothing about another,
nor about the data.
"""

from __future__ import annotations

import tracemalloc
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from privmax import select_model
from privmax.errors import DataError, PrivacyWarning
from privmax.learning import PrivateSearch, validate
from privmax.learning.rows import copy_all
from privmax.learning.search_runs import RowSource, count_right
from privmax.learning.validation import Stability
from privmax.testing import SeededCoins

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")

ROWS = 60
NUMBERS = np.arange(2.0 * ROWS).reshape(-1, 2)
Y = np.arange(ROWS) % 2

KINDS = {
    "array": NUMBERS,
    "fortran": np.asfortranarray(NUMBERS),
    "objects": NUMBERS.astype(object),
    "cells that are lists": np.array([[[a], [b]] for a, b in NUMBERS], dtype=object),
    "list": NUMBERS.tolist(),
    "frame": pd.DataFrame(NUMBERS, columns=["a", "b"]),
    "frame of objects": pd.DataFrame(NUMBERS, columns=["a", "b"]).astype(object),
    "frame of lists": pd.DataFrame({"a": [[one] for one in NUMBERS[:, 0]]}),
    "frame of text": pd.DataFrame({"a": list(map(str, NUMBERS[:, 0])), "b": NUMBERS[:, 1]}),
    "sparse": sparse.csr_matrix(NUMBERS),
    "polars": pl.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}),
}


def spoil(rows):
    """Write into rows in every way that their type has."""
    if hasattr(rows, "iloc"):
        for place in range(rows.shape[-1] if rows.ndim > 1 else 1):
            column = rows.iloc[:, place] if rows.ndim > 1 else rows
            for cell in column:
                if isinstance(cell, list):
                    cell[:] = [-1]
            if rows.ndim > 1 and not isinstance(column.iloc[0], list):
                rows.iloc[:, place] = column.iloc[0]
    elif hasattr(rows, "data") and hasattr(rows, "indptr"):
        rows.data[:] = -1
    elif isinstance(rows, list):
        for one in rows:
            if isinstance(one, list):
                one[:] = [-1.0] * len(one)
        rows[:] = rows[:1] * len(rows)
    elif isinstance(rows, np.ndarray):
        for one in rows.ravel():
            if isinstance(one, list):
                one[:] = [-1]
        rows[...] = rows.ravel()[0]


def show(rows):
    if hasattr(rows, "toarray"):
        return str(rows.toarray().tolist())
    if isinstance(rows, (pd.DataFrame, pd.Series)):
        return str((rows.to_numpy().tolist(), list(map(str, np.atleast_1d(rows.dtypes)))))
    return str(rows.to_numpy().tolist() if hasattr(rows, "to_numpy") else np.array(rows).tolist())


SEEN = []


class Writer(ClassifierMixin, BaseEstimator):
    """Notes what it is given, and then writes into it."""

    def __init__(self, epsilon=1, box=None):
        self.epsilon, self.box = epsilon, box

    def fit(self, X, y):
        if (X.shape[0] if hasattr(X, "shape") else len(X)) > 2:  # not the invented rows
            SEEN.append(("fit", show(X), show(y), str(self.box)))
        spoil(X)
        spoil(y)
        if self.box is not None:
            self.box.append("written")
        return self

    def predict(self, X):
        SEEN.append(("predict", show(X)))
        spoil(X)
        return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X), int)


def search(X, y, **options):
    SEEN.clear()
    chosen = {"runs": 6, "law": "poisson", "coins": SeededCoins(3), **options}
    params = chosen.pop("params", {})
    return PrivateSearch(Writer(), params, **chosen).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [Y, Y.tolist(), pd.Series(Y)], ids=["array", "list", "series"])
def test_runs_that_write_see_the_same_rows(kind, labels):
    rows = KINDS[kind]
    before = show(rows), show(labels)
    search(rows, labels)
    fits = {one for one in SEEN if one[0] == "fit"}
    predictions = {one for one in SEEN if one[0] == "predict"}
    assert sum(one[0] == "fit" for one in SEEN) > 2
    assert len(fits) == len(predictions) == 1
    assert (show(rows), show(labels)) == before


def test_runs_share_no_setting():
    box = []
    search(NUMBERS, Y, params={"box": [box]})
    assert box == []
    assert {one[3] for one in SEEN if one[0] == "fit"} == {"[]"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_twice_shares_nothing(kind):
    source = RowSource(KINDS[kind], Y)
    mask = np.arange(ROWS) % 3 > 0
    first, second = source.take(mask), source.take(mask)
    kept = show(second[0]), show(second[1])
    assert show(first[0]) == kept[0]
    for part in first:
        spoil(part)
    assert (show(second[0]), show(second[1])) == kept


def test_a_row_that_a_model_fails_on_leaves_the_others_as_they_were():
    """The model halves its rows in place before it meets the bad one."""

    class Halves:
        def predict(self, X):
            X /= 2
            if (X == 25).any():
                raise ValueError
            return (X[:, 0] >= 4).astype(int)

    rows = np.array([[float(one)] for one in (2, 10, 50, 12, 4)])
    assert count_right(Halves(), rows, np.array([0, 1, 1, 1, 0])) == 4


class Silent(ClassifierMixin, BaseEstimator):
    def __init__(self, epsilon=1):
        self.epsilon = epsilon

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def test_the_rows_of_one_run_are_there_at_a_time():
    """At most hold-out rows, training rows of one run, and hold-out rows again, to predict."""
    rows = np.zeros((200_000, 5))
    labels = np.zeros(200_000, np.int8)
    tracemalloc.start()
    try:
        PrivateSearch(Silent(), {}, runs=12, law="poisson", coins=SeededCoins(3)).fit(rows, labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows.nbytes < peak < 1.75 * rows.nbytes


def test_runs_in_processes_are_given_rows_of_their_own(monkeypatch):
    """Jobs that are sent together would share an array that they have in common."""
    jobs = []

    class Pool:
        def __init__(self, **options):
            pass

        def __call__(self, delayed):
            jobs.extend(arguments for _, arguments, _ in delayed)
            return iter([(1, None)])

    monkeypatch.setattr("joblib.Parallel", Pool)
    with pytest.warns(UserWarning, match="No answer"):
        PrivateSearch(Writer(), {}, runs=8, law="poisson", n_jobs=2).fit(NUMBERS, Y)
    arrays = [part for job in jobs for part in job[4]]
    assert len(arrays) > 2
    assert len({id(one) for one in arrays}) == len(arrays)
    assert not any(np.shares_memory(arrays[0], one) for one in arrays[1:])


LABELS = {
    "array": Y,
    "list": Y.tolist(),
    "series": pd.Series(Y),
    "objects": Y.astype(object),
    "cells that are lists": pd.Series([[one] for one in Y.tolist()]),
}
STABILITY = Stability(training="0.01", validation="0.01")


def count(rows):
    return rows.shape[0] if hasattr(rows, "shape") else len(rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", [list, tuple, dict, "lazy"])
def test_models_that_write_see_the_same_rows(kind, held):
    rows, seen = deepcopy(KINDS[kind]), []
    before = show(rows)

    def write(given):
        seen.append(show(given))
        spoil(given)
        return np.zeros(ROWS, int)

    class Lazy:
        def __len__(self):
            return 3

        def __getitem__(self, number):
            return write

    models = {"lazy": Lazy, dict: lambda: dict.fromkeys("abc", write)}.get(
        held, lambda: held([write] * 3)
    )()
    select_model(models, rows, Y, epsilon=1)
    assert seen == [before] * 3
    assert show(rows) == before


@pytest.mark.parametrize("labels", LABELS)
def test_scores_that_write_see_the_same_labels(labels):
    y, seen = deepcopy(LABELS[labels]), []
    before = show(y)

    def score(given, said):
        seen.append((show(given), show(said)))
        spoil(given)
        spoil(said)
        return np.zeros(ROWS)

    kept = np.arange(ROWS)  # a model that gives the same array again and again
    select_model([lambda X: kept] * 3, NUMBERS, y, epsilon=1, score=score, bounds=(0, 1))
    assert seen == [(before, show(np.arange(ROWS)))] * 3
    assert show(y) == before


@pytest.mark.parametrize("kind", ["matrix", "lists", "frame"])
def test_scores_that_write_leave_predictions_as_they_were(kind):
    table = np.empty((ROWS, 2), object)
    table[:] = [[[[one]], [[5]]] for one in range(ROWS)]
    make = {"matrix": np.array, "lists": lambda table: table.tolist(), "frame": pd.DataFrame}
    predictions = make[kind](table)
    before = show(predictions)

    def score(y, said):
        spoil(said)
        return np.zeros(ROWS)

    select_model(predictions, None, Y, epsilon=1, score=score, bounds=(0, 1))
    assert show(predictions) == before


def test_one_example_does_not_change_what_later_models_see():
    """The first model writes zeros if it is given an even number of rows."""

    def spiteful(rows):
        if len(rows) % 2 == 0:
            rows[:] = 0
        return np.zeros(len(rows))

    def good(rows):
        return rows[:, 0]

    for rows in (999, 1000):
        X = np.ones((rows, 1))
        models = {"spiteful": spiteful, "good": good}
        found = {select_model(models, X, np.ones(rows), epsilon=1).item for _ in range(20)}
        assert found == {"good"}


def test_one_block_is_copied_at_a_time():
    rows = np.zeros((400_000, 20))
    tracemalloc.start()
    try:
        select_model([lambda X: X[:, 0]] * 3, rows, np.zeros(len(rows), np.int8), epsilon=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < rows.nbytes / 2


class Noting(BaseEstimator):
    """Notes what it is given, and then writes into it."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y):
        self.seen.append((show(X), show(y)))
        spoil(X)
        spoil(y)
        return self


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("function", [True, False])
def test_candidates_that_write_see_the_same_rows(kind, labels, function):
    rows, others = deepcopy(KINDS[kind]), deepcopy(KINDS[kind])
    y, trained, scored = deepcopy(LABELS[labels]), [], []
    before = show(rows), show(y)

    def score(model, X, y):
        scored.append((show(X), show(y)))
        spoil(X)
        spoil(y)
        return 0.5

    learner = Noting(trained).fit if function else Noting(trained)
    validate([learner] * 3, (rows, y), (others, y), score=score, stability=STABILITY, epsilon=1)
    assert trained == scored == [before] * 3
    assert (show(rows), show(y)) == (show(others), show(y)) == before


def test_a_frame_that_is_copied_shares_no_index():
    frame = pd.DataFrame({"a": [1, 2]}, index=np.array([5, 6]))
    copied = copy_all(frame)
    assert copied.equals(frame)
    assert not np.shares_memory(copied.index.to_numpy(), frame.index.to_numpy())
    assert not np.shares_memory(copied["a"].to_numpy(), frame["a"].to_numpy())


def test_rows_that_cannot_be_copied_are_refused_by_name():
    class Stubborn:
        def __len__(self):
            return 3

        def __getitem__(self, some):
            return self

        def __deepcopy__(self, memo):
            raise TypeError("private")

    with pytest.raises(DataError, match=r"X cannot be copied \(TypeError\)") as caught:
        select_model([lambda X: [0, 0, 0]], Stubborn(), [0, 0, 0], epsilon=1)
    assert "private" not in str(caught.value)
    X, y = Stubborn(), [0, 0, 0]
    with pytest.raises(DataError, match="cannot be copied"):
        validate([lambda X, y: 0], (X, y), (Stubborn(), y), score=lambda *all: 0.5,
                 stability=STABILITY, epsilon=1)  # fmt: skip
