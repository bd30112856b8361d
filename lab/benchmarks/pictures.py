"""The pictures of the pages, drawn from stored results, whose digests they hold.

    ./dev python -m lab.benchmarks.pictures [NAME]     draw all again, or those of one result

A benchmark draws its own when it has stored its result; `lab.benchmarks.tables --check` finds those
that were drawn from other numbers.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.benchmarks.harness import RESULTS, note, stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]

DRAWINGS = {
    "docs/pictures/head-to-head.svg": ("head-to-head", "quality.pictures", "head_to_head"),
    "lab/pictures/itemsets-universe.svg": (
        "itemset-quality",
        "quality.pictures",
        "itemset_universe",
    ),
    "lab/pictures/itemsets-lists.svg": ("itemset-quality", "quality.pictures", "itemset_lists"),
    "lab/pictures/learning-accuracy.png": ("learning", "quality.pictures", "learning_accuracy"),
    "lab/pictures/learning-curves.png": ("paper-learning", "paper.learning", "draw"),
    "docs/pictures/markers-power.svg": ("markers", "quality.pictures", "markers_power"),
    "docs/pictures/paper-universe.svg": ("paper-universe", "paper.universe", "draw"),
    "docs/pictures/paper-near.svg": ("paper-near", "paper.near", "draw"),
    "docs/pictures/paper-hard.svg": ("paper-hard", "paper.hard", "draw"),
    "docs/pictures/paper-spent.svg": ("paper-spent", "paper.spent", "draw"),
}
"""By file: the result, and the function of a module of lab.benchmarks that makes a figure of it."""

# Colours that stay apart for the colour-blind (Okabe & Ito).
BLACK, GREY, BLUE, SKY = "#000000", "#777777", "#0072b2", "#3d9bd0"
GREEN, RED, PURPLE, ORANGE = "#009e73", "#d55e00", "#aa4499", "#c98500"

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


def digest(name: str) -> str:
    """What a picture of a stored result says of it."""
    return f"result {hashlib.sha256((RESULTS / f'{name}.json').read_bytes()).hexdigest()[:12]}"


def stale() -> list[str]:
    """The pictures that were not drawn from what is stored."""
    return [
        file
        for file, (name, _, _) in DRAWINGS.items()
        if not (ROOT / file).is_file() or digest(name).encode() not in (ROOT / file).read_bytes()
    ]


def draw(name: str) -> None:
    """Draw all pictures of a stored result."""
    for file, (result, module, function) in DRAWINGS.items():
        if result == name:
            import matplotlib as mpl

            make = getattr(importlib.import_module(f"lab.benchmarks.{module}"), function)
            with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
                figure = make(stored(RESULTS / f"{name}.json"))
                vector = {"Date": None, "Creator": None} if file.endswith(".svg") else {}
                about = {**vector, "Description": digest(name)}
                if not vector:
                    about["Software"] = None
                figure.savefig(ROOT / file, dpi=150, metadata=about)
            if vector:
                lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
                text = "\n".join(line.rstrip() for line in lines) + "\n"
                (ROOT / file).write_text(text, encoding="utf-8")
            note(f"drew {file}")


def label(axes: Axes, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """Text on the drawing itself, on a white patch so that lines under it do not hurt."""
    patch = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6}
    axes.text(x, y, text, color=colour, fontsize=7.5, bbox=patch, zorder=4, **options)


if __name__ == "__main__":
    for one in sys.argv[1:] or dict.fromkeys(name for name, _, _ in DRAWINGS.values()):
        draw(one)
