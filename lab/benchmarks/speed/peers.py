"""The job of engines.py by others, each in the environment that holds it. Prints a line of JSON.

    python -m lab.benchmarks.speed.peers opendp COUNTS.npy
    python -m lab.benchmarks.speed.peers tumult FILE.parquet ITEMS SCRATCH

opendp   noisy max over all counts, which somebody has collected; position of the winner
tumult   Tumult Analytics on Spark: noisy counts of distinct people for every item of a list that
         must be known, then the item with the largest. Each person keeps at most GROUPS items,
         which Tumult needs to bound the noise
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.harness import PeakMemory, Row, clocked, processor_time, version

EPSILON = 1
GROUPS = 10
"""Items a person may count for under Tumult, drawn at random; on average they have ten."""


def opendp(file: str) -> Row:
    from lab.benchmarks.speed.select import opendp_noisy_max

    ready = opendp_noisy_max()
    counts = np.load(file)
    ready.select(counts[:1000].copy())
    found: list[Any] = []
    memory = PeakMemory()
    times = clocked(lambda: found.append(ready.select(counts)))
    return {"time": times, "growth": memory.growth(), "answer": int(found[0])}


def tumult(file: str, items: str, scratch: str) -> Row:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql
    from tmlt.analytics import (  # type: ignore[import-not-found, unused-ignore]  # in an environment of its own
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    settings = {
        "spark.driver.memory": "6g",
        "spark.local.dir": str(Path(scratch) / "spark"),
        "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(1000).agg(sql.max("id")).collect()
    found: list[Any] = []

    def job() -> None:
        session = Session.from_dataframe(
            PureDPBudget(EPSILON),
            "log",
            spark.read.parquet(file),
            protected_change=AddRowsWithID("person", "people"),
        )
        keys = KeySet.from_dataframe(spark.range(int(items)).select(sql.col("id").alias("item")))
        query = (
            QueryBuilder("log")
            .enforce(MaxGroupsPerID("item", GROUPS))
            .groupby(keys)
            .count_distinct(columns=["person"], name="people")
        )
        answer = session.evaluate(query, PureDPBudget(EPSILON))
        found.append(answer.orderBy(sql.desc("people")).limit(1).collect()[0]["item"])

    roots = {os.getpid()}
    memory, before = PeakMemory(), processor_time(roots)
    wall = clocked(job)[1]
    return {
        "time": (processor_time(roots) - before, wall),
        "growth": memory.growth(),
        "answer": int(found[0]),
        "versions": [version("tmlt.analytics"), version("pyspark")],
    }


if __name__ == "__main__":
    print(json.dumps(opendp(*sys.argv[2:]) if sys.argv[1] == "opendp" else tumult(*sys.argv[2:])))
