"""Writes text or bytes to a file, completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from privmax.errors import ParameterError

_DATABASE = b"SQLite format 3\0"
"""How a SQLite file begins. None is ever replaced: a ledger would forget what was spent."""


def write(content: str | bytes, path: str | Path, option: str, endings: Sequence[str] = ()) -> None:
    """Write a file. What stood there is replaced when the new content is complete, and otherwise
    stays.

    option     what a ParameterError calls the path
    endings    what its name may end in; the first is the example
    """
    place = check_file(path, option, endings)
    beside = _beside(place)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except OSError as error:
        raise _refusal(path, option, error) from None
    finally:
        with suppress(OSError):  # after the replacement it is gone
            os.unlink(beside)


def check_file(path: str | Path, option: str, endings: Sequence[str] = ()) -> Path:
    """Where a file would be written, links followed; a ParameterError if that cannot be done now.
    Leaves nothing.
    """
    if endings and Path(path).suffix.lower() not in endings:
        told = f"the file name must end in {' or '.join(endings)}"
        raise ParameterError(option, str(path), told, f"For example {option}{endings[0]}.")
    place = Path(os.path.realpath(path))
    beside = _beside(place)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(place.stat().st_mode):
                raise ParameterError(
                    option, str(path), "it exists and is not a regular file", "Choose another name."
                )
            with open(place, "rb") as file:
                if file.read(len(_DATABASE)) == _DATABASE:
                    told = "it is an existing database, perhaps a ledger"
                    raise ParameterError(option, str(path), told, "Choose another name.")
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(beside)
    except OSError as error:
        raise _refusal(path, option, error) from None
    return place


def check_apart(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Refuse to write into what is read, or two things into one file. Both by what a message calls
    them.
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
    """What two names of one file have in common."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def _beside(place: Path) -> Path:
    """A file in the same folder that is not there."""
    return place.with_name(f".privmax-{token_hex(8)}")


def _refusal(path: str | Path, option: str, error: OSError) -> ParameterError:
    missing = isinstance(error, FileNotFoundError)
    told = "there is no such folder" if missing else f"it cannot be written ({error.strerror})"
    return ParameterError(option, str(path), told, "Name a file in a folder you may write to.")
