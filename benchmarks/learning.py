"""How good private learning is, and how long it takes: PrivateERM against diffprivlib's
classifiers.

    ./dev python -m benchmarks.learning [--part PART] [--group NAME] [--repeats N] [--output FILE]
    ./dev python -m benchmarks.learning --redraw

Parts, all of them unless some are named; a part replaces its own rows and keeps all others:

    accuracy       on examples not learned from, at equal epsilon: some four minutes
    peers          the same of diffprivlib's classifiers: some six minutes
    time           of one fit, for each class and set, and for 10^6 × 100 examples: a minute
    conjunctions   one fit over more than 10^9 conjunctions: minutes at most

diffprivlib runs in the environment of `./dev compare` (learning_peers.py) on the same trials. The
sets are public, so accuracies on them may be looked at; they are no releases. Every bound, grid,
number of literals and direction below was settled before anything was measured, and once.
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
from numpy.typing import NDArray

from benchmarks.harness import (
    DONE,
    LIMIT,
    RESULTS,
    Aim,
    PeakMemory,
    about_run,
    clocked,
    in_child,
    medians,
    note,
    store,
)
from benchmarks.learning_data import (
    CANCER,
    DIGITS,
    EPSILONS,
    WINE,
    Codes,
    Group,
    Trial,
    conjunction,
    digest,
    groups,
    spread,
)
from privmax import Exponential, LargeMargin, NestedMargin, PermuteAndFlip
from privmax.choice import auto
from privmax.learning import PrivateERM
from privmax.learning.classes.conjunctions import Conjunctions, Disjunctions
from privmax.learning.classes.contract import HypothesisClass, Scores, Shape
from privmax.learning.classes.linear import LinearGrid
from privmax.learning.classes.stumps import Stumps
from privmax.learning.classes.trees import Trees
from privmax.learning.source import HypothesisSource
from privmax.mechanisms.contract import Mechanism
from privmax.noise.samplers import uniform_below
from privmax.testing import SeededCoins

RESULT = RESULTS / "learning.json"
ROOT = Path(__file__).parents[1]
DELTA = "1e-6"
DIGITS_KEPT = 6

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


# Accuracy


def accuracy(group: Group, repeats: int | None) -> dict[str, Any]:
    """All contenders on one group of problems."""
    shape = Shape(group.features, group.labels)
    offered = classes(group)
    sizes = {name: one.size(shape) for name, one in offered.items()}
    figures: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    unanswered: dict[tuple[str, str, str], int] = {}
    learned = 0
    for trial in group.trials(repeats):
        learned = len(trial.learn[1])
        majority = np.bincount(trial.learn[1], minlength=group.labels).argmax()
        _add(figures, trial, ("-", "majority", "-"), np.full(len(trial.test[1]), majority))
        for name, hypotheses in offered.items():
            scored = Remembered(hypotheses.score(*trial.learn, shape))
            first = scored.at(scored.maximum(), 0)
            assert first is not None
            best = hypotheses.hypothesis(first, shape)
            _add(figures, trial, (name, "best", "-"), best.predict(trial.test[0]))
            source = HypothesisSource(scored, hypotheses, shape)
            for epsilon in EPSILONS:
                for contender in CONTENDERS:
                    key = name, contender.name, epsilon
                    mechanism = contender.mechanism(epsilon, sizes[name])
                    coins = SeededCoins(
                        "/".join([group.name, *key, str(trial.repeat), str(trial.task)])
                    )
                    for _ in range(group.draws):
                        rule = source.name(mechanism.draw(source.profile, coins))
                        if rule is None:  # as PrivateERM does
                            unanswered[key] = unanswered.get(key, 0) + 1
                            rule = hypotheses.hypothesis(uniform_below(sizes[name], coins), shape)
                        _add(figures, trial, key, rule.predict(trial.test[0]))
    rows = [
        _row(group, key, found, unanswered.get(key, 0), sizes) for key, found in figures.items()
    ]
    fact = {
        "group": group.name,
        "title": group.title,
        "learned": learned,
        "features": group.features,
    }
    fact |= {
        "labels": group.labels,
        "sizes": sizes,
        "repeats": repeats or group.repeats,
        "draws": group.draws,
    }
    fact |= {
        "tasks": _tasks(group),
        "digest": digest(group, repeats),
        "plans": plans(sizes, learned),
    }
    return {"groups": [fact], "accuracy": rows}


def _add(
    figures: dict[Any, list[tuple[int, float]]],
    trial: Trial,
    key: tuple[str, str, str],
    said: Codes,
) -> None:
    figures.setdefault(key, []).append((trial.repeat, float(np.mean(said == trial.test[1]))))


def _row(
    group: Group,
    key: tuple[str, str, str],
    found: list[tuple[int, float]],
    unanswered: int,
    sizes: dict[str, int],
) -> dict[str, Any]:
    name, contender, epsilon = key
    mean, error = spread(found)
    row: dict[str, Any] = {
        "group": group.name,
        "class": name,
        "contender": contender,
        "epsilon": epsilon,
    }
    made = {one.name: one for one in CONTENDERS}.get(contender)
    if made is not None:
        row["mechanism"] = type(made.mechanism(epsilon, sizes[name])).__name__
        row["unanswered"] = round(unanswered / len(found), DIGITS_KEPT)
    return {**row, "accuracy": mean, "error": error, "fits": len(found)}


def _tasks(group: Group) -> int:
    return len({trial.task for trial in group.trials(1)})


def plans(sizes: dict[str, int], learned: int) -> dict[str, str]:
    """By epsilon: the class one would choose knowing only how many examples there are, and the
    sizes of classes.
    """

    def fits(epsilon: str) -> bool:
        lead = PermuteAndFlip(epsilon=epsilon).lead(candidates=sizes["Trees"])
        return lead * PART_OF_N <= learned

    return {epsilon: "Trees" if fits(epsilon) else "Stumps" for epsilon in EPSILONS}


def peers(group: Group, repeats: int | None, python: str | None) -> dict[str, Any]:
    """What diffprivlib's classifiers achieve, in the environment that holds them; on the same
    examples, or not at all.

    python   the interpreter of that environment; by default the one that ./dev compare makes
    """
    command = [python, "-m"] if python else [str(ROOT / "dev"), "compare", "python", "-m"]
    arguments = [
        "benchmarks.learning_peers",
        group.name,
        *(["--repeats", str(repeats)] if repeats else []),
    ]
    single = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }  # as everything here is
    run = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=single, stdout=subprocess.PIPE, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    if answer["digest"] != digest(group, repeats):
        raise SystemExit(f"{group.name}: the two environments have made different examples")
    return {
        "peers": [{**row, "digest": answer["digest"]} for row in answer["rows"]],
        "versions": answer["versions"],
    }


# Time

CALLS, CALL_LIMIT = 3, 300.0
WARM_UP = 200
"""Rows of a first fit, not timed."""

LARGE = (10**6, 100)
"""Examples and features of the largest set."""

TIMED: Final = (CANCER, DIGITS, WINE, "conjunction-100000", "half-space-100000", "near-ties-100000")

FitSteps = Iterator[tuple[float, float] | int | None]


def timed_fit(group: str, name: str) -> FitSteps:
    """In a child: what memory grows by in one fit, then the times of CALLS more."""
    trial = next(groups()[group].trials(1))
    yield from _fits(classes(groups()[group])[name], *trial.learn, groups()[group].labels)


def large_fit() -> FitSteps:
    """The same for the largest set: 64-bit floats, of which one feature tells."""
    n, features = LARGE
    random = np.random.default_rng(6)
    X = random.random((n, features))
    yield from _fits(Stumps(low=0, high=1), X, (X[:, 7] > random.random(n)).astype(np.intp), 2)


def _fits(
    hypotheses: HypothesisClass, X: NDArray[Any], y: Codes, labels: int, calls: int = CALLS
) -> FitSteps:
    learner = PrivateERM(hypotheses, 1, labels=list(range(labels)))
    learner.fit(X[:WARM_UP], y[:WARM_UP])
    memory = PeakMemory()
    learner.fit(X, y)
    yield memory.growth()
    for _ in range(calls):
        yield clocked(lambda: learner.fit(X, y))


def times() -> dict[str, Any]:
    rows = []
    for name in TIMED:
        group = groups()[name]
        rows += [
            {**_about(group, kind, one), **_measured(timed_fit, name, kind)}
            for kind, one in classes(group).items()
        ]
    large = {
        "group": "large",
        "class": "Stumps",
        "examples": LARGE[0],
        "features": LARGE[1],
        "labels": 2,
    }
    large["size"] = Stumps(low=0, high=1).size(Shape(LARGE[1], 2))
    rows.append({**large, **_measured(large_fit)})
    return {"time": rows}


def _about(group: Group, kind: str, hypotheses: HypothesisClass) -> dict[str, Any]:
    examples = len(next(group.trials(1)).learn[1])
    shape = Shape(group.features, group.labels)
    row = {"group": group.name, "class": kind, "examples": examples, "features": group.features}
    return {**row, "labels": group.labels, "size": hypotheses.size(shape)}


def _measured(steps: Callable[..., FitSteps], *arguments: Any) -> dict[str, Any]:
    note(f"time: {' '.join(map(str, arguments)) or 'the largest set'}")
    answers, ending = in_child(steps, *arguments, limit=CALL_LIMIT)
    growth, taken = (answers[0], [tuple(one) for one in answers[1:]]) if answers else (None, [])
    return {**medians(taken, ending, CALL_LIMIT), "growth": growth}


# Conjunctions

SEARCHES: Final = {
    "planted rule": (100_000, 60, 6, True),
    "labels are noise": (100_000, 60, 6, False),
    "planted rule, 100 features": (100_000, 100, 8, True),
}
"""Examples, features, literals at most, and whether there is a rule (x1 and x4 and not x7, one
label in ten wrong).
"""

AIMED = 60
"""Features of the searches that should take less than a minute."""

MINUTE = Aim("one fit over more than 10^9 conjunctions, 10^5 × 60, in a minute", most=1)


def search_fit(name: str) -> FitSteps:
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


def conjunctions() -> dict[str, Any]:
    rows = []
    for name, (n, features, literals, planted) in SEARCHES.items():
        row = {
            "search": name,
            "examples": n,
            "features": features,
            "literals": literals,
            "planted": planted,
        }
        row |= {
            "size": Conjunctions(literals).size(Shape(features, 2)),
            "load": round(os.getloadavg()[0], 2),
        }
        rows.append({**row, **_measured(search_fit, name)})
    return {"conjunctions": rows}


# Storing


def merged(
    before: dict[str, Any], part: str, facts: dict[str, Any], new: dict[str, Any]
) -> dict[str, Any]:
    """A stored result with one part, or some groups of one, measured anew."""
    runs = {run["part"]: run for run in before.get("runs", [])} | {part: {"part": part, **facts}}
    result: dict[str, Any] = {"benchmark": "learning", "run": facts, "settings": settings()}
    result["versions of peers"] = new.pop("versions", before.get("versions of peers", {}))
    result["runs"] = [runs[name] for name in PARTS if name in runs]
    for kind in ("groups", "accuracy", "peers", "time", "conjunctions"):
        if kind in new and part in ("accuracy", "peers"):
            measured = {row["group"] for row in new[kind]}
            rows = [row for row in before.get(kind, []) if row["group"] not in measured] + new[kind]
            result[kind] = sorted(
                rows, key=lambda row: list(groups()).index(row["group"])
            )  # stable
        else:
            result[kind] = new.get(kind, before.get(kind, []))
    return {**result, "aims": judgements(result["conjunctions"])}


def judgements(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Wall-clock time in minutes. A search that was stopped took at least as long as it was
    given.
    """
    found = []
    for row in rows:
        if row["features"] == AIMED:
            taken = {DONE: row.get("wall"), LIMIT: CALL_LIMIT}.get(row["ending"])
            found.append(
                MINUTE.judge(row["search"], {} if taken is None else {"wall clock": taken / 60})
            )
    return found


def settings() -> dict[str, Any]:
    return {
        "epsilons": EPSILONS,
        "delta": DELTA,
        "cells": CELLS,
        "literals": {"else": 3, **LITERALS},
        "directions": DIRECTIONS,
        "plan": f"Trees where the lead is at most 1/{PART_OF_N} of the examples, else Stumps",
        "limit": CALL_LIMIT,
        "calls": CALLS,
    }


def stored(path: Path = RESULT) -> dict[str, Any]:
    """What was measured before."""
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return result


PARTS: Final = ("accuracy", "peers", "time", "conjunctions")


def measure(part: str, options: argparse.Namespace) -> None:
    """One part, stored as it comes."""
    facts = {**about_run(quick=False), "command": "./dev python -m benchmarks.learning"}
    path: Path = options.output
    if part in ("time", "conjunctions"):
        new = times() if part == "time" else conjunctions()
        store(merged(stored(path), part, facts, new), path)
        return
    for name in options.groups or groups():
        group = groups()[name]
        note(f"{part}: {group.title}")
        if part == "peers":
            new = peers(group, options.repeats, options.python)
        else:
            new = accuracy(group, options.repeats)
            new["groups"][0]["source"] = facts["source"]
        store(merged(stored(path), part, facts, new), path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure how good private learning is, and how long it takes."
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, dest="parts", help="only this one; repeatable"
    )
    parser.add_argument(
        "--group",
        action="append",
        choices=list(groups()),
        dest="groups",
        help="only these problems",
    )
    parser.add_argument("--repeats", type=int, help="of every group, instead of its own number")
    parser.add_argument(
        "--python", help="of the environment with diffprivlib (default: that of ./dev compare)"
    )
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--redraw", action="store_true", help="only draw the picture again")
    options = parser.parse_args()
    warnings.simplefilter("ignore", category=UserWarning)
    if not options.redraw:
        for part in options.parts or PARTS:
            measure(part, options)
    if options.output == RESULT:
        from benchmarks.learning_pictures import draw_all

        draw_all(stored())


if __name__ == "__main__":
    main()
