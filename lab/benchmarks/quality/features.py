"""Columns chosen on private rows: how many of the right ones are kept.

    ./dev python -m lab.benchmarks.quality.features

Made sets have 20 columns in −1 … 1, of which three matter, with weights 1, 0.8 and −0.3; the others
have nothing to do with them ("apart"), or six of them go along with the first ("alike"), and with
the label more than the third does, though they add nothing. Of scikit-learn's bundled sets the
columns that matter are those of the lasso without privacy. Each cell is a mean over seeded runs of
the share of the right columns that is kept; where nothing is released it is 0.

    stable               StableSelector: released if stable
    stable, any          StableSelector(fallback="any"): always a set
    marginal             MarginalSelector: the largest sums of x·y, by rounds
    marginal, set        the same by the set mechanism
    noisy moments        all sums of x·x and x·y with Gaussian noise, then the lasso
    lasso                the lasso without privacy
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import lars_path_gram

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.learning import MarginalSelector, StableSelector
from privmax.learning.votes import lasso_weights, top_columns
from privmax.testing import SeededCoins

EPSILONS, DELTA, RUNS = ("0.3", "1", "3"), "1e-6", 5
SIZE = 3
BOUNDS: dict[str, Any] = {"low": -1.0, "high": 1.0, "label_low": -1.0, "label_high": 1.0}

Data = tuple[NDArray[np.float64], NDArray[np.float64], set[int]]


def made(rows: int, alike: bool, seed: int) -> Data:
    random = np.random.default_rng([seed, rows])
    X = random.uniform(-1, 1, (rows, 20))
    if alike:
        X[:, 3:9] = (X[:, 3:9] + X[:, :1]) / 2
    y = X[:, 0] + 0.8 * X[:, 1] - 0.3 * X[:, 2] + random.normal(0, 0.5, rows)
    return X, np.clip(y / 3, -1, 1), {0, 1, 2}


def bundled(load: Callable[..., Any], seed: int) -> Data:
    """In random order, scaled to −1 … 1 as public bounds would."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X[order] - low) / (high - low) - 1
    y = 2 * (y[order] - y.min()) / (y.max() - y.min()) - 1
    return X, y, set(top_columns(lasso_weights(X, y, SIZE), SIZE))


SETS: dict[str, Callable[[int], Data]] = {
    **{f"apart, {rows:,} rows": partial(made, rows, False) for rows in (1_000, 5_000, 20_000)},
    **{f"alike, {rows:,} rows": partial(made, rows, True) for rows in (5_000, 20_000, 100_000)},
    "breast cancer, 569 rows": partial(bundled, load_breast_cancer),
    "diabetes, 442 rows": partial(bundled, load_diabetes),
}


def stable(data: Data, epsilon: str, seed: int, **more: Any) -> set[int]:
    selector = StableSelector(
        size=SIZE, epsilon=epsilon, delta=DELTA, coins=SeededCoins(seed), **more
    )
    release = selector.fit(*data[:2]).release_
    return set(release.item or ())


def marginal(data: Data, epsilon: str, seed: int, **more: Any) -> set[int]:
    selector = MarginalSelector(SIZE, epsilon, DELTA, coins=SeededCoins(seed), **BOUNDS, **more)
    return set(selector.fit(*data[:2]).get_support(indices=True).tolist())


def moments(data: Data, epsilon: str, seed: int) -> set[int]:
    """The sums of all products of two, with Gaussian noise for one row more or less."""
    X, y, _ = data
    joint = np.column_stack([X, y])
    width = joint.shape[1]
    spread = math.sqrt(width * (width + 1) / 2)  # entries above the diagonal and on it, 1 at most
    scale = spread * math.sqrt(2 * math.log(1.25 / float(DELTA))) / float(epsilon)
    noise = np.triu(np.random.default_rng(seed).normal(0, scale, (width, width)))
    noisy = joint.T @ joint + noise + np.triu(noise, 1).T
    values, vectors = np.linalg.eigh(noisy)
    whole = vectors @ np.diag(np.maximum(values, 1.0)) @ vectors.T
    _, _, path = lars_path_gram(
        whole[:-1, -1], whole[:-1, :-1], n_samples=len(X), method="lasso", max_iter=4 * SIZE + 8
    )
    enough = np.flatnonzero((path != 0).sum(axis=0) >= SIZE)
    return set(top_columns(path[:, enough[0] if enough.size else -1], SIZE))


CONTENDERS: dict[str, Callable[[Data, str, int], set[int]]] = {
    "stable": stable,
    "stable, any": lambda *given: stable(*given, fallback="any"),
    "marginal": marginal,
    "marginal, set": lambda *given: marginal(*given, mechanism="set-margin"),
    "noisy moments": moments,
    "lasso (not private)": lambda data, *_: set(
        top_columns(lasso_weights(data[0], data[1], SIZE), SIZE)
    ),
}


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    """One set after the other."""
    warnings.simplefilter("ignore")
    for name in list(SETS)[:1] if options.quick else SETS:
        note(name)
        yield {"recall": list(rows(name, 1 if options.quick else RUNS))}


def rows(name: str, runs: int) -> Iterator[Row]:
    for epsilon in EPSILONS:
        for who, contender in CONTENDERS.items():
            found = []
            for seed in range(runs):
                data = SETS[name](seed)
                found.append(len(contender(data, epsilon, seed) & data[2]) / SIZE)
            yield {
                "set": name, "epsilon": epsilon, "contender": who,
                "recall": round(float(np.mean(found)), 3),
            }  # fmt: skip


if __name__ == "__main__":
    Benchmark(
        "features",
        "quality.features",
        {"recall": measure},
        packages=("privmax", "numpy", "scikit-learn"),
        settings={"delta": DELTA, "size": SIZE, "runs": RUNS},
        keys={"recall": ("set",)},
    ).main()
