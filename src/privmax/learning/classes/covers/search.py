"""Count the examples that the conjunctions of a class get right.

They are found by a search that leaves out what cannot matter.

A conjunction that covers P positive and N negative examples gets P − N more right than the one that
covers no one. Tests added to it cover no more positives. So where P is at most the difference asked
for, the whole subtree is left out, and counted by its size. Everything here is private but the
numbering, and nothing of it is shown.

Two walks give the same answers: `compiled_walk.py`, compiled, where numba is installed (the extra
`fast`), and `numpy_walk.py`.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TypeVar

import numpy as np

from privmax.errors import WorkError
from privmax.learning.classes.covers import numpy_walk
from privmax.learning.classes.covers.branches import Branch, Flags, Goal, Ints, Words
from privmax.learning.classes.covers.numpy_walk import keep_passing
from privmax.learning.classes.covers.order import ConjunctionOrder
from privmax.profile import Level

T = TypeVar("T")
R = TypeVar("R")

_KEPT = 1 << 20
"""The counts of every branch are kept between questions where they are so many numbers at most."""

_SPAN = 128
"""The largest depth below the best down to which a search for the best counts everything."""

_SMALL = 1 << 14
"""Subtrees of this size are walked at once, without threads."""

_AHEAD = 8
"""The number of branches in the queue of each thread."""

WORTH_LOADING_NUMBA = 1 << 15
"""Classes of fewer rules are searched in NumPy, which takes about as long as loading numba,
unless it is already. Compiling, which is done once, takes half a minute.
"""

MOST_STEPS = 1 << 42
"""The most steps of a search, which takes some minutes; counting 64 rows is about one step.
Public; whether a search needs more is not.
"""

_UNBOUNDED = 1 << 62
"""Steps of a search for what was drawn: its work is that of a search that has ended."""

_WIDTH = 16
"""The number of conjunctions that the first search for a good one keeps."""


@dataclass(frozen=True)
class _Node:
    """A conjunction: its number, the rows it covers, and what may follow.

    The latter is the first column that may follow and how many tests may.
    """

    number: int
    positives: Words
    negatives: Words
    first: int
    literals: int

    @property
    def difference(self) -> int:
        return len(self.positives) - len(self.negatives)


class Covers:
    """`Scores` of the conjunctions of a `ConjunctionOrder`.

    Args:
        positives: The rows of label 1, a bit for each column: whether the value is at or above.
        negatives: The rows of label 0.
        compiled: Whether to use the compiled walk; None: where numba is installed and the class is
            so large that loading it pays.

    Examples:
        >>> rows = np.array([[1], [1], [0]], np.uint64)  # one column
        >>> Covers(ConjunctionOrder.of(1, [1]), rows, rows[2:], compiled=False).maximum()
        3
    """

    def __init__(
        self,
        order: ConjunctionOrder,
        positives: Words,
        negatives: Words,
        *,
        compiled: bool | None = None,
    ) -> None:
        self._order = order
        self._root = _Node(0, positives, negatives, 0, order.literals)
        self._walks = _choose_walk(compiled, order.size)
        self._known: tuple[int, list[Ints]] | None = (
            None  # a floor, and the counts above it in every branch
        )
        self._left = MOST_STEPS

    def __repr__(self) -> str:
        return "Covers(<private>)"

    @property
    def may_be_too_many(self) -> bool:
        """Whether the search may take more than `MOST_STEPS`; public but for the number of rows."""
        rows = len(self._root.positives) + len(self._root.negatives)
        return self._order.size * (1 + rows // 64) > MOST_STEPS

    def maximum(self) -> int:
        return self._best + len(self._root.negatives)

    def histogram(self, above: int) -> list[Level]:
        floor = above - len(self._root.negatives)
        levels = self._best - floor
        if levels <= 0:
            return []
        self._left = MOST_STEPS
        total = np.zeros(levels, np.int64)
        if self._root.difference > floor:
            total[self._root.difference - floor - 1] += 1
        for tally in self._branches(self._root, floor):
            total += tally
        return [(above + 1 + int(at), int(total[at])) for at in np.flatnonzero(total)[::-1]]

    def at(self, score: int, index: int) -> int | None:
        return self._find(score - len(self._root.negatives), index, exactly=True)

    def at_or_below(self, score: int, index: int) -> int | None:
        return self._find(score - len(self._root.negatives), index, exactly=False)

    @cached_property
    def _best(self) -> int:
        """The largest difference of all.

        What is counted on the way is complete down to `span` below it, and kept: seldom is more
        asked for.
        """
        self._left = MOST_STEPS
        best = self._glance()
        span = max(
            1, min(_SPAN, best // 4)
        )  # a small part of the best, as the search grows fast with depth
        tallies: list[tuple[int, Ints]] = []
        keep = 2 * len(self._order.after) * span <= _KEPT

        def count(test: int, stop: Flags) -> tuple[int, Ints]:
            floor = best - span
            tally = np.zeros(len(self._root.positives) - floor, np.int64)
            self._walk(self._root, test, floor, span, tally, stop)
            # Beyond the last that is not 0 there is nothing; before the last `span` not all was
            # counted.
            length = int(np.flatnonzero(tally)[-1]) + 1 if tally.any() else 0
            cut = max(0, length - span)
            return floor + cut, tally[cut:length].copy()

        for floor, tally in _in_turn(self._tests(self._root), count, _threads(self._order.size)):
            best = max(best, floor + len(tally))
            if keep:
                tallies.append((floor, tally))
        if keep:
            self._known = (
                best - span,
                [_align(best - span, floor, tally, span) for floor, tally in tallies],
            )
        return best

    def _glance(self) -> int:
        """Return the difference of some good conjunction.

        With it the search for the best can leave out much.
        """
        best = self._root.difference
        beam: list[tuple[frozenset[int], Words, Words]] = [
            (frozenset(), self._root.positives, self._root.negatives)
        ]
        columns = len(self._order.after)
        for _ in range(self._order.literals):
            promise: dict[frozenset[int], tuple[int, int, int]] = {}
            for place, (tests, positives, negatives) in enumerate(beam):
                upper = (self._walks.count_bits(positives) - self._walks.count_bits(negatives))[
                    :columns
                ]
                differences = np.stack([upper, len(positives) - len(negatives) - upper], axis=1)
                used = np.isin(self._order.after, [self._order.after[test >> 1] for test in tests])
                unused = np.flatnonzero(np.repeat(~used, 2))
                promising = unused[np.argsort(-differences.ravel()[unused], kind="stable")[:_WIDTH]]
                for test in promising.tolist():
                    promise[tests | {test}] = int(differences.flat[test]), place, test
            chosen = sorted(promise.items(), key=lambda entry: -entry[1][0])[:_WIDTH]
            best = max([best, *(difference for _, (difference, _, _) in chosen)])
            beam = [
                (
                    tests,
                    keep_passing(beam[place][1], test),
                    keep_passing(beam[place][2], test),
                )
                for tests, (_, place, test) in chosen
            ]
        return best

    def _find(self, difference: int, index: int, *, exactly: bool) -> int | None:
        """Find the number of the `index`-th conjunction with this difference, or up to it."""
        floor = difference - 1 if exactly else difference
        node = self._root
        self._left = _UNBOUNDED
        while True:  # ends: a child may have one literal less
            size = int(self._order.sizes[node.first, node.literals])
            if (
                len(node.positives) <= floor or self._best <= floor
            ):  # and so are all the differences below it
                return node.number + index if not exactly and index < size else None
            if node.difference == difference or (not exactly and node.difference < difference):
                if index == 0:
                    return node.number
                index -= 1
            number = node.number + 1
            child = None
            for test, count in zip(
                self._tests(node), self._count(node, difference, exactly=exactly), strict=False
            ):
                end = int(self._order.after[test >> 1])
                if index < count:
                    child = _Node(
                        number,
                        keep_passing(node.positives, test),
                        keep_passing(node.negatives, test),
                        end,
                        node.literals - 1,
                    )
                    break
                index -= count
                number += int(self._order.sizes[end, node.literals - 1])
            if child is None:
                return None
            node = child

    def _count(self, node: _Node, difference: int, *, exactly: bool) -> Iterator[int]:
        """Yield how many count in each subtree of a node."""
        floor = difference - 1 if exactly else difference
        for test, tally in zip(self._tests(node), self._branches(node, floor), strict=True):
            size = int(self._order.sizes[self._order.after[test >> 1], node.literals - 1])
            yield int(tally[:1].sum()) if exactly else size - int(tally.sum())

    def _tests(self, node: _Node) -> range:
        """Return the tests that may be added to a node."""
        return range(2 * node.first, 2 * len(self._order.after)) if node.literals else range(0)

    def _branches(self, node: _Node, floor: int) -> Iterator[Ints]:
        """Yield the number of conjunctions by difference > floor, for each test that may be added.

        They are those from that test on, test by test.

        Differences are counted from floor + 1 up to the best.
        """
        levels = max(0, self._best - floor)
        if node is self._root and self._known is not None and self._known[0] <= floor:
            return (tally[len(tally) - levels :] for tally in self._known[1])

        def count(test: int, stop: Flags) -> Ints:
            tally = np.zeros(levels, np.int64)
            self._walk(node, test, floor, levels, tally, stop)
            return tally

        tallies = _in_turn(
            self._tests(node), count, _threads(int(self._order.sizes[node.first, node.literals]))
        )
        if node is self._root and len(self._tests(node)) * levels <= _KEPT:
            self._known = floor, list(tallies)
            return iter(self._known[1])
        return tallies

    def _walk(
        self, node: _Node, test: int, floor: int, span: int, tally: Ints, stop: Flags
    ) -> None:
        branch = Branch(node.positives, node.negatives, test, node.literals - 1)
        order = self._order
        # Each branch has a number of its own, which only falls: were it shared, one thread could
        # hide from another that a walk had ended early, and its counts would be taken for all.
        allowed = self._left
        left = np.array([allowed], np.int64)
        self._walks.walk(branch, Goal(floor, span, order.after, order.sizes, tally, stop, left))
        self._left -= allowed - int(left[0])
        if left[0] < 0:
            raise WorkError(
                f"Of {order.size:,} rules more are close to the best than can be counted: the "
                f"search was given up after {MOST_STEPS:.0e} steps. Use fewer literals, features "
                "or cells, a larger epsilon, or a floor: a public number of correct rows."
            )


def _align(floor: int, base: int, tally: Ints, levels: int) -> Ints:
    """Counts above `base` as counts of so many levels above `floor`, which is not below it."""
    counts = np.zeros(levels, np.int64)
    part = tally[floor - base :]
    counts[: len(part)] = part
    return counts


def _choose_walk(compiled: bool | None, size: int) -> ModuleType:
    """Choose where `walk` and `counts` come from, for a class of this size, which is public.

    It decides whether a message says that something is compiled.
    """
    small = size < WORTH_LOADING_NUMBA and "numba" not in sys.modules
    if compiled is False or (compiled is None and small):
        return numpy_walk
    try:
        from privmax.learning.classes.covers import compiled_walk
    except ModuleNotFoundError as error:
        if compiled or error.name != "numba":
            raise
        return numpy_walk
    compiled_walk.tell_of_compiling()
    return compiled_walk


def _threads(size: int) -> int:
    return (os.cpu_count() or 1) if size > _SMALL else 1


def _in_turn(items: Iterable[T], work: Callable[[T, Flags], R], threads: int) -> Iterator[R]:
    """Yield what `work` makes of each item, in turn; some are worked on ahead.

    An interruption reaches all of them.
    """
    stop = np.zeros(1, np.bool_)
    if threads == 1:
        for item in items:
            yield work(item, stop)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            waiting: deque[Future[R]] = deque()
            for item in items:
                waiting.append(pool.submit(work, item, stop))
                if len(waiting) > _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stop[0] = True
            pool.shutdown(cancel_futures=True)
