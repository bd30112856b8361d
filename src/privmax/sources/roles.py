"""The columns of a table by their roles: items, individuals, scores and weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privmax.errors import ParameterError, column_error, refuse_same
from privmax.sources.users import OF_INDIVIDUALS, read_missing_users


@dataclass(frozen=True)
class Columns:
    """Name the columns of a table by their roles, and say which rows count.

    With neither `user` nor `score` every row is one individual.

    Args:
        item: The items; several columns name one together. Rows without an item do not count.
        user: The individuals: the score of an item is how many different ones it has.
        score: Instead: ready scores, one row per item.
        weight: With `user`: whole numbers; an individual adds their sum for the item, clipped to
            0 … bound.
        bound: Public; required with `weight`: one individual can move a score by so much.
        where: Which rows count: a condition on each row alone, such as
            "country = 'DE' and age >= 18" (`privmax help inputs`). None: all.
        missing_users: With `user`: "drop" leaves out rows that have an item but no user, each by
            itself. None: they are refused.

    Raises:
        ParameterError: The column of users is one of those of items.

    Examples:
        >>> Columns("query", "person", weight="clicks", bound=5).items()
        ['query']
    """

    item: str | Sequence[str] | None = None
    user: str | None = None
    score: str | None = None
    weight: str | None = None
    bound: int | None = None
    where: str | None = None
    missing_users: str | None = None

    def __post_init__(self) -> None:
        if self.user is not None:
            refuse_same("user", self.user, OF_INDIVIDUALS, item=self.items())

    def checked(self) -> Columns:
        """Return the same with `missing_users` read.

        Raises:
            ParameterError: It says nothing that is known, or no column of users is named.
        """
        return replace(self, missing_users=read_missing_users(self.missing_users, self.user))

    def items(self) -> list[str]:
        """Return the columns that name an item.

        Raises:
            ParameterError: It is neither a name nor several.
        """
        if self.item is None or isinstance(self.item, str):
            return [] if self.item is None else [self.item]
        given: object = self.item
        several = list(given) if isinstance(given, Iterable) else [given]
        names = [name for name in several if isinstance(name, str)]
        if len(names) < len(several):
            raise ParameterError(
                "item", given, "it must name a column, or several", "For example query."
            )
        return names

    def counts(self) -> bool:
        """Return whether rows are to be counted, so that only a table will do."""
        counting = any(value is not None for value in (self.user, self.weight, self.bound))
        return counting or (self.item is not None and self.score is None)


def item_names(table: Any, columns: Columns) -> list[str]:
    """The columns that name an item."""
    names = columns.items()
    if not names:
        raise column_error("item", None, list(table.columns), "table")
    for name in names:
        check_single(table, "item", name)
    if len(set(names)) < len(names):
        raise ParameterError(
            "item", columns.item, "it names a column twice", "Name each column once."
        )
    return names


def check_single(table: Any, option: str, name: str) -> None:
    """Refuse a column that is not there, or has lists and the like for values."""
    kind = column_of(table, option, name).type()
    if kind.is_nested() or kind.is_json():
        raise ParameterError(
            option,
            name,
            f"the column must have single values, but its type is {kind}",
            "Name several columns instead." if option == "item" else "Name another column.",
        )


def column_of(table: Any, option: str, name: object) -> Any:
    if name not in table.columns:
        raise column_error(option, name, list(table.columns), "table")
    return table[name]
