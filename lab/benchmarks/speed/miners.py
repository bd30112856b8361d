"""One miner, which does the jobs it reads, each in a process forked for it, for itemsets.py.

    python -m lab.benchmarks.speed.miners CONTENDER SMALL

It imports what it needs, mines the file SMALL and says how long that took. Then it reads `Job`s as
JSON, one a line, and answers each with a line of JSON. The contenders import inside of functions,
because no environment holds all of them: mlxtend, PAMI, efficient-apriori and pyfim are in
`.venv-compare`, the others in `.venv`.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.harness import PeakMemory, Row, clocked, processor_time
from privmax.itemsets import Layout

EPSILON, DELTA = 1, "1e-6"
LIMIT = 120
"""Seconds one call may take."""

MEMORY = 8 << 30
"""Bytes a contender may address; Spark has a limit of its own."""

SMALL = 1000
"""Baskets of the file on which everybody warms up."""

RELEASE, LIST = "release", "list"


@dataclass(frozen=True)
class Job:
    """What is asked of a miner.

    kind     whether privmax releases k itemsets under differential privacy or lists all that are
             wanted
    least    the lowest support that is wanted: all others are told it, privmax only where it says
             so
    width    how far below the best support a list reaches; None: as far as it takes to have k
    floor    public floor of a release
    """

    file: str
    rows: int
    small: str
    kind: str
    low: int
    high: int
    k: int
    least: int
    width: int | None = None
    floor: int = 0

    def warm_up(self) -> Job:
        """The same on the small file."""
        low = SMALL // 20
        return replace(self, file=self.small, rows=SMALL, least=low, floor=low, k=min(self.k, 100))


Found = tuple[int, int] | list[list[int]]
"""How many itemsets were found and the sum of their supports; or the itemsets that were
released.
"""

Miner = Callable[[Job], Found]


def privmax(*, told: bool = False) -> Miner:
    from privmax.itemsets import top_itemsets
    from privmax.itemsets.miner.window import Miner as Window
    from privmax.itemsets.reading.forms import read_baskets

    with suppress(ImportError):  # privmax loads it only for files that are worth it
        importlib.import_module("numba")

    def mine(job: Job) -> Found:
        if job.kind == RELEASE:
            release = top_itemsets(
                job.file,
                size=(job.low, job.high),
                k=job.k,
                epsilon=EPSILON,
                delta=DELTA,
                layout=Layout(floor=job.floor),
            )
            return [list(one) for one in release.items]
        window = Window(read_baskets(job.file), range(job.low, job.high + 1))
        if told:
            least = job.least
        elif job.width is not None:
            least = max(1, window.best() - job.width)
        else:
            least = lowest(window, job.k)
        _, supports = window.above(least - 1)
        return len(supports), int(supports.sum())

    return mine


def lowest(window: Any, k: int) -> int:
    """The support of the k-th itemset; 1 if there are fewer.

    It goes down until there are k, each time to where there would be some more than k if their
    number grew as a power of the support, as it did before; by a twentieth at least and to a
    quarter at most.
    """
    above, before = window.best(), (0, 0)
    goal = above * 0.75
    while above > 0:
        above = min(above - 1, int(goal))
        number = 0
        for support, count in window.histogram(above):
            number += count
            if number >= k:
                return int(support)
        goal = above * 0.75
        if above and before[1] and number > before[1]:
            power = math.log(number / before[1]) / math.log(before[0] / above)
            goal = above * (number / (1.2 * k)) ** (1 / power)
        goal = min(max(goal, above / 4), above * 0.95)
        before = above, number
    return 1


def without_numba() -> Miner:
    sys.modules["numba"] = None  # type: ignore[assignment]  # importing it now fails, as where it is not installed
    return privmax()


def floor() -> Miner:
    """Read the file, parse it and count the items: what nobody who reads text can do without."""
    import numba

    @numba.njit(cache=True)
    def counted(text: Any, counts: Any) -> int:
        value, within, total = 0, False, 0
        for byte in text:
            if byte >= 48:
                value = 10 * value + (byte - 48)
                within = True
            elif within:
                counts[value] += 1
                total += 1
                value, within = 0, False
        return total

    def mine(job: Job) -> Found:
        text = np.frombuffer(Path(job.file).read_bytes(), np.uint8)
        counts = np.zeros(1 << 17, np.int64)
        counted(text, counts)
        return int(np.count_nonzero(counts)), int(counts.sum())

    return mine


def baskets_of(job: Job) -> list[list[str]]:
    with open(job.file) as lines:
        return [line.split() for line in lines]


def pyfim(algorithm: str) -> Miner:
    import fim  # type: ignore[import-not-found, unused-ignore]  # in .venv-compare, as are those below

    run = getattr(fim, algorithm)

    def mine(job: Job) -> Found:
        sets = run(baskets_of(job), supp=-job.least, zmin=job.low, zmax=job.high)
        sets.sort(key=lambda one: -one[1])
        return len(sets), sum(support for _, support in sets)

    return mine


def mlxtend(algorithm: str) -> Miner:
    import pandas as pd
    from mlxtend import frequent_patterns  # type: ignore[import-not-found, unused-ignore]
    from mlxtend.preprocessing import TransactionEncoder  # type: ignore[import-not-found, unused-ignore]

    run = getattr(frequent_patterns, algorithm)
    # Otherwise it makes an array of all candidates by all baskets: 38 GB for the pairs of
    # T10I4D100K.
    options = {"low_memory": True} if algorithm == "apriori" else {}

    def mine(job: Job) -> Found:
        baskets, encoder = baskets_of(job), TransactionEncoder()
        table = encoder.fit(baskets).transform(baskets, sparse=True)
        sparse: Any = pd.DataFrame.sparse
        frame = sparse.from_spmatrix(table, columns=[str(name) for name in encoder.columns_])
        sets = run(frame, min_support=share(job), max_len=job.high, **options)
        sets = sets[sets["itemsets"].map(len) >= job.low].sort_values("support", ascending=False)
        return of([round(support * job.rows) for support in sets["support"]])

    return mine


def efficient_apriori() -> Miner:
    from efficient_apriori import itemsets_from_transactions  # type: ignore[import-not-found, unused-ignore]

    def mine(job: Job) -> Found:
        baskets = list(map(tuple, baskets_of(job)))
        sets, _ = itemsets_from_transactions(baskets, min_support=share(job), max_length=job.high)
        supports = [
            count for size, found in sets.items() if size >= job.low for count in found.values()
        ]
        return of(sorted(supports, reverse=True))

    return mine


def pami() -> Miner:
    from PAMI.frequentPattern.basic.FPGrowth import FPGrowth  # type: ignore[import-not-found, unused-ignore]

    def mine(job: Job) -> Found:
        miner = FPGrowth(job.file, job.least, sep=" ")
        miner.mine()
        sets = miner.getPatterns()
        wanted = [count for name, count in sets.items() if job.low <= sized(name) <= job.high]
        return of(sorted(wanted, reverse=True))

    return mine


def spark() -> Miner:
    from pyspark.ml.fpm import FPGrowth
    from pyspark.sql import functions as sql

    from lab.benchmarks.speed.engines import spark_session

    session = spark_session(Path(tempfile.gettempdir()))

    def mine(job: Job) -> Found:
        lines = session.read.text(job.file).select(
            sql.split(sql.trim("value"), " +").alias("items")
        )
        model = FPGrowth(minSupport=share(job)).fit(lines)
        sets = model.freqItemsets.where(sql.size("items").between(job.low, job.high)).orderBy(
            sql.desc("freq")
        )
        return of([row["freq"] for row in sets.select("freq").collect()])

    return mine


def share(job: Job) -> float:
    """The least support as a part of all baskets, low enough that no rounding loses one."""
    return (job.least - 0.5) / job.rows


def sized(name: Any) -> int:
    """How many items a pattern of PAMI has, which is a tuple or text with tabs."""
    return len(name.split("\t") if isinstance(name, str) else name)


def of(supports: Iterable[int]) -> Found:
    known = list(supports)
    return len(known), sum(known)


PRIVMAX, PLAIN, FLOOR, SPARK = "privmax", "privmax without numba", "floor", "Spark FPGrowth"
TOLD = "privmax, told the support"
ECLAT = "pyfim eclat"
CONTENDERS: dict[str, Callable[[], Miner]] = {
    FLOOR: floor,
    PRIVMAX: privmax,
    PLAIN: without_numba,
    TOLD: lambda: privmax(told=True),
    ECLAT: lambda: pyfim("eclat"),
    "pyfim fpgrowth": lambda: pyfim("fpgrowth"),
    "mlxtend apriori": lambda: mlxtend("apriori"),
    "mlxtend fpgrowth": lambda: mlxtend("fpgrowth"),
    "efficient-apriori": efficient_apriori,
    "PAMI FPGrowth": pami,
    SPARK: spark,
}
HERE = (FLOOR, PRIVMAX, PLAIN, TOLD, SPARK)
"""Those in the environment of privmax itself; the others are in `.venv-compare`."""


def _started(process: int) -> list[int]:
    """All processes that one has started, and that those have."""
    children: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended meanwhile
            children += map(int, (task / "children").read_text().split())
    return children + [one for child in children for one in _started(child)]


def serve(contender: str, small: str) -> None:
    """Be ready, say how long that took, and do jobs until there are none."""
    if contender != SPARK:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    began = time.perf_counter()
    mine = CONTENDERS[contender]()
    mine(Job(small, SMALL, small, LIST, 2, 2, 1, SMALL // 20))
    answer({"start": time.perf_counter() - began})
    for line in sys.stdin:
        job = Job(**json.loads(line))
        if contender == SPARK:  # Java would not survive a fork: this process does one job only
            answer(call(mine, job, alone=False))
            continue
        child = os.fork()
        if not child:
            answer(call(mine, job, alone=True))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            ended = {-signal.SIGALRM: "time limit", -signal.SIGKILL: "out of memory"}
            answer({"ending": ended.get(status, "failed")})


def answer(row: Row) -> None:
    print(json.dumps(row), flush=True)


def call(mine: Miner, job: Job, *, alone: bool) -> Row:
    """One call: what it found, how long it took and how much memory.

    Before it the job is done on the small file, so that what it needs is loaded.
    """
    try:
        mine(job.warm_up())
        found: list[Found] = []
        roots = {os.getpid()}
        memory = PeakMemory([os.getpid(), *_started(os.getpid())])
        before = processor_time(roots)
        signal.alarm(LIMIT)  # nobody catches it: the process ends, also within compiled code
        own, wall = clocked(lambda: found.append(mine(job)))
        signal.alarm(0)
        # The system counts the time of other processes in hundredths of a second: too coarse for
        # who works alone.
        spent = own if alone else processor_time(roots) - before
        row = {"ending": "done", "time": (spent, wall), "found": found[0]}
        return {**row, "growth": memory.growth(), "peak": memory.peak()}
    except MemoryError:
        return {"ending": "out of memory"}
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return {"ending": "failed"}


if __name__ == "__main__":
    serve(*sys.argv[1:])
