"""Grids against exact fractions, look-ups against plain lists, and every outcome against every
candidate.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privmax.errors import ParameterError
from privmax.mechanisms.contract import Outcome
from privmax.sources import columns
from privmax.sources.columns import BigIntegerColumn, FloatColumn, IntegerColumn
from privmax.sources.memory import MemorySource
from privmax.sources.scale import ROUNDING

LEAST = 2.0**-1074
patient = settings(deadline=None)  # a busy machine is no failure

reals = st.floats(allow_nan=False, allow_infinity=False)
tame = st.floats(-1000, 1000)
resolutions = st.one_of(
    st.sampled_from(
        [
            Fraction("0.1"),
            Fraction(0.1),
            Fraction(1, 3),
            Fraction(1),
            Fraction(1, 64),
            Fraction(10**6),
        ]
    ),
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9),
    reals.filter(lambda value: value > 0).map(Fraction),
    st.integers(1, 50).flatmap(
        lambda top: st.integers(1, 50).map(lambda low: Fraction(top, low) * Fraction(LEAST))
    ),
    st.integers(1, 400).map(lambda digits: Fraction(3, 10**digits)),
    st.integers(1, 400).map(lambda digits: Fraction(10**digits, 3)),
)


@st.composite
def near_the_grid(draw):
    """(resolution, floats on, next to and far from its grid points)."""
    resolution = draw(resolutions)
    points = st.integers(-(2**55), 2**55) | st.integers(-20, 20)

    def rounded(step):
        try:
            return float(step * resolution)
        except OverflowError:
            return math.copysign(1.7976931348623157e308, step)

    beside = st.tuples(points.map(rounded), st.sampled_from([-math.inf, 0.0, math.inf])).map(
        lambda pair: math.nextafter(*pair) if pair[1] else pair[0]
    )
    finite = beside.filter(math.isfinite)
    return resolution, draw(st.lists(finite | reals | tame, min_size=1, max_size=8))


def decimal(value):
    """What a float prints as."""
    return Fraction(str(value))


def floor(value, resolution):
    return math.floor(decimal(value) / resolution)


def assert_reads_as(column, scores, edges):
    """Every answer of a column is the answer of the list of its scores."""
    assert column.scores() == scores
    assert column.maximum() == max(scores)
    for edge in edges:
        counted = Counter(score for score in scores if score > edge)
        assert column.histogram(edge) == sorted(counted.items(), reverse=True)
        level = [place for place, score in enumerate(scores) if score == edge]
        below = [place for place, score in enumerate(scores) if score <= edge]
        places = [(edge, index) for index in range(len(level) + 1)]
        assert column.find(places) == [*level, None]
        assert column.find_below(edge, range(len(below) + 1)) == [*below, None]
        assert column.find_below(edge, range(len(below), -1, -1)) == [None, *below[::-1]]


def around(scores):
    return {score + step for score in scores for step in (-1, 0, 1)}


# The grid of floats


@pytest.mark.slow
@patient
@given(
    near_the_grid(),
    st.sampled_from(["float64", "float32", "float16"]),
    st.sampled_from([1, 2, 1 << 17]),
)
@example((Fraction("0.1"), [0.1, 0.3, 0.7, -0.1, 0.0, -0.0]), "float64", 1 << 17)
@example((Fraction(LEAST) * 3 / 2, [3 * LEAST, 2 * LEAST, 6 * LEAST]), "float64", 1 << 17)
@example((Fraction(10**400), [1.5, -1.5]), "float64", 1 << 17)
@example((Fraction(1, 10**400), [1.5, -1.5, 0.0]), "float64", 1 << 17)
@example((Fraction(LEAST), [1.7976931348623157e308, -LEAST, LEAST]), "float64", 1 << 17)
def test_a_float_column_is_the_exact_floor_of_its_values(grid, dtype, chunk):
    resolution, values = grid
    with np.errstate(over="ignore", under="ignore"):
        array = np.array(values).astype(dtype)
    assume(np.isfinite(array).all())
    scores = [floor(value, resolution) for value in array]
    with patch.object(columns, "_CHUNK", chunk):
        assert_reads_as(FloatColumn(array, resolution), scores, around(scores))


@patient
@given(reals, reals, resolutions, st.fractions(min_value=0, max_value=3))
@example(0.1, 0.3, Fraction("0.1"), Fraction(0))
def test_scores_within_the_sensitivity_stay_within_its_grid_steps(here, there, resolution, slack):
    """Whatever the grid, no score moves further than the profile says, rounding included."""
    distance = abs(decimal(here) - decimal(there))
    sensitivity = distance * (1 + slack) / (1 + ROUNDING)
    assume(sensitivity > 0)
    source = MemorySource([here, there], sensitivity=sensitivity, resolution=resolution)
    (_, rounded_here), (_, rounded_there) = source.scores()
    assert abs(rounded_here - rounded_there) <= source.profile.sensitivity
    assert source.profile.sensitivity == math.ceil(distance * (1 + slack) / resolution)


# Look-ups in integers


@patient
@given(
    st.sampled_from(
        ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">u8"]
    ),
    st.sampled_from([1, 2, 3, 1 << 17]),
    st.sampled_from([0, 4, 1 << 16]),
    st.data(),
)
def test_an_integer_column_is_the_list_of_its_values(dtype, chunk, dense, data):
    bounds = np.iinfo(dtype)
    value = st.integers(int(bounds.min), int(bounds.max)) | st.sampled_from(
        [int(bounds.min), int(bounds.max)]
    )
    few = data.draw(st.lists(value, min_size=1, max_size=3))
    scores = data.draw(st.lists(st.sampled_from(few), min_size=1, max_size=9))
    with patch.object(columns, "_CHUNK", chunk), patch.object(columns, "_DENSE", dense):
        assert_reads_as(IntegerColumn(np.array(scores, dtype)), scores, around(scores))


@patient
@given(st.lists(st.integers() | st.sampled_from([2**70, -(2**70)]), min_size=1, max_size=9))
def test_a_column_of_big_integers_is_the_list_of_its_values(scores):
    assert_reads_as(BigIntegerColumn(scores), scores, around(scores))


# Outcomes


def outcomes(window):
    """Every outcome a mechanism can draw from a window, but for the infinite floor of an open
    universe.
    """
    for depth, count in zip(window.depths, window.counts, strict=True):
        yield from (Outcome(window.top - depth, index) for index in range(count))
    yield from (
        Outcome(window.top - window.floor, index, below=True) for index in range(window.rest or 0)
    )


few_scores = st.lists(st.integers(-9, 9), min_size=1, max_size=9)
widths = st.integers(0, 25)
chunks = st.sampled_from([1, 2, 3, 1 << 17])


@patient
@given(few_scores, st.integers(0, 4), widths, chunks)
def test_in_a_closed_universe_every_candidate_is_exactly_one_outcome(
    scores, unlisted, width, chunk
):
    with patch.object(columns, "_CHUNK", chunk):
        source = MemorySource(np.array(scores), universe=len(scores) + unlisted)
        drawn = source.names([*outcomes(source.profile.window(width))])
    assert sorted(drawn) == [*range(len(scores) + unlisted)]


@patient
@given(few_scores, st.integers(0, 4), widths, st.sampled_from([1, 2**70]))
def test_in_a_closed_universe_an_outcome_stands_for_a_candidate_of_its_score(
    scores, unlisted, width, scale
):
    """Those beyond the list stand at 0, and are named where padding with zeros would have put
    them.
    """
    scores = [score * scale for score in scores]
    padded = scores + [0] * unlisted
    source = MemorySource(scores, universe=len(padded))
    for outcome in outcomes(source.profile.window(width * scale)):
        score = padded[source.name(outcome)]
        assert score <= outcome.score if outcome.below else score == outcome.score
        assert source.name(outcome) == MemorySource(padded, universe=len(padded)).name(outcome)


@patient
@given(few_scores, widths, chunks)
def test_in_a_universe_of_which_all_are_listed_every_label_is_exactly_one_outcome(
    scores, width, chunk
):
    labels = [f"label {place}" for place in range(len(scores))]
    with patch.object(columns, "_CHUNK", chunk):
        source = MemorySource(dict(zip(labels, scores, strict=True)), universe=len(labels))
        drawn = source.names([*outcomes(source.profile.window(width))])
    assert sorted(drawn) == sorted(labels)


@patient
@given(few_scores, st.integers(1, 10**9))
def test_labels_that_are_fewer_than_the_size_declared_are_refused(scores, unlisted):
    data = {f"label {place}": score for place, score in enumerate(scores)}
    with pytest.raises(ParameterError, match="a size does not name the others") as caught:
        MemorySource(data, universe=len(data) + unlisted)
    assert "label 0" not in str(caught.value)


@patient
@given(few_scores, st.integers(0, 4), widths, chunks)
def test_in_a_declared_universe_every_label_is_exactly_one_outcome(scores, unlisted, width, chunk):
    labels = [f"label {place}" for place in range(len(scores) + unlisted)]
    with patch.object(columns, "_CHUNK", chunk):
        source = MemorySource(dict(zip(labels, scores, strict=False)), universe=labels)
        drawn = source.names([*outcomes(source.profile.window(width))])
    assert sorted(drawn) == sorted(labels)


@patient
@given(few_scores, widths, chunks)
def test_in_an_open_universe_every_candidate_above_the_floor_is_exactly_one_outcome(
    scores, width, chunk
):
    with patch.object(columns, "_CHUNK", chunk):
        source = MemorySource(np.array(scores))
        drawn = source.names([*outcomes(source.profile.window(width))])
    lowest = max(0, max(scores) - width)
    assert Counter(drawn) == Counter(place for place, score in enumerate(scores) if score > lowest)


@patient
@given(st.lists(tame, min_size=1, max_size=9), st.integers(0, 3), widths, chunks, resolutions)
def test_on_a_grid_every_candidate_is_exactly_one_outcome(
    scores, unlisted, width, chunk, resolution
):
    with patch.object(columns, "_CHUNK", chunk):
        source = MemorySource(
            scores, universe=len(scores) + unlisted, sensitivity=1, resolution=resolution
        )
        window = source.profile.window(width)
        for outcome in outcomes(window):
            item = source.name(outcome)
            level = floor(scores[item], resolution) if item < len(scores) else 0
            assert level <= outcome.score if outcome.below else level == outcome.score
        drawn = source.names([*outcomes(window)])
    assert sorted(drawn) == [*range(len(scores) + unlisted)]


@patient
@given(
    few_scores, st.sampled_from(["int8", "int32", "int64", "float32", "float64", "object"]), widths
)
def test_arrays_lists_and_mappings_have_one_profile(scores, dtype, width):
    values = [float(score) for score in scores] if dtype.startswith("float") else scores
    sources = [
        MemorySource(data, universe=universe)
        for data, universe in (
            (np.array(values, dtype), 12),
            (values, 12),
            (tuple(values), 12),
            (dict(zip("abcdefghi", values, strict=False)), list("abcdefghijkl")),
            (dict(zip("abcdefghijkl", values + [0] * (12 - len(values)), strict=True)), 12),
        )
    ]
    plain = MemorySource(scores, universe=12)
    assert all(source.profile.window(width) == plain.profile.window(width) for source in sources)
