"""A private selection inside an engine against the plain counting query that it contains.

    ./dev python -m lab.benchmarks.speed.engines [--part duckdb|postgres|spark|opendp|tumult]
                                             [--data FOLDER] [--tumult PYTHON]

The data is made here, as Parquet (`ROWS_SQL`). Every call runs in a process of its own, on an
engine opened for it; the contenders take turns. `opendp` collects all counts for OpenDP's noisy
max; `tumult` needs the Python of an environment that holds tmlt.analytics.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import servers

from lab.benchmarks.harness import (
    DONE,
    Benchmark,
    PeakMemory,
    Row,
    Rows,
    clocked,
    in_child,
    note,
    processor_time,
)
from lab.benchmarks.speed.peers import GROUPS

EPSILON, DELTA = 1, "1e-6"
MEMORY, THREADS = "PRIVMAX_BENCHMARK_MEMORY", 2
MEMORY_LIMIT = os.environ.get(MEMORY, "4GiB")  # set by a part that needs another one
WORK_MEMORY = "256MB"
"""PostgreSQL's work_mem. Everything else is as the server is delivered."""

SPARK = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "8"}

ROWS = {"duckdb": 10**8, "postgres": 10**7, "spark": 10**7, "opendp": 10**7, "tumult": 10**6}
FEW = 2 * 10**5
"""Rows of a quick run. With fewer the most frequent item would not stand out."""

SHARE = 10
"""Rows to an item, and rows to a person, on average."""

WEIGHED = {"duckdb": 2 * 10**7, "postgres": 2 * 10**6, "spark": 2 * 10**6}
"""Rows when memory is measured, with a 200th, a 20th and half as many items."""

REPEATS, LONG = 3, 300.0
"""Calls of each contender; only one if that takes longer than LONG seconds."""

WARM_UP = 1000
"""Rows of a first selection, not timed."""

LIMIT = 900.0
"""Seconds one call may take."""

ROWS_SQL = """
    SELECT (hash(i, 1) % {people})::BIGINT AS person, (rank * 2654435761 % {items})::BIGINT AS item
    FROM (
        SELECT i, CASE WHEN i % {each} = 0 THEN i // {each}
            ELSE floor({items} ** u)::BIGINT - 1 END AS rank
        FROM (SELECT range AS i, (hash(range) >> 11)::DOUBLE / 2 ** 53 AS u FROM range({rows}))
    )
"""
"""Every item once, and the other rows by Zipf's law: item of rank r with probability ln((r + 2) /
(r + 1)) / ln(items).

The most frequent item is 0. The multiplier, a prime, only scatters the names of the others.
"""

COUNTS = {
    "COUNT(DISTINCT)": "SELECT item, COUNT(DISTINCT person) AS people FROM log GROUP BY item",
    "two steps": "SELECT item, COUNT(*) AS people FROM (SELECT DISTINCT item, person FROM log) AS "
    "pairs GROUP BY item",
}
KEPT, PASSED = "kept", "passed on"
PRIVMAX, OPENDP, TUMULT = "privmax.select", "all counts to OpenDP", "Tumult Analytics"
KEYS = "privmax.keys"
"""What speed/keys.py measures by the same means."""

PLAIN = [f"{form}, {way}" for way in (KEPT, PASSED) for form in COUNTS]


class Engine(Protocol):
    """An open engine with the table `log`, which the plain queries and the selection both read."""

    def table(self) -> Any: ...

    def server(self) -> int:
        """The process whose time and whose children's time count beside this one's."""
        ...

    def keep(self, query: str) -> None:
        """Store what a query gives."""
        ...

    def ask(self, query: str) -> None:
        """Fetch what a query gives."""
        ...

    def close(self) -> None: ...


class DuckDB:
    def __init__(self, place: str, scratch: str) -> None:
        import ibis

        spill = str(Path(scratch) / "spill")
        limits = {"memory_limit": MEMORY_LIMIT, "threads": THREADS, "temp_directory": spill}
        self.ibis = ibis.duckdb.connect(**limits)
        self._table = self.ibis.read_parquet(place, table_name="log")

    def table(self) -> Any:
        return self._table

    def server(self) -> int:
        return os.getpid()

    def keep(self, query: str) -> None:
        self.ibis.raw_sql(f"CREATE TEMP TABLE counts AS {query}")

    def ask(self, query: str) -> None:
        self.ibis.raw_sql(query).fetchall()

    def close(self) -> None:
        self.ibis.disconnect()


class PostgreSQL:
    def __init__(self, place: str, scratch: str) -> None:
        import ibis

        self._ibis = ibis.connect(place)

    def table(self) -> Any:
        return self._ibis.table("log")

    def server(self) -> int:
        with self._ibis.raw_sql("SELECT pg_backend_pid()") as cursor:
            stat = Path(f"/proc/{cursor.fetchone()[0]}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[1])  # who started it

    def keep(self, query: str) -> None:
        self._ibis.raw_sql(f"CREATE TEMP TABLE counts AS {query}").close()

    def ask(self, query: str) -> None:
        with self._ibis.raw_sql(query) as cursor:
            cursor.fetchall()

    def close(self) -> None:
        self._ibis.disconnect()


class Spark:
    def __init__(self, place: str, scratch: str) -> None:
        import ibis

        self._session = spark_session(Path(scratch))
        # The first query of a session loads and compiles Spark itself: it is not any contender's.
        self._session.read.parquet(place).limit(10**5).createOrReplaceTempView("log")
        for query in COUNTS.values():
            self.ask(f"SELECT MAX(people) FROM ({query})")
        self._session.read.parquet(place).createOrReplaceTempView("log")
        self._ibis = ibis.pyspark.connect(self._session)

    def table(self) -> Any:
        return self._ibis.table("log")

    def server(self) -> int:
        return os.getpid()  # Java is its child

    def keep(self, query: str) -> None:
        self._session.sql(f"CACHE TABLE counts AS {query}")

    def ask(self, query: str) -> None:
        self._session.sql(query).collect()

    def close(self) -> None:
        self._session.stop()


def spark_session(folder: Path) -> Any:
    """A session in this process with two cores; stop() it."""
    from pyspark.sql import SparkSession

    servers.require_java()
    os.environ.update(servers.spark_environment(servers.spark_home()))
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**servers.spark_settings(folder), **SPARK}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


ENGINES: dict[str, Callable[[str, str], Engine]] = {
    "duckdb": DuckDB,
    "postgres": PostgreSQL,
    "spark": Spark,
}


def call(engine: str, contender: str, place: str, scratch: str, weigh: bool) -> Iterator[Row]:
    """One call in this process: its times, and how far memory rose.

    With `weigh`, Python's and Arrow's own memory too.
    """
    import pyarrow as pa

    import privmax

    opened = ENGINES[engine](place, scratch)
    roots = {os.getpid(), opened.server()}
    options: dict[str, Any] = {"item": "item", "user": "person", "epsilon": EPSILON, "delta": DELTA}
    releases: dict[str, Callable[..., Any]] = {PRIVMAX: privmax.select, KEYS: privmax.keys}
    release = releases.get(contender)
    if release:  # what a first release imports is no part of a release
        release(opened.table().limit(WARM_UP), **options)
    found: list[Any] = []

    def job() -> None:
        if release:
            found.extend(release(opened.table(), **options).items)
            return
        form, way = contender.split(", ")
        if way == KEPT:
            opened.keep(COUNTS[form])
        else:
            opened.ask(f"SELECT MAX(people) FROM ({COUNTS[form]}) AS counts")

    if weigh:
        tracemalloc.start()
    memory, before = PeakMemory(), processor_time(roots)
    wall = clocked(job)[1]
    row: Row = {"time": (processor_time(roots) - before, wall), "growth": memory.growth()}
    if weigh:
        row["heap"] = tracemalloc.get_traced_memory()[1]
        row["arrow"] = pa.default_memory_pool().max_memory()
    if release and 0 not in found:
        raise AssertionError("the most frequent item was not released")
    if contender == KEYS:
        row["found"] = len(found)
    opened.close()
    yield row


def collect(place: str, scratch: str, counts: str) -> Iterator[Row]:
    """All counts brought from DuckDB into this process and, not timed, stored for OpenDP's."""
    import numpy as np

    opened = DuckDB(place, scratch)
    found: dict[str, Any] = {}
    memory = PeakMemory()
    query = COUNTS["two steps"]
    times = clocked(lambda: found.update(opened.ibis.raw_sql(query).fetchnumpy()))
    growth = memory.growth()
    np.save(counts, found["people"])
    yield {"time": times, "growth": growth, "winner": int(np.flatnonzero(found["item"] == 0)[0])}


class Bench:
    """The folders of one run, and how often contenders are called."""

    def __init__(self, data: Path | None, scratch: Path, quick: bool) -> None:
        self.data, self.scratch, self.repeats = data or scratch, scratch, 1 if quick else REPEATS
        self.data.mkdir(parents=True, exist_ok=True)

    def file(self, rows: int, items: int) -> Path:
        """The Parquet file of so many rows and items, made if it is not there."""
        import duckdb

        file = self.data / f"zipf-{rows}-{items}.parquet"
        if not file.exists():
            shape = {"rows": rows, "items": items, "people": rows // SHARE, "each": rows // items}
            partial_file = file.with_suffix(".partial")
            limits: Any = {"memory_limit": MEMORY_LIMIT, "threads": THREADS}
            with duckdb.connect(config=limits) as connection:
                connection.execute("SET preserve_insertion_order = false")
                query = ROWS_SQL.format(**shape)
                connection.execute(f"COPY ({query}) TO '{partial_file}' (FORMAT parquet)")
            partial_file.rename(file)
        return file

    def place(self, url: str, rows: int, items: int) -> str:
        """Where an engine finds the rows: the database they were loaded into, or the file."""
        file = self.file(rows, items)
        if url:
            load(url, file, self.scratch)
        return url or str(file)

    def measure(self, engine: str, contender: str, place: str, *, weigh: bool = False) -> Row:
        scratch = str(self.scratch)
        rows, ending = in_child(call, engine, contender, place, scratch, weigh, limit=LIMIT)
        if ending != DONE:
            raise SystemExit(f"{engine}, {contender}: {ending}")
        found: Row = rows[0]
        note(f"{engine:10} {contender:28} {found['time'][1]:7.1f} s")
        return found

    def peer(self, python: list[str], *arguments: str) -> Row:
        """What `peers.py` says in another environment."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        run = subprocess.run(
            [*python, "-m", "lab.benchmarks.speed.peers", *arguments],
            cwd=Path(__file__).parents[3],
            env={**known, "PYSPARK_PYTHON": python[-1]} if arguments[0] == "tumult" else known,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=2 * LIMIT,
        )
        answer: Row = json.loads(run.stdout.splitlines()[-1])
        note(f"{arguments[0]:39} {answer['time'][1]:7.1f} s")
        return answer


def load(url: str, file: Path, scratch: Path) -> None:
    """The rows of a Parquet file as PostgreSQL's table `log`."""
    import duckdb
    import psycopg

    text = scratch / "log.csv"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT person, item FROM '{file}') TO '{text}' (HEADER false)")
    with psycopg.connect(url, autocommit=True) as connection, text.open("rb") as lines:
        connection.execute("DROP TABLE IF EXISTS log")
        connection.execute("CREATE TABLE log (person bigint, item bigint)")
        with connection.cursor().copy("COPY log FROM STDIN (FORMAT csv)") as copy:
            while chunk := lines.read(1 << 20):
                copy.write(chunk)
        connection.execute("VACUUM ANALYZE log")
    text.unlink()


def middle(calls: list[Row]) -> Row:
    """The medians of calls of one contender."""
    processor, wall = zip(*[one["time"] for one in calls], strict=True)
    growths = [one["growth"] for one in calls if one["growth"] is not None]
    return {
        "wall": median(wall),
        "least": min(wall),
        "most": max(wall),
        "processor": median(processor),
        "repeats": len(calls),
        "growth": max(growths, default=None),
    }


def in_turn(bench: Bench, engine: str, place: str) -> dict[str, Row]:
    """The medians of each contender, of calls in turn.

    After the first round only the faster form of the plain query goes on.
    """
    calls: dict[str, list[Row]] = {contender: [] for contender in (*PLAIN, PRIVMAX)}
    for number in range(bench.repeats):
        for contender, made in calls.items():
            way = contender.rpartition(", ")[2]
            first = [calls[one][0]["time"][0] for one in PLAIN if one.endswith(way) and number]
            slower = contender in PLAIN and number and made[0]["time"][0] > min(first)
            if not made or (made[0]["time"][1] <= LONG and not slower):
                made.append(bench.measure(engine, contender, place))
    return {contender: middle(made) for contender, made in calls.items()}


def against_plain(bench: Bench, engine: str, rows: int) -> dict[str, list[Row]]:
    """The memory of the selection and of the plain query, with few to many items; then times."""
    found: dict[str, list[Row]] = {"times": [], "memory": []}
    weighed = min(rows, WEIGHED[engine])
    with ExitStack() as stack:
        url = stack.enter_context(tuned_postgres()).url if engine == "postgres" else ""
        for items in (weighed // 200, weighed // 20, weighed // 2)[-bench.repeats :]:
            place = bench.place(url, weighed, items)
            for contender in (f"two steps, {KEPT}", PRIVMAX):
                row = bench.measure(engine, contender, place, weigh=True)
                del row["time"]
                facts = {"engine": engine, "rows": weighed, "items": items}
                found["memory"].append({**facts, "contender": contender, **row})
        facts = {"engine": engine, "rows": rows, "items": rows // SHARE}
        for contender, row in in_turn(bench, engine, bench.place(url, rows, rows // SHARE)).items():
            found["times"].append({**facts, "contender": contender, **row})
    return found


def tuned_postgres() -> servers.Postgres:
    settings = ("fsync=off", f"work_mem={WORK_MEMORY}", "max_connections=20")
    return servers.Postgres(settings=settings)


def against_opendp(bench: Bench, rows: int) -> dict[str, list[Row]]:
    """All counts collected from DuckDB and given to OpenDP's noisy max, and the selection."""
    place, counts = str(bench.file(rows, rows // SHARE)), str(bench.scratch / "counts.npy")
    ours: list[Row] = []
    theirs: list[Row] = []
    for _ in range(bench.repeats):
        ours.append(bench.measure("duckdb", PRIVMAX, place))
        steps, ending = in_child(collect, place, str(bench.scratch), counts, limit=LIMIT)
        if ending != DONE:
            raise SystemExit(f"collecting all counts: {ending}")
        drawn = bench.peer(["./dev", "compare", "python"], "opendp", counts)
        if drawn["answer"] != steps[0]["winner"]:
            raise AssertionError("OpenDP did not select the most frequent item")
        both = (steps[0], drawn)
        theirs.append(
            {
                "time": [sum(times) for times in zip(*[one["time"] for one in both], strict=True)],
                "growth": max((one["growth"] or 0) for one in both),
                "steps": [one["time"][1] for one in both],
                "growths": [one["growth"] for one in both],
            }
        )
    parts = zip(*[one["steps"] for one in theirs], strict=True)
    more = {"steps": [median(part) for part in parts], "growths": theirs[-1]["growths"]}
    facts = {"part": "opendp", "engine": "duckdb", "rows": rows, "items": rows // SHARE}
    return {
        "peers": [
            {**facts, "contender": PRIVMAX, **middle(ours)},
            {**facts, "contender": OPENDP, **middle(theirs), **more},
        ]
    }


def against_tumult(bench: Bench, rows: int, python: str | None) -> Rows:
    """Tumult Analytics and the selection on Spark, in turn."""
    if python is None:
        note("SKIPPED: tumult needs --tumult PYTHON")
        return {}
    place = str(bench.file(rows, rows // SHARE))
    ours: list[Row] = []
    theirs: list[Row] = []
    for _ in range(bench.repeats):
        if not theirs or theirs[0]["time"][1] <= LONG:
            ours.append(bench.measure("spark", PRIVMAX, place))
            given = (place, str(rows // SHARE), str(bench.scratch))
            theirs.append(bench.peer([python], "tumult", *given))
    if theirs[0]["answer"] != 0:
        raise AssertionError("Tumult did not find the most frequent item")
    facts = {"part": "tumult", "engine": "spark", "rows": rows, "items": rows // SHARE}
    more = {"versions": theirs[0]["versions"]}
    return {
        "peers": [
            {**facts, "contender": PRIVMAX, **middle(ours)},
            {**facts, "contender": TUMULT, **middle(theirs), **more},
        ]
    }


def measure(part: str, options: argparse.Namespace) -> Rows:
    rows = FEW if options.quick else ROWS[part]
    with tempfile.TemporaryDirectory(prefix="privmax-engines-") as scratch:
        bench = Bench(options.data, Path(scratch), options.quick)
        if part in ENGINES:
            return against_plain(bench, part, rows)
        if part == "opendp":
            return against_opendp(bench, rows)
        return against_tumult(bench, rows, options.tumult)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="keep the Parquet files here (about 1 GB)")
    parser.add_argument("--tumult", metavar="PYTHON", help="of an environment with tmlt.analytics")


if __name__ == "__main__":
    Benchmark(
        "engines",
        "speed.engines",
        {part: partial(measure, part) for part in ROWS},
        packages=("privmax", "ibis-framework", "duckdb", "psycopg", "pyspark"),
        settings={
            "epsilon": EPSILON,
            "delta": DELTA,
            "memory limit": MEMORY_LIMIT,
            "threads": THREADS,
            "rows": " ".join(ROWS_SQL.split()),
            "counts": COUNTS,
            "work_mem": WORK_MEMORY,
            "spark": SPARK,
            "groups": GROUPS,
        },
        keys={"times": ("engine",), "memory": ("engine",), "peers": ("part",)},
        arguments=arguments,
    ).main()
