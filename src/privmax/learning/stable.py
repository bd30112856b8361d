"""Columns that a selector finds in one block of rows after the other, released if they are stable.

    Every row goes to one of B blocks by a coin of its own. A selector, such as the lasso, runs on
    each block by itself, and the block votes for the set of columns it finds. One row is in one
    block, so it moves one vote: one set loses one, another gains one. The sets are the candidates
    of a selection with their votes as scores.

Proof:      docs/proofs/stable-selection.md
Reference:  Smith & Thakurta, COLT 2013 (stability of the lasso's support);
            Nissim, Raskhodnikova & Smith, STOC 2007 (subsample and aggregate)
"""

from __future__ import annotations

import math
import random
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from fractions import Fraction
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import lars_path
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from privmax.best_items import BestItems
from privmax.choice import Choice, auto
from privmax.errors import DataError, ParameterError
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.learning.estimator import (
    _PLACE,
    _check_types,
    _mixed_columns,
    _quietly,
    _text_names,
    _width,
    describe_class,
)
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.scoring import read_column
from privmax.ledger import Ledger
from privmax.ledger.events import ROW
from privmax.ledger.payment import Description
from privmax.ledger.request import Request, is_strict
from privmax.mechanisms.contract import Mechanism, Outcome
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, probability, whole
from privmax.privacy import ADD_REMOVE, REPLACE, relation
from privmax.profile import LARGEST_UNIVERSE, Profile
from privmax.release import Release, answer
from privmax.sources.base import PlainSource, Source
from privmax.sources.containers.pandas import is_column, refuse_rounded
from privmax.universe import OPEN_UNIVERSE, Universe
from privmax.warnings import warn_of_fits

Columns = tuple[int, ...]
"""A set of columns, ascending."""

ALL, NONE, ANY = "all", "none", "any"

MOST_BLOCKS = 1 << 20
"""No more blocks may vote: each takes time and memory."""

WHY = "the set with most votes is released only if it is stable"
"""Why the gap test runs."""

_NOT_NUMBERS = (
    "y has a value that is not a finite number. Give numbers, such as 0 and 1 for classes."
)


class PrivateSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What private selectors of columns share: one release, and a mask."""

    release_: Release
    ledger: Ledger | Request | None
    coins: Coins | None
    neighbors: str | None
    unit: str | None

    def fit(self, X: Any, y: Any) -> PrivateSelector:
        """Choose columns, at the cost of one release."""
        warn_of_pipeline(self)
        self.__dict__.pop("support_", None)  # a fit that fails leaves no mask of another shape
        self._check()
        if is_strict(self.ledger):
            features = _width(X)

            def read() -> tuple[NDArray[np.float64], NDArray[Any]]:
                return self._validate(X, y, features)
        else:
            self._question(1)  # wrong parameters are told before X is looked at
            rows = self._validate(X, y)
            features = rows[0].shape[1]

            def read() -> tuple[NDArray[np.float64], NDArray[Any]]:
                return rows

        self._check_width(features)
        question = self._question(features)
        if self.ledger is None:
            warn_of_fits(question.privacy(), type(self).__name__)
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        release = answer(
            question,
            lambda stack: self._source(*read(), question, coins),
            self.ledger,
            description=Description(type(self).__name__, self._options(features)),
            coins=coins,
        )
        self.n_features_in_ = features  # what was wrong with X, if anything was, is not told
        if names := _text_names(X):
            self.feature_names_in_ = np.array(names, dtype=object)
        self.release_, self.support_ = release, self._mask(release, features)
        self._warn(release)
        return self

    def transform(self, X: Any) -> Any:
        """Return X with the columns that are kept."""
        keep = super().transform
        return _quietly(lambda: keep(X), _mixed_columns(X), schema=False)

    def _check(self) -> None:  # most have nothing to check beside the question
        """Refuse parameters that `_question` does not look at."""

    def _check_width(self, features: int) -> None:  # likewise
        """Refuse parameters that do not fit so many columns."""

    def _warn(self, release: Release) -> None:  # most have nothing to tell
        """Warn of a release without columns, when everything is in its place."""

    @abstractmethod
    def _question(self, features: int) -> BestItems:
        """Return what runs at what cost, for so many columns."""

    @abstractmethod
    def _source(
        self, X: NDArray[np.float64], y: NDArray[Any], question: BestItems, coins: Coins
    ) -> Source:
        """Return the candidates and their scores."""

    @abstractmethod
    def _options(self, features: int) -> dict[str, object]:
        """Return what a ledger writes down of a fit."""

    @abstractmethod
    def _mask(self, release: Release, features: int) -> NDArray[np.bool_]:
        """Return which columns are kept."""

    def _validate(
        self, X: Any, y: Any, features: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        _check_types(X, schema=False)
        if isinstance(y, (list, tuple)) or is_column(y):
            # no label decides of what type others are
            y = read_column(refuse_rounded(y), "y").astype(object)
        X, y = _quietly(
            lambda: validate_data(self, X, y, dtype=np.float64, ensure_min_samples=1),
            _mixed_columns(X),
            schema=False,
        )
        if features is not None and X.shape[1] != features:
            raise DataError("X does not have as many columns as its shape says.")
        return X, _as_numbers(y) if self._needs_numbers() else y

    def _needs_numbers(self) -> bool:
        return True

    def _rows(self) -> str:
        """Return the relation of rows that the cost is stated for."""
        return ADD_REMOVE if self.neighbors is None else relation(self.neighbors)

    def _unit(self) -> str:
        return ROW if self.unit is None else self.unit

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


class StableSelector(PrivateSelector):
    """Keep the columns that a selector finds in most blocks of rows, with privacy.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again. Rows are dealt to blocks at random; the
    selector sees one block at a time, and each block has one vote. The set with most votes is
    released if it leads clearly. If not, nothing is, and what `fallback` says is kept: it costs the
    same.

    THE SELECTOR MUST GIVE THE SAME COLUMNS FOR THE SAME BLOCK, to the last bit, whatever ran before
    it or runs beside it: otherwise a row could move the votes of blocks it is not in. So random
    numbers begin alike in every block, and numerical libraries use one thread (`n_jobs` is 1). What
    a selector keeps elsewhere, such as in a file or on a graphics card, is up to you. A block in
    which it fails, or finds fewer than `size` columns, votes for no columns. If that wins,
    `fallback` counts, too.

    `fit` sets `support_`, the mask; `release_`, with its cost, mechanism and why, whose item holds
    the numbers of the columns, or is None, or empty; `blocks_`, how many blocks voted. All of it
    may be published.

    Args:
        estimator: A selector or a model of scikit-learn with `coef_` or `feature_importances_`, or
            a pipeline of steps that keep the columns (such as StandardScaler) and one of these; by
            default the lasso, on columns standardized within the block, along its path until `size`
            columns are in.
        size: How many columns a block votes for; public. None: as many as the estimator selects by
            itself (`get_support`, or coefficients other than 0).
        epsilon: What one `fit` costs; a float means the decimal that it prints as.
        delta: Probability with which the guarantee may fail; such as 1e-6. Only fallback="any" does
            without.
        blocks: How many blocks vote; public. By default twice the lead that the winner needs. More
            make the vote safer, and each block smaller.
        fallback: What is kept where nothing is released: "all" columns, or "none". "any": there is
            always a set, drawn from all sets of columns by their votes. That needs a smaller lead
            where sets are few (11 votes instead of 31 for 20 sets at epsilon 1), and does not show
            whether the set was stable. With a delta above 0 and very many sets `auto` may choose a
            mechanism that can abstain, and then all columns are kept.
        mechanism: A mechanism object for neighbors="replace", instead of epsilon and delta; or the
            name of one beside them. By default the gap test, and with fallback="any" what `auto`
            chooses.
        neighbors: "add-remove" (the default) or "replace", of rows: the cost is the same, and a
            ledger wants to know.
        unit: What the cost hides, for the ledger: "row" by default.
        ledger: The privacy budget that covers every `fit`; or `ledger.request("nightly", …)`.
        coins: Source of random bits; for tests only.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(5000, 6))
        >>> selector = StableSelector(size=2, epsilon=1, delta=1e-6).fit(X, X[:, 1] - X[:, 4])
        >>> selector.get_support(indices=True).tolist()
        [1, 4]
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        size: int | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        blocks: int | None = None,
        fallback: str = ALL,
        mechanism: Mechanism | str | None = None,
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.estimator = estimator
        self.size = size
        self.epsilon = epsilon
        self.delta = delta
        self.blocks = blocks
        self.fallback = fallback
        self.mechanism = mechanism
        self.neighbors = neighbors
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def _check(self) -> None:
        if self.estimator is not None:
            check_selector(self.estimator)
        if self.ledger is None or Request.of(self.ledger).id is None:
            return
        if _is_vague(describe_selector(self.estimator)):
            raise ParameterError(
                "request", Request.of(self.ledger).id, "a repeated request must ask the same, and "
                "the estimator has a parameter whose repr does not say what it is",
                "Use named functions and objects with a __repr__, or leave request out.",
            )  # fmt: skip

    def _question(self, features: int) -> BestItems:
        if self.fallback not in (ALL, NONE, ANY):
            raise ParameterError(
                "fallback", self.fallback, f'it must be "{ALL}", "{NONE}" or "{ANY}"'
            )
        if self.blocks is not None and whole("blocks", self.blocks, least=2) > MOST_BLOCKS:
            raise ParameterError(
                "blocks", self.blocks, f"it must be at most {MOST_BLOCKS}",
                "Leave it out: by default it is twice the lead that the winner needs.",
            )  # fmt: skip
        if self.epsilon is None and (self.mechanism is None or isinstance(self.mechanism, str)):
            raise ParameterError.required(
                "epsilon", "", "Give epsilon (and delta), or a mechanism."
            )
        if self.estimator is None and self.size is None:
            raise ParameterError.required(
                "size", "the lasso goes on until so many columns are in", "For example 5."
            )
        is_made = self.mechanism is not None and not isinstance(self.mechanism, str)
        if is_made and getattr(self.mechanism, "neighbors", REPLACE) != REPLACE:
            raise ParameterError(
                "mechanism", self.mechanism, "one row moves a vote from one set to another",
                'Make it with neighbors="replace".',
            )  # fmt: skip
        if getattr(self.mechanism, "k", 1) != 1:
            raise ParameterError(
                "mechanism", self.mechanism, "one set of columns is released",
                "Make it without k. How many columns a set has is size.",
            )  # fmt: skip
        size = None if self.size is None else whole("size", self.size)
        number = count_sets(features, size) if self.fallback == ANY else None
        if self.fallback == ANY and number is None:
            raise ParameterError(
                "fallback", ANY, f"there are more than 2^1000 sets of {features} columns",
                f'Use "{ALL}" or "{NONE}", or a smaller size.',
            )  # fmt: skip
        if not is_made and not self.delta and number is None:
            raise ParameterError(
                "delta", self.delta, "a test of stability needs a delta above 0",
                'Give a small one such as 1e-6, or fallback="any".',
            )  # fmt: skip
        question = BestItems(
            epsilon=self.epsilon,
            delta=None if is_made and not self.delta else self.delta,
            given=self.mechanism,
            neighbors=None if is_made else REPLACE,
            growth=1 if self._takes_growth() else None,
            universe=OPEN_UNIVERSE if number is None else Universe(number),
            unit=self._unit(),
            rows=self._rows(),
            choose=choose_stable,
        )
        if number is None and not question.choice.mechanism.privacy().delta:
            raise ParameterError(
                "mechanism", self.mechanism, "it must be able to draw every set of columns",
                'Use fallback="any", or a mechanism with a delta above 0.',
            )  # fmt: skip
        return question

    def _takes_growth(self) -> bool:
        """Return whether the mechanism uses that one vote is for one set."""
        if isinstance(self.mechanism, str) and self.mechanism in MECHANISMS:
            return "growth" in MECHANISMS[self.mechanism].parameters
        return self.mechanism is None

    def _count_blocks(self, question: BestItems) -> int:
        """Return how many blocks vote: as given, or twice the lead; at least 2, public."""
        if self.blocks is not None:
            return self.blocks
        size = question.universe.size
        return max(2, 2 * question.choice.mechanism.lead(candidates=size))

    def _source(
        self, X: NDArray[np.float64], y: NDArray[Any], question: BestItems, coins: Coins
    ) -> VoteSource:
        blocks = self._count_blocks(question)
        vote = self._vote()
        parts = deal(len(X), blocks, coins)
        with threadpool_limits(limits=1), _fixed_randomness() as reset:
            votes: Counter[Columns] = Counter()
            filled = [part for part in parts if part.size]
            empty = [part for part in parts if not part.size]
            # A vote is a function of the rows of its block: one without rows votes for all of them.
            for part in (*filled, *empty[:1]):
                reset()
                votes[vote(X[part], _own_type(y[part]))] += 1 if part.size else len(empty)
        return VoteSource(votes, X.shape[1], self.size, question.universe.size)

    def _vote(self) -> Callable[[NDArray[np.float64], NDArray[Any]], Columns]:
        """Return what a block votes for: a function of its rows alone, which never fails."""
        size, estimator = self.size, self.estimator

        def vote(X: NDArray[np.float64], y: NDArray[Any]) -> Columns:
            features = X.shape[1]
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    if estimator is None:
                        weights = lasso_weights(X, y, min(size or 1, features))
                        return top_columns(weights, min(size or 1, features))
                    model = _pin(clone(estimator)).fit(X, y)
                    return read_columns(model, features, size)
            except Exception:  # whatever went wrong, and its message, belongs to the block
                return ()

        return vote

    def _options(self, features: int) -> dict[str, object]:
        return {
            "estimator": None if self.estimator is None else self._describe_estimator(),
            "size": self.size,
            "features": features,
            "blocks": self._count_blocks(self._question(features)),
            "fallback": self.fallback,
            "neighbors": self.neighbors,
        }

    def _describe_estimator(self) -> str:
        description = describe_selector(self.estimator)
        return type(self.estimator).__name__ if _is_vague(description) else description

    def _mask(self, release: Release, features: int) -> NDArray[np.bool_]:
        self.blocks_ = self._count_blocks(self._question(features))
        mask = np.full(features, not release.item and self.fallback != NONE)
        mask[list(release.item or ())] = True
        return mask

    def _warn(self, release: Release) -> None:
        if release.item:
            return
        what = "too few blocks agreed on a set of columns"
        if release.item is not None:
            what = (
                "in most blocks no columns were found, or fewer than size says, or the estimator "
                "failed"
            )
        warnings.warn(
            f"No answer: {what}, so "
            f"{'no column is' if self.fallback == NONE else 'all columns are'} kept. A smaller "
            "size, more rows or a larger epsilon help.",
            stacklevel=3,
        )

    def _needs_numbers(self) -> bool:
        return self.estimator is None


def choose_stable(*, epsilon: Number, delta: Number, universe: Universe, **options: Any) -> Choice:
    """Choose the gap test in an open universe, and what `auto` chooses in a closed one.

    It releases the set with most votes or nothing, as often as the cost allows.

    Args:
        epsilon: What it costs.
        delta: Probability with which the guarantee may fail.
        universe: All sets of columns there are.
        options: What `auto` takes beside.

    Examples:
        >>> choose_stable(epsilon=1, delta="1e-6", universe=OPEN_UNIVERSE).mechanism
        GapTest(epsilon=1, delta=1e-06, neighbors='replace', k=1)
    """
    if not universe.is_open:
        return auto(epsilon=epsilon, delta=delta, universe=universe, **options)
    test = GapTest(
        epsilon=positive("epsilon", epsilon),
        delta=probability("delta", delta),
        neighbors=REPLACE,
    )
    return Choice(test, WHY)


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


def describe_selector(value: Any) -> str:
    """Describe an estimator as a ledger writes it, the same in every process.

    Parameters at their defaults are left out.

    Examples:
        >>> from sklearn.feature_selection import SelectKBest, f_regression
        >>> describe_selector(SelectKBest(f_regression, k=3))
        'SelectKBest(k=3, score_func=sklearn.feature_selection._univariate_selection.f_regression)'
    """
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(describe_selector, value))})"
    if isinstance(value, dict):
        parts = [f"{key!r}: {describe_selector(setting)}" for key, setting in value.items()]
        return f"{{{', '.join(parts)}}}"
    if not hasattr(value, "get_params"):
        return describe_class(value)
    usual = {
        name: getattr(parameter, "default", None)
        for name, parameter in signature(type(value)).parameters.items()
    }
    arguments = [
        f"{name}={described}"
        for name, setting in sorted(value.get_params(deep=False).items())
        if (described := describe_selector(setting)) != describe_selector(usual.get(name))
    ]
    return f"{type(value).__name__}({', '.join(arguments)})"


def _is_vague(description: str) -> bool:
    """Return whether a description could be that of another, or is another in each process."""
    return any(sign in description for sign in (_PLACE, "<lambda>", "<locals>"))


def _as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return y as floats, each value by itself."""
    numbers = None
    if y.dtype.kind in "biufO":
        with suppress(TypeError, ValueError, OverflowError):
            numbers = y.astype(np.float64)
    if numbers is None or not np.isfinite(numbers).all():
        raise DataError(_NOT_NUMBERS)
    return numbers


def _own_type(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of a block, of the type they have there.

    Not one that labels elsewhere give.
    """
    return y if y.dtype.kind in "biuf" else read_column(y.tolist(), "y")


def _pin(model: Any) -> Any:
    """Set every open random state of a model to 0, and its jobs to one at a time.

    Sums of several threads depend on which is done first.
    """
    parameters = {name: (name.split("__")[-1], value) for name, value in model.get_params().items()}
    states = {name: 0 for name, one in parameters.items() if one == ("random_state", None)}
    jobs = {name: 1 for name, one in parameters.items() if one[0] == "n_jobs"}
    return model.set_params(**states, **jobs)


@contextmanager
def _fixed_randomness() -> Iterator[Callable[[], None]]:
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
