"""Real engines for the tests: what `load` puts into one comes back unchanged.

A test that takes `load` runs once per engine; `@pytest.mark.parametrize("engine", ["spark"],
scope="session")` keeps it on those named. Servers and sessions start when a test first asks for
them, once per worker. Where an engine is not installed its tests are skipped; with
PRIVMAX_TEST_ENGINES=all, as in .ci/run, they fail.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import inspect
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit, urlunsplit

import ibis
import psycopg
import pyarrow as pa
import pyspark
import pytest
from ibis.backends import BaseBackend
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

HERE = Path(__file__).parent

ENGINES = ("duckdb", "polars", "sqlite", "postgres", "postgres-icu", "mariadb", "spark")
"""postgres orders strings by their bytes, postgres-icu by the rules of Unicode, where "a" comes
before "B". Tests may name "mariadb" as well."""

PATIENCE = 120
"""Seconds a server may take to start or stop before the tests give up on it."""


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


@pytest.fixture(scope="session", params=ENGINES)
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
    match engine:
        case "duckdb":
            backend = ibis.duckdb.connect()
        case "polars":
            backend = ibis.polars.connect()
        case "sqlite":
            backend = ibis.sqlite.connect(tmp_path / "engine.sqlite")
        case "postgres":
            backend = ibis.connect(request.getfixturevalue("postgres"))
        case "postgres-icu":
            backend = ibis.connect(request.getfixturevalue("postgres_icu"))
        case "mariadb":
            backend = ibis.connect(request.getfixturevalue("mariadb"))
        case "spark":
            # Its views and settings are its own, the engine is not: disconnecting would stop it for
            # every test.
            yield ibis.pyspark.connect(request.getfixturevalue("spark").newSession())
            return
        case _:
            raise ValueError(f"no engine {engine!r}: choose from {', '.join(ENGINES)}, mariadb")
    yield backend
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


def _missing(what: str, remedy: str) -> NoReturn:
    told = f"{what} is not installed: {remedy}"
    if os.environ.get("PRIVMAX_TEST_ENGINES") == "all":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


# PostgreSQL


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL database: PRIVMAX_TEST_POSTGRES, or one on a server that is started
    for this worker.
    """
    if url := os.environ.get("PRIVMAX_TEST_POSTGRES"):
        yield url
    else:
        with _postgres_server() as url:
            yield url


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


@contextlib.contextmanager
def _postgres_server() -> Iterator[str]:
    """A new server that listens on loopback only; nothing of it is left afterwards."""
    programs = _postgres_programs()
    owner = _owner("postgres", "PostgreSQL")
    with _home(owner) as home:
        _initialize(programs, home, owner)
        server, url = _start(programs, home, owner)
        try:
            yield url
        finally:
            _stop(server, signal.SIGINT)  # its fast shutdown: open connections are closed


def _postgres_programs() -> Path:
    """The folder that holds initdb and postgres. Debian has one per version, none of them on
    PATH.
    """
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    if debian:
        return debian[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).parent
    _missing(
        "PostgreSQL's server",
        "apt-get install postgresql, or PRIVMAX_TEST_POSTGRES=postgresql://user@host/database for "
        "one that runs",
    )


def _initialize(programs: Path, home: Path, owner: Mapping[str, Any]) -> None:
    options = [
        "--username=privmax",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]
    command = [str(programs / "initdb"), "--pgdata=data", *options]
    _run(command, home, owner)


def _start(
    programs: Path, home: Path, owner: Mapping[str, Any]
) -> tuple[subprocess.Popen[bytes], str]:
    settings = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=off",
        "max_connections=20",
    ]
    command = [
        str(programs / "postgres"),
        "-D",
        "data",
        *(word for setting in settings for word in ("-c", setting)),
    ]

    def launch(port: int) -> subprocess.Popen[bytes]:
        return _launch([*command, "-p", str(port)], home, owner, signal.SIGINT)

    server, port = _serve(launch, _postgres_answers, home, "PostgreSQL")
    return server, _postgres_url(port)


def _postgres_url(port: int) -> str:
    return f"postgresql://privmax@127.0.0.1:{port}/postgres"


def _postgres_answers(port: int) -> bool:
    return _connects(_postgres_url(port))


def _connects(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(scope="session")
def pgbouncer(postgres: str) -> Iterator[str]:
    """The URL of the same database through PgBouncer, which lends a connection to the server for
    one transaction only.

    There are fewer connections than clients: what a client leaves in a session, another finds
    there.
    """
    program = _program("pgbouncer") or _missing("PgBouncer", "apt-get install pgbouncer")
    owner = _owner("postgres", "PgBouncer")

    def through(port: int) -> str:
        return f"postgresql://privmax@127.0.0.1:{port}/postgres"

    with _home(owner) as home:

        def launch(port: int) -> subprocess.Popen[bytes]:
            (home / "pgbouncer.ini").write_text(
                _pgbouncer_settings(postgres, port), encoding="utf-8"
            )
            return _launch([program, "pgbouncer.ini"], home, owner, signal.SIGKILL)

        server, port = _serve(launch, lambda port: _connects(through(port)), home, "PgBouncer")
        try:
            yield through(port)
        finally:
            _stop(
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
        _missing(
            "mysqlclient",
            "apt-get install libmariadb-dev pkg-config; ./dev then adds it to the environment",
        )
    remedy = "apt-get install mariadb-server"
    server = _program("mariadbd") or _missing("MariaDB's server", remedy)
    install = _program("mariadb-install-db") or _missing("MariaDB's server", remedy)
    owner = _owner("mysql", "MariaDB")
    with _home(owner) as home:
        places = [f"--datadir={home / 'data'}", f"--tmpdir={home}"]
        _run(
            [install, "--no-defaults", *places, "--skip-test-db", "--skip-name-resolve"],
            home,
            owner,
        )
        (home / "init.sql").write_text(MARIADB_START, encoding="utf-8")

        def launch(port: int) -> subprocess.Popen[bytes]:
            return _launch(
                [server, "--no-defaults", *places, *MARIADB_SETTINGS, f"--port={port}"],
                home,
                owner,
                signal.SIGTERM,
            )

        process, port = _serve(launch, _mariadb_answers, home, "MariaDB")
        try:
            yield _mariadb_url(port)
        finally:
            _stop(process, signal.SIGTERM)


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


# Servers


def _program(name: str) -> str | None:
    """Its path. Debian keeps servers where only root looks for programs."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def _owner(user: str, server: str) -> dict[str, Any]:
    """As whom to run a server, as arguments of subprocess. They refuse root; anyone else runs them
    themselves.
    """
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        _missing(
            f"a user {user} ({server} refuses to run as root)",
            "install the server's package, or run as a user",
        )
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def _home(owner: Mapping[str, Any]) -> Iterator[Path]:
    """A new folder that belongs to a server's user; nothing of it is left afterwards."""
    home = Path(
        tempfile.mkdtemp(prefix="privmax-server-")
    )  # not tmp_path: only this user may enter that
    try:
        if owner:
            os.chown(home, owner["user"], owner["group"])
        yield home
    finally:
        shutil.rmtree(home)


def _run(command: list[str], home: Path, owner: Mapping[str, Any]) -> None:
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, **owner)
    if done.returncode:
        pytest.fail(f"{command[0]} failed:\n{done.stdout}{done.stderr}", pytrace=False)


def _launch(
    command: list[str], home: Path, owner: Mapping[str, Any], last: signal.Signals
) -> subprocess.Popen[bytes]:
    """Starts a server in its home, where it writes `log`. It gets the signal `last` even if this
    process is killed.
    """
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", last.name.removeprefix("SIG"), *command]
    with (home / "log").open("wb") as output:
        return subprocess.Popen(
            command, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **owner
        )


def _serve(
    launch: Callable[[int], subprocess.Popen[bytes]],
    ask: Callable[[int], bool],
    home: Path,
    name: str,
) -> tuple[subprocess.Popen[bytes], int]:
    """Launches a server on a free port and waits until it answers there."""
    for _ in range(5):  # between finding a port and using it, someone else may take it
        port = _free_port()
        server = launch(port)
        if _answers(server, partial(ask, port)):
            return server, port
        _stop(server, signal.SIGKILL)
    pytest.fail(
        f"{name} did not start:\n{(home / 'log').read_text(errors='replace')}", pytrace=False
    )


def _answers(server: subprocess.Popen[bytes], ask: Callable[[], bool]) -> bool:
    """Waits until `ask` succeeds. False if the server ends before that."""
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        if ask():
            return server.poll() is None  # otherwise it was another server that answered
        time.sleep(0.05)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(server: subprocess.Popen[bytes], how: signal.Signals) -> None:
    server.send_signal(how)
    try:
        server.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


# Spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small Spark in one process of its own."""
    _require_java()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _spark_environment(SPARK_HOME).items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2]")
        for name, value in _spark_settings(tmp_path_factory.mktemp("spark")).items():
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
    _require_java()
    home = (
        tmp_path / "home"
    )  # the cluster writes to a folder of its home, so it does not get the installed one
    home.mkdir()
    for entry in SPARK_HOME.iterdir():
        (home / entry.name).symlink_to(entry)

    def on_cluster(function: Callable[[SparkSession], Any]) -> Any:
        answer = tmp_path / "answer.json"
        settings = {**_spark_settings(tmp_path), **CLUSTER}
        run = subprocess.run(
            [
                sys.executable,
                HERE / "local_cluster.py",
                inspect.getfile(function),
                function.__name__,
                answer,
            ],
            input=json.dumps(settings),
            env={**os.environ, **_spark_environment(home)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=10 * PATIENCE,
        )
        if run.returncode:
            pytest.fail(f"{function.__name__} failed on the cluster:\n{run.stderr}", pytrace=False)
        return json.loads(answer.read_text(encoding="utf-8"))

    return on_cluster


SPARK_HOME = Path(pyspark.__file__).parent

CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",  # executors, cores of each, MiB of each
    "spark.executor.memory": "1g",
    # Nothing runs before both executors are there; Spark knows to wait for them from the number of
    # cores.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE}s",
}


def _spark_settings(folder: Path) -> dict[str, str]:
    return {
        "spark.app.name": "privmax tests",
        "spark.driver.bindAddress": "127.0.0.1",
        # sooner ready, for small tables
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "scratch"),
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _spark_environment(home: Path) -> dict[str, str]:
    return {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _require_java() -> None:
    """Spark 4 needs Java 17. Without it pyspark only says that the gateway exited."""
    remedy = "apt-get install default-jre-headless, or set JAVA_HOME"
    java = (
        Path(os.environ["JAVA_HOME"], "bin", "java")
        if "JAVA_HOME" in os.environ
        else shutil.which("java")
    )
    if java is None or shutil.which(java) is None:
        _missing("Java 17 or later, which Spark runs on,", remedy)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < 17:
        _missing(
            "Java 17 or later, which Spark runs on,",
            f"{java} is {said.partition(chr(10))[0]}; {remedy}",
        )
