"""The whole table of leads, and the crossovers: 95 % success at ε = 1, δ = 1e-6, under replace,
from exact laws.

The numbers were measured independently before this library existed; each is met to within one
record. Two rows differ for a reason and are pinned exactly: the paper's mechanism was measured with
real-valued noise, and the discrete twin's rounding costs up to three records in an open universe;
the optimal test was measured one step short of optimal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import privmax
from privmax import (
    DYADIC,
    Exponential,
    GapTest,
    LargeMargin,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    SharpMargin,
    StableMaximum,
)
from privmax.planning.theory import large_margin_lead
from privmax.privacy import REPLACE

sys.path.append(str(Path(__file__).parent))

from lmm_x import LmmX

NEAR = (1, 10, 1000)
UNIVERSES = (10**3, 10**6, 10**12, 2**100, None)
PURE = {"epsilon": 1, "neighbors": REPLACE}
PRICE = {**PURE, "delta": "1e-6"}


def leads(mechanism, candidates):
    return [mechanism.lead(candidates=candidates, near=near) for near in NEAR]


def oracle(candidates):
    """Limited domain that knows how many near maximizers there are."""
    return [
        LimitedDomain(**PRICE, rank=near).lead(candidates=candidates, near=near) for near in NEAR
    ]


def theorem(candidates):
    return [
        large_margin_lead(epsilon=1, delta="1e-6", candidates=candidates, near=near)
        for near in NEAR
    ]


def of(mechanism):
    return lambda candidates: leads(mechanism, candidates)


TABLE = {
    "exponential": (of(Exponential(**PURE)), "20/15/0 33/29/20 61/57/47 145/140/131"),
    "max of Laplaces": (of(MaxOfLaplaces(**PURE)), "20/15/0 34/29/20 62/56/47 145/140/131"),
    "permute-and-flip": (of(PermuteAndFlip(**PURE)), "18/15/0 32/29/20 60/56/47 143/140/131"),
    "paper's, exact, closed": (
        of(LargeMargin(**PRICE)),
        "59/45/0 101/87/59 184/170/142 423/420/392",
    ),
    "paper's, theorem": (theorem, "501/563/0 501/563/700 501/563/700 501/563/700 501/563/700"),
    "LMM-X": (of(LmmX()), "49/38/0 77/72/49 94/119/118 94/121/149 94/121/149"),
    "sharp, dyadic": (
        of(SharpMargin(**PRICE, guards=DYADIC)),
        "48/47/0 51/54/28 65/67/60 66/83/100 52/59/64",
    ),
    "limited domain, k̄=ℓ": (oracle, "36/36/0 36/36/36 36/36/36 36/36/36 36/36/36"),
    "limited domain, k̄=1e6": (
        of(LimitedDomain(**PRICE, rank=10**6)),
        "– – 63/59/49 63/59/49 63/59/49",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE)
def test_leads(row):
    measure, cells = TABLE[row]
    for candidates, cell in zip(UNIVERSES, cells.split(), strict=False):
        if cell != "–":
            assert measure(candidates) == pytest.approx(
                [int(lead) for lead in cell.split("/")], abs=1
            )


def test_limited_domain_of_a_million_in_closed_universes():
    """Where k̄ reaches the universe everybody competes and there is no guard: better than the
    63/59/0 first measured.
    """
    limited, plain = LimitedDomain(**PRICE, rank=10**6), Exponential(**PURE)
    for candidates in (10**3, 10**6):
        assert leads(limited, candidates) == leads(plain, candidates)
    assert leads(limited, 10**6 + 1)[0] == pytest.approx(63, abs=1)


@pytest.mark.slow
def test_the_papers_mechanism_in_an_open_universe_pays_for_rounding():
    assert leads(LargeMargin(**PRICE), None) == [435 + 3, 479 + 3, 564 + 2]


def test_sharp_margin_with_default_guards_in_an_open_universe():
    assert leads(SharpMargin(**PRICE), None) == pytest.approx([55, 50, 40], abs=1)


@pytest.mark.parametrize("candidates", UNIVERSES)
def test_tests_for_a_single_winner(candidates):
    assert StableMaximum(**PRICE).lead(candidates=candidates) == pytest.approx(33, abs=1)
    assert GapTest(**PRICE).lead(candidates=candidates) == pytest.approx(32, abs=1)


@pytest.mark.slow
def test_halves_under_add_remove():
    for mechanism in (Exponential, PermuteAndFlip, MaxOfLaplaces):
        for candidates in UNIVERSES[:-1]:
            halved = leads(mechanism(epsilon=1), candidates)
            assert halved == pytest.approx(
                [lead / 2 for lead in leads(mechanism(**PURE), candidates)], abs=1
            )
    assert GapTest(epsilon=1, delta="1e-6").lead(candidates=None) == 16


@pytest.mark.parametrize("epsilon", ["0.2", 5])
def test_leads_scale_as_one_over_epsilon(epsilon):
    for make in (PermuteAndFlip, Exponential):
        assert make(epsilon=epsilon).lead(candidates=10**9) == pytest.approx(
            make(epsilon=1).lead(candidates=10**9) / float(epsilon), abs=1 + 1 / float(epsilon)
        )


@pytest.mark.slow
def test_crossovers():
    """Pure mechanisms win in small universes. First measured for the sharp one was 10^10; it is
    10^11, or 10^13.
    """
    flip = PermuteAndFlip(**PURE)
    assert privmax.crossover(flip, SharpMargin(**PRICE)) == 91 * 10**9
    assert privmax.crossover(flip, SharpMargin(**PRICE, guards=DYADIC)) == 23 * 10**12
    assert [privmax.crossover(flip, NestedMargin(**PRICE), near=near) for near in NEAR] == [
        23 * 10**7,
        77 * 10**7,
        43 * 10**9,
    ]


@pytest.mark.slow
def test_the_papers_constants_pay_off_only_beyond_ten_to_the_93():
    flip, paper = PermuteAndFlip(**PURE), LargeMargin(**PRICE)
    assert paper.lead(candidates=10**93) >= flip.lead(candidates=10**93)
    assert paper.lead(candidates=10**95) < flip.lead(candidates=10**95)
