"""The question for the best items of every group: each individual counts in few groups.

Where an individual counts in one group, the groups have no individual in common, and all of them
together cost what one costs. Where it counts in g groups, they cost g times as much.

Proof:      docs/proofs/groups.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from privmax.best_items import BestItems
from privmax.choice import draw_outcomes
from privmax.errors import ParameterError
from privmax.groups import DrawnGroups, GroupedRelease, Groups
from privmax.labels import by_name
from privmax.ledger.events import Charge
from privmax.mechanisms.contract import Outcome
from privmax.noise.coins import Coins
from privmax.numbers import plain
from privmax.one_key_each import Integers, OneKeyEach
from privmax.privacy import Privacy
from privmax.profile import Profile
from privmax.release import is_ranked
from privmax.sources.base import Source


class GroupSource(Protocol):
    """Candidates of every group, each with a score. Groups have numbers, in the order of names."""

    def count_chosen(self, most: int) -> Integers:
        """Return how many individuals count in each group; each counts in `most` at most."""
        ...

    def profile(self, group: int) -> Profile:
        """Return how many candidates of a group are at each score."""
        ...

    def list_unread(self) -> Sequence[Source]:
        """Return a source for each group that is read while it is drawn from, which may fail."""
        ...

    def group_names(self, groups: Sequence[int]) -> list[Any]:
        """Return what groups are called."""
        ...

    def names(self, drawn: Sequence[tuple[int, Outcome]]) -> list[Any]:
        """Return what was drawn, each with the number of its group."""
        ...

    def counts(self, drawn: Sequence[tuple[int, Outcome]]) -> list[int]:
        """Return the score of each of them. Scores are private: add noise to them."""
        ...

    def encode(self, item: Any) -> Any:
        """Return a label that was named, as JSON for a ledger."""
        ...


def ask_in_group(whole: BestItems, groups: Groups) -> BestItems:
    """The question in one group, at its part of the cost.

    What may not be asked at the cost of all groups is refused with the numbers that were given.
    """
    if isinstance(whole.given, str):
        _ = whole.choice  # made of the numbers that were given
    cost = {name: getattr(whole, name) for name in ("epsilon", "delta", "counts")}
    return replace(whole, **groups.divide(cost))


@dataclass(frozen=True, kw_only=True)
class BestPerGroup:
    """The question for the best items in every group: mechanism and cost. No data enters.

    It implements `Releasable`.

    Args:
        best: The question in one group, at its part of the cost.
        groups: Which groups there are.
        released: What becomes of the payload.
    """

    best: BestItems
    groups: Groups
    released: type[GroupedRelease] = GroupedRelease

    @cached_property
    def finder(self) -> OneKeyEach | None:
        """The mechanism that finds groups that are not declared, at their part of the cost."""
        share = self.groups.share
        if not share:
            return None
        cost = self.best.choice.mechanism.privacy()
        if not cost.delta:
            raise ParameterError(
                "mechanism", type(self.best.choice.mechanism).__name__,
                "finding groups takes a delta above 0, and its delta is 0",
                "Choose one that takes a delta, such as NestedMargin.",
            )  # fmt: skip
        part = share / (1 - share)
        return OneKeyEach(epsilon=cost.epsilon * part, delta=cost.delta * part)

    def describe(self) -> str:
        """Return a description of the mechanism."""
        times = self.groups.groups_per_user
        within = f"{times} groups" if times > 1 else "one group"
        finder = "" if self.finder is None else f", groups by {self.finder!r}"
        return f"{self.best.describe()} per group, {within} each{finder}"

    def privacy(self) -> Privacy:
        """Return the cost of all groups together."""
        each = self.best.privacy()
        if self.finder is not None:
            each += self.finder.privacy()
        return each * self.groups.groups_per_user

    def charge(self) -> Charge:
        """Return the charge. One declared group each leaves a cost of bounded range unchanged."""
        one = self.best.charge()
        is_alone = self.finder is None and self.groups.groups_per_user == 1
        return Charge(
            self.privacy(),
            bounded_range=one.bounded_range and is_alone,
            neighbors=one.neighbors,
            unit=one.unit,
        )

    def check(self) -> None:
        """Refuse what cannot be answered whatever the data."""
        self.best.check()
        if self.finder is not None:
            self.finder.test.certain()

    def preflight(self, source: GroupSource) -> None:
        """Meet before the charge what can fail in a group."""
        for one in source.list_unread():
            self.best.preflight(one)

    def draw(self, source: GroupSource, coins: Coins) -> DrawnGroups:
        """Draw in every group, with the names and counts of its items."""
        labels = self.groups.grouping.labels
        if self.finder is None:
            numbers = list(range(len(labels or ())))
        else:
            numbers = self.finder.draw(source, coins).tolist()
            labels = tuple(source.group_names(numbers))
        mechanism, drawn = self.best.choice.mechanism, list[tuple[int, Outcome]]()
        for number in numbers:
            outcomes = draw_outcomes(mechanism, source.profile(number), coins)
            drawn += [(number, outcome) for outcome in outcomes if outcome.score is not None]
        # In an open universe nothing is drawn from below the window, so scores are exact.
        assert not any(outcome.below for _, outcome in drawn)
        named = list(zip(drawn, source.names(drawn), strict=True))
        if not is_ranked(mechanism):
            named.sort(key=lambda one: (one[0][0], by_name(one[1])))
        sizes = dict.fromkeys(numbers, 0)
        for (number, _), _ in named:
            sizes[number] += 1
        payload = replace(
            self.draw_nothing(),
            items=tuple(item for _, item in named),
            labels=labels or (),
            sizes=tuple(sizes.values()),
        )
        places = [place for place, _ in named]
        if self.best.order_noise is not None:
            payload = replace(payload, relative=self._find_relative(places))
        if self.best.counts is not None:
            payload = replace(payload, counts=self._add_noise(source, places, coins))
        return payload

    def _find_relative(self, places: Sequence[tuple[int, Outcome]]) -> tuple[int | float, ...]:
        """Noisy counts that the order was made from, each less that of the first of its group."""
        assert self.best.order_noise is not None
        first, steps = dict[int, int](), list[int]()
        for number, outcome in places:
            relative = outcome.relative or 0
            steps.append(relative - first.setdefault(number, relative))
        return tuple(map(self.best.order_noise.in_units, steps))

    def _add_noise(
        self, source: GroupSource, places: Sequence[tuple[int, Outcome]], coins: Coins
    ) -> tuple[int | float, ...]:
        """The scores of released items with noise that is drawn group by group."""
        noise, groups = self.best.count_noise.noise, dict[int, list[int]]()
        for (number, _), score in zip(places, source.counts(places), strict=True):
            groups.setdefault(number, []).append(score)
        return tuple(count for group in groups.values() for count in noise.add_all(group, coins))

    def draw_nothing(self) -> DrawnGroups:
        """No items: of declared groups each is without an answer, and no other is named."""
        labels = self.groups.grouping.labels or ()
        empty = self.best.draw_nothing()
        return DrawnGroups(**vars(empty), labels=labels, sizes=(0,) * len(labels))

    def write(self, payload: DrawnGroups, source: GroupSource) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(source.encode)

    def read(self, written: Mapping[str, Any]) -> DrawnGroups:
        """Return what a ledger recorded."""
        return DrawnGroups.from_json(written)

    def release(self, payload: DrawnGroups) -> GroupedRelease:
        """The release of what was drawn."""
        mechanism, why = self.best.choice
        times = self.groups.groups_per_user
        counts = None if self.best.counts is None else self.best.count_noise.privacy * times
        return self.released(
            payload,
            self.privacy(),
            mechanism,
            f"{why}; one draw in each group",
            unit=self.best.unit,
            requested=mechanism.k,
            counts_privacy=counts,
            notes_on_groups=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        """Remarks about the groups, whatever was drawn."""
        if self.finder is None:
            return ()
        cost = self.finder.privacy() * self.groups.groups_per_user
        return (
            "Groups that too few individuals have do not appear.",
            f"Finding groups took epsilon {plain(cost.epsilon)}, delta {plain(cost.delta)} of the "
            "cost.",
        )
