"""The best k of K counts: privmax, OpenDP, and the published joint draw in NumPy, at one epsilon.

    ./dev compare python -m lab.benchmarks.speed.lists [--part PART]

Counts fall like 1/rank, ten million records in all. Every cell runs in a process of its own and
gets the same array. The authors' code of the joint exponential mechanism (Gillenwater et al., ICML
2022) cannot be installed by a name, so `joint list` is that algorithm written anew in NumPy: all
k·K differences between a count and one of the k highest, sorted, and one draw among them.

Part `turns` makes calls of privmax and NumPy in turn, in one process that is warm.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import (
    DONE,
    LIMIT,
    Benchmark,
    PeakMemory,
    Row,
    Rows,
    Times,
    clocked,
    in_child,
    medians,
    note,
)

Counts = NDArray[np.int64]
Pick = Callable[[Counts], object]

EPSILON, DELTA = 1, "1e-6"
SIZES, LENGTHS = (10**4, 10**6, 10**7), (10, 100, 1000, 10_000)
RECORDS = 10**7
LONGEST = 20.0
"""Seconds one call may take."""

CALLS = 5

GUMBEL = "NumPy Gumbel top k"
TURNS = {10**4: 15, 10**6: 7}
"""How many calls of each contender are made in turn, by K."""


def counts_of(size: int) -> Counts:
    """In no order."""
    ranks = np.arange(1, size + 1)
    counts = (RECORDS / math.log(size) / ranks).astype(np.int64)
    return np.random.default_rng(size).permutation(counts)


def ours(k: int, **options: Any) -> Pick:
    import privmax

    def pick(counts: Counts) -> object:
        universe = "open" if "delta" in options else len(counts)
        return privmax.select(counts, epsilon=EPSILON, k=k, universe=universe, **options).items

    return pick


def opendp_top_k(k: int) -> Pick:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement = make_noisy_top_k(
        vector_domain(atom_domain(T="i64")),
        linf_distance(T="i64", monotonic=True),
        max_divergence(),
        k,
        k / EPSILON,
    )
    if not math.isclose(measurement.map(1), EPSILON, rel_tol=1e-9):
        raise ValueError("OpenDP was not set up at the same epsilon")
    pick: Pick = measurement
    return pick


def gumbel_top_k(k: int) -> Pick:
    random = np.random.default_rng()

    def pick(counts: Counts) -> object:
        noisy = counts * (EPSILON / k) + random.gumbel(size=len(counts))
        best = np.argpartition(noisy, -k)[-k:]
        return best[np.argsort(-noisy[best])]

    return pick


def joint_list(k: int) -> Pick:
    """A list by its largest shortfall: place j may fall short of the j-th highest by at most that.

    Shortfalls are numbered from the smallest; how many lists have at most the n-th of them is the
    product over places of how many candidates are near enough, less those in places before.
    """
    random = np.random.default_rng()

    def pick(counts: Counts) -> object:
        order = np.argsort(-counts, kind="stable")
        ranked = counts[order].astype(np.float64)
        size = len(ranked)
        short = ranked[:k, None] - ranked[None, :]
        # those of earlier places come later among equals, so that no two are the same
        short += (np.arange(k)[::-1, None] * size + np.arange(1, size + 1)) / (2 * size * k)
        flat = np.argsort(short, axis=None)
        place, column = np.unravel_index(flat, short.shape)
        room = (column + 1 - place).astype(np.float64)
        log_room = np.full(k, -np.inf)
        log_lists = np.full(len(flat), -np.inf)
        total, empty = 0.0, k
        for n in range(len(flat)):
            here = place[n]
            if room[n] <= 0:
                continue
            if empty:
                empty -= log_room[here] == -np.inf
                log_room[here] = math.log(room[n])
                total = float(log_room.sum()) if not empty else 0.0
                if not empty:
                    log_lists[n] = total - log_room[here]
                continue
            total -= log_room[here]
            log_lists[n] = total
            log_room[here] = math.log(room[n])
            total += log_room[here]
        weights = log_lists - EPSILON * np.floor(short.ravel()[flat]) / 2
        drawn = int(np.argmax(weights + random.gumbel(size=len(weights))))
        limit = short.ravel()[flat[drawn]]
        chosen = np.full(k, -1)
        chosen[place[drawn]] = column[drawn]
        for j in range(k):
            if j != place[drawn]:
                near = int(np.searchsorted(short[j], limit, side="right"))
                while chosen[j] < 0:
                    one = int(random.integers(near))
                    if one not in chosen:
                        chosen[j] = one
        return order[chosen]

    return pick


CONTENDERS: dict[str, Callable[[int], Pick]] = {
    "privmax, a set": lambda k: ours(k, delta=DELTA),
    "privmax, a set, delta 0": ours,
    "privmax, in order": lambda k: ours(k, delta=DELTA, ranked=True),
    "OpenDP noisy top k": opendp_top_k,
    GUMBEL: gumbel_top_k,
    "joint list": joint_list,
}


def cell(contender: str, k: int, file: str) -> Iterator[Row]:
    """The steps of one cell, in its own process."""
    pick = CONTENDERS[contender](k)
    counts: Counts = np.load(file)
    pick(counts[: 4 * k].copy())
    memory = PeakMemory()
    yield {"time": clocked(lambda: pick(counts)), "growth": memory.growth()}
    for _ in range(CALLS - 1):
        yield {"time": clocked(lambda: pick(counts))}


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    sizes, lengths = ((10**4,), (10,)) if options.quick else (SIZES, LENGTHS)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "counts.npy")
        for size in sizes:
            np.save(file, counts_of(size))
            yield {
                "lists": [
                    timed(name, k, size, file)
                    for k in lengths
                    for name in CONTENDERS
                    if k <= 1000 or (name == "privmax, a set" and 4 * k <= size)
                ]
            }


def timed(name: str, k: int, size: int, file: str) -> Row:
    row: Row = {"contender": name, "k": k, "K": size}
    if name == "joint list" and k * size > 10**8:
        return row | {"ending": LIMIT}  # its table would not fit into memory
    steps, ending = in_child(cell, name, k, file, limit=LONGEST)
    row |= medians([step["time"] for step in steps], ending, LONGEST)
    if row["ending"] == DONE and steps:
        row["growth"] = steps[0]["growth"]
    note(f"{size:<9} {k:<5} {name:26} {row.get('median', row['ending'])}")
    return row


def turns(k: int, size: int, rounds: int) -> Iterator[tuple[str, Times]]:
    """Calls of privmax and NumPy in turn, after two that do not count."""
    quick = [name for name in CONTENDERS if name == GUMBEL or name.startswith("privmax")]
    ready = {name: CONTENDERS[name](k) for name in quick}
    counts = counts_of(size)
    for number in range(rounds + 2):
        for name, pick in ready.items():
            taken = clocked(lambda call=pick: call(counts))  # type: ignore[misc]
            if number >= 2:
                yield name, taken


def measure_turns(options: argparse.Namespace) -> Rows:
    """All of them in one process, by K and k."""
    rows: list[Row] = []
    for size, rounds in TURNS.items():
        for k in LENGTHS[:3]:
            steps, ending = in_child(turns, k, size, 3 if options.quick else rounds, limit=600)
            if ending != DONE:
                raise SystemExit(f"the turns ended with: {ending}")
            times: dict[str, list[Times]] = {}
            for name, taken in steps:
                times.setdefault(name, []).append(taken)
            found = {name: medians(some) for name, some in times.items()}
            for name, row in found.items():
                factor = row["median"] / found[GUMBEL]["median"]
                rows.append({"contender": name, "k": k, "K": size, **row, "factor": factor})
                note(f"{size:<9} {k:<5} {name:26} {factor:.1f}")
    return {"turns": rows}


if __name__ == "__main__":
    Benchmark(
        "list-speed",
        "speed.lists",
        {"lists": measure, "turns": measure_turns},
        packages=("privmax", "numpy", "opendp"),
        settings={"epsilon": EPSILON, "delta": DELTA, "calls": CALLS},
        keys={"lists": ("K",)},
        compare=True,
    ).main()
