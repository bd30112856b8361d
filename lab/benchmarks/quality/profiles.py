"""The profiles of head_to_head.py: made by formulas, and the item counts of transaction files.

The files hold one basket a line, items as integers. They are not part of this repository.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

Levels = list[tuple[int, int]]

OPEN, NATURAL, HUGE = "open", "natural", "10^12"
"""The universes: not known, just the items there are, and those among 10^12."""

ITEMS = 10**5
BASKET = 2048
"""More than any basket of the transaction files holds: taken as the public bound on what one record
touches.
"""

FILES = ("groceries", "retail", "online_retail", "mushroom", "bms1", "T10I4D100K")


def folder(given: Path | None) -> Path | None:
    """Where the transaction files are, if an option or the environment says so."""
    named = given or os.environ.get("PRIVMAX_DATA")
    return Path(named) if named and Path(named).is_dir() else None


@dataclass(frozen=True)
class Case:
    """A profile: how many items have each count, of how many items there are, of which a record
    touches `growth`.
    """

    name: str
    group: str
    levels: Levels
    items: int
    growth: int = 1

    @property
    def best(self) -> int:
        return self.levels[0][0]

    def size(self, universe: str) -> int | None:
        return {OPEN: None, NATURAL: self.items, HUGE: 10**12}[universe]

    def mean_upto(self, score: int, universe: int) -> float:
        """The mean count of the items with at most this one, those never counted included."""
        above = sum(count for level, count in self.levels if level > score)
        return sum(level * count for level, count in self.levels if level <= score) / (
            universe - above
        )


def zipf(exponent: float, records: int) -> Levels:
    """⌊n·i^−s/Σ_j j^−s⌋ records of item i, for 10^5 items."""
    total = math.fsum(rank**-exponent for rank in range(1, ITEMS + 1))
    return levels_of(math.floor(records * rank**-exponent / total) for rank in range(1, ITEMS + 1))


def even_chance(mean: int) -> Levels:
    """As many items at each count as Poisson's law expects of 10^5, rounded: each record picks its
    item at random.
    """
    shares = {
        score: math.exp(score * math.log(mean) - mean - math.lgamma(score + 1))
        for score in range(1, 10 * mean)
    }
    return sorted(
        ((score, count) for score, share in shares.items() if (count := round(ITEMS * share))),
        reverse=True,
    )


def tied(near: int) -> Levels:
    """`near` items at 1000, all others at 900."""
    return [(1000, near), (900, ITEMS - near)]


def shells() -> Levels:
    """2^j items at 1000 − j, for j = 0 … 19."""
    return [(1000 - depth, 1 << depth) for depth in range(20)]


def levels_of(counts: Iterable[int]) -> Levels:
    """Counts as levels; items that were never seen are not listed."""
    return sorted(
        ((score, count) for score, count in Counter(counts).items() if score), reverse=True
    )


def synthetic() -> Iterator[Case]:
    for records in (10**6, 10**3):
        group = f"Zipf, 10^{len(str(records)) - 1} records"
        for exponent in (0.8, 1.0, 1.2, 1.5, 2.0):
            yield Case(f"{group}, s = {exponent:g}", group, zipf(exponent, records), ITEMS)
    yield Case("uniform", "shapes", [(10, ITEMS)], ITEMS)
    yield Case("uniform by chance", "shapes", even_chance(10), ITEMS)
    yield Case("clear winner", "shapes", tied(1), ITEMS)
    for near in (2, 10, 1000):
        yield Case(f"{near} tied", "shapes", tied(near), ITEMS)
    yield Case("shells", "shapes", shells(), sum(count for _, count in shells()))


def transactions(folder: Path | None) -> Iterator[Case]:
    """How many baskets hold each item. The number of items is taken from the file, which favours
    those who need it.
    """
    for name in FILES if folder else ():
        tally: Counter[str] = Counter()
        with (Path(str(folder)) / f"{name}.dat").open(encoding="ascii") as lines:
            for line in lines:
                basket = set(line.split())
                if len(basket) > BASKET:
                    raise SystemExit(f"{name}: a basket holds more than {BASKET} items")
                tally.update(basket)
        yield Case(name, "transactions", levels_of(tally.values()), len(tally), BASKET)
