"""Exact audits: the largest privacy loss of a mechanism over all neighbours of small data sets.

The laws are exact, so a violation found here is a counterexample, not a statistical finding. Finding none proves
nothing: the proofs are on the proof pages.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Literal

from privmax.errors import ParameterError
from privmax.mechanisms.base import ROUNDING, Joint, Mechanism
from privmax.mechanisms.peeling import Sequences
from privmax.noise.coins import SYSTEM, Coins
from privmax.noise.samplers import uniform_below
from privmax.privacy import ADD_REMOVE, Number, Privacy, exact, relation, whole
from privmax.profile import Profile

Scores = tuple[int, ...]
"""The score of every candidate; in an open universe 0 means that nobody has seen it."""


LARGEST_EPSILON = 700
"""The largest for which e^epsilon is a float."""


@dataclass(frozen=True)
class Audit:
    """The worst pair of neighbours found.

    claim       the price the mechanism states
    delta       largest delta any pair needs at the claimed epsilon
    pair        the two data sets, in the direction that needs it
    pairs       how many ordered pairs were compared
    tightness   delta over the claimed delta; for a claimed delta of 0, largest log-ratio over the claimed epsilon
    error       bound on the numerical error of `delta`
    """

    claim: Privacy
    delta: float
    pair: tuple[Scores, Scores]
    pairs: int
    tightness: float
    error: float

    @property
    def holds(self) -> bool:
        """Whether no pair exceeds the claim."""
        return self.delta <= float(self.claim.delta) + self.error


def audit(
    mechanism: Mechanism,
    *,
    scores: Iterable[Sequence[int]] | None = None,
    universe: Literal["closed", "open"] = "closed",
    candidates: int = 3,
    highest: int = 4,
    trials: int | None = None,
    neighbors: str | None = None,
    growth: int | None = None,
    sensitivity: int = 1,
    claim: Privacy | None = None,
    coins: Coins = SYSTEM,
) -> Audit:
    """Compare the exact law of `mechanism` on every small data set with that on each of its neighbours.

    scores        data sets to start from, each the scores of all candidates. Default: all with `candidates`
                  candidates and scores 0 … highest; with `trials`, that many random ones instead
    universe      "closed": the candidates given are all there are. "open": those at 0 are unseen, and appear when their
                  score rises; scores are never negative
    neighbors     relation to audit under (default: the mechanism's own); growth: how many candidates one record touches
                  (default: the mechanism's own bound, if it has one)
    claim         price to hold it to (default: its own)

    Whatever the mechanism releases beside the item is part of the comparison, and with k > 1 the whole list.
    """
    if universe not in ("closed", "open"):
        raise ParameterError("universe", universe, 'it must be "closed" or "open"')
    rule = relation(neighbors or mechanism.neighbors)
    touched = getattr(mechanism, "growth", None) if growth is None else whole("growth", growth)
    price = mechanism.privacy() if claim is None else claim
    if price.epsilon > LARGEST_EPSILON:
        allowed = f"an audit needs e^epsilon, and goes up to {LARGEST_EPSILON}"
        raise ParameterError("epsilon", price.epsilon, allowed, "Such a price protects nobody.")
    starts = _starts(scores, whole("candidates", candidates), whole("highest", highest), trials, coins)
    laws = _Laws(mechanism, universe == "open", whole("sensitivity", sensitivity))
    factor = math.exp(price.epsilon)
    pair: tuple[Scores, Scores] = ((), ())
    worst, pairs, error, ratio = -1.0, 0, 0.0, -1.0
    for start in starts:
        if universe == "open" and min(start) < 0:
            raise ParameterError("scores", start, "scores in an open universe are never negative")
        for other in _neighbors(start, rule, touched, sensitivity, floor=0 if universe == "open" else None):
            for here, there in ((start, other), (other, start)):
                delta, largest, slack = _compare(laws.of(here), laws.of(there), factor)
                pairs += 1
                error = max(error, slack)
                # Between pairs that need no delta at all, the one whose probabilities differ most is the worst.
                if delta > max(worst, slack) or (worst <= slack and largest > ratio):
                    worst, pair, ratio = delta, (here, there), largest
    if not pairs:
        raise ParameterError("scores", scores, "there must be at least one data set with a neighbour")
    tightness = worst / float(price.delta) if price.delta else ratio / float(price.epsilon)
    return Audit(price, worst, pair, pairs, tightness, error)


def divergence(left: dict[Hashable, float], right: dict[Hashable, float], epsilon: Number) -> float:
    """The hockey-stick divergence Σ max(0, P(o) − e^ε·Q(o)): the delta this pair of laws needs at epsilon."""
    return _compare((left, 0.0), (right, 0.0), math.exp(exact("epsilon", epsilon)))[0]


Table = tuple[dict[Hashable, float], float]
"""Probability of each outcome, and how far their sum may be from the truth."""


class _Laws:
    """The law of every data set met so far. Candidates with equal scores are interchangeable, so sorted ones do."""

    def __init__(self, mechanism: Mechanism, is_open: bool, sensitivity: int) -> None:
        self._mechanism, self._open, self._sensitivity = mechanism, is_open, sensitivity
        self._joints: dict[Scores, Joint] = {}
        self._lists: dict[Scores, Mapping[object, Sequences]] = {}
        self._tables: dict[Scores, Table] = {}

    def of(self, scores: Scores) -> Table:
        if scores not in self._tables:
            self._tables[scores] = self._table(scores)
        return self._tables[scores]

    def _profile(self, scores: Scores) -> Profile:
        levels = [(score, scores.count(score)) for score in set(scores) if score or not self._open]
        return Profile(levels, universe=None if self._open else len(scores), sensitivity=self._sensitivity)

    def _table(self, scores: Scores) -> Table:
        key = tuple(sorted(scores))
        if getattr(self._mechanism, "k", 1) > 1:
            if key not in self._lists:
                self._lists[key] = self._mechanism.sequences(self._profile(scores))  # type: ignore[attr-defined]
            return self._ranked(scores, self._lists[key])
        if key not in self._joints:
            self._joints[key] = self._mechanism.joint(self._profile(scores))
        table: dict[Hashable, float] = {}
        error = 0.0
        for free, law in self._joints[key].items():
            table[free, None] = law.none
            for place, score in enumerate(scores):
                table[free, place] = 0.0 if self._open and score == 0 else law.of(score)
            error += law.error * (len(scores) + 1)
        return table, error + abs(1.0 - sum(table.values()))

    def _ranked(self, scores: Scores, laws: Mapping[object, Sequences]) -> Table:
        """The probability of every list of places: those of one list of blocks are equally likely."""
        table: dict[Hashable, float] = {}
        for free, law in laws.items():
            level = [score if law.floor is None else max(score, law.floor) for score in scores]
            members = [
                [place for place, score in enumerate(level) if score == top and not (self._open and scores[place] == 0)]
                for top, _ in law.blocks
            ]
            for blocks, chance in law.chances.items():
                lists: list[tuple[int, ...]] = [()]
                for block in blocks:
                    lists = [(*done, place) for done in lists for place in members[block] if place not in done]
                for places in lists:
                    table[free, places] = table.get((free, places), 0.0) + chance / len(lists)
        return table, ROUNDING * len(table) + abs(1.0 - sum(table.values()))


def _compare(left: Table, right: Table, factor: float) -> tuple[float, float, float]:
    """(hockey-stick of left over right at ln(factor), largest log-ratio, bound on the numerical error)."""
    (p, p_error), (q, q_error) = left, right
    delta = math.fsum(max(0.0, chance - factor * q.get(outcome, 0.0)) for outcome, chance in p.items())
    floor = p_error + q_error + 1e-280  # ratios of numbers that may be rounding errors say nothing
    both = ((chance, q.get(outcome, 0.0)) for outcome, chance in p.items())
    ratio = max((math.log(a / b) for a, b in both if min(a, b) > floor), default=0.0)
    return delta, ratio, p_error + factor * q_error + 1e-14


def _starts(
    scores: Iterable[Sequence[int]] | None, candidates: int, highest: int, trials: int | None, coins: Coins
) -> list[Scores]:
    if scores is not None:
        return [tuple(row) for row in scores]
    if trials is not None:
        return [
            tuple(uniform_below(highest + 1, coins) for _ in range(1 + uniform_below(candidates, coins)))
            for _ in range(whole("trials", trials))
        ]
    return list(combinations_with_replacement(range(highest, -1, -1), candidates))


def _neighbors(start: Scores, rule: str, growth: int | None, sensitivity: int, floor: int | None) -> Iterator[Scores]:
    """All data sets one record away; with `growth`, one record moves at most that many candidates."""
    up, down = range(sensitivity + 1), range(0, -sensitivity - 1, -1)
    moves = (
        {*product(up, repeat=len(start)), *product(down, repeat=len(start))}
        if rule == ADD_REMOVE
        else {*product(range(-sensitivity, sensitivity + 1), repeat=len(start))}
    )
    for move in sorted(moves):
        risen, fallen = sum(step > 0 for step in move), sum(step < 0 for step in move)
        if growth is not None and max(risen, fallen) > growth:
            continue
        other = tuple(score + step for score, step in zip(start, move, strict=True))
        if any(move) and (floor is None or min(other) >= floor):
            yield other
