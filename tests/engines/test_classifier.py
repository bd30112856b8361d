"""A classifier whose rows are counted by an engine is that counted in memory, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privmax.errors import DataError
from privmax.learning import Category, Number, PrivateClassifier, Schema
from privmax.learning.classifier import fitting
from privmax.learning.classifier.choice import MEMBERS
from privmax.sources.engines import all_engines
from privmax.testing import SeededCoins

RNG = np.random.default_rng(20)
ROWS = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(17, 90, ROWS),
        "work": RNG.choice(["a", "A", "b", "?"], ROWS),
        "dose": RNG.integers(-3, 12, ROWS),
    }
)
FRAME["ill"] = np.where(
    (FRAME["age"] > 50) ^ ((FRAME["dose"] > 4) & (FRAME["work"] == "a")), "yes", "no"
)
SCHEMA = Schema(
    age=Number(17, 90, cells=40, missing=True),
    work=Category(["a", "b"], missing="?"),
    dose=Number(0, 10, cells=30),
)


@pytest.fixture
def served(engine, suite):
    if not any(one.name == suite[engine] and one.has_grouping_sets for one in all_engines()):
        pytest.skip("it has no grouping sets, and says so as for additive models")


def learner(**options):
    given = {"epsilon": 3, "delta": 1e-6, "labels": ["no", "yes"], "coins": SeededCoins(1)}
    return PrivateClassifier(SCHEMA, **{**given, **options})


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("member", MEMBERS)
def test_an_engine_fits_the_same_model(load, monkeypatch, member):
    monkeypatch.setattr(fitting, "decide", lambda *given, **options: member)
    in_memory = learner().fit(FRAME, FRAME["ill"])
    in_engine = learner().fit(load(FRAME.to_dict("list")), "ill")
    assert in_engine.model_ == in_memory.model_
    assert in_engine.rules_ == in_memory.rules_


@pytest.mark.usefixtures("served")
def test_a_condition_of_the_engine_chooses_the_rows(load):
    table = load(FRAME.to_dict("list"))
    some = FRAME[FRAME["dose"] >= 0]
    in_memory = learner().fit(some, some["ill"])
    assert learner().fit(table.filter(table["dose"] >= 0), "ill").model_ == in_memory.model_


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("options", [{}, {"n": 30}, {"n": 400}], ids=str)
def test_an_engine_refuses_labels_that_were_not_declared(load, options):
    """A public number of rows, too, for which nothing but the labels would be counted."""
    for strange in ("Yes", None):
        table = load({**FRAME.to_dict("list"), "ill": ["no", strange] * (ROWS // 2)})
        with pytest.raises(DataError, match="not among the declared labels"):
            learner(**options).fit(table, "ill")


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("options", [{}, {"n": 30}, {"n": 400}], ids=str)
def test_an_engine_refuses_a_condition_that_no_row_meets(load, options):
    table = load(FRAME.to_dict("list"))
    with pytest.raises(DataError, match="X has no rows"):
        learner(**options).fit(table.filter(table["dose"] > 99), "ill")
