"""The paper's corollary on frequent itemsets, with its constants.

Proof:      docs/proofs/utility.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014, Corollary 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privmax.errors import ParameterError
from privmax.numbers import Number, open_probability, positive, whole
from privmax.planning.theory import (
    INTEGER_SCORES,
    exponential_error,
    large_margin_error,
    large_margin_gap,
    natural_log,
)
from privmax.privacy import REPLACE


@dataclass(frozen=True, kw_only=True)
class ItemsetCorollary:
    """The promise of the paper's mechanism for the most frequent itemset, in users.

    Attributes:
        listed: L, a bound on how many itemsets some user can have: n·C(B, r), or all there are.
        universe: C(|I|, r), how many itemsets there are.
        support: So many users must have the most frequent itemset. 1 where every itemset may be
            listed: that is for a closed universe, where the items are public.
        error: So many fewer users, at most, have the itemset that is drawn.
        constant: support·ε/ln(L/δ): the corollary's C for these numbers.
        exponential_error: The same as `error` for the exponential mechanism, which needs the
            items.
    """

    listed: int
    universe: int
    support: int
    error: float
    constant: float
    exponential_error: float


def itemset_corollary(
    *,
    n: int,
    items: int,
    longest: int,
    size: int,
    epsilon: Number,
    delta: Number,
    success: Number | None = None,
) -> ItemsetCorollary:
    """Return what the paper's mechanism promises of the most frequent itemset of one size.

    Itemsets that no user has are at 0, so all but L are as far below the best as it has users: the
    utility theorem applies with ℓ* = L. If L is below the number of itemsets, `LargeMargin` needs
    no list of items for it (an open universe), but a `cap` above L. It clips scores, so for
    `LargeMargin` the promise also needs `success` to be at most 1 − 2^−24.

    Args:
        n: How many users there are; each has one list of items.
        items: |I|, how many items there are.
        longest: B, the longest list a user may have.
        size: r, the size of the itemsets.
        epsilon: What the mechanism costs, above 0.
        delta: With epsilon, what it costs.
        success: The probability that it is kept; by default 1 − δ, as in the paper.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> found = itemset_corollary(
        ...     n=10**6, items=10**5, longest=20, size=3, epsilon=1, delta=1e-6, success=0.95
        ... )
        >>> found.listed, found.support, round(found.error), round(found.exponential_error)
        (1140000000, 1126, 147, 71)
    """
    n, items = whole("n", n), whole("items", items)
    longest, size = whole("longest", longest), whole("size", size)
    if size > min(longest, items):
        raise ParameterError(
            "size", size, "it must be at most longest and items", "No user has a larger itemset."
        )
    epsilon, delta = positive("epsilon", epsilon), open_probability("delta", delta)
    success = 1 - delta if success is None else success
    universe = math.comb(items, size)
    listed = min(n * math.comb(min(longest, items), size), universe)
    support = 1  # where every itemset may be listed there is nothing to be ahead of
    if listed < universe:
        gap = large_margin_gap(epsilon=epsilon, delta=delta, near=listed, success=success)
        support = math.floor(gap) + 1 + INTEGER_SCORES
    return ItemsetCorollary(
        listed=listed,
        universe=universe,
        support=support,
        error=large_margin_error(epsilon=epsilon, near=listed, success=success),
        constant=support * float(epsilon) / natural_log(listed / delta),
        exponential_error=exponential_error(
            epsilon=epsilon, candidates=universe, success=success, neighbors=REPLACE
        ),
    )
