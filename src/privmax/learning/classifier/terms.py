"""The split of (epsilon, delta) in the classifier: a count of rows, then one of several models.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from privmax.errors import ParameterError
from privmax.learning.additive.rounds import (
    AdditiveRounds,
    CalibratedRounds,
    SumNoise,
    beyond_noise,
)
from privmax.learning.classifier.choice import ADDITIVE, CONSTANT, INTERACTIONS, PAIRS
from privmax.mechanisms.contract import Relation, read_relation
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.noise.coins import SYSTEM
from privmax.numbers import positive, probability, whole
from privmax.parameters import Exact, OptionalWhole, Parameters, optional, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift

COUNT = Fraction(1, 25)
"""Share of epsilon for the noisy count of rows, where their number is not public."""

LEAVES = Fraction(1, 10)
"""Share of what is left for the counts of labels in the leaves of a rule, where one is chosen."""


MOST_ROWS = 1 << 62
"""Numbers of rows are below this, and so are noisy counts."""


class ClassifierTerms(Parameters):
    """The split of a budget between the count of rows and the model that follows from it.

    Args:
        epsilon: What the fit costs.
        delta: Probability with which the guarantee may fail; only additive models use it.
        n: The number of rows, if it is public; None: a noisy count takes its place.
        neighbors: "add-remove" or "replace".

    Examples:
        >>> terms = ClassifierTerms(epsilon=1, delta=1e-6)
        >>> terms.counting, terms.fitting, ClassifierTerms(epsilon=1, n=500).fitting
        (Fraction(1, 25), Fraction(24, 25), Fraction(1, 1))
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(probability, default=0)
    n: OptionalWhole = parameter(optional(whole), default=None)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    kind: ClassVar[type[AdditiveRounds]] = AdditiveRounds
    """The terms of additive models."""

    k = 1
    ranked = True
    bounded_range = False

    def privacy(self) -> Privacy:
        """Return what the whole fit costs, whichever model it is."""
        return Privacy(self.epsilon, self.delta)

    @property
    def counting(self) -> Fraction:
        """Epsilon of the count of rows."""
        return self.epsilon * COUNT if self.n is None else Fraction(0)

    @property
    def fitting(self) -> Fraction:
        """Epsilon of the model."""
        return self.epsilon - self.counting

    @cached_property
    def count_scale(self) -> Fraction | None:
        """Scale of the noise on the count of rows, which one individual moves by at most 1."""
        return 1 / self.counting if self.counting else None

    def rounds(self, member: str) -> AdditiveRounds:
        """Return how an additive model spends what is left."""
        return self.kind(
            epsilon=self.fitting,
            delta=self.delta,
            pairs=INTERACTIONS if member == PAIRS else 0,
            neighbors=self.neighbors,
        )

    @cached_property
    def chooser(self) -> PermuteAndFlip:
        """The mechanism that draws a rule."""
        return PermuteAndFlip(epsilon=self.fitting * (1 - LEAVES), neighbors=self.neighbors)

    def leaves(self, member: str) -> SumNoise:
        """Return the noise on the counts of labels in leaves; a constant has nothing to draw."""
        budget = self.fitting if member == CONSTANT else self.fitting * LEAVES
        return SumNoise(scale=drift(self.neighbors) / budget)

    @cached_property
    def rho(self) -> Fraction | None:
        """The most it costs in concentrated privacy; None without a delta."""
        additive = self.rounds(ADDITIVE).rho
        if additive is None:
            return None
        rule = self.fitting**2 / 2  # as of every draw that is private for this epsilon
        return self.counting**2 / 2 + max(additive, rule)

    def check(self) -> None:
        """Refuse a budget for which there is no noise, before anything is read or charged.

        Raises:
            ParameterError: Epsilon is too small or too large, delta is 1, or n is beyond counting.
        """
        if self.n is not None and self.n >= MOST_ROWS:
            raise ParameterError(
                "n", self.n, "it must be below 2^62",
                "Give the public number of rows, or leave it out.",
            )  # fmt: skip
        _ = self.rho  # which says what is wrong with delta
        try:
            for member in (ADDITIVE, PAIRS):
                self.rounds(member).check()
            scales = [self.leaves(CONSTANT), self.leaves(ADDITIVE)]
            for noise in (*scales, SumNoise(scale=self.count_scale or Fraction(1))):
                noise.draw(0, SYSTEM)  # which meets what the sampler refuses
            _ = self.chooser
        except ParameterError:
            raise beyond_noise(self.epsilon, "a count") from None


class CalibratedTerms(ClassifierTerms):
    """The same split, where additive models have their labels counted once more, by chance.

    Rules have noisy counts of labels in their leaves in any case.
    """

    kind = CalibratedRounds
