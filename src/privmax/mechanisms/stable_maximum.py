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

from dataclasses import dataclass
from fractions import Fraction

from privmax.mechanisms.base import CLIP_LOSS, Joint, Law, Outcome, candidate, law_of, smallest_lead
from privmax.mechanisms.propose_test_release import DistanceTest
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
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
)
from privmax.profile import Profile, Window


@dataclass(frozen=True, init=False, repr=False)
class StableMaximum(Described):
    """Release the best candidate, or nothing, at a price of (`epsilon`, `delta`), from an open or a
    closed universe.
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors

    def __init__(self, *, epsilon: Number, delta: Number, neighbors: str = ADD_REMOVE) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(
            self, "delta",
            open_probability("delta", delta, "The test errs with probability delta; for delta = 0 "
                                             "use PermuteAndFlip."),
        )  # fmt: skip
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        alone = profile.universe == 1
        released = alone or self._test().draw(self._distance(window, profile), coins)
        return candidate(window, 0, coins) if released else Outcome(None)

    def law(self, profile: Profile) -> Law:
        window = self._window(profile)
        alone = profile.universe == 1
        return best_or_nothing(
            window, 1.0 if alone else self._test().law(self._distance(window, profile))
        )

    def joint(self, profile: Profile) -> Joint:
        return {None: self.law(profile)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        """More than one near maximizer is never enough of a lead; that is refused."""
        return smallest_lead(self.law, candidates=candidates, near=near, success=success)

    def _test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    def _distance(self, window: Window, profile: Profile) -> int:
        return max(0, lead_steps(window, profile, self.neighbors) - 1)

    def _window(self, profile: Profile) -> Window:
        """So wide that the test passes at its floor but for CLIP_LOSS."""
        distance = self._test().threshold() + ceiling_log(1 / self.epsilon, 1 / CLIP_LOSS)
        return profile.window(swing(self.neighbors) * profile.sensitivity * (distance + 1))


def lead_steps(window: Window, profile: Profile, neighbors: Neighbors) -> int:
    """How many records must change before the best candidate can lose its sole lead; 0 where the
    lead is shared.
    """
    return -(-window.depth(2) // (swing(neighbors) * profile.sensitivity))


def best_or_nothing(window: Window, chance: float) -> Law:
    """The law of releasing one of the best with this probability, and nothing otherwise."""
    others = [0.0] * (len(window.blocks()) - 1)
    return law_of(window, [chance, *others], 1 - chance, true_zeros=False)
