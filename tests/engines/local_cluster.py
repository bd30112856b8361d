"""Calls a function with a session of Spark's local-cluster mode: python local_cluster.py FILE
FUNCTION ANSWER.

Master and workers live in the driver's process, but every executor is a process of its own, as on a
real cluster: what cannot be sent to one, or only the driver knows, fails here and not in local
mode. Run by the fixture `on_cluster`. Spark's settings come as JSON on standard input; what the
function returns goes as JSON to the file ANSWER.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(file: str, function: str, answer: str) -> None:
    builder = SparkSession.builder
    for name, value in json.load(sys.stdin).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        given = runpy.run_path(file)[function](session)
    finally:
        session.stop()
    Path(answer).write_text(json.dumps(given), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
