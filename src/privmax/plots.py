"""Pictures of public things. matplotlib is imported here and nowhere else in the package.

Each function but the last two gives a figure: `write` puts it into a file, `svg` into a page.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from html import escape
from itertools import pairwise
from math import log10
from pathlib import Path
from textwrap import fill
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from privmax import writing
from privmax.errors import LedgerError
from privmax.keyset.plans import ALIKE, ALONE, ONE_EACH, ONE_ROUND, KeyPlan
from privmax.ledger import Event
from privmax.ledger.events import privacy_of
from privmax.mechanisms.registry import MECHANISMS, describe_mechanism
from privmax.numbers import plain
from privmax.planning.comparison import DRAWS, Comparison, percent
from privmax.planning.plans import (
    Plan,
    Row,
    candidates,
    price_in_words,
    releases_sets,
    short,
)
from privmax.privacy import ADD_REMOVE, Privacy

PICTURES = (".png", ".svg")
"""The endings of a picture's file name."""

WIDE, NARROW = 8.0, 4.6
"""Inches from left to right: of a picture by itself, and of one that can be read on a phone."""

CHOSEN, OTHERS, LIMIT = "#0b5394", "#9fb3c8", "#d55e00"
ANOTHER, NOTHING = "#e69f00", "#dddddd"
BUDGET = "#444444"
WHOLE = "#0b5394"
ACCOUNTS = ("#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b7a900")
"""Colors that people tell apart whatever their eyes. So many accounts get a line: those that spent
most.
"""

LONGEST = 24
"""Characters of a name in the legend."""

FEW_CELLS = 12
"""So many cells of a table are drawn as bars, with their names."""

SHORTEST = timedelta(seconds=10)
"""The least span of a time axis: the history of a new ledger is a moment."""

_STROKES: tuple[dict[str, Any], ...] = (
    {"color": CHOSEN, "linewidth": 2.5},
    {"color": "#e69f00", "linewidth": 3},
    {"color": "#444444", "linewidth": 1.5, "linestyle": "--"},
    {"color": "#cc79a7", "linewidth": 2, "linestyle": "-."},
)
"""The strokes of up to four lines of a picture, distinct also where one covers another and without
color.
"""

_K_STROKES: dict[str, dict[str, Any]] = {
    "SetMargin": {"color": CHOSEN},
    "GapTest": {"color": "#009e73", "marker": "o", "markersize": 3},
    "LimitedDomain": {"color": "#e69f00", "linewidth": 2},
    "SharpMargin": {"color": "#444444", "linestyle": "--"},
    "Exponential": {"color": "#cc79a7", "linestyle": "-.", "linewidth": 2},
    "PermuteAndFlip": {"color": "#56b4e9", "marker": "s", "markersize": 3},
    "JointExponential": {"color": "#b7a900", "linestyle": ":", "linewidth": 2.5},
    ONE_ROUND: {"color": "#444444", "linestyle": "--"},
    ONE_EACH: {"color": "#e69f00", "linestyle": "-.", "linewidth": 2},
    ALIKE: {"color": CHOSEN, "linewidth": 2.5},
    ALONE: {"color": CHOSEN, "linestyle": ":", "linewidth": 2.5},
}
"""The strokes of the mechanisms for lists in pictures over k, and of the ways to find keys."""

_OTHER_STROKE: dict[str, Any] = {"color": OTHERS, "marker": "^", "markersize": 3}
"""The stroke of a mechanism that has none of its own."""

BEST_OR_NOTHING = "the best", "another", "nothing"

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_TWO = " × "
"""Between the names of two columns that count together."""

_LINES = "stroke-linejoin: round; stroke-linecap: butt"

HIGHEST = Fraction(10**300)
"""The height at which larger values are drawn."""


@dataclass
class _Line:
    """The granted and the spent amounts, at the times they changed."""

    times: list[datetime] = field(default_factory=list)
    budgets: list[Privacy] = field(default_factory=list)
    spent: list[Privacy] = field(default_factory=list)

    def add(self, when: datetime, budget: Privacy, spent: Privacy) -> None:
        if not self.times or (budget, spent) != (self.budgets[-1], self.spent[-1]):
            self.times.append(when)
            self.budgets.append(budget)
            self.spent.append(spent)


def planning(planned: Plan, *, wide: float = WIDE) -> Figure:
    """Draw the lead that each mechanism needs, least first.

    The one `auto` picks is dark, and what no mechanism can do is a line.

    Mechanisms without a lead are named below, with the reason.

    Args:
        planned: What to draw.
        wide: Inches from left to right; below `WIDE`, lines of text are broken.
    """
    rows = [row for row in planned.rows if row.lead is not None]
    cost = price_in_words(planned.privacy, planned.neighbors)
    choice = describe_mechanism(planned.chosen.mechanism, planned.why)
    with _style():
        figure, axes = _bars(
            [f"{row.name}{' *' if row.chosen else ''}" for row in rows],
            [_drawable(row.lead or 0) for row in rows],
            [short(row.lead or 0) for row in rows],
            [CHOSEN if row.chosen else OTHERS for row in rows],
            wide,
        )
        least = "no mechanism works with less than"
        axes.axvline(
            _drawable(planned.limit),
            color=LIMIT,
            linestyle="--",
            label=f"{least} {short(planned.limit)}",
        )
        axes.set_xlabel(f"lead in records, for a release with probability {plain(planned.success)}")
        _add_legend(axes, wide)
        _add_title(
            figure,
            axes,
            planned.title(),
            cost,
            [f"* chosen by auto: {choice}.", *_absent(planned.rows)],
            _width(wide),
        )
    return figure


def comparison(compared: Comparison, *, wide: float = WIDE) -> Figure:
    """Draw the chances that each mechanism releases the best, another candidate, or nothing.

    The picture is as private as its data.

    Of a list: which part of its places goes to the best, to others, or to no one, on average.

    Args:
        compared: What to draw.
        wide: As in `planning`.
    """
    rows = compared.rows
    is_list = compared.k > 1
    labels = (f"the best {compared.k:,}", "others", "empty") if is_list else BEST_OR_NOTHING
    with _style():
        figure, axes = _bars(
            [f"{row.name}{' *' if row.chosen else ''}{' †' if row.ahead else ''}" for row in rows],
            [100 * row.best for row in rows],
            [""] * len(rows),
            [CHOSEN] * len(rows),
            wide,
        )
        axes.containers[0].set_label(labels[0])
        others = [100 * max(0.0, 1 - row.best - row.nothing) for row in rows]
        starts, places = [100 * row.best for row in rows], range(len(rows))
        axes.barh(places, others, left=starts, color=ANOTHER, height=0.7, label=labels[1])
        starts = [start + other for start, other in zip(starts, others, strict=True)]
        silent = [max(0.0, 100 - start) for start in starts]
        axes.barh(places, silent, left=starts, color=NOTHING, height=0.7, label=labels[2])
        for place, row in enumerate(rows):
            axes.annotate(
                percent(row.best),
                (100, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_xlim(0, 109)
        axes.set_xticks(range(0, 101, 20), [f"{tick} %" for tick in range(0, 101, 20)])
        axes.spines["bottom"].set_bounds(0, 100)
        about = "places of the list, on average" if is_list else "chance of each outcome"
        axes.set_xlabel(f"{about}; at the right, of the best")
        _add_legend(axes, wide, columns=3)
        cost = price_in_words(compared.privacy, compared.neighbors)
        _add_title(figure, axes, compared.title(), cost, compared.legend(), _width(wide))
    return figure


def chances(
    lines: Mapping[str, Mapping[int, float]], *, title: str, subtitle: str, marked: tuple[int, str]
) -> Figure:
    """Draw the chance that each mechanism releases the best, by the size of the universe.

    The picture is as private as its data.

    Args:
        lines: Of each mechanism, by name: the chances by size, ascending.
        marked: A size to point at, and what it is.
    """
    with _style():
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.axvline(float(marked[0]), color=BUDGET, linestyle=":", linewidth=1)
        axes.annotate(f"  {marked[1]}", (float(marked[0]), 50), va="center", color=BUDGET)
        for (name, line), style in zip(lines.items(), _STROKES, strict=False):
            axes.plot(
                [float(size) for size in line],
                [100 * chance for chance in line.values()],
                label=name,
                **style,
            )
        axes.set_xscale("log")
        axes.margins(x=0)
        axes.set_ylim(-4, 104)
        axes.set_yticks(range(0, 101, 20), [f"{tick} %" for tick in range(0, 101, 20)])
        axes.xaxis.set_major_locator(LogLocator(base=10, numticks=12))
        axes.xaxis.set_major_formatter(
            lambda size, _: "10" + f"{log10(size):.0f}".translate(_RAISED)
        )
        axes.set_xlabel("how many candidates there could be")
        axes.set_ylabel("chance of releasing the best")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e5e5")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        _add_title(figure, axes, title, subtitle, [])
    return figure


def leads(plans: Mapping[int, Plan], *, marked: int) -> Figure:
    """Draw the lead that each mechanism needs for the best k, over k, and what no one can do.

    Args:
        plans: By k, ascending.
        marked: The k that was asked for.
    """
    last = plans[max(plans)]
    lines = _over_k(plans, lambda row: None if row.lead is None else _drawable(max(row.lead, 1)))
    with _style():
        figure, axes = _k_axes(lines, marked, {row.name for row in last.rows if row.chosen})
        limits = {k: _drawable(max(one.limit, 1)) for k, one in plans.items()}
        label = "no mechanism works with less"
        axes.plot(list(limits), list(limits.values()), color=LIMIT, linestyle="--", label=label)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(lambda lead, _: short(round(lead)))
        axes.minorticks_off()
        axes.set_ylabel("lead in records")
        _legend_below(axes)
        cost = price_in_words(last.privacy, last.neighbors)
        title = f"Records by which the best k must lead in {candidates(last.universe)}"
        note = f"For all k to be released with probability {plain(last.success)}."
        ends = [
            f"{name} is shown up to {short(max(line))}."
            for name, line in lines.items()
            if max(line) < max(plans)
        ]
        _add_title(figure, axes, title, cost, [" ".join([note, _describe_forms(), *ends])], 84)
    return figure


def keys_needed(plans: Mapping[int, KeyPlan], *, marked: int) -> Figure:
    """Draw how many individuals a key must have to be found, over the keys of one individual.

    Args:
        plans: By how many keys of one individual count, ascending.
        marked: The number that was asked for.
    """
    lines: dict[str, dict[int, float]] = {}
    for number, plan in plans.items():
        for row in plan.rows:
            lines.setdefault(row.name, {})[number] = _drawable(row.several)
    last = plans[max(plans)]
    with _style():
        figure, axes = _k_axes(lines, marked, ())
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(lambda people, _: short(round(people)))
        axes.minorticks_off()
        axes.set_xlabel("keys of each individual")
        axes.set_ylabel("individuals that a key must have")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False)
        cost = price_in_words(last.privacy, ADD_REMOVE)
        note = f"To be found with probability {plain(last.success)}."
        _add_title(figure, axes, "How many individuals a key must have", cost, [note], 84)
    return figure


def misses(compared: Mapping[int, Comparison], *, marked: int) -> Figure:
    """Draw which part of the best k each mechanism misses, over k: as private as its data.

    Args:
        compared: By k, ascending.
        marked: The k that was asked for.
    """
    last = compared[max(compared)]
    lines = _over_k(compared, lambda row: 100 * row.misses)
    with _style():
        figure, axes = _k_axes(lines, marked, {row.name for row in last.rows if row.chosen})
        axes.set_ylim(-4, 104)
        axes.set_yticks(range(0, 101, 20), [f"{tick} %" for tick in range(0, 101, 20)])
        axes.set_ylabel("of the best k, missed on average")
        _legend_below(axes)
        cost = price_in_words(last.privacy, last.neighbors)
        title = f"Share of the best k that is missed in {candidates(last.universe)}"
        drawn = {row.name for row in last.rows if row.error}
        notes = [f"{name}: from {DRAWS} draws for each k." for name in sorted(drawn)]
        _add_title(figure, axes, title, cost, [" ".join([_describe_forms(), *notes])], 84)
    return figure


def _describe_forms() -> str:
    """Return what the star means, and which mechanisms release a set."""
    *names, last = [entry.name for entry in MECHANISMS.values() if releases_sets(entry)]
    return f"* chosen by auto. {', '.join(names)} and {last} release a set, all others an order."


def spending(events: Iterable[Event], *, title: str) -> Figure:
    """Draw epsilon, and delta if any was granted, over time.

    Each step is a charge; the line above is the budget. Events are in the order in which they
    happened: one whose clock had gone back is drawn at the time of the one before it.

    Args:
        events: Of one ledger.
        title: Its title.
    """
    whole, accounts, last = _lines(events)
    start = whole.times[0]
    end = last + max((last - start) / 30, SHORTEST)  # so that the last step is seen
    parts = ["epsilon", *(["delta"] if any(budget.delta for budget in whole.budgets) else [])]
    with _style():
        figure = Figure(figsize=(8, 3 + 2 * (len(parts) - 1)), layout="constrained")
        figure.set_label(f"{title}: spending over time")
        panels = figure.subplots(len(parts), 1, sharex=True, squeeze=False)[:, 0]
        drawn = [
            _panel(axes, part, whole, accounts, end)
            for axes, part in zip(panels, parts, strict=True)
        ]
        panels[0].set_title(title, loc="left")
        _legend(panels[0], drawn[0], len(accounts))
        _time_axis(panels[-1], start, end)
    return figure


def shapes(
    functions: Mapping[str, Sequence[Mapping[str, Any]]], *, label: str, most: int = 6
) -> Figure:
    """Draw what the columns of an additive model add to the log-odds of a label, or to a number.

    Those that move it most come first. Noise reaches two deviations up and down, where it is known.

    Args:
        functions: `shape_functions_` of a `PrivateGAM` or a `PrivateRegressor`.
        label: The label that they are the log-odds of, or what the number is.
        most: How many are drawn.
    """
    ranked = sorted(functions.items(), key=lambda one: -_swing_of(one[1]))[:most]
    is_effect = any("effect" in entry for _, entries in ranked for entry in entries[:1])
    title = f"What adds to {label}" if is_effect else f"What adds to the log-odds of {label}"
    with _style():
        rows = max(-(-len(ranked) // 2), 1)
        figure = Figure(figsize=(8, 0.6 + 2.4 * rows), layout="constrained")
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, (name, entries) in zip(panels, ranked, strict=False):
            of_two = _TWO in name
            _shape(axes, name, entries, of_two=of_two, size=6 if of_two else 7)
        for axes in panels[len(ranked) :]:
            axes.set_visible(False)
        figure.suptitle(title, x=0.01, ha="left")
        figure.set_label(title)
    return figure


def shape(
    name: str, entries: Sequence[Mapping[str, Any]], *, label: str, wide: float = NARROW
) -> Figure:
    """Draw what one column of an additive model adds, with a band of its noise.

    The band reaches two deviations up and down, where they are known.

    Args:
        name: Of the column.
        entries: Of `shape_functions_`.
        label: What it adds to.
        wide: Inches from left to right.
    """
    with _style():
        tall = 0.6 + 0.2 * len(entries) if len(entries) <= FEW_CELLS else 2.2
        figure = Figure(figsize=(wide, tall), layout="constrained")
        _shape(figure.subplots(), "", entries, of_two=_TWO in name, size=8)
        figure.set_label(f"What {name} adds to {label}")
    return figure


def errors(ends: Sequence[float], counts: Sequence[int], noise: float, *, wide: float) -> Figure:
    """Draw noisy counts of errors as a histogram, with two deviations of the noise up and down.

    Args:
        ends: Of the bins.
        counts: With noise.
        noise: Its deviation.
        wide: Inches from left to right.
    """
    middles = [(low + high) / 2 for low, high in pairwise(ends)]
    with _style():
        figure = Figure(figsize=(wide, 2.2), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        axes.bar(
            middles, counts, width=0.9 * (ends[1] - ends[0]), color=OTHERS, yerr=2 * noise,
            error_kw={"ecolor": BUDGET, "elinewidth": 0.8},
        )  # fmt: skip
        axes.axhline(0, color=BUDGET, linewidth=0.8)
        axes.set_xlabel("target less prediction")
        axes.set_ylabel("rows, with noise")
        figure.set_label("Errors of the fitted rows")
    return figure


def svg(figure: Figure) -> str:
    """Return the figure as an `svg` element to be put into a page, the same text each time.

    It refers to nothing outside itself and its letters are outlines. Its ids begin with a digest of
    it, so that several can be on one page.

    Args:
        figure: The figure.
    """
    file = io.StringIO()
    with _style(), _without_glyphs():
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    _, start, rest = file.getvalue().partition("<svg ")
    tag, end, body = rest.partition(">")
    title = f" <title>{escape(str(figure.get_label()), quote=False)}</title>"
    drawn = re.sub(
        r"\n <defs>\s*<style[^>]*>\*\{[^}]*\}</style>\s*</defs>", "", body, count=1
    )  # it styles the page
    text = f'{start}{tag} role="img" style="{_LINES}"{end}\n{title}{drawn}'
    own = hashlib.sha256(text.encode()).hexdigest()[:8]
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>p{own}-", text)


def write(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file.

    Args:
        figure: The figure.
        path: The file, whose ending says the format: .png or .svg.

    Raises:
        ParameterError: It has another ending, or cannot be written.
    """
    if Path(path).suffix.lower() == ".svg":
        prolog = '<?xml version="1.0" encoding="utf-8"?>\n'
        writing.write(prolog + svg(figure), path, "plot", PICTURES)
        return
    drawn = io.BytesIO()
    with _style(), _without_glyphs():
        figure.savefig(drawn, dpi=150, format="png")
    writing.write(drawn.getvalue(), path, "plot", PICTURES)


def check(path: str | Path) -> None:
    """Check that a picture could be written to a path now. Leaves nothing.

    Args:
        path: The file.

    Raises:
        ParameterError: It could not.
    """
    writing.check_file(path, "plot", PICTURES)


@contextmanager
def _style() -> Iterator[None]:
    """Set the style while a figure is built and while it is written.

    Letters and ids are the same everywhere, and `$` is a dollar.
    """
    with rc_context(
        {
            "svg.hashsalt": "privmax",
            "svg.fonttype": "path",
            "font.size": 9,
            "text.parse_math": False,
        }
    ):
        yield


@contextmanager
def _without_glyphs() -> Iterator[None]:
    with catch_warnings():
        filterwarnings(
            "ignore", "Glyph .* missing from (current )?font"
        )  # a name in a script the font does not have
        yield


def _bars(
    names: Sequence[str],
    lengths: Sequence[float],
    texts: Sequence[str],
    colors: Sequence[str],
    wide: float,
) -> tuple[Figure, Axes]:
    """Bars from left to right, the first on top, with a text at the end of each."""
    rest = 1.6 if wide >= WIDE else 2.2  # for what is above and below, in inches
    figure = Figure(figsize=(wide, rest + 0.3 * max(len(names), 1)), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    axes.barh(places, lengths, color=colors, height=0.7)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    for place, length, text in zip(places, lengths, texts, strict=True):
        axes.annotate(text, (length, place), xytext=(4, 0), textcoords="offset points", va="center")
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _over_k(
    by_k: Mapping[int, Any], height: Callable[[Any], float | None]
) -> dict[str, dict[int, float]]:
    """Return a height by k, if there is one, for each mechanism for lists.

    Mechanisms are in the order of the longest list.
    """
    listing = {entry.name for entry in MECHANISMS.values() if "k" in entry.parameters}
    lines: dict[str, dict[int, float]] = {}
    for k in sorted(by_k, reverse=True):
        for row in by_k[k].rows:
            value = height(row)
            if value is not None and row.name in listing:
                lines.setdefault(row.name, {})[k] = value
    return {name: dict(sorted(line.items())) for name, line in lines.items()}


def _k_axes(
    lines: Mapping[str, Mapping[int, float]], marked: int, chosen: Collection[str]
) -> tuple[Figure, Axes]:
    """Draw lines over k, by its logarithm, with a mark at one k."""
    figure = Figure(figsize=(5.8, 4.4), layout="constrained")  # narrow: to be read on a phone
    axes = figure.subplots()
    axes.axvline(marked, color=BUDGET, linestyle=":", linewidth=1)
    for name, line in lines.items():
        marked_stroke = {"linewidth": 3, "zorder": 3} if name in chosen else {}
        style = {**_K_STROKES.get(name, _OTHER_STROKE), **marked_stroke}
        label = f"{name}{' *' if name in chosen else ''}"
        axes.plot(list(line), list(line.values()), label=label, **style)
    axes.set_xscale("log")
    ticks = sorted({k for line in lines.values() for k in line} | {marked})
    axes.set_xticks(ticks, [short(k) for k in ticks])
    axes.minorticks_off()
    axes.margins(x=0.02)
    axes.set_xlabel("k, how many are to be released")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_axisbelow(True)
    return figure, axes


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, frameon=False)


def _add_title(
    figure: Figure, axes: Axes, title: str, cost: str, notes: Sequence[str], width: int = 110
) -> None:
    """Write what is above and below the axes, in lines of at most `width` small letters.

    The title is also what is read aloud.
    """
    figure.set_label(f"{title}, at {cost}")
    if width > _width(NARROW):
        axes.set_title(f"{title}\n{cost}", loc="left")
    else:  # from the left edge, not from where the bars begin
        lines = [fill(line, round(0.8 * width)) for line in (title, cost)]
        figure.suptitle("\n".join(lines), x=0.01, ha="left", size=10)
    figure.supxlabel(
        "\n".join(fill(note, width) for note in notes), x=0.01, ha="left", size=8, color="#444444"
    )


def _width(wide: float) -> int:
    """Return how many small letters fit into so many inches."""
    return round(110 * wide / WIDE)


def _add_legend(axes: Axes, wide: float, columns: int = 1) -> None:
    """Above the axes: at the right, beside the title, or below that of a narrow figure."""
    axes.legend(
        loc="lower right" if wide >= WIDE else "lower left",
        bbox_to_anchor=(int(wide >= WIDE), 1),
        borderaxespad=0.1,
        frameon=False,
        ncols=columns,
    )


def _absent(rows: Iterable[Row]) -> list[str]:
    """Return which mechanisms have no bar, and why."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.lead is None:
            reason = "No lead is enough for" if row.lacks is None else f"Needs {row.lacks}"
            reasons.setdefault(reason, []).append(row.name)
    return [f"{reason}: {', '.join(names)}." for reason, names in reasons.items()]


def _value_of(entry: Mapping[str, Any]) -> float:
    """Return an entry of a table: log-odds of a label, or an effect on a number."""
    return float(entry["effect"] if "effect" in entry else entry["log_odds"])


def _swing_of(entries: Sequence[Mapping[str, Any]]) -> float:
    """Return how far apart the least and the most of a table are."""
    values = [_value_of(entry) for entry in entries]
    return max(values) - min(values)


def _shape(
    axes: Axes, name: str, entries: Sequence[Mapping[str, Any]], *, of_two: bool, size: int
) -> None:
    """One table: a bar for each cell where they are few, else a line over all of them."""
    axes.set_title(_shorten(name, 40), loc="left", size=9)
    axes.spines[["top", "right"]].set_visible(False)
    if of_two:  # those that say most, of many
        entries = sorted(entries, key=lambda entry: -abs(_value_of(entry)))[: FEW_CELLS // 2]
    labels = [_shorten(str(entry["cell"]), 2 * LONGEST if of_two else LONGEST) for entry in entries]
    values = [_value_of(entry) for entry in entries]
    noise = [2 * float(entry.get("noise", 0)) for entry in entries]
    places = range(len(values))
    if len(values) <= FEW_CELLS:
        colors = [CHOSEN if one >= 0 else LIMIT for one in values]
        bars: dict[str, Any] = {"color": colors}
        if any(noise):
            bars |= {"xerr": noise, "error_kw": {"ecolor": BUDGET, "elinewidth": 1}}
        axes.barh(places, values, **bars)
        axes.set_yticks(places, labels, size=size)
        axes.invert_yaxis()
        axes.axvline(0, color=BUDGET, linewidth=0.8)
        return
    if any(noise):
        low, high = (
            [value + side * one for value, one in zip(values, noise, strict=True)]
            for side in (-1, 1)
        )
        axes.fill_between(places, low, high, step="mid", color=OTHERS, alpha=0.5, linewidth=0)
    axes.step(places, values, where="mid", color=CHOSEN)
    axes.axhline(0, color=BUDGET, linewidth=0.8)
    axes.set_xticks([0, len(values) - 1], [labels[0], labels[-1]], size=size)
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _drawable(number: int) -> float:
    return float(min(Fraction(number), HIGHEST))


def _lines(events: Iterable[Event]) -> tuple[_Line, dict[str, _Line], datetime]:
    whole, accounts, now = _Line(), dict[str, _Line](), datetime.min.replace(tzinfo=UTC)
    for event in events:
        if event.fault is not None:
            continue
        now = max(now, datetime.fromisoformat(event.when))
        whole.add(now, event.budget, event.spent)
        if event.account is not None and "account" in event.totals:
            own = event.totals["account"]
            line = accounts.setdefault(event.account, _Line())
            line.add(now, privacy_of(own["budget"]), privacy_of(own["spent"]))
    if not whole.times:
        raise LedgerError("No event of the ledger can be read. Run privmax budget verify.")
    return whole, accounts, now


def _panel(
    axes: Axes, part: str, whole: _Line, accounts: Mapping[str, _Line], end: datetime
) -> dict[str, Line2D]:
    """Draws epsilon or delta; gives the lines by their names in the legend, in its order."""
    drawn = {
        "budget": _step(
            axes, part, whole.times, whole.budgets, end, color=BUDGET, linestyle="--", zorder=4
        ),
        "spent in all": _step(
            axes, part, whole.times, whole.spent, end, color=WHOLE, linewidth=2, zorder=3
        ),
    }
    most = set(
        sorted(accounts, key=lambda name: -accounts[name].spent[-1].epsilon)[: len(ACCOUNTS)]
    )
    for color, name in zip(ACCOUNTS, (name for name in accounts if name in most), strict=False):
        own = accounts[name]
        drawn[f"account {name}"] = _step(axes, part, own.times, own.spent, end, color=color)
    axes.set_ylabel(part)
    axes.set_ylim(0, 1.08 * max(_height(budget, part) for budget in whole.budgets) or 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_axisbelow(True)
    return drawn


def _step(
    axes: Axes,
    part: str,
    times: list[datetime],
    amounts: list[Privacy],
    end: datetime,
    **style: Any,
) -> Line2D:
    heights = [_height(amount, part) for amount in amounts]
    (line,) = axes.step([*times, end], [*heights, heights[-1]], where="post", **style)  # type: ignore[arg-type]
    return line


def _height(amount: Privacy, part: str) -> float:
    return float(min(getattr(amount, part), HIGHEST))


def _legend(axes: Axes, drawn: Mapping[str, Line2D], accounts: int) -> None:
    names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in drawn]
    shown = f"{len(ACCOUNTS)} of {accounts} accounts" if accounts > len(ACCOUNTS) else None
    style: dict[str, Any] = {"bbox_to_anchor": (1, 1), "alignment": "left", "frameon": False}
    axes.legend(list(drawn.values()), names, title=shown, loc="upper left", **style)


def _time_axis(axes: Axes, start: datetime, end: datetime) -> None:
    span = end - start
    form = (
        "%Y-%m-%d"
        if span > timedelta(days=6)
        else "%m-%d %H:%M"
        if span > timedelta(hours=6)
        else "%H:%M:%S"
    )
    axes.set_xlim(start, end)  # type: ignore[arg-type]  # dates are numbers to matplotlib
    axes.xaxis.set_major_locator(AutoDateLocator(tz=UTC, maxticks=7))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter(form, tz=UTC))  # type: ignore[no-untyped-call]
    axes.set_xlabel(f"UTC, from {start:%Y-%m-%d %H:%M}")


def __dir__() -> list[str]:
    return [
        "chances", "comparison", "keys_needed", "leads", "misses", "planning", "shapes", "spending",
        "svg", "write",
    ]  # fmt: skip
