"""Private tuning: a search over private learners beside paying for all candidates, and for one.

    ./dev compare python -m lab.benchmarks.quality.tuning --data FOLDER

Test accuracy at the same total privacy cost on Adult (adult.data in FOLDER or PRIVMAX_DATA), on all
training rows and on the first 3,000 of them, over random splits. Two learners: diffprivlib's
GaussianNB, tuned by its bounds and its smoothing, and PrivateERM, tuned by its class. Candidates,
bounds and the default were settled before anything was measured.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.composition import per_round
from privmax.learning.classes.stumps import Stumps
from privmax.learning.classes.trees import Trees
from privmax.learning.estimator import PrivateERM
from privmax.learning.search import PrivateSearch
from privmax.learning.search_runs import count_right, split_rows
from privmax.noise.coins import SYSTEM
from privmax.noise.samplers import discrete_laplace

DELTA = "1e-6"
EPSILONS = ("0.1", "0.3", "1", "3")
RUNS = 10
LAWS = {
    "search, geometric": "geometric",
    "search, logarithmic": "logarithmic",
    "search, η = −1/2": "-1/2",
}
SPLITS = 10
SIZES = {"all": None, "3000": 3000}
TRAIN = Fraction(3, 4)

LOW = np.array([17.0, 1, 0, 0, 1, 0, 0])
HIGH = np.array([90.0, 16, 5, 5, 99, 1, 1])
"""Public bounds: age, years of education, log10(1 + capital gain and loss), hours, married, man."""

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Data = tuple[Floats, Codes]


def adult(folder: Path) -> Data:
    """Seven features of Adult, and whether the income is above 50,000."""
    rows = [
        [entry.strip() for entry in line.split(",")]
        for line in (folder / "adult.data").read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]

    def number(place: int) -> Floats:
        return np.array([float(row[place]) for row in rows])

    columns = [
        number(0),
        number(4),
        np.log10(1 + number(10)),
        np.log10(1 + number(11)),
        number(12),
        np.array([float(row[5] == "Married-civ-spouse") for row in rows]),
        np.array([float(row[9] == "Male") for row in rows]),
    ]
    labels = np.array([int(row[14].startswith(">")) for row in rows], np.intp)
    return np.clip(np.stack(columns, 1), LOW, HIGH), labels


def naive_bayes() -> tuple[Any, dict[str, list[Any]]]:
    """diffprivlib's GaussianNB. The default is what it takes where nothing but bounds is said."""
    from diffprivlib.models import GaussianNB

    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    bounds = [
        (list(middle - part * half), list(middle + part * half)) for part in (1.0, 0.75, 0.5, 2.0)
    ]
    default = GaussianNB(bounds=bounds[0])
    return default, {"bounds": bounds, "var_smoothing": [1e-9, 1e-3, 1e-2, 1e-1]}


def rules() -> tuple[Any, dict[str, list[Any]]]:
    """PrivateERM. The default is the smallest class."""
    bounds = {"low": LOW.tolist(), "high": HIGH.tolist()}
    classes: list[Any] = [Stumps(**bounds, cells=cells) for cells in (8, 32)]
    classes += [Trees(**bounds, cells=cells) for cells in (4, 8, 16)]
    return PrivateERM(classes[0], labels=[0, 1]), {"hypotheses": classes}


LEARNERS: dict[str, Callable[[], tuple[Any, dict[str, list[Any]]]]] = {
    "GaussianNB": naive_bayes,
    "PrivateERM": rules,
}


def candidates(learner: Any, params: dict[str, list[Any]]) -> list[Any]:
    """Every setting, the default first."""
    from sklearn.model_selection import ParameterGrid

    return [clone(learner).set_params(**one) for one in ParameterGrid(params)]


def fitted(learner: Any, epsilon: float, data: Data) -> Any:
    """The learner fitted at an epsilon."""
    return clone(learner).set_params(epsilon=epsilon).fit(*data)


def rate(model: Any, data: Data) -> float:
    """Test accuracy."""
    return count_right(model, *data) / len(data[1])


def pay_for_all(settings: list[Any], epsilon: str, data: Data) -> Any:
    """Every setting fitted and scored at what it may cost, with the best composition; the best."""
    each = per_round(epsilon, DELTA, len(settings), bounded_range=False)
    mask = split_rows(len(data[1]), TRAIN, SYSTEM)
    best: tuple[int, Any] | None = None
    for one in settings:
        model = fitted(one, float(each), (data[0][mask], data[1][mask]))
        right = count_right(model, data[0][~mask], data[1][~mask])
        score = 2 * right + discrete_laplace(1 / each, SYSTEM)
        if best is None or score > best[0]:
            best = score, model
    assert best is not None, "there are settings"
    return best[1]


def contenders(
    learner: Any, params: dict[str, list[Any]], epsilon: str, data: Data, test: Data
) -> dict[str, float]:
    """Test accuracy of each way to spend the same epsilon."""
    settings, total = candidates(learner, params), float(epsilon)
    found = {"one run of the default": rate(fitted(learner, total, data), test)}
    for name, law in LAWS.items():
        search = PrivateSearch(
            learner, params, epsilon=epsilon, delta=DELTA, runs=RUNS, law=law, train=TRAIN
        ).fit(*data)
        found[name] = rate(search, test)
    found["all candidates, composed"] = rate(pay_for_all(settings, epsilon, data), test)
    found["best in hindsight"] = max(rate(fitted(one, total, data), test) for one in settings)
    return found


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    """All contenders, for each learner and number of rows."""
    folder = Path(options.data or os.environ.get("PRIVMAX_DATA", ""))
    if not (folder / "adult.data").exists():
        note("adult.data is not in --data or PRIVMAX_DATA: skipped")
        return
    warnings.simplefilter("ignore")
    X, y = adult(folder)
    splits = 2 if options.quick else SPLITS
    for name, make in LEARNERS.items():
        learner, params = make()
        for size, most in SIZES.items():
            cells: dict[tuple[str, str], list[float]] = {}
            for split in range(splits):
                order = np.random.default_rng(split).permutation(len(y))
                test, rest = np.split(order, [len(y) // 5])
                data = X[rest[:most]], y[rest[:most]]
                away = X[test], y[test]
                for epsilon in EPSILONS:
                    for who, found in contenders(learner, params, epsilon, data, away).items():
                        cells.setdefault((who, epsilon), []).append(found)
                public = [fitted(one, 1e6, data) for one in candidates(learner, params)]
                mask = split_rows(len(data[1]), TRAIN, SYSTEM)
                hold = data[0][~mask], data[1][~mask]
                best = max(public, key=lambda model, hold=hold: rate(model, hold))  # type: ignore[misc]
                for epsilon in EPSILONS:
                    cells.setdefault(("not private", epsilon), []).append(rate(best, away))
            note(f"{name}, {size} rows")
            yield {"searches": [_row(name, size, *key, *cells[key]) for key in cells]}


def _row(learner: str, rows: str, who: str, epsilon: str, *found: float) -> Row:
    spread = float(np.std(found, ddof=1) / len(found) ** 0.5)
    mean = 100 * float(np.mean(found))
    return {
        "learner": learner,
        "rows": rows,
        "who": who,
        "epsilon": epsilon,
        "column": f"ε = {epsilon}",
        "accuracy": round(mean, 2),
        "error": round(100 * spread, 2),
        "splits": len(found),
    }


BENCHMARK = Benchmark(
    name="tuning",
    module="quality.tuning",
    parts={"tuning": measure},
    packages=("privmax", "diffprivlib", "scikit-learn"),
    settings={"delta": DELTA, "runs": RUNS, "train": str(TRAIN)},
    keys={"searches": ("learner", "rows", "who", "epsilon")},
    compare=True,
    arguments=lambda parser: parser.add_argument("--data", type=Path, help="holds adult.data"),
)

if __name__ == "__main__":
    BENCHMARK.main()
