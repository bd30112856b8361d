"""diffprivlib's classifiers on the trials of benchmarks/learning.py. Prints one line of JSON.

    ./dev compare python -m benchmarks.learning_peers GROUP [--repeats N]

Features are put on −1 … 1 by their public bounds, and these are the bounds (for LogisticRegression
the norm) that the classifiers are told, together with the labels where they ask for them. All else
is their default.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from importlib import metadata
from typing import Any

import numpy as np

from benchmarks.learning_data import EPSILONS, SEED, Codes, Floats, Group, digest, groups, spread

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


def accuracies(
    group: Group, name: str, repeats: int | None
) -> dict[str, tuple[list[tuple[int, float]], list[float]]]:
    """By epsilon: (repeat, accuracy) of every fit, and its seconds."""
    found: dict[str, tuple[list[tuple[int, float]], list[float]]] = {
        epsilon: ([], []) for epsilon in EPSILONS
    }
    for trial in group.trials(repeats):
        X, tried = scaled(trial.learn[0], group), scaled(trial.test[0], group)
        for place, epsilon in enumerate(EPSILONS):
            for draw in range(group.draws):
                random = np.random.RandomState([SEED, trial.repeat, trial.task, place, draw])
                start = time.process_time()
                fitted = _fitted(model(name, float(epsilon), group, random), X, trial.learn[1])
                seconds = time.process_time() - start
                right = float(np.mean(fitted.predict(tried) == trial.test[1]))
                found[epsilon][0].append((trial.repeat, right))
                found[epsilon][1].append(seconds)
    return found


def _fitted(model: Any, X: Floats, y: Codes) -> Any:
    with (
        warnings.catch_warnings()
    ):  # that the optimiser has not converged, and of what scikit-learn will change
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def measured(group: Group, repeats: int | None) -> dict[str, Any]:
    rows = []
    for name in MODELS:
        for epsilon, (figures, seconds) in accuracies(group, name, repeats).items():
            mean, error = spread(figures)
            row = {
                "group": group.name,
                "contender": f"diffprivlib {name}",
                "epsilon": epsilon,
                "accuracy": mean,
            }
            rows.append(
                {
                    **row,
                    "error": error,
                    "fits": len(figures),
                    "seconds": round(float(np.median(seconds)), 5),
                }
            )
    versions = {name: metadata.version(name) for name in ("diffprivlib", "scikit-learn", "numpy")}
    return {"digest": digest(group, repeats), "rows": rows, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Try diffprivlib's classifiers on a group of learning problems."
    )
    parser.add_argument("group", choices=list(groups()))
    parser.add_argument("--repeats", type=int)
    options = parser.parse_args()
    print(json.dumps(measured(groups()[options.group], options.repeats)))


if __name__ == "__main__":
    main()
