"""Additive models and trees that a ledger pays for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privmax import Ledger, Privacy
from privmax.errors import LedgerError
from privmax.learning import Category, Number, PrivateGAM, PrivateSearch, Schema
from privmax.learning.additive.estimator import AdditiveFit
from privmax.learning.additive.fitting import CellLayout
from privmax.learning.additive.rounds import AdditiveRounds, CalibratedRounds
from privmax.learning.tree import TreeFit, TreeSplits

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(1000, 2))
Y = (X[:, 1] >= 4).astype(int)
SCHEMA = Schema(a=Number(0, 10, cells=5), b=Number(0, 10, cells=5))
BUDGET = Privacy(3, "3e-6")


@pytest.fixture(params=["plain", "strict"])
def ledger(tmp_path, request):
    options = {"strict": True} if request.param == "strict" else {}
    place = tmp_path / "budget.db"
    with Ledger.create(place, "learning", budget=BUDGET, **options) as made:
        yield made


def gam(ledger, request=None, **options):
    given = {"schema": SCHEMA, "epsilon": 1, "delta": 1e-6, "labels": [0, 1], "rounds": 3}
    return PrivateGAM(**{**given, **options}, ledger=ledger.request(request))


def test_fits_add_up_in_rho_where_the_rule_does(tmp_path):
    place = tmp_path / "zcdp.db"
    with Ledger.create(place, "zcdp", budget=Privacy(3, "1e-6"), rule="zcdp") as made:
        for _ in range(3):
            gam(made).fit(X, Y)
        assert made.spent.epsilon < 2  # three at epsilon 1 each


def test_fits_by_losses_add_up_in_the_rho_of_their_noise(tmp_path):
    """It is more than that of a fit by ρ at the same epsilon, and so is their sum."""
    spent = {}
    for accounting in ("zcdp", "pld"):
        place = tmp_path / f"{accounting}.db"
        with Ledger.create(place, "zcdp", budget=Privacy(3, "1e-6"), rule="zcdp") as made:
            model = gam(made, accounting=accounting).fit(X, Y)
            (charge,) = [one.body for one in made.history() if "price" in one.body]
            assert Fraction(charge["price"]["rho"]) == model.release_.mechanism.rho
            assert model.release_.mechanism.program().rho() <= model.release_.mechanism.rho
            spent[accounting] = made.spent.epsilon
    assert 1 < spent["zcdp"] * Fraction(103, 100) < spent["pld"]


FORGED = [
    {},
    [],
    {"intercept": 0, "tables": 3, "path": []},
    {"intercept": "0", "tables": [], "path": []},
    {"intercept": 10**9, "tables": [], "path": []},
    {"intercept": 0, "tables": [], "path": [[0]]},
]
TABLE = {"features": [0], "groups": [[0, 1, 2, 3, 4]], "table": [1, 2, 3, 4, 5]}
WRONG = [
    {"features": [2]},
    {"features": [-1]},
    {"features": [0.0]},
    {"features": []},
    {"features": [0, 1]},
    {"groups": [[0, 1, 2, 3, 10**12]]},
    {"groups": [[0, 0, 0, 0, 0]], "table": [1]},
    {"table": [1, 2, 3, 4]},
    {"table": [1, 2, 3, 4, 10**30]},
    {"table": [1, 2, 3, 4, 0.5]},
    {"table": [1, 2, 3, 4, None]},
    {"table": "12345"},
    {"noise": [1, 2, 3, 4]},
    {"noise": [1, 2, 3, 4, -5]},
    {"noise": [1, 2, 3, 4, 0.5]},
    {"noise": [1, 2, 3, 4, 1 << 63]},
    {"weights": [1, 2, 3, 4, 5, 6]},
    {"weights": [1, 2, 3, 4, None]},
    {"weights": [1, 2, 3, 4, 10**400]},
]


def additive_fit():
    rounds = AdditiveRounds(epsilon=1, delta=1e-6, rounds=3, pairs=1)
    return AdditiveFit(rounds, CellLayout.of(SCHEMA))


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_record_that_is_no_model_is_refused(forged):
    with pytest.raises(LedgerError, match="not fit this schema"):
        additive_fit().read_model(forged)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_record_of_other_cells_is_refused(wrong):
    good = {"intercept": 0, "tables": [TABLE], "path": [[0]] * 3}
    assert additive_fit().read_model(good).intercept == 0
    more = {**TABLE, "noise": [1, 2, 3, 4, 0], "weights": [-1, 2, 3, 4, 5]}
    read = additive_fit().read_model({**good, "tables": [more]})
    assert (list(read.noise.values()), list(read.weights.values())) == (
        [(1, 2, 3, 4, 0)],
        [(-1, 2, 3, 4, 5)],
    )
    table = {**TABLE, **wrong}
    with pytest.raises(LedgerError, match="not fit this schema"):
        additive_fit().read_model({**good, "tables": [table], "path": [table["features"]] * 3})


KINDS = Schema(a=Number(0, 10, cells=9), b=Category([*"abcdefghijk"]), c=Category([*"abcde"]))
MERGED = [7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 3, 3]
SINGLE = {"features": [1], "groups": [[*range(12)]], "table": [0] * 12}


OTHER = {"features": [0], "groups": [[*range(9)]], "table": [0] * 9}


def record(groups, features=(0, 1), single=SINGLE):
    """As a version before noise and weights were kept wrote it, but for the groups."""
    size = int((max(groups[0]) + 1) * (max(groups[1]) + 1))
    double = {"features": [*features], "groups": groups, "table": [1] * size}
    tables = [single, double]
    return {"intercept": 0, "tables": tables, "path": [one["features"] for one in tables]}


def kinds_rounds(pairs):
    return AdditiveRounds(epsilon=1, delta=1e-6, rounds=1, pairs=pairs)


EIGHTHS = [0, 0, 1, 2, 3, 4, 5, 6, 7]
FOURTHS = [0, 0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "groups",
    [
        [EIGHTHS, [cell * 8 // 12 for cell in range(12)]],
        [FOURTHS, [cell * 4 // 12 for cell in range(12)]],
        [EIGHTHS, MERGED],
        [FOURTHS, [one // 2 for one in MERGED]],
    ],
    ids=["as before", "few", "merged", "few merged"],
)
def test_a_record_has_its_own_groups(groups):
    fit = AdditiveFit(kinds_rounds(1), CellLayout.of(KINDS))
    assert fit.read_model(record(groups)).to_json()["tables"][1]["groups"] == groups


@pytest.mark.parametrize(
    "forged",
    [
        record([[7 - one for one in EIGHTHS], MERGED]),
        record([EIGHTHS, [one // 2 for one in MERGED]]),
        record([EIGHTHS, [min(one, 6) for one in MERGED]]),
        record([EIGHTHS, [*MERGED, 1]]),
        record([EIGHTHS, [*MERGED[:-1], 3.0]]),
        record([EIGHTHS, MERGED], single=OTHER),
        record([MERGED, [0, 1, 2, 3, 4, 5]], (1, 2)) | {"path": [[1], [1, 0]]},
        record([MERGED, [5, 4, 3, 2, 1, 0]], (1, 2)),
        record([MERGED, EIGHTHS], (1, 0)),
    ],
    ids=["order", "mixed", "seven", "long", "floats", "unreleased", "path", "few cells", "turned"],
)
def test_a_record_of_groups_that_no_fit_makes_is_refused(forged):
    fit = AdditiveFit(kinds_rounds(1), CellLayout.of(KINDS))
    with pytest.raises(LedgerError, match="not fit this schema"):
        fit.read_model(forged)


def test_pairs_of_one_record_have_the_same_groups():
    fit = AdditiveFit(kinds_rounds(2), CellLayout.of(KINDS))
    first, second = record([EIGHTHS, MERGED]), record([MERGED, [*range(6)]], (1, 2))
    other = record([MERGED[::-1], [*range(6)]], (1, 2))
    for more, fits in ((second, True), (other, False)):
        tables = [*first["tables"], more["tables"][1]]
        both = {"intercept": 0, "tables": tables, "path": [one["features"] for one in tables]}
        if fits:
            assert len(fit.read_model(both).tables) == 3
        else:
            with pytest.raises(LedgerError, match="not fit this schema"):
                fit.read_model(both)


def test_a_recorded_model_keeps_the_groups_of_its_release(ledger):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 20, (4_000, 2))
    kinds = Schema({name: Category([str(one) for one in range(20)]) for name in "ab"})
    y = (values % 3).sum(axis=1) > 2
    options = {"schema": kinds, "interactions": 2, "order": "cyclic", "rounds": 2}
    first = gam(ledger, "r", **options).fit(values.astype(str), y)
    again = gam(ledger, "r", **options).fit(values[:9].astype(str), ~y[:9])
    part = next(part for part in first.model_.tables if len(part.features) == 2)
    assert all(list(groups) != sorted(groups) for groups in part.groups)
    assert again.model_ == first.model_
    assert again.predict(values.astype(str)).tolist() == first.predict(values.astype(str)).tolist()


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ([[1], [0, 1]], True),
        ([[1], [1], [0, 1]], False),
        ([[1], [0, 1], [0, 1]], False),
        ([[0, 1], [1]], False),
    ],
    ids=["all", "one more", "two pairs", "turned"],
)
def test_a_record_has_as_many_rounds_as_were_paid_for(path, fits):
    fit = AdditiveFit(kinds_rounds(1), CellLayout.of(KINDS))
    written = record([EIGHTHS, MERGED]) | {"path": path}
    if fits:
        assert fit.read_model(written).path == ((1,), (0, 1))
    else:
        with pytest.raises(LedgerError, match="not fit this schema"):
            fit.read_model(written)


@pytest.mark.parametrize(
    ("counts", "fits"),
    [
        ([[1, -2]] * 10, True),
        (None, False),
        ([[1, -2]] * 9, False),
        ([[1, -2, 3]] * 10, False),
        ([[1, 2.5]] * 10, False),
        ([[1, -(10**400)]] * 10, False),
    ],
)
def test_counts_by_chance_are_read_where_they_were_asked_for(counts, fits):
    rounds = CalibratedRounds(epsilon=1, delta=1e-6, rounds=3, pairs=1)
    fit = AdditiveFit(rounds, CellLayout.of(SCHEMA))
    written = {"intercept": 0, "tables": [TABLE], "path": [[0]] * 3}
    written |= {} if counts is None else {"counts": counts}
    if fits:
        assert fit.read_model(written).counts == ((1, -2),) * 10
        assert fit.read_model(fit.read_model(written).to_json()).counts == ((1, -2),) * 10
    else:
        with pytest.raises(LedgerError, match="not fit this schema"):
            fit.read_model(written)
    if counts is not None:
        with pytest.raises(LedgerError, match="not fit this schema"):
            additive_fit().read_model(written)


LEAF = {"counts": [1, 2]}


@pytest.mark.parametrize(
    "forged",
    [
        {},
        LEAF,
        {"feature": 0, "cells": [0], "branches": [LEAF]},
        {"feature": 9, "cells": [0], "branches": [LEAF, LEAF]},
        {"feature": 0, "cells": [1], "branches": [LEAF, LEAF]},
        {"feature": 0, "cells": [0], "branches": [LEAF, {"counts": [1]}]},
        {"feature": 0, "cells": [0], "branches": [LEAF, {"counts": [1, "2"]}]},
        {"feature": 0, "cells": [0], "branches": [LEAF, {"counts": [1, 10**400]}]},
    ],
    ids=str,
)
def test_a_record_that_is_no_tree_is_refused(forged):
    fit = TreeFit(TreeSplits(epsilon=1, depth=1), SCHEMA)
    assert fit.read_model({"feature": 0, "cells": [0], "branches": [LEAF, LEAF]}).feature == 0
    with pytest.raises(LedgerError, match="not fit this schema"):
        fit.read_model(forged)


@pytest.mark.slow
def test_a_search_over_additive_models_uses_their_rho_and_records_the_best(tmp_path):
    learner = PrivateGAM(SCHEMA, delta=1e-6, labels=[0, 1])
    options = {"params": {"rounds": [2, 4]}, "epsilon": 2, "delta": 1e-5, "runs": 2}
    with Ledger.create(tmp_path / "l.db", "s", budget=Privacy(3, "2e-5")) as made:
        request = made.request("search")
        first = PrivateSearch(learner, **options, ledger=request).fit(X, Y)
        again = PrivateSearch(learner, **options, ledger=request).fit(X[:5], Y[:5])
    assert first.release_.mechanism.rho is not None
    assert first.best_estimator_.model_ == again.best_estimator_.model_
    assert first.predict(X).tolist() == again.predict(X).tolist()
    assert list(first.best_estimator_.shape_functions_) == list(
        again.best_estimator_.shape_functions_
    )
