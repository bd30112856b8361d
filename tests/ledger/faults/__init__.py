"""Bad days that are made to happen to ledgers, how often, and what was counted the last time.

A trial makes one fault happen many times and then looks for what was lost. Every run of the tests
makes each a few times; `./dev test tests/ledger/test_bad_days.py -n 0 --faults full` makes each as
often as the table of README.md says, prints that table and stores its counts in counts.json.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from interposing import FAILURES

from faults.calls import GROWTHS, failed_calls, full_at_bytes
from faults.damage import (
    cut_files,
    edited_events,
    edited_files,
    odd_names,
    wrong_clocks,
    wrong_versions,
)
from faults.disks import full_disks, full_files, full_servers, read_only
from faults.histories import histories
from faults.networks import (
    OLDER,
    older_states,
    partitions,
    pauses,
    synchronous_failovers,
)
from faults.places import other_places
from faults.power import power_cuts
from faults.processes import (
    RESTARTS,
    kills,
    kills_of_makers,
    lost_replies,
    many_processes,
    one_request_of_many,
    races_to_create,
    restarts,
)
from faults.scene import POSTGRES, SQLITE, Trial, Yard

COUNTS = Path(__file__).with_name("counts.json")


EVERY = 10**9
"""Times of a trial that ends by itself, when every fault of its kind was made to happen."""


@dataclass(frozen=True)
class Entry:
    """A trial, where it is made, how often for the stored counts, and how often in every run."""

    trial: Callable[[Yard, str, int], Trial]
    where: str
    times: int
    few: int
    needs: str = ""

    @property
    def name(self) -> str:
        if isinstance(self.trial, partial):
            options = "-".join(self.trial.keywords.values()).replace(" ", "-")
            return f"{self.trial.func.__name__}-{options}-{self.where}"
        return f"{self.trial.__name__}-{self.where}"


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
    *[Entry(partial(failed_calls, failure=name), SQLITE, EVERY, 4) for name in FAILURES],
    *[Entry(partial(full_at_bytes, when=when), SQLITE, EVERY, 6) for when in GROWTHS],
    Entry(power_cuts, SQLITE, EVERY, 60),
    Entry(read_only, SQLITE, 50, 2),
    Entry(other_places, SQLITE, 700, 35, needs="root"),
    Entry(pauses, POSTGRES, 50, 2),
    Entry(partitions, POSTGRES, 50, 4),
    Entry(synchronous_failovers, POSTGRES, 5, 1),
    *[Entry(partial(older_states, how=how), POSTGRES, 5, 1) for how in OLDER],
    *_everywhere(histories, 30, 1),
    *_everywhere(wrong_versions, 50, 2),
    Entry(cut_files, SQLITE, 1000, 20),
    Entry(edited_files, SQLITE, 5000, 60),
    *_everywhere(edited_events, 160, 16),
    *_everywhere(wrong_clocks, 100, 6),
    *_everywhere(odd_names, 16, 16),
]


def counts() -> dict[str, Any]:
    """What was stored: `run`, where and when, and `faults`, a row for each trial."""
    stored: dict[str, Any] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return stored


def store(entry: Entry, trial: Trial) -> None:
    """Put the counts of one trial in place of the earlier ones."""
    rows = {row["name"]: row for row in counts()["faults"]}
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    rows[entry.name] = {"name": entry.name, "date": now, **trial.row()}
    run = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "./dev test tests/ledger/test_bad_days.py -n 0 --faults full",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 2),
        "versions": {
            "Python": platform.python_version(),
            "privmax": metadata.version("privmax"),
            "psycopg": metadata.version("psycopg"),
            "SQLite": sqlite3.sqlite_version,
        },
    }
    ordered = [rows[one.name] for one in TRIALS if one.name in rows]
    lines = ",\n".join(f"    {json.dumps(row)}" for row in ordered)
    COUNTS.write_text(f'{{\n  "run": {json.dumps(run)},\n  "faults": [\n{lines}\n  ]\n}}\n')


def table() -> list[str]:
    """The stored counts as the lines of a Markdown table."""
    lines = ["| fault | where | times | charges | answers seen outside | lost |"]
    lines.append("| --- | --- | ---: | ---: | ---: | --- |")
    for row in counts()["faults"]:
        numbers = [f"{row[key]:,}" if row[key] else "" for key in ("times", "charges", "answers")]
        lost = "; ".join(sorted(set(row["lost"]))) or "nothing"
        lines.append(f"| {' | '.join([row['fault'], row['where'], *numbers, lost])} |")
    return lines
