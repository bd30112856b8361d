"""The search for neighbors that cost more than a mechanism says: it finds what is wrong, and finds
nothing where nothing is.

lab/benchmarks/assurance/laws.py runs it at length; lab/assurance.md has what it found.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb

from privmax import (
    Choosing,
    Exponential,
    GapTest,
    Guards,
    JointExponential,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    SetMargin,
    SharpMargin,
    StableMaximum,
)
from privmax.auditing import compare, tightness
from privmax.mechanisms.registry import MECHANISMS
from privmax.mechanisms.weights import decay
from privmax.noise.balls import ball
from privmax.privacy import REPLACE
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from lab.assurance.searches import HIGHEST, Search  # noqa: E402  # programs, no package
from lab.assurance.settings import Setting, settings, shuffled  # noqa: E402

STORED = ROOT / "lab/benchmarks/results/assurance-laws.json"
ROWS = {
    row["mechanism"]: row for row in json.loads(STORED.read_text(encoding="utf-8"))["mechanisms"]
}
SLOW = (*HIGHEST, "joint-exponential")


def names(known):
    """Mechanisms, the slow ones marked."""
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in known]


@pytest.mark.slow
@pytest.mark.parametrize("name", names(MECHANISMS))
def test_a_few_hundred_pairs_break_no_claim(name):
    setting = shuffled(settings(name), SeededCoins("quick"))[0]
    search = Search(setting, "quick", HIGHEST.get(name, 6))
    while search.pairs < 300:
        assert not search.run(starts=2, looks=4).broken


GUARD = Guards((1,), (1,), share="0.0001")
UNDERSTATED = [
    (Exponential(epsilon=1), "closed", Privacy("0.9")),
    pytest.param(
        PermuteAndFlip(epsilon=1, neighbors=REPLACE),
        "closed",
        Privacy("0.9"),
        marks=pytest.mark.slow,
    ),
    pytest.param(MaxOfLaplaces(epsilon=1), "closed", Privacy("0.9"), marks=pytest.mark.slow),
    (JointExponential(epsilon=1, k=2), "closed", Privacy("0.5")),
    (SharpMargin(epsilon=1, delta="0.01", guards=GUARD), "open", Privacy(1, "0.009")),
    (NestedMargin(epsilon=1, delta="0.01", ranks=(1, 2)), "open", Privacy(1, "0.004")),
    (SetMargin(epsilon=1, k=2), "closed", Privacy("0.5")),
    (LimitedDomain(epsilon=1, delta="0.01", rank=2), "open", Privacy(1, "0.009")),
    (StableMaximum(epsilon=1, delta="0.01"), "open", Privacy(1, "0.004")),
    (GapTest(epsilon=1, delta="0.01", k=2), "open", Privacy(1, "0.009")),
    (GapTest(epsilon=1, delta="0.01"), "open", Privacy("0.9", "0.01")),
    (Choosing(epsilon=1, delta="0.01", growth=1), "open", Privacy(1, "0.006")),
]
"""Mechanisms with a claim below what they need: by a tenth, or by more where they are not tight."""


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "universe", "claim"), UNDERSTATED, ids=repr)
def test_an_understated_cost_is_found(mechanism, universe, claim):
    highest = None if claim.delta else 4
    honest = Setting(mechanism, universe)
    mutant = Setting(mechanism, universe, claim=claim)
    assert not Search(honest, "mutants", highest).run(starts=2, looks=3).broken
    assert Search(mutant, "mutants", highest).run(looks=40).broken


class NoFloorTerm(SharpMargin):
    """Lets the guard rely on the growth bound, though a rising floor makes everybody above slip."""

    def _weights(self, window, top, rank, profile) -> list[arb]:
        *blocks, guard = super()._weights(window, top, rank, profile)
        rate = self.draw_epsilon() / profile.sensitivity
        width = window.depth(1) + self._clip(profile)
        moving = ball(rank / self.delta) * decay(rate, width) * ball(self.draw_epsilon()).exp()
        return [*blocks, guard - moving]


def test_a_forced_window_finds_what_a_wide_one_hides():
    options = {"epsilon": 1, "delta": "0.01", "guards": Guards((6,), (1,), share="0.01")}
    narrow = {"universe": "open", "width": 2}
    honest = Setting(SharpMargin(**options, growth=1), **narrow)
    mutant = NoFloorTerm(**options, growth=1)
    assert not Search(honest, "floor").run(looks=10).broken
    assert Search(Setting(mutant, **narrow), "floor").run().broken
    assert not Search(Setting(mutant, universe="open"), "floor").run(starts=2, looks=4).broken


def test_climbing_finds_more_than_chance():
    setting = Setting(Choosing(epsilon=1, delta="0.01", growth=2))
    chance = Search(setting, "b").run(starts=3, looks=3)
    climb = Search(setting, "b").run(starts=3, looks=25)
    assert climb.tightness > 2 * chance.tightness


def test_pairs_that_differ_in_names_only_count_once():
    search = Search(Setting(Exponential(epsilon=1)), "names")
    search._look((1, 1))
    # one or both rise, or fall
    assert search.pairs == 2 * 4
    search._look((2, 1))
    assert search.pairs == 2 * (4 + 5)  # of its six, one was compared from the other side


# What is stored


def test_a_search_of_every_mechanism_is_stored():
    assert ROWS.keys() == MECHANISMS.keys()
    assert all(row["pairs"] >= 100_000 for row in ROWS.values())
    assert not any(row["broken"] for row in ROWS.values())


UNCERTAIN = {"large-margin-truncated"}
"""Whose worst pair is what the numerical error of its law leaves open, and may cost nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("name", names(ROWS))
def test_a_stored_worst_pair_is_as_bad_as_it_says(name):
    """And it breaks a claim that is a tenth below what it needs."""
    row = ROWS[name]
    setting = next(one for one in settings(name) if str(one) == row["setting"])
    laws = setting.laws()
    left, right = (laws.of(tuple(scores)) for scores in row["pair"])
    found = compare(left, right, float(setting.privacy.epsilon))
    part = tightness(found, setting.privacy)
    assert part == pytest.approx(row["tightness"], rel=1e-6)
    assert (found.least == 0) == (name in UNCERTAIN or not setting.privacy.delta)
    if name in UNCERTAIN:
        return
    if setting.privacy.delta:
        lower = Privacy(setting.privacy.epsilon, Fraction(0.9 * part) * setting.privacy.delta)
    else:
        lower = Privacy(Fraction(0.9 * part) * setting.privacy.epsilon)
    assert compare(left, right, float(lower.epsilon)).least > lower.delta
