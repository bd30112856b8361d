"""Half-spaces against sums of Python integers, and that no block, library or order changes a
count.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
import sys
from fractions import Fraction
from types import ModuleType

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privmax.errors import ParameterError
from privmax.learning import classes
from privmax.learning.classes import linear
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.grid import Grid, cells_of
from privmax.learning.classes.linear import HalfSpace, LinearGrid, Products

LOW, HIGH = -1.5, 2.0

FIRST = [-19, 56, 82, 11, 91, -51, -53, 89, -103, 106]
DIGEST = "72ea94e904908c42"
"""Of 1000 random directions of 10 features with seed 7: the first, and the SHA-256 of all."""


def place(value, levels, low=LOW, high=HIGH):
    """The cell of a number, by the definition: how many cuts are at or below it."""
    cuts = Grid(low, high, 2 * levels + 1).cuts(1)[0].tolist()
    return sum(cut <= value for cut in cuts) - levels


def by_hand(X, y, directions, offsets, levels):
    """How many rows each hypothesis gets right, in Python integers and fractions."""
    places = [[place(value, levels) for value in row] for row in X.tolist()]
    counts = []
    for direction in np.asarray(directions).tolist():
        sums = [sum(w * z for w, z in zip(direction, row, strict=True)) for row in places]
        for offset in offsets:
            counts.append(
                sum(
                    (total >= Fraction(offset)) == bool(label)
                    for total, label in zip(sums, y, strict=True)
                )
            )
    return counts


def problem(seed=0, rows=60, features=3, directions=7):
    generator = np.random.default_rng(seed)
    X = generator.uniform(
        LOW - 1, HIGH + 1, (rows, features)
    )  # a good part lies outside the bounds
    y = generator.integers(0, 2, rows)
    return X, y, generator.integers(-127, 128, (directions, features))


def counts_of(hypotheses, X, y):
    return hypotheses.score(X, y, Shape(X.shape[1], 2)).scores()


@pytest.mark.parametrize("levels", [1, 5, 127])
@pytest.mark.parametrize("offsets", [[0], [-700, 0.25, 3, 12_000]], ids=["one", "four"])
def test_counts_are_those_of_python_integers(levels, offsets):
    X, y, directions = problem()
    hypotheses = LinearGrid(directions, offsets, low=LOW, high=HIGH, levels=levels)
    assert hypotheses.size(Shape(3, 2)) == 7 * len(offsets)
    assert counts_of(hypotheses, X, y) == by_hand(X, y, directions, offsets, levels)


def test_many_offsets_are_counted_by_sorting_and_few_by_comparing_with_the_same_result():
    X, y, directions = problem(rows=50)
    offsets = [-(10**9), *range(-2000, 2000, 100), 10**9]
    assert len(offsets) > linear._MANY
    together = counts_of(LinearGrid(directions, offsets, low=LOW, high=HIGH), X, y)
    assert together == counts_of(
        LinearGrid(directions, offsets, low=LOW, high=HIGH, array=array_api_strict), X, y
    )
    assert together == by_hand(X, y, directions, offsets, 127)
    single = [
        counts_of(LinearGrid(directions, [offset], low=LOW, high=HIGH), X, y) for offset in offsets
    ]
    assert together == np.array(single).T.ravel().tolist()


def test_a_sum_at_the_offset_says_one_and_a_sum_just_below_says_nought():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])  # cells of width 1 from −1.5: z = x
    hypotheses = LinearGrid(
        [[2, -1]], [2, 3, "2.5", Fraction(9, 4), 4], low=-1.5, high=1.5, levels=1
    )
    shape = Shape(2, 2)
    assert hypotheses.offsets == (2, 3, 3, 3, 4)  # sums 0, 2 and 1
    assert [hypotheses.hypothesis(number, shape).predict(X).tolist() for number in range(2)] == [
        [0, 1, 0],
        [0, 0, 0],
    ]
    assert counts_of(hypotheses, X, np.array([1, 1, 0])) == [2, 1, 1, 1, 1]
    assert counts_of(hypotheses, X, np.array([0, 1, 1])) == [2, 1, 1, 1, 1]


def test_values_outside_the_bounds_count_as_the_bound():
    hypotheses = LinearGrid([[1]], [-127, -126, 127], low=0, high=1)
    X = np.array([[-1e308], [-0.001], [0.0], [1.0], [7.0], [1e308]])
    says = [hypotheses.hypothesis(number, Shape(1, 2)).predict(X).tolist() for number in range(3)]
    assert says == [[1] * 6, [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]]
    assert counts_of(hypotheses, X, np.ones(6, np.intp)) == [6, 3, 3]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20),
    st.floats(-1e300, 1e300),
    st.floats(1e-300, 1e300),
    st.integers(1, 127),
)
def test_a_cell_is_what_searching_the_cuts_gives(values, low, width, levels):
    try:
        cut = Grid(low, low + width, 2 * levels + 1).cuts(1)[0]
    except ParameterError:
        return  # no floats between the bounds
    near = np.concatenate([values, cut, np.nextafter(cut, -np.inf), np.nextafter(cut, np.inf)])
    other = Grid(0, 1, 2 * levels + 1).cuts(1)[0]
    found = linear.place_on_grid(np.stack([near, near], axis=1), [cut, other], levels)
    assert found.T.tolist() == [(cells_of(near, one) - levels).tolist() for one in (cut, other)]


def test_a_row_s_place_does_not_depend_on_the_rows_beside_it(monkeypatch):
    X, _, _ = problem(rows=40)
    cuts = Grid(LOW, HIGH, 255).cuts(3)
    whole = linear.place_on_grid(X, cuts, 127)
    assert [
        linear.place_on_grid(X[row : row + 1], cuts, 127)[0].tolist() for row in range(40)
    ] == whole.tolist()
    monkeypatch.setattr(linear, "_CHUNK", 12)  # 4 rows
    assert linear.place_on_grid(X, cuts, 127).tolist() == whole.tolist()
    assert linear.place_on_grid(np.asfortranarray(X), cuts, 127).tolist() == whole.tolist()
    assert linear.place_on_grid(X[::-1], cuts, 127)[::-1].tolist() == whole.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("library", [None, "array_api_strict"])
@pytest.mark.parametrize("block", [(1, 1), (7, 3), (1000, 2), (5, 1000)])
def test_blocks_of_any_size_give_the_same_counts(library, block):
    generator = np.random.default_rng(1)
    cells = generator.integers(-127, 128, (31, 9)).astype(np.int8)
    directions = generator.integers(-127, 128, (11, 9)).astype(np.int8)
    offsets = [0, *(directions[:4].astype(int) @ cells[0].astype(int)).tolist()]  # met exactly
    products = directions.astype(object) @ cells.astype(object).T
    tally = Products(directions, offsets, library, block=block)
    tally.add(cells, 1)
    tally.add(cells[:10], -1)
    tally.add(cells[:0], 1)
    assert tally.counts().tolist() == [
        (products[:, 10:] >= offset).sum(axis=1).tolist() for offset in offsets
    ]
    assert tally.counts().dtype == np.int64


@pytest.mark.parametrize("library", [None, "array_api_strict"])
def test_counts_of_one_block_may_be_large(library):
    tally = Products(np.ones((2, 1), np.int8), [0, 1, 2], library)
    tally.add(np.ones((70_000, 1), np.int8), 1)
    assert tally.counts().tolist() == [[70_000] * 2, [70_000] * 2, [0] * 2]


def test_examples_are_read_some_at_a_time(monkeypatch):
    X, y, directions = problem(rows=50)
    hypotheses = LinearGrid(directions, [0, 100], low=LOW, high=HIGH)
    whole = counts_of(hypotheses, X, y)
    monkeypatch.setattr("privmax.learning.classes.contract._ENTRIES", 20)
    monkeypatch.setattr(linear, "_HOST", (4, 2))
    assert counts_of(hypotheses, X, y) == whole == by_hand(X, y, directions, [0, 100], 127)


def test_the_largest_sums_are_exact():
    """1040 features reach 2^24 less 2576: where floats of 32 bits are still whole numbers."""
    directions = np.full((2, 1040), 127)
    directions[1, 0] = 126
    cells = np.full((2, 1040), 127, np.int8)
    cells[1, -1] = 126
    top = 1040 * 127 * 127
    tally = Products(
        directions.astype(np.int8), [top - 254, top - 253, top - 127, top - 126, top, top + 1]
    )
    tally.add(cells, 1)
    assert tally.counts().tolist() == [[2, 2], [2, 1], [2, 1], [1, 0], [1, 0], [0, 0]]
    with pytest.raises(ParameterError, match=r"of 1041 features.*2\^24"):
        LinearGrid(np.full((1, 1041), 127), low=0, high=1)
    LinearGrid(np.full((1, 1041), 127), low=0, high=1, levels=126)


@pytest.mark.parametrize("array", [array_api_strict, "array_api_strict", "numpy", np])
def test_another_array_library_gives_the_same_counts(array):
    X, y, directions = problem()
    offsets = [0, 40, 2.5]
    hypotheses = LinearGrid(directions, offsets, low=LOW, high=HIGH, array=array)
    assert counts_of(hypotheses, X, y) == by_hand(X, y, directions, offsets, 127)


def test_what_a_hypothesis_says_is_what_was_counted():
    X, y, directions = problem(seed=3)
    hypotheses = LinearGrid(
        directions, [-500, 0, 500], low=[LOW] * 3, high=[HIGH, HIGH + 1, HIGH], levels=40
    )
    shape = Shape(3, 2)
    right = [
        int((hypotheses.hypothesis(i, shape).predict(X) == y).sum())
        for i in range(hypotheses.size(shape))
    ]
    assert counts_of(hypotheses, X, y) == right
    assert len(set(right)) > 3


def test_a_row_moves_every_count_by_at_most_one():
    X, y, directions = problem(rows=20)
    hypotheses = LinearGrid(directions, [0], low=LOW, high=HIGH)
    all_rows = np.array(counts_of(hypotheses, X, y))
    for left_out in range(20):
        moved = all_rows - counts_of(hypotheses, np.delete(X, left_out, 0), np.delete(y, left_out))
        assert set(moved.tolist()) <= {0, 1}


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float64])
def test_features_of_any_type_are_numbers(dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    hypotheses = LinearGrid([[1, -2, 3]], low=0, high=11)
    assert counts_of(hypotheses, X, np.array([0, 1, 0, 1])) == counts_of(
        hypotheses, X.astype(np.float64), np.array([0, 1, 0, 1])
    )


def test_no_rows_are_no_correct_examples():
    hypotheses = LinearGrid([[1, -2, 3]], [0, 1], low=0, high=11)
    assert counts_of(hypotheses, np.empty((0, 3)), np.empty(0, np.intp)) == [0, 0]


def test_a_hypothesis_can_be_read_compared_and_stored():
    hypotheses = LinearGrid([[3, 0, -2], [0, 0, 0]], [5, 6], low=0, high=[1, 2, 4], levels=10)
    rule = hypotheses.hypothesis(1, Shape(3, 2))
    assert rule == HalfSpace((3, 0, -2), 6, Grid(0.0, (1.0, 2.0, 4.0), 21))
    assert repr(rule) == (
        "<1 where +3·z0 -2·z2 ≥ 6, else 0; z0 is the cell of x0, −10 … 10, between low=0.0 and "
        "high=(1.0, 2.0, 4.0)>"
    )
    assert repr(hypotheses.hypothesis(2, Shape(3, 2))).startswith("<1 where 0 ≥ 5")
    again = pickle.loads(pickle.dumps(rule))
    X = np.random.default_rng(0).uniform(0, 4, (30, 3))
    assert again == rule
    assert again.predict(X).tolist() == rule.predict(X).tolist()


def test_the_class_is_copied_and_stored_whatever_it_was_given():
    X, y, given = problem()
    directions = given.astype(np.int8)
    hypotheses = LinearGrid(
        directions, np.array([0.5]), low=np.full(3, LOW), high=HIGH, array=array_api_strict
    )
    directions[:] = 0  # its own copy was made
    want = counts_of(hypotheses, X, y)
    assert want != counts_of(LinearGrid(directions, [1], low=LOW, high=HIGH), X, y)
    for other in (copy.deepcopy(hypotheses), pickle.loads(pickle.dumps(hypotheses))):
        assert counts_of(other, X, y) == want
    assert repr(hypotheses) == (
        "LinearGrid(<7 directions of 3 features>, <1 offsets>, low=(-1.5, -1.5, -1.5), high=2.0, "
        "levels=127, "
        "array='array_api_strict', device=None)"
    )


def test_counting_shows_nothing():
    X, y, directions = problem()
    assert repr(Products(directions.astype(np.int8), [0])) == "Products(<private>)"
    assert (
        repr(LinearGrid(directions, low=0, high=1).score(X, y, Shape(3, 2))) == "Counts(<private>)"
    )


def test_random_directions_are_the_same_everywhere():
    drawn = LinearGrid.random(directions=1000, features=10, seed=7, low=0, high=1).directions
    assert drawn[0].tolist() == FIRST
    assert hashlib.sha256(drawn.tobytes()).hexdigest()[:16] == DIGEST
    assert drawn.dtype == np.int8
    assert (drawn.min(), drawn.max()) == (-127, 127)
    longer = LinearGrid.random(directions=3000, features=10, seed=7, low=0, high=1).directions
    assert longer[:1000].tolist() == drawn.tolist()
    other = LinearGrid.random(directions=1000, features=10, seed=8, low=0, high=1).directions
    assert (other != drawn).mean() > 0.9


def test_random_weights_are_uniform():
    """Chi-square of 255 values with 10^6 weights; a sound generator exceeds 350 once in more than
    10^4 seeds.
    """
    weights = LinearGrid.random(directions=10_000, features=100, seed=0, low=0, high=1).directions
    seen = np.bincount(weights.ravel().astype(np.intp) + 127, minlength=255)
    assert len(seen) == 255
    expected = 1e6 / 255
    assert ((seen - expected) ** 2 / expected).sum() < 350


def test_random_passes_on_what_it_is_given():
    hypotheses = LinearGrid.random(
        directions=2,
        features=3,
        seed=0,
        offsets=[1, 2],
        low=0,
        high=5,
        levels=9,
        array="array_api_strict",
    )
    assert (hypotheses.offsets, hypotheses.low, hypotheses.high) == ((1, 2), 0.0, 5.0)
    assert (hypotheses.levels, hypotheses.array, hypotheses.device) == (9, "array_api_strict", None)


@pytest.mark.parametrize(
    ("given", "named", "text"),
    [
        ({"low": None}, "low", "every feature needs a public bound"),
        ({"high": None}, "high", "every feature needs a public bound"),
        ({"high": -2}, "high", "above low"),
        ({"low": [0, 0]}, "low", "one for each of the 3 features"),
        ({"directions": [1, 2, 3]}, "directions", "one direction a row"),
        ({"directions": [[0.5, 0, 0]]}, "directions", "whole numbers"),
        ({"directions": [[128, 0, 0]]}, "directions", "from −127 to 127"),
        ({"directions": [[np.nan, 0, 0]]}, "directions", "from −127 to 127"),
        ({"directions": np.empty((0, 3))}, "directions", "one direction a row"),
        ({"directions": [["a", "b", "c"]]}, "directions", "one direction a row"),
        ({"offsets": []}, "offsets", "at least one"),
        ({"offsets": 3}, "offsets", "a list of numbers"),
        ({"offsets": [np.inf]}, "offsets", "finite"),
        ({"levels": 0}, "levels", "at least 1"),
        ({"levels": 128}, "levels", "at most 127"),
        ({"array": "no_such_library"}, "array", "Install the extra gpu"),
        ({"array": 3}, "array", "a module"),
        ({"device": "cuda"}, "device", "NumPy has none"),
        ({"array": array_api_strict, "device": "cuda"}, "device", "array_api_strict cannot use it"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_option_that_cannot_be_is_named(given, named, text):
    options = {"directions": [[1, 2, 3]], "offsets": [0], "low": 0, "high": 1, **given}
    with pytest.raises(ParameterError, match=text) as raised:
        LinearGrid(**options)
    assert raised.value.name == named


def test_torch_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(linear._ADAPTED, "torch", "array_api_compat.not_there")
    with pytest.raises(ParameterError, match="torch or CuPy that fits your card"):
        LinearGrid([[1]], low=0, high=1, array="torch", device="cuda")


@pytest.mark.parametrize(
    ("library", "device", "features", "counts"),
    [
        ("torch", "cuda", 3, "the kernel"),
        ("torch", "cuda:1", 3, "the kernel"),
        ("torch", "cuda", 257, "products"),
        ("torch", "cpu", 3, "products"),
        ("cupy", "cuda", 3, "products"),
    ],
)
def test_the_kernel_counts_where_it_can(monkeypatch, library, device, features, counts):
    kernel = ModuleType("privmax.learning.classes.linear_triton")
    kernel.MOST_FEATURES, kernel.Fused = 256, lambda *given: "the kernel"
    monkeypatch.setitem(sys.modules, kernel.__name__, kernel)
    monkeypatch.setattr(classes, "linear_triton", kernel, raising=False)
    monkeypatch.setattr(linear, "Products", lambda *given: "products")
    monkeypatch.setattr(linear, "_check", lambda library, device: None)
    hypotheses = LinearGrid(np.ones((1, features)), low=0, high=1, array=library, device=device)
    assert hypotheses._tally() == counts


def test_products_count_where_the_kernel_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "privmax.learning.classes.linear_triton", raising=False)
    monkeypatch.setattr(linear, "Products", lambda *given: "products")
    monkeypatch.setattr(linear, "_check", lambda library, device: None)
    assert LinearGrid([[1]], low=0, high=1, array="torch", device="cuda")._tally() == "products"


def test_only_two_labels_and_all_features():
    hypotheses = LinearGrid([[1, 2, 3]], low=0, high=1)
    with pytest.raises(ParameterError, match="Half-spaces"):
        hypotheses.size(Shape(3, 3))
    with pytest.raises(ParameterError, match="the data have 2"):
        hypotheses.score(np.zeros((1, 2)), np.zeros(1, np.intp), Shape(2, 2))


def test_what_is_no_table_or_no_library_is_named():
    with pytest.raises(ParameterError, match=r"directions.*one direction a row"):
        LinearGrid([[1], [1, 2]], low=0, high=1)
    with pytest.raises(ParameterError, match=r"array='os'.*not a module of arrays"):
        LinearGrid([[1]], low=0, high=1, array="os")
