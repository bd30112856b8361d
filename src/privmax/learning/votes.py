"""Votes of blocks of rows for sets of columns: how rows are dealt, and what a block votes for.

Proof:      docs/proofs/stable-selection.md
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import lars_path

from privmax.errors import ParameterError
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.learning.labels import read_column
from privmax.mechanisms.contract import Outcome
from privmax.noise.coins import Coins
from privmax.profile import LARGEST_UNIVERSE, Profile
from privmax.sources.base import PlainSource

Columns = tuple[int, ...]
"""A set of columns, ascending."""


class VoteSource(PlainSource):
    """Sets of columns and their votes. It is private.

    Examples:
        >>> source = VoteSource(Counter({(0, 2): 5, (1, 2): 1}), features=3, size=2, universe=4)
        >>> source
        VoteSource(<private>)
        >>> source.names([Outcome(5), Outcome(1), Outcome(0), Outcome(0, 1), Outcome(None)])
        [(0, 2), (1, 2), (), (0, 1), None]
    """

    step = Fraction(1)

    def __init__(
        self, votes: Counter[Columns], features: int, size: int | None, universe: int | None
    ) -> None:
        self._votes, self._features, self._size = votes, features, size
        self.profile = Profile(Counter(votes.values()).items(), universe=universe)

    def __repr__(self) -> str:
        return "VoteSource(<private>)"

    def names(self, outcomes: Sequence[Outcome]) -> list[Columns | None]:
        """Return the set each outcome stands for; None for no answer."""
        return [self._name(outcome) for outcome in outcomes]

    def _name(self, outcome: Outcome) -> Columns | None:
        score = outcome.score
        if score is None:
            return None
        listed = sorted(
            one
            for one, votes in self._votes.items()
            if (votes <= score if outcome.below else votes == score)
        )
        if outcome.index < len(listed):
            return listed[outcome.index]
        numbers = sorted(map(self._rank, self._votes))
        return self._unrank(nth_outside(outcome.index - len(listed), numbers))

    @cached_property
    def _numbering(self) -> Numbering:
        sizes = range(1, self._features + 1)
        if self._size is not None:
            size = min(self._size, self._features)
            sizes = range(size, size + 1)
        return Numbering(self._features, sizes)

    def _rank(self, columns: Columns) -> int:
        """Return the number of a set; that of no columns is 0."""
        return 1 + self._numbering.rank(columns) if columns else 0

    def _unrank(self, number: int) -> Columns:
        return self._numbering.unrank(number - 1) if number else ()


def count_sets(features: int, size: int | None) -> int | None:
    """Count the sets of columns, that of none included.

    None where they are too many for a closed universe.

    Examples:
        >>> count_sets(10, 2), count_sets(10, None), count_sets(10**6, 500)
        (46, 1024, None)
    """
    if size is None:
        return 1 << features if features < LARGEST_UNIVERSE.bit_length() else None
    number = 1 + math.comb(features, min(size, features))
    return number if number <= LARGEST_UNIVERSE else None


def deal(rows: int, blocks: int, coins: Coins) -> list[NDArray[np.intp]]:
    """Return the rows of each block: every row goes to one of them by 64 coins of its own.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> parts = deal(10, 3, SYSTEM)
        >>> sorted(np.concatenate(parts).tolist())
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    drawn = np.frombuffer(coins.bytes(8 * rows), np.uint64) % np.uint64(blocks)
    order = np.argsort(drawn, kind="stable")
    ends = np.searchsorted(drawn[order], np.arange(1, blocks, dtype=np.uint64))
    return np.split(order, ends)


def lasso_weights(X: NDArray[np.float64], y: NDArray[Any], size: int) -> NDArray[np.float64]:
    """Coefficients at the first step of the lasso's path with `size` columns, standardized here.

    Examples:
        >>> X = np.array([[1.0, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]])
        >>> np.flatnonzero(lasso_weights(X, X[:, 0], 1)).tolist()
        [0]
    """
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    target = np.asarray(y, np.float64)
    _, _, path = lars_path(scaled, target - target.mean(), method="lasso", max_iter=4 * size + 8)
    many = (path != 0).sum(axis=0)
    enough = np.flatnonzero(many >= size)
    weights: NDArray[np.float64] = path[:, enough[0] if enough.size else -1]
    return weights


def top_columns(weights: NDArray[np.float64], size: int) -> Columns:
    """Return the columns of the largest weights, the first of equals.

    Raises:
        ValueError: A weight is no number, or fewer are other than 0.

    Examples:
        >>> top_columns(np.array([0.5, -2.0, 0.5]), 2)
        (0, 1)
    """
    size_of = np.abs(np.asarray(weights, np.float64))
    if not np.isfinite(size_of).all() or np.count_nonzero(size_of) < size:
        raise ValueError("there are not as many weights")
    order = np.argsort(-size_of, kind="stable")
    return tuple(sorted(order[:size].tolist()))


def read_columns(model: Any, features: int, size: int | None) -> Columns:
    """Return what a fitted selector or model selects: by itself, or its `size` heaviest columns.

    Examples:
        >>> from sklearn.linear_model import Lasso
        >>> X = np.eye(4)
        >>> read_columns(Lasso(alpha=0.01).fit(X, X[:, 2]), 4, None)
        (2,)
    """
    model = model.steps[-1][1] if hasattr(model, "steps") else model
    weights = getattr(model, "coef_", None)
    if weights is None:
        weights = getattr(model, "feature_importances_", None)
    if hasattr(model, "get_support") and (size is None or weights is None):
        mask = np.asarray(model.get_support())
        if mask.shape != (features,):
            raise ValueError("the mask has another shape")
        if size is not None and np.count_nonzero(mask) != min(size, features):
            raise ValueError("the mask has another size")
        return tuple(np.flatnonzero(mask).tolist())
    total = np.abs(np.asarray(weights, np.float64)).reshape(-1, features).sum(axis=0)
    if size is None:
        return tuple(np.flatnonzero(total).tolist())
    return top_columns(total, min(size, features))


def check_selector(estimator: Any) -> None:
    """Refuse what cannot select columns in any block, as far as that is public.

    Raises:
        ParameterError: It is no estimator, or a pipeline that changes the columns.

    Examples:
        >>> check_selector("lasso")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: estimator='lasso' is not allowed: ...
    """
    if isinstance(estimator, type) or not all(
        hasattr(estimator, name) for name in ("fit", "get_params")
    ):
        raise ParameterError(
            "estimator", estimator, "it must be a selector or a model of scikit-learn",
            "For example Lasso(alpha=0.1).",
        )  # fmt: skip
    for name, step in getattr(estimator, "steps", [])[:-1]:
        if not isinstance(step, OneToOneFeatureMixin | str | None):
            raise ParameterError(
                "estimator", f"<pipeline with {name}>", "that step need not keep the columns as "
                "they are, so coefficients after it are not those of columns",
                "Leave it out.",
            )  # fmt: skip


def own_type(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of a block, of the type they have there.

    Not one that labels elsewhere give.
    """
    return y if y.dtype.kind in "biuf" else read_column(y.tolist(), "y")


def pin_randomness(model: Any) -> Any:
    """Set every open random state of a model to 0, and its jobs to one at a time.

    Sums of several threads depend on which is done first.
    """
    parameters = {name: (name.split("__")[-1], value) for name, value in model.get_params().items()}
    states = {name: 0 for name, one in parameters.items() if one == ("random_state", None)}
    jobs = {name: 1 for name, one in parameters.items() if one[0] == "n_jobs"}
    return model.set_params(**states, **jobs)


@contextmanager
def fixed_randomness() -> Iterator[Callable[[], None]]:
    """Provide a call that sets the global states of random numbers, always the same way.

    They are NumPy's and Python's; at the end they are what they were.
    """
    before = np.random.get_state(), random.getstate()  # selectors may use them

    def reset() -> None:
        np.random.seed(0)
        random.seed(0)

    try:
        yield reset
    finally:
        np.random.set_state(before[0])
        random.setstate(before[1])
