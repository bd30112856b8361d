"""The best k in order, beside peeling and the joint draw of lists: what is missed or misplaced.

    ./dev python -m lab.benchmarks.quality.orders

The profiles are the public family of `privmax.typical`: counts that fall off as 1/r or 1/√r with
the rank r, from four highest ones, of 10^4 candidates. Kendall's distance is that of lists of the
best k (Fagin, Kumar & Sivakumar 2003, with p = 1/2) over its largest value: pairs in the wrong
order, where a list that leaves an item out says that it is behind all that it holds. Ties in the
true counts are in any order. All mechanisms are drawn exactly, from seeded coins; the first two
need no list of candidates.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax import Exponential, JointExponential, Profile, RankedMargin, SharpMargin
from privmax.mechanisms.contract import Outcome
from privmax.mechanisms.peeling import Ranker
from privmax.testing import SeededCoins
from privmax.typical import typical_profiles

EPSILON, DELTA = "1", "1e-6"
LENGTHS = (5, 10, 20, 50)
CANDIDATES = 10**4
DRAWS = 20


def contenders(k: int) -> dict[str, tuple[Ranker, bool]]:
    """Mechanisms by name, and whether they must know the candidates."""
    return {
        "RankedMargin": (RankedMargin(epsilon=EPSILON, delta=DELTA, k=k), False),
        "SharpMargin": (SharpMargin(epsilon=EPSILON, delta=DELTA, k=k), False),
        "Exponential": (Exponential(epsilon=EPSILON, delta=DELTA, k=k), True),
        "JointExponential": (JointExponential(epsilon=EPSILON, k=k), True),
    }


def kendall(scores: Sequence[int], released: Sequence[int], k: int) -> float:
    """The distance of a list of ranks to the best k, ranks from 0 up, over k·(3k − 1)/2."""
    place = {rank: position for position, rank in enumerate(released)}
    wrong = 0.0
    for one, two in combinations(sorted({*range(k), *released}), 2):
        if scores[one] == scores[two]:
            continue
        if one in place and two in place:
            known = one < k or two < k
            wrong += place[one] > place[two] if known else 0.5
        elif two in place:
            wrong += 1
        elif one not in place:
            wrong += 0.5  # both of the best k are left out: in which order is not said
        elif two >= k:
            wrong += 0.5
    return wrong / (k * (3 * k - 1) / 2)


def rank_of(outcome: Outcome, scores: Sequence[int]) -> int:
    """The rank of a candidate, from 0; those at the floor of a window are counted from there on."""
    floor = outcome.score
    assert floor is not None, "an item of a list has a score"
    return bisect_left(scores, -floor, key=lambda score: -score) + outcome.index


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    """One length after the other."""
    for k in LENGTHS[:1] if options.quick else LENGTHS:
        note(f"k = {k}")
        yield {"orders": list(rows(k))}


def rows(k: int) -> Iterator[Row]:
    profiles = list(typical_profiles(k, CANDIDATES, 1 / Fraction(EPSILON)))
    for name, (mechanism, is_told) in contenders(k).items():
        coins = SeededCoins(f"{name}/{k}")
        distance, missed = 0.0, 0.0
        for profile in profiles:
            window = profile.down_to(CANDIDATES)
            levels = [(window.top - depth, count or 0) for depth, count in window.blocks()]
            scores = [score for score, count in levels for _ in range(count)]
            seen = [level for level in levels if level[0] > 0]
            drawn_from = Profile(seen, universe=CANDIDATES if is_told else None)
            for _ in range(DRAWS):
                drawn = mechanism.ranking(drawn_from, coins)
                ranks = [rank_of(one, scores) for one in drawn]
                distance += kendall(scores, ranks, k)
                missed += 1 - sum(scores[rank] >= scores[k - 1] for rank in ranks) / k
        number = DRAWS * len(profiles)
        yield {
            "contender": name,
            "k": k,
            "distance": round(distance / number, 4),
            "missed": round(missed / number, 4),
        }


if __name__ == "__main__":
    Benchmark(
        "orders",
        "quality.orders",
        {"orders": measure},
        packages=("privmax", "numpy"),
        settings={"epsilon": EPSILON, "delta": DELTA, "draws": DRAWS, "candidates": CANDIDATES},
        keys={"orders": ("k",)},
    ).main()
