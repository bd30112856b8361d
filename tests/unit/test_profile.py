"""Profiles: what is asked of the data and when, where the window ends, and order statistics without
expansion.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privmax.errors import DataError, ParameterError
from privmax.profile import Profile

MANY = 2**80


class Recorder:
    """A reader that remembers every question."""

    def __init__(self, *levels):
        self.levels = sorted(levels, reverse=True)
        self.questions = []

    def listed(self):
        self.questions.append("listed")
        return sum(count for _, count in self.levels)

    def maximum(self):
        self.questions.append("maximum")
        return self.levels[0][0] if self.levels else None

    def histogram(self, above):
        self.questions.append(above)
        return [level for level in self.levels if level[0] > above]


# What is asked, and when


def test_making_an_open_profile_asks_nothing():
    reader = Recorder((5, 1))
    Profile(reader)
    assert reader.questions == []


def test_making_a_closed_profile_asks_only_how_many_are_listed():
    reader = Recorder((5, 1))
    Profile(reader, universe=3)
    assert reader.questions == ["listed"]


def test_the_maximum_is_asked_once():
    reader = Recorder((5, 1))
    profile = Profile(reader)
    assert [profile.top(), profile.top(), profile.window(2).top] == [5, 5, 5]
    assert reader.questions.count("maximum") == 1


def test_the_maximum_of_nothing_is_asked_once():
    reader = Recorder()
    profile = Profile(reader)
    assert [profile.top(), profile.top()] == [0, 0]
    assert reader.questions == ["maximum"]


def test_a_histogram_is_asked_only_when_deeper_than_before():
    reader = Recorder((100, 1), (95, 2), (50, 3))
    profile = Profile(reader)
    for width in (5, 3, 5, 60, 10, 60):
        profile.window(width)
    assert reader.questions == ["maximum", 95, 40]


def test_a_rank_is_looked_for_ever_deeper_and_no_further_than_its_level():
    reader = Recorder((10**6, 1), (10**6 - 200, 2), (5, 3))
    window = Profile(reader).down_to(2)
    assert window.blocks() == [(0, 1), (200, 2), (201, None)]
    assert reader.questions == ["maximum", 10**6 - 127, 10**6 - 255]


def test_a_rank_beyond_all_that_is_listed_ends_at_the_unlisted_ones():
    assert Profile([(9, 1), (4, 3)]).down_to(10**9).blocks() == [(0, 1), (5, 3), (9, None)]
    assert Profile([]).down_to(3).blocks() == [(0, None)]
    assert Profile([(9, 1), (-4, 3)], universe=7).down_to(5).blocks() == [(0, 1), (9, 3), (13, 3)]
    with pytest.raises(ParameterError, match="rank"):
        Profile([(9, 1)]).down_to(0)


def test_a_shallow_window_after_a_deep_one_is_the_window_of_a_fresh_profile():
    levels = [(100, 1), (95, 2), (50, 3)]
    profile = Profile(levels, universe=9)
    profile.window(1000)
    assert profile.window(6) == Profile(levels, universe=9).window(6)


def test_an_open_universe_is_never_read_below_zero():
    reader = Recorder((7, 1), (-3, 4))
    profile = Profile(reader)
    profile.window(10**9)
    profile.window(10**12)
    assert reader.questions == ["maximum", 0]


def test_a_closed_universe_is_read_below_zero():
    reader = Recorder((7, 1), (-3, 4))
    Profile(reader, universe=5).window(20)
    assert reader.questions == ["listed", "maximum", -13]


# The top


@pytest.mark.parametrize(
    ("levels", "universe", "top"),
    [
        pytest.param([(3, 1)], None, 3, id="open"),
        pytest.param([], None, 0, id="open, nothing listed"),
        pytest.param([(-3, 1)], None, 0, id="open, all listed below the unlisted"),
        pytest.param([(-1, 1)], None, 0, id="open, all listed next below the unlisted"),
        pytest.param([(3, 1)], 9, 3, id="closed"),
        pytest.param([], 9, 0, id="closed, nothing listed"),
        pytest.param([(-3, 1)], 9, 0, id="closed, all listed below the unlisted"),
        pytest.param([(-1, 8)], 9, 0, id="closed, all listed but one next below it"),
        pytest.param([(-3, 9)], 9, -3, id="closed, everyone listed and negative"),
    ],
)
def test_the_top_counts_unlisted_candidates_at_zero(levels, universe, top):
    assert Profile(levels, universe=universe).top() == top


# The window


@pytest.mark.parametrize("width", [0, 1, 4, 5, 6, 99, 10**30])
def test_everything_at_or_below_the_floor_is_one_block(width):
    window = Profile([(10, 2), (5, 3), (-90, 4)], universe=9).window(width)
    above = [(depth, count) for depth, count in [(0, 2), (5, 3), (100, 4)] if depth < width]
    assert list(zip(window.depths, window.counts, strict=True)) == above
    assert window.floor == width
    assert window.rest == 9 - sum(count for _, count in above)


def test_unlisted_candidates_join_the_listed_ones_at_zero():
    assert Profile([(2, 1), (0, 3), (-1, 5)], universe=20).window(3).blocks() == [
        (0, 1),
        (2, 14),
        (3, 5),
    ]


def test_unlisted_candidates_below_the_floor_are_part_of_the_rest():
    assert Profile([(10, 1), (0, 3)], universe=20).window(4).blocks() == [(0, 1), (4, 19)]


def test_a_floor_nobody_stands_at_is_no_block():
    assert Profile([(10, 1), (8, 3)], universe=4).window(3).blocks() == [(0, 1), (2, 3)]


def test_the_floor_of_an_open_universe_is_infinite_and_never_below_zero():
    window = Profile([(10, 1), (2, 3), (0, 7), (-5, 1)]).window(1000)
    assert window.blocks() == [(0, 1), (8, 3), (10, None)]


def test_an_open_universe_with_nothing_listed_is_all_floor():
    window = Profile([]).window(5)
    assert window.blocks() == [(0, None)]
    assert [window.depth(1), window.depth(MANY), window.total(MANY)] == [0, 0, 0]


# Order statistics


def test_multiplicities_are_never_expanded():
    window = Profile([(5, MANY), (3, 2 * MANY), (-7, 1)], universe=8 * MANY).window(20)
    assert window.blocks() == [(0, MANY), (2, 2 * MANY), (5, 5 * MANY - 1), (12, 1)]
    assert [
        window.depth(rank) for rank in (1, MANY, MANY + 1, 3 * MANY, 3 * MANY + 1, 8 * MANY)
    ] == [0, 0, 2, 2, 5, 12]
    assert window.first(MANY + 1) == [(0, MANY), (2, 1)]
    assert window.total(MANY) == 5 * MANY
    assert window.total(MANY + 1) == 5 * MANY + 3
    assert window.total(8 * MANY) == 5 * MANY + 3 * 2 * MANY - 7


class Steep:
    """many/s² candidates at or above a score s, as of itemsets of all sizes; it knows how many it
    was asked for.
    """

    def __init__(self, top=10**5, many=10**12):
        self.top, self.many = top, many
        self.most = 0

    def listed(self):
        return 0

    def maximum(self):
        return self.top

    def histogram(self, above):
        self.most = max(self.most, self.many // max(above, 1) ** 2)
        upto = [self.many // score**2 for score in range(self.top, max(above, 1) - 1, -1)]
        levels = zip(range(self.top, 0, -1), upto, [0, *upto], strict=False)
        return [(s, many - less) for s, many, less in levels if many > less and s > above]


class Deep(Steep):
    """It finds the score of a rank: the highest s with number ≤ many/s²."""

    def nth(self, number):
        return math.isqrt(self.many // number)


@pytest.mark.parametrize("rank", [300, 2201, 20_201])
def test_a_reader_that_finds_a_rank_lists_hardly_more_than_it_takes(rank):
    reader = Deep()
    window = Profile(reader).down_to(rank)
    assert rank <= sum(window.counts) <= reader.most <= rank + rank // 100


def test_large_steps_list_them_all():
    reader = Steep()
    Profile(reader).down_to(20_201)
    assert reader.most >= 10**6


def test_the_sum_of_the_top_counts_clipped_scores():
    window = Profile([(10, 1), (-100, 2)], universe=3).window(4)
    assert [window.total(rank) for rank in (1, 2, 3)] == [10, 16, 22]


def test_the_open_floor_fills_any_rank():
    window = Profile([(10, 2)]).window(4)
    assert window.first(MANY) == [(0, 2), (4, MANY - 2)]
    assert window.depth(MANY) == 4
    assert window.total(MANY) == 20 + 6 * (MANY - 2)


def test_a_rank_beyond_the_universe_is_refused():
    window = Profile([(10, 2)], universe=3).window(4)
    assert window.depth(3) == 4
    with pytest.raises(ParameterError, match=r"^rank=4 .*size of the universe"):
        window.depth(4)


# Bad input


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param([(Fraction(7310427), 1)], id="score is a fraction"),
        pytest.param([(7310427.0, 1)], id="score is a float"),
        pytest.param([("7310427", 1)], id="score is text"),
        pytest.param([(True, 1)], id="score is a bool"),
        pytest.param([(1, 7310427.0)], id="count is a float"),
        pytest.param([(1, -7310427)], id="count is negative"),
        pytest.param([(7310427, 0)], id="count is zero"),
        pytest.param([(1, True)], id="count is a bool"),
        pytest.param([(7310427, 1), (7310427, 2)], id="level listed twice"),
    ],
)
def test_malformed_levels_are_refused_without_being_quoted(levels):
    with pytest.raises(DataError) as caught:
        Profile(levels)
    assert "7310427" not in str(caught.value)


@pytest.mark.parametrize("levels", [{7310427: 1}, [7310427], [(7310427,)], [(7310427, 1, 1)]])
def test_levels_that_are_not_pairs_are_refused_without_being_quoted(levels):
    with pytest.raises(DataError) as caught:
        Profile(levels)
    assert "7310427" not in str(caught.value)


@pytest.mark.parametrize("universe", [0, -1, 2.0, "open", True, np.float64(3)])
def test_a_universe_that_is_no_size_is_refused(universe):
    with pytest.raises(ParameterError, match=r"^universe="):
        Profile([(1, 1)], universe=universe)


def test_the_largest_universe_is_two_to_the_thousand():
    assert Profile([(1, 1)], universe=2**1000).window(0).rest == 2**1000
    with pytest.raises(ParameterError, match=r"must not exceed 2\^1000"):
        Profile([(1, 1)], universe=2**1000 + 1)


def test_a_universe_smaller_than_what_is_listed_is_refused_without_saying_how_many_are():
    with pytest.raises(
        ParameterError, match=r"^universe=2 .*smaller than the number of labels"
    ) as caught:
        Profile([(5, 7310427)], universe=2)
    assert "7310427" not in str(caught.value)


def test_a_universe_may_be_exactly_what_is_listed():
    assert Profile([(5, 2), (1, 1)], universe=3).window(9).blocks() == [(0, 2), (4, 1)]


@pytest.mark.parametrize("sensitivity", [0, -1, 0.5, "1", True])
def test_a_sensitivity_that_is_no_number_of_steps_is_refused(sensitivity):
    with pytest.raises(ParameterError, match=r"^sensitivity="):
        Profile([(1, 1)], sensitivity=sensitivity)


@pytest.mark.parametrize("width", [-1, 1.5, "3"])
def test_a_width_that_is_no_distance_is_refused(width):
    with pytest.raises(ParameterError, match=r"^width="):
        Profile([(1, 1)]).window(width)


def test_repr_shows_nothing():
    profile = Profile([(7310427, 365)], universe=5551212)
    window = profile.window(3)
    assert repr(profile) == str(profile) == "Profile(<private>)"
    assert repr(window) == str(window) == "Window(<private>)"


# Readers that give the highest levels at once


class Ranked(Recorder):
    """A recorder that gives them."""

    def highest(self, number):
        self.questions.append(f"highest {number}")
        return self.levels[:number]


FAR = [(10**9, 1), (10**8, 2), (10**6, 1), (1000, 5), (3, 100)]


def test_a_far_rank_is_found_with_one_question():
    ranked, plain = Ranked(*FAR), Recorder(*FAR)
    windows = [Profile(reader).window(10, rank=5) for reader in (ranked, plain)]
    assert windows[0] == windows[1]
    assert ranked.questions == ["highest 5", "maximum"]  # all levels are known then
    assert len(plain.questions) > 20


def test_what_lies_below_the_rank_takes_one_more_question():
    ranked = Ranked(*FAR)
    assert Profile(ranked).window(99_999_999, rank=2) == Profile(FAR).window(99_999_999, rank=2)
    assert ranked.questions == ["highest 2", "maximum", 1]


@pytest.mark.parametrize("universe", [None, 20, 200])
@pytest.mark.parametrize("seed", range(30))
def test_both_kinds_of_readers_give_the_same_windows(seed, universe):
    chance = np.random.default_rng(seed)
    scores = {int(score) for score in chance.zipf(1.3, 8).clip(max=10**9) - chance.integers(0, 9)}
    levels = [(score, int(chance.integers(1, 3))) for score in scores]
    one, other = (Profile(kind(*levels), universe=universe) for kind in (Ranked, Recorder))
    for width, rank in chance.integers(1, 21, (12, 2)).tolist():
        assert one.window(width, rank) == other.window(width, rank)
        assert one.down_to(rank) == other.down_to(rank)
