"""Tables of databases: which one a name means, how it is opened, and what is missing where it
cannot be.

A database is opened to be read only, where it is a file. No message quotes a URL, in which a
password may stand, nor what a driver says, which may quote it.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    PrivmaxError,
    explain_install,
)
from privmax.retries import passes_later
from privmax.sources.conditions import suggest
from privmax.sources.engines.base import silence
from privmax.sources.engines.duckdb import prepare
from privmax.sources.engines.sqlite import find_table
from privmax.sources.places import (
    DATABASE,
    NO_DATABASE,
    database_path,
    find_files,
    is_database,
    refuse_remote,
)

DRIVERS = {
    "athena": ("Athena", "pyathena", "pyathena"),
    "bigquery": ("BigQuery", "google-cloud-bigquery", "google.cloud.bigquery"),
    "clickhouse": ("ClickHouse", "clickhouse-connect", "clickhouse_connect"),
    "databricks": ("Databricks", "databricks-sql-connector", "databricks.sql"),
    "datafusion": ("DataFusion", "datafusion", "datafusion"),
    "druid": ("Druid", "pydruid", "pydruid"),
    "duckdb": ("DuckDB", "duckdb", "duckdb"),
    "exasol": ("Exasol", "pyexasol", "pyexasol"),
    "impala": ("Impala", "impyla", "impala"),
    "mariadb": ("MariaDB", "mysqlclient", "MySQLdb"),
    "mssql": ("SQL Server", "pyodbc", "pyodbc"),
    "mysql": ("MySQL", "mysqlclient", "MySQLdb"),
    "oracle": ("Oracle", "oracledb", "oracledb"),
    "postgres": ("PostgreSQL", "psycopg", "psycopg"),
    "postgresql": ("PostgreSQL", "psycopg", "psycopg"),
    "risingwave": ("RisingWave", "psycopg2", "psycopg2"),
    "snowflake": ("Snowflake", "snowflake-connector-python", "snowflake.connector"),
    "sqlite": ("SQLite", "ibis-framework", "ibis"),
    "trino": ("Trino", "trino", "trino"),
}
"""What a database is called, the package that talks to it and the module of that package, by the
scheme of a URL. What Ibis needs beside it comes with its extra of the same name.
"""

_EXTRAS = {"mariadb": "mysql", "postgresql": "postgres"}
"""The extra of Ibis, where it is not called like the scheme."""

_OPENING: dict[str, dict[str, Any]] = {
    # behind a pooler another connection would be asked for what was prepared
    "postgres": {"prepare_threshold": None},
    "postgresql": {"prepare_threshold": None},
}
"""How a server is asked for a connection, by the scheme of its URL."""


def open_database(data: object, table: str | None, held: ExitStack) -> object:
    """A table of a database, as an Ibis table, until `held` is closed; other data as it is."""
    is_path = isinstance(data, (str, os.PathLike))
    text = os.fspath(data) if isinstance(data, (str, os.PathLike)) else ""
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if not is_path or not is_database(text):
        if table is not None:
            raise ParameterError("table", table, NO_DATABASE, DATABASE)
        return data
    return open_table(text, table, held)


def open_table(place: str, table: str | None, held: ExitStack) -> Any:
    """A table of the database at a URL, or in a file."""
    refuse_remote(place)
    if table is None:
        names: Sequence[str] | None = None
        with suppress(EngineError):  # a table is wanted, whether the server is there or not
            connection = _connect(place, held)
            held.callback(_disconnect, connection)
            names = _list(connection)
        raise ParameterError(
            "table",
            None,
            "the data is a database, which may hold several tables",
            "Name one of them. " + ("" if names is None else _there_are(names)),
        )
    connection = _connect(place, held)
    held.callback(_disconnect, connection)
    with _explain_errors("The tables of the database cannot be read"):
        found = _find(connection, table)
        if found is not None:
            return found
        raise ParameterError(
            "table",
            table,
            "the database has no such table, or this user may not read it",
            _there_are(_list(connection), table),
        )


def _find(connection: Any, table: str) -> Any:
    """The table that a name means: one that is called so, with all its dots; else the one behind
    the last dot, in the schema before it. None: there is neither.
    """
    open_one = partial(find_table, connection) if connection.name == "sqlite" else connection.table
    if table in _list(connection):
        return open_one(table)
    schema, dot, name = table.rpartition(".")
    if not dot:
        with suppress(Exception):  # a view, or what the catalog spells otherwise
            return open_one(table)
        return None
    catalog, dot, inner = schema.rpartition(".")
    for database in [schema, *([(catalog, inner)] if dot else [])]:
        with suppress(Exception):
            return open_one(name, database=database)
    return None


def _list(connection: Any) -> list[str]:
    """The tables of the usual schema; not our own."""
    with silence():
        names: Sequence[str] = connection.list_tables()
    return [name for name in names if not name.startswith(("ibis_", "privmax_"))]


def _there_are(names: Sequence[str], wanted: str = "") -> str:
    if not names:
        return "The database has no tables, or none that this user may see."
    return suggest(wanted, sorted(names))


def _connect(place: str, held: ExitStack) -> Any:
    scheme = _split(place).scheme if "://" in place else ""
    file = _file_of(place, scheme)
    if file is not None:
        scheme = _kind_of(file)
    if scheme not in DRIVERS:
        raise DataError(
            "No database has a URL that begins so. " + suggest(scheme.lower(), sorted(DRIVERS))
        )
    _check_driver(scheme)
    with _explain_errors(
        "The database cannot be opened",
        "Is the URL right, is the server running, and are user and password known to it?",
    ):
        import ibis

        with warnings.catch_warnings():
            # of MySQL, whose time zone is set before anything is counted
            warnings.simplefilter("ignore")
            if file is None:
                url = place.replace("mariadb://", "mysql://", 1)
                return ibis.connect(url, **_OPENING.get(scheme, {}))
            if scheme == "duckdb":
                return prepare(ibis.duckdb.connect(file, read_only=True), held)
            uri = f"file:{quote(str(file.absolute()))}?mode=ro"
            with ExitStack() as unless_taken:
                opened = unless_taken.enter_context(closing(sqlite3.connect(uri, uri=True)))
                taken = ibis.sqlite.from_connection(opened)
                unless_taken.pop_all()
            return taken


def _split(place: str) -> SplitResult:
    try:
        return urlsplit(place)
    except ValueError:  # which quotes a part of it
        pass
    raise DataError(
        "The URL of the database cannot be read. Write an IPv6 address in brackets, and % codes "
        "for brackets and other signs in a name or a password."
    )


def _file_of(place: str, scheme: str) -> Path | None:
    """The file of a database that is one; None: a server has it."""
    if not scheme:
        return find_files(place).paths[0]
    if scheme not in ("duckdb", "sqlite"):
        return None
    parts = _split(place)
    path = database_path(parts.netloc + parts.path)
    if not os.path.isfile(path):  # the engine would make an empty one
        raise DataError("There is no such database file. Give the path of one that exists.")
    return Path(path)


def _kind_of(file: Path) -> str:
    """What made a file of a database, by the mark at its beginning."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except OSError as error:
        raise DataError(f"The database cannot be read ({error.strerror}).") from None
    if start.startswith(b"SQLite format 3\x00") or not start:
        return "sqlite"
    if start[8:12] == b"DUCK":
        return "duckdb"
    raise DataError("The file is neither a SQLite nor a DuckDB database, whatever its name says.")


def _check_driver(scheme: str) -> None:
    """Refuse a database whose driver is not installed, and name that."""
    name, package, module = DRIVERS[scheme]
    if not _is_installed("ibis"):
        raise DataError(
            f"{name} needs the package ibis-framework, which is not installed. "
            + explain_install("sql")
        )
    if not _is_installed(module):
        raise DataError(
            f"{name} needs the package {package}, which is not installed. Run pip install "
            f'"ibis-framework[{_EXTRAS.get(scheme, scheme)}]", which brings it along.'
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package that holds it is not there
        return False


@contextmanager
def _explain_errors(what: str, remedy: str = "") -> Iterator[None]:
    """Errors of a driver in words of ours."""
    refused: PrivmaxError | None = None
    try:
        with silence():
            yield
    except PrivmaxError:
        raise
    except ImportError as error:
        missing = error.name or "one that its driver needs"
        refused = DataError(
            f"{what}: the package {missing} is not installed. Run pip install with its name."
        )
    except Exception as error:
        retry = passes_later(error)
        refused = EngineError(f"{what} ({type(error).__name__}). {remedy}".rstrip(), retry=retry)
    if refused is not None:
        raise refused


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # one that is lost cannot be closed
        connection.disconnect()
