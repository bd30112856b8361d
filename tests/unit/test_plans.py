"""Plans: every mechanism's row, what `auto` picks, crossovers, and arguments that make no sense."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import privmax
from privmax import (
    JointExponential,
    LargeMargin,
    NestedMargin,
    PermuteAndFlip,
    Profile,
    RankedMargin,
    SetMargin,
    SharpMargin,
)
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.noise.coins import SYSTEM
from privmax.planning.plans import _LAST, _two_digits
from privmax.planning.theory import max_of_laplaces_error
from privmax.typical import typical_profiles

PRICE = {"epsilon": 1, "delta": "1e-6"}
FOR_ONE = [entry for entry in MECHANISMS.values() if not entry.for_lists]
PURE = {entry.name for entry in FOR_ONE if entry.pure}


@pytest.fixture(scope="module")
def closed():
    return privmax.plan(**PRICE, universe=10**6, near=10, growth=3)


@pytest.fixture(scope="module")
def unbounded():
    return privmax.plan(**PRICE)


@pytest.mark.slow
def test_only_the_mechanisms_asked_for_and_the_chosen_one_are_looked_at(unbounded):
    found = privmax.plan(**PRICE, mechanisms=["gap-test", "permute-and-flip"])
    assert [row.name for row in found.rows] == ["GapTest", "NestedMargin", "PermuteAndFlip"]
    assert set(found.rows) < set(unbounded.rows)
    assert found.chosen == unbounded.chosen


@pytest.mark.slow
def test_every_mechanism_has_a_row_whose_lead_is_its_own(closed):
    assert {row.name for row in closed.rows} == {entry.name for entry in FOR_ONE}
    for row in closed.rows:
        if row.lead is not None:
            assert row.lead == row.mechanism.lead(candidates=10**6, near=10)
    assert {row.name for row in closed.rows if row.lead is None} == {"GapTest", "StableMaximum"}


def test_rows_stand_in_order_of_lead(closed):
    leads = [row.lead for row in closed.rows if row.lead is not None]
    assert leads == sorted(leads)


def test_what_auto_picks_is_marked_and_explained(closed, unbounded):
    assert closed.chosen.name == "PermuteAndFlip"
    assert closed.why == privmax.auto(**PRICE, universe=10**6)[1]
    assert unbounded.chosen.name == "NestedMargin"


def test_no_lead_is_below_the_limit(closed, unbounded):
    assert closed.limit <= min(row.lead for row in closed.rows if row.lead is not None)
    assert unbounded.limit == 16


def test_pure_mechanisms_cannot_serve_an_open_universe(unbounded):
    rows = {row.name: row for row in unbounded.rows}
    assert [rows[name].lead for name in ("Exponential", "PermuteAndFlip", "MaxOfLaplaces")] == [
        None
    ] * 3
    assert all(row.silent for row in rows.values() if row.lead is not None)


def test_without_delta_only_pure_mechanisms_are_left():
    made = {
        row.name for row in privmax.plan(epsilon=1, universe=100).rows if row.mechanism is not None
    }
    assert made == PURE >= {"Exponential", "PermuteAndFlip", "MaxOfLaplaces"}


def test_without_delta_the_others_are_said_to_lack_it():
    found = privmax.plan(epsilon=1, universe=100, growth=3)
    shown = {name.removesuffix(" *"): tuple(cells) for name, *cells in found.cells()}
    for row in found.rows:
        if row.name not in PURE:
            assert (row.needs, row.lacks) == ("a delta above 0", "a delta above 0")
            assert shown[row.name] == ("–", "–", "–", "a delta above 0")
            assert row.silent == next(
                entry.abstains for entry in MECHANISMS.values() if entry.name == row.name
            )
    assert {shown[name][2:] for name in PURE} == {("no", "the universe")}


def test_who_may_stay_silent_is_told_apart(closed):
    silent = {row.name for row in closed.rows if row.silent}
    assert silent == {entry.name for entry in FOR_ONE if entry.abstains}
    assert silent >= {"NestedMargin", "SharpMargin", "GapTest"}
    assert not silent & {"Exponential", "LargeMargin"}


def test_choosing_needs_a_growth_bound_and_add_remove():
    options = {**PRICE, "universe": 100}
    assert _lead(privmax.plan(**options, growth=3), "Choosing") is not None
    assert _lead(privmax.plan(**options), "Choosing") is None
    assert _lead(privmax.plan(**options, growth=3, neighbors="replace"), "Choosing") is None


def _lead(plan, name):
    return next(row.lead for row in plan.rows if row.name == name)


@pytest.mark.slow
def test_universes_up_to_2_to_the_1000():
    plan = privmax.plan(**PRICE, universe=2**1000)
    assert _lead(plan, "NestedMargin") == 22
    assert _lead(plan, "PermuteAndFlip") == pytest.approx(1000 * math.log(2) + math.log(20), abs=2)
    assert "about 10^301" in str(plan)


@pytest.mark.slow
@pytest.mark.parametrize("universe", [50, 10**6])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_error_bound_holds_at_its_worst(universe, neighbors):
    """Everybody else stands just beyond the bound: in all they are released with probability at
    most 5 %.
    """
    plan = privmax.plan(**PRICE, universe=universe, neighbors=neighbors, growth=3)
    bounds = 0
    for row in plan.rows:
        if row.error is not None:
            law = row.mechanism.law(Profile([(row.error + 1, 1)], universe=universe))
            assert 1 - law.best() - law.none <= 0.05 + 1e-9
            bounds += 1
    assert bounds >= 9


def test_the_error_bound_of_max_of_laplaces_is_not_generous():
    bound = math.floor(max_of_laplaces_error(epsilon=1, candidates=2))
    law = privmax.MaxOfLaplaces(epsilon=1).law(Profile([(bound, 1)], universe=2))
    assert 1 - law.best() > 0.05
    assert max_of_laplaces_error(epsilon=1, candidates=1) == 0


def test_printed_it_is_a_table(closed):
    lines = str(closed).splitlines()
    assert lines[0].startswith(
        "Records by which the 10 best must lead all others in 1,000,000 candidates"
    )
    assert lines[3].split() == [
        "mechanism",
        "lead",
        "error",
        "at",
        "most",
        "may",
        "abstain",
        "must",
        "know",
    ]
    assert len({line.index("  ") > 0 for line in lines[4:15]}) == 1
    assert lines[-2].startswith("* chosen by auto")
    assert max(map(len, lines[3:15])) < 110


@pytest.mark.slow
def test_crossovers():
    flip = PermuteAndFlip(epsilon=1, neighbors="replace")
    nested = NestedMargin(**PRICE, neighbors="replace")
    size = privmax.crossover(flip, nested)
    assert nested.lead(candidates=size) < flip.lead(candidates=size)
    assert nested.lead(candidates=size - size // 10) >= flip.lead(candidates=size - size // 10)
    assert privmax.crossover(flip, privmax.Exponential(epsilon=1, neighbors="replace")) is None


def test_universes_of_two_digits_reach_from_10_to_2_to_the_1000():
    sizes = [_two_digits(step) for step in (0, 1, 89, 90, 91, _LAST)]
    assert sizes[:5] == [10, 11, 99, 100, 110]
    assert sizes[5] <= 2**1000 < _two_digits(_LAST + 1)


def test_mechanisms_by_name():
    assert build("nested-margin", **PRICE) == NestedMargin(**PRICE)
    assert build("exponential", **PRICE, k=1) == privmax.Exponential(epsilon=1)
    assert build("sharp-margin", **PRICE, k=3, growth=2) == SharpMargin(**PRICE, k=3, growth=2)
    assert {entry.name for entry in MECHANISMS.values()} <= set(privmax.__all__)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": 0}, "delta"),
        ({"universe": "closed"}, "universe"),
        ({"universe": 0}, "universe"),
        ({"universe": 2**1001}, "universe"),
        ({"near": 0}, "near"),
        ({"success": 1}, "success"),
        ({"success": "often"}, "success"),
        ({"neighbors": "swap"}, "neighbors"),
        ({"growth": 0}, "growth"),
        ({"k": 0}, "k"),
        ({"k": 2.5}, "k"),
        ({"k": 11, "universe": 10}, "k"),
        ({"k": 10, "near": 9}, "near"),
        ({"k": 10, "mechanisms": ["nested-margin"]}, "mechanisms"),
        ({"k": 10, "ranked": True, "mechanisms": ["set-margin"]}, "mechanisms"),
        ({"mechanisms": ["gap-test", "best"]}, "mechanisms"),
    ],
)
def test_bad_arguments_are_named(options, name):
    with pytest.raises(ParameterError, match=f"^{name}="):
        privmax.plan(**{**PRICE, **options})


@pytest.mark.parametrize(
    ("name", "options", "at_fault"),
    [
        ("best", PRICE, "mechanism"),
        ("limited-domain", PRICE, "rank"),
        ("stable-maximum", {**PRICE, "k": 2}, "k"),
        ("choosing", {**PRICE, "growth": 1, "neighbors": "replace"}, "neighbors"),
        ("nested-margin", {"epsilon": 1}, "delta"),
    ],
)
def test_bad_names_and_options_are_named(name, options, at_fault):
    with pytest.raises(ParameterError, match=f"^{at_fault}(=| is required)"):
        build(name, **options)


@pytest.mark.parametrize("delta", ["0", "0.0", 0])
def test_a_mechanism_that_takes_no_delta_may_be_given_none_of_it(delta):
    assert build("joint-exponential", epsilon=1, delta=delta, k=3) == JointExponential(
        epsilon=1, k=3
    )
    with pytest.raises(ParameterError, match=r"^delta="):
        build("joint-exponential", epsilon=1, delta="1e-6", k=3)


AS_IT_WAS = """\
Records by which a single winner must lead all others in 1,000,000 candidates,
to be released with probability 0.95 at epsilon 2, delta 1e-06, add-remove:

mechanism             lead  error at most  may abstain  must know
PermuteAndFlip *         9              9  no           the universe
Exponential              9              9  no           the universe
MaxOfLaplaces            9             10  no           the universe
NestedMargin             9              9  yes          nothing
StableMaximum            9              0  yes          that there is one winner
GapTest                  9              0  yes          that there is one winner
LimitedDomain           10              2  yes          how many near maximizers there can be
SharpMargin             14              6  yes          nothing
LargeMarginTruncated    49             51  no           nothing
LargeMargin             51             51  no           nothing
Choosing                 –              –  –            how many candidates one record touches

* chosen by auto: draws an item, likelier the better it is (PermuteAndFlip: the universe is closed \
and small (at most 1/delta = 1000000 candidates)).
No mechanism works with a lead below 8."""
"""Printed by a version that had no lists."""


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"k": 1}, {"k": 1, "near": 1}, {"k": 1, "ranked": True}])
def test_a_plan_for_one_is_what_it_was_before_there_were_lists(options):
    names = [name for name, entry in MECHANISMS.items() if f"\n{entry.name} " in AS_IT_WAS]
    planned = privmax.plan(
        epsilon=2, delta="1e-6", universe=10**6, mechanisms=names, **options
    )  # a new mechanism has no row there
    assert str(planned) == AS_IT_WAS


# Lists

LEADS = {
    # k = 1, 10, 100, 1000 tied at the top of an open universe
    ("GapTest", "add-remove"): (16, 16, 16, 16),
    ("GapTest", "replace"): (31, 31, 31, 31),
    ("SetMargin", "add-remove"): (None, 25, 297, 1587),
    ("SetMargin", "replace"): (None, 49, 593, 3174),
    ("SharpMargin", "add-remove"): (28, 205, 659, 2111),
    ("SharpMargin", "replace"): (55, 409, 1318, 4221),
    ("LimitedDomain", "add-remove"): (18, 155, 555, 1950),
    ("LimitedDomain", "replace"): (36, 310, 1110, 3900),
}


@pytest.mark.parametrize(
    ("place", "k"), [(0, 1), (1, 10), (2, 100), pytest.param(3, 1000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_leads_of_lists_in_an_open_universe(place, k, neighbors):
    names = ["gap-test", "set-margin", "sharp-margin", "limited-domain"]
    found = privmax.plan(**PRICE, k=k, neighbors=neighbors, mechanisms=names)
    for row in found.rows:
        expected = LEADS.get((row.name, neighbors), (None,) * 4)[place]
        if expected is not None:
            assert row.lead == expected, row.name
    assert found.limit == (16 if neighbors == "add-remove" else 31)
    assert k == 1 or found.chosen.name == "SetMargin"


@pytest.mark.slow
def test_a_plan_for_lists_has_the_mechanisms_that_release_them():
    found = privmax.plan(**PRICE, k=10, universe=10**6)
    forms = {row.name: row.form for row in found.rows}
    assert forms == {
        "GapTest": "set",
        "SetMargin": "set",
        "RankedMargin": "order",
        "Exponential": "order",
        "LimitedDomain": "order",
        "PermuteAndFlip": "order",
        "SharpMargin": "order",
        "JointExponential": "order",
    }
    assert found.chosen.name == "SetMargin"
    assert all(row.lead == row.mechanism.lead(candidates=10**6, near=10) for row in found.rows)
    assert all(row.mechanism.privacy().epsilon == 1 for row in found.rows)
    assert {row.name for row in found.rows if row.silent} == {
        "GapTest",
        "SetMargin",
        "RankedMargin",
        "LimitedDomain",
        "SharpMargin",
    }


@pytest.mark.parametrize("universe", [60, 1000, 10**6])
def test_the_row_of_the_chosen_mechanism_is_about_that_mechanism(universe):
    """auto leaves delta out where it buys nothing; the set is then never shorter than k."""
    options = {"epsilon": 1, "delta": "1e-9", "universe": universe, "k": 10}
    mechanism = privmax.auto(**options).mechanism
    row = privmax.plan(**options).chosen
    assert row.mechanism == mechanism
    assert row.lead == mechanism.lead(candidates=universe, near=10)
    without_delta = not mechanism.privacy().delta
    assert row.silent == (not without_delta)
    assert row.needs == ("the universe" if without_delta else "nothing")
    assert without_delta == (universe < 10**6)


def test_an_order_is_planned_for_without_those_that_release_sets():
    found = privmax.plan(**PRICE, k=10, ranked=True)
    assert {row.name for row in found.rows if row.lead is not None} == {
        "GapTest",
        "RankedMargin",
        "LimitedDomain",
        "SharpMargin",
    }
    assert found.chosen.name == "RankedMargin"
    assert {row.form for row in found.rows if row.lead is not None} == {"order"}
    assert found.rows[0].needs == "that each leads the next"
    assert "an order needs a lead of 41 records, a set 25" in str(found)
    assert "for all 10 to be released in order" in str(found)


def test_without_delta_a_set_is_drawn_from_all_and_always_released():
    found = privmax.plan(epsilon=1, k=10, universe=10**6)
    leads = {row.name: row.lead for row in found.rows}
    assert (leads["SetMargin"], found.limit) == (126, 125)
    assert found.chosen.name == "Exponential"  # it misses less on typical scores
    assert (found.chosen.silent, found.chosen.needs) == (False, "the universe")
    assert {row.lacks for row in found.rows} == {None, "a delta above 0"}


def test_a_small_universe_is_drawn_from_at_once():
    """200 and twice k: wide enough for all, so nothing is no answer."""
    few, many = (privmax.plan(**PRICE, k=5, universe=size) for size in (210, 211))
    assert {one.name: one.silent for one in few.rows}["RankedMargin"] is False
    assert {one.name: one.silent for one in many.rows}["RankedMargin"] is True


def test_more_may_be_tied_than_are_released():
    found = privmax.plan(**PRICE, k=3, near=5, mechanisms=["gap-test", "set-margin"])
    leads = {row.name: row.lead for row in found.rows}
    assert leads["GapTest"] is None
    assert leads["SetMargin"] > 16
    assert "Records by which the 5 best must lead" in str(found)
    assert "for 3 of them to be released with probability" in str(found)


def test_printed_a_plan_for_lists_says_what_is_released():
    lines = str(privmax.plan(**PRICE, k=10)).splitlines()
    assert lines[0].startswith("SetMargin * misses ")
    assert lines[2].startswith("for all 10 to be released with probability 0.95 at epsilon 1")
    assert lines[4].split("  ")[0] == "mechanism"
    assert "GapTest             16  set       yes" in lines[5]
    assert lines[-1].endswith("No mechanism works with a lead below 16.")


def test_a_plan_at_a_tiny_epsilon_ends_and_says_whose_law_would_not():
    rows = {row.name: row for row in privmax.plan(epsilon="1e-5", delta="1e-6").rows}
    assert rows["NestedMargin"].lead > 10**6
    assert (rows["LargeMargin"].lead, rows["LargeMargin"].lacks) == (None, "a larger epsilon")
    with pytest.raises(ParameterError, match="exact law of LargeMargin would take about 5e"):
        LargeMargin(epsilon="1e-5", delta="1e-6").law(Profile([(10**7, 1)]))
    draw = LargeMargin(epsilon="1e-5", delta="1e-6").draw(Profile([(10**9, 1)]), SYSTEM)
    assert draw.score == 10**9  # a draw needs no law


@pytest.mark.parametrize(("ranked", "kind"), [(False, SetMargin), (True, RankedMargin)])
def test_what_is_missed_of_a_list_comes_before_its_lead(ranked, kind):
    found = privmax.plan(**PRICE, k=7, ranked=ranked, mechanisms=[])
    mechanism = kind(**PRICE, k=7)
    missed = [1 - mechanism.expect(one, 7)[1] / 7 for one in typical_profiles(7, None, Fraction(1))]
    assert found.misses == pytest.approx(sum(missed) / len(missed), abs=5e-4)
    first = str(found).splitlines()[0]
    assert first == (
        f"{kind.__name__} * misses {100 * found.misses:.1f} % of the best 7, on average over "
        "typical scores (privmax help choosing)."
    )
    assert first in found._repr_html_()


def test_where_misses_are_not_shown():
    one = privmax.plan(**PRICE, mechanisms=[])
    closed = privmax.plan(**PRICE, universe=1000, k=4, mechanisms=[])
    assert one.misses is closed.misses is None
    assert all(str(plan).startswith("Records by which") for plan in (one, closed))
    assert "what is missed on typical scores" in closed.why
    many = privmax.plan(**PRICE, k=201, mechanisms=[])
    assert many.misses is None
    assert str(many).startswith(
        "What SetMargin * misses of the best 201 is not shown: above 200 it takes long"
    )
    assert privmax.plan(**PRICE, k=200, mechanisms=[]).misses > 0
