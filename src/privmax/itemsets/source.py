"""Itemsets as candidates: their supports are the scores, and whoever is drawn has a name.

Only itemsets within a window of the best are ever mined. In a closed universe all others are one
block, of which one is named by its number and never looked for.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privmax.itemsets.miner.window import Miner, Rows
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.mechanisms.contract import Outcome
from privmax.profile import Level, Profile
from privmax.sources.base import PlainSource


class ItemsetSource(PlainSource):
    """All itemsets of some sizes, scored by how far their support stands above a public floor.

    Args:
        labels: Of the items, by code.
        closed: Whether they are all the items there are; otherwise the universe is open.
        floor: Public; a support at or below it counts as 0.
    """

    step = Fraction(1)

    def __init__(
        self, rows: Rows, labels: Sequence[Any], sizes: range, *, closed: bool, floor: int = 0
    ) -> None:
        self._rows, self._labels, self._floor = rows, labels, floor
        self._drawn: dict[tuple[Any, ...], tuple[tuple[int, ...], int | None]] = {}
        self._miner = Miner(rows, sizes)
        self._everybody = Numbering(len(labels), sizes) if closed else None
        self.universe = None if self._everybody is None else self._everybody.size
        self.profile = Profile(self, universe=self.universe)

    def __repr__(self) -> str:
        return "ItemsetSource(<private>)"

    def listed(self) -> int:
        return self.universe or 0  # asked of closed universes only, where nobody is left out

    def maximum(self) -> int | None:
        best = self._miner.best() - self._floor
        return max(best, 0) if self.universe or best > 0 else None

    def histogram(self, above: int) -> Sequence[Level]:
        found = [
            (support - self._floor, number)
            for support, number in self._miner.histogram(max(above, 0) + self._floor)
        ]
        if self.universe is not None and above < 0:
            rest = self.universe - sum(number for _, number in found)
            found += [(0, rest)] if rest else []
        return found

    def name(self, outcome: Outcome) -> tuple[Any, ...] | None:
        """The itemset an outcome stands for, its items in their fixed order; None for no answer."""
        if outcome.score is None:
            return None
        support = outcome.score + self._floor
        if outcome.score > 0 and not outcome.below:
            codes = tuple(
                code for code in self._miner.at(support)[outcome.index].tolist() if code >= 0
            )
            score: int | None = outcome.score
        else:
            codes, score = self._beyond(support, outcome.index), None
        item = tuple(self._labels[code] for code in codes)
        self._drawn[item] = codes, score
        return item

    def support(self, item: tuple[Any, ...]) -> int:
        """The support of an itemset that was drawn. It is private: noise belongs on it."""
        codes, score = self._drawn[item]
        return score + self._floor if score is not None else self._rows.survivors(1).support(codes)

    def _beyond(self, support: int, index: int) -> tuple[int, ...]:
        """The i-th itemset of the closed universe whose support is not above `support`."""
        assert self._everybody is not None, "an open universe never draws whom it does not list"
        above, _ = self._miner.above(support)
        return self._everybody.unrank(nth_outside(index, sorted(self._everybody.ranks(above))))
