"""Exact tests of a claim: run a mechanism on every course its randomness can take.

No law is used. A mechanism that takes its bits from `Coins` is run on scripts of coins, as the coin
walks of the tests do. One that calls `random()` on a generator is given uniform reals of which
nothing is decided yet: each comparison with a number splits the interval in which the real lies,
and both parts are followed, each with its exact probability. What is not finished at the end bounds
how far the probabilities found can be from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from privmax.errors import ParameterError
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.testers.claims import Claim
from privmax.testers.events import plain_outcome
from privmax.testing import OutOfCoinsError, ScriptedCoins

S = TypeVar("S")
E = TypeVar("E", bound=BaseException)
_Course = tuple[Fraction, S]
"""The probability of a longer script, given the one that it extends; and that script."""

RUNS = 200
"""The number of runs of a mechanism on each data set."""

_WIDEST = 10
"""Coins that may be asked for at once: a run that wants more is not followed."""


@dataclass(frozen=True)
class Bracket:
    """The known bounds on the law of a mechanism on one data set.

    Attributes:
        finished: The probability of each outcome, at least.
        unfinished: How much probability is not decided; any of it may belong to any outcome.
    """

    finished: Mapping[Hashable, Fraction]
    unfinished: Fraction


@dataclass(frozen=True)
class Enumeration:
    """The verdict of two brackets on a claim: bounds on the δ needed at the claimed ε.

    Attributes:
        claim: What was tested.
        least: No δ below this is enough.
        most: This δ is enough.
        runs: How often the mechanism was run.
    """

    claim: Claim
    least: Fraction
    most: Fraction
    runs: int

    @property
    def broken(self) -> bool:
        """Whether the claim is broken for certain."""
        return self.least > self.claim.delta


def walk_coins(draw: Callable[[Coins], Any], *, runs: int = RUNS) -> Bracket:
    """Run a draw on scripts of coins, the likeliest first, and on what extends them.

    Args:
        draw: Takes its bits from the coins that it is given.
        runs: How often it is run, about.

    Examples:
        >>> walk_coins(lambda coins: coins.bits(1)).finished
        {0: Fraction(1, 2), 1: Fraction(1, 2)}
    """

    def follow(script: tuple[int, int]) -> Hashable:
        return plain_outcome(draw(ScriptedCoins(*script)))

    def extend(script: tuple[int, int], stop: OutOfCoinsError) -> list[_Course[tuple[int, int]]]:
        bits, length = script
        if stop.missing > _WIDEST:
            return []
        more = range(1 << stop.missing)
        return [
            (Fraction(1, len(more)), (bits << stop.missing | tail, length + stop.missing))
            for tail in more
        ]

    return _walk(follow, (0, 0), OutOfCoinsError, extend, runs)


def walk_uniforms(draw: Callable[[Uniforms], Any], *, runs: int = RUNS) -> Bracket:
    """Run a draw on every course that comparisons with its uniform reals can take.

    The reals are exact, where a program has 53 bits of them: probabilities differ from those of the
    program by less than 2^-52 for each comparison.

    Args:
        draw: Is given a generator, of which it may call `random()`. What that returns can be added
            to, multiplied and compared with numbers, and rounded down.
        runs: How often it is run, about.

    Examples:
        >>> walk_uniforms(lambda rng: rng.random() < 0.25).finished[True]
        Fraction(1, 4)
    """

    def follow(script: tuple[bool, ...]) -> Hashable:
        return plain_outcome(draw(Uniforms(script)))

    def extend(script: tuple[bool, ...], stop: Undecided) -> list[_Course[tuple[bool, ...]]]:
        if stop.chance is None:
            return []
        return [(stop.chance, (*script, True)), (1 - stop.chance, (*script, False))]

    start: tuple[bool, ...] = ()
    return _walk(follow, start, Undecided, extend, runs)


def _walk(
    follow: Callable[[S], Hashable],
    start: S,
    stops: type[E],
    extend: Callable[[S, E], list[_Course[S]]],
    runs: int,
) -> Bracket:
    """Follow the likeliest course that is not finished, until so many have been followed."""
    finished: dict[Hashable, Fraction] = {}
    given_up = Fraction(0)
    order = count()  # of two courses that are equally likely, the earlier one
    heap = [(Fraction(-1), next(order), start)]
    for _ in range(runs):
        if not heap:
            break
        mass, _, script = heappop(heap)
        try:
            outcome = follow(script)
        except stops as stop:
            courses = extend(script, stop)
            for chance, longer in courses:
                heappush(heap, (mass * chance, next(order), longer))
            given_up -= 0 if courses else mass
        else:
            finished[outcome] = finished.get(outcome, Fraction(0)) - mass
    return Bracket(finished, given_up - sum((mass for mass, _, _ in heap), Fraction(0)))


class Undecided(BaseException):  # nobody catches it by mistake
    """A comparison that the script does not answer; True has this chance.

    None means that what is asked for is no comparison, and the course is given up.
    """

    def __init__(self, chance: Fraction | None) -> None:
        self.chance = chance


class Uniforms:
    """A generator of uniform reals whose comparisons are answered by a script.

    Examples:
        >>> real = Uniforms((True,)).random()
        >>> real < 0.5, real < 0.75
        (True, True)
    """

    def __init__(self, script: tuple[bool, ...]) -> None:
        self._script, self._used = script, 0

    def random(self) -> Real:
        """Return a uniform real in [0, 1) of which nothing is known."""
        return Real(self, [Fraction(0), Fraction(1)], Fraction(1), Fraction(0))

    def answer(self, chance: Fraction) -> bool:
        """Answer the next comparison, which is true with this chance."""
        if self._used == len(self._script):
            raise Undecided(chance)
        self._used += 1
        return self._script[self._used - 1]


class Real:
    """slope · U + shift, for a uniform U that is known to lie in an interval.

    Examples:
        >>> real = 2 * Uniforms(()).random() + 1
        >>> real < 1, real < 3, int(Uniforms((False,)).random() * 2)
        (False, True, 1)
    """

    def __init__(
        self, source: Uniforms, interval: list[Fraction], slope: Fraction, shift: Fraction
    ) -> None:
        self._source, self._interval = source, interval
        self._slope, self._shift = slope, shift

    def _below(self, bound: Any) -> Any:
        """Return whether it is below a number; at a number itself it lies with probability 0."""
        if hasattr(bound, "tolist") and getattr(bound, "shape", None):
            import numpy as np

            return np.array([self._below(one) for one in bound.tolist()])
        if math.isinf(bound):
            return bound > 0
        cut = (Fraction(bound) - self._shift) / self._slope
        low, high = self._interval
        if cut <= low:
            left = False
        elif cut >= high:
            left = True
        else:
            left = self._source.answer((cut - low) / (high - low))
            self._interval[1 if left else 0] = cut
        return left if self._slope > 0 else not left

    def __lt__(self, bound: Any) -> Any:
        return self._below(bound)

    __le__ = __lt__

    def __gt__(self, bound: Any) -> Any:
        below = self._below(bound)
        return ~below if hasattr(below, "shape") else not below

    __ge__ = __gt__

    def __mul__(self, factor: float) -> Real:
        by = Fraction(factor)
        return Real(self._source, self._interval, self._slope * by, self._shift * by)

    __rmul__ = __mul__

    def __add__(self, term: float) -> Real:
        return Real(self._source, self._interval, self._slope, self._shift + Fraction(term))

    __radd__ = __add__

    def __sub__(self, term: float) -> Real:
        return self + -term

    def __abs__(self) -> float:
        raise Undecided(None)

    __float__ = __abs__

    def __int__(self) -> int:
        """Rounded down; for numbers from 0."""
        value = 0
        while not self._below(value + 1):
            value += 1
        return value


def compare_brackets(left: Bracket, right: Bracket, claim: Claim, *, runs: int = 0) -> Enumeration:
    """Bound the δ that two laws need at the claimed ε.

    Args:
        left: What is known of one law.
        right: What is known of the other.
        claim: An ε and a δ.
        runs: How often the mechanism was run, to be reported.

    Examples:
        >>> sure, never = Bracket({1: Fraction(1)}, Fraction(0)), Bracket({}, Fraction(0))
        >>> compare_brackets(sure, never, Claim.of(epsilon=1)).least
        Fraction(1, 1)
    """
    if claim.epsilon is None:
        raise ParameterError("rho", claim.rho, "brackets are compared at an epsilon")
    with precision(START):
        factor = ball(claim.epsilon).exp()
        low = Fraction(math.nextafter(float(factor.lower()), 0.0))
        high = Fraction(math.nextafter(float(factor.upper()), math.inf))
    gains = [
        (
            chance - low * right.finished.get(outcome, 0),
            chance - high * right.finished.get(outcome, 0),
        )
        for outcome, chance in left.finished.items()
    ]
    most = sum((gain for gain, _ in gains if gain > 0), Fraction(0)) + left.unfinished
    least = sum((gain for _, gain in gains if gain > 0), Fraction(0)) - high * right.unfinished
    return Enumeration(claim, max(least, Fraction(0)), min(most, Fraction(1)), runs)
