"""What time and memory tell of private scores: a clear winner against level scores and crowds.

    ./dev python -m lab.benchmarks.assurance.timing --part draws
    ./dev python -m lab.benchmarks.assurance.timing --part sources

Draws: each mechanism on profiles of the same public size. Beside processor time, which the load of
the machine disturbs, two things are counted that it does not: how many functions a draw calls, and
how many coins it reads. Sources: a whole selection from 10^6 candidates, in memory and in DuckDB,
in a process of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lab.benchmarks.harness import Benchmark, PeakMemory, Row, clocked, in_child, medians, note
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.noise.coins import SYSTEM
from privmax.profile import Level, Profile
from privmax.testing import SeededCoins

UNIVERSE = 10_000_000
TOP = 10_000
PROFILES: dict[str, list[Level]] = {
    "clear winner": [(TOP, 1)],
    "10^3 near": [(TOP, 10**3)],
    "10^6 near": [(TOP, 10**6)],
    "10^3 levels": [(TOP - depth, 1) for depth in range(1000)],
    "flat": [],
}
"""One ahead of all; so many tied ahead; each a record behind the one before; nobody ahead."""

OPTIONS: dict[str, dict[str, Any]] = {
    "limited-domain": {"rank": 1000},
    "choosing": {"growth": 3},
}
"""Instead of the small values of the registry."""
DRAWS = 200
CANDIDATES = 1_000_000
NEAR = [1, 10**3, 10**6]
LIMIT = 120.0


class CountedCoins:
    """Seeded coins that count how many are read."""

    def __init__(self, seed: str) -> None:
        self._coins = SeededCoins(seed)
        self.read = 0

    def bits(self, n: int) -> int:
        self.read += n
        return self._coins.bits(n)

    def bytes(self, n: int) -> bytes:
        self.read += 8 * n
        return self._coins.bytes(n)


def count_calls(work: Callable[[], object]) -> int:
    """How many functions are called, those written in C included."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def made(levels: list[Level]) -> Profile:
    return Profile(levels, universe=UNIVERSE)


def draw_row(name: str, mechanism: Mechanism, kind: str, number: int) -> Row:
    """Many draws of a mechanism from one profile, each read anew."""
    levels = PROFILES[kind]
    mechanism.draw(made(levels), SYSTEM)
    seconds, calls, read = [], [], []
    for one in range(number):
        profile, coins = made(levels), SeededCoins(f"{name} {kind} {one}")
        began = time.process_time()
        mechanism.draw(profile, coins)
        seconds.append(time.process_time() - began)
    for one in range(number // 4):
        profile, counted = made(levels), CountedCoins(f"{name} {kind} {one}")
        calls.append(count_calls(lambda: mechanism.draw(profile, counted)))  # noqa: B023
        read.append(counted.read)
    profile = made(levels)
    tracemalloc.start()
    mechanism.draw(profile, SYSTEM)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    row = {
        "mechanism": name,
        "profile": kind,
        "draws": number,
        "median": median(seconds),
        "high": sorted(seconds)[number * 95 // 100],
        "calls": median(calls),
        "calls_least": min(calls),
        "calls_most": max(calls),
        "coins": median(read),
        "coins_most": max(read),
        "memory": memory,
    }
    note(str(row))
    return row


def measure_draws(options: argparse.Namespace) -> Iterator[dict[str, list[Row]]]:
    number = 8 if options.quick else DRAWS
    for name, entry in MECHANISMS.items():
        delta = {} if entry.needs_closed else {"delta": "1e-6"}
        mechanism = build(name, epsilon=1, **delta, **{**entry.requires, **OPTIONS.get(name, {})})
        yield {"draws": [draw_row(name, mechanism, kind, number) for kind in PROFILES]}


def scores_of(near: int) -> Any:
    scores = np.full(CANDIDATES, 10, np.int64)
    scores[:near] = TOP
    return scores


def source_steps(source: str, near: int, folder: str, repeats: int) -> Iterator[tuple[Any, Any]]:
    """Whole selections: what one takes, and by how much memory grows."""
    import privmax

    price: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "mechanism": "nested-margin"}
    if source == "memory":
        scores = scores_of(near)
        call: Callable[[], object] = lambda: privmax.select(scores, **price)  # noqa: E731
    else:
        path = f"{folder}/{near}.parquet"
        call = lambda: privmax.select(path, item="item", score="score", **price)  # noqa: E731
    call()
    for _ in range(repeats):
        memory = PeakMemory()
        yield clocked(call), memory.growth()


def measure_sources(options: argparse.Namespace) -> Iterator[dict[str, list[Row]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    repeats = 2 if options.quick else 9
    with TemporaryDirectory() as folder:
        for near in NEAR:
            table = pa.table({"item": np.arange(CANDIDATES).astype(str), "score": scores_of(near)})
            pq.write_table(table, Path(folder) / f"{near}.parquet")
        for source in ("memory", "DuckDB"):
            rows = []
            for near in NEAR:
                found, ending = in_child(source_steps, source, near, folder, repeats, limit=LIMIT)
                times, growth = zip(*found, strict=True)
                row = {"source": source, "near": near, **medians(times, ending)}
                rows.append({**row, "growth": median(growth)})
                note(str(rows[-1]))
            yield {"sources": rows}


if __name__ == "__main__":
    Benchmark(
        "assurance-timing",
        "assurance.timing",
        {"draws": measure_draws, "sources": measure_sources},
        settings={"universe": UNIVERSE, "draws": DRAWS, "candidates": CANDIDATES},
        packages=("privmax", "python-flint", "numpy", "duckdb"),
        keys={"draws": ("mechanism", "profile"), "sources": ("source", "near")},
    ).main()
