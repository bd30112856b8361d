"""Released rules with the names of columns and labels: as JSON, in words, and applied to rows.

A rule in JSON is {"label": 1}, or

    {"when": "all", "tests": [{"feature": "visits", "threshold": 12.0, "below": false}], "then": …,
    "else": …}

where `then` and `else` are rules again. `when` is "all" or "any" of the tests. A test with `below`
is passed by values below the threshold, otherwise by those at or above it. A threshold of null is
that of a feature which is 0 or 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.learning.classes.conjunctions import Conjunction, Disjunction, Literal
from privmax.learning.classes.stumps import Constant, Stump
from privmax.learning.classes.trees import Tree

Rule = Mapping[str, Any]

_DIGITS = 8
"""Of a threshold that is no whole number, so many are shown in words. JSON has all of them."""

_DEEPEST = 50
"""Rules within rules. Ours have two."""


def write_rule(hypothesis: object, features: Sequence[str], labels: Sequence[Hashable]) -> Rule:
    """The rule of a hypothesis as JSON, the same for every row; tests that change nothing are left
    out.
    """
    return _simple(_rule(hypothesis, features, labels), {})


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
                                                 "disjunctions are told in words",
        "Pickle the fitted PrivateERM instead.",
    )  # fmt: skip


def _branch(
    when: str, tests: Sequence[Literal], features: Sequence[str], yes: Rule, no: Rule
) -> Rule:
    if not tests:
        return yes if when == "all" else no
    named = [
        {"feature": features[test.feature], "threshold": test.threshold, "below": test.below}
        for test in tests
    ]
    return {"when": when, "tests": named, "then": yes, "else": no}


def _simple(rule: Rule, known: Mapping[str, tuple[float, float]]) -> Rule:
    """The rule without tests that change nothing: many trees say the same; known: low ≤ feature <
    high.
    """
    if "label" in rule or not _is_split(rule):
        return rule
    (test,) = rule["tests"]
    feature, threshold = test["feature"], test["threshold"]
    low, high = known.get(feature, (-math.inf, math.inf))
    if threshold <= low or threshold >= high:
        return _simple(rule["then"] if threshold <= low else rule["else"], known)
    above = _simple(rule["then"], {**known, feature: (threshold, high)})
    below = _simple(rule["else"], {**known, feature: (low, threshold)})
    if above == below:
        return above
    for side, other, inner in ((above, below, "else"), (below, above, "then")):
        if _is_split(side) and side["tests"][0]["feature"] == feature and side[inner] == other:
            return side  # its threshold is the one that counts
    return {**rule, "then": above, "else": below}


def _is_split(rule: Rule) -> bool:
    """Whether it asks only if one feature is at or above a threshold."""
    tests = rule.get("tests", [])
    return len(tests) == 1 and tests[0]["threshold"] is not None and not tests[0]["below"]


def describe_rule(rule: Rule, label: str) -> list[str]:
    """The rule as lines to read; label: the name of what it predicts."""
    if "label" in rule:
        return [f"{label} = {rule['label']} for every row"]
    condition = (" and " if rule["when"] == "all" else " or ").join(map(_test, rule["tests"]))
    then, other = rule["then"], rule["else"]
    if "label" in then and "label" in other:
        return [f"{label} = {then['label']} if {condition}, else {other['label']}"]
    return [f"if {condition}: {_inner(then, label)}", f"otherwise: {_inner(other, label)}"]


def _inner(rule: Rule, label: str) -> str:
    if "label" in rule:
        return f"{label} = {rule['label']}"
    lines = describe_rule(rule, label)
    return lines[0] if len(lines) == 1 else f"({'; '.join(lines)})"


def _test(test: Rule) -> str:
    if test["threshold"] is None:
        return f"{test['feature']} is {0 if test['below'] else 1}"
    return f"{test['feature']} {'<' if test['below'] else '>='} {_number(test['threshold'])}"


def _number(value: float) -> str:
    whole = float(value).is_integer() and abs(value) < 1 << 53
    return str(int(value)) if whole else f"{value:.{_DIGITS}g}"


def list_features(rule: Rule) -> list[str]:
    """The features that a rule looks at."""
    if "label" in rule:
        return []
    here = [test["feature"] for test in rule["tests"]]
    return list(dict.fromkeys([*here, *list_features(rule["then"]), *list_features(rule["else"])]))


def apply_rule(
    rule: Rule, columns: Mapping[str, NDArray[np.float64]], rows: int
) -> NDArray[np.object_]:
    """The label that a rule gives each of so many rows; columns: the features it uses."""
    if "label" in rule:
        return np.full(rows, rule["label"], object)
    passes = [_passes(test, columns[test["feature"]]) for test in rule["tests"]]
    chosen = (
        np.logical_and.reduce(passes) if rule["when"] == "all" else np.logical_or.reduce(passes)
    )
    labels = np.empty(rows, object)
    for side, where in ((rule["then"], chosen), (rule["else"], ~chosen)):
        narrowed = {name: columns[name][where] for name in list_features(side)}
        labels[where] = apply_rule(side, narrowed, int(np.count_nonzero(where)))
    return labels


def _passes(test: Rule, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    literal = Literal(0, test["threshold"], test["below"])
    return literal.passes(values[:, None])


def check_rule(value: Any, depth: int = 0) -> Rule:
    """A rule that was read from JSON, or a DataError where it is none."""
    match value:
        case {"label": bool() | int() | float() | str()} if len(value) == 1:
            return {"label": value["label"]}
        case {"when": "all" | "any", "tests": [_, *_] as tests, "then": then, "else": other} if (
            len(value) == 4
        ):
            if depth < _DEEPEST and all(map(_is_test, tests)):
                return {
                    **value,
                    "then": check_rule(then, depth + 1),
                    "else": check_rule(other, depth + 1),
                }
    raise DataError("It is not a rule as PrivateERM's are written.")


def _is_test(value: Any) -> bool:
    match value:
        case {"feature": str(), "below": bool(), "threshold": None}:
            return len(value) == 3
        case {"feature": str(), "below": bool(), "threshold": bool()}:
            return False
        case {"feature": str(), "below": bool(), "threshold": int() | float() as threshold}:
            return len(value) == 3 and abs(threshold) <= sys.float_info.max
    return False
