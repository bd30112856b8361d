"""Baskets in memory: rows of item codes, and who they belong to.

A `Baskets` is private. Its `repr` shows nothing, and so do the errors raised here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.labels import identify as identify  # noqa: PLC0414 — part of what this module offers
from privmax.labels import item_label
from privmax.numbers import plain_int, whole

LARGEST_ITEM = (1 << 31) - 1
"""Codes have 32 bits, and so have items that are read as numbers."""


@dataclass(frozen=True, repr=False, eq=False)
class Baskets:
    """Rows of item codes, one row a basket.

    The support of an itemset is how many individuals have a row that holds all of it, at least one.

    Args:
        offsets: Row r holds codes[offsets[r]:offsets[r + 1]]; one more than there are rows.
        codes: In any order within a row; a repeated code counts once.
        labels: labels[code] is the item, as `item_label` makes it. Codes are numbered in the fixed
            order of labels: numbers by value, text by its UTF-8 bytes, other kinds apart. A range
            where items are small integers; codes without a row are possible.
        owners: The individual of each row, never decreasing, 0 … n − 1; None: every row is an
            individual.
        weights: For how many individuals each owner stands; None: one each.

    Examples:
        >>> import numpy as np
        >>> rows = Baskets(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), ["a", "b"])
        >>> rows.supports().tolist(), rows.support([0, 1]), rows.individuals
        ([1, 2], 1, 2)
        >>> rows
        Baskets(<private>)
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    labels: Sequence[Any]
    owners: NDArray[np.int64] | None = None
    weights: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return "Baskets(<private>)"

    @property
    def rows(self) -> int:
        """The number of baskets, empty ones included."""
        return len(self.offsets) - 1

    @property
    def individuals(self) -> int:
        """The number of individuals, including those without an item."""
        if self.weights is not None:
            return int(self.weights.sum())
        if self.owners is None:
            return self.rows
        return int(self.owners[-1]) + 1 if self.rows else 0

    @property
    def items(self) -> int:
        """The number of codes."""
        return len(self.labels)

    def supports(self) -> NDArray[np.int64]:
        """Return how many individuals have each item, by code."""
        if self.owners is None and self._ascending():
            if self.weights is None:
                return np.bincount(self.codes, minlength=self.items).astype(np.int64, copy=False)
            counts = np.zeros(self.items, np.int64)
            np.add.at(counts, self.codes, np.repeat(self.weights, np.diff(self.offsets)))
            return counts
        pairs, base = self._pairs()
        codes, owner = np.divmod(pairs, base)
        if self.weights is None:
            return np.bincount(codes, minlength=self.items).astype(np.int64, copy=False)
        counts = np.zeros(self.items, np.int64)
        np.add.at(counts, codes, self.weights[owner])  # bincount would add up floats
        return counts

    def support(self, codes: Sequence[int]) -> int:
        """Return how many individuals have a row that holds all of these items."""
        at = np.flatnonzero(np.isin(self.codes, codes))
        places = np.repeat(np.arange(self.rows), np.diff(self.offsets))[at]
        pairs = np.unique(np.stack([places, self.codes[at]]), axis=1)  # a repeated item: once
        rows, number = np.unique(pairs[0], return_counts=True)
        return self._weigh(np.unique(self._owners_of(rows[number == len(codes)])))

    def count_holders(self, itemsets: Sequence[Sequence[int]]) -> list[int]:
        """Count the individuals that have all items of each set, in one row or in several.

        For the empty set, those that have an item at all.

        Not `support`, which asks for one row that has all of them: shares of individuals can be
        divided by one another only if every number counts them in the same way.
        """
        items = np.unique(np.array([code for one in itemsets for code in one], np.int64))
        at = np.flatnonzero(np.isin(self.codes, items))
        places = np.repeat(np.arange(self.rows), np.diff(self.offsets))[at]
        order = np.argsort(self.codes[at], kind="stable")  # rows still ascend for each code
        codes, people = self.codes[at][order], self._owners_of(places[order])
        ends = np.searchsorted(codes, items, side="right")
        starts = np.searchsorted(codes, items)
        holders = {
            code: np.unique(people[start:end])
            for code, start, end in zip(items.tolist(), starts.tolist(), ends.tolist(), strict=True)
        }
        everybody = np.unique(self._owners_of(np.flatnonzero(np.diff(self.offsets))))
        return [
            self._weigh(_intersect([holders[code] for code in one]) if len(one) else everybody)
            for one in itemsets
        ]

    def _owners_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner of each of these rows."""
        return rows if self.owners is None else self.owners[rows]

    def _weigh(self, owners: NDArray[np.int64]) -> int:
        """Return how many individuals these different owners are."""
        return len(owners) if self.weights is None else int(self.weights[owners].sum())

    def longest(self) -> int:
        """Return how many different items the longest row has."""
        alone = replace(self, owners=None, weights=None)
        pairs, base = alone._pairs()
        return int(np.bincount(pairs % base).max(initial=0))

    def bounds(self) -> NDArray[np.int64]:
        """Return a number for each item, by code, that its support does not exceed: the support."""
        return self.supports()

    def survivors(self, least: int) -> Baskets:
        """Return baskets that have all itemsets of support `least` or more: here all of them."""
        return self

    def within(self, items: int | Collection[Any]) -> Baskets:
        """Return the same baskets on a declared universe.

        The universe is a collection of all items, or a number n for the integers 0 … n − 1.

        A row that holds another item is an error, which does not say which row or item it is.
        """
        labels = list_items(items)
        if isinstance(labels, range) and isinstance(self.labels, range):
            if len(self.codes) and int(self.codes.max()) >= len(labels):
                raise _unknown_item()
            return replace(self, labels=labels)
        place = {identify(label): code for code, label in enumerate(labels)}
        used = np.zeros(self.items, bool)
        used[self.codes] = True
        new = np.full(self.items, -1, np.int32)
        for code in np.flatnonzero(used).tolist():
            number = place.get(identify(self.labels[code]))
            if number is None:
                raise _unknown_item()
            new[code] = number
        return replace(self, labels=labels, codes=new[self.codes])

    def _ascending(self) -> bool:
        """Return whether the codes of every row ascend, so that none is repeated."""
        steps = self.codes[1:] > self.codes[:-1]
        starts = self.offsets[1:-1]
        steps[starts[(starts > 0) & (starts < len(self.codes))] - 1] = True
        return bool(steps.all())

    def _pairs(self) -> tuple[NDArray[np.int64], int]:
        """Return every different (code, owner), in order, and the base.

        A pair is written as code · base + owner.
        """
        owners = np.arange(self.rows) if self.owners is None else self.owners
        base = int(owners[-1]) + 1 if self.rows else 1
        pairs = self.codes * np.int64(base)
        pairs += np.repeat(owners, np.diff(self.offsets))
        pairs.sort()
        first = np.ones(len(pairs), bool)
        np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
        return pairs[first], base


def _intersect(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return what is in all of these ascending arrays."""
    common, *others = sorted(parts, key=len)
    for other in others:
        if not len(common):
            break
        at = np.minimum(np.searchsorted(other, common), len(other) - 1)
        common = common[other[at] == common]
    return common


def list_items(items: int | Collection[Any]) -> Sequence[Any]:
    """Return the labels of a declared universe, in their fixed order.

    Args:
        items: All items, or their number n where they are 0 … n − 1.

    Raises:
        ParameterError: There are none, one occurs twice, or one is of no known type.

    Examples:
        >>> list_items(["pear", "apple"]), list_items(3)
        (['apple', 'pear'], range(0, 3))
    """
    number = plain_int(items)
    if number is not None:
        size = whole("items", number)
        if size > LARGEST_ITEM + 1:
            raise ParameterError("items", size, f"it must not exceed {LARGEST_ITEM + 1}")
        return range(size)
    if isinstance(items, (str, bytes, bool)) or not isinstance(items, Collection):
        shown = items if isinstance(items, (str, bool, float, type(None))) else type(items).__name__
        raise ParameterError(
            "items", shown, "it must be the number of items, or a collection of all of them"
        )
    labels: list[Any] = []
    wrong, remedy = "", ""
    try:
        plain = [item_label(label) for label in items]
        if None in plain:
            wrong, remedy = "one of them is missing", "Drop it."
        else:
            labels = sort_labels(plain)
    except DataError:
        wrong = "they must be text, numbers, dates, or tuples of them"
    if not wrong and not labels:
        wrong = "there must be at least one"
    if not wrong and len(set(map(identify, labels))) < len(labels):
        wrong, remedy = (
            "one of them occurs more than once",
            "List each item once; 1 and 1.0 are the same.",
        )
    if wrong:
        raise ParameterError("items", "<items>", wrong, remedy)
    return labels


def sort_labels(labels: Iterable[Any]) -> list[Any]:
    """Return plain labels in the order by which codes are numbered.

    The order depends on nothing but the labels themselves.

    Examples:
        >>> sort_labels([2, "b", 1.5, "a"])
        [1.5, 2, 'a', 'b']
    """
    listed = list(labels)
    alike = set(map(type, listed)) in ({str}, {int})
    return sorted(listed) if alike else sorted(listed, key=_sort_key)


def _sort_key(label: Any) -> tuple[str, Any]:
    """Return the sort key of a label: comparable kinds are one kind, and all others are apart."""
    if isinstance(label, tuple):
        return "tuple", tuple(map(_sort_key, label))
    if isinstance(label, (int, float, Decimal)):
        return "number", label
    if isinstance(label, str):
        return "text", label  # Python compares by code points, which is the order of UTF-8 bytes
    if isinstance(label, (datetime, time)):
        return (
            f"{'time' if isinstance(label, time) else 'datetime'}"
            f"{'' if label.tzinfo is None else ' in UTC'}",
            label,
        )
    return type(label).__name__, label


def _unknown_item() -> DataError:
    return DataError("A basket has an item that is not declared. Declare every item, or drop it.")
