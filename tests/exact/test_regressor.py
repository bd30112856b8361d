"""Regressions keep their cost: sensitivities over all small neighbors, from raw targets on, the
whole of a fit of one round in concentrated privacy, and mutants that do not.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest

from privmax.learning import Number, Schema
from privmax.learning.additive.fitting import CellLayout, score_parts
from privmax.learning.additive.link import CLIP, CURVE, LIMIT, Link
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.rounds import choice_sensitivity, squared_sensitivity
from privmax.learning.regressor import fitting, targets
from privmax.learning.regressor.estimator import read_numbers
from privmax.learning.regressor.fitting import NARROWEST, fit_errors, release_errors
from privmax.learning.regressor.targets import BINS, PLACES, bin_errors, error_link, target_column
from privmax.learning.regressor.terms import STAGES, TALLY, RegressorRounds
from privmax.testing import SeededCoins

sys.path.append(str(Path(__file__).parent))

from round_losses import ORDERS, choice_loss, gaussian_loss, law_of_scores

pytestmark = pytest.mark.slow

SCHEMA = Schema(a=Number(0, 2, cells=2), b=Number(0, 2, cells=2))
LAYOUT = CellLayout.of(SCHEMA)
PARTS = LAYOUT.singles()
COLUMN = target_column(np.array([0.0, 10.0]))
EXAMPLES = list(product((0, 1), (0, 1), (-1e300, 0.01, 5, math.inf, None)))
"""Values of two columns, and a target: beyond both bounds, between them, and none."""

SPREADS = (4, 100, 512, LIMIT)
LINKS = [error_link(spread, reach) for spread in SPREADS for reach in (3, 0.625)]
MODELS = [(0, (0, 0), (0, 0)), (-900, (-LIMIT, 300), (700, LIMIT))]
"""An intercept and two tables."""


def rows_of(data, link, model=MODELS[0]):
    cells = np.array([one[:2] for one in data], float).reshape(len(data), 2)
    wanted = np.array([one[2] for one in data], object)
    if data:
        rows = MemoryRows(*read_numbers(SCHEMA, cells, wanted, COLUMN))
    else:
        rows = MemoryRows(np.zeros((2, 0), np.uint8), np.zeros(0, np.int16))
    intercept, *tables = model
    rows.use(link)
    rows.start(intercept)
    for part, table in zip(PARTS, tables, strict=True):
        rows.add(part, np.array(table))
    return rows


def neighbors_of(data, relation):
    for example in EXAMPLES:
        if relation == "add-remove":
            yield [*data, example]
        else:
            for place in range(len(data)):
                yield [*data[:place], example, *data[place + 1 :]]


def pairs(relation, largest=1):
    for size in range(largest + 1):
        for data in combinations_with_replacement(EXAMPLES, size):
            for other in neighbors_of(list(data), relation):
                yield list(data), other


def counted(data, link, model, spread=100):
    rows = rows_of(data, link, model)
    sums = [rows.sums(part) for part in PARTS]
    both = zip(rows.residuals(PARTS), sums, strict=True)
    assert all((one == other[0]).all() for one, other in both)
    return bin_errors(rows.tally(), spread), sums


def moves(link, relation):
    """The largest squared distance of tally, residuals and curvatures, and change of a score."""
    tallies = residuals = curves = scores = 0
    for model in MODELS:
        for data, other in pairs(relation):
            (errors, left), (others, right) = (
                counted(data, link, model),
                counted(other, link, model),
            )
            tallies = max(tallies, int(((errors - others) ** 2).sum()))
            for (a, ah), (b, bh) in zip(left, right, strict=True):
                scores = max(scores, abs(int(np.abs(a).sum() - np.abs(b).sum())))
                residuals = max(residuals, int(((a - b) ** 2).sum()))
                curves = max(curves, int(((ah - bh) ** 2).sum()))
    return tallies, residuals, curves, scores


def allowed(relation):
    return (
        squared_sensitivity(1, relation, signed=False),
        squared_sensitivity(CLIP, relation, signed=True),
        squared_sensitivity(CURVE, relation, signed=False),
        choice_sensitivity(relation),
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_neighbor_moves_further_than_the_sensitivities_say(relation):
    """And for every one some neighbors move exactly so far, over all links."""
    found = [moves(link, relation) for link in LINKS]
    bounds = allowed(relation)
    assert all(one <= bound for each in found for one, bound in zip(each, bounds, strict=True))
    best = [max(each) for each in zip(*found, strict=True)]
    assert best[:3] == list(bounds[:3])
    assert best[3] >= CLIP  # twice that takes one row more


def test_mutant_errors_without_a_clip():
    """As if a target could pull as hard as it is far away."""
    errors = (np.arange(PLACES) - PLACES // 2).astype(np.int16)
    assert moves(replace(LINKS[2], residuals=errors), "add-remove")[1] > CLIP**2


def test_mutant_targets_without_bounds(monkeypatch):
    """Targets that are not clipped have no place in the tables."""
    monkeypatch.setattr(
        "privmax.learning.regressor.estimator.place_targets", lambda cells: cells * 9
    )
    with pytest.raises(IndexError):
        moves(LINKS[0], "add-remove")


@pytest.mark.parametrize("missing", [None, "x", math.nan])
def test_a_row_without_a_target_moves_nothing(missing):
    tally, sums = counted([(0, 0, missing)], LINKS[0], MODELS[1])
    assert not tally.any()
    assert not any(one.any() for both in sums for one in both)


@pytest.mark.parametrize("reach", [0.625, 1.25, 2.2, 3])
@pytest.mark.parametrize("spread", [*range(1, LIMIT, 97), LIMIT])
def test_tables_of_a_link_stay_within_their_bounds(spread, reach):
    link = error_link(spread, reach)
    assert np.abs(link.residuals).max() <= CLIP
    assert spread * reach > PLACES / 2 or link.residuals.min() == -CLIP
    assert (link.curvatures.min() >= 0, link.curvatures.max()) == (True, CURVE)
    assert (np.diff(link.residuals.astype(int)) >= 0).all()
    assert (link.residuals == -np.roll(link.residuals[::-1], 1))[1:].all()
    assert len(link.residuals) == len(link.curvatures) == PLACES


def test_every_row_is_in_one_bin():
    for spread in SPREADS:
        single = np.eye(PLACES, dtype=np.int64)[:: PLACES // 64]
        assert all(bin_errors(one, spread).sum() == 1 for one in single)


def test_bins_of_the_smallest_spread_are_one_step_wide():
    tally = np.zeros(PLACES, np.int64)
    tally[PLACES // 2 - 1 :][:3] = 5, 7, 9
    middle = bin_errors(tally, NARROWEST)[BINS // 2 - 1 :][:3]
    assert middle.tolist() == [5, 7, 9]


# A whole fit of one round: tallies, choice and sums.


def round_loss(left, right, link, model, relation, order, variances, chooser):
    (tally, sums), (others, moved) = counted(left, link, model), counted(right, link, model)
    loss = STAGES * gaussian_loss(tally - others, variances[0], order)
    scored = (score_parts([one[0] for one in each], relation) for each in (sums, moved))
    sensitivity = choice_sensitivity(relation)
    laws = [law_of_scores(tuple(one.scores()), chooser, sensitivity) for one in scored]
    return loss + choice_loss(laws, (sums, moved), order, variances[1:])


def noise_of(terms):
    noise = terms.singles
    return [terms.counts.variance, noise.residuals.variance, noise.curvatures.variance]


def worst_excess(terms, relation, variances=None, links=LINKS[2:4]):
    found = -math.inf
    for link in links:
        for data, other in pairs(relation):
            for order in ORDERS:
                loss = round_loss(
                    data, other, link, MODELS[1], relation, order,
                    variances or noise_of(terms), terms.singles.chooser,
                )  # fmt: skip
                found = max(found, loss / order - float(terms.rho))
    return found / float(terms.rho)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_fit_of_one_round_costs_what_it_says(relation):
    terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=1, neighbors=relation)
    assert -0.35 < worst_excess(terms, relation) <= 1e-9


@pytest.mark.parametrize("unpaid", [0, 2], ids=["tallies", "curvatures"])
def test_mutant_counts_that_are_not_paid_for(unpaid):
    terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=1)
    variances = noise_of(terms)
    variances[unpaid] = 0
    assert worst_excess(terms, "add-remove", variances) == math.inf


def test_mutant_noise_for_half_the_sensitivity():
    for relation in ("add-remove", "replace"):
        terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=1, neighbors=relation)
        variances = noise_of(terms)
        variances[1] /= 4
        assert worst_excess(terms, relation, variances) > 0.5


def test_mutant_one_tally_is_paid_for_and_two_are_released():
    terms = RegressorRounds(epsilon=1, delta=1e-6, rounds=1)
    variances = noise_of(terms)
    variances[0] = variances[0] / 20  # as if all tallies had a part of what one has
    assert worst_excess(terms, "add-remove", variances) > 0.5


SHAPES = [
    {},
    {"intervals": True},
    {"rounds": 1},
    {"rounds": 7, "pairs": 3, "neighbors": "replace", "intervals": True, "loss": "absolute"},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_releases_fit_the_budget(shape):
    terms = RegressorRounds(epsilon=1, delta=Fraction(1, 10**6), **shape)
    twice = terms.neighbors == "replace"

    def one_round(noise):
        first = CLIP**2 * (4 if twice else 1) / (2 * noise.residuals.variance)
        second = CURVE**2 * (2 if twice else 1) / (2 * noise.curvatures.variance)
        return noise.chooser.epsilon**2 / 8 + first + second

    total = (STAGES + terms.intervals) * (2 if twice else 1) / (2 * terms.counts.variance)
    assert total == pytest.approx(float(terms.rho * TALLY * terms.tallies), rel=1e-3)
    total += terms.rounds * one_round(terms.singles)
    total += terms.pairs * one_round(terms.doubles) if terms.pairs else 0
    assert Fraction(99, 100) * terms.rho < total <= terms.rho
    if not twice:
        assert terms.program().rho() == total


def test_all_releases_fit_the_budget_without_a_delta():
    terms = RegressorRounds(epsilon="0.7", rounds=7, pairs=3, intervals=True)

    def one_round(noise):
        sums = CLIP / noise.residuals.scale + CURVE / noise.curvatures.scale
        return noise.chooser.epsilon + sums

    total = terms.tallies / terms.counts.scale
    total += terms.rounds * one_round(terms.singles) + terms.pairs * one_round(terms.doubles)
    assert total == Fraction("0.7")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_fit_releases_as_often_as_it_pays_for(shape, monkeypatch):
    """Tallies, rounds and pairs are counted while it runs."""
    terms = RegressorRounds(epsilon=1, delta=1e-6, **shape)
    rng, number = np.random.default_rng(3), 50
    codes = rng.integers(0, 2, (2, number)).astype(np.uint8)
    rows = MemoryRows(codes, rng.integers(2, 4094, number).astype(np.int16))
    calls = []
    monkeypatch.setattr(
        fitting, "release_errors", lambda *given: calls.append(0) or release_errors(*given)
    )
    model = fit_errors(rows, LAYOUT, terms, SeededCoins(1))
    assert len(calls) <= terms.tallies
    assert len(calls) == terms.tallies or terms.rounds < STAGES
    assert len(model.tables.path) == terms.rounds + terms.pairs


def test_a_tally_leaves_with_noise_on_every_bin():
    rows = rows_of([(0, 0, 5), (1, 1, 5)], LINKS[0])
    drawn = np.arange(BINS) - 7
    noise = type("Noise", (), {"draw": lambda self, size, coins: drawn[:size]})()
    terms = type("Terms", (), {"counts": noise})()
    released = release_errors(rows, 512, terms, None)
    assert (released - drawn).tolist() == bin_errors(rows.tally(), 512).tolist()
    assert (released - drawn).sum() == 2


def test_the_grid_of_targets_is_that_of_numbers():
    cells = COLUMN.codes([-1, 0, 9.999, 10, 11, None])
    places = targets.place_targets(cells.astype(np.int16)).tolist()
    assert places == [2, 2, 4094, 4094, 4094, -2]
    assert Link(-1, LINKS[0].residuals, LINKS[0].curvatures).places(
        np.array([-LIMIT, LIMIT]), np.array([4094, 2])
    ).tolist() == [2 * LIMIT + 4094, 2]
