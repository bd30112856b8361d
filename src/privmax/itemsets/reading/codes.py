"""From labels to codes, and from codes to rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.baskets import Baskets, sort_labels
from privmax.labels import identify, item_label


def code_items(numbers: NDArray[Any], values: Sequence[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """(items in their fixed order, codes), out of numbered values: −1 for a missing one.

    Examples:
        >>> items, codes = code_items(np.array([0, 1, -1, 2]), ["b", 1.0, 1])
        >>> items, codes.tolist()
        ([1, 'b'], [1, 0, -1, 0])
    """
    return sort_codes(numbers, [item_label(value) for value in values])


def sort_codes(codes: NDArray[Any], labels: Sequence[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """Put plain labels in their fixed order, equal ones as one, and renumber the codes.

    A code of −1 stays.

    Examples:
        >>> labels, codes = sort_codes(np.array([0, 1, -1]), ["b", "a"])
        >>> labels, codes.tolist()
        (['a', 'b'], [1, 0, -1])
    """
    index: dict[Any, Any] = {}
    for label in labels:
        index.setdefault(identify(label), label)
    ordered = sort_labels(index.values())
    place = {identify(label): code for code, label in enumerate(ordered)}
    new = np.array(
        [*(place[identify(label)] for label in labels), -1], np.int32
    )  # −1 finds the last one
    return ordered, new[codes]


def group_entries(
    baskets: NDArray[Any],
    codes: NDArray[np.int32],
    labels: Sequence[Any],
    users: NDArray[Any] | None = None,
) -> Baskets:
    """Rows out of a list of entries: the basket of each, and the code of its item, or −1.

    Baskets and users are numbered 0, 1, …, each of them used. With users a basket is what one user
    has under its number: who else uses that number changes nothing of it, so that an individual is
    all that a user has.

    Examples:
        >>> group_entries(np.array([1, 0, 1]), np.array([0, 1, 1], np.int32), ["a", "b"]).rows
        2
    """
    owners = None
    if users is not None:
        base = int(baskets.max(initial=0)) + 1
        pairs, baskets = np.unique(users.astype(np.int64) * base + baskets, return_inverse=True)
        owners = pairs // base
    is_item = codes >= 0
    return _fill(baskets[is_item], codes[is_item], labels, int(baskets.max(initial=-1)) + 1, owners)


def group_rows(
    rows: NDArray[np.int64],
    codes: NDArray[np.int32],
    labels: Sequence[Any],
    baskets: NDArray[Any],
    users: NDArray[Any] | None = None,
) -> Baskets:
    """Group one-hot rows into baskets.

    Given are the row and the code of each one, and the basket and the user of each row.

    Rows of one basket, with users of one user, are put together. A row without a one is a basket
    all the same.

    Examples:
        >>> ones = np.array([0, 1]), np.array([0, 1], np.int32)
        >>> group_rows(*ones, ["a", "b"], np.array([0, 0, 1])).supports().tolist()
        [1, 1]
    """
    every = np.concatenate([np.arange(len(baskets)), rows])
    none = np.full(len(baskets), -1, np.int32)
    return group_entries(
        baskets[every],
        np.concatenate([none, codes]),
        labels,
        None if users is None else users[every],
    )


def _fill(
    baskets: NDArray[Any],
    codes: NDArray[np.int32],
    labels: Sequence[Any],
    rows: int,
    owners: NDArray[np.int64] | None = None,
) -> Baskets:
    """So many rows, each with the codes of the entries that carry its number."""
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(baskets, minlength=rows), out=offsets[1:])
    if np.any(baskets[1:] < baskets[:-1]):
        codes = codes[np.argsort(baskets, kind="stable")]
    return Baskets(offsets, codes, labels, owners)
