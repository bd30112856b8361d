"""Itemsets from a file: privmax against the miners that make nothing private, each told the support to stop at.

    ./dev python -m benchmarks.itemsets [--data FOLDER] [--quick] [--output FILE]

FOLDER (or the environment variable PRIVMAX_DATA) holds the transaction files that `profiles.py` names, which are not
part of this repository. One more file is generated here. Every call runs in a process of its own (`miners.py`), the
contenders take turns. The others are told the support that makes their work minimal, which privmax finds beforehand,
not timed; privmax itself is told nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import servers
from benchmarks.harness import DONE, RESULTS, Aim, about_run, medians, store
from benchmarks.miners import (
    CONTENDERS,
    DELTA,
    ECLAT,
    EPSILON,
    FLOOR,
    HERE,
    LIMIT,
    LIST,
    MEMORY,
    PLAIN,
    PRIVMAX,
    RELEASE,
    SMALL,
    SPARK,
    Job,
    lowest,
)
from benchmarks.profiles import FILES
from benchmarks.tables import itemset_tables, print_tables

GENERATED = "generated"
BASKETS, ITEMS, MEAN = 10**6, 41_000, 10
SEED = 5
CHUNK = 50_000
"""Baskets generated at a time."""

PAIR, TRIPLE, WITHIN, TOP, DEEP = "best pair", "best triple", "pairs within 500", "top 100", "10^5 triples"
RELEASED = "top 100, released"
SHARE = 200
"""The public floor of a release of a hundred: one basket in so many."""


@dataclass(frozen=True)
class Kind:
    """A job on any file: see `Job`. `sets` and `contenders` where it is not for all."""

    kind: str
    low: int
    high: int
    k: int
    width: int | None = None
    floored: bool = False
    sets: tuple[str, ...] = (*FILES, GENERATED)
    contenders: tuple[str, ...] = tuple(CONTENDERS)


OTHERS = tuple(name for name in CONTENDERS if name != FLOOR)
JOBS = {
    PAIR: Kind(RELEASE, 2, 2, 1),
    TRIPLE: Kind(RELEASE, 3, 3, 1, sets=FILES),
    WITHIN: Kind(LIST, 2, 2, 0, width=500, sets=FILES, contenders=OTHERS),
    TOP: Kind(LIST, 2, 4, 100, contenders=OTHERS),
    RELEASED: Kind(RELEASE, 2, 4, 100, floored=True, contenders=(PRIVMAX,)),
    DEEP: Kind(LIST, 3, 3, 10**5, sets=("retail", "online_retail", "T10I4D100K"), contenders=(PRIVMAX, ECLAT)),
}
SPARKED = {(one, job) for one in ("retail", "T10I4D100K", GENERATED) for job in (PAIR, TOP)}
"""What Spark is asked: it needs a quarter of a minute and more for each."""

REPEATS, FAR, SLOW = 3, 4, 20.0
"""Calls of each contender; only one if that takes over FAR times as long as the first of privmax, or SLOW seconds."""

MOST = 3.0
"""What finding the best may cost, in floors."""

CLOCKS = {"median": "processor time", "wall": "time"}


def baskets(number: int, items: int) -> Iterator[bytes]:
    """Lines of baskets, CHUNK at a time: a Poisson number of items and one more, of rank r with probability
    ln((r + 2) / (r + 1)) / ln(items); an item drawn twice is there once. The names are scattered over the ranks."""
    random = np.random.default_rng(SEED)
    for first in range(0, number, CHUNK):
        lengths = random.poisson(MEAN, min(CHUNK, number - first)) + 1
        ranks = np.floor(items ** random.random(int(lengths.sum()))).astype(np.int64) - 1
        rows = np.repeat(np.arange(len(lengths)), lengths)
        found = np.unique(rows * items + ranks * 2654435761 % items)
        names = iter((found % items).tolist())
        counts = np.bincount(found // items, minlength=len(lengths)).tolist()
        yield "".join(" ".join(str(next(names)) for _ in range(count)) + "\n" for count in counts).encode()


def generate(file: Path, number: int, items: int, bar: Progress) -> Path:
    task = bar.add_task(f"generating {number} baskets", total=-(-number // CHUNK))
    with file.open("wb") as out:
        for part in baskets(number, items):
            out.write(part)
            bar.advance(task)
    bar.remove_task(task)
    return file


@dataclass
class Wanted:
    """A job on a file, and what it must find: how many itemsets with what sum of supports, or one of the best."""

    job: Job
    number: int
    total: int
    best: list[list[int]]


def wanted(file: Path, kind: Kind, small: Path) -> Wanted:
    """Found by privmax's own miner, not timed. Every other miner must find the same."""
    from privmax.itemsets.miner import Miner
    from privmax.itemsets.reading import read

    rows = read(file)
    window = Miner(rows, range(kind.low, kind.high + 1))
    if kind.width is not None:
        least = max(1, window.best() - kind.width)
    else:
        least = lowest(window, kind.k)
    sets, supports = window.above(least - 1)
    best = [sorted(rows.labels[code] for code in one) for one in sets] if kind.k == 1 else []
    floor = rows.rows // SHARE if kind.floored else 0
    job = Job(
        str(file), rows.rows, str(small), kind.kind, kind.low, kind.high, kind.k, least, width=kind.width, floor=floor
    )
    return Wanted(job, len(supports), int(supports.sum()), best)


class Bench:
    """The environments, the folder for what is made, and progress."""

    def __init__(self, scratch: Path, bar: Progress) -> None:
        self.scratch, self._bar = scratch, bar
        self._task = bar.add_task("", total=None)
        command = ["./dev", "compare", "python", "-c", "import sys; print(sys.executable)"]
        shown = subprocess.run(command, cwd=RESULTS.parents[1], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.compare = shown.split()[-1]

    def expect(self, name: str, steps: int) -> None:
        self._bar.reset(self._task, total=steps, description=name)

    def measure(self, name: str, contender: str, job: Job) -> dict[str, Any]:
        run = subprocess.run(
            [sys.executable if contender in HERE else self.compare, "-m", "benchmarks.miners", contender,
             json.dumps(asdict(job))],
            cwd=RESULTS.parents[1],
            env={**os.environ, "TMPDIR": str(self.scratch)},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if run.returncode == 0:
            row: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
        elif run.returncode == -signal.SIGALRM:
            row = {"ending": "time limit"}
        elif run.returncode == -signal.SIGKILL or "MemoryError" in run.stderr or "bad_alloc" in run.stderr:
            row = {"ending": "out of memory"}
        else:
            row = {"ending": "failed", "why": (run.stderr.strip().splitlines() or [""])[-1][:80]}
        told = f"{row['time'][1]:8.3f} s  {row['growth'] / 2**20:6.0f} MiB" if "time" in row else row["ending"]
        self._bar.console.print(f"{name:36} {contender:22} {told}", highlight=False, markup=False)
        self._bar.advance(self._task)
        return row


def checked(contender: str, call: dict[str, Any], want: Wanted) -> None:
    """A miner that finds something else than the others is no contender; a release is random, and what it is, shown."""
    if contender == FLOOR or call["ending"] != DONE:
        return
    found = call["found"]
    if contender in (PRIVMAX, PLAIN) and want.job.kind == RELEASE:
        call["released"] = len(found)
        if want.best:
            call["right"] = sorted(found[0]) in want.best if found else False
    elif found != [want.number, want.total]:
        call["ending"] = "wrong answer"


def in_turn(bench: Bench, name: str, want: Wanted, contenders: list[str]) -> list[dict[str, Any]]:
    """One row a contender: the medians of its calls."""
    calls: dict[str, list[dict[str, Any]]] = {contender: [] for contender in contenders}
    for _ in range(REPEATS):
        for contender, made in calls.items():
            if not made or repeated(made[0], calls[PRIVMAX]):
                made.append(bench.measure(name, contender, want.job))
                checked(contender, made[-1], want)
    return [{"contender": contender, **middle(made)} for contender, made in calls.items()]


def repeated(first: dict[str, Any], ours: list[dict[str, Any]]) -> bool:
    """Whether a contender is called again."""
    if "time" not in first or first["time"][1] > SLOW:
        return False
    return not ours or "time" not in ours[0] or first["time"][1] <= FAR * ours[0]["time"][1]


def middle(calls: list[dict[str, Any]]) -> dict[str, Any]:
    endings = [call["ending"] for call in calls if call["ending"] != DONE]
    if endings:
        return {"ending": endings[0], **({"why": calls[0]["why"]} if "why" in calls[0] else {})}
    row = medians([tuple(call["time"]) for call in calls])
    del row["stopped"]
    row |= {key: max(call[key] for call in calls) for key in ("growth", "peak")}
    row["start"] = float(np.median([call["start"] for call in calls]))
    if "released" in calls[0]:
        row["released"] = [call["released"] for call in calls]
    if "right" in calls[0]:
        row["right"] = sum(call["right"] for call in calls)
    return row


def ratios(rows: list[dict[str, Any]], jobs: tuple[str, ...], rivals: tuple[str, ...], key: str) -> dict[str, float]:
    """What privmax takes of what each rival takes, wherever both have finished."""
    found = {(row["set"], row["job"], row["contender"]): row for row in rows if row["ending"] == DONE}
    return {
        f"{name}, {job}, {rival}": found[name, job, PRIVMAX][key] / max(found[name, job, rival][key], 1e-9)
        for name, job, rival in found
        if job in jobs and rival in rivals and (name, job, PRIVMAX) in found
    }


def judgements(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every aim, by both clocks."""
    others = tuple(name for name in CONTENDERS if name not in (PRIVMAX, PLAIN, FLOOR))
    fast = tuple(name for name in others if name.startswith("pyfim"))
    found = []
    for key, clock in CLOCKS.items():
        for job in (PAIR, TRIPLE):
            floors = ratios(rows, (job,), (FLOOR,), key)
            found.append(Aim(f"{clock} in floors", most=MOST).judge(job, floors))
            against = ratios(rows, (job,), others, key)
            found.append(Aim(f"{clock} against every miner", most=1).judge(job, against))
        for job in (TOP, WITHIN):
            found.append(Aim(f"{clock} against pyfim", most=1).judge(job, ratios(rows, (job,), fast, key)))
        found.append(Aim(f"{clock} against pyfim eclat", most=1).judge(DEEP, ratios(rows, (DEEP,), (ECLAT,), key)))
        large = {
            row["job"]: row[key]
            for row in rows
            if (row["set"], row["contender"], row["ending"]) == (GENERATED, PRIVMAX, DONE) and row["job"] != RELEASED
        }
        found.append(Aim(f"{clock} for 10^6 baskets, in seconds", most=1).judge("best pair, top 100", large))
    for key, memory in (("growth", "memory"), ("peak", "memory with what was imported")):
        against = ratios(rows, tuple(JOBS), others, key)
        found.append(Aim(f"{memory} against every miner", most=1).judge("all jobs", against))
    return found


def run_facts(quick: bool) -> dict[str, Any]:
    facts = about_run(quick=quick)
    versions = {name: metadata.version(name) for name in ("privmax", "numpy", "numba", "pyspark")}
    return {**facts, "command": "./dev python -m benchmarks.itemsets" + " --quick" * quick, "versions": versions}


def versions(python: str) -> dict[str, str]:
    """Of the miners in the other environment."""
    names = ("pyfim", "mlxtend", "efficient-apriori", "PAMI")
    code = f"import importlib.metadata as m; print(*[m.version(name) for name in {names}])"
    shown = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(zip(names, shown.split(), strict=True))


def measured(bench: Bench, files: dict[str, Path], small: Path) -> Iterator[dict[str, Any]]:
    for name, file in files.items():
        for title, kind in JOBS.items():
            if name not in kind.sets:
                continue
            contenders = [one for one in kind.contenders if one != SPARK or (name, title) in SPARKED]
            bench.expect(f"{name}, {title}", len(contenders))
            want = wanted(file, kind, small)
            facts = {"set": name, "job": title, "least": want.job.least, "number": want.number}
            for row in in_turn(bench, f"{name}, {title}", want, contenders):
                yield {**facts, **row}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time privmax against miners of frequent itemsets.")
    parser.add_argument("--data", type=Path, default=os.environ.get("PRIVMAX_DATA"), help="folder of transaction files")
    parser.add_argument("--quick", action="store_true", help="only the two smallest files; stores nothing by itself")
    parser.add_argument("--output", type=Path, help="JSON file to write (default: results/itemsets.json)")
    options = parser.parse_args()
    data = None if options.data is None else Path(options.data)
    here = {name: data / f"{name}.dat" for name in FILES} if data else {}
    missing = [name for name in FILES if name not in here or not here[name].exists()]
    if missing:
        print(f"SKIPPED: {', '.join(missing)}: not there. Name their folder with --data.", file=sys.stderr)
    files = {name: file for name, file in here.items() if name not in missing}
    target = options.output or (None if options.quick or missing else RESULTS / "itemsets.json")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="privmax-itemsets-") as temporary,
        Progress(*columns, console=Console(stderr=True, soft_wrap=True), transient=True) as bar,
    ):
        facts = run_facts(options.quick)
        bench = Bench(Path(temporary), bar)
        facts["versions"] |= versions(bench.compare)
        small = generate(bench.scratch / "small.dat", SMALL, 100, bar)
        if options.quick:
            files = {name: files[name] for name in files if name in ("groceries", "bms1")}
        else:
            files[GENERATED] = generate(bench.scratch / f"{GENERATED}.dat", BASKETS, ITEMS, bar)
        rows = list(measured(bench, files, small))
        facts["load at the end"] = round(os.getloadavg()[0], 2)
    result = {
        "benchmark": "itemsets",
        "run": facts,
        "settings": {
            "epsilon": EPSILON,
            "delta": DELTA,
            "limit": LIMIT,
            "memory": MEMORY,
            "floor": f"one basket in {SHARE}",
            "repeats": [REPEATS, FAR, SLOW],
            "generated": {"baskets": BASKETS, "items": ITEMS, "mean": MEAN, "seed": SEED},
            "spark": servers.SPARK,
        },
        "rows": rows,
        "aims": judgements(rows),
    }
    print_tables(itemset_tables(result))
    if target:
        store(result, target)
    else:
        print("nothing was stored", file=sys.stderr)


if __name__ == "__main__":
    main()
