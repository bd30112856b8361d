"""What commands read: text files here, everything else through an engine. No message quotes what a
file holds.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import zlib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from glob import glob
from gzip import BadGzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import Any, cast

from privmax import samples
from privmax.cli.messages import describe_error
from privmax.cli.passwords import SAMPLE
from privmax.errors import DataError, EngineError, ParameterError, PrivmaxError, column_error
from privmax.sources.bounded import open_bytes
from privmax.sources.conditions import Condition
from privmax.sources.files import (
    FIRST_LINE,
    ScoreFile,
    header,
)
from privmax.sources.places import (
    CSV,
    DATABASE,
    DATABASES,
    NO_DATABASE,
    PARQUET,
    find_files,
    is_database,
    is_pattern,
    refuse_remote,
)
from privmax.universe import OPEN, Universe, read_whole

_TABLES = (*PARQUET, *(one for one in CSV if one != ".csv"), *DATABASES)
"""Endings of files whose rows are counted unless --score is given, as those of folders are. Any
other file has one row per candidate.
"""

LARGEST_JSON = 1 << 26
"""Bytes of a file of names, or of a saved rule, at most."""

_COLUMNS = ("item", "user", "score", "weight")
"""Options that name a column."""


def find_file(given: str) -> str:
    """The file that FILE means: sample:NAME one included in privmax, anything else itself."""
    return str(samples.path(given.removeprefix(SAMPLE))) if given.startswith(SAMPLE) else given


@dataclass(frozen=True)
class Input:
    """What a command reads.

    file     a file, a folder, a pattern, "-", or the URL of a database
    table    of a database
    where    which rows count; None: all
    """

    file: str
    table: str | None = None
    where: str | None = None

    def check(self) -> None:
        """Refuse what is none, before anything is charged. Opens nothing."""
        if "://" in self.file:
            refuse_remote(self.file)
        if self.table is not None and not is_database(self.file):
            raise ParameterError("table", self.table, NO_DATABASE, DATABASE)
        if self.where is not None:
            Condition.of(self.where)

    def open(self, held: ExitStack) -> object:
        """The data, as the library takes it; `held` is to be closed after use."""
        if self.file == "-":
            if sys.stdin is None:
                raise DataError("Standard input is closed. Give a file, or write the data to it.")
            return sys.stdin.buffer
        is_url = "://" in self.file
        if not is_url:
            check_exists(self.file)
        if is_url or self.file.lower().endswith(DATABASES):
            from privmax.sources.databases import open_database  # with it come engines

            return open_database(self.file, self.table, held)
        return find_files(self.file)


def name_columns(
    given: Input, item: Sequence[str], score: str | None, counting: dict[str, Any]
) -> dict[str, Any]:
    """The columns that `select` is to look at, if it is given a table; {}: each row is a candidate,
    with a ready score. Opens nothing.
    """
    if given.table or given.where or "://" in given.file:
        given.check()
    counts = any(value is not None for value in counting.values())
    if not (counts or len(item) > 1 or "://" in given.file or _is_table(given.file)):
        return {}
    return {**counting, "item": list(item) if len(item) > 1 else item[0], "score": score}


def _is_table(file: str) -> bool:
    """Whether rows are counted. What is gone, and has no ending, was a folder: its recorded answers
    remain.
    """
    gone = file != "-" and not os.path.exists(file) and not Path(file).suffix
    return gone or os.path.isdir(file) or file.lower().endswith(_TABLES)


def open_data(
    given: Input, item: Sequence[str], score: str | None, columns: dict[str, Any], held: ExitStack
) -> object:
    """What `select` is to read; `held` is to be closed after that."""
    data = given.open(held)
    return data if columns else ScoreFile(cast(Any, data), (item[0],), score or "score")


def check_exists(file: str) -> None:
    """Refuse a FILE that is not there, and name files of its folder that are called nearly so.

    What looks like a URL is not quoted: a password may stand in it.
    """
    if file == "-" or os.path.exists(file) or (is_pattern(file) and glob(file, recursive=True)):
        return
    if re.search(r"[@?\0]|:.*[:/]", file):
        raise DataError(
            "FILE: No such file or folder. The URL of a database has a colon and two slashes."
        )
    if is_pattern(file):
        find_files(file)  # which says that nothing matches
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
        with (
            open_bytes(Path(given)) as held,
            TextIOWrapper(held, encoding="utf-8-sig", newline="") as file,
        ):
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row and len(row) != columns:
                    raise DataError(
                        f"--{option}: line {rows.line_num} of the file has {len(row)} values, a "
                        f"label has {columns}. "
                        "Put each label on a line of its own, and quotes around one with a comma."
                    )
                labels += [row[0] if columns == 1 else tuple(row)] if row else []
    except (EOFError, zlib.error, BadGzipFile):
        raise DataError(f"--{option}: the file is not a gzip file, or is truncated.") from None
    except OSError as error:
        raise DataError(f"--{option}: {error.strerror or 'the file cannot be read'}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"--{option}: the file is not readable as CSV in UTF-8.") from None
    return Universe.of(labels, option)


def read_names(file: str | None) -> dict[str, str]:
    """Names to print, by what an item is as text."""
    if file is None:
        return {}
    try:
        given = load_json(file)
    except OSError as error:
        raise DataError(f"--labels: {error.strerror}.") from None
    except ValueError:
        given = None
    if isinstance(given, list):
        given = dict(enumerate(given))
    if not isinstance(given, dict):
        raise DataError("--labels: the file is no JSON list and no JSON object.")
    return {str(item): str(name) for item, name in given.items()}


def load_json(file: str) -> Any:
    """What a small JSON file of public facts holds.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON, is nested too deep, or has more than `LARGEST_JSON` bytes.
    """
    with open(file, "rb") as opened:
        held = opened.read(LARGEST_JSON + 1)
    if len(held) > LARGEST_JSON:
        raise ValueError
    try:
        return json.loads(held.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError from None


def explain(error: PrivmaxError, file: str) -> str:
    """An error in the words of the command. It does not list the columns of a text file: the first
    line may be data.
    """
    if file.startswith(SAMPLE) and (named := _name_columns(error, file)) is not None:
        return describe_error(named)
    is_text = file.startswith(SAMPLE) or file == "-" or file.lower().endswith(CSV)
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
