"""Groups in plain Python, to compare engines with and to break on purpose."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from privmax.labels import by_name
from privmax.mechanisms.contract import Outcome


def own_groups(rows, per_user=1):
    """The groups in which one individual counts: `rows` are its own, pairs of a group and an
    item.
    """
    number = Counter(group for group, _ in rows)
    return sorted(number, key=lambda group: (-number[group], by_name(group)))[:per_user]


def restrict(rows, declared=None, per_user=1, choose=own_groups):
    """How many individuals each item of each group has: `rows` are triples of an individual, a
    group and an item.
    """
    people = defaultdict(list)
    for user, group, item in rows:
        if group is not None and item is not None and (declared is None or group in declared):
            people[user].append((group, item))
    counts: dict[Any, Counter[Any]] = {group: Counter() for group in declared or ()}
    for own in people.values():
        chosen = choose(own, per_user)
        for group, item in set(own):
            if group in chosen:
                counts.setdefault(group, Counter())[item] += 1
    return counts


def levels_of(counts):
    """The scores of a group, the highest first, with how many items stand at each."""
    return sorted(Counter(counts.values()).items(), reverse=True)


def read_groups(source, labels):
    """The candidates of each group with their scores, as a source has them: its groups have these
    names, in the order of their numbers.
    """
    found = {}
    for number, label in enumerate(labels):
        profile, found[label] = source.profile(number), {}
        if not profile.top():
            continue
        drawn = [
            (number, Outcome(profile.top() - depth, index))
            for depth, count in profile.window(1 << 40).blocks()
            if count is not None
            for index in range(count)
        ]
        scores = source.counts(drawn)
        assert scores == [outcome.score for _, outcome in drawn]
        found[label].update(zip(source.names(drawn), scores, strict=True))
    return found


def largest_excess(law, epsilon, crowds, people):
    """The largest delta at `epsilon` over crowds and one more of the people, both ways."""
    worst, factor = 0.0, math.exp(epsilon)
    for crowd in crowds:
        here = law(crowd)
        for person in people:
            there = law((*crowd, person))
            for left, right in ((here, there), (there, here)):
                missing = (max(p - factor * right.get(one, 0.0), 0.0) for one, p in left.items())
                worst = max(worst, math.fsum(missing))
    return worst
