"""Charges that state their rho: how each rule counts them, and that the total is a theorem.

The exact deltas are those of discrete Gaussian noise, whose losses are known.
"""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
from test_forgeries import forge

from privmax.composition import epsilon_of_rho, largest_rho
from privmax.errors import BudgetError, LedgerError, ParameterError
from privmax.ledger import Charge, Ledger
from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import price_json, price_of
from privmax.ledger.rules import RULES, total_of
from privmax.privacy import Privacy

BUDGET = Privacy(10, "1e-5")
SLACK = Fraction(1, 200_000)
RHO = Fraction(1, 100)
GAUSSIAN = Charge(Privacy(epsilon_of_rho(RHO, "1e-6"), "1e-6"), rho=RHO)
PURE = Charge(Privacy("1/10"))
MIXED = Charge(Privacy("1/10", "1e-8"))


def total(rule, prices, budget=BUDGET):
    found = RULES[rule].start(budget)
    for price in prices:
        found = RULES[rule].add(found, price)
    return found


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=BUDGET, rule="zcdp") as ledger:
        yield ledger


def gaussian_delta(variance, shift, epsilon):
    """Exact delta at epsilon of discrete Gaussian noise on a count that moves by `shift`."""
    reach = 40 * (math.isqrt(variance) + 1) + shift
    weight = {k: math.exp(-(k**2) / (2 * variance)) for k in range(-reach, reach + 1)}
    mass = math.fsum(weight.values())
    return math.fsum(
        chance / mass * max(0.0, -math.expm1(epsilon - ((k - shift) ** 2 - k**2) / (2 * variance)))
        for k, chance in weight.items()
    )


# Rules


def test_rhos_add_up_and_their_deltas_are_not_counted():
    found = total("zcdp", [GAUSSIAN] * 12)
    assert found.state["tally"] == "3/25"
    assert found.spent == Privacy(epsilon_of_rho(12 * RHO, SLACK), SLACK)
    assert found.spent.epsilon < 12 * GAUSSIAN.privacy.epsilon / 3


@pytest.mark.parametrize("rule", ["basic", "pld"])
def test_other_rules_count_epsilon_and_delta(rule):
    plain = Charge(GAUSSIAN.privacy)
    assert total(rule, [GAUSSIAN] * 3) == total(rule, [plain] * 3)


def test_charges_with_and_without_rho_add_up():
    found = total("zcdp", [PURE, GAUSSIAN, MIXED])
    assert found.state["tally"] == str(2 * Fraction(1, 200) + RHO)
    assert found.spent.delta == SLACK + Fraction("1e-8")
    assert found.spent.epsilon == epsilon_of_rho(Fraction(1, 100) + RHO, SLACK)
    assert total("zcdp", [GAUSSIAN, MIXED, PURE]) == found


def test_the_sum_of_epsilons_ends_where_a_delta_is_left_out():
    """A charge whose delta is larger than the slack: its epsilon does not hold at the slack."""
    delta = Fraction(1, 100)
    variance, rho = 50, Fraction(1, 100)
    price = Charge(Privacy(epsilon_of_rho(rho, delta), delta), rho=rho)
    spent = total("zcdp", [price]).spent
    assert spent.delta == SLACK
    assert gaussian_delta(variance, 1, float(spent.epsilon)) <= SLACK
    assert gaussian_delta(variance, 1, float(price.privacy.epsilon)) > SLACK
    assert spent.epsilon > price.privacy.epsilon
    later = total("zcdp", [price, PURE]).spent
    assert later.epsilon > spent.epsilon  # and it does not come back


@pytest.mark.parametrize("moves", [1, 3])
def test_the_total_of_gaussians_is_above_the_exact_one(moves):
    """Releases of one count, so many that they tell as much as one of a count that moves more."""
    rho = Fraction(1, 2 * 50)
    price = Charge(Privacy(epsilon_of_rho(rho, "1e-9"), "1e-9"), rho=rho)
    spent = total("zcdp", [price] * moves**2).spent
    assert gaussian_delta(50, moves, float(spent.epsilon)) <= SLACK
    assert gaussian_delta(50, moves, 0.8 * float(spent.epsilon)) > SLACK


def test_a_rho_without_a_delta_leaves_the_sum_valid():
    price = Charge(Privacy("1/10"), rho=Fraction(1, 1000))
    found = total("zcdp", [price])
    assert found.state["tally"] == "1/1000"
    assert found.spent == Privacy("1/10", SLACK)
    assert "route" not in found.state
    assert total("zcdp", [price] * 100).spent.epsilon < total("zcdp", [PURE] * 100).spent.epsilon


def test_without_a_slack_a_stated_rho_is_not_used():
    found = total("zcdp", [GAUSSIAN], Privacy(10))
    assert found.spent == GAUSSIAN.privacy
    assert "route" not in found.state


@pytest.mark.parametrize("budget", [Privacy(10), Privacy(10, Fraction(1, 1 << 220))])
def test_nor_is_it_counted_where_it_is_not_used(budget):
    """A tally of it would say nothing about a charge whose delta is counted too."""
    told = Charge(GAUSSIAN.privacy)
    assert total("zcdp", [GAUSSIAN] * 2, budget) == total("zcdp", [told] * 2, budget)


def test_what_is_spent_does_not_fall():
    found = total("zcdp", [PURE] * 3)
    for price in (GAUSSIAN, MIXED, PURE, GAUSSIAN):
        later = RULES["zcdp"].add(found, price)
        assert later.spent.epsilon >= found.spent.epsilon
        assert total_of(later.as_json()) == later
        found = later


def test_huge_rhos_have_a_cost():
    price = Charge(Privacy(2**70, "1e-6"), rho=Fraction(2**60))
    assert 2**60 < total("zcdp", [price]).spent.epsilon < 2**61


# Prices


def test_a_price_is_written_and_read_with_its_rho():
    assert price_json(GAUSSIAN)["rho"] == "1/100"
    assert price_of(price_json(GAUSSIAN)) == GAUSSIAN
    assert "rho" not in price_json(PURE)


@pytest.mark.parametrize("rho", [Fraction(-1, 2), 0.5, 1, "1/2", True, Fraction(1, 10**5000)])
def test_a_rho_is_a_fraction_that_is_not_negative(rho):
    with pytest.raises(ParameterError, match=r"rho|digits"):
        Charge(Privacy(1), rho=rho)


# Ledgers


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "pld"])
def test_a_ledger_takes_rhos_until_it_is_full(tmp_path, rule):
    budget = Privacy(2, "1e-4")
    with Ledger.create(tmp_path / "budget.db", budget=budget, rule=rule) as ledger:
        ledger.open_account("ann", Privacy(1, "1e-5"))
        charged = 0
        while ledger.fits(GAUSSIAN):
            own = "ann" if charged % 3 == 0 and ledger.fits(GAUSSIAN, "ann") else None
            ledger.charge(GAUSSIAN, {}, account=own).record(charged)
            charged += 1
        with pytest.raises(BudgetError, match="does not allow it"):
            ledger.charge(GAUSSIAN, {})
        assert ledger.verify() == []
        assert charged >= {"basic": 3, "zcdp": 8, "pld": 3}[rule]
        (first,) = [event for event in ledger.history() if event.seq == 3]
        assert first.body["price"]["rho"] == "1/100"


def test_one_release_fits_a_budget_of_its_epsilon_and_twice_its_delta(tmp_path):
    rho = largest_rho(1, "1e-6")
    budget = Privacy(1, "2e-6")
    with Ledger.create(tmp_path / "budget.db", budget=budget, rule="zcdp") as ledger:
        ledger.charge(Charge(Privacy(1, "1e-6"), rho=rho), {})
        assert ledger.spent.delta == Fraction("1e-6")


def test_a_batch_of_rhos(ledger):
    with ledger.batch() as batch:
        for number in range(3):
            batch.charge(GAUSSIAN, {}, request=f"r{number}")
    assert ledger.spent.epsilon == epsilon_of_rho(3 * RHO, SLACK)
    assert ledger.verify() == []


def test_a_part_counts_epsilon_and_delta(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=BUDGET) as whole:
        part = whole.split("web", Privacy(1, "1e-5"), unit="user")
        with part:
            part.charge(Charge(GAUSSIAN.privacy, unit="user", rho=RHO), {})
            assert part.spent == GAUSSIAN.privacy


def test_a_request_is_charged_once_for_its_rho(ledger):
    ledger.charge(GAUSSIAN, {}, request="a")
    assert not ledger.charge(GAUSSIAN, {}, request="a").recorded
    assert ledger.spent.epsilon == epsilon_of_rho(RHO, SLACK)
    other = Charge(GAUSSIAN.privacy, rho=2 * RHO)
    with pytest.raises(LedgerError, match=r"different privacy cost \(rho\)"):
        ledger.charge(other, {}, request="a")


def test_a_request_that_an_earlier_version_charged_without_a_rho_is_the_same(ledger):
    ledger.charge(Charge(GAUSSIAN.privacy), {}, request="a").record(1)
    assert ledger.charge(GAUSSIAN, {}, request="a").answer == 1


def test_a_file_of_an_earlier_version_takes_rhos(tmp_path, monkeypatch):
    file = tmp_path / "budget.db"
    with monkeypatch.context() as patch:
        fewer = {name: text for name, text in TRIGGERS.items() if not name.endswith("_rhos")}
        patch.setattr("privmax.ledger.sqlite_schema.TRIGGERS", fewer)
        with Ledger.create(file, budget=BUDGET, rule="zcdp") as ledger:
            ledger.charge(PURE, {})
    with Ledger(file) as ledger:
        ledger.charge(GAUSSIAN, {}).record(1)
        assert ledger.verify() == []
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        assert ("privmax_events_rhos",) in found.fetchall()


# Forgeries


def cheaper(totals):
    totals["whole"]["spent"]["epsilon"] = "1/100"


def without_route(totals):
    del totals["whole"]["state"]["route"]


def without_tally(totals):
    totals["whole"]["state"]["tally"] = "0"


@pytest.mark.parametrize("change", [cheaper, without_route, without_tally])
def test_nothing_is_built_on_a_rho_that_is_counted_wrongly(ledger, tmp_path, change):
    forge(tmp_path / "budget.db", price=GAUSSIAN, change=change)
    with pytest.raises(LedgerError, match="does not follow"):
        ledger.charge(PURE, {})
    assert ledger.verify() != []


@pytest.mark.parametrize("rho", ["-1/100", "", "x"])
def test_the_file_refuses_a_rho_that_is_none(ledger, tmp_path, rho):
    ledger.charge(PURE, {})
    with pytest.raises(sqlite3.IntegrityError, match="a rho is not negative"):
        forge(tmp_path / "budget.db", price=GAUSSIAN, say={"rho": rho}, guarded=True)
    forge(tmp_path / "budget.db", price=GAUSSIAN, guarded=True)
    assert ledger.verify() == []


def test_a_rho_that_is_said_otherwise_than_it_is_counted(ledger, tmp_path):
    forge(tmp_path / "budget.db", price=GAUSSIAN, say={"rho": "1/10"})
    with pytest.raises(LedgerError, match="does not follow"):
        ledger.charge(PURE, {})
