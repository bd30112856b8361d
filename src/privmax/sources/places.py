"""Finds data, before anything is read.

What the name of a file, a pattern of names or a URL means.

A name means the file that has it. Only where there is none is it taken for a pattern, so a file
that is called a[1].csv is found. The format of a file follows from its ending, never from its
content.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from privmax.errors import DataError, ParameterError
from privmax.sources.dialect import PLAIN, Dialect, Transcoded, dialect_of

COMPRESSIONS = (".gz", ".zst")
"""Endings of compressed files; behind that of what they hold."""


def add_compressions(*kinds: str) -> tuple[str, ...]:
    """Endings, plain and compressed."""
    return tuple(kind + packed for kind in kinds for packed in ("", *COMPRESSIONS))


CSV = add_compressions(".csv", ".tsv")
JSON = add_compressions(".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
"""The endings of files, by their content; `database_endings` has those of databases."""

TABLES = (*PARQUET, *(one for one in CSV if one != ".csv"))
"""Endings of files whose rows an engine counts, as it does those of folders."""

KINDS = {"csv": CSV, "json": JSON, "parquet": PARQUET}
"""The same by the names that the kinds have here; "database" and "folder" are two more."""

NO_DATABASE = "the data is not a database"


@cache
def database_endings() -> tuple[str, ...]:
    """Return how the names of files end that are databases."""
    from privmax.sources.engines import file_engines  # help is quicker without them

    return tuple(ending for engine in file_engines() for ending in engine.endings)


def describe_database() -> str:
    """Return what to give as data where a table is named, for an error to say."""
    return (
        "Leave it out, or give the URL of a database, as PostgreSQL has, or a file that "
        f"ends in {', '.join(database_endings())}."
    )


REMOTE = ("s3", "s3a", "s3n", "gs", "gcs", "http", "https", "ftp", "abfs", "abfss", "az", "azure",
          "wasb", "wasbs", "adl", "hdfs", "r2", "hf", "sftp", "file")  # fmt: skip
"""Schemes of URLs that lead to files and not to databases."""


@dataclass(frozen=True)
class Files:
    """Files of one kind, in the order of their names.

    Args:
        paths: At least one.
        kind: What their ending says: one of KINDS, "database", "folder" or "other".
        pattern: What was given, if that was a pattern.
        dialect: What the caller declares of files of text.
    """

    paths: tuple[Path, ...]
    kind: str
    pattern: str | None = None
    dialect: Dialect = PLAIN

    @property
    def is_csv(self) -> bool:
        return self.kind == "csv"

    @property
    def is_json(self) -> bool:
        return self.kind == "json"

    @property
    def is_text(self) -> bool:
        return self.kind in TEXT


TEXT = ("csv", "json")
"""Kinds of files whose values are all text."""


def find_files(place: str | os.PathLike[str]) -> Files:
    """Return the files that a name or a pattern means.

    Raises:
        DataError: There is none, or they are not of one kind, or it is a URL.
    """
    text = os.fspath(place)
    if "://" in text:
        refuse_remote(text)
    if os.path.exists(text):
        return Files((Path(text),), "folder" if os.path.isdir(text) else name_kind(text))
    if not is_pattern(text):
        raise DataError("There is no file or folder of the name given as data.")
    return _match(text)


def name_kind(name: str) -> str:
    """Return what the ending of a name says: one of KINDS, "database" or "other"."""
    lowered = name.lower()
    if is_database(lowered):
        return "database"
    return next((kind for kind, endings in KINDS.items() if lowered.endswith(endings)), "other")


def path_name(data: Any) -> str | None:
    """Return the text of a path; None of any other data.

    Nothing is asked of other data, not even its class: nothing was charged yet.

    Examples:
        >>> path_name("data.csv"), path_name({"data.csv": 3})
        ('data.csv', None)
    """
    return os.fsdecode(data) if issubclass(type(data), (str, os.PathLike)) else None


def refuse_by_name(data: object, dialect: Dialect) -> None:
    """Refuse what has no meaning for a file, by its name alone: nothing is opened."""
    name = path_name(data)
    if name is not None and name != "-":
        dialect.refuse(name_kind(name))


def refuse_unreadable(data: object, *, as_table: bool) -> None:
    """Refuse a file of a kind that is not read, by its name alone: nothing is opened.

    A name is public, so this comes before any charge, also that of a strict ledger.

    Args:
        data: What is to be read; anything but a path passes.
        as_table: Whether rows are counted, where the ending says how the file is read. Otherwise
            a file with another ending may be text.
    """
    name = path_name(data)
    if name is None:
        return
    if "://" in name:
        refuse_remote(name)
        return
    if name == "-" or os.path.isdir(name):
        return
    refuse_kind(name)
    _refuse_databases(name)
    # A pattern may match files of any kind, and a name without an ending may be a folder's.
    is_open = is_pattern(name) or not Path(name).suffix
    if as_table and not is_open and name_kind(name) == "other":
        raise DataError(UNKNOWN_KIND)


def refuse_table(data: object, table: str | None) -> None:
    """Refuse the name of a table where the data is not a database, before any charge."""
    if table is None:
        return
    name = path_name(data)
    if name is None or not is_database(name):
        raise ParameterError("table", table, NO_DATABASE, describe_database())


def require_table(data: object, table: str | None, is_strict: Callable[[], bool]) -> None:
    """Refuse a database of which no table is named, by its name alone.

    A strict ledger is charged before the database can list its tables. Whether it is strict is
    asked only of a database, as that reads the ledger.
    """
    name = path_name(data)
    if table is None and name is not None and is_database(name) and is_strict():
        raise ParameterError("table", None, SEVERAL_TABLES, "Name one of them.")


SEVERAL_TABLES = "the data is a database, which may have several tables"
"""The reason why a database needs the name of a table."""

UNKNOWN_KIND = (
    "The file is neither .csv, .tsv, .jsonl, .ndjson (.gz, .zst) nor .parquet. If it is one of "
    "these, rename it; otherwise convert it, or read it with Ibis and give the table."
)
"""The message about a file whose ending does not say how it is read."""


def declare(data: Any, dialect: Dialect, stack: ExitStack | None = None) -> Any:
    """Attach what the caller declares to data that is a file of text.

    "-" is standard input.

    Args:
        data: A path, an open file, or anything else, which stays as it is.
        dialect: What is declared.
        stack: Closed by the caller after use. An open file is then where it was, after a check.

    Raises:
        ParameterError: Something is declared that has no meaning for this data.
        DataError: There is no such file.
    """
    if dialect.check and stack is not None:
        _rewind_after(data, stack)
    if dialect_of(data) == dialect:
        return data
    if isinstance(data, str) and data == "-":
        return Transcoded(sys.stdin.buffer, dialect.encoding, dialect)
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    if isinstance(data, Files):
        dialect.refuse(data.kind)
        return replace(data, dialect=dialect)
    if isinstance(data, io.RawIOBase | io.BufferedIOBase):
        return Transcoded(data, dialect.encoding, dialect)
    dialect.refuse(None)
    return data


def _rewind_after(data: Any, stack: ExitStack) -> None:
    """Have an open file put back to where it is now, if it is one that can be."""
    if callable(getattr(data, "seekable", None)):
        with suppress(OSError, ValueError):  # it is closed: reading it says so
            if data.seekable():
                stack.callback(data.seek, data.tell())


def _match(pattern: str) -> Files:
    """Return the files that a pattern means."""
    names = set(glob.glob(pattern, recursive=True))  # two ** give a file more than once
    files = sorted(filter(os.path.isfile, names))
    if not files:
        raise DataError(
            "No file matches the pattern given as data. Give it as seen from the working folder, "
            "in quotes, so that the shell does not expand it: * matches any letters, ** any "
            "folders, ? one letter."
        )
    _check_endings(files)
    _refuse_databases(pattern)
    return Files(tuple(map(Path, files)), find_files(files[0]).kind, pattern)


def _refuse_databases(name: str) -> None:
    """Refuse a pattern of files that are databases, by its ending: one database is read."""
    if is_pattern(name) and not os.path.exists(name) and is_database(name):
        raise DataError(
            "The pattern given as data matches databases, and one database is read at a time. "
            "Give the name of one; or write their tables as Parquet files, and give a pattern of "
            "those."
        )


def is_pattern(text: str) -> bool:
    """Return whether a name that no file has may be a pattern."""
    return any(sign in text for sign in "*?[") and "://" not in text and "\0" not in text


def would_read(place: str, file: str) -> bool:
    """Return whether a file is, or would be once it is there, among those of a folder or a pattern.

    Examples:
        >>> would_read("logs/*.csv", "logs/new.csv"), would_read("logs/*.csv", "logs/old/new.csv")
        (True, False)
        >>> would_read("logs/**/*.csv", "logs/new.csv"), would_read("new.csv", "new.csv")
        (True, False)
    """
    if os.path.isdir(place):
        place = os.path.join(glob.escape(os.path.realpath(place)), "**", "*.parquet")
    elif os.path.exists(place) or not is_pattern(place):
        return False
    elif any(os.path.samefile(file, one) for one in _existing(place, file)):
        return True
    folder, name = os.path.split(file)
    paths = (os.path.abspath(file), os.path.join(os.path.realpath(folder), name))
    parts = Path(os.path.abspath(place)).parts
    return any(_fits(Path(path).parts, parts) for path in paths)


def _existing(pattern: str, file: str) -> list[str]:
    """Return the files of a pattern that one that exists may be."""
    files = glob.glob(pattern, recursive=True) if os.path.exists(file) else []
    return list(filter(os.path.exists, files))  # a link may lead nowhere


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**" and _fits(parts, pattern[1:]):
        return True
    if not parts or not fnmatch.fnmatchcase(parts[0], pattern[0]):
        return False
    return _fits(parts[1:], pattern if pattern[0] == "**" else pattern[1:])


def is_database(place: str) -> bool:
    """Return whether a place is a database: a URL, or a file with such an ending."""
    return "://" in place or place.lower().endswith(database_endings())


def database_path(path: str) -> str:
    """Return the file that the URL of a database names behind two slashes.

    Behind three it begins at the root, as Ibis has it, or here, as SQLAlchemy has it: whichever is
    there.
    """
    near = path.lstrip("/")
    whole = f"/{near}" if path.startswith("/") else path
    return near if not os.path.exists(whole) and os.path.exists(near) else whole


def ending(name: str) -> str:
    """Return what the ending of a name says of a file, without that of a compression."""
    lowered = name.lower()
    for packed in COMPRESSIONS:
        lowered = lowered.removesuffix(packed)
    return os.path.splitext(lowered)[1]


def refuse_kind(name: str) -> None:
    """Refuse a file of a kind that is not read, by its name, with what to do.

    Examples:
        >>> refuse_kind("a.zip")
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: The file is a ZIP archive. Unpack it (unzip FILE) and give ...
    """
    lowered = name.lower()
    reason = next((why for endings, why in _UNREADABLE if lowered.endswith(endings)), None)
    if reason is not None:
        raise DataError(reason)


def _unpack(kind: str, command: str) -> str:
    return f"The file is {kind}. Unpack it ({command} FILE) and give what was in it."


SPREADSHEETS = (".xlsx", ".xls", ".ods")
"""Endings of files that a spreadsheet makes."""

_UNREADABLE: tuple[tuple[tuple[str, ...], str], ...] = (
    (SPREADSHEETS, "The file is a spreadsheet. Open it and save the sheet as CSV in UTF-8."),
    ((".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz"),
     _unpack("an archive (tar)", "tar -xf")),
    ((".zip",), _unpack("a ZIP archive", "unzip")),
    ((".7z",), _unpack("an archive (7z)", "7z x")),
    ((".bz2",), _unpack("compressed (bzip2)", "bunzip2 --keep")),
    ((".xz",), _unpack("compressed (xz)", "unxz --keep")),
    (
        add_compressions(".json"),
        "The file is one JSON document, which is not supported. Write each element of its list "
        "on a line of its own: jq -c '.[]' FILE > NEW_FILE.jsonl. If it has one object per line "
        "already, rename it to end in .jsonl.",
    ),
    (
        (".arrow", ".feather", ".ipc", ".orc", ".avro"),
        "This file format is not supported. Write it as Parquet and give that, or read it "
        "in Python and give the table.",
    ),
)  # fmt: skip
"""Endings of files that are not read, and what to do with them."""


def _check_endings(names: Sequence[str]) -> None:
    first, *others = map(os.path.basename, names)
    for other in others:
        if ending(other) != ending(first):
            raise DataError(
                f"The pattern given as data matches files of two kinds: {other!r} does not end "
                f"like {first!r}. Give a pattern with an ending, such as {'*' + ending(first)!r}."
            )


def differs(path: Path, first: Path, how: str) -> DataError:
    """Return the error where files of a pattern are not laid out alike."""
    return DataError(
        f"The file {path.name!r} {how} {first.name!r}, and files that are read together must have "
        f"the same columns. Leave it out of the pattern, or write it again."
    )


def refuse_remote(text: str) -> None:
    """Refuse the URL of a file elsewhere. It is not quoted: a key may be in it."""
    scheme, slashes, _ = text.partition("://")
    if slashes and scheme.lower() in REMOTE:
        raise DataError(
            f"The data is the URL of a file ({scheme.lower()}), and privmax reads no files over a "
            f"network: it stores no credentials, and a file that changes or breaks off half-way "
            f"would be counted wrong. {_REMEDIES.get(scheme.lower(), _REMEDY)}"
        )


_REMEDY = "Copy the file here first and give its path, or load it into a database and give that."
_REMEDIES: dict[str, str] = {
    "file": "Give the path of the file, without the scheme.",
    **dict.fromkeys(
        ("s3", "s3a", "s3n", "r2"), "Copy it here first (aws s3 cp), then give its path."
    ),
    **dict.fromkeys(("gs", "gcs"), "Copy it here first (gcloud storage cp), then give its path."),
    **dict.fromkeys(
        ("abfs", "abfss", "az", "azure", "wasb", "wasbs", "adl"),
        "Copy it here first (azcopy copy), then give its path.",
    ),
    **dict.fromkeys(
        ("http", "https", "ftp"), "Copy it here first (curl -O), then give the path of the file."
    ),
    "hdfs": "Copy it here first (hdfs dfs -get), then give its path; or give a Spark frame.",
}
