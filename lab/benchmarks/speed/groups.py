"""The best of every group beside the plain query, from one Parquet file of rows.

    ./dev python -m lab.benchmarks.speed.groups

A million rows of half a million people, items and groups that fall like 1/rank. `no groups` is
`select` without `by`: it counts people per item. The others restrict each person to one group,
count all groups in one pass, and draw in every group. Every cell runs in a process of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab.benchmarks.harness import (
    DONE,
    Benchmark,
    PeakMemory,
    Row,
    Rows,
    clocked,
    in_child,
    medians,
    note,
)

EPSILON, DELTA = 1, "1e-6"
ROWS, PEOPLE, ITEMS = 10**6, 5 * 10**5, 10**5
GROUPS = 10**4
LONGEST = 600.0
"""Seconds one call may take."""

MODES = ("no groups", "declared", "open")


def write_rows(file: Path, groups: int, rows: int) -> None:
    """Rows of a person, a group and an item."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(groups)
    people = rows * PEOPLE // ROWS
    items = np.minimum((ITEMS ** random.random(rows)).astype(np.int64), ITEMS - 1)
    homes = np.minimum((groups ** random.random(people)).astype(np.int64), groups - 1)
    user = random.integers(0, people, rows)
    away = random.random(rows) < 0.1
    group = np.where(away, random.integers(0, groups, rows), homes[user])
    pq.write_table(pa.table({"user": user, "region": group, "item": items}), file)


def cell(mode: str, groups: int, small: str, large: str) -> Iterator[Row]:
    """The steps of one cell, in its own process."""
    import privmax

    by = {
        "no groups": None,
        "declared": privmax.Groups("region", range(groups)),
        "open": privmax.Groups("region"),
    }[mode]

    def pick(rows: str) -> int:
        release = privmax.select(
            rows, item="item", user="user", by=by, epsilon=EPSILON, delta=DELTA
        )
        return len(release)

    pick(small)
    released: list[int] = []
    memory = PeakMemory()
    time = clocked(lambda: released.append(pick(large)))
    yield {"time": time, "growth": memory.growth(), "released": released[0]}


def measure(options: argparse.Namespace) -> Rows:
    groups, rows = (10, 10**4) if options.quick else (GROUPS, ROWS)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        write_rows(small, groups, 1000)
        write_rows(large, groups, rows)
        return {"groups": [timed(mode, groups, str(small), str(large)) for mode in MODES]}


def timed(mode: str, groups: int, small: str, large: str) -> Row:
    row: Row = {"mode": mode, "groups": groups, "items": ITEMS}
    steps, ending = in_child(cell, mode, groups, small, large, limit=LONGEST)
    row |= medians([step["time"] for step in steps], ending, LONGEST)
    if row["ending"] == DONE and steps:
        row |= {"growth": steps[0]["growth"], "released": steps[0]["released"]}
    note(f"{groups:<7} {mode:10} {row.get('median', row['ending'])}")
    return row


if __name__ == "__main__":
    Benchmark(
        "groups",
        "speed.groups",
        {"groups": measure},
        packages=("privmax", "duckdb"),
        settings={"epsilon": EPSILON, "delta": DELTA, "rows": ROWS, "people": PEOPLE},
        keys={"groups": ("groups",)},
    ).main()
