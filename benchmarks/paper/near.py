"""Picture 2: the lead needed as the number of near maximizers grows, in an open universe and in a
closed one.

./dev python -m benchmarks.paper.near    some ninety seconds
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import note
from benchmarks.paper.contenders import (
    BLACK,
    BLUE,
    CONTENDERS,
    GREEN,
    ORANGE,
    PRICE,
    PURPLE,
    RED,
    SKY,
)
from benchmarks.paper.lmm_x import LmmX
from benchmarks.paper.picture import WIDTH, Result, main, written
from privmax import crossover
from privmax.planning.theory import large_margin_lead, least_lead

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
    if name == "lmm-x":
        return _LMM_X.lead(candidates=size, near=near, success=SUCCESS)
    contender = CONTENDERS[name]
    if (contender.pure and size is None) or (contender.single and near > 1):
        return None
    return contender.at(near=near).lead(candidates=size, near=near, success=SUCCESS)


_LMM_X = LmmX(
    epsilon=float(PRICE["epsilon"]), delta=float(PRICE["delta"]), neighbors=PRICE["neighbors"]
)


def compute() -> dict[str, Any]:
    curves = []
    for name in ("limit", "theorem", "lmm-x", *CONTENDERS):
        note(f"near: {name}")
        for universe in UNIVERSES:
            leads = {near: lead(name, universe, near) for near in NEARS}
            found = {near: records for near, records in leads.items() if records is not None}
            if found:
                curves.append(
                    {
                        "contender": name,
                        "universe": universe,
                        "near": list(found),
                        "lead": list(found.values()),
                    }
                )
    crossings = []
    for name in CROSSING:
        note(f"near: where {name} overtakes permute-and-flip")
        size = crossover(
            CONTENDERS["permute-and-flip"].at(), CONTENDERS[name].at(), success=SUCCESS
        )
        crossings.append({"contender": name, "universe": size})
    return {
        "settings": PRICE | {"universes": UNIVERSES, "success": SUCCESS},
        "curves": curves,
        "crossings": crossings,
    }


OTHERS: dict[str, dict[str, Any]] = {
    "limit": {"color": BLACK, "linestyle": ":", "linewidth": 1.4},
    "theorem": {"color": BLUE, "linestyle": ":", "linewidth": 1.4},
    "lmm-x": {"color": BLUE, "linestyle": "-.", "linewidth": 1},
}


def draw(result: Result) -> Figure:
    figure = Figure(figsize=(WIDTH, 4.6))
    left, right = figure.subplots(1, len(UNIVERSES), sharey=True)
    for axes, universe in zip((left, right), UNIVERSES, strict=True):
        _panel(axes, [curve for curve in result["curves"] if curve["universe"] == universe])
    left.set_title("open universe: candidates not known in advance")
    right.set_title("closed universe of $10^{12}$ candidates")
    left.set_ylabel("lead needed for 95 %, in records")
    for axes in (left, right):
        written(axes, 1.2, 580, "the paper's theorem", BLUE, rotation=9)
        written(axes, 1.2, 108, "LMM-X", BLUE)
        written(axes, 1500, 186, "sharp margin", GREEN)
        written(axes, 2.5, 38.3, "nested margin", RED)
        written(axes, 10**6, 32.3, "limited domain, told ℓ", PURPLE, ha="right")
        written(axes, 10**6, 25.3, "limit of any mechanism", BLACK, ha="right")
        written(axes, 1.4, 25.3, "gap test, stable\nmaximum (ℓ = 1)", SKY, va="center")
    written(left, 1.2, 380, "the paper's mechanism", BLUE)
    written(right, 1.2, 195, "the paper's mechanism", BLUE)
    written(left, 6, 65, "dyadic sharp margin", GREEN)
    written(right, 10, 71, "dyadic sharp margin", GREEN)
    written(right, 1500, 49.5, "pure", ORANGE)
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
    main("near", compute, draw)
