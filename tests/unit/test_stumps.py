"""Stumps: which there are, what they say, and what they get right."""

from __future__ import annotations

import pickle
import tracemalloc
from itertools import permutations

import numpy as np
import pytest

from privmax.errors import ParameterError
from privmax.learning.classes import stumps as stumps_module
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.stumps import Constant, Stump, Stumps

CUTS = [[0.0, 1.0], [], [-1.0, 0.5, 2.0]]
STUMPS = Stumps(thresholds=CUTS)


def listed(hypotheses, shape):
    return [hypotheses.hypothesis(number, shape) for number in range(hypotheses.size(shape))]


def scores(hypotheses, X, y, shape):
    """Of every hypothesis, by what it predicts."""
    return [int(np.count_nonzero(one.predict(X) == y)) for one in listed(hypotheses, shape)]


class TestWhich:
    @pytest.mark.parametrize("labels", [2, 3, 4])
    def test_every_constant_and_every_stump_is_there_once(self, labels):
        wanted = {Constant(label) for label in range(labels)} | {
            Stump(feature, threshold, below, above)
            for feature, cut in enumerate(CUTS)
            for threshold in cut
            for below, above in permutations(range(labels), 2)
        }
        found = listed(STUMPS, Shape(3, labels))
        assert len(found) == len(wanted) == labels + 5 * labels * (labels - 1)
        assert set(found) == wanted

    def test_without_thresholds_there_are_the_constants(self):
        assert listed(Stumps(thresholds=[]), Shape(4, 3)) == [Constant(0), Constant(1), Constant(2)]

    def test_equal_cells_between_bounds(self):
        found = listed(Stumps(low=0, high=[4, 8], cells=4), Shape(2, 2))
        places = {(one.feature, one.threshold) for one in found if isinstance(one, Stump)}
        assert places == {(0, 1.0), (0, 2.0), (0, 3.0), (1, 2.0), (1, 4.0), (1, 6.0)}
        assert Stumps(low=0, high=1).size(Shape(10, 2)) == 2 + 2 * 10 * 15

    def test_bounds_are_never_read_off_the_data(self):
        with pytest.raises(ParameterError, match="low"):
            Stumps().score(np.array([[1.0]]), np.array([0]), Shape(1, 2))


class TestRules:
    def test_they_read_as_rules(self):
        assert repr(Stump(3, 2.5, 0, 1)) == "<1 if x3 >= 2.5 else 0>"
        assert repr(Constant(2)) == "<2>"
        assert repr(STUMPS.hypothesis(2, Shape(3, 2))) == "<1 if x0 >= 0.0 else 0>"

    def test_a_value_on_the_threshold_is_not_below_it(self):
        under = np.nextafter(2.5, 0)
        assert Stump(1, 2.5, 7, 4).predict(
            np.array([[9, under], [0, 2.5], [0, np.inf], [9, -np.inf]])
        ).tolist() == [
            7,
            4,
            4,
            7,
        ]

    def test_a_float32_is_compared_as_the_number_it_is(self):
        """0.1 as a 32-bit float is above 0.1 as a 64-bit one: had the threshold been rounded
        instead, 0.1f < 0.1f.
        """
        X = np.array([[0.1], [0.3]], np.float32)
        assert Stump(0, 0.1, 0, 1).predict(X).tolist() == [1, 1]
        assert Stump(0, float(np.nextafter(X[1, 0], np.float32(1))), 0, 1).predict(X).tolist() == [
            0,
            0,
        ]
        between = float(X[1, 0]) + 1e-12
        assert Stump(0, between, 0, 1).predict(X).tolist() == [0, 0]
        assert Stumps(thresholds=[between]).score(X, np.array([0, 0]), Shape(1, 2)).scores() == [
            2,
            0,
            2,
            0,
        ]

    def test_codes_are_of_one_type(self):
        X = np.zeros((3, 1))
        assert Stump(0, 0.0, 0, 1).predict(X).dtype == Constant(1).predict(X).dtype == np.intp
        assert Constant(1).predict(X).tolist() == [1, 1, 1]
        assert Stump(0, 0.0, 0, 1).predict(X[:0]).tolist() == []

    def test_they_pickle(self):
        for one in (Stump(0, 0.5, 1, 0), Constant(1), STUMPS):
            assert pickle.loads(pickle.dumps(one)) == one


class TestScores:
    X = np.array(
        [[0.0, 5, -2], [0.5, 5, 0.5], [1.0, 5, 9], [-3, 5, 2.0], [0.0, 5, -2], [np.nan, 5, np.nan]]
    )
    y = np.array([0, 1, 2, 2, 0, 1])

    def test_a_case_by_hand(self):
        X, y = np.array([[1.0], [2.0], [3.0], [2.0]]), np.array([0, 0, 1, 1])
        found = Stumps(thresholds=[2.0, 3.0]).score(X, y, Shape(1, 2))
        # constants 0 and 1; below 2 is 0, below 3 is 0; below 2 is 1, below 3 is 1
        assert found.scores() == [2, 2, 3, 3, 1, 1]
        assert found.maximum() == 3
        assert found.histogram(0) == [(3, 2), (2, 2), (1, 2)]

    def test_they_are_what_the_stumps_predict(self):
        shape = Shape(3, 3)
        assert STUMPS.score(self.X, self.y, shape).scores() == scores(STUMPS, self.X, self.y, shape)

    @pytest.mark.parametrize(
        "kind", [np.float16, np.float32, np.int8, np.int64, np.uint16, np.bool_]
    )
    def test_any_kind_of_number(self, kind):
        shape = Shape(3, 3)
        X = np.array([[0, 1, 1], [1, 0, 2], [2, 1, 0], [0, 0, 0]]).astype(kind)
        y = self.y[:4]
        assert STUMPS.score(X, y, shape).scores() == scores(STUMPS, X, y, shape)
        assert (
            STUMPS.score(X, y, shape).scores() == STUMPS.score(X.astype(float), y, shape).scores()
        )

    def test_whole_numbers_no_float_can_tell_apart(self):
        X, shape = np.array([[2**53], [2**53 + 1], [2**53 + 2]]), Shape(1, 2)
        grid = Stumps(thresholds=[float(2**53), float(2**53 + 2)])
        y = np.array([0, 0, 1])
        assert grid.score(X, y, shape).scores() == scores(grid, X, y, shape)

    def test_no_rows(self):
        found = STUMPS.score(np.empty((0, 3)), np.empty(0, np.intp), Shape(3, 2))
        assert found.scores() == [0] * 12
        assert found.maximum() == 0

    def test_a_label_that_does_not_occur(self):
        shape = Shape(3, 4)
        assert STUMPS.score(self.X, self.y, shape).scores() == scores(STUMPS, self.X, self.y, shape)

    def test_the_order_of_memory_does_not_matter(self):
        shape = Shape(3, 3)
        wanted = STUMPS.score(self.X, self.y, shape).scores()
        assert STUMPS.score(np.asfortranarray(self.X), self.y, shape).scores() == wanted
        assert STUMPS.score(np.repeat(self.X, 2, axis=1)[:, ::2], self.y, shape).scores() == wanted

    @pytest.mark.parametrize("entries", [1, 3, 8, 100])
    def test_blocks_of_rows_add_up(self, monkeypatch, entries):
        shape = Shape(3, 3)
        monkeypatch.setattr(stumps_module, "_ENTRIES", entries)
        assert STUMPS.score(self.X, self.y, shape).scores() == scores(STUMPS, self.X, self.y, shape)

    @pytest.mark.parametrize("few", [0, 255])
    def test_both_ways_to_find_a_cell(self, monkeypatch, few):
        monkeypatch.setattr(stumps_module, "_FEW", few)
        random = np.random.default_rng(1)
        X = np.append(
            random.integers(-2, 258, (300, 2)), [[np.nan, -np.inf], [np.inf, np.nan]], axis=0
        )
        y, shape = random.integers(0, 2, 302), Shape(2, 2)
        grid = Stumps(low=0, high=256, cells=256)
        assert grid.score(X, y, shape).scores() == scores(grid, X, y, shape)

    @pytest.mark.slow
    def test_more_thresholds_than_a_byte_counts(self):
        X, y, shape = np.arange(-5.0, 1005).reshape(-1, 2), np.arange(505) % 2, Shape(2, 2)
        grid = Stumps(low=0, high=1000, cells=1000)
        assert grid.score(X, y, shape).scores() == scores(grid, X, y, shape)
        assert stumps_module._FEW < 256

    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_rows(self):
        """X would be 400 MB; as a copy of one row it takes nothing, unless it is copied as a
        whole.
        """
        rows = np.broadcast_to(np.arange(50.0), (1_000_000, 50))
        y = np.ones(len(rows), np.intp)
        tracemalloc.start()
        try:
            scored = Stumps(thresholds=[25.0]).score(rows, y, Shape(50, 2))
            assert tracemalloc.get_traced_memory()[1] < 50 << 20
        finally:
            tracemalloc.stop()
        assert scored.maximum() == len(rows)

    def test_nothing_shows(self):
        assert repr(STUMPS.score(self.X, self.y, Shape(3, 3))) == "Counts(<private>)"
