"""Blocks of a discrete Gaussian: their law is exact, and so are the bounds in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privmax.noise.balls import ball, precision
from privmax.noise.blocks import Blocks
from privmax.testing import SeededCoins

SMALL = Fraction(4096)  # the least variance whose blocks are of two numbers
VARIANCES = [SMALL, Fraction(10**6, 7), Fraction(2**50, 3), Fraction(2**80, 5), Fraction(2**96)]


class Script:
    """The given answers, and after them bits of one kind."""

    def __init__(self, *answers, bit=None):
        self.answers = list(answers)
        self.bit = bit

    def bytes(self, n):
        answer = self.answers.pop(0)
        assert len(answer) == n
        return answer

    def bits(self, n):
        assert self.bit is not None, "a coin too many"
        return ((1 << n) - 1) * self.bit


def first_bits(number, count):
    """The block's 16 bits, and the 48 after them as they are read."""
    assert count == 64
    low = (number & (1 << 48) - 1) << 16
    return (number >> 48).to_bytes(2, "little"), low.to_bytes(8, "little")


def chance(blocks, value):
    """Of a round: that it draws the value and accepts it."""
    size = abs(value)
    shares = [
        one - before for before, one in zip([0, *blocks._cuts()], blocks._cuts(), strict=False)
    ]
    if not size:
        return shares[0]
    side = 0 if value > 0 else 1
    if size < blocks.reach:
        index, offset = divmod(size - 1, 1 << blocks.shift)
        block = 1 + index + side * len(blocks._firsts)
        accept = (-ball(blocks._exponent(block, offset))).exp()
        return shares[block] / (1 << blocks.shift) * accept
    share = (1 - blocks._cuts()[-2]) / 2
    excess, rate = size - blocks.reach, ball(blocks.reach / blocks.variance)
    accept = (-ball(excess**2 / (2 * blocks.variance))).exp()
    return share * (-excess * rate).exp() * -(-rate).expm1() * accept


@pytest.mark.parametrize(
    "blocks",
    [Blocks(Fraction(1, 3)), Blocks(Fraction(9), spread=1), Blocks(SMALL, spread=1)],
    ids=lambda blocks: str(blocks.variance),
)
def test_a_round_accepts_each_number_in_proportion_to_its_weight(blocks):
    edge = blocks.reach
    with precision(2000):
        one = chance(blocks, 0)
        for value in (1, -1, 2, 3, -edge + 1, edge - 1, edge, -edge, edge + 3):
            weight = (-ball(value**2 / (2 * blocks.variance))).exp()
            assert abs(chance(blocks, value) / one / weight - 1) < 1e-60


@pytest.mark.parametrize("variance", VARIANCES)
def test_bounds_of_a_chance_hold_it_and_are_close(variance):
    blocks, rng = Blocks(variance), np.random.default_rng(1)
    block = rng.integers(1, 2 * len(blocks._firsts) + 1, 300).astype(np.int16)
    offset = rng.integers(0, 1 << blocks.shift, 300)
    offset[:2] = 0, (1 << blocks.shift) - 1
    low, high = blocks._accept_bounds(block, offset)
    for place in range(300):
        x = blocks._exponent(int(block[place]), int(offset[place]))
        with precision(200):
            value = (-ball(x)).exp() * (1 << 32)
            assert int(low[place]) <= value <= int(high[place])
            assert int(blocks._sure[block[place]]) * (1 << 24) <= value
        assert high[place] - low[place] < 16 + float(x) ** 4 / 24 * 2**32


def test_a_word_that_ties_with_a_cut_is_decided_by_further_bits():
    blocks = Blocks(Fraction(4))
    for cut in (0, 1, 5, len(blocks._firsts) + 2):
        words = first_bits(int(blocks._lows[cut]), 64)
        assert blocks._draw_block(1, Script(*words, bit=0)).tolist() == [cut]
        assert blocks._draw_block(1, Script(*words, bit=1)).tolist() == [cut + 1]


def test_words_next_to_a_tie_need_no_further_bits():
    blocks = Blocks(Fraction(4))
    for cut in (0, 1, 5):
        before, after = int(blocks._lows[cut]) - 1, int(blocks._highs[cut]) + 1
        assert blocks._draw_block(1, Script(*first_bits(before, 64))).tolist() == [cut]
        assert blocks._draw_block(1, Script(*first_bits(after, 64))).tolist() == [cut + 1]


def test_sixteen_bits_that_leave_one_block_need_no_more():
    blocks = Blocks(Fraction(4))
    with precision(96):
        ends = [float(cut) * 2**16 for cut in [0, *blocks._cuts()]]
    for block in (0, 1, 5):
        word = int((ends[block] + ends[block + 1]) / 2)  # in the middle of its share
        assert blocks._draw_block(1, Script(word.to_bytes(2, "little"))).tolist() == [block]


def test_an_acceptance_that_ties_is_decided_by_further_bits():
    blocks = Blocks(SMALL)
    block, offset = np.array([40], np.int16), np.array([1])
    with precision(200):
        exact = int(((-ball(blocks._exponent(40, 1))).exp() * (1 << 32)).floor().unique_fmpz())
    assert exact >> 24 >= blocks._sure[40]

    def reject(word, bit=None):
        words = bytes([word >> 24]), ((word & (1 << 24) - 1) << 8).to_bytes(4, "little")
        return blocks._reject(block, offset, Script(*words, bit=bit)).tolist()

    assert reject(exact, bit=0) == []
    assert reject(exact, bit=1) == [0]
    assert reject(exact - 12) == []
    assert reject(exact + 12) == [0]


@pytest.mark.parametrize("block", [1, 2])
def test_first_digits_that_are_equal_to_the_sure_ones_do_not_decide(block):
    """They may still be those of a number above the chance, which is rejected."""
    blocks = Blocks(SMALL)
    with precision(200):
        chance = ((-ball(blocks._exponent(block, 1))).exp() * 256).floor().unique_fmpz()
    assert chance == blocks._sure[block]
    script = Script(bytes([int(chance)]), b"\xff" * 4)
    assert blocks._reject(np.array([block], np.int16), np.array([1]), script).tolist() == [0]


@pytest.mark.parametrize(("last", "sign"), [(-1, -1), (-2, 1)])
def test_the_tails_lie_beyond_the_blocks_on_both_sides(last, sign):
    blocks = Blocks(Fraction(100))
    word = (1 << 64) - 1 if last == -1 else int(blocks._lows[-1]) - 1
    script, seeded = Script(*first_bits(word, 64)), SeededCoins(3)
    script.bits = seeded.bits
    values, rejected = blocks.draw(1, script)
    assert rejected.tolist() == []
    assert sign * values[0] >= blocks.reach


@pytest.mark.parametrize("variance", [Fraction(1, 10**9), Fraction(1, 2), Fraction(99), *VARIANCES])
def test_cuts_rise_and_few_cells_are_left_open(variance):
    blocks = Blocks(variance)
    assert (np.diff(blocks._lows.astype(object)) >= 0).all()
    assert (np.diff(blocks._highs.astype(object)) >= 0).all()
    assert (blocks._lows <= blocks._highs).all()
    assert np.mean(blocks._cells < 0) < 0.02
    assert len(blocks._firsts) < 600
