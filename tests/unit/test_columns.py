"""Columns of scores against plain Python lists: extremes of every type, exact grids, look-ups
across chunk borders.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from privmax.errors import DataError
from privmax.profile import Profile
from privmax.sources import columns
from privmax.sources.columns import BigIntegerColumn, FloatColumn, IntegerColumn

INTEGER_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOAT_TYPES = ["float16", "float32", "float64"]
TINY = 2.0**-1074
LARGEST = np.finfo(np.float64).max


@pytest.fixture(params=[1, 2, 3, 1 << 17])
def chunk(request, monkeypatch):
    monkeypatch.setattr(columns, "_CHUNK", request.param)


def decimal(value):
    """What a float prints as."""
    return str(value)


def levels(scores, above):
    return sorted(Counter(score for score in scores if score > above).items(), reverse=True)


def assert_reads_as(column, scores):
    """Every answer of a column is the answer of the list of its scores."""
    assert column.listed() == len(scores)
    assert column.scores() == scores
    assert column.maximum() == max(scores)
    if not isinstance(column, BigIntegerColumn):
        assert_finds_ranks(column, scores)
    occupied = set(scores)
    for edge in {score + step for score in occupied for step in (-1, 0, 1)}:
        assert column.histogram(edge) == levels(scores, edge)
        level = [place for place, score in enumerate(scores) if score == edge]
        below = [place for place, score in enumerate(scores) if score <= edge]
        places = [(edge, index) for index in range(len(level) + 1)]
        assert column.find(places) == [*level, None]
        assert column.find_below(edge, range(len(below) + 1)) == [*below, None]
        assert column.find_below(edge, range(len(below), -1, -1)) == [None, *below[::-1]]
    everywhere = [
        (score, index) for index in range(len(scores)) for score in sorted(occupied)[::-1]
    ]
    members = {
        score: [place for place, other in enumerate(scores) if other == score] for score in occupied
    }
    found = [members[score][index : index + 1] for score, index in everywhere]
    assert column.find(everywhere) == [one[0] if one else None for one in found]
    assert column.find([]) == column.find_below(0, []) == []
    for number in (
        column.maximum(),
        *column.scores(),
        *(part for level in column.histogram(min(scores) - 1) for part in level),
    ):
        assert type(number) is int


def assert_finds_ranks(column, scores):
    ranked = [score for score in sorted(scores, reverse=True) if score > 0]
    for rank in range(1, len(scores) + 2):
        found = column.nth(rank)
        assert found == (ranked[rank - 1] if rank <= len(ranked) else None)
        assert type(found) in (int, type(None))


@pytest.mark.parametrize("size", [1, 64, 1 << 15])
def test_the_score_of_a_rank_is_found_in_one_pass(size, monkeypatch):
    monkeypatch.setattr(columns, "_CHUNK", size)
    values = np.random.default_rng(3).integers(-50, 900, 500)
    for one in (values, np.sort(values), np.sort(values)[::-1]):
        assert_finds_ranks(IntegerColumn(one), values.tolist())
        halves = FloatColumn(one / 2, Fraction(1))
        assert_finds_ranks(halves, [value // 2 for value in values.tolist()])


# Integers


@pytest.mark.slow
@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("order", ["<", ">"], ids=["little-endian", "big-endian"])
@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_the_whole_range_of_an_integer_type_in_one_array(dtype, order):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    scores = [high, low, 0, 1, high, low + 1, high - 1, low, 7]
    assert_reads_as(
        IntegerColumn(np.array(scores, np.dtype(dtype).newbyteorder(order))),
        [int(s) for s in scores],
    )


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_a_window_deeper_than_the_type_reaches_holds_everything(dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    column = IntegerColumn(np.array([low, high, low], dtype))
    for above in (low - 1, low - 1000, -(2**80)):
        assert column.histogram(above) == [(high, 1), (low, 2)]


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_look_ups_beyond_the_type_find_nothing_or_everything(dtype):
    column = IntegerColumn(np.array([1, 2], dtype))
    for score in (2**80, -(2**80)):
        assert column.find([(score, 0), (2, 0), (1, 2**80)]) == [None, 1, None]
    assert column.find_below(-(2**80), [0]) == [None]
    assert column.find_below(2**80, [1]) == [1]
    assert column.histogram(2**80) == []


@pytest.mark.parametrize("dense", [0, 10, 1 << 16])
def test_counting_and_sorting_give_the_same_histogram(dense, monkeypatch):
    monkeypatch.setattr(columns, "_DENSE", dense)
    assert_reads_as(
        IntegerColumn(np.array([40, -3, 40, 31, 30, 29, 12, -3])), [40, -3, 40, 31, 30, 29, 12, -3]
    )


@pytest.mark.slow
@pytest.mark.usefixtures("chunk")
def test_views_of_any_layout_are_read_as_they_stand():
    base = np.arange(24)
    frozen = base.copy()
    frozen.flags.writeable = False
    for view in (base[::2], base[::-1], base[::-3], base.reshape(4, 6)[:, 2], frozen):
        assert_reads_as(IntegerColumn(view), view.tolist())


@pytest.mark.usefixtures("chunk")
def test_integers_beyond_64_bits():
    huge = 2**70
    assert_reads_as(
        BigIntegerColumn([huge, -huge, huge + 1, huge, 0]), [huge, -huge, huge + 1, huge, 0]
    )


# Floats


@pytest.mark.slow
@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    "resolution", [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1, 2**20)]
)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_floats_are_floored_to_the_grid_exactly(dtype, resolution):
    values = np.array([0.1, 0.3, -0.1, -0.3, 0.0, -0.0, 1.0, 2.5, 0.7, 1 / 3, 1000.0, 0.3], dtype)
    assert_reads_as(
        FloatColumn(values, resolution),
        [math.floor(Fraction(decimal(v)) / resolution) for v in values],
    )


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_a_float_is_the_decimal_that_it_prints_as(dtype):
    """In binary 0.7 and 0.3 are a little less than seven and three tenths."""
    column = FloatColumn(np.array([0.1, 0.7, 0.3, -0.1, -0.7], dtype), Fraction(1, 10))
    assert_reads_as(column, [1, 7, 3, -1, -7])


@pytest.mark.parametrize(
    "resolution", [Fraction(1, 1000), pytest.param(Fraction(7, 3), marks=pytest.mark.slow)]
)
def test_all_floats_of_half_precision_are_floored_to_the_grid_exactly(resolution):
    """Every one of them, on a grid fine enough to tell what they print as from what they are in
    binary.
    """
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    column = FloatColumn(values, resolution)
    scores = [math.floor(Fraction(decimal(value)) / resolution) for value in values]
    assert column.scores() == scores
    for edge in (-(10**6), -3, 0, 1, 99, 1000, 65503, 10**8):
        above = sum(score > edge for score in scores)
        assert sum(count for _, count in column.histogram(edge)) == above


@pytest.mark.parametrize(
    ("values", "resolution"),
    [
        pytest.param([1.5, -1.5, 0.0], Fraction(1, 10**400), id="resolution below every float"),
        pytest.param([1.5, -1.5, 0.0], Fraction(10**400), id="resolution above every float"),
        pytest.param(
            [LARGEST, -LARGEST, TINY, -TINY, 0.0], Fraction(1), id="largest and least values"
        ),
        pytest.param([LARGEST, -LARGEST, TINY, 1.0], Fraction(TINY), id="least resolution"),
        pytest.param([LARGEST, -LARGEST, TINY, 1.0], Fraction(LARGEST), id="largest resolution"),
        pytest.param(
            [2 * TINY, 3 * TINY, 6 * TINY],
            Fraction(TINY) * 3 / 2,
            id="resolution rounded as a subnormal",
        ),
        pytest.param(
            [5 * TINY, 7 * TINY, 2.0**-1060 + TINY],
            Fraction(TINY) * 7 / 3,
            id="another subnormal resolution",
        ),
        pytest.param([2.0**53, 2.0**53 + 2, 2.0**60], Fraction(1), id="grid scores beyond 2^53"),
        pytest.param([1e300, 2e300], Fraction(1, 3), id="grid scores beyond 2^64"),
    ],
)
def test_extreme_grids_are_exact(values, resolution):
    scores = [math.floor(Fraction(decimal(value)) / resolution) for value in values]
    assert_reads_as(FloatColumn(np.array(values), resolution), scores)


@pytest.mark.parametrize(
    "resolution", [Fraction(1, 10), Fraction(1, 3), Fraction(0.1), Fraction(1, 64), Fraction(10**6)]
)
def test_values_next_to_a_grid_point_fall_on_the_right_side(resolution):
    values = []
    for step in (-(10**6), -7, -1, 0, 1, 3, 6, 7, 10**6, 2**50 + 1):
        point = float(step * resolution)
        values += [math.nextafter(point, -math.inf), point, math.nextafter(point, math.inf)]
    scores = [math.floor(Fraction(decimal(value)) / resolution) for value in values]
    assert_reads_as(FloatColumn(np.array(values), resolution), scores)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_a_score_that_is_not_finite_is_refused_without_quoting_any(dtype, bad):
    with pytest.raises(DataError, match="NaN or infinite") as caught:
        FloatColumn(np.array([1234.0, bad, -5.5], dtype), Fraction(1))
    assert not any(text in str(caught.value) for text in ("1234", "5.5"))


def test_an_empty_column_of_floats_is_allowed():
    assert FloatColumn(np.array([], float), Fraction(1)).listed() == 0


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_a_profile_finds_ranks_among_scores_below_0(rank):
    """The search once looked less deep each time, and did not end."""
    profile = Profile(IntegerColumn(np.array([-5, -7, -7, -9])), universe=4)
    assert profile.window(0, rank=rank).depth(rank) == [0, 2, 2, 4][rank - 1]
