"""PostgreSQL and Spark for the benchmarks of engines and ledgers, started as the tests start them.

The servers are those of tests/engines/conftest.py; what a benchmark needs beyond it is set here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Self

WORK_MEMORY = "256MB"
"""PostgreSQL's work_mem. Everything else is as the server is delivered, its two parallel workers
too.
"""

DRIVER_MEMORY = "6g"

SPARK = {"spark.driver.memory": DRIVER_MEMORY, "spark.sql.shuffle.partitions": "8"}

_TESTS = Path(__file__).parents[1] / "tests"


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on a new server on loopback, of which nothing is left afterwards."""
    import psycopg

    with of_tests()._postgres_server() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE CURRENT_USER SET work_mem = '{WORK_MEMORY}'")
        yield str(url)


def spark(folder: Path) -> Any:
    """A session in this process with two cores; stop() it."""
    from pyspark.sql import SparkSession

    tests = of_tests()
    tests._require_java()
    os.environ.update(tests._spark_environment(tests.SPARK_HOME))
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**tests._spark_settings(folder), **SPARK}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


PASSWORD = "hunter2"
"""In the URL of a ledger only to be kept secret: the server asks for none."""


class Postgres:
    """A server on loopback that puts commits on the disk, and that can be restarted and killed.
    Nothing of it is left.

    home   a folder for its files, which the server's user may enter
    """

    def __init__(self, home: Path | None = None) -> None:
        self._tests = of_tests()
        self._programs = self._tests._postgres_programs()
        self._owner = self._tests._owner("postgres", "PostgreSQL")
        self._home = Path(tempfile.mkdtemp(prefix="privmax-postgres-", dir=home))
        self._port: int = self._tests._free_port()
        self._server: subprocess.Popen[bytes] | None = None
        try:
            if self._owner:
                os.chown(self._home, self._owner["user"], self._owner["group"])
            self._tests._initialize(self._programs, self._home, self._owner)
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return f"postgresql://privmax:{PASSWORD}@127.0.0.1:{self._port}/postgres"

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        """Start it if it does not run, at the same address as ever."""
        deadline = time.monotonic() + self._tests.PATIENCE
        while time.monotonic() < deadline:
            if self._server is None or self._server.poll() is not None:
                self._server = self._started()
            if self._tests._answers(self._server, lambda: self._tests._connects(self.url)):
                return
            time.sleep(0.05)  # what is left of a killed server must end first
        raise SystemExit(
            f"PostgreSQL did not start:\n{(self._home / 'log').read_text(errors='replace')[-2000:]}"
        )

    def restart(self) -> None:
        """As an administrator does: open transactions are rolled back."""
        if self._server is not None:
            self._tests._stop(self._server, signal.SIGINT)
        self.start()

    def kill(self) -> None:
        """All of its processes at once, and start it again."""
        if self._server is not None:
            everyone = [self._server.pid, *_children(self._server.pid)]
            for process in everyone:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._server.wait()
        self.start()

    def close(self) -> None:
        if self._server is not None:
            self._tests._stop(self._server, signal.SIGINT)
        shutil.rmtree(self._home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=40"]
        command = [str(self._programs / "postgres"), "-D", "data", "-p", str(self._port)]
        command += [word for setting in settings for word in ("-c", setting)]
        if shutil.which("setpriv"):
            command = [
                "setpriv",
                "--pdeathsig",
                "INT",
                *command,
            ]  # the server goes even if this process is killed
        with (self._home / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._owner,
            )


def _children(parent: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def of_tests(file: str = "engines/conftest.py") -> ModuleType:
    """A module of the tests, which are in no package."""
    name = f"privmax_test_{Path(file).with_suffix('').as_posix().replace('/', '_')}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _TESTS / file)
        if spec is None or spec.loader is None:
            raise SystemExit(f"tests/{file}, which a benchmark needs, is not there")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
