"""diffprivlib's classifiers on the trials of learning.py. Prints a line of JSON.

    ./dev compare python -m lab.benchmarks.quality.learning_peers GROUP REPEATS

Features are put on −1 … 1 by their public bounds, and these are the bounds (for LogisticRegression
the norm) that the classifiers are told, together with the labels where they ask for them. All else
is their default.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.benchmarks.harness import Row, version
from lab.benchmarks.quality.learning_data import (
    EPSILONS,
    SEED,
    Codes,
    Floats,
    Group,
    digest,
    groups,
    spread,
)

MODELS = ("GaussianNB", "LogisticRegression", "DecisionTreeClassifier", "RandomForestClassifier")


def scaled(X: Floats, group: Group) -> Floats:
    """On −1 … 1."""
    return np.clip(2 * (X - group.low) / (group.high - group.low) - 1, -1, 1)


def model(name: str, epsilon: float, group: Group, random: np.random.RandomState) -> Any:
    """A classifier that knows what is public."""
    from diffprivlib import models

    features = group.features
    if name == "LogisticRegression":
        return _logistic_regression(epsilon, features**0.5, random)
    public: dict[str, Any] = {"bounds": (np.full(features, -1.0), np.full(features, 1.0))}
    if name != "GaussianNB":
        public["classes"] = list(range(group.labels))
    return getattr(models, name)(epsilon=epsilon, random_state=random, **public)


def _logistic_regression(epsilon: float, norm: float, random: np.random.RandomState) -> Any:
    """diffprivlib's own, whose constructor hands scikit-learn an argument (multi_class) that 1.8 no
    longer takes: here it is made without. Fitting is untouched, and does by itself what that
    argument said."""
    from diffprivlib.accountant import BudgetAccountant
    from diffprivlib.models import LogisticRegression
    from sklearn import linear_model

    class Constructed(LogisticRegression):  # type: ignore[misc]  # diffprivlib ships no types
        def __init__(self) -> None:
            linear_model.LogisticRegression.__init__(self, random_state=random)
            self.epsilon, self.data_norm, self.classes_ = epsilon, norm, None
            self.accountant = BudgetAccountant.load_default(None)

    return Constructed()


def measure(group: Group, name: str, repeats: int) -> Iterator[Row]:
    """A row for each epsilon: mean accuracy, its standard error, and the seconds of a fit."""
    found: dict[str, list[tuple[int, float]]] = {epsilon: [] for epsilon in EPSILONS}
    seconds: dict[str, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    for trial in group.trials(repeats):
        X, tried = scaled(trial.learn[0], group), scaled(trial.test[0], group)
        for place, epsilon in enumerate(EPSILONS):
            for draw in range(group.draws):
                random = np.random.RandomState([SEED, trial.repeat, trial.task, place, draw])
                start = time.process_time()
                fitted = _fitted(model(name, float(epsilon), group, random), X, trial.learn[1])
                seconds[epsilon].append(time.process_time() - start)
                right = float(np.mean(fitted.predict(tried) == trial.test[1]))
                found[epsilon].append((trial.repeat, right))
    for epsilon, figures in found.items():
        mean, error = spread(figures)
        row: Row = {"group": group.name, "contender": f"diffprivlib {name}", "epsilon": epsilon}
        row |= {"accuracy": mean, "error": error, "fits": len(figures)}
        yield {**row, "seconds": round(float(np.median(seconds[epsilon])), 5)}


def _fitted(model: Any, X: Floats, y: Codes) -> Any:
    with warnings.catch_warnings():  # that it has not converged, and what scikit-learn will change
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def main(name: str, repeats: int) -> None:
    group = groups()[name]
    rows = [row for one in MODELS for row in measure(group, one, repeats)]
    packages = ("diffprivlib", "scikit-learn", "numpy")
    versions = [{"package": one, "version": version(one)} for one in packages]
    print(json.dumps({"digest": digest(group, repeats), "rows": rows, "versions": versions}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
