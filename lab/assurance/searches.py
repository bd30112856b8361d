"""A search for neighbors on which a mechanism costs more than it says, by its exact law.

In a setting, some data sets are drawn at random, and from the worst of them a climb begins: a score
is changed, a candidate added or left out, and what is at least as bad is kept. Every data set that
is looked at is compared with all of its neighbors, both ways, label by label: what is maximized is
the hockey-stick divergence at the claimed epsilon, or the largest log-ratio where no delta is
claimed. Pairs that differ only in the names of their candidates count once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.assurance.settings import Setting
from privmax.auditing import Scores, compare, neighbors_of, tightness
from privmax.noise.samplers import uniform_below
from privmax.privacy import ADD_REMOVE, drift
from privmax.testing import SeededCoins

STARTS = 6
"""Random data sets before a climb."""

PATIENCE = 15
"""So many changes in a row that do not help end a climb."""

LOOKS = 50
"""Data sets that are looked at in one setting at most."""

HIGHEST = {
    "permute-and-flip": 6,
    "max-of-laplaces": 6,
    "large-margin": 3,
    "large-margin-truncated": 3,
}
"""Whose laws take long: scores start at most here, so that data sets share laws."""

MOST_NEIGHBORS = 250
"""A data set has no more candidates than leave so many neighbors."""


@dataclass(frozen=True)
class Finding:
    """The worst pair around one data set.

    rank    what a climb goes by: whether the claim is broken for certain, the part of the claim
            that the pair needs, and the largest log-ratio
    least   the delta that it needs for certain; most: whatever the numerical errors
    """

    rank: tuple[bool, float, float]
    pair: tuple[Scores, Scores]
    tightness: float
    least: float
    most: float

    @property
    def broken(self) -> bool:
        return self.rank[0]


class Search:
    """A search in one setting.

    Attributes:
        looks: How many data sets were looked at.
        steps: How many changes a climb kept because they were worse.
        worst: The worst pair so far.
        error: The largest numerical error of any pair.
    """

    def __init__(self, setting: Setting, seed: str, highest: int | None = None) -> None:
        self._setting, self._coins, self._laws = setting, SeededCoins(seed), setting.laws()
        self._privacy = setting.privacy
        self._seen: set[tuple[tuple[int, int], ...]] = set()
        self._known: dict[Scores, Finding] = {}
        self.looks = self.steps = 0
        self.error = 0.0
        self.worst: Finding | None = None
        self._candidates = self._most_candidates()
        self._reach = self._far() if highest is None else highest

    @property
    def pairs(self) -> int:
        """How many different ordered pairs were compared."""
        return 2 * len(self._seen)

    def run(self, starts: int = STARTS, looks: int = LOOKS, patience: int = PATIENCE) -> Finding:
        """Look at random data sets, and climb from the worst of them, until a claim is broken."""
        at = max((self._random() for _ in range(starts)), key=lambda one: self._look(one).rank)
        self.looks, failed = starts, 0
        while failed < patience and self.looks < looks and not self._look(at).broken:
            changed = self._changed(at)
            before, after = self._look(at).rank, self._look(changed).rank
            self.looks, failed = self.looks + 1, 0 if after > before else failed + 1
            self.steps += after > before
            at = changed if after >= before else at
        assert self.worst is not None
        return self.worst

    def _look(self, start: Scores) -> Finding:
        """Compare a data set with all its neighbors, both ways, and return the worst."""
        if start in self._known:
            return self._known[start]
        setting, mechanism = self._setting, self._setting.mechanism
        rule, growth, floor = mechanism.neighbors, mechanism.growth, 0 if setting.is_open else None
        found: list[Finding] = []
        for other in neighbors_of(start, rule, growth, setting.sensitivity, floor):
            found += [self._compare(start, other), self._compare(other, start)]
            names = zip(start, other, strict=True), zip(other, start, strict=True)
            self._seen.add(min(tuple(sorted(pair)) for pair in names))
        best = self._known[start] = max(found, key=lambda one: one.rank)
        if self.worst is None or best.rank > self.worst.rank:
            self.worst = best
        return best

    def _compare(self, here: Scores, there: Scores) -> Finding:
        left, right = self._laws.of(here), self._laws.of(there)
        fault = left.fault or right.fault
        if fault is not None:
            raise SystemExit(f"{self._setting}: {fault}")
        found = compare(left, right, float(self._privacy.epsilon))
        part = tightness(found, self._privacy)
        broken = found.least > self._privacy.delta
        rank = broken, part, min(found.ratio, 1e3)
        self.error = max(self.error, found.most - found.least)
        return Finding(rank, (here, there), part, found.least, found.most)

    def _most_candidates(self) -> int:
        """So many candidates that the neighbors can all be compared."""
        sensitivity, is_monotone = (
            self._setting.sensitivity,
            self._setting.mechanism.neighbors == ADD_REMOVE,
        )
        moves = sensitivity + 1 if is_monotone else 2 * sensitivity + 1
        return max(3, int(math.log(MOST_NEIGHBORS / (1 + is_monotone), moves)))

    def _far(self) -> int:
        """A lead that is about clear."""
        privacy = self._privacy
        unit = drift(self._setting.mechanism.neighbors) * self._setting.sensitivity
        nats = 3 + (-math.log(privacy.delta) if privacy.delta else 0)
        return min(400, math.ceil(unit * nats / float(privacy.epsilon)))

    def _below(self, n: int) -> int:
        return uniform_below(n, self._coins)

    def _random(self) -> Scores:
        """A data set: level, spread out, or some candidates ahead of the others."""
        least = max(2, self._setting.mechanism.k)
        number = least + self._below(self._candidates - least + 1)
        shape, far = self._below(4), self._reach
        if shape == 0:
            scores = [self._below(3) for _ in range(number)]
        elif shape == 1:
            scores = [self._below(far + 1) for _ in range(number)]
        else:
            ahead, base = 1 + self._below(number), self._below(3)
            lead = self._below(2 * far + 1)
            scores = [base + lead - self._below(2) for _ in range(ahead)]
            scores += [self._below(base + 1) for _ in range(number - ahead)]
        return self._valid(scores)

    def _changed(self, scores: Scores) -> Scores:
        """A data set near another."""
        changed, place = list(scores), self._below(len(scores))
        least = max(2, self._setting.mechanism.k)
        what = self._below(8)
        if what < 3:
            changed[place] += 1 if what else -1
        elif what == 3:
            changed[place] += self._below(2 * (far := 1 + self._reach // 4) + 1) - far
        elif what == 4:
            changed[place] = scores[self._below(len(scores))]
        elif what == 5:
            shift = self._below(3) - 1
            changed = [score + shift for score in scores]
        elif what == 6 and len(scores) < self._candidates:
            changed.append(self._below(2) * scores[place])
        elif len(scores) > least:
            del changed[place]
        return self._valid(changed)

    def _valid(self, scores: list[int]) -> Scores:
        return tuple(max(0, score) for score in scores) if self._setting.is_open else tuple(scores)
