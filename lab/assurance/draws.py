"""Many draws of a mechanism, and a chi-square test of them against a law.

The test compares how often each labelled answer came with how often it should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from privmax.auditing import Laws, Scores
from privmax.choice import draw_outcomes
from privmax.mechanisms.contract import Mechanism, Outcome
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.noise.coins import Coins
from privmax.profile import Profile
from privmax.testing import OutOfCoinsError, ScriptedCoins, SeededCoins

T = TypeVar("T", bound=Hashable)

DRAWS = 1_000_000

ALPHA = 0.001
"""The probability of a false alarm of all tests together; each has its equal part."""

EXPECTED = 10
"""Answers that come more rarely than this on average are one cell."""

WORD = 64
"""Coins that every draw has of its own."""


@dataclass(frozen=True)
class Case:
    """A mechanism, and scores on which several answers are likely."""

    name: str
    scores: Scores
    options: Mapping[str, Any] = field(default_factory=dict)
    universe: str = "open"

    def mechanism(self, factor: Fraction = Fraction(1)) -> Mechanism:
        """The mechanism, with an epsilon that is wrong by a factor."""
        given = dict(self.options)
        return build(self.name, epsilon=factor * Fraction(given.pop("epsilon")), **given)

    def laws(self, factor: Fraction = Fraction(1)) -> Laws:
        return Laws(self.mechanism(factor), self.universe == "open", 1)


SOME = (7, 5, 5, 3, 1, 1)
GROUP = (18, 17, 17, 3)
ONE = {"epsilon": "1", "delta": "0.05"}
HALF = {"epsilon": "0.5", "delta": "0.05"}
THREE = {"epsilon": "3", "delta": "0.05", "k": 3}
PAPER = {"epsilon": "40", "delta": "0.5", "cap": 3}
_CHOSEN = (
    Case("exponential", SOME, {"epsilon": "1"}, "closed"),
    Case("exponential", SOME, {"epsilon": "3", "k": 3}, "closed"),
    Case("permute-and-flip", SOME, {"epsilon": "1"}, "closed"),
    Case("permute-and-flip", SOME, {"epsilon": "3", "k": 3}, "closed"),
    Case("max-of-laplaces", SOME, {"epsilon": "1"}, "closed"),
    Case("joint-exponential", SOME, {"epsilon": "1", "k": 1}, "closed"),
    Case("joint-exponential", SOME, {"epsilon": "3", "k": 3}, "closed"),
    Case("large-margin", (14, 12, 2), PAPER),
    Case("large-margin-truncated", (14, 12, 2), PAPER),
    Case("sharp-margin", (14, 13, 13, 3), ONE),
    Case("sharp-margin", (10, 9, 9, 3), THREE),
    Case("nested-margin", GROUP, ONE),
    Case("set-margin", (14, 11, 11, 3), ONE),
    Case("set-margin", (9, 8, 8, 3, 1), {**ONE, "k": 3}),
    Case("limited-domain", SOME, {**ONE, "rank": 3}),
    Case("limited-domain", (14, 12, 12, 3), {**THREE, "rank": 4}),
    Case("stable-maximum", (7, 4, 1), ONE),
    Case("gap-test", (6, 2, 1), HALF),
    Case("gap-test", (9, 8, 8, 3, 1), {**HALF, "k": 3}),
    Case("choosing", (12, 11, 9, 1), {**ONE, "growth": 2}),
)
CASES = (
    *_CHOSEN,
    *(
        Case(name, SOME, entry.example_options(), "closed" if entry.needs_closed else "open")
        for name, entry in MECHANISMS.items()
        if name not in {case.name for case in _CHOSEN}
    ),
)
"""Those chosen here, and the example of every mechanism for which none was."""


# Draws


class LongerCoins:
    """The coins of a word, and then seeded ones: for the few draws that need more than a word."""

    def __init__(self, word: int, seed: str, length: int = WORD) -> None:
        self._first, self._more = ScriptedCoins(word, length), SeededCoins(seed)

    def bits(self, n: int) -> int:
        value = 0
        for _ in range(n):
            try:
                value = value << 1 | self._first.bits(1)
            except OutOfCoinsError:
                value = value << 1 | self._more.bits(1)
        return value

    def bytes(self, n: int) -> bytes:
        return self.bits(8 * n).to_bytes(n, "big")


def repeat(draw: Callable[[Coins], T], number: int, seed: str) -> tuple[Counter[T], int]:
    """Draw `number` times, each time with 64 seeded coins of its own, and more where they are
    needed.

    A draw is a function of the coins that it reads. So it is run once for all words that begin with
    the same coins, if it reads no others. What comes out is the same as if it were run for each.

    Returns:
        How often each answer came, and how many times a draw was begun.
    """
    drawn = np.frombuffer(SeededCoins(seed).bytes(WORD // 8 * number), ">u8")
    words = np.sort(drawn.astype(np.uint64))
    found: Counter[T] = Counter()
    begun = 0
    left = [(0, 0, 0, number)]
    while left:
        script, length, low, high = left.pop()
        begun += 1
        if high - low == 1:
            found[draw(LongerCoins(int(words[low]), f"{seed} more {low}"))] += 1
            continue
        try:
            found[draw(ScriptedCoins(script, length))] += high - low
        except OutOfCoinsError as short:
            length += short.missing
            if length > WORD:
                for place in range(low, high):
                    coins = LongerCoins(int(words[place]), f"{seed} more {place}")
                    found[draw(coins)] += 1
                begun += high - low
            else:
                heads = words[low:high] >> np.uint64(WORD - length)
                scripts, starts = np.unique(heads, return_index=True)
                ends = [*starts[1:], high - low]
                left += [
                    (int(head), length, low + int(start), low + int(end))
                    for head, start, end in zip(scripts, starts, ends, strict=True)
                ]
    return found, begun


def draw_places(mechanism: Mechanism, profile: Profile, scores: Scores, coins: Coins) -> Hashable:
    """One draw as the audit's laws write it down: what is released beside, and which places."""
    outcomes = draw_outcomes(mechanism, profile, coins)
    beside = tuple(outcomes[0].diagnostics.values()) if outcomes else ()
    free = beside if len(beside) > 1 else beside[0] if beside else None
    places = [place for place in (_place(one, scores) for one in outcomes) if place is not None]
    if mechanism.k > 1:
        return free, tuple(places) if mechanism.ranked else frozenset(places)
    return free, places[0] if places else None


def _place(outcome: Outcome, scores: Scores) -> int | None:
    """Which candidate was drawn."""
    if outcome.score is None:
        return None
    at = [
        place
        for place, score in enumerate(scores)
        if score == outcome.score or (outcome.below and score < outcome.score)
    ]
    return at[outcome.index]


# The test


def chances(case: Case, factor: Fraction = Fraction(1)) -> dict[Hashable, float]:
    """The law of a case, with an epsilon that is wrong by a factor."""
    return {key: chance.value for key, chance in case.laws(factor).of(case.scores).chances.items()}


def p_value(found: Counter[T], law: Mapping[T, float]) -> float:
    """Of the chi-square test. An answer that the law calls impossible has none."""
    from scipy.stats import chi2

    number = found.total()
    if any(not law.get(answer) for answer in found):
        return 0.0
    cells = [(found[answer], chance * number) for answer, chance in law.items()]
    common = [cell for cell in cells if cell[1] >= EXPECTED]
    seen, expected = (sum(column) for column in zip(*common, strict=True))
    rest = (number - seen, max(0.0, number - expected))
    table = [*common, rest] if rest[1] >= 1e-6 * number else common
    statistic = sum((many - mean) ** 2 / mean for many, mean in table)
    return float(chi2.sf(statistic, len(table) - 1))
