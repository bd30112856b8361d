"""PostgreSQL and Spark for the benchmark of engines, started as the tests start them (tests/engines/conftest.py).

The servers are those of the tests, only with more memory: what a benchmark needs beyond it is set here.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

WORK_MEMORY = "256MB"
"""PostgreSQL's work_mem. Everything else is as the server is delivered, its two parallel workers too."""

DRIVER_MEMORY = "6g"

SPARK = {"spark.driver.memory": DRIVER_MEMORY, "spark.sql.shuffle.partitions": "8"}

_TESTS = Path(__file__).parents[1] / "tests" / "engines" / "conftest.py"


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on a new server on loopback, of which nothing is left afterwards."""
    import psycopg

    with _of_tests()._postgres_server() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE CURRENT_USER SET work_mem = '{WORK_MEMORY}'")
        yield str(url)


def spark(folder: Path) -> Any:
    """A session in this process with two cores; stop() it."""
    from pyspark.sql import SparkSession

    tests = _of_tests()
    tests._require_java()
    os.environ.update(tests._spark_environment(tests.SPARK_HOME))
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**tests._spark_settings(folder), **SPARK}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _of_tests() -> ModuleType:
    """The tests' own module, which is in no package."""
    name = "privmax_test_engines"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _TESTS)
        if spec is None or spec.loader is None:
            raise SystemExit("tests/engines/conftest.py, which starts the engines, is not there")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
