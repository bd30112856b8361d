"""All that reads the history of a ledger, to be run on one that others wrote to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from click.testing import CliRunner
from starlette.testclient import TestClient

from privmax.cli import main
from privmax.explore.datasets import Dataset
from privmax.explore.server import application, gate_for
from privmax.explore.state import Explorer
from privmax.explore.work import Pool
from privmax.ledger import Ledger
from privmax.report import checklist, registry
from privmax.report.deployment import Deployment

PORT = 8765


def run(command: str, ledger: Ledger, *more: str) -> str:
    given = ["budget", command, str(ledger._where), "--name", ledger.name, *more]
    result = CliRunner().invoke(main, given)
    assert result.exit_code in (0, 1), result.output
    assert result.exit_code == 0 or command in ("verify", "show"), result.output
    return result.stdout


def history(ledger: Ledger, last: int, request: str | None) -> None:
    assert run("history", ledger, "--last", str(last))
    found = json.loads(run("history", ledger, "--last", str(last), "--json"))
    assert len(found["events"]) <= last


def history_on_a_narrow_screen(ledger: Ledger, last: int, request: str | None) -> None:
    from privmax.cli.commands.budget.history import _narrow_history

    assert _narrow_history(list(ledger.history(last=last))).row_count <= last


def show(ledger: Ledger, last: int, request: str | None) -> None:
    assert run("show", ledger)
    json.loads(run("show", ledger, "--json"))


def export(ledger: Ledger, last: int, request: str | None) -> None:
    for line in run("export", ledger).splitlines()[-last:]:
        json.loads(line)


def verify(ledger: Ledger, last: int, request: str | None) -> None:
    assert run("verify", ledger)


def deployment(ledger: Ledger, last: int, request: str | None) -> None:
    for asked in (None, request):
        charged = asked is not None and ledger.find(asked)[0]
        if asked is None or charged:
            found = Deployment.of(ledger, asked)
            assert registry.to_yaml(registry.fields(found))
            assert checklist.to_markdown(found)


def plot(ledger: Ledger, last: int, request: str | None) -> None:
    from privmax.plots import spending

    assert spending(ledger.history(), title="x") is not None


def explore(ledger: Ledger, last: int, *requests: str | None) -> None:
    explorer = Explorer(
        gate_for("127.0.0.1", PORT, own_user=False), pool(), ledger, {"log": counts()}
    )
    here = f"http://127.0.0.1:{PORT}"
    served = application(explorer)
    with TestClient(served, base_url=here) as client:
        client.get(f"/?key={explorer.gate.key}")
        for page in ("/history", "/history/verify", "/history/export.jsonl", "/handover"):
            assert client.get(page).status_code == 200
        for request in filter(None, requests):
            assert client.get("/answer", params={"request": request}).status_code == 200


@cache
def pool() -> Pool:
    return Pool()


@cache
def counts() -> Dataset:
    return Dataset.of("log", {"file": "sample:counts"})


READERS: list[Callable[..., None]] = [
    history, history_on_a_narrow_screen, show, export, verify, deployment, plot, explore,
]  # fmt: skip


def read_everything(ledger: Ledger, last: int = 1000, request: str | None = None) -> None:
    for reader in READERS:
        reader(ledger, last, request)
