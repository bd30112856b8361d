"""Options grouped in values, with short forms for the everyday ones.

A short form and the value may not both give the same option. Options that a function took before
they were grouped are refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from privmax.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def combine(option: str, kind: type[T], given: T | None, **short: Any) -> T:
    """Return the value of an option with its short forms in it.

    Args:
        option: Its name, such as "columns".
        kind: The dataclass that it must be.
        given: The value; None: there are short forms only.
        **short: The short forms by name. One that has the default of its field is not given.

    Raises:
        ParameterError: The value is of another type, or says what a short form says as well.

    Examples:
        >>> from privmax import Columns
        >>> combine("columns", Columns, Columns(weight="amount", bound=3), user="person").user
        'person'
        >>> combine("columns", Columns, Columns(item="query"), item="article")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: item='article' is not allowed: columns=Columns(item=...
    """
    if given is not None and not isinstance(given, kind):
        raise ParameterError(
            option, f"<{type(given).__name__}>", f"it must be a {kind.__name__}",
            f"For example {kind.__name__}({next(iter(short), '')}=…).",
        )  # fmt: skip
    if given is None:
        return kind(**short)
    defaults = {one.name: one.default for one in fields(kind)}  # type: ignore[arg-type]
    said = {name: one for name, one in short.items() if one is not defaults[name]}
    for name, one in said.items():
        inside = getattr(given, name)
        if inside is not defaults[name]:
            raise ParameterError(
                name, one, f"{option}={kind.__name__}({name}={inside!r}) already gives it",
                "Give one of the two.",
            )  # fmt: skip
    return replace(given, **said)  # type: ignore[type-var]


def moved(homes: Mapping[str, Sequence[str]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function refuse the options that it no longer has, with what to write instead.

    Args:
        homes: Options of privmax 0.2 by what they are written in now, where "{}" stands for one.

    Examples:
        >>> @moved({"columns=Columns({}=…)": ["weight"]})
        ... def count(data): ...
        >>> count([], weight="amount")
        Traceback (most recent call last):
        ...
        TypeError: count() no longer takes weight=. Write columns=Columns(weight=…).
    """
    messages = {name: home.format(name) for home, names in homes.items() for name in names}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            for name in messages.keys() & options.keys():
                raise TypeError(
                    f"{function.__name__}() no longer takes {name}=. Write {messages[name]}."
                )
            return function(*args, **options)

        return call

    return decorate


IN_COLUMNS = {"columns=privmax.Columns({}=…)": ("weight", "bound", "missing_users")}
IN_SCORES = {"scores=privmax.Scores({}=…)": ("sensitivity", "resolution", "neighbors", "growth")}
IN_DATA = {
    "privmax.TextFile(file, {}=…) as the data": ("delimiter", "encoding", "header_is_public"),
    'privmax.Database(place, table="…") as the data': ("table",),
}
IN_REQUEST = {"ledger=privmax.Request({0}=…), or ledger.request({0}=…)": ("unit", "check")}
"""The present place of options that several functions had."""
