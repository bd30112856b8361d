"""Hand over: a deployment as facts for a registry, and as a checklist for a reviewer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from privmax.errors import LedgerError, ParameterError
from privmax.explore.ask_page import answer_address
from privmax.explore.state import Explorer, Notice, fields
from privmax.report import checklist, registry
from privmax.report.deployment import Deployment

TIERS = {"1": "1: who, what and when", "2": "2: also the guarantee", "3": "3: everything"}


async def show(explorer: Explorer, request: Request) -> Response:
    """The page."""
    deployment = await _find_deployment(explorer, request)
    if isinstance(deployment, Notice):
        return explorer.page("notice.html", "handover", "Hand over", problem=deployment)
    given = fields(request)
    ident = given.get("request", "")
    tier = given.get("tier", "3") if given.get("tier") in TIERS else "3"
    entry = registry.fields(deployment, int(tier))
    about = {key: given[key] for key in ("request", "tier") if given.get(key)}
    return explorer.page(
        "handover.html",
        "handover",
        "Hand over",
        request_id=ident,
        report_address=answer_address(ident, "/report"),
        tiers=TIERS,
        tier=tier,
        registry_source=registry.SOURCE,
        entry=entry,
        missing=len([one for one in entry if one.add]),
        yaml=registry.to_yaml(entry).rstrip("\n"),
        query=f"?{urlencode(about)}" if about else "",
        command=_command(ident, tier),
        checklist=checklist,
        items=checklist.items(deployment),
    )


async def _find_deployment(explorer: Explorer, request: Request) -> Deployment | Notice:
    if explorer.ledger is None:
        return Notice("There is no ledger. Start with --ledger FILE.")
    ident = fields(request).get("request") or None
    try:
        return await explorer.in_thread(Deployment.of, explorer.ledger, ident)
    except (LedgerError, ParameterError) as error:
        return explorer.refusal(error)


def _command(ident: str, tier: str) -> str:
    words = ["privmax report --registry out.yaml"]
    if ident:
        words.append("--request ID")
    if tier != "3":
        words.append(f"--tier {tier}")
    return " ".join(words)


async def save(explorer: Explorer, request: Request) -> Response:
    """One of the two as a file."""
    deployment = await _find_deployment(explorer, request)
    if isinstance(deployment, Notice):
        return explorer.page("notice.html", "handover", "Hand over", problem=deployment, status=404)
    file = request.path_params["file"]
    tier = fields(request).get("tier", "3")
    made: dict[str, Any] = {
        "registry.yaml": lambda: registry.to_yaml(
            registry.fields(deployment, int(tier) if tier in TIERS else 3)
        ),
        "checklist.md": lambda: checklist.to_markdown(deployment),
    }
    if file not in made:
        return explorer.page("frame.html", "handover", "No such file", status=404)
    head = {"Content-Disposition": f'attachment; filename="privmax-{file}"'}
    return Response(made[file](), media_type="text/plain; charset=utf-8", headers=head)
