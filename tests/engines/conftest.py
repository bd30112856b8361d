"""Real engines for the tests: what `load` puts into one comes back unchanged.

A test that takes `load` runs once per engine; `@pytest.mark.parametrize("engine", ["spark"],
scope="session")` keeps it on those named. Servers and sessions start when a test first asks for
them, once per worker: tools/servers.py says how. Where an engine is not installed its tests are
skipped; with PRIVMAX_TEST_ENGINES=all, as in .ci/run, they fail.
"""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import ibis
import psycopg
import pyarrow as pa
import pytest
import servers
from ibis.backends import BaseBackend
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "ledger"))  # what reads ledgers is the same there

Opening = Callable[[pytest.FixtureRequest, Path], BaseBackend]
"""Makes a connection, with the fixtures of a test and a folder of its own."""


def _connect_to(server: str) -> Opening:
    """Connect to the server whose URL a fixture has."""
    return lambda request, folder: ibis.connect(request.getfixturevalue(server))


SUITE: dict[str, tuple[str, Opening]] = {
    "duckdb": ("duckdb", lambda request, folder: ibis.duckdb.connect()),
    "polars": ("polars", lambda request, folder: ibis.polars.connect()),
    "sqlite": ("sqlite", lambda request, folder: ibis.sqlite.connect(folder / "engine.sqlite")),
    "postgres": ("postgres", _connect_to("postgres")),
    "postgres-icu": ("postgres", _connect_to("postgres_icu")),
    "mariadb": ("mysql", _connect_to("mariadb")),
    # its views and settings are the test's own, the engine is not
    "spark": (
        "pyspark",
        lambda request, folder: ibis.pyspark.connect(request.getfixturevalue("spark").newSession()),
    ),
}
"""The engines that tests ask: what Ibis calls each, and how it is opened. postgres orders strings
by their bytes, postgres-icu by the rules of Unicode, where "a" comes before "B".
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.engines)


class Load(Protocol):
    """Puts columns, given as lists that may hold None, into a new table of the engine.

    Types are guessed from the values. `types` gives the Ibis type of a column where that cannot be
    done (no rows, only None) or would guess wrong.
    """

    def __call__(
        self, rows: Mapping[str, Sequence[Any]], *, types: Mapping[str, str] | None = None
    ) -> ibis.Table: ...


@pytest.fixture(scope="session")
def suite() -> dict[str, str]:
    """What Ibis calls each engine that is tested."""
    return {engine: name for engine, (name, _) in SUITE.items()}


@pytest.fixture(scope="session", params=SUITE)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine. Of session scope, so that pytest runs the tests of one engine after
    each other.
    """
    name: str = request.param
    return name


@pytest.fixture
def connection(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[BaseBackend]:
    """A connection of the test's own."""
    name, opening = SUITE[engine]
    backend = opening(request, tmp_path)
    assert backend.name == name
    yield backend
    if name != "pyspark":  # disconnecting would stop it for every test
        backend.disconnect()


@pytest.fixture
def load(connection: BaseBackend) -> Iterator[Load]:
    names = []

    def load(
        rows: Mapping[str, Sequence[Any]], *, types: Mapping[str, str] | None = None
    ) -> ibis.Table:
        given = {column: ibis.dtype(name).to_pyarrow() for column, name in (types or {}).items()}
        arrow = pa.table(
            {column: pa.array(values, type=given.get(column)) for column, values in rows.items()}
        )
        names.append(ibis.util.gen_name("privmax_test"))
        return _create(connection, names[-1], arrow)

    yield load
    for name in names:
        _drop(connection, name)


def _create(connection: BaseBackend, name: str, arrow: pa.Table) -> ibis.Table:
    # Ibis itself would fill tables of SQLite, MariaDB and Spark from pandas, where whole numbers
    # beside a null become floats.
    if connection.name == "pyspark":
        connection._session.createDataFrame(arrow).createTempView(name)
        return connection.table(name)
    if connection.name == "sqlite":
        table = connection.create_table(name, schema=ibis.schema(arrow.schema))
        holes = ", ".join("?" * arrow.num_columns)
        with connection.begin() as cursor:
            cursor.executemany(
                f'INSERT INTO "{name}" VALUES ({holes})',
                [[_for_sqlite(value) for value in row.values()] for row in arrow.to_pylist()],
            )
        return table
    if connection.name == "mysql":
        connection.create_table(name, schema=ibis.schema(arrow.schema))
        holes = ", ".join(["%s"] * arrow.num_columns)
        with connection.begin() as cursor:
            cursor.executemany(
                f"INSERT INTO `{name}` VALUES ({holes})",
                [tuple(row.values()) for row in arrow.to_pylist()],
            )
        return connection.table(
            name
        )  # with the types that a user finds: there is no boolean, for one
    return connection.create_table(name, arrow)


def _for_sqlite(value: Any) -> Any:
    """SQLite has no dates and times: Ibis reads them from text."""
    return str(value) if isinstance(value, datetime.date) else value


def _drop(connection: BaseBackend, name: str) -> None:
    if connection.name == "pyspark":
        connection._session.catalog.dropTempView(name)
    else:
        connection.drop_table(name, force=True)


@pytest.fixture
def left_behind(connection: BaseBackend) -> Callable[..., list[str]]:
    """Lists the tables and views that a connection has, temporary ones too, beside those whose
    names begin as `given`: those of `load`, unless told otherwise.
    """

    def left_behind(
        given: tuple[str, ...] = ("ibis_privmax_test", "ibis_pyarrow_memtable"),
    ) -> list[str]:
        return sorted(name for name in _tables(connection) if not name.startswith(given))

    return left_behind


def _tables(connection: BaseBackend) -> list[str]:
    """All tables and views of a connection, by the catalog of its engine where Ibis leaves some
    out.
    """
    match connection.name:
        case "sqlite":
            query = "SELECT name FROM sqlite_temp_master UNION ALL SELECT name FROM sqlite_master"
        case "postgres":
            query = (
                "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
                "WHERE relkind IN ('r', 'v') AND nspname NOT IN ('pg_catalog', "
                "'information_schema')"
            )
        case "duckdb":
            query = "SELECT table_name FROM information_schema.tables"
        case "mysql":  # it lists no temporary tables, but counts them
            with connection.begin() as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Com_%_temporary_table'")
                told = {name: int(number) for name, number in cursor.fetchall()}
            left = told["Com_create_temporary_table"] - told["Com_drop_temporary_table"]
            return ["temporary"] * left
        case "pyspark":
            return [table.name for table in connection._session.catalog.listTables()]
        case _:
            return list(connection.list_tables())
    return [name for (name,) in connection.con.execute(query).fetchall()]


# PostgreSQL


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL database: PRIVMAX_TEST_POSTGRES, or one on a server that is started
    for this worker.
    """
    if url := os.environ.get("PRIVMAX_TEST_POSTGRES"):
        yield url
    else:
        with servers.Postgres(settings=("fsync=off", "max_connections=20")) as server:
            yield server.url.replace(f":{servers.PASSWORD}@", "@")


@pytest.fixture
def ledger_url(postgres: str) -> Iterator[str]:
    """The URL of a new, empty database."""
    name = ibis.util.gen_name("privmax_test_ledger")
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name))
        )
        try:
            yield urlunsplit(urlsplit(postgres)._replace(path=f"/{name}"))
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_icu(postgres: str) -> Iterator[str]:
    """The URL of another database on the same server, whose collation is not C but Unicode's."""
    name = ibis.util.gen_name("privmax_test_icu")
    create = sql.SQL(
        "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu "
        "ICU_LOCALE 'und'"
    )
    with psycopg.connect(postgres, autocommit=True) as server:
        if server.info.server_version < 150000:
            pytest.fail(
                "a database with an ICU collation needs PostgreSQL 15 or later", pytrace=False
            )
        server.execute(create.format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(postgres)._replace(path=f"/{name}"))
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def pgbouncer(postgres: str) -> Iterator[str]:
    """The URL of the same database through PgBouncer, which lends a connection to the server for
    one transaction only.

    There are fewer connections than clients: what a client leaves in a session, another finds
    there.
    """
    program = servers.program("pgbouncer", "PgBouncer", "apt-get install pgbouncer")
    owner = servers.owner("postgres", "PgBouncer")

    def through(port: int) -> str:
        return f"postgresql://privmax@127.0.0.1:{port}/postgres"

    with servers.home(owner) as home:

        def launch(port: int) -> subprocess.Popen[bytes]:
            (home / "pgbouncer.ini").write_text(
                _pgbouncer_settings(postgres, port), encoding="utf-8"
            )
            return servers.launch([program, "pgbouncer.ini"], home, owner, signal.SIGKILL)

        server, port = servers.serve(
            launch, lambda port: servers.connects(through(port)), home, "PgBouncer"
        )
        try:
            yield through(port)
        finally:
            servers.stop(
                server, signal.SIGKILL
            )  # it keeps nothing, and what it does at other signals varies by version


def _pgbouncer_settings(url: str, port: int) -> str:
    target = conninfo_to_dict(url)
    words = []
    for name in ("host", "port", "dbname", "user", "password"):
        if name in target:
            value = str(target[name]).replace("'", "''")
            words.append(f"{name}='{value}'")
    return f"""
[databases]
postgres = {" ".join(words)}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
"""


# MariaDB


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The URL of a database on a MariaDB started for this worker, set up as Debian does: case does
    not count.
    """
    if importlib.util.find_spec("MySQLdb") is None:
        raise servers.Missing(
            "mysqlclient",
            "apt-get install libmariadb-dev pkg-config; ./dev then adds it to the environment",
        )
    remedy = "apt-get install mariadb-server"
    server = servers.program("mariadbd", "MariaDB's server", remedy)
    install = servers.program("mariadb-install-db", "MariaDB's server", remedy)
    owner = servers.owner("mysql", "MariaDB")
    with servers.home(owner) as home:
        places = [f"--datadir={home / 'data'}", f"--tmpdir={home}"]
        servers.run(
            [install, "--no-defaults", *places, "--skip-test-db", "--skip-name-resolve"],
            home,
            owner,
        )
        (home / "init.sql").write_text(MARIADB_START, encoding="utf-8")

        def launch(port: int) -> subprocess.Popen[bytes]:
            return servers.launch(
                [server, "--no-defaults", *places, *MARIADB_SETTINGS, f"--port={port}"],
                home,
                owner,
                signal.SIGTERM,
            )

        process, port = servers.serve(launch, _mariadb_answers, home, "MariaDB")
        try:
            yield _mariadb_url(port)
        finally:
            servers.stop(process, signal.SIGTERM)


MARIADB_SETTINGS = [
    "--init-file=../init.sql",  # as seen from the data
    "--bind-address=127.0.0.1",
    "--socket=mariadb.sock",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=0",
]

MARIADB_START = """\
CREATE DATABASE IF NOT EXISTS privmax;
CREATE USER IF NOT EXISTS privmax@127.0.0.1;
GRANT ALL ON *.* TO privmax@127.0.0.1;
INSERT IGNORE INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (1, 'N');
INSERT IGNORE INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('UTC', 1);
INSERT IGNORE INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id) VALUES (1, 0);
"""
"""A new server knows no time zone by its name, and Ibis asks for UTC."""


def _mariadb_url(port: int) -> str:
    return f"mysql://privmax@127.0.0.1:{port}/privmax"


def _mariadb_answers(port: int) -> bool:
    import MySQLdb

    try:
        MySQLdb.connect(host="127.0.0.1", port=port, user="privmax", database="privmax").close()
    except MySQLdb.OperationalError:
        return False
    return True


# Spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small Spark in one process of its own."""
    servers.require_java()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in servers.spark_environment(servers.spark_home()).items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2]")
        for name, value in servers.spark_settings(tmp_path_factory.mktemp("spark")).items():
            builder = builder.config(name, value)
        with warnings.catch_warnings():
            # From Python 3.12 on: pyspark forks to start Java, and pytest-xdist has threads.
            warnings.filterwarnings(
                "ignore", "This process .* is multi-threaded", DeprecationWarning
            )
            session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture
def on_cluster(tmp_path: Path) -> Callable[[Callable[[SparkSession], Any]], Any]:
    """Calls a function of a test file with the session of a cluster: two executors, each a process
    of its own.

    The function runs in another process, which loads its file anew: it must stand at the top level
    of the file, and what it returns must survive JSON.
    """
    servers.require_java()
    home = (
        tmp_path / "home"
    )  # the cluster writes to a folder of its home, so it does not get the installed one
    home.mkdir()
    for entry in servers.spark_home().iterdir():
        (home / entry.name).symlink_to(entry)

    def on_cluster(function: Callable[[SparkSession], Any]) -> Any:
        answer = tmp_path / "answer.json"
        settings = {**servers.spark_settings(tmp_path), **CLUSTER}
        run = subprocess.run(
            [
                sys.executable,
                HERE / "local_cluster.py",
                inspect.getfile(function),
                function.__name__,
                answer,
            ],
            input=json.dumps(settings),
            env={**os.environ, **servers.spark_environment(home)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=10 * servers.PATIENCE,
        )
        if run.returncode:
            pytest.fail(f"{function.__name__} failed on the cluster:\n{run.stderr}", pytrace=False)
        return json.loads(answer.read_text(encoding="utf-8"))

    return on_cluster


CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",  # executors, cores of each, MiB of each
    "spark.executor.memory": "1g",
    # Nothing runs before both executors are there; Spark knows to wait for them from the number of
    # cores.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{servers.PATIENCE}s",
}
