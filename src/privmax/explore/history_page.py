"""History: what was asked of the ledger, what it cost, and what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from privmax.display import format_label
from privmax.explore import drawing
from privmax.explore.ask_page import answer_address
from privmax.explore.state import Explorer, Notice, is_part, render_part
from privmax.ledger import Event, Ledger
from privmax.ledger.events import RELEASED, RESERVED, privacy_of
from privmax.numbers import round_up
from privmax.privacy import Privacy

SHOWN = (50, 500, 5_000)
"""Events that a page lists: at first, and with each link to more."""

OPEN_SHOWN = 20
"""Charges without an answer that a page lists."""

ACCOUNTS_SHOWN = 100
"""Accounts that a page lists."""

FAULTS_SHOWN = 20
"""Faults that a page lists."""

UNITS = {"days": 86_400, "hours": 3_600}
"""Seconds of the units of time that a picture counts in, if it spans more than three of them."""

POINTS = 300
"""Steps that a picture has at most."""

HIGHEST = Fraction(10**300)
"""The largest number in a picture."""


class Line(NamedTuple):
    """One event of the table.

    Attributes:
        when: When it happened; "": it cannot be read.
        what: What was asked or done.
        who: Who did.
        address: Where its answer stands; "": it has none.
        items: The first items of the answer; "": it lists none.
        answer: What is said beside them, or instead of them.
        is_missing: Whether its answer was never recorded.
        epsilon: What it cost, and what all events until then cost; None: it cannot be read.
        delta: The same.
        spent: The same.
    """

    when: str
    what: str
    who: str
    address: str = ""
    items: str = ""
    answer: str = ""
    is_missing: bool = False
    epsilon: str = ""
    delta: str = ""
    spent: str | None = None


async def show(explorer: Explorer, request: Request) -> Response:
    """The page."""
    if explorer.ledger is None:
        problem = Notice("There is no ledger. Start with --ledger FILE to see one here.")
        return explorer.page("notice.html", "history", "History", problem=problem)
    last = {str(one): one for one in SHOWN}.get(request.query_params.get("last", ""), SHOWN[0])
    shown = await explorer.in_thread(_look_up, explorer, explorer.ledger, last)
    return explorer.page("history.html", "history", "History", **shown)


def _look_up(explorer: Explorer, ledger: Ledger, last: int) -> dict[str, Any]:
    """Return the content of the page, by name."""
    # An answer comes after its charge: those of the last charges are among the last events.
    latest = list(ledger.history(last=2 * last))
    events = ledger.event_count
    steps = [event for event in ledger.sample(POINTS) if event.fault is None]
    standing = ledger.standing()
    released = [event for event in latest if event.kind == RELEASED and event.fault is None]
    answers = {str(event.request): event for event in released}
    listed = [event for event in latest if event.kind != RELEASED or event.fault is not None]
    return {
        "fault": standing.fault,
        "whole": standing.whole,
        "events": events,
        "unanswered": ledger.unanswered(last=OPEN_SHOWN),
        "most_unanswered": OPEN_SHOWN,
        "lines": [
            _line(explorer, event, answers.get(str(event.request)))
            for event in reversed(listed[-last:])
        ],
        "is_cut": len(listed) > last or len(latest) < events,
        "more": next((one for one in SHOWN if one > last), None),
        "picture": _lay_out(steps) if len(steps) > 1 else None,
        "accounts": sorted(standing.accounts.items())[:ACCOUNTS_SHOWN],
        "answer_address": answer_address,
        "minute": _minute,
    }


def _line(explorer: Explorer, event: Event, answered: Event | None) -> Line:
    if event.fault is not None:
        return Line("", f"event {event.seq:,} cannot be read: {event.fault}", event.who)
    line = Line(
        _minute(event.when),
        _what(explorer, event),
        event.who,
        spent=round_up(event.spent.epsilon),
    )
    if event.kind != RESERVED:
        return line
    cost = privacy_of(event.body["price"])
    items, answer = ("", "") if answered is None else _answer(answered)
    return line._replace(
        address=answer_address(str(event.request)),
        items=items,
        answer=answer,
        is_missing=answered is None,
        epsilon=round_up(cost.epsilon),
        delta=round_up(cost.delta),
    )


def _what(explorer: Explorer, event: Event) -> str:
    if event.kind != RESERVED:
        words = {"created": "budget created", "granted": "more was granted"}
        account = f": {format_label(event.account)}" if event.account else ""
        return words.get(event.kind, event.kind) + account
    question = event.question
    options = question.options
    about = [question.dataset or "", str(options.get("item") or question.columns.get("item", ""))]
    if options.get("k", 1) != 1:
        about.append(f"k {options['k']}")
    if options.get("where"):
        about.append(str(options["where"]))
    shown = ", ".join(format_label(one) for one in about if one)
    command = question.command or "release"
    return explorer.without_paths(f"{command}: {shown}" if shown else command)


def _answer(answered: Event) -> tuple[str, str]:
    """The first items of an answer, and what is said beside them."""
    items = answered.items
    if not isinstance(answered.body["answer"], dict):  # recorded by another program
        return "", "recorded"
    if not items:
        return "", "no answer"
    shown = [
        format_label(item if isinstance(item, str | int) else json.dumps(item)) for item in items
    ]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return ", ".join(shown[:3]), more


def _lay_out(events: Sequence[Event]) -> drawing.Picture:
    start = datetime.fromisoformat(events[0].when)
    shown = [(event.when, event.budget, event.spent) for event in events]
    shown.append((datetime.now(UTC).isoformat(), *shown[-1][1:]))
    passed: list[float] = []
    for when, _, _ in shown:  # a clock may have gone back
        since = (datetime.fromisoformat(when) - start).total_seconds()
        passed.append(max(since, passed[-1] if passed else 0.0))
    unit, seconds = next(
        ((name, long) for name, long in UNITS.items() if passed[-1] > 3 * long), ("minutes", 60)
    )
    times = [since / seconds for since in passed]
    spent = [(at, _height(one[2])) for at, one in zip(times, shown, strict=True)]
    granted = [(at, _height(one[1])) for at, one in zip(times, shown, strict=True)]
    most = max(y for _, y in granted) or 1.0
    return drawing.lay_out(
        {"spent": spent, "granted": granted},
        title="ε over time",
        across=f"{unit} since the budget was created",
        up="ε, spent and granted",
        heights=[(most * part / 4, f"{most * part / 4:.3g}") for part in range(5)],
        is_stepped=True,
    )


def _height(amount: Privacy) -> float:
    return float(min(amount.epsilon, HIGHEST))


async def verify(explorer: Explorer, request: Request) -> Response:
    """Whether the history adds up: a page of its own, or only the words where htmx asks."""
    verdict = None
    if explorer.ledger is not None:
        verdict = await explorer.in_thread(_verify, explorer, explorer.ledger)
    if is_part(request):
        return HTMLResponse(render_part("verdict.html", verdict=verdict))
    return explorer.page("verified.html", "history", "Check of the ledger", verdict=verdict)


def _verify(explorer: Explorer, ledger: Ledger) -> dict[str, Any]:
    faults = [explorer.without_paths(str(fault)) for fault in ledger.verify()]
    (last,) = ledger.history(last=1)
    return {"count": last.seq, "last": last.hash, "faults": faults[:FAULTS_SHOWN]}


async def export(explorer: Explorer, request: Request) -> Response:
    """The history as it is stored, to be saved."""
    if explorer.ledger is None:
        return HTMLResponse(render_part("verdict.html", verdict=None), 404)
    head = {"Content-Disposition": 'attachment; filename="privmax-history.jsonl"'}
    return StreamingResponse(_lines(explorer.ledger), media_type="application/jsonl", headers=head)


def _lines(ledger: Ledger) -> Iterator[str]:
    for event in ledger.history():
        yield json.dumps(event.to_dict()) + "\n"


def _minute(when: str) -> str:
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M}"
