"""StableSelector and MarginalSelector as citizens of scikit-learn, and what they refuse."""

from __future__ import annotations

import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import Lasso, LassoCV, LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

from privmax import Exponential, GapTest, Ledger, NestedMargin, Privacy, SetMargin
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import MarginalSelector, PrivateERM, StableSelector, Stumps
from privmax.learning.descriptions import describe_selector
from privmax.testing import SeededCoins
from privmax.warnings import reset_once

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


@pytest.mark.slow
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


class Careless(Lasso):
    """Likewise, of Python's own."""

    def fit(self, X, y):
        self.coef_ = np.array([random.random() for _ in range(X.shape[1])])
        return self


def test_failures_of_a_block_are_votes(rows):
    """For no columns, which is public; and nothing of them is told."""
    with pytest.warns(UserWarning, match="in most blocks no columns were found") as caught:
        selector = stable(estimator=Failing()).fit(*rows)
    assert selector.release_.item == ()
    assert selector.get_support().all()
    assert "secret" not in str(caught[0].message)


def test_blocks_without_enough_rows_do_not_win(rows):
    """Otherwise a few rows would look like a stable set."""
    with pytest.warns(UserWarning, match="No answer"):
        assert not stable(size=3).fit(rows[0][:50], rows[1][:50]).release_.item


@pytest.mark.parametrize("estimator", [Reckless(), Careless()], ids=lambda one: type(one).__name__)
def test_blocks_share_no_random_numbers(estimator, rows):
    """All blocks draw the same, and the caller's own state stays as it was."""
    np.random.seed(5)
    random.seed(5)
    expected = np.random.rand(), random.random()
    np.random.seed(5)
    random.seed(5)
    selector = stable(estimator=estimator).fit(*rows)
    assert selector.release_.item is not None
    assert (np.random.rand(), random.random()) == expected


class Curious(Lasso):
    """Its choice depends on the type of the labels."""

    def fit(self, X, y):
        self.coef_ = np.eye(X.shape[1])["biuf".find(y.dtype.kind)]
        return self


@pytest.mark.parametrize("other", ["secret", 0.5])
def test_a_label_does_not_change_the_type_of_others(other, rows):
    """One row moves one vote: of the block that it is in."""

    def votes(y):
        selector = stable(estimator=Curious(), size=1)
        read = selector._validate(rows[0][:40], y)
        return selector._source(*read, selector._question(6), SeededCoins(1))._votes

    for kind in (list, lambda y: np.array(y, object)):
        before, after = votes(kind([0, 1] * 20)), votes(kind([0, 1] * 19 + [0, other]))
        assert (before - after).total() == 1


def test_a_text_label_is_not_quoted(rows):
    """Of MarginalSelector, and of the lasso, which would fail in every block."""
    for selector in (stable(), marginal()):
        for kind in (str, object):
            with pytest.raises(DataError, match="y has a value that is not a") as caught:
                selector.fit(rows[0], np.array(["secret"] * 2000, kind))
            assert "secret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, None])
def test_a_pipeline_that_keeps_the_columns(size, rows):
    lasso = make_pipeline(StandardScaler(), Lasso(alpha=0.05))
    assert stable(estimator=lasso, size=size).fit(*rows).get_support(True).tolist() == [1, 4]
    with pytest.raises(ParameterError, match=r"pca.* need not keep the columns"):
        stable(estimator=make_pipeline(PCA(2), Lasso())).fit(*rows)


def test_mechanisms_by_name(rows):
    """Also those that have no use for growth."""
    selector = stable(mechanism="permute-and-flip", fallback="any").fit(*rows)
    assert selector.get_support(indices=True).tolist() == [1, 4]
    assert stable(mechanism="nested-margin").fit(*rows).release_.mechanism.growth == 1


def test_an_answer_is_there_also_where_warnings_are_errors(rows):
    """It was paid for."""
    selector = stable(estimator=Failing(), fallback="none")
    with pytest.raises(UserWarning, match="No answer"):
        selector.fit(*rows)
    assert selector.release_.item == ()
    assert not selector.get_support().any()
    assert selector.blocks_ == 62


def secret_rule(X, y):
    return f_regression(X, y)


def test_a_ledger_knows_the_estimator_again():
    """In another process, too: a function is told by its name, not by its place in memory."""
    told = stable(estimator=SelectKBest(secret_rule, k=3), size=None)._options(6)["estimator"]
    assert told.startswith("SelectKBest(k=3, score_func=")
    assert told.endswith(".secret_rule)")
    weights = {place: place + 0.5 for place in range(200)}
    others = [
        describe_selector(LogisticRegression(class_weight=weights | {150: last}))
        for last in (1.0, 2.0)
    ]
    assert others[0] != others[1]


def test_a_request_needs_an_estimator_that_can_be_told(rows, tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(2, "1e-5")) as ledger:
        vague = SelectKBest(lambda X, y: f_regression(X, y), k=2)
        selector = stable(estimator=vague, size=None, ledger=ledger.request("columns"))
        with pytest.raises(ParameterError, match="a repeated request must ask the same"):
            selector.fit(*rows)
        assert ledger.spent.epsilon == 0
        selector.set_params(ledger=ledger).fit(*rows)
        assert ledger.spent.epsilon == 1


def test_bounds_that_do_not_fit_cost_nothing(rows, tmp_path):
    """A strict ledger is charged before X is read, but its width is public."""
    with Ledger.create(tmp_path / "b.db", budget=Privacy(2, "1e-5"), strict=True) as ledger:
        with pytest.raises(ParameterError, match="there are 6 columns"):
            marginal(low=[-1, -1], ledger=ledger).fit(*rows)
        assert ledger.spent.epsilon == 0


def test_no_warning_tells_of_a_value(rows):
    X = rows[0].copy()
    X[0, 0] = 1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        marginal(low=-0.1, high=0.1).fit(X, rows[1])


def given_warnings(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in found if one.category is PrivacyWarning]


@pytest.fixture
def fresh():
    """A process in which nothing was said yet."""
    with reset_once():
        yield


def test_fits_that_nobody_adds_up(rows, fresh):
    assert given_warnings(lambda: stable().fit(*rows)) == []
    (told,) = given_warnings(lambda: marginal().fit(*rows))
    assert told.startswith("MarginalSelector was fitted 2 times in this process without a ledger.")


def test_a_step_that_learns_before_a_selector(rows, fresh):
    (told,) = given_warnings(lambda: make_pipeline(StandardScaler(), marginal()).fit(*rows))
    assert "standardscaler (StandardScaler)" in told


def test_steps_after_a_selector_and_the_selector_itself_do_not_come_before(rows, fresh):
    """A selector pays for what it learns, and whatever follows is not covered by it anyway."""
    X, y = rows
    after = make_pipeline(marginal(), StandardScaler(), LinearRegression())
    assert given_warnings(lambda: after.fit(X, y)) == []
    rule = PrivateERM(Stumps(low=-1, high=1), epsilon=1, labels=[0, 1])
    before = Pipeline([("columns", stable()), ("rule", rule)])
    told = given_warnings(lambda: before.fit(X, (y > 0).astype(int)))
    assert not any("learns from X" in one for one in told)


def test_blocks_are_public(rows):
    assert stable().fit(*rows).blocks_ == 2 * GapTest(
        epsilon=1, delta="1e-6", neighbors="replace"
    ).lead(candidates=None)
    assert stable(blocks=40).fit(*rows).blocks_ == 40


def test_blocks_without_rows_vote_without_a_fit_each(rows):
    """They vote alike, so one fit tells for all of them."""
    fits = []

    class Counting(Lasso):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    X, y = rows[0][:20], rows[1][:20]
    with pytest.warns(UserWarning, match="No answer"):
        stable(estimator=Counting(alpha=0.1), blocks=5000).fit(X, y)
    assert fits.count(0) == 1
    assert sum(fits) == 20


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (stable(size=None), "size is required"),
        (stable(delta=0), "a test of stability needs a delta"),
        (stable(fallback="some"), 'it must be "all", "none" or "any"'),
        (stable(blocks=1), "blocks=1"),
        (stable(blocks=1 << 21), "it must be at most 1048576"),
        (stable(epsilon=None), "epsilon is required"),
        (stable(estimator=Lasso), "it must be a selector or a model"),
        (stable(estimator="lasso"), "it must be a selector or a model"),
        (stable(mechanism="exponential"), "able to draw every set"),
        (
            stable(
                mechanism=SetMargin(epsilon=1, delta=1e-6, k=3, neighbors="replace"),
                epsilon=None,
                delta=0,
            ),
            "one set of columns is released",
        ),
        (stable(mechanism=NestedMargin(epsilon=1, delta=1e-6), epsilon=None, delta=0), "moves a"),
        (marginal(low=None), "low is required"),
        (marginal(low=3), "it must be below high"),
        (marginal(low=[-1, -1]), "there are 6 columns"),
        (marginal(size=0), "size=0"),
        (marginal(low="a"), "low='a' is not allowed: it must be a number"),
        (marginal(low=[-1] * 6, high=[1] * 5), "high has 5"),
        (marginal(low=0, high=5e-324), "floats cannot represent the middle"),
        (
            marginal(
                mechanism=Exponential(epsilon=1, k=3, neighbors="replace"), epsilon=None, size=1
            ),
            "the mechanism releases 3",
        ),
    ],
)
def test_wrong_parameters_are_named(selector, message, rows):
    with pytest.raises(ParameterError, match=message):
        selector.fit(*rows)


def test_too_many_sets_for_any():
    X = np.zeros((4, 1100))
    with pytest.raises(ParameterError, match="more than 2\\^1000 sets of 1100 columns"):
        stable(estimator=Lasso(), size=None, fallback="any").fit(X, [0, 1, 0, 1])


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


# The same columns for the same block, whatever else the process does


class Watching(Lasso):
    """Notes with how many threads and jobs it runs."""

    seen: ClassVar[list] = []

    def __init__(self, alpha=1.0, n_jobs=None):
        super().__init__(alpha=alpha)
        self.n_jobs = n_jobs

    def fit(self, X, y):
        threads = max(pool["num_threads"] for pool in threadpool_info())
        self.seen.append((threads, self.n_jobs))
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [None, 4, -1])
def test_a_block_is_computed_by_one_thread(rows, n_jobs):
    Watching.seen.clear()
    with threadpool_limits(limits=3):
        before = [pool["num_threads"] for pool in threadpool_info()]
        stable(estimator=Watching(alpha=0.05, n_jobs=n_jobs), size=2).fit(*rows)
        assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert set(Watching.seen) == {(1, 1)}


SELECTORS = {
    "lasso": (None, 2),
    "Lasso": (Lasso(alpha=0.05), None),
    "best": (SelectKBest(f_regression, k=2), None),
    "forest": (RandomForestRegressor(n_estimators=5, max_depth=4, n_jobs=2), 2),
    "scaled": (make_pipeline(StandardScaler(), LassoCV(alphas=[0.3, 0.1, 0.01], cv=2)), 3),
}


def moved(array, offset):
    """The same numbers at another place in memory."""
    room = np.empty(array.size + 16)
    placed = room[offset : offset + array.size].reshape(array.shape)
    placed[...] = array
    return placed


@pytest.mark.parametrize("name", SELECTORS)
def test_a_vote_follows_from_its_block_alone(name):
    """Nearly equal columns, of which the last bits decide: from any place in memory, after other
    work, and beside threads that are busy.
    """
    estimator, size = SELECTORS[name]
    random = np.random.default_rng(5)
    base = random.normal(size=(137, 1))
    X = base + 1e-15 * random.normal(size=(137, 9))
    y = base[:, 0] + random.normal(size=137)
    selector = stable(estimator=estimator, size=size)
    votes = set()
    with ThreadPoolExecutor(2) as busy, threadpool_limits(limits=1):
        work = [busy.submit(lambda: np.ones((300, 300)) @ np.ones((300, 300))) for _ in range(40)]
        for offset in range(8):
            selector._vote()(X[:50] * offset, y[:50])
            votes.add(selector._vote()(moved(X, offset), moved(y, 7 - offset)))
        for one in work:
            one.result()
    assert len(votes) == 1
