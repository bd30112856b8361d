"""The constants of the paper, and the lead each mechanism needs: 95 % success, ε = 1, δ = 1e-6,
from exact laws.

Leads were measured independently before this library existed; each must be met to within one
record. The paper's row was measured for real-valued noise. The discrete twin rounds four terms of
T_r up, which may add up to four.
"""

from __future__ import annotations

import pytest

from privmax import DYADIC, FEW, Exponential, LargeMargin, PermuteAndFlip, Profile, SharpMargin
from privmax.privacy import ADD_REMOVE, REPLACE

pytestmark = pytest.mark.slow

PAPER = LargeMargin(epsilon=1, delta="1e-6")
NEAR = (1, 10, 1000)
UNIVERSES = (10**3, 10**6, 10**12, 2**100)


def leads(mechanism, candidates, near=NEAR):
    return [mechanism.lead(candidates=candidates, near=count) for count in near]


@pytest.mark.parametrize(("rank", "expected"), [(1, 95.485), (10, 109.300)])
def test_printed_margin(rank, expected):
    assert PAPER.paper_constants(rank)[0] == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [(1, 414.920), (2, 432.262), (10, 476.823), (100, 544.876), (1000, 613.847)],
)
def test_printed_threshold(rank, expected):
    assert PAPER.paper_constants(rank)[1] == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("rank", [1, 2, 3, 10, 99, 1000, 12345, 10**9, 2**40, 2**100])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_discrete_thresholds_are_the_printed_ones_rounded_up_term_by_term(rank, epsilon):
    mechanism = LargeMargin(epsilon=epsilon, delta="1e-6")
    margin, threshold = mechanism.paper_constants(rank)
    assert 0 <= mechanism.margin(rank) - margin < 1
    assert 0 <= mechanism.threshold(rank) - threshold < 4


def test_corrected_constants_save_four_records_and_nothing_else():
    corrected = LargeMargin(epsilon=1, delta="1e-6", constants="corrected")
    assert [PAPER.threshold(r) - corrected.threshold(r) for r in (1, 10, 1000)] == [4, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "table"),
    [
        (
            Exponential(epsilon=1, neighbors=REPLACE),
            [(20, 15, 0), (33, 29, 20), (61, 57, 47), (145, 140, 131)],
        ),
        (
            PermuteAndFlip(epsilon=1, neighbors=REPLACE),
            [(18, 15, 0), (32, 29, 20), (60, 56, 47), (143, 140, 131)],
        ),
        (
            SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE, guards=DYADIC),
            [(48, 47, 0), (51, 54, 28), (65, 67, 60), (66, 83, 100)],
        ),
    ],
    ids=["exponential", "permute-and-flip", "sharp, dyadic with FULL"],
)
def test_closed_universe(mechanism, table):
    for candidates, expected in zip(UNIVERSES, table, strict=True):
        assert leads(mechanism, candidates) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(
    ("guards", "neighbors", "expected"),
    [
        (FEW, ADD_REMOVE, (28, 25, 20, 87)),
        (FEW, REPLACE, (55, 50, 40, 173)),
        (DYADIC, ADD_REMOVE, (26, 30, 32, 52)),
        (DYADIC, REPLACE, (52, 59, 64, 104)),
    ],
    ids=["few, add-remove", "few, replace", "dyadic, add-remove", "dyadic, replace"],
)
def test_sharp_margin_in_an_open_universe(guards, neighbors, expected):
    mechanism = SharpMargin(epsilon=1, delta="1e-6", neighbors=neighbors, guards=guards)
    assert leads(mechanism, None, (*NEAR, 10**6)) == pytest.approx(expected, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidates", "measured", "added"),
    [
        (10**3, (59, 45, 0), (1, 1, 0)),
        (10**6, (101, 87, 59), (0, 0, 1)),
        (10**12, (184, 170, 142), (0, 0, 1)),
        (2**100, (423, 420, 392), (1, 0, 1)),
        (None, (435, 479, 564), (3, 3, 2)),
    ],
)
def test_large_margin(candidates, measured, added):
    """`added` is what rounding costs, record by record."""
    assert leads(PAPER, candidates) == [
        lead + extra for lead, extra in zip(measured, added, strict=True)
    ]


@pytest.mark.slow
def test_the_sharp_mechanism_needs_about_an_eighth_of_the_papers_lead_in_an_open_universe():
    sharp = SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE)
    for near in NEAR:
        assert PAPER.lead(candidates=None, near=near) >= 7.9 * sharp.lead(
            candidates=None, near=near
        )


@pytest.mark.slow
def test_the_papers_constants_lose_to_permute_and_flip_in_every_universe_one_could_list():
    flip = PermuteAndFlip(epsilon=1, neighbors=REPLACE)
    for candidates in UNIVERSES:
        assert PAPER.lead(candidates=candidates) > flip.lead(candidates=candidates)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [SharpMargin(epsilon="0.5", delta="1e-6"), LargeMargin(epsilon=1, delta="1e-6")]
)
def test_a_lead_is_the_smallest_that_succeeds(mechanism):
    lead = mechanism.lead(candidates=None, near=3, success="0.9")
    chances = [mechanism.law(Profile([(score, 3)])).best() for score in (lead - 1, lead)]
    assert chances[0] < 0.9 <= chances[1]


def test_a_growth_bound_spares_the_logarithm_of_the_rank():
    plain = SharpMargin(epsilon=1, delta="1e-6")
    bounded = SharpMargin(epsilon=1, delta="1e-6", growth=1)
    assert (
        plain.lead(candidates=None) - bounded.lead(candidates=None) == 8
    )  # ln(2^10) / 0.92, rounded
