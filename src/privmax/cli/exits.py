"""Exit codes: what each means, once, for help, pages and the code that ends a command."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The outcome of a command, as its exit code."""

    DONE = 0
    BROKEN = 1
    REFUSED = 2
    OVER_BUDGET = 3
    RETRY = 4
    BUG = 70  # EX_SOFTWARE of sysexits.h; Python's own 1 would read as a broken claim
    INTERRUPTED = 130  # as shells report SIGINT ...
    NO_READER = 141  # ... and SIGPIPE


MEANINGS: dict[Exit, tuple[str, str]] = {
    Exit.DONE: ("done, with or without an answer", "–"),
    Exit.BROKEN: (
        "a check failed: audit broke a claim, or a ledger has faults",
        "look into it",
    ),
    Exit.REFUSED: (
        "bad input, or output that cannot be written; the error says which",
        "correct it; nothing was charged unless the error says so",
    ),
    Exit.OVER_BUDGET: (
        "the budget does not allow it",
        "ask for more budget; nothing was charged, and no data was read",
    ),
    Exit.RETRY: (
        "may be retried: no server, a timeout, or a lock of another process",
        "run the same command later, with the same --request",
    ),
    Exit.BUG: ("an error in privmax itself, with a traceback", "report it"),
    Exit.INTERRUPTED: (
        "Ctrl-C",
        "if something was charged, the error says so, and which --request continues",
    ),
    Exit.NO_READER: (
        "nothing reads the output any more (a broken pipe)",
        "if something was charged, the error says which --request returns the answer",
    ),
}
"""The meaning of each code, and what to do then."""


def describe_exits() -> str:
    """Return the codes as `privmax --help` lists them."""
    return "\n".join(f"{code:<4d} {meaning}" for code, (meaning, _) in MEANINGS.items())
