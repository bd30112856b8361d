"""Mechanisms that release the best k as a set, and the law of a set.

A set reveals nothing of the order of its members, and is cheaper than a list: see
docs/proofs/set-margin.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

from privmax.errors import ParameterError
from privmax.mechanisms.contract import JointLaw, Mechanism, Outcome
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.numbers import whole
from privmax.profile import Profile, Window

LARGEST_SET = 10**6
"""Larger sets are not drawn: every member is drawn and named."""


def read_size(name: str, value: int) -> int:
    """Read how many candidates a set holds.

    Raises:
        ParameterError: It is no whole number from 1 to LARGEST_SET.

    Examples:
        >>> read_size("k", 10)
        10
    """
    size = whole(name, value)
    if size > LARGEST_SET:
        allowed = f"a set has at most {LARGEST_SET:,} items"
        raise ParameterError(name, value, allowed, "Ask for fewer.")
    return size


class Sets(JointLaw):
    """The exact law of a set.

    Its `chances` are those that so many of each block are released. Sets with the same numbers are
    equally likely.

    Examples:
        >>> law = Sets(((9, 2), (0, None)), None, {(2, 0): 0.75, (0, 0): 0.25}, error=0.0)
        >>> law.size()
        1.5
    """

    def size(self) -> float:
        """Return how many candidates are released on average."""
        return math.fsum(sum(numbers) * chance for numbers, chance in self.chances.items())


def sets_of(
    window: Window,
    chances: Mapping[tuple[int, ...], float],
    error: float,
    relative: float = math.inf,
) -> Sets:
    """Make the law of a set from the probability of each combination of numbers.

    Args:
        window: The profile as the mechanism saw it.
        chances: As in `Sets`; the numbers are those of `window.blocks()`.
        error: As in `Sets`.
        relative: As in `Sets`.

    Examples:
        >>> sets_of(Profile([(9, 1)]).window(5), {(1, 0): 1.0}, error=0.0).blocks
        ((9, 1), (4, None))
    """
    blocks = tuple((window.top - depth, count) for depth, count in window.blocks())
    floor = window.top - window.floor if window.rest else None
    return Sets(blocks, floor, chances, error, relative)


class SetMechanism(Mechanism):
    """A mechanism that releases the best k as a set.

    Examples:
        >>> from privmax import GapTest, Profile
        >>> from privmax.noise.coins import SYSTEM
        >>> test = GapTest(epsilon=1, delta=1e-6, k=2)
        >>> sorted(outcome.index for outcome in test.subset(Profile([(99, 2)]), SYSTEM))
        [0, 1]
    """

    @property
    def ranked(self) -> bool:
        return self.k == 1

    @abstractmethod
    def subset(self, profile: Profile, coins: Coins) -> list[Outcome]:
        """Choose a set of up to k candidates to release, in no order.

        Args:
            profile: The private scores.
            coins: Where random bits come from.

        Returns:
            Fewer than k outcomes where no more could be released.
        """

    @abstractmethod
    def sets(self, profile: Profile) -> Mapping[object, Sets]:
        """Return the law of the set together with whatever is released beside it.

        For small profiles; never released.
        """

    @abstractmethod
    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        """Return how many candidates are released on average, and how many of the `best` highest.

        Candidates tied with the last of those count as one of them. For planning on public data;
        never released.
        """


def uniform_subset(number: int, size: int, coins: Coins) -> list[int]:
    """Draw `size` different integers from 0 … number − 1, every set of them equally likely.

    Floyd's way: it asks for `size` numbers and keeps no more.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> sorted(uniform_subset(3, 3, SYSTEM))
        [0, 1, 2]
    """
    chosen: set[int] = set()
    for last in range(number - size, number):
        place = uniform_below(last + 1, coins)
        chosen.add(last if place in chosen else place)
    return list(chosen)
