"""Tables of databases: which one a name means, and how it is opened.

Errors say what is missing where it cannot be opened.

A database is opened to be read only, where it is a file. No message quotes a URL, in which a
password may stand, nor what a driver says, which may quote it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    PrivmaxError,
    explain_install,
)
from privmax.sources.asking import is_transient, silence
from privmax.sources.conditions import suggest
from privmax.sources.engines import all_engines, file_engines
from privmax.sources.engines.base import Engine
from privmax.sources.places import (
    SEVERAL_TABLES,
    database_path,
    find_files,
    is_database,
    refuse_remote,
    refuse_table,
)


def open_database(data: object, table: str | None, stack: ExitStack) -> object:
    """Return a table of a database, as an Ibis table, until `stack` is closed.

    Other data as it is.
    """
    is_path = isinstance(data, (str, os.PathLike))
    text = os.fspath(data) if isinstance(data, (str, os.PathLike)) else ""
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if not is_path or not is_database(text):
        refuse_table(data, table)
        return data
    return open_table(text, table, stack)


def open_table(place: str, table: str | None, stack: ExitStack) -> Any:
    """Return a table of the database at a URL, or in a file."""
    refuse_remote(place)
    if table is None:
        names: Sequence[str] | None = None
        with suppress(EngineError):  # a table is wanted, whether the server is there or not
            names = _list(_connect(place, stack))
        raise ParameterError(
            "table",
            None,
            SEVERAL_TABLES,
            "Name one of them. " + ("" if names is None else _there_are(names)),
        )
    engine = _connect(place, stack)
    with _explain_errors(engine, "The tables of the database cannot be read"):
        opened = _find(engine, table)
        if opened is not None:
            return opened
        raise ParameterError(
            "table",
            table,
            "the database has no such table, or this user may not read it",
            _there_are([*_list(engine), *_list_elsewhere(engine)], table),
        )


def _find(engine: Engine, table: str) -> Any:
    """Find the table that a name means; None where there is none.

    It is one that is called so, with all its dots; else the one behind the last dot, in the schema
    before it.
    """
    if table in _list(engine):
        return engine.find_table(table)
    schema, dot, name = table.rpartition(".")
    if not dot:
        with suppress(Exception):  # a view, or what the catalog spells otherwise
            return engine.find_table(table)
        return None
    catalog, dot, inner = schema.rpartition(".")
    for database in [schema, *([(catalog, inner)] if dot else [])]:
        with suppress(Exception):
            return engine.find_table(name, database)
    return None


def _list(engine: Engine) -> list[str]:
    """Return the tables of the usual schema; not our own."""
    with silence():
        names: Sequence[str] = engine.backend.list_tables()
    return [name for name in names if not name.startswith(("ibis_", "privmax_"))]


def _list_elsewhere(engine: Engine) -> list[str]:
    """List the tables of other schemas, each with its schema, as far as the database does."""
    connection = engine.backend
    tables: list[str] = []
    with silence(), suppress(Exception):  # not every engine has schemas
        usual = getattr(connection, "current_database", None)
        for schema in connection.list_databases()[:MOST_SCHEMAS]:
            if schema != usual and not schema.startswith(engine.system_schemas):
                names = connection.list_tables(database=schema)
                tables += [f"{schema}.{name}" for name in names if not name.startswith("privmax_")]
    return tables


MOST_SCHEMAS = 50
"""The most schemas that are searched for a table that is not found."""


def _there_are(names: Sequence[str], name: str = "") -> str:
    if not names:
        return "The database has no tables, or none that this user may see."
    return suggest(name, sorted(names))


def _connect(place: str, stack: ExitStack) -> Engine:
    """Return the engine of a database, connected until `stack` is closed."""
    scheme = _split(place).scheme if "://" in place else ""
    by_scheme = {one: engine for engine in all_engines() for one in engine.schemes}
    file = _file_of(place, by_scheme.get(scheme))
    engine = by_scheme.get(scheme) if file is None else _maker_of(file)
    if engine is None:
        raise DataError(
            "No database has a URL that begins so. " + suggest(scheme.lower(), sorted(by_scheme))
        )
    _check_driver(engine, engine.schemes.get(scheme, engine.title))
    with _explain_errors(
        engine,
        "The database cannot be opened",
        "Is the URL right, is the server running, and are user and password known to it?",
    ):
        with warnings.catch_warnings():
            # of MySQL, whose time zone is set before anything is counted
            warnings.simplefilter("ignore")
            backend = engine.open_url(place) if file is None else engine.open_file(file, stack)
        stack.callback(_disconnect, backend)
        return engine(backend)


def _split(place: str) -> SplitResult:
    try:
        return urlsplit(place)
    except ValueError:  # which quotes a part of it
        pass
    raise DataError(
        "The URL of the database cannot be read. Write an IPv6 address in brackets, and % codes "
        "for brackets and other signs in a name or a password."
    )


def _file_of(place: str, engine: type[Engine] | None) -> Path | None:
    """Return the file of a database that is one; None where a server has it.

    `engine` is that of the scheme of the URL.
    """
    if "://" not in place:
        return find_files(place).paths[0]
    if engine is None or not engine.endings:
        return None
    parts = _split(place)
    path = database_path(parts.netloc + parts.path)
    if not os.path.isfile(path):  # the engine would make an empty one
        raise DataError("There is no such database file. Give the path of one that exists.")
    return Path(path)


def _maker_of(file: Path) -> type[Engine]:
    """Return the engine that wrote a file of a database, by the mark at its beginning."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except OSError as error:
        raise DataError(f"The database cannot be read ({error.strerror}).") from None
    engines = file_engines()
    for engine in engines:
        if engine.has_written(start):
            return engine
    titles = " nor a ".join(engine.title for engine in engines)
    raise DataError(f"The file is neither a {titles} database, whatever its name says.")


def _check_driver(engine: type[Engine], title: str) -> None:
    """Refuse a database whose driver is not installed, and name that."""
    if not _is_installed("ibis"):
        raise DataError(
            f"{title} needs the package ibis-framework, which is not installed. "
            + explain_install("sql")
        )
    if not _is_installed(engine.module):
        raise DataError(
            f"{title} needs the package {engine.package}, which is not installed. Run pip install "
            f'"ibis-framework[{engine.extra}]", which brings it along.'
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package that holds it is not there
        return False


@contextmanager
def _explain_errors(engine: Engine | type[Engine], what: str, remedy: str = "") -> Iterator[None]:
    """Errors of the driver of an engine in words of ours."""
    refused: PrivmaxError | None = None
    try:
        with silence():
            yield
    except PrivmaxError:
        raise
    except ImportError as error:
        missing = error.name or "one that its driver needs"
        refused = DataError(
            f"{what}: the package {missing} is not installed. Run pip install with its name."
        )
    except Exception as error:
        retry = is_transient(error)
        reason = engine.explain_login(error) or remedy
        refused = EngineError(f"{what} ({type(error).__name__}). {reason}".rstrip(), retry=retry)
    if refused is not None:
        raise refused


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # one that is lost cannot be closed
        connection.disconnect()
