"""Costs and noise of the releases of an additive fit. All of it is public.

One release of the two label counts, then rounds. A round chooses a part by the exponential
mechanism (unless parts are taken in turn), and releases the sums of residuals and of curvatures in
all cells of that part. With a delta the budget is shared in ρ of concentrated privacy, and sums get
discrete Gaussian noise; without one it is shared in epsilon, and they get discrete Laplace noise.
What all of it costs follows from ρ, or, a little tighter, from privacy loss distributions.

Proof:      docs/proofs/additive.md
References: Friedman & Schuster, KDD 2010; Nori, Caruana, Bu, Shen & Kulkarni, ICML 2021; Canonne,
            Kamath & Steinke, NeurIPS 2020; Cesar & Rogers, ALT 2021
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from privmax.accounting import Program
from privmax.composition import largest_rho
from privmax.errors import ParameterError, shorten
from privmax.learning.additive.link import CLIP, CURVE, UNIT
from privmax.mechanisms.contract import Relation, read_relation
from privmax.mechanisms.exponential import Exponential
from privmax.noise import bulk
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import as_given, flag, positive, probability, whole
from privmax.parameters import Exact, Parameter, Parameters, Whole, parameter
from privmax.privacy import ADD_REMOVE, REPLACE, Neighbors, Privacy

GREEDY, CYCLIC = "greedy", "cyclic"

ZCDP, PLD = "zcdp", "pld"

INTERCEPT = Fraction(2, 100)
"""Share of the budget for the two label counts."""

CHOICE = Fraction(15, 100)
"""Share of a round for the choice of its part."""

CURVES = Fraction(10, 100)
"""Share of the sums of a round for curvatures; residuals have the rest."""

PAIRS = Fraction(30, 100)
"""Share of the budget for rounds on pairs, where there are any."""

_GRAIN = 1 << 30
"""Square roots are rounded down to multiples of 1/_GRAIN."""

_STEPS, _TRIES = 1 << 10, 6
"""By losses, noise is sought on multiples of epsilon/_STEPS, with so many programs at most."""


@dataclass(frozen=True)
class SumNoise:
    """Noise on whole numbers: discrete Gaussian of a variance, or discrete Laplace of a scale.

    variance   of the Gaussian, if that is what it is
    scale      of the Laplace, otherwise
    """

    variance: Fraction | None = None
    scale: Fraction | None = None

    def draw(self, size: int, coins: Coins) -> NDArray[np.int64]:
        """Draw so many times, independently."""
        if self.variance is not None:
            return bulk.discrete_gaussian(self.variance, size, coins)
        assert self.scale is not None, "it is one or the other"
        return bulk.discrete_laplace(self.scale, size, coins)

    def spread(self) -> float:
        """Return its variance, nearly, for what is computed from released numbers."""
        if self.variance is not None:
            return float(self.variance)
        return 2 * float(self.scale or 0) ** 2


@dataclass(frozen=True)
class RoundNoise:
    """The mechanisms and noise of one round.

    chooser      draws a part; None: parts are taken in turn
    residuals    noise on the sums of residuals
    curvatures   noise on the sums of curvatures
    """

    chooser: Exponential | None
    residuals: SumNoise
    curvatures: SumNoise


def choice_sensitivity(neighbors: Neighbors) -> int:
    """By how much one individual moves the score of a part, Σ over cells of |Σ residuals|.

    Examples:
        >>> choice_sensitivity("add-remove"), choice_sensitivity("replace")
        (614, 1228)
    """
    return CLIP if neighbors == ADD_REMOVE else 2 * CLIP


def squared_sensitivity(largest: int, neighbors: Neighbors, *, signed: bool) -> int:
    """Return the largest squared Euclidean distance between the sums of neighbors, over all cells.

    Args:
        largest: What one row adds at most to the sum of its cell, up or down.
        neighbors: The relation.
        signed: Whether it may be negative: then two rows of one cell differ by twice that.

    Examples:
        >>> squared_sensitivity(1, "add-remove", signed=False)
        1
        >>> squared_sensitivity(1, "replace", signed=False)
        2
        >>> squared_sensitivity(1, "replace", signed=True)
        4
    """
    if neighbors == ADD_REMOVE:
        return largest**2
    return (4 if signed else 2) * largest**2


def read_order(name: str, value: object) -> str:
    """Read the parameter `order`."""
    if isinstance(value, str) and value in (GREEDY, CYCLIC):
        return value
    raise ParameterError(
        name, value, f"it must be {GREEDY} or {CYCLIC}",
        "Use greedy to choose features by their use, or cyclic to take them in turn.",
    )  # fmt: skip


def read_accounting(name: str, value: object) -> str:
    """Read the parameter `accounting`."""
    if isinstance(value, str) and value in (ZCDP, PLD):
        return value
    raise ParameterError(
        name, value, f"it must be {ZCDP} or {PLD}",
        "Use pld for a little less noise, and zcdp where fits add up in a ledger under that rule.",
    )  # fmt: skip


class AdditiveRounds(Parameters):
    """The split of (epsilon, delta) over the releases of a fit, which is public.

    Args:
        epsilon: What the fit costs.
        delta: Probability with which the guarantee may fail; with 0 noise is discrete Laplace.
        rounds: How many rounds look at single features.
        pairs: How many rounds look at pairs of features, after those.
        order: "greedy" or "cyclic".
        neighbors: "add-remove" or "replace".
        accounting: "zcdp": the cost follows from ρ; "pld": from privacy loss distributions, for
            add-remove with a delta.

    Examples:
        >>> rounds = AdditiveRounds(epsilon=1, delta=1e-6, rounds=20)
        >>> rounds.privacy()
        Privacy(epsilon=1, delta=1e-06)
        >>> rounds.singles.chooser.neighbors  # the scores of parts are not monotone
        'replace'
        >>> round(rounds.singles.residuals.spread() ** 0.5 / 614, 1)  # in the pull of one row
        23.4
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(probability, default=0)
    rounds: Whole = parameter(whole, default=20)
    pairs: Whole = parameter(whole, default=0, least=0)
    order: Parameter[str, str] = parameter(read_order, default=GREEDY)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    accounting: Parameter[str, str] = parameter(read_accounting, default=ZCDP)

    k = 1
    ranked = True
    bounded_range = False

    @property
    def tallies(self) -> int:
        """The number of times that rows are counted, each in one of several places."""
        return 1

    @property
    def tally(self) -> Fraction:
        """Share of the budget for each of these counts."""
        return INTERCEPT

    def __post_init__(self) -> None:
        """Read what was given, and refuse accounting that is not proved for it."""
        super().__post_init__()
        if self.accounting == PLD:
            self._check_losses()

    def privacy(self) -> Privacy:
        """Return what the whole fit costs."""
        return Privacy(self.epsilon, self.delta)

    @cached_property
    def rho(self) -> Fraction | None:
        """The cost in concentrated privacy; None without a delta.

        By losses it is more than what epsilon and delta have room for in ρ alone.
        """
        if not self.delta:
            return None
        epsilon = self.epsilon if self.accounting == ZCDP else _stretch_epsilon(self)
        return largest_rho(epsilon, self.delta)

    @property
    def single(self) -> Fraction:
        """Share of the budget for each round on single features."""
        return (1 - self.tally * self.tallies - (PAIRS if self.pairs else 0)) / self.rounds

    @property
    def double(self) -> Fraction:
        """Share of the budget for each round on pairs; 0 where there are none."""
        return PAIRS / self.pairs if self.pairs else Fraction(0)

    @cached_property
    def counts(self) -> SumNoise:
        """Noise on a tally, such as the two label counts: one row adds 1 to one of its counts."""
        if self.rho is None:
            return SumNoise(scale=self._factor / (self.epsilon * self.tally))
        squared = squared_sensitivity(1, self.neighbors, signed=False)
        return _gaussian(squared, self.rho * self.tally)

    @cached_property
    def singles(self) -> RoundNoise:
        """The mechanisms and noise of a round on single features."""
        return self._round(self.single, greedy=self.order == GREEDY)

    @cached_property
    def doubles(self) -> RoundNoise:
        """The mechanisms and noise of a round on pairs; a pair is always chosen."""
        return self._round(self.double, greedy=True)

    def program(self) -> Program:
        """Return all releases, each with what one individual moves at most.

        Raises:
            ParameterError: There is no delta, or a row may take another's place.
        """
        self._check_losses()
        groups = [
            (self.singles, self.rounds),
            *([(self.doubles, self.pairs)] if self.pairs else []),
        ]
        draws = [(one.chooser.epsilon, times) for one, times in groups if one.chooser is not None]
        noise = [(1, self.counts, self.tallies)]
        for one, times in groups:
            noise += [(CLIP, one.residuals, times), (CURVE, one.curvatures, times)]
        gaussians = [
            (moved, law.variance, times) for moved, law, times in noise if law.variance is not None
        ]
        return Program(rounds=draws, gaussians=gaussians)

    def check(self) -> None:
        """Refuse a budget for which there is no noise, before anything is read or charged.

        Raises:
            ParameterError: Epsilon is too small or too large, or delta is 1.
        """
        _ = self.rho  # which says what is wrong with delta
        try:
            rounds = [self.singles, *([self.doubles] if self.pairs else [])]
            sums = [noise for one in rounds for noise in (one.residuals, one.curvatures)]
            for noise in (self.counts, *sums):
                noise.draw(0, SYSTEM)  # which meets what the sampler refuses
        except ParameterError:
            number = self.rounds + self.pairs
            raise beyond_noise(self.epsilon, f"each of {shorten(number)} rounds") from None

    def _check_losses(self) -> None:
        """Refuse privacy loss distributions where no worst case of them is known."""
        if not self.delta:
            raise ParameterError(
                "accounting", PLD, "it needs a delta above 0",
                "Give delta, such as 1e-6, or leave accounting out.",
            )  # fmt: skip
        if self.neighbors != ADD_REMOVE:
            raise ParameterError(
                "accounting", PLD, "it is proved for neighbors='add-remove' only",
                "Leave accounting out, or use add-remove.",
            )  # fmt: skip

    @property
    def _factor(self) -> int:
        """The number of rows that one individual changes; a replaced row counts as two."""
        return 2 if self.neighbors == REPLACE else 1

    def _round(self, part: Fraction, *, greedy: bool) -> RoundNoise:
        """Return a round that has this part of the budget."""
        choice = CHOICE if greedy else Fraction(0)
        first, second = (1 - choice) * (1 - CURVES), (1 - choice) * CURVES
        if self.rho is None:
            budget = self.epsilon * part
            epsilon = choice * budget
            sums = (
                SumNoise(scale=self._factor * CLIP / (first * budget)),
                SumNoise(scale=self._factor * CURVE / (second * budget)),
            )
        else:
            budget = self.rho * part
            epsilon = _root(8 * choice * budget)  # a draw of range e is e²/8-concentrated
            sums = (
                _gaussian(squared_sensitivity(CLIP, self.neighbors, signed=True), first * budget),
                _gaussian(
                    squared_sensitivity(CURVE, self.neighbors, signed=False), second * budget
                ),
            )
        # Some scores rise while others fall: two drift apart by twice the sensitivity.
        chooser = Exponential(epsilon=epsilon, neighbors=REPLACE) if greedy else None
        return RoundNoise(chooser, *sums)


class CalibratedRounds(AdditiveRounds):
    """Rounds after which labels are counted once more, by the chance that the model gives them.

    Ledgers keep the name with each request, so fits without that count are found as before.

    Examples:
        >>> CalibratedRounds(epsilon=1, delta=1e-6).tallies
        2
    """

    @property
    def tallies(self) -> int:
        """The number of times that labels are counted."""
        return 2


def read_switch(name: str, value: object) -> bool:
    """Read a parameter that is on or off."""
    return flag(name, value, "It is False by default.")


def beyond_noise(epsilon: Fraction, use: str) -> ParameterError:
    """Return the error for an epsilon for which there is no noise.

    Args:
        epsilon: What was given.
        use: What a small one leaves too little for.
    """
    large = epsilon > 1
    return ParameterError(
        "epsilon", as_given(epsilon),
        "it is too large for any noise" if large else f"it leaves too little for {use}",
        f"Use a {'smaller' if large else 'larger'} one; common values are between 0.1 and 3.",
    )  # fmt: skip


def _gaussian(squared: int, rho: Fraction) -> SumNoise:
    """Discrete Gaussian noise that costs at most rho; its variance is rounded up."""
    variance = squared / (2 * rho)
    return SumNoise(variance=Fraction(math.ceil(variance * UNIT), UNIT))


def _root(square: Fraction) -> Fraction:
    """Return a square root, rounded down."""
    return Fraction(math.isqrt(math.floor(square * _GRAIN**2)), _GRAIN)


@lru_cache(maxsize=256)
def _stretch_epsilon(terms: AdditiveRounds) -> Fraction:
    """An epsilon, as large as was found, for which noise by ρ costs by losses what terms allow.

    The cost is nearly in proportion to it, so two or three tries mostly suffice.
    """
    low, high = _STEPS, 2 * _STEPS  # noise for epsilon itself keeps to it by ρ alone
    tried = low
    for _ in range(_TRIES):
        noise = replace(terms, epsilon=terms.epsilon * tried / _STEPS, accounting=ZCDP)
        cost = noise.program().epsilon(terms.delta)
        low, high = (tried, high) if cost <= terms.epsilon else (low, tried)
        guess = math.floor(tried * terms.epsilon / cost) if cost else high
        tried = min(max(guess, low), high - 1)
        if tried == low:
            break
    return terms.epsilon * low / _STEPS
