"""The ranked margin mechanism: the best k as a set, then their order by noisy counts.

    S     the set margin mechanism at (share·ε, δ_S)
    y_i   q_i + N_i for i in S, N_i independent noise of one law, at ((1 − share)·ε, δ_N)
    release S sorted by y, best first, and y_i − y_first for each

Only differences of y are released, so that what all counts move by together cancels: the noise is
half of that on the counts themselves under add-remove. How far apart two counts must be to be told
apart is public. The share is chosen so that this difference and the lead that the set needs are
about equal.

Proof:      docs/proofs/ranked-margin.md
Reference:  original to this library
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import permutations

from privmax.mechanisms.contract import (
    Law,
    Outcome,
    Relation,
    read_length,
    read_relation,
    require_single,
)
from privmax.mechanisms.peeling import Ranker, Sequences
from privmax.mechanisms.set_margin import SetMargin
from privmax.mechanisms.sets import Sets
from privmax.mechanisms.stages import Stage, default_stages, read_stages
from privmax.noise.coins import Coins
from privmax.numbers import Number, open_probability, positive, probability, whole
from privmax.parameters import Exact, OptionalWhole, Parameter, Whole, optional, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy
from privmax.profile import Profile
from privmax.relative import OrderNoise, RelativeNoise, choose_order_noise

LEAST_SHARE, LARGEST_SHARE = Fraction(3, 5), Fraction(4, 5)
"""The set gets no less and no more of epsilon than this. Between the two, wrong pairs of typical
lists are about equally many, and the set's lead grows to at most 1.7 times that of the set alone.
"""

PURE_SHARE = Fraction(7, 10)
"""The set's share without delta: what the set needs then depends on the universe."""

SHARE_STEPS = 20
"""Shares are multiples of one part in so many."""

LONGEST_BALANCED = 1000
"""Of longer lists the set has the largest share: its lead grows faster than the noise."""


class RankedMargin(Ranker):
    """Draw the best `k` in order, with how far apart they are; or fewer, or nothing.

    Args:
        epsilon: What it costs, with `delta`.
        delta: 0 only in a closed universe.
        neighbors: "add-remove" or "replace".
        growth: How many candidates one record touches at most, if there is a bound.
        k: How many candidates are released at most.
        share: The part of epsilon for the set, public; None: `balanced_share`. One item has no
            order, and all of it.
        stages: The cascade that draws the set, as `SetMargin` takes it.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import RankedMargin
        >>> [RankedMargin(epsilon=1, delta=1e-6, k=k).lead(candidates=None) for k in (10, 100)]
        [41, 371]
        >>> RankedMargin(epsilon=1, delta=1e-6, k=10).apart()
        46
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(probability, default=0)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    growth: OptionalWhole = parameter(optional(whole), default=None)
    k: Whole = parameter(read_length, default=1)
    share: Parameter[Number | None, Fraction | None] = parameter(
        optional(open_probability), default=None
    )
    stages: Parameter[Sequence[Stage] | None, tuple[Stage, ...] | None] = parameter(
        read_stages, default=None, depends_on="k"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta:
            open_probability("delta", self.delta)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        return self.members.draw(profile, coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        drawn = self.members.subset(profile, coins)
        if self.k == 1:
            return drawn
        noise = self.noise(profile.sensitivity)
        scores = [outcome.score for outcome in drawn if outcome.score is not None]
        assert len(scores) == len(drawn), "a member of a set has a score"
        places = noise.rank(scores, coins)
        return [replace(drawn[place.number], relative=place.relative) for place in places]

    def law(self, profile: Profile) -> Law:
        """Return for each block how many of it are released on average; of one item, its law."""
        return self.members.law(profile)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        """Return the law of the list, without how far apart its items are."""
        noise = self.noise(profile.sensitivity)
        return {
            extra: _order_sets(law, noise, self.k)
            for extra, law in self.members.sets(profile).items()
        }

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        return self.members.expect(profile, best)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    @cached_property
    def members(self) -> SetMargin:
        """The mechanism that draws the set; public."""
        if self.k == 1:
            return SetMargin(
                epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors, stages=self.stages
            )
        spent = self._order_noise().privacy
        stages = default_stages(self.k, self.epsilon) if self.stages is None else self.stages
        return SetMargin(
            epsilon=self.epsilon - spent.epsilon,
            delta=self.delta - spent.delta,
            neighbors=self.neighbors,
            k=self.k,
            stages=stages,
        )

    def noise(self, sensitivity: int = 1, step: Fraction = Fraction(1)) -> RelativeNoise:
        """Return the noise on the counts of a set; public.

        Args:
            sensitivity: By how many steps one individual can move a count.
            step: What a step is worth in units of the scores.

        Examples:
            >>> RankedMargin(epsilon=1, delta=1e-6, k=2).noise()
            RelativeLaplace(scale=5, step=1)
        """
        return self._order_noise(sensitivity, step).noise

    def apart(self) -> int | float:
        """Return how far apart two counts must be released to be told apart, in records; public.

        The difference of two counts is within this of the true one with a probability of 95 %.
        """
        return 0 if self.k == 1 else self.noise().error()

    def used_share(self) -> Fraction:
        """Return the share of epsilon that the set gets; public.

        Examples:
            >>> RankedMargin(epsilon=1, delta=1e-6, k=10).used_share()
            Fraction(3, 5)
        """
        if self.k == 1:
            return Fraction(1)
        if self.share is not None:
            return self.share
        price = self.epsilon, self.delta
        return balanced_share(*price, self.k, neighbors=self.neighbors, growth=self.growth)

    def _order_noise(self, sensitivity: int = 1, step: Fraction = Fraction(1)) -> OrderNoise:
        """The noise, and what it costs at most whatever the scale of the scores.

        Half of delta is for Gaussian noise; the set has all of it where the noise needs none.
        """
        allowed = Privacy(self.epsilon * (1 - self.used_share()), self.delta / 2)
        choose = partial(choose_order_noise, k=self.k, growth=self.growth, neighbors=self.neighbors)
        privacy = choose(allowed).privacy
        return OrderNoise(choose(privacy, sensitivity=sensitivity, step=step).noise, privacy)

    def _chance_best(self, profile: Profile) -> float:
        return self.members._chance_best(profile)


@lru_cache(maxsize=256)
def balanced_share(
    epsilon: Fraction,
    delta: Fraction,
    k: int,
    *,
    neighbors: Neighbors = ADD_REMOVE,
    growth: int | None = None,
) -> Fraction:
    """Return the share of epsilon for the set; a function of public numbers.

    What a set needs of epsilon for a given lead, and what counts need to be told apart at a given
    difference, are nearly in proportion to 1/epsilon. So each gets a share in proportion to what it
    would need alone, by its exact law: the lead is then about the difference that is told apart.

    Args:
        epsilon: The cost of all.
        delta: With it; 0: `PURE_SHARE`.
        k: How many candidates are released.
        neighbors: "add-remove" or "replace".
        growth: How many candidates one record touches at most, if there is a bound.

    Examples:
        >>> [float(balanced_share(Fraction(1), Fraction(1, 10**6), k)) for k in (5, 10, 20, 100)]
        [0.75, 0.6, 0.65, 0.8]
    """
    if not delta:
        return PURE_SHARE
    if k > LONGEST_BALANCED:
        return LARGEST_SHARE
    alone = SetMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k)
    lead = alone.lead(candidates=None)
    noise = choose_order_noise(Privacy(epsilon, delta), k=k, growth=growth, neighbors=neighbors)
    part = Fraction(lead) / (lead + Fraction(noise.noise.error()))
    return min(max(Fraction(round(part * SHARE_STEPS), SHARE_STEPS), LEAST_SHARE), LARGEST_SHARE)


def _order_sets(law: Sets, noise: RelativeNoise, k: int) -> Sequences:
    """The law of a list, from that of its set: for small sets of few scores."""
    table: dict[tuple[int, ...], float] = {}
    known = True
    for numbers, chance in law.chances.items():
        members = [place for place, number in enumerate(numbers) for _ in range(number)]
        if len(members) <= 1:
            table[*members,] = table.get((*members,), 0.0) + chance
            continue
        scores = [law.blocks[place][0] for place in members]
        known &= noise.parts * (max(scores) - min(scores)) <= noise.reach // 4
        for order, share in _orders(members, [score for score, _ in law.blocks], noise):
            table[order] = table.get(order, 0.0) + chance * share
    # Noise beyond its reach is left out of every order; of the rare ones that may be a large part.
    relative = law.relative + 1e-9 if known and k <= 3 else math.inf
    return Sequences(law.blocks, law.floor, table, law.error + 1e-12, relative)


def _orders(
    members: Sequence[int], scores: Sequence[int], noise: RelativeNoise
) -> Iterator[tuple[tuple[int, ...], float]]:
    """All lists of blocks that hold these members, each with its probability."""
    same = math.prod(math.factorial(number) for number in Counter(members).values())
    for order in sorted(set(permutations(members))):
        yield order, same * _chance_sorted([scores[block] for block in order], noise)


@lru_cache(maxsize=16)
def _weigh_all(noise: RelativeNoise) -> list[float]:
    return [noise.weigh(parts) for parts in range(-noise.reach, noise.reach + 1)]


def _chance_sorted(scores: Sequence[int], noise: RelativeNoise) -> float:
    """The probability that counts with noise are sorted as they are given, ties by coins."""
    import numpy as np  # a plan does not wait for it

    low = noise.parts * min(scores) - noise.reach
    grid = range(low, noise.parts * max(scores) + noise.reach + 1)
    law = np.array(_weigh_all(noise))
    law /= law.sum()
    # By how many are tied with the last one, and where that is: so many have 1/(their number)! of
    # all orders.
    runs: list[np.ndarray] = []
    for score in scores:
        start = noise.parts * score - noise.reach - low
        here = np.zeros(len(grid))
        here[start : start + len(law)] = law
        if not runs:
            runs = [here]
            continue
        total = np.sum(runs, axis=0)
        above = np.append(np.cumsum(total[::-1])[::-1][1:], 0.0)
        tied = [run * here / (size + 1) for size, run in enumerate(runs, start=1)]
        runs = [above * here, *tied]
    return float(np.sum(runs))
