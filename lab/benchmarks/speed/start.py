"""How long the command line takes to start, beside Python itself and beside click; and how long
whole commands take on small data, beside the plain query of DuckDB.

    ./dev python -m lab.benchmarks.speed.start [--part starts|whole]

Each start is a process of its own. All are started in turn, round by round, so that whatever else
the machine does is shared by all; the first round warms the disk cache and does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from lab.benchmarks.harness import Benchmark, Row, Rows, Times, note
from privmax.cli import COMMANDS

ROUNDS, WHOLE_ROUNDS, FEW = 20, 9, 3
COMPLETING = {
    "_PRIVMAX_COMPLETE": "bash_complete",
    "COMP_WORDS": "privmax select sam",
    "COMP_CWORD": "2",
}

CSV_BYTES, PEOPLE, QUERIES = 64_000_000, 200_000, 100_000
BASKETS, ITEMS = 10_000, 1_000
SEED = 19

PLAIN = """import duckdb
print(duckdb.sql('''SELECT query, count(DISTINCT person) AS people FROM read_csv('searches.csv')
GROUP BY query ORDER BY people DESC LIMIT 1''').fetchall())"""
"""What a person would run without privacy. DuckDB guesses types, and is right."""

WHOLE = {
    "plain DuckDB, 64 MB CSV": ["python", "-c", PLAIN],
    "privmax select, 64 MB CSV": [
        *("privmax", "select", "searches.csv", "--item", "query", "--user", "person"),
        *("--epsilon", "1", "--delta", "1e-6"),
    ],
    "privmax itemsets, 10^4 baskets": [
        *("privmax", "itemsets", "baskets.dat", "--size", "2", "--epsilon", "1"),
        *("--delta", "1e-6"),
    ],
    "the same, sizes 2 to 4": [
        *("privmax", "itemsets", "baskets.dat", "--size", "2-4", "--epsilon", "1"),
        *("--delta", "1e-6"),
    ],
}
"""Whole processes, by what they are called."""

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


def once(command: list[str], more: dict[str, str], folder: str | None = None) -> Times:
    """One start, in silence."""
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    silent = subprocess.DEVNULL
    variables = {**os.environ, **more}
    subprocess.run(command, env=variables, cwd=folder, stdout=silent, stderr=silent, check=True)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def measure_starts(options: argparse.Namespace) -> Rows:
    rounds = FEW if options.quick else ROUNDS
    return {"starts": in_turn("start", starts(), rounds)}


def measure_whole(options: argparse.Namespace) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), CSV_BYTES // (64 if options.quick else 1))
        folder_of = Path(sys.executable).parent
        commands: dict[str, Start] = {
            name: ([str(folder_of / words[0]), *words[1:]], {}) for name, words in WHOLE.items()
        }
        rows = in_turn("whole", commands, FEW if options.quick else WHOLE_ROUNDS, folder)
    plain = float(rows[0]["wall"])
    same = {name: "CSV" in name for name in WHOLE}
    ratios = [row["wall"] / plain if same[row["whole"]] else None for row in rows]
    return {"whole": [{**row, "ratio": ratio} for row, ratio in zip(rows, ratios, strict=True)]}


def in_turn(
    kind: str, commands: dict[str, Start], rounds: int, folder: str | None = None
) -> list[Row]:
    """The times of each command, started in turn with all others."""
    times: dict[str, list[Times]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, start in commands.items():
            taken = once(*start, folder)
            times[name] += [taken] if number else []
        note(f"round {number} of {rounds}")
    rows: list[Row] = []
    for name, both in times.items():
        processor, wall = zip(*both, strict=True)
        row = {kind: name, "wall": median(wall), "least": min(wall), "most": max(wall)}
        rows.append({**row, "processor": median(processor)})
    return rows


def write_data(folder: Path, size: int) -> None:
    """A log of searches of some size, and baskets; a few queries and items are far more common."""
    chance = random.Random(SEED)
    with (folder / "searches.csv").open("w") as file:
        file.write("person,query\n")
        while file.tell() < size:
            query = int(chance.paretovariate(1)) % QUERIES
            file.write(f"u{chance.randrange(PEOPLE)},q{query}\n")
    with (folder / "baskets.dat").open("w") as file:
        for _ in range(BASKETS):
            items = [int(chance.paretovariate(0.7)) % ITEMS for _ in range(chance.randint(2, 12))]
            file.write(" ".join(map(str, items)) + "\n")


if __name__ == "__main__":
    Benchmark(
        "start",
        "speed.start",
        {"starts": measure_starts, "whole": measure_whole},
        packages=("privmax", "click", "duckdb", "ibis-framework"),
        settings={"rounds": ROUNDS, "whole rounds": WHOLE_ROUNDS},
    ).main()
