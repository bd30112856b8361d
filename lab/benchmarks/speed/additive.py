"""How long a fit of `PrivateGAM` takes in memory and inside DuckDB: 20 rounds, 50 features.

    ./dev python -m lab.benchmarks.speed.additive [--part memory-1000000|…|duckdb-10000000]

Each row is a process of its own: a first fit on 200 rows is not counted, then one is timed. The
data is made there, 32-bit floats of which eight tell.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, Times, clocked, in_child, medians, note
from privmax.learning import Number, PrivateGAM, Schema

SIZES = (10**6, 10**7)
FEATURES, CELLS, THREADS = 50, 32, 2
WARM_UP = 200
LIMIT = 1800.0


def fit(engine: str, rows: int) -> Iterator[Times]:
    """In a child: the times of one fit."""
    random = np.random.default_rng(20)
    X = random.random((rows, FEATURES), np.float32)
    y = (X[:, :8].sum(axis=1) + random.normal(0, 0.5, rows) > 4).astype(np.int64)
    names = [f"x{number}" for number in range(FEATURES)]
    learner = PrivateGAM(
        Schema({name: Number(0, 1, cells=CELLS) for name in names}), 1, 1e-6, labels=[0, 1]
    )
    if engine == "memory":
        learner.fit(X[:WARM_UP], y[:WARM_UP])
        yield clocked(lambda: learner.fit(X, y))
        return
    import ibis
    import pyarrow as pa

    columns: dict[str, Any] = {name: X[:, place] for place, name in enumerate(names)}
    database = ibis.duckdb.connect(threads=THREADS)
    table = database.create_table("rows", pa.table({**columns, "label": y}))
    learner.fit(table.limit(WARM_UP), "label")
    yield clocked(lambda: learner.fit(table, "label"))


def measure(engine: str, rows: int, options: argparse.Namespace) -> Rows:
    rows = WARM_UP * 100 if options.quick else rows
    note(f"{engine}, {rows} rows")
    row: Row = {"engine": engine, "examples": rows, "features": FEATURES}
    row["load"] = round(os.getloadavg()[0], 2)
    taken, ending = in_child(fit, engine, rows, limit=LIMIT)
    return {"fits": [{**row, **medians([tuple(one) for one in taken], ending, LIMIT)}]}


if __name__ == "__main__":
    Benchmark(
        "additive-time",
        "speed.additive",
        {
            f"{engine}-{rows}": partial(measure, engine, rows)
            for rows in SIZES
            for engine in ("memory", "duckdb")
        },
        packages=("privmax", "numpy", "numba", "ibis-framework", "duckdb"),
        settings={"features": FEATURES, "cells": CELLS, "threads": THREADS, "limit": LIMIT},
        keys={"fits": ("engine", "examples")},
    ).main()
