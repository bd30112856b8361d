"""What a history of charges costs: the rules of composition a ledger can be made with.

A rule adds one cost to a total in time that does not depend on the length of the history. No rule
ever lowers what is spent, and every number is rounded up.

Proof:      docs/proofs/ledger.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, Protocol

from privmax.composition import epsilon_of_rho, price_by_concentration
from privmax.errors import LedgerError, ParameterError, explain_install
from privmax.ledger.events import Charge, exact_text, label, privacy_json, privacy_of
from privmax.noise.balls import START, above, precision
from privmax.numbers import exact, plain
from privmax.privacy import Privacy, relation

BITS = 192
"""A sum whose denominator has more bits is rounded up to a multiple of 2^-BITS, so that rows stay
short.
"""

TOLERANCE = Fraction(1, 1 << 40)
"""How far, relatively, a recorded total may be from the one computed again."""

BASIC: Final = "basic"
ZCDP: Final = "zcdp"
PLD: Final = "pld"

GRID = 1 << 64
"""A cost of all charges together is rounded up to a multiple of 1/GRID."""

MOST = 1 << 40
LEAST = Fraction(1, 1 << 200)
"""The largest rho and the least slack for which an order is sought."""

STEPS = 1 << 13
"""Privacy loss distributions live on multiples of 1/STEPS."""

WIDEST = 64
"""A sum of epsilons above which distributions are not computed: they would take long and say
nothing.
"""

DIFFERENT = 32
"""How many different costs privacy loss distributions are convolved for, at most."""

FLOATS = 1e-15
"""How much of delta the rounding of floats may cost a charge, of at least a thousand: fifty times
what was seen.
"""

LEAST_PLD = Fraction(1, 10**9)
"""The least slack for which distributions, in floats, say anything."""

_NOTHING = Privacy(0)


@dataclass(frozen=True)
class Total:
    """A budget and what is spent of it.

    state       what the rule has added up, as JSON
    neighbors   the relation that all charges are stated for, fixed by the first; None: there was no
                charge yet
    unit        what all charges hide ("user", "basket", "row"), fixed by the first that says so,
                and all after it must; None: none did
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

    def says_unit(self, charge: Charge) -> bool:
        """Return whether a cost says as much of its unit as the charges so far do.

        Ledgers of privmax 0.1.0 said nothing, and go on with a cost that does.
        """
        return self.neighbors is None or self.unit == charge.unit

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


class Rule(Protocol):
    """How costs add up."""

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
        try:
            expected = self.add(total, charge)
        except (
            LedgerError
        ):  # without the package of the rule nothing is charged here, but the ledger may be read
            expected = replace(total.bind(charge), spent=later.spent, state=later.state)
            return later == expected and total.spent.epsilon <= later.spent.epsilon
        return close(expected.spent, later.spent) and later == replace(expected, spent=later.spent)

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
            free = replace(charge, privacy=Privacy(charge.privacy.epsilon))
            return {**super()._add_price(state, free), **self._route}
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
    """Privacy loss distributions, by the package dp-accounting.

    The tally counts charges by their epsilon.

    Epsilons are rounded up to the grid of the distributions. For costs that do not depend on
    earlier answers. Each different cost takes a convolution, so if there are more than
    `DIFFERENT`, charges are counted at the next higher cost that is there, those first for which
    this costs least. Ledgers that version 0.1.0 made count all of them.
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
        counts = {int(steps): times for steps, times in tally.items()}
        charges, width = sum(counts.values()), sum(steps * times for steps, times in counts.items())
        target = float(slack) * (1 - 1e-3) - FLOATS * max(charges, 1000)
        if charges < 2 or width > WIDEST * STEPS or target <= 0:
            return None
        distributions, common = _losses()
        whole: Any = None
        for steps, times in sorted(counts.items()):
            pair = common.DifferentialPrivacyParameters(steps / STEPS, 0.0)
            part = distributions.from_privacy_parameters(
                pair, value_discretization_interval=1 / STEPS
            )
            part = part.self_compose(times) if times > 1 else part
            whole = part if whole is None else whole.compose(part)
        epsilon = whole.get_epsilon_for_delta(target)
        return Fraction(epsilon) * (1 + TOLERANCE) if math.isfinite(epsilon) else None


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


def _losses() -> tuple[Any, Any]:
    """Return the modules of dp-accounting; it ships no types."""
    try:
        names = "privacy_loss_distribution", "common"
        one, other = (import_module(f"dp_accounting.pld.{name}") for name in names)
    except ImportError:
        raise LedgerError(
            'The rule "pld" needs a package that is not installed. ' + explain_install("pld")
        ) from None
    return one, other


RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule for rule in (Basic(), Concentration(), Convolution())
}


def rule_for(name: object, budget: Privacy) -> Rule:
    """Return the rule of a new ledger, if it can be used with its budget."""
    rule = find_rule(name)
    least = LEAST_PLD if rule.name == PLD else LEAST
    if rule.name != BASIC and budget.delta / 2 < least:
        raise ParameterError(
            "delta",
            plain(budget.delta),
            f"the rule {rule.name} needs a delta of at least {float(2 * least)}",
            "Or use the rule basic.",
        )
    if rule.name == PLD:
        _losses()
    return rule


def find_rule(name: object) -> Rule:
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
