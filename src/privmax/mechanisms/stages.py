"""Stages of a cascade: draws of sets that follow one another after nothing, and the usual ones.

Proof:      docs/proofs/set-margin.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from privmax.errors import ParameterError
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter

TILT = Fraction(3, 4)
"""Part of epsilon that goes to the worst member of a set; the rest goes to the best outside."""

SHRINKING = Fraction(4, 5)
"""The size of the sets of each stage, over that of the stage before."""

HASTE = Fraction(3, 10)
"""Part of epsilon for the test of the best set alone, where k is small against epsilon."""

HASTE_RATE = 30
"""The most of that part, over (epsilon/k)²: the gaps that a test needs shrink as lists grow."""

LEAST_HASTE = Fraction(1, 32)
"""Below this the test would find so little that it is left out."""

TEST_PART = Fraction(1, 4)
"""Part of delta for the test."""


class Stage(Parameters, kw_only=False):
    """One draw of a cascade.

    Args:
        size: How many candidates it releases.
        width: Among how many of the best it draws; `size` itself: the best set or nothing.
        silence: The part of its epsilon that is gone when it releases nothing; 1 for the last.
        tilt: The part of its epsilon that goes to the worst member of a set.
        part: Of the mechanism's delta.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> Stage(10, 220, silence="0.05", tilt="0.75", part="0.5")
        Stage(size=10, width=220, silence=0.05, tilt=0.75, part=0.5)
    """

    size: Whole = parameter(whole)
    width: Whole = parameter(whole)
    silence: Exact = parameter(positive)
    tilt: Exact = parameter(open_probability, default=TILT)
    part: Exact = parameter(positive, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < self.size:
            raise ParameterError("width", self.width, f"it must be at least the size, {self.size}")
        for name in ("silence", "part"):
            if getattr(self, name) > 1:
                raise ParameterError(name, getattr(self, name), "it must not exceed 1")


def read_stages(name: str, value: Sequence[Stage] | None, k: int) -> tuple[Stage, ...] | None:
    """Read the parameter `stages`: sizes of at most k, and the last one ends the cascade.

    Raises:
        ParameterError: They are no cascade.

    Examples:
        >>> read_stages("stages", [Stage(2, 3, silence=1)], 2)
        (Stage(size=2, width=3, silence=1, tilt=0.75, part=1),)
    """
    if value is None:
        return None
    stages = tuple(value)
    if not stages or not all(isinstance(stage, Stage) for stage in stages):
        raise ParameterError(name, value, "they must be a Stage or more")
    if any(stage.size > k for stage in stages):
        raise ParameterError(name, value, f"no size may exceed k, which is {k}")
    if stages[-1].silence != 1 or any(stage.silence == 1 for stage in stages[:-1]):
        raise ParameterError(name, value, "the silence of the last must be 1, and of no other")
    if sum(stage.part for stage in stages) > 1:
        raise ParameterError(name, value, "their parts of delta must not add up to more than 1")
    return stages


@lru_cache(maxsize=64)
def default_stages(k: int, epsilon: Fraction) -> tuple[Stage, ...]:
    """Return the stages that are used where none are given; a function of public numbers.

    Sets of k, of four fifths of k and so on down to one, each among twice as many candidates and
    200 more. After those of k the best set alone is tested, where k is small against epsilon: that
    takes nothing from what the first draw releases, only from shorter sets.

    Examples:
        >>> [(stage.size, stage.width) for stage in default_stages(3, Fraction(1))]
        [(3, 206), (3, 3), (2, 204), (1, 202)]
        >>> [stage.size for stage in default_stages(100, Fraction(1))][:3]
        [100, 80, 64]
    """
    sizes = [k]
    while sizes[-1] > 1:
        smaller = round(k * SHRINKING ** len(sizes))
        sizes.append(max(1, min(smaller, sizes[-1] - 1)))
    haste = min(HASTE, HASTE_RATE * (epsilon / k) ** 2)
    has_test = haste >= LEAST_HASTE
    part = (1 - TEST_PART if has_test else 1) * Fraction(1, len(sizes))
    # what comes after each draw; of one item alone the last draw ends all, so the test is before it
    left = [len(sizes) - place for place in range(1, len(sizes) + 1)]
    left[0] += 1 if has_test and k > 1 else 0
    stages = [
        Stage(size, 2 * size + 200, silence=_silence(later), part=part)
        for size, later in zip(sizes, left, strict=True)
    ]
    if has_test:
        stages.insert(min(1, k - 1), Stage(k, k, silence=haste, part=TEST_PART))
    return tuple(stages)


def _silence(left: int) -> Fraction:
    """Of a stage with so many left after it: little, and more toward the end."""
    return max(Fraction(1, 20), Fraction(1, 5 * left + 1))
