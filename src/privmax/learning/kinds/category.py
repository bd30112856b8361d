"""Category: a column of names, a cell for each that is listed.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import ParameterError
from privmax.learning.classes.grid import MOST_CELLS
from privmax.learning.kinds.base import Kind
from privmax.learning.kinds.contract import UNLISTED, Cells
from privmax.learning.kinds.values import (
    EXACT,
    SPACES,
    is_listable,
    plain_value,
    read_missing,
    text_of,
)

WHOLE = re.compile("0|-?[1-9][0-9]{0,15}")
"""A text that stands for a whole number, too: the listed value 1 is the text "1", and 1.0."""


class Category(Kind):
    """A column whose values are names: a cell for each that is listed, and one for all others.

    Every value has a cell: what is not listed falls into the last one. None, NaN and empty text are
    missing: they fall into a cell of their own if `missing` is given, otherwise into the last one
    as well. Spaces around a text do not count, and 1, 1.0, "1" and True are the same value.

    Args:
        values: The public list: text, whole numbers, or True and False. Never
            computed from the data, where one person's value may be the only one of its kind.
        missing: Give missing values a cell of their own: True, or what else stands for a missing
            value, such as "?", or a list of such.

    Attributes:
        cells: The number of all cells; `codes` are 0 … cells − 1.
        values: What is listed.
        missing_cell: 0 if missing values have a cell of their own, which precedes all others; else
            None.
        ordered: False.

    Raises:
        ParameterError: An argument is wrong.

    Examples:
        >>> work = Category(["Private", "State-gov"], missing="?")
        >>> work.cells, work.codes([" Private", "State-gov", "Private-ish", "?"]).tolist()
        (4, [1, 2, 3, 0])
        >>> [work.with_name("work").describe(cell) for cell in range(4)]
        ['work is missing', 'work = Private', 'work = State-gov', 'work is not listed']
    """

    kind = "category"
    implied = "values"
    settings = ("values", "missing")
    ordered = False

    def __init__(self, values: Iterable[Any], *, missing: Any = None) -> None:
        listed = _read_values(values)
        self.missing, markers = read_missing(missing)
        known = [text_of(value) for value in listed]
        if len(known) >= MOST_CELLS:  # before they are compared
            raise _too_many(known, MOST_CELLS - (self.missing is not None))
        seen: set[Any] = {"", *markers, *map(text_of, markers)}
        for value, text in zip(listed, known, strict=True):
            if text in seen or value in seen:  # True is 1 to Python
                raise ParameterError(
                    "values",
                    value,
                    "it is empty, means missing values, or is listed twice (1, '1' and True "
                    "count as one)",
                    "List every value once.",
                )
            seen |= {text, value}
        first = 0 if self.missing is None else 1
        self.values = tuple(listed)
        self.cells = len(known) + 1 + first
        if self.cells > MOST_CELLS:
            raise _too_many(known, MOST_CELLS - first)
        self.known: dict[str, int] = {text: cell for cell, text in enumerate(known, first)}
        """The cell of every value that is known, by its text; values that stand for missing ones
        have the same cell as missing ones."""
        for value in (True, False):  # as JSON writes them
            if value in [one for one in listed if isinstance(one, bool)]:
                for text in (str(value).lower(), str(int(value))):
                    self.known.setdefault(text, self.known[str(value)])
        self.known |= dict.fromkeys(["", *map(text_of, markers)], self.other if not first else 0)
        self.numbers: dict[float, int] = {
            float(text): cell
            for text, cell in self.known.items()
            if WHOLE.fullmatch(text) and abs(int(text)) < EXACT
        }
        """The same of those that are numbers."""
        self.numbers |= {marker: 0 for marker in markers if isinstance(marker, float)}

    @property
    def other(self) -> int:
        """The cell of values that are not listed: the last."""
        return self.cells - 1

    def _parameters(self) -> dict[str, Any]:
        listed = {"values": list(self.values)}
        return listed | ({} if self.missing is None else {"missing": self.missing})

    def describe_range(self, first: int, last: int) -> str:
        """Return some cells in words, none of them that of missing values."""
        return " or ".join(map(self._describe_value, range(first, last + 1)))

    def _describe_value(self, cell: int) -> str:
        name = format_label(self.name)
        if cell == self.other:
            return f"{name} is not listed"
        return f"{name} = {format_label(self._value_of(cell))}"

    def _value_of(self, cell: int) -> Any:
        return self.values[cell - (self.missing is not None)]

    def _value_test(self, cell: int, *, below: bool) -> dict[str, Any]:
        if cell == self.other:
            return {"state": UNLISTED, "not": below}
        return {"equals": self._value_of(cell), "not": below}

    def _find_value_test(self, test: Mapping[str, Any]) -> int | None:
        if "equals" in test:
            return self.known.get(str(test["equals"]))
        return self.other

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        cells = np.full(len(values), self.other, np.uint16)
        if values.dtype.kind == "b":
            for value in (True, False):
                cells[values == value] = self.truth_cell(value)
            return cells
        for number, cell in self.numbers.items():
            cells[values == number] = cell
        cells[np.isnan(values)] = self.known[""]
        return cells

    def truth_cell(self, value: bool) -> int:
        """Return the cell of True or False, which is also that of 1 or 0.

        pandas makes whole numbers of truths in a column with one.
        """
        return self.known.get(str(value), self.known.get(str(int(value)), self.other))

    def _of_text(self, text: str) -> int:
        return self.known.get(text, self.other)

    def _text_expression(self, values: Any) -> Any:
        from privmax.learning.expressions import holder_of, is_text

        text = holder_of(values).strip(values)
        tests = [(is_text(text, value), cell) for value, cell in self.known.items()]
        return self._match(tests, text.isnull())

    def _truth_expression(self, values: Any) -> Any:
        tests = [(values == value, self.truth_cell(value)) for value in (True, False)]
        return self._match(tests, values.isnull())

    def _number_expression(self, number: Any, kind: Any, floating: bool = False) -> Any:
        from privmax.learning.expressions import literal_float

        gone = number.isnull()
        if floating:
            gone |= number.isnan()
        tests = [(number == literal_float(listed), cell) for listed, cell in self.numbers.items()]
        return self._match(tests, gone)

    def _match(self, tests: list[Any], gone: Any) -> Any:
        """Return the cell of the first test that is passed."""
        import ibis

        return ibis.cases((gone, self.known[""]), *tests, else_=self.other)


def _read_values(values: Any) -> list[Any]:
    """Return the values of a category."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    ordered = isinstance(plain, (Sequence, range)) and not isinstance(plain, (str, bytes))
    listed = [plain_value(value) for value in plain] if ordered else []
    for value in listed:
        if not is_listable(value):
            raise ParameterError(
                "values",
                value,
                "a value must be text, a whole number below 2^53, True or False",
                "Declare other numbers as a Number.",
            )
    if not listed:
        raise ParameterError(
            "values",
            values if isinstance(values, (str, list, tuple)) else f"<{type(values).__name__}>",
            "it must be a list of at least one value",
            'For example ["no", "yes"].',
        )
    return [value.strip(SPACES) if isinstance(value, str) else value for value in listed]


def _too_many(listed: Sequence[str], limit: int) -> ParameterError:
    return ParameterError(
        "values",
        f"{len(listed)} values",
        f"there must be fewer than {limit}",
        "List the frequent ones.",
    )
