"""What fuzzing found: executions, coverage and bugs of each target of tools/fuzzing.

    ./dev python -m benchmarks.fuzzing [--part parser|reader|engine] [--target NAME]

Each target runs in `tools/fuzz.py`, one after the other; its row is stored as soon as it is there.
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

from benchmarks.harness import Benchmark, Rows

ROOT = Path(__file__).resolve().parent.parent
RUNS, QUICK = 10**6, 2000
LONGEST = {"parser": 1500, "reader": 120, "engine": 120}
"""Seconds that a target may take."""


def measure(group: str, options: argparse.Namespace) -> Iterator[Rows]:
    """Run the targets of a group one after the other; give each row when it is there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [sys.executable, "tools/fuzz.py", *(options.target or ()), "--group", group]
        command += ["--runs", str(QUICK if options.quick else RUNS), "--json", str(file)]
        command += ["--seconds", str(LONGEST[group])]
        seen = 0
        with subprocess.Popen(command, cwd=ROOT) as process:
            while True:
                ended = process.poll() is not None
                results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
                for row in results[seen:]:
                    found = row.pop("findings")
                    told = "; ".join(f"{one['error']} in {one['place']}" for one in found)
                    yield {"targets": [{**row, "found": len(found), "bugs": told}]}
                seen = len(results)
                if ended:
                    return
                time.sleep(1)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", action="append", help="only this one")


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
