"""Hypotheses as candidates: their score is the number of examples they get right.

It also maps outcomes to hypotheses.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from privmax.errors import ParameterError
from privmax.learning.classes.contract import Counts, Hypothesis, HypothesisClass, Scores, Shape
from privmax.mechanisms.contract import Outcome
from privmax.numbers import whole
from privmax.profile import Level, Profile
from privmax.sources.base import PlainSource


class HypothesisSource(PlainSource):
    """A whole class, scored by how far its correct examples exceed a public floor.

    Args:
        floor: Public; scores at or below it count as 0.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Stumps
        >>> shape, stumps = Shape(features=1, labels=2), Stumps(low=0, high=10, cells=2)
        >>> scores = stumps.score(np.array([[1.0], [8.0]]), np.array([0, 1]), shape)
        >>> HypothesisSource(scores, stumps, shape).name(Outcome(2))
        <1 if x0 >= 5.0 else 0>
    """

    step = Fraction(1)

    def __init__(
        self, scored: Scores, hypotheses: HypothesisClass, shape: Shape, *, floor: int = 0
    ) -> None:
        self._scored, self._hypotheses, self._shape, self._floor = scored, hypotheses, shape, floor
        self._numbers: dict[int, int] = {}
        self.universe: int | None = whole("size", hypotheses.size(shape))
        if isinstance(scored, Counts) and scored.listed() != self.universe:
            raise ParameterError(
                "scored",
                f"{scored.listed()} counts",
                f"there are {self.universe} hypotheses by size",
                "Count every one.",
            )
        self.profile = Profile(self, universe=self.universe)

    def __repr__(self) -> str:
        return "HypothesisSource(<private>)"

    @property
    def may_be_too_many(self) -> bool:  # type: ignore[override]  # elsewhere it is a constant
        """Whether the search may be given up; only some classes search."""
        return bool(getattr(self._scored, "may_be_too_many", False))

    def listed(self) -> int:
        return self.universe or 0

    def maximum(self) -> int | None:
        return max((self._scored.maximum() or 0) - self._floor, 0)

    def histogram(self, above: int) -> Sequence[Level]:
        levels = [
            (score - self._floor, number)
            for score, number in self._scored.histogram(max(above, 0) + self._floor)
        ]
        if above < 0:
            rest = self.listed() - sum(number for _, number in levels)
            levels += [(0, rest)] if rest else []
        return levels

    def names(self, outcomes: Sequence[Outcome]) -> list[Hypothesis | None]:
        """Return the hypothesis each outcome stands for; None for no answer."""
        return [self._name(outcome) for outcome in outcomes]

    def _name(self, outcome: Outcome) -> Hypothesis | None:
        if outcome.score is None:
            return None
        exactly = outcome.score > 0 and not outcome.below
        find = self._scored.at if exactly else self._scored.at_or_below
        number = find(outcome.score + self._floor, outcome.index)
        assert number is not None, "a profile draws only who is there"
        hypothesis = self._hypotheses.hypothesis(number, self._shape)
        self._numbers[id(hypothesis)] = number
        return hypothesis

    def encode(self, hypothesis: Hypothesis) -> int:
        """Return what a ledger writes down of a hypothesis that was drawn: its number."""
        return self._numbers[id(hypothesis)]
