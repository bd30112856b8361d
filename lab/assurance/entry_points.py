"""The entry points that are audited as black boxes, each with individuals that were invented.

Epsilon is large where a draw is slow: at 2 to 4 a fifth more shows in a few thousand runs. Every
draw checks that what is released states what was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import privmax
from lab.assurance.boxes import Box, RememberedSource, SaltedCoins, replaced
from privmax.keyset import release as keys_release
from privmax.keyset.budget import ONE
from privmax.keyset.rounds import Integers
from privmax.learning import (
    Category,
    PrivateClassifier,
    PrivateGAM,
    PrivateRegressor,
    PrivateSearch,
    Schema,
    search,
    select_model,
)
from privmax.learning.additive.link import CLIP, CURVE, LOGISTIC
from privmax.learning.additive.rounds import RoundNoise
from privmax.learning.additive.steps import PRIOR, Prior
from privmax.learning.regressor import fitting as errors
from privmax.learning.regressor.targets import REACH, SQUARED
from privmax.learning.search_runs import RowSource
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.sources.pairs import ROOM
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


class RememberedKeys(RememberedSource):
    """Keys that are read once for each data set, and are asked in rounds.

    The last round asks what individuals give in proportion to values that are new in every run. An
    engine takes 5 ms for it, so it is added up here, as the engine does.

    Args:
        source: What is asked.
        sets: The numbers of each individual's keys.
    """

    def __init__(self, source: Any, sets: Sequence[Integers]) -> None:
        super().__init__(source)
        self._sets = sets

    @classmethod
    def of(cls, source: Any, people: Sequence[str]) -> RememberedKeys:
        """Read which keys individuals have."""
        number = {label: place for place, label in enumerate(source.name(np.arange(source.number)))}
        own = [{number[row[1]] for row in one.split()} for one in people]
        return cls(source, [np.array(sorted(keys)) for keys in own])

    def give(self, most: int, turn: int, values: Integers | None = None) -> Integers:
        """Return what individuals give."""
        if values is None or any(len(own) > most for own in self._sets):
            return self._ask(self._source.give, "give", most, turn, values)  # type: ignore[no-any-return]
        totals = np.zeros(len(values), np.int64)
        for own in self._sets:
            left = own[np.isin(own, self._source._keys)]
            value = values[left].astype(float)
            norm = math.sqrt((value * value).sum())
            totals[left] += np.floor(value * (ONE * ROOM) / norm).astype(np.int64)
        return totals

    def _remember(self, source: Any) -> RememberedSource:
        return RememberedKeys(source, self._sets)


_SOURCES: dict[tuple[str, ...], RememberedKeys] = {}
"""What `keys` reads of data: it takes 30 ms, and depends on no coins but a fixed salt."""


def _keys(people: list[Any], epsilon: Fraction, coins: Coins, **options: Any) -> Any:
    key = tuple(people)

    def read(*given: Any) -> RememberedSource:
        if key not in _SOURCES:
            _SOURCES[key] = RememberedKeys.of(pairs(*given), people)
        return _SOURCES[key]

    with replaced(keys_release, "pairs", read):
        return privmax.keys(
            _frame(people), item="item", user="who", epsilon=epsilon, coins=SaltedCoins(coins),
            **options,
        ).items  # fmt: skip


def _keys_single(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _keys(people, epsilon, coins, per_user=1, delta="0.001")


def _keys_rounds(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    return _keys([*PAIRED, *people], epsilon, coins, per_user=2, delta="0.1")


PAIRED = ("xa", "xa", "xb", "xb")
"""Individuals that are in every data set: thresholds are whole numbers of individuals, and what a
fault does to a key that one has depends little on it.
"""


# Learners

SCHEMA = Schema(x=Category(["a"]))
"""One column of two cells, which have no order: a table has an entry for each by itself."""

EXAMPLES = (("a", 0), ("a", 1), ("b", 0), ("b", 1))
Example = tuple[str, Any]

KNOWN = (("a", 1),) * 16 + (("b", 0),) * 660 + (("b", 1),) * 340
"""Rows that are in every data set. With them the chance of 1 is .34 before the round, whatever the
noise of its count, and a row of 1 pulls a table as hard as any row may. Those in the first cell
keep its noisy sum of curvatures above 0.
"""

FAR, NEAR = 1500 / 4096, 500 / 4096
TARGETS = (("a", 0.5 - FAR), ("a", 0.5 + FAR))

SPREAD = TARGETS * 8 + (("b", 0.5 - NEAR), ("b", 0.5 + NEAR)) * 500
"""The same for targets: with them the spread of errors is near 460 steps of 4,096, whatever the
noise of their counts, and a row of `TARGETS` is just beyond the errors that pull less than others.
"""


def _examples(people: Sequence[Example]) -> tuple[Any, Any]:
    return [[one] for one, _ in people], [label for _, label in people]


class RememberedFits:
    """A learner whose parameters are checked once, and whose rows are read once.

    No coins are in either. A fit of what was read begins with the scores of all rows at the start.
    """

    def __init__(self, learner: Any) -> None:
        question, plan = learner._question, learner._plan_reading
        targets = learner._read_targets()
        self._learner = learner
        self._question = cache(lambda: question(learner.schema, "row"))
        self._known: dict[Any, Any] = {}

        def read(rows: tuple[Example, ...], *given: Any) -> Any:
            if rows not in self._known:
                with ExitStack() as stack:
                    self._known[rows] = plan(*_examples(rows), *given)(stack)
            return lambda stack: self._known[rows]

        learner._read_targets = lambda: targets
        learner._question = lambda *given: self._question()
        learner._plan_reading = lambda X, y, *given: read(X, *given)

    def fit(self, rows: tuple[Example, ...], coins: Coins) -> Any:
        """Fit such rows, all of which are in memory."""
        self._learner.coins = coins
        return self._learner.fit(rows, None)


@cache
def _learner(kind: type, epsilon: Fraction, **options: Any) -> RememberedFits:
    return RememberedFits(kind(SCHEMA, epsilon=epsilon, **options))


FINE = 4
"""Parts of what one row pulls: sums are looked at no finer, so that there are few events."""

ROW = 1240
"""What one row of `TARGETS` pulls, in the unit of `_pull`, with the spread of `SPREAD`."""

ROUND: dict[str, Any] = {"rounds": 1, "order": "cyclic"}


def _pull(steps: int, bend: float, variance: float, prior: Prior) -> float:
    """Return the noisy sum of residuals of a cell, up to a factor, from its step.

    A step is this sum times what follows from the noisy sum of curvatures, which is released.

    Args:
        steps: The entry of the table.
        bend: The sum of curvatures, in 1.
        variance: That of the noise on residuals, in 1.
        prior: What tables look like before any data.
    """
    return steps * (bend + (1 + variance / bend) / prior.size) if bend > 0 else 0.0


def _gam_sums(fitted: Any) -> tuple[float, float, RoundNoise]:
    """Return the noisy sums of the first cell, of residuals and of curvatures, and their noise."""
    noise, model = fitted.release_.mechanism.singles, fitted.model_
    [[steps, *_]], [[curve, *_]] = model.tables.values(), model.weights.values()
    variance = noise.residuals.spread() / LOGISTIC.pull**2
    pull = _pull(steps, curve / LOGISTIC.bend, variance, PRIOR)
    return pull * LOGISTIC.pull / (LOGISTIC.step * PRIOR.rate), float(curve), noise


def _gam(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = _learner(PrivateGAM, epsilon, labels=(0, 1), **ROUND)
    return round(FINE * _gam_sums(learner.fit((*people, *KNOWN), coins))[0] / CLIP)


def _gam_delta(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    """Noise is normal: each sum counts by what a row moves it, over the variance."""
    learner = _learner(PrivateGAM, epsilon, delta="0.2", accounting="pld", labels=(0, 1), **ROUND)
    pull, curve, noise = _gam_sums(learner.fit((*people, *KNOWN), coins))
    return round(pull * CLIP / noise.residuals.spread() + curve * CURVE / noise.curvatures.spread())


def _regressor(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    fitted = _learner(PrivateRegressor, epsilon, targets=(0, 1), **ROUND).fit(
        (*people, *SPREAD), coins
    )
    noise, model = fitted.release_.mechanism.singles, fitted.model_.tables
    [[steps, *_]], [[curve, *_]] = model.tables.values(), model.weights.values()
    variance = noise.residuals.spread() * (REACH[SQUARED][1] / CLIP) ** 2
    return round(FINE * _pull(steps, curve / CURVE, variance, errors.PRIOR) / ROW)


def _classifier(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    learner = _learner(PrivateClassifier, epsilon, labels=(0, 1), n=2)
    rule = learner.fit(tuple(people), coins).model_.model
    return rule.number, *(count > 0 for count in rule.leaves[0])


class Answerer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A private learner at its limit: randomized response to whether a row of 1 is there.

    Its answer is its model, and decides how well it does on the other rows.
    """

    coins: ClassVar[Coins] = SeededCoins("none")
    """Where the bits of all fits come from; a run of the audit sets it."""

    def __init__(self, epsilon: Any = None) -> None:
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any) -> Answerer:
        truth = bool((X == "b").any())
        odds = Fraction(math.exp(float(self.epsilon))).limit_denominator(10**6)
        lie = uniform_below(odds.numerator + odds.denominator, self.coins) < odds.denominator
        self.answer_ = truth != lie
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), int(self.answer_))


class RememberedSearch:
    """A search whose parameters are checked once, and whose rows are read once."""

    def __init__(self, learner: Any) -> None:
        plan = learner._plan()
        learner._plan = lambda: plan
        self._search = learner
        self._open = cache(lambda people: RowSource(*map(np.array, _examples(people))))

    def fit(self, people: tuple[Example, ...], coins: Coins) -> Any:
        """Search, with rows that are in memory."""
        self._search.coins = Answerer.coins = coins
        checked = replaced(search, "check_parameters", lambda *given: None)
        opened = replaced(search.ModelSearch, "open", lambda *given: self._open(people))
        with checked, opened:
            return self._search.fit(None, None)


@cache
def _lean_search(epsilon: Fraction) -> RememberedSearch:
    options: dict[str, Any] = {"runs": "3/2", "law": "-19/20", "train": "255/256"}
    return RememberedSearch(PrivateSearch(Answerer(), {}, epsilon=epsilon, **options))


def _search(people: list[Any], epsilon: Fraction, coins: Coins) -> Any:
    winner = _lean_search(epsilon).fit(tuple(people), coins).release_.item
    return None if winner is None else winner.model.answer_


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
FIT: dict[str, Any] = {**SLOW, "looks": 24, "tries": 200, "reach": 3}

BOXES = (
    Box("select, closed universe", SETS, _select, "3", **QUICK),
    Box("select, open universe", SETS[:3], _select_open, "3", "0.001", **QUICK | LONG),
    Box("select_model", SETS, _models, "3", **QUICK),
    Box("select, ranked", SETS, _ranked, "4", **QUICK | LONG, tight=False),
    Box("select, by group", ROWS, _by, "3", "0.001", **ENGINE),
    Box("keys, one per user", ROWS[:2], _keys_single, "3", "0.001", **SLOW, samples=12_000),
    Box(
        "keys, in rounds", (*ROWS[:2], ROWS[3]), _keys_rounds, "4.5", "0.1", **SLOW, tight=False,
        reach=4, samples=15_400,
    ),
    Box("PrivateGAM", EXAMPLES[:2], _gam, "3", **FIT, tight=False, samples=31_000),
    Box("PrivateGAM, with delta", EXAMPLES[:2], _gam_delta, "2", "0.2", **FIT, samples=110_000),
    Box("PrivateSearch", EXAMPLES[1::2], _search, "3", **SLOW, reach=2, samples=31_000),
    Box("PrivateClassifier", EXAMPLES, _classifier, "3", **FIT, samples=31_000),
    Box("PrivateRegressor", TARGETS, _regressor, "3", **FIT, tight=False, samples=31_000),
)  # fmt: skip
