"""A private selection inside an engine against the plain counting query it contains: DuckDB,
PostgreSQL, Spark.

    ./dev python -m benchmarks.engines [--engine NAME] [--rows N] [--data FOLDER] [--tumult PYTHON]
    [--output FILE]

The data is made here, as Parquet (`ROWS_SQL`). Every call runs in a process of its own, on an
engine opened for it; the contenders take turns. `--engine` measures a part and keeps the stored
rest; `opendp` and `tumult` are parts too: the first collects all counts for OpenDP's noisy max, the
second needs the Python of an environment that holds tmlt.analytics.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import servers
from benchmarks.harness import (
    DONE,
    RESULTS,
    Aim,
    PeakMemory,
    Times,
    about_run,
    clocked,
    in_child,
    store,
)
from benchmarks.peers import GROUPS, processor_time
from benchmarks.tables import engine_tables, print_tables

EPSILON, DELTA = 1, "1e-6"
MEMORY_LIMIT = "4GiB"
THREADS = 2
ROWS = {"duckdb": 10**8, "postgres": 10**7, "spark": 10**7, "opendp": 10**7, "tumult": 10**6}
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
PLAIN = [f"{form}, {way}" for way in (KEPT, PASSED) for form in COUNTS]

CLOCKS = {"wall": "time", "processor": "processor time"}
MOST = {"duckdb": 1.3, "postgres": 1.5, "spark": 1.5}
"""What a selection may cost in plain queries."""

FLAT = Aim(
    "Python's heap and Arrow's memory do not grow with the items: most items against fewest",
    most=1.5,
)

NAMES = {
    "duckdb": "DuckDB",
    "postgres": "PostgreSQL",
    "spark": "Spark",
    "opendp": "OpenDP",
    "tumult": "Tumult",
}


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

        self._ibis = ibis.duckdb.connect(
            memory_limit=MEMORY_LIMIT, threads=THREADS, temp_directory=str(Path(scratch) / "spill")
        )
        self._table = self._ibis.read_parquet(place, table_name="log")

    def table(self) -> Any:
        return self._table

    def server(self) -> int:
        return os.getpid()

    def keep(self, query: str) -> None:
        self._ibis.raw_sql(f"CREATE TEMP TABLE counts AS {query}")

    def ask(self, query: str) -> None:
        self._ibis.raw_sql(query).fetchall()

    def columns(self, query: str) -> dict[str, Any]:
        """What a query gives, as NumPy arrays."""
        found: dict[str, Any] = self._ibis.raw_sql(query).fetchnumpy()
        return found

    def close(self) -> None:
        self._ibis.disconnect()


class PostgreSQL:
    def __init__(self, place: str, scratch: str) -> None:
        import ibis

        self._ibis = ibis.connect(place)

    def table(self) -> Any:
        return self._ibis.table("log")

    def server(self) -> int:
        with self._ibis.raw_sql("SELECT pg_backend_pid()") as cursor:
            backend = cursor.fetchone()[0]
        return int(
            Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
        )  # who started it

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

        self._session = servers.spark(Path(scratch))
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


ENGINES: dict[str, Callable[[str, str], Engine]] = {
    "duckdb": DuckDB,
    "postgres": PostgreSQL,
    "spark": Spark,
}


def call(
    engine: str, contender: str, place: str, scratch: str, weigh: bool
) -> Iterator[dict[str, Any]]:
    """One call in this process: its times, and how far memory rose. With `weigh`, Python's and
    Arrow's own too.
    """
    import pyarrow as pa

    import privmax

    opened = ENGINES[engine](place, scratch)
    roots = {os.getpid(), opened.server()}
    options: dict[str, Any] = {"item": "item", "user": "person", "epsilon": EPSILON, "delta": DELTA}
    if contender == PRIVMAX:  # what a first selection imports is no part of a selection
        privmax.select(opened.table().limit(WARM_UP), **options)
    found: list[Any] = []

    def job() -> None:
        if contender == PRIVMAX:
            found.append(privmax.select(opened.table(), **options).item)
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
    row: dict[str, Any] = {
        "time": (processor_time(roots) - before, wall),
        "growth": memory.growth(),
    }
    if weigh:
        row |= {
            "heap": tracemalloc.get_traced_memory()[1],
            "arrow": pa.default_memory_pool().max_memory(),
        }
    if found and found[0] != 0:
        raise AssertionError("the most frequent item was not selected")
    opened.close()
    yield row


def collected(place: str, scratch: str, counts: str) -> Iterator[dict[str, Any]]:
    """All counts brought from DuckDB into this process, and, not timed, stored for the process that
    holds OpenDP.
    """
    opened = DuckDB(place, scratch)
    found: dict[str, Any] = {}
    memory = PeakMemory()
    times = clocked(lambda: found.update(opened.columns(COUNTS["two steps"])))
    growth = memory.growth()
    np.save(counts, found["people"])
    yield {"time": times, "growth": growth, "winner": int(np.flatnonzero(found["item"] == 0)[0])}


class Bench:
    """The places of one run: data, scratch, progress."""

    def __init__(self, data: Path, scratch: Path, bar: Progress) -> None:
        self.data, self.scratch, self._bar = data, scratch, bar
        self._task = bar.add_task("", total=None)

    def expect(self, name: str, steps: int) -> None:
        self._bar.reset(self._task, total=steps, description=name)

    def tell(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False)
        self._bar.advance(self._task)

    def file(self, rows: int, items: int) -> Path:
        """The Parquet file of so many rows and items, made if it is not there."""
        import duckdb

        file = self.data / f"zipf-{rows}-{items}.parquet"
        if not file.exists():
            needed = rows * 10
            if shutil.disk_usage(self.data).free < 4 * needed + 10**9:
                raise SystemExit(
                    f"{rows} rows need some {needed / 1e9:.1f} GB as Parquet and, with what the "
                    f"engines spill, "
                    f"{(4 * needed + 10**9) / 1e9:.0f} GB free: name another folder with --data"
                )
            query = ROWS_SQL.format(
                rows=rows, items=items, people=rows // SHARE, each=rows // items
            )
            partial = file.with_suffix(".partial")
            with duckdb.connect(
                config={"memory_limit": MEMORY_LIMIT, "threads": THREADS}
            ) as connection:
                connection.execute("SET preserve_insertion_order = false")
                connection.execute(f"COPY ({query}) TO '{partial}' (FORMAT parquet)")
            partial.rename(file)
        return file

    def place(self, url: str, rows: int, items: int) -> str:
        """Where an engine finds the rows: the database they were loaded into, or the file."""
        file = self.file(rows, items)
        if url:
            loaded(url, file, self.scratch)
        return url or str(file)

    def measure(
        self, engine: str, contender: str, place: str, *, weigh: bool = False
    ) -> dict[str, Any]:
        rows, ending = in_child(
            call, engine, contender, place, str(self.scratch), weigh, limit=LIMIT
        )
        if ending != DONE:
            raise SystemExit(f"{NAMES[engine]}, {contender}: {ending}")
        self.tell(f"{NAMES[engine]:10} {contender:28} {rows[0]['time'][1]:7.1f} s")
        found: dict[str, Any] = rows[0]
        return found


def middle(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of calls of one contender."""
    processor, wall = (sorted(float(one["time"][place]) for one in calls) for place in (0, 1))
    growths = [one["growth"] for one in calls if one["growth"] is not None]
    return {
        "wall": float(np.median(wall)),
        "least": wall[0],
        "most": wall[-1],
        "processor": float(np.median(processor)),
        "repeats": len(calls),
        "growth": max(growths) if growths else None,
    }


def in_turn(bench: Bench, engine: str, place: str) -> dict[str, dict[str, Any]]:
    """The medians of each contender, of calls in turn.

    After the first round only the faster form of the plain query goes on.
    """
    calls: dict[str, list[dict[str, Any]]] = {contender: [] for contender in (*PLAIN, PRIVMAX)}
    for _ in range(REPEATS):
        for contender, made in calls.items():
            rivals = [
                one
                for one in PLAIN
                if contender in PLAIN and one.endswith(contender.split(", ")[1])
            ]
            first = {one: calls[one][0]["time"][0] for one in rivals if calls[one]}
            if not made or (
                made[0]["time"][1] <= LONG
                and first.get(contender, 0) <= min(first.values(), default=0)
            ):
                made.append(bench.measure(engine, contender, place))
    return {contender: middle(made) for contender, made in calls.items()}


def loaded(url: str, file: Path, scratch: Path) -> None:
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


def against_plain(bench: Bench, engine: str, rows: int) -> dict[str, list[dict[str, Any]]]:
    """The memory of the selection and of the plain query at three numbers of items; then both
    timed, in turn.
    """
    bench.expect(NAMES[engine], 6 + len(PLAIN) + 1 + (REPEATS - 1) * 3)
    memory: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    weighed = min(rows, WEIGHED[engine])
    with ExitStack() as stack:
        url = stack.enter_context(servers.postgres() if engine == "postgres" else nullcontext(""))
        for items in (weighed // 200, weighed // 20, weighed // 2):
            place = bench.place(url, weighed, items)
            for contender in (f"two steps, {KEPT}", PRIVMAX):
                row = bench.measure(engine, contender, place, weigh=True)
                del row["time"]
                memory.append(
                    {
                        "engine": engine,
                        "rows": weighed,
                        "items": items,
                        "contender": contender,
                        **row,
                    }
                )
        items = rows // SHARE
        for contender, found in in_turn(bench, engine, bench.place(url, rows, items)).items():
            times.append(
                {"engine": engine, "rows": rows, "items": items, "contender": contender, **found}
            )
    return {"times": times, "memory": memory}


def against_opendp(bench: Bench, rows: int) -> dict[str, list[dict[str, Any]]]:
    """All counts collected from DuckDB and given to OpenDP's noisy max, and the selection, in
    turn.
    """
    items = rows // SHARE
    place, counts = str(bench.file(rows, items)), bench.scratch / "counts.npy"
    bench.expect(NAMES["opendp"], 2 * REPEATS)
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    parts: list[Times] = []
    for _ in range(REPEATS):
        ours.append(bench.measure("duckdb", PRIVMAX, place))
        steps, ending = in_child(collected, place, str(bench.scratch), str(counts), limit=LIMIT)
        if ending != DONE:
            raise SystemExit(f"collecting all counts: {ending}")
        drawn = peer(["./dev", "compare", "python"], "opendp", str(counts))
        if drawn["answer"] != steps[0]["winner"]:
            raise AssertionError("OpenDP did not select the most frequent item")
        parts.append((steps[0]["time"][1], drawn["time"][1]))
        both = [
            collecting + drawing
            for collecting, drawing in zip(steps[0]["time"], drawn["time"], strict=True)
        ]
        growths = [steps[0]["growth"], drawn["growth"]]
        theirs.append({"time": both, "growth": None if None in growths else max(growths)})
        bench.tell(f"{OPENDP:39} {both[1]:7.1f} s")
    collecting, drawing = (float(np.median([part[place] for part in parts])) for place in (0, 1))
    row = {"engine": "duckdb", "rows": rows, "items": items}
    return {
        "peers": [
            {"part": "opendp", "contender": PRIVMAX, **row, **middle(ours)},
            {
                "part": "opendp",
                "contender": OPENDP,
                **row,
                **middle(theirs),
                "steps": [collecting, drawing],
                "growths": growths,
            },
        ]
    }


def against_tumult(bench: Bench, rows: int, python: str) -> dict[str, list[dict[str, Any]]]:
    """Tumult Analytics and the selection on Spark, in turn."""
    items = rows // SHARE
    place = str(bench.file(rows, items))
    bench.expect(NAMES["tumult"], 2 * REPEATS)
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for _ in range(REPEATS):
        if not theirs or theirs[0]["time"][1] <= LONG:
            ours.append(bench.measure("spark", PRIVMAX, place))
            theirs.append(peer([python], "tumult", place, str(items), str(bench.scratch)))
            bench.tell(f"{TUMULT:39} {theirs[-1]['time'][1]:7.1f} s")
    if theirs[0]["answer"] != 0:
        raise AssertionError("Tumult did not find the most frequent item")
    code = (
        "from importlib.metadata import version; print(version('tmlt.analytics'), "
        "version('pyspark'))"
    )
    versions = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    row = {"engine": "spark", "rows": rows, "items": items}
    return {
        "peers": [
            {"part": "tumult", "contender": PRIVMAX, **row, **middle(ours)},
            {"part": "tumult", "contender": TUMULT, **row, **middle(theirs), "versions": versions},
        ]
    }


def peer(python: list[str], *arguments: str) -> dict[str, Any]:
    """What `benchmarks.peers` says in another environment."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK", "SPARK"))
    }
    run = subprocess.run(
        [*python, "-m", "benchmarks.peers", *arguments],
        cwd=Path(__file__).parents[1],
        env={**environment, "PYSPARK_PYTHON": python[-1]}
        if arguments[0] == "tumult"
        else environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=2 * LIMIT,
    )
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def judgements(times: list[dict[str, Any]], memory: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every aim, engine by engine. The plain query is the faster of its forms; a ratio is of the
    same clock.
    """
    found = []
    for clock, name in CLOCKS.items():
        for engine, most in MOST.items():
            taken = {row["contender"]: row[clock] for row in times if row["engine"] == engine}
            ratios = {
                f"the plain query {way}": taken[PRIVMAX]
                / min(taken[one] for one in PLAIN if one.endswith(way))
                for way in (KEPT, PASSED)
                if taken
            }
            found.append(
                Aim(f"{name} of the selection against the plain query", most=most).judge(
                    NAMES[engine], ratios
                )
            )
    for engine in ENGINES:
        used = {
            row["items"]: row["heap"] + row["arrow"]
            for row in memory
            if row["engine"] == engine and row["contender"] == PRIVMAX
        }
        figures = (
            {f"{max(used)} items against {min(used)}": used[max(used)] / used[min(used)]}
            if used
            else {}
        )
        found.append(FLAT.judge(NAMES[engine], figures))
    return found


def run_facts(part: str, rows: int) -> dict[str, Any]:
    """Where, when and with what a part ran."""
    facts = about_run(quick=False)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ("privmax", "ibis-framework", "duckdb", "psycopg", "pyspark")
    tumult = " --tumult PYTHON" if part == "tumult" else ""
    return {
        **facts,
        "part": part,
        "command": f"./dev python -m benchmarks.engines --engine {part}{tumult}",
        "rows": rows,
        "memory": f"{memory:.0f} GiB",
        "versions": {name: metadata.version(name) for name in packages},
    }


def stored(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"runs": [], "times": [], "memory": [], "peers": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty


def merged(
    before: dict[str, Any], part: str, facts: dict[str, Any], new: dict[str, Any]
) -> dict[str, Any]:
    """A stored result with one part measured anew."""
    runs = {run["part"]: run for run in before["runs"]} | {part: facts}
    result: dict[str, Any] = {
        "benchmark": "engines",
        "run": facts,
        "settings": {
            "epsilon": EPSILON,
            "delta": DELTA,
            "memory limit": MEMORY_LIMIT,
            "threads": THREADS,
            "rows": " ".join(ROWS_SQL.split()),
            "counts": COUNTS,
            "work_mem": servers.WORK_MEMORY,
            "spark": servers.SPARK,
            "groups": GROUPS,
        },
        "runs": [runs[name] for name in ROWS if name in runs],
    }
    for kind, key in (("times", "engine"), ("memory", "engine"), ("peers", "part")):
        rows = [row for row in before[kind] if row[key] != part] + new.get(kind, [])
        result[kind] = sorted(
            rows, key=lambda row: list(ROWS).index(row[key])
        )  # stable: contenders keep their order
    return {**result, "aims": judgements(result["times"], result["memory"])}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Time a private selection against the plain query inside an engine."
    )
    parser.add_argument(
        "--engine", choices=[*ROWS, "all"], default="all", help="the part to measure (default: all)"
    )
    parser.add_argument("--rows", type=int, help="rows of every part; stores nothing by itself")
    parser.add_argument(
        "--data",
        type=Path,
        help="folder for the data, which is kept there (default: a temporary one)",
    )
    parser.add_argument(
        "--tumult", metavar="PYTHON", help="the Python of an environment that holds tmlt.analytics"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/engines.json)"
    )
    options = parser.parse_args()
    if options.rows is not None and options.rows < 10**5:
        parser.error(
            "--rows must be at least 100000: with fewer the most frequent item does not stand out"
        )
    if options.engine == "tumult" and not options.tumult:
        parser.error("--engine tumult needs --tumult PYTHON")
    parts = [
        part
        for part in ROWS
        if options.engine in (part, "all") and (part != "tumult" or options.tumult)
    ]
    target = options.output or (None if options.rows else RESULTS / "engines.json")
    result = stored(target or RESULTS / "engines.json") if target else stored(Path("none"))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="privmax-engines-") as temporary,
        Progress(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        scratch = Path(temporary)
        data = options.data or scratch
        data.mkdir(parents=True, exist_ok=True)
        bench = Bench(data, scratch, bar)
        for part in parts:
            rows = options.rows or ROWS[part]
            facts = run_facts(part, rows)
            if part in ENGINES:
                new = against_plain(bench, part, rows)
            elif part == "opendp":
                new = against_opendp(bench, rows)
            else:
                new = against_tumult(bench, rows, options.tumult)
            result = merged(result, part, facts, new)
            if target:
                store(result, target)
    print_tables(engine_tables(result))
    if sys.stderr.isatty() and not target:
        bar.console.print("nothing was stored: --rows needs --output for that")


if __name__ == "__main__":
    main()
