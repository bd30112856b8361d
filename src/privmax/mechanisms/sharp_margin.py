"""The sharp large margin mechanism: a guard replaces the paper's certificate, at an eighth of
its margin.

    Public ranks ℓ_0 < ℓ_1 < … with a public prior p_j, and ε = ε1 + ε2.
    threshold_j = q_(ℓ_j+1) + c + (c/ε2)·ln(ℓ_j/δ)
    pick j with weight p_j·exp(−(ε1/c)·threshold_j)
    draw among the top ℓ_j candidates (weight exp(ε2·q_i/c))
    and nothing (the guard: weight exp(ε2·threshold_j/c))

The guard outweighs anyone who could slip out of the top ℓ_j, so each of those is drawn with
probability at most δ/ℓ_j. In a closed universe of K a last choice, FULL, may compete: all K
candidates and no guard, weight p·exp(−(ε1/c)·q_(1)). Ties at the edge of the top ℓ_j are broken at
random. The rank picked is a diagnostic, at no extra cost. With k > 1 the rank is picked once and
the draw is repeated, each time without those drawn before, until k are drawn or the guard is.

Proof:      docs/proofs/sharp-margin.md
Reference:  original to this library; with one rank it is the limited domain mechanism of Durfee &
            Rogers, NeurIPS 2019
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb, ctx

from privmax.errors import ParameterError
from privmax.mechanisms.arrivals import expected_peeling
from privmax.mechanisms.contract import (
    CLIP_LOSS,
    ROUNDING,
    Joint,
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
from privmax.mechanisms.guards import FEW, Guards, guard_weight, guard_width, slips
from privmax.mechanisms.peeling import (
    Ranker,
    Sequences,
    chance_all_best,
    peel,
    round_and_guard,
    sequence_law,
)
from privmax.mechanisms.weights import block_weights, log_last, shares
from privmax.noise.balls import START, above, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import weighted
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import (
    Exact,
    OptionalWhole,
    Parameter,
    Whole,
    optional,
    parameter,
)
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Level, Profile, Window

PRODUCT = 3 * ROUNDING
"""Error of a probability of picking a rank times one of a draw, each within ROUNDING of itself, as
a part of it.
"""


def _read_guards(name: str, value: Guards) -> Guards:
    if not isinstance(value, Guards):
        raise ParameterError(
            name, value, "they must be Guards", "For example privmax.FEW or privmax.DYADIC."
        )
    return value


class SharpMargin(Ranker):
    """Draw one candidate, or nothing, or the best `k`, from an open or a closed universe.

    Args:
        epsilon: What it costs in all, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace".
        guards: Which ranks may be guarded: FEW (default), DYADIC or your own; public.
        growth: The bound on how many candidates one record touches, if there is one; public.
        k: How many items are released.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import SharpMargin
        >>> SharpMargin(epsilon=1, delta=1e-6).privacy()
        Privacy(epsilon=1, delta=1e-06)
        >>> SharpMargin(epsilon=1, delta=1e-6).lead(candidates=None)
        28
        >>> SharpMargin(epsilon=1, delta=1e-6, growth=1).lead(candidates=None)
        20
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="The guard's weight is 1/delta; for delta = 0 use PermuteAndFlip.",
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    guards: Parameter[Guards, Guards] = parameter(_read_guards, default=FEW)
    growth: OptionalWhole = parameter(optional(whole), default=None)
    k: Whole = parameter(read_length, default=1)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        window, rank = self._pick(profile, coins)
        diagnostics = {"near_maximizers": rank}
        top = window.first(rank)
        block = weighted(lambda: self._weights(window, top, rank, profile), coins)
        return (
            Outcome(None, diagnostics=diagnostics)
            if block == len(top)
            else draw_candidate(window, block, coins, diagnostics)
        )

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, rank = self._pick(profile, coins)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return weighted(lambda: self._weights(window, left, rank, profile), coins)

        peeled = peel(window, window.first(rank), self.k, draw, coins)
        diagnostics = {"near_maximizers": rank}
        return [replace(outcome, diagnostics=diagnostics) for outcome in peeled] or [
            Outcome(None, diagnostics=diagnostics)
        ]

    def law(self, profile: Profile) -> Law:
        window, parts = self._window(profile), self._parts(profile)
        chances = [
            sum(row[2] for row in rows)
            for rows in zip(*(law.blocks for law in parts.values()), strict=True)
        ]
        return law_of(
            window, chances, sum(law.none for law in parts.values()), PRODUCT, relative=PRODUCT
        )

    def joint(self, profile: Profile) -> Joint:
        require_single(self.k)
        return self._parts(profile)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window = self._window(profile)
        table: dict[object, Sequences] = {}
        for rank, pick in self._picks(profile).items():
            chances = partial(self._chances, window, rank, profile)
            law = sequence_law(window, window.first(rank), self.k, chances, relative=ROUNDING)
            table[rank] = law.scale(pick)
        return table

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window = self._window(profile)
        rate = self.draw_epsilon() / (drift(self.neighbors) * profile.sensitivity)
        size = hits = 0.0
        for rank, pick in self._picks(profile).items():
            if pick < ROUNDING:
                continue
            top = window.first(rank)
            guard = log_last(partial(self._guard_weights, window, top, rank, profile))
            part = expected_peeling(window, top, rate, self.k, best, guard=guard)
            size, hits = size + pick * part[0], hits + pick * part[1]
        return size, hits

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def options(self, universe: int | None) -> list[tuple[int, Fraction]]:
        """Return the ranks to pick from with their prior weights.

        Args:
            universe: The size of the universe, where that rank is FULL; None: open.

        Examples:
            >>> [rank for rank, _ in SharpMargin(epsilon=1, delta=1e-6).options(5000)]
            [1024]
        """
        options = [
            (rank, weight)
            for rank, weight in zip(self.guards.ranks, self.guards.prior, strict=True)
            if universe is None or rank < universe
        ]
        if universe is not None and (self.guards.full or not options):
            options.append((universe, self.guards.full or Fraction(1)))
        return options

    def draw_epsilon(self) -> Fraction:
        """Return the epsilon of each draw, without what picking the rank takes.

        Examples:
            >>> SharpMargin(epsilon=1, delta=1e-6).draw_epsilon()
            Fraction(23, 25)
        """
        return round_and_guard(self.epsilon - self._pick_epsilon(), self.delta, self.k)[0]

    def _chance_best(self, profile: Profile) -> float:
        window = self._window(profile)
        return sum(
            pick
            * chance_all_best(
                window.first(rank), self.k, partial(self._chances, window, rank, profile)
            )
            for rank, pick in self._picks(profile).items()
        )

    def _pick(self, profile: Profile, coins: Coins) -> tuple[Window, int]:
        """The clipped profile, and a rank."""
        window, options = self._window(profile), self.options(profile.universe)
        rank, _ = options[weighted(lambda: self._option_weights(window, options, profile), coins)]
        return window, rank

    def _picks(self, profile: Profile) -> dict[int, float]:
        """With what probability each rank is picked."""
        window, options = self._window(profile), self.options(profile.universe)
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
            table[rank] = law_of(window, chances, none, PRODUCT, relative=PRODUCT).scale(pick)
        return table

    def _window(self, profile: Profile) -> Window:
        return profile.window(self._clip(profile), require_fit(self.k, profile))

    def _clip(self, profile: Profile) -> int:
        return _width(self, profile.universe, profile.sensitivity)

    def _pick_epsilon(self) -> Fraction:
        return self.guards.share * self.epsilon

    def _guard_delta(self) -> Fraction:
        """Delta of the guard: all of it, unless composing k draws takes a part."""
        return round_and_guard(self.epsilon - self._pick_epsilon(), self.delta, self.k)[1]

    def _slips(self, rank: int) -> int:
        return slips(rank, self.growth, self.neighbors)

    def _option_weights(
        self, window: Window, options: Sequence[tuple[int, Fraction]], profile: Profile
    ) -> list[arb]:
        """p_j·exp(−(ε1/c)·threshold_j), times the same factor exp((ε1/c)·top) for every option."""
        rate = self._pick_epsilon() / (drift(self.neighbors) * profile.sensitivity)
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
        pick, draw = self._pick_epsilon(), self.draw_epsilon()
        return (
            ball(prior).log()
            - ball(pick / draw) * ball(self._slips(rank) / self._guard_delta()).log()
            - ball(pick)
        )

    def _weights(
        self, window: Window, top: Sequence[Level], rank: int, profile: Profile
    ) -> list[arb]:
        """Weights of the blocks of the top `rank`, and last of the guard (absent for FULL)."""
        epsilon, delta = self.draw_epsilon(), self._guard_delta()
        rate = epsilon / (drift(self.neighbors) * profile.sensitivity)
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

    def _guard_weights(
        self, window: Window, top: Sequence[Level], rank: int, profile: Profile
    ) -> list[arb]:
        """Weight of the guard alone; none for FULL."""
        return self._weights(window, top, rank, profile)[len(top) :]

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
            for rank, prior in mechanism.options(universe)
        ]


@lru_cache(maxsize=256)
def _width(mechanism: SharpMargin, universe: int | None, sensitivity: int) -> int:
    """A public window so wide that clipping at it moves at most CLIP_LOSS of probability, twice.

    Once in the draw: at the floor neither the heaviest guard nor FULL's crowd may matter. Once in
    the pick: the least favored option must still win when it alone has the floor at its edge.
    """
    options = mechanism.options(universe)
    unit = drift(mechanism.neighbors) * sensitivity
    draw = guard_width(mechanism.draw_epsilon(), mechanism._guard_delta(), options[-1][0], unit)
    handicaps = _handicaps(mechanism, universe, START)
    with precision(START):
        spread = max(handicap.upper() for handicap in handicaps) - min(
            handicap.lower() for handicap in handicaps
        )
        pick = above(ball(unit / mechanism._pick_epsilon()) * (spread - ball(CLIP_LOSS).log()))
    return max(draw, pick) if len(options) > 1 else draw
