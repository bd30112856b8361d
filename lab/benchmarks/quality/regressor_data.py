"""The examples of regressor.py: scikit-learn's diabetes set, houses as in California but invented,
and invented sets on which settings were fixed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privmax.learning.kinds import Number
from privmax.learning.schema import Schema

EPSILONS: Final = ("0.1", "0.5", "1", "2", "8")
DELTA = "1e-6"
SEED = 37
TRAINED = 0.8
CELLS = 32

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Numbers:
    """Rows with their public bounds.

    bounds    of each column
    targets   of the target
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.float64]
    bounds: dict[str, Bounds]
    targets: Bounds

    @property
    def schema(self) -> Schema:
        """Cells between the bounds."""
        return Schema({name: Number(*ends, cells=CELLS) for name, ends in self.bounds.items()})

    def splits(self, repeats: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Rows to learn from, and rows to be tried on."""
        for repeat in range(repeats):
            order = np.random.default_rng([SEED, repeat]).permutation(len(self.y))
            learn, test = np.split(order, [round(TRAINED * len(order))])
            yield learn, test


DIABETES: Final[dict[str, Bounds]] = {
    "age": (18, 80),
    "sex": (1, 2),
    "bmi": (15, 45),
    "bp": (60, 140),
    "s1": (90, 310),
    "s2": (40, 250),
    "s3": (20, 100),
    "s4": (2, 10),
    "s5": (3, 6.5),
    "s6": (55, 130),
}
"""What is plausible in such patients; of the target, 0 to 350."""


def diabetes() -> Numbers:
    """442 patients, and how far their disease got within a year."""
    from sklearn.datasets import load_diabetes

    shipped = load_diabetes(scaled=False, as_frame=True)
    y = shipped.target.to_numpy(np.float64)
    return Numbers("diabetes", shipped.data.astype(np.float64), y, dict(DIABETES), (0, 350))


def houses(rows: int = 20_000) -> Numbers:
    """Invented blocks of houses, with columns and a target such as those of California housing.

    The price, in 100,000, rises with income and falls with the distance to two cities and a coast;
    it is capped at 5, as in that set.
    """
    random = np.random.default_rng([SEED, rows])
    income = np.exp(random.normal(1.2, 0.45, rows))
    rooms = np.exp(random.normal(1.6, 0.25, rows) + 0.1 * np.log(income))
    people = np.exp(random.normal(7, 0.7, rows))
    north, east = random.uniform(0, 10, rows), random.uniform(0, 10, rows)
    age = random.uniform(1, 52, rows)
    coast = np.maximum(east - (10 - north) * 0.8, 0)
    town = np.minimum(np.hypot(north - 2, east - 7), np.hypot(north - 7.5, east - 3))
    log_price = (
        -0.5
        + 0.9 * np.log(income)
        - 0.06 * coast
        - 0.09 * np.minimum(town, 5)
        + 0.005 * age
        - 0.12 * (rooms / 5 - 1) ** 2
        + random.normal(0, 0.28, rows)
    )
    X = pd.DataFrame(
        {
            "income": income,
            "age": age,
            "rooms": rooms,
            "bedrooms": rooms / random.uniform(4, 6, rows),
            "people": people,
            "occupancy": np.exp(random.normal(1, 0.25, rows)),
            "north": north,
            "east": east,
        }
    )
    bounds: dict[str, Bounds] = {
        "income": (0, 15),
        "age": (0, 52),
        "rooms": (0, 15),
        "bedrooms": (0, 4),
        "people": (0, 6_000),
        "occupancy": (0, 8),
        "north": (0, 10),
        "east": (0, 10),
    }
    return Numbers("houses", X, np.minimum(2 * np.exp(log_price), 5), bounds, (0, 5))


def invented(kind: str, rows: int) -> Numbers:
    """A set of ten uniform columns on which settings were fixed; see `KINDS`."""
    random = np.random.default_rng([SEED, rows, sorted(KINDS).index(kind)])
    values = random.uniform(0, 1, (rows, 10))
    y, targets = KINDS[kind](values, random)
    names = [f"x{place}" for place in range(10)]
    bounds = dict.fromkeys(names, (0.0, 1.0))
    return Numbers(kind, pd.DataFrame(values, columns=names), y, bounds, targets)


def _friedman(X: Any, random: Any) -> tuple[Any, Bounds]:
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return y + 10 * X[:, 3] + 5 * X[:, 4] + random.normal(0, 1, len(X)), (-5, 35)


def _bills(X: Any, random: Any) -> tuple[Any, Bounds]:
    """Skewed, with a long tail and bounds that are too wide."""
    tail = np.exp(random.normal(0, 0.6, len(X)))
    return 100 * np.exp(1.5 * X[:, 0] + (X[:, 1] > 0.7)) * tail, (0, 5_000)


def _steps(X: Any, random: Any) -> tuple[Any, Bounds]:
    """Two steps and much noise."""
    y = 3 * (X[:, 0] > 0.3) + 2 * (X[:, 5] > 0.6) + random.normal(0, 3, len(X))
    return y, (-20, 20)


def _line(X: Any, random: Any) -> tuple[Any, Bounds]:
    """A plane with hardly any noise, between bounds three times as wide as it is."""
    return X @ np.linspace(-1, 1, 10) + random.normal(0, 0.05, len(X)), (-9, 9)


KINDS: Final[dict[str, Callable[[Any, Any], tuple[Any, Bounds]]]] = {
    "friedman": _friedman,
    "bills": _bills,
    "steps": _steps,
    "line": _line,
}


def digest(data: Numbers) -> str:
    """Twelve hexadecimal digits of all rows."""
    found = hashlib.sha256(data.y.tobytes())
    found.update(np.ascontiguousarray(data.X.to_numpy(np.float64)).tobytes())
    return found.hexdigest()[:12]
