"""Decision trees of depth 2 on a public grid.

There may be 10^13 of them, and they are never listed.

A tree is a root, which sends a row left or right, and on each side a stump. What it gets right is
what its left stump gets right of the left rows and its right stump of the right ones. So under one
root the scores are all sums of one number from a short list and one from another: counting them,
and finding the n-th, needs only the two lists.

Proof:      docs/proofs/trees.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.learning.classes.contract import Codes, Shape, Tunable
from privmax.learning.classes.grid import Bound, Thresholds, as_numbers
from privmax.learning.classes.stumps import (
    Constant,
    Cuts,
    Ints,
    Stump,
    Threshold,
    find_cut,
    find_stump,
    is_below,
    name_cut,
    public_cuts,
    stump_count,
    stump_scores,
)
from privmax.learning.schema import Schema
from privmax.learning.splits import Splits
from privmax.profile import Level

MOST_TREES = 1 << 62
"""There must be fewer: their numbers and counts are held in 64 bits."""

MOST_COUNTS = 1 << 27
"""Counts, 8 bytes each, that are held for every label and two thresholds, or for every stump under
one root.
"""

_ENTRIES = 1 << 23
"""Answers to tests held at a time. Rows in a block stay below 2^24, as far as 32-bit floats count
exactly.
"""

_ROWS = 1 << 11
"""Rows in a block at least: with fewer, adding up the products takes longer than making them."""

_DENSE = 1 << 10
"""Up to so many levels scores are added level by level; beyond, only those levels that are
occupied.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class Trees(Tunable):
    """Every test of a feature against a threshold, with any two stumps on its two sides.

    The stumps are those of the same grid (`Stumps`).

    Constants are stumps, and a tree with the same stump on both sides is that stump: smaller trees
    are among these and are not counted apart.

    Args:
        low: Public lower bounds of the features, one number for all or one for each. Values outside
            fall into the first or the last cell.
        high: Upper bounds, likewise.
        cells: How many equal cells each feature has between them.
        thresholds: Instead of these: where to cut, one list for all features or one for each (some
            may be empty).
        schema: Instead of all these: the columns with their cells. Rows are `schema.codes(X).T`
            then, as `PrivateERM` makes them; names are compared for equality.

    Examples:
        >>> import numpy as np
        >>> X, y = np.array([[1.0], [4.0], [6.0], [8.0]]), np.array([0, 1, 0, 0])
        >>> shape, trees = Shape(features=1, labels=2), Trees(thresholds=[3, 5])
        >>> trees.size(shape), trees.score(X, y, shape).maximum()
        (72, 4)
    """

    low: Bound = None
    high: Bound = None
    cells: int = 8
    thresholds: Thresholds = None
    schema: Schema | None = None

    def size(self, shape: Shape) -> int:
        return self._size(sum(map(len, self._cuts(shape))), shape.labels)

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> TreeScores:
        cuts = self._cuts(shape)
        self._size(sum(map(len, cuts)), shape.labels)
        total = np.bincount(y, minlength=shape.labels).astype(np.int64, copy=False)
        return TreeScores(_below_both(X, y, cuts, shape.labels), total)

    def hypothesis(self, number: int, shape: Shape) -> Tree:
        cuts, labels = self._cuts(shape), shape.labels
        stumps = stump_count(sum(map(len, cuts)), labels)
        rest, above = divmod(number, stumps)
        root, below = divmod(rest, stumps)
        return Tree(
            *find_cut(root, cuts), find_stump(below, cuts, labels), find_stump(above, cuts, labels)
        )

    def _cuts(self, shape: Shape) -> Cuts:
        return public_cuts(self, shape.features)

    def _size(self, roots: int, labels: int) -> int:
        if not roots:
            raise ParameterError(
                "thresholds",
                self.thresholds,
                "a tree needs at least one",
                "Give one, or use Stumps for constants.",
            )
        trees = roots * stump_count(roots, labels) ** 2
        if (
            trees < MOST_TREES
            and max(roots * roots * labels, stump_count(roots, labels)) <= MOST_COUNTS
        ):
            return trees
        name, value = ("cells", self.cells) if self.thresholds is None else ("thresholds", "given")
        if self.schema is not None:
            name, value = "schema", f"of {self.schema.features} columns"
        raise ParameterError(
            name, value, f"{roots} thresholds and {labels} labels make {trees} trees, which is too "
                         f"many to count",
            "Use fewer cells, fewer features, or Stumps.",
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class Tree:
    """One stump for the rows where a feature is below a threshold, another for the others.

    Examples:
        >>> rule = Tree(0, 5.0, Constant(0), Stump(1, 2.0, 0, 1))
        >>> rule.predict(np.array([[4.0, 9.0], [6.0, 9.0]])).tolist()
        [0, 1]
        >>> rule.rule()
        '(1 if x1 >= 2.0 else 0) if x0 >= 5.0 else 0'
    """

    feature: int
    threshold: Threshold
    below: Constant | Stump
    above: Constant | Stump

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        """Return the rule in words."""
        below, above = (
            side.rule() if isinstance(side, Constant) else f"({side.rule()})"
            for side in (self.below, self.above)
        )
        return f"{above} if {name_cut(self.feature, self.threshold)} else {below}"

    def predict(self, X: NDArray[Any]) -> Codes:
        return np.where(
            is_below(X, self.feature, self.threshold), self.below.predict(X), self.above.predict(X)
        )


class TreeScores:
    """`Scores` for all trees.

    The number of a tree is (root · S + left stump) · S + right stump, where S is the number of
    stumps.

    Args:
        both: [label, i, j] rows of this label below threshold i and below threshold j.
        total: [label] rows of this label.
    """

    def __init__(self, both: Ints, total: Ints) -> None:
        self._both, self._total = both, total
        self._below = np.ascontiguousarray(np.diagonal(both, axis1=1, axis2=2))
        labels, roots = self._below.shape
        self._stumps = stump_count(roots, labels)
        self._best = np.array(
            [sum(_highest(*side) for side in self._sides(root)) for root in range(roots)]
        )

    def __repr__(self) -> str:
        return "TreeScores(<private>)"

    def maximum(self) -> int:
        return int(self._best.max())

    def histogram(self, above: int) -> list[Level]:
        top = self.maximum()
        counts = np.zeros(max(top - above, 0), np.int64)  # by depth under the top
        for root in np.flatnonzero(self._best > above).tolist():
            room = counts[top - int(self._best[root]) :]
            left, right = (_near(stump_scores(*side), len(room)) for side in self._sides(root))
            _add_sums(left, right, room)
        occupied = np.flatnonzero(counts)
        return [
            (top - depth, count)
            for depth, count in zip(occupied.tolist(), counts[occupied].tolist(), strict=True)
        ]

    def at(self, score: int, index: int) -> int | None:
        return self._nth(score, score, index)

    def at_or_below(self, score: int, index: int) -> int | None:
        return self._nth(0, score, index)

    def _nth(self, least: int, most: int, index: int) -> int | None:
        """Return the number of the `index`-th tree with a score from `least` to `most`.

        They come in the order of numbers.
        """
        every = self._stumps**2
        for root, best in enumerate(self._best.tolist()):
            if best < least:
                continue  # no tree with this root
            if least <= 0 and best <= most and index >= every:
                index -= every  # every tree with this root, and still not enough
                continue
            left, right = (stump_scores(*side) for side in self._sides(root))
            upto = np.cumsum(_partners(left, right, least, most))
            if index >= upto[-1]:
                index -= int(upto[-1])
                continue
            first = int(np.searchsorted(upto, index, side="right"))
            fitting = np.flatnonzero((right >= least - left[first]) & (right <= most - left[first]))
            second = int(
                fitting[index - int(upto[first]) + len(fitting)]
            )  # `upto` counts those of `first` too
            return (root * self._stumps + first) * self._stumps + second
        return None

    def _sides(self, root: int) -> list[tuple[Ints, Ints]]:
        """Return the arguments of `stump_scores` for the rows on each side of a root's threshold.

        Those below it come first.
        """
        both = self._both[:, root]
        left = both[:, root]
        return [(both, left), (self._below - both, self._total - left)]


def _below_both(X: NDArray[Any], y: Codes, cuts: Cuts, labels: int) -> Ints:
    """[label, i, j]: how many rows of a label are below threshold i and below threshold j.

    A product of matrices of zeros and ones. Floats add these without rounding, in any order, as no
    sum reaches 2^24.
    """
    tests = sum(map(len, cuts))
    both = np.zeros((labels, tests, tests), np.int64)
    rows = max(
        _ROWS, _ENTRIES // max(tests, 8 * len(cuts))
    )  # a copy of X's entries takes more memory than an answer
    for start in range(0, len(X), rows):
        for label, counts in enumerate(both):
            examples = X[start : start + rows][y[start : start + rows] == label]
            if len(examples):
                answers = _answers(examples, cuts)
                np.add(counts, answers @ answers.T, out=counts, dtype=np.int64, casting="unsafe")
    return both


def _answers(X: NDArray[Any], cuts: Cuts) -> NDArray[np.float32]:
    """Return [threshold, row]: 1 where the row is below the threshold, else 0."""
    answers = np.empty((sum(map(len, cuts)), len(X)), np.float32)
    turned = np.ascontiguousarray(X.T)
    stop = 0
    for values, thresholds in zip(turned, cuts, strict=True):
        start, stop = stop, stop + len(thresholds)
        if isinstance(thresholds, Splits):
            np.logical_not(thresholds.passes(values), out=answers[start:stop])
            continue
        np.less(as_numbers(values), thresholds[:, None], out=answers[start:stop])
    return answers


def _highest(below: Ints, total: Ints) -> int:
    """Return the highest of `stump_scores`.

    It takes the most frequent label of each side of a threshold, be it the same of both.
    """
    above = total[:, None] - below
    return int((below.max(axis=0) + above.max(axis=0)).max())


def _near(scores: Ints, room: int) -> Ints:
    """Return how far the scores are below the highest of them, where that is less than `room`."""
    depths: Ints = scores.max() - scores
    near: Ints = depths[depths < room]
    return near


def _add_sums(left: Ints, right: Ints, counts: Ints) -> None:
    """Count every sum of one number of each list at its place in `counts`, if it has one there."""
    room = len(counts)
    if room <= _DENSE:
        sums = np.convolve(np.bincount(left), np.bincount(right))[:room]
        counts[: len(sums)] += sums
        return
    fewer, more = sorted(
        (np.unique(side, return_counts=True) for side in (left, right)),
        key=lambda side: len(side[0]),
    )
    levels, numbers = more
    for level, number in zip(*fewer, strict=True):
        upto = np.searchsorted(levels, room - level)
        counts[level + levels[:upto]] += number * numbers[:upto]


def _partners(left: Ints, right: Ints, least: int, most: int) -> Ints:
    """Count, for every number on the left, those on the right with a sum from `least` to `most`."""
    ordered = np.sort(right)
    upto: Ints = np.searchsorted(ordered, most - left, side="right")
    under: Ints = np.searchsorted(ordered, least - left, side="left")
    return upto - under
