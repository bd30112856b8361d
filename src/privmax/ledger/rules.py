"""What a history of charges costs: the rules of composition a ledger can be made with.

A rule adds one price to a total in time that does not depend on the length of the history. No rule ever lowers what is
spent, and every number is rounded up.

Proof:      docs/proofs/ledger.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Protocol

from privmax.errors import ParameterError
from privmax.ledger.events import Price, privacy_json, privacy_of
from privmax.privacy import Privacy

BITS = 192
"""A sum whose denominator has more bits is rounded up to a multiple of 2^-BITS, so that rows stay short."""

TOLERANCE = Fraction(1, 1 << 40)
"""How far, relatively, a recorded total may be from the one computed anew."""

BASIC: Final = "basic"


@dataclass(frozen=True)
class Total:
    """A budget and what is spent of it; `state` is what the rule has added up, as JSON."""

    budget: Privacy
    spent: Privacy
    state: Mapping[str, Any]

    def fits(self) -> bool:
        return self.spent.epsilon <= self.budget.epsilon and self.spent.delta <= self.budget.delta

    def left(self) -> Privacy:
        return less(self.budget, self.spent)

    def raised(self, more: Privacy) -> Total:
        return replace(self, budget=self.budget + more)

    def as_json(self) -> dict[str, Any]:
        return {"budget": privacy_json(self.budget), "spent": privacy_json(self.spent), "state": dict(self.state)}


def total_of(value: Mapping[str, Any]) -> Total:
    return Total(privacy_of(value["budget"]), privacy_of(value["spent"]), value["state"])


class Rule(Protocol):
    """How prices add up."""

    name: str

    def start(self, budget: Privacy) -> Total:
        """Nothing spent of a new budget."""

    def add(self, total: Total, price: Price) -> Total:
        """What is spent after one more charge; whether it fits is not asked here."""


class Basic:
    """Epsilons and deltas add."""

    name = BASIC

    def start(self, budget: Privacy) -> Total:
        return Total(budget, Privacy(0), {})

    def add(self, total: Total, price: Price) -> Total:
        return replace(total, spent=_sum(total.spent, price.privacy))


RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in (Basic(),)}


def rule_named(name: object) -> Rule:
    if isinstance(name, str) and name in RULES:
        return RULES[name]
    raise ParameterError("rule", name, f"it must be one of {', '.join(RULES)}", 'If in doubt, "basic".')


def less(more: Privacy, spent: Privacy) -> Privacy:
    """The difference, 0 where it would be negative."""
    zero = Fraction(0)
    return Privacy(max(more.epsilon - spent.epsilon, zero), max(more.delta - spent.delta, zero))


def close(one: Privacy, other: Privacy) -> bool:
    """Whether two totals are one price, perhaps computed on different machines: orders are chosen in floats."""
    return abs(one.epsilon - other.epsilon) <= TOLERANCE * one.epsilon and one.delta == other.delta


def short(number: Fraction, bits: int = BITS) -> Fraction:
    """The number itself if its denominator is short, else the next multiple of 2^-bits above it."""
    if number.denominator.bit_length() <= bits:
        return number
    return Fraction(-((-number.numerator << bits) // number.denominator), 1 << bits)


def _sum(one: Privacy, other: Privacy) -> Privacy:
    both = one + other
    return Privacy(short(both.epsilon), min(short(both.delta), Fraction(1)))
