"""Itemsets as candidates: their supports are the scores, and each one drawn has a name.

Only itemsets within a window of the best are ever mined. In a closed universe all others are one
block, of which one is named by its number and never looked for.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.baskets import Baskets, identify
from privmax.itemsets.miner import ranks
from privmax.itemsets.miner.window import TOGETHER, BasketRows, Miner, estimate_work
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.mechanisms.contract import Outcome
from privmax.profile import Level, Profile
from privmax.sources.base import PlainSource


class ItemsetSource(PlainSource):
    """All itemsets of some sizes, scored by how far their support is above a public floor.

    Args:
        labels: Of the items, by code.
        closed: Whether they are all the items there are; otherwise the universe is open.
        floor: Public; a support at or below it counts as 0.

    Examples:
        >>> import numpy as np
        >>> from privmax.itemsets.baskets import Baskets
        >>> rows = Baskets(np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), ["a", "b"])
        >>> source = ItemsetSource(rows, rows.labels, range(2, 3), closed=False)
        >>> source.maximum(), source.name(Outcome(2))
        (2, ('a', 'b'))
    """

    step = Fraction(1)

    def __init__(
        self, rows: BasketRows, labels: Sequence[Any], sizes: range, *, closed: bool, floor: int = 0
    ) -> None:
        self._rows, self._labels, self._floor = rows, labels, floor
        self._sizes = sizes
        self._drawn: dict[tuple[Any, ...], tuple[tuple[int, ...], int | None]] = {}
        self._miner = Miner(rows, sizes)
        self._numbers: dict[int, int] = {}
        self._everybody = Numbering(len(labels), sizes) if closed else None
        self.universe = None if self._everybody is None else self._everybody.size
        self.profile = Profile(self, universe=self.universe)

    def __repr__(self) -> str:
        return "ItemsetSource(<private>)"

    @property
    def may_be_too_many(self) -> bool:  # type: ignore[override]  # elsewhere it is a constant
        """Whether there may be more itemsets than are listed: for certain not in small data."""
        if not isinstance(self._rows, Baskets):
            return True
        return estimate_work(self._rows.offsets, self._sizes[-1]) > ranks.MOST

    def listed(self) -> int:
        return self.universe or 0  # asked of closed universes only, where nobody is left out

    def maximum(self) -> int | None:
        best = self._miner.best() - self._floor
        return max(best, 0) if self.universe or best > 0 else None

    def nth(self, number: int) -> int | None:
        support = self._miner.nth(number, self._floor + 1)
        return None if support <= self._floor else support - self._floor

    def histogram(self, above: int) -> Sequence[Level]:
        mined = self._miner.histogram(max(above, 0) + self._floor)
        self._numbers = dict(mined)
        levels = [(support - self._floor, number) for support, number in mined]
        if self.universe is not None and above < 0:
            rest = self.universe - sum(number for _, number in levels)
            levels += [(0, rest)] if rest else []
        return levels

    def names(self, outcomes: Sequence[Outcome]) -> list[tuple[Any, ...] | None]:
        """Return the itemset of each outcome, its items in their fixed order; None for no answer.

        What is above the lowest of them is mined once.
        """
        listed = [one for one in outcomes if one.score is not None and _is_listed(one)]
        rows = self._find({((one.score or 0) + self._floor, one.index) for one in listed})
        beyond = {one.score for one in outcomes if one.score is not None and not _is_listed(one)}
        outside = {score: self._numbers_above((score or 0) + self._floor) for score in beyond}
        labels: list[tuple[Any, ...] | None] = []
        for one in outcomes:
            if one.score is None:
                labels.append(None)
                continue
            if _is_listed(one):
                row = rows[one.score + self._floor, one.index]
                codes, score = tuple(code for code in row.tolist() if code >= 0), one.score
            else:
                codes, score = self._beyond(outside[one.score], one.index), None
            item = tuple(self._labels[code] for code in codes)
            self._drawn[item] = codes, score
            labels.append(item)
        return labels

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the support of each itemset that is drawn, its part up to the floor included."""
        names = self.names([one for one in outcomes if not _is_listed(one)])
        others = (self.support(name) for name in names if name is not None)
        return [
            (one.score or 0) + self._floor if _is_listed(one) else next(others) for one in outcomes
        ]

    def support(self, item: tuple[Any, ...]) -> int:
        """Return the support of an itemset that was drawn. It is private: noise belongs on it."""
        codes, score = self._drawn[item]
        return score + self._floor if score is not None else self._rows.survivors(1).support(codes)

    def count_holders(self, itemsets: Sequence[tuple[Any, ...]]) -> list[int]:
        """Count the individuals that have all items of each set of drawn items.

        For the empty set, those that have an item at all. The counts are private: add noise to
        them.
        """
        codes = {
            identify(label): code
            for item, (drawn, _) in self._drawn.items()
            for label, code in zip(item, drawn, strict=True)
        }
        sets = [[codes[identify(item)] for item in one] for one in itemsets]
        return self._rows.count_holders(sets)

    def _find(self, places: set[tuple[int, int]]) -> dict[tuple[int, int], NDArray[np.int32]]:
        """Find the itemsets at some supports and places.

        A place is that among the itemsets of one support, in their fixed order.
        """
        supports = {support for support, _ in places}
        lowest = min(supports, default=0)
        number = sum(many for support, many in self._numbers.items() if support >= lowest)
        if number > TOGETHER:
            return {place: self._miner.pick(*place) for place in places}
        if len(supports) < 2:
            members = {support: self._miner.at(support) for support in supports}
        else:
            codes, supported = self._miner.above(lowest - 1)
            members = {
                support: codes[
                    slice(*np.searchsorted(-supported, [-support, 1 - support]).tolist())
                ]
                for support in supports
            }
        return {(support, index): members[support][index] for support, index in places}

    def _numbers_above(self, support: int) -> Sequence[int]:
        """Return the numbers of all itemsets of the closed universe with a higher support.

        They ascend.
        """
        assert self._everybody is not None, "an open universe never draws whom it does not list"
        return sorted(self._everybody.ranks(self._miner.above(support)[0]))

    def _beyond(self, above: Sequence[int], index: int) -> tuple[int, ...]:
        """Return the i-th itemset of the closed universe that is not among those numbers."""
        assert self._everybody is not None
        return self._everybody.unrank(nth_outside(index, above))


def _is_listed(outcome: Outcome) -> bool:
    """Return whether it stands for an itemset that can be mined.

    Those of a block that is only numbered cannot.
    """
    return (outcome.score or 0) > 0 and not outcome.below
