"""Keys where few people are in the data: how well the small look chooses between the two ways.

    ./dev python -m lab.benchmarks.quality.keys_few

Random invented sets, from 60 to 20,000 people. Each way's keys are summed over the sets of a band,
as a part of what the better of "one key each" and "rounds" finds there, for the better of a few
numbers of slots in the last round. That is a maximum over noisy means, so a little too high. The
ways are those of keys_mechanisms.py, in floats from seeded numbers; they share their sets.

`privmax` decides from a noisy tally, `exact tally` from the same without noise, which is not
private. The settings of the decision were chosen on 400 other sets of this kind, and then fixed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.keys import DELTAS, EPSILON, PER_USER, invent, ours
from lab.benchmarks.quality.keys_mechanisms import (
    Contender,
    Marks,
    Pairs,
    Random,
    geometric,
    rounds_alone,
)

SETS, RUNS, SEED = 160, 8, 2026
BANDS = ((60, 300), (300, 1000), (1000, 3000), (3000, 20_000))
SLOTS = (3, 5, 8, 12, 20, 30)
USED = 0.99
"""The part of epsilon that the look leaves."""


def one_key(pairs: Pairs, epsilon: float, delta: float, most: int, random: Random) -> Marks:
    return geometric(pairs, USED * epsilon, delta, 1, random)


CHOICES: dict[str, Contender] = {"privmax": ours, "exact tally": partial(ours, exact=True)}
WAYS: dict[str, Contender] = {
    "one key each": one_key,
    **{f"rounds, {slots} slots": partial(rounds_alone, slots=slots, used=USED) for slots in SLOTS},
}


def draw_set(random: Random) -> Pairs:
    """People, keys, Zipf exponent and how many keys a person has: all drawn."""
    people = int(np.exp(random.uniform(np.log(60), np.log(20_000))))
    keys = int(np.exp(random.uniform(np.log(8), np.log(5000))))
    law = str(random.choice(["const", "geometric", "poisson", "pareto"]))
    mean = {
        "const": round(np.exp(random.uniform(0, np.log(12)))),
        "geometric": np.exp(random.uniform(np.log(1.02), np.log(20))),
        "poisson": np.exp(random.uniform(np.log(1.05), np.log(20))),
        "pareto": random.uniform(1.05, 3),
    }[law]
    return invent(people, keys, random.uniform(0.6, 1.6), law, mean, int(random.integers(1 << 31)))


def few(options: argparse.Namespace) -> Iterator[Rows]:
    random = np.random.default_rng(SEED)
    found: dict[tuple[int, int], list[dict[str, float]]] = {band: [] for band in BANDS}
    for number in range(8 if options.quick else SETS):
        pairs = draw_set(random)
        [band] = [band for band in BANDS if band[0] <= max(pairs.people, 60) < band[1] + 1][:1]
        found[band].append(
            {who: _mean_found(way, pairs, number) for who, way in {**CHOICES, **WAYS}.items()}
        )
        if number % 20 == 19:
            note(f"{number + 1} sets")
    yield {"few": [row for band, sets in found.items() if sets for row in _parts(band, sets)]}


def _mean_found(way: Contender, pairs: Pairs, seed: int) -> float:
    runs = [
        way(pairs, EPSILON, float(DELTAS[-1]), PER_USER, np.random.default_rng([seed, run])).sum()
        for run in range(RUNS)
    ]
    return float(np.mean(runs))


def _parts(band: tuple[int, int], sets: list[dict[str, float]]) -> Iterator[Row]:
    best = sum(max(one[way] for way in WAYS) for one in sets)
    for who in sets[0]:
        total = sum(one[who] for one in sets)
        yield {
            "from": band[0],
            "to": band[1],
            "sets": len(sets),
            "contender": who,
            "part": round(total / best, 3),
        }


if __name__ == "__main__":
    Benchmark(
        "keys-few",
        "quality.keys_few",
        {"few": few},
        packages=("privmax", "numpy", "scipy"),
        settings={"epsilon": EPSILON, "delta": DELTAS[-1], "per_user": PER_USER, "runs": RUNS},
    ).main()
