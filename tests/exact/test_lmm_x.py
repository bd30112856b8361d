"""LMM-X, a comparison only: its thresholds against their equation, its law against another
integral, its leads.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from privmax import DYADIC, LargeMargin, SharpMargin
from privmax.planning.lower_bounds import least_lead, success_limit
from privmax.privacy import ADD_REMOVE, REPLACE, drift

sys.path.append(str(Path(__file__).parent))

from lmm_x import SPLIT, LmmX

pytestmark = pytest.mark.slow

LMM_X = LmmX()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (10**3, (49, 38, 0)),
        (10**6, (77, 72, 49)),
        (10**12, (94, 119, 118)),
        (2**100, (94, 121, 149)),
        (None, (94, 121, 149)),
    ],
)
def test_leads(candidates, expected):
    """Measured independently before, at c = 2; c = 1 halves them."""
    found = [LMM_X.lead(candidates=candidates, near=near) for near in (1, 10, 1000)]
    assert found == pytest.approx(expected, abs=1)
    halved = LmmX(neighbors=ADD_REMOVE)
    for near, lead in zip((1, 10, 1000), found, strict=True):
        assert halved.lead(candidates=candidates, near=near) == math.ceil(lead / 2)


def test_a_lead_is_the_smallest_that_succeeds():
    lead = LMM_X.lead(candidates=10**6, near=3, success=0.8)
    assert (
        LMM_X.success(lead - 1, candidates=10**6, near=3)
        < 0.8
        <= LMM_X.success(lead, candidates=10**6, near=3)
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("delta", [1e-6, 0.01])
def test_thresholds_solve_their_equation(delta, neighbors):
    """The supremum over a fine grid of gaps is δ·w_j: never above, and nearly reached."""
    mechanism = LmmX(delta=delta, neighbors=neighbors)
    assert all(high > low for low, high in pairwise(mechanism.thresholds))
    for j in (0, 1, 2, 3, 10, 40):
        threshold, level = mechanism.thresholds[j], 2**j
        gaps = [*np.arange(0, threshold + 100, 0.05), drift(neighbors)]
        worst = max(mechanism.passing(gap - threshold) * mechanism.slip(gap, level) for gap in gaps)
        assert worst <= delta / ((j + 1) * (j + 2)) * (1 + 1e-9)
        assert worst >= delta / ((j + 1) * (j + 2)) * 0.99


@pytest.mark.slow
@pytest.mark.parametrize("split", [(0.2, 0.4, 0.4), (0.2, 0.6, 0.2), (0.4, 0.2, 0.4)])
def test_the_supremum_is_found_for_any_split(split, monkeypatch):
    monkeypatch.setattr("lmm_x.SPLIT", split)
    mechanism = LmmX()
    for threshold, level in ((5.0, 64), (30.0, 64), (80.0, 2), (80.0, 1), (200.0, 1024)):
        gaps = [*np.arange(0, 600, 0.05), 2.0]
        grid = max(mechanism.passing(gap - threshold) * mechanism.slip(gap, level) for gap in gaps)
        assert grid <= mechanism.worst(threshold, level) * (1 + 1e-12)
        assert grid == pytest.approx(mechanism.worst(threshold, level), rel=1e-2)


def test_the_first_threshold_in_closed_form():
    """ℓ = 1: e^(−(T−c)/b)·b/(a+b) = δ/2 with the scales a = 10 of G and b = 5 of E."""
    assert LMM_X.thresholds[0] == pytest.approx(2 + 5 * math.log(2e6 / 3))


@pytest.mark.parametrize("excess", [-30.0, -1.0, 0.0, 0.5, 40.0])
def test_the_chance_of_passing(excess):
    a, b = 2 / SPLIT[0], 2 / SPLIT[1]
    expected = quad(
        lambda g: math.exp(-g / a) / a * math.exp(-max(0.0, g - excess) / b),
        0,
        500,
        points=[max(0.0, excess)],
    )
    assert LMM_X.passing(excess) == pytest.approx(expected[0], rel=1e-7)


@pytest.mark.parametrize(
    ("candidates", "near", "lead"), [(1000, 1, 49), (None, 1, 95), (None, 3, 100), (40, 5, 20)]
)
def test_success_against_the_definition(candidates, near, lead):
    """The search written out for given G, integrated by other means."""
    a, b, draw = (2 / share for share in SPLIT)
    levels = [2**j for j in range(41) if candidates is None or 2**j < candidates]

    def given(shared):
        alive, total = 1.0, 0.0
        for level, threshold in zip(levels, LMM_X.thresholds, strict=False):
            gap = lead if level >= near else 0
            passes = min(1.0, math.exp(-(threshold + shared - gap) / b))
            total += (
                alive * passes * min(1.0, near / (near + (level - near) * math.exp(-lead / draw)))
            )
            alive *= 1 - passes
        if candidates is not None:
            total += alive * near / (near + (candidates - near) * math.exp(-lead / draw))
        return total * math.exp(-shared / a) / a

    kinks = sorted({max(0.0, lead - threshold) for threshold in LMM_X.thresholds[:8]})
    expected, _ = quad(given, 0, 400, points=kinks, limit=500)
    assert LMM_X.success(lead, candidates=candidates, near=near) == pytest.approx(
        expected, abs=1e-7
    )


def test_where_there_is_nobody_else_success_is_certain():
    assert LMM_X.success(0, candidates=10, near=10) == LMM_X.success(0, candidates=3, near=10) == 1
    assert LMM_X.success(0, candidates=10, near=2) == 0.2
    assert LMM_X.success(0, candidates=None, near=1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
def test_it_stays_below_the_limit_of_all_mechanisms(neighbors):
    mechanism = LmmX(neighbors=neighbors)
    at = {"epsilon": 1, "delta": "1e-6", "neighbors": neighbors}
    for candidates in (2, 1000, 10**9, None):
        for lead in (1, 10, 30, 60, 100):
            found = mechanism.success(lead, candidates=candidates, near=1)
            assert found <= success_limit(lead, **at, candidates=candidates) + 1e-12
        assert mechanism.lead(candidates=candidates) >= least_lead(**at, candidates=candidates)


@pytest.mark.slow
def test_it_lies_between_the_paper_and_the_sharp_mechanism_in_an_open_universe():
    paper = LargeMargin(epsilon=1, delta="1e-6")
    sharp = SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE, guards=DYADIC)
    for near in (1, 10, 1000):
        lead = LMM_X.lead(candidates=None, near=near)
        assert (
            1.5 * sharp.lead(candidates=None, near=near)
            < lead
            < paper.lead(candidates=None, near=near) / 3.5
        )


@pytest.mark.slow
def test_the_stored_leads():
    """Those of docs/paper.md, which paper/near.py keeps."""
    file = Path(__file__).resolve().parents[2] / "lab/benchmarks/results/paper-near.json"
    curves = json.loads(file.read_text(encoding="utf-8"))["curves"]
    rows = [row for row in curves if row["contender"] == "lmm-x"]
    assert {row["universe"] for row in rows} == {"open", "closed"}
    for row in rows:
        size = {"open": None, "closed": 10**12}[row["universe"]]
        found = [LMM_X.lead(candidates=size, near=near) for near in row["near"]]
        assert found == row["lead"]
