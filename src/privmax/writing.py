"""Writes text or bytes to a file, completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from privmax.errors import ParameterError

_DATABASE = b"SQLite format 3\0"
"""The beginning of a SQLite file. None is ever replaced: a ledger would forget what was spent."""


def write(content: str | bytes, path: str | Path, option: str, endings: Sequence[str] = ()) -> None:
    """Write a file, or leave the old one as it was.

    An existing file is replaced when the new content is complete. The new file has the mode of the
    one it replaces, and its owner where that is permitted.

    Args:
        option: What a ParameterError calls the path.
        endings: What its name may end in; the first is the example.
    """
    place = check_file(path, option, endings)
    temporary = _temporary_name(place)
    try:
        replaced = os.stat(place) if os.path.exists(place) else None
        # What replaces a file is nobody else's to read before it has that file's mode.
        mode = 0o666 if replaced is None else 0o600
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if replaced is not None:
                _copy_rights(replaced, file.fileno())
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    except OSError as error:
        raise _refusal(path, option, error) from None
    finally:
        with suppress(OSError):  # after the replacement it is gone
            os.unlink(temporary)


def check_file(path: str | Path, option: str, endings: Sequence[str] = ()) -> Path:
    """Resolve the path of a file to be written, links followed; a ParameterError if it cannot be
    written. Leaves nothing.
    """
    if endings and Path(path).suffix.lower() not in endings:
        allowed = f"the file name must end in {' or '.join(endings)}"
        raise ParameterError(option, str(path), allowed, f"For example {option}{endings[0]}.")
    place = Path(os.path.realpath(path))
    temporary = _temporary_name(place)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(place.stat().st_mode):
                raise ParameterError(
                    option, str(path), "it exists and is not a regular file", "Choose another name."
                )
            with open(place, "rb") as file:
                if file.read(len(_DATABASE)) == _DATABASE:
                    allowed = "it is an existing database, perhaps a ledger"
                    raise ParameterError(option, str(path), allowed, "Choose another name.")
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(temporary)
    except OSError as error:
        raise _refusal(path, option, error) from None
    return place


def _copy_rights(replaced: os.stat_result, number: int) -> None:
    """Give a file the owner, where that is permitted, and the mode of another."""
    if hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(number, replaced.st_uid, replaced.st_gid)
        os.fchmod(number, stat.S_IMODE(replaced.st_mode))


def check_apart(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Refuse to write into what is read, or two things into one file.

    Both are named by what a message calls them.
    """
    known = {_identity(path): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        same = known.setdefault(_identity(path), f"--{option}")
        if same != f"--{option}":
            raise ParameterError(
                option, path, f"it is the same file as {same}", "Choose another name."
            )


def _identity(path: str) -> object:
    """Return what two names of one file have in common."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _temporary_name(place: Path) -> Path:
    """Return a file in the same folder that is not there."""
    return place.with_name(f".privmax-{os.urandom(8).hex()}")


def _refusal(path: str | Path, option: str, error: OSError) -> ParameterError:
    missing = isinstance(error, FileNotFoundError)
    reason = "there is no such folder" if missing else f"it cannot be written ({error.strerror})"
    return ParameterError(option, str(path), reason, "Name a file in a folder you may write to.")
