"""Asks engines: one thread at a time, quietly, and with errors that quote nothing of the data."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock, get_ident
from typing import Any, TypeVar

from privmax import retries
from privmax.errors import (
    EngineError,
    ParameterError,
    UnsupportedError,
    explain_install,
)

T = TypeVar("T")


def import_ibis() -> Any:
    """Ibis, or the error that says how to install it."""
    try:
        import ibis
    except ImportError:
        raise _not_installed() from None
    return ibis


def check_ibis() -> None:
    """Refuse tables and files where Ibis is not installed. It is not imported."""
    if find_spec("ibis") is None:
        raise _not_installed()


def _not_installed() -> ParameterError:
    return ParameterError(
        "data",
        "a table",
        "tables and files need Ibis, which is not installed",
        explain_install("sql"),
    )


LACKING = (
    "OperationNotDefinedError",
    "UnsupportedOperationError",
    "UnsupportedBackendType",
    "NotImplementedError",
)
"""The errors of Ibis where an engine lacks an operation."""


NO_ROOM = (*LACKING, "UnsupportedArgumentError", "ReadOnlySqlTransaction", "InsufficientPrivilege")
"""The errors of an engine without temporary tables, or without any for this user: it then counts at
every question.
"""


STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""The exceptions that end a program. All others are failures: polars is written in Rust, and its
faults may be no `Exception` in Python.
"""


def ask(question: str, answer: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return what the engine answers when `answer` is called with the arguments.

    Its own message is not passed on, since it may quote the data.
    """
    try:
        with silence():
            return answer(*arguments, **options)
    except (ParameterError, EngineError, *STOPS):
        raise
    except BaseException as error:
        refused = failure(question, error)
    # out here, where the engine's own error is no longer attached to it as its context
    raise refused


def failure(question: str, error: BaseException) -> BaseException:
    """Return what to raise instead of an engine's own error."""
    if any(isinstance(one, KeyboardInterrupt) for one in retries.chain(error)):
        return (
            KeyboardInterrupt()
        )  # DuckDB and Spark say that they were interrupted, and not that it was by Ctrl-C
    name = type(error).__name__
    if name in LACKING:
        return UnsupportedError(
            f"This engine does not offer what {question} needs ({_operation(error) or name})."
        )
    return EngineError(
        f"The engine failed at {question} ({name}), and nothing was released. Its own log says "
        f"more.",
        retry=is_transient(error),
    )


def is_transient(error: BaseException) -> bool:
    """Return whether what failed in some engine may succeed if it is tried again as it stands."""
    from privmax.sources.engines import all_engines  # whose files need this one

    return retries.is_transient(error, *(engine.is_transient for engine in all_engines()))


def _operation(error: BaseException) -> str | None:
    """Return the operation of Ibis that an error is about.

    Nothing else of its message is passed on.
    """
    import ibis.expr.operations as operations

    return next(
        (word for word in re.findall(r"\b[A-Z]\w+", str(error)) if hasattr(operations, word)), None
    )


def quietly(act: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Clean up, by calling `act` with the arguments.

    An engine that cannot lost its connection, and with it all that was temporary.
    """
    try:
        with silence():
            act(*arguments, **options)
    except STOPS:
        raise
    except BaseException:
        return


@contextmanager
def silence() -> Iterator[None]:
    """Keep Ibis from printing its queries, whatever its options say.

    They contain scores as literals.
    """
    ibis = sys.modules.get("ibis")
    if not hasattr(ibis, "options"):  # it is not imported, or not yet, and prints nothing
        yield
        return
    assert ibis is not None
    with _ALL:
        _VERBOSE.append(ibis.options.verbose if not _VERBOSE else _VERBOSE[0])
        ibis.options.verbose = False
    try:
        yield
    finally:
        with _ALL:
            verbose = _VERBOSE.pop()
            if not _VERBOSE:  # the last of all threads that ask
                ibis.options.verbose = verbose


_VERBOSE: list[bool] = []
"""The value of the option before anyone asked, once for each who asks now."""


_ALL = Lock()


@dataclass(eq=False, repr=False)
class _ConnectionTurn:
    """The turn of one thread with a connection, as often as it likes. Any thread may end it."""

    connection: Any  # as long as it is here, nothing else has its identity
    users: int = 0
    _lock: Any = field(default_factory=Lock)
    _owner: int | None = None
    _depth: int = 0

    def take(self) -> None:
        if self._owner != get_ident():
            self._lock.acquire()
            self._owner = get_ident()
        self._depth += 1

    def give(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


_TURNS: dict[int, _ConnectionTurn] = {}
"""By the identity of a connection; those that someone has or waits for."""


def reserve(connection: Any, stack: ExitStack) -> None:
    """Reserve a connection for this thread until `stack` is closed.

    Drivers mix up the questions of two threads.
    """
    with _ALL:
        turn = _TURNS.setdefault(id(connection), _ConnectionTurn(connection))
        turn.users += 1
    reserved: list[bool] = []
    stack.callback(_leave, turn, reserved)
    turn.take()
    reserved.append(True)


def _leave(turn: _ConnectionTurn, reserved: list[bool]) -> None:
    if reserved:
        turn.give()
    with _ALL:
        turn.users -= 1
        if not turn.users:
            del _TURNS[id(turn.connection)]
