"""Draws against laws: the test accepts what is right, and rejects an epsilon that is a tenth wrong.

benchmarks/assurance/draws.py makes a million of each; here are fewer, with the same seeds every
time. Scripts of coins that came before are not run again, and that changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from privmax.mechanisms.registry import MECHANISMS
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.assurance.draws import (  # noqa: E402  # programs, no package
    ALPHA,
    CASES,
    chances,
    draw_places,
    p_value,
    repeat,
)

N = 20_000
QUICK = [case for case in CASES if case.name in ("exponential", "nested-margin", "set-margin")]
STORED = json.loads((ROOT / "benchmarks/results/assurance-draws.json").read_text(encoding="utf-8"))[
    "draws"
]


def drawer(case):
    mechanism, profile = case.mechanism(), case.laws().profile(case.scores)
    return lambda coins: draw_places(mechanism, profile, case.scores, coins)


@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case.name}-{case.options.get('k', 1)}")
def test_draws_fit_their_law_and_no_wrong_one(case):
    found, run = repeat(drawer(case), N, f"quick {case.name}")
    assert run < N / 4
    assert p_value(found, chances(case)) > ALPHA
    for factor in (Fraction(8, 10), Fraction(12, 10)):
        assert p_value(found, chances(case, factor)) < ALPHA


@pytest.mark.parametrize("case", QUICK[:3], ids=lambda case: f"{case.name}-{case.options.get('k')}")
def test_not_running_a_script_again_changes_nothing(case):
    draw, coins = drawer(case), SeededCoins("twice")
    assert repeat(draw, 300, "twice")[0] == Counter(draw(coins) for _ in range(300))


def test_a_draw_without_coins_is_run_once():
    assert repeat(lambda coins: 7, 50, "none") == (Counter({7: 50}), 1)


def test_scripts_too_long_to_remember_are_run_again():
    found, run = repeat(lambda coins: coins.bits(40) % 2, 100, "long")
    coins = SeededCoins("long")
    assert run == 100
    assert found == Counter(coins.bits(40) % 2 for _ in range(100))


def test_an_answer_that_the_law_calls_impossible_is_rejected():
    assert p_value(Counter({"a": 999, "b": 1}), {"a": 1.0, "b": 0.0}) == 0
    assert p_value(Counter({"a": 500, "b": 500}), {"a": 0.5, "b": 0.5}) == pytest.approx(1)


def test_what_is_stored_is_a_million_draws_of_every_mechanism():
    assert {row["mechanism"] for row in STORED} == MECHANISMS.keys()
    for row in STORED:
        assert row["draws"] == 10**6
        assert row["alpha"] == ALPHA / len(CASES)
        assert row["accepted"]
        assert row["rejected"]
