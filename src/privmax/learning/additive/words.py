"""Tables of an additive model in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from privmax.learning.additive.link import ONE
from privmax.learning.additive.model import AdditiveModel, Part
from privmax.learning.kinds import Column
from privmax.learning.schema import Schema
from privmax.learning.splits import join_tests

_TIMES = " × "


def title(part: Part, schema: Schema) -> str:
    """Return the columns of a part, by name; in quotes where a name could be taken for two.

    Examples:
        >>> from privmax.learning.kinds import Number
        >>> schema = Schema({"a": Number(0, 1), "b": Number(0, 1), "a × b": Number(0, 1)})
        >>> title(Part((0, 1), ()), schema), title(Part((2,), ()), schema)
        ('a × b', '"a × b"')
    """
    names = [schema.names[feature] for feature in part.features]
    return _TIMES.join(f'"{name}"' if _TIMES in name else name for name in names)


def tell_entries(
    model: AdditiveModel, schema: Schema, step: float = 1 / ONE, decimals: int = 2
) -> list[str]:
    """Return the entries of all tables in words, the largest first, such as "age < 20: −1.25".

    Args:
        model: The tables.
        schema: Their columns.
        step: What one step of an entry is.
        decimals: As many are written.
    """
    entries = [
        (entry, words)
        for part, table in model.tables.items()
        for words, entry in zip(name_entries(part, schema), table, strict=True)
        if entry
    ]
    entries.sort(key=lambda one: (-abs(one[0]), one[1]))
    return [f"{words}: {with_sign(entry * step, decimals)}" for entry, words in entries]


def tell_shapes(
    model: AdditiveModel, schema: Schema, step: float = 1 / ONE, adds: str = "log_odds"
) -> dict[str, list[dict[str, Any]]]:
    """Return every table by the names of its columns, a record for each entry.

    A record has the deviation of the noise in the entry, where that is known.

    Args:
        model: The tables.
        schema: Their columns.
        step: What one step of an entry is.
        adds: What entries are called.
    """
    return {
        title(part, schema): [
            {"cell": words, adds: entry * step, **more}
            for words, entry, more in zip(
                name_entries(part, schema), table, _tell_noise(model, part, step), strict=True
            )
        ]
        for part, table in model.tables.items()
    }


def _tell_noise(model: AdditiveModel, part: Part, step: float) -> list[dict[str, float]]:
    """Return what records have of the noise in each entry of a table."""
    if part not in model.noise:
        return [{}] * part.size
    return [{"noise": one * step} for one in model.noise[part]]


def name_entries(part: Part, schema: Schema) -> list[str]:
    """Return the entries of a table in words, in their order."""
    each = [
        [_group(schema.columns[feature], groups, number) for number in range(max(groups) + 1)]
        for feature, groups in zip(part.features, part.groups, strict=True)
    ]
    return [join_tests(tests) for tests in product(*each)]


def _group(column: Column, groups: Sequence[int], number: int) -> str:
    """Cells that count together, in words."""
    return name_cells(column, [cell for cell, group in enumerate(groups) if group == number])


def name_cells(column: Column, cells: Sequence[int]) -> str:
    """Return some cells of a column together, in words; ordered ones lie side by side.

    Examples:
        >>> from privmax.learning.kinds import Number
        >>> name_cells(Number(0, 40, cells=4, missing=True).with_name("age"), [0, 1, 2])
        'age < 20 or age is missing'
    """
    if not column.ordered:
        return " or ".join(column.describe(cell) for cell in cells)
    present = [cell for cell in cells if cell != column.missing_cell]
    gone = [column.describe(cell) for cell in cells if cell == column.missing_cell]
    return " or ".join(
        [*([column.describe_range(present[0], present[-1])] if present else []), *gone]
    )


def with_sign(value: float, decimals: int = 2) -> str:
    """Return a number with its sign.

    Examples:
        >>> with_sign(-1.25), with_sign(12_345.6, 0)
        ('−1.25', '+12,346')
    """
    return f"{value:+,.{decimals}f}".replace("-", "−")
