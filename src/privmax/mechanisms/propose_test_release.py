"""Propose, test, release: a value with noise for a proposed bound on its local sensitivity, or
nothing.

    DistanceTest:         pass iff d + Z > T, Z discrete Laplace of scale 1/ε, T the least integer ≥
                          0 with P(Z > T) ≤ δ
    ProposeTestRelease:   test at share·ε; if it passes release value + discrete Laplace of scale
                          bound/((1−share)·ε)

d counts records: how many must change before the data is bad. On bad data (d = 0) the test passes
with probability at most δ, and one record moves d by at most 1.

Proof:      docs/proofs/propose-test-release.md
Reference:  Dwork & Lei, STOC 2009
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from flint import arb

from privmax.errors import DataError
from privmax.mechanisms.above_threshold import tail
from privmax.mechanisms.noisy_maximum import noise_law
from privmax.noise.balls import START, ball, ceiling, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import Privacy


class DistanceTest(Parameters):
    """Test whether data is far from bad; bad data passes with probability at most `delta`.

    Private by itself at a cost of (`epsilon`, 0), whatever the distance means, if one record moves
    it by at most 1.

    Args:
        epsilon: What it costs.
        delta: Above 0.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import DistanceTest
        >>> DistanceTest(epsilon=1, delta=1e-6).threshold()
        13
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability, remedy="Bad data passes with probability delta; 0 is impossible."
    )

    def draw(self, distance: int, coins: Coins) -> bool:
        """Return whether data at this distance passes."""
        return _distance(distance) + discrete_laplace(1 / self.epsilon, coins) > self.threshold()

    def law(self, distance: int) -> float:
        """Return the probability of passing. Never released."""
        with precision(START):
            return float(tail(1 / self.epsilon, self.threshold() - _distance(distance) + 1).mid())

    def privacy(self) -> Privacy:
        """Return what releasing whether the test passed costs, and nothing else."""
        return Privacy(self.epsilon)

    def threshold(self) -> int:
        """Return T: bad data passes iff Z > T."""
        return _threshold(self)


class ProposeTestRelease(Parameters):
    """Release an integer with noise, or nothing.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        bound: Proposed bound on how far one record can move the value on data near this; public,
            not taken from the data.
        share: Part of epsilon spent on the test.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import ProposeTestRelease
        >>> ProposeTestRelease(epsilon=1, delta=1e-6, bound=3).scale()
        Fraction(6, 1)
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability, remedy="Bad data passes with probability delta; 0 is impossible."
    )
    bound: Whole = parameter(whole)
    share: Exact = parameter(open_probability, default="0.5")

    def draw(self, value: int, distance: int, coins: Coins) -> int | None:
        """Return the value with noise, or None.

        Args:
            value: The private integer.
            distance: How many records must change before one more can move the value by more than
                `bound`; 0: one can now.
            coins: Where random bits come from.

        Raises:
            DataError: The value or the distance is no whole number.
        """
        value = _integer(value)  # before the test: an error must not tell whether it passed
        if not self.test().draw(distance, coins):
            return None
        return value + discrete_laplace(self.scale(), coins)

    def law(self, value: int, distance: int) -> dict[int | None, float]:
        """Return the probability of each outcome, but for 2^−46 in the tails. Never released."""
        passes = self.test().law(distance)
        table: dict[int | None, float] = {None: 1 - passes}
        for offset, chance in zip(*noise_law(self.scale()), strict=True):
            table[_integer(value) + int(offset)] = passes * float(chance)
        return table

    def privacy(self) -> Privacy:
        """Return what it costs."""
        return Privacy(self.epsilon, self.delta)

    def test(self) -> DistanceTest:
        """Return the test it runs first."""
        return DistanceTest(epsilon=self.share * self.epsilon, delta=self.delta)

    def scale(self) -> Fraction:
        """Return the scale of the noise on the value."""
        return self.bound / ((1 - self.share) * self.epsilon)


def _distance(distance: int) -> int:
    """A private count of records; the error does not quote it."""
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 0:
        raise DataError("A distance must be a whole number of records, 0 or above.")
    return distance


def _integer(value: int) -> int:
    """A private integer; the error does not quote it."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError("A value must be an integer.")
    return value


@lru_cache(maxsize=256)
def _threshold(test: DistanceTest) -> int:
    """The least integer T ≥ 0 with P(Z > T) = e^(−εT)/(e^ε + 1) ≤ δ.

    Ends: e^(−εT) = δ(e^ε + 1) is a polynomial equation in e^ε, which is transcendental.
    """

    def exact() -> arb:
        epsilon = ball(test.epsilon)
        return (
            -(ball(test.delta).log() + (-epsilon).exp().log1p()) / epsilon - 1
        )  # ln(e^ε + 1) = ε + ln(1 + e^−ε)

    return max(0, ceiling(exact))
