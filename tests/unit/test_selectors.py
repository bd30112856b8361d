"""StableSelector and MarginalSelector as citizens of scikit-learn, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from privmax import GapTest, Ledger, NestedMargin, Privacy
from privmax.errors import ParameterError
from privmax.learning import MarginalSelector, StableSelector
from privmax.testing import SeededCoins

BOUNDS = {"low": -1, "high": 1, "label_low": -2, "label_high": 2}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 6))
    return X, X[:, 1] - X[:, 4]


def stable(**options):
    given = {"size": 2, "epsilon": 1, "delta": "1e-6", "coins": SeededCoins(1), **options}
    return StableSelector(given.pop("estimator", None), **given)


def marginal(**options):
    return MarginalSelector(
        **{"size": 2, "epsilon": 1, "coins": SeededCoins(1), **BOUNDS, **options}
    )


@pytest.mark.slow
@pytest.mark.parametrize("selector", [stable(size=1), marginal(size=1)], ids=["stable", "marginal"])
def test_check_estimator_passes(selector):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(selector, on_fail=None, on_skip=None)
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in results) > 30


@pytest.mark.parametrize("selector", [stable(), marginal()], ids=["stable", "marginal"])
def test_they_find_what_matters(selector, rows):
    X, y = rows
    assert selector.fit(X, y).get_support(indices=True).tolist() == [1, 4]
    assert selector.transform(X).shape == (2000, 2)
    assert selector.release_.privacy.epsilon == 1
    model = make_pipeline(selector, LinearRegression()).fit(X, y)
    assert model.score(X, y) > 0.99


def test_names_of_columns(rows):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rows[0], columns=list("abcdef"))
    selector = stable().fit(X, rows[1])
    assert selector.get_feature_names_out().tolist() == ["b", "e"]
    assert list(selector.set_output(transform="pandas").transform(X)) == ["b", "e"]


@pytest.mark.parametrize(
    ("estimator", "size"),
    [
        (Lasso(alpha=0.05), None),
        (Lasso(alpha=0.05), 2),
        (SelectKBest(f_regression, k=2), None),
        (RandomForestRegressor(n_estimators=3, max_depth=3), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_selectors_of_scikit_learn(estimator, size, rows):
    selector = stable(estimator=estimator, size=size).fit(*rows)
    assert selector.get_support(indices=True).tolist() == [1, 4]


def test_an_unstable_set_is_not_released(rows):
    """Of two columns that are alike, blocks take one or the other."""
    X, y = rows
    for fallback, kept in (("all", 6), ("none", 0)):
        with pytest.warns(UserWarning, match="too few blocks agreed"):
            selector = stable(size=1, fallback=fallback).fit(X, y)
        assert selector.release_.item is None
        assert selector.get_support().sum() == kept
    assert stable(size=1, fallback="any", delta=0).fit(X, y).get_support().sum() == 1


class Failing(Lasso):
    def fit(self, X, y):
        raise RuntimeError(f"secret {X[0, 0]}")


class Reckless(Lasso):
    """Its choice comes from global random numbers."""

    def fit(self, X, y):
        self.coef_ = np.random.rand(X.shape[1])
        return self


def test_failures_of_a_block_are_votes(rows):
    """For no columns, which is public; and nothing of them is told."""
    with pytest.warns(UserWarning, match="most blocks found no columns") as caught:
        selector = stable(estimator=Failing()).fit(*rows)
    assert selector.release_.item == ()
    assert selector.get_support().all()
    assert "secret" not in str(caught[0].message)


def test_blocks_without_enough_rows_do_not_win(rows):
    """Otherwise a few rows would look like a stable set."""
    with pytest.warns(UserWarning, match="No answer"):
        assert not stable(size=3).fit(rows[0][:50], rows[1][:50]).release_.item


def test_blocks_share_no_random_numbers(rows):
    """All blocks draw the same, and the caller's own state stays as it was."""
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    selector = stable(estimator=Reckless()).fit(*rows)
    assert selector.release_.item is not None
    assert np.random.rand() == expected


def test_blocks_are_public(rows):
    assert stable().fit(*rows).blocks_ == 2 * GapTest(
        epsilon=1, delta="1e-6", neighbors="replace"
    ).lead(candidates=None)
    assert stable(blocks=40).fit(*rows).blocks_ == 40


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (stable(size=None), "size is required"),
        (stable(delta=0), "a test of stability needs a delta"),
        (stable(fallback="some"), 'it must be "all", "none" or "any"'),
        (stable(blocks=1), "blocks=1"),
        (stable(mechanism=NestedMargin(epsilon=1, delta=1e-6), epsilon=None, delta=0), "moves a"),
        (marginal(low=None), "low is required"),
        (marginal(low=3), "it must be below high"),
        (marginal(low=[-1, -1]), "there are 6 columns"),
        (marginal(size=0), "size=0"),
    ],
)
def test_wrong_parameters_are_named(selector, message, rows):
    with pytest.raises(ParameterError, match=message):
        selector.fit(*rows)


def test_errors_quote_no_value():
    X = np.array([["1", "secret"]] * 4, object)
    with pytest.raises(ValueError, match="not a number") as caught:
        stable().fit(X, [0, 1, 0, 1])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("selector", [stable(), marginal()], ids=["stable", "marginal"])
def test_a_ledger_pays_and_remembers(selector, strict, rows, tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.create(path, budget=Privacy(2, "1e-5"), strict=strict) as ledger:
        selector.set_params(ledger=ledger.request("columns"))
        first = selector.fit(*rows).get_support().tolist()
        again = selector.fit(rows[0] * 0, rows[1])
        assert again.get_support().tolist() == first
        assert again.release_.recorded is not None
        assert ledger.spent.epsilon == 1
        assert ledger.neighbors == "add-remove"
    selector.set_params(ledger=None)
