"""Plans for keys: numbers from exact laws, and what is refused."""

from __future__ import annotations

from math import erfc, fsum, sqrt

import pytest

import privmax
from privmax import GapTest
from privmax.errors import ParameterError
from privmax.keyset import plans
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
    over = plan_keys_over([1, 2, 5], **PRICE)
    figure = keys_needed(over, marked=2)
    assert "individuals that a key must have" in svg(figure)
    lines = figure.axes[0].get_lines()[1:]
    assert len({line.get_linestyle() for line in lines}) == len(lines) == 4  # without color


@pytest.mark.parametrize(
    "options",
    [
        {"per_user": 0},
        {"per_user": 10**6},
        {"delta": 0},
        {"epsilon": 0},
        {"epsilon": "1e-7"},
        {"epsilon": 10**7},
        {"epsilon": "1e-6", "delta": "1e-300"},
        {"success": 1},
    ],
    ids=str,
)
def test_wrong_options_are_named(options):
    with pytest.raises(ParameterError) as refused:
        plan_keys(**{**PRICE, **options})
    assert refused.value.name in options


def test_a_plan_at_a_small_epsilon_asks_for_few_chances(monkeypatch):
    """Millions of individuals are needed then, and one key of each of 30 counts for one of 30."""
    asked = []
    chance = GapTest.chance
    monkeypatch.setattr(GapTest, "chance", lambda *given: asked.append(given) or chance(*given))
    found = rows(epsilon="1e-5", per_user=30)[ONE_EACH]
    assert len(asked) < 10**5
    assert 30 * found.single < found.several < 30 * found.single * 1.01


@pytest.mark.parametrize(
    ("people", "per_user"),
    [(1, 200), (10, 2), (5000, 30), (10**6, 7), (10**11, 65536), (10**15, 2)],
)
def test_chances_to_be_chosen_are_binomial(people, per_user):
    chances = list(plans._binomial(people, per_user, people + 1))
    assert len(chances) < 3000
    assert fsum(chance for _, chance in chances) == pytest.approx(1, abs=1e-5)
    mean, sure = people / per_user, 1 - 1 / per_user
    assert fsum(count * chance for count, chance in chances) == pytest.approx(mean, rel=1e-5)
    spread = fsum((count - mean) ** 2 * chance for count, chance in chances)
    assert spread == pytest.approx(mean * sure, rel=1e-4)
