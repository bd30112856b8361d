"""Opens the data of commands: text files here, everything else through an engine.

No message quotes the content of a file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from privmax import samples
from privmax.cli.messages import describe_error
from privmax.cli.passwords import SAMPLE
from privmax.errors import DataError, EngineError, ParameterError, PrivmaxError, column_error
from privmax.sources.conditions import Condition
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.files import ScoreFile, header
from privmax.sources.places import (
    CSV,
    TABLES,
    Files,
    database_endings,
    declare,
    find_files,
    is_pattern,
    refuse_by_name,
    refuse_remote,
    refuse_table,
    refuse_unreadable,
)
from privmax.sources.separated import FIRST_LINE, open_lines
from privmax.universe import OPEN, Universe, read_whole

if TYPE_CHECKING:
    from privmax.groups import Groups

LARGEST_JSON = 1 << 26
"""Bytes of a file of names, or of a saved rule, at most."""

_COLUMNS = ("item", "user", "score", "weight", "by")
"""Options that name a column."""


def find_file(name: str) -> str:
    """Return the file that FILE means.

    For sample:NAME it is one included in privmax, for anything else FILE itself.
    """
    return str(samples.path(name.removeprefix(SAMPLE))) if name.startswith(SAMPLE) else name


@dataclass(frozen=True)
class Input:
    """The data that a command reads.

    Args:
        file: A file, a folder, a pattern, "-", or the URL of a database.
        table: Of a database.
        where: Which rows count; None: all.
        dialect: What is declared of a file of text, and whether this is a check only.
    """

    file: str
    table: str | None = None
    where: str | None = None
    dialect: Dialect = PLAIN

    def check(self) -> None:
        """Refuse what is none, before anything is charged. Opens nothing."""
        if "://" in self.file:
            refuse_remote(self.file)
        refuse_table(self.file, self.table)
        if self.where is not None:
            Condition.of(self.where)
        refuse_by_name(self.file, self.dialect)

    def open(self, stack: ExitStack) -> object:
        """Return the data, as the library takes it; `stack` is to be closed after use."""
        is_url = "://" in self.file
        if not is_url and not self.file.lower().endswith(database_endings()):
            return self.open_files()
        if not is_url:
            check_exists(self.file)
        from privmax.sources.databases import open_database  # with it come engines

        return open_database(self.file, self.table, stack)

    def open_files(self) -> Files | BinaryIO:
        """Return files or standard input, with what is declared of them."""
        if self.file != "-":
            check_exists(self.file)
        elif sys.stdin is None:
            raise DataError("Standard input is closed. Give a file, or write the data to it.")
        files: Files | BinaryIO = declare(
            sys.stdin.buffer if self.file == "-" else find_files(self.file), self.dialect
        )
        return files


def name_columns(
    source: Input,
    item: Sequence[str],
    score: str | None,
    counting: dict[str, Any],
    *,
    grouped: bool = False,
) -> dict[str, Any]:
    """Return the columns that `select` reads of a table, without opening it.

    An empty result means that each row is a candidate, with a ready score. Rows of groups are
    counted.
    """
    if source.table or source.where or "://" in source.file or source.dialect != PLAIN:
        source.check()
    counts = grouped or any(value is not None for value in counting.values())
    as_table = counts or len(item) > 1 or "://" in source.file or _is_table(source.file)
    refuse_unreadable(source.file, as_table=as_table)
    if not as_table:
        return {}
    return {**counting, "item": list(item) if len(item) > 1 else item[0], "score": score}


def _is_table(file: str) -> bool:
    """Whether rows are counted unless --score is given; any other file has one row per candidate.
    What is gone, and has no ending, was a folder: its recorded answers remain.
    """
    gone = file != "-" and not os.path.exists(file) and not Path(file).suffix
    return gone or os.path.isdir(file) or file.lower().endswith((*TABLES, *database_endings()))


def open_data(
    source: Input, item: Sequence[str], score: str | None, columns: dict[str, Any], stack: ExitStack
) -> object:
    """Return what `select` is to read; `stack` is to be closed after that."""
    if columns:
        return source.open(stack)
    return ScoreFile(source.open_files(), (item[0],), score or "score")


def check_exists(file: str) -> None:
    """Refuse a FILE that is not there, and name files of its folder that are called nearly so.

    What looks like a URL is not quoted: a password may be in it.
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

    message = f"FILE {file!r}: No such file or folder."
    folder, name = os.path.split(file)
    if folder and not os.path.isdir(folder):
        raise DataError(
            f"{message} There is no folder {folder!r}, seen from where the command runs."
        )
    close: list[str] = []
    with suppress(OSError):
        close = get_close_matches(name, os.listdir(folder or "."), n=2, cutoff=0.75)
    if close:
        raise DataError(
            f"{message} Did you mean {' or '.join(os.path.join(folder, one) for one in close)}?"
        )
    raise DataError(f"{message} Give its path, seen from where the command runs.")


def read_universe(value: str, columns: int, option: str = "universe") -> Universe:
    """Read --universe or --items: open, a size, or a file of labels of so many columns each."""
    if value == OPEN or read_whole(option, value) is not None:
        return Universe.of(value, option)
    if not os.path.isfile(value):
        raise ParameterError(
            option, value, "it must be open, a number, or the name of a file, and there is no such "
                           "file",
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    return Universe.of(_read_labels(value, columns, option), option)


def _read_labels(file: str, columns: int, option: str) -> list[Any]:
    """Read labels of so many columns each, one per line of a file that `option` names."""
    labels: list[Any] = []
    wrong = ""
    try:
        with open_lines(Path(file), ",") as rows:
            for line, row in rows:
                if row and len(row) != columns:
                    raise DataError(
                        f"Line {line} has {len(row)} values, a label has {columns}. Put each label "
                        "on a line of its own, and quotes around one with a comma."
                    )
                labels += [row[0] if columns == 1 else tuple(row)] if row else []
    except DataError as error:
        wrong = f"--{option}: {error}"
    if wrong:
        raise DataError(wrong)
    return labels


def read_groups(
    by: str | None, groups: str | None, per_user: int | None, share: str | None
) -> Groups | None:
    """Return the groups that --by and the options that go with it name.

    Args:
        by: The column.
        groups: The file with all groups.
        per_user: In how many of them an individual counts.
        share: The part of the cost that finds groups.

    Raises:
        ParameterError: An option is not allowed, or needs --by.
    """
    if by is not None:
        from privmax.groups import Groups  # it needs the sources, which take long to load

        times = 1 if per_user is None else per_user
        if groups is None or groups == OPEN:
            return Groups(by, OPEN, times, share)
        if not os.path.isfile(groups):
            raise ParameterError(
                "groups", groups, "it must be the name of a file with all groups, and there is no "
                                  "such file",
                "Leave it out to have groups found at a part of the cost.",
            )  # fmt: skip
        return Groups(by, _read_labels(groups, 1, "groups"), times, share)
    extra = {"groups": groups, "groups_per_user": per_user, "groups_share": share}
    for name, value in extra.items():
        if value is not None:
            raise ParameterError(name, value, "it needs --by", "Name a column of groups.")
    return None


def read_names(file: str | None) -> dict[str, str]:
    """Names to print, by what an item is as text."""
    if file is None:
        return {}
    try:
        names = load_json(file)
    except OSError as error:
        raise DataError(f"--labels: {error.strerror}.") from None
    except ValueError:
        names = None
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict):
        raise DataError("--labels: the file is neither a JSON list nor a JSON object.")
    return {str(item): str(name) for item, name in names.items()}


def load_json(file: str) -> Any:
    """Return what a small JSON file of public facts holds.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not JSON, is nested too deep, or has more than `LARGEST_JSON` bytes.
    """
    with open(file, "rb") as opened:
        content = opened.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise ValueError
    try:
        return json.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError from None


def explain(error: PrivmaxError, file: str, header_is_public: bool = False) -> str:
    """Describe an error in the words of the command.

    It does not list the columns of a text file, unless they are declared public: the first line may
    be data.
    """
    if file.startswith(SAMPLE) and (named := _name_columns(error, file)) is not None:
        return describe_error(named)
    is_text = file.startswith(SAMPLE) or file == "-" or file.lower().endswith(CSV)
    hidden = is_text and not header_is_public
    if isinstance(error, ParameterError) and error.is_absent and error.name in _COLUMNS and hidden:
        people = " To count people, give --user." if error.name == "score" else ""
        shown = ParameterError(error.name, error.value, error.allowed, FIRST_LINE + people)
        return describe_error(shown)
    if isinstance(error, EngineError) and is_text:
        return f"{describe_error(error)} {_WELL_FORMED}"
    return describe_error(error)


def explain_sample(error: PrivmaxError, file: str) -> str:
    """Return an error in the words of the command.

    For a data set of privmax, with the columns it has.
    """
    return describe_error(_name_columns(error, file) or error)


def _name_columns(error: PrivmaxError, file: str) -> ParameterError | None:
    """Return the error with the columns of FILE, if a public data set lacks a column."""
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
