"""Ledgers: faults that were made to happen, and what was lost; charges per second, and what one
selection pays.

    ./dev python -m benchmarks.ledger [--part faults|speed|load|all] [--quick] [--output FILE]

The faults need a PostgreSQL server's programs and, for small disks, root. What was lost must be
nothing. Speed is set beside what the disk can do: a commit is on the disk before it counts, so no
charge is faster than one write that is put there (fsync).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks import ledger_load
from benchmarks.harness import RESULTS, Aim, about_run, note, store
from benchmarks.ledger_damage import (
    cut_files,
    edited_events,
    edited_files,
    odd_names,
    wrong_clocks,
    wrong_versions,
)
from benchmarks.ledger_disks import full_disks, full_files, full_servers, read_only
from benchmarks.ledger_faults import (
    RESTARTS,
    kills,
    kills_of_makers,
    lost_replies,
    many_processes,
    one_request_of_many,
    races_to_create,
    restarts,
)
from benchmarks.ledger_scene import BUDGET, POSTGRES, SQLITE, Trial, Yard, asked
from benchmarks.tables import ledger_fault_tables, ledger_tables, print_tables
from privmax import select
from privmax.ledger import Ledger, Price
from privmax.privacy import Privacy

PARTS = ("faults", "speed", "load")


@dataclass(frozen=True)
class Entry:
    """A trial, where it is made, how often for the stored result, and how often in a test."""

    trial: Callable[[Yard, str, int], Trial]
    where: str
    times: int
    few: int
    needs: str = ""


def _everywhere(trial: Callable[[Yard, str, int], Trial], times: int, few: int) -> list[Entry]:
    return [Entry(trial, where, times, few) for where in (SQLITE, POSTGRES)]


TRIALS: list[Entry] = [
    *_everywhere(many_processes, 10, 1),
    *_everywhere(one_request_of_many, 100, 5),
    *_everywhere(races_to_create, 50, 2),
    *_everywhere(kills, 500, 24),
    *_everywhere(kills_of_makers, 200, 4),
    *[Entry(partial(restarts, how=how), POSTGRES, 30, 1) for how in RESTARTS],
    *[Entry(partial(lost_replies, when=when), POSTGRES, 200, 6) for when in ("before", "after")],
    Entry(full_files, SQLITE, 200, 6),
    Entry(full_disks, SQLITE, 200, 6, needs="root"),
    Entry(full_servers, POSTGRES, 10, 1, needs="root"),
    Entry(read_only, SQLITE, 50, 2),
    *_everywhere(wrong_versions, 50, 2),
    Entry(cut_files, SQLITE, 1000, 20),
    Entry(edited_files, SQLITE, 5000, 60),
    *_everywhere(edited_events, 160, 16),
    *_everywhere(wrong_clocks, 100, 6),
    *_everywhere(odd_names, 16, 16),
]


def named(entry: Entry) -> str:
    """A short name for what an entry tries."""
    if isinstance(entry.trial, partial):
        return f"{entry.trial.func.__name__}-{'-'.join(entry.trial.keywords.values())}".replace(
            " ", "-"
        )
    return entry.trial.__name__


def faults(*, quick: bool) -> dict[str, Any]:
    rows = []
    with Yard() as yard:
        for entry in TRIALS:
            note(f"{named(entry)}, {entry.where}")
            trial = entry.trial(yard, entry.where, entry.few if quick else entry.times)
            if trial.lost:
                note(f"  LOST: {trial.lost[:3]}")
            rows.append(trial.row())
    return {"faults": rows}


# Speed

PROCESSES = (1, 4, 16)
SECONDS, ROUNDS = 5.0, 5
"""Of charging at a time, and how often each number of processes has its turn."""

CANDIDATES = (10**3, 10**6)
SELECTIONS = 40
HISTORY = (100, 10_000)
SYNCS = 300

FLAT = Aim("a charge after 10^4 events costs what one after 10^2 does (within a half)", most=1.5)


def speed(*, quick: bool) -> dict[str, Any]:
    seconds, rounds = (0.5, 1) if quick else (SECONDS, ROUNDS)
    with Yard() as yard:
        new: dict[str, Any] = {"fsync": [_sync(yard)]}
        new["rates"] = _rates(yard, seconds, rounds)
        new["fsync"].append(_sync(yard))
        new["selections"] = [
            row
            for size in CANDIDATES
            for row in _selections(yard, size, 3 if quick else SELECTIONS)
        ]
        new["fsync"].append(_sync(yard))
        new["history"] = _histories(yard, (20, 200) if quick else HISTORY)
        new["fsync"].append(_sync(yard))
        new["server"] = asked(yard.server.url, "SHOW server_version")[0][0]
    return new


def _sync(yard: Yard) -> float:
    """Seconds that the disk takes to put 4 KiB, appended to a file, where a power cut does not
    reach them.
    """
    times = []
    with (yard.fresh() / "floor").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            before = time.perf_counter()
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - before)
    return median(times)


ONE, BATCHES, PARTS_EACH = "one at a time", "batches of 100", "a part each"
HOW = {ONE: PROCESSES, BATCHES: (1, 16), PARTS_EACH: (4, 16)}
"""How processes charge: all of them one ledger, or each a part that was split off."""


def _rates(yard: Yard, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Charges per second by everybody together, each number of processes in turn."""
    found: dict[tuple[str, str, int], list[float]] = {}
    turns = [
        (where, how, number) for where in (SQLITE, POSTGRES) for how in HOW for number in HOW[how]
    ]
    for number in range(rounds):
        for turn in turns:
            note(f"round {number + 1}: {turn[0]}, {turn[1]}, {turn[2]} processes")
            found.setdefault(turn, []).append(_rate(yard, *turn, seconds))
    return [
        {
            "where": where,
            "how": how,
            "processes": processes,
            "rate": median(rates),
            "least": min(rates),
            "most": max(rates),
        }
        for (where, how, processes), rates in found.items()
    ]


def _rate(yard: Yard, where: str, how: str, processes: int, seconds: float) -> float:
    folder, place = yard.fresh(), yard.place(where)
    name = f"speed {folder.name}"
    outside = [str(folder / str(number)) for number in range(processes)]
    ledgers = [(place, name)] * processes
    with Ledger.create(place, name, budget=BUDGET) as whole:
        if how == PARTS_EACH:
            ledgers = [
                (place if where == POSTGRES else str(folder / f"{number}.db"), f"{name} {number}")
                for number in range(processes)
            ]
            for place, part in ledgers:
                whole.split(part, Privacy(10**4), where=place, unit="row").close()
    job = {
        "at": time.time() + 1 + 0.1 * processes,
        "seconds": seconds,
        "batch": 100 if how == BATCHES else 1,
    }
    jobs = [
        {**job, "where": place, "name": part, "outside": file}
        for (place, part), file in zip(ledgers, outside, strict=True)
    ]
    if any(yard.nursery.run("charge", jobs)):
        raise SystemExit("a process that charges failed, or was not ready in time")
    charges: int = sum(yard.crash.Outside(Path(file)).told()[0]["charges"] for file in outside)
    spent = Privacy(0)
    for place, part in dict.fromkeys(ledgers):
        with Ledger(place, part) as ledger:
            spent += ledger.spent
    if spent != Privacy(charges * Privacy(yard.crash.EPSILON).epsilon):
        raise SystemExit("the charges are not what is spent")
    return charges / seconds


def _selections(yard: Yard, size: int, times: int) -> Iterator[dict[str, Any]]:
    """One selection without a ledger and with each, in turn."""
    import numpy as np

    scores = np.random.default_rng(7).integers(0, 1000, size)
    places = {SQLITE: yard.place(SQLITE), POSTGRES: yard.place(POSTGRES)}
    ledgers: dict[str, Ledger | None] = {"none": None}
    ledgers |= {where: Ledger(place, f"select {size}", BUDGET) for where, place in places.items()}
    found: dict[str, list[float]] = {where: [] for where in ledgers}
    for turn in range(times + 1):
        for where, ledger in ledgers.items():
            before = time.perf_counter()
            select(scores, epsilon=1, universe=size, ledger=ledger)
            if turn:  # the first warms up
                found[where].append(time.perf_counter() - before)
    for ledger in ledgers.values():
        if ledger is not None:
            ledger.close()
    for where, times_of in found.items():
        yield {
            "where": where,
            "candidates": size,
            "wall": median(times_of),
            "repeats": len(times_of),
        }


def _histories(yard: Yard, lengths: tuple[int, int]) -> list[dict[str, Any]]:
    """What a charge costs when many went before, by each rule. "pld" costs more with each price
    that is new.
    """
    rows = []
    for rule, longest in (("basic", lengths[1]), ("zcdp", lengths[1]), ("pld", lengths[0])):
        note(f"rule {rule}")
        with Ledger.create(yard.place(SQLITE), rule, budget=BUDGET, rule=rule) as ledger:
            times: list[float] = []
            for number in count():
                before = time.perf_counter()
                ledger.charge(Price(Privacy("1/1000")), {"number": number})
                times.append(time.perf_counter() - before)
                if number + 1 in lengths:
                    last = times[-max(10, lengths[0] // 2) :]
                    rows.append(
                        {
                            "rule": rule,
                            "events": number + 1,
                            "wall": median(last),
                            "repeats": len(last),
                        }
                    )
                if number + 1 >= longest:
                    break
    return rows


def load(*, quick: bool) -> dict[str, Any]:
    with Yard() as yard:
        return ledger_load.load(yard, charges=2000 if quick else ledger_load.CHARGES)


def judgements(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    walls: dict[str, list[float]] = {}
    for row in history:
        walls.setdefault(row["rule"], []).append(row["wall"])
    return [
        FLAT.judge(rule, {"": found[1] / found[0]})
        for rule, found in walls.items()
        if len(found) == 2
    ]


# The result


def run_facts(part: str) -> dict[str, Any]:
    """Where, when and with what a part ran."""
    packages = ("privmax", "psycopg")
    return {
        **about_run(quick=False),
        "part": part,
        "command": f"./dev python -m benchmarks.ledger --part {part}",
        "versions": {
            **{name: metadata.version(name) for name in packages},
            "SQLite": sqlite3.sqlite_version,
        },
        "disk": _file_system(Path(tempfile.gettempdir())),
    }


def _file_system(folder: Path) -> str:
    """The kind of file system that holds a folder, where the system tells."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    above = [(len(where), kind) for where, kind in mounts if folder.resolve().is_relative_to(where)]
    return max(above)[1] if above else "unknown"


def stored(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def merged(before: dict[str, Any], facts: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A stored result with one part made anew."""
    runs = {run["part"]: run for run in before.get("runs", [])} | {facts["part"]: facts}
    kept = {
        key: before.get(key, [])
        for key in (
            "faults",
            "fsync",
            "rates",
            "selections",
            "history",
            "server",
            "load",
        )
    }
    result = {
        "benchmark": "ledger",
        "run": facts,
        "settings": {
            "seconds": SECONDS,
            "rounds": ROUNDS,
            "selections": SELECTIONS,
            "syncs": SYNCS,
        },
        "runs": [runs[part] for part in PARTS if part in runs],
        **kept,
        **new,
    }
    return {**result, "aims": judgements(result["history"])}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Make faults happen to ledgers, and measure what they cost."
    )
    parser.add_argument(
        "--part", choices=[*PARTS, "all"], default="all", help="the part to run (default: all)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few times only; stores nothing by itself"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/ledger.json)"
    )
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # servers, mounted disks and folders are cleared away
    target = options.output or (None if options.quick else RESULTS / "ledger.json")
    result = stored(target) if target else {}
    for part in PARTS:
        if options.part in (part, "all"):
            facts = run_facts(part)
            act = {"faults": faults, "speed": speed, "load": load}[part]
            result = merged(result, facts, act(quick=options.quick))
            if target:
                store(result, target)
    print_tables([*ledger_tables(result), *ledger_fault_tables(result)])
    if target is None:
        Console(stderr=True).print("nothing was stored: --quick needs --output for that")


if __name__ == "__main__":
    main()
