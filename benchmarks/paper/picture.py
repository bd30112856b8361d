"""What the four pictures share: style, storing numbers, saving a drawing, and the command line.

./dev python -m benchmarks.paper.NAME             compute, store the numbers and draw the picture
./dev python -m benchmarks.paper.NAME --redraw    only draw again from the stored numbers
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import RESULTS, note, source_digest, store
from privmax import __version__

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
Result = Mapping[str, Any]

WIDTH = 7.3
"""Inches: 700 pixels, the width of a page of text."""

STYLE: Any = {
    "font.size": 8,
    "font.family": "DejaVu Sans",  # it comes with matplotlib
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "svg.fonttype": "path",  # the same wherever it is shown
    "svg.hashsalt": "privmax",  # the same whenever it is drawn
    "lines.solid_capstyle": "round",
}


def path(name: str) -> Path:
    """Where the numbers of a picture are stored."""
    return RESULTS / f"paper-{name}.json"


def stored(name: str) -> dict[str, Any]:
    """The numbers of a picture, as stored."""
    result: dict[str, Any] = json.loads(path(name).read_text(encoding="utf-8"))
    return result


def svg(draw: Callable[[Result], Figure], result: Result) -> str:
    """A drawing as SVG, the same text for the same numbers."""
    text = io.StringIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        draw(result).savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def main(
    name: str, compute: Callable[[], dict[str, Any]], draw: Callable[[Result], Figure]
) -> None:
    """Compute and store (unless only to redraw), then draw."""
    parser = argparse.ArgumentParser(description=f"Make docs/pictures/paper-{name}.svg.")
    parser.add_argument(
        "--redraw", action="store_true", help="only draw again from the stored numbers"
    )
    if not parser.parse_args().redraw:
        run = {
            "command": f"./dev python -m benchmarks.paper.{name}",
            "version": __version__,
            "source": source_digest(),
        }
        store({"run": run, **compute()}, path(name))
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"paper-{name}.svg").write_text(svg(draw, stored(name)), encoding="utf-8")
    note(f"drew paper-{name}.svg")


def written(axes: Axes, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """A label on the drawing itself, on a white patch so that lines under it do not hurt."""
    patch = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6}
    axes.text(x, y, text, color=colour, fontsize=7.5, bbox=patch, zorder=4, **options)
