"""Pictures as SVG within a page: where everything goes, which a template then draws. Lengths are
shares of the width, so that letters keep their size on a phone; colors come from the style sheet,
which knows light and dark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log10

LEFT, WIDE = 13, 84
"""The start and the width of the lines of a picture, in percent of its width."""

TALL = 200
"""Pixels from the lowest to the highest line."""

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Picture:
    """Lines over a common axis, with a legend. Places are text, as SVG has them.

    Args:
        title: What it shows.
        across: What is drawn from left to right.
        up: What is drawn upward.
        lines: The points of each line, by its name; the first one stands out.
        heights: Heights that are named at the left: the place of the line, of its name, and the
            name.
        ticks: Places that are named below: the place, how its name is aligned, and the name.
        mark: A place to point at.
    """

    title: str
    across: str
    up: str
    lines: Mapping[str, str]
    heights: Sequence[tuple[str, str, str]]
    ticks: Sequence[tuple[str, str, str]]
    mark: str | None
    left: int = LEFT
    wide: int = WIDE
    tall: int = TALL


def lay_out(
    lines: Mapping[str, Line],
    *,
    title: str,
    across: str,
    up: str,
    marked: float | None = None,
    heights: Sequence[tuple[float, str]] = (),
    ticks: Sequence[tuple[float, str]] = (),
    is_stepped: bool = False,
) -> Picture:
    """Return where the parts of a picture go.

    Args:
        lines: Points of each line, by its name; the first one stands out.
        title: What the picture shows.
        across: What is drawn from left to right.
        up: What is drawn upward.
        marked: A place to point at.
        heights: Heights that are named at the left, and how.
        ticks: Places that are named below, and how; by default five, by their numbers.
        is_stepped: Whether a line keeps its height until the next point.
    """
    xs = [x for line in lines.values() for x, _ in line]
    low, high = min(xs), max(xs)
    most = max([y for line in lines.values() for _, y in line] + [y for y, _ in heights]) or 1.0
    span = (high - low) or 1.0

    def place(x: float) -> float:
        return (x - low) / span

    def percent(x: float) -> str:
        return f"{LEFT + WIDE * place(x):.2f}"

    below = ticks or [(x, _short(x)) for x in (low + span * step / 4 for step in range(5))]
    named = [(10 + TALL * (1 - y / most), words) for y, words in heights]
    return Picture(
        title,
        across,
        up,
        {name: _points(line, place, most, is_stepped) for name, line in lines.items()},
        [(f"{y:.1f}", f"{y + 4:.1f}", words) for y, words in named],
        [(percent(x), "end" if place(x) > 0.95 else "middle", words) for x, words in below],
        None if marked is None else percent(marked),
    )


def _points(line: Line, place: Callable[[float], float], most: float, is_stepped: bool) -> str:
    points: list[str] = []
    before: float | None = None
    for x, y in line:
        across, height = 100 * place(x), 100 * (1 - y / most)
        if is_stepped and before is not None:
            points.append(f"{across:.2f},{before:.2f}")
        points.append(f"{across:.2f},{height:.2f}")
        before = height
    return " ".join(points)


def _short(number: float) -> str:
    if abs(number) >= 10**7:
        return f"10^{log10(abs(number)):.0f}"
    return f"{number:,.0f}" if abs(number) >= 10 or number == int(number) else f"{number:.2g}"
