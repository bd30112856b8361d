"""What no run of a search may have, on the learner or as a candidate: one list for both, tried on
every parameter of every learner.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from privmax.errors import ParameterError, PrivacyWarning
from privmax.learning import Number, PrivateERM, PrivateGAM, PrivateSearch, Schema, Stumps
from privmax.learning.candidates import COSTS, REFUSED, SettingsGrid
from privmax.learning.inputs import FROM_Y
from privmax.learning.search_runs import FAILED, RandomRepetition, make_run
from privmax.learning.tree import PrivateTree
from privmax.repetition import random_runs
from privmax.testing import SeededCoins

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")

X = np.arange(400.0).reshape(-1, 1)
Y = (X[:, 0] >= 200).astype(int)
SCHEMA = Schema({"x": Number(0, 400, cells=4)})


class Wrapper(ClassifierMixin, BaseEstimator):
    """A learner of somebody else's, with another one and a list of them in it."""

    def __init__(self, inner=None, more=(), *, epsilon=None, random_state=None, verbose=0):
        self.inner, self.more, self.epsilon = inner, more, epsilon
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def erm(**options):
    return PrivateERM(Stumps(low=0, high=400, cells=2), **{"labels": [0, 1], **options})


LEARNERS = {
    "rules": erm,
    "additive": lambda: PrivateGAM(SCHEMA, labels=[0, 1], delta=1e-6),
    "tree": lambda: PrivateTree(Stumps(low=0, high=400, cells=2), labels=[0, 1]),
    "wrapper": lambda: Wrapper(erm()),
    "search": lambda: PrivateSearch(erm(), {"floor": [0]}),
    "pipeline": lambda: Pipeline([("same", FunctionTransformer()), ("rule", erm())]),
}
EVERY = [(name, part) for name, make in LEARNERS.items() for part in make().get_params()]


def refuses(learner, params):
    """Whether a search refuses to be planned; nothing has been fitted or charged until then."""
    try:
        SettingsGrid.of(params, PrivateSearch(learner)._check_learner())
    except ParameterError:
        return True
    return False


@pytest.mark.parametrize(("name", "part"), EVERY)
@pytest.mark.parametrize("value", [FROM_Y, np.str_(FROM_Y)], ids=["text", "numpy"])
def test_labels_from_y_are_refused_wherever_they_are(name, part, value):
    make = LEARNERS[name]
    assert refuses(make(), {part: [value]})
    assert refuses(make(), [{}, {part: [make().get_params()[part]] * 150 + [value]}])
    assert refuses(make(), {part: [erm(labels=FROM_Y)]})
    assert refuses(make(), {part: [[("rule", erm(labels=FROM_Y))]]})
    assert refuses(make(), {part: [{"rule": Wrapper(erm(labels=FROM_Y))}]})


@pytest.mark.parametrize(("name", "part"), EVERY)
@pytest.mark.parametrize("inner", [{"random_state": 0}, {"verbose": 1}], ids=str)
def test_what_is_refused_on_a_learner_is_refused_on_one_within_a_candidate(name, part, inner):
    make = LEARNERS[name]
    assert refuses(Wrapper(**inner), {})
    assert refuses(make(), {part: [Wrapper(**inner)]})
    assert refuses(make(), {part: [Wrapper(more=[Wrapper(**inner)])]})


@pytest.mark.parametrize(("name", "part"), EVERY)
def test_the_names_that_are_no_candidates(name, part):
    fixed = part.rpartition("__")[2] in (*COSTS, *REFUSED)
    assert refuses(LEARNERS[name](), {part: [None]}) == fixed


@pytest.mark.parametrize(("name", "part"), EVERY)
def test_a_template_is_refused_by_the_same_list(name, part):
    learner = LEARNERS[name]()
    learner.set_params(**{part: FROM_Y})
    assert refuses(learner, {})
    if part.rpartition("__")[2] in REFUSED:
        assert refuses(LEARNERS[name]().set_params(**{part: 1}), {})


def test_a_learner_within_a_list_on_the_template():
    assert refuses(Wrapper(more=[erm(labels=FROM_Y)]), {})
    assert refuses(Wrapper(more={"a": (erm(coins=SeededCoins(1)),)}), {})


def test_a_declared_label_may_be_called_anything():
    """A list of labels that holds this text declares it."""
    assert not refuses(erm(labels=[FROM_Y, "other"]), {})
    assert not refuses(erm(), {"labels": [[FROM_Y, "other"]]})


def test_the_search_of_the_report():
    with pytest.raises(ParameterError, match=r"labels.*from y.*not public"):
        PrivateSearch(erm(), {"labels": [FROM_Y]}, epsilon=1).fit(X, Y)


def test_a_value_that_cannot_be_copied_is_refused():
    with pytest.raises(ParameterError, match=r"params='generator'.*labels cannot be copied"):
        PrivateSearch(erm(), {"labels": [(one for one in (0, 1))]}, epsilon=1).fit(X, Y)


def test_a_value_that_is_drawn_is_met_in_its_run():
    repetition = RandomRepetition(runs=random_runs("geometric", 2), delta=0, epsilon=1)
    made = make_run(repetition, erm(epsilon=1), {"labels": FROM_Y}, (0, {}), (X, Y), (X, Y))
    assert made == (FAILED, None)
    made = make_run(repetition, erm(epsilon=1), {"labels": [0, 1]}, (0, {}), (X, Y), (X, Y))
    assert made[1] is not None
