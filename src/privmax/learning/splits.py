"""Tests on the columns of a schema.

An ordered column is tested against a bound of its cells, a name against a listed one.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError
from privmax.learning.kinds import Column
from privmax.learning.kinds.contract import UNLISTED
from privmax.learning.kinds.values import number_in_words
from privmax.learning.schema import Schema

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CellSplit:
    """One test: whether a value is in this cell or, where cells are ordered, in a higher one.

    Missing values of ordered columns are in the lowest cell, so they pass no comparison.

    Examples:
        >>> from privmax.learning import Category, Number
        >>> split = CellSplit(Number(thresholds=[18, 65]).with_name("age"), 1)
        >>> split.rule(), split.rule(below=True)
        ('age >= 18', 'age < 18')
        >>> split.passes(np.array([0, 1, 2])).tolist()
        [False, True, True]
        >>> CellSplit(Category(["Private"]).with_name("work"), 0).rule(below=True)
        'work is not Private'
    """

    column: Column
    cell: int

    def passes(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which cells pass it."""
        passed = cells >= self.cell if self.column.ordered else cells == self.cell
        return np.asarray(passed, np.bool_)

    def rule(self, *, below: bool = False) -> str:
        """Return the test in words, or with `below` its opposite."""
        return describe_test(self.to_dict(below=below))

    def to_dict(self, *, below: bool = False) -> dict[str, Any]:
        """Return the test, or with `below` its opposite, as rules in JSON have it."""
        return {"feature": self.column.name, **self.column.test(self.cell, below=below)}


class Splits:
    """All tests of a column, numbered from 0.

    An ordered column has as many as it has bounds between cells, a name has one for each cell.

    Examples:
        >>> from privmax.learning import Category
        >>> splits = Splits(Category(["a", "b"]))
        >>> len(splits), splits[2].rule()
        (3, 'value is not listed')
    """

    def __init__(self, column: Column) -> None:
        self.column = column

    def __len__(self) -> int:
        # Of two names each cell is where the other is not
        return self.column.cells - (self.column.ordered or self.column.cells == 2)

    def __getitem__(self, place: int) -> CellSplit:
        return CellSplit(self.column, place + self.column.ordered)

    def passes(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Return [test, row]: whether the row passes the test."""
        tests = (np.arange(len(self)) + self.column.ordered)[:, None]
        passed = cells >= tests if self.column.ordered else cells == tests
        return np.asarray(passed, np.bool_)

    def failures(self, counts: Ints) -> Ints:
        """Return [label, test]: the rows that do not pass, from the rows of each [cell, label]."""
        if self.column.ordered:
            return np.cumsum(counts, axis=0)[:-1].T
        failed: Ints = (counts.sum(axis=0) - counts[: len(self)]).T
        return failed


def splits_of(schema: Schema) -> list[Splits]:
    """Return the tests of every column.

    Examples:
        >>> from privmax.learning import Number
        >>> [len(splits) for splits in splits_of(Schema(age=Number(0, 9, cells=3)))]
        [2]
    """
    return [Splits(column) for column in schema.columns]


def describe_test(test: Mapping[str, Any]) -> str:
    """Return a test in words, as rules in JSON have it.

    Examples:
        >>> describe_test({"feature": "work", "state": "missing", "not": False})
        'work is missing'
        >>> describe_test({"feature": "joined", "threshold": "2024-03-01", "below": True})
        'joined < 2024-03-01'
    """
    name = format_label(test["feature"])
    if "threshold" in test:
        threshold, below = test["threshold"], test["below"]
        if threshold is None:
            return f"{name} is {0 if below else 1}"
        shown = threshold if isinstance(threshold, str) else number_in_words(threshold)
        more = " or is missing" if test.get("missing") else ""
        return f"{name} {'<' if below else '>='} {shown}{more}"
    negated = test["not"]
    if "equals" in test:
        return f"{name} {'is not' if negated else '='} {format_label(test['equals'])}"
    if test["state"] == UNLISTED:
        return f"{name} is {'listed' if negated else 'not listed'}"
    return f"{name} is {'not ' if negated else ''}missing"


def join_tests(tests: Sequence[str]) -> str:
    """Return in words that all tests are passed; those with alternatives have parentheses.

    Examples:
        >>> join_tests(["a < 5 or a is missing"]), join_tests(["a < 5 or a is missing", "b = 7"])
        ('a < 5 or a is missing', '(a < 5 or a is missing) and b = 7')
    """
    if len(tests) < 2:
        return "".join(tests)
    has_several = (" or " in one and not one.startswith("not (") for one in tests)
    return " and ".join(
        f"({one})" if several else one for one, several in zip(tests, has_several, strict=True)
    )


def find_split(schema: Schema, test: Mapping[str, Any]) -> tuple[CellSplit, bool]:
    """Return the test of a schema that a test in JSON means, and whether its opposite is meant.

    Raises:
        DataError: The schema has no such test.

    Examples:
        >>> from privmax.learning import Number
        >>> schema = Schema(age=Number(0, 9, cells=3))
        >>> find_split(schema, {"feature": "age", "threshold": 3.0, "below": True})[1]
        True
    """
    if test["feature"] in schema.names:
        column = schema.columns[schema.names.index(test["feature"])]
        cell = column.find_test(test)
        if cell is not None and 0 <= cell - column.ordered < len(Splits(column)):
            split = CellSplit(column, cell)
            for below in (False, True):
                if split.to_dict(below=below) == test:
                    return split, below
    raise DataError("A test of the rule is not one of its schema.")
