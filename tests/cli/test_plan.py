"""`privmax plan`: its picture, and sizes as people write them. What a plan says is tested in
tests/unit.
"""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.planning import plans

PRICE = ("--epsilon", "1", "--universe", "1000")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*arguments, exit_code=0):
    run = CliRunner().invoke(main, ["plan", *arguments])
    assert run.exit_code == exit_code, run.output
    return run


@pytest.mark.slow
def test_a_picture_is_drawn_beside_the_table(folder):
    plain = planned(*PRICE).stdout
    assert planned(*PRICE, "--plot", "plan.png").stdout == plain
    assert (folder / "plan.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert json.loads(planned(*PRICE, "--plot", "plan.svg", "--json").stdout)["limit"] == 9
    assert "must lead all others in 1,000 candidates" in (folder / "plan.svg").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("size", ["1000", "1e3", "10^3"])
def test_sizes_may_be_written_short(size):
    assert (
        "lead all others in 1,000 candidates"
        in planned("--epsilon", "1", "--universe", size).stdout
    )


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (
            "plan.pdf",
            "--plot plan.pdf: the file name must end in .png or .svg. For example plot.png.",
        ),
        ("none/plan.svg", "there is no such folder"),
        ("folder.svg", "it exists and is not a regular file"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_computed(
    folder, monkeypatch, file, told
):
    (folder / "folder.svg").mkdir()
    monkeypatch.setattr(plans, "plan", lambda **_: pytest.fail("it was computed"))
    run = planned(*PRICE, "--plot", file, exit_code=2)
    assert told in " ".join(run.stderr.split())
    assert run.stdout == ""


def test_without_matplotlib_it_tells_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "privmax.plots", raising=False)
    assert 'pip install ".[plot]"' in planned(*PRICE, "--plot", "plan.svg", exit_code=2).stderr
    planned(*PRICE)


def test_only_some_mechanisms():
    found = json.loads(
        planned("--epsilon", "0.01", "--delta", "1e-6", "--mechanism", "gap-test", "--json").stdout
    )
    assert [row["mechanism"] for row in found["rows"]] == ["GapTest", "NestedMargin"]


LIST = ("--k", "4", "--epsilon", "1", "--delta", "1e-6")
SETS = ("--mechanism", "set-margin", "--mechanism", "gap-test")


def test_a_list_is_planned_for():
    found = json.loads(planned(*LIST, *SETS, "--json").stdout)
    assert (found["k"], found["near"], found["limit"]) == (4, 4, 16)
    assert found["misses"] == plans.plan(epsilon=1, delta="1e-6", k=4, mechanisms=[]).misses
    rows = {row["mechanism"]: row for row in found["rows"]}
    assert rows["SetMargin"]["lead"] == 25
    assert {row["releases"] for row in found["rows"]} == {"set"}
    text = planned(*LIST, *SETS).stdout
    assert text.startswith("SetMargin * misses ")
    assert "for all 4 to be released" in text
    assert "No mechanism works with a lead below 16." in text


def test_a_single_winner_is_told_as_before():
    found = json.loads(planned(*PRICE, "--json").stdout)
    assert found.keys() == {"rows", "limit", "why"}
    keys = {"mechanism", "lead", "error", "silent", "needs", "chosen"}
    assert all(row.keys() == keys for row in found["rows"])
    assert planned(*PRICE, "--k", "1").stdout == planned(*PRICE).stdout


def test_an_order_costs_more():
    order = json.loads(planned(*LIST, "--ranked", "--json").stdout)
    assert {row["mechanism"] for row in order["rows"] if row["chosen"]} == {"RankedMargin"}
    assert {row.get("releases") for row in order["rows"]} == {"order", None}


@pytest.mark.slow
def test_the_picture_of_a_list_is_drawn_over_k(folder):
    planned(*LIST, *SETS, "--plot", "k.svg")
    assert "Records by which the best k must lead" in (folder / "k.svg").read_text(encoding="utf-8")
    closed = ("--k", "4", "--epsilon", "1", "--universe", "9", "--plot", "few.png")
    planned(*closed)
    assert (folder / "few.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--k", "0"), "--k 0:"),
        (("--k", "11", "--universe", "10"), "--k 11: it must not exceed the size"),
        (("--k", "4", "--near", "3"), "--near 3: it must be at least k, which is 4"),
        (("--k", "4", "--mechanism", "nested-margin"), "it does not release the best 4"),
    ],
)
def test_lists_that_cannot_be_are_refused(arguments, told):
    run = planned("--epsilon", "1", "--delta", "1e-6", *arguments, exit_code=2)
    assert told in " ".join(run.stderr.split())
