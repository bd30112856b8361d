"""The stored faults of ledgers: complete, often enough, nothing lost, and in step with the
pages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import ledger, tables  # run from the project's root

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/results/ledger.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("benchmarks/README.md", tables.ledger_tables),
        ("docs/ledger.md", tables.ledger_fault_tables),
    ],
)
def test_every_table_stands_on_its_page(page, made):
    text = (ROOT / page).read_text(encoding="utf-8")
    for table in made(RESULT):
        assert f"<!-- table: {table.name} -->\n{table.section()}<!-- end -->" in text


def test_nothing_was_lost():
    assert [row for row in RESULT["faults"] if row["lost"]] == []


def test_a_loss_would_stand_in_the_table():
    wrong = {**RESULT["faults"][0], "lost": ["an answer without its charge"] * 2}
    (table,) = tables.ledger_fault_tables({**RESULT, "faults": [wrong, *RESULT["faults"][1:]]})
    assert [row[-1] for row in table.rows[:2]] == ["2: an answer without its charge", "nothing"]


def test_every_trial_was_made_as_often_as_the_script_says():
    assert [row["where"] for row in RESULT["faults"]] == [entry.where for entry in ledger.TRIALS]
    for row, entry in zip(RESULT["faults"], ledger.TRIALS, strict=True):
        if (
            entry.trial is ledger.wrong_clocks
        ):  # counts how often the clock went back, of workers with wrong ones
            assert 1 <= row["times"] <= entry.times
        else:
            assert row["times"] == entry.times, row["fault"]


def test_kills_met_releases_at_work():
    """Hundreds of kills, and they hit every stage of a release."""
    for row in RESULT["faults"]:
        if row["fault"] == "kill -9 of processes that release":
            assert row["times"] >= 300
            assert row["charges"] == row["answers"] > row["times"]
            assert (
                min(
                    row["seen"][stage]
                    for stage in ("between charge and record", "between record and answer")
                )
                >= 1
            )


def test_a_part_made_anew_leaves_the_other():
    new = {"faults": []}
    again = ledger.merged(RESULT, {"part": "faults"}, new)
    assert again["faults"] == []
    assert (again["rates"], again["selections"], again["history"]) == (
        RESULT["rates"], RESULT["selections"], RESULT["history"],
    )  # fmt: skip


def test_the_aims_are_judged_by_the_stored_figures():
    assert RESULT["aims"] == ledger.judgements(RESULT["history"])
    slow = [{"rule": "basic", "wall": 1.0}, {"rule": "basic", "wall": 2.0}]
    assert [aim["met"] for aim in ledger.judgements(slow)] == [False]
