"""The servers that `conftest.py` starts: the other tests rest on what these show."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from ibis.backends import BaseBackend

Load = Callable[..., Any]

ON_MARIADB = pytest.mark.parametrize("engine", ["mariadb"], scope="session")


@ON_MARIADB
def test_mariadb_holds_what_was_loaded(connection: BaseBackend, load: Load) -> None:
    rows = {"name": ["a", "É", None, "a "], "count": [2**60 + 1, None, -3, 0]}

    table = load(rows)

    with (
        connection.begin() as cursor
    ):  # not through Ibis, which reads by way of pandas: 2**60 + 1 would lose the 1
        cursor.execute(f"SELECT name, count FROM `{table.get_name()}`")
        assert set(cursor.fetchall()) == set(zip(*rows.values(), strict=True))


@ON_MARIADB
def test_mariadb_calls_equal_what_differs_in_case(connection: BaseBackend) -> None:
    """As the MariaDB that Debian installs does, and those of most users."""
    with connection.begin() as cursor:
        cursor.execute("SELECT @@collation_database, 'Fig' = 'fig'")
        assert cursor.fetchall() == (("utf8mb4_general_ci", 1),)


def test_pgbouncer_lends_one_server_connection_to_many_clients(pgbouncer: str) -> None:
    """Sixteen clients at once get along with four; in a session of PostgreSQL's own, each would
    have one to itself.
    """

    def ask(_: int) -> int:
        with psycopg.connect(pgbouncer, prepare_threshold=None) as client:
            row = client.execute("SELECT pg_backend_pid() FROM pg_sleep(0.05)").fetchone()
            assert row is not None
            return int(row[0])

    with ThreadPoolExecutor(16) as clients:
        servers = list(clients.map(ask, range(16)))

    assert 1 <= len(set(servers)) <= 4


def test_pgbouncer_keeps_what_a_client_leaves_in_the_session(pgbouncer: str) -> None:
    """What makes it hostile: the next transaction, of whatever client, may find it."""
    with psycopg.connect(pgbouncer, autocommit=True, prepare_threshold=None) as client:
        client.execute("CREATE TEMPORARY TABLE privmax_left_behind AS SELECT 1 AS one")
    with psycopg.connect(pgbouncer, autocommit=True, prepare_threshold=None) as client:
        assert client.execute("SELECT one FROM privmax_left_behind").fetchall() == [(1,)]
        client.execute("DROP TABLE privmax_left_behind")
