"""DP-EBM, diffprivlib's linear regression and learners that are not private, on the rows of
regressor.py. Prints a line of JSON.

    ./dev compare python -m lab.benchmarks.quality.regressor_peers SET REPEATS

Both peers get the bounds of columns and of the target, and predictions are clipped to these.
"Tuned in hindsight" is the best of a grid on the very rows that it is tried on, which is not
possible under privacy.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab.benchmarks.harness import Row, version
from lab.benchmarks.quality.regressor import measure
from lab.benchmarks.quality.regressor_data import (
    DELTA,
    EPSILONS,
    Numbers,
    diabetes,
    digest,
    houses,
)

GRID_REPEATS = 3
EBM_GRID = [
    {"learning_rate": rate, "max_rounds": rounds}
    for rate in (0.01, 0.05, 0.2, 0.5, 1.0)
    for rounds in (5, 20, 100)
]
LINEAR_GRID = [
    {"narrow": narrow, "fit_intercept": constant}
    for narrow in (0.0, 0.01, 0.05, 0.2)
    for constant in (True, False)
]
"""`narrow`: bounds are quantiles of all rows, this far from both ends; 0: the declared ones."""

Predict = Callable[[Numbers, Any, Any, str, int, dict[str, Any]], Any]


def ebm(
    data: Numbers, learn: Any, test: Any, epsilon: str, seed: int, options: dict[str, Any]
) -> Any:
    from interpret.privacy import DPExplainableBoostingRegressor

    low, high = data.targets
    model = DPExplainableBoostingRegressor(
        epsilon=float(epsilon),
        delta=float(DELTA),
        feature_types=["continuous"] * len(data.bounds),
        privacy_bounds=dict(enumerate(data.bounds.values())),
        privacy_target_min=low,
        privacy_target_max=high,
        random_state=seed,
        **options,
    )
    model.fit(data.X.iloc[learn], np.clip(data.y[learn], low, high))
    return np.clip(model.predict(data.X.iloc[test]), low, high)


def linear(
    data: Numbers, learn: Any, test: Any, epsilon: str, seed: int, options: dict[str, Any]
) -> Any:
    from diffprivlib.models import LinearRegression

    given = dict(options)
    narrow = given.pop("narrow", 0.0)
    X, y = data.X.to_numpy(np.float64), data.y
    ends = np.array(list(data.bounds.values()), np.float64).T
    bounds_X, bounds_y = (ends[0], ends[1]), data.targets
    if narrow:
        bounds_X = tuple(np.quantile(X, [narrow, 1 - narrow], axis=0))
        if not (bounds_X[0] < bounds_X[1]).all():
            bounds_X = (ends[0], ends[1])
        bounds_y = tuple(np.quantile(y, [narrow, 1 - narrow]))
    model = LinearRegression(
        epsilon=float(epsilon), bounds_X=bounds_X, bounds_y=bounds_y, random_state=seed, **given
    )
    return np.clip(model.fit(X[learn], y[learn]).predict(X[test]), *data.targets)


def not_private(data: Numbers, kind: str) -> Callable[[Any, Any, int], Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    def fit(learn: Any, test: Any, seed: int) -> Any:
        if kind == "mean":
            return np.full(len(test), np.mean(data.y[learn]))
        model = HistGradientBoostingRegressor() if kind == "boosting" else LinearRegression()
        return model.fit(data.X.iloc[learn], data.y[learn]).predict(data.X.iloc[test])

    return fit


def contend(data: Numbers, repeats: int) -> Iterator[Row]:
    """All of them, at their defaults and tuned in hindsight."""
    for kind in ("mean", "linear regression", "boosting"):
        row = measure(data, not_private(data, kind), repeats)
        yield {**row, "contender": f"{kind}, not private", "epsilon": "-"}
    learners: dict[str, tuple[Predict, list[dict[str, Any]]]] = {
        "diffprivlib LinearRegression": (linear, LINEAR_GRID),
        "DP-EBM": (ebm, EBM_GRID),
    }
    for name, (predict, grid) in learners.items():
        for epsilon in EPSILONS:
            plain = measure(data, _at(data, predict, epsilon, {}), repeats)
            yield {**plain, "contender": name, "epsilon": epsilon}
            tried = [measure(data, _at(data, predict, epsilon, one), GRID_REPEATS) for one in grid]
            best = grid[int(np.argmax([one["r2"] for one in tried]))]
            tuned = measure(data, _at(data, predict, epsilon, best), repeats)
            row = max(tuned, plain, key=lambda row: row["r2"])
            chosen = ", ".join(f"{key}={value}" for key, value in best.items())
            about = {"contender": f"{name}, tuned in hindsight", "epsilon": epsilon}
            yield {**row, **about, "setting": "defaults" if row is plain else chosen}


def _at(
    data: Numbers, predict: Predict, epsilon: str, options: dict[str, Any]
) -> Callable[[Any, Any, int], Any]:
    """Return a fit at one epsilon, with these settings."""
    return lambda learn, test, seed: predict(data, learn, test, epsilon, seed, options)


def main(name: str, repeats: int) -> None:
    warnings.simplefilter("ignore")
    versions = [
        {"package": one, "version": version(one)} for one in ("interpret-core", "diffprivlib")
    ]
    data = next(one for one in (diabetes(), houses()) if one.name == name)
    rows = []
    for row in contend(data, repeats):
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    print(json.dumps({"digest": digest(data), "rows": rows, "versions": versions}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
