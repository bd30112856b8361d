"""Everything privmax raises on purpose.

    PrivmaxError
    ├── ParameterError   an option is missing, malformed or out of bounds (also a ValueError)
    ├── DataError        the scores themselves cannot be used               (also a ValueError)
    └── EngineError      the engine that holds the data failed; nothing was released
        └── UnsupportedError   it does not offer an operation that is needed

A message names the argument, what it was, what is allowed and what to do. Arguments are public, so their
values may appear; scores and labels are private, so a `DataError` never quotes one.
"""

from __future__ import annotations


class PrivmaxError(Exception):
    """Base of every error this library raises on purpose."""


class ParameterError(PrivmaxError, ValueError):
    """A public option is missing, malformed or out of bounds."""

    def __init__(self, name: str, value: object, allowed: str, remedy: str = "") -> None:
        super().__init__(name, value, allowed, remedy)
        self.name = name

    def __str__(self) -> str:
        name, value, allowed, remedy = self.args
        return f"{name}={value!r} is not allowed: {allowed}. {remedy}".rstrip()


class DataError(PrivmaxError, ValueError):
    """The private data cannot be used; the message says why without quoting any of it."""


class EngineError(PrivmaxError):
    """The engine that holds the data failed at the question named; its own message may quote data and is not shown."""


class UnsupportedError(EngineError):
    """The engine does not offer an operation that is needed."""
