"""Regressions counted by an engine are those counted in memory, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import Category, Number, PrivateRegressor, Schema
from privmax.sources.engines import all_engines
from privmax.testing import SeededCoins

RNG = np.random.default_rng(20)
ROWS = 300
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(17, 90, ROWS),
        "work": RNG.choice(["a", "A", "b", "?"], ROWS),
    }
)
FRAME["pay"] = FRAME["age"] * 10 + (FRAME["work"] == "a") * 300 + RNG.normal(0, 90, ROWS)
FRAME.loc[7, "pay"] = 1e300
WITH_GAPS = FRAME.assign(pay=[None if n % 9 == 0 else pay for n, pay in enumerate(FRAME["pay"])])
SCHEMA = Schema(age=Number(17, 90, cells=20, missing=True), work=Category(["a", "b"], missing="?"))


@pytest.fixture
def served(engine, suite):
    if not any(one.name == suite[engine] and one.has_grouping_sets for one in all_engines()):
        pytest.skip("it has no grouping sets, and says so as for additive models")


def learner(**options):
    given = {"epsilon": 3, "targets": (0, 1200), "coins": SeededCoins(1)}
    return PrivateRegressor(SCHEMA, **given, **options)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    "options",
    [
        {"delta": 1e-6, "rounds": 3, "intervals": True},
        {"rounds": 2, "interactions": 1, "neighbors": "replace", "loss": "absolute",
         "intervals": True},
    ],
    ids=["intervals", "pairs"],
)  # fmt: skip
@pytest.mark.parametrize("frame", [FRAME, WITH_GAPS], ids=["whole", "gaps"])
def test_an_engine_fits_the_same_model(load, options, frame):
    table = load(frame.astype({"pay": object}).to_dict("list") if frame is WITH_GAPS
                 else frame.to_dict("list"))  # fmt: skip
    in_memory = learner(**options).fit(frame, frame["pay"])
    assert learner(**options).fit(table, "pay").model_ == in_memory.model_


@pytest.mark.usefixtures("served")
def test_an_engine_refuses_what_memory_refuses(load):
    table = load(FRAME.to_dict("list"))
    with pytest.raises(ParameterError, match="name of its column of targets"):
        learner().fit(table, "wage")
    none = load({**FRAME.to_dict("list"), "pay": ["x"] * ROWS})
    with pytest.raises(DataError, match="no rows with a target"):
        learner().fit(none, "pay")
