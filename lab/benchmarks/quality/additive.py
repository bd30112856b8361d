"""How good additive models are: PrivateGAM against DP-EBM, diffprivlib and PrivateERM.

    ./dev python -m lab.benchmarks.quality.additive --data FOLDER [--part adult|sets|wide|...]

Accuracy and area under the curve on rows not learned from, at equal epsilon. FOLDER, or
PRIVMAX_DATA, holds adult.data (UCI Adult). `peers` run in the environment of `./dev compare`
(additive_peers.py) on the same rows. All settings of ours are the defaults, which were fixed on
other data; peers also run as tuned in hindsight, on the very rows that they are tried on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.metrics import roc_auc_score

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.additive_data import (
    DELTA,
    EPSILONS,
    TRAINED,
    Set,
    alike,
    census,
    checkered,
    digest,
    read_adult,
    shipped,
    widen,
)
from lab.benchmarks.quality.profiles import folder
from privmax.learning import PrivateERM, PrivateGAM, Stumps, Trees
from privmax.learning.additive.fitting import TableFit
from privmax.learning.additive.groups import MANY
from privmax.testing import SeededCoins

ROOT = Path(__file__).parents[3]
REPEATS = 10
WIDE = (100, 500)
SIZES = (100, 300, 1_000, 3_000, 10_000)
CROSS_EPSILONS = ("0.1", "0.3", "1")

Fit = Callable[[Set, Any, Any, str, str], Any]
"""Fits rows at an epsilon with a seed, and gives the chances, or labels, of other rows."""


def gam(delta: str = DELTA, **options: Any) -> Fit:
    def fit(data: Set, learn: Any, test: Any, epsilon: str, seed: str) -> Any:
        coins = SeededCoins(seed)
        model = PrivateGAM(data.schema, epsilon, delta, labels=[0, 1], coins=coins, **options)
        model.fit(data.X.iloc[learn], data.y[learn])
        return model.predict_proba(data.X.iloc[test])[:, 1]

    return fit


def one_pass(delta: str = DELTA) -> Fit:
    """Every column once, in turn."""

    def fit(data: Set, *rest: Any) -> Any:
        return gam(delta, order="cyclic", rounds=data.schema.features)(data, *rest)

    return fit


def erm(kind: Any, cells: int) -> Fit:
    """One rule over numbers, and over a column of 0 and 1 for each declared category."""

    def fit(data: Set, learn: Any, test: Any, epsilon: str, seed: str) -> Any:
        X = spread_out(data)
        cuts = {"low": X.min(axis=0) * 0, "high": np.ones(X.shape[1]), "cells": cells}
        model = PrivateERM(kind(**cuts), epsilon, labels=[0, 1], coins=SeededCoins(seed))
        return model.fit(X[learn], data.y[learn]).predict(X[test])

    return fit


def spread_out(data: Set) -> Any:
    """All columns as numbers from 0 to 1."""
    parts = []
    for name, column in zip(data.schema.names, data.schema.columns, strict=True):
        if column.ordered:
            low, high = data.bounds[name]
            parts.append(np.clip((data.X[name].to_numpy(np.float64) - low) / (high - low), 0, 1))
        else:
            codes = column.codes(data.X[name])
            parts += [(codes == cell).astype(np.float64) for cell in range(column.cells)]
    return np.column_stack(parts)


OURS: dict[str, Fit] = {
    "PrivateGAM": gam(),
    "PrivateGAM, interactions=5": gam(interactions=5),
    "PrivateGAM, one pass in turn": one_pass(),
    "PrivateGAM, δ = 0": gam("0"),
    "PrivateERM(Trees), δ = 0": erm(Trees, 4),
}


def measure(
    data: Set, name: str, fit: Fit, epsilon: str, repeats: int, rows: int | None = None
) -> Row:
    """The mean accuracy and area under the curve in per cent, with its standard error."""
    accuracies, areas, seconds = [], [], []
    for repeat, (learn, test) in enumerate(data.splits(repeats, rows)):
        start = time.process_time()
        said = fit(data, learn, test, epsilon, f"{data.name}/{name}/{epsilon}/{repeat}")
        seconds.append(time.process_time() - start)
        accuracies.append(100 * float(np.mean((said > 0.5) == data.y[test])))
        areas.append(100 * float(roc_auc_score(data.y[test], said)))
    return {
        "set": data.name,
        "contender": name,
        "epsilon": epsilon,
        **figures(accuracies, areas),
        "seconds": round(float(np.median(seconds)), 3),
    }


def figures(accuracies: Sequence[float], areas: Sequence[float]) -> Row:
    """Means, with standard errors."""

    def error(found: Sequence[float]) -> float:
        return round(float(np.std(found, ddof=1)) / len(found) ** 0.5, 2) if len(found) > 1 else 0.0

    return {
        "accuracy": round(float(np.mean(accuracies)), 2),
        "auc": round(float(np.mean(areas)), 2),
        "error": error(accuracies),
        "auc_error": error(areas),
        "fits": len(accuracies),
    }


def adult(options: argparse.Namespace) -> Iterator[Rows]:
    """All of ours on Adult."""
    data = _adult(options)
    if data is None:
        return
    for name, fit in OURS.items():
        note(f"adult: {name}")
        repeats = 2 if options.quick else 3 if "Trees" in name else REPEATS
        rows = [measure(data, name, fit, epsilon, repeats) for epsilon in EPSILONS]
        yield {"adult": rows, "sets": [_fact(data)]}


def accounting(options: argparse.Namespace) -> Iterator[Rows]:
    """The defaults on Adult with noise by privacy loss distributions."""
    data = _adult(options)
    if data is None:
        return
    name, repeats = "PrivateGAM, accounting='pld'", 2 if options.quick else REPEATS
    fit = gam(accounting="pld")
    yield {"adult": [measure(data, name, fit, epsilon, repeats) for epsilon in EPSILONS]}


def sets(options: argparse.Namespace) -> Iterator[Rows]:
    """Sets that scikit-learn ships, and the checkered one."""
    for data in [*shipped(), checkered()]:
        note(f"sets: {data.name}")
        contenders = dict(OURS) if data.name == "checkered" else {"PrivateGAM": OURS["PrivateGAM"]}
        contenders |= {"PrivateGAM, δ = 0": gam("0"), "PrivateERM(Stumps), δ = 0": erm(Stumps, 16)}
        contenders.pop("PrivateGAM, one pass in turn", None)
        repeats = 2 if options.quick else REPEATS
        rows = [
            measure(data, name, fit, epsilon, repeats)
            for name, fit in contenders.items()
            for epsilon in EPSILONS
        ]
        yield {"small": rows, "sets": [_fact(data)]}


def neighbors(fit: Fit) -> Fit:
    """The same with pairs of eight groups of neighboring cells, whatever was released."""

    def fitted(*given: Any) -> Any:
        with mock.patch.object(TableFit, "groups", lambda self: self.layout.groups(MANY)):
            return fit(*given)

    return fitted


def groups(options: argparse.Namespace) -> Iterator[Rows]:
    """Cells in groups for pairs, on invented data."""
    paired = "PrivateGAM, interactions=5"
    contenders = {
        "PrivateGAM": OURS["PrivateGAM"],
        paired: OURS[paired],
        f"{paired}, eight groups of neighbors": neighbors(OURS[paired]),
    }
    for data, rows in ((alike(), None), (census(), None), (checkered(), 4_000)):
        note(f"groups: {data.name}, {rows or 'all'} rows")
        repeats = 2 if options.quick else REPEATS
        found = [
            measure(data, name, fit, epsilon, repeats, rows)
            for name, fit in contenders.items()
            for epsilon in EPSILONS
        ]
        size = rows or round(TRAINED * len(data.y))
        yield {"groups": [{**row, "rows": size} for row in found], "sets": [_fact(data)]}


def wide(options: argparse.Namespace) -> Iterator[Rows]:
    """Adult with columns of noise added."""
    data = _adult(options)
    if data is None:
        return
    names = ("PrivateGAM", "PrivateGAM, one pass in turn", "PrivateGAM, δ = 0")
    for columns in WIDE[:1] if options.quick else WIDE:
        wider = widen(data, columns)
        note(f"wide: {wider.name}")
        rows = [
            measure(wider, name, OURS[name], epsilon, 1 if options.quick else REPEATS)
            for name in names
            for epsilon in ("0.5", "1", "2")
        ]
        yield {"wide": rows, "sets": [_fact(wider)]}


def crossover(options: argparse.Namespace) -> Iterator[Rows]:
    """Few rows of Adult: where one rule is better than a sum of tables."""
    data = _adult(options)
    if data is None:
        return
    contenders = {"PrivateGAM": gam(), "PrivateERM(Stumps), δ = 0": erm(Stumps, 16)}
    contenders["PrivateGAM, rounds=5"] = gam(rounds=5)
    for rows in SIZES:
        note(f"crossover: {rows} rows")
        found = [
            {
                **measure(data, name, fit, epsilon, 2 if options.quick else REPEATS, rows),
                "rows": rows,
                "product": round(rows * float(epsilon)),
            }
            for name, fit in contenders.items()
            for epsilon in CROSS_EPSILONS
        ]
        yield {"crossover": found}


def peers(options: argparse.Namespace) -> Iterator[Rows]:
    """DP-EBM, diffprivlib and learners that are not private, in the environment that has them."""
    data = _adult(options)
    found = folder(options.data)
    if data is None or found is None:
        return
    wider = [widen(data, columns) for columns in WIDE]
    known = {one.name: one for one in [data, *shipped(), checkered(), *wider]}
    for name in options.set or known:
        note(f"peers: {name}")
        answer = ask_peers(found, known[name], 1 if options.quick else options.repeats)
        yield {"peers": answer["rows"], "versions": answer["versions"]}


def ask_peers(found: Path, data: Set, repeats: int, *more: str) -> Row:
    """What additive_peers.py answers about a set, in the environment that has the peers.

    That is `./dev compare`, or the one whose Python PRIVMAX_COMPARE names. `more`: rows, epsilons.
    """
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    chosen = os.environ.get("PRIVMAX_COMPARE")
    command = [chosen] if chosen else [str(ROOT / "dev"), "compare", "python"]
    command += ["-m", "lab.benchmarks.quality.additive_peers", str(found), data.name, str(repeats)]
    run = subprocess.run(
        [*command, *more], cwd=ROOT, env=single, stdout=subprocess.PIPE, text=True, check=True
    )
    answer: Row = json.loads(run.stdout.splitlines()[-1])
    if answer["digest"] != digest(data):
        raise SystemExit(f"{data.name}: the two environments have made different rows")
    return answer


def leak(options: argparse.Namespace) -> Iterator[Rows]:
    """In how many fits DP-EBM names a category that one person of 2,000 has; ours names none."""
    command = [str(ROOT / "dev"), "compare", "python", "-m"]
    command += ["lab.benchmarks.quality.additive_peers", "-", "leak", "1"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: Row = json.loads(run.stdout.splitlines()[-1])
    yield {"leak": answer["rows"]}


def _adult(options: argparse.Namespace) -> Set | None:
    found = folder(options.data)
    if found is None or not (found / "adult.data").exists():
        note("no adult.data: give --data FOLDER, or PRIVMAX_DATA")
        return None
    return read_adult(found)


def _fact(data: Set) -> Row:
    return {
        "set": data.name,
        "rows": len(data.y),
        "columns": data.schema.features,
        "positive": round(100 * float(np.mean(data.y)), 1),
        "digest": digest(data),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder that holds adult.data")
    parser.add_argument("--set", action="append", help="of peers: only these sets")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of peers: how many splits")


BENCHMARK = Benchmark(
    "additive",
    "quality.additive",
    {
        "adult": adult,
        "accounting": accounting,
        "sets": sets,
        "groups": groups,
        "wide": wide,
        "crossover": crossover,
        "peers": peers,
        "leak": leak,
    },
    packages=("privmax", "numpy", "scikit-learn"),
    settings={"epsilons": EPSILONS, "delta": DELTA, "repeats": REPEATS, "trained": 0.8},
    keys={
        "sets": ("set",),
        "adult": ("contender",),
        "small": ("set",),
        "groups": ("set",),
        "wide": ("set",),
        "crossover": ("rows",),
        "peers": ("set",),
    },
    arguments=arguments,
)

if __name__ == "__main__":
    warnings.simplefilter("ignore", category=UserWarning)
    BENCHMARK.main()
