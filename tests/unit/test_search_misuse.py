"""What must not get through a search: learners that are not private, secrets, and late failures."""

from __future__ import annotations

import array
import json
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import SGDClassifier

from privmax import Privacy
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning import Number, PrivateERM, PrivateGAM, PrivateSearch, Schema, Stumps
from privmax.learning.candidates import describe
from privmax.learning.model_records import UnwritableModelError, read_model, write_model
from privmax.learning.search_runs import count_right, read_cost
from privmax.ledger.events import Charge
from privmax.mechanisms.exponential import Exponential
from privmax.repetition import RunCost
from privmax.testing import SeededCoins

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")

X = np.arange(400.0).reshape(-1, 1)
Y = (X[:, 0] >= 200).astype(int)
ERM = PrivateERM(Stumps(low=0, high=400, cells=2), labels=[0, 1])


class Threshold(ClassifierMixin, BaseEstimator):
    """Says 1 from a place on. It looks at no data, so it is private at any epsilon."""

    def __init__(self, at=0.0, epsilon=None, *, verbose=0, coins=None, leaks=False):
        self.at, self.epsilon = at, epsilon
        self.verbose, self.coins, self.leaks = verbose, coins, leaks

    def fit(self, X, y):
        if self.leaks:
            warnings.warn("bounds were read from the data", LeakPrivacyWarning, stacklevel=2)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] >= self.at).astype(int)


class LeakPrivacyWarning(RuntimeWarning):
    """As other libraries have one."""


class Seeded(Threshold):
    def __init__(self, at=0.0, epsilon=None, random_state=None):
        super().__init__(at, epsilon)
        self.random_state = random_state


class Declared(Threshold):
    def __init__(self, at=0.0, cost=1, bounded_range=False):
        super().__init__(at)
        self.cost, self.bounded_range = cost, bounded_range

    def privacy_cost(self):
        return Charge(Privacy(self.cost), bounded_range=self.bounded_range)


def search(learner=None, params=None, **options):
    learner = Threshold() if learner is None else learner
    params = {"at": [200.0]} if params is None else params
    return PrivateSearch(learner, params, **{"epsilon": 4, "runs": 4, **options})


def test_an_epsilon_of_scikit_learn_is_no_privacy():
    """Of SGDClassifier it is a parameter of a loss."""
    with pytest.raises(ParameterError, match="does not declare what a fit costs"):
        search(SGDClassifier(loss="huber"), {"alpha": [1e-4]}).fit(X, Y)


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (Threshold(verbose=1), "how many runs"),
        (Threshold(coins=SeededCoins(1)), "the same in every run"),
        (Seeded(random_state=0), "predictable"),
        (PrivateERM(Stumps(low=0, high=1), labels="from y"), "training rows"),
    ],
)
def test_what_a_learner_must_not_have(learner, match):
    with pytest.raises(ParameterError, match=match):
        search(learner, {}).fit(X, Y)


def test_what_a_learner_says_of_a_leak_is_passed_on():
    with pytest.warns(PrivacyWarning, match="bounds were read from the data"):
        search(params={"leaks": [False, True]}).fit(X, Y)


def test_the_relation_of_a_declared_cost_must_be_that_of_the_search():
    for learner in (
        Declared(),
        PrivateERM(Stumps(low=0, high=1), mechanism=Exponential(epsilon=1), labels=[0, 1]),
    ):
        with pytest.raises(ParameterError, match="neighbors"):
            search(learner, {}, epsilon=None, neighbors="replace").privacy()


def test_a_learner_with_a_mechanism_of_its_own():
    learner = PrivateERM(
        Stumps(low=0, high=400, cells=2), mechanism=Exponential(epsilon=4), labels=[0, 1]
    )
    made = search(learner, {"floor": [0]}, epsilon=None).fit(X, Y)
    assert made.best_estimator_.rule_ == "y = 1 if x0 >= 200, else 0"


def test_a_cost_that_depends_on_a_candidate_is_refused_before_the_search():
    with pytest.raises(ParameterError, match="cost"):
        search(Declared(), {"cost": [1, 2]}, epsilon=None).fit(X, Y)


def test_every_value_is_tried_before_anything_is_charged():
    with pytest.raises(ParameterError, match="floor=-1"):
        search(ERM, {"floor": [0, -1]}).fit(X, Y)


def test_bounded_range_without_delta():
    made = search(Declared(bounded_range=True), epsilon=None)
    assert made.privacy() == search(Declared(), epsilon=None).privacy()
    assert made._plan()[1].score_cost == RunCost(1)
    assert read_cost(Declared(bounded_range=True)).rho is not None


def test_of_equal_scores_the_first_run_wins_and_not_the_fastest(monkeypatch):
    """Which run is done first depends on the rows: no cost covers that."""
    asked = {}

    class Pool:
        def __init__(self, **options):
            asked.update(options)

        def __call__(self, jobs):
            return iter([(1, None)])

    monkeypatch.setattr("joblib.Parallel", Pool)
    with pytest.warns(UserWarning, match="No answer"):
        search(n_jobs=2).fit(X, Y)
    assert asked["return_as"] == "generator"


@pytest.mark.parametrize("n_jobs", [0, "two", 1.5, True])
def test_n_jobs_is_checked_first(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs"):
        search(n_jobs=n_jobs).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "labels", "match"),
    [
        (sparse.coo_matrix(X), Y, "row by row"),
        (X, array.array("l", Y.tolist()), "row by row"),
        (X, Y.reshape(-1, 1), "one column"),
    ],
)
def test_rows_that_cannot_be_taken_are_met_before_the_charge(rows, labels, match):
    with pytest.raises(DataError, match=match):
        search().fit(rows, labels)


def test_a_model_without_classes():
    made = search(runs=10).fit(X, Y)
    assert made.predict([[300.0]]).tolist() == [1]
    assert not hasattr(made, "classes_")


def test_a_search_may_be_searched():
    inner = PrivateSearch(Threshold(), {"at": [200.0]}, runs=2)
    made = search(inner, {"law": ["geometric", "logarithmic"]}, epsilon=8, runs=3).fit(X, Y)
    assert made.predict([[300.0]]).tolist() == [1]


def test_a_fit_that_fails_leaves_nothing_behind():
    made = search().fit(X, Y)
    with pytest.raises(DataError):
        made.fit(X, Y[:-1])
    assert not [name for name in vars(made) if name.endswith("_")]


class Drawn:
    def __init__(self, draw):
        self.draw = draw

    def rvs(self, random_state=None):
        return self.draw(random_state)


class Old:
    def rvs(self):
        return 1


@pytest.mark.parametrize(
    "values", [Old(), Drawn(lambda rng: rng.normal(size=2)), Drawn(lambda rng: object())]
)
def test_distributions_are_tried_before_anything_is_charged(values):
    with pytest.raises(ParameterError, match="at"):
        search(params={"at": values}).fit(X, Y)


def test_a_description_leaves_out_nothing():
    def learner(low):
        return PrivateERM(Stumps(low=low, high=1000), labels=[0, 1])

    long, other = list(range(300)), [*range(150), 7, *range(151, 300)]
    big, changed = np.arange(5000), np.r_[np.arange(2500), 7, np.arange(2501, 5000)]
    coin = stats.rv_discrete(values=([1, 2], [0.5, 0.5]))
    for one, two in (
        (learner(long), learner(other)),
        (Threshold(at=long), Threshold(at=other)),
        (Threshold(at=big), Threshold(at=changed)),
        ({"a": Threshold(at=big)}, {"a": Threshold(at=changed)}),
        (stats.uniform(0, 1), stats.uniform(0, 2)),
    ):
        assert describe(one) != describe(two)
        assert describe(one) == describe(one)
        assert " at 0x" not in describe(one)
    assert " at 0x" in describe(coin)  # its args do not tell: it is refused with a request


def test_reading_a_record_imports_nothing():
    for name in ("privmax.__main__:X", "sklearn.conftest:X", "privmax.no_such:X"):
        with pytest.raises(UnwritableModelError):
            read_model(Threshold(), {"fitted": {"at_": {"estimator": name, "state": {}}}})


def test_numbers_of_numpy_are_written():
    model = Threshold()
    model.at_, model.n_ = np.float32(1.5), np.int64(3)
    again = read_model(Threshold(), write_model(model))
    assert (again.at_, type(again.at_)) == (1.5, np.float32)
    assert (again.n_, type(again.n_)) == (3, np.int64)


def test_one_bad_row_among_many_takes_few_calls():
    calls = []

    class Fragile(Threshold):
        def predict(self, X):
            calls.append(len(X))
            if np.isnan(X).any():
                raise ValueError("Input X contains NaN")
            return super().predict(X)

    spoiled = X.copy()
    spoiled[7] = np.nan
    assert count_right(Fragile(200.0), spoiled, Y) == 399
    assert len(calls) < 25


@pytest.mark.parametrize("spoil", ["number", "label", "none"])
def test_a_row_that_the_learner_refuses_is_met_before_the_charge_and_is_no_failed_run(spoil):
    """As by the learner itself. A search without an answer would tell of one row, at its cost."""
    rows, labels = X.copy(), Y.copy()
    if spoil == "number":
        rows[3] = np.nan
    if spoil == "label":
        labels[3] = 7
    if spoil == "none":
        rows, labels = rows[:0], labels[:0]
    made = search(PrivateERM(labels=[0, 1]), {"hypotheses": [Stumps(low=0, high=400, cells=2)]})
    with pytest.raises(ValueError, match=r"NaN|declared|0 sample"):
        made.fit(rows, labels)
    assert not hasattr(made, "release_")


@pytest.mark.slow
def test_an_additive_model_is_written_and_its_rows_are_met_before_the_charge():
    schema = Schema(b=Number(0, 400, cells=4), a=Number(0, 1, cells=2))  # not in sorted order
    rows = np.column_stack([X[:, 0], np.zeros(len(X))])
    learner = PrivateGAM(schema, epsilon=4, delta="1e-6", labels=[0, 1], rounds=3)
    fitted = learner.fit(rows, Y)
    written = json.loads(json.dumps(write_model(fitted), sort_keys=True))
    again = read_model(clone(learner), written)
    assert again.schema_ == schema
    assert (again.predict(rows) == fitted.predict(rows)).all()
    made = search(PrivateGAM(schema, delta="1e-8", labels=[0, 1]), {"rounds": [3]}, delta="1e-6")
    with pytest.raises(DataError, match="not among the declared labels"):
        made.fit(rows, np.where(X[:, 0] == 3, 7, Y))


def test_a_list_of_names_and_a_delta_of_none_read_well():
    with pytest.raises(ParameterError, match="params='str'"):
        search(params=["at"]).fit(X, Y)
    with pytest.raises(ParameterError, match="delta='0'"):
        search(PrivateERM(labels=[0, 1], delta="1e-6"), {}).privacy()
