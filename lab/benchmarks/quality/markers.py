"""Markers of a case–control study: how many causal ones are released, by score and mechanism.

    ./dev python -m lab.benchmarks.quality.markers

Studies are simulated: frequencies of the allele are uniform between 0.05 and 0.5, genotypes are in
Hardy–Weinberg proportions, and five markers are causal with a given odds ratio per allele. Each
cell is a mean over seeded studies. What SetMargin releases is computed from its law; peeling and
noisy maxima are drawn in floats from seeded numbers.

    peeling        the exponential mechanism k times with tight composition: what `top_markers` uses
    set            the set mechanism, as `auto` chooses it
    exponential    the exponential mechanism k times at ε/k (Yu, Fienberg, Slavković & Uhler 2014)
    Laplace        the largest of scores with Laplace noise, k times at ε/k (Uhler, Slavković &
                   Fienberg 2013)
    not private    the k markers with the highest χ² of alleles
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax import PermuteAndFlip, SetMargin, auto
from privmax.composition import per_round
from privmax.markers.release import MarkerSource
from privmax.markers.scores import SCORES, Score, StudyGroups, make_score
from privmax.numbers import exact

EPSILONS, DELTA, K = ("0.3", "1", "3", "10"), "1e-6", 5
FINE = ("0.05", "0.1", "0.15", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10")
DRAWS = 200
MOST = 20_000
"""Markers from which on noisy maxima are not drawn: it takes too long."""

CONTENDERS = {
    "difference, peeling (ours)": ("difference", "peeling"),
    "difference, set (auto)": ("difference", "set"),
    "difference, Laplace": ("difference", "laplace"),
    "distance, peeling": ("distance", "peeling"),
    "distance, set (auto)": ("distance", "set"),
    "χ² of alleles, peeling": ("chi-square", "peeling"),
    "χ² of genotypes, exponential": ("genotype-chi-square", "exponential"),
    "χ² of genotypes, Laplace": ("genotype-chi-square", "laplace"),
}
"""Score and mechanism."""

Counts = NDArray[np.int64]


class Study(NamedTuple):
    """What is simulated, and how often."""

    name: str
    groups: StudyGroups
    markers: int
    odds: float
    seeds: int = 10


STUDIES = (
    Study("2,000 + 2,000, odds 1.5", StudyGroups(2000, 2000), 20_000, 1.5),
    Study("2,000 + 2,000, odds 1.3", StudyGroups(2000, 2000), 20_000, 1.3),
    Study("1,000 + 3,000, odds 1.5", StudyGroups(1000, 3000), 20_000, 1.5),
    Study("300 + 300, odds 3", StudyGroups(300, 300), 1_000, 3.0),
    Study("10,000 + 10,000, odds 1.2", StudyGroups(10_000, 10_000), 200_000, 1.2, 2),
)


def simulate(study: Study, seed: int) -> Counts:
    """People by genotype; the first K markers are causal."""
    random = np.random.default_rng([seed, study.markers])
    control = random.uniform(0.05, 0.5, study.markers)
    case = control.copy()
    case[:K] = control[:K] * study.odds / (1 + control[:K] * (study.odds - 1))
    counts = np.empty((study.markers, 2, 3), np.int64)
    for group, (size, chance) in enumerate(zip(study.groups, (case, control), strict=True)):
        two = random.binomial(size, chance**2)
        one = random.binomial(size - two, 2 * chance * (1 - chance) / (1 - chance**2))
        counts[:, group] = np.stack([size - one - two, one, two], axis=1)
    return counts


def included(
    scores: Counts, score: Score, way: str, epsilon: str, seed: int
) -> NDArray[np.float64] | None:
    """With what probability each marker is released; None: too many markers to draw."""
    if way == "set":
        return by_law(scores, score, epsilon)
    if way == "laplace":
        return noisy(scores, score, epsilon, seed) if len(scores) <= MOST else None
    rate = exact("epsilon", epsilon) / K
    if way == "peeling":
        rate = per_round(exact("epsilon", epsilon), exact("delta", DELTA), K, bounded_range=True)
    return peeled(scores * float(rate) / (2 * score.steps), seed)


def by_law(scores: Counts, score: Score, epsilon: str) -> NDArray[np.float64]:
    """Of what `auto` chooses."""
    mechanism, _ = auto(
        epsilon=epsilon, delta=DELTA, universe=len(scores), neighbors="replace", k=K
    )
    assert isinstance(mechanism, SetMargin)
    law = mechanism.law(MarkerSource(scores, None, score).profile)
    levels, where = np.unique(scores, return_inverse=True)
    return np.array([law.of(int(level)) for level in levels])[where]


def peeled(levels: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Of k rounds of the exponential mechanism, drawn all at once with Gumbel noise."""
    random = np.random.default_rng(seed)
    found = np.zeros(len(levels))
    for _ in range(DRAWS):
        drawn = levels + random.gumbel(size=levels.size)
        found[np.argpartition(drawn, -K)[-K:]] += 1
    return found / DRAWS


def noisy(scores: Counts, score: Score, epsilon: str, seed: int) -> NDArray[np.float64]:
    """Of k rounds of the largest score with Laplace noise, each with noise of its own."""
    rate = float(epsilon) / K / (2 * score.steps)
    random = np.random.default_rng(seed)
    found = np.zeros(len(scores))
    for _ in range(DRAWS // 4):
        left = scores * rate
        for _ in range(K):
            best = int((left + random.laplace(size=left.size)).argmax())
            found[best] += 1
            left[best] = -np.inf
    return found / (DRAWS // 4)


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    """One kind of study after the other."""
    for study in STUDIES[3:4] if options.quick else STUDIES:
        note(study.name)
        yield {"recall": list(rows(study, 1 if options.quick else study.seeds))}


def powers(options: argparse.Namespace) -> Rows:
    """One marker is causal and one is released: with what probability it is that one, by law."""
    study = Study("one", StudyGroups(2000, 2000), 20_000, 1.5, 5)
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(1 if options.quick else study.seeds):
        counts = simulate(study, seed)[K - 1 :]  # the last of the causal ones
        for name in SCORES:
            score = make_score(name, study.groups, len(counts), None)
            scores = score.score(counts)
            profile = MarkerSource(scores, None, score).profile
            for epsilon in FINE:
                law = PermuteAndFlip(epsilon=epsilon, neighbors="replace").law(profile)
                found.setdefault((name, epsilon), []).append(law.of(int(scores[0])))
    rows = [
        {"score": name, "epsilon": epsilon, "chance": round(float(np.mean(chances)), 4)}
        for (name, epsilon), chances in found.items()
    ]
    return {"power": rows}


def rows(study: Study, seeds: int) -> Iterator[Row]:
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        counts = simulate(study, seed)
        scoring = {name: make_score(name, study.groups, study.markers, None) for name in SCORES}
        scores = {name: scoring[name].score(counts) for name in SCORES}
        best = np.argsort(-scores["chi-square"], kind="stable")[:K]

        def add(
            who: str, epsilon: str, chances: NDArray[np.float64], best: NDArray[np.intp] = best
        ) -> None:
            pair = float(chances[:K].sum()) / K, float(chances[best].sum()) / K
            found.setdefault((who, epsilon), []).append(pair)

        for epsilon in EPSILONS:
            for who, (name, way) in CONTENDERS.items():
                chances = included(scores[name], scoring[name], way, epsilon, seed)
                if chances is not None:
                    add(who, epsilon, chances)
            certain = np.zeros(study.markers)
            certain[best] = 1
            add("not private, χ²", epsilon, certain)
    for (who, epsilon), pairs in found.items():
        causal, top = np.mean(pairs, axis=0)
        yield {
            "study": study.name, "contender": who, "epsilon": epsilon,
            "causal": round(float(causal), 3), "top": round(float(top), 3),
        }  # fmt: skip


if __name__ == "__main__":
    Benchmark(
        "markers",
        "quality.markers",
        {"recall": measure, "power": powers},
        packages=("privmax", "numpy"),
        settings={"delta": DELTA, "k": K, "draws": DRAWS},
        keys={"recall": ("study",)},
    ).main()
