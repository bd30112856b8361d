"""Releases of all keys by a library, in the environment that holds it: a line of JSON each.

    PYTHON keys_peers.py LIBRARY FILE SETTINGS

Run by keys.py, which names the Python of each library's environment. FILE has one person per line.
SETTINGS are `Setting`s as JSON, one after the other in one process. Reading the file and importing
the library are not timed; bounding the keys of a person is, wherever it is done.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from statistics import mean, median
from typing import Any, NamedTuple

from lab.benchmarks.harness import processor_time

Rows = list[list[int]]


class Setting(NamedTuple):
    """What a library is told.

    counts   the part of epsilon for counts of people by key; 0: none are wanted. OpenDP's threshold
             gives counts along with the keys, out of one budget
    """

    epsilon: float
    delta: float
    per_user: int
    strategy: str
    counts: float


Made = tuple[dict[int, float | None], float]
"""The keys that were found, with counts if there are any, and seconds of processor time."""


def privmax(rows: Rows, told: Setting) -> Made:
    """At its default. Counts are charged beside the keys, each with a delta of its own."""
    import duckdb  # noqa: F401  # imports are not timed
    import ibis  # noqa: F401
    import pyarrow

    import privmax

    epsilon, delta, most, _, counts = told
    data = [(person, key) for person, row in enumerate(rows) for key in row]
    people, items = zip(*data, strict=True)
    table = pyarrow.table({"person": people, "item": items})
    start = processor_time({os.getpid()})
    release = privmax.keys(
        table,
        item="item",
        user="person",
        per_user=most,
        counts=counts or None,
        epsilon=epsilon - counts,
        delta=delta / 2 if counts else delta,
    )
    seconds = processor_time({os.getpid()}) - start
    return dict(zip(release.items, release.counts or [None] * len(release.items), strict=True)), (
        seconds
    )


def opendp(rows: Rows, told: Setting) -> Made:
    """Counts of at most `most` keys per person, noise, a threshold: both by binary search."""
    import opendp.prelude as dp

    epsilon, delta, most, strategy, _ = told
    dp.enable_features("contrib")
    domain = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))

    def laplace(scale: float, line: int) -> Any:
        each = dp.absolute_distance(T="i64")
        return dp.m.make_laplace_threshold(
            domain, dp.l01inf_distance(each), scale=scale, threshold=line
        )

    def gaussian(scale: float, line: int) -> Any:
        # From approximate zCDP to (epsilon, delta) by the library's own conversion.
        each = dp.absolute_distance(T="f64")
        made = dp.m.make_gaussian_threshold(
            domain, dp.l02inf_distance(each), scale=scale, threshold=line
        )
        return dp.c.make_zCDP_to_approxDP(made)

    start = processor_time({os.getpid()})
    if strategy == "laplace":
        scale = float(most) / epsilon * (1 + 1e-9)

        def fits(line: int) -> bool:
            spent, failed = laplace(scale, line).map((most, most, 1))
            return bool(spent <= epsilon and failed <= delta)

        best = laplace(scale, _least(fits))
    else:
        best = _gaussian(gaussian, (most, math.sqrt(most), 1.0), epsilon, delta)
    people: Counter[int] = Counter()
    for row in rows:
        people.update(row if len(row) <= most else random.sample(row, most))
    return dict(best(dict(people))), processor_time({os.getpid()}) - start


def _gaussian(
    make: Callable[[float, int], Any],
    d_in: tuple[int, float, float],
    epsilon: float,
    delta: float,
) -> Any:
    """The least threshold over a few shares of delta for it, each with the least scale."""
    far = 10**9  # a threshold that nothing passes: only the noise counts

    def options(share: float) -> tuple[int, float]:
        low, high = 0.5, 10_000.0
        for _ in range(30):
            middle = math.sqrt(low * high)
            spent = make(middle, far).map(d_in)[0].epsilon(delta * (1 - share))
            low, high = (low, middle) if spent <= epsilon else (middle, high)
        return _least(lambda line: make(high, line).map(d_in)[1] <= delta * share), high

    line, scale = min(options(share) for share in (0.1, 0.3, 0.5, 0.7))
    return make(scale, line)


def _least(fits: Callable[[int], bool]) -> int:
    low, high = 1, 10**6
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def pipelinedp(rows: Rows, told: Setting) -> Made:
    import pipeline_dp as dp

    epsilon, delta, most, strategy, _ = told
    data = [(person, key) for person, row in enumerate(rows) for key in row]
    start = processor_time({os.getpid()})
    accountant = dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    params = dp.SelectPartitionsParams(
        max_partitions_contributed=most,
        partition_selection_strategy=dp.PartitionSelectionStrategy[strategy.upper()],
    )
    columns = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1]
    )
    found = engine.select_partitions(data, params, columns)
    accountant.compute_budgets()
    return dict.fromkeys(found), processor_time({os.getpid()}) - start


def tumult(rows: Rows, told: Setting) -> Made:
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        ApproxDPBudget,
        KeySet,
        MaxRowsPerID,
        QueryBuilder,
        Session,
    )

    epsilon, delta, most, _, counts = told
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    data = [(person, key) for person, row in enumerate(rows) for key in row]
    frame = spark.createDataFrame(data, "person LONG, item LONG").cache()
    frame.count()
    start = processor_time({os.getpid()})
    session = Session.from_dataframe(
        ApproxDPBudget(epsilon, delta),
        "log",
        frame,
        protected_change=AddRowsWithID("person", "people"),
    )
    bounded = QueryBuilder("log").enforce(MaxRowsPerID(most))
    keys = session.evaluate(bounded.get_groups(["item"]), ApproxDPBudget(epsilon - counts, delta))
    if not counts:
        return {row["item"]: None for row in keys.collect()}, processor_time({os.getpid()}) - start
    # Its noise on counts needs no delta: all of it went to the keys.
    grouped = bounded.groupby(KeySet.from_dataframe(keys)).count(name="people")
    counted = session.evaluate(grouped, ApproxDPBudget(counts, 0))
    found: dict[int, float | None]
    found = {row["item"]: float(row["people"]) for row in counted.collect()}
    return found, processor_time({os.getpid()}) - start


def summarize(rows: Rows, found: dict[int, float | None]) -> dict[str, float]:
    """How many keys there are, and how far counts are off, if there are any."""
    people = Counter(key for row in rows for key in row)
    off = [abs(count - people[key]) for key, count in found.items() if count is not None]
    errors = {"mean": round(mean(off), 1), "median": round(median(off), 1)} if off else {}
    return {"found": len(found), **errors}


if __name__ == "__main__":
    library, path, settings = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        rows = [sorted(set(map(int, line.split()))) for line in file]
    libraries: dict[str, Callable[[Rows, Setting], Made]]
    libraries = {"privmax": privmax, "opendp": opendp, "pipelinedp": pipelinedp, "tumult": tumult}
    for setting in json.loads(settings):
        found, seconds = libraries[library](rows, Setting(*setting))
        print(json.dumps({**summarize(rows, found), "seconds": round(seconds, 2)}), flush=True)
