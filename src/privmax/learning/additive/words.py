"""Tables of an additive model in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privmax.display import in_words
from privmax.learning.additive.model import Part
from privmax.learning.cells import number_in_words
from privmax.learning.schema import Schema

_TIMES = " × "


def title(part: Part, schema: Schema) -> str:
    """The columns of a part, by name; in quotes where a name could be taken for two.

    Examples:
        >>> from privmax.learning.cells import Number
        >>> schema = Schema({"a": Number(0, 1), "b": Number(0, 1), "a × b": Number(0, 1)})
        >>> title(Part((0, 1), ()), schema), title(Part((2,), ()), schema)
        ('a × b', '"a × b"')
    """
    names = [schema.names[feature] for feature in part.features]
    return _TIMES.join(f'"{name}"' if _TIMES in name else name for name in names)


def name_entries(part: Part, schema: Schema) -> list[str]:
    """The entries of a table in words, in their order."""
    told = [""]
    for feature, groups in zip(part.features, part.groups, strict=True):
        column = schema.columns[feature]
        each = [_group(column, groups, number) for number in range(max(groups) + 1)]
        told = [f"{before} and {after}" if before else after for before in told for after in each]
    return told


def _group(column: Any, groups: Sequence[int], number: int) -> str:
    """Cells that count together, in words."""
    return name_cells(column, [cell for cell, group in enumerate(groups) if group == number])


def name_cells(column: Any, cells: Sequence[int]) -> str:
    """Some cells of a column together, in words; those of numbers lie side by side.

    Examples:
        >>> from privmax.learning.cells import Number
        >>> name_cells(Number(0, 40, cells=4, missing=True).with_name("age"), [0, 1, 2])
        'age < 20 or age is missing'
    """
    if not column.ordered:
        return " or ".join(str(column.describe(cell)) for cell in cells)
    told = [cell for cell in cells if cell != column.missing_cell]
    gone = [str(column.describe(cell)) for cell in cells if cell == column.missing_cell]
    return " or ".join([*([name_range(column, told[0], told[-1])] if told else []), *gone])


def name_range(column: Any, first: int, last: int) -> str:
    """The words for all cells of a number from one to another.

    Examples:
        >>> from privmax.learning.cells import Number
        >>> age = Number(0, 40, cells=4).with_name("age")
        >>> name_range(age, 0, 2), name_range(age, 1, 2), name_range(age, 1, 3)
        ('age < 30', '10 <= age < 30', 'age >= 10')
        >>> name_range(age, 0, 3)
        'age is any number'
    """
    before = 0 if column.missing_cell is None else 1
    name, cuts = in_words(column.name), [-math.inf, *column.cuts.tolist(), math.inf]
    low, high = cuts[first - before], cuts[last - before + 1]
    if low == -math.inf:
        return f"{name} is any number" if high == math.inf else f"{name} < {number_in_words(high)}"
    if high == math.inf:
        return f"{name} >= {number_in_words(low)}"
    return f"{number_in_words(low)} <= {name} < {number_in_words(high)}"


def with_sign(value: float) -> str:
    """A number with its sign.

    Examples:
        >>> with_sign(-1.25)
        '−1.25'
    """
    return f"{value:+.2f}".replace("-", "−")
