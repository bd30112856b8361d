"""docs/pictures/learning-accuracy.png: accuracy against epsilon, from the stored result of
learning.py.

./dev python -m benchmarks.learning --redraw
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.harness import note
from benchmarks.learning_report import figures, planned
from benchmarks.markdown import Result
from benchmarks.paper.contenders import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from benchmarks.paper.picture import PICTURES, STYLE, WIDTH

PICTURE = PICTURES / "learning-accuracy.png"
DPI = 200

SHOWN: Final = {
    "breast-cancer": "breast cancer",
    "digits": "digits, one against the rest",
    "wine": "wine",
}

Style = tuple[str, str, Any, float]
"""Label, colour, dashes and width of a line."""

PLANNED: Final[dict[str, Style]] = {
    "auto": ("PrivateERM: trees or stumps, as planned", RED, "-", 2.2),
    "auto-replace": ("the same under replace", RED, ":", 1.4),
    "exponential": ("exponential learner, same classes", ORANGE, "--", 1.4),
}
HALF_SPACES: Final[Style] = ("PrivateERM: half-spaces", PURPLE, "-", 1.6)
PEERS: Final[dict[str, Style]] = {
    "GaussianNB": ("diffprivlib GaussianNB", BLUE, "-", 1.2),
    "LogisticRegression": ("diffprivlib LogisticRegression", SKY, "-", 1.2),
    "DecisionTreeClassifier": ("diffprivlib DecisionTree", GREEN, "--", 1.2),
    "RandomForestClassifier": ("diffprivlib RandomForest", GREEN, "-", 1.2),
}
LEVELS: Final[dict[str, Style]] = {
    "best": ("best tree, not private", "#444444", (0, (4, 2)), 1.0),
    "majority": ("majority label, not private", GREY, (0, (1, 2)), 1.0),
}


def draw(result: Result) -> Figure:
    """A panel a set."""
    found = figures(result)
    epsilons: Sequence[str] = result["settings"]["epsilons"]
    places = range(len(epsilons))
    figure = Figure(figsize=(WIDTH, 3.5))
    for axes, (group, title) in zip(figure.subplots(1, len(SHOWN)), SHOWN.items(), strict=True):
        for name, style in PEERS.items():
            _line(axes, places, [found[group, "-", name, epsilon] for epsilon in epsilons], style)
        if (group, "LinearGrid", "auto", epsilons[0]) in found:
            _line(
                axes,
                places,
                [found[group, "LinearGrid", "auto", one] for one in epsilons],
                HALF_SPACES,
            )
        for way, style in reversed(PLANNED.items()):
            chosen = planned(result, group, way)
            _line(axes, places, [chosen[epsilon] for epsilon in epsilons], style)
        for key, (_, colour, dashes, width) in LEVELS.items():
            level = found[group, "Trees" if key == "best" else "-", key, "-"][0]
            axes.axhline(level, color=colour, linestyle=dashes, linewidth=width, zorder=1.5)
        axes.set_title(title)
        axes.set_xticks(list(places), list(epsilons))
        axes.set_xlabel("ε")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    figure.axes[0].set_ylabel("accuracy on examples not learned from")
    styles = [*PLANNED.values(), HALF_SPACES, *PEERS.values(), *LEVELS.values()]
    names = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=width, label=label)
        for label, colour, dashes, width in styles
    ]
    figure.legend(handles=names, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _line(axes: Axes, x: Sequence[int], cells: Sequence[tuple[float, float]], style: Style) -> None:
    """Means, with bars of one standard error."""
    _, colour, dashes, width = style
    means, errors = zip(*cells, strict=True)
    axes.errorbar(
        x,
        means,
        errors,
        color=colour,
        linestyle=dashes,
        linewidth=width,
        elinewidth=0.7,
        zorder=2 + width / 10,
        marker="o",
        markersize=2.5,
    )


def png(result: Result) -> bytes:
    """The picture, the same for the same numbers."""
    made = io.BytesIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        draw(result).savefig(made, format="png", dpi=DPI, metadata={"Software": None})
    return made.getvalue()


def draw_all(result: Result) -> None:
    """Write the picture of docs/learning.md, if all it shows has been measured."""
    measured = [{row["group"] for row in result.get(part, [])} for part in ("accuracy", "peers")]
    if not all(groups >= set(SHOWN) for groups in measured):
        note(f"no picture: it needs accuracy and peers of {', '.join(SHOWN)}")
        return
    PICTURE.write_bytes(png(result))
    note(f"drew {PICTURE.name}")
