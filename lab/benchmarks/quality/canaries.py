"""Canaries: marked data through every public function and command, and where marks were found.

Runs the harness of tests/canaries as a program of its own and stores what it counted. It fails if
there was a leak.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from lab.benchmarks.harness import Benchmark, Rows, note

ROOT = Path(__file__).resolve().parents[3]
STOPS = 1
"""How often each subject is interrupted, and how often killed."""


def count(options: argparse.Namespace) -> Rows:
    """All runs; or those of one subject."""
    words = [sys.executable, "-m", "hunt.run", "--json", "--stops", str(STOPS)]
    words += ["--only", "select scores"] if options.quick else []
    folders = [os.environ.get("PYTHONPATH"), str(ROOT / "tests/canaries"), str(ROOT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if not done.stdout:
        raise SystemExit(done.stderr)
    counts = json.loads(done.stdout)
    for leak in counts.pop("leaks"):
        note(leak)
    if done.returncode:
        raise SystemExit("there are leaks: nothing was stored")
    found: Rows = counts
    return found


if __name__ == "__main__":
    Benchmark(
        "canaries",
        "quality.canaries",
        {"runs": count},
        packages=("privmax", "duckdb", "ibis-framework", "numpy", "scikit-learn"),
        settings={"stops": STOPS},
    ).main()
