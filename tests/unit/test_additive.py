"""PrivateGAM and PrivateTree: classifiers as scikit-learn knows them, on a public schema."""

from __future__ import annotations

import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from privmax import Privacy
from privmax.composition import largest_rho
from privmax.errors import ParameterError
from privmax.learning import Category, Number, PrivateGAM, PrivateTree, Schema
from privmax.learning.additive import steps
from privmax.learning.additive.fitting import CellLayout, fit_rounds
from privmax.learning.additive.groups import FEW, MANY
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.model import AdditiveModel, Part
from privmax.learning.additive.rounds import AdditiveRounds
from privmax.learning.additive.steps import carry_noise, chain, grid, newton_step
from privmax.learning.additive.words import name_cells, name_entries
from privmax.learning.tree import Leaf
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
CERTAIN = {"schema": SCHEMA, "epsilon": 2, "delta": 1e-6, "labels": [0, 1]}
"""The first column tells the label, and nothing else does."""


def gam(**options):
    return PrivateGAM(**{**CERTAIN, "coins": SeededCoins(1), **options})


def test_fit_learns_what_is_certain_at_its_price():
    model = gam().fit(FRAME, Y)
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.release_.item == model.model_
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "work", "noise"]
    chances = model.predict_proba(FRAME)
    assert chances.shape == (ROWS, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert ((chances[:, 1] > 0.5) == Y).all()
    assert ((model.decision_function(FRAME) > 0) == Y).all()


def test_without_a_delta_it_costs_epsilon_alone():
    model = gam(delta=0).fit(FRAME, Y)
    assert model.release_.privacy == Privacy(2, 0)
    assert len(model.model_.path) == 20
    assert repr(model.model_).startswith("<additive model: intercept ")
    assert model.score(FRAME, Y) == 1


def test_pairs_find_what_no_column_tells_by_itself():
    X = RNG.uniform(-1, 1, (ROWS, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    schema = Schema({name: Number(-1, 1, cells=16) for name in "abc"})
    plain = gam(schema=schema).fit(X, y)
    paired = gam(schema=schema, interactions=3).fit(X, y)
    assert plain.score(X, y) < 0.6
    assert paired.score(X, y) > 0.95
    assert "a × b" in paired.shape_functions_
    assert len(paired.shape_functions_["a × b"]) == 64
    assert paired.shape_functions_["a × b"][0]["cell"] == "a < -0.75 and b < -0.75"


TYPES = RNG.permutation(np.repeat([0, 1], 20))
"""Of two columns with 20 values each."""

CHANCES = np.array([[0.95, 0.1], [0.1, 0.5]])
"""Of the second label, by the types of both."""


def types_of(rows):
    values = RNG.integers(0, 20, (2, rows))
    y = RNG.random(rows) < CHANCES[TYPES[values[0]], TYPES[20 + values[1]]]
    frame = pd.DataFrame(dict(zip("ab", values.astype(str), strict=True)))
    return frame, y.astype(int)


def test_categories_that_are_alike_count_together_in_pairs():
    """Fixed groups of neighbors mix them."""
    schema = Schema({name: Category([str(one) for one in range(20)]) for name in "ab"})
    X, y = types_of(20_000)
    model = gam(schema=schema, interactions=3, rounds=4, epsilon=8).fit(X, y)
    (both,) = (part for part in model.model_.tables if len(part.features) == 2)
    for feature, groups in zip(both.features, both.groups, strict=True):
        assert set(groups) == set(range(MANY))
        types = TYPES[20 * feature : 20 * feature + 20].tolist()
        told = set(zip(groups[:20], types, strict=True))  # the last cell is of other values
        assert len(told) == len(set(groups[:20]))
    assert model.score(X, y) > 0.8
    cells = [one["cell"] for one in model.shape_functions_["a × b"]]
    assert any(" or a is " in one for one in cells)


def test_few_rows_have_pairs_of_few_groups():
    schema = Schema({name: Number(-1, 1, cells=16) for name in "abc"})
    X = RNG.uniform(-1, 1, (ROWS, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    sizes = {
        rows: {part.size for part in gam(schema=schema, interactions=1, epsilon=1)
               .fit(X[:rows], y[:rows]).model_.tables if len(part.features) == 2}
        for rows in (300, ROWS)
    }  # fmt: skip
    assert sizes == {300: {FEW**2}, ROWS: {MANY**2}}


def test_shape_functions_and_rules_tell_the_tables():
    model = gam(rounds=3).fit(FRAME, Y)
    shapes = model.shape_functions_["age"]
    assert [one["cell"] for one in shapes][:2] == ["age < 10", "10 <= age < 20"]
    assert all((one["log_odds"] > 0) == (place >= 5) for place, one in enumerate(shapes))
    assert len(pd.DataFrame(shapes)) == 10
    assert model.rules_[0].partition(": ")[2][0] in "+−"
    assert len(model.rules_) <= sum(len(table) for table in model.model_.tables.values())


def test_what_is_not_declared_is_not_told():
    strange = FRAME.assign(work="a-secret-employer")
    model = gam(rounds=6).fit(strange, Y)
    assert "secret" not in repr(model.shape_functions_)
    assert "secret" not in repr(model.release_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 1}, r"delta"),
        ({"rounds": 0}, r"rounds=0 is not allowed"),
        ({"interactions": -1}, r"interactions=-1 is not allowed"),
        ({"order": "random"}, r"it must be greedy or cyclic"),
    ],
)
def test_wrong_parameters_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        gam(**options).fit(FRAME, Y)


@pytest.mark.slow
def test_rows_are_counted_alike_compiled_or_not():
    pytest.importorskip("numba")
    codes, layout = SCHEMA.codes(FRAME), CellLayout.of(SCHEMA)
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=4, pairs=2)
    models = [
        fit_rounds(MemoryRows(codes, Y == 1, compiled), layout, terms, SeededCoins(2))
        for compiled in (False, True)
    ]
    assert models[0] == models[1]


def test_missing_values_have_no_neighbors():
    layout = CellLayout.of(SCHEMA)
    assert layout.apart == (None, None, 0)
    links = layout.links(layout.singles()[2])
    assert links.tolist() == [[cell, cell + 1] for cell in range(1, 8)]
    for most in (FEW, MANY):
        groups = layout.groups(most)[2]
        assert groups.count(groups[0]) == 1
        assert max(groups) == most - 1
    assert chain(1).shape == chain(0).shape == (0, 2)


def test_a_step_goes_where_the_sums_point():
    none = chain(0)
    sure = newton_step(np.array([50.0, -50.0, 0.0]), np.full(3, 1e3), 1.0, none)
    assert sure.round(3).tolist() == [0.04, -0.04, 0.0]
    noisy = newton_step(np.array([50.0, -50.0, 0.0]), np.full(3, 1e3), 1e9, none)
    assert np.abs(noisy).max() < 1e-3
    assert newton_step(np.array([5.0, 5.0, 5.0]), np.full(3, -9.0), 1.0, none).tolist() == [0, 0, 0]


def test_noise_is_carried_through_the_matrix_that_steps_are_solved_with():
    """A unit of noise on each residual moves the table as `newton_step` says."""
    links, spread = chain(6, isolated=2), 9.0
    curves = np.array([50.0, 3.0, 0.0, 400.0, -7.0, 20.0])
    moved = np.array([newton_step(unit, curves, spread, links) for unit in np.eye(6)])
    first = carry_noise(None, curves, spread, links, step=1)
    np.testing.assert_allclose(first, spread * moved.T @ moved, rtol=1e-9)
    kept = np.eye(6) - moved.T * np.maximum(curves, 0)
    second = carry_noise(first, curves, spread, links, step=1)
    np.testing.assert_allclose(second, kept @ first @ kept.T + first, rtol=1e-9)


def test_without_neighbors_the_noise_of_cells_is_apart():
    curves = np.array([50.0, 3.0, 0.0])
    alone = carry_noise(None, curves, 9.0, chain(0), step=1)
    moved = newton_step(np.ones(3), curves, 9.0, chain(0))
    np.testing.assert_allclose(alone, 9 * moved**2)
    again = carry_noise(alone, curves, 9.0, chain(0), step=1)
    np.testing.assert_allclose(again, (1 - moved * curves) ** 2 * alone + alone)


@pytest.mark.parametrize("links", [chain(0), chain(2)])
def test_noise_is_not_taken_out_of_cells_that_may_have_no_row(links):
    """Their curvatures are noise, so the sums of later rounds do not see what was added."""
    curves, told = np.array([15.0, 4_000.0]), []
    for blur in (0.0, 100.0):
        first = carry_noise(None, curves, 9.0, links, step=1, blur=blur)
        second = carry_noise(first, curves, 9.0, links, step=1, blur=blur)
        told.append([np.diag(one) if len(links) else one for one in (first, second)])
    (first, trusted), (same, doubted) = told
    assert same == pytest.approx(first)
    assert trusted[0] < 1.5 * first[0]
    assert doubted[0] == pytest.approx(2 * first[0], rel=0.01)
    assert doubted[1] == pytest.approx(trusted[1], rel=0.05)


def test_too_many_cells_side_by_side_have_no_noise_told():
    many = steps.DENSE + 1
    assert carry_noise(None, np.ones(many), 1.0, chain(many)) is None
    assert carry_noise(None, np.ones(many), 1.0, chain(0)).shape == (many,)
    schema = Schema(a=Number(0, 1, cells=many))
    learner = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], rounds=1, coins=SeededCoins(1))
    model = learner.fit(np.zeros((9, 1)), np.arange(9) % 2).model_
    assert (len(model.tables), model.noise, len(model.weights)) == (1, {}, 1)


def test_weights_are_the_curvatures_that_rounds_released():
    """A fourth of a row each, in units of 1/1024; and noise, which is small here."""
    model = gam(epsilon=1000, rounds=1, order="cyclic").fit(FRAME, Y).model_
    ((weights),) = model.weights.values()
    rows = np.bincount(SCHEMA.codes(FRAME)[0], minlength=10)
    np.testing.assert_allclose(weights, rows * 256, rtol=0.02)


def test_scores_are_sums_of_whole_numbers():
    part, both = Part((0,), ((0, 1),)), Part((0, 1), ((0, 1), (0, 0)))
    model = AdditiveModel(10, {part: (1, 2), both: (100, 200)}, ((0,), (0, 1)))
    codes = np.array([[0, 1], [0, 1]], np.uint8)
    assert model.scores(codes).tolist() == [111, 212]
    assert hash(model) == hash(AdditiveModel.from_json(model.to_json()))


# Trees.


def tree(**options):
    fixed = {"schema": SCHEMA, "epsilon": 4, "labels": [0, 1], "coins": SeededCoins(1)}
    return PrivateTree(**{**fixed, **options})


def test_the_release_of_a_tree_is_a_short_line():
    for depth in (1, 2):
        release = tree(epsilon=1, depth=depth).fit(FRAME, Y).release_
        assert str(release) == f"tree of depth {depth} (epsilon 1, delta 0)"
        assert f"tree of depth {depth}" in release._repr_html_()
        assert "Split(" not in release._repr_html_()


def test_a_tree_splits_where_the_label_changes():
    model = tree(depth=1).fit(FRAME, Y)
    assert model.rules_ == ["age < 50: 0", "not (age < 50): 1"]
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(4)


def test_a_tree_has_all_its_levels():
    model = tree(depth=3).fit(FRAME, Y)
    assert len(model.rules_) == 8
    assert model.score(FRAME, Y) > 0.9


def test_a_tree_refuses_what_it_cannot_do():
    with pytest.raises(ParameterError, match="at most 12"):
        tree(depth=13).fit(FRAME, Y)
    with pytest.raises(ParameterError, match="epsilon is required"):
        tree(epsilon=None).fit(FRAME, Y)


# What an attack found.


@pytest.mark.parametrize(
    ("learner", "uses"), [(gam(delta=0, rounds=20), "20 rounds"), (tree(), "4 draws")]
)
def test_an_epsilon_without_noise_is_refused_with_what_helps(learner, uses):
    with pytest.raises(ParameterError, match=f"too little for each of {uses}. Use a larger one"):
        learner.set_params(epsilon="1e-15").fit(FRAME, Y)
    with pytest.raises(ParameterError, match=r"it is too large for any noise. Use a smaller one"):
        learner.set_params(epsilon=1e200).fit(FRAME, Y)


def test_a_delta_of_1_is_named_as_a_number():
    with pytest.raises(ParameterError, match=r"delta=1.0 is not allowed: it must lie strictly"):
        gam(delta="1").fit(FRAME, Y)


@pytest.mark.slow
def test_as_many_cells_as_a_schema_may_have_are_fitted_without_a_dense_matrix():
    schema = Schema(x=Number(0, 1, cells=20_000))
    tracemalloc.start()
    model = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], rounds=1, coins=SeededCoins(1))
    model.fit(RNG.uniform(0, 1, (50, 1)), RNG.integers(0, 2, 50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26
    assert len(model.model_.tables) == 1


def test_a_large_table_gets_the_step_of_a_small_one(monkeypatch):
    sums, curves = RNG.normal(0, 50, 40), RNG.uniform(0, 90, 40)
    for links in (chain(40, isolated=0), grid(chain(8), chain(5), (8, 5)), chain(0)):
        small = newton_step(sums, curves, 30.0, links)
        with monkeypatch.context() as patch:
            patch.setattr(steps, "DENSE", 0)
            assert np.allclose(newton_step(sums, curves, 30.0, links), small, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"epsilon": "1e-15", "delta": 0}, {"epsilon": "1e-9", "delta": "1e-12"}], ids=str
)
def test_a_budget_too_small_for_any_noise_is_refused_before_data_is_read(options):
    def unread(rows):
        raise AssertionError("it was read")

    with pytest.raises(ParameterError, match=r"epsilon=1e-.*too little for each of 20 rounds"):
        gam(**options).fit(type("Frame", (), {"__array__": unread})(), Y)


def test_pairs_of_one_column_are_refused_where_they_would_waste_the_budget():
    with pytest.raises(ParameterError, match="interactions=2 is not allowed: the schema has one"):
        gam(schema=SCHEMA.only(["age"]), interactions=2).fit(FRAME, Y)


def test_the_cost_is_told_before_a_fit():
    price = gam().privacy_cost()
    assert price.privacy == Privacy(2, 1e-6)
    assert price.rho == largest_rho(Fraction(2), Fraction("1e-6"))
    assert gam(delta=0).privacy_cost().rho is None
    assert gam(neighbors="replace").privacy_cost().neighbors == "replace"
    tree_price = tree(neighbors="replace").privacy_cost()
    assert (tree_price.privacy, tree_price.neighbors) == (Privacy(4), "replace")
    with pytest.raises(ParameterError, match="epsilon is required"):
        gam(epsilon=None).privacy_cost()


def test_parts_with_the_same_title_keep_their_tables():
    schema = Schema({name: Number(-1, 1, cells=2) for name in ("a × b", "a", "b")})
    model = PrivateGAM(schema, 1, labels=[0, 1])
    tables = {
        Part((0,), ((0, 1),)): (256, -256),
        Part((1, 2), ((0, 1), (0, 1))): (1, 2, 3, 4),
        Part((1,), ((0, 1),)): (5, 6),
    }
    model.model_, model.schema_ = AdditiveModel(0, tables), schema
    assert [len(one) for one in model.shape_functions_.values()] == [2, 4, 2]


def test_names_that_look_like_tests_are_told_as_they_are():
    column = Number(0, 40, cells=4).with_name("low <= x < high")
    assert name_cells(column, [0, 1]) == "low <= x < high < 20"
    assert name_cells(column, [1, 2]) == "10 <= low <= x < high < 30"
    assert name_cells(column, [2, 3]) == "low <= x < high >= 20"


def test_many_rounds_give_certain_chances_without_a_warning():
    model = AdditiveModel(0, {Part((0,), ((0, 1),)): (-300_000, 300_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.chances(np.array([[0, 1]], np.uint8)).round(9).tolist() == [0, 1]


@pytest.mark.parametrize("counts", [(-5, -3), (-3, 0), (0, -3), (2, 3), (3, 2), (0, 0)])
def test_a_tree_says_in_words_what_it_predicts(counts):
    model = tree(depth=1).fit(FRAME, Y)
    model.tree_ = Leaf(counts)
    assert model.rules_ == [str(model.predict(FRAME[:1])[0])]


def test_words_of_groups_together_say_what_belongs_together():
    schema = Schema(a=Number(0, 40, cells=2, missing=True), b=Category(["7", "8"]))
    part = Part((0, 1), ((0, 0, 1), (0, 1, 0)))
    missing, listed = "(a < 20 or a is missing)", "(b = 7 or b is not listed)"
    assert name_entries(part, schema) == [
        f"{missing} and {listed}",
        f"{missing} and b = 8",
        f"a >= 20 and {listed}",
        "a >= 20 and b = 8",
    ]
    assert name_entries(Part((0,), ((0, 0, 1),)), schema)[0] == "a < 20 or a is missing"


@pytest.mark.slow
def test_less_noise_by_losses_at_the_same_cost():
    given = gam(accounting="pld", rounds=3)
    assert given.get_params()["accounting"] == "pld"
    assert gam().get_params()["accounting"] == "zcdp"
    model = clone(given).fit(FRAME, Y)
    assert model.accounting == "pld"
    assert model.score(FRAME, Y) == 1
    assert model.release_.privacy == Privacy(2, 1e-6)
    assert model.privacy_cost().privacy == Privacy(2, 1e-6)
    by_rho = clone(given).set_params(accounting="zcdp")
    assert model.privacy_cost().rho > by_rho.privacy_cost().rho == largest_rho(2, 1e-6)
    noise = model.release_.mechanism.singles.residuals
    assert noise.spread() < by_rho.fit(FRAME, Y).release_.mechanism.singles.residuals.spread()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accounting": "rdp"}, "accounting='rdp' is not allowed: it must be zcdp or pld"),
        ({"accounting": None}, "accounting=None is not allowed"),
        ({"accounting": "pld", "delta": 0}, "it needs a delta above 0"),
        ({"accounting": "pld", "neighbors": "replace"}, "neighbors='add-remove' only"),
    ],
)
def test_accounting_that_is_not_proved_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        gam(**options).fit(FRAME, Y)
    with pytest.raises(ParameterError, match=words):
        gam(**options).privacy_cost()


def test_an_order_that_is_no_word_is_named():
    with pytest.raises(ParameterError, match="it must be greedy or cyclic"):
        gam(order=np.array([1, 2])).fit(FRAME, Y)


@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"]], ids=str)
def test_log_odds_are_of_the_class_that_sorts_second_and_tables_of_the_label_declared_second(
    labels,
):
    model = gam(labels=labels).fit(FRAME, np.where(Y == 1, "yes", "no"))
    assert ((model.decision_function(FRAME) > 0) == (Y == 1)).all()
    oldest = model.shape_functions_["age"][-1]["log_odds"]
    assert (oldest > 0) == (labels[1] == "yes")
