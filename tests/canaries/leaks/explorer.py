"""`privmax explore` on marked data: a real server, and somebody who opens every page."""

from __future__ import annotations

import http.client
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from leaks import faults
from leaks.child import Evidence
from leaks.field import Field
from leaks.nursery import Ended, Nursery

PAGES = ("/plan", "/try", "/ask", "/history", "/history/verify", "/history/export.jsonl",
         "/handover", "/handover/entry.yaml", "/handover/checklist.md", "/nowhere")  # fmt: skip

QUESTION = {"dataset": "log", "items": "query", "epsilon": "1", "delta": "1e-6", "k": "1"}

PATIENCE = 60.0
"""Seconds to wait for the server to start."""


class Browser:
    """Somebody who opened the printed address."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = str(parts.hostname), int(parts.port or 0)
        self._cookie = ""
        self.shown: list[tuple[str, str, bytes]] = []
        _, headers, _ = self.send("GET", f"/?{parts.query}")
        self._cookie = headers.get("set-cookie", "").partition(";")[0]

    def send(
        self, method: str, path: str, form: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        here = f"http://{self._host}:{self._port}"
        headers = {"Host": f"{self._host}:{self._port}", "Cookie": self._cookie, "Origin": here}
        body = None
        if form is not None:
            body = urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self._host, self._port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        told = {name.lower(): value for name, value in answer.getheaders()}
        self.shown.append(("pages", path.partition("?")[0], content))
        self.shown.append(("pages", f"headers of {path.partition('?')[0]}", repr(told).encode()))
        return answer.status, told, content.decode("utf-8", "replace")


def visit(nursery: Nursery, folder: Path, field: Path, situation: str) -> Ended:
    """Start a server, open every page, ask a question, and end it."""
    job = {"kind": "explorer", "situation": situation, "field": str(field), "paid": faults.STRICT}
    pid, watch = nursery.start(folder, **job)
    is_killed = situation == faults.KILL
    shown: list[tuple[str, str, bytes]] = []
    status = 0
    try:
        browser = Browser(_address(folder))
        for page in PAGES:
            browser.send("GET", page)
        browser.send("GET", f"/ask?{urlencode(QUESTION)}")
        _, _, preview = browser.send("GET", f"/ask/preview?{urlencode(QUESTION)}")
        status, told, _ = browser.send("POST", "/ask/release", _hidden(preview))
        place = told.get("location", "")
        if place:
            browser.send("GET", place)
            query = urlsplit(place).query
            for more in ("/answer/report", "/answer/release.json"):
                browser.send("GET", f"{more}?{query}")
        for page in PAGES:
            browser.send("GET", page)
        shown = browser.shown
    finally:
        os.kill(pid, signal.SIGKILL if is_killed else signal.SIGINT)
        ended = nursery.wait(pid, watch, folder)
    ended.evidence += shown
    ended.facts["asked"] = status
    return ended


def _hidden(page: str) -> dict[str, str]:
    """The fields of a page's form."""
    tags = re.findall(r"<input[^>]*>", page)
    fields = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in tags if 'hidden"' in tag]
    return {one["name"]: one.get("value", "") for one in fields if "name" in one}


def _address(folder: Path) -> str:
    """The address that the server printed."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        path = folder / "stdout"
        found = re.search(r"http://\S+", path.read_text()) if path.exists() else None
        if found:
            return found[0]
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


@contextmanager
def prepare(job: dict[str, Any], evidence: Evidence) -> Iterator[list[str]]:
    """The ledger, and the words of the command."""
    folder = Path(job["folder"])
    field = Field(Path(job["field"]))
    with faults.ledger(job, folder):
        pass
    is_bad = job["situation"] == faults.BAD_DATA
    data = field.badlog_parquet if is_bad else field.log_parquet
    with faults.fault(job["situation"], folder):
        yield ["explore", "--data", f"log={data}", "--user", "log=person", "--columns", "log=query",
               "--ledger", "budget.db", "--port", "0"]  # fmt: skip


def act(words: list[str]) -> int:
    from privmax.cli import main

    try:
        main(words, prog_name="privmax")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0
