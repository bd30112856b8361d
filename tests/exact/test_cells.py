"""Cells of sets and exponential weights: floats against balls, what their errors are stated to be,
widths.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx

from privmax.mechanisms import cells as module
from privmax.mechanisms.cells import FEW, LOOKED_AT, Cells, _draw_place, choices, is_large
from privmax.mechanisms.contract import ROUNDING
from privmax.mechanisms.weights import clip_width, round_chances, shares
from privmax.noise.balls import START, precision
from privmax.noise.samplers import weighted
from privmax.testing import ScriptedCoins, SeededCoins

UNIT = 2.0**-53
"""A float is within this part of what it was rounded from."""

NOTHING = 1e-28
"""More than all cells weigh that a first look leaves out, beside the rest."""


@pytest.fixture(autouse=True)
def _fewer_cells(monkeypatch):
    """Floats are looked at from fewer cells on, so that balls to compare them with take less."""
    monkeypatch.setattr(module, "MANY", 1024)


def large_sets():
    """Sets of a hundred thousand among three times as many, on 80 levels: logarithms of weights are
    large, and floats lose digits.
    """
    levels = [(place, 2_500) for place in range(40)]
    return Cells([*levels, *((40 + place, 5_000) for place in range(40))], 10**5, *rates())


def rates():
    return Fraction(3, 4), Fraction(1, 4)


def test_a_first_look_at_large_sets_holds_the_truth():
    cells = large_sets()
    assert cells.has_look
    with precision(START):
        rough, look = cells.total(), cells._look
    with precision(400):
        exact = cells.total()
        exact_rows = cells._rows()
    assert rough.overlaps(exact)
    assert 0 < rough.rad() < 1e-6 * rough.mid()
    shares_of_rows = look.rows / look.rows.sum()
    for row, truth in zip(shares_of_rows.tolist(), exact_rows, strict=True):
        share = truth / exact
        assert abs(row - share) <= 4 * look.error * share + arb(NOTHING)


def test_the_law_of_large_sets_is_as_exact_as_it_states():
    cells = large_sets()
    assert cells.error < 1e-6
    assert_law(cells)


def assert_law(cells):
    """All probabilities are within the stated error of the truth."""
    with precision(400):
        total = cells.total()
        for place, (_, found) in enumerate(cells.chances()):
            for chance, weight in zip(found.tolist(), cells._row(place), strict=True):
                assert abs(chance - weight / total) <= cells.error * (weight / total) + arb(1e-290)


def test_few_cells_are_as_exact_as_they_state_however_large_the_sets():
    """Floats would be off in the tenth digit."""
    cells = Cells([(0, 2 * 10**5), (10, 10)], 10**5, *rates())
    assert not cells.has_look
    assert_law(cells)


def test_the_error_of_a_first_look_has_room_for_every_term_of_its_sums():
    """Added in any order, so many terms may be off by as many roundings."""
    number = 20_000
    cells = Cells([(place, 1) for place in range(number)], 1, *rates())
    cells._cut = -8.0 * FEW  # all weights are 1: logarithms take nothing of the error
    cells._logs = np.zeros(len(cells.prefixes)), np.zeros(len(cells.reaches))
    assert cells._look.error >= number * UNIT


def test_a_first_look_needs_no_prefix():
    """Sets of two from a best level of three, and single candidates below."""
    cells = Cells([(0, 3), *((place, 1) for place in range(1, 1100))], 2, *rates())
    assert cells.has_look
    assert cells.prefixes == [0]
    assert cells.error < 1e-9
    assert_law(cells)


def single(number, size, step=1, rate=Fraction(1, 4)):
    """Sets among candidates of different scores."""
    levels = [(step * place + place // 3, 1) for place in range(number)]
    return Cells(levels, size, rate, rate / 3)


@pytest.mark.parametrize(
    ("cells", "narrow"),
    [
        (single(60, 20), True),
        (Cells([(0, 3), (2, 1), (3, 1), (9, 4), (11, 2), (12, 1), (13, 1)], 6, *rates()), True),
        (Cells([(0, 1), (4, 10**6), (5, 3)], 3, *rates()), False),
    ],
    ids=["one by one", "levels", "wide"],
)
def test_sums_by_a_table_of_factorials_are_those_of_binomials(cells, narrow):
    """In balls that are nearly as small as the precision allows."""
    assert cells._is_narrow == narrow
    with precision(START):
        _, reaches = cells._both_weights()
        stepwise = cells._sums_by_steps(reaches)
        sums = cells._sums_by_table(reaches) if narrow else stepwise
        rows = [cells._choose(p, reaches) for p in cells.prefixes]
    with precision(400):
        _, exact = cells._both_weights()
        for p, *found in zip(cells.prefixes, sums, stepwise, map(sum, rows), strict=True):
            truth = sum(
                math.comb(u - p, cells.size - p) * reach
                for u, reach in zip(cells.reaches, exact, strict=True)
            )
            for one in found:
                assert one.overlaps(truth)
                assert one.rad() <= abs(truth) * 2.0 ** (16 - START)


FAR_AND_NEAR = [single(900, 300), single(900, 300, 40), single(2000, 40, rate=Fraction(1, 900))]


def assert_nothing_heavy_is_left_out(cells):
    """Rows without the cells that are left out, and rows of all cells."""
    found = cells._log_rows()
    whole = np.array(
        [np.logaddexp.reduce(cells._log_row(place)) for place in range(len(cells.prefixes))]
    )
    most = whole.max()
    assert np.all(found <= whole + 1e-9)
    assert np.abs(np.exp(found - most) - np.exp(whole - most)).max() <= NOTHING + 1e-9
    assert np.logaddexp.reduce(found) == pytest.approx(np.logaddexp.reduce(whole), abs=1e-11)
    gone = np.exp(whole - most)[np.isneginf(found)]
    assert gone.sum() <= NOTHING
    return len(gone)


@pytest.mark.parametrize("cells", FAR_AND_NEAR, ids=["near", "far", "flat"])
def test_what_a_first_look_leaves_out_is_as_good_as_nothing(cells):
    assert cells.has_look
    assert_nothing_heavy_is_left_out(cells)


def test_a_first_look_leaves_out_most_rows_where_scores_are_far_apart():
    assert assert_nothing_heavy_is_left_out(single(900, 300, 40)) > 100


def test_blocks_that_are_bounded_by_the_wrong_corner_are_noticed(monkeypatch):
    cells = single(900, 300)
    honest = Cells._log_ways

    def wrong(self, prefixes, reaches):
        found = honest(self, prefixes, reaches)
        return found / 2 if len(prefixes) > 1 else found

    monkeypatch.setattr(Cells, "_log_ways", wrong)
    with pytest.raises(AssertionError):
        assert_nothing_heavy_is_left_out(cells)


@pytest.mark.parametrize("cells", [single(80, 40), single(80, 40, 10**9), single(80, 40, 10**15)])
def test_floats_bound_the_sum_over_prefixes(cells):
    """Far apart, all of its terms are tiny; then floats are too coarse, and balls are asked for."""
    assert cells.has_look
    with precision(START):
        rough = cells.last()
    with precision(10**4):
        exact = cells.last()
    assert rough.overlaps(exact)
    assert rough.rad() < 1e-2 * rough.mid()


def test_floats_that_are_too_coarse_are_not_used():
    assert single(80, 40)._last_look is not None
    assert single(80, 40, 10**15)._last_look is None


@pytest.mark.parametrize("step", [10**17, 10**30, 10**200])
def test_depths_of_any_size_are_looked_at(step):
    cells = single(80, 40, step)
    assert cells.has_look
    with precision(START):
        assert cells.total().overlaps(arb(1))
        assert cells.draw(SeededCoins(1)) == (40, 40)


@pytest.mark.parametrize("rate", [Fraction(1, 2**401), Fraction(2**401)])
def test_rates_that_floats_cannot_square_are_for_balls(rate):
    assert not single(80, 40, rate=rate).has_look


def test_places_are_those_of_balls_coin_by_coin():
    """The same outcome, from the same number of bits."""
    weights = np.array([3.0, 1.0, 0.0, 5.0, 1e-9, 2.0])

    def exact():
        return [arb(weight) for weight in weights.tolist()]

    for script in range(1 << 10):
        found = []
        for draw in (partial(_draw_place, weights, 1e-12, exact), partial(weighted, exact)):
            coins = Bits(script, 10)
            found.append((draw(coins), coins.used))
        assert found[0] == found[1]


class Bits:
    """Scripted bits, and then zeros and ones in turn."""

    def __init__(self, script, length):
        self._script, self._length = ScriptedCoins(script, length), length
        self.used = 0

    def bits(self, n):
        assert n == 1
        self.used += 1
        return self._script.bits(1) if self.used <= self._length else self.used % 2


def test_a_place_too_near_a_cut_is_asked_of_balls():
    """The cut is at a third; floats put it a little before, and the real is between the two."""
    asked = []

    def exact():
        asked.append(True)
        return [arb(1), arb(2)]

    rough = np.array([1 - 1e-9, 2.0])
    third = sum(1 << 2 * place for place in range(32))  # 0.010101… in 64 bits, below a third
    assert _draw_place(rough, 1e-9, exact, Bits(third << 1, 65)) == 0
    assert asked
    assert LOOKED_AT < 64
    assert _draw_place(rough, 1e-9, exact, Bits(1, 1)) == 1
    assert len(asked) == 1


def test_only_differences_of_depths_count():
    near, far = (Cells([(at, 1), (at + 5, 2), (at + 6, 2)], 2, *rates()) for at in (0, 70))
    assert far.numbers() == pytest.approx(near.numbers(), rel=1e-11)
    with precision(200):
        assert far.total().overlaps(near.total())


def test_other_threads_may_change_the_precision_at_any_time(monkeypatch):
    """It is one number for the whole process. Balls get wider by that, and stay true."""
    with precision(400):
        exact = single(80, 40)._rows()
    asked = 0

    def meddle(number, size):
        nonlocal asked
        asked += 1
        ctx.prec = (START, 200, 200)[asked % 3]
        return choices(number, size)

    monkeypatch.setattr(module, "choices", meddle)
    cells = single(80, 40)
    assert cells.has_look
    with precision(200):
        rows = cells._rows()
    with precision(200):
        total = cells.total()
    assert all(row.overlaps(truth) for row, truth in zip(rows, exact, strict=True))
    with precision(400):
        assert total.overlaps(sum(exact, start=arb(0)))


@pytest.mark.parametrize("step", [1, 40, 10**200], ids=["near", "far", "farthest"])
@pytest.mark.parametrize("rate", [Fraction(1, 2**390), Fraction(1, 4), Fraction(2**390)])
def test_a_draw_takes_no_notice_of_what_numpy_was_told_to_refuse(step, rate):
    """Whether a weight is too small for a float is a fact of the data."""
    with np.errstate(all="raise"):
        cells = single(400, 200, step, rate)
        assert cells.has_look
        prefix, reach = cells.draw(SeededCoins(1))
        assert prefix <= 200 <= reach
        with precision(START):
            assert cells.total().is_finite()
            assert cells.last().is_finite()


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, 10**40])
def test_pairs_are_counted_however_many_candidates_there_are(number):
    with precision(400):
        assert choices(number, 2) == choices(number, number - 2) == number * (number - 1) // 2


# Weights


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 7), Fraction(1), Fraction(300)])
@pytest.mark.parametrize("mass", [Fraction(1, 2**30), Fraction(1), Fraction(3), Fraction(10**40)])
def test_a_window_is_as_wide_as_clipping_asks_and_no_wider(scale, mass):
    """A sixteen-millionth of probability may move."""
    width = clip_width(scale, mass)

    def lost(width):
        return math.log(mass) - width / float(scale)

    assert width >= 1
    assert lost(width) <= -24 * math.log(2)
    assert width == 1 or lost(width - 1) > -24 * math.log(2)


def test_what_cancels_is_asked_for_with_more_digits():
    """At the first precision nothing is left of the third."""
    large = arb(2) ** 120
    assert round_chances(lambda: [(large + arb(1) / 3) - large]) == [1 / 3]


def test_shares_are_as_exact_as_they_state():
    found = shares(lambda: [arb(1), arb(2), arb(4)])
    with precision(200):
        for chance, weight in zip(found, (1, 2, 4), strict=True):
            off = abs(arb(chance) * 7 / weight - 1)
            assert 0 < off < ROUNDING


def test_a_share_that_cancels_is_asked_for_with_more_digits():
    """At the first precision all of the other share is known, and nothing of this one."""
    large = arb(2) ** 120
    _, found = shares(lambda: [arb(1), ((large + arb(1) / 3) - large) / 2**200])
    assert found == pytest.approx(2.0**-200 / 3, rel=ROUNDING, abs=0)


@pytest.mark.parametrize("step", [1, 7])
def test_weights_of_prefixes_are_those_of_their_cells(step):
    """Sums go from prefix to prefix where they are neighbors, and begin again where levels tie."""
    levels = [(step * place, 1 + (place % 3 == 2)) for place in range(40)]
    for size in (1, 2, 5, 9, 20):
        cells = Cells(levels, size, *rates())
        with precision(400):
            rows = cells._rows()
            for place, row in enumerate(rows):
                assert (row / sum(cells._row(place), start=arb(0)) - 1).overlaps(arb(0))
                assert row.rad() < row.mid() * arb(2) ** -350


def test_weights_at_a_higher_precision_are_used_again():
    cells = single(30, 5)
    with precision(200):
        rows = cells._rows()
    with precision(100):
        assert cells._rows() is rows
    with precision(300):
        assert cells._rows() is not rows


def test_sets_that_are_not_large_need_no_floats(monkeypatch):
    """However their candidates are spread; the largest number of cells has no ties."""
    monkeypatch.undo()
    for size in range(1, 21):
        for width in range(size + 1, 300, 7):
            if not is_large(size, width):
                assert not single(width, size).has_look
    assert is_large(20, 300)
    assert single(300, 20).has_look


def test_more_cells_are_left_to_balls_where_numpy_is_not_loaded(monkeypatch):
    cells = single(300, 20)
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "numpy")
    assert not is_large(100, 400)
    assert not cells.has_look
    assert is_large(1000, 2200)
