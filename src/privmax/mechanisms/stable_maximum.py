"""Stable maximum: release the best candidate iff a noisy count says that no single record could
change who it is.

    lead_steps = ⌈(q_(1) − q_(2)) / (c·s)⌉    how many records must change before the best
                                               can lose its sole lead
    d = max(0, lead_steps − 1)                 how many must change before one more could do so
    release the best iff the distance test at ε passes, else nothing

It needs a single clear winner: where two stand close it releases nothing, however far the others
are.

Proof:      docs/proofs/stable-maximum.md
Reference:  Smith & Thakurta, COLT 2013
"""

from __future__ import annotations

from privmax.mechanisms.contract import (
    CLIP_LOSS,
    Law,
    Mechanism,
    Outcome,
    Relation,
    draw_candidate,
    law_of,
    read_relation,
)
from privmax.mechanisms.propose_test_release import DistanceTest
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
from privmax.numbers import open_probability, positive
from privmax.parameters import Exact, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, drift
from privmax.profile import Profile, Window


class StableMaximum(Mechanism):
    """Release the best candidate, or nothing, from an open or a closed universe.

    No lead is enough for more than one near maximizer.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import StableMaximum
        >>> StableMaximum(epsilon=1, delta=1e-6).lead(candidates=None)
        17
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="The test errs with probability delta; for delta = 0 use PermuteAndFlip.",
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        alone = profile.universe == 1
        released = alone or self._test().draw(self._distance(window, profile), coins)
        return draw_candidate(window, 0, coins) if released else Outcome(None)

    def law(self, profile: Profile) -> Law:
        window = self._window(profile)
        alone = profile.universe == 1
        return best_or_nothing(
            window, 1.0 if alone else self._test().law(self._distance(window, profile))
        )

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def _test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    def _distance(self, window: Window, profile: Profile) -> int:
        return max(0, lead_steps(window, profile, self.neighbors) - 1)

    def _window(self, profile: Profile) -> Window:
        """So wide that the test passes at its floor but for CLIP_LOSS."""
        distance = self._test().threshold() + ceiling_log(1 / self.epsilon, 1 / CLIP_LOSS)
        return profile.window(drift(self.neighbors) * profile.sensitivity * (distance + 1))


def lead_steps(window: Window, profile: Profile, neighbors: Neighbors) -> int:
    """Return how many records must change before the best candidate can lose its sole lead.

    It is 0 where the lead is shared.

    Args:
        window: The clipped profile.
        profile: The profile itself, for its sensitivity.
        neighbors: The relation.

    Examples:
        >>> profile = Profile([(9, 1), (4, 1)])
        >>> lead_steps(profile.window(9), profile, "replace")
        3
    """
    return -(-window.depth(2) // (drift(neighbors) * profile.sensitivity))


def best_or_nothing(window: Window, chance: float) -> Law:
    """Make the law of releasing one of the best with this probability, and nothing otherwise.

    Examples:
        >>> best_or_nothing(Profile([(9, 1)]).window(9), 0.75).none
        0.25
    """
    others = [0.0] * (len(window.blocks()) - 1)
    return law_of(window, [chance, *others], 1 - chance, true_zeros=False)
