"""Public thresholds: given, never guessed."""

from __future__ import annotations

import numpy as np
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import Conjunctions, LinearGrid, Shape, Stumps, Trees
from privmax.learning.classes.grid import MOST_CELLS, Grid, cells_of


def test_equal_cells_between_two_bounds():
    cuts = Grid(low=0, high=8, cells=4).cuts(3)
    assert [cut.tolist() for cut in cuts] == [[2, 4, 6]] * 3


def test_bounds_for_each_feature():
    cuts = Grid(low=[0, -1], high=(2, 1), cells=2).cuts(2)
    assert [cut.tolist() for cut in cuts] == [[1], [0]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2], [[1, 2], [1, 2]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([[], [0.5]], [[], [0.5]]),
        ([], [[], []]),
        (np.array([1, 2]), [[1, 2], [1, 2]]),
        (np.array([[1], [2]]), [[1], [2]]),
    ],
)
def test_thresholds_for_all_or_for_each_feature(given, expected):
    assert [cut.tolist() for cut in Grid(thresholds=given).cuts(2)] == expected


def test_a_cell_begins_at_its_threshold_and_the_outer_ones_are_open():
    cut = np.array([0.0, 1.0])
    values = np.array([-1e300, -1e-9, 0.0, 0.999, 1.0, 1e300])
    assert cells_of(values, cut).tolist() == [0, 0, 1, 1, 2, 2]
    for kind in (np.float32, np.int8, np.bool_):
        some = np.array([0, 1]).astype(kind)
        assert cells_of(some, cut).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("grid", "name"),
    [
        (Grid(), "low"),
        (Grid(low=0), "high"),
        (Grid(high=1), "low"),
        (Grid(low=1, high=1), "high"),
        (Grid(low=0, high=float("inf")), "high"),
        (Grid(low=[0, 0, 0], high=1), "low"),
        (Grid(low="a", high=1), "low"),
        (Grid(low=0, high=1, cells=1), "cells"),
        (Grid(low=0, high=1, cells=MOST_CELLS + 1), "cells"),
        (Grid(low=1, high=1 + 2**-50, cells=1000), "cells"),
        (Grid(low=0, high=1, thresholds=[1]), "thresholds"),
        (Grid(thresholds=[2, 1]), "thresholds"),
        (Grid(thresholds=[1, 1]), "thresholds"),
        (Grid(thresholds=[[1]]), "thresholds"),
        (Grid(thresholds=[float("nan")]), "thresholds"),
        (Grid(thresholds=["x"]), "thresholds"),
        (Grid(thresholds=[[1], 2]), "thresholds"),
        (Grid(thresholds=7), "thresholds"),
        (Grid(thresholds={0: [1], 1: [2]}), "thresholds"),
        (Grid(thresholds={1, 2}), "thresholds"),
        (Grid(low=-1e308, high=1e308), "high"),
    ],
)
def test_what_cannot_be_a_grid_is_named(grid, name):
    with pytest.raises(ParameterError) as caught:
        grid.cuts(2)
    assert caught.value.name == name


def test_a_missing_bound_says_how_to_give_it():
    with pytest.raises(ParameterError, match=r"Do not compute it from the data.*Give low and high"):
        Grid().cuts(2)


@pytest.mark.parametrize(
    "rules",
    [
        Stumps(low=0, high=9, cells=2),
        Stumps(low=0, high=9, cells=100),
        Trees(low=0, high=9, cells=2),
        Conjunctions(2, low=0, high=9, cells=2),
        LinearGrid([[1, 0]], low=0, high=9),
    ],
    ids=repr,
)
def test_a_value_that_is_no_number_is_not_quoted(rules):
    """Rows that nobody checked before: NumPy's error would show the cell."""
    X, y = np.array([[1, 2], [3, "somebody"]], dtype=object), np.array([0, 1])
    with pytest.raises(DataError, match="not a number") as caught:
        rules.score(X, y, Shape(features=2, labels=2))
    assert "somebody" not in f"{caught.value!r} {caught.value.__context__!r}"
