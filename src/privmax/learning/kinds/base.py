"""The base of all kinds of columns: names, equality, and the way from a value to its cell.

A new kind is one file: a subclass of `Kind` with a `kind`, which files of schemas call it by, and
with the methods below that raise NotImplementedError. Learners, engines, rules and saved models ask
for nothing else.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.columns import read_column
from privmax.learning.kinds.contract import MISSING, Cells
from privmax.learning.kinds.values import SPACES, as_float
from privmax.sources.table import MOMENTS, NUMBERS, OTHER, TEXT, Values

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue

KINDS: dict[str, type[Kind]] = {}
"""Every kind by its name, in the order in which they were declared."""


class Kind:
    """A kind of column. A subclass with a `kind` is known to schemas, files and saved models.

    Attributes:
        kind: What files call it; None: no kind of its own, only what some have in common.
        implied: The setting that says the kind in a file without `kind`; "": none has to, as it is
            the kind where no other is told; None: a file must have `kind`.
        settings: The names of the arguments, which files may give.
        bounds_remedy: What to do where a file leaves out a bound.
    """

    kind: ClassVar[str | None] = None
    implied: ClassVar[str | None] = None
    settings: ClassVar[tuple[str, ...]] = ("missing",)
    bounds_remedy: ClassVar[str] = ""
    ordered: ClassVar[bool] = True
    name: str = "value"
    cells: int
    missing: Any

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls) and cls.kind is not None:
            known = KINDS.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"a kind of column is called {cls.kind!r} already")
            KINDS[cls.kind] = cls  # a notebook declares it again

    @property
    def missing_cell(self) -> int | None:
        """The cell of missing values, which is the first; None: it has none of its own."""
        return None if self.missing is None else 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({arguments})"

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters that were given, or have another value than None."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as TOML and JSON have them."""
        declared = {"kind": self.kind} if self.implied is None else {}
        return declared | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._parameters().items()
        }

    def with_name(self, name: str) -> Self:
        """Return the same column with a name, which `describe` uses."""
        column = copy(self)
        column.name = name
        return column

    # Words and tests.

    def describe(self, cell: int) -> str:
        """Return a cell in words."""
        if not 0 <= cell < self.cells:
            raise ParameterError("cell", cell, f"there are {self.cells}", "For example 0.")
        if cell == self.missing_cell:
            return f"{format_label(self.name)} is missing"
        return self.describe_range(cell, cell)

    def describe_range(self, first: int, last: int) -> str:
        """Return all cells from one to another in words, none of them that of missing values."""
        raise NotImplementedError

    def test(self, cell: int, *, below: bool) -> dict[str, Any]:
        """Return a test as rules in JSON have it, without the name of the column."""
        first = 0 if self.missing_cell is None else 1
        if not self.ordered:
            if cell == self.missing_cell:
                return {"state": MISSING, "not": below}
        elif cell <= first:  # it is passed by all values but missing ones
            return {"state": MISSING, "not": not below}
        return self._value_test(cell, below=below)

    def _value_test(self, cell: int, *, below: bool) -> dict[str, Any]:
        """Return a test that does not only ask whether the value is missing."""
        raise NotImplementedError

    def find_test(self, test: Mapping[str, Any]) -> int | None:
        """Return the only cell whose `test` can be this one; None: there is none."""
        if test.get("state") == MISSING:
            return 1 if self.ordered else self.missing_cell
        return self._find_value_test(test)

    def _find_value_test(self, test: Mapping[str, Any]) -> int | None:
        """Return the same of a test that does not only ask whether the value is missing."""
        raise NotImplementedError

    # Cells in memory.

    def codes(self, values: Any) -> Cells:
        """Return the cell of every value.

        Args:
            values: A NumPy array, a list, a Series of pandas or polars, or an array of Arrow.

        Raises:
            DataError: The type of the column does not fit. No value is ever a reason.
        """
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return self.codes_of(read_column(values))

    def codes_of(self, column: Values) -> Cells:
        """Return the same of a column that was read."""
        self.check_type(column.kind)
        if column.kind == MOMENTS:
            return self._of_moments(column.values)
        if column.kind == NUMBERS:
            return self._of_numbers(column.values)
        return self._of_objects(column.values)

    def check_type(self, kind: str) -> None:
        """Refuse a column for what its type says it holds.

        Raises:
            DataError: It does not fit.
        """
        if kind not in (MOMENTS, OTHER):
            return
        name = format_label(self.name)
        if kind == MOMENTS:
            raise DataError(
                f"Column {name} has dates by its type. Declare it as a Date, or convert it to "
                "numbers or to text first."
            )
        raise DataError(
            f"Column {name} has dates, spans of time, bytes or lists by its type. Convert it "
            "to numbers or to text first."
        )

    def _of_moments(self, values: NDArray[np.datetime64]) -> Cells:
        """Of moments in UTC; only kinds whose `check_type` lets them pass are asked."""
        raise NotImplementedError

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        """Of booleans, whole numbers or floats."""
        raise NotImplementedError

    def _of_objects(self, values: NDArray[Any]) -> Cells:
        """Value by value; texts that are alike are read once."""
        listed = values.tolist()
        if not set(map(id, map(type, listed))) <= {id(str), id(type(None))}:
            return np.fromiter(map(self._of_object, listed), np.uint16, len(listed))
        known = {value: self._of_object(value) for value in set(listed)}
        return np.fromiter(map(known.__getitem__, listed), np.uint16, len(listed))

    def _of_object(self, value: Any) -> int:
        """Return the cell of a value of any type; whatever is wrong with it, it has one.

        What the value says of itself is not asked for: that may be anything, or fail.
        """
        if issubclass(type(value), str):
            return self._of_text(str.__str__(value).strip(SPACES))
        boolean = issubclass(type(value), (bool, np.bool_))
        array = np.array([bool(value) if boolean else as_float(value)])
        return int(self._of_numbers(array)[0])

    def _of_text(self, text: str) -> int:
        """Of a text without spaces around it."""
        raise NotImplementedError

    # Cells in an engine: the same, as Ibis expressions.

    def expression(self, values: Any) -> IntegerValue:
        """Return the cell of a column of an engine as an expression.

        Args:
            values: The column, of Ibis.

        Raises:
            DataError: The type of the column does not fit.
        """
        from privmax.learning.expressions import holder_of
        from privmax.sources.engines.base import as_text

        kind, group = values.type(), OTHER
        if kind.is_string():
            group = TEXT
        elif kind.is_date() or kind.is_timestamp():
            group = MOMENTS
        elif kind.is_boolean() or kind.is_numeric():
            group = NUMBERS
        self.check_type(group)
        if kind.is_string():
            return self._text_expression(values)
        if group == MOMENTS:
            if holder_of(values).moments_are_text:
                return self._text_expression(as_text(values))
            return self._moment_expression(values)
        engine = holder_of(values)
        if kind.is_boolean():
            cell = self._truth_expression(values)
        else:
            floating = kind.is_floating() and engine.has_nan
            cell = self._number_expression(engine.to_float(values), kind, floating)
        if engine.types_bind:
            return cell
        return engine.holds_text(values).ifelse(self._text_expression(as_text(values)), cell)

    def _text_expression(self, values: Any) -> Any:
        raise NotImplementedError

    def _moment_expression(self, values: Any) -> Any:
        """Of dates or moments; only kinds whose `check_type` lets them pass are asked."""
        raise NotImplementedError

    def _truth_expression(self, values: Any) -> Any:
        raise NotImplementedError

    def _number_expression(self, number: Any, kind: Any, floating: bool = False) -> Any:
        """Of 64-bit floats, which were of another type before, and may be NaN if that has it."""
        raise NotImplementedError
