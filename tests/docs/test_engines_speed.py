"""The stored speed of engines: complete, in step with its page, and judged by the figures that
stand there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import engines, peers, servers, tables  # run from the project's root

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/results/engines.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
SMALL = {"rows": 100_000, "items": 10_000, "people": 10_000, "each": 10}


def test_every_table_stands_on_the_page():
    for table in tables.engine_tables(RESULT):
        assert f"<!-- table: {table.name} -->\n{table.section()}<!-- end -->" in PAGE


def test_every_part_has_a_run_and_figures():
    assert [run["part"] for run in RESULT["runs"]] == list(engines.ROWS)
    for engine in engines.ENGINES:
        contenders = [row["contender"] for row in RESULT["times"] if row["engine"] == engine]
        assert contenders == [*engines.PLAIN, engines.PRIVMAX]
        assert len({row["items"] for row in RESULT["memory"] if row["engine"] == engine}) == 3
    assert {row["part"] for row in RESULT["peers"]} == {"opendp", "tumult"}


def test_the_aims_are_judged_by_the_stored_figures():
    assert RESULT["aims"] == engines.judgements(RESULT["times"], RESULT["memory"])


def test_a_slower_selection_would_miss_the_aim():
    slow = [
        {**row, "wall": row["wall"] * (10 if row["contender"] == engines.PRIVMAX else 1)}
        for row in RESULT["times"]
    ]
    judged = engines.judgements(slow, RESULT["memory"])
    assert [aim["met"] for aim in judged[:3]] == [False, False, False]


def test_the_settings_are_those_of_the_script():
    settings = engines.merged(
        {"runs": [], "times": [], "memory": [], "peers": []}, "duckdb", {"part": "duckdb"}, {}
    )
    assert RESULT["settings"] == settings["settings"]


def test_a_part_measured_anew_leaves_the_others():
    new = {
        "times": [{"engine": "spark", "contender": engines.PRIVMAX, "wall": 1.0, "processor": 1.0}]
    }
    new["times"] += [{**new["times"][0], "contender": form} for form in engines.PLAIN]
    again = engines.merged(RESULT, "spark", {"part": "spark"}, new)
    assert [row for row in again["times"] if row["engine"] == "spark"] == new["times"]
    assert [row for row in again["times"] if row["engine"] != "spark"] == [
        row for row in RESULT["times"] if row["engine"] != "spark"
    ]
    assert again["peers"] == RESULT["peers"]


@pytest.mark.parametrize("form", engines.COUNTS)
def test_the_data_is_what_its_formula_says(form):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE log AS {engines.ROWS_SQL.format(**SMALL)}")
        counts = dict(connection.execute(engines.COUNTS[form]).fetchall())
        rows = connection.execute("SELECT COUNT(*) FROM log").fetchall()
    assert rows == [(SMALL["rows"],)]
    assert sorted(counts) == list(range(SMALL["items"]))
    assert max(counts, key=counts.__getitem__) == 0


def test_the_tests_still_start_the_servers_the_benchmark_uses():
    module = servers.of_tests()
    for name in (
        "_postgres_server",
        "_require_java",
        "_spark_environment",
        "_spark_settings",
        "SPARK_HOME",
    ):
        assert hasattr(module, name)


def test_processor_time_counts_this_process():
    before, start = peers.processor_time({os.getpid()}), time.process_time()
    while time.process_time() < start + 0.1:
        sum(range(10**5))
    assert peers.processor_time({os.getpid()}) > before
