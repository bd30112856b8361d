"""Entry points as black boxes: from data on both sides of a pair to what is released.

A data set is a vector: how many individuals there are of each invented kind. Its neighbors have one
individual more. A search climbs to the pair whose samples speak most against the claim, and the
tester that uses no law (`privmax.testers`) tests that pair on samples of its own. A planted fault
runs an entry point with more epsilon than it states.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from lab.assurance.draws import LongerCoins
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.testers import Claim, Finding, check_privacy
from privmax.testers.bounds import largest_chance, least_chance
from privmax.testers.events import ChosenEvent, choose_events, plain_outcome
from privmax.testers.patterns import Vector
from privmax.testing import SeededCoins

Draw = Callable[[list[Any], Fraction, Coins], Any]
"""From individuals, epsilon and coins to what is released, and its stated cost."""

Pair = tuple[Vector, Vector]

WORD = 62
"""Coins of a run: those of a seed of the tester. More are seeded by it."""

DOUBT = 0.05
"""How likely a bound may be wrong while pairs are only searched."""

ROOM = 1.04
"""What an entry point is held to, as a part of what it was measured to need."""

FINALISTS, CLOSER = 4, 4
"""So many pairs are looked at once more in the end, with so many times as many samples."""


@dataclass(frozen=True)
class Box:
    """An entry point, and the individuals that are invented for it.

    Attributes:
        name: What is called.
        kinds: Individuals; a data set has some of each.
        draw: Releases something.
        epsilon: What it is asked to cost.
        delta: The same.
        tight: Whether pairs are known on which it needs nearly all that it states. Otherwise it is
            held to what it is measured to need, as a fault of 20 % may stay within the proof.
        reach: How many of a kind there are at most when a search begins.
        remembered: Whether it is run once for all coins that begin alike.
        samples: Runs of one test, of both data sets together.
        looks: Pairs that a search looks at.
        tries: Samples of each data set that it looks at.
        repeats: How often the test of a planted fault is made, to measure its power.
    """

    name: str
    kinds: tuple[Hashable, ...]
    draw: Draw
    epsilon: str
    delta: str = "0"
    tight: bool = True
    reach: int = 8
    remembered: bool = True
    samples: int = 8000
    looks: int = 40
    tries: int = 400
    repeats: int = 20

    @property
    def claim(self) -> Claim:
        """What it states."""
        return Claim.of(epsilon=self.epsilon, delta=self.delta)

    @property
    def levels(self) -> list[Claim]:
        """Claims to choose events by: an event that speaks most against less than it states."""
        parts = [Fraction(1)] if self.tight else [Fraction(1), Fraction(3, 4), Fraction(1, 2)]
        return [Claim.of(epsilon=part * Fraction(self.epsilon), delta=self.delta) for part in parts]

    @cache  # what is remembered serves all tests  # noqa: B019
    def run(self, factor: Fraction = Fraction(1)) -> Callable[[Vector, int], Hashable]:
        """Return a function of data and a seed that runs at `factor` times the stated epsilon."""
        epsilon = factor * Fraction(self.epsilon)

        def released(data: Vector, coins: Coins) -> Hashable:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return plain_outcome(self.draw(self.individuals(data), epsilon, coins))

        if self.remembered:
            return RememberedRuns(released)
        return lambda data, seed: released(data, SeededCoins(seed))

    def individuals(self, data: Vector) -> list[Any]:
        """List the individuals of a data set."""
        return [kind for kind, number in zip(self.kinds, data, strict=True) for _ in range(number)]


class RememberedRuns:
    """A draw as a function of data and a seed, run once for all seeds whose coins begin alike.

    A draw is a function of its data and of the coins that it reads. So what came out is what comes
    out again when the same coins come first.
    """

    def __init__(self, draw: Callable[[Vector, Coins], Hashable]) -> None:
        self._draw = draw
        self._known: dict[Vector, dict[int, dict[int, Hashable]]] = {}
        self.begun = 0

    def __call__(self, data: Vector, seed: int) -> Hashable:
        word = seed  # as many fair coins as the tester's seeds have
        known = self._known.setdefault(data, {})
        for length, scripts in known.items():
            if word >> WORD - length in scripts:
                return scripts[word >> WORD - length]
        coins = CountedCoins(LongerCoins(word, f"{seed} more", WORD))
        self.begun += 1
        outcome = self._draw(data, coins)
        if coins.read <= WORD:
            scripts = known.setdefault(coins.read, {})
            scripts[word >> WORD - coins.read] = outcome
        return outcome


class CountedCoins:
    """Coins that count how many were read."""

    def __init__(self, coins: Coins) -> None:
        self._coins = coins
        self.read = 0

    def bits(self, n: int) -> int:
        self.read += n
        return self._coins.bits(n)

    def bytes(self, n: int) -> bytes:
        return self.bits(8 * n).to_bytes(n, "big")


class SaltedCoins:
    """Coins after a salt that is asked for first, and is the same in every run: it is public."""

    def __init__(self, coins: Coins) -> None:
        self._coins = coins
        self._salted = False

    def bits(self, n: int) -> int:
        if self._salted:
            return self._coins.bits(n)
        self._salted = True
        return 0

    def bytes(self, n: int) -> bytes:
        return self._coins.bytes(n)


class RememberedSource:
    """A source that is asked the same question of the same data once.

    Its answers are functions of the data and of what is asked: no coins are in them. What one
    returns that can be asked itself is remembered in the same way.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._known: dict[Hashable, Any] = {}

    def close(self) -> None:
        """Stay open: another run asks the same."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._source, name)
        return partial(self._ask, value, name) if callable(value) else self._keep(value, name)

    def _ask(self, method: Callable[..., Any], name: str, *given: Any) -> Any:
        key = name, *(_key(one) for one in given)
        if key not in self._known:
            self._keep(method(*given), key)
        return self._keep(None, key)

    def _keep(self, value: Any, key: Hashable) -> Any:
        if key not in self._known:
            is_source = type(value).__module__.startswith("privmax.sources")
            self._known[key] = self._remember(value) if is_source else value
        kept = self._known[key]
        return kept if isinstance(kept, RememberedSource) else deepcopy(kept)  # callers may write

    def _remember(self, source: Any) -> RememberedSource:
        return RememberedSource(source)


def _key(given: Any) -> Hashable:
    """Write what was asked as a part of a key."""
    return (str(given.dtype), given.tobytes()) if isinstance(given, np.ndarray) else given


# The search


def search(box: Box, factor: Fraction, seed: str) -> tuple[Pair, float]:
    """Climb to the pair whose samples speak most against the claim.

    Returns:
        The pair, and the epsilon that its samples seem to need.
    """
    run, coins = box.run(factor), SeededCoins(f"{seed} {box.name} search")
    seen: dict[tuple[Vector, int], float] = {}
    best, at = -math.inf, _invent(box, coins)
    for look in range(box.looks):
        trial = _invent(box, coins) if look < box.looks // 3 else _change(box, *at, coins)
        if trial not in seen:
            seen[trial] = _needed(box, run, _pair(*trial), box.tries, coins)
        if seen[trial] >= best:
            best, at = seen[trial], trial
    line = sorted(seen, key=lambda trial: -seen[trial])[:FINALISTS]
    closer = {trial: _needed(box, run, _pair(*trial), CLOSER * box.tries, coins) for trial in line}
    at = max(closer, key=lambda trial: closer[trial])
    return _pair(*at), closer[at]


def _needed(box: Box, run: Callable[..., Hashable], pair: Pair, tries: int, coins: Coins) -> float:
    """Return the epsilon that a pair seems to need: events from one half, counts from the other.

    Below 0 where it seems to need none: by how much an event separates the two sides, less 2.
    """
    sides = [[run(data, coins.bits(62)) for _ in range(tries)] for data in pair]
    half = tries // 2
    needed = -2.0
    for choice in _choose(box, sides[0][:half], sides[1][:half]):
        here, there = sides[::-1] if choice.turned else sides
        low = least_chance(choice.event.hits(here[half:]), tries - half, DOUBT)
        high = largest_chance(choice.event.hits(there[half:]), tries - half, DOUBT)
        needed = max(needed, box.claim.least_needed(low, high) or low - high - 1)
    return needed


def _choose(box: Box, left: list[Hashable], right: list[Hashable]) -> list[ChosenEvent]:
    return [choice for level in box.levels for choice in choose_events(left, right, level)]


def _pair(start: Vector, kind: int) -> Pair:
    return start, tuple(number + (place == kind) for place, number in enumerate(start))


def _invent(box: Box, coins: Coins) -> tuple[Vector, int]:
    """Return a data set and the kind of the individual that is added: level, spread or sparse."""
    number, shape = len(box.kinds), uniform_below(4, coins)
    sizes = [_size(box, coins) for _ in range(number)]
    if shape == 0:
        sizes = sizes[:1] * number
    elif shape == 1:
        sizes = [size * uniform_below(2, coins) for size in sizes]
    elif shape == 2:
        chosen = uniform_below(number, coins)
        sizes = [size * (place == chosen) for place, size in enumerate(sizes)]
    sizes[0] += not any(sizes)  # learners refuse data without rows
    return tuple(sizes), uniform_below(number, coins)


def _size(box: Box, coins: Coins) -> int:
    """Return how many there are of a kind: small numbers as often as large ones."""
    return uniform_below(2 + uniform_below(box.reach, coins), coins)


def _change(box: Box, start: Vector, kind: int, coins: Coins) -> tuple[Vector, int]:
    """Return a data set near another."""
    sizes, place = list(start), uniform_below(len(start), coins)
    what = uniform_below(6, coins)
    if what < 3:
        far = uniform_below(2 * (1 + box.reach // 4) + 1, coins) - (1 + box.reach // 4)
        sizes[place] = max(0, sizes[place] + (1, -1, far)[what])
    elif what == 3:
        sizes[place] = 0
    elif what == 4:
        sizes[place] = sizes[uniform_below(len(start), coins)]
    else:
        kind = place
    sizes[0] += not any(sizes)
    return tuple(sizes), kind


# The test


def measured_claim(box: Box, pair: Pair, seed: str) -> Claim:
    """Return a claim that fits what an entry point needs on a pair, rounded up by `ROOM`.

    It is measured on samples of its own, by the events that speak most.
    """
    run, coins = box.run(), SeededCoins(f"{seed} {box.name} measured")
    early, late = (
        [[run(data, coins.bits(62)) for _ in range(number)] for data in pair]
        for number in (box.samples // 4, box.samples // 2)
    )
    best, needed, trials = -1.0, 0.0, len(late[0])
    for choice in _choose(box, early[0], early[1]):
        here, there = (choice.event.hits(side) for side in (late[::-1] if choice.turned else late))
        bounds = least_chance(here, trials, DOUBT), largest_chance(there, trials, DOUBT)
        if box.claim.least_needed(*bounds) > best:
            best = box.claim.least_needed(*bounds)
            needed = box.claim.least_needed(here / trials, max(1, there) / trials)
    return Claim.of(epsilon=math.ceil(100 * ROOM * needed) / 100, delta=box.delta)


def audit(box: Box, pair: Pair, factor: Fraction, claim: Claim, alpha: float, seed: str) -> Finding:
    """Test a claim on a pair, on samples that no search has seen."""
    return check_privacy(
        box.run(factor), *pair, epsilon=claim.epsilon, delta=claim.delta,
        samples=box.samples, confidence=str(1 - alpha), coins=SeededCoins(f"{seed} {box.name}"),
    )  # fmt: skip


@contextmanager
def replaced(owner: Any, name: str, made: Callable[..., Any]) -> Iterator[None]:
    """Put a function in the place of another within the block."""
    original = getattr(owner, name)
    setattr(owner, name, made)
    try:
        yield
    finally:
        setattr(owner, name, original)
