"""The rules against exact compositions: no price below the truth, none that ever falls."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from rounding import MODES, rounding

from privmax.composition import price_by_concentration
from privmax.errors import LedgerError, ParameterError
from privmax.ledger import RULES, Charge, Ledger
from privmax.ledger.rules import (
    BITS,
    DIFFERENT,
    ROOM,
    STEPS,
    Conversion,
    _epsilon_of_responses,
    close,
    less,
    rule_for,
    short,
    total_of,
)
from privmax.losses import response_epsilon
from privmax.noise.balls import ball, precision
from privmax.numbers import exact
from privmax.privacy import Privacy

patient = settings(deadline=None, max_examples=40)  # a busy machine is no failure
BUDGET = Privacy(10, "1e-5")
SLACK = Fraction("1e-5") / 2


def total(rule, prices, budget=BUDGET):
    return reduce(RULES[rule].add, prices, RULES[rule].start(budget))


def times(number, epsilon, delta=0, *, bounded_range=False):
    return [Charge(Privacy(epsilon, delta), bounded_range)] * number


def hockey_stick(counts, epsilon):
    """The exact delta at which so many randomized responses of each epsilon are `epsilon`-private
    together.

    Randomized response is the worst of all e-private mechanisms: its losses are e and -e.
    """
    with precision(300):
        mass = {Fraction(0): arb(1)}
        for each, number in counts.items():
            likely = 1 / (1 + (-ball(each)).exp())
            part = {
                each * (2 * k - number): math.comb(number, k)
                * likely**k
                * (1 - likely) ** (number - k)
                for k in range(number + 1)
            }
            joined: dict[Fraction, arb] = {}
            for one, weight in mass.items():
                for other, factor in part.items():
                    joined[one + other] = joined.get(one + other, arb(0)) + weight * factor
            mass = joined
        rest = (
            weight * (1 - (ball(epsilon - loss)).exp())
            for loss, weight in mass.items()
            if loss > epsilon
        )
        return sum(rest, arb(0))


def test_the_exact_delta_of_one_response_is_known():
    e = math.e
    assert float(hockey_stick({Fraction(1): 1}, Fraction(0))) == pytest.approx((e - 1) / (e + 1))
    assert hockey_stick({Fraction(1): 1}, Fraction(1)) == 0
    assert float(hockey_stick({Fraction(1): 2}, Fraction(1))) == pytest.approx(
        (e / (1 + e)) ** 2 * (1 - 1 / e)
    )


# Sums


def test_basic_adds():
    assert total("basic", times(10, "1/10", "1e-6")).spent == Privacy(1, "1e-5")
    assert total("basic", [Charge(Privacy("1/3")), Charge(Privacy(0.5, 1e-6))]).spent == Privacy(
        "5/6", 1e-6
    )


def test_delta_does_not_exceed_one():
    assert total("basic", times(3, 0, "0.4")).spent == Privacy(0, 1)


@given(st.fractions(min_value=0, max_denominator=10**80) | st.floats(0, 1e9).map(Fraction))
def test_a_long_number_is_rounded_up_by_almost_nothing(number):
    near = short(number)
    assert number <= near < number + Fraction(1, 1 << BITS)
    assert near.denominator.bit_length() <= BITS + 1
    assert near == number or number.denominator.bit_length() > BITS


def test_a_history_of_odd_numbers_stays_short():
    prices = [Charge(Privacy(Fraction(1, 10**6 + n), Fraction(1, 10**9 + n))) for n in range(100)]
    for rule in ("basic", "zcdp"):
        spent = total(rule, prices).spent
        assert len(str(spent.epsilon)) < 130
        assert len(str(spent.delta)) < 130


# Concentration


@pytest.mark.parametrize("bounded_range", [True, False])
def test_equal_charges_cost_what_the_composition_theorem_says(bounded_range):
    spent = total("zcdp", times(200, "1/10", bounded_range=bounded_range)).spent
    with precision(200):
        stated = price_by_concentration(
            200, Fraction(1, 10) if bounded_range else Fraction(1, 5), SLACK
        )
        assert stated <= ball(spent.epsilon)
        assert ball(spent.epsilon) < stated + ball(Fraction(1, 10**12))
    assert spent.delta == SLACK


@pytest.mark.slow
def test_draws_of_bounded_range_are_cheaper_only_without_a_delta():
    costs = [
        total("zcdp", times(200, "1/10", delta, bounded_range=r)).spent
        for delta in (0, "1e-9")
        for r in (True, False)
    ]
    assert costs[0].epsilon < costs[1].epsilon == costs[2].epsilon == costs[3].epsilon


def test_one_charge_costs_itself():
    assert total("zcdp", times(1, "1/10", "1e-7")).spent == Privacy(
        "1/10", SLACK + Fraction("1e-7")
    )


def test_the_slack_is_spent_with_the_first_charge_and_once():
    assert RULES["zcdp"].start(BUDGET).spent == Privacy(0)
    assert total("zcdp", times(1, 0)).spent == Privacy(0, SLACK)
    assert total("zcdp", times(50, "1/10", "1e-8")).spent.delta == SLACK + 50 * Fraction("1e-8")


def test_a_grant_leaves_the_slack_as_it_was():
    raised = RULES["zcdp"].start(BUDGET).grant(Privacy(10, "1e-3"))
    assert RULES["zcdp"].add(raised, Charge(Privacy(1))).spent == Privacy(1, SLACK)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["zcdp", "pld"])
@pytest.mark.parametrize(
    "counts",
    [
        {"1/10": 40},
        {"1/50": 90},
        {"1/2": 12},
        {"1/5": 10, "1/20": 30},
        {"1/3": 9, "1/7": 11, "0.001": 3},
        {"2": 3},
    ],
    ids=str,
)
def test_no_price_is_below_the_exact_one(rule, counts):
    exact = {Fraction(epsilon): number for epsilon, number in counts.items()}
    spent = total(
        rule, [price for epsilon, number in exact.items() for price in times(number, epsilon)]
    ).spent
    assert spent.epsilon <= sum(epsilon * number for epsilon, number in exact.items())
    assert hockey_stick(exact, spent.epsilon) <= ball(SLACK)


@pytest.mark.slow
def test_the_exact_delta_refuses_a_price_that_is_too_low():
    """Responses charged as if their range were bounded by epsilon, and a price a little too low."""
    cheap = total("zcdp", times(60, "1/10", bounded_range=True)).spent.epsilon
    assert hockey_stick({Fraction(1, 10): 60}, cheap) > ball(SLACK)
    tight = total("pld", times(40, "1/10")).spent.epsilon
    assert hockey_stick({Fraction(1, 10): 40}, tight * Fraction(97, 100)) > ball(SLACK)


def test_a_budget_without_enough_delta_cannot_be_concentrated():
    for rule, delta in (("zcdp", 0), ("zcdp", "1e-70"), ("pld", 0), ("pld", "1e-70")):
        with pytest.raises(
            ParameterError, match=f"^delta=.*the rule {rule} needs a delta of at least"
        ):
            rule_for(rule, Privacy(1, delta))
    assert rule_for("basic", Privacy(1)).name == "basic"


def test_an_account_without_delta_is_charged_sums():
    spent = total("zcdp", times(300, "1/100"), Privacy(10)).spent
    assert spent == Privacy(3)


def test_huge_prices_cost_their_sum():
    for rule in ("zcdp", "pld"):
        assert total(rule, times(2, 10**9)).spent.epsilon == 2 * 10**9


def test_charges_that_are_too_many_for_distributions_are_not_convolved(monkeypatch):
    def refuse(*_):
        raise AssertionError("this would take long")

    monkeypatch.setattr("privmax.losses.response_epsilon", refuse)
    assert RULES["pld"]._epsilon({str(STEPS): 1000}, SLACK) is None


def test_numbers_of_thousands_of_digits_are_refused():
    with pytest.raises(ParameterError, match="digits"):
        Charge(Privacy(Fraction(10**5000)))
    with pytest.raises(ParameterError, match="digits"):
        total("zcdp", times(1, Fraction(10**5000)))


# Distributions


@pytest.mark.slow
def test_distributions_are_tighter_than_concentration():
    prices = times(40, "1/10")
    assert (
        total("pld", prices).spent.epsilon < Fraction(95, 100) * total("zcdp", prices).spent.epsilon
    )


def test_the_order_of_charges_does_not_matter_to_distributions():
    one, other = times(5, "1/3", "1e-9"), times(10, "1/10")
    assert close(total("pld", one + other).spent, total("pld", other + one).spent)


def test_small_epsilons_are_rounded_up_to_the_grid():
    assert total("pld", times(3, Fraction(1, 10**9))).state["tally"] == {"1": 3}
    assert total("pld", times(3, 0)).state["tally"] == {"0": 3}
    assert total("pld", times(3, Fraction(1, 10**9))).spent.epsilon == Fraction(3, 10**9)


def test_the_rule_needs_no_other_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with Ledger.create(tmp_path / "budget.db", budget=BUDGET, rule="pld") as ledger:
        for _ in range(40):
            ledger.charge(Charge(Privacy("1/10")), {})
        assert ledger.spent.epsilon < 3


# What other machines and older versions recorded


OLD = {
    "5e-6": {
        "820 40": "3195810732380128682674609665/1237940039285380274899124224",
        "512 30 77 10": "6472477148755120179727123729/4951760157141521099596496896",
        "4096 3 9000 2": "9153895144291292446635808661/2475880078570760549798248448",
        "30037 1 27505 1": "2173873656657505749725876265/309485009821345068724781056",
        "1 500": "8747243221215316635932377689/1267650600228229401496703205376",
    },
    "5e-10": {
        "820 40": "8644250467092581856362352001/2475880078570760549798248448",
        "512 30 77 10": "8772037160793322569841747047/4951760157141521099596496896",
        "4096 3 9000 2": "9153986297032530485879881277/2475880078570760549798248448",
        "30037 1 27505 1": "2173875297096526552129976911/309485009821345068724781056",
        "1 500": "8213007721794905822511949917/633825300114114700748351602688",
    },
}
"""By the slack: what version 0.2.0 computed with dp-accounting 0.6.0 for so many charges of so many
steps each.
"""


def before_and_after(tally, slack):
    """The totals before and after the last charge of a tally."""
    numbers = [int(number) for number in tally.split()]
    charges = [
        charge
        for steps, many in zip(numbers[::2], numbers[1::2], strict=True)
        for charge in times(many, Fraction(steps, STEPS))
    ]
    budget = Privacy(100, 2 * Fraction(slack))
    rule = RULES["pld"]
    whole = rule.start(budget)
    for charge in charges[:-1]:  # only what is compared is computed
        whole = replace(whole.bind(charge), state=rule._add_price(whole.state, charge))
    whole = replace(whole, spent=Privacy(0, budget.delta / 2))
    return whole, charges[-1], rule.add(whole, charges[-1])


def recorded_as(total, epsilon):
    return replace(total, spent=Privacy(epsilon, total.spent.delta))


@pytest.mark.parametrize(
    ("slack", "tally", "epsilon"),
    [(slack, *pair) for slack, found in OLD.items() for pair in found.items()],
)
def test_what_older_versions_recorded_is_accepted(slack, tally, epsilon):
    before, charge, after = before_and_after(tally, slack)
    assert RULES["pld"].counts(before, charge, recorded_as(after, Fraction(epsilon)))
    assert after.spent.epsilon <= Fraction(epsilon)  # less is spent now


@pytest.mark.parametrize("tally", ["820 40", "512 30 77 10", "4096 3 9000 2"])
def test_only_what_is_proved_here_is_accepted_and_not_much_more(tally):
    before, charge, after = before_and_after(tally, SLACK)
    proved = _epsilon_of_responses(after.state["tally"], SLACK)
    left = _epsilon_of_responses(after.state["tally"], SLACK * (1 - ROOM))
    assert proved < left == after.spent.epsilon
    unit, much = Fraction(1, 1 << 64), Fraction(1, 1000)
    for epsilon, right in (
        (proved, True), (left, True), (proved - unit, False), (left + much, False), (0, False),
    ):  # fmt: skip
        recorded = recorded_as(after, Fraction(epsilon))
        assert RULES["pld"].counts(before, charge, recorded) is right, float(epsilon)
    least = {Fraction(n, STEPS): many for n, many in pairs_of(after.state["tally"])}
    assert hockey_stick(least, proved) <= ball(SLACK)
    assert hockey_stick(least, proved - 2 * unit) > ball(SLACK * (1 - Fraction(1, 1 << 27)))


def pairs_of(tally):
    return [(int(steps), many) for steps, many in tally.items()]


def test_a_cost_that_fell_is_refused():
    before, charge, after = before_and_after("820 40", SLACK)
    before = recorded_as(before, after.spent.epsilon + Fraction(1, 1 << 60))
    assert RULES["pld"].add(before, charge).spent.epsilon == before.spent.epsilon
    assert not RULES["pld"].counts(before, charge, recorded_as(after, after.spent.epsilon))


MIXED = [Charge(Privacy(Fraction(200 + 7 * (n % 9), 10_000))) for n in range(120)]


@pytest.mark.slow
@pytest.mark.parametrize("writer", MODES)
def test_machines_that_round_otherwise_go_on_with_each_other(tmp_path, writer):
    """Each reads, verifies and adds to what the other recorded, to the last bit as it is."""
    readers = [mode for mode in MODES if mode != writer]
    with Ledger.create(tmp_path / "budget.db", budget=BUDGET, rule="pld"):
        pass
    for turn in range(3):
        for mode in (writer, *readers):
            with Ledger(tmp_path / "budget.db") as ledger, computing(mode):
                for charge in MIXED[40 * turn : 40 * turn + 10]:
                    ledger.charge(charge, {}).record("x")
                assert ledger.verify() == []


@contextmanager
def computing(mode):
    """Compute losses, and nothing else, as a processor would that rounds otherwise."""
    with pytest.MonkeyPatch.context() as patch:

        def compute(*given):
            with rounding(mode):
                return response_epsilon(*given)

        patch.setattr("privmax.losses.response_epsilon", compute)
        yield


@pytest.mark.parametrize("part", [Fraction(-1, 10**6), Fraction(1, 1000)], ids=["less", "more"])
def test_a_machine_that_is_wrong_is_not_gone_on_with(tmp_path, part, monkeypatch):
    file = tmp_path / "budget.db"
    with Ledger.create(file, budget=BUDGET, rule="pld") as ledger, monkeypatch.context() as patch:
        for charge in MIXED[:60]:
            ledger.charge(charge, {})
        patch.setattr(
            "privmax.losses.response_epsilon",
            lambda *given: response_epsilon(*given) * (1 + part),
        )
        ledger.charge(MIXED[60], {})
    with Ledger(file) as ledger:
        assert [fault.seq for fault in ledger.verify()] == [62]
        with pytest.raises(LedgerError, match="Event 62 of the ledger 'default' does not follow"):
            ledger.charge(MIXED[0], {})


# All rules


@pytest.mark.parametrize("name", RULES)
def test_a_rule_knows_what_counts_one_more_charge(name):
    rule, price = RULES[name], Charge(Privacy("1/10", "1e-8"))
    before = total(name, times(20, "1/10"))
    later = total_of(
        json.loads(json.dumps(rule.add(before, price).as_json()))
    )  # as it is read back
    assert rule.counts(before, price, later)
    for wrong in (
        before,
        replace(later, state=before.state, spent=before.spent),
        replace(later, spent=Privacy(before.spent.epsilon / 2, later.spent.delta)),
        replace(later, spent=Privacy(later.spent.epsilon, before.spent.delta / 2)),
        replace(later, budget=later.budget + Privacy(1)),
        rule.add(later, price),
        *(replace(later, state={**later.state, key: "0"}) for key in later.state),
    ):
        assert not rule.counts(before, price, wrong)
    assert not rule.counts(before, Charge(Privacy("1/9", "1e-8")), later)


@pytest.mark.parametrize("name", RULES)
def test_costs_under_different_relations_do_not_count(name):
    rule, other = RULES[name], Charge(Privacy("1/10"), neighbors="replace")
    before = total(name, times(1, "1/10"))
    assert not rule.counts(before, other, rule.add(before, other))


prices = st.lists(
    st.builds(
        Charge,
        st.builds(
            Privacy,
            st.sampled_from(["0", "1/10", "1/3", "2"]) | st.floats(0, 1),
            st.sampled_from([0, "1e-7"]) | st.floats(0, 1e-7),
        ),
        st.booleans(),
    ),
    max_size=40,
)


@pytest.mark.slow
@patient
@given(prices, st.sampled_from(["basic", "zcdp"]))
def test_what_is_spent_never_falls_and_is_never_above_the_sum(prices, name):
    rule = RULES[name]
    before, plain = rule.start(BUDGET), RULES["basic"].start(BUDGET)
    for price in prices:
        now, plain = rule.add(before, price), RULES["basic"].add(plain, price)
        assert before.spent.epsilon <= now.spent.epsilon <= plain.spent.epsilon
        assert before.spent.delta <= now.spent.delta
        assert now.spent.delta >= plain.spent.delta
        assert total_of(now.as_json()) == now
        before = now


@settings(deadline=None, max_examples=5)
@given(prices.map(lambda found: found[:8]))
def test_distributions_never_fall_either(prices):
    rule = RULES["pld"]
    before = rule.start(BUDGET)
    for price in prices:
        now = rule.add(before, price)
        assert before.spent.epsilon <= now.spent.epsilon
        assert now.spent.epsilon <= sum(one.privacy.epsilon for one in prices) + Fraction(
            8, 1 << BITS
        )
        before = now


def test_distributions_are_convolved_for_few_different_prices(monkeypatch):
    convolved = []
    monkeypatch.setattr(
        "privmax.ledger.rules.Convolution._epsilon", lambda _, tally, slack: convolved.append(tally)
    )
    found = [Charge(Privacy(Fraction(n, STEPS))) for n in range(100, 1100)]
    last = total("pld", found)
    assert max(map(len, convolved)) == len(last.state["tally"]) == DIFFERENT
    assert sum(last.state["tally"].values()) == 1000
    counted = sorted(
        int(steps) for steps, times in last.state["tally"].items() for _ in range(times)
    )
    paid = [n for n, price in enumerate(found, 100)]
    assert all(
        more >= less for more, less in zip(counted, paid, strict=True)
    )  # no charge is counted below its price
    assert sum(counted) < Fraction(11, 10) * sum(paid)
    assert exact("epsilon", last.state["epsilon"]) == Fraction(
        sum(paid), STEPS
    )  # the sum stays exact


def test_a_price_that_comes_often_is_not_rounded():
    often = times(200, "1/64")
    some = [Charge(Privacy(Fraction(n, STEPS))) for n in range(300, 340)]
    tally = reduce(RULES["pld"]._add_price, often + some, RULES["pld"].start(BUDGET).state)["tally"]
    assert tally["128"] == 200
    assert len(tally) == DIFFERENT


@pytest.mark.slow
def test_ledgers_of_version_0_1_0_count_every_price(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("privmax.ledger.rules.Convolution.start", Conversion.start)
        with Ledger.create(tmp_path / "budget.db", budget=Privacy(9, "1e-5"), rule="pld") as ledger:
            ledger.open_account("ann", Privacy(1, "1e-6"))
            ledger.charge(Charge(Privacy("1/9")), {}, account="ann")
    with Ledger(tmp_path / "budget.db") as ledger:
        for n in range(1, DIFFERENT + 3):
            ledger.charge(Charge(Privacy(Fraction(n, 1000))), {})
        ledger.open_account("bob", Privacy(1, "1e-6"))
        ledger.charge(Charge(Privacy("1/9")), {}, account="bob")
        whole = list(ledger.history())[-1].totals["whole"]["state"]
        assert len(whole["tally"]) == DIFFERENT + 3
        assert ledger.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_ledger_of_any_rule_fills_up_and_adds_up(tmp_path, name):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy("1.2", "1e-5"), rule=name) as ledger:
        ledger.open_account("ann", Privacy(1, "1e-6"))
        price = Charge(Privacy("1/20", "1e-9"), bounded_range=False)
        charged = 0
        while ledger.fits(price):
            own = "ann" if charged % 3 == 0 and ledger.fits(price, "ann") else None
            ledger.charge(price, {}, account=own).record(charged)
            charged += 1
        assert charged >= 24  # what the sum allows
        assert ledger.spent.epsilon <= ledger.budget.epsilon
        assert ledger.verify() == []


def test_what_is_close_differs_by_as_much_as_the_proof_says_and_only_in_epsilon():
    one, most = Privacy(1, "1e-6"), Fraction(1, 2**40)
    for difference in (most, -most):
        assert close(one, Privacy(1 + difference, "1e-6"))
        assert not close(one, Privacy(1 + difference * 101 / 100, "1e-6"))
    assert not close(one, Privacy(1, "1.1e-6"))


def test_what_is_left_is_the_difference_of_each_number_and_never_negative():
    made = Privacy(3, "1e-5")
    assert less(made, Privacy(1, "1e-6")) == Privacy(2, "9e-6")
    assert less(made, Privacy(4, "1e-6")) == Privacy(0, "9e-6")
    assert less(made, Privacy(1, "1e-4")) == Privacy(2)
