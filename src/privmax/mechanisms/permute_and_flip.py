"""Permute-and-flip: go through the candidates in random order, accept i with probability exp(−ε·depth_i / c).

Equivalently each candidate arrives at a uniform time and survives with that probability; the first survivor wins. The
first survivor among n equal candidates arrives after time t with probability (1 − p·t)^n, so each block of equal
candidates needs one arrival time, however large it is, and the blocks race.

Proof:      docs/proofs/permute-and-flip.md
Reference:  McKenna & Sheldon, NeurIPS 2020
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from privmax.mechanisms.base import (
    Joint,
    Law,
    Outcome,
    candidate,
    closed_view,
    decay,
    law_of,
    smallest_lead,
)
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform
from privmax.privacy import ADD_REMOVE, Described, Neighbors, Number, Privacy, positive, relation
from privmax.profile import Profile

QUADRATURE_ERROR = 1e-11
"""Bound on the error of `law`: see the section on quadrature of the proof page."""


@dataclass(frozen=True, init=False, repr=False)
class PermuteAndFlip(Described):
    """Draw one candidate of a closed universe at a price of `epsilon`; never worse than `Exponential`."""

    epsilon: Fraction
    neighbors: Neighbors

    def __init__(self, *, epsilon: Number, neighbors: str = ADD_REMOVE) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "neighbors", relation(neighbors))

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window, blocks, rate = closed_view(profile, self.epsilon, self.neighbors)
        runners = [_Runner(depth * rate, count, coins) for depth, count in blocks]
        first = 0
        runners[0].arrive()
        for index in range(1, len(runners)):
            if not runners[index].after(runners[first].high) and _earlier(runners[index], runners[first]):
                first = index
        return candidate(window, first, coins)

    def law(self, profile: Profile) -> Law:
        window, blocks, rate = closed_view(profile, self.epsilon, self.neighbors)
        exponents = np.array([float(rate * depth) for depth, _ in blocks])
        log_counts = np.array([_log(count) for _, count in blocks])
        return law_of(window, _race_law(exponents, log_counts), error=QUADRATURE_ERROR)

    def joint(self, profile: Profile) -> Joint:
        return {None: self.law(profile)}

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        return smallest_lead(self.law, candidates=candidates, near=near, success=success)


class _Runner:
    """The first survivor of a block: its arrival time (1 − U^(1/count)) / e^(−exponent), U revealed as needed.

    A time above 1 means that nobody of the block survived.
    """

    def __init__(self, exponent: Fraction, count: int, coins: Coins) -> None:
        self._exponent, self._count = exponent, count
        self._uniform = Uniform(coins)
        self.low, self.high = arb(0), arb.pos_inf()

    def arrive(self) -> None:
        """Look until it is known to come before time 1. Only for the best block, which always does."""
        while not self.high < 1:
            self.look()

    def after(self, time: arb) -> bool:
        """Whether it comes later than a time of at most 1: U < (1 − p·time)^count. Decided by a few bits."""
        limit = time.upper()
        return self._uniform.left_of(lambda: ((-decay(self._exponent, 1) * limit).log1p() * self._count).exp())

    def width(self) -> arb:
        """How uncertain the arrival time still is."""
        return self.high - self.low

    def look(self) -> None:
        """Reveal one more bit of the arrival time and narrow its bounds."""
        self._uniform.reveal()
        with precision(START + self._uniform.length):
            acceptance = decay(self._exponent, 1)
            self.low = -(self._uniform.high().log() / self._count).expm1() / acceptance
            if self._uniform.known:
                self.high = -(self._uniform.low().log() / self._count).expm1() / acceptance


def _earlier(left: _Runner, right: _Runner) -> bool:
    """Whether `left` arrives first. Ends with probability one: two continuous times are almost surely different."""
    while True:
        if left.high < right.low:
            return True
        if right.high < left.low:
            return False
        (left if left.width() > right.width() else right).look()


def _log(count: int) -> float:
    with precision(START):
        return float(ball(count).log().mid())


def _race_law(exponents: np.ndarray, log_counts: np.ndarray) -> list[float]:
    """P(block b wins) = ∫₀¹ n_b p_b/(1 − p_b t) · Π_e (1 − p_e t)^n_e dt, by Gauss–Legendre on panels halving to 0.

    In log t the integrand is analytic and no panel holds more than one scale of it.
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(48)
    p = np.exp(-exponents)
    log_rates = log_counts - exponents  # ln(n p)
    panels = int(np.ceil(max(0.0, log_rates.max() / np.log(2)))) + 50
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(panels, -1, -1.0)])
    low, high = edges[:-1, None], edges[1:, None]
    times = ((low + high) / 2 + (high - low) / 2 * nodes).ravel()
    weights = ((high - low) / 2 * node_weights).ravel()
    survival = np.zeros_like(times)
    for p_e, log_rate in zip(p, log_rates, strict=True):
        # n·ln(1 − p t) = (n p)·ln(1 − p t)/p, which stays finite when p underflows
        per_rate = np.log1p(-p_e * times) / p_e if p_e > 1e-290 else -times
        survival -= np.exp(np.minimum(log_rate + np.log(-per_rate), 700.0))
    mass = weights * np.exp(np.maximum(survival, -745.0))
    wins = [float(np.sum(np.exp(rate) / (1 - p_e * times) * mass)) for p_e, rate in zip(p, log_rates, strict=True)]
    total = sum(wins)
    return [win / total for win in wins]
