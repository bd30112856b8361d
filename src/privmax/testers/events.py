"""Chooses the event to test.

Outcomes are grouped, and the groups that tell two data sets apart are found.

An outcome may be anything: a label, a number, a list of answers some of which are numbers. It is
looked at in several ways (`views`), each of which turns it into a key; an event is a set of keys of
one view. All of this is chosen from samples that are not used to test the event, so no choice made
here can make a test wrong. It can only make it weaker.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

from privmax.errors import ParameterError
from privmax.testers.claims import Claim

View = Callable[[Any], Hashable]
"""From an outcome to its group."""

FINE, COARSE = 32, 4
"""Bins of a number that is an outcome by itself, and of one that is a part of an outcome."""

MANY = 64
"""Whole numbers with more values than this are put into bins, too."""

NOT_A_NUMBER = "NaN"
"""The outcome NaN, which does not equal itself."""

_FEWEST = 2
"""Hits below which an event is not worth a test."""

_LONGEST = 200
"""Groups that are looked at: those that speak most for one data set."""


def plain_outcome(outcome: Any) -> Hashable:
    """Write an outcome in hashable parts: arrays and lists as tuples, mappings as pairs.

    Raises:
        ParameterError: Two outcomes of its type are equal only if they are the same object, or it
            is nested too deeply. The address of an object is not an outcome.

    Examples:
        >>> plain_outcome({"b": [1, 2.5], "a": {3}})
        (('a', (3,)), ('b', (1, 2.5)))
    """
    try:
        return _plain(outcome)
    except RecursionError:
        raise ParameterError(
            "outcome", type(outcome).__name__, "it is nested too deeply", "Return parts of it."
        ) from None


def _plain(outcome: Any) -> Hashable:
    if hasattr(outcome, "tolist"):  # NumPy's arrays and numbers
        outcome = outcome.tolist()
    if isinstance(outcome, Mapping):
        pairs = [(_plain(key), _plain(value)) for key, value in outcome.items()]
        return tuple(sorted(pairs, key=repr))
    if isinstance(outcome, set | frozenset):
        return tuple(sorted((_plain(part) for part in outcome), key=repr))
    if isinstance(outcome, list | tuple):
        return tuple(_plain(part) for part in outcome)
    if isinstance(outcome, float) and outcome != outcome:
        return NOT_A_NUMBER
    if outcome is None or isinstance(outcome, str | bytes | bool | int | float):
        return outcome
    if not _has_value(outcome):
        raise ParameterError(
            "outcome",
            type(outcome).__name__,
            "two outcomes of this type cannot be compared",
            "Return numbers, texts, or lists and dicts of them.",
        )
    return outcome  # type: ignore[no-any-return]


def _has_value(outcome: Any) -> bool:
    """Return whether another outcome of its type may equal it."""
    kind: Any = type(outcome)
    try:
        hash(outcome)
    except TypeError:
        return False
    return kind.__hash__ is not object.__hash__


@dataclass(frozen=True)
class TestedEvent:
    """Outcomes that a view puts into one of these groups.

    Attributes:
        view: How outcomes are looked at.
        name: What that is called.
        keys: The groups.

    Examples:
        >>> TestedEvent(len, "length", frozenset({1})).hits(["a", "bc", "d"])
        2
    """

    view: View
    name: str
    keys: frozenset[Hashable]

    def hits(self, outcomes: Iterable[Any]) -> int:
        """Count the outcomes that are in the event."""
        return sum(self.view(outcome) in self.keys for outcome in outcomes)

    def describe(self) -> str:
        """Say which outcomes it holds, in at most a line."""
        shown = sorted((_words(key) for key in self.keys), key=lambda text: (len(text), text))
        more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
        return f"{self.name}: {', '.join(shown[:3])}{more}"


@dataclass(frozen=True)
class ChosenEvent:
    """An event that was chosen for a test.

    Attributes:
        promise: How many standard errors it seems to be beyond the claim.
        tester: Which tester chose it.
        turned: Whether it is likelier on the second data set.
        event: The event.
    """

    promise: float
    tester: str
    turned: bool
    event: TestedEvent


def views(left: Sequence[Hashable], right: Sequence[Hashable]) -> dict[str, View]:
    """Return all ways to look at outcomes like these.

    Args:
        left: Samples of one data set.
        right: Samples of the other.

    Examples:
        >>> list(views(["a"], ["b"]))
        ['outcome']
        >>> list(views([(True, False)], [(False, False)]))
        ['outcome', 'how many of each', 'odds of its parts']
    """
    outcomes = [*left, *right]
    numbers = [value for value in outcomes if _is_number(value)]
    ways: dict[str, View] = {}
    if _wants_bins(numbers):
        for bins in (FINE, COARSE):
            ways[f"number in {bins} bins"] = _Bins(numbers, bins)
    if not any(_has_float(value) for value in outcomes):
        ways["outcome"] = lambda value: value
    elif any(isinstance(value, tuple) for value in outcomes):
        for bins in (COARSE, FINE):
            ways[f"outcome, its numbers in {bins} bins"] = _Binned(outcomes, bins)
        ways["outcome without its numbers"] = _shape
        ways["length and numbers"] = _Digest(outcomes)
    if any(isinstance(value, tuple) and value for value in outcomes):
        ways["how many of each"] = _tally
        ways["odds of its parts"] = _Odds(left, right)
    return ways


def choose_events(
    left: Sequence[Hashable], right: Sequence[Hashable], claim: Claim
) -> list[ChosenEvent]:
    """Find the events that promise most against a claim, from samples of two data sets.

    Groups are put in order by one half of the samples, and where to stop is decided by all of them.

    Returns:
        For each tester and each direction, if it has any event, the one that promises most; the
        best first.

    Examples:
        >>> best, *_ = choose_events("aaab" * 50, "bbba" * 50, Claim.of(epsilon=0))
        >>> best.tester, best.turned, best.event.describe()
        ('hockey-stick', False, 'outcome: a')
    """
    best: dict[tuple[str, bool], ChosenEvent] = {}
    for name, view in views(left[::2], right[::2]).items():
        keys = [view(value) for value in left], [view(value) for value in right]
        early = [Counter(part[::2]) for part in keys]
        whole = [Counter(part) for part in keys]
        order = sorted(
            early[0].keys() | early[1].keys(),
            key=lambda key: -math.log((early[0][key] + 0.5) / (early[1][key] + 0.5)),
        )
        for turned in (False, True):
            sides = whole[::-1] if turned else whole
            trials = (len(right), len(left)) if turned else (len(left), len(right))
            line = (order[::-1] if turned else order)[:_LONGEST]
            each = [(sides[0][key], sides[1][key]) for key in line]
            sums = list(accumulate(each, lambda done, more: (done[0] + more[0], done[1] + more[1])))
            for tester, counts in (("hockey-stick", sums), ("density-ratio", each)):
                for place, hits in enumerate(counts):
                    promise = _promise(hits, trials, claim)
                    before = best.get((tester, turned))
                    if hits[0] >= _FEWEST and (before is None or promise > before.promise):
                        chosen = line[: place + 1] if counts is sums else [line[place]]
                        event = TestedEvent(view, name, frozenset(chosen))
                        best[tester, turned] = ChosenEvent(promise, tester, turned, event)
    return sorted(best.values(), key=lambda choice: -choice.promise)


def _promise(hits: Sequence[int], trials: Sequence[int], claim: Claim) -> float:
    """Return how many standard errors the event seems to be beyond the claim."""
    p, q = ((hit + 0.5) / (trial + 1) for hit, trial in zip(hits, trials, strict=True))
    errors = [
        math.sqrt(chance * (1 - chance) / trial)
        for chance, trial in zip((p, q), trials, strict=True)
    ]
    if claim.epsilon is not None:
        spread = math.hypot(errors[0], math.exp(claim.epsilon) * errors[1])
        return claim.excess(p, q) / spread
    # What ρ needs is not linear: by how much it may be off is seen from one step of both.
    careful = claim.excess(max(p - errors[0], 1e-12), min(q + errors[1], 1.0))
    spread = max(claim.excess(p, q) - careful, 1e-12)
    return claim.excess(p, q) / spread


def _is_number(value: Hashable) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _has_float(value: Hashable) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _wants_bins(numbers: Sequence[Any]) -> bool:
    return any(isinstance(value, float) for value in numbers) or len(set(numbers)) > MANY


def _quantiles(numbers: Iterable[Any], bins: int) -> list[Any]:
    ordered = sorted(numbers)
    if not ordered:
        return []
    return sorted({ordered[len(ordered) * cut // bins] for cut in range(1, bins)})


class _Bins:
    """Numbers by the interval between two quantiles; whatever else comes, as it is."""

    def __init__(self, numbers: Sequence[Any], bins: int) -> None:
        self._cuts = _quantiles(numbers, bins)

    def __call__(self, value: Any) -> Hashable:
        return _interval(value, self._cuts) if _is_number(value) else value


@dataclass(frozen=True)
class _Interval:
    low: float
    high: float


def _interval(value: Any, cuts: Sequence[Any]) -> _Interval:
    place = bisect_right(cuts, value)
    return _Interval(
        cuts[place - 1] if place else -math.inf, cuts[place] if place < len(cuts) else math.inf
    )


class _Binned:
    """Outcomes with the numbers at every place put into bins."""

    def __init__(self, outcomes: Sequence[Hashable], bins: int) -> None:
        self._cuts = _cuts(outcomes, bins)

    def __call__(self, value: Any) -> Hashable:
        return _bin(value, self._cuts, ()) if self._cuts else value


def _cuts(outcomes: Iterable[Hashable], bins: int) -> dict[tuple[int, ...], list[Any]]:
    """Quantiles of the numbers at every place of an outcome."""
    numbers: dict[tuple[int, ...], list[Any]] = {}

    def collect(value: Hashable, path: tuple[int, ...]) -> None:
        if isinstance(value, tuple):
            for place, part in enumerate(value):
                collect(part, (*path, place))
        elif isinstance(value, float) and value == value:
            numbers.setdefault(path, []).append(value)

    for outcome in outcomes:
        collect(outcome, ())
    return {path: _quantiles(values, bins) for path, values in numbers.items()}


def _bin(
    value: Hashable, cuts: Mapping[tuple[int, ...], Sequence[Any]], path: tuple[int, ...]
) -> Hashable:
    if isinstance(value, tuple):
        return tuple(_bin(part, cuts, (*path, place)) for place, part in enumerate(value))
    if isinstance(value, float):
        return _interval(value, cuts.get(path, ()))
    return value


def _shape(value: Hashable) -> Hashable:
    if isinstance(value, tuple):
        return tuple(map(_shape, value))
    return "a number" if isinstance(value, float) else value


def _tally(value: Hashable) -> Hashable:
    """Return how many parts of each kind an outcome has, numbers aside."""
    if not isinstance(value, tuple):
        return _shape(value)
    return tuple(sorted(Counter(map(_shape, value)).items(), key=repr))


class _Digest:
    """Lists by how long they are, and by their numbers wherever they stand, in a few bins."""

    def __init__(self, outcomes: Sequence[Hashable]) -> None:
        self._cuts = _quantiles(chain.from_iterable(map(_floats, outcomes)), 2 * COARSE)

    def __call__(self, value: Any) -> Hashable:
        size = len(value) if isinstance(value, tuple) else 1
        return (size, *sorted((_interval(one, self._cuts) for one in _floats(value)), key=repr))


def _floats(value: Hashable) -> list[float]:
    if isinstance(value, tuple):
        return [one for part in value for one in _floats(part)]
    return [value] if isinstance(value, float) and value == value else []


class _Odds:
    """Lists by how much their parts, each at its place and taken by itself, speak for one data set.

    That is naive Bayes: the sum of log-odds, in bins.
    """

    def __init__(self, left: Sequence[Hashable], right: Sequence[Hashable]) -> None:
        self._bin = _Binned([*left, *right], COARSE)
        counts = [
            Counter(part for value in side for part in self._parts(value)) for side in (left, right)
        ]
        self._odds = {
            part: math.log((counts[0][part] + 1) / (counts[1][part] + 1))
            for part in counts[0].keys() | counts[1].keys()
        }
        self._bins = _quantiles(map(self._sum, [*left, *right]), FINE)

    def __call__(self, value: Any) -> Hashable:
        return _interval(self._sum(value), self._bins)

    def _sum(self, value: Hashable) -> float:
        return math.fsum(self._odds.get(part, 0.0) for part in self._parts(value))

    def _parts(self, value: Hashable) -> list[tuple[int, Hashable]]:
        binned = self._bin(value)
        return list(enumerate(binned)) if isinstance(binned, tuple) else [(0, binned)]


def _words(key: Hashable) -> str:
    if isinstance(key, _Interval):
        return f"{key.low:.4g} … {key.high:.4g}"
    if isinstance(key, tuple):
        return f"({', '.join(map(_words, key))})"
    return str(key)
