"""Plans for keys: numbers from exact laws, and what is refused."""

from __future__ import annotations

from math import erfc, sqrt

import pytest

import privmax
from privmax.errors import ParameterError
from privmax.keyset.budget import ONE
from privmax.keyset.plans import ALIKE, ALONE, ONE_EACH, ONE_ROUND, plan_keys, plan_keys_over
from privmax.keyset.rounds import KeyRounds
from privmax.one_key_each import OneKeyEach
from privmax.plots import keys_needed, svg

PRICE = {"epsilon": 1, "delta": "1e-6"}


def rows(**options):
    return {row.name: row for row in plan_keys(**{**PRICE, **options}).rows}


def test_one_key_each_is_the_law_of_the_gap_test():
    chance = OneKeyEach(**PRICE).test.chance
    needed = rows(per_user=20)[ONE_EACH].single
    assert chance(needed) >= 0.95 > chance(needed - 1)
    assert rows(per_user=1)[ONE_EACH].several == needed


def test_the_last_round_is_the_law_of_its_noise():
    last = KeyRounds(epsilon="0.99", delta="1e-6", per_user=20, slots=20).last
    sigma, threshold = sqrt(last.variance) / ONE, last.threshold / ONE
    for name, weight in ((ALIKE, 1 / sqrt(20)), (ALONE, 1)):
        needed = rows(per_user=20)[name].several

        def chance(people, weight=weight):
            return erfc((threshold - people * weight) / sigma / sqrt(2)) / 2

        assert chance(needed) >= 0.95 > chance(needed - 1)


def test_more_keys_and_more_certainty_need_more_individuals():
    few, many = rows(per_user=5), rows(per_user=50)
    assert few[ONE_ROUND].several < many[ONE_ROUND].several
    assert few[ONE_EACH].several < many[ONE_EACH].several
    sure = rows(per_user=5, success="0.999")
    assert all(sure[name].several > few[name].several for name in few)


def test_a_plan_is_a_table_of_text_and_html():
    found = privmax.plan_keys(**PRICE, per_user=20)
    assert isinstance(found, privmax.KeyPlan)
    lines = str(found).splitlines()
    assert lines[0] == "Individuals that a key must have to be found"
    assert max(map(len, lines)) <= 80
    assert "20 keys each" in found._repr_html_()


def test_a_picture_is_drawn_over_the_keys_of_an_individual():
    plans = plan_keys_over([1, 2, 5], **PRICE)
    assert "individuals that a key must have" in svg(keys_needed(plans, marked=2))


@pytest.mark.parametrize(
    "options",
    [{"per_user": 0}, {"per_user": 10**6}, {"delta": 0}, {"epsilon": 0}, {"success": 1}],
    ids=str,
)
def test_wrong_options_are_named(options):
    with pytest.raises(ParameterError) as refused:
        plan_keys(**{**PRICE, **options})
    assert refused.value.name in options
