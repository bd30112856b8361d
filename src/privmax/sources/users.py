"""Rows that have an item but no individual: they are refused, or left out by a public rule."""

from __future__ import annotations

from privmax.errors import ParameterError

REFUSE, DROP = MISSING_USERS = ("refuse", "drop")
"""The values of `missing_users`."""

NO_USER = (
    "Fill the column in, or leave such rows out: set missing_users to drop (--missing-users drop), "
    "a rule on each row alone."
)
"""The remedy for rows without a user."""

OF_INDIVIDUALS = "Each item would have one individual. Name the column of individuals."
"""Advice where one column is given as items and as users."""


def read_missing_users(value: str | None, user: str | None) -> str | None:
    """`drop`, or None where rows without a user are refused, which is the default.

    Args:
        value: As the caller gave it; None: it was left out.
        user: Column of the individuals; None: there is none.

    Raises:
        ParameterError: It is neither of `MISSING_USERS`, or there is no column of users.

    Examples:
        >>> read_missing_users("drop", "person"), read_missing_users("refuse", "person")
        ('drop', None)
    """
    if value is None:
        return None
    if value not in MISSING_USERS:
        raise ParameterError(
            "missing_users", value, f"it must be one of {', '.join(MISSING_USERS)}"
        )
    if user is None:
        raise ParameterError(
            "missing_users", value, "no column of users is named",
            "Name it with user (--user COLUMN), or leave this out.",
        )  # fmt: skip
    return DROP if value == DROP else None
