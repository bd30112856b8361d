"""DP-EBM, diffprivlib's logistic regression and learners that are not private, on the rows of
additive.py. Prints a line of JSON.

    ./dev compare python -m lab.benchmarks.quality.additive_peers FOLDER SET REPEATS [ROWS EPSILON]

DP-EBM is told which columns are numbers, with their bounds; logistic regression gets numbers on
−1 … 1 and a column of 0 and 1 for each category, and the norm that follows. "Tuned in hindsight" is
the best of a grid on the very rows that it is tried on, which nobody can have under privacy.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.harness import Row, version
from lab.benchmarks.quality.additive_data import (
    DELTA,
    EPSILONS,
    Set,
    checkered,
    digest,
    read_adult,
    shipped,
    widen,
)
from lab.benchmarks.quality.learning_peers import _logistic_regression

GRID_REPEATS = 1
TUNED_COLUMNS = 200
"""Where epsilons are named, sets of more columns are not tuned: a fit takes a minute."""

EBM_GRID = [
    {"learning_rate": rate, "max_rounds": rounds}
    for rate in (0.05, 0.2, 0.5, 1.0)
    for rounds in (5, 20)
]
LOGISTIC_GRID = [{"C": strength} for strength in (0.001, 0.01, 0.1)]
LEAK_FITS, LEAK_ROWS = 40, 2_000

Fit = Callable[[Set, Any, Any, str, int, dict[str, Any]], Any]


def ebm(data: Set, learn: Any, test: Any, epsilon: str, seed: int, options: dict[str, Any]) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier

    types = ["continuous" if name in data.bounds else "nominal" for name in data.X]
    bounds = {place: data.bounds[name] for place, name in enumerate(data.X) if name in data.bounds}
    model = DPExplainableBoostingClassifier(
        epsilon=float(epsilon),
        delta=float(DELTA),
        feature_types=types,
        privacy_bounds=bounds,
        random_state=seed,
        **options,
    )
    model.fit(data.X.iloc[learn], data.y[learn])
    return model.predict_proba(data.X.iloc[test])[:, 1]


def logistic(
    data: Set, learn: Any, test: Any, epsilon: str, seed: int, options: dict[str, Any]
) -> Any:
    X, norm = one_hot(data)
    model = _logistic_regression(float(epsilon), norm, np.random.RandomState(seed))
    vars(model).update(options)  # its constructor declares none
    model.fit(X[learn], data.y[learn])
    return model.predict_proba(X[test])[:, 1]


def one_hot(data: Set) -> tuple[Any, float]:
    """Numbers on −1 … 1, and a column of 0 and 1 for each declared category; and a bound on the
    norm of a row.
    """
    parts = []
    for name, column in zip(data.schema.names, data.schema.columns, strict=True):
        if column.ordered:
            low, high = data.bounds[name]
            numbers = data.X[name].to_numpy(np.float64)
            parts.append(np.clip(2 * (numbers - low) / (high - low) - 1, -1, 1))
        else:
            codes = column.codes(data.X[name])
            parts += [(codes == cell).astype(np.float64) for cell in range(column.cells)]
    return np.column_stack(parts), data.schema.features**0.5


def not_private(data: Set, kind: str, learn: Any, test: Any, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    X, _ = one_hot(data)
    if kind == "majority":
        return np.full(len(test), np.mean(data.y[learn]))
    boosted = kind == "gradient boosting"
    model = HistGradientBoostingClassifier() if boosted else LogisticRegression(max_iter=1000)
    return model.fit(X[learn], data.y[learn]).predict_proba(X[test])[:, 1]


def measure(
    data: Set, fit: Callable[[Any, Any, int], Any], repeats: int, rows: int | None = None
) -> Row:
    from sklearn.metrics import roc_auc_score

    from lab.benchmarks.quality.additive import figures

    accuracies, areas, seconds = [], [], []
    for repeat, (learn, test) in enumerate(data.splits(repeats, rows)):
        start = time.process_time()
        said = fit(learn, test, repeat)
        seconds.append(time.process_time() - start)
        accuracies.append(100 * float(np.mean((said > 0.5) == data.y[test])))
        areas.append(100 * float(roc_auc_score(data.y[test], said)))
    spent = {"seconds": round(float(np.median(seconds)), 3)}
    return {"set": data.name, **figures(accuracies, areas), **spent}


def contend(
    data: Set, repeats: int, rows: int | None = None, epsilons: Sequence[str] = ()
) -> Iterator[Row]:
    """All of them, at their defaults and tuned in hindsight, on so many rows of a set."""
    plainly = bool(epsilons) and data.schema.features > TUNED_COLUMNS
    epsilons = epsilons or (("0.5", "1", "2") if data.schema.features > 100 else EPSILONS)
    for kind in ("majority", "logistic regression", "gradient boosting"):
        row = measure(data, partial(not_private, data, kind), repeats, rows)
        yield {**row, "contender": f"{kind}, not private", "epsilon": "-"}
    learners: dict[str, tuple[Fit, list[dict[str, Any]]]] = {
        "DP-EBM": (ebm, EBM_GRID),
        "diffprivlib LogisticRegression": (logistic, LOGISTIC_GRID),
    }
    plain = {}
    for name, (fit, _) in learners.items():
        for epsilon in epsilons:
            row = measure(data, _at(data, fit, epsilon, {}), repeats, rows)
            plain[name, epsilon] = row
            yield {**row, "contender": name, "epsilon": epsilon}
    for name, (fit, grid) in () if plainly else learners.items():
        for epsilon in epsilons:
            fits = [_at(data, fit, epsilon, one) for one in grid]
            tried = [measure(data, one, GRID_REPEATS, rows) for one in fits]
            best = grid[int(np.argmax([one["accuracy"] for one in tried]))]
            tuned = measure(data, _at(data, fit, epsilon, best), repeats, rows)
            row = max(tuned, plain[name, epsilon], key=lambda row: row["accuracy"])
            told = {"contender": f"{name}, tuned in hindsight", "epsilon": epsilon}
            chosen = ", ".join(f"{key}={value}" for key, value in best.items())
            yield {**row, **told, "setting": chosen}


def _at(data: Set, fit: Fit, epsilon: str, options: dict[str, Any]) -> Callable[..., Any]:
    """A fit at one epsilon, with these settings."""
    return lambda learn, test, seed: fit(data, learn, test, epsilon, seed, options)


def leaks() -> Iterator[Row]:
    """How often DP-EBM names a category that one person of 2,000 has."""
    import pandas as pd
    from interpret.privacy import DPExplainableBoostingClassifier

    random = np.random.default_rng(20)
    for epsilon in ("0.1", "1", "4"):
        named = 0
        for fit in range(LEAK_FITS):
            job = random.choice(["clerk", "driver", "nurse", "teacher"], LEAK_ROWS).astype(object)
            job[random.integers(LEAK_ROWS)] = "only-person"
            X = pd.DataFrame({"job": job, "age": random.uniform(20, 60, LEAK_ROWS)})
            y = (X["age"] > 40).astype(int)
            model = DPExplainableBoostingClassifier(
                epsilon=float(epsilon),
                delta=float(DELTA),
                feature_types=["nominal", "continuous"],
                privacy_bounds={1: (20, 60)},
                random_state=fit,
            )
            model.fit(X, y)
            named += "only-person" in str(model.bins_[0])
        yield {"epsilon": epsilon, "named": named, "fits": LEAK_FITS, "rows": LEAK_ROWS}


def main(place: str, name: str, repeats: str, size: str = "all", *epsilons: str) -> None:
    warnings.simplefilter("ignore")
    versions = [
        {"package": one, "version": version(one)} for one in ("interpret-core", "diffprivlib")
    ]
    if name == "leak":
        print(json.dumps({"rows": list(leaks()), "versions": versions}))
        return
    data = next(one for one in offered(Path(place), name))
    few = None if size == "all" else int(size)
    rows = []
    for row in contend(data, int(repeats), few, epsilons):
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    print(json.dumps({"digest": digest(data), "rows": rows, "versions": versions}))


def offered(place: Path, name: str) -> Iterator[Set]:
    """The set of that name."""
    if name.startswith("Adult"):
        adult = read_adult(place)
        _, _, more = name.partition(" + ")
        yield widen(adult, int(more)) if more else adult
    else:
        yield from (one for one in [*shipped(), checkered()] if one.name == name)


if __name__ == "__main__":
    main(*sys.argv[1:])
