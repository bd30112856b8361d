"""Time and memory of `select_model`: many cheap models on some rows, so that nearly all of it is
its own work.

./dev compare python -m benchmarks.models --output FILE
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import DONE, PeakMemory, about_run, clocked, in_child, note, store

FEATURES = 4
KINDS = {
    "lazy": "a lazy sequence of thresholds",
    "list": "a list of thresholds",
    "score": "the same list, with a score of one's own",
    "matrix": "a memmap of their predictions",
}


class Thresholds:
    """Rules x[feature] ≥ threshold, made when asked for."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
        cell, feature = divmod(number, FEATURES)
        threshold = cell / (self._count / FEATURES)
        return lambda rows: rows[:, feature] >= threshold


def examples(rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    X = np.random.default_rng(6).random((rows, FEATURES))
    return X, X[:, 2] >= 0.37


def close(y: NDArray[Any], said: NDArray[Any]) -> NDArray[Any]:
    return np.where(y == said, 0.9, 0.1)


def predictions(file: Path, models: int, rows: int) -> None:
    """Write the matrix, some columns at a time."""
    table = np.lib.format.open_memmap(file, "w+", np.bool_, (rows, models))
    rules, (X, _) = Thresholds(models), examples(rows)
    for first in range(0, models, 1024):
        some = range(first, min(first + 1024, models))
        table[:, some.start : some.stop] = np.column_stack([rules[number](X) for number in some])


def steps(kind: str, models: int, rows: int, file: str) -> Iterator[dict[str, Any]]:
    from privmax.learning import select_model

    X: Any
    X, y = examples(rows)
    rules: Any = Thresholds(models)
    options: dict[str, Any] = {"score": close, "bounds": (0, 1)} if kind == "score" else {}
    if kind in ("list", "score"):
        rules = [rules[number] for number in range(models)]
    if kind == "matrix":
        X, rules = None, np.load(file, mmap_mode="r")
    memory = PeakMemory()
    processor, wall = clocked(lambda: select_model(rules, X, y, epsilon=1, delta=1e-6, **options))
    yield {
        "kind": kind,
        "models": models,
        "rows": rows,
        "processor": processor,
        "wall": wall,
        "peak": memory.growth(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Time and weigh the choice among many cheap models."
    )
    parser.add_argument("--models", type=int, default=10**5, help="how many (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, default=10**4, help="on how many examples (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds one may take (default: %(default)g)"
    )
    options = parser.parse_args()
    result: dict[str, Any] = {"benchmark": "models", "run": about_run(quick=False), "runs": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.npy"
        predictions(file, options.models, options.rows)
        for kind, told in KINDS.items():
            found, ending = in_child(
                steps, kind, options.models, options.rows, str(file), limit=options.limit
            )
            if ending != DONE:
                raise SystemExit(f"{told}: {ending}")
            result["runs"] += found
            (row,) = found
            peak = "unknown" if row["peak"] is None else f"{row['peak'] / 2**20:.0f} MiB"
            note(
                f"{told:45} {row['processor']:6.1f} s processor, {row['wall']:6.1f} s, peak {peak}"
            )
    if options.output:
        store(result, options.output)


if __name__ == "__main__":
    main()
