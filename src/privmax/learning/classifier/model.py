"""A released model of the classifier: which of several, the count that decided, its contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.model import AdditiveModel, Codes
from privmax.learning.additive.words import tell_entries
from privmax.learning.classes.contract import HypothesisClass, Shape
from privmax.learning.classes.stumps import Constant, Stump, Stumps, is_below
from privmax.learning.classes.trees import Tree, Trees
from privmax.learning.classifier.choice import (
    ADDITIVE,
    CONSTANT,
    MEMBERS,
    RULES,
    TREE,
    Facts,
    explain,
)
from privmax.learning.classifier.terms import MOST_ROWS, ClassifierTerms
from privmax.learning.rules import Rule, describe_rule, write_rule
from privmax.learning.schema import Schema

SURE = 0.501
"""The least chance of the label that a rule gives: counts of its leaves may contradict it."""

WAYS = 4
"""Leaves that counts are released for. A constant uses one, and a test two."""


@dataclass(frozen=True)
class CountedRule:
    """A rule, with noisy counts of both labels in each of its leaves.

    number       which rule it is, of all of its class
    hypothesis   the rule itself; None for a constant, whose counts say which label it is
    leaves       for each leaf, noisy counts of both labels
    """

    number: int
    hypothesis: Stump | Constant | Tree | None
    leaves: tuple[tuple[int, int], ...]

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        """Return the chance of the second label, of each row."""
        cells = codes.T
        places = find_leaves(self.hypothesis, cells)
        chances = self.leaf_chances()[places]
        if self.hypothesis is None:
            return chances
        return side_with(self.hypothesis.predict(cells) == 1, chances)

    def leaf_chances(self) -> NDArray[np.float64]:
        """Return the chance of the second label in each leaf, by its counts alone."""
        seen = np.maximum(np.array(self.leaves, np.float64), 0)
        chances: NDArray[np.float64] = (seen[:, 1] + 1) / (seen.sum(axis=1) + 2)
        return chances

    def to_rule(self, schema: Schema, labels: Sequence[Any]) -> Rule:
        """Return the rule as JSON."""
        rule = self.hypothesis
        if rule is None:
            first, second = self.leaves[0]
            rule = Constant(int(max(second, 0) > max(first, 0)))
        return write_rule(rule, schema.names, labels)

    def tell(self, schema: Schema, labels: Sequence[Any]) -> list[str]:
        """Return the rule in words."""
        return describe_rule(self.to_rule(schema, labels), "y")


@dataclass(frozen=True, repr=False)
class ClassifierModel:
    """A model, which of several it is, and by how many rows it was chosen.

    member   which model it is
    rows     the noisy count that decided it; None: the number of rows was public
    model    the rule, or the tables of the additive model
    """

    member: str
    rows: int | None
    model: CountedRule | AdditiveModel

    def __repr__(self) -> str:
        counted = "" if self.rows is None else f": about {self.rows:,} rows"
        return f"<{self.member}{counted}>"

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        """Return the chance of the second label, of each row."""
        return self.model.chances(codes)

    def tell(self, schema: Schema, labels: Sequence[Any]) -> list[str]:
        """Return it in words, line by line."""
        if isinstance(self.model, CountedRule):
            return self.model.tell(schema, labels)
        return tell_entries(self.model, schema)

    def to_rule(self, schema: Schema, labels: Sequence[Any]) -> Rule | None:
        """Return the rule as JSON; None of an additive model."""
        return self.model.to_rule(schema, labels) if isinstance(self.model, CountedRule) else None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON; a rule is given by its number."""
        if isinstance(self.model, CountedRule):
            leaves = [list(leaf) for leaf in self.model.leaves]
            model = {"number": self.model.number, "leaves": leaves}
        else:
            model = self.model.to_json()
        return {"member": self.member, "rows": self.rows, "model": model}

    @classmethod
    def from_json(cls, written: Mapping[str, Any], schema: Schema) -> ClassifierModel:
        """Return what `to_json` wrote, of this schema.

        Raises:
            ValueError: There is no such model.
        """
        member, rows, model = (written[name] for name in ("member", "rows", "model"))
        if member not in MEMBERS or not (rows is None or _is_count(rows)):
            raise ValueError("no such model")
        made = _read_rule(member, model, schema) if member in RULES else None
        return cls(member, rows, made or AdditiveModel.from_json(model))


NOTHING = ClassifierModel(ADDITIVE, None, AdditiveModel(0, {}))
"""The model where there was no answer: both labels are equally likely."""


def side_with(second: Any, chances: Any) -> NDArray[np.float64]:
    """Return chances of the second label that do not contradict a rule.

    Args:
        second: Whether the rule says the second label.
        chances: By the counts of leaves.

    Examples:
        >>> side_with(np.array([True, False]), np.array([0.2, 0.2])).tolist()
        [0.501, 0.2]
    """
    sided: NDArray[np.float64] = np.where(
        second, np.maximum(chances, SURE), np.minimum(chances, 1 - SURE)
    )
    return sided


def tell_choice(model: ClassifierModel, schema: Schema, terms: ClassifierTerms) -> str:
    """Return which model it is, and why, in words.

    Args:
        model: What was released.
        schema: The columns.
        terms: What was spent, and the number of rows, where that is public.
    """
    rows = model.rows if terms.n is None else terms.n
    assert rows is not None, "it is public or was counted"
    why = explain(Facts.of(schema), rows, terms.epsilon)
    return f"{model.member}: {'about ' if terms.n is None else ''}{why}"


def class_of(member: str, schema: Schema) -> HypothesisClass:
    """Return the class of rules that a model is chosen from."""
    return Trees(schema=schema) if member == TREE else Stumps(schema=schema)


def find_leaves(hypothesis: object, cells: NDArray[Any]) -> NDArray[np.intp]:
    """Return the leaf of each row.

    Args:
        hypothesis: A rule; None: a constant.
        cells: The cells of all rows, row by row.

    Examples:
        >>> rule = Tree(0, 5.0, Constant(0), Stump(0, 7.0, 0, 1))
        >>> find_leaves(rule, np.array([[4.0], [6.0], [8.0]])).tolist()
        [0, 2, 3]
    """
    if isinstance(hypothesis, Stump):
        return (~is_below(cells, hypothesis.feature, hypothesis.threshold)).astype(np.intp)
    if isinstance(hypothesis, Tree):
        below = is_below(cells, hypothesis.feature, hypothesis.threshold)
        sides = (find_leaves(side, cells) for side in (hypothesis.below, hypothesis.above))
        first, second = sides
        return np.where(below, first, second + WAYS // 2)
    return np.zeros(len(cells), np.intp)


def _is_count(rows: object) -> bool:
    """Return whether it may be a noisy count of rows."""
    return type(rows) is int and 0 <= rows < MOST_ROWS


def _read_rule(member: str, written: Mapping[str, Any], schema: Schema) -> CountedRule:
    """Return a rule by its number."""
    number, leaves = written["number"], tuple(map(tuple, written["leaves"]))
    counts = [one for leaf in leaves for one in leaf]
    fits = len(leaves) == WAYS and all(len(leaf) == 2 for leaf in leaves)
    if not fits or not all(type(one) is int and abs(one) < MOST_ROWS for one in (number, *counts)):
        raise ValueError("no such rule")
    if member == CONSTANT:
        if number:
            raise ValueError("no such rule")
        return CountedRule(0, None, leaves)
    hypotheses, shape = class_of(member, schema), Shape(schema.features, 2)
    if not 0 <= number < hypotheses.size(shape):
        raise ValueError("no such rule")
    hypothesis: Any = hypotheses.hypothesis(number, shape)
    return CountedRule(number, hypothesis, leaves)
