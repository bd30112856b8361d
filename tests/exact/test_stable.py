"""One row moves one vote, and votes keep the cost: over all ways to deal a few rows to blocks, with
mutants that do not.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from privmax import GapTest, PermuteAndFlip, Profile
from privmax.auditing import divergence
from privmax.learning import MarginalSelector, StableSelector
from privmax.learning.marginal import STEPS
from privmax.learning.votes import VoteSource, count_sets, deal
from privmax.mechanisms.contract import Outcome
from privmax.testing import SeededCoins

BLOCKS, FEATURES = 4, 3
ROWS = list(range(FEATURES))
"""A row is the column that it speaks for."""

EPSILON, DELTA = 4, "0.02"


class Majority:
    """Selects the column most rows of its block speak for; it fails where there are none."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, X, y):
        self.coef_ = X.sum(axis=0)
        if not len(X):
            raise ValueError("a private number: 7")
        return self


def table(rows):
    return np.eye(FEATURES)[list(rows)].reshape(len(rows), FEATURES)


VOTE = StableSelector(Majority(), size=1)._vote()


@cache
def vote(rows):
    return VOTE(table(rows), np.zeros(len(rows)))


def one_block(places):
    return [(place,) for place in places]


def votes_of(rows, blocks_of_rows):
    """What blocks vote for; a row may be in several, where a mutant says so."""
    parts = [
        tuple(row for row, where in zip(rows, blocks_of_rows, strict=True) if block in where)
        for block in range(BLOCKS)
    ]
    return Counter(map(vote, parts))


@cache
def law_of(mechanism, levels, universe):
    return mechanism.law(Profile(levels, universe=universe))


def chances(mechanism, votes, universe):
    levels = tuple(sorted(Counter(votes.values()).items()))
    if universe is not None:
        votes = {one: votes.get(one, 0) for one in [(), *((place,) for place in ROWS)]}
    exact = law_of(mechanism, levels, universe)
    found = {columns: exact.of(number) for columns, number in votes.items()}
    return {**found, None: max(0.0, 1 - sum(found.values()))}


@cache
def release_law(mechanism, rows, universe, spread):
    """The law of what is released, over all ways to deal the rows."""
    total = Counter()
    ways = list(itertools.product(range(BLOCKS), repeat=len(rows)))
    for places in ways:
        for item, chance in chances(mechanism, votes_of(rows, spread(places)), universe).items():
            total[item] += chance / len(ways)
    return dict(total)


def worst(mechanism, universe, spread=one_block):
    """The largest divergence between data sets with one row more, less or other."""
    found = 0.0
    for size in range(4):
        for rows in itertools.combinations_with_replacement(ROWS, size):
            others = [tuple(sorted((*rows, row))) for row in ROWS]
            others += [tuple(sorted((*rows[1:], row))) for row in ROWS] if rows else []
            for other in others:
                left, right = (
                    release_law(mechanism, one, universe, spread) for one in (rows, other)
                )
                found = max(
                    found,
                    divergence(left, right, mechanism.epsilon),
                    divergence(right, left, mechanism.epsilon),
                )
    return found


def test_a_stable_set_keeps_the_cost():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA, neighbors="replace")
    assert worst(mechanism, None) <= float(DELTA) + 1e-9


def test_any_set_keeps_the_cost():
    assert worst(PermuteAndFlip(epsilon=EPSILON, neighbors="replace"), 1 + FEATURES) <= 1e-9


def two_blocks(places):
    """A mutant: every row is in two blocks."""
    return [(place, (place + 1) % BLOCKS) for place in places]


def all_blocks(places):
    """A mutant: every row is in all blocks."""
    return [tuple(range(BLOCKS)) for _ in places]


def moved(spread):
    """How many votes one row more moves, at most."""
    found = 0
    for rows in itertools.product(ROWS, repeat=3):
        for places in itertools.product(range(BLOCKS), repeat=4):
            before = votes_of(rows, spread(places[:3]))
            for row in ROWS:
                after = votes_of((*rows, row), spread(places))
                found = max(found, (before - after).total())
    return found


@pytest.mark.slow
def test_one_row_moves_one_vote():
    assert moved(one_block) == 1
    assert moved(two_blocks) == 2


def test_a_row_in_all_blocks_breaks_the_cost():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA, neighbors="replace")
    assert worst(mechanism, None, all_blocks) > 2 * float(DELTA)


def test_constants_of_counts_break_the_cost():
    """A mutant: as if a row could only add a vote. It takes one from another set, too."""
    votes = [Counter({(0,): 4}), Counter({(0,): 3, (1,): 1})]
    mechanism = PermuteAndFlip(epsilon=EPSILON)
    left, right = (chances(mechanism, one, 1 + FEATURES) for one in votes)
    assert divergence(right, left, EPSILON) > 1e-4
    safe = PermuteAndFlip(epsilon=EPSILON, neighbors="replace")
    left, right = (chances(safe, one, 1 + FEATURES) for one in votes)
    assert divergence(right, left, EPSILON) <= 1e-9


def test_rows_are_dealt_to_one_block_each():
    for blocks in (2, 7, 100):
        parts = deal(1000, blocks, SeededCoins(1))
        assert len(parts) == blocks
        assert sorted(np.concatenate(parts).tolist()) == list(range(1000))


@pytest.mark.parametrize(("size", "features"), [(2, 4), (None, 3), (5, 3)])
def test_every_set_has_a_name(size, features):
    """Also those without votes, each once."""
    universe = count_sets(features, size)
    first = tuple(range(min(size or 2, features)))
    source = VoteSource(Counter({first: 3}), features, size, universe)
    names = source.names([Outcome(3), *(Outcome(0, place) for place in range(universe - 1))])
    assert len(set(names)) == universe
    below = source.names([Outcome(3, place, below=True) for place in range(universe)])
    assert set(below) == set(names)


# Marginal screening


def test_a_row_adds_no_more_than_it_says():
    """Whatever is in it, also far outside the bounds."""
    values = [-1e300, -3.0, -1.0, -0.3, 0.0, 1 / 3, 1.0, 1e300]
    for neighbors, most in (("add-remove", STEPS), ("replace", 2 * STEPS)):
        selector = MarginalSelector(
            1, 1, low=-1, high=1, label_low=-1, label_high=1, neighbors=neighbors
        )

        def scores(rows, selector=selector):
            X, y = np.array([row[:1] for row in rows]), np.array([row[1] for row in rows])
            return selector._source(X, y, selector._question(1), None)

        base = [(0.5, 0.5)] * 3
        found = set()
        for row in itertools.product(values, repeat=2):
            read = scores([*base, row])
            assert read.profile.sensitivity == most
            found.add(read.scores()[0][1])
        before = scores(base).scores()[0][1]
        assert max(abs(one - before) for one in found) <= STEPS
        assert max(found) - min(found) <= 2 * STEPS


def test_sums_move_either_way_so_counts_constants_are_not_used():
    question = MarginalSelector(2, 1, low=-1, high=1, label_low=-1, label_high=1)._question(9)
    assert question.choice.mechanism.neighbors == "replace"
    assert question.charge().neighbors == "add-remove"
    assert not question.charge().bounded_range
    assert question.charge().privacy.epsilon == Fraction(1)
