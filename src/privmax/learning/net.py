"""The net mechanism of Blum, Ligett and Roth: a small invented data set.

It answers every query of a class about as the private data set does.

Its candidates are all data sets of `size` rows from a finite public domain, so the cost is
size·ln|domain| where a draw among hypotheses has ln|H|. With a class of VC dimension d, a size in
proportion to d is enough, however many hypotheses there are.

Proof:      docs/proofs/net.md
Reference:  Blum, Ligett & Roth, STOC 2008 and J. ACM 60(2), 2013
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.learning.bounds import uniform_deviation
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.maximization import maximize
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, open_probability, whole
from privmax.planning.theory import SUCCESS, exponential_error
from privmax.privacy import REPLACE
from privmax.release import Release
from privmax.sources.containers.pandas import refuse_rounded
from privmax.sources.scale import Scale

MOST_CANDIDATES = 10**6
"""Each invented data set is compared with the private one on every query."""


def release_net(
    data: Sequence[Hashable],
    domain: Sequence[Hashable],
    queries: Sequence[Callable[[Any], bool]],
    *,
    size: int,
    epsilon: Number,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release a data set of `size` rows that answers all queries about as the private one does.

    An answer is the share of rows for which a query is true. The number of rows is public.

    Args:
        data: The private rows, each one individual's.
        domain: All rows there can be, which is public.
        queries: Functions of one row that say whether it counts; public.
        size: How many rows to release; `net_size` says how many are enough.
        epsilon: What it costs, under replace.
        ledger: The privacy budget that pays, or a request of it.
        coins: Source of random bits; for tests only.

    Returns:
        A release whose item is a tuple of rows of the domain, in its order.

    Raises:
        ParameterError: A parameter is not allowed, or there are more than 10^6 candidates.
        DataError: A row is not in the domain.

    Examples:
        >>> rows = ["young"] * 900 + ["old"] * 300
        >>> is_old = [lambda row: row == "old"]
        >>> release_net(rows, ["young", "old"], is_old, size=4, epsilon=1).item
        ('young', 'young', 'young', 'old')
    """
    size, order = whole("size", size), list(domain)
    if not queries:
        raise ParameterError("queries", queries, "there must be at least one", "List functions.")
    candidates = count_candidates(len(order), size)
    if candidates > MOST_CANDIDATES:
        raise ParameterError(
            "size",
            size,
            f"at most {MOST_CANDIDATES:,} data sets can be tried, and there are more of that size",
            "Use fewer rows or a smaller domain.",
        )
    try:
        place = {row: number for number, row in enumerate(order)}
    except TypeError:
        place = {}
    if order and not place:
        allowed = "a row of it cannot be looked up"
        raise ParameterError("domain", "<rows>", allowed, "Use tuples, text or numbers.")
    if len(place) < len(order):
        raise ParameterError("domain", "<rows>", "it lists a row twice", "List each once.")
    holds = np.array([[bool(query(row)) for row in order] for query in queries], np.int64)
    n = whole("n", len(data))

    @cache
    def answers() -> NDArray[np.int64]:
        """Count the rows for which each query is true, when f is first called."""
        try:
            tally = Counter(refuse_rounded(data))
        except TypeError:
            raise DataError("A row cannot be looked up. Use tuples, text or numbers.") from None
        if not tally.keys() <= place.keys():
            raise DataError("A row is not in the domain. Declare every row there can be.")
        counts: NDArray[np.int64] = holds @ np.array([tally[row] for row in order], np.int64)
        return counts

    def miss(candidate: tuple[Hashable, ...], _: object) -> Fraction:
        """Return by how much the worst answer is off, negative."""
        invented = np.bincount([place[row] for row in candidate], minlength=len(order))
        apart = answers() * size - holds @ invented * n  # in units of 1/(n·size)
        return Fraction(-int(np.abs(apart).max(initial=0)), size * n)

    return maximize(
        miss,
        list(combinations_with_replacement(order, size)),
        data,
        epsilon=epsilon,
        lipschitz=Fraction(1, n),
        resolution=Fraction(1, n * size),
        ledger=ledger,
        coins=coins,
    )


def count_candidates(domain: int, size: int) -> int:
    """Return how many data sets of `size` rows there are; their order does not count.

    Examples:
        >>> count_candidates(2, 3)
        4
    """
    return math.comb(domain + size - 1, size)


def net_size(accuracy: Number, *, dimension: int) -> int:
    """Return a number of rows that is enough for some invented data set to be within `accuracy`.

    It is the least m for which the deviation by dimension shows that a sample of m rows has a
    positive chance to be within it. Fewer rows may be enough.

    Args:
        accuracy: By how much an answer may be off.
        dimension: The VC dimension of the queries, or more.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> net_size("0.25", dimension=1)
        137
    """
    wanted = open_probability("accuracy", accuracy)
    most = 1
    while not _suffices(most, wanted, dimension):
        most *= 2
    too_few = most // 2
    while most - too_few > 1:  # `bisect` has no numbers beyond 2^63
        middle = (too_few + most) // 2
        enough = _suffices(middle, wanted, dimension)
        too_few, most = (too_few, middle) if enough else (middle, most)
    return most


def _suffices(m: int, accuracy: Fraction, dimension: int) -> bool:
    return uniform_deviation(n=m, dimension=dimension, failure=_CERTAIN) <= accuracy


_CERTAIN = 1 - Fraction(1, 1 << 40)
"""A failure below 1 is enough: some sample then deviates by no more."""


def net_error(
    *, n: int, domain: int, size: int, epsilon: Number, success: Number = SUCCESS
) -> float:
    """Bound by how much the answers of the released data set are worse than those of the best one.

    Args:
        n: How many private rows there are.
        domain: How many rows the domain has.
        size: How many rows are released.
        epsilon: What it costs, under replace.
        success: With what probability it holds.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> round(net_error(n=10_000, domain=100, size=20, epsilon=1), 4)
        0.0115
    """
    n, size = whole("n", n), whole("size", size)
    steps = Scale.of(Fraction(1, n), Fraction(1, n * size)).steps
    drawn = exponential_error(
        epsilon=epsilon,
        candidates=count_candidates(whole("domain", domain), size),
        success=success,
        neighbors=REPLACE,
    )
    return drawn * steps / (n * size)
