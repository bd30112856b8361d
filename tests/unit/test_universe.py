"""`Universe`: one constructor, the same spellings at every door, and what is none of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import privmax
from privmax import Exponential, NestedMargin, Universe
from privmax.cli import main
from privmax.errors import ParameterError
from privmax.itemsets import top_itemsets
from privmax.report import html
from privmax.universe import OPEN_UNIVERSE, read_whole

CLOSED = [3, np.int64(3), "3", "3e0", "3^1", ["a", "b", "c"], ("a", "b", "c"), {"a", "b", "c"}]
CLOSED += [np.array(["a", "b", "c"]), pd.Index(["a", "b", "c"]), Universe(3), Universe.of("3")]


@pytest.mark.parametrize("value", CLOSED, ids=lambda value: type(value).__name__)
def test_a_closed_universe_has_a_size_however_it_is_spelled(value):
    universe = Universe.of(value)
    assert (universe.size, universe.is_open) == (3, False)
    assert type(universe.size) is int


@pytest.mark.parametrize("value", ["open", Universe(), OPEN_UNIVERSE])
def test_an_open_universe_has_none(value):
    assert Universe.of(value) == Universe(None, None)
    assert Universe.of(value).is_open
    assert repr(Universe.of(value)) == "Universe(open)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("closed", "'closed'"),
        ("", "''"),
        ("-3", "'-3'"),
        (0, "0"),
        ("0", "0"),
        (-4, "-4"),
        (True, "True"),
        (np.bool_(True), "'bool"),
        (3.0, "3.0"),
        (None, "None"),
        ([], "0"),
        ((label for label in "ab"), "'generator'"),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
@pytest.mark.parametrize("name", ["universe", "items"])
def test_what_is_no_universe_is_refused_by_name(value, shown, name):
    with pytest.raises(ParameterError) as caught:
        Universe.of(value, name)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"{name}={shown}")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["a", "b", "a"], "more than once"),
        ([["a"]], "hashable"),
        (["a", None], "missing"),
        (["a", float("nan")], "missing"),
    ],
)
def test_labels_are_checked_when_they_are_wanted(labels, says):
    universe = Universe.of(labels)
    with pytest.raises(ParameterError, match=says):
        universe.plain_labels()


def test_labels_come_in_their_canonical_form_and_order():
    assert Universe.of(np.array([3, 1, 2])).plain_labels() == [3, 1, 2]
    assert [type(one) for one in Universe.of(np.array([3])).plain_labels()] == [int]


def test_labels_are_not_shown():
    assert repr(Universe.of(["zorblax", "quuxley"])) == "Universe(2 labels)"
    assert repr(Universe.of(10)) == "Universe(10 positions)"


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("1e6", 10**6), ("1E+2", 100), ("10^30", 10**30), ("2**10", 1024)],
)
def test_large_numbers_may_be_written_short(text, number):
    assert read_whole("universe", text) == number


@pytest.mark.parametrize("text", ["open", "1.5", "1e-3", "-1", "", "٣"])
def test_other_text_is_no_number(text):
    assert read_whole("universe", text) is None


@pytest.mark.parametrize("text", ["1e4400", "9^99999", "1" * 5000])
def test_numbers_that_nobody_could_write_out_are_refused(text):
    with pytest.raises(ParameterError, match="fewer than"):
        read_whole("universe", text)


EXACT = Exponential(epsilon=1)
PRICE = {"epsilon": 1, "delta": "1e-6"}
SCORES = {"a": 900, "b": 3, "c": 1}
DOORS = {
    "select": lambda universe: privmax.select(SCORES, epsilon=20, universe=universe).item,
    "law": lambda universe: privmax.law(SCORES, mechanism=EXACT, universe=universe)["a"] > 0.99,
    "auto": lambda universe: type(privmax.auto(**PRICE, universe=universe).mechanism),
    "plan": lambda universe: (
        privmax.plan(epsilon=1, universe=universe, mechanisms=["exponential"]).universe
    ),
    "compare": lambda universe: (
        privmax.compare(SCORES, epsilon=1, universe=universe, mechanisms=["exponential"]).universe
    ),
    "audit": lambda universe: privmax.audit(EXACT, universe=universe, highest=1).pairs,
    "report": lambda universe: (
        "3 candidates, known in advance"
        in html(privmax.select(SCORES, epsilon=1, universe=3), universe=universe)
    ),
    "top_itemsets": lambda items: top_itemsets([["a"]] * 900, size=1, epsilon=20, items=items).item,
}


@pytest.mark.slow
@pytest.mark.usefixtures("plans_made_once")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_the_same_spellings(door):
    labels = [["a", "b", "c"], {"a", "b", "c"}, Universe.of(["c", "b", "a"])]
    sizes = [] if door == "top_itemsets" else [3, np.int64(3), "3", "3e0", Universe(3)]
    answers = [DOORS[door](spelled) for spelled in labels + sizes]
    assert len(set(answers)) == 1
    assert answers[0]
    for wrong in ("many", None, 0, 2.5, True):
        if (door, wrong) != ("report", None):
            with pytest.raises(ParameterError, match=r"^(universe|items)="):
                DOORS[door](wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("plans_made_once")
@pytest.mark.parametrize("door", ["select", "law", "auto", "compare", "audit", "report"])
def test_every_door_knows_an_open_universe(door):
    nested = NestedMargin(**PRICE)
    doors = {
        "select": lambda universe: privmax.select(SCORES, **PRICE, universe=universe).item,
        "law": lambda universe: privmax.law(SCORES, mechanism=nested, universe=universe)["a"],
        "auto": lambda universe: privmax.auto(**PRICE, universe=universe).why,
        "compare": lambda universe: (
            privmax.compare(SCORES, **PRICE, universe=universe, mechanisms=["gap-test"]).universe
        ),
        "audit": lambda universe: privmax.audit(nested, universe=universe, highest=1).pairs,
        "report": lambda universe: (
            "open: the candidates were not known"
            in html(privmax.select(SCORES, **PRICE), universe=universe)
        ),
    }
    assert doors[door]("open") == doors[door](Universe())


@pytest.mark.parametrize("spelled", ["3", "3e0", "FILE"])
@pytest.mark.parametrize(
    "command",
    [
        ("select", "SCORES", "--epsilon", "20", "--json"),
        ("plan", "--epsilon", "1", "--mechanism", "exponential", "--json"),
        ("compare", "--best", "9", "--epsilon", "1", "--mechanism", "exponential", "--json"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_takes_the_same_spellings(tmp_path, command, spelled):
    scores, labels = tmp_path / "scores.csv", tmp_path / "labels.csv"
    scores.write_text("item,score\na,900\nb,3\nc,1\n", encoding="utf-8")
    labels.write_text("a\nb\nc\n", encoding="utf-8")
    places = {"SCORES": str(scores), "FILE": str(labels)}
    told = [places.get(word, word) for word in (*command, "--universe", spelled)]
    numbers = [places.get(word, word) for word in (*command, "--universe", "3")]
    run, other = CliRunner().invoke(main, told), CliRunner().invoke(main, numbers)
    assert run.exit_code == 0, run.stderr
    assert run.stdout == other.stdout
