"""Draws against laws: the test accepts what is right, and rejects an epsilon that is a tenth wrong.

lab/benchmarks/assurance/draws.py makes a million of each; here are fewer, with the same seeds every
time. What reads the same coins is run once, and that changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from privmax.mechanisms.registry import MECHANISMS
from privmax.testing import ScriptedCoins, SeededCoins

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from lab.assurance.draws import (  # noqa: E402  # programs, no package
    ALPHA,
    CASES,
    chances,
    draw_places,
    p_value,
    repeat,
)

pytestmark = pytest.mark.slow

N = 20_000
QUICK = [case for case in CASES if case.name in ("exponential", "nested-margin", "set-margin")]
STORED = json.loads(
    (ROOT / "lab/benchmarks/results/assurance-draws.json").read_text(encoding="utf-8")
)["draws"]


def drawer(case):
    mechanism, profile = case.mechanism(), case.laws().profile(case.scores)
    return lambda coins: draw_places(mechanism, profile, case.scores, coins)


@pytest.mark.slow
@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case.name}-{case.options.get('k', 1)}")
def test_draws_fit_their_law_and_no_wrong_one(case):
    found, begun = repeat(drawer(case), N, f"quick {case.name}")
    assert begun < N / 4
    assert p_value(found, chances(case)) > ALPHA
    for factor in (Fraction(8, 10), Fraction(12, 10)):
        assert p_value(found, chances(case, factor)) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("case", QUICK[:3], ids=lambda case: f"{case.name}-{case.options.get('k')}")
def test_running_a_script_once_for_all_changes_nothing(case):
    draw, number = drawer(case), 300
    coins = SeededCoins("twice").bytes(8 * number)
    words = [int.from_bytes(coins[place : place + 8], "big") for place in range(0, 8 * number, 8)]
    each = Counter(draw(ScriptedCoins(word, 64)) for word in words)
    assert repeat(draw, number, "twice")[0] == each


def test_a_draw_without_coins_is_run_once():
    assert repeat(lambda coins: 7, 50, "none") == (Counter({7: 50}), 1)


def test_a_draw_may_need_more_coins_than_a_word():
    found, begun = repeat(lambda coins: coins.bits(60) * 0 + coins.bits(8), 2000, "long")
    assert found.total() == 2000
    assert begun > 2000
    assert len(found) > 200
    assert max(found.values()) < 40


def test_an_answer_that_the_law_calls_impossible_is_rejected():
    assert p_value(Counter({"a": 999, "b": 1}), {"a": 1.0, "b": 0.0}) == 0
    assert p_value(Counter({"a": 500, "b": 500}), {"a": 0.5, "b": 0.5}) == pytest.approx(1)


def test_what_is_stored_was_accepted_and_wrong_laws_rejected():
    assert {row["mechanism"] for row in STORED} == MECHANISMS.keys()
    for row in STORED:
        alpha = ALPHA / len(CASES)  # there may be more cases now than when it was stored
        assert row["draws"] >= 10**6
        assert row["p"] > alpha
        assert max(row["lower"], row["higher"]) <= alpha
