"""Itemsets of groups: the exact law of the whole table over small neighbors, and mutants.

Individuals are lists of rows: a basket, a group and an item each. A neighbor has one individual
more. The profiles are those that `GroupedBaskets` gives to the draw.
"""

from __future__ import annotations

import math
import sys
from contextlib import closing
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from pathlib import Path

import pyarrow as pa

from privmax import GapTest, Groups, Profile
from privmax.best_items import BestItems
from privmax.best_per_group import BestPerGroup
from privmax.itemsets.reading.grouped import open_groups
from privmax.mechanisms.contract import Outcome
from privmax.sources.grouped import Grouping
from privmax.sources.roles import Columns
from privmax.testing import walk

sys.path.append(str(Path(__file__).parent))

from plain_baskets import restrict_baskets
from plain_groups import largest_excess, levels_of, own_groups

EPSILON, DELTA = Fraction(1), Fraction(1, 10)
GROUPS = ("a", "b")
PEOPLE = (
    ((1, "a", "x"), (1, "a", "y")),
    ((1, "a", "x"), (1, "a", "y"), (2, "a", "x"), (2, "a", "z")),
    ((1, "a", "x"), (1, "a", "y"), (1, "b", "x"), (1, "b", "y")),
    ((1, "b", "x"), (1, "b", "y"), (1, "a", "z"), (2, "b", "x")),
    ((1, "c", "x"), (1, "c", "y"), (1, "c", "z"), (2, "b", "x"), (2, "b", "y")),
    ((1, "a", "x"), (2, "a", "y")),
)
"""In one group, with two baskets, in two groups with a tie, mostly in one, partly in a group that
is not declared, and with two items that no basket has together.
"""

CROWDS = [crowd for size in range(4) for crowd in combinations_with_replacement(PEOPLE, size)]


def rows_of(crowd):
    return [(who, *row) for who, own in enumerate(crowd) for row in own]


@cache
def law_of(mechanism, counts):
    """The chances of each pair of a group, and of None."""
    law = mechanism.law(Profile(levels_of(dict(counts))))
    return {None: law.none, **{item: law.of(score) for item, score in counts}}


def table_law(crowd, mechanism, per_user=1, choose=own_groups, restrict=restrict_baskets):
    counts = restrict(rows_of(crowd), GROUPS, per_user, choose=choose)
    laws = [law_of(mechanism, tuple(sorted(counts[one].items()))).items() for one in GROUPS]
    return {
        tuple(item for item, _ in table): math.prod(chance for _, chance in table)
        for table in product(*laws)
    }


def excess(law, epsilon=EPSILON):
    """The largest delta at `epsilon` over all neighbors, both ways."""
    return largest_excess(law, epsilon, CROWDS, PEOPLE)


def test_all_groups_cost_what_one_costs():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    found = excess(lambda crowd: table_law(crowd, mechanism))
    assert 0.99 * DELTA <= found <= DELTA + Fraction(1, 10**9)


def test_two_groups_of_each_cost_twice_as_much():
    half = GapTest(epsilon=EPSILON / 2, delta=DELTA / 2)
    assert excess(lambda crowd: table_law(crowd, half, per_user=2)) <= DELTA
    whole = GapTest(epsilon=EPSILON, delta=DELTA)
    assert excess(lambda crowd: table_law(crowd, whole, per_user=2)) > 1.2 * DELTA


# Mutants


def test_baskets_that_each_count_in_a_group_of_their_own_are_noticed():
    """The rule is on the individual: one that restricts baskets lets a user count in two groups."""
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    people = (*PEOPLE, ((1, "a", "x"), (1, "a", "y"), (2, "b", "x"), (2, "b", "y")))

    def by_basket(rows, declared, per_user, choose):
        own = [((user, basket), basket, group, item) for user, basket, group, item in rows]
        return restrict_baskets(own, declared, per_user, choose=choose)

    factor, worst = math.exp(EPSILON), 0.0
    for crowd in CROWDS:
        here = table_law(crowd, mechanism, restrict=by_basket)
        there = table_law((*crowd, people[-1]), mechanism, restrict=by_basket)
        missing = (max(p - factor * here.get(one, 0.0), 0.0) for one, p in there.items())
        worst = max(worst, math.fsum(missing))
    assert worst > 1.2 * DELTA


def test_an_individual_that_counts_in_two_groups_is_noticed():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)

    def everywhere(own, per_user):
        return {group for group, _ in own}

    assert excess(lambda crowd: table_law(crowd, mechanism, choose=everywhere)) > 1.2 * DELTA


# The reading and the draw have this law


def open_crowd(crowd):
    rows = rows_of(crowd)
    names = ("user", "basket", "at", "item")
    kinds = (pa.int64(), pa.int64(), pa.string(), pa.string())
    table = pa.table(
        [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)],
        names=names,
    )
    return open_groups(table, Columns("item", "user"), ["basket"], Grouping("at", GROUPS))


def test_what_is_read_is_what_the_law_is_of():
    """All data sets of two individuals, and one of all."""
    for crowd in [*(one for one in CROWDS if len(one) == 2), PEOPLE * 2]:
        counts = restrict_baskets(rows_of(crowd), GROUPS)
        with closing(open_crowd(crowd)) as source:
            for number, group in enumerate(GROUPS):
                levels = levels_of(counts[group])
                drawn = [
                    (number, Outcome(score, index))
                    for score, many in levels
                    for index in range(many)
                ]
                if levels:
                    assert source.profile(number).top() == levels[0][0]
                named = zip(source.names(drawn), source.counts(drawn), strict=True)
                assert dict(named) == counts[group]


def test_the_draw_has_this_law():
    mechanism = GapTest(epsilon=EPSILON, delta=DELTA)
    crowd = (PEOPLE[1], PEOPLE[0], PEOPLE[3])
    asked = BestPerGroup(best=BestItems(given=mechanism), groups=Groups("at", GROUPS))
    with closing(open_crowd(crowd)) as source:

        def draw(coins):
            drawn = asked.draw(source, coins)
            items = iter(drawn.items)
            return tuple(next(items) if size else None for size in drawn.sizes)

        finished, left = walk(draw, 14)
    assert left < 0.02

    def brackets(law):
        return all(
            finished.get(table, 0) - 1e-9 <= chance <= finished.get(table, 0) + left + 1e-9
            for table, chance in law.items()
        )

    assert brackets(table_law(crowd, mechanism))
    assert not brackets(table_law(crowd, GapTest(epsilon=EPSILON, delta=DELTA / 2)))
