"""Limited domain: draw among the top k̄ candidates and a guard that outweighs all that could slip
out of them.

    threshold = q_(k̄+1) + c + (c/ε)·ln(k̄/δ)
    draw among the top k̄ candidates (weight exp(ε·q_i/c))
    and nothing (the guard: weight exp(ε·threshold/c))

k̄ is fixed in advance: too small and near maximizers are cut off, too large and the guard is heavy.

Proof:      docs/proofs/limited-domain.md
Reference:  Durfee & Rogers, NeurIPS 2019
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from flint import arb

from privmax.mechanisms.arrivals import expected_peeling
from privmax.mechanisms.contract import (
    ROUNDING,
    Law,
    Outcome,
    Relation,
    draw_candidate,
    law_of,
    read_length,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.guards import guard_weight, guard_width, slips
from privmax.mechanisms.peeling import (
    Ranker,
    Sequences,
    chance_all_best,
    peel,
    round_and_guard,
    sequence_law,
)
from privmax.mechanisms.weights import block_weights, log_last, shares
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, OptionalWhole, Whole, optional, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Level, Profile, Window


class LimitedDomain(Ranker):
    """Draw one candidate, or nothing, or the best `k`, from an open or a closed universe.

    Args:
        epsilon: What it costs in all, with `delta`.
        delta: Above 0.
        rank: How many of the highest candidates compete (k̄); public.
        neighbors: "add-remove" or "replace".
        growth: The bound on how many candidates one record touches, if there is one; public.
        k: How many items are released.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import LimitedDomain
        >>> LimitedDomain(epsilon=1, delta=1e-6, rank=10).lead(candidates=None, near=10)
        18
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="The guard's weight is 1/delta; for delta = 0 use PermuteAndFlip.",
    )
    rank: Whole = parameter(whole)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    growth: OptionalWhole = parameter(optional(whole), default=None)
    k: Whole = parameter(read_length, default=1)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        window, blocks = self._view(profile)
        block = weighted(lambda: self._weights(window, profile, blocks), coins)
        return Outcome(None) if block == len(blocks) else draw_candidate(window, block, coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return weighted(lambda: self._weights(window, profile, left), coins)

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        window, blocks = self._view(profile)
        chances = self._chances(window, profile, blocks)
        none = chances.pop() if len(chances) > len(blocks) else 0.0
        return law_of(
            window, chances + [0.0] * (len(window.blocks()) - len(chances)), none, relative=ROUNDING
        )

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks = self._view(profile)
        law = sequence_law(
            window, blocks, self.k, partial(self._chances, window, profile), relative=ROUNDING
        )
        return {None: law}

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window, blocks = self._view(profile)
        rate = self._round()[0] / (drift(self.neighbors) * profile.sensitivity)
        guard = log_last(lambda: self._weights(window, profile, blocks)[len(blocks) :])
        return expected_peeling(window, blocks, rate, self.k, best, guard=guard)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def _chance_best(self, profile: Profile) -> float:
        window, blocks = self._view(profile)
        return chance_all_best(blocks, self.k, partial(self._chances, window, profile))

    def _round(self) -> tuple[Fraction, Fraction]:
        """Epsilon of a round, and delta of the guard."""
        return round_and_guard(self.epsilon, self.delta, self.k)

    def _view(self, profile: Profile) -> tuple[Window, list[Level]]:
        """The clipped profile, and those of its blocks that compete."""
        window = profile.window(self._clip(profile), require_fit(self.k, profile))
        return window, window.first(
            self.rank if profile.universe is None else min(self.rank, profile.universe)
        )

    def _clip(self, profile: Profile) -> int:
        return guard_width(*self._round(), self.rank, drift(self.neighbors) * profile.sensitivity)

    def _weights(self, window: Window, profile: Profile, blocks: Sequence[Level]) -> list[arb]:
        """Weights of the blocks, and last of the guard (absent where every candidate competes)."""
        epsilon, delta = self._round()
        rate = epsilon / (drift(self.neighbors) * profile.sensitivity)
        weights = block_weights(blocks, rate)
        if profile.universe is None or self.rank < profile.universe:
            floor = None if self.growth is None else self._floor(window, profile)
            weights.append(
                guard_weight(
                    window,
                    self.rank,
                    self._slips(),
                    rate=rate,
                    epsilon=epsilon,
                    delta=delta,
                    floor=floor,
                )
            )
        return weights

    def _floor(self, window: Window, profile: Profile) -> int:
        """Depth of the clip, also where an open universe's floor at 0 is nearer."""
        return window.depth(self.k) + self._clip(profile)

    def _chances(self, window: Window, profile: Profile, blocks: Sequence[Level]) -> list[float]:
        return shares(lambda: self._weights(window, profile, blocks))

    def _slips(self) -> int:
        return slips(self.rank, self.growth, self.neighbors)
