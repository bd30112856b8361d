"""Temporary failures: no answer, not in time, or a lock that another process had.

Decided by the kind of an error and its code, which say nothing of any row. Where a driver has one
kind for everything it is decided by its words, which are not shown. What the errors of a driver
mean, its engine knows (`sources/engines/`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator


def is_transient(error: BaseException, *judges: Callable[[BaseException], bool]) -> bool:
    """Return whether what failed may succeed if it is tried again as it stands.

    Args:
        error: What was raised.
        judges: Each knows the errors of a driver, and is asked about the error and all behind it.
            A judge that fails, as at an error that cannot be written as text, says no.

    Examples:
        >>> is_transient(ConnectionRefusedError()), is_transient(FileNotFoundError())
        (True, False)
        >>> is_transient(KeyError("busy"), lambda error: "busy" in error.args)
        True
    """
    return any(_ask(judge, one) for one in chain(error) for judge in (_passes, *judges))


def _ask(judge: Callable[[BaseException], bool], error: BaseException) -> bool:
    try:
        return judge(error)
    except Exception:  # whatever an error of somebody's own class raises when it is looked at
        return False


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all that it was raised from or while handling, each once.

    Examples:
        >>> error = KeyError()
        >>> error.__cause__ = error
        >>> len(list(chain(error)))
        1
    """
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += [one.__context__, one.__cause__]


def _passes(error: BaseException) -> bool:
    socket = sys.modules.get("socket")  # its errors come from it alone
    if socket is not None and isinstance(error, socket.gaierror):
        return bool(error.errno == socket.EAI_AGAIN)
    return isinstance(error, ConnectionError | TimeoutError) or type(error).__name__ in _NAMES


_NAMES = {"ServiceUnavailable", "ConnectTimeout", "PoolTimeout"}
"""Names of errors of servers that are asked over HTTP, and of pools of connections."""
