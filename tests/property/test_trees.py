"""Stumps and trees against every hypothesis of a small grid, row by row."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privmax.learning.classes import stumps as stumps_module
from privmax.learning.classes import trees as trees_module
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.stumps import Constant, Stumps
from privmax.learning.classes.trees import Tree, Trees

patient = settings(deadline=None)  # a busy machine is no failure

VALUES = st.sampled_from(
    [-2.0, -1.0, 0.0, 1.0, 2.0, 0.5, 1e9, float("inf"), float("nan"), float(np.nextafter(1.0, 0))]
)


@st.composite
def problems(draw):
    """Thresholds that are values too, features without any, labels that do not occur, rows that
    repeat.
    """
    features, labels = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    cut = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), max_size=2, unique=True).map(sorted)
    cuts = draw(st.lists(cut, min_size=features, max_size=features).filter(any))
    rows = st.tuples(st.tuples(*[VALUES] * features), st.integers(0, labels - 1))
    examples = draw(st.lists(rows, max_size=12))
    if examples and draw(st.booleans()):
        examples = examples * draw(st.integers(2, 5))
    X = np.array([row for row, _ in examples], np.float64).reshape(len(examples), features)
    return cuts, X, np.array([label for _, label in examples], np.intp), Shape(features, labels)


def says(one, row):
    """What a hypothesis says of a row, read off its fields."""
    if isinstance(one, Constant):
        return one.label
    side = one.below if row[one.feature] < one.threshold else one.above
    return says(side, row) if isinstance(one, Tree) else side


def right(hypotheses, X, y, shape):
    """[hypothesis, row]: whether it gets the row right."""
    listed = [hypotheses.hypothesis(number, shape) for number in range(hypotheses.size(shape))]
    return np.array(
        [[says(one, row) == label for row, label in zip(X, y, strict=True)] for one in listed],
        np.bool_,
    )


def tree_scores(cuts, X, y, shape):
    """The score of every tree, by its number, from the rows on each side of its root."""
    each = right(Stumps(thresholds=cuts), X, y, shape)
    scores = []
    for feature, cut in enumerate(cuts):
        for threshold in cut:
            left = X[:, feature] < threshold
            scores.append(
                (each[:, left].sum(axis=1)[:, None] + each[:, ~left].sum(axis=1)[None]).ravel()
            )
    return np.concatenate(scores)


@patient
@given(problems(), st.integers(1, 40), st.sampled_from([0, 48]))
def test_stumps_get_right_what_they_predict(problem, entries, few):
    cuts, X, y, shape = problem
    stumps = Stumps(thresholds=cuts)
    truth = right(stumps, X, y, shape)
    with patch.object(stumps_module, "_ENTRIES", entries), patch.object(stumps_module, "_FEW", few):
        assert stumps.score(X, y, shape).scores() == truth.sum(axis=1).tolist()
    for number in range(stumps.size(shape)):
        assert ((stumps.hypothesis(number, shape).predict(X) == y) == truth[number]).all()


@patient
@given(problems(), st.data())
def test_a_tree_has_the_score_of_its_number(problem, data):
    cuts, X, y, shape = problem
    trees = Trees(thresholds=cuts)
    truth = tree_scores(cuts, X, y, shape)
    assert len(truth) == trees.size(shape)
    number = data.draw(st.integers(0, len(truth) - 1))
    tree = trees.hypothesis(number, shape)
    said = [says(tree, row) for row in X]
    assert tree.predict(X).tolist() == said
    assert sum(label == code for label, code in zip(said, y.tolist(), strict=True)) == truth[number]


@patient
@given(problems(), st.integers(1, 20), st.sampled_from([0, 2, 1 << 10]))
def test_histograms_at_every_depth(problem, rows, dense):
    cuts, X, y, shape = problem
    truth = tree_scores(cuts, X, y, shape)
    with (
        patch.object(trees_module, "_ENTRIES", 1),
        patch.object(trees_module, "_ROWS", rows),
        patch.object(trees_module, "_DENSE", dense),
    ):
        scored = Trees(thresholds=cuts).score(X, y, shape)
        assert scored.maximum() == truth.max()
        for above in range(len(X) + 1):
            wanted = sorted(Counter(truth[truth > above].tolist()).items(), reverse=True)
            assert scored.histogram(above) == wanted


@pytest.mark.slow
@patient
@given(problems(), st.data())
def test_the_nth_at_a_score(problem, data):
    """In the order of numbers, so every index gives another tree and none is left out."""
    cuts, X, y, shape = problem
    truth = tree_scores(cuts, X, y, shape)
    scored = Trees(thresholds=cuts).score(X, y, shape)
    score = data.draw(st.integers(0, len(X) + 1))
    asked = [(scored.at_or_below, np.flatnonzero(truth <= score))]
    if score:
        asked.append((scored.at, np.flatnonzero(truth == score)))
    for find, numbers in asked:
        assert find(score, len(numbers)) is None
        if len(numbers):
            index = data.draw(st.integers(0, len(numbers) - 1))
            assert find(score, index) == numbers[index]
            assert find(score, 0) == numbers[0]
            assert find(score, len(numbers) - 1) == numbers[-1]


@pytest.mark.slow
@patient
@given(problems(), st.data())
def test_one_example_moves_a_score_by_at_most_one(problem, data):
    cuts, X, y, shape = problem
    assume(len(X))
    row = data.draw(st.integers(0, len(X) - 1))
    rest, labels = np.delete(X, row, axis=0), np.delete(y, row)
    stumps = Stumps(thresholds=cuts)
    changes = np.subtract(
        stumps.score(X, y, shape).scores(), stumps.score(rest, labels, shape).scores()
    )
    assert set(changes.tolist()) <= {0, 1}
    trees = Trees(thresholds=cuts)
    with_it, without = trees.score(X, y, shape), trees.score(rest, labels, shape)
    assert with_it.maximum() - without.maximum() in (0, 1)
    number = data.draw(st.integers(0, trees.size(shape) - 1))
    assert score_of(with_it, number) - score_of(without, number) in (0, 1)


def score_of(scored, number):
    """The least score at or below which the tree is found; trees come in the order of numbers."""
    for score in range(scored.maximum() + 1):
        first, last = 0, number
        while first < last:
            middle = (first + last) // 2
            found = scored.at_or_below(score, middle)
            if found is not None and found < number:
                first = middle + 1
            else:
                last = middle
        if scored.at_or_below(score, first) == number:
            return score
    raise AssertionError("every tree has a score")
