"""`privmax explore` under load: releases per second by fifty clients, beside the ledger's own rate.

    ./dev python -m lab.benchmarks.speed.explore [--part NAME]

Each client is a thread with a connection of its own to a server on loopback. It asks what a
question costs, confirms it and reads the answer: three requests a release. Beside it the same
releases are made by the library in one process, and charges are made and recorded with no
release at all. The part `budget` asks for more than a budget allows: what was granted, spent and
refused must add up.
"""

from __future__ import annotations

import argparse
import http.client
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.explore.datasets import Dataset
from privmax.explore.item_question import Asked
from privmax.ledger import Charge, Ledger
from privmax.privacy import Privacy

CLIENTS, SECONDS, ROUNDS = 50, 8.0, 2
COST = Privacy("1/100", "1e-9")
QUESTION = {"dataset": "counts", "items": "query", "epsilon": "0.01", "delta": "1e-9", "k": "1"}
ALLOWED = 200
"""Releases that the budget of the part `budget` allows; twice as many are asked for."""


@dataclass
class Server:
    """A server with a ledger of its own."""

    folder: Path
    port: int
    key: str

    def ledger(self) -> Ledger:
        return Ledger(self.folder / "budget.db")


@contextmanager
def a_server(budget: Privacy) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="privmax-explore-") as folder:
        Ledger.create(Path(folder) / "budget.db", budget=budget, strict=True).close()
        words = ["explore", "--ledger", "budget.db", "--data", "counts=sample:counts"]
        process = subprocess.Popen(
            [sys.executable, "-m", "privmax", *words, "--port", "0"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/\?key=(\S+)", process.stdout.readline())
            assert found is not None
            yield Server(Path(folder), int(found[1]), found[2])
        finally:
            process.terminate()
            process.wait(20)


@dataclass
class Client:
    """One browser: a connection, a cookie, and the token of its forms."""

    server: Server
    number: int
    cookie: str = ""
    times: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def enter(self) -> Client:
        self._line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        _, headers, _ = self._ask("GET", f"/?key={self.server.key}")
        self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def release(self, number: int) -> None:
        """One release, from the preview to the answer."""
        start = time.perf_counter()
        request = f"client-{self.number}-{number}"
        asked = urlencode({**QUESTION, "request": request})
        status, _, page = self._ask("GET", f"/ask/preview?{asked}")
        token = re.search(r'name="token" value="([^"]+)"', page)
        if status != 200 or token is None:
            self.answers["refused at the preview" if status == 200 else f"status {status}"] += 1
            return
        form = f"{asked}&{urlencode({'token': token[1]})}"
        status, headers, _ = self._ask("POST", "/ask/release", form)
        if status != 303:
            self.answers["refused" if status == 409 else f"status {status}"] += 1
            return
        status, _, page = self._ask("GET", headers["location"])
        is_right = status == 200 and "Left after it" in page
        self.answers["released" if is_right else "no answer page"] += 1
        self.times.append(time.perf_counter() - start)

    def _ask(
        self, method: str, address: str, body: str | None = None
    ) -> tuple[int, http.client.HTTPMessage, str]:
        headers = {"Cookie": self.cookie, "Origin": f"http://127.0.0.1:{self.server.port}"}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._line.request(method, address, body, headers)
        answer = self._line.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def load(options: argparse.Namespace) -> Rows:
    """Releases per second, by who makes them."""
    clients, seconds, rounds = (5, 1.0, 1) if options.quick else (CLIENTS, SECONDS, ROUNDS)
    found: dict[str, list[Row]] = {}
    for number in range(rounds):
        found.setdefault(f"{clients} clients, over pages", []).append(by_clients(clients, seconds))
        found.setdefault("1 client, over pages", []).append(by_clients(1, seconds))
        found.setdefault("the library, one thread", []).append(by_library(seconds, 1))
        found.setdefault("the library, 24 threads", []).append(by_library(seconds, 24))
        found.setdefault("charge and record alone", []).append(by_ledger(seconds))
        note(f"round {number + 1} of {rounds}")
    rows: list[Row] = []
    for who, runs in found.items():
        rates = [run["rate"] for run in runs]
        waits = [run["wait"] for run in runs if run["wait"] is not None]
        rows.append(
            {
                "who": who,
                "rate": median(rates),
                "least": min(rates),
                "most": max(rates),
                "wait": median(waits) if waits else None,
                "releases": sum(run["releases"] for run in runs),
                "errors": sum(run["errors"] for run in runs),
                "wrong": sum(run["wrong"] for run in runs),
            }
        )
    return {"load": rows}


def by_clients(clients: int, seconds: float) -> Row:
    with a_server(Privacy(10**6, "0.5")) as server:
        everybody = [Client(server, number).enter() for number in range(clients)]
        for one in everybody[:2]:
            one.release(-1)  # what is loaded late is loaded now
        before = sum(one.answers["released"] for one in everybody)
        end = time.perf_counter() + seconds

        def work(one: Client) -> None:
            number = 0
            while time.perf_counter() < end:
                one.release(number)
                number += 1

        start = time.perf_counter()
        with ThreadPoolExecutor(clients) as threads:
            list(threads.map(work, everybody))
        taken = time.perf_counter() - start
        answers = sum((one.answers for one in everybody), Counter())
        with server.ledger() as ledger:
            spent, faults = ledger.spent, len(ledger.verify())
    released = answers["released"]
    times = [taken for one in everybody for taken in one.times]
    return {
        "rate": (released - before) / taken,
        "wait": median(times),
        "releases": released,
        "errors": sum(answers.values()) - released,
        "wrong": faults + (spent.epsilon != released * COST.epsilon),
    }


def by_library(seconds: float, threads: int) -> Row:
    """The same releases with no server: the question, its data and its ledger are the same."""
    with tempfile.TemporaryDirectory(prefix="privmax-explore-") as folder:
        where = Path(folder) / "budget.db"
        with Ledger.create(where, budget=Privacy(10**6, "0.5"), strict=True) as ledger:
            dataset = Dataset.of("counts", {"file": "sample:counts"})
            prepared = Asked("counts", ("query",), "0.01", "1e-9").prepare(dataset)

            def once() -> None:
                prepared.answer(ledger.request(dataset="counts"))

            once()
            return _repeat(once, seconds, threads, ledger)


def by_ledger(seconds: float) -> Row:
    """Charges and records with nothing between them."""
    with tempfile.TemporaryDirectory(prefix="privmax-explore-") as folder:
        where = Path(folder) / "budget.db"
        with Ledger.create(where, budget=Privacy(10**6, "0.5"), strict=True) as ledger:
            cost = Charge(COST, unit="user")

            def once() -> None:
                charged = ledger.charge(cost, {"command": "select"})
                charged.record({"items": ["tea"], "free": {}})

            once()
            return _repeat(once, seconds, 1, ledger)


def _repeat(once: Callable[[], None], seconds: float, threads: int, ledger: Ledger) -> Row:
    end = time.perf_counter() + seconds

    def work(_: int) -> list[float]:
        times = []
        while (start := time.perf_counter()) < end:
            once()
            times.append(time.perf_counter() - start)
        return times

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        times = [taken for some in pool.map(work, range(threads)) for taken in some]
    taken = time.perf_counter() - start
    wrong = len(ledger.verify()) + (ledger.spent.epsilon != (len(times) + 1) * COST.epsilon)
    return {
        "rate": len(times) / taken,
        "wait": median(times),
        "releases": len(times),
        "errors": 0,
        "wrong": wrong,
    }


def budget(options: argparse.Namespace) -> Rows:
    """Fifty clients ask for twice what there is."""
    clients, allowed = (5, 20) if options.quick else (CLIENTS, ALLOWED)
    each = 2 * allowed // clients
    with a_server(Privacy(allowed * COST.epsilon, "0.5")) as server:
        everybody = [Client(server, number).enter() for number in range(clients)]

        def work(one: Client) -> None:
            for number in range(each):
                one.release(number)

        with ThreadPoolExecutor(clients) as threads:
            list(threads.map(work, everybody))
        answers = sum((one.answers for one in everybody), Counter())
        with server.ledger() as ledger:
            spent, granted, faults = ledger.spent, ledger.budget, len(ledger.verify())
    refused = answers["refused"] + answers["refused at the preview"]
    return {
        "budget": [
            {
                "clients": clients,
                "asked": clients * each,
                "released": answers["released"],
                "refused": refused,
                "errors": sum(answers.values()) - answers["released"] - refused,
                "spent": float(spent.epsilon),
                "granted": float(granted.epsilon),
                "faults": faults,
            }
        ]
    }


if __name__ == "__main__":
    Benchmark(
        "explore",
        "speed.explore",
        {"load": load, "budget": budget},
        packages=("privmax", "starlette", "uvicorn"),
        settings={"clients": CLIENTS, "seconds": SECONDS, "rounds": ROUNDS, "allowed": ALLOWED},
    ).main()
