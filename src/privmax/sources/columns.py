"""Columns of scores in memory, read in chunks: no copy of a column is ever made.

Whole numbers are taken as they are. On a public grid a score is q = ⌊score / resolution⌋, computed
exactly (a float is the decimal that it prints as). How many steps one individual moves it by is
in `Scale` (docs/proofs/rounding.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.numbers import decimal_of
from privmax.profile import Level

_CHUNK = 1 << 15
"""Entries read at a time: few enough to stay in a processor's cache from one step to the next."""

_DENSE = 1 << 16
"""Up to this many levels a histogram is counted into an array; beyond it, by sorting."""


Place = tuple[int, int]
"""A score, and an index among the entries at it."""


class ScoreColumn(Protocol):
    """Scores by position, as integers: what a `Profile` reads, and who has which score."""

    def listed(self) -> int:
        """Return how many scores there are."""
        ...

    def maximum(self) -> int | None:
        """Return the highest score; None where there is none."""
        ...

    def histogram(self, above: int) -> list[Level]:
        """(score, count) of the occupied levels above a score, highest first."""
        ...

    def scores(self) -> list[int]:
        """Return every score, by position."""
        ...

    def score(self, position: int) -> int:
        """Return the score at a position."""
        ...

    def find(self, places: Sequence[Place]) -> list[int | None]:
        """Find the position of the `index`-th entry at exactly a score, for each such place.

        None if there are fewer. The scores are passed over once, however many places there are.
        """
        ...

    def find_below(self, score: int, indexes: Sequence[int]) -> list[int | None]:
        """Return the same among the entries at this score or below it."""
        ...


@dataclass(eq=False, repr=False)
class IntegerColumn:
    """Scores in a NumPy array of any integer type."""

    _values: NDArray[Any]
    _top: int | None = None

    def listed(self) -> int:
        return len(self._values)

    def maximum(self) -> int | None:
        if self._top is None and len(self._values):
            self._top = int(self._values.max())
        return self._top

    def histogram(self, above: int) -> list[Level]:
        top = self.maximum()
        if top is None or above >= top:
            return []
        if top - above > _DENSE:
            return _tally(chunk[chunk > above] for chunk in _chunks(self._values))
        counts = np.zeros(top - above + 1, np.int64)
        for chunk in _chunks(self._values):
            near = chunk > above
            number = np.count_nonzero(near)
            if 4 * number > len(chunk):
                # picking many out one by one is slow: raise the others to `above` instead
                least = max(above, int(np.iinfo(chunk.dtype).min))
                raised = _depths(top, np.maximum(chunk, least))
                counts += np.bincount(raised, minlength=len(counts))
            elif number:
                counts += np.bincount(_depths(top, chunk[near]), minlength=len(counts))
        occupied = np.flatnonzero(counts[:-1])  # the last holds those at `above`, who do not count
        return [
            (top - depth, count)
            for depth, count in zip(occupied.tolist(), counts[occupied].tolist(), strict=True)
        ]

    def nth(self, number: int) -> int | None:
        score = _nth(self._values, number)
        return int(score) if score is not None and score > 0 else None

    def scores(self) -> list[int]:
        return [int(value) for value in self._values.tolist()]

    def score(self, position: int) -> int:
        return int(self._values[position])

    def find(self, places: Sequence[Place]) -> list[int | None]:
        limits = np.iinfo(self._values.dtype)
        least, most = int(limits.min), int(limits.max)  # each is computed when it is asked for
        scores = sorted({score for score, _ in places if least <= score <= most})
        lows = np.array(scores, self._values.dtype)
        return _find_places(
            self._values, lows, lows, {score: n for n, score in enumerate(scores)}, places
        )

    def find_below(self, score: int, indexes: Sequence[int]) -> list[int | None]:
        return _find_all((chunk <= score for chunk in _chunks(self._values)), indexes)


@dataclass(eq=False, repr=False)
class BigIntegerColumn:
    """Scores beyond 64 bits, as Python integers."""

    _values: Sequence[int]

    def listed(self) -> int:
        return len(self._values)

    def maximum(self) -> int | None:
        return max(self._values, default=None)

    def histogram(self, above: int) -> list[Level]:
        return sorted(
            Counter(value for value in self._values if value > above).items(), reverse=True
        )

    def scores(self) -> list[int]:
        return list(self._values)

    def score(self, position: int) -> int:
        return self._values[position]

    def find(self, places: Sequence[Place]) -> list[int | None]:
        members: dict[int, list[int]] = {score: [] for score, _ in places}
        for position, value in enumerate(self._values):
            if value in members:
                members[value].append(position)
        return [
            members[score][index] if index < len(members[score]) else None
            for score, index in places
        ]

    def find_below(self, score: int, indexes: Sequence[int]) -> list[int | None]:
        return _find_all([np.array([value <= score for value in self._values])], indexes)


class FloatColumn:
    """Finite floats of any length, seen through a grid of the given resolution.

    Each is the decimal that it prints as.
    """

    def __init__(self, values: NDArray[Any], resolution: Fraction) -> None:
        self._values = values
        self._resolution = resolution
        # Outside this range a float is no longer within rounding of the resolution, and `_grid_all`
        # must not use one.
        usable = Fraction(2) ** -1000 < resolution < 2**1000
        self._step = float(resolution) if usable else math.nan
        # max and min are finite only if every value is: NaN and infinities spread through one of
        # them
        if len(values) and not (
            math.isfinite(float(values.max())) and math.isfinite(float(values.min()))
        ):
            raise DataError(
                "A score is NaN or infinite. Drop or replace such candidates before selecting."
            )

    def listed(self) -> int:
        return len(self._values)

    def maximum(self) -> int | None:
        return self._grid(self._values.max()) if len(self._values) else None

    def histogram(self, above: int) -> list[Level]:
        edge = self._edge(above + 1)
        tally: Counter[int] = Counter()
        for chunk in _chunks(self._values):
            values, counts = np.unique(chunk[chunk >= edge], return_counts=True)
            for score, count in zip(self._grid_all(values), counts.tolist(), strict=True):
                tally[score] += count
        return sorted(tally.items(), reverse=True)

    def nth(self, number: int) -> int | None:
        value = _nth(self._values, number)
        score = 0 if value is None else self._grid(value)
        return score if score > 0 else None

    def scores(self) -> list[int]:
        return self._grid_all(self._values)

    def score(self, position: int) -> int:
        return self._grid(self._values[position])

    def find(self, places: Sequence[Place]) -> list[int | None]:
        kind = self._values.dtype
        edges = [
            (self._edge(score), self._edge(score + 1), score)
            for score in sorted({score for score, _ in places})
        ]
        # Where no float lies between two lines of the grid, nobody stands there.
        levels = [(low, high, score) for low, high, score in edges if low < high]
        lows, highs = (np.array([level[side] for level in levels], kind) for side in (0, 1))
        with np.errstate(all="ignore"):
            lasts = np.nextafter(highs, kind.type(-math.inf))
        level_of = {score: number for number, (_, _, score) in enumerate(levels)}
        return _find_places(self._values, lows, lasts, level_of, places)

    def find_below(self, score: int, indexes: Sequence[int]) -> list[int | None]:
        high = self._edge(score + 1)
        return _find_all((chunk < high for chunk in _chunks(self._values)), indexes)

    def _grid(self, value: Any) -> int:
        """Return ⌊value / resolution⌋, exactly."""
        return math.floor(decimal_of(value) / self._resolution)

    def _grid_all(self, values: NDArray[Any]) -> list[int]:
        """Return `_grid` of many: by division where rounding cannot matter, else exactly."""
        kind = np.finfo(values.dtype)
        with np.errstate(all="ignore"):
            ratio = values.astype(np.float64) / self._step
            # What a normal float prints as is within eps / 2 of it, relatively; step and quotient
            # are rounded once each, by 2^−53. The true ratio is within 2^−51 + eps / 2 of this one.
            doubt = np.abs(ratio) * (2.0**-50 + float(kind.eps)) + 2.0**-1000
            low, high = np.floor(ratio - doubt), np.floor(ratio + doubt)
            normal = (np.abs(values) >= kind.smallest_normal) | (values == 0)
            sure = (low == high) & (np.abs(ratio) < 2.0**50) & normal
        return [
            int(estimate) if certain else self._grid(value)
            for estimate, certain, value in zip(low.tolist(), sure.tolist(), values, strict=True)
        ]

    def _edge(self, score: int) -> Any:
        """Return the least float whose grid score is at least `score`.

        Comparing with it is exact.
        """
        return least_float(score * self._resolution, self._values.dtype.type)


def least_float(number: Fraction, kind: Any = np.float64) -> Any:
    """Return the least float of a type that prints as `number` or more; infinity if there is none.

    A larger float prints as a larger decimal. The nearest float is at most a few steps away, so
    both loops end.
    """
    with np.errstate(all="ignore"):
        try:
            edge = kind(float(number))
        except OverflowError:
            edge = kind(math.inf if number > 0 else -math.inf)
        while (
            np.isfinite(below := np.nextafter(edge, kind(-math.inf)))
            and decimal_of(below) >= number
        ):
            edge = below
        while np.isfinite(edge) and decimal_of(edge) < number:
            edge = np.nextafter(edge, kind(math.inf))
    return edge


def _depths(top: int, chunk: NDArray[Any]) -> NDArray[np.int64]:
    """Return top − score, which is small.

    Scores of 64 bits may be too large for one signed type to hold them all.
    """
    wide = chunk if chunk.dtype.itemsize == 8 else chunk.astype(np.int64)
    return (wide.dtype.type(top) - wide).astype(np.int64, copy=False)


def _chunks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def _nth(values: NDArray[Any], number: int) -> Any:
    """Return the `number`-th highest value; None: there are fewer.

    In one pass, with hardly more than twice as many values in hand, or a few chunks.
    """
    if len(values) <= number:
        return values.min() if len(values) == number else None
    best: NDArray[Any] = values[:0]
    waiting: list[NDArray[Any]] = []
    many = 0  # of those waiting
    least = None  # of the best, once they are so many: what does not exceed it changes nothing
    for chunk in _chunks(values):
        waiting.append(chunk if least is None else chunk[chunk > least])
        many += len(waiting[-1])
        if many >= max(number, _CHUNK):
            best = _highest(np.concatenate([best, *waiting]), number)
            waiting, many, least = [], 0, best[0] if len(best) == number else None
    return _highest(np.concatenate([best, *waiting]), number)[0]


def _highest(values: NDArray[Any], number: int) -> NDArray[Any]:
    """Return so many of the highest values, the least of them first; all, if there are fewer."""
    others = len(values) - number
    return np.partition(values, others)[others:] if others > 0 else np.sort(values)


def _tally(chunks: Iterator[NDArray[Any]]) -> list[Level]:
    tally: Counter[int] = Counter()
    for chunk in chunks:
        values, counts = np.unique(chunk, return_counts=True)
        levels = dict(zip(values.tolist(), counts.tolist(), strict=True))
        if tally:
            for score, count in levels.items():
                tally[score] += count
        else:
            tally = Counter(levels)
    return sorted(tally.items(), reverse=True)


def _find_all(
    hits: Iterator[NDArray[np.bool_]] | Sequence[NDArray[np.bool_]], indexes: Sequence[int]
) -> list[int | None]:
    """Return the position of the `index`-th True over all chunks, for each index."""
    order = sorted(range(len(indexes)), key=indexes.__getitem__)
    places: list[int | None] = [None] * len(indexes)
    passed, seen, following = 0, 0, 0
    for chunk in hits:
        if following == len(order):
            break
        number = int(np.count_nonzero(chunk))
        if indexes[order[following]] < seen + number:
            positions = np.flatnonzero(chunk)
            while following < len(order) and (index := indexes[order[following]]) < seen + number:
                places[order[following]] = passed + int(positions[index - seen])
                following += 1
        seen += number
        passed += len(chunk)
    return places


def _find_places(
    values: NDArray[Any],
    lows: NDArray[Any],
    lasts: NDArray[Any],
    level_of: Mapping[int, int],
    places: Sequence[Place],
) -> list[int | None]:
    """Find the position of the `index`-th entry of a level, for each place, in one pass.

    Args:
        lows, lasts: The least and the greatest value of each level; the levels ascend, none
            overlap.
        level_of: Which level a score is; a score without one has no entries.
    """
    if len(lows) == 1 and all(score in level_of for score, _ in places):  # as for one item
        hits = ((chunk >= lows[0]) & (chunk <= lasts[0]) for chunk in _chunks(values))
        return _find_all(hits, [index for _, index in places])
    base = len(values) + 1  # a level and an index together are one number, level · base + index
    sought = [
        place
        for place, (score, index) in enumerate(places)
        if score in level_of and index < len(values)
    ]
    numbers = [level_of[places[place][0]] * base + places[place][1] for place in sought]
    keys, origins = np.unique(np.array(numbers, np.int64), return_inverse=True)
    positions = np.full(len(keys), -1)
    found = 0
    seen = np.zeros(len(lows), np.int64)
    passed = 0
    for chunk in _chunks(values) if sought else ():
        near = np.flatnonzero(chunk >= lows[0])
        level = np.searchsorted(lows, chunk[near], side="right") - 1
        inside = chunk[near] <= lasts[level]
        near, level = near[inside], level[inside]
        order = np.argsort(level, kind="stable")
        near, level = near[order], level[order]
        here = np.bincount(level, minlength=len(lows))
        index = np.arange(len(level)) - (np.cumsum(here) - here)[level] + seen[level]
        number = level * base + index
        place = np.minimum(np.searchsorted(keys, number), len(keys) - 1)
        met = np.flatnonzero(keys[place] == number)
        positions[place[met]] = passed + near[met]
        found += len(met)
        seen += here
        passed += len(chunk)
        if found == len(keys):
            break
    answer: list[int | None] = [None] * len(places)
    for one, position in zip(sought, positions[origins].tolist(), strict=True):
        answer[one] = position if position >= 0 else None
    return answer
