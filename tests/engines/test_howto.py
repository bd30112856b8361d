"""What the how-to pages show on PostgreSQL and Spark, run on them. tests/docs/test_pages.py runs
the rest.
"""

from __future__ import annotations

import datetime
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet
import pyspark
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from privmax.cli import main

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto"
BLOCK = re.compile(r"^```([^\n]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

SEARCHES = pa.table(
    {
        "query": ["rain boots"] * 500 + ["tent"] * 4000,
        "country": ["NL"] * 500 + ["BE"] * 4000,
        "user_id": [*range(500), *[7] * 4000],
        "day": [datetime.date(2026, 3, 2)] * 4500,
    }
)


def blocks(page: str, kind: str) -> list[str]:
    """The blocks of one kind, of which there must be some."""
    found = [
        text
        for name, text in BLOCK.findall((HOWTO / page).read_text(encoding="utf-8"))
        if name == kind
    ]
    assert found, f"{page} has no ```{kind}"
    return found


def test_every_block_is_run_somewhere() -> None:
    ordinary = {"python", "console"}
    here = {("postgres.md", "console postgres"), ("postgres.md", "python postgres")}
    here |= {("spark.md", "python script"), ("spark.md", "python spark"), ("spark.md", "sh")}
    # Those by tests/cli/test_budget.py and test_team.py:
    here |= {("budget.md", kind) for kind in ("console ledger", "console refused", "python ledger")}
    here |= {
        ("team.md", kind)
        for kind in ("console denied", "console postgres", "python ada", "sql", "sql owner")
    }
    # Those by tests/docs/test_walks.py:
    here |= {("nightly.md", "sh nightly.sh"), ("service.md", "python service.py")}
    pages = {
        page.name: BLOCK.findall(page.read_text(encoding="utf-8")) for page in HOWTO.glob("*.md")
    }
    shown = {
        (name, kind) for name, found in pages.items() for kind, _ in found if kind not in ordinary
    }
    assert shown == here


@pytest.fixture
def shop(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a database that has the table of searches, also in DATABASE_URL."""
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE TABLE searches (query text, country text, user_id bigint, day date)")
        with server.cursor() as cursor, cursor.copy("COPY searches FROM STDIN") as copy:
            for row in SEARCHES.to_pylist():
                copy.write_row(tuple(row.values()))
        monkeypatch.setenv("DATABASE_URL", postgres)
        yield postgres
        server.execute("DROP TABLE searches")


def test_the_page_on_postgres(shop: str) -> None:
    page: dict[str, object] = {}
    for text in blocks("postgres.md", "python postgres"):
        exec(compile(text, "postgres.md", "exec"), page)
    assert page["first"].item == "rain boots"  # type: ignore[attr-defined]
    assert page["second"].item == datetime.date(2026, 3, 2)  # type: ignore[attr-defined]
    page["connection"].disconnect()  # type: ignore[attr-defined]


def test_the_command_on_postgres(shop: str) -> None:
    for text in blocks("postgres.md", "console postgres"):
        command, *shown = text.replace("\\\n", "").splitlines()
        run = CliRunner().invoke(
            main, shlex.split(os.path.expandvars(command.removeprefix("$ privmax ")))
        )
        assert (run.output.splitlines(), run.exit_code) == (shown, 0)


def test_the_command_tells_of_a_missing_table_and_not_of_the_password(shop: str) -> None:
    url = shop.replace("://privmax@", "://privmax:hunter2@")
    options = [
        "--table",
        "public.search",
        "--item",
        "query",
        "--user",
        "user_id",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
    ]
    run = CliRunner().invoke(main, ["select", url, *options])
    assert run.exit_code == 2
    assert "--table public.search: the database has no such table" in run.stderr
    assert "hunter2" not in run.stderr


def test_the_page_on_spark(spark: SparkSession) -> None:
    session = spark.newSession()
    session.createDataFrame(SEARCHES).createTempView("searches")
    for text in blocks("spark.md", "python spark"):
        exec(compile(text, "spark.md", "exec"), {"spark": session})


def test_the_script_is_submitted_as_shown(tmp_path: Path) -> None:
    """The page's own line, but for the cluster and the folder."""
    (script,), (line,) = blocks("spark.md", "python script"), blocks("spark.md", "sh")
    (tmp_path / "top_query.py").write_text(script, encoding="utf-8")
    (tmp_path / "log").mkdir()
    pyarrow.parquet.write_table(SEARCHES, tmp_path / "log" / "part.parquet")
    program, *words = shlex.split(line.replace("\\\n", ""))
    home = Path(pyspark.__file__).parent
    there = {"yarn": "local[2]", "hdfs:///logs/searches/2026-03": "log"}
    assert there.keys() <= set(words)
    done = subprocess.run(
        [home / "bin" / program, *(there.get(word, word) for word in words)],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["item rain boots", "cost Privacy(epsilon=1, delta=1e-06)"]
