"""Groups to select in, and what is released of every one of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, islice
from typing import Any, ClassVar

from privmax.display import format_label, make_frame
from privmax.errors import ParameterError, refuse_same
from privmax.labels import by_name
from privmax.ledger.payment import digest_labels
from privmax.numbers import Number, open_probability, positive, probability, whole
from privmax.payload import (
    COUNTS,
    LONG_ITEMS,
    RELATIVE,
    Drawn,
    Record,
    ReleasedField,
    read_long,
    write_long,
)
from privmax.privacy import ADD_REMOVE
from privmax.release import Release
from privmax.sources.grouped import Grouping
from privmax.sources.roles import Columns
from privmax.universe import OPEN, Universe

SHARE = Fraction(1, 4)
"""The part of the cost that finds groups by default, where they are not declared."""

MOST_GROUPS = 10_000_000
"""Declared groups: each takes a draw, whether it has rows or not."""


@dataclass(frozen=True)
class Groups:
    """Name the column of groups, and say which groups there are.

    Args:
        by: The column. A row without a group does not count.
        groups: All groups, as public knowledge: rows of other groups do not count. "open": groups
            are not known in advance, and those that enough individuals have are released first.
        groups_per_user: In how many groups an individual counts at most: those that most of its own
            rows name; ties are broken by name. The cost is divided by it.
        groups_share: With open groups: the part of the cost that finds them; by default 1/4.

    Examples:
        >>> Groups("region", ["north", "south"]).grouping.labels
        ('north', 'south')
    """

    by: str
    groups: Collection[Hashable] | str = OPEN
    groups_per_user: int = 1
    groups_share: Number | None = None

    @classmethod
    def of(cls, by: str | Groups | None) -> Groups | None:
        """Read the option `by` of `select`: a column of open groups, or a value."""
        if by is None or isinstance(by, Groups):
            return by
        if not isinstance(by, str):
            raise ParameterError(
                "by", by, "it must name a column, or be Groups(…)", 'For example "region".'
            )
        return cls(by)

    def __post_init__(self) -> None:
        if not isinstance(self.by, str):
            raise ParameterError("by", self.by, "it must name a column", 'For example "region".')
        number = whole("groups_per_user", self.groups_per_user)
        object.__setattr__(self, "groups_per_user", number)
        _ = self.share, self.grouping  # both refuse what is not allowed

    @cached_property
    def grouping(self) -> Grouping:
        """The groups as a source takes them: in their canonical form, sorted by name."""
        if self._is_open:
            return Grouping(self.by, None, self.groups_per_user)
        wrong, given = None, _require_list(self.groups)
        try:
            labels = Universe.of(given, "groups").plain_labels()
        except ParameterError as error:
            wrong = ParameterError("groups", error.value, error.allowed, error.remedy)
        if wrong is not None:
            raise wrong
        return Grouping(self.by, tuple(sorted(labels, key=by_name)), self.groups_per_user)

    @cached_property
    def share(self) -> Fraction:
        """The part of the cost that finds groups: 0 where they are declared."""
        if self._is_open:
            given = SHARE if self.groups_share is None else self.groups_share
            return open_probability("groups_share", given, "For example 1/4.")
        if self.groups_share is not None:
            raise ParameterError(
                "groups_share", self.groups_share, "declared groups need not be found",
                "Leave it out.",
            )  # fmt: skip
        return Fraction(0)

    @property
    def _is_open(self) -> bool:
        """Whether groups are found."""
        return isinstance(self.groups, str) and self.groups == OPEN

    def check(
        self,
        columns: Columns,
        universe: Universe,
        neighbors: str | None,
        *,
        individual: str = "row",
    ) -> None:
        """Refuse what does not go with groups, by name alone.

        Args:
            columns: What the columns of the table are.
            universe: The candidates of each group.
            neighbors: The relation that the cost is stated for; None: not given.
            individual: What an individual is where no column of users is named.

        Raises:
            ParameterError: Something does not.
        """
        remedy = "Name another column."
        refuse_same("by", self.by, remedy, item=columns.items(), user=[columns.user])
        if columns.score is not None:
            raise ParameterError(
                "by", self.by, "ready scores have no individuals to count in one group each",
                "Count rows or users instead of giving score, or select from each group's scores.",
            )  # fmt: skip
        if columns.item is None:
            raise ParameterError.required("item", "groups need a table of rows", "Name a column.")
        if not universe.is_open:
            raise ParameterError(
                "by", self.by, "groups are for an open universe", "Leave universe out."
            )
        if neighbors not in (None, ADD_REMOVE):
            raise ParameterError(
                "by", self.by, f"under {neighbors} one individual may leave a group for another, "
                "and move both",
                f"Use neighbors {ADD_REMOVE}, which is the default.",
            )  # fmt: skip
        if columns.user is None and self.groups_per_user > 1:
            raise ParameterError(
                "groups_per_user", self.groups_per_user, f"without user every {individual} is one "
                "individual, and it counts in one group",
                "Give user, or leave it out.",
            )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """The options as a ledger writes them down; of declared groups a digest."""
        labels = self.grouping.labels
        return {
            "by": self.by,
            "groups": OPEN if labels is None else digest_labels(labels),
            "groups_per_user": self.groups_per_user,
        }

    def divide(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the question in one group: its part of the cost."""
        left = 1 - self.share
        parts = (("epsilon", positive, left), ("delta", probability, left), ("counts", positive, 1))
        divided = {
            name: read(name, options[name]) * part / self.groups_per_user
            for name, read, part in parts
            if options.get(name) is not None
        }
        return {**options, **divided}


def _require_list(groups: Collection[Hashable] | str) -> Collection[Hashable]:
    """Declared groups, if they are a collection of at least one and of no more than can be drawn
    from.
    """
    if not hasattr(groups, "__len__") or isinstance(groups, str | bytes):
        shown = groups if isinstance(groups, str | bool | int) else f"<{type(groups).__name__}>"
        allowed = "it must be open, or a collection of all groups"
        raise ParameterError("groups", shown, allowed, 'For example ["north", "south"].')
    number = MOST_GROUPS + 1
    with suppress(OverflowError):  # a range may have more than a length can say
        number = len(groups)
    if number > MOST_GROUPS:
        allowed = f"there may be at most {MOST_GROUPS:,} groups: every one takes a draw"
        remedy = "Declare larger groups, or leave it out to have them found."
        raise ParameterError("groups", "<labels>", allowed, remedy)
    if not number:
        allowed = "there must be at least one group"
        raise ParameterError("groups", "<labels>", allowed, "Leave it out to have them found.")
    return groups


_SHARED = ("requested", "ranked", "error", "noise", "apart", "relative_noise")
"""Fields of an answer that all groups have in common."""

_NUMBERS = Record("sizes", "sizes", write_long, read_long)


@dataclass(frozen=True)
class DrawnGroups(Drawn):
    """Items that were drawn in every group, those of one group after those of another.

    Args:
        labels: What the groups are called.
        sizes: How many items each of them has.
    """

    labels: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[ReleasedField, ...]] = (
        ReleasedField("answers", "groups", "groups"),
        ReleasedField(
            "labels", None, None, record=Record("labels", "groups", write_long, read_long)
        ),
        ReleasedField("sizes", None, None, record=_NUMBERS),
        replace(LONG_ITEMS, name=None, key=None),
        replace(COUNTS, name=None, key=None),
        replace(RELATIVE, name=None, key=None),
        *(one for one in Drawn.FIELDS if one.part != "answer" or one.attribute in _SHARED),
    )


@dataclass(frozen=True, repr=False)
class GroupedRelease(Release):
    """A `Release` of every group. Its items are pairs of a group and an item.

    Attributes:
        groups: The items of every group, by group, sorted by name; () where there was no answer.
        unanswered: The groups without an answer.
    """

    payload: DrawnGroups
    notes_on_groups: tuple[str, ...] = field(default=(), kw_only=True, compare=False)

    @property
    def items(self) -> tuple[Any, ...]:
        return tuple((group, item) for group, items in self.groups.items() for item in items)

    @cached_property
    def groups(self) -> dict[Any, tuple[Any, ...]]:
        items, drawn = iter(self.payload.items), self.payload
        return {
            group: tuple(islice(items, size))
            for group, size in zip(drawn.labels, drawn.sizes, strict=True)
        }

    @property
    def unanswered(self) -> tuple[Any, ...]:
        return tuple(group for group, items in self.groups.items() if not items)

    @property
    def ranks(self) -> Sequence[int]:
        """The place of each item in the order of its group, from 1; with `ranked` only."""
        return [place + 1 for size in self.payload.sizes for place in range(size)]

    @property
    def close(self) -> tuple[bool, ...] | None:
        near, starts = super().close, {0, *accumulate(self.payload.sizes)}
        if near is None:
            return None
        return tuple(one and place not in starts for place, one in enumerate(near))

    @property
    def answers(self) -> list[dict[str, Any]]:
        """Every group with its items, and with their noisy counts where those were asked for."""
        item, count = self._titles
        columns: dict[str, Sequence[Any] | None] = {f"{item}s": self.payload.items}
        columns |= {f"{count}s": self.payload.counts, "relative": self.relative}
        columns["close"] = self.close
        values = {name: iter(column) for name, column in columns.items() if column is not None}
        return [
            {"group": group, **{name: list(islice(one, size)) for name, one in values.items()}}
            for group, size in zip(self.payload.labels, self.payload.sizes, strict=True)
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about the groups, in sentences."""
        notes, item = [], self._titles[0]
        if self.requested > 1 and self.items:
            order = "sorted by name; no order is released."
            if self.ranked:
                order = "best first, as drawn."
            if self.close is not None:
                order = "best first, by noisy counts. ~ marks an item too close to the one before."
            notes.append(f"{item.capitalize()}s of a group: {order}")
        if self.unanswered:
            number = f"{len(self.unanswered):,} of {len(self.groups):,} groups"
            notes.append(f"No answer in {number}: no {item} stood out enough there.")
        return (*notes, *self.notes_on_groups)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the release as a frame, one row per item of a group.

        Columns: `group` and `item`; where counts were asked for, `count` and `error`; where the
        order was released, `rank`, from 1 on in every group; and where it was made from noisy
        counts, `relative`, `apart` and `close`. Itemsets have `itemset` and `support`. A group
        without an answer has no row.

        Args:
            library: "pandas", "polars" or "pyarrow"; None: the first of them that is installed.

        Raises:
            ParameterError: It is another one, or is not installed; or nothing was drawn.
        """
        self._refuse_checked()
        groups = [group for group, _ in self.items]
        item = self._titles[0]
        return make_frame({"group": groups, item: self.payload.items}, self._numbers(), library)

    def name_answer(self, item: Any) -> str:
        """Return the answer in a group, in words."""
        return format_label(item)

    def name_item(self, item: Any) -> str:
        """A group and its item in words."""
        group, best = item
        return f"{format_label(group)}: {self.name_answer(best)}"
