"""A decision tree whose splits are chosen under differential privacy, one after the other.

It is here to compare with: the split selection that the field began with. `PrivateERM(Trees(…))`
chooses a whole tree at once, and `PrivateGAM` adds up whole columns; both are usually better.

Proof:      docs/proofs/private-tree.md
Reference:  Friedman & Schuster, KDD 2010
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privmax.errors import DataError, ParameterError
from privmax.learning.additive.model import Codes, is_sum
from privmax.learning.additive.rounds import beyond_noise
from privmax.learning.additive.words import name_cells
from privmax.learning.model_fit import ModelFit
from privmax.learning.reading import read_examples, refuse_table
from privmax.learning.schema import Schema
from privmax.learning.schema_learner import LabelLearner
from privmax.learning.split_scores import NAMES, MaxScore, SplitScore, read_name, read_score
from privmax.ledger import Ledger
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
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.sources.positions import Positions

DEEPEST = 12
"""A tree of this depth has 4,096 leaves."""

MAX = MaxScore()


class TreeSplits(Parameters):
    """The split of epsilon in a tree: the same for each level of splits, and for the leaf counts.

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
    rho = None

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
    def chooser(self) -> Exponential:
        """The mechanism that draws a split; the scores of one node are monotone."""
        return Exponential(epsilon=self.level)

    @cached_property
    def split_score(self) -> SplitScore:
        """The score of splits."""
        return read_score(self.criterion, self.rows)

    def check(self) -> None:
        """Refuse an epsilon for which there is no noise, before anything is read or charged.

        Raises:
            ParameterError: It is too small or too large, or the score lacks its bound on rows.
        """
        read_score(self.criterion, self.rows)
        try:
            bulk.discrete_laplace(1 / self.level, 0, SYSTEM)
            _ = self.chooser
        except ParameterError:
            raise beyond_noise(self.epsilon, f"each of {self.depth + 1} draws") from None


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
    """Rows with some cells of a feature go to the first branch, all others to the second.

    Ledgers record the names of this class and of `Leaf` with the models of a search.
    """

    feature: int
    cells: tuple[int, ...]
    first: Split | Leaf
    second: Split | Leaf

    def __str__(self) -> str:
        return f"tree of depth {self.depth}"

    @property
    def depth(self) -> int:
        """The number of splits on the longest path to a leaf."""
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

    def node(codes: Codes, labels: NDArray[np.bool_], depth: int) -> Split | Leaf:
        if depth == 0:
            second = int(np.count_nonzero(labels))
            noise = bulk.discrete_laplace(1 / terms.level, 2, coins)
            first, second = (np.array([len(labels) - second, second]) + noise).tolist()
            return Leaf((first, second))
        scores = score_splits(codes, labels, schema, terms.split_score)
        scored = Positions(scores, terms.split_score.sensitivity)
        feature, cells = splits[scored.find(terms.chooser.draw(scored.profile, coins))]
        go = np.isin(codes[feature], cells)
        return Split(
            feature,
            cells,
            node(codes[:, go], labels[go], depth - 1),
            node(codes[:, ~go], labels[~go], depth - 1),
        )

    return node(codes, labels, terms.depth)


class PrivateTree(LabelLearner):
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

    tree_: Split | Leaf

    _title = "PrivateTree"
    _fitted = "tree_"
    _nothing = Leaf((0, 0))
    _no_answer = "tree_ has no splits and both labels are equally likely"

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

    def _make_terms(self, epsilon: Number, neighbors: str) -> TreeSplits:
        if whole("depth", self.depth) > DEEPEST:
            raise ParameterError("depth", self.depth, f"it must be at most {DEEPEST}", "Use 3.")
        return TreeSplits(
            epsilon=epsilon,
            depth=self.depth,
            neighbors=neighbors,
            criterion=self.criterion,
            rows=self.rows,
        )

    def _question(self, schema: Schema, unit: str) -> TreeFit:
        return TreeFit(self._terms(), schema, unit)

    def _plan_reading(
        self, X: Any, y: Any, schema: Schema, targets: NDArray[Any]
    ) -> Callable[[ExitStack], TreeRows]:
        refuse_table(X)

        def read(stack: ExitStack) -> TreeRows:
            rows = TreeRows(*read_examples(schema, X, y, targets))
            if self.rows is not None and len(rows.labels) > self.rows:
                raise DataError("There are more rows than the bound that was declared as rows.")
            return rows

        return read

    @property
    def rules_(self) -> list[str]:
        """The tree in words, a line for each leaf."""
        check_is_fitted(self, "tree_")
        return list(self.tree_.tell(self.schema_, self.labels_.tolist()))


@dataclass(frozen=True)
class TreeFit(ModelFit["TreeRows", Split | Leaf]):
    """Grow a tree split by split; a ledger keeps all of it.

    Args:
        terms: How the fit spends its budget. They were checked when they were made.
        schema: The columns.
        unit: What the cost hides.
    """

    terms: TreeSplits
    schema: Schema
    unit: str | None = None

    noun = "tree"
    why = "grows a tree split by split"

    def fit(self, source: TreeRows, coins: Coins) -> Split | Leaf:
        """Return a tree."""
        return grow(source.codes, source.labels, self.schema, self.terms, coins)

    def parse(self, written: Any) -> Split | Leaf | None:
        """Return a recorded tree, if it has splits of these columns."""
        tree = read_node(written)
        return tree if _is_grown(tree, set(list_splits(self.schema)), self.terms.depth) else None


def _is_grown(node: Split | Leaf, splits: set[tuple[int, tuple[int, ...]]], depth: int) -> bool:
    """Return whether a node has all its levels, and splits that there are."""
    if isinstance(node, Leaf):
        return depth == 0 and len(node.counts) == 2 and all(is_sum(one) for one in node.counts)
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
