"""Choosing a model keeps the price: exact laws over all small sets of examples, and mutants that do
not.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from by_name import by_name

from privmax import Exponential, NestedMargin, PermuteAndFlip
from privmax.auditing import divergence
from privmax.errors import DataError
from privmax.learning import labels
from privmax.learning.models import list_entrants, score_models, select_model
from privmax.learning.scoring import Accuracy, Clipped
from privmax.profile import Profile
from privmax.testing import walk

pytestmark = pytest.mark.slow

DELTA = "0.05"
EXAMPLES = list(product((0, 1, 2), (0, 1)))
MODELS = [lambda x: x > 0, lambda x: x > 1, lambda x: x >= 0, lambda x: x < 0]
CASES = [list(data) for size in range(4) for data in combinations_with_replacement(EXAMPLES, size)]
# More examples, tied, nearly tied and apart.
CASES += [
    [(1, 0)] * tied + [(2, 1)] * ahead + [(0, 1)] * beside
    for tied in (2, 9)
    for ahead in (0, 1, 7)
    for beside in (0, 3)
]


def worth(y, said):
    """A score far beyond its bounds on both sides, and on no step of a grid between them."""
    return np.where(y == said, 0.7, -0.1) * np.where(y == 1, 40.0, 1.0)


RULES = {
    "accuracy": Accuracy(),
    "clipped": Clipped(worth, (0, 1), "0.4"),
    "clipped at thirds": Clipped(worth, ("-1/3", "2/3"), "1/7"),
}
GRIDS = {
    "clipped": (Fraction(0), Fraction(1), Fraction(2, 5)),
    "clipped at thirds": (Fraction(-1, 3), Fraction(2, 3), Fraction(1, 7)),
}


def columns(data):
    return np.array([x for x, _ in data], int), np.array([y for _, y in data], int)


def source(data, rule, models=MODELS):
    x, y = columns(data)
    return score_models(list_entrants(models, x, "predict"), y, rule)


def adds(example, model, name):
    """What an example adds to the total of a model, by its definition."""
    x, y = example
    said = model(np.array([x]))
    if name == "accuracy":
        return int(said[0] == y)
    low, high, step = GRIDS[name]
    number = Fraction(worth(np.array([y]), said)[0])
    return math.floor((min(max(number, low), high) - low) / step)


@cache
def law_of(mechanism, levels, universe, sensitivity):
    return mechanism.law(Profile(levels, universe=universe, sensitivity=sensitivity))


def law(mechanism, levels, totals, sensitivity):
    exact = law_of(mechanism, tuple(levels), len(totals), sensitivity)
    chances = {number: exact.of(total) for number, total in enumerate(totals)}
    return {**chances, None: max(0.0, 1 - sum(chances.values()))}


def kept(mechanism, data, name):
    """The exact law of which model is released, by totals that are added up here."""
    read = source(data, RULES[name])
    totals = [sum(adds(one, model, name) for one in data) for model in MODELS]
    least = min(score for _, score in read.scores())
    window = read.profile.window(read.profile.top() - least + 1)
    levels = [(window.top - depth, count) for depth, count in window.blocks()]
    return law(mechanism, levels, totals, read.profile.sensitivity)


def broken(mechanism, data, rule, models=MODELS):
    """The same by whatever totals a mutant has."""
    read = source(data, rule, models)
    totals = [total for _, total in read.scores()]
    levels = sorted(((total, totals.count(total)) for total in set(totals)), reverse=True)
    least = min(score for _, score in read.scores())
    window = read.profile.window(read.profile.top() - least + 1)
    levels = [(window.top - depth, count) for depth, count in window.blocks()]
    return law(mechanism, levels, totals, read.profile.sensitivity)


def worst(mechanism, rule, laws=kept, *, replace=False, cases=CASES):
    """The largest divergence at the claimed epsilon between neighbours, in both directions."""
    found = 0.0
    for data in cases:
        left = laws(mechanism, data, rule)
        for example in EXAMPLES:
            kept_back = (
                [data[:place] + data[place + 1 :] for place in range(len(data))]
                if replace
                else [data]
            )
            for others in kept_back:
                right = laws(mechanism, [*others, example], rule)
                found = max(
                    found,
                    divergence(left, right, mechanism.epsilon),
                    divergence(right, left, mechanism.epsilon),
                )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential], ids=lambda kind: kind.__name__)
def test_one_example_more_or_less_keeps_the_price(kind, name):
    assert worst(kind(epsilon=1), name) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_one_example_more_or_less_keeps_the_price_with_delta(name):
    assert worst(NestedMargin(epsilon=1, delta=DELTA), name) <= float(DELTA) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential], ids=lambda kind: kind.__name__)
def test_another_example_keeps_the_price_of_replacing(kind, name):
    cases = [data for data in CASES if len(data) < 3]
    assert worst(kind(epsilon=1, neighbors="replace"), name, replace=True, cases=cases) <= 1e-9


@pytest.mark.slow
def test_the_cases_reach_the_price():
    """Otherwise any price would be kept: nearly all of epsilon is used, and replacing needs twice
    as much.
    """
    for name in RULES:
        mechanism, ratios = Exponential(epsilon=1), []
        for data in CASES:
            left = kept(mechanism, data, name)
            for example in EXAMPLES:
                right = kept(mechanism, [*data, example], name)
                ratios += [
                    abs(math.log(left[number] / right[number])) for number in range(len(MODELS))
                ]
        assert 0.7 < max(ratios) <= 1 + 1e-9
    cases = [data for data in CASES if len(data) < 3]
    assert worst(PermuteAndFlip(epsilon=1), "accuracy", replace=True, cases=cases) > 0.05


class Unclipped(Clipped):
    """A mutant: numbers beyond the bounds count in full."""

    def total(self, y, predictions, who):
        return int(np.floor(self._score(y, predictions) / float(self.step)).sum())


class Signed(Clipped):
    """A mutant: numbers of both signs, as if what one adds to a total were all that matters.

    One example helps some models and hurts others, and the two drift apart by twice that.
    """

    def __init__(self, *options):
        super().__init__(*options)
        self.steps //= 2

    def total(self, y, predictions, who):
        return super().total(y, predictions, who) - len(y) * self.steps


class Percent(Accuracy):
    """A mutant: the mean, in hundredths, as if one example could move it by one of them."""

    def total(self, y, predictions, who):
        return 100 * super().total(y, predictions, who) // len(y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [Unclipped(worth, (0, 1), "0.4"), Signed(worth, (0, 1), "0.4"), Percent()],
    ids=lambda rule: type(rule).__name__,
)
def test_what_moves_further_than_it_says_breaks_the_price(rule):
    assert worst(PermuteAndFlip(epsilon=1), rule, broken) > 0.05


def test_a_score_that_looks_at_the_batch_breaks_the_price():
    """Each row is clipped, and yet one example moves what all the others add."""
    batch = Clipped(lambda y, said: np.full(len(y), float((y == said).all())), (0, 1), 1)
    assert worst(PermuteAndFlip(epsilon=1), batch, broken) > 0.1


@pytest.mark.slow
def test_a_model_made_of_the_examples_breaks_the_price():
    """It says of everybody what the last example is: one more example changes all of it."""

    def fitted(mechanism, data, rule):
        last = data[-1][1] if data else 0
        return broken(mechanism, data, rule, [*MODELS[:2], lambda x: np.full(len(x), last)])

    assert worst(PermuteAndFlip(epsilon=1), Accuracy(), fitted) > 0.1
    assert worst(PermuteAndFlip(epsilon=1), Accuracy(), broken) <= 1e-9


# Labels and predictions that NumPy would change for each other's sake.
VALUES = [
    2**63 + 1,
    2**63,
    -1,
    2**53 + 1,
    2.0**53,
    np.float64(2**53),
    0.1,
    np.float32(0.1),
    True,
    None,
    "a",
]
BESIDE = [
    pair
    for pair in product(VALUES, VALUES)
    if None in pair or len({type(one) is str for one in pair}) == 1
]


def together(*rows):
    """The total of one model on rows (label, prediction) that are given as lists; −1: they are
    refused.
    """
    try:
        found = score_models(
            list_entrants([[said] for _, said in rows], None, "predict"),
            [y for y, _ in rows],
            Accuracy(),
        )
    except DataError:
        return -1
    return next(total for _, total in found.scores())


def drift():
    """By how much another example changes, at most, what one adds to a total."""
    alone = [together(row) for row in BESIDE]
    assert set(alone) == {0, 1}
    return max(
        abs(together(one, other) - first - second)
        for one, first in zip(BESIDE, alone, strict=True)
        for other, second in zip(BESIDE, alone, strict=True)
    )


@pytest.mark.slow
def test_what_an_example_adds_does_not_depend_on_types_beside_it():
    assert drift() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        (
            "_fitting_kinds",
            lambda kind: "biuf" if issubclass(kind, (int, float, np.number)) else "",
        ),
        ("_objects", lambda values: np.fromiter(values, object, len(values))),
        ("_read_list", np.array),
    ],
    ids=[
        "floats for whole numbers",
        "numbers of NumPy among objects",
        "whatever NumPy makes of it",
    ],
)
def test_mutants_that_read_one_value_by_the_others(name, mutant, monkeypatch):
    monkeypatch.setattr(labels, name, mutant)
    assert drift() > 0


def test_models_that_are_right_for_somebody_are_no_universe():
    def observed(mechanism, data, rule):
        right = [model for model in MODELS if any(adds(one, model, "accuracy") for one in data)]
        if not right:
            return {None: 1.0}
        drawn = broken(mechanism, data, rule, right)
        return {MODELS.index(model): drawn[place] for place, model in enumerate(right)}

    assert worst(PermuteAndFlip(epsilon=1), Accuracy(), observed) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "clipped"])
def test_the_release_has_the_law(name):
    """On every script of coins: the law is between what is drawn and that with what is
    unfinished.
    """
    data = [(1, 0), (2, 1), (2, 1)]
    x, y = columns(data)
    options = {} if name == "accuracy" else {"score": worth, "bounds": (0, 1), "resolution": "0.4"}
    mechanism = PermuteAndFlip(epsilon=1)
    drawn, unfinished = walk(
        lambda coins: (
            by_name(select_model, MODELS, x, y, mechanism=mechanism, coins=coins, **options).item
        ),
        14,
    )
    assert unfinished < 0.1
    for number, chance in kept(mechanism, data, name).items():
        mass = float(drawn.get(number, 0))
        assert mass - 1e-9 <= chance <= mass + float(unfinished) + 1e-9
