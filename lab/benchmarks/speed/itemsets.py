"""Itemsets from a file: privmax against miners that make nothing private.

    ./dev python -m lab.benchmarks.speed.itemsets --data FOLDER [--part NAME]

FOLDER (or the variable PRIVMAX_DATA) holds the transaction files that quality/profiles.py names,
which are not part of this repository. One more file is generated here. Every call runs in a process
of its own, forked from one that has imported everything (miners.py); the contenders take turns. The
others are told the support that makes their work minimal, which privmax finds beforehand, not
timed; privmax itself is told nothing. A part is a file, `table` a generated Parquet
file with a row per item, for which whole processes are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

from lab.benchmarks.harness import DONE, Benchmark, Row, Rows, medians, note
from lab.benchmarks.quality.profiles import FILES, folder
from lab.benchmarks.speed.engines import SPARK as SPARK_SETTINGS
from lab.benchmarks.speed.miners import (
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
    TOLD,
    Job,
    lowest,
)

ROOT = Path(__file__).parents[3]
GENERATED = "generated"
BASKETS, ITEMS, MEAN, SEED = 10**6, 41_000, 10, 5
TABLE, ROWS, ROUNDS = "table", 10**7, 3
"""A table of so many rows: one of 20,000 items, few of them frequent, in ROWS / 8 baskets."""

PAIR = """
import duckdb
rows = "(SELECT DISTINCT r.basket, r.item FROM '{file}' r JOIN (SELECT item FROM '{file}' "
rows += "GROUP BY item HAVING count(*) >= {cut}) USING (item))"
query = f"SELECT a.item, b.item, count(*) n FROM {{rows}} a JOIN {{rows}} b ON a.basket = b.basket "
query += "AND a.item < b.item GROUP BY ALL ORDER BY n DESC LIMIT 1"
print(duckdb.sql(query).fetchall()[0][2])
"""
"""The best pair, by a query that is told from which support on items may be in it."""

CHUNK = 50_000
"""Baskets generated at a time."""

SHARE = 200
"""The public floor of a release of a hundred: one basket in so many."""


@dataclass(frozen=True)
class Kind:
    """A job on any file: see `Job`."""

    kind: str
    low: int
    high: int
    k: int
    contenders: tuple[str, ...]
    width: int | None = None
    floored: bool = False
    sets: tuple[str, ...] = (*FILES, GENERATED)


ALL = tuple(name for name in CONTENDERS if name != TOLD)
NO_FLOOR = tuple(name for name in CONTENDERS if name != FLOOR)
WIDE = ("retail", "online_retail", "T10I4D100K")
JOBS = {
    "best pair": Kind(RELEASE, 2, 2, 1, ALL),
    "best triple": Kind(RELEASE, 3, 3, 1, ALL, sets=FILES),
    "pairs within 500": Kind(
        LIST, 2, 2, 0, tuple(name for name in ALL if name != FLOOR), width=500, sets=FILES
    ),
    "top 100": Kind(LIST, 2, 4, 100, NO_FLOOR),
    "top 100, released": Kind(RELEASE, 2, 4, 100, (PRIVMAX,), floored=True),
    "1000 of all sizes, released": Kind(RELEASE, 2, 20, 1000, (PRIVMAX, ECLAT), sets=FILES),
    "10^5 triples": Kind(LIST, 3, 3, 10**5, (PRIVMAX, TOLD, ECLAT), sets=WIDE),
}
SPARKED = {(one, "best pair") for one in ("retail", "T10I4D100K", GENERATED)}
"""What Spark is asked: with its start it needs a minute for each."""

REPEATS, FAR, SLOW = 3, 4, 20.0
"""Calls of each contender; only one if that takes over FAR times as long as the first of privmax,
or SLOW seconds.
"""


def generate(file: Path, number: int, items: int) -> Path:
    """Write baskets of a Poisson number of items and one more, of rank r with probability
    ln((r + 2) / (r + 1)) / ln(items).

    An item drawn twice is there once. The names are scattered over the ranks.
    """
    random = np.random.default_rng(SEED)
    with file.open("w") as out:
        for first in range(0, number, CHUNK):
            lengths = random.poisson(MEAN, min(CHUNK, number - first)) + 1
            ranks = np.floor(items ** random.random(int(lengths.sum()))).astype(np.int64) - 1
            rows = np.repeat(np.arange(len(lengths)), lengths)
            found = np.unique(rows * items + ranks * 2654435761 % items)
            names = iter((found % items).tolist())
            for count in np.bincount(found // items, minlength=len(lengths)).tolist():
                out.write(" ".join(str(next(names)) for _ in range(count)) + "\n")
    return file


@dataclass
class Wanted:
    """A job, and what it must find: how many itemsets with what sum of supports, or the best."""

    job: Job
    number: int
    total: int
    best: list[list[int]]


def wanted(file: Path, kind: Kind, small: Path) -> Wanted:
    """Found by privmax's own miner, not timed. Every other miner must find the same."""
    from privmax.itemsets.miner.window import Miner
    from privmax.itemsets.reading.forms import read_baskets

    rows = read_baskets(file)
    window = Miner(rows, range(kind.low, kind.high + 1))
    if kind.width is not None:
        least = max(1, window.best() - kind.width)
    else:
        least = lowest(window, kind.k)
    sets, supports = window.above(least - 1)
    best = [sorted(rows.labels[code] for code in one) for one in sets] if kind.k == 1 else []
    floor = rows.rows // SHARE if kind.floored else 0
    shape = (kind.kind, kind.low, kind.high, kind.k, least)
    job = Job(str(file), rows.rows, str(small), *shape, width=kind.width, floor=floor)
    return Wanted(job, len(supports), int(supports.sum()), best)


class Bench:
    """The contenders, each in its environment."""

    def __init__(self, scratch: Path, small: Path) -> None:
        self.scratch, self.small = scratch, small
        self.compare = in_compare("import sys; print(sys.executable)")
        self._ready: dict[str, tuple[subprocess.Popen[str], float]] = {}

    def measure(self, contender: str, want: Wanted) -> Row:
        server, start = self._ready.get(contender) or self._start(contender)
        assert server.stdin is not None
        print(json.dumps(asdict(want.job)), file=server.stdin, flush=True)
        row = {**_answer(server), "start": start}
        if contender == SPARK:
            self._end(contender)
        check(contender, row, want)
        note(f"    {contender:26} {row.get('time', row['ending'])}")
        return row

    def close(self) -> None:
        for contender in list(self._ready):
            self._end(contender)

    def _start(self, contender: str) -> tuple[subprocess.Popen[str], float]:
        python = sys.executable if contender in HERE else self.compare
        with (self.scratch / "errors").open("a") as errors:  # Java and PAMI tell a lot
            server = subprocess.Popen(
                [python, "-m", "lab.benchmarks.speed.miners", contender, str(self.small)],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self.scratch)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._ready[contender] = server, _answer(server).get("start", 0.0)
        return self._ready[contender]

    def _end(self, contender: str) -> None:
        server, _ = self._ready.pop(contender)
        assert server.stdin is not None
        server.stdin.close()
        server.wait()


def in_compare(code: str) -> str:
    """What a line of Python prints last in the environment of `./dev compare`."""
    command = ["./dev", "compare", "python", "-c", code]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split("\n")[-2]


def _answer(server: subprocess.Popen[str]) -> Row:
    """The next line of JSON; miners may print other lines of their own."""
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("{"):
            row: Row = json.loads(line)
            return row
    return {"ending": "time limit" if server.wait() == -signal.SIGALRM else "failed"}


def check(contender: str, call: Row, want: Wanted) -> None:
    """Who finds something else than the others is no contender; a release is random, and shown."""
    if contender == FLOOR or call["ending"] != DONE:
        return
    found = call["found"]
    if contender in (PRIVMAX, PLAIN) and want.job.kind == RELEASE:
        call["released"] = len(found)
        if want.best:
            call["right"] = sorted(found[0]) in want.best if found else False
    elif found != [want.number, want.total]:
        call["ending"] = "wrong answer"


def in_turn(bench: Bench, want: Wanted, contenders: list[str]) -> Iterator[Row]:
    """One row a contender: the medians of its calls."""
    calls: dict[str, list[Row]] = {contender: [] for contender in contenders}
    for _ in range(REPEATS):
        for contender, made in calls.items():
            if not made or repeated(made[0], calls[PRIVMAX]):
                made.append(bench.measure(contender, want))
    for contender, made in calls.items():
        yield {"contender": contender, **middle(made)}


def repeated(first: Row, ours: list[Row]) -> bool:
    """Whether a contender is called again."""
    if "time" not in first or first["time"][1] > SLOW:
        return False
    return not ours or "time" not in ours[0] or first["time"][1] <= FAR * ours[0]["time"][1]


def middle(calls: list[Row]) -> Row:
    endings = [call["ending"] for call in calls if call["ending"] != DONE]
    if endings:
        return {"ending": endings[0]}
    row = medians([tuple(call["time"]) for call in calls])
    del row["stopped"]
    row |= {key: max(call[key] for call in calls) for key in ("growth", "peak")}
    row["start"] = calls[0]["start"]
    if "released" in calls[0]:
        row["released"] = [call["released"] for call in calls]
    if "right" in calls[0]:
        row["right"] = sum(call["right"] for call in calls)
    return row


def measure(name: str, options: argparse.Namespace) -> Rows:
    """All jobs on one file."""
    data = folder(options.data)
    if name != GENERATED and (data is None or not (data / f"{name}.dat").exists()):
        note(f"SKIPPED: {name}.dat is not there. Name its folder with --data.")
        return {}
    if options.quick and name not in (FILES[0], *(options.part or ())):
        return {}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="privmax-itemsets-") as temporary:
        scratch = Path(temporary)
        bench = Bench(scratch, generate(scratch / "small.dat", SMALL, 100))
        if name == GENERATED:
            file = generate(scratch / "generated.dat", BASKETS, ITEMS)
        else:
            assert data is not None
            file = data / f"{name}.dat"
        for title, kind in JOBS.items():
            if name in kind.sets:
                note(f"{name}, {title}")
                chosen = [c for c in kind.contenders if c != SPARK or (name, title) in SPARKED]
                want = wanted(file, kind, bench.small)
                facts = {"set": name, "job": title, "support": want.job.least}
                facts["number"] = want.number
                rows += [{**facts, **row} for row in in_turn(bench, want, chosen)]
        bench.close()
    return {"rows": rows, "versions": versions()}


def versions() -> list[Row]:
    """Of the miners, in the other environment."""
    names = ("pyfim", "mlxtend", "efficient-apriori", "PAMI")
    code = f"import importlib.metadata as m; print(*[m.version(name) for name in {names}])"
    found = zip(names, in_compare(code).split(), strict=True)
    return [{"package": name, "version": version} for name, version in found]


def arguments(parser: argparse.ArgumentParser) -> Any:
    parser.add_argument("--data", type=Path, help="folder of the transaction files")


def table(options: argparse.Namespace) -> Rows:
    """Measure whole processes that find the best pair of a table, in turn."""
    rows, rounds = (10**5, 1) if options.quick else (ROWS, ROUNDS)
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="privmax-itemsets-") as folder:
        file = str(Path(folder) / "rows.parquet")
        item = "'item ' || floor(20000 * power(random(), 3))::INT"
        made = f"SELECT floor({rows // 8} * random())::INT basket, {item} item FROM range({rows})"
        duckdb.sql(f"SELECT setseed(0.5); COPY ({made}) TO '{file}' (FORMAT parquet)")
        top = f"SELECT count(*) n FROM '{file}' GROUP BY item ORDER BY n DESC LIMIT 1 OFFSET 30"
        told = duckdb.sql(top).fetchall()[0][0]
        best = subprocess.run([sys.executable, "-c", PAIR.format(file=file, cut=told)],
                              check=True, capture_output=True, text=True).stdout  # fmt: skip
        ours = ["-m", "privmax", "itemsets", file, "--basket", "basket", "--item", "item"]
        commands = {
            "DuckDB, told the support of the best pair": [
                "-c",
                PAIR.format(file=file, cut=int(best.split()[-1])),
            ],
            PRIVMAX: [*ours, "--epsilon", str(EPSILON), "--delta", str(DELTA)],
        }
        for _ in range(rounds):
            for name, command in commands.items():
                before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                done = subprocess.run([sys.executable, *command], capture_output=True, check=False)
                wall, after = (
                    time.perf_counter() - began,
                    resource.getrusage(resource.RUSAGE_CHILDREN),
                )
                if done.returncode not in (0, 3):
                    raise SystemExit(f"{name} failed")
                spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                found.setdefault(name, []).append((spent, wall))
                note(f"{name}: {spent:.2f} s of the processor, {wall:.2f} s")
    plain = next(iter(found.values()))
    return {
        "table": [
            {"contender": name, "processor": median(spent for spent, _ in each)}
            | {"wall": median(wall for _, wall in each)}
            | {"times": median(a / b for (a, _), (b, _) in zip(each, plain, strict=True))}
            for name, each in found.items()
        ]
    }


if __name__ == "__main__":
    Benchmark(
        "itemsets",
        "speed.itemsets",
        {name: partial(measure, name) for name in (*FILES, GENERATED)} | {TABLE: table},
        packages=("privmax", "numpy", "numba", "pyspark"),
        settings={
            "epsilon": EPSILON,
            "delta": DELTA,
            "limit": LIMIT,
            "memory": MEMORY,
            "floor": f"one basket in {SHARE}",
            "repeats": [REPEATS, FAR, SLOW],
            "generated": {"baskets": BASKETS, "items": ITEMS, "mean": MEAN, "seed": SEED},
            "spark": SPARK_SETTINGS,
        },
        keys={"rows": ("set",)},
        arguments=arguments,
    ).main()
