"""Conjunctions and disjunctions of a few tests on features.

Features are boolean, or compared with public thresholds.

Classes of 10^12 rules are searched, not listed: `covers/`. A disjunction is wrong where the
conjunction of the opposite tests is right, so one search serves both.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.learning.classes.contract import Codes, Shape, Tunable, check_two_labels
from privmax.learning.classes.covers.branches import Words
from privmax.learning.classes.covers.order import ConjunctionOrder
from privmax.learning.classes.covers.search import Covers
from privmax.learning.classes.grid import Bound, Thresholds, cells_of
from privmax.learning.classes.stumps import (
    Cuts,
    Threshold,
    find_cut,
    is_below,
    name_cut,
    public_cuts,
)
from privmax.learning.schema import Schema
from privmax.learning.splits import Splits
from privmax.numbers import whole

_ENTRIES = 1 << 22
"""Tests made at a time while rows are read: memory does not grow with the number of examples."""

_BOOLEAN = 0.5
"""The threshold of a feature that is 0 or 1."""


@dataclass(frozen=True)
class Literal:
    """Whether a feature is at or above a threshold, or below it. NaN is below none.

    Args:
        threshold: None: the feature is 0 or 1, and the test is whether it is 1, or 0.

    Examples:
        >>> Literal(0, 5.0, below=True).rule()
        'x0 < 5.0'
        >>> Literal(0, None, below=False).passes(np.array([[1], [0]])).tolist()
        [True, False]
    """

    feature: int
    threshold: Threshold | None
    below: bool

    def rule(self) -> str:
        """Return the test in words."""
        if self.threshold is None:
            return f"not x{self.feature}" if self.below else f"x{self.feature}"
        return name_cut(self.feature, self.threshold, below=self.below)

    def passes(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows pass it."""
        below = is_below(X, self.feature, _BOOLEAN if self.threshold is None else self.threshold)
        return below if self.below else ~below


@dataclass(frozen=True, repr=False)
class Conjunction:
    """Label 1 where all tests are passed, else 0. Without tests: always 1.

    Examples:
        >>> rule = Conjunction((Literal(0, None, False), Literal(1, None, True)))
        >>> rule, rule.predict(np.array([[1, 0], [1, 1]])).tolist()
        (<1 if x0 and not x1 else 0>, [1, 0])
    """

    tests: tuple[Literal, ...]

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        """Return the rule in words."""
        tests = " and ".join(test.rule() for test in self.tests)
        return f"1 if {tests} else 0" if tests else "1"

    def predict(self, X: NDArray[Any]) -> Codes:
        passes = np.ones(len(X), np.bool_)
        for test in self.tests:
            passes &= test.passes(X)
        return passes.astype(np.intp)


@dataclass(frozen=True, repr=False)
class Disjunction:
    """Label 1 where any test is passed, else 0. Without tests: always 0.

    Examples:
        >>> rule = Disjunction((Literal(0, None, False), Literal(1, None, True)))
        >>> rule, rule.predict(np.array([[0, 0], [0, 1]])).tolist()
        (<1 if x0 or not x1 else 0>, [1, 0])
    """

    tests: tuple[Literal, ...]

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        """Return the rule in words."""
        tests = " or ".join(test.rule() for test in self.tests)
        return f"1 if {tests} else 0" if tests else "0"

    def predict(self, X: NDArray[Any]) -> Codes:
        passes = np.zeros(len(X), np.bool_)
        for test in self.tests:
            passes |= test.passes(X)
        return passes.astype(np.intp)


@dataclass(frozen=True, repr=False)
class _Rules(Tunable):
    """Sets of tests of different features, for conjunctions and disjunctions."""

    binary: ClassVar[bool] = True

    literals: int = 3
    _: KW_ONLY
    low: Bound = None
    high: Bound = None
    cells: int = 2
    thresholds: Thresholds = None
    schema: Schema | None = None

    def size(self, shape: Shape) -> int:
        return self._order(shape).size

    def _order(self, shape: Shape) -> ConjunctionOrder:
        check_two_labels(shape, type(self).__name__)
        return ConjunctionOrder.of(
            whole("literals", self.literals, least=0), [len(cut) for cut in self._cuts(shape)]
        )

    def _cuts(self, shape: Shape) -> Cuts:
        if self._boolean:
            return [np.array([_BOOLEAN])] * shape.features
        return public_cuts(self, shape.features)

    @property
    def _boolean(self) -> bool:
        bounds = (self.low, self.high, self.thresholds, self.schema)
        return all(bound is None for bound in bounds) and self.cells == 2

    def _score(self, X: NDArray[Any], positive: NDArray[np.bool_], shape: Shape) -> Covers:
        order, cuts = self._order(shape), self._cuts(shape)
        words = -(-len(order.after) // 64)
        none = np.empty((0, words), np.uint64)
        yes, no = [none], [none]
        for rows, start in self._pack(X, cuts, words):
            chosen = positive[start : start + len(rows)]
            yes.append(rows[chosen])
            no.append(rows[~chosen])
        return Covers(order, np.concatenate(yes), np.concatenate(no))

    def _pack(self, X: NDArray[Any], cuts: Cuts, words: int) -> Iterator[tuple[Words, int]]:
        """Yield some rows at a time, with the number of the first.

        A row has a bit for every threshold that is reached.
        """
        step = max(1, _ENTRIES // max(1, 64 * words, X.shape[1]))
        for start in range(0, len(X), step):
            block = X[start : start + step]
            if self._boolean and not ((block == 0) | (block == 1)).all():
                raise DataError(
                    "Without bounds every feature must be 0 or 1, and X has other values. Give "
                    "low, high and cells, or thresholds: public numbers to compare the features "
                    "with, not computed from the data."
                )
            reached = np.zeros((len(block), 64 * words), np.bool_)
            begin = 0
            for feature, cut in enumerate(cuts):
                if isinstance(cut, Splits):
                    reached[:, begin : begin + len(cut)] = cut.passes(block[:, feature]).T
                    begin += len(cut)
                elif len(cut):
                    places = cells_of(block[:, feature], cut)
                    reached[:, begin : begin + len(cut)] = places[:, None] > np.arange(len(cut))
                    begin += len(cut)
            packed = np.packbits(reached, axis=1, bitorder="little")
            yield packed.view("<u8").astype(np.uint64, copy=False), start

    def _tests(self, number: int, shape: Shape) -> list[Literal]:
        cuts = self._cuts(shape)
        tests = []
        for test in self._order(shape).tests(number):
            feature, threshold = find_cut(test >> 1, cuts)
            tests.append(Literal(feature, None if self._boolean else threshold, bool(test & 1)))
        return tests


class Conjunctions(_Rules):
    """Label 1 where all of a few tests are passed.

    Without bounds, thresholds and schema every feature must be 0 or 1. Two labels. There must be
    fewer than 2^62 rules. Memory: a bit for every example and threshold, and a few times as much
    while searching.

    Args:
        literals: How many tests a rule has at most, each of another feature.
        low: Public lower bounds of the features, one number for all or one for each. Values outside
            fall into the first or the last cell.
        high: Upper bounds, likewise.
        cells: How many equal cells each feature has between them; a test compares with the bound of
            a cell.
        thresholds: Instead of these: what to compare with, one list for all features or one for
            each (some may be empty).
        schema: Instead of all these: the columns with their cells. Rows are `schema.codes(X).T`
            then, as `PrivateERM` makes them; names are compared for equality.

    Examples:
        >>> X, y = np.array([[0, 1], [1, 1], [1, 0]]), np.array([0, 1, 0])
        >>> shape, rules = Shape(features=2, labels=2), Conjunctions(2)
        >>> rules.size(shape), rules.score(X, y, shape).maximum()
        (9, 3)
    """

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Covers:
        return self._score(X, y == 1, shape)

    def hypothesis(self, number: int, shape: Shape) -> Conjunction:
        return Conjunction(tuple(self._tests(number, shape)))


class Disjunctions(_Rules):
    """Label 1 where any of a few tests is passed. All else is as in `Conjunctions`.

    Examples:
        >>> X, y = np.array([[0, 1], [1, 1], [1, 0]]), np.array([1, 1, 1])
        >>> shape, rules = Shape(features=2, labels=2), Disjunctions(2)
        >>> rules.size(shape), rules.score(X, y, shape).maximum()
        (9, 3)
    """

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Covers:
        # The conjunction of the opposite tests says 1 where the disjunction says 0.
        return self._score(X, y != 1, shape)

    def hypothesis(self, number: int, shape: Shape) -> Disjunction:
        opposite = (
            Literal(test.feature, test.threshold, not test.below)
            for test in self._tests(number, shape)
        )
        return Disjunction(tuple(opposite))
