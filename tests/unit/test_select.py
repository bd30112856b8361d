"""The front door: certain answers end to end, refusals, the public choice of mechanism, and
laws.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from by_name import by_name

import privmax
from privmax import (
    Exponential,
    JointExponential,
    LargeMargin,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    Profile,
    RankedMargin,
    SetMargin,
    SharpMargin,
)
from privmax.errors import DataError, ParameterError
from privmax.mechanisms import registry
from privmax.mechanisms.contract import Outcome
from privmax.testing import SeededCoins

CERTAIN = {"apple": 10**9, "pear": 12, "fig": 3}
"""A lead so huge that no other answer will ever be seen."""
UNNAMED = [12, 10**9, 3]
"""The same without labels, so that the universe may be larger than the list: the best is at
position 1.
"""
PRICE = {"epsilon": 1, "delta": "1e-6"}
MECHANISMS = [
    PermuteAndFlip(epsilon=1),
    Exponential(epsilon=1),
    SharpMargin(epsilon=1, delta="1e-6"),
    NestedMargin(epsilon=1, delta="1e-6"),
    LargeMargin(epsilon=1, delta="1e-6"),
]
by_class = {
    "ids": lambda value: type(value).__name__ if dataclasses.is_dataclass(value) else repr(value)
}


# Certain answers


CLOSED = [
    pytest.param(CERTAIN, 3, "apple", id="all are listed"),
    pytest.param(CERTAIN, ["pear", "apple", "fig", "plum"], "apple", id="labels"),
    pytest.param(UNNAMED, 3, 1, id="all positions"),
    pytest.param(UNNAMED, 10**6, 1, id="10^6 positions"),
    pytest.param(UNNAMED, 10**30, 1, id="10^30 positions"),
]


@pytest.mark.parametrize(
    ("data", "universe", "best"), [*CLOSED, (CERTAIN, "open", "apple"), (UNNAMED, "open", 1)]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_clear_winner_is_released(data, universe, best, neighbors):
    release = privmax.select(
        data, **PRICE, universe=universe, scores=privmax.Scores(neighbors=neighbors)
    )
    assert release.item == best
    assert release.items == (best,)


@pytest.mark.parametrize("mechanism", MECHANISMS, **by_class)
@pytest.mark.parametrize(("data", "universe", "best"), CLOSED[:4])
def test_a_clear_winner_is_released_by_every_mechanism(mechanism, data, universe, best):
    release = privmax.select(data, mechanism=mechanism, universe=universe)
    assert release.item == best
    assert release.mechanism is mechanism
    assert release.privacy == mechanism.privacy()
    assert "you chose it" in release.why


@pytest.mark.parametrize("mechanism", [SharpMargin(**PRICE), LargeMargin(**PRICE)], **by_class)
def test_a_clear_winner_is_released_from_an_open_universe(mechanism):
    assert privmax.select(CERTAIN, mechanism=mechanism).item == "apple"


def test_a_clear_winner_among_floats_is_released():
    scores = {"apple": 1e6, "pear": 0.5}
    release = privmax.select(
        scores, **PRICE, scores=privmax.Scores(sensitivity=1, resolution="0.1", neighbors="replace")
    )
    assert release.item == "apple"


def test_negative_scores_lose_to_candidates_nobody_listed():
    scores = {"apple": -(10**9), "pear": -(10**9)}
    assert privmax.select(scores, **PRICE).item is None
    assert privmax.select(list(scores.values()), **PRICE, universe=3).item == 2
    assert privmax.select(scores, **PRICE, universe=["apple", "pear", "fig"]).item == "fig"


def test_the_default_coins_are_not_repeatable():
    """Among 2^20 equal candidates two honest draws differ (but for one time in a million)."""
    scores = np.zeros(2**20, np.int64)
    draws = {privmax.select(scores, epsilon=1, universe=2**20).item for _ in range(3)}
    assert len(draws) > 1


def test_the_same_coins_give_the_same_release():
    scores = [5, 5, 4, 4, 3, 0]
    for seed in range(5):
        once, again = (
            privmax.select(scores, epsilon=1, universe=9, coins=SeededCoins(seed)) for _ in range(2)
        )
        assert once == again


# No answer


@pytest.mark.parametrize(
    "data", [{}, [], (), np.array([], int), pd.Series([], dtype=int), pl.Series([], dtype=pl.Int64)]
)
def test_no_data_in_an_open_universe_is_no_answer_at_the_same_price(data):
    release = privmax.select(data, **PRICE)
    assert release.item is None
    assert release.items == ()
    assert release.privacy == Privacy(1, "1e-6")
    assert isinstance(release.mechanism, NestedMargin)


def test_nobody_above_zero_in_an_open_universe_is_no_answer():
    assert privmax.select({"apple": 0, "pear": -5}, **PRICE).item is None


def test_a_universe_declared_by_labels_always_answers_with_a_label():
    labels = [f"candidate {place}" for place in range(50)]
    drawn = {
        privmax.select({labels[0]: 0}, epsilon=1, universe=labels, coins=SeededCoins(s)).item
        for s in range(40)
    }
    assert drawn <= set(labels)
    assert len(drawn) > 10  # most of them had no score of their own


# Who is not listed


@pytest.mark.parametrize(
    "zeros", [[0], (0,), np.array([0]), pl.Series([0]), pa.array([0])], ids=type
)
def test_a_universe_declared_by_size_answers_with_the_position_of_who_was_never_listed(zeros):
    drawn = {
        privmax.select(zeros, epsilon=1, universe=4, coins=SeededCoins(seed)).item
        for seed in range(60)
    }
    assert drawn == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, **by_class)
def test_every_position_beyond_the_list_is_drawn_with_the_probability_of_a_score_of_zero(mechanism):
    """As if the list went on with zeros; 2,000 draws, each position within five standard deviations
    of its law.
    """
    scores, size, draws = [1, 0, -2], 6, 2000
    exact = privmax.law([*scores, 0, 0, 0], mechanism=mechanism, universe=size)
    coins = SeededCoins(7)
    seen = Counter(
        privmax.select(scores, mechanism=mechanism, universe=size, coins=coins).item
        for _ in range(draws)
    )
    assert set(seen) <= set(exact)
    for item, chance in exact.items():
        assert (
            abs(seen[item] - draws * chance) <= 5 * math.sqrt(draws * chance * (1 - chance)) + 1e-3
        )
    shorter = privmax.law(scores, mechanism=mechanism, universe=size)
    assert shorter[None] == pytest.approx(exact[None] + exact[3] + exact[4] + exact[5], abs=1e-9)


@dataclasses.dataclass(frozen=True)
class Fixed:
    """A stand-in for a mechanism that always draws the same."""

    outcome: Outcome
    k = 1

    def draw(self, profile, coins):
        return self.outcome

    def privacy(self):
        return Privacy(1)


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[0], [5, 0, 0, -3], [5, 5], [-3, 4, 0, -9, -3]], ids=str)
@pytest.mark.parametrize("extra", [1, 2, 50])
def test_the_outcomes_name_every_position_exactly_once(scores, extra):
    """Level by level, and with everybody at or below a floor in one block, the unlisted among them
    or above it.
    """
    size = len(scores) + extra
    everyone = [*scores, *[0] * extra]
    for floor in (None, -2, 0, 1, 4):
        counts = Counter(everyone if floor is None else [max(score, floor) for score in everyone])
        outcomes = [
            Outcome(score, index, below=score == floor)
            for score, count in counts.items()
            for index in range(count)
        ]
        items = [privmax.select(scores, mechanism=Fixed(o), universe=size).item for o in outcomes]
        assert sorted(items) == list(range(size))
        for outcome, item in zip(outcomes, items, strict=True):
            assert everyone[item] == outcome.score or (
                outcome.below and everyone[item] <= outcome.score
            )


LABELLED = {
    "dict": lambda labels, scores: {"data": dict(zip(labels, scores, strict=True))},
    "pandas Series": lambda labels, scores: {"data": pd.Series(scores, index=labels)},
    "pandas": lambda labels, scores: {
        "data": pd.DataFrame({"w": labels, "n": scores}),
        "item": "w",
        "score": "n",
    },
    "polars": lambda labels, scores: {
        "data": pl.DataFrame({"w": labels, "n": scores}),
        "item": "w",
        "score": "n",
    },
    "Arrow": lambda labels, scores: {
        "data": pa.table({"w": labels, "n": scores}),
        "item": "w",
        "score": "n",
    },
}
labelled = pytest.mark.parametrize("container", LABELLED)


@labelled
@pytest.mark.parametrize("mechanism", MECHANISMS, **by_class)
def test_a_size_is_refused_where_labels_do_not_name_everybody(container, mechanism):
    options = LABELLED[container](["apple", "pear", "fig"], [5, 3, 0])
    assert by_name(privmax.select, **options, mechanism=mechanism, universe=3).item in {
        "apple",
        "pear",
        "fig",
        None,
    }
    for universe in (4, 5, 10**6, np.int64(4)):
        for ask in (privmax.select, privmax.law):
            with pytest.raises(
                ParameterError, match=rf"^universe={universe} .*fewer candidates are listed"
            ) as caught:
                ask(**options, mechanism=mechanism, universe=universe)
            assert caught.value.name == "universe"
    with pytest.raises(ParameterError, match=r"^universe=2 .*smaller than the number of labels"):
        by_name(privmax.select, **options, mechanism=mechanism, universe=2)


@labelled
def test_the_refusal_of_a_size_does_not_depend_on_labels_scores_or_how_many_are_listed(container):
    said = set()
    for labels, scores in (
        (["zorblax"], [7310427]),
        ([f"quuxley{n}" for n in range(37)], list(range(5551212, 5551249))),
    ):
        with pytest.raises(ParameterError) as caught:
            privmax.select(**LABELLED[container](labels, scores), **PRICE, universe=50)
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None
        said |= {str(error), repr(error)}
    assert len(said) == 2  # one text, one repr
    for text in said:
        assert re.findall(r"\d+", text) == [
            "50",
            "0",
        ]  # the size, and the score to list nobody's with
        for secret in ("zorblax", "quuxley", "7310427", "5551212"):
            assert secret not in text


def test_labels_of_everybody_take_the_place_of_a_size():
    """What the refusal advises: the labels, or zeros for all others, give one and the same law."""
    mechanism = PermuteAndFlip(epsilon=1)
    by_labels = privmax.law({"a": 1}, mechanism=mechanism, universe=["a", "b", "c", "d"])
    by_zeros = privmax.law({"a": 1, "b": 0, "c": 0, "d": 0}, mechanism=mechanism, universe=4)
    assert by_labels == by_zeros
    assert min(by_labels[label] for label in "abcd") > 0


def test_who_gets_listed_changes_no_chance_by_more_than_the_price():
    """The neighbours that a size alone told apart: b listed or not, b can be drawn, at a ratio of
    at most e.
    """
    mechanism, universe = PermuteAndFlip(epsilon=1), ["a", "b", "c", "d"]
    more, less = (
        privmax.law(data, mechanism=mechanism, universe=universe)
        for data in ({"a": 1, "b": 1}, {"a": 1})
    )
    for label in universe:
        assert abs(math.log(more[label] / less[label])) <= 1 + 1e-9


# The release


def test_a_release_says_what_ran_at_what_price_and_why():
    release = privmax.select(CERTAIN, **PRICE)
    assert release.privacy == Privacy(1, Decimal("1e-6"))
    assert release.mechanism == NestedMargin(**PRICE)
    assert "open" in release.why
    assert release.diagnostics == {}


def test_what_the_price_also_paid_for_is_released_beside_the_item():
    release = privmax.select(CERTAIN, mechanism=SharpMargin(**PRICE))
    assert set(release.diagnostics) == {"near_maximizers"}
    assert release.diagnostics["near_maximizers"] in release.mechanism.guards.ranks


def test_a_pure_mechanism_is_charged_no_delta():
    assert privmax.select(CERTAIN, **PRICE, universe=3).privacy == Privacy(1, 0)
    assert privmax.select(UNNAMED, **PRICE, universe=5).privacy == Privacy(1, 0)


def test_a_release_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        privmax.select(CERTAIN, **PRICE).items = ("pear",)


@pytest.mark.parametrize("universe", ["open", 3, ["zorblax", "quuxley", "winner", "fig"]], ids=str)
def test_the_repr_of_a_release_shows_nothing_that_was_not_released(universe):
    scores = {"zorblax": 7310427, "winner": 73104270000, "quuxley": 5551212}
    said = repr(privmax.select(scores, **PRICE, universe=universe))
    assert "winner" in said
    for secret in ("zorblax", "quuxley", "7310427", "5551212"):
        assert secret not in said


def test_the_maximum_is_estimated_in_the_units_of_the_scores():
    coins = [SeededCoins(seed) for seed in range(9)]
    options = {
        "mechanism": LargeMargin(epsilon=100, delta="1e-6"),
        "sensitivity": 1,
        "resolution": "1/64",
    }
    estimates = [
        by_name(privmax.select, [50.5, 0.0], **options, coins=c).diagnostics["max_estimate"]
        for c in coins
    ]
    assert all(abs(estimate - 50.5) < 2 for estimate in estimates)
    near = by_name(privmax.select, [50.5, 0.0], **options, coins=SeededCoins(0)).diagnostics[
        "near_maximizers"
    ]
    assert isinstance(near, int)


def test_the_estimate_of_an_integer_maximum_is_an_integer():
    estimate = privmax.select(
        [10**9, 0], mechanism=LargeMargin(epsilon=100, delta="1e-6")
    ).diagnostics["max_estimate"]
    assert isinstance(estimate, int)
    assert abs(estimate - 10**9) < 100


# Exact parameters


@pytest.mark.parametrize(
    "epsilon",
    [1, Fraction(1), Decimal("1.0"), "1", "1e0", 1.0, np.float64(1.0), np.int64(1)],
    ids=repr,
)
@pytest.mark.parametrize(
    "delta", [Fraction(1, 2**20), Decimal(1) / 2**20, "9.5367431640625e-7", 2.0**-20], ids=repr
)
def test_one_number_written_in_any_way_is_one_price(epsilon, delta):
    release = privmax.select(CERTAIN, epsilon=epsilon, delta=delta)
    assert release.item == "apple"
    assert release.privacy == Privacy(1, Fraction(1, 2**20))


def test_the_price_is_kept_exact():
    release = privmax.select(CERTAIN, epsilon=0.1, delta="1e-6")
    assert release.privacy.epsilon == Fraction("0.1") != Fraction(0.1)
    assert f"{release.privacy.epsilon} {release.privacy.delta}" == "0.1 1e-06"
    assert release.privacy.delta == Fraction(1, 10**6)


# Refusals

SCORES = {"zorblax": 7310427, "quuxley": 5551212}
REALS = {"zorblax": 7310427.5, "quuxley": 5551212.5}
OPEN = {"data": SCORES, **PRICE}
FLOATING = {"data": REALS, **PRICE, "resolution": "0.5", "neighbors": "replace"}
REFUSED = [
    # (options of a good call, the one that is changed, what it is changed to, what the error must
    # say)
    *((OPEN, "epsilon", value, "above 0") for value in (0, -1, "-0.5", 0.0, Fraction(-1, 3))),
    *(
        (OPEN, "epsilon", value, "finite number")
        for value in (math.nan, math.inf, "nan", "many", Decimal("Infinity"))
    ),
    *((OPEN, "epsilon", value, "finite number") for value in (True, [1], 1j)),
    (OPEN, "epsilon", None, "required"),
    *((OPEN, "delta", value, "between 0 and 1") for value in (-1, 1.5, 2, "-1e-9")),
    *((OPEN, "delta", value, "finite number") for value in (math.nan, math.inf, "few", True, [0])),
    (OPEN, "delta", 1, "below 1"),
    (OPEN, "delta", 1.0, "below 1"),
    (OPEN, "delta", "1", "below 1"),
    (OPEN, "delta", 0, "open universe needs a delta above 0"),
    *((OPEN, "neighbors", value, "add-remove or replace") for value in ("swap", "", 1, "Replace")),
    *((OPEN, "k", value, "whole number of at least 1") for value in (0, -1, 1.0, "1", True, None)),
    ({**OPEN, "universe": 2}, "k", 3, "size of the universe"),
    ({**OPEN, "data": [7310427, 5551212], "universe": 5}, "k", 6, "size of the universe"),
    *((OPEN, "growth", value, "whole number of at least 1") for value in (0, -3, 1.5, "few")),
    ({"data": SCORES, "mechanism": SharpMargin(**PRICE)}, "growth", 2, "mechanism already sets it"),
    ({"data": SCORES, "mechanism": SharpMargin(**PRICE)}, "k", 3, "mechanism already sets it"),
    (OPEN, "universe", "closed", "open, a size, or a collection"),
    (OPEN, "universe", 0, "at least 1"),
    (OPEN, "universe", 1, "smaller than the number of labels"),
    *((OPEN, "universe", value, "fewer candidates are listed") for value in (3, 10**6)),
    (OPEN, "universe", 2.5, "size"),
    *((OPEN, "sensitivity", value, "above 0") for value in (0, -1)),
    *((OPEN, "sensitivity", value, "finite number") for value in (math.nan, "wide", True)),
    (OPEN, "item", "who", "column"),
    (OPEN, "score", "count", "column"),
    (FLOATING, "neighbors", None, "scores on a grid .* need it"),
    (
        {**OPEN, "sensitivity": "0.5", "neighbors": "replace"},
        "neighbors",
        None,
        "scores on a grid .* need it",
    ),
    *((FLOATING, "sensitivity", value, "above 0") for value in (0, -1.5)),
    *((FLOATING, "resolution", value, "above 0") for value in (0, -0.1)),
    *((FLOATING, "resolution", value, "finite number") for value in (math.inf, "fine", False)),
    ({"data": SCORES}, "mechanism", "SharpMargin", "it must be one of exponential"),
    ({"data": SCORES}, "mechanism", SharpMargin, "mechanism"),
    (
        {"data": SCORES, "mechanism": SharpMargin(**PRICE)},
        "epsilon",
        1,
        "mechanism already sets it",
    ),
    (
        {"data": SCORES, "mechanism": SharpMargin(**PRICE)},
        "delta",
        "1e-6",
        "mechanism already sets it",
    ),
    (
        {"data": SCORES, "mechanism": SharpMargin(**PRICE)},
        "neighbors",
        "replace",
        "mechanism already sets it",
    ),
]
refused = pytest.mark.parametrize(
    ("good", "name", "value", "says"),
    REFUSED,
    ids=[f"{name}={getattr(value, '__name__', repr(value))}" for _, name, value, _ in REFUSED],
)


def refusal(good, name, value):
    with pytest.raises(ParameterError) as caught:
        by_name(privmax.select, **{**good, name: value})
    return caught.value


@refused
def test_a_bad_parameter_is_named_with_its_value_and_what_is_allowed_and_no_data_is(
    good, name, value, says
):
    error = refusal(good, name, value)
    assert error.name == name
    refusals = [f"{name}={value!r} is not allowed: ", *([f"{name} is required"] * (value is None))]
    assert str(error).startswith(tuple(refusals))
    assert re.search(says, str(error))
    for secret in ("zorblax", "quuxley", "7310427", "5551212"):
        assert secret not in str(error)


@refused
def test_a_bad_parameter_is_refused_with_a_remedy(good, name, value, says):
    """After what is allowed comes a sentence of its own that says what to do."""
    said = str(refusal(good, name, value)).removeprefix(f"{name}={value!r} is not allowed: ")
    allowed, _, remedy = said.partition(". ")
    assert allowed
    assert remedy.endswith((".", "?"))
    assert remedy[0].isupper()


def test_the_calls_that_the_refusals_change_are_good():
    assert privmax.select(**OPEN).items
    assert by_name(privmax.select, **FLOATING).items


def test_a_missing_price_is_refused():
    with pytest.raises(ParameterError, match=r"^epsilon is required"):
        privmax.select(SCORES)


def test_a_missing_delta_is_refused_in_an_open_universe_only():
    assert privmax.select(CERTAIN, epsilon=1, universe=3).item == "apple"
    assert privmax.select(UNNAMED, epsilon=1, universe=9).item == 1
    with pytest.raises(ParameterError, match=r"^delta=.*open universe needs a delta above 0"):
        privmax.select(CERTAIN, epsilon=1)


@pytest.mark.parametrize(
    "mechanism", [PermuteAndFlip(epsilon=1), Exponential(epsilon=1)], **by_class
)
def test_a_pure_mechanism_is_refused_in_an_open_universe_with_the_reason(mechanism):
    with pytest.raises(
        ParameterError, match=r"^universe='open' .*delta = 0 must be able to draw every candidate"
    ):
        privmax.select(SCORES, mechanism=mechanism)


FLOAT_DATA = {
    "dict": REALS,
    "dict of floats and integers": {"zorblax": 7310427.5, "quuxley": 1},
    "list": [7310427.5],
    "tuple": (7310427.5,),
    "object array": np.array([7310427.5], object),
    "NumPy": np.array([7310427.5]),
    "NumPy single": np.array([7310427.5], np.float32),
    "pandas": pd.Series([7310427.5]),
    "pandas nullable": pd.Series([7310427.5], dtype="Float64"),
    "polars": pl.Series([7310427.5]),
    "Arrow": pa.array([7310427.5]),
}


@pytest.mark.parametrize("container", FLOAT_DATA)
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_floats_in_any_container_need_a_grid(container, closed):
    data = FLOAT_DATA[container]
    size = len(data) if isinstance(data, (dict, pd.Series)) else 9
    options = {"universe": size if closed else "open", **PRICE}
    with pytest.raises(DataError, match="set resolution") as caught:
        by_name(privmax.select, data, **options)
    assert "7310427" not in str(caught.value)
    assert by_name(
        privmax.select,
        data,
        **options,
        scores=privmax.Scores(resolution="0.5", neighbors="replace"),
    ).items


@pytest.mark.parametrize("container", ["dict", "NumPy"])
def test_floats_in_a_declared_universe_need_a_grid(container):
    options = {"universe": ["zorblax", "quuxley", 0, 1], **PRICE}
    with pytest.raises(DataError, match="set resolution"):
        by_name(privmax.select, FLOAT_DATA[container], **options)
    assert by_name(
        privmax.select,
        FLOAT_DATA[container],
        **options,
        scores=privmax.Scores(resolution="0.5", neighbors="replace"),
    ).items


# Extremes


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"epsilon": "1e-100", "delta": "1e-6"}, id="tiny epsilon, open"),
        pytest.param({"epsilon": "1e-400", "delta": "1e-6"}, id="epsilon below every float, open"),
        pytest.param({"epsilon": "1e-100", "universe": 9}, id="tiny epsilon, closed"),
        pytest.param(
            {"epsilon": "1e-20", "delta": "1e-6", "universe": 10**9}, id="tiny epsilon, compared"
        ),
        pytest.param({"epsilon": "1e9", "delta": "1e-6"}, id="huge epsilon, open"),
        pytest.param({"epsilon": "1e9", "universe": 9}, id="huge epsilon, closed"),
        pytest.param({"epsilon": 1, "delta": "1e-1000"}, id="delta below every float"),
        pytest.param({"epsilon": 1, "delta": "0.999999"}, id="delta near one"),
        pytest.param(
            {"epsilon": 1, "delta": "1e-6", "universe": 2**2000}, id="universe beyond every float"
        ),
        pytest.param(
            {"epsilon": 1, "universe": 2**2000}, id="universe beyond every float, delta 0"
        ),
        pytest.param(
            {"epsilon": 1, "delta": "1e-6", "sensitivity": 10**400},
            id="sensitivity beyond every float",
        ),
    ],
)
def test_extreme_parameters_take_the_normal_path_or_are_refused_by_name(options):
    size = options.get("universe")
    if size is None:
        assert by_name(privmax.select, CERTAIN, **options).item in {*CERTAIN, None}
    elif size > 2**1000:
        with pytest.raises(ParameterError, match=r"^universe='over 2\^1000'"):
            by_name(privmax.select, UNNAMED, **options)
    else:
        release = by_name(privmax.select, UNNAMED, **options)
        assert release.item is None or release.item in range(size)
        assert release.item is not None or isinstance(release.mechanism, NestedMargin)


@pytest.mark.parametrize(
    "base", [2**53, 2**64, 10**100, -(2**64)], ids=["2^53", "2^64", "10^100", "-2^64"]
)
def test_scores_of_any_size_are_selected_by_their_exact_differences(base):
    scores = {"pear": base, "apple": base + 200, "fig": base + 1}
    assert privmax.select(scores, epsilon=1, universe=3).item == "apple"


# The public choice of mechanism


@pytest.mark.parametrize(
    ("delta", "universe", "kind", "reason"),
    [
        pytest.param(0, 10, PermuteAndFlip, "delta is 0", id="pure"),
        pytest.param(0, 10**15, PermuteAndFlip, "delta is 0", id="pure and huge"),
        pytest.param("1e-6", 10, PermuteAndFlip, "small", id="small"),
        pytest.param("1e-6", 10**6, PermuteAndFlip, "small", id="1/delta exactly"),
        pytest.param("1e-6", 10**7, PermuteAndFlip, "lead", id="beyond 1/delta, compared"),
        pytest.param("1e-6", 10**15, NestedMargin, "lead", id="huge"),
        pytest.param("1e-6", "open", NestedMargin, "open", id="open"),
        pytest.param("0.5", "open", NestedMargin, "open", id="open, large delta"),
    ],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_auto_chooses_by_public_facts_and_says_why(delta, universe, kind, reason, neighbors):
    mechanism, why = privmax.auto(epsilon=1, delta=delta, universe=universe, neighbors=neighbors)
    assert type(mechanism) is kind
    assert mechanism.neighbors == neighbors
    assert mechanism.epsilon == 1
    assert reason in why
    for scores in ({}, {"zorblax": 7310427}, {"zorblax": -7310427, "quuxley": 0}):
        declared = universe
        if scores or declared == "open":
            options = {"epsilon": 1, "delta": delta, "neighbors": neighbors, "universe": declared}
            data = (
                scores if declared == "open" else list(scores.values())
            )  # a size names positions, not labels
            release = by_name(privmax.select, data, **options)
            assert (release.mechanism, release.why) == (mechanism, why)


@pytest.mark.parametrize("k", [1, 3])
def test_a_growth_bound_reaches_the_mechanism(k):
    release = privmax.select(CERTAIN, **PRICE, k=k, ranked=True, scores=privmax.Scores(growth=2))
    assert release.mechanism.growth == 2
    assert release.item == "apple"
    assert privmax.auto(**PRICE, universe=10**30, growth=2, k=k, ranked=True)[0].growth == 2


def test_auto_takes_the_mechanism_that_needs_the_smaller_lead():
    for universe in (10**7, 10**9, 10**11, 10**15):
        mechanism, why = privmax.auto(epsilon=1, delta="1e-6", universe=universe)
        leads = {
            type(m): m.lead(candidates=universe)
            for m in (NestedMargin(**PRICE), PermuteAndFlip(epsilon=1))
        }
        assert leads[type(mechanism)] == min(leads.values())
        assert all(str(lead) in why for lead in leads.values())


# The best k

RANKED = {name: 10**9 - 10**7 * place for place, name in enumerate("abcdefgh")}


@pytest.mark.parametrize(
    ("data", "universe", "best"),
    [
        pytest.param(RANKED, "open", "abcde", id="open"),
        pytest.param(RANKED, 8, "abcde", id="all are listed"),
        pytest.param(RANKED, list("hgfedcbaz"), "abcde", id="labels"),
        pytest.param([*RANKED.values()][::-1], 10**6, range(7, 2, -1), id="10^6 positions"),
        pytest.param([*RANKED.values()][::-1], 10**30, range(7, 2, -1), id="10^30 positions"),
    ],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_clear_best_are_released(data, universe, best, neighbors):
    """In order where that is asked for, otherwise by name."""
    asked = {**PRICE, "universe": universe, "neighbors": neighbors, "k": 5}
    release = by_name(privmax.select, data, **asked, ranked=True)
    assert release.items == tuple(best)
    assert release.item == best[0]
    assert release.privacy.epsilon == 1
    assert (release.ranked, release.requested, len(release.notes)) == (True, 5, 1)
    release = by_name(privmax.select, data, **asked)
    assert release.items == tuple(sorted(best))
    assert release.privacy.epsilon == 1
    assert (release.ranked, release.requested) == (False, 5)
    assert release.notes == ("Sorted by name; their order is not released.",)


@pytest.mark.parametrize("ranked", [True, False])
def test_fewer_are_released_where_fewer_stand_out(ranked):
    release = privmax.select({**CERTAIN, "kiwi": 10**8}, **PRICE, k=4, ranked=ranked)
    assert release.items == ("apple", "kiwi")
    assert release.privacy == Privacy(1, "1e-6")
    assert (release.relative is not None) is ranked
    assert release.requested == 4
    assert release.notes[-1] == "2 of 4 released: nothing else stood out."
    assert len(release.notes) == 2
    assert release.notes[0].startswith("Best first" if ranked else "Sorted by name")


def test_one_item_of_a_set_has_no_order_to_speak_of():
    release = privmax.select(CERTAIN, **PRICE, k=3)
    assert (release.items, release.ranked) == (("apple",), False)
    assert release.notes == ("1 of 3 released: nothing else stood out.",)


def test_a_single_item_needs_no_notes():
    for data in (CERTAIN, {}):
        release = privmax.select(data, **PRICE, ranked=True)
        assert (release.notes, release.ranked, release.requested) == ((), False, 1)


def test_a_set_is_sorted_by_name_whatever_the_labels_are():
    labels = ["b", 10, "a", 9, 2.5, ("a", 1), ("a", "x"), True]
    places = iter(range(len(labels)))
    scores = {label: 10**9 - 10**7 * next(places) for label in labels}
    for turned in (scores, {label: 2 * 10**9 - score for label, score in scores.items()}):
        release = privmax.select({**turned, "far": 1}, **PRICE, k=len(labels))
        assert release.items == (True, 2.5, 9, 10, "a", "b", ("a", 1), ("a", "x"))


def test_no_data_is_an_empty_list():
    release = privmax.select({}, **PRICE, k=3)
    assert release.items == ()
    assert release.item is None


RANKERS = [
    Exponential(epsilon=1, k=3),
    JointExponential(epsilon=1, k=3),
    SharpMargin(epsilon=1, delta="0.1", k=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", RANKERS, **by_class)
@pytest.mark.parametrize("scores", [[0, 0], [2, -1], [2, -(10**6)], [-(10**6)]], ids=str)
def test_who_was_never_listed_is_in_the_list_by_position_and_nobody_is_in_it_twice(
    mechanism, scores
):
    lists = [
        privmax.select(scores, mechanism=mechanism, universe=5, coins=SeededCoins(s)).items
        for s in range(60)
    ]
    for items in lists:
        assert len(items) == len(set(items)) == 3
    drawn = {item for items in lists for item in items}
    assert set(range(len(scores), 5)) <= drawn <= set(range(5))


@pytest.mark.parametrize("kind", [Exponential, JointExponential])
@pytest.mark.parametrize("scores", [[0, 0], [2, -1], [2, -(10**6)], [0]], ids=str)
def test_a_list_of_everybody_names_every_position_once(kind, scores):
    mechanism = kind(epsilon=1, k=4)
    for seed in range(10):
        items = privmax.select(
            scores, mechanism=mechanism, universe=4, coins=SeededCoins(seed)
        ).items
        assert sorted(items) == [0, 1, 2, 3]


def test_a_size_that_labels_do_not_fill_is_refused_for_lists_too():
    with pytest.raises(ParameterError, match=r"^universe=4 .*fewer candidates are listed"):
        privmax.select({"apple": 0, "pear": 0}, epsilon=1, universe=4, k=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "universe", "k", "kind"),
    [
        (0, 10, 9, JointExponential),
        (0, 10**6, 9, Exponential),
        ("1e-6", 20, 2, Exponential),
        ("1e-6", 10**6, 9, RankedMargin),
        ("1e-6", 10**30, 9, RankedMargin),
        ("1e-6", "open", 9, RankedMargin),
    ],
)
def test_auto_chooses_for_lists_too(delta, universe, k, kind):
    """And says what lead the order needs, and what lead a set."""
    asked = {"epsilon": 1, "delta": delta, "universe": universe, "k": k}
    mechanism, why = privmax.auto(**asked, ranked=True)
    assert type(mechanism) is kind
    candidates = None if universe == "open" else universe
    lead = mechanism.lead(candidates=candidates, near=k)
    if kind is RankedMargin and universe != "open":  # or the difference that is told apart
        lead = max(lead, mechanism.apart())
    assert str(lead) in why
    words, least = re.search(r"(a set needs|a set) (\d+)", why).groups()
    assert words == ("a set" if universe == "open" else "a set needs")
    assert int(least) <= lead
    if universe == "open":
        near = f"items less than {mechanism.apart()} records apart may be in the wrong order"
        assert why.endswith(near)
    if universe == "open":  # elsewhere a set is chosen by what it misses
        assert int(least) == privmax.auto(**asked).mechanism.lead(candidates=None, near=k)
    assert mechanism.k == k


@pytest.mark.parametrize(
    ("delta", "universe", "k", "kind", "charged"),
    [
        (0, 10, 9, SetMargin, 0),
        ("1e-6", 10, 9, SetMargin, 0),
        (0, 10**6, 9, Exponential, 0),
        ("1e-6", 10**6, 9, SetMargin, Fraction(1, 10**6)),
        ("1e-6", 10**30, 9, SetMargin, Fraction(1, 10**6)),
        ("1e-6", "open", 9, SetMargin, Fraction(1, 10**6)),
    ],
)
def test_auto_chooses_for_sets(delta, universe, k, kind, charged):
    mechanism, why = privmax.auto(epsilon=1, delta=delta, universe=universe, k=k)
    assert type(mechanism) is kind
    assert mechanism.privacy().delta == charged
    assert mechanism.k == k
    assert "open" in why or "what is missed on typical scores" in why


def test_a_delta_that_buys_nothing_is_not_charged():
    assert privmax.select(RANKED, **PRICE, universe=8, k=2).privacy == Privacy(1)
    assert privmax.select([*RANKED.values()], **PRICE, universe=100, k=2).privacy == Privacy(1)
    assert Exponential(**PRICE, k=50).privacy() == Privacy(1, "1e-6")


@pytest.mark.parametrize("universe", [None, "closed", 0, -1, 2.5, True])
def test_auto_refuses_a_universe_that_is_none(universe):
    with pytest.raises(ParameterError, match=r"^universe="):
        privmax.auto(epsilon=1, delta="1e-6", universe=universe)


def test_the_reason_gives_one_over_delta_as_a_readable_number():
    _, why = privmax.auto(epsilon=1, delta=1e-6, universe=10)
    assert "/4722366482869645" not in why


# Laws


@pytest.mark.parametrize("mechanism", MECHANISMS, **by_class)
@pytest.mark.parametrize(
    ("labels", "universe"),
    [
        pytest.param(["apple", "pear", "fig"], 3, id="all are listed"),
        pytest.param(["apple", "pear", "fig"], ["apple", "pear", "fig", "plum"], id="labels"),
        pytest.param(None, 3, id="all positions"),
        pytest.param(None, 4, id="4 positions"),
        pytest.param(None, 1000, id="1000 positions"),
    ],
)
def test_a_law_covers_every_listed_item_and_no_answer(mechanism, labels, universe):
    scores = [30, 28, -3]
    data = scores if labels is None else dict(zip(labels, scores, strict=True))
    chances = privmax.law(data, mechanism=mechanism, universe=universe)
    first, second, third = range(3) if labels is None else labels
    assert set(chances) == {
        *(universe if isinstance(universe, list) else (first, second, third)),
        None,
    }
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    assert all(0 <= chance <= 1 for chance in chances.values())
    assert chances[first] > chances[second] > chances[third] >= 0


@pytest.mark.parametrize("mechanism", [SharpMargin(**PRICE), LargeMargin(**PRICE)], **by_class)
def test_the_law_of_an_open_universe(mechanism):
    chances = privmax.law({"apple": 2000, "pear": 1990, "fig": 0, "plum": -7}, mechanism=mechanism)
    assert set(chances) == {"apple", "pear", "fig", "plum", None}
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    assert chances["apple"] > chances["pear"] > 0
    assert (
        chances["fig"] == chances["plum"] == 0
    )  # they cannot be told from candidates nobody has seen


def test_the_law_of_nothing_is_no_answer():
    assert privmax.law({}, mechanism=SharpMargin(**PRICE)) == {None: 1.0}


def test_the_law_of_the_exponential_mechanism_is_a_softmax():
    chances = privmax.law([2, 0, 1], mechanism=Exponential(epsilon="0.5"), universe=3)
    weights = [math.exp(score / 2) for score in (2, 0, 1)]
    for place, weight in enumerate(weights):
        assert chances[place] == pytest.approx(weight / sum(weights), abs=1e-9)
    assert chances[None] == pytest.approx(0, abs=1e-9)


def test_a_law_counts_positions_beyond_the_list_as_no_answer():
    chances = privmax.law([0], mechanism=PermuteAndFlip(epsilon=1), universe=4)
    assert chances == pytest.approx({0: 0.25, None: 0.75}, abs=1e-9)
    with pytest.raises(ParameterError, match=r"^universe=4 .*fewer candidates are listed"):
        privmax.law({"apple": 0}, mechanism=PermuteAndFlip(epsilon=1), universe=4)


def test_candidates_below_the_window_share_its_floor():
    chances = privmax.law([0, -1000, -2000], mechanism=Exponential(epsilon=1), universe=3)
    assert chances[1] == chances[2] > 0


def test_a_certain_winner_has_a_certain_law():
    assert privmax.law(CERTAIN, mechanism=SharpMargin(**PRICE))["apple"] == pytest.approx(1)


def test_the_law_of_floats_is_that_of_their_grid():
    mechanism = Exponential(epsilon=1, neighbors="replace")
    options = {"mechanism": mechanism, "universe": 2}
    floats = by_name(
        privmax.law,
        [0.96, 0.49],
        **options,
        scores=privmax.Scores(sensitivity="0.5", resolution="0.25"),
    )
    assert floats == by_name(
        privmax.law, [3, 1], **options, scores=privmax.Scores(sensitivity=3)
    )  # 2, and 1 for rounding


def test_the_law_of_a_table_names_its_items():
    data = pd.DataFrame({"who": ["apple", "pear"], "count": [5, 5]})
    chances = privmax.law(
        data, item="who", score="count", mechanism=PermuteAndFlip(epsilon=1), universe=2
    )
    assert chances == pytest.approx({"apple": 0.5, "pear": 0.5, None: 0}, abs=1e-9)


def test_the_law_of_a_profile_is_by_score():
    law = privmax.law(Profile([(3, 2)], universe=2), mechanism=PermuteAndFlip(epsilon=1))
    assert law.best() == pytest.approx(1)
    assert law.of(3) == pytest.approx(0.5)
    assert law.of(2) == 0


@pytest.mark.parametrize(
    "mechanism", [PermuteAndFlip(epsilon=1), Exponential(epsilon=1)], **by_class
)
def test_the_law_of_a_pure_mechanism_is_refused_in_an_open_universe(mechanism):
    with pytest.raises(ParameterError, match=r"^universe='open'"):
        privmax.law({"apple": 5}, mechanism=mechanism)


def test_a_universe_beyond_two_to_the_thousand_is_refused():
    with pytest.raises(ParameterError, match="over 2\\^1000"):
        privmax.law(UNNAMED, mechanism=PermuteAndFlip(epsilon=1), universe=2**1000 + 1)


def test_a_law_of_the_largest_universe_adds_up():
    chances = privmax.law(UNNAMED, mechanism=PermuteAndFlip(epsilon=1), universe=2**1000)
    assert sum(chances.values()) == pytest.approx(1)
    assert chances[1] == pytest.approx(1)


def test_selections_in_many_threads_do_not_disturb_each_other():
    """The precision of ball arithmetic is shared by threads; a ball is right at any precision."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: privmax.select(CERTAIN, epsilon=1, delta="1e-6").item, range(200))
        )
    assert set(answers) == {"apple"}


@pytest.mark.parametrize("item", [7, 1.5, b"item", ["item", 7], {"item": 1, 2: 3}])
def test_what_names_no_column_is_refused(item):
    with pytest.raises(ParameterError, match="it must name a column, or several"):
        privmax.select({"a": 9}, item=item, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("mechanism", registry.MECHANISMS)
def test_a_cost_beyond_reason_is_refused(mechanism):
    """Its weights would be beyond every float."""
    entry = registry.MECHANISMS[mechanism]
    given = {**entry.requires, **({} if entry.needs_closed else {"delta": "1e-6"})}
    registry.build(mechanism, epsilon=10**9, **given)
    for epsilon in (10**9 + 1, "1e999", 10**5000):
        with pytest.raises(ParameterError, match=r"epsilon=.* it must not exceed 1000000000"):
            registry.build(mechanism, epsilon=epsilon, **given)
