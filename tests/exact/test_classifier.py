"""The classifier keeps its cost: the count and the choice, and each rule with all that is released
beside it, over all small neighbors; and mutants that do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from unittest.mock import patch

import numpy as np
import pytest

from privmax.auditing import divergence
from privmax.learning import Number, Schema
from privmax.learning.additive.link import CLIP, LIMIT, RESIDUALS
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.model import single
from privmax.learning.classes.contract import Counts, Shape
from privmax.learning.classes.stumps import stump_scores
from privmax.learning.classes.trees import TreeScores
from privmax.learning.classifier import fitting
from privmax.learning.classifier.choice import CONSTANT, MEMBERS, TEST, TREE, Facts, decide
from privmax.learning.classifier.counting import Tables, count_labels
from privmax.learning.classifier.fitting import count_leaves, count_rows
from privmax.learning.classifier.model import class_of, find_leaves
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.source import HypothesisSource
from privmax.testing import SeededCoins, walk

pytestmark = pytest.mark.slow

SCHEMA = Schema(a=Number(0, 2, cells=2), b=Number(0, 3, cells=3))
SHAPE = Shape(2, 2)
EXAMPLES = list(product((0, 1), (0, 1, 2), (False, True)))
CASES = [list(data) for size in range(3) for data in combinations_with_replacement(EXAMPLES, size)]
MANY = 400
"""Counts that the law is listed for: beyond, nothing is left in floats."""


def rows_of(data) -> MemoryRows:
    codes = np.array([[one[feature] for one in data] for feature in (0, 1)], np.uint8)
    return MemoryRows(codes.reshape(2, len(data)), np.array([one[2] for one in data], bool))


def pairs(relation) -> Iterator[tuple[list, list]]:
    for data in CASES:
        for example in EXAMPLES:
            if relation == "add-remove":
                yield data, [*data, example]
            else:
                for place in range(len(data)):
                    yield data, [*data[:place], example, *data[place + 1 :]]


def law_of_count(rows: int, scale: Fraction) -> dict[int, float]:
    """Of `count_rows`: discrete Laplace noise, and what is below 0 becomes 0."""
    ratio = math.exp(-1 / scale)
    law: dict[int, float] = {}
    for count in range(-MANY, MANY):
        chance = (1 - ratio) / (1 + ratio) * ratio ** abs(count - rows)
        law[max(count, 0)] = law.get(max(count, 0), 0.0) + chance
    return law


def choices(law: dict[int, float], terms: ClassifierTerms) -> dict[str, float]:
    found: dict[str, float] = {}
    for count, chance in law.items():
        member = decide(Facts(2, 3), count, terms.epsilon, pure=not terms.delta)
        found[member] = found.get(member, 0.0) + chance
    return found


def test_the_count_has_the_law_that_is_audited():
    terms = ClassifierTerms(epsilon=25)  # one for the count
    masses, unfinished = walk(lambda coins: count_rows(1, terms, coins), 18)
    law = law_of_count(1, Fraction(1))
    assert unfinished < Fraction(1, 50)
    assert len(masses) > 4
    for count, mass in masses.items():
        assert float(mass) - 1e-12 <= law[count] <= float(mass + unfinished) + 1e-12


@pytest.mark.parametrize("epsilon", [1, 5, 25])
def test_count_and_choice_cost_their_share(epsilon):
    """Together and each alone; and noise for twice the share costs more."""
    terms = ClassifierTerms(epsilon=epsilon, delta=1e-6)
    for rows in (0, 1, 2, 30):
        for left, right in ((rows, rows + 1), (rows + 1, rows)):
            laws = [law_of_count(one, terms.count_scale) for one in (left, right)]
            assert divergence(*laws, terms.counting) <= 1e-7
            told = [choices(law, terms) for law in laws]
            assert divergence(*told, terms.counting) <= 1e-7
    mutant = [law_of_count(one, terms.count_scale / 2) for one in (30, 31)]
    assert divergence(*mutant, terms.counting) > 1e-3


def test_the_choice_depends_on_the_count():
    """Otherwise the audit above would be of a choice that is always the same."""
    found = {decide(Facts(2, 3), n, Fraction(1), pure=False) for n in range(0, 20_000, 7)}
    assert len(found) > 2
    assert found <= set(MEMBERS)


RULES = {
    member: [
        class_of(member, SCHEMA).hypothesis(number, SHAPE)
        for number in range(class_of(member, SCHEMA).size(SHAPE))
    ]
    for member in (TEST, TREE)
}
CELLS = np.array([one[:2] for one in EXAMPLES])
LABELS = np.array([one[2] for one in EXAMPLES], int)


def source_of(data, member: str) -> HypothesisSource:
    """As `fit_member` makes it."""
    tables = Tables(rows_of(data), SCHEMA, doubles=member == TREE)
    scored = (
        TreeScores(tables.below_both(), tables.totals())
        if member == TREE
        else Counts(stump_scores(tables.below(), tables.totals()))
    )
    return HypothesisSource(scored, class_of(member, SCHEMA), SHAPE)


def right_of(member: str):
    """[rule, example]: whether the rule is right, by asking the rule."""
    return np.array([rule.predict(CELLS) == LABELS for rule in RULES[member]], int)


def places_of(member: str):
    """[rule, example, leaf and label]: what an example adds to the counts of leaves."""
    places = np.zeros((len(RULES[member]), len(EXAMPLES), 8), int)
    for number, rule in enumerate(RULES[member]):
        places[number, range(len(EXAMPLES)), 2 * find_leaves(rule, CELLS) + LABELS] = 1
    return places


@pytest.mark.parametrize("member", [TEST, TREE])
def test_scores_and_leaves_are_those_of_the_rules(member):
    """What is counted from cells is what asking every rule of every row gives."""
    right, places = right_of(member), places_of(member)
    for data in CASES[::5]:
        often = np.array([data.count(one) for one in EXAMPLES])
        tables = Tables(rows_of(data), SCHEMA, doubles=member == TREE)
        scores = right @ often
        found = dict(source_of(data, member).histogram(-1))
        assert found == {int(one): int((scores == one).sum()) for one in set(scores.tolist())}
        for number, rule in enumerate(RULES[member]):
            leaves = count_leaves(tables, rule)
            assert leaves.ravel().tolist() == (often @ places[number]).tolist()


def worst_loss(member: str, terms: ClassifierTerms, budget: Fraction | None = None) -> float:
    """The largest privacy loss of a rule and its leaves, over all small neighbors and rules."""
    scale = terms.leaves(member).scale
    chooser = terms.chooser
    if budget is not None:
        chooser = type(chooser)(epsilon=budget, neighbors=terms.neighbors)
    right, places = right_of(member), places_of(member)
    laws: dict[tuple, np.ndarray] = {}

    def chances(data) -> tuple[np.ndarray, np.ndarray]:
        often = np.array([data.count(one) for one in EXAMPLES])
        if tuple(often) not in laws:
            law = chooser.law(source_of(data, member).profile)
            scores = (right @ often).tolist()
            each = {one: law.of(max(one, law.floor or 0)) for one in set(scores)}
            laws[tuple(often)] = np.log([each[one] for one in scores])
            assert np.exp(laws[tuple(often)]).sum() == pytest.approx(1)
        return laws[tuple(often)], often @ places

    found = 0.0
    for data, other in pairs(terms.neighbors):
        (left, held), (after, now) = chances(data), chances(other)
        moved = np.abs(held - now).sum(axis=1) / float(scale)
        found = max(found, float((np.abs(left - after) + moved).max()))
    return found


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("member", [TEST, TREE])
def test_a_rule_and_its_leaves_cost_what_the_count_has_left(member, relation):
    terms = ClassifierTerms(epsilon=2, neighbors=relation)
    assert terms.counting + terms.fitting == terms.epsilon
    loss = worst_loss(member, terms)
    assert float(terms.fitting) * 0.7 < loss <= float(terms.fitting) + 1e-9


def test_a_rule_that_spends_all_before_its_leaves_costs_more():
    terms = ClassifierTerms(epsilon=2)
    assert worst_loss(TEST, terms, budget=terms.fitting) > float(terms.fitting) + 1e-3


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_constant_costs_what_the_count_has_left(relation):
    terms = ClassifierTerms(epsilon=2, neighbors=relation)
    moved = max(
        abs(sum(one[2] for one in data) - sum(one[2] for one in other))
        + abs(sum(not one[2] for one in data) - sum(not one[2] for one in other))
        for data, other in pairs(relation)
    )
    assert Fraction(moved) / terms.leaves(CONSTANT).scale == terms.fitting


def test_additive_models_have_what_the_count_has_left():
    for options in ({}, {"delta": "1e-6"}, {"n": 50}):
        terms = ClassifierTerms(epsilon=1, **options)
        for member in MEMBERS[3:]:
            assert terms.rounds(member).epsilon == terms.fitting == 1 - terms.counting
            assert terms.rounds(member).delta == terms.delta
    assert ClassifierTerms(epsilon=1, n=50).counting == 0


def test_rho_covers_every_model():
    terms = ClassifierTerms(epsilon=1, delta=1e-6)
    count = terms.counting**2 / 2
    for member in MEMBERS[3:]:
        assert terms.rho >= count + terms.rounds(member).rho
    assert terms.rho >= count + terms.fitting**2 / 2
    assert ClassifierTerms(epsilon=1).rho is None


def test_certain_rows_add_nothing_and_the_others_the_same():
    """What the counts of labels rest on."""
    assert RESIDUALS[:, 2 * LIMIT].tolist() == [-CLIP, 0]
    assert RESIDUALS[:, 0].tolist() == [0, CLIP]


def test_labels_are_counted_by_cell():
    for data in CASES:
        parts = [single(0, 2), single(1, 3)]
        for feature, found in enumerate(count_labels(rows_of(data), parts)):
            for label in (False, True):
                for cell in range(found.shape[1]):
                    wanted = sum(one[feature] == cell and one[2] == label for one in data)
                    assert found[int(label), cell] == wanted


def test_every_release_of_a_fit_is_one_that_is_priced():
    """A fit draws its count, its rule and its leaves, each once, with the noise audited above."""
    drawn = []
    terms = ClassifierTerms(epsilon=2)
    laplace, leaves = fitting.discrete_laplace, fitting._release_leaves
    with (
        patch.object(fitting, "discrete_laplace",
                     lambda scale, coins: drawn.append(scale) or laplace(scale, coins)),
        patch.object(fitting, "_release_leaves",
                     lambda exact, *rest: drawn.append(exact.sum()) or leaves(exact, *rest)),
        patch.object(fitting, "decide", lambda *given, **options: TEST),
    ):  # fmt: skip
        made = fitting.fit_best(rows_of([(0, 1, True)] * 50), SCHEMA, terms, SeededCoins("x"))
    assert drawn == [terms.count_scale, 50]
    assert made.member == TEST
