"""Every kind of release there is, made with fixed coins: what `test_releases.py` compares.

Data is small and invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin

from privmax import Groups, Request, Scores, keys, maximize, select, top_itemsets
from privmax.itemsets import Layout
from privmax.learning import (
    MarginalSelector,
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateRegressor,
    PrivateSearch,
    PrivateTree,
    Schema,
    StableSelector,
    Stumps,
    select_model,
    validate,
)
from privmax.learning.validation import Stability
from privmax.markers import top_markers
from privmax.release import Release

Paid = dict[str, Any]
"""What every function takes: `ledger`, what to charge, and `coins`."""

PRICE: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
SCORES = {"tea": 9000, "ale": 8000, "fig": 500, "té\u200b": 3}
KEYS = {"tea": 900, "ale ": 700, "ale": 650, "té\u200b": 400, "fig": 2}
BASKETS = [["bread", "butter"]] * 900 + [["bread"]] * 400 + [["tea", "milk"]] * 300
_PAIRS = [(who, what) for what, many in KEYS.items() for who in range(many)]
PEOPLE = pl.DataFrame({"who": [who for who, _ in _PAIRS], "what": [what for _, what in _PAIRS]})
"""Everybody has the first key; the fewer individuals a key has, the more others they have."""

GROUPED = pl.DataFrame(
    {**PEOPLE.to_dict(as_series=False), "at": ["n" if who < 500 else "s" for who, _ in _PAIRS]}
)

MARKERS = np.array([[400, 410], [900, 300], [55, 60], [700, 640]])

_RNG = np.random.default_rng(7)
X = _RNG.integers(0, 100, (800, 2)).astype(float)
Y = (X[:, 0] >= 50).astype(int)
SCHEMA = Schema(a=Number(0, 100, cells=4), b=Number(0, 100, cells=2))
STUMPS = Stumps(low=0, high=100, cells=4)


class Fixed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Looks at no data, and sets what has a form in JSON, or has none."""

    def __init__(self, at: float = 0.0, epsilon: Any = None, strange: bool = False) -> None:
        self.at, self.epsilon, self.strange = at, epsilon, strange

    def fit(self, X: Any, y: Any) -> Fixed:
        self.classes_ = np.array([0, 1])
        self.at_ = object() if self.strange else {"at": (float(self.at), [1, "a"])}
        return self

    def predict(self, X: Any) -> Any:
        return (np.asarray(X)[:, 0] >= self.at).astype(int)


def _fitted(learner: Any) -> Release:
    found: Release = learner.fit(X, Y).release_
    return found


def _search(to: Paid, learner: Any, params: Any) -> Release:
    return _fitted(PrivateSearch(learner, params, epsilon=8, runs=5, law="poisson", **to))


def _per(unit: str, to: Paid) -> Paid:
    """The same, charged for a unit of its own."""
    return {**to, "ledger": replace(Request.of(to.get("ledger")), unit=unit)}


def _share(item: int, data: list[int]) -> float:
    return sum(entry >= item for entry in data) / len(data)


def _validate(to: Paid, **options: Any) -> Release:
    fits: Any = {"good": lambda X, y: 0.9, "bad": lambda X, y: 0.1}
    stability = Stability(training=0.001, validation="1/500", failure="1e-7")
    given: Any = {"score": lambda model, X, y: model, "stability": stability, **options}
    rows = ([[0.0], [1.0]], [0, 1]), ([[2.0], [3.0]], [0, 1])
    return validate(fits, *rows, epsilon=1, **given, **to)


_MODELS: Any = {"low": lambda rows: rows[:, 0] < 10, "high": lambda rows: rows[:, 0] >= 50}

KINDS: dict[str, Callable[[Paid], Release]] = {
    "select": lambda to: select(SCORES, **PRICE, **to),
    "select-set": lambda to: select(SCORES, **PRICE, k=2, **to),
    "select-fewer": lambda to: select(SCORES, **PRICE, k=4, **to),
    "select-ranked": lambda to: select(SCORES, **PRICE, k=2, ranked=True, **to),
    "select-peeled": lambda to: select(
        SCORES, **PRICE, k=2, ranked=True, mechanism="sharp-margin", **to
    ),
    "select-counts": lambda to: select(SCORES, **PRICE, k=3, counts="0.5", **to),
    "select-ranked-counts": lambda to: select(
        SCORES, **PRICE, k=2, ranked=True, counts=1, **_per("person", to)
    ),
    "select-grid-counts": lambda to: select(
        {"a": 900.25, "b": 1.5},
        **PRICE,
        counts="0.5",
        **to,
        scores=Scores(sensitivity="1/2", neighbors="replace"),
    ),
    "select-diagnostics": lambda to: select(SCORES, **PRICE, mechanism="large-margin", **to),
    "select-nothing": lambda to: select({"a": 1}, **PRICE, **to),
    "select-nothing-counts": lambda to: select({"a": 1}, **PRICE, counts=1, **to),
    "select-closed": lambda to: select(SCORES, epsilon=1, universe=SCORES, **to),
    "select-dates": lambda to: select(
        {(date(2026, 1, 2), 2**60, 0.5, b"\xff"): 9000, ("y", 2**60, True, "x"): 1}, **PRICE, **to
    ),
    "select-rows": lambda to: select(
        pl.DataFrame({"item": ["a"] * 400 + ["b"] * 9, "who": [*range(409)]}),
        item="item",
        user="who",
        **PRICE,
        **to,
    ),
    "select-groups": lambda to: select(
        GROUPED,
        item="what",
        user="who",
        by=Groups("at", ["s", "n", "w"]),
        k=2,
        counts="0.5",
        **PRICE,
        **to,
    ),
    "select-open-groups": lambda to: select(
        GROUPED, item="what", user="who", by="at", **PRICE, **to
    ),
    "select-ranked-groups": lambda to: select(
        GROUPED,
        item="what",
        user="who",
        by=Groups("at", ["s", "n"]),
        k=2,
        ranked=True,
        **PRICE,
        **to,
    ),
    "keys": lambda to: keys(PEOPLE, item="what", user="who", **PRICE, **to),
    "keys-counts": lambda to: keys(
        PEOPLE, item="what", user="who", per_user=3, counts="0.5", other=True, **PRICE, **to
    ),
    "keys-one-each": lambda to: keys(
        PEOPLE, item=["what"], user="who", per_user=1, counts=1, **PRICE, **to
    ),
    "keys-several-columns": lambda to: keys(
        PEOPLE.with_columns(n=pl.lit(2**60)), item=["what", "n"], user="who", **PRICE, **to
    ),
    "keys-nothing": lambda to: keys(
        PEOPLE.head(3), item="what", user="who", counts=1, other=True, **PRICE, **to
    ),
    "itemsets": lambda to: top_itemsets(BASKETS, **PRICE, **to),
    "itemsets-set": lambda to: top_itemsets(BASKETS, **PRICE, k=2, **to),
    "itemsets-supports": lambda to: top_itemsets(BASKETS, **PRICE, k=2, supports="0.5", **to),
    "itemsets-groups": lambda to: top_itemsets(
        GROUPED,
        basket="who",
        item="what",
        user="who",
        by=Groups("at", ["s", "n", "w"]),
        size=1,
        k=2,
        supports="0.5",
        **PRICE,
        **to,
    ),
    "itemsets-rules": lambda to: top_itemsets(BASKETS, **PRICE, rules="0.5", **to),
    "itemsets-all": lambda to: top_itemsets(
        BASKETS,
        **PRICE,
        size="2-3",
        k=2,
        ranked=True,
        supports=1,
        rules=2,
        **_per("user", to),
    ),
    "itemsets-floor": lambda to: top_itemsets(
        BASKETS, **PRICE, mechanism="large-margin", **to, layout=Layout(floor=100)
    ),
    "itemsets-nothing": lambda to: top_itemsets([["a", "b"]], **PRICE, supports=1, rules=1, **to),
    "itemsets-closed": lambda to: top_itemsets([[0, 1]] * 900, epsilon=1, items=3, **to),
    "itemsets-priv-basis": lambda to: top_itemsets(
        BASKETS,
        epsilon=9,
        items=["bread", "butter", "milk", "tea"],
        k=3,
        mechanism="priv-basis",
        **to,
    ),
    "itemsets-blst10": lambda to: top_itemsets(
        BASKETS, epsilon=9, items=["bread", "butter", "milk", "tea"], k=3, mechanism="blst10", **to
    ),
    "erm": lambda to: _fitted(PrivateERM(STUMPS, 1, labels=[0, 1], **to)),
    "classifier": lambda to: _fitted(
        PrivateClassifier(SCHEMA, epsilon=1, delta=1e-6, labels=[0, 1], **to)
    ),
    "gam": lambda to: _fitted(PrivateGAM(SCHEMA, 1, 1e-6, labels=[0, 1], rounds=3, **to)),
    "gam-pairs": lambda to: _fitted(
        PrivateGAM(SCHEMA, 1, 1e-6, labels=[0, 1], rounds=2, interactions=1, **to)
    ),
    "regressor": lambda to: _fitted(
        PrivateRegressor(
            SCHEMA, epsilon=1, delta=1e-6, targets=(-1, 2), rounds=3, intervals=True, **to
        )
    ),
    "tree": lambda to: _fitted(PrivateTree(SCHEMA, 1, labels=[0, 1], depth=2, **to)),
    "search": lambda to: _search(
        to, PrivateERM(STUMPS, labels=[0, 1]), {"hypotheses__cells": [3, 2]}
    ),
    "search-own-model": lambda to: _search(to, Fixed(), {"at": [50.0, 90.0]}),
    "search-without-model": lambda to: _search(to, Fixed(strange=True), {"at": [50.0]}),
    "models": lambda to: select_model(_MODELS, X, Y, epsilon=1, **to),
    "models-set": lambda to: select_model(_MODELS, X, Y, **PRICE, k=2, **to),
    "stable": lambda to: _fitted(StableSelector(size=1, **PRICE, **to)),
    "stable-any": lambda to: _fitted(
        StableSelector(size=1, epsilon=1, fallback="any", neighbors="replace", **to)
    ),
    "marginal": lambda to: _fitted(
        MarginalSelector(
            size=2,
            epsilon=1,
            low=0,
            high=100,
            label_low=0,
            label_high=1,
            **to,
        )
    ),
    "validate": lambda to: _validate(to),
    "validate-delta": lambda to: _validate(to, delta="1e-6"),
    "markers": lambda to: top_markers(MARKERS, cases=1000, controls=1000, epsilon=1, **to),
    "markers-many": lambda to: top_markers(
        MARKERS, cases=1000, controls=1000, k=2, **PRICE, markers=["w", "x", "y", "z"], **to
    ),
    "maximize": lambda to: maximize(_share, range(1, 20), [1] * 500 + [4] * 400, **PRICE, **to),
    "maximize-diagnostics": lambda to: maximize(
        _share, range(1, 20), [1] * 500 + [4] * 400, **PRICE, mechanism="large-margin", **to
    ),
}
"""What makes a release of each kind, by name."""
