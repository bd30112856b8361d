"""What commands read: text files here, everything else through an engine. No message quotes what a
file holds.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from privmax import samples
from privmax.cli.messages import describe_error
from privmax.cli.passwords import SAMPLE
from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    PrivmaxError,
    column_error,
    explain_install,
)
from privmax.sources.files import (
    ENDINGS,
    FIRST_LINE,
    ScoreFile,
    header,
)
from privmax.universe import OPEN, Universe, read_whole

_TABLES = (".parquet", ".pq", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of files that DuckDB reads, as it reads folders. Any other file is read as CSV."""

_COLUMNS = ("item", "user", "score", "weight")
"""Options that name a column."""


def find_file(given: str) -> str:
    """The file that FILE means: sample:NAME one included in privmax, anything else itself."""
    return str(samples.path(given.removeprefix(SAMPLE))) if given.startswith(SAMPLE) else given


def name_columns(
    file: str, table: str | None, item: Sequence[str], score: str | None, counting: dict[str, Any]
) -> dict[str, Any]:
    """The columns that `select` is to look at, if it is given a table; {}: the file is read here.
    Opens nothing.
    """
    given = [name for name, value in counting.items() if value is not None]
    if file == "-":
        given += ["table"] if table is not None else []
        given += ["item, several times"] if len(item) > 1 else []
        if given:
            raise DataError(
                f"--{given[0]}: standard input is read as one row per candidate. Give a file "
                f"instead."
            )
    if table is None and "://" not in file and not (given or len(item) > 1 or _is_table(file)):
        return {}
    return {**counting, "item": list(item) if len(item) > 1 else item[0], "score": score}


def _is_table(file: str) -> bool:
    """Whether DuckDB reads the file. What is gone, and has no ending, was a folder: its recorded
    answers remain.
    """
    gone = file != "-" and not os.path.exists(file) and not Path(file).suffix
    return gone or os.path.isdir(file) or file.lower().endswith(_TABLES)


def open_data(
    file: str,
    table: str | None,
    item: Sequence[str],
    score: str | None,
    columns: dict[str, Any],
    held: ExitStack,
) -> object:
    """What `select` is to read; `held` is to be closed after that."""
    if table is None and "://" not in file:
        check_exists(file)
        if not columns:
            place = sys.stdin.buffer if file == "-" else Path(file)
            return ScoreFile(place, (item[0],), score or "score")
        data: object = Path(file)
    else:
        data = open_table(file, table, held)
    return data


def check_exists(file: str) -> None:
    """Refuse a FILE that is not there, and name files of its folder that are called nearly so.

    What looks like a URL is not quoted: a password may stand in it.
    """
    if file == "-" or os.path.exists(file):
        return
    if re.search(r"[@?\0]|:.*[:/]", file):
        raise DataError(
            "FILE: No such file or folder. The URL of a database has a colon and two slashes."
        )
    from difflib import get_close_matches

    told = f"FILE {file!r}: No such file or folder."
    folder, name = os.path.split(file)
    if folder and not os.path.isdir(folder):
        raise DataError(f"{told} There is no folder {folder!r}, seen from where the command runs.")
    close: list[str] = []
    with suppress(OSError):
        close = get_close_matches(name, os.listdir(folder or "."), n=2, cutoff=0.75)
    if close:
        raise DataError(
            f"{told} Did you mean {' or '.join(os.path.join(folder, one) for one in close)}?"
        )
    raise DataError(f"{told} Give its path, seen from where the command runs.")


def read_universe(given: str, columns: int, option: str = "universe") -> Universe:
    """What --universe (or --items) says: open, a size, or the labels in a file, of so many columns
    each.
    """
    if given == OPEN or read_whole(option, given) is not None:
        return Universe.of(given, option)
    if not os.path.isfile(given):
        raise ParameterError(
            option, given, "it must be open, a number, or the name of a file, and there is no such "
                           "file",
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    labels: list[Any] = []
    try:
        with open(given, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row and len(row) != columns:
                    raise DataError(
                        f"--{option}: line {rows.line_num} of the file has {len(row)} values, a "
                        f"label has {columns}. "
                        "Put each label on a line of its own, and quotes around one with a comma."
                    )
                labels += [row[0] if columns == 1 else tuple(row)] if row else []
    except OSError as error:
        raise DataError(f"--{option}: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"--{option}: the file is not readable as CSV in UTF-8.") from None
    return Universe.of(labels, option)


def open_table(url: str, table: str | None, held: ExitStack) -> Any:
    """A table of the database at a URL. No message quotes the URL, or what the engine says, which
    may.
    """
    if "://" not in url:
        raise DataError(
            "--table: FILE is not the URL of a database. That begins with postgres, duckdb or "
            "sqlite, a colon and two "
            "slashes."
        )
    if table is None:
        raise DataError(
            "--table is missing: FILE is the URL of a database. Name one of its tables."
        )
    try:
        import ibis

        parts = urlsplit(url)
        if parts.scheme in ("duckdb", "sqlite") and not os.path.isfile(parts.netloc + parts.path):
            raise DataError(
                "FILE: there is no such database file."
            )  # the engine would make an empty one
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of MySQL, whose time zone is set before anything is counted
            connection = ibis.connect(url, **_OPENING.get(parts.scheme, {}))
    except ImportError:
        raise DataError(
            "FILE: databases need packages that are not installed. " + explain_install("sql")
        ) from None
    except PrivmaxError:
        raise
    except Exception as error:
        raise EngineError(
            f"FILE: the database cannot be opened ({type(error).__name__}). Is the URL right, is "
            f"the server running, "
            "and are user and password known to it?"
        ) from None
    held.callback(_disconnect, connection)
    schema, _, name = table.rpartition(".")
    try:
        return connection.table(name, database=schema or None)
    except Exception as error:
        raise EngineError(
            f"--table {table!r}: the database has no such table, or this user may not read it "
            f"({type(error).__name__})."
        ) from None


_OPENING: dict[str, dict[str, Any]] = {
    "duckdb": {"read_only": True},
    "postgres": {
        "prepare_threshold": None
    },  # behind a pooler another connection would be asked for what was prepared
    "postgresql": {"prepare_threshold": None},
}
"""How a database is opened, by the scheme of its URL."""


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # one that is lost cannot be closed
        connection.disconnect()


def read_names(file: str | None) -> dict[str, str]:
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


def explain(error: PrivmaxError, file: str) -> str:
    """An error in the words of the command. It does not list the columns of a text file: the first
    line may be data.
    """
    if file.startswith(SAMPLE) and (named := _name_columns(error, file)) is not None:
        return describe_error(named)
    is_text = file.startswith(SAMPLE) or file.lower().endswith(ENDINGS)
    if isinstance(error, ParameterError) and error.name in _COLUMNS and is_text:
        people = " To count people, give --user." if error.name == "score" else ""
        shown = ParameterError(error.name, error.value, error.allowed, FIRST_LINE + people)
        return describe_error(shown)
    if isinstance(error, EngineError) and is_text:
        return f"{describe_error(error)} {_WELL_FORMED}"
    return describe_error(error)


def explain_sample(error: PrivmaxError, file: str) -> str:
    """An error in the words of the command; for a data set of privmax, with the columns it has."""
    return describe_error(_name_columns(error, file) or error)


def _name_columns(error: PrivmaxError, file: str) -> ParameterError | None:
    """The error with the columns of FILE, if it is about a column that a public data set lacks."""
    if not file.startswith(SAMPLE) or not isinstance(error, ParameterError):
        return None
    if error.name not in _ALL_COLUMNS or not isinstance(error.value, str):
        return None
    columns, _ = header(Path(find_file(file)))
    return (
        None if error.value in columns else column_error(error.name, error.value, columns, "file")
    )


_ALL_COLUMNS = (*_COLUMNS, "basket", "label", "features")

_WELL_FORMED = (
    "A text file must be UTF-8, close every quote, and have as many values on each line as on "
    "the first."
)
