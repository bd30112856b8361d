"""Pictures. matplotlib is imported here and nowhere else in the package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from privmax.errors import LedgerError
from privmax.ledger import Event
from privmax.ledger.events import privacy_of
from privmax.privacy import Privacy

BUDGET = "#444444"
WHOLE = "#0b5394"
ACCOUNTS = ("#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b7a900")
"""Colours that people tell apart whatever their eyes. So many accounts get a line: those that spent most."""

LONGEST = 24
"""Characters of a name in the legend."""

SHORTEST = timedelta(seconds=10)
"""What a time axis shows at least: the history of a new ledger is a moment."""

HIGHEST = Fraction(10**300)
"""What is above it is drawn there."""


@dataclass
class _Line:
    """What was granted and what was spent, at the times they changed."""

    times: list[datetime] = field(default_factory=list)
    budgets: list[Privacy] = field(default_factory=list)
    spent: list[Privacy] = field(default_factory=list)

    def add(self, when: datetime, budget: Privacy, spent: Privacy) -> None:
        if not self.times or (budget, spent) != (self.budgets[-1], self.spent[-1]):
            self.times.append(when)
            self.budgets.append(budget)
            self.spent.append(spent)


def spending(events: Iterable[Event], path: Path, *, title: str) -> None:
    """Draw epsilon, and delta if any was granted, over time, into a file whose ending tells the format.

    Each step is a charge; the line above is the budget. Events stand in the order in which they happened: one whose
    clock had gone back is drawn at the time of the one before it.
    """
    whole, accounts, last = _lines(events)
    start = whole.times[0]
    end = last + max((last - start) / 30, SHORTEST)  # so that the last step is seen
    parts = ["epsilon", *(["delta"] if any(budget.delta for budget in whole.budgets) else [])]
    with rc_context({"svg.hashsalt": "privmax", "svg.fonttype": "path", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(8, 3 + 2 * (len(parts) - 1)), layout="constrained")
        panels = figure.subplots(len(parts), 1, sharex=True, squeeze=False)[:, 0]
        drawn = [_panel(axes, part, whole, accounts, end) for axes, part in zip(panels, parts, strict=True)]
        panels[0].set_title(title, loc="left")
        _legend(panels[0], drawn[0], len(accounts))
        _time_axis(panels[-1], start, end)
        with catch_warnings():
            filterwarnings("ignore", "Glyph .* missing from font")  # a name in a script the font does not have
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _lines(events: Iterable[Event]) -> tuple[_Line, dict[str, _Line], datetime]:
    whole, accounts, now = _Line(), dict[str, _Line](), datetime.min.replace(tzinfo=UTC)
    for event in events:
        try:
            now = max(now, datetime.fromisoformat(event.when))
            whole.add(now, event.budget, event.spent)
            if event.account is not None:
                own = event.totals["account"]
                line = accounts.setdefault(event.account, _Line())
                line.add(now, privacy_of(own["budget"]), privacy_of(own["spent"]))
        except (ValueError, KeyError, TypeError):
            raise LedgerError(f"Event {event.seq} was changed and cannot be read. See privmax budget verify.") from None
    return whole, accounts, now


def _panel(axes: Axes, part: str, whole: _Line, accounts: Mapping[str, _Line], end: datetime) -> dict[str, Line2D]:
    """Draws epsilon or delta; gives the lines by the names they have in the legend, in its order."""
    drawn = {
        "budget": _step(axes, part, whole.times, whole.budgets, end, color=BUDGET, linestyle="--", zorder=4),
        "spent in all": _step(axes, part, whole.times, whole.spent, end, color=WHOLE, linewidth=2, zorder=3),
    }
    most = set(sorted(accounts, key=lambda name: -accounts[name].spent[-1].epsilon)[: len(ACCOUNTS)])
    for colour, name in zip(ACCOUNTS, (name for name in accounts if name in most), strict=False):
        own = accounts[name]
        drawn[f"account {name}"] = _step(axes, part, own.times, own.spent, end, color=colour)
    axes.set_ylabel(part)
    axes.set_ylim(0, 1.08 * max(_height(budget, part) for budget in whole.budgets) or 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_axisbelow(True)
    return drawn


def _step(axes: Axes, part: str, times: list[datetime], amounts: list[Privacy], end: datetime, **style: Any) -> Line2D:
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
    form = "%Y-%m-%d" if span > timedelta(days=6) else "%m-%d %H:%M" if span > timedelta(hours=6) else "%H:%M:%S"
    axes.set_xlim(start, end)  # type: ignore[arg-type]  # dates are numbers to matplotlib
    axes.xaxis.set_major_locator(AutoDateLocator(tz=UTC, maxticks=7))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter(form, tz=UTC))  # type: ignore[no-untyped-call]
    axes.set_xlabel(f"UTC, from {start:%Y-%m-%d %H:%M}")
