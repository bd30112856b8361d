"""Rounds of noisy totals: look twice, then give where a little more is enough.

In every round each individual divides a weight of norm 1 among some of its keys. Every key that
someone has and whose noisy total reached no earlier threshold gets a noisy total. What reaches the
threshold of the round is released if someone gave it anything: an individual may have any number
of keys, and those of its own that it gives nothing must not come out.

    looks      each individual gives the same to at most `per_user` of its keys
    question   what part of an individual's keys looks hopeless so far, on average?
    last       each gives to at most `slots` of its keys, in proportion to s / max(y, 2s): what a
               key needs, where the looks saw a total of y with a standard deviation of s. Keys
               below c·s count next to nothing, and the answer to the question decides c

Proof:      docs/proofs/keys-rounds.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privmax.keyset.budget import ONE, find_noise, find_threshold
from privmax.noise.bulk import rounded_gaussian
from privmax.noise.coins import Coins
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import Privacy

Integers = NDArray[np.int64]

FEW_SLOTS = 16
"""From so many slots on looks get more of the budget."""

LOOKS_OF_FEW = Fraction(30, 1000), Fraction(150, 1000)
LOOKS_OF_MANY = Fraction(50, 1000), Fraction(220, 1000)
"""Parts of the budget, which is one over the variance, that the two looks have."""

QUESTION = Fraction(4, 1000)
"""The part of the question; the last round has the rest."""

PASSING = Fraction(4, 10)
"""The part of delta that is left to thresholds."""

LOOKS_PASSING = Fraction(1, 10)
"""The part of that which looks have, both together."""

LOWEST_CUT, HIGHEST_CUT = Fraction(2, 10), Fraction(13, 10)
CUT_SLOPE, CUT_START = Fraction(6, 10), Fraction(16, 10)
"""Slope and start of c, a function of how many of an individual's keys look hopeless at last."""

TOP = 1 << 18
"""The value of a key that needs most; one below the cut has 1. Floats add up the squares of as many
as one individual may have without rounding.
"""


class Ballots(Protocol):
    """The totals that individuals give to keys, which are numbered from 0 on; in steps."""

    def among(self, keys: Integers) -> Self:
        """Return the same of some keys alone."""
        ...

    def give(self, most: int, turn: int, values: Integers | None = None) -> Integers:
        """Return the totals of all keys if each individual gives to at most `most` of its keys, in
        proportion to public values.
        """
        ...

    def survey(self, low: NDArray[np.bool_]) -> tuple[int, int]:
        """Return the totals of two answers: one per individual, and the part of its keys that are
        low.
        """
        ...


@dataclass(frozen=True)
class Round:
    """The public numbers of a round: variance of its noise in steps², and threshold in steps."""

    variance: Fraction
    threshold: int


class KeyRounds(Parameters):
    """Release keys in rounds.

    Args:
        epsilon: What all rounds cost, with `delta`.
        delta: Above 0.
        per_user: How many keys of one individual count at most in a look.
        slots: The same in the last round; public.

    Examples:
        >>> rounds = KeyRounds(epsilon=1, delta=1e-6, per_user=30, slots=10)
        >>> [round(one.threshold / ONE) for one in (*rounds.looks, rounds.last)]
        [152, 68, 26]
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(open_probability)
    per_user: Whole = parameter(whole, default=30)
    slots: Whole = parameter(whole, default=30)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The parts of the budget that the two looks have."""
        return LOOKS_OF_FEW if self.slots < FEW_SLOTS else LOOKS_OF_MANY

    @cached_property
    def looks(self) -> tuple[Round, ...]:
        """The public numbers of the looks."""
        passing = LOOKS_PASSING * self._passing / len(self.shares)
        return tuple(
            Round(
                self._variance(share) * ONE**2,
                find_threshold(self._variance(share), passing, self.per_user, equal=True),
            )
            for share in self.shares
        )

    @cached_property
    def last(self) -> Round:
        """The public numbers of the last round."""
        variance = self._variance(1 - sum(self.shares) - QUESTION)
        passing = (1 - LOOKS_PASSING) * self._passing
        threshold = find_threshold(variance, passing, self.slots, equal=False)
        return Round(variance * ONE**2, threshold)

    def draw(self, source: Ballots, number: int, coins: Coins) -> Integers:
        """Draw the keys that are released, by number, in order.

        Args:
            source: Who gives to which of them.
            number: How many keys someone has.
            coins: Where random bits come from.
        """
        alive, released = np.arange(number), np.zeros(number, np.bool_)
        pooled = np.zeros(number, np.int64)
        for turn, (share, look) in enumerate(zip(self.shares, self.looks, strict=True)):
            totals = source.give(self.per_user, turn)[alive]
            seen = _add_noise(totals, look.variance, coins)
            pooled[alive] += int(1000 * share) * seen
            # Which keys take part later follows from noisy totals alone; what is released does not.
            passed = seen >= look.threshold
            released[alive[passed & (totals > 0)]] = True
            alive = alive[~passed]
            source = source.among(alive)
        pooled //= int(1000 * sum(self.shares))
        values = self.value_keys(pooled, self.find_cut(source, pooled, coins))
        totals = source.give(self.slots, len(self.shares), values)[alive]
        passed = _add_noise(totals, self.last.variance, coins) >= self.last.threshold
        released[alive[passed & (totals > 0)]] = True
        return np.flatnonzero(released)

    def find_cut(self, source: Ballots, pooled: Integers, coins: Coins) -> Fraction:
        """Ask how many of an individual's keys look hopeless, and decide where the cut is.

        Args:
            source: Who has which of the keys that are left.
            pooled: Their noisy totals over both looks, by number.
            coins: Where random bits come from.

        Returns:
            In standard deviations of the pooled totals.
        """
        totals = np.array(source.survey(pooled < self._spread), np.int64)
        variance = self._variance(QUESTION) * ONE**2
        people, low = _add_noise(totals, variance, coins).tolist()
        part = min(max(Fraction(low, max(people, 1)), Fraction(0)), Fraction(1))
        cut = LOWEST_CUT + CUT_SLOPE * (part * self.slots - CUT_START)
        return min(max(cut, LOWEST_CUT), HIGHEST_CUT)

    def value_keys(self, pooled: Integers, cut: Fraction) -> Integers:
        """Return the value of each key in the last round, by its noisy total over both looks."""
        spread = self._spread
        values = 2 * spread * TOP // np.maximum(pooled, 2 * spread)
        return np.where(pooled > int(cut * spread), np.maximum(values, 1), 1)

    @cached_property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise of all rounds together, in records."""
        return find_noise(self.epsilon, self.delta, self._passing)

    @property
    def _passing(self) -> Fraction:
        return PASSING * self.delta

    def _variance(self, share: Fraction) -> Fraction:
        """Of the noise of a round that has this part of the budget, in records²."""
        return self.sigma**2 / share

    @cached_property
    def _spread(self) -> int:
        """The standard deviation of totals that are pooled over both looks, in steps."""
        return isqrt(int(self._variance(sum(self.shares, Fraction(0))) * ONE**2))


def _add_noise(totals: Integers, variance: Fraction, coins: Coins) -> Integers:
    return totals + rounded_gaussian(variance, len(totals), coins)
