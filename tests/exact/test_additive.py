"""Additive models keep their cost: sensitivities over all small neighbors, exact laws of choices,
the whole of a one-round fit in concentrated privacy, and mutants that do not.
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

from privmax.accounting import Program
from privmax.auditing import divergence
from privmax.composition import epsilon_of_rho, largest_rho
from privmax.errors import ParameterError
from privmax.learning.additive import link, memory
from privmax.learning.additive.fitting import (
    CellLayout,
    TableFit,
    choose_part,
    fit_rounds,
    score_parts,
)
from privmax.learning.additive.groups import merge_cells
from privmax.learning.additive.link import BINS, CLIP, CURVE, LIMIT, bin_labels
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.rounds import (
    AdditiveRounds,
    CalibratedRounds,
    SumNoise,
    choice_sensitivity,
    squared_sensitivity,
)
from privmax.mechanisms.exponential import Exponential
from privmax.testing import SeededCoins, walk

sys.path.append(str(Path(__file__).parent))

from round_losses import ORDERS, choice_loss, gaussian_loss, law_of_scores

pytestmark = pytest.mark.slow

LAYOUT = CellLayout((2, 2), (False, False), (None, None))
PARTS = LAYOUT.singles()
EXAMPLES = list(product((0, 1), (0, 1), (False, True)))
"""Cells of two features, and a label."""

CASES = [list(data) for size in range(4) for data in combinations_with_replacement(EXAMPLES, size)]

MODELS = [
    (0, (0, 0), (0, 0)),
    (0, (-LIMIT, LIMIT), (0, 0)),
    (40, (100, -300), (-LIMIT, LIMIT)),
    (-900, (-2000, 1500), (700, -700)),
]
"""An intercept and two tables: undecided, certain, and between."""


def rows_of(data, model):
    intercept, *tables = model
    codes = np.array([[one[feature] for one in data] for feature in (0, 1)], np.uint8)
    rows = MemoryRows(codes.reshape(2, len(data)), np.array([one[2] for one in data], bool))
    rows.start(intercept)
    for part, table in zip(PARTS, tables, strict=True):
        rows.add(part, np.array(table))
    return rows


def counted(data, model):
    """Label counts, sums of residuals and of curvatures of both parts."""
    rows = rows_of(data, model)
    sums = [rows.sums(part) for part in PARTS]
    assert all(
        (one == both[0]).all() for one, both in zip(rows.residuals(PARTS), sums, strict=True)
    )
    return rows.labels(), sums


def neighbors_of(data, relation):
    """What one individual can make of data: one more, or another in the place of each."""
    for example in EXAMPLES:
        if relation == "add-remove":
            yield [*data, example]
        else:
            for place in range(len(data)):
                yield [*data[:place], example, *data[place + 1 :]]


def pairs(relation, largest=2):
    for data in CASES:
        if len(data) <= largest:
            for other in neighbors_of(data, relation):
                yield data, other


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_neighbor_moves_further_than_the_sensitivities_say(relation):
    """And some move exactly so far: none of them could be smaller."""
    scores, residuals, curves, counts = 0, 0, 0, 0
    for model in MODELS:
        for data, other in pairs(relation):
            (left_counts, left), (right_counts, right) = counted(data, model), counted(other, model)
            counts = max(counts, int(np.square(np.subtract(left_counts, right_counts)).sum()))
            for (a, ah), (b, bh) in zip(left, right, strict=True):
                scores = max(scores, abs(int(np.abs(a).sum() - np.abs(b).sum())))
                residuals = max(residuals, int(((a - b) ** 2).sum()))
                curves = max(curves, int(((ah - bh) ** 2).sum()))
    assert scores == choice_sensitivity(relation)
    assert residuals == squared_sensitivity(CLIP, relation, signed=True)
    assert curves == squared_sensitivity(CURVE, relation, signed=False)
    assert counts == squared_sensitivity(1, relation, signed=False)


# Labels by the chance that a model gives.


def by_chance(data, model):
    return bin_labels(rows_of(data, model).tally())


def farthest(count, relation):
    """How far neighbors move counts at most, squared, over all models."""
    return max(
        int(((count(data, model) - count(other, model)) ** 2).sum())
        for model in MODELS
        for data, other in pairs(relation)
    )


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_counts_by_chance_move_as_those_of_labels(relation):
    assert farthest(by_chance, relation) == squared_sensitivity(1, relation, signed=False)
    for model in MODELS:
        for data, _ in pairs(relation):
            assert by_chance(data, model).sum(axis=0).tolist() == list(counted(data, model)[0])


@pytest.mark.slow
def test_mutant_counts_that_also_have_all_chances_below():
    def below(data, model):
        return np.cumsum(by_chance(data, model), axis=0)

    assert farthest(below, "add-remove") > squared_sensitivity(1, "add-remove", signed=False)


def test_counts_by_chance_are_the_last_release_and_have_the_noise_of_counts(monkeypatch):
    drawn = []
    rows = rows_of(CASES[-1], MODELS[0])

    def draw(self, size, coins):
        drawn.append((self, size))
        return np.zeros(size, np.int64)

    monkeypatch.setattr(SumNoise, "draw", draw)
    terms = CalibratedRounds(epsilon=1, delta="1e-6", rounds=1, order="cyclic")
    model = fit_rounds(rows, LAYOUT, terms, SeededCoins(1))
    assert (drawn[0], drawn[-1]) == ((terms.counts, 2), (terms.counts, 2 * BINS))
    assert len(drawn) == 4
    assert model.counts == tuple(map(tuple, bin_labels(rows.tally()).tolist()))


@pytest.mark.parametrize("merged", [None, 1, 2, 3], ids="merged by {}".format)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_pairs_move_no_further_than_single_features(relation, merged):
    """Cells put into groups, with missing ones apart: a row is in one entry of each table.

    Whatever cells are merged.
    """
    layout = CellLayout((10, 11), (True, False), (0, None))
    groups = layout.groups(8)
    if merged:
        groups[1] = tuple(np.random.default_rng(merged).permutation(np.arange(11) % 8).tolist())
    (both,) = layout.doubles([0, 1], groups)
    rng = np.random.default_rng(3)
    assert both.shape == (8, 8)
    scores, residuals, curves = 0, 0, 0
    for _ in range(400):
        codes = np.vstack([rng.integers(0, 10, 5), rng.integers(0, 11, 5)]).astype(np.uint8)
        labels = rng.random(5) < 0.5
        other_codes, other_labels = codes.copy(), labels.copy()
        other_codes[:, 4] = codes[:, 4] if rng.random() < 0.5 else [rng.integers(10), 3]
        other_labels[4] = not labels[4]
        last = 5 if relation == "replace" else 4
        intercept, table = int(rng.integers(-900, 900)), rng.integers(-LIMIT, LIMIT, both.size)
        found = []
        for cells, truth in ((codes, labels), (other_codes[:, :last], other_labels[:last])):
            rows = MemoryRows(cells, truth)
            rows.start(intercept)
            rows.add(both, table)
            found.append(rows.sums(both))
        (a, ah), (b, bh) = found
        scores = max(scores, abs(int(np.abs(a).sum() - np.abs(b).sum())))
        residuals = max(residuals, int(((a - b) ** 2).sum()))
        curves = max(curves, int(((ah - bh) ** 2).sum()))
    assert 0 < scores <= choice_sensitivity(relation)
    assert CLIP**2 // 2 < residuals <= squared_sensitivity(CLIP, relation, signed=True)
    assert 0 < curves <= squared_sensitivity(CURVE, relation, signed=False)


class PeekingFit(TableFit):
    """A mutant: groups follow from the true sums of residuals."""

    def groups(self):
        groups = super().groups()
        for part in self.layout.singles():
            sums, weights = self.rows.sums(part)
            groups[part.features[0]] = merge_cells(sums.tolist(), weights.tolist(), 4)
        return groups


WIDE = CellLayout((6, 6), (False, False), (None, None))


def pair_sums(fit, data):
    """Of the rows' residuals in the cells of the pair, after what two rounds released."""
    codes = np.array([[one[0] for one in data], [one[1] for one in data]], np.uint8)
    rows = MemoryRows(codes, np.array([one[2] for one in data], bool))
    rows.start(0)
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=2, pairs=1)
    fitting = fit(rows, WIDE, terms, None, path=[(0,), (1,)])
    for part, table in zip(WIDE.singles(), [(9, -4, 9, 1, 0, -4), (3, 3, 3, 2, 2, 2)], strict=True):
        fitting.tables[part] = fitting.weights[part] = np.array(table)
    (both,) = WIDE.doubles([0, 1], fitting.groups())
    return both, rows.sums(both)[0]


def worst_pair(fit):
    """The largest squared distance of sums of neighbors, and the parts they were counted by."""
    rng, worst, parts = np.random.default_rng(6), 0, set()
    for _ in range(60):
        cells = rng.integers(0, 6, (8, 2)).tolist()
        data = [
            (*both, bool(label)) for both, label in zip(cells, rng.random(8) < 0.5, strict=True)
        ]
        (part, left), (other, right) = pair_sums(fit, data), pair_sums(fit, data[:-1])
        worst = max(worst, int(((left - right) ** 2).sum()))
        parts |= {part, other}
    return worst, parts


def test_groups_of_pairs_are_the_same_for_neighbors():
    """They follow from what was released, which is given; not from the rows."""
    worst, (part,) = worst_pair(TableFit)
    assert worst <= squared_sensitivity(CLIP, "add-remove", signed=True)
    assert part.groups == ((3, 0, 3, 2, 1, 0), (1, 2, 3, 0, 0, 0))


def test_mutant_groups_by_true_sums():
    worst, parts = worst_pair(PeekingFit)
    assert worst > squared_sensitivity(CLIP, "add-remove", signed=True)
    assert len(parts) > 60


def test_tables_of_the_link_stay_within_their_bounds():
    assert np.abs(link.RESIDUALS).max() == CLIP
    assert (link.CURVATURES.min(), link.CURVATURES.max()) == (0, CURVE)
    assert (np.diff(link.RESIDUALS.astype(int)) <= 0).all()
    assert len(link.CURVATURES) == 2 * LIMIT + 1


# The choice of a part.


def choice_law(data, model, chooser, relation, sensitivity=None):
    source = score_parts(rows_of(data, model).residuals(PARTS), relation)
    scores = tuple(source.scores())
    return law_of_scores(scores, chooser, sensitivity or source.profile.sensitivity)


def worst_choice(chooser, relation, sensitivity=None):
    """The largest hockey-stick at the cost of the chooser, and the widest range of losses."""
    delta, span = 0.0, 0.0
    for model in MODELS:
        for data, other in pairs(relation):
            left = choice_law(data, model, chooser, relation, sensitivity)
            right = choice_law(other, model, chooser, relation, sensitivity)
            delta = max(delta, divergence(left, right, chooser.epsilon))
            delta = max(delta, divergence(right, left, chooser.epsilon))
            losses = [math.log(left[one] / right[one]) for one in left]
            span = max(span, max(losses) - min(losses))
    return delta, span


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_choice_costs_what_it_says_and_has_its_range(relation):
    terms = AdditiveRounds(epsilon=2, delta=1e-6, rounds=1, neighbors=relation)
    chooser = terms.singles.chooser
    delta, span = worst_choice(chooser, relation)
    assert delta <= 1e-9
    assert 0.9 * float(chooser.epsilon) < span <= float(chooser.epsilon) + 1e-9


@pytest.mark.slow
def test_mutant_choice_with_the_factor_of_monotone_scores():
    """One row makes one part more useful and the other less: the range is twice what is paid."""
    chooser = Exponential(epsilon=1, neighbors="add-remove")
    _, span = worst_choice(chooser, "add-remove")
    assert span > 1.9


@pytest.mark.slow
def test_mutant_choice_with_half_the_sensitivity_of_replacing():
    _, span = worst_choice(Exponential(epsilon=1, neighbors="replace"), "replace", CLIP)
    assert span > 1.9


@pytest.mark.slow
def test_mutant_residuals_without_a_clip(monkeypatch):
    residuals = np.stack([-link.CHANCES, link.UNIT - link.CHANCES]).astype(np.int16)
    unclipped = replace(link.LOGISTIC, residuals=residuals.T.ravel())
    monkeypatch.setattr(memory, "LOGISTIC", unclipped)
    _, span = worst_choice(Exponential(epsilon=1, neighbors="replace"), "add-remove")
    assert span > 1.5


def test_the_choice_is_drawn_by_its_law():
    terms = AdditiveRounds(epsilon=2, delta=1e-6, rounds=1)
    model, data = MODELS[1], [(0, 1, True), (0, 0, True), (1, 1, False)]
    rows = rows_of(data, model)
    law = choice_law(data, model, terms.singles.chooser, "add-remove")
    found, open_mass = walk(
        lambda coins: choose_part(rows, PARTS, terms.singles, terms, coins).features[0], 12
    )
    for number, chance in law.items():
        mass = float(found.get(number, 0))
        assert mass - 1e-9 <= chance <= mass + float(open_mass) + 1e-9
    assert open_mass < Fraction(1, 100)


# A whole fit of one round.


def test_shifted_discrete_gaussians_have_the_divergence_of_continuous_ones():
    """By adding up their law: what the audit below takes for each coordinate."""
    for variance, move, order in ((9.0, 2, 3.0), (30.5, 7, 2.0), (4.25, 1, 10.0)):
        steps = np.arange(-400, 401)
        law = -(steps**2) / (2 * variance)
        law -= math.log(np.exp(law).sum())
        left, right = law[200:600], law[200 - move : 600 - move]
        found = math.log(np.exp(order * left + (1 - order) * right).sum()) / (order - 1)
        assert found == pytest.approx(order * move**2 / (2 * variance), rel=1e-6)


def round_loss(left, right, model, relation, order, variances, chooser):
    """The Rényi divergence of all that a fit of one round releases: counts, choice and sums."""
    (counts, sums), (other_counts, other_sums) = counted(left, model), counted(right, model)
    loss = gaussian_loss(np.subtract(counts, other_counts), variances[0], order)
    laws = [choice_law(data, model, chooser, relation) for data in (left, right)]
    return loss + choice_loss(laws, (sums, other_sums), order, variances[1:])


def worst_excess(terms, relation, variances=None, chooser=None):
    """How far the divergence of some order exceeds ρ times the order, over all small neighbors."""
    noise = terms.singles
    variances = variances or (
        terms.counts.variance,
        noise.residuals.variance,
        noise.curvatures.variance,
    )
    found = -math.inf
    for model in MODELS:
        for data, other in pairs(relation, 1):
            for left, right in ((data, other), (other, data)):
                for order in ORDERS:
                    loss = round_loss(
                        left, right, model, relation, order, variances,
                        chooser or noise.chooser,
                    )  # fmt: skip
                    found = max(found, loss / order - float(terms.rho))
    return found / float(terms.rho)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_fit_of_one_round_costs_what_it_says(relation):
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=1, neighbors=relation)
    assert -0.35 < worst_excess(terms, relation) <= 1e-9


@pytest.mark.slow
def test_mutant_no_noise_on_curvatures():
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=1)
    noise = (terms.counts.variance, terms.singles.residuals.variance, 0)
    assert worst_excess(terms, "add-remove", noise) == math.inf


@pytest.mark.slow
def test_mutant_noise_for_half_the_sensitivity_of_replacing():
    """As if another row in the same cell moved its sum by no more than one row does."""
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=1, neighbors="replace")
    noise = terms.singles
    halved = (terms.counts.variance, noise.residuals.variance / 4, noise.curvatures.variance)
    assert worst_excess(terms, "replace", halved) > 0.5


@pytest.mark.slow
def test_mutant_curvatures_with_the_noise_of_one_row_under_replacing():
    terms = AdditiveRounds(epsilon=1, delta=1e-6, rounds=1, neighbors="replace")
    noise = terms.singles
    thin = (terms.counts.variance, noise.residuals.variance, noise.curvatures.variance / 64)
    assert worst_excess(terms, "replace", thin) > 0.1


# What all releases cost together.

SHAPES = [
    {"rounds": 20},
    {"rounds": 20, "order": "cyclic"},
    {"rounds": 7, "pairs": 3},
    {"rounds": 1, "neighbors": "replace"},
    {"rounds": 30, "pairs": 5, "neighbors": "replace"},
]


TERMS = {AdditiveRounds: 1, CalibratedRounds: 2}
"""How often labels are counted."""


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_all_releases_fit_the_budget_with_a_delta(epsilon, shape, kind):
    terms = kind(epsilon=epsilon, delta="1e-6", **shape)
    twice = terms.neighbors == "replace"

    def cost(noise, largest, signed):
        square = largest**2 * ((4 if signed else 2) if twice else 1)
        return square / (2 * noise.variance)

    def one_round(noise):
        chosen = 0 if noise.chooser is None else noise.chooser.epsilon**2 / 8
        sums = cost(noise.residuals, CLIP, True) + cost(noise.curvatures, CURVE, False)
        return chosen + sums

    total = TERMS[kind] * cost(terms.counts, 1, False) + terms.rounds * one_round(terms.singles)
    total += terms.pairs * one_round(terms.doubles) if terms.pairs else 0
    assert Fraction(99, 100) * terms.rho < total <= terms.rho
    assert epsilon_of_rho(total, Fraction("1e-6")) <= Fraction(epsilon)


@pytest.mark.parametrize(
    ("options", "counts", "chooser", "residuals", "curvatures"),
    [
        (
            {},
            Fraction(1051077, 1024), Fraction(10158539, 2**28),
            Fraction(211418872033, 1024), Fraction(330772540763, 1024),
        ),
        (
            {"neighbors": "replace", "pairs": 5},
            Fraction(1051077, 512), Fraction(33847973, 2**30),
            Fraction(304691903811, 256), Fraction(953403205729, 1024),
        ),
    ],
    ids=["defaults", "replace"],
)  # fmt: skip
def test_noise_by_rho_is_what_it_was(options, counts, chooser, residuals, curvatures):
    """To the last digit, as before there was another accounting to choose."""
    terms = AdditiveRounds(epsilon=1, delta="1e-6", **options)
    assert terms == AdditiveRounds(epsilon=1, delta="1e-6", accounting="zcdp", **options)
    assert terms.counts.variance == counts
    assert terms.singles.chooser.epsilon == chooser
    assert terms.singles.residuals.variance == residuals
    assert terms.singles.curvatures.variance == curvatures


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_releases_fit_the_budget_without_a_delta(shape, kind):
    terms = kind(epsilon="0.7", **shape)
    moved = 2 if terms.neighbors == "replace" else 1

    def one_round(noise):
        chosen = 0 if noise.chooser is None else noise.chooser.epsilon
        sums = moved * CLIP / noise.residuals.scale + moved * CURVE / noise.curvatures.scale
        return chosen + sums

    total = TERMS[kind] * moved / terms.counts.scale + terms.rounds * one_round(terms.singles)
    total += terms.pairs * one_round(terms.doubles) if terms.pairs else 0
    assert total == Fraction("0.7")


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_pure_round_loses_at_most_epsilon(relation):
    """Choice and sums together, over all small neighbors, by the exact ratio of their laws."""
    terms = AdditiveRounds(epsilon=1, rounds=1, neighbors=relation)
    noise, worst = terms.singles, 0.0
    for model in MODELS:
        for data, other in pairs(relation, 1):
            (counts, sums), (others, moved) = counted(data, model), counted(other, model)
            first = sum(abs(a - b) for a, b in zip(counts, others, strict=True))
            p = choice_law(data, model, noise.chooser, relation)
            q = choice_law(other, model, noise.chooser, relation)
            for number in p:
                (a, ah), (b, bh) = sums[number], moved[number]
                loss = abs(math.log(p[number] / q[number])) + first / float(terms.counts.scale)
                loss += float(np.abs(a - b).sum() / noise.residuals.scale)
                loss += float(np.abs(ah - bh).sum() / noise.curvatures.scale)
                worst = max(worst, loss)
    assert 0.7 < worst <= 1 + 1e-9


def test_noise_is_one_law_or_the_other():
    assert SumNoise(variance=Fraction(8)).spread() == 8
    assert SumNoise(scale=Fraction(2)).spread() == 8


# The cost by privacy loss distributions.

LOSSES = [
    {"rounds": 1, "epsilon": 2, "pairs": 1},
    {"rounds": 3, "epsilon": 4, "order": "cyclic"},
]
MILLIONTH = Fraction(1, 10**6)


def cost_by_losses(terms, thinner=Fraction(1)):
    """What the noise of a fit costs, if each standard deviation were that much smaller."""
    rounds, gaussians = [], [(1, terms.counts.variance * thinner**2, 1)]
    groups = [(terms.singles, terms.rounds)]
    groups += [(terms.doubles, terms.pairs)] if terms.pairs else []
    for noise, times in groups:
        rounds += [] if noise.chooser is None else [(noise.chooser.epsilon, times)]
        gaussians.append((CLIP, noise.residuals.variance * thinner**2, times))
        gaussians.append((CURVE, noise.curvatures.variance * thinner**2, times))
    return Program(rounds=rounds, gaussians=gaussians).epsilon(terms.delta)


@pytest.mark.slow
@pytest.mark.parametrize("shape", LOSSES, ids=str)
def test_by_losses_a_fit_costs_what_it_says_with_less_noise(shape):
    """And 5 % less noise still would cost more."""
    terms = AdditiveRounds(delta=MILLIONTH, accounting="pld", **shape)
    plain = AdditiveRounds(delta=MILLIONTH, **shape)
    assert Fraction(99, 100) * terms.epsilon < cost_by_losses(terms) <= terms.epsilon
    assert cost_by_losses(terms, Fraction(95, 100)) > terms.epsilon
    assert terms.singles.residuals.spread() < 0.92 * plain.singles.residuals.spread()
    assert terms.privacy() == plain.privacy()


def test_by_losses_both_counts_of_labels_are_in_the_program():
    terms = CalibratedRounds(delta=MILLIONTH, **LOSSES[0])
    assert terms.program().gaussians[0] == (1, terms.counts.variance, 2)


def test_by_losses_rho_is_that_of_the_noise():
    """Not what epsilon and delta would have room for: it is more, and a ledger adds it up."""
    terms = AdditiveRounds(delta=MILLIONTH, accounting="pld", **LOSSES[0])
    total = terms.program().rho()
    assert Fraction(99, 100) * terms.rho < total <= terms.rho
    assert total > largest_rho(terms.epsilon, MILLIONTH)
    assert epsilon_of_rho(terms.rho, MILLIONTH) > terms.epsilon


def test_where_losses_say_nothing_the_noise_is_that_of_rho():
    for delta, epsilon in (("1e-70", 1), ("1e-6", "0.001")):
        shape = {"epsilon": epsilon, "delta": delta, "rounds": 3}
        by_losses, plain = AdditiveRounds(accounting="pld", **shape), AdditiveRounds(**shape)
        assert by_losses.rho == plain.rho
        assert by_losses.singles == plain.singles


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"delta": 0}, "needs a delta"),
        ({"delta": MILLIONTH, "neighbors": "replace"}, "add-remove"),
    ],
)
def test_losses_are_refused_where_their_worst_case_is_not_known(options, why):
    with pytest.raises(ParameterError, match=f"accounting='pld' is not allowed: .*{why}"):
        AdditiveRounds(epsilon=1, accounting="pld", **options)
    with pytest.raises(ParameterError, match=why):
        AdditiveRounds(epsilon=1, **options).program()
