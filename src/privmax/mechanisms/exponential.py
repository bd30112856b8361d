"""Exponential mechanism: choose i with weight exp(ε·score_i / c); for the best k, again without
those chosen before.

Proof:      docs/proofs/exponential.md
Reference:  McSherry & Talwar, FOCS 2007
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from privmax.composition import per_round
from privmax.mechanisms.arrivals import expected_peeling
from privmax.mechanisms.contract import (
    ROUNDING,
    Law,
    Outcome,
    Relation,
    composition_delta,
    draw_candidate,
    law_of,
    read_length,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.peeling import Ranker, Sequences, chance_all_best, peel, sequence_law
from privmax.mechanisms.weights import block_shares, closed_view, draw_block
from privmax.noise.coins import Coins
from privmax.numbers import positive
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.profile import Level, Profile, Window


class Exponential(Ranker):
    """Draw one candidate of a closed universe, or the best `k`, whatever the scores.

    Args:
        epsilon: What it costs in all.
        delta: Only with k > 1: what composing the draws may use.
        neighbors: "add-remove" or "replace".
        k: How many items are released.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import Exponential, Profile
        >>> Exponential(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
        >>> Exponential(epsilon=1).law(Profile([(5, 4)], universe=4)).of(5)
        0.25
        >>> Exponential(epsilon=1).lead(candidates=1000)
        10
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(composition_delta, default=0, depends_on="k")
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(read_length, default=1)

    @property
    def bounded_range(self) -> bool:
        """A single draw has it."""
        return self.k == 1

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        window, blocks, rate = self._view(profile)
        return draw_candidate(window, draw_block(blocks, rate, coins), coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks, rate = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            return draw_block(left, rate, coins)

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = self._view(profile)
        return law_of(window, block_shares(rate, blocks), relative=ROUNDING)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks, rate = self._view(profile)
        return {
            None: sequence_law(
                window, blocks, self.k, partial(block_shares, rate), relative=ROUNDING
            )
        }

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window, blocks, rate = self._view(profile)
        return expected_peeling(window, blocks, rate, self.k, best)

    def privacy(self) -> Privacy:
        """Return the cost: without delta where basic composition is as good."""
        return Privacy(self.epsilon, self.delta if self._epsilon() > self.epsilon / self.k else 0)

    def _chance_best(self, profile: Profile) -> float:
        _, blocks, rate = self._view(profile)
        return chance_all_best(blocks, self.k, partial(block_shares, rate))

    def _epsilon(self) -> Fraction:
        """Of each draw."""
        return per_round(self.epsilon, self.delta, self.k, bounded_range=True)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        return closed_view(profile, self._epsilon(), self.neighbors, require_fit(self.k, profile))
