"""What learners say of missing values and of types they do not take: a remedy that is private, and
one that they have.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privmax.errors import DataError, PrivacyWarning
from privmax.learning import (
    MarginalSelector,
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateSearch,
    PrivateTree,
    Schema,
    StableSelector,
    Stumps,
)

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore:No answer"),
]

X = np.arange(80.0).reshape(40, 2)
Y = (X[:, 0] > 40).astype(int)
SCHEMA = Schema(a=Number(0, 80, cells=4), b=Number(0, 80, cells=4))
STUMPS = Stumps(low=0, high=80, cells=4)
BOUNDS = {"low": 0, "high": 80, "label_low": 0, "label_high": 1}

RULES = {
    "rules": lambda: PrivateERM(STUMPS, epsilon=9, labels=[0, 1]),
    "search": lambda: PrivateSearch(PrivateERM(STUMPS, labels=[0, 1]), {"floor": [0]}, epsilon=9),
}
SELECTORS = {
    "votes": lambda: StableSelector(size=1, epsilon=9, delta=1e-6),
    "sums": lambda: MarginalSelector(size=1, epsilon=9, **BOUNDS),
}
WITH_SCHEMA = {
    "schema": lambda: PrivateERM(Stumps(schema=SCHEMA), epsilon=9, labels=[0, 1]),
    "additive": lambda: PrivateGAM(SCHEMA, epsilon=9, delta=1e-6, labels=[0, 1]),
    "classifier": lambda: PrivateClassifier(SCHEMA, epsilon=9, delta=1e-6, labels=[0, 1]),
    "tree": lambda: PrivateTree(SCHEMA, epsilon=9, labels=[0, 1]),
}
NUMERIC = RULES | SELECTORS
NOT_OURS = ("imput", "sklearn", "scikit", "HistGradient", "preprocess")


def spoil(value, kind=float):
    spoiled = X.astype(kind)
    spoiled[3, 1] = value
    return spoiled


NO_LABEL = np.where(np.arange(40) == 3, np.nan, Y)
WRONG = {
    "nan": (spoil(np.nan), Y, "X contains NaN.*not private.*fix in advance"),
    "none": (spoil(None, object), Y, "X contains NaN.*not private.*fix in advance"),
    "frame": (pd.DataFrame(spoil(np.nan)), Y, "X contains NaN.*not private.*fix in advance"),
    "infinity": (spoil(np.inf), Y, "X contains infinity.*fix in advance"),
    "label": (X, NO_LABEL, "y contains NaN.*Leave out every row"),
    "label of pandas": (X, pd.Series(NO_LABEL), "y contains NaN.*Leave out every row"),
    "label in a list": (X, NO_LABEL.tolist(), "y contains NaN.*Leave out every row"),
}


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(("rows", "labels", "match"), WRONG.values(), ids=WRONG)
def test_the_remedy_is_private(name, rows, labels, match):
    with pytest.raises(DataError, match=match) as caught:
        NUMERIC[name]().fit(rows, labels)
    assert not any(word in str(caught.value) for word in NOT_OURS)
    assert ("schema" in str(caught.value)) <= (name in RULES)


@pytest.mark.parametrize("name", NUMERIC)
def test_the_same_is_said_of_rows_to_predict(name):
    learner = NUMERIC[name]().fit(X, Y)
    with pytest.raises(DataError, match=r"X contains NaN.*fix in advance"):
        (learner.predict if name in RULES else learner.transform)(spoil(np.nan))


@pytest.mark.parametrize("name", WITH_SCHEMA)
def test_a_schema_has_a_cell_for_missing_values(name):
    frame = pd.DataFrame(spoil(np.nan), columns=["a", "b"])
    assert WITH_SCHEMA[name]().fit(frame, Y).predict(frame).shape == (40,)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_does_not_speak_of_a_schema_that_it_does_not_take(name):
    text = pd.DataFrame({"a": ["x"] * 40, "b": X[:, 0]})
    mixed = pd.DataFrame({"a": pd.Series([1] * 39 + ["x"], dtype=object), "b": X[:, 0]})
    for rows in (text, mixed, spoil(np.nan)):
        with pytest.raises(DataError, match="in advance") as caught:
            SELECTORS[name]().fit(rows, Y)
        assert "schema" not in str(caught.value)
        assert "class" not in str(caught.value)
