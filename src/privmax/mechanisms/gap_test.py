"""Gap test: release the best candidate with the largest probability that the price allows, else
nothing.

    n = ⌈(q_(1) − q_(2)) / (c·s)⌉    records to change before the best can lose its sole lead
    release the best with probability π(n):
    π(0) = 0,  π(n+1) = min{ e^ε·π(n) + δ,  1 − e^(−ε)·(1 − π(n) − δ),  1 }

π reaches 1 after finitely many steps. No mechanism that releases the sole best or nothing does so
more often, on any data: this is the limit for a single clear winner, and like the stable maximum it
fails where two stand close.

Proof:      docs/proofs/gap-test.md
Reference:  original to this library; the question is that of Smith & Thakurta, COLT 2013
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from privmax.mechanisms.base import Joint, Law, Outcome, candidate, decay, smallest_lead
from privmax.mechanisms.exponential import rounded
from privmax.mechanisms.stable_maximum import best_or_nothing, lead_steps
from privmax.noise.balls import ball, ceiling
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli
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
from privmax.profile import Profile, Window


@dataclass(frozen=True, init=False, repr=False)
class GapTest(Described):
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
            open_probability("delta", delta, "Every step starts from delta; for delta = 0 use "
                                             "PermuteAndFlip."),
        )  # fmt: skip
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        released = bernoulli(partial(self.chance, self._steps(window, profile)), coins)
        return candidate(window, 0, coins) if released else Outcome(None)

    def law(self, profile: Profile) -> Law:
        window = self._window(profile)
        steps = self._steps(window, profile)
        [released] = rounded(lambda: [self.chance(steps)])
        return best_or_nothing(window, released)

    def joint(self, profile: Profile) -> Joint:
        return {None: self.law(profile)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        """More than one near maximizer is never enough of a lead; that is refused."""
        return smallest_lead(self.law, candidates=candidates, near=near, success=success)

    def chance(self, steps: int) -> arb:
        """π(steps) at the precision in force, by its closed form (on the proof page)."""
        turn = _turn(self)
        if whole("steps", steps, least=0) <= turn:
            return self._rise(steps)
        if steps >= self.certain():
            return arb(1)
        left = (1 - self._rise(turn) - self._rise(steps - turn)).max(arb(0))
        return 1 - decay(self.epsilon, steps - turn) * left

    def certain(self) -> int:
        """A public number of steps from which on π is 1; at most one more than the least such
        number.
        """
        return 2 * _turn(self) + 1

    def _rise(self, steps: int) -> arb:
        """δ(1 + e^ε + … + e^(ε(steps−1))), without cancellation and without large numbers."""
        terms = (-ball(self.epsilon * steps)).expm1() / (-ball(self.epsilon)).expm1()
        return ball(self.delta) * decay(self.epsilon, 1 - steps) * terms

    def _steps(self, window: Window, profile: Profile) -> int:
        return (
            self.certain() if profile.universe == 1 else lead_steps(window, profile, self.neighbors)
        )

    def _window(self, profile: Profile) -> Window:
        """At its floor the best is certain to be released, so clipping changes nothing at all."""
        return profile.window(swing(self.neighbors) * profile.sensitivity * self.certain())


@lru_cache(maxsize=256)
def _turn(mechanism: GapTest) -> int:
    """The least n with π(n) above (1 − δ)/(e^ε + 1): from there on the second term of the minimum
    is the smaller.

    It is ⌈ln(1 + ((1−δ)/δ)·tanh(ε/2)) / ε⌉. Ends: were it an integer, e^ε would solve a polynomial
    equation.
    """

    def exact() -> arb:
        epsilon, odds = ball(mechanism.epsilon), ball((1 - mechanism.delta) / mechanism.delta)
        return (odds * (epsilon / 2).tanh()).log1p() / epsilon

    return ceiling(exact)
