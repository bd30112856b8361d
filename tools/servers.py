"""Servers of one's own on loopback, of which nothing is left: what tests and benchmarks both need.

Neither may import the other, so it stands here. tests/conftest.py and lab/benchmarks/__init__.py
put this folder on Python's path.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

PATIENCE = 120
"""Seconds a server may take to start or stop."""

PASSWORD = "hunter2"
"""In the URL of a ledger only to be kept secret: the server asks for none."""


class Missing(Exception):
    """A program that is not installed, and how to get it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} is not installed: {remedy}")


# Any server


def program(name: str, what: str, remedy: str) -> str:
    """Its path. Debian keeps servers where only root looks for programs."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Missing(what, remedy)
    return found


def owner(user: str, server: str) -> dict[str, Any]:
    """As whom to run a server, as arguments of subprocess.

    They refuse root; anyone else runs them themselves.
    """
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise Missing(
            f"a user {user} ({server} refuses to run as root)",
            "install the server's package, or run as a user",
        ) from None
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextmanager
def home(owner: Mapping[str, Any], above: Path | None = None) -> Iterator[Path]:
    """A new folder that belongs to a server's user."""
    made = Path(tempfile.mkdtemp(prefix="privmax-server-", dir=above))
    try:
        if owner:
            os.chown(made, owner["user"], owner["group"])
        yield made
    finally:
        shutil.rmtree(made)


def run(command: Sequence[str], home: Path, owner: Mapping[str, Any]) -> None:
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, **owner)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def launch(
    command: Sequence[str], home: Path, owner: Mapping[str, Any], last: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start a server in its home, where it writes `log`.

    It gets the signal `last` even if this process is killed.
    """
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", last.name.removeprefix("SIG"), *command]
    with (home / "log").open("ab") as output:
        return subprocess.Popen(
            command, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **owner
        )


def serve(
    launch: Callable[[int], subprocess.Popen[bytes]],
    ask: Callable[[int], bool],
    home: Path,
    name: str,
) -> tuple[subprocess.Popen[bytes], int]:
    """Launch a server on a free port and wait until it answers there."""
    for _ in range(5):  # between finding a port and using it, someone else may take it
        port = free_port()
        server = launch(port)
        if answers(server, partial(ask, port)):
            return server, port
        stop(server, signal.SIGKILL)
    raise RuntimeError(f"{name} did not start:\n{(home / 'log').read_text(errors='replace')}")


def answers(server: subprocess.Popen[bytes], ask: Callable[[], bool]) -> bool:
    """Wait until `ask` succeeds. False if the server ends before that."""
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        if ask():
            return server.poll() is None  # otherwise it was another server that answered
        time.sleep(0.05)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def stop(server: subprocess.Popen[bytes], how: signal.Signals) -> None:
    server.send_signal(how)
    try:
        server.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


# PostgreSQL


class Postgres:
    """A PostgreSQL that can be restarted and killed; it puts commits on the disk unless told not
    to.

    Args:
        folder: Where its own folder is made; the server's user must be able to enter it.
        settings: What differs from a server as it is delivered.
        of: Another server, which this one follows as its standby.
    """

    def __init__(
        self,
        folder: Path | None = None,
        settings: Sequence[str] = ("max_connections=40",),
        of: Postgres | None = None,
    ) -> None:
        self._programs = _postgres_programs()
        self._owner = owner("postgres", "PostgreSQL")
        self._made = home(self._owner, folder)
        self._home = self._made.__enter__()
        local = ("listen_addresses=127.0.0.1", "unix_socket_directories=")
        self._settings = [word for one in (*local, *settings) for word in ("-c", one)]
        try:
            initialize = "--username=privmax --auth=trust --encoding=UTF8 --locale=C.UTF-8"
            command = [str(self._programs / "initdb"), "--pgdata=data", "--no-sync"]
            if of is not None:
                initialize = f"--write-recovery-conf --checkpoint=fast --dbname={of.url}"
                command = [str(self._programs / "pg_basebackup"), "--pgdata=data", "--no-sync"]
            run([*command, *initialize.split()], self._home, self._owner)
            self._server, self.port = serve(self._launch, _connects, self._home, "PostgreSQL")
        except BaseException:
            self._made.__exit__(None, None, None)
            raise

    @property
    def url(self) -> str:
        return _postgres_url(self.port)

    def start(self) -> None:
        """Start it if it does not run, at the same address as ever."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._server.poll() is not None:
                self._server = self._launch(self.port)
            if answers(self._server, lambda: _connects(self.port)):
                return
            time.sleep(0.05)  # what is left of a killed server must end first
        log = (self._home / "log").read_text(errors="replace")
        raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")

    def restart(self) -> None:
        """As an administrator does: open transactions are rolled back."""
        stop(self._server, signal.SIGINT)
        self.start()

    def kill(self) -> None:
        """All of its processes at once, and start it again."""
        self.end()
        self.start()

    def end(self) -> None:
        """Kill all of its processes at once."""
        self._signal(signal.SIGKILL)
        self._server.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all of its processes for as long as the block takes."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def change(self, setting: str) -> None:
        """Change a setting, such as "name = 'value'", without a restart."""
        self._ask(f"ALTER SYSTEM SET {setting}", "SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Let a standby take over."""
        self._ask("SELECT pg_promote()")

    def save(self) -> None:
        """Keep a copy of all data as they are now; the server is restarted."""
        self._copy("data", "saved")

    def restore(self) -> None:
        """Put the copy in place of the data; the server is restarted."""
        self._copy("saved", "data")

    def _copy(self, old: str, new: str) -> None:
        stop(self._server, signal.SIGINT)
        shutil.rmtree(self._home / new, ignore_errors=True)
        run(["cp", "-a", old, new], self._home, self._owner)
        self.start()

    def _ask(self, *queries: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            for query in queries:
                connection.execute(query.encode())

    def _signal(self, how: signal.Signals) -> None:
        """Send a signal to all of its processes."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._server.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        for process in [self._server.pid, *map(int, listed.stdout.split())]:
            with suppress(ProcessLookupError):
                os.kill(process, how)

    def close(self) -> None:
        stop(self._server, signal.SIGINT)  # its fast shutdown: open connections are closed
        self._made.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        command = [str(self._programs / "postgres"), "-D", "data", "-p", str(port)]
        return launch([*command, *self._settings], self._home, self._owner, signal.SIGINT)


def _postgres_programs() -> Path:
    """The folder that holds initdb and postgres. Debian has one per version, none on PATH."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    if debian:
        return debian[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).parent
    raise Missing(
        "PostgreSQL's server",
        "apt-get install postgresql, or PRIVMAX_TEST_POSTGRES=postgresql://user@host/database for "
        "one that runs",
    )


def _postgres_url(port: int) -> str:
    return f"postgresql://privmax:{PASSWORD}@127.0.0.1:{port}/postgres"


def _connects(port: int) -> bool:
    return connects(_postgres_url(port))


def connects(url: str) -> bool:
    """Whether PostgreSQL, or what stands before it, answers."""
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


# Spark


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def spark_settings(folder: Path) -> dict[str, str]:
    """Of a small Spark that writes into a folder only."""
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


def spark_environment(home: Path) -> dict[str, str]:
    return {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def require_java() -> None:
    """Spark 4 needs Java 17. Without it pyspark only says that the gateway exited."""
    remedy = "apt-get install default-jre-headless, or set JAVA_HOME"
    java = (
        Path(os.environ["JAVA_HOME"], "bin", "java")
        if "JAVA_HOME" in os.environ
        else shutil.which("java")
    )
    if java is None or shutil.which(java) is None:
        raise Missing("Java 17 or later, which Spark runs on,", remedy)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < 17:
        raise Missing(
            "Java 17 or later, which Spark runs on,",
            f"{java} is {said.partition(chr(10))[0]}; {remedy}",
        )
