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
            "plot='plan.pdf' is not allowed: its name must end in .png or .svg. For example "
            "plot.png.",
        ),
        ("none/plan.svg", "there is no such folder"),
        ("folder.svg", "it exists and is not a file"),
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
    assert (
        'pip install "privmax[plot]"' in planned(*PRICE, "--plot", "plan.svg", exit_code=2).stderr
    )
    planned(*PRICE)


def test_only_some_mechanisms():
    found = json.loads(
        planned("--epsilon", "0.01", "--delta", "1e-6", "--mechanism", "gap-test", "--json").stdout
    )
    assert [row["mechanism"] for row in found["rows"]] == ["GapTest", "NestedMargin"]
