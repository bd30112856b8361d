"""Flag: a column of truths, in two cells.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.learning.kinds.base import Kind
from privmax.learning.kinds.contract import Cells
from privmax.learning.kinds.values import read_missing_flag

TRUE = (
    *("true", "True", "TRUE", "t", "T", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"),
    *("1", "1.0"),
)
"""Texts that are true, spaces around them left out."""

FALSE = (
    *("false", "False", "FALSE", "f", "F", "no", "No", "NO", "n", "N", "off", "Off", "OFF"),
    *("0", "0.0"),
)
"""Texts that are false."""


class Flag(Kind):
    """A column that says yes or no.

    Every value has a cell. True, the number 1 and the texts true, t, yes, y, on, 1 and 1.0 are
    true; False, the number 0 and the texts false, f, no, n, off, 0 and 0.0 are false. A text may be
    in small letters, in capitals, or begin with one; spaces around it do not count. Whatever is
    neither (None, NaN, 2, "maybe") is missing: it falls into a cell of its own if `missing` is
    given, otherwise into that of false.

    Args:
        missing: True: give missing values a cell of their own.

    Attributes:
        cells: 2, or 3 with the one for missing values; `codes` are 0 … cells − 1.
        missing_cell: 0 if missing values have a cell of their own, which precedes all others; else
            None.
        ordered: True: false precedes true.

    Raises:
        ParameterError: `missing` is neither True nor left out.

    Examples:
        >>> smoker = Flag(missing=True).with_name("smoker")
        >>> smoker.cells, smoker.codes([True, "no", 1.0, "Yes ", "maybe", None]).tolist()
        (3, [2, 1, 2, 2, 0, 0])
        >>> [smoker.describe(cell) for cell in range(3)]
        ['smoker is missing', 'smoker = False', 'smoker = True']
        >>> Flag().codes(["on", "off", None]).tolist()
        [1, 0, 0]
    """

    kind = "flag"

    def __init__(self, *, missing: bool | None = None) -> None:
        self.missing = read_missing_flag(
            missing, "values that are neither true nor false are missing"
        )
        self._first = 0 if self.missing is None else 1
        self.cells = 2 + self._first
        self._known = dict.fromkeys(FALSE, self._first) | dict.fromkeys(TRUE, self._first + 1)

    def _parameters(self) -> dict[str, Any]:
        return {} if self.missing is None else {"missing": True}

    def describe_range(self, first: int, last: int) -> str:
        """Return some cells in words, none of them that of missing values."""
        name = format_label(self.name)
        return " or ".join(f"{name} = {cell > self._first}" for cell in range(first, last + 1))

    def _value_test(self, cell: int, *, below: bool) -> dict[str, Any]:
        return {"equals": True, "not": below}

    def _find_value_test(self, test: Mapping[str, Any]) -> int | None:
        return self._first + 1 if test.get("equals") is True else None

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        cells = np.zeros(len(values), np.uint16)
        cells[values == 0] = self._first
        cells[values == 1] = self._first + 1
        return cells

    def _of_text(self, text: str) -> int:
        return self._known.get(text, 0)

    def _text_expression(self, values: Any) -> Any:
        from privmax.learning.expressions import holder_of, is_text

        text = holder_of(values).strip(values)
        return self._match([(is_text(text, known), cell) for known, cell in self._known.items()])

    def _truth_expression(self, values: Any) -> Any:
        return self._match([(values == False, self._first), (values == True, self._first + 1)])  # noqa: E712

    def _number_expression(self, number: Any, kind: Any, floating: bool = False) -> Any:
        from privmax.learning.expressions import literal_float

        tests = [(number == literal_float(value), self._first + value) for value in (0, 1)]
        return self._match(tests)

    def _match(self, tests: list[Any]) -> Any:
        """Return the cell of the test that is passed; null and NaN pass none."""
        import ibis

        return ibis.cases(*tests, else_=0)
