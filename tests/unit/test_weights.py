"""Draws of a block by weight: floats look first, and balls decide what they leave open."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from privmax.mechanisms import weights
from privmax.mechanisms.weights import block_weights, draw_block
from privmax.noise.balls import precision
from privmax.noise.samplers import weighted
from privmax.testing import SeededCoins


def cases(chance):
    """Blocks of all kinds: near and far, few and many candidates, some of them gone."""
    for _ in range(200):
        rate = Fraction(chance.randrange(1, 1000), chance.choice([1, 7, 10**3, 10**6, 10**12]))
        unit = max(1, int(1 / rate))
        depths = sorted({chance.randrange(chance.choice([3, 60, 4000]) * unit) for _ in range(30)})
        largest = chance.choice([2, 100, 10**12])
        counts = [chance.randrange(largest) for _ in depths]
        if sum(counts):
            yield list(zip(depths, counts, strict=True)), rate


def exact_cuts(blocks, rate):
    with precision(200):
        every = block_weights(blocks, rate)
        total = sum(every)
        sums = [sum(every[: place + 1]) / total for place in range(len(every))]
        return [float(part) for part in sums]


def test_shares_in_floats_are_off_by_less_than_is_doubted():
    looked = left_out = 0
    for blocks, rate in cases(random.Random(1)):
        places, cuts = weights._look(blocks, rate)
        exact = exact_cuts(blocks, rate)
        for place, cut in zip(places, cuts, strict=True):
            if cut != 2:
                assert abs(cut - exact[place]) < weights.DOUBT / 4
        assert all(count == 0 or exact[place] > 1 - weights.DOUBT / 4 or place in places
                   for place, (_, count) in enumerate(blocks))  # fmt: skip
        assert (cuts[-1] == 2) == all(place in places or not count
                                      for place, (_, count) in enumerate(blocks))  # fmt: skip
        looked += 1
        left_out += cuts[-1] != 2
    assert looked > 150
    assert left_out > 20


@pytest.mark.parametrize("doubt", [weights.DOUBT, 2.0**-6])
def test_coins_draw_what_balls_draw_even_where_floats_are_off(monkeypatch, doubt):
    look, chance = weights._look, random.Random(2)

    def bend(blocks, rate):
        places, cuts = look(blocks, rate)
        bent = (min(cut, 1 - doubt) + chance.uniform(-doubt, doubt) for cut in cuts)
        return places, sorted(bent)

    monkeypatch.setattr(weights, "DOUBT", doubt)
    monkeypatch.setattr(weights, "_look", bend)
    for number, (blocks, rate) in enumerate(cases(random.Random(3))):
        expected = weighted(lambda: block_weights(blocks, rate), SeededCoins(number))  # noqa: B023
        assert draw_block(blocks, rate, SeededCoins(number)) == expected


@pytest.mark.parametrize(
    ("blocks", "rate"),
    [
        ([(0, 1 << 64)], Fraction(1)),
        ([(0, 1)], Fraction(2**500)),
        ([(0, 1)], Fraction(1, 2**500)),
        ([(place, 1) for place in range(weights.MOST_BLOCKS + 1)], Fraction(1, 10**6)),
    ],
)
def test_floats_do_not_look_where_they_are_too_coarse(blocks, rate):
    assert weights._look(blocks, rate) == ([], [])
    assert 0 <= draw_block(blocks, rate, SeededCoins(1)) < len(blocks)
