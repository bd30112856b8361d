"""What the laws of both Large Margin Mechanisms are made of: stretches of ranks, the mean of a
piece and its error, how many steps they take; and how deep they clip.
"""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction

import numpy as np
import pytest

from privmax import LargeMargin, LargeMarginTruncated, ParameterError, Profile
from privmax.mechanisms import large_margin
from privmax.mechanisms.large_margin import Piece, _stretches
from privmax.mechanisms.noisy_maximum import noise_law
from privmax.testing import ScriptedCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}

both_kinds = pytest.mark.parametrize("kind", [LargeMargin, LargeMarginTruncated])


@both_kinds
@pytest.mark.parametrize(
    ("epsilon", "end"), [(1, 67), (1, 70), (1, 5000), (20, 2**200)], ids=lambda value: f"{value:g}"
)
def test_all_ranks_of_a_stretch_have_its_threshold(kind, epsilon, end):
    """A threshold never falls with the rank, so the first rank of a stretch and its last will do.
    A hundred stretches are looked at.
    """
    mechanism = kind(epsilon=epsilon, delta="1e-6")
    lasts, thresholds = _stretches(mechanism, end, 1)
    firsts = [1, *(last + 1 for last in lasts[:-1])]
    stretches = list(zip(firsts, lasts, thresholds, strict=True))
    for first, last, threshold in stretches[-100:]:
        assert mechanism.threshold(first) == threshold == mechanism.threshold(last)
        assert 16 * (last - first) < max(16, first)
    assert lasts[-1] == end


@both_kinds
def test_a_rank_that_nearly_has_the_next_threshold_is_in_the_stretch_of_its_own(kind):
    """At epsilon 12 a tail is the ceiling of ln(3r(r+1)/δ): just below 20 at rank 65."""
    delta = 3 * 65 * 66 / Fraction(math.exp(20)) * Fraction("1.00001")
    mechanism = kind(epsilon=12, delta=delta)
    lasts, thresholds = _stretches(mechanism, 70, 1)
    assert 65 in lasts
    assert thresholds[lasts.index(65)] == mechanism.threshold(65) < mechanism.threshold(66)


CROWDED = Profile([(99, 3), (98, 4), (96, 70), (90, 1), (60, 9)], universe=200)


def excesses(mechanism, window, end):
    """That of every rank: how far the next one stands below the top, less the threshold."""
    return {rank: window.depth(rank + 1) - mechanism.threshold(rank) for rank in range(1, end)}


@both_kinds
def test_pieces_hold_every_rank_once_with_its_excess(kind):
    mechanism = kind(epsilon=2, delta="1e-6")
    window = mechanism._window(CROWDED)
    pieces = mechanism._pieces(window, 200, 1)
    ranks = [rank for piece in pieces for rank in range(piece.first, piece.last + 1)]
    assert ranks == list(range(1, 200))
    found = [piece.excess for piece in pieces for _ in range(piece.first, piece.last + 1)]
    assert found == list(excesses(mechanism, window, 200).values())


@pytest.mark.parametrize("offset", [-40, 0, 250])
@pytest.mark.parametrize("epsilon", [2, 40])
def test_runs_hold_every_rank_once_and_bound_the_excess_of_all_that_come(epsilon, offset):
    mechanism = LargeMargin(epsilon=epsilon, delta="1e-6")
    window = mechanism._window(CROWDED)
    expected = excesses(mechanism, window, 200)
    runs = list(mechanism._runs(window, offset, CROWDED))
    assert [rank for run in runs for rank in range(run.start, run.stop)] == list(range(1, 200))
    for run in runs:
        largest = -math.inf
        for rank in reversed(range(run.start, run.stop)):
            assert run.excess(rank) == offset + expected[rank]
            largest = max(largest, run.excess(rank))
            assert largest <= run.bound(rank)


FIRST, LAST = 100, 200


def law_at(mechanism, window, rank):
    """The chances of all blocks where the search stops at this rank."""
    return np.array([chance for _, _, chance in mechanism._choice(rank).law(window).blocks])


def piece_law(mechanism, window):
    """The same, and its error, where it stops somewhere in one long piece."""
    return mechanism._block_chances(window, [Piece(FIRST, LAST, 1, 0)], np.ones(1), 1)


@both_kinds
def test_a_piece_takes_the_mean_of_its_ends_and_its_error_covers_every_rank(kind):
    mechanism = kind(epsilon=12, delta="0.2")
    window = mechanism._window(Profile([(60, 9), (59, 500), (40, 8)], universe=1000))
    chances, error = piece_law(mechanism, window)
    ends = [law_at(mechanism, window, rank) for rank in (FIRST, LAST)]
    assert list(chances) == pytest.approx(list((ends[0] + ends[1]) / 2), abs=1e-9)
    for rank in (FIRST, 101, 150, 199, LAST):
        assert np.abs(law_at(mechanism, window, rank) - chances).max() <= error + 1e-9
    half = float(np.abs(ends[0] - ends[1]).max()) / 2
    assert half > 0.01
    # What the noise of two ranks adds, as the page has it: twice LAST·(κ − κ')/(1 − κ').
    first, last = (0.2 / 3 / rank / (1 + math.exp(4)) for rank in (FIRST, LAST))
    noise = 2 * LAST * (first - last) / (1 - last) if kind is LargeMarginTruncated else 0.0
    assert error == pytest.approx(half + noise, abs=1e-9)


@both_kinds
@pytest.mark.parametrize("universe", [None, 3])
def test_a_zero_is_not_called_impossible(kind, universe):
    """The search leaves out stops that are too rare."""
    mechanism = kind(epsilon=50, delta="1e-20", cap=3)
    profile = Profile([(90, 3)], universe=universe)
    assert not mechanism.law(profile).true_zeros
    parts = mechanism.joint(profile)
    rare = [part for (_, near), part in parts.items() if near == 1]
    assert any(part.of(90) == 0 for part in rare)
    assert not any(part.true_zeros for part in parts.values())


@both_kinds
@pytest.mark.parametrize("universe", [None, 3])
def test_the_errors_of_a_joint_law_cover_what_is_missing_at_every_estimate(kind, universe):
    """Its parts add up to the chance of the estimate, but for the noise that is left out."""
    mechanism = kind(epsilon=3, delta="0.1", cap=3)
    masses, errors = {}, {}
    for (estimate, _), part in mechanism.joint(Profile([(9, 2)], universe=universe)).items():
        mass = part.none + math.fsum(chance for _, _, chance in part.blocks)
        masses[estimate] = masses.get(estimate, 0.0) + mass
        errors[estimate] = errors.get(estimate, 0.0) + part.error
        assert part.error >= 0
    assert len(masses) > 60
    for estimate, mass in masses.items():
        chance = math.tanh(1 / 2) * math.exp(-abs(estimate - 9))
        assert abs(mass - chance) <= errors[estimate] < 1e-11


@both_kinds
@pytest.mark.parametrize(("name", "universe", "cap"), [("universe", 65, 1), ("cap", None, 65)])
def test_a_joint_law_of_more_than_64_is_refused(kind, name, universe, cap):
    mechanism = kind(epsilon=60, delta="0.3", cap=cap)
    with pytest.raises(ParameterError, match=f"^{name}=.*at most 64"):
        mechanism.joint(Profile([(9, 1)], universe=universe))


def steps(mechanism, **options):
    """About how many a law would take, where that is too many."""
    with pytest.raises(ParameterError, match=r"^epsilon=") as refused:
        mechanism.law(Profile([(10**9, 1)], **options))
    return float(re.search(r"about (\S+) steps", str(refused.value))[1])


def test_a_grid_of_many_steps_to_a_record_takes_as_long_as_a_smaller_epsilon():
    fine, coarse = (LargeMargin(epsilon=epsilon, delta="1e-6") for epsilon in ("1e-5", 1))
    assert steps(fine, universe=99) == steps(coarse, universe=99, sensitivity=10**5) > 1e9


def test_noise_alone_may_take_too_long():
    """Where there is nothing to search its values are still listed."""
    assert steps(LargeMargin(epsilon="1e-5", delta="1e-6"), universe=1) > 1e9
    assert steps(LargeMargin(epsilon="1e-5", delta="1e-6", cap=1)) > 1e9


def test_steps_are_counted_by_the_values_that_the_shared_noise_takes(monkeypatch):
    """Those of both noises together, for each of the 64 thresholds that are always counted."""
    mechanism = LargeMargin(epsilon="0.1", delta="1e-6")
    stages = mechanism._maximum().scale(1), mechanism._search(CROWDED).shared_scale()
    values = sum(len(noise_law(scale)[0]) for scale in stages)
    monkeypatch.setattr(large_margin, "LAW_STEPS", 1.01 * 64 * values)
    mechanism._check_work(1, 1)
    monkeypatch.setattr(large_margin, "LAW_STEPS", 0.99 * 64 * values)
    with pytest.raises(ParameterError, match=r"^epsilon="):
        mechanism._check_work(1, 1)


def test_races_take_steps_of_their_own():
    """The same number of thresholds that the exponential stage has a law for."""
    options = {"epsilon": "0.1", "delta": "1e-6"}
    LargeMargin(**options)._check_work(10**12, 1)
    assert steps(LargeMarginTruncated(**options), universe=10**12) >= 1e9


@both_kinds
@pytest.mark.parametrize("before", [[], [(3001, 7)]])
def test_a_search_past_a_billion_ties_costs_a_few_coins(kind, before):
    """They cannot pass, and whoever stands behind them nearly must."""
    coins = ScriptedCoins(random.Random(5).getrandbits(5000), 5000)
    outcome = kind(**PRICE).draw(Profile([*before, (3000, 10**9)]), coins)
    near = 10**9 + sum(count for _, count in before)
    assert (outcome.score, outcome.diagnostics["near_maximizers"]) == (3000, near)


@both_kinds
@pytest.mark.parametrize(("universe", "ranks"), [(None, 2**40), (10**6, 10**6)])
@pytest.mark.parametrize("epsilon", [1, "0.3"])
def test_it_clips_as_deep_as_its_page_says(kind, universe, ranks, epsilon):
    """The search of an open universe goes up to 2^40."""
    mechanism = kind(epsilon=epsilon, delta="1e-6")
    slack = math.ceil(21 * math.log(3 * 2**24) / float(mechanism.epsilon))
    window = mechanism._window(Profile([(10**9, 1)], universe=universe))
    assert window.floor == mechanism.threshold(ranks) + slack
