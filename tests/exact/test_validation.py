"""Validation by stability: exact laws on all small neighbors; a stability that is understated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import privmax
from privmax import Exponential, Ledger, PermuteAndFlip, Privacy
from privmax.learning import validate
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


# Training that is random


HIGH = 5000
"""So far above that whoever is lower is never drawn."""


def mixed_laws(epsilon=1):
    """Exponential mechanisms for two outcomes of training, on two neighbors: {r: (law, law)}.

    With r = 0 the rare "a" rises while the common "b" falls; with r = 1 "c" and "d" do the reverse.
    Every score moves by one step, and who is not in play is far below.
    """
    rare = -20
    neighbors = {
        0: ([rare, 0, -HIGH, -HIGH], [rare + 1, -1, -HIGH, -HIGH]),
        1: ([-HIGH, -HIGH, rare, 0], [-HIGH, -HIGH, rare - 1, 1]),
    }
    mechanism = Exponential(epsilon=epsilon, neighbors="replace")

    def chances(scores):
        exact = privmax.law(scores, mechanism=mechanism, universe=4)
        return [exact[place] for place in range(4)]

    return {r: tuple(map(chances, pair)) for r, pair in neighbors.items()}


def loss_range(one, other):
    losses = [math.log(q / p) for p, q in zip(one, other, strict=True) if min(p, q) > 1e-100]
    return max(losses) - min(losses)


def test_a_mean_over_training_has_no_bounded_range():
    laws = mixed_laws()
    for one, other in laws.values():
        assert loss_range(one, other) <= 1 + 1e-9
    sides = zip(*laws.values(), strict=True)
    mean = [[sum(both) / 2 for both in zip(*side, strict=True)] for side in sides]
    assert loss_range(*mean) > 1.9


def test_a_validation_is_not_charged_as_one_of_bounded_range(tmp_path):
    fits = {"good": lambda X, y: 1.0, "bad": lambda X, y: 0.0}
    rows = ([[0.0]], [0]), ([[0.0]], [0])
    options = {
        "score": lambda model, X, y: model,
        "stability": Stability(training=0.001, validation=0.001),
        "mechanism": Exponential(epsilon=1, neighbors="replace"),
    }
    assert Exponential(epsilon=1).bounded_range
    with Ledger.create(tmp_path / "b.db", budget=Privacy(9, "1e-6"), rule="zcdp") as ledger:
        validate(fits, *rows, **options, ledger=ledger)
        event = next(one for one in ledger.history() if one.kind == "reserved")
        assert event.body["price"]["ranged"] is False
        assert event.body["price"]["neighbors"] == "replace"
        assert event.totals["whole"]["state"]["tally"] == "1/2"
