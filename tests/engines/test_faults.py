"""What engines do when they fail, for real: the error names the step, quotes nothing, and nothing
is left behind.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import ibis
import psycopg
import pyarrow as pa
import pytest
from by_name import by_name

import privmax
from privmax.errors import EngineError, ParameterError, UnsupportedError
from privmax.sources.engines.base import Engine
from privmax.sources.roles import Columns
from privmax.sources.tables import TableSource
from privmax.testing import SeededCoins

SECRETS = ("zorblax", "quuxley", "7310427")
PRICE = {"epsilon": 2, "delta": "0.1"}
COUNTING = {"item": "item", "user": "user", **PRICE}
LABELS = ["a", "quuxley", "zorblax"]
PATIENCE = 120


def assert_says_nothing_private(error):
    """Neither the error nor anything attached to it: not what the engine said, nor what the data
    holds.
    """
    assert error.__cause__ is None
    assert error.__context__ is None
    for said in (str(error), repr(error), repr(error.args)):
        assert not [secret for secret in SECRETS if secret in said]


def failing(step, kind=EngineError):
    return pytest.raises(kind, match=step)


ROWS = pa.table(
    {
        "item": ["zorblax"] * 40 + ["quuxley"] * 30,
        "user": [f"quuxley {n}" for n in (*range(40), *range(30))],
        "score": [7310427 + n for n in range(70)],
    }
)


# PostgreSQL


@pytest.fixture
def server(postgres):
    """A second connection, from which to do things to the first."""
    with psycopg.connect(postgres, autocommit=True) as other:
        yield other


@pytest.fixture
def backend(postgres):
    own = ibis.connect(postgres)
    own.create_table("faults", ROWS, temp=True)
    own.raw_sql(
        "CREATE TEMP VIEW slow AS SELECT * FROM faults WHERE pg_sleep(1) IS NOT NULL"
    ).close()
    yield own
    if not own.con.closed:
        own.disconnect()


def when_busy(server, backend, act):
    """Do something to the backend's server process as soon as it runs the slow query, from another
    thread.
    """
    process = backend.con.info.backend_pid

    def watch():
        busy = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        deadline = time.monotonic() + PATIENCE
        while not server.execute(busy, [process]).fetchone()[0] and time.monotonic() < deadline:
            time.sleep(0.05)
        server.execute(f"SELECT {act}(%s)", [process])

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def counts_left(connection):
    return connection.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'privmax_counts%'"
    ).fetchall()


def test_postgresql_ends_the_connection_while_it_counts(server, backend):
    watcher = when_busy(server, backend, "pg_terminate_backend")
    with failing("the counting") as caught:
        privmax.select(backend.table("slow"), **COUNTING)
    watcher.join()
    assert_says_nothing_private(caught.value)
    assert counts_left(server) == []


def test_postgresql_cancels_the_query(server, backend):
    watcher = when_busy(server, backend, "pg_cancel_backend")
    with failing("the counting") as caught:
        privmax.select(backend.table("slow"), **COUNTING)
    watcher.join()
    assert_says_nothing_private(caught.value)
    assert counts_left(backend.con) == []
    assert (
        privmax.select(backend.table("faults"), coins=SeededCoins(0), **COUNTING).privacy.epsilon
        == 2
    )


def test_postgresql_has_gone_before_the_first_question(backend):
    table = backend.table("faults")
    backend.con.close()
    with failing("the counting") as caught:
        privmax.select(table, **COUNTING)
    assert_says_nothing_private(caught.value)


def test_postgresql_goes_between_two_questions(server, backend):
    source = TableSource(backend.table("faults"), Columns("item", "user"))
    assert source.maximum() == 40
    server.execute("SELECT pg_terminate_backend(%s)", [backend.con.info.backend_pid])
    with failing("the histogram") as caught:
        source.histogram(3)
    assert_says_nothing_private(caught.value)
    source.close()


def test_a_table_is_dropped_before_it_is_counted(backend):
    table = backend.table("faults")
    backend.raw_sql("DROP TABLE faults CASCADE").close()
    with failing("the counting") as caught:
        privmax.select(table, **COUNTING)
    assert_says_nothing_private(caught.value)


def test_a_column_goes_after_the_table_was_opened(backend):
    table = backend.table("faults")
    backend.raw_sql("DROP VIEW slow").close()
    backend.raw_sql('ALTER TABLE faults DROP COLUMN "user"').close()
    with failing("the counting") as caught:
        privmax.select(table, **COUNTING)
    assert_says_nothing_private(caught.value)
    with failing("the table has no such column", ParameterError):
        privmax.select(backend.table("faults"), **COUNTING)


def test_the_counts_are_dropped_between_two_questions(backend):
    source = TableSource(backend.table("faults"), Columns("item", "user"))
    source.profile.window(50)
    ((name,),) = counts_left(backend.con)
    backend.raw_sql(f'DROP TABLE "{name}"').close()
    with failing("the look-up") as caught:
        source.name(privmax.mechanisms.contract.Outcome(40, 0))
    assert_says_nothing_private(caught.value)
    source.close()


def test_postgresql_that_lets_nothing_be_written_counts_at_every_question(backend):
    """A standby, or a role that may only read: slower, the same answer."""
    expected = privmax.select(backend.table("faults"), coins=SeededCoins(1), **COUNTING)
    backend.raw_sql("SET default_transaction_read_only = on").close()
    assert privmax.select(backend.table("faults"), coins=SeededCoins(1), **COUNTING) == expected
    assert expected.item is not None


# DuckDB


def test_duckdb_has_no_room_on_disk(tmp_path):
    engine = ibis.duckdb.connect(
        memory_limit="30MB", temp_directory=str(tmp_path), max_temp_directory_size="1MB", threads=1
    )
    table = engine.sql(
        "SELECT 'zorblax' || md5(i::VARCHAR) AS item, i AS user FROM range(3000000) r(i)"
    )
    with failing("the counting") as caught:
        privmax.select(table, **COUNTING)
    assert_says_nothing_private(caught.value)
    assert engine.con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []


def test_a_score_turns_out_to_be_text():
    """DuckDB's own message quotes it."""
    engine = ibis.duckdb.connect()
    table = engine.create_table("t", ROWS)
    engine.create_table(
        "t", pa.table({"item": ["a"], "user": ["u"], "score": ["zorblax"]}), overwrite=True
    )
    with failing("the counting") as caught:
        privmax.select(table, item="item", score="score", **PRICE)
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize("option", ["score", "weight"])
def test_a_column_of_the_wrong_type_is_refused(option):
    table = ibis.duckdb.connect().create_table("t", ROWS)
    beside = {"user": "user", "bound": 1} if option == "weight" else {}
    with failing("whole numbers, but its type is string", ParameterError) as caught:
        by_name(privmax.select, table, item="item", **{option: "user"}, **beside, **PRICE)
    assert_says_nothing_private(caught.value)


# Rows that arrive meanwhile


class Meddling:
    """No mechanism for use: it lets somebody write to the data before or after it has looked."""

    neighbors, k, growth, bounded_range = "add-remove", 1, None, False

    def __init__(self, write, after):
        self.write, self.after = write, after
        self.inner = privmax.PermuteAndFlip(epsilon=40)

    def draw(self, profile, coins):
        profile.top()
        if self.after == "the histogram":
            profile.window(1000)
        self.write()
        return self.inner.draw(profile, coins)

    def privacy(self):
        return self.inner.privacy()


@pytest.mark.parametrize("after", ["the maximum", "the histogram"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM t WHERE item = 'zorblax'",
        "INSERT INTO t SELECT 'zorblax', 'late ' || i, 1 FROM range(90) r(i)",
        "DELETE FROM t",
    ],
    ids=["less", "more", "nothing left"],
)
def test_data_that_changes_between_the_questions_is_not_released(monkeypatch, change, after):
    monkeypatch.setattr(Engine, "keep", lambda self, counts, held: counts)
    engine = ibis.duckdb.connect()
    table = engine.create_table("t", ROWS)
    mechanism = Meddling(lambda: engine.con.execute(change), after)
    with failing("changed while it was read") as caught:
        privmax.select(table, item="item", user="user", mechanism=mechanism, universe=LABELS)
    assert_says_nothing_private(caught.value)


def test_data_that_changes_does_not_matter_where_the_counts_are_kept():
    engine = ibis.duckdb.connect()
    mechanism = Meddling(lambda: engine.con.execute("DELETE FROM t"), "the maximum")
    table = engine.create_table("t", ROWS)
    assert (
        privmax.select(table, item="item", user="user", mechanism=mechanism, universe=LABELS).item
        == "zorblax"
    )


# Operations an engine lacks


@pytest.mark.parametrize("engine", ["polars", "sqlite"], scope="session")
def test_an_operation_that_the_engine_lacks_is_named(load):
    table = load({"item": ["zorblax", "quuxley"]})
    prepared = table.mutate(user=table.item.levenshtein("zorblax"))
    with failing("Levenshtein", UnsupportedError) as caught:
        privmax.select(prepared, **COUNTING)
    assert_says_nothing_private(caught.value)


# Spark


def endless(session):
    """A frame that takes hours to count."""
    return session.range(0, 10**12, 1, 8).selectExpr(
        "concat('zorblax', id % 1000003) AS item", "id AS user"
    )


def views(session):
    return [table.name for table in session.catalog.listTables()]


def test_spark_cancels_the_job(spark):
    session = spark.newSession()

    def watch():
        deadline = time.monotonic() + PATIENCE
        while (
            not spark.sparkContext.statusTracker().getActiveJobsIds()
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        spark.sparkContext.cancelAllJobs()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with failing("the maximum") as caught:
        privmax.select(endless(session), **COUNTING)
    watcher.join()
    assert_says_nothing_private(caught.value)
    assert views(session) == []
    frame = session.createDataFrame(ROWS)
    assert privmax.select(frame, coins=SeededCoins(0), **COUNTING).privacy.epsilon == 2


def test_a_task_of_spark_fails_and_what_it_says_is_not_passed_on(spark):
    session = spark.newSession()
    frame = session.createDataFrame(ROWS).selectExpr(
        "CAST(raise_error(item) AS string) AS item", "user"
    )
    with failing("the (counting|maximum)") as caught:  # Spark may try a small frame while it plans
        privmax.select(frame, **COUNTING)
    assert_says_nothing_private(caught.value)
    assert views(session) == []


# Ctrl-C

INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
"""

DUCKDB_SCRIPT = """
import ibis, privmax
engine = ibis.duckdb.connect()
engine.con.execute("SET threads = 1")
item = "'zorblax' || (hash(i) % 100000007)"
table = engine.sql(f"SELECT {item} AS item, i AS user FROM range(4000000000) r(i)")
print("ready", flush=True)
try:
    privmax.select(table, item="item", user="user", epsilon=1, delta=1e-6)
finally:
    print(engine.con.execute("SELECT table_name FROM duckdb_tables()").fetchall())
"""

POSTGRES_SCRIPT = """
import sys, ibis, privmax
engine = ibis.connect(sys.argv[1])
rows = "generate_series(1, 500) r(i) WHERE pg_sleep(1) IS NOT NULL"
table = engine.sql(f"SELECT 'zorblax' || i AS item, i AS user FROM {rows}")
print("ready", flush=True)
try:
    privmax.select(table, item="item", user="user", epsilon=1, delta=1e-6)
finally:
    left = "SELECT relname FROM pg_class WHERE relname LIKE 'privmax_counts%'"
    print(engine.con.execute(left).fetchall())
"""


SPARK_SCRIPT = """
import privmax
from pyspark.sql import SparkSession
settings = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.log.level": "OFF"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
def frame(rows):
    item = "concat('zorblax', id % 1000003) AS item"
    return spark.range(0, rows, 1, 8).selectExpr(item, "id AS user")
# so that the next one begins to count at once
privmax.select(frame(8), item="item", user="user", epsilon=1, delta=1e-6)
print("ready", flush=True)
try:
    privmax.select(frame(10**12), item="item", user="user", epsilon=1, delta=1e-6)
finally:
    print([table.name for table in spark.catalog.listTables()])
"""


@pytest.mark.parametrize(
    "script", [DUCKDB_SCRIPT, POSTGRES_SCRIPT, SPARK_SCRIPT], ids=["duckdb", "postgres", "spark"]
)
def test_a_selection_can_be_interrupted(script, postgres, tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE + script, postgres],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert run.stdout.readline() == "ready\n"
        time.sleep(2)  # until it counts, which would take it many minutes
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=PATIENCE)
    finally:
        run.kill()
        run.wait()
    assert run.returncode != 0
    assert out == "[]\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert not [secret for secret in SECRETS if secret in err]
