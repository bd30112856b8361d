"""A search on tiny data: its exact law against its cost, and broken variants that cost more.

Rows are labels 0 or 1. A learner answers "is there a row" by randomized response, so it costs
exactly epsilon, and its answer is its prediction. Scores have discrete Laplace noise, written out
far enough to leave nothing. The law of a search is the mean over all splits of rows of the law of
the best of K runs.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from privmax.learning.search_runs import RandomRepetition
from privmax.repetition import random_runs

EPSILON = 1.0
REACH = 60


def noise_law(scale):
    """Chances of discrete Laplace noise within REACH; what is beyond is added at the ends."""
    q = math.exp(-1 / scale)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-REACH, REACH + 1)}
    for end in (-REACH, REACH):
        law[end] = q**REACH / (1 + q)
    return law


def run_law(training, holdout, scale):
    """Chance of each (score, prediction) of one run; without a scale scores have no noise."""
    yes = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    found: dict[tuple[int, int], float] = {}
    for prediction, chance in (
        (1, yes if training else 1 - yes),
        (0, 1 - yes if training else yes),
    ):
        score = sum(1 if label == prediction else -1 for label in holdout)
        noise = {0: 1.0} if scale is None else noise_law(scale)
        for moved, part in noise.items():
            key = max(-REACH, min(REACH, score + moved)), prediction
            found[key] = found.get(key, 0.0) + chance * part
    return found


def best_law(run, runs):
    """Chance of each outcome to be the best of K runs; of equal scores either is, as by a coin:
    an outcome is cut in as many parts as there are ties, in turn.
    """
    generate = generator(runs)
    found: dict[tuple[int, int], float] = {}
    below = 0.0
    for score, group in itertools.groupby(sorted(run), key=lambda key: key[0]):
        keys = list(group)
        mass = math.fsum(run[key] for key in keys)
        gain = generate(min(1.0, below + mass)) - generate(below)
        for key in keys:  # runs are alike: the first of the best is any of them
            found[score, key[1]] = gain * run[key] / mass if mass else 0.0
        below = min(1.0, below + mass)
    return found


def generator(runs):
    eta, gamma = float(runs.eta), float(runs.gamma)
    assert eta == 1
    return lambda x: gamma * x / (1 - (1 - gamma) * x)


def search_law(rows, runs, scale=1 / EPSILON, *, split=True):
    """The law of a search on labels; not split: all rows are for training and for scoring."""
    found: dict[tuple[int, int], float] = {}
    splits = list(itertools.product((True, False), repeat=len(rows))) if split else [None]
    for coins in splits:
        training = [row for row, coin in zip(rows, coins, strict=True) if coin] if split else rows
        holdout = (
            [row for row, coin in zip(rows, coins, strict=True) if not coin] if split else rows
        )
        weight = math.prod(0.75 if coin else 0.25 for coin in coins) if split else 1.0
        for key, chance in best_law(run_law(training, holdout, scale), runs).items():
            found[key] = found.get(key, 0.0) + weight * chance
    return found


def largest_loss(pairs):
    """The largest |ln P/P'| over outcomes that are not too rare for floats; infinite where one is
    impossible on one side only.
    """
    worst = 0.0
    for one, other in pairs:
        for key in one.keys() | other.keys():
            p, q = one.get(key, 0.0), other.get(key, 0.0)
            if max(p, q) > 1e-10:
                worst = max(worst, abs(math.log(p / q)) if min(p, q) > 0 else math.inf)
    return worst


DATA = [rows for size in range(4) for rows in itertools.product((0, 1), repeat=size)]
ADDED = [(rows, (*rows, label)) for rows in DATA if len(rows) < 3 for label in (0, 1)]
REPLACED = [(rows, (*rows[:-1], 1 - rows[-1])) for rows in DATA if rows]
RUNS = random_runs("geometric", 10)


def cost(neighbors):
    made = RandomRepetition(runs=RUNS, delta=0, epsilon=1, train="0.75", neighbors=neighbors)
    return float(made.privacy().epsilon)


def laws(pairs, **options):
    return [tuple(search_law(rows, RUNS, **options) for rows in pair) for pair in pairs]


def test_laws_add_up():
    assert math.fsum(search_law((0, 1), RUNS).values()) == pytest.approx(1, abs=1e-12)


def test_a_search_costs_what_it_says():
    loss = largest_loss(laws(ADDED))
    assert 1.1 < loss <= cost("add-remove")


def test_under_replace_with_twice_the_noise_too():
    assert largest_loss(laws(REPLACED, scale=2 / EPSILON)) <= cost("replace")


def test_scores_without_noise_are_seen():
    assert largest_loss(laws(ADDED, scale=None)) > cost("add-remove")


def test_rows_for_training_and_for_scoring_at_once_are_seen():
    """Such a run costs the sum of the two, and the price is that of the larger."""
    assert largest_loss(laws(ADDED, split=False)) > cost("add-remove")


def test_half_the_noise_is_seen():
    assert largest_loss(laws(ADDED, scale=1 / (3 * EPSILON))) > cost("add-remove")


def test_the_price_of_an_epsilon_per_run_is_too_low():
    assert largest_loss(laws(ADDED)) > EPSILON


def test_noise_has_the_scale_that_is_audited():
    from privmax.testing import SeededCoins

    made = RandomRepetition(runs=RUNS, delta=0, epsilon=Fraction(1))
    coins = SeededCoins("search")
    drawn = [made.noise(coins) for _ in range(4000)]
    law = noise_law(1.0)
    for value in (0, 1, -1, 2):
        share = drawn.count(value) / len(drawn)
        assert share == pytest.approx(law[value], abs=4 * math.sqrt(law[value] / len(drawn)))
