"""PrivateClassifier: a classifier as scikit-learn knows it, and how it decides."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

from privmax import Privacy
from privmax.errors import ParameterError
from privmax.learning import Category, Number, PrivateClassifier, Schema
from privmax.learning.classifier import choice, fitting
from privmax.learning.classifier.choice import (
    ADDITIVE,
    CONSTANT,
    MEMBERS,
    MOST_TESTS,
    PAIRS,
    RULES,
    TEST,
    TREE,
    Facts,
    decide,
)
from privmax.learning.classifier.model import NOTHING, ClassifierModel
from privmax.learning.reading import plan_reading
from privmax.testing import SeededCoins

RNG = np.random.default_rng(20)
ROWS = 6_000
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0, 100, ROWS),
        "work": RNG.choice(["state", "private", "?"], ROWS),
        "noise": RNG.normal(size=ROWS),
    }
)
Y = (FRAME["age"] >= 50).astype(int).to_numpy()
SCHEMA = Schema(
    age=Number(0, 100, cells=10),
    work=Category(["state", "private"], missing="?"),
    noise=Number(-3, 3, cells=8, missing=True),
)


def learner(**options):
    given = {"epsilon": 2, "delta": 1e-6, "labels": [0, 1], "coins": SeededCoins(1)}
    return PrivateClassifier(SCHEMA, **{**given, **options})


@pytest.fixture
def forced(monkeypatch):
    """Make the table name one model."""

    def force(member):
        monkeypatch.setattr(fitting, "decide", lambda *given, **options: member)

    return force


@pytest.mark.parametrize("member", MEMBERS[1:])
def test_every_model_learns_what_is_certain_at_its_price(forced, member):
    forced(member)
    model = learner().fit(FRAME, Y)
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.release_.item == model.model_
    assert model.model_.member == member
    assert abs(model.model_.rows - ROWS) < 400  # 16 scales of its noise
    assert model.choice_.startswith(f"{member}: about ")
    assert model.choice_.endswith(" for 3 columns with 21 tests")
    assert any("age" in line for line in model.rules_)
    chances = model.predict_proba(FRAME)
    assert np.allclose(chances.sum(axis=1), 1)
    assert ((chances[:, 1] > 0.5) == Y).all()
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]


def test_a_constant_has_the_share_of_its_label(forced):
    forced(CONSTANT)
    y = (np.arange(ROWS) % 10 == 0).astype(int)
    model = learner().fit(FRAME, y)
    assert model.rules_ == ["y = 0 for every row"]
    assert model.predict(FRAME[:3]).tolist() == [0, 0, 0]
    assert model.predict_proba(FRAME[:1])[0, 1] == pytest.approx(0.1, abs=0.01)


def test_chances_never_contradict_the_rule(forced):
    """Counts have noise of their own, which at such an epsilon says anything."""
    for member in (TEST, TREE):
        forced(member)
        for seed in range(20):
            model = learner(epsilon="0.01", coins=SeededCoins(seed)).fit(FRAME[:50], Y[:50])
            cells = SCHEMA.codes(FRAME)
            said = model.model_.model.hypothesis.predict(cells.T)
            assert (model.predict(FRAME) == said).all()


def test_a_public_number_of_rows_is_not_counted(monkeypatch):
    def counted(*given):
        raise AssertionError("it was counted")

    monkeypatch.setattr(fitting, "count_rows", counted)
    model = learner(n=6_000).fit(FRAME, Y)
    assert model.model_.rows is None
    assert ": 6,000 rows × epsilon 2 is 12,000" in model.choice_
    assert model.release_.why == "fits the model that the public number of rows chooses"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delta": 2}, "delta=2 is not allowed"),
        ({"n": 0}, "n=0 is not allowed"),
        ({"n": "many"}, "n='many' is not allowed"),
        ({"n": 10.5}, "n=10.5 is not allowed"),
        ({"n": 1 << 62}, "n=4611686018427387904 is not allowed: it must be below"),
        ({"epsilon": "1e-15"}, "epsilon=1e-15 is not allowed: it leaves too little for"),
        ({"epsilon": "1e-12", "delta": 0}, "epsilon=1e-12 is not allowed"),
        ({"epsilon": 1e30}, "epsilon=1e[+]30 is not allowed: it is too large"),
        ({"epsilon": 2 * 10**9}, "epsilon=2000000000.0 is not allowed: it is too large"),
    ],
    ids=str,
)
def test_mistakes_are_named_before_rows_are_read(options, match):
    given = learner().get_params() | options
    unread = type("Frame", (), {"__array__": lambda *rest: pytest.fail("it was read")})()
    with pytest.raises(ParameterError, match=match):
        PrivateClassifier(**given).fit(unread, Y)


def test_nothing_private_is_in_a_repr():
    rows = fitting.Tables(
        plan_reading(FRAME, Y, SCHEMA, np.array([0, 1]))(None), SCHEMA, doubles=False
    )
    assert repr(rows) == "Tables(<private>)"


# The table


def test_models_that_do_not_fit_the_columns_are_never_named():
    cases = (
        Facts(1, 1), Facts(1, 5), Facts(2, 2), Facts(3, MOST_TESTS + 1),
        Facts(500, 500), Facts(500, 15_500),
    )  # fmt: skip
    for facts in cases:
        for pure in (True, False):
            for power in range(24):
                assert decide(facts, 2**power, Fraction(1), pure=pure) in facts.members()


def test_more_rows_never_make_a_model_simpler():
    for facts in (Facts(1, 31), Facts(4, 100), Facts(14, 290), Facts(64, 1984), Facts(514, 15_700)):
        for pure, counted in product((True, False), repeat=2):
            said = [
                decide(facts, n, Fraction(1), pure=pure, counted=counted)
                for n in (0, *(2**e for e in range(19)))
            ]
            places = [MEMBERS.index(one) for one in said]
            assert all(before <= after for before, after in pairwise(places))
            assert said[0] == (TEST if counted else CONSTANT)
            assert said[-1] == (PAIRS if PAIRS in facts.members() else ADDITIVE)


def test_without_a_delta_additive_models_need_more_rows():
    for facts in (Facts(4, 100), Facts(14, 290), Facts(64, 1984)):
        for power in range(30):
            with_delta, pure = (
                decide(facts, 2**power, Fraction(1), pure=one) for one in (False, True)
            )
            assert MEMBERS.index(pure) <= MEMBERS.index(with_delta)


@pytest.mark.parametrize(("pure", "least"), [(False, 2_500), (True, 6_000)])
def test_pairs_are_fitted_from_where_they_were_as_good_as_trees(pure, least):
    """As stored in lab/benchmarks/results/classifier.json, part `many`."""
    facts = Facts(columns=16, tests=496)
    below, at = (
        decide(facts, 10 * rows, Fraction(1, 10), pure=pure) for rows in (least - 1, least)
    )
    assert (below, at) == (TREE, PAIRS)


@pytest.mark.parametrize(("pure", "least"), [(False, 1_000), (True, 3_000)])
def test_without_trees_additive_models_follow_one_test_sooner(pure, least):
    facts = Facts(columns=101, tests=101)
    assert TREE not in facts.members()
    below, at = (
        decide(facts, 10 * rows, Fraction(1, 10), pure=pure) for rows in (least - 1, least)
    )
    assert (below, at) == (TEST, PAIRS)


def test_every_model_is_one_of_the_list():
    assert set(RULES) < set(MEMBERS)
    assert choice.MEMBERS == (CONSTANT, TEST, TREE, ADDITIVE, PAIRS)
    assert repr(ClassifierModel(ADDITIVE, 12, NOTHING.model)) == "<additive model: about 12 rows>"


def test_one_column_of_two_cells_has_every_model_but_pairs():
    """There is no smaller schema."""
    schema = Schema(only=Category(["a"]))
    model = PrivateClassifier(schema, epsilon=1, labels=[0, 1], coins=SeededCoins(3))
    for rows, said in ((1, CONSTANT), (8, TEST), (900, TREE), (30_000, ADDITIVE)):
        X = pd.DataFrame({"only": ["a", "b", "b"] * rows})[:rows]
        assert model.set_params(n=rows).fit(X, X["only"] == "a").model_.member == said
        if said in (TREE, ADDITIVE):
            assert model.predict(X[:3]).tolist() == [1, 0, 0]


def test_so_many_columns_that_counting_all_pairs_takes_minutes_have_no_tree():
    """Each pair is a table of its own, and in an engine a grouping set, however few its rows."""
    for columns, has in ((100, True), (101, False), (2_000, False)):
        facts = Facts(columns, tests=columns)
        assert (TREE in facts.members()) == has
        assert (decide(facts, 500, Fraction(1), pure=False) == TREE) == has


def test_so_many_rows_that_pairs_take_minutes_have_none():
    facts = Facts(columns=50, tests=1_550)
    assert decide(facts, 10**5, Fraction(1), pure=False) == PAIRS
    assert decide(facts, 10**7, Fraction(1), pure=False) == ADDITIVE
    assert decide(facts, 10**5, Fraction(1, 500), pure=False) == TREE
    assert decide(facts, 10**7, Fraction(1, 10**5), pure=False) == TEST
