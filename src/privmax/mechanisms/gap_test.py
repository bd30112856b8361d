"""Gap test: release the best candidate with the largest probability that the cost allows, else
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

from functools import lru_cache, partial

from flint import arb

from privmax.mechanisms.contract import (
    Law,
    Mechanism,
    Outcome,
    Relation,
    draw_candidate,
    read_relation,
)
from privmax.mechanisms.stable_maximum import best_or_nothing, lead_steps
from privmax.mechanisms.weights import decay, round_chances
from privmax.noise.balls import ball, ceiling
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, parameter
from privmax.privacy import ADD_REMOVE, Privacy, swing
from privmax.profile import Profile, Window


class GapTest(Mechanism):
    """Release the best candidate, or nothing, from an open or a closed universe.

    No lead is enough for more than one near maximizer.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace".

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import GapTest
        >>> GapTest(epsilon=1, delta=1e-6).lead(candidates=None)
        16
        >>> GapTest(epsilon=1, delta=1e-6).certain()
        29
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability, remedy="Every step starts from delta; for delta = 0 use PermuteAndFlip."
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        released = bernoulli(partial(self.chance, self._steps(window, profile)), coins)
        return draw_candidate(window, 0, coins) if released else Outcome(None)

    def law(self, profile: Profile) -> Law:
        window = self._window(profile)
        steps = self._steps(window, profile)
        [released] = round_chances(lambda: [self.chance(steps)])
        return best_or_nothing(window, released)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def chance(self, steps: int) -> arb:
        """Return π(steps) at the precision in force, by its closed form (on the proof page).

        Examples:
            >>> test = GapTest(epsilon=1, delta=1e-6)
            >>> test.chance(0) == 0, test.chance(29) == 1
            (True, True)
        """
        turn = _turn(self)
        if whole("steps", steps, least=0) <= turn:
            return self._rise(steps)
        if steps >= self.certain():
            return arb(1)
        left = (1 - self._rise(turn) - self._rise(steps - turn)).max(arb(0))
        return 1 - decay(self.epsilon, steps - turn) * left

    def certain(self) -> int:
        """Return a public number of steps from which on π is 1.

        It is at most one more than the least such number.
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
