"""A million charges to one ledger, while processes and servers are killed: what is lost?

Workers charge in batches and one at a time, and record answers. Each writes what it was told into a
file of its own, outside of the ledger. Every few seconds one of them is killed in the middle of
whatever it does, and on PostgreSQL now and then the whole server. Those who come after repeat the
last requests under their ids. At the end the outside is compared with the ledger.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.harness import note
from benchmarks.ledger_scene import POSTGRES, SQLITE, Yard, asked
from privmax.errors import LedgerError
from privmax.ledger import Ledger, Price
from privmax.privacy import Privacy

CHARGES = 10**6
WORKERS = 4
BATCH = 500
KILL_EVERY, SERVER_EVERY, LOOK_EVERY = 4.0, 60.0, 5.0
"""Seconds between kills of a worker, of the server, and looks at memory and disk."""

PRICE = Price(Privacy("1/1000"), unit="row")
NAME = "load"


def load(yard: Yard, *, charges: int = CHARGES) -> dict[str, Any]:
    """Both stores, one after the other."""
    return {"load": [_load(yard, where, charges) for where in (SQLITE, POSTGRES)]}


def _load(yard: Yard, where: str, charges: int) -> dict[str, Any]:
    place, folder = yard.place(where), yard.fresh()
    Ledger.create(place, NAME, budget=Privacy(10**6)).close()
    share = charges // WORKERS
    workers = [_start(place, folder / str(number), share, number) for number in range(WORKERS)]
    began = looked = killed = crashed = time.monotonic()
    kills = crashes = 0
    over_time: list[dict[str, float]] = []
    while any(worker.poll() is None for worker in workers):
        time.sleep(0.2)
        now = time.monotonic()
        if now - looked > LOOK_EVERY:
            looked = now
            over_time.append({"seconds": now - began, **_look(yard, where, place, workers, folder)})
            note(f"{where}: {over_time[-1]}")
        if now - killed > KILL_EVERY:
            killed, number = now, random.randrange(WORKERS)
            if workers[number].poll() is None:
                workers[number].kill()
                workers[number].wait()
                kills += 1
        if where == POSTGRES and now - crashed > SERVER_EVERY:
            yard.server.kill()
            crashed, crashes = time.monotonic(), crashes + 1
        for number, worker in enumerate(workers):
            if worker.poll() not in (None, 0):
                workers[number] = _start(place, folder / str(number), share, number)
    seconds = time.monotonic() - began
    before = time.monotonic()
    lost = _lost(place, folder, charges)
    return {
        "where": where,
        "charges": charges,
        "seconds": seconds,
        "kills": kills,
        "crashes": crashes,
        "lost": lost,
        "verified": time.monotonic() - before,
        "over_time": _thinned(over_time),
    }


def _start(place: str, outside: Path, share: int, number: int) -> subprocess.Popen[bytes]:
    size = 1 if number == 0 else BATCH
    arguments = json.dumps([place, str(outside), share, number, size])
    return subprocess.Popen([sys.executable, "-m", "benchmarks.ledger_load", arguments])


def work(place: str, outside: str, share: int, number: int, size: int) -> None:
    """Charge and record what is left of a share. Batches, but for the first worker's first part."""
    done = sum(1 for _ in _told(Path(outside)))
    with Ledger(place, NAME) as ledger, open(outside, "a", encoding="utf-8") as world:
        while done < share:
            some = min(size if done < share // 50 else BATCH, share - done)
            requests = [f"{number}-{place}" for place in range(done, done + some)]
            try:
                answers = _answers(ledger, requests)
            except LedgerError as error:
                print(f"worker {number}: {str(error)[:200]}", file=sys.stderr)
                time.sleep(0.2)
                continue
            told = zip(requests, answers, strict=True)
            world.write("".join(f"{request} {answer}\n" for request, answer in told))
            world.flush()
            done += some


def _answers(ledger: Ledger, requests: list[str]) -> list[int]:
    """One draw for each request, as a nightly job makes them."""
    what = {"command": "load"}
    if len(requests) == 1:
        reservation = ledger.charge(PRICE, what, request=requests[0])
        drawn = random.SystemRandom().randrange(10**6)
        return [reservation.answer if reservation.recorded else reservation.record(drawn)]
    with ledger.batch() as batch:
        held = [batch.charge(PRICE, what, request=request) for request in requests]
    with ledger.batch() as batch:
        for reservation in held:
            if not reservation.recorded:
                batch.record(reservation, random.SystemRandom().randrange(10**6))
    return [reservation.answer for reservation in held]


def _told(outside: Path) -> Iterator[tuple[str, int]]:
    """What a worker was told; a line that is cut off was told to nobody."""
    with suppress(FileNotFoundError):
        for line in outside.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                request, answer = line.split()
                yield request, int(answer)


def _lost(place: str, folder: Path, charges: int) -> list[str]:
    """All that is wrong: with the history, with its sum, or beside what the outside was told."""
    with Ledger(place, NAME) as ledger:
        lost = [f"verify finds: {fault}" for fault in ledger.verify()]
        if ledger.spent != Privacy(charges * PRICE.privacy.epsilon):
            lost.append("a charge, or there is one too many")
        outside = {request: answer for file in folder.iterdir() for request, answer in _told(file)}
        if len(outside) != charges:
            lost.append("a request")
        for event in ledger.history():
            if (
                event.kind == "released"
                and outside.pop(str(event.request), None) != event.body["answer"]
            ):
                lost.append(f"the answer to {event.request}")
        lost += [f"the record of {request}" for request in outside]
    return lost[:20]


def _look(
    yard: Yard, where: str, place: str, workers: list[subprocess.Popen[bytes]], folder: Path
) -> dict[str, float]:
    """Charges so far, megabytes of the largest worker and, on PostgreSQL, session, and on disk."""
    told = sum(file.stat().st_size for file in folder.iterdir()) / 16
    megabytes = max((_resident(worker.pid) for worker in workers), default=0.0)
    if where == SQLITE:
        return {"told": told, "memory": megabytes, "disk": Path(place).stat().st_size / 1e6}
    try:
        ((size,),) = asked(place, "SELECT pg_total_relation_size('privmax_events')")
        sessions = asked(
            place, "SELECT pid FROM pg_stat_activity WHERE application_name = 'privmax'"
        )
    except Exception:  # it was killed a moment ago
        return {"told": told, "memory": megabytes, "disk": 0.0, "server": 0.0}
    server = max((_resident(pid) for (pid,) in sessions), default=0.0)
    return {"told": told, "memory": megabytes, "disk": size / 1e6, "server": server}


def _resident(process: int) -> float:
    """Megabytes that a process alone holds in memory."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1e3
    return 0.0


def _thinned(rows: list[dict[str, float]], most: int = 12) -> list[dict[str, float]]:
    """Some of the rows, evenly, with the last."""
    step = max(1, len(rows) // most)
    return [{name: round(value, 1) for name, value in row.items()} for row in rows[::-step][::-1]]


if __name__ == "__main__":
    os.environ.pop("PRIVMAX_LEDGER", None)
    work(*json.loads(sys.argv[1]))
