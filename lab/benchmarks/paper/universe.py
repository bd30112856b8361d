"""Picture 1: how often the best is drawn as the universe grows, at one lead of the winner.

./dev python -m lab.benchmarks.paper.universe    two minutes
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.paper.contenders import CONTENDERS, DELTA, PRICE, chosen
from lab.benchmarks.pictures import BLACK, GREY, WIDTH, label
from privmax import Profile
from privmax.planning.lower_bounds import success_limit
from privmax.privacy import drift

LEADS, NEARS = (44, 500), (1, 10)
LARGEST = 1000
"""Bits of the largest universe."""

EDGE = 2400
"""Where "open" stands on the axis of bits."""

DIGITS = 12
"""Decimals that are kept of a probability."""

LIMITS: dict[str, dict[str, Any]] = {
    "limit": {"color": BLACK, "linestyle": ":", "linewidth": 1.4},
    "limit-pure": {"color": GREY, "linestyle": ":", "linewidth": 1.4},
}
"""What no mechanism can exceed at the price, and at its epsilon with a delta of 0."""

Case = tuple[int, int]
"""A lead, and how many near maximizers have it."""

CASES: list[Case] = list(product(LEADS, NEARS))


def sizes(*, pure: bool) -> list[int]:
    """The universes, as powers of two: every one up to 2^40, then ever sparser, but dense where
    pure ones fall.
    """
    bits = list(range(4, 41))
    while bits[-1] < LARGEST:
        bits.append(min(LARGEST, bits[-1] * 5 // 4))
    falls = [round(lead / drift(PRICE["neighbors"]) / math.log(2)) for lead in LEADS]
    return sorted({*bits, *(fall + away for fall in falls for away in range(-12, 13, 2) if pure)})


def chance(name: str, bits: int | None, case: Case) -> float | None:
    """Probability that one of the best is drawn from 2^bits candidates; None: the mechanism cannot
    serve that.
    """
    lead, near = case
    universe = None if bits is None else 1 << bits
    if name in LIMITS:
        delta = DELTA if name == "limit" else 0
        return round(
            success_limit(lead, **(PRICE | {"delta": delta}), candidates=universe, near=near),
            DIGITS,
        )
    contender = CONTENDERS[name]
    if contender.pure and bits is None:
        return None
    return round(
        contender.at(near=near).law(Profile([(lead, near)], universe=universe)).best(), DIGITS
    )


def compute(options: argparse.Namespace) -> Rows:
    curves: list[Row] = []
    for name in (*LIMITS, *chosen(options)):
        note(f"universe: {name}")
        bits = sizes(pure=name == "limit-pure" or (name in CONTENDERS and CONTENDERS[name].pure))
        # All cases of one universe together: the paper's thresholds for it are worked out once.
        chances = [[chance(name, size, case) for case in CASES] for size in [*bits, None]]
        curves += [
            {
                "contender": name,
                "lead": lead,
                "near": near,
                "bits": bits,
                "chance": column[:-1],
                "open": column[-1],
            }
            for (lead, near), column in zip(CASES, zip(*chances, strict=True), strict=True)
        ]
    return {"curves": curves}


def draw(result: Row) -> Figure:
    figure = Figure(figsize=(WIDTH, 5.8))
    grid = figure.subplots(len(LEADS), len(NEARS), sharex=True, sharey=True)
    for axes, (lead, near) in zip(grid.flat, CASES, strict=True):
        _panel(
            axes,
            [curve for curve in result["curves"] if (curve["lead"], curve["near"]) == (lead, near)],
        )
        axes.set_title(
            f"{'one winner leads' if near == 1 else f'{near} tied for the top lead'} by {lead} "
            f"records"
        )
    for axes in grid[:, 0]:
        axes.set_ylabel("probability of drawing the best")
    for axes in grid[-1]:
        axes.set_xlabel("candidates in the universe")
    for axes, near in zip(grid[0], NEARS, strict=True):
        _labels(axes, near)
    for axes, near in zip(grid[1], NEARS, strict=True):
        everyone = "the paper's, and all others with a delta" + (
            "" if near == 1 else ",\nbut for the two below"
        )
        label(axes, 4.5, 0.96, everyone, CONTENDERS["large-margin"].colour, va="top")
        label(axes, 320, 0.5, "pure mechanisms", CONTENDERS["permute-and-flip"].colour, ha="right")
    label(grid[1][1], 4.5, 0.03, "gap test, stable maximum", CONTENDERS["gap-test"].colour)
    return figure


def _labels(axes: Axes, near: int) -> None:
    """The names of the curves, where the lead is small enough to tell them apart."""
    heights = {1: (0.9, 0.59, 0.22), 10: (0.9, 0.21, 0.63)}[near]
    for name, height in zip(
        ("nested-margin", "sharp-margin-dyadic", "sharp-margin"), heights, strict=True
    ):
        shown = CONTENDERS[name]
        label(axes, 1000, height, shown.label, shown.colour, ha="right")
    label(axes, 4.5, 0.45, "the paper's", CONTENDERS["large-margin"].colour)
    pure = "pure: permute-and-flip,\nexponential, max of Laplaces"
    label(axes, {1: 37, 10: 44}[near], 0.36, pure, CONTENDERS["exponential"].colour)
    at_the_top = "limit of any mechanism; limited domain told ℓ" + (
        "; gap test" if near == 1 else ""
    )
    label(axes, 4.5, 1.04, at_the_top, BLACK)
    if near > 1:
        label(
            axes, 1000, 0.03, "gap test, stable maximum", CONTENDERS["gap-test"].colour, ha="right"
        )


def _panel(axes: Axes, curves: list[dict[str, Any]]) -> None:
    for curve in curves:
        name = curve["contender"]
        style = LIMITS[name] if name in LIMITS else CONTENDERS[name].style()
        axes.plot(curve["bits"], curve["chance"], **style)
        if curve["open"] is not None and name not in LIMITS:
            axes.plot(
                [EDGE],
                [curve["open"]],
                marker="o",
                markersize=4,
                color=style["color"],
                clip_on=False,
            )
    axes.set_xscale("log")
    axes.set_xlim(4, 2800)
    axes.set_ylim(-0.03, 1.12)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    powers = [2, 4, 10, 30, 100, 300]
    axes.set_xticks([*(power * math.log2(10) for power in powers), EDGE])
    axes.set_xticklabels([*(f"$10^{{{power}}}$" for power in powers), "open"])
    axes.minorticks_off()


if __name__ == "__main__":
    Benchmark(
        "paper-universe",
        "paper.universe",
        {"all": compute},
        settings=PRICE | {"leads": LEADS, "near": NEARS},
    ).main()
