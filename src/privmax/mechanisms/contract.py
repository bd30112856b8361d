"""The interface of every selection mechanism, and the small values they answer with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

from privmax.errors import ParameterError
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.notebook import facts
from privmax.numbers import (
    LONGEST,
    Number,
    as_given,
    open_probability,
    plain,
    probability,
    whole,
)
from privmax.parameters import Parameter, Parameters
from privmax.privacy import Neighbors, Privacy, relation
from privmax.profile import Profile, Window

CLIP_LOSS = Fraction(1, 1 << 24)
"""Every window is so wide that clipping at it moves at most this much probability."""

ROUNDING = 2.0**-40
"""Absolute error of a law from rounding its probabilities to floats, far above what actually
happens.
"""

LONGEST_LIST = 10_000
"""Longer lists are not drawn: each item takes a round of its own."""

Relation = Parameter[str, Neighbors]
"""A neighbor relation as a parameter."""


def read_relation(name: str, value: str) -> Neighbors:
    """Read the parameter `neighbors`.

    Examples:
        >>> read_relation("neighbors", "replace")
        'replace'
    """
    return relation(value)


def read_length(name: str, value: int) -> int:
    """Read how many items a list holds.

    Raises:
        ParameterError: It is no whole number from 1 to LONGEST_LIST.

    Examples:
        >>> read_length("k", 10)
        10
    """
    length = whole(name, value)
    if length > LONGEST_LIST:
        allowed = f"a list has at most {LONGEST_LIST:,} items, each drawn in a round of its own"
        raise ParameterError(name, value, allowed, "Ask for fewer, or use SetMargin.")
    return length


def composition_delta(name: str, value: Number, k: int) -> Fraction:
    """Read the delta of a mechanism that spends it on composition only.

    Args:
        name: What it is, for the error.
        value: The delta.
        k: How many rounds there are. A single one has no use for a delta: it must be 0.

    Raises:
        ParameterError: It is out of bounds, or not 0 where there is a single round.

    Examples:
        >>> composition_delta("delta", "0.1", 2)
        Fraction(1, 10)
    """
    number = probability(name, value)
    if number and k == 1:
        raise ParameterError(
            name, value, "a single draw of this mechanism has no use for it", "Leave it out."
        )
    return open_probability(name, number) if number else number


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of a draw: the `index`-th candidate at `score`, or no answer.

    The score and the index do not belong to the release.

    Attributes:
        score: The score of the candidate; None: nothing is released.
        index: Which of the candidates at that score, from 0.
        below: `index` counts the candidates at `score` or below: they were one block at the floor.
        diagnostics: What the same cost also covers.
        relative: Its noisy score less that of the first of a list, where the same cost covers that.

    Examples:
        >>> Outcome(7)
        Outcome(<private>)
    """

    score: int | None
    index: int = 0
    below: bool = False
    diagnostics: Mapping[str, int] = field(default_factory=dict)
    relative: int | None = None

    def __repr__(self) -> str:
        return "Outcome(<private>)"

    @classmethod
    def each(cls, places: Iterable[tuple[int, int]]) -> list[Outcome]:
        """Return the candidates at these scores and indexes.

        Sooner than one by one: what sets the attributes of a frozen class is slow.

        Examples:
            >>> Outcome.each([(7, 2)]) == [Outcome(7, 2)]
            True
        """
        usual = vars(cls(None))
        outcomes = []
        for score, index in places:
            outcome = object.__new__(cls)
            vars(outcome).update(usual, score=score, index=index)
            outcomes.append(outcome)
        return outcomes


@dataclass(frozen=True, repr=False)
class Law:
    """The exact distribution of an outcome. It is a function of the private data: never release it.

    An audit of a claim without delta needs to know more of small probabilities than their absolute
    error: that is what `relative` and `true_zeros` are for.

    Attributes:
        blocks: For each block of equal candidates: score, number (None: infinitely many, all
            unlisted), probability that one of the block is drawn.
        none: Probability that nothing is released.
        error: Every probability here is within this of the truth.
        floor: Score at and below which candidates are one block, or None where there is no such
            block.
        relative: Every probability is also within this part of itself; infinite: `error` is all
            that is known.
        true_zeros: Whether a probability of 0 means that the outcome is impossible, or too rare for
            a float; False where one may also come from rounding, as in 1 − 0.99999999999999999.

    Examples:
        >>> law = Law(blocks=((9, 2, 0.5), (0, 4, 0.25)), none=0.25, error=0.0)
        >>> law.best(), law.of(9), law.of(5)
        (0.5, 0.25, 0.0)
    """

    blocks: tuple[tuple[int, int | None, float], ...]
    none: float
    error: float
    floor: int | None = None
    relative: float = math.inf
    true_zeros: bool = True

    def __repr__(self) -> str:
        return "Law(<private>)"

    def _repr_html_(self) -> str:
        """As little as `repr` shows, for notebooks."""
        return facts(
            "Law",
            {"probabilities": "private, not shown"},
            "It is a function of the scores: .best(), .of(score) and .blocks have the numbers.",
        )

    def best(self) -> float:
        """Return the probability that a candidate of the highest score is drawn."""
        return self.blocks[0][2]

    def of(self, score: int) -> float:
        """Return the probability of one given candidate with this score."""
        for level, count, chance in self.blocks:
            if count and (score == level or (level == self.floor and score <= level)):
                return chance * (1 / count)
        return 0.0

    def scale(self, factor: float) -> Law:
        """Return the same law with every probability multiplied.

        Examples:
            >>> Law(blocks=((9, 2, 0.5),), none=0.5, error=0.0).scale(0.5).none
            0.25
        """
        blocks = tuple((score, count, chance * factor) for score, count, chance in self.blocks)
        return replace(self, blocks=blocks, none=self.none * factor, error=self.error * factor)


Joint = Mapping[Hashable, Law]
"""For each value of what is released beside the item: the law of the item together with that value
(it adds up to the value's own probability)."""


class PartialJoint(dict[Hashable, Law]):
    """A joint law without the rarest values.

    Args:
        laws: The law of each value that is listed.
        left_out: Those not listed have this probability at most, in all.
    """

    def __init__(self, laws: Mapping[Hashable, Law], left_out: float) -> None:
        super().__init__(laws)
        self.left_out = left_out


LARGEST_EPSILON = 10**9
"""The largest cost of a draw. One of 20 protects no one; far beyond this one no float holds the
weights."""


@dataclass(frozen=True, repr=False)
class JointLaw:
    """The exact law of several items at once, on small profiles.

    It is a function of the private data: never release it.

    Attributes:
        blocks: Score and number of each block, best first; a number of None is infinite, and
            no candidate of such a block is ever released.
        floor: Score at and below which candidates are one block, or None.
        chances: Probability of each outcome, by blocks; one not listed is impossible.
        error: Every probability here is within this of the truth.
        relative: And within this part of itself; infinite: `error` is all that is known.

    Examples:
        >>> JointLaw(((9, 1),), None, {(1,): 1.0}, error=0.0)
        JointLaw(<private>)
    """

    blocks: tuple[tuple[int, int | None], ...]
    floor: int | None
    chances: Mapping[tuple[int, ...], float]
    error: float
    relative: float = math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<private>)"

    def scale(self, factor: float) -> Self:
        """Return the same law with every probability multiplied.

        Examples:
            >>> JointLaw(((9, 1),), None, {(1,): 1.0}, error=0.0).scale(0.5).chances
            {(1,): 0.5}
        """
        chances = {key: chance * factor for key, chance in self.chances.items()}
        return replace(self, chances=chances, error=self.error * factor)


def check_epsilon(epsilon: Fraction | None) -> None:
    """Refuse an epsilon at which exact laws would take forever; None: there is none.

    Examples:
        >>> check_epsilon(Fraction(1))
        >>> check_epsilon(Fraction(10**10))
        Traceback (most recent call last):
            ...
        privmax.errors.ParameterError: epsilon='10000000000' is not allowed: it must not ...
    """
    if epsilon is not None and epsilon > LARGEST_EPSILON:
        raise ParameterError(
            "epsilon",
            plain(epsilon) if epsilon < 10**LONGEST else as_given(epsilon),
            f"it must not exceed {LARGEST_EPSILON}",
            "Common values are between 0.1 and 3.",
        )


class Mechanism(Parameters, ABC):
    """A way to choose one candidate, or the best `k`.

    A mechanism is made from public parameters and sees a `Profile`, never a label. It answers four
    questions: what it releases (`draw`), with what distribution (`law`, `joint`), at what cost
    (`privacy`), and how clear a winner must be (`lead`).

    Examples:
        >>> from privmax import PermuteAndFlip, SharpMargin
        >>> flip = PermuteAndFlip(epsilon=1)
        >>> flip.k, flip.growth, flip.bounded_range
        (1, None, False)
        >>> SharpMargin(epsilon=1, delta=1e-6, k=10, growth=3).growth
        3
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(vars(self).get("epsilon"))

    @property
    @abstractmethod
    def neighbors(self) -> Neighbors:
        """The relation its cost is stated for."""

    @property
    def k(self) -> int:
        """The most items it releases. More than one: it is a `Ranker`, or a `SetMechanism`."""
        return 1

    @property
    def ranked(self) -> bool:
        """Whether the order of its items is released; False: it is a `SetMechanism`."""
        return True

    @property
    def growth(self) -> int | None:
        """The bound on how many candidates one record touches that it relies on; None: none."""
        return None

    @property
    def bounded_range(self) -> bool:
        """Whether the privacy loss of its release always lies in an interval of length epsilon.

        Such releases compose more cheaply than others at the same cost.
        """
        return False

    @abstractmethod
    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        """Choose the item to release.

        Args:
            profile: The private scores.
            coins: Where random bits come from.

        Raises:
            ParameterError: It needs a closed universe, or was made for more than one item.
        """

    @abstractmethod
    def law(self, profile: Profile) -> Law:
        """Return the distribution of `draw`; with k > 1 that of the first item.

        It is for tests, plots and planning on public data, and is never released.
        """

    def joint(self, profile: Profile) -> Joint:
        """Return the law of the item together with whatever is released beside it.

        For small profiles; never released.
        """
        require_single(self.k)
        return {None: self.law(profile)}

    @abstractmethod
    def privacy(self) -> Privacy:
        """Return the privacy cost of the whole release."""

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        """Return by how many records the best must lead all others to be released.

        Args:
            candidates: The size of the universe; None: open.
            near: How many candidates share the top, `k` or more; by default `k`.
            success: With what probability all `k` items released are to be among them.

        Raises:
            ParameterError: No lead is enough.
        """
        return search_lead(
            self._chance_best, candidates=candidates, near=near, success=success, k=self.k
        )

    def _chance_best(self, profile: Profile) -> float:
        """Probability that all k items are drawn from the best level."""
        return self.law(profile).best()


def require_single(k: int) -> None:
    """Refuse to draw a single item from a mechanism made for more.

    Examples:
        >>> require_single(1)
        >>> require_single(2)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: k=2 is not allowed: draw and joint answer for one item. ...
    """
    if k > 1:
        raise ParameterError(
            "k",
            k,
            "draw and joint answer for one item",
            "Use ranking and sequences, or subset and sets.",
        )


def require_fit(k: int, profile: Profile) -> int:
    """Return k, if the universe has as many candidates.

    Examples:
        >>> require_fit(3, Profile([(9, 1)]))
        3
    """
    if profile.universe is not None and k > profile.universe:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Ask for fewer."
        )
    return k


def closed_size(profile: Profile) -> int:
    """Return the size of a closed universe.

    Raises:
        ParameterError: It is open, and a pure mechanism must be able to draw every candidate.

    Examples:
        >>> closed_size(Profile([(9, 1)], universe=5))
        5
    """
    if profile.universe is None:
        raise ParameterError(
            "universe", "open", "a mechanism with delta = 0 must be able to draw every candidate",
            "Declare the universe's size or labels, or choose a mechanism with delta above 0 "
            "(NestedMargin).",
        )  # fmt: skip
    return profile.universe


def draw_candidate(
    window: Window, block: int, coins: Coins, diagnostics: Mapping[str, int] | None = None
) -> Outcome:
    """Draw a uniform candidate of a block.

    Args:
        window: The clipped profile.
        block: Which of `window.blocks()`. The floor of an open universe is no candidate: nothing
            is released.
        coins: Where random bits come from.
        diagnostics: What is released beside it.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> draw_candidate(Profile([(9, 1)]).window(5), 0, SYSTEM).score
        9
    """
    diagnostics = diagnostics or {}
    depth, count = window.blocks()[block]
    if count is None:
        return Outcome(None, diagnostics=diagnostics)
    below = block == len(window.depths)
    return Outcome(window.top - depth, uniform_below(count, coins), below, diagnostics)


def law_of(
    window: Window,
    chances: Sequence[float],
    none: float = 0.0,
    error: float = ROUNDING,
    *,
    relative: float = math.inf,
    true_zeros: bool = True,
) -> Law:
    """Make a law from the probability of each block.

    Args:
        window: The clipped profile.
        chances: The probability of each of `window.blocks()`. That of an infinite block goes to
            nothing: its candidates are unlisted.
        none: The probability of nothing, beside that.
        error: As in `Law`.
        relative: As in `Law`.
        true_zeros: As in `Law`.

    Examples:
        >>> law_of(Profile([(9, 1)]).window(5), [0.75, 0.25]).none
        0.25
    """
    blocks = []
    for (depth, count), chance in zip(window.blocks(), chances, strict=True):
        if count is None:
            none += float(chance)
        blocks.append((window.top - depth, count, 0.0 if count is None else float(chance)))
    floor = window.top - window.floor if window.rest else None
    return Law(tuple(blocks), none, error, floor, relative, true_zeros)


def search_lead(
    chance: Callable[[Profile], float],
    *,
    candidates: int | None,
    near: int | None,
    success: Number,
    k: int = 1,
    guess: int = 0,
) -> int:
    """Find the smallest lead, in records, at which k items are all among the `near` best.

    All other candidates stand lower by exactly the lead. Where there are no others the lead is 0.
    The probability grows with the lead, so ever longer steps and bisection find it, wherever they
    begin.

    Args:
        chance: The probability that all k come from a profile's best level.
        candidates: The size of the universe; None: open.
        near: How many share the top; None: k.
        success: The probability to reach.
        k: How many items are released.
        guess: Where to begin. It changes how many probabilities are computed, and not the result.

    Raises:
        ParameterError: No lead is enough.

    Examples:
        >>> search_lead(lambda profile: 1.0, candidates=None, near=1, success="0.95")
        1
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

    step = 1
    if enough(guess):
        low, high = -1, guess
        while high > 0:
            before = max(0, high - step)
            if not enough(before):
                low = before
                break
            high, step = before, 2 * step
    else:
        low, high = guess, guess + step
        while not enough(high):
            if high > 1 << 128:
                raise ParameterError(
                    "success", success, "no lead reaches it for that many near maximizers",
                    "Lower success, or use guards that reach further.",
                )  # fmt: skip
            step *= 2
            low, high = high, high + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
