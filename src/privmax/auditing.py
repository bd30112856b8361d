"""Exact audits: the largest privacy loss of a mechanism over all neighbors of small data sets.

The laws are exact up to an error that they state, so a violation found here is a counterexample,
not a statistical finding. Finding none proves nothing: the proofs are on the proof pages.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement, product
from typing import NamedTuple

from privmax.errors import ParameterError
from privmax.mechanisms.contract import Joint, Law, Mechanism, PartialJoint
from privmax.mechanisms.peeling import Sequences
from privmax.mechanisms.registry import MECHANISMS, build, check_name, make
from privmax.mechanisms.sets import SetMechanism, Sets
from privmax.noise.coins import SYSTEM, Coins
from privmax.noise.samplers import uniform_below
from privmax.notebook import facts
from privmax.numbers import Number, exact, plain, whole
from privmax.privacy import ADD_REMOVE, Privacy, relation
from privmax.profile import Profile
from privmax.universe import Universe

Scores = tuple[int, ...]
"""The score of every candidate; in an open universe 0 means that no one has seen it."""


CLOSED = "closed"
"""The declaration of a universe with the given candidates and no others."""

LARGEST_EPSILON = 700
"""The largest for which e^epsilon is a float."""

TINY = sys.float_info.min
"""Below this floats lose digits and end in 0: all that is known of such a probability is that it is
at most this.
"""

DOUBT = 1e-6
"""So much delta beyond the claim, or as much as the claim, numerical errors may leave open in an
audit that holds.
"""

EXACT = 1e-9
"""Laws that leave less than this in doubt are as exact as floats make them. An audit at a large
epsilon, which multiplies what is in doubt by e^ε, holds with them, and `Audit.most` says what is
open."""

_FLOAT = 2.0**-50
"""Relative error of a float that stands for a real number and went through a few operations."""


@dataclass(frozen=True)
class Audit:
    """The worst pair of neighbors found.

    Args:
        claim: The cost the mechanism states.
        delta: Largest delta any pair needs at the claimed epsilon.
        least: The part of `delta` beyond numerical error: this pair needs at least so much.
        most: No pair that was compared needs a larger delta than this, whatever the numerical
            errors.
        pair: The two data sets, in the direction that needs it.
        pairs: How many ordered pairs were compared.
        tightness: Delta over the claimed delta; for a claimed delta of 0, largest log-ratio over
            the claimed epsilon, and infinite where something possible on one data set is impossible
            on the other.
        fault: Why nothing is promised: what is wrong with the law of the first data set of `pair`,
            where that is no law at all, and `delta` is 1 then; or that the laws are too inexact to
            tell (`undecided`). Otherwise None.
    """

    claim: Privacy
    delta: float
    least: float
    most: float
    pair: tuple[Scores, Scores]
    pairs: int
    tightness: float
    fault: str | None = None

    @property
    def error(self) -> float:
        """Bound on the numerical error of `delta`, that of this pair alone."""
        return self.delta - self.least

    @property
    def holds(self) -> bool:
        """Return whether every law is a law and no pair exceeds the claim.

        A pair exceeds it where it needs more than its own numerical error explains. Those errors
        must leave little open: `most` exceeds the claimed delta by at most 1e-6, or by as much as
        that is, or else no law leaves more than 1e-9 in doubt.
        """
        return self.fault is None and self.least <= self.claim.delta

    @property
    def undecided(self) -> bool:
        """Whether no violation was found, but the laws are too inexact to be sure."""
        return self.fault is not None and self.least <= self.claim.delta

    def _repr_html_(self) -> str:
        """Return the verdict for notebooks.

        `pair` is left out: it may be of data sets that were given.
        """
        verdict = "no violation was found" if self.holds else "the claim is broken"
        return facts(
            "Audit",
            {
                "verdict": "undecided" if self.undecided else verdict,
                "fault": self.fault or "",
                "claim": f"epsilon {plain(self.claim.epsilon)}, delta {plain(self.claim.delta)}",
                "delta needed": f"{self.delta:.3g}, at most {self.most:.3g}",
                "tightness": f"{self.tightness:.3g}",
                "pairs compared": f"{self.pairs:,}",
            },
            "Finding no violation proves nothing; the proof pages do. The worst pair is in .pair.",
        )


def audit(
    mechanism: Mechanism | str,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    scores: Iterable[Sequence[int]] | None = None,
    universe: object = CLOSED,
    candidates: int = 3,
    highest: int = 4,
    trials: int | None = None,
    neighbors: str | None = None,
    growth: int | None = None,
    sensitivity: int = 1,
    claim: Privacy | None = None,
    coins: Coins = SYSTEM,
) -> Audit:
    """Compare the exact laws of a mechanism on small data sets and all their neighbors.

    Whatever the mechanism releases beside the item is part of the comparison, and with k > 1 the
    whole list.

    A law whose probabilities do not add up to 1, or are no probabilities, within the error that it
    states ends the audit: see `Audit.fault`. A pair violates the claim if it needs a larger delta
    even where numerical error speaks for the mechanism. Where the claimed delta is 0 that is asked
    of every outcome by itself, however rare: its probability must not exceed e^epsilon times that
    on the other data set, and must be 0 where the other is. Laws that state errors above 1e-9 in
    which a violation of more than 1e-6, or of as much as the claim, might hide do not hold either.

    What cannot be seen: a violation smaller than what the laws leave in doubt (`Audit.most` bounds
    it, and `Law` says what a law may state); without delta, an outcome that is rarer than its
    stated error, unless the law also states a relative error; probabilities below 2.2e-308, which a
    float cannot tell from 0.

    Args:
        mechanism: A mechanism object; or the name of one, such as "nested-margin", with epsilon and
            delta. One that takes `neighbors` or `growth` is then made with them.
        epsilon: With the name of a mechanism, what it costs.
        delta: The second number of the cost.
        scores: Data sets to start from, each the scores of all candidates. Default: all with
            `candidates` candidates and scores 0 … highest; with `trials`, that many random ones
            instead.
        universe: "closed": the candidates given are all there are. "open": those at 0 are unseen,
            and appear when their score rises; scores are never negative. A size, or labels: closed,
            with so many candidates.
        candidates: How many there are, where no `scores` are given.
        highest: The largest score, where none are given.
        trials: How many random data sets to start from, instead of all.
        neighbors: Relation to audit under (default: the mechanism's own).
        growth: How many candidates one record touches (default: the mechanism's own bound, if it
            has one).
        sensitivity: By how much one record moves a score.
        claim: Cost to hold it to (default: its own).
        coins: Where random data sets come from; for tests only.

    Returns:
        The worst pair, and what it needs.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
    """
    is_open, candidates = _universe(universe, candidates)
    if isinstance(mechanism, str):
        mechanism = _build(mechanism, epsilon, delta, neighbors, growth)
    else:
        make(mechanism, epsilon=epsilon, delta=delta)
    rule = relation(neighbors or mechanism.neighbors)
    touched = mechanism.growth if growth is None else whole("growth", growth)
    cost = mechanism.privacy() if claim is None else claim
    if cost.epsilon > LARGEST_EPSILON:
        allowed = f"an audit needs e^epsilon, and goes up to {LARGEST_EPSILON}"
        raise ParameterError("epsilon", cost.epsilon, allowed, "Such a cost protects no one.")
    starts = _starts(
        scores, whole("candidates", candidates), whole("highest", highest), trials, coins
    )
    laws = Laws(mechanism, is_open, whole("sensitivity", sensitivity))
    floor = 0 if is_open else None
    worst: tuple[tuple[bool, bool, float], PairDifference, tuple[Scores, Scores]] | None = None
    pairs, most, inexact = 0, 0.0, 0.0
    for start in starts:
        if is_open and min(start) < 0:
            raise ParameterError("scores", start, "scores in an open universe are never negative")
        for other in neighbors_of(start, rule, touched, sensitivity, floor):
            for pair in ((start, other), (other, start)):
                left, right = map(laws.of, pair)
                if left.fault is not None:
                    return Audit(cost, 1.0, 1.0, 1.0, pair, pairs, math.inf, left.fault)
                if right.fault is not None:
                    continue  # its own turn comes next
                comparison = compare(left, right, float(cost.epsilon))
                pairs += 1
                most, inexact = max(most, comparison.most), max(inexact, left.doubt, right.doubt)
                # A violation comes before anything else, the largest first; then whatever needs a
                # delta for certain; and between pairs that do not, the one whose probabilities
                # differ most is the worst.
                broken, needs = comparison.least > cost.delta, comparison.least > 0
                rank = (
                    broken,
                    needs,
                    comparison.least if broken else comparison.delta if needs else comparison.ratio,
                )
                if worst is None or rank > worst[0]:
                    worst = rank, comparison, pair
    if worst is None:
        raise ParameterError(
            "scores", scores, "there must be at least one data set with a neighbor"
        )
    _, comparison, pair = worst
    fault = None if comparison.least > cost.delta else _doubt(most, inexact, cost)
    return Audit(
        cost,
        comparison.delta,
        comparison.least,
        most,
        pair,
        pairs,
        tightness(comparison, cost),
        fault,
    )


def divergence(left: dict[Hashable, float], right: dict[Hashable, float], epsilon: Number) -> float:
    """Return the hockey-stick divergence Σ max(0, P(o) − e^ε·Q(o)).

    It is the delta that this pair of laws needs at epsilon.
    """
    factor = math.exp(exact("epsilon", epsilon))
    return math.fsum(
        max(0.0, chance - factor * right.get(outcome, 0.0)) for outcome, chance in left.items()
    )


class Chance(NamedTuple):
    """A probability, and between what bounds its numerical error leaves it."""

    value: float
    low: float
    high: float


IMPOSSIBLE = Chance(0.0, 0.0, 0.0)
"""The chance of naming an unseen candidate, which cannot be."""


@dataclass(frozen=True, repr=False)
class LawTable:
    """The law of one data set, outcome by outcome.

    Args:
        chances: Of each outcome; those not listed are impossible, but for `left_out`.
        left_out: Bound on the probability of all outcomes that are not listed.
        doubt: Bound on all its numerical errors together, and on what is left out.
        fault: Why it is no law, or None.
    """

    chances: Mapping[Hashable, Chance]
    left_out: float
    doubt: float
    fault: str | None


class PairDifference(NamedTuple):
    """The delta that one pair of laws needs, with bounds.

    Also the largest log-ratio of an outcome.
    """

    delta: float
    least: float
    most: float
    ratio: float


class Laws:
    """The law of every data set met so far.

    Candidates with equal scores are interchangeable, so laws are kept for sorted scores only.
    """

    def __init__(self, mechanism: Mechanism, is_open: bool, sensitivity: int) -> None:
        self._mechanism, self._open, self._sensitivity = mechanism, is_open, sensitivity
        self._joints: dict[Scores, Joint] = {}
        self._lists: dict[Scores, Mapping[object, Sequences]] = {}
        self._sets: dict[Scores, Mapping[object, Sets]] = {}
        self._tables: dict[Scores, LawTable] = {}

    def of(self, scores: Scores) -> LawTable:
        if scores not in self._tables:
            self._tables[scores] = self._table(scores)
        return self._tables[scores]

    def profile(self, scores: Scores) -> Profile:
        levels = [(score, scores.count(score)) for score in set(scores) if score or not self._open]
        return Profile(
            levels, universe=None if self._open else len(scores), sensitivity=self._sensitivity
        )

    def _table(self, scores: Scores) -> LawTable:
        key = tuple(sorted(scores))
        is_list = self._mechanism.k > 1
        if is_list and isinstance(self._mechanism, SetMechanism) and not self._mechanism.ranked:
            if key not in self._sets:
                self._sets[key] = self._mechanism.sets(self.profile(scores))
            return _check_law(scores, self._set_chances(scores, self._sets[key]), 0.0)
        if is_list:
            if key not in self._lists:
                self._lists[key] = self._mechanism.sequences(self.profile(scores))  # type: ignore[attr-defined]
            return _check_law(scores, self._list_chances(scores, self._lists[key]), 0.0)
        if key not in self._joints:
            self._joints[key] = self._mechanism.joint(self.profile(scores))
        joint = self._joints[key]
        left_out = joint.left_out if isinstance(joint, PartialJoint) else 0.0
        return _check_law(scores, self._single(scores, joint), left_out)

    def _single(self, scores: Scores, joint: Joint) -> dict[Hashable, Chance]:
        """Return the probability of every place, and of nothing.

        They are separate for each value that is released with them.
        """
        table: dict[Hashable, Chance] = {}
        for diagnostics, law in joint.items():
            table[diagnostics, None] = _chance(law.none, law.error, law.relative, law.true_zeros)
            each = {score: _candidate(law, score) for score in set(scores)}
            if self._open:
                each[0] = IMPOSSIBLE
            for place, score in enumerate(scores):
                table[diagnostics, place] = each[score]
        return table

    def _list_chances(
        self, scores: Scores, laws: Mapping[object, Sequences]
    ) -> dict[Hashable, Chance]:
        """Probability of every list of places: those of one list of blocks are equally likely."""
        table: dict[Hashable, Chance] = {}
        for diagnostics, law in laws.items():
            members = self._members(scores, law)
            for blocks, chance in law.chances.items():
                lists: list[tuple[int, ...]] = [()]
                for block in blocks:
                    lists = [
                        (*done, place)
                        for done in lists
                        for place in members[block]
                        if place not in done
                    ]
                for places in lists:
                    share = _chance(chance / len(lists), law.error / len(lists), law.relative)
                    before = table.get((diagnostics, places), IMPOSSIBLE)
                    table[diagnostics, places] = Chance(*map(sum, zip(before, share, strict=True)))
        return table

    def _set_chances(self, scores: Scores, laws: Mapping[object, Sets]) -> dict[Hashable, Chance]:
        """Probability of every set of places: those with the same numbers are equally likely."""
        table: dict[Hashable, Chance] = {}
        for diagnostics, law in laws.items():
            members = self._members(scores, law)
            for numbers, chance in law.chances.items():
                parts = [
                    [*combinations(block, number)]
                    for block, number in zip(members, numbers, strict=True)
                ]
                sets = [frozenset(chain(*chosen)) for chosen in product(*parts)]
                for places in sets:
                    share = _chance(chance / len(sets), law.error / len(sets), law.relative)
                    before = table.get((diagnostics, places), IMPOSSIBLE)
                    table[diagnostics, places] = Chance(*map(sum, zip(before, share, strict=True)))
        return table

    def _members(self, scores: Scores, law: Sequences | Sets) -> list[list[int]]:
        """Return the places of each block; in an open universe no one has seen those at 0."""
        level = [score if law.floor is None else max(score, law.floor) for score in scores]
        return [
            [
                place
                for place, score in enumerate(level)
                if score == top and not (self._open and scores[place] == 0)
            ]
            for top, _ in law.blocks
        ]


def _candidate(law: Law, score: int) -> Chance:
    """Return the probability of one given candidate with this score."""
    count = next(
        (count for level, count, _ in law.blocks if count and _within(law, level, score)), None
    )
    if count is None:
        return IMPOSSIBLE
    return _chance(law.of(score), law.error / count, law.relative, law.true_zeros)


def _within(law: Law, level: int, score: int) -> bool:
    return score == level or (level == law.floor and score <= level)


def _chance(value: float, error: float, relative: float, true_zeros: bool = True) -> Chance:
    """Return a probability with the bounds that its stated errors leave."""
    if value < TINY:
        known = math.isfinite(relative) or (value == 0 and true_zeros)
        doubt = TINY if known else max(TINY, error)
    else:
        doubt = max(min(error, relative * value), _FLOAT * value)
    return Chance(value, max(0.0, value - doubt), value + doubt)


def _check_law(scores: Scores, chances: dict[Hashable, Chance], left_out: float) -> LawTable:
    """Return a law, or what is wrong with it: probabilities that are none or do not add up to 1."""
    doubt = left_out + math.fsum(chance.high - chance.value for chance in chances.values())
    return LawTable(chances, left_out, doubt, _fault(scores, chances, left_out))


def _fault(scores: Scores, chances: Mapping[Hashable, Chance], left_out: float) -> str | None:
    where = f"The law of the scores {scores} is not a probability distribution"
    for value, _, high in chances.values():
        if not (math.isfinite(value) and math.isfinite(high)):
            return f"{where}: it has a probability of {value} with an error of {high - value}."
        if high < 0 or value > 1 + (high - value):
            return (
                f"{where}: it has a probability of {value:g}, and its stated error allows for "
                f"{high - value:.1g} only."
            )
    total = math.fsum(value for value, _, _ in chances.values())
    error = math.fsum(high - value for value, _, high in chances.values())
    if not 1 - left_out - error <= total <= 1 + error:
        near = f"1 {'+' if total > 1 else '−'} {abs(total - 1):.1g}"
        shown = near if abs(total - 1) < 1e-5 else f"{total:g}"
        return (
            f"{where}: it adds up to {shown}, and its stated error allows for "
            f"{left_out + error:.1g} only."
        )
    return None


def _doubt(most: float, inexact: float, cost: Privacy) -> str | None:
    """Return what to say of numerical errors that leave too much open; None: they do not."""
    claimed = float(cost.delta)
    if most - claimed <= max(DOUBT, claimed) or inexact <= EXACT:
        return None
    return (
        f"The numerical errors that the laws state are too large to decide: a pair may need a "
        f"delta of up to {most:.1g}, and {claimed:.1g} is claimed. Compute the laws more "
        f"exactly, or state smaller errors if they are."
    )


def compare(left: LawTable, right: LawTable, epsilon: float) -> PairDifference:
    """Return the hockey-stick of left over right at epsilon, with bounds.

    Every error in the bounds is that of its own outcome.
    """
    factor = math.exp(epsilon)
    slack = (
        epsilon + 8
    ) * 2.0**-53  # of e^ε, whose exponent is a float already, and of a product and a difference
    high_factor, low_factor = factor * (1 + slack), factor * (1 - slack)
    delta, least, most = [], [], [left.left_out]
    ratio, unlisted = 0.0, [0.0]
    for outcome, (here, low, high) in left.chances.items():
        chance = right.chances.get(outcome)
        if chance is None:
            delta.append(here)
            most.append(high)
            if low > high_factor * TINY:
                unlisted.append(low)
            if low > high_factor * max(TINY, right.left_out):
                ratio = math.inf
            continue
        there, low_there, high_there = chance
        if here > factor * there:
            delta.append(here - factor * there)
        if low > high_factor * high_there:
            least.append(low - high_factor * high_there)
            if there < TINY and high_there <= TINY:
                ratio = math.inf
        if high > low_factor * low_there:
            most.append(high - low_factor * low_there)
        if low > 0 and low_there > 0 and here > ratio * there:
            ratio = here / there
    # What is not listed on the other side has at most `left_out` there, in all.
    sure = math.fsum(unlisted) - high_factor * right.left_out
    if sure > 0:
        least.append(sure)
    return PairDifference(
        math.fsum(delta),
        math.fsum(least),
        min(1.0, math.fsum(most)),
        math.log(ratio) if ratio > 0 else 0.0,
    )


def tightness(comparison: PairDifference, cost: Privacy) -> float:
    """Return how much of the claim a pair needs."""
    if cost.delta:
        return comparison.delta / float(cost.delta)
    if cost.epsilon:
        return comparison.ratio / float(cost.epsilon)
    return math.inf if comparison.least > 0 else 0.0


def _build(
    name: str,
    epsilon: Number | None,
    delta: Number | None,
    neighbors: str | None,
    growth: int | None,
) -> Mechanism:
    """Return the mechanism of that name.

    One that relies on no bound is audited under it all the same.
    """
    check_name(name)
    own = growth if "growth" in MECHANISMS[name].parameters else None
    return build(name, epsilon=epsilon, delta=delta, neighbors=neighbors, growth=own)


def _universe(universe: object, candidates: int) -> tuple[bool, int]:
    """Return whether the universe is open, and how many candidates a data set has."""
    if isinstance(universe, str) and universe == CLOSED:
        return False, candidates
    known = Universe.of(universe)
    return known.is_open, candidates if known.size is None else known.size


def _starts(
    scores: Iterable[Sequence[int]] | None,
    candidates: int,
    highest: int,
    trials: int | None,
    coins: Coins,
) -> list[Scores]:
    if scores is not None:
        return [tuple(row) for row in scores]
    if trials is not None:
        return [
            tuple(
                uniform_below(highest + 1, coins)
                for _ in range(1 + uniform_below(candidates, coins))
            )
            for _ in range(whole("trials", trials))
        ]
    return list(combinations_with_replacement(range(highest, -1, -1), candidates))


def neighbors_of(
    start: Scores, rule: str, growth: int | None, sensitivity: int, floor: int | None
) -> Iterator[Scores]:
    """Yield all data sets one record away.

    With `growth`, a record moves at most that many candidates.
    """
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
