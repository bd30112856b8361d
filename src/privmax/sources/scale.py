"""The numbers that scores are on: whole ones, or a public grid.

What the scores are has no say in it.

If the values decided, one person with a decimal would change the units of everyone's scores, and
two neighbors would be two mechanisms. So the scale follows from what was declared, and a value
fits it or is refused.

Proof:      docs/proofs/rounding.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privmax.errors import ParameterError
from privmax.numbers import Number, positive
from privmax.privacy import ADD_REMOVE

GRID_STEPS = 64
"""Default resolution of a grid: this many steps to one `sensitivity`."""

ROUNDING = Fraction(1, 128)
"""The part of `sensitivity` by which a score on a grid may move further. Programs round: the scores
of 3 and of 4 records in 300 are floats near 1/100 and 1/75, which may lie on the far sides of two
lines of the grid. So each score may be off by half of this.
"""


@dataclass(frozen=True)
class Scores:
    """Declare how one individual can move scores, and on which grid they are. Public.

    Args:
        sensitivity: By how much one individual can move a score (default 1); on a grid a score may
            be off by a 256th of it, as computed ones are.
        resolution: Step of the public grid on which scores are rounded down. Without it scores must
            be whole numbers, of whatever type, if `sensitivity` is one; otherwise they are put on a
            grid of sensitivity / 64.
        neighbors: "add-remove": one individual moves all scores the same way, as counts do (the
            default for whole numbers). "replace": any way (needed for scores that are not
            monotone). On a grid there is no default.
        growth: How many candidates one individual's record touches at most, if there is a bound.

    Examples:
        >>> Scores(sensitivity="1/300", neighbors="replace").scale().steps
        65
    """

    sensitivity: Number | None = None
    resolution: Number | None = None
    neighbors: str | None = None
    growth: int | None = None

    def scale(self) -> Scale:
        """Return the scale that they stand on."""
        return Scale.of(self.sensitivity, self.resolution)


@dataclass(frozen=True)
class Scale:
    """A public scale of scores.

    Args:
        whole: Whether scores are whole numbers; otherwise they are put on a grid, rounding down.
        step: The score units that one step is worth: 1, or the resolution of the grid.
        steps: By how many steps one individual can move a score, rounding included.
    """

    whole: bool
    step: Fraction
    steps: int

    @classmethod
    def of(cls, sensitivity: Number | None, resolution: Number | None) -> Scale:
        """Return the scale that these two declare.

        With `resolution` it is a grid of that step. Without, scores are whole numbers if
        `sensitivity` is one (1, if it is not given); if it is a fraction, they are on a grid of a
        64th of it. On a grid one individual is charged for `ROUNDING` as well, whatever the scores
        are: if only floats were, the type of a score would choose the mechanism.

        Examples:
            >>> Scale.of(3, None).steps, Scale.of("1/300", None).steps
            (3, 65)
        """
        spread = positive("sensitivity", 1 if sensitivity is None else sensitivity)
        if resolution is None and spread.denominator == 1:
            return cls(True, Fraction(1), spread.numerator)
        step = spread / GRID_STEPS if resolution is None else positive("resolution", resolution)
        return cls(False, step, math.ceil(spread * (1 + ROUNDING) / step))

    def neighbors(self, relation: str | None) -> str:
        """Return the neighbor relation: as given, or "add-remove" for whole numbers.

        Counts are whole numbers.
        """
        if relation is not None:
            return relation
        if self.whole:
            return ADD_REMOVE
        raise ParameterError.required(
            "neighbors", "scores on a grid (with a resolution, or a sensitivity that is not "
            "a whole number) need it",
            "Use replace, or add-remove if one individual always moves all scores in the same "
            "direction, as the program computes them: rounding included.",
        )  # fmt: skip


WHOLE = Scale(True, Fraction(1), 1)
"""Whole numbers that one individual moves by 1: counts."""
