"""Groups: the exact law of the whole table over small neighbors, mutants, and a walk of the draw.

Individuals are lists of rows, pairs of a group and an item. A neighbor has one individual more.
The law of the table is the product of the laws of its groups.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np

from privmax import GapTest, Groups, Privacy, Profile
from privmax.best_items import BestItems
from privmax.best_per_group import BestPerGroup
from privmax.one_key_each import OneKeyEach
from privmax.testing import walk

sys.path.append(str(Path(__file__).parent))

from plain_groups import largest_excess, levels_of, own_groups, restrict

EPSILON, DELTA = Fraction(1), Fraction(1, 10)
GROUPS = ("a", "b")
PEOPLE = (
    (("a", "x"),),
    (("a", "x"), ("a", "y")),
    (("a", "x"), ("b", "x")),
    (("b", "x"), ("b", "x"), ("a", "x")),
    (("b", "y"),),
    (("c", "x"), ("c", "x"), ("b", "x")),
)
"""In one group, in two with a tie, mostly in one, and partly in a group that is not declared."""

CROWDS = [crowd for size in range(4) for crowd in combinations_with_replacement(PEOPLE, size)]
"""All data sets of up to three individuals. With delta 1/10 three are already many."""


def rows_of(crowd):
    return [(who, group, item) for who, own in enumerate(crowd) for group, item in own]


@cache
def law_of(mechanism, counts):
    """The chances of each item of a group, and of None."""
    law = mechanism.law(Profile(levels_of(dict(counts))))
    return {None: law.none, **{item: law.of(score) for item, score in counts}}


def group_law(mechanism, counts):
    return law_of(mechanism, tuple(sorted(counts.items())))


def table_law(groups, mechanism, counts, sizes=None, finder=None):
    """The law of the whole table: for each group an item, None, or "absent" where it is not
    found.
    """
    laws = []
    for group in groups:
        law = group_law(mechanism, counts.get(group, Counter()))
        if finder is not None:
            chance = float(finder.test.chance(sizes[group]).mid()) if sizes[group] else 0.0
            law = {"absent": 1 - chance, **{item: chance * one for item, one in law.items()}}
        laws.append(law.items())
    return {
        tuple(item for item, _ in table): math.prod(chance for _, chance in table)
        for table in product(*laws)
    }


def declared_law(crowd, mechanism, per_user=1, choose=own_groups, groups=GROUPS):
    counts = restrict(rows_of(crowd), groups, per_user, choose)
    return dict(table_law(groups, mechanism, counts))


def open_law(crowd, mechanism, finder, per_user=1):
    """All groups of all individuals: those that nobody counts in are absent for certain."""
    groups, rows = ("a", "b", "c"), rows_of(crowd)
    counts = restrict(rows, None, per_user)
    people = restrict([(user, group, "one") for user, group, _ in rows], None, per_user)
    sizes = {group: people.get(group, Counter())["one"] for group in groups}
    return table_law(groups, mechanism, counts, sizes, finder)


def excess(law, epsilon):
    """The largest delta at `epsilon` over all neighbors, both ways."""
    return largest_excess(law, epsilon, CROWDS, PEOPLE)


def test_all_declared_groups_cost_what_one_costs():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    found = excess(lambda crowd: declared_law(crowd, mechanism), EPSILON)
    assert 0.99 * DELTA <= found <= DELTA + Fraction(1, 10**9)  # it is tight in one group already


def test_two_groups_of_each_cost_twice_as_much():
    mechanism = GapTest(epsilon=EPSILON / 2, delta=DELTA / 2)
    found = excess(lambda crowd: declared_law(crowd, mechanism, per_user=2), EPSILON)
    assert found <= DELTA
    whole = GapTest(epsilon=EPSILON, delta=DELTA)
    assert excess(lambda crowd: declared_law(crowd, whole, per_user=2), EPSILON) > 1.2 * DELTA


def test_open_groups_and_their_items_cost_the_sum():
    part, rest = Fraction(1, 4), Fraction(3, 4)
    finder = OneKeyEach(epsilon=part * EPSILON, delta=part * DELTA)
    mechanism = GapTest(epsilon=rest * EPSILON, delta=rest * DELTA)
    found = excess(lambda crowd: open_law(crowd, mechanism, finder), EPSILON)
    assert 0.2 * DELTA <= found <= DELTA
    whole = GapTest(epsilon=EPSILON, delta=DELTA)
    free = OneKeyEach(epsilon=EPSILON, delta=DELTA)
    assert excess(lambda crowd: open_law(crowd, whole, free), EPSILON) > 1.2 * DELTA


# Mutants


def test_an_individual_that_counts_in_two_groups_is_noticed():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)

    def everywhere(own, per_user):
        return {group for group, _ in own}

    found = excess(lambda crowd: declared_law(crowd, mechanism, choose=everywhere), EPSILON)
    assert found > 1.2 * DELTA


def test_a_rule_that_looks_at_others_is_noticed():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)

    def law(crowd):
        popular = Counter(group for own in crowd for group, _ in own)

        def follow(own, per_user):
            return sorted({group for group, _ in own}, key=lambda one: (-popular[one], one))[:1]

        return declared_law(crowd, mechanism, choose=follow)

    assert excess(law, EPSILON) > 2 * DELTA


def test_groups_that_are_taken_from_the_data_are_noticed():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)

    def law(crowd):
        seen = sorted({group for own in crowd for group, _ in own})
        found = declared_law(crowd, mechanism, groups=tuple(seen))
        return {tuple(zip(seen, table, strict=True)): chance for table, chance in found.items()}

    assert excess(law, EPSILON) > 0.999


# The draw


class PlainSource:
    """What `GroupedSource` answers, from plain Python."""

    def __init__(self, counts, sizes):
        self.labels = sorted(counts)
        self.scores = [sorted(counts[label].items()) for label in self.labels]
        self.sizes = np.array([sizes[label] for label in self.labels])

    def profile(self, group):
        return Profile(levels_of(dict(self.scores[group])))

    def names(self, drawn):
        return [
            [item for item, score in self.scores[group] if score == one.score][one.index]
            for group, one in drawn
        ]

    def group_names(self, groups):
        return [self.labels[group] for group in groups]

    def count_chosen(self, most):
        return self.sizes


def question(groups, mechanism):
    return BestPerGroup(best=BestItems(given=mechanism), groups=groups)


def brackets(asked, source, law, depth, unfinished):
    """Whether the law lies between what a walk finishes and that plus the rest."""

    def draw(coins):
        drawn = asked.draw(source, coins)
        items, found = iter(drawn.items), dict.fromkeys(source.labels, "absent")
        for label, size in zip(drawn.labels, drawn.sizes, strict=True):
            found[label] = next(items) if size else None
        return tuple(found.values())

    finished, left = walk(draw, depth)
    assert left < unfinished
    assert finished.keys() <= {table for table, chance in law.items() if chance}
    return all(
        finished.get(table, 0) - 1e-9 <= chance <= finished.get(table, 0) + left + 1e-9
        for table, chance in law.items()
    )


CROWD = (PEOPLE[1], PEOPLE[0], PEOPLE[4], PEOPLE[3])


def test_the_draw_in_declared_groups_has_this_law():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    counts = restrict(rows_of(CROWD), GROUPS)
    asked = question(Groups("g", GROUPS), mechanism)
    source = PlainSource(counts, {"a": 2, "b": 2})
    law = table_law(GROUPS, mechanism, counts)
    assert brackets(asked, source, law, 14, 0.02)
    other = table_law(GROUPS, GapTest(epsilon=EPSILON, delta=DELTA / 2), counts)
    assert not brackets(asked, source, other, 14, 0.02)


def test_the_draw_of_open_groups_has_this_law():
    """Groups whose chance is 0 and 1: coins of the finder are walked in test_keys.py."""
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    counts = restrict(rows_of(CROWD), None)
    asked = question(Groups("g"), mechanism)
    assert asked.finder.privacy() == Privacy(EPSILON / 3, DELTA / 3)
    assert asked.privacy() == Privacy(EPSILON * 4 / 3, DELTA * 4 / 3)
    source = PlainSource(counts, {"a": 0, "b": 10**6})
    found = table_law(("b",), mechanism, counts)
    law = {("absent", *table): chance for table, chance in found.items()}
    assert brackets(asked, source, law, 12, 0.02)
