"""Itemsets from a file: privmax against the miners that make nothing private, each told the support
to stop at.

    ./dev python -m benchmarks.itemsets [--data FOLDER] [--set NAME] [--quick] [--output FILE]

FOLDER (or the environment variable PRIVMAX_DATA) holds the transaction files that `profiles.py`
names, which are not part of this repository. One more file is generated here. Every call runs in a
process of its own, forked from one that has imported everything (`miners.py`); the contenders take
turns. The others are told the support that makes their work minimal, which privmax finds
beforehand, not timed; privmax itself is told nothing. Results are stored file by file; `--set`
measures some and keeps the stored rest.
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
    TOLD,
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

PAIR, TRIPLE, WITHIN, TOP, DEEP = (
    "best pair",
    "best triple",
    "pairs within 500",
    "top 100",
    "10^5 triples",
)
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
    contenders: tuple[str, ...] = ()


ALL = tuple(name for name in CONTENDERS if name != TOLD)
NO_FLOOR = tuple(name for name in CONTENDERS if name != FLOOR)
JOBS = {
    PAIR: Kind(RELEASE, 2, 2, 1, contenders=ALL),
    TRIPLE: Kind(RELEASE, 3, 3, 1, contenders=ALL, sets=FILES),
    WITHIN: Kind(
        LIST,
        2,
        2,
        0,
        width=500,
        contenders=tuple(name for name in ALL if name != FLOOR),
        sets=FILES,
    ),
    TOP: Kind(LIST, 2, 4, 100, contenders=NO_FLOOR),
    RELEASED: Kind(RELEASE, 2, 4, 100, floored=True, contenders=(PRIVMAX,)),
    DEEP: Kind(
        LIST,
        3,
        3,
        10**5,
        contenders=(PRIVMAX, TOLD, ECLAT),
        sets=("retail", "online_retail", "T10I4D100K"),
    ),
}
SPARKED = {(one, PAIR) for one in ("retail", "T10I4D100K", GENERATED)}
"""What Spark is asked: with its start it needs a minute for each."""

REPEATS, FAR, SLOW = 3, 4, 20.0
"""Calls of each contender; only one if that takes over FAR times as long as the first of privmax,
or SLOW seconds.
"""

MOST = 3.0
"""What finding the best may cost, in floors."""

CLOCKS = {"median": "processor time", "wall": "time"}


def baskets(number: int, items: int) -> Iterator[bytes]:
    """Lines of baskets, CHUNK at a time: a Poisson number of items and one more, of rank r with
    probability ln((r + 2) / (r + 1)) / ln(items); an item drawn twice is there once. The names are
    scattered over the ranks."""
    random = np.random.default_rng(SEED)
    for first in range(0, number, CHUNK):
        lengths = random.poisson(MEAN, min(CHUNK, number - first)) + 1
        ranks = np.floor(items ** random.random(int(lengths.sum()))).astype(np.int64) - 1
        rows = np.repeat(np.arange(len(lengths)), lengths)
        found = np.unique(rows * items + ranks * 2654435761 % items)
        names = iter((found % items).tolist())
        counts = np.bincount(found // items, minlength=len(lengths)).tolist()
        yield "".join(
            " ".join(str(next(names)) for _ in range(count)) + "\n" for count in counts
        ).encode()


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
    """A job on a file, and what it must find: how many itemsets with what sum of supports, or one
    of the best.
    """

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
    job = Job(
        str(file),
        rows.rows,
        str(small),
        kind.kind,
        kind.low,
        kind.high,
        kind.k,
        least,
        width=kind.width,
        floor=floor,
    )
    return Wanted(job, len(supports), int(supports.sum()), best)


class Bench:
    """The contenders, each in its environment, the folder for what is made, and progress."""

    def __init__(self, scratch: Path, small: Path, bar: Progress) -> None:
        self.scratch, self.small, self._bar = scratch, small, bar
        self._task = bar.add_task("", total=None)
        command = ["./dev", "compare", "python", "-c", "import sys; print(sys.executable)"]
        shown = subprocess.run(
            command, cwd=RESULTS.parents[1], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        self.compare = shown.split()[-1]
        self._ready: dict[str, tuple[subprocess.Popen[str], float]] = {}

    def expect(self, name: str, steps: int) -> None:
        self._bar.reset(self._task, total=steps, description=name)

    def measure(self, name: str, contender: str, job: Job) -> dict[str, Any]:
        server, start = self._ready.get(contender) or self._started(contender)
        assert server.stdin is not None
        print(json.dumps(asdict(job)), file=server.stdin, flush=True)
        row = _answer(server)
        if contender == SPARK:
            self._end(contender)
        row["start"] = start
        told = (
            f"{row['time'][1]:8.3f} s  {row['growth'] / 2**20:6.0f} MiB"
            if "time" in row
            else row["ending"]
        )
        self._bar.console.print(f"{name:36} {contender:22} {told}", highlight=False, markup=False)
        self._bar.advance(self._task)
        return row

    def close(self) -> None:
        for contender in list(self._ready):
            self._end(contender)

    def _started(self, contender: str) -> tuple[subprocess.Popen[str], float]:
        python = sys.executable if contender in HERE else self.compare
        with (self.scratch / "errors").open("a") as errors:  # Java and PAMI tell a lot
            server = subprocess.Popen(
                [python, "-m", "benchmarks.miners", contender, str(self.small)],
                cwd=RESULTS.parents[1],
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


def _answer(server: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of JSON; miners may print other lines of their own."""
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("{"):
            row: dict[str, Any] = json.loads(line)
            return row
    return {"ending": "time limit" if server.wait() == -signal.SIGALRM else "failed"}


def checked(contender: str, call: dict[str, Any], want: Wanted) -> None:
    """A miner that finds something else than the others is no contender; a release is random, and
    what it is, shown.
    """
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


def ratios(
    rows: list[dict[str, Any]],
    jobs: tuple[str, ...],
    rivals: tuple[str, ...],
    key: str,
    ours: str = PRIVMAX,
) -> dict[str, float]:
    """What privmax takes of what each rival takes, wherever both have finished."""
    found = {
        (row["set"], row["job"], row["contender"]): row for row in rows if row["ending"] == DONE
    }
    return {
        f"{name}, {job}, {rival}": found[name, job, ours][key]
        / max(found[name, job, rival][key], 1e-9)
        for name, job, rival in found
        if job in jobs and rival in rivals and (name, job, ours) in found
    }


def judgements(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every aim, by both clocks."""
    others = tuple(name for name in CONTENDERS if name not in (PRIVMAX, PLAIN, TOLD, FLOOR))
    fast = tuple(name for name in others if name.startswith("pyfim"))
    found = []
    for key, clock in CLOCKS.items():
        for job in (PAIR, TRIPLE):
            floors = ratios(rows, (job,), (FLOOR,), key)
            found.append(Aim(f"{clock} in floors", most=MOST).judge(job, floors))
            against = ratios(rows, (job,), others, key)
            found.append(Aim(f"{clock} against every miner", most=1).judge(job, against))
        for job in (TOP, WITHIN):
            found.append(
                Aim(f"{clock} against pyfim", most=1).judge(job, ratios(rows, (job,), fast, key))
            )
        for ours, subject in ((PRIVMAX, DEEP), (TOLD, f"{DEEP}, told the support")):
            against = ratios(rows, (DEEP,), (ECLAT,), key, ours)
            found.append(Aim(f"{clock} against pyfim eclat", most=1).judge(subject, against))
        large = {
            row["job"]: row[key]
            for row in rows
            if (row["set"], row["contender"], row["ending"]) == (GENERATED, PRIVMAX, DONE)
            and row["job"] != RELEASED
        }
        found.append(
            Aim(f"{clock} for 10^6 baskets, in seconds", most=1).judge("best pair, top 100", large)
        )
    for key, memory in (("growth", "memory"), ("peak", "memory with what was imported")):
        against = ratios(rows, tuple(JOBS), others, key)
        found.append(Aim(f"{memory} against every miner", most=1).judge("all jobs", against))
    return found


def run_facts(python: str) -> dict[str, Any]:
    """Where, when and with what; `python` is that of the other environment."""
    names = ("pyfim", "mlxtend", "efficient-apriori", "PAMI")
    code = f"import importlib.metadata as m; print(*[m.version(name) for name in {names}])"
    shown = subprocess.run(
        [python, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    versions = {name: metadata.version(name) for name in ("privmax", "numpy", "numba", "pyspark")}
    versions |= dict(zip(names, shown.split(), strict=True))
    return {
        **about_run(quick=False),
        "command": "./dev python -m benchmarks.itemsets",
        "versions": versions,
    }


def measured(bench: Bench, name: str, file: Path) -> Iterator[dict[str, Any]]:
    """All jobs on one file."""
    for title, kind in JOBS.items():
        if name not in kind.sets:
            continue
        contenders = [one for one in kind.contenders if one != SPARK or (name, title) in SPARKED]
        bench.expect(f"{name}, {title}", len(contenders))
        want = wanted(file, kind, bench.small)
        facts = {"set": name, "job": title, "support": want.job.least, "number": want.number}
        for row in in_turn(bench, f"{name}, {title}", want, contenders):
            yield {**facts, **row}


def merged(
    before: dict[str, Any], name: str, facts: dict[str, Any], new: list[dict[str, Any]]
) -> dict[str, Any]:
    """A stored result with one file measured anew."""
    runs = {run["set"]: run for run in before["runs"]} | {name: {"set": name, **facts}}
    rows = [row for row in before["rows"] if row["set"] != name] + new
    order = [*FILES, GENERATED]
    jobs = list(JOBS)
    rows.sort(key=lambda row: (jobs.index(row["job"]), order.index(row["set"])))
    return {
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
        "runs": [runs[one] for one in order if one in runs],
        "rows": rows,
        "aims": judgements(rows),
    }


def present(folder: Path | None) -> tuple[dict[str, Path], list[str]]:
    """The files that are there, and the names of the others."""
    files = {name: folder / f"{name}.dat" for name in FILES} if folder else {}
    missing = [name for name in FILES if name not in files or not files[name].exists()]
    return {name: file for name, file in files.items() if name not in missing}, missing


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Time privmax against miners of frequent itemsets."
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("PRIVMAX_DATA"),
        help="folder of transaction files",
    )
    parser.add_argument(
        "--set",
        action="append",
        choices=[*FILES, GENERATED],
        help="measure only this one, keep others",
    )
    parser.add_argument(
        "--quick", action="store_true", help="only the smallest file; stores nothing by itself"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/itemsets.json)"
    )
    options = parser.parse_args()
    files, missing = present(None if options.data is None else Path(options.data))
    if missing:
        print(
            f"SKIPPED: {', '.join(missing)}: not there. Name their folder with --data.",
            file=sys.stderr,
        )
    chosen = options.set or ([FILES[0]] if options.quick else [*FILES, GENERATED])
    target = options.output or (None if options.quick else RESULTS / "itemsets.json")
    empty: dict[str, Any] = {"runs": [], "rows": []}
    result = json.loads(target.read_text(encoding="utf-8")) if target and target.exists() else empty
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="privmax-itemsets-") as temporary,
        Progress(*columns, console=Console(stderr=True, soft_wrap=True), transient=True) as bar,
    ):
        small = generate(Path(temporary) / "small.dat", SMALL, 100, bar)
        bench = Bench(Path(temporary), small, bar)
        for name in chosen:
            if name == GENERATED:
                files[name] = generate(bench.scratch / f"{name}.dat", BASKETS, ITEMS, bar)
            if name in files:
                facts = run_facts(bench.compare)
                rows = list(measured(bench, name, files[name]))
                facts["load at the end"] = round(os.getloadavg()[0], 2)
                result = merged(result, name, facts, rows)
                if target:
                    store(result, target)
        bench.close()
    if result["rows"]:
        print_tables(itemset_tables(result))
    if not target:
        print("nothing was stored", file=sys.stderr)


if __name__ == "__main__":
    main()
