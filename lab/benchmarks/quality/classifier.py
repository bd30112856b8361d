"""How PrivateClassifier decides, and how good it is: invented data, then it beside its models.

    ./dev python -m lab.benchmarks.quality.classifier --data FOLDER [--part table|sets|…|peers]

`table` fits every model to invented data, by rows × epsilon, columns and delta: the table of
`privmax.learning.classifier.choice` was read off its results and then fixed. All other parts fit
the classifier and each of its models to the sets of additive_data.py, which the table has not
seen. Every model has the whole budget; the classifier pays for its count of rows. FOLDER, or
PRIVMAX_DATA, holds adult.data (UCI Adult).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from lab.benchmarks.harness import RESULTS, Benchmark, Row, Rows, note, stored
from lab.benchmarks.quality.additive import ask_peers, figures
from lab.benchmarks.quality.additive_data import (
    DELTA,
    EPSILONS,
    TRAINED,
    Set,
    checkered,
    read_adult,
    shipped,
    widen,
)
from lab.benchmarks.quality.profiles import folder
from privmax.learning import Number, PrivateClassifier, Schema
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.classifier.choice import PAIRS, RULES, TREE, Facts
from privmax.learning.classifier.fitting import fit_member
from privmax.learning.classifier.model import ClassifierModel
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.reading import read_examples
from privmax.testing import SeededCoins

CELLS = 32
TRIED = 2_000
WRONG = 0.1
"""Share of labels of an invented rule that are wrong."""

PRODUCTS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
INVENTED = (
    ("1", (16, 4), PRODUCTS),
    ("0.1", (16, 4), PRODUCTS[:5]),
    ("8", (16,), PRODUCTS[3:]),
)
"""Epsilon, numbers of columns, and rows × epsilon that models are tried at."""

TRIES = 3
"""Fits of each model to each kind of invented data."""

FEW_PRODUCTS, FEW_TRIES = (7, 10, 14, 20, 30, 50, 70, 100), 8
"""The same for rules alone, where a draw from so few rows is hardly better than a guess."""

MANY_PRODUCTS, MANY_TRIES = (1_000, 1_500, 2_000, 3_000, 4_000, 6_000), 4
"""The same for trees and additive models with pairs, where either may be ahead."""

REPEATS, FEW, SMALL, MANY = 10, 4, 1_000, 3_000
"""Splits of sets below so many rows, and of all others; ten of Adult up to so many rows, too."""

SIZES = (100, 300, 1_000, 3_000, 10_000, None)
WIDE = (100, 500)

MISSING = (
    *((0, rows, EPSILONS, REPEATS) for rows in SIZES if rows),
    (100, None, ("0.1", "8"), 4),
    (500, None, ("0.1", "8"), 2),
)
"""What additive.py has not stored of peers: columns of noise, rows, epsilons, splits."""

CLASSIFIER, BEHIND = "PrivateClassifier", "behind the best"

Labels = Any
Random = np.random.Generator


def one_rule(X: Any, random: Random) -> Labels:
    return X[:, 0] > random.uniform(-0.5, 0.5)


def both(X: Any, random: Random) -> Labels:
    return (X[:, 0] > random.uniform(-0.6, 0)) & (X[:, 1] > random.uniform(-0.6, 0))


def apart(X: Any, random: Random) -> Labels:
    return X[:, 0] * X[:, 1] > 0


def rare(X: Any, random: Random) -> Labels:
    """One row in ten, where three columns are large together."""
    total = X[:, :3].sum(axis=1)
    return total > np.quantile(total, 0.9)


def added(X: Any, random: Random) -> Labels:
    """Curves of four columns add up."""
    slopes = random.normal(size=4)
    return (slopes * np.sin(2 * X[:, :4])).sum(axis=1) + random.logistic(size=len(X)) / 4 > 0


RULED: dict[str, Callable[[Any, Random], Labels]] = {
    "one rule": one_rule,
    "both of two": both,
    "two apart": apart,
    "a rare one": rare,
    "a sum": added,
}
CLUSTERED = {"clusters": 4, "many columns": 4}
"""Kinds that scikit-learn invents: few columns matter, or all of them, most being copies."""


def invent(kind: str, rows: int, columns: int, random: Random) -> tuple[Any, Labels]:
    """Rows of numbers from −1 to 1, with labels."""
    if kind in RULED:
        X = random.uniform(-1, 1, (rows, columns))
        return X, RULED[kind](X, random) ^ (random.random(rows) < WRONG)
    matter = CLUSTERED[kind]
    X, y = make_classification(
        rows,
        columns,
        n_informative=matter,
        n_redundant=columns - matter if kind == "many columns" else 0,
        flip_y=WRONG,
        random_state=int(random.integers(1 << 31)),
    )
    return np.clip(X / 4, -1, 1), y.astype(bool)


def table(options: argparse.Namespace) -> Iterator[Rows]:
    """The mean accuracy and area under the curve of each model, by kind of invented data."""
    for epsilon, widths, products in INVENTED[:1] if options.quick else INVENTED:
        for columns in widths[:1] if options.quick else widths:
            schema = Schema({f"x{place}": Number(-1, 1, cells=CELLS) for place in range(columns)})
            found: list[Row] = []
            for product in products[:3] if options.quick else products:
                rows = round(product / float(epsilon))
                note(f"table: {columns} columns, epsilon {epsilon}, {rows} rows")
                for kind in (*RULED, *CLUSTERED):
                    found += tried(kind, rows, schema, epsilon)
            yield {"table": [{"columns": columns, "epsilon": epsilon, **row} for row in found]}


def few(options: argparse.Namespace) -> Iterator[Rows]:
    """The same of rules alone, at ε = 1, with few rows: from where on each is the best."""
    for columns in (16, 4):
        schema = Schema({f"x{place}": Number(-1, 1, cells=CELLS) for place in range(columns)})
        note(f"few: {columns} columns")
        found: list[Row] = []
        for rows in FEW_PRODUCTS[:2] if options.quick else FEW_PRODUCTS:
            for kind in (*RULED, *CLUSTERED):
                found += tried(kind, rows, schema, "1", RULES, FEW_TRIES)
        yield {"few": [{"columns": columns, "epsilon": "1", **row} for row in found]}


def many(options: argparse.Namespace) -> Iterator[Rows]:
    """The same of trees and additive models with pairs, at ε = 1: from where on these are ahead."""
    columns = 16
    schema = Schema({f"x{place}": Number(-1, 1, cells=CELLS) for place in range(columns)})
    found: list[Row] = []
    for rows in MANY_PRODUCTS[:1] if options.quick else MANY_PRODUCTS:
        note(f"many: {rows} rows")
        for kind in (*RULED, *CLUSTERED):
            found += tried(kind, rows, schema, "1", (TREE, PAIRS), MANY_TRIES)
    yield {"many": [{"columns": columns, "epsilon": "1", **row} for row in found]}


def tried(
    kind: str,
    rows: int,
    schema: Schema,
    epsilon: str,
    members: Sequence[str] | None = None,
    tries: int = TRIES,
) -> Iterator[Row]:
    """Every model that fits such columns, or those named, with a delta and without."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for repeat in range(tries):
        random = np.random.default_rng([37, repeat, rows, schema.features])
        X, y = invent(kind, rows + TRIED, schema.features, random)
        for member in members or Facts.of(schema).members():
            for delta in ("0",) if member in RULES else (DELTA, "0"):
                seed = f"{kind}/{rows}/{schema.features}/{member}/{delta}/{epsilon}/{repeat}"
                terms = ClassifierTerms(epsilon=epsilon, delta=delta, n=rows)
                data = read_examples(schema, X[:rows], y[:rows], np.array([False, True]))
                fitted = fit_member(member, MemoryRows(*data), schema, terms, SeededCoins(seed))
                model = ClassifierModel(member, None, fitted)
                said = model.chances(schema.codes(X[rows:]))
                found.setdefault((member, delta), []).append(_quality(said, y[rows:]))
    for (member, delta), pairs in found.items():
        accuracies, areas = zip(*pairs, strict=True)
        yield {
            "rows": rows,
            "product": round(rows * float(epsilon)),
            "kind": kind,
            "member": member,
            "delta": delta,
            "accuracy": round(float(np.mean(accuracies)), 2),
            "auc": round(float(np.mean(areas)), 2),
        }


def compare(
    data: Set, epsilon: str, repeats: int, rows: int | None = None, delta: str = DELTA
) -> Iterator[Row]:
    """The classifier and each of its models on the same splits, and how far it is behind the best.

    The best is that of the mean over these very splits.
    """
    members = Facts.of(data.schema).members()
    found: dict[str, list[tuple[float, float]]] = {}
    chosen: Counter[str] = Counter()
    seconds = []
    for repeat, (learn, test) in enumerate(data.splits(repeats, rows)):
        X, y, truth = data.X.iloc[learn], data.y[learn], data.y[test]
        cells = data.schema.codes(data.X.iloc[test])
        terms = ClassifierTerms(epsilon=epsilon, delta=delta, n=len(learn))
        for member in members:
            seed = SeededCoins(f"{data.name}/{member}/{epsilon}/{delta}/{rows}/{repeat}")
            examples = MemoryRows(*read_examples(data.schema, X, y, np.array([0, 1])))
            fitted = fit_member(member, examples, data.schema, terms, seed)
            said = ClassifierModel(member, None, fitted).chances(cells)
            found.setdefault(member, []).append(_quality(said, truth))
        coins = SeededCoins(f"{data.name}/{CLASSIFIER}/{epsilon}/{delta}/{rows}/{repeat}")
        options: Row = {"epsilon": epsilon, "delta": delta, "labels": [0, 1], "coins": coins}
        start = time.process_time()
        model = PrivateClassifier(data.schema, **options).fit(X, y)
        seconds.append(time.process_time() - start)
        said = model.predict_proba(data.X.iloc[test])[:, 1]
        found.setdefault(CLASSIFIER, []).append(_quality(said, truth))
        chosen[model.model_.member] += 1
    public = {"set": data.name, "rows": rows or round(TRAINED * len(data.y)), "epsilon": epsilon}
    for name, pairs in found.items():
        yield {**public, "delta": delta, "contender": name, **figures(*zip(*pairs, strict=True))}
    means = {name: np.mean([one[0] for one in found[name]]) for name in members}
    best = max(means, key=lambda name: means[name])
    gaps = [a[0] - b[0] for a, b in zip(found[best], found[CLASSIFIER], strict=True)]
    yield {
        **public,
        "delta": delta,
        "contender": BEHIND,
        "best": best,
        "chosen": ", ".join(f"{name} ({times})" for name, times in chosen.most_common()),
        "behind": round(float(np.mean(gaps)), 2),
        "error": round(float(np.std(gaps, ddof=1)) / len(gaps) ** 0.5, 2),
        "seconds": round(float(np.median(seconds)), 3),
    }


def _quality(chances: Any, truth: Any) -> tuple[float, float]:
    """Accuracy and area under the curve, in per cent."""
    right = 100 * float(np.mean((chances > 0.5) == truth))
    return right, 100 * float(roc_auc_score(truth, chances))


def sets(options: argparse.Namespace) -> Iterator[Rows]:
    """Sets that scikit-learn ships, and the checkered one."""
    for data in [*shipped(), checkered()]:
        note(f"sets: {data.name}")
        repeats = 2 if options.quick else REPEATS if len(data.y) < SMALL else FEW
        yield {"sets": [row for one in EPSILONS for row in compare(data, one, repeats)]}


def adult(options: argparse.Namespace) -> Iterator[Rows]:
    """Adult, all rows of it and few."""
    data = _adult(options)
    if data is None:
        return
    for rows in SIZES[:1] if options.quick else SIZES:
        note(f"adult: {rows or 'all'} rows")
        repeats = 2 if options.quick else REPEATS if rows and rows <= MANY else FEW
        found = [row for one in EPSILONS for row in compare(data, one, repeats, rows)]
        yield {"adult": found}


def wide(options: argparse.Namespace) -> Iterator[Rows]:
    """Adult with columns of noise added."""
    data = _adult(options)
    if data is None:
        return
    for columns in WIDE[:1] if options.quick else WIDE:
        wider = widen(data, columns)
        note(f"wide: {wider.name}")
        repeats = 2 if options.quick or columns > WIDE[0] else FEW
        yield {"wide": [row for one in EPSILONS for row in compare(wider, one, repeats)]}


def peers(options: argparse.Namespace) -> Iterator[Rows]:
    """DP-EBM and diffprivlib, at their defaults and tuned in hindsight, on the same splits.

    What additive.py has stored of whole sets is taken from there; all else is measured.
    """
    data, found = _adult(options), folder(options.data)
    if data is None or found is None:
        return
    before = stored(RESULTS / "additive.json")
    known = {row["set"]: round(TRAINED * row["rows"]) for row in before["sets"]}
    yield {
        "peers": [{**row, "rows": known[row["set"]]} for row in before["peers"]],
        "versions": before["versions"],
    }
    for columns, rows, epsilons, repeats in MISSING[:1] if options.quick else MISSING:
        wider = widen(data, columns) if columns else data
        if options.set and wider.name not in options.set:
            continue
        for epsilon in epsilons[:1] if options.quick else epsilons:
            note(f"peers: {wider.name}, {rows or 'all'} rows, epsilon {epsilon}")
            answer = ask_peers(found, wider, repeats, str(rows or "all"), epsilon)
            size = rows or round(TRAINED * len(data.y))
            private = [row for row in answer["rows"] if row["epsilon"] == epsilon]
            yield {"peers": [{**row, "rows": size} for row in private]}


def _adult(options: argparse.Namespace) -> Set | None:
    found = folder(options.data)
    if found is None or not (found / "adult.data").exists():
        note("no adult.data: give --data FOLDER, or PRIVMAX_DATA")
        return None
    return read_adult(found)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder that holds adult.data")
    parser.add_argument("--set", action="append", help="of peers: measure only these sets")


BENCHMARK = Benchmark(
    "classifier",
    "quality.classifier",
    {
        "table": table,
        "few": few,
        "many": many,
        "sets": sets,
        "adult": adult,
        "wide": wide,
        "peers": peers,
    },
    packages=("privmax", "numpy", "scikit-learn"),
    settings={
        "epsilons": EPSILONS,
        "delta": DELTA,
        "repeats": REPEATS,
        "few": FEW,
        "trained": TRAINED,
    },
    keys={
        "table": ("columns", "epsilon"),
        "few": ("columns",),
        "many": ("columns",),
        "sets": ("set",),
        "adult": ("rows",),
        "wide": ("set",),
        "peers": ("set", "rows", "epsilon", "contender"),
    },
    arguments=arguments,
)

if __name__ == "__main__":
    warnings.simplefilter("ignore", category=UserWarning)
    BENCHMARK.main()
