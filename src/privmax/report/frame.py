"""The frame of all reports, and what was asked in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from privmax.errors import ParameterError
from privmax.rendering import render


def page(template: str, *, written: datetime | None, **values: object) -> str:
    """Return a whole page. Nothing in it may run, and nothing may be fetched, whatever it shows.

    Args:
        template: Its file.
        written: When; None: now.
        values: What it shows.
    """
    if written is not None and not isinstance(written, datetime):
        raise ParameterError(
            "written", written, "it must be a datetime", "Leave it out: it is now by default."
        )
    when = datetime.now(UTC) if written is None else written.astimezone(UTC)
    return render(
        f"report/templates/{template}",
        written=when.replace(microsecond=0),
        version=version("privmax"),
        **values,
    )


def read_asked(asked: Mapping[str, object] | None) -> dict[str, object]:
    """Return the options that a page shows, by name.

    Raises:
        ParameterError: They have no names.

    Examples:
        >>> read_asked({"column": "age"}), read_asked(None)
        ({'column': 'age'}, {})
    """
    if asked is not None and not isinstance(asked, Mapping):
        raise ParameterError(
            "asked", asked, "it must be a dictionary of options by name",
            'For example {"column": "age"}.',
        )  # fmt: skip
    return dict(asked or {})


def read_words(name: str, value: object) -> str:
    """Read a parameter that a page shows as text.

    Raises:
        ParameterError: It is not text.

    Examples:
        >>> read_words("unit", "one person")
        'one person'
    """
    if not isinstance(value, str):
        raise ParameterError(name, value, "it must be text")
    return value


def question_rows(options: Mapping[str, object]) -> dict[str, str]:
    """Return what was asked as text, by name; what is None was not asked."""
    return {name: _join(value) for name, value in options.items() if value is not None}


def _join(value: object) -> str:
    many = isinstance(value, Sequence) and not isinstance(value, str)
    return ", ".join(map(str, value)) if many else str(value)  # type: ignore[call-overload]
