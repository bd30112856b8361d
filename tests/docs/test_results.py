"""Stored results are whole and say how they were made; pages and pictures show them.

A part of what is exact is computed again. Nothing is timed here, and nothing of the benchmarks is
imported: they are run as programs, or read as files.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privmax import (
    DYADIC,
    Choosing,
    Exponential,
    GapTest,
    LargeMargin,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    Profile,
    SharpMargin,
    StableMaximum,
)

ROOT = Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "lab/benchmarks/results").glob("*.json"))
EXACT = re.compile(r"paper-|head-to-head|itemset-quality")
"""Results without times: they are the same on every machine, and need no load beside them."""


def stored(name):
    return json.loads((ROOT / f"lab/benchmarks/results/{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_a_result_is_whole_and_says_how_it_was_made(file):
    result = stored(file.stem)
    assert result["benchmark"] == file.stem
    parts = [run["part"] for run in result["runs"]]
    assert parts
    assert len(parts) == len(set(parts))
    for run in result["runs"]:
        words = run["command"].split()
        module = words[words.index("-m") + 1].replace(".", "/")
        assert (ROOT / f"{module}.py").is_file()
        assert "--quick" not in words
        assert "--part" not in words or words[words.index("--part") + 1] == run["part"]
        assert run["source"]
        assert EXACT.match(file.stem) or {"date", "load", "cpu", "python"} <= set(run)
        assert run["versions"]
    kinds = {kind: rows for kind, rows in result.items() if isinstance(rows, list)}
    assert len(kinds) > 1
    for kind, rows in kinds.items():
        assert rows, kind
        assert all(isinstance(row, dict) for row in rows)
        endings = {row["ending"] for row in rows if "ending" in row}
        assert endings <= {"done", "time limit", "out of memory"}, kind
    text = file.read_text(encoding="utf-8")
    assert not [place for place in ("/tmp", "/home", "/work", str(ROOT)) if place in text]


def test_there_are_results():
    assert len(RESULTS) > 10


# Tables and pictures


@pytest.fixture
def copied(tmp_path):
    """A copy of what the tables are made of and stand on."""
    for folder in ("lab", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.pyc"))
    return tmp_path


def check(folder):
    command = [sys.executable, "-m", "lab.benchmarks.tables", "--check"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_pages_and_pictures_show_what_is_stored(copied):
    assert check(copied) == (0, "")


@pytest.mark.parametrize(
    ("result", "old", "new", "told"),
    [
        ("select", '"median": 0.0', '"median": 0.9', "lab/benchmarks/README.md is out of date"),
        ("paper-hard", '"records": 10000', '"records": 10001', "['docs/pictures/paper-hard.svg']"),
        *[
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                ("head-to-head", '"loss": 1', '"loss": 7', "lab/head-to-head.md is out of date"),
                (
                    "itemset-quality",
                    '"f1": 0.',
                    '"f1": 0.4',
                    "lab/itemsets-results.md is out of date",
                ),
                (
                    "learning",
                    '"accuracy": 0.',
                    '"accuracy": 0.1',
                    "lab/learning-results.md is out of date",
                ),
            )
        ],
    ],
)
def test_other_numbers_are_noticed(copied, result, old, new, told):
    file = copied / f"lab/benchmarks/results/{result}.json"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    code, said = check(copied)
    assert code == 1
    assert told in said


def test_a_row_that_is_missing_is_noticed(copied):
    file = copied / "lab/benchmarks/results/itemset-quality.json"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    gone = next(line for line in lines if '"epsilon": "0.5"' in line and '"chance"' in line)
    file.write_text("".join(line for line in lines if line != gone), encoding="utf-8")
    assert check(copied) == (1, "quality-chance: nested-margin lacks a cell\n")


def test_a_number_changed_by_hand_is_noticed(copied):
    page = copied / "lab/head-to-head.md"
    text = page.read_text(encoding="utf-8")
    assert "| 21,947 |" in text
    page.write_text(text.replace("| 21,947 |", "| 21,948 |"), encoding="utf-8")
    assert check(copied)[0] == 1


# Neither tests nor benchmarks import the other


def imports(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(folder, of):
    """Files that do not hold the name of any of them are not parsed."""
    return {
        file.relative_to(ROOT).as_posix(): name
        for file in (ROOT / folder).rglob("*.py")
        if any(word.rpartition(".")[2] in file.read_text(encoding="utf-8") for word in of)
        for name in imports(file)
        if any(f"{name}.".startswith(f"{word}.") for word in of)
    }


@pytest.mark.slow
def test_tests_import_nothing_from_benchmarks_nor_the_other_way_round():
    assert importers("tests", {"lab.benchmarks"}) == {}
    ours = {file.stem for file in (ROOT / "tests").rglob("*.py")} - {"__init__"}
    ours |= {"tests", "faults"}
    assert importers("lab/benchmarks", ours - {"memory"}) == {}
    assert importers("tools", ours | {"lab"}) == {}
    assert "lab/benchmarks/harness.py" in importers(
        "lab/benchmarks", {"multiprocessing"}
    )  # it can find


# What is exact is computed again

PRICE = {"epsilon": 1, "delta": "1e-6"}
PURE = {"epsilon": 1}


def near(mechanism, **options):
    """As paper/contenders.py makes it, under replace."""
    return lambda tied: mechanism(neighbors="replace", **options)


NEAR = {
    "exponential": near(Exponential, **PURE),
    "max-of-laplaces": near(MaxOfLaplaces, **PURE),
    "permute-and-flip": near(PermuteAndFlip, **PURE),
    "large-margin": near(LargeMargin, **PRICE),
    "sharp-margin": near(SharpMargin, **PRICE),
    "sharp-margin-dyadic": near(SharpMargin, guards=DYADIC, **PRICE),
    "nested-margin": near(NestedMargin, **PRICE),
    "limited-domain": lambda tied: LimitedDomain(neighbors="replace", rank=tied, **PRICE),
    "stable-maximum": near(StableMaximum, **PRICE),
    "gap-test": near(GapTest, **PRICE),
}


@pytest.mark.slow
@pytest.mark.parametrize("contender", NEAR)
def test_leads_of_the_paper(contender):
    seen = 0
    for row in stored("paper-near")["curves"]:
        if row["contender"] == contender:
            size = {"open": None, "closed": 10**12}[row["universe"]]
            for tied, lead in zip(row["near"], row["lead"], strict=True):
                if tied in (1, 50):
                    assert NEAR[contender](tied).lead(candidates=size, near=tied) == lead
                    seen += 1
    assert seen


CELLS = {
    ("NestedMargin", "open"): lambda price: NestedMargin(**price),
    ("SharpMargin", "open"): lambda price: SharpMargin(**price),
    ("LimitedDomain, rank 1000", "open"): lambda price: LimitedDomain(**price, rank=1000),
    ("GapTest", "open"): lambda price: GapTest(**price),
    ("Choosing, told κ", "open"): lambda price: Choosing(**price, growth=1),
    ("Exponential", "natural"): lambda price: Exponential(epsilon=price["epsilon"]),
    ("PermuteAndFlip", "natural"): lambda price: PermuteAndFlip(epsilon=price["epsilon"]),
}


@pytest.mark.parametrize(("mechanism", "universe"), CELLS)
def test_cells_of_head_to_head(mechanism, universe):
    """Two and ten items at 1000, the rest of 10^5 at 900."""
    result = stored("head-to-head")
    for tied in (2, 10):
        levels = [(1000, tied), (900, 10**5 - tied)]
        profile = Profile(levels, universe=None if universe == "open" else 10**5)
        (row,) = [
            row
            for row in result["rows"]
            if (row["profile"], row["mechanism"]) == (f"{tied} tied", mechanism)
            and row["universe"] == universe
        ]
        for (epsilon, delta), cell in zip(result["settings"]["prices"], row["cells"], strict=True):
            law = CELLS[mechanism, universe]({"epsilon": epsilon, "delta": delta}).law(profile)
            missed = sum(chance * (1000 - score) for score, _, chance in law.blocks)
            expected = missed + 1000 * law.none
            assert cell["loss"] == pytest.approx(expected, rel=1e-5, abs=1e-5)
            assert cell["none"] == pytest.approx(law.none, rel=1e-5, abs=1e-9)


def test_the_list_of_lost_cells_is_complete():
    """From the rows alone: who of ours loses more than the best of the others, and where."""
    result = stored("head-to-head")
    ours, found = ("NestedMargin", "SharpMargin", "auto"), set()
    for profile in result["profiles"]:
        rows = [row for row in result["rows"] if row["profile"] == profile["name"]]
        for place, price in enumerate(result["settings"]["prices"]):
            for universe in ("open", "natural", "10^12"):
                loss = {
                    (row["mechanism"], row["universe"]): row["cells"][place]["loss"]
                    for row in rows
                    if row["universe"] in ("open", universe)
                }
                rivals = [lost for (who, _), lost in loss.items() if who.split(",")[0] not in ours]
                for who in ours:
                    own = loss[who, universe if who == "auto" else "open"]
                    if own - min(rivals) > profile["best"] / 10**6:
                        found.add((universe, profile["name"], *price, who))
    keys = ("universe", "profile", "epsilon", "delta")
    listed = {
        (*(row[key] for key in keys), who) for row in result["lost"] for who in ours if row[who]
    }
    assert listed == found
