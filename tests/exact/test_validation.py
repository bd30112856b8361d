"""Validation by stability: exact laws on all small neighbors; a stability that is understated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from privmax import PermuteAndFlip
from privmax.learning.validation import Stability
from privmax.sources.memory import MemorySource
from privmax.sources.scale import GRID_STEPS

MECHANISM = PermuteAndFlip(epsilon=1, neighbors="replace")
ROWS = [0.0, 0.5, 1.0]
MOVES = 0.3
"""How far the score of a candidate moves with the mean of two training rows, at most."""


def scores(training, validation):
    """One candidate likes large rows, one small ones, and one hardly looks at training."""
    t, v = sum(training) / 2, sum(validation) / 4
    return [MOVES * t + v, MOVES * (1 - t) - v, 0.1 * t + 0.2]


def law(training, validation, stability):
    found = scores(training, validation)
    step = stability.most / GRID_STEPS
    source = MemorySource(found, universe=len(found), sensitivity=stability.most, resolution=step)
    drawn = MECHANISM.law(source.profile)
    steps = [score for _, score in source.scores()]
    return [drawn.of(score) for score in steps]


def largest_loss(stability):
    worst = 0.0
    for rows in itertools.product(ROWS, repeat=4):
        for place, other in itertools.product(range(4), ROWS):
            changed = (*rows[:place], other, *rows[place + 1 :])
            pair = (law(one[:2], one[2:], stability) for one in (rows, changed))
            for p, q in zip(*pair, strict=True):
                worst = max(worst, math.log(p / q))
    return worst


@pytest.mark.slow
def test_a_true_declaration_keeps_the_cost():
    stability = Stability(training=Fraction("0.15"), validation=Fraction("0.25"))
    assert 0.5 < largest_loss(stability) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("part", [2, 4])
def test_an_understated_one_is_seen(part):
    stability = Stability(training=Fraction("0.15") / part, validation=Fraction("0.25") / part)
    assert largest_loss(stability) > 1.2
