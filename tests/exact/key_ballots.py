"""Individuals and their keys in memory, in plain Python: what sources of pairs are compared with.

`Ballots` implements what the rounds and the rule of one key each ask of a source. `explore` runs a
search for keys on every path of its noise, which is put into few cells: with the law of what it
sees and releases, neighbors can be compared exactly.
"""

from __future__ import annotations

import copy
import hashlib
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

ONE = 1 << 16

Hash = Callable[[Any, Any, int], Any]


ROOM = 1 - 2.0**-20
ANSWER = "answer"
HALF = 46_340


def give_own(
    keys: Iterable[Any],
    coin: Callable[[Any], Any],
    most: int,
    values: Mapping[Any, int] | None = None,
) -> dict[Any, int]:
    """What one individual gives its keys: to `most` of them, in proportion to public values."""
    value = values or dict.fromkeys(keys, 1)
    chosen = sorted(keys, key=lambda key: (-value[key], coin(key), key))[:most]
    norm = math.sqrt(sum(value[key] ** 2 for key in chosen))
    return {key: math.floor(value[key] * (ONE * ROOM) / norm) for key in chosen}


class Ballots:
    """Who has which keys.

    Args:
        holdings: The keys of each individual.
        coin: A hash of an individual, a key and the number of a round.
        copies: How many individuals there are of each kind; one, if it is not said.
    """

    def __init__(
        self,
        holdings: Mapping[Any, Iterable[Any]],
        *,
        coin: Hash = lambda user, key, turn: 0,
        copies: Mapping[Any, int] | None = None,
    ) -> None:
        self.holdings = {user: set(keys) for user, keys in holdings.items()}
        self.copies = dict.fromkeys(holdings, 1) | dict(copies or {})
        self.coin = coin
        self.labels = sorted(set().union(*self.holdings.values()))
        self.number = len(self.labels)
        self.places = {label: place for place, label in enumerate(self.labels)}

    @property
    def everyone(self) -> Ballots:
        return self

    def among(self, keys: Any) -> Ballots:
        kept = set(self.name(keys))
        fewer = copy.copy(self)
        fewer.holdings = {user: held & kept for user, held in self.holdings.items()}
        return fewer

    @property
    def people(self) -> int:
        return sum(self.tally(1))

    def tally(self, most: int) -> list[int]:
        numbers = [0] * most
        for user, keys in self.holdings.items():
            if keys:
                numbers[min(len(keys), most) - 1] += self.copies[user]
        return numbers

    def count_chosen(self, most: int) -> Any:
        return self._add_up(
            lambda user, keys: dict.fromkeys(give_own(keys, self._coin(user, 0), most), 1)
        )

    def give(self, most: int, turn: int, values: Any = None) -> Any:
        by_key = None if values is None else dict(zip(self.labels, values.tolist(), strict=True))
        return self._add_up(lambda user, keys: give_own(keys, self._coin(user, turn), most, by_key))

    def survey(self, low: Any) -> tuple[int, int]:
        people = part = 0
        for user, keys in self.holdings.items():
            if keys:
                number = sum(bool(low[self.places[key]]) for key in keys)
                people += HALF * self.copies[user]
                part += math.floor(HALF * number / len(keys)) * self.copies[user]
        return people, part

    def count(self, released: Any, most: int) -> tuple[Any, int]:
        holders = self.among(released)
        return holders.count_chosen(most)[released], self.people - holders.people

    def name(self, released: Any) -> list[Any]:
        return [self.labels[place] for place in np.asarray(released).tolist()]

    def _coin(self, user: Any, turn: int) -> Callable[[Any], Any]:
        return lambda key: self.coin(user, key, turn)

    def _add_up(self, given: Callable[[Any, set[Any]], Mapping[Any, int]]) -> Any:
        totals = np.zeros(self.number, np.int64)
        for user, keys in self.holdings.items():
            for key, weight in given(user, keys).items():
                totals[self.places[key]] += self.copies[user] * weight
        return totals


def tail(distance: float, sigma: float) -> float:
    """P(N ≥ distance) for normal noise."""
    return math.erfc(distance / sigma / math.sqrt(2)) / 2


class Cells:
    """Noise in cells: a noisy total is told by the lower end of the cell that it is in.

    That is a function of the noisy total, so what is proved of all of them holds of cells.

    Args:
        cuts: In standard deviations, where cells of looks end; the threshold is one more. Of the
            last round only the threshold is one.
    """

    def __init__(self, cuts: Sequence[float] = (0.0, 2.0)) -> None:
        self.cuts = cuts
        self.path: list[int] = []
        self.alive: list[Any] = []
        self.seen: list[tuple[tuple[Any, int], ...]] = []
        self.thresholds: dict[Any, int] = {}
        self.last: Any = None
        self.place, self.chance = 0, 1.0

    def begin(self, path: list[int], labels: Sequence[Any], search: Any) -> None:
        self.path, self.alive = path, list(labels)
        self.thresholds = {one.variance: one.threshold for one in (*search.looks, search.last)}
        self.last = search.last.variance
        self.place, self.chance, self.seen = 0, 1.0, []

    def add_noise(self, totals: Any, variance: Any, coins: Any) -> Any:
        """Noisy totals of all keys that passed no threshold yet, or of answers to a question."""
        sigma, threshold = math.sqrt(variance), self.thresholds.get(variance)
        if threshold is None:  # of two answers the second is looked at: is it above 1?
            part = self.draw(int(totals[1]), sigma, [ONE])
            self.seen.append(((ANSWER, part),))
            return np.array([2 * ONE, part], np.int64)
        ends = [threshold]
        if variance != self.last:
            ends = sorted({threshold, *(min(round(cut * sigma), threshold) for cut in self.cuts)})
        assert len(totals) == len(self.alive), "every key that is alive has noise"
        values = [self.draw(int(total), sigma, ends) for total in totals.tolist()]
        self.seen.append(tuple(zip(self.alive, values, strict=True)))
        self.alive = [key for key, value in self.seen[-1] if value < threshold]
        return np.array(values, np.int64)

    def draw(self, total: int, sigma: float, ends: Sequence[int]) -> int:
        if self.place == len(self.path):
            self.path.append(len(ends))
        cell = self.path[self.place]
        self.place += 1
        above = tail(ends[cell - 1] - total, sigma) if cell else 1.0
        below = tail(ends[cell] - total, sigma) if cell < len(ends) else 0.0
        self.chance *= above - below
        return ends[cell - 1] if cell else ends[0] - ONE

    def watch(self, common: Iterable[Any]) -> Hashable:
        """What all rounds saw of some keys, and the answer to the question."""
        wanted = {*common, ANSWER}
        return tuple(tuple(pair for pair in one if pair[0] in wanted) for one in self.seen)


Law = dict[Hashable, float]


def explore(search: Any, ballots: Ballots, cells: Cells, common: Iterable[Any]) -> Law:
    """The law of what rounds see of common keys and of what they release, over all paths.

    The noise of `privmax.keyset.rounds` must come from these cells.
    """
    law: Law = {}
    path: list[int] = []
    common = list(common)
    while True:
        cells.begin(path, ballots.labels, search)
        released = ballots.name(search.draw(ballots, ballots.number, None))
        outcome = cells.watch(common), frozenset(released)
        law[outcome] = law.get(outcome, 0.0) + cells.chance
        while path and path[-1] == 0:
            path.pop()
        if not path:
            return law
        path[-1] -= 1


def excess(left: Law, right: Law, epsilon: float) -> float:
    """The least delta for which no event is likelier than epsilon allows, from left to right."""
    grow = math.exp(epsilon)
    return math.fsum(
        max(0.0, chance - grow * right.get(outcome, 0.0)) for outcome, chance in left.items()
    )


def product_law(chances: Mapping[Hashable, float]) -> Law:
    """The law of a set of keys of which each is in it by itself."""
    law: Law = {frozenset(): 1.0}
    for key, chance in chances.items():
        law = {
            kept | ({key} if is_in else set()): before * (chance if is_in else 1 - chance)
            for kept, before in law.items()
            for is_in in (False, True)
            if not (is_in and chance == 0)
        }
    return law


# What sources of pairs give


def public_numbers(label: Any) -> tuple[bool, bool, int]:
    """Of a key: whether it is alive, whether it is low, and its value: as noisy totals say it."""
    digest = hashlib.blake2b(repr(label).encode(), digest_size=6).digest()
    value = 1 if digest[1] < 60 else 1 + int.from_bytes(digest[2:5], "big") % (1 << 18)
    return digest[0] < 200, digest[1] < 90, value


def give(source: Any, most: int) -> dict[Any, tuple[int, ...]]:
    """What all individuals of a source give, whenever they are asked, by key; and to questions."""
    labels = source.name(np.arange(source.number))
    numbers = [public_numbers(label) for label in labels]
    alive = np.flatnonzero([is_alive for is_alive, _, _ in numbers])
    everyone = source.everyone
    some = everyone.among(alive)
    counts = np.zeros(source.number, np.int64)
    counts[alive], others = source.count(alive, most)
    columns = [
        everyone.count_chosen(1),
        everyone.give(most, 0),
        some.give(most, 1),
        some.give(most, 2, np.array([value for _, _, value in numbers], np.int64)),
        counts,
    ]
    given = {
        label: tuple(int(column[place]) for column in columns) for place, label in enumerate(labels)
    }
    answers = some.survey(np.array([is_low for _, is_low, _ in numbers], np.bool_))
    return {**given, "answers": (*answers, others), "tally": tuple(everyone.tally(most))}


def add(*parts: Mapping[Any, tuple[int, ...]]) -> dict[Any, tuple[int, ...]]:
    """What several give together."""
    total: dict[Any, tuple[int, ...]] = {}
    for part in parts:
        for label, given in part.items():
            before = total.get(label, (0,) * len(given))
            total[label] = tuple(map(operator.add, before, given))
    return total
