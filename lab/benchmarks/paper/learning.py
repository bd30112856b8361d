"""Excess error against the number of examples, and what theory promises, for
lab/learning-results.md.

    ./dev python -m lab.benchmarks.paper.learning    four minutes

Two classes of 10^12 hypotheses, known by their true errors: a ladder that comes down to the best in
halves, with ten hypotheses on every rung and a crowd at the far end, or with half as many on a rung
that is half as far. Hypotheses are right or wrong independently of each other, so the correct
examples of a whole rung are one multinomial draw. The law of a mechanism on that sample is exact:
nothing but the sample is random. A mechanism that releases nothing is taken to answer with a
hypothesis at random.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import binom

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.pictures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, WIDTH
from privmax import Exponential, LargeMargin, NestedMargin, PermuteAndFlip, Profile
from privmax.learning.bounds import Shells, exponential_excess, shell_excess, uniform_deviation
from privmax.mechanisms.contract import Mechanism
from privmax.privacy import REPLACE

PRICE: Final[dict[str, Any]] = {"epsilon": "0.1", "neighbors": REPLACE}
DELTA: Final = "1e-6"
SUCCESS: Final = "0.95"
HYPOTHESES: Final = 10**12
BEST, WORST = Fraction(1, 10), Fraction(1, 2)
RUNGS: Final = 18
CLASSES: Final = ("few", "many")
ON_A_RUNG: Final = 10
"""Hypotheses, where few are near the best."""

SIZES: Final = [round(10 ** (2 + step / 6)) for step in range(25)]
SAMPLES: Final = 10

MECHANISMS: Final[dict[str, Mechanism]] = {
    "exponential": Exponential(**PRICE),
    "permute-and-flip": PermuteAndFlip(**PRICE),
    "large-margin": LargeMargin(**PRICE, delta=DELTA),
    "nested-margin": NestedMargin(**PRICE, delta=DELTA),
}

Rung = tuple[Fraction, int]
Sample = dict[int, tuple[int, float]]
"""For each number of correct examples: how many hypotheses have it, and the sum of how much worse
than the best they truly are."""


def ladder(name: str) -> list[Rung]:
    """(true error, how many hypotheses), the best one first."""
    rungs = [(BEST, 1)]
    for rung in range(RUNGS, 0, -1):
        rungs.append(
            (BEST + (WORST - BEST) / 2**rung, ON_A_RUNG if name == "few" else HYPOTHESES >> rung)
        )
    return [*rungs, (WORST, HYPOTHESES - sum(count for _, count in rungs))]


def sample(name: str, n: int, number: int) -> Sample:
    """The correct examples of every hypothesis on the `number`-th sample of n."""
    rng = np.random.default_rng([CLASSES.index(name), n, number])
    found: Sample = {}
    for error, count in ladder(name):
        right = 1 - float(error)
        reach = (
            12 * math.sqrt(n * right * (1 - right)) + 1
        )  # beyond it nobody of 10^12 is ever seen
        scores = np.arange(
            max(0, math.floor(n * right - reach)), min(n, math.ceil(n * right + reach)) + 1
        )
        chances = binom.pmf(scores, n, right)
        drawn = rng.multinomial(count, chances / chances.sum())
        for place in np.flatnonzero(drawn):
            score, here = int(scores[place]), int(drawn[place])
            before, worse = found.get(score, (0, 0.0))
            found[score] = before + here, worse + here * float(error - BEST)
    return found


def measured(mechanism: Mechanism | None, seen: Sample) -> float:
    """The expected excess of the true error of what is drawn; without a mechanism, of the best on
    the sample.
    """
    if mechanism is None:
        count, worse = seen[max(seen)]
        return worse / count
    law = mechanism.law(
        Profile([(score, count) for score, (count, _) in seen.items()], universe=HYPOTHESES)
    )
    everybody = sum(worse for _, worse in seen.values()) / HYPOTHESES
    expected = law.none * everybody
    for score, _, chance in law.blocks:
        if score == law.floor:
            rest = [at for level, at in seen.items() if level <= score]
            count, worse = sum(count for count, _ in rest), sum(worse for _, worse in rest)
        else:
            count, worse = seen[score]
        expected += chance * worse / count
    return expected


def bound(contender: str, name: str, n: int) -> tuple[float | None, str]:
    """What theory promises, and by what; None where it is nothing. The exponential learner's is the
    generic one.
    """
    if contender == "exponential":
        found = exponential_excess(n=n, hypotheses=HYPOTHESES, **PRICE, success=SUCCESS)
        return (found, "class") if found < 1 else (None, "nothing")
    promise = shell_excess(
        Shells(ladder(name)), n=n, mechanism=MECHANISMS[contender], success=SUCCESS
    )
    return (None if promise.by == "nothing" else promise.excess), promise.by


def curve(name: str, contender: str, excesses: Sequence[Sequence[float]]) -> dict[str, Any]:
    """A line of the stored result: the mean, least and most over the samples of every size."""
    row: dict[str, Any] = {
        "class": name,
        "contender": contender,
        "mean": [float(np.mean(each)) for each in excesses],
        "least": [min(each) for each in excesses],
        "most": [max(each) for each in excesses],
    }
    if contender in MECHANISMS:
        bounds = [bound(contender, name, n) for n in SIZES]
        row |= {"bound": [found for found, _ in bounds], "by": [by for _, by in bounds]}
    return row


def compute(options: argparse.Namespace) -> Rows:
    curves: list[Row] = []
    for name in CLASSES:
        excesses: dict[str, list[list[float]]] = {
            contender: [] for contender in ("best on sample", *MECHANISMS)
        }
        for n in SIZES:
            note(f"{name}: {n} examples")
            samples = [sample(name, n, number) for number in range(1 if options.quick else SAMPLES)]
            for contender, lists in excesses.items():
                lists.append([measured(MECHANISMS.get(contender), seen) for seen in samples])
        curves += [curve(name, contender, lists) for contender, lists in excesses.items()]
    return {"curves": curves}


def settings() -> Row:
    failure = (1 - Fraction(SUCCESS)) / 2
    return {
        **PRICE,
        "delta": DELTA,
        "success": SUCCESS,
        "hypotheses": HYPOTHESES,
        "samples": SAMPLES,
        "n": SIZES,
        "sampling": [
            2 * uniform_deviation(n=n, hypotheses=HYPOTHESES, failure=failure) for n in SIZES
        ],
        "classes": {name: [[float(error), n] for error, n in ladder(name)] for name in CLASSES},
    }


LINES: Final[dict[str, tuple[str, str, float]]] = {
    "best on sample": ("best on the sample", GREY, 1.2),
    "exponential": ("exponential", ORANGE, 2.6),
    "permute-and-flip": ("permute-and-flip", GREEN, 1.2),
    "large-margin": ("the paper's", BLUE, 1.4),
    "nested-margin": ("nested margin (sharp)", RED, 1.4),
}
TITLES: Final = {"few": "few hypotheses near the best", "many": "many hypotheses near the best"}


def draw(result: Row) -> Figure:
    figure = Figure(figsize=(WIDTH, 4.2))
    panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
    n = result["settings"]["n"]
    for axes, name in zip(panels, CLASSES, strict=True):
        for row in (row for row in result["curves"] if row["class"] == name):
            _, colour, width = LINES[row["contender"]]
            axes.plot(n, row["mean"], color=colour, linewidth=width, zorder=4 - width / 2)
            axes.fill_between(n, row["least"], row["most"], color=colour, alpha=0.15, linewidth=0)
            if "bound" in row:
                axes.plot(
                    n, [math.nan if value is None else value for value in row["bound"]],
                    color=colour, linewidth=width, linestyle=(0, (4, 2)), zorder=4 - width / 2,
                )  # fmt: skip
        axes.plot(n, result["settings"]["sampling"], color=BLACK, linewidth=1, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(n[0], n[-1])
        axes.set_ylim(1e-5, 1)
        axes.set_xlabel("examples, n")
        axes.set_title(TITLES[name])
    panels[0].set_ylabel("excess error")
    names = [
        Line2D([], [], color=colour, linewidth=width, label=label)
        for label, colour, width in LINES.values()
    ] + [
        Line2D([], [], color=BLACK, linewidth=1.2, linestyle=(0, (4, 2)), label="bounds, 95 %"),
        Line2D([], [], color=BLACK, linewidth=1, linestyle=":", label="2u, for the sample"),
    ]
    figure.legend(handles=names, loc="outside upper center", ncols=4, frameon=False)
    return figure


if __name__ == "__main__":
    Benchmark("paper-learning", "paper.learning", {"all": compute}, settings=settings()).main()
