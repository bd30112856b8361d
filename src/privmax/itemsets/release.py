"""Releases of itemsets, and the questions whose answers they are.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from privmax.best_items import BestItems
from privmax.display import format_label
from privmax.encoding import decode, encode
from privmax.errors import ParameterError
from privmax.groups import GroupedRelease
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.rules import Rule, RuleCounts, measure_rules, needed_sets, price_rules
from privmax.itemsets.source import ItemsetSource
from privmax.ledger.events import BASKET, Charge, label
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import whole
from privmax.payload import COUNTS, ITEM, ITEMS, Drawn, Record, ReleasedField
from privmax.privacy import Privacy
from privmax.release import (
    CHOSEN_BY_CALLER,
    Release,
)

_SUPPORTS = Record(
    "counts",
    "supports",
    lambda counts, _: [encode(count) for count in counts],
    lambda written, _: tuple(decode(count) for count in written),
)
_RENAMED = {
    ITEM: replace(ITEM, key="itemset"),
    ITEMS: replace(ITEMS, key="itemsets"),
    COUNTS: replace(COUNTS, name="supports", key="supports", record=_SUPPORTS),
}
_RULES = ReleasedField.of(
    "rules",
    lambda rules: [rule.to_dict() for rule in rules],
    record=Record(
        "rule_counts",
        "rules",
        lambda counts, write: counts.to_json(write),
        RuleCounts.from_json,
        optional=True,
    ),
    words=lambda rules: list(map(str, rules)),
)


@dataclass(frozen=True)
class DrawnItemsets(Drawn):
    """Itemsets that were drawn. They have supports where others have counts.

    Args:
        rule_counts: Noisy supports for rules, where they were asked for and there are any.
    """

    counts: tuple[int | float, ...] = ()
    rule_counts: RuleCounts | None = None

    FIELDS: ClassVar[tuple[ReleasedField, ...]] = (
        *(_RENAMED.get(one, one) for one in Drawn.FIELDS),
        _RULES,
    )


@dataclass(frozen=True, repr=False)
class ItemsetRelease(Release):
    """A `Release` whose items are itemsets, each a tuple of items in their fixed order.

    Attributes:
        rule_counts: Noisy supports for rules, where they were asked for and there are any.

    Examples:
        >>> from privmax.itemsets import top_itemsets
        >>> release = top_itemsets([[1, 2]] * 900, epsilon=1, delta=1e-6)
        >>> release.items, release.supports
        (((1, 2),), ())
    """

    payload: DrawnItemsets

    @property
    def rule_counts(self) -> RuleCounts | None:
        return self.payload.rule_counts

    @property
    def supports(self) -> tuple[int, ...]:
        """Noisy support of each itemset, where it was asked for or comes with the method.

        Otherwise empty.
        """
        return cast(tuple[int, ...], self.counts)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The association rules of the itemsets, where they were asked for, the surest first.

        Examples:
            >>> baskets = [["bread", "butter"]] * 900 + [["bread"]] * 900 + [["tea"]] * 900
            >>> from privmax.itemsets import top_itemsets
            >>> release = top_itemsets(baskets, epsilon=1, delta=1e-6, rules=10)
            >>> [(rule.antecedent, round(rule.confidence.value, 1)) for rule in release.rules]
            [(('butter',), 1.0), (('bread',), 0.5)]
        """
        counts = self.payload.rule_counts
        return () if counts is None else counts.rules(self.items)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes of any release, and whom rules and supports count.

        The latter where an individual may have several baskets.
        """
        notes = super().notes
        if self.payload.rule_counts is not None and self.unit not in (None, BASKET):
            notes += (f"Rules count each {self.unit} once, with all baskets together.",)
            if self.supports:
                notes += (
                    f"Supports of itemsets count a {self.unit} only where one basket has all "
                    "items, so the support of a rule may be higher.",
                )
        return notes

    @property
    def _titles(self) -> tuple[str, str]:
        return "itemset", "support"

    def name_item(self, item: Any) -> str:
        return " + ".join(map(format_label, item))


@dataclass(frozen=True, repr=False)
class GroupedItemsetRelease(GroupedRelease):
    """A `GroupedRelease` of itemsets: its items are pairs of a group and an itemset.

    Examples:
        >>> import pandas as pd
        >>> from privmax.itemsets import top_itemsets
        >>> rows = [(user, item) for user in range(900) for item in ("tea", "milk")]
        >>> frame = pd.DataFrame(rows, columns=["user", "item"]).assign(region="north")
        >>> release = top_itemsets(
        ...     frame, basket="user", item="item", by="region", epsilon=9, delta=1e-6
        ... )
        >>> release.items
        (('north', ('milk', 'tea')),)
    """

    @property
    def supports(self) -> tuple[int, ...]:
        """Noisy support of each itemset, where it was asked for. Otherwise empty."""
        return cast(tuple[int, ...], self.counts)

    @property
    def _titles(self) -> tuple[str, str]:
        return "itemset", "support"

    def name_answer(self, item: Any) -> str:
        """Return an itemset in words."""
        return " + ".join(map(format_label, item))


@dataclass(frozen=True, kw_only=True)
class BestItemsets:
    """The question for the most frequent itemsets, as a mechanism chooses them.

    It implements `Releasable`.

    Args:
        selection: What chooses them, at what cost.
        floor: Public; supports at or below it count as nothing.
        rules: What association rules cost in epsilon, on top; None: there are none.
        sizes: Of the itemsets that are asked for.
        longest: No basket has more different items than this, as a public rule.
    """

    selection: BestItems
    floor: int = 0
    rules: Fraction | None = None
    sizes: range = range(2, 3)
    longest: int | None = None

    def __post_init__(self) -> None:
        if self.rules is not None and self.sizes.stop <= 2:
            raise ParameterError(
                "rules", self.rules, "a rule needs itemsets of two or more items",
                "Ask for a larger size.",
            )  # fmt: skip

    @cached_property
    def rule_price(self) -> Privacy | None:
        """The cost of rules; None: there are none. They may use as much delta as the itemsets."""
        if self.rules is None:
            return None
        mechanism, delta = self.selection.choice.mechanism, self.selection.delta
        return price_rules(
            Privacy(self.rules, mechanism.privacy().delta if delta is None else delta),
            k=mechanism.k,
            largest=self.sizes.stop - 1,
            neighbors=mechanism.neighbors,
        )

    def privacy(self) -> Privacy:
        """Return what the answer costs, supports and rules included."""
        selection = self.selection.privacy()
        return selection if self.rule_price is None else selection + self.rule_price

    def describe(self) -> str:
        """Return what runs."""
        return self.selection.describe()

    def charge(self) -> Charge:
        """Return what to charge. With rules beside it a selection has no bounded range."""
        charge = self.selection.charge()
        if self.rule_price is None:
            return charge
        return replace(charge, privacy=self.privacy(), bounded_range=False)

    def check(self) -> None:
        """Refuse a universe that the mechanism cannot draw from."""
        self.selection.check()

    def preflight(self, source: ItemsetSource) -> None:
        """Meet before the charge what the selection can meet there."""
        self.selection.preflight(source)

    def draw(self, source: ItemsetSource, coins: Coins) -> DrawnItemsets:
        """Itemsets, with noisy supports and rules where they were asked for."""
        drawn = self.selection.draw(source, coins)
        diagnostics = dict(drawn.diagnostics)
        if "max_estimate" in diagnostics:
            diagnostics["max_estimate"] += self.floor
        rules = None
        if self.rule_price is not None:
            rules = measure_rules(
                needed_sets(drawn.items),
                source.count_holders,
                self.rule_price,
                coins,
                neighbors=self.selection.choice.mechanism.neighbors,
                longest=self.longest,
            )
        own = {"diagnostics": diagnostics, "counts": drawn.counts or (), "rule_counts": rules}
        return DrawnItemsets(**{**vars(drawn), **own})

    def draw_nothing(self) -> DrawnItemsets:
        """No itemsets."""
        return DrawnItemsets(**{**vars(self.selection.draw_nothing()), "counts": ()})

    def write(self, payload: DrawnItemsets, source: ItemsetSource) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json()

    def read(self, written: Mapping[str, Any]) -> DrawnItemsets:
        """Return what a ledger recorded."""
        return DrawnItemsets.from_json(written)

    def release(self, payload: DrawnItemsets) -> ItemsetRelease:
        """Return the release of what was drawn."""
        plain = self.selection.release(payload)
        return ItemsetRelease(**{**vars(plain), "payload": payload, "privacy": self.privacy()})


@dataclass(frozen=True, kw_only=True)
class MethodItemsets:
    """The question for itemsets by a published method, from the baskets themselves.

    It implements `Releasable`.

    Args:
        method: What runs.
        k: How many are asked for.
        sizes: Of the itemsets.
        unit: What the cost hides.
        owned: Whether baskets have owners.
    """

    method: Method
    k: int = 1
    sizes: range = range(2, 3)
    unit: str | None = None
    owned: bool = False

    def __post_init__(self) -> None:
        """All else was made with the method."""
        object.__setattr__(self, "k", whole("k", self.k))
        if self.unit is not None:
            label("unit", self.unit)

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.method)

    def privacy(self) -> Privacy:
        """Return what the method costs."""
        return self.method.privacy()

    def charge(self) -> Charge:
        """Return what to charge."""
        return Charge(self.privacy(), neighbors=self.method.neighbors, unit=self.unit)

    def check(self) -> None:
        """Meet what the method refuses before the charge.

        It draws from no baskets of three invented items.
        """
        none = np.zeros(0, np.int64)
        rows = Baskets(
            np.zeros(1, np.int64), none.astype(np.int32), range(3), none if self.owned else None
        )
        self._find(rows, range(2, 3), 1, SYSTEM)

    def preflight(self, source: Baskets) -> None:
        """Nothing more is to be met: the baskets are read."""

    def draw(self, source: Baskets, coins: Coins) -> DrawnItemsets:
        """Return what the method finds, with supports where it gives all of them."""
        results = self._find(source, self.sizes, self.k, coins)
        items = tuple(tuple(source.labels[code] for code in one.codes) for one in results)
        known = tuple(one.support for one in results if one.support is not None)
        return DrawnItemsets(items, counts=known if len(known) == len(items) else ())

    def draw_nothing(self) -> DrawnItemsets:
        """No itemsets."""
        return DrawnItemsets()

    def write(self, payload: DrawnItemsets, source: Baskets) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json()

    def read(self, written: Mapping[str, Any]) -> DrawnItemsets:
        """Return what a ledger recorded."""
        return DrawnItemsets.from_json(written)

    def release(self, payload: DrawnItemsets) -> ItemsetRelease:
        """Return the release of what was drawn."""
        method = self.method
        facts: dict[str, Any] = {"unit": self.unit, "requested": self.k}
        return ItemsetRelease(payload, self.privacy(), method, CHOSEN_BY_CALLER, **facts)

    def _find(self, rows: Baskets, sizes: range, k: int, coins: Coins) -> list[Found]:
        problem = Problem(lambda limits: Miner(rows, limits), rows, sizes, k)
        return self.method.draw(problem, coins)
