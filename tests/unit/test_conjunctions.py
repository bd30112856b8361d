"""Conjunctions and disjunctions: what they are called, what they refuse, and answers that are
certain.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from math import comb
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import privmax.learning
from privmax import kernels
from privmax.errors import DataError, ParameterError, WorkError
from privmax.learning.classes.conjunctions import (
    Conjunction,
    Conjunctions,
    Disjunction,
    Disjunctions,
    Literal,
)
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.covers import compiled_walk, numpy_walk, search
from privmax.learning.classes.covers.branches import Branch, Goal
from privmax.learning.classes.covers.order import ConjunctionOrder
from privmax.learning.classes.covers.search import Covers

both_walks = pytest.mark.parametrize(
    "compiled",
    [
        pytest.param(False, id="numpy"),
        pytest.param(True, id="numba", marks=pytest.mark.slow),  # compiling takes fifteen seconds
    ],
)


def planted(rows, features, chosen, noise=0.0, seed=0):
    """Boolean rows, labelled by a conjunction of features but for some noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (rows, features))
    return X, (X[:, chosen].all(axis=1) ^ (rng.random(rows) < noise)).astype(np.intp)


def scored(hypotheses, X, y, compiled):
    with patch.object(search, "_choose_walk", lambda *_: compiled_walk if compiled else numpy_walk):
        return hypotheses.score(X, y, Shape(X.shape[1], 2))


def test_rules_read_as_rules():
    upper, lower = Literal(3, None, False), Literal(7, None, True)
    assert repr(Conjunction((upper, lower))) == "<1 if x3 and not x7 else 0>"
    assert repr(Disjunction((upper, lower))) == "<1 if x3 or not x7 else 0>"
    assert (
        repr(Conjunction((Literal(3, 2.5, False), Literal(4, 1.0, True))))
        == "<1 if x3 >= 2.5 and x4 < 1.0 else 0>"
    )
    assert (repr(Conjunction(())), repr(Disjunction(()))) == ("<1>", "<0>")


def test_rules_by_number():
    shape = Shape(2, 2)
    conjunctions, disjunctions = Conjunctions(2), Disjunctions(2)
    assert [repr(conjunctions.hypothesis(number, shape)) for number in range(9)] == [
        "<1>",
        "<1 if x0 else 0>",
        "<1 if x0 and x1 else 0>",
        "<1 if x0 and not x1 else 0>",
        "<1 if not x0 else 0>",
        "<1 if not x0 and x1 else 0>",
        "<1 if not x0 and not x1 else 0>",
        "<1 if x1 else 0>",
        "<1 if not x1 else 0>",
    ]
    assert repr(disjunctions.hypothesis(0, shape)) == "<0>"
    assert repr(disjunctions.hypothesis(2, shape)) == "<1 if not x0 or not x1 else 0>"
    for number in (-1, 9):
        with pytest.raises(IndexError):
            conjunctions.hypothesis(number, shape)


def test_what_rules_say():
    X = np.array([[0.0, 5.0], [3.0, 5.0], [3.0, 1.0], [np.nan, 5.0]])
    tests = (Literal(0, 2.5, False), Literal(1, 2.0, False))
    assert Conjunction(tests).predict(X).tolist() == [0, 1, 0, 1]  # NaN is below no threshold
    assert Disjunction(tests).predict(X).tolist() == [1, 1, 1, 1]
    assert Conjunction(()).predict(X).tolist() == [1] * 4
    assert Disjunction(()).predict(X).tolist() == [0] * 4
    assert Conjunction(tests).predict(X).dtype == np.intp


def test_a_rule_survives_pickling():
    for kind in (Conjunctions(2, low=0, high=8, cells=4), Disjunctions(2)):
        rule = kind.hypothesis(11, Shape(3, 2))
        assert pickle.loads(pickle.dumps(rule)) == rule
        assert pickle.loads(pickle.dumps(kind)) == kind


@pytest.mark.parametrize(
    ("hypotheses", "features", "size"),
    [
        (Conjunctions(0), 5, 1),
        (Conjunctions(1), 5, 11),
        (Conjunctions(9), 4, 81),
        (Conjunctions(2), 0, 1),
        (Conjunctions(6), 60, 3386938545),
        (Disjunctions(2, low=0, high=1, cells=3), 2, 25),
        (Conjunctions(2, thresholds=[[1.0], [], [1.0, 2.0]]), 3, 1 + 6 + 8),
    ],
)
def test_size(hypotheses, features, size):
    assert hypotheses.size(Shape(features, 2)) == size


def test_classes_that_are_too_large_are_refused():
    assert Conjunctions(39).size(Shape(39, 2)) == 3**39 < 2**62
    with pytest.raises(ParameterError, match="2\\^62"):
        Conjunctions(40).size(Shape(40, 2))
    with pytest.raises(ParameterError, match="2\\^62"):
        Conjunctions(50).size(Shape(1000, 2))


@pytest.mark.parametrize("literals", [-1, 2.0, True])
def test_literals_must_be_whole(literals):
    with pytest.raises(ParameterError, match="literals"):
        Conjunctions(literals).size(Shape(3, 2))


def test_two_labels():
    with pytest.raises(ParameterError, match="Disjunctions"):
        Disjunctions(2).size(Shape(3, 3))


def test_cells_need_bounds():
    with pytest.raises(ParameterError, match="low"):
        Conjunctions(2, cells=8).size(Shape(3, 2))


@pytest.mark.parametrize("value", [7777, 0.5, np.nan])
def test_values_that_are_not_boolean_are_refused_and_not_quoted(value):
    X = np.array([[0, 1], [1, value]])
    with pytest.raises(DataError, match="low, high and cells, or thresholds") as caught:
        Conjunctions(2).score(X, np.array([0, 1]), Shape(2, 2))
    assert "7777" not in str(caught.value)


@both_walks
def test_no_examples(compiled):
    X, y = np.empty((0, 3), np.int64), np.empty(0, np.intp)
    answers = scored(Conjunctions(2), X, y, compiled)
    assert answers.maximum() == 0
    assert answers.histogram(0) == []
    assert [answers.at_or_below(0, index) for index in (0, 18, 19)] == [0, 18, None]


@both_walks
@pytest.mark.parametrize("label", [0, 1])
def test_one_label_only(label, compiled):
    """Where all are positive only the empty conjunction is certain; where all are negative, who
    covers nobody.
    """
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    answers = scored(Conjunctions(2), X, np.full(20, label), compiled)
    if label:
        assert answers.histogram(0) == [(20, 1), (10, 4), (5, 4)]
        assert (answers.at(20, 0), answers.at(20, 1)) == (0, None)
    else:
        assert answers.histogram(0) == [(15, 4), (10, 4)]
        assert [answers.at_or_below(0, index) for index in (0, 1)] == [0, None]


@both_walks
def test_nobody_is_covered_by_many(compiled):
    """Every feature is 1 in all rows, so a rule with "not" in it covers nobody: most are, at every
    depth.
    """
    rows, features, literals = 700, 7, 7
    X = np.ones((rows, features), np.int64)
    y = (np.arange(rows) < 300).astype(np.intp)
    answers = scored(Conjunctions(literals), X, y, compiled)
    assert answers.histogram(0) == [(400, 3**7 - 2**7), (300, 2**7)]
    assert answers.histogram(300) == [(400, 3**7 - 2**7)]
    hypotheses, shape = Conjunctions(literals), Shape(features, 2)
    assert hypotheses.hypothesis(answers.at(400, 0), shape).predict(X).sum() == 0
    assert hypotheses.hypothesis(answers.at(300, 127), shape).predict(X).sum() == rows


@both_walks
@pytest.mark.parametrize("literals", [3, 4, 5, 6])
def test_bounds_are_met(literals, compiled):
    """Every negative fails one test only, so each test removes its own ten and a bound on that is
    met exactly.
    """
    positives, features = 36, 6
    negatives = np.repeat(1 - np.eye(features, dtype=np.int64), 10, axis=0)
    X = np.concatenate([np.ones((positives, features), np.int64), negatives])
    y = (np.arange(len(X)) < positives).astype(np.intp)
    levels = [(positives + 10 * tests, comb(features, tests)) for tests in range(literals, 2, -1)]
    for depth in range(len(levels)):
        answers = scored(Conjunctions(literals), X, y, compiled)
        assert answers.histogram(levels[depth][0] - 1) == levels[: depth + 1]


@both_walks
def test_a_planted_rule_is_found_among_many(compiled):
    """More columns than a word has bits, more rows than are turned over at once, and tests too many
    to list.
    """
    chosen = [3, 40, 66, 69]
    X, y = planted(1200, 70, chosen)
    hypotheses, shape = Conjunctions(7), Shape(70, 2)
    assert hypotheses.size(shape) > 10**11
    answers = scored(hypotheses, X, y, compiled)
    assert answers.maximum() == 1200
    ((_, best), *others) = answers.histogram(1195)
    assert (best, others) == (1, [])
    assert (
        repr(hypotheses.hypothesis(answers.at(1200, 0), shape))
        == "<1 if x3 and x40 and x66 and x69 else 0>"
    )
    last = hypotheses.size(shape) - 2  # all but the planted one
    assert answers.at_or_below(1199, last) == last + 1
    assert answers.at_or_below(1199, last + 1) is None


@pytest.mark.slow
def test_both_walks_agree_at_every_depth():
    X, y = planted(1500, 66, [0, 30, 65], noise=0.02, seed=4)
    hypotheses = Conjunctions(6)
    plain, fast = (scored(hypotheses, X, y, compiled) for compiled in (False, True))
    above = fast.maximum() - 90  # down to rules of which each has one test too many
    levels = fast.histogram(above)
    assert plain.histogram(above) == levels
    assert sum(count for _, count in levels) > 20
    for score, count in levels[-2:]:
        assert plain.at(score, count - 1) == fast.at(score, count - 1)


@pytest.mark.slow
def test_threads_change_nothing():
    X, y = planted(600, 12, [1, 5, 9], noise=0.3, seed=1)
    answers = []
    for threads in (1, 3):
        with patch.object(search, "_threads", lambda size, threads=threads: threads):
            found = scored(Conjunctions(5), X, y, compiled=True)
            levels = found.histogram(found.maximum() - 60)
            score, count = levels[-1]
            answers.append((levels, found.at(score, count - 1), found.at_or_below(score, 10**4)))
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_an_interruption_ends_the_search():
    stops = []

    def interrupted(*arguments):
        stops.append(arguments[-1].stop)
        raise KeyboardInterrupt

    X, y = planted(100, 12, [1, 5])
    found = scored(Conjunctions(5), X, y, compiled=True)
    with (
        patch.object(search, "_threads", lambda size: 2),
        patch.object(compiled_walk, "walk", interrupted),
        pytest.raises(KeyboardInterrupt),
    ):
        found.maximum()
    assert len(stops) < 24
    assert all(stop[0] for stop in stops)
    assert found.maximum() == 100  # and it can be asked again


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 5])
def test_a_stopped_walk_returns(first):
    X, y = planted(3000, 30, [1, 5], noise=0.5)
    found = scored(Conjunctions(6), X, y, compiled=True)
    order, root = found._order, found._root
    stop = np.ones(1, np.bool_)
    for walks in (numpy_walk, compiled_walk):
        tally = np.zeros(5000, np.int64)
        branch = Branch(root.positives, root.negatives, 2 * first, 5)
        left = np.array([1 << 40], np.int64)
        walks.walk(branch, Goal(-3000, 5000, order.after, order.sizes, tally, stop, left))
        assert tally.sum() == 1  # the first node alone


@both_walks
def test_a_search_that_would_not_end_is_given_up(compiled, monkeypatch):
    """Labels are noise: many rules are about as good. The steps that are allowed are few here."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 12, (400, 1)).astype(np.uint64)
    order = ConjunctionOrder.of(4, [1] * 12)

    def search_all():
        return Covers(order, bits[:200], bits[200:], compiled=compiled)

    found = search_all()
    levels = found.histogram(0)
    assert sum(number for _, number in levels) == order.size
    assert not found.may_be_too_many
    monkeypatch.setattr(search, "MOST_STEPS", 1000)
    assert found.may_be_too_many
    for ask in (Covers.maximum, lambda covers: covers.histogram(0)):
        with pytest.raises(WorkError, match=r"given up after 1e\+03 steps. Use fewer literals"):
            ask(search_all())
    found._known = None
    score, number = levels[-1]
    assert found.at(score, number - 1) is not None  # what was drawn is looked for to the end
    assert found.at(score, number) is None


@pytest.mark.slow
def test_steps_of_one_branch_do_not_hide_those_of_another(monkeypatch):
    """Counts that are not complete must never pass for all of them, however threads take turns."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, (2000, 1)).astype(np.uint64)
    order = ConjunctionOrder.of(5, [1] * 16)
    whole = Covers(order, bits[:1000], bits[1000:], compiled=True).histogram(900)
    monkeypatch.setattr(search, "_threads", lambda size: 4)
    for most in (10**3, 10**4, 10**5, 10**6, 10**7, 10**9):
        monkeypatch.setattr(search, "MOST_STEPS", most)
        seen = whole
        with suppress(WorkError):
            seen = Covers(order, bits[:1000], bits[1000:], compiled=True).histogram(900)
        assert seen == whole


@pytest.mark.slow
def test_without_numba_the_search_is_the_same(monkeypatch):
    X, y = planted(200, 8, [1, 5], noise=0.1)
    levels = Conjunctions(4).score(X, y, Shape(8, 2)).histogram(100)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "privmax.learning.classes.covers.compiled_walk")
    monkeypatch.delattr(privmax.learning.classes.covers, "compiled_walk")
    monkeypatch.delitem(sys.modules, "privmax.kernels")
    found = Conjunctions(4).score(X, y, Shape(8, 2))
    assert found.histogram(100) == levels
    assert "privmax.learning.classes.covers.compiled_walk" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="numba"):
        Covers(
            ConjunctionOrder.of(1, [1]),
            np.zeros((1, 1), np.uint64),
            np.zeros((1, 1), np.uint64),
            compiled=True,
        )


def test_nothing_private_is_shown():
    X, y = planted(50, 3, [0])
    assert repr(Conjunctions(2).score(X, y, Shape(3, 2))) == "Covers(<private>)"
    assert (
        repr(Conjunctions(2))
        == "Conjunctions(literals=2, low=None, high=None, cells=2, thresholds=None)"
    )


def test_numba_is_not_loaded_for_a_short_search(monkeypatch):
    X, y = planted(200, 6, [0, 3])
    monkeypatch.delitem(sys.modules, "numba")
    scores = Conjunctions(2).score(X, y, Shape(6, 2))
    assert scores._walks is numpy_walk
    monkeypatch.setattr(search, "WORTH_LOADING_NUMBA", 0)
    assert Conjunctions(2).score(X, y, Shape(6, 2))._walks is compiled_walk


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_compiling_is_told_where_somebody_waits_for_it(seen, kept, monkeypatch, capsys):
    kernel = SimpleNamespace(signatures=[])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: seen, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(kernels, "_is_kept", lambda one: kept)
    kernels.tell_of_compiling([kernel], "the search through conjunctions")
    told = "Compiling the search through conjunctions, once on this machine"
    assert (told in capsys.readouterr().err) == (seen and not kept)
    kernels.tell_of_compiling([SimpleNamespace(signatures=["one"])], "what is compiled already")
    assert capsys.readouterr().err == ""


def test_whether_a_kernel_is_kept_is_known_from_the_cache(tmp_path):
    implementation = SimpleNamespace(
        locator=SimpleNamespace(get_cache_path=lambda: str(tmp_path)), filename_base="walk-1.py311"
    )
    kernel = SimpleNamespace(_cache=SimpleNamespace(_impl=implementation))
    assert not kernels._is_kept(kernel)
    (tmp_path / "walk-1.py311.nbi").touch()
    assert kernels._is_kept(kernel)
    assert kernels._is_kept(compiled_walk._walk) in (True, False)
    assert kernels._is_kept(object())  # nothing is known, so nothing is said
