"""The set margin mechanism: the best k as one draw over sets, and shorter sets before silence.

    A stage (size, width, silence x, tilt t) at (ε, δ):  a = t·ε/c,  b = (1 − t)·ε/c
    w(S) = exp(a·(worst score in S) − b·(best score outside S))   for S of `size` of the top `width`
    W    = Σ w(S),   f = the score just below the top `width`
    B    = e^(a(f+c))·(e^(−b(q_(size)−c)) − e^(−b·q_(size)) + Σ_p C(width−p, size−p)·D_p)
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
from functools import cached_property, lru_cache
from itertools import accumulate

from flint import arb

from privmax.errors import ParameterError
from privmax.mechanisms.cells import Cells
from privmax.mechanisms.contract import (
    Law,
    Outcome,
    Relation,
    closed_size,
    law_of,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.sets import SetMechanism, Sets, uniform_subset
from privmax.noise.balls import START, ball, ceiling, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli
from privmax.numbers import open_probability, positive, probability, whole
from privmax.parameters import (
    Exact,
    Parameter,
    Parameters,
    Whole,
    parameter,
)
from privmax.privacy import ADD_REMOVE, Privacy, swing
from privmax.profile import Level, Profile, Window

TILT = Fraction(3, 4)
"""Part of epsilon that goes to the worst member of a set; the rest goes to the best outside."""

SHRINKING = Fraction(4, 5)
"""How much smaller the sets of each stage are than those before."""

HASTE = Fraction(1, 4)
"""Part of epsilon for the test of the best set alone, at an epsilon of 1 or more."""

LEAST_HASTE = Fraction(1, 32)
"""Below this the test would find so little that it is left out."""


ERROR = 2.0**-32
"""Of every probability of a law, far above what actually happens."""


class Stage(Parameters, kw_only=False):
    """One draw of a cascade.

    Args:
        size: How many candidates it releases.
        width: Among how many of the best it draws; `size` itself: the best set or nothing.
        silence: The part of its epsilon that is gone when it releases nothing; 1 for the last.
        tilt: The part of its epsilon that goes to the worst member of a set.
        part: Of the mechanism's delta.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> Stage(10, 220, silence="0.05", tilt="0.75", part="0.5")
        Stage(size=10, width=220, silence=0.05, tilt=0.75, part=0.5)
    """

    size: Whole = parameter(whole)
    width: Whole = parameter(whole)
    silence: Exact = parameter(positive)
    tilt: Exact = parameter(open_probability, default=TILT)
    part: Exact = parameter(positive, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < self.size:
            raise ParameterError("width", self.width, f"it must be at least size={self.size}")
        for name in ("silence", "part"):
            if getattr(self, name) > 1:
                raise ParameterError(name, getattr(self, name), "it must not exceed 1")


def _read_stages(name: str, value: Sequence[Stage] | None, k: int) -> tuple[Stage, ...] | None:
    """Stages of at most k, the last of which ends the cascade."""
    if value is None:
        return None
    stages = tuple(value)
    if not stages or not all(isinstance(stage, Stage) for stage in stages):
        raise ParameterError(name, value, "they must be a Stage or more")
    if any(stage.size > k for stage in stages):
        raise ParameterError(name, value, f"no size must exceed k={k}")
    if stages[-1].silence != 1 or any(stage.silence == 1 for stage in stages[:-1]):
        raise ParameterError(name, value, "the silence of the last must be 1, and of no other")
    if sum(stage.part for stage in stages) > 1:
        raise ParameterError(name, value, "their parts of delta must not add up to more than 1")
    return stages


@lru_cache(maxsize=64)
def default_stages(k: int, epsilon: Fraction) -> tuple[Stage, ...]:
    """Return the stages that are used where none are given; a function of public numbers.

    First the best set alone, where epsilon is not small; then sets of k, of four fifths of k and so
    on down to one, each among twice as many candidates and 200 more.

    Examples:
        >>> [(stage.size, stage.width) for stage in default_stages(3, Fraction(1))]
        [(3, 3), (3, 206), (2, 204), (1, 202)]
    """
    sizes = [k]
    while sizes[-1] > 1:
        smaller = round(k * SHRINKING ** len(sizes))
        sizes.append(max(1, min(smaller, sizes[-1] - 1)))
    haste = HASTE * min(Fraction(1), epsilon) ** 2
    share = Fraction(1, len(sizes)) / (2 if haste >= LEAST_HASTE else 1)
    stages = [
        Stage(size, 2 * size + 200, silence=_silence(len(sizes) - place), part=share)
        for place, size in enumerate(sizes, start=1)
    ]
    if haste >= LEAST_HASTE:
        stages.insert(0, Stage(k, k, silence=haste, part=Fraction(1, 2)))
    return tuple(stages)


def _silence(left: int) -> Fraction:
    """Of a stage with so many left after it: little, and more toward the end."""
    return max(Fraction(1, 20), 1 / (5 * left + Fraction(1)))


class SetMargin(SetMechanism):
    """Draw the best `k` as a set, from an open or a closed universe; or a smaller set, or nothing.

    Args:
        epsilon: What it costs, with `delta`.
        delta: 0 only in a closed universe, where the whole of it is drawn from at once.
        neighbors: "add-remove" or "replace".
        k: How many candidates are released at most.
        stages: The cascade; public. By default `default_stages`.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import SetMargin
        >>> [SetMargin(epsilon=1, delta=1e-6, k=k).lead(candidates=None) for k in (10, 1000)]
        [25, 25]
        >>> SetMargin(epsilon=1, k=10).lead(candidates=10**6)
        126
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(probability, default=0)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(whole)
    stages: Parameter[Sequence[Stage] | None, tuple[Stage, ...] | None] = parameter(
        _read_stages, default=None, beside="k"
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
        window = self._window(profile)
        for turn in self._turns(window, profile):
            if not bernoulli(turn.nothing, coins):
                return turn.draw(coins)
        return []

    def law(self, profile: Profile) -> Law:
        """Return for each block how many of it are released on average; of one item, its law."""
        window = self._window(profile)
        blocks = window.blocks()
        expected, none, reach = [0.0] * len(blocks), 0.0, 1.0
        for turn in self._turns(window, profile):
            silent = turn.chance_of_nothing()
            none += reach * (1 - silent) * turn.chance_nobody()
            held = turn.held_by_block(len(blocks))
            expected = [
                before + reach * (1 - silent) * number
                for before, number in zip(expected, held, strict=True)
            ]
            reach *= silent
        expected = [
            0.0 if number is None else average
            for average, (_, number) in zip(expected, blocks, strict=True)
        ]
        return law_of(window, expected, none + reach, error=self.k * ERROR)

    def sets(self, profile: Profile) -> Mapping[object, Sets]:
        window = self._window(profile)
        table: dict[tuple[int, ...], float] = {}
        reach = 1.0
        for turn in self._turns(window, profile):
            silent = turn.chance_of_nothing()
            for numbers, chance in turn.numbers().items():
                share = reach * (1 - silent) * chance
                table[numbers] = table.get(numbers, 0.0) + share
            reach *= silent
        nobody = (0,) * len(window.blocks())
        if reach:
            table[nobody] = table.get(nobody, 0.0) + reach
        scored = tuple((window.top - depth, count) for depth, count in window.blocks())
        floor = window.top - window.floor if window.rest else None
        return {None: Sets(scored, floor, table, error=ERROR)}

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window = self._window(profile, best)
        upto = list(accumulate(window.counts))
        tied = next((end for end in upto if end >= best), best)
        listed = upto[-1] if window.rest is None and upto else None
        size, hits, reach = 0.0, 0.0, 1.0
        for turn in self._turns(window, profile):
            silent = turn.chance_of_nothing()
            size += reach * (1 - silent) * turn.hits(turn.width if listed is None else listed)
            hits += reach * (1 - silent) * turn.hits(tied if listed is None else min(tied, listed))
            reach *= silent
        return size, min(hits, float(best))

    def lengths(self, profile: Profile, best: int) -> dict[int, tuple[float, float]]:
        """Return, by how many candidates are released, with what probability, and how many of the
        `best` highest are among them on average, times that probability.

        Candidates tied with the last of those count as one of them. `expect` is its sums. Never
        released.
        """
        window = self._window(profile, best)
        upto = list(accumulate(window.counts))
        tied = next((end for end in upto if end >= best), best)
        table: dict[int, tuple[float, float]] = {}
        reach = 1.0
        for turn in self._turns(window, profile):
            silent = turn.chance_of_nothing()
            for length, (chance, hits) in turn.lengths(tied).items():
                before = table.get(length, (0.0, 0.0))
                share = reach * (1 - silent)
                table[length] = before[0] + share * chance, before[1] + share * hits
            reach *= silent
        table[0] = table.get(0, (0.0, 0.0))[0] + reach, 0.0
        return table

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def cascade(self, universe: int | None) -> tuple[Stage, ...]:
        """Return the stages in use; public."""
        if self.delta == 0:
            size = closed_size(Profile([], universe=universe))
            return (Stage(min(self.k, size), size, silence=1),)
        return default_stages(self.k, self.epsilon) if self.stages is None else self.stages

    def _chance_best(self, profile: Profile) -> float:
        window = self._window(profile)
        found, reach = 0.0, 1.0
        for turn in self._turns(window, profile):
            silent = turn.chance_of_nothing()
            if turn.size == self.k:
                found += reach * (1 - silent) * turn.chance_all_best()
            reach *= silent
        return found

    def _window(self, profile: Profile, rank: int = 1) -> Window:
        require_fit(self.k, profile)
        widest = max(stage.width for stage in self.cascade(profile.universe))
        return profile.down_to(max(widest + 1, rank))

    def _turns(self, window: Window, profile: Profile) -> Iterator[_Turn]:
        """The stages, each with its part of the cost, up to one that always releases."""
        left = self.epsilon
        for stage in self.cascade(profile.universe):
            unit = swing(self.neighbors) * profile.sensitivity
            yield _Turn(self, stage, left, window, profile.universe, unit)
            if profile.universe is not None and stage.width >= profile.universe:
                return
            left *= 1 - stage.silence


@dataclass(frozen=True)
class _Turn:
    """A stage on a profile.

    mechanism   whose stage it is
    stage       what it draws
    epsilon     what is left for it
    window      the profile
    universe    its size; None: open
    unit        c, by how much two scores can drift apart between neighbors
    """

    mechanism: SetMargin
    stage: Stage
    epsilon: Fraction
    window: Window
    universe: int | None
    unit: int

    @property
    def size(self) -> int:
        return self.stage.size

    @cached_property
    def width(self) -> int:
        return self.stage.width if self.universe is None else min(self.stage.width, self.universe)

    @property
    def is_certain(self) -> bool:
        """Whether all candidates there are take part: nobody can slip, and nothing is no answer."""
        return self.width == self.universe

    @property
    def is_test(self) -> bool:
        """Whether it releases the best set or nothing."""
        return self.width == self.size

    @cached_property
    def levels(self) -> list[Level]:
        """Of the top `width`."""
        return self.window.first(self.width)

    @cached_property
    def cells(self) -> Cells:
        rate = self.epsilon / self.unit
        return Cells(self.levels, self.size, rate * self.stage.tilt, rate * (1 - self.stage.tilt))

    @property
    def delta(self) -> Fraction:
        return self.mechanism.delta * self.stage.part

    def nothing(self) -> arb:
        """The probability of nothing, at the precision in force."""
        if self.is_certain:
            return arb(0)
        silence = self.stage.silence
        if self.is_test:
            gap = self.window.depth(self.size + 1) - self.window.depth(self.size)
            return silence_of_test(-(-gap // self.unit), self.epsilon, self.delta, silence)
        odds = (self.cells.log_total() - self._log_guard()).exp()
        return (-ball(silence) * odds.log1p()).exp()

    def _log_guard(self) -> arb:
        """ln g."""
        rate, tilt = self.epsilon / self.unit, self.stage.tilt
        inside, outside = rate * tilt, rate * (1 - tilt)
        last = ball(outside * self.window.depth(self.size))
        slipping = (self.cells.log_last() - last).exp() + ball(outside * self.unit).expm1()
        scale = ball(self.stage.silence / self.delta).log()
        below = ball(inside * (self.unit - self.window.depth(self.width + 1)))
        return scale + below + last + slipping.log()

    def draw(self, coins: Coins) -> list[Outcome]:
        """A set, given that it is not nothing."""
        if self.is_test:
            prefix, reach = self.size, self.size
        else:
            prefix, reach = self.cells.draw(coins)
        ranks = sorted(
            prefix + place for place in uniform_subset(reach - prefix, self.size - prefix, coins)
        )
        found: list[Outcome] = []
        start = 0
        for (depth, number), (_, everybody) in zip(self.levels, self.window.blocks(), strict=False):
            end = start + number
            if end <= prefix:
                places = list(range(number))
            else:
                chosen = ranks[bisect_left(ranks, start) : bisect_left(ranks, end)]
                places = [rank - start for rank in chosen]
            if everybody is not None:
                if number < everybody:  # the level is cut: which of them take part was left open
                    places = uniform_subset(everybody, len(places), coins)
                found += [Outcome(self.window.top - depth, place) for place in places]
            start = end
        return found

    # The law, in floats

    def chance_of_nothing(self) -> float:
        with precision(START):
            return float(self.nothing().mid())

    def hits(self, best: int) -> float:
        """How many of the `best` highest it releases on average, given that it releases."""
        return float(min(self.size, best)) if self.is_test else self.cells.hits(best)

    def lengths(self, best: int) -> dict[int, tuple[float, float]]:
        """By how many were ever seen of those it draws: with what probability, and how many of the
        `best` highest they hold on average, times that probability; given that it releases.
        """
        seen = self.width if self.window.rest is not None else sum(self.window.counts)
        if self.is_test:
            return {min(self.size, seen): (1.0, float(min(self.size, seen, best)))}
        table: dict[int, tuple[float, float]] = {}
        for p, u, chance in self.cells.chances():
            # of the ranks after the prefix, `good` were seen, and `among` of these are of the best
            good, among = max(0, min(u, seen) - p), max(0, min(u, seen, best) - p)
            left = self.size - p
            for number in range(max(0, left - (u - p - good)), min(left, good) + 1):
                share = chance * _share(good, u - p, left, number)
                hits = min(p, seen, best) + (number * among / good if good else 0)
                length = min(p, seen) + number
                before = table.get(length, (0.0, 0.0))
                table[length] = before[0] + share, before[1] + share * hits
        return table

    def held_by_block(self, blocks: int) -> list[float]:
        """How many of each block it releases on average, given that it releases."""
        ends = list(accumulate(count for _, count in self.levels))
        upto = [self.hits(end) for end in ends]
        held = [high - low for low, high in zip([0.0, *upto], upto, strict=False)]
        return held + [0.0] * (blocks - len(held))

    def chance_all_best(self) -> float:
        """Probability that all of them come from the best level, given that it releases."""
        best = self.levels[0][1]
        if self.is_test:
            return 1.0 if best >= self.size else 0.0
        return math.fsum(
            chance * _odds(best - p, u - p, self.size - p)
            for p, u, chance in self.cells.chances()
            if p <= best
        )

    def chance_nobody(self) -> float:
        """Probability that nobody in it was ever seen, given that it releases."""
        seen = sum(self.window.counts)
        if self.window.rest is not None or self.is_test:
            return 0.0
        return math.fsum(
            chance * _odds(u - seen, u, self.size)
            for p, u, chance in self.cells.chances()
            if p == 0
        )

    def numbers(self) -> dict[tuple[int, ...], float]:
        """Probability of how many of each block it releases, given that it releases."""
        blocks = self.window.blocks()
        table: dict[tuple[int, ...], float] = {}
        if self.is_test:
            cells: list[tuple[int, int, float]] = [(self.size, self.size, 1.0)]
        else:
            cells = self.cells.chances()
        for prefix, reach, chance in cells:
            for taken, ways in _ways(self.levels, prefix, reach, self.size):
                share = chance * float(
                    Fraction(ways, math.comb(reach - prefix, self.size - prefix))
                )
                key = tuple(
                    0 if number is None else count
                    for count, (_, number) in zip(
                        taken + (0,) * (len(blocks) - len(taken)), blocks, strict=True
                    )
                )
                table[key] = table.get(key, 0.0) + share
        return table


def _ways(
    levels: Sequence[Level], prefix: int, reach: int, size: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """How many of each level sets of a cell hold, and in how many ways."""

    def extend(place: int, start: int, left: int) -> Iterator[tuple[tuple[int, ...], int]]:
        if place == len(levels):
            if not left:
                yield (), 1
            return
        number = levels[place][1]
        end = start + number
        if end <= prefix:
            options = [(number, 1)]
        else:
            there = max(0, min(end, reach) - start)
            options = [(count, math.comb(there, count)) for count in range(min(there, left) + 1)]
        for count, ways in options:
            for rest, more in extend(place + 1, end, left - count):
                yield (count, *rest), ways * more

    yield from extend(0, 0, size)


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
    """The probability that `size` out of a number are all among a few of them, C(few, size) over
    C(number, size).
    """
    if few < size:
        return 0.0
    return math.exp(
        math.lgamma(few + 1)
        - math.lgamma(few - size + 1)
        - math.lgamma(number + 1)
        + math.lgamma(number - size + 1)
    )


def silence_of_test(steps: int, epsilon: Fraction, delta: Fraction, silence: Fraction) -> arb:
    """Return the probability of nothing of the test for the best set, `steps` records ahead.

    π(0) = 0,  π(n+1) = min{e^ε·π(n) + δ, 1 − e^(−xε)·(1 − π(n))}; this is 1 − π, by its closed form.

    Examples:
        >>> one = Fraction(1)
        >>> silence_of_test(0, one, one / 1000, one / 2) == 1
        True
    """
    turn = _turning_point(epsilon, delta, silence)
    risen = min(steps, turn)
    rise = ball(delta) * ball(epsilon * risen).expm1() / ball(epsilon).expm1()
    return (1 - rise) * (-ball(silence * epsilon * (steps - risen))).exp()


@lru_cache(maxsize=256)
def _turning_point(epsilon: Fraction, delta: Fraction, silence: Fraction) -> int:
    """The least n from which on the second term of the minimum is not the larger one.

    It is ⌈ln(1 + (1 − e^(−xε) − δ)·(e^ε − 1) / (δ·(e^ε − e^(−xε)))) / ε⌉, or 0. Ends: were it an
    integer, a power of e with a rational exponent would solve a polynomial equation.
    """
    with precision(START):
        first = ball(1 - delta) - (-ball(silence * epsilon)).exp()
        if not first > 0:
            return 0

    def exact() -> arb:
        fall, rise = (-ball(silence * epsilon)).exp(), ball(epsilon).exp()
        least = (1 - fall - ball(delta)) * (rise - 1) / (ball(delta) * (rise - fall))
        return least.log1p() / ball(epsilon)

    return ceiling(exact)
