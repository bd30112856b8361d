"""Picture 2: the lead needed as the number of near maximizers grows, in an open universe and in a
closed one.

./dev python -m lab.benchmarks.paper.near    two minutes
"""

from __future__ import annotations

import argparse
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.benchmarks.harness import RESULTS, Benchmark, Row, Rows, note, stored
from lab.benchmarks.paper.contenders import CONTENDERS, PRICE, chosen
from lab.benchmarks.pictures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, WIDTH, label
from privmax import crossover
from privmax.planning.lower_bounds import least_lead
from privmax.planning.theory import large_margin_lead

UNIVERSES: dict[str, int | None] = {"open": None, "closed": 10**12}
NEARS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1024, 1025, 2000, 5000, 10**4, 10**5, 10**6)
"""With 1024 and 1025, between which the default guards of the sharp margin mechanism give out."""
SUCCESS = 0.95

CROSSING = ("large-margin", "sharp-margin", "nested-margin", "limited-domain")
"""Those for which the size of a closed universe is found from which they need a smaller lead than
permute-and-flip.
"""


def lead(name: str, universe: str, near: int) -> int | None:
    """Records needed to draw one of `near` with probability SUCCESS; None: the mechanism cannot
    serve that.
    """
    size = UNIVERSES[universe]
    if name == "limit":
        return least_lead(**PRICE, candidates=size, near=near, success=SUCCESS)
    if name == "theorem":
        price = {key: PRICE[key] for key in ("epsilon", "delta")}
        return large_margin_lead(**price, candidates=size, near=near, success=SUCCESS)
    contender = CONTENDERS[name]
    if (contender.pure and size is None) or (contender.single and near > 1):
        return None
    return contender.at(near=near).lead(candidates=size, near=near, success=SUCCESS)


def compute(options: argparse.Namespace) -> Rows:
    # The law of LMM-X, which is compared with and not shipped, stands in tests/exact/lmm_x.py.
    before = stored(RESULTS / "paper-near.json")["curves"]
    curves: list[Row] = [row for row in before if row["contender"] == "lmm-x"]
    for name in ("limit", "theorem", *chosen(options)):
        note(f"near: {name}")
        for universe in UNIVERSES:
            leads = {near: lead(name, universe, near) for near in NEARS}
            found = {near: records for near, records in leads.items() if records is not None}
            if found:
                row = {"contender": name, "universe": universe, "near": list(found)}
                curves.append({**row, "lead": list(found.values())})
    crossings: list[Row] = []
    flip = CONTENDERS["permute-and-flip"].at()
    for name in () if options.quick else CROSSING:
        note(f"near: where {name} overtakes permute-and-flip")
        size = crossover(flip, CONTENDERS[name].at(), success=SUCCESS)
        crossings.append({"contender": name, "universe": size})
    return {"curves": curves, "crossings": crossings}


OTHERS: dict[str, dict[str, Any]] = {
    "limit": {"color": BLACK, "linestyle": ":", "linewidth": 1.4},
    "theorem": {"color": BLUE, "linestyle": ":", "linewidth": 1.4},
    "lmm-x": {"color": BLUE, "linestyle": "-.", "linewidth": 1},
}


def draw(result: Row) -> Figure:
    figure = Figure(figsize=(WIDTH, 4.6))
    left, right = figure.subplots(1, len(UNIVERSES), sharey=True)
    for axes, universe in zip((left, right), UNIVERSES, strict=True):
        _panel(axes, [curve for curve in result["curves"] if curve["universe"] == universe])
    left.set_title("open universe: candidates not known in advance")
    right.set_title("closed universe of $10^{12}$ candidates")
    left.set_ylabel("lead needed for 95 %, in records")
    for axes in (left, right):
        label(axes, 1.2, 580, "the paper's theorem", BLUE, rotation=9)
        label(axes, 1.2, 108, "LMM-X", BLUE)
        label(axes, 1500, 186, "sharp margin", GREEN)
        label(axes, 2.5, 38.3, "nested margin", RED)
        label(axes, 10**6, 32.3, "limited domain, told ℓ", PURPLE, ha="right")
        label(axes, 10**6, 25.3, "limit of any mechanism", BLACK, ha="right")
        label(axes, 1.4, 25.3, "gap test, stable\nmaximum (ℓ = 1)", SKY, va="center")
    label(left, 1.2, 380, "the paper's mechanism", BLUE)
    label(right, 1.2, 195, "the paper's mechanism", BLUE)
    label(left, 6, 65, "dyadic sharp margin", GREEN)
    label(right, 10, 71, "dyadic sharp margin", GREEN)
    label(right, 1500, 49.5, "pure", ORANGE)
    return figure


def _panel(axes: Axes, curves: list[dict[str, Any]]) -> None:
    for curve in curves:
        name = curve["contender"]
        style = OTHERS[name] if name in OTHERS else CONTENDERS[name].style()
        if len(curve["near"]) == 1:
            style |= {"marker": "o", "markersize": 4, "linestyle": "none"}
        axes.plot(curve["near"], curve["lead"], **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(20, 1000)
    axes.set_xlabel("near maximizers, ℓ")
    axes.set_yticks([20, 50, 100, 200, 500, 1000])
    axes.set_yticklabels(["20", "50", "100", "200", "500", "1000"])
    axes.minorticks_off()


if __name__ == "__main__":
    Benchmark(
        "paper-near",
        "paper.near",
        {"all": compute},
        settings=PRICE | {"universes": UNIVERSES, "success": SUCCESS},
    ).main()
