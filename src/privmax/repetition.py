"""The best of a random number of private runs: what it costs when only the best is released.

A run draws an outcome with a score at a known privacy cost. K is drawn from a public law, the run
is repeated K times, and the outcome of the highest score is released. With f the generating
function of K, an outcome y is released with probability Q(y)·f'(·) at a point that one individual
moves a little, so the cost is

    what one run costs at delta / E[K]   +   the drift, the most by which ln f' can move

and no multiple of the number of runs. The number of runs must stay secret.

Proof:      docs/proofs/tuning.md
Reference:  Liu & Talwar, STOC 2019; Papernot & Steinke, ICLR 2022; Koskela, Redberg & Wang 2024
            (arXiv 2402.06701)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeVar

from flint import arb

from privmax.composition import least_at
from privmax.errors import ParameterError
from privmax.noise.balls import START, above, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.runs import first_negative_binomial, negative_binomial, poisson
from privmax.numbers import Number, exact, open_probability, plain, positive, probability
from privmax.parameters import Exact, Parameter, Parameters, optional, parameter
from privmax.privacy import Privacy

T = TypeVar("T")

MOST_RUNS = 10_000
"""The largest expected number of runs: more would never end, and drawing it would take long."""

GRID = 1 << 40
"""Epsilons are found as multiples of 1/GRID, rounded up."""

LARGEST = 1 << 10
"""Above this no epsilon is sought: it would protect no one."""

OptionalExact = Parameter[Number | None, Fraction | None]


class RunCost(Parameters, kw_only=False):
    """The known bounds on the privacy cost of one run; all of them are true at once.

    Args:
        epsilon: With `delta`: the run is (epsilon, delta)-private.
        delta: Beside `epsilon`.
        rho: The run is rho-zCDP: its Rényi divergence at every order a > 1 is at most rho·a.

    Raises:
        ParameterError: A number is out of bounds, or there is none.

    Examples:
        >>> RunCost(1, 1e-6)
        RunCost(epsilon=1, delta=1e-06, rho=None)
        >>> with precision(START):
        ...     RunCost(1).profile(Fraction(1)) == 0
        True
    """

    epsilon: OptionalExact = parameter(optional(positive), default=None)
    delta: Exact = parameter(probability, default=0)
    rho: OptionalExact = parameter(optional(positive), default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon is None and self.rho is None:
            raise ParameterError.required(
                "epsilon", "the cost of a run must be known", "Give epsilon (and delta), or rho."
            )
        if self.delta == 1:
            raise ParameterError("delta", 1, "it must be below 1", "For example 1e-6.")

    @property
    def pure(self) -> bool:
        """Whether the run is epsilon-private with no delta."""
        return self.epsilon is not None and self.delta == 0

    def profile(self, epsilon: Fraction) -> arb:
        """Bound the delta at which a run is (epsilon, delta)-private.

        It does so for every epsilon from 0, at the working precision.
        """
        bounds = [arb(1)]
        if self.epsilon is not None:
            bounds.append(self._profile_of_pair(self.epsilon, epsilon))
        if self.rho is not None:
            bounds += [_profile_at_order(self.rho, epsilon), _variation(self.rho)]
        return min(bounds, key=lambda bound: bound.upper())

    def _profile_of_pair(self, own: Fraction, epsilon: Fraction) -> arb:
        """Bound the delta of any (own, delta)-private mechanism.

        The worst is randomized response, which reveals all with probability delta.
        """
        if epsilon >= own:
            return ball(self.delta)
        worst = (ball(own).exp() - ball(epsilon).exp()) / (1 + ball(own).exp())
        return ball(self.delta) + ball(1 - self.delta) * worst

    def divergence(self, order: Fraction) -> arb | None:
        """Return an upper bound of the Rényi divergence of this order; None: none is known."""
        bounds = []
        if self.rho is not None:
            bounds.append(ball(self.rho * order))
        if self.epsilon is not None and self.delta == 0:
            bounds += [ball(self.epsilon), ball(self.epsilon**2 * order / 2)]
        return min(bounds, key=lambda bound: bound.upper()) if bounds else None

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return the least epsilon, rounded up, at which a run is (epsilon, delta)-private.

        None where there is none.
        """
        if self.epsilon is not None and self.delta <= delta == 0:
            return self.epsilon
        least = _least(lambda epsilon: bool(self.profile(epsilon) <= ball(delta)))
        if self.epsilon is not None and self.delta <= delta:
            return self.epsilon if least is None else min(least, self.epsilon)
        return least


class RunLaw(Parameters, ABC):
    """A law of the number of runs, K. Public; what is drawn from it is secret."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, coins: Coins) -> int:
        """Draw K."""

    @abstractmethod
    def mean(self) -> arb:
        """E[K] at the working precision."""

    @abstractmethod
    def generate(self, x: arb) -> arb:
        """E[x^K] for x from 0 to 1 at the working precision."""

    @abstractmethod
    def drift(self, run: RunCost) -> Fraction | None:
        """Return the most by which ln f' at the released outcome can move, rounded up.

        None: no bound.
        """

    def epsilon(self, run: RunCost, delta: Fraction) -> Fraction | None:
        """Epsilon of the best of K runs at this delta, rounded up; None: there is no bound."""
        with precision(START):
            each = ball(delta) / self.mean()
            part = Fraction(max(0, above(each.lower() * (1 << 200)) - 1), 1 << 200)
        one, drift = run.epsilon_at(part), self.drift(run)
        return None if one is None or drift is None else one + drift

    def tail(self, most: int) -> arb:
        """P(K > most) at the working precision."""
        return 1 - sum(self.chances(most), arb(0))

    @abstractmethod
    def chances(self, most: int) -> list[arb]:
        """P(K = 0), …, P(K = most) at the working precision."""

    def hit(self, share: Number) -> float:
        """Return the chance that at least one of K runs is among the best `share` of all.

        Examples:
            >>> round(random_runs("geometric", 10).hit(0.1), 3)
            0.526
        """
        part = probability("share", share)
        with precision(START):
            return float((1 - self.generate(ball(1 - part))).mid())


class NegativeBinomial(RunLaw):
    """The negative binomial law without its zero: geometric at eta 1, logarithmic at eta 0.

    Args:
        eta: Above −1. The smaller it is, the cheaper the best run, and the more often there is only
            one.
        gamma: Strictly between 0 and 1; the smaller, the more runs.

    Examples:
        >>> NegativeBinomial(eta=1, gamma="0.1").epsilon(RunCost(1), Fraction(0)) < 3
        True
    """

    name: ClassVar[str] = "negative-binomial"
    eta: Exact = parameter(exact)
    gamma: Exact = parameter(open_probability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eta <= -1:
            raise ParameterError(
                "eta", plain(self.eta), "it must be above -1", "For example 1, 0 or -1/2."
            )

    def draw(self, coins: Coins) -> int:
        return negative_binomial(self.eta, self.gamma, coins)

    def mean(self) -> arb:
        first = first_negative_binomial(self.eta, self.gamma)
        return first * (-(ball(self.eta) + 1) * ball(self.gamma).log()).exp()

    def generate(self, x: arb) -> arb:
        log = (1 - ball(1 - self.gamma) * x).log()
        whole = ball(self.gamma).log()
        if self.eta == 0:
            return log / whole
        return (-ball(self.eta) * log).expm1() / (-ball(self.eta) * whole).expm1()

    def drift(self, run: RunCost) -> Fraction | None:
        """(1 + eta) times the least e with (1 − gamma)·profile(e) ≤ gamma·(e^e − 1)."""
        odds = self.gamma / (1 - self.gamma)
        least = _least(
            lambda epsilon: bool(run.profile(epsilon) <= ball(odds) * ball(epsilon).expm1())
        )
        return None if least is None else (1 + self.eta) * least

    def chances(self, most: int) -> list[arb]:
        chance = first_negative_binomial(self.eta, self.gamma)
        chances = [arb(0), chance]
        for k in range(1, most):
            chance = chance * ball((1 - self.gamma) * (k + self.eta) / (k + 1))
            chances.append(chance)
        return chances


class Poisson(RunLaw):
    """The Poisson law: K may be 0, and then nothing is released.

    Args:
        rate: The expected number of runs.

    Examples:
        >>> Poisson(rate=10).epsilon(RunCost(rho="0.01"), Fraction(1, 10**6)) < 2
        True
    """

    name: ClassVar[str] = "poisson"
    rate: Exact = parameter(positive)

    def draw(self, coins: Coins) -> int:
        return poisson(self.rate, coins)

    def mean(self) -> arb:
        return ball(self.rate)

    def generate(self, x: arb) -> arb:
        return (ball(self.rate) * (x - 1)).exp()

    def drift(self, run: RunCost) -> Fraction | None:
        """Return the rate times the total variation of a run."""
        with precision(START):
            return _up(ball(self.rate) * run.profile(Fraction(0)))

    def epsilon(self, run: RunCost, delta: Fraction) -> Fraction | None:
        """Return the lesser of two bounds: by total variation, and by divergences."""
        bounds = [super().epsilon(run, delta)]
        if delta and run.divergence(Fraction(2)) is not None:
            order = _search(lambda order: self._at_order(run, delta, order))
            with precision(START):
                bounds.append(max(Fraction(0), _up(self._at_order(run, delta, order))))
        return min((one for one in bounds if one is not None), default=None)

    def _at_order(self, run: RunCost, delta: Fraction, order: Fraction) -> arb:
        """Epsilon by the divergence of one order: every order above 1 gives a valid one."""
        divergence = run.divergence(order)
        assert divergence is not None
        near = _down((1 + 1 / ball(order - 1)).log())
        drift = ball(self.rate) * run.profile(near)
        return divergence + drift + _conversion(ball(delta) / ball(self.rate), order)

    def chances(self, most: int) -> list[arb]:
        chance = (-ball(self.rate)).exp()
        chances = [chance]
        for k in range(most):
            chance = chance * ball(self.rate / (k + 1))
            chances.append(chance)
        return chances


GEOMETRIC, LOGARITHMIC, POISSON = "geometric", "logarithmic", "poisson"
_ETAS = {GEOMETRIC: Fraction(1), LOGARITHMIC: Fraction(0)}


def random_runs(law: str | Number, mean: Number) -> RunLaw:
    """Return the law of a number of runs, by its name and what is expected of it.

    Args:
        law: "geometric", "logarithmic", "poisson", or eta of a negative binomial law without its
            zero: 1 is geometric, 0 logarithmic, "-1/2" cheaper still.
        mean: The expected number of runs, above 1. It is met exactly by "geometric" and "poisson",
            and by the others to within a millionth.

    Raises:
        ParameterError: There is no such law, or not with this mean.

    Examples:
        >>> random_runs("geometric", 10)
        NegativeBinomial(eta=1, gamma=0.1)
        >>> random_runs("poisson", 10)
        Poisson(rate=10)
    """
    expected = exact("runs", mean)
    if not 1 < expected <= MOST_RUNS:
        raise ParameterError(
            "runs", mean, f"it must be above 1 and at most {MOST_RUNS}", "For example 10."
        )
    if law == POISSON:
        return Poisson(rate=expected)
    named = isinstance(law, str) and law in _ETAS
    try:
        eta = _ETAS[law] if named else exact("law", law)  # type: ignore[index]
    except ParameterError:
        allowed = f'it must be "{GEOMETRIC}", "{LOGARITHMIC}", "{POISSON}" or a number above -1'
        raise ParameterError("law", law, allowed, f'For example "{GEOMETRIC}".') from None
    if not -1 < eta <= MOST_RUNS:
        raise ParameterError(
            "law", law, f"as a number it must be above -1 and at most {MOST_RUNS}", "Try -1/2."
        )
    return NegativeBinomial(eta=eta, gamma=_gamma(eta, expected))


@lru_cache(maxsize=1024)
def repetition_cost(
    run: RunCost, runs: RunLaw, delta: Number = 0, most: int | None = None
) -> Privacy:
    """Return what the best of a random number of runs costs.

    Args:
        run: What one run costs.
        runs: The law of their number.
        delta: That of the answer; 0 needs runs without delta.
        most: A public cap: where more runs are drawn, so many are made. It uses half
            of `delta`.

    Returns:
        (epsilon, delta), rounded up.

    Raises:
        ParameterError: No epsilon can be proved at this delta.

    Examples:
        >>> repetition_cost(RunCost(1), random_runs("geometric", 10))
        Privacy(epsilon=2.59135, delta=0)
        >>> repetition_cost(RunCost(rho="0.0243559"), random_runs("geometric", 10), 1e-6)
        Privacy(epsilon=1.61361, delta=1e-06)
    """
    total = probability("delta", delta)
    part = total if most is None else total / 2
    epsilon = runs.epsilon(run, part)
    if epsilon is None:
        with precision(START):
            least = float((runs.mean() * ball(run.delta)).mid())
        raise ParameterError(
            "delta", plain(total), "at this delta no cost can be proved",
            f"Allow more than expected runs times the delta of one run, {least:.3g}, or use "
            "learners without delta." if run.delta else "For example 1e-6.",
        )  # fmt: skip
    if most is not None:
        _check_cap(runs, most, epsilon, total - part)
    return Privacy(epsilon, total)


def concentrated_cost(run: RunCost, runs: RunLaw) -> Fraction | None:
    """Return a rho such that the best of the runs is rho-zCDP, rounded up; None: none is known.

    Examples:
        >>> concentrated_cost(RunCost(1), random_runs("geometric", 10)) is None
        True
    """
    if run.rho is None or not isinstance(runs, NegativeBinomial):
        return None
    drift = runs.drift(run)
    if drift is None:
        return None
    with precision(START):
        rho = ball(run.rho)
        return _up(rho + 2 * (rho * runs.mean().log()).sqrt() + ball(drift))


def _check_cap(runs: RunLaw, most: int, epsilon: Fraction, delta: Fraction) -> None:
    """Refuse a cap for which half of delta is too little."""
    if not delta:
        raise ParameterError(
            "max_runs", most, "a cap uses a half of delta, which is 0", "Leave it out."
        )
    with precision(4 * START):
        share = ball(delta) / (1 + ball(epsilon).exp())
        if runs.tail(most) <= share:
            return
        needed = most
        while needed < 1 << 16 and not runs.tail(needed) <= share:
            needed = 2 * needed
    raise ParameterError(
        "max_runs", most, "more runs than that are drawn too often for this delta",
        f"About {needed} are enough, or leave it out.",
    )  # fmt: skip


def best_of(
    runs: RunLaw,
    run: Callable[[int], Iterable[tuple[int, T]]],
    coins: Coins,
    most: int | None = None,
) -> tuple[int, T] | None:
    """Draw how many runs there are, make them, and return the score and outcome of the best.

    Of equal scores the first wins, which is any of them: runs are drawn alike.

    Args:
        runs: The law of their number.
        run: Makes so many independent runs, each at the cost that was declared: score and outcome.
        coins: Where random bits come from.
        most: A public cap on their number.

    Returns:
        None where no run was drawn.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> best_of(random_runs("geometric", 3), lambda k: [(5, "a")] * k, SYSTEM)
        (5, 'a')
    """
    number = runs.draw(coins)
    made = run(number if most is None else min(number, most))
    return max(made, key=lambda one: one[0], default=None)


def _profile_at_order(rho: Fraction, epsilon: Fraction) -> arb:
    """Return delta of a rho-zCDP run at epsilon.

    Every order above 1 gives a valid one, here a good one that is chosen in floats.
    """
    order = 1 + Fraction(math.exp(_best_power(float(rho), float(epsilon))))
    excess = order - 1
    log = ball(excess * (rho * order - epsilon)) - ball(excess).log()
    return (log + ball(order) * (1 - 1 / ball(order)).log()).exp()


def _best_power(rho: float, epsilon: float) -> float:
    """Return ln(order − 1) at which delta is nearly least; any other is as valid."""

    def log_delta(power: float) -> float:
        excess = math.exp(power)
        return (
            excess * (rho * (excess + 1) - epsilon) - power - (1 + excess) * math.log1p(1 / excess)
        )

    return least_at(log_delta, math.log(1e-4), math.log(1e9), steps=60)


def _variation(rho: Fraction) -> arb:
    """Bound the total variation of a rho-zCDP run by its divergence of order 1.

    That is at most rho; the bounds are those of Pinsker, and of Bretagnolle and Huber.
    """
    bounds = (ball(rho / 2).sqrt(), (1 - (-ball(rho)).exp()).sqrt())
    return min(bounds, key=lambda bound: bound.upper())


def _conversion(delta: arb, order: Fraction) -> arb:
    """Return what is added to a divergence of an order for epsilon at a delta."""
    excess = ball(order - 1)
    return -(ball(order) * delta).log() / excess + (1 - 1 / ball(order)).log()


def _search(cost: Callable[[Fraction], arb]) -> Fraction:
    """Return a good order above 1 for a cost; any is valid."""

    def at(power: float) -> float:
        return float(cost(1 + Fraction(math.exp(power))).mid())

    with precision(START):
        powers = [math.log(1e-2) + step / 4 for step in range(72)]
        middle = min(powers, key=at)
        near = [middle + step / 64 for step in range(-16, 17)]
        return 1 + Fraction(math.exp(min(near, key=at)))


def _least(holds: Callable[[Fraction], bool]) -> Fraction | None:
    """Return about the least multiple of 1/GRID at which a condition certainly holds.

    It is above 0. The condition holds from some point on; None where that is not up to LARGEST.
    """
    with precision(START):
        high = 1
        while not holds(Fraction(high, GRID)):
            high *= 2
            if high > LARGEST * GRID:
                return None
        low = high // 2
        while high - low > 1 + (high >> 24):  # six digits, and some
            middle = (low + high) // 2
            low, high = (low, middle) if holds(Fraction(middle, GRID)) else (middle, high)
    return Fraction(high, GRID)


def _gamma(eta: Fraction, mean: Fraction) -> Fraction:
    """Return a short gamma with nearly this mean; exact for the geometric law.

    Raises:
        ParameterError: There is none that is not too near to 0 or 1.
    """
    if eta == 1:
        return 1 / mean
    low, high = -60.0, 0.0  # ln gamma
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(float(eta), middle) > mean else (low, middle)
    for digits in (8, 12, 16):
        gamma = Fraction(f"{math.exp(high):.{digits}g}")
        if gamma < 1 and abs(_mean(float(eta), math.log(gamma)) - mean) <= mean / 10**6:
            return gamma
    raise ParameterError(
        "runs", plain(mean), f"the law {plain(eta)} cannot have so many expected runs",
        "Take another law, or another number of runs.",
    )  # fmt: skip


def _mean(eta: float, log: float) -> float:
    """Return E[K], in floats: only to choose gamma by."""
    odds = math.expm1(-log)
    return odds / -log if eta == 0 else eta * odds / -math.expm1(eta * log)


def _up(number: arb) -> Fraction:
    return Fraction(above(number * GRID), GRID)


def _down(number: arb) -> Fraction:
    return Fraction(-above(-number * GRID), GRID)
