"""Small tables for notebooks, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from privmax.rendering import render

MOST = 20
"""Lines that a cell has at most."""

LONGEST = 300
"""Characters that a line of a cell has at most."""


class _Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        tag: "th" or "td".
        lines: What it shows.
        align: "left" or "right".
        more: How many lines are left out.
        is_isolated: Whether a line that runs from right to left is kept from turning what is around
            it.
    """

    tag: str
    lines: Sequence[str]
    align: str = "left"
    more: int = 0
    is_isolated: bool = True

    @classmethod
    def of(cls, tag: str, value: str | Sequence[str], align: str = "left") -> _Cell:
        lines = [value] if isinstance(value, str) else list(value)
        return cls(tag, [_cut(line) for line in lines[:MOST]], align, max(len(lines) - MOST, 0))


def facts(title: str, rows: Mapping[str, str | Sequence[str]], *notes: str) -> str:
    """Return names and what is beside them as HTML, for notebooks.

    Args:
        title: What stands above.
        rows: A text, or lines, by name. Empty ones are left out.
        notes: What stands below.

    Examples:
        >>> print(facts("Cost", {"epsilon": "<1"}))
        <div ...<b>Cost</b>...>epsilon</th><td ...><bdi>&lt;1</bdi></td>...</div>
    """
    shown = {name: value for name, value in rows.items() if value}
    cells = [
        [_Cell("th", [_cut(name)], is_isolated=False), _Cell.of("td", value)]
        for name, value in shown.items()
    ]
    return _frame(title, cells, notes)


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *notes: str,
    numbers: Iterable[int] = (),
) -> str:
    """Return a table as HTML, for notebooks.

    Args:
        title: What stands above.
        headings: Of the columns.
        rows: As texts.
        notes: What stands below.
        numbers: Which columns are at the right.

    Examples:
        >>> print(table("Two", ["a", "b"], [["1", "<i>"]], numbers=[0]))
        <div ...<b>Two</b>...<td style="text-align:right...><bdi>&lt;i&gt;</bdi></td></tr>...</div>
    """
    right = set(numbers)
    aligns = ["right" if place in right else "left" for place in range(len(headings))]
    lines = [("th", headings), *(("td", row) for row in rows)]
    cells = [
        [_Cell.of(tag, cell, align) for cell, align in zip(line, aligns, strict=True)]
        for tag, line in lines
    ]
    return _frame(title, cells, notes)


def _frame(title: str, rows: Sequence[Sequence[_Cell]], notes: Sequence[str]) -> str:
    below = [_cut(note) for note in notes]
    return render("templates/notebook.html", title=_cut(title), rows=rows, notes=below)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
