"""Faults reported of other libraries, tried here. lab/audit-peers.md has what each was."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from privmax import law
from privmax.learning import Number, PrivateGAM, PrivateTree, Schema
from privmax.learning.additive.link import CLIP
from privmax.learning.additive.memory import MemoryRows
from privmax.mechanisms.exponential import Exponential
from privmax.testing import SeededCoins

pytestmark = pytest.mark.slow

OPTIONS = {"mechanism": "exponential", "epsilon": 1, "universe": list("vwxyz")}
COLUMNS = {"user": "u", "item": "g"}
ROWS = {"u": ["a"] * 5 + ["b"] * 5, "g": list("vwxyz") * 2}
SIXTY = np.arange(60) % 2


# opendp/opendp#2949: groups are merged after each user was limited to some, and counts trust that.


def redefined_pandas():
    frame = pd.DataFrame(ROWS)
    assert law(frame, **COLUMNS, **OPTIONS) == law(dict.fromkeys("vwxyz", 2), **OPTIONS)
    frame["g"] = "v"
    return frame


def redefined_polars():
    return pl.DataFrame(ROWS).unique(["u", "g"]).with_columns(g=pl.lit("v"))


def redefined_lazily():
    return pl.LazyFrame(ROWS).unique(["u", "g"]).with_columns(g=pl.lit("v"))


def redefined_view():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT unnest(['a', 'b']) u, unnest(['v', 'w']) g")
    connection.execute("CREATE VIEW visits AS SELECT DISTINCT u, g FROM rows")
    relation = connection.table("visits")
    connection.execute("CREATE OR REPLACE TABLE rows AS SELECT * FROM rows UNION ALL FROM rows")
    connection.execute("CREATE OR REPLACE VIEW visits AS SELECT u, 'v' AS g FROM rows")
    return relation


@pytest.mark.parametrize(
    "make", [redefined_pandas, redefined_polars, redefined_lazily, redefined_view]
)
def test_a_user_counts_once_for_what_a_column_holds_when_it_is_counted(make):
    data = make()
    assert law(data, **COLUMNS, **OPTIONS) == law({"v": 2}, **OPTIONS)


def test_a_range_that_was_declared_does_not_bind_what_is_fitted(monkeypatch):
    """Values far outside of it lie in the first or the last cell, and add no more than others."""
    sums = watch_sums(monkeypatch)
    X = np.linspace(0, 1, 60).reshape(-1, 1)
    gam = PrivateGAM(Schema(x=Number(0, 1, cells=4)), 1, 1e-6, labels=[0, 1], rounds=2)
    gam.fit((X - 0.5) * 10**9, SIXTY)
    assert len(sums) == 2
    assert all(most <= CLIP * 60 for most in sums)


# opendp/opendp#2922: a count at the threshold is released, and delta does not count that.


@pytest.mark.parametrize(
    "name", ["stable-maximum", "gap-test", "sharp-margin", "nested-margin", "large-margin",
             "large-margin-truncated", "set-margin", "ranked-margin"]
)  # fmt: skip
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 3], ids=str)
def test_what_one_individual_has_alone_is_released_with_chance_delta_at_most(name, epsilon):
    """At deltas that are tails of the noise, on both sides of each, where a threshold changes."""
    likely = math.exp(-epsilon)
    tails = [likely**n / (1 + likely) for n in range(1, 8)] + [likely**n / 2 for n in range(1, 8)]
    for tail in tails:
        for delta in (Fraction(tail * (1 - 1e-9)), Fraction(tail * (1 + 1e-9))):
            found = law({"only": 1}, mechanism=name, epsilon=epsilon, delta=delta)
            assert found.get("only", 0) <= float(delta) * (1 + 1e-12)


# interpretml/interpret#523: noise was for the range of targets, and one row adds as much as the
# largest target.


def watch_sums(patch):
    """The largest sum of residuals of each round."""
    found, sums = [], MemoryRows.sums

    def watched(self, part):
        residuals, curvatures = sums(self, part)
        found.append(np.abs(residuals).max())
        return residuals, curvatures

    patch.setattr(MemoryRows, "sums", watched)
    return found


@pytest.mark.parametrize("labels", [(0, 1), (9000, 10_000), (-(10**6), 10**6)])
def test_labels_far_from_zero_add_no_more_than_others(labels, monkeypatch):
    sums = watch_sums(monkeypatch)
    X, y = np.zeros((60, 1)), np.array(labels)[SIXTY]
    gam = PrivateGAM(Schema(x=Number(0, 1, cells=2)), 1, 1e-6, labels=list(labels), rounds=2)
    gam.set_params(coins=SeededCoins("far")).fit(X, y)
    assert len(sums) == 2
    assert all(0 < most <= CLIP * 60 for most in sums)


# interpretml/interpret#524: options that a private model inherits, and its proof does not know.


@pytest.mark.parametrize("model", [PrivateGAM, PrivateTree])
@pytest.mark.parametrize("option", ["objective", "monotone_constraints", "sample_weight"])
def test_there_are_no_options_that_the_proof_does_not_know(model, option):
    with pytest.raises(TypeError, match=option):
        model(epsilon=1, **{option: None})
    with pytest.raises(ValueError, match=f"Invalid parameter '{option}'"):
        model(epsilon=1).set_params(**{option: None})
    with pytest.raises(TypeError, match=option):
        model(epsilon=1).fit(np.zeros((9, 1)), SIXTY[:9], **{option: None})


# sarus-tech/dp-xgboost#3: the best split of each feature is found without noise, and one of these
# is drawn.


def test_every_split_of_every_feature_is_a_candidate_whatever_the_rows(monkeypatch):
    sizes, draw = [], Exponential.draw

    def watched(self, profile, coins):
        sizes.append(profile.universe)
        return draw(self, profile, coins)

    monkeypatch.setattr(Exponential, "draw", watched)
    schema = Schema(x=Number(0, 1, cells=4), y=Number(0, 1, cells=3))
    rng = np.random.default_rng(3)
    for X in (np.zeros((60, 2)), rng.random((60, 2)), rng.random((7, 2))):
        PrivateTree(schema, 1, labels=[0, 1], depth=1).fit(X, SIXTY[: len(X)])
    assert sizes[:: len(sizes) // 3] == [sizes[0]] * 3
    assert sizes[0] >= 3 + 2
