"""How good private frequent itemsets are: ours and the published methods, on public sets.

    ./dev python -m lab.benchmarks.quality.itemsets --data FOLDER [--part NAME] [--set NAME]

FOLDER (or the variable PRIVMAX_DATA) holds the sets as NAME.dat, a basket a line. Parts:

    laws      what of `missed` and `lists` is known from an exact law, and needs no repetition
    best      the most frequent pair: probability of releasing it, and support lost
    universe  the same probability as ever more items are declared that nobody has
    missed    part of the k most frequent of all sizes that is not released, at another price
    lists     F1 of the k most frequent, among pairs and among itemsets of all sizes

Laws are exact wherever a mechanism has one; the published methods are repeated with seeded coins,
as often as each row says. The sets are public, so their supports may be looked at here; what is
computed from them is no release.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.profiles import folder
from privmax import (
    DYADIC,
    Exponential,
    JointExponential,
    LargeMargin,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    Profile,
    SetMargin,
    SharpMargin,
)
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.published import BLST10, METHODS, DiffPart, Problem
from privmax.itemsets.published.records import Records
from privmax.itemsets.published.synthetic import find_frequent
from privmax.itemsets.reading.forms import read_baskets
from privmax.itemsets.source import ItemsetSource
from privmax.mechanisms.contract import Law, Mechanism
from privmax.mechanisms.peeling import Ranker
from privmax.noise.balls import ceiling_log
from privmax.profile import Level
from privmax.testing import SeededCoins

PAIRS, ANY, SMALL = range(2, 3), range(1, 1 << 20), range(1, 4)
EPSILONS: Final = ("0.1", "0.5", "1")
LENGTHS: Final = (10, 50, 100)
DIGITS = 6

FLOORS: Final = {"mushroom": "0.1", "online_retail": "0.01"}
"""Supports up to this part of the baskets count as nothing where itemsets of all sizes are asked
for; else 0.001. These two sets have too many itemsets below."""

MISSED: Final = {
    "mushroom": (100,),
    "retail": (50, 100, 200),
    "groceries": (50,),
    "T10I4D100K": (100,),
    "bms1": (100,),
}
MISSED_EPSILONS: Final = ("0.1", "0.25", "0.5", "1", "2")
MISSED_DELTA: Final = "1e-6"
LARGE: Final = ("retail", "T10I4D100K", "online_retail")
REPEATS: Final = {
    "best": (4, 2),
    "lists": (3, 2),
    "missed": (10, 3),
    "universe": (0, 0),
    "laws": (0, 0),
}
"""How often the published methods are repeated in each part, and how often on the large sets: a
quarter of an hour in all. Lists of ours are drawn OURS times."""
OURS = 10

SETS: Final = ("groceries", "mushroom", "retail", "T10I4D100K", "online_retail", "bms1")


class Known(Miner):
    """A miner that remembers what it was asked, so that a repetition costs only its own noise."""

    def __init__(self, rows: Baskets, sizes: range) -> None:
        super().__init__(rows, sizes)
        self._levels: tuple[int, list[Level]] | None = None
        self._listed: tuple[int, NDArray[np.int32], NDArray[np.int64]] | None = None

    def histogram(self, above: int) -> list[Level]:
        if self._levels is None or above < self._levels[0]:
            self._levels = above, super().histogram(above)
        return [level for level in self._levels[1] if level[0] > above]

    def above(self, support: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        if self._listed is None or support < self._listed[0]:
            self._listed = support, *super().above(support)
        number = int(np.count_nonzero(self._listed[2] > support))
        return self._listed[1][:number], self._listed[2][:number]


class Case:
    """One set of baskets, and what is known about it."""

    def __init__(self, name: str, rows: Baskets) -> None:
        self.name = name
        occurring = np.unique(rows.codes).tolist()
        self.rows = rows.within(
            [rows.labels[code] for code in occurring]
        )  # these items are what is declared
        self.individuals = self.rows.individuals
        self.delta = f"{self.individuals**-1.5:.3g}"
        self.miner = cache(lambda sizes: Known(self.rows, sizes))
        self.source = cache(self._source)

    def floor(self, sizes: range) -> int:
        """Public: supports up to it count as nothing. 0 for pairs."""
        return (
            0 if sizes == PAIRS else int(float(FLOORS.get(self.name, "0.001")) * self.individuals)
        )

    def _source(self, sizes: range, closed: bool) -> ItemsetSource:
        return ItemsetSource(
            self.rows, self.rows.labels, sizes, closed=closed, floor=self.floor(sizes)
        )

    def least(self, sizes: range, k: int) -> int:
        """The support of the k-th most frequent itemset: who reaches it belongs to the best k."""
        reached = 0
        for support, count in self.miner(sizes).histogram(self.floor(sizes)):
            reached += count
            if reached >= k:
                return support
        raise SystemExit(f"{self.name} has fewer than {k} itemsets above its floor")

    @cached_property
    def pairs_in_all(self) -> int:
        """The supports of all pairs together."""
        return sum(math.comb(length, 2) for length in Records(self.rows).lengths().tolist())

    def top(self, sizes: range, k: int) -> set[tuple[int, ...]]:
        """The itemsets that belong to the best k."""
        return _top(self, sizes, k)


@cache
def _top(case: Case, sizes: range, k: int) -> set[tuple[int, ...]]:
    itemsets, _ = case.miner(sizes).above(case.least(sizes, k) - 1)
    return {tuple(code for code in row if code >= 0) for row in itemsets.tolist()}


# Best pair


@dataclass(frozen=True)
class Single:
    """A mechanism that draws one pair. Closed: among all pairs of the items declared."""

    make: Callable[[str, str], Mechanism]
    closed: bool = False


SINGLES: Final = {
    "nested-margin": Single(lambda e, d: NestedMargin(epsilon=e, delta=d)),
    "sharp-margin": Single(lambda e, d: SharpMargin(epsilon=e, delta=d)),
    "large-margin": Single(lambda e, d: LargeMargin(epsilon=e, delta=d)),
    "limited-domain": Single(lambda e, d: LimitedDomain(epsilon=e, delta=d, rank=100)),
    "permute-and-flip": Single(lambda e, d: PermuteAndFlip(epsilon=e), closed=True),
    "exponential": Single(lambda e, d: Exponential(epsilon=e), closed=True),
    "max-of-laplaces": Single(lambda e, d: MaxOfLaplaces(epsilon=e), closed=True),
}


def lost(law: Law, below: float) -> float:
    """Expected support lost; no answer loses all. `below` is the mean support of those at the floor
    of the law.
    """
    top = law.blocks[0][0]
    drawn = sum(
        chance * (top - (below if score == law.floor else score)) for score, _, chance in law.blocks
    )
    return drawn + law.none * top


def mean_below(law: Law, in_all: int) -> float:
    """Mean support of the pairs at the floor of a law of a closed universe, `in_all` being all
    supports together.
    """
    above = sum(score * (count or 0) for score, count, _ in law.blocks if score != law.floor)
    crowd = sum(count or 0 for score, count, _ in law.blocks if score == law.floor)
    return (in_all - above) / crowd if crowd else 0.0


def blst10_law(levels: Sequence[Level], universe: int, epsilon: str) -> Law:
    """The law of the one itemset that BLST10 draws, in floats.

    Weight e^(ε·clipped support/4); supports are clipped where its depth says.
    """
    method = BLST10(epsilon=epsilon)
    top = levels[0][0] if levels else 0
    depth = ceiling_log(4 / method.epsilon, universe / method.failure)
    clip = max(top - depth, 0)
    kept = [level for level in levels if level[0] > clip]
    blocks = [*kept, (clip, universe - sum(count for _, count in kept))]
    rate = float(method.epsilon) / 4
    weights = [
        math.exp(math.log(count) - rate * (top - support)) if count else 0.0
        for support, count in blocks
    ]
    chances = [weight / sum(weights) for weight in weights]
    drawn = tuple(
        (support, count, chance) for (support, count), chance in zip(blocks, chances, strict=True)
    )
    return Law(drawn, 0.0, 1e-9, clip)


def best_rows(case: Case, repeats: int) -> Iterator[Row]:
    """The most frequent pair."""
    for epsilon in EPSILONS:
        for name, single in SINGLES.items():
            law = single.make(epsilon, case.delta).law(case.source(PAIRS, single.closed).profile)
            yield _best_row(case, epsilon, name, law)
        universe = math.comb(case.rows.items, 2)
        law = blst10_law(case.miner(PAIRS).histogram(0), universe, epsilon)
        yield _best_row(case, epsilon, "blst10", law)
        best = case.miner(PAIRS).best()
        for name in METHODS:
            if name == "blst10":
                continue
            found = drawn(case, name, epsilon, PAIRS, 1, repeats)
            supports = [case.rows.support(pairs[0]) if pairs else 0 for pairs in found]
            yield {
                "set": case.name,
                "epsilon": epsilon,
                "contender": name,
                "repeats": repeats,
                "chance": round(sum(support == best for support in supports) / repeats, DIGITS),
                "lost": round(best - statistics.fmean(supports), 1),
            }


def _best_row(case: Case, epsilon: str, name: str, law: Law) -> Row:
    loss = lost(law, mean_below(law, case.pairs_in_all))
    row = {"set": case.name, "epsilon": epsilon, "contender": name, "repeats": None}
    return row | {"chance": round(law.best(), DIGITS), "lost": round(loss, 1)}


# The best k


@dataclass(frozen=True)
class Lister:
    """A mechanism that draws k itemsets.

    closed   the sizes of the itemsets that can be drawn, of the items declared; None: any of those
             asked for, and the universe is open
    """

    make: Callable[[str, str, int], Ranker]
    closed: range | None = None


LISTERS: Final = {
    "sharp-margin": Lister(lambda e, d, k: SharpMargin(epsilon=e, delta=d, k=k)),
    "sharp-margin-dyadic": Lister(
        lambda e, d, k: SharpMargin(epsilon=e, delta=d, k=k, guards=DYADIC)
    ),
    "limited-domain": Lister(lambda e, d, k: LimitedDomain(epsilon=e, delta=d, k=k, rank=1024)),
    "limited-domain-wide": Lister(
        lambda e, d, k: LimitedDomain(epsilon=e, delta=d, k=k, rank=8192)
    ),
    "exponential": Lister(lambda e, d, k: Exponential(epsilon=e, delta=d, k=k), closed=SMALL),
    "exponential-wide": Lister(
        lambda e, d, k: Exponential(epsilon=e, delta=d, k=k), closed=range(1, 6)
    ),
    "joint-exponential": Lister(lambda e, d, k: JointExponential(epsilon=e, k=k), closed=SMALL),
}

SHOWN: Final = ("sharp-margin", "limited-domain", "exponential")
"""The mechanisms of the part `lists`."""


def ranked(
    case: Case, name: str, price: tuple[str, str], sizes: range, k: int, repeat: int
) -> tuple[int, int]:
    """How many itemsets a mechanism released, and how many of them belong to the best k."""
    lister = LISTERS[name]
    epsilon, delta = price
    asked = sizes if lister.closed is None or sizes == PAIRS else lister.closed
    profile = case.source(asked, lister.closed is not None).profile
    coins = SeededCoins(f"{case.name} {name} {epsilon} {delta} {sizes} {k} {repeat}")
    outcomes = lister.make(epsilon, delta, k).ranking(profile, coins)
    scores = [
        -1 if outcome.below else outcome.score for outcome in outcomes if outcome.score is not None
    ]
    least = case.least(sizes, k) - case.floor(sizes)
    return len(scores), sum(score >= least for score in scores)


def drawn(
    case: Case, name: str, epsilon: str, sizes: range, k: int, repeats: int
) -> list[list[tuple[int, ...]]]:
    """What a published method releases, so many times."""
    return [_drawn(case, name, epsilon, sizes, k, repeat) for repeat in range(repeats)]


@cache
def _drawn(
    case: Case, name: str, epsilon: str, sizes: range, k: int, repeat: int
) -> list[tuple[int, ...]]:
    floor = {"floor": case.individuals // 1000} if name.startswith("blst10") else {}
    method = METHODS[name](epsilon=epsilon, **floor)  # type: ignore[call-arg]  # a protocol says nothing of making one
    if isinstance(
        method, DiffPart
    ):  # its noisy copy of the rows does not depend on what is asked of it
        return [
            one.codes
            for one in find_frequent(_copies(case, epsilon, repeat), case.rows.items, sizes, k)
        ]
    coins = SeededCoins(f"{case.name} {name} {epsilon} {sizes} {k} {repeat}")
    return [one.codes for one in method.draw(Problem(case.miner, case.rows, sizes, k), coins)]


@cache
def _copies(case: Case, epsilon: str, repeat: int) -> dict[tuple[int, ...], int]:
    return DiffPart(epsilon=epsilon).copies(
        Records(case.rows), SeededCoins(f"{case.name} {epsilon} {repeat}")
    )


def f1(released: int, correct: float, k: int) -> float:
    """Twice what is right over what was wanted and what was given."""
    return 2 * correct / (k + released)


def list_rows(case: Case, repeats: int) -> Iterator[Row]:
    """The best k, among pairs and among all."""
    for sizes in (PAIRS, ANY):
        for epsilon in EPSILONS:
            for name in SHOWN:
                for k in LENGTHS:
                    price = (epsilon, case.delta)
                    counts = [ranked(case, name, price, sizes, k, repeat) for repeat in range(OURS)]
                    yield _list_row(case, sizes, epsilon, name, k, counts)
            for name in METHODS:
                if sizes == ANY and name.startswith("blst10"):
                    continue  # it is stated for itemsets of one size
                for k in LENGTHS:
                    right = case.top(sizes, k)
                    found = drawn(case, name, epsilon, sizes, k, repeats)
                    counts = [(len(one), sum(codes in right for codes in one)) for one in found]
                    yield _list_row(case, sizes, epsilon, name, k, counts)


def _list_row(
    case: Case, sizes: range, epsilon: str, name: str, k: int, counts: Sequence[tuple[int, int]]
) -> Row:
    return {
        "set": case.name,
        "sizes": "pairs" if sizes == PAIRS else "any",
        "epsilon": epsilon,
        "contender": name,
        "k": k,
        "repeats": len(counts),
        "f1": round(statistics.fmean(f1(released, correct, k) for released, correct in counts), 4),
        "released": round(statistics.fmean(released for released, _ in counts), 2),
    }


def missed_rows(case: Case, repeats: int) -> Iterator[Row]:
    """What part of the best k of all sizes is not released."""
    for k in MISSED.get(case.name, ()):
        right = case.top(ANY, k)
        for epsilon in MISSED_EPSILONS:
            for name in (*LISTERS, "priv-basis"):
                if name == "priv-basis":
                    found = drawn(case, name, epsilon, ANY, k, repeats)
                    shares = [sum(codes in right for codes in one) / k for one in found]
                else:
                    price = (epsilon, MISSED_DELTA)
                    shares = [
                        ranked(case, name, price, ANY, k, repeat)[1] / k for repeat in range(OURS)
                    ]
                row = {
                    "set": case.name,
                    "k": k,
                    "epsilon": epsilon,
                    "contender": name,
                    "repeats": len(shares),
                }
                yield row | {"missed": round(1 - statistics.fmean(shares), 4)}


# The best k from laws

EXACT: Final = "set-margin"
"""The contender whose law of a whole set is known."""


def exact_rows(case: Case) -> Rows:
    """What part of the best k is missed, and F1: both expected, and nothing is repeated."""
    missed = [
        {
            "set": case.name,
            "k": k,
            "epsilon": epsilon,
            "contender": EXACT,
            "repeats": None,
            "missed": round(1 - _hits(_lengths(case, ANY, k, (epsilon, MISSED_DELTA)), k) / k, 4),
        }
        for k in MISSED.get(case.name, ())
        for epsilon in MISSED_EPSILONS
    ]
    lists = []
    for sizes in (PAIRS, ANY):
        for epsilon in EPSILONS:
            for k in LENGTHS:
                table = _lengths(case, sizes, k, (epsilon, case.delta))
                row = _list_row(case, sizes, epsilon, EXACT, k, [(0, 0)]) | {"repeats": None}
                score = sum(f1(length, hits, k) for length, (_, hits) in table.items())
                released = sum(length * chance for length, (chance, _) in table.items())
                lists.append(row | {"f1": round(score, 4), "released": round(released, 2)})
    return {"missed": missed, "lists": lists} if missed else {"lists": lists}


def _lengths(
    case: Case, sizes: range, k: int, price: tuple[str, str]
) -> dict[int, tuple[float, float]]:
    epsilon, delta = price
    mechanism = SetMargin(epsilon=epsilon, delta=delta, k=k)
    return mechanism.lengths(case.source(sizes, False).profile, k)


def _hits(table: dict[int, tuple[float, float]], k: int) -> float:
    return min(sum(hits for _, hits in table.values()), float(k))


# Items that nobody has

GROWN: Final = "0.1"
"""Epsilon of the part `universe`."""

LARGEST = 60
"""Decimal digits of the largest number of items declared."""


def numbers(items: int) -> list[int]:
    """From the real number of items up."""
    return [items, *(10**power for power in range(1, LARGEST + 1) if 10**power > items)]


def chance(
    levels: Sequence[Level], name: str, items: int | None, epsilon: str, delta: str
) -> float:
    """Probability of releasing a best pair, of so many items declared; None: the universe is
    open.
    """
    universe = None if items is None else math.comb(items, 2)
    if name == "blst10":
        assert universe is not None, "it serves closed universes only"
        return blst10_law(levels, universe, epsilon).best()
    return SINGLES[name].make(epsilon, delta).law(Profile(levels, universe=universe)).best()


def universe_rows(case: Case, repeats: int) -> Iterator[Row]:
    """The best pair as the universe grows. Exact: nothing is repeated."""
    del repeats
    levels = case.miner(PAIRS).histogram(0)
    for name in (*SINGLES, "blst10"):
        is_open = name in SINGLES and not SINGLES[name].closed
        items: list[int | None] = [None] if is_open else [*numbers(case.rows.items)]
        yield {
            "set": case.name,
            "contender": name,
            "items": None if is_open else items,
            "chance": [
                round(chance(levels, name, number, GROWN, case.delta), DIGITS) for number in items
            ],
        }


PARTS: Final[dict[str, Callable[[Case, int], Iterator[Row]]]] = {
    "best": best_rows,
    "universe": universe_rows,
    "missed": missed_rows,
    "lists": list_rows,
}


def measure(part: str, options: argparse.Namespace) -> Iterator[Rows]:
    """One part of one set after the other."""
    data = folder(options.data)
    for name in options.set or (SETS[:1] if options.quick else SETS):
        if data is None or not (data / f"{name}.dat").is_file():
            note(f"SKIPPED: {name}.dat is not there. Name its folder with --data.")
            continue
        note(f"{name}: {part}")
        case = known(data / f"{name}.dat")
        facts = {"set": name, "baskets": case.individuals, "items": case.rows.items}
        facts |= {"delta": case.delta, "floor": case.floor(ANY)}
        facts["places"] = int(case.rows.offsets[-1])  # tells one edition of a set from another
        often = 1 if options.quick else REPEATS[part][name in LARGE]
        rows = exact_rows(case) if part == "laws" else {part: list(PARTS[part](case, often))}
        yield {"sets": [facts], **rows}


@cache
def known(file: Path) -> Case:
    return Case(file.stem, read_baskets(file))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--set", action="append", choices=SETS, help="only this one; repeatable")


if __name__ == "__main__":
    Benchmark(
        "itemset-quality",
        "quality.itemsets",
        {part: partial(measure, part) for part in ("laws", *PARTS)},
        settings={
            "delta": "1/n^1.5",
            "missed delta": MISSED_DELTA,
            "grown": GROWN,
            "epsilons": EPSILONS,
            "lengths": LENGTHS,
        },
        keys={
            "sets": ("set",),
            **dict.fromkeys(("best", "universe"), ("set",)),
            **dict.fromkeys(("missed", "lists"), ("set", "contender")),
        },
        arguments=arguments,
    ).main()
