"""The kind of score follows from what is declared, never from the values: neighbours of which one
has a decimal.

One individual may turn whole numbers into decimals. If the values decided which mechanism runs,
with steps of whole numbers or of a grid, that individual would choose it, and the answer would show
what was chosen.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

import privmax
from privmax.auditing import divergence

UNIVERSE = ["a", "b"]


def laws(mechanism, universe, data_sets):
    return [
        privmax.law(
            data, mechanism=mechanism, universe=universe, scores=privmax.Scores(sensitivity="0.01")
        )
        for data in data_sets
    ]


def needed(left, right, epsilon):
    """The delta that two laws need, whichever way round."""
    return max(divergence(left, right, epsilon), divergence(right, left, epsilon))


WHOLE_AND_DECIMAL = [{"a": 1, "b": 0}, {"a": 1.01, "b": 0}]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "kind", [privmax.Exponential, privmax.PermuteAndFlip, privmax.MaxOfLaplaces]
)
def test_a_decimal_changes_no_law_by_more_than_the_price(kind, neighbors):
    whole, decimal = laws(kind(epsilon=1, neighbors=neighbors), UNIVERSE, WHOLE_AND_DECIMAL)
    assert needed(whole, decimal, 1) < 1e-9
    for label in UNIVERSE:
        assert abs(math.log(whole[label] / decimal[label])) <= 1 + 1e-3


def test_a_decimal_changes_no_law_in_an_open_universe_by_more_than_the_price():
    mechanism = privmax.NestedMargin(epsilon=1, delta="1e-6")
    whole, decimal = laws(mechanism, "open", WHOLE_AND_DECIMAL)
    assert needed(whole, decimal, 1) <= 1e-6 + 1e-9


@pytest.mark.parametrize("numbers", [(int, float), (float, int)])
def test_a_whole_number_has_one_law_however_it_is_typed(numbers):
    mechanism = privmax.Exponential(epsilon=1)
    first, second = laws(
        mechanism, UNIVERSE, [{"a": number(3), "b": number(2)} for number in numbers]
    )
    assert first == second


def test_every_step_from_one_whole_number_to_the_next_stays_within_the_price():
    """A hundred individuals of one hundredth each, one after another; both ends are whole
    numbers.
    """
    steps = [
        {"a": round(1 + count / 100, 2) if count % 100 else 1 + count // 100, "b": 1}
        for count in range(101)
    ]
    found = laws(privmax.Exponential(epsilon=1), UNIVERSE, steps)
    assert max(needed(here, there, 1) for here, there in pairwise(found)) < 1e-9


def test_one_decimal_anywhere_among_whole_numbers():
    """The decimal is not that of the item whose chance is looked at."""
    data_sets = [{"a": 2, "b": 1, "c": 0}, {"a": 2, "b": 1, "c": 0.01}]
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    whole, decimal = laws(mechanism, ["a", "b", "c"], data_sets)
    assert needed(whole, decimal, 1) < 1e-9
