"""Where data is: what the name of a file, a pattern of names or a URL means, before anything is
read.

A name means the file that has it. Only where there is none is it taken for a pattern, so a file
that is called a[1].csv is found. What a file holds follows from its ending, never from what stands
in it.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privmax.errors import DataError

COMPRESSIONS = (".gz", ".zst")
"""Endings of compressed files; behind that of what they hold."""


def add_compressions(*kinds: str) -> tuple[str, ...]:
    """Endings, plain and compressed."""
    return tuple(kind + packed for kind in kinds for packed in ("", *COMPRESSIONS))


CSV = add_compressions(".csv", ".tsv")
JSON = add_compressions(".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
DATABASES = (".sqlite", ".sqlite3", ".db", ".db3", ".duckdb", ".ddb")
"""How the names of files end, by what they hold."""

KINDS = {"csv": CSV, "json": JSON, "parquet": PARQUET, "database": DATABASES}
"""The same by the names that the kinds have here; a folder is one, too."""

NO_DATABASE = "the data is not a database"
DATABASE = (
    "Leave it out, or give the URL of a database, as PostgreSQL has, or a file that "
    f"ends in {', '.join(DATABASES)}."
)

REMOTE = ("s3", "s3a", "s3n", "gs", "gcs", "http", "https", "ftp", "abfs", "abfss", "az", "azure",
          "wasb", "wasbs", "adl", "hdfs", "r2", "hf", "sftp", "file")  # fmt: skip
"""Schemes of URLs that lead to files and not to databases."""


@dataclass(frozen=True)
class Files:
    """Files of one kind, in the order of their names.

    paths      at least one
    kind       what their ending says: one of KINDS, or "other"
    pattern    what was given, if that was a pattern
    """

    paths: tuple[Path, ...]
    kind: str
    pattern: str | None = None

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


def find_files(given: str | os.PathLike[str]) -> Files:
    """The files that a name or a pattern means.

    Raises:
        DataError: There is none, or they are not of one kind, or it is a URL.
    """
    text = os.fspath(given)
    if "://" in text:
        refuse_remote(text)
    if os.path.exists(text):
        lowered = text.lower()
        kinds = (kind for kind, endings in KINDS.items() if lowered.endswith(endings))
        return Files((Path(text),), "folder" if os.path.isdir(text) else next(kinds, "other"))
    if not is_pattern(text):
        raise DataError("There is no file or folder of the name given as data.")
    return _match(text)


def _match(pattern: str) -> Files:
    """The files that a pattern means."""
    names = set(glob.glob(pattern, recursive=True))  # two ** give a file more than once
    found = sorted(filter(os.path.isfile, names))
    if not found:
        raise DataError(
            "No file matches the pattern given as data. Give it as seen from the working folder, "
            "in quotes, so that the shell leaves it alone: * stands for any letters, ** for any "
            "folders, ? for one letter."
        )
    _check_endings(found)
    return Files(tuple(map(Path, found)), find_files(found[0]).kind, pattern)


def is_pattern(text: str) -> bool:
    """Whether a name that no file has may be a pattern."""
    return any(sign in text for sign in "*?[") and "://" not in text and "\0" not in text


def would_read(place: str, file: str) -> bool:
    """Whether a file is, or would be once it is there, among those of a folder or a pattern.

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
    """The files of a pattern that one that exists may be."""
    found = glob.glob(pattern, recursive=True) if os.path.exists(file) else []
    return list(filter(os.path.exists, found))  # a link may lead nowhere


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**" and _fits(parts, pattern[1:]):
        return True
    if not parts or not fnmatch.fnmatchcase(parts[0], pattern[0]):
        return False
    return _fits(parts[1:], pattern if pattern[0] == "**" else pattern[1:])


def is_database(place: str) -> bool:
    """Whether a place is a database: a URL, or a file with such an ending."""
    return "://" in place or place.lower().endswith(DATABASES)


def database_path(path: str) -> str:
    """The file that the URL of a database names behind two slashes.

    Behind three it begins at the root, as Ibis has it, or here, as SQLAlchemy has it: whichever is
    there.
    """
    near = path.lstrip("/")
    whole = f"/{near}" if path.startswith("/") else path
    return near if not os.path.exists(whole) and os.path.exists(near) else whole


def ending(name: str) -> str:
    """What the ending of a name says of a file, without that of a compression."""
    lowered = name.lower()
    for packed in COMPRESSIONS:
        lowered = lowered.removesuffix(packed)
    return os.path.splitext(lowered)[1]


def _check_endings(names: Sequence[str]) -> None:
    first, *others = map(os.path.basename, names)
    for other in others:
        if ending(other) != ending(first):
            raise DataError(
                f"The pattern given as data matches files of two kinds: {other!r} does not end "
                f"like {first!r}. Give a pattern with an ending, such as {'*' + ending(first)!r}."
            )


def differs(path: Path, first: Path, how: str) -> DataError:
    """The error where files of a pattern are not laid out alike."""
    return DataError(
        f"The file {path.name!r} {how} {first.name!r}, and files that are read together must have "
        f"the same columns. Leave it out of the pattern, or write it again."
    )


def refuse_remote(text: str) -> None:
    """Refuse the URL of a file elsewhere. It is not quoted: a key may stand in it."""
    scheme, slashes, _ = text.partition("://")
    if slashes and scheme.lower() in REMOTE:
        raise DataError(
            f"The data is the URL of a file ({scheme.lower()}), and privmax reads no files over a "
            f"network: it holds no credentials, and a file that changes or breaks off half-way "
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
