"""All keys that enough people have, found inside an engine, against the plain count by key.

    ./dev python -m lab.benchmarks.speed.keys [--part duckdb|large|postgres|spark] [--data FOLDER]
                                          [--repeat]

The data, the engines and what is counted are those of engines.py, with fewer items: a hundredth of
the rows. Every call runs in a process of its own, on an engine opened for it; the contenders take
turns. The plain query has two forms and stores what it counted; the ratio is to the faster one, by
processor time. DuckDB has a memory limit of 4 GiB, of 3 GiB in the part "large". There is one call
each, or more with --repeat.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

from lab.benchmarks.harness import Benchmark, Row, Rows
from lab.benchmarks.speed.engines import (
    COUNTS,
    DELTA,
    EPSILON,
    FEW,
    KEPT,
    KEYS,
    MEMORY,
    MEMORY_LIMIT,
    ROWS_SQL,
    SPARK,
    THREADS,
    WORK_MEMORY,
    Bench,
    arguments,
    middle,
    tuned_postgres,
)

ENGINE = {"duckdb": "duckdb", "large": "duckdb", "postgres": "postgres", "spark": "spark"}
ROWS = {"duckdb": 10**7, "large": 10**8, "postgres": 10**6, "spark": 10**6}
SHARE = 100
"""Rows to an item on average. A person has ten, as in engines.py."""

LARGE_LIMIT = "3GiB"
"""What DuckDB may use where the whole process must stay below 4 GB."""

PLAIN = [f"{form}, {KEPT}" for form in COUNTS]


def measure(part: str, options: argparse.Namespace) -> Rows:
    engine, rows = ENGINE[part], FEW if options.quick else ROWS[part]
    items = rows // SHARE
    calls: dict[str, list[Row]] = {contender: [] for contender in (*PLAIN, KEYS)}
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="privmax-keys-"))
        bench = Bench(options.data, Path(scratch), options.quick)
        url = stack.enter_context(tuned_postgres()).url if engine == "postgres" else ""
        place = bench.place(url, rows, items)
        if part == "large":
            stack.enter_context(patch.dict(os.environ, {MEMORY: LARGE_LIMIT}))
        for _ in range(bench.repeats if options.repeat else 1):
            for contender, made in calls.items():
                made.append(bench.measure(engine, contender, place))
    fastest = min(middle(calls[contender])["processor"] for contender in PLAIN)
    facts = {"part": part, "engine": engine, "rows": rows, "people": rows // 10, "items": items}
    return {
        "times": [
            {**facts, "contender": contender, **middle(made)}
            | {
                "ratio": round(middle(made)["processor"] / fastest, 2),
                "found": made[-1].get("found"),
            }
            for contender, made in calls.items()
        ]
    }


def more_arguments(parser: argparse.ArgumentParser) -> None:
    arguments(parser)
    parser.add_argument("--repeat", action="store_true", help="take the medians of several calls")


if __name__ == "__main__":
    Benchmark(
        "keys-speed",
        "speed.keys",
        {part: partial(measure, part) for part in ROWS},
        packages=("privmax", "ibis-framework", "duckdb", "psycopg", "pyspark"),
        settings={
            "epsilon": EPSILON,
            "delta": DELTA,
            "memory limit": MEMORY_LIMIT,
            "memory limit of the part large": LARGE_LIMIT,
            "threads": THREADS,
            "rows": " ".join(ROWS_SQL.split()),
            "counts": COUNTS,
            "work_mem": WORK_MEMORY,
            "spark": SPARK,
        },
        keys={"times": ("part",)},
        arguments=more_arguments,
    ).main()
