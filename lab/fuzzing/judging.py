"""What counts as a bug: anything but a value or an error of ours, in little time and memory."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privmax.errors import PrivmaxError

PARSER, READER, ENGINE = "parser", "reader", "engine"
"""Groups of targets: those that only parse, those that release or write files, and those that run
an engine.
"""

SECONDS = 5.0
"""Processor time that one input may take, unless its target says otherwise."""


@dataclass(frozen=True)
class Target:
    """One public entry point.

    name      what it is called here
    group     PARSER, READER or ENGINE
    entry     the entry point, in words
    run       hands it some bytes; raises whatever the entry point raises
    seeds     inputs to begin with, most of them right
    words     what inputs are made of, for the fuzzer to put in
    longest   bytes of an input
    needs     modules that the entry point imports when it is called
    seconds   processor time that one input may take
    """

    name: str
    group: str
    entry: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes] = ()
    words: Sequence[bytes] = ()
    longest: int = 256
    needs: Sequence[str] = ()
    seconds: float = SECONDS


@dataclass(frozen=True)
class Finding:
    """One bug: the same error at the same place is found once, whatever the input."""

    target: str
    error: str
    place: str
    told: str = field(compare=False)
    data: bytes = field(compare=False)

    def __str__(self) -> str:
        return f"{self.target}: {self.error} at {self.place}: {self.told} (input {self.data!r})"


class WrongError(AssertionError):
    """A target saw a wrong value: a round trip that does not return, a password in a message."""


def judge(target: Target, data: bytes) -> Finding | None:
    """Run a target on an input; what it found, if that is a bug."""
    began = time.process_time()
    error: BaseException | None = None
    try:
        target.run(data)
    except PrivmaxError as ours:
        error = _unshown(ours)
    except KeyboardInterrupt:
        raise
    except BaseException as other:  # SystemExit, MemoryError and RecursionError, too
        error = other
    if error is not None:
        told = _told(error)
        return Finding(target.name, type(error).__name__, source_location(error), told, data)
    taken = time.process_time() - began
    if taken > target.seconds:
        return Finding(target.name, "time", target.entry, f"{taken:.0f} s", data)
    return None


def _unshown(ours: PrivmaxError) -> BaseException | None:
    """What showing an error of ours raises: its text is part of the answer."""
    try:
        str(ours).encode("utf-8", "surrogateescape")
    except Exception as error:
        return error
    return None


def _told(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except Exception:
        return "its text cannot be made"


def source_location(error: BaseException) -> str:
    """The innermost function of privmax that an error passed, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/privmax/" in frame.filename]
    if not frames:
        return "nowhere"
    last = (ours or frames)[-1]
    name = last.filename.rpartition("/privmax/")[2] if ours else Path(last.filename).name
    return f"{name}:{last.name}"
