"""The budget of a regression: a few tallies of errors, and rounds between them.

Proof:      docs/proofs/regressor.md
"""

from __future__ import annotations

from fractions import Fraction

from privmax.learning.additive.rounds import AdditiveRounds, read_switch
from privmax.learning.regressor.targets import SQUARED, read_loss
from privmax.parameters import Parameter, parameter

TALLY = Fraction(5, 100)
"""Share of the budget for each tally."""

STAGES = 2
"""Tallies before and between the rounds: each sets the spread of errors."""


class RegressorRounds(AdditiveRounds):
    """The terms of all releases of a regression, which are public.

    Args:
        epsilon: What the fit costs.
        delta: Probability with which the guarantee may fail.
        rounds: On single features.
        pairs: Further rounds on pairs.
        order: Whether rounds choose their feature, or take it in turn.
        neighbors: "add-remove" or "replace".
        accounting: How noise follows from epsilon and delta.
        loss: "squared" or "absolute".
        intervals: Whether errors are counted once more at the end.

    Examples:
        >>> terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=5)
        >>> terms.stages(), terms.tallies
        ([3, 2], 2)
    """

    loss: Parameter[str, str] = parameter(read_loss, default=SQUARED)
    intervals: Parameter[bool, bool] = parameter(read_switch, default=False)

    @property
    def tallies(self) -> int:
        """The number of times that errors are counted."""
        return STAGES + self.intervals

    @property
    def tally(self) -> Fraction:
        """Share of the budget for each of these counts."""
        return TALLY

    def stages(self) -> list[int]:
        """Return how many rounds follow each tally."""
        return [(self.rounds + STAGES - 1 - stage) // STAGES for stage in range(STAGES)]
