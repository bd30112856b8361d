"""Progress, on standard error and on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Say what is being done while it is. rich is loaded here and not with the command, whose help
    is quicker so.
    """
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield
