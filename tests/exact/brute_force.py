"""An auditor that shares nothing with `privmax.audit`: labelled data, records, public laws,
fractions.

It knows of the library only `privmax.law`, with labels as a user has them, and by score for a
`Profile`. Neighbours are made from records: a data set is what its records add up to, and one
record is added, removed or replaced. Nothing is taken to be symmetric: every assignment of scores
to labels is tried, and each pair both ways. The arithmetic is that of fractions, in which a float
is the number that it is; e^ε is enclosed by two decimals of fifty digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product
from math import fsum, isfinite
from typing import Any

from by_name import by_name

import privmax
from privmax.sources.scale import ROUNDING

LABELS = ("a", "b", "c")

Steps = tuple[int, ...]
"""The score of every label, in steps of the grid."""


@dataclass(frozen=True)
class Setting:
    """What the data is: which labels are known, what one record may do, and how scores are written
    down.

    sensitivity   by how many steps one record moves a score at most
    growth        how many labels one record touches at most
    step          None: scores are integers, and whoever is at 0 is not listed. Otherwise floats in
                  such steps
    """

    universe: str = "closed"
    neighbors: str = "add-remove"
    sensitivity: int = 1
    growth: int = len(LABELS)
    step: str | None = None
    highest: int = 2

    def options(self) -> dict[str, Any]:
        """How a user says so."""
        told: dict[str, Any] = {"universe": LABELS if self.universe == "closed" else "open"}
        if self.step is None:
            return told | {"sensitivity": self.sensitivity}
        return told | {
            # so that it is these steps with the room for rounding that a grid counts beside them
            "sensitivity": str(self.sensitivity * Fraction(self.step) / (1 + ROUNDING)),
            "resolution": self.step,
        }

    def data(self, steps: Steps) -> dict[str, int | float]:
        """The data set as a user has it."""
        if self.step is None:
            return {label: score for label, score in zip(LABELS, steps, strict=True) if score}
        return {
            label: float(score * Fraction(self.step))
            for label, score in zip(LABELS, steps, strict=True)
        }

    def profile(self, steps: Steps) -> privmax.Profile:
        """The same without labels."""
        listed = [score for score in steps if score or self.universe == "closed"]
        levels = [(score, listed.count(score)) for score in sorted(set(listed))]
        size = len(LABELS) if self.universe == "closed" else None
        return privmax.Profile(levels, universe=size, sensitivity=self.sensitivity)

    def records(self) -> list[Steps]:
        """Everything that one individual may contribute, nothing included."""
        amounts = product(range(self.sensitivity + 1), repeat=len(LABELS))
        return [record for record in amounts if sum(map(bool, record)) <= self.growth]

    def data_sets(self) -> Iterator[Steps]:
        yield from product(range(self.highest + 1), repeat=len(LABELS))

    def neighbours(self, here: Steps) -> set[Steps]:
        """All data sets one record away. In an open universe scores are counts, and not
        negative.
        """
        records = self.records()
        without = {minus(here, record) for record in records}
        if self.neighbors == "add-remove":
            found = without | {plus(here, record) for record in records}
        else:
            found = {plus(rest, record) for rest in without for record in records}
        least = 0 if self.universe == "open" else -self.sensitivity
        return {there for there in found if min(there) >= least} - {here}


def plus(left: Steps, right: Steps) -> Steps:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def minus(left: Steps, right: Steps) -> Steps:
    return tuple(a - b for a, b in zip(left, right, strict=True))


@dataclass(frozen=True)
class Chances:
    """The law of the answer by label, None: no answer.

    value, low, high   of each outcome: what it says, and between what the truth lies; 0 means 0
    error              how far each may be off
    """

    value: dict[Any, Fraction]
    low: dict[Any, Fraction]
    high: dict[Any, Fraction]
    error: Fraction


class NoLawError(Exception):
    """What should be a law is none."""


def chances(table: dict[Any, float], error: float) -> Chances:
    """A law, unless it is none: numbers from 0 to 1 that add up to 1, all within the error that is
    stated for each.
    """
    if not all(isfinite(value) and -error <= value <= 1 + error for value in table.values()):
        raise NoLawError("a probability is not one")
    slack = Fraction(error) * len(table) + Fraction(len(table), 1 << 52)
    if abs(1 - sum(map(Fraction, table.values()))) > slack:
        raise NoLawError(f"the probabilities add up to {fsum(table.values())}")
    values = {outcome: max(Fraction(0), Fraction(value)) for outcome, value in table.items()}
    low = {outcome: max(Fraction(0), value - slack) for outcome, value in values.items()}
    high = {outcome: value + slack if value else value for outcome, value in values.items()}
    return Chances(values, low, high, slack)


def public_law(mechanism: Any, setting: Setting) -> Callable[[Steps], Chances]:
    """The law that `privmax.law` tells of a mechanism, on data of a setting.

    By label what is missing counts as no answer, so the law by score is asked as well: it must add
    up without that, and the two must agree.
    """

    @cache
    def law(steps: Steps) -> Chances:
        named = by_name(privmax.law, setting.data(steps), mechanism=mechanism, **setting.options())
        by_score = privmax.law(setting.profile(steps), mechanism=mechanism)
        rows = [*(chance for _, _, chance in by_score.blocks), by_score.none]
        chances(dict(enumerate(rows)), by_score.error)
        found = chances(named, by_score.error)
        if abs(found.value[None] - Fraction(by_score.none)) > found.error:
            raise NoLawError("the labels do not share all that is not for nothing")
        return found

    return law


@dataclass(frozen=True)
class Finding:
    """The worst pair.

    delta     what it needs, with the numbers as they are
    least     what it needs for certain
    pair      the two data sets
    vanished  a pair of which one data set allows, for certain, what the other says is impossible;
              None: there is none
    pairs     how many were compared
    """

    delta: Fraction
    least: Fraction
    pair: tuple[Steps, Steps]
    vanished: tuple[Steps, Steps] | None
    pairs: int

    def breaks(self, claim: privmax.Privacy) -> bool:
        return self.least > claim.delta or (claim.delta == 0 and self.vanished is not None)


def audit(law: Callable[[Steps], Chances], setting: Setting, epsilon: Fraction) -> Finding:
    """Compare the law on every data set with that on all its neighbours, both ways."""
    low, high = power(epsilon)
    laws: dict[Steps, Chances] = {}
    allowed: dict[Steps, tuple[dict[Any, Fraction], dict[Any, Fraction]]] = {}

    def known(steps: Steps) -> Chances:
        if steps not in laws:
            found = laws[steps] = law(steps)
            allowed[steps] = (
                {outcome: high * chance for outcome, chance in found.high.items()},
                {outcome: low * chance for outcome, chance in found.value.items()},
            )
        return laws[steps]

    worst: tuple[Fraction, Fraction, tuple[Steps, Steps]] | None = None
    vanished, pairs = None, 0
    for start in setting.data_sets():
        for other in setting.neighbours(start):
            for here, there in ((start, other), (other, start)):
                p, q = known(here), known(there)
                most, near = allowed[there]
                pairs += 1
                least, delta = excess(p.low, most), excess(p.value, near)
                if worst is None or (least, delta) > worst[:2]:
                    worst = least, delta, (here, there)
                if vanished is None and any(
                    chance and not q.high.get(outcome) for outcome, chance in p.low.items()
                ):
                    vanished = here, there
    if worst is None:
        raise ValueError("nothing was compared")
    least, delta, pair = worst
    return Finding(delta, least, pair, vanished, pairs)


def excess(left: dict[Any, Fraction], right: dict[Any, Fraction]) -> Fraction:
    """By how much the outcomes of the left exceed those of the right, where they do."""
    zero = Fraction(0)
    found = zero
    for outcome, chance in left.items():
        other = right.get(outcome, zero)
        if chance > other:
            found += chance - other
    return found


def power(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions with e^epsilon between them."""
    with localcontext() as context:
        context.prec = 60
        near = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    tenth = Fraction(near) / 10**50
    return Fraction(near) - tenth, Fraction(near) + tenth
