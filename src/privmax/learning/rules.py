"""Released rules with the names of columns and labels: as JSON, in words, and applied to rows.

A rule in JSON is {"label": 1}, or

    {"when": "all", "tests": [{"feature": "visits", "threshold": 12.0, "below": false}], "then": …,
    "else": …}

where `then` and `else` are rules again. `when` is "all" or "any" of the tests. A test with `below`
is passed by values below the threshold, otherwise by those at or above it. A threshold of null is
that of a feature which is 0 or 1. Rules about the columns of a schema have two further tests,

    {"feature": "work", "equals": "Private", "not": false}
    {"feature": "work", "state": "missing", "not": false}

the second with the state "missing" or "not listed"; and where the column says what is missing, a
test with a threshold has "missing", which is whether missing values pass it. The threshold of dates
is a text such as "2024-03-01" or "2024-03-01T05:30:00".
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.classes.conjunctions import Conjunction, Disjunction, Literal
from privmax.learning.classes.stumps import Constant, Stump
from privmax.learning.classes.trees import Tree
from privmax.learning.schema import Schema
from privmax.learning.splits import CellSplit, describe_test, find_split, join_tests

Rule = Mapping[str, Any]

Bounds = Mapping[str, tuple[Any, Any]]
"""Of a feature, thresholds that are known to be at or below it and above it. Those of one feature
are all numbers or all text, which sorts as its dates do."""

_DEEPEST = 50
"""Rules within rules. Ours have two."""


def write_rule(hypothesis: object, features: Sequence[str], labels: Sequence[Hashable]) -> Rule:
    """Write the rule of a hypothesis as JSON, the same for every row.

    Tests that change nothing are left out.

    Args:
        hypothesis: A stump, tree, conjunction or disjunction.
        features: The names of the columns.
        labels: The labels, in the order of their codes.

    Examples:
        >>> write_rule(Stump(0, 5.0, 0, 1), ["age"], ["no", "yes"])["then"]
        {'label': 'yes'}
    """
    return _simple(_rule(hypothesis, features, labels), {}, {})


def _rule(hypothesis: object, features: Sequence[str], labels: Sequence[Hashable]) -> Rule:
    match hypothesis:
        case Constant(label):
            return {"label": labels[label]}
        case Stump(feature, threshold, below, above):
            test = Literal(feature, threshold, below=False)
            return _branch(
                "all", (test,), features, {"label": labels[above]}, {"label": labels[below]}
            )
        case Tree(feature, threshold, below, above):
            sides = (_rule(side, features, labels) for side in (above, below))
            return _branch("all", (Literal(feature, threshold, below=False),), features, *sides)
        case Conjunction(tests) | Disjunction(tests):
            when = "all" if isinstance(hypothesis, Conjunction) else "any"
            return _branch(when, tests, features, {"label": labels[1]}, {"label": labels[0]})
    raise ParameterError(
        "hypothesis", type(hypothesis).__name__, "only stumps, trees, conjunctions and "
                                                 "disjunctions can be put in words",
        "Pickle the fitted PrivateERM instead.",
    )  # fmt: skip


def _branch(
    when: str, tests: Sequence[Literal], features: Sequence[str], yes: Rule, no: Rule
) -> Rule:
    if not tests:
        return yes if when == "all" else no
    named = [_name(test, features[test.feature]) for test in tests]
    return {"when": when, "tests": named, "then": yes, "else": no}


def _name(test: Literal, feature: str) -> Rule:
    if isinstance(test.threshold, CellSplit):
        return {**test.threshold.to_dict(below=test.below), "feature": feature}
    return {"feature": feature, "threshold": test.threshold, "below": test.below}


def _simple(rule: Rule, known: Bounds, names: Mapping[str, Mapping[Any, bool]]) -> Rule:
    """Return the rule without tests that change nothing: many trees say the same.

    known   low ≤ feature < high, None where there is no such bound
    names   of a feature, which names and states it has or has not
    """
    if "label" in rule or len(rule["tests"]) > 1:
        return rule
    (test,) = rule["tests"]
    if not _is_split(rule):
        return _simple_name(rule, known, names)
    feature, threshold = test["feature"], test["threshold"]
    low, high = known.get(feature, (None, None))
    if low is not None and threshold <= low:
        return _simple(rule["then"], known, names)
    if high is not None and threshold >= high:
        return _simple(rule["else"], known, names)
    above = _simple(rule["then"], {**known, feature: (threshold, high)}, names)
    below = _simple(rule["else"], {**known, feature: (low, threshold)}, names)
    if above == below:
        return above
    for side, other, inner in ((above, below, "else"), (below, above, "then")):
        if _is_split(side) and side["tests"][0]["feature"] == feature and side[inner] == other:
            return side  # its threshold is the one that counts
    return {**rule, "then": above, "else": below}


def _simple_name(rule: Rule, known: Bounds, names: Mapping[str, Mapping[Any, bool]]) -> Rule:
    """Return the same of a rule that begins with a test for a name."""
    (test,) = rule["tests"]
    if "not" not in test:
        return rule
    feature, name = test["feature"], (test.get("equals"), test.get("state"))
    facts = names.get(feature, {})
    if name in facts or True in facts.values():  # who has one name has no other
        side = "then" if facts.get(name, False) != test["not"] else "else"
        return _simple(rule[side], known, names)
    sides = (
        _simple(rule[side], known, {**names, feature: {**facts, name: has != test["not"]}})
        for side, has in (("then", True), ("else", False))
    )
    yes, no = sides
    return yes if yes == no else {**rule, "then": yes, "else": no}


def _is_split(rule: Rule) -> bool:
    """Return whether it asks only if one feature is at or above a threshold."""
    tests = rule.get("tests", [])
    return len(tests) == 1 and tests[0].get("threshold") is not None and not tests[0]["below"]


def describe_rule(rule: Rule, label: str) -> list[str]:
    """Return the rule as lines to read; label: the name of what it predicts.

    Examples:
        >>> describe_rule(write_rule(Stump(0, 5.0, 0, 1), ["age"], ["no", "yes"]), "card")
        ['card = yes if age >= 5, else no']
    """
    if "label" in rule:
        return [f"{_word(label)} = {_word(rule['label'])} for every row"]
    tests = list(map(describe_test, rule["tests"]))
    condition = join_tests(tests) if rule["when"] == "all" else " or ".join(tests)
    then, other = rule["then"], rule["else"]
    if "label" in then and "label" in other:
        yes, no = _word(then["label"]), _word(other["label"])
        return [f"{_word(label)} = {yes} if {condition}, else {no}"]
    return [f"if {condition}: {_inner(then, label)}", f"otherwise: {_inner(other, label)}"]


def _inner(rule: Rule, label: str) -> str:
    if "label" in rule:
        return f"{_word(label)} = {_word(rule['label'])}"
    lines = describe_rule(rule, label)
    return lines[0] if len(lines) == 1 else f"({'; '.join(lines)})"


def _word(value: object) -> object:
    """Return a name or a label, in which nothing can command a terminal."""
    return format_label(value) if isinstance(value, str) else value


def list_features(rule: Rule) -> list[str]:
    """Return the features that a rule looks at.

    Examples:
        >>> list_features(write_rule(Stump(0, 5.0, 0, 1), ["age"], ["no", "yes"]))
        ['age']
    """
    if "label" in rule:
        return []
    here = [test["feature"] for test in rule["tests"]]
    return list(dict.fromkeys([*here, *list_features(rule["then"]), *list_features(rule["else"])]))


def apply_rule(
    rule: Rule, columns: Mapping[str, NDArray[Any]], rows: int, schema: Schema | None = None
) -> NDArray[np.object_]:
    """Return the label that a rule gives each of so many rows.

    `columns` are the features it uses, as numbers, or as cells of the schema that the rule is
    about.

    Examples:
        >>> rule = write_rule(Stump(0, 5.0, 0, 1), ["age"], ["no", "yes"])
        >>> apply_rule(rule, {"age": np.array([3.0, 8.0])}, 2).tolist()
        ['no', 'yes']
    """
    if "label" in rule:
        return np.full(rows, rule["label"], object)
    passes = [_passes(test, columns[test["feature"]], schema) for test in rule["tests"]]
    chosen = (
        np.logical_and.reduce(passes) if rule["when"] == "all" else np.logical_or.reduce(passes)
    )
    labels = np.empty(rows, object)
    for side, where in ((rule["then"], chosen), (rule["else"], ~chosen)):
        narrowed = {name: columns[name][where] for name in list_features(side)}
        labels[where] = apply_rule(side, narrowed, int(np.count_nonzero(where)), schema)
    return labels


def _passes(test: Rule, values: NDArray[Any], schema: Schema | None) -> NDArray[np.bool_]:
    if schema is not None:
        split, below = find_split(schema, test)
        passed = split.passes(values)
        return ~passed if below else passed
    literal = Literal(0, test["threshold"], test["below"])
    return literal.passes(values[:, None])


def check_rule(value: Any, schema: Schema | None = None, depth: int = 0) -> Rule:
    """Return a rule that was read from JSON, or a DataError where it is none.

    Args:
        value: What was read.
        schema: The schema that it is about; None: none.

    Raises:
        DataError: It is no rule, or not one about this schema.

    Examples:
        >>> check_rule({"label": 1})
        {'label': 1}
    """
    match value:
        case {"label": bool() | int() | float() | str()} if len(value) == 1:
            return {"label": value["label"]}
        case {"when": "all" | "any", "tests": [_, *_] as tests, "then": then, "else": other} if (
            len(value) == 4
        ):
            if depth < _DEEPEST and all(_is_test(test, schema) for test in tests):
                return {
                    **value,
                    "then": check_rule(then, schema, depth + 1),
                    "else": check_rule(other, schema, depth + 1),
                }
    raise DataError("It is not a rule as PrivateERM's are written.")


def _is_test(value: Any, schema: Schema | None) -> bool:
    if schema is not None:
        try:
            find_split(schema, value)
        except (DataError, KeyError, TypeError):
            return False
        return True
    match value:
        case {"feature": str(), "below": bool(), "threshold": None}:
            return len(value) == 3
        case {"feature": str(), "below": bool(), "threshold": bool()}:
            return False
        case {"feature": str(), "below": bool(), "threshold": int() | float() as threshold}:
            return len(value) == 3 and abs(threshold) <= sys.float_info.max
    return False
