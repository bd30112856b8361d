"""The errors that privmax raises.

    PrivmaxError
    ├── ParameterError   an option is missing, malformed or out of bounds (also a ValueError)
    │   └── ConditionError     it is `where`
    ├── DataError        the scores themselves cannot be used               (also a ValueError)
    │   └── WorkError          they would take too much work
    ├── EngineError      the engine that holds the data failed; nothing was released
    │   └── UnsupportedError   it does not offer an operation that is needed
    ├── AnswerError      an answer was drawn but could not be named or recorded; nothing released
    └── LedgerError      the privacy budget cannot be read, written or trusted; nothing was released
        └── BudgetError        the budget does not allow the request; nothing was charged

and one warning, `PrivacyWarning`: a release protects less than it seems to.

A message names the argument, its value, what is allowed and what to do. Arguments are public, so
their values may appear; scores and labels are private, so a `DataError` never quotes one. Messages
name an option by its bare name (user, unit): Python and the command line spell it differently, and
the command line builds its own text from the attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class PrivmaxError(Exception):
    """Base class of all errors of privmax.

    Attributes:
        retry: Whether the same request may succeed later, as it stands: a server was not there, did
            not answer in time, or someone else held a lock. On the command line that is exit 4.

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
        value: Its value; None if it was not given.
        allowed: What is allowed, or why the option is needed.
        remedy: What to do.

    Attributes:
        name: The option.
        value: Its value; None if it was not given.
        allowed: What is allowed, or why the option is needed; may be empty.
        remedy: What to do; may be empty.
        missing: Whether the option is required and was not given.

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
        self.missing = False
        self.is_absent = False  # a column that is not there: the remedy may list those that are

    @classmethod
    def required(cls, name: str, why: str = "", remedy: str = "") -> ParameterError:
        """Return the error about an option that was not given.

        Args:
            name: The option.
            why: Why it is needed.
            remedy: What to do.

        Examples:
            >>> print(ParameterError.required("rank", "limited-domain needs it"))
            rank is required: limited-domain needs it.
        """
        error = cls(name, None, why, remedy)
        error.missing = True
        return error

    def __str__(self) -> str:
        if self.missing:
            about = f"{self.name} is required"
        else:
            about = f"{self.name}={shorten(self.value)} is not allowed"
        why = f"{about}: {self.allowed}" if self.allowed else about
        return f"{why}. {self.remedy}".rstrip()


class ConditionError(ParameterError):
    """`where` is no condition on rows, or does not fit the data."""


def refuse_given(
    options: Mapping[str, object], allowed: str, remedy: str = "Leave it out."
) -> None:
    """Refuse every option that is given (is not None).

    Args:
        options: The options by name.
        allowed: Why they are refused.
        remedy: What to do.

    Raises:
        ParameterError: One of them is given.

    Examples:
        >>> refuse_given({"user": None, "bound": 3}, "it has no meaning here")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: bound=3 is not allowed: it has no meaning here. Leave it out.
    """
    for name, value in options.items():
        if value is not None:
            raise ParameterError(name, value, allowed, remedy)


def refuse_same(option: str, name: object, remedy: str, **others: Sequence[object]) -> None:
    """Refuse a column that another option names as well.

    Args:
        option: The option that is refused.
        name: The column that it names.
        remedy: What to do.
        **others: What other options name.

    Raises:
        ParameterError: One of them names it.

    Examples:
        >>> refuse_same("to", "a", "", item=["a"])
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: to='a' is not allowed: the same column is given as item.
    """
    for other, names in others.items():
        if isinstance(name, str) and name in names:
            raise ParameterError(option, name, f"the same column is given as {other}", remedy)


def column_error(option: str, name: object, columns: Sequence[Any], kind: str) -> ParameterError:
    """Return the error about a column that does not exist.

    It names the columns there are, nearest first.

    Only for data whose column names are declared, as in a table, a frame or a Parquet file. The
    first line of a text file may be data, and is never shown.

    Args:
        option: The option that names the column.
        name: The name that was given; None: none was.
        columns: The names of the columns.
        kind: What has the columns: "table", "frame", "file".

    Examples:
        >>> print(column_error("item", "qery", ["person", "query"], "table"))
        item='qery' is not allowed: the table has no such column. Did you mean 'query'? ...
    """
    shown = ", ".join(map(str, columns[:_MOST_COLUMNS]))
    if len(columns) > _MOST_COLUMNS:
        shown += f" and {len(columns) - _MOST_COLUMNS} more"
    listed = f"The columns are {shown}."
    if name is None:
        error = ParameterError.required(option, f"the {kind} needs it", f"Name a column. {listed}")
    else:
        near = nearest(str(name), columns)
        hint = "" if near is None else f"Did you mean {near!r}? "
        error = ParameterError(option, name, f"the {kind} has no such column", hint + listed)
    error.is_absent = True
    return error


def nearest(name: str, names: Iterable[object]) -> str | None:
    """Return the one of the names that was probably meant; None: none is near.

    Examples:
        >>> nearest("Contry", ["country", "age"])
        'country'
        >>> nearest("query", ["user", "item"])
    """
    from difflib import get_close_matches

    folded = {str(one).casefold(): str(one) for one in names}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


_MOST_COLUMNS = 20
"""The most names of columns that a message lists."""


class DataError(PrivmaxError, ValueError):
    """The private data cannot be used; the message says why without quoting any of it."""


class WorkError(DataError):
    """The data would take more work than is ever done at a time; the message says what to reduce.

    That it is raised reveals something of the data, as the time would that the work took.
    """


class EngineError(PrivmaxError):
    """The engine that holds the data failed; its own message may quote data and is not shown.

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
    """An answer was drawn but could not be named or recorded; a ledger records it as no answer."""


class LedgerError(PrivmaxError):
    """A ledger of a privacy budget that cannot be read, written or trusted.

    The message says what to do.

    Attributes:
        missing: "ledger" or "account" if there is none of that name.
        existing: "ledger" or "account" if one of that name exists already.
        known: The names that exist.
        remedy: What to do in Python; the command line names a command instead.

    Examples:
        >>> error = LedgerError("No such account.", missing="account", remedy="Open it.")
        >>> error.missing, error.remedy
        ('account', 'Open it.')
        >>> print(error)
        No such account. Open it.
    """

    def __init__(
        self,
        *args: object,
        missing: str | None = None,
        existing: str | None = None,
        known: Sequence[str] = (),
        remedy: str = "",
        retry: bool = False,
    ) -> None:
        super().__init__(*args)
        self.retry = retry
        self.missing = missing
        self.existing = existing
        self.known = tuple(known)
        self.remedy = remedy

    @property
    def message(self) -> str:
        """The message without the remedy."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


class BudgetError(LedgerError):
    """The budget does not allow the request; nothing was charged.

    Attributes:
        cost: What the request would have added to the amount spent, a `Privacy`.
        left: What was left of the budget, a `Privacy`.
        account: The account whose budget is short; None: the budget of the whole ledger.

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


class PrivacyWarning(UserWarning):
    """A release protects less than it seems to. Each kind of warning appears once per process.

    To silence it: `warnings.filterwarnings("ignore", category=PrivacyWarning)`. To turn it into an
    error, raised every time and before anything is charged: `warnings.filterwarnings("error",
    category=PrivacyWarning)`.
    """


def explain_install(extra: str) -> str:
    """Return how to install the packages that an extra adds, as a sentence for a message.

    Args:
        extra: Its name, as in pyproject.toml.

    Examples:
        >>> print(explain_install("sql"))
        Install the extra sql: run pip install ".[sql]" in a clone of privmax.
    """
    # this line and docs/install.md are all that a release on a package index changes
    return f'Install the extra {extra}: run pip install ".[{extra}]" in a clone of privmax.'


_SHOWN = 100
"""Characters of a value that a message shows."""


def shorten(value: object) -> str:
    """Return a value as a message shows it: as Python writes it, at most a line long.

    Examples:
        >>> shorten("tea"), len(shorten("x" * 1000))
        ("'tea'", 103)
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        return "a number of thousands of digits"
    except Exception:  # nested too deep, or an object of one's own, which raises what it likes
        return f"<{type(value).__name__}>"
    if len(text) <= _SHOWN:
        return text
    return repr(f"{value[:_SHOWN]}…") if isinstance(value, str) else f"{text[:_SHOWN]}…"


def __dir__() -> list[str]:
    return sorted(
        name
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, PrivmaxError | PrivacyWarning)
    )
