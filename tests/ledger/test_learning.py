"""Rules and models that a ledger pays for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from privmax import Ledger, LimitedDomain, Privacy
from privmax.errors import BudgetError, LedgerError, ParameterError, WorkError
from privmax.learning import (
    Conjunctions,
    Explicit,
    LinearGrid,
    PrivateERM,
    Stumps,
    select_model,
)
from privmax.learning.classes.covers import numpy_walk, search
from privmax.ledger import Reservation
from privmax.testing import SeededCoins

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(2000, 2))
Y = (X[:, 1] >= 4).astype(int)
STUMPS = Stumps(low=0, high=10, cells=10)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "learning", budget=Privacy(3)) as made:
        yield made


def learner(ledger, *, request=None, dataset=None, **options):
    if ledger is not None:
        ledger = ledger.request(request, dataset=dataset)
    return PrivateERM(
        **{"hypotheses": STUMPS, "epsilon": 1, "labels": [0, 1], "ledger": ledger, **options}
    )


def bodies(ledger, kind):
    return [event.body for event in ledger.history() if event.kind == kind]


def test_every_fit_is_charged_and_recorded_by_number(ledger):
    model = learner(ledger, dataset="doses").fit(X, Y)
    assert (model.predict(X) == Y).all()
    assert ledger.spent == Privacy(1)
    assert model.release_.request
    (charged,), (recorded,) = bodies(ledger, "reserved"), bodies(ledger, "released")
    assert charged["what"]["command"] == "PrivateERM"
    assert charged["what"]["dataset"] == "doses"
    assert charged["what"]["options"]["hypotheses"] == repr(STUMPS)
    (number,) = recorded["answer"]["items"]
    assert model.hypothesis_ == STUMPS.hypothesis(number, _shape())
    model.fit(X, Y)
    assert ledger.spent == Privacy(2)
    assert ledger.verify() == []


def _shape():
    from privmax.learning import Shape

    return Shape(features=2, labels=2)


def test_a_repeated_request_gives_the_recorded_rule_and_looks_at_no_example(ledger):
    first = learner(ledger, epsilon="0.01", request="r1").fit(X, Y)

    class Blind(Stumps):
        def score(self, X, y, shape):
            raise AssertionError("the examples were looked at")

    Blind.__name__ = "Stumps"
    again = learner(ledger, epsilon="0.01", request="r1")
    again.hypotheses = Blind(low=0, high=10, cells=10)
    assert again.fit(X[::-1], 1 - Y).hypothesis_ == first.hypothesis_
    assert ledger.spent == Privacy("0.01")
    with pytest.raises(LedgerError):
        learner(ledger, epsilon="0.02", request="r1").fit(X, Y)


def test_a_repeated_request_on_other_columns_is_refused(ledger):
    learner(ledger, request="r3").fit(X, Y)
    with pytest.raises(LedgerError):
        learner(ledger, request="r3").fit(X[:, :1], Y)


def test_folds_are_charged_each_until_nothing_is_left(ledger):
    assert cross_val_score(learner(ledger), X, Y, cv=3).tolist() == [1, 1, 1]
    assert ledger.spent == Privacy(3)
    with pytest.raises(BudgetError):
        clone(learner(ledger)).fit(X, Y)
    assert len(bodies(ledger, "reserved")) == 3


def test_bad_input_loses_nothing(ledger):
    for rows, labels in [(X[:-1], Y), (X, Y + 1), (X[:, 0], Y)]:
        with pytest.raises(ValueError, match=r"."):
            learner(ledger).fit(rows, labels)
    with pytest.raises(ParameterError):
        learner(ledger, labels=None).fit(X, Y)
    assert ledger.spent == Privacy(0)


def test_a_stop_after_the_charge_is_spent_and_can_be_asked_again(ledger):
    class Broken(Stumps):
        def hypothesis(self, number, shape):
            raise KeyboardInterrupt

    Broken.__name__ = "Stumps"
    model = learner(ledger, request="r2", coins=SeededCoins(1))
    model.hypotheses = Broken(low=0, high=10, cells=10)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, Y)
    assert "stays spent" in caught.value.__notes__[0]
    assert ledger.spent == Privacy(1)
    assert (learner(ledger, request="r2").fit(X, Y).predict(X) == Y).all()
    assert ledger.spent == Privacy(1)
    assert len(bodies(ledger, "released")) == 1


def test_classes_of_objects_are_told_by_their_kind(ledger):
    rules = Explicit([lambda rows: rows[:, 1] >= 4, lambda rows: rows[:, 0] * 0])
    PrivateERM(rules, 1, labels=[0, 1], ledger=ledger).fit(X, Y)
    assert bodies(ledger, "reserved")[0]["what"]["options"]["hypotheses"] == "Explicit"


def test_a_number_is_not_kept_for_a_class_that_does_not_tell_what_it_numbers(ledger):
    rules = Explicit([lambda rows: rows[:, 1] >= 4, lambda rows: rows[:, 0] * 0])
    with pytest.raises(
        ParameterError, match="the repr of Explicit does not say which rules it numbers"
    ):
        PrivateERM(rules, 1, labels=[0, 1], ledger=ledger.request("r5")).fit(X, Y)
    assert ledger.spent == Privacy(0)


def _half_spaces(middle):
    directions = np.ones((2000, 2), np.int64)
    directions[1000] = middle  # where repr shows dots
    return LinearGrid(directions, [0], low=0, high=10, levels=5)


def test_a_number_is_not_looked_up_in_a_class_with_other_arrays(ledger):
    assert repr(_half_spaces(0)) == repr(_half_spaces(1))
    learner(ledger, hypotheses=_half_spaces(0), request="r6").fit(X, Y)
    learner(ledger, hypotheses=_half_spaces(0), request="r6").fit(X, Y)
    with pytest.raises(LedgerError, match=r"different question \(options.hypotheses\)"):
        learner(ledger, hypotheses=_half_spaces(1), request="r6").fit(X, Y)
    assert ledger.spent == Privacy(1)


def test_a_repeated_request_gives_the_same_rule_where_nothing_was_released(tmp_path):
    shy = LimitedDomain(epsilon="0.01", delta=1e-9, rank=1)

    def fitted(request):
        with pytest.warns(UserWarning, match="drawn uniformly"):
            return learner(ledger, mechanism=shy, epsilon=None, request=request).fit(X[:50], Y[:50])

    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1, "0.1")) as ledger:
        first = fitted("r7")
        assert first.release_.item is None
        assert fitted("r7").hypothesis_ == first.hypothesis_
        assert fitted("r7").hypothesis_ == first.hypothesis_
        assert ledger.spent == shy.privacy()
        assert fitted("r8").hypothesis_ != first.hypothesis_


def test_models_are_charged_and_named(ledger):
    models = {"good": lambda rows: rows[:, 1] >= 4, "bad": lambda rows: rows[:, 1] < 4}
    release = select_model(models, X, Y, epsilon=1, ledger=ledger.request("m1", account=None))
    assert release.item == "good"
    asked = dict.fromkeys(models, _never)
    assert select_model(asked, X, Y, epsilon=1, ledger=ledger.request("m1")).item == "good"
    assert ledger.spent == Privacy(1)
    assert bodies(ledger, "reserved")[0]["what"]["options"]["models"] == 2


def _never(rows):
    raise AssertionError("a model was asked")


def test_models_of_other_names_are_another_request(ledger):
    def model(rows):
        return [0] * len(rows)

    asked = {"epsilon": 1, "ledger": ledger.request("m1")}
    select_model({"a": model, "b": model}, X, Y, **asked)
    for other in ({"a": _never, "c": _never}, [_never, _never]):
        with pytest.raises(LedgerError, match=r"different question \(labels\)"):
            select_model(other, X, Y, **asked)


def test_models_beyond_the_budget_are_not_asked(ledger):
    with pytest.raises(BudgetError):
        select_model([_never, _never], X, Y, epsilon=4, ledger=ledger)
    with pytest.raises(ParameterError, match="a ledger cannot write down a name"):
        select_model({object(): _never, "b": _never}, X, Y, epsilon=1, ledger=ledger)
    assert ledger.spent == Privacy(0)


def test_scores_of_models_are_part_of_the_request(ledger):
    def closeness(y, predictions):
        return -np.abs(y - predictions)

    options = {
        "score": closeness,
        "bounds": (-1, 0),
        "epsilon": 1,
        "ledger": ledger.request("m2"),
        "k": 2,
    }
    models = [
        lambda rows: (rows[:, 1] >= 4) * 1.0,
        lambda rows: rows[:, 1] * 0.0,
        lambda rows: rows[:, 1] * 0 + 0.5,
    ]
    first = select_model(models, X, Y, **options)
    assert select_model(models, X, Y, **options).items == first.items
    with pytest.raises(LedgerError):
        select_model(models, X, Y, **{**options, "bounds": (-2, 0)})


def _untouchable():
    raise AssertionError("the data was touched")


def test_a_recorded_rule_is_taken_without_data(ledger):
    rule = learner(ledger, request="r9").fit(X, Y).hypothesis_
    model = learner(ledger, request="r9").fit_read(2, _untouchable)
    assert model.hypothesis_ == rule
    assert (model.predict(X) == Y).all()
    assert ledger.spent == Privacy(1)
    with pytest.raises(LedgerError, match="was charged before"):
        model.fit_read(3, _untouchable)
    with pytest.raises(ParameterError, match=r"^labels=.*must be declared"):
        learner(ledger, request="r9", labels="from y").fit_read(2, _untouchable)
    with pytest.raises(AssertionError, match="the data was touched"):
        learner(None).fit_read(2, _untouchable)


def test_a_charge_that_was_never_answered_is_answered_from_the_data(ledger, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Reservation, "record", lambda *_: (_ for _ in ()).throw(LedgerError))
        with pytest.raises(LedgerError):
            learner(ledger, request="r10").fit(X, Y)
    assert ledger.spent == Privacy(1)
    assert (learner(ledger, request="r10").fit_read(2, lambda: (X, Y)).predict(X) == Y).all()
    assert ledger.spent == Privacy(1)


def test_a_search_that_is_given_up_is_not_charged(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "MOST_STEPS", 2000)
    monkeypatch.setattr(search, "_choose_walk", lambda *_: numpy_walk)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (200, 12)), rng.integers(0, 2, 200)
    with Ledger.create(tmp_path / "b.db", budget=Privacy(5)) as ledger:
        learner = PrivateERM(Conjunctions(4), "0.01", labels=[0, 1], ledger=ledger)
        with pytest.raises(WorkError, match="Use fewer literals"):
            learner.fit(X, y)
        assert ledger.spent == Privacy(0)
