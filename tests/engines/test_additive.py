"""Additive models counted by an engine are those counted in memory, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privmax.errors import DataError, ParameterError, UnsupportedError
from privmax.learning import Category, Number, PrivateGAM, Schema
from privmax.learning.additive.engine import SERVED
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
def served(engine):
    names = {"postgres-icu": "postgres", "spark": "pyspark"}
    if names.get(engine, engine) not in SERVED:
        pytest.skip("it has no grouping sets: see the test below")


def learner(**options):
    return PrivateGAM(SCHEMA, 3, labels=["no", "yes"], coins=SeededCoins(1), **options)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    "options",
    [
        {"delta": 1e-6, "rounds": 2},
        {"delta": 1e-6, "rounds": 1, "interactions": 2},
        {"rounds": 2, "order": "cyclic", "neighbors": "replace"},
    ],
    ids=["greedy", "pairs", "pure"],
)
def test_an_engine_fits_the_same_model(load, options):
    table = load(FRAME.to_dict("list"))
    in_memory = learner(**options).fit(FRAME, FRAME["ill"])
    in_engine = learner(**options).fit(table, "ill")
    assert in_engine.model_ == in_memory.model_
    assert in_engine.shape_functions_ == in_memory.shape_functions_


@pytest.mark.usefixtures("served")
def test_an_engine_refuses_labels_that_were_not_declared(load):
    table = load({**FRAME.to_dict("list"), "ill": ["no", "Yes"] * (ROWS // 2)})
    with pytest.raises(DataError, match="not among the declared labels"):
        learner(delta=1e-6).fit(table, "ill")


@pytest.mark.usefixtures("served")
def test_the_column_of_labels_is_named_and_has_their_type(load):
    table = load(FRAME.to_dict("list"))
    with pytest.raises(ParameterError, match="name of its column of labels"):
        learner(delta=1e-6).fit(table, "sick")
    with pytest.raises(ParameterError, match="the column of labels is of type"):
        PrivateGAM(SCHEMA, 1, labels=[0, 1]).fit(table, "ill")


def test_an_engine_without_grouping_sets_says_so(load, engine):
    if engine not in ("sqlite", "polars"):
        pytest.skip("it has them, or is not asked")
    table = load(FRAME.to_dict("list"))
    with pytest.raises(UnsupportedError, match=r"only in DuckDB, PostgreSQL, Spark"):
        learner(delta=1e-6).fit(table, "ill")
