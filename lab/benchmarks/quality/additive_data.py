"""The examples of additive.py: UCI Adult with its public schema, sets that scikit-learn ships, and
two planted ones.

Whoever learns gets the same rows: `digest` tells whether two environments have made the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lab.benchmarks.quality.learning_data import groups
from privmax.learning.kinds import Category, Number
from privmax.learning.schema import Schema

EPSILONS: Final = ("0.1", "0.5", "1", "2", "8")
DELTA = "1e-6"
SEED = 20
TRAINED = 0.8
CELLS = 32

Labels = NDArray[np.intp]

WORK = "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay"
SCHOOL = (
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
    "1st-4th 10th Doctorate 5th-6th Preschool"
)
MARRIED = (
    "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse"
)
JOB = (
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces"
)
KIN = "Wife Own-child Husband Not-in-family Other-relative Unmarried"
RACE = "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"
COUNTRY = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico "
    "Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary "
    "Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong "
    "Holand-Netherlands"
)
"""As the documentation of the set lists them (adult.names)."""


def _named(values: str) -> Category:
    return Category(values.split(), missing="?")


LOGGED: Final = ("fnlwgt", "capital-gain", "capital-loss")
"""Money and weights, which everybody gets as log10(1 + x)."""

BOUNDS: Final = {
    "age": (17, 90),
    "fnlwgt": (4, 6.2),
    "education-num": (1, 16),
    "capital-gain": (0, 5),
    "capital-loss": (0, 3.7),
    "hours-per-week": (1, 99),
}
"""Of the numbers, as everybody gets them."""

ADULT: Final = Schema(
    {
        "age": Number(*BOUNDS["age"], cells=CELLS),
        "workclass": _named(WORK + " Never-worked"),
        "fnlwgt": Number(*BOUNDS["fnlwgt"], cells=CELLS),
        "education": _named(SCHOOL),
        "education-num": Number(*BOUNDS["education-num"], cells=CELLS),
        "marital-status": _named(MARRIED),
        "occupation": _named(JOB),
        "relationship": _named(KIN),
        "race": _named(RACE),
        "sex": _named("Female Male"),
        "capital-gain": Number(*BOUNDS["capital-gain"], cells=CELLS),
        "capital-loss": Number(*BOUNDS["capital-loss"], cells=CELLS),
        "hours-per-week": Number(*BOUNDS["hours-per-week"], cells=CELLS),
        "native-country": _named(COUNTRY),
    }
)


@dataclass(frozen=True)
class Set:
    """Rows with their public schema.

    bounds   of the columns that are numbers, for learners that take no schema
    """

    name: str
    X: pd.DataFrame
    y: Labels
    schema: Schema
    bounds: dict[str, tuple[float, float]]

    def splits(
        self, repeats: int, rows: int | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Rows to learn from, so many of them, and rows to be tried on."""
        for repeat in range(repeats):
            order = np.random.default_rng([SEED, repeat]).permutation(len(self.y))
            learn, test = np.split(order, [round(TRAINED * len(order))])
            yield learn[:rows], test


def read_adult(folder: Path) -> Set:
    """Adult, 32,561 rows."""
    names = [*ADULT.names, "income"]
    X = pd.read_csv(
        folder / "adult.data", names=names, skipinitialspace=True, keep_default_na=False
    )
    y = (X.pop("income") == ">50K").to_numpy().astype(np.intp)
    for name in LOGGED:
        X[name] = np.log10(1 + X[name].astype(np.float64))
    return Set("Adult", X, y, ADULT, dict(BOUNDS))


def widen(data: Set, columns: int) -> Set:
    """The same with so many columns of noise added."""
    noise = np.random.default_rng([SEED, columns]).normal(size=(len(data.y), columns))
    names = [f"noise{place}" for place in range(columns)]
    X = pd.concat([data.X, pd.DataFrame(noise, columns=names)], axis=1)
    more = {name: Number(-3, 3, cells=CELLS) for name in names}
    schema = Schema({**dict(zip(data.schema.names, data.schema.columns, strict=True)), **more})
    bounds = {**data.bounds, **dict.fromkeys(names, (-3.0, 3.0))}
    return Set(f"{data.name} + {columns}", X, data.y, schema, bounds)


def numbers(name: str, values: NDArray[Any], y: Labels, low: Any, high: Any) -> Set:
    """A set of numbers with public bounds."""
    names = [f"x{place}" for place in range(values.shape[1])]
    bounds = {one: (float(a), float(b)) for one, a, b in zip(names, low, high, strict=True)}
    schema = Schema({one: Number(*ends, cells=CELLS) for one, ends in bounds.items()})
    return Set(name, pd.DataFrame(values, columns=names), y, schema, bounds)


def shipped() -> list[Set]:
    """What scikit-learn ships, each as one label against the rest."""
    found = []
    for name, title, task in (
        ("breast-cancer", "breast cancer", 0),
        ("wine-rest", "wine", 0),
        ("digits", "digits (8)", 8),
    ):
        group = groups()[name]
        trial = list(group.trials(1))[task]
        X = np.concatenate([trial.learn[0], trial.test[0]])
        y = np.concatenate([trial.learn[1], trial.test[1]])
        found.append(numbers(title, X, y, group.low, group.high))
    return found


def checkered(rows: int = 20_000, useless: int = 6) -> Set:
    """A label that only two columns together tell, each by itself being useless; one label in ten
    is wrong.
    """
    random = np.random.default_rng([SEED, rows])
    X = random.uniform(-1, 1, (rows, 2 + useless))
    y = (X[:, 0] * X[:, 1] > 0) ^ (random.random(rows) < 0.1)
    ends = np.ones(2 + useless)
    return numbers("checkered", X, y.astype(np.intp), -ends, ends)


def alike(rows: int = 25_000, useless: int = 6, values: int = 24) -> Set:
    """Categories in no order that matter together: each has a hidden number, and the label follows
    from two of them and their product. One label in twenty is wrong.
    """
    random = np.random.default_rng([SEED, rows, values])
    cells = random.integers(0, values, (2 + useless, rows))
    first, second = random.normal(size=(2, values))
    a, b = first[cells[0]], second[cells[1]]
    y = 2 * a + 2 * b + 4 * a * b + random.logistic(size=rows) > 0
    y ^= random.random(rows) < 0.05
    kind = Category([str(value) for value in range(values)])
    frame = {f"x{place}": column.astype(str) for place, column in enumerate(cells)}
    schema = Schema(dict.fromkeys(frame, kind))
    return Set("alike categories", pd.DataFrame(frame), y.astype(np.intp), schema, {})


INVENTED: Final = {
    "often zero": (0.9, 1, (0, 5)),
    "rarely": (0.95, 3, (0, 4)),
    "a": (0, 0, (-3, 3)),
    "b": (0, 0, (-3, 3)),
    "c": (0, 0, (-3, 3)),
    "useless": (0, 0, (-3, 3)),
}
"""Numbers of the invented census: how often 0, the mean of the rest, and bounds."""

SPREADS: Final = {9: 0.3, 16: 0.9, 7: 1.3, 15: 0.7, 6: 1.2, 5: 0.3, 2: 0.3, 42: 0.3}
"""Its categories: how many values each has, and how far their effects are apart."""


def census(rows: int = 32_500) -> Set:
    """Numbers and categories as a census has them, of which some matter, and a few together."""
    random = np.random.default_rng([SEED, rows, len(SPREADS)])
    frame, effects = {}, []
    for name, (zero, mean, _) in INVENTED.items():
        frame[name] = np.where(random.random(rows) < zero, 0, random.normal(mean, 1, rows))
    odds = 3 * (frame["often zero"] > 1.5) + 1.5 * (frame["rarely"] > 0) + 0.8 * frame["a"]
    odds = odds - 0.8 * frame["b"] ** 2 + np.sign(frame["a"] * frame["c"])
    for values, spread in SPREADS.items():
        shares = random.permutation(1 / np.arange(1, values + 1) ** 1.2)
        cells = random.choice(values, rows, p=shares / shares.sum())
        effects.append(spread * random.normal(size=values)[cells])
        frame[f"kind of {values}"] = cells.astype(str)
    odds = odds + sum(effects) + 1.2 * effects[1] * effects[2] + 1.5 * (frame["b"] > 0) * effects[3]
    y = 1.3 * (odds - np.quantile(odds, 0.78)) + random.logistic(size=rows) > 0
    bounds = {name: (float(low), float(high)) for name, (*_, (low, high)) in INVENTED.items()}
    columns: dict[str, Any] = {name: Number(*ends, cells=CELLS) for name, ends in bounds.items()}
    columns |= {f"kind of {values}": Category([str(one) for one in range(values)])
                for values in SPREADS}  # fmt: skip
    return Set("invented census", pd.DataFrame(frame), y.astype(np.intp), Schema(columns), bounds)


def digest(data: Set) -> str:
    """Twelve hexadecimal digits of all rows."""
    found = hashlib.sha256(data.y.astype(np.int64).tobytes())
    for name in data.X:
        column = data.X[name]
        numeric = column.dtype.kind in "if"
        text = "\n".join(map(str, column)).encode()
        found.update(column.to_numpy(np.float64).tobytes() if numeric else text)
    return found.hexdigest()[:12]
