"""The fit: count rows with noise, decide by the public table, fit the model that it names.

All that depends on data are whole numbers that `ExampleRows` counts. They leave this file through
permute-and-flip, with noise, or through the rounds of an additive model, and nothing else does.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privmax.learning.additive.fitting import CellLayout, ExampleRows, fit_rounds
from privmax.learning.classes.contract import Counts, Scores, Shape
from privmax.learning.classes.stumps import Ints, Stump, is_below, stump_scores
from privmax.learning.classes.trees import Tree, TreeScores
from privmax.learning.classifier.choice import CONSTANT, RULES, TREE, Facts, decide
from privmax.learning.classifier.counting import Tables
from privmax.learning.classifier.model import (
    WAYS,
    ClassifierModel,
    CountedRule,
    class_of,
    find_leaves,
)
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.schema import Schema
from privmax.learning.source import HypothesisSource
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_laplace


def fit_best(
    rows: ExampleRows, schema: Schema, terms: ClassifierTerms, coins: Coins
) -> ClassifierModel:
    """Fit the model that the table names: what is returned is released.

    Args:
        rows: The private examples.
        schema: Their columns.
        terms: What each release costs.
        coins: Where random bits come from.
    """
    number = sum(rows.labels())  # which refuses an empty table and labels that were not declared
    counted = None if terms.n is not None else count_rows(number, terms, coins)
    known = counted if terms.n is None else terms.n
    assert known is not None, "it is public or was counted"
    member = decide(
        Facts.of(schema), known, terms.epsilon, pure=not terms.delta, counted=terms.n is None
    )
    return ClassifierModel(member, counted, fit_member(member, rows, schema, terms, coins))


def count_rows(rows: int, terms: ClassifierTerms, coins: Coins) -> int:
    """Return a noisy count of rows, at least 0.

    Args:
        rows: How many there are.
        terms: What it costs.
        coins: Where random bits come from.
    """
    assert terms.count_scale is not None, "their number is not public"
    return max(rows + discrete_laplace(terms.count_scale, coins), 0)


def fit_member(
    member: str, rows: ExampleRows, schema: Schema, terms: ClassifierTerms, coins: Coins
) -> Any:
    """Fit one of the models, with what the count has left."""
    if member not in RULES:
        return fit_rounds(rows, CellLayout.of(schema), terms.rounds(member), coins)
    if member == CONSTANT:
        exact = np.zeros((WAYS, 2), np.int64)
        exact[0] = rows.labels()
        return CountedRule(0, None, _release_leaves(exact, member, terms, coins))
    tables = Tables(rows, schema, doubles=member == TREE)
    hypotheses, shape = class_of(member, schema), Shape(schema.features, 2)
    scored: Scores
    if member == TREE:
        scored = TreeScores(tables.below_both(), tables.totals())
    else:
        scored = Counts(stump_scores(tables.below(), tables.totals()))
    source = HypothesisSource(scored, hypotheses, shape)
    hypothesis: Any = source.name(terms.chooser.draw(source.profile, coins))
    number = source.encode(hypothesis)
    leaves = _release_leaves(count_leaves(tables, hypothesis), member, terms, coins)
    return CountedRule(number, hypothesis, leaves)


def count_leaves(tables: Tables, hypothesis: object) -> Ints:
    """Return [leaf, label]: how many rows of a label are in each leaf of a rule."""
    leaves = np.zeros((WAYS, 2), np.int64)
    if isinstance(hypothesis, Tree):
        for place, side in ((0, hypothesis.below), (WAYS // 2, hypothesis.above)):
            inner = side.feature if isinstance(side, Stump) else hypothesis.feature
            roots, cells, counts = tables.grid(hypothesis.feature, inner)
            cuts = np.empty((len(cells), max(hypothesis.feature, inner) + 1), np.intp)
            cuts[:, hypothesis.feature] = roots
            cuts[:, inner] = cells
            inside = is_below(cuts, hypothesis.feature, hypothesis.threshold) == (place == 0)
            np.add.at(leaves, place + find_leaves(side, cuts)[inside], counts.T[inside])
    elif isinstance(hypothesis, Stump):
        cells, _, counts = tables.grid(hypothesis.feature, hypothesis.feature)
        cuts = np.repeat(cells[:, None], hypothesis.feature + 1, axis=1)
        np.add.at(leaves, find_leaves(hypothesis, cuts), counts.T)
    else:
        leaves[0] = tables.totals()
    return leaves


def _release_leaves(
    exact: Ints, member: str, terms: ClassifierTerms, coins: Coins
) -> tuple[tuple[int, int], ...]:
    """Return the counts of labels in all leaves, with noise."""
    noisy = exact + terms.leaves(member).draw(exact.size, coins).reshape(exact.shape)
    return tuple((int(first), int(second)) for first, second in noisy)
