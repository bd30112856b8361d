"""The tables of docs/epsilon.md are what the library computes."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, exp
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax import NestedMargin, Privacy, samples, select
from privmax.cli import main
from privmax.errors import ParameterError, PrivacyWarning
from privmax.ledger import Charge, Ledger
from privmax.privacy import DELTA_ADVICE, WEAK
from privmax.warnings import reset_once

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/epsilon.md").read_text(encoding="utf-8")
NAMING_DELTA = ("epsilon", "faq", "glossary", "howto/lawyer", "itemsets", "tutorial")
NIGHTS, DELTA, BUDGET = 365, "1e-9", Privacy(1000, "2e-6")


def spent(rule, epsilon, folder):
    """What a year of nights costs."""
    price = Charge(Privacy(epsilon, DELTA), unit="user")
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
    assert "δ is 3.65e-7 per year by `basic`, and 1e-6 more by `zcdp`" in PAGE


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


# One answer to the question which δ


def squeezed(path):
    """A page without its line breaks."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def test_the_rule_for_delta_is_a_hundredth_of_a_person():
    rows = re.findall(r"^\| ([\d,]+) \| (1e-\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for people, delta in rows:
        assert int(people.replace(",", "")) * Fraction(delta) == Fraction(1, 100)
    shown = re.search(r"^\| \| δ = (.*) \|$", PAGE, re.MULTILINE)[1].split(" | ")
    assert [delta for _, delta in rows] == shown  # what each costs is in the other table
    assert {"10,000": "1e-6", "1,000,000": "1e-8"}.items() <= dict(rows).items()


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in NAMING_DELTA)])
def test_pages_that_name_a_delta_name_the_same_ones(page):
    text = squeezed(page)
    assert DELTA_ADVICE in text
    assert "epsilon.md#which-delta-to-take" in text or page == "docs/epsilon.md"


def test_errors_and_warnings_name_the_same_deltas():
    with pytest.raises(ParameterError, match=DELTA_ADVICE):
        select({"a": 9, "b": 1}, epsilon=1)
    with reset_once(), pytest.warns(PrivacyWarning, match=DELTA_ADVICE):
        select({"a": 9, "b": 1}, epsilon=1, delta="0.01")


@pytest.mark.parametrize("command", ["select", "itemsets", "plan", "compare"])
def test_the_help_of_commands_names_the_same_deltas(command):
    shown = CliRunner().invoke(main, [command, "--help"], terminal_width=100).output
    assert DELTA_ADVICE in " ".join(shown.split())


def test_included_data_sets_have_few_enough_people_for_their_delta():
    """Examples take 1e-6: none of the data sets has more than ten thousand people."""
    for name in samples.NAMES:
        [first, *rows] = samples.path(name).read_text(encoding="utf-8").splitlines()
        names = first.split(",")
        person = next((names.index(one) for one in ("member", "person") if one in names), None)
        people = rows if person is None else {row.split(",")[person] for row in rows}
        assert 0 < len(people) <= 10_000


def test_the_page_of_warnings_names_the_bounds_that_warn():
    bounds = f"ε above {WEAK.epsilon}, or δ above {float(WEAK.delta)}"
    assert bounds in squeezed("docs/howto/unit.md")


# A budget for the year


def test_the_budget_of_the_nightly_job_lasts_for_its_year(tmp_path):
    page = (ROOT / "docs/howto/nightly.md").read_text(encoding="utf-8")
    [made] = re.findall(r"^\$ privmax budget create (.*)$", page, re.MULTILINE)
    [night] = re.findall(r"--epsilon (\S+) --delta (\S+) \\$", page, re.MULTILINE)
    made = dict(zip(*[iter(made.split()[1:])] * 2, strict=True))
    budget = Privacy(made["--epsilon"], made["--delta"])
    price = Charge(Privacy(*night), unit="user")
    with Ledger.create(
        tmp_path / "year.db", budget=budget, rule=made.get("--rule", "basic")
    ) as ledger:
        with ledger.batch() as batch:
            for number in range(NIGHTS):
                batch.charge(price, {"command": "select"}, request=str(number))
        spent = round(float(ledger.spent.epsilon), 2)
    lead = NestedMargin(epsilon=night[0], delta=night[1]).lead(candidates=None)
    assert f"{NIGHTS} nights cost ε = {spent}" in squeezed("docs/howto/nightly.md")
    assert f"lead by {lead} people" in squeezed("docs/howto/nightly.md")
