"""Everything privmax raises on purpose.

    PrivmaxError
    ├── ParameterError   an option is missing, malformed or out of bounds (also a ValueError)
    │   └── ConditionError     it is `where`
    ├── DataError        the scores themselves cannot be used               (also a ValueError)
    ├── EngineError      the engine that holds the data failed; nothing was released
    │   └── UnsupportedError   it does not offer an operation that is needed
    ├── AnswerError      an answer was drawn and could not be named or written down; nothing was
                         released
    └── LedgerError      the privacy budget cannot be read, written or trusted; nothing was released
        └── BudgetError        the budget does not allow the request; nothing was charged

and warns of: `PrivacyWarning`, a release that protects less than it seems to.

A message names the argument, what it was, what is allowed and what to do. Arguments are public, so
their values may appear; scores and labels are private, so a `DataError` never quotes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PrivmaxError(Exception):
    """Base of every error this library raises on purpose.

    Attributes:
        retry: Whether the same request may succeed later, as it stands: a server was not there, did
            not answer in time, or somebody else held a lock. On the command line that is exit 4.

    Examples:
        >>> issubclass(BudgetError, PrivmaxError)
        True
        >>> EngineError("The server is gone.", retry=True).retry, DataError("No scores.").retry
        (True, False)
    """

    retry: bool = False


class ParameterError(PrivmaxError, ValueError):
    """A public option is missing, malformed or out of bounds.

    Args:
        name: The option.
        value: What it was.
        allowed: What it may be.
        remedy: What to do.

    Attributes:
        name: The option.
        value: What it was.
        allowed: What it may be.
        remedy: What to do; empty where that is plain.

    Examples:
        >>> error = ParameterError("k", 0, "it must be above 0", "For example 1.")
        >>> print(error)
        k=0 is not allowed: it must be above 0. For example 1.
        >>> error.name, error.value, error.remedy
        ('k', 0, 'For example 1.')
    """

    def __init__(self, name: str, value: object, allowed: str, remedy: str = "") -> None:
        super().__init__(name, value, allowed, remedy)
        self.name = name
        self.value = value
        self.allowed = allowed
        self.remedy = remedy

    def __str__(self) -> str:
        shown = _show(self.value)
        return f"{self.name}={shown} is not allowed: {self.allowed}. {self.remedy}".rstrip()


class ConditionError(ParameterError):
    """`where` is no condition on rows, or does not fit the data."""


def refuse_given(
    options: Mapping[str, object], allowed: str, remedy: str = "Leave it out."
) -> None:
    """Refuse whichever of the options is given, which is: not None.

    Args:
        options: What was given, by name.
        allowed: Why it may not be.
        remedy: What to do.

    Raises:
        ParameterError: One is given.

    Examples:
        >>> refuse_given({"user": None, "bound": 3}, "it makes no sense here")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: bound=3 is not allowed: it makes no sense here. Leave it out.
    """
    for name, value in options.items():
        if value is not None:
            raise ParameterError(name, value, allowed, remedy)


class DataError(PrivmaxError, ValueError):
    """The private data cannot be used; the message says why without quoting any of it."""


class EngineError(PrivmaxError):
    """The engine that holds the data failed at the question named; its own message may quote data
    and is not shown.

    Examples:
        >>> EngineError("The engine failed at the counting.", retry=True).retry
        True
    """

    def __init__(self, *args: object, retry: bool = False) -> None:
        super().__init__(*args)
        self.retry = retry


class UnsupportedError(EngineError):
    """The engine does not offer an operation that is needed."""


class AnswerError(PrivmaxError):
    """An answer was drawn and could not be named or written down; with a ledger it is recorded as
    no answer.
    """


class LedgerError(PrivmaxError):
    """The ledger of a privacy budget cannot be read, written or trusted; the message says what to
    do.

    Attributes:
        missing: "ledger" or "account", where there is none of that name.
        existing: The same, where there is one already and another was to be made.

    Examples:
        >>> LedgerError("There is no such account.", missing="account").missing
        'account'
    """

    missing: str | None = None
    existing: str | None = None

    def __init__(
        self,
        *args: object,
        missing: str | None = None,
        existing: str | None = None,
        retry: bool = False,
    ) -> None:
        super().__init__(*args)
        self.retry = retry
        if missing is not None:
            self.missing = missing
        if existing is not None:
            self.existing = existing


class BudgetError(LedgerError):
    """The budget does not allow the request; nothing was charged.

    Attributes:
        cost: What the request would have added to what is spent, a `Privacy`.
        left: What was left of the budget it did not fit into, a `Privacy`.
        account: Whose budget that is; None: that of the whole ledger.

    Examples:
        >>> from privmax import Privacy
        >>> BudgetError("It does not fit.", cost=Privacy(2), left=Privacy(1)).left
        Privacy(epsilon=1, delta=0)
    """

    def __init__(self, message: str, cost: Any, left: Any, account: str | None = None) -> None:
        super().__init__(message, cost, left, account)
        self.cost = cost
        self.left = left
        self.account = account

    def __str__(self) -> str:
        return str(self.args[0])


class PrivacyWarning(UserWarning):
    """A release protects less than it seems to. Each kind is said once in a process; it is allowed.

    To silence it: `warnings.filterwarnings("ignore", category=PrivacyWarning)`. To have it raised,
    every time and before anything is charged: `warnings.filterwarnings("error",
    category=PrivacyWarning)`.
    """


def explain_install(extra: str) -> str:
    """How to install the packages that an extra adds, as a sentence for a message.

    This line and docs/install.md are all that a release on a package index changes.

    Args:
        extra: Its name, as in pyproject.toml.

    Examples:
        >>> print(explain_install("sql"))
        Install the extra sql: run pip install ".[sql]" in a clone of privmax.
    """
    return f'Install the extra {extra}: run pip install ".[{extra}]" in a clone of privmax.'


_SHOWN = 100
"""Characters of a value that a message shows."""


def _show(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        return "a number of thousands of digits"
    if len(text) <= _SHOWN:
        return text
    return repr(f"{value[:_SHOWN]}…") if isinstance(value, str) else f"{text[:_SHOWN]}…"
