"""Points and hashed points: counted as by trying every rule; what the representation promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privmax import DataError, ParameterError
from privmax.learning import HashedPoints, Points, PrivateERM, Shape
from privmax.learning.classes.points import LARGEST, Point

SHAPE = Shape(features=1, labels=2)
RNG = np.random.default_rng(5)


def examples(domain, n=40):
    X = RNG.integers(-1, domain + 2, size=(n, 1))
    return X, RNG.integers(0, 2, size=n)


def by_definition(hypotheses, X, y):
    rules = [hypotheses.hypothesis(number, SHAPE) for number in range(hypotheses.size(SHAPE))]
    return [int(np.count_nonzero(rule.predict(X) == y)) for rule in rules]


@pytest.mark.parametrize("domain", [1, 2, 7, 30])
def test_points_are_counted_as_by_trying_each(domain):
    for _ in range(20):
        X, y = examples(domain, n=int(RNG.integers(0, 30)))
        counts = by_definition(Points(domain), X, y)
        scores = Points(domain).score(X, y, SHAPE)
        assert scores.maximum() == max(counts)
        levels = sorted(set(counts), reverse=True)
        assert scores.histogram(-1) == [(one, counts.count(one)) for one in levels]
        for score in {*counts, *(one + 1 for one in counts), 0}:
            exact = [number for number, one in enumerate(counts) if one == score]
            below = [number for number, one in enumerate(counts) if one <= score]
            assert [scores.at(score, i) for i in range(len(exact) + 1)] == [*exact, None]
            assert [scores.at_or_below(score, i) for i in range(len(below) + 1)] == [*below, None]


@pytest.mark.parametrize("domain", [7, 10**6])
def test_hashed_points_are_counted_as_by_trying_each(domain):
    hashed = HashedPoints(domain=domain, cells=5, hashes=3, seed="a")
    X, y = examples(domain)
    found = hashed.score(X, y, SHAPE)
    assert found.scores() == by_definition(hashed, X, y)


def test_two_elements_share_a_cell_no_more_often_than_one_in_cells():
    """What the representation rests on, over 4,000 seeds: a mean of at most 1/8, by 5 sigmas."""
    shared = 0
    for seed in range(4000):
        hashed = HashedPoints(domain=LARGEST, cells=8, hashes=1, seed=str(seed))
        rows = np.array([[123456789012], [987654321]])
        cell = next(
            number for number in range(1, 9) if hashed.hypothesis(number, SHAPE).predict(rows)[0]
        )
        shared += int(hashed.hypothesis(cell, SHAPE).predict(rows)[1])
    assert shared / 4000 < 1 / 8 + 5 * (1 / 8 * 7 / 8 / 4000) ** 0.5
    assert shared > 0


def test_a_hashed_point_is_learned_at_a_cost_that_does_not_grow_with_the_domain():
    """At epsilon 1 and 400 examples pure privacy cannot learn points of a domain of 2^50."""
    target = 123456789012345
    X = np.where(RNG.uniform(size=(400, 1)) < 0.5, target, RNG.integers(0, 2**50, size=(400, 1)))
    y = (X[:, 0] == target).astype(int)
    hashed = HashedPoints(domain=2**50, cells=64, hashes=8)
    learner = PrivateERM(hashed, epsilon=1, labels=[0, 1]).fit(X, y)
    assert np.mean(learner.predict(X) == y) > 0.9
    bounds = [
        PrivateERM(one, epsilon=1, labels=[0, 1]).excess_bound(10**4, features=1)
        for one in (hashed, HashedPoints(domain=100, cells=64, hashes=8), Points(2**50))
    ]
    assert bounds[0] == bounds[1] < bounds[2]


def test_a_point_is_learned_where_it_is_clear():
    X = np.array([[41]] * 500 + [[7]] * 100)
    y = (X[:, 0] == 41).astype(int)
    rule = PrivateERM(Points(1000), epsilon=1, labels=[0, 1]).fit(X, y).hypothesis_
    assert rule == Point(41)


def test_one_example_moves_every_score_by_at_most_one_and_one_way():
    for hypotheses in (Points(6), HashedPoints(domain=6, cells=3, hashes=2)):
        for _ in range(50):
            X, y = examples(6, n=8)
            more = np.array(by_definition(hypotheses, X, y))
            less = np.array(by_definition(hypotheses, X[:-1], y[:-1]))
            assert set((more - less).tolist()) <= {0, 1}


def test_numbers_that_are_not_whole_are_outside_of_the_domain():
    X, y = np.array([[2.5], [2.0], [-3.0]]), np.array([1, 1, 0])
    assert Points(9).score(X, y, SHAPE).histogram(0) == [(2, 1), (1, 8)]


@pytest.mark.parametrize("made", [Points(0), Points(LARGEST + 1), HashedPoints(domain=9, cells=0)])
def test_bad_parameters_are_refused(made):
    with pytest.raises(ParameterError):
        made.size(SHAPE)


def test_two_columns_are_refused():
    with pytest.raises(DataError, match="one column"):
        Points(9).size(Shape(features=2, labels=2))


def test_the_error_of_a_representation():
    """The best rule errs on at most 2/cells for most seeds, on the worst distribution: uniform."""
    cells, bad = 16, 0
    places = np.arange(512).reshape(-1, 1)
    for seed in range(60):
        hashed = HashedPoints(domain=512, cells=cells, hashes=3, seed=str(seed))
        y = (places[:, 0] == 77).astype(int)
        best = max(hashed.score(places, y, SHAPE).scores()[1:])
        bad += Fraction(512 - best, 512) > Fraction(2, cells)
    assert bad / 60 <= 2**-3 + 0.15


@pytest.mark.parametrize("more", [{"cells": 10**15}, {"hashes": 10**9}])
def test_more_rules_than_can_be_scored_are_refused(more):
    with pytest.raises(ParameterError, match=r"^cells=.* rules, and at most 16,777,216"):
        HashedPoints(domain=9, **more).size(SHAPE)
