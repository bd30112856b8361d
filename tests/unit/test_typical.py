"""Typical profiles: what they look like, and what they decide."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privmax import Exponential, Profile, SetMargin, auto
from privmax.typical import HIGHEST, typical_misses, typical_profiles


def scores(profile, ranks):
    window = profile.down_to(ranks)
    return [window.top - depth for depth, number in window.first(ranks) for _ in range(number)]


@pytest.mark.parametrize("k", [3, 40, 100])
def test_scores_fall_off_with_the_rank_or_its_root(k):
    unit = Fraction(4)
    found = list(typical_profiles(k, 500, unit))
    assert len(found) == 2 * len(HIGHEST)
    for top, steep, flat in zip(HIGHEST, found[::2], found[1::2], strict=True):
        assert steep.universe == flat.universe == 500
        for profile, power in ((steep, 1), (flat, 0.5)):
            listed = scores(profile, 200)
            assert listed == sorted(listed, reverse=True)
            for rank in (1, 2, 30, 150):
                assert listed[rank - 1] == pytest.approx(4 * top / rank**power, rel=0.05, abs=1)
        assert scores(flat, k + 1)[k - 1] > scores(flat, k + 1)[k]  # rank k ends a level


def test_a_universe_ends_and_scores_end_before_it():
    assert all(len(scores(one, 7)) == 7 for one in typical_profiles(3, 7, Fraction(1)))
    few = next(typical_profiles(3, 10**9, Fraction(1)))
    assert min(scores(few, 5000)) == 0


def test_in_an_open_universe_scores_go_on_down_to_one():
    for open_one, closed in zip(
        typical_profiles(7, None, Fraction(1)), typical_profiles(7, 10**12, Fraction(1)),
        strict=True,
    ):  # fmt: skip
        assert open_one.universe is None
        assert scores(open_one, 3000) == scores(closed, 3000)
    last = scores(next(typical_profiles(7, None, Fraction(1))), 400)
    assert last[-1] == 1


def test_what_is_missed_is_the_mean_of_exact_laws():
    mechanism = SetMargin(epsilon="0.5", delta="1e-6", neighbors="replace", k=4)
    unit = Fraction(2) / Fraction(1, 2)
    missed = [1 - mechanism.expect(one, 4)[1] / 4 for one in typical_profiles(4, 300, unit)]
    assert typical_misses(mechanism, 300) == pytest.approx(sum(missed) / 8, abs=5e-4)


def test_peeling_is_taken_where_it_misses_less():
    price = {"epsilon": "0.1", "delta": "1e-6"}
    many = auto(**price, universe=10**6, k=100)
    assert type(many.mechanism) is Exponential
    assert many.why.startswith("what is missed on typical scores: SetMargin (delta 0) ")
    close = Profile([(9000 - 12 * rank, 1) for rank in range(300)], universe=10**6)
    missed = [
        1 - one.expect(close, 100)[1] / 100 for one in (many.mechanism, SetMargin(**price, k=100))
    ]
    assert missed[0] < missed[1]


def test_a_set_is_taken_where_it_misses_less():
    few = auto(epsilon=1, delta="1e-6", universe=10**6, k=10)
    assert type(few.mechanism) is SetMargin
    assert few.mechanism.privacy().delta > 0
    small = auto(epsilon=1, delta="1e-6", universe=50, k=5)
    assert small.mechanism.privacy().delta == 0  # a delta that buys nothing is not charged
