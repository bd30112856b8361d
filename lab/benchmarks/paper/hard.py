"""Picture 3: the data of the lower bound, on which everybody must fail half the time.

./dev python -m lab.benchmarks.paper.hard    less than a minute
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.paper.contenders import CONTENDERS, PRICE, chosen
from lab.benchmarks.pictures import BLACK, GREY, RED, WIDTH, label
from privmax import Profile
from privmax.planning.lower_bounds import (
    LowerBound,
    approximate_lower_bound,
    least_lead,
    success_limit,
)
from privmax.privacy import drift

RECORDS = 10_000
"""Of each data set, and how far behind the near maximizers everybody else stands."""

HALF = 0.5
SHADE = "#eeeeee"


def bound(error: int) -> LowerBound:
    """The theorem at the fewest near maximizers for which it says that `error` records must be
    lost.
    """
    rate = 2 * float(PRICE["epsilon"]) / drift(PRICE["neighbors"])
    found = approximate_lower_bound(
        **PRICE, near=1 + math.ceil(2 * math.exp(rate * error)), records=RECORDS
    )
    assert found.error == error
    return found


ERRORS = range(1, 12)
"""With 12 the theorem would need a smaller delta."""


def failure(name: str, near: int, lead: int) -> float:
    """Probability that the best, `lead` ahead of near − 1 others, is not drawn.

    For pure mechanisms nobody else is in the universe; for the others it is open.
    """
    if name == "limit":
        return 1 - success_limit(lead, **PRICE, candidates=near)
    contender = CONTENDERS[name]
    levels = [(RECORDS, 1), (RECORDS - lead, near - 1)] if lead else [(RECORDS, near)]
    law = contender.at(near=near).law(Profile(levels, universe=near if contender.pure else None))
    return 1 - law.best() * (1 if lead else 1 / near)


def half_lead(name: str, near: int) -> int:
    """The smallest lead over the other near maximizers with which the best is drawn half the
    time.
    """
    if name == "limit":
        return least_lead(**PRICE, candidates=near, success=HALF)
    high = 1
    while failure(name, near, high) > HALF:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if failure(name, near, middle) > HALF else (low, middle)
    return high


def compute(options: argparse.Namespace) -> Rows:
    bounds = [bound(error) for error in ERRORS]
    curves: list[Row] = []
    for name in ("limit", *chosen(options)):
        note(f"hard: {name}")
        failures = [failure(name, hard.near, hard.error) for hard in bounds]
        half = [half_lead(name, hard.near) for hard in bounds]
        curves.append({"contender": name, "failure": failures, "half": half})
    return {"curves": curves}


def settings() -> Row:
    near = [bound(error).near for error in ERRORS]
    return PRICE | {"records": RECORDS, "near": near, "error": list(ERRORS)}


LIMIT: dict[str, Any] = {"color": BLACK, "linestyle": ":", "linewidth": 1.4}


def draw(result: Row) -> Figure:
    figure = Figure(figsize=(WIDTH, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    near, error = result["settings"]["near"], result["settings"]["error"]
    for curve in result["curves"]:
        name = curve["contender"]
        style = LIMIT if name == "limit" else CONTENDERS[name].style()
        left.plot(near, curve["failure"], **style)
        right.plot(near, curve["half"], **style)
    right.fill_between(near, 0, error, color=SHADE)
    left.axhspan(0, HALF, color=SHADE)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(near[0], near[-1])
        axes.set_xlabel("near maximizers, ℓ")
    left.set_title("failures at the theorem's lead")
    left.set_ylim(0, 1.04)
    left.set_ylabel("probability of not drawing the best")
    right.set_title("lead that draws the best half the time, in records")
    right.set_ylim(0, 75)
    left.text(900, 0.25, "impossible:\nthe paper's theorem", color=GREY, ha="center", va="center")
    label(left, 9, 0.63, "limit of any mechanism", BLACK, va="center")
    label(left, near[-1], 0.95, "all mechanisms", BLACK, ha="right", va="top")
    _ends(right, near[-1] * 1.25)
    return figure


def _ends(axes: Axes, x: float) -> None:
    """The names of the lines at their right ends, as far apart as they need to be read."""
    for name, height in (
        ("large-margin", 71.2),
        ("large-margin-truncated", 67.8),
        ("sharp-margin-dyadic", 33),
        ("stable-maximum", 29.9),
        ("gap-test", 26.9),
        ("sharp-margin", 23.9),
        ("permute-and-flip", 17.9),
    ):
        label(axes, x, height, CONTENDERS[name].label, CONTENDERS[name].colour, va="center")
    label(axes, x, 20.9, "nested margin", RED, va="center")
    label(axes, x, 14.7, "limit of any", BLACK, va="center")
    label(axes, x, 9, "the paper's theorem:\nimpossible below", GREY, va="center")


if __name__ == "__main__":
    Benchmark("paper-hard", "paper.hard", {"all": compute}, settings=settings()).main()
