"""Points of a huge finite domain: "is it this one?", as itself and by public random hashes.

`Points` holds one rule for every element of the domain, and privacy without δ costs ln|domain|.
`HashedPoints` is a representation of it in the sense of Beimel, Nissim and Stemmer: a class drawn
at random, without the data, that holds a good rule for every point with high probability, and
whose size does not depend on the domain.

Proof:      docs/proofs/points.md
Reference:  Beimel, Kasiviswanathan & Nissim, TCC 2010; Beimel, Nissim & Stemmer, ITCS 2013
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.learning.classes.contract import Codes, Counts, Shape, Tunable, check_two_labels
from privmax.numbers import whole
from privmax.profile import Level

PRIME = (1 << 61) - 1
"""Hashes are computed modulo this."""

LARGEST = 1 << 53
"""Learners read rows as floats, which hold every whole number below this and merge some above."""


MOST_RULES = 1 << 24
"""The score of every rule of `HashedPoints` is in memory."""


@dataclass(frozen=True, repr=False)
class Points(Tunable):
    """Rule p says 1 of p and 0 of everything else, for every p of 0 … domain − 1.

    X has one column of whole numbers. What lies outside the domain is 0 to every rule.

    Args:
        domain: How many elements there are, which is public; at most 2^53.

    Examples:
        >>> X, y = np.array([[7], [7], [3]]), np.array([1, 1, 0])
        >>> shape, points = Shape(features=1, labels=2), Points(10**12)
        >>> points.size(shape), points.score(X, y, shape).histogram(0)[0]
        (1000000000000, (3, 1))
    """

    binary: ClassVar[bool] = True

    domain: int

    def size(self, shape: Shape) -> int:
        _check_shape(shape)
        return _read_domain(self.domain)

    def dimension(self, shape: Shape) -> int:
        """Return the VC dimension of points."""
        return 1

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> PointScores:
        tally: Counter[int] = Counter()
        domain = self.size(shape)
        for place, label in zip(_read_places(X, domain).tolist(), y.tolist(), strict=True):
            if place >= 0:
                tally[place] += 1 if label else -1
        return PointScores(tally, int(np.count_nonzero(y == 0)), domain)

    def hypothesis(self, number: int, shape: Shape) -> Point:
        return Point(number)


@dataclass(frozen=True, repr=False)
class Point:
    """Says 1 of one element.

    Examples:
        >>> Point(7), Point(7).predict(np.array([[7], [8]])).tolist()
        (<1 if x0 == 7 else 0>, [1, 0])
    """

    place: int

    def __repr__(self) -> str:
        return f"<1 if x0 == {self.place} else 0>"

    def predict(self, X: NDArray[Any]) -> Codes:
        says: Codes = (X[:, 0] == self.place).astype(np.intp)
        return says


class PointScores:
    """Correct examples of every point; those that no example is at share one score.

    Args:
        tally: Examples with label 1 less those with label 0, by element.
        others: What a point gets right that no example is at.
        domain: How many elements there are.
    """

    def __init__(self, tally: Counter[int], others: int, domain: int) -> None:
        self._scores = {place: others + more for place, more in tally.items()}
        self._others, self._domain = others, domain

    def __repr__(self) -> str:
        return "PointScores(<private>)"

    def maximum(self) -> int | None:
        unseen = [self._others] if len(self._scores) < self._domain else []
        return max([*self._scores.values(), *unseen])

    def histogram(self, above: int) -> list[Level]:
        tally = Counter(self._scores.values())
        tally[self._others] += self._domain - len(self._scores)
        return sorted(((s, n) for s, n in tally.items() if s > above and n), reverse=True)

    def at(self, score: int, index: int) -> int | None:
        return self._find(index, lambda own: own == score)

    def at_or_below(self, score: int, index: int) -> int | None:
        return self._find(index, lambda own: own <= score)

    def _find(self, index: int, fits: Any) -> int | None:
        """Return the `index`-th element, in order, whose score fits."""
        if not fits(self._others):
            places = sorted(place for place, score in self._scores.items() if fits(score))
            return places[index] if index < len(places) else None
        place = index
        for other in sorted(place for place, score in self._scores.items() if not fits(score)):
            if other > place:
                break
            place += 1
        return place if place < self._domain else None


@dataclass(frozen=True, kw_only=True, repr=False)
class HashedPoints(Tunable):
    """Rule (r, j) says 1 where the r-th public hash of x is j, else 0; and one rule is always 0.

    For every point p and every distribution, some rule errs on at most 2/cells where p errs on
    nothing, except with probability 2^−hashes over the seed. So the size of the domain costs
    nothing, but rules are not points any more.

    Args:
        domain: How many elements there are, at most 2^53.
        cells: How many values each hash has.
        hashes: How many hashes there are.
        seed: Public, and chosen without the data.

    Examples:
        >>> HashedPoints(domain=10**15, cells=100, hashes=5).size(Shape(features=1, labels=2))
        501
    """

    binary: ClassVar[bool] = True

    domain: int
    cells: int = 64
    hashes: int = 8
    seed: str = "privmax"

    def size(self, shape: Shape) -> int:
        _check_shape(shape)
        _read_domain(self.domain)
        rules = 1 + whole("cells", self.cells) * whole("hashes", self.hashes)
        if rules > MOST_RULES:
            allowed = f"there are {rules:,} rules, and at most {MOST_RULES:,} are scored"
            raise ParameterError("cells", self.cells, allowed, "Use fewer cells or hashes.")
        return rules

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Counts:
        counts = np.full(self.size(shape), np.count_nonzero(y == 0), np.int64)
        places = _read_places(X, self.domain)
        inside, signs = places >= 0, np.where(y == 1, 1, -1)
        for number, (a, b) in enumerate(self._factors):
            cells = _hash(places[inside], a, b, self.cells)
            start = 1 + number * self.cells
            np.add.at(counts[start : start + self.cells], cells, signs[inside])
        return Counts(counts)

    def hypothesis(self, number: int, shape: Shape) -> HashedPoint:
        hashed, cell = divmod(number - 1, self.cells)
        a, b = self._factors[hashed] if number else (1, 0)
        return HashedPoint(a, b, self.cells, cell if number else None, self.domain)

    @cached_property
    def _factors(self) -> list[tuple[int, int]]:
        """a and b of each hash, from the seed: a not 0."""
        factors = []
        for number in range(self.hashes):
            drawn = sha256(f"{self.seed}/{number}".encode()).digest()
            first, second = (int.from_bytes(part, "big") for part in (drawn[:16], drawn[16:]))
            factors.append((1 + first % (PRIME - 1), second % PRIME))
        return factors


@dataclass(frozen=True, repr=False)
class HashedPoint:
    """Says 1 where ((a·x + b) mod (2^61 − 1)) mod cells is `cell`; None: nowhere.

    Examples:
        >>> HashedPoint(1, 0, 10, 7, 100).predict(np.array([[7], [17], [8]])).tolist()
        [1, 1, 0]
    """

    a: int
    b: int
    cells: int
    cell: int | None
    domain: int

    def __repr__(self) -> str:
        if self.cell is None:
            return "<0>"
        return f"<1 if ({self.a}*x0 + {self.b}) % {PRIME} % {self.cells} == {self.cell} else 0>"

    def predict(self, X: NDArray[Any]) -> Codes:
        places = _read_places(X, self.domain)
        if self.cell is None:
            return np.zeros(len(X), np.intp)
        cells = _hash(places, self.a, self.b, self.cells)
        says: Codes = ((places >= 0) & (cells == self.cell)).astype(np.intp)
        return says


def _hash(places: NDArray[np.int64], a: int, b: int, cells: int) -> NDArray[np.int64]:
    """Return the cell of each element, in Python's own numbers: products exceed 64 bits."""
    distinct, back = np.unique(places, return_inverse=True)
    hashed = [(a * place + b) % PRIME % cells for place in distinct.tolist()]
    return np.array(hashed, np.int64)[back] if hashed else np.empty(0, np.int64)


def _read_places(X: NDArray[Any], domain: int) -> NDArray[np.int64]:
    """Return the element in each row; −1 where it is none of the domain."""
    column = X[:, 0]
    inside = (column >= 0) & (column < domain) & (column == np.floor(column))
    return np.where(inside, column, -1).astype(np.int64)


def _check_shape(shape: Shape) -> None:
    check_two_labels(shape, "Points")
    if shape.features != 1:
        raise DataError("Points have one column: the elements of the domain.")


def _read_domain(domain: int) -> int:
    if whole("domain", domain) > LARGEST:
        raise ParameterError("domain", domain, "it must be at most 2^53", "Hash it to fewer.")
    return domain
