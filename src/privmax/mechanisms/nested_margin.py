"""The nested margin mechanism: every guard at once, and each candidate keeps the best offer of
them.

    Public ranks ℓ_1 < ℓ_2 < … < ℓ_J; δ_j = δ/J; ε̂ = (1 − 1/64)·ε; ρ = 1 − e^(−ε/64)
    w_i     = exp(ε̂·q_i/c)
    guard_j = w_(ℓ_j+1) · max(ℓ_j·e^ε̂/δ_j, (ℓ_J − ℓ_j)/ρ)
    N_j     = Σ of w over the top ℓ_j, plus guard_j
    P(i)    = w_i / min{N_j : i is among the top ℓ_j};   nothing with what is left

With one rank, w_i/N_j is the limited domain mechanism. Taking the best of several offers costs only
ln J in the guards, where picking a rank first (SharpMargin) costs a part of epsilon. In a closed
universe of K ≤ ℓ_J the last rank is K itself and has no guard.

Proof:      docs/proofs/nested-margin.md
Reference:  original to this library
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial

from flint import arb, ctx

from privmax.mechanisms.contract import (
    Law,
    Mechanism,
    Outcome,
    Relation,
    draw_candidate,
    law_of,
    read_relation,
)
from privmax.mechanisms.guards import read_ranks, slips
from privmax.mechanisms.weights import block_weights, clip_width, decay, round_chances
from privmax.noise.balls import START, above, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, OptionalWhole, Parameter, optional, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Profile, Window

NESTING = Fraction(1, 64)
"""Part of epsilon that covers taking the best of several offers."""

FOURFOLD = tuple(4**j for j in range(11))
"""The default ranks: 1, 4, 16, … 2^20."""


class NestedMargin(Mechanism):
    """Draw one candidate, or nothing, from an open or a closed universe.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace".
        ranks: The ranks of guards, increasing; public. Lower ranks are never drawn.
        growth: The bound on how many candidates one record touches, if there is one; public.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import NestedMargin
        >>> NestedMargin(epsilon=1, delta=1e-6).privacy()
        Privacy(epsilon=1, delta=1e-06)
        >>> NestedMargin(epsilon=1, delta=1e-6).lead(candidates=None, near=10)
        21
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability, remedy="The guards weigh 1/delta; for delta = 0 use PermuteAndFlip."
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    ranks: Parameter[Sequence[int], tuple[int, ...]] = parameter(
        read_ranks, default=FOURFOLD, remedy="For example (1, 32, 1024)."
    )
    growth: OptionalWhole = parameter(optional(whole), default=None)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        block = weighted(lambda: self._chances(window, profile), coins)
        return (
            Outcome(None) if block == len(window.blocks()) else draw_candidate(window, block, coins)
        )

    def law(self, profile: Profile) -> Law:
        window = self._window(profile)
        *chances, none = round_chances(lambda: self._chances(window, profile))
        return law_of(window, chances, max(0.0, none), true_zeros=False)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def levels(self, universe: int | None) -> list[int]:
        """Return the ranks in use: in a universe of no more than the last, the last is all of it.

        Args:
            universe: The size of the universe; None: open.

        Examples:
            >>> NestedMargin(epsilon=1, delta=1e-6).levels(20)
            [1, 4, 16, 20]
        """
        if universe is None or universe > self.ranks[-1]:
            return list(self.ranks)
        return [*(rank for rank in self.ranks if rank < universe), universe]

    def draw_epsilon(self) -> Fraction:
        """Return the epsilon of the draw, without what taking the best offer costs.

        Examples:
            >>> NestedMargin(epsilon=1, delta=1e-6).draw_epsilon()
            Fraction(63, 64)
        """
        return (1 - NESTING) * self.epsilon

    def _window(self, profile: Profile) -> Window:
        return profile.window(self._clip(profile))

    def _clip(self, profile: Profile) -> int:
        return _width(self, profile.universe, profile.sensitivity)

    def _guard(self, rank: int, universe: int | None) -> arb:
        """Return the weight of the guard of the top `rank`, over that of the candidate just below
        them; 0: no guard.
        """
        if rank == universe:
            return arb(0)
        slipping = ball(slips(rank, self.growth, self.neighbors) / self._delta(universe))
        return (slipping * ball(self.draw_epsilon()).exp()).max(
            (self.levels(universe)[-1] - rank) / _room(self.epsilon)
        )

    def _delta(self, universe: int | None) -> Fraction:
        """Of each guard."""
        return self.delta / sum(rank != universe for rank in self.levels(universe))

    def _offer(
        self,
        inside: arb,
        rank: int,
        guard: arb,
        window: Window,
        profile: Profile,
        fall: Callable[[int], arb],
    ) -> arb:
        """The weight of the top `rank`, which is `inside`, and of its guard.

        A candidate among them is offered its share of that. `fall` is the weight of one candidate
        at a depth.
        """
        if rank == profile.universe:
            return inside
        offer = inside + guard * fall(window.depth(rank + 1))
        if (
            self.growth is not None
        ):  # a moving floor can make all of the top `rank` slip, whatever the growth
            floor = ball(rank / self._delta(profile.universe)) * ball(self.draw_epsilon()).exp()
            offer += floor * fall(self._clip(profile))
        return offer

    def _chances(self, window: Window, profile: Profile) -> list[arb]:
        """Probability of each block, and last of nothing, at the precision in force."""
        levels = self.levels(profile.universe)
        rate = self._rate(profile)
        fall = cache(partial(decay, rate))  # many ranks end at the same depth
        each = block_weights([(depth, 1) for depth, _ in window.blocks()], rate)
        guards = _guards(self, profile.universe, ctx.prec)
        tops = [window.first(rank) for rank in levels]
        chances, best = [arb(0)] * len(each), arb.pos_inf()
        for rank, top, inner, guard in zip(
            reversed(levels),
            reversed(tops),
            [*reversed(tops[:-1]), []],
            reversed(guards),
            strict=True,
        ):
            inside = sum((one * count for one, (_, count) in zip(each, top, strict=False)), arb(0))
            best = best.min(self._offer(inside, rank, guard, window, profile, fall))
            for block, (_, count) in enumerate(top):
                ring = count - (inner[block][1] if block < len(inner) else 0)
                if ring:  # those between the two ranks
                    chances[block] += each[block] * ring / best
        return [*chances, 1 - sum(chances, start=arb(0))]

    def _rate(self, profile: Profile) -> Fraction:
        return self.draw_epsilon() / (drift(self.neighbors) * profile.sensitivity)


@lru_cache(maxsize=256)
def _guards(mechanism: NestedMargin, universe: int | None, bits: int) -> list[arb]:
    """`_guard` of every rank in use, at `bits` of precision."""
    with precision(bits):
        return [mechanism._guard(rank, universe) for rank in mechanism.levels(universe)]


@lru_cache(maxsize=256)
def _width(mechanism: NestedMargin, universe: int | None, sensitivity: int) -> int:
    """A public window at whose floor the heaviest guard, or the crowd of the last rank, weighs at
    most CLIP_LOSS.
    """
    levels = mechanism.levels(universe)
    with precision(START):
        crowd = above(levels[-1] / _room(mechanism.epsilon))
    unit = drift(mechanism.neighbors) * sensitivity
    return unit + clip_width(
        unit / mechanism.draw_epsilon(),
        max(Fraction(crowd), levels[-1] * len(levels) / mechanism.delta),
    )


def _room(epsilon: Fraction) -> arb:
    """ρ, the part of what is left for nothing that ranks further out may take."""
    return -(-ball(NESTING * epsilon)).expm1()
