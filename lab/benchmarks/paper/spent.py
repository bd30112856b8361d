"""Picture 4: how much of the privacy that is paid for is really spent, over many pairs of small
neighbours.

    ./dev python -m lab.benchmarks.paper.spent    three minutes

For each mechanism the smallest epsilon at which every audited pair satisfies (epsilon, delta) with
the delta it claims. Errors of the laws count against it, so what is found is spent for certain;
other data may spend more.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.paper.contenders import CONTENDERS, DELTA, PRICE, chosen
from lab.benchmarks.pictures import BLACK, WIDTH
from privmax.auditing import IMPOSSIBLE, Chance, Laws, LawTable, Scores
from privmax.mechanisms.contract import Mechanism

EPSILONS = ("0.5", "1", "2")
ALL, ITEM = "all", "item"
"""What is looked at: everything that the price pays for, or the item alone."""

WITH_EXTRAS = ("large-margin", "large-margin-truncated", "sharp-margin", "sharp-margin-dyadic")
"""Those that release more than the item."""


def spent(left: LawTable, right: LawTable, delta: float, least: float = 0.0) -> float:
    """The smallest epsilon at which `left` over `right` needs no more than delta, or `least` if
    that is larger.
    """
    here = np.array([chance.low for chance in left.chances.values()])
    there = np.array([right.chances.get(outcome, IMPOSSIBLE).high for outcome in left.chances])
    if not delta:
        ratios = np.log(here[here > 0] / there[here > 0])
        return max(least, float(ratios.max(initial=0.0)))

    def needed(epsilon: float) -> float:
        factor = math.exp(epsilon)
        return float(np.maximum(0.0, here - factor * there).sum()) - factor * right.left_out

    if needed(least) <= delta:
        return least
    low, high = least, least + 1
    while needed(high) > delta:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > delta else (low, middle)
    return low


def item_only(table: LawTable) -> LawTable:
    """The law of the item, without what is released beside it."""
    chances: dict[Hashable, Chance] = {}
    for outcome, chance in table.chances.items():
        item = cast(tuple[Hashable, Hashable], outcome)[
            1
        ]  # the first is what is released beside it
        before = chances.get(item, IMPOSSIBLE)
        chances[item] = Chance(*map(sum, zip(before, chance, strict=True)))
    return replace(table, chances=chances)


def starts(mechanism: Mechanism, epsilon: str) -> list[Scores]:
    """Small data, and data around the lead at which the mechanism begins to answer. Lengths scale
    as 1/epsilon.
    """

    def records(number: int) -> int:
        return round(number / Fraction(epsilon))

    few: list[Scores] = list(combinations_with_replacement(range(2, -1, -1), 3))
    few += [(records(gap), 0) for gap in (2, 4, 8, 16, 24, 32, 40, 48)]
    few += [(records(32), records(32), 0), (records(32), records(16), 0)]
    if not mechanism.privacy().delta:
        return few
    answers = mechanism.lead(candidates=None, success="0.5")
    around = [answers + records(away) for away in (-24, -16, -8, -4, -2, 0, 2, 4, 8, 16, 24)]
    few += [(gap, 0) for gap in around if gap > 0]
    behind = [
        (gap, gap - records(back), 0)
        for gap in (answers, answers + records(24))
        for back in (0, 8, 16, 24, 32)
    ]
    return few + [scores for scores in behind if min(scores) >= 0]


def pairs(start: Scores, *, is_open: bool) -> Iterator[tuple[Scores, Scores]]:
    """A data set and every neighbour in which all scores move, each way round; in an open universe
    none below 0.
    """
    for move in product(*[(0, 1) if is_open and not score else (-1, 1) for score in start]):
        other = tuple(score + step for score, step in zip(start, move, strict=True))
        yield from ((start, other), (other, start))


def audited(name: str, epsilon: str) -> list[dict[str, Any]]:
    """What a mechanism spends at `epsilon`, where, and over how many pairs."""
    contender = CONTENDERS[name]
    paper = name.startswith("large-margin")
    mechanism = contender.at(near=1, epsilon=epsilon)
    delta = float(mechanism.privacy().delta)
    views = (ALL, ITEM) if name in WITH_EXTRAS else (ALL,)
    worst: dict[str, tuple[float, Any]] = dict.fromkeys(views, (0.0, None))
    count = 0
    # A pure mechanism has no open universe; the paper's joint law would have to go up to its cap
    # there.
    for is_open in (False,) if contender.pure or paper else (False, True):
        laws = Laws(mechanism, is_open, 1)
        for start in starts(mechanism, epsilon):
            for here, there in pairs(start, is_open=is_open):
                count += 1
                tables = laws.of(here), laws.of(there)
                for view in views:
                    left, right = tables if view == ALL else map(item_only, tables)
                    most = spent(left, right, delta, worst[view][0])
                    if most > worst[view][0]:
                        worst[view] = most, ["open" if is_open else "closed", here, there]
    return [
        {
            "contender": name,
            "epsilon": epsilon,
            "view": view,
            "spent": most,
            "pairs": count,
            "worst": pair,
        }
        for view, (most, pair) in worst.items()
    ]


def compute(options: argparse.Namespace) -> Rows:
    rows: list[Row] = []
    for name, epsilon in product(chosen(options), EPSILONS):
        note(f"spent: {name} at {epsilon}")
        rows += audited(name, epsilon)
    return {"spent": rows}


def draw(result: Row) -> Figure:
    figure = Figure(figsize=(WIDTH, 4.9))
    axes = figure.subplots()
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for row in result["spent"]:
        shares.setdefault((row["contender"], row["view"]), {})[row["epsilon"]] = row[
            "spent"
        ] / float(row["epsilon"])
    labels = []
    for place, ((name, view), share) in enumerate(shares.items()):
        shown = CONTENDERS[name]
        axes.barh(
            place, share["1"], height=0.68, color=shown.colour, alpha=0.9 if view == ALL else 0.45
        )
        axes.plot(
            [share["0.5"], share["2"]],
            [place, place],
            marker="|",
            markersize=9,
            linestyle="none",
            color=BLACK,
        )
        inside = share["1"] > 0.9
        axes.text(
            share["1"] + (-0.015 if inside else 0.015),
            place,
            f"{share['1']:.2f}",
            fontsize=7.5,
            va="center_baseline",
            ha="right" if inside else "left",
            color="white" if inside and view == ALL else BLACK,
        )
        extra = (
            {ALL: ", all it releases", ITEM: ", its item alone"}[view]
            if name in WITH_EXTRAS
            else ""
        )
        labels.append(shown.label.replace(", told ℓ", "") + extra)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xticks([0, 1 / 3, 2 / 3, 1], ["0", "⅓", "⅔", "all of it"])
    axes.axvline(1, color=BLACK, linewidth=1)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        "share of the paid ε that is seen to be spent (bars: ε = 1; ticks: ε = 0.5 and 2)"
    )
    return figure


if __name__ == "__main__":
    Benchmark(
        "paper-spent",
        "paper.spent",
        {"all": compute},
        settings={"delta": DELTA, "neighbors": PRICE["neighbors"], "epsilons": EPSILONS},
    ).main()
