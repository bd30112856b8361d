"""Pictures as SVG within a page. Lengths are shares of the width, so that letters keep their size
on a phone; colors come from the style sheet, which knows light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

from privmax.report.markup import text

LEFT, WIDE = 13, 84
"""Where the lines of a picture begin and how far they go, in percent of its width."""

TALL = 200
"""Pixels from the lowest to the highest line."""

Line = Sequence[tuple[float, float]]


def bar(share: float, *, is_marked: bool = False) -> str:
    """A bar of a length from 0 to 1, for a cell of a table. What it shows stands beside it."""
    wide = 100 * min(max(share, 0.0), 1.0)
    kind = "length marked" if is_marked else "length"
    return (
        f'<svg class="bars" height="14" width="100%" aria-hidden="true"><rect class="{kind}" '
        f'x="0" y="1" height="12" width="{wide:.2f}%"/></svg>'
    )


def lines(
    found: Mapping[str, Line],
    *,
    title: str,
    across: str,
    up: str,
    marked: float | None = None,
    ticks: Sequence[float] = (),
    heights: Sequence[tuple[float, str]] = (),
    is_stepped: bool = False,
) -> str:
    """Lines over a common axis, with a legend.

    Args:
        found: Points of each line, by its name; the first one stands out.
        title: What the picture shows.
        across: What is drawn from left to right.
        up: What is drawn upward.
        marked: A place to point at.
        ticks: Places that are named below; default: five of them.
        heights: Heights that are named at the left, and how.
        is_stepped: Whether a line keeps its height until the next point.
    """
    xs = [x for line in found.values() for x, _ in line]
    low, high = min(xs), max(xs)
    most = max([y for line in found.values() for _, y in line] + [y for y, _ in heights]) or 1.0
    span = (high - low) or 1.0

    def place(x: float) -> float:
        return (x - low) / span

    drawn = "".join(
        f'<polyline class="line s{number}" vector-effect="non-scaling-stroke" fill="none" '
        f'points="{_points(line, place, most, is_stepped)}"/>'
        for number, line in reversed(list(enumerate(found.values())))
    )
    grid = "".join(
        f'<line class="grid" x1="{LEFT}%" x2="{LEFT + WIDE}%" y1="{_down(y, most):.1f}" '
        f'y2="{_down(y, most):.1f}"/><text class="tick" x="{LEFT - 1}%" '
        f'y="{_down(y, most) + 4:.1f}" text-anchor="end">{text(words)}</text>'
        for y, words in heights
    )
    below = "".join(
        f'<text class="tick" x="{LEFT + WIDE * place(x):.2f}%" y="{TALL + 28}" '
        f'text-anchor="middle">{text(_short(x))}</text>'
        for x in (ticks or [low + span * step / 4 for step in range(5)])
    )
    mark = ""
    if marked is not None:
        at = f"{LEFT + WIDE * place(marked):.2f}%"
        mark = f'<line class="mark" x1="{at}" x2="{at}" y1="10" y2="{TALL + 10}"/>'
    legend = "".join(
        '<li><svg class="swatch" width="26" height="8" aria-hidden="true">'
        f'<line class="line s{number}" x1="0" x2="26" y1="4" y2="4"/></svg>{text(name)}</li>'
        for number, name in enumerate(found)
    )
    return (
        f'<figure><figcaption>{text(title)}</figcaption><svg class="picture" width="100%" '
        f'height="{TALL + 56}" role="img" aria-label="{text(title)}">{grid}'
        f'<svg x="{LEFT}%" y="10" width="{WIDE}%" height="{TALL}" viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" overflow="visible">{drawn}</svg>{mark}{below}'
        f'<text class="tick" x="{LEFT + WIDE / 2}%" y="{TALL + 48}" text-anchor="middle">'
        f'{text(across)}</text></svg><p class="hint">Upward: {text(up)}</p>'
        f'<ul class="legend">{legend}</ul></figure>'
    )


def _points(line: Line, place: object, most: float, is_stepped: bool) -> str:
    found: list[str] = []
    before: float | None = None
    for x, y in line:
        across, height = 100 * place(x), 100 * (1 - y / most)  # type: ignore[operator]
        if is_stepped and before is not None:
            found.append(f"{across:.2f},{before:.2f}")
        found.append(f"{across:.2f},{height:.2f}")
        before = height
    return " ".join(found)


def _down(y: float, most: float) -> float:
    return 10 + TALL * (1 - y / most)


def _short(number: float) -> str:
    if abs(number) >= 10**7:
        return f"10^{log10(abs(number)):.0f}"
    return f"{number:,.0f}" if abs(number) >= 10 or number == int(number) else f"{number:.2g}"
