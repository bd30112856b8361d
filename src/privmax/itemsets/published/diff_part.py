"""DiffPart: sort the rows into ever finer parts by a public tree over the items.

Parts that look occupied are released.

A part is a set of nodes of the tree, its cut: its rows have an item below each node of the cut, and
no others. It is split at one node of its cut, into a part for each non-empty set of that node's
children, and parts whose noisy number of rows reaches a threshold are split further. When all nodes
are single items, the rows of the part are known: it is released with a noisy number of copies.
Frequent itemsets are then those of the released rows.

    ε/2   splits: a part with so many inner nodes below its cut gives the next split that share of
          what is left
    ε/2   and what is left over: the number of copies

Empty parts draw noise as well, and many of them pass: how many parts are split is bounded publicly
(`most`), those of the highest noisy number first. Reconstructed: that order, and the tree, which is
balanced over the codes.

Proof:      docs/proofs/competitors.md
Reference:  Chen, Mohammed, Fung, Desai & Xiong, PVLDB 4(11), 2011
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.published.arrivals import add_noise
from privmax.itemsets.published.records import Records
from privmax.itemsets.published.synthetic import find_frequent
from privmax.noise.coins import Coins
from privmax.numbers import nonnegative, positive, whole
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy

LARGEST_FAN_OUT = 12
"""A split makes 2^(fan-out) − 1 parts."""

Node = tuple[int, int]
"""The codes below it: from, up to but not including."""


def _read_fan_out(name: str, value: int) -> int:
    fan_out = whole(name, value, least=2)
    if fan_out > LARGEST_FAN_OUT:
        raise ParameterError(name, value, f"it must not exceed {LARGEST_FAN_OUT}")
    return fan_out


class DiffPart(Method):
    """The k most frequent itemsets of a closed universe in a noisy copy of the rows.

    Supports are those in the copy.

    Args:
        epsilon: What it costs in all.
        fan_out: Children of a node of the public tree.
        strict: A part is kept when its noisy number of rows reaches so many standard deviations
            of the noise.
        most: Public: how many parts are split at most.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> {part: str(share) for part, share in DiffPart(epsilon=1).parts().items()}
        {'splits': '1/2', 'copies': '1/2'}
        >>> DiffPart(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
    """

    epsilon: Exact = parameter(positive)
    fan_out: Whole = parameter(_read_fan_out, default=8)
    strict: Exact = parameter(nonnegative, default=2)
    most: Whole = parameter(whole, default=1000)
    neighbors: ClassVar[Neighbors] = ADD_REMOVE

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        records = Records(problem.rows)
        copies = self.copies(records, coins)
        return find_frequent(copies, records.items, problem.sizes, problem.k)

    def copies(self, records: Records, coins: Coins) -> dict[tuple[int, ...], int]:
        """Return the rows that are released, each with a noisy number of copies."""
        if not records.items:
            return {}
        root = (0, records.items)
        whole_part = _Partition(
            (root,), self.parts()["splits"], np.flatnonzero(records.lengths() > 0)
        )
        released: dict[tuple[int, ...], int] = {}
        # Highest noisy number first; the second entry settles ties by age, so that no private value
        # is compared.
        queue: list[tuple[int, int, _Partition]] = [(0, 0, whole_part)]
        made = splits = 0
        while queue:
            _, _, part = heapq.heappop(queue)
            node = part.widest()
            if node is None:
                rest = part.budget + self.parts()["copies"]
                count = int(add_noise(_count_rows(records, part.rows), 1, rest, coins)[0])
                if self._passes(count, rest) and count > 0:
                    released[tuple(code for code, _ in part.cut)] = count
                continue
            if splits == self.most:
                continue  # only leaves are counted from here on
            splits += 1
            share = part.budget / part.inner(self.fan_out)
            children = divide_node(node, self.fan_out)
            patterns = _patterns(records, part.rows, children)
            counts = np.zeros(1 << len(children), np.int64)
            np.add.at(
                counts, patterns, 1 if records.weights is None else records.weights[part.rows]
            )
            for pattern, count in enumerate(
                add_noise(counts[1:], 1, share, coins).tolist(), start=1
            ):
                if self._passes(count, share):
                    below = tuple(child for bit, child in enumerate(children) if pattern >> bit & 1)
                    cut = tuple(sorted({*part.cut, *below} - {node}))
                    made += 1
                    rows = part.rows[patterns == pattern]
                    heapq.heappush(
                        queue, (-count, made, _Partition(cut, part.budget - share, rows))
                    )
        return released

    def _passes(self, count: int, epsilon: Fraction) -> bool:
        """Return whether a noisy number reaches the threshold √2·strict/ε."""
        return count >= 0 and (count * epsilon) ** 2 >= 2 * self.strict**2

    def parts(self) -> dict[str, Fraction]:
        """Return how the cost is split on the way from the root to any leaf."""
        return {"splits": self.epsilon / 2, "copies": self.epsilon / 2}

    def privacy(self) -> Privacy:
        return Privacy(sum(self.parts().values()))


@dataclass(frozen=True, repr=False)
class _Partition:
    """Rows with the same cut, and the budget left for splits below it."""

    cut: tuple[Node, ...]
    budget: Fraction
    rows: NDArray[np.intp]

    def __repr__(self) -> str:
        return "_Partition(<private>)"

    def widest(self) -> Node | None:
        """Return the node to split at: the first of those with most codes below.

        None if all are single items.
        """
        node = max(self.cut, key=lambda node: (node[1] - node[0], -node[0]))
        return node if node[1] - node[0] > 1 else None

    def inner(self, fan_out: int) -> int:
        """Return how often it can be split: no row's way down to single items is longer."""
        return sum(_inner(end - start, fan_out) for start, end in self.cut)


@cache
def _inner(width: int, fan_out: int) -> int:
    """Return how many inner nodes a tree over so many codes has."""
    if width <= 1:
        return 0
    return 1 + sum(_inner(end - start, fan_out) for start, end in divide_node((0, width), fan_out))


def divide_node(node: Node, fan_out: int) -> list[Node]:
    """Return the children of a node: as many ranges of codes of nearly the same width.

    Examples:
        >>> divide_node((0, 5), 2)
        [(0, 2), (2, 5)]
    """
    start, end = node
    number = min(fan_out, end - start)
    cuts = [start + (end - start) * place // number for place in range(number + 1)]
    return list(pairwise(cuts))


def _count_rows(records: Records, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.array(
        [rows.size if records.weights is None else records.weights[rows].sum()], np.int64
    )


def _patterns(records: Records, rows: NDArray[np.intp], children: list[Node]) -> NDArray[np.int64]:
    """For each of the rows: which children it has an item below, as bits."""
    starts, ends = (
        np.searchsorted(records.lines, rows),
        np.searchsorted(records.lines, rows, side="right"),
    )
    lengths = ends - starts
    where = np.repeat(np.arange(rows.size), lengths)
    at = np.arange(where.size) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    codes = records.codes[at]
    inside = (codes >= children[0][0]) & (codes < children[-1][1])
    bits = np.searchsorted([end for _, end in children], codes[inside], side="right")
    patterns = np.zeros(rows.size, np.int64)
    np.bitwise_or.at(patterns, where[inside], np.int64(1) << bits)
    return patterns
