"""What engines know of themselves: whose an object is, what wrote a file, which failures pass."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import duckdb
import ibis
import polars
import psycopg
import pytest

from privmax.errors import UnsupportedError
from privmax.sources.asking import is_transient
from privmax.sources.engines import (
    all_engines,
    embedded_engine,
    engine_of,
    file_engines,
    is_read_once,
    owner_of,
)
from privmax.sources.engines.base import Engine
from privmax.sources.engines.duckdb import DuckDB
from privmax.sources.engines.mysql import MySQL
from privmax.sources.engines.polars import Polars
from privmax.sources.engines.postgres import Postgres
from privmax.sources.engines.spark import Spark
from privmax.sources.engines.sqlite import SQLite


def error_of(package: str, name: str, *args: object, **fields: object) -> Exception:
    """An error as a driver raises it, which need not be installed."""
    return type(name, (Exception,), {"__module__": f"{package}.errors", **fields})(*args)


LATER = {
    "no server": ConnectionRefusedError(),
    "a service": error_of("google", "ServiceUnavailable"),
    "PostgreSQL, deadlock": psycopg.errors.DeadlockDetected(),
    "PostgreSQL, no session": psycopg.OperationalError("connection refused"),
    "MySQL, deadlock": error_of("MySQLdb", "OperationalError", 1213, "deadlock"),
    "DuckDB, another process": error_of("_duckdb", "IOException", "Could not set lock on file"),
    "SQLite, busy": error_of("sqlite3", "OperationalError", sqlite_errorcode=261),
    "Spark, no answer": error_of("py4j", "Py4JNetworkError"),
}

NEVER = {
    "no file": FileNotFoundError(),
    "PostgreSQL, syntax": psycopg.errors.SyntaxError(),
    "PostgreSQL, disk full": psycopg.errors.DiskFull(),
    "PostgreSQL, password": psycopg.OperationalError("password authentication failed"),
    "MySQL, no table": error_of("MySQLdb", "ProgrammingError", 1146, "no such table"),
    "DuckDB, no file": error_of("_duckdb", "IOException", "No such file"),
    "SQLite, no table": error_of("sqlite3", "OperationalError", sqlite_errorcode=1),
    "the code of MySQL elsewhere": error_of("other", "OperationalError", 1213),
    "the words of DuckDB elsewhere": error_of("other", "IOException", "lock"),
}


@pytest.mark.parametrize("cause", LATER)
def test_what_may_succeed_later(cause):
    assert is_transient(LATER[cause])
    outer = KeyError()
    outer.__cause__ = LATER[cause]
    assert is_transient(outer)


@pytest.mark.parametrize("cause", NEVER)
def test_what_fails_again(cause):
    assert not is_transient(NEVER[cause])


def test_an_engine_knows_its_own_errors_only():
    for cause, error in LATER.items():
        knowing = [engine.title for engine in all_engines() if engine.is_transient(error)]
        assert knowing == [engine.title for engine in all_engines() if engine.title in cause]


def test_a_login_that_fails_is_explained_by_its_engine_and_not_quoted():
    error = psycopg.OperationalError("password authentication failed for hunter2")
    assert Postgres.explain_login(error) == "The server refused the password of this user."
    assert Postgres.explain_login(psycopg.OperationalError("hunter2")) is None
    assert SQLite.explain_login(error) is None


def test_objects_belong_to_the_engine_of_their_library():
    relation, lazy = duckdb.sql("SELECT 1 AS a"), polars.LazyFrame({"a": [1]})
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    assert owner_of(relation) is DuckDB
    assert owner_of(lazy) is Polars
    assert owner_of(frame) is Spark
    for other in (lazy.collect(), {"a": 1}, "a.csv", ibis.memtable({"a": [1]})):
        assert owner_of(other) is None
    assert [one for one in (relation, lazy, frame, {"a": 1}) if is_read_once(one)] == [relation]


def test_a_file_is_recognized_by_what_wrote_it(tmp_path):
    with closing(sqlite3.connect(tmp_path / "one")) as lite:
        lite.execute("CREATE TABLE a (b)")
    duckdb.connect(tmp_path / "two").close()
    for name, writer in (("one", SQLite), ("two", DuckDB)):
        start = (tmp_path / name).read_bytes()[:16]
        assert [engine for engine in all_engines() if engine.has_written(start)] == [writer]
    assert not any(engine.has_written(b"product,duck\n") for engine in all_engines())
    assert file_engines() == [SQLite, DuckDB]
    assert embedded_engine() is DuckDB


def test_an_engine_without_a_file_refuses_text(monkeypatch):
    connection = ibis.sqlite.connect()
    table = connection.create_table("a", schema={"name": "string", "number": "int64"})
    monkeypatch.setattr(type(connection), "name", "unheard")
    engine = engine_of(table)
    assert type(engine) is Engine
    assert engine.key(table.number).equals(table.number)
    with pytest.raises(UnsupportedError, match=r"unheard.*may call different texts equal"):
        engine.key(table.name)
    connection.disconnect()


def test_mariadb_is_opened_as_mysql(monkeypatch):
    opened = []
    monkeypatch.setattr(ibis, "connect", lambda url, **options: opened.append((url, options)))
    MySQL.open_url("mariadb://me@host/mariadb://")
    Postgres.open_url("postgres://me@host/shop")
    assert opened == [
        ("mysql://me@host/mariadb://", {}),
        ("postgres://me@host/shop", {"prepare_threshold": None}),
    ]


class _OddError(Exception):
    """As drivers of others may raise them: looking at it fails."""

    def __str__(self):
        raise RuntimeError("no words")

    @property
    def sqlite_errorcode(self):
        raise KeyError("no code")

    sqlstate = errno = sqlite_errorcode


@pytest.mark.parametrize("module", ["duckdb", "psycopg", "MySQLdb", "sqlite3", None])
@pytest.mark.parametrize("name", ["IOException", "OperationalError", "Other"])
def test_no_error_is_too_odd_to_be_judged(module, name):
    odd = type(name, (_OddError,), {"__module__": module})
    assert not is_transient(odd())
    assert not is_transient(odd([]))  # its code cannot be looked up
    outer = ConnectionResetError()
    outer.__context__ = odd({})
    assert is_transient(outer)
