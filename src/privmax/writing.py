"""Puts text into a file: all of it or nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from privmax.errors import ParameterError


def write(text: str, path: str | Path, option: str, endings: Sequence[str] = ()) -> None:
    """Write a file. What stood there is replaced when the new text is complete, and otherwise stays.

    option     what a ParameterError calls the path
    endings    what its name may end in; the first is the example
    """
    place = checked(path, option, endings)
    beside = _beside(place)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except OSError as error:
        raise _refused(path, option, error) from None
    finally:
        with suppress(OSError):  # after the replacement it is gone
            os.unlink(beside)


def checked(path: str | Path, option: str, endings: Sequence[str] = ()) -> Path:
    """Where a file would be written, links followed; a ParameterError if that cannot be done now. Leaves nothing."""
    if endings and Path(path).suffix.lower() not in endings:
        raise ParameterError(
            option, str(path), f"its name must end in {endings[0]}", f"For example {option}{endings[0]}."
        )
    place = Path(os.path.realpath(path))
    beside = _beside(place)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(place.stat().st_mode):
                raise ParameterError(option, str(path), "it exists and is not a file", "Choose another name.")
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(beside)
    except OSError as error:
        raise _refused(path, option, error) from None
    return place


def _beside(place: Path) -> Path:
    """A file in the same folder that is not there."""
    return place.with_name(f".privmax-{token_hex(8)}")


def _refused(path: str | Path, option: str, error: OSError) -> ParameterError:
    told = f"it cannot be written ({error.strerror})"
    return ParameterError(option, str(path), told, "Name a file in a folder you may write to.")
