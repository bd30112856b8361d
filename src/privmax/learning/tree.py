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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.choice import Choice
from privmax.errors import ParameterError
from privmax.learning.additive.model import Codes
from privmax.learning.additive.reading import (
    check_columns,
    check_schema,
    read_examples,
    read_labels,
    refuse_table,
    sort_chances,
    unfit_record,
)
from privmax.learning.additive.words import name_cells
from privmax.learning.columns import is_frame
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.schema import Schema
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Price, label
from privmax.ledger.payment import Question, Request
from privmax.mechanisms.contract import Relation, read_relation
from privmax.mechanisms.exponential import Exponential
from privmax.noise import bulk
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy, swing
from privmax.release import Release, Terms, answer
from privmax.sources.base import PlainSource
from privmax.sources.memory import MemorySource
from privmax.universe import Universe
from privmax.warnings import warn_of_fits

DEEPEST = 12
"""A tree of this depth has 4,096 leaves."""

ONE_TREE = Universe(1)
"""A fit releases one tree."""


class TreeSplits(Parameters):
    """How a tree spends epsilon: the same on each level of splits, and on the counts in leaves.

    Args:
        epsilon: What the fit costs.
        depth: How many splits lie on the way to a leaf.
        neighbors: "add-remove" or "replace".

    Examples:
        >>> splits = TreeSplits(epsilon=1, depth=3)
        >>> splits.level, TreeSplits(epsilon=1, depth=3, neighbors="replace").level
        (Fraction(1, 4), Fraction(1, 8))
    """

    epsilon: Exact = parameter(positive)
    depth: Whole = parameter(whole, default=3)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)

    k = 1
    ranked = True
    bounded_range = False

    def privacy(self) -> Privacy:
        """What the whole fit costs."""
        return Privacy(self.epsilon)

    @property
    def level(self) -> Fraction:
        """Epsilon of each draw. Where a row takes another's place, two nodes of a level change."""
        return self.epsilon / ((self.depth + 1) * swing(self.neighbors))

    def check(self) -> None:
        """Refuse an epsilon for which there is no noise, before anything is read or charged.

        Raises:
            ParameterError: It is too small.
        """
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

    def to_json(self) -> Any:
        branches = [self.first.to_json(), self.second.to_json()]
        return {"feature": self.feature, "cells": list(self.cells), "branches": branches}

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        go = np.isin(codes[self.feature], self.cells)
        found = np.empty(codes.shape[1])
        found[go], found[~go] = self.first.chances(codes[:, go]), self.second.chances(codes[:, ~go])
        return found

    def tell(self, schema: Schema, labels: Sequence[Any]) -> Iterator[str]:
        """The tree in words, a line for each leaf."""
        test = name_cells(schema.columns[self.feature], self.cells)
        for words, branch in ((test, self.first), (f"not ({test})", self.second)):
            for rest in branch.tell(schema, labels):
                yield f"{words}, {rest}" if isinstance(branch, Split) else f"{words}: {rest}"


def read_node(written: Mapping[str, Any]) -> Split | Leaf:
    """What `to_json` of a node wrote.

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
    """All splits there are, which is public: each threshold of a number, each value of a category.

    Examples:
        >>> from privmax.learning import Category, Number
        >>> list_splits(Schema(age=Number(0, 9, cells=3), job=Category(["a"])))
        [(0, (0,)), (0, (0, 1)), (1, (0,)), (1, (1,))]
    """
    found = []
    for feature, column in enumerate(schema.columns):
        for cell in range(column.cells - 1 if column.ordered else column.cells):
            cells = tuple(range(cell + 1)) if column.ordered else (cell,)
            found.append((feature, cells))
    return found


def score_splits(codes: Codes, labels: NDArray[np.bool_], schema: Schema) -> NDArray[np.int64]:
    """How many rows each split gets right, if each branch says the label that most of it have.

    That is the "Max" score of a split; one row more raises it by 0 or 1.
    """
    scores = []
    for feature, column in enumerate(schema.columns):
        counts = np.zeros((2, column.cells), np.int64)
        for row, have in enumerate((~labels, labels)):
            counts[row] = np.bincount(codes[feature][have], minlength=column.cells)
        inside = np.cumsum(counts, axis=1)[:, :-1] if column.ordered else counts
        outside = counts.sum(axis=1, keepdims=True) - inside
        scores.append(inside.max(axis=0) + outside.max(axis=0))
    return np.concatenate(scores)


def grow(
    codes: Codes, labels: NDArray[np.bool_], schema: Schema, terms: TreeSplits, coins: Coins
) -> Split | Leaf:
    """A tree: what is returned is released."""
    splits = list_splits(schema)
    chooser = Exponential(epsilon=terms.level)  # the scores of one node are monotone

    def node(codes: Codes, labels: NDArray[np.bool_], depth: int) -> Split | Leaf:
        if depth == 0:
            second = int(np.count_nonzero(labels))
            noise = bulk.discrete_laplace(1 / terms.level, 2, coins)
            first, second = (np.array([len(labels) - second, second]) + noise).tolist()
            return Leaf((first, second))
        source = MemorySource(score_splits(codes, labels, schema), universe=len(splits))
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
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.labels = labels
        self.depth = depth
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
        terms = TreeTerms(given=cast(Any, splits), unit=unit, schema=schema)
        for name in ("tree_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if self.ledger is None:
            warn_of_fits(terms.privacy(), "PrivateTree")

        def read(stack: ExitStack) -> Any:
            return TreeSource(*read_examples(schema, X, y, labels))

        options = {"schema": repr(schema), "labels": labels.tolist()}
        question = None if self.ledger is None else Question("PrivateTree", options)
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        release = answer(terms, read, self.ledger, question=question, coins=coins)
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

    def privacy_cost(self) -> Price:
        """What one `fit` costs. No data is needed.

        Examples:
            >>> PrivateTree(epsilon=1).privacy_cost().privacy
            Privacy(epsilon=1, delta=0)
        """
        return price_splits(self._splits(), ROW if self.unit is None else self.unit)

    def _splits(self) -> TreeSplits:
        """What each draw costs, if all parameters are as they must be."""
        if self.epsilon is None:
            raise ParameterError.required("epsilon", "", "Give epsilon.")
        if whole("depth", self.depth) > DEEPEST:
            raise ParameterError("depth", self.depth, f"it must be at most {DEEPEST}", "Use 3.")
        neighbors = ADD_REMOVE if self.neighbors is None else self.neighbors
        splits = TreeSplits(epsilon=self.epsilon, depth=self.depth, neighbors=neighbors)
        splits.check()
        return splits

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The chance of each label, for every row of X, in the order of `classes_`."""
        second = self._chances(X)
        return sort_chances(second, self.labels_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier label of every row of X."""
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
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = True  # a schema has a cell for every value
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True, kw_only=True)
class TreeTerms(Terms):
    """The terms of a tree: a ledger keeps the whole of it."""

    schema: Schema
    universe: Universe = ONE_TREE

    def __post_init__(self) -> None:
        """The splits were checked when they were made."""
        if self.unit is not None:
            label("unit", self.unit)

    @property
    def splits(self) -> TreeSplits:
        """How the fit spends its budget."""
        return cast(TreeSplits, self.given)

    @property
    def choice(self) -> Choice:
        return Choice(cast(Any, self.splits), "a tree is grown split by split")

    def cost(self) -> Price:
        return price_splits(self.splits, self.unit)

    def check(self) -> None:
        """There is nothing to refuse: splits serve every schema."""

    def look(self, source: Any) -> None:
        """Nothing more is to be met: the rows are read."""

    def draw(self, source: Any, coins: Coins) -> Release:
        tree = grow(source.codes, source.labels, self.schema, self.splits, coins)
        return replace(self.release(), items=(tree,))

    def decode(self, written: Any) -> Split | Leaf:
        """A tree that a ledger keeps, if it is one of this schema."""
        try:
            tree = read_node(written)
            if _is_grown(tree, set(list_splits(self.schema)), self.splits.depth):
                return tree
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            pass  # it is not even of that form
        raise unfit_record("tree")


def price_splits(splits: TreeSplits, unit: str | None) -> Price:
    """What all draws for a tree cost."""
    return Price(splits.privacy(), neighbors=splits.neighbors, unit=unit)


def _is_grown(node: Split | Leaf, splits: set[tuple[int, tuple[int, ...]]], depth: int) -> bool:
    """Whether a node has all its levels, and splits that there are."""
    if isinstance(node, Leaf):
        return depth == 0 and len(node.counts) == 2 and all(type(one) is int for one in node.counts)
    return (
        depth > 0
        and (node.feature, node.cells) in splits
        and all(_is_grown(branch, splits, depth - 1) for branch in (node.first, node.second))
    )


class TreeSource(PlainSource):
    """Rows for a tree. They are private."""

    def __init__(self, codes: Codes, labels: NDArray[np.bool_]) -> None:
        self.codes, self.labels = codes, labels

    def __repr__(self) -> str:
        return "TreeSource(<private>)"

    def encode(self, item: Split | Leaf) -> Any:
        """A tree as JSON."""
        return item.to_json()
