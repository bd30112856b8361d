"""Connections that others use too: poolers, threads, tables that are being written."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import ibis
import psycopg
import pytest
from click.testing import CliRunner

import privmax
from privmax.cli import main
from privmax.itemsets import top_itemsets
from privmax.ledger import Price

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
    found = connection.execute("SELECT relname FROM pg_class WHERE relname ~ 'privmax|ibis'").fetchall()
    return [name for (name,) in found]


@pytest.mark.parametrize("universe", ["open", ["a", "b", "c"]], ids=["open", "closed"])
def test_a_pooler_finds_no_counts_behind_a_selection(log, pgbouncer, postgres, universe):
    connection = ibis.connect(pgbouncer, prepare_threshold=5)
    try:
        for _ in range(8):  # psycopg would prepare a statement on the server from the sixth time on
            found = privmax.select(connection.table(log), item="item", user="who", universe=universe, **PRICE)
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
        connection = ibis.connect(pgbouncer, prepare_threshold=None)  # Ibis itself would prepare a statement
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
        found = pool.map(lambda _: privmax.select(table, item="item", user="who", **PRICE).item, range(36))
        assert list(found) == ["a"] * 36


def test_a_connection_stays_usable_and_in_its_own_transaction(log, postgres):
    with psycopg.connect(postgres) as own:
        own.execute("INSERT INTO shared_log VALUES ('c', 1)")  # a transaction of the caller's is open
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
                connection.execute("INSERT INTO shared_log VALUES ('a', %s), ('b', %s)", (number, number))

    writer = threading.Thread(target=write)
    writer.start()
    connection = ibis.connect(postgres)
    try:
        for _ in range(10):
            found = top_itemsets(connection.table(log), basket="who", item="item", user=user, **PRICE)
            assert found.item in (("a", "b"), None)
    finally:
        done.set()
        writer.join()
        connection.disconnect()


def test_the_command_line_selects_through_a_pooler(log, pgbouncer):
    """Many at once, though it opens its connections itself."""

    def ask(_):
        command = ["select", pgbouncer, "--table", log, "--item", "item", "--user", "who", "--epsilon", "4"]
        return CliRunner().invoke(main, [*command, "--delta", "0.1", "--json"])

    for found in [ask(0), ask(1), ask(2), ask(3), ask(4), ask(5)]:
        assert json.loads(found.stdout)["item"] == "a"


@pytest.fixture
def cleared(postgres):
    """The database that is shared by all tests holds no ledgers afterwards."""
    yield
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP TABLE privmax_events, privmax_ledgers")
        found = "SELECT 'DROP FUNCTION ' || oid::regprocedure FROM pg_proc WHERE proname ~ '^privmax_'"
        for (drop,) in server.execute(found).fetchall():
            server.execute(drop)


def test_many_charge_through_a_pooler_at_once(pgbouncer, cleared):
    """Each transaction may have another session of the server."""
    with privmax.Ledger(pgbouncer, "pooled", privmax.Privacy(3)) as ledger:

        def ask(number):
            with privmax.Ledger(pgbouncer, "pooled") as own:
                price = Price(privmax.Privacy("1/10"))
                return [own.charge(price, {}, request=f"{number} {n}").record(n) for n in range(3)]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, range(10))) == [[0, 1, 2]] * 10
        assert ledger.spent == privmax.Privacy(3)
        assert ledger.verify() == []
