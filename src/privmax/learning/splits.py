"""Tests on the columns of a schema: a number against a bound of its cells, a name against a listed
one.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import in_words
from privmax.errors import DataError
from privmax.learning.cells import Category, Number, number_in_words
from privmax.learning.schema import Schema

Ints = NDArray[np.int64]

MISSING, UNLISTED = "missing", "not listed"
"""States of a value that a rule in JSON can ask for."""


@dataclass(frozen=True)
class Split:
    """One test: whether a number is in this cell or a higher one, or a name in this very cell.

    Missing numbers are in the lowest cell, so they pass no comparison.

    Examples:
        >>> split = Split(Number(thresholds=[18, 65]).with_name("age"), 1)
        >>> split.rule(), split.rule(below=True)
        ('age >= 18', 'age < 18')
        >>> split.passes(np.array([0, 1, 2])).tolist()
        [False, True, True]
        >>> Split(Category(["Private"]).with_name("work"), 0).rule(below=True)
        'work is not Private'
    """

    column: Number | Category
    cell: int

    def passes(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells pass it."""
        passed = cells >= self.cell if self.column.ordered else cells == self.cell
        return np.asarray(passed, np.bool_)

    @property
    def threshold(self) -> float | None:
        """What numbers are compared with; None: it does not compare."""
        if not isinstance(self.column, Number):
            return None
        place = self.cell - 1 - (self.column.missing is not None)
        return None if place < 0 else float(self.column.cuts[place])

    def rule(self, *, below: bool = False) -> str:
        """The test in words, or with `below` its opposite."""
        name = in_words(self.column.name)
        test = self.to_dict(below=below)
        if "threshold" in test:
            number = number_in_words(test["threshold"])
            more = " or is missing" if test.get("missing") else ""
            return f"{name} {'<' if below else '>='} {number}{more}"
        return name_test(name, test)

    def to_dict(self, *, below: bool = False) -> dict[str, Any]:
        """The test, or with `below` its opposite, as rules in JSON have it."""
        column, cell = self.column, self.cell
        test: dict[str, Any] = {"feature": column.name}
        if isinstance(column, Number):
            if self.threshold is not None:
                missing = {} if column.missing is None else {"missing": below}
                return test | {"threshold": self.threshold, "below": below} | missing
            return test | {"state": MISSING, "not": not below}  # it is passed by all others
        if cell == column.missing_cell:
            return test | {"state": MISSING, "not": below}
        if cell == column.other:
            return test | {"state": UNLISTED, "not": below}
        return test | {"equals": column.values[cell - (column.missing is not None)], "not": below}


class Splits:
    """All tests of a column, numbered from 0: of a number as many as it has bounds between cells,
    of a name one for each cell.

    Examples:
        >>> splits = Splits(Category(["a", "b"]))
        >>> len(splits), splits[2].rule()
        (3, 'value is not listed')
    """

    def __init__(self, column: Number | Category) -> None:
        self.column = column

    def __len__(self) -> int:
        # Of two names each cell is where the other is not
        return self.column.cells - (self.column.ordered or self.column.cells == 2)

    def __getitem__(self, place: int) -> Split:
        return Split(self.column, place + self.column.ordered)

    def passes(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """[test, row]: whether the row passes the test."""
        tests = (np.arange(len(self)) + self.column.ordered)[:, None]
        passed = cells >= tests if self.column.ordered else cells == tests
        return np.asarray(passed, np.bool_)

    def failures(self, counts: Ints) -> Ints:
        """[label, test]: the rows that do not pass, from the rows of each [cell, label]."""
        if self.column.ordered:
            return np.cumsum(counts, axis=0)[:-1].T
        failed: Ints = (counts.sum(axis=0) - counts[: len(self)]).T
        return failed


def splits_of(schema: Schema) -> list[Splits]:
    """The tests of every column.

    Examples:
        >>> [len(splits) for splits in splits_of(Schema(age=Number(0, 9, cells=3)))]
        [2]
    """
    return [Splits(column) for column in schema.columns]


def name_test(name: str, test: Mapping[str, Any]) -> str:
    """A test for a name or a state, as rules in JSON have it.

    Examples:
        >>> name_test("work", {"state": "missing", "not": False})
        'work is missing'
    """
    negated = test["not"]
    if "equals" in test:
        return f"{name} {'is not' if negated else '='} {in_words(test['equals'])}"
    if test["state"] == UNLISTED:
        return f"{name} is {'listed' if negated else 'not listed'}"
    return f"{name} is {'not ' if negated else ''}missing"


def find_split(schema: Schema, test: Mapping[str, Any]) -> tuple[Split, bool]:
    """The test of a schema that a test in JSON means, and whether its opposite is meant.

    Raises:
        DataError: The schema has no such test.

    Examples:
        >>> schema = Schema(age=Number(0, 9, cells=3))
        >>> find_split(schema, {"feature": "age", "threshold": 3.0, "below": True})[1]
        True
    """
    if test["feature"] in schema.names:
        splits = Splits(schema.columns[schema.names.index(test["feature"])])
        place = _place_of(splits.column, test)
        if place is not None and 0 <= place < len(splits):
            for below in (False, True):
                if splits[place].to_dict(below=below) == test:
                    return splits[place], below
    raise DataError("A test of the rule is not one of its schema.")


def _place_of(column: Number | Category, test: Mapping[str, Any]) -> int | None:
    """The only test of a column that can be meant; None: there is none."""
    if isinstance(column, Number):
        if "threshold" not in test:
            return 0  # whether it is missing
        return int(np.searchsorted(column.cuts, test["threshold"])) + (column.missing is not None)
    if "equals" in test:
        return column.known.get(str(test["equals"]))
    return column.missing_cell if test["state"] == MISSING else column.other
