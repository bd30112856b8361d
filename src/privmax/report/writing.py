"""Puts a page into a file: all of it or nothing."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from privmax.errors import ParameterError

ENDINGS = (".html", ".htm")


def write(page: str, path: str | Path) -> None:
    """Write a page. What stood in the file is replaced when the page is complete, and otherwise stays."""
    place = checked(path)
    beside = _beside(place)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except OSError as error:
        raise _refused(path, error) from None
    finally:
        with suppress(OSError):  # after the replacement it is gone
            os.unlink(beside)


def checked(path: str | Path) -> Path:
    """Where a page would be written, links followed; a ParameterError if that cannot be done now. Leaves nothing."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise ParameterError("report", str(path), "its name must end in .html", "For example report.html.")
    place = Path(os.path.realpath(path))
    beside = _beside(place)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(place.stat().st_mode):
                raise ParameterError("report", str(path), "it exists and is not a file", "Choose another name.")
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(beside)
    except OSError as error:
        raise _refused(path, error) from None
    return place


def _beside(place: Path) -> Path:
    """A file in the same folder that is not there."""
    return place.with_name(f".privmax-{token_hex(8)}.html")


def _refused(path: str | Path, error: OSError) -> ParameterError:
    return ParameterError(
        "report",
        str(path),
        f"it cannot be written ({error.strerror})",
        "Name a file in a folder you may write to.",
    )
