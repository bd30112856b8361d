"""History: what was asked of the ledger, what it cost, and what is left."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from privmax.display import in_words
from privmax.explore import drawing
from privmax.explore.ask_page import answer_address
from privmax.explore.markup import notice, number, rows
from privmax.explore.state import Explorer
from privmax.ledger import Event, Ledger
from privmax.ledger.events import RELEASED, RESERVED, privacy_of
from privmax.numbers import round_down, round_up
from privmax.privacy import Privacy
from privmax.report.markup import cards, code, name, paragraph, price, section, text

SHOWN = 100
"""Events that a page lists."""

UNITS = {"days": 86_400, "hours": 3_600}
"""Seconds of the units of time that a picture counts in, if it spans more than three of them."""

POINTS = 300
"""Steps that a picture has at most."""


async def show(explorer: Explorer, request: Request) -> Response:
    """The page."""
    if explorer.ledger is None:
        words = "There is no ledger. Start with --ledger FILE to see one here."
        return explorer.page("history", "History", notice(text(words)))
    parts = await explorer.in_thread(_parts, explorer, explorer.ledger)
    return explorer.page("history", "History", *parts)


def _parts(explorer: Explorer, ledger: Ledger) -> list[str]:
    latest: deque[Event] = deque(maxlen=SHOWN)
    answers: dict[str, Event] = {}
    open_charges: dict[str, Event] = {}
    steps: list[tuple[str, Privacy, Privacy]] = []
    events = 0
    for event in ledger.history():
        events += 1
        if event.kind == RELEASED:
            open_charges.pop(str(event.request), None)
            answers[str(event.request)] = event
            while len(answers) > 2 * SHOWN:
                answers.pop(next(iter(answers)))
            continue
        latest.append(event)
        if event.kind == RESERVED:
            open_charges[str(event.request)] = event
        steps.append((event.when, event.budget, event.spent))
        if len(steps) > 4 * POINTS:
            del steps[1:-1:2]
    budget, spent, left = ledger.budget, ledger.spent, ledger.remaining
    return [
        cards(
            {
                "Granted": price(budget, left=True),
                "Spent": price(spent),
                "Left": price(left, left=True),
                "Events": f"{events:,}",
            }
        ),
        _about(ledger),
        _open_requests(open_charges),
        section("What was asked", _table(explorer, latest, answers, events)),
        section("What was spent", _picture(steps)),
        _accounts(ledger),
        section("Check and keep", _tools()),
    ]


def _about(ledger: Ledger) -> str:
    unit = ledger.unit or "nobody yet: the first charge decides"
    strict = "before" if ledger.strict else "after"
    return paragraph(
        f"Ledger {name(ledger.name)}. Costs add up by the rule {code(ledger.rule)}. It protects "
        f"{text(f'one {unit}' if ledger.unit else unit)}, and is charged {strict} data is read."
    )


def _open_requests(charges: Mapping[str, Event]) -> str:
    if not charges:
        return ""
    listed = "".join(
        f'<li><a href="{text(answer_address(request))}">{text(request)}</a>, charged '
        f"{text(_minute(event.when))}</li>"
        for request, event in list(charges.items())[-20:]
    )
    return notice(
        "Charged, and never answered: something stopped in the middle. Their answers can be had "
        f"at no cost.<ul>{listed}</ul>",
        "warning",
    )


def _table(
    explorer: Explorer, latest: deque[Event], answers: Mapping[str, Event], events: int
) -> str:
    lines = [_line(explorer, event, answers.get(str(event.request))) for event in reversed(latest)]
    more = f" Only the last {SHOWN} are listed." if events > SHOWN else ""
    headings = ["when", "what", "answer", "#ε", "#δ", "#spent ε", "who"]
    return rows(headings, lines, f"The ledger, the latest first.{more}")


def _line(explorer: Explorer, event: Event, answered: Event | None) -> list[str]:
    what, cost = _what(explorer, event), Privacy(0, 0)
    if event.kind == RESERVED:
        cost = privacy_of(event.body["price"])
        what = f'<a href="{text(answer_address(str(event.request)))}">{what}</a>'
    amounts = [number(""), number("")]
    if event.kind == RESERVED:
        amounts = [number(round_up(cost.epsilon)), number(round_up(cost.delta))]
    return [
        f'<th scope="row" class="when">{text(_minute(event.when))}</th>',
        what,
        _answer(answered) if event.kind == RESERVED else "",
        *amounts,
        number(round_up(event.spent.epsilon)),
        name(event.who),
    ]


def _what(explorer: Explorer, event: Event) -> str:
    if event.kind != RESERVED:
        words = {"created": "budget created", "granted": "more was granted"}
        account = f": {in_words(event.account)}" if event.account else ""
        return text(words.get(event.kind, event.kind) + account)
    what: dict[str, Any] = event.body.get("what", {})
    options = what.get("options", {})
    about = [what.get("dataset") or "", str(options.get("item") or _column(what))]
    if options.get("k", 1) != 1:
        about.append(f"k {options['k']}")
    if options.get("where"):
        about.append(str(options["where"]))
    shown = ", ".join(in_words(one) for one in about if one)
    command = str(what.get("command", "release"))
    return text(explorer.without_paths(f"{command}: {shown}" if shown else command))


def _column(what: Mapping[str, Any]) -> str:
    return str(what.get("columns", {}).get("item", ""))


def _answer(answered: Event | None) -> str:
    if answered is None:
        return "<em>not recorded</em>"
    items = answered.body.get("answer", {}).get("items", [])
    if not items:
        return "no answer"
    shown = [in_words(item if isinstance(item, str | int) else json.dumps(item)) for item in items]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return name(", ".join(shown[:3])) + text(more)


def _picture(steps: list[tuple[str, Privacy, Privacy]]) -> str:
    if len(steps) < 2:
        return paragraph("Nothing was spent yet.")
    start = datetime.fromisoformat(steps[0][0])
    shown = steps[:: max(1, len(steps) // POINTS)]
    if shown[-1] is not steps[-1]:
        shown.append(steps[-1])
    shown.append((datetime.now(UTC).isoformat(), *steps[-1][1:]))
    passed: list[float] = []
    for when, _, _ in shown:  # a clock may have gone back
        since = (datetime.fromisoformat(when) - start).total_seconds()
        passed.append(max(since, passed[-1] if passed else 0.0))
    unit, seconds = next(
        ((name, long) for name, long in UNITS.items() if passed[-1] > 3 * long), ("minutes", 60)
    )
    times = [since / seconds for since in passed]
    spent = [(at, float(one[2].epsilon)) for at, one in zip(times, shown, strict=True)]
    granted = [(at, float(one[1].epsilon)) for at, one in zip(times, shown, strict=True)]
    most = max(y for _, y in granted) or 1.0
    return drawing.lines(
        {"spent": spent, "granted": granted},
        title="ε over time",
        across=f"{unit} since the budget was created",
        up="ε, spent and granted",
        heights=[(most * part / 4, f"{most * part / 4:.3g}") for part in range(5)],
        is_stepped=True,
    )


def _accounts(ledger: Ledger) -> str:
    found = ledger.accounts()
    if not found:
        return ""
    lines = [
        [
            f'<th scope="row">{name(account)}</th>',
            number(round_down(budget.epsilon)),
            number(round_up(spent.epsilon)),
            number(round_down(budget.delta)),
            number(round_up(spent.delta)),
        ]
        for account, (budget, spent) in sorted(found.items())[:SHOWN]
    ]
    headings = ["account", "#ε granted", "#ε spent", "#δ granted", "#δ spent"]
    return section("Accounts", rows(headings, lines, "Accounts of the ledger"))


def _tools() -> str:
    return (
        '<p class="buttons"><button type="button" hx-get="/history/verify" '
        'hx-target="#verified" hx-indicator="#verified-box">Verify the ledger</button> '
        '<a class="button quiet" href="/history/export.jsonl">Save the history</a></p>'
        '<div id="verified-box"><p class="working" role="status"><span>Checking …</span></p>'
        '<div id="verified" role="status"></div></div>'
        "<noscript><p><a href='/history/verify'>Verify the ledger</a></p></noscript>"
    )


async def verify(explorer: Explorer, request: Request) -> Response:
    """Whether the history adds up."""
    if explorer.ledger is None:
        return HTMLResponse(notice("There is no ledger."))
    count, last, faults = await explorer.in_thread(_verify, explorer.ledger)
    if faults:
        told = "".join(f"<li>{text(explorer.without_paths(str(one)))}</li>" for one in faults[:20])
        return HTMLResponse(notice(f"The ledger is not sound:<ul>{told}</ul>", "error"))
    words = (
        f"All {count:,} events add up, and each follows from the one before. The hash of the last "
        f"one is {code(last)}: note it elsewhere, and compare it next time."
    )
    return HTMLResponse(notice(words, "good"))


def _verify(ledger: Ledger) -> tuple[int, str, list[object]]:
    count, last = 0, ""
    for event in ledger.history():
        count, last = event.seq, event.hash
    return count, last, list(ledger.verify())


async def export(explorer: Explorer, request: Request) -> Response:
    """The history as it is stored, to be saved."""
    if explorer.ledger is None:
        return HTMLResponse(notice("There is no ledger."), 404)
    head = {"Content-Disposition": 'attachment; filename="privmax-history.jsonl"'}
    return StreamingResponse(_lines(explorer.ledger), media_type="application/jsonl", headers=head)


def _lines(ledger: Ledger) -> Iterator[str]:
    for event in ledger.history():
        yield json.dumps(vars(event), ensure_ascii=False) + "\n"


def _minute(when: str) -> str:
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M}"
