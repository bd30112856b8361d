"""Noisy counts: how far they are off, measured and predicted, and beside noise that is not shared.

    ./dev python -m lab.benchmarks.quality.counts

Draws the noise on k counts at ε = 1, δ = 1e-6, as `counts=1` does, and compares it with the error
that a release states for 95 % of its counts, and with independent Gaussian noise at the same cost.
Counts of one release share a part of their noise, so the standard deviation is of all counts of all
releases, and its own error is about one over the root of twice the number of releases.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.count_costs import find_sigma
from privmax.counts import DiscreteGaussian, choose_noise, count_moved
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE, Neighbors, Privacy

COST = Privacy(1, "1e-6")
SIZES = (1, 10, 100)
RELATIONS: tuple[Neighbors, ...] = (ADD_REMOVE, REPLACE)
RELEASES = 3_000


def counts(options: argparse.Namespace) -> Iterator[Rows]:
    releases = 100 if options.quick else RELEASES
    rows: list[Row] = []
    for neighbors in RELATIONS:
        for k in SIZES:
            noise = choose_noise(COST, k=k, neighbors=neighbors).noise
            drawn = np.array([noise.draw_all(k, SYSTEM) for _ in range(releases)])
            alone = DiscreteGaussian(sigma=find_sigma(COST, count_moved(k, None, neighbors), 1))
            deviation = math.sqrt(float(np.mean(drawn.astype(float) ** 2)))
            note(f"{neighbors}, k = {k}")
            rows.append(
                {
                    "neighbors": neighbors,
                    "k": k,
                    "noise": type(noise).__name__,
                    "error": noise.error(),
                    "within": round(float(np.mean(np.abs(drawn) <= noise.error())), 3),
                    "deviation": round(deviation, 2),
                    "independent error": alone.error(),
                    "beside independent": round(deviation / float(alone.sigma), 3),
                }
            )
    yield {"counts": rows}


if __name__ == "__main__":
    Benchmark(
        "counts",
        "quality.counts",
        {"counts": counts},
        packages=("privmax", "numpy"),
        settings={"epsilon": 1, "delta": "1e-6", "releases": RELEASES},
    ).main()
