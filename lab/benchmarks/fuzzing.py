"""What fuzzing found: executions, coverage and bugs of each target of lab/fuzzing.

    ./dev python -m lab.benchmarks.fuzzing [--part parser|reader|engine] [--target NAME]

Each target runs in `lab/fuzz.py`, one after the other; its row is stored as soon as it is there.
A parser gets 10^6 inputs, a target that releases or runs an engine as many as fit into its time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from lab.benchmarks.harness import RESULTS, Benchmark, Row, Rows, stored

ROOT = Path(__file__).resolve().parents[2]
RUNS, QUICK = 10**6, 2000
LONGEST = {"parser": 1500, "reader": 120, "engine": 120}
"""Seconds that a target may take."""


def measure(group: str, options: argparse.Namespace) -> Iterator[Rows]:
    """Run the targets of a group one after the other; give each row when it is there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [sys.executable, "-m", "lab.fuzz", *(options.target or ()), "--group", group]
        command += ["--runs", str(QUICK if options.quick else RUNS), "--json", str(file)]
        command += ["--seconds", str(options.seconds or LONGEST[group])]
        command += ["--seed", str(time.time_ns() % 2**31)]
        command += [] if options.corpus is None else ["--corpus", str(options.corpus.absolute())]
        before = {row["target"]: row for row in _stored() if options.more}
        seen = 0
        with subprocess.Popen(command, cwd=ROOT) as process:
            while True:
                ended = process.poll() is not None
                results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
                for row in results[seen:]:
                    yield {"targets": [_row(row, before.get(row["target"], {}))]}
                seen = len(results)
                if ended:
                    return
                time.sleep(1)


def _stored() -> list[Row]:
    file = RESULTS / "fuzzing.json"
    rows: list[Row] = stored(file)["targets"] if file.exists() else []
    return rows


def _row(row: Row, before: Row) -> Row:
    """What is stored of a target, with what an earlier run stored."""
    found = [f"{one['error']} in {one['place']}" for one in row.pop("findings")]
    bugs = list(dict.fromkeys([*before.get("bugs", ()), *found]))
    for name in ("executions", "seconds", "processor"):
        row[name] = round(row[name] + before.get(name, 0), 1)
    for name in ("branches", "features", "corpus"):
        row[name] = max(row[name], before.get(name, 0))
    return {**row, "bugs": bugs}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", action="append", help="only this one")
    parser.add_argument("--seconds", type=int, help="that a target may take")
    parser.add_argument("--corpus", type=Path, help="go on with the inputs that are here")
    parser.add_argument("--more", action="store_true", help="add to what is stored")


if __name__ == "__main__":
    parts: dict[str, Callable[[argparse.Namespace], Iterator[Rows]]] = {
        group: partial(measure, group) for group in LONGEST
    }
    Benchmark(
        "fuzzing",
        "fuzzing",
        parts,
        packages=("privmax", "atheris", "numpy", "duckdb", "ibis-framework"),
        settings={"runs": RUNS, "seconds": LONGEST},
        keys={"targets": ("target",)},
        arguments=arguments,
    ).main()
