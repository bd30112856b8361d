"""Typical profiles: a public family on which mechanisms for the best k of a closed universe are
compared by what they miss.

Plans for lists in an open universe say what is missed on the same family.

Scores fall off with the rank r as 1/r, or as 1/√r, from a highest one of 250 to 16,000 times c/ε:
ten thousand to a million records at ε = 1 that pick one of many items each, or fewer that pick
several. So what is missed depends on k, ε, δ and the universe alone. Nothing here is private, and
nothing enters a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import fsum, isqrt

from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.ranked_margin import RankedMargin
from privmax.mechanisms.set_margin import SetMargin
from privmax.privacy import drift
from privmax.profile import Level, Profile

HIGHEST = (500, 2000, 8000, 32_000)
"""The highest score, in units of c/ε."""

GRAIN = 32
"""From this rank on some share a score: one part in so many of the rank."""

PLACES = 3
"""Decimals to which parts that are missed are compared."""


@lru_cache(maxsize=256)
def typical_misses(
    mechanism: SetMargin | RankedMargin | Exponential, universe: int | None
) -> float:
    """Return what part of its best k a mechanism misses, on average over the family.

    Args:
        mechanism: Its law says how many of the best it releases.
        universe: How many candidates there are; None: open.

    Examples:
        >>> from privmax import SetMargin
        >>> few, many = (typical_misses(SetMargin(epsilon=1, k=9), size) for size in (10, 10**6))
        >>> few < many
        True
    """
    k = mechanism.k
    unit = drift(mechanism.neighbors) / Fraction(mechanism.privacy().epsilon)
    missed = [
        1 - min(mechanism.expect(profile, k)[1] / k, 1.0)
        for profile in typical_profiles(k, universe, unit)
    ]
    return round(fsum(missed) / len(missed), PLACES)


def show_part(part: float) -> str:
    """Return a part that is missed as text.

    Args:
        part: From 0 to 1.

    Examples:
        >>> show_part(0.105)
        '10.5 %'
    """
    return f"{100 * part:.1f} %"


def typical_profiles(k: int, universe: int | None, unit: Fraction) -> Iterator[Profile]:
    """Give the profiles of the family, one after the other.

    Args:
        k: How many are asked for.
        universe: How many candidates there are; None: open.
        unit: c/ε.

    Examples:
        >>> profile = next(typical_profiles(4, 9, Fraction(1, 50)))
        >>> profile.down_to(9).first(9)
        [(0, 1), (5, 1), (7, 1), (8, 2), (9, 4)]
    """
    for times in HIGHEST:
        for top, score in ((times * unit, int), ((times * unit) ** 2, _root)):
            yield Profile(_levels(k, universe, top, score), universe=universe)


def _levels(
    k: int, universe: int | None, top: Fraction, score: Callable[[Fraction], int]
) -> Iterator[Level]:
    """Scores above 0, and how many have each."""
    number, last = 0, None
    for first, many in _ranks(k, universe):
        value = score(top / (first + Fraction(many - 1, 2)))
        if last is not None and value != last:
            yield last, number
            number = 0
        if value <= 0:
            return
        number, last = number + many, value
    if last is not None:
        yield last, number


def _ranks(k: int, universe: int | None) -> Iterator[tuple[int, int]]:
    """Ranks in groups: the first of each, and how many there are. Rank k ends one.

    In an open universe they have no end.
    """
    rank = 1
    while universe is None or rank <= universe:
        many = max(1, rank // GRAIN)
        end = k if rank <= k else universe
        if end is not None:
            many = min(many, end + 1 - rank)
        yield rank, many
        rank += many


def _root(square: Fraction) -> int:
    return isqrt(int(square))
