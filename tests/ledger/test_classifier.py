"""A classifier that a ledger pays for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privmax import Ledger, Privacy
from privmax.errors import AnswerError, LedgerError
from privmax.learning import Number, PrivateClassifier, Schema
from privmax.learning.classifier import fitting
from privmax.learning.classifier.choice import ADDITIVE, CONSTANT, MEMBERS, PAIRS, TEST, TREE
from privmax.learning.classifier.question import ClassifierFit
from privmax.learning.classifier.terms import ClassifierTerms

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(1000, 2))
Y = (X[:, 1] >= 4).astype(int)
SCHEMA = Schema(a=Number(0, 10, cells=5), b=Number(0, 10, cells=5))
BUDGET = Privacy(3, "3e-6")


@pytest.fixture(params=["plain", "strict"])
def ledger(tmp_path, request):
    options = {"strict": True} if request.param == "strict" else {}
    place = tmp_path / "budget.db"
    with Ledger.create(place, "learning", budget=BUDGET, **options) as made:
        yield made


def learner(ledger, request=None, **options):
    given = {"schema": SCHEMA, "epsilon": 1, "delta": 1e-6, "labels": [0, 1]}
    return PrivateClassifier(**{**given, **options}, ledger=ledger.request(request))


def force(monkeypatch, member):
    monkeypatch.setattr(fitting, "decide", lambda *given, **options: member)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_fit_is_charged_once_and_recorded_whole(ledger, monkeypatch, member):
    force(monkeypatch, member)
    first = learner(ledger, "nightly").fit(X, Y)
    force(monkeypatch, "none: it is not asked again")
    again = learner(ledger, "nightly").fit(X[:10], Y[:10])
    assert ledger.spent == Privacy(1, 1e-6)
    assert first.model_ == again.model_
    assert again.release_.recorded
    assert (first.choice_, first.rules_) == (again.choice_, again.rules_)
    assert again.predict_proba(X).tolist() == first.predict_proba(X).tolist()
    recorded = [event.body for event in ledger.history() if event.kind == "released"]
    assert recorded[0]["answer"]["items"][0] == first.model_.to_json()
    assert ledger.verify() == []


def test_it_is_charged_before_the_count_is_drawn(ledger, monkeypatch):
    """What fails from then on is no answer, and is charged."""
    spent = []

    def fail(*given):
        spent.append(ledger.spent)
        raise MemoryError

    monkeypatch.setattr(fitting, "discrete_laplace", fail)
    failed = (
        pytest.warns(UserWarning, match="No answer")
        if ledger.strict
        else pytest.raises(AnswerError, match="stays spent")
    )
    with failed:
        learner(ledger, "nightly").fit(X, Y)
    assert spent == [Privacy(1, 1e-6)]
    with pytest.warns(UserWarning, match="No answer"):
        again = learner(ledger, "nightly").fit(X, Y)
    assert again.release_.item is None
    assert again.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]
    assert again.choice_ == "no model: the fit failed after it was charged"
    assert ledger.spent == Privacy(1, 1e-6)


def test_rho_is_that_of_the_dearest_model(tmp_path):
    with Ledger.create(tmp_path / "l.db", "z", budget=Privacy(9, "1e-6"), rule="zcdp") as made:
        model = learner(made).fit(X, Y)
        (charge,) = [one.body for one in made.history() if "price" in one.body]
    assert Fraction(charge["price"]["rho"]) == model.release_.mechanism.rho
    assert model.privacy_cost().rho == model.release_.mechanism.rho


def question(n=None, schema=SCHEMA) -> ClassifierFit:
    return ClassifierFit(ClassifierTerms(epsilon=1, delta=1e-6, n=n), schema)


RULE = {"number": 1, "leaves": [[1, 2], [3, 4], [-5, 6], [7, 8]]}
TABLE = {"features": [0], "groups": [[0, 1, 2, 3, 4]], "table": [1, 2, 3, 4, 5]}
TABLES = {"intercept": 0, "tables": [TABLE], "path": [[0]] * 20}
GOOD = {"member": TEST, "rows": 7, "model": RULE}
FORGED = [
    {},
    [],
    {**GOOD, "member": "forest"},
    {**GOOD, "member": ["one test"]},
    {**GOOD, "rows": None},
    {**GOOD, "rows": -1},
    {**GOOD, "rows": "7"},
    {**GOOD, "rows": True},
    {**GOOD, "rows": 1 << 62},
    {**GOOD, "model": TABLES},
    {**GOOD, "model": None},
    {**GOOD, "model": {**RULE, "number": 10**6}},
    {**GOOD, "model": {**RULE, "number": -1}},
    {**GOOD, "model": {**RULE, "number": 1.0}},
    {**GOOD, "model": {**RULE, "leaves": [[1, 2]]}},
    {**GOOD, "model": {**RULE, "leaves": [[1, 2, 3]] * 4}},
    {**GOOD, "model": {**RULE, "leaves": [[1, "2"]] * 4}},
    {**GOOD, "model": {**RULE, "leaves": [[1, 10**30]] * 4}},
    {**GOOD, "member": CONSTANT},
    {**GOOD, "member": TREE, "model": {**RULE, "number": 10**9}},
    {**GOOD, "member": ADDITIVE},
    {**GOOD, "member": ADDITIVE, "model": {**TABLES, "intercept": 10**9}},
    {**GOOD, "member": PAIRS, "model": {**TABLES, "path": [[0]] * 25}},
    {**GOOD, "member": ADDITIVE, "model": {**TABLES, "path": [[0]] * 19}},
]


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_record_that_no_fit_has_made_is_refused(forged):
    assert question().read_model(GOOD).model.number == 1
    with pytest.raises(LedgerError, match="does not fit this schema"):
        question().read_model(forged)


def test_a_record_of_another_number_of_rows_is_refused():
    assert question(n=9).read_model({**GOOD, "rows": None}).rows is None
    with pytest.raises(LedgerError, match="does not fit this schema"):
        question(n=9).read_model(GOOD)


def test_a_record_of_a_model_that_the_columns_do_not_have_is_refused():
    one = Schema(a=Number(0, 10, cells=5))
    good = {"member": ADDITIVE, "rows": 7, "model": TABLES}
    assert question(schema=one).read_model(good).member == ADDITIVE
    with pytest.raises(LedgerError, match="does not fit this schema"):
        question(schema=one).read_model({**good, "member": PAIRS})
