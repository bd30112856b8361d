"""The rules of composition of a ledger: the total cost of a history of charges.

A rule adds one cost to a total in time that does not depend on the length of the history. No rule
ever lowers what is spent, and every number is rounded up.

Proof:      docs/proofs/ledger.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Protocol

from privmax.composition import epsilon_of_rho, price_by_concentration
from privmax.errors import ParameterError
from privmax.ledger.events import Charge, exact_text, label, privacy_json, privacy_of
from privmax.noise.balls import START, above, precision
from privmax.numbers import exact, plain
from privmax.privacy import LEAST, Privacy, relation

BITS = 192
"""A sum whose denominator has more bits is rounded up to a multiple of 2^-BITS, so that rows stay
short.
"""

TOLERANCE = Fraction(1, 1 << 40)
"""The relative difference allowed between a recorded total and the one computed again: orders are
chosen in floats.
"""

BASIC: Final = "basic"
ZCDP: Final = "zcdp"
PLD: Final = "pld"

GRID = 1 << 64
"""A cost of all charges together is rounded up to a multiple of 1/GRID."""

MOST = 1 << 40
"""The largest rho for which an order is sought."""

STEPS = 1 << 13
"""Privacy loss distributions live on multiples of 1/STEPS."""

WIDEST = 64
"""A sum of epsilons above which distributions are not computed: they would take long and say
nothing.
"""

DIFFERENT = 32
"""The most different costs for which privacy loss distributions are convolved."""

ROOM = Fraction(1, 1 << 20)
"""The part of its slack that `Convolution` leaves: other machines can prove what one recorded."""

OLD_ROOM, OLD_ROOM_EACH = Fraction(1, 1 << 9), Fraction(1, 1 << 48)
"""The most that older versions left of the slack, and in addition for each charge of at least a
thousand.
"""

_NOTHING = Privacy(0)


@dataclass(frozen=True)
class Total:
    """A budget and what is spent of it.

    Args:
        state: What the rule has added up, as JSON.
        neighbors: The relation that all charges are stated for, fixed by the first; None: there was
            no charge yet.
        unit: What all charges hide ("user", "basket", "row"), fixed by the first that says so, and
            all after it must; None: none did.
    """

    budget: Privacy
    spent: Privacy
    state: Mapping[str, Any]
    neighbors: str | None = None
    unit: str | None = None

    def fits(self) -> bool:
        return self.spent.epsilon <= self.budget.epsilon and self.spent.delta <= self.budget.delta

    def left(self) -> Privacy:
        return less(self.budget, self.spent)

    def takes(self, charge: Charge) -> bool:
        """Return whether a cost is stated for the relation and the unit of the charges so far.

        Only then do they add up.
        """
        return self.neighbors in (None, charge.neighbors) and self.unit in (None, charge.unit)

    def bind(self, charge: Charge) -> Total:
        """Return the same, held to the relation and the unit of a cost."""
        return replace(
            self, neighbors=charge.neighbors, unit=self.unit if charge.unit is None else charge.unit
        )

    def grant(self, more: Privacy) -> Total:
        return replace(self, budget=self.budget + more)

    def as_json(self) -> dict[str, Any]:
        prices = {"budget": privacy_json(self.budget), "spent": privacy_json(self.spent)}
        unit = (
            {} if self.unit is None else {"unit": self.unit}
        )  # as privmax 0.1.0 wrote it, where none is known
        return {**prices, "state": dict(self.state), "neighbors": self.neighbors, **unit}


def total_of(value: Mapping[str, Any]) -> Total:
    neighbors = value["neighbors"]
    if neighbors is not None:
        relation(neighbors)
    unit = value.get("unit")
    if unit is not None:
        label("unit", unit)
    return Total(
        privacy_of(value["budget"]), privacy_of(value["spent"]), value["state"], neighbors, unit
    )


class CompositionRule(Protocol):
    """A rule by which costs add up."""

    name: str

    def start(self, budget: Privacy, like: Total | None = None) -> Total:
        """Return the total of a new budget, of which nothing is spent.

        `like`: as an older version wrote it, if that wrote this one.
        """

    def add(self, total: Total, charge: Charge) -> Total:
        """Return what is spent after one more charge.

        Whether it fits, and whether `total` takes it, is not asked here.
        """

    def counts(self, total: Total, charge: Charge, later: Total) -> bool:
        """Return whether `later` is what `add` makes of `total` and one more charge.

        They may differ in what floats may differ in.
        """

    def is_near(self, expected: Total, spent: Privacy) -> bool:
        """Return whether another machine may have recorded this as spent by a total."""

    def check(self, total: Total) -> None:
        """Raise what comes of reading sums that cannot be read, as in a damaged file."""


class Basic:
    """Epsilons and deltas add."""

    name = BASIC

    def start(self, budget: Privacy, like: Total | None = None) -> Total:
        return Total(budget, _NOTHING, {})

    def add(self, total: Total, charge: Charge) -> Total:
        return replace(total.bind(charge), spent=_sum(total.spent, charge.privacy))

    def counts(self, total: Total, charge: Charge, later: Total) -> bool:
        return total.takes(charge) and later == self.add(total, charge)

    def is_near(self, expected: Total, spent: Privacy) -> bool:
        return expected.spent == spent

    def check(self, total: Total) -> None:
        pass


class Conversion:
    """Rules that add up all charges together, at a delta of their own.

    That delta, the slack, is half of the first delta of the budget. It never changes, counts as
    spent from the first charge on, and is never spent again: only so is the cost a theorem when
    requests are chosen by what earlier answers said. Epsilon is the lesser of the sum and of what
    the rule makes of its tally.
    """

    name: str

    def start(self, budget: Privacy, like: Total | None = None) -> Total:
        return Total(budget, Privacy(0), self._state(_NOTHING, budget.delta / 2, self._none()))

    def add(self, total: Total, charge: Charge) -> Total:
        state = self._add_price(total.state, charge)
        sums, slack = privacy_of(state), exact("slack", state["slack"])
        spent = Privacy(
            max(total.spent.epsilon, self._least(state)),
            min(short(sums.delta + slack), Fraction(1)),
        )
        return replace(total.bind(charge), spent=spent, state=state)

    def counts(self, total: Total, charge: Charge, later: Total) -> bool:
        if not total.takes(charge) or later.state != self._add_price(total.state, charge):
            return False
        expected = self.add(total, charge)
        if later != replace(expected, spent=later.spent):
            return False
        return total.spent.epsilon <= later.spent.epsilon and self.is_near(expected, later.spent)

    def is_near(self, expected: Total, spent: Privacy) -> bool:
        return close(expected.spent, spent)

    def check(self, total: Total) -> None:
        self._add_price(total.state, Charge(_NOTHING))

    def _add_price(self, state: Mapping[str, Any], charge: Charge) -> dict[str, Any]:
        sums = _sum(privacy_of(state), charge.privacy)
        return {
            **state,
            **self._state(sums, exact("slack", state["slack"]), self._more(state, charge)),
        }

    def _least(self, state: Mapping[str, Any]) -> Fraction:
        """Return the least epsilon that is proved for all charges."""
        sums, slack = privacy_of(state), exact("slack", state["slack"])
        together = self._epsilon(state["tally"], slack) if slack else None
        return sums.epsilon if together is None else min(sums.epsilon, together)

    def _state(self, sums: Privacy, slack: Fraction, tally: object) -> dict[str, Any]:
        return {**privacy_json(sums), "slack": exact_text(slack), "tally": tally}

    def _none(self) -> Any:
        """Return the tally of no charges, as JSON."""
        raise NotImplementedError

    def _more(self, state: Mapping[str, Any], charge: Charge) -> Any:
        """Return the tally with one more charge."""
        raise NotImplementedError

    def _epsilon(self, tally: Any, slack: Fraction) -> Fraction | None:
        """Return what the charges of a tally cost together at a delta of `slack`.

        Their own deltas are not counted.

        None: no better than their sum.
        """
        raise NotImplementedError


class Concentration(Conversion):
    """Zero-concentrated differential privacy.

    The tally is the sum of ε²/2, or of ε²/8 for draws of bounded range, or of the rho that a charge
    states.

    A charge that states its rho is counted without its delta. From then on the sum of epsilons
    says nothing, as that delta is not counted: the state has the route "tally". Where a total has
    no slack, as an account without delta, stated rhos are not used.
    """

    name = ZCDP
    _route: Final = {"route": "tally"}

    def _none(self) -> str:
        return "0"

    def _add_price(self, state: Mapping[str, Any], charge: Charge) -> dict[str, Any]:
        if _states_rho(state, charge) and charge.privacy.delta:
            without_delta = replace(charge, privacy=Privacy(charge.privacy.epsilon))
            return {**super()._add_price(state, without_delta), **self._route}
        return super()._add_price(state, charge)

    def _more(self, state: Mapping[str, Any], charge: Charge) -> str:
        square = charge.privacy.epsilon**2
        rho = square / 8 if charge.bounded_range and not charge.privacy.delta else square / 2
        if charge.rho is not None and _states_rho(state, charge):
            rho = charge.rho
        return exact_text(short(exact("tally", state["tally"]) + rho))

    def _least(self, state: Mapping[str, Any]) -> Fraction:
        if "route" in state:
            return epsilon_of_rho(exact("tally", state["tally"]), exact("slack", state["slack"]))
        return super()._least(state)

    def _epsilon(self, tally: str, slack: Fraction) -> Fraction | None:
        rho = exact("tally", tally)
        if rho > MOST or slack < LEAST:  # where the order could not be chosen in floats
            return None
        with precision(START):
            # A round of range 1 has rho 1/8: so many of them, a fraction too, have the rho of the
            # tally.
            cost = price_by_concentration(8 * rho, Fraction(1), slack)
            return Fraction(above(cost * GRID), GRID)


def _states_rho(state: Mapping[str, Any], charge: Charge) -> bool:
    """Return whether a charge is counted by the rho it states."""
    return charge.rho is not None and exact("slack", state["slack"]) >= LEAST


class Convolution(Conversion):
    """Privacy loss distributions.

    The tally counts charges by their epsilon.

    Epsilons are rounded up to a grid. For costs that do not depend on earlier answers. Each
    different cost takes a convolution, so if there are more than `DIFFERENT`, charges are counted
    at the next higher cost that is there, those first for which this costs least. Ledgers that
    version 0.1.0 made count all of them.

    What is recorded is computed for a little less than the slack. A machine that rounds otherwise
    accepts what it proves for the slack itself, up to what older versions recorded.
    """

    name = PLD

    def start(self, budget: Privacy, like: Total | None = None) -> Total:
        total = super().start(budget)
        if like is not None and "different" not in like.state:
            return total
        return replace(total, state={**total.state, "different": DIFFERENT})

    def _none(self) -> dict[str, int]:
        return {}

    def _more(self, state: Mapping[str, Any], charge: Charge) -> dict[str, int]:
        tally: dict[str, int] = state["tally"]
        steps = str(-(-charge.privacy.epsilon * STEPS // 1))
        more = {**tally, steps: tally.get(steps, 0) + 1}
        return more if "different" not in state else _merge(more, int(state["different"]))

    def _epsilon(self, tally: Mapping[str, int], slack: Fraction) -> Fraction | None:
        return _epsilon_of_responses(tally, slack * (1 - ROOM))

    def is_near(self, expected: Total, spent: Privacy) -> bool:
        if spent.delta != expected.spent.delta:
            return False
        if spent == expected.spent:
            return True
        state, slack = expected.state, exact("slack", expected.state["slack"])
        charges = sum(state["tally"].values())
        old = slack * (1 - OLD_ROOM) - OLD_ROOM_EACH * max(charges, 1000)
        least, most = (_epsilon_of_responses(state["tally"], delta) for delta in (slack, old))
        sums = privacy_of(state).epsilon
        least = sums if least is None else min(sums, least)
        most = sums if most is None else min(sums, most * (1 + TOLERANCE))
        return least <= spent.epsilon <= max(most, expected.spent.epsilon)


def _epsilon_of_responses(tally: Mapping[str, int], delta: Fraction) -> Fraction | None:
    """Return what as many randomized responses cost together as a tally counts."""
    counts = {int(steps): times for steps, times in tally.items()}
    width = sum(steps * times for steps, times in counts.items())
    if sum(counts.values()) < 2 or width > WIDEST * STEPS or delta < LEAST:
        return None
    from privmax.losses import response_epsilon  # with NumPy, which most ledgers do not need

    return response_epsilon(counts, Fraction(1, STEPS), delta)


def _merge(tally: Mapping[str, int], most: int) -> dict[str, int]:
    """Merge costs until the tally has at most so many.

    One at a time goes up to the next, the one for which that adds least.
    """
    counts = {int(steps): times for steps, times in tally.items()}
    while len(counts) > most:
        prices = sorted(counts)
        _, low, high = min(
            (counts[low] * (high - low), low, high) for low, high in pairwise(prices)
        )
        counts[high] += counts.pop(low)
    return {str(steps): times for steps, times in counts.items()}


RULES: Final[Mapping[str, CompositionRule]] = {
    rule.name: rule for rule in (Basic(), Concentration(), Convolution())
}


def rule_for(name: object, budget: Privacy) -> CompositionRule:
    """Return the rule of a new ledger, if it can be used with its budget."""
    rule = find_rule(name)
    if rule.name != BASIC and budget.delta / 2 < LEAST:
        raise ParameterError(
            "delta",
            plain(budget.delta),
            f"the rule {rule.name} needs a delta of at least {float(2 * LEAST)}",
            "Or use the rule basic.",
        )
    return rule


def find_rule(name: object) -> CompositionRule:
    if isinstance(name, str) and name in RULES:
        return RULES[name]
    raise ParameterError(
        "rule", name, f"it must be one of {', '.join(RULES)}", "If in doubt, use basic."
    )


def less(more: Privacy, spent: Privacy) -> Privacy:
    """Return the difference, 0 where it would be negative."""
    zero = Fraction(0)
    return Privacy(max(more.epsilon - spent.epsilon, zero), max(more.delta - spent.delta, zero))


def close(one: Privacy, other: Privacy) -> bool:
    """Return whether two totals are one cost, perhaps computed on different machines.

    Orders are chosen in floats.
    """
    return abs(one.epsilon - other.epsilon) <= TOLERANCE * one.epsilon and one.delta == other.delta


def short(number: Fraction, bits: int = BITS) -> Fraction:
    """Return the number if its denominator is short, else the next multiple of 2^-bits above."""
    if number.denominator.bit_length() <= bits:
        return number
    return Fraction(-((-number.numerator << bits) // number.denominator), 1 << bits)


def _sum(one: Privacy, other: Privacy) -> Privacy:
    epsilon, delta = short(one.epsilon + other.epsilon), short(one.delta + other.delta)
    return Privacy(epsilon, min(delta, Fraction(1)))
