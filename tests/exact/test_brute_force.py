"""Every mechanism in the registry under the auditor of `brute_force.py`, and what that one
refuses.
"""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

import privmax
from privmax.mechanisms.registry import MECHANISMS, build

pytestmark = pytest.mark.slow


def sibling(name):
    """A file beside this one, which is no test."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


brute_force, labelled_sets = sibling("brute_force"), sibling("labelled_sets")
LABELS, Setting, audit, public_law = (
    getattr(brute_force, name) for name in ("LABELS", "Setting", "audit", "public_law")
)

GENEROUS = {"epsilon": 6, "delta": "0.3"}
"""At which the paper's mechanism answers on small data."""

CASES = {
    "exponential": [{"epsilon": 1}, {"epsilon": 1, "k": 2}],
    "permute-and-flip": [{"epsilon": 1}, {"epsilon": 1, "k": 2}],
    "max-of-laplaces": [{"epsilon": 1}],
    "joint-exponential": [{"epsilon": 1, "k": 1}, {"epsilon": 1, "k": 2}],
    "large-margin": [{**GENEROUS, "cap": 5}],
    "large-margin-truncated": [{**GENEROUS, "cap": 5}],
    "sharp-margin": [
        {
            "epsilon": 1,
            "delta": "0.05",
            "guards": privmax.Guards((1, 2), (1, 1), share="0.2", full=1),
        },
        {"epsilon": 1, "delta": "0.05", "growth": 1},
        {"epsilon": 1, "delta": "0.05", "k": 2},
    ],
    "nested-margin": [
        {"epsilon": 1, "delta": "0.05"},
        {"epsilon": 1, "delta": "0.05", "ranks": (2,)},
        {"epsilon": 1, "delta": "0.05", "ranks": (1, 2), "growth": 1},
    ],
    "set-margin": [
        {"epsilon": 1, "delta": "0.05"},
        {"epsilon": 1, "delta": "0.05", "k": 2},
        {
            "epsilon": 1,
            "delta": "0.05",
            "k": 2,
            "stages": (
                privmax.Stage(2, 2, silence="0.3", part="0.4"),
                privmax.Stage(2, 4, silence="0.2", part="0.3"),
                privmax.Stage(1, 2, silence=1, part="0.3"),
            ),
        },
    ],
    "limited-domain": [
        {"epsilon": 1, "delta": "0.05", "rank": 1},
        {"epsilon": 1, "delta": "0.05", "rank": 2, "growth": 1},
        {"epsilon": 1, "delta": "0.05", "rank": 2, "k": 2},
    ],
    "stable-maximum": [{"epsilon": 1, "delta": "0.05"}],
    "gap-test": [{"epsilon": 1, "delta": "0.05"}, {"epsilon": 1, "delta": "0.05", "k": 2}],
    "choosing": [
        {"epsilon": 1, "delta": "0.05", "growth": 1},
        {"epsilon": 1, "delta": "0.05", "growth": 3},
    ],
}
"""Mechanisms, as they are made for this; others as the example of the registry is made."""

MORE_RELEASED = {"large-margin", "large-margin-truncated", "sharp-margin"}
"""Mechanisms that release something beside the item, which `privmax.audit` compares as well."""

SLOW = {"large-margin", "large-margin-truncated"}
"""Those on fewer data."""


def settings(name, options):
    """Universes, relations, sensitivities and grids in which a mechanism can be run."""
    universes = ["closed"] if MECHANISMS[name].needs_closed else ["closed", "open"]
    relations = (
        ["add-remove", "replace"] if "neighbors" in MECHANISMS[name].parameters else ["add-remove"]
    )
    growth = options.get("growth", len(LABELS))
    for universe in universes:
        for neighbors in relations:
            yield Setting(universe, neighbors, growth=growth, highest=1 if name in SLOW else 2)
        if name not in SLOW or universe == "closed":
            relation = relations[0] if name in SLOW else relations[-1]
            yield Setting(universe, relation, sensitivity=2, growth=growth, highest=1)
            yield Setting(
                universe, relations[0], sensitivity=2, growth=growth, highest=1, step="0.25"
            )


def marks(name, setting):
    """Most pairs are those of labels that are all known, but for one step added or removed."""
    least = setting.sensitivity == 1 and setting.neighbors == "add-remove"
    many = setting.universe == "closed" and (not least or name in SLOW)
    return [pytest.mark.slow] if many else []


ALL = [
    pytest.param(
        name, options, setting, id=f"{name}-{options}-{setting}", marks=marks(name, setting)
    )
    for name, entry in MECHANISMS.items()
    for options in CASES.get(name, [entry.example_options()])
    for setting in settings(name, options)
]


def made(name, options, setting):
    relation = (
        {"neighbors": setting.neighbors} if "neighbors" in MECHANISMS[name].parameters else {}
    )
    return build(name, **options, **relation)


def law_by_label(mechanism, setting):
    """The public law of an item, or the law of the set that is released."""
    if mechanism.ranked:
        return public_law(mechanism, setting)

    @cache
    def law(steps):
        [told] = mechanism.sets(setting.profile(steps)).values()
        table = labelled_sets.stated(told, steps, is_open=setting.universe == "open")
        return brute_force.chances(table, told.error)

    return law


def test_every_mechanism_of_the_registry_is_audited():
    assert MECHANISMS
    assert CASES.keys() <= MECHANISMS.keys()
    assert all(CASES.values())
    assert {parameter.values[0] for parameter in ALL} == set(MECHANISMS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "setting"), ALL)
def test_a_mechanism_stays_within_its_price_and_both_audits_agree(name, options, setting):
    mechanism = made(name, options, setting)
    price = mechanism.privacy()
    law = law_by_label(mechanism, setting)
    found = audit(law, setting, price.epsilon)
    assert found.pairs >= 100
    assert not found.breaks(price)
    if name in SLOW and setting.sensitivity > 1:
        return
    less = privmax.Privacy(price.epsilon / 4, price.delta)  # at which both have something to find
    ours, theirs = (
        audit(law, setting, less.epsilon),
        privmax.audit(
            mechanism,
            scores=list(setting.data_sets()),
            universe=setting.universe,
            sensitivity=setting.sensitivity,
            growth=setting.growth,
            claim=less,
        ),
    )
    assert ours.pairs == theirs.pairs
    assert theirs.delta >= float(ours.least)
    if name not in MORE_RELEASED and (mechanism.k == 1 or not mechanism.ranked):
        assert theirs.delta == pytest.approx(float(ours.delta), abs=1e-9)
        assert theirs.holds == (not ours.breaks(less))


@pytest.mark.slow
def test_the_audits_agree_on_something():
    """Half of the mechanisms above break a quarter of their price on these data, and both audits
    see it.
    """
    broken = 0
    for name, (options, *_) in CASES.items():
        setting = Setting(highest=1)
        mechanism = made(name, options, setting)
        less = privmax.Privacy(mechanism.privacy().epsilon / 4, mechanism.privacy().delta)
        broken += audit(public_law(mechanism, setting), setting, less.epsilon).breaks(less)
    assert broken >= len(CASES) / 2


# What it refuses.


def refused(mechanism, setting, claim=None, law=None):
    claim = claim or mechanism.privacy()
    return audit(law or public_law(mechanism, setting), setting, claim.epsilon).breaks(claim)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        privmax.Exponential(epsilon=1),
        privmax.PermuteAndFlip(epsilon=1),
        privmax.LimitedDomain(epsilon=1, delta="1e-6", rank=3),
    ],
    ids=repr,
)
def test_it_refuses_constants_for_add_remove_under_replace(mechanism):
    assert not refused(mechanism, Setting())
    assert refused(mechanism, Setting(neighbors="replace"))


def test_it_refuses_a_price_that_is_not_paid():
    mechanism = privmax.Exponential(epsilon=1)
    assert refused(mechanism, Setting(), claim=privmax.Privacy("0.9"))
    assert refused(
        privmax.GapTest(epsilon=1, delta="0.05"), Setting(), claim=privmax.Privacy(1, "0.04")
    )


def test_it_refuses_a_record_that_touches_more_than_was_said():
    for mechanism in (
        privmax.Choosing(epsilon=2, delta="0.1", growth=1),
        privmax.LimitedDomain(epsilon=1, delta="0.05", rank=2, growth=1),
    ):
        assert not refused(mechanism, Setting("open", growth=1))
        assert refused(mechanism, Setting("open", growth=3))


@pytest.mark.parametrize("step", [None, "0.25"])
def test_it_refuses_a_sensitivity_that_is_too_low(step):
    mechanism = privmax.Exponential(epsilon=1)
    told, true = Setting(step=step, highest=1), Setting(step=step, highest=1, sensitivity=2)
    assert not refused(mechanism, told)
    assert refused(mechanism, true, law=public_law(mechanism, told))


def by_label(table_of):
    """A law of our own making, from the data as a user has it."""
    return lambda steps: brute_force.chances(table_of(Setting().data(steps)), 1e-12)


def test_it_refuses_a_universe_taken_from_the_data():
    mechanism = privmax.Exponential(epsilon=1)

    def observed(data):
        return privmax.law(data, mechanism=mechanism, universe=list(data)) if data else {None: 1.0}

    assert refused(mechanism, Setting(highest=1), claim=privmax.Privacy(5), law=by_label(observed))


def test_it_refuses_to_take_for_a_law_what_does_not_add_up():
    with pytest.raises(brute_force.NoLawError, match=r"add up to 0\.6"):
        refused(
            None,
            Setting(),
            claim=privmax.Privacy("0.1"),
            law=by_label(lambda data: {max(data, default="a"): 0.6}),
        )

    class Forgetful(privmax.Exponential):
        """Names somebody in 60 % of cases; by label the rest looks like no answer."""

        def law(self, profile):
            return super().law(profile).scale(0.6)

    with pytest.raises(brute_force.NoLawError, match=r"add up to 0\.6"):
        refused(Forgetful(epsilon="0.1"), Setting())
    with pytest.raises(brute_force.NoLawError, match="is not one"):
        refused(
            None,
            Setting(),
            claim=privmax.Privacy(1),
            law=by_label(lambda data: {"a": 1.5, "b": -0.5}),
        )


@pytest.mark.parametrize("rare", [1e-3, 1e-9])
def test_it_refuses_somebody_who_is_never_named_where_there_is_no_delta(rare):
    def law(data):
        last = 0.0 if data.get("c", 0) < 0 else rare
        return {"a": (1 - last) / 2, "b": (1 - last) / 2, "c": last}

    assert refused(None, Setting(), claim=privmax.Privacy(30), law=by_label(law))
    assert not refused(None, Setting(), claim=privmax.Privacy(30, "0.01"), law=by_label(law))


def test_it_refuses_to_name_whoever_nobody_has_seen_before_without_delta():
    mechanism = privmax.NestedMargin(epsilon=1, delta="0.05")
    found = audit(public_law(mechanism, Setting("open")), Setting("open"), Fraction(1))
    assert found.vanished is not None
    assert found.breaks(privmax.Privacy(1))
    assert not found.breaks(privmax.Privacy(1, "0.05"))


def test_it_refuses_to_compare_nothing():
    with pytest.raises(ValueError, match="nothing was compared"):
        audit(
            public_law(privmax.Exponential(epsilon=1), Setting()), Setting(highest=-1), Fraction(1)
        )


def test_e_to_the_epsilon_is_enclosed():
    low, high = brute_force.power(Fraction(1))
    exact = Fraction(271828182845904523536028747135266249775724709369995, 10**50)
    assert low < exact < high
    assert high - low < Fraction(1, 10**48)
