"""The tables of docs/epsilon.md are what the library computes."""

from __future__ import annotations

import re
from math import ceil, exp
from pathlib import Path

import pytest

from privmax import NestedMargin, Privacy
from privmax.ledger import Ledger, Price

PAGE = (Path(__file__).resolve().parents[2] / "docs/epsilon.md").read_text(encoding="utf-8")
NIGHTS, DELTA, BUDGET = 365, "1e-9", Privacy(1000, "2e-6")


def spent(rule, epsilon, folder):
    """What a year of nights costs."""
    price = Price(Privacy(epsilon, DELTA), unit="user")
    with Ledger.create(folder / f"{rule}.db", budget=BUDGET, rule=rule) as ledger:
        with ledger.batch() as batch:
            for night in range(NIGHTS):
                batch.charge(price, {"command": "select"}, request=str(night))
        return ledger.spent


def shown(number):
    """Rounded up to two digits behind the point."""
    return f"{ceil(number * 100 - 1e-9) / 100:.2f}".rstrip("0").rstrip(".")


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.01", "0.05", "0.1", "0.5", "1"])
def test_a_year_of_nights_costs_what_the_table_says(epsilon, tmp_path):
    lead = NestedMargin(epsilon=epsilon, delta=DELTA).lead(candidates=None)
    basic, zcdp = (spent(rule, epsilon, tmp_path) for rule in ("basic", "zcdp"))
    cells = [epsilon, str(lead), shown(float(basic.epsilon)), shown(float(zcdp.epsilon))]
    assert f"| {' | '.join(cells)} |" in PAGE
    assert (basic.delta, zcdp.delta - basic.delta) == (
        Privacy(0, "3.65e-7").delta,
        BUDGET.delta / 2,
    )
    assert "δ is 3.65e-7 a year by `basic`, and 1e-6 more by `zcdp`" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3"])
def test_leads_by_delta_are_what_the_table_says(epsilon):
    deltas = re.search(r"^\| \| δ = (.*) \|$", PAGE, re.MULTILINE)[1].split(" | ")
    leads = [
        str(NestedMargin(epsilon=epsilon, delta=delta).lead(candidates=None)) for delta in deltas
    ]
    assert f"| ε = {epsilon} | {' | '.join(leads)} |" in PAGE


def row(name):
    return re.search(rf"^\| {re.escape(name)} \| (.*) \|$", PAGE, re.MULTILINE)[1].split(" | ")


def test_the_table_of_factors_is_right():
    for epsilon, factor, chance in zip(
        row("ε"), row("factor e^ε"), row("1 in 100 becomes"), strict=True
    ):
        times = exp(float(epsilon))
        assert float(factor.replace(",", "")) == pytest.approx(times, rel=0.04)
        assert float(chance) == pytest.approx(100 * times / (99 + times), abs=0.06)


def test_every_source_is_listed_and_cited():
    listed = re.findall(r"^(\d)\. .*$", PAGE.split("## What others chose")[1], re.MULTILINE)
    cited = [
        cells.rsplit(" | ", 1)[1]
        for cells in re.findall(r"^\| \w.* \| .* \| .* \| \d(?= \|$)", PAGE, re.MULTILINE)
    ]
    assert listed == [*cited, "7"]
