"""The best symmetric mechanism for few candidates, as a linear program with a certified value.

Candidates have scores from 0 to `top`. One with score 0 is never released (an open universe), and
one record moves any of them by 1, all the same way. A mechanism is a law for every sorted profile,
the same for candidates that are tied. That loses nothing: what is asked for is symmetric, and
averages of private mechanisms are private.

The solver works in floats with tolerances, and δ = 1e-6 is not far above them. So its answer only
proposes two certificates, which are checked in fractions: a law that is private for a rational
number below e^ε, whose value can be reached, and multipliers that prove an upper bound for a
rational number above e^ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

TIES, ALL = "ties", "all"
"""Where the mechanism must answer: the best are tied and all others are at 0, or the best is at
`top`, whatever the others are."""
SPARE = Fraction(1, 500)
"""Part of delta that the first program does without, so that its law survives rounding."""

Profile = tuple[int, ...]
Group = tuple[int, int, int]
"""Candidates of one score: the score before the record is removed, after it, and how many."""
Terms = dict[int, Fraction]
"""A linear form in the variables."""


@dataclass
class Rows:
    """Inequalities: a linear form is at most a number."""

    width: int
    forms: list[Terms] = field(default_factory=list)
    bounds: list[Fraction] = field(default_factory=list)

    def new_variable(self) -> int:
        self.width += 1
        return self.width - 1

    def add(self, form: Terms, bound: Fraction) -> None:
        """Add a form, scaled so that its largest coefficient is a power of two near 1."""
        scale = Fraction(2) ** -round(math.log2(max(map(abs, form.values()))))
        self.forms.append({place: number * scale for place, number in form.items()})
        self.bounds.append(bound * scale)

    def matrix(self) -> tuple[csr_matrix, np.ndarray]:
        starts = np.cumsum([0, *(len(form) for form in self.forms)])
        places = [place for form in self.forms for place in form]
        numbers = [float(number) for form in self.forms for number in form.values()]
        shape = (len(self.forms), self.width)
        return csr_matrix((numbers, places, starts), shape=shape), np.array(
            [float(bound) for bound in self.bounds]
        )


@dataclass(frozen=True)
class Program:
    """What a mechanism for so many candidates with scores up to `top` can promise at best."""

    candidates: int
    top: int
    asked: str
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def profiles(self) -> list[Profile]:
        scores = range(self.top, -1, -1)
        return list(combinations_with_replacement(scores, self.candidates))

    @cached_property
    def places(self) -> dict[tuple[Profile, int], int]:
        """Where the chance of each candidate with a positive score is among the variables."""
        pairs = ((each, score) for each in self.profiles for score in dict.fromkeys(each) if score)
        return {pair: place for place, pair in enumerate(pairs)}

    @cached_property
    def units(self) -> list[Fraction]:
        """How a variable is scaled: about the most that its score allows, a power of two."""
        rate, delta = float(self.epsilon), float(self.delta)
        most = (min(1.0, delta * math.exp(rate * score)) for _, score in self.places)
        return [Fraction(2) ** math.ceil(math.log2(number)) for number in most]

    def solve(self) -> tuple[float, float]:
        """What can be reached for certain, and what certainly cannot be exceeded."""
        lower = self._rows(_beside(self.epsilon, -1), self.delta * (1 - SPARE))
        law = self._law(self._run(lower)[0])
        upper = self._rows(_beside(self.epsilon, 1), self.delta)
        return float(self._reached(law)), float(self._bound(upper, self._run(upper)[1]))

    def law(self) -> dict[Profile, dict[int, float]]:
        """An optimal law in floats: the chance of a candidate by score, for every profile."""
        found = self._law(self._run(self._rows(_beside(self.epsilon, -1), self.delta))[0])
        laws: dict[Profile, dict[int, float]] = {profile: {} for profile in self.profiles}
        for (profile, score), place in self.places.items():
            laws[profile][score] = float(found[place])
        return laws

    def removals(self) -> Iterator[tuple[Profile, Profile, list[Group]]]:
        """Every profile, and what it becomes when a record is removed."""
        for profile in self.profiles:
            levels = [(score, profile.count(score)) for score in dict.fromkeys(profile) if score]
            for falls in product(*(range(number + 1) for _, number in levels)):
                if any(falls):
                    pairs = list(zip(levels, falls, strict=True))
                    groups = [(score, score, many - fall) for (score, many), fall in pairs]
                    groups += [(score, score - 1, fall) for (score, _), fall in pairs]
                    groups = [group for group in groups if group[2]]
                    after = [0] * profile.count(0)
                    after += [score for _, score, many in groups for _ in range(many)]
                    yield profile, tuple(sorted(after, reverse=True)), groups

    def _is_asked(self, profile: Profile) -> bool:
        return profile[0] == self.top and (self.asked == ALL or set(profile) <= {0, self.top})

    def _total(self, profile: Profile) -> Terms:
        """The chance of an answer."""
        return {place: self.units[place] * profile.count(s) for place, s in self._at(profile)}

    def _rows(self, growth: Fraction, delta: Fraction) -> Rows:
        """The program: variables are chances, then the value, then what exceeds e^ε times."""
        value = len(self.places)
        rows = Rows(value + 1)
        for profile in self.profiles:
            if profile[0]:
                rows.add(self._total(profile), Fraction(1))
            if self._is_asked(profile):
                answer = {place: -number for place, number in self._total(profile).items()}
                rows.add({value: Fraction(1)} | answer, Fraction(0))
        for before, after, groups in self.removals():
            kept, gone = Fraction(1), -growth
            self._add_pair(rows, _Pair(before, after, groups, kept, gone), delta)
            self._add_pair(rows, _Pair(before, after, groups, gone, kept), delta)
        return rows

    def _add_pair(self, rows: Rows, pair: _Pair, delta: Fraction) -> None:
        """Limit what exceeds e^ε times the other chance, of all outcomes together, to delta."""
        excess: Terms = {}
        for form, bound, many in [*self._differences(pair), self._silence(pair)]:
            if any(number > 0 for number in form.values()):
                extra = rows.new_variable()  # in units of delta
                rows.add(form | {extra: -delta}, bound)
                excess[extra] = Fraction(many)
        rows.add(excess, Fraction(1))

    def _differences(self, pair: _Pair) -> Iterator[tuple[Terms, Fraction, int]]:
        for old, new, many in pair.groups:
            place = self.places[pair.before, old]
            form = {place: pair.factor * self.units[place]}
            if new:
                place = self.places[pair.after, new]
                form[place] = pair.other * self.units[place]
            yield form, Fraction(0), many

    def _silence(self, pair: _Pair) -> tuple[Terms, Fraction, int]:
        form = {place: -pair.factor * many for place, many in self._total(pair.before).items()}
        form |= {place: -pair.other * many for place, many in self._total(pair.after).items()}
        return form, -pair.factor - pair.other, 1

    def _run(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The solution in floats, and the multipliers of the rows."""
        matrix, bounds = rows.matrix()
        goal = np.zeros(rows.width)
        goal[len(self.places)] = -1
        found = linprog(goal, A_ub=matrix, b_ub=bounds, bounds=(0, None), method="highs-ds")
        if found.status:
            raise RuntimeError(found.message)
        return found.x, -found.ineqlin.marginals

    def _law(self, solution: np.ndarray) -> list[Fraction]:
        """The chances, in fractions."""
        chances = zip(solution, self.units, strict=False)
        return [max(Fraction(0), Fraction(float(chance))) * unit for chance, unit in chances]

    def _reached(self, law: list[Fraction]) -> Fraction:
        """The value of a law that is private and adds up, and otherwise 0."""
        growth, zero = _beside(self.epsilon, -1), Fraction(0)
        answers = {
            profile: sum((law[at] * profile.count(score) for at, score in self._at(profile)), zero)
            for profile in self.profiles
        }
        if max(answers.values()) > 1:
            return Fraction(0)
        for before, after, groups in self.removals():
            chances = [(1 - answers[before], 1 - answers[after], 1)]
            for old, new, many in groups:
                later = law[self.places[after, new]] if new else Fraction(0)
                chances.append((law[self.places[before, old]], later, many))
            removed = sum(many * max(zero, a - growth * b) for a, b, many in chances)
            added = sum(many * max(zero, b - growth * a) for a, b, many in chances)
            if max(removed, added) > self.delta:
                return Fraction(0)
        return min(answers[profile] for profile in self.profiles if self._is_asked(profile))

    def _bound(self, rows: Rows, multipliers: np.ndarray) -> Fraction:
        """What multipliers prove: variables are chances and excesses, so each has a limit."""
        limits = [1 / unit for unit in self.units]
        columns = [Fraction(0)] * rows.width
        columns[len(self.places)] = Fraction(-1)
        total = Fraction(0)
        for form, bound, weight in zip(rows.forms, rows.bounds, multipliers, strict=True):
            factor = Fraction(float(weight)) if weight > 0 else Fraction(0)
            total += factor * bound
            for place, number in form.items() if factor else ():
                columns[place] += factor * number
        for place, column in enumerate(columns):
            limit = limits[place] if place < len(limits) else Fraction(1)
            total += limit * max(Fraction(0), -column)
        return total

    def _at(self, profile: Profile) -> list[tuple[int, int]]:
        return [(self.places[profile, score], score) for score in dict.fromkeys(profile) if score]


@dataclass(frozen=True)
class _Pair:
    """Neighbors, and by what the chances on each are multiplied in their difference."""

    before: Profile
    after: Profile
    groups: Sequence[Group]
    factor: Fraction
    other: Fraction


def _beside(epsilon: Fraction, side: int) -> Fraction:
    """A dyadic number below or above e^ε, by less than 1e-12."""
    return Fraction(round(math.exp(epsilon) * 2**44) + side, 2**44)
