"""The sharp large margin mechanism: a guard stands in for the paper's certificate, at an eighth of
its margin.

    Public ranks ℓ_0 < ℓ_1 < … with a public prior p_j, and ε = ε1 + ε2.
    threshold_j = q_(ℓ_j+1) + c + (c/ε2)·ln(ℓ_j/δ)
    pick j with weight p_j·exp(−(ε1/c)·threshold_j)
    draw among the top ℓ_j candidates (weight exp(ε2·q_i/c))
    and nothing (the guard: weight exp(ε2·threshold_j/c))

The guard outweighs anyone who could slip out of the top ℓ_j, so each of those is drawn with
probability at most δ/ℓ_j. In a closed universe of K a last choice, FULL, may compete: all K
candidates and no guard, weight p·exp(−(ε1/c)·q_(1)). Ties at the edge of the top ℓ_j are broken at
random. The rank picked is released free of charge. With k > 1 the rank is picked once and the draw
is repeated, each time without those drawn before, until k are drawn or the guard is.

Proof:      docs/proofs/sharp-margin.md
Reference:  original to this library; with one rank it is the limited domain mechanism of Durfee &
            Rogers, NeurIPS 2019
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise

from flint import arb, ctx

from privmax.errors import ParameterError
from privmax.mechanisms.base import (
    CLIP_LOSS,
    ROUNDING,
    Joint,
    Law,
    Outcome,
    candidate,
    law_of,
    rising_lead,
)
from privmax.mechanisms.exponential import block_weights, shares
from privmax.mechanisms.limited_domain import guard_weight, guard_width, slips
from privmax.mechanisms.peeling import (
    Sequences,
    all_best,
    fitting,
    peel,
    round_and_guard,
    sequences,
    single,
)
from privmax.noise.balls import START, above, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.privacy import (
    ADD_REMOVE,
    Described,
    Neighbors,
    Number,
    Privacy,
    nonnegative,
    open_probability,
    positive,
    relation,
    swing,
    whole,
)
from privmax.profile import Level, Profile, Window

PRODUCT = 3 * ROUNDING
"""Error of a probability of picking a rank times one of a draw, each within ROUNDING of itself, as
a part of it.
"""


@dataclass(frozen=True, init=False, repr=False)
class Guards(Described):
    """The public ranks a guard may stand at, and how much each is favoured before any data is seen.

    ranks   increasing
    prior   one positive weight a rank; only ratios matter
    share   part of epsilon spent on picking the rank
    full    weight of FULL in a closed universe, on the scale of `prior`; 0: never, unless no rank
            is below K
    """

    ranks: tuple[int, ...]
    prior: tuple[Fraction, ...]
    share: Fraction
    full: Fraction

    def __init__(
        self, ranks: Sequence[int], prior: Sequence[Number], *, share: Number, full: Number = 0
    ) -> None:
        ranks = tuple(whole("ranks", rank) for rank in ranks)
        if not ranks or any(high <= low for low, high in pairwise(ranks)):
            raise ParameterError("ranks", ranks, "they must be increasing, and at least one")
        if len(prior) != len(ranks):
            raise ParameterError(
                "prior", prior, f"it needs one weight for each of the {len(ranks)} ranks"
            )
        object.__setattr__(self, "ranks", ranks)
        object.__setattr__(self, "prior", tuple(positive("prior", weight) for weight in prior))
        object.__setattr__(self, "share", open_probability("share", share))
        object.__setattr__(self, "full", nonnegative("full", full))


FEW = Guards((1 << 10, 1 << 20, 1 << 40), ("0.96", "0.03", "0.01"), share="0.08")
"""The default: near maximizers are rarely more than a thousand."""

DYADIC = Guards(
    [1 << j for j in range(21)], [Fraction(1, j + 1) for j in range(21)], share="0.2", full=2
)
"""No opinion on their number, up to a million; in a closed universe FULL competes."""


@dataclass(frozen=True, init=False, repr=False)
class SharpMargin(Described):
    """Draw one candidate, or nothing, or the best `k`, at a price of (`epsilon`, `delta`) in all.

    guards   which ranks may be guarded: FEW (default), DYADIC or your own; public
    growth   bound on how many candidates one individual's record touches, if there is one; public
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors
    guards: Guards
    growth: int | None
    k: int

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        neighbors: str = ADD_REMOVE,
        guards: Guards = FEW,
        growth: int | None = None,
        k: int = 1,
    ) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(
            self, "delta",
            open_probability("delta", delta, "The guard's weight is 1/delta; for delta = 0 use "
                                             "PermuteAndFlip."),
        )  # fmt: skip
        object.__setattr__(self, "neighbors", relation(neighbors))
        if not isinstance(guards, Guards):
            raise ParameterError(
                "guards",
                guards,
                "they must be Guards",
                "For example privmax.FEW or privmax.DYADIC.",
            )
        object.__setattr__(self, "guards", guards)
        object.__setattr__(self, "growth", None if growth is None else whole("growth", growth))
        object.__setattr__(self, "k", whole("k", k))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        single(self.k)
        window, rank = self._pick(profile, coins)
        free = {"near_maximizers": rank}
        top = window.first(rank)
        block = weighted(lambda: self._weights(window, top, rank, profile), coins)
        return (
            Outcome(None, free=free) if block == len(top) else candidate(window, block, coins, free)
        )

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, rank = self._pick(profile, coins)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return weighted(lambda: self._weights(window, left, rank, profile), coins)

        found = peel(window, window.first(rank), self.k, draw, coins)
        free = {"near_maximizers": rank}
        return [replace(outcome, free=free) for outcome in found] or [Outcome(None, free=free)]

    def law(self, profile: Profile) -> Law:
        """With k > 1: of the first item."""
        window, parts = self._window(profile), self._parts(profile)
        chances = [
            sum(row[2] for row in rows)
            for rows in zip(*(law.blocks for law in parts.values()), strict=True)
        ]
        return law_of(
            window, chances, sum(law.none for law in parts.values()), PRODUCT, relative=PRODUCT
        )

    def joint(self, profile: Profile) -> Joint:
        single(self.k)
        return self._parts(profile)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window = self._window(profile)
        table: dict[object, Sequences] = {}
        for rank, pick in self._picks(profile).items():
            chances = partial(self._chances, window, rank, profile)
            law = sequences(window, window.first(rank), self.k, chances, relative=ROUNDING)
            table[rank] = law.scaled(pick)
        return table

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        def best(profile: Profile) -> float:
            window = self._window(profile)
            return sum(
                pick
                * all_best(
                    window.first(rank), self.k, partial(self._chances, window, rank, profile)
                )
                for rank, pick in self._picks(profile).items()
            )

        return rising_lead(best, candidates=candidates, near=near, success=success, k=self.k)

    def _pick(self, profile: Profile, coins: Coins) -> tuple[Window, int]:
        """The clipped profile, and a rank."""
        window, options = self._window(profile), self._options(profile.universe)
        rank, _ = options[weighted(lambda: self._option_weights(window, options, profile), coins)]
        return window, rank

    def _picks(self, profile: Profile) -> dict[int, float]:
        """With what probability each rank is picked."""
        window, options = self._window(profile), self._options(profile.universe)
        picks = shares(lambda: self._option_weights(window, options, profile))
        return {rank: pick for (rank, _), pick in zip(options, picks, strict=True)}

    def _parts(self, profile: Profile) -> Joint:
        """For each rank: the law of the first item together with that rank."""
        window = self._window(profile)
        table: dict[Hashable, Law] = {}
        for rank, pick in self._picks(profile).items():
            chances = self._chances(window, rank, profile, window.first(rank))
            none = 0.0 if rank == profile.universe else chances.pop()
            chances += [0.0] * (len(window.blocks()) - len(chances))
            table[rank] = law_of(window, chances, none, PRODUCT, relative=PRODUCT).scaled(pick)
        return table

    def _options(self, size: int | None) -> list[tuple[int, Fraction]]:
        """The ranks to pick from with their prior weights, in a universe of `size`; rank `size` is
        FULL.
        """
        options = [
            (rank, weight)
            for rank, weight in zip(self.guards.ranks, self.guards.prior, strict=True)
            if size is None or rank < size
        ]
        if size is not None and (self.guards.full or not options):
            options.append((size, self.guards.full or Fraction(1)))
        return options

    def _window(self, profile: Profile) -> Window:
        return profile.window(self._clip(profile), fitting(self.k, profile))

    def _clip(self, profile: Profile) -> int:
        return _width(self, profile.universe, profile.sensitivity)

    def _pick_epsilon(self) -> Fraction:
        return self.guards.share * self.epsilon

    def _draw_epsilon(self) -> Fraction:
        """Epsilon of each draw."""
        return round_and_guard(self.epsilon - self._pick_epsilon(), self.delta, self.k)[0]

    def _guard_delta(self) -> Fraction:
        """Delta of the guard: all of it, unless composing k draws takes a part."""
        return round_and_guard(self.epsilon - self._pick_epsilon(), self.delta, self.k)[1]

    def _slips(self, rank: int) -> int:
        return slips(rank, self.growth, self.neighbors)

    def _option_weights(
        self, window: Window, options: Sequence[tuple[int, Fraction]], profile: Profile
    ) -> list[arb]:
        """p_j·exp(−(ε1/c)·threshold_j), times the same factor exp((ε1/c)·top) for every option."""
        rate = self._pick_epsilon() / (swing(self.neighbors) * profile.sensitivity)
        depths = [0 if rank == profile.universe else window.depth(rank + 1) for rank, _ in options]
        handicaps = _handicaps(self, profile.universe, ctx.prec)
        return [
            (handicap + ball(rate * depth)).exp()
            for handicap, depth in zip(handicaps, depths, strict=True)
        ]

    def _handicap(self, rank: int, prior: Fraction, universe: int | None) -> arb:
        """ln of the weight of an option whose rank ℓ+1 is level with the top: of
        p·(slips/δ)^(−ε1/ε2)·e^(−ε1), or of p for FULL."""
        if rank == universe:
            return ball(prior).log()
        pick, draw = self._pick_epsilon(), self._draw_epsilon()
        return (
            ball(prior).log()
            - ball(pick / draw) * ball(self._slips(rank) / self._guard_delta()).log()
            - ball(pick)
        )

    def _weights(
        self, window: Window, top: Sequence[Level], rank: int, profile: Profile
    ) -> list[arb]:
        """Weights of the blocks of the top `rank`, and last of the guard (absent for FULL)."""
        epsilon, delta = self._draw_epsilon(), self._guard_delta()
        rate = epsilon / (swing(self.neighbors) * profile.sensitivity)
        weights = block_weights(top, rate)
        if rank != profile.universe:
            floor = None if self.growth is None else window.depth(self.k) + self._clip(profile)
            weights.append(
                guard_weight(
                    window,
                    rank,
                    self._slips(rank),
                    rate=rate,
                    epsilon=epsilon,
                    delta=delta,
                    floor=floor,
                )
            )
        return weights

    def _chances(
        self, window: Window, rank: int, profile: Profile, top: Sequence[Level]
    ) -> list[float]:
        return shares(lambda: self._weights(window, top, rank, profile))


@lru_cache(maxsize=256)
def _handicaps(mechanism: SharpMargin, universe: int | None, bits: int) -> list[arb]:
    """`_handicap` of every option, at `bits` of precision."""
    with precision(bits):
        return [
            mechanism._handicap(rank, prior, universe)
            for rank, prior in mechanism._options(universe)
        ]


@lru_cache(maxsize=256)
def _width(mechanism: SharpMargin, universe: int | None, sensitivity: int) -> int:
    """A public window so wide that clipping at it moves at most CLIP_LOSS of probability, twice.

    Once in the draw: at the floor neither the heaviest guard nor FULL's crowd may matter. Once in
    the pick: the least favoured option must still win when it alone has the floor at its edge.
    """
    options = mechanism._options(universe)
    unit = swing(mechanism.neighbors) * sensitivity
    draw = guard_width(mechanism._draw_epsilon(), mechanism._guard_delta(), options[-1][0], unit)
    handicaps = _handicaps(mechanism, universe, START)
    with precision(START):
        spread = max(handicap.upper() for handicap in handicaps) - min(
            handicap.lower() for handicap in handicaps
        )
        pick = above(ball(unit / mechanism._pick_epsilon()) * (spread - ball(CLIP_LOSS).log()))
    return max(draw, pick) if len(options) > 1 else draw
