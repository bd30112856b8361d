"""How long the command line takes to start, beside Python itself and beside click; and how long
whole commands take on small data, beside the plain query of DuckDB; and what commands import.

    ./dev python -m lab.benchmarks.speed.start [--part PART]

Parts: `starts` (version and help), `small` (plans, ledgers, small data), `whole` (64 MB of CSV),
`large` (640 MB), `parquet` (10^7 rows), `ways` (other ways in), `imports`. Each start is a process
of its own. All are started in turn, round by round, so that whatever else the machine does is
shared by all; the first round warms the disk cache, lets Python write its bytecode as an
installation has it, and does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from lab.benchmarks.harness import Benchmark, Row, Rows, Times, note
from privmax import samples
from privmax.cli import COMMANDS

ROUNDS, WHOLE_ROUNDS, LARGE_ROUNDS, FEW = 20, 9, 3, 3
COMPLETING = {
    "_PRIVMAX_COMPLETE": "bash_complete",
    "COMP_WORDS": "privmax select sam",
    "COMP_CWORD": "2",
}

CSV_BYTES, PEOPLE, QUERIES = 64_000_000, 200_000, 100_000
LARGE_ROWS, LARGE_PEOPLE, PARQUET_ROWS = 55_000_000, 2_000_000, 10_000_000
BASKETS, ITEMS = 10_000, 1_000
SEED = 19

PLAIN = """import duckdb
print(duckdb.sql('''SELECT query, count(DISTINCT person) AS people FROM '{}'
GROUP BY query ORDER BY people DESC LIMIT 1''').fetchall())"""
"""What a person would run without privacy. DuckDB guesses types, and is right."""

COUNT = "SELECT query, count(DISTINCT person) AS people FROM {} GROUP BY query ORDER BY people DESC"
BEST = "SELECT query, score FROM {} ORDER BY score DESC"
PRICE = ("--epsilon", "1", "--delta", "1e-6")
PEOPLE_OF = ("--item", "query", "--user", "person", *PRICE)

SMALL = {
    "privmax plan": ["privmax", "plan", *PRICE],
    "privmax budget show": ["privmax", "budget", "show", "budget.db"],
    "plain DuckDB, sample:searches": ["python", "-c", PLAIN.format(samples.path("searches"))],
    "privmax select, sample:searches": ["privmax", "select", "sample:searches", *PEOPLE_OF],
    "privmax itemsets, 10^4 baskets": [
        *("privmax", "itemsets", "baskets.dat", "--size", "2", *PRICE),
    ],
    "the same, sizes 2 to 4": [
        *("privmax", "itemsets", "baskets.dat", "--size", "2-4", *PRICE),
    ],
}
"""Whole processes on small data, or none, by what they are called."""


def selections(what: str, file: str) -> dict[str, list[str]]:
    """The plain query of a file and ours, for one item and for more."""
    ours = ["privmax", "select", file, *PEOPLE_OF]
    return {
        f"plain DuckDB, {what}": ["python", "-c", PLAIN.format(file)],
        f"privmax select, {what}": ours,
        **{f"privmax select --k {k}, {what}": [*ours, "--k", str(k)] for k in (10, 100)},
    }


WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "CSV": ("searches.csv", COUNT.format("read_csv('searches.csv')"), ("{}", *PEOPLE_OF)),
    "CSV, standard input": ("searches.csv", COUNT.format("read_csv('searches.csv')"),
                            ("-", *PEOPLE_OF)),
    "CSV in quotes, standard input": ("quoted.csv", COUNT.format("read_csv('quoted.csv')"),
                                      ("-", *PEOPLE_OF)),
    "JSON Lines, one form": ("plain.jsonl", COUNT.format("read_json('plain.jsonl')"),
                             ("{}", *PEOPLE_OF)),
    "JSON Lines, a tenth with escapes or null": ("some.jsonl",
                                                 COUNT.format("read_json('some.jsonl')"),
                                                 ("{}", *PEOPLE_OF)),
    "JSON Lines with arrays": ("arrays.jsonl", COUNT.format("read_json('arrays.jsonl')"),
                               ("{}", *PEOPLE_OF)),
    "ready scores": ("scores.csv", BEST.format("read_csv('scores.csv')"),
                     ("{}", "--item", "query", "--score", "score", *PRICE)),
}  # fmt: skip
"""Ways in: a file, the plain query of it, and the options of `privmax select`; "-" reads it."""

ROWS = 1_000_000

IMPORTING = {
    "select --help": ("select", "--help"),
    "select, CSV": ("select", "searches.csv", *PEOPLE_OF),
    "keys, CSV": ("keys", "searches.csv", *PEOPLE_OF),
    "itemsets, baskets": ("itemsets", "baskets.dat", "--size", "2", *PRICE),
    "select, sample:searches": ("select", "sample:searches", *PEOPLE_OF),
    "plan": ("plan", *PRICE),
    "budget show": ("budget", "show", "budget.db"),
    "compare": ("compare", "sample:searches", *PEOPLE_OF),
}
"""Command lines whose imports are listed."""

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


def once(
    command: list[str], more: dict[str, str], folder: str | None = None, fed: Path | None = None
) -> Times:
    """One start, in silence, with a file on standard input."""
    with (fed or Path(os.devnull)).open("rb") as file:
        return _timed(command, more, folder, file)


def _timed(command: list[str], more: dict[str, str], folder: str | None, file: Any) -> Times:
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    silent = subprocess.DEVNULL
    subprocess.run(
        command,
        env=environment(more),
        cwd=folder,
        stdin=file,
        stdout=silent,
        stderr=silent,
        check=True,
    )
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def environment(more: dict[str, str]) -> dict[str, str]:
    """The variables of a process, which may keep bytecode, as every installation does."""
    kept = {name: one for name, one in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}


def measure_ways(options: argparse.Namespace) -> Rows:
    """Each way in beside the plain query of the same rows, taken in turn."""
    folder_of = Path(sys.executable).parent
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        write_ways(Path(folder), ROWS // (50 if options.quick else 1))
        for name, (file, query, words) in WAYS.items():
            given = [word.format(file) for word in words]
            fed = Path(folder) / file if "-" in words else None
            plain = f"import duckdb\nprint(duckdb.sql({query + ' LIMIT 1'!r}).fetchall())"
            times: dict[str, list[float]] = {"plain": [], "ours": []}
            for number in range((FEW if options.quick else WHOLE_ROUNDS) + 1):
                for key, command, stream in (
                    ("plain", [sys.executable, "-c", plain], None),
                    ("ours", [str(folder_of / "privmax"), "select", *given], fed),
                ):
                    processor, _ = once(command, {}, folder, stream)
                    times[key] += [processor] if number else []
            medians = {key: median(taken) for key, taken in times.items()}
            rows.append({"way": name, **medians, "ratio": medians["ours"] / medians["plain"]})
            note(f"{name}: {rows[-1]['ratio']:.2f}")
    return {"ways": rows}


def measure_imports(options: argparse.Namespace) -> Rows:
    """How many modules each command imports, and how long that takes by Python's own account."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), CSV_BYTES // 64)
        make_ledger(folder)
        for name, words in IMPORTING.items():
            totals = []
            for _ in range(FEW + 1):
                run = subprocess.run(
                    [sys.executable, "-X", "importtime", "-m", "privmax", *words],
                    env=environment({}),
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                totals.append(read_imports(run.stderr))
            taken = median(seconds for _, seconds in totals[1:])
            rows.append({"command": name, "modules": totals[-1][0], "seconds": taken})
            note(f"{name}: {rows[-1]['modules']} modules, {taken:.3f} s")
    return {"imports": rows}


def read_imports(written: str) -> tuple[int, float]:
    """How many modules were imported, and in how many seconds, by what `-X importtime` writes."""
    found = re.findall(r"^import time: +(\d+) \|", written, re.MULTILINE)
    return len(found), sum(map(int, found)) / 1e6


def write_ways(folder: Path, rows: int) -> None:
    """The same searches in every form, and scores."""
    chance = random.Random(SEED)
    searches = [
        (f"u{chance.randrange(PEOPLE)}", f"q{int(chance.paretovariate(1)) % QUERIES}")
        for _ in range(rows)
    ]
    some = ['{{"person": "{}", "query": "{}"}}'] * 9 + ['{{"person": "\\u0075{1}", "query": null}}']
    forms = {
        "searches.csv": ["{},{}"],
        "quoted.csv": ['"{}","{}"'],
        "plain.jsonl": some[:1],
        "some.jsonl": some,
        "arrays.jsonl": ['{{"person": "{}", "query": "{}", "tags": ["a", "b"]}}'],
    }
    for name, lines in forms.items():
        with (folder / name).open("w") as file:
            if name.endswith(".csv"):
                file.write("person,query\n")
            for number, row in enumerate(searches):
                file.write(lines[number % len(lines)].format(*row) + "\n")
    with (folder / "scores.csv").open("w") as file:
        file.write("query,score\n")
        file.writelines(f"query{n},{chance.randrange(rows)}\n" for n in range(rows))


def measure_starts(options: argparse.Namespace) -> Rows:
    rounds = FEW if options.quick else ROUNDS
    return {"starts": in_turn("start", starts(), rounds)}


def measure_small(options: argparse.Namespace) -> Rows:
    """Commands on small data, or none."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), 0)
        make_ledger(folder)
        return compared(SMALL, folder, FEW if options.quick else ROUNDS)


def measure_whole(options: argparse.Namespace) -> Rows:
    """A selection from CSV beside the plain query."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), CSV_BYTES // (64 if options.quick else 1))
        commands = selections("64 MB CSV", "searches.csv")
        return compared(commands, folder, FEW if options.quick else WHOLE_ROUNDS)


def measure_large(options: argparse.Namespace) -> Rows:
    """The same for ten times as much, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder, "large.csv"), LARGE_ROWS // (64 if options.quick else 1))
        commands = selections("640 MB CSV", "large.csv")
        return compared(commands, folder, FEW if options.quick else LARGE_ROUNDS)


def measure_parquet(options: argparse.Namespace) -> Rows:
    """The same for rows of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder, "rows.parquet"), PARQUET_ROWS // (64 if options.quick else 1))
        commands = selections("10^7 rows of Parquet", "rows.parquet")
        return compared(commands, folder, FEW if options.quick else WHOLE_ROUNDS)


def compared(words: Mapping[str, list[str]], folder: str, rounds: int) -> Rows:
    """Commands in turn, with the ratios of selections to the plain query of the same rows."""
    programs = Path(sys.executable).parent
    commands: dict[str, Start] = {
        name: ([str(programs / program), *rest], {}) for name, (program, *rest) in words.items()
    }
    rows = in_turn("whole", commands, rounds, folder)
    plain = next(row for row in rows if row["whole"].startswith("plain"))
    for row in rows:
        same = row["whole"].startswith(("plain", "privmax select"))
        row["ratio"] = row["wall"] / plain["wall"] if same else None
        row["processor ratio"] = row["processor"] / plain["processor"] if same else None
    return {"whole": rows}


def make_ledger(folder: str) -> None:
    """A ledger without charges, as budget.db."""
    program = str(Path(sys.executable).with_name("privmax"))
    once([program, "budget", "create", "budget.db", *PRICE], {}, folder)


def write_rows(file: Path, rows: int) -> None:
    """A log of many searches, in which a few queries are far more common, written by DuckDB."""
    duckdb.sql(f"""COPY (
        SELECT 'u' || hash(range) % {LARGE_PEOPLE} AS person,
            'q' || CAST(floor(2.0^32 / (hash(range, {SEED}) % 2::UBIGINT^32 + 1)) AS UBIGINT)
                % {QUERIES} AS query
        FROM range({rows})
    ) TO '{file}'""")


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
        {
            "starts": measure_starts,
            "small": measure_small,
            "whole": measure_whole,
            "large": measure_large,
            "parquet": measure_parquet,
            "ways": measure_ways,
            "imports": measure_imports,
        },
        packages=("privmax", "click", "duckdb", "numpy"),
        settings={"rounds": ROUNDS, "whole rounds": WHOLE_ROUNDS, "large rounds": LARGE_ROUNDS},
        keys={"whole": ("whole",)},
    ).main()
