"""The pictures of docs/head-to-head.md, docs/itemsets-results.md and docs/learning-results.md.

./dev python -m benchmarks.pictures
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.harness import Row
from benchmarks.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, WIDTH

Style = tuple[str, str, Any, float]
"""Label, colour, dashes and width of a line."""


def legend(figure: Figure, styles: Mapping[str, Style]) -> None:
    """The names of the lines above all panels."""
    names = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=width, label=text)
        for text, colour, dashes, width in styles.values()
    ]
    figure.legend(handles=names, loc="outside upper center", ncols=3, frameon=False)


def line(axes: Axes, x: Sequence[float], y: Sequence[float], style: Style, **more: Any) -> None:
    _, colour, dashes, width = style
    look = {"color": colour, "linestyle": dashes, "linewidth": width, "zorder": 2 + width / 10}
    axes.errorbar(x, y, **look, **more)


# Head to head

SHOWN = ["1", "1e-6"]


def head_to_head(result: Row) -> Figure:
    """What mechanisms lose on profiles. Darker is worse: from a thousandth to all of it."""
    place = result["settings"]["prices"].index(SHOWN)
    profiles = result["profiles"]
    losses = {
        (row["mechanism"], row["universe"], row["profile"]): row["cells"][place]["loss"]
        for row in result["rows"]
    }
    lines = list(dict.fromkeys((mechanism, universe) for mechanism, universe, _ in losses))
    parts = [
        [losses[*row, profile["name"]] / profile["best"] for profile in profiles] for row in lines
    ]
    figure = Figure(figsize=(11, 6.6))
    axes = figure.subplots()
    clipped = [[max(part, 1e-3) for part in row] for row in parts]
    shades = axes.imshow(clipped, norm=LogNorm(1e-3, 1), cmap="Blues", aspect="auto")
    for down, row in enumerate(parts):
        for across, part in enumerate(row):
            if part >= 5e-4:
                text = (f"{part:.3f}" if part < 0.01 else f"{part:.2f}").lstrip("0")
                colour = "white" if part > 0.06 else "black"
                axes.text(across, down, text, ha="center", va="center", size=6.5, color=colour)
    names = [profile["name"] for profile in profiles]
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    known = {"open": "open", "natural": "known items", "10^12": "10^12 known items"}
    axes.set_yticks(range(len(lines)), [f"{who} ({known[universe]})" for who, universe in lines])
    axes.set_xticks([across - 0.5 for across in range(1, len(profiles))], minor=True)
    axes.set_yticks([down - 0.5 for down in range(1, len(lines))], minor=True)
    axes.grid(visible=False)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    price = f"ε = {SHOWN[0]}, δ = {SHOWN[1]}"
    axes.set_title(f"Part of the best count lost, no answer counted as all of it ({price})")
    figure.colorbar(shades, ax=axes, pad=0.01, shrink=0.6)
    return figure


# Itemsets

K = 50
"""Itemsets asked for, in the picture of F1."""

PAIRS: Final[dict[str, Style]] = {
    "nested-margin": ("nested margin, no list of items", RED, "-", 2.0),
    "large-margin": ("the paper's, no list of items", BLUE, "-", 1.4),
    "permute-and-flip": ("permute-and-flip", ORANGE, "-", 1.2),
    "exponential": ("exponential", ORANGE, "--", 1.2),
    "max-of-laplaces": ("max of Laplaces", ORANGE, ":", 1.2),
    "blst10": ("BLST10", GREY, "-", 1.2),
}
LISTS: Final[dict[str, Style]] = {
    "set-margin": ("set margin, no list of items", RED, "-", 2.0),
    "sharp-margin": ("sharp margin, in order", RED, ":", 1.2),
    "exponential": ("exponential, up to 3 declared items", ORANGE, "-", 1.2),
    "priv-basis": ("PrivBasis", BLUE, "-", 1.4),
    "smart-trunc": ("SmartTrunc", GREEN, "-", 1.2),
    "prefix-tree": ("prefix tree", PURPLE, "-", 1.2),
    "diff-part": ("DiffPart", SKY, "--", 1.2),
}


def itemset_universe(result: Row) -> Figure:
    """Probability of the best pair against the number of items declared."""
    figure, grid = _panels(result, PAIRS, "items declared", "probability of the best pair")
    for name, axes in grid.items():
        rows = [row for row in result["universe"] if row["set"] == name]
        largest = max(math.log10(row["items"][-1]) for row in rows if row["items"])
        for row in rows:
            if row["items"]:
                powers = [math.log10(number) for number in row["items"]]
                line(axes, powers, row["chance"], PAIRS[row["contender"]], clip_on=False)
            elif row["contender"] in PAIRS:  # nothing is declared: the same wherever one looks
                line(axes, [0, largest], row["chance"] * 2, PAIRS[row["contender"]], clip_on=False)
        axes.set_xlim(0, largest)
        powers_shown = range(0, int(largest) + 1, 20)
        axes.set_xticks(list(powers_shown), [f"$10^{{{power}}}$" for power in powers_shown])
    return figure


def itemset_lists(result: Row) -> Figure:
    """F1 of the best K of all sizes against epsilon."""
    figure, grid = _panels(result, LISTS, "ε", f"F1 of the best {K}")
    for name, axes in grid.items():
        for contender, style in LISTS.items():
            cells = {
                float(row["epsilon"]): row["f1"]
                for row in result["lists"]
                if (row["set"], row["sizes"], row["k"]) == (name, "any", K)
                and row["contender"] == contender
            }
            line(axes, list(cells), list(cells.values()), style, marker="o", markersize=3)
        axes.set_xlim(0, 1.05)
        axes.set_xticks([0.1, 0.5, 1], ["0.1", "0.5", "1"])
    return figure


def _panels(
    result: Row, styles: Mapping[str, Style], below: str, beside: str
) -> tuple[Figure, dict[str, Axes]]:
    """A panel a set."""
    figure = Figure(figsize=(WIDTH, 4.6))
    names = [row["set"] for row in result["sets"]]
    grid: dict[str, Axes] = dict(zip(names, figure.subplots(2, 3, sharey=True).flat, strict=True))
    for place, (name, axes) in enumerate(grid.items()):
        axes.set_title(name.replace("_", " "))
        axes.set_ylim(-0.04, 1.06)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel(below if place >= 3 else "")
        axes.set_ylabel("" if place % 3 else beside)
    legend(figure, styles)
    return figure, grid


# Learning

SETS: Final = {
    "breast-cancer": "breast cancer",
    "digits": "digits, one against the rest",
    "wine": "wine",
}
LEARNERS: Final[dict[str, Style]] = {
    "GaussianNB": ("diffprivlib GaussianNB", BLUE, "-", 1.2),
    "LogisticRegression": ("diffprivlib LogisticRegression", SKY, "-", 1.2),
    "DecisionTreeClassifier": ("diffprivlib DecisionTree", GREEN, "--", 1.2),
    "RandomForestClassifier": ("diffprivlib RandomForest", GREEN, "-", 1.2),
    "LinearGrid/auto": ("PrivateERM: half-spaces", PURPLE, "-", 1.6),
    "planned/exponential": ("exponential, same classes", ORANGE, "--", 1.4),
    "planned/auto-replace": ("as planned, replace", RED, ":", 1.4),
    "planned/auto": ("PrivateERM: as planned", RED, "-", 2.2),
}
LEVELS: Final[dict[str, Style]] = {
    "Trees/best": ("best tree, not private", "#444444", (0, (4, 2)), 1.0),
    "-/majority": ("majority label, not private", GREY, (0, (1, 2)), 1.0),
}


def learning_accuracy(result: Row) -> Figure:
    """Accuracy against epsilon, with bars of one standard error; a panel a set."""
    epsilons = result["settings"]["epsilons"]
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for row in (*result["accuracy"], *result["peers"]):
        ours = f"{row.get('class')}/{row['contender']}"
        who = row["contender"].removeprefix("diffprivlib ") if "class" not in row else ours
        found[row["group"], who, row["epsilon"]] = row["accuracy"], row["error"]
    figure = Figure(figsize=(WIDTH, 3.5))
    for axes, (group, title) in zip(figure.subplots(1, len(SETS)), SETS.items(), strict=True):
        for who, style in LEARNERS.items():
            if (group, who, epsilons[0]) in found:
                means, errors = zip(*[found[group, who, one] for one in epsilons], strict=True)
                places = range(len(epsilons))
                bars = {"elinewidth": 0.7, "marker": "o", "markersize": 2.5}
                line(axes, places, means, style, yerr=errors, **bars)
        for who, (_, colour, dashes, width) in LEVELS.items():
            level = found[group, who, "-"][0]
            axes.axhline(level, color=colour, linestyle=dashes, linewidth=width, zorder=1.5)
        axes.set_title(title)
        axes.set_xticks(range(len(epsilons)), epsilons)
        axes.set_xlabel("ε")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    figure.axes[0].set_ylabel("accuracy on examples not learned from")
    legend(figure, {**LEARNERS, **LEVELS})
    return figure
