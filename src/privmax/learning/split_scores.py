"""Scores of splits of a node: whole numbers that one more row moves in one direction only.

A branch with n_0 and n_1 rows of the two labels, t in all, adds to the score of its split

    max                max(n_0, n_1)                                       rises by at most 1
    gini               −t·(1 − (n_0/t)² − (n_1/t)²) = −2·n_0·n_1/t         falls by less than 2
    information-gain   n_0·log2(n_0/t) + n_1·log2(n_1/t)                   falls by at most
                                                                           log2(t+1) + 1/ln 2

The last two are counted in small steps: Gini by rounding each branch down, information gain by a
table of whole numbers in the place of x·log2(x).

Proof:      docs/proofs/private-tree.md
Reference:  Friedman & Schuster, KDD 2010
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.numbers import whole

Counts = NDArray[np.int64]
"""Rows of each label (first axis) in each branch (second)."""

STEPS = 1 << 10
"""Steps that one unit of Gini or information gain is worth."""

MOST_ROWS = 1 << 24
"""Information gain has a table with as many entries. Gini is exact in 64 bits below 2^32 rows."""


class SplitScore(Protocol):
    """A score of splits: that of a split is the sum over its two branches.

    sensitivity    by how much one row more moves it at most, always the same way
    """

    @property
    def sensitivity(self) -> int: ...

    def of(self, counts: Counts) -> Counts:
        """Return the score of each branch."""
        ...


@dataclass(frozen=True)
class MaxScore:
    """Rows that are right if a branch says what most of its rows are."""

    sensitivity: ClassVar[int] = 1

    def of(self, counts: Counts) -> Counts:
        larger: Counts = counts.max(axis=0)
        return larger


@dataclass(frozen=True)
class GiniScore:
    """Gini impurity times the rows of a branch, negative, rounded down to steps."""

    sensitivity: ClassVar[int] = 2 * STEPS

    def of(self, counts: Counts) -> Counts:
        first, second = counts
        rows = np.maximum(first + second, 1)
        quotient, rest = np.divmod(2 * first * second, rows)  # times STEPS it may leave 64 bits
        score: Counts = -STEPS * quotient + -STEPS * rest // rows
        return score


@dataclass(frozen=True)
class InformationGain:
    """Entropy times the rows of a branch, negative.

    rows    how many rows there are at most, which is public
    """

    rows: int

    @property
    def sensitivity(self) -> int:
        return int(self._increments[-1])

    def of(self, counts: Counts) -> Counts:
        first, second = counts
        table = self._table
        score: Counts = table[first] + table[second] - table[first + second]
        return score

    @cached_property
    def _increments(self) -> NDArray[np.int64]:
        """d(x), about STEPS·((x+1)·log2(x+1) − x·log2(x)), which does not fall as x grows.

        Only that it is a table of whole numbers that do not fall matters for privacy.
        """
        x = np.arange(1, self.rows, dtype=np.float64)
        rise = np.log2(x + 1) + x * np.log1p(1 / x) / math.log(2)
        return np.concatenate([[0], np.maximum.accumulate(np.floor(STEPS * rise).astype(np.int64))])

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """The sum of d(0) … d(x−1), in the place of STEPS·x·log2(x)."""
        return np.concatenate([[0], np.cumsum(self._increments)])


NAMES = ("max", "gini", "information-gain")


def read_name(option: str, value: str) -> str:
    """Return the name of a score, if there is one."""
    if value not in NAMES:
        raise ParameterError(option, value, f"it must be {', '.join(NAMES[:-1])} or {NAMES[-1]}")
    return value


def read_score(name: str, rows: int | None) -> SplitScore:
    """Return the score of that name.

    Args:
        name: "max", "gini" or "information-gain".
        rows: A public bound on the number of rows, which information gain needs.

    Raises:
        ParameterError: There is no such score, or rows is missing, too large or not needed.

    Examples:
        >>> [read_score("gini", None).sensitivity, read_score("information-gain", 1000).sensitivity]
        [2048, 11681]
    """
    if read_name("criterion", name) != "information-gain":
        if rows is not None:
            raise ParameterError("rows", rows, f"{name} does not need it", "Leave it out.")
        return MaxScore() if name == "max" else GiniScore()
    if rows is None:
        remedy = "Give a public bound on the number of rows."
        raise ParameterError.required("rows", "information-gain needs it", remedy)
    rows = whole("rows", rows, 2)  # fewer have nothing to gain
    if rows > MOST_ROWS:
        raise ParameterError("rows", rows, f"it must be at most {MOST_ROWS}", "Use max or gini.")
    return InformationGain(rows)
