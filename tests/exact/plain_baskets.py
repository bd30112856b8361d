"""Baskets of groups in plain Python, to compare engines with and to break on purpose."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

from plain_groups import own_groups


def restrict_baskets(rows, declared=None, per_user=1, size=2, choose=own_groups):
    """How many individuals have each itemset of each group: `rows` are an individual, a basket, a
    group and an item each. Without individuals (None) every basket is one.
    """
    people = defaultdict(list)
    for user, basket, group, item in rows:
        if group is not None and item is not None and (declared is None or group in declared):
            people[basket if user is None else user].append((basket, group, item))
    counts = {group: Counter() for group in declared or ()}
    for own in people.values():
        for group in choose([(group, item) for _, group, item in own], per_user):
            baskets = defaultdict(set)
            for basket, other, item in own:
                if other == group:
                    baskets[basket].add(item)
            found = {one for items in baskets.values() for one in combinations(sorted(items), size)}
            counts.setdefault(group, Counter()).update(found)
    return counts
