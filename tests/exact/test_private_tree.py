"""Trees grown split by split keep their cost: exact laws over all small neighbors, and mutants."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from privmax.learning import Category, Number, Schema
from privmax.learning.tree import TreeSplits, list_splits, score_splits
from privmax.mechanisms.exponential import Exponential
from privmax.sources.memory import MemorySource

SCHEMA = Schema(a=Number(0, 3, cells=3), b=Category(["x"]))
SPLITS = list_splits(SCHEMA)
EXAMPLES = list(product((0, 1, 2), (0, 1), (False, True)))
CASES = [list(data) for size in range(3) for data in combinations_with_replacement(EXAMPLES, size)]


def scores(data):
    codes = np.array([[one[0] for one in data], [one[1] for one in data]], np.uint8)
    return score_splits(
        codes.reshape(2, len(data)), np.array([one[2] for one in data], bool), SCHEMA
    )


def by_definition(data):
    found = []
    for feature, cells in SPLITS:
        branches = [
            [one for one in data if (one[feature] in cells) == side] for side in (True, False)
        ]
        labels = [[one[2] for one in branch] for branch in branches]
        found.append(sum(max(one.count(True), one.count(False)) for one in labels))
    return found


def test_scores_are_those_of_the_definition():
    for data in CASES:
        assert scores(data).tolist() == by_definition(data)


def test_one_row_more_raises_every_score_by_0_or_1():
    for data in CASES:
        for example in EXAMPLES:
            moved = scores([*data, example]) - scores(data)
            assert set(moved.tolist()) <= {0, 1}


def worst_loss(chooser, relation):
    """The largest log-ratio of a split's chance between neighbors."""
    worst = 0.0
    for data in CASES:
        for example in EXAMPLES:
            others = [[*data, example]]
            if relation == "replace":
                others = [[*data[:n], example, *data[n + 1 :]] for n in range(len(data))]
            for other in others:
                left, right = law(data, chooser), law(other, chooser)
                worst = max(
                    worst, *(abs(math.log(a / b)) for a, b in zip(left, right, strict=True))
                )
    return worst


def law(data, chooser):
    found = scores(data)
    source = MemorySource(found, universe=len(found))
    exact = chooser.law(source.profile)
    return [exact.of(int(score)) for score in found]


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_tree_of_one_split_costs_what_it_says(relation):
    """A split, and the counts of its leaves: where rows are exchanged, both change twice."""
    terms = TreeSplits(epsilon=2, depth=1, neighbors=relation)
    level = float(terms.level)
    times = 2 if relation == "replace" else 1
    loss = worst_loss(Exponential(epsilon=terms.level), relation)
    assert 0.7 * level < loss <= times * level + 1e-9
    assert loss + times * level <= 2 + 1e-9


@pytest.mark.slow
def test_mutant_a_level_of_replacing_that_costs_as_much_as_one_of_adding():
    terms = TreeSplits(epsilon=2, depth=1)
    loss = worst_loss(Exponential(epsilon=terms.level), "replace") + 2 * float(terms.level)
    assert loss > 2.2
