"""Rules with names: as JSON, in words, applied; and that what is left out of them changed
nothing.
"""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import Conjunctions, Disjunctions, Shape, Stumps, Trees
from privmax.learning.classes.explicit import Explicit
from privmax.learning.rules import apply_rule, check_rule, describe_rule, list_features, write_rule

FEATURES = ("age", "visits")
LABELS = ("no", "yes")
SHAPE = Shape(2, 2)
GRID = {"low": 0, "high": 4, "cells": 4}
CLASSES = [
    Stumps(**GRID),
    Trees(low=0, high=4, cells=3),
    Conjunctions(2, low=0, high=4, cells=3),
    Disjunctions(2, low=0, high=4, cells=3),
    Conjunctions(2),
    Disjunctions(2),
]
VALUES = (-1.0, 0.0, 0.4, 0.5, 1.0, 4 / 3, 2.0, 2.7, 3.0, 5.0)
ROWS = np.array(list(product(VALUES, VALUES)))
COLUMNS = {name: ROWS[:, place] for place, name in enumerate(FEATURES)}


def rules(hypotheses):
    for number in range(hypotheses.size(SHAPE)):
        hypothesis = hypotheses.hypothesis(number, SHAPE)
        yield hypothesis, write_rule(hypothesis, FEATURES, LABELS)


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_a_written_rule_says_of_every_row_what_its_hypothesis_says(hypotheses):
    for hypothesis, rule in rules(hypotheses):
        expected = [LABELS[code] for code in hypothesis.predict(ROWS)]
        assert apply_rule(rule, COLUMNS, len(ROWS)).tolist() == expected, hypothesis


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_a_rule_survives_json(hypotheses):
    for _, rule in rules(hypotheses):
        assert check_rule(json.loads(json.dumps(rule))) == rule


def depth(rule):
    return 0 if "label" in rule else 1 + max(depth(rule["then"]), depth(rule["else"]))


def test_no_tree_is_written_with_a_test_that_changes_nothing():
    """A tree that says the same as a stump or a constant of the grid is written as that one, or as
    its like.
    """
    flat = {}
    for _, rule in rules(Stumps(low=0, high=4, cells=3)):
        flat[tuple(apply_rule(rule, COLUMNS, len(ROWS)))] = rule
    trees = list(rules(Trees(low=0, high=4, cells=3)))
    same_feature = 0
    for tree, rule in trees:
        sides = [side.feature for side in (tree.below, tree.above) if hasattr(side, "feature")]
        if set(sides) <= {tree.feature}:
            same_feature += 1
            if tuple(apply_rule(rule, COLUMNS, len(ROWS))) in flat:
                assert depth(rule) <= 1, tree
    assert same_feature > 50
    assert max(depth(rule) for _, rule in trees) == 2


@pytest.mark.parametrize(
    ("hypotheses", "number", "lines"),
    [
        (Stumps(**GRID), 1, ["card = yes for every row"]),
        (Stumps(**GRID), 2, ["card = yes if age >= 1, else no"]),
        (Stumps(low=0, high=1, cells=3), 2, ["card = yes if age >= 0.33333333, else no"]),
        (Stumps(low=0, high=2 * 10**17, cells=2), 2, ["card = yes if age >= 1e+17, else no"]),
        (Conjunctions(2), 0, ["card = yes for every row"]),
        (Disjunctions(2), 0, ["card = no for every row"]),
    ],
)
def test_rules_in_words(hypotheses, number, lines):
    rule = write_rule(hypotheses.hypothesis(number, SHAPE), FEATURES, LABELS)
    assert describe_rule(rule, "card") == lines


def test_several_tests_in_words():
    told = {describe_rule(rule, "card")[0] for _, rule in rules(Conjunctions(2))}
    assert "card = yes if age is 1 and visits is 0, else no" in told
    told = {
        describe_rule(rule, "card")[0] for _, rule in rules(Disjunctions(2, low=0, high=4, cells=2))
    }
    assert "card = yes if age >= 2 or visits < 2, else no" in told


def test_trees_in_words_have_a_line_for_each_side():
    told = [tuple(describe_rule(rule, "card")) for _, rule in rules(Trees(low=0, high=4, cells=2))]
    assert ("if age >= 2: card = yes if visits >= 2, else no", "otherwise: card = no") in told
    assert ("if visits >= 2: card = no", "otherwise: card = yes if age >= 2, else no") in told
    assert max(map(len, told)) == 2


def test_a_rule_tells_what_it_looks_at():
    used_by = {tuple(list_features(rule)) for _, rule in rules(Trees(low=0, high=4, cells=2))}
    assert used_by == {(), ("age",), ("visits",), ("age", "visits"), ("visits", "age")}


def test_rules_of_other_classes_are_refused():
    hypothesis = Explicit([lambda rows: [0] * len(rows)]).hypothesis(0, SHAPE)
    with pytest.raises(ParameterError, match="only stumps, trees"):
        write_rule(hypothesis, FEATURES, LABELS)


TEST = {"feature": "age", "threshold": 1.0, "below": False}
SPLIT = {"when": "all", "tests": [TEST], "then": {"label": 1}, "else": {"label": 0}}


def nested(depth):
    rule = {"label": 1}
    for _ in range(depth):
        rule = {**SPLIT, "then": rule}
    return rule


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"label": None},
        {"label": [1]},
        {"label": 1, "more": 2},
        {**SPLIT, "when": "some"},
        {**SPLIT, "tests": []},
        {**SPLIT, "tests": {}},
        {**SPLIT, "more": 1},
        {**SPLIT, "then": 1},
        {**SPLIT, "else": {**SPLIT, "tests": [1]}},
        *(
            {**SPLIT, "tests": [{**TEST, **wrong}]}
            for wrong in (
                {"feature": 1},
                {"below": 1},
                {"below": None},
                {"threshold": "1"},
                {"threshold": True},
                {"threshold": math.nan},
                {"threshold": math.inf},
                {"threshold": 10**400},
                {"more": 1},
            )
        ),
        {key: value for key, value in SPLIT.items() if key != "else"},
        nested(60),
    ],
)
def test_what_is_no_rule_is_refused(value):
    with pytest.raises(DataError, match="not a rule"):
        check_rule(value)


def test_rules_are_taken_as_they_are():
    for rule in (
        SPLIT,
        nested(2),
        {**SPLIT, "tests": [{**TEST, "threshold": None}, {**TEST, "threshold": 3}]},
    ):
        assert check_rule(rule) == rule
