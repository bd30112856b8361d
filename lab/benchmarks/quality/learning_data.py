"""The examples of learning.py: data sets that scikit-learn ships, and planted rules.

Whoever learns gets the same trials: examples to learn from, others to be tried on. `digest` tells
whether two environments have made the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

EPSILONS: Final = ("0.1", "0.5", "1", "2", "5")
SEED = 6
TRAINED = 0.7
"""Part of the examples of a real set that is learned from; the rest is tried on."""

TRIED = 10_000
"""Further examples of a planted rule to try on."""


@dataclass(frozen=True)
class Trial:
    """One learning problem: what to learn from, what to try on.

    repeat   figures are averaged over everything of one repeat, and the spread is that between
             repeats
    task     within a repeat: the label that is told from the rest
    """

    repeat: int
    task: int
    learn: tuple[Floats, Codes]
    test: tuple[Floats, Codes]


@dataclass(frozen=True)
class Group:
    """Problems whose figures are averaged.

    title    for tables
    labels   how many
    low      public bounds of the features
    repeats  how many times everything is split, or drawn, anew
    draws    releases for each trial and contender
    trials   of a number of repeats
    """

    name: str
    title: str
    labels: int
    low: Floats
    high: Floats
    repeats: int
    draws: int
    make: Callable[[int], Iterator[Trial]]

    @property
    def features(self) -> int:
        return len(self.low)

    def trials(self, repeats: int | None = None) -> Iterator[Trial]:
        return self.make(repeats or self.repeats)


def digest(group: Group, repeats: int | None = None) -> str:
    """Twelve hexadecimal digits of all examples."""
    found = hashlib.sha256(np.concatenate([group.low, group.high]).tobytes())
    for trial in group.trials(repeats):
        for X, y in (trial.learn, trial.test):
            found.update(np.ascontiguousarray(X).tobytes() + y.astype(np.int64).tobytes())
    return found.hexdigest()[:12]


def spread(figures: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The mean of (repeat, accuracy), and its standard error from the means of the repeats."""
    by: dict[int, list[float]] = {}
    for repeat, accuracy in figures:
        by.setdefault(repeat, []).append(accuracy)
    means = [float(np.mean(one)) for one in by.values()]
    error = float(np.std(means, ddof=1)) / len(means) ** 0.5 if len(means) > 1 else 0.0
    return round(float(np.mean(means)), 4), round(error, 4)


# What scikit-learn ships


_RANGE = re.compile(
    r"^[A-Z]?[\w/ ()]*:\s+(-?[\d.]+)\s+(-?[\d.]+)(?:\s+[\d.]+)*\s*$", re.MULTILINE | re.IGNORECASE
)


def printed_bounds(description: str) -> tuple[Floats, Floats]:
    """The least and the most of every feature, from the table in scikit-learn's description of a
    set.
    """
    _, _, table = description.partition(":Summary Statistics:")
    rows = [
        (float(least), float(most))
        for least, most in _RANGE.findall(table.partition(":Missing")[0])
    ]
    low, high = zip(*rows, strict=True)
    return np.array(low), np.array(high)


@cache
def _shipped(name: str) -> tuple[Floats, Codes, str]:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    return np.asarray(found.data, np.float64), np.asarray(found.target, np.intp), str(found.DESCR)


def _splits(X: Floats, y: Codes, tasks: Sequence[int | None], repeats: int) -> Iterator[Trial]:
    """Every task on every split. Task None: all labels as they are."""
    for repeat in range(repeats):
        order = np.random.default_rng([SEED, repeat]).permutation(len(X))
        learn, test = np.split(order, [round(TRAINED * len(X))])
        for number, task in enumerate(tasks):
            codes = y if task is None else (y == task).astype(np.intp)
            yield Trial(repeat, number, (X[learn], codes[learn]), (X[test], codes[test]))


def _real(
    name: str, title: str, source: str, tasks: Sequence[int | None], repeats: int, draws: int
) -> Group:
    X, y, description = _shipped(source)
    if source == "digits":  # "integer pixels in the range 0..16"
        low, high = np.zeros(X.shape[1]), np.full(X.shape[1], 16.0)
    else:
        low, high = printed_bounds(description)
    labels = len(np.unique(y)) if tasks == [None] else 2
    return Group(
        name, title, labels, low, high, repeats, draws, lambda times: _splits(X, y, tasks, times)
    )


# Planted rules


def _planted(
    name: str, title: str, n: int, features: int, low: float, rows: Callable[..., Any]
) -> Group:
    def make(repeats: int) -> Iterator[Trial]:
        for repeat in range(repeats):
            X, y = rows(np.random.default_rng([SEED, n, repeat]), n + TRIED, features)
            yield Trial(repeat, 0, (X[:n], y[:n]), (X[n:], y[n:]))

    return Group(name, title, 2, np.full(features, low), np.ones(features), *SIZES[n], make)


def _flipped(random: np.random.Generator, y: NDArray[np.bool_], noise: float) -> Codes:
    return (y ^ (random.random(len(y)) < noise)).astype(np.intp)


def conjunction(random: np.random.Generator, n: int, features: int) -> tuple[Floats, Codes]:
    """x1 and x4 and not x7, of bits that make it true for half of all rows; one label in ten is
    wrong.
    """
    share = np.full(features, 0.5)
    share[[1, 4, 7]] = 0.8, 0.8, 0.2
    bits = random.random((n, features)) < share
    return bits.astype(np.float64), _flipped(random, bits[:, 1] & bits[:, 4] & ~bits[:, 7], 0.1)


def half_space(random: np.random.Generator, n: int, features: int) -> tuple[Floats, Codes]:
    """2·x0 − x1 + x2 − … ≥ 0 of uniform features; one label in twenty is wrong."""
    X = random.uniform(-1, 1, (n, features))
    weights = np.where(np.arange(features) % 2, -1.0, 1.0)
    weights[0] = 2
    return X, _flipped(random, X @ weights >= 0, 0.05)


def near_ties(random: np.random.Generator, n: int, features: int) -> tuple[Floats, Codes]:
    """Bits that each say the label, independently, six times in ten; x3 says it 62 times in a
    hundred.
    """
    y = random.random(n) < 0.5
    share = np.full(features, 0.6)
    share[3] = 0.62
    right = random.random((n, features)) < share
    return np.where(right, y[:, None], ~y[:, None]).astype(np.float64), y.astype(np.intp)


PLANTED: Final[dict[str, tuple[str, int, float, Callable[..., Any]]]] = {
    "conjunction": ("conjunction of 3 among 40 bits, 10 % label noise", 40, 0.0, conjunction),
    "half-space": ("half-space of 5 features, 5 % label noise", 5, -1.0, half_space),
    "near-ties": ("100 bits, all nearly as good", 100, 0.0, near_ties),
}
"""Title, features, lower bound and maker of each; the upper bound is 1."""

SIZES: Final = {1_000: (5, 3), 10_000: (5, 2), 100_000: (3, 1)}
"""Examples to learn from; with so many, how many sets are drawn and how many releases are made of
each.
"""

CANCER, DIGITS, WINE, WINE_REST = "breast-cancer", "digits", "wine", "wine-rest"


@cache
def groups() -> dict[str, Group]:
    """All of them, by name."""
    real = [
        _real(CANCER, "breast cancer", "breast_cancer", [None], 20, 3),
        _real(DIGITS, "digits, one against the rest", "digits", range(10), 8, 1),
        _real(WINE, "wine", "wine", [None], 20, 3),
        _real(WINE_REST, "wine, one against the rest", "wine", range(3), 10, 2),
    ]
    planted = [
        _planted(f"{name}-{n}", f"{title}, {n:,} examples", n, features, low, rows)
        for name, (title, features, low, rows) in PLANTED.items()
        for n in SIZES
    ]
    return {group.name: group for group in [*real, *planted]}
