"""Hand over: a deployment as facts for a registry, and as a checklist for a reviewer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from privmax.errors import LedgerError, ParameterError
from privmax.explore.ask_page import answer_address
from privmax.explore.markup import choice, notice, rows
from privmax.explore.state import Explorer, fields
from privmax.report import checklist, registry
from privmax.report.deployment import Deployment
from privmax.report.markup import code, paragraph, section, text

TIERS = {"1": "1: who, what and when", "2": "2: also the guarantee", "3": "3: everything"}


async def show(explorer: Explorer, request: Request) -> Response:
    """The page."""
    found = await _find_deployment(explorer, request)
    if isinstance(found, str):
        return explorer.page("handover", "Hand over", found)
    given = fields(request)
    tier = given.get("tier", "3") if given.get("tier") in TIERS else "3"
    entry = registry.fields(found, int(tier))
    missing = [one for one in entry if one.add]
    about = {key: given[key] for key in ("request", "tier") if given.get(key)}
    query = f"?{text(urlencode(about))}" if about else ""
    return explorer.page(
        "handover",
        "Hand over",
        paragraph(
            f"What the ledger {code(explorer.ledger.name if explorer.ledger else '')} tells about "
            "this deployment, for the people who publish it and those who review it. Everything "
            "here is public."
        ),
        _form(given, tier),
        _report(given.get("request", "")),
        section(
            "For the registry of deployments",
            paragraph(
                f"Fields of {code(registry.SOURCE)}. A person must add or check "
                f"{len(missing)} of {len(entry)}; each is marked."
            ),
            f'<pre tabindex="0" class="tall"><code>{_escape(registry.to_yaml(entry))}</code></pre>',
            f'<p class="buttons"><a class="button" href="/handover/registry.yaml{query}">Save as '
            f"YAML</a></p>",
            paragraph(f"The same without a browser: {code(_command(given, tier))}"),
        ),
        section(
            checklist.TITLE,
            paragraph(f"Terms of {text(checklist.SOURCE)}."),
            _checklist(found),
            f'<p class="buttons"><a class="button" href="/handover/checklist.md{query}">Save the '
            "checklist</a></p>",
        ),
    )


async def _find_deployment(explorer: Explorer, request: Request) -> Deployment | str:
    if explorer.ledger is None:
        return notice("There is no ledger. Start with --ledger FILE.")
    asked = fields(request).get("request") or None
    try:
        return await explorer.in_thread(Deployment.of, explorer.ledger, asked)
    except (LedgerError, ParameterError) as error:
        return notice(text(explorer.describe(error)), "error")


def _form(given: dict[str, str], tier: str) -> str:
    return (
        '<form class="panel row" action="/handover" method="get" aria-label="What to hand over">'
        '<div class="field"><label for="request">request</label><input id="request" '
        f'name="request" value="{text(given.get("request", ""))}" autocomplete="off" '
        'placeholder="all releases"></div>'
        + choice("tier", "tier", TIERS, tier)
        + '<p class="buttons"><button type="submit">Show</button></p></form>'
    )


def _report(request: str) -> str:
    if not request:
        return paragraph(
            "The report about a release stands on the page of its answer: see the <a "
            'href="/history">history</a>.'
        )
    place = text(answer_address(request, "/report"))
    return (
        f'<p class="buttons"><a class="button" href="{place}&amp;download=yes">Save the report '
        "(HTML)</a></p>"
    )


def _command(given: dict[str, str], tier: str) -> str:
    words = ["privmax report --registry out.yaml"]
    if given.get("request"):
        words.append("--request ID")
    if tier != "3":
        words.append(f"--tier {tier}")
    return " ".join(words)


def _escape(written: str) -> str:
    return "\n".join(map(text, written.splitlines()))


def _checklist(found: Deployment) -> str:
    states = {"known": "known", "partly": "to check", "open": "open"}
    lines: list[list[str]] = [
        [
            f'<th scope="row">{text(item.topic)}</th>',
            f'<td><span class="state {item.state}">{states[item.state]}</span></td>',
            text(item.known) or "–",
            text(item.add) or "–",
        ]
        for item in checklist.items(found)
    ]
    headings = ["topic", "state", "what is known", "a person must add"]
    return rows(headings, lines, "From the guarantee down to the surroundings")


async def save(explorer: Explorer, request: Request) -> Response:
    """One of the two as a file."""
    found = await _find_deployment(explorer, request)
    if isinstance(found, str):
        return explorer.page("handover", "Hand over", found, status=404)
    wanted = request.path_params["file"]
    tier = fields(request).get("tier", "3")
    made: dict[str, Any] = {
        "registry.yaml": lambda: registry.to_yaml(
            registry.fields(found, int(tier) if tier in TIERS else 3)
        ),
        "checklist.md": lambda: checklist.to_markdown(found),
    }
    if wanted not in made:
        return explorer.page("handover", "No such file", status=404)
    head = {"Content-Disposition": f'attachment; filename="privmax-{wanted}"'}
    return Response(made[wanted](), media_type="text/plain; charset=utf-8", headers=head)
