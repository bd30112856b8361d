"""Permute-and-flip: go through the candidates in random order, accept i with probability
exp(−ε·depth_i / c).

Equivalently each candidate arrives at a uniform time and survives with that probability, and the
first survivor wins; or each gets exponential noise of scale c/ε, and the largest noisy score wins.
Blocks of equal candidates race.

Proof:      docs/proofs/permute-and-flip.md
Reference:  McKenna & Sheldon, NeurIPS 2020
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from privmax.composition import per_round
from privmax.mechanisms.contract import (
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
from privmax.mechanisms.weights import closed_view
from privmax.noise.coins import Coins
from privmax.noise.race import EXPONENTIAL, QUADRATURE_ERROR, race_law, run_race
from privmax.numbers import positive
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.profile import Level, Profile, Window


class PermuteAndFlip(Ranker):
    """Draw one candidate of a closed universe, or the best `k`.

    One draw is never worse than that of `Exponential`; many compose less well.

    Args:
        epsilon: What it costs in all.
        delta: Only with k > 1: what composing the draws may use.
        neighbors: "add-remove" or "replace".
        k: How many items are released.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
        >>> PermuteAndFlip(epsilon=1).lead(candidates=1000)
        10
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(composition_delta, default=0, depends_on="k")
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(read_length, default=1)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        window, blocks, rate = self._view(profile)
        return draw_candidate(window, run_race(blocks, rate, EXPONENTIAL, coins), coins)

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, blocks, rate = self._view(profile)

        def draw(left: Sequence[Level], coins: Coins) -> int:
            running, blocks = _running(left)
            return running[run_race(blocks, rate, EXPONENTIAL, coins)]

        return peel(window, blocks, self.k, draw, coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = self._view(profile)
        return law_of(window, race_law(blocks, rate, EXPONENTIAL), error=QUADRATURE_ERROR)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, blocks, rate = self._view(profile)
        return {
            None: sequence_law(
                window, blocks, self.k, partial(_chances, rate), error=QUADRATURE_ERROR
            )
        }

    def privacy(self) -> Privacy:
        """Return the cost: without delta where basic composition is as good."""
        return Privacy(self.epsilon, self.delta if self._epsilon() > self.epsilon / self.k else 0)

    def _chance_best(self, profile: Profile) -> float:
        _, blocks, rate = self._view(profile)
        return chance_all_best(blocks, self.k, partial(_chances, rate))

    def _epsilon(self) -> Fraction:
        """Of each draw."""
        return per_round(self.epsilon, self.delta, self.k, bounded_range=False)

    def _view(self, profile: Profile) -> tuple[Window, list[Level], Fraction]:
        return closed_view(profile, self._epsilon(), self.neighbors, require_fit(self.k, profile))


def _running(left: Sequence[Level]) -> tuple[list[int], list[Level]]:
    """Return the blocks that still have a candidate, and their depths from the best of them."""
    running = [block for block, (_, count) in enumerate(left) if count]
    top = left[running[0]][0]
    return running, [(left[block][0] - top, left[block][1]) for block in running]


def _chances(rate: Fraction, left: Sequence[Level]) -> list[float]:
    """The law of one draw from what is left of the blocks."""
    running, blocks = _running(left)
    chances = [0.0] * len(left)
    for block, chance in zip(running, race_law(blocks, rate, EXPONENTIAL), strict=True):
        chances[block] = chance
    return chances
