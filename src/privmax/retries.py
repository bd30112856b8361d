"""Which failures pass: nobody answered, not in time, or somebody else had a lock.

Decided by the kind of an error and its code, which say nothing of any row. Where a driver has one
kind for everything it is decided by its words, which are not shown.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator


def passes_later(error: BaseException) -> bool:
    """Whether what failed may succeed if it is tried again as it stands.

    Examples:
        >>> passes_later(ConnectionRefusedError()), passes_later(FileNotFoundError())
        (True, False)
    """
    return any(map(_passes, _chain(error)))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what is behind it; none is behind itself, so this ends."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _passes(error: BaseException) -> bool:
    name, package = type(error).__name__, type(error).__module__.partition(".")[0]
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    if isinstance(error, ConnectionError | TimeoutError) or name in _NAMES:
        return True
    if package in ("psycopg", "psycopg2"):
        return _passes_postgres(error, getattr(error, "sqlstate", None))
    if package == "MySQLdb":
        return bool(error.args) and error.args[0] in _MYSQL
    if package in ("_duckdb", "duckdb"):  # another process writes to the file
        return name == "IOException" and "lock" in str(error)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE


_NAMES = {"Py4JNetworkError", "ServiceUnavailable", "ConnectTimeout", "PoolTimeout"}
"""Names of errors of Spark and of servers that are asked over HTTP."""

_MYSQL = {1040, 1203, 1205, 1213, 2002, 2003, 2006, 2013, 4031}
"""Too many connections, waiting for a lock, deadlock, no server, server gone."""

_SQLITE = {5, 6}
"""Busy, locked."""

_POSTGRES = ("08", "40", "53", "57", "55P03", "25P03", "25P04")
"""How states begin: no connection, a conflict with another transaction, no resources, stopped by an
operator or a time limit; a lock that was not to be had, and sessions that waited too long.
"""

_FULL = "53100"
"""The disk of the server is full: that takes somebody who makes room."""


def _passes_postgres(error: BaseException, state: str | None) -> bool:
    if state is not None:
        return state.startswith(_POSTGRES) and state != _FULL
    if type(error).__name__ != "OperationalError":
        return False
    words = str(error).lower()  # there is no state where no session began, or it was lost
    return any(cause in words for cause in _WORDS)


_WORDS = (
    "refused", "timeout", "timed out", "closed", "reset by peer", "broken pipe", "unreachable",
    "is lost", "no such file or directory", "temporary failure", "starting up", "shutting down",
    "recovery mode", "too many", "connection slots",
)  # fmt: skip
"""What libpq, in whose own language it is unless a program asks for another, says where nobody
answers; not a wrong name, password, host or port.
"""
