"""The set margin mechanism: the best k as one draw over sets, and shorter sets before silence.

    A stage (size, width, silence x, tilt t) at (ε, δ):  a = t·ε/c,  b = (1 − t)·ε/c
    w(S) = exp(a·(worst score in S) − b·(best score outside S))   for S of `size` of the top `width`
    W    = Σ w(S),   f = the score just below the top `width`
    B    = e^(a(f+c))·(e^(−b(q_(size)−c)) + Σ_{h<size} C(width−h−1, size−h)·e^(−b·q_(h+1)))
    g    = (x/δ)·B,   Y = g/(g + W)
    nothing with probability Y^x, otherwise S with probability w(S)/W

B bounds the weight of all sets that one record can put out of reach. Stages follow one another
after nothing, for smaller and smaller sets; each leaves 1 − x of its epsilon to the next, and the
last has x = 1. A stage whose width is its size is a gap test: the best set or nothing. In a closed
universe that a stage takes in whole there is no B, and no nothing.

Proof:      docs/proofs/set-margin.md
Reference:  original to this library
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from flint import arb

from privmax.deferred import load
from privmax.mechanisms.cells import Cells, choices, is_large
from privmax.mechanisms.contract import (
    ROUNDING,
    Law,
    Outcome,
    Relation,
    closed_size,
    law_of,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.gap_test import soft_chances
from privmax.mechanisms.sets import SetMechanism, Sets, read_size, sets_of, uniform_subset
from privmax.mechanisms.stages import Stage, default_stages, read_stages
from privmax.mechanisms.weights import shares
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli
from privmax.numbers import open_probability, positive, probability
from privmax.parameters import Exact, Parameter, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Level, Profile, Window


class SetMargin(SetMechanism):
    """Draw the best `k` as a set, from an open or a closed universe; or a smaller set, or nothing.

    Args:
        epsilon: What it costs, with `delta`.
        delta: 0 only in a closed universe, where the whole of it is drawn from at once.
        neighbors: "add-remove" or "replace".
        k: How many candidates are released at most.
        stages: The cascade; public. By default `default_stages`. Not used without delta.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import SetMargin
        >>> [SetMargin(epsilon=1, delta=1e-6, k=k).lead(candidates=None) for k in (10, 100)]
        [25, 297]
        >>> SetMargin(epsilon=1, k=10).lead(candidates=10**6)
        126
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(probability, default=0)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(read_size, default=1)
    stages: Parameter[Sequence[Stage] | None, tuple[Stage, ...] | None] = parameter(
        read_stages, default=None, depends_on="k"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta:
            open_probability("delta", self.delta)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        drawn = self.subset(profile, coins)
        return drawn[0] if drawn else Outcome(None)

    def subset(self, profile: Profile, coins: Coins) -> list[Outcome]:
        if self._may_need_floats(profile.universe):
            load()
        for turn in self._turns(profile, self._window(profile)):
            if not bernoulli(turn.nothing, coins):
                return turn.draw(coins)
        return []

    def law(self, profile: Profile) -> Law:
        """Return for each block how many of it are released on average; of one item, its law."""
        window = self._window(profile)
        blocks = window.blocks()
        expected = [0.0] * len(blocks)
        none, relative = 0.0, ROUNDING
        for turn, chance in self._chances(profile, window):
            if turn is None:
                none += chance
                continue
            relative += turn.error
            none += chance * turn.chance_nobody()
            for place, number in enumerate(turn.numbers()):
                expected[place] += chance * number
        for place, (_, everybody) in enumerate(blocks):
            if everybody is None:  # nobody is released for those
                expected[place] = 0.0
        return law_of(window, expected, none, error=self.k * relative, relative=relative)

    def sets(self, profile: Profile) -> Mapping[object, Sets]:
        window = self._window(profile)
        infinite = [number is None for _, number in window.blocks()]
        table: dict[tuple[int, ...], float] = {}
        relative = ROUNDING
        for turn, chance in self._chances(profile, window):
            if turn is not None:
                relative += turn.error
            for numbers, share in turn.combinations() if turn else [((), 1.0)]:
                padded = [*numbers, *[0] * (len(infinite) - len(numbers))]
                key = tuple(0 if no else taken for taken, no in zip(padded, infinite, strict=True))
                table[key] = table.get(key, 0.0) + chance * share
        return {None: sets_of(window, table, relative, relative)}

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window = self._window(profile, best)
        listed = sum(number is not None for _, number in window.blocks())
        above = bisect_left(list(accumulate(window.counts)), best) + 1  # levels of the best
        size, hits = 0.0, 0.0
        for turn, chance in self._chances(profile, window):
            numbers = turn.numbers()[:listed] if turn else []
            size += chance * math.fsum(numbers)
            hits += chance * math.fsum(numbers[:above])
        return size, min(hits, float(best))

    def lengths(self, profile: Profile, best: int) -> dict[int, tuple[float, float]]:
        """Return, by how many candidates are released, with what probability, and how many of the
        `best` highest are among them on average, times that probability.

        Candidates tied with the last of those count as one of them. `expect` is its sums. Never
        released.
        """
        window = self._window(profile, best)
        tied = next((end for end in accumulate(window.counts) if end >= best), best)
        table: dict[int, tuple[float, float]] = {}
        for turn, chance in self._chances(profile, window):
            for length, share, hits in turn.lengths(tied) if turn else [(0, 1.0, 0.0)]:
                before = table.get(length, (0.0, 0.0))
                part = chance * share
                table[length] = before[0] + part, before[1] + part * hits
        return table

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def cascade(self, universe: int | None) -> tuple[Stage, ...]:
        """Return the stages in use; public.

        Args:
            universe: Its size; None: open.

        Examples:
            >>> SetMargin(epsilon=1, k=2).cascade(9)
            (Stage(size=2, width=9, silence=1, tilt=0.75, part=1),)
        """
        if self.delta == 0:
            size = closed_size(Profile([], universe=universe))
            return (Stage(min(self.k, size), size, silence=1),)
        return default_stages(self.k, self.epsilon) if self.stages is None else self.stages

    def budgets(self, universe: int | None) -> tuple[tuple[Stage, Fraction], ...]:
        """Return the stages in use up to one that always releases, each with its epsilon; public.

        Args:
            universe: Its size; None: open.

        Examples:
            >>> stages = Stage(2, 2, silence="0.25", part="0.5"), Stage(2, 9, silence=1, part="0.5")
            >>> mechanism = SetMargin(epsilon=1, delta="1e-6", k=2, stages=stages)
            >>> [(stage.width, epsilon) for stage, epsilon in mechanism.budgets(None)]
            [(2, Fraction(1, 1)), (9, Fraction(3, 4))]
        """
        budgets, left = [], self.epsilon
        for stage in self.cascade(universe):
            budgets.append((stage, left))
            if universe is not None and stage.width >= universe:
                break
            left *= 1 - stage.silence
        return tuple(budgets)

    def _may_need_floats(self, universe: int | None) -> bool:
        """Whether NumPy is loaded before a draw: by public numbers, whichever stage it ends in."""
        return any(
            is_large(stage.size, stage.width if universe is None else min(stage.width, universe))
            for stage, _ in self.budgets(universe)
        )

    def _chance_best(self, profile: Profile) -> float:
        return math.fsum(
            chance * turn.chance_all_best()
            for turn, chance in self._chances(profile, self._window(profile))
            if turn is not None and turn.stage.size == self.k
        )

    def _window(self, profile: Profile, rank: int = 1) -> Window:
        """The profile down to the last rank that counts. Nothing is clipped by that."""
        require_fit(self.k, profile)
        widest = max(stage.width for stage in self.cascade(profile.universe))
        return profile.down_to(max(widest + 1, rank))

    def _turns(self, profile: Profile, window: Window) -> Iterator[_StageTurn]:
        """The stages on a profile."""
        unit = drift(self.neighbors) * profile.sensitivity
        for stage, epsilon in self.budgets(profile.universe):
            delta = self.delta * stage.part
            yield _StageTurn(stage, epsilon, delta, unit, window, profile.universe)

    def _chances(
        self, profile: Profile, window: Window
    ) -> Iterator[tuple[_StageTurn | None, float]]:
        """Each stage with the probability that it releases a set; None with that of nothing."""
        reach = 1.0
        for turn in self._turns(profile, window):
            nothing, answer = turn.to_floats()
            yield turn, reach * answer
            reach *= nothing
        yield None, reach


@dataclass(frozen=True)
class _StageTurn:
    """A stage on a profile.

    Args:
        stage: What it draws.
        epsilon: What is left for it and all that follow.
        delta: For it alone.
        unit: C·s, by how much two scores can drift apart between neighbors.
        window: The profile.
        universe: Its size; None: open.
    """

    stage: Stage
    epsilon: Fraction
    delta: Fraction
    unit: int
    window: Window
    universe: int | None

    @cached_property
    def width(self) -> int:
        return self.stage.width if self.universe is None else min(self.stage.width, self.universe)

    @property
    def is_certain(self) -> bool:
        """Whether all candidates take part, so that none can slip and there is always an answer."""
        return self.width == self.universe

    @property
    def is_test(self) -> bool:
        """Whether it releases the best set, if any."""
        return self.width == self.stage.size

    @cached_property
    def levels(self) -> list[Level]:
        """Of the top `width`, the last one cut to fit."""
        return self.window.first(self.width)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """a and b."""
        rate = self.epsilon / self.unit
        return rate * self.stage.tilt, rate * (1 - self.stage.tilt)

    @cached_property
    def cells(self) -> Cells:
        return Cells(self.levels, self.stage.size, *self.rates)

    def nothing(self) -> arb:
        """The probability of nothing, at the precision in force."""
        return self.chances()[0]

    def chances(self) -> tuple[arb, arb]:
        """The probabilities of nothing and of a set, at the precision in force."""
        if self.is_certain:
            return arb(0), arb(1)
        if self.is_test:
            gap = self.window.depth(self.width + 1) - self.window.depth(self.width)
            steps = -(-gap // self.unit)
            return soft_chances(steps, self.epsilon, self.delta, self.stage.silence)
        power = -ball(self.stage.silence) * (self.cells.total() / self._guard()).log1p()
        return power.exp(), -power.expm1()

    def _guard(self) -> arb:
        """g over the weight of the best set.

        The sum over h of the heading is Σ_p C(width − p, size − p)·D_p − e^(−b·q_(size)).
        """
        inside, outside = self.rates
        last, after, beyond = (
            self.window.depth(rank)
            for rank in (self.stage.size, self.stage.size + 1, self.width + 1)
        )
        best = (-ball(outside * (after - last))).exp() * ball(outside * self.unit).expm1()
        below = ball(inside * (self.unit - (beyond - last))).exp()
        return ball(self.stage.silence / self.delta) * below * (self.cells.last() + best)

    def draw(self, coins: Coins) -> list[Outcome]:
        """A set, given that it is not nothing."""
        size = self.stage.size
        prefix, reach = (size, size) if self.is_test else self.cells.draw(coins)
        drawn = uniform_subset(reach - prefix, size - prefix, coins)
        ranks = [*range(prefix), *sorted(prefix + place for place in drawn)]
        chosen: list[tuple[int, int]] = []
        top = self.window.top
        start = first = 0
        for (depth, number), (_, everybody) in zip(self.levels, self.window.blocks(), strict=False):
            if first == size:
                break
            end = start + number
            if ranks[first] >= end:
                start = end
                continue
            last = bisect_left(ranks, end, first) if number > 1 else first + 1
            places = [rank - start for rank in ranks[first:last]]
            start, first = end, last
            if everybody is None:  # nobody has ever seen those
                continue
            if number < everybody:  # the level is cut: which of them take part was left open
                places = uniform_subset(everybody, len(places), coins)
            chosen += [(top - depth, place) for place in places]
        return Outcome.each(chosen)

    # The law, in floats: of what is released, given that something is

    @property
    def error(self) -> float:
        """Bound on the relative error of every probability here."""
        return 2 * ROUNDING if self.is_test else 2 * self.cells.error

    def to_floats(self) -> tuple[float, float]:
        """The probabilities of nothing and of a set."""
        if not self.is_test and self.cells.has_look:
            with precision(START):
                chances = self.chances()
                # false for balls that are not finite, as where scores have a hundred digits
                if all(one.rad() <= abs(one.mid()) * self.error for one in chances):
                    nothing, answer = (float(one.mid()) for one in chances)
                    return nothing, answer
        nothing, answer = shares(self.chances)
        return nothing, answer

    def numbers(self) -> list[float]:
        """Return how many of each level it releases on average."""
        if self.is_test:
            return [float(number) for _, number in self.levels]
        return self.cells.numbers()

    def lengths(self, best: int) -> Iterator[tuple[int, float, float]]:
        """Yield each number of a set that were ever seen, its probability, and how many of the
        `best` highest are among them on average.
        """
        size = self.stage.size
        seen = self.width if self.universe is not None else sum(self.window.counts)
        if self.is_test:
            yield min(size, seen), 1.0, min(size, seen, best)
            return
        for p, row in self.cells.chances():
            for u, chance in zip(self.cells.reaches, row.tolist(), strict=True):
                # of the ranks after the prefix, `good` were seen, and `among` of these are best
                good, among = max(0, min(u, seen) - p), max(0, min(u, seen, best) - p)
                left = size - p
                for taken in range(max(0, left - (u - p - good)), min(left, good) + 1):
                    hits = min(p, seen, best) + (taken * among / good if good else 0)
                    share = _share(good, u - p, left, taken)
                    yield min(p, seen) + taken, chance * share, hits

    def chance_all_best(self) -> float:
        """Probability that all of them come from the best level."""
        best, size = self.levels[0][1], self.stage.size
        if self.is_test:
            return 1.0 if best >= size else 0.0
        return math.fsum(
            chance * _odds(best - p, u - p, size - p)
            for p, row in self.cells.chances()
            if p <= best
            for u, chance in zip(self.cells.reaches, row.tolist(), strict=True)
        )

    def chance_nobody(self) -> float:
        """Probability that no candidate among them was ever seen."""
        if self.universe is not None or self.is_test:
            return 0.0
        seen = sum(self.window.counts)
        _, row = next(self.cells.chances())  # without a prefix
        return math.fsum(
            chance * _odds(u - seen, u, self.stage.size)
            for u, chance in zip(self.cells.reaches, row.tolist(), strict=True)
        )

    def combinations(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield how many of each level it releases, with their probability; not by cells."""
        numbers = [number for _, number in self.levels]
        if self.is_test:
            yield tuple(numbers), 1.0
            return
        combinations = list(_combinations(numbers, self.stage.size))
        weights = [self._weight(taken) * _ways(numbers, taken) for taken in combinations]
        total = math.fsum(weights)
        for taken, weight in zip(combinations, weights, strict=True):
            yield taken, weight / total

    def _weight(self, taken: tuple[int, ...]) -> float:
        """w(S) over that of the best set, for a set with so many of each level."""
        size = self.stage.size
        deepest = max(depth for (depth, _), some in zip(self.levels, taken, strict=True) if some)
        missing = min(
            depth for (depth, number), some in zip(self.levels, taken, strict=True) if some < number
        )
        inside, outside = self.rates
        short = inside * (deepest - self.window.depth(size))
        passed = outside * (self.window.depth(size + 1) - missing)
        return math.exp(-float(short + passed))


def _combinations(numbers: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Yield how many of each level sets of a size can have."""
    if not numbers:
        if size == 0:
            yield ()
        return
    for first in range(max(0, size - sum(numbers[1:])), min(numbers[0], size) + 1):
        for rest in _combinations(numbers[1:], size - first):
            yield first, *rest


def _ways(numbers: Sequence[int], taken: Sequence[int]) -> int:
    """Return the number of sets with so many of each level."""
    return math.prod(map(math.comb, numbers, taken))


def _share(good: int, number: int, size: int, taken: int) -> float:
    """The probability that `size` out of a number hold so many of the good ones."""
    if good == number:
        return 1.0 if taken == size else 0.0
    return math.exp(
        _log_choices(good, taken)
        + _log_choices(number - good, size - taken)
        - _log_choices(number, size)
    )


def _log_choices(number: int, size: int) -> float:
    return math.lgamma(number + 1) - math.lgamma(size + 1) - math.lgamma(number - size + 1)


def _odds(few: int, number: int, size: int) -> float:
    """C(few, size) over C(number, size): the probability that all of `size` out of a number are
    among a few of them.
    """
    if few < size:
        return 0.0
    with precision(START):
        return float((choices(few, size) / choices(number, size)).mid())
