"""Association rules from released itemsets: how often baskets with A also have b.

The lift says how much more often than other baskets.

The itemsets are public when rules are made of them. A rule A → b needs four supports: of A with b,
of A, of b, and of the empty set, which everyone has. All that the released itemsets need are
measured once, with noise for as many numbers as they are, and everything else is computed from
those: confidence, lift, and intervals that the noise leaves.

All four count individuals by all that each of them has. If individuals have several baskets, a pair
counts where both items are in any of them: pairs within a basket over single items in all baskets
would be below 1 for items that go together.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from privmax.counts import CONFIDENCE, Noise, choose_noise, read_noise
from privmax.noise.coins import Coins
from privmax.privacy import Privacy

Itemset = tuple[Any, ...]

MANY = 64
"""Numbers beyond which it does not matter how many they are, to find out whether noise is to need a
delta.
"""


@dataclass(frozen=True)
class Interval:
    """An estimate, and ends between which the true number lies in 95 of 100 cases.

    Examples:
        >>> print(Interval(0.5, 0.25, 0.8))
        0.5 (0.25 to 0.8)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.value)} ({_short(self.low)} to {_short(self.high)})"


@dataclass(frozen=True)
class Rule:
    """A rule: rows with the antecedent have the consequent.

    Args:
        antecedent: Items, in their fixed order.
        consequent: One item more.
        support: How many individuals have all of them, in one basket or in several.
        confidence: The part of those with the antecedent who have the consequent.
        lift: That part over the part of everyone with any item who has the consequent; above 1
            they go together. Empty baskets are not counted. Its upper end may be infinite.

    Examples:
        >>> interval = Interval(2.0, 1.5, 3.0)
        >>> print(Rule(("bread",), ("butter",), interval, interval, interval))
        bread → butter: confidence 2 (1.5 to 3), lift 2 (1.5 to 3)
    """

    antecedent: Itemset
    consequent: Itemset
    support: Interval
    confidence: Interval
    lift: Interval

    def __str__(self) -> str:
        sides = (" + ".join(map(str, side)) for side in (self.antecedent, self.consequent))
        return f"{' → '.join(sides)}: confidence {self.confidence}, lift {self.lift}"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name; an end that is infinite is None."""
        numbers = {name: asdict(getattr(self, name)) for name in ("support", "confidence", "lift")}
        for interval in numbers.values():
            interval["high"] = None if interval["high"] == math.inf else interval["high"]
        sides = {"antecedent": list(self.antecedent), "consequent": list(self.consequent)}
        return {**sides, **numbers}


@dataclass(frozen=True)
class RuleCounts:
    """Noisy supports of all sets that rules need. Charged, so all of it may be published.

    Args:
        sets: The empty one stands for everyone who has an item.
        counts: Of each, as drawn: it may be below 0.
        noise: On each of them.
    """

    sets: tuple[Itemset, ...]
    counts: tuple[int, ...]
    noise: Noise

    def rules(self, itemsets: Sequence[Itemset]) -> tuple[Rule, ...]:
        """The rules of these itemsets, the surest first: by the lower end of their confidence.

        Examples:
            >>> from privmax.counts import DiscreteLaplace
            >>> sets = needed_sets([("a", "b")])
            >>> exact = RuleCounts(sets, (100, 40, 80, 50), DiscreteLaplace(scale="0.001"))
            >>> for rule in exact.rules([("a", "b")]):
            ...     print(rule)
            a → b: confidence 0.8 (0.8 to 0.8), lift 1 (1 to 1)
            b → a: confidence 0.5 (0.5 to 0.5), lift 1 (1 to 1)
        """
        noisy = dict(zip(self.sets, self.counts, strict=True))
        rules = [self._rule(noisy, *sides) for one in itemsets for sides in split_sides(one)]
        return tuple(sorted(rules, key=lambda rule: -rule.confidence.low))

    def _rule(
        self, noisy: Mapping[Itemset, int], whole: Itemset, rest: Itemset, item: Itemset
    ) -> Rule:
        counts = [noisy[one] for one in (whole, rest, item, ())]
        both, left, right, everybody = counts
        return Rule(
            rest,
            item,
            Interval(max(both, 0), *self._between(both, 1)),
            find_confidence(counts[:2], [self._between(one, 2) for one in (both, left)]),
            find_lift(counts, [self._between(one, 4) for one in (both, left, right, everybody)]),
        )

    def _between(self, count: int, numbers: int) -> tuple[float, float]:
        """Return an interval for a support; in 95 of 100 cases all of so many are in theirs."""
        error = self.noise.error(1 - (1 - CONFIDENCE) / numbers)
        return max(count - error, 0), max(count + error, 0)

    def to_json(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        """As a ledger keeps it; `write` writes an itemset."""
        sets = [write(one) for one in self.sets]
        return {"sets": sets, "counts": list(self.counts), "noise": self.noise.to_dict()}

    @classmethod
    def from_json(cls, written: Mapping[str, Any], read: Callable[[Any], Any]) -> RuleCounts:
        """Return what `to_json` wrote."""
        sets = tuple(read(one) for one in written["sets"])
        return cls(sets, tuple(written["counts"]), read_noise(written["noise"]))


def split_sides(itemset: Itemset) -> Iterator[tuple[Itemset, Itemset, Itemset]]:
    """Yield the sides of the rules of an itemset of two or more.

    They are the itemset, all but one of its items, and that one, for each of them.

    Examples:
        >>> [(rest, item) for _, rest, item in split_sides(("a", "b"))]
        [(('b',), ('a',)), (('a',), ('b',))]
    """
    if len(itemset) > 1:
        for place, item in enumerate(itemset):
            yield itemset, itemset[:place] + itemset[place + 1 :], (item,)


def needed_sets(itemsets: Sequence[Itemset]) -> tuple[Itemset, ...]:
    """Return all sets whose supports the rules of these itemsets need, each once.

    There are none without a rule.

    Examples:
        >>> needed_sets([("a",), ("a", "b")])
        ((), ('a', 'b'), ('b',), ('a',))
    """
    parts = [part for one in itemsets for sides in split_sides(one) for part in sides]
    return tuple(dict.fromkeys([(), *parts])) if parts else ()


def count_held(sets: Sequence[Itemset], longest: int | None) -> int | None:
    """Return how many of these sets one basket of at most `longest` items holds at most.

    Examples:
        >>> count_held([(), ("a", "b"), ("a",), ("b",), ("c",)], longest=2)
        4
    """
    if longest is None:
        return None
    return sum(
        min(number, math.comb(longest, size)) for size, number in Counter(map(len, sets)).items()
    )


def price_rules(cost: Privacy, *, k: int, largest: int, neighbors: str) -> Privacy:
    """Return what the rules of k itemsets cost, before it is known which.

    Delta is spent only where it helps.

    Examples:
        >>> price_rules(Privacy("0.5", 1e-6), k=1, largest=2, neighbors="add-remove")
        Privacy(epsilon=0.5, delta=0)
        >>> price_rules(Privacy("0.5", 1e-6), k=10, largest=2, neighbors="add-remove")
        Privacy(epsilon=0.5, delta=1e-06)
    """
    for_each = 3 if largest == 2 else 1 + 2 * min(largest, MANY)
    numbers = min(1 + k * for_each, MANY)
    return choose_noise(cost, k=numbers, neighbors=neighbors).privacy


def measure_rules(
    sets: Sequence[Itemset],
    holders: Callable[[Sequence[Itemset]], Sequence[int]],
    cost: Privacy,
    coins: Coins,
    *,
    neighbors: str,
    longest: int | None = None,
) -> RuleCounts | None:
    """Measure the supports of these sets at a cost, which covers all of them.

    Args:
        sets: As `needed_sets` gives them.
        holders: How many individuals have all items of each set; private.
        cost: What may be spent.
        coins: Where random bits come from.
        neighbors: "add-remove" or "replace".
        longest: No basket has more different items, as a public rule.

    Returns:
        None where there are no sets.
    """
    if not sets:
        return None
    noise, _ = choose_noise(
        cost, k=len(sets), growth=count_held(sets, longest), neighbors=neighbors
    )
    counts = tuple(map(int, noise.add_all(holders(sets), coins)))
    return RuleCounts(tuple(sets), counts, noise)


Bounds = Sequence[tuple[float, float]]
"""Lower and upper ends of several supports."""


def find_confidence(counts: Sequence[int], bounds: Bounds) -> Interval:
    """Return the part of those with the antecedent who have the whole.

    Args:
        counts: Noisy supports of the whole and of the antecedent.
        bounds: Ends between which both supports lie.

    Examples:
        >>> find_confidence([40, 80], [(30, 50), (75, 100)])
        Interval(value=0.5, low=0.3, high=0.6666666666666666)
    """
    (low, high), (least, most) = bounds
    high, least = min(high, most), max(least, low)  # who has the whole has the antecedent
    return _interval(
        counts[0] / max(counts[1], 1),
        min(_ratio(low, most, 0.0), 1.0),
        min(_ratio(high, least, 1.0), 1.0),
    )


def find_lift(counts: Sequence[int], bounds: Bounds) -> Interval:
    """Return the confidence over the part of everyone who has the consequent.

    Args:
        counts: Noisy supports of the whole, the antecedent, the consequent, and of everyone.
        bounds: Ends between which these four lie.

    Examples:
        >>> find_lift([40, 80, 50, 100], [(40, 40), (80, 80), (50, 50), (100, 100)])
        Interval(value=1.0, low=1.0, high=1.0)
    """
    (low, high), (left, most_left), (right, most_right), (fewest, everybody) = bounds
    high = min(high, most_left, most_right)
    left, right = max(left, low), max(right, low)
    fewest = max(fewest, left, right)
    return _interval(
        counts[0] * counts[3] / max(counts[1] * counts[2], 1),
        _ratio(low * fewest, most_left * most_right, 0.0),
        min(
            _ratio(high * everybody, left * right, math.inf),
            _ratio(everybody, left, math.inf),  # the whole has at most the consequent's support,
            _ratio(everybody, right, math.inf),  # and at most the antecedent's
        ),
    )


def _ratio(part: float, whole: float, unknown: float) -> float:
    return part / whole if whole > 0 else unknown


def _interval(value: float, low: float, high: float) -> Interval:
    """Ends that noise has put the wrong way round, which is rare, meet at the upper one."""
    low = min(low, high)
    return Interval(min(max(value, low), high), low, high)


def _short(number: float) -> str:
    """Three figures, and no exponent."""
    if number == math.inf:
        return "∞"
    return f"{number:,.0f}" if number >= 100 else f"{float(f'{number:.3g}'):g}"
