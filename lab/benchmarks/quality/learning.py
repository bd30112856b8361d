"""How good private learning is: PrivateERM against diffprivlib's classifiers.

    ./dev python -m lab.benchmarks.quality.learning [--part accuracy|peers] [--group NAME]

Accuracy on examples not learned from, at equal epsilon. `peers` are diffprivlib's classifiers in
the environment of `./dev compare` (learning_peers.py), on the same trials. The sets are public, so
accuracies on them may be looked at; they are no releases. Every bound, grid, number of literals and
direction below was settled before anything was measured, and once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.learning_data import (
    EPSILONS,
    Codes,
    Group,
    Trial,
    digest,
    groups,
    spread,
)
from privmax import Exponential, LargeMargin, NestedMargin, PermuteAndFlip
from privmax.choice import auto
from privmax.learning.classes.conjunctions import Conjunctions, Disjunctions
from privmax.learning.classes.contract import HypothesisClass, Scores, Shape
from privmax.learning.classes.linear import LinearGrid
from privmax.learning.classes.stumps import Stumps
from privmax.learning.classes.trees import Trees
from privmax.learning.source import HypothesisSource
from privmax.mechanisms.contract import Mechanism
from privmax.noise.samplers import uniform_below
from privmax.testing import SeededCoins

ROOT = Path(__file__).parents[3]
DELTA = "1e-6"

CELLS = {"Stumps": 16, "Trees": 8, "Conjunctions": 4, "Disjunctions": 4}
"""Equal cells between the public bounds of a feature."""

LITERALS = {"conjunction": 4}
"""Tests in a conjunction or disjunction at most, by kind of set; else 3."""

DIRECTIONS, SPREAD = 1000, 73.3 * 127
"""Directions of a LinearGrid, by the public seed 6. A weight is typically 73.3 and a place on the
grid at most 127, so w·z is rarely farther from 0 than SPREAD·√features: there are nine offsets
evenly from minus that to that."""

PART_OF_N = 10
"""Planning: trees, if permute-and-flip needs a lead of at most a tenth of the examples among so
many; else stumps.
"""


def classes(group: Group) -> dict[str, HypothesisClass]:
    """The public classes that are tried on a group."""
    kind = group.name.rpartition("-")[0]
    low, high = group.low.tolist(), group.high.tolist()
    if (group.low == 0).all() and (group.high == 1).all():  # bits
        grid: dict[str, Any] = {}  # which conjunctions take for bits
        found: dict[str, HypothesisClass] = {
            "Stumps": Stumps(thresholds=[0.5]),
            "Trees": Trees(thresholds=[0.5]),
        }
    else:
        grids = {name: {"low": low, "high": high, "cells": cells} for name, cells in CELLS.items()}
        grid = grids["Conjunctions"]
        found = {"Stumps": Stumps(**grids["Stumps"]), "Trees": Trees(**grids["Trees"])}
    if group.labels == 2 and kind != "near-ties":
        if kind != "half-space":
            literals = LITERALS.get(kind, 3)
            found["Conjunctions"] = Conjunctions(literals, **grid)
            found["Disjunctions"] = Disjunctions(literals, **grid)
        if kind != "conjunction":
            step = SPREAD * group.features**0.5 / 4
            offsets = [round(step * place) for place in range(-4, 5)]
            found["LinearGrid"] = LinearGrid.random(
                directions=DIRECTIONS,
                features=group.features,
                seed=6,
                offsets=offsets,
                low=low,
                high=high,
            )
    return found


@dataclass(frozen=True)
class Contender:
    """A way to choose from a class."""

    name: str
    mechanism: Callable[[str, int], Mechanism]
    """Of epsilon and the size of the class."""


def _auto(delta: str, neighbors: str) -> Callable[[str, int], Mechanism]:
    return lambda epsilon, size: auto(
        epsilon=epsilon, delta=delta, universe=size, neighbors=neighbors
    )[0]


CONTENDERS: Final = (
    Contender("auto", _auto("0", "add-remove")),
    Contender("auto-delta", _auto(DELTA, "add-remove")),
    Contender("nested-margin", lambda epsilon, size: NestedMargin(epsilon=epsilon, delta=DELTA)),
    Contender("large-margin", lambda epsilon, size: LargeMargin(epsilon=epsilon, delta=DELTA)),
    Contender("exponential", lambda epsilon, size: Exponential(epsilon=epsilon)),
    Contender("auto-replace", _auto("0", "replace")),
    Contender(
        "exponential-replace",
        lambda epsilon, size: Exponential(epsilon=epsilon, neighbors="replace"),
    ),
)


class Remembered:
    """`Scores` that answers once what is asked again and again: the same class is released from
    many times.
    """

    def __init__(self, scored: Scores) -> None:
        self._scored = scored
        self.maximum = cache(scored.maximum)
        self.at = cache(scored.at)
        self.at_or_below = cache(scored.at_or_below)
        self._deepest: tuple[int, Any] | None = None

    def histogram(self, above: int) -> list[tuple[int, int]]:
        if self._deepest is None or above < self._deepest[0]:
            self._deepest = above, self._scored.histogram(above)
        return [level for level in self._deepest[1] if level[0] > above]


def accuracy(options: argparse.Namespace) -> Iterator[Rows]:
    """All contenders on one group of problems after the other."""
    for name in options.group or groups():
        note(f"accuracy: {name}")
        group = groups()[name]
        yield group_accuracy(group, 1 if options.quick else group.repeats)


def group_accuracy(group: Group, repeats: int) -> Rows:
    shape = Shape(group.features, group.labels)
    offered = classes(group)
    sizes = {name: one.size(shape) for name, one in offered.items()}
    figures: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    unanswered: dict[tuple[str, str, str], int] = {}
    learned, tasks = 0, set()

    def add(trial: Trial, key: tuple[str, str, str], said: Codes) -> None:
        right = float(np.mean(said == trial.test[1]))
        figures.setdefault(key, []).append((trial.repeat, right))

    for trial in group.trials(repeats):
        learned = len(trial.learn[1])
        tasks.add(trial.task)
        majority = np.bincount(trial.learn[1], minlength=group.labels).argmax()
        add(trial, ("-", "majority", "-"), np.full(len(trial.test[1]), majority))
        for name, hypotheses in offered.items():
            scored = Remembered(hypotheses.score(*trial.learn, shape))
            first = scored.at(scored.maximum(), 0)
            assert first is not None
            best = hypotheses.hypothesis(first, shape)
            add(trial, (name, "best", "-"), best.predict(trial.test[0]))
            source = HypothesisSource(scored, hypotheses, shape)
            for epsilon in EPSILONS:
                for contender in CONTENDERS:
                    key = name, contender.name, epsilon
                    mechanism = contender.mechanism(epsilon, sizes[name])
                    seed = [group.name, *key, str(trial.repeat), str(trial.task)]
                    coins = SeededCoins("/".join(seed))
                    for _ in range(group.draws):
                        rule = source.name(mechanism.draw(source.profile, coins))
                        if rule is None:  # as PrivateERM does
                            unanswered[key] = unanswered.get(key, 0) + 1
                            rule = hypotheses.hypothesis(uniform_below(sizes[name], coins), shape)
                        add(trial, key, rule.predict(trial.test[0]))
    rows = [_row(group, key, found, unanswered, sizes) for key, found in figures.items()]
    fact: Row = {"group": group.name, "title": group.title, "learned": learned}
    fact |= {"features": group.features, "labels": group.labels, "sizes": sizes}
    fact |= {"repeats": repeats, "draws": group.draws, "tasks": len(tasks)}
    fact |= {"digest": digest(group, repeats), "plans": plans(sizes, learned)}
    planned = [
        {**row, "class": "planned"}
        for row in rows
        if row["contender"] in ("auto", "auto-replace", "exponential")
        and fact["plans"][row["epsilon"]] == row["class"]
    ]
    return {"groups": [fact], "accuracy": [*planned, *rows]}


def _row(
    group: Group,
    key: tuple[str, str, str],
    found: list[tuple[int, float]],
    unanswered: dict[tuple[str, str, str], int],
    sizes: dict[str, int],
) -> Row:
    name, contender, epsilon = key
    mean, error = spread(found)
    row: Row = {"group": group.name, "class": name, "contender": contender, "epsilon": epsilon}
    made = {one.name: one for one in CONTENDERS}.get(contender)
    if made is not None:
        row["mechanism"] = type(made.mechanism(epsilon, sizes[name])).__name__
        row["unanswered"] = round(unanswered.get(key, 0) / len(found), 6)
    return {**row, "accuracy": mean, "error": error, "fits": len(found)}


def plans(sizes: dict[str, int], learned: int) -> dict[str, str]:
    """By epsilon: the class to choose, knowing only the examples' number and classes' sizes."""

    def fits(epsilon: str) -> bool:
        lead = PermuteAndFlip(epsilon=epsilon).lead(candidates=sizes["Trees"])
        return lead * PART_OF_N <= learned

    return {epsilon: "Trees" if fits(epsilon) else "Stumps" for epsilon in EPSILONS}


def peers(options: argparse.Namespace) -> Iterator[Rows]:
    """diffprivlib's classifiers, in the environment that holds them; on the same examples."""
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as all is here
    for name in options.group or groups():
        note(f"peers: {name}")
        group = groups()[name]
        repeats = 1 if options.quick else group.repeats
        command = [str(ROOT / "dev"), "compare", "python", "-m"]
        command += ["lab.benchmarks.quality.learning_peers", name, str(repeats)]
        run = subprocess.run(
            command, cwd=ROOT, env=single, stdout=subprocess.PIPE, text=True, check=True
        )
        answer: Row = json.loads(run.stdout.splitlines()[-1])
        if answer["digest"] != digest(group, repeats):
            raise SystemExit(f"{name}: the two environments have made different examples")
        rows = [{**row, "digest": answer["digest"]} for row in answer["rows"]]
        yield {"peers": rows, "versions": answer["versions"]}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", action="append", choices=groups(), help="only these problems")


BENCHMARK = Benchmark(
    "learning",
    "quality.learning",
    {"accuracy": accuracy, "peers": peers},
    packages=("privmax", "numpy", "scikit-learn"),
    settings={
        "epsilons": EPSILONS,
        "delta": DELTA,
        "cells": CELLS,
        "literals": {"else": 3, **LITERALS},
        "directions": DIRECTIONS,
        "plan": f"Trees where the lead is at most 1/{PART_OF_N} of the examples, else Stumps",
    },
    keys={"groups": ("group",), "accuracy": ("group",), "peers": ("group",)},
    arguments=arguments,
)

if __name__ == "__main__":
    warnings.simplefilter("ignore", category=UserWarning)
    BENCHMARK.main()
