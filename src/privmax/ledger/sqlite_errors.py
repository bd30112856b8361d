"""Errors of SQLite in our words: its own may quote stored values."""

from __future__ import annotations

import sqlite3

PATIENCE = 60.0
"""Seconds to wait for another process that writes."""

ERRORS = sqlite3.Error, UnicodeDecodeError, MemoryError
"""The second when the words of SQLite quote the tables of a damaged file, the last when it is given
no memory.
"""

_MEANINGS = {
    "SQLITE_FULL": "cannot grow: the disk is full. Free some space.",
    "SQLITE_READONLY": "cannot be written: the file, its folder or its file system is read-only. "
    "Change that.",
    "SQLITE_CANTOPEN": "cannot be opened. This user must be able to read and write the file and "
    "its folder.",
    "SQLITE_PERM": "cannot be opened. This user must be able to read and write the file and its "
    "folder.",
    "SQLITE_BUSY": f"was locked by another process for over {PATIENCE:.0f} seconds. Try again "
    "later.",
    "SQLITE_CONSTRAINT": "refused an event that does not follow from those before it, or would "
    "overspend. Run verify.",
    "SQLITE_NOTADB": "is not a SQLite database, or its first page was overwritten. Restore a "
    "backup, or choose another file.",
    "SQLITE_CORRUPT": "is damaged: it was truncated or overwritten, or its disk fails. Check the "
    "disk first. Restore a backup only if the file stays unreadable, and charge what was charged "
    "since: a backup has forgotten that.",
}
"""By the beginning of SQLite's name for the error. After these, even at a commit, nothing was
committed.
"""

UNREADABLE = (
    "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ",
    "SQLITE_IOERR_CORRUPTFS",
)  # fmt: skip
"""The beginnings of errors on a disk that cannot be read; SQLite reports damage in the same way."""

PASSING = (
    "could not be read: the disk reported an error, which has passed. The file is whole. Try again."
)

OLDER = (
    "was created by an older privmax, and one of its processes still has it open. Nothing was "
    "charged or recorded by this call. End such processes; the file is converted when it is next "
    "opened."
)


def explain(code: str) -> str | None:
    """Return what SQLite's name for an error means, in words.

    None: it is none of those that are known.
    """
    return next((meaning for start, meaning in _MEANINGS.items() if code.startswith(start)), None)


def is_busy(error: Exception) -> bool:
    """Return whether another connection has the file locked."""
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
