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

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from privmax.best_items import BestItems
from privmax.choice import Choice, auto
from privmax.errors import ParameterError
from privmax.learning.descriptions import describe_selector, is_vague
from privmax.learning.selector import PrivateSelector
from privmax.learning.votes import (
    Columns,
    VoteSource,
    check_selector,
    count_sets,
    deal,
    fixed_randomness,
    lasso_weights,
    own_type,
    pin_randomness,
    read_columns,
    top_columns,
)
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import Coins
from privmax.numbers import Number, positive, probability, whole
from privmax.privacy import REPLACE
from privmax.release import Release
from privmax.universe import OPEN_UNIVERSE, Universe

ALL, NONE, ANY = "all", "none", "any"

MOST_BLOCKS = 1 << 20
"""No more blocks may vote: each takes time and memory."""

WHY = "the set with most votes is released only if it is stable"
"""The reason for the gap test."""


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
        if is_vague(describe_selector(self.estimator)):
            raise ParameterError(
                "request", Request.of(self.ledger).id, "a repeated request must ask the same, and "
                "the estimator has a parameter whose repr does not identify it",
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
        with threadpool_limits(limits=1), fixed_randomness() as reset:
            votes: Counter[Columns] = Counter()
            filled = [part for part in parts if part.size]
            empty = [part for part in parts if not part.size]
            # A vote is a function of the rows of its block: one without rows votes for all of them.
            for part in (*filled, *empty[:1]):
                reset()
                votes[vote(X[part], own_type(y[part]))] += 1 if part.size else len(empty)
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
                    model = pin_randomness(clone(estimator)).fit(X, y)
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
        return type(self.estimator).__name__ if is_vague(description) else description

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
