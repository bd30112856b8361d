"""The contract of the columns of a schema, whatever their kind.

A cell follows from the value and the declaration alone. No value makes reading fail; only the type
of a column can do that.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privmax.sources.table import Values

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue

Cells = NDArray[np.uint16]
"""The cell of every value."""

MISSING, UNLISTED = "missing", "not listed"
"""States of a value that a rule in JSON can ask for."""


@runtime_checkable
class Column(Protocol):
    """A public declaration that gives every value of a column one of finitely many cells.

    Attributes:
        name: Of the column.
        cells: How many cells there are; they are numbered from 0.
    """

    name: str
    cells: int

    @property
    def ordered(self) -> bool:
        """Whether higher cells have higher values, apart from that of missing ones."""

    @property
    def missing_cell(self) -> int | None:
        """The cell of missing values, which is the first; None: they have none of their own."""

    def with_name(self, name: str) -> Self:
        """Return the same column with this name, which words use."""

    def codes(self, values: Any) -> Cells:
        """Find the cell of every value of an array, a list or a series."""

    def codes_of(self, column: Values) -> Cells:
        """Find the cells of a column that was read."""

    def expression(self, values: Any) -> IntegerValue:
        """Write the cell of a column of an engine as an Ibis expression."""

    def describe(self, cell: int) -> str:
        """Describe a cell in words."""

    def describe_range(self, first: int, last: int) -> str:
        """Describe all cells from one to another, none of them that of missing values."""

    def test(self, cell: int, *, below: bool) -> dict[str, Any]:
        """Write a test as rules in JSON have it, without the name of the column.

        It asks for values of this cell and, where cells are ordered, of all higher ones; with
        `below` for all others. It has one of three forms, which every reader of rules knows:
        {"threshold", "below"} and perhaps {"missing"}; {"equals", "not"}; {"state", "not"}. The
        thresholds of a column are all numbers or all text, and sort as its cells do.
        """

    def find_test(self, test: Mapping[str, Any]) -> int | None:
        """Find the only cell whose `test` can be this one; None: there is none."""

    def to_dict(self) -> dict[str, Any]:
        """Write the declaration as TOML and JSON have it."""
