"""Baskets in memory: rows of item codes, and who they belong to.

A `Baskets` is private. Its `repr` shows nothing, and so do the errors raised here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.privacy import whole
from privmax.sources.containers import plain_label

LARGEST_ITEM = (1 << 31) - 1
"""Codes have 32 bits, and so have items that are read as numbers."""


@dataclass(frozen=True, repr=False, eq=False)
class Baskets:
    """Rows of item codes, one row a basket.

    offsets   row r holds codes[offsets[r]:offsets[r + 1]]; one more than there are rows
    codes     in any order within a row; a repeated code counts once
    labels    labels[code] is the item. Codes are numbered in the fixed order of labels: numbers by value, text by its
              UTF-8 bytes, other kinds apart. A range where items are small integers; codes without a row are possible
    owners    the individual of each row, never decreasing, 0 … n − 1; None: every row is an individual
    weights   for how many individuals each owner stands; None: one each

    The support of an itemset is how many individuals have a row that holds all of it, at least one.
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
        """How many baskets there are, the empty ones too."""
        return len(self.offsets) - 1

    @property
    def individuals(self) -> int:
        """How many individuals there are, those without an item too."""
        if self.weights is not None:
            return int(self.weights.sum())
        if self.owners is None:
            return self.rows
        return int(self.owners[-1]) + 1 if self.rows else 0

    @property
    def items(self) -> int:
        """How many codes there are."""
        return len(self.labels)

    def supports(self) -> NDArray[np.int64]:
        """How many individuals have each item, by code."""
        if self.owners is None and self.weights is None and self._ascending():
            return np.bincount(self.codes, minlength=self.items).astype(np.int64, copy=False)
        pairs, base = self._pairs()
        codes, owner = np.divmod(pairs, base)
        if self.weights is None:
            return np.bincount(codes, minlength=self.items).astype(np.int64, copy=False)
        counts = np.zeros(self.items, np.int64)
        np.add.at(counts, codes, self.weights[owner])  # bincount would add up floats
        return counts

    def longest(self) -> int:
        """How many different items the longest row has."""
        alone = replace(self, owners=None, weights=None)
        pairs, base = alone._pairs()
        return int(np.bincount(pairs % base).max(initial=0))

    def surviving(self, least: int) -> Baskets:
        """Baskets that tell the support of every itemset whose support is `least` or more: here all of them."""
        return self

    def within(self, items: int | Collection[Any]) -> Baskets:
        """The same on a declared universe: a collection of all items, or a number n for the integers 0 … n − 1.

        A row that holds another item is an error, which does not say which row or item it is.
        """
        labels = declared(items)
        if isinstance(labels, range) and isinstance(self.labels, range):
            if len(self.codes) and int(self.codes.max()) >= len(labels):
                raise _strange()
            return replace(self, labels=labels)
        place = {known(label): code for code, label in enumerate(labels)}
        used = np.zeros(self.items, bool)
        used[self.codes] = True
        new = np.full(self.items, -1, np.int32)
        for code in np.flatnonzero(used).tolist():
            found = place.get(known(self.labels[code]))
            if found is None:
                raise _strange()
            new[code] = found
        return replace(self, labels=labels, codes=new[self.codes])

    def _ascending(self) -> bool:
        """Whether the codes of every row ascend, so that none is repeated."""
        steps = self.codes[1:] > self.codes[:-1]
        starts = self.offsets[1:-1]
        steps[starts[(starts > 0) & (starts < len(self.codes))] - 1] = True
        return bool(steps.all())

    def _pairs(self) -> tuple[NDArray[np.int64], int]:
        """Every different (code, owner), written as code · base + owner, in order; and the base."""
        owners = np.arange(self.rows) if self.owners is None else self.owners
        base = int(owners[-1]) + 1 if self.rows else 1
        pairs = self.codes * np.int64(base)
        pairs += np.repeat(owners, np.diff(self.offsets))
        pairs.sort()
        first = np.ones(len(pairs), bool)
        np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
        return pairs[first], base


def declared(items: int | Collection[Any]) -> Sequence[Any]:
    """The labels of a declared universe, in their fixed order."""
    if isinstance(items, (int, np.integer)) and not isinstance(items, bool):
        size = whole("items", int(items))
        if size > LARGEST_ITEM + 1:
            raise ParameterError("items", size, f"it must not exceed {LARGEST_ITEM + 1}")
        return range(size)
    if isinstance(items, (str, bytes, bool)) or not isinstance(items, Collection):
        shown = items if isinstance(items, (str, bool, float, type(None))) else type(items).__name__
        raise ParameterError("items", shown, "it must be how many items there are, or a collection of all of them")
    given = [plain(label) for label in items]
    if any(missing(label) for label in given):
        raise ParameterError("items", "<items>", "one of them is missing", "Drop it.")
    try:
        labels = fixed_order(given)
        distinct = len(set(map(known, labels)))
    except (DataError, TypeError):
        labels, distinct = [], -1
    if distinct < 0:
        raise ParameterError("items", "<items>", "they must be text, numbers or dates")
    if not labels:
        raise ParameterError("items", "<items>", "there must be at least one")
    if distinct < len(labels):
        raise ParameterError("items", "<items>", "one of them occurs more than once", "List each item once.")
    return labels


def fixed_order(labels: Iterable[Any]) -> list[Any]:
    """Labels in the order by which codes are numbered, which depends on nothing but the labels themselves."""
    kinds: dict[tuple[str, type], list[Any]] = {}
    for label in labels:
        kind = type(label)
        kinds.setdefault((f"{kind.__module__}.{kind.__qualname__}", kind), []).append(label)
    try:
        # Python compares text by code points, which is the order of its UTF-8 bytes.
        ordered = [sorted(kinds[name]) for name in sorted(kinds, key=lambda name: name[0])]
    except TypeError:
        ordered = None
    if ordered is None or any(issubclass(kind, (set, frozenset)) for _, kind in kinds):
        raise DataError("The items cannot be put in order. Use text, numbers or dates.")
    return [label for part in ordered for label in part]


def plain(label: Any) -> Any:
    """A label as an ordinary Python object, whatever library it comes from."""
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return label  # Python's own would lose the nanoseconds
    label = plain_label(label)
    return label + 0.0 if type(label) is float else label  # −0.0 is 0.0


def missing(label: Any) -> bool:
    """Whether it stands for no item: None, or what frames write for it."""
    if label is None or type(label).__name__ == "NAType":
        return True
    unequal = label != label
    return unequal is True or unequal is np.True_


def known(label: Hashable) -> tuple[type, Hashable]:
    """What tells a label from others: to Python 1, 1.0 and True are equal."""
    return type(label), label


def _strange() -> DataError:
    return DataError("A basket holds an item that is not among the declared ones. Declare every item, or drop it.")
