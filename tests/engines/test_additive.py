"""Additive models counted by an engine are those counted in memory, bit for bit."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest

from privmax.errors import DataError, ParameterError, UnsupportedError
from privmax.learning import Category, Number, PrivateGAM, Schema
from privmax.learning.additive.engine import EngineRows, RunningRows, label_targets, open_rows
from privmax.learning.additive.link import LIMIT
from privmax.learning.additive.model import Part
from privmax.sources.engines import all_engines
from privmax.testing import SeededCoins

RNG = np.random.default_rng(20)
ROWS = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(17, 90, ROWS),
        "work": RNG.choice(["a", "A", "b", "?"], ROWS),
        "dose": RNG.integers(-3, 12, ROWS),
        "town": RNG.choice(list("abcdefghij"), ROWS),
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
TOWNS = Schema(
    {
        "dose": Number(0, 10, cells=30),
        "town": Category(list("jihgfedcba")),
        "work": Category(["a", "b"], missing="?"),
    }
)


@pytest.fixture
def is_served(engine, suite):
    return any(one.name == suite[engine] and one.has_grouping_sets for one in all_engines())


@pytest.fixture
def served(is_served):
    if not is_served:
        pytest.skip("it has no grouping sets: see the test below")


def learner(**options):
    return PrivateGAM(SCHEMA, 3, labels=["no", "yes"], coins=SeededCoins(1), **options)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    "options",
    [
        {"delta": 1e-6, "rounds": 2},
        {"delta": 1e-6, "rounds": 1, "interactions": 2, "calibration": True},
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
    assert (in_engine.model_.counts is not None) == options.get("calibration", False)


@pytest.mark.usefixtures("served")
def test_an_engine_counts_pairs_of_merged_categories(load):
    """Groups that follow from the first rounds, and so do tables of pairs."""
    options = {"delta": 1e-6, "rounds": 2, "interactions": 3, "order": "cyclic"}
    learn = {"labels": ["no", "yes"], "epsilon": 9, **options}
    in_memory = PrivateGAM(TOWNS, coins=SeededCoins(3), **learn).fit(FRAME, FRAME["ill"])
    in_engine = PrivateGAM(TOWNS, coins=SeededCoins(3), **learn)
    in_engine.fit(load(FRAME.to_dict("list")), "ill")
    assert in_engine.model_ == in_memory.model_
    parts = [part for part in in_memory.model_.tables if part.features[-2:] in ((0, 1), (1, 2))]
    (towns,) = {part.groups[part.features.index(1)] for part in parts}
    assert list(towns) != sorted(towns)


@pytest.mark.usefixtures("served")
def test_an_engine_refuses_labels_that_were_not_declared(load):
    table = load({**FRAME.to_dict("list"), "ill": ["no", "Yes"] * (ROWS // 2)})
    with pytest.raises(DataError, match="not among the declared labels"):
        learner(delta=1e-6).fit(table, "ill")


@pytest.mark.usefixtures("served")
def test_the_column_of_labels_is_named_and_has_their_type(load):
    table = load(FRAME.to_dict("list"))
    with pytest.raises(ParameterError, match="name of its column of targets"):
        learner(delta=1e-6).fit(table, "sick")
    with pytest.raises(ParameterError, match="the column of labels is of type"):
        PrivateGAM(SCHEMA, 1, labels=[0, 1]).fit(table, "ill")


def test_an_engine_without_grouping_sets_says_so(is_served, request):
    if is_served:
        pytest.skip("it has them")
    table = request.getfixturevalue("load")(FRAME.to_dict("list"))
    with pytest.raises(UnsupportedError, match=r"only in DuckDB, PostgreSQL, Spark"):
        learner(delta=1e-6).fit(table, "ill")


in_duckdb = pytest.mark.parametrize("engine", ["duckdb"], scope="session")


@in_duckdb
@pytest.mark.parametrize("intercept", [0, 7 * LIMIT, -LIMIT - 3])
def test_scores_that_are_kept_are_those_of_the_tables(load, intercept):
    """Also beyond where they are clipped, and back from there."""
    parts = [
        Part((feature,), (tuple(range(column.cells)),))
        for feature, column in enumerate(SCHEMA.columns)
    ]
    rng = np.random.default_rng(4)
    with ExitStack() as held:
        table = load(FRAME.to_dict("list"))
        rows = open_rows(table, SCHEMA, "ill", label_targets(np.array(["no", "yes"])), held)
        assert isinstance(rows, RunningRows)
        rows.start(intercept)
        for part in [*parts, parts[0]]:
            rows.add(part, rng.integers(-5 * LIMIT, 5 * LIMIT, part.size))
            kept = [*rows.residuals(parts), *rows.sums(part)]
            counted = [*EngineRows.residuals(rows, parts), *EngineRows.sums(rows, part)]
            for one, other in zip(kept, counted, strict=True):
                assert one.tolist() == other.tolist()


@in_duckdb
@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_a_fit_that_is_stopped_leaves_no_table(load, connection, monkeypatch, stop):
    def fail(self, part):
        raise stop

    monkeypatch.setattr(RunningRows, "sums", fail)
    with pytest.raises(stop):
        learner(delta=1e-6).fit(load(FRAME.to_dict("list")), "ill")
    kept = connection.con.execute("SELECT table_name FROM duckdb_tables() WHERE temporary")
    assert kept.fetchall() == []


@in_duckdb
def test_a_transaction_of_the_caller_stays_open(load, connection):
    table = load(FRAME.to_dict("list"))
    connection.con.begin()
    connection.con.execute("CREATE TABLE mine (a INTEGER)")
    model = learner(delta=1e-6, rounds=2).fit(table, "ill").model_
    connection.con.rollback()
    assert "mine" not in connection.list_tables()
    assert model == learner(delta=1e-6, rounds=2).fit(FRAME, FRAME["ill"]).model_
