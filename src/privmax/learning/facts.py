"""The contents of a model card: all of it was released, or follows from public facts.

The same release about the same columns gives the same facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.link import LIMIT, ONE
from privmax.learning.additive.model import AdditiveModel, Part
from privmax.learning.additive.rounds import AdditiveRounds
from privmax.learning.additive.words import name_cells, tell_shapes, title
from privmax.learning.classes.stumps import Constant, Stump
from privmax.learning.classes.trees import Tree
from privmax.learning.classifier.choice import CONSTANT
from privmax.learning.classifier.model import (
    WAYS,
    ClassifierModel,
    CountedRule,
    side_with,
    tell_choice,
)
from privmax.learning.classifier.terms import LEAVES, ClassifierTerms
from privmax.learning.kinds import Column
from privmax.learning.learned import Learned
from privmax.learning.regressor.model import RegressorModel, to_value
from privmax.learning.regressor.targets import BINS, bin_width
from privmax.learning.regressor.terms import RegressorRounds
from privmax.learning.rules import describe_rule
from privmax.learning.schema import Schema
from privmax.learning.splits import CellSplit, join_tests
from privmax.learning.tree import Leaf, Split

ADDITIVE, REGRESSION, TREE = "additive model", "additive regression", "decision tree"

Tests = tuple[tuple[CellSplit, bool], ...]
"""Tests, each with whether it is failed."""

CLEAR = 4
"""In deviations of the noise: bins with fewer rows are not told from empty ones."""

WITHIN = 2
"""In deviations of the noise: an entry within it may be nothing else."""


@dataclass(frozen=True)
class Way:
    """A leaf of a rule or of a tree.

    test     what rows have that end there, in words; empty: all rows
    label    what is predicted
    counts   noisy counts of both labels
    chance   of the second label
    """

    test: str
    label: Any
    counts: tuple[int, int]
    chance: float


@dataclass(frozen=True)
class Term:
    """A table of an additive model: what a column cost, and what it brought.

    name      of its columns
    entries   a record for each entry, as of `shape_functions_`
    values    what each entry adds
    rounds    how many rounds chose it
    share     of the cost of the model, for these rounds
    size      the deviation of its entries, weighted by noisy curvatures, which are 0 at least
    noise     the root of the mean square of their noise, weighted likewise; None: not known
    """

    name: str
    entries: Sequence[Mapping[str, Any]]
    values: tuple[float, ...]
    rounds: int
    share: Fraction
    size: float
    noise: float | None

    @property
    def unclear(self) -> int:
        """The number of entries that may be nothing but noise."""
        noisy = zip(self.values, self.entries, strict=True)
        return sum(abs(value) <= WITHIN * one.get("noise", 0.0) for value, one in noisy)


@dataclass(frozen=True)
class Errors:
    """Noisy counts of the errors of a regression.

    ends     of the bins, one more than there are: the first and the last have all beyond
    counts   with noise
    noise    its deviation
    """

    ends: tuple[float, ...]
    counts: tuple[int, ...]
    noise: float


@dataclass(frozen=True)
class Calibration:
    """Noisy counts of both labels, by the chance of the second that the model gives.

    counts   for each tenth of chances
    noise    the deviation of a count
    """

    counts: tuple[tuple[int, int], ...]
    noise: float

    def shares(self) -> list[tuple[float, float] | None]:
        """Return the share of the second label in each bin, and the deviation of its noise.

        None: there are too few rows to tell from noise.

        Examples:
            >>> Calibration(((300, 100), (9, -9)), 4.0).shares()[1] is None
            True
            >>> [round(one, 4) for one in Calibration(((300, 100),), 4.0).shares()[0]]
            [0.25, 0.0079]
        """
        return [self._share(first, second) for first, second in self.counts]

    def _share(self, first: int, second: int) -> tuple[float, float] | None:
        total = first + second
        if total < CLEAR * self.noise:
            return None
        share = min(max(second / total, 0.0), 1.0)
        return share, self.noise * math.hypot(first, second) / total**2


@dataclass(frozen=True)
class ModelFacts:
    """All that a card says of a model beside its cost.

    kind      which model it is
    why       it is this one, where a table decided
    start     the chance of the second label, or the number, before any column is looked at
    terms     the tables of an additive model, the largest first
    unused    columns that no round chose
    words     a rule, line by line
    ways      the leaves of a rule or of a tree
    noise     the deviation of the noise in the counts of leaves
    spread    of the errors of a regression, about
    errors    of a regression, where they were counted
    calibration   of an additive model of labels, where they were counted
    shares    what else the cost was for, and which part of it
    """

    kind: str
    why: str | None = None
    start: float | None = None
    terms: tuple[Term, ...] = ()
    unused: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    noise: float | None = None
    spread: float | None = None
    errors: Errors | None = None
    calibration: Calibration | None = None
    shares: tuple[tuple[str, Fraction], ...] = ()

    @property
    def of_number(self) -> bool:
        """Whether it predicts a number."""
        return self.kind == REGRESSION


def describe_model(learned: Learned) -> ModelFacts | None:
    """Return what there is to say of a model; None: there was no answer."""
    model: Any = learned.release.item
    terms: Any = learned.release.mechanism
    if isinstance(model, AdditiveModel):
        return _additive(model, terms, learned)
    if isinstance(model, RegressorModel):
        return _regression(model, terms, learned)
    if isinstance(model, ClassifierModel):
        return _decided(model, terms, learned)
    if isinstance(model, Leaf | Split):
        return _tree(model, terms, learned)
    return None


def _additive(model: AdditiveModel, terms: AdditiveRounds, learned: Learned) -> ModelFacts:
    return ModelFacts(
        ADDITIVE,
        start=1 / (1 + math.exp(-model.intercept / ONE)),
        terms=_terms(model, terms, learned.schema, 1 / ONE, "log_odds"),
        unused=_unused(model, learned.schema),
        calibration=_calibration(model, terms),
        shares=(
            ("noisy counts of both labels", terms.tally),
            *([("noisy counts by chance", terms.tally)] if model.counts is not None else []),
        ),
    )


def _calibration(model: AdditiveModel, terms: AdditiveRounds) -> Calibration | None:
    if model.counts is None:
        return None
    return Calibration(model.counts, math.sqrt(terms.counts.spread()))


def _regression(model: RegressorModel, terms: RegressorRounds, learned: Learned) -> ModelFacts:
    bounds = np.array(learned.targets, np.float64)
    step = float((bounds[1] - bounds[0]) / (2 * LIMIT))
    errors = None
    if model.errors is not None:
        width = bin_width(model.spread) * step
        ends = tuple((place - BINS // 2) * width for place in range(BINS + 1))
        errors = Errors(ends, model.errors, math.sqrt(terms.counts.spread()))
    tables = model.tables.centered()
    return ModelFacts(
        REGRESSION,
        start=float(to_value(np.array(tables.intercept), bounds)),
        terms=_terms(tables, terms, learned.schema, step, "effect"),
        unused=_unused(tables, learned.schema),
        spread=model.spread * step,
        errors=errors,
        shares=((f"{terms.tallies} tallies of errors", terms.tally * terms.tallies),),
    )


def _decided(model: ClassifierModel, terms: ClassifierTerms, learned: Learned) -> ModelFacts:
    why = tell_choice(model, learned.schema, terms).partition(": ")[2]
    rest = terms.fitting / terms.epsilon
    counted = [("a noisy count of rows", 1 - rest)] if terms.counting else []
    if isinstance(model.model, AdditiveModel):
        inner = _additive(model.model, terms.rounds(model.member), learned)
        scaled = [(what, rest * share) for what, share in inner.shares]
        tables = tuple(replace(term, share=rest * term.share) for term in inner.terms)
        return ModelFacts(
            model.member, why, inner.start, tables, inner.unused,
            calibration=inner.calibration, shares=(*counted, *scaled),
        )  # fmt: skip
    leaves = rest if model.member == CONSTANT else rest * LEAVES
    chosen = [] if model.member == CONSTANT else [("the choice of the rule", rest - leaves)]
    return ModelFacts(
        model.member,
        why,
        words=tuple(
            describe_rule(model.model.to_rule(learned.schema, learned.targets), learned.name)
        ),
        ways=tuple(_ways(model.model, learned)),
        noise=math.sqrt(terms.leaves(model.member).spread()),
        shares=(*counted, *chosen, ("noisy counts in leaves", leaves)),
    )


def _tree(model: Leaf | Split, terms: Any, learned: Learned) -> ModelFacts:
    level = Fraction(1, terms.depth + 1)
    return ModelFacts(
        TREE,
        ways=tuple(_branches(model, learned, ())),
        noise=math.sqrt(2) * float(1 / terms.level),
        shares=(("the choice of splits", 1 - level), ("noisy counts in leaves", level)),
    )


def _terms(
    model: AdditiveModel, terms: AdditiveRounds, schema: Schema, step: float, adds: str
) -> tuple[Term, ...]:
    """Return the tables, the largest first."""
    records = tell_shapes(model, schema, step, adds)
    made = [
        _term(part, records[title(part, schema)], model, terms, title(part, schema), step)
        for part in model.tables
    ]
    return tuple(sorted(made, key=lambda one: -one.size))


def _term(
    part: Part,
    entries: Sequence[Mapping[str, Any]],
    model: AdditiveModel,
    terms: AdditiveRounds,
    name: str,
    step: float,
) -> Term:
    weights = model.cell_weights(part)
    table = np.array(model.tables[part], np.float64) * step
    mean = np.average(table, weights=weights)
    size = math.sqrt(np.average((table - mean) ** 2, weights=weights))
    noise = None
    if part in model.noise:
        squares = (np.array(model.noise[part], np.float64) * step) ** 2
        noise = math.sqrt(np.average(squares, weights=weights))
    rounds = sum(features == part.features for features in model.path)
    share = terms.double if len(part.features) > 1 else terms.single
    return Term(name, entries, tuple(table.tolist()), rounds, rounds * share, size, noise)


def _unused(model: AdditiveModel, schema: Schema) -> tuple[str, ...]:
    """Return the columns that are in no table."""
    used = {feature for part in model.tables for feature in part.features}
    return tuple(name for feature, name in enumerate(schema.names) if feature not in used)


def _ways(model: CountedRule, learned: Learned) -> Iterator[Way]:
    """Yield the leaves of a rule that a row can be in."""
    chances = model.leaf_chances()
    for place, tests, code in _leaves(model.hypothesis):
        if not _can_pass(tests):
            continue
        chance, second = float(chances[place]), code
        if second is None:
            second = int(chance > 0.5)
        else:
            chance = float(side_with(second == 1, chance))
        words = join_tests([test.rule(below=below) for test, below in _without_implied(tests)])
        yield Way(words, learned.targets[second], model.leaves[place], chance)


def _leaves(rule: Any, first: int = 0) -> Iterator[tuple[int, Tests, int | None]]:
    """Yield for each leaf its place, the tests on the way, and the label; None: counts say it."""
    if isinstance(rule, Tree):
        for place, side, below in ((0, rule.below, True), (WAYS // 2, rule.above, False)):
            for leaf, tests, label in _leaves(side, place):
                yield leaf, ((_test(rule), below), *tests), label
    elif isinstance(rule, Stump):
        yield first, ((_test(rule), True),), rule.below
        yield first + 1, ((_test(rule), False),), rule.above
    else:
        yield first, (), rule.label if isinstance(rule, Constant) else None


def _test(rule: Tree | Stump) -> CellSplit:
    """Return the first test of a rule about a schema."""
    assert isinstance(rule.threshold, CellSplit), "rules without a schema have numbers"
    return rule.threshold


def _can_pass(tests: Tests) -> bool:
    """Return whether a row can pass all tests, some of which may be of one column."""
    return all(_passes(tests, test.column).any() for test, _ in tests)


def _without_implied(tests: Tests) -> Tests:
    """Return tests without those that the others imply."""
    kept = list(tests)
    for one in tests:
        others = tuple(test for test in kept if test is not one)
        column = one[0].column
        if (_passes(others, column) <= _passes((one,), column)).all():
            kept.remove(one)
    return tuple(kept)


def _passes(tests: Tests, column: Column) -> NDArray[np.bool_]:
    """Return which cells of a column pass all tests of it."""
    passed = np.ones(column.cells, np.bool_)
    for test, below in tests:
        if test.column is column:
            passed &= test.passes(np.arange(column.cells)) != below
    return passed


def _branches(node: Leaf | Split, learned: Learned, tests: tuple[str, ...]) -> Iterator[Way]:
    """Yield the leaves of a tree."""
    if isinstance(node, Leaf):
        label = learned.targets[int(node.chance > 0.5)]
        yield Way(join_tests(tests), label, node.counts, node.chance)
        return
    test = name_cells(learned.schema.columns[node.feature], node.cells)
    for words, branch in ((test, node.first), (f"not ({test})", node.second)):
        yield from _branches(branch, learned, (*tests, words))
