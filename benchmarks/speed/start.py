"""How long the command line takes to start, beside Python itself and beside click.

    ./dev python -m benchmarks.speed.start

Each start is a process of its own. All are started in turn, round by round, so that whatever else
the machine does is shared by all; the first round warms the disk cache and does not count.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.harness import Benchmark, Row, Times, note
from privmax.cli import COMMANDS

ROUNDS, FEW = 20, 3
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
        "python -c pass": ([sys.executable, "-c", "pass"], {}),
        'python -c "import click"': ([sys.executable, "-c", "import click"], {}),
        **{f"privmax {words}": ([program, *words.split()], {}) for words in typed},
        "privmax select sam‹Tab›": ([program], COMPLETING),
    }


def once(command: list[str], more: dict[str, str]) -> Times:
    """One start, in silence."""
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env={**os.environ, **more}, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def measure(options: argparse.Namespace) -> dict[str, list[Row]]:
    rounds = FEW if options.quick else ROUNDS
    times: dict[str, list[Times]] = {name: [] for name in starts()}
    for number in range(rounds + 1):
        for name, start in starts().items():
            taken = once(*start)
            times[name] += [taken] if number else []
        note(f"round {number} of {rounds}")
    rows: list[Row] = []
    for name, both in times.items():
        processor, wall = zip(*both, strict=True)
        row = {"start": name, "wall": median(wall), "least": min(wall), "most": max(wall)}
        rows.append({**row, "processor": median(processor)})
    return {"starts": rows}


if __name__ == "__main__":
    Benchmark(
        "start",
        "speed.start",
        {"all": measure},
        packages=("privmax", "click"),
        settings={"rounds": ROUNDS},
    ).main()
