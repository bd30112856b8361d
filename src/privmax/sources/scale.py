"""On which numbers scores stand: whole ones, or a public grid. What the scores are has no say in
it.

If the values decided, one person with a decimal would change the units of everybody's scores, and
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


@dataclass(frozen=True)
class Scale:
    """A public scale of scores.

    whole    whether scores are whole numbers; otherwise they are put on a grid, rounding down
    step     the score units that one step is worth: 1, or the resolution of the grid
    steps    by how many steps one individual can move a score
    """

    whole: bool
    step: Fraction
    steps: int

    @classmethod
    def of(cls, sensitivity: Number | None, resolution: Number | None) -> Scale:
        """The scale that these two declare.

        With `resolution` it is a grid of that step. Without, scores are whole numbers if
        `sensitivity` is one (1, if it is not given); if it is a fraction, they stand on a grid of a
        64th of it.
        """
        spread = positive("sensitivity", 1 if sensitivity is None else sensitivity)
        if resolution is None and spread.denominator == 1:
            return cls(True, Fraction(1), spread.numerator)
        step = spread / GRID_STEPS if resolution is None else positive("resolution", resolution)
        return cls(False, step, math.ceil(spread / step))

    def neighbors(self, given: str | None) -> str:
        """The neighbor relation: as given; "add-remove" by default, but only for whole numbers,
        which counts are.
        """
        if given is not None:
            return given
        if self.whole:
            return ADD_REMOVE
        raise ParameterError.required(
            "neighbors", "scores on a grid (with a resolution, or a sensitivity that is not "
            "a whole number) need it",
            "Use replace, or add-remove if one individual always moves all scores in the same "
            "direction.",
        )  # fmt: skip


WHOLE = Scale(True, Fraction(1), 1)
"""Whole numbers that one individual moves by 1: counts."""
