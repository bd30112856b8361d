"""Chooses the mechanism that `select` uses by default, and says why. Only public facts enter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from privmax.errors import ParameterError
from privmax.mechanisms.contract import Mechanism, Outcome, closed_size, require_fit
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.registry import MECHANISMS, OPEN_REASON, registered_name
from privmax.mechanisms.sets import SetMechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, probability, whole
from privmax.privacy import ADD_REMOVE, DELTA_ADVICE, Neighbors, Privacy, relation
from privmax.profile import Profile
from privmax.universe import OPEN, Universe

if TYPE_CHECKING:
    from privmax.mechanisms.exponential import Exponential
    from privmax.mechanisms.peeling import Ranker
    from privmax.mechanisms.set_margin import SetMargin

MOST_ITEMS = 10_000
"""The largest set that a mechanism is chosen for."""

MOST_RANKED = 1000
"""The longest list in order that one is chosen for: a law of each further item is computed."""

MOST_CHOICE = 1 << 18
"""In a closed universe, how large k times the binary digits of its size may be: as many steps as
the lead of the slowest contender takes, in thousands.
"""

COMPARED_BY_MISSES = 200
"""The largest set for which what is missed on typical profiles is computed: in a closed universe
mechanisms are compared by it, and for larger sets by the lead they need, which is found faster.
"""

NO_LEAD = math.inf
"""The lead of a mechanism that no lead is enough for."""


class Choice(NamedTuple):
    """A mechanism, and why it is that one."""

    mechanism: Mechanism
    why: str


def auto(
    *,
    epsilon: Number,
    delta: Number,
    universe: object = OPEN,
    neighbors: str = ADD_REMOVE,
    growth: int | None = None,
    k: int = 1,
    ranked: bool = False,
) -> Choice:
    """Return the mechanism that `select` uses by default, and why, from public facts only.

    Args:
        epsilon: The privacy cost; a float means the decimal that it prints as.
        delta: Probability with which the guarantee may fail; may be 0 only in a closed universe.
        universe: "open", how many candidates there are, or all their labels.
        neighbors: "add-remove" or "replace".
        growth: How many candidates one individual's record touches at most, if there is a bound.
        k: How many items are released.
        ranked: Whether their order is, too, which costs more.

    Examples:
        >>> mechanism, why = auto(epsilon=1, delta="1e-6", universe=10)
        >>> type(mechanism).__name__
        'PermuteAndFlip'
        >>> auto(epsilon=1, delta="1e-6", k=10).why
        'the universe is open'
        >>> auto(epsilon=1, delta="1e-6", k=10, ranked=True).why
        'the universe is open; an order needs a lead of 41 records, a set 25; items less than...
    """
    size = Universe.of(universe).size
    price = check_price(epsilon, delta, neighbors, growth, is_open=size is None)
    rule = relation(neighbors)
    most = MOST_RANKED if ranked else MOST_ITEMS
    k = whole("k", k)
    if k > most:
        raise ParameterError(
            "k", k, f"it must be at most {most:,}{' with their order' if ranked else ''}: which "
                    "mechanism is best for longer lists takes too long to find out",
            "Ask for fewer, or give a mechanism.",
        )  # fmt: skip
    if size is not None and k * size.bit_length() > MOST_CHOICE:
        raise ParameterError(
            "k", k, f"in a universe of about 2^{size.bit_length()} it must be at most "
                    f"{MOST_CHOICE // size.bit_length():,}: which mechanism is best takes too long "
                    "to find out",
            "Ask for fewer, declare a smaller universe, or give a mechanism.",
        )  # fmt: skip
    if k > 1:
        return (_choose_list if ranked else _choose_set)(price, size, rule, growth, k)
    if size is None:
        return Choice(_nested_margin(price, rule, growth), OPEN_REASON)
    from privmax.mechanisms.permute_and_flip import PermuteAndFlip

    flip = PermuteAndFlip(epsilon=price.epsilon, neighbors=rule)
    if price.delta == 0:
        return Choice(flip, "delta is 0")
    if size * price.delta <= 1:
        few = int(1 / price.delta)
        return Choice(
            flip, f"the universe is closed and small (at most 1/delta = {few} candidates)"
        )
    return _choose_least_lead([flip, _nested_margin(price, rule, growth)], size)


def check_price(
    epsilon: Number, delta: Number, neighbors: str | None, growth: int | None, *, is_open: bool
) -> Privacy:
    """Epsilon and delta, exactly, unless the options cannot be met."""
    if growth is not None:
        whole("growth", growth)
    if probability("delta", delta) == 1:
        raise ParameterError(
            "delta", delta, "it must be below 1", "A delta of 1 guarantees nothing."
        )
    if neighbors is not None:
        relation(neighbors)
    price = Privacy(positive("epsilon", epsilon), probability("delta", delta))
    if is_open and price.delta == 0:
        raise ParameterError(
            "delta", 0, "an open universe needs a delta above 0, because without one every "
            "candidate must have a chance, and those without a score cannot be listed",
            f"Give a small delta ({DELTA_ADVICE}), or declare the universe.",
        )  # fmt: skip
    return price


def _nested_margin(price: Privacy, neighbors: Neighbors, growth: int | None) -> NestedMargin:
    return NestedMargin(
        epsilon=price.epsilon, delta=price.delta, neighbors=neighbors, growth=growth
    )


def _choose_set(
    price: Privacy, size: int | None, neighbors: Neighbors, growth: int | None, k: int
) -> Choice:
    """The same for the best k."""
    from privmax.mechanisms.set_margin import SetMargin

    epsilon, delta = Fraction(price.epsilon), Fraction(price.delta)
    margin = SetMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k)
    if size is None:
        return Choice(margin, OPEN_REASON)
    _check_number(k, size)
    contenders = _set_contenders(price, neighbors, k)
    if k > COMPARED_BY_MISSES:
        return _choose_least_lead(contenders, size)
    return _choose_fewest_misses(contenders, size)


def _set_contenders(
    price: Privacy, neighbors: Neighbors, k: int
) -> tuple[SetMargin | Exponential, ...]:
    """Return mechanisms that release the best k of a closed universe, with their order or without.

    Of equals the first is chosen: a delta that buys nothing is not charged. JointExponential is
    not among them: drawing a set by its worst place is what SetMargin without delta does.
    """
    from privmax.mechanisms.exponential import Exponential
    from privmax.mechanisms.set_margin import SetMargin

    epsilon, delta = Fraction(price.epsilon), Fraction(price.delta)
    pure = SetMargin(epsilon=epsilon, neighbors=neighbors, k=k)
    guarded = SetMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k)
    return (
        *((pure, guarded) if delta else (pure,)),
        Exponential(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k),
    )


def _check_number(k: int, size: int) -> None:
    if k > size:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Ask for fewer."
        )


def _choose_list(
    price: Privacy, size: int | None, neighbors: Neighbors, growth: int | None, k: int
) -> Choice:
    """The same for the best k in order."""
    from privmax.mechanisms.exponential import Exponential
    from privmax.mechanisms.joint_exponential import JointExponential
    from privmax.mechanisms.ranked_margin import RankedMargin
    from privmax.mechanisms.set_margin import SetMargin
    from privmax.mechanisms.sharp_margin import SharpMargin

    epsilon, delta = Fraction(price.epsilon), Fraction(price.delta)
    ranked = RankedMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth, k=k)
    if size is None:
        margin = SetMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k)
        needed, unranked = map(_describe_lead, _leads((ranked, margin), None))
        return Choice(
            ranked,
            f"{OPEN_REASON}; an order needs a lead of {needed} records, a set {unranked}; "
            f"items less than {ranked.apart()} records apart may be in the wrong order",
        )
    _check_number(k, size)
    contenders: list[Mechanism] = [
        Exponential(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k),
        JointExponential(epsilon=epsilon, neighbors=neighbors, k=k),
    ]
    if delta:
        contenders.append(
            SharpMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth, k=k)
        )
    contenders.append(ranked)
    mechanism, why = _choose_least_lead(contenders, size)
    unranked = _describe_lead(min(_leads(_set_contenders(price, neighbors, k), size)))
    return Choice(mechanism, f"{why}; a set needs {unranked}")


def _choose_fewest_misses(contenders: Sequence[SetMargin | Exponential], universe: int) -> Choice:
    """The one that misses least on typical profiles, the first of equals; and how much all do."""
    from privmax.typical import show_part, typical_misses

    missed = [typical_misses(mechanism, universe) for mechanism in contenders]
    best = min(range(len(missed)), key=missed.__getitem__)
    each = [
        f"{name} {show_part(part)}"
        for name, part in zip(_contender_names(contenders), missed, strict=True)
    ]
    return Choice(contenders[best], f"what is missed on typical scores: {', '.join(each)}")


def _choose_least_lead(contenders: Sequence[Mechanism], universe: int) -> Choice:
    """The one that needs the smallest lead for 95 % success, the first of equals; and by how much
    all of them do.

    By that lead the order of two items is clear as well: where it comes from noisy counts, the
    difference from which on they are told apart counts, if it is larger.
    """
    from privmax.mechanisms.ranked_margin import RankedMargin

    leads = [
        max(lead, mechanism.apart()) if isinstance(mechanism, RankedMargin) else lead
        for mechanism, lead in zip(contenders, _leads(tuple(contenders), universe), strict=True)
    ]
    best = min(range(len(leads)), key=leads.__getitem__)
    each = [
        f"{name} {_describe_lead(lead)}"
        for name, lead in zip(_contender_names(contenders), leads, strict=True)
    ]
    return Choice(contenders[best], f"the lead needed here, in records: {', '.join(each)}")


def _contender_names(contenders: Sequence[Mechanism]) -> list[str]:
    """Their names; where two have the same, the one without delta says so."""
    names = [type(mechanism).__name__ for mechanism in contenders]
    return [
        f"{name}{' (delta 0)' if names.count(name) > 1 and not mechanism.privacy().delta else ''}"
        for name, mechanism in zip(names, contenders, strict=True)
    ]


@lru_cache(maxsize=256)
def _leads(contenders: tuple[Mechanism, ...], universe: int | None) -> list[float]:
    return [_lead(mechanism, universe) for mechanism in contenders]


def _lead(mechanism: Mechanism, universe: int | None) -> float:
    try:
        return mechanism.lead(candidates=universe, near=mechanism.k)
    except ParameterError as refusal:
        if refusal.name != "success":
            raise
        return NO_LEAD


def _describe_lead(lead: float) -> str:
    return "beyond all" if lead == NO_LEAD else str(lead)


def check_service(mechanism: Mechanism, universe: int | None) -> None:
    """Refuse a universe that a mechanism cannot draw from, before anything is read or charged.

    Mechanisms of this library say so by what they are. Another one is tried: it draws once from
    invented scores, all 0 in a universe as large, and what it draws is thrown away.
    """
    nobody = Profile([], universe=universe)
    name = registered_name(mechanism)
    if name is None:
        draw_outcomes(mechanism, nobody, SYSTEM)
        return
    entry = MECHANISMS[name]
    # What may abstain has a use for delta in an open universe; without one it needs a closed one.
    if entry.needs_closed or (entry.pure and not mechanism.privacy().delta):
        closed_size(nobody)
    require_fit(mechanism.k, nobody)


def draw_outcomes(mechanism: Mechanism, profile: Profile, coins: Coins) -> Sequence[Outcome]:
    """Draw from a mechanism: one outcome, or up to k, best first where their order is released."""
    if isinstance(mechanism, SetMechanism):
        return mechanism.subset(profile, coins)
    if mechanism.k > 1:
        return cast("Ranker", mechanism).ranking(profile, coins)
    return [mechanism.draw(profile, coins)]
