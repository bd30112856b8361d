"""Statistical tests of a claim.

They run a mechanism on two neighboring data sets and look at what comes out.

No law is used, ours or anyone's. Rounds alternate two acts. *Explore*: from all samples so far,
choose the pair of data sets, the direction and the events that promise most. *Test*: draw new
samples of that pair, count the events in them, and bound both probabilities by Clopper and Pearson.
The new samples had no part in the choice, so the bounds hold with the stated confidence, shared
among rounds, testers and bounds as α / (r(r+1)) / testers / 2. A violation that is reported is one
with that confidence; finding none proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from privmax.errors import ParameterError
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, exact, whole
from privmax.testers.bounds import largest_chance, least_chance
from privmax.testers.claims import Claim
from privmax.testers.events import choose_events, plain_outcome

Run = Callable[[Any, int], Any]
"""From a data set and a seed to an outcome. A function with randomness of its own ignores the
seed."""

Pair = tuple[Any, Any]
"""Two neighboring data sets."""

FIRST = 250
"""Samples of each data set in the first round; every round draws twice as many as the one before.
"""

_RECENT = 20_000
"""Samples of each data set that are looked at to choose an event: the newest."""

_PAIRS_KEPT = 4
"""Pairs that are explored further after the first round: those that promise most."""

_SETTLED = 3
"""After so many rounds, each round halves the pairs that are kept."""


@dataclass(frozen=True)
class Finding:
    """The result of a test.

    Attributes:
        claim: What was tested.
        confidence: With which a reported violation is one.
        samples: Outcomes that were drawn, of all data sets together.
        least: A lower bound on the ε, or ρ, that the mechanism needs at the claimed δ; 0 if there
            is none.
        excess: A lower bound on the δ that it needs beyond the claimed one at the claimed ε; with
            ρ, on the ρ beyond the claimed one. Above 0: the claim is broken.
        pair: The data sets that were told apart best, in the worse direction.
        tester: Which tester found it, or came nearest.
        event: What was counted.
        chances: Bounds: the probability of the event is at least the first on one data set, and at
            most the second on the other.
    """

    claim: Claim
    confidence: float
    samples: int
    least: float
    excess: float
    pair: Pair | None
    tester: str
    event: str
    chances: tuple[float, float]

    @property
    def broken(self) -> bool:
        """Whether the claim is broken, with the stated confidence."""
        return self.excess > 0


def check_privacy(
    run: Run,
    left: Any,
    right: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    samples: int = 20_000,
    confidence: Number = "0.99",
    coins: Coins = SYSTEM,
) -> Finding:
    """Test whether a function keeps a privacy claim on two neighboring data sets.

    Args:
        run: From a data set and a seed, a whole number, to an outcome. It is called with one seed
            after another, all different in practice, and may ignore them if it has randomness of
            its own.
        left: One data set, as `run` takes it.
        right: Its neighbor.
        epsilon: The claimed ε. Give this or `rho`.
        delta: The claimed δ.
        rho: The claimed ρ of zero-concentrated differential privacy.
        samples: Runs that are made at most, of both data sets together.
        confidence: With which a violation that is reported is one.
        coins: Where seeds come from.

    Returns:
        What was found. Finding no violation proves nothing.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> check_privacy(lambda data, seed: data, 0, 1, epsilon=1).broken
        True
        >>> check_privacy(lambda data, seed: seed % 2, 0, 1, epsilon=1).broken
        False
    """
    claim = Claim.of(epsilon=epsilon, delta=delta, rho=rho)
    return search_pairs(
        run, [(left, right)], claim, samples=samples, confidence=confidence, coins=coins
    )


def search_pairs(
    run: Run,
    pairs: Sequence[Pair],
    claim: Claim,
    *,
    samples: int = 20_000,
    confidence: Number = "0.99",
    coins: Coins = SYSTEM,
) -> Finding:
    """Look for a pair of data sets on which a function breaks a claim.

    Args:
        run: As in `check_privacy`.
        pairs: Neighboring data sets. Both directions are tested.
        claim: What is claimed.
        samples: Runs that are made at most, of all data sets together.
        confidence: With which a violation that is reported is one, however many pairs there are.
        coins: Where seeds come from.

    Returns:
        The worst that was found.

    Raises:
        ParameterError: There is no pair, a number is out of bounds, or `samples` does not reach
            for one round.

    Examples:
        >>> pairs = [(0, 0), (0, 1)]
        >>> search_pairs(lambda data, seed: data, pairs, Claim.of(epsilon=1)).pair
        (0, 1)
    """
    if not pairs:
        raise ParameterError("pairs", pairs, "there must be at least one pair of data sets")
    level = exact("confidence", confidence)
    if not 0 < float(level) < 1:
        raise ParameterError("confidence", confidence, "it must be above 0 and below 1")
    return _Search(run, pairs, claim, float(level), coins).go(whole("samples", samples))


class _Search:
    """The samples of all pairs so far, and what was found in them."""

    def __init__(
        self, run: Run, pairs: Sequence[Pair], claim: Claim, confidence: float, coins: Coins
    ) -> None:
        self._run, self._coins = run, coins
        self._pairs, self._claim, self._confidence = pairs, claim, confidence
        self._seen: list[tuple[list[Hashable], list[Hashable]]] = [([], []) for _ in pairs]
        self._kept = list(range(len(pairs)))
        self._drawn = 0
        self._best: Finding | None = None

    def go(self, samples: int) -> Finding:
        least = 2 * self._shares()
        if samples < least:
            raise ParameterError(
                "samples", samples, f"it must be at least {least} for the pairs that there are"
            )
        size, turn = FIRST, 1
        while (room := (samples - self._drawn) // (2 * self._shares())) > 0:
            if room < 3 * size:  # it does not reach for another round
                size = room
            if self._shares() > 1:
                for place in self._kept:
                    self._explore(place, size)
            drawn = self._drawn
            if self._test(size, turn):
                break
            if self._drawn == drawn:  # there was no event to test: more samples may show one
                self._explore(self._kept[0], size)
            size, turn = 2 * size, turn + 1
        best = self._best
        if best is None:
            return Finding(
                self._claim, self._confidence, self._drawn, 0.0, -1.0, None, "", "", (0.0, 1.0)
            )
        return Finding(**{**vars(best), "samples": self._drawn})

    def _shares(self) -> int:
        """Return into how many parts a round is divided.

        They are the test, and the pairs that are explored. Of a single pair the earlier tests are
        enough to choose from.
        """
        single = len(self._kept) == 1 and self._seen[self._kept[0]][0]
        return 1 if single else len(self._kept) + 1

    def _explore(self, place: int, size: int) -> None:
        for data, seen in zip(self._pairs[place], self._seen[place], strict=True):
            seen.extend(self._draw(data, size))

    def _recent(self, place: int) -> tuple[list[Hashable], list[Hashable]]:
        left, right = self._seen[place]
        return left[-_RECENT:], right[-_RECENT:]

    def _draw(self, data: Any, size: int) -> list[Hashable]:
        self._drawn += size
        return [plain_outcome(self._run(data, self._coins.bits(62))) for _ in range(size)]

    def _test(self, size: int, turn: int) -> bool:
        """Test what promises most on new samples; say whether the claim is broken."""
        options = [
            (choice, place)
            for place in self._kept
            for choice in choose_events(*self._recent(place), self._claim)
        ]
        if not options:
            return False
        options.sort(key=lambda option: -option[0].promise)
        order = list(dict.fromkeys(place for _, place in options))
        fewer = len(self._kept) // 2 if turn > _SETTLED else len(self._kept)
        self._kept = order[: max(1, min(_PAIRS_KEPT, fewer))]
        (best, place), turned = options[0], options[0][0].turned
        chosen = [one for one, at in options if at == place and one.turned == best.turned]
        pair = self._pairs[place][::-1] if turned else self._pairs[place]
        here, there = (self._draw(data, size) for data in pair)
        alpha = (1 - self._confidence) / (turn * (turn + 1)) / len(chosen) / 2
        for choice in chosen:
            low = least_chance(choice.event.hits(here), size, alpha)
            high = largest_chance(choice.event.hits(there), size, alpha)
            excess, least = self._claim.excess(low, high), self._claim.least_needed(low, high)
            if self._best is None or (excess, least) > (self._best.excess, self._best.least):
                self._best = Finding(
                    self._claim,
                    self._confidence,
                    self._drawn,
                    max(least, 0.0),
                    excess,
                    (pair[0], pair[1]),
                    choice.tester,
                    choice.event.describe(),
                    (low, high),
                )
        fresh = (there, here) if turned else (here, there)
        for seen, new in zip(self._seen[place], fresh, strict=True):
            seen.extend(new)
        return self._best is not None and self._best.broken
