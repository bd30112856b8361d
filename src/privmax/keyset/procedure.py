"""All keys that enough individuals have: a small look at the data decides how they are found.

Where individuals have one key each, thresholds with the largest chances find most
(`one_key_each.py`). Where they have more, rounds do (`rounds.py`): each has something to divide,
and later rounds give to keys that need little more.

Proof:      docs/proofs/keys-rounds.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import ClassVar, Protocol

from privmax.errors import ParameterError
from privmax.keyset import rounds
from privmax.keyset.budget import MOST
from privmax.keyset.rounds import Integers, KeyRounds
from privmax.mechanisms.contract import check_epsilon
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace
from privmax.numbers import open_probability, plain, positive, whole
from privmax.one_key_each import OneKeyEach, SingleCounts
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy

LOOK = Fraction(1, 100)
"""The part of epsilon that counts individuals by how many keys they have."""

FAINT = Fraction(5, 2)
"""A noisy count of fewer individuals than this many scales of its noise is taken for 0.

Most such counts are noise, and one of many keys would weigh more than all others together.
"""

USUAL = 12
"""The number of keys that an individual is taken to have where all counts are faint."""

ENOUGH = Fraction(136, 100)
"""Mean root of the number of keys from which on rounds find more than one key each does."""

WIDEST = 1 << 25
"""Individuals: the noise of all rounds together has no larger standard deviation, so that totals
with noise, and what is made of them, have room in 64 bits.
"""

LEAST_SLOTS = 3
"""Keys of one individual that count in the last round, at least."""


class SizedBallots(rounds.Ballots, SingleCounts, Protocol):
    """The totals that individuals give to keys, and the number of their keys."""

    def tally(self, most: int) -> list[int]:
        """Return how many individuals have 1, 2, … keys, the last with `most` or more."""
        ...


class Electorate(Protocol):
    """All individuals with all their keys."""

    number: int
    """The number of someone's keys."""

    @property
    def everyone(self) -> SizedBallots:
        """The ballots of everyone."""
        ...


@dataclass(frozen=True)
class FoundKeys:
    """The numbers of the keys that are released, and how they were found.

    Args:
        numbers: Of the keys, in order.
        diagnostics: Noisy counts that were used, and what was chosen.
    """

    numbers: Integers
    diagnostics: dict[str, int | float]


def read_per_user(name: str, value: object) -> int:
    """Read how many keys of one individual count at most."""
    number = whole(name, value)
    if number > MOST:
        raise ParameterError(name, value, f"it must not exceed {MOST:,}", "For example 30.")
    return number


class KeySearch(Parameters):
    """Release all keys that enough individuals have.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0: a key that only one individual has may pass with this probability.
        per_user: How many keys of one individual count at most.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> KeySearch(epsilon=1, delta=1e-6).privacy()
        Privacy(epsilon=1, delta=1e-06)
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="A delta above 0 is needed to keep a key of one individual hidden: for example "
        "1e-6.",
    )
    per_user: Whole = parameter(read_per_user, default=30)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)

    neighbors: ClassVar[Neighbors] = ADD_REMOVE
    k: ClassVar[int] = 0

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    @cached_property
    def single(self) -> OneKeyEach:
        """The procedure for individuals with one key each."""
        return OneKeyEach(**self._rest)

    def rounds(self, slots: int) -> KeyRounds:
        """Return the procedure for individuals with more keys."""
        return KeyRounds(**self._rest, per_user=self.per_user, slots=slots)

    @property
    def _rest(self) -> dict[str, Fraction]:
        """The part of the cost that the look leaves."""
        left = 1 if self.per_user == 1 else 1 - LOOK
        return {"epsilon": left * self.epsilon, "delta": self.delta}

    @property
    def plan_command(self) -> str:
        """The command that says how many individuals a key must have."""
        cost = f"--epsilon {plain(self.epsilon)} --delta {plain(self.delta)}"
        return f"privmax plan --keys --per-user {self.per_user} {cost}"

    def prepare(self) -> None:
        """Find public numbers of what may run, so that what fails for them fails here.

        Raises:
            ParameterError: Epsilon and delta are so small that rounds have no room for the noise.
        """
        self.single.test.certain()
        if self.per_user == 1:
            return
        rounds = self.rounds(self.per_user)
        if rounds.sigma > WIDEST:
            raise ParameterError(
                "epsilon",
                plain(self.epsilon),
                f"with this delta the noise would be wider than {WIDEST:,} individuals",
                "Choose a larger epsilon; common values are between 0.1 and 3.",
            )
        assert rounds.looks
        assert rounds.last

    def draw(self, source: Electorate, coins: Coins) -> FoundKeys:
        """Draw the keys that are released."""
        if self.per_user == 1:
            return self._draw_single(source, {}, coins)
        people, root, slots = self.look(source.everyone, coins)
        seen: dict[str, int | float] = {"users_estimate": people}
        if root < ENOUGH:
            return self._draw_single(source, seen, coins)
        numbers = self.rounds(slots).draw(source.everyone, source.number, coins)
        return FoundKeys(numbers, {"keys_per_user": slots, **seen})

    def look(self, source: SizedBallots, coins: Coins) -> tuple[int, Fraction, int]:
        """Count individuals by how many keys they have, in bins of 1, 2, 3–4, 5–8, … keys.

        One individual moves one of the counts, by 1.

        Returns:
            How many individuals there are, the mean root of their number of keys, and how many of
            their keys count in the last round; all from noisy counts.
        """
        tally, scale = source.tally(self.per_user), 1 / (LOOK * self.epsilon)
        people, clear, roots, squares, low = 0, 0, Fraction(0), Fraction(0), 0
        while low < self.per_user:
            high = min(max(2 * low, 1), self.per_user)
            number = sum(tally[low:high]) + discrete_laplace(scale, coins)
            people += number
            if number >= FAINT * scale:
                middle = Fraction(low + 1 + high, 2)
                clear += number
                roots += number * _root(middle)
                squares += number * (self.per_user if high == self.per_user else middle) ** 2
            low = high
        if not clear:
            usual = min(USUAL, self.per_user)
            return people, _root(Fraction(usual)), usual
        slots = isqrt(math.ceil(squares / clear) - 1) + 1
        return people, roots / clear, min(max(slots, LEAST_SLOTS), self.per_user)

    def _draw_single(
        self, source: Electorate, seen: dict[str, int | float], coins: Coins
    ) -> FoundKeys:
        numbers = self.single.draw(source.everyone, coins)
        return FoundKeys(numbers, {"keys_per_user": 1, **seen})


def _root(number: Fraction) -> Fraction:
    return Fraction(isqrt(int(number * (1 << 32))), 1 << 16)
