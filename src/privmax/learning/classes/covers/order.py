"""All conjunctions of a class by number, without listing any.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError

Ints = NDArray[np.int64]

LARGEST = 1 << 62
"""Classes of this size or more are refused: numbers and counts of hypotheses are 64-bit
integers.
"""


@dataclass(frozen=True)
class ConjunctionOrder:
    """All sets of at most `literals` tests, at most one per feature, as a walk numbers them.

    A column is a feature with one of its thresholds, in the order of both; its tests are "at or
    above" and "below", numbered 2 · column and 2 · column + 1. A set comes directly before those
    that add later tests to it.

    Args:
        after: Of every column, the first column of the next feature.
        sizes: [column, k] how many sets of at most k tests there are from this column on, the empty
            set included; the column begins a feature, or is the end.

    Examples:
        >>> order = ConjunctionOrder.of(2, [1, 1])  # two features with one threshold each
        >>> order.size, order.tests(2), order.tests(4)
        (9, [0, 2], [1])
    """

    literals: int
    after: Ints
    sizes: Ints

    @staticmethod
    def of(literals: int, cuts: Sequence[int]) -> ConjunctionOrder:
        """For features with so many thresholds each."""
        literals = min(literals, sum(1 for cut in cuts if cut))
        ends = np.cumsum(np.array(cuts, np.int64), dtype=np.int64)
        after = np.repeat(ends, cuts)
        sizes = np.zeros((len(after) + 1, literals + 1), np.int64)
        later = [1] * (literals + 1)
        sizes[-1] = later
        for end, cut in zip(reversed(ends.tolist()), reversed(cuts), strict=True):
            if not cut:
                continue
            later = [1] + [later[k] + 2 * cut * later[k - 1] for k in range(1, literals + 1)]
            if later[-1] >= LARGEST:
                raise ParameterError(
                    "literals", literals, "the class would have 2^62 conjunctions or more",
                    "Use fewer literals, features or cells.",
                )  # fmt: skip
            sizes[end - cut] = later
        return ConjunctionOrder(literals, after, sizes)

    @property
    def size(self) -> int:
        return int(self.sizes[0, self.literals])

    def tests(self, number: int) -> list[int]:
        """Return the set with this number: its tests, ascending."""
        if not 0 <= number < self.size:
            raise IndexError("there are fewer hypotheses")
        chosen: list[int] = []
        column, left = 0, self.literals
        while number:
            number -= 1
            # The children's subtrees are of one size within a feature, so whole features are passed
            # at a time.
            while True:  # ends: the number is below what all features have
                end = int(self.after[column])
                size = int(self.sizes[end, left - 1])
                if number < 2 * (end - column) * size:
                    break
                number -= 2 * (end - column) * size
                column = end
            child, number = divmod(number, size)
            chosen.append(2 * column + child)
            column, left = end, left - 1
        return chosen
