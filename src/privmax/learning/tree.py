"""A decision tree whose splits are chosen under differential privacy, one after the other.

It is here to compare with: the split selection that the field began with. `PrivateERM(Trees(…))`
chooses a whole tree at once, and `PrivateGAM` adds up whole columns; both are usually better.

Proof:      docs/proofs/private-tree.md
Reference:  Friedman & Schuster, KDD 2010
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.errors import DataError, ParameterError
from privmax.learning.additive.model import Codes
from privmax.learning.additive.reading import (
    check_columns,
    check_schema,
    read_examples,
    read_labels,
    refuse_table,
    sort_chances,
    tag_classifier,
    unfit_record,
)
from privmax.learning.additive.words import name_cells
from privmax.learning.columns import is_frame
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.schema import Schema
from privmax.learning.split_scores import NAMES, MaxScore, SplitScore, read_name, read_score
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Charge, label
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Relation, read_relation
from privmax.mechanisms.exponential import Exponential
from privmax.noise import bulk
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, whole
from privmax.parameters import (
    Exact,
    OptionalWhole,
    Parameter,
    Parameters,
    Whole,
    optional,
    parameter,
)
from privmax.payload import Drawn
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.release import Release, answer
from privmax.sources.memory import MemorySource
from privmax.warnings import warn_of_fits

DEEPEST = 12
"""A tree of this depth has 4,096 leaves."""

MAX = MaxScore()


class TreeSplits(Parameters):
    """How a tree spends epsilon: the same on each level of splits, and on the counts in leaves.

    Args:
        epsilon: What the fit costs.
        depth: How many splits lie on the way to a leaf.
        neighbors: "add-remove" or "replace".
        criterion: What makes a split good: "max", "gini" or "information-gain".
        rows: For information gain, a public bound on the number of rows.

    Examples:
        >>> splits = TreeSplits(epsilon=1, depth=3)
        >>> splits.level, TreeSplits(epsilon=1, depth=3, neighbors="replace").level
        (Fraction(1, 4), Fraction(1, 8))
    """

    epsilon: Exact = parameter(positive)
    depth: Whole = parameter(whole, default=3)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    criterion: Parameter[str, str] = parameter(read_name, default=NAMES[0])
    rows: OptionalWhole = parameter(optional(whole), default=None)

    k = 1
    ranked = True
    bounded_range = False

    def __repr__(self) -> str:
        """As before there were scores to choose from: ledgers keep it with each request."""
        return super().__repr__().replace(f", criterion={NAMES[0]!r}, rows=None", "")

    def privacy(self) -> Privacy:
        """Return what the whole fit costs."""
        return Privacy(self.epsilon)

    @property
    def level(self) -> Fraction:
        """Epsilon of each draw. Where a row takes another's place, two nodes of a level change."""
        return self.epsilon / ((self.depth + 1) * drift(self.neighbors))

    @cached_property
    def split_score(self) -> SplitScore:
        """What the splits are scored by."""
        return read_score(self.criterion, self.rows)

    def check(self) -> None:
        """Refuse an epsilon for which there is no noise, before anything is read or charged.

        Raises:
            ParameterError: It is too small, or the score lacks its bound on rows.
        """
        read_score(self.criterion, self.rows)
        try:
            bulk.discrete_laplace(1 / self.level, 0, SYSTEM)
        except ParameterError:
            raise ParameterError(
                "epsilon", float(self.epsilon),
                f"it leaves too little for each of {self.depth + 1} draws",
                "Use a larger epsilon; common values are between 0.1 and 3.",
            ) from None  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """Noisy counts of both labels."""

    counts: tuple[int, int]
    depth = 0

    def to_json(self) -> Any:
        return {"counts": list(self.counts)}

    @property
    def chance(self) -> float:
        """Of the second label; counts that noise made negative are 0."""
        first, second = (max(count, 0) for count in self.counts)
        return (second + 1) / (first + second + 2)

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        return np.full(codes.shape[1], self.chance)

    def tell(self, schema: Schema, labels: Sequence[Any]) -> Iterator[str]:
        yield str(labels[int(self.chance > 0.5)])


@dataclass(frozen=True)
class Split:
    """Rows with some cells of a feature go to the first branch, all others to the second."""

    feature: int
    cells: tuple[int, ...]
    first: Split | Leaf
    second: Split | Leaf

    def __str__(self) -> str:
        return f"tree of depth {self.depth}"

    @property
    def depth(self) -> int:
        """How many splits lie on the longest way to a leaf."""
        return 1 + max(self.first.depth, self.second.depth)

    def to_json(self) -> Any:
        branches = [self.first.to_json(), self.second.to_json()]
        return {"feature": self.feature, "cells": list(self.cells), "branches": branches}

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        go = np.isin(codes[self.feature], self.cells)
        chances = np.empty(codes.shape[1])
        chances[go], chances[~go] = (
            self.first.chances(codes[:, go]),
            self.second.chances(codes[:, ~go]),
        )
        return chances

    def tell(self, schema: Schema, labels: Sequence[Any]) -> Iterator[str]:
        """Yield the tree in words, a line for each leaf."""
        test = name_cells(schema.columns[self.feature], self.cells)
        for words, branch in ((test, self.first), (f"not ({test})", self.second)):
            for rest in branch.tell(schema, labels):
                yield f"{words}, {rest}" if isinstance(branch, Split) else f"{words}: {rest}"


def read_node(written: Mapping[str, Any]) -> Split | Leaf:
    """Return what `to_json` of a node wrote.

    Examples:
        >>> tree = Split(0, (0,), Leaf((3, 1)), Leaf((0, 2)))
        >>> read_node(tree.to_json()) == tree
        True
    """
    if "counts" in written:
        return Leaf(tuple(written["counts"]))
    first, second = map(read_node, written["branches"])
    return Split(written["feature"], tuple(written["cells"]), first, second)


def list_splits(schema: Schema) -> list[tuple[int, tuple[int, ...]]]:
    """List all splits there are, which is public.

    There is one per threshold of a number, and per value of a category.

    Examples:
        >>> from privmax.learning import Category, Number
        >>> list_splits(Schema(age=Number(0, 9, cells=3), job=Category(["a"])))
        [(0, (0,)), (0, (0, 1)), (1, (0,)), (1, (1,))]
    """
    splits = []
    for feature, column in enumerate(schema.columns):
        for cell in range(column.cells - 1 if column.ordered else column.cells):
            cells = tuple(range(cell + 1)) if column.ordered else (cell,)
            splits.append((feature, cells))
    return splits


def score_splits(
    codes: Codes, labels: NDArray[np.bool_], schema: Schema, score: SplitScore = MAX
) -> NDArray[np.int64]:
    """Return how good each split is: the score of its two branches.

    By default that is how many rows are right if each branch says the label that most of it have.
    """
    scores = []
    for feature, column in enumerate(schema.columns):
        counts = np.zeros((2, column.cells), np.int64)
        for row, have in enumerate((~labels, labels)):
            counts[row] = np.bincount(codes[feature][have], minlength=column.cells)
        inside = np.cumsum(counts, axis=1)[:, :-1] if column.ordered else counts
        outside = counts.sum(axis=1, keepdims=True) - inside
        scores.append(score.of(inside) + score.of(outside))
    return np.concatenate(scores)


def grow(
    codes: Codes, labels: NDArray[np.bool_], schema: Schema, terms: TreeSplits, coins: Coins
) -> Split | Leaf:
    """Return a tree: what is returned is released."""
    splits = list_splits(schema)
    chooser = Exponential(epsilon=terms.level)  # the scores of one node are monotone

    def node(codes: Codes, labels: NDArray[np.bool_], depth: int) -> Split | Leaf:
        if depth == 0:
            second = int(np.count_nonzero(labels))
            noise = bulk.discrete_laplace(1 / terms.level, 2, coins)
            first, second = (np.array([len(labels) - second, second]) + noise).tolist()
            return Leaf((first, second))
        scores = score_splits(codes, labels, schema, terms.split_score)
        source = MemorySource(
            scores, universe=len(splits), sensitivity=terms.split_score.sensitivity
        )
        feature, cells = splits[source.name(chooser.draw(source.profile, coins))]
        go = np.isin(codes[feature], cells)
        return Split(
            feature,
            cells,
            node(codes[:, go], labels[go], depth - 1),
            node(codes[:, ~go], labels[~go], depth - 1),
        )

    return node(codes, labels, terms.depth)


class PrivateTree(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A decision tree for two labels, each split chosen by the exponential mechanism.

    ONE ROW IS ONE INDIVIDUAL, and every `fit` pays again.

    Args:
        schema: Which columns there are, and into which cells their values fall. It is public.
        epsilon: What one `fit` costs.
        labels: The two labels, public knowledge.
        depth: How many splits lie on the way to a leaf; the tree is whole, whatever the data.
        criterion: What makes a split good: "max" (the default: rows that are right), "gini", or
            "information-gain", which needs `rows`.
        rows: A public bound on the number of rows. Data with more is refused.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        unit: What the cost hides, for the ledger: "row" by default.
        ledger: The privacy budget that covers every `fit`; a Ledger, or a request to one.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Number, PrivateTree, Schema
        >>> X = np.arange(10_000.0).reshape(-1, 1)
        >>> tree = PrivateTree(Schema(x=Number(0, 10_000, cells=2)), 1, labels=[0, 1], depth=1)
        >>> tree.fit(X, X[:, 0] >= 5_000).rules_
        ['x < 5000: 0', 'not (x < 5000): 1']
    """

    def __init__(
        self,
        schema: Schema | None = None,
        epsilon: Number | None = None,
        *,
        labels: Sequence[Any] | None = None,
        depth: int = 3,
        criterion: str = NAMES[0],
        rows: int | None = None,
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.labels = labels
        self.depth = depth
        self.criterion = criterion
        self.rows = rows
        self.neighbors = neighbors
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def fit(self, X: Any, y: Any) -> PrivateTree:
        """Grow a tree, at the cost of one release."""
        warn_of_pipeline(self)
        schema, labels = check_schema(self.schema), read_labels(self.labels)
        splits = self._splits()
        refuse_table(X)
        check_columns(schema, X)
        unit = ROW if self.unit is None else self.unit
        question = TreeFit(splits, schema, unit)
        for name in ("tree_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if self.ledger is None:
            warn_of_fits(splits.privacy(), "PrivateTree")

        def read(stack: ExitStack) -> TreeRows:
            rows = TreeRows(*read_examples(schema, X, y, labels))
            if splits.rows is not None and len(rows.labels) > splits.rows:
                raise DataError("There are more rows than the bound that was declared as rows.")
            return rows

        options = {"schema": repr(schema), "labels": labels.tolist()}
        description = None if self.ledger is None else Description("PrivateTree", options)
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        release = answer(question, read, self.ledger, description=description, coins=coins)
        if release.item is None:
            warnings.warn(
                "No answer: the fit failed after it was charged, so tree_ has no splits and both "
                "labels are equally likely.",
                stacklevel=2,
            )
        self.tree_: Split | Leaf = Leaf((0, 0)) if release.item is None else release.item
        self.release_, self.schema_ = release, schema
        self.labels_, self.classes_ = labels, np.sort(labels)
        self.n_features_in_ = schema.features
        if is_frame(X):
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def privacy_cost(self) -> Charge:
        """Return what one `fit` costs. No data is needed.

        Examples:
            >>> PrivateTree(epsilon=1).privacy_cost().privacy
            Privacy(epsilon=1, delta=0)
        """
        return price_splits(self._splits(), ROW if self.unit is None else self.unit)

    def _splits(self) -> TreeSplits:
        """Return what each draw costs, if all parameters are as they must be."""
        if self.epsilon is None:
            raise ParameterError.required("epsilon", "", "Give epsilon.")
        if whole("depth", self.depth) > DEEPEST:
            raise ParameterError("depth", self.depth, f"it must be at most {DEEPEST}", "Use 3.")
        neighbors = ADD_REMOVE if self.neighbors is None else self.neighbors
        splits = TreeSplits(
            epsilon=self.epsilon,
            depth=self.depth,
            neighbors=neighbors,
            criterion=self.criterion,
            rows=self.rows,
        )
        splits.check()
        return splits

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of each label, for every row of X, in the order of `classes_`."""
        second = self._chances(X)
        return sort_chances(second, self.labels_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier label of every row of X."""
        second = self._chances(X)
        return self.labels_[(second > 0.5).astype(np.intp)]

    def _chances(self, X: Any) -> NDArray[np.float64]:
        """Of the second declared label."""
        check_is_fitted(self, "tree_")
        refuse_table(X)
        return self.tree_.chances(self.schema_.codes(X))

    @property
    def rules_(self) -> list[str]:
        """The tree in words, a line for each leaf."""
        check_is_fitted(self, "tree_")
        return list(self.tree_.tell(self.schema_, self.labels_.tolist()))

    def __sklearn_tags__(self) -> Any:
        return tag_classifier(super().__sklearn_tags__())


@dataclass(frozen=True)
class TreeFit:
    """Which tree fits: it is grown split by split, and a ledger keeps the whole of it.

    It implements `Releasable`.

    Args:
        splits: How the fit spends its budget. They were checked when they were made.
        schema: The columns.
        unit: What the cost hides.
    """

    splits: TreeSplits
    schema: Schema
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            label("unit", self.unit)

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.splits)

    def privacy(self) -> Privacy:
        """Return what the fit costs."""
        return self.splits.privacy()

    def charge(self) -> Charge:
        """Return what to charge."""
        return price_splits(self.splits, self.unit)

    def check(self) -> None:
        """There is nothing to refuse: splits serve every schema."""

    def preflight(self, source: TreeRows) -> None:
        """Nothing more is to be met: the rows are read."""

    def draw(self, source: TreeRows, coins: Coins) -> Drawn:
        """Return a tree."""
        tree = grow(source.codes, source.labels, self.schema, self.splits, coins)
        return Drawn((tree,))

    def draw_nothing(self) -> Drawn:
        """No tree."""
        return Drawn()

    def write(self, payload: Drawn, source: TreeRows) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(lambda node: node.to_json())

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_tree)

    def read_tree(self, written: Any) -> Split | Leaf:
        """Read a tree that a ledger keeps, if it is one of this schema."""
        try:
            tree = read_node(written)
            if _is_grown(tree, set(list_splits(self.schema)), self.splits.depth):
                return tree
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            pass  # it is not even of that form
        raise unfit_record("tree")

    def release(self, payload: Drawn) -> Release:
        """Return the release of a tree."""
        why = "a tree is grown split by split"
        return Release(payload, self.privacy(), self.splits, why, unit=self.unit)


def price_splits(splits: TreeSplits, unit: str | None) -> Charge:
    """Return what all draws for a tree cost."""
    return Charge(splits.privacy(), neighbors=splits.neighbors, unit=unit)


def _is_grown(node: Split | Leaf, splits: set[tuple[int, tuple[int, ...]]], depth: int) -> bool:
    """Return whether a node has all its levels, and splits that there are."""
    if isinstance(node, Leaf):
        return depth == 0 and len(node.counts) == 2 and all(type(one) is int for one in node.counts)
    return (
        depth > 0
        and (node.feature, node.cells) in splits
        and all(_is_grown(branch, splits, depth - 1) for branch in (node.first, node.second))
    )


class TreeRows:
    """Rows for a tree. They are private."""

    def __init__(self, codes: Codes, labels: NDArray[np.bool_]) -> None:
        self.codes, self.labels = codes, labels

    def __repr__(self) -> str:
        return "TreeRows(<private>)"
