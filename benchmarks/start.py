"""How long the command line takes to start: version, help and completion, beside Python itself and
beside click.

    ./dev python -m benchmarks.start [--quick] [--output FILE]

Each start is a process of its own. All of them are started in turn, round by round, so that
whatever else the machine does is shared by all; the first round warms the disk cache and does not
count.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, Times, _version, about_run, note, store
from benchmarks.tables import print_tables, start_tables
from privmax.cli import COMMANDS

ROUNDS, FEW = 20, 3
LIMIT = 0.3
"""Seconds that version and help should take at most."""

PYTHON, CLICK = "python -c pass", 'python -c "import click"'
COMPLETING = {
    "_PRIVMAX_COMPLETE": "bash_complete",
    "COMP_WORDS": "privmax select sam",
    "COMP_CWORD": "2",
}

Start = tuple[list[str], dict[str, str]]
"""A command line, and what is added to the environment."""


def starts() -> dict[str, Start]:
    """What is started, by what is typed."""
    program = str(Path(sys.executable).with_name("privmax"))
    typed = ["--version", "--help", *[f"{name} --help" for name in COMMANDS]]
    return {
        PYTHON: ([sys.executable, "-c", "pass"], {}),
        CLICK: ([sys.executable, "-c", "import click"], {}),
        **{f"privmax {words}": ([program, *words.split()], {}) for words in typed},
        "privmax select sam‹Tab›": ([program], COMPLETING),
    }


def measured(rounds: int) -> dict[str, list[Times]]:
    """Processor and wall-clock time of every start."""
    times: dict[str, list[Times]] = {name: [] for name in starts()}
    for number in range(rounds + 1):
        for name, start in starts().items():
            taken = once(*start)
            if number:
                times[name].append(taken)
        note(f"round {number} of {rounds}")
    return times


def once(command: list[str], more: dict[str, str]) -> Times:
    """One start, in silence."""
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env={**os.environ, **more}, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def rows(times: dict[str, list[Times]]) -> list[dict[str, Any]]:
    """Medians, and how they compare; `met` where there is an aim."""
    walls = {name: float(np.median([wall for _, wall in taken])) for name, taken in times.items()}
    found = []
    for name, taken in times.items():
        aimed = name.endswith(("--help", "--version"))
        found.append(
            {
                "start": name,
                "wall": walls[name],
                "least": min(wall for _, wall in taken),
                "most": max(wall for _, wall in taken),
                "processor": float(np.median([processor for processor, _ in taken])),
                "python": walls[name] / walls[PYTHON],
                "click": walls[name] / walls[CLICK],
                "met": walls[name] <= LIMIT if aimed else None,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Time starts of the command line.")
    parser.add_argument(
        "--quick", action="store_true", help=f"{FEW} rounds; stores nothing by itself"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/start.json)"
    )
    options = parser.parse_args()
    rounds = FEW if options.quick else ROUNDS
    result: dict[str, Any] = {
        "benchmark": "start",
        "run": {
            **about_run(quick=options.quick),
            "command": "./dev python -m benchmarks.start" + " --quick" * options.quick,
            "versions": {name: _version(name) for name in ("privmax", "click")},
        },
        "settings": {"rounds": rounds, "limit": LIMIT},
        "starts": rows(measured(rounds)),
    }
    print_tables(start_tables(result))
    if options.output or not options.quick:
        store(result, options.output or RESULTS / "start.json")


if __name__ == "__main__":
    main()
