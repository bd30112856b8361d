"""The entry points that are audited as black boxes, each with individuals that were invented.

Epsilon is large where a draw is slow: at 2 to 4 a fifth more shows in a few thousand runs. Every
draw checks that what is released states what was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import privmax
from lab.assurance.boxes import Box, RememberedSource, SaltedCoins, replaced
from privmax.keyset import release as keys_release
from privmax.learning import (
    Number,
    PrivateClassifier,
    PrivateGAM,
    PrivateRegressor,
    PrivateSearch,
    Schema,
    select_model,
)
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.sources.reading import pairs
from privmax.testing import SeededCoins

ITEMS = ("a", "b", "c")


# Selections


def _scores(people: Sequence[str]) -> dict[str, int]:
    """Count the individuals that have each item; an individual is the text of its items."""
    return {item: sum(item in one for one in people) for item in ITEMS}


def _select(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return privmax.select(_scores(people), universe=ITEMS, epsilon=epsilon, coins=coins).items


def _select_open(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    scores = {item: score for item, score in _scores(people).items() if score}
    return privmax.select(scores, epsilon=epsilon, delta="0.001", coins=coins).items


def _ranked(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    options: dict[str, Any] = {"universe": ITEMS, "k": 2, "ranked": True}
    return privmax.select(_scores(people), epsilon=epsilon, coins=coins, **options).items


def _ranked_open(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    scores = {item: score for item, score in _scores(people).items() if score}
    options: dict[str, Any] = {"delta": "0.001", "k": 2, "ranked": True}
    return privmax.select(scores, epsilon=epsilon, coins=coins, **options).items


# Rows of people


def _rows(people: Sequence[str]) -> dict[str, list[str]]:
    """Write individuals as columns. Each is the text of its rows: a group and an item in two."""
    rows = [(f"p{who}", *row) for who, one in enumerate(people) for row in one.split()]
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


_COLUMNS = ("who", "group", "item")


def _frame(people: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(column, pa.string()) for name, column in _rows(people).items()})


def _by(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    release: Any = privmax.select(
        _frame(people), item="item", user="who", by=privmax.Groups("group", ["x", "y"]),
        epsilon=epsilon, delta="0.001", coins=coins,
    )  # fmt: skip
    return release.groups


_SOURCES: dict[tuple[str, ...], RememberedSource] = {}
"""What `keys` reads of data: it takes 30 ms, and depends on no coins but a fixed salt."""


def _keys(people: list[Any], epsilon: Fraction, coins: Coins, **options: Any) -> Any:
    key = tuple(people)

    def read(*given: Any) -> RememberedSource:
        if key not in _SOURCES:
            _SOURCES[key] = RememberedSource(pairs(*given))
        return _SOURCES[key]

    with replaced(keys_release, "pairs", read):
        return privmax.keys(
            _frame(people), item="item", user="who", epsilon=epsilon, coins=SaltedCoins(coins),
            **options,
        ).items  # fmt: skip


def _keys_single(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _keys(people, epsilon, coins, per_user=1, delta="0.001")


def _keys_rounds(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _keys(people, epsilon, coins, per_user=2, delta="0.1")


# Learners

SCHEMA = Schema(x=Number(0, 2, cells=2))
EXAMPLES = ((0.0, 0), (0.0, 1), (1.0, 0), (1.0, 1))


def _examples(people: Sequence[tuple[float, int]]) -> tuple[Any, Any]:
    x = np.array([[one] for one, _ in people], float).reshape(len(people), 1)
    return x, np.array([label for _, label in people], int)


def _table(model: Any) -> float:
    """Return what the model adds for the first cell of the first column that it knows."""
    return float(next(iter(model.tables.values()))[0])


def _gam(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = PrivateGAM(
        SCHEMA, epsilon, "0.001", labels=[0, 1], rounds=1, order="cyclic", accounting="pld",
        coins=coins,
    )  # fmt: skip
    return _table(learner.fit(*_examples(people)).model_)


def _gam_pure(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = PrivateGAM(SCHEMA, epsilon, labels=[0, 1], rounds=1, order="cyclic", coins=coins)
    return _table(learner.fit(*_examples(people)).model_)


def _regressor(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = PrivateRegressor(
        SCHEMA, epsilon=epsilon, targets=[0, 1], rounds=1, order="cyclic", coins=coins
    )
    x, y = _examples(people)
    return float(learner.fit(x, y.astype(float)).predict([[0.0]])[0])


def _classifier(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = PrivateClassifier(SCHEMA, epsilon=epsilon, labels=[0, 1], n=64, coins=coins)
    return float(learner.fit(*_examples(people)).predict_proba([[0.0]])[0, 1])


class Answerer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A private learner at its limit: randomized response to whether a row of 1 is there.

    Its answer is its model, and decides how well it does on the other rows.
    """

    coins: ClassVar[Coins] = SeededCoins("none")
    """Where the bits of all fits come from; a run of the audit sets it."""

    def __init__(self, epsilon: Any = None) -> None:
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any) -> Answerer:
        truth = bool((X == 1).any())
        odds = Fraction(math.exp(float(self.epsilon))).limit_denominator(10**6)
        lie = uniform_below(odds.numerator + odds.denominator, self.coins) < odds.denominator
        self.answer_ = truth != lie
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), int(self.answer_))


def _search(people: list[Any], coins: Coins, **options: Any) -> Any:
    Answerer.coins = coins
    search = PrivateSearch(Answerer(), {}, coins=coins, **options).fit(*_examples(people))
    winner = search.release_.item
    return None if winner is None else winner.model.answer_


def _search_lean(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _search(people, coins, epsilon=epsilon, runs="3/2", law="-19/20", train="255/256")


def _search_geometric(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _search(people, coins, epsilon=epsilon, runs=4, train="7/8")


def _models(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    said = np.array([[int(one in guess) for guess in ("ab", "bc", "c")] for one in people])
    return select_model(
        said.reshape(len(people), 3), None, np.ones(len(people), int), epsilon=epsilon, coins=coins
    ).items


SETS = ("a", "b", "ab", "bc", "abc")
ROWS = ("xa", "xb", "ya", "xa xb")
QUICK: dict[str, Any] = {"samples": 60_000, "tries": 2000, "looks": 60}
LONG: dict[str, Any] = {"samples": 400_000, "repeats": 10}
ENGINE: dict[str, Any] = {"tries": 150, "looks": 16, **LONG}
SLOW: dict[str, Any] = {"remembered": False, "repeats": 5, "looks": 16, "tries": 100}
FIT: dict[str, Any] = {**SLOW, "tight": False, "samples": 5000}

BOXES = (
    Box("select, closed universe", SETS, _select, "3", **QUICK),
    Box("select, open universe", SETS[:3], _select_open, "3", "0.001", **QUICK | LONG),
    Box("select_model", SETS, _models, "3", **QUICK),
    Box("select, ranked", SETS, _ranked, "4", **QUICK | LONG, tight=False),
    Box("select, by group", ROWS, _by, "3", "0.001", **ENGINE),
    Box("keys, one per user", ROWS[:2], _keys_single, "3", "0.001", **SLOW, samples=12_000),
    Box("keys, in rounds", (*ROWS[:2], ROWS[3]), _keys_rounds, "4", "0.1", **FIT),
    Box("PrivateGAM", EXAMPLES, _gam_pure, "6", **FIT),
    Box("PrivateGAM, with delta", EXAMPLES, _gam, "8", "0.001", **FIT),
    Box("PrivateSearch", EXAMPLES[1::2], _search_lean, "3", reach=2, **SLOW, samples=6000),
    Box("PrivateClassifier", EXAMPLES, _classifier, "6", **FIT),
    Box("PrivateRegressor", EXAMPLES, _regressor, "6", **FIT),
)
