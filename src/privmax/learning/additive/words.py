"""Tables of an additive model in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privmax.learning.additive.model import Part
from privmax.learning.schema import Schema


def title(part: Part, schema: Schema) -> str:
    """The columns of a part, by name."""
    return " × ".join(schema.names[feature] for feature in part.features)


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
        >>> name_cells(Number(0, 40, cells=4, missing=True).named("age"), [0, 1, 2])
        'age < 20 or age is missing'
    """
    if not column.ordered:
        return " or ".join(str(column.describe(cell)) for cell in cells)
    told = [str(column.describe(cell)) for cell in cells if cell != column.missing_cell]
    gone = [str(column.describe(cell)) for cell in cells if cell == column.missing_cell]
    return " or ".join([*([join_words(told[0], told[-1])] if told else []), *gone])


def join_words(first: str, last: str) -> str:
    """The words for all cells from one to another.

    Examples:
        >>> join_words("age < 20", "30 <= age < 40"), join_words("20 <= age < 30", "age >= 60")
        ('age < 40', 'age >= 20')
        >>> join_words("20 <= age < 30", "30 <= age < 40")
        '20 <= age < 40'
    """
    if first == last:
        return first
    low, _, after = first.partition(" <= ")
    name = (after or first).rpartition(" < ")[0]
    high = last.rpartition(" < ")[2] if " < " in last else None
    if not after:
        return f"{name} < {high}"
    return f"{name} >= {low}" if high is None else f"{low} <= {name} < {high}"


def signed(value: float) -> str:
    """A number with its sign.

    Examples:
        >>> signed(-1.25)
        '−1.25'
    """
    return f"{value:+.2f}".replace("-", "−")
