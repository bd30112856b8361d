"""What commands read: text files here, everything else through an engine. No message quotes what a file holds."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import click

from privmax import samples
from privmax.errors import DataError, EngineError, ParameterError, PrivmaxError
from privmax.sources.memory import OPEN

_TABLES = (".parquet", ".pq", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of files that are not read here but by DuckDB, as folders are. Any other is read as CSV."""

_TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

_COLUMNS = ("item", "user", "score", "weight")
"""Options that name a column."""

SAMPLE = "sample:"
"""What FILE begins with where it names a data set that comes with privmax."""


def file_of(given: str) -> str:
    """The file that FILE means: sample:NAME one that comes with privmax, anything else itself."""
    return str(samples.path(given.removeprefix(SAMPLE))) if given.startswith(SAMPLE) else given


def columns_of(
    file: str, table: str | None, item: Sequence[str], score: str | None, counting: dict[str, Any]
) -> dict[str, Any]:
    """The columns that `select` is to look at, if it is given a table; {}: the file is read here. Opens nothing."""
    given = [name for name, value in counting.items() if value is not None]
    if file == "-":
        given += ["table"] if table is not None else []
        given += ["item, several times"] if len(item) > 1 else []
        if given:
            raise DataError(f"--{given[0]}: standard input is read as one row per candidate. Give a file instead.")
    if table is None and "://" not in file and not (given or len(item) > 1 or _is_table(file)):
        return {}
    return {**counting, "item": list(item) if len(item) > 1 else item[0], "score": score}


def _is_table(file: str) -> bool:
    """Whether DuckDB reads the file. What is gone, and has no ending, was a folder: its recorded answers remain."""
    gone = file != "-" and not os.path.exists(file) and not Path(file).suffix
    return gone or os.path.isdir(file) or file.lower().endswith(_TABLES)


def data_of(
    file: str, table: str | None, item: Sequence[str], score: str | None, columns: dict[str, Any], held: ExitStack
) -> object:
    """What `select` is to read; `held` is to be closed after that."""
    if table is None and "://" not in file:
        if file != "-" and not os.path.exists(file):
            raise DataError("FILE: No such file or folder.")
        if not columns:
            return _read(file, item[0], score or "score")
        data: object = Path(file)
    else:
        data = database(file, table, held)
    if all(columns[name] is None for name in ("score", "user", "weight", "bound")):
        click.echo("Each row counts as one individual; give --user if one person can have several rows.", err=True)
    return data


def universe_of(given: str, columns: int, option: str = "universe") -> object:
    """What --universe (or --items) says: open, a size, or the labels in a file, of so many columns each."""
    if given.isdecimal():
        return int(given)
    if given == OPEN:
        return given
    if not os.path.isfile(given):
        raise ParameterError(
            option, given, "it must be open, a number, or the name of a file, and there is no such file",
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    labels: list[Any] = []
    try:
        with open(given, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row and len(row) != columns:
                    raise DataError(
                        f"--{option}: line {rows.line_num} of the file has {len(row)} values, a label has {columns}. "
                        "Put each label on a line of its own, and quotes around one with a comma."
                    )
                labels += [row[0] if columns == 1 else tuple(row)] if row else []
    except OSError as error:
        raise DataError(f"--{option}: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"--{option}: the file is not readable as CSV in UTF-8.") from None
    return labels


def database(url: str, table: str | None, held: ExitStack) -> Any:
    """A table of the database at a URL. No message quotes the URL, or what the engine says, which may."""
    if "://" not in url:
        raise DataError(
            "--table: FILE is not the URL of a database. That begins with postgres, duckdb or sqlite, a colon and two "
            "slashes."
        )
    if table is None:
        raise DataError("--table is missing: FILE is the URL of a database. Name one of its tables.")
    try:
        import ibis

        parts = urlsplit(url)
        if parts.scheme in ("duckdb", "sqlite") and not os.path.isfile(parts.netloc + parts.path):
            raise DataError("FILE: there is no such database file.")  # the engine would make an empty one
        connection = ibis.connect(url, **({"read_only": True} if parts.scheme == "duckdb" else {}))
    except ImportError:
        raise DataError(
            'FILE: databases need packages that are not installed. Run pip install "privmax[sql]".'
        ) from None
    except PrivmaxError:
        raise
    except Exception as error:
        raise EngineError(
            f"FILE: the database cannot be opened ({type(error).__name__}). Is the URL right, is the server running, "
            "and are user and password known to it?"
        ) from None
    held.callback(_disconnect, connection)
    schema, _, name = table.rpartition(".")
    try:
        return connection.table(name, database=schema or None)
    except Exception as error:
        raise EngineError(
            f"--table {table!r}: the database has no such table, or this user may not read it ({type(error).__name__})."
        ) from None


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # one that is lost cannot be closed
        connection.disconnect()


def names_of(file: str | None) -> dict[str, str]:
    """Names to print, by what an item is as text."""
    if file is None:
        return {}
    try:
        with open(file, encoding="utf-8-sig") as opened:
            given = json.load(opened)
    except OSError as error:
        raise DataError(f"--labels: {error.strerror}.") from None
    except ValueError:
        given = None
    if isinstance(given, list):
        given = dict(enumerate(given))
    if not isinstance(given, dict):
        raise DataError("--labels: the file is no JSON list and no JSON object.")
    return {str(item): str(name) for item, name in given.items()}


def told(error: PrivmaxError, file: str) -> str:
    """An error in words. Where it would list the columns of a text file it does not: the first line may be data."""
    if isinstance(error, ParameterError) and error.name in _COLUMNS and file.lower().endswith(_TEXTS):
        name, value, allowed, _ = error.args
        return f"{ParameterError(name, value, allowed)} Names of columns stand in the first line of the file."
    return str(error)


def _read(name: str, item: str, score: str) -> dict[str, int | float]:
    """Labels and scores of a CSV file."""
    try:
        with click.open_file(name, encoding="utf-8-sig") as file:
            return _rows(file, item, score)
    except OSError as error:
        raise DataError(f"FILE: {error.strerror}.") from None


def _rows(file: IO[str], item: str, score: str) -> dict[str, int | float]:
    """Labels and scores of a CSV file; a message names the line at fault, never what stands there.

    Not even the first line is quoted: in a file without a header it is data.
    """
    try:
        rows = csv.DictReader(file, strict=True)
        names = rows.fieldnames or []
        for option, name in (("--item", item), ("--score", score)):
            if name not in names:
                raise DataError(
                    f"{option} {name!r}: the first line of the file names no such column. Give the name that stands "
                    "there, or add a first line with the names of the columns. To count people, give --user."
                )
        data: dict[str, int | float] = {}
        for row in rows:
            label, text = row[item], row[score]
            if label in data:
                raise DataError(f"Line {rows.line_num} repeats a label. Add up or deduplicate its scores first.")
            data[label] = _number(text, rows.line_num)
    except UnicodeDecodeError:
        raise DataError("The file is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise DataError(f"The file is not readable as CSV ({error}).") from None
    return data


def _number(text: str | None, line: int) -> int | float:
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    raise DataError(f"Line {line} has no number in the score column.")
