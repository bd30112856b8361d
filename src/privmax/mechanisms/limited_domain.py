"""Limited domain: draw among the top k̄ candidates and a guard that outweighs whoever could slip
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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from privmax.mechanisms.base import (
    ROUNDING,
    Joint,
    Law,
    Outcome,
    candidate,
    clip_width,
    decay,
    law_of,
    rising_lead,
)
from privmax.mechanisms.exponential import block_weights, shares
from privmax.mechanisms.peeling import (
    Sequences,
    all_best,
    fitting,
    peel,
    round_and_guard,
    sequences,
    single,
)
from privmax.noise.balls import ball
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.privacy import (
    ADD_REMOVE,
    Described,
    Neighbors,
    Number,
    Privacy,
    open_probability,
    positive,
    relation,
    swing,
    whole,
)
from privmax.profile import Level, Profile, Window


@dataclass(frozen=True, init=False, repr=False)
class LimitedDomain(Described):
    """Draw one candidate, or nothing, or the best `k`, at a price of (`epsilon`, `delta`) in all.

    rank     how many of the highest candidates compete (k̄); public
    growth   bound on how many candidates one individual's record touches, if there is one; public
    """

    epsilon: Fraction
    delta: Fraction
    rank: int
    neighbors: Neighbors
    growth: int | None
    k: int

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        rank: int,
        neighbors: str = ADD_REMOVE,
        growth: int | None = None,
        k: int = 1,
    ) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(
            self, "delta",
            open_probability("delta", delta, "The guard's weight is 1/delta; for delta = 0 use "
                                             "PermuteAndFlip."),
        )  # fmt: skip
        object.__setattr__(self, "rank", whole("rank", rank))
        object.__setattr__(self, "neighbors", relation(neighbors))
        object.__setattr__(self, "growth", None if growth is None else whole("growth", growth))
        object.__setattr__(self, "k", whole("k", k))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        single(self.k)
        window, blocks = self._view(profile)
        block = weighted(lambda: self._weights(window, profile, blocks), coins)
        return Outcome(None) if block == len(blocks) else candidate(window, block, coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return weighted(lambda: self._weights(window, profile, left), coins)

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        """With k > 1: of the first item."""
        window, blocks = self._view(profile)
        chances = self._chances(window, profile, blocks)
        none = chances.pop() if len(chances) > len(blocks) else 0.0
        return law_of(
            window, chances + [0.0] * (len(window.blocks()) - len(chances)), none, relative=ROUNDING
        )

    def joint(self, profile: Profile) -> Joint:
        single(self.k)
        return {None: self.law(profile)}

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks = self._view(profile)
        law = sequences(
            window, blocks, self.k, partial(self._chances, window, profile), relative=ROUNDING
        )
        return {None: law}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        def best(profile: Profile) -> float:
            window, blocks = self._view(profile)
            return all_best(blocks, self.k, partial(self._chances, window, profile))

        return rising_lead(best, candidates=candidates, near=near, success=success, k=self.k)

    def _round(self) -> tuple[Fraction, Fraction]:
        """Epsilon of a round, and delta of the guard."""
        return round_and_guard(self.epsilon, self.delta, self.k)

    def _view(self, profile: Profile) -> tuple[Window, list[Level]]:
        """The clipped profile, and those of its blocks that compete."""
        window = profile.window(self._clip(profile), fitting(self.k, profile))
        return window, window.first(
            self.rank if profile.universe is None else min(self.rank, profile.universe)
        )

    def _clip(self, profile: Profile) -> int:
        return guard_width(*self._round(), self.rank, swing(self.neighbors) * profile.sensitivity)

    def _weights(self, window: Window, profile: Profile, blocks: Sequence[Level]) -> list[arb]:
        """Weights of the blocks, and last of the guard (absent where everybody competes)."""
        epsilon, delta = self._round()
        rate = epsilon / (swing(self.neighbors) * profile.sensitivity)
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


def slips(rank: int, growth: int | None, neighbors: Neighbors) -> int:
    """How many candidates can leave the top `rank` when one record changes (clipping aside)."""
    return rank if growth is None else min(rank, swing(neighbors) * growth)


def guard_weight(
    window: Window,
    rank: int,
    slips: int,
    *,
    rate: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    floor: int | None,
) -> arb:
    """Weight of the guard of the top `rank`, on the scale where the best candidate weighs 1.

    With a growth bound `floor` is the depth of the clip: a moving floor can make all of the top
    `rank` slip, whatever the growth.
    """
    guard = ball(slips / delta) * decay(rate, window.depth(rank + 1))
    if floor is not None:
        guard += ball(rank / delta) * decay(rate, floor)
    return guard * ball(epsilon).exp()


@lru_cache(maxsize=256)
def guard_width(epsilon: Fraction, delta: Fraction, rank: int, unit: int) -> int:
    """A public window at whose floor the guard of the top `rank` weighs at most CLIP_LOSS of the
    best candidate.
    """
    return unit + clip_width(unit / epsilon, rank / delta)
