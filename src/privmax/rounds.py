"""The k best of a closed universe by k rounds of the exponential mechanism, and terms whose scores
move otherwise than rows do.

`auto` asks which mechanism releases all k with the least lead. Where scores are close to each other
nobody leads by that much, and what counts is how many of the k come out: rounds then find more of
them than one draw over sets does (docs/howto/markers.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from privmax.choice import Choice
from privmax.ledger.events import Price
from privmax.mechanisms.exponential import Exponential
from privmax.numbers import positive, probability
from privmax.privacy import REPLACE
from privmax.release import Terms

WHY = "scores are close to each other, and k rounds find more of the best than one draw over sets"
"""Why several are drawn one after the other."""


@dataclass(frozen=True, kw_only=True)
class SignedTerms(Terms):
    """Terms for scores that one individual can move either way, whatever the relation of rows is.

    rows    the relation that the cost is stated for; None: that of the scores, "replace"

    The mechanism uses the constants for scores that move either way. A cost of bounded range is not
    claimed: rows may reach the scores through coins of their own.

    Examples:
        >>> from privmax.universe import Universe
        >>> terms = SignedTerms(epsilon=1, universe=Universe(9), rows="add-remove")
        >>> terms.choice.mechanism.neighbors, terms.cost().neighbors
        ('replace', 'add-remove')
    """

    neighbors: str | None = REPLACE
    rows: str | None = None

    def cost(self) -> Price:
        price = super().cost()
        relation = price.neighbors if self.rows is None else self.rows
        return replace(price, neighbors=relation, ranged=price.ranged and self.rows is None)


@dataclass(frozen=True, kw_only=True)
class RoundTerms(SignedTerms):
    """The same for the best of a closed universe: more than one by rounds, where no mechanism is
    given.

    Examples:
        >>> from privmax.universe import Universe
        >>> terms = RoundTerms(epsilon=1, delta="1e-6", k=5, universe=Universe(1000))
        >>> type(terms.choice.mechanism).__name__
        'Exponential'
    """

    @cached_property
    def choice(self) -> Choice:
        if self.given is not None or self.k == 1 or self.epsilon is None:
            return super().choice
        epsilon, delta = positive("epsilon", self.epsilon), probability("delta", self.delta or 0)
        rounds = Exponential(epsilon=epsilon, delta=delta, neighbors=REPLACE, k=self.k)
        return Choice(rounds, WHY)
