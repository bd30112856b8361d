"""Connections that others use too: poolers, threads, tables that are being written."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import ibis
import psycopg
import pytest
from click.testing import CliRunner

import privmax
from privmax.cli import main
from privmax.itemsets import top_itemsets
from privmax.itemsets.reading.tables import TableRows
from privmax.ledger import Charge
from privmax.sources.roles import Columns
from privmax.sources.tables import TableSource

PRICE = {"epsilon": 4, "delta": "0.1"}
ROWS = [("a", user) for user in range(60)] + [("b", user) for user in range(9)]


@pytest.fixture
def log(postgres):
    """The name of a table of PostgreSQL."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS shared_log")
        connection.execute("CREATE TABLE shared_log (item text, who int)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO shared_log VALUES (%s, %s)", ROWS)
        yield "shared_log"
        connection.execute("DROP TABLE shared_log")


def tables_of_ours(connection):
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'"
    ).fetchall()
    return [name for (name,) in found]


@pytest.mark.parametrize("universe", ["open", ["a", "b", "c"]], ids=["open", "closed"])
def test_a_pooler_finds_no_counts_behind_a_selection(log, pgbouncer, postgres, universe):
    connection = ibis.connect(pgbouncer, prepare_threshold=5)
    try:
        for _ in range(8):  # psycopg would prepare a statement on the server from the sixth time on
            found = privmax.select(
                connection.table(log), item="item", user="who", universe=universe, **PRICE
            )
            assert found.item == "a"
            with psycopg.connect(postgres) as other:
                assert tables_of_ours(other) == []
        assert connection.con.prepare_threshold is not None  # what was changed is as it was
    finally:
        connection.disconnect()


def test_the_check_above_sees_counts_in_temporary_tables(log, postgres):
    with psycopg.connect(postgres, autocommit=True) as one, psycopg.connect(postgres) as other:
        one.execute("CREATE TEMPORARY TABLE privmax_counts_seen (n int)")
        assert tables_of_ours(other) == ["privmax_counts_seen"]


def test_many_clients_select_through_a_pooler_at_once(log, pgbouncer):
    def ask(_):
        connection = ibis.connect(
            pgbouncer, prepare_threshold=None
        )  # Ibis itself would prepare a statement
        try:
            return privmax.select(connection.table(log), item="item", user="who", **PRICE).item
        finally:
            connection.disconnect()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(32))) == ["a"] * 32


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "mariadb"], scope="session")
@pytest.mark.filterwarnings("ignore:Unable to set session timezone")
def test_threads_share_a_connection(load, engine):
    table = load({"item": [item for item, _ in ROWS], "who": [who for _, who in ROWS]})
    with ThreadPoolExecutor(12) as pool:
        found = pool.map(
            lambda _: privmax.select(table, item="item", user="who", **PRICE).item, range(36)
        )
        assert list(found) == ["a"] * 36


def test_a_connection_stays_usable_and_in_its_own_transaction(log, postgres):
    with psycopg.connect(postgres) as own:
        own.execute(
            "INSERT INTO shared_log VALUES ('c', 1)"
        )  # a transaction of the caller's is open
        connection = ibis.postgres.from_connection(own)
        assert privmax.select(connection.table(log), item="item", user="who", **PRICE).item == "a"
        assert own.execute("SELECT count(*) FROM shared_log").fetchone() == (len(ROWS) + 1,)
        own.rollback()
        assert own.execute("SELECT count(*) FROM shared_log").fetchone() == (len(ROWS),)


@pytest.mark.parametrize("user", [None, "who"], ids=["baskets", "users"])
def test_itemsets_of_a_table_that_is_being_written(log, postgres, user):
    """Both passes see the rows of one moment."""
    done = threading.Event()

    def write():
        with psycopg.connect(postgres, autocommit=True) as connection:
            number = 1000
            while not done.is_set():
                number += 1
                connection.execute(
                    "INSERT INTO shared_log VALUES ('a', %s), ('b', %s)", (number, number)
                )

    writer = threading.Thread(target=write)
    writer.start()
    connection = ibis.connect(postgres)
    try:
        for _ in range(10):
            found = top_itemsets(
                connection.table(log), basket="who", item="item", user=user, **PRICE
            )
            assert found.item in (("a", "b"), None)
    finally:
        done.set()
        writer.join()
        connection.disconnect()


def test_the_command_line_selects_through_a_pooler(log, pgbouncer):
    """Many at once, though it opens its connections itself."""

    def ask(_):
        command = [
            "select",
            pgbouncer,
            "--table",
            log,
            "--item",
            "item",
            "--user",
            "who",
            "--epsilon",
            "4",
        ]
        return CliRunner().invoke(main, [*command, "--delta", "0.1", "--json"])

    for found in [ask(0), ask(1), ask(2), ask(3), ask(4), ask(5)]:
        assert json.loads(found.stdout)["item"] == "a"


@pytest.fixture
def database(request, tmp_path):
    """(connection, another connection to the same database) of an engine, with a table of
    baskets.
    """
    name = request.param
    if name == "sqlite":
        one = other = ibis.sqlite.connect(tmp_path / "shared.sqlite")
        write = partial(_in_sqlite, tmp_path / "shared.sqlite")
    elif name == "duckdb":
        one = other = ibis.duckdb.connect(tmp_path / "shared.duckdb")
        write = one.con.cursor().execute
    else:
        url = request.getfixturevalue("mariadb")
        one, other = ibis.connect(url), ibis.connect(url)
        write = partial(_in_mariadb, other)
    write("DROP TABLE IF EXISTS shared_log")
    write("CREATE TABLE shared_log (item varchar(20), who int)")
    write("INSERT INTO shared_log VALUES " + ", ".join(f"('{item}', {who})" for item, who in ROWS))
    yield one, write
    one.disconnect()
    if other is not one:
        other.disconnect()


def _in_sqlite(path, query):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(query)


def _in_mariadb(backend, query):
    with closing(backend.con.cursor()) as cursor:
        cursor.execute(query)
        return cursor.fetchall()


EMBEDDED = pytest.mark.parametrize("database", ["sqlite", "duckdb", "mariadb"], indirect=True)
quiet = pytest.mark.filterwarnings("ignore:Unable to set session timezone")


@EMBEDDED
@quiet
def test_both_passes_see_one_state(database):
    """A row that another connection writes between the passes is not seen, or waits until they are
    done.
    """
    connection, write = database
    with closing(TableRows(connection.table("shared_log"), basket="who", item="item")) as rows:
        before = rows.bounds().tolist()
        writer = threading.Thread(
            target=lambda: _patiently(write, "INSERT INTO shared_log VALUES ('b', 999)")
        )
        writer.start()
        writer.join(0.5)
        assert rows.survivors(1).supports().tolist() == before
    writer.join()
    with closing(TableRows(connection.table("shared_log"), basket="who", item="item")) as rows:
        assert sum(rows.bounds()) == sum(before) + 1


def _patiently(write, query):
    """A writer that waits for its turn, as SQLite's must."""
    for _ in range(100):
        try:
            write(query)
        except Exception:
            threading.Event().wait(0.1)
        else:
            return


@EMBEDDED
@quiet
@pytest.mark.parametrize("universe", ["open", ["a", "b", "c"]], ids=["open", "closed"])
def test_a_transaction_of_the_callers_is_left_to_the_caller(database, universe):
    connection, _ = database
    run = (
        connection.con.execute
        if hasattr(connection.con, "execute")
        else partial(_in_mariadb, connection)
    )
    table = connection.table("shared_log")
    run("BEGIN" if connection.name != "mysql" else "START TRANSACTION")
    run("INSERT INTO shared_log VALUES ('b', 999)")
    assert privmax.select(table, item="item", user="who", universe=universe, **PRICE).item == "a"
    run("ROLLBACK")
    assert table.count().to_pyarrow().as_py() == len(ROWS)


@quiet
@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_transaction_without_autocommit_is_left_to_the_caller(database):
    connection, _ = database
    table = connection.table("shared_log")
    connection.con.autocommit(False)
    _in_mariadb(connection, "INSERT INTO shared_log VALUES ('b', 999)")
    assert privmax.select(table, item="item", user="who", **PRICE).item == "a"
    connection.con.rollback()
    connection.con.autocommit(True)
    assert table.count().to_pyarrow().as_py() == len(ROWS)


def test_a_source_that_another_thread_closes_gives_the_connection_back(tmp_path):
    connection = ibis.duckdb.connect()
    connection.con.execute(
        "CREATE TABLE shared_log AS SELECT 'a' AS item, n AS who FROM range(60) r(n)"
    )
    source = TableSource(connection.table("shared_log"), Columns("item", "who"))
    other = threading.Thread(target=source.close)
    other.start()
    other.join()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            privmax.select, connection.table("shared_log"), item="item", user="who", **PRICE
        )
        assert asked.result(timeout=60).item == "a"
    connection.disconnect()


@pytest.fixture
def cleared(postgres):
    """The database that is shared by all tests holds no ledgers afterwards."""
    yield
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP TABLE privmax_events, privmax_ledgers CASCADE")
        found = (
            "SELECT 'DROP FUNCTION ' || oid::regprocedure FROM pg_proc WHERE proname ~ '^privmax_'"
        )
        for (drop,) in server.execute(found).fetchall():
            server.execute(drop)


def test_many_charge_through_a_pooler_at_once(pgbouncer, cleared):
    """Each transaction may have another session of the server."""
    with privmax.Ledger(pgbouncer, "pooled", privmax.Privacy(3)) as ledger:

        def ask(number):
            with privmax.Ledger(pgbouncer, "pooled") as own:
                price = Charge(privmax.Privacy("1/10"))
                return [own.charge(price, {}, request=f"{number} {n}").record(n) for n in range(3)]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, range(10))) == [[0, 1, 2]] * 10
        assert ledger.spent == privmax.Privacy(3)
        assert ledger.verify() == []
