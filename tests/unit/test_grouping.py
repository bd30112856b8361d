"""Options that travel together: short forms, values, and what is said of options that moved."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import privmax
from privmax import Columns, Database, ParameterError, Privacy, Request, Scores, TextFile
from privmax.grouping import combine
from privmax.itemsets import Layout, top_itemsets
from privmax.ledger import Ledger
from privmax.markers import GenotypeColumns, top_markers
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
ROWS = pd.DataFrame({"query": ["tea"] * 900 + ["ale"] * 3, "person": range(903), "n": 1})


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(9, "1e-3")) as opened:
        yield opened


@pytest.mark.parametrize(
    "options",
    [
        {"item": "query", "user": "person"},
        {"columns": Columns("query", "person")},
        {"columns": Columns(user="person"), "item": "query"},
        {"columns": Columns(), "item": ["query"], "user": "person"},
    ],
)
def test_columns_are_the_same_alone_and_as_a_value(options):
    assert privmax.select(ROWS, **options, **PRICE, coins=SeededCoins(1)).item in (
        "tea",
        ("tea",),
    )


@pytest.mark.parametrize("name", ["item", "user", "score", "where"])
def test_a_column_is_given_once(name):
    """Both places are named, also where they say the same."""
    message = rf"^{name}='a' is not allowed: columns=Columns\({name}='b'\) already gives it"
    with pytest.raises(ParameterError, match=message):
        privmax.select(ROWS, **{name: "a"}, columns=Columns(**{name: "b"}), **PRICE)


def test_a_column_is_given_once_at_every_function():
    with pytest.raises(ParameterError, match="layout=Layout"):
        top_itemsets([["a"]], user="a", layout=Layout(user="b"), **PRICE)
    with pytest.raises(ParameterError, match="columns=GenotypeColumns"):
        top_markers([[1]], status="a", columns=GenotypeColumns(status="b"), cases=1, controls=1)
    with pytest.raises(ParameterError, match="columns=Columns"):
        privmax.law(ROWS, mechanism="exponential", item="a", columns=Columns("b"), epsilon=1)
    with pytest.raises(ParameterError, match="columns=Columns"):
        privmax.compare(ROWS, item="a", columns=Columns("b"), epsilon=1)


@pytest.mark.parametrize("given", ["query", {"item": "query"}, Scores()])
def test_a_value_must_be_of_its_class(given):
    with pytest.raises(ParameterError, match=r"columns=.* is not allowed: it must be a Columns"):
        privmax.select(ROWS, columns=given, **PRICE)


def test_a_default_is_not_given():
    columns = combine("columns", GenotypeColumns, GenotypeColumns(case="ill"), case=1)
    assert columns.case == "ill"


@pytest.mark.parametrize(
    ("function", "name", "instead"),
    [
        (privmax.select, "weight", "columns=privmax.Columns(weight=…)"),
        (privmax.select, "sensitivity", "scores=privmax.Scores(sensitivity=…)"),
        (privmax.select, "delimiter", "privmax.TextFile(file, delimiter=…) as the data"),
        (privmax.select, "table", "privmax.Database(place, table="),
        (privmax.select, "unit", "ledger.request(unit=…)"),
        (privmax.select, "check", "ledger=privmax.Request(check=…)"),
        (privmax.law, "growth", "Scores(growth=…)"),
        (privmax.compare, "bound", "Columns(bound=…)"),
        (privmax.select_model, "neighbors", "Scores(neighbors=…)"),
        (privmax.maximize, "unit", "Request(unit=…)"),
        (top_itemsets, "separator", "privmax.TextFile(file, delimiter=…)"),
        (top_itemsets, "longest", "layout=privmax.itemsets.Layout(longest=…)"),
        (top_markers, "impute", "columns=privmax.markers.GenotypeColumns(impute=…)"),
        (top_markers, "table_name", "privmax.Database(place, table="),
    ],
)
def test_an_option_that_moved_is_refused_with_its_new_place(function, name, instead):
    with pytest.raises(TypeError) as error:
        function(None, **{name: "x"})
    assert str(error.value).startswith(f"{function.__name__}() no longer takes {name}=. Write ")
    assert instead in str(error.value)


def test_other_unknown_options_are_refused_by_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        privmax.select({}, epsilom=1)


class TestRequest:
    def test_a_unit_is_said_with_or_without_a_ledger(self, ledger):
        alone = privmax.select(ROWS, item="query", **PRICE, ledger=Request(unit="visit"))
        charged = privmax.select(ROWS, item="query", **PRICE, ledger=ledger.request(unit="visit"))
        assert (alone.unit, charged.unit, ledger.unit) == ("visit", "visit", "visit")

    def test_a_check_is_said_with_or_without_a_ledger(self, ledger):
        alone = privmax.select(ROWS, item="query", **PRICE, ledger=Request(check=True))
        asked = privmax.select(ROWS, item="query", **PRICE, ledger=ledger.request(check=True))
        assert alone.checked
        assert asked.checked
        assert ledger.spent == Privacy(0)

    def test_every_function_can_be_checked_alone(self, ledger):
        check = ledger.request(check=True)
        rows = np.array([[1.0], [2.0]])
        assert privmax.select_model(
            [lambda X: X[:, 0] > 1], rows, [0, 1], epsilon=1, ledger=check
        ).checked
        assert privmax.maximize(len_of, [1, 2], [1, 2], epsilon=1, ledger=check).checked
        assert top_itemsets([["a", "b"]], **PRICE, ledger=check).checked
        assert top_markers(np.array([[1, 2]]), cases=5, controls=5, epsilon=1, ledger=check).checked
        assert ledger.spent == Privacy(0)

    @pytest.mark.parametrize("name", ["id", "account", "dataset"])
    def test_without_a_ledger_nothing_is_named(self, name):
        with pytest.raises(ParameterError, match="there is no ledger to write it in"):
            Request(**{name: "x"})

    def test_what_a_learner_would_ignore_is_refused(self, ledger):
        """Their unit is an option of their own, and a fit cannot be checked alone."""
        from privmax.learning import PrivateERM, Stumps

        learner = PrivateERM(Stumps(low=0, high=9), labels=[0, 1], epsilon=1)
        for request, message in (
            (ledger.request(unit="user"), "unit='user' is not allowed: the unit of this release"),
            (ledger.request(check=True), "check=True is not allowed: this cannot be checked alone"),
            (Request(unit="row"), "ledger is required"),
        ):
            with pytest.raises(ParameterError, match=message):
                learner.set_params(ledger=request).fit([[1.0], [8.0]], [0, 1])
        assert ledger.spent == Privacy(0)

    @pytest.mark.parametrize("given", [{"check": 1}, {"unit": ""}])
    def test_what_it_says_is_checked(self, given):
        with pytest.raises(ParameterError):
            Request(**given)


def len_of(item, data):
    return item * len(data) / 2


class TestData:
    def test_a_file_of_text_is_declared_for_every_function_that_reads_one(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("query;n\ncafé;9\ntee;1\n", encoding="cp1252")
        file = TextFile(path, delimiter=";", encoding="cp1252")
        ready = {"item": "query", "score": "n"}
        chances = privmax.law(file, **ready, mechanism="exponential", epsilon=9, universe=2)
        assert chances["café"] > 0.99
        assert privmax.compare(file, **ready, **PRICE, mechanisms="nested-margin").k == 1

    def test_an_open_file_can_be_declared(self):
        file = TextFile(io.BytesIO(b"query;n\ntea;900\n"), delimiter=";")
        assert privmax.select(file, item="query", score="n", **PRICE).item == "tea"

    @pytest.mark.parametrize(
        "options", [{"delimiter": "ab"}, {"encoding": "no"}, {"header_is_public": 1}]
    )
    def test_what_is_declared_is_checked_at_once(self, options):
        with pytest.raises(ParameterError, match=f"^{next(iter(options))}="):
            TextFile("rows.csv", **options)

    def test_a_database_hides_its_place(self):
        shown = repr(Database("postgres://me:secret@host/db", "visits"))
        assert shown == "Database(table='visits')"

    def test_a_table_must_be_named(self):
        with pytest.raises(ParameterError, match="table=3 is not allowed"):
            Database("a.duckdb", 3)
