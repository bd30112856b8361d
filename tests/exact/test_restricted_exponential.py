"""The restricted exponential mechanism: private in both directions exactly where it has its
margin.
"""

from __future__ import annotations

from itertools import product

import pytest

from privmax import Profile, RestrictedExponential
from privmax.auditing import divergence

EPSILON, BETA = 1, 0.05


def table(mechanism, scores):
    law = mechanism.law(
        Profile([(s, scores.count(s)) for s in set(scores)], universe=len(scores)).window(100)
    )
    return {place: law.of(score) for place, score in enumerate(scores)}


def worst(mechanism, scores):
    found = 0.0
    moves = product((-1, 0, 1), repeat=len(scores))
    if mechanism.neighbors == "add-remove":
        moves = [*product((0, 1), repeat=len(scores)), *product((0, -1), repeat=len(scores))]
    for move in moves:
        other = tuple(score + step for score, step in zip(scores, move, strict=True))
        here, there = table(mechanism, scores), table(mechanism, other)
        found = max(found, divergence(here, there, EPSILON), divergence(there, here, EPSILON))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("near", [1, 2, 3])
def test_with_its_margin_it_is_private_in_both_directions(neighbors, near):
    mechanism = RestrictedExponential(epsilon=EPSILON, near=near, neighbors=neighbors)
    margin = mechanism.margin(BETA)
    for inner in product(range(3), repeat=near - 1):
        top = (50, *(50 - depth for depth in inner))
        assert worst(mechanism, (*top, 50 - margin, 50 - margin)) <= BETA + 1e-12


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_without_a_margin_it_is_not(neighbors):
    mechanism = RestrictedExponential(epsilon=EPSILON, near=2, neighbors=neighbors)
    assert worst(mechanism, (50, 49, 49, 49)) > 2 * BETA


def test_the_margin_is_the_papers():
    assert (
        RestrictedExponential(epsilon="1/3", near=1, neighbors="replace").margin("1e-6") == 85
    )  # 2 + 6·ln(1e6)
