"""How long `PrivateERM` takes: one fit for each class and set, and over many conjunctions.

    ./dev python -m lab.benchmarks.speed.learning [--part time|conjunctions]

Each row is a process of its own: a first fit on 200 rows is not counted, then one is made under the
gauge of memory and three are timed. A search over conjunctions is made once, and stopped after 300
seconds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import (
    Benchmark,
    PeakMemory,
    Row,
    Rows,
    Times,
    clocked,
    in_child,
    medians,
    note,
)
from lab.benchmarks.quality.learning import classes
from lab.benchmarks.quality.learning_data import CANCER, DIGITS, WINE, Codes, conjunction, groups
from privmax.learning import PrivateERM
from privmax.learning.classes.conjunctions import Conjunctions
from privmax.learning.classes.contract import HypothesisClass, Shape
from privmax.learning.classes.stumps import Stumps

CALLS, LIMIT = 3, 300.0
WARM_UP = 200
"""Rows of a first fit, not timed."""

LARGE = (10**6, 100)
"""Examples and features of the largest set."""

TIMED: Final = (CANCER, DIGITS, WINE, "conjunction-100000", "half-space-100000", "near-ties-100000")

SEARCHES: Final = {
    "planted rule": (100_000, 60, 6, True),
    "labels are noise": (100_000, 60, 6, False),
    "planted rule, 100 features": (100_000, 100, 8, True),
}
"""Examples, features, literals at most, and whether there is a rule (x1 and x4 and not x7, one
label in ten wrong).
"""

Steps = Iterator[Times | int | None]


def timed_fit(group: str, name: str) -> Steps:
    """In a child: what memory grows by in one fit, then the times of CALLS more."""
    trial = next(groups()[group].trials(1))
    yield from _fits(classes(groups()[group])[name], *trial.learn, groups()[group].labels)


def large_fit() -> Steps:
    """The same for the largest set: 64-bit floats, of which one feature tells."""
    random = np.random.default_rng(6)
    X = random.random(LARGE)
    y = (X[:, 7] > random.random(LARGE[0])).astype(np.intp)
    yield from _fits(Stumps(low=0, high=1), X, y, 2)


def _fits(hypotheses: HypothesisClass, X: NDArray[Any], y: Codes, labels: int) -> Steps:
    learner = PrivateERM(hypotheses, 1, labels=list(range(labels)))
    learner.fit(X[:WARM_UP], y[:WARM_UP])
    memory = PeakMemory()
    learner.fit(X, y)
    yield memory.growth()
    for _ in range(CALLS):
        yield clocked(lambda: learner.fit(X, y))


def search_fit(name: str) -> Steps:
    """In a child: one fit, whose memory and time are both measured; the second is not faster."""
    n, features, literals, planted = SEARCHES[name]
    random = np.random.default_rng(6)
    X, y = conjunction(random, n, features)
    if not planted:
        y = (random.random(n) < 0.5).astype(np.intp)
    learner = PrivateERM(Conjunctions(literals), 1, labels=[0, 1])
    learner.fit(X[:WARM_UP, :3], y[:WARM_UP])  # compiles, or loads what was compiled
    memory = PeakMemory()
    taken = clocked(lambda: learner.fit(X, y))
    yield memory.growth()
    yield taken


def _measured(steps: Callable[..., Steps], *arguments: Any) -> Row:
    note(f"{steps.__name__} {' '.join(arguments)}")
    answers, ending = in_child(steps, *arguments, limit=LIMIT)
    growth, taken = (answers[0], [tuple(one) for one in answers[1:]]) if answers else (None, [])
    return {**medians(taken, ending, LIMIT), "growth": growth}


def times(options: argparse.Namespace) -> Rows:
    rows: list[Row] = []
    for name in TIMED[:1] if options.quick else TIMED:
        group = groups()[name]
        shape = Shape(group.features, group.labels)
        facts: Row = {"group": name, "title": group.title.split(",")[0]}
        facts["examples"] = len(next(group.trials(1)).learn[1])
        facts |= {"features": group.features, "labels": group.labels}
        for kind, one in classes(group).items():
            found = _measured(timed_fit, name, kind)
            rows.append({**facts, "class": kind, "size": one.size(shape), **found})
    if not options.quick:
        facts = {"group": "large", "title": "one feature of 100 tells", "class": "Stumps"}
        facts |= {"examples": LARGE[0], "features": LARGE[1], "labels": 2}
        facts["size"] = Stumps(low=0, high=1).size(Shape(LARGE[1], 2))
        rows.append({**facts, **_measured(large_fit)})
    return {"time": rows}


def conjunctions(options: argparse.Namespace) -> Rows:
    rows: list[Row] = []
    for name, (n, features, literals, planted) in SEARCHES.items():
        if options.quick and not planted:
            continue
        row = {"search": name, "examples": n, "features": features, "literals": literals}
        row["size"] = Conjunctions(literals).size(Shape(features, 2))
        row["load"] = round(os.getloadavg()[0], 2)
        rows.append({**row, **_measured(search_fit, name)})
    return {"conjunctions": rows}


if __name__ == "__main__":
    Benchmark(
        "learning-time",
        "speed.learning",
        {"time": times, "conjunctions": conjunctions},
        packages=("privmax", "numpy", "numba", "scikit-learn"),
        settings={"limit": LIMIT, "calls": CALLS},
    ).main()
