"""The best k as a set, beside the published ways to it: what part of them is missed.

    ./dev python -m lab.benchmarks.quality.lists --data FOLDER

The profiles are those of head_to_head.py, which no mechanism was tuned for, and the item counts of
the transaction files in FOLDER. A part is missed if it is not released; whoever is tied with the
k-th belongs to the best k. SetMargin, GapTest and the joint draw over sets are computed from their
laws, the others drawn a thousand times in floats from seeded numbers, and each of those is given
the best of a few settings for the cell at hand, as nobody could choose it: that favors them.

    peeling         k rounds with Gumbel noise, all of them at once, among the candidates there are:
                    it must know them (Durfee & Rogers, NeurIPS 2019)
    limited domain  the same among the top k̄ behind a guard (the same)
    joint list      the joint exponential mechanism (Gillenwater et al., ICML 2022); it must know
                    the candidates
    joint set       one draw over all sets of k, no delta; it must know the candidates
    stable          a gap is looked for with the sparse vector technique, from k to k̄ and then below
                    k (Carvalho, Wang, Gondara & Miao, UAI 2020)
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.profiles import Case, folder, synthetic, transactions
from privmax import GapTest, JointExponential, Profile, SetMargin
from privmax.composition import per_round
from privmax.mechanisms.peeling import round_and_guard
from privmax.numbers import exact
from privmax.testing import SeededCoins

EPSILONS, DELTA = ("0.25", "1"), "1e-6"
LENGTHS = (5, 10, 50, 100)
DRAWS = 1000
JOINT_DRAWS = 50
"""Of the joint exponential mechanism, which is drawn exactly and therefore slowly."""

LARGEST = 2 * 10**4
"""More candidates than this are not drawn from in floats: those who must know them all sit out."""

Counts = NDArray[np.float64]


def top(case: Case, number: int) -> Counts:
    """The highest counts, and zeros where there are no more."""
    counts = np.zeros(number)
    start = 0
    for score, many in case.levels:
        end = min(number, start + many)
        counts[start:end] = score
        start = end
    return counts


def hits(chosen: NDArray[np.bool_], right: int) -> float:
    """How many of the first `right` places are chosen, on average over draws."""
    return float(chosen[:, :right].sum(axis=1).mean())


def peel(
    counts: Counts, k: int, rate: float, guard: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """k rounds at once: whose count with Gumbel noise is among the k highest, and above the guard's
    (−∞: there is none).
    """
    noisy = rate * counts + random.gumbel(size=(DRAWS, counts.size))
    line = np.partition(noisy, -k, axis=1)[:, -k] if counts.size > k else np.full(DRAWS, -np.inf)
    ends = guard + random.gumbel(size=DRAWS)
    chosen: NDArray[np.bool_] = noisy >= np.maximum(line, ends)[:, None]
    return chosen


def peeling(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    if case.items <= LARGEST:
        rate = per_round(exact("epsilon", epsilon), exact("delta", DELTA), k, bounded_range=True)
        random = np.random.default_rng(seed)
        chosen = peel(top(case, case.items), min(k, case.items), float(rate), -math.inf, random)
        yield hits(chosen, right)


def limited(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    rate, delta = map(float, round_and_guard(exact("epsilon", epsilon), exact("delta", DELTA), k))
    for rank in (k, 2 * k, 5 * k, 2000):
        counts = top(case, rank + 1)
        guard = rate * counts[-1] + math.log(rank / delta) + rate
        chosen = peel(counts[:-1], k, rate, guard, np.random.default_rng(seed))
        yield hits(chosen & (counts[:-1] > 0), right)


def stable(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    """Half of epsilon for the threshold and the gaps, the rest for a draw among more than k."""
    for share in (0.5, 0.8, 1.0):
        for most in (k, 2 * k, 5 * k):
            if (share < 1) == (most > k):  # the draw is needed where more than k are looked at
                yield _stable(case, k, float(epsilon), share, most, right, seed)


def _stable(
    case: Case, k: int, epsilon: float, share: float, most: int, right: int, seed: int
) -> float:
    random = np.random.default_rng(seed)
    counts = top(case, most + 1)
    gaps = np.maximum(counts[:-1] - counts[1:] - 1, 0)
    test = share * epsilon / 2
    draw = (1 - share) * epsilon / k
    order = [*range(k, most + 1), *range(k - 1, 0, -1)]
    wide = math.log(most / float(DELTA)) / (test / 2)
    line = wide + random.laplace(0, 1 / test, size=(DRAWS, 1))
    passed = gaps[np.array(order) - 1] + random.laplace(0, 2 / test, (DRAWS, len(order))) > line
    found = 0.0
    for row in range(DRAWS):
        if passed[row].any():
            size = order[int(passed[row].argmax())]
            if size <= k:
                found += min(size, right)
            else:
                noisy = draw * counts[:size] + random.gumbel(size=size)
                found += int((np.argpartition(noisy, -k)[-k:] < right).sum())
    return found / DRAWS


def joint_list(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    if k <= case.items <= LARGEST:
        mechanism = JointExponential(epsilon=epsilon, k=k)
        profile = Profile(case.levels, universe=case.items)
        least = top(case, k)[-1]
        coins = SeededCoins(f"{case.name}/{k}/{seed}")
        found = 0
        for _ in range(JOINT_DRAWS):
            drawn = mechanism.ranking(profile, coins)
            found += sum(
                one.score is not None and not one.below and one.score >= least for one in drawn
            )
        yield found / JOINT_DRAWS


def joint_set(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    if k < case.items <= LARGEST:
        mechanism = SetMargin(epsilon=epsilon, k=k)
        yield mechanism.expect(Profile(case.levels, universe=case.items), k)[1]


def set_margin(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    yield SetMargin(epsilon=epsilon, delta=DELTA, k=k).expect(Profile(case.levels), k)[1]


def gap_test(case: Case, k: int, epsilon: str, right: int, seed: int) -> Iterator[float]:
    yield GapTest(epsilon=epsilon, delta=DELTA, k=k).expect(Profile(case.levels), k)[1]


CONTENDERS: dict[str, Callable[[Case, int, str, int, int], Iterator[float]]] = {
    "SetMargin": set_margin,
    "GapTest": gap_test,
    "peeling": peeling,
    "limited domain": limited,
    "joint list": joint_list,
    "joint set": joint_set,
    "stable": stable,
}


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    """One profile after the other."""
    cases = [*synthetic(), *transactions(folder(options.data))]
    for case in cases[:2] if options.quick else cases:
        note(case.name)
        yield {"missed": list(rows(case, LENGTHS[:2] if options.quick else LENGTHS))}


def rows(case: Case, lengths: tuple[int, ...]) -> Iterator[Row]:
    for k in lengths:
        counts = top(case, k)
        if not counts[-1]:
            continue  # there are fewer than k
        right = sum(many for score, many in case.levels if score >= counts[-1])
        for epsilon in EPSILONS:
            for name, contender in CONTENDERS.items():
                found = list(contender(case, k, epsilon, right, 1))
                row = {"profile": case.name, "k": k, "epsilon": epsilon, "contender": name}
                if found:
                    yield row | {"missed": round(1 - min(k, max(found)) / k, 4)}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the transaction files")


if __name__ == "__main__":
    Benchmark(
        "lists",
        "quality.lists",
        {"missed": measure},
        packages=("privmax", "numpy"),
        settings={"delta": DELTA, "draws": DRAWS, "joint draws": JOINT_DRAWS},
        keys={"missed": ("profile",)},
        arguments=arguments,
    ).main()
