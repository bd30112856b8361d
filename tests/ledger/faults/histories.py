"""Random histories: clients ask for anything, while they are killed and stopped, calls fail and
servers are restarted. What they were told is judged by checker.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

import crash

from faults.checker import Rules, check
from faults.scene import POSTGRES, NotTried, Scene, Trial, Yard
from privmax.ledger import Ledger
from privmax.privacy import Privacy

CLIENTS, OPERATIONS = 4, 30

RULES = Rules(Fraction(crash.EPSILON), Fraction("0.3"), Fraction("0.05"), ("ada", "ben"))

MOMENT = 0.15
"""Seconds between two faults at most."""


class History(NamedTuple):
    """What clients wrote down, and what the ledger showed in the end."""

    clients: list[list[dict[str, Any]]]
    show: Mapping[str, Any]
    verify: Mapping[str, Any]

    def faults(self) -> list[str]:
        return check(self.clients, self.show, self.verify, RULES)


def histories(yard: Yard, where: str, times: int) -> Trial:
    """As many histories, each of some clients."""
    trial = Trial("random histories, judged by what clients were told", where, times)
    for number in range(times):
        history = make_history(yard, where, trial.seen, failing=0.3 * (number % 2))
        trial.lost += history.faults()
        for lines in history.clients:
            releases = {line["n"] for line in lines if line.get("ask", {}).get("op") == "release"}
            trial.answers += sum("answer" in line.get("told", {}) for line in lines)
            trial.seen["releases asked for"] += len(releases)
            trial.seen["calls"] += sum("ask" in line for line in lines)
        trial.charges += int(Fraction(history.show["spent"]["epsilon"]) / RULES.epsilon)
    return trial


def make_history(yard: Yard, where: str, seen: dict[str, int], *, failing: float = 0) -> History:
    """Let clients work until each has made its calls.

    Args:
        yard: Where.
        where: On what kind of ledger.
        seen: Where faults are counted.
        failing: How often a call to the system fails while a client waits; for files.
    """
    place = yard.place(where) if where == POSTGRES else str(yard.quick() / "budget.db")
    scene = Scene(yard, place, budget=Privacy(RULES.budget, "1e-5"), folder=yard.quick())
    with Ledger(place, scene.name) as ledger:
        for account in RULES.accounts:
            ledger.open_account(account, Privacy(10**6))
    nursery = yard.nursery if where == POSTGRES or not failing else yard.interposed
    seeds = [random.randrange(10**9) for _ in range(CLIENTS)]

    def start(number: int) -> int:
        more = {} if nursery is yard.nursery else {"failing": failing}
        job = scene.job(number, seed=seeds[number], operations=OPERATIONS, **more)
        job |= {"accounts": RULES.accounts, "grant": str(RULES.grant)}
        return nursery.start("client", **job)

    running = {number: start(number) for number in range(CLIENTS)}
    while running:
        time.sleep(random.uniform(0, MOMENT))
        number = random.choice(list(running))
        _disturb(yard, where, running[number], seen)
        for one, process in list(running.items()):
            if _lives(process):
                continue
            status = nursery.wait(process)
            if status == 0:
                del running[one]
            elif status == -signal.SIGKILL:
                running[one] = start(one)
            else:
                raise NotTried(f"a client ended with {status}")
    logs = [scene.told(number) for number in range(CLIENTS)]
    return History(logs, _print(scene, "show"), _print(scene, "verify"))


def _disturb(yard: Yard, where: str, process: int, seen: dict[str, int]) -> None:
    fault = random.choices(["kill", "stop", "restart"], [5, 4, 1])[0]
    if fault == "restart" and where == POSTGRES:
        random.choice([yard.server.restart, yard.server.kill])()
        seen["servers restarted"] = seen.get("servers restarted", 0) + 1
    elif fault == "kill":
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            seen["kills"] = seen.get("kills", 0) + 1
    else:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
            seen["pauses"] = seen.get("pauses", 0) + 1
            time.sleep(random.uniform(0, MOMENT))
            os.kill(process, signal.SIGCONT)


def _lives(process: int) -> bool:
    """Whether a process has not ended; one that has is kept for whoever waits for it."""
    with open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] != b"Z"


def _print(scene: Scene, command: str) -> Mapping[str, Any]:
    """What a command prints of the ledger."""
    words: Sequence[str] = ["privmax", "budget", command, scene.place, "--name", scene.name]
    run = subprocess.run(
        [sys.executable, "-m", *words, "--json"], capture_output=True, text=True, check=False
    )
    if not run.stdout:
        raise NotTried(run.stderr)
    printed: Mapping[str, Any] = json.loads(run.stdout)
    return printed
