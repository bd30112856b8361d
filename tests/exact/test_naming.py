"""Whoever is drawn from a closed universe must be named: an audit over what `select` releases,
labels and all.
"""

from __future__ import annotations

from itertools import product

import pytest

import privmax
from privmax.auditing import divergence
from privmax.privacy import ADD_REMOVE, REPLACE

LABELS = ("a", "b", "c", "d")


def neighbours(highest):
    """Data sets by label, those at 0 left out as a count of rows would leave them, and one record
    more.
    """
    for scores in product(range(highest + 1), repeat=len(LABELS)):
        for touched in product((0, 1), repeat=len(LABELS)):
            if any(touched):
                more = [score + step for score, step in zip(scores, touched, strict=True)]
                yield tuple(
                    {x: n for x, n in zip(LABELS, row, strict=True) if n} for row in (scores, more)
                )


def worst(law, epsilon):
    return max(
        max(divergence(law(here), law(there), epsilon), divergence(law(there), law(here), epsilon))
        for here, there in neighbours(1)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [privmax.PermuteAndFlip(epsilon=1), privmax.Exponential(epsilon=1)], ids=repr
)
def test_a_universe_of_labels_keeps_the_price_though_labels_come_and_go_with_the_data(mechanism):
    assert worst(lambda data: privmax.law(data, mechanism=mechanism, universe=LABELS), 1) < 1e-9


@pytest.mark.slow
def test_mutant_that_releases_nothing_for_whoever_is_not_listed():
    """What a size alone would amount to, if it were accepted."""
    mechanism = privmax.PermuteAndFlip(epsilon=1)

    def law(data):
        named = privmax.law(data, mechanism=mechanism, universe=LABELS)
        listed = {label: chance for label, chance in named.items() if label in data}
        return {**listed, None: 1 - sum(listed.values())}

    assert worst(law, 1) > 0.3


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_a_size_that_does_not_name_everybody_is_refused(neighbors):
    with pytest.raises(
        privmax.ParameterError, match=r"^universe=4 is not allowed: fewer candidates are listed"
    ):
        privmax.select(
            {"a": 1, "b": 1}, epsilon=1, universe=4, scores=privmax.Scores(neighbors=neighbors)
        )


def test_a_size_beyond_all_bounds_is_refused_as_such():
    with pytest.raises(privmax.ParameterError, match=r"^universe='over 2\^1000'"):
        privmax.select({"a": 1}, epsilon=1, universe=10**5000)


def test_positions_name_everybody():
    drawn = {privmax.select([0, 0], epsilon=1, universe=5).item for _ in range(200)}
    assert drawn == {0, 1, 2, 3, 4}
