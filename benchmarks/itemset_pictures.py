"""The two pictures of docs/itemsets.md, from the stored result of itemset_quality.py.

./dev python -m benchmarks.itemset_quality --redraw
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.harness import note
from benchmarks.itemset_quality import SETS
from benchmarks.paper.contenders import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from benchmarks.paper.picture import PICTURES, WIDTH, Result, svg

Style = tuple[str, str, Any, float]
"""Label, colour, dashes and width of a line."""

K = 50
"""Itemsets asked for, in the picture of F1."""

LINES: Final[dict[str, Style]] = {
    "nested-margin": ("nested margin, no list of items", RED, "-", 2.0),
    "large-margin": ("the paper's, no list of items", BLUE, "-", 1.4),
    "permute-and-flip": ("permute-and-flip", ORANGE, "-", 1.2),
    "exponential": ("exponential", ORANGE, "--", 1.2),
    "max-of-laplaces": ("max of Laplaces", ORANGE, ":", 1.2),
    "blst10": ("BLST10", GREY, "-", 1.2),
}
"""The lines of the first picture."""

LISTS: Final[dict[str, Style]] = {
    "sharp-margin": ("sharp margin, no list of items", RED, "-", 2.0),
    "exponential": ("exponential, up to 3 declared items", ORANGE, "-", 1.2),
    "priv-basis": ("PrivBasis", BLUE, "-", 1.4),
    "smart-trunc": ("SmartTrunc", GREEN, "-", 1.2),
    "prefix-tree": ("prefix tree", PURPLE, "-", 1.2),
    "diff-part": ("DiffPart", SKY, "--", 1.2),
}
"""Those of the second."""


def draw_universe(result: Result) -> Figure:
    """Probability of the best pair against the number of items declared."""
    figure, grid = _panels(LINES)
    for axes, name in zip(grid, SETS, strict=True):
        largest = 1.0
        for row in (row for row in result["universe"] if row["set"] == name and row["items"]):
            powers = [math.log10(number) for number in row["items"]]
            largest = max(largest, powers[-1])
            _line(axes, powers, row["chance"], LINES[row["contender"]])
        for row in (row for row in result["universe"] if row["set"] == name and not row["items"]):
            if row["contender"] in LINES:  # nothing is declared: the same wherever one looks
                _line(axes, [0, largest], row["chance"] * 2, LINES[row["contender"]])
        axes.set_xlim(0, largest)
        powers_shown = range(0, int(largest) + 1, 20)
        axes.set_xticks(list(powers_shown), [f"$10^{{{power}}}$" for power in powers_shown])
    _ends(grid, "items declared", "probability of the best pair")
    return figure


def draw_lists(result: Result) -> Figure:
    """F1 of the best K of all sizes against epsilon."""
    figure, grid = _panels(LISTS)
    for axes, name in zip(grid, SETS, strict=True):
        for contender, style in LISTS.items():
            cells = {
                float(row["epsilon"]): row["f1"]
                for row in result["lists"]
                if (row["set"], row["sizes"], row["k"], row["contender"])
                == (name, "any", K, contender)
            }
            _line(
                axes,
                sorted(cells),
                [cells[epsilon] for epsilon in sorted(cells)],
                style,
                marker="o",
                markersize=3,
            )
        axes.set_xlim(0, 1.05)
        axes.set_xticks([0.1, 0.5, 1], ["0.1", "0.5", "1"])
    _ends(grid, "ε", f"F1 of the best {K}")
    return figure


def _panels(styles: Mapping[str, Style]) -> tuple[Figure, list[Axes]]:
    """A panel a set, and the names of the lines above them all."""
    figure = Figure(figsize=(WIDTH, 4.6))
    grid: list[Axes] = list(figure.subplots(2, 3, sharey=True).flat)
    for axes, name in zip(grid, SETS, strict=True):
        axes.set_title(name.replace("_", " "))
        axes.set_ylim(-0.04, 1.06)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    names = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=width, label=label)
        for label, colour, dashes, width in styles.values()
    ]
    figure.legend(handles=names, loc="outside upper center", ncols=3, frameon=False)
    return figure, grid


def _line(axes: Axes, x: Sequence[float], y: Sequence[float], style: Style, **options: Any) -> None:
    _, colour, dashes, width = style
    axes.plot(
        x,
        y,
        color=colour,
        linestyle=dashes,
        linewidth=width,
        zorder=2 + width / 10,
        clip_on=False,
        **options,
    )


def _ends(grid: Sequence[Axes], below: str, beside: str) -> None:
    for place, axes in enumerate(grid):
        if place >= 3:
            axes.set_xlabel(below)
        if place % 3 == 0:
            axes.set_ylabel(beside)


DRAWINGS: Final[dict[str, Callable[[Result], Figure]]] = {
    "itemsets-universe": draw_universe,
    "itemsets-lists": draw_lists,
}


def draw_all(result: Result) -> None:
    """Write docs/pictures/NAME.svg for each drawing."""
    for name, draw in DRAWINGS.items():
        (PICTURES / f"{name}.svg").write_text(svg(draw, result), encoding="utf-8")
        note(f"drew {name}.svg")
