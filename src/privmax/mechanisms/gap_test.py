"""Gap test: release the best k with the largest probability that the cost allows, else nothing.

    n = ⌈(q_(k) − q_(k+1)) / (c·s)⌉    records to change before another one can be among them
    release the best k, as a set, with probability π(n):
    π(0) = 0,  π(n+1) = min{ e^ε·π(n) + δ,  1 − e^(−ε)·(1 − π(n) − δ),  1 }

With `ranked` the best k are released in order, and n is the least of that for the first, the first
two, … and the first k: ⌈min_{i≤k} (q_(i) − q_(i+1)) / (c·s)⌉.

π reaches 1 after finitely many steps. No mechanism that releases the best k or nothing does so more
often, on any data: this is the limit for clear winners, whatever their number, and like the stable
maximum it fails where two stand close.

Proof:      docs/proofs/gap-test.md
Reference:  original to this library; the question is that of Smith & Thakurta, COLT 2013
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from privmax.mechanisms.contract import (
    ROUNDING,
    Law,
    Outcome,
    Relation,
    law_of,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.peeling import Sequences
from privmax.mechanisms.sets import SetMechanism, Sets, read_size, sets_of
from privmax.mechanisms.stable_maximum import best_or_nothing
from privmax.mechanisms.weights import decay, round_chances
from privmax.noise.balls import ball, ceiling
from privmax.noise.coins import Coins
from privmax.noise.samplers import bernoulli
from privmax.numbers import flag, open_probability, positive, whole
from privmax.parameters import Exact, Parameter, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Profile, Window


def read_ranked(name: str, value: bool, k: int) -> bool:
    """Read whether an order is released; of one item there is one.

    Examples:
        >>> read_ranked("ranked", False, 1), read_ranked("ranked", False, 2)
        (True, False)
    """
    return flag(name, value) or k == 1


class GapTest(SetMechanism):
    """Release the best `k` as a set or in order, or nothing, from an open or a closed universe.

    No lead is enough for more than `k` near maximizers.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace".
        k: How many items are released.
        ranked: Whether their order is, too. Each of them must then lead the next; `lead` is by how
            much.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import GapTest
        >>> GapTest(epsilon=1, delta=1e-6, k=1000, ranked=True).lead(candidates=None)
        16
        >>> [GapTest(epsilon=1, delta=1e-6, k=k).lead(candidates=None) for k in (1, 1000)]
        [16, 16]
        >>> GapTest(epsilon=1, delta=1e-6).certain()
        29
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability, remedy="Every step starts from delta; for delta = 0 use PermuteAndFlip."
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(read_size, default=1)
    ranked: Parameter[bool, bool] = parameter(
        read_ranked, default=False, depends_on="k", quiet=True
    )

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        drawn = self.subset(profile, coins)
        return drawn[0] if drawn else Outcome(None)

    def subset(self, profile: Profile, coins: Coins) -> list[Outcome]:
        """Choose the best k, which are listed best first, or nothing."""
        window, steps = self._view(profile)
        if not bernoulli(partial(self.chance, steps), coins):
            return []
        return [
            Outcome(window.top - depth, place)
            for depth, number in window.first(self.k)
            for place in range(number)
        ]

    def law(self, profile: Profile) -> Law:
        window, released = self._release_chance(profile)
        if self.k == 1:
            return best_or_nothing(window, released)
        chances = [released * number for _, number in window.first(self.k)]
        others = [0.0] * (len(window.blocks()) - len(chances))
        return law_of(
            window, [*chances, *others], 1 - released, self.k * ROUNDING, true_zeros=False
        )

    def sets(self, profile: Profile) -> Mapping[object, Sets]:
        window, released = self._release_chance(profile)
        sizes = [number for _, number in window.first(self.k)]
        others = [0] * (len(window.blocks()) - len(sizes))
        table = {(0,) * len(window.blocks()): 1 - released}
        if released:
            table[*sizes, *others] = released
        return {None: sets_of(window, table, error=ROUNDING)}

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        """Return the law of the list, where their order is released.

        For small profiles; never released.
        """
        window, released = self._release_chance(profile)
        table: dict[tuple[int, ...], float] = {(): 1 - released}
        if released:  # no two share a score
            table[tuple(range(self.k))] = released
        law = sets_of(window, {}, error=ROUNDING)
        return {None: Sequences(law.blocks, law.floor, table, ROUNDING)}

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        _, released = self._release_chance(profile)
        return self.k * released, min(self.k, best) * released

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def chance(self, steps: int) -> arb:
        """Return π(steps) at the precision in force, by its closed form (on the proof page).

        Examples:
            >>> test = GapTest(epsilon=1, delta=1e-6)
            >>> test.chance(0) == 0, test.chance(29) == 1
            (True, True)
        """
        turn, steps = _turn(self), whole("steps", steps, least=0)
        if steps <= turn:
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

    def _release_chance(self, profile: Profile) -> tuple[Window, float]:
        """The profile, and the probability that the best k are released."""
        window, steps = self._view(profile)
        [released] = round_chances(lambda: [self.chance(steps)])
        return window, released

    def _chance_best(self, profile: Profile) -> float:
        if self.k > 1 and self.ranked:
            # Those who lead all others by so much are taken to lead one another by as much.
            return replace(self, ranked=False)._chance_best(profile)
        _, released = self._release_chance(profile)
        return released

    def _view(self, profile: Profile) -> tuple[Window, int]:
        """The profile, and how many records are between its best k and all others; for an order,
        between each of them and the next as well.

        Far below the k-th best the best k are certain to be released, so clipping there changes
        nothing at all.
        """
        unit = drift(self.neighbors) * profile.sensitivity
        window = profile.window(unit * self.certain(), require_fit(self.k, profile))
        # nobody else can be among the best of a universe of k
        last = self.k - 1 if profile.universe == self.k else self.k
        first = 1 if self.k > 1 and self.ranked else self.k
        gaps = [window.depth(rank + 1) - window.depth(rank) for rank in range(first, last + 1)]
        return window, -(-min(gaps) // unit) if gaps else self.certain()


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


def soft_chances(
    steps: int, epsilon: Fraction, delta: Fraction, silence: Fraction
) -> tuple[arb, arb]:
    """Return the probabilities of nothing and of the best set, for a test that may be followed.

    π(0) = 0,  π(n+1) = min{ e^ε·π(n) + δ,  1 − e^(−xε)·(1 − π(n)) }

    Nothing changes by a factor of e^(xε) at most, where x is `silence`, so that after nothing
    another mechanism may run at (1 − x)·ε: see `privmax help proofs/set-margin`, also
    for the closed form.

    Args:
        steps: n.
        epsilon: What is left for the test and all that follows.
        delta: For the test alone.
        silence: x, above 0 and at most 1.

    Examples:
        >>> one = Fraction(1)
        >>> nothing, best = soft_chances(0, one, one / 1000, one / 2)
        >>> nothing == 1, best == 0
        (True, True)
    """
    turn = _soft_turn(epsilon, delta, silence)
    risen = min(steps, turn)
    # δ(e^(εn) − 1)/(e^ε − 1) without large numbers, which the largest epsilons would make infinite
    terms = (-ball(epsilon * risen)).expm1() / (-ball(epsilon)).expm1()
    rise = ball(delta) * decay(epsilon, 1 - risen) * terms
    later = -ball(silence * epsilon * (steps - risen))
    return (1 - rise) * later.exp(), rise * later.exp() - later.expm1()


@lru_cache(maxsize=256)
def _soft_turn(epsilon: Fraction, delta: Fraction, silence: Fraction) -> int:
    """The least n from which on the second term of the minimum is the smaller.

    It is 0 where 1 − e^(−xε) < δ, and otherwise
    ⌈ln(1 + (1 − e^(−xε) − δ)·(e^ε − 1) / (δ·(e^ε − e^(−xε)))) / ε⌉. Ends: were one of the two an
    integer, a root of e^ε would solve a polynomial equation.
    """

    def room() -> arb:
        return -(-ball(silence * epsilon)).expm1() - ball(delta)

    def exact() -> arb:
        # (e^ε − 1)/(e^ε − e^(−xε)), both over e^ε
        part = (-ball(epsilon)).expm1() / (-ball((1 + silence) * epsilon)).expm1()
        return (room() * part / ball(delta)).log1p() / ball(epsilon)

    return ceiling(exact) if ceiling(room) == 1 else 0
