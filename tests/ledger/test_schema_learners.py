"""Learners with a schema that a ledger pays for: what is the same of all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privmax import Ledger, Privacy
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.learning import Number, PrivateClassifier, PrivateGAM, PrivateTree, Schema

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(1000, 2))
Y = (X[:, 1] >= 4).astype(int)
SCHEMA = Schema(a=Number(0, 10, cells=5), b=Number(0, 10, cells=5))
BUDGET = Privacy(3, "3e-6")

LEARNERS = {
    "gam": (PrivateGAM, {"epsilon": 1, "delta": 1e-6, "rounds": 3}),
    "pairs": (PrivateGAM, {"epsilon": 1, "delta": 1e-6, "rounds": 2, "interactions": 2}),
    "losses": (PrivateGAM, {"epsilon": 1, "delta": 1e-6, "rounds": 3, "accounting": "pld"}),
    "classifier": (PrivateClassifier, {"epsilon": 1, "delta": 1e-6}),
    "tree": (PrivateTree, {"epsilon": 1, "depth": 2}),
}
"""Each with the parameters of a fit."""

OTHERS = {
    "gam": ({"rounds": 4}, {"interactions": 1}, {"delta": 0}),
    "pairs": ({"interactions": 1},),
    "losses": ({"accounting": "zcdp"},),
    "classifier": ({"n": 1000}, {"delta": 0}),
    "tree": ({"depth": 1}, {"neighbors": "replace"}),
}
"""Parameters that make another question of a fit."""


@pytest.fixture(params=["plain", "strict"])
def ledger(tmp_path, request):
    options = {"strict": True} if request.param == "strict" else {}
    place = tmp_path / "budget.db"
    with Ledger.create(place, "learning", budget=BUDGET, **options) as made:
        yield made


@pytest.fixture(params=LEARNERS)
def name(request):
    return request.param


def learner(name, ledger, request=None, **options):
    kind, given = LEARNERS[name]
    given = {"schema": SCHEMA, "labels": [0, 1], **given, **options}
    return kind(**given, ledger=ledger.request(request))


def model_of(learner):
    return learner.tree_ if isinstance(learner, PrivateTree) else learner.model_


def unread():
    """Return rows that must not be read."""

    def read(*given, **options):
        raise AssertionError("it was read")

    return type("Frame", (), {"__array__": read})()


def test_a_fit_is_charged_once_and_recorded_whole(name, ledger):
    first = learner(name, ledger, "nightly").fit(X, Y)
    again = learner(name, ledger, "nightly").fit(unread(), None)
    assert ledger.spent == first.release_.privacy == Privacy(1, LEARNERS[name][1].get("delta", 0))
    assert model_of(first) == model_of(again) == first.release_.item
    assert again.release_.recorded
    assert again.rules_ == first.rules_
    assert again.predict_proba(X).tolist() == first.predict_proba(X).tolist()
    recorded = [event.body for event in ledger.history() if event.kind == "released"]
    assert recorded[0]["answer"]["items"][0] == model_of(first).to_json()
    assert ledger.verify() == []


def test_another_question_under_the_same_id_is_refused(name, ledger):
    learner(name, ledger, "nightly").fit(X, Y)
    spent = ledger.spent
    other_cells = Schema(a=Number(0, 10), b=Number(0, 10))
    shared = ({"labels": [1, 0]}, {"epsilon": "0.5"}, {"schema": other_cells})
    for other in (*shared, *OTHERS[name]):
        with pytest.raises(LedgerError):
            learner(name, ledger, "nightly", **other).fit(X, Y)
    assert ledger.spent == spent


def test_what_does_not_fit_is_refused_before_anything_is_read(name, ledger):
    with pytest.raises(BudgetError):
        learner(name, ledger, epsilon=4).fit(unread(), Y)
    assert ledger.spent == Privacy(0)


def test_wrong_data_costs_nothing_or_is_no_answer(name, ledger):
    """A strict ledger is charged before the data is read, and does not say what was wrong."""
    if ledger.strict:
        with pytest.warns(UserWarning, match="No answer: .* both labels are equally likely"):
            fitted = learner(name, ledger).fit(X, Y + 5)
        assert fitted.release_.item is None
        assert fitted.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]
        assert ledger.spent == fitted.privacy_cost().privacy
    else:
        with pytest.raises(DataError):
            learner(name, ledger).fit(X, Y + 5)
        assert ledger.spent == Privacy(0)


def test_mistakes_cost_nothing(name, ledger):
    frame = pd.DataFrame(X, columns=["a", "c"])
    with pytest.raises(ParameterError, match="schema='b' is not allowed"):
        learner(name, ledger).fit(frame, Y)
    small = {"epsilon": "1e-15", "delta": 0, "accounting": "zcdp"}  # with a delta there is room
    with pytest.raises(ParameterError, match="too little for"):
        learner(name, ledger, **{one: small[one] for one in LEARNERS[name][1].keys() & small}).fit(
            X, Y
        )
    assert ledger.spent == Privacy(0)
