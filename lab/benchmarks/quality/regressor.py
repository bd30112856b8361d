"""How good regressions are: PrivateRegressor beside DP-EBM and diffprivlib's linear regression.

    ./dev python -m lab.benchmarks.quality.regressor [--part ours|peers|invented]

R² and mean absolute error on rows not learned from, at equal epsilon, over ten splits. Settings of
ours are the defaults, which were fixed on the sets of `invented`. `peers` runs in the environment
of `./dev compare` (regressor_peers.py), or by the python that PRIVMAX_COMPARE names, on the same
rows. Peers also run as tuned in hindsight, on the very rows that they are tried on.
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

import numpy as np

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.regressor_data import (
    DELTA,
    EPSILONS,
    KINDS,
    Numbers,
    diabetes,
    digest,
    houses,
    invented,
)
from privmax.learning import PrivateRegressor
from privmax.testing import SeededCoins

ROOT = Path(__file__).parents[3]
REPEATS = 10
SIZES = (400, 4_000, 20_000)

Fit = Callable[[Any, Any, int], Any]
"""Fits rows by a split and its number, and gives the predictions for other rows."""

OURS: dict[str, dict[str, Any]] = {
    "PrivateRegressor": {},
    "PrivateRegressor, loss='absolute'": {"loss": "absolute"},
    "PrivateRegressor, interactions=5": {"interactions": 5},
    "PrivateRegressor, δ = 0": {"delta": "0"},
}


def ours(data: Numbers, epsilon: str, **options: Any) -> Any:
    """Return a learner of ours for this set."""
    given = {"epsilon": epsilon, "delta": DELTA, "targets": data.targets, **options}
    return PrivateRegressor(data.schema, **given)


def measure(data: Numbers, fit: Fit, repeats: int) -> Row:
    """R² in per cent and mean absolute errors, each with the standard error of its mean."""
    squares, errors, seconds = [], [], []
    for repeat, (learn, test) in enumerate(data.splits(repeats)):
        start = time.process_time()
        said = fit(learn, test, repeat)
        seconds.append(time.process_time() - start)
        y = data.y[test]
        squares.append(100 * (1 - float(np.mean((y - said) ** 2) / np.var(y))))
        errors.append(float(np.mean(np.abs(y - said))))
    return {
        "set": data.name,
        "r2": round(float(np.mean(squares)), 1),
        "r2_error": _error(squares),
        "mae": float(f"{np.mean(errors):.4g}"),
        "mae_error": _error(errors),
        "fits": repeats,
        "seconds": round(float(np.median(seconds)), 3),
    }


def _error(found: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return float(f"{np.std(found, ddof=1) / len(found) ** 0.5:.2g}") if len(found) > 1 else 0.0


def contenders(options: argparse.Namespace) -> Iterator[Rows]:
    """All of ours, and how many targets intervals hold."""
    repeats = 2 if options.quick else REPEATS
    for data in (diabetes(), houses()):
        note(f"ours: {data.name}")
        rows = []
        for name, given in OURS.items():
            for epsilon in EPSILONS:
                seed = f"{data.name}/{name}/{epsilon}"
                row = measure(data, _fit(data, epsilon, seed, given), repeats)
                rows.append({**row, "contender": name, "epsilon": epsilon})
        covered = [cover(data, epsilon, repeats) for epsilon in EPSILONS]
        yield {"ours": rows, "intervals": covered, "sets": [_fact(data)]}


def _fit(data: Numbers, epsilon: str, seed: str, given: dict[str, Any]) -> Fit:
    def fit(learn: Any, test: Any, repeat: int) -> Any:
        model = ours(data, epsilon, **{**given, "coins": SeededCoins(f"{seed}/{repeat}")})
        return model.fit(data.X.iloc[learn], data.y[learn]).predict(data.X.iloc[test])

    return fit


def cover(data: Numbers, epsilon: str, repeats: int) -> Row:
    """The share of targets, in rows not learned from, that intervals for 90 % hold."""
    inside, widths = [], []
    for repeat, (learn, test) in enumerate(data.splits(repeats)):
        coins = SeededCoins(f"{data.name}/intervals/{epsilon}/{repeat}")
        model = ours(data, epsilon, intervals=True, coins=coins)
        model.fit(data.X.iloc[learn], data.y[learn])
        low, high = model.predict_interval(data.X.iloc[test]).T
        y = data.y[test]
        inside.append(100 * float(np.mean((low <= y) & (y <= high))))
        widths.append(100 * float(np.mean(high - low)) / (data.targets[1] - data.targets[0]))
    return {
        "set": data.name,
        "epsilon": epsilon,
        "covered": round(float(np.mean(inside)), 1),
        "covered_error": _error(inside),
        "width": round(float(np.mean(widths)), 1),
        "fits": repeats,
    }


def fixed_on(options: argparse.Namespace) -> Iterator[Rows]:
    """The defaults on the invented sets that they were fixed on."""
    rows = []
    for kind in KINDS:
        note(f"invented: {kind}")
        for size in SIZES[:1] if options.quick else SIZES:
            data = invented(kind, size * 5 // 4)
            for epsilon in ("0.1", "1", "8"):
                row = measure(data, _fit(data, epsilon, f"{kind}/{size}/{epsilon}", {}), 3)
                rows.append({**row, "rows": size, "epsilon": epsilon})
    yield {"invented": rows}


def peers(options: argparse.Namespace) -> Iterator[Rows]:
    """DP-EBM, diffprivlib and learners that are not private, in the environment that has them."""
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    named = os.environ.get("PRIVMAX_COMPARE")
    start = [named] if named else [str(ROOT / "dev"), "compare", "python"]
    if named:
        single["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    for data in (diabetes(), houses()):
        note(f"peers: {data.name}")
        command = [*start, "-m", "lab.benchmarks.quality.regressor_peers", data.name]
        command += [str(2 if options.quick else REPEATS)]
        run = subprocess.run(
            command, cwd=ROOT, env=single, stdout=subprocess.PIPE, text=True, check=True
        )
        answer: Row = json.loads(run.stdout.splitlines()[-1])
        if answer["digest"] != digest(data):
            raise SystemExit(f"{data.name}: the two environments have made different rows")
        yield {"peers": answer["rows"], "versions": answer["versions"]}


def _fact(data: Numbers) -> Row:
    return {
        "set": data.name,
        "rows": len(data.y),
        "columns": len(data.bounds),
        "digest": digest(data),
    }


BENCHMARK = Benchmark(
    "regressor",
    "quality.regressor",
    {"ours": contenders, "peers": peers, "invented": fixed_on},
    packages=("privmax", "numpy", "scikit-learn"),
    settings={"epsilons": EPSILONS, "delta": DELTA, "repeats": REPEATS, "trained": 0.8},
    keys={"ours": ("set",), "intervals": ("set",), "sets": ("set",), "peers": ("set",)},
)

if __name__ == "__main__":
    warnings.simplefilter("ignore", category=UserWarning)
    BENCHMARK.main()
