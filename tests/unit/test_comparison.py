"""Comparisons: chances and shortfalls added up by hand, who is marked, and arguments that make no
sense.
"""

from __future__ import annotations

import math

import pytest
from by_name import by_name

import privmax
from privmax import Profile, Scores, compare
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS
from privmax.planning.comparison import compare_over, percent

PRICE = {"epsilon": 1, "delta": "1e-6"}
QUICK = ("exponential", "nested-margin", "limited-domain", "gap-test", "stable-maximum")


def row(found, name):
    return next(row for row in found.rows if row.name == name)


def test_the_exponential_mechanism_by_hand():
    """Three listed, two more with 0: weights e^3, e^3, e^1, 1, 1."""
    found = compare([3, 3, 1], epsilon=1, universe=5)
    weights = [math.e**3, math.e**3, math.e, 1, 1]
    exponential = row(found, "Exponential")
    assert exponential.best == pytest.approx(2 * weights[0] / sum(weights))
    assert exponential.nothing == 0
    expected = sum(
        weight * short for weight, short in zip(weights, (0, 0, 2, 3, 3), strict=True)
    ) / sum(weights)
    assert exponential.shortfall == pytest.approx(expected)
    assert found.near == 2
    assert exponential.lead == privmax.Exponential(epsilon=1).lead(candidates=5, near=2)


def test_candidates_at_the_floor_count_with_their_own_scores():
    """A window hides how far down they stand: one block, whose mean is that of the scores."""
    levels = [(1000, 1), (500, 10), (-700, 5)]
    profile = Profile(levels, universe=10**6)
    law = privmax.Exponential(epsilon="0.001").law(profile)
    assert law.floor is None or law.floor < -700
    narrow = privmax.Exponential(epsilon=1).law(profile)
    assert narrow.floor is not None
    assert narrow.floor > 500
    found = row(compare(profile, epsilon=1, mechanisms=["exponential"]), "Exponential")
    below = 10**6 - 1
    mean = (10 * 500 + 5 * -700) / below
    missed = narrow.blocks[-1][2] * (1000 - mean)
    assert found.shortfall == pytest.approx(missed)


def test_shortfall_is_in_records_and_given_a_release():
    scores = Profile([(60, 1), (55, 1)], sensitivity=5)
    law = privmax.NestedMargin(**PRICE).law(scores)
    found = row(compare(scores, **PRICE, mechanisms=QUICK), "NestedMargin")
    assert found.nothing == pytest.approx(law.none)
    assert 0 < found.nothing < 1
    assert found.shortfall == pytest.approx(law.blocks[1][2] * 1 / (1 - law.none))


def test_who_never_releases_has_no_shortfall():
    found = compare([], **PRICE, mechanisms=QUICK)
    assert {one.best for one in found.rows} == {0}
    assert {one.shortfall for one in found.rows} == {None}
    assert {one.nothing for one in found.rows} == {1}
    assert "–" in str(found)


def test_what_auto_picks_and_who_is_ahead_are_marked_though_they_differ():
    found = compare([40, 38, *[2] * 50], **PRICE, near=10, mechanisms=QUICK)
    assert found.chosen.name == "NestedMargin"
    assert [one.name for one in found.rows if one.ahead] == ["LimitedDomain"]
    assert found.rows[0].name == "LimitedDomain"
    assert "LimitedDomain †" in str(found)
    assert "NestedMargin *" in str(found)
    assert "* chosen by auto: finds a clear winner without a list of items (Nes" in str(found)


def test_equals_are_all_marked_and_the_chosen_one_stands_first():
    found = compare([900, 12], **PRICE, mechanisms=QUICK)
    assert all(one.ahead for one in found.rows)
    assert found.rows[0].chosen


@pytest.mark.slow
def test_every_mechanism_that_can_serve_is_there_and_the_others_say_what_they_lack():
    found = compare([900, 850, 12], **PRICE)
    entries = [entry for entry in MECHANISMS.values() if not entry.for_lists]
    assert {one.name for one in found.rows} | set(found.unable) == {one.name for one in entries}
    closed = [entry.name for entry in entries if entry.needs_closed]
    assert {"Exponential", "PermuteAndFlip", "MaxOfLaplaces"} <= set(closed)
    assert found.unable == {**dict.fromkeys(closed, "a closed universe"), "Choosing": "growth"}
    pure = compare([3, 1], epsilon=1, universe=2)
    assert set(pure.unable.values()) == {"a delta above 0"}
    replaced = compare(
        [9, 1],
        **PRICE,
        universe=2,
        mechanisms=["choosing"],
        scores=Scores(growth=1, neighbors="replace"),
    )
    assert replaced.unable == {"Choosing": "neighbors add-remove"}


def test_labels_do_not_matter_and_not_everybody_need_be_listed():
    options = {**PRICE, "universe": 10**6, "mechanisms": QUICK}
    assert by_name(compare, {"a": 60, "b": 50}, **options) == by_name(compare, [60, 50], **options)
    assert compare(
        Profile([(60, 1), (50, 1)], universe=10**6), **PRICE, mechanisms=QUICK
    ) == by_name(compare, [60, 50], **options)


def test_repr_shows_nothing():
    found = compare([73519, 12], **PRICE, mechanisms=QUICK)
    assert repr(found) == "Comparison(<private>)"
    assert {repr(one) for one in found.rows} == {"Contender(<private>)"}


def test_printed_it_is_a_table_with_units():
    lines = str(compare([40, 38], **PRICE, mechanisms=QUICK)).splitlines()
    assert lines[:2] == [
        "What each mechanism would do on these scores in an open universe",
        "at epsilon 1, delta 1e-06, add-remove:",
    ]
    assert lines[3].split("  ")[0] == "mechanism"
    for line in lines[4 : lines.index("", 4)]:
        assert line.count("%") == 2
        assert line.endswith((" records", " –"))
    assert max(map(len, lines)) < 100


@pytest.mark.parametrize(
    ("chance", "shown"),
    [
        (0, "0 %"),
        (1e-12, "0 %"),
        (1e-5, "<0.1 %"),
        (0.0123, "1.2 %"),
        (0.25, "25 %"),
        (0.9984, "99.8 %"),
        (0.9996, ">99.9 %"),
        (1 - 1e-12, "100 %"),
        (1, "100 %"),
    ],
)
def test_chances_are_rounded_and_never_to_certainty(chance, shown):
    assert percent(chance) == shown


@pytest.mark.parametrize(
    ("data", "options", "name"),
    [
        ([1], {"epsilon": 0}, "epsilon"),
        ([1], {"delta": 0}, "delta"),
        ([1], {"near": 0}, "near"),
        ([1], {"success": 2}, "success"),
        ([1], {"mechanisms": ["best"]}, "mechanisms"),
        ([1.5], {"resolution": "0.5"}, "neighbors"),
        ([3, 2, 1], {"universe": 2}, "universe"),
        (Profile([(1, 1)]), {"universe": 3}, "universe"),
        (Profile([(1, 1)]), {"sensitivity": 3}, "sensitivity"),
        ([1], {"k": 0}, "k"),
        ([1], {"k": 3, "universe": 2}, "k"),
        ([1], {"k": 3, "near": 2, "mechanisms": None}, "near"),
        ([1], {"k": 3}, "mechanisms"),
    ],
)
def test_bad_arguments_are_named(data, options, name):
    with pytest.raises(ParameterError, match=f"^{name}(=| is required)"):
        by_name(compare, data, **{**PRICE, "mechanisms": QUICK, **options})


@pytest.mark.slow
def test_nobody_is_ahead_where_nobody_can_release_the_best():
    found = compare([-3], epsilon=1, delta="1e-6")
    assert {row.best for row in found.rows} == {0.0}
    assert not any(row.ahead for row in found.rows)


# Lists

LISTS = ("set-margin", "gap-test", "sharp-margin", "exponential", "joint-exponential")
SCORES = [90, 85, 84, 80, 79, 9]


def test_what_is_missed_of_the_best_k_is_the_expectation():
    found = compare(SCORES, **PRICE, k=4, universe=50, mechanisms=LISTS)
    profile = Profile([(score, 1) for score in SCORES], universe=50)
    assert {one.name for one in found.rows} == {MECHANISMS[name].name for name in LISTS}
    for one in found.rows:
        size, hits = one.mechanism.expect(profile, 4)
        assert one.misses == pytest.approx(1 - hits / 4)
        assert one.size == pytest.approx(size)
        assert one.nothing == pytest.approx(1 - size / 4, abs=1e-9)
        assert one.error == 0
    assert [one.misses for one in found.rows] == sorted(one.misses for one in found.rows)


def test_a_peeled_list_by_hand():
    """Two of three at even weights: each is released with probability 2/3."""
    found = compare([5, 5, 5], epsilon=1, k=2, universe=3, mechanisms=["exponential"])
    assert row(found, "Exponential").misses == pytest.approx(0)  # all are tied with the second
    found = compare([5, 5, 1], epsilon=2, k=2, universe=3, mechanisms=["exponential"])
    low = math.exp(-4)  # each of two draws has an epsilon of 1
    first = low / (2 + low)
    second = 2 / (2 + low) * low / (1 + low)
    assert row(found, "Exponential").misses == pytest.approx((first + second) / 2, abs=1e-6)


def test_fewer_than_k_were_seen():
    found = compare([900, 800], **PRICE, k=5, mechanisms=["set-margin", "sharp-margin"])
    assert row(found, "SetMargin").misses == pytest.approx(0, abs=1e-3)
    assert row(found, "SetMargin").size == pytest.approx(2, abs=1e-2)
    nobody = compare([], **PRICE, k=5, mechanisms=["set-margin"])
    assert [(one.best, one.nothing, one.size, one.ahead) for one in nobody.rows] == [
        (0, 1, 0, False)
    ]


def test_who_had_to_be_drawn_is_named_with_an_error():
    found = compare(SCORES, epsilon="0.3", k=3, universe=9)
    drawn = row(found, "PermuteAndFlip")
    exact = row(found, "Exponential")
    assert 0 < drawn.error < 0.2
    assert abs(drawn.misses - exact.misses) < 3 * drawn.error  # they are much alike
    assert " ± " in str(found)
    assert "PermuteAndFlip: from 200 draws, ± two standard errors" in str(found)
    assert "draws" not in str(
        compare(SCORES, epsilon="0.3", k=3, universe=9, mechanisms=["exponential"])
    )


def test_an_order_is_compared_without_those_that_release_sets():
    found = compare(SCORES, **PRICE, k=4, ranked=True)
    names = {"GapTest", "RankedMargin", "SharpMargin", "LimitedDomain"}
    assert {one.name for one in found.rows} == names
    assert found.chosen.name == "RankedMargin"


def test_printed_a_comparison_of_lists_is_a_table():
    lines = str(compare(SCORES, **PRICE, k=4, mechanisms=["set-margin", "gap-test"])).splitlines()
    assert lines[0] == (
        "What each mechanism would find of the best 4 on these scores in an open universe"
    )
    assert lines[3].split() == ["mechanism", "misses", "releases", "as", "lead", "needed"]
    assert lines[4].startswith("SetMargin * †")
    assert "Misses: the average share of the best 4 that is not released." in lines
    assert max(map(len, lines)) <= 80


def test_several_k_are_compared_on_data_that_is_read_once():
    names = ["set-margin", "exponential"]
    found = compare_over(SCORES, [2, 4, 40], **PRICE, near=3, universe=9, mechanisms=names)
    assert list(found) == [2, 4]
    assert found[4] == compare(SCORES, **PRICE, k=4, universe=9, mechanisms=names)
    assert found[2] == compare(SCORES, **PRICE, k=2, near=3, universe=9, mechanisms=names)
