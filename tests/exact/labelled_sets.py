"""The law of a set over labels, twice: enumerated from the definition, and as a mechanism tells it.

`enumerated` knows nothing of the library but the names of parameters. It lists every order that may
break ties, every set, and what each weighs, in decimals of thirty digits; the guard is the sum over
ranks and not over cells, and the test of the best set is its recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from math import ceil, comb, factorial
from typing import Any

Scores = tuple[int, ...]
Sets = dict[frozenset[int], float]
"""The probability of each set of places; the empty one is nothing."""


def enumerated(
    scores: Scores,
    stages: Sequence[Any],
    epsilon: Any,
    delta: Any,
    *,
    c: int = 1,
    sensitivity: int = 1,
    is_open: bool = True,
) -> Sets:
    """The law of a cascade, from its definition.

    Places at 0 of an open universe are unseen; dummies come before them.
    """
    found: dict[frozenset[int], Decimal] = {}
    with localcontext() as context:
        context.prec = 30
        reach, left = Decimal(1), Fraction(epsilon)
        for stage in stages:
            nothing, sets = one_stage(
                scores, stage, left, Fraction(delta) * stage.part, c * sensitivity, is_open
            )
            for chosen, chance in sets.items():
                found[chosen] = found.get(chosen, Decimal(0)) + reach * chance
            reach *= nothing
            left *= 1 - stage.silence
        found[frozenset()] = found.get(frozenset(), Decimal(0)) + reach
    return {chosen: float(chance) for chosen, chance in found.items()}


def one_stage(
    scores: Scores, stage: Any, epsilon: Fraction, delta: Fraction, unit: int, is_open: bool
) -> tuple[Decimal, dict[frozenset[int], Decimal]]:
    """The probability of nothing, and of each set."""
    seen = [place for place, score in enumerate(scores) if score > 0 or not is_open]
    silence, sets = Decimal(0), dict[frozenset[int], Decimal]()
    for order in permutations(seen):
        ranked = sorted(order, key=lambda place: -scores[place])
        dummies = [-1 - number for number in range(stage.width + 1)] if is_open else []
        everybody = [*ranked, *dummies]
        score = {place: scores[place] if place >= 0 else 0 for place in everybody}
        nothing, chances = one_order(everybody, score, stage, epsilon, delta, unit)
        silence += nothing / factorial(len(seen))
        for chosen, chance in chances.items():
            named = frozenset(place for place in chosen if place >= 0)
            sets[named] = sets.get(named, Decimal(0)) + chance / factorial(len(seen))
    return silence, sets


def one_order(
    everybody: list[int],
    score: dict[int, int],
    stage: Any,
    epsilon: Fraction,
    delta: Fraction,
    unit: int,
) -> tuple[Decimal, dict[frozenset[int], Decimal]]:
    """The same where ties are broken by the order of the list."""
    size, top = stage.size, everybody[: stage.width]
    q = [0, *(score[place] for place in everybody)]  # by rank, from 1
    if len(top) == size < len(everybody):
        steps = ceil(Fraction(q[size] - q[size + 1], unit))
        chance = Decimal(0)
        for _ in range(steps):
            rise = power(epsilon) * chance + decimal(delta)
            chance = min(rise, 1 - power(-stage.silence * epsilon) * (1 - chance))
        return 1 - chance, {frozenset(top): chance}
    a, b = stage.tilt * epsilon / unit, (1 - stage.tilt) * epsilon / unit
    weights = {}
    for chosen in combinations(top, size):
        outside = [score[place] for place in everybody if place not in chosen]
        worst = min(score[place] for place in chosen)
        weights[frozenset(chosen)] = power(a * worst - b * max(outside, default=0))
    total = sum(weights.values())
    if len(top) == len(everybody):  # all there are
        nothing = Decimal(0)
    else:
        f, width = q[stage.width + 1], stage.width
        bound = power(-b * (q[size] - unit)) + sum(
            comb(width - h - 1, size - h) * power(-b * q[h + 1]) for h in range(size)
        )
        guard = decimal(stage.silence / delta) * power(a * (f + unit)) * bound
        nothing = (guard / (guard + total)) ** decimal(stage.silence)
    return nothing, {chosen: (1 - nothing) * w / total for chosen, w in weights.items()}


def power(exponent: Fraction) -> Decimal:
    return decimal(exponent).exp()


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def stated(law: Any, scores: Scores, *, is_open: bool) -> Sets:
    """The law that a mechanism tells, `Sets`, over places: all with the same numbers are equally
    likely.
    """
    level = [score if law.floor is None else max(score, law.floor) for score in scores]
    members = [
        [
            place
            for place, score in enumerate(level)
            if score == top and not (is_open and scores[place] <= 0)
        ]
        for top, _ in law.blocks
    ]
    found: Sets = {}
    for numbers, chance in law.chances.items():
        parts = [combinations(block, held) for block, held in zip(members, numbers, strict=True)]
        sets = [frozenset(chain(*chosen)) for chosen in product(*map(list, parts))]
        for chosen in sets:
            found[chosen] = found.get(chosen, 0.0) + chance / len(sets)
    return found
