"""A strict ledger is charged before the data is read, and whatever is wrong with that is no answer,
told alike.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from by_name import by_name

from privmax import Database, Privacy, select
from privmax.errors import BudgetError, DataError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.learning import PrivateERM, Stumps, select_model
from privmax.ledger import Ledger
from privmax.markers import top_markers

PRICE = {"epsilon": 1, "delta": "1e-6"}
NOTHING = {"items": [], "free": {}}


@pytest.fixture
def strict(tmp_path):
    with Ledger.create(
        tmp_path / "budget.db", "strict", budget=Privacy(100, "1e-3"), strict=True
    ) as made:
        yield made
        assert made.verify() == []


@pytest.fixture
def lenient(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "lenient", budget=Privacy(100, "1e-3")) as made:
        yield made


def rows(*people):
    return pd.DataFrame({"who": [who for who, _ in people], "what": [what for _, what in people]})


ORACLES = {
    "membership through universe=": lambda ledger: select(
        {"alice": 1, "bob": 1}, epsilon=1, universe=["bob"], ledger=ledger
    ),
    "membership in a table": lambda ledger: select(
        rows((1, "alice"), (2, "bob")),
        item="what",
        user="who",
        epsilon=1,
        universe=["bob"],
        ledger=ledger,
    ),
    "one decimal": lambda ledger: select({"a": 1.5, "b": 1}, **PRICE, ledger=ledger),
    "a score that is none": lambda ledger: select({"a": "many"}, **PRICE, ledger=ledger),
    "fewer than declared": lambda ledger: select(
        {"a": 1, "b": 2}, epsilon=1, universe=3, ledger=ledger
    ),
    "a label twice": lambda ledger: select(
        pd.Series([1, 2], index=["a", "a"]), **PRICE, ledger=ledger
    ),
    "a column that is not there": lambda ledger: select(
        rows((1, "a")), item="nothing", user="who", **PRICE, ledger=ledger
    ),
    "a null user": lambda ledger: select(
        rows((1, "a"), (None, "a")), item="what", user="who", **PRICE, ledger=ledger
    ),
    "a file that is not there": lambda ledger: select(
        "alice.parquet", item="what", **PRICE, ledger=ledger
    ),
    "no data at all": lambda ledger: select(object(), **PRICE, ledger=ledger),
    "a label no ledger writes": lambda ledger: select({object(): 3}, **PRICE, ledger=ledger),
    "longest=": lambda ledger: top_itemsets(
        [["a", "b", "c"], ["a", "b"]], **PRICE, ledger=ledger, layout=Layout(longest=2)
    ),
    "membership through items=": lambda ledger: top_itemsets(
        [["a", "z"]], epsilon=1, items=["a", "b"], ledger=ledger
    ),
    "baskets that are none": lambda ledger: top_itemsets([1, 2], **PRICE, ledger=ledger),
    "a label of y": lambda ledger: (
        PrivateERM(Stumps(low=0, high=1), epsilon=1, labels=[0, 1], ledger=ledger)
        .fit(np.zeros((3, 1)), np.array([0, 1, 2]))
        .release_
    ),
    "a missing number in X": lambda ledger: (
        PrivateERM(Stumps(low=0, high=1), epsilon=1, labels=[0, 1], ledger=ledger)
        .fit(np.array([[0.5], [np.nan]]), np.array([0, 1]))
        .release_
    ),
    "one row too many": lambda ledger: (
        PrivateERM(Stumps(low=0, high=1), epsilon=1, labels=[0, 1], ledger=ledger)
        .fit(np.zeros((3, 1)), np.array([0, 1]))
        .release_
    ),
    "predictions of two lengths": lambda ledger: select_model(
        [[0, 1], [0]], None, [0, 1], epsilon=1, ledger=ledger
    ),
    "a model that fails at a row": lambda ledger: select_model(
        [lambda some: [1 / row for row in some]], [1, 0], [1, 1], epsilon=1, ledger=ledger
    ),
}
"""Errors that tell something of single rows, to whoever may ask at will."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No answer")
@pytest.mark.parametrize("oracle", ORACLES)
def test_what_is_wrong_with_the_data_is_charged_and_told_as_no_answer(strict, oracle):
    before = strict.spent
    release = ORACLES[oracle](strict)
    assert (release.items, release.item, release.diagnostics, release.recorded) == (
        (),
        None,
        {},
        None,
    )
    assert strict.spent.epsilon == before.epsilon + 1
    *_, charged, answered = strict.history()
    assert (charged.kind, answered.kind) == ("reserved", "released")
    assert {**answered.body["answer"], "supports": []} == {
        **NOTHING,
        "supports": [],
    }  # and no mark of any failure


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_without_it_the_same_is_an_error_and_costs_nothing(lenient, oracle):
    with pytest.raises((DataError, ParameterError, ValueError)):
        ORACLES[oracle](lenient)
    assert lenient.spent == Privacy(0)


def test_it_cannot_be_told_from_an_honest_no_answer(strict):
    """Neither in what is returned nor in what anybody can read in the ledger."""
    honest = select({"a": 1}, epsilon="0.001", delta="1e-9", ledger=strict.request("honest"))
    wrong = select({"a": "many"}, epsilon="0.001", delta="1e-9", ledger=strict.request("wrong"))
    assert honest.items == wrong.items == ()
    told = [{**vars(one), "request": None} for one in (honest, wrong)]
    assert told[0] == told[1]
    _, one, first, other, second = strict.history()
    assert (one.body, first.body) == (other.body, second.body)


def test_a_repeated_request_returns_it_and_reads_nothing(strict):
    asked = {**PRICE, "ledger": strict.request("r1")}
    by_name(select, {"a": "many"}, **asked)
    again = by_name(select, {"a": 10**9}, **asked)
    assert again.items == ()
    assert again.recorded is not None
    assert strict.spent == Privacy(1, "1e-6")


def test_it_is_charged_before_the_data_is_looked_at(strict):
    spent = []

    class Watched(dict):
        def __iter__(self):
            spent.append(strict.spent.epsilon)
            return super().__iter__()

        def keys(self):
            spent.append(strict.spent.epsilon)
            return super().keys()

        def items(self):
            spent.append(strict.spent.epsilon)
            return super().items()

    assert select(Watched({"a": 10**9, "b": 1}), **PRICE, ledger=strict).item == "a"
    assert set(spent) == {1}


@pytest.mark.filterwarnings("ignore:No answer")
def test_what_is_right_is_answered(strict):
    assert select({"a": 10**9, "b": 1}, **PRICE, ledger=strict).item == "a"
    assert top_itemsets(
        [["a", "b"]] * 900, **PRICE, layout=Layout(longest=2), ledger=strict.request(unit="user")
    ).item == ("a", "b")
    X, y = np.array([[1.0], [9.0]] * 50), np.array([0, 1] * 50)
    asked = {"epsilon": 9, "labels": [0, 1], "unit": "user", "ledger": strict}
    model = PrivateERM(Stumps(low=0, high=10, cells=10), **asked).fit(X, y)
    assert (model.predict(X) == y).all()
    frame = pd.DataFrame({"x": X[:, 0]})
    model = PrivateERM(Stumps(low=0, high=10, cells=10), **asked).fit(frame, y)
    assert list(model.feature_names_in_) == ["x"]
    assert (model.predict(frame) == y).all()


PUBLIC = {
    "no epsilon": lambda ledger: select({"a": 1}, ledger=ledger),
    "no delta": lambda ledger: select({"a": 1}, epsilon=1, ledger=ledger),
    "a universe that is none": lambda ledger: select(
        {"a": 1}, epsilon=1, universe="many", ledger=ledger
    ),
    "a pure mechanism in the open": lambda ledger: select(
        {"a": 1}, mechanism=__import__("privmax").PermuteAndFlip(epsilon=1), ledger=ledger
    ),
    "labels from y": lambda ledger: PrivateERM(
        Stumps(low=0, high=1), epsilon=1, labels="from y", ledger=ledger
    ).fit(np.zeros((2, 1)), np.array([0, 1])),
    "X without a shape": lambda ledger: PrivateERM(
        Stumps(low=0, high=1), epsilon=1, labels=[0, 1], ledger=ledger
    ).fit([[0], [1]], [0, 1]),
    "a size": lambda ledger: top_itemsets([["a", "b"]], **PRICE, size=0, ledger=ledger),
}
"""What is wrong whatever the data."""


@pytest.mark.parametrize("case", PUBLIC)
def test_what_is_wrong_whatever_the_data_is_told_and_costs_nothing(strict, case):
    with pytest.raises(ParameterError):
        PUBLIC[case](strict)
    assert strict.spent == Privacy(0)


NAMES = {
    "an archive": ("shop.zip", DataError, "ZIP archive"),
    "a pattern of archives": ("logs/*.tar.gz", DataError, "archive"),
    "a document": ("rows.json", DataError, "one JSON document"),
    "another ending": ("rows.txt", (DataError, ParameterError), "neither|the file extension"),
    "a file elsewhere": ("s3://bucket/rows.csv", DataError, "URL of a file"),
    "a pattern of databases": ("shops/*.db", DataError, "one database is read at a time"),
    "a database": ("shop.db", ParameterError, "may have several tables"),
}
"""Files that are refused by their names, which are public."""

DOORS = {
    "select": lambda data, ledger: select(data, item="what", user="who", **PRICE, ledger=ledger),
    "scores": lambda data, ledger: select(data, item="what", score="n", **PRICE, ledger=ledger),
    "itemsets": lambda data, ledger: top_itemsets(
        data, basket="who", item="what", **PRICE, ledger=ledger.request(unit="user")
    ),
    "itemsets of a form": lambda data, ledger: top_itemsets(
        data,
        basket="who",
        item="what",
        layout=Layout(form="long"),
        **PRICE,
        ledger=ledger.request(unit="user"),
    ),
    "markers": lambda data, ledger: top_markers(
        data,
        cases=5,
        controls=5,
        epsilon=1,
        status="who",
        case="ill",
        markers=["rs1", "rs2"],
        ledger=ledger,
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NAMES)
def test_what_a_name_refuses_is_told_and_costs_nothing(strict, door, name):
    given, error, message = NAMES[name]
    if (door, name) == ("itemsets of a form", "another ending"):
        return  # a file whose form is given may have any other name
    with pytest.raises(error, match=message):
        DOORS[door](given, strict)
    assert strict.spent == Privacy(0)


@pytest.mark.parametrize("ask", [select, top_itemsets])
def test_a_table_of_what_is_no_database_costs_nothing(strict, ask):
    with pytest.raises(ParameterError, match="not a database"):
        ask(Database("rows.csv", "rows"), **PRICE, ledger=strict)
    assert strict.spent == Privacy(0)


@pytest.mark.filterwarnings("ignore:No answer")
def test_a_folder_is_one_whatever_its_name(strict, tmp_path):
    (tmp_path / "rows.zip").mkdir()
    rows(*((who, "tea") for who in range(90))).to_parquet(tmp_path / "rows.zip" / "a.parquet")
    release = select(tmp_path / "rows.zip", item="what", user="who", **PRICE, ledger=strict)
    assert release.item == "tea"


def test_what_does_not_fit_is_refused_as_ever(strict):
    with pytest.raises(BudgetError):
        select({"a": "many"}, epsilon=101, delta="1e-6", ledger=strict)
    assert strict.spent == Privacy(0)


def test_a_stop_leaves_the_request_open(strict):
    class Stopping(dict):
        def __iter__(self):
            raise KeyboardInterrupt

        items = keys = __iter__

    asked = {**PRICE, "ledger": strict.request("r1")}
    with pytest.raises(KeyboardInterrupt) as caught:
        by_name(select, Stopping(a=1), **asked)
    assert "request 'r1'" in caught.value.__notes__[0]
    assert by_name(select, {"a": 10**9}, **asked).item == "a"
    assert strict.spent == Privacy(1, "1e-6")
