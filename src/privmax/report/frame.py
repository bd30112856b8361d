"""The frame of all reports, and what was asked in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from privmax.rendering import render


def page(template: str, *, written: datetime | None, **values: object) -> str:
    """Return a whole page. Nothing in it may run, and nothing may be fetched, whatever it shows.

    Args:
        template: Its file.
        written: When; None: now.
        values: What it shows.
    """
    when = datetime.now(UTC) if written is None else written.astimezone(UTC)
    return render(
        f"report/templates/{template}",
        written=when.replace(microsecond=0),
        version=version("privmax"),
        **values,
    )


def question_rows(options: Mapping[str, object]) -> dict[str, str]:
    """Return what was asked as text, by name; what is None was not asked."""
    return {name: _join(value) for name, value in options.items() if value is not None}


def _join(value: object) -> str:
    many = isinstance(value, Sequence) and not isinstance(value, str)
    return ", ".join(map(str, value)) if many else str(value)  # type: ignore[call-overload]
