"""The engines, one file per engine; `base.py` says what all of them answer.

A file here that has an `ENGINE` is all that an engine needs.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any

from privmax.sources.asking import ask
from privmax.sources.engines.base import Engine


@cache
def all_engines() -> tuple[type[Engine], ...]:
    """Return every engine that has a file here, in the order of the files.

    No engine is imported.
    """
    names = sorted(module.name for module in iter_modules(__path__) if module.name != "base")
    return tuple(import_module(f"{__name__}.{name}").ENGINE for name in names)


def engine_of(table: Any) -> Engine:
    """Return the engine that holds a table."""
    backend = ask("the counting", table.get_backend)
    matches = (engine for engine in all_engines() if engine.name == backend.name)
    return next(matches, Engine).of(backend)


def embedded_engine() -> type[Engine]:
    """Return the engine that reads files and frames for us."""
    [embedded] = (engine for engine in all_engines() if engine.reads_files)
    return embedded


def file_engines() -> list[type[Engine]]:
    """Return the engines whose databases are files; last the one that reads other files, too."""
    engines = [engine for engine in all_engines() if engine.endings]
    return sorted(engines, key=attrgetter("reads_files"))


def owner_of(data: object) -> type[Engine] | None:
    """Return the engine whose own library an object is of; None: it is of none."""
    return next((engine for engine in all_engines() if engine.owns(data)), None)


def is_read_once(data: object) -> bool:
    """Return whether data is an object of an engine that is gone when it has been read."""
    owner = owner_of(data)
    return owner is not None and owner.streams_objects
