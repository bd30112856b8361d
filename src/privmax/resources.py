"""The limits of DuckDB on this machine: memory, and a folder for what does not fit into it.

By default that folder is a new one among the system's temporary files, which only this user can
open, and which is removed when the data has been read. DuckDB's own default would be `.tmp` where
the program runs, or beside the database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from privmax.errors import ParameterError

MEMORY, FOLDER = "PRIVMAX_MEMORY", "PRIVMAX_TEMPORARY"
"""Environment variables that say the same."""

_SIZE = re.compile(r"[1-9][0-9]*(\.[0-9]+)?\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


@dataclass(frozen=True)
class Resources:
    """The limits of DuckDB.

    Args:
        memory: Such as "4GB"; None: four fifths of the machine's.
        folder: In which a private folder is made; None: the system's for temporary files.
        watch: Called with every connection that is opened.
    """

    memory: str | None = None
    folder: str | None = None
    watch: Callable[[Any], None] | None = None

    @classmethod
    def of(
        cls,
        memory: str | None = None,
        folder: str | None = None,
        watch: Callable[[Any], None] | None = None,
    ) -> Resources:
        """Return what options say, or else the environment.

        Raises:
            ParameterError: It is no amount of memory, or no folder.
        """
        memory = memory or os.environ.get(MEMORY) or None
        folder = folder or os.environ.get(FOLDER) or None
        if memory is not None and not _SIZE.fullmatch(memory):
            raise ParameterError(
                "memory", memory, "it must be a number and KB, MB, GB or TB", "For example 4GB."
            )
        if folder is not None and not os.path.isdir(folder):
            raise ParameterError(
                "temporary", folder, "there is no such folder", "Make it, or name another."
            )
        return cls(memory, folder, watch)


CHOSEN: ContextVar[Resources | None] = ContextVar("privmax_resources", default=None)
"""The choice of `use`; None: the environment decides."""


@contextmanager
def use(resources: Resources) -> Iterator[None]:
    """Have all that is opened within use these."""
    token = CHOSEN.set(resources)
    try:
        yield
    finally:
        CHOSEN.reset(token)
