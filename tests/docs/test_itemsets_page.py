"""docs/itemsets.md: its commands give what it shows."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path

from click.testing import CliRunner

from privmax.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/itemsets.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_works_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind != "console":
            continue
        lines = text.replace("\\\n", "").splitlines()
        while lines:
            command = lines.pop(0).removeprefix("$ ")
            shown = list(itertools.takewhile(lambda line: not line.startswith("$ "), lines))
            del lines[: len(shown)]
            if command.startswith("privmax "):
                run = CliRunner().invoke(main, shlex.split(command.removeprefix("privmax ")))
                assert (without_noise(run.output.splitlines()), run.exit_code) == (
                    without_noise(shown),
                    0,
                )
                ran += 1
            else:
                assert command.startswith("printf ")
                subprocess.run(["sh", "-c", command], check=True)
    assert ran == 3


def without_noise(lines):
    """The numbers of rules are noisy: other ones each time."""
    return [re.sub(r"\b\d[\d.]*", "#", line) if "confidence" in line else line for line in lines]


# What it says of the stored result


def stored(kind, *keys):
    """Rows of the result, by these columns and the contender."""
    text = (ROOT / "lab/benchmarks/results/itemset-quality.json").read_text(encoding="utf-8")
    rows = json.loads(text)[kind]
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), {})[row["contender"]] = row
    return found


def missed():
    return {
        place: {name: row["missed"] for name, row in rows.items()}
        for place, rows in stored("missed", "set", "k", "epsilon").items()
    }


def test_sets_miss_at_most_half_of_what_priv_basis_misses():
    cells = {place: cell for place, cell in missed().items() if float(place[2]) >= 0.5}
    assert len(cells) == 21
    assert all(cell["set-margin"] <= cell["priv-basis"] / 2 for cell in cells.values())


def test_sets_miss_less_than_priv_basis_at_a_quarter():
    cells = {place: cell for place, cell in missed().items() if place[2] == "0.25"}
    assert len(cells) == 7
    assert all(cell["set-margin"] < cell["priv-basis"] for cell in cells.values())


def better(name):
    """Cells in which somebody misses less than the set margin."""
    return {
        (where, epsilon) for (where, _, epsilon), cell in missed().items()
        if cell[name] < cell["set-margin"]
    }  # fmt: skip


def test_the_page_names_the_cells_where_sets_are_worse():
    assert len(missed()) == 35
    assert better("sharp-margin") == {("mushroom", "0.25")}
    assert better("priv-basis") == {("groceries", "0.1"), ("mushroom", "0.1"), ("bms1", "0.1")}
    assert better("exponential") == {
        ("groceries", "0.25"),
        ("mushroom", "0.1"),
        ("T10I4D100K", "0.1"),
    }


def test_what_is_exact_is_not_repeated():
    for kind in ("missed", "lists"):
        for cell in stored(kind, "set", "k", "epsilon", *(["sizes"] * (kind == "lists"))).values():
            assert cell.pop("set-margin")["repeats"] is None
            assert all(row["repeats"] >= 2 for row in cell.values())


def test_the_page_counts_where_published_methods_have_a_higher_f1():
    ahead, both = set(), set()
    groups = stored("lists", "set", "sizes", "k", "epsilon")
    assert len(groups) == 108
    for place, cell in groups.items():
        scores = {name: row["f1"] for name, row in cell.items()}
        sets, sharp, exponential = map(scores.pop, ("set-margin", "sharp-margin", "exponential"))
        del scores["limited-domain"]
        best = max(scores.values()) - 0.05
        assert sets >= sharp - 0.005
        ahead |= {place} if best > sets else set()
        both |= {place} if best > max(sets, exponential) else set()
    assert len(ahead) == 3
    assert both == {
        ("groceries", "any", 100, "0.1"),
        ("bms1", "pairs", 50, "0.1"),
        ("bms1", "pairs", 100, "0.5"),
    }
