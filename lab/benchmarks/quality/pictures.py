"""The pictures of lab/head-to-head.md, lab/itemsets-results.md, lab/learning-results.md and
lab/markers-results.md.

./dev python -m lab.benchmarks.pictures
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lab.benchmarks.harness import Row
from lab.benchmarks.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, WIDTH

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
PANELS: Final[dict[str, tuple[str, str]]] = {
    "NestedMargin": ("NestedMargin (auto)", RED),
    "LimitedDomain, rank 1000": ("LimitedDomain, rank 1000", ORANGE),
    "GapTest": ("GapTest", GREY),
    "LargeMargin": ("LargeMargin (the paper's)", BLUE),
}
NARROW = 5.2
"""Inches: text of eight points can be read on a phone, too."""
FEW = 0.01
"""Profiles on which nobody loses more than this part of the best count are left out."""


def head_to_head(result: Row) -> Figure:
    """What four mechanisms lose in an open universe, one panel each, on the profiles that are hard
    for one of them.
    """
    place = result["settings"]["prices"].index(SHOWN)
    best = {profile["name"]: profile["best"] for profile in result["profiles"]}
    lost: dict[str, dict[str, float]] = {name: {} for name in PANELS}
    for row in result["rows"]:
        if row["universe"] == "open" and row["mechanism"] in PANELS:
            part = row["cells"][place]["loss"] / best[row["profile"]]
            lost[row["mechanism"]][row["profile"]] = part
    hard = [name for name in best if max(parts[name] for parts in lost.values()) > FEW]
    figure = Figure(figsize=(NARROW, 6.0))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, (title, colour)) in zip(grid.flat, PANELS.items(), strict=True):
        _bars(axes, [lost[name][profile] for profile in hard], colour)
        axes.set_title(title, color=colour, fontweight="bold")
    short = [name.replace(" records", "") for name in hard]
    grid[0, 0].set_yticks(range(len(hard)), short)
    grid[0, 0].invert_yaxis()
    price = f"ε = {SHOWN[0]}, δ = {SHOWN[1]}, open universe"
    figure.suptitle(f"Share of the best count that is lost\n{price}", x=0.02, ha="left", size=9)
    figure.supxlabel(
        "Nothing released counts as 100 %. On the other "
        f"{len(best) - len(hard)} of {len(best)} profiles\nnone of the four loses more than 1 %.",
        x=0.02,
        ha="left",
        size=7.5,
    )
    return figure


def _bars(axes: Axes, parts: Sequence[float], colour: str) -> None:
    """A bar for each part, with its length in words where there is one to see."""
    axes.barh(range(len(parts)), parts, color=colour, height=0.62)
    for down, part in enumerate(parts):
        text = f"{100 * part:.0f} %" if part >= 0.005 else "0"
        inside = part > 0.6
        axes.text(
            part - 0.03 if inside else part + 0.03,
            down,
            text,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "#444444",
            size=7.5,
        )
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines["bottom"].set_visible(False)


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


# Markers

POWERS: Final[dict[str, Style]] = {
    "difference": ("difference", RED, "-", 2.0),
    "distance": ("distance", BLUE, "-", 1.4),
    "genotype-chi-square": ("χ² of genotypes", ORANGE, "-", 1.4),
    "chi-square": ("χ² of alleles", GREY, "--", 1.4),
}
FOUND: Final = {
    "difference, peeling (ours)": "difference",
    "distance, peeling": "distance",
    "χ² of genotypes, exponential": "genotype-chi-square",
    "χ² of alleles, peeling": "chi-square",
}


def markers_power(result: Row) -> Figure:
    """The chance of one causal marker, and the share of five, against epsilon."""
    figure = Figure(figsize=(WIDTH, 3.0))
    left, right = figure.subplots(1, 2, sharey=True)
    for name, style in POWERS.items():
        rows = [row for row in result["power"] if row["score"] == name]
        line(left, [float(row["epsilon"]) for row in rows], [row["chance"] for row in rows], style)
    study = result["recall"][0]["study"]
    for who, name in FOUND.items():
        rows = [row for row in result["recall"] if (row["study"], row["contender"]) == (study, who)]
        x, y = [float(row["epsilon"]) for row in rows], [row["causal"] for row in rows]
        line(right, x, y, POWERS[name], marker="o", markersize=3)
    left.set_title("One causal marker, one released: chance, by law")
    right.set_title("Five causal markers, five released: share")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("ε")
        axes.set_ylim(-0.04, 1.06)
        axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axes.minorticks_off()
    legend(figure, POWERS)
    return figure
