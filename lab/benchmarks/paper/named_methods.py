"""The methods that the paper names, beside ours on Adult, for docs/paper-map.md.

    ./dev python -m lab.benchmarks.paper.named_methods --data FOLDER    ten minutes

FOLDER, or PRIVMAX_DATA, holds adult.data (UCI Adult). Everything is drawn with stored seeds.

trees        accuracy of trees grown split by split, by score of a split; beside them a whole tree
             drawn at once, and the additive model. Five splits of the rows, 80 % to learn from
points       predict who works 40 hours a week: error of rules for one number of hours among 2^40
thresholds   predict who is 38 or older: error of thresholds among 2^20
net          income above 50K by education: error of the best rule on an invented data set
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.additive_data import ADULT, read_adult
from lab.benchmarks.quality.profiles import folder
from privmax import PermuteAndFlip
from privmax.learning import HashedPoints, Points, PrivateERM, PrivateGAM, PrivateTree, Trees
from privmax.learning.approximate_learners import (
    RecursiveConcave,
    learn_point,
    score_thresholds,
)
from privmax.learning.net import release_net
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins

EPSILONS: Final = ("0.1", "0.5", "1")
DELTA: Final = "1e-6"
SPLITS: Final = 5
REPEATS: Final = 40
SIZES: Final = (30, 100, 300, 1000, 10_000)
HOURS, AGE = 40, 38
DOMAIN: Final = 1 << 40
STRETCH: Final = 1 << 13
"""Ages times this: a domain of 2^20."""


def trees(options: argparse.Namespace) -> Iterator[Rows]:
    data = _adult(options)
    if data is None:
        return
    made: dict[str, Callable[[str, Any], Any]] = {
        "tree, Max": lambda e, c: PrivateTree(ADULT, e, labels=[0, 1], coins=c),
        "tree, Gini": lambda e, c: PrivateTree(ADULT, e, labels=[0, 1], criterion="gini", coins=c),
        "tree, information gain": lambda e, c: PrivateTree(
            ADULT, e, labels=[0, 1], criterion="information-gain", rows=40_000, coins=c
        ),
        "ours: whole tree": lambda e, c: PrivateERM(Trees(schema=ADULT), e, labels=[0, 1], coins=c),
        "ours: additive model": lambda e, c: PrivateGAM(ADULT, e, DELTA, labels=[0, 1], coins=c),
    }
    for name, make in made.items():
        rows = []
        for epsilon in EPSILONS:
            found = []
            for split in range(SPLITS):
                order = np.random.default_rng([7, split]).permutation(len(data.y))
                learn, test = np.split(order, [len(order) * 4 // 5])
                model = make(epsilon, SeededCoins(f"{name} {epsilon} {split}"))
                model.fit(data.X.iloc[learn], data.y[learn])
                found.append(float(np.mean(model.predict(data.X.iloc[test]) == data.y[test])))
            note(f"{name} {epsilon}: {np.mean(found):.4f}")
            rows.append(_row("trees", name, found, epsilon=epsilon))
        yield {"trees": rows}


def points(options: argparse.Namespace) -> Iterator[Rows]:
    data = _adult(options)
    if data is None:
        return
    hours = data.X["hours-per-week"].to_numpy().astype(np.int64)
    at = hours == HOURS

    def by_class(hypotheses: Any, delta: Any = 0) -> Callable[..., Any]:
        def learn(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
            learner = PrivateERM(hypotheses, 1, delta, labels=[0, 1], coins=coins)
            return learner.fit(X.reshape(-1, 1), y).predict

        return learn

    def by_point(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
        found = learn_point(X.tolist(), y.tolist(), epsilon=1, delta=DELTA, coins=coins).item
        return lambda rows: rows[:, 0] == found

    made = {
        "points, pure": by_class(Points(DOMAIN)),
        "hashed points, pure": by_class(HashedPoints(domain=DOMAIN)),
        "points with δ (BNS)": by_point,
        "ours: points with δ": by_class(Points(DOMAIN), DELTA),
    }
    yield {"points": list(_errors("points", made, hours, at))}


def thresholds(options: argparse.Namespace) -> Iterator[Rows]:
    data = _adult(options)
    if data is None:
        return
    ages = data.X["age"].to_numpy().astype(np.int64) * STRETCH
    domain = STRETCH << 7

    def recursive(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
        learner = RecursiveConcave(epsilon=1, delta=DELTA, domain=domain, promise=len(X))
        found = learner.draw(score_thresholds(X, y.astype(int), domain), coins)
        return lambda rows: rows[:, 0] >= (0 if found is None else found)

    def drawn(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
        source = MemorySource(score_thresholds(X, y.astype(int), domain), universe=domain)
        found = source.name(PermuteAndFlip(epsilon=1).draw(source.profile, coins))
        return lambda rows: rows[:, 0] >= found

    made = {"thresholds with δ (BNS)": recursive, "ours: one draw, pure": drawn}
    yield {"thresholds": list(_errors("thresholds", made, ages, ages >= AGE * STRETCH))}


def net(options: argparse.Namespace) -> Iterator[Rows]:
    data = _adult(options)
    if data is None:
        return
    school = np.clip((data.X["education-num"].to_numpy().astype(np.int64) - 7) // 2, 0, 4)
    domain = [(step, label) for step in range(5) for label in (0, 1)]
    rules = [lambda row, t=t: (row[0] >= t) != bool(row[1]) for t in range(6)]

    def by_net(size: int) -> Callable[..., Any]:
        def learn(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
            rows = list(zip(X.tolist(), y.astype(int).tolist(), strict=True))
            found = release_net(rows, domain, rules, size=size, epsilon=1, coins=coins).item
            best = min(range(6), key=lambda t: sum(rules[t](row) for row in found))
            return lambda rows: rows[:, 0] >= best

        return learn

    def drawn(X: NDArray[Any], y: NDArray[Any], coins: Any) -> Any:
        right = [int(np.sum(y == (t <= X))) for t in range(6)]
        source = MemorySource(right, universe=6)
        chooser = PermuteAndFlip(epsilon=1, neighbors="replace")
        found = source.name(chooser.draw(source.profile, coins))
        return lambda rows: rows[:, 0] >= found

    made = {"net of 3 rows": by_net(3), "net of 5 rows": by_net(5), "ours: one draw": drawn}
    yield {"net": list(_errors("net", made, school, data.y == 1))}


def _errors(
    kind: str, made: dict[str, Callable[..., Any]], X: NDArray[Any], y: NDArray[Any]
) -> Iterator[Row]:
    """The mean error on all rows of what is learned from some of them."""
    for name, learn in made.items():
        for n in SIZES:
            found = []
            for repeat in range(REPEATS):
                chosen = np.random.default_rng([n, repeat]).choice(len(X), n, replace=False)
                coins = SeededCoins(f"{kind} {name} {n} {repeat}")
                says = learn(X[chosen], y[chosen].astype(int), coins)
                found.append(float(np.mean(says(X.reshape(-1, 1)) != y)))
            note(f"{kind}, {name}, {n}: {np.mean(found):.4f}")
            yield _row(kind, name, found, n=n)


def _row(kind: str, name: str, found: list[float], **settings: Any) -> Row:
    error = float(np.std(found, ddof=1) / len(found) ** 0.5)
    mean = round(100 * float(np.mean(found)), 2)
    return {"contender": name, **settings, "percent": mean, "error": round(100 * error, 2)}


def _adult(options: argparse.Namespace) -> Any:
    found = folder(options.data)
    if found is None or not (found / "adult.data").exists():
        note("no adult.data: give --data FOLDER, or PRIVMAX_DATA")
        return None
    return read_adult(found)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder that holds adult.data")


BENCHMARK = Benchmark(
    "paper-named",
    "paper.named_methods",
    {"trees": trees, "points": points, "thresholds": thresholds, "net": net},
    packages=("privmax", "numpy", "scikit-learn"),
    settings={
        "delta": DELTA,
        "splits": SPLITS,
        "repeats": REPEATS,
        "hours": HOURS,
        "age": AGE,
        "domain": DOMAIN,
    },
    keys=dict.fromkeys(("trees", "points", "thresholds", "net"), ("contender",)),
    arguments=arguments,
)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    BENCHMARK.main()
