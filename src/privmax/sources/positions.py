"""A few candidates that have a number and no other name: their scores are whole numbers in memory.

All of them are listed, so there is nothing to read, to check or to put on a scale.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from privmax.mechanisms.contract import Outcome
from privmax.profile import Profile
from privmax.sources.columns import IntegerColumn


class Positions:
    """Candidates 0, 1, … by score. They are private.

    Args:
        scores: A whole number for each candidate.
        sensitivity: By how much one individual can move a score.

    Examples:
        >>> import numpy as np
        >>> positions = Positions(np.array([3, 7, 3]), sensitivity=1)
        >>> [positions.find(Outcome(3, 1)), positions.find(Outcome(3, 1, below=True))]
        [2, 2]
    """

    def __init__(self, scores: NDArray[Any], sensitivity: int) -> None:
        self._column = IntegerColumn(scores)
        self.profile = Profile(self._column, universe=len(scores), sensitivity=sensitivity)

    def __repr__(self) -> str:
        return "Positions(<private>)"

    def scores(self) -> list[int]:
        """Return every score, for laws on public data."""
        return self._column.scores()

    def find(self, outcome: Outcome) -> int:
        """Return the candidate that was drawn; one always is, as all are listed."""
        assert outcome.score is not None, "there is always an answer"
        if outcome.below:
            (position,) = self._column.find_below(outcome.score, [outcome.index])
        else:
            (position,) = self._column.find([(outcome.score, outcome.index)])
        assert position is not None, "a profile draws only who is there"
        return position
