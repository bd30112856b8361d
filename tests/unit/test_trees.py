"""Trees: which there are, what they say, and what they get right. Against all trees of tiny
grids.
"""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter
from itertools import product

import numpy as np
import pytest

from privmax.errors import ParameterError
from privmax.learning.classes import trees as trees_module
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.stumps import Constant, Stump, Stumps
from privmax.learning.classes.trees import Tree, Trees

CUTS = [[0.0, 1.0], [], [0.5]]
TREES = Trees(thresholds=CUTS)

X = np.array(
    [
        [0.0, 5, -2],
        [0.5, 5, 0.5],
        [1.0, 5, 9],
        [-3, 5, 2.0],
        [0.0, 5, -2],
        [2, 5, 0.5],
        [-9, 5, 0.49],
    ]
)
Y = np.array([0, 1, 2, 2, 0, 1, 1])


def listed(hypotheses, shape):
    return [hypotheses.hypothesis(number, shape) for number in range(hypotheses.size(shape))]


def scores(hypotheses, X, y, shape):
    """Of every hypothesis, by what it predicts."""
    return [int(np.count_nonzero(one.predict(X) == y)) for one in listed(hypotheses, shape)]


def numbers(find, score):
    """All that `at` or `at_or_below` gives, until it gives nothing."""
    found = []
    while (number := find(score, len(found))) is not None:
        found.append(number)
    return found


def assert_answers(scored, truth):
    """Everything that is asked of `Scores`, at every level, against the score of every tree."""
    assert scored.maximum() == max(truth)
    for level in range(max(truth) + 2):
        above = Counter(score for score in truth if score > level)
        assert scored.histogram(level) == sorted(above.items(), reverse=True)
        below = [number for number, score in enumerate(truth) if score <= level]
        assert numbers(scored.at_or_below, level) == below
        if level:
            exactly = [number for number, score in enumerate(truth) if score == level]
            assert numbers(scored.at, level) == exactly


class TestWhich:
    @pytest.mark.parametrize("labels", [2, 3])
    def test_every_tree_is_there_once(self, labels):
        shape = Shape(3, labels)
        stumps = listed(Stumps(thresholds=CUTS), shape)
        roots = [(feature, threshold) for feature, cut in enumerate(CUTS) for threshold in cut]
        found = listed(TREES, shape)
        assert found == [
            Tree(*root, below, above) for root, below, above in product(roots, stumps, stumps)
        ]
        assert len(set(found)) == len(found) == 3 * len(stumps) ** 2

    def test_so_many(self):
        assert Trees(low=0, high=1).size(Shape(60, 2)) == 420 * 842**2
        assert Trees(low=0, high=1, cells=16).size(Shape(100, 10)) == 1500 * 135_010**2

    def test_a_number_of_a_huge_class(self):
        trees, shape = Trees(low=0, high=16, cells=16), Shape(100, 10)
        last = trees.hypothesis(trees.size(shape) - 1, shape)
        assert last == Tree(99, 15.0, Stump(99, 15.0, 9, 8), Stump(99, 15.0, 9, 8))
        assert trees.hypothesis(0, shape) == Tree(0, 1.0, Constant(0), Constant(0))

    def test_a_tree_needs_a_threshold(self):
        with pytest.raises(ParameterError, match="at least one"):
            Trees(thresholds=[]).size(Shape(3, 2))

    @pytest.mark.parametrize(
        ("trees", "shape"),
        [
            (Trees(low=0, high=1, cells=60_000), Shape(100, 2)),  # too many of everything
            (Trees(low=0, high=1, cells=2), Shape(512, 511)),  # too many trees
            (Trees(low=0, high=1, cells=101), Shape(100, 2)),  # too many pairs of thresholds
            (Trees(thresholds=[0.5]), Shape(1, 20_000)),  # too many stumps
        ],
    )
    def test_too_many_to_count(self, trees, shape):
        with pytest.raises(ParameterError, match="fewer cells"):
            trees.size(shape)
        with pytest.raises(ParameterError, match="fewer cells"):
            trees.score(np.empty((0, shape.features)), np.empty(0, np.intp), shape)

    def test_counts_fit_64_bits(self):
        """Whatever `size` lets through: the number of trees stays below 2^62."""
        assert trees_module.MOST_TREES <= 1 << 62
        largest = Trees(low=0, high=1, cells=2)
        assert largest.size(Shape(8192, 2)) < 1 << 62
        with pytest.raises(ParameterError):
            largest.size(Shape(8193, 2))

    def test_bounds_are_never_read_off_the_data(self):
        with pytest.raises(ParameterError, match="low"):
            Trees().score(X, Y, Shape(3, 3))


class TestRules:
    TREE = Tree(0, 1.0, Stump(2, 0.5, 1, 0), Constant(2))

    def test_they_read_as_rules(self):
        assert repr(self.TREE) == "<2 if x0 >= 1.0 else (0 if x2 >= 0.5 else 1)>"
        assert repr(TREES.hypothesis(0, Shape(3, 2))) == "<0 if x0 >= 0.0 else 0>"

    def test_what_it_says(self):
        assert self.TREE.predict(X).tolist() == [1, 0, 2, 0, 1, 2, 1]
        assert self.TREE.predict(X).dtype == np.intp
        assert self.TREE.predict(X[:0]).tolist() == []

    def test_one_row_at_a_time_or_together(self):
        alone = [int(self.TREE.predict(X[row : row + 1])[0]) for row in range(len(X))]
        assert alone == self.TREE.predict(X).tolist()

    def test_they_pickle(self):
        for one in (self.TREE, TREES):
            assert pickle.loads(pickle.dumps(one)) == one

    def test_smaller_trees_are_among_them(self):
        """A tree with the same stump on both sides says what the stump says."""
        one = Stump(2, 0.5, 1, 0)
        assert Tree(0, 1.0, one, one).predict(X).tolist() == one.predict(X).tolist()


class TestScores:
    def test_a_case_by_hand(self):
        """One threshold: the stumps are 0, 1, "0 below" and "1 below". Two rows below it (0, 1),
        one above (1).
        """
        scored = Trees(thresholds=[0.0]).score(
            np.array([[-1.0], [-1.0], [0.0]]), np.array([0, 1, 1]), Shape(1, 2)
        )
        # Every stump gets one of the two rows below; 1 and "0 below" get the one above.
        assert scored.maximum() == 2
        assert scored.histogram(0) == [(2, 8), (1, 8)]
        assert scored.at(2, 0) == 1
        assert scored.at(1, 0) == 0
        assert scored.at(2, 8) is None

    def test_exclusive_or(self):
        """No stump gets more than half of it right, and some tree all."""
        square = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
        y = square[:, 0] ^ square[:, 1]
        shape = Shape(2, 2)
        assert Stumps(thresholds=[0.5]).score(square, y, shape).maximum() == 10
        trees = Trees(thresholds=[0.5])
        scored = trees.score(square, y, shape)
        assert scored.histogram(15) == [(20, 2)]
        found = trees.hypothesis(scored.at(20, 0), shape)
        assert repr(found) == "<(0 if x1 >= 0.5 else 1) if x0 >= 0.5 else (1 if x1 >= 0.5 else 0)>"

    @pytest.mark.slow
    @pytest.mark.parametrize("labels", [3, 4])
    def test_all_answers(self, labels):
        shape = Shape(3, labels)
        assert_answers(TREES.score(X, Y, shape), scores(TREES, X, Y, shape))

    def test_two_labels(self):
        shape = Shape(3, 2)
        assert_answers(TREES.score(X, Y % 2, shape), scores(TREES, X, Y % 2, shape))

    def test_the_same_row_many_times(self):
        shape = Shape(3, 2)
        rows, y = X[[0, 0, 0, 0, 1, 1]], np.array([0, 0, 1, 0, 1, 1])
        assert_answers(TREES.score(rows, y, shape), scores(TREES, rows, y, shape))

    def test_no_rows(self):
        shape = Shape(3, 2)
        scored = TREES.score(np.empty((0, 3)), np.empty(0, np.intp), shape)
        assert scored.maximum() == 0
        assert scored.histogram(0) == []
        assert scored.at(1, 0) is None
        assert numbers(scored.at_or_below, 0) == list(range(TREES.size(shape)))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "kind", [np.float16, np.float32, np.int8, np.int64, np.uint16, np.bool_]
    )
    def test_any_kind_of_number(self, kind):
        shape = Shape(3, 2)
        rows = np.array([[0, 1, 1], [1, 0, 2], [2, 1, 0], [0, 0, 0]]).astype(kind)
        y = np.array([0, 1, 1, 0])
        assert_answers(TREES.score(rows, y, shape), scores(TREES, rows, y, shape))

    def test_numbers_between_32_and_64_bits(self):
        trees = Trees(thresholds=[float(np.float32(0.1)) + 1e-12, float(2**53)])
        shape = Shape(1, 2)
        for rows in (np.array([[0.1], [0.2]], np.float32), np.array([[2**53 - 1], [2**53 + 1]])):
            y = np.array([0, 1])
            assert_answers(trees.score(rows, y, shape), scores(trees, rows, y, shape))

    def test_nan_is_below_no_threshold(self):
        shape = Shape(3, 2)
        rows, y = np.where(X > 1, np.nan, X), Y % 2
        assert_answers(TREES.score(rows, y, shape), scores(TREES, rows, y, shape))

    @pytest.mark.slow
    def test_the_order_of_memory_does_not_matter(self):
        shape = Shape(3, 3)
        truth = scores(TREES, X, Y, shape)
        assert_answers(TREES.score(np.asfortranarray(X), Y, shape), truth)

    @pytest.mark.slow
    @pytest.mark.parametrize("rows", [1, 2, 3, 100])
    def test_blocks_of_rows_add_up(self, monkeypatch, rows):
        monkeypatch.setattr(trees_module, "_ENTRIES", 1)
        monkeypatch.setattr(trees_module, "_ROWS", rows)
        shape = Shape(3, 3)
        assert_answers(TREES.score(X, Y, shape), scores(TREES, X, Y, shape))

    def test_a_block_counts_exactly(self):
        """32-bit floats count ones exactly up to 2^24, and a block holds fewer rows."""
        assert max(trees_module._ROWS, trees_module._ENTRIES) < 1 << 24

    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_rows(self):
        """X would be 400 MB; as a copy of one row it takes nothing, unless it is copied as a
        whole.
        """
        rows = np.broadcast_to(np.arange(50.0), (1_000_000, 50))
        y = np.ones(len(rows), np.intp)
        tracemalloc.start()
        try:
            scored = Trees(thresholds=[25.0]).score(rows, y, Shape(50, 2))
            assert tracemalloc.get_traced_memory()[1] < 100 << 20
        finally:
            tracemalloc.stop()
        assert scored.maximum() == len(rows)

    @pytest.mark.slow
    @pytest.mark.parametrize("dense", [0, 3, 1 << 10])
    def test_both_ways_to_add(self, monkeypatch, dense):
        monkeypatch.setattr(trees_module, "_DENSE", dense)
        shape = Shape(3, 3)
        assert_answers(TREES.score(X, Y, shape), scores(TREES, X, Y, shape))

    def test_nothing_shows(self):
        assert repr(TREES.score(X, Y, Shape(3, 3))) == "TreeScores(<private>)"


class TestMany:
    """So many trees that they cannot be listed."""

    SHAPE = Shape(200, 2)
    GRID = Trees(low=0, high=1, cells=2)
    ROWS = np.array([[0.0] * 200] * 3 + [[1.0] * 200] * 2)
    LABELS = np.array([0, 0, 0, 1, 1])

    def test_counts_by_combinatorics(self):
        """All features say the same. Left of a root are three 0, right of it two 1: of the S = 402
        stumps on each side 201 say so (the constant, and 200 thresholds), and the others say the
        other label, of all rows of that side."""
        scored = self.GRID.score(self.ROWS, self.LABELS, self.SHAPE)
        half = 200 * 201**2
        assert self.GRID.size(self.SHAPE) == 4 * half
        assert scored.histogram(0) == [(5, half), (3, half), (2, half)]
        assert scored.histogram(4) == [(5, half)]
        assert scored.at(5, half) is None
        assert scored.at_or_below(0, half) is None
        assert scored.at_or_below(5, 4 * half - 1) == 4 * half - 1
        assert scored.at_or_below(5, 4 * half) is None
        assert [scored.at_or_below(5, index) for index in (0, half, 3 * half)] == [
            0,
            half,
            3 * half,
        ]

    @pytest.mark.slow
    def test_the_nth_has_its_score(self):
        scored = self.GRID.score(self.ROWS, self.LABELS, self.SHAPE)
        total = 200 * 201**2
        for score in (2, 3, 5):
            found = [scored.at(score, index) for index in range(0, total, total // 50)]
            assert found == sorted(set(found))
            for number in found:
                says = self.GRID.hypothesis(number, self.SHAPE).predict(self.ROWS)
                assert np.count_nonzero(says == self.LABELS) == score
