"""What every selection mechanism answers, and the small values they answer with."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

from flint import arb

from privmax.errors import ParameterError
from privmax.noise.balls import ball, ceiling_log
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.privacy import Neighbors, Number, Privacy, open_probability, swing, whole
from privmax.profile import Level, Profile, Window

CLIP_LOSS = Fraction(1, 1 << 24)
"""Every window is so wide that clipping at it moves at most this much probability."""

ROUNDING = 2.0**-40
"""Absolute error of a law from rounding its probabilities to floats, far above what actually
happens.
"""


@dataclass(frozen=True, repr=False)
class Outcome:
    """What a mechanism drew: the `index`-th candidate at `score`, or nothing at all (score None).

    With `below`, `index` counts the candidates at `score` or below: they were one block at the
    floor. `free` holds what the same price also pays for. The score and the index do not belong to
    the release.
    """

    score: int | None
    index: int = 0
    below: bool = False
    free: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "Outcome(<private>)"


@dataclass(frozen=True, repr=False)
class Law:
    """The exact distribution of an outcome. It is a function of the private data: never release it.

    blocks   for each block of equal candidates: score, number (None: infinitely many, all
             unlisted), probability that one of the block is drawn
    none     probability that nothing is released
    error    every probability here is within this of the truth
    floor    score at and below which candidates are one block, or None where there is no such block

    An audit of a claim without delta needs to know more of small probabilities:

    relative     every probability is also within this part of itself; infinite: `error` is all that
                 is known
    true_zeros   whether a probability of 0 means that the outcome is impossible, or too rare for a
                 float; False where one may also come from rounding, as in 1 − 0.99999999999999999
    """

    blocks: tuple[tuple[int, int | None, float], ...]
    none: float
    error: float
    floor: int | None = None
    relative: float = math.inf
    true_zeros: bool = True

    def __repr__(self) -> str:
        return "Law(<private>)"

    def best(self) -> float:
        """Probability that a candidate of the highest score is drawn."""
        return self.blocks[0][2]

    def scaled(self, factor: float) -> Law:
        """The same law with every probability multiplied."""
        blocks = tuple((score, count, chance * factor) for score, count, chance in self.blocks)
        return replace(self, blocks=blocks, none=self.none * factor, error=self.error * factor)

    def of(self, score: int) -> float:
        """Probability of one given candidate with this score."""
        for level, count, chance in self.blocks:
            if count and (score == level or (level == self.floor and score <= level)):
                return chance * (1 / count)
        return 0.0


Joint = Mapping[Hashable, Law]
"""For each value of what is released beside the item: the law of the item together with that value
(it adds up to the value's own probability)."""


class PartialJoint(dict[Hashable, Law]):
    """A joint law without the rarest values: those that are not listed have a probability of
    `left_out` at most, in all."""

    def __init__(self, laws: Mapping[Hashable, Law], left_out: float) -> None:
        super().__init__(laws)
        self.left_out = left_out


class Mechanism(Protocol):
    """A way to choose one candidate."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation its price is stated for."""
        ...

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        """Choose: what is released."""
        ...

    def law(self, profile: Profile) -> Law:
        """With what distribution. For tests, plots and planning on public data; never released."""
        ...

    def joint(self, profile: Profile) -> Joint:
        """The law of the item together with whatever is released beside it, on small profiles."""
        ...

    def privacy(self) -> Privacy:
        """At what price."""
        ...

    def lead(self, *, candidates: int | None, near: int = 1, success: Number = "0.95") -> int:
        """By how many records the `near` best must lead all others to be drawn with probability
        `success`.
        """
        ...


def decay(rate: Fraction, depth: int) -> arb:
    """e^(−rate·depth) at the precision in force."""
    return (-ball(rate * depth)).exp()


def clip_width(scale: Fraction, mass: Fraction) -> int:
    """A width w with mass · e^(−w/scale) ≤ CLIP_LOSS, not below 1."""
    return max(1, ceiling_log(scale, mass / CLIP_LOSS))


def closed_size(profile: Profile) -> int:
    """The size of a closed universe. An open one is refused: a pure mechanism must be able to draw
    every candidate.
    """
    if profile.universe is None:
        raise ParameterError(
            "universe", "open", "a mechanism with delta = 0 must be able to draw every candidate",
            "Declare the universe's size or labels, or choose a mechanism with delta above 0 "
            "(NestedMargin).",
        )  # fmt: skip
    return profile.universe


def closed_view(
    profile: Profile, epsilon: Fraction, neighbors: Neighbors, rank: int = 1
) -> tuple[Window, list[Level], Fraction]:
    """A closed profile as a mechanism with weights exp(−ε·depth/c) sees it: clipped, all its
    blocks, and the rate.

    It is clipped below its `rank`-th highest score.
    """
    scale = swing(neighbors) * profile.sensitivity / epsilon
    size = closed_size(profile)
    window = profile.window(clip_width(scale, Fraction(size)), rank)
    return window, window.first(size), 1 / scale


def candidate(
    window: Window, block: int, coins: Coins, free: Mapping[str, int] | None = None
) -> Outcome:
    """A uniform candidate of a block of `window.blocks()`; nothing if the block is the open
    universe's floor.
    """
    free = free or {}
    depth, count = window.blocks()[block]
    if count is None:
        return Outcome(None, free=free)
    below = block == len(window.depths)
    return Outcome(window.top - depth, uniform_below(count, coins), below, free)


def law_of(
    window: Window,
    chances: Sequence[float],
    none: float = 0.0,
    error: float = ROUNDING,
    *,
    relative: float = math.inf,
    true_zeros: bool = True,
) -> Law:
    """A law from the probability of each block of `window.blocks()`; an infinite block is unlisted:
    nothing.
    """
    blocks = []
    for (depth, count), chance in zip(window.blocks(), chances, strict=True):
        if count is None:
            none += float(chance)
        blocks.append((window.top - depth, count, 0.0 if count is None else float(chance)))
    floor = window.top - window.floor if window.rest else None
    return Law(tuple(blocks), none, error, floor, relative, true_zeros)


def smallest_lead(
    law: Callable[[Profile], Law], *, candidates: int | None, near: int, success: Number
) -> int:
    """The smallest lead, in records, at which `law` draws one of the `near` best with probability
    `success`.
    """
    return rising_lead(
        lambda profile: law(profile).best(), candidates=candidates, near=near, success=success
    )


def rising_lead(
    chance: Callable[[Profile], float],
    *,
    candidates: int | None,
    near: int | None,
    success: Number,
    k: int = 1,
) -> int:
    """The smallest lead, in records, at which the k items released are all among the `near` best
    (default: k).

    `chance` is the probability that they all come from a profile's best level. All other candidates
    stand lower by exactly the lead. Where there are no others the lead is 0. The probability grows
    with the lead, so doubling and bisection find it.
    """
    near = whole("near", k if near is None else near, least=k)
    target = float(open_probability("success", success))
    if candidates is not None and near >= whole("candidates", candidates):
        return 0

    def enough(lead: int) -> bool:
        if lead:
            return chance(Profile([(lead, near)], universe=candidates)) >= target
        if candidates is None:
            return False  # nobody stands above the unlisted candidates
        among = math.prod((near - drawn) / (candidates - drawn) for drawn in range(k))
        return chance(Profile([(0, candidates)], universe=candidates)) * among >= target

    if enough(0):
        return 0
    high = 1
    while not enough(high):
        if high > 1 << 128:
            raise ParameterError(
                "success", success, "no lead reaches it for that many near maximizers",
                "Lower success, or use guards that reach further.",
            )  # fmt: skip
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
