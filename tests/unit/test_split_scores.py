"""`PrivateTree` with each score of a split: certain answers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from privmax import DataError, ParameterError
from privmax.learning import Number, PrivateTree, Schema
from privmax.learning.split_scores import GiniScore

SCHEMA = Schema(x=Number(0, 100, cells=10), z=Number(0, 100, cells=10))
RNG = np.random.default_rng(3)
X = RNG.uniform(0, 100, size=(4000, 2))
Y = X[:, 0] >= 40
OPTIONS = {"max": {}, "gini": {}, "information-gain": {"rows": 10_000}}


@pytest.mark.parametrize("score", OPTIONS)
def test_a_clear_split_is_found(score):
    tree = PrivateTree(SCHEMA, 20, labels=[0, 1], depth=1, criterion=score, **OPTIONS[score])
    assert tree.fit(X, Y).rules_ == ["x < 40: 0", "not (x < 40): 1"]


@pytest.mark.parametrize("score", ["gini", "information-gain"])
def test_impurities_see_a_split_that_changes_no_majority(score):
    """Both branches say 0, so "max" is blind; the impurities are not."""
    rare = (X[:, 1] >= 50) & (RNG.uniform(size=len(X)) < 0.3)
    tree = PrivateTree(SCHEMA, 40, labels=[0, 1], depth=1, criterion=score, **OPTIONS[score])
    assert tree.fit(X, rare).tree_.feature == 1


def test_more_rows_than_declared_are_refused():
    tree = PrivateTree(SCHEMA, 1, labels=[0, 1], criterion="information-gain", rows=3999)
    with pytest.raises(DataError, match="more rows"):
        tree.fit(X, Y)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"criterion": "entropy"}, "criterion"),
        ({"criterion": "information-gain"}, "rows"),
        ({"criterion": "gini", "rows": 5}, "rows"),
        ({"criterion": "information-gain", "rows": 1}, "rows"),
        ({"criterion": "information-gain", "rows": 1 << 25}, "rows"),
    ],
)
def test_every_bad_argument_is_refused_by_name(options, name):
    with pytest.raises(ParameterError) as caught:
        PrivateTree(SCHEMA, 1, labels=[0, 1], **options).fit(X, Y)
    assert caught.value.name == name


def test_gini_is_exact_beyond_64_bits():
    """2·1024·n_0·n_1 leaves 64 bits where a branch has 2^27 rows."""
    for first, second in ((2**27, 2**27), (2**28 + 1, 2**27 - 3), (2**30, 2**30), (5, 2), (0, 0)):
        exact = -2 * 1024 * first * second // max(first + second, 1)
        assert GiniScore().of(np.array([[first], [second]])).tolist() == [exact]
