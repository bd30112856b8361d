"""Every itemset of a closed universe by number, without listing any.

It serves candidates that are too many to be counted one by one.

The fixed order is: shorter ones first, then lexicographic by ascending codes. Numbers are exact
integers of any size.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.numbers import whole

_FITS = 1 << 62
"""Universes below this are ranked in arrays of 64 bits."""


class Numbering:
    """All itemsets of some sizes over the items 0 … items−1.

    Sizes beyond the number of items hold none.

    Args:
        items: How many items there are.
        sizes: Of the itemsets, from 1 on.

    Examples:
        >>> pairs = Numbering(4, range(2, 3))
        >>> pairs.size, pairs.unrank(3), pairs.rank((1, 2))
        (6, (1, 2), 3)
    """

    def __init__(self, items: int, sizes: range) -> None:
        self.items = whole("items", items, least=0)
        if sizes.step != 1 or sizes.start < 1 or not sizes:
            raise ParameterError(
                "sizes",
                sizes,
                "it must be a range of sizes from 1 on, without gaps",
                "range(2, 5).",
            )
        self.sizes = range(sizes.start, min(sizes.stop, items + 1))

    @cached_property
    def _before(self) -> list[int]:
        """The number of itemsets shorter than each size, and last the number of all."""
        counts, count = [], math.comb(self.items, self.sizes.start) if self.sizes else 0
        for size in self.sizes:  # from one size to the next is cheaper than a binomial for each
            counts.append(count)
            count = count * (self.items - size) // (size + 1)
        return list(accumulate(counts, initial=0))

    @property
    def size(self) -> int:
        """The number of itemsets."""
        return self._before[-1]

    def rank(self, codes: Sequence[int]) -> int:
        """Return the number of an itemset, from 0. Its codes ascend."""
        length = len(codes)
        if length not in self.sizes or any(a >= b for a, b in pairwise(codes)):
            raise ParameterError(
                "codes", "an itemset", "its codes must ascend, and its size be one of the universe"
            )
        if codes[0] < 0 or codes[-1] >= self.items:
            raise ParameterError("codes", "an itemset", "its codes must be items of the universe")
        # Of those as long, the ones that come after: they agree up to some place and have a larger
        # code there.
        after = sum(
            math.comb(self.items - 1 - code, length - place) for place, code in enumerate(codes)
        )
        return self._before[length - self.sizes.start + 1] - 1 - after

    def ranks(self, itemsets: NDArray[np.int32]) -> list[int]:
        """Return the number of each row: ascending codes, padded with −1."""
        lengths = (itemsets >= 0).sum(axis=1)
        if self.size >= _FITS:
            return [
                self.rank(row[:length])
                for row, length in zip(itemsets.tolist(), lengths.tolist(), strict=True)
            ]
        numbers = np.empty(len(itemsets), np.int64)
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            after = np.zeros(rows.size, np.int64)
            for place in range(length):
                after += self._binomials(length - place)[self.items - 1 - itemsets[rows, place]]
            numbers[rows] = self._before[length - self.sizes.start + 1] - 1 - after
        return numbers.tolist()

    def unrank(self, rank: int) -> tuple[int, ...]:
        """Return the itemset with this number."""
        if not 0 <= rank < self.size:
            raise ParameterError(
                "rank", "a number", "it must be from 0 to the number of itemsets less one"
            )
        index = bisect_right(self._before, rank) - 1
        after = self._before[index + 1] - 1 - rank
        size = self.sizes[index]
        # Greedy digits of the combinatorial number system: each the largest d with C(d, left) ≤
        # what remains.
        digits = search_digits if size * self.items.bit_length() < self.items else walk_digits
        return tuple(self.items - 1 - digit for digit in digits(after, size, self.items))

    def _binomials(self, choose: int) -> NDArray[np.int64]:
        """C(d, choose) for d from 0 to items−1; each is below the size of the universe."""
        if choose not in self._columns:
            column = np.ones(self.items, np.int64)
            for _ in range(choose):
                column = np.concatenate([[0], np.cumsum(column)[:-1]])
            self._columns[choose] = column
        return self._columns[choose]

    @cached_property
    def _columns(self) -> dict[int, NDArray[np.int64]]:
        return {}


def search_digits(after: int, size: int, items: int) -> Iterator[int]:
    """Yield the digits by bisection: for few of them.

    Examples:
        >>> list(search_digits(2, 2, 4))
        [2, 1]
    """
    for left in range(size, 0, -1):
        digit = _digit(after, left, items)
        after -= math.comb(digit, left)
        yield digit


def _digit(after: int, left: int, items: int) -> int:
    return bisect_right(range(items), after, key=lambda d: math.comb(d, left)) - 1


def walk_digits(after: int, size: int, items: int) -> Iterator[int]:
    """Yield the digits by walking down all items, each binomial made from the one before.

    It is for many digits.

    Examples:
        >>> list(walk_digits(2, 2, 4))
        [2, 1]
    """
    digit, left = items - 1, size
    binomial = math.comb(digit, left)
    while left:
        if binomial <= after:
            after -= binomial
            yield digit
            binomial = (
                binomial * left // max(digit, 1)
            )  # C(d − 1, left − 1); at d = 0 nothing comes after
            left -= 1
        else:
            binomial = binomial * (digit - left) // digit
        digit -= 1


def nth_outside(index: int, excluded: Sequence[int]) -> int:
    """Return the `index`-th (from 0) of the numbers 0, 1, 2, … that are not among `excluded`.

    `excluded` ascends strictly.

    Examples:
        >>> [nth_outside(index, [0, 2]) for index in range(3)]
        [1, 3, 4]
    """
    # excluded[m] − m of the numbers before excluded[m] are not excluded; it never falls as m grows.
    passed = bisect_right(range(len(excluded)), index, key=lambda m: excluded[m] - m)
    return index + passed
