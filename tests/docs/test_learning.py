"""How good private learning is (docs/learning.md): tables and picture are what is stored, which
adds up.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import (
    learning,
    learning_data,
    learning_pictures,
    learning_report,
    tables,
)  # run from the root
from benchmarks.learning_data import EPSILONS, Group, Trial, digest, groups, printed_bounds, spread
from privmax.learning import PrivateERM
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.stumps import Stumps
from privmax.mechanisms.contract import Outcome
from privmax.noise.samplers import uniform_below
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/learning.md"
STORED = learning.stored()
REAL = learning_report.REAL


# The page


def test_the_tables_show_what_is_stored():
    text = FILE.read_text(encoding="utf-8")
    sections = {}
    for name, present in tables.PAGES[FILE].items():
        sections |= {section.name: section for section in present(tables._stored(name))}
    assert tables.filled(text, sections) == text, "python -m benchmarks.tables"


@pytest.mark.parametrize("part", ["accuracy", "peers", "time", "conjunctions"])
def test_tables_of_other_numbers_differ(part):
    other = copy.deepcopy(STORED)
    key = "accuracy" if part in ("accuracy", "peers") else "growth"
    for row in other[part]:
        row[key] = 0.123
    before, after = (
        [section.section() for section in tables.learning_sections(one)] for one in (STORED, other)
    )
    assert before != after


@functools.cache
def redrawn():
    return imread(io.BytesIO(learning_pictures.png(STORED)))


def same_picture(left, right):
    """Equal but for the shades along the edges of a few lines, which another processor may round
    otherwise.
    """
    return left.shape == right.shape and float((np.abs(left - right) > 0.1).mean()) < 1e-4


def test_the_picture_shows_what_is_stored():
    assert same_picture(redrawn(), imread(learning_pictures.PICTURE)), (
        "benchmarks.learning --redraw"
    )
    assert "pictures/learning-accuracy.png" in FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", ["accuracy", "peers"])
def test_a_picture_of_other_numbers_differs(part):
    other = copy.deepcopy(STORED)
    for row in other[part]:
        row["accuracy"] -= 0.02
    assert not same_picture(redrawn(), imread(io.BytesIO(learning_pictures.png(other))))


# What is stored


def test_nothing_is_missing_from_what_is_stored():
    assert [row["group"] for row in STORED["groups"]] == list(groups())
    cells = {
        (row["group"], row["class"], row["contender"], row["epsilon"]) for row in STORED["accuracy"]
    }
    every = set()
    for name, group in groups().items():
        offered, ways = list(learning.classes(group)), [one.name for one in learning.CONTENDERS]
        every |= set(itertools.product([name], offered, ways, EPSILONS))
        every |= {(name, one, "best", "-") for one in offered} | {(name, "-", "majority", "-")}
    assert cells == every
    theirs = {
        (row["group"], row["contender"].removeprefix("diffprivlib "), row["epsilon"])
        for row in STORED["peers"]
    }
    assert theirs == set(itertools.product(groups(), learning_report.PEERS, EPSILONS))
    assert [row["search"] for row in STORED["conjunctions"]] == list(learning.SEARCHES)
    assert [run["part"] for run in STORED["runs"]] == list(learning.PARTS)
    assert not any(place in str(STORED) for place in (str(ROOT), "/tmp", "/home"))


def test_all_contenders_had_the_same_examples():
    ours = {row["group"]: row["digest"] for row in STORED["groups"]}
    assert {(row["group"], row["digest"]) for row in STORED["peers"]} == set(ours.items())
    assert {
        name: digest(groups()[name]) for name in ("breast-cancer", "wine", "conjunction-1000")
    }.items() <= ours.items()


def test_every_contender_was_tried_equally_often():
    for row in STORED["groups"]:
        often = row["repeats"] * row["tasks"] * row["draws"]
        rows = [*STORED["accuracy"], *STORED["peers"]]
        assert {
            one["fits"] for one in rows if one["group"] == row["group"] and one["epsilon"] != "-"
        } == {often}


def test_the_classes_have_the_sizes_that_are_stored():
    for row in STORED["groups"]:
        shape = Shape(row["features"], row["labels"])
        assert {
            name: one.size(shape) for name, one in learning.classes(groups()[row["group"]]).items()
        } == row["sizes"]
        assert learning.plans(row["sizes"], row["learned"]) == row["plans"]
    searched = {row["search"]: row["size"] for row in STORED["conjunctions"]}
    assert min(searched.values()) > 10**9
    assert searched["planted rule, 100 features"] > 10**12


def test_nobody_is_better_than_the_best_on_the_examples_of_one_planted_rule():
    """With 10^5 examples and epsilon 5 the rule is found: what is tried on is the same, so
    accuracies agree.
    """
    found = learning_report.figures(STORED)
    kinds = {"conjunction": "Conjunctions", "near-ties": "Stumps"}
    for kind, name in kinds.items():
        where = f"{kind}-100000", name
        assert found[*where, "auto", "5"][0] == pytest.approx(
            found[*where, "best", "-"][0], abs=0.005
        )


# How it is measured


def few(draws=1):
    """Two features, the second of which tells; one trial."""
    X = np.array([[i % 7, i % 5] for i in range(70)], np.float64)
    y = (X[:, 1] >= 2).astype(np.intp)
    return Group(
        "few-10",
        "few",
        2,
        np.zeros(2),
        np.full(2, 8.0),
        1,
        draws,
        lambda times: iter([Trial(0, 0, (X, y), (X, y))]),
    )


@pytest.fixture
def stumps(monkeypatch):
    grid = Stumps(low=0, high=8, cells=8)
    monkeypatch.setattr(learning, "classes", lambda group: {"Stumps": grid, "Trees": grid})
    return grid


@pytest.mark.filterwarnings("ignore:Nothing could be released")
def test_accuracy_is_that_of_the_estimator(stumps):
    group = few()
    [trial] = group.trials()
    rows = {
        (row["contender"], row["epsilon"]): row["accuracy"]
        for row in learning.accuracy(group, None)["accuracy"]
        if row["class"] == "Stumps"
    }
    seen = set()
    for contender, epsilon in itertools.product(learning.CONTENDERS, EPSILONS):
        coins = SeededCoins(f"few-10/Stumps/{contender.name}/{epsilon}/0/0")
        mechanism = contender.mechanism(epsilon, stumps.size(Shape(2, 2)))
        fitted = PrivateERM(stumps, mechanism=mechanism, labels=[0, 1], coins=coins).fit(
            *trial.learn
        )
        right = fitted.score(*trial.test)
        assert rows[contender.name, epsilon] == pytest.approx(right, abs=1e-4)
        seen.add(right)
    assert len(seen) > 2, "all alike: nothing would be told apart"


class Silent:
    """Never releases anything."""

    def draw(self, profile, coins):
        return Outcome(None)


def test_without_an_answer_the_rule_is_drawn_uniformly(stumps, monkeypatch):
    monkeypatch.setattr(
        learning, "CONTENDERS", (learning.Contender("silent", lambda epsilon, size: Silent()),)
    )
    group = few(draws=3)
    [trial] = group.trials()
    shape = Shape(2, 2)
    rows = [
        row for row in learning.accuracy(group, None)["accuracy"] if row["contender"] == "silent"
    ]
    assert {row["unanswered"] for row in rows} == {1}
    for row in rows:
        coins = SeededCoins(f"few-10/{row['class']}/silent/{row['epsilon']}/0/0")
        drawn = [
            stumps.hypothesis(uniform_below(stumps.size(shape), coins), shape) for _ in range(3)
        ]
        right = np.mean([np.mean(rule.predict(trial.test[0]) == trial.test[1]) for rule in drawn])
        assert row["accuracy"] == pytest.approx(right, abs=1e-4)


def test_the_best_and_the_majority_are_those_of_the_examples(stumps):
    found = {
        (row["class"], row["contender"]): row["accuracy"]
        for row in learning.accuracy(few(), None)["accuracy"]
    }
    assert found["Stumps", "best"] == 1
    assert found["-", "majority"] == pytest.approx(0.6)


def test_a_class_is_planned_by_public_numbers_alone():
    sizes = {"Stumps": 100, "Trees": 10**9}
    assert set(learning.plans(sizes, 10**6).values()) == {"Trees"}
    assert set(learning.plans(sizes, 30).values()) == {"Stumps"}
    assert learning.plans(sizes, 1000) == {
        "0.1": "Stumps",
        "0.5": "Trees",
        "1": "Trees",
        "2": "Trees",
        "5": "Trees",
    }


@pytest.mark.parametrize(("name", "features"), [("breast-cancer", 30), ("wine", 13)])
def test_bounds_are_those_printed_by_scikit_learn(name, features):
    """They are rounded: the data leave them by a hundredth of the width at most."""
    group = groups()[name]
    assert group.features == features
    X = next(group.trials(1)).learn[0]
    width = group.high - group.low
    assert (width > 0).all()
    assert ((group.low - X) / width).max() < 0.01
    assert ((X - group.high) / width).max() < 0.01
    assert (X.min(axis=0) - group.low < width / 2).all()


def test_printed_bounds_are_read_row_by_row():
    table = (
        ":Summary Statistics:\n\n=== ===\nMin Max\nAlcohol:  11.0  14.8  13.0  0.8\nsize "
        "(mean):  -1  2\n:Missing: None"
    )
    low, high = printed_bounds(table)
    assert (low.tolist(), high.tolist()) == ([11, -1], [14.8, 2])


def test_repeats_and_not_releases_make_the_spread():
    assert spread([(0, 0.5), (0, 0.7), (1, 0.8), (1, 0.8)]) == (0.7, 0.1)
    assert spread([(0, 0.5), (0, 0.7)]) == (0.6, 0.0)


def test_rules_are_planted_as_described():
    random = np.random.default_rng(1)
    X, y = learning_data.conjunction(random, 20_000, 9)
    rule = (X[:, 1] == 1) & (X[:, 4] == 1) & (X[:, 7] == 0)
    assert np.mean(rule == y) == pytest.approx(0.9, abs=0.01)
    assert rule.mean() == pytest.approx(0.5, abs=0.03)
    X, y = learning_data.half_space(random, 20_000, 5)
    assert np.mean((X @ [2, -1, 1, -1, 1] >= 0) == y) == pytest.approx(0.95, abs=0.01)
    X, y = learning_data.near_ties(random, 20_000, 8)
    shares = (y[:, None] == X).mean(axis=0)
    assert shares[3] == pytest.approx(0.62, abs=0.01)
    assert np.delete(shares, 3) == pytest.approx(np.full(7, 0.6), abs=0.015)


def test_no_example_is_both_learned_from_and_tried_on():
    trials = list(groups()["wine-rest"].trials(2))
    assert [(trial.repeat, trial.task) for trial in trials] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    for trial in trials:
        rows = np.concatenate([trial.learn[0], trial.test[0]])
        assert len(rows) == 178
        assert not {tuple(row) for row in trial.learn[0]} & {tuple(row) for row in trial.test[0]}
    assert not np.array_equal(trials[0].learn[0], trials[3].learn[0])


# How it is told


def test_a_lead_counts_beyond_the_noise_only():
    cells = [
        ("wine", "1", "A", 0.1, 0.01),
        ("wine", "2", "A", -0.1, 0.01),
        ("wine", "5", "A", -0.1, 0.06),
    ]
    cells += [("digits", "1", "A", 0.004, 0.0)]
    found = learning_report.verdicts(cells)
    assert found == {
        "ahead": ["wine at 1 (A)"],
        "behind": ["wine at 2 (A)"],
        "equal": ["wine at 5 (A)", "digits at 1 (A)"],
    }


def test_where_a_rival_is_better_the_page_says_so():
    other = copy.deepcopy(STORED)
    for row in other["peers"]:
        if (row["group"], row["epsilon"], row["contender"]) == (
            "wine",
            "5",
            "diffprivlib GaussianNB",
        ):
            row["accuracy"] = 1.0
    for row in other["accuracy"]:
        if row["contender"] == "exponential" and row["group"] == "wine" and row["epsilon"] == "0.5":
            row["accuracy"] = 1.0
    text = next(
        one.text for one in learning_report.accuracy_sections(other) if one.name == "learning-ahead"
    )
    assert "wine at 5 (GaussianNB)" in text
    assert "wine, Stumps at 0.5" in text


def test_a_stopped_search_does_not_meet_the_aim():
    rows = [
        {"search": "a", "features": 60, "ending": "done", "wall": 30.0},
        {"search": "b", "features": 60, "ending": "done", "wall": 61.0},
        {"search": "c", "features": 60, "ending": "time limit"},
        {"search": "d", "features": 60, "ending": "failed"},
        {"search": "e", "features": 100, "ending": "done", "wall": 1.0},
    ]
    found = {row["subject"]: row["met"] for row in learning.judgements(rows)}
    assert found == {"a": True, "b": False, "c": False, "d": None}


def test_a_part_replaces_its_own_rows_and_keeps_all_others():
    facts = {"source": "x"}
    new = {"groups": [{"group": "wine"}], "accuracy": [{"group": "wine", "accuracy": 0.25}]}
    found = learning.merged(copy.deepcopy(STORED), "accuracy", facts, new)
    assert [row["group"] for row in found["groups"]] == list(groups())
    assert [row for row in found["accuracy"] if row["group"] == "wine"] == new["accuracy"]
    assert [row for row in found["accuracy"] if row["group"] != "wine"] == [
        row for row in STORED["accuracy"] if row["group"] != "wine"
    ]
    assert (found["peers"], found["time"]) == (STORED["peers"], STORED["time"])
    assert found["runs"][0] == {"part": "accuracy", "source": "x"}


CARD = {
    "run": {
        "gpu": "CARD",
        "command": "python -m x",
        "libraries": {"torch": "2", "cupy": "not installed"},
    },
    "problem": {"directions": 10**6, "examples": 10**6, "features": 64, "offsets": 1},
    "rates": [{"kind": "int8", "rate": 1e15, "seconds": 0.001}, {"kind": "fp32", "error": "none"}],
    "steps": [{"step": "copy", "seconds": 2.0}],
    "paths": [
        {"path": "kernel 1", "seconds": 9.0, "rate": 1e13, "of": {"int8": 0.01}, "right": True},
        {"path": "kernel 2", "seconds": 0.5, "rate": 2.56e14, "of": {"int8": 0.256}, "right": True},
        {"path": "torch", "seconds": 4.0, "rate": 3.2e13, "of": {"int8": 0.032}, "right": False},
        {"path": "cupy", "error": "none"},
    ],
}


def test_the_card_is_shown_once_it_was_measured():
    [missing] = tables.gpu_sections({})
    assert "not been measured" in missing.section()
    [table] = tables.gpu_sections({**CARD, "best": CARD["paths"][1]})
    assert table.name == missing.name
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["fused kernel"] == ["500 ms", "256", "25.6 %", "right"]
    assert rows["array API, torch"] == ["4 s", "32", "3.2 %", "WRONG"]
    assert rows["array API, cupy"] == ["failed", "", "", ""]
    assert rows["the card's own products, int8"][:2] == ["1 ms", "1000"]
    assert rows["copy"] == ["2 s", "", "", ""]
    assert len(rows) == 6
    assert "10^6 directions × 10^6 examples × 64 features on one CARD (torch 2)" in table.title
