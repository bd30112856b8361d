"""Tables, on DuckDB in memory: what is asked of the engine, what is refused, what may be passed as
a table.
"""

from __future__ import annotations

import datetime
import functools
import gzip
import itertools
import re
from contextlib import closing
from decimal import Decimal
from uuid import UUID

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

import privmax
from privmax.auditing import divergence
from privmax.errors import DataError, EngineError, ParameterError
from privmax.labels import label_by_value
from privmax.mechanisms.contract import Outcome
from privmax.sources import tables as table_source
from privmax.sources.engines import engine_of
from privmax.sources.engines.duckdb import DuckDB
from privmax.sources.roles import Columns
from privmax.sources.tables import LARGEST_BOUND, TableSource
from privmax.testing import SeededCoins

PRICE = {"epsilon": 2, "delta": "0.1"}
COUNTING = {"item": "item", "user": "user"}
IDENTIFIER = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
LABELS = ["aa", "quuxley", "zorblax", "zz"]
ROWS = {
    "item": ["zorblax"] * 60 + ["quuxley"] * 20,
    "user": [*range(60), *range(20)],
    "weight": [2] * 80,
}


@pytest.fixture
def engine():
    connection = ibis.duckdb.connect()
    yield connection
    connection.disconnect()


@pytest.fixture
def load(engine):
    numbers = itertools.count()
    return lambda rows: engine.create_table(f"data_{next(numbers)}", pa.table(rows))


def tables(engine):
    found = engine.con.execute("SELECT table_name FROM information_schema.tables").fetchall()
    return [name for (name,) in found if not name.startswith("data_")]


def scores(table, universe="open", **columns):
    with closing(TableSource(table, Columns(**columns), universe=universe)) as source:
        return dict(source.scores())


def assert_says_nothing_private(error):
    assert error.__cause__ is None
    assert error.__context__ is None
    for secret in ("zorblax", "quuxley", "7310427"):
        assert secret not in f"{error!s} {error!r}"


# Scores


def test_different_users_are_counted_and_rows_without_an_item_are_not(load):
    table = load({"item": ["a", "a", "a", "b", None], "user": [1, 1, 2, 1, 9]})
    assert scores(table, **COUNTING) == {"a": 2, "b": 1}


def test_without_users_rows_are_counted(load):
    assert scores(load({"item": ["a", "a", "a", "b", None]}), item="item") == {"a": 3, "b": 1}


def test_ready_scores_are_taken_as_they_are(load):
    table = load({"item": ["a", "b", "c"], "n": [5, 0, -3]})
    assert scores(table, item="item", score="n") == {"a": 5, "b": 0, "c": -3}


def test_several_columns_name_an_item_together(load):
    table = load({"x": ["a", "a", "a", None], "y": [1, 1, 2, 1]})
    assert scores(table, item=["x", "y"]) == {("a", 1): 2, ("a", 2): 1}
    assert scores(table, item=["x"]) == {"a": 3}


def test_an_individuals_weights_are_added_up_and_clipped(load):
    table = load(
        {
            "item": ["a", "a", "a", "a", "b", "b", "c", None],
            "user": [1, 1, 2, 3, 1, 1, 1, 1],
            "weight": [2, 2, 1, 90, 5, -4, -7, 100],
        }
    )
    options = {**COUNTING, "weight": "weight"}
    assert scores(table, **options, bound=3) == {"a": 3 + 1 + 3, "b": 1, "c": 0}
    assert scores(table, **options, bound=100) == {"a": 4 + 1 + 90, "b": 1, "c": 0}


def test_the_sensitivity_is_the_bound_for_weights_and_one_for_counts(load):
    table = load(ROWS)
    for options, expected in (
        ({"user": "user"}, 1),
        ({}, 1),
        ({"user": "user", "weight": "weight", "bound": 7}, 7),
    ):
        with closing(TableSource(table, Columns("item", **options))) as source:
            assert source.profile.sensitivity == expected


@pytest.mark.parametrize(("given", "steps"), [(None, 1), (3, 3), ("6/2", 3), (2.0, 2)])
def test_ready_scores_may_have_a_sensitivity(load, given, steps):
    table = load({"item": ["a"], "score": [1]})
    with closing(TableSource(table, Columns("item", score="score"), sensitivity=given)) as source:
        assert source.profile.sensitivity == steps


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"weight": "weight", "bound": 3}], ids=["counts", "weights"]
)
def test_adding_one_individual_moves_every_score_the_same_way_by_at_most_the_bound(load, options):
    generator = np.random.default_rng(20261115)
    most = options.get("bound", 1)
    for _ in range(20):
        rows = {
            "item": generator.choice(list("abcdef"), 40).tolist(),
            "user": generator.integers(0, 6, 40).tolist(),
            "weight": generator.integers(-3, 6, 40).tolist(),
        }
        everyone = scores(load(rows), **COUNTING, **options)
        kept = [place for place, user in enumerate(rows["user"]) if user != 0]
        others = {name: [column[place] for place in kept] for name, column in rows.items()}
        without = scores(load(others), **COUNTING, **options)
        rises = [score - without.get(item, 0) for item, score in everyone.items()]
        assert set(without) <= set(everyone)
        assert min(rises) >= 0
        assert max(rises) <= most


@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 2**63 - 1, -(2**63)],
        [Decimal(2**70), Decimal(2**70 + 1), Decimal(3)],
        [True, False, True],
    ],
    ids=["64 bits", "more bits", "truth"],
)
def test_items_of_any_type_come_out_as_they_went_in(load, values):
    assert set(scores(load({"item": values}), item="item")) == set(values)


def test_scores_are_exact_up_to_64_bits(load):
    table = load({"item": ["a", "b"], "score": pa.array([2**63 - 1, -(2**63)])})
    assert scores(table, item="item", score="score") == {"a": 2**63 - 1, "b": -(2**63)}


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(38, 0)])
def test_a_score_beyond_64_bits_is_refused(load, kind):
    table = load({"item": ["a", "b"], "score": pa.array([2**63, 1], kind)})
    with pytest.raises(DataError, match="64 bits") as caught:
        privmax.select(table, item="item", score="score", **PRICE)
    assert_says_nothing_private(caught.value)
    fitting = load({"item": ["a", "b"], "score": pa.array([2**63 - 1, 1], kind)})
    assert scores(fitting, item="item", score="score") == {"a": 2**63 - 1, "b": 1}


# Questions


@pytest.fixture
def questions(monkeypatch, engine):
    """What is asked, in order: `counting` is a table made, the others are named as in the
    errors.
    """
    seen = []
    made = type(engine).create_table

    def create_table(self, name, *args, **options):
        if name.startswith("privmax_counts"):
            seen.append("counting")
        return made(self, name, *args, **options)

    def asked(question, answer, *arguments, real=table_source.ask):
        if question != "the counting":
            seen.append(question.removeprefix("the "))
        return real(question, answer, *arguments)

    monkeypatch.setattr(type(engine), "create_table", create_table)
    monkeypatch.setattr(table_source, "ask", asked)
    return seen


def test_a_selection_asks_each_question_once(load, questions):
    release = privmax.select(load(ROWS), **COUNTING, **PRICE)
    assert release.item == "zorblax"
    assert questions == ["counting", "maximum", "histogram", "look-up"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "price",
    [
        {},
        {"epsilon": 0, "delta": "1e-6"},
        {"epsilon": 1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1},
        {"epsilon": 1, "delta": "1e-6", "neighbors": "both"},
        {"epsilon": 1, "delta": "1e-6", "growth": 0},
        {"epsilon": 1, "delta": "1e-6", "k": 0},
        {"mechanism": "nested-margin"},
        {"mechanism": privmax.NestedMargin(epsilon=1, delta="1e-6"), "epsilon": 1},
    ],
    ids=str,
)
def test_an_engine_is_asked_nothing_at_a_price_that_cannot_be(load, questions, price):
    table = load(ROWS)
    with pytest.raises(ParameterError):
        by_name(privmax.select, table, **COUNTING, **price)
    assert questions == []


@pytest.mark.parametrize("ranked", [True, False])
def test_all_items_are_looked_up_with_one_question(load, questions, ranked):
    release = privmax.select(load(ROWS), **COUNTING, epsilon=60, delta="0.1", k=2, ranked=ranked)
    assert release.items == (("zorblax", "quuxley") if ranked else ("quuxley", "zorblax"))
    assert questions.count("look-up") == 1
    assert questions[:2] == ["counting", "histogram"]
    assert set(questions) == {"counting", "maximum", "histogram", "look-up"}


def test_a_histogram_is_asked_for_once_per_depth(load, questions):
    with closing(TableSource(load(ROWS), Columns(**COUNTING))) as source:
        for width in (10, 5, 10, 100, 50):
            source.profile.window(width)
    assert questions == ["counting", "maximum", "histogram", "histogram"]


def test_no_answer_needs_no_look_up(load, questions):
    with closing(TableSource(load(ROWS), Columns(**COUNTING), universe=LABELS)) as source:
        source.profile.window(1000)
        assert source.name(Outcome(None)) is None
    assert "look-up" not in questions


def test_declared_labels_need_no_question_more(load, questions):
    release = privmax.select(load(ROWS), **COUNTING, **PRICE, universe=LABELS)
    assert release.item == "zorblax"
    assert questions == ["counting", "maximum", "histogram", "look-up"]


def test_a_label_without_data_is_drawn_by_its_name(load):
    with closing(TableSource(load(ROWS), Columns(**COUNTING), universe=LABELS)) as source:
        source.profile.window(1000)
        assert [source.name(Outcome(0, index)) for index in range(2)] == ["aa", "zz"]
        assert [source.name(Outcome(20, index, below=True)) for index in range(3)] == [
            "aa",
            "quuxley",
            "zz",
        ]
        with pytest.raises(EngineError, match="changed while it was read"):
            source.name(Outcome(0, 2))


def test_many_are_named_as_each_of_them_is(load, questions):
    with closing(TableSource(load(ROWS), Columns(**COUNTING), universe=LABELS)) as source:
        source.profile.window(1000)
        levels = source.histogram(-1)
        drawn = [Outcome(score, index) for score, number in levels for index in range(number)]
        names = source.names([*drawn[::-1], Outcome(None)])
        assert sorted(names[:-1]) == sorted(LABELS)
        assert names == [*(source.name(one) for one in drawn[::-1]), None]
        below = [Outcome(20, index, below=True) for index in (2, 0, 1)]
        assert source.names([Outcome(levels[0][0]), *below])[1:] == ["zz", "aa", "quuxley"]
        with pytest.raises(EngineError, match="changed while it was read"):
            source.names([Outcome(0, 0), Outcome(0, 2)])


def test_many_are_named_without_a_histogram_too(load):
    with closing(TableSource(load(ROWS), Columns(**COUNTING), universe=LABELS)) as source:
        assert source.names([Outcome(0, 1), Outcome(0, 0)]) == ["zz", "aa"]


def test_names_of_other_data_than_was_counted_are_refused(load, engine):
    """The scores come back with the names, and tell."""
    with closing(TableSource(load(ROWS), Columns(**COUNTING))) as source:
        levels = source.histogram(-1)
        drawn = [Outcome(score, index) for score, number in levels for index in range(number)]
        assert len(source.names(drawn)) == len(drawn)
        source._counts = source._counts.mutate(privmax_score=source._counts.privmax_score + 1)
        with pytest.raises(EngineError, match="changed while it was read"):
            source.names(drawn)


def test_only_the_answers_leave_the_engine(load, monkeypatch):
    """As many rows as there are levels, and one for each of the other questions, whatever the
    number of items.
    """
    fetched = []
    kind = type(engine_of(load(ROWS)))
    real = kind.rows

    def count_rows(self, table):
        rows = real(self, table)
        fetched.append(len(rows))
        return rows

    monkeypatch.setattr(kind, "rows", count_rows)
    items = [f"item {place}" for place in range(5000) for _ in range(1 + place % 3)]
    labels = [f"item {place}" for place in range(6000)]
    privmax.select(load({"item": items}), item="item", epsilon=1, universe=labels)
    assert fetched[0] == 1
    assert max(fetched) <= 4
    fetched.clear()
    release = privmax.select(load({"item": items}), item="item", epsilon=1, universe=labels, k=50)
    assert len(release) == 50
    assert (fetched[0], fetched[-1]) == (1, 50)
    assert max(fetched[:-1]) <= 4


def test_queries_are_not_printed_whatever_the_options_of_ibis(load, capsys):
    said = []
    ibis.options.verbose, ibis.options.verbose_log = True, said.append
    try:
        privmax.select(load(ROWS), **COUNTING, **PRICE)
        assert ibis.options.verbose is True
    finally:
        ibis.options.verbose, ibis.options.verbose_log = False, None
    assert not [text for text in said if "privmax_score" in text and ">" in text]
    assert capsys.readouterr().out == ""


def test_a_source_shows_nothing(load):
    with closing(TableSource(load(ROWS), Columns(**COUNTING))) as source:
        assert repr(source) == str(source) == "TableSource(<private>)"


def test_the_law_of_a_table_is_that_of_its_scores(load):
    mechanism = privmax.NestedMargin(epsilon=2, delta="0.1")
    expected = privmax.law({"zorblax": 60, "quuxley": 20}, mechanism=mechanism)
    assert privmax.law(load(ROWS), mechanism=mechanism, **COUNTING) == expected


# What is left


def test_the_engine_forgets_the_counts(load, engine):
    privmax.select(load(ROWS), **COUNTING, **PRICE)
    assert tables(engine) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", ["the counting", "the maximum", "the histogram", "the look-up"]
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_engine_forgets_the_counts_when_a_question_fails(
    load, engine, monkeypatch, question, error
):
    def asked(asked_for, answer, *arguments, real=table_source.ask):
        def fail(*arguments):
            answer(*arguments)
            raise error("zorblax")

        return real(asked_for, fail if asked_for == question else answer, *arguments)

    monkeypatch.setattr(table_source, "ask", asked)
    keep = DuckDB.keep
    monkeypatch.setattr(DuckDB, "keep", lambda *given: asked("the counting", lambda: keep(*given)))
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else EngineError) as caught:
        privmax.select(load(ROWS), **COUNTING, **PRICE)
    if error is RuntimeError:
        assert re.search(question, str(caught.value))
        assert_says_nothing_private(caught.value)
    assert tables(engine) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("zorblax")])
def test_half_a_table_of_counts_is_forgotten_too(load, engine, monkeypatch, error):
    made = type(engine).create_table

    def create_table(self, name, *args, **options):
        table = made(self, name, *args, **options)
        if name.startswith("privmax_counts"):
            raise error
        return table

    monkeypatch.setattr(type(engine), "create_table", create_table)
    with pytest.raises((KeyboardInterrupt, EngineError)):
        privmax.select(load(ROWS), **COUNTING, **PRICE)
    assert tables(engine) == []


def test_an_engine_interrupted_by_ctrl_c_says_so(load, monkeypatch):
    """DuckDB raises an error of its own, caused by the interrupt."""

    def interrupted():
        raise RuntimeError("Query interrupted") from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        table_source.ask("the maximum", interrupted)


# What is refused

REFUSED = {
    "no item": ({"item": None}, "item is required: the table needs it"),
    "no items": ({"item": []}, "the table needs it"),
    "item not there": (
        {"item": "query"},
        r"item='query' is not allowed: the table has no such column.",
    ),
    "second item not there": ({"item": ["item", "query"]}, "item='query'"),
    "item twice": ({"item": ["item", "item"]}, "names a column twice"),
    "item of a nested type": ({"item": "tags"}, "single values"),
    "user not there": ({"user": "who"}, "user='who' is not allowed: the table has no such column"),
    "score not there": ({"score": "n"}, "score='n'"),
    "weight not there": ({"user": "user", "weight": "n", "bound": 1}, "weight='n'"),
    "score of floats": (
        {"score": "ratio"},
        "score='ratio'.*whole numbers, but its type is float64. Round it",
    ),
    "weight of floats": (
        {"user": "user", "weight": "ratio", "bound": 1},
        "weight='ratio'.*Round it",
    ),
    "score of text": ({"score": "item"}, "whole numbers, but its type is string"),
    "score of money": ({"score": "money"}, "whole numbers, but its type is decimal"),
    "score and user": ({"score": "weight", "user": "user"}, "user='user'.*no meaning with score"),
    "score and weight": ({"score": "weight", "weight": "weight"}, "weight='weight'"),
    "weight and no user": (
        {"weight": "weight", "bound": 1},
        r"weight='weight'.*needs user\. Give user",
    ),
    "bound and rows": ({"bound": 1}, "bound=1.*each row is one individual"),
    "weight and no bound": ({"user": "user", "weight": "weight"}, "bound=None"),
    "bound and no weight": ({"user": "user", "bound": 1}, "bound=1"),
    "bound of nothing": ({"user": "user", "weight": "weight", "bound": 0}, "bound=0"),
    "bound too large": (
        {"user": "user", "weight": "weight", "bound": LARGEST_BOUND + 1},
        "must not exceed",
    ),
    "weight and sensitivity": (
        {"user": "user", "weight": "weight", "bound": 1, "sensitivity": 1},
        "sensitivity=1",
    ),
    "count and sensitivity": ({"user": "user", "sensitivity": 2}, "a count moves by 1"),
    "score and sensitivity of a fraction": (
        {"score": "weight", "sensitivity": "5/2", "neighbors": "replace"},
        "whole numbers",
    ),
    "score and sensitivity of nothing": ({"score": "weight", "sensitivity": 0}, "sensitivity=0"),
    "a size for rows": (
        {"universe": 2},
        "universe=2 is not allowed: a counted table lists only items that occur",
    ),
    "a size for users": (
        {"user": "user", "universe": np.int64(9)},
        "a size does not name the others. Give the labels",
    ),
    "a size for weights": (
        {"user": "user", "weight": "weight", "bound": 1, "universe": 9},
        "or leave it open",
    ),
    "closed": ({"universe": "closed"}, "universe='closed'.*collection of labels"),
    "truth": ({"universe": True}, "universe=True"),
    "a float": ({"universe": 2.0}, "universe=2.0"),
    "labels once": ({"universe": iter(["a"])}, "universe='list_iterator'.*collection of labels"),
    "no labels": ({"universe": []}, "universe=0"),
    "repeated labels": (
        {"universe": ["zorblax", "quuxley", "zorblax"]},
        "universe='<labels>'.*more than once",
    ),
    "labels of another type": (
        {"universe": ["zorblax", 7310427]},
        "does not fit the column of items, which is string",
    ),
    "numbers that are no numbers": (
        {"item": "user", "universe": ["zorblax"]},
        "which is int64. Give labels of that",
    ),
    "a label of nobody": ({"universe": ["zorblax", "quuxley", None]}, "a label is missing in it"),
    "labels that cannot be looked up": (
        {"universe": [["zorblax"], ["quuxley"]]},
        "labels must be hashable",
    ),
    "labels of too few parts": (
        {"item": ["item", "user"], "universe": ["zorblax"]},
        "must have 2 parts",
    ),
    "labels of too many parts": (
        {"item": ["item", "user"], "universe": [("zorblax", 1, 2)]},
        "a label must have 2 parts",
    ),
    "text for two letters": (
        {"item": ["item", "user"], "universe": ["ab"]},
        "a label must have 2 parts",
    ),
    "a part of nothing": (
        {"item": ["item", "user"], "universe": [("zorblax", None)]},
        "a label is missing in it",
    ),
    "resolution": ({"resolution": 1, "neighbors": "replace"}, "resolution=1"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "says"), REFUSED.values(), ids=REFUSED)
def test_options_that_do_not_fit_are_refused(load, engine, options, says):
    more = {"ratio": [0.5] * 80, "tags": [["a"]] * 80, "money": [Decimal("1.50")] * 80}
    with pytest.raises(ParameterError, match=says) as caught:
        by_name(privmax.select, load({**ROWS, **more}), **{"item": "item", **options}, **PRICE)
    assert_says_nothing_private(caught.value)
    assert tables(engine) == []


UNUSABLE = {
    "null user": (
        {"item": ["zorblax"], "user": pa.array([None], pa.int64())},
        COUNTING,
        "A row has an item but no user.",
    ),
    "null weight": (
        {"item": ["zorblax"] * 2, "user": [1, 1], "w": [1, None]},
        {**COUNTING, "weight": "w", "bound": 7310427},
        "A weight is missing",
    ),
    "null user with a weight": (
        {"item": ["zorblax"] * 2, "user": [1, None], "w": [1, 1]},
        {**COUNTING, "weight": "w", "bound": 7310427},
        "A row has an item but no user.",
    ),
    "null score": (
        {"item": ["zorblax", "b"], "n": [7310427, None]},
        {"item": "item", "score": "n"},
        "A score is missing",
    ),
    "repeated item": (
        {"item": ["zorblax"] * 2, "n": [7310427] * 2},
        {"item": "item", "score": "n"},
        "An item has several rows with scores.",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "options", "cause"), UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("universe", ["open", ["a", "b", "zorblax"]], ids=["open", "closed"])
def test_data_that_cannot_be_used_is_refused(load, engine, rows, options, cause, universe):
    with pytest.raises(DataError, match=f"^{cause}") as caught:
        by_name(privmax.select, load(rows), **options, **PRICE, universe=universe)
    assert_says_nothing_private(caught.value)
    assert tables(engine) == []


# Closed universes


def test_labels_without_data_have_a_score_of_zero(load):
    assert scores(load(ROWS), **COUNTING, universe=LABELS) == {
        "zorblax": 60,
        "quuxley": 20,
        "aa": 0,
        "zz": 0,
    }
    pairs = load({"x": ["a", "a", "b", None], "y": [1, 1, 2, 1]})
    labels = {("a", 1), ("a", 2), ("b", 2)}
    assert scores(pairs, item=["x", "y"], universe=labels) == {
        ("a", 1): 2,
        ("b", 2): 1,
        ("a", 2): 0,
    }
    ready = load({"item": ["a", "b"], "n": [5, -3]})
    assert scores(ready, item="item", score="n", universe=("c", "b", "a")) == {
        "a": 5,
        "b": -3,
        "c": 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [np.array(LABELS), pa.array(LABELS), dict.fromkeys(LABELS), set(LABELS), tuple(LABELS)],
    ids=type,
)
def test_any_collection_declares_labels(load, labels):
    assert set(scores(load(ROWS), **COUNTING, universe=labels)) == set(LABELS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "more"),
    [
        (pa.array([2**63 - 1, -(2**63)]), 7),
        (pa.array([3, 4], pa.int8()), np.int64(5)),
        (pa.array([3, 4], pa.uint16()), 5),
        (pa.array([0.1, -2.5]), 7.25),
        (pa.array([Decimal(2**70), Decimal(3)]), Decimal(2**70 + 1)),
        (pa.array([b"\x00", b"\xff"]), b"\x01"),
        (pa.array([datetime.datetime(2026, 3, 29, 8, 30)]), datetime.datetime(1969, 1, 1)),
        (pa.array([datetime.date(2026, 3, 29)]), datetime.date(1000, 1, 1)),
        (pa.array([datetime.time(8, 30)]), datetime.time(9)),
        (pa.array(["a", "b"]).dictionary_encode(), "c"),
        (pa.array([True]), False),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_labels_may_be_of_any_type_that_items_have(load, items, more):
    found = scores(load({"item": items}), item="item", universe=[*items.to_pylist(), more])
    assert found == {**dict.fromkeys(items.to_pylist(), 1), more: 0}


@pytest.mark.parametrize(
    ("items", "labels"),
    [
        (pa.array([7, -7]), ["7", "-7"]),
        (pa.array([datetime.date(2026, 3, 29)]), ["2026-03-29"]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_labels_may_be_written_as_text(load, items, labels):
    assert scores(load({"item": items}), item="item", universe=labels) == dict.fromkeys(
        items.to_pylist(), 1
    )


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["7", "x"], "does not fit the column of items, which is int64"),
        (["7", "07"], "more than once"),
    ],
)
def test_labels_written_as_text_that_cannot_be_used(load, labels, says):
    with pytest.raises(ParameterError, match=says):
        scores(load({"item": [7]}), item="item", universe=labels)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (f"'{IDENTIFIER}'::UUID", str(IDENTIFIER)),
        ("INTERVAL 3 DAY", "3 days"),
        ("'101'::BIT", "101"),
    ],
)
def test_items_of_types_that_arrow_does_not_have_are_text(engine, item, text):
    table = engine.sql(f"SELECT {item} AS item, person FROM range(60) AS people(person)")
    assert privmax.select(table, item="item", user="person", **PRICE).item == text


def test_labels_may_be_identifiers(engine):
    table = engine.sql(
        f"SELECT '{IDENTIFIER}'::UUID AS item, person FROM range(60) AS people(person)"
    )
    found = scores(table, item="item", user="person", universe=[IDENTIFIER, UUID(int=0)])
    assert found == {str(IDENTIFIER): 60, str(UUID(int=0)): 0}


@pytest.mark.parametrize(
    "options", [COUNTING, {"item": "item"}, {**COUNTING, "weight": "weight", "bound": 1}]
)
def test_an_item_that_is_not_declared_is_refused(load, engine, options):
    with pytest.raises(
        DataError, match="A label with a score is not in the declared universe"
    ) as caught:
        by_name(privmax.select, load(ROWS), **options, **PRICE, universe=["zorblax", "aa"])
    assert_says_nothing_private(caught.value)
    assert tables(engine) == []


def test_ready_scores_of_an_item_that_is_not_declared_are_refused_even_at_zero(load):
    with pytest.raises(DataError, match="not in the declared universe"):
        scores(load({"item": ["a", "b"], "n": [5, 0]}), item="item", score="n", universe=["a"])


def test_labels_that_an_engine_takes_for_the_same_are_repeated(load):
    with pytest.raises(ParameterError, match="a label occurs in it more than once"):
        scores(load({"item": [1.5]}), item="item", universe=[1.5, 0.0, -0.0])


def test_no_label_cannot_be_declared(load):
    for nothing in (None, float("nan"), Decimal("NaN"), pd.NA):
        with pytest.raises(ParameterError, match="a label is missing in it"):
            scores(load({"item": [1.5]}), item="item", universe=[1.5, nothing])


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (3, "fewer candidates are listed, and a size does not name the others"),
        (1, "must not be smaller than the number of labels with a score"),
    ],
)
def test_ready_scores_must_list_everybody_if_only_a_size_is_declared(load, engine, size, says):
    table = load({"item": ["zorblax", "quuxley"], "n": [7310427, 0]})
    with closing(TableSource(table, Columns("item", score="n"), universe=2)) as source:
        assert source.profile.window(9).rest == 1
    with pytest.raises(ParameterError, match=f"universe={size} is not allowed: .*{says}") as caught:
        privmax.select(table, item="item", score="n", **PRICE, universe=size)
    assert_says_nothing_private(caught.value)
    assert tables(engine) == []


SMALL = ("a", "b", "c")


def worst(law, epsilon):
    """The largest divergence of `law(items of one user, items of another)` from that without the
    other, either way.
    """
    subsets = [basket for size in range(4) for basket in itertools.combinations(SMALL, size)]
    pairs = [(law(mine, ()), law(mine, yours)) for mine in subsets for yours in subsets]
    return max(max(divergence(p, q, epsilon), divergence(q, p, epsilon)) for p, q in pairs)


@pytest.mark.slow
def test_declared_labels_keep_the_price_though_items_come_and_go_with_the_rows(load):
    mechanism = privmax.PermuteAndFlip(epsilon=1)

    @functools.cache
    def law(mine, yours):
        items = pa.array([*mine, *yours], pa.string())
        users = pa.array([1] * len(mine) + [2] * len(yours), pa.int64())
        return privmax.law(
            load({"item": items, "user": users}), mechanism=mechanism, universe=SMALL, **COUNTING
        )

    def mutant(mine, yours):
        """Nothing is released for whoever has no row: what a size alone would amount to, if it were
        accepted.
        """
        listed = {
            label: chance for label, chance in law(mine, yours).items() if label in {*mine, *yours}
        }
        return {**listed, None: 1 - sum(listed.values())}

    assert worst(law, 1) < 1e-9
    assert worst(mutant, 1) > 0.3


def test_a_null_user_without_an_item_does_not_matter(load):
    assert scores(load({"item": ["a", None], "user": [1, None]}), **COUNTING) == {"a": 1}


@pytest.mark.slow
def test_no_rows_is_no_answer_in_an_open_universe_and_anybody_of_declared_labels(load, engine):
    nothing = load({"item": pa.array([], pa.string()), "user": pa.array([], pa.int64())})
    assert privmax.select(nothing, **COUNTING, **PRICE).items == ()
    closed = {**COUNTING, "epsilon": 1, "universe": LABELS}
    assert {
        privmax.select(nothing, **closed, coins=SeededCoins(seed)).item for seed in range(16)
    } == set(LABELS)
    with pytest.raises(DataError, match="There are no scores"):
        privmax.select(nothing, item="item", score="user", **PRICE, universe=10)
    assert tables(engine) == []


def test_a_table_of_no_engine_is_an_engine_error():
    with pytest.raises(EngineError, match="the counting"):
        privmax.select(ibis.table({"item": "string"}, name="nowhere"), item="item", **PRICE)


ODD_NAMES = [
    "select",
    "Group By",
    'quo"te',
    "it's",
    "UPPER",
    "naïve",
    "a.b",
    "privmax_score",
    "privmax_item_0",
    "",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD_NAMES[:-1])
@pytest.mark.parametrize("kind", ["table", "frame", "relation", "csv", "parquet"])
def test_a_column_may_have_any_name(engine, load, tmp_path, name, kind):
    rows = pa.table({name: ["a"] * 60 + ["b"], "USER": [*range(60), 1]})
    match kind:
        case "table":
            data = load(rows.to_pydict())
        case "frame":
            data = rows
        case "relation":
            data = duckdb.connect().from_arrow(rows)
        case "csv":
            data = tmp_path / "rows.csv"
            rows.to_pandas().to_csv(data, index=False)
        case "parquet":
            data = tmp_path / "rows.parquet"
            pq.write_table(rows, data)
    assert privmax.select(data, item=name, user="USER", **PRICE).item == "a"


# What may be passed as a table

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, categories": lambda rows: pd.DataFrame(rows).astype({"item": "category"}),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "polars, categories": lambda rows: pl.DataFrame(rows).cast({"item": pl.Categorical}),
    "polars, lazy categories": lambda rows: pl.LazyFrame(rows).cast({"item": pl.Categorical}),
    "Arrow table": pa.table,
    "Arrow batch": pa.RecordBatch.from_pydict,
    "Arrow dictionary": lambda rows: pa.table(
        {**rows, "item": pa.array(rows["item"]).dictionary_encode()}
    ),
    "DuckDB relation": lambda rows: duckdb.from_arrow(pa.table(rows)),
}


@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(
    "options",
    [{"user": "user"}, {}, {"user": "user", "weight": "weight", "bound": 2}],
    ids=["users", "rows", "weights"],
)
def test_a_frame_is_counted_as_a_table_is(load, frame, options):
    for seed in range(3):
        coins = {"mechanism": privmax.PermuteAndFlip(epsilon="0.1"), "universe": LABELS}
        expected = by_name(
            privmax.select, load(ROWS), item="item", **options, **coins, coins=SeededCoins(seed)
        )
        assert (
            by_name(
                privmax.select,
                frame(ROWS),
                item="item",
                **options,
                **coins,
                coins=SeededCoins(seed),
            )
            == expected
        )


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_without_the_column_is_told_what_there_is(frame):
    with pytest.raises(ParameterError, match=r"user='who'.*The columns are item, user, weight"):
        privmax.select(frame(ROWS), item="item", user="who", **PRICE)


def counted(frame, **options):
    """{item: score}, types told apart."""
    law = privmax.NestedMargin(epsilon=1, delta="0.1")
    return {
        (type(item), item)
        for item in by_name(privmax.law, frame, mechanism=law, item="item", **options)
        if item is not None
    }


@pytest.mark.slow
def test_the_type_of_an_item_in_pandas_does_not_follow_from_other_rows():
    """One person's 2.5, null, text or longer decimal would give the whole column another type."""
    for others in ([], [2.5], [None], ["text"], [Decimal("2.50")], [b"bytes"]):
        items = [1, 1, 7, *others]
        frame = pd.DataFrame({"item": items, "user": range(len(items))})
        expected = {
            (int, 1),
            (int, 7),
            *((type(label), label) for label in map(label_by_value, others) if label),
        }
        assert counted(frame, user="user") == expected
        assert counted(pd.DataFrame({"item": pd.Series(items, dtype=object)})) == expected


def test_equal_labels_in_pandas_are_one_item_with_one_spelling():
    zone = datetime.timezone(datetime.timedelta(hours=1))
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    items = pd.Series(
        [Decimal("1.10"), Decimal("1.1"), -0.0, 0, noon, noon.astimezone(zone)], dtype=object
    )
    assert counted(pd.DataFrame({"item": items})) == {
        (Decimal, Decimal("1.1")),
        (int, 0),
        (datetime.datetime, noon),
    }
    universe = [0, "1.1", Decimal("1.1000"), noon, 9]
    declared = privmax.select(
        pd.DataFrame({"item": items}), item="item", epsilon=50, universe=universe
    )
    assert repr(declared.item) in {"0", "Decimal('1.1')", repr(noon)}


@pytest.mark.slow
@pytest.mark.parametrize("universe", [[1, 0], [True, False]])
@pytest.mark.parametrize("others", [[], [None]], ids=["a column of truths", "a column of objects"])
def test_truths_in_pandas_are_one_and_zero(universe, others):
    frame = pd.DataFrame({"item": [True] * 99 + [False, *others]})
    assert repr(privmax.select(frame, item="item", epsilon=4, universe=universe).item) == "1"


def test_values_that_cannot_be_told_apart_are_not_quoted():
    mixed = pd.DataFrame({"item": [["zorblax"], 7310427, b"quuxley"] * 9, "user": range(27)})
    with pytest.raises(DataError, match="without exact equality") as caught:
        privmax.select(mixed, **COUNTING, **PRICE)
    assert_says_nothing_private(caught.value)


def test_columns_that_are_not_asked_for_do_not_matter():
    frame = pd.DataFrame({**ROWS, "junk": [object()] * 80})
    assert privmax.select(frame, **COUNTING, **PRICE).item == "zorblax"


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame(np.zeros((3, 2), int), columns=["item", "item"])
    with pytest.raises(DataError, match="same name"):
        privmax.select(frame, item="item", **PRICE)


@pytest.mark.parametrize("option", [{"user": "user"}, {"weight": "w"}, {"bound": 1}])
def test_what_is_no_table_takes_no_columns(option):
    with pytest.raises(ParameterError, match="not one"):
        by_name(privmax.select, {"a": 1}, **option, **PRICE)


def test_a_relation_that_fails_is_not_quoted():
    relation = duckdb.connect().sql(
        "SELECT 'zorblax' AS item, error('zorblax') AS user FROM range(3)"
    )
    with pytest.raises(EngineError) as caught:
        privmax.select(relation, **COUNTING, **PRICE)
    assert_says_nothing_private(caught.value)


# Files


@pytest.fixture
def csv_text():
    return "item,user,weight\n" + "".join(
        f"{item},{user},2\n" for item, user in zip(ROWS["item"], ROWS["user"], strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rows.csv", "ROWS.CSV", "rows.csv.gz", "rows.tsv", "rows.tsv.gz", "odd [1]* ?.csv"]
)
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["text", "Path"])
def test_a_file_of_separated_values_is_counted(tmp_path, csv_text, name, kind):
    text = csv_text.replace(",", "\t") if ".tsv" in name else csv_text
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert privmax.select(kind(path), **COUNTING, **PRICE).item == "zorblax"
    options = {**COUNTING, "weight": "weight", "bound": 2}
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    law = privmax.law(
        {"zorblax": 120, "quuxley": 40},
        mechanism=mechanism,
        universe=LABELS,
        scores=privmax.Scores(sensitivity=2),
    )
    assert by_name(
        privmax.law, kind(path), mechanism=mechanism, universe=LABELS, **options
    ) == pytest.approx(law)


@pytest.mark.parametrize(
    "text",
    ["item;user\na,b;1\nc;2\n", '\ufeffitem,user\n"a,b",1\nc,2\n', "item,user\r\n'a,1\r\nc,2\r\n"],
)
def test_the_line_of_names_says_what_separates_the_values(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8", newline="")
    law = privmax.law(path, mechanism=privmax.NestedMargin(epsilon=1, delta="0.1"), **COUNTING)
    assert len(law) == 3
    assert "c" in law
    assert {"a,b", "'a"} & set(law)


def test_values_in_a_file_are_text_whatever_they_look_like(tmp_path):
    """Otherwise the type of a released item would depend on what other people's rows look like."""
    path = tmp_path / "rows.csv"
    path.write_text("item,user\n" + "".join(f"007,{n}\n" for n in range(50)))
    assert privmax.select(path, **COUNTING, **PRICE).item == "007"


@pytest.mark.slow
@pytest.mark.parametrize("number", ["7310427.5", "zorblax", "", "1e3", "99999999999999999999"])
def test_weights_in_a_file_must_be_whole(tmp_path, number):
    path = tmp_path / "rows.csv"
    path.write_text(f"item,user,weight\na,1,{number}\nb,2,1\n")
    with pytest.raises(DataError, match="not a whole number") as caught:
        privmax.select(
            path,
            item="item",
            user="user",
            **PRICE,
            columns=privmax.Columns(weight="weight", bound=5),
        )
    assert_says_nothing_private(caught.value)


def write_odd_names(folder):
    """DuckDB calls the second of a, A and A_1 `A_1`, and the column without a name `C3`."""
    nested = [{"a": [1], "b": {"c": 2}}] * 3
    columns = [["p", "p", "q"], nested, [1, 1, 1], [5, 6, 7], [1, 2, 3], [5, 6, 6]]
    names = ["a", "n", "A", "A_1", "", "id"]
    pq.write_table(pa.table(list(map(pa.array, columns)), names=names), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize("user", ["A_1", "A", "A_1_1", "C4"])
def test_a_column_that_duckdb_renames_is_never_taken_for_another(user, tmp_path):
    with pytest.raises(DataError, match="renames a column"):
        privmax.select(write_odd_names(tmp_path), item="a", user=user, epsilon=1, delta="1e-6")


def test_other_columns_of_such_a_file_are_read(tmp_path):
    cost = {"epsilon": 1, "delta": "1e-6"}
    law = privmax.law(write_odd_names(tmp_path), mechanism="gap-test", item="a", user="id", **cost)
    assert law.keys() == {"p", "q", None}


def test_parquet_is_counted_in_one_file_or_many(tmp_path):
    rows = pa.table(ROWS)
    folder = tmp_path / "folder [x]"
    (folder / "deeper").mkdir(parents=True)
    pq.write_table(rows.slice(0, 40), folder / "one.parquet")
    pq.write_table(rows.slice(40), folder / "deeper" / "two.parquet")
    pq.write_table(rows, tmp_path / "all.parquet")
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    expected = privmax.law({"zorblax": 60, "quuxley": 20}, mechanism=mechanism, universe=LABELS)
    for path in (folder, tmp_path / "all.parquet"):
        assert privmax.law(path, mechanism=mechanism, universe=LABELS, **COUNTING) == pytest.approx(
            expected
        )


@pytest.mark.parametrize(
    "name", ["wrong.parquet", "wrong.pq", "wrong.csv.gz", "binary.csv", "empty.csv", "ragged.csv"]
)
def test_a_file_that_is_not_what_its_name_says_is_not_quoted(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(
        {
            "binary.csv": b"\xff\xfe\x00zorblax",
            "empty.csv": b"",
            "ragged.csv": b"item,user\nzorblax,1,2,3,4\n",
        }.get(name, b"zorblax,quuxley\n")
    )
    with pytest.raises((DataError, EngineError)) as caught:
        privmax.select(path, **COUNTING, **PRICE)
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize("name", ["zorblax.csv", "zorblax", "", "zorblax\0", "zorblax" * 1000])
def test_a_path_that_leads_nowhere_is_not_quoted(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((DataError, EngineError)) as caught:
        privmax.select(name, **COUNTING, **PRICE)
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize(
    ("name", "says"), [("rows.txt", r"neither \.csv"), ("rows.xlsx", "save the sheet as CSV")]
)
def test_a_file_of_another_kind_is_refused(tmp_path, name, says):
    path = tmp_path / name
    path.write_bytes(b"zorblax")
    with pytest.raises(DataError, match=says):
        privmax.select(path, **COUNTING, **PRICE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"item": None, "user": "7310427"}, "item is required: the file needs it"),
        ({"item": "query"}, "item='query' is not allowed: the file has no such column"),
        ({"item": ["item", "query"]}, "item='query' is not allowed: the file has no such column"),
        ({"item": "item", "user": "who"}, "user='who' is not allowed: the file has no such column"),
        ({"item": "item", "score": "n"}, "score='n' is not allowed: the file has no such column"),
        (
            {"item": "item", "user": "zorblax", "weight": "n", "bound": 1},
            "weight='n' is not allowed: the file has no",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_columns_of_a_text_file_are_not_listed(tmp_path, options, says, kind):
    """In a file without a line of names, what would be listed is somebody's row; Parquet declares
    its columns.
    """
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        path.write_text("item,zorblax,7310427\na,b,5\n")
    else:
        pq.write_table(pa.table({"item": ["a"], "zorblax": ["b"], "7310427": [5]}), path)
    with pytest.raises(ParameterError, match=says) as caught:
        by_name(privmax.select, path, **options, **PRICE)
    assert ("zorblax" in str(caught.value)) == (kind == "parquet")
    assert caught.value.__context__ is None
